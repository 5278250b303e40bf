"""The plan: which steps are needed, which are the same, which are constants, and what forward saves for backward."""

import math
import operator
from collections import Counter, namedtuple
from copy import copy

import numpy as np

from ..arrays.devices import backends
from .capture import scipy_special
from .steps import NESTED, Ref, Step, leaves, map_parts, parts_of

ENGINE = __name__.partition(".")[0]

# What was captured, and what there is after a pass: the steps from number middle on are the backward pass's.  outputs,
# saved and grads are Refs (or constants, or None); given: the numbers of the steps that stand for the cotangents.
Stage = namedtuple("Stage", "steps middle outputs saved grads given")
Plan = namedtuple("Plan", "forward backward outputs saved grads given counts")  # the same as two lists of steps


def refs(a):
    """The numbers of the steps that an argument refers to."""
    return [part.number for part in leaves(a) if type(part) is Ref]


def uses(step):
    """The steps whose results a step needs."""
    if step.uses is None:
        more = step.options or step.writes is not None
        step.uses = refs((*step.args, *step.options.values(), step.writes) if more else step.args)
    return step.uses


def substituted(a, names):
    """An argument with what stands in ``names`` in place of some Refs."""
    return map_parts(lambda part: names.get(part.number, part) if type(part) is Ref else part, a)


UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "neg": np.negative,
          "abs": np.absolute, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
          "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or,
          "xor": np.bitwise_xor, "invert": np.invert}  # fmt: skip


def ufunc_of(step):
    """The ufunc that a step calls, or None."""
    if step.kind == "operator":
        if step.name == "pow" and step.args[1] in (2, 2.0) and type(step.args[1]) in (int, float):
            return np.square  # what NumPy's ** does for 2
        return UFUNCS.get(step.name)
    return simple_ufunc(step) if step.kind == "function" and not step.options else None


def is_ours(step):
    """Return whether a step calls a function of the engine's, which takes the arrays of all devices."""
    module = getattr(step.function, "__module__", None) or ""
    return module.startswith(ENGINE) and not module.startswith(f"{ENGINE}.arrays.devices")


def simple_ufunc(step):
    """The ufunc of one result that a step calls, or one's of a device under its name; None for another function."""
    found = step.function
    if step.where:
        place, _, name = step.name.rpartition(".")
        found = getattr(scipy_special() if place == "special" else np, name, None) if place in ("", "special") else None
    return found if isinstance(found, np.ufunc) and found.nout == 1 and found.signature is None else None


def is_elementwise(step):
    """Return whether each element of the result comes from those at its place in the operands."""
    if step.name in ("where", "astype", "kept"):
        return step.kind in ("function", "method") and not step.options
    return ufunc_of(step) is not None


def rename(step, names):
    if names and not names.keys().isdisjoint(uses(step)):
        options = {k: substituted(v, names) for k, v in step.options.items()}
        step.change(args=substituted(step.args, names), options=options)


def argument_key(a):
    """Equal for arguments that are the same."""
    kind = type(a)
    if kind is Ref:
        return a.number
    if kind in NESTED:
        return kind, tuple(map(argument_key, parts_of(a)))
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype, a.shape, a.tobytes() if a.size <= 4096 else id(a)
    if kind is float:
        return kind, repr(a)  # 0.0 and -0.0 are two
    try:
        hash(a)
    except TypeError:
        return id(a)
    return kind, a


EFFECT_KINDS = ("check", "draw", "call")  # steps that do something, whether or not their results are needed
GIVEN = ("input", *EFFECT_KINDS)  # what they give is not known from their arguments
FRESH = {"copy", "zeros", "empty", "ones", "array"}  # made to be memory of their own


# Each pass takes the steps, the owners of what is written and the numbers of the results, and gives the steps that stay
# and {number of one that does not: what stands for it}.


def is_pure(step, written, owners):
    """Return whether a step gives the same whenever it runs: it writes nothing, and reads nothing that is written."""
    if step.kind in GIVEN or step.writes is not None or step.owner in written:
        return False
    return not written or not any(owners[n] in written for n in uses(step))


def without_repeats(steps, written, _wanted):
    """Leave out what an earlier step did already."""
    first, names, stay, owner = {}, {}, [], {}
    owners = {s.number: s.owner for s in steps}
    for step in steps:
        rename(step, names)
        step.owner = owner.get(step.owner, step.owner)
        if is_pure(step, written, owners) and step.name not in FRESH:
            what = step.function if step.kind == "function" else None
            options = argument_key([*step.options.items()]) if step.options else ()
            key = step.kind, step.name, what, argument_key(step.args), options
            if key in first:
                names[step.number] = Ref(first[key].number)
                owner[step.number] = first[key].owner
                continue
            first[key] = step
        stay.append(step)
    return stay, names


def without_broadcasts(steps, _written, _wanted):
    """Let elementwise steps take an array as it is, not repeated to the shape of another."""
    if not any(s.name == "broadcast_to" for s in steps):
        return steps, {}
    source, repeated = {s.number: s for s in steps}, {}
    for step in steps:
        if step.kind == "function" and step.name == "broadcast_to":
            repeated[step.number] = step.args[0]
        elif not repeated.keys().isdisjoint(uses(step)) and is_elementwise(step):
            others = [source[a.number] for a in step.args if type(a) is Ref and a.number not in repeated]
            if any(o.shape == step.shape and o.dtype == step.dtype for o in others):
                rename(step, repeated)
    return steps, {}


def constants_folded(steps, written, _wanted):
    """Do now what depends on no input, or on the dtype of a number alone."""
    values, stay = {}, []
    owners = {s.number: s.owner for s in steps}
    for step in steps:
        rename(step, values)
        if step.name in ("ones_like", "zeros_like", "full_like") and step.shape == ():
            xp = backends[step.where or "cpu"].xp
            step.change(args=(xp.zeros((), step.dtype), *step.args[1:]))
        if not uses(step) and is_pure(step, written, owners):
            value = step.function(*step.args, **step.options)
            values[step.number] = value[()] if step.shape == () else value  # a number, which nobody writes into
        else:
            stay.append(step)
    return stay, values


def without_writes(steps, written, _wanted):
    """``y = x + 1`` stands for ``x += 1`` where x has no views by then: it can be joined with its neighbours."""
    if not written:
        return steps, {}
    on, names, moved, stay = {}, {}, {}, []
    for step in steps:
        on.setdefault(step.owner, []).append(step)
    source = {s.number: s for s in steps}
    rewritable = {n for n in written if is_rewritable(source[n], on, source)}
    for step in steps:
        rename(step, names)
        if step.writes is None:
            step.owner = moved.get(step.owner, step.owner)
        elif step.owner in rewritable:
            target = step.owner
            if step.kind == "setitem":
                names[target], moved[target] = step.args[2], step.args[2].number
                step.change(writes=None)
                continue
            if step.kind == "operator":
                step.change(name=step.name[1:], function=OPERATOR_FUNCTIONS[step.name[1:]])
            whole = source[target]
            step.change(options={}, writes=None, owner=step.number, shape=whole.shape, dtype=whole.dtype,
                        flat=whole.flat)  # fmt: skip
            names[target], moved[target] = Ref(step.number), step.number
        stay.append(step)
    return stay, names


def is_rewritable(target, on, source):
    """Return whether all that is written into an array are whole new values for it, before there are views of it."""
    writes = [s for s in on[target.number] if s.writes is not None]
    views = [s for s in on[target.number] if s.writes is None and s is not target]
    own = target.kind not in GIVEN and bool(target.shape) and target.dtype.kind == "f"
    if not own or any(s.number < writes[-1].number for s in views):
        return False
    return all(s.writes == Ref(target.number) and is_whole(s, target, on, source) for s in writes)


def is_whole(step, target, on, source):
    """Return whether it is ``x += y``, ``exp(x, out=x)`` or ``x[...] = y`` with a y that is written nowhere else."""
    operands = [source[a.number] if type(a) is Ref else a for a in step.args]
    if step.kind == "setitem":
        value = operands[2]
        if step.args[1] is not Ellipsis or type(value) is not Step or value.kind in GIVEN:
            return False
        alike = (value.shape, value.dtype, value.flat) == (target.shape, target.dtype, target.flat)
        return alike and on[value.owner] == [value]
    if step.kind == "operator":
        elementwise = step.name[1:] in OPERATOR_FUNCTIONS
    else:
        elementwise = step.kind == "function" and step.options.keys() == {"out"} and simple_ufunc(step) is not None
    return elementwise and all(
        type(y) in (int, float) or (type(y) is Step and y.dtype == target.dtype and fits_in(y.shape, target.shape))
        for y in operands
    )


def fits_in(shape, whole):
    """Return whether an array of a shape broadcasts to another shape."""
    return len(shape) <= len(whole) and all(m in (1, n) for m, n in zip(shape[::-1], whole[::-1]))


OPERATOR_FUNCTIONS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}
LARGE_CHAIN = 32768  # elements, from which on chains are joined


def without_detours(steps, written, wanted):
    """Undo a transpose or reshape back to what there was, and a copy of what nothing else uses any more."""
    names, source = {}, {s.number: s for s in steps}
    last = {source[n].owner: i for i, step in enumerate(steps) for n in uses(step)}
    held = (n for s in steps if s.kind == "call" for n in uses(s))  # by others, from there on
    last.update(dict.fromkeys((source[n].owner for n in (*wanted, *held)), len(steps)))
    for i, step in enumerate(steps):
        rename(step, names)
        if step.kind != "method" or type(step.args[0]) is not Ref or step.options or step.owner in written:
            continue
        x = source[step.args[0].number]
        again = step.name == x.name and x.kind == "method" and type(x.args[0]) is Ref
        if again and step.name == "transpose" and len(step.args) == len(x.args) == 1:
            names[step.number] = x.args[0]
        elif again and step.name == "reshape" and x.flat and x.owner not in written:
            whole = source[x.args[0].number]
            step.change(args=(x.args[0], *step.args[1:]))
            sizes = sizes_in_words(step.shape)
            if whole.flat and sizes_in_words(whole.shape) == sizes and "?" not in sizes:
                names[step.number] = x.args[0]
        whole = source[x.owner]
        own = whole.kind not in GIVEN and x.owner not in written and x.flat and step.flat
        same = own and whole.shape is not None and math.prod(whole.shape) == math.prod(x.shape)
        if step.name == "copy" and same and len(step.args) == 1 and last[x.owner] == i:
            names[step.number] = Ref(x.number)
            last[x.owner] = last.get(step.number, i)
            for s in steps:
                s.owner = x.owner if s.owner == step.number else s.owner
    return [s for s in steps if s.number not in names], names


def sizes_in_words(shape):
    """A shape as it is shown: sizes that vary as what they are in all calls, or "?"."""
    return tuple(map(str, shape))


def without_signs(steps, written, wanted):
    """``y - a*b`` stands for ``-a*b + y``, which is the same to the last bit."""
    if not any(s.name in ("neg", "negative") for s in steps):
        return steps, {}
    source, users = {s.number: s for s in steps}, Counter(n for s in steps for n in uses(s))
    users.update(wanted)

    def signed(a):
        """The steps from a sign to an argument, which is a product then and has no other user."""
        step = source[a.number] if type(a) is Ref else None
        if step is None or users[a.number] != 1 or step.dtype is None or step.dtype.kind != "f":
            return ()
        if any(source[n].owner in written for n in (a.number, *uses(step))):
            return ()
        if ufunc_of(step) is np.negative:
            return (step,)
        found = next(filter(None, map(signed, step.args)), ()) if ufunc_of(step) in (np.multiply, np.divide) else ()
        return found and (*found, step)

    gone = set()
    for step in steps:
        turned = {np.add: "sub", np.subtract: "add"}.get(ufunc_of(step))
        x, y = step.args if turned else (None, None)
        if turned == "sub" and not signed(y):
            x, y = y, x
        if found := signed(y):
            step.change(kind="operator", name=turned, function=OPERATOR_FUNCTIONS[turned], args=(x, y))
            sign, after = found[0], (*found, step)[1]
            rename(after, {sign.number: sign.args[0]})
            gone.add(sign.number)
    return [s for s in steps if s.number not in gone], {}


REWRITES = without_writes, without_repeats, without_broadcasts, constants_folded, without_detours, without_signs
CHEAP = {np.add, np.subtract, np.multiply, np.negative, np.absolute, np.square, np.maximum, np.minimum, np.equal,
         np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.bitwise_and, np.bitwise_or,
         np.invert}  # fmt: skip


def recomputed(backward, saved, outputs, source, tape, written):
    """(backward, saved) where backward computes anew what is large and one cheap step away from what is kept anyway.

    To keep it would cost a pass over memory to write it, and another to read it.
    """
    anew, saved = {}, dict.fromkeys(saved)
    for n in sorted(saved, reverse=True):
        step = source[n]
        if n in outputs or step.shape is None or math.prod(step.shape) < 2 * LARGE_CHAIN or ufunc_of(step) not in CHEAP:
            continue
        operands = [source[m] for m in uses(step)]
        there = all(o.number in saved or o.kind == "input" or o.shape == () for o in operands)
        if step.owner == n and there and not any(o.owner in written for o in (step, *operands)):
            del saved[n]
            saved.update(dict.fromkeys(o.number for o in operands))
            anew[n] = step
    names, copies = {}, {}
    for n in sorted(anew):
        again = anew[n].twin()
        again.number = again.owner = len(tape)
        tape.append(again)
        rename(again, names)
        names[n], copies[again.number] = Ref(again.number), again
    placed = []
    for step in backward:
        rename(step, names)
        todo, before = [step] if copies else [], []
        while todo:  # what a copy needs comes before it
            before += (needed := [copies.pop(n) for n in dict.fromkeys(uses(todo.pop())) if n in copies])
            todo += needed
        placed += [*sorted(before, key=lambda again: again.number), step]
    return placed, saved


def live_steps(steps, wanted, owners):
    """The steps that lead to what is wanted.  A write is live if its memory is, or is an input's; a check always."""
    needed = set(wanted)
    memory = {owners[n] for n in needed} | {s.number for s in steps if s.kind == "input"}
    memory.update(owners[n] for s in steps if s.kind == "call" for n in uses(s))  # what others hold from there on
    live, written = [], any(s.writes is not None for s in steps)
    for step in reversed(steps):
        if step.number in needed or step.kind in EFFECT_KINDS or (step.writes is not None and step.owner in memory):
            live.append(step)
            needed.update(uses(step))
            if written:
                memory.update([owners[n] for n in uses(step)])
    return live[::-1]


def noted(passes, name, stage):
    """Keep what there is after a pass, where somebody wants to look."""
    if passes is not None:
        passes[name] = stage._replace(steps=[*map(copy, stage.steps)])


def plan(stage, passes, more=()):
    """The plan for what was captured; ``more``: passes that rewrite besides those that always do."""
    steps, middle, outputs, _, grads, given = stage
    tape = steps
    noted(passes, "captured", stage)
    counts = {"written down": sum(s.kind != "input" for s in steps)}
    for rewritten in (*REWRITES, *more):
        written = {s.owner for s in steps if s.writes is not None}
        steps, names = rewritten(steps, written, refs((outputs, grads)))
        outputs, grads = substituted(outputs, names), substituted(grads, names)
    owners = {s.number: s.owner for s in steps}
    noted(passes, "joined", Stage(steps, middle, outputs, (), grads, given))
    counts["computed once"] = counts["written down"] - sum(s.kind != "input" for s in steps)
    steps = live_steps(steps, refs((outputs, grads)), owners)
    backward = [s for s in steps if s.number >= middle and s.kind != "input"]
    inside = {s.number for s in backward} | set(given)
    saved = [n for n in (*(n for s in backward for n in uses(s)), *refs(grads)) if n not in inside]
    source = {s.number: s for s in steps}
    written = {s.owner for s in steps if s.writes is not None}
    backward, saved = recomputed(backward, saved, {*refs((outputs, grads))}, source, tape, written)
    owners.update((s.number, s.owner) for s in backward)
    if backward:
        steps = live_steps([s for s in steps if s.number < middle], [*refs(outputs), *saved], owners)
    forward = [s for s in steps if s.number < middle and s.kind != "input"]
    counts.update(forward=len(forward), backward=len(backward), saved=len(saved))
    saved = tuple(map(Ref, saved))
    noted(passes, "needed", Stage((*forward, *backward), middle, outputs, saved, grads, given))
    return Plan(forward, backward, outputs, saved, grads, given, counts)
