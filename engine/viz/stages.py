"""The drawing of a capture: its steps after one of the compiler's passes, or those of all passes in one picture.

``engine.viz.compiled`` is how one gets it.  Everything is read off what the capture has kept: nothing runs.
"""

import re
from dataclasses import dataclass, field

from ..arrays.dtypes import of as dtype_of
from ..compiler.generate import Writer
from ..compiler.plan import refs, uses
from ..compiler.steps import Ref, leaves
from .dot import Drawing, box, chip, digraph, plural
from .recorded import Known, brief

PASSES = {
    "captured": "all that was written down",
    "joined": "what is the same is done once",
    "needed": "what leads to no result is left out",
    "fused": "steps on the same elements are done together",
}
PASS_NAMES = ("forward", "backward")


@dataclass
class Box:
    """A step, an input or a result (whose ``number`` is a text), with the numbers of what it takes."""

    number: int | str
    title: str
    part: str
    inputs: list
    kind: str = ""
    name: str = ""
    line: str = ""
    step: bool = False
    group: int | None = None  # the pass over memory that it is done in
    passes: list = field(default_factory=list)  # after which it is there


def entry_of(function):
    """The last capture of a compiled function, or of an explanation; ValueError if there is none."""
    function = getattr(function, "compiled", function)
    entries = [function.entry] if hasattr(function, "entry") else getattr(function, "entries", None)
    if entries is None:
        raise TypeError(f"compiled() draws what compile() or explain() gave, but got {type(function).__name__}")
    if not entries:
        raise ValueError("nothing is captured yet: call the compiled function once")
    entry = entries[-1]
    if not entry.passes:
        raise ValueError(f"nothing is compiled: {entry.broken}")
    return entry


def stage_boxes(entry, name):
    """{number: Box} after a pass."""
    stage, first = entry.passes[name], entry.passes["captured"]
    boxes, last = {}, {}
    now = {}  # of memory that was written in place: the step that wrote it last
    for s in first.steps:
        if s.kind == "input":
            given = s.number in stage.given
            title = "gradient of the result" if given else entry.names[s.number]
            boxes[s.number] = Box(s.number, title, "backward" if given else "", [], step_kind(s))
    for s in stage.steps:
        for m in getattr(s, "members", (s,)):
            if m.kind == "input":
                continue
            taken = {n: now.get(n, n) for n in uses(m)}
            writer = Terse({})
            writer.names = {n: f"[{label(k)}]" for n, k in taken.items()}
            whole = m.kind in ("check", "setitem", "call") or m.writes is not None
            text = (writer.line(m) if whole else writer.expression(m)).replace("np.", "")
            part, group = PASS_NAMES[m.number >= stage.middle], s.number if m is not s else None
            inputs = list(dict.fromkeys(taken.values()))
            b = boxes[m.number] = Box(m.number, text, part, inputs, step_kind(m), "", m.line, True, group)
            if m.writes is not None:
                now[m.writes.number] = m.number
            elif b.part == "forward":
                last[m.line] = b
    for line, b in last.items():  # the last step of "y = ..." is y
        found = re.search(r":\d+: (\w+) = ", line)
        b.name = found[1] if found else ""
    for i, r in enumerate(stage.outputs):
        boxes[f"r{i}"] = Box(f"r{i}", "result" + f" {i + 1}" * (len(stage.outputs) > 1), "forward", refs(r))
    for (n, name), g in zip(entry.names.items(), stage.grads):
        if g is not None:
            boxes[f"g{n}"] = Box(f"g{n}", f"gradient of {name}", "backward", refs(g))
    reached = {n for b in boxes.values() for n in b.inputs}
    return {n: b for n, b in boxes.items() if b.step or n in reached or type(n) is str}


def label(number):
    """A step's number as it is shown; those that compute with sizes come before all others, and have negative ones."""
    return str(number) if number >= 0 else f"size{-number}"


def step_kind(step):
    return "" if step.shape is None else Known(shape=step.shape, dtype=dtype_of[step.dtype].name).kind


class Terse(Writer):
    """Writes steps as the generated code has them, but constants as their values and without arguments of None."""

    def constant(self, value):
        return brief(value) if hasattr(value, "dtype") and hasattr(value, "size") else getattr(value, "__name__", "...")

    def call(self, name, args, options):
        while args and args[-1] is None:
            args = args[:-1]
        return super().call(name, args, {k: v for k, v in options.items() if v is not None and v is not False})


def short_origin(line):
    """An origin; in a cell of a notebook it is a line without a file."""
    return re.sub(r"^cell:", "line ", line)


def union(entry):
    """{number: Box} of all passes, with the passes after which each is there; and {edge: passes} likewise."""
    boxes, edges = {}, {}
    for name in entry.passes:
        for n, b in stage_boxes(entry, name).items():
            known = boxes.setdefault(n, b)
            known.passes.append(name)
            known.group = b.group if b.group is not None else known.group
            for source in b.inputs:
                edges.setdefault((source, n), []).append(name)
    return boxes, edges


def fate(entry, number):
    """Return why a step is no longer there: (the pass that removed it, the reason)."""
    names = list(entry.passes)
    for before, after in zip(names, names[1:]):
        if number in stage_boxes(entry, before) and number not in stage_boxes(entry, after):
            otherwise = "done once" if after == "joined" else "not needed"
            return after, instead(entry.passes["captured"], entry.passes[after], number) or otherwise
    return None


def instead(before, after, number):
    """Describe what the users of a removed step take in its place; "" if there are none."""
    first, later = ({m.number: m for s in at.steps for m in getattr(s, "members", (s,))} for at in (before, after))
    pairs = [(m.args, later[n].args) for n, m in first.items() if n in later]
    for old, new in (*pairs, (before.outputs, after.outputs), (before.grads, after.grads)):
        for a, b in zip(leaves(old), leaves(new)):
            if type(a) is Ref and a == Ref(number) and type(b) is Ref and b.number in first:
                same = first[b.number].shape == first[number].shape
                return f"{'the same as' if same else 'taken as'} {label(b.number)}"
            if type(a) is Ref and a == Ref(number) and type(b) is not Ref:
                return "a constant"
    return ""


# ---- the text


def compiled(function, stage=None, *, part=None, direction="TB"):
    """The steps of a compiled function as they are after a pass of the compiler: a picture in a notebook, or a text."""
    entry = entry_of(function)
    stage = stage or list(entry.passes)[-1]
    if stage not in entry.passes:
        raise ValueError(f"stage must be one of {', '.join(map(repr, entry.passes))}, but got {stage!r}")
    if part not in (None, *PASS_NAMES):
        raise ValueError(f"part must be None, 'forward' or 'backward', but got {part!r}")
    boxes = chosen(stage_boxes(entry, stage), part)
    edges = {(source, n): () for n, b in boxes.items() for source in b.inputs if source in boxes}
    caption = summary(entry, stage, boxes).replace(": ", ":\n").replace("; ", ";\n").splitlines()
    dot = stage_dot(boxes, edges, caption, direction, twins(entry, boxes))
    return Drawing(stage_text(entry, stage, boxes), dot)


def twins(entry, boxes):
    """[(step, one that does the same)] among the boxes: they are drawn side by side."""
    same = {n: re.fullmatch(r"the same as (\d+)", (fate(entry, n) or ("", ""))[1]) for n, b in boxes.items() if b.step}
    pairs = [(int(found[1]), n) for n, found in same.items() if found]
    return [(a, n) for a, n in pairs if a in boxes and boxes[a].part == boxes[n].part]


def chosen(boxes, part):
    """Those of one part, with what they take from the other as inputs."""
    if part is None:
        return boxes
    inside = {n: b for n, b in boxes.items() if b.part == part}
    near = {n for b in inside.values() for n in b.inputs}
    outside = {n: Box(n, b.name or b.title, "", [], b.kind, line=b.line) for n, b in boxes.items() if n in near}
    return {n: (outside | inside)[n] for n in boxes if n in near or n in inside}


def summary(entry, stage, boxes):
    """Say in a sentence how many steps are left after a pass."""
    counts = []
    for part in PASS_NAMES:
        here = [b for b in boxes.values() if b.step and b.part == part]
        if here:
            groups = {b.group for b in here if b.group is not None}
            together = sum(b.group is not None for b in here)
            sweeps = f", {together} of them in {len(groups)} pass{'es' * (len(groups) > 1)} over memory"
            counts.append(f"{plural(len(here), 'step')} {part}" + sweeps * bool(groups))
    name = getattr(entry.compiled.function, "__name__", type(entry.compiled.function).__name__)
    return f"{name}, {stage} ({PASSES[stage]}): {'; '.join(counts) or 'nothing to do'}."


def stage_text(entry, stage, boxes):
    """The steps after a pass as a numbered list, part by part."""
    lines = [summary(entry, stage, boxes)]
    shown_part = shown_group = shown_line = ""
    steps = [b for n, b in boxes.items() if type(n) is int]
    for b in sorted(steps, key=lambda b: (("", *PASS_NAMES).index(b.part), b.step)):
        if b.step and b.part != shown_part:
            lines.append(f"{b.part}:")
            shown_part, shown_line = b.part, ""
        if b.group is not None and b.group != shown_group:
            lines.append(f"  in one pass over {b.kind}:")
        shown_group = b.group
        what = b.title if b.step else f"input {b.title}"
        line = "" if b.line == shown_line else short_origin(b.line)
        shown_line = b.line or shown_line
        about = "; ".join(filter(None, (b.kind, b.name and f"called {b.name}", line)))
        indent = "  " * (b.step + (b.group is not None))
        lines.append(f"{indent}{label(b.number)}. {what}" + (f": {about}" if about else ""))
    for b in boxes.values():
        if type(b.number) is str:
            lines.append(f"{b.title}: {', '.join(map(label, b.inputs)) or 'a constant'}")
    saved = [r.number for r in entry.passes[stage].saved if r.number in boxes]
    if saved:
        lines.append(f"kept for backward: {', '.join(map(label, saved))}")
    return "\n".join(lines)


# ---- the picture

LEGEND = "Dashed arrows: kept for backward."
SWEEP = 'style="rounded,filled" fillcolor="#e8590c33" color="#e8590c"'


def stage_dot(boxes, edges, caption, direction="TB", twins=()):
    """DOT text: a frame for each part, and in it a box for each pass over memory; ``edges``: (from, to) -> classes.

    ``twins``: pairs that stand side by side.
    """
    lines, arrows = [], []
    for (a, n), classes in edges.items():
        style = "style=dashed " * (boxes[a].part != "backward" and boxes[n].part == "backward")
        arrows.append(f'  {dot_name(a)} -> {dot_name(n)} [{style}class="{" ".join(classes)}"]')
    caption = [*caption, *[LEGEND] * any("dashed" in line for line in arrows)]
    for part in ("", *PASS_NAMES):
        here = [b for b in boxes.values() if b.part == part]
        frame = f'label={chip([part])} labelloc=t labeljust=l class="part" style=rounded color="#888888"'
        lines += [f"  subgraph cluster_{part} {{", f"    graph [{frame}]"] if part and here else []
        for group in dict.fromkeys(b.group for b in here):
            box = f'label={chip(["one pass"])} class="sweep" penwidth=2 {SWEEP}'
            lines += [] if group is None else [f"    subgraph cluster_{group} {{", f"      graph [{box}]"]
            lines += [f"    {node(b)}" for b in here if b.group == group]
            lines += [] if group is None else ["    }"]
        sides = [(a, n) for a, n in twins if boxes[n].part == part and boxes[a].group is boxes[n].group is None]
        lines += [f"    {{ rank=same {dot_name(a)} {dot_name(n)} }}" for a, n in sides]
        lines += ["  }"] if part and here else []
    return digraph([*lines, *arrows], caption, direction, (0.25, 0.3), "0.14,0.06")


def dot_name(number):
    return number if type(number) is str else f"n{label(number)}"


def node(b):
    """The line of DOT for a box."""
    kind = "operation" if b.step else "result" if type(b.number) is str else "leaf"
    where = short_origin(b.line).partition(": ")[0]
    rows = [b.title, b.kind, b.step and ": ".join(filter(None, (where, b.name)))]
    return f"{dot_name(b.number)} {box(kind, *rows, number=label(b.number) if type(b.number) is int else None)}"
