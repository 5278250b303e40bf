"""A walk down a long valley, by one of the optimisers."""

from typing import Any

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND, Explorer

OPTIMIZERS = {
    "SGD": lambda p, rate: engine.optim.SGD([p], lr=rate),
    "SGD with momentum": lambda p, rate: engine.optim.SGD([p], lr=rate, momentum=0.9),
    "RMSprop": lambda p, rate: engine.optim.RMSprop([p], lr=rate),
    "Adam": lambda p, rate: engine.optim.Adam([p], lr=rate),
}


class SurfaceExplorer(Explorer):
    """The way of an optimiser down f(x, y) = x**2 / 2 + 10 * y**2, a valley that is steep on one axis only."""

    size = (6.5, 2.1)
    begin = (-8.0, 1.5)

    def __init__(self) -> None:
        rates = [0.001, 0.01, 0.03, 0.05, 0.09, 0.095, 0.1, 0.11, 0.3, 1.0]
        self.settings = {
            "optimizer": (list(OPTIMIZERS), "SGD", "optimiser"),
            "rate": (rates, 0.09, "learning rate"),
            "steps": ([0, 1, 2, 3, 5, 10, 20, 40, 80], 20, "steps"),
        }
        self.stills = (
            {},
            {"rate": 0.11},
            {"optimizer": "SGD with momentum", "rate": 0.03},
            {"optimizer": "Adam", "rate": 0.3},
        )

    def walk(self, optimizer: str, rate: float, steps: int) -> list[list[float]]:
        """Return the positions, the first one included."""
        p: Any = engine.tensor(self.begin, requires_grad=True)
        step = OPTIMIZERS[optimizer](p, rate)
        positions = [p.tolist()]
        for _ in range(steps):
            step.zero_grad()
            (p[0] ** 2 / 2 + 10 * p[1] ** 2).backward()
            step.step()
            positions.append(p.tolist())
        return positions

    def words(self, *, optimizer: str, rate: float, steps: int) -> str:
        x, y = self.walk(optimizer, rate, steps)[-1]
        height = x * x / 2 + 10 * y * y
        walk = "1 step leads" if steps == 1 else f"{steps} steps lead"
        return (
            f"{optimizer} with learning rate {rate:g}: {walk} from ({self.begin[0]:g}, {self.begin[1]:g}) to "
            f"({x:.3g}, {y:.3g}), and the height goes from 54.5 to {height:.3g}."
        )

    def draw(self, axes: Any, *, optimizer: str, rate: float, steps: int) -> None:
        from math import cos, pi, sin, sqrt

        for height in (1, 5, 15, 30, 54.5):
            turns = [2 * pi * i / 60 for i in range(61)]
            axes.plot(
                [sqrt(2 * height) * cos(t) for t in turns],
                [sqrt(height / 10) * sin(t) for t in turns],
                color=FAINT,
                linewidth=0.7,
            )
        positions = self.walk(optimizer, rate, steps)
        axes.plot([p[0] for p in positions], [p[1] for p in positions], ".-", color=ACCENT, linewidth=1)
        axes.plot([self.begin[0]], [self.begin[1]], "s", color=SECOND)
        axes.plot([0], [0], "+", color=INK, markersize=12)
        axes.set(xlim=(-11, 11), ylim=(-2.6, 2.6), xlabel="x", ylabel="y", aspect="equal")
