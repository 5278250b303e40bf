"""Operations made of rules: those that move elements, and those whose cotangents share work.

Elementwise rows are in ``ops/rows.py``: they have to know PyTorch's dtypes.
"""

import numpy as np

from ..arrays.memory import storage
from .graph import mode, node_class
from .tensor import Tensor, track_view, unreachable


def joint_class(name, n, rule):
    """A node class for an operation whose n cotangents share work: ``rule(g, *saved)`` gives a function for each.

    The names of the rule's parameters say what is saved, as in ``node_class``.
    """
    Class = node_class(name, *(rule,) * n)
    Class.rules = tuple(lambda g, *saved, i=i: rule(g, *saved)[i]() for i in range(n))
    Class.vjp = lambda self, g, saved, parents: [p and f() for p, f in zip(parents, rule(g, *saved))]
    return Class


def view(name, forward, rule, backward=None, copied=None, linear=None):
    """A linear operation that moves elements: ``forward(x, *args)``, ``rule(g, shape, *args)``.

    ``shape`` is that of the input. The arguments are plain values and are passed by position. Where the result shares
    the memory of the input, it is a view of it. ``copied``: the node class for where it does not, if that is another;
    a view of memory that is not contiguous then has a node of its own name too, as in PyTorch.  ``linear(x, *args)``:
    the operation without what it adds to its linear part, if it adds something.
    """
    Backward = node_class(backward or camel(name) + "Backward0", rule)
    Alias = node_class(camel(name) + "AliasBackward0", rule)  # of what was no longer contiguous
    Backward.linear = Alias.linear = staticmethod(lambda _, t, shape, *args: (linear or op)(t, *args))

    def op(input, *args):
        if not isinstance(input, Tensor):
            return forward(input, *args)
        x = input.array
        if type(x) is not np.ndarray:
            x = input.shared()
        out = forward(x, *args)
        p = input.node
        shares = storage(out) is storage(x)
        Class = Backward if copied is None else copied if not shares else Backward if x.flags.c_contiguous else Alias
        if p is not None:
            p = Class((p,), (x.shape, *args)) if mode.enabled else unreachable() if shares else None
        result = Tensor(out, p)
        if shares:
            track_view(result, input, op, args)
        return result

    op.__name__ = op.__qualname__ = name
    op.rules = (rule,)
    return op


def camel(name):
    """log_softmax -> LogSoftmax"""
    return "".join(word.capitalize() for word in name.split("_"))
