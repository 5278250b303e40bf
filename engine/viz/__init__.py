"""Pictures: of the graph that was recorded (``graph``), and of what the compiler made of a function (``compiled``)."""

import importlib

from ..help import describe, public, texts
from .dot import INSTALL, NO_PICTURE, STYLES, SVG, Drawing, image, plural, render
from .recorded import (
    Graph,
    GraphDrawing,
    Item,
    as_shown,
    brief,
    graph,
    graph_drawing,
    node_title,
    real,
    rule_parameters,
    saved_values,
    shape_text,
    source,
    variables,
    walk,
)

__all__ = ["compiled", "graph"]


def __getattr__(name):
    if name != "compiled":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = importlib.import_module(".stages", __name__).compiled  # a picture of a graph does not load the compiler
    describe(found, texts("viz")[name])
    return globals().setdefault(name, found)


__dir__ = public("viz", globals())
