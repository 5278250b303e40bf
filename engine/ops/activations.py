"""Activations: elementwise functions of one tensor, a row each; gelu, glu, prelu and softmax."""

from ..arrays import dtypes
from ..arrays.dispatch import xp_of
from ..arrays.dtypes import accumulate_wider
from ..arrays.kernels import softmax as kernels
from ..arrays.kernels.blocks import blockwise
from ..arrays.kernels.gelu import ROOT_2_PI, ROOT_HALF
from ..arrays.kernels.gelu import gelu as gelu_array
from ..arrays.kernels.losses import log_sigmoid
from ..arrays.kernels.views import contiguous_array
from ..core.graph import mode, node_class
from ..core.linear import cast, sum_axes, sum_to
from ..core.record import array_of, attach, record
from ..core.rules import camel
from ..core.tensor import Tensor
from . import elementwise as e
from .checks import checked_dim
from .elementwise import abs, choose, exp, gt, le, level, lt, sigmoid, tanh
from .rows import register, registry, widened
from .shape import join, narrow, view_to
from .writes import check_writable, overwrite

# ---- how a row becomes an activation


def activation(name, doc, forward, rule, in_place="Backward0"):
    """An elementwise function of a floating tensor and of numbers: ``forward(x, *numbers)``, ``rule(g, x, *numbers)``.

    Half precision is computed in float32.  ``in_place``: how the name of the node ends where the input is overwritten.
    """
    nodes = [node_class(camel(name) + end, rule) for end in ("Backward0", in_place)]
    for Class in nodes:
        Class.diagonal = True
        Class.rules = (lambda g, x, *numbers: blockwise(rule, (g, x), numbers),)

    def compute(x, *numbers):
        wide = accumulate_wider.get(x.dtype)
        return forward(x, *numbers) if wide is None else forward(x.astype(wide), *numbers).astype(x.dtype)

    def op(input, *numbers, inplace=False):
        if len(numbers) > count:
            numbers, inplace = numbers[:count], numbers[count]
        x = array_of(input)
        out = blockwise(compute, (x,), numbers)
        return into(input, record(nodes[bool(inplace)], out, (input,), (x, *numbers)), inplace)

    op.__doc__, count = doc, rule.__code__.co_argcount - 2
    return register(name, "activation", op, rule)


def into(input, out, inplace):
    """A result, written into the input if ``inplace``."""
    if not inplace:
        return out
    check_writable(input)
    return overwrite(input, out)


# ---- the rows


def above(x):
    return e.bounded(xp_of(x).maximum, x, 0)


def below(x):
    return e.bounded(xp_of(x).minimum, x, 0)


def ramp(x):
    """x + 3 between 0 and 6."""
    return below(above(x + 3) - 6) + 6


def mish_rule(g, x):
    t = tanh(-logsigmoid(-x))
    return g * (t + x * sigmoid(x) * (1.0 - t * t))


def silu_rule(g, x):
    s = sigmoid(x)
    return g * (s * (x * (1.0 - s) + 1.0))


# fmt: off
Hardtanh = node_class(
    "HardtanhBackward0",
    lambda g, x, low, high: level(x, choose(array_of(gt(x, low)) & array_of(lt(x, high)), g, 0.0)))
Gelu = node_class("GeluBackward0", lambda g, x, approximate, slope: gelu_rule(g, x, approximate, slope))
Glu = node_class("GluBackward0", lambda g, x, dim: glu_rule(g, x, dim))
Prelu = node_class("PreluKernelBackward0",
                   lambda g, x, y: level(x, choose(gt(x, 0), g, g * y)),
                   lambda g, x, y: level(y, sum_to(choose(gt(x, 0), 0.0, g * x), array_of(y).shape)))
# the numbers of elu: scale * alpha * (exp(x * rate) - 1) below 0, scale * x above
elu_of = activation(
    "elu", None, lambda x, alpha, scale, rate: above(x) * scale + e.expm1(below(x) * rate) * (alpha * scale),
    lambda g, x, alpha, scale, rate: choose(
        gt(x, 0), g * scale, g * (exp(choose(e.ge(x, 0), 0.0, x) * rate) * (alpha * scale * rate))),
    "Backward1")
leaky_relu = activation(
    "leaky_relu", "x above 0, ``negative_slope`` * x below.", lambda x, slope: above(x) + below(x) * slope,
    lambda g, x, slope: level(x, choose(gt(x, 0), g, g * slope)), "Backward1")
silu = activation("silu", "x * sigmoid(x)", lambda x: x * sigmoid(x), silu_rule)
softplus = activation(
    "softplus", "log(1 + exp(beta * x)) / beta; x itself where beta * x is above ``threshold``.",
    lambda x, beta, threshold: choose(x * beta > threshold, x, log_sigmoid(x * -beta) / -beta),
    lambda g, x, beta, threshold: choose(gt(x * beta, threshold), g, g * sigmoid(x * beta)))
logsigmoid = activation("log_sigmoid", "log(sigmoid(x))", log_sigmoid, lambda g, x: g * sigmoid(-x))
mish = activation("mish", "x * tanh(softplus(x))", lambda x: x * tanh(-log_sigmoid(-x)), mish_rule)
hardswish = activation(
    "hardswish", "x * min(max(x + 3, 0), 6) / 6", lambda x: x * ramp(x) / 6,
    lambda g, x: choose(le(x, -3), 0.0, choose(e.ge(x, 3), g, g * (x / 3.0 + 0.5))))
hardsigmoid = activation(
    "hardsigmoid", "min(max(x + 3, 0), 6) / 6", lambda x: ramp(x) / 6,
    lambda g, x: level(x, choose(array_of(gt(x, -3)) & array_of(lt(x, 3)), g / 6.0, 0.0)))
hardshrink = activation(
    "hardshrink", "x, but 0 between -lambd and lambd.", lambda x, edge: choose(abs(x) <= edge, 0.0, x),
    lambda g, x, edge: level(x, choose(le(abs(x), edge), 0.0, g)))
softshrink = activation(
    "softshrink", "x moved towards 0 by ``lambd``, 0 between.", lambda x, edge: above(x - edge) + below(x + edge),
    lambda g, x, edge: level(x, choose(le(abs(x), edge), 0.0, g)))
threshold = activation(
    "threshold", "x above the threshold, ``value`` elsewhere.", lambda x, edge, value: choose(x <= edge, value, x),
    lambda g, x, edge, _: level(x, choose(le(x, edge), 0.0, g)), "Backward1")
celu = activation(
    "celu", "x above 0, ``alpha`` * (exp(x / alpha) - 1) below.", lambda x, alpha: elu_of(x, alpha, 1.0, 1.0 / alpha),
    lambda g, x, alpha: registry["elu"].rules[0](g, x, alpha, 1.0, 1.0 / alpha), "Backward1")
# fmt: on


def relu(input, inplace=False):
    """max(x, 0)"""
    out = e.relu(input)
    return into(input, out, inplace) if inplace else out


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x between ``min_val`` and ``max_val``, these beyond."""
    x = array_of(input)
    low, high = (x.dtype.type(v) for v in (min_val, max_val))
    out = e.limited(x, low, high)
    return into(input, record(Hardtanh, out, (input,), (x, min_val, max_val)), inplace)


def relu6(input, inplace=False):
    """min(max(x, 0), 6)"""
    return hardtanh(input, 0.0, 6.0, inplace)


def elu(input, alpha=1.0, inplace=False):
    """x above 0, ``alpha`` * (exp(x) - 1) below."""
    return elu_of(input, alpha, 1.0, 1.0, inplace=inplace)


def selu(input, inplace=False):
    """1.0507 * elu(x, 1.6733), the self-normalizing one."""
    return elu_of(input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0, inplace=inplace)


def gelu(input, *, approximate="none"):
    """x * cdf(x) of the normal distribution; ``approximate="tanh"``: by a hyperbolic tangent."""
    x = array_of(input)
    recorded = mode.enabled and isinstance(input, Tensor) and input.node is not None
    out, slope = gelu_array(x, approximate, recorded)
    return record(Gelu, out, (input,), (x, approximate, slope))


def gelu_rule(g, x, approximate, slope):
    """g * (cdf + x * pdf); a pass that is recorded computes the slope anew, by operations."""
    if not isinstance(g, Tensor):
        return g * slope
    square = x * -0.5 * x
    if approximate == "none":
        return g * ((e.erf(x * ROOT_HALF) + 1.0) * 0.5 + exp(square) * (0.5 * ROOT_2_PI) * x)
    cdf = (tanh((square * -0.08943 + 1.0) * ROOT_2_PI * x) + 1.0) * 0.5
    return g * (cdf + (square * -0.26829 + 1.0) * cdf * (1.0 - cdf) * (2.0 * ROOT_2_PI) * x)


def softsign(input):
    """x / (1 + |x|)"""
    return e.div(input, e.add(e.abs(input), 1))


def tanhshrink(input):
    """x - tanh(x)"""
    return e.sub(input, tanh(input))


def glu(input, dim=-1):
    """a * sigmoid(b), where a and b are the halves of the input along ``dim``."""
    x = array_of(input)
    dim = range(x.ndim)[dim]
    a, b = halves(x, dim)
    wide = accumulate_wider.get(x.dtype, x.dtype)
    out = (a.astype(wide) * sigmoid(b.astype(wide))).astype(x.dtype, copy=False)
    return record(Glu, out, (input,), (x, dim))


def halves(x, dim):
    n = array_of(x).shape[dim] // 2
    return narrow(x, dim, 0, n), narrow(x, dim, n, n)


def glu_rule(g, x, dim):
    a, b = halves(x, dim)
    s = sigmoid(b)
    return join([g * s, g * a * s * (1.0 - s)], dim)


def prelu(input, weight):
    """x above 0, ``weight`` * x below; ``weight``: one number, or one for each channel (dimension 1)."""
    x, w = array_of(input), array_of(weight)
    if w.ndim != x.ndim:
        weight = view_to(weight, (1, w.size, *(1,) * (x.ndim - 2)) if x.ndim > 1 else (1,) * x.ndim)
        w = array_of(weight)
    return record(Prelu, choose(x > 0, x, x * w), (input, weight), (x, w))


# ---- softmax and its logarithm along a dimension


def softmax_rule(g, out, axis):
    """(g - sum(g * out)) * out"""
    if not isinstance(g, Tensor):
        return kernels.softmax_vjp(axis, g, out)
    dtype, g, out = array_of(g).dtype, widened(g), widened(out)
    return cast((g - sum_axes(g * out, axis, True)) * out, dtype)


def log_softmax_rule(g, out, axis, *known):
    """g - exp(out) * sum(g); ``known`` to the kernel, a pass that is recorded does not get it."""
    if not isinstance(g, Tensor):
        return kernels.log_softmax_vjp(axis, g, out, *known)
    dtype, g, out = array_of(g).dtype, widened(g), widened(out)
    return cast(g - exp(out) * sum_axes(g, axis, True), dtype)


Softmax, SafeSoftmax = (node_class(name, softmax_rule) for name in ("SoftmaxBackward0", "SafeSoftmaxBackward0"))
LogSoftmax = node_class("LogSoftmaxBackward0", log_softmax_rule)


def softmax(input, dim, dtype=None):
    """exp(x) / sum(exp(x)) along ``dim``."""
    input, x, axis = checked("softmax", input, dim, dtype)
    out = kernels.softmax(axis, x)
    return attach(Softmax, out, (input.node,), (out, axis)) if isinstance(input, Tensor) else out


def log_softmax(input, dim, dtype=None):
    """log(softmax(x)) along ``dim``, without overflow."""
    input, x, axis = checked("log_softmax", input, dim, dtype)
    out, *known = kernels.log_softmax(axis, x)
    return attach(LogSoftmax, out, (input.node,), (out, axis, *known)) if isinstance(input, Tensor) else out


def safe_softmax(input):
    """softmax along the last dimension, with zeros for a row that is -inf everywhere: that of a query without keys."""
    input, x, axis = checked("softmax", input, -1, None)
    out = kernels.safe_softmax(axis, x)
    return record(SafeSoftmax, out, (input,), (out, axis))


def checked(name, input, dim, dtype):
    """(the input in a dtype, its array, the axis)"""
    if dtype is not None:
        input = cast(input, dtypes.given(dtype, name).np)
    x = contiguous_array(array_of(input))
    axis = checked_dim(dim, x.ndim) if x.ndim else checked_dim(dim, 0) or None
    return input, x, axis


for name in "relu6 hardtanh softsign tanhshrink glu prelu softmax log_softmax".split():
    register(name, "nn", globals()[name])
