"""Softmax and its logarithm along a dimension."""

from ..arrays import dtypes
from ..arrays.kernels import softmax as kernels
from ..arrays.kernels.views import contiguous_array
from ..core.graph import node_class
from ..core.linear import cast, sum_axes
from ..core.record import array_of, attach, record
from ..core.tensor import Tensor
from .checks import checked_dim
from .elementwise import exp
from .rows import register, widened


def softmax_rule(g, out, axis):
    """(g - sum(g * out)) * out"""
    if not isinstance(g, Tensor):
        return kernels.softmax_vjp(axis, g, out)
    dtype, g, out = array_of(g).dtype, widened(g), widened(out)
    return cast((g - sum_axes(g * out, axis, True)) * out, dtype)


def log_softmax_rule(g, out, axis, *known):
    """g - exp(out) * sum(g); ``known`` to the kernel, a pass that is recorded does not get it."""
    if not isinstance(g, Tensor):
        return kernels.log_softmax_vjp(axis, g, out, *known)
    dtype, g, out = array_of(g).dtype, widened(g), widened(out)
    return cast(g - exp(out) * sum_axes(g, axis, True), dtype)


Softmax, SafeSoftmax = (node_class(name, softmax_rule) for name in ("SoftmaxBackward0", "SafeSoftmaxBackward0"))
LogSoftmax = node_class("LogSoftmaxBackward0", log_softmax_rule)


def softmax(input, dim, dtype=None):
    """exp(x) / sum(exp(x)) along ``dim``."""
    input, x, axis = checked("softmax", input, dim, dtype)
    out = kernels.softmax(axis, x)
    return attach(Softmax, out, (input.node,), (out, axis)) if isinstance(input, Tensor) else out


def log_softmax(input, dim, dtype=None):
    """log(softmax(x)) along ``dim``, without overflow."""
    input, x, axis = checked("log_softmax", input, dim, dtype)
    out, *known = kernels.log_softmax(axis, x)
    return attach(LogSoftmax, out, (input.node,), (out, axis, *known)) if isinstance(input, Tensor) else out


def safe_softmax(input):
    """softmax along the last dimension, with zeros for a row that is -inf everywhere: that of a query without keys."""
    input, x, axis = checked("softmax", input, -1, None)
    out = kernels.safe_softmax(axis, x)
    return record(SafeSoftmax, out, (input,), (out, axis))


def checked(name, input, dim, dtype):
    """(the input in a dtype, its array, the axis)"""
    if dtype is not None:
        input = cast(input, dtypes.given(dtype, name).np)
    x = contiguous_array(array_of(input))
    axis = checked_dim(dim, x.ndim) if x.ndim else checked_dim(dim, 0) or None
    return input, x, axis


for function in (softmax, log_softmax):
    register(function.__name__, "nn", function)
