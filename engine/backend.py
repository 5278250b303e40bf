"""The array types that the engine runs on, the module that serves each of them, and devices.

An array's own type says where it lives and who computes with it, so operations never ask for a device.
"""

import ctypes
import importlib.util
import math
import os
import platform
import re
import threading
from functools import cached_property, partial, wraps
from typing import Any

import ml_dtypes
import numpy as np

# array type -> the module with its functions.  NumPy returns scalars for 0-d results; Python's floats are constants
# in rules.
modules: dict = {np.ndarray: np, ml_dtypes.bfloat16: np, float: math, int: math, bool: math}
modules.update(
    dict.fromkeys((np.float64, np.float32, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_), np)
)
modules.update({np.dtype(c).type: np for c in "?bBhHiIlLqQefd"})
scalar_types = frozenset([bool, int, float])
tensor_cores: set = set()  # array types whose products of half-precision matrices are accumulated in float32
number_types = frozenset(t for t in modules if issubclass(t, np.generic))  # NumPy's scalars: one dtype each
kernels: dict = {}  # array type -> devices.kernels.Kernels, where a formula is computed by one kernel
device_names: dict = {}  # array type -> the type of its device, where that is not "cpu"; empty until one is used


class Function(dict):
    """One function under its name in every module, or one for all: ``exp = Function("exp"); exp[type(x)](x)``.

    ``formula``: the one for all computes element by element, on a GPU in one kernel.
    """

    def __init__(self, name, formula=False):
        self.name, self.formula = name, formula and callable(name)

    def call(self, x, *args):
        return self[type(x)](x, *args)

    def __missing__(self, array_type):
        module = module_of(array_type)
        found = self.name if callable(self.name) else getattr(module, self.name)
        if self.formula and array_type in kernels:
            found = partial(kernels[array_type].elementwise, self.name)
        self[array_type] = found
        return found


def elementwise(formula, *args):
    """``formula(*args)``, where each element of the results needs only those of the arrays at its place.

    On a GPU it is one kernel, kept for the formula: that must be a function which stays.
    """
    found = kernels.get(type(args[0]))
    return formula(*args) if found is None else found.elementwise(formula, *args)


def special(name, *first):
    """A function of scipy.special (for device arrays, of that device's own), imported when it is first called."""

    def call(x):
        xp = modules[type(x)]
        functions = importlib.import_module("scipy.special") if xp is np else xp.special
        out = getattr(functions, name)(*first, x)
        return out if x.dtype.kind in "iub" else out.astype(x.dtype)

    return call


def repeated(x, shape):
    """A NumPy array, repeated to a shape.

    A small one is copied, which takes a fifth of the time of making the view.
    """
    if math.prod(shape) > 4096:
        return np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


repeat_to = Function("broadcast_to")  # the result is only read: it may be a view
repeat_to.update({t: repeated for t, m in modules.items() if m is np})

# the sum over axes; the method of NumPy's arrays takes longer, and warns of an overflow from a module of NumPy's own
summed = Function(lambda x, axis, dtype, _, keepdims: x.sum(axis, dtype, keepdims=keepdims))
summed[np.ndarray] = np.add.reduce


def selected(condition, a, b):
    """``np.where``; of large arrays by their bits: a tenth of the time where no processor foresees the condition."""
    x = a if type(a) is np.ndarray else b
    large = condition.size >= 8192 and condition.dtype == bool and type(x) is np.ndarray
    word = words.get(x.dtype.itemsize) if large else None
    if word is None or any(
        type(v) not in scalar_types and (type(v) is not np.ndarray or v.dtype is not x.dtype) for v in (a, b)
    ):
        return np.where(condition, a, b)
    mask = condition.view(np.int8).astype(word)
    np.negative(mask, out=mask)  # all bits, where the condition holds
    a, b = (np.asarray(v, x.dtype).view(word) for v in (a, b))
    bits = a ^ b
    out = np.empty(np.broadcast_shapes(bits.shape, mask.shape), x.dtype)
    chosen = np.bitwise_and(bits, mask, out=out.view(word))
    chosen ^= b
    return out


words = {t.itemsize: t for t in map(np.dtype, (np.int8, np.int16, np.int32, np.int64))}
either = Function("where")
either[np.ndarray] = selected


def module_of(array_type):
    """The module that serves an array type; TypeError for what is no array."""
    if not is_array_type(array_type):
        raise TypeError(f"expected a Tensor or an array, but got {array_type.__name__}")
    return modules[array_type]


def is_array_type(kind):
    """Whether there is a module that serves the type; CuPy's becomes known when its first array is met."""
    if kind not in modules and kind.__module__.partition(".")[0] == "cupy" and kind.__name__ == "ndarray":
        home("cuda")
    return kind in modules


# ---- devices


class OutOfMemoryError(RuntimeError):
    """The memory of a device is used up."""

    __module__ = "torch"  # as PyTorch shows it


class MixedDevices(RuntimeError, TypeError):
    """Arrays of two devices in one operation.  CuPy raises TypeError: an operation that catches that looks closer."""


MixedDevices.__name__, MixedDevices.__module__ = "RuntimeError", "builtins"


class device:
    """Where a tensor lives: ``device("cpu")``, ``device("cuda:1")``, ``device("cuda", 1)``.

    In a ``with`` statement: where tensors are created in the block.
    """

    __slots__ = ("index", "type")
    known = ("cpu", "cuda", "sim")

    def __init__(self, type, index=None):
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int):
            if not has_cuda():
                raise RuntimeError("Cannot access accelerator device when none is available.")
            type, index = "cuda", type
        elif not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {type.__class__.__name__}")
        kind, colon, number = type.partition(":")
        if not kind:
            raise RuntimeError("Device string must not be empty")
        if not re.fullmatch(r"[A-Za-z_]+", kind):
            raise RuntimeError(f"Invalid device string: '{type}'")
        if kind not in self.known:
            raise RuntimeError(f"Expected one of {', '.join(self.known)} device type at start of device string: {kind}")
        if colon:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not number.isdecimal() or (number[0] == "0" and number != "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        elif index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        self.type, self.index = kind, index

    def __repr__(self):
        return f"device(type={self.type!r}{'' if self.index is None else f', index={self.index}'})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (self.type, self.index)

    def __enter__(self):
        default.before = (*default.before, default.device)
        default.device = self
        return self

    def __exit__(self, *exc):
        *before, default.device = default.before
        default.before = tuple(before)


class Default(threading.local):
    """Where this thread creates tensors: a device, or None for the host."""

    device = None
    before: tuple = ()  # those that ``with device(...)`` has put aside


default = Default()
cpu = device("cpu")


def set_default_device(device_):
    """Let tensors be created on a device where none is given; None: in host memory."""
    default.device = None if device_ is None else device(device_)


def get_default_device():
    """Where tensors are created if no device is given."""
    where = default.device or cpu
    return where if where.index is not None or where.type == "cpu" else device(where.type, home(where.type).current())


class Home:
    """What a type of device has: ``xp``, the module of its arrays, ``random``, and the way there and back.

    This one is the host's; ``devices`` has the others.
    """

    type = "cpu"
    xp: Any = np
    array: Any = np.ndarray

    @cached_property
    def random(self) -> Any:
        """The functions that draw random arrays: ``draw(generator, shape, dtype, ...)``."""
        return importlib.import_module("engine.random")

    def put(self, x, index=None, non_blocking=False):
        """A copy on the device of an array in host memory; ``non_blocking``: pinned memory may be read later."""
        return x

    def get(self, x):
        """A copy in host memory of an array on the device."""
        return x

    def check(self, index):
        """RuntimeError if there is no device of that index; PyTorch takes any for the host."""

    def make(self, index, name, *args, **options):
        """An array made on the device by a function of its module."""
        return getattr(self.xp, name)(*args, **options)


homes = {"cpu": Home()}
host = homes["cpu"]


def home(kind):
    """The Home of a type of device, which is set up when it is first used.

    AssertionError in PyTorch's words for "cuda" where there is no GPU that CuPy can use.
    """
    if kind not in homes:
        if kind == "cuda" and not has_cuda():
            raise AssertionError("Torch not compiled with CUDA enabled")
        here = __name__.rpartition(".")[0]
        homes[kind] = found = importlib.import_module(f"{here}.devices.{kind}").Home()
        device_names[found.array] = kind
        modules[found.array] = found.xp
    return homes[kind]


def has_cuda():
    """Whether there is CuPy, a driver and a GPU.  CuPy is imported only where it is installed."""
    if "cuda" not in homes and importlib.util.find_spec("cupy") is None:
        return False
    try:
        import cupy

        return bool(cupy.cuda.is_available())
    except Exception:  # an installation that does not fit the machine is none
        return False


def place(where):
    """(Home, index or None) for a ``device=`` argument; None: the default device."""
    if where is None:
        where = default.device
        if where is None:
            return host, None
    elif type(where) is not device:
        where = device(where)
    found = home(where.type)
    if where.index:
        found.check(where.index)
    return found, where.index


def device_of(x):
    """The device of an array."""
    kind = device_names.get(type(x))
    return cpu if kind is None else device(kind, x.device.id)


def draws(x):
    """The functions that draw random arrays on the device of an array."""
    return drawing(homes[device_names.get(type(x), "cpu")].random)


def moved(x, where, non_blocking=False):
    """A copy of an array on a device, or the array itself if it is there."""
    found, index = place(where)
    have = device_of(x)
    if have.type == found.type and (found is host or index in (None, have.index)):
        return x
    x = x if have.type == "cpu" else homes[have.type].get(x)
    if found is host:
        return x if x.ndim else x[()]  # without dimensions: NumPy's scalar, which computes faster
    return found.put(np.asarray(x), index, non_blocking)


def mixed_devices(a, b):
    """PyTorch's error for arrays of two devices in one operation."""
    return MixedDevices(f"Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!")


def one_device(x, y):
    """Two operands for one device: beside one there, a host array without dimensions is a number, as in PyTorch.

    RuntimeError in PyTorch's words for any other two devices.
    """
    kinds = type(x), type(y)
    if kinds[0] is not kinds[1] and not device_names.keys().isdisjoint(kinds):
        x, y = (v[()] if type(v) is np.ndarray and not v.ndim else v for v in (x, y))
        if np.ndarray in (type(x), type(y)) or len({device_names.get(kind) for kind in kinds} - {None}) == 2:
            raise mixed_devices(device_of(x), device_of(y)) from None  # the attempt before says the same
    return x, y


def beside(number, *arrays):
    """A NumPy number as an array on the device of one of these arrays; itself if they are in host memory."""
    return next((moved(number, device_of(x)) for x in arrays if type(x) in device_names), number)


def violated(x, test):
    """Whether ``test(x)`` finds wrong values in an array.

    On a GPU nobody looks unless CUDA_LAUNCH_BLOCKING=1 is in the environment: the host would have to wait.  (PyTorch's
    kernels look there, and the program ends by a device-side assertion.)
    """
    kind = device_names.get(type(x))
    if kind is None:
        return bool(samples(test(x)).any())
    return homes[kind].violated(x, test) if running.tape is None else running.tape.violated(homes[kind], x, test)


def storage(x):
    """The array that owns the memory of x; views share it."""
    base = x.base
    return base if type(base) is type(x) else x


def address(x):
    """Where the first element of an array lies."""
    return x.ctypes.data if type(x) is np.ndarray else x.data.ptr


def writable(x):
    """A view that NumPy gives out read-only, made writable if its memory is."""
    if type(x) is np.ndarray and not x.flags.writeable and isinstance(x.base, np.ndarray):
        x.flags.writeable = x.base.flags.writeable
    return x


def element_strides(x):
    """Strides in elements; of an empty array, for which NumPy has 0, those that it would have."""
    size = x.itemsize
    strides = [s // size for s in x.strides]
    if not x.size:
        after = 1
        for d in reversed(range(x.ndim)):
            strides[d] = strides[d] or after
            after = strides[d] * max(x.shape[d], 1)
    return tuple(strides)


def expanded(x, shape):
    """An array repeated without a copy along new leading dims and dims of size 1, with the strides that PyTorch gives
    it."""
    if type(x) is not np.ndarray and type(x) not in device_names:
        return module_of(type(x)).broadcast_to(x, shape)
    lead = len(shape) - x.ndim
    strides = [0 if n != have else s for n, have, s in zip(shape[lead:], x.shape, x.strides)]
    for n in reversed(shape[:lead]):
        strides.insert(0, (shape[-len(strides)] * strides[0] if strides else x.itemsize) if n == 1 else 0)
    if type(x) is np.ndarray and x.flags.c_contiguous:
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return strided(x, shape, [s // x.itemsize for s in strides])


def in_order(x):
    """An array that owns its memory, with its dims in the order in which they lie there."""
    return x.transpose(sorted(range(x.ndim), key=lambda d: -x.strides[d]))


def strided(x, shape, strides, start=0):
    """The memory of an array in another shape, with strides and a first element counted in elements from x's."""
    if type(x) is np.ndarray and x.flags.c_contiguous and x.flags.owndata and x.size:  # the usual case, quickly
        size = x.itemsize
        return np.ndarray(shape, x.dtype, x, start * size, [s * size for s in strides])
    xp = modules[type(x)]
    if type(x) in batches:
        return xp.strided(x, shape, strides, start)
    owner = storage(x)
    if not owner.size:  # no memory, and so no place in it
        return xp.empty(shape, x.dtype)
    offset = address(x) - address(owner) + start * x.itemsize
    strides = tuple(s * x.itemsize for s in strides)
    if xp is np:
        return np.ndarray(shape, x.dtype, in_order(owner), offset, strides)
    return xp.as_strided(in_order(owner).reshape(-1)[offset // x.itemsize :], shape, strides)


# ---- batches: arrays of a type that vmap runs a function on

batches: dict = {}  # array type -> its module, for types that stand for many samples at once; empty until there is one

writers: dict = {}  # array type -> what writes a step down, for the arrays of a capture


def one_step(function):
    """A function of an array that a capture writes down as one step: it chooses its way by the array's values."""

    @wraps(function)
    def call(x, *args, **options):
        write = writers.get(type(x))
        return function(x, *args, **options) if write is None else write(call.__name__, call, x, *args, **options)

    return call


class Running(threading.local):
    """The vmaps that run in this thread, the newest last, and the tape on which a capture writes down what is done."""

    levels: tuple = ()
    tape = None


running = Running()


def any_size():
    """Whether a capture runs that is to hold for all sizes: then sizes must not choose how to compute."""
    return running.tape is not None and running.tape.sizes is not None


def drawing(functions):
    """The functions that draw random numbers, as a capture and the vmaps that run want them."""
    if running.tape is not None:
        functions = running.tape.drawing(functions)
    if not running.levels:
        return functions
    from .batched import Draws

    return Draws(functions)


def samples(x):
    """All elements of an array, those of every sample of a batch: for checks, and to choose how to compute."""
    return modules[type(x)].samples(x) if type(x) in batches else x


def blank(shape, x, *more):
    """Zeros in the dtype of x to write into: as large a batch as x and whatever ``more`` has a part in it."""
    if batches:
        for a in (x, *more):
            if type(a) in batches:
                return modules[type(a)].blank(shape, (x, *more))
    return modules[type(x)].zeros(shape, x.dtype)


def copied(x, *more):
    """A copy of an array to write into."""
    if any(type(a) in batches for a in more):
        out = blank(x.shape, x, *more)
        out[...] = x
        return out
    return x.copy()


def picked(x, key):
    """``x[key]``, also where x is no batch and an index array is."""
    if batches:
        for k in key:
            if type(k) in batches:
                return modules[type(k)].getitem(x, key)
    return x[key]


def apart(x):
    """An array on the same memory that does not know it: its owner is another, so writes are counted apart."""
    if type(x) is not np.ndarray or not x.size:
        return modules[type(x)].apart(x) if type(x) in device_names and x.size else x
    owner = storage(x)
    again = type(owner.base) is memoryview
    twin = np.frombuffer(owner.base if again else memoryview(in_order(owner).reshape(-1).view(np.uint8)), np.uint8)
    return np.ndarray(x.shape, x.dtype, twin, address(x) - address(owner), x.strides)


def same_place(x, y):
    """Whether two arrays are the same elements in memory."""
    if x is y:
        return True
    if (x.base is None and y.base is None) or type(x) is not type(y) or x.dtype != y.dtype:
        return False
    return x.shape == y.shape and x.strides == y.strides and address(x) == address(y)


def keep_freed_memory():
    """Tell glibc to reuse the memory of large arrays instead of returning it to the system.

    Every fresh page costs a fault: from 256x256 up, allocation otherwise takes longer than arithmetic.  Only on Linux
    with glibc; ``ENGINE_MALLOPT=0`` in the environment leaves the allocator alone.
    """
    if platform.libc_ver()[0] == "glibc" and os.environ.get("ENGINE_MALLOPT", "1") != "0":
        mallopt = ctypes.CDLL(None).mallopt
        m_mmap_threshold, m_trim_threshold = -3, -1
        mallopt(m_mmap_threshold, 1 << 30)
        mallopt(m_trim_threshold, 1 << 30)


keep_freed_memory()
