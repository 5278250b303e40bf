"""The figures of curves in JupyterLab: every slider by keyboard, words for screen readers, light and dark theme."""

import pytest

from course.figures import DescentExplorer

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

pytestmark = pytest.mark.browser

CELL = """\
from course.figures import DescentExplorer

DescentExplorer(lambda x: x**2 + 3 * x + 5, start=4.0, between=(-9, 6))"""


@pytest.fixture
def expected():
    """The same figure, here."""
    return DescentExplorer(lambda x: x**2 + 3 * x + 5, start=4.0, between=(-9, 6))


@pytest.fixture
def figure(run_cell):
    """The page, and the figure on it."""
    page = run_cell(CELL)
    found = page.locator(".undertorch-explorer")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


def said(figure, words):
    api.expect(figure.get_by_role("status")).to_have_text(words)


def test_both_sliders_answer_to_the_keyboard(figure, expected):
    page, explorer = figure
    rate, steps = (explorer.get_by_role("slider", name=name) for name in ("learning rate", "steps"))
    said(explorer, expected.text())
    rate.press("ArrowRight")
    said(explorer, expected.text(rate=0.2))
    api.expect(rate).to_have_attribute("aria-valuetext", "0.2")
    page.keyboard.press("Tab")
    api.expect(steps).to_be_focused()
    page.keyboard.press("ArrowLeft")
    said(explorer, expected.text(rate=0.2, steps=7))
    page.keyboard.press("Home")
    said(explorer, expected.text(rate=0.2, steps=0))
    rate.press("End")
    steps.press("End")
    said(explorer, expected.text(rate=1.1, steps=20))
    api.expect(rate).to_have_attribute("aria-valuetext", "1.1")
    api.expect(steps).to_have_attribute("aria-valuetext", "20")


def test_the_picture_is_drawn_for_each_setting_at_half_its_pixels(figure, expected):
    page, explorer = figure
    picture = explorer.locator("img")
    before = picture.get_attribute("src")
    explorer.get_by_role("slider", name="steps").press("End")
    api.expect(picture).not_to_have_attribute("src", before)
    page.wait_for_function("() => document.querySelector('.undertorch-explorer img').complete")
    width = int(72 * expected.size[0])
    drawn, shown = picture.evaluate("img => [img.naturalWidth, img.clientWidth]")
    assert drawn == pytest.approx(2 * width, abs=2) and shown == width


def test_the_words_can_be_read_in_the_dark_theme(figure, screenshot, choose_dark_theme):
    page, explorer = figure
    screenshot(page, "curves_light", explorer)
    choose_dark_theme(page, explorer.locator(".words"))
    screenshot(page, "curves_dark", explorer)


def test_the_controls_and_words_fit_a_narrow_notebook_and_letters_stay_large(figure, fits_narrow_page, expected):
    page, explorer = figure
    fits_narrow_page(page, explorer, ".sliders", ".words")
    width = explorer.locator("img").evaluate("img => img.clientWidth")
    assert 11.9 < expected.font * width / expected.width < 12.1  # what does not fit scrolls
