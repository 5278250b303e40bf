"""The front end of LeafBoard, apart from it so that the figure works where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class LeafBoardWidget(anywidget.AnyWidget):
    """The statements of a program, the cards and the four boxes before the first and after each, and which is shown."""

    _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)
    boards = traitlets.List(traitlets.Unicode()).tag(sync=True)
    boxes = traitlets.List(traitlets.Unicode()).tag(sync=True)
    said = traitlets.List(traitlets.Unicode()).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
