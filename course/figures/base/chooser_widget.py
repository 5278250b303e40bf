"""The front end of Chooser, apart from it so that the figures work where anywidget is not installed."""

from pathlib import Path

import anywidget
import traitlets


class ChooserWidget(anywidget.AnyWidget):
    """Fields, choices and sliders, what they stand at, and the pictures and the words that belong to that."""

    _esm = Path(__file__).with_name("chooser.js").read_text(encoding="utf-8")
    controls = traitlets.List(traitlets.Dict()).tag(sync=True)  # kind, name, label, texts
    values = traitlets.Dict().tag(sync=True)  # by name: the text of a field, the place of a choice or a slider
    places = traitlets.Dict().tag(sync=True)  # of a slider, by name: what each of its places stands for
    clicks = traitlets.List(traitlets.Dict()).tag(sync=True)  # for the number of a box: the values that it chooses
    wrong = traitlets.Bool().tag(sync=True)  # what was typed cannot be shown
    pictures = traitlets.List(traitlets.Unicode()).tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
