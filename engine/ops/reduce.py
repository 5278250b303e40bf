"""Reductions: sums, means, extremes, norms, and what runs along a dimension.

In a rule ``axis`` is None (all dimensions) or a tuple, and ``keepdims`` says whether the result kept them; ``kept``
puts them back, so that the result broadcasts against the input.
"""

import builtins
import math

from ..arrays import dtypes
from ..arrays.batches import any_batch, not_batched, samples
from ..arrays.dispatch import xp_of
from ..arrays.dtypes import accumulate_wider, dtype_word
from ..arrays.kernels.indexing import dim_key, placed_along
from ..arrays.kernels.sums import extreme_along, log_of_running_sum, mean_array, sum_array
from ..arrays.quiet import hush, quiet, state
from ..arrays.selection import either
from ..arrays.warn import warn
from ..core.graph import mode, node_class
from ..core.linear import cast, reshape, sum_axes, sum_to, unsum
from ..core.record import array_of, record, record_outputs
from ..core.tensor import Tensor
from . import return_types
from .checks import check_floating, checked_dim, checked_dims, listed, number
from .elementwise import abs as absolute
from .elementwise import choose, eq, exp, maximum, minimum, sgn
from .rows import floating, pick, register, widened, with_asking
from .shape import join
from .writes import zeros_for

# ---- the derivatives

SumAll = node_class("SumBackward0", lambda g, shape: unsum(g, shape))
Sum = node_class("SumBackward1", lambda g, shape, axis, keepdims: unsum(g, shape, axis, keepdims))
MeanAll = node_class("MeanBackward0", lambda g, shape, n: unsum(share(g, n), shape))
Mean = node_class("MeanBackward1", lambda g, shape, axis, keepdims: unsum(
    share(g, count(shape, axis)), shape, axis, keepdims))  # fmt: skip


def nansum_rule(g, x, axis, keepdims):
    """The rule of sum, but 0 where x is nan."""
    number = array_of(eq(array_of(x), array_of(x))).astype(array_of(g).dtype)
    return unsum(g, number.shape, axis, keepdims) * number


NanSum = node_class("NansumBackward0", nansum_rule)


def share(g, n):
    """g / n; for half precision divided in float32: float16 holds no n above 65504."""
    dtype = array_of(g).dtype
    wide = array_of(g).itemsize == 2 and accumulate_wider.get(dtype)
    return cast(cast(g, wide) / n, dtype) if wide else g / n


def var_rule(g, x, axis, keepdims, free):
    away, g = x - mean(x, axis, True), kept(g, array_of(x).shape, axis, keepdims)
    if free <= 0:
        return g * choose(eq(away, 0), math.nan, array_of(away) * 0.0 + math.inf)
    return away * (g * (2.0 / free))


def std_rule(g, x, out, axis, keepdims, free):
    return var_rule(choose(eq(out, 0), 0.0, g / (out * 2.0)), x, axis, keepdims, free)


def std_again_rule(g, x, axis, keepdims, free):
    """The rule of std as one of several outputs, where the output cannot be saved: computed again."""
    out = std(x, axis, keepdim=keepdims, correction=count(array_of(x).shape, axis) - free)
    return std_rule(g, x, out, axis, keepdims, free)


def parts_rule(first):
    """The rule of (first, mean), from the rule of the first."""

    def rule(parts, x, axis, keepdims, free):
        into = first(parts[0], x, axis, keepdims, free) if 0 in parts else 0.0
        if 1 in parts:
            into = into + unsum(share(parts[1], count(array_of(x).shape, axis)), array_of(x).shape, axis, keepdims)
        return into

    return rule


Var = node_class("VarBackward0", var_rule)
Std = node_class("StdBackward0", std_rule)
VarMean = node_class("VarMeanBackward0", parts_rule(var_rule))
StdMean = node_class("StdMeanBackward0", parts_rule(std_again_rule))


def prod_rule(g, x, out, axis, keepdims):
    """The product of all others: out / x, or written out where there is a zero."""
    shape = array_of(x).shape
    if (samples(array_of(x)) != 0).all():
        return kept(g * out, shape, axis, keepdims) / x
    if axis is None:
        if not isinstance(g, Tensor) and not any_batch(x) and (x == 0).sum() > 1:
            return zeros_for(g, shape)
        return reshape(g * prod(left_out(reshape(x, (-1,)), 0), 1), shape)
    return kept(g, shape, axis, keepdims) * prod(left_out(x, axis[0]), axis[0] + 1)


def left_out(x, axis):
    """x with a new dimension before ``axis``, along which one element of that dimension after the other is a 1."""
    shape = array_of(x).shape
    n, after = shape[axis], (1,) * (len(shape) - axis - 1)
    one = xp_of(array_of(x)).eye(n, dtype=bool).reshape((n, n) + after)
    return choose(one, 1.0, reshape(x, shape[:axis] + (1,) + shape[axis:]))


ProdAll = node_class("ProdBackward0", prod_rule)
Prod = node_class("ProdBackward1", prod_rule)


def share_of(mask, g, axis):
    """g over how many there are where the mask holds: PyTorch's choice of a subgradient where extremes are equal."""
    return g / mask.sum(axis, keepdims=True).astype(array_of(g).dtype)


def evenly_all(g, x, out):
    """The cotangent of what is extreme among all elements; nan is."""
    mask = (array_of(x) == array_of(out)) | (array_of(x) != array_of(x))
    return choose(mask, share_of(mask, g, None), 0.0)


def evenly_along(g, x, out, axis, keepdims):
    """The same along axes; where PyTorch multiplies by the mask."""
    shape = array_of(x).shape
    mask = array_of(x) == kept(array_of(out), shape, axis, keepdims)
    return share_of(mask, kept(g, shape, axis, keepdims), axis) * mask.astype(array_of(g).dtype)


def aminmax_rule(parts, x, axis, keepdims):
    found = {0: array_of(x).min(axis, keepdims=keepdims), 1: array_of(x).max(axis, keepdims=keepdims)}
    into = [evenly_along(g, x, found[i], axis, keepdims) for i, g in parts.items()]
    return into[0] if len(into) == 1 else into[0] + into[1]


AMinMax = node_class("AminmaxBackward0", aminmax_rule)
MedianAll = node_class("MedianBackward0", evenly_all)


def place_along(g, indices, shape, axis, keepdims):
    """Zeros of a shape, with g where ``indices`` point along an axis."""
    if not shape:
        return g
    g, indices = kept(g, shape, axis, keepdims), kept(array_of(indices), shape, axis, keepdims)
    return record(PlaceAlong, placed_along(array_of(g), indices, shape, axis[0]), (g,), (indices, axis[0]))


def pick_along(a, indices, axis):
    """The elements where ``indices`` point along an axis, which stays."""
    x, indices = array_of(a), array_of(indices)
    return record(PickAlong, xp_of(x).take_along_axis(x, indices, axis), (a,), (indices, x.shape, axis))


Median = node_class("MedianBackward1", place_along)
PlaceAlong = node_class("ValueSelectingReductionBackward0", lambda g, indices, axis: pick_along(g, indices, axis))
PickAlong = node_class("GatherBackward0", lambda g, indices, shape, axis: place_along(g, indices, shape, (axis,), True))


def logsumexp_rule(g, x, out, axis, keepdims):
    shape = array_of(x).shape
    return kept(g, shape, axis, keepdims) * exp(x - kept(out, shape, axis, keepdims))


LogSumExp = node_class("LogsumexpBackward0", logsumexp_rule)


def norm_rule(g, x, out, p, axis, keepdims):
    """g * sgn(x) * (|x| / out)**(p - 1), and 0 where that is not defined."""
    shape = array_of(x).shape
    if p == 0:
        return None
    if p in (math.inf, -math.inf):
        size, out = absolute(array_of(x)), kept(array_of(out), shape, axis, keepdims)
        mask = (size == out) | (size != size)
        return sgn(x) * (share_of(mask, kept(g, shape, axis, keepdims), axis) * mask.astype(array_of(g).dtype))
    g, out = kept(g, shape, axis, keepdims), kept(out, shape, axis, keepdims)
    if p == 1:
        return sgn(x) * g
    if p == 2:
        return g * choose(eq(out, 0) & eq(x, x), 0.0, x / out)
    if p < 2:
        steep = choose(eq(x, 0), 0.0, sgn(x) * absolute(x) ** (p - 1))
    else:
        steep = x * absolute(x) ** (p - 2)
    return steep * choose(eq(out, 0), 0.0, g / out ** (p - 1))


VectorNorm = node_class("LinalgVectorNormBackward0", norm_rule)


def distance_rule(g, x, y, out, p, shape):
    return sum_to(norm_rule(g, x - y, out, p, None, False), shape) if p else zeros_for(g, shape)


Dist = node_class("DistBackward0", lambda g, x, y, out, p: distance_rule(g, x, y, out, p, array_of(x).shape),
                  lambda g, x, y, out, p: -distance_rule(g, x, y, out, p, array_of(y).shape))  # fmt: skip


def running_sum(a, axis, backwards):
    """``cumsum``, from the end if ``backwards``, as rules need it."""
    return record(CumSum, running(array_of(a), axis, backwards), (a,), (axis, backwards))


CumSum = node_class("CumsumBackward0", lambda g, axis, backwards: running_sum(g, axis, not backwards))


def cumprod_rule(g, x, out, axis):
    """Each element is a factor of all products from its own on: these without it, weighted by g and added up."""
    if not array_of(x).ndim:
        return g
    if (samples(array_of(x)) != 0).all():
        return running_sum(g * out, axis, True) / x
    shape = array_of(x).shape
    n, after = shape[axis], (1,) * (len(shape) - axis - 1)
    later = xp_of(array_of(x)).tri(n, dtype=array_of(x).dtype).T.reshape((n, n) + after)
    g = reshape(g, shape[:axis] + (1,) + shape[axis:])
    return sum_axes(g * later * cumprod(left_out(x, axis), axis + 1), axis + 1)


def logcumsumexp_rule(g, x, out, axis):
    """The sum, from each place on, of g * exp(x - out).

    Sums of 2, 4, 8, ... places, each of the sums of half as many times exp(a difference of neighbours in out), which
    is at most 1.
    """
    shape, far, least = array_of(x).shape, 1, dtypes.finfo(dtypes.of[array_of(x).dtype]).min
    x, out = choose(eq(x, -math.inf), -math.inf, x), choose(eq(out, -math.inf), least, out)
    part = lambda a, *ends: pick(a, dim_key(axis, slice(*ends)))  # noqa: E731
    while shape and far < shape[axis]:
        fade = exp(part(out, None, -far) - part(out, far, None))
        g = join([part(g, None, -far) + part(g, far, None) * fade, part(g, -far, None)], axis)
        far *= 2
    return g * exp(x - out)


LogCumSumExp = node_class("LogcumsumexpBackward0", logcumsumexp_rule)
CumProd = node_class("CumprodBackward0", cumprod_rule)

# ---- arguments


def axes(dim, ndim):
    """``dim`` (None, an int or several) as axes counted from the front; None for all, and for the one of a scalar."""
    if dim is None:
        return None
    if type(dim) is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    found = checked_dims(dim if isinstance(dim, (tuple, list)) else (dim,), ndim)
    return found if found and ndim else None


def count(shape, axis):
    """Return the number of elements that are reduced to one."""
    return math.prod(shape) if axis is None else math.prod(shape[i] for i in axis)


def kept(a, shape, axis, keepdims):
    """A reduced value with its dimensions put back, of size 1; a value without dimensions broadcasts as it is."""
    if axis is None or keepdims:
        return a
    return reshape(a, tuple(1 if i in axis else n for i, n in enumerate(shape)))


def converted(name, input, dtype):
    """The array of the input in ``dtype``; by default integers and bools in int64, which the result then has."""
    x = array_of(input)
    if dtype is None:
        return x if dtypes.of[x.dtype].is_floating_point else x.astype(dtypes.int64.np, copy=False)
    dtype = dtypes.given(dtype, name)
    if isinstance(input, Tensor) and input.node is not None and mode.enabled and not dtype.is_floating_point:
        raise RuntimeError(f"Autograd not support dtype: {dtype_word(x.astype(dtype.np))}")
    return x.astype(dtype.np, copy=False)


def record_converted(Backward, out, inputs, saved):
    """``record``, for a computation in the dtype of ``out``: the cotangents of inputs of another are cast back."""
    dtype = out.dtype
    for a in inputs:
        if (a.array if isinstance(a, Tensor) else a).dtype is not dtype:
            return record(Backward, out, inputs, saved, lambda: tuple(map(cast_back, Backward.rules, inputs)))
    return record(Backward, out, inputs, saved)


def cast_back(rule, a):
    dtype = array_of(a).dtype
    return lambda g, *saved: cast(rule(g, *saved), dtype)


def settled(out):
    """A result in memory of its own, its elements in order however those of the input lie, as PyTorch's are."""
    return out if out.ndim < 2 or out.flags.c_contiguous else out.copy()


# ---- sums and moments


def summing(unusual):
    def sum(input, dim=None, keepdim=False, *, dtype=None, **names):
        """The sum over ``dim``, all dimensions by default.  Integers and bools are added up as int64."""
        if state() not in quiet:
            hush()
        if dim is None and dtype is None and not keepdim and not names and isinstance(input, Tensor):
            x = input.array
            out = sum_array(x)
            if out.dtype is x.dtype:
                p = input.node
                return Tensor(out, SumAll((p,), (x.shape,)) if p is not None and mode.enabled else None)
        try:
            dim, axis, keepdim = usual(input, dim, keepdim, **names)
        except (TypeError, AttributeError):
            return unusual(input, dim, keepdim, dtype=dtype, **names)
        x = converted("sum", input, dtype)
        out = settled(sum_array(x, axis, keepdim).astype(x.dtype, copy=False))
        if dim is None and not keepdim:
            return record_converted(SumAll, out, (input,), (x.shape,))
        return record_converted(Sum, out, (input,), (x.shape, axis, keepdim))

    return sum


def averaging(unusual):
    def mean(input, dim=None, keepdim=False, *, dtype=None, **names):
        """The mean over ``dim``, all dimensions by default.  RuntimeError for integers without a floating ``dtype``."""
        if state() not in quiet:
            hush()
        if dim is None and dtype is None and not keepdim and not names and isinstance(input, Tensor):
            x = input.array
            if x.dtype in dtypes.differentiable:
                p, out = input.node, mean_array(x)
                return Tensor(out, MeanAll((p,), (x.shape, x.size)) if p is not None and mode.enabled else None)
        try:
            dim, axis, keepdim = usual(input, dim, keepdim, **names)
        except (TypeError, AttributeError):
            return unusual(input, dim, keepdim, dtype=dtype, **names)
        x, dtype = array_of(input), dtype and dtypes.given(dtype, "mean")
        if not (dtype or dtypes.of[x.dtype]).is_floating_point:
            raise RuntimeError(
                f"mean(): could not infer output dtype. {'Optional' if dtype else 'Input'} dtype must be either a "
                f"floating point or complex dtype. Got: {dtype_word(x.astype(dtype.np) if dtype else x)}"
            )
        x = converted("mean", input, dtype)
        out = settled(mean_array(x, axis, keepdim))
        if dim is None and not keepdim:
            return record_converted(MeanAll, out, (input,), (x.shape, x.size))
        return record_converted(Mean, out, (input,), (x.shape, axis, keepdim))

    return mean


def usual(input, dim, keepdim, *, axis=None, keepdims=False):
    """(dim, axes, keepdim) of a call that needs no door, NumPy's names among it; an error for any other."""
    if (dim is not None is not axis) or type(keepdim) is not bool or type(keepdims) is not bool:
        raise TypeError
    dim = axis if dim is None else dim
    return dim, axes(dim, array_of(input).ndim), keepdim or keepdims


sum, mean = with_asking(summing, None), with_asking(averaging, None)


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum over ``dim`` of what is not nan."""
    x, y = array_of(input), converted("nansum", input, dtype)
    axis = axes(dim, x.ndim)
    out = settled(sum_array(either.call(x == x, y, 0), axis, keepdim).astype(y.dtype, copy=False))
    return record_converted(NanSum, out, (input,), (x, axis, keepdim))


def spread(name, Backward, doc):
    """``var``, ``std``, or one of them with the mean; added up in float64."""
    root, pair = name.startswith("std"), name.endswith("mean")

    def op(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        x = array_of(input)
        axis = axes(dim, x.ndim)
        free = count(x.shape, axis) - number(correction, name, "correction")
        if free <= 0:
            warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
                "(input numel divided by output numel).",
            )
        wide = x.astype(dtypes.float64.np)
        middle = mean_array(wide, axis, True)
        away = wide - middle
        out = settled((away * away).sum(axis, keepdims=keepdim) / builtins.max(free, 0))
        middle = settled(middle.reshape(out.shape)).astype(x.dtype)
        out = (xp_of(out).sqrt(out) if root else out).astype(x.dtype)
        if pair:
            return record_outputs(Backward, (out, middle), (input,), (x, axis, keepdim, free))
        return record(Backward, out, (input,), (x, out, axis, keepdim, free) if root else (x, axis, keepdim, free))

    op.__name__, op.__doc__ = name, doc
    return op


var = spread("var", Var, "The variance over ``dim``: the sum of squared distances from the mean / (count - "
             "``correction``, which is 1).")  # fmt: skip
std = spread("std", Std, "The square root of ``var``.")
var_mean = spread("var_mean", VarMean, "(variance, mean) over ``dim``.")
std_mean = spread("std_mean", StdMean, "(standard deviation, mean) over ``dim``.")


# ---- products


def prod(input, dim=None, keepdim=False, *, dtype=None):
    """The product over ``dim`` (one dimension, or all).  Integers and bools are multiplied as int64."""
    x = converted("prod", input, dtype)
    axis = axes(dim, x.ndim)
    out = settled(x.prod(axis, accumulate_wider.get(x.dtype, x.dtype), keepdims=keepdim).astype(x.dtype))
    Backward = ProdAll if dim is None else Prod
    return record_converted(Backward, out, (input,), (x, out, axis, keepdim))


# ---- extremes


def extremes(name, pairwise):
    """``max`` or ``min``: of everything; along a dimension, with the indices; or of two tensors."""
    title = name.capitalize()
    All = node_class(title + "Backward1", evenly_all)
    Along = node_class(title + "Backward0", place_along)
    Result = getattr(return_types, name)

    def op(input, dim=None, keepdim=False, *, other=None):
        if isinstance(dim, Tensor) or other is not None:
            return pairwise(input, dim if other is None else other)
        x = array_of(input)
        axis = axes(dim, x.ndim)
        if dim is None:
            out = getattr(x, name)()
            return record(All, out, (input,), (x, out))
        if x.ndim:
            out, indices = map(settled, extreme_along(name, x, axis[0], keepdim))
        else:
            out, indices = x.copy(), arg(name, x, axis, keepdim)
        return Result(record(Along, out, (input,), (indices, x.shape, axis, keepdim)), as_input(indices, input))

    return register(name, "reduction", op)


def arg(name, x, axis, keepdims):
    """The indices of the extremes, the first one where several are equal."""
    if not x.ndim:
        return xp_of(x).zeros((), dtypes.int64.np)
    return settled(getattr(xp_of(x), "arg" + name)(x, axis and axis[0], keepdims=keepdims))


def as_input(out, input):
    """An array that has no gradient, as a Tensor if the input was one."""
    return Tensor(out) if isinstance(input, Tensor) else out


max = extremes("max", maximum)
min = extremes("min", minimum)


def extreme(name, plain):
    """``amax`` or ``amin``: over one or several dimensions, values alone."""
    Backward = node_class(name.capitalize() + "Backward0", evenly_along)

    def op(input, dim=(), keepdim=False):
        x = array_of(input)
        axis = axes(dim, x.ndim)
        out = settled(getattr(x, plain)(axis, keepdims=keepdim))
        return record(Backward, out, (input,), (x, out, axis, keepdim))

    return register(name, "reduction", op)


amax = extreme("amax", "max")
amin = extreme("amin", "min")


def arg_extreme(name, plain):
    """``argmax`` or ``argmin``: the index of the extreme, in the flattened input by default."""

    def op(input, dim=None, keepdim=False):
        x = array_of(input)
        return as_input(arg(plain, x, axes(dim, x.ndim), keepdim), input)

    return register(name, "reduction", op)


argmax = arg_extreme("argmax", "max")
argmin = arg_extreme("argmin", "min")


def aminmax(input, *, dim=None, keepdim=False):
    """(min, max) in one call."""
    x = array_of(input)
    axis = axes(dim, x.ndim)
    outs = settled(x.min(axis, keepdims=keepdim)), settled(x.max(axis, keepdims=keepdim))
    return return_types.aminmax(*record_outputs(AMinMax, outs, (input,), (x, axis, keepdim)))


def median(input, dim=None, keepdim=False):
    """The middle element (the lower one of two); along a dimension also its index.  nan if there is one."""
    x = array_of(input)
    axis = axes(dim, x.ndim)
    if dim is None:
        flat = x.reshape((-1,))
        out = flat[middle_index(flat, 0)[0]] if x.size else xp_of(x).full((), math.nan, x.dtype)
        return record(MedianAll, out, (input,), (x, out))
    at = middle_index(x, axis[0]) if x.ndim else xp_of(x).zeros((), dtypes.int64.np)
    out = xp_of(x).take_along_axis(x, at, axis[0]) if x.ndim else x.copy()
    if not keepdim and x.ndim:
        at, out = at.squeeze(axis), out.squeeze(axis)
    at, out = settled(at), settled(out)
    return return_types.median(record(Median, out, (input,), (at, x.shape, axis, keepdim)), as_input(at, input))


def middle_index(x, axis):
    """Return the index of the median along an axis, which stays: the first nan, else the (lower) middle in order."""
    xp = xp_of(x)
    order = xp.argsort(x, axis=axis, kind="stable")
    middle = order.take([(x.shape[axis] - 1) // 2], axis)
    nan = x != x
    return xp.where(nan.any(axis, keepdims=True), nan.argmax(axis, keepdims=True), middle)


# ---- logsumexp and norms


def logsumexp(input, dim, keepdim=False):
    """log(sum(exp(x))) over ``dim``, without overflow."""
    input = cast(input, floating(array_of(input).dtype))
    x = array_of(input)
    axis = axes(dim, x.ndim)
    out = log_of_sum(widened(x), axis).astype(x.dtype)
    out = settled(out if keepdim else out.squeeze(axis))
    return record(LogSumExp, out, (input,), (x, out, axis, keepdim))


def log_of_sum(x, axis):
    """log(sum(exp(x))) of an array, with the axes kept."""
    xp = xp_of(x)
    if not x.size:
        return xp.log(x.sum(axis, keepdims=True))
    top = x.max(axis, keepdims=True)
    top = xp.where(xp.isinf(top), 0, top).astype(x.dtype)
    return xp.log(xp.exp(x - top).sum(axis, keepdims=True)) + top


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """(sum |x|**ord)**(1/ord) over ``dim``: the number of nonzeros for 0, the extremes of |x| for inf and -inf."""
    input, x, p = x, array_of(x), number(ord, "linalg_vector_norm", "ord", 2)
    axis = axes(dim, x.ndim)
    if not dtypes.of[x.dtype].is_floating_point:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype_word(x)}"
        )
    x = converted("linalg_vector_norm", input, dtype)
    if not x.size and (p < 0 or p == math.inf):
        if axis is None:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {float(p):g} norm on an empty tensor because the operation "
                "does not have an identity"
            )
        for i in axis:
            if x.shape[i] == 0:
                raise RuntimeError(
                    f"linalg.vector_norm cannot compute the {float(p):g} norm on the dimension {i}because this "
                    "dimension is empty and the operation does not have an identity"
                )
    out = settled(p_norm_of(widened(x), p, axis, keepdim).astype(x.dtype))
    return record_converted(VectorNorm, out, (input,), (x, out, p, axis, keepdim))


def p_norm_of(x, p, axis, keepdims):
    a = absolute(x)
    if p in (math.inf, -math.inf):
        return getattr(a, "max" if p > 0 else "min")(axis, keepdims=keepdims)
    if p in (0, 1):
        return (a if p else x != 0).sum(axis, keepdims=keepdims)
    return (x * x if p == 2 else a**p).sum(axis, keepdims=keepdims) ** (1.0 / p)


def dist(input, other, p=2):
    """The p-norm of input - other, over all elements."""
    x, y, p = array_of(input), array_of(other), number(p, "dist", "p")
    away = array_of(absolute(Tensor(x) - Tensor(y)))
    out = array_of(vector_norm(away, p))
    return record(Dist, out, (input, other), (x, y, out, p))


# ---- along a dimension


def cumsum(input, dim, *, dtype=None):
    """The sums of the first 1, 2, ... elements along ``dim``.  Integers and bools are added up as int64."""
    axis, x = checked_dim(dim, array_of(input).ndim), converted("cumsum", input, dtype)
    return record_converted(CumSum, running(x, axis, False), (input,), (axis, False))


def running(x, axis, backwards):
    """The running sums of an array, added up in float64 as PyTorch does."""
    if not x.ndim:
        return x.copy()
    flip = xp_of(x).flip if backwards else lambda x, _: x
    return settled(flip(flip(x, axis).cumsum(axis, wide(x)).astype(x.dtype), axis))


def wide(x):
    """The dtype in which PyTorch accumulates along a dimension: float64 for floats, int64 for integers."""
    return dtypes.float64.np if dtypes.of[x.dtype].is_floating_point else dtypes.int64.np


def cumprod(input, dim, *, dtype=None):
    """The products of the first 1, 2, ... elements along ``dim``.  Integers and bools are multiplied as int64."""
    axis, x = checked_dim(dim, array_of(input).ndim), converted("cumprod", input, dtype)
    out = settled(x.cumprod(axis, wide(x)).astype(x.dtype)) if x.ndim else x.copy()
    return record_converted(CumProd, out, (input,), (x, out, axis))


def logcumsumexp(input, dim):
    """log(sum(exp(x))) of the first 1, 2, ... elements along ``dim``, without overflow."""
    x = array_of(input)
    axis = checked_dim(dim, x.ndim)
    check_floating(x, "logcumsumexp_out_cpu")
    out = settled(log_of_running_sum(x, axis, wide(x))) if x.ndim else x.copy()
    return record(LogCumSumExp, out, (input,), (x, out, axis))


# ---- counts and tests


def count_nonzero(input, dim=None, *more):
    """Count the elements that are not zero, over ``dim``; int64."""
    x, dim = array_of(input), listed(dim, more, "count_nonzero", "dim") if more else dim
    return as_input((x != 0).sum(axes(dim, x.ndim)), input)


def bincount(input, weights=None, minlength=0):
    """Count each of 0, 1, ... in a 1-d tensor of integers, or add up the ``weights`` of each."""
    x, w = array_of(input), array_of(weights)
    not_batched("vmap: bincount is not there for batched arrays: add up one_hot(input) instead", x, w,
                error=NotImplementedError)  # fmt: skip
    if x.size and x.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    out = xp_of(x).bincount(x, w, minlength)
    return as_input(out if w is None else out.astype(w.dtype if w.dtype == dtypes.float32.np else out.dtype), input)


def quantifier(name):
    """``all`` or ``any``; the result is bool, of uint8 it is uint8."""

    def op(input, dim=None, keepdim=False):
        x = array_of(input)
        out = x != 0
        if dim or not isinstance(dim, (tuple, list)):
            out = getattr(out, name)(axes(dim, x.ndim), keepdims=keepdim)
        return as_input(out.astype(x.dtype) if x.dtype == dtypes.uint8.np else out, input)

    return register(name, "reduction", op)


all = quantifier("all")
any = quantifier("any")

for function in (sum, nansum, mean, var, std, prod, median, logsumexp, vector_norm, dist, cumsum, cumprod, logcumsumexp,
                 count_nonzero):  # fmt: skip
    register(function.__name__, "reduction", function)
