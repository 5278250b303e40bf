"""The linear operations that undo a broadcast, a reduction or a cast: every other family's rules are built on them."""

from functools import lru_cache
from math import gcd, prod

import numpy as np

from ..arrays import dtypes
from ..arrays.devices import device_of, moved
from ..arrays.dispatch import any_size, blank, device_names, picked, repeat_to, summed, writers
from ..arrays.dtypes import accumulate_wider
from ..arrays.kernels.views import clone_array
from .graph import node_class
from .record import array_of, record, view, xp_of
from .tensor import Tensor


def cast(a, to):
    """a with the NumPy dtype ``to``; a Python number, None or an array that has it already is returned as it is."""
    x = array_of(a)
    if x is None or type(x) in (bool, int, float) or x.dtype == to:
        return a
    new = x.astype(to)
    return record(ToCopy, new if 0 not in x.strides else in_order(new), (differentiable(a, to),), (x.dtype,))


def differentiable(a, dtype):
    """a; without its graph if it goes on as integers or bools, which have no gradient."""
    return a if dtype in dtypes.differentiable or not isinstance(a, Tensor) else Tensor(a.array)


ToCopy = node_class("ToCopyBackward0", lambda g, dtype: cast(g, dtype))


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


def add_up(x, axis=None, keepdims=False):
    """The sum of an array over axes, in its own dtype; half precision is accumulated in float32, as PyTorch does."""
    if axis == (0,) and is_quick_to_sum(x) and not keepdims and x.dtype.kind == "f":
        return ones(np, len(x), x.dtype).dot(x)
    wide = x.itemsize == 2 and accumulate_wider.get(x.dtype)
    if wide:
        return summed[type(x)](x, axis, wide, None, keepdims).astype(x.dtype)
    if axis == (0,) and x.ndim == 2 and not keepdims and x.dtype.kind == "f" and x.size:  # BLAS is quicker
        rows, n = x.shape
        m = rows_at_once(rows, n) if x.flags.c_contiguous else rows
        weights = ones(xp_of(x), m, x.dtype)
        return weights @ x if m == rows else (weights @ x.reshape(-1, m, n)).sum(0)
    return summed[type(x)](x, axis, None, None, keepdims)


def rows_added(weights, x):
    """weights @ x: the rows of a matrix, each times its weight, added up."""
    if is_quick_to_sum(x):
        return weights.dot(x)
    rows, n = x.shape
    m = rows_at_once(rows, n)
    return weights @ x if m == rows else (weights.reshape(-1, 1, m) @ x.reshape(-1, m, n)).sum((0, 1))


@lru_cache(maxsize=32)
def ones(xp, n, dtype):
    """A vector of n ones: a product with it is a sum."""
    return xp.full(n, 1, dtype)


@lru_cache(maxsize=32)
def column(xp, n, dtype, value=1.0):
    """A column of n equal numbers: a product with it is a sum, or a mean."""
    return xp.full((n, 1), value, dtype)


AT_ONCE = 8192  # elements: a larger product OpenBLAS shares out among threads


def rows_at_once(rows, n):
    """How many rows of n elements to multiply by a column at once.

    To share it out among threads gains nothing, and costs much where cores are busy.
    """
    if rows * n <= AT_ONCE or any_size():
        return rows
    m = gcd(rows, 1 << (AT_ONCE // n).bit_length() - 1) if n <= AT_ONCE else 1
    return m if m * n >= AT_ONCE // 4 else rows  # or the calls would take longer than what they compute


def total(a, axis=None, keepdims=False):
    """The sum over axes (None: all), as the rules need it; ``sum`` in ``reduce.py`` is the public one."""
    if not isinstance(a, Tensor):
        return add_up(a, axis, keepdims)
    x = a.array
    return record(Total, add_up(x, axis, keepdims), (a,), (x.shape, axis, keepdims))


Total = node_class("SumBackward1", lambda g, shape, axis, keepdims: spread(g, shape, axis, keepdims))


def sums_along(a, axis, divisor=1):
    """The sum along one axis, which stays, over a number; of short rows by BLAS, in a third of the time."""
    if is_quick_to_sum(a) and axis in (1, -1):
        return a.dot(column(np, a.shape[1], a.dtype, 1.0 / divisor))
    if type(a) in writers:
        return writers[type(a)]("sums_along", sums_along, a, axis, divisor)
    if isinstance(a, Tensor) or axis not in (-1, a.ndim - 1) or not 0 < a.shape[-1] <= 1024 or a.itemsize == 2:
        sums = total(a, axis, True)
        return sums if divisor == 1 else sums / divisor
    n = a.shape[-1]
    shares, m = column(xp_of(a), n, a.dtype, 1.0 / divisor), rows_at_once(a.size // n, n)
    if a.ndim == 2 and m == len(a):
        return a @ shares
    return (a.reshape(-1, m or 1, n) @ shares).reshape(*a.shape[:-1], 1)


def is_quick_to_sum(a):
    """Whether to multiply an array by a column with ``dot``, which begins in half the time of ``matmul``."""
    return type(a) is np.ndarray and a.ndim == 2 and 0 < a.size <= AT_ONCE and a.itemsize > 2 and a.shape[1] <= 1024


def products_along(a, b, axis, divisor=1):
    """``sums_along(a * b, axis, divisor)``, in one pass unless the arrays are small, or their rows short or long."""
    if type(a) in writers:
        return writers[type(a)]("products_along", products_along, a, b, axis, divisor)
    n = a.shape[-1] if type(a) is np.ndarray and a.size > AT_ONCE and axis in (-1, a.ndim - 1) else 0
    if not 32 <= n <= 1024 or a.itemsize == 2:
        return sums_along(a * b, axis, divisor)
    sums = np.vecdot(a, b)[..., None]
    return sums if divisor == 1 else sums / divisor


def extreme_along(name, x, axis, keepdims=True):
    """(the ``max`` or ``min`` of an array along an axis, their places): in rows NumPy finds places in half the time."""
    if type(x) in writers:
        return writers[type(x)]("extreme_along", extreme_along, name, x, axis, keepdims)
    at = getattr(x, "arg" + name)(axis, keepdims=keepdims)
    if type(x) is not np.ndarray or axis not in (-1, x.ndim - 1):
        return getattr(x, name)(axis, keepdims=keepdims), at
    return x.take(at + row_starts(xp_of(x), x.shape[:-1], x.shape[-1], keepdims)), at


@lru_cache(maxsize=16)
def row_starts(xp, shape, n, keepdims):
    """Where in the flattened array the rows of n elements begin."""
    return (xp.arange(0, prod(shape) * n, n) if n else xp.zeros(prod(shape), int)).reshape(
        (*shape, 1) if keepdims else shape
    )


def spread(a, shape, axis=None, keepdims=True):
    """Undo a sum: put back the summed axes and repeat along them."""
    x = array_of(a)
    if axis is not None and not keepdims:
        x = xp_of(x).expand_dims(x, axis)
    return record(Spread, repeat_to.call(x, shape), (a,), (axis, keepdims, array_of(a).shape))


Spread = node_class("ExpandBackward0",
                    lambda g, axis, keepdims, shape: sum_to(g, shape) if axis is None or keepdims
                    else total(g, axis))  # fmt: skip


def sum_to(a, shape):
    """Sum over the axes along which ``shape`` was broadcast to the shape of a."""
    have = a.shape
    if have == shape:
        return a
    lead = len(have) - len(shape)
    if have[lead:] == shape:
        return total(a, (0,) if lead == 1 else tuple(range(lead)))
    axes = tuple(range(lead)) + tuple(i for i, n in enumerate(shape, lead) if n == 1 and have[i] != 1)
    return reshape(total(a, axes, True), shape) if axes else reshape(a, shape)


def common_shape(a, b):
    """The shape that two shapes broadcast to.  RuntimeError in PyTorch's words where there is none."""
    if a == b:
        return a
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for d in reversed(range(n)):
        if a[d] != b[d] and 1 not in (a[d], b[d]):
            raise RuntimeError(
                f"The size of tensor a ({a[d]}) must match the size of tensor b ({b[d]}) at non-singleton dimension {d}"
            )
    return tuple(q if p == 1 else p for p, q in zip(a, b))


def reshape_array(x, shape):
    if -1 in shape:
        shape = infer(shape, x.size)
    elif prod(shape) != x.size or (shape and min(shape) < 0):
        negative(shape)
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {x.size}")
    return x.reshape(shape)


def negative(shape):
    """RuntimeError for a size below -1."""
    for i, n in enumerate(shape):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(shape)}")


def infer(shape, size):
    """Replace the -1 in a shape.  RuntimeError in PyTorch's words if there are two, or if the size does not fit."""
    shape = tuple(shape)
    negative(shape)
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = prod(n for n in shape if n != -1)
    if known == 0 and size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if known == 0 or size % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return tuple(size // known if n == -1 else n for n in shape)


def in_order(x):
    """x itself if its elements lie in order, else a copy in which they do."""
    return x if x.flags.c_contiguous else x.copy()


def contiguous(input, memory_format=None):
    """The tensor itself if its elements lie in order, else a copy in which they do."""
    x = array_of(input)
    return input if x.flags.c_contiguous else record(Clone, x.copy(), (input,))


def clone(input, *, memory_format=None):
    """A copy, in the graph."""
    return record(Clone, clone_array(array_of(input)), (input,))


Clone = node_class("CloneBackward0", lambda g: g)
Clone.diagonal = True
UnsafeView = node_class("UnsafeViewBackward0", lambda g, shape, _: reshape(g, shape))
UnsafeView.linear = staticmethod(lambda _, t, have, shape: reshape(t, shape))


def clone_and_view(parents, saved):
    """The nodes of a reshape that has to copy."""
    return UnsafeView((Clone(parents, ()),), saved)


reshape = view("reshape", reshape_array, lambda g, shape, _: reshape(g, shape), "ViewBackward0", clone_and_view)
transpose = view(
    "transpose", lambda x, i, j: x.swapaxes(i, j) if x.ndim else x[...], lambda g, shape, i, j: transpose(g, i, j)
)

# ---- part of an array, and an array of zeros but for that part


def places(xp, shape):
    """Where in the flattened array of a shape each element is."""
    return small_places(xp, shape) if prod(shape) <= 1 << 16 else xp.arange(prod(shape)).reshape(shape)


@lru_cache(maxsize=16)
def small_places(xp, shape):
    return xp.arange(prod(shape)).reshape(shape)


def placed(x, shape, key):
    """Zeros of a shape, with x added at ``key``: what an array gets from those of its elements that ``key`` picks."""
    out = blank(shape, x, *key)
    if any(hasattr(k, "dtype") and k.dtype.kind != "b" for k in key):  # an element may be picked twice
        flat = out.reshape(-1)
        positions = key[0] if len(key) == out.ndim == 1 else picked(places(xp_of(x), shape), key)
        x = x if x.shape == positions.shape else xp_of(x).broadcast_to(x, positions.shape)
        xp_of(x).add.at(flat, positions.reshape(-1), x.reshape(-1))
    else:
        out[key] = x
    return out


pick = view("pick", picked, lambda g, shape, key: place(g, shape, key), "IndexBackward0")
place = view("place", placed, lambda g, _, shape, key: pick(g, key), "IndexPutBackward0")
