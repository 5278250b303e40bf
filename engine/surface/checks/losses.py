"""Checks of the losses' arguments."""

from ...arrays import dtypes
from ...arrays.devices import violated
from ...arrays.shapes import common_shape
from ...arrays.warn import warn
from ...core.record import array_of
from ...core.tensor import Tensor
from ...ops.checks import check_floating, misfit, number
from ...ops.losses import legacy
from .. import messages as m
from ..require import require
from .activations import log_softmax

REDUCTIONS = "none", "mean", "sum"


def in_new_words(size_average, reduce, reduction):
    """``reduction``, or what stands for it, with a warning."""
    if size_average is None and reduce is None:
        return reduction
    warn(m.REDUCTION_IN_OLD_WORDS.format(legacy(size_average, reduce, reduction)))
    return legacy(size_average, reduce, reduction)


def reducible(size_average, reduce, reduction):
    if reduction not in REDUCTIONS or size_average is not None or reduce is not None:
        reduction = in_new_words(size_average, reduce, reduction)
        require(reduction in REDUCTIONS, m.REDUCTION, reduction, error=ValueError)


def sized(*tensors):
    """AttributeError in PyTorch's words for numbers, lists and None, which have no size."""
    for t in tensors:
        require(hasattr(t, "size"), m.NO_SIZE, type(t).__name__, error=AttributeError)


def compared(kernel):
    """The check of a loss of two tensors: with a warning where shapes differ, and a kernel for the common dtype."""

    def check(input, target, size_average, reduce, reduction, weight):
        sized(target, input)
        x, y = array_of(input), array_of(target)
        if x.shape != y.shape:
            warn(m.LOSS_SIZES.format(list(y.shape), list(x.shape)))
        if weight is not None:
            require(array_of(weight).shape == x.shape, m.WEIGHTS_SIZE, error=ValueError)
        elif kernel and x.dtype.kind != "f":
            common = dtypes.promoted[dtypes.of[x.dtype], dtypes.of[y.dtype]]
            require(common.is_floating_point, m.NO_KERNEL, kernel, common.np, error=NotImplementedError)
        reducible(size_average, reduce, reduction)

    return check


def fixed(name, **weights):
    for argument, weight in weights.items():
        requires_grad = isinstance(weight, Tensor) and weight.requires_grad
        require(not requires_grad, m.NOT_DIFFERENTIABLE, name, argument)


def expandable(weight, x):
    """A weight broadcasts to the shape of x."""
    if weight is not None:
        shape = common_shape(array_of(weight).shape, x.shape)
        require(shape == x.shape, m.DOES_NOT_BROADCAST, x.shape, shape)


mse_loss, l1_loss, smooth_l1, huber = map(compared, ("mse_cpu", None, "smooth_l1_cpu", "huber_cpu"))


def smooth_l1_loss(input, target, size_average, reduce, reduction, beta):
    if number(beta, "smooth_l1_loss", "beta", 4, "float") < 0:
        raise RuntimeError(m.BETA_NEGATIVE)
    (smooth_l1 if beta else l1_loss)(input, target, size_average, reduce, reduction, None)


def huber_loss(input, target, reduction, delta, weight):
    if number(delta, "huber_loss", "delta", 4, "float") <= 0:
        raise RuntimeError(m.DELTA_NOT_POSITIVE)
    huber(input, target, None, None, reduction, None)
    fit = weight is None or array_of(weight).shape == array_of(input).shape
    require(fit, m.WEIGHTS_SIZE, error=ValueError)


def kl_div(input, target, size_average, reduce, reduction):
    if size_average is None and reduce is None and reduction == "mean":
        warn(m.KL_DIV_MEAN)
    if not isinstance(target, Tensor):
        raise misfit(target, "kl_div", "target", 2, "Tensor")
    reduction = in_new_words(size_average, reduce, reduction)
    floating = input.is_floating_point() and target.is_floating_point()
    require(floating, m.KL_DIV_INTEGERS)
    require(reduction in (*REDUCTIONS, "batchmean"), m.REDUCTION, reduction, error=ValueError)


def binary_cross_entropy_with_logits(input, target, weight, size_average, reduce, reduction, pos_weight):
    sized(target, input)
    x, y = array_of(input), array_of(target)
    reducible(size_average, reduce, reduction)
    if x.shape != y.shape:
        raise ValueError(m.LOGITS_SIZES.format(list(y.shape), list(x.shape)))
    if x.dtype is not y.dtype or x.dtype not in dtypes.differentiable:
        check_floating(x, "log_sigmoid_cpu")
        require(y.dtype in dtypes.differentiable, m.CANNOT_CAST, x.dtype, y.dtype)
    if weight is not None or pos_weight is not None:
        fixed("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
        expandable(pos_weight, x)
        expandable(weight, x)


def binary_cross_entropy(input, target, weight, size_average, reduce, reduction):
    sized(target, input)
    x, y = array_of(input), array_of(target)
    reducible(size_average, reduce, reduction)
    require(x.shape == y.shape, m.BCE_SIZES, y.shape, x.shape, error=ValueError)
    require(x.dtype == y.dtype, m.BCE_DTYPES, y.dtype, x.dtype)
    check_floating(x, "binary_cross_entropy")
    fixed("binary_cross_entropy", weight=weight)
    for name, v in (("input", x), ("target", y)):
        outside = v.size and violated(v, lambda v: (~((v >= 0) & (v <= 1))).any())
        require(not outside, m.BCE_RANGE, name)
    expandable(weight, x)


def nll_loss(input, target, weight, size_average, reduce, reduction):
    reducible(size_average, reduce, reduction)
    classes(input.array, target.array, weight)


def cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing):
    reducible(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        require(False, m.LABEL_SMOOTHING, label_smoothing)
    x, t = input.array, target.array
    if x.shape == t.shape:
        probabilities(x, t, weight, ignore_index)
    log_softmax(input, x.ndim > 1, None)
    if x.shape != t.shape:
        classes(x, t, weight)


def probabilities(x, t, weight, ignore_index):
    require(dtypes.of[t.dtype].is_floating_point, m.PROBABILITIES_DTYPE, t.dtype)
    require(ignore_index < 0, m.PROBABILITIES_IGNORE)
    if weight is not None:
        n = x.shape[x.ndim > 1]
        require(weight.shape == (n,), m.PROBABILITIES_WEIGHTS, n, weight.shape)


def classes(x, t, weight):
    """Targets that are class indices fit an input."""
    n, dims = x.ndim, t.ndim
    if not n:
        raise ValueError(m.CLASSES_0D)
    if weight is not None:
        fixed("nll_loss_forward" if n <= 2 else "nll_loss2d_forward", weight=weight)
    if n > 1 and (not dims or x.shape[0] != t.shape[0]):
        raise ValueError(m.BATCH_SIZES.format(x.shape[0], t.shape[0] if dims else 0))
    if n <= 2:
        require(n == 2 or dims != 1 or t.size == 1, m.CLASSES_1D, t.size, error=ValueError)
        require(dims <= 1, m.CLASSES_DIMS)
    else:
        require(n != 4 or dims == 3, m.CLASSES_SPATIAL, dims)
        fit = t.shape[1:] == x.shape[2:]
        require(fit or n != 4, m.CLASSES_SPATIAL_SIZES, x.shape, t.shape)
        require(fit, m.CLASSES_SIZES, (x.shape[0], *x.shape[2:]), t.shape)
    if t.dtype is not dtypes.int64.np:
        require(t.dtype == dtypes.uint8.np, m.CLASSES_DTYPE, t.dtype)
    if weight is not None:
        w, count = weight.array, x.shape[n > 1]
        require(w.shape == (count,), m.CLASS_WEIGHTS, count, w.shape)
        require(w.dtype == x.dtype, m.SCALAR_TYPE, x.dtype, w.dtype)
