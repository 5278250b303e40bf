"""Softmax and its logarithm along an axis of an array, and what its derivative makes of a cotangent."""

import math

import numpy as np

from ..dispatch import xp_of
from ..dtypes import accumulate_wider
from ..running import any_size, one_step
from ..threads import THREADED, is_large
from .blocks import in_rows
from .indexing import within
from .sums import extreme_along, products_along, sums_along


def by_rows(compute):
    """``compute(*arrays, axis, into)`` in blocks of rows; half precision in float32, as its sums would overflow."""

    def wider(*arguments):
        *arrays, axis, _ = arguments
        dtype = arrays[-1].dtype
        return compute(*(a.astype(accumulate_wider[dtype]) for a in arrays), axis, None).astype(dtype)

    return lambda axis, *arrays: in_rows(axis, compute if arrays[-1].itemsize > 2 else wider, *arrays)


@by_rows
def softmax(x, axis, into):
    """exp(x) / sum(exp(x))"""
    out, sums = exponentials(x, axis, into=into)
    out /= sums
    return out


@by_rows
def safe_softmax(x, axis, into):
    """The same, with zeros for a row that is -inf everywhere."""
    out, sums = exponentials(x, axis, into=into)
    out /= sums + (sums == 0)
    return out


@by_rows
def log_softmax_alone(x, axis, into):
    return log_softmax_arrays(x, axis, into)[0]


def log_softmax(axis, x):
    """(log(softmax(x)), the exponentials, their sums), or only the first where to keep the others would cost more."""
    if x.itemsize == 2 or (x.size >= THREADED and not any_size()):  # a capture is to round as what it stands for
        return (log_softmax_alone(axis, x),)
    return log_softmax_parts(x, axis)


@one_step
def exponentials(x, axis, keep=None, into=None):
    """(exp(x), its sums along the axis), over the largest where sums overflow or vanish; 0 where not ``keep``."""
    xp = xp_of(x)
    if type(x) is np.ndarray and x.size:
        out = xp.exp(x, out=into)
        if keep is not None:
            out *= keep.astype(out.dtype)
        sums = sums_along(out, axis)
        if within(sums, 1e-5, 1e20):  # to look takes less time than to find the largest of many rows
            return out, sums
    x = x if keep is None else xp.where(keep, x, -math.inf)
    top = extreme_along("max", x, axis)[0] if x.size and x.ndim else x
    out = xp.exp(x - xp.where(top == -math.inf, 0, top), out=into)
    return out, sums_along(out, axis)


@one_step
def log_softmax_parts(x, axis):
    """(the result, the exponentials, their sums)"""
    return in_rows(axis, log_softmax_arrays, x) if is_large(x) else log_softmax_arrays(x, axis, None)


def log_softmax_arrays(x, axis, into):
    if not x.size:
        return x.copy(), x, x
    xp = xp_of(x)
    if type(x) is np.ndarray and x.dtype == np.float32:
        exps = xp.exp(x)
        sums = sums_along(exps, axis)
        if within(sums, 1e-3, 4e3):  # to subtract their logarithms rounds no worse than to subtract the largest of rows
            return difference(x, xp.log(sums), into), exps, sums
    out = difference(x, extreme_along("max", x, axis)[0] if x.ndim else x, into)
    exps = xp.exp(out)
    sums = sums_along(exps, axis)
    out -= xp.log(sums)
    return out, exps, sums


def difference(x, y, into):
    """x - y, for arrays perhaps in the memory of a third one."""
    return x - y if into is None else xp_of(x).subtract(x, y, out=into)


@by_rows
def softmax_vjp(g, out, axis, into):
    """(g - sum(g * out)) * out"""
    away = difference(g, products_along(g, out, axis), into)
    away *= out
    return away


@by_rows
def slope_of_log(g, out, axis, into):
    return difference(g, xp_of(out).exp(out) * sums_along(g, axis), into)


def log_softmax_vjp(axis, g, out, exps=None, sums=None):
    """g - exp(out) * sum(g); by the exponentials and their sums where they are known."""
    return slope_of_log(axis, g, out) if sums is None else g - exps * (sums_along(g, axis) / sums)
