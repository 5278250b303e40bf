"""Gradient accumulation: the gradients of a batch's parts, added one after the other."""

from functools import cache
from typing import Any

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND, Explorer

EXAMPLES = 40
SIZES = [40, 20, 16, 10, 8]
WAYS = {
    "as it is": lambda size, parts: 1.0,
    "divided by the parts": lambda size, parts: 1 / parts,
    "weighted by its size": lambda size, parts: size / EXAMPLES,
}


def batch() -> tuple[Any, Any]:
    """40 examples of a bent and noisy line, such that the parts of the batch disagree."""
    noise = engine.Generator().manual_seed(5)
    x = engine.linspace(-1.5, 2.0, EXAMPLES)[engine.randperm(EXAMPLES, generator=noise)]
    return x, -1.0 - x - 0.7 * x**2 + 1.5 * engine.randn(EXAMPLES, generator=noise)


@cache
def gradients(size: int, way: str) -> tuple[tuple[float, float], ...]:
    """Return what each part's `backward()` adds to the `.grad` of slope and offset, both of them 0 now."""
    x, y = batch()
    parts = list(zip(x.split(size), y.split(size), strict=True))
    found = []
    for part_x, part_y in parts:
        knobs: Any = engine.zeros(2, requires_grad=True)
        loss = ((knobs[0] * part_x + knobs[1] - part_y) ** 2).mean()
        (loss * WAYS[way](len(part_x), len(parts))).backward()
        found.append(tuple(knobs.grad.tolist()))
    return tuple(found)


ARROW = {"arrowstyle": "->", "color": INK, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}


class AccumulationTimeline(Explorer):
    """`.grad` after each `backward()` of a batch in parts, beside the gradient of the whole batch."""

    size = (6.0, 3.6)
    settings = {
        "size": (SIZES, 10, "examples in a part"),
        "way": (list(WAYS), "as it is", "the loss of a part is taken"),
        "calls": (list(range(EXAMPLES // min(SIZES) + 1)), 4, "calls of backward()"),
    }
    stills = (
        {},
        {"way": "divided by the parts"},
        {"size": 16, "way": "divided by the parts"},
        {"size": 16, "way": "weighted by its size"},
    )

    def path(self, size: int, way: str, calls: int) -> list[tuple[float, float]]:
        """Return `.grad` at first and after each call; there are no more calls than parts."""
        places = [(0.0, 0.0)]
        for slope, offset in gradients(size, way)[:calls]:
            places.append((places[-1][0] + slope, places[-1][1] + offset))
        return places

    def whole(self) -> tuple[float, float]:
        """Return the gradient of the batch in one piece."""
        return gradients(EXAMPLES, "as it is")[0]

    def away(self, size: int, way: str, calls: int) -> float:
        """Return how far `.grad` is from the gradient of the whole batch, as a part of that one's length."""
        (a, b), (c, d) = self.path(size, way, calls)[-1], self.whole()
        return (((a - c) ** 2 + (b - d) ** 2) / (c**2 + d**2)) ** 0.5

    def words(self, *, size: int, way: str, calls: int) -> str:
        parts = len(gradients(size, way))
        a, b = self.path(size, way, calls)[-1]
        c, d = self.whole()
        long = ((a**2 + b**2) / (c**2 + d**2)) ** 0.5
        left = EXAMPLES % size
        cut = f"parts of {size}" + (f", the last one of {left}" if left else "")
        off = 100 * self.away(size, way, calls)
        hit = "it is that gradient" if off < 0.01 else f"{off:.0f} % of that length away from it"
        return (
            f"{EXAMPLES} examples in {cut}; each loss {way}. After {min(calls, parts)} of {parts} calls .grad is "
            f"({a:.2f}, {b:.2f}), {long:.2f} times as long as the gradient of the whole batch, ({c:.2f}, {d:.2f}); "
            f"{hit}."
        )

    def draw(self, axes: Any, *, size: int, way: str, calls: int) -> None:
        for number, (begin, end) in enumerate(zip(*(self.path(size, way, calls)[i:] for i in (0, 1)), strict=False)):
            axes.annotate("", end, begin, arrowprops=ARROW)
            middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
            axes.annotate(str(number + 1), middle, (-9, 4), textcoords="offset points", color=INK, fontsize=12)
        axes.plot([0], [0], "o", color=FAINT, label="after clearing")
        axes.plot(*([c] for c in self.whole()), "s", color=SECOND, markersize=9, label="gradient of the whole batch")
        axes.plot(*([c] for c in self.path(size, way, calls)[-1]), "x", color=ACCENT, markersize=9, label=".grad")
        corners = [place for each in SIZES for place in self.path(each, way, EXAMPLES)]
        axes.set(xlabel=".grad of the slope", ylabel=".grad of the offset")
        for limits, values in ((axes.set_xlim, 0), (axes.set_ylim, 1)):
            low, high = min(c[values] for c in corners), max(c[values] for c in corners)
            limits(low - 0.1 * (high - low), high + 0.1 * (high - low))
        axes.legend(loc="lower right", fontsize=10)
