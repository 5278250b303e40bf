"""Attention in one step: its result and its slopes, in blocks of matrices."""

import math

from ..batches import blank, copied
from ..dispatch import batches, xp_of
from ..running import one_step
from ..threads import BLOCK, in_blocks
from .products import product
from .softmax import exponentials
from .sums import sums_along


@one_step
def attended(q, k, v, mask, scale):
    """(the result, in memory as the queries are; the weights of the values)"""
    q, k, v, mask = as_samples(q, k, v, mask)
    shape = *q.shape[:3], k.shape[2]
    weights = blank(shape, q) if type(q) in batches else xp_of(q).empty(shape, q.dtype)
    return in_matrices(attention_of_block, (q, k, v, weights), mask, scale), weights


@one_step
def attended_slopes(q, k, v, g, out, weights, scale):
    """The cotangents of the queries, the keys and the values."""
    arrays = as_samples(q, k, v, g, out, weights)
    of_k, of_v = (copied(a) if type(a) in batches else xp_of(a).empty_like(a) for a in arrays[1:3])
    of_q = in_matrices(slopes_of_block, (*arrays, of_k, of_v), None, scale)
    return of_q, of_k, of_v


def as_samples(*arrays):
    """The same, as arrays of samples if one of them is: then all can be written into one another."""
    if not batches or not any(type(a) in batches for a in arrays):
        return arrays
    given = [a for a in arrays if a is not None]
    return [a if a is None else copied(a, *given) for a in arrays]


def held_in(held, value):
    """``value``, which was to be computed into the memory of ``held``, there; arrays of samples are computed apart."""
    if value is not held:
        held[...] = value
    return held


def in_matrices(compute, arrays, mask, scale):
    """``compute(*arrays, mask, scale, into)``, in blocks of matrices; it is their scores that count."""
    q, k = arrays[:2]
    block = BLOCK * q.shape[3] // max(k.shape[2], 1)
    if mask is not None and mask.ndim == 4 and mask.shape[0] != 1:  # not the same for all blocks
        block = math.inf
    return in_blocks(lambda *blocks, into=None: compute(*blocks, mask, scale, into), *arrays, row=3, block=block)


def attention_of_block(q, k, v, weights, mask, scale, into):
    """The result, in memory as the queries are; ``weights`` becomes the softmax of the scores, 0 where all are 0."""
    scores = product(q * scale, k.swapaxes(-1, -2))
    keep = mask if mask is not None and mask.dtype == bool else None
    found, sums = exponentials(scores if mask is keep else scores + mask, -1, keep, weights)
    weights = held_in(weights, found)
    sums += sums == 0
    weights /= sums
    return xp_of(q).matmul(weights, v, out=xp_of(q).empty_like(q) if into is None else into)


def slopes_of_block(q, k, v, g, out, weights, of_k, of_v, _mask, scale, into):
    """The cotangents of the queries; ``of_k`` and ``of_v`` become the others."""
    matmul = xp_of(q).matmul
    slope = product(g, v.swapaxes(-1, -2))
    slope -= sums_along(g * out, -1)
    slope *= weights
    held_in(of_k, matmul(slope.swapaxes(-1, -2), q * scale, out=of_k))
    held_in(of_v, matmul(weights.swapaxes(-1, -2), g, out=of_v))
    return matmul(slope, k * scale, out=xp_of(q).empty_like(q) if into is None else into)
