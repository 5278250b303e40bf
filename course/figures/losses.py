"""From scores to chances to a loss: what cross entropy does with three scores."""

from typing import Any

import engine
from course.figures.explorer import ACCENT, FAINT, INK, Explorer


class CrossEntropyExplorer(Explorer):
    """Three scores, the chances that softmax makes of them, and the loss if the first one is the right answer."""

    size = (6.5, 2.8)
    names = ("cat", "dog", "bird")

    def __init__(self) -> None:
        scores: list[Any] = [-10.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 10.0]
        first = {"cat": 2.0, "dog": 1.0, "bird": -1.0}
        self.settings = {name: (scores, first[name], f"score of {name}") for name in self.names}
        self.stills = ({}, {"cat": -4.0})

    def numbers(self, **scores: float) -> tuple[list[float], float]:
        """The three chances, and the loss if the right answer is the cat."""
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
        axes.set(xlim=(0, 1.25), xlabel=f"chance; the loss, if it is a cat: {loss:.3g}")
        axes.set_xticks([0, 0.5, 1])
        axes.axvline(1, color=FAINT, linewidth=0.5)
