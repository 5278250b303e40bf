"""Written answers: the questions and how they are marked; what a program in one shows is what it shows."""

import contextlib
import io
import re

import nbformat
import pytest
from over_tables import over

pytest.importorskip("jupytext")

import engine
from course.authoring.build import jobs, read_source, skeleton
from course.commands.cli import main
from course.judging import exercises
from course.learner import calls as learner
from course.learner import rubrics

LESSONS = list(exercises.lessons())
QUESTIONS = [question for lesson in LESSONS for question in rubrics.questions(lesson).values()]
SHOWN = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
GOOD = """\
# Written answers

## w1 A title
The question.

### What earns points
- 0.5: one
- 0.5: two,
  which goes on
- 0.5: three
- 0.5: four

### Full: 2
Full.

More.

Why: all.

### Half: 1
Half.

Why: two of four.

### Wrong: 0
Wrong.

Why: none.
"""


def parsed(folder, text):
    path = folder / "course/lessons/05_graph/written.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return rubrics.questions("05", folder)


def job(lesson, folder):
    return next(job for job in jobs(lessons=[lesson]) if job.target.folder == folder)


@over("lesson", LESSONS)
def test_each_lesson_asks_for_two_written_answers(lesson):
    assert list(rubrics.questions(lesson)) == [f"{lesson}.w1", f"{lesson}.w2"]


@over("question", QUESTIONS)
def test_a_program_in_a_question_prints_what_is_shown(question):
    for source, shown in SHOWN.findall(question.text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, question.key, "exec"), {"engine": engine})
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == [
            line.rstrip() for line in shown.splitlines()
        ]


@over("question", QUESTIONS)
def test_a_question_gives_no_sample_and_no_step_away(question):
    assert not [what for _, what in question.steps if what in question.text]
    assert not [sample for sample in question.samples if sample.text in question.text]


def test_a_file_is_read_as_it_stands(tmp_path):
    question = parsed(tmp_path, GOOD)["05.w1"]
    assert (question.heading, question.points) == ("5.w1 A title", 2.0)
    assert question.steps[1] == (0.5, "two, which goes on")
    assert question.samples[0] == rubrics.Sample("Full", 2.0, "Full.\n\nMore.", "all.")


@over(
    "old, new, says",
    [
        ("- 0.5: four\n", "", "4 steps of 2 points"),
        ("- 0.5: four\n", "- 1: four\n", "4 steps of 2 points"),
        ("### Half: 1\nHalf.\n\nWhy: two of four.\n\n", "", "three samples"),
        ("### Half: 1", "### Half: 2", "a half one fewer"),
        ("Why: none.\n", "", "at its end"),
        ("### Wrong: 0", "### Wrong", "a name and its points"),
        ("The question.", "", "a title and a question"),
        ("## w1", "## w2", "called w1, w2"),
    ],
)
def test_what_is_missing_is_refused_by_name(tmp_path, old, new, says):
    with pytest.raises(ValueError, match=says):
        parsed(tmp_path, GOOD.replace(old, new))


def test_the_blank_notebook_has_the_questions_alone_and_the_solutions_full_samples():
    first, second = rubrics.questions("05").values()
    blank, solved = (skeleton(job("05", folder)).cells for folder in ("exercises", "solutions"))
    text = "\n".join(cell.source for cell in blank)
    for question in (first, second):
        name = f"written-05-{question.key[3:]}"
        (mine,) = [cell for cell in blank if cell.metadata.get("nbgrader", {}).get("grade_id") == name]
        (full,) = [cell for cell in solved if cell.metadata.get("nbgrader", {}).get("grade_id") == name]
        assert (mine.cell_type, mine.source, full.source) == ("markdown", rubrics.STUB, question.samples[0].text)
        notes = mine.metadata.nbgrader
        assert (notes.grade, notes.solution, notes.locked, notes.points) == (True, True, False, 2.0)
        assert question.text in text
        assert not [sample for sample in question.samples if sample.text in text]
        assert not [what for _, what in question.steps if what in text]


def test_a_text_saved_with_the_questions_in_it_is_read_without_them(tmp_path):
    import jupytext

    nb = skeleton(job("05", "solutions"))
    saved = tmp_path / "05_graph.md"
    saved.write_text(jupytext.writes(nbformat.from_dict(nb), fmt="md:myst"), encoding="utf-8")
    plain = read_source(job("05", "solutions").source)[0]
    assert [cell.source for cell in read_source(saved)[0].cells] == [cell.source for cell in plain.cells]


def test_who_learns_alone_is_shown_what_earns_points(capsys):
    learner.solution("5.w1")
    said = capsys.readouterr().out
    question = rubrics.questions("05")["05.w1"]
    assert "0.5 of 2 points" in said and question.samples[0].text.split()[0] in said
    assert question.samples[1].text not in said


def test_a_check_of_a_written_answer_says_that_there_is_none():
    with pytest.raises(learner.NoSuchExercise, match=r"05\.w1 is answered in words"):
        learner.check("05.w1", "because")


def test_the_command_prints_what_a_teacher_needs(capsys):
    assert main(["written", "5"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for question in rubrics.questions("05").values():
        assert all(" ".join(what.split()) in said for _, what in question.steps)
        assert all(" ".join(f"Why: {sample.why}".split()) in said for sample in question.samples)


def test_the_command_names_the_lessons_that_there_are(capsys):
    assert main(["written", "00"]) == 1
    assert "There are those of 01, 02" in capsys.readouterr().err
