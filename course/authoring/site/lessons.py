"""A notebook on the site: its cells with their stored outputs, the answers folded away."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from course.authoring.site.links import Links
from course.base.folds import SUMMARY
from course.classroom.materials.questions import ASKED, without_talk
from course.kernel.saving import ASLEEP

if TYPE_CHECKING:
    from nbformat import NotebookNode

FOLDED, READ = f"<details><summary>{SUMMARY}<", "<details><summary>Once you have seen what comes out<"
TWICE = "<p><strong>Predict.</strong> "  # as the text above it begins
FIGURE = "figure"  # in a cell's metadata: the script of a figure that answers on the page
STILL = "<p class='asleep'><em>A still picture. In JupyterLab it answers to your mouse and keyboard.</em></p>\n"


def page(nb: "NotebookNode", place: str, links: Links) -> "NotebookNode":
    """Render a notebook for the site."""
    cells = [cell for cell in nb.cells if "navigation" not in cell.metadata.get("tags", [])]
    for asked in answers(cells):
        asked.metadata["tags"] = ["hide-output"]
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = links.in_markdown(cell.source.replace(FOLDED, READ), place)
        else:
            if ASKED.search(cell.source):  # its question is below
                cell.metadata["tags"] = ["remove-input"]
            for output in cell.outputs:
                if "text/html" in output.get("data", ()):
                    output.data["text/html"] = of_output(cell, output.data["text/html"], place, links)
    nb.cells = cells
    return nb


def answers(cells: Sequence["NotebookNode"]) -> Iterator["NotebookNode"]:
    """Find the cells whose outputs answer a prediction: from the explanation back up to the question."""
    for place, cell in enumerate(cells):
        if cell.cell_type == "markdown" and cell.source.startswith(FOLDED):
            for before in reversed(cells[:place]):
                if before.cell_type != "code" or ASKED.search(before.source):
                    break
                yield before


def of_output(cell: "NotebookNode", html: str, place: str, links: Links) -> str:
    """Render a stored output for the site; a figure that answers a prediction knows its script."""
    if ASKED.search(cell.source):
        html = html.replace(ASLEEP, "").replace(TWICE, "<p>")
    html = links.in_html(html.replace(ASLEEP, STILL), place)
    script = cell.metadata.get(FIGURE)
    return f'<div class="moving" data-figure="../moving/{script}"><div>{html}</div></div>' if script else html


def exercises(blank: "NotebookNode", solved: "NotebookNode") -> "NotebookNode":
    """Render the exercises, each with its solution folded away below it."""
    from nbformat.v4 import new_markdown_cell

    answers = {cell.metadata.exercise: cell for cell in solved.cells if "exercise" in cell.metadata}
    cells = []
    for cell in blank.cells:
        cells.append(cell)
        answer = answers.get(cell.metadata.get("exercise"))
        if answer is not None:
            code = without_talk(answer.source).strip()
            cells.append(
                new_markdown_cell(f"<details><summary>Solution</summary>\n\n```python\n{code}\n```\n\n</details>")
            )
    blank.cells = cells
    return blank
