"""Loops: steps that run over the same elements become one loop nest in plain Python, which Numba compiles.

Step by step, each result of a chain goes out to memory and comes back.  In a loop it is a number in a register, and
only what others need is written down.

Elements are counted through: number ``f`` of N, the last dims quickest, so that a reshape changes nothing.  A value
has *digits*: the ranges ``(low, high)`` of the place values of f on which it depends, as the hour and the second of
a time of day.  All of 512x64 is ((1, 32768),), a bias ((1, 64),), the mean of each row ((64, 32768),), a number ().
The ends of all ranges cut N into the extents of the nest, one loop each.

A *row* is what is summed up along the last dims.  A row takes several passes, where a later one needs the sum of an
earlier one: softmax has the largest, then the sum, then the quotients.  Sums over all rows are ready after the nest.
"""

import math
import re
from collections import Counter
from itertools import pairwise
from math import prod

import numpy as np

from . import chains, fuse
from .capture import Ref
from .plan import ufunc_of, uses

# How an operation is written, and what it takes about, in nanoseconds an element (one thread, in the cache).
CHEAP, ROOT, LONG = 0.1, 0.3, 0.8
LONG_NAMES = "exp", "exp2", "expm1", "log", "log1p", "log2", "tanh", "erf", "erfc", "expit", "sin", "cos"
FORMULAS = {
    "add": ("{} + {}", CHEAP), "subtract": ("{} - {}", CHEAP), "multiply": ("{} * {}", CHEAP),
    "divide": ("{} / {}", ROOT), "negative": ("-{}", CHEAP), "absolute": ("abs({})", CHEAP),
    "square": ("{0} * {0}", CHEAP), "sqrt": ("sqrt({})", ROOT), "reciprocal": ("1 / {}", ROOT),
    "maximum": ("larger({}, {})", CHEAP), "minimum": ("smaller({}, {})", CHEAP),
    "equal": ("{} == {}", CHEAP), "not_equal": ("{} != {}", CHEAP), "less": ("{} < {}", CHEAP),
    "less_equal": ("{} <= {}", CHEAP), "greater": ("{} > {}", CHEAP), "greater_equal": ("{} >= {}", CHEAP),
    "bitwise_and": ("{} & {}", CHEAP), "bitwise_or": ("{} | {}", CHEAP), "bitwise_xor": ("{} != {}", CHEAP),
    "logical_and": ("{} & {}", CHEAP), "logical_or": ("{} | {}", CHEAP),
    "invert": ("not {}", CHEAP), "logical_not": ("not {}", CHEAP), "isnan": ("{0} != {0}", CHEAP),
    "where": ("{1} if {0} else {2}", CHEAP), "kept": ("{0} if {1} else 0.0", CHEAP), "astype": ("{}", CHEAP),
    **{name: (name + "({})", LONG) for name in LONG_NAMES},
}  # fmt: skip
OF_BOOLS = {"bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "invert", "logical_not"}
FLOATS = np.dtype("float32"), np.dtype("float64")
NUMBERS = (*FLOATS, np.dtype("int32"), np.dtype("int64"), np.dtype("bool"))
SOURCES = (*NUMBERS, np.dtype("uint8"), np.dtype("int8"), np.dtype("int16"))  # what may be cast to one of these
# What leaves the extreme of a row: what that is called, the function of two numbers that it takes, how it begins.
EXTREMES = {"max": ("top", "largest", -math.inf), "min": ("least", "smallest", math.inf)}
INDICES = "ijklpq"
MAX_STEPS = 64  # of a nest: a longer one takes its time to be compiled, and its numbers find no room in registers
MAX_NUMBERS = 3072  # of a nest of numbers alone, which are a millisecond each to compile, and 50 ns each without it
MAX_ARRAYS = 24
CALL = 1.5e3  # nanoseconds that a call of a loop takes before it begins, and that one of NumPy's takes, about
NUMPY_CALL = 0.7e3
NUMBER, RETURNED = 0.07e3, 0.25e3  # the same of an operation of NumPy's on numbers, and of a number that a loop returns
THREADED = 6e4  # nanoseconds of work, from which on it is shared out among threads
AT_ONCE = 2048  # elements that are added up in float32 before their sum joins one in float64


# ---- digits


def joined(ranges):
    """Ranges of digits in order, those that meet as one."""
    found: list = []
    for low, high in sorted(ranges):
        if found and found[-1][1] == low:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return tuple(found)


def digits_of(shape, whole, within):
    """The digits of an array that is broadcast to ``whole``, whose own are ``within``; None if they are cut through."""
    if not shape:
        return ()
    found, low = [], 1
    aligned = (1,) * (len(whole) - len(shape)) + tuple(shape)
    for n, m in zip(aligned[::-1], whole[::-1]):
        if n == m != 1:
            own = mapped(low, low * m, within)
            if own is None:
                return None
            found += own
        elif n != 1:
            return None
        low *= m
    return joined(found)


def mapped(low, high, within):
    """The range from ``low`` to ``high`` of what has the digits ``within``, as digits of all; None if cut through."""
    found, start = [], 1
    for a, b in within:
        end = start * (b // a)
        x, y = max(low, start), min(high, end)
        if x < y:
            if x % start or end % y or y % x:
                return None
            found.append((a * (x // start), a * (y // start)))
        start = end
    return found


def is_chain(ends):
    """Return whether each of the ends divides the next: they cut all elements into the extents of a nest."""
    return all(b % a == 0 for a, b in pairwise(sorted(ends)))


# ---- rewriting


def without_ones(steps, written, wanted):
    """The sum of an array's rows is one where the engine has it done by products with ones, some rows at a time."""
    source, users = {s.number: s for s in steps}, Counter(n for s in steps for n in uses(s))
    users.update(wanted)
    for step in steps:
        if step.name == "matmul" and step.writes is None and adds_rows(step.args[0], step, source):
            step.change(kind="method", name="sum", function=sum_along, args=(step.args[1], -2, None, None))
            step.options = {"keepdims": False}
    for step in steps:  # of the sums of so many rows each
        x = source.get(step.args[0].number) if step.name == "sum" and type(step.args[0]) is Ref else None
        whole = (
            x is not None and step.args[1:2] == (0,) and users[x.number] == 1 and x.name == "sum" and x.args[1] == -2
        )
        parts = source.get(x.args[0].number) if whole else None
        if parts is not None and is_alias(parts) and len(parts.shape) == 3:
            rows = source[parts.args[0].number]
            if len(rows.shape) == 2 and rows.shape[1] == parts.shape[2] and not {rows.owner, x.owner} & written:
                step.change(args=(parts.args[0], 0, None, None))
    return steps, {}


def adds_rows(a, step, source):
    ones = isinstance(a, np.ndarray) and a.ndim == 1 and bool((a == 1).all())
    return (
        ones
        and type(step.args[1]) is Ref
        and source[step.args[1].number].dtype == a.dtype
        and step.owner == step.number
    )


def sum_along(x, *args, **options):
    return x.sum(*args, **options)


# ---- which steps


def formula_of(step):
    """(how a step is written, what it takes), or None if it is no elementwise step that loops know."""
    if step.kind not in ("function", "method", "operator") or step.options:
        return None
    if step.kind == "operator" and step.name == "pow":
        return powers(step.args[1])
    name = step.name
    if name not in ("where", "kept", "astype"):
        ufunc = ufunc_of(step)
        if ufunc is None:
            return None
        name = "divide" if ufunc is np.divide else ufunc.__name__
    if name in OF_BOOLS and step.dtype != bool:
        return None
    return FORMULAS.get(name)


def powers(exponent):
    known = {2: ("{0} * {0}", CHEAP), 3: ("{0} * {0} * {0}", CHEAP), 0.5: ("sqrt({})", ROOT), -1: ("1 / {}", ROOT)}
    return known.get(exponent) if type(exponent) in (int, float) else None


def operands_of(step):
    """The arguments that an elementwise step computes with."""
    if step.name == "astype" or (step.kind == "operator" and step.name == "pow"):
        return step.args[:1]
    return step.args


def is_alias(step):
    return step.kind == "method" and step.name == "reshape" and step.flat


def is_number(step):
    """Return whether a step computes one number from others."""
    return step.shape == () and formula_of(step) is not None


class Nest(chains.Group):
    """The steps that can be one nest with a first one."""

    rewrites: tuple = (without_ones,)

    def __init__(self, source, written):
        super().__init__(source, written)
        self.digits, self.ends, self.row, self.late = {}, {1}, None, set()
        self.arrays = set()

    def begins(self, step):
        if step.kind == "fused" or step.shape is None or step.where or is_alias(step):
            return False
        along = fuse.reduced_axes(step, self.source) is not None
        shape = self.source[step.args[0].number].shape if along and type(step.args[0]) is Ref else step.shape
        if shape is None or not all(type(n) is int for n in shape):
            return False
        self.size = prod(shape)
        self.all = joined([(1, self.size)]) if self.size > 1 else ()
        self.most = MAX_STEPS if self.size > 1 else MAX_NUMBERS
        return self.size > 0 and self.takes(step)

    def takes(self, step):
        if step.shape is None or step.where or step.dtype not in NUMBERS:
            return False
        if step.writes is not None or step.owner in self.written:
            return False
        needs = uses(step)
        if self.members and self.inside.isdisjoint(needs) and self.arrays.isdisjoint(needs):
            return False  # it has nothing to do with the others
        found = self.alias(step) if is_alias(step) else self.elementwise(step)
        reduces = found is None and not is_alias(step)
        if reduces:
            found = self.reduction(step)
        if found is None:
            return False
        digits, operands = found
        ends = self.ends.union(*(r for d in (digits, *operands.values()) for r in d))
        arrays = self.arrays | {n for n in operands if n not in self.inside}
        if not is_chain(ends) or len(arrays) > MAX_ARRAYS:
            return False
        self.ends, self.digits[step.number], self.arrays = ends, digits, arrays
        if reduces and self.is_row(digits):
            self.row = digits[0][0]
        return self.add(step)

    def is_row(self, digits):
        """Return whether what is left of a sum is one value a row."""
        if len(digits) != 1 or digits[0][1] != self.size:
            return False
        return self.row in (None, digits[0][0])

    def is_last(self, step):
        """Return whether the result of a member is there after the nest alone."""
        return step.number in self.late

    def alias(self, step):
        n = step.args[0].number if type(step.args[0]) is Ref else None
        if n not in self.inside or n in self.late or prod(step.shape) != prod(self.source[n].shape):
            return None
        return self.digits[n], {}

    def operand(self, a, whole, within):
        """(key, digits) of an operand of a step of the shape ``whole``; None if a loop cannot read it."""
        if type(a) is Ref:
            step = self.source[a.number]
            if step.shape is None or step.dtype not in SOURCES or step.where or step.owner in self.written:
                return None
            digits = digits_of(step.shape, whole, within)
            if a.number in self.inside:
                if a.number in self.late or self.digits[a.number] != digits:
                    return None
            elif not step.flat and prod(step.shape) > 1:
                return None
            return None if digits is None else (a.number, digits)
        if isinstance(a, np.ndarray):
            if a.dtype not in SOURCES or not a.flags.c_contiguous:
                return None
            digits = digits_of(a.shape, whole, within)
            return None if digits is None else (("constant", id(a)), digits)
        if isinstance(a, np.generic):
            return (("number", 0), ()) if a.dtype in SOURCES else None
        return (("number", 0), ()) if type(a) in (int, float, bool) else None

    def elementwise(self, step):
        if formula_of(step) is None or step.owner != step.number:
            return None
        if step.name == "astype" and (len(step.args) > 2 or not (step.flat or step.shape == ())):
            return None
        size, within = prod(step.shape), None
        if size == self.size:
            within = self.all
        else:
            for n in uses(step):
                if n in self.inside and n not in self.late and prod(self.source[n].shape) == size:
                    within = self.digits[n]
        if within is None:
            return None
        operands = [self.operand(a, step.shape, within) for a in operands_of(step)]
        if None in operands or not any(type(a) is Ref for a in operands_of(step)):
            return None
        return within, dict(operands)

    def reduction(self, step):
        axes = fuse.reduced_axes(step, self.source)
        if axes is None or step.owner != step.number or type(step.args[0]) is not Ref:
            return None
        x = self.source[step.args[0].number]
        added = step.name not in EXTREMES
        if step.dtype not in FLOATS or x.shape is None or prod(x.shape) != self.size:
            return None
        terms = [self.operand(a, x.shape, self.all) for a in step.args[: len(uses(step))]]
        if None in terms or any(d != self.all or self.source[n].dtype != step.dtype for n, d in terms):
            return None
        left = [1 if i - len(x.shape) in axes else n for i, n in enumerate(x.shape)]
        digits = digits_of(left, x.shape, self.all)
        if digits is None or digits == self.all:
            return None
        if not self.is_row(digits):
            if not added:
                return None
            self.late.add(step.number)
        return digits, dict(terms)

    def as_one(self, needed):
        """The steps as one, where that is quicker than one after the other."""
        work = [m for m in self.members if not is_alias(m)]
        steps = sum(NUMBER if is_number(m) else NUMPY_CALL + prod(m.shape or ()) * 0.25 for m in work)
        returned = sum(m.number in needed and not self.digits[m.number] for m in work)
        if len(work) < 2 or steps < CALL + 150 * (len(self.arrays) + 2) + RETURNED * returned:
            return None
        outside = dict.fromkeys(n for m in self.members for n in uses(m) if n not in self.inside)
        one = LoopNest(self.members, self.source[self.members[0].number].shape, map(Ref, outside), needed)
        one.nest = self
        return one


class LoopNest(chains.Fused):
    """Steps as one loop nest."""

    __slots__ = ("nest",)
    is_loop = True

    def lines(self, writer, memory):
        return Text(self, writer, memory).lines()


# ---- the text of a nest


class Text:
    """Writes one nest: its function goes to the writer's loops, its call is returned.

    What differs between the text that is read and the text that is compiled stands between brackets of its own:
    a number ``‹0.5›`` is of the type of the loop, and a cast ``«int32(...)»`` takes place in machine code alone.
    """

    def __init__(self, one, writer, memory):
        self.one, self.writer, self.memory, self.nest = one, writer, memory, one.nest
        self.members = {m.number: m for m in one.members}
        self.formula = {m.number: formula_of(m) for m in one.members}
        self.digits, self.late = self.nest.digits, self.nest.late
        ends = sorted(self.nest.ends | ({self.nest.row} if self.nest.row else set()) | {self.nest.size})
        self.extents = [(a, b) for a, b in pairwise(ends)][::-1]  # the outermost first
        self.row = self.nest.row or (self.extents[-1][1] if len(self.extents) > 1 else 1)
        self.cut = sum(low >= self.row for low, _ in self.extents) if self.nest.row or len(self.extents) > 1 else 1
        self.base = {}  # number of an alias -> what it is a reshape of
        for m in one.members:
            self.base[m.number] = self.base[m.args[0].number] if is_alias(m) else m.number
        self.stored = dict.fromkeys(self.base[n] for n in one.results)  # what others need
        self.parameters, self.local, self.names, self.scratch = {}, {}, {}, {}
        self.stages()

    def is_full(self, n):
        return self.digits[n] == self.nest.all and self.nest.all != ()

    def real(self):
        return [m for m in self.one.members if not is_alias(m)]

    # -- in which pass

    def stages(self):
        """Find the pass over the row in which each full value is computed, and when each row value is ready."""
        self.stage, self.passes = {}, 1
        for m in self.real():
            inputs = [self.stage[self.base[n]] for n in uses(m) if n in self.members]
            at = max(inputs, default=0)
            if self.formula[m.number] is None and m.number not in self.late:
                at += 1  # ready when the pass is over
                self.passes = max(self.passes, at + 1)
            self.stage[m.number] = at
        self.passes = max((self.stage[m.number] + 1 for m in self.real() if self.in_pass(m)), default=1)

    def in_pass(self, m):
        """Return whether a member has work to do inside of a pass over the row."""
        return self.is_full(m.number) or self.formula[m.number] is None

    def pass_of(self, m):
        """The pass in which a member computes: a sum of a row, in the one before it is ready."""
        return self.stage[m.number] - (self.formula[m.number] is None and m.number not in self.late)

    # -- names and places

    def parameter(self, key, text):
        """The name of an array or number that comes from outside."""
        if key not in self.parameters:
            name = text.partition(".")[0]
            self.parameters[key] = name, text
        return self.parameters[key][0]

    def subscript(self, digits):
        """The indices of a value with these digits, and the sizes of the array that has it."""
        if not digits:
            return [], ()
        inside = [i for i, (a, b) in enumerate(self.extents) if any(x <= a and b <= y for x, y in digits)]
        return [INDICES[i] for i in inside], tuple(self.extents[i][1] // self.extents[i][0] for i in inside)

    def element(self, name, digits):
        indices, _ = self.subscript(digits)
        return f"{name}[{', '.join(indices)}]" if indices else name

    def outside(self, a, whole, within):
        """The text of an operand that comes from outside."""
        if type(a) is Ref:
            step, name = self.writer.steps[a.number], self.writer.names[a.number]
            digits, shape, key = digits_of(step.shape, whole, within), step.shape, a.number
        else:
            digits, shape, name, key = digits_of(a.shape, whole, within), a.shape, self.writer.constant(a), id(a)
        _, sizes = self.subscript(digits)
        if not digits:
            text = name + "[()]" if shape == () else f"{name}.item()"
        else:
            text = name if shape == sizes else f"{name}.reshape({', '.join(map(str, sizes))})"
        name = self.parameter(key, text) if digits else self.number(key, name, text)
        return self.element(name, digits)

    def number(self, key, name, text):
        if key not in self.parameters:
            self.parameters[key] = name, text
        return self.parameters[key][0]

    # -- expressions

    def literal(self, a, dtype):
        if isinstance(a, np.generic):
            a = a.item()
        if is_bool(dtype) or type(a) is bool:
            return repr(bool(a)) if is_bool(dtype) else f"‹{dtype}:{int(a)}›"
        if type(a) is float and not math.isfinite(a):
            return f"‹{dtype}:{'nan' if a != a else 'inf' if a > 0 else '-inf'}›"
        return f"‹{dtype}:{a!r}›"

    def term(self, a, m, at, dtype):
        """The text of an operand of a member in a pass, in the dtype in which it computes."""
        whole, within = m.shape, self.digits[m.number]
        if type(a) is not Ref and not isinstance(a, np.ndarray):
            return self.literal(a, dtype)
        if type(a) is Ref and a.number in self.members:
            text, own = self.value(self.base[a.number], at), self.members[a.number].dtype
        else:
            text = self.outside(a, whole, within)
            own = self.writer.steps[a.number].dtype if type(a) is Ref else a.dtype
        return text if own == dtype else f"«{kind(dtype)}(»{text}«)»"

    def computes_in(self, m):
        """The dtype in which a member computes."""
        if m.dtype != bool and m.name != "astype":
            return m.dtype
        kinds = []
        for a in operands_of(m):
            if type(a) is Ref:
                kinds.append(self.writer.steps[a.number].dtype)
            elif isinstance(a, (np.ndarray, np.generic)):
                kinds.append(a.dtype)
        numbers = [a for a in operands_of(m) if type(a) in (int, float)]
        found = np.result_type(*kinds)
        if found.kind in "iub" and any(type(a) is float for a in numbers):
            return np.dtype("float64")
        return np.dtype("int64") if is_bool(found) and numbers else found

    def expression(self, m, at):
        pattern, _ = self.formula[m.number]
        dtype = self.computes_in(m)
        if m.name == "where":
            condition, *rest = m.args
            terms = [self.term(condition, m, at, np.dtype(bool)), *(self.term(a, m, at, m.dtype) for a in rest)]
        elif m.name == "kept":
            terms = [self.term(m.args[0], m, at, m.dtype), self.term(m.args[1], m, at, np.dtype(bool))]
            pattern = f"{{0}} if {{1}} else {self.literal(0.0, m.dtype)}"
        else:
            terms = [self.term(a, m, at, dtype) for a in operands_of(m)]
        if "1 /" in pattern:
            pattern = pattern.replace("1", self.literal(1.0, dtype))
        apart = "({}" in pattern and not pattern.startswith("{")
        text = pattern.format(*(t if apart else bracketed(t) for t in terms))
        if m.name == "astype":
            to = m.dtype
            return f"{kind(to)}({terms[0]})" if not is_bool(to) else f"({bracketed(terms[0])} != 0)"
        return f"«{kind(m.dtype)}(»{text}«)»" if m.dtype.kind == "i" else text

    def value(self, n, at):
        """The text of a member's value in a pass."""
        if n in self.local:
            return self.local[n]
        m = self.members[n]
        if self.is_full(n) and self.stage[n] < at and n in self.scratch:
            text = self.element(
                self.scratch[n], self.digits[n] if self.scratch[n] in self.kept_names else self.row_digits
            )
        else:
            text = self.expression(m, at)
            if self.count[n] > 1 or len(plain(text)) > 64:
                self.names[n] = name = self.names.get(n) or self.writer.name_of(m)
                self.say(f"{name} = {text}", m)
                text = name
        self.local[n] = text
        return text

    # -- the lines

    def say(self, text, m=None):
        line = m.line if m is not None else ""
        self.text.append((self.depth, text, line if line != self.said else ""))
        self.said = line or self.said

    def counted(self, roots, at):
        """Count how often each value of a pass is used in it, in what leads to ``roots``."""
        count: Counter = Counter()

        def look(n):
            n = self.base[n]
            count[n] += 1
            if count[n] > 1 or (self.is_full(n) and self.stage[n] < at and n in self.scratch):
                return
            m = self.members[n]
            if not self.is_full(n) or self.formula[m.number] is None:
                return
            for k in uses(m):
                if k in self.members:
                    look(k)

        for n in roots:
            look(n)
        return count

    def plan_scratch(self):
        """Find room for values that a later pass needs again and that are not computed anew."""
        wanted: dict = {}
        for m in self.real():
            at = self.pass_of(m)
            for k in uses(m):
                k = self.base.get(k)
                if k is not None and self.is_full(k) and self.stage[k] < at and self.in_pass(m):
                    wanted[k] = max(wanted.get(k, 0), at)
        for n in self.stored:
            if self.is_full(n):
                self.scratch[n] = self.result_names[n]
        self.kept_names, self.rows_held = set(self.scratch.values()), []
        taken: set = set()
        self.lent: dict = {}  # a held value -> the result in whose place it is
        for n, until in sorted(wanted.items()):
            if n in self.scratch or self.is_cheap(n, self.stage[n]):
                continue
            m = self.members[n]
            for k in self.stored:  # a result that is written by the time has room for it
                free = self.is_full(k) and k not in taken and self.members[k].dtype == m.dtype
                if free and self.stage[k] >= until:
                    self.scratch[n], self.lent[n] = self.result_names[k], k
                    taken.add(k)
                    break
            else:
                name = self.writer.fresh("held")
                self.scratch[n] = name
                self.rows_held.append((name, m.dtype))
        self.row_digits = joined([(a, b) for a, b in self.extents[self.cut :]])

    def is_cheap(self, n, at, left=4):
        """Return whether a value is computed anew sooner than it is read from memory: by few cheap operations."""

        def cost(n):
            m = self.members[n]
            if not self.is_full(n):
                return 0
            if self.formula[m.number][1] > CHEAP:
                return 99
            return 1 + sum(cost(self.base[k]) for k in uses(m) if k in self.members)

        return cost(n) <= left

    def lines(self):
        writer = self.writer
        text, self.result_names = [], {}
        for n in self.stored:
            m = self.members[n]
            writer.names[n] = self.result_names[n] = writer.name_of(m)
            if n in self.late and self.digits[n]:
                self.allocated(text, m, self.sum_dtype(m), "np.zeros")
            elif self.digits[n] and n not in self.late:
                self.allocated(text, m, m.dtype, "np.empty")
        returned = [n for n in self.stored if not self.digits[n]]
        self.plan_scratch()
        name = writer.fresh("loop")
        self.text, self.depth, self.said = [], 1, ""
        self.body()
        rows = self.extents[0][1] // self.extents[0][0] if self.extents else 1
        results = [n for n in self.stored if self.digits[n]]
        for n in results:
            _, sizes = self.subscript(self.digits[n])
            shape = self.members[n].shape
            call = writer.names[n] if shape == sizes else f"{writer.names[n]}.reshape({', '.join(map(str, sizes))})"
            self.parameters["out", n] = self.result_names[n], call
        sums = [k for k in self.parameters if type(k) is tuple and k[0] == "out" and k[1] in self.late]
        for k in sums:  # what each thread has its own of comes last
            self.parameters[k] = self.parameters.pop(k)
        for held, dtype in self.rows_held:
            _, sizes = self.subscript(self.row_digits)
            self.parameters["held", held] = held, f"np.empty({sizes}, {writer.text(dtype)})"
        inner = [p for p, _ in self.parameters.values()]
        given = [t for _, t in self.parameters.values()]
        if returned:
            self.depth = 1
            self.say(f"return {', '.join(self.result_names[n] for n in returned)}{',' * (len(returned) == 1)}")
        self.function(name, inner)
        apart = "".join(f", {k}={n}" for k, n in (("sums", len(sums)), ("held", len(self.rows_held))) if n)
        call = f"in_rows({name}, {rows}, {', '.join(given)}{apart})" if self.cost() > THREADED else (
            f"{name}(0, {rows}, {', '.join(given)})")  # fmt: skip
        if returned:
            call = f"{', '.join(writer.names[n] for n in returned)}{',' * (len(returned) == 1)} = {call}"
        text.append(call)
        for n in returned:
            shape, dtype = self.members[n].shape, writer.text(self.members[n].dtype)
            number = f"np.full({shape}, {writer.names[n]}, {dtype})" if shape else f"{dtype}({writer.names[n]})"
            text.append(f"{writer.names[n]} = {number}")
        for n in results:
            m = self.members[n]
            if n in self.late and self.inner_digits(m) and self.divisor(m) != 1:
                text.append(f"{writer.names[n]} /= {self.divisor(m)}")
            if n in self.late and self.sum_dtype(m) != m.dtype:
                text.append(f"{writer.names[n]} = {writer.names[n]}.astype({writer.text(m.dtype)})")
        for n in self.one.results:
            if self.base[n] != n:
                m = self.members[n]
                writer.names[n] = writer.name_of(m)
                text.append(f"{writer.names[n]} = {writer.names[self.base[n]]}.reshape({m.shape})")
        return text

    def sum_dtype(self, m):
        """Return the dtype in which a sum over all rows is added up."""
        rows = self.nest.size // max(prod(m.shape), 1)
        return np.dtype("float64") if rows > AT_ONCE else m.dtype

    def allocated(self, text, m, dtype, how):
        name = self.writer.names[m.number]
        buffer = self.memory.buffer(m) if how == "np.empty" else None
        text.append(f"{name} = {buffer or f'{how}({m.shape}, {self.writer.text(dtype)})'}")

    def cost(self):
        """Estimate what the nest takes on one thread, in nanoseconds."""
        moved = sum(1 for n in (*self.stored, *self.parameters))
        work = (self.formula[m.number] for m in self.real() if self.in_pass(m))
        each = sum(CHEAP if formula is None else formula[1] for formula in work)
        return self.nest.size * (each + 0.08 * moved)

    def loop(self, i, first=None):
        a, b = self.extents[i]
        return f"for {INDICES[i]} in range({first or b // a}):"

    def body(self):
        """The lines of the function."""
        outer = self.extents[: self.cut]
        totals = [m for m in self.real() if m.number in self.late and not self.digits[m.number]]
        for m in totals:
            self.result_names.setdefault(m.number, self.writer.fresh("total"))
            self.say(f"{self.result_names[m.number]} = ‹float64:0.0›")
        flat_blocks = len(self.extents) == 1 and totals and not self.nest.row
        if not self.extents:
            self.passes_over([], False)
            return
        if flat_blocks:
            self.say(f"for start in range(first, last, {AT_ONCE}):")
            self.depth += 1
            self.passes_over([], f"start, min(start + {AT_ONCE}, last)")
            self.depth = 1
            return
        if len(self.extents) == 1 and not self.nest.row:
            self.passes_over([], "first, last")
            return
        for i in range(len(outer)):
            self.say(self.loop(i, "first, last" if i == 0 else None))
            self.depth += 1
        self.passes_over(range(len(outer), len(self.extents)), None)

    def passes_over(self, inner, bounds):
        """The passes over one row, whose elements the loops ``inner`` run over, or one loop within ``bounds``."""
        start = self.depth
        for at in range(self.passes):
            self.ready_values(at)
            sums = [m for m in self.real() if self.formula[m.number] is None and self.pass_of(m) == at]
            stores = [n for n in self.stored if self.is_full(n) and self.stage[n] == at and n not in self.late]
            held = [n for n in self.scratch if n not in self.stored and self.stage[n] == at]
            if not (sums or stores or held):
                continue
            accumulators = {}
            for m in sums:
                accumulators[m.number] = self.begin_sum(m)
            if bounds:
                self.say(f"for i in range({bounds}):")
                self.depth += 1
            for i in inner:
                self.say(self.loop(i))
                self.depth += 1
            roots = [*(k for m in sums for k in uses(m) if k in self.members), *stores, *held]
            for m in sums:  # x * x of a sum of products uses x twice
                roots += (
                    [a.number for a in m.args[: len(uses(m))] if a.number in self.members] if len(uses(m)) == 1 else []
                )
            self.count = self.counted(roots, at)
            self.local = {k: v for k, v in self.local.items() if not self.is_full(k)}
            for n in self.lent:  # read before what it is lent by is written
                k = self.lent[n]
                alone = self.count[n] == 1 and n in uses(self.members[k])  # read in the line that writes there
                if self.count[n] and not alone and self.stage[n] < at == self.stage[k]:
                    self.names[n] = name = self.names.get(n) or self.writer.name_of(self.members[n])
                    self.say(f"{name} = {self.element(self.scratch[n], self.digits[n])}", self.members[n])
                    self.local[n] = name
            for n in held:
                self.say(f"{self.element(self.scratch[n], self.held_digits(n))} = {self.value(n, at)}", self.members[n])
            for m in sums:
                self.add_up(m, accumulators[m.number], at)
            for n in stores:
                m = self.members[n]
                value = self.value(n, at)
                self.say(f"{self.element(self.result_names[n], self.digits[n])} = {value}", m)
            self.local = {k: v for k, v in self.local.items() if not self.is_full(k)}
            self.depth = start
            for m in sums:
                self.end_sum(m, accumulators[m.number])
        self.ready_values(self.passes)

    def held_digits(self, n):
        return self.digits[n] if self.scratch[n] in self.kept_names else self.row_digits

    def ready_values(self, at):
        """Compute what has one value a row, before a pass."""
        self.count = Counter({m.number: 2 for m in self.real()})
        for m in self.real():
            n = m.number
            if self.is_full(n) or self.formula[m.number] is None or self.stage[n] != at:
                continue
            self.value(n, at)
            self.store_row(n)

    def store_row(self, n):
        if n in self.stored and self.digits[n]:
            self.say(f"{self.element(self.result_names[n], self.digits[n])} = {self.local[n]}")
        elif n in self.stored:
            self.say(f"{self.result_names[n]} = {self.local[n]}")

    def begin_sum(self, m):
        """The name of what a sum is added up in, in one pass over a row."""
        if m.number in self.late and self.inner_digits(m):
            return None  # in an array
        name, _, begin = EXTREMES.get(m.name, ("s", "", 0.0))
        name = self.writer.fresh(name)
        self.say(f"{name} = {self.literal(begin, m.dtype)}")
        return name

    def inner_digits(self, m):
        """Return whether a sum over all rows depends on the place in the row."""
        indices, _ = self.subscript(self.digits[m.number])
        inner = {INDICES[i] for i in range(self.cut, len(self.extents))} if len(self.extents) > 1 else set()
        return bool(inner & set(indices))

    def add_up(self, m, name, at):
        xs = [
            self.term(a, stand_in(m, self.nest), at, m.dtype) for a in m.args[: len(uses(m)) if len(uses(m)) > 1 else 1]
        ]
        if m.name == "products_along":
            a, b = m.args[:2]
            xs = [self.term(a, stand_in(m, self.nest), at, m.dtype), self.term(b, stand_in(m, self.nest), at, m.dtype)]
            x = f"{bracketed(xs[0])} * {bracketed(xs[1])}"
        else:
            x = xs[0]
        if name is None:
            place = self.element(self.result_names[m.number], self.digits[m.number])
            self.say(f"{place} += {x}", m)
        elif m.name in EXTREMES:
            self.say(f"{name} = {EXTREMES[m.name][1]}({name}, {x})", m)
        else:
            self.say(f"{name} += {x}", m)

    def divisor(self, m):
        if m.name == "mean":
            return self.nest.size // max(prod(m.shape), 1)
        rest = m.args[len(uses(m)) + 1 :] if m.kind == "function" else ()
        if m.name == "products_along":
            rest = m.args[3:]
        elif m.name == "sums_along":
            rest = m.args[2:]
        return rest[0] if rest else 1

    def end_sum(self, m, name):
        """Say what a sum comes to after a pass over a row."""
        n, over = m.number, self.divisor(m)
        if n in self.late:
            scaled = "" if over == 1 else f" / {self.literal(float(over), m.dtype)}"
            if name is not None:
                place = self.result_names[n]
                target = self.element(place, self.digits[n]) if self.digits[n] else place
                self.say(f"{target} += {name}{scaled}")
            return
        if over != 1:
            self.say(f"{name} /= {self.literal(float(over), m.dtype)}")
        self.local[n] = name
        self.store_row(n)

    def function(self, name, parameters):
        body = []
        for depth, text, line in self.text:
            body.append("    " * depth + text + (f"  # {line}" if line else ""))
        rows = " of ".join(str(b // a) for a, b in self.extents) or "numbers"
        head = f"def {name}(first, last{''.join(', ' + p for p in parameters)}):"
        self.writer.loops[name] = canonical("\n".join([head, *("    " * d + t for d, t, _ in self.text)]))
        self.writer.shown.append(plain("\n".join([f"{head}  # {rows}", *body])))


def is_bool(dtype):
    return dtype.kind == "b"


def kind(dtype):
    """The name of a type in a loop."""
    return "bool_" if is_bool(dtype) else str(dtype)


def stand_in(m, nest):
    """Return what stands for a sum, with the shape of its operand."""
    return _Whole(m, nest)


class _Whole:
    def __init__(self, m, nest):
        x = nest.source[m.args[0].number]
        self.shape, self.number, self.name, self.dtype = x.shape, "whole", m.name, m.dtype
        nest.digits.setdefault("whole", nest.all)


def bracketed(text):
    """An operand, in brackets if it is more than a name, a call or an element."""
    simple = re.fullmatch(r"[«»\w.()‹›:+-]*?\w+(\[[\w, ]*\])?|‹[^›]*›|«\w+\(»[^«»]*«\)»", text)
    if simple and not text.startswith("-"):
        return text
    depth = 0
    if re.match(r"\w+\(", text) and text.endswith(")"):
        for i, c in enumerate(text):
            depth += (c == "(") - (c == ")")
            if depth == 0 and c == ")":
                return text if i == len(text) - 1 else f"({text})"
    return f"({text})"


def plain(text):
    """The text as it is read."""
    return re.sub(r"«[^»]*»", "", re.sub(r"‹\w+:([^›]*)›", r"\1", text))


WORDS = {*"True False def for in if else return range min max not and or abs first last inf nan counted".split()}


def canonical(text):
    """The text as it is compiled: with its own types, and the same for all nests that do the same."""
    text = re.sub(r"‹(\w+):([^›]*)›", r"\1(\2)", text).replace("«", "").replace("»", "")
    names: dict = {}

    def renamed(found):
        name = found[0]
        if name in WORDS or name in SPACE_NAMES:
            return name
        return names.setdefault(name, f"x{len(names)}")

    body = re.sub(r"(?<![\w.])[A-Za-z_]\w*", renamed, text)
    return re.sub(r"^def \w+", "def loop", body)


SPACE_NAMES = {*"float32 float64 int32 int64 bool_ sqrt empty larger smaller largest smallest".split(), *LONG_NAMES}
