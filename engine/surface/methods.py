"""Binds the operations to Tensor: operators, methods, in-place methods.  Each family says at its end what it offers."""

import functools

from ..core import views as inplace
from ..core.record import public_of
from ..core.tensor import Tensor
from ..core.views import in_place
from ..ops import (
    activations,
    attention,
    conv,
    creation,
    dropout,
    elementwise,
    index,
    linalg,
    norms,
    pad,
    pool,
    reduce,
    shape,
    softmax,
)
from .arguments import CHECKED, method

families = (activations, attention, conv, creation, dropout, elementwise, index, linalg, norms, pad, pool, reduce,
            shape, softmax)  # fmt: skip


def offers(family, names):
    """(name, function) for each of a family's names; "clip:clamp" is another name of the function clamp."""
    for entry in names.split():
        name, _, function = entry.partition(":")
        function = vars(family)[function or name]
        yield name, public_of(function)


TAKE_TENSORS = """
addbmm addcdiv addcmul addmm addmv allclose atan2 baddbmm bmm clamp_max clamp_min clip dot equal expand_as fmax fmin ger
hypot inner isclose lerp logaddexp logical_and logical_or logical_xor masked_fill masked_scatter masked_select maximum
minimum mv outer prelu reshape_as take_along_dim type_as view_as
""".split()  # what is called more often does without the explanation of wrong arguments, which takes a tenth of it


def explains(name, function):
    """Whether a method is looked at once it has failed: it takes tensors, or what has several names."""
    code = getattr(function, "__code__", None)
    return name in TAKE_TENSORS or code and name not in CHECKED and {"dim", "low"} & {*code.co_varnames[1:3]}


for family in families:
    for name, function in offers(family, family.METHODS):
        setattr(Tensor, name, method(name, function) if explains(name, function) else function)
    for name, function in offers(family, family.IN_PLACE):
        op_ = in_place(function)
        setattr(Tensor, name + "_", method(name, op_, name + "_") if explains(name, function) else op_)
for name in ("copy_", "fill_", "zero_"):
    setattr(Tensor, name, vars(inplace)[name])

e = elementwise


def reflected(operation):
    """``other - self`` and the like, for an operation with no reflected form of its own."""

    @functools.wraps(operation)
    def op(self, other):
        return operation(other, self)

    return op


OPERATORS = {
    "__add__": e.add, "__radd__": e.add, "__sub__": e.sub, "__rsub__": e.rsub, "__mul__": e.mul, "__rmul__": e.mul,
    "__truediv__": e.div, "__rtruediv__": lambda self, other: e.mul(e.reciprocal(self), other),
    "__floordiv__": e.floor_divide, "__rfloordiv__": reflected(e.floor_divide),
    "__mod__": e.remainder, "__rmod__": reflected(e.remainder), "__pow__": e.pow, "__rpow__": reflected(e.pow),
    "__matmul__": linalg.matmul_operator, "__rmatmul__": reflected(linalg.matmul_operator),
    "__neg__": e.neg, "__pos__": e.positive, "__abs__": e.abs,
    "__eq__": e.eq, "__ne__": e.ne, "__lt__": e.lt, "__le__": e.le, "__gt__": e.gt, "__ge__": e.ge,
    "__and__": e.bitwise_and, "__or__": e.bitwise_or, "__xor__": e.bitwise_xor, "__invert__": e.inverted,
    "__rand__": e.bitwise_and, "__ror__": e.bitwise_or, "__rxor__": e.bitwise_xor,
    "__lshift__": e.bitwise_left_shift, "__rshift__": e.bitwise_right_shift,
    "__rlshift__": reflected(e.bitwise_left_shift), "__rrshift__": reflected(e.bitwise_right_shift),
    "__getitem__": index.getitem, "__setitem__": index.setitem,
}  # fmt: skip
for name, operation in OPERATORS.items():
    setattr(Tensor, name, operation)
for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    setattr(Tensor, f"__i{name}__", in_place(OPERATORS[f"__{name}__"]))
