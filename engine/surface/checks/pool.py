"""Checks of pooling."""

from ...arrays.dtypes import differentiable
from ...ops import pool
from ...ops.checks import check_floating, check_not_bool
from .. import messages as m
from ..require import require
from .conv import BOOL, numbers, remembered

ARGUMENTS = ("kernel_size", "stride", "padding", "dilation")  # of a pooling, from position 2 on


def given(name, kernel_size, stride, *more):
    """The arguments that say how the kernel moves, as the operation reads them, by name."""
    stride = kernel_size if stride is None or stride == () or stride == [] else stride
    values = zip(ARGUMENTS, (kernel_size, stride, *more))
    return {a: numbers(m.ARGUMENT.format(name, a, i), v) for i, (a, v) in enumerate(values, 2)}


# ---- over two dimensions


def max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode):
    x = input.array
    fits("max_pool2d", x.shape, ceil_mode, kernel_size, stride, padding, dilation)
    if x.dtype is BOOL:
        check_not_bool(x, "max_pool2d")


def avg_pool2d(input, kernel_size, stride, padding, ceil_mode, divisor_override):
    fits("avg_pool2d", input.array.shape, ceil_mode, kernel_size, stride, padding)
    if divisor_override is not None or input.array.dtype not in differentiable:
        check_floating(input.array, "avg_pool2d")
        require(divisor_override != 0, m.DIVISOR)


@remembered
def fits(name, shape, ceil_mode, *moves):
    numbers = [one_each(name, what, value) for what, value in given(name, *moves).items()]
    kernel, stride, padding, dilation = numbers if len(numbers) == 4 else (*numbers, (1, 1))
    require(name != "max_pool2d" or len(shape) in (3, 4), m.POOL_DIMS)
    require(0 not in stride, m.STRIDE_ZERO)
    for p, k, d in zip(padding, kernel, dilation):
        require(p >= 0, m.PAD_NEGATIVE, p)
        require(p <= max(d * (k - 1) + 1, 0) // 2 or k <= 0 or d <= 0, m.PAD_HALF, p, k, d)
    for what, a, (h, w) in (("kernel size", "k", kernel), ("stride", "d", stride), ("dilation", "dilation", dilation)):
        require(min(h, w) > 0, m.POOL_POSITIVE, what, a, h, a, w)
    require(len(shape) in (3, 4) and 0 not in shape[-3:], m.POOL_INPUT, shape)
    counts = pool.pool_window(shape[-2:], kernel, stride, padding, dilation, bool(ceil_mode)).counts
    require(min(counts) > 0, m.POOL_SIZE, *shape[-3:], shape[-3], *counts)


def one_each(name, what, value):
    """A number for each of two dimensions."""
    value = (value,) if isinstance(value, int) else value
    either = "be either" if (name, what) == ("max_pool2d", "dilation") else "either be"
    require(len(value) in (1, 2), m.POOL_PAIR, name, what, either, "omitted, " if what == "stride" else "")
    return pool.one_a_dim(value, 2)


@remembered
def adaptive(name, shape, output_size):
    """The sizes of the output."""
    several = isinstance(output_size, (tuple, list))
    n, largest = len(output_size) if several else 2, "max" in name
    require(not several or len(shape) > n, m.ADAPTIVE_DIMS, n + 1, error=ValueError)
    require(n == 2, m.ADAPTIVE_MAX_PAIR if largest else m.ADAPTIVE_PAIR, name)
    counts = pool.adaptive_counts(shape[-2:], output_size)
    require(len(shape) in (3, 4), m.ADAPTIVE_MAX_INPUT if largest else m.ADAPTIVE_INPUT, name, shape)
    if largest:
        require(min(counts) >= 0, m.NEGATIVE_DIMENSION, min(counts), (*shape[:-2], *counts))
    require(min(counts) >= 0, m.ADAPTIVE_NEGATIVE, name, ", ".join(map(str, counts)))
    for d in range(len(shape) - 3, len(shape)):
        require(shape[d], m.ADAPTIVE_EMPTY, name, shape, d)
    return counts


# ---- over one dimension


def plane(shape):
    return *shape[:-1], 1, *shape[-1:]


def single(name, what, value, sentence=m.ONE_INT):
    """The number of an argument that is one or a tuple of one."""
    value = (value,) if isinstance(value, int) else value
    require(len(value) == 1, sentence, name, what, len(value))
    return value[0]


def max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    x = input.array
    fits_line(x.shape, return_indices, ceil_mode, kernel_size, stride, padding, dilation)
    if return_indices:
        check_not_bool(x, "max_pool2d")
    else:
        check_floating(x, "max_pool1d_impl")


@remembered
def fits_line(shape, return_indices, ceil_mode, *moves):
    require(len(shape) in (2, 3) and 0 not in shape[-2:], m.MAX_POOL1D_INPUT, shape)
    values = given("max_pool1d", *moves)
    values = {what: single("max_pool1d", what, value, m.MAX_POOL1D_ONE) for what, value in values.items()}
    for what, value in values.items():
        require(value > 0 or what == "padding", m.MAX_POOL1D_POSITIVE, what, value)
    kernel, stride, padding, dilation = values.values()
    require(padding >= 0 or return_indices, m.MAX_POOL1D_PADDING, padding)
    require(padding <= kernel // 2 or return_indices, m.MAX_POOL1D_HALF, padding, kernel)
    count = pool.place_count(shape[-1], dilation * (kernel - 1) + 1, stride, padding, ceil_mode)
    require(count > 0, m.MAX_POOL1D_SIZE, count)
    fits("max_pool2d", plane(shape), ceil_mode, *pool.moves(*values.values()))


def avg_pool1d(input, kernel_size, stride, padding, ceil_mode):
    x = input.array
    lines("avg_pool1d", x.shape)
    moves = [single("avg_pool1d", *v) for v in given("avg_pool1d", kernel_size, stride, padding).items()]
    fits("avg_pool2d", plane(x.shape), ceil_mode, *pool.moves(*moves)[:3])
    check_floating(x, "avg_pool2d")


def lines(name, shape):
    require(len(shape) in (2, 3), m.LINES, len(shape), name)


def of_adaptive(name):
    """The check of adaptive pooling; over one dimension it is that over two."""
    over_two = name.replace("1", "2")

    def check(input, output_size):
        shape = input.array.shape
        if name != over_two:
            lines(name, shape)
            size = single(name, "output_size", numbers(m.ARGUMENT.format(name, "output_size", 2), output_size))
            shape, output_size = plane(shape), (1, size)
        if adaptive(over_two, shape, output_size) != (1, 1) or "max" in name:
            check_floating(input.array, over_two)

    return check


adaptive_avg_pool2d, adaptive_max_pool2d = map(of_adaptive, ("adaptive_avg_pool2d", "adaptive_max_pool2d"))
adaptive_avg_pool1d, adaptive_max_pool1d = map(of_adaptive, ("adaptive_avg_pool1d", "adaptive_max_pool1d"))
