"""Softmax and its logarithm along an axis of an array, and what its derivative makes of a cotangent."""

import math

import numpy as np

from ..dispatch import any_size, one_step, xp_of
from ..dtypes import accumulate_wider
from ..threads import THREADED, is_large
from .blocks import in_rows
from .picking import within
from .sums import extreme_along, products_along, sums_along


def softmax(x, axis):
    """exp(x) / sum(exp(x))"""
    return in_rows(axis, softmax_of_rows, x)


def safe_softmax(x, axis):
    """The same, with zeros for a row that is -inf everywhere."""
    return in_rows(axis, safe_softmax_of_rows, x)


def log_softmax(x, axis):
    """(log(softmax(x)), the exponentials, their sums) or, of arrays that would cost more to keep than to compute, (it,).

    A capture keeps them all, so that it rounds as what it stands for.
    """
    if x.itemsize == 2 or (x.size >= THREADED and not any_size()):
        return (in_rows(axis, log_softmax_of_rows, x),)
    return log_softmax_parts(x, axis)


def in_wider(compute):
    """The same function, computed in float32 for half precision: its sums would overflow."""

    def wider(*arguments):
        *arrays, axis, _ = arguments
        dtype = arrays[-1].dtype
        if dtype.itemsize > 2:
            return compute(*arguments)
        return compute(*(a.astype(accumulate_wider[dtype]) for a in arrays), axis, None).astype(dtype)

    return wider


@in_wider
def softmax_of_rows(x, axis, into):
    out, sums = exponentials(x, axis, into=into)
    out /= sums
    return out


@in_wider
def safe_softmax_of_rows(x, axis, into):
    out, sums = exponentials(x, axis, into=into)
    out /= sums + (sums == 0)
    return out


@in_wider
def log_softmax_of_rows(x, axis, into):
    return log_softmax_arrays(x, axis, into)[0]


@one_step
def exponentials(x, axis, keep=None, into=None):
    """(exp(x), its sums along the axis), where that could overflow or vanish both divided by the largest exp(x).

    0 where not to ``keep``.  The sums tell: to look at them takes less time than to find the largest of many rows.
    """
    xp = xp_of(x)
    if type(x) is np.ndarray and x.size:
        out = xp.exp(x, out=into)
        if keep is not None:
            out *= keep.astype(out.dtype)
        sums = sums_along(out, axis)
        if within(sums, 1e-5, 1e20):
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


def softmax_vjp(g, out, axis):
    """(g - sum(g * out)) * out"""
    return in_rows(axis, softmax_vjp_of_rows, g, out)


def log_softmax_vjp(g, out, axis, exps=None, sums=None):
    """g - exp(out) * sum(g); by the exponentials and their sums where they are known."""
    if sums is None:
        return in_rows(axis, log_softmax_vjp_of_rows, g, out)
    return g - exps * (sums_along(g, axis) / sums)


@in_wider
def softmax_vjp_of_rows(g, out, axis, into):
    away = difference(g, products_along(g, out, axis), into)
    away *= out
    return away


@in_wider
def log_softmax_vjp_of_rows(g, out, axis, into):
    return difference(g, xp_of(out).exp(out) * sums_along(g, axis), into)
