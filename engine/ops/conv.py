"""Convolution, transposed convolution, and the columns of what a kernel sees (``unfold``, ``fold``)."""

from functools import lru_cache
from operator import index

from ..arrays.kernels import conv as kernels
from ..arrays.kernels.conv import Window, reach
from ..core.graph import node_class
from ..core.linear import sum_axes
from ..core.record import array_of, record
from ..core.tensor import Tensor
from .pad import constant_pad
from .rows import register
from .shape import squeeze_one, unsqueeze_at

# A convolution y of x with a weight w is linear in both.  With a cotangent of y, any two of (x, w, y) give something in
# the shape of the third, and the cotangents of each of these three products are the two others.


def conv_output(x, w, bias, window):
    """The convolution of x (N, C, *sizes) with w (O, C / groups, *kernel): (N, O, *counts).

    The columns of x are kept for the cotangent of w if they are small: to copy them takes longer than the products.
    """
    a, b = array_of(x), array_of(w)
    seen = None if a.itemsize == 2 else kernels.small_columns(a, window)
    out, needed = kernels.output_array(a, b, array_of(bias), window, seen), isinstance(w, Tensor) and w.node is not None
    return record(Conv, out, (x, w, bias), (a, b, window, seen if needed else None))


def conv_input(y, w, bias, window):
    """Return the gradient by x from y (N, O, *counts) and w: the transposed convolution."""
    a, b = array_of(y), array_of(w)
    return record(ConvTranspose, kernels.input_array(a, b, array_of(bias), window), (y, w, bias), (a, b, window))


def conv_weight(y, x, window, seen=None):
    """Return the gradient by w from y and x; ``seen``: the columns of x if they are known."""
    a, b = array_of(y), array_of(x)
    return record(ConvWeight, kernels.weight_array(a, b, window, seen), (y, x), (a, b, window))


def of_channels(g, _x, _y, _window, _seen=None):
    return sum_axes(g, (0, *range(2, array_of(g).ndim)))


Conv = node_class("ConvolutionBackward0",
                  lambda g, _x, y, window, _seen: conv_input(g, y, None, window),
                  lambda g, x, _y, window, seen: conv_weight(g, x, window, seen), of_channels)  # fmt: skip
ConvTranspose = node_class("ConvolutionBackward0",
                           lambda g, _x, y, window: conv_output(g, y, None, window),
                           lambda g, x, _y, window: conv_weight(x, g, window), of_channels)  # fmt: skip
ConvWeight = node_class("ConvolutionBackwardBackward0",
                        lambda g, _x, y, window: conv_output(y, g, None, window),
                        lambda g, x, _y, window: conv_input(x, g, None, window))  # fmt: skip

# ---- convolution under PyTorch's names


def convolution(n):
    """``conv1d`` and its like, over n dimensions."""

    def op(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        alone, w, dilation = array_of(input).ndim == n + 1, array_of(weight).shape, numbers(dilation)
        if alone:
            input = unsqueeze_at(input, 0)
        if isinstance(padding, str):
            input, padding = by_word(input, w[2:], padding, dilation)
        window = conv_window(array_of(input).shape, w, numbers(stride), numbers(padding), dilation, groups)
        out = conv_output(input, weight, bias, window)
        return squeeze_one(out, 0) if alone else out

    name = f"conv{n}d"
    op.__doc__ = f"The input (N, C, {SIZES[n]}), or without N, convolved with a weight (O, C / groups, {SIZES[n]})."
    return register(name, "conv", op)


def transposed_convolution(n):
    """``conv_transpose1d`` and its like, over n dimensions."""

    def op(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        alone, given = array_of(input).ndim == n + 1, map(numbers, (stride, padding, dilation, output_padding))
        if alone:
            input = unsqueeze_at(input, 0)
        window = transposed_window(array_of(input).shape, array_of(weight).shape, *given, groups)
        out = conv_input(input, weight, bias, window)
        return squeeze_one(out, 0) if alone else out

    name = f"conv_transpose{n}d"
    op.__doc__ = f"The transpose of ``conv{n}d``: the input (N, O, {SIZES[n]}), or without N, the weight as there."
    return register(name, "conv", op)


SIZES = {1: "L", 2: "H, W", 3: "D, H, W"}


def numbers(value):
    """An argument that is an integer, as it is, or several, as a tuple."""
    if type(value) is int:
        return value
    return tuple(map(index, value)) if isinstance(value, (tuple, list)) else index(value)


def one_a_dim(value, m):
    """A number for each of m dimensions."""
    value = (value,) if isinstance(value, int) else value
    return value * m if len(value) == 1 else value


def by_word(input, kernel, padding, dilation):
    """(input, padding) for "same" and "valid"; what is odd of the padding is put behind the input."""
    if padding == "valid":
        return input, 0
    pads = needed(kernel, one_a_dim(dilation, len(kernel)))
    if any(n % 2 for n in pads):
        input = constant_pad(input, tuple(p for n in reversed(pads) for p in (0, n % 2)), 0)
    return input, tuple(n // 2 for n in pads)


def needed(kernel, dilation):
    """Return the numbers of zeros that keep the sizes."""
    return [r - 1 for r in reach(kernel, dilation)]


@lru_cache(maxsize=256)
def conv_window(x, w, stride, padding, dilation, groups):
    """The window of a convolution, from the shapes of input and weight."""
    stride, padding, dilation = (one_a_dim(v, len(w) - 2) for v in (stride, padding, dilation))
    ends = zip(x[2:], padding, reach(w[2:], dilation), stride)
    counts = tuple((n + 2 * p - r) // s + 1 for n, p, r, s in ends)
    return Window(x[2:], counts, w[2:], stride, padding, dilation, groups)


@lru_cache(maxsize=256)
def transposed_window(y, w, stride, padding, dilation, more, groups):
    """The same for a transposed convolution, whose input has the places of the kernel for its sizes."""
    stride, padding, dilation, more = (one_a_dim(v, len(w) - 2) for v in (stride, padding, dilation, more))
    ends = zip(y[2:], stride, reach(w[2:], dilation), padding, more)
    sizes = tuple((c - 1) * s + r - 2 * p + m for c, s, r, p, m in ends)
    return Window(sizes, y[2:], w[2:], stride, padding, dilation, groups)


conv1d, conv2d, conv3d = map(convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(transposed_convolution, (1, 2, 3))

# ---- the windows themselves


def im2col(x, window):
    return record(Im2Col, kernels.im2col(array_of(x), window), (x,), (window,))


def col2im(x, window):
    return record(Col2Im, kernels.col2im(array_of(x), window), (x,), (window,))


Im2Col = node_class("Im2ColBackward0", lambda g, window: col2im(g, window))
Col2Im = node_class("Col2ImBackward0", lambda g, window: im2col(g, window))


@lru_cache(maxsize=64)
def block_window(sizes, kernel, dilation, padding, stride):
    """The window of ``unfold`` and ``fold``, over two dimensions."""
    sizes, kernel = ((0, 0, *one_a_dim(value, 2)) for value in (sizes, kernel))
    return conv_window(sizes, kernel, stride, padding, dilation, 1)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of (N, C, H, W), or without N, as columns (im2col): (N, C * positions in the kernel, places)."""
    given = map(numbers, (kernel_size, dilation, padding, stride))
    return im2col(input, block_window(array_of(input).shape[-2:], *given))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The transpose of ``unfold``: columns are added up in an array (N, C, *output_size)."""
    return col2im(input, block_window(*map(numbers, (output_size, kernel_size, dilation, padding, stride))))
