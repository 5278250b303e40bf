"""BackwardStepper: a real graph as it is written, and then its backward pass, one node at a time."""

import html
import sys
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree

from course.figures.base import program
from course.figures.stepper import drawing, paths
from course.figures.stepper.own_engine import OwnWalk, names_of
from course.figures.stepper.recording import Recording, every_node, forward
from course.figures.stepper.steps import Step
from course.figures.stepper.svg import AHEAD, DONE, NEW, NOW, UNMADE, prepared, text_at
from engine import viz
from engine.core.backward import roots
from engine.core.graph import AccumulateGrad, Output
from engine.core.tensor import Tensor


class BackwardStepper:
    """A slider over a graph: how it is written, operation by operation, and then its backward pass, node by node.

    ``loss``: a Tensor; or a few lines of code, which are run with the caller's variables, and whose last line gives the
    result.  With code each line is lit as its nodes appear, all numbers are known, and ``predict`` is on.
    The pass is run once, with recording hooks, on the graph as it is; no ``.grad`` changes and nothing is freed.
    ``names``: {"w": w}; else the caller's variables name the tensors.  ``gradient``: what to begin with, for a result
    that is no scalar.  ``retain_graph``: as in ``backward``; with True nothing is said to be freed.  ``values``: False
    for shapes alone, True for large tensors' range too.  ``predict``: before the backward pass begins, the figure asks
    what will arrive at the leaves.  ``max_nodes``, ``direction``: as in ``engine.viz.graph``.  Raises what ``backward``
    raises.

    For a Var of lesson 11, with ``walk=backward``, it shows what the learner's own ``backward`` does.

    ``steps``, ``text(k)``, ``picture(k)`` and ``static()`` need neither a notebook nor ipywidgets.
    """

    steps: list[Step]
    questions: list[paths.Question] = []
    lines: list[str] = []
    begin = 0  # the step in which backward begins
    predict = False

    def __init__(
        self,
        loss: Any,
        names: Mapping[str, Tensor] | None = None,
        *,
        gradient: Tensor | None = None,
        retain_graph: bool = False,
        values: bool | None = None,
        predict: bool | None = None,
        max_nodes: int = 40,
        direction: str = "TB",
        walk: Callable[[Any], Any] | None = None,
    ):
        frame = sys._getframe(1)
        if walk is not None:
            own = OwnWalk(loss, walk, names_of(frame, names))
            self.steps = own.steps
            self._words, self._svg = own.drawn()
            return
        ran = None
        if isinstance(loss, str):
            ran = program.run(loss, {**frame.f_globals, **frame.f_locals, **(names or {})})
            self.lines = ran.lines
        result = ran.result if ran else loss
        named = ran.named if ran else [*(names or {}).items(), *viz.variables(frame)]
        start = roots(result, gradient, False)
        operations = sum(type(n) not in (Output, AccumulateGrad) for n in every_node(start))
        self.begin = operations + 1 if operations else 0
        recording = Recording(result, gradient, named, retain_graph, self.begin, ran.line if ran else {})
        plan = viz.graph_drawing([result], named, max_nodes, True)
        if ran is not None:
            ran.tell(plan)
        self.steps = (
            [*forward(plan, recording, self.lines, values), *recording.steps] if operations else recording.steps
        )
        self.questions = list(recording.questions())
        self.predict = bool(self.questions) and (ran is not None if predict is None else predict)
        nodes = {number: node for node, number in recording.number.items()}
        notes = {n: max((text for _, text in texts), key=len) for n, texts in recording.history.items()}
        begins = recording.steps[0].outgoing[0].short
        drawn = drawing.drawing(plan, nodes, notes, recording.notes, begins, values, direction)
        self._words = drawn.summary.replace("Backward goes down this list.", "").strip()
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
        """Return the graph at step k as SVG; without k, with the gradients of all steps.  None without Graphviz."""
        if self._svg is None:
            return None
        svg = ElementTree.fromstring(self._svg)
        turn = len(self) if k is None else self.steps[k].number
        for element in svg.iter():
            kinds = [element.get("class", "")]
            made, at = element.attrib.pop("data-made", None), element.attrib.pop("data-turn", None)
            if k is None:
                kinds += ["all"] * (made is not None or at is not None)
            else:
                if made is not None and turn <= int(made):
                    kinds.append(NEW if turn == int(made) else UNMADE)
                if at is not None:
                    kinds.append(DONE if int(at) < turn else NOW if int(at) == turn else AHEAD)
            if len(kinds) > 1:
                element.set("class", " ".join(kinds))
            if (data := element.attrib.pop("data-texts", None)) is not None:
                element.text = text_at(data, turn)
        return ElementTree.tostring(svg, encoding="unicode")

    def static(self) -> dict[str, str]:
        """Return the picture with the gradients of all steps, and the steps as a text, as a notebook's output."""
        text = "\n".join([self._words, *(f"{s.number}. {s.sentence}" for s in self.steps)])
        words = f"The backward pass, step by step. {self._words}"
        code = f"<pre>{html.escape(chr(10).join(self.lines))}</pre>" if self.lines else ""
        title = "<p><strong>The graph, and all that travels back through it</strong></p>"
        return {"text/plain": text, "text/html": title + code + viz.image(self.picture(), words, text)}

    def widget(self) -> Any:
        """Return the slider, the picture and the words, as a widget.  ImportError where anywidget is not installed."""
        from course.figures.stepper.widget import StepperWidget

        return StepperWidget(
            svg=self._svg or f"<pre>{html.escape(self._words)}</pre>",
            panels=[panel(step, len(self) - 1) for step in self.steps],
            said=[f"Step {s.number} of {len(self) - 1}. {s.sentence}" for s in self.steps],
            lines=self.lines,
            lit=[step.line for step in self.steps],
            begin=self.begin,
            questions=[question._asdict() for question in self.questions],
            predicting=self.predict,
        )

    def __repr__(self) -> str:
        return self.static()["text/plain"]

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_()
        except ImportError:  # anywidget is not installed: the picture and the text are
            data, metadata = {}, {}
        return data | self.static(), metadata


def panel(step: Step, last: int) -> str:
    """Return a step as HTML."""
    parts = [f"<h3>Step {step.number} of {last}: {html.escape(step.title)}</h3>"]
    for heading, lines in step.sections():
        content = "".join(f"<div>{html.escape(line)}</div>" for line in lines)
        kind = "words" if heading == "Rule" else "numbers"
        parts.append(f"<h4>{html.escape(heading)}</h4><div class={kind}>{content}</div>")
    return "".join(parts)
