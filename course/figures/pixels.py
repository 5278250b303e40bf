"""Tensors shown as the pictures that they are: grey ones from a table, coloured ones from red, green and blue."""

import base64
from html import escape
from itertools import groupby
from typing import Any

import engine
from course.figures.base.explorer import INK
from course.figures.base.grid import LABEL, frame, text

POINT = 12  # how many pixels wide and high a point is drawn


class Pixels:
    """Pictures given by name, beside each other: shape (lines, points), or (3, lines, points) with the colours first.

    0 is black and 1 is white, or the whole of a colour; what is beyond is drawn as 0 or 1.
    """

    def __init__(self, **pictures: engine.Tensor):
        for name, tensor in pictures.items():
            if tensor.ndim not in (2, 3) or (tensor.ndim == 3 and len(tensor) != 3):
                shape = tuple(tensor.shape)
                raise ValueError(f"{name} has shape {shape}; (lines, points) or (3, lines, points) is drawn")
        self.tensors = {name: tensor.detach() for name, tensor in pictures.items()}

    def text(self) -> str:
        """Return the pictures in words."""
        return " ".join(self.texts())

    def texts(self) -> list[str]:
        """Return the words for each picture."""
        return [_words(name, tensor) for name, tensor in self.tensors.items()]

    def pictures(self) -> list[str]:
        """Return a drawing for each tensor, as an SVG."""
        return [_drawn(name, tensor) for name, tensor in self.tensors.items()]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        tags = map(_image, self.pictures(), self.texts())
        return {"text/html": "".join(tags), "text/plain": self.text()}


def _image(drawing: str, words: str) -> str:
    """Not with the style by which a dark page knows a plot: there light and dark change places, and here never."""
    data = base64.b64encode(drawing.encode()).decode("ascii")
    style = "display: inline-block; vertical-align: top; margin: 0 6px 6px 0"
    return f'<img alt="{escape(words)}" style="{style}" src="data:image/svg+xml;base64,{data}">'


def _colours(tensor: Any) -> list[list[str]]:
    """Return the colour of each point, line by line, as SVG writes it."""
    three = tensor if tensor.ndim == 3 else engine.stack([tensor] * 3)
    bytes_ = (three.double().clamp(0, 1) * 255).round().long().permute(1, 2, 0).tolist()
    return [["#{:02x}{:02x}{:02x}".format(*point) for point in line] for line in bytes_]


def _drawn(name: str, tensor: Any) -> str:
    lines, points = tensor.shape[-2:]
    caption = f"shape {tuple(tensor.shape)}"
    parts = [text(8, LABEL, name, "fill='#222222' font-weight='bold'")]
    top = LABEL + 8
    for row, line in enumerate(_colours(tensor)):
        column = 0
        for colour, run in groupby(line):
            length = len(list(run))
            place = f"x='{8 + POINT * column}' y='{top + POINT * row}' width='{POINT * length}' height='{POINT}'"
            parts.append(f"<rect {place} fill='{colour}' shape-rendering='crispEdges'/>")
            column += length
    wide, high = POINT * points, POINT * lines
    parts.append(f"<rect x='8' y='{top}' width='{wide}' height='{high}' fill='none' stroke='{INK}'/>")
    parts.append(text(8, top + high + LABEL, caption, "fill='#555555'"))
    return frame(parts, 16 + max(wide, 8 * max(len(caption), len(name))), top + high + LABEL + 8)


def _words(name: str, tensor: Any) -> str:
    lines, points = tensor.shape[-2:]
    kind, of = ("colour", "colour") if tensor.ndim == 3 else ("grey", "shade")
    number = len({colour for line in _colours(tensor) for colour in line})
    size = f"{_count(lines, 'line')} of {_count(points, 'point')}"
    return f"{name}, shape {tuple(tensor.shape)}: a picture in {kind}, {size}, of {_count(number, of)}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
