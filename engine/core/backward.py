"""The backward pass: cotangents travel from the roots to the leaves, from the newest node to the oldest.

They are plain arrays, or Tensors where the pass is itself recorded (``create_graph=True``); the rules are the same.
"""

from heapq import heappop, heappush
from operator import attrgetter

import numpy as np

from ..arrays.dispatch import Function
from ..arrays.memory import is_alone
from ..arrays.threads import new_lock
from . import errors, versions
from .graph import AccumulateGrad, Output, mode, node_class
from .tensor import Tensor
from .versions import check_unmodified, write

ones_like = Function("ones_like").call
lock = new_lock()  # reading, adding and writing back must be one step when threads share a leaf
attachments: list = []  # what stands between a pass and the nodes: each makes a visit of another one, or gives None
arrivals: list = []  # called with what has arrived at leaves, {leaf's node: cotangent}; they may change or keep it
walks: list = []  # quicker ways to do what visit_all does; the last one does it
root_checks: list = []  # what may refuse a root: called with its number, the tensor and the gradient or None


def chain_rule(node, g, parents, retain_graph=False, create_graph=False):
    """Visit a node: return the cotangents of its inputs from that of its output."""
    saved = node.saved
    if saved is None:
        raise RuntimeError(errors.FREED)
    if versions.last_write < node.time:
        check_unmodified(node)
    into = node.vjp(g, node.linked(saved) if create_graph else saved, parents)
    if node.saved_from and not retain_graph:
        node.saved = None  # release the arrays; the edges stay, as in PyTorch
    return into


def chain_rule_with(retain_graph, create_graph):
    return lambda node, g, parents: chain_rule(node, g, parents, retain_graph, create_graph)  # a partial is slower


def current_visit(visit, cotangents, wanted=None):
    """Wrap a visit in all that is attached to passes."""
    for attachment in attachments:
        visit = attachment(visit, cotangents, wanted) or visit
    return visit


def backward_pass(cotangents, retain_graph=False, create_graph=False, wanted=None, through=False):
    """Carry cotangents from the roots, {node: cotangent}, to the leaves, and add them to their ``.grad``.

    With ``wanted``, a set of nodes, nothing is added to leaves: only the nodes on the way to those are visited, and
    what arrives at them is returned, as {node: cotangent}.  ``through``: the wanted nodes are visited too.
    """
    visit = chain_rule_with(retain_graph, create_graph) if retain_graph or create_graph else chain_rule
    if attachments:
        visit = current_visit(visit, cotangents, wanted)
    found: dict = {}
    if wanted is not None:
        ends: dict = {}
        cotangents, visit = toward(wanted, cotangents, found, ends, visit, through)
    before, mode.enabled = mode.enabled, create_graph
    try:
        leaves = (walks[-1] if walks else visit_all)(cotangents, visit)
        if wanted is not None:
            leaves |= ends
        for arrival in arrivals:
            arrival(leaves, wanted)
        if wanted is None:
            accumulate_all(leaves)
        else:
            found |= {node: g for node, g in leaves.items() if node in wanted}
    finally:
        mode.enabled = before
    return found


def visit_all(cotangents, visit):
    """Visit the nodes from the newest to the oldest; return what arrives at leaves."""
    pending, leaves = {}, {}  # the cotangents of the nodes in the heap, and of those where the graph ends
    heap = []
    for node, g in cotangents.items():
        if type(node) is AccumulateGrad:
            leaves[node] = g
        else:
            pending[node] = g
            heappush(heap, (node.time, node))
    while heap:
        node = heappop(heap)[1]
        g = pending.pop(node)
        for parent, part in zip(node.parents, visit(node, g, node.parents)):
            if part is None:
                continue
            waiting = leaves if type(parent) is AccumulateGrad else pending
            if parent in waiting:
                waiting[parent] = waiting[parent] + part
            elif waiting is leaves:
                leaves[parent] = part if part is not g else own(part)  # no leaf shares its .grad with another
            else:
                pending[parent] = part
                heappush(heap, (parent.time, parent))
    return leaves


def toward(wanted, roots, found, ends, visit, through):
    """Return roots and visit for a pass that goes only to the wanted nodes, and keeps what arrives there.

    ``ends``: the same for those from which it does not go on.
    """
    way = leading_to(wanted, roots)

    def visit_on_the_way(node, g, parents):
        parents = [p if p in way else None for p in parents]
        if not through and not any(parents):
            ends[node] = g
            return ()
        if node in wanted:
            found[node] = g
        return visit(node, g, parents)

    return {node: g for node, g in roots.items() if node in way} if len(roots) > 1 else roots, visit_on_the_way


def reachable(roots):
    """Return the nodes that a pass from the roots visits."""
    seen, todo = set(roots), list(roots)
    while todo:
        for p in todo.pop().parents:
            if p is not None and p not in seen:
                seen.add(p)
                todo.append(p)
    return seen


def leading_to(wanted, roots):
    """Return the nodes from which one of the wanted nodes can be reached, those included."""
    way, several = set(), {node.parents[0] for node in wanted if type(node) is Output}
    for node in sorted(reachable(roots), key=attrgetter("time"), reverse=True):  # parents first
        if node in wanted or any(p in way or p in several for p in node.parents):
            way.add(node)
    return way


def roots(tensors, gradients=None, create_graph=False):
    """Return {node: cotangent} to begin a pass with; a gradient of None is 1, for a tensor of one element."""
    tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    gradients = (None,) * len(tensors) if gradients is None else gradients
    gradients = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)
    if len(gradients) < len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    cotangents: dict = {}
    for i, (t, g) in enumerate(zip(tensors, gradients)):
        for check in root_checks:
            check(i, t, g)
        x, node = t.array, t.node
        is_leaf = type(node) is AccumulateGrad
        if node is None or is_leaf and node.variable is None:  # a view made under no_grad
            raise RuntimeError(errors.NO_NODE.format(i))
        if g is None:
            if x.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            g = Tensor(x.dtype.type(1) if isinstance(x, np.generic) else ones_like(x))
        elif g.array.dtype is not x.dtype:
            g = g.to(t.dtype)
        if not create_graph:
            g = g.array
        if is_leaf:
            g = own(g)
        cotangents[node] = cotangents[node] + g if node in cotangents else g
    return cotangents


def backward(tensors, gradients=None, retain_graph=None, create_graph=False):
    """Add the gradients of ``tensors``, weighted by ``gradients``, to the leaves."""
    keep = create_graph if retain_graph is None else retain_graph
    backward_pass(roots(tensors, gradients, create_graph), keep, create_graph)


def own(g):
    """Return an array of its own; a recorded gradient is copied when it gets to the leaf."""
    return g if isinstance(g, Tensor) else g.copy()


def accumulate_all(leaves):
    """Add cotangents, {node: cotangent}, to the ``.grad`` of each leaf."""
    with lock:
        for node, g in leaves.items():
            add_to_grad(node.leaf(), g)


def add_to_grad(tensor, g):
    """Do ``tensor.grad += g`` for an array or, in a recorded pass, a Tensor; None is a leaf that is gone."""
    if tensor is None or tensor.node is None:  # or requires no grad any more
        return
    grad = tensor._grad
    if isinstance(g, Tensor):
        tensor._grad = Tensor(g.array.copy(), g.node and Copied((None, g.node), ())) if grad is None else grad + g
        return
    if g.dtype is not tensor.array.dtype:
        g = g.astype(tensor.array.dtype)
    if grad is None:
        tensor._grad = Tensor(g if g.base is None or is_alone(g, tensor.array) else g.copy())
    else:  # in place, so that every holder of .grad sees the sum
        write(grad, g, add=True)


Copied = node_class("CopyBackwards", lambda g: None, lambda g: g)  # a recorded gradient becomes the .grad of a leaf
