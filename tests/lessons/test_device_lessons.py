"""The lessons about devices run on a GPU (``-m gpu``); elsewhere they use the simulated one, as validation compares."""

import sys
from pathlib import Path

import kernels_in_cpp
import nbformat
import pytest

from course.authoring.build import execute

ROOT = Path(__file__).parents[2]
LESSONS = [p for p in sorted((ROOT / "notebooks").glob("*.ipynb")) if "cuda.is_available()" in p.read_text("utf-8")]
pytestmark = pytest.mark.gpu


def failures(nb):
    """(number of the cell, the exception's name) of each cell that raises one."""
    return [(i, o.ename) for i, cell in enumerate(nb.cells) if cell.cell_type == "code"
            for o in cell.outputs if o.output_type == "error"]  # fmt: skip


@pytest.mark.parametrize(
    "path",
    # The capstone trains for a minute.
    [pytest.param(p, marks=[pytest.mark.slow] * (p.stem == "22_capstone")) for p in LESSONS],
    ids=lambda path: path.stem,
)
def test_a_lesson_about_devices_runs_on_a_gpu(path):
    stored = nbformat.read(path, as_version=4)
    again = nbformat.from_dict(stored)
    first = next(cell for cell in again.cells if cell.cell_type == "code")
    if "stand_in_cupy" in sys.modules:
        if kernels_in_cpp.COMPILER is None:
            pytest.skip("there is no C++ compiler to run CuPy's kernels with")
        first.source = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); import stand_in_cupy\n{first.source}"
    last = nbformat.v4.new_code_cell("assert engine.cuda.is_initialized(), 'nothing of it ran on the GPU'")
    again.cells.append(last)
    execute(again, path.parent, ROOT, allow_errors=True)
    assert failures(again) == failures(stored)
