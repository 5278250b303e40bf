"""Devices: what ``device("cuda")`` means, where arrays are made, and how they get from one device to another."""

import importlib
import importlib.util
import re
import threading
from functools import cached_property
from typing import Any

import numpy as np

from .. import dtypes
from ..batches import samples
from ..dispatch import batches, device_names, modules, number_types, strangers
from ..running import running, writers
from ..selection import either


class OutOfMemoryError(RuntimeError):
    """The memory of a device is used up."""

    __module__ = "torch"  # as PyTorch shows it


class MixedDevices(RuntimeError, TypeError):
    """Arrays of two devices in one operation.  CuPy raises TypeError: an operation that catches that looks closer."""


MixedDevices.__name__, MixedDevices.__module__ = "RuntimeError", "builtins"


class device:
    """The place where a tensor lives: ``device("cpu")``, ``device("cuda:1")``, ``device("cuda", 1)``."""

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
                why = "index was passed explicitly"
                raise RuntimeError(f"type (string) must not include an index because {why}: {type}")
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
        default.before, default.device = (*default.before, default.device), self
        return self

    def __exit__(self, *exc):
        default.device, default.before = default.before[-1], default.before[:-1]


class Default(threading.local):
    """The device on which this thread creates tensors; None is the host."""

    device = None
    before: Any = ()  # those that ``with device(...)`` has put aside


default = Default()
cpu = device("cpu")


def set_default_device(device_):
    """Let tensors be created on a device where none is given; None: in host memory."""
    default.device = None if device_ is None else device(device_)


def get_default_device():
    """Return the device on which tensors are created if none is given."""
    where = default.device or cpu
    if where.index is None and where.type != "cpu":
        return device(where.type, backend_of(where.type).current())
    return where


class DeviceBackend:
    """A type of device: ``xp``, the module of its arrays, and copies to and from it.  This one is the host's."""

    type, name = "cpu", "CPU"
    xp: Any = np
    array: Any = np.ndarray

    @cached_property
    def random(self) -> Any:
        """The functions that draw random arrays: ``draw(generator, shape, dtype, ...)``."""
        return importlib.import_module("engine.arrays.random")

    def put(self, x, index=None, non_blocking=False):
        """A copy on the device of an array in host memory; ``non_blocking``: pinned memory may be read later."""
        return x

    def get(self, x):
        """A copy in host memory of an array on the device."""
        return x

    def check(self, index):
        """RuntimeError if there is no device of that index; PyTorch takes any for the host."""
        if self is not cpu_backend and not 0 <= index < self.count():
            raise RuntimeError(f"{self.name} error: invalid device ordinal")

    def make(self, index, name, *args, **options):
        """An array made on the device by a function of its module."""
        return getattr(self.xp, name)(*args, **options)


class Lookup:
    """Functions under their names: those given, and what ``find(name)`` says of one when it is first used."""

    def __init__(self, find, **given):
        self.__dict__.update(given, find=find)

    def __getattr__(self, name):
        found = self.__dict__[name] = self.find(name)
        return found


backends = {"cpu": DeviceBackend()}
cpu_backend = backends["cpu"]


def backend_of(kind):
    """The backend of a type of device, set up when it is first used.  AssertionError for "cuda" without a GPU."""
    if kind not in backends:
        if kind == "cuda" and not has_cuda():
            raise AssertionError("Torch not compiled with CUDA enabled")
        backends[kind] = found = importlib.import_module(f"{__name__}.{kind}").Backend()
        device_names[found.array] = kind
        modules[found.array] = found.xp
    return backends[kind]


def meet_cupy(kind):
    """Set CuPy's arrays up when a program brings the first one."""
    if kind.__module__.partition(".")[0] == "cupy" and kind.__name__ == "ndarray":
        backend_of("cuda")


strangers.append(meet_cupy)


def has_cuda():
    """Tell whether CuPy, a driver and a GPU are there; CuPy is imported only where it is installed."""
    if "cuda" not in backends and importlib.util.find_spec("cupy") is None:
        return False
    try:
        import cupy  # noqa: PLC0415  only where it is installed

        return bool(cupy.cuda.is_available())
    except Exception:  # an installation that does not fit the machine is none
        return False


def place(where):
    """(backend, index or None) for a ``device=`` argument; None: the default device."""
    where = default.device if where is None else where
    if where is None:
        return cpu_backend, None
    if type(where) is not device:
        where = device(where)
    found = backend_of(where.type)
    if where.index:
        found.check(where.index)
    return found, where.index


def device_of(x):
    """The device of an array."""
    kind = device_names.get(type(x))
    if kind is None:
        return device_of(samples(x)) if type(x) in batches and type(x) not in writers else cpu
    return device(kind, x.device.id)


def typename_of(x):
    """Return PyTorch's name for the type of a tensor that has this array."""
    kind = device_names.get(type(x))
    return f"torch.{'' if kind is None else kind + '.'}{dtypes.dtype_word(x)}Tensor"


draw_wrappers: list = []  # what makes others of the functions that draw, where a capture or a vmap runs


def drawing(functions):
    """The functions that draw random numbers, as a capture and the vmaps that run want them."""
    for wrapped in draw_wrappers:
        functions = wrapped(functions)
    return functions


def random_source(x):
    """The functions that draw random arrays on the device of an array."""
    return drawing(backends[device_names.get(type(x), "cpu")].random)


def moved(x, where, non_blocking=False):
    """A copy of an array on a device, or the array itself if it is there."""
    found, index = place(where)
    have = device_of(x)
    if have.type == found.type and (found is cpu_backend or index in (None, have.index)):
        return x
    if type(x) in batches and type(x) not in writers:
        return modules[type(x)].moved(x, where, non_blocking)
    x = x if have.type == "cpu" else backends[have.type].get(x)
    if found is cpu_backend:
        return x if x.ndim else x[()]  # without dimensions: NumPy's scalar, which computes faster
    return found.put(np.asarray(x), index, non_blocking)


def mixed_devices(a, b):
    """PyTorch's error for arrays of two devices in one operation."""
    return MixedDevices(f"Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!")


def one_device(x, y):
    """Two operands for one device: beside one there, a host array without dimensions is a number; else RuntimeError."""
    kinds = type(x), type(y)
    if kinds[0] is not kinds[1] and not device_names.keys().isdisjoint(kinds):
        x, y = (v[()] if type(v) is np.ndarray and not v.ndim else v for v in (x, y))
        if np.ndarray in (type(x), type(y)) or len({device_names.get(kind) for kind in kinds} - {None}) == 2:
            raise mixed_devices(device_of(x), device_of(y)) from None  # the attempt before says the same
    return x, y


def check_one_device(arrays):
    """RuntimeError in PyTorch's words for arrays of several devices."""
    if device_names:
        for x in arrays[1:]:
            one_device(arrays[0], x)


def brought(x, where):
    """An array that a program gave as data, as a copy where tensors are made; one on a device stays there for None."""
    if type(x) not in device_names:
        return moved(np.array(x), where)
    return x if where is None else moved(x, where)


def numpy_array(x):
    """The array itself if it is one of NumPy's.  TypeError in PyTorch's words if it is on a device."""
    if type(x) in batches:
        x.tolist()  # says that it has no memory
    if type(x) in device_names:
        raise TypeError(
            f"can't convert {device_of(x)} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    return x


def chosen_by_number(condition, a, b):
    """``where`` for a single condition in host memory, of arrays that may be on a device."""
    for x in (a, b) if device_names else ():
        if type(x) in device_names:
            condition = moved(condition, device_of(x))
            return modules[type(x)].where(condition, a, b)
    return np.where(condition, a, b)


either.update(dict.fromkeys(number_types, chosen_by_number))


def violated(x, test):
    """Tell whether ``test(x)`` finds wrong values in an array; a GPU is asked only with CUDA_LAUNCH_BLOCKING=1."""
    kind = device_names.get(type(x))
    if kind is None:
        return bool(samples(test(x)).any())
    # the host would have to wait for a GPU; PyTorch's kernels look there, and a device-side assertion ends the program
    backend, recorder = backends[kind], running.recorder
    return backend.violated(x, test) if recorder is None else recorder.violated(backend, x, test)
