"""The memory of arrays: its owner, what shares it, and the order of elements in it."""

import ctypes
import os
import platform
import sys

import numpy as np

from .dispatch import batches, device_names, module_of, modules


def storage(x):
    """The array that owns the memory of x; views share it."""
    base = x.base
    return base if type(base) is type(x) else x


def address(x):
    """Return the address of the first element of an array."""
    return x.ctypes.data if type(x) is np.ndarray else x.data.ptr


def pointer(x):
    """``address(x)`` for a program; many samples have none, and say so."""
    return x.tolist() if type(x) in batches else address(x)


def part_of_copy(x, copies):
    """An array's part of a copy of its memory, which is made once for all that share it: ``copies`` has those."""
    if type(x) is not np.ndarray or not x.size:
        return x.copy()
    owner = storage(x)
    if id(owner) not in copies:
        copies[id(owner)] = owner.copy("K")
    return np.ndarray(x.shape, x.dtype, in_order(copies[id(owner)]), address(x) - address(owner), x.strides)


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
    """An array repeated without a copy along new leading dims and dims of size 1, with PyTorch's strides."""
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


def apart(x):
    """An array on the same memory that does not know it: its owner is another, so writes are counted apart."""
    if type(x) is not np.ndarray or not x.size:
        return modules[type(x)].apart(x) if type(x) in device_names and x.size else x
    owner = storage(x)
    again = type(owner.base) is memoryview
    twin = np.frombuffer(owner.base if again else memoryview(in_order(owner).reshape(-1).view(np.uint8)), np.uint8)
    return np.ndarray(x.shape, x.dtype, twin, address(x) - address(owner), x.strides)


def root(x):
    """Return the owner of the memory of an array, also of one that `apart` made."""
    owner = storage(x)
    if type(owner.base) is not memoryview:
        return owner
    lent = owner.base.obj
    return storage(lent) if type(lent) is np.ndarray else lent


def is_alone(x, like):
    """Tell whether a view laid out like another array is the only holder of its memory, which may be taken over."""
    return x.strides == like.strides and holders(x) == ALONE


def holders(view):
    """Return the number of references to the memory of a view."""
    base = view.base
    return sys.getrefcount(base) if base.size == view.size else 0


ALONE = holders(np.empty(1)[:])  # the view's own, and those of counting


def overwritten_array(x, value, add=False):
    """x with its memory overwritten, or added to; another one where x is a number (or a batch of them) without any."""
    if isinstance(x, np.generic):
        value = x + value if add else value
        if isinstance(value, x.dtype.type):
            return value
        return value.astype(x.dtype) if type(value) in batches else x.dtype.type(value)
    if type(x) in batches and modules[type(x)].is_number(x):
        return (x + value if add else value).astype(x.dtype)
    if add:
        x += value
    else:
        x[...] = value
    return x


def same_place(x, y):
    """Tell whether two arrays are the same elements in memory."""
    if x is y:
        return True
    if (x.base is None and y.base is None) or type(x) is not type(y) or x.dtype != y.dtype:
        return False
    return x.shape == y.shape and x.strides == y.strides and address(x) == address(y)


def overlaps_itself(x):
    """Tell whether elements of an array may share a place in memory."""
    end = 0
    for step, n in sorted((s, n) for s, n in zip(x.strides, x.shape) if n != 1):
        if step < end + x.itemsize:
            return x.size > 0
        end += step * (n - 1)
    return False


def overlaps(x, y, wholly=False):
    """Tell whether two dense arrays share part of their memory, or all of it with ``wholly``; False for others."""
    if x.base is None and y.base is None:
        return wholly and x is y and x.size > 0
    if root(x) is not root(y) or not x.size or not y.size:
        return False
    (a, b), (c, d) = byte_bounds(x), byte_bounds(y)
    if b - a != x.nbytes or d - c != y.nbytes or a >= d or c >= b or overlaps_itself(x) or overlaps_itself(y):
        return False
    return wholly or (a, b, element_strides(x)) != (c, d, element_strides(y))


def byte_bounds(x):
    """The places of the first byte of an array, and of that after the last one."""
    reach = [(n - 1) * s for n, s in zip(x.shape, x.strides)]
    start = address(x)
    return start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0) + x.itemsize


def keep_freed_memory():
    """Let glibc reuse the memory of large arrays: from 256x256 up, fresh pages would take longer than arithmetic."""
    if platform.libc_ver()[0] == "glibc" and os.environ.get("ENGINE_MALLOPT", "1") != "0":
        for threshold in (-3, -1):  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
            ctypes.CDLL(None).mallopt(threshold, 1 << 30)


keep_freed_memory()
