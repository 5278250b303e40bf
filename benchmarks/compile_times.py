"""Times what compiling a training step costs: ``python -m benchmarks.compile_times``.

Each figure is of a fresh process.  The first call captures the step, has its loops compiled or reads them from the
cache on disk, and runs it; the time that ``import numba`` takes is not in it.  The cache is a temporary folder.
"""

import argparse
import gc
import multiprocessing
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from unittest.mock import patch

from . import report

NAMES = ("training", "block", "convnet")
COLD, CACHED, CAPTURE = 5.0, 0.3, 0.1  # seconds, at most
CALLS = 3  # with state or without, a step may have to be compiled more than once
HEADS = {
    "numba": "import numba",
    "cold": "first call, empty cache",
    "cold_later": "calls 2 and 3",
    "cached": "first call, from the cache",
    "cached_later": "calls 2 and 3",
}
MOST = {"cold": COLD, "cached": CACHED}


def first_calls(name):
    """In a fresh process: seconds of importing Numba, of the first call and of the next ones."""
    from .adapters import engine_compiled

    step, _ = engine_compiled.prepare(name)
    seconds = [timed(imported)]
    seconds += [timed(step) for _ in range(CALLS)]
    return seconds[0], seconds[1], sum(seconds[2:])


def capture():
    """In a fresh process: seconds of the first capture of 1,000 operations with their gradient, Numba being there."""
    import engine

    from .adapters import torch_style

    captured = []
    torch_style.prepare(engine, "scalars", lambda step: captured.append(step) or step)
    imported()
    if find_spec("numba") is not None:
        from engine.compiler import machine

        if not machine.why_not():
            machine.with_numba()
    explained = engine.compiler.explain(captured[0])
    gc.disable()  # as a compiled function has it while it captures
    return timed(explained)


def imported():
    if find_spec("numba") is not None:
        import numba  # noqa: F401


def timed(step):
    start = perf_counter()
    step()
    return perf_counter() - start


def in_a_process(function, *args, folder):
    """What a function returns in a fresh process whose machine code is kept in ``folder``."""
    context = multiprocessing.get_context("spawn")
    with patch.dict(os.environ, {"UNDERTORCH_CACHE": folder, "UNDERTORCH_COMPILE_PROGRESS": "0"}):
        with context.Pool(1) as pool:
            return pool.apply(function, args)


def measure(names, rounds):
    """{workload: {column: median seconds}}, and under "capture" those of 1,000 operations."""
    found = {}
    for name in names:
        rows = []
        for i in range(rounds):
            print(f"\r{name}: round {i + 1} of {rounds} ", end="", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory() as folder:
                cold = in_a_process(first_calls, name, folder=folder)
                cached = in_a_process(first_calls, name, folder=folder)
            rows.append((cold[0], *cold[1:], *cached[1:]))
        print(file=sys.stderr)
        found[name] = dict(zip(HEADS, map(median, zip(*rows, strict=True)), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        times = [in_a_process(capture, folder=folder) for _ in range(rounds)]
    return found | {"capture": {"capture": median(times)}}


def markdown(seconds):
    """A table of the times; one in bold is longer than it is to be."""
    lines = [["", *HEADS.values()]]
    for name, row in seconds.items():
        if name != "capture":
            lines.append([name, *(cell(row[key], MOST.get(key)) for key in HEADS)])
    lines.append(["at most", *(report.duration(MOST[key]) if key in MOST else "" for key in HEADS)])
    told = f"{cell(seconds['capture']['capture'], CAPTURE)} (at most {report.duration(CAPTURE)})"
    return f"{report.aligned(lines)}\nThe capture of 1,000 operations with their gradient, before Numba: {told}.\n"


def cell(seconds, most):
    text = report.duration(seconds)
    return f"**{text}**" if most is not None and seconds > most else text


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_times", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"workloads that are compiled ({', '.join(NAMES)})")
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes a figure (3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    arguments = parser.parse_args()
    from .frameworks import COMPILED

    if unknown := [name for name in arguments.names if name not in COMPILED]:
        parser.error(f"no workload {unknown[0]!r} is compiled: there are {', '.join(COMPILED)}")
    seconds = measure(arguments.names or NAMES, arguments.rounds)
    print(markdown(seconds), end="")
    if arguments.json:
        report.write(arguments.json, {**report.machine(), "seconds": seconds})


if __name__ == "__main__":
    main()
