"""What is wrong with one notebook: findings, each with the places where a reader and an author look for it."""

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from jupytext.config import load_jupytext_config, notebook_formats
from jupytext.paired_paths import InconsistentPath, paired_paths
from nbformat import NotebookNode
from nbval.plugin import find_comment_markers, find_metadata_tags

from course.authoring.validation.comparing import differences
from course.authoring.validation.exercises import EXERCISES, Trial, contract, graded
from course.authoring.validation.masks import Mask
from course.authoring.validation.named import filled, numbers_of, roles
from course.authoring.validation.running import Run, run
from course.authoring.validation.sources import Source, TextLine, well_formed, with_ids
from course.authoring.validation.table import CHECKS, NUMBERS, OUTPUTS
from course.authoring.validation.worlds import WORLDS, Line, between, missing, with_line
from course.base.environment import Problem


class How(NamedTuple):
    """The demands on each notebook."""

    timeout: int
    kernels: tuple[str | None, ...]  # the second one is for the second world
    masks: tuple[Mask, ...]
    checks: frozenset[str]  # by name; OUTPUTS and WORLDS are what needs a run
    also: Line | None = None  # the second world's import
    first_only: str = ""  # the tag of cells that the second world leaves out
    brief: bool = False  # exempt cells do less, as their metadata says


class Finding(NamedTuple):
    """A cell that is not as stored, or not as it should be."""

    cell: str
    line: int | None
    says: str
    check: str = OUTPUTS
    at: int | None = None  # the place of the cell in the notebook


@dataclass
class Verdict:
    """The outcome for one notebook."""

    path: Path
    text: Path | None = None
    cells: int = 0
    findings: list[Finding] = field(default_factory=list)
    exempt: list[Finding] = field(default_factory=list)
    differing: list[int] = field(default_factory=list)  # the cells whose new outputs may be stored
    broken: str = ""  # why it could not be run to the end
    legible: bool = False
    reached: int = 0  # if it is broken, the place of the first cell that nothing is known about
    new: NotebookNode | None = None


# Not asked of a notebook whose outputs were left out, or that is still to be filled in.
UNRUN = {
    OUTPUTS: "there are no outputs to compare with",
    NUMBERS: "the numbers in its prose have no output to stand in",
}
# What reading a file that is not a notebook may raise.
FAULTS = (OSError, ValueError, nbformat.ValidationError, AttributeError, LookupError, TypeError)


def judge(path: Path, how: How) -> Verdict:
    """Look at a notebook, run it and compare; the verdict says what is wrong with it."""
    verdict = Verdict(path)
    try:
        data, stored = read(path)
    except FAULTS as error:
        verdict.broken = (
            f"it cannot be read: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        )
        return verdict
    verdict.legible = True
    try:
        _judge(path, how, verdict, data, stored)
    except FAULTS:
        if not (fault := _malformed(path, data)):
            raise
        verdict.broken = f"it cannot be looked at further: {fault}"
    return verdict


def _judge(path: Path, how: How, verdict: Verdict, data: dict[str, Any], stored: NotebookNode) -> None:
    pair = pair_of(path, stored)
    verdict.text = pair[0] if pair else None
    lines = _lines(verdict.text, stored) if verdict.text else {}
    code = [index for index, cell in enumerate(stored.cells) if cell.cell_type == "code"]
    verdict.cells = len(code)
    places = [
        (_number(cell, code.index(at) + 1) if at in code else f"cell {at + 1}", lines.get(at))
        for at, cell in enumerate(stored.cells)
    ]
    source = Source(path, data, pair)
    for check in CHECKS:
        if check.name in how.checks:
            for at, says in check.find(source):
                place = ("the text" if isinstance(at, TextLine) else "the notebook", at or None)
                if at is not None and not isinstance(at, TextLine):
                    place = places[at]
                verdict.findings.append(Finding(*place, says, check.name, at))
    for name, lacks in UNRUN.items():
        if name in how.checks and not source.ran and code:
            verdict.exempt.append(Finding("the notebook", None, f"no cell was run before it was stored: {lacks}", name))
    if {OUTPUTS, WORLDS, EXERCISES} & how.checks:
        said = [stored.metadata.get(of) or {} for of in ("kernelspec", "language_info")]
        language = said[0].get("language") or said[1].get("name") or "python"
        if how.kernels[0] is None and language.lower() not in ("python", "ipython"):
            verdict.broken = f"its language is {language}: say which kernel, by --kernel"
        else:
            if {OUTPUTS, WORLDS} & how.checks:
                _run(stored, how, verdict, places, source.ran)
            if EXERCISES in how.checks and graded(stored):
                _try_exercises(stored, how, verdict, places)
            if WORLDS in how.checks and not verdict.broken:
                _run_again(stored, how, verdict, places)


def _run(stored: NotebookNode, how: How, verdict: Verdict, places: list[tuple[str, int | None]], compare: bool) -> None:
    marks = {i: _marks(cell) for i, cell in enumerate(stored.cells) if cell.cell_type == "code"}
    skipped = {index for index, found in marks.items() if found.get("skip")}
    short = {}
    for index in (i for i in marks if "brief" in stored.cells[i].metadata):
        try:
            short[index] = _brief(stored.cells[index], marks[index])
        except ValueError as fault:
            verdict.findings.append(Finding(*places[index], str(fault), at=index))
    done = run(stored, verdict.path, how.timeout, how.kernels[0], skipped, short if how.brief else {})
    verdict.new = done.notebook
    for index, found in marks.items():
        cell, place = stored.cells[index], places[index]
        if index in skipped or found.get("check") is False:
            _note_exemption(verdict, cell, place, index)
        if done.stopped is not None and index >= done.stopped:
            if index == done.stopped:
                verdict.broken = f"{place[0]}: {done.why}; the cells from there on have not been compared"
                verdict.reached = index
            continue
        if index not in skipped and cell.source.strip() and OUTPUTS in how.checks:
            wrong = _failure(index, done, found, how.timeout)
            if not wrong and found.get("check") is not False:
                wrong = differences(cell.outputs, done.notebook.cells[index].outputs, how.masks)
                verdict.differing += [index] * bool(wrong)
                wrong = wrong if compare else []
            verdict.findings += [Finding(*place, says, at=index) for says in wrong]


def _try_exercises(stored: NotebookNode, how: How, verdict: Verdict, places: list[tuple[str, int | None]]) -> None:
    try:
        for at, says in contract(stored, Trial(verdict.path, how.timeout, how.kernels[0])):
            place = places[at] if at is not None else ("the notebook", None)
            verdict.findings.append(Finding(*place, says, EXERCISES, at))
    except Problem as problem:
        verdict.broken = str(problem)


def _run_again(stored: NotebookNode, how: How, verdict: Verdict, places: list[tuple[str, int | None]]) -> None:
    """Run it in the second world, and compare that with the first, not with what is stored."""
    assert verdict.new is not None
    second = with_line(stored, how.also) if how.also else stored
    if second is None:  # without that import there is one world
        return
    name = f"import {how.also.new} as {how.also.name}" if how.also else str(how.kernels[-1])
    names = (str(how.kernels[0]) if how.kernels[0] and not how.also else "the first", name)
    marks = {i: _marks(cell) for i, cell in enumerate(stored.cells) if cell.cell_type == "code"}
    left_out = {i for i, found in marks.items() if found.get("skip")}
    left_out |= {i for i in marks if how.first_only in stored.cells[i].metadata.get("tags", [])}
    done = run(second, verdict.path, how.timeout, how.kernels[-1], left_out)
    if lacks := missing(verdict.new, done.notebook):
        verdict.broken = f"with {name}: {lacks}"
        return
    for index in [i for i, found in marks.items() if i not in left_out and found.get("check") is not False]:
        if done.stopped is not None and index >= done.stopped:
            verdict.broken, verdict.reached = f"{places[index][0]}: with {name} {done.why}", index
            return
        wrong = between(verdict.new.cells[index], done.notebook.cells[index], how.masks, names)
        verdict.findings += [Finding(*places[index], says, WORLDS, index) for says in wrong]


def read(path: Path) -> tuple[dict[str, Any], NotebookNode]:
    """Read a notebook as its file has it, and as nbformat has it. Raises whatever is wrong with it."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError("JSON, but no notebook")
    if data.get("nbformat", 0) < 4:  # an old format: all that is known is what nbformat makes of it
        nb = nbformat.reads(json.dumps(data), as_version=4)
        return json.loads(nbformat.writes(nb)), nb
    for cell in data["cells"]:
        _ = cell["cell_type"], cell["source"], cell["outputs" if cell["cell_type"] == "code" else "metadata"]
    try:
        return data, nbformat.reads(json.dumps(with_ids(data)), as_version=4)
    except FAULTS as error:
        raise ValueError(_malformed(path, data) or str(error)) from error


def _malformed(path: Path, data: dict[str, Any]) -> str:
    """Name the first thing that the format of notebooks does not allow; return nothing if all is well."""
    for at, says in well_formed(Source(path, data, None)):
        return says if at is None else f"cell {at + 1}: {says}"
    return ""


def _failure(index: int, done: Run, marks: dict[str, bool], timeout: int) -> list[str]:
    """Say why a cell's run itself is wrong, whatever it shows."""
    raised = [f"{o.ename}: {o.evalue}" for o in done.notebook.cells[index].outputs if o.output_type == "error"]
    if index in done.late:
        return [f"it took longer than {timeout} s"]
    graded = done.notebook.cells[index].metadata.get("nbgrader", {}).get("grade")  # a check: it raises while blank
    if marks.get("check_exception") and not raised and not graded:
        return ["it has the tag raises-exception, and raises nothing"]
    if raised and not marks.get("check_exception"):
        return [f"it raises {raised[0]}"]
    return []


def _brief(cell: NotebookNode, marks: dict[str, bool]) -> str:
    """Return what a cell runs where it is to do less. Raises ValueError if its metadata cannot mean that."""
    source, shorter = cell.source, cell.metadata["brief"]
    if marks.get("check") is not False:
        raise ValueError("its metadata `brief` would change what is compared: only an exempt cell may do less")
    if not isinstance(shorter, dict) or not all(isinstance(short, str) for short in shorter.values()):
        raise ValueError("its metadata `brief` is to say which texts of it become which shorter ones")
    for long, short in shorter.items():
        if cell.source.count(long) != 1:
            raise ValueError(f"its metadata `brief` replaces {long!r}, which it has {cell.source.count(long)} times")
        source = source.replace(long, short)
    return source


def _marks(cell: NotebookNode) -> dict[str, bool]:
    """Return nbval's words for a cell: check, skip, check_exception."""
    return dict(find_comment_markers(cell.source)) | dict(find_metadata_tags(cell.metadata))


def _note_exemption(verdict: Verdict, cell: NotebookNode, place: tuple[str, int | None], index: int) -> None:
    reason = cell.metadata.get("exempt", "")
    if isinstance(reason, str) and reason.strip():
        verdict.exempt.append(Finding(*place, reason, at=index))
    else:
        says = "it is exempt without a reason: say it in the cell's metadata `exempt`"
        verdict.findings.append(Finding(*place, says, at=index))


def _number(cell: NotebookNode, ordinal: int) -> str:
    """Return the number beside a cell, or, if none is stored, its place among the code cells."""
    return f"[{cell.execution_count}]" if cell.execution_count is not None else f"code cell {ordinal}"


def pair_of(path: Path, notebook: NotebookNode) -> tuple[Path, dict[str, str]] | None:
    """Find the text that Jupytext pairs with a notebook, and its format."""
    # The configuration is whatever lies in somebody's folder: any fault in it means that there is no pair.
    try:
        formats = notebook_formats(notebook, load_jupytext_config(str(path.resolve())), str(path.resolve()))
        pairs = paired_paths(str(path.resolve()), {"extension": ".ipynb"}, formats)
    except (InconsistentPath, ValueError, OSError):
        return None
    texts = [(Path(found), dict(how)) for found, how in pairs if not found.endswith(".ipynb")]
    return next((pair for pair in texts if pair[0].is_file()), None)


def _lines(file: Path, notebook: NotebookNode) -> dict[int, int]:
    """Return the line of the text on which each cell begins, found by its source."""
    text = file.read_text(encoding="utf-8").splitlines()
    found, at = {}, 0
    for index, cell in enumerate(notebook.cells):
        source = roles(cell.source).splitlines()
        if not source:
            continue
        for line in range(at, len(text) - len(source) + 1):
            if text[line : line + len(source)] == source:
                found[index], at = line + 1, line + len(source)
                break
    return found


def updated(verdict: Verdict) -> NotebookNode:
    """Return the stored notebook with new outputs where they differ, and with the numbers that prose quotes."""
    result = nbformat.read(verdict.path, as_version=4)
    for index in verdict.differing:
        cell = result.cells[index]
        cell.outputs = verdict.new.cells[index].outputs if verdict.new else cell.outputs
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
    for cell in result.cells:
        if cell.cell_type == "markdown":
            with contextlib.suppress(ValueError):  # the check `out` reports it
                cell.source = filled(cell.source, numbers_of(result.cells))
    return result
