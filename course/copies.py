"""A learner's own copies of the exercises, in `my_exercises/`, which git ignores and no update writes to.

`exercises/` holds the blank notebooks and belongs to the course: `git pull` and `python -m course build` renew it. A
copy is made when the lab starts (or by `python -m course start 05`), and from then on it is the learner's: it is
replaced only while nothing has been done in it, or when the learner asks (`python -m course reset 05`), after a backup.
A blank notebook carries a digest of its cells, by which it is seen whether something has been done in it.
"""

import argparse
import contextlib
import datetime
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course.environment import Problem, ensure, say
from course.notebooks import COMMAND, ROOT

MINE = "my_exercises"
BACKUPS = "backups"
LOCK_SECONDS = 10


def digest(cells: list[dict[str, Any]]) -> str:
    """What a notebook's cells hold, in a few letters."""
    # A cell's source is a text, or its lines, as nbformat or JSON gives it.
    content = [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def version(path: Path) -> str | None:
    """The digest that a notebook was made with; None where it names none, or is no notebook."""
    return _metadata(_read(path)).get("blank")


def begun(path: Path) -> bool:
    """Whether something has been done in a notebook since it was made; True also where that cannot be seen."""
    nb = _read(path)
    cells = nb.get("cells", [])
    ran = any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    return ran or _metadata(nb).get("blank") != digest(cells)


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _metadata(nb: dict[str, Any]) -> dict[str, Any]:
    return nb.get("metadata", {}).get("undertorch", {})


def start(lesson: str, root: Path = ROOT) -> Path:
    """The learner's copy of a lesson's exercises, made if there is none. Raises Problem."""
    blank = find(lesson, root)
    with _alone(root):
        _provide(blank, root)
    return root / MINE / blank.name


def start_all(root: Path = ROOT) -> None:
    """A copy of every lesson's exercises."""
    blanks = sorted((root / "exercises").glob("*.ipynb"))
    if blanks:
        with _alone(root):
            for blank in blanks:
                _provide(blank, root)


def reset(lesson: str, root: Path = ROOT) -> Path | None:
    """Put a blank copy in the place of the learner's, and return the backup of theirs; None where nothing was done."""
    blank = find(lesson, root)
    mine = root / MINE / blank.name
    with _alone(root):
        kept = keep(mine, root) if mine.exists() and begun(mine) else None
        _copy(blank, mine)
    return kept


def keep(path: Path, root: Path = ROOT) -> Path:
    """A backup of a notebook, under a name that tells when it was made."""
    folder = root / MINE / BACKUPS
    now = datetime.datetime.now().strftime("%Y-%m-%d %H-%M-%S")
    names = (f"{path.stem} {now}{more}.ipynb" for more in ["", *(f" ({n})" for n in range(2, 1000))])
    backup = next(folder / name for name in names if not (folder / name).exists())
    _copy(path, backup)
    return backup


def find(lesson: str, root: Path = ROOT) -> Path:
    """The blank notebook of a lesson named by its number (`5`, `05`) or its name. Raises Problem."""
    blanks = sorted((root / "exercises").glob("*.ipynb"))
    for blank in blanks:
        number, _, name = blank.stem.partition("_")
        if lesson in (blank.stem, name) or lesson.zfill(2) == number:
            return blank
    known = ", ".join(blank.stem for blank in blanks) or "none yet"
    raise Problem(f"There are no exercises for lesson {lesson!r}. There are: {known}.")


def _provide(blank: Path, root: Path) -> None:
    mine = root / MINE / blank.name
    if begun(blank):  # somebody has worked in the course's own notebook: the next update would be in its way
        if not mine.exists() or not begun(mine):
            _copy(blank, mine)
            say(f"What was done in exercises/{blank.name} is now in {MINE}/{blank.name} too: go on there.")
    elif not mine.exists():
        _copy(blank, mine)
    elif version(mine) != version(blank):
        if begun(mine):
            say(
                f"The exercises {blank.stem} have been revised. Yours stay as they are; for the new ones:\n"
                f"{COMMAND} reset {blank.stem[:2]} (yours are kept as a backup)"
            )
        else:
            _copy(blank, mine)


def _copy(source: Path, target: Path) -> None:
    """Copy a file whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        shutil.copyfile(source, unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Let one process at a time make copies. Raises Problem where the folder cannot be written to."""
    import filelock

    try:
        (root / MINE).mkdir(exist_ok=True)
        with filelock.FileLock(root / MINE / ".lock", timeout=LOCK_SECONDS):
            yield
    except filelock.Timeout:
        raise Problem(f"Another start of the course is busy in {root / MINE}: try again.") from None
    except OSError as error:
        place = error.filename or root / MINE
        raise Problem(
            f"{place} cannot be written to ({error.strerror}). Copy the course to a folder of yours."
        ) from None


def main_start(argv: list[str], root: Path = ROOT) -> int:
    """`python -m course start`: make the learner's copy and say where it is; 0."""
    parser = argparse.ArgumentParser(
        prog="python -m course start",
        description=f"Make your own copy of a lesson's exercises, in {MINE}/. One that is there stays as it is.",
    )
    parser.add_argument("lesson", help="a lesson's number or name, say 05")
    lesson = parser.parse_args(argv).lesson
    ensure("course", ["start", *argv])
    print(start(lesson, root))
    return 0


def main_reset(argv: list[str], root: Path = ROOT) -> int:
    """`python -m course reset`: 0 when it was done, 1 when the answer was no. Raises Problem."""
    parser = argparse.ArgumentParser(
        prog="python -m course reset",
        description="Begin a lesson's exercises anew. What you did is kept as a backup, and your progress stays.",
    )
    parser.add_argument("lesson", help="a lesson's number or name, say 05")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    options = parser.parse_args(argv)
    ensure("course", ["reset", *argv])
    name = find(options.lesson, root).name
    if not options.yes:
        if not sys.stdin.isatty():
            raise Problem("There is nobody to ask: add --yes.")
        answer = input(f"Put a blank notebook in the place of {MINE}/{name}? Yours is kept as a backup. [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            print("Nothing was changed.")
            return 1
    kept = reset(options.lesson, root)
    print(f"{MINE}/{name} is blank. If it is open in JupyterLab: File, Reload Notebook from Disk.")
    if kept:
        print(f"What you did is in {kept.relative_to(root).as_posix()}")
    return 0
