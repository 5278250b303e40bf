"""Fine-tuning: the curves of several networks that learn from a few points, and the curve that they should find."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND, Explorer

LOOKS = ((INK, "--", 2.0), (SECOND, "-.", 2.2), (ACCENT, "-", 2.1))  # of the networks; broken lines above the whole one


class FineTuningExplorer(Explorer):
    """The answers of networks after some steps of training on a few examples; a slider for the steps.

    ``networks``: {name: parameters}, three at most. ``train(network, x, y, steps)`` trains one, ``guess(x, network)``
    is its answer. ``few`` picks from ``xs`` and ``ys`` what they are trained on.
    """

    size = (7.0, 4.0)

    def __init__(
        self,
        networks: Mapping[str, list[Any]],
        train: Callable[..., Any],
        guess: Callable[..., Any],
        xs: Any,
        ys: Any,
        few: slice,
    ):
        self.xs, self.ys, self.few = xs, ys, few
        steps = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500]
        self.settings = {"steps": (steps, 200, "steps")}
        self.stills = ({}, {"steps": 0})
        self.answers: dict[str, dict[int, Any]] = {}  # trained once to the end: the slider only chooses
        for name, network in networks.items():
            trained, done = copy.deepcopy(network), 0
            self.answers[name] = {}
            for n in steps:
                if n > done:
                    train(trained, xs[few], ys[few], n - done)
                done = n
                with engine.no_grad():
                    self.answers[name][n] = guess(xs, trained)

    def losses(self, name: str, steps: int) -> tuple[float, float]:
        """Return the mean squared distance of a network's answers, on the examples it learns from and on all."""
        squares = (self.answers[name][steps] - self.ys) ** 2
        return squares[self.few].mean().item(), squares.mean().item()

    def words(self, *, steps: int) -> str:
        told = []
        for name in self.answers:
            on_few, on_all = self.losses(name, steps)
            told.append(f"{name} {on_few:.3f} and {on_all:.3f}")
        few = len(self.xs[self.few])
        return f"After {steps} steps, loss on the {few} examples and on all {len(self.xs)}: {'; '.join(told)}."

    def draw(self, axes: Any, *, steps: int) -> None:
        xs, ys = self.xs.flatten().tolist(), self.ys.flatten().tolist()
        axes.plot(xs, ys, color=FAINT, linewidth=5, alpha=0.5, label="the true curve")
        for (name, answers), (color, line, above) in zip(self.answers.items(), LOOKS, strict=False):
            shown = answers[steps].flatten().tolist()
            axes.plot(xs, shown, line, color=color, linewidth=2, label=name, zorder=above)
        axes.plot(xs[self.few], ys[self.few], "o", color="black", markersize=8, label="the examples", zorder=4)
        height = max(ys) - min(ys)
        axes.set(xlabel="x", ylabel="y", ylim=(min(ys) - 0.35 * height, max(ys) + 0.6 * height))
        axes.legend(loc="upper center", ncols=3, handlelength=1.2, columnspacing=1)
