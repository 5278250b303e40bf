"""Times the workloads in every framework that is installed, in turns, and prints a table."""

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from . import report
from .frameworks import CLOCK, FLOOR, FRAMEWORKS, Worker, import_seconds, installed
from .workloads import EVERY_OPERATION, WORKLOADS


def measure(names, frameworks, rounds):
    """{workload: {framework: [seconds a step, one a round]}}."""
    measured = {}
    with ExitStack() as stack:
        workers = {f: stack.enter_context(Worker(framework)) for f, framework in frameworks.items()}
        for name in names:
            times = measured[name] = {f: [] for f, framework in frameworks.items() if name in framework.only}
            for i in range(-1, rounds):  # the first one warms up
                print(f"\r{name}: round {i + 1} of {rounds} ", end="", file=sys.stderr, flush=True)
                for f in times:
                    if name == "import":
                        times[f].append(import_seconds(frameworks[f].module))
                    else:
                        times[f].append(workers[f].ask("seconds", name))
            for f in times:
                del times[f][0]
            print(file=sys.stderr)
    return measured


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    programs = [name for name in WORKLOADS if name not in EVERY_OPERATION]
    says = ", ".join(f"{name} ({WORKLOADS[name].says})" for name in programs)
    says += f", operations (the {len(EVERY_OPERATION) // 2} most used ones), or one of them, such as add_3"
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or some of: {says}")
    every = [*FRAMEWORKS, "floor"]
    parser.add_argument("--frameworks", nargs="+", choices=every, default=every, metavar="NAME",
                        help=f"those that are installed, or of them some of: {', '.join(every)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=21, help="how often each framework has its turn (21)")
    parser.add_argument("--fastest", action="store_true", help="compare the fastest rounds, not the medians")
    parser.add_argument("--cpu", action="store_true", help="processor time: for one thread each, where others work too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in (*WORKLOADS, "operations")]
    if unknown:
        parser.error(f"no workload {unknown[0]!r}: there are {', '.join(programs)}, operations")
    names = [w for name in arguments.names for w in (EVERY_OPERATION if name == "operations" else (name,))]
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    if arguments.cpu:
        os.environ[CLOCK] = "cpu"
    measured = measure(names or list(WORKLOADS), chosen(arguments.frameworks), arguments.rounds)
    print(report.markdown(report.summary(measured, arguments.fastest)), end="")
    if arguments.json:
        report.write(arguments.json, {**report.machine(), "seconds": measured})


def chosen(names):
    """The frameworks of these names that are here, and what the floor is made of; says which are not."""
    here = installed()
    if missing := [FRAMEWORKS[f].needs for f in names if f not in here and f != "floor"]:
        print("not installed:", ", ".join(dict.fromkeys(missing)), file=sys.stderr)
    return {f: here[f] for f in names if f in here} | (FLOOR if "floor" in names else {})


if __name__ == "__main__":
    main()
