"""What runs along an axis: each element combined with all before it."""

import numpy as np

from ..dispatch import one_step, xp_of
from .indexing import dim_key


def scanned(name, x, axis):
    """The first element along an axis, the first two, the first three, ... combined by an associative function.

    Of all array modules only NumPy has ``accumulate``; the others take log2(n) rounds, each over twice as many.
    """
    combine, far = getattr(xp_of(x), name), 1
    if type(x) is np.ndarray:
        return combine.accumulate(x, axis)
    while far < x.shape[axis]:
        later = combine(x[dim_key(axis, slice(None, -far))], x[dim_key(axis, slice(far, None))])
        x = xp_of(x).concatenate([x[dim_key(axis, slice(far))], later], axis)
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
