"""A compiled function: its captures, which one holds for a call, and what ``explain`` tells of a call."""

import gc
from weakref import WeakSet

from ..arrays import tree
from ..arrays.quiet import be_quiet
from ..arrays.running import running
from ..autograd import anomaly
from ..core.graph import mode
from ..core.tensor import Tensor
from . import machine
from .entry import Entry
from .results import numbers_to_memory
from .sizes import SMALL_SHARES, varying
from .steps import GraphBreak

OWN_SIZES = 3  # sizes for which a function has captures of their own, if those have loops: one for many sizes has none
MANY = f"A capture for many sizes has none; the first {OWN_SIZES} sizes have captures of their own, with loops."
LIMIT = 8  # captures of one function, as in PyTorch; what needs more runs eagerly
every: WeakSet = WeakSet()  # all compiled functions that are alive


class Compiled:
    """A function and its captures."""

    loops = True  # whether steps become loops where nothing else is said

    def __init__(self, function, fullgraph=False, fused=True, dynamic=None, looped=None):
        self.function, self.fullgraph, self.fused, self.dynamic = function, fullgraph, fused, dynamic
        self.looped = self.loops if looped is None else looped
        every.add(self)
        self.forget()

    def forget(self):
        """Forget all captures."""
        self.entries: list = []
        self.specialized = ""  # why every size has a capture of its own
        self.in_memory = False  # whether numbers among the arguments need memory, which is viewed or written
        self.failures = 0  # captures that got no guards: nothing says for which calls they would hold

    def __deepcopy__(self, memo):  # it is a function
        return self

    def __get__(self, instance, owner=None):
        return self if instance is None else (lambda *args, **kwargs: self(instance, *args, **kwargs))

    def __call__(self, *args, **kwargs):
        if runs_eagerly():
            return self.function(*args, **kwargs)
        be_quiet()
        leaves, structure = flattened(args, kwargs)
        if self.in_memory:
            numbers_to_memory(leaves)
        for entry in self.entries:
            if entry.structure == structure and entry.guards.matches(leaves):
                return entry.run(leaves, args, kwargs)
        if len(self.entries) + self.failures >= LIMIT:
            if self.fullgraph:
                raise GraphBreak(f"there are {LIMIT} captures already, and none of them holds for this call", " ")
            return self.function(*args, **kwargs)
        collects = gc.isenabled()
        try:
            gc.disable()  # to look for garbage among the many small parts of a capture would take a fifth of its time
            entry = self.captured(leaves, structure, args, kwargs)
        finally:
            if collects:
                gc.enable()
        if entry.broken is not None and self.fullgraph:
            raise entry.broken
        if entry.guards is None:
            self.failures += 1
        else:
            self.entries.append(entry)
        return entry.run(leaves, args, kwargs)

    def captured(self, leaves, structure, args, kwargs):
        """A new capture: for many sizes of what varies, if that can be, or else for those of this call."""
        others = [e for e in self.entries if e.structure == structure]
        before = [e.shapes_seen for e in others]
        few = len({*map(repr, before)}) < OWN_SIZES
        apart = self.dynamic is None and few and all("\ndef loop" in e.code for e in others)
        if self.dynamic is not False and not self.specialized and not apart:
            dims = varying(leaves, before, self.dynamic)
            for small in SMALL_SHARES if dims else ():
                entry = Entry(self, leaves, structure, args, kwargs, dims, small)
                if entry.broken is None:
                    return entry
            if dims:
                self.specialized = str(entry.broken).rstrip()
        return Entry(self, leaves, structure, args, kwargs)

    @property
    def code(self):
        """The Python that runs, of every capture."""
        return "\n\n".join(e.code for e in self.entries if e.code)


def reset():
    """Forget the captures of all compiled functions: what comes next is captured anew."""
    for compiled in list(every):
        compiled.forget()


def flattened(args, kwargs):
    """(leaves, structure) of the arguments; where they are Tensors, and nothing else, they are their own leaves."""
    plain = not kwargs and all(isinstance(a, Tensor) for a in args)
    return (args, len(args)) if plain else tree.flatten((args, kwargs))


def runs_eagerly():
    """Return whether nothing is compiled here: inside of a capture, a transform, forward or inference mode, hooks."""
    inside = mode.dual or mode.transforms or mode.inference or mode.packing
    return inside or running.recorder is not None or running.levels or anomaly.state.anomaly


# ---- what happened, and why


class Explanation:
    """Report of ``explain``: ``graph_break_count``, ``break_reasons``, ``op_count``, ``out_guards`` and ``code``."""

    def __init__(self, entry, changed):
        self.entry = entry
        self.captures = len(entry.compiled.entries)  # that were there before
        self.recompile_reason = changed  # the condition of the last of them that does not hold
        self.graph_count = int(entry.plan is not None)
        self.graph_break_count = int(entry.broken is not None)
        self.break_reasons = [] if entry.broken is None else [str(entry.broken).rstrip()]
        self.specialized = "" if entry.compiled.dynamic is False else entry.compiled.specialized
        self.dynamic_sizes = 0 if entry.sizes is None or entry.plan is None else len(entry.sizes.values)
        self.counts = {} if entry.plan is None else entry.plan.counts
        self.op_count = self.counts.get("written down", 0)
        self.out_guards = [] if entry.guards is None else entry.guards.readable()
        self.code = entry.code
        self.loops = self.code.count("\ndef loop")  # nests that machine code is made of
        self.loops_missing = (machine.why_not() or (self.dynamic_sizes and MANY) or "") if entry.compiled.looped else ""

    def __repr__(self):
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines += [f"Op Count: {self.op_count}", *(f"  {k}: {n}" for k, n in self.counts.items())]
        lines += [f"Captures Before: {self.captures} of at most {LIMIT}"] if self.captures else []
        lines += ["The last of them needs:", self.recompile_reason] if self.recompile_reason else []
        lines += [f"Dynamic Sizes: {self.dynamic_sizes}"] if self.dynamic_sizes else []
        lines += ["Captured size by size:", self.specialized] if self.specialized else []
        lines += [f"Loops: {self.loops}"] if self.loops else []
        lines += [f"Without loops: {self.loops_missing}"] if self.loops_missing else []
        lines += ["Break Reasons:", *self.break_reasons] if self.break_reasons else []
        return "\n".join([*lines, f"Guards: {len(self.out_guards)}"])


def explain(function):
    """``explain(function)(*args)``: captures the call, runs nothing else, and says what is compiled or why not."""
    function = getattr(function, "compiled", function)
    compiled = function if isinstance(function, Compiled) else Compiled(function)

    def explained(*args, **kwargs):
        leaves, structure = flattened(args, kwargs)
        changed = ""
        if compiled.entries:  # what the last capture would have needed
            last = compiled.entries[-1]
            changed = last.guards.failing(leaves) if last.structure == structure else "other arguments"
        return Explanation(compiled.captured(leaves, structure, args, kwargs), changed)

    return explained
