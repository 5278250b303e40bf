"""Fuse: a chain of elementwise steps on large arrays becomes one pass in blocks that stay in the processor's cache.

Step by step, every array of a chain goes out to memory and comes back.  In blocks, only what is needed elsewhere is
written to memory; the rest lives in buffers of ``BLOCK`` elements, which are used again as soon as they are free.
"""

import math

import numpy as np

from .. import blocks
from .capture import Ref, Step
from .plan import replaced, uses

BLOCK = 32768  # elements, by measurement: 128 KB of float32; a smaller one takes more calls than the cache saves
UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "neg": np.negative,
          "abs": np.absolute, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
          "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or,
          "xor": np.bitwise_xor, "invert": np.invert}  # fmt: skip


class Fused(Step):
    """Several elementwise steps, and perhaps a sum at the end, as one.

    ``members``: the steps; ``results``: the numbers of those which are needed outside; ``arrays``: what is cut into
    blocks.
    """

    __slots__ = ("arrays", "members", "results")

    def __init__(self, members, results, source):
        super().__init__(members[-1].number, "fused", "fused", None, line=members[0].line)
        inside = {m.number for m in members}
        self.members, self.results = members, results
        outside = dict.fromkeys(n for m in members for n in uses(m) if n not in inside)
        self.args = tuple(map(Ref, outside))
        self.arrays = [n for n in outside if source[n].shape == members[0].shape]
        self.shape = members[0].shape


def ufunc_of(step):
    """The ufunc that a step calls, or None."""
    if step.kind == "operator":
        if step.name == "pow" and step.args[1] in (2, 2.0) and type(step.args[1]) in (int, float):
            return np.square  # what NumPy's ** does for 2
        return UFUNCS.get(step.name)
    simple = step.kind == "function" and isinstance(step.function, np.ufunc) and not step.options
    return step.function if simple and step.function.nout == 1 and step.function.signature is None else None


def is_sum(step):
    """Whether it is the sum of all elements, in the array's own dtype."""
    if step.kind != "method" or step.name != "sum" or step.shape != ():
        return False
    return all(a is None for a in step.args[1:]) and step.options in ({}, {"keepdims": False})


def is_large(step):
    return step.shape is not None and math.prod(step.shape) >= 2 * BLOCK


def fuse(steps, wanted, source, written):
    """The steps with chains joined.  ``wanted``: numbers of results; ``source``: number -> Step, of all."""
    if not any(map(is_large, steps)):
        return steps
    steps = without_broadcasts(steps, wanted, source)
    i = 0
    while i < len(steps):
        group = members_from(steps, i, source, written)
        if len(group) < 2:
            i += 1
            continue
        inside, after = {s.number for s in group}, set()
        before, rest, last = [], [], max(steps.index(s) for s in group)
        for step in steps[i : last + 1]:
            if step.number not in inside:
                late = any(n in inside or n in after for n in uses(step))
                (rest if late else before).append(step)
                after.update({step.number} if late else ())
        others = [*rest, *steps[last + 1 :]]
        needed = {n for s in others for n in uses(s)} | set(wanted)
        results = [s.number for s in group if s.number in needed]
        steps[i : last + 1] = [*before, Fused(group, results, source), *rest]
        i += len(before) + 1
    return steps


def without_broadcasts(steps, wanted, source):
    """Elementwise steps take a number as it is, not repeated to the shape of an array."""
    repeated = {}
    for step in steps:
        spread = step.kind == "function" and step.name == "broadcast_to" and type(step.args[0]) is Ref
        if spread and source[step.args[0].number].shape == () and is_large(step):
            repeated[step.number] = step.args[0]
        elif ufunc_of(step) and any(type(a) is Ref and source[a.number].shape == step.shape
                                    and a.number not in repeated for a in step.args):  # fmt: skip
            step.args = replaced(step.args, repeated)
    used = {n for s in steps for n in uses(s)} | set(wanted)
    return [s for s in steps if s.number not in repeated or s.number in used]


def members_from(steps, i, source, written):
    """The steps that can be one pass with step i, which is the first of them."""
    first = steps[i]
    if first.kind == "fused" or not is_large(first) or not fits(first, first.shape, source, written):
        return []
    group, late = [first], set()
    inside = {first.number}
    for step in steps[i + 1 :]:
        if step.kind == "fused":
            late.update(n for n in (step.number, *step.results) if inside.intersection(uses(step)) or late)
            continue
        if step.writes is not None or step.kind in ("check", "call"):
            break
        if step.kind == "draw" and any(n in inside or n in late for n in uses(step)):
            break  # draws keep their order
        joins = not any(n in late for n in uses(step))
        summed = joins and is_sum(step) and step.args[0].number in inside and step.dtype.char in "fd"
        if joins and (summed or fits(step, first.shape, source, written)):
            group.append(step)
            (late if summed else inside).add(step.number)
        elif any(n in inside or n in late for n in uses(step)):
            late.add(step.number)
    return group


def fits(step, shape, source, written):
    """Whether a step is elementwise on arrays of a shape and on numbers."""
    if step.shape != shape or ufunc_of(step) is None or step.owner in written or step.owner != step.number:
        return False
    operands = [source[n] for n in uses(step)]
    if not step.flat or any(o.owner in written or o.shape not in (shape, ()) or not o.flat for o in operands):
        return False
    return all(type(a) is Ref or np.ndim(a) == 0 for a in step.args) and any(o.shape == shape for o in operands)


def lines(fused, writer):
    """The lines of a fused step: a function of one block, and the call that runs it on all of them."""
    size = int(np.prod(fused.shape))
    cut, whole, names = {}, {}, writer.names  # whole: the results as they are cut into blocks
    text = []
    for n in fused.arrays:
        cut[n] = writer.fresh(names[n] + "_all")
        text.append(f"{cut[n]} = {names[n]}.reshape(-1)")
    for m in fused.members:
        names[m.number] = writer.name_of(m)
        if m.number in fused.results and not is_sum(m):
            text.append(f"{names[m.number]} = np.empty({m.shape}, np.{m.dtype})")
            whole[m.number] = names[m.number]
            if len(m.shape) > 1:
                whole[m.number] = writer.fresh(names[m.number] + "_all")
                text.append(f"{whole[m.number]} = {names[m.number]}.reshape(-1)")
    block = writer.fresh("block")
    text.append(f"def {block}(a, b):  # elements a to b of {size}, in one pass")
    text += ["    " + line for line in body(fused, writer, cut, whole)]
    sums = [m for m in fused.members if is_sum(m)]
    totals = ", ".join(names[m.number] for m in sums)
    call = f"in_blocks({block}, {size})"
    text.append(f"{totals}{',' * (len(sums) == 1)} = {call}" if sums else call)
    for m in sums:
        text.append(f"{names[m.number]} = np.{m.dtype}({names[m.number]})")
    return text


def body(fused, writer, cut, whole):
    """The lines of the function of one block; a buffer that nobody needs any more takes the next result."""
    names, last, buffers = dict(writer.names), {}, {}
    for i, m in enumerate(fused.members):
        for n in uses(m):
            last[n] = i
    text, partial = [], []
    for n, name in cut.items():
        names[n] = f"{name}[a:b]"
    lines_of = [m.line for m in fused.members]
    note = lambda i: f"  # {lines_of[i]}" if lines_of[i] and lines_of[i] not in lines_of[:i] else ""  # noqa: E731
    outer, writer.names = writer.names, names
    try:
        for i, m in enumerate(fused.members):
            if is_sum(m):
                partial.append(writer.fresh("part"))
                text.append(f"{partial[-1]} = float(np.add.reduce({names[m.args[0].number]})){note(i)}")
                continue
            free = [n for n in dict.fromkeys(uses(m)) if n in buffers and last[n] == i and buffers[n] == m.dtype]
            arguments = ", ".join(writer.text(a) for a in operands(m))
            function = name_of_ufunc(m)
            if m.number in fused.results:
                target = f"{whole[m.number]}[a:b]"
                text.append(f"{function}({arguments}, out={target}){note(i)}")
                names[m.number] = target
            elif free:
                names[m.number] = names[free[0]]
                buffers[m.number] = buffers.pop(free[0])
                text.append(f"{function}({arguments}, out={names[m.number]}){note(i)}")
            else:
                buffers[m.number] = m.dtype
                text.append(f"{names[m.number]} = {function}({arguments}){note(i)}")
    finally:
        writer.names = outer
    if partial:
        text.append(f"return {', '.join(partial)}{',' * (len(partial) == 1)}")
    return text


def operands(step):
    return step.args[:1] if ufunc_of(step) is np.square and step.kind == "operator" else step.args


def name_of_ufunc(step):
    if step.kind == "function" and step.name.startswith("special."):
        return step.name
    return "np." + ufunc_of(step).__name__


def in_blocks(function, size):
    """``function(a, b)`` for all blocks, on the engine's threads; the sums of what it returns."""
    starts = range(0, size, BLOCK)
    parts = [None] * len(starts)
    todo = iter(range(len(starts)))

    def work():
        for i in todo:  # each thread takes the next block that none has taken
            parts[i] = function(starts[i], min(starts[i] + BLOCK, size))

    others = blocks.helpers(work, blocks.threads - 1) if blocks.threads > 1 else ()
    try:
        work()
    finally:
        for other in others:
            if not other.cancel():  # it has begun
                other.result()
    return None if parts[0] is None else [sum(column) for column in zip(*parts)]
