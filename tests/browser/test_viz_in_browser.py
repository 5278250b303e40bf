"""The graph is drawn in the browser where there is no Graphviz."""

import pytest

pytestmark = pytest.mark.browser
api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("graphviz_anywidget")

CELL = """
import engine, engine.viz
engine.viz.dot.render = lambda dot, kind: None
w = engine.tensor(2.0, requires_grad=True)
engine.viz.graph(3 * w + 1)
"""


def test_the_browser_draws_where_there_is_no_graphviz(run_cell):
    page = run_cell(CELL)
    drawn = page.locator(".jp-OutputArea-output svg")
    api.expect(drawn.get_by_text("MulBackward0")).to_be_visible()
    assert page.console_errors == []
