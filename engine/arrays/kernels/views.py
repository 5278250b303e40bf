"""Views and copies of plain arrays: dims of size 1, windows, diagonals, reversed order."""

from ..batches import blank
from ..dispatch import xp_of
from ..memory import address, element_strides, storage, strided, writable


def inserted(x, dim):
    shape = (*x.shape[:dim], 1, *x.shape[dim:])
    if x.flags.c_contiguous and 1 not in x.shape:
        return x.reshape(shape)
    strides = element_strides(x)  # NumPy would give other dims of size 1 new strides too
    new = x.shape[dim] * strides[dim] if dim < x.ndim else 1
    return strided(x, shape, (*strides[:dim], new, *strides[dim:]))


def without(x, dims):
    return x.squeeze(tuple(d for d in dims if d < x.ndim and x.shape[d] == 1))[...]


def at(dim, i):
    """The key of index or slice ``i`` in one dimension."""
    return (slice(None),) * dim + (i, Ellipsis)


def windows_of(x, dim, size, step):
    strides = element_strides(x)
    shape = (*x.shape[:dim], (x.shape[dim] - size) // step + 1, *x.shape[dim + 1 :], size)
    return strided(x, shape, (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim]))


def clone_array(x):
    """A copy with the order of strides of x, as PyTorch's ``preserve_format``."""
    return x.copy("C" if 0 in x.strides else "K")


def reverse(x, dims):
    return clone_array(x[tuple(slice(None, None, -1) if d in dims else slice(None) for d in range(x.ndim))])


def rotated(x, k, dims):
    """A copy turned k times; after an odd number PyTorch's lies in memory as the transposed one."""
    turned = xp_of(x).rot90(x, k, dims)
    return clone_array(turned) if k % 2 else turned.copy()


def on_diagonal(x, shape, *where):
    """Zeros, with x on the diagonals."""
    out = blank(shape, x)
    writable(out.diagonal(*where))[...] = x
    return out


def offset_in_storage(x):
    return (address(x) - address(storage(x))) // x.itemsize


def contiguous_array(x):
    """x itself if its elements lie in order, else a copy in which they do."""
    return x if x.flags.c_contiguous else x.copy()
