"""What the lab saves, what it does not let a learner write, and where it opens."""

import copy
import json
import re

import nbformat
import pytest
from over_tables import over

from course.base.notebooks import METADATA, ROOT
from course.commands import lab
from course.kernel.saving import ASLEEP, WIDGET, tidy

NOTEBOOKS = sorted(
    path for folder in ("notebooks", "exercises", "solutions") for path in (ROOT / folder).glob("*.ipynb")
)


@over("path", NOTEBOOKS)
def test_what_jupyterlab_adds_to_a_notebook_is_not_saved(path):
    nb = nbformat.read(path, as_version=4)
    nb.metadata.kernelspec = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    nb.metadata.language_info = {"name": "python", "version": "3.13.1", "codemirror_mode": {"name": "ipython"}}
    for cell in nb.cells:
        cell.metadata.trusted = True
    tidy({"type": "notebook", "content": nb}, path=path.name, contents_manager=None)
    assert nbformat.writes(nb) + "\n" == path.read_text(encoding="utf-8")  # what the server writes


def test_other_files_and_other_kernels_are_left_alone():
    model = {"type": "file", "content": "text"}
    tidy(model)
    assert model == {"type": "file", "content": "text"}
    foreign = {"metadata": {"kernelspec": {"name": "julia"}}, "cells": []}
    model = {"type": "notebook", "content": copy.deepcopy(foreign)}
    tidy(model)
    assert model["content"] == foreign
    bare = {"type": "notebook", "content": {"metadata": {}, "cells": []}}
    tidy(bare)
    assert bare["content"]["metadata"] == {}


def test_a_widgets_view_is_not_saved_and_a_line_says_how_to_see_it_again():
    outputs = [
        {"output_type": "display_data", "data": {WIDGET: {"model_id": "1"}, "text/html": "<img>", "text/plain": "a"}},
        {"output_type": "display_data", "data": {"text/html": "<img>", "text/plain": "a"}},
        {"output_type": "stream", "text": "a"},
    ]
    cells = [{"cell_type": "code", "outputs": outputs}, {"cell_type": "markdown"}]
    tidy({"type": "notebook", "content": {"metadata": {"kernelspec": METADATA["kernelspec"]}, "cells": cells}})
    assert outputs[0]["data"] == {"text/html": f"{ASLEEP}<img>", "text/plain": "a"}
    assert outputs[1]["data"]["text/html"] == "<img>"


@over(
    "main, page",
    [
        ({"current": "notebook:my_exercises/05_graph.ipynb"}, "/lab"),
        ({"current": ""}, f"/lab/tree/{lab.FIRST_LESSON}"),
        ({}, f"/lab/tree/{lab.FIRST_LESSON}"),
        (None, f"/lab/tree/{lab.FIRST_LESSON}"),
    ],
)
def test_the_lab_opens_where_the_learner_was(tmp_path, monkeypatch, main, page):
    monkeypatch.setattr(lab, "ROOT", tmp_path / "course")  # with no copies in it
    assert lab.first_page(tmp_path) == f"/lab/tree/{lab.FIRST_LESSON}"
    layout = {"data": {"layout-restorer:data": {"main": main}}, "metadata": {"id": "default"}}
    (tmp_path / "default-37a8.jupyterlab-workspace").write_text(json.dumps(layout), encoding="utf-8")
    assert lab.first_page(tmp_path) == page
    (tmp_path / "default-37a8.jupyterlab-workspace").write_text("{", encoding="utf-8")
    assert lab.first_page(tmp_path) == f"/lab/tree/{lab.FIRST_LESSON}"


def test_the_lab_opens_the_learners_copy_of_the_first_lesson_and_the_teachers_the_original(tmp_path, monkeypatch):
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    assert lab.first_page(None) == f"/lab/tree/{lab.FIRST_LESSON}"  # in a folder in which nothing can be written
    (tmp_path / "my_lessons").mkdir()
    (tmp_path / "my_lessons/00_welcome.ipynb").touch()
    assert lab.first_page(None) == "/lab/tree/my_lessons/00_welcome.ipynb"
    assert lab.first_page(None, teach=True) == "/lab/tree/notebooks/00_welcome.ipynb"


def test_a_teacher_has_other_tabs_open_than_a_learner(monkeypatch):
    monkeypatch.delenv("JUPYTERLAB_WORKSPACES_DIR", raising=False)
    assert lab.own_workspaces(teach=True) != lab.own_workspaces()


LAYOUT = {
    "data": {
        "layout-restorer:data": {
            "main": {
                "dock": {"type": "tab-area", "widgets": ["notebook:notebooks/05_graph.ipynb", "editor:engine/a.py"]},
                "current": "notebook:notebooks/05_graph.ipynb",
            },
        },
        "notebook:notebooks/05_graph.ipynb": {"data": {"path": "notebooks/05_graph.ipynb", "factory": "Notebook"}},
        "file-browser-filebrowser:cwd": {"path": "notebooks"},
        "notebook:my_exercises/05_graph.ipynb": {"data": {"path": "my_exercises/05_graph.ipynb"}},
    },
    "metadata": {"id": "default"},
}


def test_where_a_lesson_was_open_its_copy_is_open_once_there_are_copies(tmp_path):
    place = tmp_path / "default-37a8.jupyterlab-workspace"
    place.write_text(json.dumps(LAYOUT), encoding="utf-8")
    lab.open_copies(tmp_path)
    assert json.loads(place.read_text(encoding="utf-8")) == json.loads(
        json.dumps(LAYOUT).replace("notebooks", "my_lessons")
    )


def test_an_original_that_is_open_beside_copies_stays_open(tmp_path):
    place = tmp_path / "default-37a8.jupyterlab-workspace"
    text = json.dumps(LAYOUT).replace("engine/a.py", "my_lessons/05_graph.ipynb")
    place.write_text(text, encoding="utf-8")
    lab.open_copies(tmp_path)
    assert place.read_text(encoding="utf-8") == text


@over(
    "path, writable",
    [
        ("notebooks/05_graph.ipynb", False),
        ("/exercises/05_graph.ipynb", False),
        ("solutions/05_graph.ipynb", False),
        ("my_lessons/05_graph.ipynb", True),
        ("my_exercises/05_graph.ipynb", True),
        ("notebooks/notes.txt", True),
        ("notebooks", True),
        ("mine.ipynb", True),
    ],
)
def test_the_courses_own_notebooks_are_read_only_to_a_learner(tmp_path, path, writable):
    pytest.importorskip("jupyter_server")
    from course.kernel.contents import OwnReadOnly

    file = tmp_path / path.strip("/")
    file.parent.mkdir(exist_ok=True)
    file.mkdir(exist_ok=True) if path == "notebooks" else file.touch()
    assert OwnReadOnly(root_dir=str(tmp_path)).is_writable(path) is writable


def test_a_teacher_and_author_may_write_them():
    reads_only = "--ServerApp.contents_manager_class=course.kernel.contents.OwnReadOnly"
    assert reads_only in lab.server_arguments(None, False, [])
    assert reads_only not in lab.server_arguments(None, False, [], teach=True)


def test_the_line_is_taken_for_nothing_where_stored_outputs_are_compared():
    rules = (ROOT / "tests/nbval_sanitize.cfg").read_text(encoding="utf-8")
    texts = [f"{ASLEEP}<img>", "<img>"]
    for found, put in re.findall(r"^regex: (.*)$\n^replace: (.*)$", rules, flags=re.MULTILINE):  # as nbval reads them
        texts = [re.sub(found, put, text) for text in texts]
    assert texts == ["<img>", "<img>"]
