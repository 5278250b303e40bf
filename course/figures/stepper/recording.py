"""A backward pass that is looked at: what arrived at each node, what it passed on, and what it let go."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from course.figures.base import rules
from course.figures.stepper import drawing, paths
from course.figures.stepper.steps import Flow, Forward, Step
from engine import viz
from engine.autograd.hooks import RetainGrad, as_grad_tuple, as_tensor
from engine.core.backward import attachments, backward_pass, roots
from engine.core.graph import AccumulateGrad, Node, Output
from engine.core.tensor import Tensor
from engine.surface.printing import printoptions

LONGEST = 44  # characters at an arrow or in a box

Visit = Callable[[Node, Any, tuple[Node | None, ...]], Any]


class Recording:
    """The steps of a backward pass, and where in the picture they belong."""

    def __init__(
        self,
        loss: Tensor,
        gradient: Tensor | None,
        named: list[tuple[str, Tensor]],
        retain_graph: bool,
        first: int = 0,
        line: Mapping[Node, int] | None = None,
    ):
        self.retain_graph = retain_graph
        self.first, self.line = first, {viz.as_shown(node): k for node, k in (line or {}).items()}
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
        self.history: dict[Node, list[tuple[int, str]]] = {n: [(0, f".grad = {g}")] for n, g in self.grads.items()}
        self.parts: dict[Node, list[str]] = {}  # what has arrived at each node, one by one
        self.slopes: dict[Node, list[tuple[Node, float]]] = {}  # of single numbers: to which input, and how steep
        self.all_numbers = True  # whether everything is a single number
        self.root = next(iter(start))
        self.made = {n: i for i, n in enumerate((n for n in reversed(shown) if type(n) is not AccumulateGrad), 1)}
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
        """Run a pass with a visit that looks on; what the program registered stays, but for ``retain_grad``."""
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
        """Note that a node has run: what arrived there and what it gave."""
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
                self.notes[node, position] = self.worked_out(node, incoming, parent, t, flow)
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
        """Note the turn of a leaf: what arrived is added to its ``.grad``."""
        self.pending.pop(node, None)
        leaf = node.variable
        if leaf is not None:
            total = g if leaf._grad is None else leaf._grad.array + g
            self.grads[node] = viz.brief(total)
        before = self.history[node][0][1].removeprefix(".grad = ")
        arrived = self.flow(g).short
        parts = ([] if before == "None" else [before]) + self.parts.get(node, [arrived])
        total = self.grads[node] if len(parts) == 1 else f"{paths.added_up(parts)} = {self.grads[node]}"
        self.add(
            f"AccumulateGrad of {self.named(node)}",
            node,
            rule=f"The end of the graph: what arrives is added to {self.named(node)}.grad.",
            incoming=(self.flow(g),),
        )
        said = total if len(total) <= LONGEST else self.grads[node]
        self.history[node].append((self.now - 1, f".grad = {said}"))

    def arrive(self, node: Node, g: Any) -> None:
        """Note what waits at a node, added up, and at a leaf in the picture too."""
        node, g = viz.source(node)[0], g.array if isinstance(g, Tensor) else g
        self.pending[node] = self.pending[node] + g if node in self.pending else g
        parts = self.parts.setdefault(viz.real(node), [])
        parts.append(self.flow(g).short)
        if node in self.history or len(parts) > 1:
            self.history.setdefault(viz.real(node), [(0, "")]).append((self.now, self.sum_of(node)))

    def sum_of(self, node: Node) -> str:
        """Show the sum that waits at a node: 1 + 3 = 4."""
        parts, total = self.parts[viz.real(node)], self.flow(self.pending[node]).short
        if len(parts) == 1:
            return f"waits: {total}"
        said = f"{paths.added_up(parts)} = {total}"
        return said if len(said) <= LONGEST else f"{len(parts)} parts, added: {total}"

    def worked_out(self, node: Node, incoming: tuple[Tensor | None, ...], parent: Node, t: Tensor, flow: Flow) -> str:
        """Show how a gradient came about, at its arrow: 1 x 3 = 3."""
        g = incoming[0]
        single = len(incoming) == 1 and g is not None and g.numel() == t.numel() == 1
        if not single or g is None:
            self.all_numbers = False
            if g is not None and len(incoming) == 1 and t.numel() < g.numel():
                return f"added up: {flow.short}"
            done = flow.filled.replace(" * ", " × ")
            said = f"{done} = {flow.short}"
            return said if done and done != flow.short and len(said) <= LONGEST else flow.short
        arrived, passed = g.item(), t.item()
        slope = passed / arrived if arrived else float("nan")
        self.slopes.setdefault(viz.real(node), []).append((viz.real(parent), slope))
        if slope != slope or abs(slope) == float("inf"):
            return flow.short
        return f"{paths.short(arrived)} × {paths.bracketed(paths.short(slope))} = {flow.short}"

    def questions(self) -> Iterator[paths.Question]:
        """Return the questions about the leaves before backward begins: those with the most paths first."""
        if not self.all_numbers or self.steps[0].outgoing[0].short != "1":
            return
        names = {n: self.variable.get(n, viz.node_title(n)) for n in self.number}
        asked = []
        for leaf in self.grads:
            found = paths.paths_to(leaf, self.slopes, names, viz.real(self.root))
            if found and leaf in self.variable:
                asked.append((self.named(leaf), found))
        for name, found in sorted(asked, key=lambda pair: -len(pair[1]))[:2]:
            yield paths.question(name, found)

    @property
    def now(self) -> int:
        """The number of the step that comes next."""
        return self.first + len(self.steps)

    def add(self, name: str, node: Node | None = None, **what: Any) -> None:
        if node is not None:
            self.turn[node] = self.now
            what["line"] = self.line.get(node, 0)
        waiting = {self.where(n): self.flow(g) for n, g in self.pending.items()}
        grads = {self.named(n): grad for n, grad in self.grads.items()}
        self.steps.append(Step(self.now, name, waiting=waiting, grads=grads, **what))

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


def forward(plan: viz.GraphDrawing, recording: Recording, lines: list[str], values: bool | None) -> Iterator[Forward]:
    """Yield the steps in which the graph is written, from the leaves to the result."""
    known = {item.number: item for item in plan.items}

    def told(node: Node, as_input: bool = False) -> str:
        item = known.get(recording.number[node])
        name = recording.variable.get(node, "")
        short = drawing.number_rows(item.out, values)[-1:] if item else []
        if as_input:
            return name or "".join(short).removeprefix("= ") or viz.node_title(node)
        return " ".join(filter(None, [name, *short]))

    leaves = tuple(told(leaf) for leaf in recording.grads)
    yield Forward(0, "", leaves=tuple(filter(None, leaves)))
    for node, number in recording.made.items():
        item = known.get(recording.number[node])
        line = recording.line.get(node, 0)
        value = "" if item is None else "".join(drawing.number_rows(item.out, values)[-1:]).removeprefix("= ")
        yield Forward(
            number,
            viz.node_title(node),
            recording.variable.get(node, ""),
            line=line,
            value=value,
            inputs=tuple(told(viz.real(p), True) for p in node.parents if p is not None),
            keeps=tuple(drawing.kept(s, node, values) for s in item.saved if s.kind) if item else (),
            code=lines[line - 1].strip() if line else "",
        )


def every_node(start: Mapping[Node, Any]) -> set[Node]:
    """Return the nodes that can be reached, those that stand for one of several outputs included."""
    todo = [viz.as_shown(node) for node in start]
    seen = set(todo)
    while todo:
        for p in map(viz.as_shown, todo.pop().parents):
            if p is not None and p not in seen:
                seen.add(p)
                todo.append(p)
    return seen


def kept_by(node: Node) -> Iterator[str]:
    """Yield the names of the tensors that a node keeps, which backward releases."""
    for name, _, value, _ in viz.saved_values(node) or ():
        if isinstance(getattr(value, "shape", None), tuple):
            yield name


def after_broadcast(rule: str, g: Tensor, into: Tensor) -> str:
    """Return a formula with what follows it where the input was broadcast or cast."""
    if into.shape != g.shape:
        rule = f"({rule}) added up to {viz.shape_text(into.shape)}"
    return rule if into.dtype == g.dtype else f"({rule}) as {into.dtype.name}"
