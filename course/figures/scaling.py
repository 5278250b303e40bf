"""A GradScaler finding its scale: it grows until a gradient overflows, backs off, and grows again."""

import math
from functools import cache
from typing import Any, NamedTuple

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND, Explorer

STEPS, OUTLIER, SPREAD = 60, 35, 2.0**-30
SHRINKING, WITH_OUTLIER = "shrinking", "with an outlier"
LARGEST, SMALLEST = 65504.0, 2.0**-24  # that float16 holds


class Step(NamedTuple):
    """One training step: its scale, what became of the gradients, and between which scales all of them survive."""

    scale: float
    skipped: bool
    lost: int
    floor: float
    ceiling: float


def largest(step: int, gradients: str) -> float:
    """Return the largest of a step's three gradients: it shrinks as training goes on; the others are far smaller."""
    return 2.0 ** (-step / 10 + (6 if gradients == WITH_OUTLIER and step == OUTLIER else 0))


@cache
def timeline(first: float, interval: int, gradients: str) -> tuple[Step, ...]:
    """Return what a GradScaler does in sixty steps; the gradients pass through float16 on their way."""
    weights = engine.ones(3, requires_grad=True)
    optimizer = engine.optim.SGD([weights], lr=0.0)
    scaler = engine.amp.GradScaler("cpu", init_scale=first, growth_interval=interval)
    found = []
    for number in range(STEPS):
        top = largest(number, gradients)
        slopes = engine.tensor([top, top * SPREAD**0.5, top * SPREAD])
        scale = scaler.get_scale()
        optimizer.zero_grad()
        scaler.scale((weights.half().float() * slopes).sum()).backward()
        lost = int((weights.grad == 0).sum())
        scaler.step(optimizer)
        scaler.update()
        found.append(Step(scale, scaler.get_scale() < scale, lost, SMALLEST / (top * SPREAD), LARGEST / top))
    return tuple(found)


class ScalerTimeline(Explorer):
    """The scale of sixty steps; sliders for where it begins, how soon it grows, and what the gradients are like."""

    size = (7.2, 3.4)
    settings = {
        "first": ([4, 8, 12, 16, 20, 24], 16, "first scale: 2 to the"),
        "interval": ([2, 5, 10, 20], 5, "growth interval"),
        "gradients": ([SHRINKING, WITH_OUTLIER], SHRINKING, "gradients"),
    }
    stills = ({}, {"first": 4}, {"first": 24, "interval": 2, "gradients": WITH_OUTLIER})

    def words(self, *, first: int, interval: int, gradients: str) -> str:
        steps = timeline(2.0**first, interval, gradients)
        skipped = [number for number, step in enumerate(steps) if step.skipped]
        which = f" ({', '.join(map(str, skipped))})" if skipped else ""
        lost = sum(step.lost > 0 for step in steps)
        small = (
            f"{lost} step{'s' * (lost > 1)} lose{'s' * (lost == 1)} small gradients" if lost else "no gradient is lost"
        )
        return (
            f"First scale 2^{first}, growth interval {interval}, gradients {gradients}: {len(skipped)} "
            f"of {STEPS} steps are skipped{which}; {small}. The last scale is 2^{math.log2(steps[-1].scale):.0f}."
        )

    def draw(self, axes: Any, *, first: int, interval: int, gradients: str) -> None:
        steps = timeline(2.0**first, interval, gradients)
        xs = range(STEPS)
        floor, ceiling, scale = ([math.log2(getattr(s, n)) for s in steps] for n in ("floor", "ceiling", "scale"))
        axes.fill_between(xs, floor, ceiling, fc=FAINT, alpha=0.25, linewidth=0, label="all gradients survive")
        axes.plot(xs, scale, drawstyle="steps-post", color=INK, label="scale")
        for marker, color, label, at in (
            ("x", ACCENT, "overflow: skipped", [n for n, s in enumerate(steps) if s.skipped]),
            ("o", SECOND, "underflow: some are lost", [n for n, s in enumerate(steps) if s.lost]),
        ):
            axes.plot(at, [scale[n] for n in at], marker, color=color, markersize=5, label=label)
        axes.set(xlabel="step", ylabel="scale, power of 2", xlim=(-1, STEPS), ylim=(0, 28))
        axes.legend(loc="upper center", ncols=4, fontsize=8, handlelength=1.2, columnspacing=1)
