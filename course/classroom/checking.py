"""`python -m course check PATH.ipynb`: judge one filled-in exercise notebook, without a kernel and without a class.

Its answers run where those of `class grade` do (`course.classroom.deciding`, `course.process.sandbox`), with the hidden
tests. The cells of checks are the course's own, whatever has become of those in the submission.
"""

import argparse
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from course.base.environment import Problem, ensure, workers
from course.base.notebooks import ROOT
from course.judging.exercises import CORRECT, blank

RIGHT, WRONG, COULD_NOT_RUN = 0, 1, 2
NOT_JUDGED = "not judged"
SECONDS = 30
TOGETHER = 10.0  # of computing, for an answer that is not right by itself: an endless loop leaves time for the others
SEALED = "The notebook has a class's own numbers here: `class grade` in the class's folder knows them."
_SEALED_KEY = re.compile(r"""check\(["'](\d\d\.\d+)["'],[^)]*\bsealed=""")


class Judged(NamedTuple):
    """One exercise: its state, its points, and what is said about it."""

    exercise: str
    state: str
    points: float
    of: float
    says: str  # all of it, as the learner reads it
    message: str  # the sentence in it about a mistake

    @property
    def right(self) -> bool:
        return self.state == CORRECT


class _Cell(NamedTuple):
    """A cell of the assignment, as `grading.tidy` asks for it."""

    name: str
    source: str
    cell_type: str
    locked: bool
    checksum: str = ""


def main(argv: list[str]) -> int:
    """Judge one notebook; return 0 if all is right, 1 if something is not, 2 if something could not be judged."""
    options = parse(argv)
    ensure("course", ["check", *argv])
    try:
        name, notes, found = judged(Path(options.path), options.seconds, options.only)
    except Problem as problem:
        print(json.dumps({"error": str(problem)}) if options.json else problem)
        return COULD_NOT_RUN
    print(as_json(name, notes, found) if options.json else as_text(name, notes, found))
    if any(one.state == NOT_JUDGED for one in found):
        return COULD_NOT_RUN
    return RIGHT if all(one.right for one in found) else WRONG


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m course check",
        description="Judge a filled exercise notebook, with the hidden tests: points and a sentence for each exercise.",
        epilog="An answer runs in a process of its own that gives up what the system lets it give up, as in `class "
        "grade` (docs/teaching.md says what that is). Exit codes: 0 all is right, 1 something is not, 2 something "
        "could not be judged.",
    )
    parser.add_argument("path", help="the notebook, under any name")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--only", action="append", metavar="KEY", help="this exercise alone, as 05.3; may be repeated")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, metavar="S", help=f"for the whole notebook, by the clock ({SECONDS})"
    )
    return parser.parse_args(argv)


def judged(path: Path, seconds: float = SECONDS, only: list[str] | None = None) -> tuple[str, list[str], list[Judged]]:
    """Return the notebook's name in the course, what to say about the file, and its exercises. Raises Problem."""
    from course.classroom import deciding, grading, handed_in

    start = time.monotonic()
    if not path.is_file():
        raise Problem(f"There is no file {path}.")
    nb = handed_in.read_notebook(path.read_bytes())
    name = handed_in.name_of(nb)
    if not name:
        says = "".join(cell.source.replace("*", "") for cell in nb.cells[:1] if len(nb.cells) == 1)
        raise Problem(f"{path} has no exercise of the course in it." + f" {says}" * says.startswith("The file is"))
    sealed = {key for cell in nb.cells if cell.cell_type == "code" for key in _SEALED_KEY.findall(cell.source)}
    ours = _assignment(name)
    points = {cell.name: worth for cell, worth in ours if worth is not None}
    solutions = {cell.name for cell, _ in ours if not cell.name.startswith("check-")}
    notes = grading.tidy(nb, [cell for cell, _ in ours], points, solutions)
    whole = {cell.name: cell.source for cell, _ in ours if cell.locked}
    for cell in nb.cells:
        cell.source = whole.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    asked = [place for place, cell in enumerate(nb.cells) if _is_check(cell)]
    found = [(grading.check_of(nb, place), nb.cells[place].metadata.nbgrader.grade_id) for place in asked]
    checks = sorted((check, points[grade_id]) for check, grade_id in found if check)
    if only:
        wanted = {key.zfill(4) for key in only}  # 5.3 is 05.3
        if missing := wanted - {check.key for check, _ in checks}:
            raise Problem(f"{name} has no exercise {min(missing)}: {', '.join(check.key for check, _ in checks)}.")
        checks = [(check, worth) for check, worth in checks if check.key in wanted]

    def judge(check: deciding.Check, worth: float) -> Judged:
        try:
            if check.key in sealed:
                raise deciding.NotChecked(SEALED)
            left = max(0.0, start + seconds - time.monotonic())
            answer = deciding.decide(check._replace(together=TOGETHER), left)
        except deciding.NotChecked as error:
            says = f"Exercise {check.key}: {NOT_JUDGED}. {error}"
            return Judged(check.key, NOT_JUDGED, 0, worth, says, str(error))
        shown = grading.outputs(check, answer, worth)[0].data["text/plain"]
        got = worth if answer["state"] == CORRECT else grading.partial(check, answer, worth)
        return Judged(check.key, answer["state"], got, worth, shown, answer.get("message", ""))

    with ThreadPoolExecutor(workers()) as pool:
        return name, notes, list(pool.map(lambda one: judge(*one), checks))


def _assignment(name: str) -> list[tuple[_Cell, float | None]]:
    """Return the cells that nbgrader knows, blank and with hidden tests, and what each is worth."""
    import nbformat

    nb = nbformat.read(ROOT / "solutions" / f"{name}.ipynb", as_version=4)
    found = []
    for cell in nb.cells:
        notes = cell.metadata.get("nbgrader")
        if notes and cell.cell_type == "code":  # these words are for people
            known = _Cell(notes.grade_id, blank(cell.source), cell.cell_type, notes.locked)
            found.append((known, float(notes.points) if notes.grade else None))
    return found


def _is_check(cell: Any) -> bool:
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("grade"))


# What it says


def as_text(name: str, notes: list[str], found: list[Judged]) -> str:
    return "\n\n".join(_parts(name, notes, found))


def _parts(name: str, notes: list[str], found: list[Judged]) -> Iterator[str]:
    yield name
    if notes:
        yield "\n".join(notes)
    yield from (one.says for one in found)
    right, points = sum(one.right for one in found), sum(one.points for one in found)
    yield f"{right} of {len(found)} exercises are right, {points:g} of {sum(one.of for one in found):g} points."


def as_json(name: str, notes: list[str], found: list[Judged]) -> str:
    data = {
        "notebook": name,
        "points": sum(one.points for one in found),
        "of": sum(one.of for one in found),
        "exercises": [one._asdict() for one in found],
        "notes": notes,
    }
    return json.dumps(data, indent=1, ensure_ascii=False)
