"""ProductExplorer: `a @ b` drawn so that the row and the column of each number meet in it."""

from typing import Any

import engine
from course.figures.base.chooser import Chooser, Control, Shown
from course.figures.base.grid import CENTRED, HEIGHT, LABEL, Cell, beside, box, frame, indices, named, text
from course.figures.boxes import number

GAP = 30


class ProductExplorer(Chooser):
    """Two matrices, their product, and one number of it worked out: a row of the left, a column of the right."""

    def __init__(self, *questions: str, **tensors: engine.Tensor):
        (self.a, left), (self.b, right) = tensors.items()
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0] or len(questions) != 3:
            raise ValueError("two matrices that can be multiplied are asked for, and names for the three sizes")
        self.left: Any = left.detach()
        self.right: Any = right.detach()
        self.result = self.left @ self.right
        self.questions = questions
        self.controls = (
            Control("range", "row", f"row of {self.a}"),
            Control("range", "column", f"column of {self.b}"),
        )
        self.begin = {"row": 0, "column": 0}
        last = {"row": self.result.shape[0] - 1, "column": self.result.shape[1] - 1}
        self.stills = tuple(
            (f"The number at [{at['row']}, {at['column']}] of {self.a} @ {self.b}", at) for at in (self.begin, last)
        )

    def shown(self, *, row: int, column: int) -> Shown:
        pairs = zip(self.left[row].tolist(), self.right[:, column].tolist(), strict=True)
        total = " + ".join(f"{one:g} \u00d7 {other:g}" for one, other in pairs)
        words = (
            f"Row {row} of {self.a} meets column {column} of {self.b}: {total} = {self.result[row, column].item():g}."
        )
        rows, columns = self.result.shape
        places = {
            "row": [f"{self.questions[0]} {at}" for at in range(rows)],
            "column": [f"{self.questions[2]} {at}" for at in range(columns)],
        }
        clicks = tuple({"row": r, "column": c} for r in range(rows) for c in range(columns))
        return Shown([self._drawn(row, column)], words, {"row": row, "column": column}, places, clicks)

    def _drawn(self, row: int, column: int) -> str:
        (rows, middle), (_, columns) = self.left.shape, self.right.shape
        texts = [number(value) for t in (self.left, self.right, self.result) for value in t.flatten().tolist()]
        wide = max(36, 10 + 8 * max(map(len, texts)))
        first, second, third = self.questions
        # Below at the left the one, above at the right the other, and where their lines cross, the product.
        left = 8 + beside(first)
        across = left + wide * middle + max(GAP, beside(second))
        top = 26 + 2 * LABEL
        below = top + HEIGHT * middle + 26 + 2 * LABEL
        bold = "fill='#222222' font-weight='bold'"
        parts = [
            text(across, 18, f"{self.b} {tuple(self.right.shape)}", bold),
            text(8, below - 2 * LABEL - 8, f"{self.a} {tuple(self.left.shape)}", bold),
            text(across, below + HEIGHT * rows + 20, f"{self.a} @ {self.b}", bold),
            text(across, below + HEIGHT * rows + 20 + LABEL, f"{tuple(self.result.shape)}", bold),
            *named((second, third), across, top),
            *named((first, second), left, below),
            *indices(across, top, wide, columns),
            *indices(left, below, wide, middle),
            *(text(across - 9, top + HEIGHT * (r + 0.5) + 4, str(r), CENTRED) for r in range(middle)),
            *(text(left - 9, below + HEIGHT * (r + 0.5) + 4, str(r), CENTRED) for r in range(rows)),
        ]
        drawn = []
        for tensor, x, y, strong in (
            (self.left, left, below, lambda r, c: r == row),
            (self.right, across, top, lambda r, c: c == column),
            (self.result, across, below, lambda r, c: (r, c) == (row, column)),
        ):
            for r in range(tensor.shape[0]):
                for c in range(tensor.shape[1]):
                    spot = r * columns + c if tensor is self.result else None
                    look = "strong" if strong(r, c) else "plain"
                    drawn.append((x + wide * c, y + HEIGHT * r, Cell(number(tensor[r, c].item()), look, spot)))
        for x, y, cell in sorted(drawn, key=lambda one: one[2].look == "strong"):
            parts += box(x, y, wide, cell)
        return frame(
            parts,
            max(across + wide * columns, across + 8 * len(f"{self.b} (0, 0)")) + 16,
            below + HEIGHT * rows + 30 + LABEL,
        )
