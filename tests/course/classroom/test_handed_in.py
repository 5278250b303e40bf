"""What can be read of a notebook that broke on its way, and which of two counts."""

import difflib
import json
import os

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from over_tables import over
from traitlets.log import get_logger

from course.base.notebooks import ROOT
from course.classroom import handed_in
from course.judging import exercises

NAME = "05_graph"
SOLVED = (ROOT / f"solutions/{NAME}.ipynb").read_text(encoding="utf-8")
BLANK = (ROOT / f"exercises/{NAME}.ipynb").read_text(encoding="utf-8")
CELLS = nbformat.reads(SOLVED, as_version=4).cells
KEYS = sorted(exercises.of_lesson("05"))


def read(text):
    """What is said of a file, and the cells that are read."""
    head, *cells = handed_in.read_notebook(text if isinstance(text, bytes) else text.encode()).cells
    return head.source, cells


def answered(cells):
    return [cell.metadata.exercise for cell in cells if "exercise" in cell.metadata and "SOLUTION" in cell.source]


def lines(text=SOLVED):
    return text.split("\n")


def places(sign, text=SOLVED):
    return [number for number, line in enumerate(lines(text)) if sign in line]


def put(text, at, *more, cut=0):
    return "\n".join([*lines(text)[:at], *more, *lines(text)[at + cut :]])


def conflict(text, at, ours, theirs, cut=1, base=()):
    middle = ["||||||| 1234567", *base] if base else []
    return put(text, at, "<<<<<<< HEAD", *ours, *middle, "=======", *theirs, ">>>>>>> origin/main", cut=cut)


def same(cells, others):
    return [(cell.cell_type, cell.source, cell.metadata) for cell in cells] == [
        (cell.cell_type, cell.source, cell.metadata) for cell in others
    ]


COUNTS = places('"execution_count": ')
HEADS = places('"cell_type": ')


@over("base, end", [((), "\n"), (('   "execution_count": 3,',), "\r\n")])
def test_the_marks_of_a_conflict_cost_nothing(base, end):
    text = SOLVED
    for at in reversed(COUNTS):
        text = conflict(text, at, [lines()[at]], ['   "execution_count": 99,'], base=base)
    says, cells = read(text.replace("\n", end))
    assert says.startswith("**git has left the marks of a conflict in the file. Both versions could be read")
    assert same(cells, CELLS)


@over("turned", [False, True])
def test_of_two_versions_each_answer_is_taken_from_the_one_that_has_it(turned):
    theirs = nbformat.reads(SOLVED, as_version=4)
    ours = nbformat.reads(SOLVED, as_version=4)
    for number, key in enumerate(KEYS):
        for nb in (ours, theirs):
            for cell in nb.cells:
                if cell.metadata.get("exercise") == key and (number % 2 == (nb is ours)):
                    cell.source = exercises.cell(key, "exercises")
    first, second = (lines(nbformat.writes(nb)) for nb in ((theirs, ours) if turned else (ours, theirs)))
    text = []
    for what, a, b, c, d in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if what == "equal":
            text += first[a:b]
        else:
            text += ["<<<<<<< HEAD", *first[a:b], "=======", *second[c:d], ">>>>>>> main"]
    assert len(answered(nbformat.reads("\n".join(first), as_version=4).cells)) in (2, 3)
    _, cells = read("\n".join(text))
    assert answered(cells) == KEYS


DAMAGES = {
    "a line of something else": put(SOLVED, HEADS[4] + 1, "what is this"),
    "a mark that was left": put(SOLVED, HEADS[4] + 1, "<<<<<<< HEAD"),
    "two marks that were left": put(put(SOLVED, HEADS[9], ">>>>>>> main"), HEADS[4] + 1, "======="),
    "a comma too many": SOLVED.replace('   "cell_type": "code",', '   "cell_type": "code",,', 1),
    "a quotation mark too few": SOLVED.replace('"cell_type": "markdown",', '"cell_type": "markdown,', 3),
    "the head is gone": SOLVED[20:],
    "the end is gone": SOLVED[:-10],
    "the end is gone, in one line": json.dumps(json.loads(SOLVED))[:-10],
    "zeros after a crash": SOLVED[:-400] + "\0" * 400,
    "no brackets": SOLVED.replace('"cells": [', '"cells": ', 1),
    "both sides damaged": conflict(SOLVED, HEADS[5], ["what"], ["is this"]),
}


@over("damage", DAMAGES)
def test_reading_goes_on_after_a_damage(damage):
    says, cells = read(DAMAGES[damage])
    assert f"; {len(cells)} cells of it could be read. What is missing counts as not attempted." in says
    assert len(cells) >= len(CELLS) - 3
    assert [cell.source for cell in cells] == [
        cell.source for cell in CELLS if cell.source in {c.source for c in cells}
    ]
    assert len(answered(cells)) >= len(KEYS) - 1


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "The file is empty; nothing in it could be read."),
        (b" \n", "The file is empty; nothing in it could be read."),
        (b"<!DOCTYPE html>\n<html><body>Log in</body></html>", "The file is a web page, and no notebook"),
        (b"\n<HTML lang='en'>", "The file is a web page, and no notebook"),
        (b"print(1)", "The file is no whole notebook"),
        (b"[1]", "The file is no whole notebook"),
        (b"[" * 100_000, "The file is no whole notebook"),
        (b'{"cells": [' + b'{"cell_type":' * 100_000, "The file is no whole notebook"),
        (b'{"cells": [{"cell_type": "code", "source": 3}, {"cell_type": 1, "source": []}]', "nothing in it could be"),
        (b"<<<<<<< HEAD\n" * 100_000, "git has left the marks of a conflict in it; nothing in it could be read."),
        (b"\xff\xfe\x00", "nothing in it could be read."),
    ],
)  # fmt: skip
def test_what_is_no_notebook_is_called_by_its_name(data, says):
    told, cells = read(data)
    assert says in told and cells == []


# Which of several counts

ANSWER = next(cell.source for cell in CELLS if cell.metadata.get("exercise") == "05.3")


def notebook(text, change=lambda nb: None):
    nb = nbformat.reads(text, as_version=4)
    change(nb)
    return nbformat.writes(nb)


def one_answer(nb):
    next(cell for cell in nb.cells if cell.metadata.get("exercise") == "05.3").source = ANSWER


def run(nb):
    next(cell for cell in nb.cells if cell.cell_type == "code").execution_count = 9


def own_cell(nb):
    nb.cells.append(new_code_cell("6 * 7"))


KINDS = {
    "blank": BLANK,
    "solved": SOLVED,
    "one": notebook(BLANK, one_answer),
    "one, run": notebook(notebook(BLANK, one_answer), run),
    "own": notebook(BLANK, own_cell),
    "empty": "",
    "another": json.dumps(new_notebook(cells=[new_code_cell("6 * 7")])),
}
RIGHT, COPY = f"{NAME}.ipynb", f"{NAME} (1).ipynb"


@pytest.mark.parametrize(
    ("files", "counts", "told"),  # the files from old to new
    [
        ({RIGHT: "solved"}, "solved", ""),
        ({COPY: "solved"}, "solved", "was handed in as"),
        ({RIGHT: "solved", COPY: "blank"}, "solved", ""),
        ({COPY: "blank", RIGHT: "solved"}, "solved", ""),
        ({RIGHT: "blank", COPY: "solved"}, "solved", "does not count"),
        ({COPY: "solved", RIGHT: "blank"}, "solved", "does not count"),
        ({COPY: "one", RIGHT: "own"}, "one", "does not count"),
        ({COPY: "own", RIGHT: "blank"}, "own", "does not count"),
        ({RIGHT: "solved", COPY: "one"}, "one", "more than one notebook with answers"),
        ({COPY: "solved", RIGHT: "one"}, "one", "more than one notebook with answers"),
        ({"a.ipynb": "one", "b.ipynb": "solved", "c.ipynb": "blank"}, "solved", "more than one notebook with answers"),
        ({RIGHT: "one", COPY: "one, run"}, "one", ""),
        ({RIGHT: "empty", COPY: "one"}, "one", "does not count"),
        ({RIGHT: "one", COPY: "empty"}, "one", ""),
        ({RIGHT: "blank", "scratch.ipynb": "another"}, "blank", ""),
        ({RIGHT: "empty"}, "empty", ""),
    ],
)
def test_the_notebook_with_answers_counts_and_of_two_the_newer(tmp_path, monkeypatch, caplog, files, counts, told):
    monkeypatch.setattr(get_logger(), "propagate", True)  # a class in the same process has switched it off
    place = tmp_path / "submitted/somebody" / NAME
    place.mkdir(parents=True)
    for age, (name, kind) in enumerate(files.items()):
        (place / name).write_text(KINDS[kind], encoding="utf-8")
        os.utime(place / name, (1_000_000 + age, 1_000_000 + age))
    for _ in range(2):  # once more changes nothing
        notebooks = [str(path) for path in place.glob("*.ipynb")]
        caplog.clear()
        handed_in.rename(NAME, "somebody", notebooks)
        assert (place / RIGHT).read_text(encoding="utf-8") == KINDS[counts]
        assert notebooks == [str(place / RIGHT)]  # and nbgrader skips none that it does not know
        if _ == 0 or "more than one" in told:
            assert told in caplog.text and bool(told) == bool(caplog.text)
    kept = [path.read_text(encoding="utf-8") for path in place.glob("*.ipynb")]
    assert set(kept) == {KINDS[kind] for kind in files.values()}  # nothing is lost
    nb = handed_in.read_notebook((place / RIGHT).read_bytes())
    for _ in range(2):
        handed_in.tell_of_others(place / RIGHT, nb)
    assert sum("More than one notebook" in cell.source for cell in nb.cells) == ("more than one" in told)
