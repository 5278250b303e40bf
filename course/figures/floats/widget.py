"""The front end of FloatExplorer, apart from it so that the figure works where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class FloatWidget(anywidget.AnyWidget):
    """A number as typed, a type, the bits with what each is worth, the picture and the words that belong to them.

    It sends {"flip": place} when a bit is pressed, and {"by": 1} or {"by": -1} for the number after or before.
    """

    _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
    kind = traitlets.Unicode().tag(sync=True)
    written = traitlets.Unicode().tag(sync=True)
    bits = traitlets.Unicode().tag(sync=True)
    worth = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)  # field by field, as the next
    told = traitlets.List(traitlets.Unicode()).tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
    wrong = traitlets.Bool().tag(sync=True)  # what was typed is no number
