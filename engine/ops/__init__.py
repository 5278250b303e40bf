"""Operations: a row is a function, and a line for the derivative by each input.

What a row says of its class of nodes besides, for the features that ask.
"""

from .. import quick
from ..arrays import dispatch
from ..core.graph import Node, extend

extend(
    Node,
    diagonal=False,  # what a rule gives at a place depends on what is there: it is its own transpose
    elementwise=False,  # its rules are computed element by element: on a GPU each is one kernel
    linear=None,  # of what is linear in each input: ``linear(i, t, *saved)`` is it, with t in place of input i
)
dispatch.rule_classes = Node.__subclasses__
