"""The graph is drawn in the browser where there is no Graphviz."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.browser
api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("graphviz_anywidget")

CELL = """
import engine, engine.viz
engine.viz.render = lambda dot, kind: None
w = engine.tensor(2.0, requires_grad=True)
engine.viz.graph(3 * w + 1)
"""


def test_the_browser_draws_where_there_is_no_graphviz(open_lesson, run_all, tmp_path):
    nb = new_notebook(cells=[new_code_cell(CELL)])
    nb.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    path = tmp_path / "96_no_graphviz.ipynb"
    nbformat.write(nb, path)
    page = open_lesson(path)
    run_all(page)
    drawn = page.locator(".jp-OutputArea-output svg")
    api.expect(drawn.get_by_text("MulBackward0")).to_be_visible(timeout=30_000)
    assert page.console_errors == []
