"""BroadcastingExplorer: two shapes to edit, which axes are stretched, and which elements meet."""

from itertools import product
from math import prod
from textwrap import wrap
from typing import Any, NamedTuple

import engine
from course.figures.base.explorer import Explorer
from course.figures.base.grid import HEIGHT, Cell, Panel, box, flow, frame, text
from course.pictures import picture

Shape = tuple[int, ...]
DIMENSIONS, SIZE = 5, 1024  # the most that is read
DRAWN = 60  # elements, the most that is drawn
COLUMN = 64  # width of an axis in the table
ROOM = 740  # on a page of the usual width


class Meeting(NamedTuple):
    """The outcome of two shapes: the result's, or why there is none, in PyTorch's words or about the typing."""

    a: Shape
    b: Shape
    result: Shape | None
    error: str = ""

    @property
    def axes(self) -> list[tuple[int | None, int | None]]:
        """The sizes of a and of b, axis by axis, aligned at the last; None where there is no such dimension."""
        n = max(len(self.a), len(self.b))
        a, b = ((None,) * (n - len(shape)) + shape for shape in (self.a, self.b))
        return list(zip(a, b, strict=True))

    @property
    def drawn(self) -> bool:
        return self.result is not None and len(self.result) <= 3 and 0 < prod(self.result) <= DRAWN


def shape_of(written: str) -> Shape:
    """Return the shape that a reader typed: `3, 1`, `(3, 1)`, or nothing, for a scalar. Raises ValueError."""
    inside = written.strip().removeprefix("(").removesuffix(")").strip()
    parts = [part.strip() for part in inside.split(",")] if inside else []
    if len(parts) > 1 and not parts[-1]:  # the comma in (3,)
        parts.pop()
    if not all(part.isdecimal() for part in parts):
        raise ValueError("A shape is whole numbers with commas between them, such as 3, 1.")
    shape = tuple(map(int, parts))
    if len(shape) > DIMENSIONS or max(shape, default=0) > SIZE:
        raise ValueError(f"Here a shape has at most {DIMENSIONS} numbers, none above {SIZE}.")
    return shape


def meet(a: Shape, b: Shape) -> Meeting:
    """Return what becomes of `a + b` for tensors of these shapes."""
    try:
        return Meeting(a, b, tuple(engine.broadcast_shapes(a, b)))
    except RuntimeError:
        pass
    meeting = Meeting(a, b, None)
    last = max(axis for axis, sizes in enumerate(meeting.axes) if _clash(*sizes))
    # The message names the last axis that clashes; the others are of no account, and could be large.
    after = (1,) * (len(meeting.axes) - last - 1)
    first, second = (engine.zeros((1,) * last + (size or 0, *after)) for size in meeting.axes[last])
    try:
        first + second
    except RuntimeError as error:
        return meeting._replace(error=str(error))
    raise AssertionError(f"{a} and {b} cannot be broadcast, but they can be added")


def _clash(a: int | None, b: int | None) -> bool:
    """Tell whether two sizes of one axis do not go together."""
    return a != b and None not in (a, b) and 1 not in (a, b)


class BroadcastingExplorer(Explorer):
    """Two shapes to edit, what stretches to what, and, for each element of the result, the two that meet in it."""

    def __init__(self, a: Shape = (3, 1), b: Shape = (4,)):
        written = {"a": _written(a), "b": _written(b)}
        self.begin = written | {"element": self.elements(**written) // 2}
        self.stills = ({}, {"a": "2, 1, 3", "b": "2, 1", "element": 4}, {"a": "3", "b": "4"})

    def start(self) -> dict[str, Any]:
        return self.begin

    def meeting(self, a: str, b: str) -> Meeting:
        try:
            return meet(shape_of(a), shape_of(b))
        except ValueError as error:
            return Meeting((), (), None, str(error))

    def elements(self, a: str, b: str) -> int:
        """Return how many elements of the result there are to choose from."""
        meeting = self.meeting(a, b)
        return prod(meeting.result) if meeting.drawn and meeting.result is not None else 0

    def words(self, *, a: str, b: str, element: int) -> str:
        meeting = self.meeting(a, b)
        if meeting.error and not meeting.a + meeting.b:
            return meeting.error
        said = [f"a has shape {meeting.a}, b has shape {meeting.b}.", *_stretches(meeting)]
        if meeting.result is None:
            return " ".join([*said, f"RuntimeError: {meeting.error}"])
        said.append(f"The result has shape {meeting.result}.")
        if meeting.drawn:
            index = _indices(meeting.result)[_within(meeting, element)]
            first, second = (_source(index, shape) for shape in (meeting.a, meeting.b))
            x, y = _values(meeting.a, meeting.b)
            sides = f"a{_brackets(first)} + b{_brackets(second)} = {x[first]} + {y[second]} = {x[first] + y[second]}"
            said.append(f"result{_brackets(index)} = {sides}.")
            if stretched := [f"{name} {_strides(shape, meeting.result)}" for name, shape in _stretched(meeting)]:
                said.append(f"Strides of what is stretched: {' and '.join(stretched)}.")
        elif 0 in meeting.result:
            said.append("It has no elements.")
        else:
            said.append("That is too much to draw.")
        return " ".join(said)

    def image(self, **values: Any) -> bytes:
        """Return the picture as an SVG."""
        return self.drawing(ROOM, **(self.start() | values))

    def drawing(self, room: int, *, a: str, b: str, element: int) -> bytes:
        """Return the picture as an SVG that is not wider than `room`, where a tensor is not."""
        meeting = self.meeting(a, b)
        if meeting.error and not meeting.a + meeting.b:
            return frame([text(12, 24, meeting.error)], 560, 40).encode()
        parts, right, bottom = _table(meeting)
        if meeting.drawn:
            panels, wide, bottom = flow(_panels(meeting, _within(meeting, element)), bottom + 14, room - 8)
            parts, right = parts + panels, max(right, wide)
        elif meeting.error:
            lines = wrap(f"RuntimeError: {meeting.error}", max(room - 24, 160) // 8)
            parts += [text(12, bottom + 18 + 18 * n, line, "fill='#a02000'") for n, line in enumerate(lines)]
            right, bottom = max(right, 24 + 8 * max(map(len, lines))), bottom + 10 + 18 * len(lines)
        return frame(parts, right, bottom).encode()

    def picture(self, **values: Any) -> dict[str, str]:
        """Return the picture and its words as a notebook's output."""
        return picture(self.image(**values), self.text(**values))

    def widget(self) -> Any:
        """Two fields, a slider, the picture and its words, as a widget.  ImportError where anywidget is missing."""
        from course.figures.broadcasting.widget import BroadcastingWidget

        def shown(a: str, b: str, element: int, room: int = ROOM) -> dict[str, Any]:
            meeting = self.meeting(a, b)
            values: dict[str, Any] = {"a": a, "b": b, "element": _within(meeting, element)}
            drawn = {"picture": self.drawing(room, **values).decode(), "words": self.text(**values)}
            indices = [_brackets(index) for index in _indices(meeting.result or ())] if meeting.drawn else []
            return values | drawn | {"indices": indices, "wrong": meeting.result is None}

        widget = BroadcastingWidget(**shown(**self.start()))

        def follow(_: Any) -> None:
            with widget.hold_sync():  # the picture and its words arrive together
                for name, value in shown(widget.a, widget.b, widget.element, widget.room).items():
                    widget.set_trait(name, value)

        widget.observe(follow, ["a", "b", "element", "room"])
        return widget


def _written(shape: Shape) -> str:
    return ", ".join(map(str, shape))


def _within(meeting: Meeting, element: int) -> int:
    """Return the element of that number, or the last one; where there is none, the number is kept for when there is."""
    return min(element, prod(meeting.result) - 1) if meeting.drawn and meeting.result is not None else element


def _indices(shape: Shape) -> list[Shape]:
    return list(product(*map(range, shape)))


def _source(index: Shape, shape: Shape) -> Shape:
    """Return the index of the element that stands at `index` once `shape` is stretched: 0 along what is stretched."""
    own = index[len(index) - len(shape) :]
    return tuple(0 if size == 1 else place for place, size in zip(own, shape, strict=True))


def _values(a: Shape, b: Shape) -> tuple[dict[Shape, int], dict[Shape, int]]:
    """1, 2, 3 and so on for a; 10, 20, 30 for b, or hundreds, so that a sum shows its parts."""
    ten = 10 if prod(a) < 10 else 100
    first, second = ({index: i + 1 for i, index in enumerate(_indices(shape))} for shape in (a, b))
    return first, {index: ten * value for index, value in second.items()}


def _brackets(index: Shape) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _stretched(meeting: Meeting) -> list[tuple[str, Shape]]:
    """Those of the two that take part with another shape than their own."""
    return [(name, shape) for name, shape in zip("ab", meeting[:2], strict=True) if shape != meeting.result]


def _strides(shape: Shape, stretched: Shape) -> Shape:
    return engine.zeros(shape).expand(stretched).stride()


def _stretches(meeting: Meeting) -> list[str]:
    """Return a sentence for each axis at which the two are not of one size."""
    said = []
    for axis, (a, b) in enumerate(meeting.axes):
        for name, mine, other in (("a", a, b), ("b", b, a)):
            if mine is None:
                said.append(f"Dimension {axis}: {name} has no such dimension, and is used {_times(other)}.")
            elif mine == 1 and other not in (None, 1):
                said.append(f"Dimension {axis}: {name} has 1, and is stretched to {other}.")
        if _clash(a, b):
            said.append(f"Dimension {axis}: {a} meets {b}. They are not equal, and neither is 1.")
    return said


def _times(count: int | None) -> str:
    return "once" if count == 1 else f"{count} times"


def _table(meeting: Meeting) -> tuple[list[str], int, int]:
    """Return the two shapes one below the other, aligned at the last axis, and below them the result's."""
    rows: dict[str, list[Cell]] = {"a": [], "b": [], "result": []}
    for a, b in meeting.axes:
        clash = _clash(a, b)
        size = max(n for n in (a, b) if n is not None) if 0 not in (a, b) else 0
        for name, mine in (("a", a), ("b", b)):
            if mine is None:
                rows[name].append(Cell(f"\u2192 {size}", "pale"))
            elif mine == 1 != size:
                rows[name].append(Cell(f"1 \u2192 {size}", "pale"))
            else:
                rows[name].append(Cell(str(mine), "strong" if clash else "plain"))
        rows["result"].append(Cell("?" if clash else str(size), "strong" if clash else "plain"))
    parts = [text(12, 24, "shapes, from the right", "fill='#222222' font-weight='bold'")]
    left, top = 66, 34
    for number, (name, cells) in enumerate(rows.items()):
        y = top + number * (HEIGHT + 4)
        parts.append(text(12, y + HEIGHT / 2 + 5, name))
        if not cells:
            parts.append(text(left, y + HEIGHT / 2 + 5, "no dimensions: a scalar", "fill='#555555'"))
        for axis, cell in enumerate(cells):
            parts += box(left + axis * (COLUMN + 4), y, COLUMN, cell)
    return parts, max(240, left + len(meeting.axes) * (COLUMN + 4) + 8), top + 3 * (HEIGHT + 4) + 4


def _panels(meeting: Meeting, element: int) -> list[Panel]:
    """Both operands as they take part, copies of elements in broken lines, and the result."""
    assert meeting.result is not None
    indices = _indices(meeting.result)
    at, result = indices[element], meeting.result
    values = _values(meeting.a, meeting.b)

    def operand(name: str, shape: Shape, value: dict[Shape, int]) -> Panel:
        met = _source(at, shape)
        padding = (0,) * (len(result) - len(shape))

        def cell(index: Shape) -> Cell:
            source = _source(index, shape)
            original = index == padding + source
            strong = index == at or (original and source == met)
            look = " ".join(word for word, so in (("strong", strong), ("pale", not original)) if so)
            return Cell(str(value[source]), look or "plain")

        grown = "" if shape == result else f", as {result}"
        return Panel(name, f"{shape}{grown}", result, cell)

    def total(index: Shape) -> Cell:
        sum_ = sum(value[_source(index, shape)] for shape, value in zip(meeting[:2], values, strict=True))
        return Cell(str(sum_), "strong" if index == at else "plain", indices.index(index))

    panels = [operand(*each) for each in zip("ab", (meeting.a, meeting.b), values, strict=True)]
    return [*panels, Panel("result = a + b", f"{result}", result, total)]
