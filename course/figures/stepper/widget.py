"""The front end of BackwardStepper, apart from it so that the figure works where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class StepperWidget(anywidget.AnyWidget):
    """A picture whose parts know their turn, a panel for each step, and the step that is shown."""

    _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
    svg = traitlets.Unicode().tag(sync=True)
    panels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    said = traitlets.List(traitlets.Unicode()).tag(sync=True)
    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)  # of the program, and which of them each step lights
    lit = traitlets.List(traitlets.Int()).tag(sync=True)
    begin = traitlets.Int(0).tag(sync=True)  # the step in which backward begins
    questions = traitlets.List(traitlets.Dict()).tag(sync=True)  # asked before it goes on from there
    predicting = traitlets.Bool(False).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
