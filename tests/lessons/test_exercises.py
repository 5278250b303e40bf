"""The contract that every exercise keeps: one is tested by being there."""

import gc
import json
import linecache
import re

import nbformat
import pytest

pytest.importorskip("jupytext")
pytest.importorskip("cloudpickle")

from over_tables import over
from right_answers import ANSWERS, VALUES, WAYS_ROUND

import engine
from course.authoring.build import build, execute, jobs, read_source
from course.base.notebooks import ROOT, lesson_file
from course.judging import exercises, judge, slips
from course.learner import calls as learner

JOBS = [job for job in jobs() if job.target.graded]
BLANKS = [job for job in JOBS if job.target.blank]
EXERCISES = [exercise for lesson in exercises.lessons() for exercise in exercises.of_lesson(lesson).values()]
EXERCISES_BY_KEY = {exercise.key: exercise for exercise in EXERCISES}
MEASURING = ("17.4", "17.5")  # what these expect of a device depends on what is alive there, so it is not kept for long
REGION = re.compile(r"(?ms)^[ \t]*### BEGIN SOLUTION\n(.*?)^[ \t]*### END SOLUTION")
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.key)
each_blank = pytest.mark.parametrize("job", BLANKS, ids=lambda job: job.name)
each_notebook = pytest.mark.parametrize("job", JOBS, ids=lambda job: job.named(job.notebook))


def attempt(exercise, folder: str):
    """What the notebook in `folder` gives to the check of an exercise: its cells run, up to that of the exercise."""
    path = next((ROOT / folder).glob(f"{exercise.lesson}_*.ipynb"))
    names: dict = {"__name__": "__main__"}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        if found := re.search(rf'(?m)^check\("{exercise.key}", (.*?)(?:, hidden=True)?\)$', cell.source):
            return eval(found[1], names)
        if "check(" not in cell.source:
            file = f"<{path.stem} {folder} {cell.id}>"
            # As IPython does: the source of what a cell defines can be looked up.
            linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(keepends=True), file)
            exec(compile(cell.source, file, "exec", dont_inherit=True), names)
    raise AssertionError(f"{path.name} has no cell check({exercise.key!r}, ...)")


def words(text: str) -> str:
    return " ".join(text.split())


# --- What stands in the tables


def test_every_lesson_with_checks_has_a_text_and_the_other_way_round():
    assert exercises.lessons() == [job.name[:2] for job in BLANKS]


@pytest.mark.parametrize("lesson", exercises.lessons())
def test_a_lessons_exercises_are_numbered_as_in_its_text(lesson):
    job = next(job for job in BLANKS if job.name.startswith(lesson))
    cells = read_source(job.source)[0].cells
    keys = [cell.metadata.exercise for cell in cells if "exercise" in cell.metadata]
    checked = re.findall(r'(?m)^check\("([\d.]+)", (?!.*hidden)', "\n".join(cell.source for cell in cells))
    headings = re.findall(r"(?m)^## (\d+\.\d+) ", "\n".join(cell.source for cell in cells))
    assert keys == checked == list(exercises.of_lesson(lesson))
    assert keys == [f"{lesson}.{number}" for number in range(1, len(keys) + 1)]
    assert headings == [f"{int(lesson)}.{number}" for number in range(1, len(keys) + 1)]
    assert 3 <= len(keys) <= 6


@each_blank
def test_the_lesson_links_to_the_learners_own_copy(job):
    lesson = job.source.with_name("lesson.md")
    assert "**Exercises:** [" in lesson.read_text(encoding="utf-8")
    assert f"](../my_exercises/{job.name}.ipynb)" in lesson.read_text(encoding="utf-8")


@over("exercise", EXERCISES)
def test_an_exercise_has_points_three_hints_and_two_wrong_answers_with_words_of_their_own(exercise):
    assert exercise.points in (1, 2, 3, 4, 5)
    assert len(exercise.hints) == 3 and all(exercise.hints)
    says = [message for _, message in exercise.wrong]
    assert len(says) >= 2 and len(set(says)) == len(says) and all(len(message.split()) >= 4 for message in says)


@over("exercise", EXERCISES)
def test_hidden_tests_stand_in_the_solution_where_the_exercise_has_any(exercise):
    source = lesson_file(exercise.lesson, "exercises.md").read_text(encoding="utf-8")
    region = rf'### BEGIN HIDDEN TESTS\ncheck\("{exercise.key}", .*, hidden=True\)\n### END HIDDEN TESTS\n'
    assert bool(re.search(region, source)) == exercise.hidden


# --- Blank, solved, wrong


@over("exercise", EXERCISES)
def test_the_blank_one_is_not_attempted(exercise):
    assert learner._is_blank(exercise, attempt(exercise, "exercises"))


@pytest.mark.filterwarnings("ignore")  # a learner's code may be warned
@each_exercise
def test_the_worked_solution_and_other_right_answers_are_correct(exercise):
    solved = attempt(exercise, "solutions")
    assert not learner._is_blank(exercise, solved)
    others = [answer for key, answer in ANSWERS + VALUES if key == exercise.key]
    for answer in (solved, *others):
        for hidden in {False, exercise.hidden}:
            verdict = judge.judge(exercise, answer, hidden=hidden, source=learner._source(answer))
            assert verdict == judge.Verdict(judge.CORRECT), answer


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("key", "answer"), WAYS_ROUND, ids=lambda value: getattr(value, "__name__", value))
def test_a_way_round_what_is_asked_for_is_refused(key, answer):
    verdict = judge.judge(EXERCISES_BY_KEY[key], answer, source=learner._source(answer))
    assert verdict.state == judge.NOT_YET and verdict.message


def test_other_right_answers_are_of_exercises():
    assert {key for key, _ in ANSWERS + VALUES + WAYS_ROUND} <= EXERCISES_BY_KEY.keys()


@pytest.fixture(scope="module", autouse=True)
def what_is_expected_is_found_out_once():
    """The oracle and all the rows of an exercise run for each attempt: here once for all of them."""
    run, known = judge.expected, {}

    def expected(exercise, hidden=False):
        if EXERCISES_BY_KEY.get(exercise.key) is not exercise:
            return run(exercise, hidden)
        for key in [key for key in known if key[0] in MEASURING and key[0] != exercise.key]:
            del known[key]
        if (exercise.key, hidden) not in known:
            gc.collect()
            gc.freeze()  # checks of memory collect a hundred times what is not wanted any more
            known[exercise.key, hidden] = run(exercise, hidden)
        return known[exercise.key, hidden]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "expected", expected)
        yield


@pytest.mark.parametrize("key", [key for lesson in exercises.lessons() for key in slips.table(lesson)])
def test_a_row_of_slips_is_of_an_exercise_and_does_not_hold_the_right_answer(key):
    row = slips.table(key[:2])[key]
    assert slips.signature(judge.expected(EXERCISES_BY_KEY[key]).right) not in row
    assert all(len(mark) == 12 and 1 <= len(says) <= 2 for mark, says in row.items())


@pytest.mark.filterwarnings("ignore")
@each_exercise
def test_usual_mistakes_are_named(exercise):
    verdicts = [judge.judge(exercise, wrong) for wrong, _ in exercise.wrong]
    assert [(verdict.state, verdict.message) for verdict in verdicts] == [
        (judge.NOT_YET, says) for _, says in exercise.wrong
    ]
    assert all(verdict.rows for verdict in verdicts)


@each_exercise
def test_a_wrong_entry_is_named_where_all_others_are_right(exercise):
    unnamed = []
    for place, rows in exercise.entries.items():
        for row in [rows] if isinstance(rows, str) else rows:
            if isinstance(row, str):
                continue
            answer = exercise.answer
            if isinstance(answer, dict):
                given = answer | {place: row[0]}
            else:
                given = [row[0] if number == place else entry for number, entry in enumerate(answer, start=1)]
            verdict = judge.judge(exercise, given)
            if verdict.state != judge.NOT_YET or not verdict.message.endswith(row[1]):
                unnamed.append((place, row, verdict))
    assert unnamed == []


@over("exercise", EXERCISES)
def test_entries_speak_of_places_that_there_are(exercise):
    answer = exercise.answer
    places = range(1, len(answer) + 1) if isinstance(answer, list | tuple) else answer
    assert not exercise.entries or isinstance(answer, set | frozenset) or set(exercise.entries) <= set(places)


@pytest.mark.filterwarnings("ignore")
@each_exercise
def test_who_lacks_a_property_is_told(exercise):
    for one in exercise.properties:
        verdict = judge.judge(exercise, one.example, source=learner._source(one.example))
        assert verdict.state == judge.NOT_YET and one.says in verdict.message.splitlines(), one.says


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exercise", [one for one in EXERCISES if one.hidden], ids=lambda exercise: exercise.key)
def test_the_hidden_steps_refuse_usual_mistakes_too(exercise):
    states = [judge.judge(exercise, wrong, hidden=True).state for wrong, _ in exercise.wrong]
    assert judge.NOT_YET in states


def test_a_check_that_fails_with_the_right_answer_says_so_and_calls_nothing_correct():
    def trial(double):
        yield "double of a tensor that cannot be made", double, engine.ones("three")

    def called(double):
        yield "double(None)", double, None

    exercise = EXERCISES[0]._replace(answer=lambda x: x * 2, wrong=())
    for broken in (trial, called):
        with pytest.raises(judge.CheckFailed, match="^TypeError with the right answer: "):
            judge.judge(exercise._replace(trial=broken), lambda x: x * 2)


# --- The notebooks


@each_blank
def test_nothing_in_the_exercise_notebook_gives_an_answer_away(job):
    stored = job.notebook.read_text(encoding="utf-8")
    assert "SOLUTION" not in stored and "HIDDEN" not in stored
    blank = words("\n".join(json.dumps(cell.metadata) + cell.source for cell in nbformat.reads(stored, 4).cells))
    for cell in read_source(job.source)[0].cells:
        given = words(REGION.sub("", cell.source))
        for region in REGION.findall(cell.source):
            # A line of it may stand in what is given, here or in another exercise; but never all of them.
            lines = [words(line) for line in region.splitlines() if not line.lstrip().startswith("#")]
            assert words(region) not in blank
            assert [line for line in lines if len(line) > 3 and line not in given and line not in blank], region


@each_blank
def test_the_exercise_notebook_holds_no_outputs(job):
    cells = [cell for cell in nbformat.read(job.notebook, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells if cell.outputs or cell.execution_count is not None] == []


@each_blank
def test_making_the_exercise_notebook_again_gives_the_same_bytes(job):
    assert nbformat.writes(build(job)) + "\n" == job.notebook.read_text(encoding="utf-8")


@each_blank
def test_the_blank_notebook_runs_to_its_end_and_every_check_says_not_attempted(job, tmp_path):
    nb = nbformat.read(job.notebook, as_version=4)
    execute(nb, tmp_path, allow_errors=True)
    raised = [[output.ename for output in cell.outputs if output.output_type == "error"] for cell in code(nb)]
    checks = [["NotAttempted"] if is_check(cell) else [] for cell in code(nb)]
    assert raised == checks
    # Only with this tag does a run of all cells go on after an error, in every program that shows notebooks.
    assert all("raises-exception" in cell.metadata.get("tags", []) for cell in code(nb) if is_check(cell))


@each_notebook
def test_the_notebook_carries_what_nbgrader_needs(job):
    validator = pytest.importorskip("nbgrader.nbgraderformat").MetadataValidator()
    nb = nbformat.read(job.notebook, as_version=4)
    validator.validate_nb(nb)
    points = {cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points for cell in code(nb) if is_check(cell)}
    of_lesson = exercises.of_lesson(job.name[:2]).values()
    assert points == {f"check-{exercise.key.replace('.', '-')}": exercise.points for exercise in of_lesson}


def code(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def is_check(cell) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))
