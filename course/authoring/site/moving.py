"""The figures that answer on their pages: their files, what marks them on a page, and the table of them all."""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from course.authoring.site.lessons import FIGURE
from course.authoring.site.live.packed import Figure, figures
from course.base.environment import workers
from course.base.files import write_atomically
from course.classroom.materials import name_of

if TYPE_CHECKING:
    from nbformat import NotebookNode

FOLDER = "moving"
WORDS = """# Figures that move here

On these pages most figures can be moved: press the button above one. What it shows was computed by the engine when the
site was made, for every setting. Where there would be too many, the page has the still picture, and the figure moves
in JupyterLab.
"""


def write(lessons: Mapping[str, Path], beside: Path) -> dict[str, list[Figure]]:
    """Write the files of all lessons' figures into a folder; return the figures by lesson."""
    with ProcessPoolExecutor(workers(), mp_context=get_context("spawn")) as pool:
        found = dict(zip(lessons, pool.map(figures, lessons.values()), strict=True))
    files = {}
    for listed in found.values():
        for figure in listed:
            if figure.script:
                files[figure.file] = figure.script
                files[f"{figure.kind}.js"] = figure.front
    for name, text in files.items():
        write_atomically(beside / FOLDER / name, text)
    for path in [path for path in (beside / FOLDER).glob("*") if path.name not in files]:
        path.unlink()
    return found


def mark(nb: "NotebookNode", live: list[Figure]) -> None:
    """Tell the cells of figures that answer which scripts are theirs."""
    for figure in live:
        if figure.script:
            nb.cells[figure.place].metadata[FIGURE] = figure.file


def table(lessons: Mapping[str, Path], live: Mapping[str, list[Figure]]) -> str:
    """Write the page that says which figures can be moved."""
    rows = [WORDS, "| lesson | figure | here | |", "|---|---|---|---|"]
    for number, path in lessons.items():
        where = f"[{number} {name_of(path)}](notebooks/{path.name})"
        for figure in live[number]:
            row = f"moves | {figure.known}" if figure.script else f"still | {figure.why}"
            rows.append(f"| {where} | {figure.name} | {row} |")
    return "\n".join(rows) + "\n"
