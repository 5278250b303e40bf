"""Formulas: what the engine's kernels compute, step by step, where the steps become loops.

A kernel chooses its way by the values that it meets, so a capture writes it down as one step.  A loop needs none of its
ways: it is written down as its formula, whose steps join with their neighbours.
"""

import math

import numpy as np

from ..arrays.dispatch import modules
from ..arrays.kernels.products import product


def sum_of(x):
    return x.sum(-1, None, None, keepdims=True)


def exponentials(x, keep=None):
    """exp(x) over the largest of its row; 0 where not ``keep``."""
    xp = modules[type(x)]
    if keep is not None:
        x = xp.where(keep, x, -math.inf)
    top = x.max(-1, None, keepdims=True)
    if keep is not None:  # there may be a row of which nothing is kept
        top = xp.where(top == -math.inf, 0.0, top)
    return xp.exp(x - top)


def softmax(x):
    out = exponentials(x)
    return out / sum_of(out)


def softmax_vjp(g, out):
    return (g - sum_of(g * out)) * out


def log_softmax_alone(x):
    return log_softmax(x)[0]


def log_softmax(x):
    """(the result, the exponentials, their sums)"""
    xp = modules[type(x)]
    away = x - x.max(-1, None, keepdims=True)
    exps = xp.exp(away)
    sums = sum_of(exps)
    return away - xp.log(sums), exps, sums


def slope_of_log(g, out):
    return g - modules[type(out)].exp(out) * sum_of(g)


IN_ROWS = {f.__name__: f for f in (softmax, softmax_vjp, log_softmax_alone, slope_of_log)}


def in_rows(axis, compute, *arrays):
    formula = IN_ROWS.get(compute.__name__)
    if formula is None or not all(along_last(a, axis) for a in arrays):
        return None
    return formula(*arrays)


def log_softmax_parts(x, axis):
    return log_softmax(x) if along_last(x, axis) else None


def along_last(x, axis):
    """Return whether an axis is the last of an array of floats that loops take."""
    return x.ndim and axis in (-1, x.ndim - 1) and x.size and x.dtype in (np.float32, np.float64)


def attended(q, k, v, mask, scale):
    """(the result, in memory as the queries are; the weights of the values)"""
    if q.dtype not in (np.float32, np.float64) or not q.size or not k.size:
        return None
    xp = modules[type(q)]
    scores = product(q, k.swapaxes(-1, -2)) * scale
    keep = mask if mask is not None and mask.dtype == bool else None
    weights = exponentials(scores if mask is keep else scores + mask, keep)
    sums = sum_of(weights)
    weights = weights / (sums if keep is None and mask is None else xp.where(sums == 0.0, 1.0, sums))
    return xp.matmul(weights, v, out=xp.empty_like(q)), weights


def attended_slopes(q, k, v, g, out, weights, scale):
    """The cotangents of the queries, the keys and the values."""
    if q.dtype not in (np.float32, np.float64) or not q.size or not k.size:
        return None
    matmul = modules[type(q)].matmul
    slope = product(g, v.swapaxes(-1, -2))
    slope = (slope - sum_of(slope * weights)) * (weights * scale)
    return matmul(slope, k), matmul(slope.swapaxes(-1, -2), q), matmul(weights.swapaxes(-1, -2), g)


FORMULAS = {f.__name__: f for f in (in_rows, log_softmax_parts, attended, attended_slopes)}
