"""`validate --exercises`: notebooks with nbgrader's metadata, whoever wrote them."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from over_tables import over

pytest.importorskip("nbval")
pytest.importorskip("nbgrader")
pytest.importorskip("PIL")

from course.authoring.validation import main
from course.authoring.validation.exercises import given_away

TWICE = "def twice(x):\n    ### BEGIN SOLUTION\n    return x + x + 0\n    ### END SOLUTION"
TEST = "assert twice(2) == 4, 'Add it to itself'\n### BEGIN HIDDEN TESTS\nassert twice(3) == {}\n### END HIDDEN TESTS"
RIGHT = TEST.format(6)


def nbgrader(source, name, **notes):
    usual = {"grade": False, "grade_id": name, "locked": False, "schema_version": 3, "solution": False, "task": False}
    return new_code_cell(source, metadata={"nbgrader": usual | notes})


def answer(source=TWICE):
    return nbgrader(source, "twice", solution=True)


def test(source=RIGHT, name="test-twice"):
    return nbgrader(source, name, grade=True, locked=True, points=2)


test.__test__ = False


def judged(path, capsys, *cells, wrong=""):
    nbformat.write(new_notebook(cells=list(cells)), path)
    if wrong:
        path.with_name(f"{path.stem}.wrong.py").write_text(wrong, encoding="utf-8")
    code = main([str(path), "--only", "exercises"])
    found = [line.strip() for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert code == bool(found)
    return found


def test_what_blank_and_right_answers_earn(tmp_path, capsys):
    path = tmp_path / "a.ipynb"
    assert judged(path, capsys, answer(), test()) == []
    lenient, strict = test("twice", "lenient"), test(TEST.format(7), "strict")
    assert judged(path, capsys, answer(), lenient, strict) == [
        "code cell 2: exercises: a blank answer gets 2 of 2 points",
        "code cell 3: exercises: the solution gets 0 of 2 points (AssertionError: )",
    ]
    assert judged(path, capsys, answer(TWICE.partition("    ### END")[0]), test()) == [
        "the notebook: exercises: no end solution statement found"
    ]
    # What was released is tried without a solution, and a notebook without exercises not at all.
    assert judged(path, capsys, answer("# YOUR CODE HERE\nraise NotImplementedError()"), test("twice(2)")) == []
    assert judged(path, capsys, new_code_cell("1 / 0")) == []


def test_wrong_answers_lose_points_and_hear_their_words(tmp_path, capsys):
    wrong = """\
# %% of="twice" says="Add it to itself"
def twice(x): return x**3

# %% of="twice" says="No square"
def twice(x): return x**2

# %% of="twice"
def twice(x): return 2 * x

# %% of="thrice"
a = 1
"""
    assert judged(tmp_path / "a.ipynb", capsys, answer(), test(), wrong=wrong) == [
        "code cell 1: exercises: the wrong answer 'def twice(x): return x**2' is not told 'No square', but: nothing",
        "code cell 1: exercises: the wrong answer 'def twice(x): return 2 * x' earns as much as the solution",
        "the notebook: exercises: a.wrong.py: a cell says of='thrice'; there is twice",
    ]


def test_the_stub_and_the_marks_are_those_of_the_folder_s_own_settings(tmp_path, capsys):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.ClearSolutions.code_stub = {'python': 'x = 0'}\n")
    (tmp_path / "ps1").mkdir()
    found = judged(tmp_path / "ps1/a.ipynb", capsys, nbgrader("x = 1", "x", solution=True), test("x == 0 or 1 / 0"))
    assert found[0] == "code cell 2: exercises: a blank answer gets 2 of 2 points"


@over(
    "learners_see, told",
    [
        ("Write `return x + x  + 0` below.", ["cell 1 gives away what is taken out here: return x + x + 0"]),
        ("```python\nreturn x + x + 0\n```", ["cell 1 gives away what is taken out here: return x + x + 0"]),
        ("Return `x + x`.", []),
    ],
)
def test_an_answer_that_learners_see_is_told(learners_see, told):
    nb = new_notebook(cells=[new_markdown_cell(learners_see), answer()])
    released = new_notebook(cells=[new_markdown_cell(learners_see), answer("def twice(x):\n    ...")])
    assert [says for _, says in given_away(nb, released)] == told
    hidden = new_notebook(cells=[test()])
    assert [says for _, says in given_away(hidden, hidden)] == [
        "its own cell gives away what is taken out here: assert twice(3) == 6"
    ]
