"""The texts of copies: what a kernel sees as it moves, its transpose, pooling and picks as loops in plain Python."""

from math import prod

import numpy as np

from ..arrays.kernels import conv, pool
from . import nests
from .kernels import added_at, axes_of, windows_added
from .loop_text import bracketed, canonical, literal, number_in, plain
from .pooling import spread, spread_by_channel
from .steps import Ref

LEAD, PLACES, TAPS = ("n", "m"), ("i", "j", "i2"), ("k", "l", "k2")
VIEWS = {"swapaxes", "transpose"}
COPIES = {"ascontiguousarray", "copy"}
INDICES = (*LEAD, "i", "j", "k", "l")
COST = 0.4  # nanoseconds an element, about


class Text:
    """Writes one nest: its function goes to the writer's loops, its call is returned."""

    reads_through = True

    def __init__(self, one, writer, memory):
        self.one, self.writer, self.memory, self.step = one, writer, memory, one.step
        self.inside = {m.number: m for m in one.members}
        self.parameters, self.body, self.depth, self.said = {}, [], 1, ""

    def say(self, text, line=""):
        self.body.append((self.depth, text, line))

    def begin(self, text):
        self.say(text)
        self.depth += 1

    # -- what is read

    def value(self, a, at, dtype):
        """The text of an operand at some indices."""
        if type(a) is not Ref:
            return literal(a, dtype)
        step = self.writer.steps[a.number]
        at = ["0" if n == 1 else i for i, n in zip(at[len(at) - len(step.shape) :], step.shape)] if step.shape else []
        if a.number not in self.inside:
            return self.element(step, at)
        if step.name in VIEWS:
            return self.value(step.args[0], permuted(step, at), dtype)
        if step.name in COPIES:
            return self.value(step.args[0], at, dtype)
        pattern, _ = nests.formula_of(step)
        if step.name == "kept":
            pattern = f"{{0}} if {{1}} else {literal(0.0, dtype)}"
        terms = [self.value(x, at, dtype) for x in nests.operands_of(step)]
        apart = "({}" in pattern and not pattern.startswith("{")
        return pattern.format(*(t if apart else bracketed(t) for t in terms))

    def element(self, step, at):
        """An element of an array from outside, which is handed over without its dims of size 1."""
        name = self.writer.names[step.number]
        sizes = [n for n in step.shape if n != 1]
        if not sizes:
            self.parameters[name] = number_in(name, step.shape)
            return name
        self.parameters[name] = name if len(sizes) == len(step.shape) else f"{name}.reshape({listed(sizes)})"
        return f"{name}[{', '.join(i for i, n in zip(at, step.shape) if n != 1)}]"

    # -- what is written

    def result(self, m, sizes, text):
        """The name of a result, which the nest writes to in some shape."""
        name = self.writer.names[m.number] = self.writer.name_of(m)
        buffer = self.memory.buffer(m)
        text.append(f"{name} = {buffer or f'np.empty({m.shape}, {self.writer.text(m.dtype)})'}")
        self.parameters[name] = name if tuple(sizes) == m.shape else f"{name}.reshape({listed(sizes)})"
        return name

    def finished(self, text, rows, work, what, once=False):
        """The lines of the call; ``work``: in elements."""
        writer, name = self.writer, self.writer.fresh("loop")
        head = f"def {name}(first, last, {', '.join(self.parameters)}):"
        compiled = [head, *("    " * d + t for d, t, _ in self.body)]
        shown = [f"{head}  # {what}"]
        shown += ["    " * d + t + (f"  # {line}" if line else "") for d, t, line in self.body]
        writer.loops[name] = canonical("\n".join(compiled))
        writer.shown.append(plain("\n".join(shown)))
        given = ", ".join(self.parameters.values())
        large = work * COST > nests.THREADED and rows > 1 and not once
        text.append(f"in_rows({name}, {rows}, {given})" if large else f"{name}(0, {rows}, {given})")
        return text


def listed(sizes):
    return ", ".join(map(str, sizes))


def permuted(view, at):
    """The indices of an array, from those of a transposed view of it."""
    order = [*range(len(at))]
    if view.name == "swapaxes":
        a, b = view.args[1:]
        order[a], order[b] = order[b], order[a]
    else:
        axes = view.args[1:] if len(view.args) > 2 else view.args[1] if len(view.args) == 2 else None
        order = axes or order[::-1]
    found = [""] * len(at)
    for i, d in zip(at, order):
        found[d] = i
    return found


class Axis:
    """One axis of a window: the loops and indices with which a nest goes along it."""

    def __init__(self, facts, place, tap):
        self.size, self.count, self.taps, self.stride, self.padding, self.dilation = facts
        self.place, self.tap = place, tap
        reach = self.dilation * (self.taps - 1) + 1
        self.inside = not self.padding and (self.count - 1) * self.stride + reach <= self.size

    @property
    def element(self):
        """The index of the element under a position of the kernel at a place."""
        place = times(self.place, self.stride)
        tap = f" + {times(self.tap, self.dilation)}" if self.taps > 1 else ""
        text = place + tap + (f" - {self.padding}" if self.padding else "")
        return text if text == self.place else f"«counted(»{text}«)»"

    def over_places(self):
        """The line of a loop over the places at which a position of the kernel lies inside."""
        if self.inside:
            return f"for {self.place} in range({self.count}):"
        tap = times(self.tap, self.dilation) if self.taps > 1 else "0"
        low, high = f"{self.padding} - {tap}", f"{self.size + self.padding} - {tap}"
        if self.stride > 1:
            low = f"-(({tap} - {self.padding}) // {self.stride})"
            high = f"({self.size + self.padding - 1} - {tap}) // {self.stride} + 1"
        return f"for {self.place} in range(max({low}, 0), min({high}, {self.count})):"

    def over_all(self):
        return f"for {self.place} in range({self.count}):"

    def over_taps(self):
        return f"for {self.tap} in range({self.taps}):"


def times(name, n):
    return name if n == 1 else f"{name} * {n}"


def axes_in(window):
    d = len(window.sizes)
    return [Axis(*facts) for facts in zip(axes_of(window), PLACES[:d], TAPS[:d])]


def in_words(window):
    return f"windows of {'x'.join(map(str, window.kernel))}"


class Columns(Text):
    """The windows of (N, C, *sizes) as (C * taps, N * places)."""

    def lines(self):
        x, window = self.step.args
        samples, channels = self.writer.steps[x.number].shape[:2]
        axes, text = axes_in(window), []
        sizes = channels, *window.kernel, samples, *window.counts
        places = [a.place for a in axes]
        first, second = ("n", "m") if samples > 1 else ("m", "n")
        self.begin(f"for {first} in range(first, last):")
        self.begin(f"for {second} in range({channels if first == 'n' else samples}):")
        for a in axes:
            self.begin(a.over_taps())
        value = self.value(x, ["n", "m", *(a.element for a in axes)], self.step.dtype)
        out = self.result(self.step, sizes, text)
        place = f"{out}[m, {', '.join(a.tap for a in axes)}, n, {', '.join(places)}]"
        depth = self.depth
        if not all(a.inside for a in axes):
            for a in axes:
                self.begin(a.over_all())
            self.say(f"{place} = {literal(0.0, self.step.dtype)}")
            self.depth = depth
        for a in axes:
            self.begin(a.over_places())
        self.say(f"{place} = {value}", self.step.line)
        rows = samples if first == "n" else channels
        return self.finished(text, rows, prod(sizes), f"{samples} of {channels} planes: {in_words(window)}")


class Added(Text):
    """Each element (N, C, *sizes) is the sum of what the windows have in its place."""

    reads_through = False

    def lines(self):
        parts, (channels, samples), window = self.step.args
        axes, text, dtype = axes_in(window), [], self.step.dtype
        sizes = channels, *window.kernel, samples, *window.counts
        name = self.writer.names[parts.number]
        self.parameters[name] = f"{name}.reshape({listed(sizes)})"
        out = self.result(self.step, (samples, channels, *window.sizes), text)
        self.begin("for n in range(first, last):")
        self.begin(f"for m in range({channels}):")
        for a in axes:
            self.begin(f"for {a.place} in range({a.size}):")
        self.say(f"{out}[n, m, {', '.join(a.place for a in axes)}] = {literal(0.0, dtype)}")
        self.depth = 3
        for a in axes:
            self.begin(a.over_taps())
        for a in axes:
            self.begin(a.over_places())
        part = f"{name}[m, {', '.join(a.tap for a in axes)}, n, {', '.join(a.place for a in axes)}]"
        self.say(f"{out}[n, m, {', '.join(a.element for a in axes)}] += {part}", self.step.line)
        return self.finished(text, samples, prod(sizes), f"{samples} of {channels} planes: {in_words(window)}")


class Largest(Text):
    """The maximum under the kernel, and its place: of equal ones the first, of nan the last."""

    def lines(self):
        x, window, _ = self.step.args
        shape, dtype = self.writer.steps[x.number].shape, self.writer.steps[x.number].dtype
        lead, axes, text = [*LEAD[: len(shape) - 2]], axes_in(window), []
        inside = all(a.inside for a in axes)
        value = self.value(x, [*lead, *(a.element for a in axes)], dtype)
        items = {m.args[1]: m for m in self.one.members if m.kind == "item" and m.number in self.one.results}
        results = {i: self.result(m, m.shape, text) for i, m in items.items()}
        self.begin("for n in range(first, last):")
        for name, size in zip(lead[1:], shape[1:]):
            self.begin(f"for {name} in range({size}):")
        for a in axes:
            self.begin(a.over_all())
        fresh = self.writer.fresh
        best, at, found, new = fresh("best"), fresh("at"), fresh("found"), fresh("new")
        depth = self.depth
        self.say(f"{best} = {literal(-np.inf, dtype)}")
        self.say(f"{at} = ‹int32:{0 if inside else -1}›")
        for a in axes:
            self.begin(a.over_taps())
        if not inside:
            bounds = [(plain_element(a), a.size) for a in axes if not a.inside]
            tests = [f"({e} >= 0) & ({e} < {size})" for e, size in bounds]
            self.begin(f"if {' & '.join(tests)}:")
        y, z = axes
        if inside:  # counted from the first element under the kernel
            place = f"{times(y.tap, y.dilation * z.size)} + {times(z.tap, z.dilation)}"
        else:
            place = f"({plain_element(y)}) * {z.size} + {plain_element(z)}"
        self.say(f"{found} = {value}", self.step.line)
        first = f" | ({at} < 0)" if not inside else ""
        self.say(f"{new} = ({found} > {best}) | ({found} != {found}){first}")
        self.say(f"{best} = {found} if {new} else {best}")
        if 1 in items:
            self.say(f"{at} = «int32(»{place}«)» if {new} else {at}")
        elif not inside:
            self.say(f"{at} = ‹int32:0›")
        self.depth = depth
        indices = ", ".join([*lead, *(a.place for a in axes)])
        if 0 in items:
            self.say(f"{results[0]}[{indices}] = {best}")
        if 1 in items:
            base = f"«int32(»{times(y.place, y.stride * z.size)} + {times(z.place, z.stride)}«)» + {at}"
            self.say(f"{results[1]}[{indices}] = {base if inside else at}")
        rows = shape[0] if lead else 1
        work = prod(shape[:-2]) * window.places * window.taps
        return self.finished(text, rows, 2 * work, f"{prod(shape[:-2])} planes: the largest in {in_words(window)}")


def plain_element(axis):
    return axis.element.replace("«counted(»", "").replace("«)»", "")


class Spread(Text):
    """The g that have the same place in their plane, added up; planes by sample, or by channel first."""

    def lines(self):
        g, places, sizes = self.step.args
        shape = self.writer.steps[places.number].shape
        lead, text = [*LEAD[: len(shape) - 2]], []
        channels_first = self.step.function is spread_by_channel
        order = lead[::-1] if channels_first else lead
        counts = dict(zip(lead, shape))
        out = self.result(self.step, (*(counts[i] for i in order), prod(sizes)), text)
        self.begin(f"for {order[0] if order else 'n'} in range(first, last):")
        for name in order[1:]:
            self.begin(f"for {name} in range({counts[name]}):")
        depth, front = self.depth, "".join(i + ", " for i in order)
        self.begin(f"for i in range({prod(sizes)}):")
        self.say(f"{out}[{front}i] = {literal(0.0, self.step.dtype)}")
        self.depth = depth
        self.begin(f"for i in range({shape[-2]}):")
        self.begin(f"for j in range({shape[-1]}):")
        at = [*lead, "i", "j"]
        value = self.value(g, at, self.step.dtype)
        self.say(f"{out}[{front}{self.value(places, at, np.dtype('int32'))}] += {value}", self.step.line)
        rows = counts[order[0]] if order else 1
        return self.finished(text, rows, prod(self.step.shape) + 4 * prod(shape), f"{prod(shape[:-2])} planes")


class AddedAt(Text):
    """Zeros, with what x has added where it says: elements in the flattened array, or rows if x has those."""

    reads_through = False

    def lines(self):
        x, shape, where = self.step.args
        values, index = (a if type(a) is np.ndarray else self.writer.steps[a.number] for a in (x, where))
        text, zero = [], literal(0.0, self.step.dtype)
        row = prod(values.shape) // prod(index.shape)
        rows, count = prod(shape) // row, prod(index.shape)
        x_name, where_name = self.writer.text(x), self.writer.text(where)
        self.parameters[x_name] = f"{x_name}.reshape({count}, {row})"
        self.parameters[where_name] = f"{where_name}.reshape({count})"
        out = self.result(self.step, (rows, row), text)
        self.begin(f"for i in range({rows}):")
        self.begin(f"for j in range({row}):")
        self.say(f"{out}[i, j] = {zero}")
        self.depth = 1
        place = self.writer.fresh("place")
        self.begin("for i in range(first, last):")
        self.say(f"{place} = {where_name}[i]")
        self.say(f"{place} += {rows} if {place} < 0 else 0")
        self.begin(f"if ({place} >= 0) & ({place} < {rows}):")
        self.begin(f"for j in range({row}):")
        self.say(f"{out}[{place}, j] += {x_name}[i, j]", self.step.line)
        return self.finished(text, count, prod(values.shape), f"{count} of {row}", once=True)


class Rearranged(Text):
    """The elements of transposed views in their order, with what is computed with them on the way."""

    def lines(self):
        step, text = self.step, []
        copied = step.name in COPIES or step.name == "reshape"
        shape = self.writer.steps[step.args[0].number].shape if copied else step.shape
        at = [*INDICES[: len(shape)]]
        value = self.value(step.args[0] if copied else Ref(step.number), at, step.dtype)
        out = self.result(step, shape, text)
        self.begin(f"for {at[0]} in range(first, last):")
        for name, size in zip(at[1:], shape[1:]):
            self.begin(f"for {name} in range({size}):")
        self.say(f"{out}[{', '.join(at)}] = {value}", step.line)
        return self.finished(text, shape[0], prod(shape), " of ".join(map(str, shape)))


TEXTS = {conv.window_columns: Columns, windows_added: Added, pool.largest_under: Largest, spread: Spread,
         spread_by_channel: Spread, added_at: AddedAt}  # fmt: skip
