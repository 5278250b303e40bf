"""Dropout: of elements, of whole channels, and that which keeps the distribution as it is."""

import math

from ..arrays.devices import random_source
from ..arrays.dispatch import xp_of
from ..core.record import array_of
from ..core.tensor import Tensor
from .activations import into
from .elementwise import add, mul
from .rows import register
from .shape import undone


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability ``p`` and scale the others by 1 / (1 - p), in training."""
    x = array_of(input)
    if p == 0 or not training or not x.size:
        return input
    return into(input, mul(input, Tensor(noise(x, p))), inplace)


def noise(x, p):
    """What dropout multiplies by: 0 with probability ``p``, else 1 / (1 - p)."""
    order = sorted(range(x.ndim), key=lambda d: -x.strides[d])  # numbers are drawn as x lies in memory
    return random_source(x).dropout_mask(None, tuple(x.shape[d] for d in order), x.dtype, p).transpose(undone(order))


def feature_noise(x, p):
    """One such number for each channel, dimension 1."""
    return random_source(x).dropout_mask(None, (*x.shape[:2], *(1,) * (x.ndim - 2)), x.dtype, p)


def feature_dropout(input, p, train, inplace=False):
    """Dropout of whole channels: (N, C, ...)."""
    if not p or not train or not array_of(input).size:
        return input
    return into(input, mul(input, Tensor(feature_noise(array_of(input), p))), inplace)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    return batched(input, p, training, inplace, 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, H, W)."""
    return feature_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return batched(input, p, training, inplace, 5)


def batched(input, p, training, inplace, ndim):
    """Dropout of channels of an input that may lack the dimension of the batch."""
    if input.ndim == ndim:
        return feature_dropout(input, p, training, inplace)
    if inplace:
        return feature_dropout(input.unsqueeze_(0), p, training, True).squeeze_(0)
    return feature_dropout(input.unsqueeze(0), p, training).squeeze(0)


SATURATED = 1.7580993408473766  # SELU's limit below, negated


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of what SELU gives (Klambauer et al., 2017)."""
    return kept_alike(input, p, training, inplace, noise)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """The same for whole channels."""
    return kept_alike(input, p, training, inplace, feature_noise)


def kept_alike(input, p, training, inplace, draw):
    x = array_of(input)
    if not p or not training or not x.size:
        return input
    if p == 1:
        return into(input, mul(input, Tensor(xp_of(x).zeros((), x.dtype))), inplace)
    kept = (draw(x, p) != 0).astype(x.dtype)
    scale = 1 / math.sqrt((SATURATED**2 * p + 1) * (1 - p))
    shift = (kept - 1) * x.dtype.type(SATURATED * scale) + x.dtype.type(SATURATED * scale * p)
    return into(input, add(mul(input, Tensor(kept * x.dtype.type(scale))), Tensor(shift)), inplace)


for function in (dropout, feature_dropout, alpha_dropout, feature_alpha_dropout):
    register(function.__name__, "nn", function)
