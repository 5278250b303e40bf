"""A pytest plugin that puts NumPy under CuPy's names, so that what ``arrays/devices/cuda.py`` does runs without a GPU.

``python -m pytest -p stand_in_cupy -m gpu``: the tests that need a GPU, on host memory.  It shows that the engine's own
lines are sound; what CuPy's functions do, only a GPU shows.  The arrays are a second copy of the simulated device's,
which raises TypeError for host arrays as CuPy does.  Kernels are run as ``kernels_in_cpp`` has it.
"""

import importlib.util
import sys
import time
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
from kernels_in_cpp import ElementwiseKernel, ReductionKernel

from engine.arrays import devices

spec = importlib.util.find_spec("engine.arrays.devices.sim")
own = importlib.util.module_from_spec(spec)
spec.loader.exec_module(own)
own.devices = SimpleNamespace(
    **vars(devices) | {"mixed_devices": lambda a, b: TypeError("Unsupported type <class 'numpy.ndarray'>")}
)


class OutOfMemoryError(MemoryError):
    pass


class Array(own.Array):
    """What only CuPy's arrays have; made of a shape, a dtype, a place in memory and strides."""

    __slots__ = ()

    def __init__(self, host, base=None, memory=None, strides=None):
        if strides is not None:
            host, base, memory = np.lib.stride_tricks.as_strided(memory.of.host, host, strides), None, memory.of.memory
        super().__init__(host, base, memory)

    def get(self, stream=None, order="C", out=None, blocking=True):
        own.allocator.transfers += 1
        return self.host.copy(order)

    def set(self, x, stream=None):
        self.host[...] = x


own.Array = Array


Array.data = property(lambda self: SimpleNamespace(ptr=self.host.ctypes.data, of=self))


class Device:
    """The only GPU."""

    def __init__(self, index=None):
        self.id = index or 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def use(self):
        pass

    def synchronize(self):
        pass


class Event:
    done = True

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        pass

    def record(self, stream=None):
        self.time = time.perf_counter()

    def synchronize(self):
        pass


class Stream(nullcontext):
    done, null = True, None

    def __init__(self, null=False, non_blocking=False):
        super().__init__()

    def synchronize(self):
        pass

    def wait_event(self, event):
        assert isinstance(event, Event)


Stream.null = Stream()


class Pool:
    """The default memory pool: the counts of the copied allocator, which gives the memory itself."""

    def malloc(self, size):
        raise OutOfMemoryError

    def used_bytes(self):
        return own.allocator.settled().allocated

    def total_bytes(self):
        return own.allocator.settled().reserved

    def free_all_blocks(self):
        own.allocator.empty_cache()


class PinnedMemoryPointer(bytearray):
    pass


def empty_pinned(shape, dtype):
    return np.ndarray(shape, dtype, PinnedMemoryPointer(int(np.prod(shape)) * np.dtype(dtype).itemsize))


class Kernel(ElementwiseKernel):
    arrays = Array


class Reduction(ReductionKernel):
    arrays = Array

    def made(self, x):
        return Array(x)


class Cupy(ModuleType):
    """NumPy's functions, for these arrays."""

    def __getattr__(self, name):
        return getattr(own.xp, name)


pool = Pool()
cupy = Cupy("cupy")
cupy.ndarray, cupy.ElementwiseKernel, cupy.ReductionKernel = Array, Kernel, Reduction
cupy.get_default_memory_pool = lambda: pool
cupy.lib = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=own.as_strided))
cupy.cuda = SimpleNamespace(
    is_available=lambda: True, Device=Device, Event=Event, Stream=Stream, PinnedMemoryPointer=PinnedMemoryPointer,
    get_current_stream=Stream, get_allocator=lambda: pool.malloc, set_allocator=lambda allocator: None,
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    get_elapsed_time=lambda a, b: 1000 * (b.time - a.time),
    runtime=SimpleNamespace(
        getDeviceCount=lambda: 1, memGetInfo=lambda: (1 << 30, 1 << 32),
        getDeviceProperties=lambda i: {"name": b"Stand-in", "major": 9, "minor": 0, "totalGlobalMem": 1 << 32,
                                       "multiProcessorCount": 1},
    ),
)  # fmt: skip
cupyx = ModuleType("cupyx")
cupyx.errstate = lambda **options: nullcontext()
cupyx.empty_pinned = empty_pinned
cupyx.scipy = ModuleType("cupyx.scipy")
cupyx.scipy.special = own.xp.special
sys.modules |= {"cupy": cupy, "cupyx": cupyx, "cupyx.scipy": cupyx.scipy, "cupyx.scipy.special": ModuleType("special")}
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: spec if name == "cupy" else find_spec(name, *more)
