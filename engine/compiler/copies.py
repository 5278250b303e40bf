"""Copies: what a kernel sees as it moves, its transpose, and pooling, each as one loop nest from array to array.

NumPy copies windows in several passes, through views.  Here a capture writes such a kernel down as one step, and the
plan makes a nest of it: ``FORMULAS`` has what is written down, ``REWRITES`` what is simplified then, and a ``Copy`` is
a step with the cheap elementwise steps and transposed views before it, which are read through, not written to memory.

In a nest, n counts samples, m channels, i and j places of the kernel, k and l the positions within it.
"""

from math import prod

import numpy as np

from . import chains, nests
from .copy_text import COPIES, INDICES, TEXTS, VIEWS, Rearranged
from .nest_text import Text
from .plan import uses
from .pooling import REWRITES, Facts
from .steps import Ref

DEPTH = 16  # steps, one behind the other, that are read through at most


class Copy(chains.Fused):
    """A step as a nest, with those before it that are read through."""

    __slots__ = ("step", "text")
    is_loop = True

    def lines(self, writer, memory):
        return self.text(self, writer, memory).lines()


def joined(steps, wanted, source, written):
    """The steps, with those that are nests as such."""
    steps = with_checks_first(steps, written)
    after = after_copies(steps, source)
    if not after and not any(s.function in TEXTS for s in steps):
        return steps
    facts = Facts([*source.values()], written, wanted)
    here, needed = {s.number: s for s in steps}, {n for s in steps for n in uses(s)} | facts.wanted
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
    if not (checks := [s for s in steps if s.kind == "check"]):
        return steps
    source, first = {s.number: s for s in steps}, set()
    for step in checks:
        todo, found = [step], set()
        while todo:
            s = todo.pop()
            if s.kind in ("draw", "call") or s.writes is not None or s.owner in written:
                break
            found.add(s.number)
            todo += [source[n] for n in uses(s) if n in source and n not in found]
        else:
            first |= found
    return [*(s for s in steps if s.number in first), *(s for s in steps if s.number not in first)]


def after_copies(steps, source):
    """The numbers of the steps that copy a view, and of those that compute with what was copied."""
    found: set = set()
    for step in steps:
        copies = step.name in COPIES or (step.name == "reshape" and step.kind == "method")
        x = source[step.args[0].number] if copies and step.args and type(step.args[0]) is Ref else None
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


class Nest(nests.Nest):
    """The steps that can be one nest with a first one, beside those that are one by themselves."""

    rewrites = (*nests.Nest.rewrites, *REWRITES)
    joined = staticmethod(joined)
    text = Text
