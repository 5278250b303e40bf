"""nbgrader with the course's settings, otherwise unchanged: what is released, and how submissions are graded."""

import os
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

pytest.importorskip("nbgrader")

from course import exercises
from course.notebooks import ROOT, kernel_environment

SETTINGS = ROOT / "course/jupyter/nbgrader_config.py"
NAME = "05_graph"
SOLVED = {key: exercises.cell(key, "solutions") for key in exercises.of_lesson("05")}
LOOP_SECONDS = 45  # for a cell; more than a check gives a function, by the clock


class Graded(NamedTuple):
    """What became of a submission."""

    points: dict[str, float]
    feedback: str


SUBMISSIONS = {
    "blank": {},
    "solved": SOLVED,
    "wrong": SOLVED
    | {
        # Right for the inputs that the check shows, and for no others: only the hidden test finds out.
        "05.2": "def count_nodes(node):\n"
        "    name = type(node).__name__\n"
        "    if name == 'AddBackward0':\n"
        "        first, second = (parent for parent, _ in node.next_functions)\n"
        "        return 9 if first is second else 4\n"
        "    return {'MulBackward0': 3, 'ExpBackward0': 3}[name]\n",
        "05.3": "def division_backward(arriving, x, y):\n    return 1 / y, -x / y**2",
        "05.5": "def gradient_at_scores(z, y):\n    return engine.sigmoid(z) - y",
    },
    "crashing": SOLVED
    | {
        "05.1": "raise RuntimeError('in the cell')",
        "05.3": "import os\n\ndef division_backward(arriving, x, y):\n    os._exit(1)",
    },
    "endless": SOLVED
    | {
        "05.3": "def division_backward(arriving, x, y):\n    while True:\n        pass",
        "05.5": "while True:\n    pass",
    },
    "cheating": {
        "05.1": "import course.learner\n\n"
        "course.check = course.learner.check = lambda *_, **__: None\nslopes = (1.0, 1.0)",
    },
}
POINTS = {
    "blank": {"05.1": 0, "05.2": 0, "05.3": 0, "05.4": 0, "05.5": 0},
    "solved": {"05.1": 1, "05.2": 2, "05.3": 1, "05.4": 2, "05.5": 1},
    "wrong": {"05.1": 1, "05.2": 0, "05.3": 0, "05.4": 2, "05.5": 0},
    "crashing": {"05.1": 0, "05.2": 2, "05.3": 0, "05.4": 2, "05.5": 1},
    "endless": {"05.1": 1, "05.2": 2, "05.3": 0, "05.4": 2, "05.5": 0},
    "cheating": {"05.1": 0, "05.2": 0, "05.3": 0, "05.4": 0, "05.5": 0},
}


@pytest.fixture(scope="module")
def grader(tmp_path_factory):
    """nbgrader's API over an empty class, with every lesson's solutions as sources."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    folder = tmp_path_factory.mktemp("class")
    settings = Config()
    runpy.run_path(str(SETTINGS), {"get_config": lambda: settings})
    settings.CourseDirectory.root = str(folder)
    settings.CourseDirectory.db_url = f"sqlite:///{(folder / 'gradebook.db').as_posix()}"
    settings.Execute.timeout = LOOP_SECONDS
    for notebook in (ROOT / "solutions").glob("*.ipynb"):
        (folder / "source" / notebook.stem).mkdir(parents=True)
        shutil.copy(notebook, folder / "source" / notebook.stem)
    with pytest.MonkeyPatch.context() as patch:
        for name, content in kernel_environment().items():
            patch.setenv(name, content)
        # It starts `alembic` to make its database.
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("profile")))
        yield NbGraderAPI(config=settings)


def succeeded(result):
    assert result["success"], result.get("log", "") + result.get("error", "")


def folder_of(grader, *parts):
    return Path(grader.coursedir.root).joinpath(*parts)


def released(grader, name):
    path = folder_of(grader, "release", name, f"{name}.ipynb")
    if not path.exists():
        succeeded(grader.generate_assignment(name))
    return nbformat.read(path, as_version=4)


def bare(cell):
    metadata = nbformat.from_dict(cell.metadata)
    for key in ("checksum", "cell_type"):  # nbgrader's own notes
        metadata.get("nbgrader", {}).pop(key, None)
    return cell.id, cell.cell_type, cell.source, metadata, cell.get("outputs", [])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", sorted((ROOT / "exercises").glob("*.ipynb")), ids=lambda path: path.stem)
def test_what_nbgrader_releases_is_the_courses_own_blank_notebook(grader, path):
    ours = nbformat.read(path, as_version=4)
    assert [bare(cell) for cell in released(grader, path.stem).cells] == [bare(cell) for cell in ours.cells]


def submit(grader, student, answers):
    nb = released(grader, NAME)
    for cell in nb.cells:
        cell.source = answers.get(cell.metadata.get("exercise"), cell.source)
    folder = folder_of(grader, "submitted", student, NAME)
    folder.mkdir(parents=True)
    nbformat.write(nb, folder / f"{NAME}.ipynb")


@pytest.fixture(scope="module")
def graded(grader):
    """The function that submits, grades and gives feedback, once for each submission."""
    from nbgrader.api import Gradebook

    done = {}

    def grade(student):
        if student not in done:
            submit(grader, student, SUBMISSIONS[student])
            succeeded(grader.autograde(NAME, student))
            succeeded(grader.generate_feedback(NAME, student))
            with Gradebook(grader.coursedir.db_url) as book:
                (notebook,) = book.find_submission(NAME, student).notebooks
                points = {grade.name.removeprefix("check-").replace("-", "."): grade.score for grade in notebook.grades}
            page = folder_of(grader, "feedback", student, NAME, f"{NAME}.html").read_text(encoding="utf-8")
            done[student] = Graded(points, page)
        return done[student]

    return grade


each_submission = pytest.mark.parametrize("student", SUBMISSIONS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@each_submission
def test_a_submission_gets_the_points_it_deserves(graded, student):
    assert graded(student).points == POINTS[student]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@each_submission
def test_feedback_shows_no_hidden_test(graded, student):
    page = re.sub(r"<[^>]+>", "", graded(student).feedback)
    assert "HIDDEN" not in page and "hidden=True" not in page
    assert "linspace" not in page and "doubled" not in page  # the hidden tests' inputs, and how they are made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("student", "says"),
    [
        ("blank", ["Exercise 05.1: not attempted yet.", "Exercise 05.5: not attempted yet."]),
        ("solved", ["Exercise 05.1: correct.", "Exercise 05.5: correct."]),
        ("wrong", ["Right for what was shown, and wrong for another input.", "Multiply each by what arrives."]),
        ("crashing", ["RuntimeError", "It brought Python itself to a stop"]),
        ("endless", ["It was stopped after 10 seconds.", "Exercise 05.4: correct."]),
    ],
)
def test_feedback_says_what_the_checks_said(graded, student, says):
    page = re.sub(r"<[^>]+>", "", graded(student).feedback)
    assert [part for part in says if part not in page] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cell_that_kills_the_kernel_fails_the_submission_and_gives_no_points(grader):
    from nbgrader.api import Gradebook

    submit(grader, "killer", SOLVED | {"05.3": "import os\nos._exit(1)"})
    result = grader.autograde(NAME, "killer")
    assert not result["success"] and "DeadKernelError" in result["log"]
    with Gradebook(grader.coursedir.db_url) as book:
        assert book.find_submission(NAME, "killer").score == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_check_that_was_edited_is_put_back_before_grading(grader):
    from nbgrader.api import Gradebook

    submit(grader, "editor", {})
    path = folder_of(grader, "submitted", "editor", NAME, f"{NAME}.ipynb")
    nb = nbformat.read(path, as_version=4)
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "pass"
    nbformat.write(nb, path)
    succeeded(grader.autograde(NAME, "editor"))
    with Gradebook(grader.coursedir.db_url) as book:
        assert book.find_submission(NAME, "editor").score == 0
