"""The recorded graph: a node for each operation, with edges to the nodes of its inputs.

A node keeps its parents, what its derivative needs, and when it was made.  Whatever is made later can only depend on
what was made before, so the time is a topological order: the backward pass visits the newest node first.
"""

import threading
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..arrays.dispatch import scalar_types

clock = count(0, -1)  # the time of nodes and of in-place writes; newer is less, which makes a heap pop the newest
OUTPUT, CONSTANT = -1, -2  # saved values that are no input: the node's own output, an array outside of the graph
SAVED = {"x": 0, "y": 1, "z": 2, "out": OUTPUT} | dict.fromkeys(("mask", "index", "indices", "weights"), CONSTANT)
VARARGS = 4  # the flag of a code object with *arguments
MOST = 64  # index arrays that a rule can name with *indices: NumPy's arrays have no more dimensions
class_attachments: list = []  # each is told of a new class of nodes, and may give it what a feature needs
Tensor: type = None  # type: ignore  # set by tensor.py, which stands on this module


class Mode(threading.local):
    """The recording mode of this thread; features keep more of their own in it."""

    enabled = True
    unrecorded = "no_grad"  # how views come about that are not recorded


mode = Mode()


def extend(Class, **members):
    """Add a feature's attributes to a class of the core, which itself knows nothing of them."""
    for name, member in members.items():
        setattr(Class, name, member)


class Node:
    """One recorded operation: edges to its inputs and what its rules need."""

    rules: tuple = ()  # rules[i](g, *saved): the cotangent of input i from that of the output
    names: tuple = ()  # names[k]: how the rules call saved[k]
    saved_from: tuple = ()  # saved[k] is this input, OUTPUT or CONSTANT; None: a plain value.  () if none is an array
    outputs = 1  # how many there are; the cotangents of several travel as OutputCotangents
    checks_versions = True  # arrays that it saved must not be written before they are used
    requires_grad = True  # its output does
    begins = False  # its output is a leaf
    detached = False  # the tensor that it made has left it, by detach_()

    if TYPE_CHECKING:  # features keep what is theirs in attributes of their own

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, parents, saved):
        self.parents = parents  # the node of each input; None for one that requires no gradient
        self.saved = saved  # None once it was released
        self.time = next(clock)

    looks: tuple = ()  # see observers.py
    plain_init = __init__

    def observed_init(self, parents, saved):
        self.plain_init(parents, saved)
        for look in self.looks:
            look(self)

    def vjp(self, g, saved, parents):
        """Return the cotangents of the inputs from that of the output; None for a parent that is None."""
        return [p and rule(g, *saved) for p, rule in zip(parents, self.rules)]

    def linked(self, saved):
        """Return the saved values as Tensors joined to the graph, for a pass that is itself recorded."""
        return [
            s if k is None or s is None or type(s) in scalar_types
            else Tensor(s, None if k == CONSTANT else self if k == OUTPUT else self.parents[k])
            for s, k in zip(saved, self.saved_from)
        ] if self.saved_from else saved  # fmt: skip


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to ``leaf.grad``, and holds the leaf weakly: no cycle."""

    __module__ = "builtins"  # so that it prints as PyTorch's do, in IPython too: no module's name before its own
    begins = True

    def __init__(self, leaf):
        Node.__init__(self, (), ())
        self.leaf = ref(leaf)

    @property
    def variable(self):
        return self.leaf()


class Output(Node):
    """Stands for one of several outputs of a node; its cotangent goes to that node as ``OutputCotangents``."""

    rules = (lambda g, i: OutputCotangents({i: g}),)

    def __init__(self, node, i):
        Node.__init__(self, (node,), (i,))


class OutputCotangents(dict):
    """Cotangents of some of the outputs of one node; they add like arrays."""

    def __add__(self, other):
        return OutputCotangents({**self, **{i: self[i] + g if i in self else g for i, g in other.items()}})


def node_class(name, *rules, **traits):
    """Make a class of nodes from the derivatives by each input; their parameters' names say what is saved.

    ``x``, ``y``, ``z``: inputs, ``out``: the output, ``mask``, ``index`` and the like: arrays outside of the graph; a
    name that begins with an underscore is not needed by that rule; any other is a plain value.  ``*indices``: any
    number of index arrays.  ``traits``: what features want to know of the class.
    """
    codes = [rule.__code__ for rule in rules]
    columns = [*zip(*(code.co_varnames[1 : code.co_argcount] for code in codes))]
    names = tuple(next((n for n in column if not n.startswith("_")), "_") for column in columns)
    saved_from = tuple(SAVED.get(n) for n in names)
    needs = tuple(tuple(not n.startswith("_") for n in column) for column in columns)
    if any(code.co_flags & VARARGS and code.co_varnames[code.co_argcount] == "indices" for code in codes[:1]):
        saved_from = (*saved_from, *(CONSTANT,) * MOST)
        needs = (*needs, *((True,) * len(rules),) * MOST)
    elif all(k is None for k in saved_from):
        saved_from = ()
    facts = {
        "__module__": "builtins",
        "rules": rules,
        "names": names,
        "saved_from": saved_from,
        "needs": needs,  # needs[k][i]: whether the rule of input i needs saved[k]
        "needed_by": [(k, [i for i, need in enumerate(column) if need]) for k, column in enumerate(needs)
                      if saved_from and saved_from[k] is not None and not all(column)],
    }  # fmt: skip
    Class = type(name, (Node,), facts | traits)
    for attachment in class_attachments:
        attachment(Class)
    return Class
