"""Copies: what a kernel sees as it moves, its transpose, and pooling, each as one loop nest from array to array.

NumPy copies windows in several passes, through views.  Here a capture writes such a kernel down as one step, and the
plan makes a nest of it: ``FORMULAS`` has what is written down, ``REWRITES`` what is simplified then, and a ``Copy`` is
a step with the cheap elementwise steps and transposed views before it, which are read through, not written to memory.

In a nest, n counts samples, m channels, i and j places of the kernel, k and l the positions within it.
"""

from math import prod

import numpy as np

from ..arrays import dispatch
from ..arrays.kernels import conv, pool
from ..arrays.kernels.products import product
from . import chains, nests
from .capture import Ref, Traced
from .formulas import FORMULAS as OTHERS
from .plan import rename, uses

LEAD, PLACES, TAPS = ("n", "m"), ("i", "j", "i2"), ("k", "l", "k2")
INDICES = (*LEAD, "i", "j", "k", "l")
DEPTH = 16  # steps, one behind the other, that are read through at most
COST = 0.4  # nanoseconds an element, about


# ---- what is written down: formulas of the engine's kernels


def on_host(*arrays):
    """Return whether all are floats in host memory that a capture knows, and no empty ones."""
    return all(type(a) is Traced and a.dtype in nests.FLOATS and a.ndim and a.size for a in arrays)


def emitted(function, x, *args):
    return x.tape.emit("function", function.__name__, function, (x, *args))


def columns(x, window):
    """The columns of x, also if they are small."""
    spaced = any(s.step not in (None, 1) for s in window.inside[1:])
    if not on_host(x) or spaced or not window.places or x.ndim != len(window.sizes) + 2 or x.ndim > 5:
        return None
    return emitted(conv.window_columns, x, window)


def batch_first(out, bias):
    if not on_host(out) or not (bias is None or on_host(bias)):
        return None
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * (out.ndim - 1))
    return in_order(out.swapaxes(0, 1))


def in_order(x):
    return x if x.flags.c_contiguous else x.tape.emit("function", "ascontiguousarray", np.ascontiguousarray, (x,))


def input_array(y, w, bias, window):
    if not on_host(y, w) or not (bias is None or on_host(bias)) or not prod(window.sizes) or y.ndim > 5:
        return None
    parts = product(conv.weight_matrices(w, window).swapaxes(-1, -2), conv.place_rows(y, window))
    out = emitted(windows_added, parts, (w.shape[1] * window.groups, y.shape[0]), window)
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(window.sizes))


def windows_added(parts, channels_and_samples, window):
    """Each element (N, C, *sizes) is the sum of what the windows (C * taps, N * places) have in its place."""
    channels, samples = channels_and_samples
    parts = parts.reshape(channels, *window.kernel, samples, *window.counts)
    return np.ascontiguousarray(conv.add_windows(parts, window, 1).swapaxes(0, 1))


def largest_under(x, window, fill):
    if not on_host(x) or not window.places or not 2 <= x.ndim <= 4 or not all(map(any_inside, axes_of(window))):
        return None
    return emitted(pool.largest_under, x, window, fill)


def maximum_under(x, window, fill):
    found = largest_under(x, window, fill)
    return found and found[0]


def any_inside(axis):
    """Return whether the kernel sees an element at each of its places, along an axis."""
    size, count, taps, stride, padding, dilation = axis
    seen = np.arange(count)[:, None] * stride + np.arange(taps) * dilation - padding
    return bool(((seen >= 0) & (seen < size)).any(1).all())


def axes_of(window):
    """(the size of an array, the places, the taps, stride, padding, dilation) for each axis."""
    return [*zip(window.sizes, window.counts, window.kernel, window.stride, window.padding, window.dilation)]


def elements_at(x, where):
    """The element of the class of each row, as a sum: over all classes, of which one is not 0."""
    if not on_host(x) or not is_class_a_row(x.shape, where) or x.tape.steps[x.number].kind == "input":
        return None
    return either(of_class(x.shape, where), x, 0.0).sum(-1, None, None, keepdims=False)


def zeros_but(x, shape, where):
    """x in the place of the class of each row; or at places in the flattened array."""
    if is_class_a_row(shape, where) and x.dtype in nests.FLOATS and x.shape in ((), where.shape):
        return either(of_class(shape, where), x.reshape(-1, 1) if x.shape else x, 0.0)
    if not on_host(x) or type(where) is not Traced or where.shape != x.shape or not prod(shape):
        return None
    return emitted(added_at, x, shape, where)


def placed(x, shape, key):
    """Write down the rows of x added up at indices of the first axis, if they are such."""
    index = key[0] if len(key) == 1 else None
    if not on_host(x) or type(index) is not Traced or index.dtype.kind != "i" or not prod(shape):
        return None
    rows = index.ndim > 0 and x.shape == index.shape + shape[1:]
    return emitted(added_at, x, shape, index) if rows else None


def added_at(x, shape, where):
    """Zeros, with what x has added where it says: elements in the flattened array, or rows if x has those."""
    out = np.zeros(shape, x.dtype)
    np.add.at(out if x.ndim > where.ndim else out.reshape(-1), where, x)
    return out


def is_class_a_row(shape, where):
    return type(where) is Traced and len(shape) == 2 and where.shape == shape[:1] and prod(shape) > 0


def of_class(shape, where):
    """Return whether an element is the one to which ``where`` points, in rows with one each."""
    starts = np.arange(0, prod(shape), shape[1])
    return (where - starts).reshape(-1, 1) == np.arange(shape[1])


def either(condition, a, b):
    return dispatch.modules[Traced].where(condition, a, b)


FORMULAS = OTHERS | {
    "window_columns": columns, "small_columns": columns, "batch_first": batch_first, "input_array": input_array,
    "largest_under": largest_under, "maximum_under": maximum_under, "elements_at": elements_at, "zeros_but": zeros_but,
    "placed": placed,
}  # fmt: skip


# ---- what is simplified: pooling's backward pass


def spread(g, places, sizes):
    """The g (..., *counts) that have the same place in their plane of some sizes, added up."""
    flat = np.zeros((prod(g.shape[: -len(sizes)]), prod(sizes)), g.dtype)
    for plane, values, where in zip(flat, g.reshape(len(flat), -1), places.reshape(len(flat), -1)):
        np.add.at(plane, where, values)
    return flat.reshape(*g.shape[: -len(sizes)], *sizes)


def spread_by_channel(g, places, sizes):
    """The same of (N, C, *counts), as (C, N, *sizes)."""
    return np.ascontiguousarray(spread(g, places, sizes).swapaxes(0, 1))


class Facts:
    """Who makes what, and who uses it."""

    def __init__(self, steps, written, wanted):
        self.source = {s.number: s for s in steps}
        self.written, self.wanted = written, {*wanted}
        self.users: dict = {s.number: [] for s in steps}
        for s in steps:
            for n in dict.fromkeys(uses(s)):
                self.users[n].append(s)

    def maker(self, a):
        """The step that gives an argument; of one in the same shape again, what that is made of."""
        step = self.source[a.number] if type(a) is Ref else None
        while step is not None and step.name == "reshape" and step.kind == "method":
            before = self.source[step.args[0].number]
            if before.shape != step.shape or step.owner in self.written:
                break
            step = before
        return step

    def pooled(self, a, item):
        """The step of pooling whose maxima (item 0) or places (item 1) these are."""
        step = self.maker(a)
        if step is None or step.kind != "item" or step.args[1] != item:
            return None
        step = self.source[step.args[0].number]
        return step if step.function is pool.largest_under else None

    def alone(self, step):
        """Return whether a step has one user, and is no result."""
        return len(self.users[step.number]) == 1 and step.number not in self.wanted


def with_spreads(steps, written, wanted):
    """Spread over planes what is added at the places that pooling found."""
    placed = [s for s in steps if s.function is added_at]
    facts = Facts(steps, written, wanted) if placed else None
    for step in placed:
        g, shape, where = step.args
        found = facts.maker(where)
        starts = found.args[1] if found is not None and found.name == "add" else None  # of all planes in a row
        places = facts.maker(where if starts is None else found.args[0])
        made = facts.pooled(where if starts is None else found.args[0], 1)
        if made is None:
            continue
        whole = facts.source[made.args[0].number].shape
        one_plane = prod(whole[:-2]) == 1
        same = prod(facts.source[g.number].shape) == prod(places.shape) and prod(shape) == prod(whole)
        if same and (one_plane if starts is None else is_starts(starts, whole)):
            step.change(name="spread", function=spread, args=(g, Ref(places.number), whole[-2:]), shape=whole)
    return steps, {}


def is_starts(a, shape):
    """Return whether a constant says where the planes of an array begin in it."""
    if not isinstance(a, np.ndarray) or a.shape != (*shape[:-2], 1, 1):
        return False
    return bool((a.reshape(-1) == np.arange(0, prod(shape), prod(shape[-2:]))).all())


def with_masks_before(steps, written, wanted):
    """Mask what is spread before it is: a mask of what was pooled is 0 where one of the maxima is."""
    if not any(s.function is spread for s in steps):
        return steps, {}
    facts, placed_before = Facts(steps, written, wanted), {}
    for step in steps:
        if step.name != "kept" or type(step.args[0]) is not Ref or type(step.args[1]) is not Ref:
            continue
        over, mask = map(facts.maker, step.args)
        if over.function is not spread or not facts.alone(over) or not facts.alone(mask):
            continue
        made = facts.pooled(over.args[1], 1)
        same = mask.name in ("not_equal", "ne") and facts.maker(mask.args[0]) is facts.maker(made.args[0])
        maxima = next((s for s in facts.users[made.number] if s.kind == "item" and s.args[1] == 0), None)
        g = facts.source[over.args[0].number]
        if not same or maxima is None or mask.args[1] not in (0, 0.0) or g.shape != maxima.shape:
            continue
        if not {s.owner for s in (step, mask, over, maxima)}.isdisjoint(written):
            continue
        masked, (before, *places) = step.function, over.args
        mask.change(args=(Ref(maxima.number), mask.args[1]), shape=maxima.shape)
        step.change(name="spread", function=spread, args=(Ref(over.number), *places))
        over.change(name="kept", function=masked, args=(before, Ref(mask.number)), shape=g.shape)
        placed_before[over.number] = mask
    moved = {m.number for m in placed_before.values()}
    out = []
    for step in steps:
        if step.number in placed_before and placed_before[step.number] not in out:
            out.append(placed_before[step.number])
        if step.number not in moved or step not in out:
            out.append(step)
    return out, {}


def with_sums_before(steps, written, wanted):
    """Take the sum of what was spread from what it came from."""
    source = {s.number: s for s in steps}
    for step in steps:
        x = source[step.args[0].number] if step.name == "sum" and step.args and type(step.args[0]) is Ref else None
        axes = step.args[1] if x is not None and len(step.args) > 1 else None
        if x is not None and x.function is spread and type(axes) is tuple:
            axes = {a % len(x.shape) for a in axes}
            if {len(x.shape) - 2, len(x.shape) - 1} <= axes and not step.options.get("keepdims"):
                step.change(args=(x.args[0], *step.args[1:]))
    return steps, {}


def by_channel(steps, written, wanted):
    """Spread at once, channels first, what is then multiplied as a matrix with a row for each channel."""
    if not any(s.function is spread for s in steps):
        return steps, {}
    facts, names = Facts(steps, written, wanted), {}
    for step in steps:
        users = facts.users[step.number]
        swapped = users and all(s.name == "swapaxes" and s.args[1:] == (0, 1) for s in users)
        if step.function is not spread or not swapped or len(step.shape) != 4 or step.number in facts.wanted:
            continue
        n, c, *sizes = step.shape
        step.change(name="spread_by_channel", function=spread_by_channel, shape=(c, n, *sizes))
        for s in users:
            names[s.number] = Ref(step.number)
            for after in facts.users[s.number]:  # a copy before is a view by now
                if after.name == "reshape" and after.kind == "method" and after.owner == after.number:
                    for other in steps:
                        other.owner = step.number if other.owner == after.number else other.owner
    for step in steps:
        rename(step, names)
    return [s for s in steps if s.number not in names], names


REWRITES = with_spreads, with_masks_before, with_sums_before, by_channel


# ---- the nests


VIEWS = {"swapaxes", "transpose"}
COPIES = {"ascontiguousarray", "copy"}


class Copy(chains.Fused):
    """A step as a nest, with those before it that are read through."""

    __slots__ = ("step", "text")
    is_loop = True

    def lines(self, writer, memory):
        return self.text(self, writer, memory).lines()


def joined(steps, wanted, source, written):
    """The steps, with those that are nests as such."""
    facts = Facts([*source.values()], written, wanted)
    steps = with_checks_first(steps, written)
    here, needed = {s.number: s for s in steps}, {n for s in steps for n in uses(s)} | facts.wanted
    after = after_copies(steps, facts)
    taken: set = set()
    out: list = []
    for step in reversed(steps):  # what reads through others comes before those
        if step.number in taken:
            continue
        known = step.function in TEXTS or step.number in after
        one = copy_of(step, here, facts, needed) if known else None
        if one is not None:
            taken.update(m.number for m in one.members)
            items = [i for i, s in enumerate(out) if s.number in taken and s.kind == "item"]
            for i in reversed(items):
                del out[i]
        out.append(one or step)
    return out[::-1]


def with_checks_first(steps, written):
    """The steps, those before the rest that only inputs and checks need: what comes after can be one nest."""
    source, first = {s.number: s for s in steps}, set()
    for step in steps:
        todo, found = [step] if step.kind == "check" else [], set()
        while todo:
            s = todo.pop()
            if s.kind in ("draw", "call") or s.writes is not None or s.owner in written:
                break
            found.add(s.number)
            todo += [source[n] for n in uses(s) if n in source and n not in found]
        else:
            first |= found
    return [*(s for s in steps if s.number in first), *(s for s in steps if s.number not in first)]


def after_copies(steps, facts):
    """The numbers of the steps that copy a view, and of those that compute with what was copied."""
    found: set = set()
    for step in steps:
        copies = step.name in COPIES or (step.name == "reshape" and step.kind == "method")
        x = facts.source[step.args[0].number] if copies and step.args and type(step.args[0]) is Ref else None
        if (x is not None and x.name in VIEWS and not x.flat) or not found.isdisjoint(uses(step)):
            found.add(step.number)
    return found


def copy_of(step, here, facts, needed):
    """A step as a Copy; None if it stays what it is."""
    Kind = TEXTS.get(step.function) or (Rearranged if is_rearranging(step, facts) else None)
    if Kind is None or step.owner in facts.written or step.where:
        return None
    through, before = here if Kind.reads_through else {}, {}
    if not all(reads(a.number, through, facts, before) for a in step.args if type(a) is Ref):
        return None
    items = [s for s in facts.users[step.number] if s.kind == "item" and s.number in here]
    members = [*sorted(before.values(), key=lambda s: s.number), step, *items]
    if Kind is Rearranged and not is_worth(members):
        return None
    inside = {m.number for m in members}
    outside = dict.fromkeys(n for m in members for n in uses(m) if n not in inside)
    one = Copy(members, step.shape, map(Ref, outside), needed)
    one.results = [m.number for m in items or [step] if m.number in needed]
    one.step, one.text = step, Kind
    return one


def is_rearranging(step, facts):
    """Return whether a step puts the elements of a transposed view in order, or computes with them on the way."""
    if step.owner != step.number or not step.flat or not step.shape or len(step.shape) > len(INDICES):
        return False
    if step.dtype not in nests.FLOATS or prod(step.shape) == 0 or step.writes is not None or step.kind == "fused":
        return False
    x = facts.source[step.args[0].number] if step.args and type(step.args[0]) is Ref else None
    if step.name in COPIES or (step.name == "reshape" and step.kind == "method"):
        return x is not None and not x.flat and not step.options and x.name in VIEWS and len(x.shape) <= len(INDICES)
    return is_cheap(step, facts)


def is_worth(members):
    """Return whether a nest gains: it needs a view whose elements were copied before."""
    copied = any(m.name in COPIES or m.name == "reshape" for m in members)
    large = prod(members[-1].shape) >= 8192 or len(members) > 3
    return large and copied and any(m.name in VIEWS for m in members)


def reads(n, here, facts, before, depth=0):
    """Return whether a nest can read an array: as it lies there, or what leads to it is noted in ``before``."""
    step, found = facts.source[n], {}
    through = depth < DEPTH and is_through(step, here, facts)
    if through and all(reads(m, here, facts, found, depth + 1) for m in uses(step)):
        before.update(found)
        before[n] = step
        return True
    return step.flat and step.shape is not None and step.owner not in facts.written and step.dtype in nests.NUMBERS


def is_through(step, here, facts):
    """Return whether the elements of a step are computed, or found, sooner than read."""
    if step.number not in here or not facts.alone(step) or step.writes is not None or step.owner in facts.written:
        return False
    user = facts.users[step.number][0]
    formula = nests.formula_of(user)
    if uses(user).count(step.number) > 1 or (formula is not None and formula[0].count("{0}") > 1):
        return False  # its text would stand there twice
    if step.name in VIEWS and step.kind == "method":
        return True
    if step.name in COPIES:
        return not step.options
    return is_cheap(step, facts)


def is_cheap(step, facts):
    """Return whether a step computes each element by a cheap formula, from floats of its own type."""
    formula = nests.formula_of(step)
    if formula is None or formula[1] > nests.CHEAP or step.name == "astype" or step.dtype not in nests.FLOATS:
        return False
    kinds = [facts.source[a.number].dtype for a in step.args if type(a) is Ref]
    kinds += [a.dtype for a in step.args if isinstance(a, (np.ndarray, np.generic))]
    masks = step.name in ("where", "kept")
    plain = all(type(a) in (Ref, int, float) or isinstance(a, np.generic) for a in step.args)
    return plain and all(k == step.dtype or (masks and k == np.dtype(bool)) for k in kinds)


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
            return nests.Text.literal(self, a, dtype)
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
            pattern = f"{{0}} if {{1}} else {nests.Text.literal(self, 0.0, dtype)}"
        pattern = pattern.replace("1 /", nests.Text.literal(self, 1.0, dtype) + " /")
        terms = [self.value(x, at, dtype) for x in nests.operands_of(step)]
        apart = "({}" in pattern and not pattern.startswith("{")
        return pattern.format(*(t if apart else nests.bracketed(t) for t in terms))

    def element(self, step, at):
        """An element of an array from outside, which is handed over without its dims of size 1."""
        name = self.writer.names[step.number]
        sizes = [n for n in step.shape if n != 1]
        if not sizes:
            self.parameters[name] = f"{name}[()]" if step.shape == () else f"{name}.item()"
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
        writer.loops[name] = nests.canonical("\n".join(compiled))
        writer.shown.append(nests.plain("\n".join(shown)))
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
        order = [a % len(at) for a in axes] if axes else order[::-1]
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
            self.say(f"{place} = {nests.Text.literal(self, 0.0, self.step.dtype)}")
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
        self.say(f"{out}[n, m, {', '.join(a.place for a in axes)}] = {nests.Text.literal(self, 0.0, dtype)}")
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
        self.say(f"{best} = {nests.Text.literal(self, -np.inf, dtype)}")
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
        self.say(f"{out}[{front}i] = {nests.Text.literal(self, 0.0, self.step.dtype)}")
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
        text, zero = [], nests.Text.literal(self, 0.0, self.step.dtype)
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


class Nest(nests.Nest):
    """The steps that can be one nest with a first one, beside those that are one by themselves."""

    rewrites = (*nests.Nest.rewrites, *REWRITES)
    joined = staticmethod(joined)
