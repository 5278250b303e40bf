"""What a learner finds who comes back: the files as they were, and figures that can be woken."""

import re
import shutil
from pathlib import Path

import pytest

from course.base.notebooks import ROOT
from course.learner import copies

api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

IS_DIRTY = "() => window.jupyterapp.shell.currentWidget.context.model.dirty"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"
# What JupyterLab does with a notebook that it takes for changed, when a minute has gone.
AUTOSAVE = """async () => {
    const { context } = window.jupyterapp.shell.currentWidget;
    await context.save();
}"""
OPEN = "path => void window.jupyterapp.commands.execute('docmanager:open', { path })"
EDIT_AND_RUN = """async () => {
    const { content } = window.jupyterapp.shell.currentWidget;
    content.activeCellIndex = content.widgets.findIndex(({ model }) => model.type === 'code');
    content.activeCell.model.sharedModel.setSource('print("it ran")');
    await window.jupyterapp.commands.execute('notebook:run-cell');
}"""
FIGURE = """import engine
from course.figures import BackwardStepper
w = engine.tensor(2.0, requires_grad=True)
loss = (3 * w) ** 2
BackwardStepper(loss)"""


@pytest.fixture
def original(lab):
    """A function: the course's own notebook, in the lab's folder."""

    def bring(folder, lesson):
        (lab.root / folder).mkdir(exist_ok=True)
        return Path(shutil.copy(ROOT / folder / f"{lesson}.ipynb", lab.root / folder))

    return bring


@pytest.mark.parametrize(("folder", "lesson"), [("notebooks", "00_welcome"), ("exercises", "05_graph")])
def test_a_copy_that_is_opened_and_saved_stays_as_it_is(folder, lesson, original, open_lesson, lab, rest):
    original(folder, lesson)
    (copy,) = copies.start(lesson, lab.root)
    as_made = copy.read_bytes()
    page = open_lesson(copy, copy.parent.name)
    rest(page)  # what the kernel says of itself has arrived
    assert not page.evaluate(IS_DIRTY)
    page.evaluate(AUTOSAVE)
    assert copy.read_bytes() == as_made


def test_an_original_can_be_read_and_run_and_is_not_written(original, open_lesson):
    path = original("notebooks", "05_graph")
    page = open_lesson(path, "notebooks")
    api.expect(page.get_by_role("tab", name="Original 05_graph.ipynb", exact=True)).to_have_count(1)
    page.evaluate(EDIT_AND_RUN)
    api.expect(page.get_by_text("it ran")).to_have_count(2)  # the source, and what it shows
    page.evaluate(f"() => void ({SAVE})()")
    api.expect(page.get_by_text("Document is read-only")).to_be_visible()
    assert path.read_bytes() == (ROOT / "notebooks/05_graph.ipynb").read_bytes()


def test_a_figure_without_its_kernel_is_a_picture_and_says_how_to_wake_it(run_cell, open_lesson, lab, run_all):
    page = run_cell(FIGURE)
    api.expect(page.get_by_role("slider")).to_be_visible()
    assert page.get_by_text("Run the cell").count() == 0
    page.evaluate(SAVE)
    page.close()
    for session in lab.request("api/sessions"):
        lab.request(f"api/sessions/{session['id']}", "DELETE")

    page = open_lesson(lab.root / "my_lessons/96_cell.ipynb")
    api.expect(page.get_by_role("img", name="Graph of loss")).to_be_visible()
    api.expect(page.get_by_text("A still picture. Run the cell (Shift+Enter)")).to_be_visible()
    assert page.get_by_text("Error displaying widget").count() == 0
    run_all(page)
    api.expect(page.get_by_role("slider")).to_be_visible()
    assert page.get_by_text("Run the cell").count() == 0


def test_a_figure_whose_kernel_was_restarted_says_so(run_cell):
    page = run_cell("from ipywidgets import IntSlider\nIntSlider()")
    slider = page.locator(".widget-slider")
    told = "slider => getComputedStyle(slider, '::after').content"
    assert slider.evaluate(told) == "none"
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    api.expect(page.locator(".widget-slider.jupyter-widgets-disconnected")).to_have_count(1)
    assert "Run the cell" in slider.evaluate(told)


def test_a_slider_of_ones_own_says_how_to_wake_it_too(run_cell, open_lesson, lab):
    page = run_cell("from ipywidgets import IntSlider\nIntSlider()")
    page.evaluate(SAVE)
    page.close()
    page = open_lesson(lab.root / "my_lessons/96_cell.ipynb")
    api.expect(page.get_by_text("Run the cell (Shift+Enter)")).to_be_visible()
    assert page.get_by_text("Error displaying widget").count() == 0


def test_the_tabs_of_a_lesson_its_exercises_and_their_solutions_are_told_apart(open_lesson, lab):
    for folder in ("my_exercises", "solutions"):
        (lab.root / folder).mkdir(exist_ok=True)
        shutil.copy(ROOT / "exercises/05_graph.ipynb", lab.root / folder)
    page = open_lesson("05_graph")
    for folder in ("my_exercises", "solutions"):
        page.evaluate(OPEN, f"{folder}/05_graph.ipynb")
    for name in ("05_graph.ipynb", "Exercises 05_graph.ipynb", "Solutions 05_graph.ipynb"):
        api.expect(page.get_by_role("tab", name=name, exact=True)).to_have_count(1)


def test_a_plot_is_dark_where_the_page_is(run_cell):
    page = run_cell("""from course.pictures import show
from matplotlib import pyplot
figure, axes = pyplot.subplots()
show(figure, "An empty plot, with two axes")""")
    plot = page.get_by_role("img", name="An empty plot")
    brightness = "img => getComputedStyle(img).filter"
    assert plot.evaluate(brightness) == "none"
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    api.expect(plot).to_have_css("filter", re.compile("invert"))
