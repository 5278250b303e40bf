"""The front end of Predict, apart from it so that it works where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets

from course.base.folds import SUMMARY


class PredictWidget(anywidget.AnyWidget):
    """A question, its options, which one was chosen, and what is said of it once the cell below has run."""

    _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
    question = traitlets.Unicode().tag(sync=True)  # as HTML, like the next
    options = traitlets.List(traitlets.Unicode()).tag(sync=True)
    chosen = traitlets.Int(-1).tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)  # nothing until the cell below has run
    right = traitlets.Bool().tag(sync=True)
    looked = traitlets.Bool()  # whether it has
    folded = traitlets.Unicode(SUMMARY).tag(sync=True)  # above what the lesson says then
