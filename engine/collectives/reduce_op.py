"""The operations that combine what the ranks have."""

from enum import Enum

import numpy as np

from ..arrays import dtypes
from ..arrays.warn import warn
from ..surface.require import require
from . import messages


class RedOpType(Enum):
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    __hash__ = Enum.__hash__

    def __repr__(self):
        return f"<RedOpType.{self.name}: {self.value}>"

    def __eq__(self, other):
        return self is (other.op if type(other) is ReduceOp else other)


class Members(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, RedOpType) or type.__instancecheck__(cls, instance)


class ReduceOp(metaclass=Members):
    """An operation that makes one value of those of all ranks: ``SUM``, ``AVG``, ``PRODUCT``, ``MIN``, ``MAX``, ..."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType
    RedOpType = RedOpType

    def __init__(self, op):
        self.op = checked(op)

    def __eq__(self, other):
        return self.op == other

    def __hash__(self):
        return hash(self.op)


class OldNames:
    """``reduce_op``, which was there before ``ReduceOp``."""

    def __getattr__(self, name):
        if name not in RedOpType.__members__:
            raise AttributeError(f"'_reduce_op' object has no attribute '{name}'")
        warn(messages.DEPRECATED.format("reduce_op", "ReduceOp"), FutureWarning)
        return getattr(ReduceOp, name)


def checked(op):
    """A member of RedOpType.  TypeError for what is none."""
    if isinstance(op, RedOpType):
        return op
    require(type(op) is ReduceOp, messages.TYPE_OF_OP, type(op).__name__, error=TypeError)
    return op.op


def checked_for(op, dtype):
    """The same, for tensors of a NumPy dtype.  RuntimeError where it has no meaning."""
    op = checked(op)
    kind = dtypes.of[dtype]
    integral = not kind.is_floating_point
    require(op.name[0] != "B" or integral, messages.BITWISE, op.name)
    require(op is not ReduceOp.AVG or not integral, messages.INTEGER_MEAN, dtypes.type_words[dtype])
    require(op is not ReduceOp.PREMUL_SUM, messages.OP_UNSUPPORTED, op.name)
    return op


FUNCTIONS = {  # of floats
    ReduceOp.SUM: np.add, ReduceOp.AVG: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
}  # fmt: skip
