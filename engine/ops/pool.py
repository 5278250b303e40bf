"""Pooling: the maximum or the mean of what a kernel sees, at each of its places, and of windows that cover all evenly.

Over one dimension they are those over two, of which the first has one element: so PyTorch has it, in the graph too.
"""

import operator
from functools import lru_cache
from itertools import starmap
from math import inf, prod

from ..arrays import dtypes
from ..arrays.dispatch import xp_of
from ..arrays.kernels import pool as kernels
from ..arrays.kernels.conv import Window, reach
from ..arrays.kernels.sums import row_starts, sum_array
from ..core.graph import mode, node_class
from ..core.linear import in_order, place, reshape
from ..core.record import array_of, record, register
from ..core.tensor import Tensor
from . import reduce
from .checks import check_floating, check_not_bool
from .conv import numbers
from .losses import scatter
from .shape import squeeze_one, unsqueeze_at

# ---- the maximum


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum under a kernel that moves over (N, C, H, W), or without N; nan is larger than everything.

    ``return_indices``: also where it is, as an index into the flattened H * W.
    """
    x, given = array_of(input), arguments("max_pool2d", kernel_size, stride, padding, dilation)
    window = pool_window("max_pool2d", x.shape, *given, bool(ceil_mode))
    check_not_bool(x, "max_pool2d")
    taps = kernels.taps_of(x, window, 0 if window.padded == window.sizes else lowest(x.dtype))
    ranks = kernels.tap_ranks(xp_of(x), window)
    return maxima(MaxPool, input, taps, ranks, window.counts, window.disjoint, return_indices)


def lowest(dtype):
    """The smallest number of a type."""
    return -inf if dtypes.of[dtype].is_floating_point else dtypes.iinfo(dtypes.of[dtype]).min


def maxima(Backward, input, taps, ranks, counts, disjoint, return_indices):
    """The maximum of the taps (positions in the kernel, planes, places), and where in the plane it is.

    Of equal ones the first counts, and of nan the last, as in PyTorch.
    """
    x = array_of(input)
    shape = (*x.shape[:-2], *counts)
    if not return_indices and (not isinstance(input, Tensor) or input.node is None or not mode.enabled):
        return record(Backward, taps.max(0).reshape(shape), (input,))
    best, index = kernels.largest(taps, ranks, x.shape[-2] * x.shape[-1])
    index = index.reshape(shape)
    out = record(Backward, best.reshape(shape), (input,), (x.shape, index, disjoint))
    if not return_indices:
        return out
    index = index.astype("int64")
    return out, Tensor(index) if isinstance(input, Tensor) else index


def max_rule(g, shape, index, disjoint):
    """g at the positions of the maxima, of which none comes twice if the windows are disjoint."""
    index = array_of(index)
    if prod(shape[:-2]) != 1:
        index = index + row_starts(xp_of(index), shape[:-2], shape[-2] * shape[-1], True)[..., None]
    return scatter(g, shape, index) if disjoint else reshape(place(g, (prod(shape),), (index,)), shape)


MaxPool = node_class("MaxPool2DWithIndicesBackward0", max_rule)
AdaptiveMaxPool = node_class("AdaptiveMaxPool2DBackward0", max_rule)

# ---- the mean: the sum under the kernel times a weight, which is a number or one for each place


def average(input, weights, window):
    weights = array_of(weights)
    return record(AvgPool, kernels.window_sums(array_of(input), weights, window), (input,), (weights, window))


def spread_average(g, weights, window):
    weights = array_of(weights)
    return record(SpreadAverage, kernels.window_spread(array_of(g), weights, window), (g,), (weights, window))


AvgPool = node_class("AvgPool2DBackward0", lambda g, weights, window: spread_average(g, weights, window))
SpreadAverage = node_class("AvgPool2DBackwardBackward0", lambda g, weights, window: average(g, weights, window))


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """The mean under a kernel that moves over (N, C, H, W), or without N.

    The sum is divided by the number of elements, those of the padding included or not, or by ``divisor_override``.
    """
    x, given = array_of(input), arguments("avg_pool2d", kernel_size, stride, padding)
    window = pool_window("avg_pool2d", x.shape, *given, 1, bool(ceil_mode))
    check_floating(x, "avg_pool2d")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if divisor_override is not None:
        return average(input, 1.0 / divisor_override, window)
    return average(input, kernels.mean_weights(xp_of(x), window, bool(count_include_pad), x.dtype), window)


# ---- adaptive pooling: so many windows, which cover the array evenly and differ in size by one at most


def adaptive_counts(name, shape, output_size):
    """The sizes of the output, of which None stays as it is; RuntimeError in PyTorch's words for what does not fit."""
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * 2
    if len(shape) <= len(given) and isinstance(output_size, (tuple, list)):
        raise ValueError(f"Input dimension should be at least {len(given) + 1}")
    if len(given) != 2 and "max" in name:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be 2")
    if len(given) != 2:
        raise RuntimeError(f"{name}: output_size must be 2")
    counts = tuple(have if want is None else operator.index(want) for want, have in zip(given, shape[-2:]))
    if len(shape) not in (3, 4):
        got = f"got: {list(shape)}" if "max" in name else f"got {list(shape)}"
        raise RuntimeError(f"{name}(): Expected 3D or 4D tensor, but {got}")
    if min(counts) < 0 and "max" in name:
        shape = [*shape[:-2], *counts]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(counts)}: {shape}")
    if min(counts) < 0:
        received = ", ".join(map(str, counts))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{received}}}"
        )
    for d in range(len(shape) - 3, len(shape)):
        if not shape[d]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {d} being empty"
            )
    return counts


def adaptive_avg_pool2d(input, output_size):
    """The means of (N, C, H, W), or without N, in ``output_size`` windows, which cover it evenly."""
    x = array_of(input)
    counts = adaptive_counts("adaptive_avg_pool2d", x.shape, output_size)
    if counts == (1, 1):
        return reduce.mean(input, (-1, -2), True)
    check_floating(x, "adaptive_avg_pool2d")
    key, weights = kernels.adaptive_key(xp_of(x), x.shape[-2:], counts)
    weights = weights.astype(x.dtype)
    return record(AdaptiveAvgPool, in_order(sum_array(x[key] * weights, (-4, -3))), (input,), (x.shape, key, weights))


def adaptive_rule(g, shape, key, weights):
    counts = array_of(g).shape[-2:]
    return place(reshape(g, (*shape[:-2], 1, 1, *counts)) * weights, shape, key)


AdaptiveAvgPool = node_class("AdaptiveAvgPool2DBackward0", adaptive_rule)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The maxima of (N, C, H, W), or without N, in ``output_size`` windows, which cover it evenly."""
    x = array_of(input)
    counts = adaptive_counts("adaptive_max_pool2d", x.shape, output_size)
    check_floating(x, "adaptive_max_pool2d")
    key, _ = kernels.adaptive_key(xp_of(x), x.shape[-2:], counts)
    taps = x[key].transpose(-4, -3, *range(x.ndim - 2), -2, -1)
    taps = in_order(taps.reshape(prod(taps.shape[:2]), prod(x.shape[:-2]), prod(counts)))
    ranks = kernels.adaptive_ranks(xp_of(x), x.shape[-2:], counts)
    return maxima(AdaptiveMaxPool, input, taps, ranks, counts, False, return_indices)


# ---- the window


@lru_cache(maxsize=256)
def pool_window(name, shape, kernel_size, stride, padding, dilation, ceil_mode):
    """The window of a pooling over the last two dimensions; RuntimeError in PyTorch's words for what does not fit."""
    given = zip(ARGUMENTS, (kernel_size, stride, padding, dilation))
    kernel, stride, padding, dilation = (one_each(name, what, value) for what, value in given)
    if name == "max_pool2d" and len(shape) not in (3, 4):
        raise RuntimeError("non-empty 3D or 4D (batch mode) tensor expected for input")
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    for p, k, d in zip(padding, kernel, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > max(d * (k - 1) + 1, 0) // 2 and k > 0 and d > 0:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    for what, a, (h, w) in (("kernel size", "k", kernel), ("stride", "d", stride), ("dilation", "dilation", dilation)):
        if min(h, w) <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got {a}H: {h} {a}W: {w}")
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            + str(list(shape))
        )
    sizes = shape[-2:]
    counts = tuple(starmap(place_count, zip(sizes, reach(kernel, dilation), stride, padding, (ceil_mode,) * 2)))
    if min(counts) < 1:
        c, h, w = shape[-3:]
        raise RuntimeError(
            f"Given input size: ({c}x{h}x{w}). Calculated output size: ({c}x{counts[0]}x{counts[1]}). Output size is "
            "too small"
        )
    return Window(sizes, counts, kernel, stride, padding, dilation)


def place_count(size, reach, stride, padding, ceil_mode):
    """How many places a kernel has in one dimension; with ``ceil_mode`` also where it reaches out at the end."""
    room = size + 2 * padding - reach
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - (ceil_mode and (count - 1) * stride >= size + padding)


ARGUMENTS = ("kernel_size", "stride", "padding", "dilation")  # of a pooling, from position 2 on


def one_each(name, what, value):
    """A number for each of two dimensions."""
    value = (value,) if isinstance(value, int) else value
    if len(value) not in (1, 2):
        either = "be either" if (name, what) == ("max_pool2d", "dilation") else "either be"
        omitted = "omitted, " if what == "stride" else ""
        raise RuntimeError(f"{name}: {what} must {either} {omitted}a single int, or a tuple of two ints")
    return value * 2 if len(value) == 1 else value


def arguments(name, kernel_size, stride, *more):
    """The arguments that say how the kernel moves, as integers or tuples of them."""
    stride = kernel_size if stride is None or stride == () or stride == [] else stride
    values = (kernel_size, stride, *more)
    if {*map(type, values)} == {int}:
        return values
    return [
        v if type(v) is int else numbers(f"{name}(): argument '{a}' (position {i})", v)
        for i, (a, v) in enumerate(zip(ARGUMENTS, values), 2)
    ]


# ---- over one dimension


def as_plane(input):
    """(..., L) -> (..., 1, L)"""
    return unsqueeze_at(input, array_of(input).ndim - 1)


def as_line(out):
    """(..., 1, L) -> (..., L), of each result."""
    return tuple(map(as_line, out)) if isinstance(out, tuple) else squeeze_one(out, array_of(out).ndim - 2)


def single(name, what, value, message="{}() argument '{}' should contain one int (got {})"):
    """The number of an argument that is one or a tuple of one."""
    value = (value,) if isinstance(value, int) else value
    if len(value) != 1:
        raise RuntimeError(message.format(name, what, len(value)))
    return value[0]


def check_lines(name, input):
    ndim = array_of(input).ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {name})"
        )


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum under a kernel that moves over (N, C, L), or without N; see ``max_pool2d``."""
    x = array_of(input)
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            + str(list(x.shape))
        )
    message = "{}() {} must be an int, list of ints or tuple of ints of size 1 but got size {}"
    given = zip(ARGUMENTS, arguments("max_pool1d", kernel_size, stride, padding, dilation))
    given = {what: single("max_pool1d", what, value, message) for what, value in given}
    for what, value in given.items():
        if value <= 0 and what != "padding":
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    kernel, stride, padding, dilation = given.values()
    if padding < 0 and not return_indices:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2 and not return_indices:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}"
        )
    count = place_count(x.shape[-1], dilation * (kernel - 1) + 1, stride, padding, ceil_mode)
    if count < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")
    if not return_indices:
        check_floating(x, "max_pool1d_impl")
    moves = (1, kernel), (1, stride), (0, padding), (1, dilation)
    return as_line(max_pool2d(as_plane(input), *moves, ceil_mode, return_indices))


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean under a kernel that moves over (N, C, L), or without N; see ``avg_pool2d``."""
    check_lines("avg_pool1d", input)
    given = zip(ARGUMENTS, arguments("avg_pool1d", kernel_size, stride, padding))
    kernel, stride, padding = (single("avg_pool1d", what, value) for what, value in given)
    moves = (1, kernel), (1, stride), (0, padding)
    return as_line(avg_pool2d(as_plane(input), *moves, ceil_mode, count_include_pad))


def adaptive_size(name, input, output_size):
    check_lines(name, input)
    size = numbers(f"{name}(): argument 'output_size' (position 2)", output_size)
    return 1, single(name, "output_size", size)


def adaptive_avg_pool1d(input, output_size):
    """The means of (N, C, L), or without N, in ``output_size`` windows, which cover it evenly."""
    size = adaptive_size("adaptive_avg_pool1d", input, output_size)
    return as_line(adaptive_avg_pool2d(as_plane(input), size))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The maxima of (N, C, L), or without N, in ``output_size`` windows, which cover it evenly."""
    size = adaptive_size("adaptive_max_pool1d", input, output_size)
    return as_line(adaptive_max_pool2d(as_plane(input), size, return_indices))


NAMES = """max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d
adaptive_max_pool2d"""
for name in NAMES.split():
    register(name, "pool", globals()[name])
