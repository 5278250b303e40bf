"""Checks of reductions: what they are over, and in which dtypes."""

from ...arrays import dtypes
from ...core.graph import mode
from ...core.tensor import Tensor
from ...ops.checks import no_kernel, unfit
from ...ops.reduce import axes
from .. import messages as m
from ..require import require


def not_empty(name, input, dim, error=RuntimeError, hint=m.REDUCE_DIM_HINT):
    """Refuse to reduce no elements to one."""
    x = input.array
    if not x.size:
        axis = axes(dim, x.ndim)
        require(dim is not None and axis is not None, m.REDUCE_DIM + hint, name, error=error)
        for i in axis:
            require(x.shape[i], m.REDUCED_SIZE, name, i, error=IndexError)


def over(title, error=RuntimeError, hint=m.REDUCE_DIM_HINT, bools=True):
    """The check of a reduction that nothing has no result of."""

    def check(input, dim):
        if not bools and input.array.dtype.kind == "b":
            require(False, m.ARGMAX_BOOL, title)
        not_empty(title, input, dim, error, hint)

    return check


amax, amin = over("amax()"), over("amin()")
argmax, argmin = (over(title, IndexError, "", bools=False) for title in ("argmax()", "argmin()"))


def max(input, dim, keepdim, other, *, name="max"):
    if keepdim:
        along_a_dim(name, dim)
    if other is None and not isinstance(dim, Tensor):
        not_empty(f"{name}()", input, dim)


def min(input, dim, keepdim, other):
    max(input, dim, keepdim, other, name="min")


def along_a_dim(name, dim):
    """Refuse ``keepdim`` where all elements are reduced to one, or two tensors compared."""
    if dim is None or isinstance(dim, Tensor):
        raise unfit(name, *[dim] * (dim is not None), keepdim=True)


def aminmax(input, dim):
    if not input.array.size:
        require(axes(dim, input.ndim) is not None, m.AMINMAX_EMPTY)
        not_empty("aminmax", input, dim)


def median(input, dim, keepdim):
    if keepdim:
        along_a_dim("median", dim)
    if input.array.dtype.kind == "b":
        raise no_kernel("median_cpu", input.array)
    if dim is not None:
        not_empty("median()", input, dim)


def of_floats(title, name):
    """The check of a reduction that integers have no result of; two of its arguments are names for one number."""

    def check(input, dim, unbiased, correction):
        if correction is not None and (unbiased is not None or type(dim) is bool):
            raise unfit(title, correction=correction, unbiased=True)
        if not dtypes.of[input.array.dtype].is_floating_point:
            require(False, m.ONLY_FLOATS, name)

    return check


var, std = of_floats("var", "std and var"), of_floats("std", "std and var")
var_mean, std_mean = of_floats("var_mean", "var_mean"), of_floats("std_mean", "std_mean")


def dist(input, other):
    require(dtypes.promoted[input.dtype, other.dtype].is_floating_point, m.DIST_DTYPE)


def vector_norm(x, dtype):
    widens("linalg.vector_norm", x, dtype)


def widens(title, input, dtype):
    """The dtype that a norm is to be computed in holds every number of the input."""
    if dtype is None:
        return
    have, want = dtypes.of[input.array.dtype], dtypes.given(dtype, title.replace(".", "_"))
    require(have.is_floating_point, m.FLOATING_NEEDED, title, have.np)
    require(want.is_floating_point, m.NORM_DTYPE, title, want.np)
    require(dtypes.promote_types(have, want) is want, m.NORM_NARROWER, title, have.np, want.np)


def bincount(input, weights, minlength):
    x = input.array
    if dtypes.of[x.dtype].category != dtypes.INTEGER:
        raise no_kernel("bincount_cpu", x)
    require(minlength >= 0, m.BINCOUNT_LENGTH)
    require(x.ndim == 1, m.BINCOUNT_INPUT)
    if weights is not None:
        require(weights.shape == x.shape, m.BINCOUNT_WEIGHTS)
        require(not (weights.requires_grad and mode.enabled), m.BINCOUNT_GRADIENT, error=NotImplementedError)
