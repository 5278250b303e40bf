"""A network of which a part is frozen: what is kept, and what gets a gradient."""

from typing import Any

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, Explorer
from course.measuring import saved_by

LAYERS, WIDTH, EXAMPLES = 6, 64, 256


class FreezeExplorer(Explorer):
    """A network of six layers; sliders for how many are frozen at the front, and how many at the back."""

    size = (7.0, 3.6)
    settings = {
        "front": (list(range(LAYERS + 1)), 3, "frozen at the front"),
        "back": (list(range(LAYERS + 1)), 0, "frozen at the back"),
    }
    stills = ({}, {"front": 0, "back": 3})

    def frozen(self, front: int, back: int) -> list[bool]:
        """For each layer, whether it is frozen."""
        return [i < front or i >= LAYERS - back for i in range(LAYERS)]

    def measure(self, front: int, back: int) -> tuple[list[int], list[int]]:
        """For each layer, the bytes of its result that the notes keep, and the bytes of its weights' gradient."""
        frozen = self.frozen(front, back)
        weights = [engine.full((WIDTH, WIDTH), 0.01, requires_grad=not no) for no in frozen]
        results = [engine.ones(EXAMPLES, WIDTH)]
        for w in weights:
            results.append(engine.tanh(results[-1] @ w))
        held = {tensor.data_ptr() for tensor in saved_by(results[-1])}
        if not all(frozen):
            results[-1].sum().backward()
        kept = [r.nbytes if r.data_ptr() in held else 0 for r in results[1:]]
        return kept, [0 if w.grad is None else w.grad.nbytes for w in weights]

    def words(self, *, front: int, back: int) -> str:
        kept, grads = self.measure(front, back)
        which = [str(i) for i, no in enumerate(self.frozen(front, back), 1) if no]
        results, weights = (_layers(sum(map(bool, values))) for values in (kept, grads))
        return (
            f"Frozen: {_listed(which)}. Of the results, those of {results} are kept, {sum(kept) // 1024} KiB; of "
            f"the weights, those of {weights} get gradients, {sum(grads) // 1024} KiB."
        )

    def draw(self, axes: Any, *, front: int, back: int) -> None:
        kept, grads = self.measure(front, back)
        places = range(1, LAYERS + 1)
        frozen = [place for place, no in zip(places, self.frozen(front, back), strict=True) if no]
        for place in frozen:
            label = "frozen" if place == frozen[0] else "_frozen"
            axes.axvspan(place - 0.5, place + 0.5, color=FAINT, alpha=0.25, linewidth=0, label=label)
        for shift, values, color, hatch, label in (
            (-0.2, kept, INK, "", "kept of its result"),
            (0.2, grads, ACCENT, "//", "gradient of its weights"),
        ):
            heights = [value / 1024 for value in values]
            axes.bar(
                [p + shift for p in places], heights, 0.36, color=color, hatch=hatch, edgecolor="white", label=label
            )
        axes.set(xlabel="layer", ylabel="KiB", xlim=(0.4, LAYERS + 0.6), ylim=(0, 90))
        axes.legend(loc="upper center", ncols=3, handlelength=1.2, columnspacing=1)


def _layers(n: int) -> str:
    return "1 layer" if n == 1 else f"{n} layers"


def _listed(places: list[str]) -> str:
    if len(places) == LAYERS:
        return "all layers"
    if len(places) < 2:
        return f"layer {places[0]}" if places else "no layer"
    return f"layers {', '.join(places[:-1])} and {places[-1]}"
