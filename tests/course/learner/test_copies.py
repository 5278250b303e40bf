"""A learner's copies of the lessons and exercises: never written over once changed, and begun anew with a backup."""

import io
import json
import multiprocessing
import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from over_tables import over

pytest.importorskip("filelock")

from course.base.environment import Problem
from course.learner import copies

NAME = "05_graph.ipynb"


def blank(root: Path, text: str = "# Exercises", name: str = NAME) -> Path:
    """The course's own notebook, as a build makes it."""
    nb = new_notebook(cells=[new_markdown_cell(text, id="a"), new_code_cell("def twice(x):\n    ...", id="b")])
    nb.metadata["undertorch"] = {"blank": copies.digest(nb.cells)}
    path = root / "exercises" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(nbformat.writes(nb), encoding="utf-8")
    return path


def lesson(root: Path, text: str = "# A lesson", name: str = NAME) -> Path:
    """A lesson of the course, as a build makes it: it has been run."""
    nb = new_notebook(cells=[new_markdown_cell(text, id="a"), new_code_cell("6 * 7", id="b", metadata={"tags": ["t"]})])
    nb.cells[1].update(execution_count=1, outputs=[new_output("execute_result", {"text/plain": "42"})])
    path = root / "notebooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(nbformat.writes(nb), encoding="utf-8")
    return path


both = pytest.mark.parametrize("make", [lesson, blank])


def mine(root: Path, make=blank, name: str = NAME) -> Path:
    return root / ("my_exercises" if make is blank else "my_lessons") / name


def sources(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def work(path: Path, source: str = "def twice(x):\n    return 2 * x") -> bytes:
    """Do something in a notebook, and return what it holds then."""
    nb = nbformat.read(path, as_version=4)
    nb.cells[1].source = source
    nbformat.write(nb, path)
    return path.read_bytes()


def backups(root: Path, folder: str = "my_exercises") -> list[Path]:
    return sorted((root / folder / "backups").glob("*.ipynb"))


def run(path: Path) -> None:
    """Run a notebook's cells in JupyterLab, and save it."""
    nb = nbformat.read(path, as_version=4)
    nb.cells[1].update(execution_count=3, outputs=[new_output("stream", text="ran")])
    nb.metadata.widgets = {}
    nbformat.write(nb, path)


def test_a_start_makes_a_copy_of_the_lesson_and_of_its_exercises(tmp_path):
    both = [lesson(tmp_path), blank(tmp_path)]
    assert copies.start("5", tmp_path) == [mine(tmp_path, lesson), mine(tmp_path)]
    assert [sources(copies.copy_of(path)) for path in both] == [sources(path) for path in both]


def test_a_copy_has_no_outputs_and_is_the_lesson_but_for_them(tmp_path):
    path = lesson(tmp_path)
    copies.start_all(tmp_path)
    text = mine(tmp_path, lesson).read_text(encoding="utf-8")
    original, copy = nbformat.read(path, as_version=4), nbformat.reads(text, as_version=4)
    assert (copy.cells[1].outputs, copy.cells[1].execution_count) == ([], None)
    original.cells[1].update(outputs=[], execution_count=None)
    assert copy.cells == original.cells
    assert text == nbformat.writes(copy) + "\n"  # what JupyterLab saves: a copy that is only looked at stays as it is
    assert not copies.begun(mine(tmp_path, lesson))


def test_links_in_a_copy_lead_to_copies(tmp_path):
    links = "[l](../notebooks/05_graph.ipynb), [n](06_rules.ipynb), [e](../my_exercises/05_graph.ipynb)"
    lesson(tmp_path, links)
    blank(tmp_path, links)
    copies.start_all(tmp_path)
    for make in (lesson, blank):
        assert sources(mine(tmp_path, make))[0] == links.replace("/notebooks/", "/my_lessons/")
        assert not copies.begun(mine(tmp_path, make))


def test_a_copy_of_before_there_were_copies_of_lessons_gets_the_new_links_unless_it_was_changed(tmp_path, capsys):
    old = [blank(tmp_path, "[l](../notebooks/05_graph.ipynb)", name) for name in (NAME, "06_rules.ipynb")]
    for path in old:
        mine(tmp_path, name=path.name).parent.mkdir(exist_ok=True)
        mine(tmp_path, name=path.name).write_bytes(path.read_bytes())
    done = work(mine(tmp_path, name="06_rules.ipynb"))
    copies.start_all(tmp_path)
    assert sources(mine(tmp_path))[0] == "[l](../my_lessons/05_graph.ipynb)"
    assert mine(tmp_path, name="06_rules.ipynb").read_bytes() == done
    assert capsys.readouterr().err == ""


@both
def test_the_lab_makes_a_copy_of_every_lesson_and_its_exercises(tmp_path, make):
    make(tmp_path)
    make(tmp_path, name="06_rules.ipynb")
    copies.start_all(tmp_path)
    copied = mine(tmp_path, make).parent
    assert sorted(path.name for path in copied.glob("*.ipynb")) == [NAME, "06_rules.ipynb"]


def test_a_broken_notebook_of_the_course_is_named_and_the_others_are_copied(tmp_path, capsys):
    lesson(tmp_path).write_text("<<<<<<< HEAD", encoding="utf-8")
    lesson(tmp_path, name="06_rules.ipynb")
    copies.start_all(tmp_path)
    assert [path.name for path in (tmp_path / "my_lessons").glob("*.ipynb")] == ["06_rules.ipynb"]
    assert "notebooks/05_graph.ipynb" in capsys.readouterr().err


def test_without_lessons_the_lab_makes_no_folder(tmp_path):
    copies.start_all(tmp_path)
    assert list(tmp_path.iterdir()) == []


@both
def test_a_second_start_leaves_what_was_done(tmp_path, make):
    make(tmp_path)
    copies.start("05", tmp_path)
    done = work(mine(tmp_path, make))
    copies.start_all(tmp_path)
    assert mine(tmp_path, make).read_bytes() == done


@both
def test_a_second_start_leaves_the_outputs_of_a_copy_that_was_run(tmp_path, make):
    make(tmp_path)
    copies.start_all(tmp_path)
    run(mine(tmp_path, make))
    ran = mine(tmp_path, make).read_bytes()
    copies.start_all(tmp_path)
    assert mine(tmp_path, make).read_bytes() == ran


# A new version of the course


@both
@pytest.mark.parametrize("ran", [False, True])
def test_a_new_version_replaces_a_copy_in_which_nothing_was_changed(tmp_path, capsys, make, ran):
    make(tmp_path)
    copies.start_all(tmp_path)
    if ran:
        run(mine(tmp_path, make))
    new = make(tmp_path, "# Revised")
    copies.start_all(tmp_path)
    assert sources(mine(tmp_path, make)) == sources(new)
    assert not copies.begun(mine(tmp_path, make))
    assert capsys.readouterr() == ("", "")


def beside(path: Path) -> dict[str, str]:
    """The first cells of the notebooks beside a learner's."""
    return {other.name: sources(other)[0] for other in path.parent.glob("*.ipynb") if other != path}


@both
def test_a_new_version_is_put_beside_a_copy_that_was_changed_and_a_line_says_so_once(tmp_path, capsys, make):
    make(tmp_path)
    copies.start_all(tmp_path)
    theirs = mine(tmp_path, make)
    done = work(theirs)
    make(tmp_path, "# Revised")
    copies.start_all(tmp_path)
    assert theirs.read_bytes() == done
    assert beside(theirs) == {"05_graph.new.ipynb": "# Revised"}
    told = capsys.readouterr().err
    option = "--lesson" if make is lesson else "--exercises"
    assert "05_graph.new.ipynb" in told and f"-m course reset 05 {option}" in told
    copies.start_all(tmp_path)
    assert capsys.readouterr().err == ""


def test_a_new_version_that_was_thrown_away_does_not_come_back_and_the_next_one_does(tmp_path, capsys):
    lesson(tmp_path)
    copies.start_all(tmp_path)
    theirs = mine(tmp_path, lesson)
    work(theirs)
    lesson(tmp_path, "# Revised")
    copies.start_all(tmp_path)
    theirs.with_name("05_graph.new.ipynb").unlink()
    copies.start_all(tmp_path)
    assert beside(theirs) == {}
    lesson(tmp_path, "# Revised again")
    copies.start_all(tmp_path)
    assert beside(theirs) == {"05_graph.new.ipynb": "# Revised again"}
    lesson(tmp_path, "# And again")
    copies.start_all(tmp_path)
    assert beside(theirs) == {"05_graph.new.ipynb": "# And again"}


def test_a_new_version_in_which_somebody_has_worked_is_theirs_too(tmp_path):
    lesson(tmp_path)
    copies.start_all(tmp_path)
    theirs = mine(tmp_path, lesson)
    work(theirs)
    lesson(tmp_path, "# Revised")
    copies.start_all(tmp_path)
    done = work(theirs.with_name("05_graph.new.ipynb"))
    lesson(tmp_path, "# Revised again")
    copies.start_all(tmp_path)
    assert theirs.with_name("05_graph.new.ipynb").read_bytes() == done
    assert beside(theirs)["05_graph.new2.ipynb"] == "# Revised again"


def test_a_reset_takes_the_new_version_and_removes_it_beside(tmp_path):
    lesson(tmp_path)
    copies.start_all(tmp_path)
    theirs = mine(tmp_path, lesson)
    done = work(theirs)
    lesson(tmp_path, "# Revised")
    copies.start_all(tmp_path)
    assert copies.main_reset(["05", "--yes"], tmp_path) == 0
    assert sources(theirs)[0] == "# Revised"
    assert beside(theirs) == {}
    (backup,) = backups(tmp_path, "my_lessons")
    assert backup.read_bytes() == done


# A copy that is no notebook any more

DAMAGE = {
    b"": "it is empty",
    b"\n \n": "it is empty",
    b'{"cells": [\n<<<<<<< HEAD\n=======\n>>>>>>> origin/main\n]}': "git has left the marks of a conflict",
    b'{"cells": [{"cell_type": "code"': "it breaks off",
    b"\0" * 20: "it breaks off",
    b"[" * 100000: "it breaks off",
    b"<!DOCTYPE html>": "it breaks off",
    b"[1]": "it breaks off",
    b'{"cells": [1]}': "it breaks off",
    b"\xff\xfe": "there are bytes in it that are no text",
}


@both
@pytest.mark.parametrize("content", DAMAGE, ids=DAMAGE.get)
def test_a_copy_that_is_no_notebook_any_more_is_named_each_time_and_kept(tmp_path, capsys, make, content):
    make(tmp_path)
    copies.start_all(tmp_path)
    theirs = mine(tmp_path, make)
    theirs.write_bytes(content)
    make(tmp_path, "# Revised")
    option = "--lesson" if make is lesson else "--exercises"
    for start in (lambda: copies.start("05", tmp_path), lambda: copies.start_all(tmp_path)):
        start()
        told = capsys.readouterr().err
        assert f"{theirs.parent.name}/{NAME} cannot be read as a notebook: {DAMAGE[content]}" in told
        assert f"-m course reset 05 {option}` puts a fresh copy in its place" in told and "new version" not in told
        assert theirs.read_bytes() == content and beside(theirs) == {}
        assert copies.damaged(tmp_path) == [told.strip()]
    assert copies.main_reset(["05", option, "--yes"], tmp_path) == 0
    told = capsys.readouterr().out
    (kept,) = backups(tmp_path, theirs.parent.name)
    assert DAMAGE[content] in told and f"The file as it was is in {theirs.parent.name}/backups/{kept.name}" in told
    assert kept.read_bytes() == content and sources(theirs)[0] == "# Revised"
    assert copies.damaged(tmp_path) == []


# What counts


@over("sign", ["source", "output", "run", "new cell", "unknown", "broken"])
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
    work(path := blank(tmp_path))
    copies.start_all(tmp_path)
    assert sources(mine(tmp_path)) == sources(path)
    assert copies.begun(mine(tmp_path))
    assert "my_exercises" in capsys.readouterr().err
    copies.start_all(tmp_path)
    assert capsys.readouterr().err == ""


def test_work_done_in_the_courses_own_notebook_does_not_replace_the_learners_copy(tmp_path):
    path = blank(tmp_path)
    done = work(copies.start("05", tmp_path)[-1])
    work(path, "something else")
    copies.start_all(tmp_path)
    assert mine(tmp_path).read_bytes() == done


def test_a_build_keeps_what_was_done_in_the_courses_own_notebook(tmp_path, capsys):
    pytest.importorskip("nbgrader")
    from course.authoring import build

    text = tmp_path / "course/lessons/05_graph/exercises.md"
    text.parent.mkdir(parents=True)
    text.write_text("# Exercises\n\n```{code-cell} ipython3\na = 1\n```\n", encoding="utf-8")
    (job,) = (job for job in build.jobs(tmp_path) if job.target.blank)
    build.make([job], tmp_path)
    assert backups(tmp_path) == []
    done = work(job.notebook)
    capsys.readouterr()
    build.make([job], tmp_path)
    (backup,) = backups(tmp_path)
    assert backup.read_bytes() == done
    assert backup.name in capsys.readouterr().out
    assert not copies.begun(job.notebook)


# Beginning anew


def test_a_reset_keeps_a_backup(tmp_path, capsys):
    source = blank(tmp_path)
    done = work(copies.start("05", tmp_path)[-1])
    assert copies.main_reset(["5", "--yes"], tmp_path) == 0
    assert sources(mine(tmp_path)) == sources(source)
    (backup,) = backups(tmp_path)
    assert backup.read_bytes() == done
    assert f"my_exercises/backups/{backup.name}" in capsys.readouterr().out


def test_two_resets_in_a_second_keep_two_backups(tmp_path):
    blank(tmp_path)
    copies.start("05", tmp_path)
    done = []
    for source in ("first", "second", "third"):
        done.append(work(mine(tmp_path), source))
        copies.reset(tmp_path / "exercises" / NAME)
    assert sorted(path.read_bytes() for path in backups(tmp_path)) == sorted(done)


def test_a_reset_of_a_copy_in_which_nothing_was_done_keeps_no_backup(tmp_path):
    blank(tmp_path)
    copies.start("05", tmp_path)
    assert copies.reset(tmp_path / "exercises" / NAME) is None
    assert backups(tmp_path) == []


class Terminal:
    """Standard input with somebody before it."""

    def isatty(self) -> bool:
        return True


@over("answer, anew", [("", False), ("n", False), ("no way", False), ("y", True), (" Yes ", True)])
def test_a_reset_asks(tmp_path, monkeypatch, answer, anew):
    source = blank(tmp_path)
    done = work(copies.start("05", tmp_path)[-1])
    monkeypatch.setattr(sys, "stdin", Terminal())
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: (asked.append(question), answer)[1])
    assert copies.main_reset(["05"], tmp_path) == (0 if anew else 1)
    assert sources(mine(tmp_path)) == sources(source) if anew else mine(tmp_path).read_bytes() == done
    assert NAME in asked[0]


@over("option, anew", [("--lesson", [lesson]), ("--exercises", [blank]), (None, [lesson, blank])])
def test_a_reset_is_of_the_lesson_of_its_exercises_or_of_both(tmp_path, option, anew):
    lesson(tmp_path), blank(tmp_path)
    copies.start("05", tmp_path)
    done = {make: work(mine(tmp_path, make)) for make in (lesson, blank)}
    assert copies.main_reset(["05", "--yes", *filter(None, [option])], tmp_path) == 0
    for make, before in done.items():
        assert (mine(tmp_path, make).read_bytes() != before) == (make in anew)
        assert len(backups(tmp_path, mine(tmp_path, make).parent.name)) == (make in anew)


def test_a_lesson_without_exercises_has_none_to_begin_anew(tmp_path):
    lesson(tmp_path)
    with pytest.raises(Problem, match="no exercises"):
        copies.main_reset(["05", "--exercises", "--yes"], tmp_path)


def test_a_reset_asks_about_nothing_where_nothing_was_done(tmp_path, monkeypatch):
    lesson(tmp_path), blank(tmp_path)
    copies.start("05", tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert copies.main_reset(["05"], tmp_path) == 0


def test_a_reset_keeps_the_outputs_of_a_lesson_that_was_run(tmp_path):
    lesson(tmp_path)
    copies.start("05", tmp_path)
    run(mine(tmp_path, lesson))
    ran = mine(tmp_path, lesson).read_bytes()
    assert copies.main_reset(["05", "--yes"], tmp_path) == 0
    (backup,) = backups(tmp_path, "my_lessons")
    assert backup.read_bytes() == ran


def test_a_reset_without_anybody_to_ask_changes_nothing(tmp_path, monkeypatch):
    blank(tmp_path)
    done = work(copies.start("05", tmp_path)[-1])
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(Problem, match="--yes"):
        copies.main_reset(["05"], tmp_path)
    assert mine(tmp_path).read_bytes() == done


@over("lesson", ["6", "rules", "", "../05_graph"])
def test_an_unknown_lesson_is_refused_with_those_there_are(tmp_path, lesson):
    blank(tmp_path)
    with pytest.raises(Problem, match="05_graph"):
        copies.start(lesson, tmp_path)


@over("lesson", ["5", "05", "graph", "05_graph"])
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
    barrier.wait(120)
    copies.LOCK_SECONDS = 120  # beside other programs, the one that has it may be stopped for long
    work(copies.start("05", root)[-1], f"done by {os.getpid()}")
    copies.start_all(root)


@pytest.mark.slow
def test_two_starts_at_once_lose_nothing(tmp_path):
    blank(tmp_path)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    both = [context.Process(target=begin, args=(tmp_path, barrier)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(240)
    assert [process.exitcode for process in both] == [0, 0]
    source = json.loads(mine(tmp_path).read_text(encoding="utf-8"))["cells"][1]["source"]
    assert "".join(source).startswith("done by")
    assert backups(tmp_path) == []


# The lab


@over("problem", [None, "my_exercises cannot be written to"])
def test_the_lab_starts_with_the_copies_made_and_all_the_same_where_they_cannot_be(monkeypatch, capsys, problem):
    labapp = pytest.importorskip("jupyterlab.labapp")
    from course.commands import lab

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


def test_a_copy_of_a_lesson_has_three_dots_where_lines_are_left_to_the_learner(tmp_path):
    lines = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"
    for folder in copies.MINE:
        (tmp_path / folder).mkdir()
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(lines), nbformat.v4.new_code_cell("f(1)")])
    nbformat.write(nb, tmp_path / "notebooks/05_a.ipynb")
    (mine,) = copies.start("05", tmp_path)
    assert [cell.source for cell in nbformat.read(mine, as_version=4).cells] == ["def f(x):\n    ...", "f(1)"]
    assert not copies.begun(mine)
    nb.cells[0].source = lines.replace("return x", "return x + 0")  # it is renewed, and as blank as it was
    nbformat.write(nb, tmp_path / "notebooks/05_a.ipynb")
    copies.start_all(tmp_path)
    assert not copies.begun(mine) and [path.name for path in mine.parent.glob("*.ipynb")] == ["05_a.ipynb"]
