"""Products of matrices, and what is added to them."""

import numpy as np

from ..devices import one_device
from ..dispatch import tensor_cores, xp_of
from ..dtypes import accumulate_wider, differentiable
from ..size import cannot_expand


def product(x, y):
    """x @ y of arrays of one dtype; half precision is accumulated in float32, as PyTorch does."""
    if type(x) is type(y) is np.ndarray and x.ndim < 3 > y.ndim and x.itemsize > 2:
        return x.dot(y)  # begins in half the time of NumPy's matmul
    if x.shape[-1] == 1 and x.ndim == y.ndim > 1:  # nothing to add up: NumPy's product takes ten times as long
        return x * y
    wide = x.itemsize == 2 and accumulate_wider.get(x.dtype)
    try:
        if not wide or (type(x) in tensor_cores and x.ndim == y.ndim == 2):
            return x @ y
        return (x.astype(wide) @ y.astype(wide)).astype(x.dtype)
    except TypeError:
        one_device(x, y)
        raise


def product_plus(w, x, y, multiply=product, beta=1, alpha=1):
    """beta * w + alpha * multiply(x, y) of arrays; half precision is rounded once, at the end, as PyTorch does."""
    wide = x.itemsize == 2 and accumulate_wider.get(x.dtype)
    if not wide or type(x) in tensor_cores:
        return weighted_sum(w, multiply(x, y), beta, alpha)
    x, y, w, kind = x.astype(wide), y.astype(wide), w.astype(wide), x.dtype
    return weighted_sum(w, multiply(x, y), beta, alpha).astype(kind)


def weighted_sum(w, xy, beta=1, alpha=1):
    """beta * w + alpha * xy of arrays, in the shape of xy; for integers the factors lose their fractions.

    With beta = 0 nothing of w gets into it, not even nan.
    """
    if beta != 1 or alpha != 1:
        if xy.dtype not in differentiable:
            beta, alpha = int(beta), int(alpha)
        xy, w = (xy * alpha).astype(xy.dtype, copy=False), w * beta if beta else xp_of(w).zeros_like(w)
    try:
        xy += w  # a fresh array: no need for another
        return xy
    except ValueError:
        raise cannot_expand(w, xy.shape) from None
    except TypeError:
        one_device(xy, w)
        raise
