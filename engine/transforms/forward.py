"""Forward mode: the derivative of every result, along one direction of the inputs, computed beside the result.

There is no second table of derivatives.  A rule gives the cotangent of an input from the cotangent ``g`` of the
output, and it is linear in ``g``: ``rule(g) = J^T g`` for the operation's Jacobian J.  Forward mode needs ``J t``, the
transpose of that map, and the backward pass transposes linear maps: run the rule, recorded, on a dummy ``u`` in place
of ``g``, and pull ``t`` back through what was recorded.  (The dummy's value does not matter: the map is linear.)

Two kinds of rows need no dummy.  An elementwise rule multiplies by a diagonal, which is its own transpose, so
``J t = rule(t)``; an operation that is linear in an input, a view or a product, is its own derivative there, so
``J t = op(t)``.  How a row was made says which it is (``Node.diagonal``, ``Node.linear``).

While a ``ForwardPass`` runs, each new Tensor with a node gets its tangent at once, on the node.  Passes nest: the
tangents of a newer pass are computed by operations which carry the tangents of the older ones, but never its own.
"""

from itertools import count
from math import inf
from weakref import ref

from ..arrays.dispatch import xp_of, zeros_like
from ..arrays.dtypes import differentiable
from ..arrays.memory import storage
from ..core import views
from ..core.backward import backward_pass
from ..core.graph import AccumulateGrad, Node, Output, OutputCotangents, clock, extend, mode, node_class
from ..core.linear import cast, unsum
from ..core.observers import forget, observe
from ..core.record import array_of
from ..core.tensor import Tensor
from . import FOR_TANGENTS, messages


class ForwardPass:
    """One computation of derivatives in forward mode.

    ``inner``: whether leaves that were made during the pass belong to transforms inside of it, which never
    differentiate its tangents.
    """

    numbers = count()

    def __init__(self, inner=True):
        self.number, self.inner = next(self.numbers), inner
        self.start = next(clock) if inner else -inf
        self.recorded: list = []  # the nodes, weakly, whose tangents are in a graph themselves

    def __enter__(self):
        self.before = mode.passes
        observe(Tensor, give_tangents)
        mode.passes = (*self.before, self)

    def __exit__(self, *exc):
        mode.passes = self.before
        forget(Tensor, give_tangents)

    def forget(self):
        """Drop the tangents: those in a graph would keep the nodes alive that keep them."""
        for node in (r() for r in self.recorded):
            if node is not None:
                node.tangents.pop(self, None)
        self.recorded = []


extend(
    Node,
    tangents={},  # the derivative of the output, for each pass
    oldest_leaf_time=inf,  # of the leaves that it leads to; -inf: it is there for tangents alone
    push=None,  # what gives the tangent of an output in place of the rules
)
Dual = node_class("DualBackward0", lambda g: g, diagonal=True)
IdentityNode = node_class("Identity", lambda g: g, diagonal=True)


def dual(primal, tangent, which):
    """The primal as a tensor that carries a tangent in a pass.  ValueError and RuntimeError if it cannot."""
    for name, v in (("primal", primal), ("tangent", tangent)):
        if v.array.dtype not in differentiable:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {v.dtype}")
    if primal.array.shape != tangent.array.shape:
        raise RuntimeError(messages.TANGENT_SIZE.format(list(primal.array.shape), list(tangent.array.shape)))
    if primal.node is not None and which in primal.node.tangents:
        raise RuntimeError(messages.TANGENT_THERE)
    if tangent.node is not None and which in tangent.node.tangents:
        raise RuntimeError(messages.TANGENT_OF_A_TANGENT)
    others = {} if primal.node is None else primal.node.tangents
    new = with_tangents(primal, {**others, which: cast(tangent, primal.array.dtype)}, primal.node)
    which.recorded.append(ref(new.node))
    return new


def with_tangents(tensor, tangents, parent=None, Class=Dual):
    """The tensor with other tangents, joined to the graph at ``parent`` if there is one."""
    node = Class((parent,), ())
    node.tangents = tangents
    leads_to(node, parent.oldest_leaf_time if parent else -inf)
    return Tensor(tensor.array, node)


# ---- what leaves a pass, or another transform


def outgoing(tensor, start):
    """A result as the world outside of a transform sees it: joined to the graph only if something there is.

    ``start``: when the transform began.
    """
    return tensor if tensor.node is None else leaving(tensor, continues([tensor.node], start))


def leaving(tensor, found):
    """A result with a node outside of a transform, given what ``continues`` has found there."""
    recorded = found == "recorded" and mode.enabled not in (False, FOR_TANGENTS)
    return tensor if recorded else outside_graph(tensor)


def outside_graph(tensor, tangents=None):
    """The tensor outside of the graph, with tangents: None are those in passes that run."""
    if tangents is None:
        tangents = {p: t for p, t in tensor.node.tangents.items() if p in mode.passes}
    return with_tangents(tensor, tangents) if tangents else Tensor(tensor.array)


def continues(nodes, start):
    """Look for ends of a graph older than ``start``: "recorded" leaves, else tensors with "tangents", or None."""
    found, seen, todo = None, {None, *nodes}, list(nodes)
    while todo:
        node = todo.pop()
        if node.oldest_leaf_time <= start:  # nothing older
            found = found or any(p in node.tangents for p in mode.passes) or None
            continue
        if not any(node.parents) or node.oldest_leaf_time == node.time:  # a leaf; a transform's may have a tangent
            if node.time > start:
                return "recorded"
            continue  # made inside
        new = {*node.parents} - seen
        todo += new
        seen |= new
    return found and "tangents"


def without_tangent(tensor, which):
    """The tensor without its tangent in a pass that still runs."""
    others = {p: t for p, t in tensor.node.tangents.items() if p is not which}
    if tensor.node.oldest_leaf_time == -inf:
        return outside_graph(tensor, others)
    return with_tangents(tensor, others, tensor.node, IdentityNode)


def unrecorded(g):
    """A recorded gradient, outside of the graph, with its tangents."""
    if g is None or g.node is None:
        return g
    return outside_graph(g, {p: unrecorded(t) for p, t in g.node.tangents.items()})


def refuse_tangents(tensor, values):
    """NotImplementedError if a leaf would be written, under ``no_grad``, with values that carry tangents."""
    leaf = tensor if tensor._base is None else tensor._base
    if leaf.requires_grad and leaf.is_leaf:
        if any(isinstance(a, Tensor) and a.node is not None and a.node.tangents for a in values):
            raise NotImplementedError("a leaf that requires grad is not given a tangent: write into its clone()")


def keep_graph(tensor, node, before):
    """The node of a tensor that is written under ``no_grad``: values and tangents are new, the graph is the old one."""
    if mode.enabled is not FOR_TANGENTS or before is None:
        return None
    if "tangents" not in node.__dict__:
        carry(node, tensor.array)
    if not node.tangents:
        return before if before.requires_grad else None
    return rewritten(tensor, node.tangents, before).node


def rewritten(tensor, tangents, before):
    """The tensor with new tangents, each of them in the graph that the old one is in; ``before``: the old node."""
    new = {}
    for which, t in tangents.items():
        old = before.tangents.get(which)
        of_t = {} if t.node is None else t.node.tangents
        new[which] = t if old is None or old.node is None else rewritten(t, of_t, old.node)
    tensor = with_tangents(tensor, new, before if before.requires_grad else None, IdentityNode)
    for which in new:
        which.recorded.append(ref(tensor.node))
    return tensor


views.rebased.append(keep_graph)


# ---- the tangents of a new node


def leads_to(node, time):
    """Note of which time the oldest leaf is that a node leads to."""
    node.oldest_leaf_time, node.requires_grad = time, time != -inf


def give_tangents(tensor):
    """Give a new Tensor's node its tangents."""
    node = tensor.node
    if node is not None and node.parents and mode.passes and "tangents" not in node.__dict__:
        carry(node, tensor.array)
        if mode.enabled is FOR_TANGENTS and not node.tangents:
            tensor.node = None


def carry(node, out=None):
    """Give a new node the tangents of its output, the array ``out``."""
    real, part = (node.parents[0], node.saved[0]) if type(node) is Output else (node, None)
    node.tangents = found = {}
    parents, oldest_leaf_time = [p for p in real.parents if p is not None], -inf
    for p in parents:
        if p.parents and "tangents" not in p.__dict__ and any(q and q.tangents for q in p.parents):
            carry(p)  # of this one no Tensor was made: it is one of several nodes of one operation
        if p.oldest_leaf_time > oldest_leaf_time:
            oldest_leaf_time = p.oldest_leaf_time
    passes, recorded = mode.passes, mode.enabled
    unasked = recorded is FOR_TANGENTS  # then a tangent does not require grad either
    if unasked:
        oldest_leaf_time = -inf
    leads_to(node, oldest_leaf_time)
    try:
        for i, which in enumerate(passes):
            ts = [p and p.tangents.get(which) for p in real.parents]
            if given := [t for t in ts if t is not None]:
                plain = oldest_leaf_time <= which.start and (unasked or not any(t.node for t in given))
                if i and plain:  # the tangent itself must carry the tangents of older passes
                    plain = not any(older in p.tangents for older in passes[:i] for p in parents)
                mode.passes, mode.enabled = passes[:i], not plain and (recorded or True)
                found[which] = push(real, part, ts, out, plain, which)
                if not plain:
                    which.recorded.append(ref(node))
    finally:
        mode.passes, mode.enabled = passes, recorded
    if found and oldest_leaf_time == -inf and real is node and node.saved_from:
        node.saved, node.parents = (), (None,) * len(real.parents)  # no longer needed: release the arrays
        node.vjp = nothing


def nothing(g, saved, parents):
    """The cotangents of the inputs of a node that is there for tangents alone."""
    return ()


def push(node, part, ts, out, plain, which):
    """The tangent of a node's output (of one of them: number ``part``), from those of its inputs: the sum of J_i t_i.

    ``plain``: computed on arrays, as nobody differentiates it again.
    """
    if node.push:  # a custom function has its own
        return node.push(part, ts, which is mode.dual)
    saved = node.saved if plain else node.linked(node.saved)
    total = None
    for i, t in enumerate(ts):
        if t is None:
            continue
        t = t.array if plain else t
        if node.diagonal:
            term = type(node).rules[i](t, *saved)
        elif node.linear is not None:
            term = node.linear(i, t, *saved)
        else:
            term = transposed_rule(node, i, part, t, out, plain)
        total = term if total is None else total if term is None else total + term
    if total is None:
        return Tensor(zeros_like(out))
    x = array_of(total)
    if out is not None and (x.dtype is not out.dtype or x.shape != out.shape):  # what was cast or broadcast
        total = cast(total, out.dtype)
        total = total if x.shape == out.shape else unsum(total, out.shape)
    if plain and which is mode.dual:  # it is written when its tensor is
        total = of_its_own(array_of(total), ts)
    return total if isinstance(total, Tensor) else Tensor(total)


def of_its_own(x, ts):
    """An array, or a copy of it if its memory is that of a tangent, or if several elements share a place in it."""
    shares = any(t is not None and storage(t.array) is storage(x) for t in ts)
    return xp_of(x).array(x) if shares or 0 in x.strides else x


def transposed_rule(node, i, part, t, out, plain):
    """J_i t: the cotangent t of ``rule_i(u)``, pulled back to the dummy u.  None if that is zero."""
    u = Tensor(xp_of(out).zeros(out.shape, out.dtype))  # without the samples of a batch
    u.node = AccumulateGrad(u)
    recorded, mode.enabled = mode.enabled, True
    try:
        saved = node.saved if plain else node.linked(node.saved)
        if plain and node.saved_from:  # outside of the graph
            saved = [Tensor(s) if k is not None and hasattr(s, "dtype") else s for s, k in zip(saved, node.saved_from)]
        into = node.rules[i](u if part is None else OutputCotangents({part: u}), *saved)
    finally:
        mode.enabled = recorded
    if into is None or into.node is None:
        return None
    return backward_pass({into.node: cast(t, into.array.dtype)}, False, mode.enabled, {u.node}).get(u.node)
