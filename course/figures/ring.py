"""Ranks that add up: who sends what when, in three ways, and how long that takes on a given network."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from course.figures.base.explorer import ACCENT, INK, SECOND, Explorer

ONE, TREE, RING = "one to all", "tree", "ring"
WAYS = (ONE, TREE, RING)
SIZES = {f"{n} {unit}": n * scale for unit, scale in (("kB", 10**3), ("MB", 10**6)) for n in (1, 10, 100)}
LATENCIES = {"1 µs": 1e-6, "10 µs": 1e-5, "100 µs": 1e-4, "1 ms": 1e-3}
BANDWIDTHS = {"100 MB/s": 1e8, "1 GB/s": 1e9, "10 GB/s": 1e10, "100 GB/s": 1e11}


class Message(NamedTuple):
    """One message: in which step, from whom, to whom, of which part of the tensor (None: all of it), to be added?"""

    step: int
    sender: int
    receiver: int
    part: int | None
    adds: bool


def messages(way: str, n: int) -> Iterator[Message]:
    """Every message of a way on n ranks, a power of two."""
    deep = n.bit_length() - 1
    if way == ONE:
        for other in range(1, n):
            yield Message(other - 1, other, 0, None, True)
            yield Message(n - 2 + other, 0, other, None, False)
    elif way == TREE:
        for level in range(deep):
            gap = 2**level
            for low in range(0, n, 2 * gap):
                yield Message(level, low + gap, low, None, True)
                yield Message(2 * deep - 1 - level, low, low + gap, None, False)
    else:
        for step in range(2 * (n - 1)):
            adds = step < n - 1
            for rank in range(n):
                part = (rank - step if adds else rank + 1 - (step - (n - 1))) % n
                yield Message(step, rank, (rank + 1) % n, part, adds)


def steps(way: str, n: int) -> int:
    """Return the number of steps that come one after the other."""
    return 1 + max(message.step for message in messages(way, n))


def step_seconds(way: str, n: int, size: float, latency: float, bandwidth: float) -> float:
    """Return how long a step takes: a message is there after the latency, and its bytes one after the other."""
    return latency + (size / n if way == RING else size) / bandwidth


def seconds(way: str, n: int, size: float, latency: float, bandwidth: float) -> float:
    """Return how long all steps take."""
    return steps(way, n) * step_seconds(way, n, size, latency, bandwidth)


def told(time: float) -> str:
    """Write a time with three digits: `12.5 µs`."""
    scale, unit = (1, "s") if time >= 1 else (1e3, "ms") if time >= 1e-3 else (1e6, "µs")
    return f"{time * scale:.3g} {unit}"


class RingExplorer(Explorer):
    """All-reduce in three ways on one clock: an arrow for each message, from its sender to its receiver."""

    size = (6.4, 6.4)
    settings = {
        "ranks": ([2, 4, 8], 4, "ranks"),
        "size": (list(SIZES), "1 MB", "size of the tensor"),
        "latency": (list(LATENCIES), "10 µs", "latency"),
        "bandwidth": (list(BANDWIDTHS), "1 GB/s", "bandwidth"),
    }
    stills = ({}, {"ranks": 8, "size": "1 kB"}, {"ranks": 8, "size": "100 MB"})
    titles = ("A megabyte", "A kilobyte", "A hundred megabytes")

    def times(self, *, ranks: int, size: str, latency: str, bandwidth: str) -> dict[str, float]:
        """Return how long each way takes, in seconds."""
        facts = SIZES[size], LATENCIES[latency], BANDWIDTHS[bandwidth]
        return {way: seconds(way, ranks, *facts) for way in WAYS}

    def words(self, *, ranks: int, size: str, latency: str, bandwidth: str) -> str:
        times = self.times(ranks=ranks, size=size, latency=latency, bandwidth=bandwidth)
        facts = SIZES[size], LATENCIES[latency], BANDWIDTHS[bandwidth]
        said = [f"{ranks} ranks, {size}, {latency} and {bandwidth}."]
        for way, time in times.items():
            name = f"{way[0].upper()}{way[1:]}"
            said.append(f"{name}: {steps(way, ranks)} steps of {told(step_seconds(way, ranks, *facts))}, {told(time)}.")
        least = min(times.values())
        first = [way for way, time in times.items() if time < 1.001 * least]
        said.append(f"The {first[0]} is the quickest." if len(first) == 1 else f"{' and '.join(first)}: alike.")
        return " ".join(said)

    def draw(self, axes: Any, *, ranks: int, size: str, latency: str, bandwidth: str) -> None:
        facts = SIZES[size], LATENCIES[latency], BANDWIDTHS[bandwidth]
        times = self.times(ranks=ranks, size=size, latency=latency, bandwidth=bandwidth)
        longest = max(times.values())
        scale, unit = (1, "seconds") if longest >= 1 else (1e3, "ms") if longest >= 1e-3 else (1e6, "µs")
        rows: list[float] = []
        for number, way in enumerate(WAYS):
            top = number * (ranks + 1.6)
            step = step_seconds(way, ranks, *facts) * scale
            axes.text(0, top - 0.75, f"{way}: {told(times[way])}", fontsize=self.font, va="center")
            for rank in range(ranks):
                rows.append(top + rank)
                axes.plot([0, times[way] * scale], [top + rank] * 2, color="#cccccc", linewidth=1, zorder=1)
            kinds: dict[tuple[str, bool], list[Message]] = {}
            for message in messages(way, ranks):
                color = ACCENT if message.part == 0 else INK if message.adds else SECOND
                kinds.setdefault((color, message.adds), []).append(message)
            for (color, adds), sent in kinds.items():
                arrows(axes, sent, top, step, color, "solid" if adds else "dashed", crowded=step * 24 < longest * scale)
        axes.set(xlabel=f"time in {unit}", ylabel="rank", yticks=rows, yticklabels=[*range(ranks)] * len(WAYS))
        axes.set(xlim=(-0.02 * longest * scale, 1.03 * longest * scale), ylim=(rows[-1] + 0.7, -1.4))
        axes.tick_params(axis="y", length=0)


def arrows(axes: Any, sent: list[Message], top: float, step: float, color: str, style: str, crowded: bool) -> None:
    """Draw an arrow for each message: a line, and a head at its end. (One object for all: a move must be quick.)"""
    from matplotlib.collections import LineCollection

    begin = [(m.step * step, top + m.sender) for m in sent]
    end = [((m.step + 1) * step, top + m.receiver) for m in sent]
    wide = (2.4 if color == ACCENT else 1.3) * (0.6 if crowded else 1)
    axes.add_collection(
        LineCollection([*zip(begin, end, strict=True)], colors=color, linewidths=wide, linestyles=style)
    )
    along = [((x1 - x0) / 100, (y1 - y0) / 100) for (x0, y0), (x1, y1) in zip(begin, end, strict=True)]
    place = {"angles": "xy", "scale_units": "xy", "scale": 1, "pivot": "tip", "units": "dots", "color": color}
    head = {
        "width": 2 if crowded else 4,
        "headwidth": 4,
        "headlength": 5,
        "headaxislength": 5,
        "minshaft": 0.01,
        "minlength": 0,
    }
    axes.quiver(*zip(*end, strict=True), *zip(*along, strict=True), **place, **head)
