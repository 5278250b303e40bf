"""A figure of the table of all slopes: which output follows which input, and what one backward pass finds of it."""

from collections.abc import Callable
from typing import Any

import engine
from course.figures.explorer import Explorer
from course.figures.grid import Cell, Panel, svg


class JacobianExplorer(Explorer):
    """The Jacobian of some functions at a point; the sliders choose the function, an output and an input.

    ``functions``: {name: function of a vector to a vector}, all with as many outputs.
    """

    def __init__(self, functions: dict[str, Callable[[Any], Any]], x: engine.Tensor):
        self.functions = functions
        self.x: Any = x.detach()
        names, inputs = list(functions), list(range(len(self.x)))
        outputs = list(range(len(functions[names[0]](self.x))))
        self.settings = {
            "function": (names, names[0], "function"),
            "output": (outputs, min(1, outputs[-1]), "output"),
            "input": (inputs, inputs[-1], "input"),
        }
        self.stills = tuple({"function": name} for name in names)
        self.size = (740 / 72, (160 + 28 * len(outputs)) / 72)

    def table(self, function: str) -> tuple[Any, Any]:
        """The outputs, and the Jacobian: row i, column j says how far output i moves for each unit of input j."""
        f = self.functions[function]
        return f(self.x), engine.func.jacrev(f)(self.x)

    def words(self, *, function: str, output: int, input: int) -> str:
        y, table = self.table(function)
        slope = table[output, input].item()
        moves = f"moves {slope:.3g} times as far" if slope else "does not move"
        return (
            f"{function}: if input {input} moves a little, output {output} {moves}. "
            f"Row {output}, the slopes of output {output}: {_numbers(table[output])}. "
            f"Column {input}, the slopes with respect to input {input}: {_numbers(table[:, input])}. "
            f"{int((table != 0).sum())} of the {table.numel()} slopes are not 0."
        )

    def image(self, **values: Any) -> bytes:
        """The picture as an SVG."""
        values = self.start() | values
        row, column = values["output"], values["input"]
        y, table = self.table(values["function"])

        def slope(at: tuple[int, ...]) -> Cell:
            inside = at[0] == row or at[1] == column
            return Cell(_number(table[at].item()), "strong" if inside else "plain" if table[at].item() else "pale")

        panels = [
            Panel("x, the inputs", f"input {column}", tuple(self.x.shape), _vector(self.x, column)),
            Panel("the slopes", "a row an output, a column an input", tuple(table.shape), slope),
            Panel("y, the outputs", f"output {row}", (len(y), 1), _vector(y, row)),
        ]
        width, height = (round(72 * side) for side in self.size)
        return svg(panels, width, height, most=10_000).encode()


def _vector(values: Any, chosen: int) -> Callable[[tuple[int, ...]], Cell]:
    return lambda at: Cell(_number(values[at[0]].item()), "strong" if at[0] == chosen else "plain")


def _number(value: float) -> str:
    return f"{value + 0.0:g}" if value == int(value) else f"{value:.2f}"


def _numbers(values: Any) -> str:
    return ", ".join(f"{value + 0.0:.3g}" for value in values.tolist())
