"""What the benchmark of a class says of its figures; the class itself is in tests/deploy/test_class_server.py."""

import json
import sys

import pytest
from over_tables import over

if sys.platform == "win32":
    pytest.skip("a class's server is a Linux computer", allow_module_level=True)

from benchmarks import classroom

FIGURES = {"students": 2, "opened": [3.0, 5.0], "idle": [100.0, 120.0], "computed": [1.0, 2.0], "at work": [200, 212],
           "work": [9.0, 9.0], "hub": 300.0, "grade": 6.0, "run all": [3.0, 5.0],
           "checks": [(1, 0.5, 0.4), (2, 0.9, 0.4)], "kills": ["hub"], "submitted": 7, "lost": []}  # fmt: skip


def test_more_people_take_their_number_of_times_what_was_measured():
    rows = dict(line.strip("| ").split(" | ") for line in classroom.table(FIGURES).splitlines()[2:])
    assert rows["100 at work: memory, one core's time to start, to grade"] == "20 GB, 2 min, 10 min"
    assert rows["100 who check once a minute"] == "0.7 cores"
    assert rows["submissions, lost"] == "7, 0" and rows["a check, 2 at once"] == "0.4 s of a core, answered after 0.9 s"


def test_learners_check_in_steps_up_to_all_of_them():
    assert classroom.counts(5) == [1, 2, 4, 5] and classroom.counts(1) == [1]


@over("source, count", [("x = 1\n# submission 12\n", 12), ("# submission 3", 3), ("x", 0)])
def test_a_notebook_tells_which_submission_it_is(tmp_path, source, count):
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [{"source": source.splitlines(keepends=True)}]}), encoding="utf-8")
    assert classroom.number(path) == count and classroom.number(tmp_path / "none.ipynb") == 0
