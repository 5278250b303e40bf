"""Operations that PyTorch composes of others with C++ numbers, whose nodes have names of their own."""

import operator

from ..core.graph import node_class
from ..core.record import array_of, record


def with_number(Backward, forward):
    """An operation of a tensor and a number, which keeps the dtype of the tensor."""

    def op(a, number):
        x = array_of(a)
        return record(Backward, forward(x, number).astype(x.dtype, copy=False), (a,), (number,))

    return op


plus = with_number(node_class("AddBackward1", lambda g, _: g), operator.add)
times = with_number(node_class("MulBackward1", lambda g, number: g * number), operator.mul)
divided = with_number(node_class("DivBackward1", lambda g, number: g / number), operator.truediv)
