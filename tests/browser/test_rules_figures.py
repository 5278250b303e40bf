"""The figures of lessons 07 and 08 in JupyterLab: both sliders by keyboard, with the words of each place."""

import pytest

from course.figures import FreezeExplorer, LoopsExplorer

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

pytestmark = pytest.mark.browser

CELL = """\
from course.figures import FreezeExplorer, LoopsExplorer

display(LoopsExplorer(lambda x: x**2 + 3 * x + 5, start=4.0, lowest=-1.5))
display(FreezeExplorer())"""


def test_both_figures_follow_their_sliders(run_cell, screenshot):
    page = run_cell(CELL)
    figures = page.locator(".undertorch-explorer")
    api.expect(figures).to_have_count(2)
    loops, freezing = figures.nth(0), figures.nth(1)
    here = LoopsExplorer(lambda x: x**2 + 3 * x + 5, start=4.0, lowest=-1.5)

    loops.get_by_role("slider", name="step").press("ArrowRight")
    api.expect(loops.get_by_role("status")).to_have_text(here.text(step=10))
    loops.get_by_role("slider", name="learning rate").press("End")
    api.expect(loops.get_by_role("status")).to_have_text(here.text(step=10, rate=0.3))
    loops.get_by_role("slider", name="step").press("End")
    api.expect(loops.get_by_role("status")).to_have_text(here.text(step=60, rate=0.3))

    freezing.get_by_role("slider", name="frozen at the back").press("ArrowRight")
    api.expect(freezing.get_by_role("status")).to_have_text(FreezeExplorer().text(front=3, back=1))
    freezing.get_by_role("slider", name="frozen at the front").press("Home")
    api.expect(freezing.get_by_role("status")).to_have_text(FreezeExplorer().text(front=0, back=1))
    screenshot(page, "loops", loops)
    screenshot(page, "freezing", freezing)
    assert page.console_errors == []
