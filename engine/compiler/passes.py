"""Passes: in which pass over a row a nest computes each of its values, and where it holds those for later."""

from collections import Counter
from itertools import pairwise
from math import prod

import numpy as np

from .digits import joined
from .nests import CHEAP, INDICES, SHORT, is_alias
from .plan import uses

AT_ONCE = 2048  # elements that are added up in float32 before their sum joins one in float64


class Passes:
    """The extents of a nest and the passes over its rows."""

    def __init__(self, one, writer, memory):
        self.one, self.writer, self.memory, self.nest = one, writer, memory, one.nest
        self.members = {m.number: m for m in one.members}
        self.formula = {m.number: one.nest.formulas.get(m.number) for m in one.members}
        self.real = [m for m in one.members if not is_alias(m)]
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

    def stages(self):
        """Find the pass over the row in which each full value is computed, and when each row value is ready."""
        self.stage, self.passes = {}, 1
        for m in self.real:
            inputs = [self.stage[self.base[n]] for n in uses(m) if n in self.members]
            at = max(inputs, default=0)
            if self.formula[m.number] is None and m.number not in self.late:
                at += 1  # ready when the pass is over
                self.passes = max(self.passes, at + 1)
            self.stage[m.number] = at
        self.passes = max((self.stage[m.number] + 1 for m in self.real if self.in_pass(m)), default=1)

    def in_pass(self, m):
        """Return whether a member has work to do inside of a pass over the row."""
        return self.is_full(m.number) or self.formula[m.number] is None

    def pass_of(self, m):
        """The pass in which a member computes: a sum of a row, in the one before it is ready."""
        return self.stage[m.number] - (self.formula[m.number] is None and m.number not in self.late)

    def subscript(self, digits):
        """The indices of a value with these digits, and the sizes of the array that has it."""
        if not digits:
            return [], ()
        inside = [i for i, (a, b) in enumerate(self.extents) if any(x <= a and b <= y for x, y in digits)]
        return [INDICES[i] for i in inside], tuple(self.extents[i][1] // self.extents[i][0] for i in inside)

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
        for m in self.real:
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
                free = self.is_full(k) and k not in taken and self.members[k].dtype == m.dtype != SHORT
                if free and self.stage[k] >= until:
                    self.scratch[n], self.lent[n] = self.result_names[k], k
                    taken.add(k)
                    break
            else:
                name = self.writer.fresh("held")
                self.scratch[n] = name
                self.rows_held.append((name, np.dtype("float32") if m.dtype == SHORT else m.dtype))
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

    def sum_dtype(self, m):
        """Return the dtype in which a sum over all rows is added up."""
        rows = self.nest.size // max(prod(m.shape), 1)
        return np.dtype("float64") if rows > AT_ONCE else m.dtype

    def divisor(self, m):
        if m.name == "mean":
            return self.nest.size // max(prod(m.shape), 1)
        rest = m.args[len(uses(m)) + 1 :] if m.kind == "function" else ()
        if m.name == "products_along":
            rest = m.args[3:]
        elif m.name == "sums_along":
            rest = m.args[2:]
        return rest[0] if rest else 1

    def inner_digits(self, m):
        """Return whether a sum over all rows depends on the place in the row."""
        indices, _ = self.subscript(self.digits[m.number])
        inner = {INDICES[i] for i in range(self.cut, len(self.extents))} if len(self.extents) > 1 else set()
        return bool(inner & set(indices))

    def cost(self):
        """Estimate what the nest takes on one thread, in nanoseconds."""
        moved = sum(1 for n in (*self.stored, *self.parameters))
        work = (self.formula[m.number] for m in self.real if self.in_pass(m))
        each = sum(CHEAP if formula is None else formula[1] for formula in work)
        return self.nest.size * (each + 0.08 * moved)
