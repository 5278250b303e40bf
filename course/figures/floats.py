"""How a number is stored: its bits, and what stands beside it on the line of all numbers that can be stored."""

from typing import Any, NamedTuple

import numpy as np

import engine
from course.figures.explorer import ACCENT, FAINT, INK, SECOND, Explorer

FORMATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23)}  # bits of the exponent, of the fraction
NUMBERS = [0.1, 0.5, 1.0, 1.001, 3.14159, 100.0, 257.0, 2049.0, 65504.0, 70000.0, 16777217.0, 1e-5, 1e-8, 1e-42]


class Stored(NamedTuple):
    """A number as one of the formats holds it."""

    value: float
    below: float  # the neighbours; nan beside inf
    above: float
    sign: str
    exponent: str
    fraction: str


def stored(number: float, kind: str) -> Stored:
    """What becomes of a positive number in a format, and its neighbours there."""
    exponent, fraction = FORMATS[kind]
    with np.errstate(over="ignore"):
        array = engine.tensor([number], dtype=getattr(engine, kind)).array  # type: ignore[attr-defined]  # NumPy has no bfloat16 to give away
    bits = array.view(f"u{array.itemsize}")

    def neighbour(by: int) -> float:
        return (
            float(np.array([int(bits[0]) + by], bits.dtype).view(array.dtype)[0]) if int(bits[0]) + by >= 0 else np.nan
        )

    word = f"{int(bits[0]):0{1 + exponent + fraction}b}"
    value = float(array[0])
    below, above = (neighbour(-1), neighbour(1)) if np.isfinite(value) else (np.nan, np.nan)
    return Stored(value, below, above, word[0], word[1 : 1 + exponent], word[1 + exponent :])


def digits(x: float) -> str:
    return f"{x:.10g}"


class FloatExplorer(Explorer):
    """The bits of a number in float16, bfloat16 or float32, and the numbers that stand beside it there."""

    size = (6.5, 2.4)

    def __init__(self) -> None:
        self.settings = {"kind": (list(FORMATS), "float16", "type"), "number": (NUMBERS, 0.1, "number")}
        self.stills = ({}, {"kind": "bfloat16"}, {"number": 70000.0})

    def words(self, *, kind: str, number: float) -> str:
        s = stored(number, kind)
        largest = float(engine.finfo(getattr(engine, kind)).max)
        begin = f"{number:.9g} in {kind}: sign {s.sign}, exponent {s.exponent}, fraction {s.fraction}. "
        if np.isinf(s.value):
            return f"{begin}It is too large: stored is inf. The largest number of {kind} is {digits(largest)}."
        if s.value == 0:
            return f"{begin}It is too small: stored is 0. The next number of {kind} is {digits(s.above)}."
        error = abs(s.value - number)
        return (
            f"{begin}Stored is {'exactly ' if error == 0 else ''}{digits(s.value)}"
            + (f", which is off by {error:.2g}" if error else "")
            + (f". The next number is {digits(s.above)}, " if np.isfinite(s.above) else ". There is no larger number, ")
            + f"and the one before is {digits(s.below)}."
        )

    def draw(self, axes: Any, *, kind: str, number: float) -> None:
        s = stored(number, kind)
        axes.set_axis_off()
        axes.set(xlim=(0, 1), ylim=(0, 1))
        fields = (("sign", s.sign, ACCENT), ("exponent", s.exponent, SECOND), ("fraction", s.fraction, INK))
        gap, left = 0.012, 0.0
        width = (1 - 2 * gap) / sum(len(bits) for _, bits, _ in fields)
        width = min(width, 0.055)
        for name, bits, color in fields:
            middle = left + width * len(bits) / 2
            axes.text(max(middle, 0.02), 0.97, name, color=color, ha="center", va="top", fontsize=9)
            for bit in bits:
                filled = color if bit == "1" else "white"
                axes.add_patch(_box(left, 0.66, width, 0.18, filled, color))
                axes.text(left + width / 2, 0.75, bit, ha="center", va="center", family="monospace", fontsize=9,
                          color="white" if bit == "1" else "black")  # fmt: skip
                left += width
            left += gap
        self.line(axes, s, number)

    def line(self, axes: Any, s: Stored, number: float) -> None:
        """The neighbours on a line, and where the number itself would be."""
        if not np.isfinite(s.value):
            axes.text(0.5, 0.3, f"{number:.9g} is too large: inf", ha="center", color=ACCENT)
            return
        axes.plot([0.05, 0.95], [0.3, 0.3], color=FAINT, linewidth=1)
        neighbours = [s.below, s.value, s.above]
        unit = s.above - s.value if np.isfinite(s.above) else s.value - s.below
        for x in neighbours:
            if np.isfinite(x):
                at = 0.5 + 0.32 * (x - s.value) / unit
                here = x == s.value
                axes.plot([at, at], [0.24, 0.36], color=INK, linewidth=3 if here else 1.5)
                axes.text(at, 0.18, digits(x), ha="center", va="top", fontsize=9, color="black")
        at = 0.5 + 0.32 * (number - s.value) / unit
        axes.plot([at], [0.3], "o", color=ACCENT, markersize=6)
        axes.text(at, 0.42, f"{number:.9g}", ha="center", va="bottom", fontsize=9, color=ACCENT)


def _box(x: float, y: float, width: float, height: float, fill: str, edge: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=fill, edgecolor=edge, linewidth=1)
