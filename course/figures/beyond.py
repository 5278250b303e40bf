"""Three pictures: who holds which part of a model when many workers train it together."""

from collections.abc import Callable
from typing import Any

from course.figures.base.explorer import ACCENT, INK, SECOND

WORKERS, LAYERS = 4, 4
PALE, GREY = "#e6ecf2", "#666666"

WORDS = {
    "sharded": "Sharded: each of four workers keeps a quarter of every layer and of its state, in colour; "
    "the other quarters, grey, come and go when that layer is computed. Each has a quarter of the batch.",
    "pipeline": "Pipeline: worker 0 holds layer 0, worker 1 layer 1, and so on. Four pieces of the batch "
    "travel from worker to worker, forward and then backward, so that several workers compute at the same time, "
    "each on another piece. In between some have nothing to do.",
    "tensor": "Tensor parallel: each layer is cut lengthwise, and each of four workers holds one strip of all layers. "
    "All work on the whole batch, and add up their results after each layer, at the red lines.",
}


def picture_of(kind: str) -> None:
    """Display the picture of "sharded", "pipeline" or "tensor"."""
    from matplotlib import pyplot, rc_context

    from course.pictures import show

    with rc_context({"font.size": 13}):
        figure, axes = pyplot.subplots(figsize=(6.0, 2.3), layout="constrained")
        DRAWN[kind](axes)
        axes.set_axis_off()
        show(figure, WORDS[kind])


def box(
    axes: Any, x: float, y: float, wide: float, high: float, color: str, word: str = "", ink: str = "white"
) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), wide, high, facecolor=color, edgecolor="white", linewidth=1))
    if word:
        axes.text(x + wide / 2, y + high / 2, word, ha="center", va="center", color=ink)


def workers(axes: Any, low: float = -0.75) -> None:
    for w in range(WORKERS):
        axes.text(1.5 * w + 0.5, low, f"worker {w}", ha="center", va="center", color=GREY)
    axes.set(xlim=(-0.2, 1.5 * WORKERS - 0.3), ylim=(low - 0.4, LAYERS + 0.1))


def sharded(axes: Any) -> None:
    for w in range(WORKERS):
        for layer in range(LAYERS):
            for quarter in range(WORKERS):
                box(axes, 1.5 * w + 0.275 * quarter, layer, 0.275, 0.9, INK if quarter == w else PALE)
    workers(axes)


def pipeline(axes: Any) -> None:
    for w in range(WORKERS):
        axes.text(-0.3, WORKERS - 1 - w + 0.45, f"worker {w}: layer {w}", ha="right", va="center")
        for piece in range(4):
            box(axes, w + piece, WORKERS - 1 - w, 0.95, 0.9, INK, str(piece))
            box(axes, 7 + (WORKERS - 1 - w) + piece, WORKERS - 1 - w, 0.95, 0.9, SECOND, str(piece))
    axes.text(3.5, -0.5, "forward", ha="center", va="center", color=INK)
    axes.text(10.5, -0.5, "backward", ha="center", va="center", color=SECOND)
    axes.set(xlim=(-5.2, 14.2), ylim=(-1, WORKERS))


def tensor(axes: Any) -> None:
    for w in range(WORKERS):
        for layer in range(LAYERS):
            box(axes, 1.5 * w, layer + 0.15, 0.5, 0.75, INK)
    for layer in range(1, LAYERS + 1):
        axes.plot([0.25, 1.5 * (WORKERS - 1) + 0.25], [layer + 0.03] * 2, color=ACCENT, linewidth=2)
    for layer in range(LAYERS):
        axes.text(-0.2, layer + 0.5, f"layer {layer}", ha="right", va="center")
    for w in range(WORKERS):
        axes.text(1.5 * w + 0.25, -0.4, f"worker {w}", ha="center", va="center", color=GREY)
    axes.set(xlim=(-1.4, 5.6), ylim=(-0.8, LAYERS + 0.2))


DRAWN: dict[str, Callable[[Any], None]] = {"sharded": sharded, "pipeline": pipeline, "tensor": tensor}
