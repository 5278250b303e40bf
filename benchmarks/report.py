"""Ratios, the table, and what the figures were measured on."""

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from .floor import BYTES, PRODUCTS
from .frameworks import FLOOR, FRAMEWORKS
from .operations import OPERATIONS, SIZES
from .workloads import EVERY_OPERATION, WORKLOADS

PYTORCH = ("torch", "torch1")
BINDING = {"products": ("products", "products1"), "bytes": ("bytes", "bytes1")}  # with many threads, and with one
OVER_EAGER = 1.05  # the compiled engine's time over the engine's, at most
COMPILED = ("compiled", "compiled1")
COMPARED = {"over_eager": ("engine", "engine1"), "over_torch": PYTORCH, "over_jax": ("jax",),
            "over_inductor": ("inductor",), "over_floor": ("floor",)}  # fmt: skip


def summary(measured, fastest=False):
    """{workload: {framework: {"seconds", "ratio"}}} from {workload: {framework: [seconds, one a round]}}.

    ``seconds`` is the median of the rounds.  The ratio is the median over the rounds of this framework's time over
    PyTorch's in the same round, PyTorch being taken with that number of threads with which it is faster.  With
    ``fastest``, the lowest time of all rounds, and the ratio of those.

    "floor" is the time of the products alone or of the bytes alone, whichever is longer (``binds`` says which), each
    with that number of threads with which it is faster.  So is the compiled engine in what "compiled" has of its time
    over others', theirs too: ``over_eager``, ``over_torch``, ``over_jax``, ``over_inductor``, ``over_floor``; and
    ``limit``, what ``over_torch`` is to be at most.
    """
    table = {}
    for name, times in measured.items():
        seconds = {framework: (min if fastest else median)(rounds) for framework, rounds in times.items()}
        faster = lambda names: min((f for f in names if f in seconds), key=seconds.get, default=None)  # noqa: B023, E731
        alone = {kind: found for kind, names in BINDING.items() if (found := faster(names)) is not None}
        binds = max(alone, key=lambda kind: seconds[alone[kind]], default=None)
        if binds is not None:
            times, seconds = times | {"floor": times[alone[binds]]}, seconds | {"floor": seconds[alone[binds]]}
        row = table[name] = {framework: {"seconds": t} for framework, t in seconds.items()}
        if binds is not None:
            row["floor"]["binds"] = binds
        if (best := faster(PYTORCH)) is not None:
            for framework, figures in row.items():
                figures["ratio"] = ratio(times[framework], times[best], fastest)
        if "compiled" in times:
            for key, others in COMPARED.items():
                if (other := faster(others)) is not None:
                    row["compiled"][key] = ratio(times[faster(COMPILED)], times[other], fastest)
            row["compiled"]["limit"] = limit(WORKLOADS[name], row.get(alone.get("products"), {}).get("ratio"))
    return table


def limit(workload, products):
    """What the compiled engine's ratio is to be at most; ``products``: that of the products alone, if it is known."""
    if workload.of_products and products is not None and products > 0.9 * workload.compiled:
        return workload.of_products * products
    return workload.compiled


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


def write(file, figures):
    """Put figures into a file, all of them or none."""
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    temporary.replace(file)


def markdown(table):
    """Tables as Markdown: a time and, in brackets, its ratio to PyTorch's; the operations have one of their own.

    The last ones say what compiling gains, and what the floor is made of.
    """
    programs = {name: row for name, row in table.items() if name not in EVERY_OPERATION}
    parts = ([of_programs(programs)] if programs else []) + (
        [of_operations(table)] if len(programs) < len(table) else []
    )
    if compiled := {name: row["compiled"] for name, row in table.items() if "over_eager" in row.get("compiled", ())}:
        parts.append(of_compiled(compiled))
    if measured := {name: row for name, row in table.items() if "floor" in row}:
        parts.append(of_floor(measured))
    text = "\n".join(map(aligned, parts))
    if slower := [name for name, figures in compiled.items() if is_slower(figures)]:
        text += f"\nCompiled takes more than {OVER_EAGER:.2f} of eager's time: {', '.join(slower)}.\n"
    return text


def of_programs(table):
    frameworks = [f for f in FRAMEWORKS if any(f in row for row in table.values())]
    lines = [["", *(FRAMEWORKS[f].label for f in frameworks), "floor", "target", "target, compiled"]]
    for name, row in table.items():
        targets = [f"{WORKLOADS[name].target:.2f}", target(name, row.get("compiled", {}))]
        lines.append([name, *(cell(row.get(f)) for f in frameworks), floor(row.get("floor")), *targets])
    keep = [i for i, head in enumerate(lines[0]) if i == 0 or head == "target" or any(line[i] for line in lines[1:])]
    return [[line[i] for i in keep] for line in lines]


def target(name, figures):
    """What the compiled engine is to reach, where it was measured."""
    if figures.get("limit") is None:
        return ""
    of_jax = f", {WORKLOADS[name].of_jax:.2f} of JAX" if WORKLOADS[name].of_jax else ""
    return f"{figures['limit']:.2f}{of_jax}"


def floor(figures):
    return f"{cell(figures)}, {figures['binds']}" if figures else ""


def is_slower(figures):
    return figures.get("over_eager", 0) > OVER_EAGER


def of_compiled(compiled):
    """What compiling gains; a figure in bold is not what it is to be."""
    heads = {
        "over_eager": "compiled over eager",
        "over_torch": "over PyTorch",
        "limit": "at most",
        "over_jax": "over JAX",
    }
    heads |= {"over_inductor": "over torch.compile", "over_floor": "over the floor"}
    heads = {key: head for key, head in heads.items() if any(f.get(key) is not None for f in compiled.values())}
    lines = []
    for name, figures in compiled.items():
        most = {"over_eager": OVER_EAGER, "over_torch": figures["limit"], "over_jax": WORKLOADS[name].of_jax}
        cells = []
        for key in heads:
            text = "" if figures.get(key) is None else f"{figures[key]:.2f}"
            missed = text and most.get(key) is not None and figures[key] > most[key]
            cells.append(f"**{text}**" if missed else text)
        lines.append([name, *cells])
    return [["", *heads.values()], *lines]


def of_floor(table):
    """What the products alone and the bytes alone take, and at which rate."""
    lines = [["", *(FLOOR[f].label for names in BINDING.values() for f in names)]]
    for name, row in table.items():
        work = {"products": sum(p.flops for p in PRODUCTS.get(name, ())), "bytes": BYTES.get(name, 0)}
        lines.append([name, *(rate(row.get(f), work[kind], kind) for kind, names in BINDING.items() for f in names)])
    return lines


def rate(figures, work, kind):
    """A time, and the work done in it: GFLOP or GB a second."""
    if figures is None:
        return ""
    unit = {"products": "GFLOP/s", "bytes": "GB/s"}[kind]
    return f"{duration(figures['seconds'])}, {work / figures['seconds'] / 1e9:.3g} {unit}"


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
