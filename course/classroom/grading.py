"""Grading as nbgrader asks for it: what goes under each cell of checks, and how many points that is.

`Grade`, a step of nbgrader's `autograde` (`course/jupyter/nbgrader_config.py`), takes the place of running a notebook:
no submission's code runs here, `course.classroom.deciding` has it run elsewhere. Submissions arrive as people send
them: `course.classroom.handed_in` and `tidy` turn broken and copied pieces into something that nbgrader can work with.
"""

import ast
import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from course.classroom.deciding import Check, decide
from course.judging import judge
from course.judging.exercises import CORRECT, NOT_ATTEMPTED, NOT_YET, find
from course.judging.sources import UNREADABLE, as_python

if TYPE_CHECKING:
    from nbformat import NotebookNode

_COURSES_NAMES = {"check", "hint", "progress", "solution"}


def tidy(nb: "NotebookNode", source_cells: list[Any], points: dict[str, float], solutions: set[str]) -> list[str]:
    """Give each cell of the assignment its place and nbgrader's notes once; say in sentences what was done.

    Of a check the first copy stays, of an answer the last one that is not blank. Missing checks are added.
    """
    from nbformat.v4 import new_code_cell, new_markdown_cell

    known = {cell.name: cell for cell in source_cells}
    says, places = [], dict[str, list[int]]()
    for place, cell in enumerate(nb.cells):
        notes = cell.metadata.get("nbgrader")
        name = notes.get("grade_id") if isinstance(notes, dict) else None
        if isinstance(name, str) and name in known:
            places.setdefault(name, []).append(place)
        cell.metadata.pop("nbgrader", None)
    for name, there in places.items():
        if len(there) > 1:
            says.append(f"There are {len(there)} cells with the name {name}: one of them counts.")
        filled = [place for place in there if nb.cells[place].source != known[name].source]
        place = (filled or there)[-1] if name in solutions else there[0]
        nb.cells[place].metadata["nbgrader"] = _notes(known[name], points, solutions)
    for name in sorted(points.keys() - places.keys()):
        make = new_code_cell if known[name].cell_type == "code" else new_markdown_cell
        cell = make(known[name].source)
        cell.metadata["nbgrader"] = _notes(known[name], points, solutions)
        nb.cells.append(cell)
        says.append(f"The cell {name} was missing, and was added at the end.")
    return says


def _notes(cell: Any, points: dict[str, float], solutions: set[str]) -> dict[str, Any]:
    notes = {"grade_id": cell.name, "locked": cell.locked, "schema_version": 3, "task": False}
    graded = {"points": points[cell.name]} if cell.name in points else {}
    return (
        notes | graded | {"grade": cell.name in points, "solution": cell.name in solutions, "checksum": cell.checksum}
    )


# What nbgrader gets


def check_of(nb: "NotebookNode", place: int) -> Check | None:
    """Return what the cell of checks at a place of a notebook asks; None where it calls no `check`."""
    try:
        calls = [part for part in ast.walk(ast.parse(nb.cells[place].source)) if isinstance(part, ast.Call)]
    except SyntaxError:
        return None
    calls = [
        call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "check" and len(call.args) > 1
    ]
    if not calls or not isinstance(calls[0].args[0], ast.Constant):
        return None
    key, named = find(str(calls[0].args[0].value)).key, {word.arg for call in calls for word in call.keywords}
    code = [(at, cell) for at, cell in enumerate(nb.cells) if cell.cell_type == "code" and not _is_check(cell)]
    name = f"exercise-{key.replace('.', '-')}"
    answers = [c.source for _, c in code if c.metadata.get("nbgrader", {}).get("grade_id") == name]
    copies = [c.source for _, c in code if c.metadata.get("exercise") == key]
    above = [cell.source for at, cell in code if at < place]
    expression = ast.unparse(calls[0].args[1])
    return Check(key, expression, "hidden" in named, answers or copies[-1:], above, "sealed" in named)


def _is_check(cell: "NotebookNode") -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def outputs(check: Check, answer: dict[str, Any], points: float) -> list["NotebookNode"]:
    """Return what goes under a cell of checks: to nbgrader a number is the points, an error none, anything else all."""
    from nbformat.v4 import new_output

    from course.learner.messages import message

    state = answer["state"]
    head = f"Exercise {check.key}: {'not attempted yet' if state == NOT_ATTEMPTED else state}."
    text = f"{points:g} point{'' if points == 1 else 's'}." if state == CORRECT else answer.get("message", "")
    tone = {CORRECT: "success", NOT_ATTEMPTED: "info"}.get(state, "warn")
    rows = [(label, shown) for label, shown in answer.get("rows", []) if shown and state == NOT_YET]
    after = find(check.key).understood if state == CORRECT else ""
    part = partial(check, answer, points)
    if part:
        after = f"{part:g} of {points:g} points: {_why(check, answer)}"
    shown = [_message(*message(head, text, rows, after, tone))]
    if part:
        return [*shown, new_output("execute_result", data={"text/plain": f"{part:g}"}, execution_count=None)]
    return shown if state == CORRECT else [*shown, _error(head)]


def partial(check: Check, answer: dict[str, Any], points: float) -> float:
    """Return the points for an answer that is right in part, in halves of a point.

    For a value, its share of right entries; for a function, half if it does most of what it should.
    """
    share = answer.get("share", 0.0) if answer["state"] == NOT_YET else 0.0
    if callable(find(check.key).answer):
        share = 0.5 if share >= judge.MOST_OF_IT else 0.0
    return min(math.floor(2 * points * share) / 2, points - 0.5)


def _why(check: Check, answer: dict[str, Any]) -> str:
    if not callable(find(check.key).answer):
        return "some of the entries are right."
    if answer["share"] == 1:
        return "the results are right, but not the way to them."
    return "most of the results are right."


def _error(says: str) -> "NotebookNode":
    from nbformat.v4 import new_output

    return new_output("error", ename="NotYet", evalue=says, traceback=[says])


def _message(text: str, html: str) -> "NotebookNode":
    from nbformat.v4 import new_output

    return new_output("display_data", data={"text/plain": text, "text/html": html})


def grade_cell(nb: "NotebookNode", place: int, own: Callable[[str], str]) -> list["NotebookNode"]:
    """Return the outputs of the cell of checks at a place of a notebook. Raises NotChecked.

    `own`: gives the class's own answer to an exercise, as Python.
    """
    check = check_of(nb, place)
    if check is None:
        return [_error("This cell calls no `check`: give its points by hand.")]
    if check.sealed:
        check = check._replace(own=own(check.key))
    return outputs(check, decide(check), float(nb.cells[place].metadata.nbgrader.points))


def hiding(source: str) -> list[str]:
    """Return the names that a cell of code takes from Python, or from the course, for something else."""
    try:
        body = ast.parse(as_python(source)).body
    except UNREADABLE:
        return []
    named = {name.id for part in body if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign)
             for name in ast.walk(part) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}  # fmt: skip
    named |= {part.name for part in body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    return sorted(name for name in named if name in _COURSES_NAMES or hasattr(builtins, name))


def about_hiding(names: list[str]) -> "NotebookNode":
    """Write a word about them, to go under the cell."""
    from course.learner.messages import message

    listed = ", ".join(f"`{name}`" for name in names)
    text = (
        f"{listed}: Python or the course uses this name. In your notebook it is hidden now; "
        f"`del {', '.join(names)}` brings it back. Other answers were graded without this cell, and lost nothing by it."
    )
    return _message(*message("A word", text, [], "", "warn"))
