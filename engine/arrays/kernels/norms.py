"""Groups of elements of an array brought to mean 0 and variance 1, and the derivatives of that.

``shapes``: of the weight; of the weight and of the input where they are multiplied; of the input where it is
normalized over ``axis``.  ``known``: what ``standardized`` found, None where it is to be computed anew.
"""

from functools import lru_cache
from math import prod

import numpy as np

from ..dispatch import batches, xp_of
from ..dtypes import accumulate_wider
from .sums import column, is_quick_to_sum, products_along, rows_added, sum_array, sums_along


def normalized(x, weight, bias, shapes, axis, eps):
    """(x normalized, times weight plus bias; what is known; the mean; the variance)"""
    _, thin, whole, split = shapes
    wide = x if x.itemsize > 2 else x.astype(accumulate_wider[x.dtype])
    known = away, rate, _, groups, mean, variance = standardized(shaped(wide, split), axis, eps)
    if whole is split:
        out = away * groups.scaled(rate, weight if weight is None else shaped(weight, thin))
    else:
        out = shaped(away * rate, whole)
        out = out if weight is None else out * shaped(weight, thin)
    if bias is not None:
        out += shaped(bias, thin)
    out = shaped(out, x.shape)
    if wide is not x:  # rounded it would not have mean 0 and variance 1
        known, out = None, out.astype(x.dtype)
    return out, known, mean, variance


def standardized(x, axis, eps):
    """(x - mean, 1 / standard deviation, 1 / variance, the groups, mean, variance); ``eps``: added to the variance."""
    groups = groups_of(x, axis)
    mean = groups.mean(x)
    away = x - mean
    variance = groups.mean(away, away)
    precision = 1.0 / (variance + eps)
    return away, xp_of(precision).sqrt(precision), precision, groups, mean, variance


class Groups:
    """The elements of an array of some shape that share all indices but those of some axes; the last may be one."""

    def __init__(self, shape, axis):
        *others, self.last = axis
        self.others, self.size = tuple(others), prod(shape[i] for i in axis)

    def mean(self, a, b=None):
        """That of a, or of a * b, in each group."""
        n = 1 if self.others else self.size
        sums = sums_along(a, self.last, n) if b is None else products_along(a, b, self.last, n)
        return sum_array(sums, self.others, True) / self.size if self.others else sums

    def scaled(self, rate, weight):
        """``rate``, a number for each group in axes of size 1, times the weight."""
        return rate if weight is None else rate * weight

    def weighed(self, a, rate, whole, thin):
        """a * rate in the shape ``whole``, added up along the axes in which the shape ``thin`` is broadcast to it."""
        if len(thin) == 1:
            return sum_array(a, (0,)) * shaped(rate, thin) if rate.shape == (1, *thin) else sum_array(a * rate, (0,))
        n, channels, _ = whole
        a = sums_along(shaped(a, whole), -1)
        a = shaped(a, (n, rate.shape[1], channels // rate.shape[1])) * rate
        return sum_array(shaped(a, (n, channels, 1)), (0,))


class Rows(Groups):
    """The rows of an array that is a matrix: what BLAS does in half the time."""

    def scaled(self, rate, weight):
        if weight is None:
            return rate
        return rate.dot(weight[None]) if type(rate) is type(weight) is np.ndarray else rate * weight

    def weighed(self, a, rate, whole, thin):
        return rows_added(rate[:, 0], a)


class SmallRows(Rows):
    """Those of a small matrix of NumPy."""

    def __init__(self, shape, dtype):
        super().__init__(shape, (-1,))
        self.shares = column(np, shape[1], dtype, 1.0 / shape[1])

    def mean(self, a, b=None):
        return (a if b is None else a * b).dot(self.shares)


small_rows = lru_cache(maxsize=64)(SmallRows)


def groups_of(x, axis):
    """The groups over axes of an array."""
    if axis != (-1,) or type(x) in batches:
        return Groups(x.shape, axis)
    return small_rows(x.shape, x.dtype) if is_quick_to_sum(x) else Rows(x.shape, axis)


def known_of(x, shapes, axis, eps):
    """Compute anew from x what ``standardized`` returns."""
    return standardized(shaped(x.astype(accumulate_wider.get(x.dtype, x.dtype)), shapes[-1]), axis, eps)


def input_vjp(g, x, weight, shapes, axis, eps, known):
    """The part of g (times the weight) that changes neither mean nor variance, over the standard deviation."""
    _, thin, whole, split = shapes
    away, rate, precision, groups, _, _ = known or known_of(x, shapes, axis, eps)
    g, weight = shaped(g, whole), weight if weight is None else shaped(weight, thin)
    u = g * groups.scaled(rate, weight) if whole is split else shaped(g if weight is None else g * weight, split) * rate
    if type(u) is not type(away):
        groups = groups_of(u, axis)
    along = away * (groups.mean(u, away) * precision)
    along += groups.mean(u)
    u -= along
    return shaped(u, x.shape) if known else shaped(u, x.shape).astype(x.dtype, copy=False)


def weight_vjp(g, x, weight, shapes, axis, eps, known):
    """g times what was normalized, added up where the weight was broadcast."""
    own, thin, whole, split = shapes
    away, rate, _, groups, _, _ = known or known_of(x, shapes, axis, eps)
    a = shaped(g, split) * away
    if type(a) is not type(away):
        groups = groups_of(a, axis)
    into = shaped(groups.weighed(a, rate, whole, thin), own)
    return into if known else into.astype(weight.dtype, copy=False)


def shaped(a, shape):
    """a in a shape."""
    return a if a.shape == shape else a.reshape(shape)
