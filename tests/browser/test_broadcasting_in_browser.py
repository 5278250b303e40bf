"""BroadcastingExplorer in JupyterLab: typed shapes, the slider, the mouse, words for screen readers, both themes."""

import pytest

from course.figures import BroadcastingExplorer

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

CELL = "from course.figures import BroadcastingExplorer\n\nBroadcastingExplorer()"
EXPECTED = BroadcastingExplorer()


@pytest.fixture
def figure(run_cell):
    """The page, and the figure on it."""
    page = run_cell(CELL)
    found = page.locator(".undertorch-broadcasting")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


def said(figure, words):
    api.expect(figure.get_by_role("status")).to_have_text(words)


def test_shapes_are_typed_and_an_element_is_chosen_by_keyboard(figure):
    page, explorer = figure
    a, b = (explorer.get_by_role("textbox", name=f"shape of {name}") for name in "ab")
    said(explorer, EXPECTED.text())
    a.focus()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    page.keyboard.type("2")
    said(explorer, EXPECTED.text(a="3, 2"))
    api.expect(a).to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Tab")
    api.expect(b).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("2")
    said(explorer, EXPECTED.text(a="3, 2", b="2"))
    api.expect(a).to_have_attribute("aria-invalid", "false")
    page.keyboard.press("Tab")
    slider = explorer.get_by_role("slider", name="element")
    api.expect(slider).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    said(explorer, EXPECTED.text(a="3, 2", b="2", element=1))
    page.keyboard.press("End")
    said(explorer, EXPECTED.text(a="3, 2", b="2", element=5))
    api.expect(slider).to_have_attribute("aria-valuetext", "result[2, 1]")


def test_a_click_on_a_box_of_the_result_chooses_it(figure):
    _, explorer = figure
    explorer.locator("[data-number='7']").click()
    said(explorer, EXPECTED.text(element=7))
    api.expect(explorer.get_by_role("slider")).to_have_js_property("value", "7")
    api.expect(explorer.locator("[data-number='7']")).to_have_attribute("stroke-width", "2.5")


def test_the_picture_is_the_one_that_python_draws(figure):
    _, explorer = figure
    explorer.get_by_role("textbox", name="shape of b").fill("2, 3, 1")
    said(explorer, EXPECTED.text(b="2, 3, 1"))
    wanted = EXPECTED.image(b="2, 3, 1").decode()
    api.expect(explorer.locator("rect")).to_have_count(wanted.count("<rect"))
    api.expect(explorer.locator("svg text", has_text="result = a + b")).to_be_visible()


def test_an_error_empties_the_slider_and_is_said(figure, screenshot):
    page, explorer = figure
    explorer.get_by_role("textbox", name="shape of b").fill("2, 4, 4")
    said(explorer, EXPECTED.text(b="2, 4, 4"))
    api.expect(explorer.get_by_role("slider")).to_be_disabled()
    screenshot(page, "broadcasting_error", explorer)
    explorer.get_by_role("textbox", name="shape of b").fill("nonsense")
    said(explorer, EXPECTED.text(b="nonsense"))


def test_the_words_can_be_read_in_the_dark_theme(figure, screenshot, choose_dark_theme):
    page, explorer = figure
    screenshot(page, "broadcasting_light", explorer)
    choose_dark_theme(page, explorer.locator(".words"))
    screenshot(page, "broadcasting_dark", explorer)


def test_the_figure_is_not_wider_than_a_narrow_notebook(figure, fits_narrow_page):
    fits_narrow_page(*figure, ".fields", "svg", ".words")


UNSHRUNK = (
    "svg => svg.parentElement.clientWidth < 420 && svg.getBoundingClientRect().width >= svg.getAttribute('width')"
)


def test_on_a_narrow_page_the_tensors_stand_below_each_other_and_the_letters_keep_their_size(figure):
    page, explorer = figure
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    page.set_viewport_size({"width": 500, "height": 900})
    page.wait_for_function(f"() => ({UNSHRUNK})(document.querySelector('.undertorch-broadcasting svg'))")
