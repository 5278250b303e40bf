"""The price and the gain of checkpointing, counted in layers."""

from typing import Any

from course.figures.base.explorer import ACCENT, INK, SECOND, Explorer

LAYERS = 36


class CostExplorer(Explorer):
    """36 equal layers, cut into parts: what is kept at the worst moment, and how often a layer is computed forward."""

    size = (6.5, 2.8)

    def __init__(self) -> None:
        parts = [n for n in range(1, LAYERS + 1) if LAYERS % n == 0]
        self.settings = {"parts": (parts, 6, "parts")}
        self.parts = parts
        self.stills = ({"parts": 1}, {})

    def kept(self, parts: int) -> int:
        """Return how many results are kept at once at the worst moment; one part: the network without checkpoints."""
        return LAYERS if parts == 1 else parts + LAYERS // parts

    def computed(self, parts: int) -> int:
        """Return how many layers are computed forward in all."""
        return LAYERS if parts == 1 else 2 * LAYERS

    def words(self, *, parts: int) -> str:
        each = LAYERS // parts
        if parts == 1:
            return (
                f"{LAYERS} layers without checkpoints: {LAYERS} results are kept, {LAYERS} layers are computed forward."
            )
        return (
            f"{LAYERS} layers in {parts} parts of {each}: {parts} inputs and {each} results inside one part are kept, "
            f"{self.kept(parts)} in all instead of {LAYERS}; {self.computed(parts)} layers are computed forward."
        )

    def draw(self, axes: Any, *, parts: int) -> None:
        axes.plot(self.parts, [self.kept(n) for n in self.parts], "o-", color=INK, label="results kept at once")
        axes.plot([parts], [self.kept(parts)], "o", color=ACCENT, markersize=11, fillstyle="none", markeredgewidth=2)
        axes.annotate(
            str(self.kept(parts)), (parts, self.kept(parts)), (0, 10), textcoords="offset points", ha="center"
        )
        axes.plot(
            self.parts, [self.computed(n) for n in self.parts], "s--", color=SECOND, label="layers computed forward"
        )
        axes.set(
            xscale="log", xticks=self.parts, xticklabels=self.parts, ylim=(0, 79), yticks=[0, 36, 72], xlabel="parts"
        )
        axes.minorticks_off()
        axes.legend(loc="center", bbox_to_anchor=(0.5, 0.7), fontsize=11)
