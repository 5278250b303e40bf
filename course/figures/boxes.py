"""Figures about what a tensor holds: all of it as boxes of numbers, and the part that an index picks."""

import ast
from typing import Any

import engine
from course.figures.base.chooser import Chooser, Control, Shown, images
from course.figures.base.grid import Cell, Panel, svg

DRAWN = 60  # numbers, the most that is drawn
# What an index may be written with; everything else is refused, so that typing cannot do anything.
_PARTS = (
    ast.Expression,
    ast.Subscript,
    ast.Name,
    ast.Load,
    ast.Tuple,
    ast.List,
    ast.Constant,
    ast.Slice,
    ast.UnaryOp,
    ast.USub,
    ast.Invert,
    ast.Compare,
    ast.cmpop,
    ast.BinOp,
    ast.BitAnd,
    ast.BitOr,
)


class Boxes:
    """Tensors of up to three dimensions, given by name, drawn beside each other; the questions name the dimensions.

    `Boxes("day", "time", week=week, monday=week[0])`: the last question is that of each tensor's last dimension.
    """

    def __init__(self, *questions: str, **tensors: engine.Tensor):
        for name, tensor in tensors.items():
            if tensor.ndim > 3:
                raise ValueError(f"{name} has {tensor.ndim} dimensions; at most 3 can be drawn")
        self.tensors = tensors
        self.questions = questions

    def text(self) -> str:
        """Return the picture in words."""
        return " ".join(self.texts())

    def texts(self) -> list[str]:
        """Return the words for each tensor."""
        return [f"{name}, {self._caption(tensor)}: {_extent(tensor)}." for name, tensor in self.tensors.items()]

    def pictures(self) -> list[str]:
        """Return a drawing for each tensor, as an SVG."""
        return [svg([self._panel(name, tensor)]) for name, tensor in self.tensors.items()]

    def picture(self) -> dict[str, str]:
        """Return the pictures and their words as a notebook's output."""
        return {"text/html": images(self.pictures(), self.texts()), "text/plain": self.text()}

    def _panel(self, name: str, tensor: engine.Tensor) -> Panel:
        return _panel(name, self._caption(tensor), tensor, names=self._names(tensor))

    def _names(self, tensor: engine.Tensor) -> tuple[str, ...]:
        return self.questions[-tensor.ndim :] if tensor.ndim and len(self.questions) >= tensor.ndim else ()

    def _caption(self, tensor: engine.Tensor) -> str:
        names = self._names(tensor)
        return f"{_shape(tensor)}{': ' if names else ''}{', '.join(names)}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self.picture()


class IndexExplorer(Chooser):
    """Tensors by name, an index to type, such as `week[1, :2]`, the boxes that it picks, and what comes out."""

    def __init__(self, *questions: str, tries: tuple[str, ...] = (), **tensors: engine.Tensor):
        self.tensors: dict[str, Any] = {name: tensor.detach() for name, tensor in tensors.items()}
        for name, tensor in self.tensors.items():
            if not 1 <= tensor.ndim <= 3:
                raise ValueError(f"{name} has {tensor.ndim} dimensions; 1 to 3 can be drawn")
        self.questions = questions
        tries = tries or tuple(f"{name}[0]" for name in tensors)
        self.controls = (Control("text", "index", "index", tries),)
        self.begin = {"index": tries[0]}
        self.stills = tuple((written, {"index": written}) for written in tries[:4])

    def picked(self, index: str) -> engine.Tensor:
        """Pick by an index. ValueError where none was written, and what the engine raises where it does not fit."""
        return _evaluated(_tree(index, list(self.tensors)), self.tensors)

    def shown(self, *, index: str) -> Shown:
        values = {"index": index}
        try:
            tree = _tree(index, list(self.tensors))
        except ValueError as error:
            return Shown(list(map(self._whole, self.tensors)), str(error), values, wrong=True)
        outer = _indexed(tree)
        name, tensor = outer.id, self.tensors[outer.id]
        try:
            part = _evaluated(tree, self.tensors)
        except Exception as error:
            return Shown([self._whole(name)], f"{type(error).__name__}: {error}", values, wrong=True)
        outer.id = _PLACES
        places = _evaluated(tree, self.tensors | {_PLACES: engine.arange(tensor.numel()).reshape(tensor.shape)})
        whole = self._whole(name, frozenset(places.flatten().tolist()))
        kind = ("a scalar", "a vector", "a matrix")[part.ndim] if part.ndim < 3 else f"a {part.ndim}-D tensor"
        written = " ".join(index.split())
        if part.ndim > 3 or part.numel() > DRAWN:
            return Shown([whole], f"{written} is {kind}, {_shape(part)}: too much to draw.", values)
        result = svg([_panel(written, _shape(part), part)])
        return Shown([whole, result], f"{written} is {kind}, {_shape(part)}: {part.tolist()}.", values)

    def _whole(self, name: str, chosen: frozenset[int] = frozenset()) -> str:
        tensor = self.tensors[name]
        names = self.questions[-tensor.ndim :] if len(self.questions) >= tensor.ndim else ()
        return svg([_panel(name, _shape(tensor), tensor, chosen, names)])


_PLACES = "places"  # stands for the tensor itself where the places of its numbers are picked


def _tree(written: str, names: list[str]) -> ast.Expression:
    """Parse what was typed, if it is an index. Raises ValueError."""
    asked = f"Write a name and an index in brackets, such as {names[0]}[1]."
    try:
        tree = ast.parse(written.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(asked) from None
    if not isinstance(tree.body, ast.Subscript) or not isinstance(_indexed(tree), ast.Name):
        raise ValueError(asked)
    for part in ast.walk(tree):
        if isinstance(part, ast.Name) and part.id not in names:
            raise ValueError(f"There is no {part.id} here: the names are {' and '.join(names)}.")
        if not isinstance(part, _PARTS):
            raise ValueError("Here an index is made of numbers, colons, lists and comparisons.")
    return tree


def _indexed(tree: ast.Expression) -> Any:
    """Return the expression before the brackets."""
    outer = tree.body
    while isinstance(outer, ast.Subscript):
        outer = outer.value
    return outer


def _evaluated(tree: ast.Expression, names: dict[str, Any]) -> Any:
    return eval(compile(tree, "<index>", "eval"), {"__builtins__": {}}, names)  # only what _tree lets through


def _panel(
    title: str,
    caption: str,
    tensor: Any,
    chosen: frozenset[int] = frozenset(),
    names: tuple[str, ...] = (),
) -> Panel:
    tensor = tensor.detach()
    places = engine.arange(tensor.numel()).reshape(tensor.shape)

    def cell(index: tuple[int, ...]) -> Cell:
        return Cell(number(tensor[index].item()), "strong" if places[index].item() in chosen else "plain")

    return Panel(title, caption, tuple(tensor.shape), cell, names)


def number(value: float) -> str:
    """Write a number as it stands in a box."""
    return f"{value:.4g}"


def _shape(tensor: engine.Tensor) -> str:
    return f"shape {tuple(tensor.shape)}"


def _extent(tensor: engine.Tensor) -> str:
    """Return how many numbers a tensor holds, dimension by dimension; of a scalar or a vector, the numbers."""
    if tensor.ndim < 2:
        numbers = ", ".join(map(number, tensor.detach().reshape(-1).tolist()))
        return f"{'one number' if tensor.ndim == 0 else 'a row of numbers'}, {numbers}"
    *pages, rows, columns = tensor.shape
    return (
        f"{pages[0]} matrices, each of {rows} rows and {columns} columns"
        if pages
        else f"{rows} rows, {columns} columns"
    )
