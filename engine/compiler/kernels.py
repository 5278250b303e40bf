"""Kernels: how those that move elements, windows, pooling and picks, are written down where loops are made of them."""

from math import prod

import numpy as np

from ..arrays import dispatch
from ..arrays.kernels import conv, pool
from ..arrays.kernels.products import product
from . import nests
from .capture import Traced
from .formulas import FORMULAS as OTHERS


def on_host(*arrays):
    """Return whether all are floats in host memory that a capture knows, and no empty ones."""
    return all(type(a) is Traced and a.dtype in nests.FLOATS and a.ndim and a.size for a in arrays)


def emitted(function, x, *args):
    return x.tape.emit("function", function.__name__, function, (x, *args))


def columns(x, window):
    """The columns of x, also if they are small."""
    spaced = any(s.step not in (None, 1) for s in window.inside[1:])
    if not on_host(x) or spaced or not window.places or x.ndim != len(window.sizes) + 2 or x.ndim > 5:
        return None
    return emitted(conv.window_columns, x, window)


def batch_first(out, bias):
    if not on_host(out) or not (bias is None or on_host(bias)):
        return None
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * (out.ndim - 1))
    return in_order(out.swapaxes(0, 1))


def in_order(x):
    return x if x.flags.c_contiguous else x.tape.emit("function", "ascontiguousarray", np.ascontiguousarray, (x,))


def input_array(y, w, bias, window):
    if not on_host(y, w) or not (bias is None or on_host(bias)) or not prod(window.sizes) or y.ndim > 5:
        return None
    parts = product(conv.weight_matrices(w, window).swapaxes(-1, -2), conv.place_rows(y, window))
    out = emitted(windows_added, parts, (w.shape[1] * window.groups, y.shape[0]), window)
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(window.sizes))


def windows_added(parts, channels_and_samples, window):
    """Each element (N, C, *sizes) is the sum of what the windows (C * taps, N * places) have in its place."""
    channels, samples = channels_and_samples
    parts = parts.reshape(channels, *window.kernel, samples, *window.counts)
    return np.ascontiguousarray(conv.add_windows(parts, window, 1).swapaxes(0, 1))


def largest_under(x, window, fill):
    if not on_host(x) or not window.places or not 2 <= x.ndim <= 4 or not all(map(any_inside, axes_of(window))):
        return None
    return emitted(pool.largest_under, x, window, fill)


def maximum_under(x, window, fill):
    found = largest_under(x, window, fill)
    return found and found[0]


def any_inside(axis):
    """Return whether the kernel sees an element at each of its places, along an axis."""
    size, count, taps, stride, padding, dilation = axis
    seen = np.arange(count)[:, None] * stride + np.arange(taps) * dilation - padding
    return bool(((seen >= 0) & (seen < size)).any(1).all())


def axes_of(window):
    """(the size of an array, the places, the taps, stride, padding, dilation) for each axis."""
    return [*zip(window.sizes, window.counts, window.kernel, window.stride, window.padding, window.dilation)]


def elements_at(x, where):
    """The element of the class of each row, as a sum: over all classes, of which one is not 0."""
    if not on_host(x) or not is_class_a_row(x.shape, where) or x.tape.steps[x.number].kind == "input":
        return None
    return either(of_class(x.shape, where), x, 0.0).sum(-1, None, None, keepdims=False)


def zeros_but(x, shape, where):
    """x in the place of the class of each row; or at places in the flattened array."""
    if is_class_a_row(shape, where) and x.dtype in nests.FLOATS and x.shape in ((), where.shape):
        return either(of_class(shape, where), x.reshape(-1, 1) if x.shape else x, 0.0)
    if not on_host(x) or type(where) is not Traced or where.shape != x.shape or not prod(shape):
        return None
    return emitted(added_at, x, shape, where)


def placed(x, shape, key):
    """Write down the rows of x added up at indices of the first axis, if they are such."""
    index = key[0] if len(key) == 1 else None
    if not on_host(x) or type(index) is not Traced or index.dtype.kind != "i" or not prod(shape):
        return None
    rows = index.ndim > 0 and x.shape == index.shape + shape[1:]
    return emitted(added_at, x, shape, index) if rows else None


def added_at(x, shape, where):
    """Zeros, with what x has added where it says: elements in the flattened array, or rows if x has those."""
    out = np.zeros(shape, x.dtype)
    np.add.at(out if x.ndim > where.ndim else out.reshape(-1), where, x)
    return out


def is_class_a_row(shape, where):
    return type(where) is Traced and len(shape) == 2 and where.shape == shape[:1] and prod(shape) > 0


def of_class(shape, where):
    """Return whether an element is the one to which ``where`` points, in rows with one each."""
    starts = np.arange(0, prod(shape), shape[1])
    return (where - starts).reshape(-1, 1) == np.arange(shape[1])


def either(condition, a, b):
    return dispatch.modules[Traced].where(condition, a, b)


FORMULAS = OTHERS | {
    "window_columns": columns, "small_columns": columns, "batch_first": batch_first, "input_array": input_array,
    "largest_under": largest_under, "maximum_under": maximum_under, "elements_at": elements_at, "zeros_but": zeros_but,
    "placed": placed,
}  # fmt: skip
