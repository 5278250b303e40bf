"""Convolution, transposed convolution, and the columns of what a kernel sees (``unfold``, ``fold``)."""

from functools import lru_cache
from operator import index

from ..arrays import dtypes
from ..arrays.dtypes import c_name
from ..arrays.kernels import conv as kernels
from ..arrays.kernels.conv import Window, reach
from ..core.graph import node_class
from ..core.linear import sum_axes
from ..core.record import array_of, record, register
from ..core.tensor import Tensor
from .checks import check_floating, check_not_bool
from .pad import constant_pad
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
    """What y (N, O, *counts) and w give in the shape of x: the transposed convolution."""
    a, b = array_of(y), array_of(w)
    return record(ConvTranspose, kernels.input_array(a, b, array_of(bias), window), (y, w, bias), (a, b, window))


def conv_weight(y, x, window, seen=None):
    """What y and x give in the shape of w; ``seen``: the columns of x where they are known."""
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
        input, alone = as_batch(name, input, n)
        w = array_of(weight).shape
        stride, dilation = numbers("stride", stride), numbers("dilation", dilation)
        if isinstance(padding, str):
            input, padding = by_word(input, w[2:], padding, stride, dilation)
        check_dtypes(array_of(input), array_of(weight), array_of(bias))
        window = conv_window(n, array_of(input).shape, w, stride, numbers("padding", padding), dilation, groups)
        if bias is not None:
            check_bias(f"weight of size {list(w)}", bias, w[0])
        out = conv_output(input, weight, bias, window)
        return squeeze_one(out, 0) if alone else out

    name = f"conv{n}d"
    op.__doc__ = f"""The input (N, C, {SIZES[n]}), or without N, convolved with a weight (O, C / groups, {SIZES[n]}).

    ``padding``: zeros at each end, or "valid" for none, or "same" for as many as keep the size.
    """
    return register(name, "conv", op)


def transposed_convolution(n):
    """``conv_transpose1d`` and its like, over n dimensions."""

    def op(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        if isinstance(padding, str):
            raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")
        input, alone = as_batch(name, input, n)
        w, given = array_of(weight).shape, (("stride", stride), ("padding", padding), ("dilation", dilation))
        given = [numbers(what, v) for what, v in (*given, ("output_padding", output_padding))]
        check_dtypes(array_of(input), array_of(weight), array_of(bias))
        window = transposed_window(n, array_of(input).shape, w, *given, groups)
        check_bias(f"transposed=1, weight of size {list(w)}", bias, w[1] * groups)
        out = conv_input(input, weight, bias, window)
        return squeeze_one(out, 0) if alone else out

    name = f"conv_transpose{n}d"
    op.__doc__ = f"""The transpose of ``conv{n}d``: the input (N, O, {SIZES[n]}), or without N, the weight as there.

    ``output_padding``: how much larger than the smallest size is which the convolution maps to that of the input.
    """
    return register(name, "conv", op)


SIZES = {1: "L", 2: "H, W", 3: "D, H, W"}


def as_batch(name, input, n):
    """(the input with a batch dimension, whether it had none)"""
    ndim = array_of(input).ndim
    if ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{list(array_of(input).shape)}"
        )
    return (unsqueeze_at(input, 0), True) if ndim == n + 1 else (input, False)


def numbers(what, value):
    """An argument that is an integer, as it is, or several, as a tuple."""
    if type(value) is int:
        return value
    try:
        return tuple(map(index, value)) if isinstance(value, (tuple, list)) else index(value)
    except TypeError:
        raise TypeError(f"{what} must be tuple of ints, not {type(value).__name__}") from None


def one_a_dim(what, value, n, m):
    """A number for each of a weight's m dimensions; RuntimeError if it has others, for a convolution over n."""
    value = (value,) * n if isinstance(value, int) else value
    value = value * m if len(value) == 1 else value
    if len(value) != m:
        raise RuntimeError(
            f"expected {what} to be a single integer value or a list of {m} values to match the convolution "
            f"dimensions, but got {what}={list(value)}"
        )
    return value


def by_word(input, kernel, padding, stride, dilation):
    """(input, padding) for "same" and "valid"; what is odd of the padding is put behind the input."""
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    m = len(kernel)
    if any(s != 1 for s in one_a_dim("stride", stride, m, m)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    needed = [r - 1 for r in reach(kernel, one_a_dim("dilation", dilation, m, m))]
    if any(n % 2 for n in needed):
        input = constant_pad(input, tuple(p for n in reversed(needed) for p in (0, n % 2)), 0)
    return input, tuple(n // 2 for n in needed)


def check_dtypes(x, w, b):
    if x.dtype is w.dtype and (b is None or b.dtype is x.dtype) and x.dtype != bool:
        return
    if b is not None and b.dtype != x.dtype:
        words = [c_name(dtypes.of[v.dtype]) for v in (x, b)]
        raise RuntimeError(f"Input type ({words[0]}) and bias type ({words[1]}) should be the same")
    if x.dtype != w.dtype:
        raise RuntimeError(
            f"Input type ({Tensor.typename(x)}) and weight type ({Tensor.typename(w)}) should be the same or input "
            "should be a MKLDNN tensor and weight is a dense tensor"
        )
    check_not_bool(x, "slow_conv2d_cpu")


def check_bias(given, bias, channels):
    if bias is not None and array_of(bias).shape != (channels,):
        raise RuntimeError(
            f"Given {given}, expected bias to be 1-dimensional with {channels} elements, but got bias of size "
            f"{list(array_of(bias).shape)} instead"
        )


@lru_cache(maxsize=256)
def conv_window(n, x, w, stride, padding, dilation, groups):
    """The window of a convolution, from the shapes of input and weight; RuntimeError if they do not fit."""
    if len(w) < 3:
        raise RuntimeError("weight should have at least three dimensions")
    given = (("stride", stride), ("padding", padding), ("dilation", dilation))
    stride, padding, dilation = (one_a_dim(what, v, n, len(w) - 2) for what, v in given)
    check_shapes(x, w, stride, padding, dilation, groups)
    if x[1] != w[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w)}, expected input{list(x)} to have {w[1] * groups} "
            f"channels, but got {x[1]} channels instead"
        )
    room, need = tuple(k + 2 * p for k, p in zip(x[2:], padding)), reach(w[2:], dilation)
    if any(r < k for r, k in zip(room, need)) or 0 in w[2:]:
        raise RuntimeError(
            f"Calculated padded input size per channel: ({by(room)}). Kernel size: ({by(need)}). Kernel size "
            "can't be greater than actual input size"
        )
    if 0 in x[2:]:
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x)}")
    counts = tuple((r - k) // s + 1 for r, k, s in zip(room, need, stride))
    return Window(x[2:], counts, w[2:], stride, padding, dilation, groups)


@lru_cache(maxsize=256)
def transposed_window(n, y, w, stride, padding, dilation, more, groups):
    """The same for a transposed convolution, whose input has the places of the kernel for its sizes."""
    given = (("stride", stride), ("padding", padding), ("dilation", dilation), ("output_padding", more))
    stride, padding, dilation, more = (one_a_dim(what, v, n, len(w) - 2) for what, v in given)
    if min(more) < 0:
        raise RuntimeError("negative output_padding is not supported")
    check_shapes(y, w, stride, padding, dilation, groups)
    if y[1] != w[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w)}, expected input{list(y)} to have {w[0]} channels, but got "
            f"{y[1]} channels instead"
        )
    if any(m >= s and m >= d for m, s, d in zip(more, stride, dilation)):
        dims = ("depth", "height", "width")[-max(n, 2) :]
        values = (("output_padding", (0, *more)), ("stride", (1, *stride)), ("dilation", (1, *dilation)))
        got = " ".join(f"{what}_{d}: {v}" for what, value in values for d, v in zip(dims, value[-len(dims) :]))
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {got}")
    ends = zip(y[2:], stride, reach(w[2:], dilation), padding, more)
    sizes = tuple((c - 1) * s + r - 2 * p + m for c, s, r, p, m in ends)
    if min(sizes) < 0 or 0 in w[2:] or 0 in y[2:]:
        raise RuntimeError(
            f"Given input size per channel: ({by(y[2:])}). Calculated output size per channel: ({by(sizes)}). "
            "Output size is too small"
        )
    return Window(sizes, y[2:], w[2:], stride, padding, dilation, groups)


def check_shapes(x, w, stride, padding, dilation, groups):
    """RuntimeError in PyTorch's words for what no convolution takes."""
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(dilation) < 0:
        raise RuntimeError("dilation should be greater than zero")
    for what, smallest in (("stride", min(stride)), ("dilation", min(dilation)), ("groups", groups)):
        if smallest <= 0:
            raise RuntimeError(f"non-positive {what} is not supported")
    if len(x) != len(w):
        raise RuntimeError(
            f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight {list(w)}, but got "
            f"{len(x)}-dimensional input of size {list(x)} instead"
        )
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(w)} instead"
        )
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(w)}] instead"
        )


def by(sizes):
    return " x ".join(map(str, sizes))


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
def block_window(sizes, *given):
    """The window of ``unfold`` and ``fold``, over two dimensions."""
    found = []
    for what, value in zip(("kernel_size", "dilation", "padding", "stride"), given):
        value = (value,) if isinstance(value, int) else value
        if len(value) not in (1, 2):
            raise RuntimeError(f"It is expected {what} equals to 2, but got size {len(value)}")
        h, w = value = value if len(value) == 2 else value * 2
        if what == "padding" and min(value) < 0:
            raise RuntimeError(f"padding should be non-negative, but got pad_height: {h} pad_width: {w}")
        if what != "padding" and min(value) <= 0:
            name, a = what.replace("_", " "), what.removesuffix("_size")
            raise RuntimeError(f"{name} should be greater than zero, but got {a}_height: {h} {a}_width: {w}")
        found.append(value)
    kernel, dilation, padding, stride = found
    room = zip(sizes, padding, reach(kernel, dilation), stride)
    counts = tuple((n + 2 * p - r) // s + 1 for n, p, r, s in room)
    return Window(sizes, counts, kernel, stride, padding, dilation)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of (N, C, H, W), or without N, as columns (im2col): (N, C * positions in the kernel, places)."""
    x = array_of(input)
    if x.ndim not in (3, 4) or 0 in x.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(x.shape)}"
        )
    window = block_windows(x.shape[-2:], kernel_size, dilation, padding, stride)
    if min(window.counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {window.sizes}, kernel_size={window.kernel}, dilation={window.dilation}, "
            f"padding={window.padding}, calculated shape of the array of sliding blocks as {window.counts}, but its "
            "components must be at least one."
        )
    if x.dtype.kind in "iu":
        check_floating(x, "im2col_out_cpu")
    return im2col(input, window)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The transpose of ``unfold``: columns are added up in an array (N, C, *output_size)."""
    x, sizes = array_of(input), numbers("output_size", output_size)
    sizes = (sizes, sizes) if isinstance(sizes, int) else sizes
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(x.shape)}"
        )
    window = block_windows(sizes, kernel_size, dilation, padding, stride)
    if x.shape[-2] % window.taps:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
            f"{x.shape[-2]} and kernel_size={window.kernel}."
        )
    if x.shape[-1] != window.places:
        raise RuntimeError(
            f"Given output_size={sizes}, kernel_size={window.kernel}, dilation={window.dilation}, padding="
            f"{window.padding}, stride={window.stride}, expected size of input's dimension 2 to match the calculated "
            f"number of sliding blocks {window.counts[0]} * {window.counts[1]} = {window.places}, but got "
            f"input.size(2)={x.shape[-1]}."
        )
    check_floating(x, "col2im_out_cpu")
    return col2im(input, window)


def block_windows(sizes, *given):
    names = ("kernel_size", "dilation", "padding", "stride")
    return block_window(tuple(sizes), *(numbers(what, value) for what, value in zip(names, given)))
