"""The text of a nest: its passes as loops in plain Python."""

from collections import Counter

import numpy as np

from .digits import digits_of
from .loop_text import bracketed, canonical, is_bool, kind, literal, number_in, plain
from .nests import EXTREMES, INDICES, INT32, INT64, SHORT, THREADED, fits, operands_of
from .passes import AT_ONCE, Passes
from .plan import uses
from .steps import Ref


class Text(Passes):
    """Writes one nest: its function goes to the writer's loops, its call is returned.

    What differs between the text that is read and the text that is compiled stands between brackets of its own:
    a number ``‹0.5›`` is of the type of the loop, and a cast ``«int32(...)»`` takes place in machine code alone.
    """

    # -- names and places

    def parameter(self, key, text):
        """The name of an array or number that comes from outside."""
        if key not in self.parameters:
            name = text.partition(".")[0]
            self.parameters[key] = name, text
        return self.parameters[key][0]

    def element(self, name, digits):
        indices, _ = self.subscript(digits)
        return f"{name}[{', '.join(indices)}]" if indices else name

    def outside(self, a, whole, within):
        """The text of an operand that comes from outside."""
        if type(a) is Ref:
            step, name = self.writer.steps[a.number], self.writer.names[a.number]
            digits, shape, key, dtype = digits_of(step.shape, whole, within), step.shape, a.number, step.dtype
        else:
            digits, shape, name, key = digits_of(a.shape, whole, within), a.shape, self.writer.constant(a), id(a)
            dtype = a.dtype
        _, sizes = self.subscript(digits)
        if not digits:
            text = number_in(name, shape)
        else:
            text = given(name, shape, sizes, dtype)
        name = self.parameter(key, text) if digits else self.number(key, name, text)
        element = self.element(name, digits)
        return f"«widened(»{element}«)»" if dtype == SHORT else element

    def number(self, key, name, text):
        if key not in self.parameters:
            self.parameters[key] = name, text
        return self.parameters[key][0]

    # -- expressions

    def term(self, a, m, at, dtype):
        """The text of an operand of a member in a pass, in the dtype in which it computes."""
        if type(a) is Ref and a.number in self.members:
            text, own = self.value(self.base[a.number], at), self.members[a.number].dtype
        elif type(a) is Ref or isinstance(a, np.ndarray):
            text = self.outside(a, m.shape, self.digits[m.number])
            own = self.writer.steps[a.number].dtype if type(a) is Ref else a.dtype
        else:
            return literal(a, dtype)
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
        if found.kind not in "iub" or (is_bool(found) and not numbers):
            return found
        if any(type(a) is float for a in numbers):
            return np.dtype("float64")
        # A number need not be one of the array's dtype, and short integers are computed with as if they were longer.
        whole = INT64 if is_bool(found) else np.promote_types(found, INT32)
        return whole if all(fits(a, whole) for a in numbers) else INT64

    def expression(self, m, at):
        pattern, _ = self.formula[m.number]
        dtype = self.computes_in(m)
        if m.name == "where":
            condition, *rest = m.args
            terms = [self.term(condition, m, at, np.dtype(bool)), *(self.term(a, m, at, m.dtype) for a in rest)]
        elif m.name == "kept":
            terms = [self.term(m.args[0], m, at, m.dtype), self.term(m.args[1], m, at, np.dtype(bool))]
            pattern = f"{{0}} if {{1}} else {literal(0.0, m.dtype)}"
        else:
            terms = [self.term(a, m, at, dtype) for a in operands_of(m)]
            if m.name in ("logical_and", "logical_or") and not is_bool(dtype):
                terms = [f"{bracketed(t)} != 0" for t in terms]
        if "1 /" in pattern:
            pattern = pattern.replace("1", literal(1.0, dtype))
        apart = "({}" in pattern and not pattern.startswith("{")
        text = pattern.format(*(terms if apart else map(bracketed, terms)))
        if m.name == "astype":
            to = m.dtype
            if to == SHORT:
                return f"bfloat16({terms[0]})"
            return f"{kind(to)}({terms[0]})" if not is_bool(to) else f"({bracketed(terms[0])} != 0)"
        if m.dtype == SHORT:
            return f"«bfloat16(»{text}«)»"
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
            if m.dtype == SHORT and self.scratch[n] in self.kept_names:
                text = f"«widened(»{text}«)»"
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
            call = given(writer.names[n], shape, sizes, self.members[n].dtype)
            self.parameters["out", n] = self.result_names[n], call
        sums = [k for k in self.parameters if type(k) is tuple and k[0] == "out" and k[1] in self.late]
        for k in sums:  # what each thread has its own of comes last
            self.parameters[k] = self.parameters.pop(k)
        for held, dtype in self.rows_held:
            _, sizes = self.subscript(self.row_digits)
            self.parameters["held", held] = held, f"np.empty({sizes}, {writer.text(dtype)})"
        inner = [p for p, _ in self.parameters.values()]
        texts = [t for _, t in self.parameters.values()]
        if returned:
            self.depth = 1
            self.say(f"return {', '.join(self.result_names[n] for n in returned)}{',' * (len(returned) == 1)}")
        self.function(name, inner)
        apart = "".join(f", {k}={n}" for k, n in (("sums", len(sums)), ("held", len(self.rows_held))) if n)
        call = f"in_rows({name}, {rows}, {', '.join(texts)}{apart})" if self.cost() > THREADED else (
            f"{name}(0, {rows}, {', '.join(texts)})")  # fmt: skip
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

    def allocated(self, text, m, dtype, how):
        name = self.writer.names[m.number]
        buffer = self.memory.buffer(m) if how == "np.empty" else None
        text.append(f"{name} = {buffer or f'{how}({m.shape}, {self.writer.text(dtype)})'}")

    def loop(self, i, first=None):
        a, b = self.extents[i]
        return f"for {INDICES[i]} in range({first or b // a}):"

    def body(self):
        """The lines of the function."""
        outer = self.extents[: self.cut]
        totals = [m for m in self.real if m.number in self.late and not self.digits[m.number]]
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
            sums = [m for m in self.real if self.formula[m.number] is None and self.pass_of(m) == at]
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
                value = f"«shortened(»{value}«)»" if m.dtype == SHORT else value
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
        self.count = Counter(dict.fromkeys(self.stage, 2))
        for m in self.real:
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
        self.say(f"{name} = {literal(begin, m.dtype)}")
        return name

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

    def end_sum(self, m, name):
        """Say what a sum comes to after a pass over a row."""
        n, over = m.number, self.divisor(m)
        if n in self.late:
            scaled = "" if over == 1 else f" / {literal(float(over), m.dtype)}"
            if name is not None:
                place = self.result_names[n]
                target = self.element(place, self.digits[n]) if self.digits[n] else place
                self.say(f"{target} += {name}{scaled}")
            return
        if over != 1:
            self.say(f"{name} /= {literal(float(over), m.dtype)}")
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


def given(name, shape, sizes, dtype):
    """Return how an array is handed over, in some sizes; Numba knows no bfloat16, but its bits."""
    name += ".view(np.uint16)" if dtype == SHORT else ""
    return name if shape == sizes else f"{name}.reshape({', '.join(map(str, sizes))})"


def stand_in(m, nest):
    """Return what stands for a sum, with the shape of its operand."""
    return _Whole(m, nest)


class _Whole:
    def __init__(self, m, nest):
        x = nest.source[m.args[0].number]
        self.shape, self.number, self.name, self.dtype = x.shape, "whole", m.name, m.dtype
        nest.digits.setdefault("whole", nest.all)
