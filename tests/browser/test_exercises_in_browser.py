"""What a check says, as JupyterLab shows it."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("cloudpickle")

pytestmark = pytest.mark.browser

CELLS = (
    'from course import check, hint, progress, solution\nimport engine\ncheck("05.1", ...)',
    'check("05.1", (5.0, 2.0))',
    'check("05.1", (7.0, 2.0))',
    'def division_backward(g, x, y):\n    return (g / y).reshape(1), -g * x / y**2\n\ncheck("05.3", division_backward)',
    'def go_back(node, arriving, found):\n    print("<b>here</b>")\n    return node.nothing\n\ncheck("05.4", go_back)',
    'hint("05.2", 3)',
    'solution("05.2")',
    "progress()",
)


@pytest.fixture
def checked(tmp_path, open_lesson):
    """A page with a notebook of the cells above, run to its end."""
    nb = new_notebook(cells=[new_code_cell(source, metadata={"tags": ["raises-exception"]}) for source in CELLS])
    nb.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(nb, tmp_path / "97_checks.ipynb")
    page = open_lesson(tmp_path / "97_checks.ipynb")
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    api.expect(page.get_by_text("A worked solution of exercise 05.2")).to_be_visible()
    api.expect(page.get_by_text("lessons done").first).to_be_visible()
    return page


def test_a_check_shows_its_answer_to_eyes_and_ears_and_no_traceback(checked, screenshot):
    screenshot(checked, "checks")
    spoken = [status.inner_text() for status in checked.get_by_role("status").all() if "xercise" in status.inner_text()]
    assert spoken[0].startswith("Exercise 05.1: not attempted yet.")
    assert "Two paths lead from the root to a." in spoken[1] and "(5.0, 2.0)" in spoken[1]
    assert spoken[2].startswith("Exercise 05.1: correct. 1 point.")
    assert "Entry 1: the numbers are right, in the shape (1,) and not ()." in spoken[3] and "-1.5000" in spoken[3]
    assert "<b>here</b>" in spoken[4] and "return node.nothing" in spoken[4]  # as text, not as markup
    errors = checked.locator("[data-mime-type='application/vnd.jupyter.stderr']").all_inner_texts()
    assert errors == []  # the message has said it: no red box says it once more
    link = checked.get_by_role("link", name="exercise 05.2")
    assert "my_exercises/05_graph.ipynb" in link.get_attribute("href")
    keyword = checked.locator("pre span", has_text="def").first  # of the solution
    assert keyword.evaluate("span => getComputedStyle(span).color !== getComputedStyle(span.parentElement).color")
    assert checked.console_errors == []


def test_a_blank_notebook_runs_to_its_end(open_lesson, run_all):
    from course.base.notebooks import ROOT

    page = open_lesson(ROOT / "exercises/05_graph.ipynb", folder="my_exercises")
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    api.expect(page.get_by_text("Exercise 05.5: not attempted yet.").first).to_be_visible()
    assert page.console_errors == []
