"""Losses: how far an input is from a target, as the mean, the sum, or for each element."""

from ..arrays import dtypes
from ..arrays.devices import one_device, violated
from ..arrays.dispatch import picked, xp_of
from ..arrays.dtypes import dtype_word
from ..arrays.kernels.losses import logits_loss, weighted_logits_loss
from ..arrays.kernels.picking import are_classes, check_classes, class_places, elements_at, zeros_but
from ..arrays.kernels.sums import mean_array, sum_array
from ..arrays.shapes import common_shape
from ..arrays.size import Size
from ..arrays.warn import warn
from ..core.graph import node_class
from ..core.linear import reshape, sum_to
from ..core.record import array_of, record, register
from ..core.tensor import Tensor
from . import elementwise as e
from . import reduce
from .activations import check_floating, hardtanh, logsigmoid_of
from .checks import misfit, number
from .elementwise import choose, exp, log, mul, sigmoid
from .reduce import record_converted
from .shape import broadcast_tensors
from .softmax import log_softmax
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
    lambda g, x, _y, scale, more: (x + logsigmoid_of(x) * more) * (g * -scale))
BCE = node_class("BinaryCrossEntropyBackward0",
                 lambda g, x, y, scale: (x - y) / e.clamp_min((1.0 - x) * x, 1e-12) * (g * scale),
                 lambda g, x, _y, scale: (log_above(1.0 - x) - log_above(x)) * (g * scale))
Scatter = node_class("ScatterBackward0", lambda g, shape, where: sum_to(gather(g, where), shape))
Gather = node_class("GatherBackward0", lambda g, shape, where: scatter(g, shape, where))
NLLLoss, NLLLoss2D = (
    node_class(name, lambda g, index, shape, share, where: scatter(g * share, shape, where))
    for name in ("NllLossBackward0", "NllLoss2DBackward0")
)
MaskedFill = node_class("MaskedFillBackward0", lambda g, mask: choose(mask, 0.0, g))
# fmt: on

for Class in (Mse, SmoothL1, Huber, BCEWithLogits, WeightedBCEWithLogits, BCE):
    Class.elementwise = True


def log_above(x):
    """log(x), and -100 where it is below."""
    return e.clamp_min(log(x), -100.0)


def reduced(loss, reduction):
    """(the reduced loss, what to multiply the cotangent of each element by); ValueError for an unknown reduction."""
    if reduction == "mean":
        return mean_array(loss), 1.0 / (loss.size or 1)
    if reduction == "sum":
        return sum_array(loss), 1.0
    check_reduction(reduction)
    return loss, 1.0


def legacy(size_average, reduce, reduction):
    """``reduction``, or what the two arguments mean that it replaced."""
    if size_average is None and reduce is None:
        return reduction
    new = "none" if reduce is False else "sum" if size_average is False else "mean"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{new}' instead.")
    return new


def check_reduction(reduction):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def by_reduction(loss, reduction):
    """The reduced loss of a loss that is made of operations."""
    check_reduction(reduction)
    return loss if reduction == "none" else reduce.sum(loss) if reduction == "sum" else reduce.mean(loss)


def alike(input, target):
    """(input, target, their arrays in one dtype): in one shape, with a warning where they had to be broadcast."""
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        warn(
            f"Using a target size ({Size(y.shape)}) that is different to the input size ({Size(x.shape)}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        )
        input, target = broadcast_tensors(input, target)
    dtype = dtypes.promoted[dtypes.of[x.dtype], dtypes.of[y.dtype]].np  # of what has dimensions by now
    return input, target, array_of(input).astype(dtype, copy=False), array_of(target).astype(dtype, copy=False)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean of (input - target)**2, or the sum, or each."""
    reduction = legacy(size_average, reduce, reduction)
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape or x.dtype is not y.dtype:
        input, target, x, y = alike(input, target)
    if weight is not None:
        return weighted(e.square(e.sub(input, target)), weight, reduction)
    check_floating(x, "mse_cpu")
    try:
        away = x - y
    except TypeError:
        one_device(x, y)
        raise
    out, scale = reduced(away * away, reduction)
    return record_converted(Mse, out, (input, target), (x, y, scale * 2.0))


def weighted(loss, weight, reduction):
    """A loss times the weights of the elements; the mean divides by the sum of the weights."""
    if array_of(weight).shape != array_of(loss).shape:
        raise ValueError("Weights and input must have the same size.")
    loss = mul(loss, weight)
    if reduction == "mean":
        return e.div(reduce.sum(loss), reduce.sum(weight))
    return by_reduction(loss, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean of |input - target|, or the sum, or each."""
    reduction = legacy(size_average, reduce, reduction)
    input, target, _, _ = alike(input, target)
    away = e.abs(e.sub(input, target))
    return by_reduction(away, reduction) if weight is None else weighted(away, weight, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """d**2 / (2 * beta) where d = |input - target| is below ``beta``, else d - beta / 2."""
    reduction = legacy(size_average, reduce, reduction)
    beta = number(beta, "smooth_l1_loss", "beta", 4, "float")
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    input, target, x, y = alike(input, target)
    check_floating(x, "smooth_l1_cpu")
    away = abs(x - y)
    near = xp_of(away).minimum(away, beta)
    out, scale = reduced((near * (away - near * 0.5) / beta).astype(x.dtype, copy=False), reduction)
    return record_converted(SmoothL1, out, (input, target), (x, y, scale, beta))


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """d**2 / 2 where d = |input - target| is below ``delta``, else delta * (d - delta / 2)."""
    delta = number(delta, "huber_loss", "delta", 4, "float")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        loss = mul(huber_loss(input, target, "none", delta), weight)
        return by_reduction(loss, reduction)
    input, target, x, y = alike(input, target)
    check_floating(x, "huber_cpu")
    away = abs(x - y)
    near = xp_of(away).minimum(away, delta)
    out, scale = reduced((near * (away - near * 0.5)).astype(array_of(input).dtype, copy=False), reduction)
    return record_converted(Huber, out, (input, target), (x, y, scale, delta))


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log(target) - input): ``input`` and, if ``log_target``, ``target`` are log probabilities."""
    if size_average is None and reduce is None and reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
        )
    if not isinstance(target, Tensor):
        raise misfit(target, "kl_div", "target", 2, "Tensor")
    reduction = legacy(size_average, reduce, reduction)
    if (
        not dtypes.of[array_of(input).dtype].is_floating_point
        or not dtypes.of[array_of(target).dtype].is_floating_point
    ):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = mul(exp(target), e.sub(target, input))
    else:
        loss = e.sub(e.xlogy(target, target), mul(target, input))
    if reduction == "batchmean":
        loss = reduce_sum(loss)
        return e.div(loss, array_of(input).shape[0]) if array_of(input).ndim else loss
    return by_reduction(loss, reduction)


reduce_sum = reduce.sum  # the losses have an argument named reduce


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """The mean of -(t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))), or the sum, or each.

    ``weight`` multiplies each loss, ``pos_weight`` its first term; both broadcast.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce, reduction)
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        raise ValueError(f"Target size ({Size(y.shape)}) must be the same as input size ({Size(x.shape)})")
    if x.dtype is not y.dtype or x.dtype not in dtypes.differentiable:
        check_floating(x, "log_sigmoid_cpu")
        if y.dtype not in dtypes.differentiable:
            raise RuntimeError(f"result type {dtype_word(x)} can't be cast to the desired output type {dtype_word(y)}")
        input, target, x, y = alike(input, target)
    if weight is None and pos_weight is None:
        out, scale = reduced(logits_loss(x, y), reduction)
        return record_converted(BCEWithLogits, out, (input, target), (x, y, scale))
    check_fixed("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    more = 0.0 if pos_weight is None else aligned(pos_weight, x) - 1.0
    weights = 1.0 if weight is None else aligned(weight, x)
    loss = weighted_logits_loss(x, y, more, weights)
    out, scale = reduced(loss.astype(x.dtype, copy=False), reduction)
    return record_converted(WeightedBCEWithLogits, out, (input, target), (x, y, weights * scale, more))


def check_fixed(name, **weights):
    for argument, weight in weights.items():
        if isinstance(weight, Tensor) and weight.requires_grad:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input cannot "
                "have requires_grad True."
            )


def aligned(weight, x):
    """The array of a weight that broadcasts to the shape of x."""
    w = array_of(weight)
    shape = common_shape(w.shape, x.shape)
    if shape != x.shape:
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(shape)}")
    return w.astype(x.dtype)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean of -(t * log(p) + (1 - t) * log(1 - p)), or the sum, or each; the logarithms are at least -100."""
    reduction = legacy(size_average, reduce, reduction)
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        raise ValueError(
            f"Using a target size ({Size(y.shape)}) that is different to the input size ({Size(x.shape)}) is "
            "deprecated. Please ensure they have the same size."
        )
    if x.dtype != y.dtype:
        raise RuntimeError(f"Found dtype {dtype_word(y)} but expected {dtype_word(x)}")
    check_floating(x, "binary_cross_entropy")
    check_fixed("binary_cross_entropy", weight=weight)
    for name, v in (("input", x), ("target", y)):
        if v.size and violated(v, lambda v: (~((v >= 0) & (v <= 1))).any()):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    weights = 1.0 if weight is None else aligned(weight, x)
    loss = (y - 1.0) * log_above(1.0 - x) - y * log_above(x)
    out, scale = reduced(loss * weights, reduction)
    return record(BCE, out.astype(x.dtype, copy=False), (input, target), (x, y, weights * scale))


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """The mean of -input at the target's class, or the sum, or each.

    ``input``: (C), (N, C) or (N, C, ...) log probabilities; ``target``: as ``input`` without C.  ``weight``: one for
    each class, the mean divides by the sum over the targets.  Targets that are ``ignore_index`` count for nothing.
    """
    reduction = legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    x, t = array_of(input), array_of(target)
    return class_loss(input, x, t, weight, ignore_index, reduction)


def class_loss(input, x, t, weight, ignore_index, reduction):
    """``nll_loss`` of an input with the array x, of which the reduction is known to be one."""
    if x.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if weight is not None:
        check_fixed("nll_loss_forward" if x.ndim <= 2 else "nll_loss2d_forward", weight=weight)
    check_target(x, t, array_of(weight))
    if x.ndim == 3 or x.ndim > 4:
        flat = reshape(input, (*x.shape[:2], 1, -1))
        out = picked_loss(flat, t.reshape(x.shape[0], 1, -1), weight, ignore_index, reduction)
        return reshape(out, t.shape) if reduction == "none" else out
    return picked_loss(input, t.reshape(()) if x.ndim == 1 else t, weight, ignore_index, reduction)


def check_target(x, t, w):
    """PyTorch's errors for class targets that do not fit."""
    if x.ndim > 1 and (t.ndim == 0 or x.shape[0] != t.shape[0]):
        n = t.shape[0] if t.ndim else 0
        raise ValueError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({n}).")
    if x.ndim == t.ndim == 1 and t.size != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {t.size}")
    if x.ndim <= 2 and t.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if x.ndim == 4 and t.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {t.ndim}"
        )
    if x.ndim == 4 and t.shape[1:] != x.shape[2:]:
        raise RuntimeError(f"size mismatch (got input: {list(x.shape)} , target: {list(t.shape)}")
    if x.ndim > 2 and t.shape[1:] != x.shape[2:]:
        raise RuntimeError(f"Expected target size {[x.shape[0], *x.shape[2:]]}, got {list(t.shape)}")
    if t.dtype is not dtypes.int64.np and t.dtype != dtypes.uint8.np:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {dtype_word(t)}")
    classes = x.shape[x.ndim > 1]
    if w is not None and w.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(w.shape)}"
        )
    if w is not None and w.dtype != x.dtype:
        raise RuntimeError(f"expected scalar type {dtype_word(x)} but found {dtype_word(w)}")


def picked_loss(input, t, weight, ignore_index, reduction):
    """``nll_loss`` of (C), (N, C) or (N, C, H, W): minus the picked elements, weighted."""
    x, w = array_of(input), array_of(weight)
    xp, classes = xp_of(x), x.shape[x.ndim > 1]
    one_device(x, t)  # CuPy would take indices from the host
    if w is None and not 0 <= ignore_index < classes and t.size and are_classes(t, classes):
        where = class_places(t, classes)
        out, share = reduced(-elements_at(x, where), reduction)  # a sum of -0 is 0
        share = -share
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
            out, share = out / count, share / (count + (count == 0))
    return record(NLLLoss if x.ndim <= 2 else NLLLoss2D, out, (input,), (t, x.shape, share, where))


def scatter(a, shape, where):
    """Zeros, with a where it says in the flattened array; no place comes twice."""
    v = array_of(a)
    out = zeros_but(v, shape, where)
    return out if v is a else record(Scatter, out, (a,), (v.shape, where))


def gather(a, where):
    x = array_of(a)
    return record(Gather, elements_at(x, where), (a,), (x.shape, where))


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """``nll_loss`` of ``log_softmax``; ``target``: class indices, or class probabilities in the shape of ``input``.

    ``label_smoothing`` mixes the target with the uniform distribution.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    x, t = array_of(input), array_of(target)
    label_smoothing = number(label_smoothing, "cross_entropy_loss", "label_smoothing", 6, "float")
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    axis = 0 if x.ndim <= 1 else 1
    if x.shape == t.shape:
        return probabilities_loss(input, target, weight, ignore_index, reduction, label_smoothing, axis)
    logs = log_softmax(input, axis)
    loss = class_loss(logs, x, t, weight, ignore_index, reduction)
    if label_smoothing == 0:
        return loss
    ignored = t == ignore_index
    smooth = logs if weight is None else mul(logs, along(weight, x, axis))
    smooth = zero_where(e.neg(reduce_sum(smooth, axis)), ignored)
    if reduction == "mean":
        counted = ~ignored if weight is None else array_of(weight)[t[~ignored]]
        smooth = e.div(reduce_sum(smooth), Tensor(counted.sum().astype(x.dtype)))
    elif reduction == "sum":
        smooth = reduce_sum(smooth)
    return e.add(times(loss, 1 - label_smoothing), times(smooth, label_smoothing / x.shape[axis]))


def probabilities_loss(input, target, weight, ignore_index, reduction, label_smoothing, axis):
    """``cross_entropy`` with class probabilities."""
    x, t, w = array_of(input), array_of(target), array_of(weight)
    if not dtypes.of[t.dtype].is_floating_point:
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {dtype_word(t)}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if w is not None and w.shape != (x.shape[axis],):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {x.shape[axis]} classes or no classes but "
            f"got weight tensor of shape: {list(w.shape)}"
        )
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


def zero_where(a, mask):
    """a with zeros where the mask holds."""
    x = array_of(a)
    return record(MaskedFill, xp_of(x).where(mask, 0, x).astype(x.dtype), (a,), (mask,))


for function in (mse_loss, l1_loss, smooth_l1_loss, huber_loss, kl_div, binary_cross_entropy_with_logits,
                 binary_cross_entropy, nll_loss, cross_entropy):  # fmt: skip
    register(function.__name__, "nn", function)
