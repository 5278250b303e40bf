"""Chains: elementwise steps on a device become one formula, which on a GPU is one kernel.

A step belongs to a formula if it can be done with ``Symbol``s of ``arrays/devices/kernels.py``, one element of each
array, and gives the dtype that it gave at the capture.  The formula is a function of its own in the code, and is
called by ``dispatch.elementwise``: on a GPU it is written as a kernel at the first call, elsewhere it runs step by
step.  A sum of what a formula gives, if nothing else takes that, is a part of it.
"""

import math
from collections import Counter
from functools import reduce

import numpy as np

from ..arrays import dispatch
from ..arrays.devices.kernels import Functions, Kernel, Symbol
from .plan import is_ours, sizes_in_words, uses
from .steps import Ref, Step, device_type_of

KINDS = "function", "method", "operator"
MAX_ARRAYS = 20  # arrays that go into a formula, and that come out of it: CUDA hands 4 KB of arguments over to a kernel
MAX_STEPS = 100  # of a formula; a longer kernel takes its time to be compiled


class Fused(Step):
    """Steps as one: ``members``; ``results``: the numbers of those which are needed outside.

    On a device, a formula of ``args``, Refs and constant arrays.  In host memory, a pass in blocks: ``lead`` dims of
    the shape count the rows, of which those operands that are ``arrays`` are cut ``rows`` at a time.
    """

    __slots__ = ("arrays", "lead", "members", "results", "rows")
    is_loop = False  # in plain Python

    def __init__(self, members, shape, args, needed):
        super().__init__(members[-1].number, "fused", "fused", None, tuple(args), line=members[0].line)
        self.members, self.results = members, [m.number for m in members if m.number in needed]
        self.shape, self.where = shape, members[0].where


class Group:
    """The steps that can be one with a first one: ``begins`` and ``takes`` tell, ``as_one`` makes it."""

    most: float = math.inf  # members

    def __init__(self, source, written):
        self.source, self.written = source, written
        self.members, self.inside = [], set()

    def is_last(self, step):
        """Return whether the result of a member is there after all of them alone."""
        return False

    def add(self, step):
        self.members.append(step)
        self.inside.add(step.number)
        return True


class Formula(Group):
    """The steps that can be one formula with a first one."""

    most = MAX_STEPS

    def __init__(self, source, written):
        super().__init__(source, written)
        self.kernel = Kernel()
        self.symbols, self.arguments = {}, {}  # number or id of an array -> its Symbol; of what goes in -> itself
        self.rounded = set()  # casts to types of two bytes, which a kernel rounds only where it writes them

    def begins(self, step):
        """Return whether a step is the first of a formula."""
        if step.shape is None or step.kind == "fused":
            return False
        self.shape, self.where = sizes_in_words(step.shape), step.where
        return "?" not in self.shape and self.takes(step)

    def takes(self, step):
        """Return whether a step joins."""
        if step.shape is None or (step.where, sizes_in_words(step.shape)) != (self.where, self.shape) or not step.flat:
            return False
        own = step.owner == step.number and step.number not in self.written and step.writes is None
        if step.kind not in KINDS or not own:
            return False
        arguments = self.arguments | {key_of(a): a for a in step.args if is_operand(a) and key_of(a) not in self.inside}
        full = len(arguments) > MAX_ARRAYS
        rounded = any(key_of(a) in self.rounded for a in step.args)
        if full or rounded or not all(map(self.is_known, arguments.values())) or not any(map(is_operand, step.args)):
            return False
        try:
            named = step.kind == "function" and not is_ours(step)
            function = reduce(getattr, step.name.split("."), Functions) if named else step.function
            found = function(*map(self.symbol, step.args), **step.options)
        except Exception:  # it does what no line of a kernel says
            return False
        if type(found) is not Symbol or found.dtype != step.dtype:
            return False
        if step.name == "astype" and step.dtype.itemsize == 2 and step.dtype.kind not in "iu":
            self.rounded.add(step.number)
        self.symbols[step.number], self.arguments = found, arguments
        return self.add(step)

    def is_known(self, a):
        """Return whether what goes in is an array on the device that nobody writes into."""
        step = self.source[a.number] if type(a) is Ref else None
        if step is None:
            return True
        return step.shape is not None and step.where == self.where and step.owner not in self.written

    def symbol(self, a):
        if not is_operand(a):
            return a
        if key_of(a) not in self.symbols:
            self.symbols[key_of(a)] = self.kernel.variable(self.facts(a).dtype, "")
        return self.symbols[key_of(a)]

    def as_one(self, needed):
        """The steps as one; None if there are too many results, or would be laid out in another order."""
        if not 0 < len(self.inside & needed) <= MAX_ARRAYS:
            return None
        whole = [a for a in self.arguments.values() if sizes_in_words(self.facts(a).shape) == self.shape]
        flat = [a for a in whole if (self.facts(a).flat if type(a) is Ref else a.flags.c_contiguous)]
        if whole and not flat:
            return None
        first = flat[:1]  # a kernel lays its results out as its first array of their shape
        rest = [a for a in self.arguments.values() if not first or a is not first[0]]
        return Fused(self.members, self.members[0].shape, [*first, *rest], needed)

    def facts(self, a):
        return self.source[a.number] if type(a) is Ref else a


def with_sums(steps, wanted, source, written):
    """The steps, with sums as parts of the formulas that give what they add up."""
    makers, users = {}, Counter(n for s in steps for n in {*uses(s)})
    sums, gone = {}, set()
    for s in steps:
        if s.writes is not None or s.kind == "call":
            makers = {}  # what comes before is not moved behind it: it may write what goes in
        makers.update((n, s) for n in getattr(s, "results", (s.number,)) if s.where)
        n = s.args[0].number if is_sum(s, source) else None
        if n not in makers or users[n] > 1 or n in wanted:
            continue
        chain = makers[n]
        if chain.kind != "fused":
            formula = Formula(source, written)
            chain = formula.as_one({n}) if formula.begins(chain) else None
        if chain is not None and chain.results == [n]:
            sums[s.number] = Fused([*chain.members, s], chain.shape, chain.args, {s.number})
            gone.add(id(makers[n]))
    return [sums.get(s.number, s) for s in steps if id(s) not in gone]


def is_sum(step, source):
    """Return whether a step adds up floats of a device along axes."""
    simple = step.where and step.kind == "method" and step.name == "sum" and step.options.keys() <= {"keepdims"}
    if not simple or any(a is not None for a in step.args[2:]) or step.owner != step.number:
        return False
    return step.dtype in (np.float32, np.float64) and source[step.args[0].number].dtype == step.dtype


def is_operand(a):
    """Return whether an argument is an array on a device."""
    return type(a) is Ref or bool(device_type_of(a))


def key_of(a):
    return a.number if type(a) is Ref else ("other", id(a))


def notes(steps):
    """The comment beside each step: the line that it comes from, beside the first of them alone."""
    seen = {""}
    return [f"  # {s.line}" if s.line not in seen and not seen.add(s.line) else "" for s in steps]


def lines(chain, writer):
    """(the text of the formula, the line that calls it)."""
    names = writer.names
    given = ", ".join(map(writer.text, chain.args))
    formula = writer.fresh("formula")
    total = chain.members[-1] if chain.members[-1].name == "sum" else None
    body, before, writer.module = [], writer.module, "xp"
    for m, note in zip(chain.members[: -1 if total else None], notes(chain.members)):
        text = writer.expression(m)
        names[m.number] = writer.name_of(m)
        body.append(f"    {names[m.number]} = {text}{note}")
    writer.module = before
    found = chain.results if total is None else [total.args[0].number]
    results = ", ".join(names[n] for n in found)
    if any("xp." in line for line in body):
        body.insert(0, f"    xp = module({writer.text(chain.args[0])})")
    shape = "x".join(map(str, chain.shape)) or "number"
    what = f"# {shape}, one kernel on a GPU" + ", with its sum" * (total is not None)
    text = [f"def {formula}({given}):  {what}", *body, f"    return {results}"]
    for m in chain.members:
        if m.number not in chain.results:
            del names[m.number]
    if total is None:
        return "\n".join(text), f"{results} = elementwise({formula}, {given})"
    axis, keepdims = (*total.args[1:2], None)[0], bool(total.options.get("keepdims"))
    name = names[chain.number] = writer.name_of(total)
    return "\n".join(text), f"{name} = sum_of({formula}, {writer.text(axis)}, {keepdims}, {given})"


def sum_of(formula, axis, keepdims, *args):
    """The sums along axes of what ``formula(*args)`` gives: on a GPU one kernel."""
    found = dispatch.kernels.get(type(args[0]))
    if found is None:
        return formula(*args).sum(axis, None, keepdims=keepdims)
    return found.sum_of(formula, axis, keepdims, *args)


SPACE: dict = {"elementwise": dispatch.elementwise, "sum_of": sum_of, "module": lambda x: dispatch.modules[type(x)]}
