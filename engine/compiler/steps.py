"""Steps: what a capture writes down, and why some things cannot be."""

import linecache
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from .. import quick
from ..arrays import dispatch
from ..arrays.warn import ENGINE_FOLDER
from ..core.backward import backward_pass, chain_rule, visit_all

SWEEPS = {id(f.__code__) for f in (backward_pass, visit_all, chain_rule, quick.walk)}  # to hash code takes long


class GraphBreak(RuntimeError):
    """Raised where a function does what cannot be written down; ``line`` says where."""

    def __init__(self, reason, line=None):
        self.reason, self.line = reason, line or origin()
        super().__init__(f"{reason}\n  at {self.line}" if self.line else reason)


def origin():
    """file:line: text of the innermost line that is not the engine's, nor of what it wrote out to call rules."""
    frame = sys._getframe(2)  # the caller is the engine's, and who called that
    while frame and (frame.f_code.co_filename.startswith(ENGINE_FOLDER) or "__name__" not in frame.f_globals):
        if id(frame.f_code) in SWEEPS:  # of the backward pass: the line that recorded the node
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
        self.args, self.options, self.writes, self.line = args, options or {}, writes, line
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


def device_type_of(x):
    """The type of the device on which an array is; "" for the host."""
    return dispatch.device_names.get(type(x), "")
