"""Compare what one notebook shows in two worlds: with a different import, with a different kernel."""

import ast
import copy
import re
from typing import NamedTuple

from nbformat import NotebookNode

from course.authoring.validation.comparing import differences
from course.authoring.validation.masks import Mask
from course.base.environment import Problem

WORLDS = "worlds"


class Line(NamedTuple):
    """`import NEW as NAME`: whatever NAME stands for is to come from NEW."""

    new: str
    name: str


def read_line(text: str) -> Line:
    """Read the line that replaces an import. Raises Problem if it is not one."""
    try:
        (statement,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        statement = None
    if isinstance(statement, ast.Import) and len(statement.names) == 1:
        alias = statement.names[0]
        if alias.asname or "." not in alias.name:
            return Line(alias.name, alias.asname or alias.name)
    raise Problem(f"--also takes a line such as `import torch as engine`, and not {text!r}.")


def with_line(notebook: NotebookNode, line: Line) -> NotebookNode | None:
    """Copy a notebook, importing from the other module what the line names; None if nothing is imported from it."""
    new, changed = copy.deepcopy(notebook), False
    code = [cell for cell in new.cells if cell.cell_type == "code"]
    name = re.escape(line.name)
    named = rf"(?m)^(\s*)import (?:([\w.]+) as {name}|{name})(?=\s*(?:#|;|$))"
    olds = {found[2] or line.name for cell in code for found in re.finditer(named, cell.source)} - {line.new}
    for cell in code:
        source = re.sub(named, rf"\1import {line.new} as {line.name}", cell.source)
        for old in olds:
            source = re.sub(rf"(?m)^(\s*)(import|from) {re.escape(old)}(?=\.\w| )", rf"\1\2 {line.new}", source)
        changed |= source != cell.source
        cell.source = source
    return new if changed else None


def between(one: NotebookNode, other: NotebookNode, masks: tuple[Mask, ...], names: tuple[str, str]) -> list[str]:
    """Return how two runs of a cell differ. Errors are compared by type and the first line of their message."""
    return differences(_read(one), _read(other), masks, names)


def _read(cell: NotebookNode) -> list[NotebookNode]:
    kept = [o for o in copy.deepcopy(cell.outputs) if o.output_type != "stream" or o.name == "stdout"]
    for output in kept:
        if output.output_type == "error":
            output.evalue = output.evalue.partition("\n")[0]
    return kept


def missing(one: NotebookNode, other: NotebookNode) -> str:
    """Return what the second world lacks: the import that fails only there."""
    for first, second in zip(one.cells, other.cells, strict=True):
        ours, theirs = (_import_error(cell) for cell in (first, second))
        if theirs and not ours:
            return theirs
    return ""


def _import_error(cell: NotebookNode) -> str:
    failed = [o for o in cell.get("outputs", []) if o.output_type == "error"]
    return next((f"{o.ename}: {o.evalue}" for o in failed if o.ename in ("ImportError", "ModuleNotFoundError")), "")
