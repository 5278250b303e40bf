"""Binds the operations to Tensor: operators, methods, in-place methods."""

import functools

import numpy as np

from ..arrays.quiet import hush, quiet, state
from ..core.tensor import Tensor
from ..help import describe, of_methods
from ..ops import elementwise, index, linalg, writes
from ..ops.writes import in_place
from . import graph_errors, node_names, tensor  # noqa: F401  what they say of the graph and of Tensors is bound
from .doors import Offered

methods = Offered("method", Tensor.__module__)
for offered in (methods, Offered("in_place", Tensor.__module__)):
    offered.into_class(Tensor)
for name in ("copy_", "fill_", "zero_"):
    setattr(Tensor, name, vars(writes)[name])

e = elementwise
BOOL = np.dtype(bool)


def reflected(operation):
    """``other - self`` and the like, for an operation with no reflected form of its own."""

    @functools.wraps(operation)
    def op(self, other):
        return operation(other, self)

    return op


def matmul(self, other):
    """``self @ other``."""
    if not isinstance(self, Tensor) or not isinstance(other, Tensor):
        return NotImplemented
    x, y = self.array, other.array
    if state() not in quiet:
        hush()
    if x.dtype is y.dtype is not BOOL and x.ndim and 0 < y.ndim < 3 and x.shape[-1] == y.shape[0]:
        return linalg.matmul(self, other)
    return methods["matmul"](self, other)


texts = of_methods()
OPERATORS = {
    "__add__": e.add, "__radd__": e.add, "__sub__": e.sub, "__rsub__": e.rsub, "__mul__": e.mul, "__rmul__": e.mul,
    "__truediv__": e.div, "__rtruediv__": lambda self, other: e.mul(e.reciprocal(self), other),
    "__floordiv__": e.floor_divide, "__rfloordiv__": reflected(e.floor_divide),
    "__mod__": e.remainder, "__rmod__": reflected(e.remainder), "__pow__": e.pow, "__rpow__": reflected(e.pow),
    "__matmul__": matmul, "__rmatmul__": reflected(matmul),
    "__neg__": e.neg, "__pos__": e.positive, "__abs__": e.abs,
    "__eq__": e.eq, "__ne__": e.ne, "__lt__": e.lt, "__le__": e.le, "__gt__": e.gt, "__ge__": e.ge,
    "__and__": e.bitwise_and, "__or__": e.bitwise_or, "__xor__": e.bitwise_xor, "__invert__": e.inverted,
    "__rand__": e.bitwise_and, "__ror__": e.bitwise_or, "__rxor__": e.bitwise_xor,
    "__lshift__": e.bitwise_left_shift, "__rshift__": e.bitwise_right_shift,
    "__rlshift__": reflected(e.bitwise_left_shift), "__rrshift__": reflected(e.bitwise_right_shift),
    "__getitem__": index.getitem, "__setitem__": index.setitem,
    "__dir__": lambda self: [n for n in object.__dir__(self) if n.startswith("_") or n in texts],
}  # fmt: skip
for name, operation in OPERATORS.items():
    setattr(Tensor, name, operation)
for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Tensor, f"__i{name}__", in_place(OPERATORS[f"__{name}__"]))
for name, text in texts.items():
    describe(vars(Tensor).get(name), text)
