"""Guards: under what conditions a capture holds for another call.

Everything Python that the function can read becomes a condition: shapes, dtypes and strides of tensors, values of
numbers and strings in arguments, closures, globals and modules, and which objects the others are.  The conditions are
one Python expression, which is compiled.
"""

import types
from collections import deque
from copy import copy
from enum import Enum
from functools import cached_property, partial

import numpy as np

from ..arrays import devices, dispatch, dtypes, random
from ..autograd.function import Function
from ..core.graph import AccumulateGrad, mode
from ..core.tensor import Tensor
from ..nn import hooks
from ..nn.module import Module
from ..optim.lr_scheduler import LRScheduler
from ..optim.optimizer import Optimizer
from . import conditions
from .bytecode import argument_names, check_effects, codes_in, globals_in, line_of, names_in, words_in
from .conditions import VALUES, Conditions, casts, order
from .known import ENGINE, Unknown, check_known, known_module, ours
from .steps import GraphBreak

# functions of the engine that tell or change what no guard watches, and those of files
SETTINGS = {*"""get_num_threads set_num_threads set_printoptions initial_seed fork_rng get_rng_state set_rng_state
use_deterministic_algorithms are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled
set_float32_matmul_precision get_float32_matmul_precision set_detect_anomaly load save""".split()}  # fmt: skip
UNWATCHED = {"state", "state_dict", "get_last_lr", "get_lr", "initial_seed"}  # of optimizers, schedulers, generators
MODULE_FIELDS = vars(Module()).keys() - {"training"}  # what a module has besides its own attributes
HOOKS, BACKWARD = ("_forward_hooks", "_forward_pre_hooks"), ("_backward_hooks", "_backward_pre_hooks")
CONTAINERS = tuple, list, deque, dict, set, frozenset
WRAPPERS = {staticmethod: ["__func__"], classmethod: ["__func__"], property: ["fget"], cached_property: ["func"],
            types.MethodType: ["__self__", "__func__"]}  # fmt: skip
OWN = {*"array node view_ops creation_meta inference transform_level views aliases _grad _base".split()}  # the engine's
ASKED = {"_version", "_base", "_is_view", "storage_offset", "output_nr"}
LEAF_ATTRIBUTES = {"is_leaf", "grad_fn", "retains_grad"}
MAKERS = "__init__", "__new__", "__post_init__", "__setattr__"  # called where an object is made


class Guards(Conditions):
    """Collects conditions on what a function reads; ``tensors`` are the Tensors among it: the inputs."""

    def __init__(self, function, leaves, sizes=None):
        self.sizes = sizes  # which may vary
        self.suspects = []  # (name of an attribute, the GraphBreak that its use is)
        self.codes = []  # of the functions that are read
        self.conditions, self.space = [], {**vars(conditions), **globals()}  # they use what these files have
        self.tensors, self.names = [], []
        self.places = []  # of each: ("argument", number), ("fixed", the Tensor) or ("grad", the number of its Tensor)
        self.seen, self.index = set(), {}
        self.fixed: set = set()  # the arguments that are one tensor in every call
        self.done: set = set()  # (class, name) of what is read of classes
        self.classes, self.called = [], {"forward"}  # of users: classes, and the names that functions look up
        self.words: set = set()  # for which they may ask by getattr() and hasattr()
        self.makes: set = set()  # the classes of which they may make objects
        self.watched: list = []  # optimizers, schedulers and generators
        self.reads_options = False  # of these
        self.known_sizes: dict = {}  # number of a size that may vary -> where it is found
        self.leaves: set = set()  # the numbers of those to which backward adds a gradient
        self.snapshots = []  # what lists, dicts and sets hold, to undo what a capture puts into them
        # how the thread records, and what is created by default
        self.add(f"mode.enabled is {mode.enabled}")
        self.add(f"casts() == {casts()}")
        self.add(f"dtypes.get_default_dtype() is {self.constant(dtypes.get_default_dtype())}")
        self.add(f"devices.default.device == {self.constant(devices.default.device)}")
        if gpus := devices.backends.get("cuda"):
            self.add(f"devices.backends['cuda'].current() == {gpus.current()}")
        names = argument_names(function)
        for i, leaf in enumerate(leaves):
            self.read(f"a{i}", leaf, names[i] if i < len(names) else f"x{i}", argument=i)
        self.read(None, function, "function")
        self.methods()
        self.options()
        for key, why in self.suspects:
            if key in self.called:
                raise why
        for code in self.codes:
            for n in ASKED.intersection(code.co_names):
                raise GraphBreak(f"it asks for {n} of a tensor, which others like it need not share", line_of(code, n))
        for number, tensor in enumerate(self.tensors):  # the attributes that a program gave them
            path, own = self.space_path(number), tensor.__dict__
            for n in sorted(self.called.intersection(own).difference(OWN)):
                self.read(f"{path}.{n}", own[n], n)
            for n in sorted(self.words):
                if not hasattr(tensor, n):
                    self.add(f"not hasattr({path}, {n!r})")
        self.methods()
        for number, tensor in enumerate(self.tensors):
            self.tensor(number, tensor)
        self.count = len(leaves)

    def read(self, path, value, name="x", argument=None, names=()):
        """Add the conditions for a value that is found at ``path`` (None: held by the compiled function itself)."""
        kind = type(value)
        if value is None or kind is bool:
            self.add(f"{path} is {value}")
        elif kind in VALUES:
            told = kind is complex or value != value or value == 0 and kind is float  # nan, and zeros have signs
            same = f"repr({path}) == {self.constant(repr(value))}" if told else f"{path} == {self.constant(value)}"
            self.add(f"type({path}) is {kind.__name__} and {same}")
        elif isinstance(value, Tensor):
            self.found(path, value, name, argument)
        elif isinstance(value, (np.ndarray, np.generic)):
            if value.size > 1000:
                raise GraphBreak("a large NumPy array is read: make it a tensor", " ")
            if value.dtype.hasobject:
                raise GraphBreak("a NumPy array of Python's objects is read", " ")
            same = f"type({path}) is {self.constant(kind)} and {path}.dtype == {self.constant(value.dtype)}"
            same += f" and {path}.shape == {value.shape}" if value.ndim != 1 else ""
            self.add(f"{same} and {path}.tobytes() == {self.constant(value.tobytes())}")
            self.snapshots += [(value, value.copy())] if isinstance(value, np.ndarray) else []
            self.seen.add(id(value))
        elif kind in (slice, range, devices.device):  # which are equal by what they are made of
            self.add(f"type({path}) is {self.constant(kind)} and {path} == {self.constant(value)}")
        elif isinstance(value, CONTAINERS):
            self.add(f"type({path}) is {self.constant(kind)}")
            self.parts(path, value, name)
            if not known_module(kind.__module__):
                if hasattr(value, "__dict__"):
                    self.same(path, value)
                self.object(path, value, name)
        else:
            self.same(path, value)
            if kind is types.ModuleType:
                self.looked_up(value, names)
            elif id(value) not in self.seen:
                self.seen.add(id(value))
                self.inside(value, name)

    def parts(self, path, value, name):
        """The conditions on what a container holds, in its order."""
        self.seen.add(id(value))
        self.snapshots += [] if isinstance(value, (tuple, frozenset)) else [(value, copy(value))]
        if isinstance(value, (tuple, list, deque)):
            self.add(f"len({path}) == {len(value)}")
        else:
            self.add(f"order({path}) == {self.constant(order(value))}")
            for key in value:
                if type(key) not in (bool, *VALUES):
                    self.read(self.constant(key), key, name)
        if isinstance(value, (set, frozenset)):
            return
        for k, part in value.items() if isinstance(value, dict) else enumerate(value):
            self.read(f"{path}[{k!r}]" if type(k) in (int, str) else f"{path}[{self.constant(k)}]", part, f"{name}_{k}")

    def found(self, path, tensor, name, argument):
        first = self.index.get(id(tensor))
        if argument is None:
            self.same(path, tensor)
            if first is not None and self.places[first][0] == "argument":  # an argument that is in a closure too
                self.add(f"a{self.places[first][1]} is {self.constant(tensor)}")
                self.fixed.add(self.places[first][1])
        elif first is not None:
            self.add(f"{path} is {self.space_path(first)}")
        else:
            self.add(f"{path}.__class__ is {self.constant(tensor.__class__)}")  # type() is another during a capture
            for kind, other in self.places:
                if kind == "argument":  # two arguments are not one
                    self.add(f"{path} is not a{other}")
        if first is None:
            self.enter(tensor, ("fixed", tensor) if argument is None else ("argument", argument), name)

    def gradient(self, number, grad):
        """The conditions on the ``.grad`` of a Tensor, which the function reads or adds to."""
        path = f"{self.space_path(number)}._grad"
        if grad is None:
            self.add(f"{path} is None")
        elif id(grad) in self.index:
            self.add(f"{path} is {self.space_path(self.index[id(grad)])}")
        else:
            self.enter(grad, ("grad", number), f"{self.names[number]}_grad")
            self.add(f"{path} is not None")
            self.tensor(len(self.tensors) - 1, grad)

    def tensor(self, number, tensor):
        """The conditions on what a Tensor is."""
        name = self.names[number]
        own, path = tensor.__dict__, self.space_path(number)  # its own, also where a capture runs
        x = own["array"]
        if not isinstance(x, (np.ndarray, np.generic)) and type(x) not in dispatch.device_names:
            raise GraphBreak(f"{name} is an array of the type {type(x).__name__}, which is not compiled for", " ")
        shape, kind = f"{path}.array", self.constant(type(x))
        self.add(f"type(x{number} := {shape}) is {kind} and x{number}.dtype == {self.constant(x.dtype)}")
        if type(x) in dispatch.device_names:
            self.add(f"devices.device_of(x{number}) == {self.constant(devices.device_of(x))}")
        kind, where = self.places[number]
        axes = self.sizes.axes(where) if self.sizes is not None and kind == "argument" else ()
        if axes:
            self.add(f"x{number}.ndim == {x.ndim} and x{number}.flags.c_contiguous")
            for axis, n in enumerate(x.shape):
                size, known = f"x{number}.shape[{axis}]", self.known_sizes.get(axes.get(axis))
                if axis not in axes or known is not None:
                    self.add(f"{size} == {n if known is None else known}")
                    continue
                between = sorted(self.sizes.values[axes[axis]])
                others = "".join(f" and {size} != {other}" for other in self.known_sizes.values())
                self.add(f"{between[0]} <= {size} <= {between[-1]}{others}")
                self.known_sizes[axes[axis]] = size
        elif x.ndim:
            self.add(f"x{number}.shape == {x.shape} and x{number}.strides == {x.strides}")
        self.add(f"{path}.node is {'not ' if own['node'] is not None else ''}None")
        if own["node"] is not None and LEAF_ATTRIBUTES.intersection(self.called):  # stand-ins are leaves
            if type(own["node"]) is not AccumulateGrad:
                raise GraphBreak(f"it asks whether {name} is a leaf, which it is not", " ")
            self.add(f"type({path}.node) is AccumulateGrad")

    # ---- what an object leads to

    def inside(self, value, name):
        kind = type(value)
        check_known(value, name)
        if isinstance(value, Module):
            self.module(value, name)
        elif isinstance(value, (Optimizer, LRScheduler, random.Generator)):
            self.watched.append(value)
        elif kind.__module__.startswith(f"{ENGINE}.compiler") and hasattr(value, "function"):
            self.read(None, value.function, name)
        elif kind is types.FunctionType:
            self.function(value)
        elif kind in WRAPPERS:
            for part in WRAPPERS[kind]:
                self.read(None, getattr(value, part), name)
        elif kind is partial:
            self.read(None, value.func, name)
            for part in (*value.args, *value.keywords.values()):
                self.read(self.constant(part), part, name)
        elif kind is types.BuiltinMethodType and not isinstance(value.__self__, types.ModuleType):
            self.read(self.constant(value.__self__), value.__self__, name)
        elif isinstance(value, Enum):
            self.read(self.constant(value.value), value.value, name)
        elif isinstance(value, type):
            self.type(value, makes=True)
            self.type(kind)
        elif not known_module(kind.__module__) or hasattr(value, "__dict__") and not ours(kind.__module__):
            self.object(self.constant(value), value, name)

    def options(self):
        """Add the conditions on what is read of optimizers, schedulers and generators; refuse what nobody can watch."""
        for value in self.watched:
            if isinstance(value, Optimizer):  # only now: parameters have the names that modules give them
                path = f"{self.constant(value)}.param_groups"
                self.add(f"len({path}) == {len(value.param_groups)}")
                for i, group in enumerate(value.param_groups):
                    self.read(f"{path}[{i}]['params']", group["params"], f"{type(value).__name__}_{i}")
            for n in sorted(self.called.intersection(dir(value))):
                if n in UNWATCHED:
                    raise GraphBreak(f"it asks for {n} of an object of the type {type(value).__name__}", " ")
                if n in vars(value):
                    self.reads_options = True
                    self.attribute(self.constant(vars(value)), n, vars(value)[n], n)

    def looked_up(self, module, names):
        """Add the conditions on what a function finds under its names in a module, and in what that holds."""
        check_known(module, module.__name__, names)
        for n in names:
            there = n in vars(module) or module.__name__ == ENGINE and hasattr(module, n)  # some of it is loaded then
            if there and ours(module.__name__) and n in SETTINGS:
                raise Unknown(f"it asks for or changes a setting: {n}()", " ")
            if there and (id(module), n) not in self.seen:
                self.seen.add((id(module), n))
                self.read(f"{self.constant(vars(module))}[{n!r}]", vars(module)[n], n, names=names)
        if not known_module(module.__name__):
            missing = frozenset(names).difference(vars(module))
            self.add(f"{self.constant(vars(module).keys())}.isdisjoint({self.constant(missing)})")

    def object(self, path, value, name):
        """The class of an object and its attributes, those in slots too."""
        kind = type(value)
        self.add(f"type({path}) is {self.constant(kind)}")
        self.type(kind)
        if hasattr(value, "__dict__"):
            self.attributes(vars(value), vars(value), name)
        written = (vars(b).items() for b in kind.__mro__ if not known_module(b.__module__))
        slots = (n for items in written for n, part in items if type(part) is types.MemberDescriptorType)
        for n in slots:
            if hasattr(value, n):
                self.read(f"{path}.{n}", getattr(value, n), f"{name}_{n}")
            else:
                self.add(f"not hasattr({path}, {n!r})")

    def attributes(self, own, watched, name):
        """The conditions on the attributes ``watched``, among an object's ``own``."""
        self.snapshots.append((own, copy(own)))
        d = self.constant(own)
        self.add(f"len({d}) == {len(own)}")
        for k, part in watched.items():
            self.attribute(d, k, part, f"{name}_{k}" if name else k)

    def attribute(self, d, k, part, name):
        """The conditions on an attribute; one whose use would be a break is one only where it may be used."""
        try:
            self.read(f"{d}[{k!r}]", part, name)
        except Unknown as why:
            self.suspects.append((k, why))

    def type(self, kind, makes=False):
        """The values of a class that a user wrote; ``makes``: the function may make objects of it."""
        for base in kind.__mro__:
            if known_module(base.__module__):
                continue
            if makes:
                self.makes.add(base)
            if base in self.classes:
                continue
            self.classes.append(base)
            if issubclass(base, Function):  # what backward() calls of it, whose name stands nowhere
                self.called.update(("backward", "setup_context", "jvp", "vmap"))
            own = self.constant(vars(base))
            self.add(f"len({own}) == {len(vars(base))}")
            for n, part in vars(base).items():
                if type(part) in (bool, *VALUES) and not n.startswith("__"):
                    self.read(f"{own}[{n!r}]", part, n)

    def methods(self):
        """Read what is used of the classes: operators, and what stands under a name that is read already."""
        before = -1
        while len(self.done) != before:
            before = len(self.done)
            for base in list(self.classes):
                for n, part in list(vars(base).items()):
                    operator = n.startswith("__") and n != "__repr__" and type(part) in (types.FunctionType, *WRAPPERS)
                    used = base in self.makes if n in MAKERS else operator or n in self.called
                    if used and (base, n) not in self.done:
                        self.done.add((base, n))
                        self.read(f"{self.constant(vars(base))}[{n!r}]", part, n)

    def module(self, module, name):
        """A Module: whether it trains, what it holds, its hooks, and its other attributes."""
        own = vars(module)
        if any(own[h] for h in BACKWARD) or hooks.everywhere:
            raise GraphBreak(f"{type(module).__name__} has backward hooks, or there are hooks of all modules", " ")
        d = self.constant(own)
        self.add("not (" + " or ".join(f"{d}[{h!r}]" for h in (*HOOKS, *BACKWARD) if not own[h])
                 + " or hooks.everywhere)")  # fmt: skip
        for h in HOOKS:
            if own[h]:
                path = self.constant(own[h])
                self.add(f"len({path}) == {len(own[h])}")
                for k, hook in own[h].items():
                    self.read(f"{path}[{k}]", hook, h)
        for place in ("_parameters", "_buffers", "_modules"):
            p = self.constant(own[place])
            ordered = place == "_modules" and len(own[place]) > 1
            parts = f"[*{p}] == {self.constant([*own[place]])}" if ordered else f"len({p}) == {len(own[place])}"
            self.add(f"{d}[{place!r}] is {p} and {parts}")
            for k, part in own[place].items():
                self.read(f"{p}[{k!r}]", part, k if name in ("function", "") else f"{name}_{k}")
        self.attributes(own, {k: part for k, part in own.items() if k not in MODULE_FIELDS}, "")
        if not ours(type(module).__module__):
            self.add(f"type({self.constant(module)}) is {self.constant(type(module))}")
        self.type(type(module))

    def function(self, function):
        """A function that a user wrote: its code, defaults, attributes, closure and globals."""
        if ours(function.__globals__.get("__name__")) and ours(function.__module__):
            if function.__name__ in SETTINGS:
                raise Unknown(f"it asks for or changes a setting: {function.__name__}()", " ")
            return
        code, path, own = function.__code__, self.constant(function), function.__globals__
        names, looked_up = names_in(code), globals_in(code)
        if known_module(own.get("__name__")):  # a decorator of the standard library's or ours, around a user's function
            looked_up = ()
        else:
            check_effects(code, code.co_varnames[:1] if function.__name__ in MAKERS else ())
            self.add(f"{path}.__code__ is {self.constant(code)}")
            self.codes += codes_in(code)
            self.called.update(names)
            self.words.update(words_in(code))
        for n, cell in zip(code.co_freevars, function.__closure__ or ()):
            if cell == types.CellType():
                self.add(f"{self.constant(cell)} == {self.constant(types.CellType())}")
            elif n == "__class__":  # of super()
                self.type(cell.cell_contents)
            else:
                self.used(code, n, f"{self.constant(cell)}.cell_contents", cell.cell_contents, names)
        self.add(f"{path}.__defaults__ is {self.constant(function.__defaults__)}")
        for k, part in enumerate(function.__defaults__ or ()):
            self.read(self.constant(part), part, str(k))
        if function.__kwdefaults__:
            self.read(f"{path}.__kwdefaults__", function.__kwdefaults__, "default")
        self.attributes(vars(function), vars(function), function.__name__)
        for n in looked_up:
            if n in own:
                self.used(code, n, f"{self.constant(own)}[{n!r}]", own[n], names)
        if missing := frozenset(looked_up).difference(own):  # builtins, or what is not there yet
            self.add(f"{self.constant(own.keys())}.isdisjoint({self.constant(missing)})")

    def used(self, code, name, path, value, names):
        """The conditions on a variable of a function; a break tells the line that uses it."""
        try:
            self.read(path, value, name, names=names)
        except Unknown as why:
            raise Unknown(why.reason, why.line.strip() or line_of(code, name)) from None
