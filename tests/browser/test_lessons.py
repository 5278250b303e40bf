"""Each lesson runs in JupyterLab from the first cell to the last, and its figures answer to the keyboard."""

import os
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.base.notebooks import ROOT
from course.kernel.saving import WIDGET
from course.pictures import picture

api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))

SLIDER = """\
from ipywidgets import HTML, IntSlider, VBox

slider, words = IntSlider(value=3, min=0, max=9, description="step"), HTML()

def tell(change=None):
    words.value = f"step {slider.value}: the square is {slider.value ** 2}"

slider.observe(tell, names="value")
tell()
VBox([slider, words])"""


DRAWN = ".jupyter-widgets, [class*='undertorch-']"  # ipywidgets' own, and the course's


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_from_start_to_end_and_can_be_used_by_everybody(
    lesson, open_lesson, run_all, whole_notebook, broken_rules, screenshot
):
    page = open_lesson(lesson)
    cells = run_all(page)
    api.expect(page.get_by_text("Loading widget")).to_have_count(0)
    screenshot(page, lesson)
    drawn = page.locator(f".jp-OutputArea-output :is({DRAWN})")
    if any(WIDGET in output.get("data", {}) for output in outputs_of(cells)):
        api.expect(drawn).not_to_have_count(0)  # what is far below is drawn when the browser has time
    else:
        assert drawn.count() == 0
    assert page.get_by_text("Error displaying widget").count() == 0
    assert page.get_by_text("Jupyter news").count() == 0  # JupyterLab's own question to a newcomer
    assert page.console_errors == []
    whole_notebook(page)
    assert broken_rules(page) == {}


def outputs_of(cells):
    return [output for cell in cells for output in cell["outputs"]]


# The fixtures themselves, on a notebook made here


@pytest.fixture
def standin(tmp_path):
    """A function: cells to the path of a notebook that holds them, not executed."""

    def write(*cells, name="99_standin"):
        nb = new_notebook(cells=list(cells))
        nb.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(nb, path)
        return path

    return write


def tagged(source, *tags):
    return new_code_cell(source, metadata={"tags": list(tags)})


def test_a_slider_moved_by_keyboard_changes_what_the_figure_says(standin, open_lesson, run_all, screenshot):
    page = open_lesson(standin(new_markdown_cell("# A slider"), new_code_cell(SLIDER)))
    run_all(page)
    slider = page.get_by_role("slider")
    api.expect(page.get_by_text("step 3: the square is 9")).to_be_visible()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    api.expect(page.get_by_text("step 5: the square is 25")).to_be_visible()
    api.expect(slider).to_have_attribute("aria-valuenow", "5.0")
    screenshot(page, "slider")
    assert page.console_errors == []


def test_a_stored_picture_is_shown_with_its_words_before_the_notebook_is_trusted(standin, open_lesson):
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect width="40" height="30"/></svg>'
    shown = new_output("display_data", picture(svg, "A black box, wider than high"))
    page = open_lesson(standin(new_code_cell("box", outputs=[shown], execution_count=1)))
    box = page.get_by_role("img", name="A black box, wider than high")
    api.expect(box).to_be_visible()
    assert box.evaluate("img => [img.complete, img.naturalWidth, img.naturalHeight]") == [True, 40, 30]


def test_run_all_goes_on_after_a_tagged_error_and_returns_what_the_cells_left(standin, open_lesson, run_all):
    slow = "import time\ntime.sleep(0.5)\nprint('after')"
    cells = run_all(open_lesson(standin(tagged("1 / 0", "raises-exception"), new_code_cell(slow), new_code_cell("7"))))
    error, text, value = outputs_of(cells)
    assert (error["ename"], text["text"], value["data"]) == ("ZeroDivisionError", "after\n", {"text/plain": "7"})


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (new_code_cell("1 / 0"), "cell 2: ZeroDivisionError: division by zero\n1 / 0"),
        (tagged("a = 1", "raises-exception"), "cell 2: it raised nothing\na = 1"),
    ],
)
def test_run_all_fails_at_the_cell_that_is_not_as_it_is_tagged(cell, reason, standin, open_lesson, run_all):
    page = open_lesson(standin(new_code_cell("a = 0"), cell, new_code_cell("b = 2")))
    with pytest.raises(pytest.fail.Exception) as failure:
        run_all(page)
    assert failure.value.msg == reason


def test_run_all_gives_up_on_a_cell_that_does_not_end(standin, open_lesson, run_all):
    page = open_lesson(standin(new_code_cell("import threading\nthreading.Event().wait()")))
    with pytest.raises(api.TimeoutError):
        run_all(page, timeout_ms=1000)


def test_errors_in_the_browsers_console_are_gathered(standin, open_lesson):
    page = open_lesson(standin(new_code_cell("a = 0")))
    page.evaluate("console.error('a figure went wrong')")
    assert page.console_errors == ["a figure went wrong"]


def test_saving_in_jupyterlab_writes_an_authors_cell_back_to_its_text(authors_lab, open_lesson):
    pytest.importorskip("jupytext")
    from course.authoring.building import answer, parse

    text = authors_lab.root / "course/lessons/98_paired/lesson.md"
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text("# Paired\n\n+++\n\nOld words.\n\n```{code-cell}\n:tags: [b]\n\nprint(1)\n```\n", encoding="utf-8")
    assert answer(parse(["--format", "98"]), authors_lab.root) == 0
    formatted = text.read_text(encoding="utf-8")
    assert answer(parse(["98"]), authors_lab.root) == 0
    os.utime(text, (time.time() - 3600,) * 2)  # a notebook is younger than its text: building takes a while

    page = open_lesson(authors_lab.root / "notebooks/98_paired.ipynb", "notebooks", authors_lab)
    page.evaluate("""async () => {
        const { shell, commands } = window.jupyterapp;
        shell.currentWidget.content.widgets[1].model.sharedModel.setSource('New words.');
        await commands.execute('docmanager:save');
    }""")
    assert text.read_text(encoding="utf-8") == formatted.replace("Old words.", "New words.")
    assert answer(parse(["98", "--check"]), authors_lab.root) == 1  # until it is built again: the stored ids tell
    assert answer(parse(["98"]), authors_lab.root) == 0
    assert answer(parse(["98", "--check"]), authors_lab.root) == 0


def test_a_screenshot_shows_the_whole_notebook(standin, open_lesson, screenshot, monkeypatch, tmp_path):
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setenv("UNDERTORCH_SCREENSHOTS", str(tmp_path / "shots"))
    page = open_lesson(standin(*(new_markdown_cell(f"# Heading {number}") for number in range(60))))
    path = screenshot(page, "tall")
    assert path == tmp_path / "shots/tall.png"
    with image.open(path) as shot:
        assert shot.height > 2 * page.viewport_size["height"]
