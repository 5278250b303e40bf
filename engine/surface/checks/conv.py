"""Checks of convolutions and of the columns of what a kernel sees."""

from functools import lru_cache

from ...arrays import dtypes
from ...arrays.dtypes import c_name
from ...arrays.kernels.conv import reach
from ...core.tensor import Tensor
from ...ops import conv
from ...ops.checks import check_floating, check_not_bool
from .. import messages as m
from ..require import require

BOOL = dtypes.bool_.np


def remembered(check):
    """A check of shapes and numbers, which is not made again for the same; for lists it is."""
    known = lru_cache(maxsize=256, typed=True)(check)

    def remembering(*given):
        try:
            return known(*given)
        except TypeError:
            pass
        return check(*given)

    return remembering


def numbers(what, value):
    """An argument as the operation reads it."""
    try:
        return conv.numbers(value)
    except TypeError:
        raise TypeError(m.NUMBERS.format(what, type(value).__name__)) from None


def by(sizes):
    return " x ".join(map(str, sizes))


# ---- convolutions


def of_convolution(n):
    """The check of a convolution over n dimensions."""
    fits = remembered(convolution)

    def check(input, weight, bias, stride, padding, dilation, groups):
        x, w, b = input.array, weight.array, None if bias is None else bias.array
        given = n, x.shape, w.shape, None if b is None else b.shape, groups, stride, padding, dilation
        alike = x.dtype is w.dtype is not BOOL and (b is None or b.dtype is w.dtype)
        fits(*given) if alike else convolution(*given, unlike=(x, w, b))

    return check


def of_transposed(n):
    """The check of a transposed convolution over n dimensions."""
    fits = remembered(transposed)

    def check(input, weight, bias, stride, padding, output_padding, groups, dilation):
        x, w, b = input.array, weight.array, None if bias is None else bias.array
        require(not isinstance(padding, str), m.NO_PADDING_WORD, n, error=TypeError)
        given = n, x.shape, w.shape, None if b is None else b.shape, groups, stride, padding, dilation, output_padding
        alike = x.dtype is w.dtype is not BOOL and (b is None or b.dtype is w.dtype)
        fits(*given) if alike else transposed(*given, unlike=(x, w, b))

    return check


def kinds(x, w, b):
    words = [c_name(dtypes.of[a.dtype]) for a in (x, x if b is None else b)]
    require(words[0] == words[1], m.CONV_BIAS_DTYPE, *words)
    require(x.dtype == w.dtype, m.CONV_WEIGHT_DTYPE, Tensor.typename(x), Tensor.typename(w))
    check_not_bool(x, "slow_conv2d_cpu")


def batched(n, x, transposed=""):
    """The shape of the input with a batch."""
    require(len(x) - n in (1, 2), m.CONV_DIMS, n + 1, n + 2, f"conv{transposed}{n}d", x)
    return x if len(x) == n + 2 else (1, *x)


def one_a_dim(what, value, n, k):
    """A number for each of a weight's k dimensions."""
    value = conv.one_a_dim((value,) * n if isinstance(value, int) else value, k)
    require(len(value) == k, m.ONE_A_DIM, what, k, what, value)
    return value


def convolution(n, x, w, b, groups, stride, padding, dilation, unlike=None):
    x, k = batched(n, x), len(w[2:])
    stride, dilation = numbers("stride", stride), numbers("dilation", dilation)
    if isinstance(padding, str):
        require(padding in ("same", "valid"), m.PADDING_WORD, padding)
        if padding == "same":
            require({*one_a_dim("stride", stride, k, k)} <= {1}, m.SAME_STRIDED)
            needed = conv.needed(w[2:], one_a_dim("dilation", dilation, k, k))
            x = (*x[:2], *(s + r % 2 for s, r in zip(x[2:], needed)))
        padding = 0 if padding == "valid" else tuple(r // 2 for r in needed)
    if unlike:
        kinds(*unlike)
    padding = numbers("padding", padding)
    require(k > 0, m.WEIGHT_DIMS)
    given = (("stride", stride), ("padding", padding), ("dilation", dilation))
    stride, padding, dilation = (one_a_dim(what, v, n, k) for what, v in given)
    shapes(x, w, stride, padding, dilation, groups)
    require(x[1] == w[1] * groups, m.CONV_CHANNELS, groups, w, x, w[1] * groups, x[1])
    room, need = tuple(s + 2 * p for s, p in zip(x[2:], padding)), reach(w[2:], dilation)
    fit = all(r >= s for r, s in zip(room, need)) and 0 not in w[2:]
    require(fit, m.CONV_KERNEL, by(room), by(need))
    require(0 not in x[2:], m.CONV_EMPTY, x)
    require(b is None or b == (w[0],), m.CONV_BIAS, "", w, w[0], b)


def transposed(n, x, w, b, groups, stride, padding, dilation, more, unlike=None):
    x = batched(n, x, "_transpose")
    given = (("stride", stride), ("padding", padding), ("dilation", dilation), ("output_padding", more))
    given = [(what, numbers(what, v)) for what, v in given]
    if unlike:
        kinds(*unlike)
    stride, padding, dilation, more = (one_a_dim(what, v, n, len(w) - 2) for what, v in given)
    require(min(more) >= 0, m.NEGATIVE, "output_padding")
    shapes(x, w, stride, padding, dilation, groups)
    require(x[1] == w[0], m.TRANSPOSED_CHANNELS, w, x, w[0], x[1])
    if any(p >= s and p >= d for p, s, d in zip(more, stride, dilation)):
        dims = ("depth", "height", "width")[-max(n, 2) :]
        values = (("output_padding", (0, *more)), ("stride", (1, *stride)), ("dilation", (1, *dilation)))
        got = " ".join(f"{what}_{d}: {v}" for what, value in values for d, v in zip(dims, value[-len(dims) :]))
        require(False, m.OUTPUT_PADDING, got)
    sizes = conv.transposed_window(x, w, stride, padding, dilation, more, groups).sizes
    require(min(sizes) >= 0 and 0 not in w[2:] + x[2:], m.TRANSPOSED_SIZE, by(x[2:]), by(sizes))
    require(b is None or b == (w[1] * groups,), m.CONV_BIAS, "transposed=1, ", w, w[1] * groups, b)


def shapes(x, w, stride, padding, dilation, groups):
    """Refuse what no convolution takes."""
    require(min(padding) >= 0, m.NEGATIVE, "padding")
    require(min(dilation) >= 0, m.DILATION)
    for what, smallest in (("stride", min(stride)), ("dilation", min(dilation)), ("groups", groups)):
        require(smallest > 0, m.NOT_POSITIVE, what)
    require(len(x) == len(w), m.CONV_RANKS, len(w), w, len(x), x)
    require(w[0] >= groups, m.GROUPS, groups, "at least", w)
    require(w[0] % groups == 0, m.GROUPS, groups, "divisible by", [w and list(w)])


conv1d, conv2d, conv3d = map(of_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(of_transposed, (1, 2, 3))

# ---- columns


def unfold(input, kernel_size, dilation, padding, stride):
    x = input.array
    unfolds(x.shape, kernel_size, dilation, padding, stride)
    if x.dtype.kind in "iu":
        check_floating(x, "im2col_out_cpu")


@remembered
def unfolds(x, *given):
    require(len(x) in (3, 4) and 0 not in x[-3:], m.UNFOLD_INPUT, x)
    window = blocks(x[-2:], *given)
    facts = [str(v) for v in (window.sizes, window.kernel, window.dilation, window.padding, window.counts)]
    require(min(window.counts) > 0, m.UNFOLD_BLOCKS, *facts)


def fold(input, output_size, kernel_size, dilation, padding, stride):
    folds(input.array.shape, output_size, kernel_size, dilation, padding, stride)
    check_floating(input.array, "col2im_out_cpu")


@remembered
def folds(x, output_size, *given):
    sizes = conv.one_a_dim(numbers("output_size", output_size), 2)
    require(len(x) in (2, 3) and 0 not in x[-2:], m.FOLD_INPUT, x)
    window = blocks(sizes, *given)
    require(x[-2] % window.taps == 0, m.FOLD_CHANNELS, x[-2], str(window.kernel))
    facts = [str(v) for v in (sizes, window.kernel, window.dilation, window.padding, window.stride)]
    require(x[-1] == window.places, m.FOLD_BLOCKS, *facts, *window.counts, window.places, x[-1])


def blocks(sizes, *given):
    """The window of ``unfold`` and ``fold``, if there is one."""
    names = ("kernel_size", "dilation", "padding", "stride")
    given = [numbers(what, value) for what, value in zip(names, given)]
    for what, value in zip(names, given):
        value = (value,) if isinstance(value, int) else value
        require(len(value) in (1, 2), m.BLOCK_NUMBERS, what, len(value))
        h, w = conv.one_a_dim(value, 2)
        if what == "padding":
            require(min(h, w) >= 0, m.BLOCK_PADDING, h, w)
        else:
            a = what.removesuffix("_size")
            require(min(h, w) > 0, m.BLOCK_POSITIVE, what.replace("_", " "), a, h, a, w)
    return conv.block_window(sizes, *given)
