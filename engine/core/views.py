"""Writing into a tensor's memory, and what that does to the graph of the tensor, of its base and of all its views.

All the cost is here and in the making of views: an operation that writes nothing pays nothing.
"""

import numpy as np

from ..arrays import dtypes
from ..arrays.dispatch import xp_of
from ..arrays.memory import storage
from . import errors, observers
from .graph import OUTPUT, AccumulateGrad, clock, mode, node_class
from .linear import contiguous
from .record import array_of, record
from .tensor import Tensor, alive
from .versions import write, wrote

write_checks: list = []  # what may refuse that a tensor is written: called with it and with what the values are made of
rebased: list = []  # called with a tensor, its next node and the one before: each may give another next one


def overwrite(tensor, out):
    """Write ``out``, an operation's result, into ``tensor``; its node becomes the tensor's."""
    x, node = tensor.array, out.node
    if node is not None and node.saved and node.saved_from:
        keep_overwritten(node, tensor, out.array)
    write(tensor, out.array)
    if x.dtype not in dtypes.differentiable:
        node = None
    if node is not None and OUTPUT in node.saved_from:
        node.time = next(clock)  # what it saved, it saved after this write
    rebase_history(tensor, node)
    return tensor


def modify(tensor, change, Backward, inputs, saved=()):
    """Let ``change(array)`` write into the memory of a tensor; the write's node gets these inputs and saved values."""
    x, node = tensor.shared(), None
    if mode.enabled and x.dtype in dtypes.differentiable:
        parents = tuple(a.node if isinstance(a, Tensor) else None for a in inputs)
        if any(p is not None for p in parents):
            node = Backward(parents, saved)
    change(x)
    wrote(tensor)
    rebase_history(tensor, node)
    return tensor


def keep_overwritten(node, tensor, value):
    """Of what a node saved: copy the input which is about to be overwritten; the output will be the tensor's memory."""
    x = tensor.array
    node.saved = tuple(
        x if k == OUTPUT and s is value and not isinstance(x, np.generic) else s.copy() if k == 0 and s is x else s
        for s, k in zip(node.saved, node.saved_from)
    )


# ---- what must not be written


def check_writable(tensor, others=()):
    """Raise RuntimeError where a write would break the graph; ``others``: what the values are made of."""
    for check in write_checks:
        check(tensor, others)
    if mode.enabled is True:
        base = tensor._base
        records = tensor.requires_grad or (base is not None and base.node is not None)
        for a in others:
            records = records or (isinstance(a, Tensor) and a.requires_grad)
        if records:
            check_recordable(tensor, base)


def check_recordable(tensor, base):
    """Raise the errors for a write that would have to be recorded."""
    if base is not None:
        if tensor.creation_meta is not None:
            raise RuntimeError(errors.forbidden_view(tensor, "is being modified inplace"))
        if tensor.requires_grad or base.node is not None:
            if base.node is None or base.node.begins:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation."
                )
    if tensor.node is not None and tensor.node.begins:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


# ---- the graph of a base and its views


def rebase_history(tensor, node):
    """Make ``node`` the origin of the contents of ``tensor`` (None: not recorded); base and views follow."""
    base = tensor if tensor._base is None else tensor._base
    if node is not None:
        become(tensor, node)
        if base is not tensor:
            become(base, CopySlices((base.node, node), (tensor.view_ops,)))
    known = base.__dict__
    if "views" in known or "aliases" in known:
        for b in alive(base, "aliases") or (base,):
            if b.node is not None:
                for v in alive(b, "views"):
                    rebase_view(v, b)


def rebase_view(view, base):
    """Give a view a node after a write to its memory: it leads to the base by the rules of the view's operations."""
    if view.creation_meta is None:
        become(view, ViewOfBase((base.node,), (replayed(base, view.view_ops),)))
    else:
        for tell in errors.graph_lost:
            tell(view)


def become(tensor, node):
    """Replace the node of a tensor."""
    before = tensor.node
    if type(before) is AccumulateGrad:
        tensor.node = None
    for follow_node in rebased:
        node = follow_node(tensor, node, before) or node
    tensor.node = node
    observers.notify(Tensor, tensor)


def follow(a, view_ops):
    """The view of a to which operations lead, or a copy of it: a may lie in memory in another order than the base."""
    if views_may_overlap(view_ops):
        a = contiguous(a)
    for op, args in view_ops:
        a = op(a, *args)
    return a


def views_may_overlap(view_ops):
    return bool(view_ops) and any(op.__name__ in ("unfold", "as_strided") for op, _ in view_ops)


def zeroed(g, view_ops):
    """g with the region of a view set to zero; it is its own transpose."""
    x = xp_of(array_of(g)).array(array_of(g))
    region = follow(x, view_ops)
    if storage(region) is storage(x):
        region[...] = 0
    else:
        x.reshape(-1)[follow(xp_of(x).arange(x.size).reshape(x.shape), view_ops)] = 0
    return record(Zeroed, x, (g,), (view_ops,))


def replayed(base, view_ops):
    """The nodes of view operations, the last one first."""
    probe = Tensor(base.array, base.node)
    nodes: list = []
    before, mode.enabled = mode.enabled, True
    try:
        for op, args in view_ops:
            probe = op(probe, *args)
            nodes.insert(0, probe.node)
    finally:
        mode.enabled = before
    return nodes


def back_through(g, chain):
    for node in chain:
        g = node.rules[0](g, *node.saved)
    return g


Zeroed = node_class("CopySlices", lambda g, view_ops: zeroed(g, view_ops))
CopySlices = node_class("CopySlices", lambda g, view_ops: zeroed(g, view_ops), lambda g, view_ops: follow(g, view_ops))
CopySlices.saved_from = (None,)  # no array is kept, and yet a second backward pass is refused
ViewOfBase = node_class("AsStridedBackward0", lambda g, chain: back_through(g, chain))
