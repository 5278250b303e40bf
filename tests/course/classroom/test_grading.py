"""nbgrader with the course's settings, otherwise unchanged: what is released, and how submissions are graded."""

import html
import json
import os
import re
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell
from over_tables import over

pytest.importorskip("nbgrader")

import engine
from course.base.notebooks import ROOT, kernel_environment
from course.classroom import deciding, grading
from course.judging import exercises, judge, sources
from course.process import judged, sandbox

SETTINGS = ROOT / "course/jupyter/nbgrader_config.py"
NAME = "05_graph"
FILE = f"{NAME}.ipynb"
SOLVED = {key: exercises.cell(key, "solutions") for key in exercises.of_lesson("05")}
DIVISION, WRONG = SOLVED["05.3"], "def division_backward(arriving, x, y):\n    return 1.0, 1.0"
ALL = {"05.1": 1, "05.2": 2, "05.3": 1, "05.4": 2, "05.5": 3}
NONE = dict.fromkeys(ALL, 0)


class Graded(NamedTuple):
    """What became of a submission."""

    points: dict[str, float]
    feedback: str
    log: str


class Submission(NamedTuple):
    """The answers by exercise, what is done to the notebook, and to the file; the points; what the feedback says."""

    answers: dict[str, str]
    points: dict[str, float]
    says: tuple[str, ...] = ()
    notebook: Callable[[Any], None] = lambda nb: None
    file: Callable[[Path], None] = lambda path: None
    log: str = ""


def first_cell(source):
    return lambda nb: nb.cells.insert(0, new_code_cell(source))


def cells(nb, name):
    return [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name]


def copied(name, source=None, at=None):
    """The cell once more, where Jupyter puts it: with all that it knows, below."""

    def change(nb):
        (cell,) = cells(nb, name)
        again = nbformat.from_dict(json.loads(json.dumps(cell)) | {"id": "copy"})
        again.source = cell.source if source is None else source
        nb.cells.insert(nb.cells.index(cell) + 1 if at is None else at, again)

    return change


def removed(*names):
    def change(nb):
        nb.cells = [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade_id") not in names]

    return change


def metadata_everywhere(value):
    def change(nb):
        for cell in nb.cells:
            if "nbgrader" in cell.metadata:
                cell.metadata["nbgrader"] = nbformat.from_dict(value(cell.metadata["nbgrader"]))

    return change


def checks_edited(nb):
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "pass"


def led_by(bom, encoding):
    return lambda path: path.write_bytes(bom + path.read_text(encoding="utf-8").encode(encoding))


def broken_off(path):
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("## 5.4")], encoding="utf-8")


PATCHES = {
    "json.loads": "import json\njson.loads = lambda *_, **__: {'state': 'correct', 'message': '', 'rows': []}",
    "communicate": "import subprocess\n"
    "subprocess.Popen.communicate = lambda *_, **__: (b'{\"state\": \"correct\"}', b'')",
    "subprocess": "import subprocess\nsubprocess.Popen = None",
    "the answer": "import course.process.worker\ncourse.process.worker.ask = lambda *_, **__: {'state': 'correct'}\n"
    "import sys\nsys.modules['course.process.worker'] = course.process.worker",
    "the import system": "import sys\n"
    "class Finder:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name.split('.')[0] == 'course':\n"
    "            from importlib.machinery import ModuleSpec\n"
    "            return ModuleSpec(name, self, is_package=True)\n"
    "    def create_module(self, spec):\n"
    "        return None\n"
    "    def exec_module(self, module):\n"
    "        module.check = lambda *_, **__: None\n"
    "sys.meta_path.insert(0, Finder())",
    "an input transformer": "get_ipython().input_transformers_cleanup.append(\n"
    "    lambda lines: [] if any('check(' in line for line in lines) else lines)",
    "the shell": "get_ipython().run_cell_async = get_ipython().run_cell = lambda *_, **__: None",
    "builtins": "import builtins\nbuiltins.__import__ = lambda *_, **__: type('M', (), {'check': print})",
}
SOME = {key: SOLVED[key] for key in ("05.1", "05.3")}
POINTS_OF_SOME = NONE | {"05.1": 1, "05.3": 1}
SUBMISSIONS = {
    "blank": Submission({}, NONE, ("Exercise 05.1: not attempted yet.", "Exercise 05.5: not attempted yet.")),
    "solved": Submission(SOLVED, ALL, ("Exercise 05.1: correct.", "Exercise 05.5: correct.")),
    "wrong": Submission(
        SOLVED
        | {
            # Right for the inputs that the check shows, and for no others: only the hidden test finds out.
            "05.2": "def count_nodes(node):\n"
            "    name = type(node).__name__\n"
            "    if name == 'AddBackward0':\n"
            "        first, second = (parent for parent, _ in node.next_functions)\n"
            "        depth = 1\n"
            "        while node.next_functions:\n"
            "            node, depth = node.next_functions[0][0], depth + 1\n"
            "        return depth if first is second else 4\n"
            "    return {'MulBackward0': 3, 'ExpBackward0': 3}[name]\n",
            "05.3": "def division_backward(arriving, x, y):\n    return 1 / y, -x / y**2",
            "05.5": "def each_node_once(root):\n    return {}",
        },
        ALL | {"05.2": 0, "05.3": 0, "05.5": 0},
        ("Right for the inputs that were shown, and wrong for another one.", "Multiply each by what arrives."),
    ),
    "crashing": Submission(
        SOME
        | {
            "05.1": "raise RuntimeError('in the cell')",
            "05.5": "import os\n\ndef each_node_once(root):\n    os._exit(1)",
        },
        NONE | {"05.3": 1},
        ("Its cell stopped with RuntimeError: in the cell", "It brought Python itself to a stop"),
    ),
    "killing": Submission(
        SOLVED | {"05.1": "import os\nos._exit(1)"},
        ALL | {"05.1": 0},
        ("It brought Python itself to a stop",),
    ),
    "endless": Submission(
        {"05.1": "while True:\n    pass", "05.3": DIVISION},
        NONE | {"05.3": 1},
        ("It was stopped after 10 seconds.", "Exercise 05.3: correct."),
    ),
    "checks edited": Submission(SOME | {"05.5": WRONG}, POINTS_OF_SOME, notebook=checks_edited),
    "checks removed": Submission(SOME, POINTS_OF_SOME, notebook=removed("check-05-1", "check-05-3", "exercise-05-2")),
    "a check copied": Submission(
        SOME, POINTS_OF_SOME, notebook=copied("check-05-3"), log="There are 2 cells with the name"
    ),
    "a check copied and changed": Submission(
        {"05.3": WRONG} | {"05.1": SOLVED["05.1"]}, NONE | {"05.1": 1}, notebook=copied("check-05-3", "pass", 0)
    ),
    "an answer copied": Submission(
        SOME | {"05.3": WRONG}, POINTS_OF_SOME, notebook=copied("exercise-05-3", DIVISION), log="one of them counts"
    ),
    "an answer copied, and left blank": Submission(
        SOME, POINTS_OF_SOME, notebook=copied("exercise-05-3", exercises.cell("05.3", "exercises"))
    ),
    "an answer without notes": Submission(SOME, POINTS_OF_SOME, notebook=metadata_everywhere(lambda notes: {})),
    "more points": Submission(SOME, POINTS_OF_SOME, notebook=metadata_everywhere(lambda n: n | {"points": 100})),
    "an old version": Submission(
        SOME, POINTS_OF_SOME, notebook=metadata_everywhere(lambda n: n | {"schema_version": 0})
    ),
    "Python's names": Submission(
        SOLVED,
        ALL,
        ("check, len, list: Python or the course uses this name.",),
        first_cell("list = [1]; check = None; len = 3"),
    ),
    "an answer in two cells": Submission(
        {"05.1": SOLVED["05.1"], "05.3": "def division_backward(arriving, x, y):\n    return rule(arriving, x, y)"},
        POINTS_OF_SOME,
        notebook=first_cell("def rule(g, x, y):\n    return g / y, -g * x / y**2"),
    ),
    "IPython's signs": Submission(
        SOME | {"05.3": f"%matplotlib inline\n!ls\nfrom course import hint\nhint('05.3')\n{DIVISION}"}, POINTS_OF_SOME
    ),
    "a BOM": Submission(SOME, POINTS_OF_SOME, file=led_by(b"\xef\xbb\xbf", "utf-8")),
    "UTF-16": Submission(SOME, POINTS_OF_SOME, file=led_by(b"\xff\xfe", "utf-16-le")),
    "renamed": Submission(
        SOME, POINTS_OF_SOME, file=lambda path: path.rename(path.with_name("graph (1).ipynb")), log="was handed in as"
    ),
    "two, and the blank one has the name": Submission(
        SOME,
        POINTS_OF_SOME,
        file=lambda path: (
            path.rename(path.with_name("graph (1).ipynb")),
            shutil.copy(ROOT / "exercises" / FILE, path),
        ),
        log="and does not count",
    ),
    "a web page": Submission(
        SOME,
        NONE,
        ("The file is a web page", "Exercise 05.1: not attempted yet."),
        file=lambda path: path.write_text("<!DOCTYPE html>\n<p>Log in</p>", encoding="utf-8"),
    ),
    "a conflict": Submission(
        SOME,
        POINTS_OF_SOME,
        ("git has left the marks of a conflict",),
        file=lambda path: path.write_text(
            path.read_text(encoding="utf-8").replace("{", "{\n<<<<<<< HEAD\n=======\n>>>>>>> main\n", 1),
            encoding="utf-8",
        ),
    ),
    "empty": Submission(SOME, NONE, ("The file is empty",), file=lambda path: path.write_bytes(b"")),
    "truncated": Submission(SOME, POINTS_OF_SOME, ("The file is no whole notebook",), file=broken_off),
    "no notebook": Submission(SOME, NONE, ("The file is no whole notebook",), file=lambda path: path.write_text("[1]")),
} | {f"patches {name}": Submission({"05.3": WRONG}, NONE, notebook=first_cell(code)) for name, code in PATCHES.items()}


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


@pytest.fixture(scope="module")
def graded(grader):
    """The function that submits, grades and gives feedback, once for each submission."""
    from nbgrader.api import Gradebook

    done = {}

    def grade(name):
        if name not in done:
            submission, student = SUBMISSIONS[name], re.sub(r"\W", "_", name)
            nb = released(grader, NAME)
            for cell in nb.cells:
                cell.source = submission.answers.get(cell.metadata.get("exercise"), cell.source)
            submission.notebook(nb)
            path = folder_of(grader, "submitted", student, NAME, FILE)
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(nb), encoding="utf-8")
            submission.file(path)
            result = grader.autograde(NAME, student)
            succeeded(result)
            assert "Skipping unknown notebook" not in result["log"]
            succeeded(grader.generate_feedback(NAME, student))
            with Gradebook(grader.coursedir.db_url) as book:
                (notebook,) = book.find_submission(NAME, student).notebooks
                waits = {grade.name for grade in notebook.grades if grade.name.startswith("written-")}
                assert waits == {"written-05-w1", "written-05-w2"}  # whatever came, they are there to be marked by hand
                points = {
                    grade.name.removeprefix("check-").replace("-", "."): grade.score
                    for grade in notebook.grades
                    if grade.name not in waits
                }
            page = folder_of(grader, "feedback", student, NAME, f"{NAME}.html").read_text(encoding="utf-8")
            done[name] = Graded(points, re.sub(r"<[^>]+>", "", page), result["log"])
        return done[name]

    return grade


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_submission_gets_the_points_it_deserves_and_a_sentence_but_no_hidden_test(graded, name):
    points, feedback, log = graded(name)
    assert points == SUBMISSIONS[name].points
    assert [part for part in SUBMISSIONS[name].says if part not in html.unescape(feedback)] == []
    assert SUBMISSIONS[name].log in log
    assert "HIDDEN" not in feedback and "hidden=True" not in feedback
    assert "sums(" not in feedback and "doubled" not in feedback  # the hidden tests' inputs, and how they are made


# --- The process that runs an answer


def verdict(answer, *above, key="05.3", name="division_backward"):
    return grading.decide(grading.Check(key, name, True, [answer], [*above, answer]))


OUTSIDE = f"""
import os, socket, sys, tempfile
def attempt(what):
    try:
        return what()
    except OSError:
        return "no"
def division_backward(arriving, x, y):
    print("user", os.getuid(), os.getgroups() if os.getuid() else "")
    print("reads", attempt(lambda: open({str(ROOT / "course/lessons/05_graph/checks.py")!r}).read()))
    print("lists", attempt(lambda: os.listdir({str(Path.home())!r})))
    print("writes", attempt(lambda: open({str(ROOT / "written")!r}, "w")))
    print("signals", attempt(lambda: os.kill(os.getppid(), 0)))
    print("connects", attempt(lambda: socket.create_connection(("127.0.0.1", 9), 1)))
    print("own", attempt(lambda: open("mine", "w").close()), [name for name in os.environ if name == "A_SECRET"])
    return 1.0, 1.0
"""


@pytest.mark.slow
@pytest.mark.skipif(not sandbox.locks_files(), reason="needs Linux with Landlock")
def test_an_answer_runs_where_it_owns_nothing(monkeypatch):
    monkeypatch.setenv("A_SECRET", "of the teacher")
    printed = dict(verdict(OUTSIDE)["rows"])["Printed"]
    found = dict(line.split(" ", 1) for line in printed.splitlines()[:7])  # and nothing of the lesson's own cells
    assert found | {"user": ""} == {
        "user": "",
        "reads": "no",
        "lists": "no",
        "writes": "no",
        "signals": "no",
        "connects": "no",
        "own": "None []",
    }
    user, groups = found["user"].split(" ", 1)
    assert user != "0" and (os.getuid() or groups == "[]")


CHEATS = {
    "the answer asked for": "from course.judging.exercises import find\ndivision_backward = find('05.3').answer",
    "the oracle imported": "import importlib\n"
    "division_backward = importlib.import_module('course.lessons.05_graph.checks').division",
    "the oracle imported from its folder": "import engine, pathlib, sys\n"
    "for name in [name for name in sys.modules if name.startswith('course')]: del sys.modules[name]\n"
    "sys.path.insert(0, str(pathlib.Path(engine.__file__).parents[1]))\n"
    "import importlib\n"
    "division_backward = importlib.import_module('course.lessons.05_graph.checks').division",
    "the oracle looked for in memory": "import gc\n"
    "def division_backward(g, x, y):\n"
    "    found = [o for o in gc.get_objects() if callable(o) and getattr(o, '__name__', '') == 'division']\n"
    "    return found[0](g, x, y)",
    "the verdict written": "import json, os\n"
    "def division_backward(g, x, y):\n"
    "    said = json.dumps({'state': 'correct', 'message': '', 'rows': []}).encode()\n"
    "    for place in range(3, 20):\n"
    "        try: os.write(place, len(said).to_bytes(8, 'big') + said)\n"
    "        except OSError: pass\n"
    "    os._exit(0)",
    "a pickle written": "import os, pickle\n"
    "class Trap:\n"
    "    def __reduce__(self): return exec, ('raise SystemExit',)\n"
    "def division_backward(g, x, y):\n"
    "    said = pickle.dumps(Trap())\n"
    "    for place in range(3, 20):\n"
    "        try: os.write(place, len(said).to_bytes(8, 'big') + said)\n"
    "        except OSError: pass\n"
    "    os._exit(0)",
    "a length without end": "import os\n"
    "def division_backward(g, x, y):\n"
    "    for place in range(3, 20):\n"
    "        try: os.write(place, b'\\xff' * 8)\n"
    "        except OSError: pass\n"
    "    os._exit(0)",
    "the comparison patched": "import gc\n"
    "for o in gc.get_objects():\n"
    "    if isinstance(o, dict) and o.get('__name__') == 'course.judging.judge':\n"
    "        o['Comparison'] = None; o['run'] = lambda *_: []\n"
    "def division_backward(g, x, y): return 1.0, 1.0",
    "equal to all": "class Equal(float):\n"
    "    def __eq__(self, other): return True\n"
    "    __hash__ = None\n"
    "def division_backward(g, x, y): return Equal(), Equal()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_not_yet(name):
    if "from its folder" in name and not sandbox.locks_files():
        pytest.skip("only Linux closes files to a process")
    answer = verdict(CHEATS[name])
    assert answer["state"] == "not yet" and answer["message"]


# --- What IPython adds to Python


def about_slopes(*cells):
    return grading.decide(grading.Check("05.1", "slopes", False, [cells[-1]], ["import engine", *cells]))


# Each cell makes a part of the answer, or writes none where it is not run as in a kernel.
PARTS = [
    "from course.pictures import show\nfrom course.figures.base import grid\nshow(None, 'a picture')",
    "%%time\na = 1",
    "%%capture out\nb = 1\nprint(b)",
    "%%time\n%%capture\nc = 1",
    "%time d = 1",
    "e = %time 1",
    "if a:\n    %time f = 1",
    "words = !echo 1\ng = int(words[0])",
    "!echo 1\na?\n%who\n%matplotlib inline\n%autosave 60\n%load_ext autoreload\n%cd -q .\nh = 1",
    "import asyncio\nawait asyncio.sleep(0)\ni = 1",
    ">>> j = 1",
    "    k = 1",
    "%%writefile mine.py\nl = 1",
    "from mine import l",
    "1",
    "m = _",
    "n = int(out.stdout)",
    "from IPython import get_ipython\nget_ipython().run_line_magic('time', 'o = 1')",
    "from IPython.display import display\ndisplay(1)\np = 1",
    "%%prun -q\nq = 1",
    "%env A=1\nr = 1",
    "%%sh\necho 1",
    "s = 1",
]


def test_what_a_kernel_runs_grading_runs():
    parts = "abcdefghijklmnopqrs"
    answer = f"%%time\nparts = [{', '.join(parts)}]\nslopes = (7.0, 2.0) if sum(parts) == {len(parts)} else None"
    verdict = about_slopes(*PARTS, answer)
    assert verdict["state"] == "correct", verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["%%time\n1 / 0\nslopes = (7.0, 2.0)"], "Its cell stopped with ZeroDivisionError"),
        (["%%capture\n1 / 0\nslopes = (7.0, 2.0)"], "Its cell stopped with ZeroDivisionError"),
        (["%nothing_of_this_name\nslopes = (7.0, 2.0)"], "Its cell stopped with UsageError: Line magic function"),
        (["%%timeit -n1 -r1\nslopes = (7.0, 2.0)"], "There is no `slopes` after its cell has run"),
        (["1 / 0", "other = (7.0, 2.0)"], "There is no `slopes` after its cell has run"),
        (["slopes = (float(input()), 2.0)"], "nobody answers `input` where this is graded"),
        (["slopes = (7.0, 2.0"], "Its cell stopped with SyntaxError"),
        (["!cat\nslopes = (2.0, 7.0)"], "in the opposite order"),
    ],
)
def test_what_a_kernel_does_not_run_is_said(cells, says):
    verdict = about_slopes(*cells)
    assert verdict["state"] == "not yet" and says in verdict["message"]


@over(
    "source, python",
    [
        ("%%time\nx = 1\n", "x = 1\n"),
        ("\n%%capture out\n%%time\nx = 1\n", "x = 1\n"),
        ("%time x = 1\n", "x = 1\n"),
        ("if y:\n    x = %time f(y)\n", "if y:\n    x = f(y)\n"),
        ("!ls\nx = 1\n", "get_ipython().system('ls')\nx = 1\n"),
        ("x = 'a %time b'\n", "x = 'a %time b'\n"),
    ],
)
def test_a_cell_is_looked_at_without_what_times_it(source, python):
    assert sources.as_python(source) == python


@over("source", ["x = 1\0", "x = " + "1 + " * 20_000 + "1", "-" * 200_000 + "1", "(" * 5_000, "\ud800"])
def test_a_text_that_python_cannot_read_is_no_trouble_of_gradings(source):
    assert grading.hiding(source) == [] and not sources.is_blank([source], "...")


# --- What was not attempted, and whose output is told

BLANK = exercises.cell("05.2", "exercises")


@over(
    "answer", [[], [""], ["# later"], ["..."], ["pass"], [BLANK], [f"%%time\n{BLANK}"], [BLANK.replace("...", "pass")]]
)
def test_a_missing_or_an_empty_cell_is_not_attempted(answer):
    check = grading.Check("05.2", "count_nodes", True, answer, ["import engine", *answer])
    assert grading.decide(check) == {"state": "not attempted"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "name", "answer", "others", "state", "says"),
    [
        ("05.1", "slopes", [], ["1 / 0", "print(slopes)"], "not attempted", ""),
        ("05.2", "count_nodes", [BLANK], ["import engine\ncount_nodes(engine.ones(1).grad_fn)"], "not attempted", ""),
        ("05.1", "slopes", [], ["slopes = (7.0, 2.0)"], "correct", ""),
        ("05.1", "slopes", ["..."], ["exec('slopes = (7.0, 2.0)')"], "correct", ""),
        ("05.1", "slopes", [], ["1 / 0\nslopes = (7.0, 2.0)"], "not yet", "Its cell stopped with ZeroDivisionError"),
        ("05.1", "slopes", ["# below"], ["%time slopes = (2.0, 7.0)"], "not yet", "in the opposite order"),
    ],
)
def test_an_answer_elsewhere_counts_and_a_cell_that_speaks_of_it_is_none(key, name, answer, others, state, says):
    found = grading.decide(grading.Check(key, name, False, answer, [*answer, *others]))
    assert found["state"] == state and says in found.get("message", "")


@pytest.mark.slow
def test_only_what_the_answer_prints_stands_below_it():
    answer = "print('mine')\ndef division_backward(g, x, y):\n    print('called')\n    return 1.0, 1.0"
    printed = dict(verdict(answer, "print('of another')")["rows"])["Printed"].splitlines()
    assert printed[0] == "mine" and set(printed[1:]) <= {"called", "..."}


def part(key, name, source):
    check = grading.Check(key, name, exercises.find(key).hidden, [source], [source])
    return grading.partial(check, grading.decide(check), exercises.find(key).points)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "name", "source", "points"),
    [
        ("17.1", "left", "left = (4, 0, 4, 8, 4, 0)", 0.5),  # five of six entries
        ("17.1", "left", "left = (4, 4, 4, 4, 4, 4)", 0),  # says the same everywhere
        ("06.1", "filled", "filled = {'a', 'd', 'e', 'f'}", 0.5),
        ("05.1", "slopes", "slopes = (2.0, 7.0)", 0),
        ("05.3", "division_backward", "def division_backward(g, x, y):\n    return g / y, g * x / y**2", 0),
        ("05.3", "division_backward", "def division_backward(g, x, y):\n    return 1.0, 1.0", 0),
        ("13.1", "count", "def count(model):\n    return sum(p.numel() for p in model.parameters())", 0.5),
    ],
)
def test_what_is_right_in_part_has_a_part_of_the_points(key, name, source, points):
    assert part(key, name, source) == points


@pytest.mark.slow
def test_what_an_answer_leaves_running_ends_with_it():
    import psutil

    sign = f"left behind by {os.getpid()}"
    started = (
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {sign!r}], "
    )
    assert verdict(f"{started}start_new_session=True)\n{DIVISION}")["state"] == "correct"
    assert not [process for process in psutil.process_iter(["cmdline"]) if sign in (process.info["cmdline"] or [])]


# --- What nbgrader is given, without running anything


@over(
    "key, state, share, points, part",
    [
        ("05.1", "not yet", 0.4, 1, 0),  # a value: in halves of a point, and never all of them
        ("05.1", "not yet", 0.5, 1, 0.5),
        ("05.1", "not yet", 1, 2, 1.5),
        ("05.1", "correct", 1, 2, 0),
        ("05.1", "not attempted", 0, 2, 0),
        ("05.3", "not yet", 0.6, 3, 0),  # a function: half, if it does most
        ("05.3", "not yet", 2 / 3, 3, 1.5),
        ("05.3", "not yet", 1, 1, 0.5),
    ],
)
def test_a_part_of_the_points_is_counted_in_halves(key, state, share, points, part):
    check = grading.Check(key, "answer", False, [], [])
    answer = {"state": state, "share": share, "message": "Look.", "rows": [("Got", "1"), ("Input", "")]}
    assert grading.partial(check, answer, points) == part
    message, *more = grading.outputs(check, answer, points)
    text = message.data["text/plain"]
    assert text.startswith(f"Exercise {key}: {'not attempted yet' if state == 'not attempted' else state}.\n")
    assert ("Got: 1" in text, f"{points} points." in text) == (state == "not yet", state == "correct")
    assert f"{part:g} of {points:g} points: " in text if part else "points: " not in text
    # To nbgrader a number is the points, an error none, and nothing else all.
    given = [output.data["text/plain"] if output.output_type == "execute_result" else output.ename for output in more]
    assert given == ([f"{part:g}"] if part else [] if state == "correct" else ["NotYet"])


@over(
    "key, share, why",
    [
        ("05.1", 0.5, "some of the entries are right."),
        ("05.3", 0.9, "most of the results are right."),
        ("05.3", 1, "the results are right, but not the way to them."),
    ],
)
def test_a_part_of_the_points_has_its_reason(key, share, why):
    assert grading._why(grading.Check(key, "answer", False, [], []), {"share": share}) == why


@over(
    "source, names",
    [
        ("len = 3", ["len"]),
        ("%time max = 1", ["max"]),
        ("a, (list, x[0]) = 1, (2, 3)", ["list"]),
        ("len: int = 3\nsum += 1", ["len", "sum"]),
        ("def check(): ...\nclass hint: ...", ["check", "hint"]),
        ("x.len = len(y)\nprint(max)", []),
    ],
)
def test_a_name_that_a_cell_takes_from_python_or_the_course_is_found(source, names):
    assert grading.hiding(source) == names


def a_notebook(check, *others):
    """One cell of checks below others: (source, name of nbgrader's, exercise)."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("division_backward")])
    for source, grade_id, key in [*others, (check, "check-05-3", None)]:
        notes = {"nbgrader": {"grade_id": grade_id, "grade": grade_id == "check-05-3"}} if grade_id else {}
        nb.cells.append(new_code_cell(source, metadata=notes | ({"exercise": key} if key else {})))
    return nb


@over(
    "check, others, found",
    [
        ('check("05.3", f)', [("a", "exercise-05-3", "05.3"), ("b", None, "05.3"), ("c", None, None)],
         ("05.3", "f", False, ["a"], ["a", "b", "c"], False)),
        ('check("5.3", f, hidden=True)', [("a", None, "05.3"), ("b", None, "05.3")],
         ("05.3", "f", True, ["b"], ["a", "b"], False)),
        ('print(1)\ncheck(5.3, f(1), sealed="exact-1-2")', [("c", None, "05.1")],
         ("05.3", "f(1)", False, [], ["c"], True)),
        ("check(key, f)", [], None),
        ('check("05.3")', [], None),
        ('hint("05.3", 1)', [], None),
        ("check(", [], None),
    ],
)  # fmt: skip
def test_what_a_cell_of_checks_asks_is_read_from_it(check, others, found):
    nb = a_notebook(check, *others)
    place = len(nb.cells) - 1
    nb.cells.append(new_code_cell("below = 1"))
    asked = grading.check_of(nb, place)
    assert (asked and asked[:6]) == found
    if found is None:
        (error,) = grading.grade_cell(nb, place, own=str)
        assert error.output_type == "error" and "give its points by hand" in error.evalue


def test_of_copies_the_first_check_and_the_last_filled_answer_count():
    def known(name, source, kind="code"):
        return SimpleNamespace(name=name, source=source, cell_type=kind, locked=name in points, checksum="5")

    points, solutions = {"check": 2.0, "gone": 1.0}, {"answer", "words", "lost"}
    source = [known("answer", "..."), known("words", "Write", "markdown"), known("check", "c"), known("gone", "g")]
    source.append(known("lost", "..."))  # an answer that is missing is none
    cells = [("a", "answer"), ("b", "answer"), ("...", "answer"), ("c", "check"), ("d", "check"), ("x", "stranger"),
             ("Write", "words"), ("y", ["answer"])]  # fmt: skip
    nb = a_notebook("print()", *((text, None, None) for text, _ in cells))
    for cell, (_, name) in zip(nb.cells[1:], cells, strict=False):
        cell.metadata["nbgrader"] = {"grade_id": name}
    assert grading.tidy(nb, source, points, solutions) == [
        "There are 3 cells with the name answer: one of them counts.",
        "There are 2 cells with the name check: one of them counts.",
        "The cell gone was missing, and was added at the end.",
    ]
    notes = {c.source: c.metadata["nbgrader"] for c in nb.cells if "nbgrader" in c.metadata}
    assert {text: note["grade_id"] for text, note in notes.items()} == {
        "b": "answer", "Write": "words", "c": "check", "g": "gone",
    }  # fmt: skip
    assert notes["b"] == {"grade_id": "answer", "locked": False, "schema_version": 3, "task": False, "grade": False,
                          "solution": True, "checksum": "5"}  # fmt: skip
    assert (notes["c"]["points"], notes["c"]["grade"], notes["c"]["locked"]) == (2.0, True, True)


@over("key", [key for lesson in exercises.lessons() for key in exercises.of_lesson(lesson)])
def test_the_steps_go_without_the_oracle(key):
    exercise = exercises.find(key)
    for hidden in [False] + [True] * exercise.hidden:
        assert deciding.packed(exercise, hidden)


VALUES = [True, 7, 0.1, float("nan"), 1 + 2j, "a", None, ..., [1, (2.0, {"b": np.arange(3)})], {1, "x"}, print]
VALUES += [engine.arange(6.0).reshape(2, 3), engine.ones(2, dtype=engine.bfloat16), np.zeros((0, 2)), object()]


@over("value", VALUES)
def test_values_come_back_as_they_were(value):
    was = judge.tried(exercises.given, value, False)
    reply = judged.read(judged.written(judged.Reply(was, None, "")))
    (seen,), (came,) = was.seen, reply.attempt.seen
    assert judge.Comparison(1e-9).seen(came, seen)
    assert came.result.text == seen.result.text


@over("data", [
        b"", b"[]", b"null", b"\xff", b"{" * 100000, b'{"attempt": {}}', b'{"attempt": 1, "cell": null, "printed": ""}',
        *(
            json.dumps({"attempt": {"kind": "", "hidden_names": [], "seen": [[value, {}, {}, []]]},
                        "cell": None, "printed": ""}).encode()
            for value in (
                ["tensor", ["O", [1], "AAAAAAAAAAA="], "", [1], "", "cpu"],
                ["tensor", ["<f8", [10**12], ""], "", [1], "", "cpu"],
                ["tensor", 1.0, "", [], "", ""],
                ["float", "1", "", [], "", ""],
                ["int", 1, None, [], "", ""],
                ["list", 3, "", [], "", ""],
                ["other", {"a": 1}, "", [], "", ""],
            )
        ),
    ])  # fmt: skip
def test_what_is_no_reply_is_refused(data):
    with pytest.raises(ValueError, match="no reply"):
        judged.read(data)
