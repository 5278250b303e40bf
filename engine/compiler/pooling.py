"""Pooling's backward pass: what is added at the places of the maxima is spread over planes, and simplified there."""

from math import prod

import numpy as np

from ..arrays.kernels import pool
from .kernels import added_at
from .plan import rename, uses
from .steps import Ref


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
    """The maker of each value, and its users."""

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
        if made is None or type(g) is not Ref:  # g: of a sum of maxima it is a constant
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
