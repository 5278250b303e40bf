"""compile: a function is captured once, planned, written down as Python over NumPy, and run from there.

``capture.py`` runs the function on arrays that write down what is done with them, forward and backward; ``plan.py``
leaves out what is not needed; ``fuse.py`` joins elementwise steps; ``generate.py`` writes two functions that can be
read (``compiled.code``); ``guards.py`` says for which calls they hold.  A call for which no capture holds is captured
anew; a function that cannot be captured runs as it is.
"""

import sys
import warnings
from functools import update_wrapper

import numpy as np

from .. import graph, tree
from ..autograd.modes import enable_grad
from ..backend import running
from ..graph import Node, Output, mode
from ..nn.module import Module
from ..ops.structure import Clone
from ..sweep import grad, sweep
from ..tensor import Tensor
from . import fuse
from .capture import GraphBreak, Reading, Ref, Step, Tape, Traced, capturing
from .generate import generate
from .guards import Guards
from .plan import noted, plan, refs

LIMIT = 8  # captures of one function, as in PyTorch; what needs more runs eagerly
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """A function or Module that does the same, from code written at its first call; without ``model``, a decorator.

    ``fullgraph``: what cannot be captured raises ``GraphBreak`` instead of running eagerly.  ``options``:
    ``{"fuse": False}`` writes one line an operation.  ``dynamic`` and ``mode`` are taken and change nothing: every
    shape has a capture of its own.  ``backend``: "inductor"; "eager" does not compile.
    """
    if model is None:
        return lambda model: compile(
            model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if unknown := set(options or ()) - {"fuse"}:
        raise RuntimeError(f"Unexpected optimization option {unknown.pop()}, known options are ['fuse']")
    if backend not in ("inductor", "eager"):
        raise NotImplementedError(f"compile() has the backends 'inductor' and 'eager', but got {backend!r}")
    if not callable(model):
        raise TypeError(f"compile() takes a function or a Module, but got {type(model).__name__}")
    if disable or backend == "eager":
        return model
    compiled = Compiled(model, fullgraph, (options or {}).get("fuse", True))
    return OptimizedModule(model, compiled) if isinstance(model, Module) else update_wrapper(compiled, model)


class OptimizedModule(Module):
    """A Module whose call runs compiled; everything else is the original's."""

    def __init__(self, module, compiled):
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "compiled", compiled)
        object.__setattr__(self, "training", module.training)

    def forward(self, *args, **kwargs):
        return self.compiled(*args, **kwargs)

    code = property(lambda self: self.compiled.code)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._orig_mod, name)


class Compiled:
    """A function and its captures."""

    def __init__(self, function, fullgraph=False, fused=True):
        self.function, self.fullgraph, self.fused = function, fullgraph, fused
        self.entries: list = []
        self.failures = 0  # captures that got no guards: nothing says for which calls they would hold

    def __get__(self, instance, owner=None):
        return self if instance is None else (lambda *args, **kwargs: self(instance, *args, **kwargs))

    def __call__(self, *args, **kwargs):
        if unusual():
            return self.function(*args, **kwargs)
        leaves, structure = (args, len(args)) if plain(args, kwargs) else tree.flatten((args, kwargs))
        for entry in self.entries:
            if entry.structure == structure and entry.guards.matches(leaves):
                return entry.run(leaves, args, kwargs)
        if len(self.entries) + self.failures >= LIMIT:
            if self.fullgraph:
                raise GraphBreak(f"there are {LIMIT} captures already, and none of them holds for this call", " ")
            return self.function(*args, **kwargs)
        entry = Entry(self, leaves, structure, args, kwargs)
        if entry.broken is not None and self.fullgraph:
            raise entry.broken
        if entry.guards is None:
            self.failures += 1
        else:
            self.entries.append(entry)
        return entry.run(leaves, args, kwargs)

    @property
    def code(self):
        """The Python that runs, of every capture."""
        return "\n\n".join(e.code for e in self.entries if e.code)


def plain(args, kwargs):
    """Whether the arguments are Tensors, and nothing else: the usual case."""
    return not kwargs and all(isinstance(a, Tensor) for a in args)


def unusual():
    """Whether nothing is compiled here: inside of a capture, a transform, forward mode, inference mode, autocast."""
    amp = sys.modules.get(f"{__package__.rpartition('.')[0]}.amp.autocast_mode")
    return (
        capturing.tape is not None or mode.dual or mode.transforms or mode.inference or running.levels or graph.anomaly
        or (amp is not None and any(amp.state.enabled.values() if isinstance(amp.state.enabled, dict) else ()))
    )  # fmt: skip


class Entry:
    """One capture: the guards under which it holds, and what runs then."""

    def __init__(self, compiled, leaves, structure, args, kwargs):
        self.compiled, self.structure = compiled, structure
        self.guards = self.broken = self.plan = None
        self.code = ""
        self.passes: dict = {}  # what the steps were after each pass, by its name: engine.viz.compiled draws them
        self.warned = False
        self.deviations = 0  # calls that ran eagerly after all
        try:
            self.guards = Guards(compiled.function, leaves)
            self.capture(args, kwargs)
            if not self.guards.matches(leaves):
                raise GraphBreak("it changes what it reads: a variable, an attribute or a container outside", " ")
        except GraphBreak as why:
            self.broken = why.with_traceback(None)
        except Exception as why:  # an operation that traced arrays do not know, or the user's own error: eager tells
            self.broken = GraphBreak(f"{type(why).__name__}: {why}", " ")
            self.broken.__cause__ = None
        finally:
            if self.guards is not None:
                self.guards.restore()
        if self.broken is not None:
            self.plan, self.code, self.passes = None, "", {}

    # ---- capture

    def capture(self, args, kwargs):
        tape, guards = Tape(), self.guards
        with Reading(tape):
            for tensor in guards.tensors:
                tape.input(tensor)
            try:
                self.written_down(tape, args, kwargs)
            finally:
                tape.closed = True

    def written_down(self, tape, args, kwargs):
        leaves, self.out_structure = tree.flatten(self.compiled.function(*args, **kwargs))
        stand_ins = [s for _, s in tape.inputs.values()]
        if any(s._grad is not None or s.node and (s.node.hooks or s.node.together) for s in stand_ins):
            raise GraphBreak("it calls backward() or registers a hook", " ")
        index = {id(t): i for i, (t, _) in enumerate(tape.inputs.values())}
        self.outs, made = [], {}  # what each leaf of the result is: ("input", i), ("made", i) or ("value", v)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                if type(leaf) is Traced:
                    raise GraphBreak("it returns the array of a tensor", " ")
                self.outs.append(("value", leaf))
            elif id(leaf) in index:
                self.outs.append(("input", index[id(leaf)]))
            else:
                self.outs.append(("made", list(made).index(id(leaf)) if id(leaf) in made else len(made)))
                made[id(leaf)] = leaf
        made = list(made.values())
        del leaves
        self.check_results(tape, made)
        outputs = [Ref(t.array.number) if type(t.array) is Traced else np.array(t.array) for t in made]
        self.differentiable = [i for i, t in enumerate(made) if t.node is not None and t.requires_grad]
        self.shapes = [(made[i].array.shape, made[i].array.dtype) for i in self.differentiable]
        middle, given, grads = len(tape.steps), [], []
        if self.differentiable:
            given, grads = self.backward_written_down(tape, made, stand_ins)
        self.names = names = {s.array.number: n for s, n in zip(stand_ins, self.guards.names)}
        self.plan = plan(tape.steps, outputs, middle, given, grads, self.passes)
        if self.compiled.fused:
            source = {s.number: s for s in tape.steps}
            written = {s.owner for s in tape.steps if s.writes is not None}
            p = self.plan
            p.forward[:] = fuse.fuse(p.forward, [*refs(p.outputs), *refs(p.saved)], source, written)
            p.backward[:] = fuse.fuse(p.backward, [*refs(p.grads)], source, written)
            noted(self.passes, "fused", (*p.forward, *p.backward), middle, p.outputs, p.saved, p.grads, p.given)
        self.forward, self.backward, self.code = generate(self.plan, tape.steps, names)
        self.made = len(made)
        if self.differentiable:
            self.node_class = node_class(self, len(self.plan.saved), len(stand_ins))

    def check_results(self, tape, made):
        """GraphBreak for results that cannot be made anew by every call."""
        memory = [t.array.owner for t in made if type(t.array) is Traced]
        if tape.frozen.intersection(memory):
            raise GraphBreak("it returns a view of an input", " ")
        if len(set(memory)) < len(memory):
            raise GraphBreak("it returns two tensors on the same memory", " ")
        if any(type(t) is not Tensor for t in made):
            raise GraphBreak("it returns a new Parameter", " ")
        if any(t.node is not None and type(t.node) is graph.AccumulateGrad for t in made):
            raise GraphBreak("it returns a new leaf that requires grad", " ")
        kept = {id(v) for t in made for v in (t, t._base)}
        if any(t is not None and id(t) not in kept for t in (r() for r in tape.made)):
            raise GraphBreak("it keeps a tensor that it made, outside of what it returns", " ")

    def backward_written_down(self, tape, made, stand_ins):
        """(the steps that stand for the cotangents of the results, the gradients of the inputs)."""
        cotangents, given = {}, []
        for i in self.differentiable:
            x = made[i].array
            step = Step(len(tape.steps), "input", "g", None)
            tape.steps.append(step)
            step.shape, step.dtype, step.flat = x.shape, x.dtype, True
            number = type(x) is Traced and isinstance(x.value, np.generic)
            g = Traced(tape, x.dtype.type(1) if number else np.ones(x.shape, x.dtype), step.number, None, step.number)
            tape.known[id(g.value)] = g
            tape.frozen.add(step.number)
            given.append(step.number)
            node = made[i].node
            cotangents[node] = cotangents[node] + g if node in cotangents else g
        found = sweep(cotangents, wanted={s.node for s in stand_ins if s.node is not None})
        grads = []
        for s in stand_ins:
            g = found.get(s.node) if s.node is not None else None
            if g is not None and g.dtype != s.array.dtype:
                g = g.astype(s.array.dtype)
            grads.append(Ref(g.number) if type(g) is Traced else g)
        return given, grads

    # ---- run

    def run(self, leaves, args, kwargs):
        if self.plan is None:
            return self.compiled.function(*args, **kwargs)
        tensors = [leaves[where] if kind == "argument" else where for kind, where in self.guards.places]
        try:
            results = self.forward(*[t.array for t in tensors])
        except Exception:  # a check that found another answer, or an error, for which the engine has the words
            self.deviations += 1
            return self.compiled.function(*args, **kwargs)
        n = self.made
        made = [Tensor(x.copy() if type(p) is not Ref else x) for x, p in zip(results, self.plan.outputs)]
        if self.differentiable:
            node = self.node_class(tuple([t.node for t in tensors]), results[n:])
            node.call = args, kwargs, tensors
            if len(self.differentiable) == 1:
                made[self.differentiable[0]].node = node
            else:
                node.outputs = len(self.differentiable)
                for i, place in enumerate(self.differentiable):
                    made[place].node = Output(node, i)
        leaves = [made[v] if kind == "made" else tensors[v] if kind == "input" else v for kind, v in self.outs]
        return leaves[0] if self.out_structure is tree.LEAF else tree.unflatten(self.out_structure, leaves)

    def cotangents(self, node, g, saved):
        """The gradients of the inputs, for those of the results."""
        gs = [g] if len(self.differentiable) == 1 else [g.get(i) for i in range(len(self.differentiable))]
        if any(g is not None and not isinstance(g, (np.ndarray, np.generic)) for g in gs):
            return self.cotangents_eagerly(node, gs)
        gs = [np.zeros(*shape) if g is None else g for g, shape in zip(gs, self.shapes)]
        return self.backward(*saved, *gs)

    def cotangents_eagerly(self, node, gs):
        """The same, recorded: the function runs again, and each input behind a node of its own."""
        if not self.warned:
            self.warned = True
            warnings.warn("compile: create_graph=True runs the function again without compiling it", stacklevel=4)
        args, kwargs, tensors = node.call
        recorded = any(isinstance(g, Tensor) for g in gs)
        before = [t.__dict__["node"] for t in tensors]
        barriers = [None if p is None else Clone((p,), ()) for p in node.parents]
        try:
            for t, b in zip(tensors, barriers):
                t.__dict__["node"] = b
            with enable_grad():
                made = {}
                leaves, _ = tree.flatten(self.compiled.function(*args, **kwargs))
                for (kind, i), leaf in zip(self.outs, leaves):
                    if kind == "made":
                        made[i] = leaf
                pairs = [(made[i], g) for i, g in zip(self.differentiable, gs) if g is not None]
                wanted = [t for t, b in zip(tensors, barriers) if b is not None]
                weights = [g if isinstance(g, Tensor) else Tensor(g) for _, g in pairs]
                found = iter(grad([o for o, _ in pairs], wanted, weights, create_graph=recorded, allow_unused=True))
        finally:
            for t, p in zip(tensors, before):
                t.__dict__["node"] = p
        grads = [None if b is None else next(found) for b in barriers]
        return grads if recorded else [g if g is None else g.array for g in grads]


def node_class(entry, saved, inputs):
    """The class of the nodes of a capture; all arrays that it saves are checked for in-place writes."""

    def cotangents(self, g, saved, parents):
        return entry.cotangents(self, g, saved)

    facts = {
        "__module__": "builtins",
        "links": (graph.CONSTANT,) * saved,
        "together": True,
        "private": True,
        "cotangents": cotangents,
    }
    return type("CompiledFunctionBackward", (Node,), {**facts, "rules": (None,) * inputs, "call": None})


# ---- what happened, and why


class Explanation:
    """What ``explain`` found: ``graph_break_count``, ``break_reasons``, ``op_count``, ``out_guards`` and ``code``."""

    def __init__(self, entry):
        self.entry = entry
        self.graph_count = int(entry.plan is not None)
        self.graph_break_count = int(entry.broken is not None)
        self.break_reasons = [] if entry.broken is None else [str(entry.broken).rstrip()]
        self.counts = {} if entry.plan is None else entry.plan.counts
        self.op_count = self.counts.get("written down", 0)
        self.out_guards = [] if entry.guards is None else entry.guards.conditions
        self.code = entry.code

    def __repr__(self):
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines += [f"Op Count: {self.op_count}", *(f"  {k}: {n}" for k, n in self.counts.items())]
        lines += ["Break Reasons:", *self.break_reasons] if self.break_reasons else []
        return "\n".join([*lines, f"Guards: {len(self.out_guards)}"])


def explain(function):
    """``explain(function)(*args)``: captures the call, runs nothing else, and says what is compiled or why not."""
    function = getattr(function, "compiled", function)
    compiled = function if isinstance(function, Compiled) else Compiled(function)

    def explained(*args, **kwargs):
        leaves, structure = (args, len(args)) if plain(args, kwargs) else tree.flatten((args, kwargs))
        return Explanation(Entry(compiled, leaves, structure, args, kwargs))

    return explained
