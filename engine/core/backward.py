"""The backward pass: cotangents travel from the roots to the leaves, from the newest node to the oldest.

They are plain arrays, or Tensors when the pass is itself recorded (``create_graph=True``); the rules are the same.
"""

import threading
from heapq import heappop, heappush, heapreplace
from operator import attrgetter
from sys import getrefcount

import numpy as np

from ..arrays.dispatch import Function
from ..autograd.hooks import attach, run_pre_hooks
from . import graph, versions
from .graph import (
    FREED,
    AccumulateGrad,
    Copied,
    Node,
    OutputCotangents,
    as_tensor,
    copy,
    cotangent,
    hooked_leaves,
    mode,
)
from .versions import check_unmodified, write

ones_like, zeros_like = Function("ones_like").call, Function("zeros_like").call
by_age = attrgetter("time")


def chain_rule(node, g, parents):
    """The cotangents of a node's inputs from that of its output: what a sweep does at each node."""
    saved = node.saved
    if saved is None:
        raise RuntimeError(FREED)
    if versions.last_write < node.time:
        check_unmodified(node)
    return node.vjp(g, saved, parents)


def recorded(node, g, parents):
    """The same on Tensors: ``create_graph=True``."""
    saved = node.saved
    if saved is None:
        raise RuntimeError(FREED)
    if versions.last_write < node.time:
        check_unmodified(node)
    return node.vjp(g, node.linked(saved), parents)


attachments: list = [
    attach
]  # what stands between the sweep and the nodes: each makes a visit of another one, or gives None


def backward_pass(cotangents, retain_graph=False, create_graph=False, wanted=None):
    """Carry cotangents from the roots to the leaves, the newest node first.

    ``cotangents``: {node: cotangent}.  With ``wanted``, a set of nodes, nothing is added to leaves: only the nodes on
    the way to those are visited, and what arrives at them is returned, as {node: cotangent}.
    """
    visit, found = recorded if create_graph else chain_rule, {}
    for attachment in attachments:
        visit = attachment(visit, cotangents, wanted) or visit
    if wanted is not None:
        cotangents, visit = toward(wanted, cotangents, found, visit)
    heap: list = []
    pending: dict = {}  # the cotangents of the nodes in the heap
    newest = arrived = None  # a node that is not in there, and its cotangent: in a chain, none ever is
    leaves = {}
    for node, g in cotangents.items():
        if type(node) is AccumulateGrad:
            leaves[node] = g
        elif newest is None:
            newest, arrived = node, g
        else:
            pending[node] = g
            heappush(heap, (node.time, node))
    before, mode.enabled = mode.enabled, create_graph
    try:
        while heap or newest is not None:
            if newest is None:
                node = heappop(heap)[1]
                g = pending.pop(node)
            elif not heap or newest.time < heap[0][0]:
                node, g = newest, arrived
            else:
                pending[newest] = arrived
                node = heapreplace(heap, (newest.time, newest))[1]
                g = pending.pop(node)
            newest = arrived = None
            parents = node.parents
            into = visit(node, g, parents)
            for parent, gi in zip(parents, into):
                if gi is None:
                    continue
                if type(parent) is AccumulateGrad:
                    if parent in leaves:
                        leaves[parent] = leaves[parent] + gi
                    else:  # a leaf must not share its .grad with another
                        leaves[parent] = gi if gi is not g else copy(gi)
                elif parent is newest:
                    arrived = arrived + gi
                elif parent in pending:
                    pending[parent] = pending[parent] + gi
                elif newest is None:
                    newest, arrived = parent, gi
                else:
                    if parent.time < newest.time:
                        parent, gi, newest, arrived = newest, arrived, parent, gi
                    pending[parent] = gi
                    heappush(heap, (parent.time, parent))
            if node.saved_from and not retain_graph:
                node.saved = None  # release the arrays; the edges stay, as in PyTorch
        node = g = gi = into = arrived = (
            None  # a leaf takes over the memory of its gradient if it is the last to hold it
        )
        if wanted is None:
            accumulate_all(leaves)
        else:
            for node, g in leaves.items():
                for hook in node.hooks:
                    g = hook(g)
                if node in wanted:
                    found[node] = g
    finally:
        mode.enabled = before
    return found


def toward(wanted, roots, found, visit):
    """The roots, and the visit of a sweep that goes only to the wanted nodes, and keeps what arrives there."""
    way = leading_to(wanted, roots)

    def visit_on_the_way(node, g, parents):
        parents = [p if p in way else None for p in parents]
        goes_on = any(parents)
        for hook in () if goes_on else node.hooks:  # what its hooks make of it, if no way leads on
            g = hook(g)
        if node in wanted:
            found[node] = g
        return visit(node, g, parents) if goes_on else ()

    return {node: g for node, g in roots.items() if node in way} if len(roots) > 1 else roots, visit_on_the_way


def reachable(roots):
    """The nodes that backward visits from the roots."""
    seen, todo = set(roots), list(roots)
    while todo:
        for p in todo.pop().parents:
            if p is not None and p not in seen:
                seen.add(p)
                todo.append(p)
    return seen


def leading_to(wanted, roots):
    """The nodes from which one of the wanted nodes can be reached, those included."""
    way, several = set(), {node.parents[0] for node in wanted if type(node) is graph.Output}
    for node in sorted(reachable(roots), key=by_age, reverse=True):  # parents first
        if node in wanted or any(p in way or p in several for p in node.parents):
            way.add(node)
    return way


def backward(tensors, gradients=None, retain_graph=None, create_graph=False, inputs=None):
    """Add the gradients of ``tensors``, weighted by ``gradients``, to the leaves (or to ``inputs`` alone)."""
    for check in tuple(graph.grad_checks):
        check("backward")
    if inputs is not None:
        inputs = differentiated(inputs, "backward")
        for i in inputs:
            i.retain_grad()
    cotangents = roots(tensors, gradients, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        backward_pass(cotangents, keep, create_graph)
        return
    found = backward_pass(cotangents, keep, create_graph, {i.node for i in inputs})
    before, mode.enabled = mode.enabled, create_graph
    try:
        for node, g in found.items():
            if not node.parents:
                accumulate(node, g, hooks=())
    finally:
        mode.enabled = before


def differentiated(inputs, function):
    """The ``inputs`` argument of a function as a tuple, checked as PyTorch checks it."""
    inputs = (inputs,) if isinstance(inputs, graph.Tensor) else tuple(inputs)
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    for i in inputs:
        if not isinstance(i, graph.Tensor):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(i).__name__}")
    return inputs


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None,
         materialize_grads=False):  # fmt: skip
    """``autograd.grad`` where nobody maps over samples or carries tangents."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    inputs = differentiated(inputs, "grad")
    cotangents = roots(outputs, grad_outputs, create_graph)
    for i in inputs:
        if i.node is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    found = backward_pass(cotangents, keep, create_graph, {i.node for i in inputs})
    results = [as_result(as_tensor(found.get(i.node)), i) for i in inputs]
    for number, (i, result) in enumerate(zip(inputs, results)):
        if result is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {number} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        if result is None and materialize_grads:
            results[number] = graph.Tensor(zeros_like(i.array)).requires_grad_(create_graph)
    return tuple(results)


def as_result(g, tensor):
    """A gradient in the dtype of its tensor (bfloat16 times a number is float32 to NumPy), and no transposed matrix."""
    if g is None:
        return None
    x = g.array
    if not x.flags.c_contiguous and 0 not in x.strides and tensor.array.flags.c_contiguous:
        g = graph.Tensor(x.copy(), g.node)
    return g if x.dtype == tensor.array.dtype else g.to(tensor.dtype)


def roots(tensors, gradients, create_graph):
    """{node: cotangent} to begin a sweep with, checked as PyTorch checks it."""
    tensors = (tensors,) if isinstance(tensors, graph.Tensor) else tuple(tensors)
    if gradients is None:
        gradients = (None,) * len(tensors)
    else:
        gradients = (gradients,) if isinstance(gradients, graph.Tensor) else tuple(gradients)
    for g in gradients[: len(tensors)]:
        if g is not None and not isinstance(g, graph.Tensor):
            raise TypeError("gradients can be either Tensors or None, but got " + type(g).__name__)
    if len(gradients) < len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    cotangents: dict = {}
    for i, (t, g) in enumerate(zip(tensors, gradients)):
        if not isinstance(t, graph.Tensor):
            raise TypeError(f"element {i} of tensors must be a graph.Tensor, but got {type(t).__name__}")
        x = t.array
        if g is None:
            if t.node is not None and x.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            g = graph.Tensor(x.dtype.type(1) if x.ndim == 0 and isinstance(x, np.generic) else ones_like(x))
        elif g.array.shape != x.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{t.shape}."
            )
        if t.node is None or type(t.node) is AccumulateGrad and t.node.variable is None:  # a view made under no_grad
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        if g.array.dtype != x.dtype:
            g = g.to(t.dtype)
        g = g if create_graph else g.array
        if type(t.node) is AccumulateGrad:
            g = copy(g)
        cotangents[t.node] = cotangents[t.node] + g if t.node in cotangents else g
    return cotangents


def add_to_grad(tensor, g):
    """``tensor.grad += g``, for an array or, in a recorded backward pass, a Tensor; None: a leaf that is gone."""
    if tensor is None or tensor.node is None:  # or requires no grad any more
        return
    grad = tensor._grad
    if isinstance(g, graph.Tensor):
        tensor._grad = graph.Tensor(g.array.copy(), g.node and Copied((None, g.node), ())) if grad is None else grad + g
        return
    if g.dtype is not tensor.array.dtype:
        g = g.astype(tensor.array.dtype)
    if grad is None:
        own = g.base is None or g.strides == tensor.array.strides and holders(g) == ALONE
        tensor._grad = graph.Tensor(g if own else g.copy())
    else:  # in place, so that whoever holds .grad sees the sum
        write(grad, grad.array + g if isinstance(grad.array, np.generic) else g, add=True)


def holders(view):
    """How many references there are to the memory of a view."""
    base = view.base
    return getrefcount(base) if base.size == view.size else 0


ALONE = holders(np.empty(1)[:])  # the view's own, and those of counting
lock = threading.Lock()  # reading, adding and writing back must be one step when threads share a leaf


def accumulate_all(leaves):
    """Add to the ``.grad`` of each leaf: {node: cotangent}."""
    if hooked_leaves:
        for node, g in leaves.items():
            accumulate(node, g)
        return
    lock.acquire()  # ``with`` takes longer
    try:
        for node, g in leaves.items():
            add_to_grad(node.leaf(), g)
    finally:
        lock.release()


def accumulate(node, g, hooks=None):
    """Add to the leaf's ``.grad``, with all hooks; ``hooks``: those of the tensor, if they have run already."""
    leaf = node.leaf()
    if leaf is None:
        return
    if node.hooks or node.pre_hooks or node.post_hooks:
        for hook in node.hooks if hooks is None else hooks:
            g = hook(g)
        g = run_pre_hooks(node, g)
        if g is None:
            return
        g = copy(g)  # a hook may have kept what it saw, or given what it keeps
    with lock:
        add_to_grad(leaf, g)
    for hook in node.leaf_hooks:
        new = hook(leaf)
        if new is not None and new is not leaf:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    for hook in node.post_hooks:
        hook((), (as_tensor(g),))


def call(node, *grads):
    """Run this node alone: gradients of the outputs give those of the inputs, a tuple unless there is one input."""
    saved = node.saved
    if saved is None:
        raise RuntimeError(FREED)
    if versions.last_write < node.time:
        check_unmodified(node)
    g = OutputCotangents(enumerate(map(cotangent, grads))) if node.outputs > 1 else cotangent(*grads)
    into = node.vjp(g, node.linked(saved) if mode.enabled else saved, node.parents)
    return tuple(map(as_tensor, into)) if len(into) != 1 else as_tensor(into[0])


def call_leaf(node, grad):
    accumulate(node, cotangent(grad))
    return ()


Node.__call__, AccumulateGrad.__call__ = call, call_leaf  # type: ignore[method-assign]


def visit_shown(node, g, parents):
    visit = recorded if mode.enabled else chain_rule
    for attachment in attachments:
        visit = attachment(visit, {}, ()) or visit
    return visit(node, g, parents)


graph.visit_shown = visit_shown
