"""The front end of GraphExplorer, apart from it so that the figure works where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class GraphWidget(anywidget.AnyWidget):
    """The nodes, their picture, the node that is looked at, and what is shown beside the nodes."""

    _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
    nodes = traitlets.List(traitlets.Dict()).tag(sync=True)
    svg = traitlets.Unicode().tag(sync=True)
    layers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    chosen = traitlets.Int(0).tag(sync=True)
    hidden = traitlets.List(traitlets.Unicode()).tag(sync=True)  # those of `layers` that are not shown
