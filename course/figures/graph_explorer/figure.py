"""GraphExplorer: a graph with its values, shapes and gradients, and a closer look at one node at a time."""

import html
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from course.figures.base import program, rules
from course.figures.stepper.recording import Recording
from course.figures.stepper.svg import SVG
from engine import viz
from engine.core.graph import AccumulateGrad, Node
from engine.core.tensor import Tensor

LAYERS = ("values", "shapes", "gradients")  # what can be shown beside the nodes, or not
SHAPE = re.compile(r"(?P<name>.*?)\s*(?:scalar|\([\d, ]*\))(?: \w+)?")  # after the name of what flows along an edge
UNKNOWN = "not kept"
LAST = "nothing: it is the result"


@dataclass(frozen=True)
class Look:
    """One node, looked at closely; ``inputs`` and ``users`` are its neighbours: place among the looks, and title."""

    number: int
    title: str
    facts: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[int | None, str], ...]  # None: a node that is not drawn
    users: tuple[tuple[int | None, str], ...]

    @property
    def text(self) -> str:
        made_from, used_by = (", ".join(name for _, name in near) for near in (self.inputs, self.users))
        facts = [*self.facts, ("Made from", made_from or "nothing: it was there"), ("Used by", used_by or LAST)]
        return "\n".join([self.title, *(f"  {heading}: {content}" for heading, content in facts)])


class GraphExplorer:
    """The graph of ``result``: choose a node, and see what it made, from what, for whom, and what arrived there.

    ``result``: a Tensor; or a few lines of code, which are run with the caller's variables, and whose last line gives
    it. With code the numbers in between are known too, which a graph alone need not keep.

    ``names``: {"w": w}; else the caller's variables name the tensors.  ``max_nodes``, ``direction``: as in
    ``engine.viz.graph``.  The gradients are those of one backward pass, run with recording hooks on the graph as it is:
    no ``.grad`` changes and nothing is freed.  Where there can be none (the graph was freed, the result has several
    elements) the rest is shown.

    ``looks``, ``text(k)``, ``picture(k)`` and ``static()`` need neither a notebook nor anywidget.
    """

    def __init__(
        self,
        result: Tensor | str,
        names: Mapping[str, Tensor] | None = None,
        *,
        max_nodes: int = 40,
        direction: str = "TB",
    ):
        frame = sys._getframe(1)
        ran = None
        if isinstance(result, str):
            ran = program.run(result, {**frame.f_globals, **frame.f_locals, **(names or {})})
            result = ran.result
        if not isinstance(result, Tensor):
            raise TypeError(f"GraphExplorer draws the graph of a Tensor, but got {type(result).__name__}")
        named = ran.named if ran else [*(names or {}).items(), *viz.variables(frame)]
        self.plan = viz.graph_drawing([result], named, max_nodes, values=True)
        if ran is not None:
            ran.tell(self.plan)
        self.problem = ""
        self._passed_on: dict[int, str] = {}  # by the node's number
        gradients = self._gradients(result, named)
        for item in self.plan.items:
            item.out.grad = gradients.get(item.number, "")
        nodes = [] if result.node is None else [viz.real(result.node)]
        ordered = sorted(viz.walk(nodes), key=lambda node: node.time)
        self.looks = list(self._looks(dict(enumerate(ordered, 1))))
        drawn = viz.Graph(self.plan, saved=False, direction=direction).svg if self.looks else None
        self._svg = None if drawn is None else layered(drawn)

    def _gradients(self, result: Tensor, named: list[tuple[str, Tensor]]) -> dict[int, str]:
        """Return what arrives at each node, in short, by the node's number."""
        if result.node is None:
            return {}
        try:
            recording = Recording(result, None, named, retain_graph=True)
        except RuntimeError as error:
            self.problem = str(error).partition(". ")[0]
            return {}
        found = {}
        for node, number in recording.number.items():
            if (turn := recording.turn.get(node)) is not None:
                step = recording.steps[turn]
                found[number] = ", ".join(flow.short for flow in step.incoming)
                self._passed_on[number] = "; ".join(f"{flow.short} to {flow.to}" for flow in step.outgoing)
        return found

    def _looks(self, nodes: dict[int, Node]) -> Iterator[Look]:
        items = self.plan.items
        place = {item.number: k for k, item in enumerate(items)}
        sources = {i.number: [edge.source and edge.source.number for edge in i.inputs] for i in items}

        def neighbour(number: int | None, times: int = 1) -> tuple[int | None, str]:
            name = title(items[place[number]]) if number else "a node that is not drawn"
            return (place[number] if number else None), name + (f", {times} times" if times > 1 else "")

        for item in items:
            before = sources[item.number]
            after = [other.number for other in items if item.number in sources[other.number]]
            yield Look(
                item.number,
                title(item),
                tuple(self._facts(item, nodes[item.number])),
                tuple(neighbour(number, before.count(number)) for number in dict.fromkeys(before)),
                tuple(map(neighbour, after)),
            )

    def _facts(self, item: viz.Item, node: Node) -> Iterator[tuple[str, str]]:
        known = item.out
        yield "Shape", known.kind_in_full or UNKNOWN
        yield "Value", known.value or UNKNOWN
        yield "Gradient", known.grad or (f"none. {self.problem}" if self.problem else "none")
        if type(node) is not AccumulateGrad:
            yield "Rule", rules.in_words(node)
        if passed_on := self._passed_on.get(item.number):
            yield "Passes on", passed_on
        if item.saved or item.freed:
            yield "Keeps", "freed by backward()" if item.freed else "; ".join(map(str, item.saved))

    def __len__(self) -> int:
        return len(self.looks)

    def text(self, k: int) -> str:
        """Return the k-th node in words; 0 is the one that made the result."""
        return self.looks[k].text

    def picture(self, k: int | None = None) -> str | None:
        """Return the graph as SVG, node k and its neighbours marked; without k, none is.  None without Graphviz."""
        if self._svg is None or k is None:
            return self._svg
        root = ElementTree.fromstring(self._svg)
        for group in root.iter(SVG + "g"):
            if mark := self.mark(group.get("class", ""), k):
                group.set("class", f"{group.get('class')} {mark}")
        return ElementTree.tostring(root, encoding="unicode")

    def mark(self, kind: str, k: int) -> str:
        """Return how a part of the picture, of an SVG class, stands to the k-th node."""
        look = self.looks[k]
        if match := re.fullmatch(r"edge n(\d+)-\d+", kind):
            return "marked" if int(match[1]) == look.number else ""
        match = re.fullmatch(r"node \w+ n(\d+)", kind)
        for mark, places in (("chosen", [(k, "")]), ("input", look.inputs), ("user", look.users)):
            if match and int(match[1]) in (self.looks[place].number for place, _ in places if place is not None):
                return mark
        return ""

    @property
    def summary(self) -> str:
        """The graph in a sentence."""
        of = next((known.name for known, _, _ in self.plan.results), "") or "a result"
        counted = f"{viz.plural(self.plan.operations, 'operation')}, {viz.plural(self.plan.leaves, 'leaf')}"
        if not self.looks:
            return f"Graph of {of}: no operations are recorded."
        missing = f" Drawn are the {len(self.looks)} nodes nearest to the result." if self.plan.left_out else ""
        return f"Graph of {of}: {counted}, with values, shapes and gradients.{missing}"

    def static(self) -> dict[str, str]:
        """Return the picture and every node in words, as a notebook's output."""
        text = "\n".join([self.summary, *(look.text for look in self.looks)])
        if not self.looks:
            return {"text/plain": text}
        return {"text/plain": text, "text/html": viz.image(self.picture(), self.summary, text, "Each node in words")}

    def widget(self) -> Any:
        """Return the picture, the list of nodes and the closer look, as a widget.  ImportError without anywidget."""
        from course.figures.graph_explorer.widget import GraphWidget

        nodes = [
            {"number": k.number, "title": k.title, "facts": k.facts, "Made from": k.inputs, "Used by": k.users}
            for k in self.looks
        ]
        return GraphWidget(nodes=nodes, svg=self._svg or f"<pre>{html.escape(self.summary)}</pre>", layers=list(LAYERS))

    def __repr__(self) -> str:
        return self.static()["text/plain"]

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_() if self.looks else ({}, {})
        except ImportError:  # anywidget is not installed: the picture and the text are
            data, metadata = {}, {}
        return data | self.static(), metadata


def title(item: viz.Item) -> str:
    """Name a node: its number, what it is, and the variable that holds what it made."""
    if item.is_leaf:
        return f"{item.number} leaf {item.out.name}".rstrip()
    return f"{item.number} {item.name}" + (f" ({item.out.name})" if item.out.name else "")


def layered(svg: str) -> str:
    """Return the picture with each text that can be left out marked with its layer, for the front end to go by."""
    root = ElementTree.fromstring(svg)
    for group in root.iter(SVG + "g"):
        if group.get("class", "").partition(" ")[0] not in ("node", "edge"):
            continue
        for text in group.iter(SVG + "text"):
            words = (text.text or "").strip()
            shape = None if text.get("font-weight") == "bold" else SHAPE.fullmatch(words)
            if words.startswith("= "):
                text.set("data-layer", "values")
            elif words.startswith("grad "):
                text.set("data-layer", "gradients")
            elif shape:
                text.set("data-layer", "shapes")
                text.set("data-without", shape["name"])
    return ElementTree.tostring(root, encoding="unicode")
