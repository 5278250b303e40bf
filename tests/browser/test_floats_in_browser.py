"""FloatExplorer in JupyterLab: a typed number, the types, bits flipped by mouse and by keyboard, both themes."""

import pytest

from course.figures import FloatExplorer
from course.figures.floats.model import number, stored

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

CELL = "from course.figures import FloatExplorer\n\nFloatExplorer()"


def words(written="0.1", kind="float16"):
    """What stands below the bits."""
    return FloatExplorer().shown(kind, written)["words"]


@pytest.fixture
def figure(run_cell):
    """The page, and the figure on it."""
    page = run_cell(CELL)
    found = page.locator(".undertorch-floats")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


def said(figure, expected):
    api.expect(figure.get_by_role("status")).to_have_text(expected)


def shows_bits(figure, bits):
    api.expect(figure.locator(".box")).to_have_text(list(bits))


def test_a_number_is_typed_and_a_type_chosen_by_keyboard(figure, screenshot):
    page, explorer = figure
    said(explorer, words())
    shows_bits(explorer, stored(number("0.1"), "float16").bits)
    field = explorer.get_by_role("textbox", name="number")
    field.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("2049")
    said(explorer, words("2049"))
    page.keyboard.press("Tab")
    api.expect(explorer.get_by_role("radio", name="float16", exact=True)).to_be_focused()
    page.keyboard.press("ArrowRight")
    said(explorer, words("2049", "bfloat16"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    said(explorer, words("2049", "float64"))
    shows_bits(explorer, stored(number("2049"), "float64").bits)
    screenshot(page, "floats_64", explorer)
    field.fill("two")
    said(explorer, words("two"))
    api.expect(field).to_have_attribute("aria-invalid", "true")


def test_a_bit_is_flipped_by_mouse_and_by_keyboard(figure):
    page, explorer = figure
    explorer.get_by_role("button", name="sign, minus").click()
    api.expect(explorer.get_by_role("textbox")).to_have_value("-0.0999755859375")
    last = explorer.get_by_role("button", name="fraction, worth 1/1024")
    api.expect(last).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("End")
    api.expect(last).to_be_focused()
    page.keyboard.press("Space")
    api.expect(last).to_have_attribute("aria-pressed", "true")
    api.expect(last).to_be_focused()
    said(explorer, words("-0.10003662109375"))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    api.expect(explorer.get_by_role("button", name="fraction, worth 1/512")).to_have_attribute("aria-pressed", "false")


def test_the_buttons_lead_to_the_neighbours(figure):
    _, explorer = figure
    explorer.get_by_role("textbox").fill("2048")
    said(explorer, words("2048"))
    explorer.get_by_role("button", name="number after").click()
    said(explorer, words("2050"))
    for wanted in ("2048", "2047"):
        explorer.get_by_role("button", name="number before").click()
        said(explorer, words(wanted))


def test_it_can_be_read_in_both_themes_and_by_a_screen_reader(figure, screenshot, choose_dark_theme, broken_rules):
    page, explorer = figure
    screenshot(page, "floats_light", explorer)
    assert not broken_rules(page)
    choose_dark_theme(page, explorer.locator(".words"))
    screenshot(page, "floats_dark", explorer)
    assert not broken_rules(page)


def test_the_figure_is_not_wider_than_a_narrow_notebook(figure, fits_narrow_page, screenshot):
    page, explorer = figure
    fits_narrow_page(page, explorer, ".fields", "svg", ".words")
    screenshot(page, "floats_narrow", explorer)
    sizes = explorer.evaluate(
        "figure => [...figure.querySelectorAll('div:not(.picture), span, label, button')].map("
        "part => parseFloat(getComputedStyle(part).fontSize))"
    )
    assert min(sizes) >= 12
