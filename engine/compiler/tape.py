"""The tape of one capture: its steps and inputs, and what a call changes more than what it returns."""

import operator
from functools import cache, partial

import numpy as np

from ..arrays import devices, dispatch, loops, memory, random
from ..arrays.dispatch import modules, scalar_types
from ..arrays.running import running, switched
from ..arrays.threads import new_lock
from ..core.graph import AccumulateGrad, Node
from ..core.observers import forget, observe
from ..core.tensor import Tensor, alive
from ..core.versions import wrote
from .capture import Traced, all_traced, traced_for
from .steps import NESTED, GraphBreak, NumberWritten, Ref, Step, map_parts, origin


class Tape:
    """The steps of one capture, and which Tensors are its inputs."""

    def __init__(self, guards, formulas):
        self.guards, self.sizes = guards, guards.sizes
        self.steps, self.inputs, self.known = [], {}, {}
        self.tensors_made = []  # weak references to all Tensors that the function makes
        self.frozen = set()  # owners that must not be written: the cotangents
        self.entered = {}  # number of the step of an input -> its place among the inputs
        self.sources = []  # the nodes of the stand-ins as they were at first
        self.written = {}  # number of an input that is written in place -> (its memory, what was there)
        self.streams = {}  # id(generator) -> (generator, a copy of it, from which the capture draws)
        self.flushed = {}  # place of an input -> the Tensor that is its gradient by now, as the steps have it
        self.stale = set()  # owners that a step of an optimizer has changed
        self.tensors = None  # the Ref of the list of the inputs, as Tensors
        self.formulas = formulas  # name of a kernel -> what it computes, step by step, where loops are made of it

    def step(self, *facts, **more):
        """A new step, written down."""
        self.steps.append(Step(len(self.steps), *facts, **more))
        return self.steps[-1]

    def enter(self, name, x):
        """A Traced array for one that comes from outside."""
        step = self.step("input", name, None)
        step.gives(x)
        return traced_for(x)(self, x, step.number)

    def input(self, tensor, x):
        """Let a Tensor that was there before be an input, with an array in place of its own."""
        if id(tensor) in self.inputs:
            return
        traced = self.enter(f"x{len(self.inputs)}", x)
        if not isinstance(x, np.generic):  # of what shares its memory, it is the owner
            self.known.setdefault(id(x), traced)
            self.known.setdefault(id(memory.storage(x)), traced)
        self.entered[traced.number] = len(self.inputs)
        stand_in = StandIn(self, len(self.inputs), traced, tensor.__dict__["node"] is not None)
        self.sources.append(stand_in.node)
        self.inputs[id(tensor)] = tensor, stand_in
        base = tensor if tensor._base is None else tensor._base  # whoever writes into one of them changes all
        for b in alive(base, "aliases") or (base,):
            for t in (tensor, b, *alive(b, "views")):
                if t.__class__ is type(t):
                    in_captures.append(t)
                    set_class(t, represented(type(t)))

    def stand_in(self, tensor):
        """Return the stand-in of an input; GraphBreak for another Tensor that was there before."""
        if id(tensor) not in self.inputs:
            raise GraphBreak("a Tensor is used that is no argument and in no closure, global or module that is read")
        return self.inputs[id(tensor)][1]

    def at(self, place):
        """(Tensor, stand-in) of an input."""
        return list(self.inputs.values())[place]

    # ---- what changes more than what it returns

    def refuse(self, reason):
        raise GraphBreak(reason)

    def drawing(self, functions):
        """The functions that draw random numbers: each draw is a step."""
        return devices.Lookup(lambda name: partial(self.draw, functions, name))

    def draw(self, functions, name, generator, *arguments):
        used = functions.default_generator if generator is None else generator
        if id(used) not in self.streams:
            plain = random.Generator  # without the checks of the public form
            twin = used.twin() if hasattr(used, "twin") else plain().set_state(plain.get_state(used))
            self.streams[id(used)] = used, twin
        twin = self.streams[id(used)][1]
        draw = lambda _, *values: getattr(functions, name)(twin, *values)  # noqa: E731
        where = functions.backend.type if functions is not devices.cpu_backend.random else ""
        return self.emit("draw", f"{where and where + '_'}draw.{name}", draw, (generator, *arguments))

    def fresh(self, x):
        """An array that was made inside of the function: each call makes it anew where it is written or returned."""
        if type(x) is not np.ndarray and type(x) not in dispatch.device_names or isinstance(x, Traced):
            return x
        return self.emit("function", "copy", modules[type(x)].copy, (x, "K"))

    def violated(self, backend, x, test):
        """``devices.violated`` on a device, which each call looks at again."""
        tested = []

        def looked_at(x):
            tested.append(test(x))
            return getattr(tested[0], "value", tested[0])

        def is_true(value):  # as the device sees it: nothing need cross to the host
            return backend.violated(value, lambda x: x)

        found = backend.violated(x, looked_at)
        for t in filter(lambda t: isinstance(t, Traced), tested):
            self.step("check", "violated", is_true, (Ref(t.number), found), line=origin())
        return found

    def forget(self):
        """Let the arrays of the run go: they and the tape refer to each other."""
        for held in (self.inputs, self.known, self.flushed, self.written, self.sources, self.tensors_made):
            held.clear()

    def undo(self):
        """Give inputs back what they held: the call that follows does it again."""
        for held, before in self.written.values():
            held[...] = before

    def gradient(self, place):
        """The ``.grad`` of an input as the program reads it; what it was before the call is an input too."""
        tensor, stand_in = self.at(place)
        grad = tensor.__dict__.get("_grad")
        self.guards.gradient(place, grad)
        if grad is not None:
            self.input(grad, grad.__dict__["array"])
        self.flushed[place] = stand_in.__dict__["_grad"] = grad
        return grad

    def flush(self):
        """Let the steps so far be followed by one that sets the gradients that changed."""
        places, arrays = [], []
        for place, (_, stand_in) in enumerate(list(self.inputs.values())):
            grad = stand_in.__dict__.get("_grad", ...)
            if grad is ... or self.flushed.get(place, ...) is grad:
                continue
            self.flushed[place] = grad
            x = None if grad is None else grad.__dict__["array"]
            if grad is not None:
                if id(grad) in self.inputs or grad.__dict__["node"] is not None:
                    raise GraphBreak("a gradient is part of a graph, or was there before", " ")
                if any(grad is g for p, g in self.flushed.items() if p != place):
                    raise GraphBreak("two tensors have one gradient", " ")
                if x.base is not None:  # it may be written later, and nothing else with it
                    x = grad.__dict__["array"] = x.copy()
            places.append(place)
            arrays.append(x)
        if places:
            self.tensors = self.tensors or Ref(self.step("input", "tensors", None).number)
            self.call("set_grads", set_grads, (self.tensors, tuple(places), tuple(arrays)))

    def leaf(self, place):
        """Backward adds to the gradient of an input: it must be a leaf without hooks, now and in later calls."""
        node = self.at(place)[0].__dict__["node"]
        if type(node) is not AccumulateGrad:
            raise GraphBreak("backward() goes on beyond the inputs", " ")
        if node.hooks or node.pre_hooks or node.post_hooks or node.leaf_hooks:
            raise GraphBreak("backward() meets the hooks of a leaf", " ")
        self.guards.leaf(place)

    def call(self, name, function, args=()):
        """Let later calls do something here, which this one leaves undone."""
        self.step("call", name, function, map_parts(self.as_constant, args), line=origin())

    def later(self, function, owner, args, kwargs):
        """A step of an optimizer or scheduler, which later calls take as it is."""
        if any(isinstance(a, Tensor) or callable(a) for a in (*args, *kwargs.values())):
            raise GraphBreak(f"{type(owner).__name__}.step() is called with a closure or a tensor")
        if self.guards.reads_options and not hasattr(owner, "param_groups"):
            raise GraphBreak(f"options are read where {type(owner).__name__}.step() changes them")
        self.flush()
        for group in getattr(owner, "param_groups", ()):
            for p in group["params"]:
                if id(p) not in self.inputs:
                    raise GraphBreak(f"the parameters of {type(owner).__name__} are not known to the capture")
                wrote(p)
                self.stale.add(self.inputs[id(p)][1].__dict__["array"].owner)
        step = partial(function, owner, *args, **kwargs)
        self.call(f"{type(owner).__name__}_step", partial(loops.at_once, step) if self.formulas else step)

    def wrap(self, value, step, operands=()):
        """The Traced array for what a step gave; ``operands``: the Traced arrays that it took."""
        step.gives(value)
        if isinstance(value, np.generic):  # a number shares no memory
            return Traced(self, value, step.number)
        if id(value) in self.known:  # a function gave back its argument
            step.owner = self.known[id(value)].owner
            return self.known[id(value)]
        storage = memory.storage(value)
        base = self.known.get(id(storage))
        if base is None and step.where:  # some of CuPy's views do not know whose memory they are on
            base = next((a for a in operands if a.where and overlap(a.value, value)), None)
        traced = traced_for(value)(self, value, step.number, base)
        step.owner = traced.owner
        self.known[id(value)] = traced
        self.known.setdefault(id(storage), traced)
        return traced

    def emit(self, kind, name, function, args, options=None, writes=None):
        """Do something, and write it down."""
        if running.recorder is not self:
            raise GraphBreak("an array of a capture that has ended is used: a tensor was kept from the captured call")
        flat = NESTED.isdisjoint(map(type, args))
        values = [*map(self.value, args)] if flat else map_parts(self.value, args)
        named = {k: map_parts(self.value, v) for k, v in options.items()} if options else {}
        if writes is not None:
            if not isinstance(writes, Traced) or writes.owner in self.frozen:
                raise GraphBreak("what is no array of the capture is written in place")
            if isinstance(writes.value, np.generic):  # which has no memory
                raise (NumberWritten if writes.number in self.entered else GraphBreak)("a number is written in place")
            if writes.owner in self.entered and writes.owner not in self.written:
                held = memory.storage(self.at(self.entered[writes.owner])[1].__dict__["array"].value)
                self.written[writes.owner] = held, held.copy("K")
        written = (*map(self.as_constant, args),) if flat else map_parts(self.as_constant, args)
        noted = {k: map_parts(self.as_constant, v) for k, v in options.items()} if options else {}
        out = function(*values, **named)
        changed = None if writes is None else Ref(writes.number)
        step = self.step(kind, name, function, written, noted, changed, origin())
        operands = [*all_traced((args, [*options.values()] if options else []))] if dispatch.device_names else ()
        if operands:
            step.where = next((a.where for a in operands if a.where), "")
        if writes is not None:
            step.owner = writes.owner
            return writes
        return self.outcome(out, step, operands)

    def outcome(self, out, step, operands=()):
        if isinstance(out, (np.ndarray, np.generic)) or type(out) in dispatch.device_names:
            return self.wrap(out, step, operands)
        if isinstance(out, (tuple, list)):
            parts = []
            for i, part in enumerate(out):
                item = self.step("item", str(i), operator.getitem, (Ref(step.number), i), line=step.line)
                parts.append(self.outcome(part, item, operands))
            return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
        if type(out) in scalar_types or out is None:
            raise GraphBreak(f"{step.name} gives a Python number")
        return out

    def value(self, a):
        """Return what stands for a part of an argument in the capture's own run."""
        if not isinstance(a, Traced):
            return a
        if a.tape is not self:
            raise GraphBreak("an array of another capture is used: a tensor was kept from a captured call")
        if a.owner in self.stale:
            raise GraphBreak("a parameter is used after the step of its optimizer")
        return a.value

    def as_constant(self, a):
        """A part of an argument, Ref for Traced; arrays are copied, so that later writes do not reach them."""
        if isinstance(a, Traced):
            return Ref(a.number)
        if type(a) is np.ndarray or type(a) in dispatch.device_names:
            return a.copy("K")
        if isinstance(a, Tensor):
            raise GraphBreak("a Tensor inside of an index or a shape")
        return a


devices.draw_wrappers.insert(0, lambda fs: fs if running.recorder is None else running.recorder.drawing(fs))


def set_grads(tensors, places, arrays):
    """Set the ``.grad`` of some tensors; no two share memory."""
    seen = set()
    for place, g in zip(places, arrays):
        if g is not None and id(g) in seen and not isinstance(g, np.generic):
            g = g.copy()
        seen.add(id(g))
        tensors[place]._grad = None if g is None else Tensor(g)


def overlap(x, y):
    """Return whether two arrays may share memory: what they span on one kind of device has a part in common."""
    if not {type(x), type(y)} & dispatch.device_names.keys():
        return np.may_share_memory(x, y)
    if type(x) is not type(y) or not x.size or not y.size:
        return False
    (a, b), (c, d) = memory.byte_bounds(x), memory.byte_bounds(y)
    return a < d and c < b


# one capture at a time: what it writes into an input is undone before the next one reads
capture_lock = new_lock()
in_captures: list = []  # the Tensors that give stand-ins for what they hold


class Reading(switched):
    """While a capture runs: a Tensor that was there before gives this thread what stands for it."""

    def __init__(self, tape):
        super().__init__(running, recorder=tape)
        self.outer = len(in_captures) if running.recorder is not None else 0

    def __enter__(self):
        self.restore_classes()  # of what an interrupted capture has left
        observe(Node, note_line)
        super().__enter__()

    def __exit__(self, *exc):
        super().__exit__()
        self.restore_classes()
        forget(Node, note_line)

    def restore_classes(self):
        while len(in_captures) > self.outer:
            set_class(in_captures[-1], in_captures[-1].__class__)
            in_captures.pop()


def note_line(node):
    """A node remembers the line that recorded it, for the comments of the backward pass."""
    if running.recorder is not None:
        node.line = origin()


set_class = vars(object)["__class__"].__set__


@cache
def represented(kind):
    """The class of inputs of a capture: the thread that captures finds what the stand-in has, others the Tensor's."""
    facts = {n: property(*accessors(n)) for n in ("array", "node", "_grad") if not hasattr(kind, n) or n == "_grad"}
    return type(kind)(kind.__name__, (kind,), {**facts, "__slots__": (), "__class__": property(lambda self: kind)})


def accessors(name):
    def get(self):
        own, tape = self.__dict__, running.recorder
        if tape is not None:
            own = tape.stand_in(self).__dict__
            if name == "_grad" and name not in own:
                return tape.gradient(own["place"])
        return own.get(name) if name == "_grad" else own[name]

    def set(self, value):
        own, tape = self.__dict__, running.recorder
        if tape is not None:
            own = tape.stand_in(self).__dict__
            if name == "array" and value is not own[name]:
                number = isinstance(own[name].value, np.generic)
                raise (NumberWritten if number else GraphBreak)("the memory of an input is replaced")
            if name == "node" and value is not own[name] and type(value) in (AccumulateGrad, type(None)):
                raise GraphBreak("whether an input requires grad is changed")
        own[name] = value

    return get, set


class StandIn(Tensor):
    """The stand-in of an input on a tape: a leaf with a Traced array.  Only backward asks it for its gradient."""

    def __init__(self, tape, place, array, requires_grad):
        self.tape, self.place, self.array = tape, place, array
        self.node = AccumulateGrad(self) if requires_grad else None

    @property
    def _grad(self):
        self.tape.leaf(self.place)
        own = self.__dict__
        return own["_grad"] if "_grad" in own else self.tape.gradient(self.place)

    @_grad.setter
    def _grad(self, grad):
        self.__dict__["_grad"] = grad
