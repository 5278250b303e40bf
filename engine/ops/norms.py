"""Normalizations: groups of elements brought to mean 0 and variance 1, or vectors to a length, then weight and bias."""

import math

import numpy as np

from ..arrays import dtypes
from ..arrays.dispatch import any_batch
from ..arrays.dtypes import accumulate_wider, dtype_word
from ..arrays.kernels import norms as kernels
from ..arrays.shapes import common_shape
from ..arrays.size import Size
from ..core.graph import node_class
from ..core.linear import cast, clone, contiguous, reshape, sum_axes, sum_to, widened
from ..core.record import array_of, record, register
from ..core.tensor import Tensor
from ..core.versions import write
from . import elementwise as e
from . import reduce
from .activations import check_floating
from .checks import checked_dim, number
from .elementwise import mul
from .linalg import matrix_norm
from .reduce import p_norm
from .shape import expand_to, repeat, view_to
from .with_numbers import plus

# ---- the derivatives.  ``shapes``: of the weight; of the weight and of the input where they are multiplied; of the
# input where it is normalized.  ``known``: what the kernels found on the way


def input_rule(g, x, y, shapes, axis, eps, known):
    """The part of g (times the weight) that changes neither mean nor variance, over the standard deviation."""
    if not isinstance(g, Tensor):
        return kernels.input_vjp(g, x, y, shapes, axis, eps, known)
    _, thin, whole, split = shapes
    normal, rate, mean = standardized(x, split, axis, eps)
    u = reshape(widened(g), whole)
    u = reshape(u if y is None else u * reshape(y, thin), split) * rate
    return cast(reshape(u - mean(u) - normal * mean(u * normal), x.shape), array_of(x).dtype)


def weight_rule(g, x, y, shapes, axis, eps, known):
    """g times what was normalized, summed where the weight was broadcast."""
    if not isinstance(g, Tensor):
        return kernels.weight_vjp(g, x, y, shapes, axis, eps, known)
    own, thin, whole, split = shapes
    into = reshape(reshape(g, split) * standardized(x, split, axis, eps)[0], whole)
    return cast(reshape(sum_to(into, thin), own), array_of(y).dtype)


def bias_rule(g, _x, y, shapes, _axis, _eps, _known):
    own, thin, whole, _ = shapes
    into = sum_to(g if g.shape == whole else reshape(g, whole), thin)
    into = into if into.shape == own else reshape(into, own)
    return into if y is None else cast(into, array_of(y).dtype)


def standardized(x, split, axis, eps):
    """((x - mean) / standard deviation, 1 / standard deviation, the function that takes means), by operations."""
    mean = lambda a: sum_axes(a, axis, True) / reduce.count(split, axis)  # noqa: E731
    x = reshape(widened(x), split)
    away = x - mean(x)
    rate = e.sqrt(1.0 / (mean(away * away) + eps))
    return away * rate, rate, mean


LayerNorm, BatchNorm, GroupNorm = (
    node_class(f"Native{kind}NormBackward0", input_rule, weight_rule, bias_rule) for kind in ("Layer", "Batch", "Group")
)
FixedNorm = node_class("NativeBatchNormBackward0",
                       lambda g, _x, y, shape, _at, rate:
                           cast((g if y is None else g * reshape(y, shape)) * rate, array_of(g).dtype),
                       lambda g, x, _y, shape, at, rate: reshape(sum_to(g * ((x - at) * rate), shape), (-1,)),
                       lambda g, _x, _y, shape, _at, _rate: reshape(sum_to(g, shape), (-1,)))  # fmt: skip


def normalized(Backward, input, weight, bias, shapes, axis, eps):
    """(the input normalized over ``axis``, the mean, the variance)"""
    x, w, b = array_of(input), array_of(weight), array_of(bias)
    check_parameters(x, w, b)
    out, known, mean, variance = kernels.normalized(x, w, b, shapes, axis, eps)
    return record(Backward, out, (input, weight, bias), (x, w, shapes, axis, eps, known)), mean, variance


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Each slice of the last dimensions, of shape ``normalized_shape``, normalized; weight and bias have that shape."""
    if isinstance(normalized_shape, int):
        raise TypeError("layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    shape, x, w, b = tuple(normalized_shape), array_of(input), array_of(weight), array_of(bias)
    if x.dtype not in dtypes.differentiable:  # calls that check nothing take a fortieth of the time of a small one
        check_floating(x, "LayerNormKernelImpl")
    if type(eps) is not float:
        eps = number(eps, "layer_norm", "eps", 5, "float")
    fitting = (w is None or w.shape == shape) and (b is None or b.shape == shape)
    if not (shape and fitting and x.shape[-len(shape) :] == shape):
        check_slices(x, shape, ", ", weight=w, bias=b)
    n = math.prod(shape)
    rows = x.size // n if n else 0, n
    return normalized(LayerNorm, input, weight, bias, (shape, (n,), rows, rows), (-1,), eps)[0]


def check_slices(x, shape, comma, **parameters):
    """PyTorch's errors for slices of a shape that x or a parameter does not have."""
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, p in parameters.items():
        if p is not None and p.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(p.shape)} and "
                f"normalized_shape = {list(shape)}"
            )
    if x.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{comma}{', '.join(map(str, shape))}], "
            f"but got input of size{list(x.shape)}"
        )


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """The channels (dimension 1) of each sample normalized in ``num_groups`` groups; weight and bias: one a channel."""
    x = array_of(input)
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    (n, channels), eps = x.shape[:2], number(eps, "group_norm", "eps", 5, "float")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.shape)} and num_groups={num_groups}"
        )
    for name, p in (("weight", array_of(weight)), ("bias", array_of(bias))):
        if p is not None and p.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(p.shape)} and input of shape {list(x.shape)}"
            )
    split = (n, num_groups, math.prod(x.shape[1:]) // num_groups)
    shapes = (channels,), (channels, 1), (n, channels, math.prod(x.shape[2:])), split
    return normalized(GroupNorm, input, weight, bias, shapes, (2,), eps)[0]


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):  # fmt: skip
    """Each channel (dimension 1) of each sample normalized by itself, or by the running statistics."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    (n, channels, *size), given = input.shape, (running_mean, running_var, weight, bias)
    copies = [v if v is None else repeat(v, (n,)) for v in given]
    together = view_to(contiguous(input), (1, n * channels, *size))
    out = batch_norm(together, *copies, use_input_stats, momentum, eps)
    for v, copy in zip(given[:2], copies) if use_input_stats else ():
        if v is not None:
            v.copy_(reduce.mean(view_to(copy, (n, channels)), 0))
    return view_to(out, (n, channels, *size))


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Each channel (dimension 1) normalized: over the batch in ``training``, else by the running statistics.

    Training moves the running statistics by ``momentum`` towards those of the batch, in place.
    """
    x = array_of(input)
    check_floating(x, "batch_norm")
    momentum = number(momentum, "batch_norm", "momentum", 7, "float")
    eps = number(eps, "batch_norm", "eps", 8, "float")
    channels = x.shape[1] if x.ndim > 1 else 0
    if training and x.size:
        checked_dim(1, x.ndim)
    if training and eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if training and math.prod(x.shape[:1] + x.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {Size(x.shape)}")
    arguments = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, v in arguments.items():
        if v is None and not training and name.startswith("running"):
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        if v is not None and array_of(v).size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {array_of(v).size}")
    check_parameters(x, *map(array_of, arguments.values()))
    shape = (channels, *(1,) * (x.ndim - 2))
    if not training:
        wide = accumulate_wider.get(x.dtype, x.dtype)
        middle = array_of(running_mean).reshape(shape).astype(wide)  # a copy: training may go on before
        rate = e.rsqrt(array_of(running_var).reshape(shape).astype(wide) + eps)
        out = (x - middle) * rate
        w, b = (v if v is None else array_of(v).reshape(shape) for v in (weight, bias))
        out = out if w is None else out * w
        out = cast(out if b is None else out + b, x.dtype)
        return record(FixedNorm, out, (input, weight, bias), (x, array_of(weight), shape, middle, rate))
    split, thin, axis = x.shape, (channels,), (0,)
    if x.ndim > 2:
        split, thin, axis = (*x.shape[:2], math.prod(x.shape[2:])), (channels, 1), (0, 2)
    out, middle, variance = normalized(BatchNorm, input, weight, bias, ((channels,), thin, split, split), axis, eps)
    n = x.size // channels if channels else 0
    if not n:
        return out
    if running_mean is not None:
        update(running_mean, middle.reshape(-1), momentum)
    if running_var is not None:
        update(running_var, variance.reshape(-1) * (n / max(n - 1, 1)), momentum)
    return out


def update(running, new, momentum):
    """Move a running statistic towards a new value."""
    if any_batch(new) and not any_batch(running.array):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
            "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, please "
            "see the functorch website for resources on how to patch your module to work with vmap"
        )
    write(running, running.array * (1 - momentum) + new.astype(running.array.dtype) * momentum)


def check_parameters(x, *parameters):
    """PyTorch's errors for parameters in another dtype than x: beside half precision they may be float32."""
    for p in parameters:
        dtype = x.dtype if p is None else p.dtype
        if dtype is not x.dtype and dtype != x.dtype:
            if dtype != np.float32:
                raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
            if x.dtype not in accumulate_wider:
                raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input**2) + eps) over the last dimensions, times ``weight`` (Zhang and Sennrich, 2019)."""
    shape, x = tuple(normalized_shape), array_of(input)
    check_slices(x, shape, "", weight=array_of(weight))
    wide = widened(input)
    eps = dtypes.finfo(dtypes.of[array_of(wide).dtype]).eps if eps is None else eps
    squares = reduce.mean(e.pow(wide, 2), tuple(range(-len(shape), 0)), True)
    out = mul(wide, e.rsqrt(plus(squares, eps)))
    return cast(out if weight is None else mul(out, weight), x.dtype)


# ---- vectors to a length


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """input / max(norm, eps), with the p-norm over ``dim``."""
    size = norm(input, p, dim, keepdim=True)
    return e.div(input, expand_to(e.clamp_min(size, eps), array_of(input).shape))


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along ``dim``; norms are at least ``eps``."""
    dtype, eps = dtypes.promote_types(x1.dtype, x2.dtype), number(eps, "cosine_similarity", "eps", None, "float")
    if not dtype.is_floating_point:
        common = dtype_word(array_of(cast(x1, dtype.np)))
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common}")
    x1, x2 = (x if x.is_floating_point() else cast(x, dtype.np) for x in (x1, x2))
    if x1.shape != x2.shape:
        shape = common_shape(x1.shape, x2.shape)
        x1, x2 = expand_to(x1, shape), expand_to(x2, shape)
    units = []
    for x in (x1, x2):
        size = clone(reduce.vector_norm(x, 2, dim, True))
        write(size, e.clamp_min(size.array, eps))  # the gradient does not see the lower bound, as in PyTorch
        units.append(e.div(x, size))
    return reduce.sum(mul(*units), dim)


def norm(input, p="fro", dim=None, keepdim=False, dtype=None, **names):
    """The p-norm of the elements over ``dim``, all by default; "fro" is 2."""
    if p == "nuc":
        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return p_norm("norm", input, 2 if p in ("fro", None) else p, dim, keepdim, dtype, names)


for function in (layer_norm, group_norm, batch_norm, instance_norm, rms_norm, normalize, cosine_similarity):
    register(function.__name__, "nn", function)
register("norm", "reduction", norm)
