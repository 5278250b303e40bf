"""Pictures: of the graph that was recorded (``graph``), and of what the compiler made of a function (``compiled``)."""

from .recorded import (
    NO_PICTURE,
    brief,
    compiled,
    graph,
    kept,
    parameters,
    plural,
    real,
    render,
    shape_text,
    survey,
    title,
    variables,
    walk,
)

__all__ = ["compiled", "graph"]
