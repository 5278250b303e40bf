"""`python -m course test`: the tests of the engine and the course, and every notebook."""

import json
import subprocess
import sys

from course.base.environment import Problem, ensure, say, workers
from course.base.notebooks import (
    COMMAND,
    EXECUTED,
    ROOT,
    SANITIZE,
    UNATTENDED,
    has_workers,
    kernel_environment,
    nbval_command,
    with_workers,
)
from course.commands import changed

HELP = """\
usage: python -m course test [--changed | --deep | --failed | pytest's own arguments]

Without arguments: the tests of the engine and the course, and every notebook run again and compared with what is
stored in it.
  --changed  of all these what can be reached from what differs from the branch `main`, in git or not yet
  --deep     what takes minutes, and what needs a browser: every figure, whole environments, rounds of grading
  --failed   what failed the last time, and nothing else
With arguments of pytest's: pytest with these alone, say `python -m course test -k broadcast`.
"""
# A file's tests and a notebook's cells build on each other: whole files go to a worker, in the order that
# tests/conftest.py gives them. One that hangs runs once more.
WHOLE_FILES = ["--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "1"]
DEEP = ["tests", "-m", "slow or browser"]
NOTHING_TO_RUN = 5  # pytest's exit code
LAST_FAILED = ROOT / ".pytest_cache/v/cache/lastfailed"  # written by pytest


def main(argv: list[str]) -> int:
    """Run the tests; 0 when all pass, else pytest's exit code. Raises Problem."""
    if argv in (["-h"], ["--help"]):
        print(HELP, end="")
        return 0
    if not (ROOT / "tests" / "conftest.py").is_file():
        return lessons_alone(argv)
    ensure("dev" if argv == ["--changed"] else "test", ["test", *argv])  # ruff knows what imports what
    if argv not in ([], ["--changed"], ["--deep"], ["--failed"]):
        return pytest(*argv)
    if argv == ["--changed"]:
        choice = changed.choose(ROOT)
        say(str(choice))
        if not (choice.whole or choice.partly):
            return 0
        chosen = choice.arguments()
    elif argv == ["--deep"]:
        chosen = DEEP
    else:
        chosen = ["tests", *nbval_command(ROOT)]
        if not any(argument in EXECUTED for argument in chosen):
            raise Problem(f"There is no notebook to run. Make them from their texts: {COMMAND} build")
    if argv == ["--failed"]:
        # A test of those that --deep runs may be among them.
        chosen += ["-m", "", "--last-failed", "--last-failed-no-failures", "none"]
    else:
        LAST_FAILED.unlink(missing_ok=True)
    spread = ["-n", str(workers()), *WHOLE_FILES] if workers() > 1 else []
    code = pytest(*chosen, *spread)
    if argv == ["--failed"] and code == NOTHING_TO_RUN:
        say("Nothing failed the last time.")
        return 0
    if argv == ["--changed"] and code == NOTHING_TO_RUN:
        say("No test names that.")
        return 0
    say(verdict(code))
    return code


def lessons_alone(argv: list[str]) -> int:
    """Every lesson of a course that pip has installed; its tests are in the repository. Raises Problem."""
    if argv:
        raise Problem(f"The tests are in the course's repository, not in this copy: `{COMMAND} test` runs its lessons.")
    from course.authoring import validation

    left_out = set() if has_workers() else {ROOT / name for name in with_workers()}
    lessons = [str(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path not in left_out]
    return validation.main(["--sanitize-with", str(ROOT / SANITIZE), *lessons])


def verdict(code: int) -> str:
    """What a run comes to, in a line; after a failure with the command that runs just what failed again."""
    if code == 0:
        return "All passed."
    failed = json.loads(LAST_FAILED.read_text(encoding="utf-8")) if LAST_FAILED.is_file() else {}
    if not failed:
        return f"FAILED: pytest ended with exit code {code}."
    notebooks = {name.partition("::")[0] for name in failed if ".ipynb" in name}
    tests = [name for name in failed if ".ipynb" not in name]
    counts = [(len(tests), "test"), (len(notebooks), "notebook")]
    parts = [f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count]
    return f"FAILED: {', '.join(parts)}. Run just those again: {COMMAND} test --failed"


def pytest(*arguments: str) -> int:
    """One run of pytest in the course's folder; its exit code."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=kernel_environment(ROOT) | UNATTENDED).returncode
