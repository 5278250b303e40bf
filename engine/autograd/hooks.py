"""Hooks: what a program may see, and change, of the gradients on their way.

They attach to the backward pass with the first hook that is registered; a program without hooks pays nothing.
"""

import threading
from copy import copy
from functools import cached_property, wraps
from weakref import ref

from ..arrays.quiet import be_quiet
from ..arrays.threads import new_lock
from ..core import backward, views
from ..core.backward import add_to_grad, leading_to, lock, own, reachable
from ..core.graph import AccumulateGrad, Node, Output, OutputCotangents, extend, mode
from ..core.tensor import Tensor
from . import messages

extend(
    Node,
    hooks=(),  # the tensor's: called with its cotangent, each returns that or another one
    output_hooks={},  # the same for a node of several outputs, by the number of the output
    pre_hooks=(),  # the node's: called after those with the cotangents of all outputs
    post_hooks=(),  # called with the cotangents of the inputs and of the outputs
    leaf_hooks=(),  # a leaf's: called with it after its .grad was added to
    kept=None,  # the leaf, which those keep alive
    makes_zeros=False,  # it runs without any gradient too
)


class Thread(threading.local):
    this_pass = staticmethod(lambda: None)  # a weak reference to the pass in which hooks run


thread = Thread()
hooked_leaves: set = set()  # weak references to the AccumulateGrad nodes on which a hook was registered
hooked: set = set()  # and to the others
attaching = new_lock()  # two threads may register the first hook
failures: list = []  # who hears of an error in the hooks of a node where a pass ends: called with both


class RemovableHandle:
    """Removes the hook that it stands for; also a context manager, as in PyTorch."""

    def __init__(self, node, where, hook, call=None):
        if not callable(hook):
            raise TypeError(f"{type(hook).__name__!r} object is not callable")
        self.hook = call or another(hook)
        if type(node) is Output:
            node, where = node.parents[0], node.saved[0]
        self.node, self.where, self.id, hooks = ref(node), where, id(self.hook), hooks_at(node, where)
        end = len(hooks) - (bool(hooks) and type(hooks[-1]) is RetainGrad)
        put_hooks(node, where, (*hooks[:end], self.hook, *hooks[end:]))
        note(node)

    def remove(self):
        node = self.node()
        if node is not None:
            put_hooks(node, self.where, tuple(h for h in hooks_at(node, self.where) if h is not self.hook))
            node.kept = node.kept if node.leaf_hooks else None
            if not has_hooks(node):
                hooked_leaves.discard(ref(node))
                hooked.discard(ref(node))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class RetainGrad:
    """The hook of ``retain_grad``: the last one, so that it keeps what the others made of the gradient."""

    def __init__(self, tensor):
        self.tensor = ref(tensor)

    def __call__(self, g):
        tensor = self.tensor()
        if tensor is not None and g is not None:
            new = g.clone() if isinstance(g, Tensor) else Tensor(g.astype(tensor.array.dtype))
            tensor._grad = new if tensor._grad is None else tensor._grad + new
        return g


def another(hook):
    """A function of its own that calls the hook, which may be registered several times."""
    return wraps(hook)(lambda *grads: hook(*grads))


def hooks_at(node, where):
    """The hooks in one of a node's attributes, or those of its output of this number."""
    return node.output_hooks.get(where, ()) if type(where) is int else getattr(node, where)


def put_hooks(node, where, hooks):
    if type(where) is int:
        node.output_hooks = {**node.output_hooks, where: hooks}
    else:
        setattr(node, where, hooks)


extend(Output, hooks=property(  # its node's: they run when that does
    lambda self: hooks_at(self.parents[0], self.saved[0]),
    lambda self, hooks: put_hooks(self.parents[0], self.saved[0], hooks)))  # fmt: skip


def has_hooks(node):
    return node.hooks or node.pre_hooks or node.post_hooks or node.leaf_hooks or any(node.output_hooks.values())


def note(node):
    """Remember that a node has hooks, and attach them to the backward pass if they are the first."""
    node = node.parents[0] if type(node) is Output else node
    known = hooked_leaves if type(node) is AccumulateGrad else hooked
    known.add(ref(node, known.discard))
    with attaching:
        if attach_hooks not in backward.attachments:  # the last one, so that an interrupt before it leaves it to do
            backward.arrivals[:] = dict.fromkeys((*backward.arrivals, arrive))
            views.rebased[:] = dict.fromkeys((*views.rebased, move_retain_grad, leave_hooks))
            backward.attachments.insert(bool(backward.attachments), attach_hooks)  # around the check for nan


# ---- how they are registered


def register_hook(self, hook):
    """Call ``hook(grad)`` when the gradient of this tensor is known; it may return another.  Returns a handle."""
    if self.node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return RemovableHandle(self.node, "hooks", tensor_hook(hook))


def register_post_accumulate_grad_hook(self, hook):
    """Call ``hook(tensor)`` after the gradient was added to this leaf's ``.grad``.  Returns a handle."""
    if self.node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    handle = RemovableHandle(self.node, "leaf_hooks", hook)
    self.node.kept = self
    return handle


def retain_grad(self):
    """Keep the gradient of this non-leaf in ``.grad`` too."""
    if self.node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if not self.is_leaf and not self.retains_grad:
        self.node.hooks = (*self.node.hooks, RetainGrad(self))
        note(self.node)


def node_register_hook(self, hook):
    """Call ``hook(grad_inputs, grad_outputs)`` after this node; it may return other gradients of the inputs."""
    return RemovableHandle(self, "post_hooks", hook)


def node_register_prehook(self, hook):
    """Call ``hook(grad_outputs)`` before this node runs; it may return other gradients, as a tuple."""
    return RemovableHandle(self, "pre_hooks", hook)


extend(
    Tensor,
    register_hook=register_hook,
    register_post_accumulate_grad_hook=register_post_accumulate_grad_hook,
    retain_grad=retain_grad,
    retains_grad=property(lambda self: not self.is_leaf and any(type(h) is RetainGrad for h in self.node.hooks)),
)
extend(Node, register_hook=node_register_hook, register_prehook=node_register_prehook)


def move_retain_grad(tensor, node, before):
    """``retain_grad`` belongs to the tensor: the new node keeps its gradient, the old one does no more."""
    if tensor.node is not None and tensor.retains_grad:
        hook = tensor.node.hooks[-1]
        tensor.node.hooks = tensor.node.hooks[:-1]
        node.hooks = (*node.hooks, hook)
        note(node)


def leave_hooks(view, node, before):
    """A view that was written leads to its base: no hook that it had before sees the gradient of what is there now."""
    if view._base is None:
        return
    between, end, base = [], view.node, view._base.node
    while end is not base and end is not None and len(end.parents) == 1:
        between.append(end)
        end = end.parents[0]
    if end is not base or not any(map(has_hooks, between)):
        return
    for old in reversed(between):
        new = copy(old)
        for kind in ("hooks", "pre_hooks", "post_hooks"):
            vars(new).pop(kind, None)
        new.parents, end = (end,), new
    node.parents = tuple([end if p is view.node else p for p in node.parents])


# ---- what they see, and what they give


def as_tensor(g):
    """A cotangent as the Tensor that a hook sees."""
    return g if isinstance(g, Tensor) or g is None else Tensor(g)


def cotangent(t):
    """A Tensor that a user's function returned, in the form in which cotangents travel in this pass."""
    return t if t is None or mode.enabled else t.array


def tensor_hook(hook):
    """The hook of a tensor, which sees Tensors, as the pass calls it."""

    def call(g):
        shown, this = as_tensor(g), thread.this_pass
        try:
            new = hook(shown)
        finally:
            thread.this_pass = this  # the hook may have run another one
            be_quiet()
        return cotangent(shown) if new is None else checked_grad(hook, new, g)  # a number that it wrote is a new one

    return call


def run_tensor_hooks(node, g):
    """Run the hooks of tensors on what arrives at their node; those of an output without a gradient see None."""
    for hook in node.hooks if type(node) is not Output else ():
        g = hook(g)
    if node.output_hooks:
        found = dict(g)
        for i, hooks in node.output_hooks.items():
            for hook in hooks:
                found[i] = hook(found.get(i))
        g = OutputCotangents({i: x for i, x in found.items() if x is not None})
    return g


def run_pre_hooks(node, g):
    """Run the prehooks of a node on what arrives there, as tuples of Tensors."""
    for hook in node.pre_hooks:
        grads = as_grad_tuple(g, node.outputs)
        new, several = checked_grads(hook, hook(grads), grads), type(g) is OutputCotangents
        g = OutputCotangents({i: t for i, t in enumerate(new) if t is not None}) if several else new[0]
    return g


def checked_grads(hook, new, old):
    """The cotangents in the tuple that a hook returned in place of others, or, for None, those that it saw."""
    be_quiet()
    if new is None:
        return [*map(cotangent, old)]
    if not isinstance(new, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
    if len(new) != len(old):
        raise RuntimeError(messages.NUMBER_OF_VALUES.format(hook_name(hook), len(new), len(old)))
    return [checked_grad(hook, n, o) for n, o in zip(new, old)]


def checked_grad(hook, new, old):
    """The cotangent that a hook returned in place of another.  TypeError or RuntimeError if it is none."""
    if new is None:
        return None
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    checked_type(new)
    old = as_tensor(old).array
    if new.array.dtype != old.dtype:
        types = f"was {Tensor.typename(old)} got {Tensor.typename(new.array)}"
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the type of value ({types})")
    if new.array.shape != old.shape:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value")
    return cotangent(new)


def checked_type(new):
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")


def hook_name(hook):
    return getattr(getattr(hook, "__wrapped__", hook), "__name__", "<unknown>")


def as_grad_tuple(g, n):
    """Return what arrives at a node of n outputs as the tuple of Tensors that a hook sees."""
    return tuple(as_tensor(g.get(i)) for i in range(n)) if type(g) is OutputCotangents else (as_tensor(g),)


def edges(node):
    """For each parent whether PyTorch has an edge there, which it has not for a number."""
    return [p is not None or not node.scalar_operand for p in node.parents]


def of_edges(node, cotangents):
    return [x for x, edge in zip(cotangents, edges(node)) if edge]


# ---- in the backward pass


class Pass:
    """A backward pass, as its hooks see it."""

    def __init__(self, roots, wanted):
        self.roots, self.wanted = roots, wanted
        self.held: dict = {}  # what arrived at leaves with hooks, until it is complete
        self.notes: dict = {}  # what hooks remember until its end
        self.waiting: dict = {}  # how many edges into leaves with hooks are still to come
        self.steps = 0  # how many visits have held something back

    @cached_property
    def nodes(self):
        """The nodes that it visits."""
        return reachable(self.roots) if self.wanted is None else leading_to(self.wanted, self.roots)


def attach_hooks(visit, roots, wanted):
    """The visit of a pass in a program that has hooks; None where there are none."""
    if not hooked and not hooked_leaves:
        return None
    found = not roots and thread.this_pass()  # the steps inside of a node are no pass
    if not found:
        found = Pass(roots, wanted)
        found.waiting = edges_into_hooked(roots) if hooked_leaves and wanted is None else {}
    waiting, this = found.waiting, ref(found)
    thread.this_pass = this

    def visit_with_hooks(node, g, parents):
        thread.this_pass, before = this, found.steps
        g = run_tensor_hooks(node, g)
        if node.pre_hooks or node.post_hooks:
            cotangents = with_node_hooks(visit, node, g, parents)
        else:
            cotangents = visit(node, g, parents)
        thread.this_pass = this
        if waiting and found.steps == before and not waiting.keys().isdisjoint(parents):  # else the steps inside have
            found.steps += 1
            return withheld(g, parents, cotangents, waiting, found.held)
        return cotangents

    return visit_with_hooks


def with_node_hooks(visit, node, g, parents):
    """Visit a node between its prehooks and its hooks."""
    g = run_pre_hooks(node, g)
    nothing = g is None or type(g) is OutputCotangents and not g and not node.makes_zeros
    cotangents = [None] * len(parents) if nothing else visit(node, g, parents)
    for hook in node.post_hooks:
        grads = tuple(map(as_tensor, of_edges(node, cotangents)))
        new = iter(checked_grads(hook, hook(grads, as_grad_tuple(g, node.outputs)), grads))
        cotangents = [next(new) if edge else None for edge in edges(node)]
    # what a hook returned may be in the program's hands: a leaf must not take it for its .grad
    return [x if x is None or type(p) is not AccumulateGrad else own(x) for p, x in zip(parents, cotangents)]


def withheld(g, parents, cotangents, waiting, held):
    """Keep back what goes to leaves with hooks: it is accumulated when it is complete, before another node is visited.

    So PyTorch does it; a program sees when its hooks run.
    """
    cotangents, complete = list(cotangents), []
    for i, (p, x) in enumerate(zip(parents, cotangents)):
        if p in waiting:
            waiting[p] -= 1
            if x is not None:
                held[p] = held[p] + x if p in held else own(x) if x is g else x
                cotangents[i] = None
            if p in held and not waiting[p]:
                complete.append(p)
    for p in complete:
        accumulate(p, held.pop(p))
    return cotangents


def edges_into_hooked(roots):
    """Count the edges from the roots into each of the leaves that have hooks."""
    now = hooked_leaves.copy()  # in one step: a leaf may go at any moment, while tuple() asks for memory too
    leaves, edges = {r() for r in now} - {None}, {}
    for node in reachable(roots):
        for p in node.parents:
            if p in leaves:
                edges[p] = edges.get(p, 0) + 1
    return edges


def arrive(leaves, wanted):
    """Run the hooks of leaves (and of other ends of a pass towards wanted nodes) at the end of a pass."""
    if wanted is None:
        for node in filter(has_hooks, [*leaves] if hooked_leaves else ()):
            accumulate(node, leaves.pop(node))
        return
    for node in leaves:
        leaves[node] = heard(run_tensor_hooks, node, leaves[node])


def heard(run, node, *args):
    """Run hooks of a node where a pass ends: no visit stands around them that would say where they failed."""
    try:
        return run(node, *args)
    except BaseException as error:
        for hear in failures:
            hear(node, error)
        raise


def accumulate(node, g, hooks=None):
    """Add to the leaf's ``.grad``, with all hooks; ``hooks``: those of the tensor, if they have run already."""
    heard(accumulate_with_hooks, node, g, hooks)


def accumulate_with_hooks(node, g, hooks):
    leaf, this = node.leaf(), thread.this_pass
    if leaf is None and not has_hooks(node):
        return
    if node.hooks or node.pre_hooks or node.post_hooks:
        for hook in node.hooks if hooks is None else hooks:
            g = hook(g)
        g = run_pre_hooks(node, g)
        if g is None:
            return
        g = own(g)  # a hook may have kept what it saw, or given what it keeps
    with lock:
        add_to_grad(leaf, g)
    for hook in node.leaf_hooks:
        new = hook(leaf)
        if new is not None and new is not leaf:
            checked_type(new)
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    for hook in node.post_hooks:
        hook((), (as_tensor(g),))
    thread.this_pass = this
    be_quiet()


def call_node(node, *grads):
    """Run this node alone: gradients of the outputs give those of the inputs, a tuple unless there is one input."""
    if len(grads) != node.outputs:
        raise TypeError(f"expected {node.outputs} arguments, got {len(grads)} instead")
    be_quiet()
    g = OutputCotangents(enumerate(map(cotangent, grads))) if node.outputs > 1 else cotangent(*grads)
    cotangents = backward.chain_rule(node, g, node.parents, retain_graph=True, create_graph=mode.enabled)
    cotangents = of_edges(node, cotangents)
    return tuple(map(as_tensor, cotangents)) if len(cotangents) != 1 else as_tensor(cotangents[0])


def call_leaf(node, grad):
    accumulate(node, cotangent(grad))
    return ()


extend(Node, __call__=call_node)
extend(AccumulateGrad, __call__=call_leaf)
