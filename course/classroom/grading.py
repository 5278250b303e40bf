"""Grading: what is right is decided here, where no submission's code ever runs.

`Grade`, a step of nbgrader's `autograde` (`course/jupyter/nbgrader_config.py`), takes the place of running a
notebook. For each cell of checks it starts `python -m course.classroom.grading`, which knows the oracle. That starts
`course.process.judged`, which does not, and runs the answer there; values come back, and are compared. Submissions
arrive as people send them: `course.classroom.handed_in` and `tidy` make what nbgrader can work with of broken and
copied pieces.
"""

import ast
import builtins
import contextlib
import functools
import io
import json
import math
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import cloudpickle

from course.base.notebooks import ROOT, kernel_environment
from course.judging import exercises, judge, sources
from course.judging.exercises import CORRECT, NOT_ATTEMPTED, NOT_YET, Exercise, find
from course.judging.judge import Verdict
from course.judging.plain import Raised
from course.judging.sources import UNREADABLE, as_python, bound
from course.kernel.shell import ANSI
from course.process import sandbox, worker
from course.process.attempts import NotChecked
from course.process.judged import BROKEN, Reply, Request, read

if TYPE_CHECKING:  # to import nbformat takes seconds, and the process that decides on one answer has no need of it
    from nbformat import NotebookNode

MOST_SECONDS = 30.0  # of computing, for an answer together with all cells above it
# What the process of a submission is told of this computer.
_KEPT = {
    *("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "PROCESSOR_ARCHITECTURE"),  # Windows: where and what it is
}
_COURSES_NAMES = {"check", "hint", "progress", "solution"}


class Check(NamedTuple):
    """A cell of checks, and the submission's cells of code that it is about."""

    key: str
    expression: str  # what is checked
    hidden: bool
    answer: list[str]  # the cells of this exercise
    above: list[str]  # all of them down to the check
    sealed: bool = False  # a class's own numbers: the answer is in its bank
    own: str = ""  # that answer, as Python
    together: float = MOST_SECONDS  # of computing, for the answer with what is above it


# The process that decides


def decided(check: Check) -> dict[str, Any]:
    """The verdict and what was printed. Raises NotChecked."""
    exercise, above = _asked(check.key, check.own), list(check.above)
    alone = [*_released(exercise.lesson, of_nobody=True), *check.answer]
    verdict = {"state": NOT_ATTEMPTED} if _is_blank(check) else _passed(exercise, check, alone, exercise.seconds)
    if verdict["state"] == CORRECT or set(above) <= set(alone):
        return verdict
    # Alone it is not right. It may use what another cell defines; what another cell breaks has cost nothing so far.
    seconds = max(exercise.seconds, check.together)
    if verdict["state"] != NOT_ATTEMPTED:
        together = _passed(exercise, check, above, seconds)
        return verdict if together.get("stopped") else together
    made = [source for source in above if source not in alone and check.expression in bound(source)]
    together = _passed(exercise, check._replace(answer=made), above, seconds)
    return together if made or together["state"] == CORRECT else verdict


def _asked(key: str, own: str) -> Exercise:
    """The exercise; with a class's own answer, of which the rows of the course's say nothing."""
    exercise = find(key)
    return exercise._replace(answer=ast.literal_eval(own), wrong=(), entries={}, properties=()) if own else exercise


def _passed(exercise: Exercise, check: Check, cells: list[str], seconds: float) -> dict[str, Any]:
    answer = _judged(exercise, check, cells, seconds, hidden=False)
    if check.hidden and (answer["state"] == CORRECT or answer.get("share", 0) >= judge.MOST_OF_IT):
        more = _judged(exercise, check, cells, seconds, hidden=True)
        share = min(answer.get("share", 0), more.get("share", 0))
        answer = (more if answer["state"] == CORRECT else answer) | {"share": share}
    return answer


def _judged(exercise: Exercise, check: Check, cells: list[str], seconds: float, hidden: bool) -> dict[str, Any]:
    should, source = _expected(exercise.key, hidden, check.own), "\n".join(map(as_python, check.answer))
    named = {f"cell {number}": source for number, source in enumerate(cells, start=1)}
    answer = [name for name, source in named.items() if source in check.answer]
    with tempfile.TemporaryDirectory(prefix="submission-", ignore_cleanup_errors=True) as folder:
        steps, function = packed(exercise, hidden), callable(exercise.answer)
        request = Request(steps, function, list(named.items()), answer, check.expression, seconds, folder)
        data, ended = worker.exchange(_start(folder), pickle.dumps(tuple(request)), seconds)
        _kill_the_left_behind()
    if not data:
        return {"state": NOT_YET, "message": ended, "stopped": True}
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(broken := json.loads(data), dict) and BROKEN in broken:
            raise NotChecked(str(broken[BROKEN]))
    try:
        reply, share = read(data), 0.0
        verdict = _without_a_value(reply, reply.attempt) if isinstance(reply.attempt, Raised) else None
        if verdict is None:
            assert not isinstance(reply.attempt, Raised)
            seen = [s._replace(shown=e.shown) for s, e in zip(reply.attempt.seen or [], should.right, strict=False)]
            attempt = reply.attempt._replace(seen=None if reply.attempt.seen is None else seen)
            verdict = judge.compared(exercise, attempt, should, hidden, source)
            share = judge.share(exercise, attempt, should)
    except Exception:  # it wrote the answer itself
        return {"state": NOT_YET, "message": "What came back from it is not what a check gives."}
    rows = list(verdict.rows)
    if verdict.at and (line := _line(named, verdict.at)):
        rows.append(("In the line", line))
    if reply.printed and not hidden:
        rows.append(("Printed", ANSI.sub("", reply.printed)))
    return {"state": verdict.state, "message": verdict.message, "rows": rows, "share": share}


@functools.cache
def _expected(key: str, hidden: bool, own: str) -> judge.Expected:
    try:
        return judge.expected(_asked(key, own), hidden)
    except Exception as error:
        raise NotChecked(f"The check of exercise {key} has a mistake of its own: {error}") from None


def _without_a_value(reply: Reply, error: Raised) -> Verdict:
    """Of an answer that could not be had."""
    if error.name == "NameError":
        if not reply.cell:
            name = next(iter(re.findall(r"'(\w+)'", error.message)), "it")
            return Verdict(
                NOT_YET, f"There is no `{name}` after its cell has run: the cell gives that name to nothing."
            )
        error = reply.cell  # its cell has stopped before
    return Verdict(NOT_YET, f"Its cell stopped with {error.name}: {error.message}", at=error.at)


def _line(sources: dict[str, str], at: tuple[str, int]) -> str:
    lines = as_python(sources.get(at[0], "")).splitlines()
    return lines[at[1] - 1].strip() if 0 < at[1] <= len(lines) else ""


def _released(lesson: str, of_nobody: bool = False) -> list[str]:
    """The cells of code in a lesson's blank notebook. `of_nobody`: but for answers and checks."""
    path = ROOT / "exercises" / f"{exercises.title(lesson)}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in code if not (of_nobody and "nbgrader" in cell["metadata"])]


def _is_blank(check: Check) -> bool:
    return sources.is_blank(check.answer, exercises.cell(check.key, "exercises") or "")


def _is_untouched(check: Check) -> bool:
    """Whether it is blank, and no cell above speaks of it either."""
    if not _is_blank(check):
        return False
    released, name = set(_released(check.key[:2])), re.compile(rf"\b{re.escape(check.expression)}\b")
    return not any(name.search(source) for source in check.above if source not in released)


class _Packer(cloudpickle.Pickler):
    """Takes no oracle along."""

    oracle: Any = None

    def reducer_override(self, value: Any) -> Any:
        if callable(self.oracle) and value is self.oracle:
            raise NotChecked(f"The steps of the check use the right answer, {value!r}.")
        return super().reducer_override(value)


def packed(exercise: Exercise, hidden: bool) -> bytes:
    """The steps of a check, and of its file what they use. Raises NotChecked where the oracle is among that."""
    module = exercises.checks(exercise.lesson)
    cloudpickle.register_pickle_by_value(module)
    buffer = io.BytesIO()
    packer = _Packer(buffer)
    packer.oracle = exercise.answer
    packer.dump(judge.trial_of(exercise, hidden))
    return buffer.getvalue()


def _start(folder: str) -> subprocess.Popen[bytes]:
    own = {
        "HOME": folder,
        "USERPROFILE": folder,  # what Windows calls so
        "LOCALAPPDATA": folder,
        "APPDATA": folder,
        "TMPDIR": folder,
        "TEMP": folder,
        "TMP": folder,
        "IPYTHONDIR": folder,
        "MPLCONFIGDIR": folder,
        "PIP_RETRIES": "0",  # there is no network, and no answer waits for one
    }
    known = kernel_environment()
    kept = {name: known[name] for name in known if name in _KEPT or name.startswith("PYTHON") or "THREADS" in name}
    process = subprocess.Popen(
        [sys.executable, "-m", "course.process.judged"],
        cwd=ROOT,
        env=kept | own,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=worker.NO_WINDOW,
    )
    if worker.received(process.stdout) != worker.READY:
        raise NotChecked("The process for the submission's answer could not be started.")
    return process


def _kill_the_left_behind() -> None:
    """What the answer has started, and left: on Linux they have become this process's own."""
    with contextlib.suppress(ImportError):
        import psutil

        for _ in range(10):
            left = psutil.Process().children(recursive=True)
            for child in left:
                with contextlib.suppress(psutil.Error):
                    child.kill()
            psutil.wait_procs(left, timeout=1)
            if not left:
                return


def _serve() -> None:
    sandbox.unseen()
    worker.adopt()
    check = Check(*json.load(sys.stdin))
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the course's own steps print is not a part of the verdict
    try:
        answer = decided(check)
    except NotChecked as error:
        answer = {BROKEN: str(error)}
    json.dump(answer, reply)
    reply.close()


def decide(check: Check, patience: float | None = None) -> dict[str, Any]:
    """`decided` in a process of its own, in which nothing was computed before. Raises NotChecked.

    `patience`: after so many seconds by the clock nothing is known about the answer.
    """
    if _is_untouched(check):
        return {"state": NOT_ATTEMPTED}
    process = subprocess.Popen(
        [sys.executable, "-m", "course.classroom.grading"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        cwd=ROOT,
        env=kernel_environment(),
    )
    try:
        reply, error = process.communicate(json.dumps(check), patience)
    except subprocess.TimeoutExpired:
        worker.stop_tree(process)
        raise NotChecked("The time was over before it was judged.") from None
    if process.returncode:
        raise NotChecked(f"The check of exercise {check.key} could not be run: {error.strip()[-300:]}")
    answer = json.loads(reply)
    if BROKEN in answer:
        raise NotChecked(answer[BROKEN])
    return answer


def tidy(nb: "NotebookNode", source_cells: list[Any], points: dict[str, float], solutions: set[str]) -> list[str]:
    """Give each cell of the assignment its place and nbgrader's notes once; what was done, in sentences.

    A check's first copy stays, and an answer's last that is not blank. Missing checks are added.
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
    """What the cell of checks at a place of a notebook asks; None where it calls no `check`."""
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
    """What stands under a cell of checks. For nbgrader a number among it is the points, an error none, else all."""
    from nbformat.v4 import new_output

    from course.learner.calls import message

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
    """The points for an answer that is right in part, in halves of a point.

    Of a value its share of right entries; for a function half, where it does most of what is asked for.
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
    """The outputs of the cell of checks at a place of a notebook. Raises NotChecked.

    `own`: gives the class's own answer to an exercise, as Python.
    """
    check = check_of(nb, place)
    if check is None:
        return [_error("This cell calls no `check`: give its points by hand.")]
    if check.sealed:
        check = check._replace(own=own(check.key))
    return outputs(check, decide(check), float(nb.cells[place].metadata.nbgrader.points))


def hiding(source: str) -> list[str]:
    """The names of Python's own, and of the course's, that a cell of code uses for something else."""
    try:
        body = ast.parse(as_python(source)).body
    except UNREADABLE:
        return []
    named = {name.id for part in body if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign)
             for name in ast.walk(part) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}  # fmt: skip
    named |= {part.name for part in body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    return sorted(name for name in named if name in _COURSES_NAMES or hasattr(builtins, name))


def about_hiding(names: list[str]) -> "NotebookNode":
    """A word about them, under the cell."""
    from course.learner.calls import message

    listed = ", ".join(f"`{name}`" for name in names)
    text = (
        f"{listed}: Python or the course uses this name. In your notebook it is hidden now; "
        f"`del {', '.join(names)}` brings it back. Other answers were graded without this cell, and lost nothing by it."
    )
    return _message(*message("A word", text, [], "", "warn"))


if __name__ == "__main__":
    _serve()
