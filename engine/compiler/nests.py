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
from collections import Counter
from math import prod
from typing import Any

import numpy as np

from ..arrays import dtypes
from . import chains, fuse
from .digits import digits_of, is_chain, joined
from .plan import ufunc_of, uses
from .steps import Ref

# How an operation is written, and what it takes about, in nanoseconds an element (one thread, in the cache).
CHEAP, ROOT, LONG = 0.1, 0.3, 0.8
LONG_NAMES = "exp", "exp2", "expm1", "log", "log1p", "log2", "tanh", "erf", "erfc", "expit", "sin", "cos"
FORMULAS = {
    "add": ("{} + {}", CHEAP), "subtract": ("{} - {}", CHEAP), "multiply": ("{} * {}", CHEAP),
    "divide": ("{} / {}", ROOT), "negative": ("-{}", CHEAP), "absolute": ("abs({})", CHEAP),
    "square": ("{0} * {0}", CHEAP), "sqrt": ("sqrt({})", ROOT),
    "maximum": ("larger({}, {})", CHEAP), "minimum": ("smaller({}, {})", CHEAP),
    "equal": ("{} == {}", CHEAP), "not_equal": ("{} != {}", CHEAP), "less": ("{} < {}", CHEAP),
    "less_equal": ("{} <= {}", CHEAP), "greater": ("{} > {}", CHEAP), "greater_equal": ("{} >= {}", CHEAP),
    "bitwise_and": ("{} & {}", CHEAP), "bitwise_or": ("{} | {}", CHEAP), "bitwise_xor": ("{} != {}", CHEAP),
    "logical_and": ("{} & {}", CHEAP), "logical_or": ("{} | {}", CHEAP),
    "invert": ("not {}", CHEAP), "logical_not": ("not {}", CHEAP), "isnan": ("{0} != {0}", CHEAP),
    "where": ("{1} if {0} else {2}", CHEAP), "kept": ("{0} if {1} else 0.0", CHEAP), "astype": ("{}", CHEAP),
    **{name: (name + "({})", LONG) for name in LONG_NAMES},
}  # fmt: skip
FREQUENT = {"add": FORMULAS["add"], "sub": FORMULAS["subtract"], "mul": FORMULAS["multiply"]}  # operators
OF_BOOLS = {"bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "invert", "logical_not"}
ON_BOOLS = {"add": "bitwise_or", "maximum": "bitwise_or", "multiply": "bitwise_and", "minimum": "bitwise_and"}
FLOATS = np.dtype("float32"), np.dtype("float64")
INT32, INT64 = np.dtype("int32"), np.dtype("int64")
NUMBERS = (*FLOATS, INT32, INT64, np.dtype("bool"))
SOURCES = (*NUMBERS, np.dtype("uint8"), np.dtype("int8"), np.dtype("int16"))  # what may be cast to one of these
SHORT = dtypes.bfloat16.np  # in loops it is float32, rounded after each operation
COMPUTED, READ = (*NUMBERS, SHORT), (*SOURCES, SHORT)
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
    if step.kind == "operator" and name in FREQUENT and step.dtype.kind != "b":
        return FREQUENT[name]
    if name not in ("where", "kept", "astype"):
        ufunc = ufunc_of(step)
        if ufunc is None:
            return None
        name = "divide" if ufunc is np.divide else ufunc.__name__
    if step.dtype == bool:
        name = ON_BOOLS.get(name, name)
    elif name in OF_BOOLS:
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


def fits(number, dtype):
    """Return whether a dtype of integers has a number."""
    about = np.iinfo(dtype)
    return about.min <= number <= about.max


class Nest(chains.Group):
    """The steps that can be one nest with a first one."""

    rewrites: tuple = (without_ones,)
    text: Any = None  # what writes it down

    def __init__(self, source, written):
        super().__init__(source, written)
        self.digits, self.ends, self.row, self.late = {}, {1}, None, set()
        self.arrays = set()
        self.formulas: dict = {}  # number of an elementwise member -> how it is written, and what it takes

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
        if step.shape is None or step.where or step.dtype not in COMPUTED:
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
        if step.dtype == SHORT and (digits != self.all or not digits):
            return False
        ends = self.ends.union(*(r for d in (digits, *operands.values()) for r in d)) if self.all else self.ends
        new = [n for n in operands if n not in self.inside]
        arrays = self.arrays.union(new) if new else self.arrays
        if len(arrays) > MAX_ARRAYS or (ends != self.ends and not is_chain(ends)):
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
            if step.shape is None or step.dtype not in READ or step.where or step.owner in self.written:
                return None
            digits = digits_of(step.shape, whole, within)
            if step.dtype == SHORT and not digits:
                return None
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
        return (("number", 0), ()) if type(a) in (float, bool) or (type(a) is int and fits(a, INT64)) else None

    def elementwise(self, step):
        formula = formula_of(step)
        if formula is None or step.owner != step.number:
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
        given = operands_of(step)
        operands = [self.operand(a, step.shape, within) for a in given]
        if None in operands or not any(type(a) is Ref for a in given):
            return None
        self.formulas[step.number] = formula
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

    def is_number(self, member):
        """Return whether a member computes one number from others."""
        return member.shape == () and member.number in self.formulas

    def as_one(self, needed):
        """The steps as one, where that is quicker than one after the other."""
        work = [m for m in self.members if not is_alias(m)]
        steps = sum(NUMBER if self.is_number(m) else NUMPY_CALL + prod(m.shape or ()) * 0.25 for m in work)
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
        return self.nest.text(self, writer, memory).lines()
