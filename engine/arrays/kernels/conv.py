"""The windows that a kernel sees as it moves over the spatial dimensions, which are the last ones, and their products.

Two functions carry convolution and pooling: ``windows`` shows an array as its windows, ``add_windows`` is its
transpose.  A convolution is a product of matrices, of the weight and the windows (im2col; Chellapilla et al. 2006).
"""

from functools import cached_property, wraps
from math import prod

import numpy as np

from ..batches import blank
from ..dispatch import batches, xp_of
from ..dtypes import accumulate_wider
from ..memory import element_strides, strided
from ..running import any_size, known_to_loops, writers
from .products import product


class Window:
    """A kernel and how it moves: tuples with a number for each spatial dimension."""

    def __init__(self, sizes, counts, kernel, stride, padding, dilation, groups=1, spacing=None):
        self.sizes = sizes  # of the array
        self.counts = counts  # how many places the kernel takes
        self.kernel, self.stride, self.padding, self.dilation = kernel, stride, padding, dilation
        self.groups = groups  # of channels that are convolved for themselves
        self.front = (groups,) if groups > 1 else ()  # dimensions of the matrices before their two
        self.places, self.taps = prod(counts), prod(kernel)
        ends = ((c - 1) * s + r for c, s, r in zip(counts, stride, reach(kernel, dilation)))
        spacing = spacing or (1,) * len(sizes)  # how far the elements lie from one another in the padded array
        rows = [(p, p + a * (n - 1) + 1, a) for n, p, a in zip(sizes, padding, spacing)]
        self.padded = tuple(max(end, e) for (_, end, _), e in zip(rows, ends))  # at the end as much as is needed
        self.inside = (..., *(slice(*row) for row in rows))  # of the padded array
        self.moves = tuple(zip(kernel, counts, stride, dilation))
        self.layouts: dict = {}  # see ``small_windows``

    @cached_property
    def disjoint(self):
        """Tell whether no element is in two windows."""
        return all(s >= r for s, r in zip(self.stride, reach(self.kernel, self.dilation)))

    @cached_property
    def turned(self):
        """The window through which an array of places is seen from the elements: of the transposed convolution."""
        before = tuple(r - 1 - p for r, p in zip(reach(self.kernel, self.dilation), self.padding))
        if min(before) < 0:
            return None  # the padding is so wide that some places see no element
        moves = (1,) * len(before), before, self.dilation
        return Window(self.counts, self.sizes, self.kernel, *moves, self.groups, self.stride)


def reach(kernel, dilation):
    """From the first element under a kernel to behind the last, in each dimension."""
    return tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation))


def windows(x, window, at, fill=0):
    """The windows of an array (..., *sizes): (..., *counts), with the kernel's dimensions before dimension ``at``."""
    x = with_padding(x, window, fill)
    d = x.ndim - 1  # of the next one, each time: the kernel's goes before it
    step, shape, copied = element_strides(x), x.shape, False
    for k, c, s, dilation in reversed(window.moves):  # the last one first, so that long stretches are copied
        step = (*step[:at], step[d] * dilation, *step[at:d], step[d] * s, *step[d + 1 :])
        shape = (*shape[:at], k, *shape[at:d], c, *shape[d + 1 :])
        copied = k > s
        if copied:
            x = xp_of(x).ascontiguousarray(strided(x, shape, step))
            step = element_strides(x)
    return x if copied else strided(x, shape, step)


def with_padding(x, window, fill=0):
    if window.padded == window.sizes:
        return x
    out = blank((*x.shape[: -len(window.sizes)], *window.padded), x)
    if fill:
        out.fill(fill)
    out[window.inside] = x
    return out


SMALL, TINY = 1 << 16, 1 << 12  # elements that all windows have


def small_windows(x, window, swap, shape, fill=0):
    """The windows in a shape, copied at once: if they are small, that takes less time.  None if they are not."""
    xp = xp_of(x)
    key = x.shape, swap, xp, any_size()
    layout = window.layouts.get(key)
    if layout is None:
        layout = window.layouts[key] = small_layout(xp, x.shape, window, swap, shape)
    if not layout:
        return None
    x = with_padding(x, window, fill)
    if layout[1] is None:
        return x.reshape(-1)[layout[0]]
    return strided(x if x.flags.c_contiguous else xp.ascontiguousarray(x), *layout).reshape(shape)


def small_layout(xp, x_shape, window, swap, shape):
    """The (shape, strides) of the windows in the padded array, or (where they are in it, None) if they are tiny."""
    before, step = [], prod(window.padded)
    for n in reversed(x_shape[: -len(window.sizes)]):
        before.insert(0, (n, step))
        step *= n
    size, taps, places, step = step, [], [], 1
    for (k, c, s, dilation), n in zip(reversed(window.moves), reversed(window.padded)):
        taps.insert(0, (k, step * dilation))
        places.insert(0, (c, step * s))
        step *= n
    # the dimensions of the kernel come first, or behind dimension 1, which changes places with 0
    dims = (before[1], *taps, before[0], *places) if swap else (*taps, *before, *places)
    elements = prod(shape)
    if not 0 < elements <= SMALL or any_size():
        return ()
    layout = tuple(zip(*dims))
    return layout if elements > TINY else (xp.asarray(strided(np.arange(size), *layout).reshape(shape)), None)


def add_windows(x, window, at):
    """The transpose: each element of an array (..., *sizes) is the sum of what the windows have in its place."""
    d, lead = x.ndim - len(window.sizes) - 1, (slice(None),) * at
    for (k, c, s, dilation), n in zip(window.moves, window.padded):
        shape = x.shape
        out = blank((*shape[:at], *shape[at + 1 : d + 1], n, *shape[d + 2 :]), x)
        rows, end = out.swapaxes(0, d), (c - 1) * s + 1
        for t in range(k):
            seen = rows[t * dilation : t * dilation + end : s]
            seen += x[(*lead, t)].swapaxes(0, d)
        x = out
    return x if window.padded == window.sizes else x[window.inside]


def im2col(x, window):
    shape = *x.shape[:-3], x.shape[-3] * window.taps, window.places
    return windows(x, window, x.ndim - 2).copy().reshape(shape)


def col2im(x, window):
    shape = *x.shape[:-2], x.shape[-2] // window.taps, *window.kernel, *window.counts
    return add_windows(x.reshape(shape), window, x.ndim - 1).copy()


# ---- the products


@known_to_loops
def window_columns(x, window):
    """The windows of (N, C, *sizes) as matrices (*front, C / groups * taps, N * places)."""
    small = small_columns(x, window)
    return windows(x.swapaxes(0, 1), window, 1).reshape(columns_shape(x, window)) if small is None else small


@known_to_loops
def small_columns(x, window):
    """The same; None if they are not small."""
    return small_windows(x, window, True, columns_shape(x, window))


def columns_shape(x, window):
    return *window.front, x.shape[1] // window.groups * window.taps, x.shape[0] * window.places


def place_rows(y, window):
    """(N, O, *counts) as matrices (*front, O / groups, N * places)."""
    n, channels, *_ = y.shape
    return y.swapaxes(0, 1).reshape(*window.front, channels // window.groups, n * window.places)


def weight_matrices(w, window):
    """A weight (O, C / groups, *kernel) as matrices (*front, O / groups, C / groups * taps)."""
    return w.reshape(*window.front, w.shape[0] // window.groups, prod(w.shape[1:]))


def turned_matrices(w, window):
    """The weight of the transposed convolution, its kernel turned round, as (*front, C / groups, O / groups * taps)."""
    o, c, *_ = w.shape
    w = w.reshape(window.groups, o // window.groups, c, window.taps)[..., ::-1].swapaxes(1, 2).copy()
    return w.reshape(*window.front, c, o // window.groups * window.taps)


@known_to_loops
def batch_first(out, bias):
    """A fresh array (C, N, *sizes), plus a number for each channel, as (N, C, *sizes)."""
    if bias is not None:
        bias = bias.reshape(-1, *(1,) * (out.ndim - 1))
        if type(bias) in batches and type(bias) not in writers:  # there may be other sums for each sample
            out = out + bias
        else:
            out += bias
    out = out.swapaxes(0, 1)
    return out if out.flags.c_contiguous else xp_of(out).ascontiguousarray(out)


def wider(compute):
    """The same product, computed in float32 for half precision."""

    @wraps(compute)
    def op(a, b, *rest):
        wide = a.itemsize == 2 and accumulate_wider.get(a.dtype)
        if not wide:
            return compute(a, b, *rest)
        rest = [r.astype(wide) if hasattr(r, "dtype") else r for r in rest]
        return compute(a.astype(wide), b.astype(wide), *rest).astype(a.dtype)

    return op


@wider
def output_array(x, w, bias, window, seen=None):
    out = product(weight_matrices(w, window), window_columns(x, window) if seen is None else seen)
    return batch_first(out.reshape(w.shape[0], x.shape[0], *window.counts), bias)


@wider
@known_to_loops
def input_array(y, w, bias, window):
    turned = window.turned
    small = turned is not None and y.shape[0] * y.shape[1] * turned.taps * turned.places <= SMALL
    if small and not any_size():
        out = product(turned_matrices(w, window), window_columns(y, turned))
        return batch_first(out.reshape(w.shape[1] * window.groups, y.shape[0], *window.sizes), bias)
    parts = product(weight_matrices(w, window).swapaxes(-1, -2), place_rows(y, window))
    parts = parts.reshape(w.shape[1] * window.groups, *window.kernel, y.shape[0], *window.counts)
    return batch_first(add_windows(parts, window, 1), bias)


@wider
def weight_array(y, x, window, seen=None):
    seen = window_columns(x, window) if seen is None else seen
    out = product(seen, place_rows(y, window).swapaxes(-1, -2)).swapaxes(-1, -2)
    return out.reshape(y.shape[1], x.shape[1] // window.groups, *window.kernel)
