"""Elements read and written at places along a dim, and the order of elements."""

import numpy as np

from ..devices import device_of, moved
from ..dispatch import batches, copied, device_names, either, picked, xp_of


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
