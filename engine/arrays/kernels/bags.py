"""Bags of indices: which of them belong together, and what is found at the rows that they point to."""

from ..dispatch import xp_of
from .picking import placed, rows_at


def bags_of(starts, n):
    """Of each of n indices the bag that it is in, from where the bags start."""
    return xp_of(starts).searchsorted(starts, xp_of(starts).arange(n), "right") - 1


def counts_at(places, kept, n):
    """How many of those that are kept have the same place, of n places, as each one has."""
    return rows_at(placed(kept, (n,), (places,)), places)


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
