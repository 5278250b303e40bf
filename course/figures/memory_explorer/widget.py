"""The front end of MemoryExplorer, apart from it so that the figure works where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class MemoryExplorerWidget(anywidget.AnyWidget):
    """The steps taken, the picked box, whether it is read aloud, and the picture and the words that belong to them."""

    _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
    steps = traitlets.List(traitlets.Unicode()).tag(sync=True)
    pick = traitlets.Int().tag(sync=True)  # the number of the box, in the order of reading
    path = traitlets.Bool().tag(sync=True)  # whether the path up to it is drawn
    room = traitlets.Int().tag(sync=True)  # how wide the page is, in pixels
    boxes = traitlets.List(traitlets.Unicode()).tag(sync=True)  # those to choose from, as they are written
    last = traitlets.Int().tag(sync=True)  # the box at which reading aloud ends
    offers = traitlets.List(traitlets.Unicode()).tag(sync=True)  # what the buttons do; "" where one makes no sense
    plays = traitlets.Int().tag(sync=True)  # grows when there is something to be read aloud at once
    wrong = traitlets.Bool().tag(sync=True)  # the last step was refused
    picture = traitlets.Unicode().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
