"""Pooling on plain arrays: the taps of each window, its maximum and where that is, its sum."""

from functools import lru_cache
from math import prod

import numpy as np

from ..dispatch import xp_of
from ..dtypes import accumulate_wider
from ..running import known_to_loops, one_step
from .conv import add_windows, small_windows, windows


def taps_of(x, window, fill=0):
    """The windows of (..., H, W) as (positions in the kernel, planes, places)."""
    shape = window.taps, prod(x.shape[:-2]), window.places
    small = small_windows(x, window, False, shape, fill)
    return windows(x, window, 0, fill).reshape(shape) if small is None else small


@lru_cache(maxsize=64)
def tap_ranks(xp, window):
    """The ranks (see ``ranked``) of the elements under the kernel, 0 where it reaches out, but for the first one's."""
    moves = zip(window.sizes, window.counts, window.stride, window.padding, window.kernel, window.dilation)
    lines = [(np.arange(c) * s - p + np.arange(k)[:, None] * d, n, d) for n, c, s, p, k, d in moves]
    (y, height, _), (x, width, _) = lines
    rank = ranked(y, x, window.sizes) * crossed((y >= 0) & (y < height), (x >= 0) & (x < width))
    # where it reaches out, the first one's is that of the first element inside
    rank[0] = ranked(*(np.where(line[:1] < 0, line[:1] % d, line[:1]) for line, _, d in lines), window.sizes)[0]
    return xp.asarray(rank)


def crossed(rows, columns):
    """The products of what is at rows (kH, oH) and at columns (kW, oW): (positions in the kernel, 1, places)."""
    out = rows[:, None, :, None] * columns[None, :, None, :]
    return out.reshape(out.shape[0] * out.shape[1], 1, out.shape[2] * out.shape[3])


def ranked(rows, columns, sizes):
    """Return the distance from the end of the flattened plane of the elements at rows and columns, see ``crossed``."""
    height, width = sizes
    rank = crossed((height - rows) * width, np.ones_like(columns)) - crossed(np.ones_like(rows), columns)
    return rank.astype(np.int32)


@one_step
def largest(taps, ranks, size):
    """(the maximum of the taps, where in the plane of some size it is), of arrays."""
    best = taps.max(0)
    index = size - ((taps == best) * ranks).max(0)  # the first one has the highest rank
    if may_hold_nan(best):
        index = xp_of(taps).where(best == best, index, ((taps != taps) * (size - ranks)).max(0))
    return best, index


@known_to_loops
def largest_under(x, window, fill):
    """(the maximum under the kernel at each place (..., *counts), where in its plane it is)."""
    best, index = largest(taps_of(x, window, fill), tap_ranks(xp_of(x), window), prod(window.sizes))
    shape = *x.shape[:-2], *window.counts
    return best.reshape(shape), index.reshape(shape)


@known_to_loops
def maximum_under(x, window, fill):
    """The maximum under the kernel alone."""
    return taps_of(x, window, fill).max(0).reshape(*x.shape[:-2], *window.counts)


def may_hold_nan(x):
    """Tell whether an element may be nan; True for an array outside of host memory."""
    if x.dtype.kind in "iu":
        return False
    if type(x) is not np.ndarray or x.itemsize == 2:
        return True
    size = np.vdot(x, x)
    return size != size


def window_sums(x, weights, window):
    sums = taps_of(x, window).sum(0, accumulate_wider.get(x.dtype, x.dtype)).reshape(*x.shape[:-2], *window.counts)
    return (sums * weights).astype(x.dtype, copy=False)


def window_spread(g, weights, window):
    """The transpose: each element is the sum of the weighted g of the windows in which it is."""
    parts = g.astype(accumulate_wider.get(g.dtype, g.dtype), copy=False) * weights
    parts = xp_of(g).broadcast_to(parts, (*window.kernel, *g.shape))
    return add_windows(parts, window, 0).astype(g.dtype)


@lru_cache(maxsize=64)
def mean_weights(xp, window, with_padding, dtype):
    """1 / (the number of elements under the kernel) at each place, or once if it is the same everywhere."""
    counts = []  # computed on the host: only the result goes to a device
    for n, c, k, s, p in zip(window.sizes, window.counts, window.kernel, window.stride, window.padding):
        start = np.arange(c) * s - p
        low, high = (-p, n + p) if with_padding else (0, n)
        counts.append(np.clip(start + k, low, high) - np.clip(start, low, high))
    if all((c == c[0]).all() for c in counts):
        return 1.0 / prod(int(c[0]) for c in counts)
    return xp.asarray((1.0 / (counts[0][:, None] * counts[1])).astype(accumulate_wider.get(dtype, dtype)))


@lru_cache(maxsize=64)
def adaptive_key(xp, sizes, counts):
    """(the key that picks the windows (..., kH, kW, oH, oW), the share of each of their elements in the mean)."""
    lines, share = adaptive_lines(sizes, counts)
    (y, x), (a, b) = [(rows[:, None, :, None], columns[None, :, None, :]) for rows, columns in (lines, share)]
    return (..., xp.asarray(y), xp.asarray(x)), xp.asarray(a * b)


@lru_cache(maxsize=64)
def adaptive_ranks(xp, sizes, counts):
    return xp.asarray(ranked(*adaptive_lines(sizes, counts)[0], sizes))


def adaptive_lines(sizes, counts):
    """(the rows (kH, oH) and the columns (kW, oW) of the windows, the shares of both)."""
    lines, share = [], []  # filled up to the size of the largest with the last element, which has no share then
    for size, count in zip(sizes, counts):
        i = np.arange(count)
        start, end = i * size // max(count, 1), -((i + 1) * -size // max(count, 1))
        within = np.arange(int((end - start).max()) if count else 1).reshape(-1, 1)
        lines.append(np.minimum(start + within, end - 1))
        share.append((within < end - start) / (end - start))
    return lines, share
