"""The front end of BroadcastingExplorer, apart from it so that the figure works where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class BroadcastingWidget(anywidget.AnyWidget):
    """Two shapes as typed, the chosen element of the result, and the picture and the words that belong to them."""

    _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
    a = traitlets.Unicode().tag(sync=True)
    b = traitlets.Unicode().tag(sync=True)
    element = traitlets.Int().tag(sync=True)
    room = traitlets.Int(740).tag(
        sync=True
    )  # how wide the picture may be: on a narrow page, tensors go below each other
    indices = traitlets.List(traitlets.Unicode()).tag(sync=True)  # the elements to choose from, as they are written
    wrong = traitlets.Bool().tag(sync=True)  # there is no result
    picture = traitlets.Unicode().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
