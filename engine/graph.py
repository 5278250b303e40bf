"""The recorded graph: nodes, leaves, the backward sweep, and the check that saved arrays were not overwritten.

A node holds its parents, what its rules need, and when it was made.  Creation order is a topological order, so backward
visits the newest node first and needs no recursion.  Gradients travel as plain arrays, or as Tensors when the backward
pass is itself recorded (``create_graph=True``); the rules are the same.
"""

import re
import threading
import warnings
from collections import deque
from heapq import heapify, heappop, heappush, heappushpop
from itertools import count
from sys import getrefcount
from traceback import format_list
from weakref import WeakSet, ref

import numpy as np

from .backend import Function, scalar_types, storage

ones_like, zeros_like = Function("ones_like").call, Function("zeros_like").call
clock = count(0, -1)  # the time of nodes and of in-place writes; newer is less, which makes a heap pop the newest
OUT, CONSTANT = -1, -2  # links of saved values that are no input: the node's own output, an array outside of the graph
VARARGS = 4  # the flag of a code object with *arguments
INPUTS = {"x": 0, "y": 1, "z": 2, "out": OUT} | dict.fromkeys(("mask", "index", "indices", "weights"), CONSTANT)


class Mode(threading.local):
    """What is recorded in this thread."""

    enabled = True
    inference = False
    asked = True  # in inference mode: what is_grad_enabled() says, though nothing is recorded


mode = Mode()
Tensor: type = None  # type: ignore  # set by tensor.py, which stands on this module
view_node = None  # what makes a view after its base was written; set by inplace.py


class Node:
    """One recorded operation: edges to its inputs and what its rules need."""

    rules: tuple = ()  # rules[i](g, *saved) -> cotangent of input i
    links: tuple = ()  # links[k]: saved[k] is this input, OUT or CONSTANT; None: a plain value.  () if none is an array
    names: tuple = ()  # names[k]: how the rules call saved[k]
    hooks: tuple = ()  # the tensor's: called with its cotangent, each returns that or another one
    pre_hooks: tuple = ()  # the node's: called after those with the cotangents of all outputs
    post_hooks: tuple = ()  # called with the cotangents of the inputs and of the outputs
    together = False  # the cotangents of all inputs are computed at once: for the node's hooks, by a custom function
    outputs = 1  # how many there are; the cotangents of several travel as Parts

    def __init__(self, parents, saved):
        self.parents = parents
        self.saved = saved
        self.order = next(clock)

    plain_init = __init__

    def watched_init(self, parents, saved):
        for look in watchers:
            look(self, saved)
        self.plain_init(parents, saved)

    def name(self):
        """PyTorch's name of the operation."""
        name = type(self).__name__
        return name if name[-1].isdigit() else "torch::autograd::" + name

    def linked(self):
        """The saved values as Tensors joined to the graph, for ``create_graph=True``."""
        return [
            s if k is None or s is None or type(s) in scalar_types
            else Tensor(s, None if k == CONSTANT else self if k == OUT else self.parents[k])
            for s, k in zip(self.saved, self.links)
        ] if self.links else self.saved  # fmt: skip

    def cotangents(self, g, saved, parents):
        """The cotangents of all inputs, for a node whose rules run ``together``."""
        return [None if p is None else rule(g, *saved) for p, rule in zip(parents, self.rules)]

    def shown(self):
        """What stands for this node in ``grad_fn`` and ``next_functions``."""
        return self

    @property
    def next_functions(self):
        """The nodes of the inputs, each with the number of its output, as PyTorch shows them."""
        return tuple(edge(p) for p in self.parents)

    @property
    def metadata(self):
        return self.__dict__.setdefault("_metadata", {})

    def register_prehook(self, hook):
        """Call ``hook(grad_outputs)`` before this node runs; it may return other gradients, as a tuple."""
        self.together = True
        return RemovableHandle(self, "pre_hooks", hook)

    def register_hook(self, hook):
        """Call ``hook(grad_inputs, grad_outputs)`` after this node; it may return other gradients of the inputs."""
        self.together = True
        return RemovableHandle(self, "post_hooks", hook)

    def __call__(self, *grads):
        """Run this node alone: gradients of the outputs give those of the inputs, a tuple unless there is one input."""
        if self.saved is None:
            raise RuntimeError(FREED)
        if last_write < self.order:
            check_unmodified(self)
        g = Parts(enumerate(map(cotangent, grads))) if self.outputs > 1 else cotangent(*grads)
        into = self.cotangents(g, self.linked() if mode.enabled else self.saved, self.parents)
        return tuple(map(as_tensor, into)) if len(into) != 1 else as_tensor(into[0])

    def saved_names(self):
        """What the rules keep, under PyTorch's names: {"_saved_self": 0, ...}."""
        second = next((n for c, n in SECOND.items() if c in type(self).__name__), "other")
        names = {"y": second, "mask": "condition" if type(self).__name__ == "WhereBackward0" else "mask"}
        return {"_saved_" + names.get(n, CALLED.get(n, n)): i for i, n in enumerate(self.names) if n in SAVED}

    def __getattr__(self, name):
        i = self.saved_names().get(name) if name.startswith("_saved_") else None
        if i is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if self.saved is None:
            raise RuntimeError(FREED)
        s, k = self.saved[i], self.links[i] if self.links else None
        if k is None or s is None:
            return s
        if type(s) in scalar_types:
            return Tensor(np.asarray(s)) if name == "_saved_other" else s
        if k >= 0 and type(self.parents[k]) is AccumulateGrad:
            leaf = self.parents[k].variable
            return leaf if leaf is not None and leaf.array is s else self.linked()[i]
        return self.linked()[i]

    def __dir__(self):
        return [*super().__dir__(), *self.saved_names()]


# what PyTorch shows of the saved values, and how it calls x, y, out, ...; y by what the name of the node contains
SAVED = {*INPUTS, "shape", "axis", "dim", "keepdims"}
CALLED = {"x": "self", "out": "result", "shape": "self_sym_sizes", "axis": "dim", "keepdims": "keepdim"}
SECOND = {"Pow": "exponent", "Mm": "mat2", "mm": "mat2", "Mv": "vec", "Dot": "tensor", "Loss": "target",
          "Entropy": "target"}  # fmt: skip

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

    def __call__(self, grad):
        self.accumulate(cotangent(grad))
        return ()

    def accumulate(self, g, hooks=None):
        """Add to the leaf's ``.grad``, with all hooks; ``hooks``: those of the tensor, if they have run already."""
        leaf = self.leaf()
        if leaf is None:
            return
        if self.hooks or self.together:
            for hook in self.hooks if hooks is None else hooks:
                g = hook(g)
            g = run_pre_hooks(self, g)
            if g is None:
                return
            g = copy(g)  # a hook may have kept what it saw, or given what it keeps
        with lock:  # reading, adding and writing back must be one step when threads share a leaf
            add_to_grad(leaf, g)
        for hook in self.leaf_hooks:
            hook(leaf)
        for hook in self.post_hooks:
            hook((), (as_tensor(g),))


def add_to_grad(tensor, g):
    """``tensor.grad += g``, for an array or, in a recorded backward pass, a Tensor."""
    grad = tensor._grad
    if isinstance(g, Tensor):
        tensor._grad = Tensor(g.array.copy(), g.node and Copied((None, g.node), ())) if grad is None else grad + g
        return
    if g.dtype is not tensor.array.dtype:
        g = g.astype(tensor.array.dtype)
    if grad is None:
        own = g.base is None or g.strides == tensor.array.strides and holders(g) == ALONE
        tensor._grad = Tensor(g if own else g.copy())
    else:  # in place, so that whoever holds .grad sees the sum
        write(grad, grad.array + g if isinstance(grad.array, np.generic) else g, add=True)


def holders(view):
    """How many references there are to the memory of a view."""
    base = view.base
    return getrefcount(base) if base.size == view.size else 0


ALONE = holders(np.empty(1)[:])  # the view's own, and those of counting


class Output(Node):
    """Stands for one of several outputs of a node; its cotangent goes to that node as ``Parts``."""

    rules = (lambda g, i: Parts({i: g}),)

    def __init__(self, node, i):
        Node.__init__(self, (node,), (i,))


class Parts(dict):
    """Cotangents of some of the outputs of one node; they add like arrays."""

    def __add__(self, other):
        return Parts({**self, **{i: self[i] + g if i in self else g for i, g in other.items()}})


lock = threading.Lock()
hooked_leaves: WeakSet = WeakSet()  # the AccumulateGrad nodes on which a hook was registered


def edge(node):
    """(node, output number) as in ``next_functions``."""
    if type(node) is Output:
        return node.parents[0].shown(), node.saved[0]
    return node and node.shown(), 0


def node_class(name, *rules):
    """A node class for an operation; the names of the rules' parameters say what is saved.

    ``x``, ``y``, ``z`` are inputs, ``out`` the output, ``mask``, ``index`` and the like arrays outside of the graph; a
    name that begins with an underscore is not needed by that rule; any other is a plain value.  ``*indices``: any
    number of index arrays.
    """
    signatures = [r.__code__.co_varnames[1 : r.__code__.co_argcount] for r in rules]
    columns = [[n for n in column if not n.startswith("_")] or ["_"] for column in zip(*signatures)]
    names = tuple(column[0] for column in columns)
    links = tuple(INPUTS.get(n) for n in names)
    if all(k is None for k in links):
        links = ()
    needs = tuple(tuple(not n.startswith("_") for n in column) for column in zip(*signatures))
    code = rules[0].__code__ if rules else None
    if code and code.co_flags & VARARGS and code.co_varnames[code.co_argcount] == "indices":
        links = (*(INPUTS.get(n) for n in names), *(CONSTANT,) * 64)
        needs = (*needs, *((True,) * len(rules),) * 64)
    facts = {"rules": rules, "links": links, "names": names, "needs": needs, "kept": {}}
    return type(name, (Node,), {"__module__": "builtins", **facts})


Copied = node_class("CopyBackwards", lambda g: None, lambda g: g)  # a recorded gradient becomes the .grad of a leaf


# ---- in-place writes

written: dict = {}  # id(array that owns memory) -> Writes
overwritten: dict = {}  # id(NumPy scalar) -> (scalar, Writes): they have no weak references, so the newest few thousand
last_write = 0


class Writes:
    """The in-place writes to one piece of memory: how many, when the latest, and the tensor that has the memory."""

    __slots__ = ("count", "times", "base", "owner")

    def __init__(self):
        self.count, self.times, self.base, self.owner = 0, deque((1,), maxlen=256), lambda: None, None

    def of(self, x):
        """Stand for the memory of an owner, or of a scalar: a 0-d result takes both forms in the course of its life."""
        if isinstance(x, np.generic):
            if len(overwritten) > 4096:
                del overwritten[next(iter(overwritten))]
            overwritten[id(x)] = x, self
        else:
            key = id(x)
            written[key] = self
            self.owner = ref(x, lambda _: written.pop(key, None)), self.owner  # all of them: each calls back
        return self


def writes_to(x):
    """The ``Writes`` to the memory of an array or scalar; None if there were none."""
    x = storage(x)
    return overwritten.get(id(x), (x, None))[1] if isinstance(x, np.generic) else written.get(id(x))


def wrote(tensor):
    """Note that the memory of a tensor was overwritten."""
    global last_write
    writes = writes_to(tensor.array) or Writes().of(storage(tensor.array))
    writes.count += 1
    last_write = next(clock)
    writes.times.append(last_write)
    writes.base = ref(tensor if tensor._base is None else tensor._base)


def version(tensor):
    """How often the memory of a tensor was written in place."""
    writes = writes_to(tensor.array)
    return 0 if writes is None else writes.count


def write(tensor, value, add=False):
    """Overwrite the memory of a tensor, and note it."""
    x = tensor.shared() if isinstance(tensor.array, np.bool_) else tensor.array  # True and False are everybody's
    if isinstance(x, np.generic):
        writes = writes_to(x) or Writes().of(x)
        tensor.array = value if isinstance(value, x.dtype.type) else x.dtype.type(value)
        writes.of(tensor.array)
    elif add:
        x += value
    else:
        x[...] = value
    wrote(tensor)


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


# ---- inference tensors: while there are none, nobody looks for them

marked: dict = {}  # id(owner of memory) -> the tensors on it that were made in inference mode, weakly


def mark_inference(tensor):
    """Let a tensor be one that no node may save."""
    tensor.inference = True
    key = id(storage(tensor.array))
    marked.setdefault(key, []).append(ref(tensor, lambda gone: forget_inference(key, gone)))
    watch_nodes(check_inference, True)


def forget_inference(key, gone):
    marked[key].remove(gone)
    if not marked[key]:
        del marked[key]
    if not marked:
        watch_nodes(check_inference, False)


def check_inference(node, saved):
    """RuntimeError if a node would save an inference tensor."""
    for s, link in zip(saved, node.links):
        if link is None or s is None or type(s) in scalar_types:
            continue
        owner = storage(s)
        for t in (r() for r in marked.get(id(owner), ())):
            if t is not None and t.inference and storage(t.array) is owner:  # a view of a normal tensor is normal
                raise RuntimeError(INFERENCE)


INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


def check_unmodified(node):
    """Raise PyTorch's error if an array that the node saved was written to after it was saved."""
    for s, k in list(zip(node.saved, node.links))[::-1]:  # PyTorch looks at other before self
        if k is not None and s is not None and type(s) not in scalar_types:
            check_saved(s, node.order, node if k == OUT else None, node.parents[k] if k >= 0 else None)


def check_saved(x, since, maker=None, source=None):
    """Raise PyTorch's error if an array was written to after it was saved.

    ``maker``: the node whose output it is; ``source``: that of the input which it is.
    """
    writes = writes_to(x)
    if writes is not None and writes.times[-1] < since:
        raise modified(x, writes, since, maker, source)


def short_name(node):
    """The name of a node as it stands in error messages: Mul for MulBackward0, Squeeze1 for SqueezeBackward1."""
    return re.sub(r"Backward(?:0|(\d*))$", r"\1", node.name())


def alive(tensor, kind):
    """The tensors that one knows: its "views", or those "sharing" its memory by ``detach()``."""
    return [t for t in (r() for r in tensor.__dict__.get(kind, ())) if t is not None]


def written_maker(x, writes, source):
    """(node, output number) of the tensor with a saved array: the one which the write gave it, if it is still there."""
    base = writes.base()
    bases = [] if base is None else alive(base, "sharing") or [base]
    held = [t for b in bases for t in (b, *alive(b, "views")) if t.array is x or (t is b and isinstance(x, np.generic))]
    if held:
        t = min(held, key=lambda t: (t.node is None) != (source is None))  # not the one that detach() made of it
        return t.grad_fn, t.output_nr
    if source is not None and any(b.array is not x and b.node is not None for b in bases):
        return view_node, 0  # a view that is gone
    return edge(source)


def modified(x, writes, since, maker, source):
    """The error for a saved array that was overwritten after ``since``."""
    number = 0
    if maker is None:
        maker, number = written_maker(x, writes, source)
        if type(maker) is AccumulateGrad:
            maker = None
    late = sum(t < since for t in writes.times)
    kind = Tensor.typename(x) if x.dtype != np.bool_ else "CPUBoolType"
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: [{kind} "
        f"{list(x.shape)}]" + (f", which is output {number} of {short_name(maker)}," if maker is not None else "")
        + f" is at version {writes.count}; expected version {writes.count - late} instead. Hint: "
        + ("the backtrace further above shows the operation that failed to compute its gradient. The variable in "
           "question was changed in there or anywhere later. Good luck!" if anomaly else
           "enable anomaly detection to find the operation that failed to compute its gradient, with "
           "torch.autograd.set_detect_anomaly(True, check_nan=False).")
    )  # fmt: skip


# ---- backward


def sweep(cotangents, retain_graph=False, create_graph=False, wanted=None):
    """Carry cotangents from the roots to the leaves, from the newest node to the oldest.

    ``cotangents``: {node: cotangent}.  With ``wanted``, a set of nodes, nothing is added to leaves: only the nodes on
    the way to those are visited, and what arrives at them is returned, as {node: cotangent}.
    """
    pending = {node: g for node, g in cotangents.items() if node.parents}
    leaves = {node: g for node, g in cotangents.items() if not node.parents}
    heap = [(node.order, node) for node in pending]
    heapify(heap)
    newest, found = None, {}
    way = None if wanted is None else leading_to(wanted, cotangents)
    waiting = edges_into(hooked_leaves, cotangents) if hooked_leaves and way is None else None
    before, mode.enabled = mode.enabled, create_graph
    node = None
    try:
        while pending:
            if newest is None:
                node = heappop(heap)[1]
            else:
                node = heappushpop(heap, (newest.order, newest))[1] if heap else newest
                newest = None
            g = pending.pop(node)
            parents, rules, saved = node.parents, node.rules, node.saved
            if way is not None:
                parents = [p if p in way else None for p in parents]
                if node in wanted:
                    found[node] = g
                if not any(parents):
                    for hook in node.hooks:
                        found[node] = hook(found[node])
                    continue
            if node.hooks:
                for hook in node.hooks:
                    g = hook(g)
            if saved is None:
                raise RuntimeError(FREED)
            if last_write < node.order:
                check_unmodified(node)
            if create_graph:
                saved = node.linked()
            if node.together:
                rules = together(node, g, saved, parents)
            n = len(saved)  # a call with *saved takes half as long again as one that names its arguments
            a, b = saved if n == 2 else (saved[0], None) if n == 1 else (None, None)
            for parent, rule in zip(parents, rules):
                if parent is None:
                    continue
                gi = rule(g, a, b) if n == 2 else rule(g, a) if n == 1 else rule(g, *saved)
                if gi is None:
                    continue
                if parent in pending:
                    pending[parent] = pending[parent] + gi
                elif parent.parents:
                    pending[parent] = gi
                    if newest is None:
                        newest = parent
                    else:
                        heappush(heap, (parent.order, parent))
                elif parent in leaves:
                    leaves[parent] = leaves[parent] + gi
                else:  # a leaf must not share its .grad with another
                    leaves[parent] = gi if gi is not g else copy(gi)
            if node.links and not retain_graph:
                node.saved = None  # release the arrays; the edges stay, as in PyTorch
            if waiting:
                accumulate_complete(leaves, waiting, parents)
        g = None  # a leaf takes over the memory of its gradient if it is the last to hold it
        for node in sorted(leaves, key=by_age):
            if way is None:
                node.accumulate(leaves[node])
            elif node in wanted:
                found[node] = leaves[node]
                for hook in node.hooks:
                    found[node] = hook(found[node])
    except BaseException:
        if anomaly and node is not None:
            mode.enabled = before
            tell_where(node)
        raise
    finally:
        mode.enabled = before
    return found


anomaly = ""  # whether anomaly detection is on: "", "trace", or "check", which also looks for nan


def tell_where(node):
    """Warn of the line that recorded a node whose gradient failed."""
    call = node.__dict__.get("call")
    warnings.warn(
        f"Error detected in {node.name()}. "
        + ("No forward pass information available. Enable detect anomaly during forward pass for more information."
           if call is None else "Traceback of forward call that caused the error:\n" + "".join(format_list(call))),
        stacklevel=4,
    )  # fmt: skip


def check_nan(node, into):
    """Raise PyTorch's error if a cotangent is nan."""
    for i, g in enumerate(into):
        x = g.array if isinstance(g, Tensor) else g
        if x is not None and type(x) is not Parts and (x != x).any():
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def by_age(node):
    return node.order


def edges_into(leaves, roots):
    """How many edges lead from the roots into each of some leaves."""
    count = dict.fromkeys(leaves, 0)
    for node in reachable(roots):
        for p in node.parents:
            if p in count:
                count[p] += 1
    return count


def accumulate_complete(leaves, waiting, parents):
    """Accumulate at once, as PyTorch does, what is complete in leaves with hooks: a program sees when they run."""
    for p in parents:
        if p in waiting:
            waiting[p] -= 1
            if not waiting[p] and p in leaves:
                p.accumulate(leaves.pop(p))


def copy(g):
    """An array of its own; a recorded gradient is copied when it gets to the leaf."""
    return g if isinstance(g, Tensor) else g.copy()


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
    way = set()
    for node in sorted(reachable(roots), key=by_age, reverse=True):  # parents first
        if node in wanted or any(p in way for p in node.parents):
            way.add(node)
    return way


def backward(tensors, gradients=None, retain_graph=None, create_graph=False, inputs=None):
    """Add the gradients of ``tensors``, weighted by ``gradients``, to the leaves (or to ``inputs`` alone)."""
    if inputs is not None:
        inputs = differentiated(inputs, "backward")
        for i in inputs:
            i.retain_grad()
    cotangents = roots(tensors, gradients, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        sweep(cotangents, keep, create_graph)
        return
    found = sweep(cotangents, keep, create_graph, {i.node for i in inputs})
    before, mode.enabled = mode.enabled, create_graph
    try:
        for node, g in found.items():
            if not node.parents:
                node.accumulate(g, hooks=())
    finally:
        mode.enabled = before


def differentiated(inputs, function):
    """The ``inputs`` argument of a function as a tuple, checked as PyTorch checks it."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    for i in inputs:
        if not isinstance(i, Tensor):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(i).__name__}")
    return inputs


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):  # fmt: skip
    """The gradients of ``outputs`` with respect to ``inputs``, as a tuple; nothing is added to any ``.grad``.

    RuntimeError if an input was not used, unless ``allow_unused`` (None then) or ``materialize_grads`` (zeros).
    """
    if is_grads_batched:
        raise NotImplementedError("is_grads_batched is not there yet: call grad once for each row of grad_outputs")
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
    found = sweep(cotangents, keep, create_graph, {i.node for i in inputs})
    results = [as_tensor(found.get(i.node)) for i in inputs]
    for number, (i, result) in enumerate(zip(inputs, results)):
        if result is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {number} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        if result is None and materialize_grads:
            results[number] = Tensor(zeros_like(i.array)).requires_grad_(create_graph)
    return tuple(results)


def roots(tensors, gradients, create_graph):
    """{node: cotangent} to begin a sweep with, checked as PyTorch checks it."""
    tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    if gradients is None:
        gradients = (None,) * len(tensors)
    else:
        gradients = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)
    if len(gradients) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    cotangents: dict = {}
    for i, (t, g) in enumerate(zip(tensors, gradients)):
        if not isinstance(t, Tensor):
            raise TypeError(f"element {i} of tensors must be a Tensor, but got {type(t).__name__}")
        x = t.array
        if g is None:
            if t.node is not None and x.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            g = Tensor(x.dtype.type(1) if x.ndim == 0 and isinstance(x, np.generic) else ones_like(x))
        elif not isinstance(g, Tensor):
            raise TypeError("gradients can be either Tensors or None, but got " + type(g).__name__)
        elif g.array.shape != x.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{t.shape}."
            )
        if t.node is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        if g.array.dtype != x.dtype:
            g = g.to(t.dtype)
        g = g if create_graph else g.array
        if not t.node.parents:
            g = copy(g)
        cotangents[t.node] = cotangents[t.node] + g if t.node in cotangents else g
    return cotangents


# ---- hooks


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
        if type(node) is AccumulateGrad:
            hooked_leaves.add(node)

    def remove(self):
        node = self.node()
        if node is not None:
            setattr(node, self.where, tuple(h for h in getattr(node, self.where) if h is not self.hook))
            if not (node.hooks or node.pre_hooks or node.post_hooks or getattr(node, "leaf_hooks", ())):
                hooked_leaves.discard(node)

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
            new = g.clone() if isinstance(g, Tensor) else Tensor(g.copy())
            tensor._grad = new if tensor._grad is None else tensor._grad + new
        return g


def tensor_hook(hook):
    """The hook of a tensor, which sees Tensors, as the sweep calls it."""

    def call(g):
        new = hook(as_tensor(g))
        return g if new is None else checked(hook, new, g)

    return call


def run_pre_hooks(node, g):
    """What the prehooks of a node make of what arrives there; they see tuples of Tensors."""
    for hook in node.pre_hooks:
        grads = seen(g, node.outputs)
        new = hook(grads)
        if new is not None:
            new = checked_all(hook, new, grads)
            g = Parts({i: t for i, t in enumerate(new) if t is not None}) if type(g) is Parts else new[0]
    return g


def checked_all(hook, new, old):
    """The cotangents in the tuple that a hook returned in place of others."""
    if not isinstance(new, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
    if len(new) != len(old):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values (got {len(new)}, but expected "
            f"{len(old)})"
        )
    return [checked(hook, n, o) for n, o in zip(new, old)]


def checked(hook, new, old):
    """The cotangent that a hook returned in place of another.  TypeError or RuntimeError if it is none."""
    if new is None:
        return None
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    old = as_tensor(old).array
    if new.array.dtype != old.dtype:
        types = f"was {Tensor.typename(old)} got {Tensor.typename(new.array)}"
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the type of value ({types})")
    if new.array.shape != old.shape:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value")
    return cotangent(new)


def hook_name(hook):
    return getattr(hook, "__name__", "<unknown>")


def as_tensor(g):
    """A cotangent as the Tensor that a hook sees."""
    return g if isinstance(g, Tensor) or g is None else Tensor(g)


def cotangent(t):
    """A Tensor that a user's function returned, in the form in which cotangents travel in this sweep."""
    return t if t is None or mode.enabled else t.array


def seen(g, n):
    """What arrives at a node of n outputs, as the tuple of Tensors that a hook sees."""
    return tuple(as_tensor(g.get(i)) for i in range(n)) if type(g) is Parts else (as_tensor(g),)


def together(node, g, saved, parents):
    """The rules of a node whose rules have run already: each gives its result, or what the hooks made of it."""
    if node.pre_hooks:
        g = run_pre_hooks(node, g)
    into = node.cotangents(g, saved, parents)
    if anomaly == "check":
        check_nan(node, into)
    for hook in node.post_hooks:
        new = hook(tuple(map(as_tensor, into)), seen(g, node.outputs))
        if new is not None:
            into = checked_all(hook, new, into)
    # what a user's function returned may be in the user's hands: a leaf must not take it for its .grad
    into = [x if x is None or p is None or p.parents else copy(x) for x, p in zip(into, parents)]
    return [lambda g, *saved, x=x: x for x in into]
