"""A figure of the table of all slopes: what a backward pass makes of its rows, and a forward pass of its columns."""

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import engine
from course.figures.base.explorer import Explorer

BLUE, ORANGE, GROUND = "#2f6496", "#b3500c", "#ffffff"  # backward, rows; forward, columns
CELL, ROW = 62, 44  # the size of an entry
LEFT, TOP = 122, 100  # of the table
BARS, REACH = 104, 64  # how much room the bars below have; the longest bar beside, in one direction
WEIGHTS = [-2, -1, 0, 1, 2]


class JacobianExplorer(Explorer):
    """The Jacobian of some functions at a point: sliders weigh its rows (v) and its columns (u), bars show the sums.

    ``functions``: {name: function of a vector to a vector}, all with as many outputs.
    """

    def __init__(self, functions: dict[str, Callable[[Any], Any]], x: engine.Tensor):
        self.functions = functions
        self.x: Any = x.detach()
        names = list(functions)
        self.outputs, self.inputs = len(functions[names[0]](self.x)), len(self.x)
        self.settings = {
            "function": (names, names[0], "function"),
            **{f"v{i}": (WEIGHTS, int(i == 0), f"v[{i}]") for i in range(self.outputs)},
            **{f"u{j}": (WEIGHTS, int(j == min(1, self.inputs - 1)), f"u[{j}]") for j in range(self.inputs)},
        }
        ones = {name: 1 for name in self.settings if name != "function"}
        self.stills = ({}, *({"function": name, **ones} for name in names[1:]))
        self.drawn = LEFT + CELL * self.inputs + 2 * REACH + 70, TOP + ROW * self.outputs + BARS
        self.size = (self.drawn[0] / 72, self.drawn[1] / 72)

    def table(self, function: str) -> Any:
        """Return the Jacobian: row i, column j says how far output i moves for each unit of input j."""
        return engine.func.jacrev(self.functions[function])(self.x)

    def weights(self, values: dict[str, Any]) -> tuple[Any, Any]:
        """v, a weight for each output, and u, a speed for each input."""
        v = engine.tensor([float(values[f"v{i}"]) for i in range(self.outputs)])
        u = engine.tensor([float(values[f"u{j}"]) for j in range(self.inputs)])
        return v, u

    def words(self, **values: Any) -> str:
        table = self.table(values["function"])
        v, u = self.weights(values)
        return (
            f"{values['function']} at x = {_list(self.x)}. "
            f"Backward: v = {_list(v)} makes {_sum(v, 'row')}. v^T J = {_list(v @ table)}: a slope for each input. "
            f"Forward: u = {_list(u)} makes {_sum(u, 'column')}. J u = {_list(table @ u)}: a speed for each output."
        )

    def image(self, **values: Any) -> bytes:
        """Return the picture as an SVG."""
        values = self.start() | values
        width, height = self.drawn
        ground = f"<rect width='100%' height='100%' rx='4' fill='{GROUND}'/>"
        parts = "".join(self.parts(values))
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}' font-family='DejaVu Sans, Verdana, sans-serif' font-size='14'>"
            f"{ground}{parts}</svg>"
        ).encode()

    def parts(self, values: dict[str, Any]) -> Iterator[str]:
        table = self.table(values["function"])
        v, u = self.weights(values)
        right, bottom = LEFT + CELL * self.inputs, TOP + ROW * self.outputs
        yield _text(8, 24, f"{values['function']} at x = {_list(self.x)}", size=16, bold=True)
        yield _text(LEFT - 86, TOP - 12, "v", BLUE, bold=True)
        yield _text(LEFT - 14, TOP - 42, "u", ORANGE, bold=True, anchor="end")
        for i in range(self.outputs):
            yield from self.weight(LEFT - 104, TOP + ROW * i + 7, v[i].item(), BLUE)
            yield _text(LEFT - 12, TOP + ROW * i + 27, f"y[{i}]", size=12, anchor="end")
        for j in range(self.inputs):
            yield from self.weight(LEFT + CELL * j + CELL / 2 - 22, TOP - 62, u[j].item(), ORANGE)
            yield _text(LEFT + CELL * (j + 0.5), TOP - 10, f"x[{j}]", size=12, anchor="middle")
        yield from self.bands(v, u)
        for i in range(self.outputs):
            for j in range(self.inputs):
                slope = table[i, j].item()
                style = "stroke='#888888'" + (" stroke-dasharray='3 3'" if not slope else "")
                yield (
                    f"<rect x='{LEFT + CELL * j}' y='{TOP + ROW * i}' width='{CELL}' height='{ROW}' fill='none' "
                    f"{style}/>"
                )
                colour = "#111111" if slope else "#555555"
                yield _text(
                    LEFT + CELL * (j + 0.5), TOP + ROW * i + 27, _number(slope), colour, anchor="middle", size=15
                )
        yield from self.bars_below(table, v, bottom)
        yield from self.bars_beside(table, u, right)

    def weight(self, x: float, y: float, value: float, colour: str) -> Iterator[str]:
        """Yield a weight in its box, whose outline is heavy where it counts."""
        width = 2.5 if value else 1
        yield (
            f"<rect x='{x:g}' y='{y:g}' width='44' height='30' rx='4' fill='{GROUND}' stroke='{colour}' "
            f"stroke-width='{width}'/>"
        )
        yield _text(x + 22, y + 20, _number(value), colour, bold=bool(value), anchor="middle")

    def bands(self, v: Any, u: Any) -> Iterator[str]:
        """Yield the rows and the columns that count, the darker the more."""
        for i, weight in enumerate(v.tolist()):
            if weight:
                place = f"x='{LEFT}' y='{TOP + ROW * i}' width='{CELL * self.inputs}' height='{ROW}'"
                yield f"<rect {place} fill='{BLUE}' fill-opacity='{0.09 * abs(weight):g}'/>"
        for j, weight in enumerate(u.tolist()):
            if weight:
                place = f"x='{LEFT + CELL * j}' y='{TOP}' width='{CELL}' height='{ROW * self.outputs}'"
                yield f"<rect {place} fill='{ORANGE}' fill-opacity='{0.09 * abs(weight):g}'/>"

    def bars_below(self, table: Any, v: Any, bottom: int) -> Iterator[str]:
        """Yield the weighted sum of the rows: a bar under each column."""
        zero, unit = bottom + 52, 40 / self.most(table, 0)
        yield _text(8, zero - 4, "vᵀJ, backward", BLUE, bold=True, size=13)
        yield _text(8, zero + 14, "rows, weighted", BLUE, size=12)
        yield f"<path d='M{LEFT} {zero} h{CELL * self.inputs}' stroke='{BLUE}'/>"
        for j, value in enumerate((v @ table).tolist()):
            length = abs(value) * unit
            middle, top = LEFT + CELL * (j + 0.5), zero - length if value > 0 else zero
            yield f"<rect x='{middle - 15:g}' y='{top:g}' width='30' height='{length:g}' fill='{BLUE}'/>"
            at = zero + 18 if value >= 0 else zero - 8
            yield _text(middle, at, _number(value), BLUE, bold=True, anchor="middle")

    def bars_beside(self, table: Any, u: Any, right: int) -> Iterator[str]:
        """Yield the weighted sum of the columns: a bar beside each row."""
        zero, unit = right + REACH + 36, REACH / self.most(table, 1)
        yield _text(zero, TOP - 42, "J u, forward", ORANGE, bold=True, anchor="middle")
        yield _text(zero, TOP - 24, "columns, weighted", ORANGE, size=12, anchor="middle")
        yield f"<path d='M{zero} {TOP} v{ROW * self.outputs}' stroke='{ORANGE}'/>"
        for i, value in enumerate((table @ u).tolist()):
            length, top = abs(value) * unit, TOP + ROW * i + 9
            start = zero if value >= 0 else zero - length
            yield f"<rect x='{start:g}' y='{top}' width='{length:g}' height='26' fill='{ORANGE}'/>"
            at, anchor = (zero - 8, "end") if value >= 0 else (zero + 8, "start")
            yield _text(at, top + 18, _number(value), ORANGE, bold=True, anchor=anchor)

    def most(self, table: Any, dim: int) -> float:
        """Return the largest sum that the sliders can make: the scale stays while they move."""
        return max(WEIGHTS) * table.abs().sum(dim).max().item() or 1.0


def _text(
    x: float,
    y: float,
    words: str,
    colour: str = "#222222",
    *,
    size: int = 14,
    bold: bool = False,
    anchor: str = "start",
) -> str:
    weight = " font-weight='bold'" if bold else ""
    return (
        f"<text x='{x:g}' y='{y:g}' fill='{colour}' font-size='{size}'{weight} text-anchor='{anchor}'>"
        f"{escape(words)}</text>"
    )


def _number(value: float) -> str:
    rounded = round(value, 2) + 0.0
    return f"{rounded:g}" if rounded == int(rounded) else f"{rounded:.2f}"


def _list(values: Any) -> str:
    return f"[{', '.join(map(_number, values.tolist()))}]"


def _sum(weights: Any, what: str) -> str:
    """Say which rows or columns are added up, and how often each."""
    found = [(n, weight) for n, weight in enumerate(weights.tolist()) if weight]
    return " + ".join(f"{_number(weight)} × {what} {n}" for n, weight in found) or f"0 of each {what}"
