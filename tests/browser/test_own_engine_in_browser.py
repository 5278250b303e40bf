"""Lesson 11 as a learner has it: three dots, a check that answers at once, and pictures of their own graph and walk."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.base.notebooks import ROOT
from course.judging.exercises import blank
from engine import viz

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")
pytest.importorskip("cloudpickle")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(viz.render("digraph {}", "svg") is None, reason="there is no Graphviz here"),
]


@pytest.fixture
def page(tmp_path, open_lesson):
    """The lesson to its stepper: `mul` blank and checked first, then all of it as it is in the course."""
    cells = [
        cell
        for cell in nbformat.read(ROOT / "notebooks/11_build_autograd.ipynb", as_version=4).cells
        if cell.cell_type == "code"
    ]
    end = next(number for number, cell in enumerate(cells) if "BackwardStepper(" in cell.source)
    sources = [cell.source for cell in cells[: end + 1]]
    written = next(number for number, cell in enumerate(cells) if cell.metadata.get("exercise") == "11.mul")
    sources[written:written] = [blank(sources[written]), sources[written + 1]]
    nb = new_notebook(cells=[new_code_cell(source, metadata={"tags": ["raises-exception"]}) for source in sources])
    nb.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(nb, tmp_path / "96_own_engine.ipynb")
    page = open_lesson(tmp_path / "96_own_engine.ipynb")
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    api.expect(page.locator(".undertorch-steps")).to_have_count(1)
    yield page
    assert page.console_errors == []


def test_a_check_in_the_lesson_answers_at_once_and_the_own_walk_moves_by_keyboard(
    page, screenshot, choose_dark_theme, fits_narrow_page
):
    spoken = [status.inner_text() for status in page.get_by_role("status").all() if "11." in status.inner_text()]
    assert spoken[0].startswith("11.mul: not attempted yet. There are three dots left in the cell.")
    assert "hint('11.mul')" in spoken[0]
    assert [words.partition(":")[0] for words in spoken[1:]] == ["11.mul", "11.from_root", "11.backward"]
    assert all(words.partition(": ")[2].startswith("correct.") for words in spoken[1:])
    graph = page.get_by_role("img", name="4 Vars, 2 leaves among them").first
    api.expect(graph).to_be_visible()

    figure = page.locator(".undertorch-steps")
    slider = figure.get_by_role("slider", name="Step of the backward pass")
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    api.expect(figure.get_by_role("heading", name="Step 2 of 4: mul, which made c")).to_be_visible()
    api.expect(figure.get_by_text("waiting: 1 + 3")).to_be_visible()
    screenshot(page, "own_engine")
    choose_dark_theme(page, figure.get_by_role("heading", name="Step 2 of 4"))
    screenshot(page, "own_engine_dark")
    fits_narrow_page(page, figure)
