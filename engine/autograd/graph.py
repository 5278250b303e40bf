"""What ``torch.autograd.graph`` offers to look at the graph with."""

from .. import graph
from ..graph import RemovableHandle
from .function import FunctionCtx

__all__ = ["Node", "RemovableHandle"]


class NodeType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, (graph.Node, FunctionCtx))


class Node(metaclass=NodeType):
    """The type of every ``grad_fn``, for ``isinstance``."""
