"""Elements picked out of arrays by their places, along a dim or where a mask holds, and put back; their order."""

from functools import lru_cache
from math import prod

import numpy as np

from ..batches import blank, copied, picked, samples
from ..devices import device_of, moved, one_device, violated
from ..dispatch import batches, device_names, xp_of
from ..running import known_to_loops, writers
from ..selection import either, words
from .sums import row_starts


def index_beside(x, i):
    """An index array on the device of x; RuntimeError in PyTorch's words if it is on another device."""
    if type(i) is type(x) or type(i) in batches:
        return i
    if type(i) in device_names:
        raise RuntimeError(
            f"indices should be either on cpu or on the same device as the indexed tensor ({device_of(x)})"
        )
    return moved(np.asarray(i), device_of(x))


def dim_key(dim, i):
    """The key of an index, a slice or an index array in one dim."""
    return (slice(None),) * dim + (i,)


def taken(x, i, dim):
    """The places of a dim that an index vector names."""
    return picked(x, dim_key(dim, i)) if type(i) in batches else x.take(i, dim)


def key_along(index, dim):
    """The key that reads or writes at ``index`` along a dim, and at each element's own place in the others."""
    n = index.ndim
    return tuple(
        index if d == dim else xp_of(index).arange(size).reshape((1,) * d + (size,) + (1,) * (n - d - 1))
        for d, size in enumerate(index.shape)
    )


def gathered(x, dim, i):
    """``gather`` of arrays; a 0-d array counts as one of a single place."""
    if not i.size:
        return xp_of(x).zeros(i.shape, x.dtype)
    return picked(x.reshape(x.shape or (1,)), key_along(i.reshape(i.shape or (1,)), dim)).reshape(i.shape)


def scattered(x, dim, i, v, reduce=None):
    """``scatter`` of arrays; a 0-d array counts as one of a single place."""
    out = copied(x.reshape(x.shape or (1,)), i, v)
    if i.size:
        key = key_along(i.reshape(i.shape or (1,)), dim)
        if reduce is None:
            out[key] = v
        else:
            getattr(xp_of(x), reduce).at(out, key, v)
    return out.reshape(x.shape)


def cleared(x, key):
    """An array with zeros at ``key``."""
    if len(key) == 1 and key[0].dtype == bool and key[0].shape == x.shape:
        return either.call(key[0], x.dtype.type(0), x)
    out = copied(x, *key) if x.ndim else xp_of(x).array(x)  # of a scalar, a 0-d array
    out[key] = 0
    return out


def kept(x, mask):
    """``x`` where ``mask`` holds, else 0, where there was an infinity or nan too: its bits, multiplied by 1 or 0."""
    if type(x) is type(mask) is np.ndarray:
        bits = mask.astype(words[x.itemsize])
        bits *= x.view(bits.dtype)
        return bits.view(x.dtype)
    if type(mask) is np.bool_ and isinstance(x, np.generic):
        return x if mask else x.dtype.type(0)
    write = writers.get(type(x))
    return either.call(mask, x, 0.0) if write is None else write("kept", kept, x, mask)


def corner(x, shape):
    """The part of an array that an index tensor of a smaller shape covers."""
    return x[tuple(slice(n) for n in shape)] if shape else x


def order_along(x, dim, descending):
    """The stable order of an array along a dim."""
    if not x.ndim:
        return xp_of(x).zeros((), np.int64)
    backwards = (slice(None),) * dim + (slice(None, None, -1),)
    i = (x[backwards] if descending else x).argsort(dim, kind="stable")
    return x.shape[dim] - 1 - i[backwards] if descending else i


# ---- rows, classes and places in the flattened array


def within(x, low, high):
    """Tell whether all elements lie between two numbers, in a third of the time that min() and max() take."""
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
    """Tell whether all elements of an array, not empty, are classes below n; False for an array on a device."""
    if type(t) is np.ndarray:
        return within(t, -1, n)
    return type(t) not in device_names and samples((t >= 0) & (t < n)).all()


def check_classes(t, good, ignored):
    """IndexError for a class in t which is neither good nor the one that is ignored."""
    bad = ~good & (t != ignored)
    if violated(bad, lambda bad: bad.any()):
        raise IndexError(f"Target {samples(t)[samples(bad)].reshape(-1)[0].item()} is out of bounds.")


def class_places(t, n):
    """Return the positions in the flattened array (N, n, ...) of the elements of the classes t (N, ...)."""
    if t.ndim == 0:
        return t
    if type(t) is np.ndarray and t.ndim == 1:
        return row_starts(np, t.shape, n, False) + t
    xp, size = xp_of(t), prod(t.shape[1:])
    rows = xp.arange(t.shape[0]).reshape(-1, *(1,) * (t.ndim - 1))
    return rows * (n * size) + t.astype(rows.dtype) * size + xp.arange(size).reshape(t.shape[1:])


@known_to_loops
def elements_at(x, where):
    """The elements of the flattened array where it says."""
    return x.take(where) if type(x) is type(where) is np.ndarray else picked(x.reshape(-1), (where,))


@known_to_loops
def zeros_but(x, shape, where):
    """Zeros, with x where it says in the flattened array; no place comes twice."""
    out = blank(shape, x, where)
    out.reshape(-1)[where] = x
    return out


def places(xp, shape):
    """Return the position of each element in the flattened array of a shape."""
    return small_places(xp, shape) if prod(shape) <= 1 << 16 else xp.arange(prod(shape)).reshape(shape)


@lru_cache(maxsize=16)
def small_places(xp, shape):
    return xp.arange(prod(shape)).reshape(shape)


@known_to_loops
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


# ---- bags of indices


def counts_at(places, kept, n):
    """Count, for each place of n, how many of those that are kept share it; 1 where none does."""
    return rows_at(xp_of(kept).maximum(placed(kept, (n,), (places,)), 1), places)


def largest_rows(x, i, kept, starts):
    """(the extreme of each column among the rows of each bag, which rows these are, whether the bag has any)."""
    xp, d = xp_of(x), x.shape[1]
    ends = xp.concatenate([starts[1:], xp.full((1,), len(i), starts.dtype)])
    longest = int((ends - starts).max()) if len(starts) and len(i) else 0
    if not longest:
        nothing = xp.zeros((len(starts), d), x.dtype)
        return nothing, nothing.astype(starts.dtype), nothing != 0
    places = starts.reshape(-1, 1) + xp.arange(longest)
    there = places < ends.reshape(-1, 1)
    places = xp.where(there, places, 0)
    rows, there = rows_at(i, places), there & rows_at(kept, places)
    values = xp.where(there.reshape((*there.shape, 1)), rows_at(x, rows), -xp.inf).astype(x.dtype)
    at, some = values.argmax(1, keepdims=True), there.any(1, keepdims=True)
    out = xp.where(some, xp.take_along_axis(values, at, 1).squeeze(1), 0).astype(x.dtype)
    return out, xp.take_along_axis(rows.reshape((*rows.shape, 1)), at, 1).squeeze(1), some
