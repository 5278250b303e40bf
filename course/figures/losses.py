"""From scores to chances to a loss: what cross entropy does with three scores."""

import math
from typing import Any

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, Explorer

HIGHEST = 6  # loss that the curve has room for


class CrossEntropyExplorer(Explorer):
    """Three scores, the chances that softmax makes of them, and where the right one lies on the curve of the loss."""

    size = (6.5, 2.8)
    names = ("cat", "dog", "bird")

    def __init__(self) -> None:
        scores: list[Any] = [-10.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 10.0]
        first = {"cat": 2.0, "dog": 1.0, "bird": -1.0}
        self.settings = {name: (scores, first[name], f"score of {name}") for name in self.names}
        self.stills = ({}, {"cat": -4.0})

    def numbers(self, **scores: float) -> tuple[list[float], float]:
        """Return the three chances, and the loss if the right answer is the cat."""
        row = engine.tensor([[scores[name] for name in self.names]])
        loss = engine.nn.functional.cross_entropy(row, engine.tensor([0]))
        return row.softmax(1)[0].tolist(), loss.item()

    def words(self, **scores: float) -> str:
        chances, loss = self.numbers(**scores)
        each = ", ".join(
            f"{name} {scores[name]:g} gives {chance:.2g}" for name, chance in zip(self.names, chances, strict=True)
        )
        return f"From score to chance: {each}. If it is a cat, the loss is {loss:.3g}."

    def draw(self, axes: Any, **scores: float) -> None:
        chances, loss = self.numbers(**scores)
        colors = [ACCENT, INK, INK]
        axes.barh(self.names[::-1], chances[::-1], color=colors[::-1], height=0.6)
        for place, (name, chance) in enumerate(zip(self.names[::-1], chances[::-1], strict=True)):
            axes.text(chance + 0.01, place, f"{scores[name]:g} gives {chance:.2g}", va="center", fontsize=12)
        axes.set(xlim=(0, 2.6), xlabel=f"chance; the loss, if it is a cat: {loss:.3g}")
        axes.set_xticks([0, 0.5, 1])
        axes.axvline(1, color=FAINT, linewidth=0.5)
        curve = axes.inset_axes((0.68, 0.24, 0.3, 0.62))
        places = [i / 200 for i in range(1, 201)]
        curve.plot(places, [-math.log(p) for p in places], color=FAINT)
        curve.plot([chances[0]], [min(loss, HIGHEST)], "o", color=ACCENT)
        curve.set(xlim=(0, 1.05), ylim=(0, 1.1 * HIGHEST), xticks=[0, 1], yticks=[0, HIGHEST])
        curve.set_xlabel("chance of cat", labelpad=-8, fontsize=11)
        curve.set_title("loss" if loss <= HIGHEST else f"loss ({loss:.3g}, off the scale)", fontsize=11)
