"""The simulated device: arrays of a type of their own in host memory, for machines without a GPU.

An ``Array`` behaves as CuPy's do: it mixes with no host array, its results without dimensions stay arrays, and no NumPy
function takes it.  Its module, ``xp``, runs NumPy's functions inside.  What gets allocated is laid out in segments as
by CUDA's caching allocator of PyTorch, and what crosses to the host is counted.
"""

import importlib
import operator
import time
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np

from .. import devices
from . import draws
from .allocator import Allocator

allocator = Allocator()


class MemoryBlock:
    """A block of the allocator, for as long as an array on it lives."""

    __slots__ = ("block",)

    def __init__(self, nbytes):
        self.block = None
        self.block = allocator.allocate(nbytes)

    def __del__(self):
        if self.block is not None and allocator is not None:  # at the end of the interpreter modules lose their names
            allocator.free(self.block)


class Array:
    """An array on the device.  ``host`` holds its elements, ``base`` is the array whose memory it views, or None."""

    __slots__ = ("__weakref__", "base", "host", "memory")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host, base=None, memory=None):
        self.host, self.base = host, base
        self.memory = memory or (base.memory if base is not None else MemoryBlock(host.nbytes))

    def __len__(self):
        return len(self.host)

    def __getitem__(self, key):
        return on_device(self.host[on_host(key)], (self,))

    def __setitem__(self, key, value):
        self.host[on_host(key)] = on_host(value)

    def __repr__(self):
        return f"{type(self).__module__}.Array({self.get()!r})"

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """NumPy calls this for ``numpy_scalar * array``; for a NumPy array beside this one, on_host raises."""
        if method != "__call__" or not any(isinstance(a, (np.ndarray, np.generic)) for a in inputs):
            raise TypeError(f"np.{ufunc.__name__} was called on a device array: call its own module's function")
        return getattr(xp, ufunc.__name__)(*inputs, **options)

    def __array_function__(self, function, types, args, options):
        raise TypeError(f"np.{function.__name__} was called on a device array: call its own module's function")

    def get(self):
        """A copy in host memory; counted."""
        allocator.transfers += 1
        return self.host.copy("K")

    device = property(lambda self: SimpleNamespace(id=0))
    data = property(lambda self: SimpleNamespace(ptr=self.host.ctypes.data))
    T = property(lambda self: on_device(self.host.T, (self,)))


def to_host(name):
    """A conversion to Python: it makes the host wait for the device, and is counted."""

    def method(self, *args):
        allocator.transfers += 1
        return getattr(self.host, name)(*args)

    return method


def forwarded(name):
    """A method of NumPy's array."""
    return lambda self, *args, **options: on_device(
        getattr(self.host, name)(*on_host(args), **on_host(options)), (self,)
    )


def operated(name):
    """An operator of NumPy's array; one in place gives the array itself."""
    function = getattr(np.ndarray, name)

    def method(self, *others):
        if others and not isinstance(others[0], (Array, np.ndarray, np.generic, bool, int, float)):
            return NotImplemented
        out = function(self.host, *on_host(others))
        return out if out is NotImplemented else on_device(out, (self,))

    return method


for name in "shape ndim size dtype itemsize nbytes strides flags".split():
    setattr(Array, name, property(operator.attrgetter("host." + name)))
for name in "item tolist tobytes __bool__ __int__ __float__ __complex__".split():
    setattr(Array, name, to_host(name))
for name in """all any argmax argmin argpartition argsort astype choose clip compress copy cumprod cumsum diagonal dot
               fill flatten max mean min nonzero partition prod put ravel repeat reshape round sort squeeze std sum
               swapaxes take trace transpose var view""".split():  # those that CuPy has too
    setattr(Array, name, forwarded(name))
for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    for way in ("", "r", "i") if name != "matmul" else ("", "r"):
        setattr(Array, f"__{way}{name}__", operated(f"__{way}{name}__"))
for name in "neg pos abs invert eq ne lt le gt ge divmod rdivmod".split():
    setattr(Array, f"__{name}__", operated(f"__{name}__"))


def on_host(x):
    """Return the NumPy arrays behind those of the device; MixedDevices for an array in host memory."""
    kind = type(x)
    if kind is Array:
        return x.host
    if kind is np.ndarray:
        raise devices.mixed_devices("sim:0", "cpu")
    if kind in (tuple, list):
        return kind([on_host(v) for v in x])
    if kind is dict:
        return {k: on_host(v) for k, v in x.items()}
    return x


def on_device(out, sources):
    """NumPy's result as an Array: a view of that source whose memory it shares, else in memory of its own."""
    if isinstance(out, (np.ndarray, np.generic)):
        out = np.asarray(out)
        for x in sources:
            if out is x.host:
                return x
            root = x if x.base is None else x.base
            owner = root.host if root.host.base is None else root.host.base
            if out.base is not None and (out.base is owner or np.may_share_memory(out, root.host)):
                out.flags.writeable = root.host.flags.writeable  # CuPy has no views that cannot be written
                return Array(out, root)
        return Array(out)
    if isinstance(out, (tuple, list)):
        parts = [on_device(o, sources) for o in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    return out


def arrays_in(args):
    for a in args:
        if type(a) is Array:
            yield a
        elif isinstance(a, (tuple, list)):
            yield from arrays_in(a)


class Served:
    """A NumPy function that takes and returns device arrays."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **options):
        sources = list(arrays_in((*args, *options.values())))
        return on_device(self.function(*on_host(args), **on_host(options)), sources)

    def at(self, x, index, *values):
        self.function.at(x.host, on_host(index), *on_host(values))


def device_functions(source, absent=()):
    """The functions of a module under their names, for device arrays."""

    def find(name):
        if name in absent:
            raise AttributeError(f"CuPy has no function {name}, so the simulated device has none")
        found = getattr(importlib.import_module(source), name)
        if isinstance(found, ModuleType):
            return device_functions(found.__name__)
        return Served(found) if callable(found) and not isinstance(found, type) else found

    return devices.Lookup(find)


LACKING = """block einsum_path frompyfunc geomspace histogram_bin_edges insert matvec nanpercentile nanquantile polyder
polydiv spacing unstack vecdot vecmat"""
xp = device_functions("numpy", LACKING.split())


def asarray(x, dtype=None):
    x = x if type(x) is Array else Array(np.array(x, order="K"))
    return x if dtype is None else x.astype(dtype, copy=False)


def array(x, dtype=None):
    return asarray(x.copy("K") if type(x) is Array else x, dtype)


def as_strided(x, shape, strides):
    view = np.lib.stride_tricks.as_strided(x.host, shape, strides)
    return Array(view, x if x.base is None else x.base)


vars(xp).update(
    asarray=asarray,
    array=array,
    as_strided=as_strided,
    apart=lambda x: Array(x.host, memory=x.memory),  # an array on the same memory that does not know it
    philox=lambda seed, offset, blocks: asarray(draws.philox(seed, offset, blocks)),
    special=device_functions("scipy.special"),
)


def nothing(*args, **options):
    """Do nothing: the device computes at once."""


class Event:
    """A moment, under CuPy's names: the device computes at once, so it is that at which it was recorded."""

    done, synchronize = True, nothing

    def __init__(self, block=False, disable_timing=False):
        self.time = None

    def record(self, stream=None):
        self.time = time.perf_counter()


class Stream(nullcontext):
    """A queue, under CuPy's names, that is always empty."""

    done, synchronize, wait_event = True, nothing, nothing

    def __init__(self, non_blocking=False):
        super().__init__()


class Backend(devices.DeviceBackend):
    """The simulated device, the only one of its type."""

    type, name, xp, array, Event, Stream = "sim", "sim", xp, Array, Event, Stream
    current_stream = default_stream = staticmethod(Stream)
    elapsed = staticmethod(lambda start, end: (end.time - start.time) * 1000.0)
    use = synchronize = nothing
    allocator, empty_cache = allocator, staticmethod(allocator.empty_cache)

    def __init__(self):
        self.random = draws.DeviceDraws(self)

    def put(self, x, index=None, non_blocking=False):
        return asarray(x)

    def get(self, x):
        return x.get()

    def count(self):
        return 1

    def current(self):
        return 0

    def describe(self, index):
        return {"name": "Simulated device", "major": 0, "minor": 0, "total_memory": allocator.capacity,
                "multi_processor_count": 1}  # fmt: skip

    def violated(self, x, test):
        """The device looks itself, as a kernel does: nothing crosses to the host."""
        return bool(test(x).host)

    def statistics(self, index):
        a = allocator.settled()
        names = "allocated reserved requested max_allocated max_reserved transfers".split()
        return {name: getattr(a, name) for name in names} | a.counts

    def snapshot(self):
        return allocator.snapshot()

    def reset_peaks(self, index):
        allocator.settled().reset_peaks()

    def free_and_total(self, index):
        return allocator.capacity - allocator.settled().reserved, allocator.capacity
