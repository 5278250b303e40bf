"""Capture: a function runs once on arrays that write down what is done with them.

A ``Traced`` array holds a value, the one that the inputs of this first call lead to, and stands for a value of every
later call.  The engine's operations and rules use it as they use any array; each use becomes a ``Step`` on the tape.
The backward pass runs on Traced arrays too, so the same rules write down the backward pass.
"""

import importlib
import linecache
import operator
import sys
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np

from .. import quick
from ..arrays import devices, dispatch, loops, memory, random
from ..arrays.dispatch import modules, scalar_types
from ..arrays.running import running, switched, writers
from ..arrays.selection import selected
from ..arrays.threads import new_lock
from ..arrays.warn import ENGINE_FOLDER
from ..core.backward import backward_pass, chain_rule, visit_all
from ..core.graph import AccumulateGrad, Node
from ..core.observers import forget, observe
from ..core.tensor import Tensor, alive
from ..core.versions import wrote
from ..ops.creation import observed

SWEEPS = {f.__code__ for f in (backward_pass, visit_all, chain_rule, quick.walk)}


class GraphBreak(RuntimeError):
    """Raised where a function does what cannot be written down; ``line`` says where."""

    def __init__(self, reason, line=None):
        self.reason, self.line = reason, line or origin()
        super().__init__(f"{reason}\n  at {self.line}" if self.line else reason)


def origin():
    """file:line: text of the innermost line that is not the engine's, nor of what it wrote out to call rules."""
    frame = sys._getframe(2)  # the caller is the engine's, and who called that
    while frame and (frame.f_code.co_filename.startswith(ENGINE_FOLDER) or "__name__" not in frame.f_globals):
        if frame.f_code in SWEEPS:  # of the backward pass: the line that recorded the node
            node = frame.f_locals.get("node")
            return vars(node).get("line", "") if node is not None else ""
        frame = frame.f_back
    if frame is None:
        return ""
    return line_text(frame.f_code.co_filename, frame.f_lineno)


@lru_cache(maxsize=4096)
def line_text(name, number):
    path = Path(name)
    file = "cell" if path.parent.name.startswith("ipykernel_") else path.name  # a cell's file is named by a number
    return f"{file}:{number}: {linecache.getline(name, number).strip()}".rstrip(": ")


class NumberWritten(GraphBreak):
    """An input that is a NumPy number is written in place: it needs memory first."""


class Step:
    """One thing that is done: ``out = function(*args, **options)``, where Traced arrays stand as ``Ref``.

    ``kind``: "function", "method", "operator", "getitem", "setitem", "item" (of a tuple), "check", "draw" (random
    numbers), "call" (what changes more than arrays), or "input".  ``writes``: the Ref of the array that it changes in
    place, or None.  ``where``: the type of the device on which it is done, "" for the host.
    """

    __slots__ = (*"number kind name function args options writes line uses".split(),
                 *"shape dtype flat owner where".split())  # fmt: skip

    def __init__(self, number, kind, name, function, args=(), options=(), writes=None, line=""):
        self.number, self.kind, self.name, self.function = number, kind, name, function
        self.args, self.options, self.writes, self.line = args, dict(options), writes, line
        self.shape = self.dtype = None  # of the result, if it is an array
        self.flat = False  # whether its elements lie in order
        self.owner = number  # the step whose memory the result lies in
        self.where = ""
        self.uses = None  # the steps whose results it needs, once somebody asked

    def gives(self, x):
        """Note what array it gives."""
        self.shape, self.dtype, self.flat, self.where = x.shape, x.dtype, x.flags.c_contiguous, device_type_of(x)

    def change(self, **facts):
        """Do something else at the same place."""
        self.uses = None
        for name, value in facts.items():
            setattr(self, name, value)

    def twin(self):
        """A copy, quicker than copy() makes it."""
        new = Step(self.number, self.kind, self.name, self.function, self.args, self.options, self.writes, self.line)
        new.shape, new.dtype, new.flat, new.owner = self.shape, self.dtype, self.flat, self.owner
        new.where = self.where
        return new


NESTED = {tuple, list, slice}  # what arguments have parts in


def map_parts(function, a):
    """``function`` of an argument, or of each of the parts that it has in the end."""
    kind = type(a)
    if kind not in NESTED:
        return function(a)
    if kind is slice:
        return slice(*map_parts(function, parts_of(a)))
    return kind(map(function if NESTED.isdisjoint(map(type, a)) else partial(map_parts, function), a))


def parts_of(a):
    return (a.start, a.stop, a.step) if type(a) is slice else a


def leaves(a):
    """An argument, or the parts that it has in the end."""
    if type(a) not in NESTED:
        return [a]
    parts = parts_of(a)
    if NESTED.isdisjoint(map(type, parts)):
        return parts
    return [part for some in map(leaves, parts) for part in some]


@dataclass(slots=True, unsafe_hash=True)
class Ref:
    """The result of a step, as an argument of another."""

    number: int


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
        options = options or {}
        values, named = map_parts(self.value, args), {k: map_parts(self.value, v) for k, v in options.items()}
        if writes is not None:
            if not isinstance(writes, Traced) or writes.owner in self.frozen:
                raise GraphBreak("what is no array of the capture is written in place")
            if writes.owner in self.entered and writes.owner not in self.written:
                held = memory.storage(self.at(self.entered[writes.owner])[1].__dict__["array"].value)
                self.written[writes.owner] = held, held.copy("K")
        written = map_parts(self.as_constant, args), {k: map_parts(self.as_constant, v) for k, v in options.items()}
        out = function(*values, **named)
        step = self.step(kind, name, function, *written, None if writes is None else Ref(writes.number), origin())
        operands = [*all_traced((args, [*options.values()]))] if dispatch.device_names else ()
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


class Traced:
    """An array whose uses are written down.  It has a shape and a dtype; its elements are not to be looked at."""

    __slots__ = ("__weakref__", "base", "checked", "number", "owner", "tape", "value")
    __array_priority__ = 500

    def __init__(self, tape, value, number, base=None, checked=False):
        self.tape, self.value, self.number, self.base = tape, value, number, base
        self.owner = number if base is None else base.owner  # the step whose memory it lies in
        self.checked = checked  # whether bool() of it may be asked: then later calls check that it is the same

    where = ""
    data = property(lambda self: SimpleNamespace(ptr=memory.address(self.value)))
    T = property(lambda self: self.transpose())

    def __len__(self):
        return len(self.value)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        return self.tape.emit("getitem", "getitem", operator.getitem, (self, constant_masks(key)))

    def __setitem__(self, key, value):
        if self.value.ndim == 0 and isinstance(self.value, np.generic):
            raise (NumberWritten if self.number in self.tape.entered else GraphBreak)("a number is written in place")
        self.tape.emit("setitem", "setitem", operator.setitem, (self, key, value), writes=self)

    def __bool__(self):
        if not self.checked:
            raise GraphBreak("a branch depends on a value")
        value = bool(self.value)
        self.tape.step("check", "check", None, (Ref(self.number), value), line=origin())
        return value

    def diagonal(self, *args, **options):
        return call_function("diagonal", diagonal, self, *args, **options)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method == "__call__" and any(type(a) not in modules for a in inputs):
            return NotImplemented
        function = getattr(modules[type(self)], ufunc.__name__)
        return (function if method == "__call__" else getattr(function, method))(*inputs, **options)

    def __array_function__(self, function, types, args, options):
        place = modules[type(self)]
        place = place.linalg if function.__module__ == "numpy.linalg" else place
        return getattr(place, function.__name__)(*args, **options)

    __hash__ = object.__hash__


for name in "shape ndim dtype itemsize size nbytes strides flags device".split():
    setattr(Traced, name, property(operator.attrgetter(f"value.{name}")))

REFUSED = {
    "item tolist tobytes __float__ __int__ __index__ x":
        "a value is read into Python: .item(), float(), int() or printing",
    "get": "elements cross from a device to host memory: .to(), .cpu()",
    "__array__": "the memory of a value is read or written outside of the engine: .numpy(), np.asarray()",
    "nonzero": "the shape of the result depends on a value: nonzero()",
}  # fmt: skip


def refusal(reason):
    def refused(self, *args, **options):
        raise GraphBreak(reason)

    return refused


for names, reason in REFUSED.items():
    for name in names.split():
        setattr(Traced, name, refusal(reason) if name != "x" else property(refusal(reason)))


def constant_masks(key):
    for k in key if type(key) is tuple else (key,):
        if isinstance(k, Traced) and k.dtype.kind == "b":
            raise GraphBreak("the shape of the result depends on a value: indexing with a mask")
    return key


# ---- operators and methods


def operated(name, prefix=""):
    op = getattr(operator, f"__{name}__")

    def form(self, other):
        if type(other) not in modules:
            return NotImplemented
        if prefix == "i" and not isinstance(self.value, np.generic):
            in_place = getattr(operator, f"__i{name}__")
            return self.tape.emit("operator", "i" + name, in_place, (self, other), writes=self)
        return self.tape.emit("operator", name, op, (other, self) if prefix == "r" else (self, other))

    return form


for name in "add sub mul truediv floordiv mod pow lshift rshift and or xor matmul".split():
    for prefix in ("", "r", "i"):
        setattr(Traced, f"__{prefix}{name}__", operated(name, prefix))
for name in "eq ne lt le gt ge".split():
    setattr(Traced, f"__{name}__", operated(name))
for name in "neg pos abs invert".split():
    op = getattr(operator, name)
    setattr(Traced, f"__{name}__", lambda self, name=name, op=op: self.tape.emit("operator", name, op, (self,)))


def method(name):
    def function(x, *args, **options):
        return getattr(x, name)(*args, **options)

    def call(self, *args, **options):
        writes = self if name in ("fill", "sort") else None
        return as_checked(self.checked, self.tape.emit("method", name, function, (self, *args), options, writes))

    return call


for name in ("reshape transpose swapaxes squeeze view astype copy take ravel flatten sum prod max min any all "
             "mean var std argmax argmin cumsum cumprod argsort argpartition round clip repeat conj dot trace fill "
             "sort").split():  # fmt: skip
    setattr(Traced, name, method(name))


def diagonal(x, offset=0, axis1=0, axis2=1):
    """A diagonal that may be written, as the engine makes them."""
    return memory.writable(x.diagonal(offset, axis1, axis2))


# ---- the module that serves traced arrays

MUTATES = {"put_along_axis", "copyto", "place", "putmask", "fill_diagonal"}
DYNAMIC_SHAPES = {*"nonzero argwhere flatnonzero unique bincount extract compress array_equal allclose".split()}
BUFFERS = {"zeros", "ones", "empty"}  # of what is made of no array, this may be written into


def all_traced(a):
    """The Traced arrays among arguments."""
    return (part for part in leaves(a) if isinstance(part, Traced))


def call_function(name, function, *args, **options):
    """A function of arrays, written down if it is to be."""
    found = next(all_traced((*args, *options.values())), None)
    tape = running.recorder if found is None else found.tape
    if tape is None or (found is None and name not in BUFFERS):
        return function(*args, **options)
    if name in tape.formulas and (found := tape.formulas[name](*args, **options)) is not None:
        return found
    if name.rpartition(".")[2] in DYNAMIC_SHAPES:
        raise GraphBreak(f"the shape of the result depends on a value: {name}")
    out = options.pop("out", None)
    out = out[0] if type(out) is tuple else out
    if out is not None:
        if name == "where" or not isinstance(out, Traced):
            raise GraphBreak("an array outside of the capture is written in place")
        return tape.emit("function", name, function, args, {**options, "out": out}, writes=out)
    if name in MUTATES or name.endswith(".at"):
        tape.emit("function", name, function, args, options, writes=args[0])
        return None
    checked = any(isinstance(a, Traced) and a.checked for a in args)
    return as_checked(checked, tape.emit("function", name, function, args, options))


def as_checked(checked, x):
    """Let checks ask of x if they may ask of what x was computed from."""
    if checked and isinstance(x, Traced):
        x.checked = True
    return x


def captured_functions(prefix, find, **given):
    """The functions of a module, each of which is written down when it is called with a Traced array."""

    def captured(name):
        module = find()
        found = selected if module is np and name == "where" else getattr(module, name)
        if not callable(found) or isinstance(found, type):
            return found
        call: Any = partial(call_function, prefix + name, found)
        call.__name__ = name
        for part in ("at", "reduce", "accumulate", "outer"):
            if hasattr(found, part):
                setattr(call, part, partial(call_function, f"{prefix}{name}.{part}", getattr(found, part)))
        return call

    return devices.Lookup(captured, **given)


def getitem(x, key):
    if isinstance(x, Traced):
        return x[key]
    return next(all_traced(key)).tape.emit("getitem", "getitem", operator.getitem, (x, constant_masks(key)))


def serve(kind, find, special):
    """Let a type of Traced arrays be served; ``find()``: the module of the arrays, ``special()``: its scipy.special."""

    def asarray(x, dtype=None):
        known = isinstance(x, Traced) and dtype in (None, x.dtype)
        return x if known else call_function("asarray", find().asarray, x, dtype)

    def strided(x, shape, strides, start=0):
        return call_function("strided", memory.strided, x, tuple(shape), tuple(strides), start)

    def blank(shape, arrays):
        like = next(filter(device_type_of, arrays), arrays[0])
        return call_function("zeros", modules[type(getattr(like, "value", like))].zeros, shape, arrays[0].dtype)

    modules[kind] = dispatch.batches[kind] = captured_functions(
        "", find, asarray=asarray, strided=strided, blank=blank, getitem=getitem, apart=lambda x: x,
        linalg=captured_functions("linalg.", lambda: find().linalg), special=captured_functions("special.", special),
        samples=lambda x: type(x)(x.tape, x.value, x.number, x.base, checked=True),  # of which a check may ask
        is_number=lambda x: isinstance(x.value, np.generic), beside=lambda x: modules[type(x)],
    )  # fmt: skip
    writers[kind] = call_function
    observed[kind] = lambda tensor, x: x.tape.tensors_made.append(ref(tensor))


traced_types: dict = {}  # type of device arrays -> the type of the Traced arrays that stand for them


def traced_for(x):
    """The type of the Traced array that stands for an array: one for each type of device."""
    kind = type(x)
    if kind not in dispatch.device_names:
        return Traced
    if kind not in traced_types:
        where = dispatch.device_names[kind]
        found = traced_types[kind] = type(f"Traced_{where}", (Traced,), {"__slots__": (), "where": where})
        serve(found, lambda: modules[kind], lambda: modules[kind].special)
        dispatch.device_names[found] = where
        if kind in dispatch.tensor_cores:
            dispatch.tensor_cores.add(found)
    return traced_types[kind]


def device_type_of(x):
    """The type of the device on which an array is; "" for the host."""
    return dispatch.device_names.get(type(x), "")


@cache
def scipy_special():
    return importlib.import_module("scipy.special")


serve(Traced, lambda: np, scipy_special)
