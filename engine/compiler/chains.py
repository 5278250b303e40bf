"""Chains: elementwise steps on a device become one formula, which on a GPU is one kernel.

A step belongs to a formula if it can be done with ``devices.kernels.Symbol``s, one element of each array, and gives the
dtype that it gave at the capture.  The formula is a function of its own in the code, and is called by
``backend.elementwise``: on a GPU it is written as a kernel at the first call, elsewhere it runs step by step.
"""

from functools import reduce

from .. import backend
from ..devices.kernels import Functions, Kernel, Symbol
from .capture import Ref, Step, place_of
from .plan import is_ours

KINDS = "function", "method", "operator"
MOST = 24  # arrays that go into a formula or come out of it: CUDA hands 4 KB of arguments over to a kernel


class Chain(Step):
    """Several steps as one formula.

    ``members``: the steps; ``results``: the numbers of those which are needed outside; ``args``: what goes in, Refs and
    constant arrays, in the order of the formula's arguments.
    """

    __slots__ = ("members", "results")

    def __init__(self, members, args, needed):
        super().__init__(members[-1].number, "fused", "chain", None, tuple(args), line=members[0].line)
        self.members, self.shape, self.where = members, members[0].shape, members[0].where
        self.results = [m.number for m in members if m.number in needed]


class Formula:
    """The steps that can be one formula with a first one."""

    def __init__(self, source, written):
        self.source, self.written = source, written
        self.members, self.inside, self.kernel = [], set(), Kernel()
        self.symbols, self.arguments = {}, {}  # number or id of an array -> its Symbol; of what goes in -> itself

    def begins(self, step):
        """Whether a step is the first of a formula."""
        self.shape, self.where = step.shape, step.where
        return step.shape is not None and step.kind != "fused" and self.takes(step)

    def takes(self, step):
        """Whether a step joins."""
        if step.where != self.where or step.shape != self.shape or not step.flat or step.owner != step.number:
            return False
        if step.writes is not None or step.number in self.written or step.kind not in KINDS:
            return False
        arguments = self.arguments | {key_of(a): a for a in step.args if is_operand(a) and key_of(a) not in self.inside}
        if len(arguments) + len(self.members) > MOST or not all(map(self.is_known, arguments.values())):
            return False
        if not any(map(is_operand, step.args)):
            return False
        try:
            found = result(step, [self.symbol(a) for a in step.args])
        except Exception:  # it does what no line of a kernel says
            return False
        if type(found) is not Symbol or found.dtype != step.dtype:
            return False
        self.symbols[step.number], self.arguments = found, arguments
        self.members.append(step)
        self.inside.add(step.number)
        return True

    def is_known(self, a):
        """Whether what goes in is an array on the device that nobody writes into."""
        step = self.source[a.number] if type(a) is Ref else None
        if step is None:
            return True
        return step.shape is not None and step.where == self.where and step.owner not in self.written

    def symbol(self, a):
        if not is_operand(a):
            return a
        key = key_of(a)
        if key not in self.symbols:
            dtype = self.source[a.number].dtype if type(a) is Ref else a.dtype
            self.symbols[key] = self.kernel.variable(dtype, "")
        return self.symbols[key]

    def joined(self, needed):
        """The steps as one; None if that would lay its results out in another order."""
        whole = [a for a in self.arguments.values() if self.facts(a).shape == self.shape]
        flat = [a for a in whole if self.is_flat(a)]
        if whole and not flat:
            return None
        first = flat[:1]  # a kernel lays its results out as its first array of their shape
        rest = [a for a in self.arguments.values() if not first or a is not first[0]]
        return Chain(self.members, [*first, *rest], needed)

    def facts(self, a):
        return self.source[a.number] if type(a) is Ref else a

    def is_flat(self, a):
        return self.source[a.number].flat if type(a) is Ref else a.flags.c_contiguous


def is_operand(a):
    """Whether an argument is an array on a device."""
    return type(a) is Ref or bool(place_of(a))


def key_of(a):
    return a.number if type(a) is Ref else ("constant", id(a))


def result(step, args):
    """What a step gives for symbols."""
    if step.kind != "function" or is_ours(step):
        return step.function(*args, **step.options)
    return reduce(getattr, step.name.split("."), Functions)(*args, **step.options)


def lines(chain, writer):
    """(the text of the formula, the line that calls it)."""
    names = writer.names
    given = ", ".join(map(writer.text, chain.args))
    formula = writer.fresh("formula")
    body, shown, before, writer.module = [], set(), writer.module, "xp"
    for m in chain.members:
        text = writer.expression(m)
        names[m.number] = writer.name_of(m)
        note = f"  # {m.line}" if m.line and m.line not in shown else ""
        shown.add(m.line)
        body.append(f"    {names[m.number]} = {text}{note}")
    writer.module = before
    results = ", ".join(names[n] for n in chain.results)
    if any("xp." in line for line in body):
        body.insert(0, f"    xp = module({writer.text(chain.args[0])})")
    what = f"# {'x'.join(map(str, chain.shape)) or 'number'}, one kernel on a GPU"
    text = [f"def {formula}({given}):  {what}", *body, f"    return {results}"]
    for m in chain.members:
        if m.number not in chain.results:
            del names[m.number]
    return "\n".join(text), f"{results} = elementwise({formula}, {given})"


SPACE = {"elementwise": backend.elementwise, "module": lambda x: backend.modules[type(x)]}
