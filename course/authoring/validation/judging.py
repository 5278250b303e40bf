"""What is wrong with one notebook: each cell's finding, with the place where its reader and its author look for it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import nbformat
from jupytext.config import load_jupytext_config, notebook_formats
from jupytext.paired_paths import InconsistentPath, paired_paths
from nbformat import NotebookNode
from nbval.plugin import find_comment_markers, find_metadata_tags

from course.authoring.validation.comparing import differences
from course.authoring.validation.masks import Mask
from course.authoring.validation.running import Run, run


class Finding(NamedTuple):
    """A cell that is not as stored, or not as it should be."""

    cell: str
    line: int | None
    says: str


@dataclass
class Verdict:
    """What one notebook came to."""

    path: Path
    text: Path | None = None
    cells: int = 0
    findings: list[Finding] = field(default_factory=list)
    exempt: list[Finding] = field(default_factory=list)
    differing: list[int] = field(default_factory=list)  # the cells whose new outputs may be stored
    broken: str = ""  # why it could not be run to its end
    new: NotebookNode | None = None


def judge(path: Path, timeout: int, kernel: str | None, masks: tuple[Mask, ...]) -> Verdict:
    """Run a notebook and compare; what is wrong with it stands in the verdict."""
    verdict = Verdict(path)
    try:
        stored = nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError, AttributeError, KeyError) as error:
        verdict.broken = (
            f"it cannot be read: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        )
        return verdict
    language = stored.metadata.get("kernelspec", {}).get("language", "python")
    if not kernel and language != "python":
        verdict.broken = f"its language is {language}: say which kernel, by --kernel"
        return verdict
    verdict.text = text_of(path, stored)
    lines = _lines(verdict.text, stored) if verdict.text else {}
    marks = {i: _marks(cell) for i, cell in enumerate(stored.cells) if cell.cell_type == "code"}
    skipped = {index for index, found in marks.items() if found.get("skip")}
    done = run(stored, path, timeout, kernel, skipped)
    verdict.cells, verdict.new = len(marks), done.notebook
    for index, found in marks.items():
        cell = stored.cells[index]
        place = (_number(cell, list(marks).index(index) + 1), lines.get(index))
        if index in skipped or found.get("check") is False:
            _note_exemption(verdict, cell, place)
        if done.stopped is not None and index >= done.stopped:
            if index == done.stopped:
                verdict.broken = f"{place[0]}: {done.why}; the cells from there on have not been compared"
            continue
        if index not in skipped and cell.source.strip():
            wrong = _failure(index, done, found, timeout)
            if not wrong and found.get("check") is not False:
                wrong = differences(cell.outputs, done.notebook.cells[index].outputs, masks)
                verdict.differing += [index] * bool(wrong)
            verdict.findings += [Finding(*place, says) for says in wrong]
    return verdict


def _failure(index: int, done: Run, marks: dict[str, bool], timeout: int) -> list[str]:
    """Why a cell's run itself is wrong, whatever it shows."""
    raised = [f"{o.ename}: {o.evalue}" for o in done.notebook.cells[index].outputs if o.output_type == "error"]
    if index in done.late:
        return [f"it took longer than {timeout} s"]
    if marks.get("check_exception") and not raised:
        return ["it has the tag raises-exception, and raises nothing"]
    if raised and not marks.get("check_exception"):
        return [f"it raises {raised[0]}"]
    return []


def _marks(cell: NotebookNode) -> dict[str, bool]:
    """nbval's words for a cell: check, skip, check_exception."""
    return dict(find_comment_markers(cell.source)) | dict(find_metadata_tags(cell.metadata))


def _note_exemption(verdict: Verdict, cell: NotebookNode, place: tuple[str, int | None]) -> None:
    reason = cell.metadata.get("exempt", "")
    if isinstance(reason, str) and reason.strip():
        verdict.exempt.append(Finding(*place, reason))
    else:
        verdict.findings.append(
            Finding(*place, "it is exempt without a reason: say it in the cell's metadata `exempt`")
        )


def _number(cell: NotebookNode, ordinal: int) -> str:
    """What the reader sees beside a cell; where nothing is stored, which of the code cells it is."""
    return f"[{cell.execution_count}]" if cell.execution_count is not None else f"code cell {ordinal}"


def text_of(path: Path, notebook: NotebookNode) -> Path | None:
    """The text that Jupytext pairs with a notebook."""
    # What is read as configuration is whatever lies in somebody's folder: any fault of it means no pair.
    try:
        formats = notebook_formats(notebook, load_jupytext_config(str(path.resolve())), str(path.resolve()))
        pairs = [Path(found) for found, _ in paired_paths(str(path.resolve()), {"extension": ".ipynb"}, formats)]
    except (InconsistentPath, ValueError, OSError):
        return None
    return next((found for found in pairs if found.suffix != ".ipynb" and found.is_file()), None)


def _lines(file: Path, notebook: NotebookNode) -> dict[int, int]:
    """On which line of the text each code cell begins, found by its source."""
    text = file.read_text(encoding="utf-8").splitlines()
    found, at = {}, 0
    for index, cell in enumerate(notebook.cells):
        source = cell.source.splitlines()
        if cell.cell_type != "code" or not source:
            continue
        for line in range(at, len(text) - len(source) + 1):
            if text[line : line + len(source)] == source:
                found[index], at = line + 1, line + len(source)
                break
    return found


def updated(verdict: Verdict) -> NotebookNode:
    """The stored notebook with new outputs where they differ, and nothing else of the run."""
    result = nbformat.read(verdict.path, as_version=4)
    for index in verdict.differing:
        cell = result.cells[index]
        cell.outputs = verdict.new.cells[index].outputs if verdict.new else cell.outputs
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
    return result
