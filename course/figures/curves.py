"""Figures about one curve: what its slope is, and how to walk down it."""

from collections.abc import Callable
from typing import Any

import engine
from course.figures.explorer import ACCENT, FAINT, INK, SECOND, Explorer


class SecantExplorer(Explorer):
    """A curve and the line through two of its points; the slider moves the second towards the first."""

    def __init__(self, f: Callable[[float], float], at: float, between: tuple[float, float]):
        self.f, self.at, self.between = f, at, between
        nudges = [2.0, 1.5, 1.0, 0.5, 0.2, 0.1, 0.01, 0.001]
        self.settings = {"nudge": (nudges, 1.5, "nudge")}
        self.stills = ({}, {"nudge": 0.1})

    def slope(self, nudge: float) -> float:
        return (self.f(self.at + nudge) - self.f(self.at)) / nudge

    def words(self, *, nudge: float) -> str:
        first, second = (f"({x:g}, {self.f(x):.3f})" for x in (self.at, self.at + nudge))
        return f"The line through {first} and {second}, {nudge:g} to the right, has slope {self.slope(nudge):.3f}."

    def draw(self, axes: Any, *, nudge: float) -> None:
        xs = _spread(*self.between)
        axes.plot(xs, [self.f(x) for x in xs], color=INK, label="the curve")
        first, slope = self.f(self.at), self.slope(nudge)
        axes.plot(xs, [first + slope * (x - self.at) for x in xs], "--", color=ACCENT, label=f"slope {slope:.3f}")
        axes.plot([self.at, self.at + nudge], [first, self.f(self.at + nudge)], "o", color=ACCENT)
        _frame(axes, [self.f(x) for x in xs])


class DescentExplorer(Explorer):
    """The positions of a walk downhill on a curve, for a learning rate and a number of steps."""

    size = (6.5, 3.5)

    def __init__(self, f: Callable[[Any], Any], start: float, between: tuple[float, float]):
        self.f, self.begin, self.between = f, start, between
        rates = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1]
        self.settings = {"rate": (rates, 0.1, "learning rate"), "steps": (list(range(21)), 8, "steps")}
        self.stills = tuple({"rate": rate} for rate in (0.1, 0.8, 1.05))

    def walk(self, rate: float, steps: int) -> list[float]:
        """The positions, the first one included."""
        x = engine.tensor(float(self.begin), requires_grad=True)
        positions = [x.item()]
        for _ in range(steps):
            self.f(x).backward()
            with engine.no_grad():
                x -= rate * x.grad
            x.grad = None
            positions.append(x.item())
        return positions

    def words(self, *, rate: float, steps: int) -> str:
        positions = self.walk(rate, steps)
        end = positions[-1]
        walk = "1 step leads" if steps == 1 else f"{steps} steps lead"
        outside = "" if self.between[0] <= end <= self.between[1] else ", outside of the picture"
        return (
            f"With learning rate {rate:g}, {walk} from x = {positions[0]:g} to x = {end:.3f}{outside}; "
            f"the output goes from {self.f(positions[0]):.3f} to {self.f(end):.3f}."
        )

    def draw(self, axes: Any, *, rate: float, steps: int) -> None:
        xs = _spread(*self.between)
        heights = [self.f(x) for x in xs]
        axes.plot(xs, heights, color=INK, label="the curve")
        positions = self.walk(rate, steps)
        axes.plot(
            positions, [self.f(x) for x in positions], "o-", color=ACCENT, linewidth=1, markersize=4, label="the walk"
        )
        axes.plot(positions[:1], [self.f(positions[0])], "s", color=SECOND, label="start")
        axes.axhline(min(heights), color=FAINT, linewidth=0.5)
        axes.set_xlim(*self.between)
        _frame(axes, heights)


def _spread(low: float, high: float, n: int = 121) -> list[float]:
    return [low + (high - low) * i / (n - 1) for i in range(n)]


def _frame(axes: Any, heights: list[float]) -> None:
    """Room for the curve alone: what leaves it, leaves the picture."""
    room = 0.1 * (max(heights) - min(heights)) or 1.0  # a flat curve has some too
    axes.set(xlabel="x", ylabel="output", ylim=(min(heights) - room, max(heights) + room))
    axes.legend(loc="upper center")
