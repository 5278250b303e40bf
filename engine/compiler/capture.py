"""Capture: a function runs once on arrays that write down what is done with them.

A ``Traced`` array holds a value, the one that the inputs of this first call lead to, and stands for a value of every
later call.  The engine's operations and rules use it as they use any array; each use becomes a ``Step`` on the tape.
The backward pass runs on Traced arrays too, so the same rules write down the backward pass.
"""

import importlib
import operator
from functools import cache, partial
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np

from ..arrays import devices, dispatch, memory
from ..arrays.dispatch import modules
from ..arrays.running import running, writers
from ..arrays.selection import selected
from ..ops.creation import observed
from .steps import GraphBreak, Ref, device_type_of, leaves, origin


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
        is_number=lambda x: isinstance(x.value, np.generic),
        in_memory=lambda x: x.tape.emit("function", "asarray", np.asarray, (x,)), beside=lambda x: modules[type(x)],
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


@cache
def scipy_special():
    return importlib.import_module("scipy.special")


serve(Traced, lambda: np, scipy_special)
