"""Fold away, below a prediction, what gives its answer: nobody who reads on is told before running the cell.

The build folds what comes first after the cell that a **Predict.** is about: a paragraph; a list; a paragraph that ends
with a colon, with what it announces. (One sentence that only announces the next cell is left.) A line

    <!-- answered -->

in the text says otherwise: all above it in its cell is folded, and nothing where it comes first. So it does further
down, below a figure, and where the answer comes right after the options, with no cell to be run.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

SUMMARY = "Once you have run the cell"
NO_CELL = "Once you have answered"
ANSWERED = "<!-- answered -->"
_BEGIN, _END = "<details><summary>{}</summary>\n\n", "\n\n</details>"
_FOLDED = re.compile(
    rf"\A<details><summary>(?:{SUMMARY}|{NO_CELL})</summary>\n\n(.*?){re.escape(_END)}",
    re.DOTALL,
)
_ASKS = re.compile(r"""(?m)^predict\(["']""")
_NEVER = ("#", "**Predict.**", "**Your turn", "<", ">", "|", "![")  # what begins something new
_BLOCKS = re.compile(r"```.*?^```$|\S.*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.?!)])\s+(?=[A-Z`*$(\[\"])")  # between two


def fold(cells: "Sequence[NotebookNode]") -> None:
    """Fold away what is said of the answer to each prediction, in place."""
    for place, cell in enumerate(cells):
        if cell.cell_type == "markdown" and (ANSWERED in cell.source or _answers(cells[:place])):
            no_cell = place and _ASKS.search(cells[place - 1].source)
            cell.source = folded(cell.source, NO_CELL if no_cell else SUMMARY)


def _answers(before: "Sequence[NotebookNode]") -> bool:
    """Tell whether a text follows the cells of a prediction: at least one besides the question's options."""
    run: list[str] = []
    for place, cell in reversed([*enumerate(before)]):
        if cell.cell_type == "markdown":
            asked = "**Predict.**" in _BLOCKS.findall(cell.source or "-")[-1]
            options = [_ASKS.search(code) for code in run]
            if run and not asked and not any(options) and not cell.source.startswith("#") and place:
                asked = bool(_ASKS.search(before[place - 1].source))  # a text between the options and their cell
            return not all(options) and (asked or any(options))
        run.append(cell.source)
    return False


def folded(source: str, summary: str = SUMMARY) -> str:
    """Fold away the beginning of a text."""
    if ANSWERED in source:
        said, _, rest = source.partition(ANSWERED)
        rest = ANSWERED + rest
    else:
        said, rest = _first(source)
    said = said.strip()
    return f"{_BEGIN.format(summary)}{said}{_END}\n\n{rest.lstrip()}".rstrip() if said else source


def _first(source: str) -> tuple[str, str]:
    """Part a text into what speaks of the answer and what comes after it."""
    blocks = [match.span() for match in _BLOCKS.finditer(source)]
    if not blocks or source[slice(*blocks[0])].lstrip().startswith(_NEVER):
        return "", source
    block, end = source[slice(*blocks[0])].rstrip(), blocks[0][1]
    if block.endswith(":") and len(blocks) > 1:
        end = blocks[1][1]
    elif block.endswith(":") and not _SENTENCE.search(block):
        end = 0
    return source[:end], source[end:]


def unfolded(source: str) -> str:
    """Return the text as it was written."""
    return _FOLDED.sub(r"\1", source)
