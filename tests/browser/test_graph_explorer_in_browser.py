"""GraphExplorer in JupyterLab: by keyboard and by mouse, in words for screen readers, in both themes."""

import pytest

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")
pytest.importorskip("graphviz")

pytestmark = pytest.mark.browser

CELL = """\
import engine
from course.figures import GraphExplorer

w = engine.tensor(2.0, requires_grad=True)
x = engine.tensor(3.0)
h = w * x
loss = (h + w) ** 2
GraphExplorer(loss)"""


@pytest.fixture
def figure(run_cell):
    """The page, and the figure on it."""
    page = run_cell(CELL)
    found = page.locator(".undertorch-graph")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


def chosen(figure):
    return figure.locator(".node.chosen")


def test_the_list_chooses_a_node_from_the_keyboard(figure):
    _, explorer = figure
    select = explorer.get_by_role("combobox", name="Node")
    api.expect(chosen(explorer)).to_contain_text("PowBackward0")
    select.focus()
    select.press("ArrowDown")
    api.expect(chosen(explorer)).to_contain_text("AddBackward0")
    api.expect(explorer.get_by_role("heading", level=3)).to_have_text("2 AddBackward0")
    api.expect(explorer.get_by_role("status")).to_contain_text(
        "2 AddBackward0. Shape: scalar float32. Value: 8. Gradient: 16"
    )


def test_the_buttons_lead_to_the_neighbours_and_keep_the_focus(figure):
    page, explorer = figure
    explorer.get_by_role("combobox").select_option("2 AddBackward0")
    explorer.get_by_role("button", name="3 MulBackward0 (h)").press("Enter")
    api.expect(explorer.get_by_role("heading", level=3)).to_have_text("3 MulBackward0 (h)")
    api.expect(explorer.get_by_role("button", name="4 leaf w")).to_be_focused()
    page.keyboard.press("Enter")
    api.expect(explorer.get_by_role("heading", level=3)).to_have_text("4 leaf w")
    api.expect(explorer.get_by_role("status")).to_contain_text("Used by: 2 AddBackward0, 3 MulBackward0 (h)")


def test_a_click_in_the_picture_chooses_a_node_and_marks_its_neighbours(figure, screenshot):
    page, explorer = figure
    explorer.locator(".node.n2").click()
    api.expect(explorer.get_by_role("heading", level=3)).to_have_text("2 AddBackward0")
    for part, count in ((".node.input", 2), (".node.user", 1), (".edge.marked", 2)):
        api.expect(explorer.locator(part)).to_have_count(count)
    screenshot(page, "graph_explorer", explorer)
    explorer.locator(".node.result").click()
    api.expect(explorer.get_by_role("heading", level=3)).to_have_text("1 PowBackward0 (loss)")


def test_each_switch_takes_its_layer_from_the_picture_and_gives_it_back(figure, screenshot):
    page, explorer = figure

    def drawn(words):
        return explorer.locator(".picture text", has_text=words)

    for name, words, times in (("values", "= 6", 2), ("gradients", "grad 16", 2), ("shapes", "scalar", 6)):
        switch = explorer.get_by_role("checkbox", name=name)
        api.expect(drawn(words)).to_have_count(times)
        switch.press("Space")
        api.expect(drawn(words)).to_have_count(0)
        switch.press("Space")
        api.expect(drawn(words)).to_have_count(times)
    for name in ("values", "gradients", "shapes"):
        explorer.get_by_role("checkbox", name=name).uncheck()
    api.expect(drawn("MulBackward0")).to_have_count(1)
    api.expect(explorer.locator(".edge.n3-0 path").last).to_have_css("visibility", "hidden")
    api.expect(explorer.locator(".edge.n2-0 text").first).to_have_text("h")
    screenshot(page, "graph_explorer_bare", explorer)


def test_the_words_can_be_read_in_the_dark_theme(figure, screenshot, choose_dark_theme):
    page, explorer = figure
    choose_dark_theme(page, explorer.locator(".panel"))
    screenshot(page, "graph_explorer_dark", explorer)


def test_the_figure_is_not_wider_than_a_narrow_notebook(figure, fits_narrow_page):
    fits_narrow_page(*figure, ".controls", ".picture", ".panel")
