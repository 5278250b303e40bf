"""The size of numbers on their way through a deep network, by the numbers that its layers begin with."""

from typing import Any

import engine
from course.figures.base.explorer import ACCENT, FAINT, Explorer
from engine import nn

BENDS = {"relu": engine.relu, "tanh": engine.tanh, "none": lambda x: x}
SCALES = {
    "0.01": lambda weight: nn.init.normal_(weight, std=0.01),
    "the layer's own": lambda weight: None,
    "Kaiming": nn.init.kaiming_normal_,
    "1": nn.init.normal_,
}

FILLED = {
    "0.01": "random numbers of size 0.01",
    "the layer's own": "the layer's own choice",
    "Kaiming": "Kaiming's numbers",
    "1": "random numbers of size 1",
}


class BeginningsExplorer(Explorer):
    """The spread of 64 examples after each layer of 100 numbers, by what the tables are filled with."""

    size = (6.5, 2.8)

    def __init__(self) -> None:
        self.settings = {
            "scale": (list(SCALES), "the layer's own", "the tables begin with"),
            "bend": (list(BENDS), "relu", "bend"),
            "depth": ([2, 5, 10, 20, 40], 10, "layers"),
        }
        self.stills = ({}, {"scale": "Kaiming"}, {"scale": "1"}, {"scale": "1", "bend": "tanh"})

    def spreads(self, scale: str, bend: str, depth: int) -> list[float]:
        """Return how far apart the examples are after each layer: the standard deviation over them, on average."""
        chance = engine.get_rng_state()
        engine.manual_seed(0)
        x, found = engine.randn(64, 100), []
        with engine.no_grad():
            for _ in range(depth):
                layer = nn.Linear(100, 100)
                SCALES[scale](layer.weight)
                x = BENDS[bend](layer(x))
                found.append(x.std(dim=0).mean().item())
        engine.set_rng_state(chance)
        return found

    def words(self, *, scale: str, bend: str, depth: int) -> str:
        found = self.spreads(scale, bend, depth)
        return (
            f"Tables that begin with {FILLED[scale]}, {depth} layers, bend: {bend}. "
            f"The spread of the examples is {found[0]:.1g} after the first layer and {found[-1]:.1g} after the last."
        )

    def draw(self, axes: Any, *, scale: str, bend: str, depth: int) -> None:
        found = self.spreads(scale, bend, depth)
        axes.axhline(1, color=FAINT, linewidth=0.7)
        axes.plot(range(1, depth + 1), [max(spread, 1e-30) for spread in found], ".-", color=ACCENT)
        axes.set(xlabel="layer", yscale="log", ylim=(1e-12, 1e12), xlim=(0, depth + 1))
        axes.text(0.02, 0.9, "spread of the examples", transform=axes.transAxes, fontsize=12)
