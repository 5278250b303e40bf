"""Sums of arrays over axes, and extremes along one: by BLAS where it is quicker; and what runs along an axis."""

from functools import lru_cache
from math import gcd, prod

import numpy as np

from ..dispatch import xp_of
from ..dtypes import accumulate_wider
from ..running import any_size, one_step, writers
from ..selection import np_sum
from . import views


def sum_array(x, axis=None, keepdims=False):
    """The sum of an array over axes, in its own dtype; half precision is accumulated in float32, as PyTorch does."""
    if axis == (0,) and is_quick_to_sum(x) and not keepdims and x.dtype.kind == "f":
        return ones(np, len(x), x.dtype).dot(x)
    wide = x.itemsize == 2 and accumulate_wider.get(x.dtype)
    if wide:
        return np_sum[type(x)](x, axis, wide, None, keepdims).astype(x.dtype)
    if axis == (0,) and x.ndim == 2 and not keepdims and x.dtype.kind == "f" and x.size:  # BLAS is quicker
        rows, n = x.shape
        m = rows_at_once(rows, n) if x.flags.c_contiguous else rows
        weights = ones(xp_of(x), m, x.dtype)
        return weights @ x if m == rows else (weights @ x.reshape(-1, m, n)).sum(0)
    return np_sum[type(x)](x, axis, None, None, keepdims)


def mean_array(x, axis=None, keepdims=False):
    """The mean of an array over axes; half precision is added up and divided in float32, as PyTorch does."""
    wide = x.itemsize == 2 and accumulate_wider.get(x.dtype)
    n = x.size if axis is None else prod(map(x.shape.__getitem__, axis))
    mean = np_sum[type(x)](x, axis, wide or None, None, keepdims) / n
    return mean.astype(x.dtype) if wide else mean


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
    """Return how many rows of n elements to multiply at once: BLAS's threads cost much on busy cores."""
    if rows * n <= AT_ONCE or any_size():
        return rows
    m = gcd(rows, 1 << (AT_ONCE // n).bit_length() - 1) if n <= AT_ONCE else 1
    return m if m * n >= AT_ONCE // 4 else rows  # or the calls would take longer than what they compute


def sums_along(a, axis, divisor=1):
    """The sum along one axis, which stays, over a number; of short rows by BLAS, in a third of the time."""
    if is_quick_to_sum(a) and axis in (1, -1):
        return a.dot(column(np, a.shape[1], a.dtype, 1.0 / divisor))
    if type(a) in writers:
        return writers[type(a)]("sums_along", sums_along, a, axis, divisor)
    if axis not in (-1, a.ndim - 1) or not 0 < a.shape[-1] <= 1024 or a.itemsize == 2:
        sums = sum_array(a, axis, True)
        return sums if divisor == 1 else sums / divisor
    n = a.shape[-1]
    shares, m = column(xp_of(a), n, a.dtype, 1.0 / divisor), rows_at_once(a.size // n, n)
    if a.ndim == 2 and m == len(a):
        return a @ shares
    return (a.reshape(-1, m or 1, n) @ shares).reshape(*a.shape[:-1], 1)


def is_quick_to_sum(a):
    """Tell whether to multiply an array by a column with ``dot``, which starts in half the time of ``matmul``."""
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
    """Return the positions in the flattened array at which the rows of n elements begin."""
    starts = xp.arange(0, prod(shape) * n, n) if n else xp.zeros(prod(shape), int)
    return starts.reshape((*shape, 1) if keepdims else shape)


# ---- each element combined with all before it


def scanned(name, x, axis):
    """The first element along an axis, the first two, the first three, ... combined by an associative function."""
    combine, far = getattr(xp_of(x), name), 1
    if type(x) is np.ndarray:
        return combine.accumulate(x, axis)
    while far < x.shape[axis]:  # other modules have no ``accumulate``: log2(n) rounds, each over twice as many
        later = combine(x[views.at(axis, slice(None, -far))], x[views.at(axis, slice(far, None))])
        x = xp_of(x).concatenate([x[views.at(axis, slice(far))], later], axis)
        far *= 2
    return x


@one_step
def log_of_running_sum(x, axis, wide):
    """log(cumsum(exp(x))) along an axis, without overflow, in a wider dtype."""
    return scanned("logaddexp", x.astype(wide), axis).astype(x.dtype)


@one_step
def running_extreme(x, name, axis):
    """(the ``maximum`` or ``minimum`` of each element and all before it, its place): the last one of equals, or nan."""
    out, xp = scanned(name, x, axis), xp_of(x)
    places = xp.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    return out, scanned("maximum", xp.where((x == out) | (x != x), places, 0), axis)
