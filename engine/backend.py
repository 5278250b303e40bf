"""The array types that the engine runs on, the module that serves each of them, and devices.

An array's own type says where it lives and who computes with it, so operations never ask for a device.
"""

import ctypes
import math
import os
import platform

import ml_dtypes
import numpy as np

# array type -> the module with its functions.  NumPy returns scalars for 0-d results; Python's floats are constants
# in rules.
modules: dict = {np.ndarray: np, ml_dtypes.bfloat16: np, float: math, int: math}
modules.update(
    dict.fromkeys((np.float64, np.float32, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_), np)
)
modules.update({np.dtype(c).type: np for c in "?bBhHiIlLqQefd"})
scalar_types = frozenset([bool, int, float])
number_types = frozenset(t for t in modules if issubclass(t, np.generic))  # NumPy's scalars: one dtype each
device_names: dict = {}  # array type -> the type of its device, where that is not "cpu"


class Function(dict):
    """One function under its name in every module, or one for all: ``exp = Function("exp"); exp[type(x)](x)``."""

    def __init__(self, name):
        self.name = name

    def call(self, x, *args):
        return self[type(x)](x, *args)

    def __missing__(self, array_type):
        module = module_of(array_type)
        self[array_type] = found = self.name if callable(self.name) else getattr(module, self.name)
        return found


def special(name, *first):
    """A function of scipy.special (for device arrays, of that device's own), imported when it is first called."""

    def call(x):
        import scipy.special

        return getattr(scipy.special, name)(*first, x).astype(x.dtype)

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


def module_of(array_type):
    """The module that serves an array type; TypeError for what is no array."""
    try:
        return modules[array_type]
    except KeyError:
        raise TypeError(f"expected a Tensor or an array, but got {array_type.__name__}") from None


class device:
    """Where a tensor lives: ``device("cpu")``, ``device("cuda:1")``, ``device("cuda", 1)``."""

    __slots__ = ("type", "index")
    known = ("cpu", "cuda", "sim")

    def __init__(self, type, index=None):
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int):
            type, index = "cuda", type
        kind, colon, number = str(type).partition(":")
        if kind not in self.known:
            raise RuntimeError(f"Expected one of cpu, cuda, sim device type at start of device string: {kind}")
        if colon:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not number.isdecimal():
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
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


cpu = device("cpu")


def device_of(x):
    """The device of an array."""
    kind = device_names.get(type(x))
    return cpu if kind is None else device(kind, 0)


def on_host(where):
    """Check a ``device=`` argument: the host is the one device that holds arrays so far."""
    if where is not None and device(where).type != "cpu":
        if device(where).type == "cuda":
            raise AssertionError("Torch not compiled with CUDA enabled")
        raise NotImplementedError(f"device {str(where)!r} is not there yet: use 'cpu'")


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
    strides = [s // x.itemsize for s in x.strides]
    if not x.size:
        after = 1
        for d in reversed(range(x.ndim)):
            strides[d] = strides[d] or after
            after = strides[d] * max(x.shape[d], 1)
    return tuple(strides)


def expanded(x, shape):
    """An array repeated without a copy along new leading dims and dims of size 1, with the strides that PyTorch gives
    it."""
    if type(x) is not np.ndarray:
        return module_of(type(x)).broadcast_to(x, shape)
    lead = len(shape) - x.ndim
    strides = [0 if n != have else s for n, have, s in zip(shape[lead:], x.shape, x.strides)]
    for n in reversed(shape[:lead]):
        strides.insert(0, (shape[-len(strides)] * strides[0] if strides else x.itemsize) if n == 1 else 0)
    if x.flags.c_contiguous:
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return strided(x, shape, [s // x.itemsize for s in strides])


def in_order(x):
    """An array that owns its memory, with its dims in the order in which they lie there."""
    return x.transpose(sorted(range(x.ndim), key=lambda d: -x.strides[d]))


def strided(x, shape, strides, start=0):
    """The memory of a NumPy array in another shape, with strides and a first element counted in elements from x's."""
    owner = storage(x)
    if not owner.size:  # no memory, and so no place in it
        return np.empty(shape, x.dtype)
    offset = address(x) - address(owner) + start * x.itemsize
    return np.ndarray(shape, x.dtype, in_order(owner), offset, tuple(s * x.itemsize for s in strides))


def apart(x):
    """A NumPy array on the same memory that does not know it: its owner is another, so writes are counted apart."""
    if type(x) is not np.ndarray or not x.size:
        return x
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
