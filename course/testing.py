"""`python -m course test`: the tests of the engine and the course, then every notebook."""

import os
import subprocess
import sys

from course.environment import Problem, ensure, say
from course.notebooks import COMMAND, EXECUTED, ROOT, UNATTENDED, kernel_environment, nbval_command

HELP = """\
usage: python -m course test [pytest's own arguments]

Without arguments: every test in tests/, then every notebook run again and compared with what is stored in it.
With arguments: pytest with these arguments alone, say `python -m course test -k broadcast`.
"""
MOST_WORKERS = 4
# A file's tests and a notebook's cells build on each other: whole files go to a worker, in the order that
# tests/conftest.py gives them. One that hangs runs once more.
WHOLE_FILES = ["--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "1"]


def main(argv: list[str]) -> int:
    """Run the tests; 0 when all pass, else the exit code of the first run that failed. Raises Problem."""
    if argv in (["-h"], ["--help"]):
        print(HELP, end="")
        return 0
    ensure("test", ["test", *argv])
    if argv:
        return pytest(*argv)
    notebooks = nbval_command(ROOT)
    if not any(argument in EXECUTED for argument in notebooks):
        raise Problem(f"There is no notebook to run. Make them from their texts: {COMMAND} build")
    spread = ["-n", str(workers()), *WHOLE_FILES] if workers() > 1 else []
    say("1/2  The tests of the engine and the course")
    tests_failed = pytest("tests", *spread)
    say("2/2  Every notebook, run again and compared with what is stored in it")
    notebooks_failed = pytest(*notebooks, *spread)
    return tests_failed or notebooks_failed


def pytest(*arguments: str) -> int:
    """One run of pytest in the course's folder; its exit code."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=kernel_environment(ROOT) | UNATTENDED).returncode


def workers() -> int:
    """How many processes the tests are spread over."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, MOST_WORKERS)
