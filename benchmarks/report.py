"""Ratios, the table, and what the figures were measured on."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from .frameworks import FRAMEWORKS
from .operations import OPERATIONS, SIZES
from .workloads import EVERY_OPERATION, WORKLOADS

PYTORCH = ("torch", "torch1")


def summary(measured, fastest=False):
    """{workload: {framework: {"seconds", "ratio"}}} from {workload: {framework: [seconds, one a round]}}.

    ``seconds`` is the median of the rounds.  The ratio is the median over the rounds of this framework's time over
    PyTorch's in the same round, PyTorch being taken with that number of threads with which it is faster.  With
    ``fastest``, the lowest time of all rounds, and the ratio of those.  ``over_eager``: the same of the compiled
    engine's time over the engine's.
    """
    table = {}
    for name, times in measured.items():
        seconds = {framework: (min if fastest else median)(rounds) for framework, rounds in times.items()}
        best = min((f for f in PYTORCH if f in seconds), key=seconds.get, default=None)
        table[name] = {framework: {"seconds": t} for framework, t in seconds.items()}

        for framework, row in table[name].items() if best is not None else ():
            row["ratio"] = ratio(times[framework], times[best], fastest)
        if {"engine", "compiled"} <= times.keys():
            table[name]["compiled"]["over_eager"] = ratio(times["compiled"], times["engine"], fastest)
    return table


def ratio(times, others, fastest):
    """The median over the rounds of one time over another, or the ratio of the lowest."""
    return median([min(times) / min(others)] if fastest else [a / b for a, b in zip(times, others, strict=True)])


def machine():
    """The date, the hardware and the versions."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "hardware": f"{processor()}, {os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "versions": {f.module: f.version for f in FRAMEWORKS.values() if f.distribution and f.installed},
    }


def processor():
    """The processor's name, where the system tells."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def markdown(table):
    """Tables as Markdown: a time and, in brackets, its ratio to PyTorch's; the operations have one of their own.

    The last one says what compiling gains.
    """
    programs = {name: row for name, row in table.items() if name not in EVERY_OPERATION}
    parts = ([of_programs(programs)] if programs else []) + (
        [of_operations(table)] if len(programs) < len(table) else []
    )
    compiled = {name: row["compiled"] for name, row in table.items() if "over_eager" in row.get("compiled", ())}
    if compiled:
        lines = [[name, f"{figures['over_eager']:.2f}"] for name, figures in compiled.items()]
        parts.append([["", "compiled over eager"], *lines])
    return "\n".join(map(aligned, parts))


def of_programs(table):
    frameworks = [f for f in FRAMEWORKS if any(f in row for row in table.values())]
    lines = [["", *(FRAMEWORKS[f].label for f in frameworks), "target"]]
    for name, row in table.items():
        lines.append([name, *(cell(row.get(f)) for f in frameworks), f"{WORKLOADS[name].target:.2f}"])
    return lines


def of_operations(table):
    """A line for each operation, with its ratios at all sizes, the worst one first."""
    lines = []
    for name in OPERATIONS:
        rows = [table.get(f"{name}_{n}", {}) for n in SIZES]
        ratios = [row["engine"]["ratio"] for row in rows if "ratio" in row.get("engine", ())]
        lines.append(
            (max(ratios, default=0), [name, *(cell(row.get(f)) for row in rows for f in ("engine", *PYTORCH))])
        )
    lines = [line for _, line in sorted(lines, key=lambda pair: -pair[0]) if any(line[1:])]
    return [["", *(f"{FRAMEWORKS[f].label} {n}x{n}" for n in SIZES for f in ("engine", *PYTORCH))], *lines]


def aligned(lines):
    """Lines of cells, of which the first is the head, as Markdown."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines = [lines[0], ["-" * width for width in widths], *lines[1:]]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded) + "\n"


def cell(figures):
    if figures is None:
        return ""
    ratio = f" ({figures['ratio']:.2f})" if "ratio" in figures else ""
    return duration(figures["seconds"]) + ratio


def duration(seconds):
    """A time in three digits."""
    unit, scale = next(((u, s) for u, s in (("s", 1), ("ms", 1e3), ("us", 1e6)) if seconds * s >= 1), ("us", 1e6))
    return f"{seconds * scale:.3g} {unit}"
