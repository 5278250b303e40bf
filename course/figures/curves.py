"""Figures about one curve: what its slope is, and how to walk down it."""

from collections.abc import Callable
from typing import Any

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND, Explorer

STEP = {"arrowstyle": "->", "color": ACCENT, "shrinkA": 0, "shrinkB": 0}


class SecantExplorer(Explorer):
    """A curve and the line through two of its points, with the triangle between them, also through a magnifying glass.

    The slider moves the second point towards the first.
    """

    size = (5.3, 5.6)  # as wide as a narrow page, so that the text is never made smaller

    def __init__(self, f: Callable[[float], float], at: float, between: tuple[float, float]):
        self.f, self.at, self.between = f, at, between
        nudges = [2.0, 1.5, 1.0, 0.5, 0.2, 0.1, 0.01, 0.001]
        self.settings = {"nudge": (nudges, 1.5, "nudge")}
        self.stills = ({}, {"nudge": 0.1})
        self.titles = ("A large nudge: 1.5", "A small nudge: 0.1")

    def slope(self, nudge: float) -> float:
        return self.up(nudge) / nudge

    def up(self, nudge: float) -> float:
        return self.f(self.at + nudge) - self.f(self.at)

    def words(self, *, nudge: float) -> str:
        first, second = (f"({x:g}, {self.f(x):.3f})" for x in (self.at, self.at + nudge))
        return (
            f"From {first} to {second}: {nudge:g} along, {_digits(self.up(nudge))} up. The line through both has slope "
            f"{self.slope(nudge):.3f}. The glass shows {1.6 * nudge:g} of the width."
        )

    def draw(self, axes: Any, *, nudge: float) -> None:
        axes.set_position([0.12, 0.55, 0.86, 0.44])
        glass = axes.figure.add_axes([0.12, 0.02, 0.86, 0.36])
        low, high = self.at - 0.3 * nudge, self.at + 1.3 * nudge
        first, slope = self.f(self.at), self.slope(nudge)
        for part, xs in ((axes, _spread(*self.between)), (glass, _spread(low, high))):
            part.plot(xs, [self.f(x) for x in xs], color=INK, label="the curve")
            line = [first + slope * (x - self.at) for x in xs]
            part.plot(xs, line, "--", color=ACCENT, label=f"slope {slope:.3f}")
            corner = [self.at, self.at + nudge, self.at + nudge], [first, first, first + self.up(nudge)]
            part.plot(*corner, color=SECOND, linewidth=2, label="along, and up")
            ends = [self.at, self.at + nudge], [first, self.f(self.at + nudge)]
            part.plot(*ends, "o", color=ACCENT)
        _frame(axes, [self.f(x) for x in _spread(*self.between)])
        heights = [self.f(x) for x in (low, high)] + [first]
        room = 0.2 * (max(heights) - min(heights)) or nudge
        glass.set(xlim=(low, high), ylim=(min(heights) - room, max(heights) + room), xticks=[], yticks=[])
        glass.set_title("through the glass", fontsize=12)
        along = glass.annotate(f"{nudge:g} along", (self.at + nudge / 2, first), (0, -4), textcoords="offset points")
        along.set(ha="center", va="top", color=SECOND)
        middle = self.at + nudge, first + self.up(nudge) / 2
        up = glass.annotate(f"{_digits(self.up(nudge))} up", middle, (5, -3), textcoords="offset points", rotation=90)
        up.set(ha="left", va="center", color=SECOND)
        axes.plot([low, high, high, low, low], _box(glass.get_ylim()), color=FAINT, linewidth=1, label="_glass")


class DescentExplorer(Explorer):
    """The positions of a walk downhill on a curve, for a learning rate and a number of steps."""

    size = (5.3, 4.0)

    def __init__(self, f: Callable[[Any], Any], start: float, between: tuple[float, float]):
        self.f, self.begin, self.between = f, start, between
        rates = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1]
        self.settings = {"rate": (rates, 0.1, "learning rate"), "steps": (list(range(21)), 8, "steps")}
        self.stills = tuple({"rate": rate} for rate in (0.1, 0.8, 1.05))
        self.titles = tuple(f"Learning rate {still['rate']}" for still in self.stills)

    def walk(self, rate: float, steps: int) -> list[float]:
        """Return the positions, the first one included."""
        return self.walk_and_slopes(rate, steps)[0]

    def walk_and_slopes(self, rate: float, steps: int) -> tuple[list[float], list[float]]:
        """Return the positions, the first one included, and the slope at each."""
        x = engine.tensor(float(self.begin), requires_grad=True)
        positions, slopes = [], []
        for _ in range(steps + 1):
            self.f(x).backward()
            positions.append(x.item())
            slopes.append(x.grad.item())
            with engine.no_grad():
                x -= rate * x.grad
            x.grad = None
        return positions, slopes

    def words(self, *, rate: float, steps: int) -> str:
        positions, slopes = self.walk_and_slopes(rate, steps)
        end = positions[-1]
        walk = "1 step leads" if steps == 1 else f"{steps} steps lead"
        outside = "" if self.between[0] <= end <= self.between[1] else ", outside of the picture"
        return (
            f"With learning rate {rate:g}, {walk} from x = {positions[0]:g} to x = {end:.3f}{outside}; "
            f"the output goes from {self.f(positions[0]):.3f} to {self.f(end):.3f}, the slope from {slopes[0]:.3f} to "
            f"{slopes[-1]:.3f}."
        )

    def draw(self, axes: Any, *, rate: float, steps: int) -> None:
        xs = _spread(*self.between)
        heights = [self.f(x) for x in xs]
        axes.plot(xs, heights, color=INK, label="the curve")
        positions, slopes = self.walk_and_slopes(rate, steps)
        outputs = [self.f(x) for x in positions]
        for x, to, y, below in zip(positions, positions[1:], outputs, outputs[1:], strict=False):
            axes.annotate("", (to, y), (x, y), arrowprops=STEP)
            axes.plot([to, to], [y, below], ":", color=ACCENT, linewidth=1.2, label="_fall")
        for x, y, slope in zip(positions, outputs, slopes, strict=True):
            reach = self._reach(slope, max(heights) - min(heights))
            ground = [y - reach * slope, y + reach * slope]
            axes.plot([x - reach, x + reach], ground, color=SECOND, linewidth=3, label="_slope", zorder=3)
        axes.plot(positions, outputs, "o", color=ACCENT, markersize=5, label="the walk", zorder=4)
        axes.plot(positions[:1], outputs[:1], "s", color="black", markersize=7, label="start", zorder=5)
        axes.plot([], [], color=SECOND, linewidth=3, label="slope at a dot")
        axes.set_xlim(*self.between)
        _frame(axes, heights)

    def _reach(self, slope: float, height: float) -> float:
        """Return how far to each side a piece of ground goes: all pieces are equally long on the page."""
        width = self.between[1] - self.between[0]
        across, upwards = (self.size[0] - 0.7) / width, (self.size[1] - 0.6) / (1.2 * height or 2.0)  # inches a unit
        return float(0.25 / ((across**2 + (slope * upwards) ** 2) ** 0.5))


def _spread(low: float, high: float, n: int = 121) -> list[float]:
    return [low + (high - low) * i / (n - 1) for i in range(n)]


def _digits(number: float) -> str:
    """Four digits that count, but no more places than a small nudge makes necessary."""
    return f"{number:.4g}"


def _box(limits: tuple[float, float]) -> list[float]:
    low, high = limits
    return [low, low, high, high, low]


def _frame(axes: Any, heights: list[float]) -> None:
    """Room for the curve alone: what leaves it, leaves the picture."""
    room = 0.1 * (max(heights) - min(heights)) or 1.0  # a flat curve has some too
    axes.set(xlabel="x", ylabel="output", ylim=(min(heights) - room, max(heights) + room))
    axes.legend(loc="upper center")
