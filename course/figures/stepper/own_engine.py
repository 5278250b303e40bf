"""Pictures of the engine that a learner writes in lesson 11: `draw(root)`, and the steps of the learner's own walk.

A Var is whatever has ``value``, ``parents``, ``rules`` and ``grad``; ``op`` names what made it.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np

from course.figures.stepper.steps import Flow, Step
from course.figures.stepper.svg import prepared
from engine import viz
from engine.viz.dot import Drawing, box, chip, digraph

MOST = 100  # Vars in a picture
START = "backward() starts at the root, with 1."
ASKED = "Each of its rules is asked what to pass on."
LEAF = "A leaf: what arrived is added to its .grad."


def draw(root: Any, names: Mapping[str, Any] | None = None) -> Drawing:
    """Draw the Vars that a result was computed from: in a notebook a picture, printed a text.

    ``names``: {"a": a}; else the caller's variables name the Vars.
    """
    named = names_of(sys._getframe(1), names)
    every = behind(root)
    return Drawing(*picture(every, [f"v{i}" for i in range(len(every))], named))


def behind(root: Any) -> list[Any]:
    """Return a Var and all it was computed from, each once and before its parents.  ValueError: too many."""
    order, seen, waiting = [], set(), [(root, False)]
    while waiting:
        v, done = waiting.pop()
        if done:
            order.append(v)
        elif v not in seen:
            seen.add(v)
            waiting += [(v, True), *((parent, False) for parent in v.parents)]
    if len(order) > MOST:
        raise ValueError(f"a picture holds {MOST} Vars at most, and these are {len(order)}")
    return order[::-1]


def names_of(frame: FrameType, names: Mapping[str, Any] | None) -> dict[int, str]:
    """{id of a Var: the name of a variable that holds it}."""
    held = {**frame.f_globals, **frame.f_locals, **(names or {})}
    return {id(v): name for name, v in held.items() if hasattr(v, "rules") and not name.startswith("_")}


def called(v: Any, named: Mapping[int, str]) -> str:
    """Return what a Var is called within a sentence."""
    return named.get(id(v)) or getattr(v, "op", "") or shown(v.value)


def shown(x: Any) -> str:
    """Return a value in short, with its shape where it has one."""
    x = np.asarray(x)
    return f"{viz.brief(x)}  {viz.shape_text(x.shape)}" if x.ndim else viz.brief(x)


def rows_of(v: Any, named: Mapping[int, str], with_grad: bool = True) -> list[str]:
    """Return the rows of a Var's box: its operation, its name and value, its `.grad`."""
    value = " = ".join(filter(None, [named.get(id(v)), shown(v.value)]))
    grad = "" if v.grad is None or not with_grad else f"grad {shown(v.grad)}"
    return [row for row in (getattr(v, "op", ""), value, grad) if row]


def picture(
    every: list[Any], keys: list[str], named: Mapping[int, str], notes: Mapping[Any, str] | None = None
) -> tuple[str, str]:
    """Return text and DOT of a graph of Vars. `notes`: {Var: a line in its box; (Var, which parent): at the arrow}."""
    key, notes = dict(zip(every, keys, strict=True)), notes or {}
    number = {v: int(k[1:]) if k[0] == "n" else None for v, k in key.items()}
    lines = []
    for v in reversed(every):
        rows = [*rows_of(v, named, with_grad=v not in notes), notes.get(v, "")]
        lines.append(f"  {key[v]} {box('operation' if v.parents else 'leaf', *rows, number=number[v])}")
    for v in reversed(every):
        for i, parent in enumerate(v.parents):
            label = f" label={chip([], note)}" if (note := notes.get((v, i))) else ""
            lines.append(f'  {key[parent]} -> {key[v]} [class="{key[v]}-{i}"{label}]')
    leaves = sum(not v.parents for v in every)
    words = [f"{viz.plural(len(every), 'Var')}, {viz.plural(leaves, 'leaf')} among them"]
    for v in every:
        op, *rows = rows_of(v, named) if getattr(v, "op", "") else ["", *rows_of(v, named)]
        made = f"{op or 'made'} of {' and '.join(called(p, named) for p in v.parents)}" if v.parents else "a leaf"
        words.append(f"{'; '.join(rows)}: {made}")
    caption = ["Each box is a Var; values flow along the arrows,", "and the slopes go back against them."]
    return "\n".join(words), digraph(lines, caption, "TB", (0.3, 0.35), "0.16,0.08")


class OwnWalk:
    """A learner's `backward` on its way through a graph: which rules it asked, with what, in which order.

    It is run once, on rules that look on; every `.grad` is as before afterwards.
    """

    def __init__(self, root: Any, walk: Callable[[Any], Any], named: Mapping[int, str]):
        self.every, self.named = behind(root), named
        self.leaves = [v for v in reversed(self.every) if not v.parents]
        self.before = {v: v.grad for v in self.leaves}
        self.grads = dict(self.before)
        self.waiting: dict[Any, list[Any]] = {root: [1.0]}
        self.turn: dict[Any, int] = {}
        self.frees: set[Any] = set()
        self.notes: dict[tuple[Any, int], str] = {}
        self.history: dict[Any, list[tuple[int, str]]] = {}
        self.steps: list[Step] = []
        self.asked: tuple[Any, int] | None = None  # the Var and which of its rules were asked last
        self.history = {v: [(0, self.grad(v))] for v in self.leaves}
        self.add("backward()", START, outgoing=(self.flow(np.ones_like(root.value), root),))
        self.run(walk, root)
        later = [v for v in self.every if v not in self.turn]
        ordered = sorted(self.turn, key=lambda v: self.turn[v])
        self.number = {v: i for i, v in enumerate([*ordered, *later], 1)}

    def run(self, walk: Callable[[Any], Any], root: Any) -> None:
        rules = {v: v.rules for v in self.every}
        try:
            for v in self.every:
                v.rules = tuple(self.looking(v, i, rule) for i, rule in enumerate(v.rules))
            walk(root)
            self.look_at_leaves()
        finally:
            for v in self.every:
                v.rules = rules[v]
            for v, grad in self.before.items():
                v.grad = grad

    def looking(self, v: Any, i: int, rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def ask(g: Any) -> Any:
            arrives = self.flow(g)
            part = rule(g)
            self.look_at_leaves()
            if self.asked is None or self.asked[0] is not v or i <= self.asked[1]:
                self.waiting.pop(v, None)
                self.turn[v] = len(self.steps)
                self.add(getattr(v, "op", "") or "a Var", ASKED, v, incoming=(arrives,))
            self.asked = v, i
            parent = v.parents[i]
            flow = self.flow(part, parent)
            self.waiting.setdefault(parent, []).append(part)
            self.notes[v, i] = flow.short
            if parent in self.history:
                self.history[parent].append((len(self.steps) - 1, f"waiting: {self.sum_of(parent)}"))
            last = self.steps[-1]
            self.steps[-1] = replace(last, outgoing=(*last.outgoing, flow), waiting=self.at_rest())
            return part

        return ask

    def look_at_leaves(self) -> None:
        """Note which leaves have had their turn: those whose `.grad` is another."""
        for v in self.leaves:
            if v.grad is not self.grads[v]:
                before, self.grads[v] = self.grads[v], v.grad
                self.waiting.pop(v, None)
                self.turn[v] = len(self.steps)
                came = self.flow(v.grad if before is None else v.grad - before)
                self.add(f"leaf {called(v, self.named)}", LEAF, incoming=(came,))
                self.history[v].append((len(self.steps) - 1, self.grad(v)))

    def add(self, node: str, rule: str, v: Any = None, **what: Any) -> None:
        made = "" if v is None else self.named.get(id(v), "")
        grads = {called(leaf, self.named): "None" if g is None else shown(g) for leaf, g in self.grads.items()}
        self.steps.append(Step(len(self.steps), node, made, rule, waiting=self.at_rest(), grads=grads, **what))

    def at_rest(self) -> dict[str, Flow]:
        """Return what has been passed on to Vars whose turn is still to come."""
        parts = {v: self.sum_of(v) for v in self.waiting if v in self.waiting and self.steps}
        return {called(v, self.named): Flow(text, text, (), "") for v, text in parts.items()}

    def sum_of(self, v: Any) -> str:
        return " + ".join(map(shown, self.waiting[v]))

    def grad(self, v: Any) -> str:
        return f"grad {'None' if self.grads[v] is None else shown(self.grads[v])}"

    def flow(self, g: Any, to: Any = None) -> Flow:
        g = np.asarray(g, dtype=float)
        return Flow(viz.brief(g), viz.brief(g), g.shape, "", "" if to is None else called(to, self.named))

    def drawn(self) -> tuple[str, str | None]:
        """Return the picture in words, and as an SVG that knows the turn of each part."""
        keys = [f"n{self.number[v]}" for v in self.every]
        notes: dict[Any, str] = {key: f"g = {short}" for key, short in self.notes.items()}
        for v, lines in self.history.items():
            notes[v] = max((text for _, text in lines), key=len)
        drawing = Drawing(*picture(self.every, keys, self.named, notes))
        return drawing.summary, None if drawing.svg is None else prepared(drawing.svg, self)
