"""`python -m course test`: the tests of the engine and the course, and every notebook."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from course.base.environment import Problem, ensure, say, workers
from course.base.notebooks import (
    COMMAND,
    EXECUTED,
    ROOT,
    SANITIZE,
    UNATTENDED,
    has_workers,
    kernel_environment,
    validate_command,
    with_workers,
)
from course.commands import changed

HELP = """\
usage: python -m course test [--without-pytorch] [--changed | --deep | --failed | pytest's own arguments]

Without arguments: the tests of the engine and the course, and every notebook run again and compared with what is
stored in it. (A cell that trains for long, and whose output is not compared, takes fewer steps.)
  --changed  of all these what can be reached from what differs from the branch `main`, in git or not yet
  --deep     what takes minutes, and what needs a browser: every figure, whole environments, rounds of grading;
             then, where PyTorch is installed, all of the above once more without it, each cell to its end
  --failed   what failed the last time, and nothing else
  --without-pytorch  as if PyTorch were not installed
With arguments of pytest's: pytest with these alone, say `python -m course test -k broadcast`.
Where pip has installed the course there are no tests: without arguments its lessons are run, and nothing else is taken.
"""
# A file's tests and a notebook's cells build on each other: whole files go to a worker, in the order that
# tests/conftest.py gives them. One that hangs runs once more.
WHOLE_FILES = ["--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "1"]
DEEP = ["tests", "-m", "slow or browser"]
NOTHING_TO_RUN = 5  # pytest's exit code
CACHE = ROOT / ".pytest_cache"
ALONE = "--without-pytorch"
HIDES_PYTORCH = ROOT / "tests" / "without_pytorch"  # on the path of every Python


def main(argv: list[str]) -> int:
    """Run the tests; 0 when all pass, else pytest's exit code. Raises Problem."""
    if argv in (["-h"], ["--help"]):
        print(HELP, end="")
        return 0
    if not (ROOT / "tests" / "conftest.py").is_file():
        return lessons_alone(argv)
    ensure("dev" if "--changed" in argv else "test", ["test", *argv])  # ruff knows what imports what
    alone = ALONE in argv
    argv = [argument for argument in argv if argument != ALONE]
    if argv not in ([], ["--changed"], ["--deep"], ["--failed"]):
        return pytest(*argv, alone=alone)
    if argv == ["--changed"]:
        choice = changed.choose(ROOT)
        say(str(choice))
        return run(choice.arguments(), alone, nothing="No test names that.") if choice.whole or choice.partly else 0
    if argv == ["--failed"]:
        # A test of those that --deep runs may be among them.
        again = ["-m", "", "--last-failed", "--last-failed-no-failures", "none"]
        return run([*everything(), *again], alone, fresh=False, nothing="Nothing failed the last time.")
    if argv == []:
        return run(everything(), alone)
    code = run(DEEP, alone)
    if alone or importlib.util.find_spec("torch") is None:
        return code
    say("\nThe tests and every notebook, as if PyTorch were not installed:")
    code_alone = run(everything(brief=False), alone=True)
    if code:
        say(verdict(code))  # the last line is not to say that all passed
    return code or code_alone


def everything(brief: bool = True) -> list[str]:
    """Return the tests and every notebook as pytest's arguments, `brief` as `validate_command` has it.

    Raises Problem where there is no notebook.
    """
    chosen = ["tests", *validate_command(ROOT, brief)]
    if not any(argument in EXECUTED for argument in chosen):
        raise Problem(f"There is no notebook to run. Make them from their texts: {COMMAND} build")
    return chosen


def run(chosen: list[str], alone: bool, fresh: bool = True, nothing: str = "") -> int:
    """Run these over the computer's cores and say what it comes to; what to say where there is nothing to run."""
    if fresh:
        remembered("cache/lastfailed", alone).unlink(missing_ok=True)
    remembered("undertorch/flaky", alone).unlink(missing_ok=True)
    spread = ["-n", str(workers()), *WHOLE_FILES] if workers() > 1 else []
    code = pytest(*chosen, *spread, alone=alone)
    if nothing and code == NOTHING_TO_RUN:
        say(nothing)
        return 0
    for test in recalled("undertorch/flaky", alone):
        say(f"flaky: it failed once and passed when it ran again. Mend it: {test}")
    say(verdict(code, alone))
    return code


def lessons_alone(argv: list[str]) -> int:
    """Choose every lesson of a course that pip installed; its tests are in the repository. Raises Problem."""
    if argv:
        raise Problem(f"The tests are in the course's repository, not in this copy: `{COMMAND} test` runs its lessons.")
    from course.authoring import validation

    left_out = set() if has_workers() else {ROOT / name for name in with_workers()}
    lessons = [str(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path not in left_out]
    return validation.main(["--only", "outputs", "--sanitize-with", str(ROOT / SANITIZE), *lessons])


def cache(alone: bool) -> Path:
    return CACHE / ALONE.strip("-") if alone else CACHE


def remembered(what: str, alone: bool) -> Path:
    """Return a file of pytest's cache."""
    return cache(alone) / "v" / what


def recalled(what: str, alone: bool) -> Any:
    file = remembered(what, alone)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def verdict(code: int, alone: bool = False) -> str:
    """Say in a line what a run comes to; after a failure with the command that runs just what failed again."""
    if code == 0:
        return "All passed."
    failed = recalled("cache/lastfailed", alone)
    if not failed:
        return f"FAILED: pytest ended with exit code {code}."
    notebooks = {name.partition("::")[0] for name in failed if ".ipynb" in name}
    tests = [name for name in failed if ".ipynb" not in name]
    counts = [(len(tests), "test"), (len(notebooks), "notebook")]
    parts = [f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count]
    return f"FAILED: {', '.join(parts)}. Run just those again: {COMMAND} test {ALONE + ' ' if alone else ''}--failed"


def pytest(*arguments: str, alone: bool = False) -> int:
    """Run pytest once in the course's folder, and return its exit code."""
    command = [sys.executable, "-m", "pytest", *arguments]
    if not any("nbval" in argument for argument in arguments):
        command += ["-p", "no:nbval"]  # which imports for two seconds what Jupyter checks notebooks with
    environment = kernel_environment(ROOT) | UNATTENDED
    if alone:
        command += ["-o", f"cache_dir={cache(alone)}"]
        environment["PYTHONPATH"] = os.pathsep.join([str(HIDES_PYTORCH), environment["PYTHONPATH"]])
    return subprocess.run(command, cwd=ROOT, env=environment).returncode
