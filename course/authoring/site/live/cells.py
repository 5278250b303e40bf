"""The figures of a lesson's notebook, made once more from the lines that they need, and no others of the lesson."""

import ast
import contextlib
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from course.classroom.materials.questions import ASKED
from course.kernel.saving import ASLEEP

if TYPE_CHECKING:
    from nbformat import NotebookNode

_MAGIC = re.compile(r"^[%!]", re.MULTILINE)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


class Other(Exception):
    """Raised where what is made here is not what the notebook shows."""


def places(cells: Sequence["NotebookNode"]) -> list[int]:
    """Find the cells that show a figure whose widget sleeps."""
    return [n for n, cell in enumerate(cells) if stored(cell) is not None]


def stored(cell: "NotebookNode") -> str | None:
    """Return the words of the figure in a cell; None where there is none, or only a question."""
    if cell.cell_type != "code" or ASKED.search(cell.source):
        return None
    for output in cell.outputs:
        data = output.get("data", {})
        if ASLEEP in data.get("text/html", ""):
            return str(data.get("text/plain", ""))
    return None


def figure(cells: Sequence["NotebookNode"], place: int) -> Any:
    """Run the cell and return what it shows.  Other where its words differ from the stored ones."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found: Any = None
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in needed([cell.source for cell in cells[: place + 1] if cell.cell_type == "code"]):
            tree = ast.parse(source)
            *_, last = tree.body
            if isinstance(last, ast.Expr):
                tree.body.pop()
            exec(compile(tree, "<lesson>", "exec"), names)
            found = (
                eval(compile(ast.Expression(last.value), "<lesson>", "eval"), names)
                if isinstance(last, ast.Expr)
                else None
            )
        words = str(found.static()["text/plain"])
    if _ADDRESS.sub("", words).split() != _ADDRESS.sub("", stored(cells[place]) or "").split():
        raise Other(f"{type(found).__name__} says {words[:200]!r} here, and something else in the notebook")
    return found


def needed(sources: Sequence[str]) -> list[str]:
    """Return the last of some cells, and the earlier ones that define the names it reads."""
    *before, last = sources
    wanted, chosen = set(_names(last, ast.Load)), [last]
    for source in reversed(before):
        if _MAGIC.search(source):
            continue
        try:
            made = set(_names(source, ast.Store))
        except SyntaxError:  # shown to fail
            continue
        if made & wanted:
            wanted = (wanted - made) | set(_names(source, ast.Load))
            chosen.append(source)
    return chosen[::-1]


def _names(source: str, how: type[ast.expr_context]) -> Iterator[str]:
    """Yield the names that lines read or define; a program in quotes reads names too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, how):
            yield node.id
        elif how is ast.Store and isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif how is ast.Store and isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif how is ast.Load and isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            with contextlib.suppress(SyntaxError):
                yield from _names(node.value, how)
