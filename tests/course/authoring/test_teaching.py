"""The notes for teachers: their minutes are the counted ones, and each plan fits into its lesson."""

import re

import pytest
from over_tables import over

pytest.importorskip("nbformat")

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course import figures
from course.authoring import minutes as counted
from course.base.notebooks import ROOT, lesson_file, lesson_notebooks
from course.judging import exercises

LESSONS = lesson_notebooks()
ROWS = {
    row[:2]: row for row in re.findall(r"(?m)^\| \[(\d\d .*)$", (ROOT / "docs/teaching.md").read_text(encoding="utf-8"))
}


def notes(lesson):
    """What is said to those who teach a lesson."""
    return lesson_file(lesson, "teaching.md").read_text(encoding="utf-8")


def test_minutes_are_counted_from_words_code_predictions_and_figures(tmp_path):
    cells = [
        new_markdown_cell("# A\n\n" + "word " * 148),
        new_markdown_cell("## B\n\n" + "word " * 146 + "\n\n**Predict.** This\n\n### Your turn"),
        new_code_cell("a\nb\nc\nFloatExplorer()"),
        new_markdown_cell("## C"),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "a.ipynb")
    opening, b, c = counted.parts(tmp_path / "a.ipynb")
    assert [name for name, _ in (opening, b, c)] == ["Opening", "B", "C"]
    assert opening[1] == pytest.approx(1.0)
    assert b[1] == pytest.approx((2 + 146 + 2 + 3) / 150 + 1 + 2 + (20 + 4 * 5) / 60 + 2)
    assert c[1] == pytest.approx(2 / 150)


def test_the_command_prints_a_lesson_part_by_part(capsys):
    assert counted.main(["04"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("04_autograd: ") and len(rest) == len(list(counted.parts(LESSONS["04"])))
    with pytest.raises(SystemExit):
        counted.main(["99"])
    assert "there is no lesson 99: 00, 01" in capsys.readouterr().err


@over("lesson", LESSONS)
def test_the_figures_that_are_counted_are_those_that_move(lesson):
    """Every name that a lesson calls of course.figures, but for the still ones."""
    text = LESSONS[lesson].read_text(encoding="utf-8")
    called = {name for name in figures.__all__ if f"{name}(" in text}
    still = {"Boxes", "MemoryMap", "Pixels", "draw"}
    assert {name for name in called if counted.MOVED.search(f"{name}(")} == called - still


@over("lesson", LESSONS)
def test_the_table_has_the_counted_minutes(lesson):
    cells = [cell.strip() for cell in ROWS[lesson].split("|")]
    assert abs(int(cells[1]) - counted.lesson_minutes(LESSONS[lesson])) <= 5, f"{cells}: see python -m course minutes"
    assert float(cells[2] or 0) == counted.exercise_minutes(lesson)


@over("lesson", LESSONS)
def test_a_lesson_says_how_long_it_takes_as_the_table_does(lesson):
    opening = nbformat.read(LESSONS[lesson], as_version=4).cells[1].source  # below the links
    stated = int(re.search(r"\*\*Time\*\* (\d+) minutes", opening)[1])
    assert stated == int(ROWS[lesson].split("|")[1])


@pytest.mark.parametrize("minutes, for_questions", [(60, 15), (90, 20)])
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_plan_names_parts_and_exercises_that_exist_and_leaves_time_for_questions(lesson, minutes, for_questions):
    plan = re.search(rf"(?m)^\*{minutes} minutes\*: (.*)$", notes(lesson))[1]
    where = f"teaching.md of lesson {lesson}, {minutes} minutes"
    assert plan.startswith("all"), f"{where}: a plan begins with `all` or `all but *Part*`"
    shown, _, worked = plan.partition("; ")
    left_out = re.findall(r"\*([^*]+)\*", shown)
    parts = dict(counted.parts(LESSONS[lesson]))
    unknown = ", ".join(set(left_out) - set(parts))
    assert not unknown, f"{where}: the lesson has no part {unknown}; it has {', '.join(parts)}"
    keys = [key.zfill(len("00.0")) for key in re.findall(r"\b\d+\.\d\b", worked)]
    points = sum(exercises.find(key).points for key in keys)
    kept = {name: part for name, part in parts.items() if name not in left_out}
    total, most = sum(kept.values()) + counted.POINT * points, minutes - for_questions
    listed = ", ".join(f"{name} {part:.1f}" for name, part in kept.items())
    told = f"{listed}, exercises {counted.POINT * points:.0f}"
    assert total <= most, f"{where}: {total:.1f} are planned, {most} are there; leave out {total - most:.1f} of: {told}"


@over("lesson", LESSONS)
def test_three_or_four_misconceptions_are_told_and_their_exercises_exist(lesson):
    told = re.findall(r"(?m)^- \*\*.+?\*\* (.*)$", notes(lesson))
    assert 3 <= len(told) <= 4
    for keys in re.findall(r"\(([\d., ]+)\)$", "\n".join(told), flags=re.MULTILINE):
        for key in keys.split(", "):
            assert exercises.find(key.zfill(len("00.0"))).wrong


# The syllabus

SYLLABUS = (ROOT / "docs/syllabus.md").read_text(encoding="utf-8")
WEEKS = re.findall(r"(?m)^\| (\d+) \| (.+?) \| .+? \| (\d+) \| (\d+) \|$", SYLLABUS)
NEEDED = {
    lesson: set(re.findall(r"\((\d\d)_\w+\.ipynb\)", re.search(r"(?ms)^\*\*You need\*\*(.*?)^\*\*Time", text)[1]))
    for lesson, text in (
        (lesson, (ROOT / f"course/lessons/{path.stem}/lesson.md").read_text(encoding="utf-8"))
        for lesson, path in LESSONS.items()
    )
}


def test_the_syllabus_has_fourteen_weeks_each_lesson_once_and_the_counted_minutes():
    assert [int(week) for week, *_ in WEEKS] == list(range(1, 15))
    taught = [re.findall(r"\((?:\.\./notebooks/)(\d\d)_\w+\.ipynb\)", lessons) for _, lessons, *_ in WEEKS]
    assert [lesson for week in taught for lesson in week] == list(LESSONS)
    for week, (_, _, minutes, practice) in zip(taught, WEEKS, strict=True):
        assert abs(int(minutes) - sum(counted.lesson_minutes(LESSONS[lesson]) for lesson in week)) <= 5 * len(week)
        assert int(practice) == sum(map(counted.exercise_minutes, week))
        assert int(minutes) <= 120


def test_the_graph_of_the_syllabus_is_what_the_lessons_say_they_need_and_is_taught_in_that_order():
    drawn = set(re.findall(r"(?m)^  (\d\d) --> (\d\d)$", SYLLABUS))
    assert drawn == {(needed, lesson) for lesson, all_needed in NEEDED.items() for needed in all_needed}
    assert all(needed < lesson for needed, lesson in drawn)
