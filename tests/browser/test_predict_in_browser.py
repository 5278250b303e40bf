"""Predict in JupyterLab: by mouse and by keyboard; committed by a click, answered when the next cell has run."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course.base.folds import SUMMARY, folded
from course.figures import Predict

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

RUN = "() => window.jupyterapp.commands.execute('notebook:run-cell-and-select-next')"


@pytest.mark.parametrize("hand", ["mouse", "keyboard"])
def test_a_click_commits_and_the_next_cell_brings_the_answer(
    hand, open_lesson, tmp_path, broken_rules, choose_dark_theme, fits_narrow_page, screenshot
):
    nb = new_notebook(
        cells=[
            new_code_cell("from course import predict\n\npredict('07.a')"),
            new_code_cell("print(9)"),
            new_markdown_cell(folded("9, since it is *added*.\n\nMore.")),
        ]
    )
    nb.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    path = tmp_path / "95_predict.ipynb"
    nbformat.write(nb, path)
    page = open_lesson(path)
    page.evaluate(RUN)
    figure, wrong = page.locator(".undertorch-predict"), Predict("07.a").options[0]
    button, said = figure.get_by_role("button", name=wrong.text, exact=True), figure.get_by_role("status")
    api.expect(said).to_be_empty()
    api.expect(page.locator(".jp-MarkdownCell summary")).to_have_text(SUMMARY)
    api.expect(page.locator(".jp-MarkdownCell em", has_text="added")).to_be_hidden()
    if hand == "mouse":
        button.click()
    else:
        button.focus()
        page.keyboard.press("Enter")
    api.expect(said).to_have_text("Noted. Now run the cell below.")
    api.expect(button).to_have_attribute("aria-pressed", "true")
    for other in figure.get_by_role("button").all():
        api.expect(other).to_be_disabled()
    page.evaluate(RUN)  # a click has selected the cell of the question: it is run once more, and the choice stands
    api.expect(said).to_have_text("Noted. Now run the cell below.")
    page.evaluate(RUN)
    explained = page.locator(".jp-MarkdownCell em", has_text="added")
    api.expect(said).to_contain_text("Not quite.")
    api.expect(explained).to_be_visible()  # what was folded has opened
    assert not broken_rules(page)
    screenshot(page, f"predict_{hand}", figure)
    choose_dark_theme(page, said)
    assert not broken_rules(page)
    screenshot(page, f"predict_{hand}_dark", figure)
    fits_narrow_page(page, figure)
    assert page.console_errors == []
