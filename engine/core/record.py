"""What records: the makers of operations that join results to the graph.

An operation takes Tensors or plain arrays and returns the same kind.  A rule is built from Python operators and from
other operations, so the ordinary backward pass runs it on arrays, and ``create_graph=True`` runs the very same rule
recorded.
"""

import numpy as np

from ..arrays.dispatch import xp_of as xp_of  # offered beside array_of
from ..arrays.memory import storage
from .graph import Output, mode, node_class
from .tensor import Tensor, track_view, unreachable

registry: dict = {}  # name -> Row: every operation that a table defines, for the tests


class Row:
    """What a table says of one operation."""

    __slots__ = ("function", "kind", "rules")

    def __init__(self, function, kind, rules):
        self.function, self.kind, self.rules = function, kind, rules


def register(name, kind, function, *rules):
    """Give an operation its name and a row in the registry."""
    function.__name__ = function.__qualname__ = name
    registry[name] = Row(function, kind, rules)
    return function


def array_of(a):
    """The array of a Tensor; anything else as it is."""
    return a.array if isinstance(a, Tensor) else a


def record(Backward, out, inputs, saved=(), rules=None):
    """The result of an operation on ``inputs``, joined to the graph if one of them requires grad.

    ``out``: an array.  Plain arrays in, plain array out.  A saved array that no needed rule names is not kept.
    ``rules()``: those of this one node, if they are not those of its class.
    """
    parents = parents_of(inputs)
    return out if parents is None else attach(Backward, out, parents, saved, rules)


def attach(Backward, out, parents, saved, rules=None):
    """The same for Tensors, given by their nodes."""
    if not any(parents) or not mode.enabled:
        return Tensor(out)
    if None in parents:
        saved = keep_needed(Backward, parents, saved)
    node = Backward(parents, saved)
    if rules is not None:
        node.rules = rules()
    return Tensor(out, node)


def parents_of(inputs):
    """The node of each input, None where it has none; None altogether if no input is a Tensor."""
    parents, plain = [], True
    for a in inputs:
        if isinstance(a, Tensor):
            parents.append(a.node)
            plain = False
        else:
            parents.append(None)
    return None if plain else tuple(parents)


def keep_needed(Backward, parents, saved):
    """The saved values without those arrays that only the rules of inputs which require no grad would use."""
    for k, users in Backward.needed_by:
        for i in users:
            if parents[i] is not None:
                break
        else:
            saved = (*saved[:k], None, *saved[k + 1 :])
    return saved


def record_outputs(Backward, outs, inputs, saved=()):
    """The results of an operation with several outputs: an ``Output`` node stands before the real one for each."""
    parents = parents_of(inputs)
    if parents is None:
        return tuple(outs)
    if any(parents) and mode.enabled:
        node = Backward(parents, keep_needed(Backward, parents, saved))
        node.outputs = len(outs)
        return tuple(Tensor(out, Output(node, i)) for i, out in enumerate(outs))
    return tuple(map(Tensor, outs))


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
        if isinstance(x, np.generic):
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

    return register(name, "view", op, rule)


def camel(name):
    """log_softmax -> LogSoftmax"""
    return "".join(word.capitalize() for word in name.split("_"))
