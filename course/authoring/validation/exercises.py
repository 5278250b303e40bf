"""Exercises with nbgrader's metadata: what blank, right and wrong answers earn, and what the release gives away.

What is released and what a cell earns is left to nbgrader. Wrong answers stand beside `squares.ipynb`, in
`squares.wrong.py`: cells in Jupytext's percent format, each with the grade_id of the cell that it answers, and words
that anybody who answers like this has to read:

    # %% of="squares" says="Square each number first"
    def squares(x): ...
"""

import copy
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jupytext
from nbformat import NotebookNode

from course.authoring.validation.running import Run, run
from course.base.environment import Problem
from course.base.notebooks import joined

EXERCISES = "exercises"
# What nbgrader's steps have to say is in their exceptions. Other logs stay as they are.
SILENT = logging.Logger("silent")
SILENT.disabled = True
NEEDED = "Exercises are checked with nbgrader: python -m pip install nbgrader"
CONFIG = "nbgrader_config.py"
LEAST = 10  # letters: anything shorter, such as `x = 1`, may be in a notebook for many reasons
_REGION = re.compile(r"(?ms)^[^\n]*BEGIN (?:SOLUTION|HIDDEN TESTS)[^\n]*\n(.*?)^[^\n]*END (?:SOLUTION|HIDDEN TESTS)")
_BLANK = re.compile(r"(?m)^\s*(?:\.\.\.|# YOUR CODE HERE)\s*$")
Found = tuple[int | None, str]


class Trial(NamedTuple):
    """A way to run notebooks: where, for how long, with which kernel."""

    path: Path
    timeout: int
    kernel: str | None

    def __call__(self, nb: NotebookNode) -> Run:
        return run(nb, self.path, self.timeout, self.kernel, set())


def graded(nb: NotebookNode) -> bool:
    """Tell whether anything in the notebook is graded by a program."""
    return any(_is_test(cell) for cell in nb.cells)


def contract(nb: NotebookNode, trial: Trial) -> Iterator[Found]:
    """Find what is wrong with a notebook's exercises, each with the place of its cell. Raises Problem."""
    try:
        blank, released = _cleared(nb, trial.path, hidden=True), _cleared(nb, trial.path, hidden=False)
    except (RuntimeError, ValueError) as error:  # nbgrader's words: a region that does not end, say
        yield None, str(error)
        return
    yield from _points(trial(blank), "a blank answer", 0)
    if all(_BLANK.search(cell.source) for cell in nb.cells if _is_answer(cell)) and not _regions(nb):
        return  # what was released, without its solutions
    done = trial(nb)
    yield from _points(done, "the solution", 1)
    yield from given_away(nb, released)
    full = _earned(done)
    for at, source, says in _wrong(nb, trial.path):
        if at is None:
            yield None, f"{trial.path.stem}.wrong.py: {says}"
            continue
        answered = copy.deepcopy(nb)
        answered.cells[at].source = source
        yield from ((at, told) for told in _told(trial(answered), full, source, says))


def _told(done: Run, full: dict[int, tuple[float, float]], source: str, says: str) -> Iterator[str]:
    name = f"the wrong answer {source.strip().splitlines()[-1].strip()[:60]!r}"
    if done.stopped is not None:
        yield f"{name} could not be run: {done.why}"
    elif all(got >= full[at][0] for at, (got, _) in _earned(done).items()):
        yield f"{name} earns as much as the solution"
    elif says and says not in (text := _shown(done)):
        yield f"{name} is not told {says!r}, but: {text.strip()[:200] or 'nothing'}"


def _is_test(cell: NotebookNode) -> bool:
    notes = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(notes.get("grade")) and not notes.get("solution")


def _is_answer(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("solution"))


def _cleared(nb: NotebookNode, path: Path, hidden: bool) -> NotebookNode:
    """Return a notebook as nbgrader releases it; `hidden`: with hidden tests, as it grades one left blank."""
    try:
        from nbgrader.preprocessors import ClearHiddenTests, ClearOutput, ClearSolutions
        from traitlets.config import PyFileConfigLoader
    except ImportError:
        raise Problem(NEEDED) from None
    file = next((folder / CONFIG for folder in path.resolve().parents if (folder / CONFIG).is_file()), None)
    config = PyFileConfigLoader(CONFIG, path=str(file.parent)).load_config() if file else None
    steps = [ClearSolutions, ClearOutput] if hidden else [ClearSolutions, ClearHiddenTests, ClearOutput]
    new = copy.deepcopy(nb)
    for step in steps:
        made = step(config=config) if config else step()
        made.log = SILENT
        new, _ = made.preprocess(new, {})
    return new


def _earned(done: Run) -> dict[int, tuple[float, float]]:
    """Return what each test earns, and the most it could, by nbgrader's rule."""
    from nbgrader.utils import determine_grade

    return {at: determine_grade(cell) for at, cell in enumerate(done.notebook.cells) if _is_test(cell)}


def _points(done: Run, who: str, part: int) -> Iterator[Found]:
    """Check that all tests earn nothing (`part` 0), or everything (1)."""
    if done.stopped is not None:
        yield done.stopped, f"{who} could not be run: {done.why}"
        return
    for at, (got, most) in _earned(done).items():
        if got != part * most:
            errors = [f"{o.ename}: {o.evalue}" for o in done.notebook.cells[at].outputs if o.output_type == "error"]
            why = f" ({errors[0].splitlines()[0]})" if errors else ""
            yield at, f"{who} gets {got:g} of {most:g} points{why}"


def _shown(done: Run) -> str:
    """Return what the tests say."""
    found = []
    for cell in [cell for cell in done.notebook.cells if _is_test(cell)]:
        for output in cell.outputs:
            found += [output.get("text", ""), output.get("evalue", ""), output.get("data", {}).get("text/plain", "")]
    return "\n".join(map(joined, filter(None, found)))


# What the release gives away


def given_away(nb: NotebookNode, released: NotebookNode) -> Iterator[Found]:
    """Find a solution or a hidden test all of whose lines are in one cell that learners get."""
    seen = [(at, _plain(cell.source)) for at, cell in enumerate(released.cells)]
    for at, region in _regions(nb):
        lines = [line for line in map(_plain, region.splitlines()) if line and not line.startswith("#")]
        telling = [line for line in lines if len(line) >= LEAST]
        places = [place for place, text in seen if telling and all(line in text for line in telling)]
        if places:
            where = "its own cell" if places[0] == at else f"cell {places[0] + 1}"
            yield at, f"{where} gives away what is taken out here: {telling[0][:60]}"


def _plain(text: str) -> str:
    return " ".join(text.split())


def _regions(nb: NotebookNode) -> list[tuple[int, str]]:
    """Return what nbgrader takes out, by the place of its cell: marked regions, or else a whole answer of code."""
    found = []
    for at, cell in enumerate(nb.cells):
        marked = _REGION.findall(cell.source)
        whole = _is_answer(cell) and not marked and not _BLANK.search(cell.source)
        found += [(at, region) for region in ([cell.source] if whole else marked)]
    return found


# Wrong answers


def _wrong(nb: NotebookNode, path: Path) -> Iterator[tuple[int | None, str, str]]:
    """Yield each wrong answer: the place of the cell that it answers, its source, and what it should be told.

    If there is no place, the last says what is wrong with the file.
    """
    file = path.with_name(f"{path.stem}.wrong.py")
    if not file.is_file():
        return
    places = {cell.metadata.nbgrader.get("grade_id"): at for at, cell in enumerate(nb.cells) if _is_answer(cell)}
    for cell in jupytext.read(file, fmt="py:percent").cells:
        notes: dict[str, Any] = cell.metadata
        if cell.cell_type != "code":
            continue
        if notes.get("of") in places:
            yield places[notes["of"]], cell.source, notes.get("says", "")
        else:
            known = ", ".join(map(str, places))
            yield None, "", f"a cell says of={notes.get('of')!r}; there is {known or 'no cell to be answered'}"
