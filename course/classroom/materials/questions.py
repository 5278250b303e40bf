"""A lesson's predictions, with what a reader needs to answer them without the notebook."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat

from course.figures.predict import figure as predict

ASKED = re.compile(r"""^predict\(["'](\d\d)\.(\w+)["']\)""", re.MULTILINE)
SCENE = re.compile(r"(?m)^\*\*Predict\.\*\* +(.+)\Z", re.DOTALL)
HEADING = re.compile(r"(?m)^## (.+)$")
TALK = re.compile(r"(?m)^\s*### (?:BEGIN|END) SOLUTION\n?")


class Asked(NamedTuple):
    """A prediction, where it is and what surrounds it."""

    key: str  # "05.a"
    part: str  # the heading above it
    scene: str  # what its lesson says before it asks, in Markdown
    before: str  # the code above it in that part
    code: str  # the code that it is about: the cell that is run next
    question: str
    options: tuple[predict.Option, ...]


def asked(path: Path) -> Iterator[Asked]:
    """Yield the predictions of a notebook, in order."""
    part, scene, before = "", "", ""
    cells = nbformat.read(path, as_version=4).cells
    for place, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            if headings := HEADING.findall(cell.source):
                part, before = headings[-1], ""
            found = SCENE.search(cell.source)
            scene = found[1].strip() if found else ""
        elif match := ASKED.search(cell.source):
            question, options = predict.questions(match[1])[match[2]]
            code = next((cell.source for cell in cells[place + 1 :] if cell.cell_type == "code"), "")
            yield Asked(f"{match[1]}.{match[2]}", part, scene, before, without_talk(code), question, tuple(options))
        elif "engine-only" not in cell.metadata.get("tags", []):
            before = without_talk(cell.source)


def without_talk(code: str) -> str:
    """Return code without the marks of what a learner fills in."""
    return TALK.sub("", code)
