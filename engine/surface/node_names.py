"""The graph as PyTorch shows it: names of nodes, their next functions, and what they saved as attributes."""

import numpy as np

from ..arrays.dispatch import scalar_types
from ..core import errors
from ..core.graph import OUTPUT, SAVED, AccumulateGrad, Node, Output, extend
from ..core.tensor import Tensor
from ..core.versions import check_value, is_idle
from ..core.views import CopySlices


def name(self):
    """PyTorch's name of the operation."""
    name = type(self).__name__
    return name if name.removesuffix("_copy")[-1].isdigit() else "torch::autograd::" + name


def edge(node):
    """(node, output number) as in ``next_functions``."""
    node, number = (node.parents[0], node.saved[0]) if type(node) is Output else (node, 0)
    shown = node and node.grad_fn_view()
    getattr(shown, "called", None)  # from now on it has what it saved
    return shown, number


def next_functions(self):
    """The nodes of the inputs, each with the number of its output, as PyTorch shows them."""
    return tuple(edge(p) for p in self.parents if p is not None or not self.scalar_operand)


# what PyTorch shows of the saved values, and how it calls x, y, out, ...: in general, and where a name contains ...
SHOWN = {*SAVED, "shape", "axis", "dim", "keepdims"}
CALLED = {"x": "self", "y": "other", "out": "result", "shape": "self_sym_sizes", "axis": "dim", "keepdims": "keepdim"}
CALLED_THERE = {
    "Pow": "y=exponent", "Addmm": "y=mat1 z=mat2", "ddbmm": "y=batch1 z=batch2", "Addmv": "y=mat z=vec", "Mm": "y=mat2",
    "mm": "y=mat2", "Mv": "y=vec", "Dot": "y=tensor", "Loss": "y=target index=target", "Entropy": "y=target",
    "Convolution": "x=input y=weight", "Native": "x=input y=weight", "Prelu": "y=weight", "Where": "mask=condition",
    "Addc": "y=tensor1 z=tensor2", "LerpBackward1": "y=end z=weight", "MaxPool": "index=result1",
    "Sort": "index=indices", "Topk": "index=indices", "Kthvalue": "index=indices",
    "LinalgInv": "out=inverse", "LinalgDet": "x=A",
}  # fmt: skip


class Called:
    """``called``: how PyTorch calls what the rules of a class of nodes keep, where that is not as the rules call it.

    It is found when a node of the class is first looked at, and that also gets its ``_saved_self`` and the like: most
    classes are never looked at.  (A ``__getattr__`` would make all other attributes of a node slow.)
    """

    def __get__(self, node, Class):
        own = next((names for part, names in CALLED_THERE.items() if part in Class.__name__), "")
        Class.called = called = CALLED | dict(pair.split("=") for pair in own.split())
        for i, n in enumerate(Class.names):
            if n in SHOWN:
                setattr(Class, "_saved_" + called.get(n, n), saved_attribute(i, called.get(n)))
        return called


def saved_attribute(i, called):
    def get(node):
        saved = node.saved
        if saved is None:
            raise RuntimeError(errors.FREED)
        s, k = saved[i], node.saved_from[i] if node.saved_from else None
        if k is None or s is None or is_idle(node, i):
            return s if k is None else None
        if node.checks_versions:
            check_value(node, s, k)
        if type(s) in scalar_types:
            return Tensor(np.asarray(s)) if called == "other" else s
        return saved_tensor(s, node if k == OUTPUT else node.parents[k] if k >= 0 else None)

    return property(get)


def saved_tensor(s, source):
    """A saved array as the Tensor that it was: the leaf itself, if it still has that array."""
    leaf = source.variable if type(source) is AccumulateGrad else None
    return leaf if leaf is not None and leaf.array is s else Tensor(s, source)


extend(
    Node,
    name=name,
    next_functions=property(next_functions),
    metadata=property(lambda self: self.__dict__.setdefault("_metadata", {})),
    scalar_operand=False,  # the other operand is a number, for which PyTorch has no edge
    grad_fn_view=lambda self: self,  # what stands for this node in ``grad_fn`` and ``next_functions``
    called=Called(),
)
extend(CopySlices, next_functions=property(
    lambda self: (edge(self.parents[0]), *edge(self.parents[1])[0].next_functions[1:])))  # fmt: skip
