"""What people hand in: files that broke on the way, files with other names, and two files instead of one."""

import functools
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course.base.notebooks import ROOT
from course.judging import exercises
from course.judging.sources import is_blank

_CELL = re.compile(r'\{\s*"(?:attachments|cell_type|execution_count|id|metadata|outputs|source)"\s*:')
_FOREIGN = re.compile(r'\s*[^\s"{}\[\],\d\-tfn]')  # no line of a notebook begins like this
MOST_CONFLICTS = 100  # up to this many conflicts, the better side of each is looked for
MOST_DAMAGES = 1000


def read_notebook(data: bytes) -> NotebookNode:
    """Read a submitted file, even a broken one: what can be read of it, and a cell that says so."""
    try:
        text = data.decode(json.detect_encoding(data), errors="replace")
        return _whole(text) or _repaired(text)
    except Exception:
        return _with_a_word(_why(""), [])


def _whole(text: str) -> NotebookNode | None:
    try:
        nb = nbformat.reads(text, as_version=4)
        list(nb.cells)
        return nb
    except Exception:  # nbformat has many errors of its own
        return None


def _repaired(text: str) -> NotebookNode:
    parts = _sides(text)
    if nb := _merged(parts):
        says = (
            "**git has left the marks of a conflict in the file. Both versions could be read: where only one has an "
            "answer, that one is graded, otherwise the first.**"
        )
        nb.cells.insert(0, new_markdown_cell(says))
        return nb
    lines = [line for line in text.splitlines(keepends=True) if not _FOREIGN.match(line)]
    versions = [*("".join(part[side] for part in parts) for side in (0, -1)), "".join(lines)]
    return _with_a_word(_why(text), max((list(_cells(version)) for version in versions), key=len))


def _sides(text: str) -> list[tuple[str, ...]]:
    """Split a text at git's conflicts into parts with two sides each; an unclosed one is left as it is."""
    parts, block, side = list[tuple[str, ...]](), list[str](), 0
    both = ["", "", "", ""]  # by `side`: 1 is ours, 2 what both come from, 3 theirs
    for line in text.splitlines(keepends=True):
        if line.startswith("<<<<<<<"):
            parts.append(("".join(block),))
            block, side, both = [line], 1, ["", "", "", ""]
        elif side == 3 and line.startswith(">>>>>>>"):
            parts.append((both[1], both[3]))
            block, side = [], 0
        else:
            block.append(line)
            if side and line.startswith(("|||||||", "=======")):
                side = 2 if line.startswith("|") else 3
            else:
                both[side] += line
    return [*parts, ("".join(block),)]


def _merged(parts: list[tuple[str, ...]]) -> NotebookNode | None:
    """Make one notebook of two versions, with answers from either; None without two, or if neither can be read."""

    def version(sides: list[int]) -> NotebookNode | None:
        return _whole("".join(part[side] for part, side in zip(parts, sides, strict=True)))

    conflicts = [place for place, part in enumerate(parts) if len(part) > 1]
    found = [(nb, sides) for sides in ([0] * len(parts), [-1] * len(parts)) if conflicts and (nb := version(sides))]
    if not found:
        return None
    best, chosen = max(found, key=lambda pair: done(pair[0]).size)
    for place in conflicts[:MOST_CONFLICTS]:
        sides = [*chosen[:place], -1 - chosen[place], *chosen[place + 1 :]]
        nb = version(sides)
        if nb and done(nb).size > done(best).size:
            best, chosen = nb, sides
    return best


def _cells(text: str) -> Iterator[NotebookNode]:
    """Yield the whole cells in the text of a notebook that breaks off, or is damaged between them."""
    start = re.search(r'"cells"\s*:\s*\[', text)
    place, damages = start.end() if start else 0, 0
    while damages < MOST_DAMAGES and (match := _CELL.search(text, place)):
        try:
            cell, place = json.JSONDecoder().raw_decode(text, match.start())
            make = {"code": new_code_cell, "markdown": new_markdown_cell}[cell["cell_type"]]
            source, metadata = "".join(cell["source"]), cell.get("metadata")
        except (ValueError, LookupError, TypeError, RecursionError):
            place, damages = match.start() + 1, damages + 1
            continue
        yield make(source, metadata=metadata if isinstance(metadata, dict) else {})


def _why(text: str) -> str:
    if not text.strip():
        return "The file is empty"
    if re.match(r"\s*(<!doctype html|<html)", text, re.IGNORECASE):
        return "The file is a web page, and no notebook (which ends in .ipynb, and begins with a brace)"
    if re.search("^<<<<<<<", text, re.MULTILINE):
        return "The file is no whole notebook: git has left the marks of a conflict in it"
    return "The file is no whole notebook: it breaks off, or is damaged"


def _with_a_word(why: str, cells: list[NotebookNode]) -> NotebookNode:
    found = f"{len(cells)} cells of it could be read" if cells else "nothing in it could be read"
    says = f"**{why}; {found}. What is missing counts as not attempted. Ask for the file once more.**"
    return new_notebook(cells=[new_markdown_cell(says), *cells])


# Which notebook it is, and what was done in it


def name_of(nb: NotebookNode) -> str:
    """Return a notebook's name in the course, judging by its exercises; empty if it has none."""
    for cell in nb.cells:
        match = exercises.KEY.fullmatch(str(cell.metadata.get("exercise", "")))
        if match and match[1] in exercises.lessons():
            return exercises.title(match[1])
    return ""


class Done(NamedTuple):
    """The work in a notebook: answers that were changed, and new cells."""

    answers: list[str]
    other: list[str]

    @property
    def size(self) -> int:
        return len(self.answers) + len(self.other)

    @property
    def rank(self) -> int:
        """Rank two notebooks: one with answers counts, even if it is older; then one with changed cells."""
        return 2 if self.answers else 1 if self.other else 0


def done(nb: NotebookNode) -> Done:
    came, found = _came(name_of(nb)), Done([], [])
    for cell in nb.cells:
        notes = cell.metadata.get("nbgrader")
        notes = notes if isinstance(notes, dict) else {}
        key, text = str(cell.metadata.get("exercise", "")), cell.source.strip()
        if not text or text in came.values() or (notes.get("grade") and not notes.get("solution")):
            continue
        if key in came or notes.get("solution"):
            if cell.cell_type != "code" or not is_blank([text], came.get(key, "")):
                found.answers.append(text)
        elif cell.cell_type == "code":
            found.other.append(text)
    return found


@functools.cache
def _came(name: str) -> dict[str, str]:
    """Return the cells of a blank notebook, by their exercise if they have one."""
    path = ROOT / "exercises" / f"{name}.ipynb"
    cells = nbformat.read(path, as_version=4).cells if path.is_file() else []
    return {str(cell.metadata.get("exercise", f"cell {n}")): cell.source.strip() for n, cell in enumerate(cells)}


def rename(assignment: str, student: str, notebooks: list[str]) -> None:
    """Hook into nbgrader before it grades: a notebook is found even if it was renamed.

    A copy with the right name is put beside it, and counts. Of several for one lesson, one with answers counts, then
    the newest; the file that had the right name is kept under another.
    """
    from traitlets.log import get_logger

    log, names = get_logger(), dict[Path, list[_Found]]()
    for path in map(Path, notebooks):
        nb = read_notebook(path.read_bytes())
        right = path.with_name(f"{name_of(nb) or path.parent.name}.ipynb")
        names.setdefault(right, []).append(_Found(path, bool(name_of(nb)), done(nb)))
    for right, found in sorted(names.items()):
        best = max(found, key=lambda one: (one.named, one.done.rank, one.path.stat().st_mtime, one.path == right))
        there = next((one for one in found if one.path == right), None)
        if there and there.done == best.done and there.named:
            best = there
        others = [one.path.name for one in found if one.done.answers and one.done != best.done]
        if best.path != right:
            says = "%s was handed in as %s: it is graded under its own name."
            log.warning(says, right.name, best.path.name)
            if right.exists():
                kept = next(path for path in map(right.with_name, _set_aside(right.stem)) if not path.exists())
                log.warning("What was called %s before is %s now, and does not count.", right.name, kept.name)
                right.rename(kept)
            shutil.copy2(best.path, right)
        if others and best.done.answers:
            says = "%s: more than one notebook with answers was handed in; %s counts, and not %s."
            log.warning(says, right.name, best.path.name, ", ".join(others))
        left = {one.path for one in found} - {right}  # nbgrader would say that it does not know them
        notebooks[:] = [name for name in notebooks if Path(name) not in left]
        notebooks += [] if there else [str(right)]


class _Found(NamedTuple):
    path: Path
    named: bool  # it holds exercises of a lesson
    done: Done


def _set_aside(stem: str) -> Iterator[str]:
    return (f"{stem} (set aside{more}).ipynb" for more in itertools.chain([""], map(" {}".format, itertools.count(2))))


def tell_of_others(path: Path, nb: NotebookNode) -> None:
    """Put a note at the top of a notebook if its owner has handed in another one with answers.

    The other one lies beside it, or, in a class, with the older ones.
    """
    says = (
        "**More than one notebook of this lesson was handed in with answers. This one is graded: the newest that has "
        "answers.**"
    )
    if nb.cells and nb.cells[0].source == says:
        return
    folders = [path.parent, *(folder / "older" / path.parts[-3] / path.parts[-2] for folder in path.parents[3:4])]
    mine, others = done(nb), [other for folder in folders for other in folder.glob("*.ipynb") if other != path]
    for other in map(read_notebook, map(Path.read_bytes, others)):
        if name_of(other) == name_of(nb) and done(other).answers and done(other) != mine and mine.answers:
            nb.cells.insert(0, new_markdown_cell(says))
            return
