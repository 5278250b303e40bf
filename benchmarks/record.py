"""Measures everything that README.md tells, and puts it there: ``python -m benchmarks.record``, on a quiet machine.

The figures go to results.json, operations.json and compile_times.json; the tables in README.md, between
``<!-- figures: ... -->`` and ``<!-- end -->``, are made from these files.  ``--tables`` makes the tables alone.
"""

import argparse
import json
import re
from pathlib import Path

from . import compile_times, report
from .__main__ import chosen, measure
from .frameworks import FRAMEWORKS, LAYERS
from .workloads import EVERY_OPERATION, WORKLOADS

HERE = Path(__file__).parent
README = HERE / "README.md"
REGION = re.compile(r"(<!-- figures: (\w+) (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
FILES = {
    "results": tuple(name for name in WORKLOADS if name not in (*LAYERS, *EVERY_OPERATION)),
    "operations": (*LAYERS, *EVERY_OPERATION),
}
ROUNDS = {"results": 21, "operations": 9, "compile_times": 3}


def stored(name):
    """What a file of figures says, or None."""
    file = HERE / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def table(name, what):
    """The text of a region: ``medians``, ``fastest``, ``operations``, ``times`` or ``surroundings`` of a file."""
    recorded = stored(name)
    if recorded is None:
        return "Not measured yet.\n"
    if what == "surroundings":
        labels = {f.module: f.label.partition(",")[0] for f in reversed(FRAMEWORKS.values())}
        versions = [f"{labels[module]} {version}" for module, version in recorded["versions"].items()]
        said = f"{recorded['date']}, {recorded['hardware']}; Python {recorded['python']}, {', '.join(versions)}"
        return f"{said.replace('NumPy by hand', 'NumPy')}.\n"
    if what == "times":
        return compile_times.markdown(recorded["seconds"])
    found = {k: v for k, v in recorded["seconds"].items() if (k in EVERY_OPERATION) == (what == "operations")}
    return report.markdown(report.summary(found, what == "fastest"))


def tables(text):
    """The text of README.md with the tables that the files give."""
    return REGION.sub(lambda m: f"{m[1]}{table(m[2], m[3])}{m[4]}", text)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=__doc__)
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    parser.add_argument("--rounds", type=int, help="how often each has its turn " + str(ROUNDS))
    arguments = parser.parse_args()
    if not arguments.tables:
        for name, workloads in FILES.items():
            measured = measure(workloads, chosen([*FRAMEWORKS, "floor"]), arguments.rounds or ROUNDS[name])
            report.write(HERE / f"{name}.json", {**report.machine(), "seconds": measured})
        times = compile_times.measure(compile_times.NAMES, arguments.rounds or ROUNDS["compile_times"])
        report.write(HERE / "compile_times.json", {**report.machine(), "seconds": times})
    README.write_text(tables(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
