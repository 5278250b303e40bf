"""`python -m course lock`: pyproject.toml resolved into requirements/*.txt, hashed, for all systems and Pythons."""

import argparse
import importlib.util
import subprocess
import sys

from course.base.environment import Problem, ensure
from course.base.locks import LOCKS
from course.base.notebooks import COMMAND, ROOT


def main(argv: list[str]) -> int:
    """Write every lock; 0. Raises Problem where the resolver fails."""
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} lock", description="Write requirements/*.txt anew from pyproject.toml."
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions, not those already locked")
    options = parser.parse_args(argv)
    if importlib.util.find_spec("uv") is None:
        ensure("dev", ["lock", *argv])
    # The locks share their versions: each is resolved within the first, which holds nearly all of the others.
    order = sorted(LOCKS, key=lambda lock: lock != "dev")
    for lock in order:
        write(lock, constraint=order[0] if lock != order[0] else None, upgrade=options.upgrade)
    return 0


def write(lock: str, constraint: str | None, upgrade: bool) -> None:
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", f"--output-file=requirements/{lock}.txt"]
    command += ["--universal", "--python-version=3.11", "--generate-hashes", "--no-annotate", "--quiet"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--custom-compile-command=python -m course lock"]
    command += [f"--extra={extra}" for extra in LOCKS[lock]]
    command += ["--upgrade"] if upgrade else []
    command += [f"--constraint=requirements/{constraint}.txt"] if constraint else []
    if subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode:
        raise Problem(f"requirements/{lock}.txt was not written: uv's own words are above.")
    print(f"requirements/{lock}.txt")
