"""Checks of sizes and ends."""

from ...core.tensor import Tensor
from ...ops.checks import integer, is_integer, is_scalar, unfit
from ..messages import ENDS_DIMENSIONS, EYE_SIZE, NEGATIVE_STEPS, TRIANGLE_SIZE
from ..require import require


def eye(n, m):
    n = integer(n, "eye", "n", 1)  # a tensor of one integer, whatever its dims
    if m is not None and not is_integer(m):
        raise unfit("eye", n, m)
    require(n >= 0, EYE_SIZE, "n", n)
    require(m is None or m >= 0, EYE_SIZE, "m", m)


def tril_indices(row, col):
    require(row >= 0, TRIANGLE_SIZE, "row", row)
    require(col >= 0, TRIANGLE_SIZE, "col", col)


triu_indices = tril_indices


def linspace(start, end, steps, *, name="linspace"):
    dims = [v.ndim if isinstance(v, Tensor) else 0 for v in (start, end)]
    said = [f"{of} with {n} dimension(s)" for of, n in zip(("start", "end"), dims) if n]
    require(not said, ENDS_DIMENSIONS, name, " and ".join(said))
    if not is_integer(steps) or not all(isinstance(v, Tensor) or is_scalar(v) for v in (start, end)):
        raise unfit(name, start, end, steps)
    require(steps >= 0, NEGATIVE_STEPS)


def logspace(start, end, steps):
    linspace(start, end, steps, name="logspace")
