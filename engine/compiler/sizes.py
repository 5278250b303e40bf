"""Sizes: one capture for many sizes of some dimensions, generalized from three.

A function is captured for the sizes of the call, for a small one and for a large one, and the capture holds for what
lies between: what a program does from some size on shows in one of them.  Where the three tapes have the same steps,
each number that differs must be an expression of the sizes: ``k * n + c``, ``k / n``, ``n / (n - 1)``, with n a size or
a product of some.  What is no such expression, or a function that compares sizes itself, is captured size by size.
"""

import math
import operator
from functools import reduce
from itertools import combinations

import numpy as np

from ..arrays.devices import cpu, device_of, moved
from ..arrays.dispatch import device_names, modules
from ..core.tensor import Tensor
from .plan import argument_key
from .steps import NESTED, GraphBreak, Ref, Step, parts_of

MAX_VARYING = 3  # sizes that vary
SMALL_SHARES = (0, 0.5, 1)  # how small the small one is, as a part of the call's: the next where a function needs more
ROOM = 2**16  # elements up to which the large one is 16 times the call's, not twice


class Dim(int):
    """A size of an array in the capture's own call, which is shown as what it is in all others."""

    def __new__(cls, value, text):
        self = int.__new__(cls, value)
        self.text = text
        return self

    def __str__(self):
        return self.text


class Sizes:
    """The dimensions of arguments that may have many sizes: {(argument, axis): number of the size}."""

    def __init__(self, dims, arrays, small):
        """``arrays``: {argument: its array}; ``small``: one of SMALL."""
        self.dims = dims
        self.values = [[] for _ in range(len(set(dims.values())))]
        for (argument, axis), i in dims.items():
            n = arrays[argument].shape[axis]
            low = max(2, int(small * n) + (small == 1)) + i
            self.values[i] = [n, low + (low == n), (16 if 16 * arrays[argument].size <= ROOM else 2) * n + 1 + i]
        while any(collinear(*pair) for pair in combinations([n for _, n in self.products()], 2)):
            self.values[-1][2] += 1

    def products(self):
        """[(numbers of sizes, their product in each example)]; none is a linear function of another."""
        every = range(len(self.values))
        chosen = [c for n in every for c in combinations(every, n + 1)]
        return [(c, [math.prod(self.values[i][e] for i in c) for e in range(3)]) for c in chosen]

    def resized(self, argument, x, example):
        """The array of an argument in the sizes of an example; its rows come again."""
        for (a, axis), i in self.dims.items():
            if a == argument:
                rows = np.arange(self.values[i][example]) % x.shape[axis]
                x = modules[type(x)].take(x, moved(rows, device_of(x)), axis)
        return x

    def axes(self, argument):
        return {axis: i for (a, axis), i in self.dims.items() if a == argument}


def varying(leaves, before, always):
    """{(argument, axis): number} of sizes that differ from those ``before``, or, if ``always``, are of a first axis."""
    found: dict = {}
    for i, t in enumerate(leaves):
        if not isinstance(t, Tensor) or isinstance(t.array, np.generic) or not t.array.flags.c_contiguous:
            continue
        shape = t.array.shape
        for axis, n in enumerate(shape):
            others = tuple(s[i][axis] for s in before if i in s and len(s[i]) == len(shape))
            if n >= 2 and ((always and axis == 0) or any(n != o for o in others)):
                found[i, axis] = (n, others)
    kinds = list(dict.fromkeys(found.values()))
    return {} if len(kinds) > MAX_VARYING else {where: kinds.index(kind) for where, kind in found.items()}


def collinear(a, b):
    """Return whether three numbers are a linear function of three others."""
    return (a[1] - a[0]) * (b[2] - b[0]) == (a[2] - a[0]) * (b[1] - b[0])


def size_on_device(x, axis):
    """``np.size``, of an array on a device."""
    return x.shape[axis]


def fractions(v, n):
    """Pairs ((k, c), (l, d)) for which (k * n + c) / (l * n + d) may be a number v: shares, means, corrected means."""
    yield (0, round(v * n)), (1, 0)
    yield (0, 1), (round(1 / (v * n)), 0)
    yield (0, round(v * (n - 1))), (1, -1)
    for c in (1, 2, -1, -2):
        yield (0, c), (round((c / v + 1) / n), -1)
    if v != 1:
        k = round(v / (v - 1) / n)
        yield (k, 0), (k, -1)


class Generalized:
    """The steps of three tapes as those of one, for many sizes."""

    def __init__(self, captured, sizes, inputs):
        """``captured``: the Stage of each tape; ``inputs``: {argument: number of its step}."""
        self.sizes, self.expressions, self.first = sizes, {}, []
        for i in range(len(sizes.values)):
            argument, axis = next(where for where, n in sizes.dims.items() if n == i)
            function = size_on_device if captured[0].steps[inputs[argument]].where else np.size
            self.new("function", "size", function, (Ref(inputs[argument]), axis))
        self.products = sizes.products()
        if len({(len(c.steps), c.middle, *c.given) for c in captured}) > 1:
            raise GraphBreak("a size decides which steps there are", " ")
        steps = [self.step(*same) for same in zip(*(c.steps for c in captured))]
        outputs, grads = self.unified([(c.outputs, c.grads) for c in captured], "")
        self.stage = captured[0]._replace(steps=[*self.first, *steps], outputs=outputs, grads=grads)

    def new(self, kind, name, function, args, where=""):
        key = name, where, argument_key(args)
        if key not in self.expressions:
            step = Step(-1 - len(self.first), kind, name, function, args)
            step.where = where
            self.first.append(step)
            self.expressions[key] = Ref(step.number)
        return self.expressions[key]

    def step(self, *same):
        """One step for the same one of three tapes."""
        a = same[0].twin()
        if len({(s.kind, s.name, s.writes, s.owner, s.dtype) for s in same}) > 1:
            raise GraphBreak("a size decides which steps there are", a.line or " ")
        a.args = self.unified([s.args for s in same], a.line)
        a.options = {k: self.unified([s.options.get(k) for s in same], a.line) for k in a.options}
        a.flat = all(s.flat for s in same)
        if a.shape is not None and any(s.shape != a.shape for s in same):
            a.shape = tuple(self.dim([s.shape[d] for s in same]) for d in range(len(a.shape)))
        return a

    def dim(self, values):
        if values[0] == values[1] == values[2]:
            return values[0]
        k, chosen, c = self.linear(values) or (1, (), 0)
        text = "".join("nmk"[i] for i in chosen) or "?"
        return Dim(values[0], f"{k if k != 1 else ''}{text}{f'{c:+d}' if c else ''}")

    def unified(self, values, line):
        """An argument for many sizes; GraphBreak if it is no expression of them."""
        a = values[0]
        kind = type(a)
        if any(type(v) is not kind for v in values):
            raise GraphBreak("a size decides what an argument is", line or " ")
        if kind in NESTED:
            parts = [*map(parts_of, values)]
            if len({*map(len, parts)}) > 1:
                raise GraphBreak("a size decides how many arguments there are", line or " ")
            found = [self.unified(same, line) for same in zip(*parts)]
            return slice(*found) if kind is slice else kind(found)
        if kind is np.ndarray or kind in device_names:
            return self.array(values, line)
        if isinstance(a, np.generic):
            if all(v.dtype == a.dtype and v.tobytes() == a.tobytes() for v in values):
                return a
            number = self.number([v.item() for v in values], line)
            return self.new("function", a.dtype.name, a.dtype.type, (number,))
        if kind in (int, float) and not (values[0] == values[1] == values[2] or all(v != v for v in values)):
            return self.number(values, line)
        if kind in (int, float, bool, str, Ref) and any(v != a for v in values) and a == a:
            raise GraphBreak("a size decides what an argument is", line or " ")
        return a

    def array(self, values, line):
        """A constant array: the same for each size, one number everywhere, or 0, 1, 2, ..."""
        own, where, xp = values[0], device_of(values[0]), modules[type(values[0])]
        place = "" if type(own) is np.ndarray else where.type
        values = [np.asarray(moved(v, cpu)) for v in values]  # a capture looks at the constants on a device
        a = values[0]
        if all(v.shape == a.shape and v.dtype == a.dtype and v.tobytes() == a.tobytes() for v in values):
            return own
        if any(v.ndim != a.ndim or v.dtype != a.dtype for v in values):
            raise GraphBreak("a size decides what a constant array is", line or " ")
        shape = tuple(self.unified([v.shape[d] for v in values], line) for d in range(a.ndim))
        if all(v.size and (v == v.flat[0]).all() for v in values):
            number = self.unified([v.flat[0] for v in values], line)
            return self.new("function", "full", xp.full, (shape, number, a.dtype), where=place)
        axes = [d for d in range(a.ndim) if type(shape[d]) is Ref]
        if len(axes) == 1 and all(v.size for v in values) and a.dtype.kind in "iu":
            ((axis,), first) = axes, a.take([0], axes[0])
            slope = int((a.take(1, axis) - a.take(0, axis)).flat[0])
            ramps = [np.arange(v.shape[axis]).reshape([-1 if d == axis else 1 for d in range(a.ndim)]) for v in values]
            if slope and all(np.array_equal(v, first + slope * r) for v, r in zip(values, ramps)):
                end = self.new("operator", "mul", operator.mul, (shape[axis], slope)) if slope != 1 else shape[axis]
                ramp = self.new("function", "arange", xp.arange, (0, end, slope, a.dtype), where=place)
                if a.ndim > 1:
                    across = tuple(shape[axis] if d == axis else 1 for d in range(a.ndim))
                    ramp = self.new("function", "reshape", xp.reshape, (ramp, across), where=place)
                if first.any() or first.size > 1:
                    ramp = self.new("operator", "add", operator.add, (moved(first, where), ramp))
                return ramp
        raise GraphBreak("a constant array depends on a size", line or " ")

    def linear(self, values):
        """(k, numbers of sizes, c) with k * n + c, n their product; None if it is no such number."""
        for chosen, n in self.products:
            k, rest = divmod(values[1] - values[0], n[1] - n[0])
            c = values[0] - k * n[0]
            if rest == 0 and k and all(v == k * m + c for v, m in zip(values, n)):
                return k, chosen, c
        return None

    def number(self, values, line):
        """A number as an expression of the sizes."""
        exact = all(float(v).is_integer() for v in values)
        found = self.linear([int(v) for v in values]) if exact else None
        if found is not None:
            out = self.expression(*found)
            return out if type(values[0]) is int else self.new("operator", "mul", operator.mul, (out, 1.0))
        for chosen, n in self.products if values[0] else ():
            for (k, c), (j, d) in fractions(values[0], n[0]):
                if j and all(v == (k * m + c) / (j * m + d) for v, m in zip(values, n)):
                    parts = self.expression(k, chosen, c), self.expression(j, chosen, d)
                    return self.new("operator", "truediv", operator.truediv, parts)
        raise GraphBreak("a number depends on a size in a way that is not known", line or " ")

    def expression(self, k, chosen, c):
        """k * n + c, for n the product of some sizes."""
        if not k:
            return c
        product = lambda a, b: self.new("operator", "mul", operator.mul, (a, b))  # noqa: E731
        out = reduce(product, [*(Ref(-1 - i) for i in chosen), *[k] * (k != 1)])
        return out if c == 0 else self.new("operator", "add", operator.add, (out, c))
