"""What the course's kernels add to IPython: tracebacks as they are stored, and cells that fail."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("ipykernel")

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from course.authoring import build
from course.base.notebooks import ROOT, kernel_environment
from course.kernel.kernels import OwnKernel
from course.kernel.shell import ANSI, FULL, Cells, is_library_frame

FAILS = """w = engine.tensor(2.0, requires_grad=True)
y = w * w
y.backward()
y.backward()"""
CELLS = (
    "import engine",
    FAILS,
    "import json\njson.loads('[')",
    "def mine():\n    raise KeyError('a')\n\nmine()",
    "1 +",
)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A function: the cells of a notebook as the course's lab leaves them, run one after the other."""
    folder = tmp_path_factory.mktemp("live")

    def run(*sources):
        from jupyter_client.manager import AsyncKernelManager

        nb = new_notebook(cells=[new_code_cell(source) for source in sources])
        manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=OwnKernel())
        resources = {"metadata": {"path": str(folder)}}
        limits = {"startup_timeout": 300, "iopub_timeout": 300}
        client = NotebookClient(nb, km=manager, allow_errors=True, resources=resources, **limits)
        env = kernel_environment() | {"UNDERTORCH_PROGRESS": str(folder / "progress"), "IPYTHONDIR": str(folder)}
        client.execute(cleanup_kc=True, env=env)
        return nb.cells

    return run


def traceback(cell):
    return next((ANSI.sub("", "\n".join(o.traceback)) for o in cell.outputs if o.output_type == "error"), None)


def test_a_live_traceback_is_the_one_that_is_stored(live, tmp_path):
    """And one setting brings the frames of the engine back."""
    stored = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    build.execute(stored, tmp_path, allow_errors=True)
    *shown, again, full = live(*CELLS, FAILS, f"%tb {FULL}")
    assert list(map(traceback, shown)) == list(map(traceback, stored.cells))
    assert "File " not in traceback(shown[2]) and "mine()" in traceback(shown[3])
    assert "backward.py" not in traceback(again) and "backward.py" in traceback(full)


def test_a_program_has_pythons_own_traceback(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"import engine\n{FAILS}\n", encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=kernel_environment())
    assert f'File "{program}", line 5, in <module>' in done.stderr
    assert str(ROOT / "engine") in done.stderr


def test_frames_of_libraries_are_told_from_the_learners_own(tmp_path):
    own = tmp_path / "helper.py"
    own.touch()
    kinds = {
        f"File {ROOT / 'engine/core/backward.py'}:12, in backward(root)\n     11 ...": True,
        f"File {subprocess.__file__}:5, in run": True,
        f"File {pytest.__file__}:5": True,
        "File <string>:3, in compiled(x)": True,
        f"File {own}:5, in help_me()": False,
        "Cell In[3], line 2\n      1 a": False,
        "KeyError: 'File a, b'": False,
    }
    assert {part: is_library_frame(part) for part in kinds} == kinds


COMPLETE = """import json

import engine
from IPython.core.completer import provisionalcompleter

get_ipython().Completer.jedi_compute_type_timeout = 10**6
x = engine.tensor([1.0, 2.0])


def completions(text):
    with provisionalcompleter():
        found = list(get_ipython().Completer.completions(text, len(text)))
    return {c.text: (c.type, c.signature) for c in found if not c.text.startswith("_")}


print(json.dumps({text: completions(text) for text in ("x.", "engine.", "engine.nn.functional.", "(x + 1).")}))
print(json.dumps([[n for n in dir(what) if n[0] != "_"] for what in (x, engine, engine.nn.functional)]))"""


def test_completion_knows_kinds_and_arguments(live):
    """Of what is there, and of what only the type stubs know of: the result of ``x + 1``."""
    (cell,) = live(COMPLETE)
    shown, there = map(json.loads, cell.outputs[0].text.splitlines())
    for text, names in zip(shown, there, strict=False):
        assert set(shown[text]) == set(names)
    assert shown["(x + 1)."]["exp"][0] == "function"
    for completions in shown.values():
        assert not [name for name, (kind, _) in completions.items() if kind == "<unknown>"]
        assert not [name for name, (kind, signature) in completions.items() if kind == "function" and not signature]
    assert shown["engine."]["exp"][1] == "(input, *, out=None)"
    assert shown["x."]["sum"][1] == "(dim=None, keepdim=False, *, dtype=None)"


BLANK = "def count_nodes(node):\n    ..."
RIGHT = nbformat.read(ROOT / "solutions/05_graph.ipynb", as_version=4)
ANSWER = next(cell.source for cell in RIGHT.cells if cell.metadata.get("exercise") == "05.2")
CHECK = 'from course import check\nimport engine\n\ncheck("05.2", count_nodes)'


def said(cell):
    return "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def test_a_check_does_not_judge_what_an_earlier_run_of_the_cell_made(live):
    pytest.importorskip("cloudpickle")
    wrong = "def count_nodes(node):\n    return 1"
    missing, _, right, _, failed, _, late, _, begun, _, whole = live(
        CHECK, ANSWER, CHECK, f"1 / 0\n{ANSWER}", CHECK, f"{BLANK}\n\n1 / 0", CHECK, f"{wrong}\nnone_of_this_name",
        CHECK, f"{ANSWER}\n1 / 0", CHECK,
    )  # fmt: skip
    assert traceback(missing) == "count_nodes is not there yet. Run the cell with your answer first, and then this one."
    assert said(right).startswith("Exercise 05.2: correct.")
    assert said(failed).startswith("Exercise 05.2: not checked.\nThe cell with your answer stopped with an error")
    assert said(late).startswith("Exercise 05.2: not attempted yet.")  # the cell failed after it had made its answer
    assert said(begun).startswith(
        "Exercise 05.2: not yet.\nThe cell with your answer stopped with NameError: name 'none_of_this_name' is not "
        "defined. This is about what it had made before:\n"
    )
    assert said(whole).startswith("Exercise 05.2: correct.")
    assert traceback(failed) is None and traceback(late) is None  # no red box says it once more


def test_a_name_is_left_by_a_cell_that_fails_until_one_makes_it():
    cells, space = Cells(), {}

    def run(source, success, **made):
        cells.begin(source, space)
        space.update(made)
        cells.end(success, space, None if success else NameError("no oh"))

    one, two = [1], [2]
    run("answer = [1]", True, answer=one)
    run("answer: list = oh(", False)
    run('check("01.1", answer)', True)
    assert cells.left_over(one) == "answer" and cells.left_over(two) is None
    run('check("01.2", other)', True)
    assert cells.left_over(one) is None  # an older object, but no cell names it here
    run("answer = [2]\noh", False, answer=two)
    run('check("01.1", answer)', True)
    assert cells.stopped(two) == "NameError: no oh" and cells.left_over(two) is None
    assert cells.stopped(one) == ""
    run("answer = [2]", True, answer=two)
    assert cells.stopped(two) == ""
    run('check("01.1", answer)', True)
    assert cells.left_over(two) is None
    assert Cells().missing_answer("answer") is None


def test_a_cell_that_asks_is_known_until_one_makes_the_answer_without():
    cells, space = Cells(), {}
    for number, (source, asks) in enumerate(
        (
            ("answer = [input()]", True),
            ("answer = [1]", False),
            ("answer = [int(input('How many? '))]", True),
            ("answer = [x.input(1)]", False),
            ("def answer(x):\n    return input(x)", True),
            ("answer = [my_input(1)]", False),
        )
    ):
        cells.begin(source, space)
        space["answer"] = [number]
        cells.end(True, space)
        cells.begin('check("01.1", answer)', space)
        cells.end(True, space)
        assert cells.asks(space["answer"]) == asks and not cells.asks([number])


def test_an_exercise_is_found_by_a_number_too():
    from course.judging.exercises import UnknownExercise, find

    assert find(5.2) is find("05.2") and find(11.1) is find("11.1")
    with pytest.raises(UnknownExercise, match=r"There is no exercise 5\. There are 01\.1"):
        find(5)
