"""IndexExplorer in JupyterLab: both sliders by keyboard, and the picture and the words that follow."""

import pytest

import engine
from course.figures import IndexExplorer

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

CELL = "import engine\nfrom course.figures import IndexExplorer\n\nIndexExplorer(engine.arange(12.0).reshape(4, 3))"
EXPECTED = IndexExplorer(engine.arange(12.0).reshape(4, 3))


@pytest.fixture
def figure(run_cell):
    """The page, and the figure on it."""
    page = run_cell(CELL)
    found = page.locator(".undertorch-explorer")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


def test_both_indices_are_chosen_by_keyboard_and_the_drawing_follows(figure):
    page, explorer = figure
    rows, columns = (explorer.get_by_role("slider", name=name) for name in ("rows", "columns"))
    words, picture = explorer.get_by_role("status"), explorer.locator("img")
    api.expect(words).to_have_text(EXPECTED.text())
    rows.press("End")
    api.expect(words).to_have_text(EXPECTED.text(rows="::2"))
    api.expect(rows).to_have_attribute("aria-valuetext", "::2")
    before = picture.get_attribute("src")
    page.keyboard.press("Tab")
    api.expect(columns).to_be_focused()
    page.keyboard.press("Home")
    api.expect(words).to_have_text(EXPECTED.text(rows="::2", columns="0"))
    api.expect(picture).not_to_have_attribute("src", before)
    page.wait_for_function("() => document.querySelector('.undertorch-explorer img').complete")
    drawn = picture.evaluate("async img => (await fetch(img.src)).text()")
    assert drawn.encode() == EXPECTED.image(rows="::2", columns="0")
    assert picture.evaluate("img => [img.naturalWidth, img.naturalHeight]") == list(EXPECTED.pixels)
