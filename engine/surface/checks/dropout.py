"""Checks of dropout's arguments."""

from ..messages import DROPOUT_PROBABILITY
from ..require import require


def dropout(p):
    require(not (p < 0.0 or p > 1.0), DROPOUT_PROBABILITY, p, error=ValueError)


feature_dropout = dropout1d = dropout2d = dropout3d = alpha_dropout = feature_alpha_dropout = dropout
