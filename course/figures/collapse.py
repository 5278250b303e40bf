"""CollapseExplorer: a table, the dimension that goes away, and the numbers that go into each one that is left."""

from typing import Any

import engine
from course.figures.base.chooser import Chooser, Control, Shown
from course.figures.base.grid import CENTRED, HEIGHT, LABEL, Cell, beside, box, frame, indices, named, text
from course.figures.boxes import number

HOW = ("sum", "mean", "max")
ARROW = 34  # the room in which the table collapses


class CollapseExplorer(Chooser):
    """A table that collapses along one of its questions: `dim=0`, `dim=1`, or along both."""

    def __init__(self, *questions: str, how: str = "mean", **tensors: engine.Tensor):
        ((self.name, table),) = tensors.items()
        if table.ndim != 2 or len(questions) != 2:
            raise ValueError("a table with two dimensions is asked for, and a name for each of them")
        self.table: Any = table.detach()
        self.questions = questions
        self.sides = [f"dim={dim} ({question})" for dim, question in enumerate(questions)]
        self.controls = (
            Control("choice", "how", "take the", HOW),
            Control("choice", "dim", "along", (*self.sides, "no dim")),
            Control("range", "place", "result"),
        )
        self.begin = {"how": HOW.index(how), "dim": 0, "place": 1}
        self.stills = (
            *((f"dim={dim}: the {question} goes", {"dim": dim}) for dim, question in enumerate(questions)),
            ("No dim: both go", {"dim": 2}),
        )

    def result(self, how: int, dim: int) -> Any:
        """Return the result of the reduction."""
        if dim == 2:
            return getattr(self.table, HOW[how])()
        out = getattr(self.table, HOW[how])(dim=dim)
        return out.values if HOW[how] == "max" else out

    def shown(self, *, how: int, dim: int, place: int) -> Shown:
        result = self.result(how, dim)
        place = min(place, result.numel() - 1)
        kept = 1 - dim  # where one is kept
        numbers = self.table.reshape(-1) if dim == 2 else self.table[:, place] if dim == 0 else self.table[place]
        out = result.item() if dim == 2 else result[place].item()
        written = f"{self.name}.{HOW[how]}({'' if dim == 2 else f'dim={dim}'})"
        if dim == 2:
            said = [f"{written}: both questions go, and one number is left."]
            names = ["one number"]
        else:
            gone, left = self.questions[dim], self.questions[kept]
            said = [
                f"{written}: nobody asks for the {gone} any more, only for the {left}. "
                f"Shape {tuple(self.table.shape)} becomes {tuple(result.shape)}.",
            ]
            names = [f"{left} {at}" for at in range(result.numel())]
            said.append(f"At {names[place]}:")
        said.append(f"{_worked_out(HOW[how], numbers.tolist())} = {out:g}.")
        clicks = ({},) if dim == 2 else tuple({"place": at} for at in range(result.numel()))
        values = {"how": how, "dim": dim, "place": place}
        return Shown([self._drawn(result, dim, place)], " ".join(said), values, {"place": names}, clicks)

    def _drawn(self, result: Any, dim: int, place: int) -> str:
        rows, columns = self.table.shape
        cells = [number(value) for value in (*self.table.flatten().tolist(), *result.reshape(-1).tolist())]
        wide = max(36, 10 + 8 * max(map(len, cells)))
        left, top = 8 + beside(self.questions[0]), 26 + 2 * LABEL
        right, bottom = left + wide * columns, top + HEIGHT * rows
        parts = [text(8, 18, f"{self.name}, shape {tuple(self.table.shape)}", "fill='#222222' font-weight='bold'")]
        gone = self.questions if dim == 2 else self.questions[dim : dim + 1]
        parts += indices(left, top, wide, columns)
        parts += (text(left - 9, top + HEIGHT * (r + 0.5) + 4, str(r), CENTRED) for r in range(rows))
        parts += named(self.questions, left, top, gone)
        at = {0: lambda r, c: c == place, 1: lambda r, c: r == place, 2: lambda r, c: True}[dim]
        drawn = []
        for r in range(rows):
            for c in range(columns):
                strong = at(r, c)
                cell = Cell(cells[r * columns + c], "strong" if strong else "plain", (c, r, 0)[dim])
                drawn.append((strong, left + wide * c, top + HEIGHT * r, cell))
        for spot in range(result.numel()):
            strong = spot == place or dim == 2
            cell = Cell(cells[rows * columns + spot], "strong" if strong else "plain", spot)
            if dim == 1:
                x, y = right + ARROW, top + HEIGHT * spot
                parts.append(_arrow(right + 5, y + HEIGHT / 2, x - 5, y + HEIGHT / 2))
            else:
                x = left + wide * spot if dim == 0 else right + ARROW
                y = bottom + ARROW
                if dim == 0:
                    parts.append(_arrow(x + wide / 2, bottom + 4, x + wide / 2, y - 5))
                else:
                    parts.append(_arrow(right + 5, bottom + 5, x - 4, y - 4))
            drawn.append((strong, x, y, cell))
        # What counts is drawn last: its outline lies over its neighbours'.
        for _, x, y, cell in sorted(drawn, key=lambda one: one[0]):
            parts += box(x, y, wide, cell)
        # Room for every way to collapse, so that the page does not jump.
        end = bottom + ARROW + HEIGHT + 24
        parts.append(text(left, end - 7, f"shape {tuple(result.shape)} is left", "fill='#222222'"))
        return frame(parts, right + ARROW + wide + 10, end + 4)


def _worked_out(how: str, numbers: list[float]) -> str:
    """Show how the numbers make one; of many, the first and the last."""
    texts = [f"{value:g}" for value in numbers]
    if len(texts) > 5:
        texts = [*texts[:2], "...", texts[-1]]
    if how == "max":
        return f"the largest of {', '.join(texts)}"
    total = " + ".join(f"({t})" if t.startswith("-") else t for t in texts)
    return total if how == "sum" else f"({total}) / {len(numbers)}"


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return an arrow; its tip is drawn in the direction of the line."""
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    ux, uy = (to_x - x) / length, (to_y - y) / length
    back, side = 7, 4
    tip = [(to_x, to_y)] + [(to_x - back * ux - way * side * uy, to_y - back * uy + way * side * ux) for way in (1, -1)]
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in tip)
    line = f"<line x1='{x:g}' y1='{y:g}' x2='{to_x:g}' y2='{to_y:g}' stroke='#555555' stroke-width='1.5'/>"
    return f"{line}<polygon points='{points}' fill='#555555'/>"
