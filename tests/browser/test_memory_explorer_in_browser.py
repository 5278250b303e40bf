"""MemoryExplorer in JupyterLab: its steps, the box, reading aloud and writing, by keyboard and mouse; both themes."""

import pytest

import engine
from course.figures import MemoryExplorer

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

CELL = """\
import engine
from course.figures import MemoryExplorer

MemoryExplorer(table=engine.arange(12).reshape(3, 4))"""
EXPECTED = MemoryExplorer(table=engine.arange(12).reshape(3, 4))


@pytest.fixture
def figure(run_cell):
    """The page, and the figure on it."""
    page = run_cell(CELL)
    found = page.locator(".undertorch-memory")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


def said(figure, **values):
    api.expect(figure.get_by_role("status")).to_have_text(EXPECTED.text(**values))


def press(figure, name):
    figure.get_by_role("button", name=name, exact=True).press("Enter")


def test_steps_boxes_and_writing_by_keyboard(figure, broken_rules, screenshot, choose_dark_theme):
    page, explorer = figure
    said(explorer)
    press(explorer, ".T")
    said(explorer, steps=(".T",), pick=5)
    slider = explorer.get_by_role("slider", name="box")
    slider.press("Home")
    slider.press("ArrowRight")
    said(explorer, steps=(".T",), pick=1)
    api.expect(slider).to_have_attribute("aria-valuetext", "[0, 1]")
    number = explorer.get_by_role("textbox", name="write")
    number.fill("77")
    number.press("Enter")
    said(explorer, steps=(".T", "[0, 1] = 77"), pick=1)
    screenshot(page, "memory_written", explorer)
    press(explorer, "undo")
    said(explorer, steps=(".T",), pick=1)
    own = explorer.get_by_role("textbox", name="your own")
    own.press("Enter")  # what stands there: as_strided
    step = ".as_strided((3, 4), (1, 1))"
    said(explorer, steps=(".T", step), pick=EXPECTED.looked([".T", step]).places.index(4))
    own.fill("nonsense")
    press(explorer, "do it")
    api.expect(own).to_have_attribute("aria-invalid", "true")
    said(explorer, steps=(".T", step, "nonsense"), pick=EXPECTED.looked([".T", step]).places.index(4))
    assert not broken_rules(page)
    screenshot(page, "memory_refused", explorer)
    press(explorer, "begin again")
    api.expect(own).to_have_attribute("aria-invalid", "false")
    press(explorer, ".flatten()")
    choose_dark_theme(page, explorer.locator(".words"))
    assert not broken_rules(page)
    screenshot(page, "memory_dark", explorer)


# The clock of reading aloud, given to the page: each call of `beat` is one pause.
CLOCK = """() => {
    const { setInterval, clearInterval } = window;
    let next;
    window.setInterval = (step, pause) => pause === 700 ? ((next = step), "beat") : setInterval(step, pause);
    window.clearInterval = (timer) => timer === "beat" ? (next = undefined) : clearInterval(timer);
    window.beat = () => next?.();
}"""


def test_view_reads_aloud_up_to_where_it_refuses(figure, screenshot):
    page, explorer = figure
    page.evaluate(CLOCK)
    press(explorer, ".T")
    press(explorer, ".view(12)")
    api.expect(explorer.get_by_role("button", name="stop reading")).to_be_visible()
    for pick in range(3):
        said(explorer, steps=(".T", ".view(12)"), pick=pick, path=True)
        page.evaluate("beat()")
    api.expect(explorer.get_by_role("button", name="read aloud")).to_be_visible()
    screenshot(page, "memory_view", explorer)
    press(explorer, ".clone()")
    said(explorer, steps=(".T", ".clone()"), pick=EXPECTED.looked([".T", ".clone()"]).middling)


def test_reading_aloud_can_be_stopped_and_who_wants_no_motion_is_shown_its_end(figure, rest):
    page, explorer = figure
    page.evaluate(CLOCK)
    press(explorer, "read aloud")
    said(explorer, pick=0, path=True)
    page.evaluate("beat()")
    said(explorer, pick=1, path=True)
    press(explorer, "stop reading")
    page.evaluate("beat()")
    rest(page)
    said(explorer, pick=1, path=True)
    page.emulate_media(reduced_motion="reduce")
    press(explorer, "read aloud")
    said(explorer, pick=11, path=True)


def test_a_click_on_a_box_picks_it(figure):
    _, explorer = figure
    explorer.locator("[data-number='6']").click()
    said(explorer, pick=6)
    api.expect(explorer.locator("[data-number='6']")).to_have_attribute("stroke-width", "2.5")


def test_a_button_that_makes_no_sense_keeps_its_place_and_does_nothing(figure):
    _, explorer = figure
    press(explorer, "[:, 1]")
    transpose = explorer.get_by_role("button", name=".T", exact=True)
    api.expect(transpose).to_have_attribute("aria-disabled", "true")
    transpose.press("Enter")
    said(explorer, steps=("[:, 1]",), pick=2)


@pytest.mark.parametrize("width", [500, 1600])
def test_the_figure_fits_its_page_and_its_letters_can_be_read(figure, screenshot, fits_narrow_page, rest, width):
    page, explorer = figure
    fits_narrow_page(page, explorer, "fieldset >> nth=0", "fieldset >> nth=1", "svg", ".words")
    page.evaluate("window.jupyterapp.shell.collapseLeft()")
    page.set_viewport_size({"width": width, "height": 1000})
    for name in (".T", ".flatten()"):
        press(explorer, name)
    said(explorer, steps=(".T", ".flatten()"), pick=1)
    smallest = """svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width
        * Math.min(...[...svg.querySelectorAll('text')].map(text => parseFloat(getComputedStyle(text).fontSize)))"""
    rest(page)  # the picture is drawn anew for a page of this width
    assert explorer.locator("svg").evaluate(smallest) >= 12
    screenshot(page, f"memory_{width}", explorer)
