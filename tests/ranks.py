"""Starts a program of tests/programs in several ranks, under the engine or under PyTorch, and reads what they found."""

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "programs"
NO_MPI = "" if find_spec("mpi4py") else "mpi4py is not installed"


def started(program, ranks, *words, library="engine", options=(), **environment):
    """The program, running; PyTorch's ranks are started by the program."""
    launcher = [PROGRAMS / "launcher.py", f"--nproc-per-node={ranks}", *options] if library == "engine" else []
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LIBRARY": library, "OMP_NUM_THREADS": "1", "RANKS": str(ranks)}
    return subprocess.Popen(
        [sys.executable, "-X", "utf8", *map(str, [*launcher, PROGRAMS / program, *words])], cwd=ROOT,
        env=env | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8",
    )  # fmt: skip


def ended(process, timeout=600):
    """(exit code, what it printed, what it printed of errors); one that hangs is killed, and the test fails."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate(timeout=60)
        pytest.fail(f"it hangs\n{out}\n{err}")
    return process.returncode, out, err


def in_library(source, library):
    """A program of the engine's, for another library."""
    source = re.sub(r"(?m)^import engine$", f"import {library} as engine", source)
    return re.sub(r"(?m)^(import|from) engine\b", rf"\1 {library}", source)


def launched(library, ranks, source, folder):
    """What a program prints that is written to a file and started as a reader of a lesson starts it."""
    (folder / "train.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", f"{library}.distributed.run", f"--nproc-per-node={ranks}", "train.py"]
    env = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@cache
def results(programs, ranks, library="engine"):
    """For each rank {check: what it gives or how it fails}; one job for the checks of several programs."""
    if NO_MPI and library == "engine" and ranks > 1:
        pytest.skip(NO_MPI)
    if library == "torch":
        pytest.importorskip("torch")
    with tempfile.TemporaryDirectory() as folder:
        process = started("together.py", ranks, *programs.split(), library=library, RESULTS=folder)
        code, out, err = ended(process)
        files = [Path(folder) / f"{rank}.json" for rank in range(ranks)]
        found = [json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {} for file in files]
    assert code == 0, out + err
    return found


def given(programs, ranks, check, library="engine"):
    """What each rank has found in a check; a rank in which it failed fails the test."""
    found = [rank[check] for rank in results(programs, ranks, library=library)]
    for rank, one in enumerate(found):
        assert "fails" not in one, f"rank {rank}: {one['fails']}"
    return [one["gives"] for one in found]


def checks_of(program, library="engine"):
    """The names of the checks in a program, in order."""
    lines = (PROGRAMS / f"{program}.py").read_text(encoding="utf-8").splitlines()
    marks = ("@check", "@only_here") if library == "engine" else ("@check",)
    return [
        after.split("(")[0].removeprefix("def ") for mark, after in zip(lines, lines[1:], strict=False) if mark in marks
    ]
