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
from ..arrays.kernels.views import contiguous_array
from ..core.graph import mode, node_class
from ..core.linear import reshape
from ..core.record import array_of, record
from ..core.tensor import Tensor
from . import reduce
from .conv import numbers, one_a_dim
from .elementwise import level
from .losses import scatter
from .reduce import as_input
from .rows import place, register
from .shape import squeeze_one, unsqueeze_at

# ---- the maximum


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum under a kernel that moves over (N, C, H, W), or without N; nan is larger than everything."""
    x = array_of(input)
    window = pool_window(x.shape[-2:], *arguments(kernel_size, stride, padding, dilation), bool(ceil_mode))
    kind = dtypes.of[x.dtype]
    lowest = -inf if kind.is_floating_point else dtypes.iinfo(kind).min
    fill = 0 if window.padded == window.sizes else lowest
    if not return_indices and not is_recorded(input):
        return record(MaxPool, kernels.maximum_under(x, window, fill), (input,))
    return maxima(MaxPool, input, *kernels.largest_under(x, window, fill), window.disjoint, return_indices)


def is_recorded(input):
    return isinstance(input, Tensor) and input.node is not None and mode.enabled


def maxima(Backward, input, best, index, disjoint, return_indices):
    """The maximum at each place (..., *counts), and where in the plane it is.

    Of equal ones the first counts, and of nan the last, as in PyTorch.
    """
    out = record(Backward, best, (input,), (array_of(input), index, disjoint))
    return (out, as_input(index.astype("int64"), input)) if return_indices else out


def max_rule(g, x, index, disjoint):
    """g at the positions of the maxima, of which none comes twice if the windows are disjoint."""
    shape, index = array_of(x).shape, array_of(index)
    if prod(shape[:-2]) != 1:
        index = index + row_starts(xp_of(index), shape[:-2], shape[-2] * shape[-1], True)[..., None]
    return level(x, scatter(g, shape, index) if disjoint else reshape(place(g, (prod(shape),), (index,)), shape))


MaxPool = node_class("MaxPool2DWithIndicesBackward0", max_rule)
AdaptiveMaxPool = node_class("AdaptiveMaxPool2DBackward0", max_rule)
AvgPool = node_class("AvgPool2DBackward0", lambda g, x, weights, window: level(x, spread_average(g, weights, window)))
SpreadAverage = node_class("AvgPool2DBackwardBackward0", lambda g, weights, window: average(g, weights, window))
AdaptiveAvgPool = node_class("AdaptiveAvgPool2DBackward0", lambda g, x, key, weights: level(x, place(
    reshape(g, (*x.shape[:-2], 1, 1, *g.shape[-2:])) * weights, array_of(x).shape, key)))  # fmt: skip

# ---- the mean: the sum under the kernel times a weight, which is a number or one for each place


def average(input, weights, window):
    weights = array_of(weights)
    x = array_of(input)
    return record(AvgPool, kernels.window_sums(x, weights, window), (input,), (x, weights, window))


def spread_average(g, weights, window):
    weights = array_of(weights)
    return record(SpreadAverage, kernels.window_spread(array_of(g), weights, window), (g,), (weights, window))


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):  # fmt: skip
    """The mean under a kernel that moves over (N, C, H, W), or without N."""
    x = array_of(input)
    window = pool_window(x.shape[-2:], *arguments(kernel_size, stride, padding), bool(ceil_mode))
    if divisor_override is not None:
        return average(input, 1.0 / divisor_override, window)
    return average(input, kernels.mean_weights(xp_of(x), window, bool(count_include_pad), x.dtype), window)


# ---- adaptive pooling: so many windows, which cover the array evenly and differ in size by one at most


def adaptive_counts(sizes, output_size):
    """The sizes of the output, of which None stays as it is."""
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * 2
    return tuple(have if want is None else operator.index(want) for want, have in zip(given, sizes))


def adaptive_avg_pool2d(input, output_size):
    """The means of (N, C, H, W), or without N, in ``output_size`` windows, which cover it evenly."""
    x = array_of(input)
    counts = adaptive_counts(x.shape[-2:], output_size)
    if counts == (1, 1):
        return reduce.mean(input, (-1, -2), True)
    key, weights = kernels.adaptive_key(xp_of(x), x.shape[-2:], counts)
    weights = weights.astype(x.dtype)
    out = contiguous_array(sum_array(x[key] * weights, (-4, -3)))
    return record(AdaptiveAvgPool, out, (input,), (x, key, weights))


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The maxima of (N, C, H, W), or without N, in ``output_size`` windows, which cover it evenly."""
    x = array_of(input)
    counts = adaptive_counts(x.shape[-2:], output_size)
    key, _ = kernels.adaptive_key(xp_of(x), x.shape[-2:], counts)
    taps = x[key].transpose(-4, -3, *range(x.ndim - 2), -2, -1)
    taps = contiguous_array(taps.reshape(prod(taps.shape[:2]), prod(x.shape[:-2]), prod(counts)))
    shape = (*x.shape[:-2], *counts)
    if not return_indices and not is_recorded(input):
        return record(AdaptiveMaxPool, taps.max(0).reshape(shape), (input,))
    found = kernels.largest(taps, kernels.adaptive_ranks(xp_of(x), x.shape[-2:], counts), prod(x.shape[-2:]))
    return maxima(AdaptiveMaxPool, input, *(a.reshape(shape) for a in found), False, return_indices)


# ---- the window


@lru_cache(maxsize=256)
def pool_window(sizes, kernel, stride, padding, dilation, ceil_mode):
    """The window of a pooling over two dimensions."""
    kernel, stride, padding, dilation = (one_a_dim(value, 2) for value in (kernel, stride, padding, dilation))
    counts = tuple(starmap(place_count, zip(sizes, reach(kernel, dilation), stride, padding, (ceil_mode,) * 2)))
    return Window(sizes, counts, kernel, stride, padding, dilation)


def place_count(size, reach, stride, padding, ceil_mode):
    """Count the places of a kernel in one dimension; with ``ceil_mode`` also those that reach over the end."""
    room = size + 2 * padding - reach
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - (ceil_mode and (count - 1) * stride >= size + padding)


def arguments(kernel_size, stride, padding, dilation=1):
    """The arguments that say how the kernel moves, as integers or tuples of them."""
    stride = kernel_size if stride is None or stride == () or stride == [] else stride
    if type(kernel_size) is type(stride) is type(padding) is type(dilation) is int:
        return kernel_size, stride, padding, dilation
    return tuple(map(numbers, (kernel_size, stride, padding, dilation)))


# ---- over one dimension


def as_plane(input):
    """(..., L) -> (..., 1, L)"""
    return unsqueeze_at(input, array_of(input).ndim - 1)


def as_line(out):
    """(..., 1, L) -> (..., L), of each result."""
    return tuple(map(as_line, out)) if isinstance(out, tuple) else squeeze_one(out, array_of(out).ndim - 2)


def moves(*given):
    """Extend the moves of a kernel over one dimension to two."""
    return [(first, *one_a_dim(value, 1)) for first, value in zip((1, 1, 0, 1), arguments(*given))]


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum under a kernel that moves over (N, C, L), or without N; see ``max_pool2d``."""
    given = moves(kernel_size, stride, padding, dilation)
    return as_line(max_pool2d(as_plane(input), *given, ceil_mode, return_indices))


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean under a kernel that moves over (N, C, L), or without N; see ``avg_pool2d``."""
    given = moves(kernel_size, stride, padding)[:3]
    return as_line(avg_pool2d(as_plane(input), *given, ceil_mode, count_include_pad))


def adaptive_avg_pool1d(input, output_size):
    """The means of (N, C, L), or without N, in ``output_size`` windows, which cover it evenly."""
    return as_line(adaptive_avg_pool2d(as_plane(input), (1, *one_a_dim(numbers(output_size), 1))))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The maxima of (N, C, L), or without N, in ``output_size`` windows, which cover it evenly."""
    size = (1, *one_a_dim(numbers(output_size), 1))
    return as_line(adaptive_max_pool2d(as_plane(input), size, return_indices))


NAMES = """max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d
adaptive_max_pool2d"""
for name in NAMES.split():
    register(name, "pool", globals()[name])
