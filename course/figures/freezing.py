"""What is kept, and what gets a gradient, when a part of a network is frozen."""

from typing import Any

import engine
from course.figures.explorer import ACCENT, FAINT, INK, Explorer

LAYERS, WIDTH, EXAMPLES = 6, 64, 256
FRONT, BACK = "front", "back"


class FreezeExplorer(Explorer):
    """A network of six layers; sliders for how many are frozen, and at which end."""

    size = (6.5, 3.2)
    settings = {
        "frozen": (list(range(LAYERS + 1)), 3, "frozen layers"),
        "end": ([FRONT, BACK], FRONT, "at the"),
    }
    stills = ({}, {"end": BACK})

    def measure(self, frozen: int, end: str) -> tuple[list[int], list[int]]:
        """For each layer, the bytes of its result that the graph keeps, and the bytes of its weights' gradient."""
        first = 0 if end == FRONT else LAYERS - frozen
        learns = [not first <= i < first + frozen for i in range(LAYERS)]
        weights = [engine.full((WIDTH, WIDTH), 0.01, requires_grad=yes) for yes in learns]
        results = [engine.ones(EXAMPLES, WIDTH)]
        for w in weights:
            results.append(engine.tanh(results[-1] @ w))
        held = _kept(results[-1].grad_fn)
        if any(learns):
            results[-1].sum().backward()
        kept = [r.nbytes if r.data_ptr() in held else 0 for r in results[1:]]
        return kept, [0 if w.grad is None else w.grad.nbytes for w in weights]

    def words(self, *, frozen: int, end: str) -> str:
        kept, grads = self.measure(frozen, end)
        which = f"{_layers(frozen)} of {LAYERS}" if frozen else f"none of {LAYERS} layers"
        results, weights = (_layers(sum(map(bool, values))) for values in (kept, grads))
        return (
            f"Frozen at the {end}: {which}. Of the results, those of {results} are kept, {sum(kept) // 1024} KiB; of "
            f"the weights, those of {weights} get gradients, {sum(grads) // 1024} KiB."
        )

    def draw(self, axes: Any, *, frozen: int, end: str) -> None:
        kept, grads = self.measure(frozen, end)
        places = range(1, LAYERS + 1)
        first = 1 if end == FRONT else LAYERS + 1 - frozen
        if frozen:
            axes.axvspan(first - 0.5, first + frozen - 0.5, color=FAINT, alpha=0.25, label="frozen")
        for shift, values, color, hatch, label in (
            (-0.2, kept, INK, "", "kept of its result"),
            (0.2, grads, ACCENT, "//", "gradient of its weights"),
        ):
            heights = [value / 1024 for value in values]
            axes.bar(
                [p + shift for p in places], heights, 0.36, color=color, hatch=hatch, edgecolor="white", label=label
            )
        axes.set(xlabel="layer", ylabel="KiB", xlim=(0.4, LAYERS + 0.6), ylim=(0, 90))
        axes.legend(loc="upper center", ncols=3)


def _layers(n: int) -> str:
    return "1 layer" if n == 1 else f"{n} layers"


def _kept(node: Any) -> set[int]:
    """Where in memory the tensors lie that the nodes behind a result keep."""
    seen, waiting, found = set(), [node], set()
    while waiting:
        here = waiting.pop()
        if here is None or here in seen:
            continue
        seen.add(here)
        saved = [getattr(here, name) for name in dir(here) if name.startswith("_saved_")]
        found |= {s.data_ptr() for s in saved if isinstance(s, engine.Tensor)}
        waiting += [parent for parent, _ in here.next_functions]
    return found
