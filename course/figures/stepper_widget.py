"""The front end of BackwardStepper, apart from it so that the figure works where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class StepperWidget(anywidget.AnyWidget):
    """A picture whose parts know their turn, a panel for each step, and the step that is shown."""

    _esm = Path(__file__).with_name("stepper.js").read_text(encoding="utf-8")
    svg = traitlets.Unicode().tag(sync=True)
    panels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    said = traitlets.List(traitlets.Unicode()).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
