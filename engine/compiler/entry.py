"""One capture of a function: how it comes about, and how a call runs from it."""

from functools import cached_property

import numpy as np

from ..arrays import dtypes, tree
from ..arrays.devices import device
from ..arrays.dispatch import device_names, modules, number_types
from ..arrays.memory import storage
from ..arrays.size import Size
from ..arrays.warn import warn
from ..autograd.gradients import grad
from ..autograd.hooks import RetainGrad
from ..autograd.modes import enable_grad
from ..core.backward import backward_pass, reachable
from ..core.graph import CONSTANT, AccumulateGrad, Node, Output
from ..core.linear import Clone
from ..core.tensor import Tensor
from ..core.versions import version, wrote
from ..core.views import rebase_history
from . import copies, machine
from .bytecode import decided
from .capture import Traced
from .conditions import VALUES, forget_casts, identities_of, own_casts
from .fuse import planned
from .generate import generate
from .guards import Guards
from .kernels import FORMULAS
from .plan import Stage, refs
from .results import all_leaves, containers, numbers_to_memory, viewed
from .sizes import Generalized, Sizes
from .steps import GraphBreak, NumberWritten, Ref
from .tape import Reading, Tape, capture_lock, overlap

# types of what a call may return again and again: nothing can change it
FIXED = {type(None), type(...), bool, *VALUES, slice, range, Size, dtypes.dtype, device, *number_types, type}


class Entry:
    """One capture: the guards under which it holds, and what runs then."""

    def __init__(self, compiled, leaves, structure, args, kwargs, dims=(), small=0):
        self.compiled, self.structure = compiled, structure
        self.shapes_seen = {i: t.array.shape for i, t in enumerate(leaves) if isinstance(t, Tensor)}
        self.sizes = Sizes(dims, {i: leaves[i].array for i, _ in dims}, small) if dims else None
        self.guards = self.broken = self.plan = self.captured = None
        self.code, self.warned = "", False
        self.deviations = 0  # calls that ran eagerly after all
        while True:
            try:
                given = [*containers((args, kwargs))]
                self.guards = Guards(compiled.function, leaves, self.sizes)
                held = self.guards.hold(given)
                self.capture(args, kwargs)
                if any(identities_of(value) != identities_of(before) for value, before in held):
                    raise GraphBreak("it changes a list or dict that it is given", " ")
                if not self.guards.matches(leaves):
                    why = "it changes what it reads: a variable, an attribute or a container outside"
                    raise GraphBreak(f"{why} ({self.guards.failing(leaves)})", " ")
            except GraphBreak as why:
                if isinstance(why, NumberWritten) and numbers_to_memory(self.guards.tensors):
                    compiled.in_memory = True
                    continue
                self.broken = why.with_traceback(None)
            except Exception as why:  # an operation that Traced arrays do not know, or the user's error: eager tells
                self.broken = GraphBreak(f"{type(why).__name__}: {why}", " ")
            finally:
                if self.guards is not None:
                    self.guards.restore()
            break
        if self.broken is not None:
            self.plan, self.code, self.captured = None, "", None
            if self.guards is not None:
                self.guards.finish()
        if self.guards is not None:
            self.guards.forget()

    # ---- capture

    def capture(self, args, kwargs):
        self.looped = self.compiled.looped and self.compiled.fused and self.sizes is None and not machine.why_not()
        self.fused = self.compiled.fused and ("everywhere" if self.sizes is None else "on devices")
        others = []
        if self.sizes is not None:
            if why := decided(self.guards.codes):
                raise GraphBreak(why, " ")
            known = None
            while known != len(self.guards.tensors):  # a tape may find inputs, which the next has from the beginning
                known, others = len(self.guards.tensors), []
                for example in (1, 2):
                    tape, stage = self.tape(args, kwargs, example)
                    others.append((stage, self.outs))
                    tape.forget()
        tape, stage = self.tape(args, kwargs, 0)
        if any(repr(outs) != repr(self.outs) for _, outs in others):
            raise GraphBreak("it returns a size, or a view that is made with one", " ")
        if others:
            inputs = {w: n for (k, w), n in zip(self.guards.places, tape.entered) if k == "argument"}
            stage = Generalized([stage, *(other for other, _ in others)], self.sizes, inputs).stage
        self.note_effects(tape, stage)
        self.fixed = [where if kind == "fixed" else None for kind, where in self.guards.places]
        self.varying = [(i, *place) for i, place in enumerate(self.guards.places) if place[0] != "fixed"]
        self.captured = with_twins(stage)
        self.plan = planned(stage, self.fused, Host=copies.Nest if self.looped else None)
        self.forward, self.backward, self.code = generate(self.plan, stage.steps, self.names)
        if self.differentiable or self.spent:
            self.node_class = compiled_node_class(self, len(self.plan.saved), len(tape.inputs))
        tape.forget()

    def tape(self, args, kwargs, example):
        """(the tape of a run of the function, the Stage that was captured); ``example``: in which sizes."""
        guards = self.guards
        tape = Tape(guards, FORMULAS if self.looped else {})
        with capture_lock, Reading(tape), own_casts():
            for tensor, (kind, where) in zip(list(guards.tensors), guards.places):
                x = tensor.__dict__["array"]
                tape.input(tensor, self.sizes.resized(where, x, example) if example and kind == "argument" else x)
            stage = None
            try:
                stage = self.written_down(tape, args, kwargs)
                return tape, stage
            finally:
                tape.undo()
                if stage is None:
                    tape.forget()

    def written_down(self, tape, args, kwargs):
        returned = self.compiled.function(*args, **kwargs)
        if not self.guards.seen.isdisjoint(map(id, containers(returned))):
            raise GraphBreak("it returns a list or dict that was there before", " ")
        leaves, self.out_structure = tree.flatten(returned)
        del returned
        tape.flush()
        forget_casts()
        stand_ins = [s for _, s in tape.inputs.values()]
        if any(n and (n.hooks or n.pre_hooks or n.post_hooks) for n in tape.sources):
            raise GraphBreak("it registers a hook", " ")
        self.outs, new, known = self.results(tape, leaves, stand_ins)
        del leaves
        self.check_results(tape, new, known)
        del known
        self.rewritten = []  # (place of an input, place among the new results) of inputs that get a node by a write
        for place, (s, source) in enumerate(zip(stand_ins, tape.sources)):
            if s.node is not source:
                self.rewritten.append((place, len(new)))
                new.append(s)
        if any(id(storage(t.array)) in self.guards.seen for t in new):
            raise GraphBreak("it returns a tensor on the memory of a NumPy array", " ")
        outputs = tuple([Ref(t.array.number) if isinstance(t.array, Traced) else t.array.copy() for t in new])
        differentiable = [i for i, t in enumerate(new) if t.node is not None and t.requires_grad]
        # what a backward pass inside of the function has released of the graph of a result
        released = lambda node: any(n.saved_from and n.saved is None for n in reachable([node]))  # noqa: E731
        self.spent = [i for i in differentiable if released(new[i].node)]
        self.differentiable = [i for i in differentiable if i not in self.spent]
        arrays = [new[i].array for i in self.differentiable]
        self.shapes = [(x.shape, x.dtype, modules[type(getattr(x, "value", x))]) for x in arrays]
        middle, given, grads = len(tape.steps), (), ()
        if self.differentiable:
            given, grads = self.backward_written_down(tape, new, stand_ins)
        self.names = {s.array.number: n for s, n in zip(stand_ins, self.guards.names)}
        if tape.tensors is not None:
            self.names[tape.tensors.number] = "tensors"
        self.alone = self.out_structure is tree.LEAF and self.outs == [("new", 0)]
        self.updated = [(tape.entered[n], version(stand_ins[tape.entered[n]])) for n in tape.written]
        return Stage(tape.steps, middle, outputs, (), grads, given)

    @cached_property
    def passes(self):
        """Return the steps after each pass, by its name: ``engine.viz.compiled`` draws them."""
        found: dict = {}
        if self.captured is not None:
            planned(with_twins(self.captured), self.fused, found, copies.Nest if self.looped else None)
        return found

    def results(self, tape, leaves, stand_ins):
        """(what each leaf of the result is, the new Tensors among them, all Tensors that may stay alive).

        A leaf is ("value", v), ("input", place), ("grad", place), ("new", place), ("view", what it is a view of, the
        views that lead there, their creation_meta), ("detached", what it is detached from), ("same", place of a leaf).
        """
        index = {id(t): i for i, (t, _) in enumerate(tape.inputs.values())}
        grads = {id(s.__dict__["_grad"]): i for i, s in enumerate(stand_ins) if s.__dict__.get("_grad") is not None}
        tensors = list({id(t): t for t in leaves if isinstance(t, Tensor) and id(t) not in index}.values())
        owners = [t.array.owner for t in tensors if isinstance(t.array, Traced)]
        new: dict = {}

        def found(t):
            if id(t) in index:
                return "input", index[id(t)]
            if id(t) in grads:
                return "grad", grads[id(t)]
            if isinstance(t.array, Traced) and (t.array.owner in tape.entered or owners.count(t.array.owner) > 1):
                source = (t.__dict__.get("aliases") or (lambda: None,))[0]()
                arguments = tree.flatten([list(a) for _, a in t.view_ops])[0]
                if t._base is not None and not any(isinstance(a, (Traced, Tensor)) for a in arguments):
                    source, views = viewed(t, tape)
                    return "view", found(source), views, t.creation_meta
                if source is not None and source is not t and source.array is t.array:
                    return "detached", found(source)
            new[id(t)] = t
            return "new", list(new).index(id(t))

        outs: list = []
        places: dict = {}
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, Traced):
                raise GraphBreak("it returns the array of a tensor", " ")
            if not (isinstance(leaf, Tensor) or type(leaf) in FIXED or id(leaf) in self.guards.seen):
                raise GraphBreak(f"it returns an object that it makes, of the type {type(leaf).__name__}", " ")
            if isinstance(leaf, Tensor):
                first = places.setdefault(id(leaf), place)
                outs.append(found(leaf) if first == place else ("same", first))
            else:
                outs.append(("value", leaf))
        found = None  # it refers to itself
        known = [*leaves, *(t._base for t in tensors), *(s.__dict__.get("_grad") for s in stand_ins)]
        return outs, list(new.values()), known

    def check_results(self, tape, new, known):
        """GraphBreak for results that cannot be made anew by every call."""
        owners = [t.array.owner for t in new if isinstance(t.array, Traced)]
        nodes = [t.node for t in new if t.node is not None]
        known = {id(t) for t in known}
        refused = {
            "it returns a view of an input": tape.entered.keys() & set(owners),
            "it returns two tensors on the same memory": len(set(owners)) < len(owners),
            "it returns a new Parameter": any(type(t) is not Tensor for t in new),
            "it returns a new leaf that requires grad": any(type(n) is AccumulateGrad for n in nodes),
            "it returns what it made in inference mode": any(t.inference for t in new),
            "it calls retain_grad() of a result": any(type(hook) is RetainGrad for n in nodes for hook in n.hooks),
            "it keeps a tensor that it made, outside of what it returns": any(
                t is not None and id(t) not in known for t in (r() for r in tape.tensors_made)
            ),
        }
        for reason, found in refused.items():
            if found:
                raise GraphBreak(reason, " ")

    def note_effects(self, tape, stage):
        """Note what a call does besides returning, and what of that may have to be undone."""
        steps, middle = stage.steps, stage.middle
        first = [s for s in steps if s.number < middle and s.kind != "input"]
        if any(s.writes is not None and s.owner in tape.entered for s in steps if s.number >= middle):
            raise GraphBreak("backward writes into an input", " ")
        checks = [i for i, s in enumerate(first) if s.kind == "check" or (s.kind == "draw" and any(refs(s.args)))]
        early = first[: checks[-1] + 1] if checks else []  # after these, no call runs eagerly
        if any(s.kind == "call" for s in early):
            raise GraphBreak("a value is checked after gradients were set", " ")
        places = [tape.entered[n] for n in tape.written]
        arrays = [t.__dict__["array"] for t, _ in tape.inputs.values()]
        if any(overlap(arrays[i], x) for i in places for j, x in enumerate(arrays) if j != i):
            raise GraphBreak("an input that shares its memory with another is written in place", " ")
        grads = [(i, g) for i, g in tape.flushed.items() if g is not None and id(g) not in tape.inputs]
        self.regraded = [(i, version(g)) for i, g in grads if version(g)]
        self.calls = tape.tensors is not None
        self.generators = [g for g, _ in tape.streams.values()]
        written = {s.owner for s in early if s.writes is not None}
        self.copied = [tape.entered[n] for n in tape.written if n in written]
        self.effects = bool(places or self.generators or any(s.kind == "call" for s in first))
        self.checked = bool(checks)
        self.guards.finish(places)

    def backward_written_down(self, tape, new, stand_ins):
        """(the steps that stand for the cotangents of the results, the gradients of the inputs)."""
        cotangents, given = {}, []
        for i in self.differentiable:
            x, node = new[i].array, new[i].node
            example = getattr(x, "value", x)
            number = isinstance(example, np.generic)
            ones = x.dtype.type(1) if number else modules[type(example)].ones(x.shape, x.dtype)
            g = tape.enter("g", ones)
            tape.known[id(g.value)] = g
            tape.frozen.add(g.number)
            given.append(g.number)
            cotangents[node] = cotangents[node] + g if node in cotangents else g
        with own_casts(False):
            found = backward_pass(cotangents, wanted={*tape.sources} - {None})
        grads = []
        for s, node in zip(stand_ins, tape.sources):
            g = found.get(node)
            if g is not None and g.dtype != s.array.dtype:
                g = g.astype(s.array.dtype)
            grads.append(Ref(g.number) if isinstance(g, Traced) else g)
        return tuple(given), tuple(grads)

    # ---- run

    def run(self, leaves, args, kwargs):
        if self.plan is None:
            return self.compiled.function(*args, **kwargs)
        tensors = self.fixed.copy()
        for i, kind, where in self.varying:
            tensors[i] = leaves[where] if kind == "argument" else tensors[where]._grad
        arrays = [t.array for t in tensors]
        before = [(arrays[i], arrays[i].copy("K")) for i in self.copied] if self.copied else ()
        marks = [g.mark() for g in self.generators] if self.generators else ()
        try:
            results = self.forward(*arrays, tensors) if self.calls else self.forward(*arrays)
        except Exception as error:  # a check that found another answer, or an error, for which the engine has the words
            if self.effects and not self.checked and error.__traceback__.tb_next.tb_lineno > self.forward.harmless:
                raise
            for x, copy in before:
                x[...] = copy
            self.rewind(marks)
            self.deviations += 1
            return self.compiled.function(*args, **kwargs)
        if self.effects:  # the writes into inputs, and into the gradients that were set, are counted
            for i, times in self.updated:
                for _ in range(times):
                    wrote(tensors[i])
                if "views" in tensors[i].__dict__ or "aliases" in tensors[i].__dict__:
                    rebase_history(tensors[i], None)
            for i, times in self.regraded:
                for _ in range(times):
                    wrote(tensors[i]._grad)
        new = [Tensor(x.copy() if type(p) is not Ref else x) for x, p in zip(results, self.plan.outputs)]
        if self.differentiable:
            node = self.node_class(tuple([t.node for t in tensors]), results[len(new) :])
            shapes = self.shapes
            if self.sizes is not None:
                shapes = [(results[i].shape, *rest) for i, (_, *rest) in zip(self.differentiable, shapes)]
            node.call = args, kwargs, tensors, marks, shapes
            if len(self.differentiable) == 1:
                new[self.differentiable[0]].node = node
            else:
                node.outputs = len(self.differentiable)
                for i, place in enumerate(self.differentiable):
                    new[place].node = Output(node, i)
        for place in self.spent:
            new[place].node = self.node_class(tuple([t.node for t in tensors]), None)
            new[place].node.saved_from = (CONSTANT,)
        for i, place in self.rewritten:
            rebase_history(tensors[i], new[place].node)
        if self.alone:
            return new[0]
        return tree.unflatten(self.out_structure, all_leaves(self.outs, tensors, new))

    def rewind(self, marks):
        """Let the random streams go on from where they were."""
        for generator, mark in zip(self.generators, marks):
            generator.go_back(mark)

    def cotangents(self, node, g, saved):
        """The gradients of the inputs, for those of the results."""
        gs = [g] if len(self.differentiable) == 1 else [g.get(i) for i in range(len(self.differentiable))]
        if any(not isinstance(g, (np.ndarray, np.generic, type(None))) and type(g) not in device_names for g in gs):
            return self.cotangents_eagerly(node, gs)
        gs = [xp.zeros(*kind) if g is None else g for g, (*kind, xp) in zip(gs, node.call[-1])]
        return self.backward(*saved, *gs)

    def cotangents_eagerly(self, node, gs):
        """The same, recorded: the function runs again, and each input behind a node of its own."""
        if not self.warned:
            self.warned = True
            warn("compile: create_graph=True runs the function again without compiling it")
        args, kwargs, tensors, marks, _ = node.call
        if self.updated or self.calls:
            raise NotImplementedError(
                "create_graph=True would run a compiled function again that writes into its inputs: call it uncompiled"
            )
        now = [g.mark() for g in self.generators]
        recorded = any(isinstance(g, Tensor) for g in gs)
        before = [t.__dict__["node"] for t in tensors]
        barriers = [None if p is None else Clone((p,), ()) for p in node.parents]
        try:
            for t, b in zip(tensors, barriers):
                t.__dict__["node"] = b
            self.rewind(marks)
            with enable_grad():
                leaves, _ = tree.flatten(self.compiled.function(*args, **kwargs))
                new = {place: leaf for (kind, place, *_), leaf in zip(self.outs, leaves) if kind == "new"}
                pairs = [(new[i], g) for i, g in zip(self.differentiable, gs) if g is not None]
                wanted = [t for t, b in zip(tensors, barriers) if b is not None]
                weights = [g if isinstance(g, Tensor) else Tensor(g) for _, g in pairs]
                found = iter(grad([o for o, _ in pairs], wanted, weights, create_graph=recorded, allow_unused=True))
        finally:
            for t, p in zip(tensors, before):
                t.__dict__["node"] = p
            self.rewind(now)
        grads = [None if b is None else next(found) for b in barriers]
        return grads if recorded else [g if g is None else g.array for g in grads]


def with_twins(stage):
    """The same with copies of the steps: planning changes those that it gets."""
    return stage._replace(steps=[s.twin() for s in stage.steps])


def compiled_node_class(entry, saved, inputs):
    """The class of the nodes of a capture; all arrays that it saves are checked for in-place writes."""

    def vjp(self, g, saved, parents):
        return entry.cotangents(self, g, saved)

    facts = {"saved_from": (CONSTANT,) * saved, "rules": (None,) * inputs, "vjp": vjp, "call": None}
    return type("CompiledFunctionBackward", (Node,), facts | {"__module__": "builtins"})
