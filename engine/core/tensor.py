"""Tensor: an array and the node that made it.

Here is what the graph needs of it.  Operations are bound to it as methods by ``surface``, and so is all that programs
see besides; features that must know more of a Tensor keep it in attributes of their own.
"""

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ..arrays.dispatch import batches, modules, number_types
from ..arrays.size import Size
from . import graph, versions
from .graph import AccumulateGrad, mode


class Tensor:
    """An array which remembers how it was computed: ``array`` and ``node``.

    ``node`` is None where no gradient is required, an AccumulateGrad in a leaf, else the node of the operation.  A 0-d
    result may be held as a NumPy scalar, which computes ten times faster; whoever needs its memory calls ``shared()``.
    """

    __array_priority__ = 1000  # NumPy leaves ``ndarray + Tensor`` to the Tensor
    __module__ = "engine"
    __hash__ = object.__hash__
    _grad = None
    _base = None  # the tensor whose memory this one views
    view_ops: tuple = ()  # how to get from there to here: ((view operation, arguments), ...)
    creation_meta = None  # how this view came about, where that forbids in-place writes: "no_grad", "several", ...
    grad_checks: list = []  # what may refuse that a tensor begins or stops to require grad

    if TYPE_CHECKING:  # bound from above

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, array=(), node=None, *sizes, device=None):
        if type(array) not in array_types:
            array, node = self.construct(array, node, sizes, device)
        self.array = array
        self.node = node

    looks: tuple = ()  # see observers.py
    plain_init = __init__

    def observed_init(self, array=(), node=None, *sizes, device=None):
        if type(array) not in array_types:
            array, node = self.construct(array, node, sizes, device)
        self.plain_init(array, node)
        for look in self.looks:
            look(self)

    @property
    def shape(self):
        return tuple.__new__(Size, self.array.shape)

    def shared(self):
        """The array, as memory that can be viewed: a NumPy scalar becomes an array first."""
        x = self.array
        if isinstance(x, np.generic):
            self.array = np.asarray(x)
        elif type(x) in batches and modules[type(x)].is_number(x):
            self.array = modules[type(x)].in_memory(x)
        else:
            return x
        versions.becomes(x, self.array)
        return self.array

    @property
    def requires_grad(self):
        return self.node is not None and self.node.requires_grad

    grad = property(lambda self: self._grad)  # what backward added up here

    @property
    def is_leaf(self):
        return self.node is None or type(self.node) is AccumulateGrad or not self.node.requires_grad

    def requires_grad_(self, requires_grad=True):
        """Begin (or stop) to record operations on this leaf.  RuntimeError for integers, and for what is no leaf."""
        for check in self.grad_checks:
            check(self, requires_grad)
        if requires_grad == (self.node is not None):
            return self
        if requires_grad:
            self.node = self.__dict__.pop("resting", None) or AccumulateGrad(self)
        else:
            self.resting, self.node = self.node, None  # with what is attached to it
        for v in alive(self, "views"):  # those made before require grad too, but pass none on
            if v.is_leaf:
                v.node = unreachable() if requires_grad else None
        return self

    def detach(self):
        """The same memory, outside of the graph."""
        new = Tensor(self.shared())
        base = self if self._base is None else self._base
        new.aliases = base.__dict__.setdefault("aliases", [ref(base)])
        remember(new.aliases, new)
        for hand_on in inherited:
            hand_on(new, self)
        return new


require_grad = Tensor.requires_grad_  # for what is built on tensors; to programs, a feature may refuse the method
array_types = set(number_types) | {np.ndarray}  # and more, once they are met
inherited: list = []  # what features let a view or an alias have from its source: called with both
graph.Tensor = Tensor


# ---- views know their base


def track_view(view, source, op, args):
    """Tell the tensor that owns the memory of ``view``, so that in-place writes rewrite the graph of all its views."""
    base = source if source._base is None else source._base
    view._base = base
    view.view_ops = (*source.view_ops, (op, args))
    if not mode.enabled:
        view.creation_meta = mode.unrecorded
    elif source.creation_meta is not None:
        view.creation_meta = source.creation_meta
    for hand_on in inherited:
        hand_on(view, source)
    remember(base.__dict__.setdefault("views", []), view)


def remember(references, tensor):
    """Add a weak reference; now and then, forget those that are gone."""
    references.append(ref(tensor))
    n = len(references)
    if n & (n - 1) == 0:
        references[:] = [r for r in references if r() is not None]


def alive(tensor, kind):
    """The tensors that one knows: its "views", or its "aliases", which share its memory by ``detach()``."""
    return [t for t in (r() for r in tensor.__dict__.get(kind, ())) if t is not None]


def unreachable():
    """The node of a view made unrecorded of a tensor that requires grad: it says so, but never gets a gradient."""
    node = AccumulateGrad(set())  # a leaf that is gone
    node.grad_fn_view, node.receives = lambda: None, False
    return node
