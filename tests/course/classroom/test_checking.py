"""`python -m course check`: one notebook judged without a class, whatever became of it on its way."""

import json

import nbformat
import pytest
from over_tables import over

from course.base.notebooks import ROOT
from course.classroom import checking
from course.commands import cli
from course.judging import exercises

pytest.importorskip("nbformat")
SOLVED = {key: exercises.cell(key, "solutions") for key in exercises.of_lesson("05")}
WRONG = "def division_backward(arriving, x, y):\n    return 1.0, 1.0"
PATIENT = ["--seconds", "300"]  # other programs may keep this computer busy


def submission(path, answers, change=lambda nb: None):
    nb = nbformat.read(ROOT / "exercises/05_graph.ipynb", as_version=4)
    for cell in nb.cells:
        cell.source = answers.get(cell.metadata.get("exercise"), cell.source)
    change(nb)
    nbformat.write(nb, path)
    return str(path)


def check(capsys, *argv):
    code = cli.main(["check", *argv])
    return code, capsys.readouterr().out


def without_checks(nb):
    nb.cells = [cell for cell in nb.cells if not cell.metadata.get("nbgrader", {}).get("grade")]


def lenient_checks(nb):
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code":
            cell.source = "print('correct')"


@over("change", [without_checks, lenient_checks])
def test_right_wrong_and_blank_answers_get_their_points_and_sentences(tmp_path, capsys, change):
    answers = {"05.1": SOLVED["05.1"], "05.3": WRONG}
    path = submission(tmp_path / "graph (2).ipynb", answers, change)
    code, said = check(capsys, path, "--json", *PATIENT)
    data = json.loads(said)
    assert code == 1
    assert (data["notebook"], data["points"], data["of"]) == ("05_graph", 1, 9)
    assert [(one["exercise"], one["state"], one["points"], one["of"]) for one in data["exercises"]] == [
        ("05.1", "correct", 1, 1),
        ("05.2", "not attempted", 0, 2),
        ("05.3", "not yet", 0, 1),
        ("05.4", "not attempted", 0, 2),
        ("05.5", "not attempted", 0, 3),
    ]
    assert "The rule of a division" not in said and "HIDDEN" not in said
    third = data["exercises"][2]
    assert third["says"].startswith("Exercise 05.3: not yet.") and third["message"] in third["says"]


def test_one_exercise_alone_decides_the_exit_code(tmp_path, capsys):
    path = submission(tmp_path / "a.ipynb", {"05.1": SOLVED["05.1"], "05.3": WRONG})
    code, said = check(capsys, path, "--only", "5.1", *PATIENT)
    assert code == 0 and said.splitlines()[-1] == "1 of 1 exercises are right, 1 of 1 points."
    code, said = check(capsys, path, "--only", "05.2", *PATIENT)
    assert code == 1 and "Exercise 05.2: not attempted yet." in said


def test_an_answer_reaches_no_file_of_the_course(tmp_path, capsys):
    reads = f"slopes = len(open({str(ROOT / 'course/lessons/05_graph/checks.py')!r}).read())"
    path = submission(tmp_path / "a.ipynb", {"05.1": reads})
    from course.process.sandbox import locks_files

    if not locks_files():
        pytest.skip("this system has no Landlock")
    code, said = check(capsys, path, "--only", "05.1", *PATIENT)
    assert code == 1 and "PermissionError" in said


@over(
    "text, argv, says",
    [
        (None, [], "There is no file"),
        ("", [], "The file is empty"),
        ("<html>", [], "The file is a web page"),
        ('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', [], "has no exercise of the course"),
    ],
)
def test_what_cannot_be_judged_is_said_and_is_no_wrong_answer(tmp_path, capsys, text, argv, says):
    path = tmp_path / "a.ipynb"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    code, said = check(capsys, str(path), *argv)
    assert code == 2 and says in said
    code, said = check(capsys, str(path), *argv, "--json")
    assert code == 2 and says in json.loads(said)["error"]


def test_a_notebook_that_breaks_off_is_judged_as_far_as_it_goes(tmp_path, capsys):
    path = tmp_path / "a.ipynb"
    submission(path, {"05.1": SOLVED["05.1"]})
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("How many nodes")], encoding="utf-8")
    code, said = check(capsys, str(path), *PATIENT)
    assert code == 1 and "1 of 5 exercises are right, 1 of 9 points." in said
    assert "The cell check-05-2 was missing, and was added at the end." in said


def test_a_class_s_own_numbers_and_time_that_is_over_are_not_judged(tmp_path, capsys):
    def seal(nb):
        for cell in nb.cells:
            cell.source = cell.source.replace('check("05.1", slopes)', 'check("05.1", slopes, sealed="exact-1-2")')

    path = submission(tmp_path / "a.ipynb", {"05.1": SOLVED["05.1"], "05.3": WRONG}, seal)
    code, said = check(capsys, path, "--json", "--seconds", "0")
    told = {one["exercise"]: one for one in json.loads(said)["exercises"]}
    assert code == 2
    assert told["05.1"]["message"] == checking.SEALED
    assert told["05.3"]["says"] == "Exercise 05.3: not judged. The time was over before it was judged."
    assert told["05.2"]["state"] == "not attempted"
    with pytest.raises(SystemExit):
        check(capsys)
    code, said = check(capsys, path, "--only", "06.1")
    assert code == 2 and said == "05_graph has no exercise 06.1: 05.1, 05.2, 05.3, 05.4, 05.5.\n"
