"""LeafBoard in JupyterLab: buttons, slider and lines by keyboard and mouse, words for screen readers, both themes."""

import pytest

from course.figures import LeafBoard

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

PROGRAM = """
x = engine.tensor(3.0)
w = engine.tensor(2.0, requires_grad=True)
b = engine.tensor(10.0) * 0.1
b.requires_grad_()
h = w * x
large = h > 1
y = h + b
y.backward()
"""
CELL = f'from course.figures import LeafBoard\n\nLeafBoard("""{PROGRAM}""")'
EXPECTED = LeafBoard(PROGRAM)


@pytest.fixture
def figure(run_cell):
    """The page, and the figure on it."""
    page = run_cell(CELL)
    found = page.locator(".undertorch-leaves")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


def said(board, line):
    api.expect(board.get_by_role("status")).to_have_text(EXPECTED.text(line))


def test_lines_are_gone_through_by_keyboard(figure):
    page, board = figure
    back, slider, forward = (
        board.get_by_role("button", name="Back", exact=True),
        board.get_by_role("slider", name="Lines that have run"),
        board.get_by_role("button", name="Forward", exact=True),
    )
    said(board, 0)
    api.expect(board.locator(".card")).to_have_count(0)
    api.expect(back).to_have_attribute("aria-disabled", "true")
    forward.focus()
    for line in (1, 2):
        page.keyboard.press("Enter")
        said(board, line)
    page.keyboard.press("Shift+Tab")
    api.expect(slider).to_be_focused()
    page.keyboard.press("End")
    said(board, 8)
    api.expect(slider).to_have_attribute("aria-valuetext", "8 of 8 lines have run")
    api.expect(forward).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("ArrowLeft")
    said(board, 7)
    back.press("Enter")
    said(board, 6)


def test_a_click_on_a_line_runs_up_to_it(figure):
    _, board = figure
    line = board.get_by_role("button", name="h = w * x")
    line.click()
    said(board, 5)
    api.expect(line).to_have_attribute("aria-current", "step")
    api.expect(board.locator("[aria-current]")).to_have_count(1)


def test_the_cards_and_the_boxes_follow(figure):
    _, board = figure
    slider = board.get_by_role("slider")
    slider.press("End")
    w = board.get_by_role("listitem").filter(has_text="w = 2")
    api.expect(w.locator("dd")).to_have_text(["True", "True", "None", "3"])
    api.expect(w).to_contain_text("changed")
    boxes = board.get_by_role("cell")
    api.expect(boxes.filter(has_text="none")).to_have_count(1)
    api.expect(boxes.filter(has_text="w, b")).to_have_count(1)
    slider.press("ArrowLeft")
    api.expect(w.locator("dd")).to_have_text(["True", "True", "None", "None"])
    api.expect(w).not_to_contain_text("changed")


def test_no_text_is_smaller_than_twelve_pixels(figure):
    _, board = figure
    board.get_by_role("slider").press("End")
    sizes = board.evaluate("el => [...el.querySelectorAll('*')].map(e => parseFloat(getComputedStyle(e).fontSize))")
    assert min(sizes) >= 12


def test_the_words_can_be_read_in_the_dark_theme(figure, screenshot, choose_dark_theme):
    page, board = figure
    board.get_by_role("slider").press("End")
    said(board, 8)
    screenshot(page, "leaf_board_light", board)
    choose_dark_theme(page, board.locator(".said"))
    screenshot(page, "leaf_board_dark", board)


def test_the_figure_is_not_wider_than_a_narrow_notebook(figure, fits_narrow_page, screenshot):
    page, board = figure
    board.get_by_role("slider").press("End")
    said(board, 8)
    fits_narrow_page(page, board, ".controls", ".views", "table", ".said")
    screenshot(page, "leaf_board_narrow", board)
