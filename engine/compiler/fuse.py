"""Fuse: a chain of steps on large arrays becomes one pass in blocks that stay in the processor's cache.

Step by step, every array of a chain goes out to memory and comes back.  In blocks, only what is needed elsewhere is
written to memory; the rest lives in buffers of some ``BLOCK`` elements, which are used again as soon as they are free.

The dims of an array are cut in two: a block holds some of the rows that the first dims count, and each row whole.  So
what has one value a row (a mean with ``keepdim``) is cut with the rows, what is the same for all rows (a bias, a mask)
is there as a whole, and sums along a row can be part of the pass.  A chain without such is cut anywhere.
"""

from collections import Counter
from itertools import chain
from math import prod

import numpy as np

from ..arrays import threads as blocks
from . import chains
from .plan import Stage, is_elementwise, noted, plan, refs, ufunc_of, uses
from .steps import Ref

BLOCK = blocks.BLOCK  # elements at most: 1 MB of float32
REACH = 32  # steps between one that joins and the next, at most: looking at all takes the square of their number
ALONG = {"sum", "max", "min", "mean"}  # methods that leave one value of a row
ALONG_ROWS = {"sums_along", "products_along"}  # and functions of the engine's


def reduced_axes(step, source):
    """The axes along which a step leaves one value, as negative numbers; None for another kind of step."""
    if step.kind == "method" and step.name in ALONG and set(step.options) <= {"keepdims"}:
        axis, *others = step.args[1:] or (None,)
        if any(a is not None for a in others):
            return None
    elif step.kind == "function" and step.name in ALONG_ROWS:
        axis = step.args[len(uses(step))]
    else:
        return None
    x = source[step.args[0].number]
    axes = range(len(x.shape)) if axis is None else axis if type(axis) is tuple else (axis,)
    return tuple(a - len(x.shape) if a >= 0 else a for a in axes)


def is_total(step):
    """Return whether it is one number for all elements, of which that of each block is a part."""
    all_axes = step.kind == "method" and all(a is None for a in step.args[1:]) and step.shape == ()
    return all_axes and step.name in ("sum", "max", "min") and step.options in ({}, {"keepdims": False})


def is_cut(shape, whole, lead):
    """Return whether an array of a shape is cut with one of the shape ``whole``: it has the dims that count rows."""
    return len(shape) == len(whole) and shape[:lead] == whole[:lead]


def leads(shape, whole):
    """Into how many dims of rows ``whole`` may be cut for an operand: it is cut alike, or the same for all rows."""
    aligned = (1,) * (len(whole) - len(shape)) + shape
    cuts = range(1, len(whole) + 1)
    return {k for k in cuts if is_cut(shape, whole, k) or all(n == 1 for n in aligned[:k])}


class Blocks(chains.Fused):
    """Steps as a pass in blocks."""

    __slots__ = ()

    def lines(self, writer, memory):
        return lines(self, writer, memory)


class RowGroup(chains.Group):
    """The steps that can be one pass with a first one, and into which rows its arrays may be cut."""

    def begins(self, step):
        """Return whether a step is the first of a pass."""
        if step.kind == "fused" or step.shape is None:
            return False
        along = reduced_axes(step, self.source) is not None and not is_total(step)
        self.shape = self.source[step.args[0].number].shape if along else step.shape
        if 2 * prod(self.shape) <= BLOCK:
            return False
        cuts = range(1, len(self.shape) + 1)
        self.cuts = {k for k in cuts if prod(self.shape[:k]) > 1 and prod(self.shape[k:]) <= BLOCK}
        return self.takes(step)

    def is_last(self, step):
        """Return whether the result of a member is there after the pass alone."""
        return is_total(step)

    def takes(self, step):
        """Return whether a step joins."""
        cuts = self.cuts & self.allowed(step)
        if cuts:
            self.cuts = cuts
            self.add(step)
        return bool(cuts)

    def as_one(self, needed):
        """The steps as one; None where none takes what another gives: nothing would stay in the cache."""
        if not any(n in self.inside for m in self.members for n in uses(m)):
            return None
        outside = dict.fromkeys(n for m in self.members for n in uses(m) if n not in self.inside)
        fused = Blocks(self.members, self.shape, map(Ref, outside), needed)
        fused.lead = max(self.cuts)
        count, row = prod(self.shape[: fused.lead]), prod(self.shape[fused.lead :])
        fused.rows = blocks.rows_of(count, count * row, BLOCK)
        fused.arrays = [n for n in outside if is_cut(self.source[n].shape, self.shape, fused.lead)]
        return fused

    def allowed(self, step):
        """The cuts with which a step can be part of the pass."""
        if step.where or step.shape is None or step.owner != step.number or step.owner in self.written:
            return set()
        operands = [self.source[n] for n in uses(step)]
        if any(o.owner in self.written or o.shape is None for o in operands):
            return set()
        if not all(o.flat or prod(o.shape) <= 4096 or o.number in self.inside for o in operands):
            return set()
        cuts = set(range(1, len(self.shape) + 1)).intersection(*(leads(o.shape, self.shape) for o in operands))
        if is_total(step):
            inside = step.args[0].number in self.inside and operands[0].shape == self.shape
            return cuts if inside and step.dtype.char in "fd" else set()
        alike = {k for k in cuts if step.shape[:k] == self.shape[:k] and step.shape}
        if is_elementwise(step):
            simple = all(type(a) is Ref or np.ndim(a) == 0 for a in step.args)
            return alike if simple and step.flat and len(step.shape) == len(self.shape) else set()
        axes = reduced_axes(step, self.source)
        if axes is None or len(operands[0].shape) != len(self.shape):
            return set()
        return {k for k in alike if min(axes) >= k - len(self.shape)}


def planned(captured, fused, passes=None, Host=None):
    """The plan for what was captured; ``fused``: False, or where chains are joined, "everywhere" or "on devices"."""
    p, steps = plan(captured, passes, () if Host is None else Host.rewrites), captured.steps
    everywhere = fused == "everywhere"
    if everywhere or (fused and any(s.where for s in steps)):
        source = {s.number: s for s in steps}
        written = {s.owner for s in steps if s.writes is not None}
        Host = RowGroup if Host is None else Host
        if joined := getattr(Host, "joined", None):
            p.forward[:] = joined(p.forward, [*refs(p.outputs), *refs(p.saved)], source, written)
            p.backward[:] = joined(p.backward, [*refs(p.grads)], source, written)
        p.forward[:] = fuse(p.forward, [*refs(p.outputs), *refs(p.saved)], source, written, everywhere, Host)
        p.backward[:] = fuse(p.backward, [*refs(p.grads)], source, written, everywhere, Host)
        if formulas := sum(s.kind == "fused" and bool(s.where) for s in (*p.forward, *p.backward)):
            p.counts["formulas, each one kernel on a GPU"] = formulas
        fused_steps = *p.forward, *p.backward
        noted(passes, "fused", Stage(fused_steps, captured.middle, p.outputs, p.saved, p.grads, p.given))
    return p


def fuse(steps, wanted, source, written, everywhere=True, Host=RowGroup):
    """The steps with chains joined, ``everywhere`` or on devices alone; ``wanted``: the numbers of results."""
    if Host is RowGroup and not any(
        s.where or (everywhere and s.shape is not None and 2 * prod(s.shape) > BLOCK) for s in source.values()
    ):
        return steps
    i, used = 0, Counter(chain.from_iterable(map(set, map(uses, steps))))
    while i < len(steps):
        group, last = group_from(steps, i, source, written, Host) if everywhere or steps[i].where else (None, i)
        if last == i:
            i += 1
            continue
        inside, after, before, rest = group.inside, set(), [], []
        for step in steps[i : last + 1]:
            if step.number not in inside:
                late = any(n in inside or n in after for n in uses(step))
                (rest if late else before).append(step)
                after.update({step.number, *getattr(step, "results", ())} if late else ())
        here = Counter(chain.from_iterable(map(set, map(uses, group.members))))
        fused = group.as_one({n for n in inside if used[n] > here[n]}.union(wanted))
        if fused is None:  # among so many numbers, no other first step makes a difference
            i = last if len(group.members) >= group.most else i + 1
        else:  # what comes before it by now may be joined too
            steps[i : last + 1] = [*before, fused, *rest]
    return chains.with_sums(steps, wanted, source, written)


def group_from(steps, i, source, written, Host=RowGroup):
    """(the Group of step i, which is the first of it; where its last one is)."""
    group, late, last = (chains.Formula if steps[i].where else Host)(source, written), set(), i
    if not group.begins(steps[i]):
        return group, i
    for j in range(i + 1, len(steps)):
        step = steps[j]
        if step.writes is not None or step.kind in ("check", "call"):
            break
        if j - last > REACH or len(group.members) >= group.most:
            break
        needs = uses(step)
        dependent, related = not late.isdisjoint(needs), not group.inside.isdisjoint(needs)
        if step.kind == "draw" and (dependent or related):
            break  # draws keep their order
        if step.kind == "fused" or dependent or not group.takes(step):
            if dependent or related:
                late.update((step.number, *getattr(step, "results", ())))
        else:
            last = j
            if group.is_last(step):
                late.add(step.number)
    return group, last


def lines(fused, writer, memory):
    """The lines of a fused step: a function of one block, and the call that runs it on all of them."""
    names, lead, shape = writer.names, fused.lead, fused.shape
    text, arrays, before = [], [*fused.arrays], {}
    for n in (a.number for a in fused.args if a.number not in fused.arrays):
        row = writer.steps[n].shape[max(len(writer.steps[n].shape) - len(shape) + lead, 0) :]
        if row != writer.steps[n].shape:
            before[n], names[n] = names[n], writer.fresh(names[n] + "_row")
            text.append(f"{names[n]} = {before[n]}.reshape({row})")
    for m in fused.members:
        names[m.number] = writer.name_of(m)
        if m.number in fused.results and not is_total(m):
            buffer = memory.buffer(m)
            text.append(f"{names[m.number]} = {buffer or f'np.empty({m.shape}, {writer.text(m.dtype)})'}")
            arrays.append(m.number)
    count, row = prod(shape[:lead]), prod(shape[lead:])
    inner, buffers, totals = body(fused, writer)
    names.update(before)
    block = writer.fresh("block")
    arguments = [*(names[n] for n in arrays), *buffers]
    what = f"{count} rows of {'x'.join(map(str, shape[lead:]))}" if row > 1 else f"{count} elements"
    text.append(f"def {block}({', '.join(arguments)}):  # of {what}, in one pass")
    text += ["    " + line for line in inner]
    given = ", ".join(names[n] for n in arrays) + "," * (len(arrays) == 1)
    pool = ", " + writer.pool([((fused.rows, *m.shape[lead:]), m.dtype) for m in buffers.values()]) if buffers else ""
    call = f"in_blocks({block}, ({given}), {lead}, {fused.rows}{pool})"
    if not totals:
        return [*text, call]
    parts = ", ".join(p for _, p in totals)
    text.append(f"{parts}{',' * (len(totals) == 1)} = {call}")
    for m, part in totals:
        function = "sum" if m.name == "sum" else f"np.{m.name}"
        text.append(f"{names[m.number]} = {writer.text(m.dtype)}({function}({part}))")
    return text


def body(fused, writer):
    """(The lines of the function of one block, {name of a buffer: a member}, [(a total, the name of its parts)])."""
    last = {n: i for i, m in enumerate(fused.members) for n in uses(m)}
    text, buffers, totals, free, held = [], {}, [], [], {}
    names = writer.names
    for i, (m, note) in enumerate(zip(fused.members, chains.notes(fused.members))):
        kind = m.shape[fused.lead :], m.dtype
        free[:0] = [held.pop(n) for n in dict.fromkeys(uses(m)) if n in held and last[n] == i]
        if is_total(m):
            totals.append((m, writer.fresh("parts")))
            text.append(f"{totals[-1][1]} = float({names[m.args[0].number]}.{m.name}()){note}")
        elif ufunc_of(m) is None:
            target = names[m.number] + "[...]" * (m.number in fused.results)
            text.append(f"{target} = {expression(m, writer)}{note}")
        else:
            if m.number not in fused.results:
                spare = next((b for b in free if b[1:] == kind), None)  # that nobody needs any more
                if spare is None:
                    buffers[names[m.number]] = m
                else:
                    free.remove(spare)
                    names[m.number] = spare[0]
                held[m.number] = names[m.number], *kind
            block = fused.rows, *m.shape[fused.lead :]
            arguments = writer.operands(m, block, f"[:len({names[m.number]})]")
            text.append(f"{name_of_ufunc(m)}({arguments}, out={names[m.number]}){note}")
    if totals:
        parts = ", ".join(p for _, p in totals)
        text.append(f"return {parts}" + "," * (len(totals) == 1))
    return text, buffers, totals


def expression(m, writer):
    """Write a step that takes no ``out``, for a block: axes are counted from the last."""
    axes = reduced_axes(m, writer.steps)
    if axes is None:
        return writer.expression(m)
    axes = axes[0] if len(axes) == 1 else axes
    if m.kind == "method":
        keep = ", keepdims=True" if m.options.get("keepdims") else ""
        return f"{writer.text(m.args[0])}.{m.name}({axes}{keep})"
    given = [*m.args]
    given[len(uses(m))] = axes
    return writer.call(writer.constant(m.function), given, m.options)


def name_of_ufunc(step):
    if step.kind == "function" and step.name.startswith("special."):
        return step.name
    return "np." + ufunc_of(step).__name__
