"""Tensors on their way from one device to another: the cotangent takes the way back."""

from ..arrays.devices import device_of, moved
from ..arrays.dispatch import device_names
from ..core.graph import node_class
from ..core.linear import differentiable
from ..core.record import array_of, record
from ..core.tensor import Tensor


def transfer(a, where, dtype=None, non_blocking=False):
    """a on a device, and in a dtype: itself if it is so, else a copy; its cotangent takes the way back."""
    x = array_of(a)
    new = moved(x if dtype is None or x.dtype == dtype else x.astype(dtype), where, non_blocking)
    return a if new is x else record(Transfer, new, (differentiable(a, new.dtype),), (device_of(x), x.dtype))


Transfer = node_class("ToCopyBackward0", lambda g, device, dtype: transfer(g, device, dtype))


def number_for(x, a):
    """a, but a Tensor without dimensions in the memory in which the array x is: as PyTorch takes numbers from there."""
    if not device_names or not isinstance(a, Tensor) or a.array.ndim:
        return a
    return a if device_names.get(type(x)) == device_names.get(type(a.array)) else transfer(a, device_of(x))
