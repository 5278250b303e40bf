"""A learner's copies of the exercises: made once, never overwritten, and begun anew only with a backup."""

import io
import json
import multiprocessing
import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

pytest.importorskip("filelock")

from course import copies
from course.environment import Problem

NAME = "05_graph.ipynb"


def blank(root: Path, text: str = "# Exercises", name: str = NAME) -> Path:
    """The course's own notebook, as a build makes it."""
    nb = new_notebook(cells=[new_markdown_cell(text, id="a"), new_code_cell("def twice(x):\n    ...", id="b")])
    nb.metadata["undertorch"] = {"blank": copies.digest(nb.cells)}
    path = root / "exercises" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(nbformat.writes(nb), encoding="utf-8")
    return path


def mine(root: Path) -> Path:
    return root / "my_exercises" / NAME


def work(path: Path, source: str = "def twice(x):\n    return 2 * x") -> bytes:
    """Do something in a notebook, and return what it holds then."""
    nb = nbformat.read(path, as_version=4)
    nb.cells[1].source = source
    nbformat.write(nb, path)
    return path.read_bytes()


def backups(root: Path) -> list[Path]:
    return sorted((root / "my_exercises/backups").glob("*.ipynb"))


def test_a_start_makes_a_copy_of_the_blank_notebook(tmp_path):
    source = blank(tmp_path)
    assert copies.start("5", tmp_path) == mine(tmp_path)
    assert mine(tmp_path).read_bytes() == source.read_bytes()


def test_the_lab_makes_a_copy_of_every_lessons_exercises(tmp_path):
    blank(tmp_path)
    blank(tmp_path, name="06_rules.ipynb")
    copies.start_all(tmp_path)
    assert sorted(path.name for path in (tmp_path / "my_exercises").glob("*.ipynb")) == [NAME, "06_rules.ipynb"]


def test_without_exercises_the_lab_makes_no_folder(tmp_path):
    copies.start_all(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_second_start_leaves_what_was_done(tmp_path):
    blank(tmp_path)
    done = work(copies.start("05", tmp_path))
    copies.start_all(tmp_path)
    assert mine(tmp_path).read_bytes() == done


def test_a_revised_exercise_replaces_a_copy_in_which_nothing_was_done(tmp_path, capsys):
    blank(tmp_path)
    copies.start_all(tmp_path)
    new = blank(tmp_path, "# Revised")
    copies.start_all(tmp_path)
    assert mine(tmp_path).read_bytes() == new.read_bytes()
    assert capsys.readouterr() == ("", "")


def test_a_revised_exercise_leaves_a_copy_that_was_begun_and_says_how_to_get_the_new_one(tmp_path, capsys):
    blank(tmp_path)
    done = work(copies.start("05", tmp_path))
    blank(tmp_path, "# Revised")
    copies.start_all(tmp_path)
    assert mine(tmp_path).read_bytes() == done
    assert "-m course reset 05" in capsys.readouterr().err


@pytest.mark.parametrize("sign", ["source", "output", "run", "new cell", "unknown", "broken"])
def test_anything_done_in_a_copy_counts_as_begun(tmp_path, sign):
    path = blank(tmp_path)
    assert not copies.begun(path)
    nb = nbformat.read(path, as_version=4)
    if sign == "source":
        nb.cells[1].source += " "
    elif sign == "output":
        nb.cells[1].outputs = [new_output("stream", text="a")]
    elif sign == "run":
        nb.cells[1].execution_count = 1
    elif sign == "new cell":
        nb.cells.append(new_markdown_cell(""))
    elif sign == "unknown":
        del nb.metadata["undertorch"]
    nbformat.write(nb, path)
    if sign == "broken":
        path.write_text("{")
    assert copies.begun(path)


def test_metadata_that_an_editor_adds_do_not_count(tmp_path):
    path = blank(tmp_path)
    nb = nbformat.read(path, as_version=4)
    nb.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nb.metadata["widgets"] = {}
    nbformat.write(nb, path)
    assert not copies.begun(path)


def test_work_done_in_the_courses_own_notebook_becomes_the_learners_copy(tmp_path, capsys):
    done = work(blank(tmp_path))
    copies.start_all(tmp_path)
    assert mine(tmp_path).read_bytes() == done
    assert "my_exercises" in capsys.readouterr().err


def test_work_done_in_the_courses_own_notebook_does_not_replace_the_learners_copy(tmp_path):
    path = blank(tmp_path)
    done = work(copies.start("05", tmp_path))
    work(path, "something else")
    copies.start_all(tmp_path)
    assert mine(tmp_path).read_bytes() == done


def test_a_build_keeps_what_was_done_in_the_courses_own_notebook(tmp_path, capsys):
    pytest.importorskip("nbgrader")
    from course import build

    text = tmp_path / "source/solutions/05_graph.md"
    text.parent.mkdir(parents=True)
    text.write_text("# Exercises\n\n```{code-cell} ipython3\na = 1\n```\n", encoding="utf-8")
    (job,) = (job for job in build.jobs(tmp_path) if job.target.blank)
    build._build([job])
    assert backups(tmp_path) == []
    done = work(job.notebook)
    capsys.readouterr()
    build._build([job])
    (backup,) = backups(tmp_path)
    assert backup.read_bytes() == done
    assert backup.name in capsys.readouterr().out
    assert not copies.begun(job.notebook)


# Beginning anew


def test_a_reset_keeps_a_backup(tmp_path, capsys):
    source = blank(tmp_path)
    done = work(copies.start("05", tmp_path))
    assert copies.main_reset(["5", "--yes"], tmp_path) == 0
    assert mine(tmp_path).read_bytes() == source.read_bytes()
    (backup,) = backups(tmp_path)
    assert backup.read_bytes() == done
    assert f"my_exercises/backups/{backup.name}" in capsys.readouterr().out


def test_two_resets_in_a_second_keep_two_backups(tmp_path):
    blank(tmp_path)
    copies.start("05", tmp_path)
    done = []
    for source in ("first", "second", "third"):
        done.append(work(mine(tmp_path), source))
        copies.reset("05", tmp_path)
    assert sorted(path.read_bytes() for path in backups(tmp_path)) == sorted(done)


def test_a_reset_of_a_copy_in_which_nothing_was_done_keeps_no_backup(tmp_path):
    blank(tmp_path)
    copies.start("05", tmp_path)
    assert copies.reset("05", tmp_path) is None
    assert backups(tmp_path) == []


class Terminal:
    """Standard input with somebody before it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "anew"), [("", False), ("n", False), ("no way", False), ("y", True), (" Yes ", True)]
)
def test_a_reset_asks(tmp_path, monkeypatch, answer, anew):
    source = blank(tmp_path)
    done = work(copies.start("05", tmp_path))
    monkeypatch.setattr(sys, "stdin", Terminal())
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: (asked.append(question), answer)[1])
    assert copies.main_reset(["05"], tmp_path) == (0 if anew else 1)
    assert mine(tmp_path).read_bytes() == (source.read_bytes() if anew else done)
    assert NAME in asked[0]


def test_a_reset_without_anybody_to_ask_changes_nothing(tmp_path, monkeypatch):
    blank(tmp_path)
    done = work(copies.start("05", tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(Problem, match="--yes"):
        copies.main_reset(["05"], tmp_path)
    assert mine(tmp_path).read_bytes() == done


@pytest.mark.parametrize("lesson", ["6", "rules", "", "../05_graph"])
def test_an_unknown_lesson_is_refused_with_those_there_are(tmp_path, lesson):
    blank(tmp_path)
    with pytest.raises(Problem, match="05_graph"):
        copies.start(lesson, tmp_path)


@pytest.mark.parametrize("lesson", ["5", "05", "graph", "05_graph"])
def test_a_lesson_is_named_by_number_or_name(tmp_path, lesson, capsys):
    blank(tmp_path)
    assert copies.main_start([lesson], tmp_path) == 0
    assert capsys.readouterr().out.strip() == str(mine(tmp_path))


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path):
    blank(tmp_path)
    (tmp_path / "my_exercises").touch()
    with pytest.raises(Problem, match="my_exercises"):
        copies.start("05", tmp_path)


def begin(root: Path, barrier) -> None:
    barrier.wait(60)
    work(copies.start("05", root), f"done by {os.getpid()}")
    copies.start_all(root)


def test_two_starts_at_once_lose_nothing(tmp_path):
    blank(tmp_path)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    both = [context.Process(target=begin, args=(tmp_path, barrier)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    source = json.loads(mine(tmp_path).read_text(encoding="utf-8"))["cells"][1]["source"]
    assert "".join(source).startswith("done by")
    assert backups(tmp_path) == []


# The lab


@pytest.mark.parametrize("problem", [None, "my_exercises cannot be written to"])
def test_the_lab_starts_with_the_copies_made_and_all_the_same_where_they_cannot_be(monkeypatch, capsys, problem):
    labapp = pytest.importorskip("jupyterlab.labapp")
    from course import lab

    done = []

    def start_all():
        done.append("copies")
        if problem:
            raise Problem(problem)

    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(lab, "ensure", lambda lock, argv: None)
    monkeypatch.setattr(lab, "start_all", start_all)
    monkeypatch.setattr(labapp.LabApp, "launch_instance", lambda arguments: done.append("lab"))
    assert lab.main(["--no-browser"]) == 0
    assert done == ["copies", "lab"]
    assert (problem or "Opening") in capsys.readouterr().err
