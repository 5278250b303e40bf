"""Losses: how far an input is from a target, as the mean, the sum, or for each element."""

from ..arrays import dtypes
from ..arrays.batches import picked
from ..arrays.devices import one_device
from ..arrays.dispatch import xp_of
from ..arrays.kernels.indexing import are_classes, check_classes, class_places, elements_at, zeros_but
from ..arrays.kernels.losses import logits_loss, weighted_logits_loss
from ..arrays.kernels.sums import mean_array, sum_array
from ..core.graph import node_class
from ..core.linear import reshape, sum_to
from ..core.record import array_of, record
from ..core.tensor import Tensor
from . import elementwise as e
from .activations import hardtanh, log_softmax, logsigmoid
from .elementwise import choose, exp, log, mul, sigmoid
from .index import masked_fill
from .reduce import mean as reduce_mean
from .reduce import record_converted
from .reduce import sum as reduce_sum
from .rows import register
from .shape import broadcast_tensors
from .with_numbers import divided, plus, times

# ---- the derivatives.  ``scale``: what the reduction multiplies the cotangent of each element by

# fmt: off
Mse = node_class("MseLossBackward0",
                 lambda g, x, y, scale: (x - y) * (g * scale), lambda g, x, y, scale: (y - x) * (g * scale))
SmoothL1 = node_class("SmoothL1LossBackward0",
                      lambda g, x, y, scale, beta: hardtanh(x - y, -beta, beta) * (g * (scale / beta)),
                      lambda g, x, y, scale, beta: hardtanh(y - x, -beta, beta) * (g * (scale / beta)))
Huber = node_class("HuberLossBackward0",
                   lambda g, x, y, scale, delta: hardtanh(x - y, -delta, delta) * (g * scale),
                   lambda g, x, y, scale, delta: hardtanh(y - x, -delta, delta) * (g * scale))
BCEWithLogits = node_class("BinaryCrossEntropyWithLogitsBackward0",
                           lambda g, x, y, scale: (sigmoid(x) - y) * (g * scale),
                           lambda g, x, _y, scale: x * (g * -scale))
WeightedBCEWithLogits = node_class(
    "BinaryCrossEntropyWithLogitsBackward0",
    lambda g, x, y, scale, more: ((y * more + 1.0) * sigmoid(x) - (y * more + y)) * (g * scale),
    lambda g, x, _y, scale, more: (x + logsigmoid(x) * more) * (g * -scale))
BCE = node_class("BinaryCrossEntropyBackward0",
                 lambda g, x, y, scale: (x - y) / e.clamp_min((1.0 - x) * x, 1e-12) * (g * scale),
                 lambda g, x, _y, scale: (log_above(1.0 - x) - log_above(x)) * (g * scale))
Scatter = node_class("ScatterBackward0", lambda g, shape, where: sum_to(gather(g, where), shape))
Gather = node_class("GatherBackward0", lambda g, shape, where: scatter(g, shape, where))
NLLLoss, NLLLoss2D = (
    node_class(name, lambda g, x, index, share, where, mask: e.level(x, scatter(
        g * share if mask is None else choose(mask, g * share, 0.0), array_of(x).shape, where)))
    for name in ("NllLossBackward0", "NllLoss2DBackward0")
)
# fmt: on

for Class in (Mse, SmoothL1, Huber, BCEWithLogits, WeightedBCEWithLogits, BCE):
    Class.elementwise = True


def log_above(x):
    """log(x), and -100 where it is below."""
    return e.clamp_min(log(x), -100.0)


def reduced(loss, reduction):
    """(the reduced loss, what to multiply the cotangent of each element by)"""
    if reduction == "mean":
        return mean_array(loss), 1.0 / (loss.size or 1)
    return sum_array(loss) if reduction == "sum" else loss, 1.0


def legacy(size_average, reduce, reduction):
    """``reduction``, or what the two arguments mean that it replaced."""
    if size_average is None and reduce is None:
        return reduction
    kept, total = (value is not None and not value for value in (reduce, size_average))
    return "none" if kept else "sum" if total else "mean"


def by_reduction(loss, reduction, weight=None):
    """The reduced loss of a loss that is made of operations; the mean of a weighted one divides by the weights."""
    loss = loss if weight is None else mul(loss, weight)
    if reduction == "mean":
        return reduce_mean(loss) if weight is None else e.div(reduce_sum(loss), reduce_sum(weight))
    return loss if reduction == "none" else reduce_sum(loss)


def alike(input, target):
    """(input, target, their arrays in one dtype): in one shape."""
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        input, target = broadcast_tensors(input, target)
        x, y = array_of(input), array_of(target)
    if x.dtype is not y.dtype:
        dtype = dtypes.promoted[dtypes.of[x.dtype], dtypes.of[y.dtype]].np  # of what has dimensions by now
        x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
    return input, target, x, y


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean of (input - target)**2, or the sum, or each."""
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce, reduction)
    x, y, join = array_of(input), array_of(target), record
    if x.shape != y.shape or x.dtype is not y.dtype:
        (input, target, x, y), join = alike(input, target), record_converted
    if weight is not None:
        return by_reduction(e.square(e.sub(input, target)), reduction, weight)
    try:
        away = x - y
    except TypeError:
        one_device(x, y)
        raise
    out, scale = reduced(away * away, reduction)
    return join(Mse, out, (input, target), (x, y, scale * 2.0))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean of |input - target|, or the sum, or each."""
    reduction = legacy(size_average, reduce, reduction)
    input, target = alike(input, target)[:2]
    return by_reduction(e.abs(e.sub(input, target)), reduction, weight)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """d**2 / (2 * beta) where d = |input - target| is below ``beta``, else d - beta / 2."""
    reduction = legacy(size_average, reduce, reduction)
    beta = float(beta)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    input, target, x, y = alike(input, target)
    away = abs(x - y)
    near = xp_of(away).minimum(away, beta)
    out, scale = reduced((near * (away - near * 0.5) / beta).astype(x.dtype, copy=False), reduction)
    return record_converted(SmoothL1, out, (input, target), (x, y, scale, beta))


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """d**2 / 2 where d = |input - target| is below ``delta``, else delta * (d - delta / 2)."""
    delta = float(delta)
    if weight is not None:
        return by_reduction(mul(huber_loss(input, target, "none", delta), weight), reduction)
    input, target, x, y = alike(input, target)
    away = abs(x - y)
    near = xp_of(away).minimum(away, delta)
    out, scale = reduced((near * (away - near * 0.5)).astype(array_of(input).dtype, copy=False), reduction)
    return record_converted(Huber, out, (input, target), (x, y, scale, delta))


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log(target) - input): ``input`` and, if ``log_target``, ``target`` are log probabilities."""
    reduction = legacy(size_average, reduce, reduction)
    if log_target:
        loss = mul(exp(target), e.sub(target, input))
    else:
        loss = e.sub(e.xlogy(target, target), mul(target, input))
    if reduction == "batchmean" and array_of(input).ndim:
        return e.div(reduce_sum(loss), array_of(input).shape[0])
    return by_reduction(loss, "sum" if reduction == "batchmean" else reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None):  # fmt: skip
    """The mean of -(t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))), or the sum, or each."""
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce, reduction)
    x, y, join = array_of(input), array_of(target), record
    if x.dtype is not y.dtype:
        (input, target, x, y), join = alike(input, target), record_converted
    if weight is None and pos_weight is None:
        out, scale = reduced(logits_loss(x, y), reduction)
        return join(BCEWithLogits, out, (input, target), (x, y, scale))
    more = 0.0 if pos_weight is None else array_of(pos_weight).astype(x.dtype) - 1.0
    weights = 1.0 if weight is None else array_of(weight).astype(x.dtype)
    loss = weighted_logits_loss(x, y, more, weights)
    out, scale = reduced(loss.astype(x.dtype, copy=False), reduction)
    return join(WeightedBCEWithLogits, out, (input, target), (x, y, weights * scale, more))


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean of -(t * log(p) + (1 - t) * log(1 - p)), or the sum, or each; the logarithms are at least -100."""
    reduction = legacy(size_average, reduce, reduction)
    x, y = array_of(input), array_of(target)
    weights = 1.0 if weight is None else array_of(weight).astype(x.dtype)
    loss = (y - 1.0) * log_above(1.0 - x) - y * log_above(x)
    out, scale = reduced(loss * weights, reduction)
    return record(BCE, out.astype(x.dtype, copy=False), (input, target), (x, y, weights * scale))


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """The mean of -input at the target's class, or the sum, or each."""
    reduction = legacy(size_average, reduce, reduction)
    x, t = array_of(input), array_of(target)
    if x.ndim == 3 or x.ndim > 4:
        flat = reshape(input, (*x.shape[:2], 1, -1))
        out = picked_loss(flat, t.reshape(x.shape[0], 1, -1), weight, ignore_index, reduction)
        return reshape(out, t.shape) if reduction == "none" else out
    return picked_loss(input, t.reshape(()) if x.ndim == 1 else t, weight, ignore_index, reduction)


def picked_loss(input, t, weight, ignore_index, reduction):
    """``nll_loss`` of (C), (N, C) or (N, C, H, W): minus the picked elements, weighted."""
    x, w = array_of(input), array_of(weight)
    xp, classes = xp_of(x), x.shape[x.ndim > 1]
    one_device(x, t)  # CuPy would take indices from the host
    if w is None and not 0 <= ignore_index < classes and t.size and are_classes(t, classes):
        where = class_places(t, classes)
        out, share = reduced(-elements_at(x, where), reduction)  # a sum of -0 is 0
        share, good = -share, None
    else:
        good = (t >= 0) & (t < classes)
        if 0 <= ignore_index < classes:
            good &= t != ignore_index
        check_classes(t, good, ignore_index)
        t = xp.where(good, t, 0)
        where = class_places(t, classes)
        weights = (good if w is None else xp.where(good, picked(w, (t,)), 0)).astype(x.dtype)
        loss = xp.where(good, elements_at(x, where) * -weights, 0).astype(x.dtype)
        out, share = reduced(loss, "sum" if reduction == "mean" else reduction)[0], -weights
        if reduction == "mean":
            count = sum_array(weights)
            out, share = out / count, share / count
    return record(NLLLoss if x.ndim <= 2 else NLLLoss2D, out, (input,), (x, t, share, where, good))


def scatter(a, shape, where):
    """Zeros, with a where it says in the flattened array; no place comes twice."""
    v = array_of(a)
    out = zeros_but(v, shape, where)
    return out if v is a else record(Scatter, out, (a,), (v.shape, where))


def gather(a, where):
    x = array_of(a)
    return record(Gather, elements_at(x, where), (a,), (x.shape, where))


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):  # fmt: skip
    """``nll_loss`` of ``log_softmax``; ``target``: class indices, or class probabilities in the shape of ``input``."""
    reduction = legacy(size_average, reduce, reduction)
    x, t = array_of(input), array_of(target)
    axis = 0 if x.ndim <= 1 else 1
    if x.shape == t.shape:
        return probabilities_loss(input, target, weight, reduction, label_smoothing, axis)
    logs = log_softmax(input, axis)
    loss = nll_loss(logs, target, weight, None, ignore_index, None, reduction)
    if label_smoothing == 0:
        return loss
    ignored = t == ignore_index
    smooth = logs if weight is None else mul(logs, along(weight, x, axis))
    smooth = masked_fill(e.neg(reduce_sum(smooth, axis)), ignored, 0)
    if reduction == "mean":
        counted = ~ignored if weight is None else array_of(weight)[t[~ignored]]
        smooth = e.div(reduce_sum(smooth), Tensor(counted.sum().astype(x.dtype)))
    else:
        smooth = by_reduction(smooth, reduction)
    return e.add(times(loss, 1 - label_smoothing), times(smooth, label_smoothing / x.shape[axis]))


def probabilities_loss(input, target, weight, reduction, label_smoothing, axis):
    """``cross_entropy`` with class probabilities."""
    x = array_of(input)
    if label_smoothing > 0:
        target = plus(times(target, 1 - label_smoothing), label_smoothing / x.shape[axis])
    loss = mul(log_softmax(input, axis), target)
    loss = loss if weight is None else mul(loss, along(weight, x, axis))
    if reduction == "none":
        return e.neg(reduce_sum(loss, axis))
    loss = e.neg(reduce_sum(loss))
    return divided(loss, x.size // x.shape[axis]) if reduction == "mean" else loss


def along(weight, x, axis):
    """A weight for each class, in a shape that broadcasts against x."""
    return reshape(weight, tuple(-1 if i == axis else 1 for i in range(x.ndim)))


NAMES = """mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy_with_logits binary_cross_entropy
nll_loss cross_entropy"""
for name in NAMES.split():
    register(name, "nn", globals()[name])
