"""Checks of dropout's arguments."""

from ...arrays import dtypes
from ...arrays.warn import warn
from .. import messages as m
from ..require import require


def probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(m.DROPOUT_PROBABILITY.format(p))


def dropout(input, p, training):
    probability(p)
    x = input.array
    if x.dtype.kind != "f" and p and training and x.size:
        require(dtypes.of[x.dtype].is_floating_point, m.CANNOT_CAST, "Float", x.dtype)


def feature_dropout(input, p, train):
    probability(p)
    require(not p or not train or not input.array.size or input.ndim >= 2, m.FEATURE_DROPOUT_DIMS)


def dropout1d(input, p):
    probability(p)
    require(input.ndim in (2, 3), m.DROPOUT1D_DIMS, input.ndim)


def dropout2d(input, p, training):
    spatial("dropout2d", input, p, 2)
    if input.ndim == 3:
        warn(m.DROPOUT2D_OF_3D)
    feature_dropout(input, p, training)


def dropout3d(input, p, training):
    spatial("dropout3d", input, p, 3)
    if not input.ndim:
        feature_dropout(input, p, training)


def spatial(name, input, p, n):
    probability(p)
    if input.ndim not in (n + 1, n + 2):
        warn(m.DROPOUT_DIMS.format(name, input.ndim, n, n + 1, n + 2))


def alpha_dropout(p):
    probability(p)


def feature_alpha_dropout(input, p, training):
    feature_dropout(input, p, training and p != 1)  # at 1 nothing is drawn
