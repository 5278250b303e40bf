"""The linear operations that undo a broadcast, a reduction or a cast: every other family's rules are built on them."""

from typing import Any

from ..arrays import dtypes
from ..arrays.dispatch import xp_of
from ..arrays.kernels.sums import sum_array
from ..arrays.kernels.views import clone_array, contiguous_array
from ..arrays.selection import repeat_to
from ..arrays.shapes import reshape_array
from .graph import node_class
from .record import array_of, record
from .rules import view
from .tensor import Tensor


def cast(a, to):
    """a with the NumPy dtype ``to``; a Python number, None or an array that has it already is returned as it is."""
    x = array_of(a)
    if x is None or type(x) in (bool, int, float) or x.dtype == to:
        return a
    new = x.astype(to)
    return record(ToCopy, new if 0 not in x.strides else contiguous_array(new), (differentiable(a, to),), (x.dtype,))


def differentiable(a, dtype):
    """a; without its graph if it goes on as integers or bools, which have no gradient."""
    return a if dtype in dtypes.differentiable or not isinstance(a, Tensor) else Tensor(a.array)


ToCopy = node_class("ToCopyBackward0", lambda g, dtype: cast(g, dtype))


def sum_axes(a, axis=None, keepdims=False):
    """The sum over axes (None: all), as the rules need it; ``sum`` in ``ops/reduce.py`` is the public one."""
    if not isinstance(a, Tensor):
        return sum_array(a, axis, keepdims)
    x = a.array
    return record(SumAxes, sum_array(x, axis, keepdims), (a,), (x.shape, axis, keepdims))


SumAxes = node_class("SumBackward1", lambda g, shape, axis, keepdims: unsum(g, shape, axis, keepdims))


def unsum(a, shape, axis=None, keepdims=True):
    """Undo a sum: put back the summed axes and repeat along them."""
    x = array_of(a)
    if axis is not None and not keepdims:
        x = xp_of(x).expand_dims(x, axis)
    return record(Unsum, repeat_to.call(x, shape), (a,), (axis, keepdims, array_of(a).shape))


Unsum = node_class("ExpandBackward0",
                    lambda g, axis, keepdims, shape: sum_to(g, shape) if axis is None or keepdims
                    else sum_axes(g, axis))  # fmt: skip


def sum_to(a, shape):
    """Sum over the axes along which ``shape`` was broadcast to the shape of a."""
    have = a.shape
    if have == shape:
        return a
    lead = len(have) - len(shape)
    if have[lead:] == shape:
        return sum_axes(a, (0,) if lead == 1 else tuple(range(lead)))
    axes = tuple(range(lead)) + tuple(i for i, n in enumerate(shape, lead) if n == 1 and have[i] != 1)
    return reshape(sum_axes(a, axes, True), shape) if axes else reshape(a, shape)


def contiguous(input, memory_format=None):
    """The tensor itself if its elements lie in order, else a copy in which they do."""
    x = array_of(input)
    return input if x.flags.c_contiguous else record(Clone, x.copy(), (input,))


def clone(input, *, memory_format=None):
    """A copy, in the graph."""
    return record(Clone, clone_array(array_of(input)), (input,))


Clone = node_class("CloneBackward0", lambda g: g)
Clone.diagonal = True
UnsafeView = node_class("UnsafeViewBackward0", lambda g, shape, _: reshape(g, shape))
UnsafeView.linear = staticmethod(lambda _, t, have, shape: reshape(t, shape))


def clone_and_view(parents, saved):
    """The nodes of a reshape that has to copy."""
    return UnsafeView((Clone(parents, ()),), saved)


reshape: Any = view("reshape", reshape_array, lambda g, shape, _: reshape(g, shape), "ViewBackward0", clone_and_view)
transpose: Any = view(
    "transpose", lambda x, i, j: x.swapaxes(i, j) if x.ndim else x[...], lambda g, shape, i, j: transpose(g, i, j)
)
