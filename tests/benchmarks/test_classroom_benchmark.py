"""What the benchmark of a class says of its figures; the class itself is in tests/deploy/test_class_server.py."""

import json
import sys

import pytest

if sys.platform == "win32":
    pytest.skip("a class's server is a Linux computer", allow_module_level=True)

from benchmarks import classroom

FIGURES = {"students": 2, "opened": [3.0, 5.0], "idle": [100.0, 120.0], "computed": [1.0, 2.0], "at work": [200, 212],
           "work": [9.0, 9.0], "hub": 300.0, "grade": 6.0, "kills": ["hub"], "submitted": 7, "lost": []}  # fmt: skip


def test_more_people_take_their_number_of_times_what_was_measured():
    rows = dict(line.strip("| ").split(" | ") for line in classroom.table(FIGURES).splitlines()[2:])
    assert rows["100 at work: memory, one core's time to start, to grade"] == "20 GB, 2 min, 10 min"
    assert rows["submissions, lost"] == "7, 0"


@pytest.mark.parametrize("source, count", [("x = 1\n# submission 12\n", 12), ("# submission 3", 3), ("x", 0)])
def test_a_notebook_tells_which_submission_it_is(tmp_path, source, count):
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [{"source": source.splitlines(keepends=True)}]}), encoding="utf-8")
    assert classroom.number(path) == count and classroom.number(tmp_path / "none.ipynb") == 0
