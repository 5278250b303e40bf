"""What the lab saves, and where it opens."""

import copy
import json
import re

import nbformat
import pytest

from course import lab
from course.notebooks import METADATA, ROOT
from course.saving import ASLEEP, WIDGET, tidy

NOTEBOOKS = sorted(
    path for folder in ("notebooks", "exercises", "solutions") for path in (ROOT / folder).glob("*.ipynb")
)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
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


@pytest.mark.parametrize(
    ("main", "page"),
    [
        ({"current": "notebook:my_exercises/05_graph.ipynb"}, "/lab"),
        ({"current": ""}, f"/lab/tree/{lab.FIRST_LESSON}"),
        ({}, f"/lab/tree/{lab.FIRST_LESSON}"),
        (None, f"/lab/tree/{lab.FIRST_LESSON}"),
    ],
)
def test_the_lab_opens_where_the_learner_was(tmp_path, main, page):
    assert lab.first_page(tmp_path) == f"/lab/tree/{lab.FIRST_LESSON}"
    layout = {"data": {"layout-restorer:data": {"main": main}}, "metadata": {"id": "default"}}
    (tmp_path / "default-37a8.jupyterlab-workspace").write_text(json.dumps(layout), encoding="utf-8")
    assert lab.first_page(tmp_path) == page
    (tmp_path / "default-37a8.jupyterlab-workspace").write_text("{", encoding="utf-8")
    assert lab.first_page(tmp_path) == f"/lab/tree/{lab.FIRST_LESSON}"


def test_the_line_is_taken_for_nothing_where_stored_outputs_are_compared():
    rules = (ROOT / "tests/nbval_sanitize.cfg").read_text(encoding="utf-8")
    texts = [f"{ASLEEP}<img>", "<img>"]
    for found, put in re.findall(r"^regex: (.*)$\n^replace: (.*)$", rules, flags=re.MULTILINE):  # as nbval reads them
        texts = [re.sub(found, put, text) for text in texts]
    assert texts == ["<img>", "<img>"]
