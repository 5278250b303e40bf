"""NVIDIA GPUs by CuPy: its arrays, its functions under their names, and what CUDA says of a device.

CuPy's functions are NumPy's, with a few exceptions; these are at the top.  Imported when a GPU is first used.
"""

import functools
import os

import cupy
import cupyx
import cupyx.scipy.special
import numpy as np

from .. import devices, dispatch
from . import draws
from .allocator import out_of_memory
from .kernels import Kernels, rules_as_kernels

# ---- where CuPy differs from NumPy


class Add:
    """``cupy.add``, whose ``at`` (atomic additions) knows only some dtypes."""

    __call__ = staticmethod(cupy.add)
    wider = {np.dtype(c): np.dtype("i4") for c in "?bBh"}

    def at(self, x, index, values):
        if x.dtype == np.int64:  # the bits of a sum are those of the sum without sign
            cupy.add.at(x.view(np.uint64), index, cupy.asarray(values, np.int64).view(np.uint64))
        elif x.dtype in self.wider or x.dtype.kind == "V":  # bfloat16
            wide = x.astype(self.wider.get(x.dtype, np.float32))
            cupy.add.at(wide, index, values.astype(wide.dtype))
            x[...] = wide.astype(x.dtype)
        else:
            cupy.add.at(x, index, values)


def checked_linalg(name):
    """A function of ``cupy.linalg`` which raises LinAlgError for singular matrices, as NumPy and PyTorch do."""
    function = getattr(cupy.linalg, name)

    @functools.wraps(function)
    def checked(*args, **options):
        with cupyx.errstate(linalg="raise"):
            return function(*args, **options)

    return checked


def widened_special(name):
    """A function of ``cupyx.scipy.special``, in float32 for the types of two bytes."""
    function = getattr(cupyx.scipy.special, name)

    def widened(*args):
        *first, x = args
        x = x.astype(np.float32) if x.itemsize == 2 else x
        return function(*(cupy.asarray(v, x.dtype) for v in first), x)

    return widened


def repeat(x, repeats, axis=None):
    """``cupy.repeat`` knows no arrays of counts."""
    if not isinstance(repeats, cupy.ndarray):
        return cupy.repeat(x, repeats, axis)
    ends = repeats.cumsum()
    return x.take(cupy.searchsorted(ends, cupy.arange(int(ends[-1]) if ends.size else 0), side="right"), axis)


def apart(x):
    """An array on the same memory that does not know it."""
    return cupy.ndarray(x.shape, x.dtype, x.data, x.strides)


def host_arrays(args):
    return any(isinstance(a, np.ndarray) or (isinstance(a, (list, tuple)) and host_arrays(a)) for a in args)


def refusing_host_arrays(name):
    """A function of CuPy's which says in PyTorch's words that it was given a host array."""
    function = getattr(cupy, name)

    @functools.wraps(function)
    def checked(*args, **options):
        if host_arrays(args):
            raise devices.mixed_devices(f"cuda:{cupy.cuda.Device().id}", "cpu")
        return function(*args, **options)

    return checked


PHILOX = cupy.ElementwiseKernel(
    "uint64 seed, uint64 offset",
    "raw uint32 words",
    """
    unsigned long long at = offset + i;
    unsigned int c0 = (unsigned int)at, c1 = (unsigned int)(at >> 32), c2 = 0, c3 = 0;
    unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        unsigned long long p = 0xD2511F53ull * c0, q = 0xCD9E8D57ull * c2;
        c0 = (unsigned int)(q >> 32) ^ c1 ^ k0;
        c2 = (unsigned int)(p >> 32) ^ c3 ^ k1;
        c1 = (unsigned int)q;
        c3 = (unsigned int)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[4 * i] = c0;
    words[4 * i + 1] = c1;
    words[4 * i + 2] = c2;
    words[4 * i + 3] = c3;
    """,
    "engine_philox",
)


def philox(seed, offset, blocks):
    """The words of some blocks of a stream: see ``draws.philox``."""
    words = cupy.empty(4 * blocks, np.uint32)
    if blocks:
        PHILOX(np.uint64(seed), np.uint64(offset), words, size=blocks)
    return words


xp = devices.Lookup(
    functools.partial(getattr, cupy), add=Add(), repeat=repeat, apart=apart, philox=philox,
    linalg=devices.Lookup(checked_linalg), special=devices.Lookup(widened_special),
    as_strided=cupy.lib.stride_tricks.as_strided,
    **{name: refusing_host_arrays(name) for name in ("where", "concatenate", "stack", "matmul")},
)  # fmt: skip

# ---- memory


peaks: dict = {}  # device -> the largest numbers of bytes in use and reserved; empty until a program asks


def in_use():
    """The bytes in use and reserved on the current device."""
    pool = cupy.get_default_memory_pool()
    return pool.used_bytes(), pool.total_bytes()


def note_peaks(index):
    peaks[index] = tuple(map(max, in_use(), peaks.get(index, (0, 0))))


def allocate(size):
    """Memory of CuPy's default pool; OutOfMemoryError in PyTorch's words."""
    try:
        memory = cupy.get_default_memory_pool().malloc(size)
    except cupy.cuda.memory.OutOfMemoryError:
        free, total = cupy.cuda.runtime.memGetInfo()
        raise out_of_memory("CUDA", cupy.cuda.Device().id, size, total, free, *in_use()) from None
    if peaks:
        note_peaks(cupy.cuda.Device().id)
    return memory


# ---- the device


class Backend(devices.DeviceBackend):
    """The GPUs."""

    type, name, xp, array, Event, Stream = "cuda", "CUDA", xp, cupy.ndarray, cupy.cuda.Event, cupy.cuda.Stream
    elapsed, current_stream = staticmethod(cupy.cuda.get_elapsed_time), staticmethod(cupy.cuda.get_current_stream)

    def __init__(self):
        self.random = draws.DeviceDraws(self)
        if cupy.cuda.get_allocator() == cupy.get_default_memory_pool().malloc:  # else the program has chosen another
            cupy.cuda.set_allocator(allocate)
        dispatch.tensor_cores.add(cupy.ndarray)
        dispatch.kernels[cupy.ndarray] = Kernels(cupy.ElementwiseKernel, xp, cupy.ndarray, cupy.ReductionKernel)
        rules_as_kernels()

    def on(self, index):
        return cupy.cuda.Device(index)

    def put(self, x, index=None, non_blocking=False):
        with self.on(index):
            out = cupy.empty(x.shape, x.dtype, "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C")
            if x.size:
                out.set(np.asarray(x))
            if not non_blocking and self.is_pinned(x):  # memory that is not pinned has been read when set returns
                cupy.cuda.get_current_stream().synchronize()
            return out

    def get(self, x):
        return x.get(order="A")

    def make(self, index, name, *args, **options):
        with self.on(index):
            return getattr(xp, name)(*args, **options)

    def pinned(self, x):
        out = cupyx.empty_pinned(x.shape, x.dtype)
        out[...] = x
        return out

    def is_pinned(self, x):
        while isinstance(x, np.ndarray):
            x = x.base
        return isinstance(x, cupy.cuda.PinnedMemoryPointer)

    def violated(self, x, test):
        return os.environ.get("CUDA_LAUNCH_BLOCKING") == "1" and bool(test(x))

    def count(self):
        return cupy.cuda.runtime.getDeviceCount()

    def current(self):
        return cupy.cuda.Device().id

    def use(self, index):
        cupy.cuda.Device(index).use()

    def describe(self, index):
        known = cupy.cuda.runtime.getDeviceProperties(index)
        return {"name": known["name"].decode(), "major": known["major"], "minor": known["minor"],
                "total_memory": known["totalGlobalMem"],
                "multi_processor_count": known["multiProcessorCount"]}  # fmt: skip

    def synchronize(self, index):
        self.on(index).synchronize()

    def default_stream(self):
        return cupy.cuda.Stream.null

    def statistics(self, index):
        with self.on(index):
            note_peaks(index)
            return dict(zip(("allocated", "reserved", "max_allocated", "max_reserved"), in_use() + peaks[index]))

    def snapshot(self):
        raise NotImplementedError("CuPy does not tell how its memory is cut up: engine.sim.memory_snapshot() does")

    def reset_peaks(self, index):
        with self.on(index):
            peaks[index] = in_use()

    def free_and_total(self, index):
        with self.on(index):
            return cupy.cuda.runtime.memGetInfo()

    def empty_cache(self):
        cupy.get_default_memory_pool().free_all_blocks()
