"""What is not imported before it is asked for."""

import subprocess
import sys
from pathlib import Path

import engine

PROGRAM = """
import sys
import engine
print(*{"engine.autograd.interrupted"} & {*sys.modules})
import engine.utils.data as d
list(d.DataLoader(range(3)))
print(*{"multiprocessing"} & {*sys.modules})
from engine.compiler import machine
machine.why_not()
print(*{"numba"} & {*sys.modules})
"""


def test_the_engine_does_without_numba_processes_and_a_watch_for_interrupts():
    """A loop that is compiled, workers, and a notebook ask for them."""
    root = Path(engine.__file__).parent.parent
    ran = subprocess.run([sys.executable, "-c", PROGRAM], check=True, cwd=root, capture_output=True, encoding="utf-8")
    assert ran.stdout.split() == []
