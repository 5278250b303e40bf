"""The lessons in JupyterLite: what their page brings along, and what they need there."""

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytest.importorskip("packaging")

from course.authoring.site import lite
from course.base.environment import Problem
from course.base.locks import extras
from course.base.notebooks import ROOT, kernel_environment
from course.learner import copies

# In a Python that can import what Pyodide and the page have, and nothing else.
PROGRAM = """
import in_a_browser, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
import engine, course
from course import check, figures, hint, predict, progress, solution
from engine.viz import graph

x = engine.tensor([1.0, 2.0], requires_grad=True)
print(sorted(graph((x * x).sum())._repr_mimebundle_()))
for name in ("BackwardStepper", "BroadcastingExplorer", "FloatExplorer", "Boxes"):
    getattr(figures, name)
print(len(figures.FloatExplorer()._repr_mimebundle_()))
hint("04.1")
engine.save({"x": x}, "x.safetensors")
print(engine.load("x.safetensors")["x"])
"""


def test_the_lessons_need_nothing_that_is_not_brought(tmp_path):
    there = {*lite.PYODIDES, *lite.brought(), "undertorch", *lite.STUBS}
    refused = {
        module
        for module, owners in packages_distributions().items()
        if not there.intersection(owner.lower().replace("_", "-") for owner in owners)
    }
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/programs")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("REFUSED", repr(refused - {"course", "engine", "undertorch"}))],
        env=kernel_environment() | {"PYTHONPATH": path, "UNDERTORCH_PROGRESS": ""},
        cwd=tmp_path, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "application/vnd.jupyter.widget-view+json" in done.stdout
    assert "tensor([1., 2.], requires_grad=True)" in done.stdout


def test_what_is_brought_is_a_part_of_what_the_course_needs_and_has_its_hashes(tmp_path):
    assert set(extras()[lite.EXTRA]) <= set(extras()["course"])
    brought = lite.brought()
    lines = lite.locked(brought, tmp_path).read_text(encoding="utf-8")
    assert re.findall(r"(?m)^([\w-]+)==", lines) == brought
    assert lines.count("==") == len(brought) and lines.count("--hash=sha256:") >= len(brought)
    assert "anywidget" in brought and "numpy" not in brought and "jupyterlab" not in brought


def test_a_notebook_begins_with_the_cell_that_fetches_the_course_and_is_whole():
    found = dict(copies.as_they_begin())
    assert {"my_lessons/05_graph.ipynb", "my_exercises/05_graph.ipynb"} <= found.keys()
    for nb in found.values():
        begun = lite.begun_with(nb)
        assert begun["cells"][2:] == nb["cells"]
        assert f"undertorch[{lite.EXTRA}]" in begun["cells"][1]["source"]
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.from_dict(lite.begun_with(found["my_lessons/05_graph.ipynb"])))


def test_what_is_no_distribution_of_pyodide_is_told(tmp_path):
    with pytest.raises(Problem, match=r"no pyodide\.mjs in it"):
        (tmp_path / "empty").mkdir()
        lite.provide(tmp_path / "empty", tmp_path / "one")
    with pytest.raises(Problem, match="cannot be unpacked"):
        (tmp_path / "pyodide.tar.bz2").write_bytes(b"no archive")
        lite.provide(tmp_path / "pyodide.tar.bz2", tmp_path / "two")
    with pytest.raises(Problem, match="cannot be unpacked"):
        lite.provide(tmp_path / "nowhere.tar.bz2", tmp_path / "three")


def test_what_stops_a_step_is_told_in_its_words(tmp_path):
    with pytest.raises(Problem, match="(?s)not made. pip says:.*nonsense"):
        lite.run(Path(sys.executable), "pip", "nonsense", folder=tmp_path)
