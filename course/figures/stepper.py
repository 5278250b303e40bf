"""BackwardStepper: the backward pass of a real graph, one node at a time."""

import html
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from course.figures import rules
from engine import viz
from engine.autograd.hooks import RetainGrad, as_grad_tuple, as_tensor
from engine.core.backward import attachments, backward_pass, roots
from engine.core.graph import AccumulateGrad, Node, Output
from engine.core.tensor import Tensor
from engine.surface.printing import printoptions

SVG = "{http://www.w3.org/2000/svg}"
HERE = Path(__file__).parent
NOW, DONE, AHEAD = "now", "done", "ahead"  # how a part of the picture stands to the step that is shown

Visit = Callable[[Node, Any, tuple[Node | None, ...]], Any]


@dataclass(frozen=True)
class Flow:
    """A gradient on its way: its value as it prints and in short, and where it goes."""

    value: str
    short: str
    shape: tuple[int, ...]
    dtype: str
    to: str = ""  # the node that it goes to
    rule: str = ""  # the formula that gave it
    filled: str = ""  # the same with values

    @property
    def kind(self) -> str:
        return f"{viz.shape_text(self.shape)} {self.dtype}".removesuffix(" float32").rstrip()


@dataclass(frozen=True)
class Step:
    """One node's turn in backward; step 0 is what ``backward()`` starts with."""

    number: int
    node: str
    made: str = ""  # the variable that holds the node's output
    rule: str = ""
    incoming: tuple[Flow, ...] = ()
    outgoing: tuple[Flow, ...] = ()
    waiting: dict[str, Flow] = field(default_factory=dict)  # what has arrived at nodes whose turn is still to come
    grads: dict[str, str] = field(default_factory=dict)  # .grad of the leaves after this step
    freed: tuple[str, ...] = ()

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """What is shown of the step: headings, and lines below them."""
        if self.incoming:
            yield "Arrives", [f"{f.value}  {f.kind}" for f in self.incoming]
        yield "Rule", [self.rule]
        if self.outgoing:
            lines = []
            for f in self.outgoing:
                how = " = ".join(dict.fromkeys(filter(None, [f.rule, f.filled, f.short])))
                lines.append(f"to {f.to}: {how}  {f.kind}")
            yield "Passes on", lines
        if self.waiting:
            yield "Waiting", [f"{f.short} at {where}" for where, f in self.waiting.items()]
        yield ".grad so far", [f"{leaf}.grad = {grad}" for leaf, grad in self.grads.items()] or ["no leaves"]
        if self.freed:
            yield "Freed", [", ".join(self.freed)]

    @property
    def title(self) -> str:
        return f"{self.node}, which made {self.made}" if self.made else self.node

    @property
    def sentence(self) -> str:
        """The step in one sentence."""
        parts = [f"gets {' and '.join(f.short for f in self.incoming)}" if self.incoming else ""]
        parts += [f"passes {f.short} to {f.to}" for f in self.outgoing]
        if not self.outgoing and self.incoming:
            parts.append(", ".join(f"{leaf}.grad is {grad}" for leaf, grad in self.grads.items()))
        return f"{self.title}: {'; '.join(filter(None, parts))}."


class BackwardStepper:
    """A slider over the backward pass of ``loss``: the node, the gradient that arrives, its rule, what it passes on.

    The pass is run once, with recording hooks, on the graph as it is; no ``.grad`` changes and nothing is freed.
    ``names``: {"w": w}; else the caller's variables name the tensors.  ``gradient``: what to begin with, for a result
    that is no scalar.  ``retain_graph``: as in ``backward``; with True nothing is said to be freed.  ``values``,
    ``max_nodes``, ``direction``: as in ``engine.viz.graph``.  Raises what ``backward`` raises.

    For a Var of lesson 11, with ``walk=backward``, it shows what the learner's own ``backward`` does.

    ``steps``, ``text(k)``, ``picture(k)`` and ``static()`` need neither a notebook nor ipywidgets.
    """

    steps: list[Step]

    def __init__(
        self,
        loss: Any,
        names: Mapping[str, Tensor] | None = None,
        *,
        gradient: Tensor | None = None,
        retain_graph: bool = False,
        values: bool = False,
        max_nodes: int = 40,
        direction: str = "TB",
        walk: Callable[[Any], Any] | None = None,
    ):
        if walk is not None:
            from course.figures.own_engine import OwnWalk, names_of

            own = OwnWalk(loss, walk, names_of(sys._getframe(1), names))
            self.steps = own.steps
            self._words, self._svg = own.drawn()
            return
        named = [*(names or {}).items(), *viz.variables(sys._getframe(1))]
        recording = Recording(loss, gradient, named, retain_graph)
        self.steps = recording.steps
        plan = viz.graph_drawing([loss], named, max_nodes, values)
        recording.annotate(plan)
        drawn = viz.Graph(plan, direction=direction)
        self._words = drawn.summary
        self._svg = None if drawn.svg is None else prepared(drawn.svg, recording)

    def __len__(self) -> int:
        return len(self.steps)

    def text(self, k: int) -> str:
        """Step k in words."""
        step = self.steps[k]
        lines = [f"Step {step.number} of {len(self) - 1}: {step.title}"]
        for heading, content in step.sections():
            lines += [f"  {heading}: {content[0]}", *(f"    {line}" for line in content[1:])]
        return "\n".join(lines)

    def picture(self, k: int | None = None) -> str | None:
        """The graph at step k as SVG; without k, with the gradients of all steps.  None where there is no Graphviz."""
        if self._svg is None:
            return None
        svg = ElementTree.fromstring(self._svg)
        turn = len(self) if k is None else self.steps[k].number
        for element in svg.iter():
            if (data := element.attrib.pop("data-turn", None)) is not None:
                how = DONE if int(data) < turn else NOW if int(data) == turn else AHEAD
                element.set("class", f"{element.get('class')} {how if k is not None else 'all'}")
            if (data := element.attrib.pop("data-texts", None)) is not None:
                element.text = text_at(data, turn)
        return ElementTree.tostring(svg, encoding="unicode")

    def static(self) -> dict[str, str]:
        """The picture with the gradients of all steps, and the steps as a text, as a notebook's output."""
        text = "\n".join([self._words, *(f"{s.number}. {s.sentence}" for s in self.steps)])
        words = f"The backward pass, step by step. {self._words}"
        return {"text/plain": text, "text/html": viz.image(self.picture(), words, text)}

    def widget(self) -> Any:
        """The slider, the picture and the words, as a widget.  ImportError where anywidget is not installed."""
        from course.figures.stepper_widget import StepperWidget

        return StepperWidget(
            svg=self._svg or f"<pre>{html.escape(self._words)}</pre>",
            panels=[panel(step, len(self) - 1) for step in self.steps],
            said=[f"Step {s.number} of {len(self) - 1}. {s.sentence}" for s in self.steps],
        )

    def __repr__(self) -> str:
        return self.static()["text/plain"]

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_()
        except ImportError:  # anywidget is not installed: the picture and the text are
            data, metadata = {}, {}
        return data | self.static(), metadata


class Recording:
    """The steps of a backward pass, and where in the picture they belong."""

    def __init__(self, loss: Tensor, gradient: Tensor | None, named: list[tuple[str, Tensor]], retain_graph: bool):
        self.retain_graph = retain_graph
        start = roots(loss, gradient, False)
        nodes = every_node(start)
        shown = sorted((n for n in nodes if type(n) is not Output), key=lambda n: n.time)
        self.number = {node: i for i, node in enumerate(shown, 1)}
        self.variable = {viz.source(t.node)[0]: name for name, t in reversed(named) if viz.as_shown(t.node) in nodes}
        self.pending: dict[Node, Any] = {}
        self.grads = {
            n: "None" if n.variable is None or n.variable._grad is None else viz.brief(n.variable._grad.array)
            for n in reversed(shown)  # the leaf that was made first comes first
            if type(n) is AccumulateGrad
        }
        self.turn: dict[Node, int] = {}
        self.frees: set[Node] = set()
        self.notes: dict[tuple[Node, int], str] = {}  # (node, which input): the gradient that it passed there, in short
        self.history: dict[Node, list[tuple[int, str]]] = {n: [(0, f"grad {g}")] for n, g in self.grads.items()}
        self.steps: list[Step] = []
        self.begin(start)
        self.run(start, nodes)

    def begin(self, start: dict[Node, Any]) -> None:
        outgoing = tuple(self.flow(g, node) for node, g in start.items())
        for node, g in start.items():
            self.arrive(node, g)
        rule = "backward() starts at the result: the slope of the result with respect to itself is 1."
        if any(f.short != "1" for f in outgoing):
            rule = "backward() starts at the result, with the gradient that it was given."
        self.add("backward()", rule=rule, outgoing=outgoing)

    def run(self, start: dict[Node, Any], nodes: set[Node]) -> None:
        """A pass with a visit that looks on; what the program registered stays in force, but for ``retain_grad``."""
        thread = threading.get_ident()

        def looking(visit: Visit, *_: Any) -> Visit | None:
            def visit_and_look(node: Node, g: Any, parents: tuple[Node | None, ...]) -> Any:
                into = visit(node, g, parents)
                if node in nodes and type(node) is not Output:
                    self.at_node(node, tuple(as_tensor(x) for x in into), as_grad_tuple(g, node.outputs))
                return into

            return visit_and_look if threading.get_ident() == thread else None

        retained = {n: n.hooks for n in nodes if any(type(h) is RetainGrad for h in n.hooks)}
        attachments.insert(0, looking)
        try:
            for n, hooks in retained.items():
                n.hooks = tuple(h for h in hooks if type(h) is not RetainGrad)
            leaves = backward_pass(start, retain_graph=True, wanted={n for n in nodes if type(n) is AccumulateGrad})
        finally:
            attachments.remove(looking)
            for n, hooks in retained.items():
                n.hooks = hooks
        # which of them comes first is all the same: take the picture's order
        for n in sorted(leaves, key=lambda n: n.time):
            self.at_leaf(n, leaves[n])

    def at_node(self, node: Node, into: tuple[Tensor | None, ...], incoming: tuple[Tensor | None, ...]) -> None:
        """A node has run: what arrived there and what it gave."""
        self.pending = {n: g for n, g in self.pending.items() if viz.real(n) is not node}
        outgoing, position = [], 0
        for i, (parent, t) in enumerate(zip(node.parents, into, strict=True)):
            if parent is None:
                continue
            if t is not None:
                rule = rules.formula(node, i)
                known = rules.values(node, i) if rule else {}
                filled = rules.filled_in(rule, {"grad": incoming[0], **known})
                if rule and incoming[0] is not None and node.rules is not type(node).rules:
                    rule, filled = (after_broadcast(f, incoming[0], t) for f in (rule, filled))
                flow = self.flow(t, parent, rule, filled)
                outgoing.append(flow)
                self.notes[node, position] = flow.short
                self.arrive(parent, t)
            position += 1
        frees = () if self.retain_graph else tuple(kept_by(node))
        if frees:
            self.frees.add(node)
        self.add(
            viz.node_title(node),
            node,
            made=self.variable.get(node, ""),
            rule=rules.in_words(node),
            incoming=tuple(self.flow(t) for t in incoming if t is not None),
            outgoing=tuple(outgoing),
            freed=frees,
        )

    def at_leaf(self, node: AccumulateGrad, g: Any) -> None:
        """The turn of a leaf has come: what arrived is added to its ``.grad``."""
        self.pending.pop(node, None)
        leaf = node.variable
        if leaf is not None:
            total = g if leaf._grad is None else leaf._grad.array + g
            self.grads[node] = viz.brief(total)
        self.add(
            f"AccumulateGrad of {self.named(node)}",
            node,
            rule=f"The end of the graph: what arrives is added to {self.named(node)}.grad.",
            incoming=(self.flow(g),),
        )
        self.history[node].append((len(self.steps) - 1, f"grad {self.grads[node]}"))

    def arrive(self, node: Node, g: Any) -> None:
        """Note what waits at a node, added up, and at a leaf in the picture too."""
        node, g = viz.source(node)[0], g.array if isinstance(g, Tensor) else g
        self.pending[node] = self.pending[node] + g if node in self.pending else g
        if node in self.history:
            self.history[node].append((len(self.steps), f"waiting: {self.flow(self.pending[node]).short}"))

    def add(self, name: str, node: Node | None = None, **what: Any) -> None:
        if node is not None:
            self.turn[node] = len(self.steps)
        waiting = {self.where(n): self.flow(g) for n, g in self.pending.items()}
        grads = {self.named(n): grad for n, grad in self.grads.items()}
        self.steps.append(Step(len(self.steps), name, waiting=waiting, grads=grads, **what))

    def flow(self, g: Any, to: Node | None = None, rule: str = "", filled: str = "") -> Flow:
        t = as_tensor(g)
        with printoptions(threshold=50, edgeitems=2):
            value = repr(Tensor(t.array))
        where = "" if to is None else self.where(to)
        return Flow(value, viz.brief(t.array), tuple(t.shape), t.dtype.name, where, rule, filled)

    def where(self, node: Node) -> str:
        tensor, output = viz.source(node)
        if output is not None:
            return f"output {output} of {self.where(tensor.parents[0])}"
        node = tensor
        return f"{self.named(node) if type(node) is AccumulateGrad else viz.node_title(node)} ({self.number[node]})"

    def named(self, leaf: Node) -> str:
        return self.variable.get(leaf, f"leaf {self.number[leaf]}")

    def annotate(self, plan: viz.GraphDrawing) -> None:
        """Make room in the picture for the gradients, at the edges and in the leaves."""
        nodes = {number: node for node, number in self.number.items()}
        for item in plan.items:
            node = nodes[item.number]
            if node in self.history:
                item.note = max((text for _, text in self.history[node]), key=len)
            for position, edge in enumerate(item.inputs):
                short = self.notes.get((node, position))
                edge.note = "" if short is None else f"grad {short}"


def every_node(start: Mapping[Node, Any]) -> set[Node]:
    """The nodes that can be reached, those that stand for one of several outputs included."""
    todo = [viz.as_shown(node) for node in start]
    seen = set(todo)
    while todo:
        for p in map(viz.as_shown, todo.pop().parents):
            if p is not None and p not in seen:
                seen.add(p)
                todo.append(p)
    return seen


def kept_by(node: Node) -> Iterator[str]:
    """The names of the tensors that a node keeps, which backward releases."""
    for name, _, value, _ in viz.saved_values(node) or ():
        if isinstance(getattr(value, "shape", None), tuple):
            yield name


def after_broadcast(rule: str, g: Tensor, into: Tensor) -> str:
    """A formula with what follows it where the input was broadcast or cast."""
    if into.shape != g.shape:
        rule = f"({rule}) added up to {viz.shape_text(into.shape)}"
    return rule if into.dtype == g.dtype else f"({rule}) as {into.dtype.name}"


def prepared(svg: str, recording: Any) -> str:
    """The picture with the turn of each part written to it, for ``picture`` and for the widget to go by."""
    root = ElementTree.fromstring(svg)
    root.set("class", "undertorch-stepper")
    style = ElementTree.Element(SVG + "style")
    style.text = (HERE / "stepper.css").read_text(encoding="utf-8")
    root.insert(2, style)
    nodes = {number: node for node, number in recording.number.items()}
    for group in root.iter(SVG + "g"):
        if group.get("class") == "node result":
            group.set("data-turn", "0")
        match = re.fullmatch(r"(?:node \w+ |edge )n(\d+)(?:-(\d+))?", group.get("class", ""))
        if match is None:
            continue
        node, texts = nodes[int(match[1])], group.findall(f".//{SVG}text")
        group.set("data-turn", str(recording.turn.get(node, len(recording.steps))))
        if match[2] is not None:
            if (node, int(match[2])) in recording.notes:
                for part in (texts[-1], grounds(group)[-1]):
                    part.set("class", "note")
            continue
        if node in recording.frees:
            group.set("class", group.get("class", "") + " frees")
        for text in texts:
            if (text.text or "").startswith("keeps "):
                text.set("class", "kept")
        if node in recording.history:
            centre(texts[-1], group)
            texts[-1].set("class", "grad")
            texts[-1].set("data-texts", "\n".join(f"{k} {text}" for k, text in recording.history[node]))
    return ElementTree.tostring(root, encoding="unicode")


def grounds(group: ElementTree.Element) -> list[ElementTree.Element]:
    """The shapes on which a group's labels lie."""
    return [e for e in group.iter() if e.tag in (SVG + "path", SVG + "polygon") and e.get("fill", "none") != "none"]


def centre(text: ElementTree.Element, group: ElementTree.Element) -> None:
    """Let a text stay in the middle of its box when it changes."""
    outline = group.find(SVG + "path")
    if outline is not None:
        xs = [float(x) for x in re.findall(r"(-?[\d.]+),-?[\d.]+", outline.get("d", ""))]
        text.set("x", f"{(min(xs) + max(xs)) / 2:.2f}")
        text.set("text-anchor", "middle")


def text_at(data: str, turn: int) -> str:
    """Which of the texts ("step text", a line each) holds at a step."""
    lines = [line.partition(" ") for line in data.splitlines()]
    return [text for k, _, text in lines if int(k) <= turn][-1]


def panel(step: Step, last: int) -> str:
    """A step as HTML."""
    parts = [f"<h4>Step {step.number} of {last}: {html.escape(step.title)}</h4>"]
    for heading, lines in step.sections():
        content = "".join(f"<div>{html.escape(line)}</div>" for line in lines)
        kind = "words" if heading == "Rule" else "numbers"
        parts.append(f"<h5>{html.escape(heading)}</h5><div class={kind}>{content}</div>")
    return "".join(parts)
