"""What a learner writes in a lesson itself: a step is checked as an exercise is, for no points, and can be blanked."""

import linecache
import re

import nbformat
import pytest

pytest.importorskip("cloudpickle")

from course.authoring import minutes as teaching
from course.base.notebooks import ROOT
from course.judging import exercises, judge
from course.learner import calls as learner

STEPS = [step for lesson in exercises.lessons() for step in exercises.steps(lesson).values()]
WRONG = [(step, number) for step in STEPS for number in range(len(step.wrong))]
each_step = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.key)


def cells(lesson):
    path = next((ROOT / "notebooks").glob(f"{lesson}_*.ipynb"))
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def attempt(step, blank):
    """What the lesson gives to the check of a step: its cells run up to there, that of the step blank or as it is."""
    names: dict = {"__name__": "__main__"}
    for number, cell in enumerate(cells(step.lesson)):
        source = cell.source
        if found := re.search(rf'(?m)^check\("{step.key}", (.*)\)$', source):
            return eval(found[1], names)
        if "engine-only" in cell.metadata.get("tags", []):
            continue
        if blank and cell.metadata.get("exercise") == step.key:
            source = exercises.blank(source)
        file = f"<{step.key} {blank} {number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec", dont_inherit=True), names)
    raise AssertionError(f"the lesson has no cell check({step.key!r}, ...)")


@pytest.mark.parametrize("lesson", sorted({step.lesson for step in STEPS}))
def test_each_step_has_a_cell_to_fill_in_and_a_check_below_in_the_order_of_the_table(lesson):
    written = [cell.metadata.exercise for cell in cells(lesson) if "exercise" in cell.metadata]
    checked = re.findall(r'(?m)^check\("([\w.]+)", ', "\n".join(cell.source for cell in cells(lesson)))
    assert written == checked == list(exercises.steps(lesson))
    for cell in cells(lesson):
        assert ("exercise" in cell.metadata) == bool(exercises.SOLUTION.search(cell.source))


@each_step
def test_a_step_has_three_hints_no_points_and_words_for_each_wrong_answer(step):
    says = [message for _, message in step.wrong] + [one.says for one in step.properties]
    assert step.points == 0 and len(step.hints) == 3 and not step.hidden
    assert len(set(says)) == len(says) >= 2 and step.key not in exercises.of_lesson(step.lesson)


@each_step
def test_the_lessons_own_lines_are_right_and_the_blank_ones_not_attempted(step):
    written = attempt(step, blank=False)
    assert not learner._is_blank(step, written)
    assert judge.judge(step, written) == judge.Verdict(judge.CORRECT)
    assert learner._is_blank(step, attempt(step, blank=True))


@pytest.mark.parametrize(("step", "number"), WRONG, ids=[f"{step.key}-{number}" for step, number in WRONG])
def test_a_usual_mistake_is_named(step, number):
    wrong, says = step.wrong[number]
    verdict = judge.judge(step, wrong)
    assert (verdict.state, verdict.message) == (judge.NOT_YET, says)


@pytest.mark.parametrize(
    ("step", "one"), [(step, one) for step in STEPS for one in step.properties], ids=lambda x: getattr(x, "key", None)
)
def test_who_lacks_a_property_is_told(step, one):
    verdict = judge.judge(step, one.example)
    assert verdict.state == judge.NOT_YET and verdict.message.splitlines() == [one.says]


def test_a_blank_has_three_dots_where_the_solutions_stood():
    region = "    ### BEGIN SOLUTION\n    x += 1\n\n    x += 2\n    ### END SOLUTION\n"
    value = "    y = (\n        ### BEGIN SOLUTION\n        x,\n        ### END SOLUTION\n    )\n"
    assert exercises.blank("def f(x):\n" + region + value) == "def f(x):\n    ...\n    y = (\n        ...\n    )\n"


def test_a_step_is_found_by_its_key_and_its_solution_shown(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("UNDERTORCH_PROGRESS", str(tmp_path / "progress.json"))
    assert exercises.find("11.mul").name == "11.mul" and exercises.find("11.1").name == "Exercise 11.1"
    with pytest.raises(exercises.UnknownExercise, match="There is no exercise '11.nothing'"):
        exercises.find("11.nothing")
    learner.check("11.mul", attempt(exercises.find("11.mul"), blank=False))
    learner.solution("11.mul")
    learner.hint("11.mul")
    said = capsys.readouterr().out
    assert said.startswith(f"11.mul: correct.\n{exercises.find('11.mul').understood}\nA worked solution of 11.mul\n")
    assert "SOLUTION" not in said
    assert "Hint 1 of 3 for 11.mul" in said


def test_writing_a_step_takes_its_minutes(tmp_path):
    source = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"
    for name, text in (("a", source), ("b", "a\nb")):
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text)])
        nbformat.write(nb, tmp_path / f"{name}.ipynb")
    longer = teaching.lesson_minutes(tmp_path / "a.ipynb") - teaching.lesson_minutes(tmp_path / "b.ipynb")
    assert longer == pytest.approx(teaching.WRITTEN)
