"""The bytes that fill a device while a network is trained: two steps, moment by moment, kind by kind."""

import gc
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND, Explorer
from engine import nn, optim, sim
from engine.utils.checkpoint import checkpoint

LAYERS, GROUP, WIDTH = 12, 3, 128
ALL, INPUTS = "everything", "every third input"
KINDS = ("parameters", "optimiser state", "gradients", "activations")
COLORS, HATCHES = (INK, SECOND, ACCENT, "#ccbb44"), ("", "//", "\\\\", "..")
MIB, ROUND = 1 << 20, 512  # the device hands out memory in multiples of so many bytes


class Moment(NamedTuple):
    """The bytes allocated at one moment, by kind, and the most since the moment before."""

    name: str
    taken: tuple[int, ...]
    peak: int


@cache
def timeline(batch: int, optimizer: str, keep: str) -> tuple[Moment, ...]:
    """Return the moments of the first two training steps of a network of twelve layers, on the simulated device.

    ``activations`` is all that is neither parameter, gradient nor optimiser state: what the graph keeps, the batch
    itself, and what a backward pass passes on. ``keep`` tells whether the graph keeps all of it, or checkpoints groups
    of layers.
    """
    moments: list[Moment] = []
    hooks: list[Any] = []
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)]
    groups = [nn.Sequential(*layers[at : at + GROUP]) for at in range(0, LAYERS, GROUP)]

    def note(name: str) -> None:
        parameters = [p for layer in layers for p in layer.parameters()]
        state = [t for p in parameters for t in work.state.get(p, {}).values() if isinstance(t, engine.Tensor)]
        known = [taken(parameters), taken(state), taken(p.grad for p in parameters if p.grad is not None)]
        rest = sim.memory_allocated() - before - sum(known)
        moments.append(Moment(name, (*known, rest), sim.max_memory_allocated() - before))
        sim.reset_peak_memory_stats()

    spare = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).to("sim")
    spare(engine.ones(batch, WIDTH, device="sim")).sum().backward()
    getattr(optim, optimizer)(spare.parameters(), lr=0.01).step()  # now all that the engine keeps for later is there
    del spare
    gc.disable()  # garbage that went away between two moments would be counted as theirs
    try:
        before = sim.memory_allocated()
        for layer in layers:
            layer.to("sim")
        work: Any = getattr(optim, optimizer)([p for layer in layers for p in layer.parameters()], lr=0.01)
        for number, layer in enumerate(layers, 1):
            hook = layer[0].weight.register_post_accumulate_grad_hook
            hooks.append(hook(lambda _, n=number: note(f"backward, layer {n}")))
        x = engine.ones(batch, WIDTH, device="sim")
        sim.reset_peak_memory_stats()
        note("start")
        for _ in range(2):
            result = x
            for number, part in enumerate(layers if keep == ALL else groups, 1):
                result = part(result) if keep == ALL else checkpoint(part, result, use_reentrant=False)
                note(f"forward, layer {number if keep == ALL else GROUP * number}")
            loss = result.sum()
            del result
            loss.backward()
            work.step()
            note("step")
            work.zero_grad()
            note("zero_grad")
    finally:
        for each in hooks:
            each.remove()  # they and the layers lead to each other: all would stay until the next collection
        gc.enable()
    return tuple(moments)


def taken(tensors: Iterable[engine.Tensor]) -> int:
    """Return the bytes on the device that tensors take."""
    return sum(-(-t.nbytes // ROUND) * ROUND for t in tensors if t.device.type == "sim")


class MemoryTimeline(Explorer):
    """The memory of two training steps; sliders for the batch, the optimizer, and what the forward pass keeps."""

    size = (7.2, 4.0)
    settings = {
        "batch": ([64, 128, 256, 512, 1024], 256, "batch"),
        "optimizer": (["SGD", "Adam"], "Adam", "optimiser"),
        "keep": ([ALL, INPUTS], ALL, "kept by the forward pass"),
    }
    stills = ({}, {"keep": INPUTS}, {"optimizer": "SGD", "batch": 1024})
    titles = (
        "Adam, a batch of 256, everything kept",
        "Adam, a batch of 256, checkpoints",
        "SGD, a batch of 1024, everything kept",
    )

    def words(self, *, batch: int, optimizer: str, keep: str) -> str:
        moments = timeline(batch, optimizer, keep)
        half = 1 + (len(moments) - 1) // 2
        peaks = [max(m.peak for m in part) for part in (moments[1:half], moments[half:])]
        fullest = max(moments, key=lambda m: sum(m.taken))
        each = ", ".join(f"{kind} {_mib(n)}" for kind, n in zip(KINDS, fullest.taken, strict=True))
        return (
            f"A batch of {batch}, {optimizer}, kept: {keep}. Peak of the first step {_mib(peaks[0])} MiB, of the "
            f"second {_mib(peaks[1])}. Fullest after '{fullest.name}', in MiB: {each}."
        )

    def draw(self, axes: Any, *, batch: int, optimizer: str, keep: str) -> None:
        moments = timeline(batch, optimizer, keep)
        edges = [at + side for at in range(len(moments)) for side in (-0.5, 0.5)]
        floor = [0.0] * len(edges)
        for at, (kind, color, hatch) in enumerate(zip(KINDS, COLORS, HATCHES, strict=True)):
            top = [low + m.taken[at] / MIB for low, m in zip(floor, _twice(moments), strict=True)]
            axes.fill_between(edges, floor, top, fc=color, ec="white", hatch=hatch, linewidth=0, label=kind)
            floor = top
        axes.plot(edges, [m.peak / MIB for m in _twice(moments)], ":", color="black", label="peak in between")
        half = (len(moments) - 1) // 2
        axes.axvline(half + 0.5, ymax=0.75, color=FAINT, linewidth=0.8)
        parts = [m.name.partition(",")[0] for m in moments]
        firsts = [
            at for at, part in enumerate(parts) if part in ("forward", "backward", "step") and part != parts[at - 1]
        ]
        for label in axes.set_xticks(firsts, [parts[at] for at in firsts]):
            label.label1.set_ha("right" if label.label1.get_text() == "step" else "left")  # "forward" follows close by
        most = max(m.peak for m in moments) / MIB
        axes.set(ylabel="MiB", xlim=(-0.5, len(moments) - 0.5), ylim=(0, 1.4 * most))
        axes.legend(loc="upper center", ncols=3, fontsize=12, handlelength=1.2, columnspacing=1)


def _twice(moments: tuple[Moment, ...]) -> list[Moment]:
    """Each moment at its left and at its right edge."""
    return [m for m in moments for _ in range(2)]


def _mib(nbytes: int) -> str:
    return f"{nbytes / MIB:.2f}"
