"""Figures about what a tensor holds: all of it as boxes of numbers, and the part that an index picks."""

from typing import Any

import engine
from course.figures.explorer import Explorer
from course.figures.grid import Cell, Panel, svg
from course.pictures import picture

INDICES = ["0", "1", "2", "-1", ":", "1:", ":2", "1:3", "::2"]


class Boxes:
    """Tensors of up to three dimensions, given by name, drawn beside each other."""

    def __init__(self, **tensors: engine.Tensor):
        for name, tensor in tensors.items():
            if tensor.ndim > 3:
                raise ValueError(f"{name} has {tensor.ndim} dimensions; at most 3 can be drawn")
        self.tensors = tensors

    def text(self) -> str:
        """What the picture shows, in words."""
        return " ".join(f"{name}, {_shape(tensor)}: {_extent(tensor)}." for name, tensor in self.tensors.items())

    def picture(self) -> dict[str, str]:
        """The picture and its words as a notebook's output."""
        drawn = svg([_panel(name, _shape(tensor), tensor) for name, tensor in self.tensors.items()])
        return picture(drawn.encode(), self.text())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self.picture()


class IndexExplorer(Explorer):
    """A matrix, the boxes that `t[rows, columns]` picks, and what comes out; a slider for each of the two indices."""

    def __init__(self, matrix: engine.Tensor, name: str = "t"):
        if matrix.ndim != 2:
            raise ValueError(f"a matrix is asked for; this tensor has {matrix.ndim} dimensions")
        self.matrix: Any = matrix.detach()
        self.name = name
        rows, columns = ([i for i in INDICES if _fits(i, size)] for size in matrix.shape)
        self.settings = {"rows": (rows, "1", "rows"), "columns": (columns, ":", "columns")}
        self.stills = ({}, {"rows": ":", "columns": "1"}, {"rows": "1:3", "columns": ":2"})
        widest = max(len(_number(v)) for v in self.matrix.flatten().tolist())
        box = max(36, 14 + 8 * widest)
        # Room for the matrix twice, so that the page does not jump.
        self.pixels = (2 * (40 + box * matrix.shape[1]) + 60, 62 + 28 * matrix.shape[0])
        self.size = (self.pixels[0] / 72, self.pixels[1] / 72)

    def picked(self, rows: str, columns: str) -> engine.Tensor:
        return self.matrix[_index(rows), _index(columns)]

    def words(self, *, rows: str, columns: str) -> str:
        part = self.picked(rows, columns)
        kind = ("a scalar", "a vector", "a matrix")[part.ndim]
        return f"{self.name}[{rows}, {columns}] is {kind}, {_shape(part)}: {part.tolist()}."

    def image(self, **values: Any) -> bytes:
        """The picture as an SVG."""
        values = self.start() | values
        part = self.picked(**values)
        places = engine.arange(self.matrix.numel()).reshape(self.matrix.shape)
        chosen = set(places[_index(values["rows"]), _index(values["columns"])].flatten().tolist())
        whole = _panel(self.name, _shape(self.matrix), self.matrix, chosen)
        result = _panel(f"{self.name}[{values['rows']}, {values['columns']}]", _shape(part), part)
        return svg([whole, result], *self.pixels, most=10_000).encode()


def _panel(title: str, caption: str, tensor: Any, chosen: set[int] | frozenset[int] = frozenset()) -> Panel:
    tensor = tensor.detach()
    places = engine.arange(tensor.numel()).reshape(tensor.shape)

    def cell(index: tuple[int, ...]) -> Cell:
        look = "strong" if places[index].item() in chosen else "plain"
        return Cell(_number(tensor[index].item()), look)

    return Panel(title, caption, tuple(tensor.shape), cell)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _shape(tensor: engine.Tensor) -> str:
    return f"shape {tuple(tensor.shape)}"


def _extent(tensor: engine.Tensor) -> str:
    """How many numbers a tensor holds, dimension by dimension; of a scalar or a vector, the numbers."""
    if tensor.ndim < 2:
        numbers = ", ".join(map(_number, tensor.detach().reshape(-1).tolist()))
        return f"{'one number' if tensor.ndim == 0 else 'a row of numbers'}, {numbers}"
    *pages, rows, columns = tensor.shape
    return (
        f"{pages[0]} matrices, each of {rows} rows and {columns} columns"
        if pages
        else f"{rows} rows, {columns} columns"
    )


def _index(written: str) -> int | slice:
    parts = [int(part) if part else None for part in written.split(":")]
    return slice(*parts) if ":" in written else int(written)


def _fits(written: str, size: int) -> bool:
    index = _index(written)
    return isinstance(index, slice) or -size <= index < size
