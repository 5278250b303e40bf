"""SlidingKernelExplorer: a kernel on a picture; which inputs an output sees, which outputs a weight hears from."""

from itertools import product
from typing import Any

import engine
from course.figures.base.chooser import Chooser, Control, Shown
from course.figures.base.grid import Cell, Panel, svg

Place = tuple[int, int]

PICTURE = engine.tensor(
    [[0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0], [0, 0, 0, 1, 1, 0], [0, 0, 1, 1, 0, 0], [0, 1, 1, 0, 0, 0], [0] * 6],
    dtype=engine.float32,
)
KERNELS = (
    engine.tensor([[2.0]]),
    engine.tensor([[1.0, -1.0], [1.0, -1.0]]),
    engine.tensor([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]]),
)
OUTPUT, WEIGHT, INPUT = range(3)
STRIDES, PADDINGS, DILATIONS = (1, 2, 3), (0, 1, 2), (1, 2)


class SlidingKernelExplorer(Chooser):
    """A small picture, a kernel and what comes out: an output's inputs, a weight's outputs, an input's outputs."""

    controls = (
        Control("choice", "look", "look at", ("an output", "a weight", "an input")),
        Control("choice", "kernel", "kernel", tuple(f"{len(kernel)} by {len(kernel)}" for kernel in KERNELS)),
        Control("choice", "stride", "stride", tuple(map(str, STRIDES))),
        Control("choice", "padding", "padding", tuple(map(str, PADDINGS))),
        Control("choice", "dilation", "dilation", tuple(map(str, DILATIONS))),
        Control("range", "place", "which one"),
    )
    begin = {"look": OUTPUT, "kernel": 2, "stride": 0, "padding": 0, "dilation": 0, "place": 1}
    stills = (
        ("An output: which inputs it sees", {}),
        ("A weight: which outputs it hears from", {"look": WEIGHT, "place": 2}),
        ("Stride 2 and padding 1: who sees an input", {"look": INPUT, "stride": 1, "padding": 1, "place": 21}),
    )

    def run(self, kernel: int, stride: int, padding: int, dilation: int) -> tuple[Any, Any, Any]:
        """Return the result, and the gradients of the picture and of the kernel for a slope of 1 at each output."""
        x, w = (t.clone().requires_grad_() for t in (PICTURE, KERNELS[kernel]))
        y = engine.nn.functional.conv2d(
            x[None, None],
            w[None, None],
            stride=STRIDES[stride],
            padding=PADDINGS[padding],
            dilation=DILATIONS[dilation],
        )[0, 0]
        y.sum().backward()
        return y.detach(), x.grad, w.grad

    def meetings(self, result: Any, *, stride: int, padding: int, dilation: int, kernel: int) -> list[tuple]:
        """(output, weight, input) wherever they meet; the input may lie in the padding."""
        step, pad, apart = STRIDES[stride], PADDINGS[padding], DILATIONS[dilation]
        outputs, weights = (list(product(*map(range, t.shape))) for t in (result, KERNELS[kernel]))
        return [
            (y, w, (y[0] * step + w[0] * apart - pad, y[1] * step + w[1] * apart - pad))
            for y in outputs
            for w in weights
        ]

    def shown(self, *, look: int, place: int, **how: int) -> Shown:
        result, of_inputs, of_weights = self.run(**how)
        shape = (result, KERNELS[how["kernel"]], PICTURE)[look].shape
        place = min(place, shape.numel() - 1)
        at = divmod(place, shape[1])
        met = [m for m in self.meetings(result, **how) if m[look] == at]
        gradient = (None, of_weights, of_inputs)[look]
        words = (_of_output, _of_weight, _of_input)[look](at, met, result, how, gradient)
        names = [f"{'ywx'[look]}[{r}, {c}]" for r, c in product(*map(range, shape))]
        shapes = result.shape.numel(), KERNELS[how["kernel"]].numel(), PICTURE.numel()
        clicks = tuple({"look": which, "place": n} for which, many in enumerate(shapes) for n in range(many))
        values = {"look": look, **how, "place": place}
        return Shown([self._drawn(result, met, how)], words, values, {"place": names}, clicks)

    def _drawn(self, result: Any, met: list[tuple], how: dict[str, int]) -> str:
        kernel, pad = KERNELS[how["kernel"]], PADDINGS[how["padding"]]
        outputs, weights, inputs = (set(places) for places in (zip(*met, strict=True) if met else ((), (), ())))
        rows, columns = PICTURE.shape
        first = result.numel() + kernel.numel()

        def of_picture(box: tuple[int, ...]) -> Cell:
            at = box[0] - pad, box[1] - pad
            strong = "strong" if at in inputs else ""
            if not _inside(at):
                return Cell("0", f"{strong} pale".strip())
            return Cell(f"{PICTURE[at].item():g}", strong or "plain", first + at[0] * columns + at[1])

        def of_kernel(at: tuple[int, ...]) -> Cell:
            number = result.numel() + at[0] * len(kernel) + at[1]
            return Cell(f"{kernel[at].item():g}", "strong" if at in weights else "plain", number)

        def of_result(at: tuple[int, ...]) -> Cell:
            number = at[0] * result.shape[1] + at[1]
            return Cell(f"{result[at].item():g}", "strong" if at in outputs else "plain", number)

        below = "dashed: padding" if pad else ""
        return svg(
            [
                Panel("picture x", below, (rows + 2 * pad, columns + 2 * pad), of_picture, first=-pad),
                Panel("kernel w", "", tuple(kernel.shape), of_kernel),
                Panel(f"result y, {result.shape[0]} by {result.shape[1]}", "", tuple(result.shape), of_result),
            ],
            most=780,
        )


def _inside(at: Place) -> bool:
    return all(0 <= here < size for here, size in zip(at, PICTURE.shape, strict=True))


def _named(letter: str, at: Place) -> str:
    return f"{letter}[{at[0]}, {at[1]}]"


def _sum(terms: list[str]) -> str:
    return " + ".join(f"({term})" if term.startswith("-") else term for term in terms) or "nothing"


def _of_output(at: Place, met: list[tuple], result: Any, how: dict[str, int], _: Any) -> str:
    kernel = KERNELS[how["kernel"]]
    real = [(w, x) for _, w, x in met if _inside(x)]
    said = [f"{_named('y', at)} sees {_many(len(real), 'input')}, each through a weight of its own."]
    if len(real) < len(met):
        said.append(f"{len(met) - len(real)} of its {len(met)} places lie in the padding, which is 0.")
    terms = [f"{kernel[w].item():g} × {PICTURE[x].item():g}" for w, x in real if kernel[w].item() * PICTURE[x].item()]
    said.append(
        f"The products that are not 0: {_sum(terms)} = {result[at].item():g}." if terms else "All products are 0."
    )
    return " ".join(said)


def _of_weight(at: Place, met: list[tuple], result: Any, how: dict[str, int], gradient: Any) -> str:
    real = sum(_inside(x) for *_, x in met)
    all_of = f"all {len(met)} outputs" if len(met) > 1 else "the one output"
    said = [f"{_named('w', at)} is used for {all_of}, each time with a different input, and hears from all of them."]
    if real < len(met):
        said.append(f"{len(met) - real} times it meets padding, which adds nothing.")
    said.append(f"If each output has a slope of 1, its gradient is the sum of those inputs, {gradient[at].item():g}.")
    return " ".join(said)


def _of_input(at: Place, met: list[tuple], result: Any, how: dict[str, int], gradient: Any) -> str:
    if not met:
        return f"{_named('x', at)} is seen by no output: the kernel steps over it, and its gradient is 0."
    return (
        f"{_named('x', at)} is seen by {len(met)} of {_many(result.numel(), 'output')}, each time through a different "
        f"weight. If each output has a slope of 1, its gradient is the sum of those weights, {gradient[at].item():g}."
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"
