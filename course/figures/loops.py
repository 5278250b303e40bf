"""Two training loops side by side: one that clears the gradient in each round, and one that forgets to."""

from collections.abc import Callable
from typing import Any

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, Explorer


class LoopsExplorer(Explorer):
    """x after each step of gradient descent, with ``x.grad = None`` in the loop and without.

    An arrow shows what the loop that forgets still has in ``.grad``: how far that alone will move x.
    """

    size = (6.5, 3.5)
    last = 60

    def __init__(self, f: Callable[[Any], Any], start: float, lowest: float):
        self.f, self.begin, self.lowest = f, start, lowest
        rates = [0.02, 0.05, 0.1, 0.2, 0.3]
        self.settings = {"step": (list(range(self.last + 1)), 9, "step"), "rate": (rates, 0.1, "learning rate")}
        self.walks: dict[tuple[float, bool], tuple[list[float], list[float]]] = {}
        self.stills = ({}, {"step": self.last})

    def walk(self, rate: float, steps: int, clear: bool) -> tuple[list[float], list[float]]:
        """Return the positions, the first one included, and what ``.grad`` held at each step."""
        if (rate, clear) not in self.walks:  # walked once to the end: the slider only shows more or less of it
            self.walks[rate, clear] = self._walk(rate, clear)
        positions, grads = self.walks[rate, clear]
        return positions[: steps + 1], grads[:steps]

    def _walk(self, rate: float, clear: bool) -> tuple[list[float], list[float]]:
        x = engine.tensor(float(self.begin), requires_grad=True)
        positions, grads = [x.item()], []
        for _ in range(self.last):
            self.f(x).backward()
            grads.append(x.grad.item())
            with engine.no_grad():
                x -= rate * x.grad
            if clear:
                x.grad = None
            positions.append(x.item())
        return positions, grads

    def words(self, *, step: int, rate: float) -> str:
        said = []
        for name, clear in (("clears", True), ("forgets to clear", False)):
            positions, grads = self.walk(rate, step, clear)
            held = f", after a step with {grads[-1]:.2f} in .grad" if grads else ""
            said.append(f"the loop that {name} is at x = {positions[-1]:.2f}{held}")
            if grads and not clear:
                said[-1] += f", which is still there and will push it by {-rate * grads[-1]:+.2f}"
        return f"Learning rate {rate:g}, step {step}: {said[0]}; {said[1]}. The lowest point is at {self.lowest:g}."

    def draw(self, axes: Any, *, step: int, rate: float) -> None:
        axes.axhline(self.lowest, color=FAINT, linewidth=1, linestyle=":", label="the lowest point")
        for clear, label, color, line in ((True, "clears", INK, "-"), (False, "forgets", ACCENT, "--")):
            positions, grads = self.walk(rate, step, clear)
            axes.plot(positions, line, color=color, label=label)
            axes.plot([step], positions[-1:], "o", color=color)
            if grads and not clear:
                at, push = positions[-1], -rate * grads[-1]
                axes.annotate(
                    "", (step, at + push), (step, at), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2}
                )
                side, align = (6, "left") if step < 0.8 * self.last else (-6, "right")
                said = f"pushed by .grad: {push:+.2f}"
                ground = {"fc": "white", "ec": "none", "pad": 1, "alpha": 0.8}
                where = {"xytext": (side, 0), "textcoords": "offset points", "ha": align, "va": "center"}
                axes.annotate(said, (step, at + push / 2), bbox=ground, **where)
        reach = 1.25 * abs(self.begin - self.lowest) or 1.0
        room = self.lowest - reach, self.lowest + 1.4 * reach  # the legend lies above the swing
        axes.set(xlabel="step", ylabel="x", xlim=(0, self.last), ylim=room)
        axes.legend(loc="upper center", ncols=3, handlelength=1.2, columnspacing=1)
