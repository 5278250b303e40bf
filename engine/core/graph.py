"""The recorded graph: nodes, leaves, and what a row of rules becomes.

A node holds its parents, what its rules need, and when it was made.  Creation order is a topological order, so the
backward pass (``sweep.py``) visits the newest node first and needs no recursion.
"""

import threading
from functools import lru_cache
from itertools import count
from math import inf
from weakref import ref

import numpy as np

from ..arrays.dispatch import scalar_types

clock = count(0, -1)  # the time of nodes and of in-place writes; newer is less, which makes a heap pop the newest
OUTPUT, CONSTANT = (
    -1,
    -2,
)  # links of saved values that are no input: the node's own output, an array outside of the graph
VARARGS = 4  # the flag of a code object with *arguments
MOST = 64  # index arrays that a rule can name with *indices: NumPy's arrays have no more dimensions
INPUTS = {"x": 0, "y": 1, "z": 2, "out": OUTPUT} | dict.fromkeys(("mask", "index", "indices", "weights"), CONSTANT)


class Mode(threading.local):
    """What is recorded in this thread."""

    enabled = True
    inference = False
    asked = True  # in inference mode and in a dual level: what is_grad_enabled() says, whatever is recorded
    dual = False  # in a dual level (forward_ad): tangents are computed, and so nodes made, under no_grad too
    transforms = 0  # how many function transforms run, one inside the other (transforms.py)
    derivatives = 0  # and how many of them differentiate
    packing: tuple = ()  # the hooks on saved tensors, the innermost last (packed.py)
    no_packing = None  # where there may be none, the message of the error


mode = Mode()
grad_checks: list = []  # called with the method's name before backward() and requires_grad_() do anything: transforms
Tensor: type = None  # type: ignore  # set by tensor.py, which stands on this module


class Node:
    """One recorded operation: edges to its inputs and what its rules need."""

    rules: tuple = ()  # rules[i](g, *saved) -> cotangent of input i
    saved_from: tuple = ()  # links[k]: saved[k] is this input, OUT or CONSTANT; None: a plain value.  () if none is an array
    names: tuple = ()  # names[k]: how the rules call saved[k]
    called: dict = {}  # how PyTorch calls it, where that is another name
    hooks: tuple = ()  # the tensor's: called with its cotangent, each returns that or another one
    pre_hooks: tuple = ()  # the node's: called after those with the cotangents of all outputs
    post_hooks: tuple = ()  # called with the cotangents of the inputs and of the outputs
    outputs = 1  # how many there are; the cotangents of several travel as Parts
    checks_versions = True  # arrays that it saved must not be written before they are used
    scalar_operand = False  # the other operand is a number, for which PyTorch has no edge
    diagonal = False  # elementwise: a rule is its own transpose (forward.py)
    elementwise = False  # what a rule gives at a place depends on what is there: on a GPU it is one kernel
    linear = None  # of what is linear in each input: ``linear(i, t, *saved)`` is it, with t in place of input i
    tangents: dict = {}  # in forward mode: the derivative of the output, for each pass
    oldest_leaf_time = (
        inf  # in forward mode: the order of the oldest leaf it leads to; -inf: it is there for tangents alone
    )

    def __init__(self, parents, saved):
        self.parents = parents
        self.saved = saved
        self.time = next(clock)

    plain_init = __init__

    def watched_init(self, parents, saved):
        for look in watchers:
            look(self, saved)
        self.plain_init(parents, saved)

    def name(self):
        """PyTorch's name of the operation."""
        name = type(self).__name__
        return name if name.removesuffix("_copy")[-1].isdigit() else "torch::autograd::" + name

    def linked(self, saved):
        """The saved values as Tensors joined to the graph, for ``create_graph=True``."""
        return [
            s if k is None or s is None or type(s) in scalar_types
            else Tensor(s, None if k == CONSTANT else self if k == OUTPUT else self.parents[k])
            for s, k in zip(saved, self.saved_from)
        ] if self.saved_from else saved  # fmt: skip

    def vjp(self, g, saved, parents):
        """The cotangents of the inputs from that of the output; None for a parent that is None."""
        return [p and rule(g, *saved) for p, rule in zip(parents, self.rules)]

    def grad_fn_view(self):
        """What stands for this node in ``grad_fn`` and ``next_functions``."""
        return self

    @property
    def next_functions(self):
        """The nodes of the inputs, each with the number of its output, as PyTorch shows them."""
        return tuple(edge(p) for p in self.parents if p is not None or not self.scalar_operand)

    @property
    def metadata(self):
        return self.__dict__.setdefault("_metadata", {})

    def register_prehook(self, hook):
        """Call ``hook(grad_outputs)`` before this node runs; it may return other gradients, as a tuple."""
        return RemovableHandle(self, "pre_hooks", hook)

    def register_hook(self, hook):
        """Call ``hook(grad_inputs, grad_outputs)`` after this node; it may return other gradients of the inputs."""
        return RemovableHandle(self, "post_hooks", hook)


# what PyTorch shows of the saved values, and how it calls x, y, out, ...: in general, and where a name contains ...
SAVED = {*INPUTS, "shape", "axis", "dim", "keepdims"}
CALLED = {"x": "self", "y": "other", "out": "result", "shape": "self_sym_sizes", "axis": "dim", "keepdims": "keepdim"}
CALLED_THERE = {
    "Pow": "y=exponent", "Addmm": "y=mat1 z=mat2", "ddbmm": "y=batch1 z=batch2", "Addmv": "y=mat z=vec", "Mm": "y=mat2",
    "mm": "y=mat2", "Mv": "y=vec", "Dot": "y=tensor", "Loss": "y=target index=target", "Entropy": "y=target",
    "Convolution": "x=input y=weight", "Native": "x=input y=weight", "Prelu": "y=weight", "Where": "mask=condition",
    "Addc": "y=tensor1 z=tensor2", "LerpBackward1": "y=end z=weight", "MaxPool": "index=result1",
    "Sort": "index=indices", "Topk": "index=indices", "Kthvalue": "index=indices",
    "LinalgInv": "out=inverse", "LinalgDet": "x=A",
}  # fmt: skip


def called_as(Class):
    """How PyTorch calls what the rules of a class of nodes keep, where that is not as the rules call it."""
    own = next((names for part, names in CALLED_THERE.items() if part in Class), "")
    return CALLED | dict(pair.split("=") for pair in own.split())


def saved_attributes(called, names):
    """What the rules of a class of nodes keep, as attributes under PyTorch's names: {"_saved_self": property, ...}.

    (A ``__getattr__`` would make Python look for every other attribute of a node the slow way.)
    """
    return {"_saved_" + called.get(n, n): saved_attribute(i, called.get(n)) for i, n in enumerate(names) if n in SAVED}


def saved_attribute(i, called):
    def get(node):
        from .versions import check_unmodified  # which stands on this module

        saved = node.saved
        if saved is None:
            raise RuntimeError(FREED)
        s, k = saved[i], node.saved_from[i] if node.saved_from else None
        if k is None or s is None:
            return s
        if type(s) in scalar_types:
            return Tensor(np.asarray(s)) if called == "other" else s
        check_unmodified(node, slice(i, i + 1))
        return saved_tensor(s, node if k == OUTPUT else node.parents[k] if k >= 0 else None)

    return property(get)


def saved_tensor(s, source):
    """A saved array as the Tensor that it was: the leaf itself, if it still has that array."""
    leaf = source.variable if type(source) is AccumulateGrad else None
    return leaf if leaf is not None and leaf.array is s else Tensor(s, source)


watchers: list = []  # who looks at every node that is made: anomaly detection, and the keepers of inference tensors


def watch_nodes(look, on):
    """Let ``look(node, saved)`` see every node that is made, or no more; nobody looks in an ordinary program."""
    if on and look not in watchers:
        watchers.append(look)
    elif not on and look in watchers:
        watchers.remove(look)
    Node.__init__ = Node.watched_init if watchers else Node.plain_init


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to ``leaf.grad``.  Holds the leaf weakly: no cycle."""

    __module__ = "builtins"  # so that it prints as PyTorch's do, in IPython too: no module's name before its own

    leaf_hooks: tuple = ()  # called with the leaf after its .grad was added to

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


hooked_leaves: set = set()  # weak references to the AccumulateGrad nodes on which a hook was registered
hooked: set = set()  # and to the others


def edge(node):
    """(node, output number) as in ``next_functions``."""
    if type(node) is Output:
        return node.parents[0].grad_fn_view(), node.saved[0]
    return node and node.grad_fn_view(), 0


@lru_cache
def written_out(inputs, saved):
    """``Node.vjp`` for so many inputs and saved values: a loop, and a call with *saved, would take as long as the rules."""
    some = lambda name, n: "".join(f"{name}{i}, " for i in range(n))  # noqa: E731
    into = "".join(f"p{i} and rule{i}(g, {some('s', saved)}), " for i in range(inputs))
    text = (
        f"def vjp(self, g, saved, parents):\n    {some('p', inputs)}= parents\n    {some('rule', inputs)}= self.rules\n"
    )
    text += (f"    {some('s', saved)}= saved\n" if saved else "") + f"    return {into}\n"
    space: dict = {}
    exec(text, space)
    return space["vjp"]


def node_class(name, *rules):
    """A node class for an operation; the names of the rules' parameters say what is saved.

    ``x``, ``y``, ``z`` are inputs, ``out`` the output, ``mask``, ``index`` and the like arrays outside of the graph; a
    name that begins with an underscore is not needed by that rule; any other is a plain value.  ``*indices``: any
    number of index arrays.
    """
    signatures = [r.__code__.co_varnames[1 : r.__code__.co_argcount] for r in rules]
    columns = [[n for n in column if not n.startswith("_")] or ["_"] for column in zip(*signatures)]
    names = tuple(column[0] for column in columns)
    saved_from = tuple(INPUTS.get(n) for n in names)
    if all(k is None for k in saved_from):
        saved_from = ()
    needs = tuple(tuple(not n.startswith("_") for n in column) for column in zip(*signatures))
    code = rules[0].__code__ if rules else None
    if code and code.co_flags & VARARGS and code.co_varnames[code.co_argcount] == "indices":
        saved_from = (*(INPUTS.get(n) for n in names), *(CONSTANT,) * MOST)
        needs = (*needs, *((True,) * len(rules),) * MOST)
    any_number = not rules or any(r.__code__.co_flags & VARARGS for r in rules)
    needed_by = [(k, [i for i, need in enumerate(column) if need]) for k, column in enumerate(needs)
                 if saved_from and saved_from[k] is not None and not all(column)]  # fmt: skip
    called = called_as(name)
    facts = {
        "rules": rules,
        "saved_from": saved_from,
        "names": names,
        "needs": needs,
        "needed_by": needed_by,
        "called": called,
    }
    if not any_number:
        facts["vjp"] = written_out(len(rules), len(signatures[0]))
    return type(name, (Node,), {"__module__": "builtins", **facts, **saved_attributes(called, names)})


unfolding = threading.Lock()  # two threads that look at a node must see the same ones


def one_step_class(Class, unfold, *rules):
    """``Class``, for a node that goes in one step where PyTorch shows several: it is the last of those.

    It is a node like any other.  To who looks at it (``grad_fn_view``) stands for it what ``unfold(parents, saved, *facts)``
    gives, the (parents, saved) of a ``Class``; from then on it goes by those, so that their hooks run.
    """

    def init(self, parents, saved, *facts):
        self.parents, self.saved, self.facts = parents, saved, facts
        self.time = next(clock)

    def grad_fn_view(self):
        with unfolding:
            if self.seen is None:
                parents, saved = unfold(self.parents, self.saved, *self.facts)
                stand_in = Class.__new__(Class)
                vars(stand_in).update(parents=parents, saved=saved, time=self.time, call=vars(self).get("call"))
                for p in parents:
                    if p is not None and p.time < self.time:  # made now, but as if it had been made before this one
                        p.time, p.call = self.time + 0.5, None
                self.seen = stand_in
        return self.seen

    own = (
        Plain.vjp
        if any(r.__code__.co_flags & VARARGS for r in rules)
        else written_out(len(rules), rules[0].__code__.co_argcount - 1)
    )

    def vjp(self, g, saved, parents):
        if self.seen is None:
            return own(self, g, saved, parents)
        return through(self.seen, g, parents)  # somebody has looked, or the pass is recorded

    def linked(self, saved):
        return grad_fn_view(self).linked(self.seen.saved)

    facts = {
        "__init__": init,
        "unfold": staticmethod(unfold),
        "plain": Class,
        "rules": rules,
        "seen": None,
        "grad_fn_view": grad_fn_view,
        "vjp": vjp,
    }
    facts["linked"] = linked
    return type(Class.__name__, (Class,), {"__module__": "builtins", **facts})


def through(seen, g, ends):
    """The cotangents of the ends, by the nodes that stand between them and ``seen``."""
    found = dict.fromkeys(ends)
    todo = [(seen, g)]
    while todo:
        node, g = todo.pop()
        for p, gi in zip(node.parents, visit_shown(node, g, node.parents)):
            if gi is None:
                continue
            if p in found:
                found[p] = gi if found[p] is None else found[p] + gi
            else:
                todo.append((p, gi))
    into = []
    for p in ends:
        into.append(p and found.pop(p, None))
    return into


visit_shown = None  # set by sweep.py: a visit with hooks
Plain = Node


Copied = node_class("CopyBackwards", lambda g: None, lambda g: g)  # a recorded gradient becomes the .grad of a leaf
anomaly = ""  # whether anomaly detection is on: "", "trace", or "check", which also looks for nan


class RemovableHandle:
    """Removes the hook that it stands for; also a context manager, as in PyTorch."""

    def __init__(self, node, where, hook, call=None):
        if not callable(hook):
            raise TypeError(f"{type(hook).__name__!r} object is not callable")
        hook = call or hook
        self.node, self.where, self.hook = ref(node), where, hook
        self.id = id(hook)
        hooks = getattr(node, where)
        end = len(hooks) - (bool(hooks) and type(hooks[-1]) is RetainGrad)
        setattr(node, where, (*hooks[:end], hook, *hooks[end:]))
        known = hooked_leaves if type(node) is AccumulateGrad else hooked
        known.add(ref(node, known.discard))

    def remove(self):
        node = self.node()
        if node is not None:
            setattr(node, self.where, tuple(h for h in getattr(node, self.where) if h is not self.hook))
            if not (node.hooks or node.pre_hooks or node.post_hooks or getattr(node, "leaf_hooks", ())):
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
        if tensor is not None:
            new = g.clone() if isinstance(g, Tensor) else Tensor(g.astype(tensor.array.dtype))
            tensor._grad = new if tensor._grad is None else tensor._grad + new
        return g


def as_tensor(g):
    """A cotangent as the Tensor that a hook sees."""
    return g if isinstance(g, Tensor) or g is None else Tensor(g)


def cotangent(t):
    """A Tensor that a user's function returned, in the form in which cotangents travel in this sweep."""
    return t if t is None or mode.enabled else t.array


def copy(g):
    """An array of its own; a recorded gradient is copied when it gets to the leaf."""
    return g if isinstance(g, Tensor) else g.copy()


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
