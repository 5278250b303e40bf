"""Whole programs that print the same, line for line, under PyTorch and under the engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tests" / "programs"


def lines(program, library):
    """What a program prints in a process of its own."""
    command = [sys.executable, "-X", "utf8", str(FOLDER / program), library]
    single = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1")  # other tests run too
    environment = {**os.environ, **single, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_basics_of_training_on_the_digits():
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")
    mine, theirs = (lines("digits.py", library) for library in ("engine", "torch"))
    assert mine == theirs
    assert sum(line.startswith("loss: ") for line in mine) == 32


def test_the_digits_are_learnt():
    """Without PyTorch beside it: the best accuracy of either optimizer is above nine in ten."""
    pytest.importorskip("sklearn")
    accuracies = [float(line.split()[1][:-2]) for line in lines("digits.py", "engine") if "Accuracy" in line]
    assert len(accuracies) == 9
    assert max(accuracies[:4]) > 90 < max(accuracies[4:8])
