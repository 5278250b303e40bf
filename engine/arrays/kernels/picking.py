"""Elements picked out of arrays by their places, and put back into zeros."""

from functools import lru_cache
from math import prod

import numpy as np

from ..devices import one_device, violated
from ..dispatch import blank, device_names, picked, samples, xp_of
from .sums import row_starts


def within(x, low, high):
    """Whether all elements are between two numbers; in a third of the time that min() and max() take."""
    return low < x.item(x.argmin()) and x.item(x.argmax()) < high


ROWS = np.ndarray, np.integer  # a single number among them: by an index it would get a view of the array


def rows_at(x, i):
    """The rows of an array that the indices i point to."""
    return x.take(i, 0) if type(x) is np.ndarray and isinstance(i, ROWS) else picked(x, (i,))


def check_rows(x, i):
    """IndexError for indices that are none of the rows of x, RuntimeError for those on another device."""
    if device_names:
        one_device(x, i)  # CuPy would take indices from the host
    n = x.shape[0]
    if type(i) is np.ndarray:
        outside = i.size and not within(i, -1, n)
    else:
        outside = i.size and violated(i, lambda i: ((i < 0) | (i >= n)).any())
    if outside:
        raise IndexError("index out of range in self")


def are_classes(t, n):
    """Whether all elements of an array, not empty, are one of n classes; not known of an array on a device."""
    if type(t) is np.ndarray:
        return within(t, -1, n)
    return type(t) not in device_names and samples((t >= 0) & (t < n)).all()


def check_classes(t, good, ignored):
    """IndexError for a class in t which is neither good nor the one that is ignored."""
    bad = ~good & (t != ignored)
    if violated(bad, lambda bad: bad.any()):
        raise IndexError(f"Target {samples(t)[samples(bad)].reshape(-1)[0].item()} is out of bounds.")


def class_places(t, n):
    """Where in the flattened array (N, n, ...) the elements of the classes t (N, ...) are."""
    if t.ndim == 0:
        return t
    if type(t) is np.ndarray and t.ndim == 1:
        return row_starts(np, t.shape, n, False) + t
    xp, size = xp_of(t), prod(t.shape[1:])
    rows = xp.arange(t.shape[0]).reshape(-1, *(1,) * (t.ndim - 1))
    return rows * (n * size) + t.astype(rows.dtype) * size + xp.arange(size).reshape(t.shape[1:])


def elements_at(x, where):
    """The elements of the flattened array where it says."""
    return x.take(where) if type(x) is type(where) is np.ndarray else picked(x.reshape(-1), (where,))


def zeros_but(x, shape, where):
    """Zeros, with x where it says in the flattened array; no place comes twice."""
    out = blank(shape, x, where)
    out.reshape(-1)[where] = x
    return out


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


def placed_along(x, indices, shape, axis):
    """Zeros of a shape, with x where ``indices`` point along an axis."""
    out = blank(shape, x, indices)
    xp_of(out).put_along_axis(out, indices, x, axis)
    return out
