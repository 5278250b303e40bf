"""The front end of Explorer, apart from it so that the figures work where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class ExplorerWidget(anywidget.AnyWidget):
    """Sliders, where each of them stands, and the picture and the words that belong to it."""

    _esm = Path(__file__).with_name("explorer.js").read_text(encoding="utf-8")
    sliders = traitlets.List(traitlets.Dict()).tag(sync=True)  # {"label": ..., "texts": [what each place stands for]}
    at = traitlets.List(traitlets.Int()).tag(sync=True)
    image = traitlets.Bytes().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
    width = traitlets.Int().tag(sync=True)
