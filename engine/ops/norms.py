"""Normalizations: groups of elements brought to mean 0 and variance 1, or vectors to a length, then weight and bias."""

import math

from ..arrays import dtypes
from ..arrays.batches import any_batch
from ..arrays.dtypes import accumulate_wider
from ..arrays.kernels import norms as kernels
from ..arrays.shapes import common_shape
from ..core.graph import node_class
from ..core.linear import cast, clone, contiguous, reshape, sum_axes, sum_to
from ..core.record import array_of, record
from ..core.tensor import Tensor
from ..core.versions import write
from . import elementwise as e
from . import reduce
from .elementwise import mul
from .linalg import matrix_norm
from .rows import register, widened
from .shape import expand_to, repeat, swap, unsqueeze_at, view_to
from .with_numbers import plus
from .writes import zeros_for

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
    out, known, mean, variance = kernels.normalized(x, w, b, shapes, axis, eps)
    return record(Backward, out, (input, weight, bias), (x, w, shapes, axis, eps, known)), mean, variance


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Each slice of the last dimensions, of shape ``normalized_shape``, normalized; weight and bias have that shape."""
    shape, x = tuple(normalized_shape), array_of(input)
    n = math.prod(shape)
    rows = x.size // n if n else 0, n
    return normalized(LayerNorm, input, weight, bias, (shape, (n,), rows, rows), (-1,), eps)[0]


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """The channels (dimension 1) of each sample normalized in ``num_groups`` groups; weight and bias: one a channel."""
    x = array_of(input)
    n, channels = x.shape[:2]
    split = (n, num_groups, math.prod(x.shape[1:]) // num_groups)
    shapes = (channels,), (channels, 1), (n, channels, math.prod(x.shape[2:])), split
    return normalized(GroupNorm, input, weight, bias, shapes, (2,), float(eps))[0]


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):  # fmt: skip
    """Each channel (dimension 1) of each sample normalized by itself, or by the running statistics."""
    (n, channels, *size), given = input.shape, (running_mean, running_var, weight, bias)
    copies = [v if v is None else repeat(v, (n,)) for v in given]
    together = view_to(contiguous(input), (1, n * channels, *size))
    out = batch_norm(together, *copies, use_input_stats, float(momentum), float(eps))
    for v, copy in zip(given[:2], copies) if use_input_stats else ():
        if v is not None:
            v.copy_(reduce.mean(view_to(copy, (n, channels)), 0))
    return view_to(out, (n, channels, *size))


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Each channel (dimension 1) normalized: over the batch in ``training``, else by the running statistics."""
    x = array_of(input)
    channels = x.shape[1] if x.ndim > 1 else 0
    shape = (channels, *(1,) * (x.ndim - 2))
    if not training:
        wide = accumulate_wider.get(x.dtype, x.dtype)
        middle = array_of(running_mean).reshape(shape).astype(wide)  # a copy: training may go on before
        rate = e.rsqrt(array_of(running_var).reshape(shape).astype(wide) + eps)
        out = (x - middle) * rate
        out = out if weight is None else out * array_of(weight).reshape(shape)
        out = cast(out if bias is None else out + array_of(bias).reshape(shape), x.dtype)
        return record(FixedNorm, out, (input, weight, bias), (x, array_of(weight), shape, middle, rate))
    split, thin, axis = x.shape, (channels,), (0,)
    if x.ndim > 2:
        split, thin, axis = (*x.shape[:2], math.prod(x.shape[2:])), (channels, 1), (0, 2)
    out, middle, variance = normalized(BatchNorm, input, weight, bias, ((channels,), thin, split, split), axis, eps)
    n = x.size // channels if channels else 0
    if not n:
        return out
    update(running_mean, middle.reshape(-1), momentum)
    update(running_var, variance.reshape(-1) * (n / max(n - 1, 1)), momentum)
    return out


def update(running, new, momentum):
    """Move a running statistic, if there is one, towards a new value."""
    if running is None:
        return
    if any_batch(new) and not any_batch(running.array):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
            "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, please "
            "see the functorch website for resources on how to patch your module to work with vmap"
        )
    write(running, running.array * (1 - momentum) + new.astype(running.array.dtype) * momentum)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input**2) + eps) over the last dimensions, times ``weight`` (Zhang and Sennrich, 2019)."""
    shape, x = tuple(normalized_shape), array_of(input)
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
    dtype = dtypes.promote_types(x1.dtype, x2.dtype)
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


def cdist(x1, x2, p=2.0, compute_mode=None):
    """The p-norm of each row of x1 minus each row of x2."""
    x, y = array_of(x1), array_of(x2)
    away = apart(Tensor(x), Tensor(y))
    # of no columns: no largest one
    out = array_of(reduce.vector_norm(away, p if away.shape[-1] else 2, -1))
    return record(Cdist, out, (x1, x2), (x, y, out, p))


def apart(x, y):
    """Each row of x minus each row of y."""
    return unsqueeze_at(x, x.ndim - 1) - unsqueeze_at(y, y.ndim - 2)


def cdist_rule(g, x, y, out, p):
    """g times the slope of each distance, added up over the rows of y; 0 at equal rows."""
    if p == 0:
        return zeros_for(g, array_of(x).shape)
    away, n = apart(x, y), array_of(out).ndim
    g, out = unsqueeze_at(g, n), unsqueeze_at(out, n)
    if p == 2:
        slope = e.choose(e.eq(out, 0), 0.0, away / out)
    elif p == 1:
        slope = e.sgn(away)
    elif p == math.inf:  # every largest one has all of g, in PyTorch too
        slope = e.sgn(away) * e.eq(e.abs(away), out)
    else:
        slope = e.choose(e.eq(away, 0), 0.0, e.sgn(away) * (e.abs(away) / out) ** (p - 1))
    return sum_to(sum_axes(g * slope, (n - 1,)), array_of(x).shape)


def other_way(a):
    """The distances of the rows of y from those of x."""
    n = array_of(a).ndim
    return swap(a, n - 2, n - 1)


Cdist = node_class(
    "CdistBackward0", cdist_rule, lambda g, x, y, out, p: cdist_rule(other_way(g), y, x, other_way(out), p)
)


def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The p-norm of the elements over ``dim``, all by default; "fro" is 2."""
    if p == "nuc":
        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return reduce.vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


for function in (layer_norm, group_norm, batch_norm, instance_norm, rms_norm, normalize, cosine_similarity, cdist):
    register(function.__name__, "nn", function)
register("norm", "reduction", norm)
