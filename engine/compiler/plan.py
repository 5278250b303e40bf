"""The plan: which steps are needed, which are the same, which are constants, and what forward saves for backward."""

import math
import operator
from collections import namedtuple
from copy import copy

import numpy as np

from .capture import Ref

# forward and backward are lists of steps.  outputs, saved and grads are Refs (or constants, or None); given: the
# numbers of the steps that stand for the cotangents of the outputs.
Plan = namedtuple("Plan", "forward backward outputs saved grads given counts")

# What there is after a pass, for those who want to look: ``steps`` are copies, of which those from number ``middle`` on
# are the backward pass's; ``outputs``, ``saved``, ``grads`` and ``given`` as in a Plan.
Stage = namedtuple("Stage", "steps middle outputs saved grads given")


def refs(a):
    """The numbers of the steps that an argument refers to."""
    kind = type(a)
    if kind is Ref:
        yield a.number
    elif kind in (tuple, list):
        for part in a:
            yield from refs(part)
    elif kind is slice:
        yield from refs((a.start, a.stop, a.step))


def uses(step):
    """The steps whose results a step needs."""
    found = []
    for a in (*step.args, *step.options.values()) if step.options else step.args:
        if type(a) is Ref:
            found.append(a.number)
        elif type(a) in (tuple, list, slice):
            found.extend(refs(a))
    if step.writes is not None:
        found.append(step.writes.number)
    return found


def replaced(a, names):
    """An argument with what stands in ``names`` in place of some Refs."""
    kind = type(a)
    if kind is Ref:
        return names.get(a.number, a)
    if kind in (tuple, list):
        return kind(replaced(part, names) for part in a)
    if kind is slice:
        return slice(*(replaced(part, names) for part in (a.start, a.stop, a.step)))
    return a


def rename(step, names):
    if names and not names.keys().isdisjoint(uses(step)):
        step.args = replaced(step.args, names)
        step.options = {k: replaced(v, names) for k, v in step.options.items()}


def key_of(a):
    """Equal for arguments that are the same."""
    kind = type(a)
    if kind is Ref:
        return kind, a.number
    if kind is tuple or kind is list:
        return kind, tuple(map(key_of, a))
    if kind is slice:
        return "slice", key_of((a.start, a.stop, a.step))
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype, a.shape, a.tobytes() if a.size <= 4096 else id(a)
    if kind is float:
        return kind, repr(a)  # 0.0 and -0.0 are two
    try:
        hash(a)
    except TypeError:
        return id(a)
    return kind, a


KEPT = ("check", "draw", "call")  # steps that do something, whether or not their results are needed
FRESH = {"copy", "zeros", "empty", "ones", "array"}  # made to be memory of their own


def is_pure(step, written, owners):
    """Whether a step gives the same whenever it runs: it writes nothing, and reads nothing that is written."""
    if step.kind in ("input", *KEPT) or step.writes is not None or step.owner in written:
        return False
    return not written or not any(owners[n] in written for n in uses(step))


def without_repeats(steps, written, owners):
    """(the steps but those that do what an earlier one did, {number of such a one: Ref of the earlier})."""
    first, names, kept = {}, {}, []
    for step in steps:
        rename(step, names)
        if is_pure(step, written, owners) and step.name not in FRESH:
            what = step.function if step.kind == "function" else None
            options = tuple((k, key_of(v)) for k, v in step.options.items())
            key = step.kind, step.name, what, key_of(step.args), options
            if key in first:
                names[step.number] = Ref(first[key])
                continue
            first[key] = step.number
        kept.append(step)
    return kept, names


def folded(steps, written, owners):
    """(the steps but those that depend on no input, {number of such a one: its value})."""
    values, kept = {}, []
    for step in steps:
        rename(step, values)
        if is_pure(step, written, owners) and not uses(step):
            values[step.number] = step.function(*step.args, **step.options)
        else:
            kept.append(step)
    return kept, values


def without_writes(steps):
    """(the steps, with ``y = x + 1`` for ``x += 1`` where x is large and nothing else views it, the new names).

    What is not written can be joined with its neighbours; the memory plan of a chain reuses the buffers anyway.
    """
    on, names = {}, {}
    for step in steps:
        on.setdefault(step.owner, []).append(step)
    source = {s.number: s for s in steps}
    for step in steps:
        rename(step, names)
        if step.writes is None:
            continue
        target, memory = source[step.owner], on[step.owner]
        made = target.kind != "input" and math.prod(target.shape or ()) >= LARGE
        simple = all(s is target or (s.writes == Ref(target.number) and s.kind == "operator") for s in memory)
        if made and simple and keeps_kind(step, source):
            step.name, step.function, step.writes = step.name[1:], OPERATORS[step.name[1:]], None
            step.shape, step.dtype, step.flat = target.shape, target.dtype, target.flat
            names[target.number] = Ref(step.number)
            on[step.owner].remove(step)
            step.owner = step.number
    return steps, names


def keeps_kind(step, source):
    """Whether ``x + y`` has the shape and dtype of x, which ``x += y`` keeps."""
    x, y = source[step.owner], step.args[1]
    if type(y) is not Ref:
        return type(y) in (int, float) and x.dtype.kind == "f" and step.name[1:] in OPERATORS
    y = source[y.number]
    same = y.dtype == x.dtype and x.dtype.kind == "f" and y.shape in (x.shape, ())
    return same and step.name[1:] in OPERATORS


OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}
LARGE = 32768  # elements, from which on chains are joined


def alive(steps, wanted, owners):
    """The steps that lead to what is wanted.  A write is kept if its memory is, or is an input's; a check always."""
    needed = set(wanted)
    memory = {owners[n] for n in needed} | {s.number for s in steps if s.kind == "input"}
    memory.update(owners[n] for s in steps if s.kind == "call" for n in uses(s))  # what others hold from there on
    kept = []
    for step in reversed(steps):
        if step.number in needed or step.kind in KEPT or (step.writes is not None and step.owner in memory):
            kept.append(step)
            for n in uses(step):
                needed.add(n)
                memory.add(owners[n])
    return kept[::-1]


def noted(passes, name, steps, middle, outputs, saved, grads, given):
    """Keep what there is after a pass, where somebody wants to look."""
    if passes is not None:
        kept = tuple(map(copy, steps))
        passes[name] = Stage(kept, middle, tuple(outputs), tuple(saved), tuple(grads), tuple(given))


def plan(steps, outputs, middle, given, grads, passes):
    """The plan for the steps of a tape: those before ``middle`` are the forward pass, those from there on the backward.

    ``outputs`` and ``grads``: Refs, or None; ``given``: the numbers of the steps that stand for the cotangents;
    ``passes``: {} in which the steps after each pass are kept, or None.
    """
    noted(passes, "captured", steps, middle, outputs, (), grads, given)
    counts = {"written down": sum(s.kind != "input" for s in steps)}
    steps, current = without_writes(steps)
    outputs, grads = replaced(tuple(outputs), current), replaced(tuple(grads), current)
    owners = {s.number: s.owner for s in steps}
    written = {s.owner for s in steps if s.writes is not None}
    steps, names = without_repeats(steps, written, owners)
    steps, values = folded(steps, written, owners)
    outputs, grads = (replaced(replaced(tuple(r), names), values) for r in (outputs, grads))
    noted(passes, "joined", steps, middle, outputs, (), grads, given)
    counts["computed once"] = counts["written down"] - sum(s.kind != "input" for s in steps)
    steps = alive(steps, refs((outputs, grads)), owners)
    backward = [s for s in steps if s.number >= middle and s.kind != "input"]
    made = {s.number for s in backward} | set(given)
    saved = dict.fromkeys(n for s in backward for n in uses(s) if n not in made)
    saved.update(dict.fromkeys(n for n in refs(grads) if n not in made))
    forward = alive([s for s in steps if s.number < middle], [*refs(outputs), *saved], owners)
    forward = [s for s in forward if s.kind != "input"]
    counts.update(forward=len(forward), backward=len(backward), saved=len(saved))
    saved = tuple(map(Ref, saved))
    noted(passes, "needed", (*forward, *backward), middle, outputs, saved, grads, given)
    return Plan(forward, backward, outputs, saved, grads, tuple(given), counts)
