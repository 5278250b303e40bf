"""More activations, and the kinds of dropout that keep channels together or the distribution as it is."""

import math

from ..arrays import dtypes
from ..arrays.warn import warn
from ..core.graph import node_class
from ..core.linear import accumulate_wider, cast, sum_to
from ..core.record import array_of, record, register, registry, xp_of
from ..core.tensor import Tensor, checked_dim
from .creation import number
from .elementwise import abs, add, choose, gt, le, lt, mul, rsqrt, sigmoid, tanh
from .elementwise import pow as power
from .nn import above, activation, below, check_floating, elu_of, feature_noise, into, log_sigmoid, logsigmoid_of, noise
from .reduce import mean, word
from .shape import join, narrow, view_to

# ---- activations of one tensor


def ramp(x):
    """x + 3 between 0 and 6."""
    return below(above(x + 3) - 6) + 6


def mish_rule(g, x):
    t = tanh(-logsigmoid_of(-x))
    return g * (t + x * sigmoid(x) * (1.0 - t * t))


# fmt: off
mish_of = activation("mish", "mish_cpu", lambda x: x * tanh(-log_sigmoid(-x)), mish_rule)
hardswish_of = activation(
    "hardswish", "hardswish_cpu", lambda x: x * ramp(x) / 6,
    lambda g, x: choose(gt(x, -3), choose(lt(x, 3), g * (x / 3.0 + 0.5), g), 0.0))
hardsigmoid_of = activation("hardsigmoid", "hardsigmoid_cpu", lambda x: ramp(x) / 6,
                            lambda g, x: choose(array_of(gt(x, -3)) & array_of(lt(x, 3)), g / 6.0, 0.0))
hardshrink_of = activation("hardshrink", "hardshrink_cpu", lambda x, edge: choose(abs(x) <= edge, 0.0, x),
                           lambda g, x, edge: choose(le(abs(x), edge), 0.0, g))
softshrink_of = activation("softshrink", "softshrink_cpu", lambda x, edge: above(x - edge) + below(x + edge),
                           lambda g, x, edge: choose(le(abs(x), edge), 0.0, g))
threshold_of = activation("threshold", "threshold_cpu", lambda x, edge, value: choose(x <= edge, value, x),
                          lambda g, x, edge, _: choose(le(x, edge), 0.0, g), "Backward1")
celu_of = activation("celu", "elu_cpu", lambda x, alpha: elu_of(x, alpha, 1.0, 1.0 / alpha),
                     lambda g, x, alpha: registry["elu"].rules[0](g, x, alpha, 1.0, 1.0 / alpha), "Backward1")
# fmt: on


def mish(input, inplace=False):
    """x * tanh(softplus(x))"""
    return mish_of(input, inplace=inplace)


def hardswish(input, inplace=False):
    """x * min(max(x + 3, 0), 6) / 6"""
    return hardswish_of(input, inplace=inplace)


def hardsigmoid(input, inplace=False):
    """min(max(x + 3, 0), 6) / 6"""
    return hardsigmoid_of(input, inplace=inplace)


def celu(input, alpha=1.0, inplace=False):
    """x above 0, ``alpha`` * (exp(x / alpha) - 1) below."""
    if not isinstance(alpha, Tensor) and not alpha:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return celu_of(input, number(alpha, "celu", "alpha", 2), inplace=inplace)


def hardshrink(input, lambd=0.5):
    """x, but 0 between -lambd and lambd."""
    return hardshrink_of(input, number(lambd, "hardshrink", "lambd"))


def softshrink(input, lambd=0.5):
    """x moved towards 0 by ``lambd``, 0 between."""
    lambd = number(lambd, "softshrink", "lambd")
    if lambd < 0:
        most = dtypes.finfo(dtypes.of[array_of(input).dtype]).max
        raise RuntimeError(
            f"lambda must be in range [0, {most:g}] for input dtype {word(array_of(input))}, but found {lambd:g}"
        )
    return softshrink_of(input, lambd)


def threshold(input, threshold, value, inplace=False):
    """x above the threshold, ``value`` elsewhere."""
    numbers = number(threshold, "threshold", "threshold", 2), number(value, "threshold", "value", 3)
    return threshold_of(input, *numbers, inplace=inplace)


def glu(input, dim=-1):
    """a * sigmoid(b), where a and b are the halves of the input along ``dim``."""
    x = array_of(input)
    if x.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = checked_dim(dim, x.ndim)
    if x.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {x.shape[dim]}")
    check_floating(x, "glu_cpu")
    a, b = halves(x, dim)
    wide = accumulate_wider.get(x.dtype, x.dtype)
    out = (a.astype(wide) * sigmoid(b.astype(wide))).astype(x.dtype)
    return record(Glu, out, (input,), (x, dim))


def halves(x, dim):
    n = array_of(x).shape[dim] // 2
    return narrow(x, dim, 0, n), narrow(x, dim, n, n)


def glu_rule(g, x, dim):
    a, b = halves(x, dim)
    s = sigmoid(b)
    return join([g * s, g * a * s * (1.0 - s)], dim)


Glu = node_class("GluBackward0", glu_rule)


def prelu(input, weight):
    """x above 0, ``weight`` * x below; ``weight``: one number, or one for each channel (dimension 1)."""
    x, w = array_of(input), array_of(weight)
    if x.dtype != w.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {word(x)} and {word(w)}")
    if w.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}")
    if w.size != 1:
        if not x.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != w.size:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {w.size} and channel "
                f"size = {channels}."
            )
    check_floating(x, "prelu_cpu")
    if w.ndim != x.ndim:
        weight = view_to(weight, (1, w.size, *(1,) * (x.ndim - 2)) if x.ndim > 1 else (1,) * x.ndim)
        w = array_of(weight)
    return record(Prelu, choose(x > 0, x, x * w), (input, weight), (x, w))


Prelu = node_class("PreluKernelBackward0",
                   lambda g, x, y: choose(gt(x, 0), g, g * y),
                   lambda g, x, y: sum_to(choose(gt(x, 0), 0.0, g * x), array_of(y).shape))  # fmt: skip

# ---- dropout


def feature_dropout(input, p, train, inplace=False):
    """Dropout of whole channels: (N, C, ...)."""
    check_probability(p)
    if not p or not train or not array_of(input).size:
        return input
    return into(input, mul(input, Tensor(feature_noise(array_of(input), p))), inplace)


def check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


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


# ---- normalization


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input**2) + eps) over the last dimensions, times ``weight`` (Zhang and Sennrich, 2019)."""
    shape, x = tuple(normalized_shape), array_of(input)
    if not shape:
        raise RuntimeError(f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                           f"element, but got normalized_shape = {list(shape)}")  # fmt: skip
    if weight is not None and tuple(array_of(weight).shape) != shape:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(array_of(weight).shape)} and normalized_shape = {list(shape)}"
        )
    if tuple(x.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{', '.join(map(str, shape))}], but "
            f"got input of size{list(x.shape)}"
        )
    wide = cast(input, accumulate_wider.get(x.dtype, x.dtype))
    eps = dtypes.finfo(dtypes.of[array_of(wide).dtype]).eps if eps is None else eps
    squares = mean(power(wide, 2), tuple(range(-len(shape), 0)), True)
    above_zero = record(Plus, array_of(squares) + array_of(squares).dtype.type(eps), (squares,), (None,))
    out = mul(wide, rsqrt(above_zero))
    return cast(out if weight is None else mul(out, weight), x.dtype)


Plus = node_class("AddBackward1", lambda g, _: g)

for name in "glu prelu feature_dropout alpha_dropout feature_alpha_dropout rms_norm".split():
    register(name, "nn", globals()[name])
