"""Dropout: of elements, of whole channels, and that which keeps the distribution as it is."""

import math

from ..arrays import dtypes
from ..arrays.devices import random_source
from ..arrays.dispatch import xp_of
from ..arrays.dtypes import dtype_word
from ..arrays.warn import warn
from ..core.record import array_of, register
from ..core.tensor import Tensor
from .activations import into
from .elementwise import add, mul
from .shape import undone


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability ``p`` and scale the others by 1 / (1 - p), in training."""
    check_probability(p)
    x = array_of(input)
    if p == 0 or not training or not x.size:
        return input
    if not dtypes.of[x.dtype].is_floating_point:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype_word(x)}")
    return into(input, mul(input, Tensor(noise(x, p))), inplace)


def noise(x, p):
    """What dropout multiplies by: 0 with probability ``p``, else 1 / (1 - p)."""
    order = sorted(range(x.ndim), key=lambda d: -x.strides[d])  # numbers are drawn as x lies in memory
    return random_source(x).dropout_mask(None, tuple(x.shape[d] for d in order), x.dtype, p).transpose(undone(order))


def feature_noise(x, p):
    """One such number for each channel, dimension 1."""
    if x.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return random_source(x).dropout_mask(None, (*x.shape[:2], *(1,) * (x.ndim - 2)), x.dtype, p)


def check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def feature_dropout(input, p, train, inplace=False):
    """Dropout of whole channels: (N, C, ...)."""
    check_probability(p)
    if not p or not train or not array_of(input).size:
        return input
    return into(input, mul(input, Tensor(feature_noise(array_of(input), p))), inplace)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return batched(input, p, training, inplace, 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, H, W)."""
    check_probability(p)
    warn_of_dims("dropout2d", input.ndim, 2)
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
        )
    return feature_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    check_probability(p)
    warn_of_dims("dropout3d", input.ndim, 3)
    return batched(input, p, training, inplace, 5)


def warn_of_dims(name, ndim, spatial):
    if ndim not in (spatial + 1, spatial + 2):
        warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
            "release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
            f"dimension, and an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs).",
        )


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
    check_probability(p)
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
