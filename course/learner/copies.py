"""A learner's own copies of the lessons and the exercises, which git ignores and no update writes over.

`notebooks/` and `exercises/` belong to the course: `git pull` and `python -m course build` renew them. Their copies, in
`my_lessons/` and `my_exercises/`, are made when the lab starts (or by `python -m course start 05`): without outputs,
with links to other copies, and with three dots where a lesson leaves lines to the learner. A copy carries a digest of
the cells that it came with. As long as it has these cells it is renewed with the course; once it has others it is the
learner's: it stays, and a new version is put beside it. It is replaced only when the learner asks (`python -m course
reset 05`), after a backup.
"""

import argparse
import contextlib
import datetime
import hashlib
import itertools
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course.base.environment import Problem, ensure, say
from course.base.files import put_in_place, write_atomically
from course.base.notebooks import COMMAND, ROOT
from course.judging.exercises import blank

LESSONS, EXERCISES = "my_lessons", "my_exercises"
MINE = {"notebooks": LESSONS, "exercises": EXERCISES}
ONLY = {LESSONS: "--lesson", EXERCISES: "--exercises"}  # options of `reset`
BACKUPS = "backups"
OFFERED = ".offered.json"  # the newest version of each notebook that was put beside the learner's
LOCK_SECONDS = 10


def digest(cells: list[dict[str, Any]]) -> str:
    """Return a digest of a notebook's cells: the same for a copy, whose links lead to other copies."""
    content = _contents(cells)
    for folder, mine in MINE.items():
        content = [[kind, source.replace(f"](../{mine}/", f"](../{folder}/")] for kind, source in content]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def begun(path: Path) -> bool:
    """Tell whether something has been done in a notebook since it was made; True also where that cannot be seen."""
    nb = _read(path)
    return changed(nb) or any(cell.get("outputs") or cell.get("execution_count") for cell in nb["cells"])


def changed(nb: dict[str, Any]) -> bool:
    """Tell whether a notebook's cells are others than those it came with; True also where that cannot be seen."""
    try:
        return _version(nb) != digest(nb["cells"])
    except (KeyError, TypeError):
        return True


def _version(nb: dict[str, Any]) -> str | None:
    """Return the digest that a notebook came with; None where it names none."""
    try:
        return str(nb["metadata"]["undertorch"]["blank"])
    except (KeyError, TypeError):
        return None


def _contents(cells: list[dict[str, Any]]) -> list[list[str]]:
    # A cell's source is a text, or its lines, as nbformat or JSON gives it.
    return [[cell["cell_type"], "".join(cell["source"])] for cell in cells]


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def damage(path: Path) -> str:
    """Say why a file cannot be read as a notebook; empty where it can, or where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
        _contents(json.loads(text)["cells"])
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{error.strerror}"
    except UnicodeDecodeError:
        return "there are bytes in it that are no text"
    except (ValueError, LookupError, TypeError, RecursionError):
        if not text.strip():
            return "it is empty"
        if re.search(r"(?m)^(<<<<<<<|=======|>>>>>>>)", text):
            return "git has left the marks of a conflict in it"
        return "it breaks off, or is damaged"
    return ""


def damaged(root: Path = ROOT) -> list[str]:
    """Of each copy that is no notebook any more: its name, why, and the way out."""
    return [says for source in _sources(root) if (says := _about_damage(copy_of(source)))]


def _about_damage(mine: Path) -> str:
    why, name = damage(mine), _named(mine)
    return why and (
        f"{name} cannot be read as a notebook: {why}. It stays as it is.\n"
        f"`{COMMAND} reset {mine.name[:2]} {ONLY[mine.parent.name]}` puts a fresh copy in its place, and keeps this "
        f"one in {mine.parent.name}/{BACKUPS}/, where any editor for text opens it."
    )


def start(lesson: str, root: Path = ROOT) -> list[Path]:
    """Return the learner's copies of a lesson and its exercises, made where there are none. Raises Problem."""
    sources = find(lesson, root)
    _provide(sources)
    return [copy_of(source) for source in sources]


def start_all(root: Path = ROOT) -> None:
    """Make a copy of every lesson, and of its exercises."""
    _provide(_sources(root))


def reset(source: Path) -> Path | None:
    """Put a fresh copy in the place of the learner's, and return the backup of theirs; None where nothing was done."""
    mine = copy_of(source)
    with _alone(mine.parent):
        new = _fresh(source)
        kept = keep(mine, mine.parent) if mine.exists() and begun(mine) else None
        _write(mine, new)
        for offered in itertools.takewhile(Path.exists, _beside(mine)):
            if not changed(_read(offered)):
                offered.unlink()
    return kept


def keep(path: Path, folder: Path) -> Path:
    """Back up a notebook of the learner's folder, under a name that tells when."""
    folder = folder / BACKUPS
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now().strftime("%Y-%m-%d %H-%M-%S")
    names = (f"{path.stem} {now}{more}.ipynb" for more in ["", *(f" ({n})" for n in range(2, 1000))])
    backup = next(folder / name for name in names if not (folder / name).exists())
    unfinished = backup.with_name(f".{backup.name}.unfinished")
    try:
        shutil.copyfile(path, unfinished)
        put_in_place(unfinished, backup)
    finally:
        unfinished.unlink(missing_ok=True)
    return backup


def find(lesson: str, root: Path = ROOT) -> list[Path]:
    """Find the course's notebooks of a lesson by its number (`5`, `05`) or its name. Raises Problem."""
    sources = _sources(root)
    found = []
    for source in sources:
        number, _, name = source.stem.partition("_")
        if lesson in (source.stem, name) or lesson.zfill(2) == number:
            found.append(source)
    if not found:
        known = ", ".join(sorted({source.stem for source in sources})) or "none yet"
        raise Problem(f"There is no lesson {lesson!r}. There are: {known}.")
    return found


def as_they_begin(root: Path = ROOT) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the copies that a learner begins with, by their names. Raises Problem."""
    return ((_named(copy_of(source)), _fresh(source)) for source in _sources(root))


def _sources(root: Path) -> list[Path]:
    """Return the course's notebooks of which a learner gets copies, folder by folder."""
    return [source for folder in MINE for source in sorted((root / folder).glob("*.ipynb"))]


def copy_of(source: Path) -> Path:
    """Return where the learner's copy of a notebook of the course is."""
    folder = source.parent
    return folder.parent / MINE[folder.name] / source.name


def _provide(sources: list[Path]) -> None:
    """Make the copies, renew them, or offer new versions."""
    for folder, group in itertools.groupby(sources, key=lambda source: copy_of(source).parent):
        with _alone(folder):
            for source in group:
                try:
                    _provide_one(source)
                except Problem as problem:  # the others are none the worse
                    say(str(problem))


def _provide_one(source: Path) -> None:
    mine = copy_of(source)
    if says := _about_damage(mine):
        say(says)
        return
    new, theirs = _fresh(source), _read(mine)
    if mine.exists() and changed(theirs):
        if _version(theirs) != _version(new):
            _offer(new, mine)
    elif not mine.exists() or _contents(theirs["cells"]) != _contents(new["cells"]):
        _write(mine, new)
        if changed(new):  # somebody has worked in the course's own notebook: the next update would be in its way
            say(f"What was done in {_named(source)} is now in {_named(mine)} too: go on there.")


def _named(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _offer(new: dict[str, Any], mine: Path) -> None:
    """Put a new version beside what the learner has changed, and say so; once, also where it is thrown away."""
    record = mine.with_name(OFFERED)
    offered = _read(record)
    if offered.get(mine.name) == _version(new):
        return
    place = next(path for path in _beside(mine) if not path.exists() or not changed(_read(path)))
    _write(place, new)
    write_atomically(record, json.dumps(offered | {mine.name: _version(new)}, indent=1, sort_keys=True) + "\n")
    say(
        f"There is a new version of {_named(mine)}. Yours stays as it is; the new one is beside it, in {place.name}.\n"
        f"`{COMMAND} reset {mine.name[:2]} {ONLY[mine.parent.name]}` puts it in the place of yours, and keeps a backup."
    )


def _beside(mine: Path) -> Iterator[Path]:
    """Return the names for new versions of a notebook that the learner has changed."""
    return (mine.with_name(f"{mine.stem}.new{more}.ipynb") for more in itertools.chain([""], itertools.count(2)))


def _fresh(source: Path) -> dict[str, Any]:
    """Return a copy of a notebook of the course as a learner gets it. Raises Problem where it is none."""
    nb = _read(source)
    try:
        for cell in nb["cells"]:
            if cell["cell_type"] == "code":
                cell.update(outputs=[], execution_count=None)
                cell["source"] = blank("".join(cell["source"])).splitlines(keepends=True)
            else:
                cell["source"] = [_to_copies(line) for line in "".join(cell["source"]).splitlines(keepends=True)]
        nb["metadata"]["undertorch"] = {"blank": _version(nb) or digest(nb["cells"])}
    except (KeyError, TypeError):
        raise Problem(f"{_named(source)} cannot be read as a notebook: get the course's own again.") from None
    return nb


def _to_copies(text: str) -> str:
    for folder, mine in MINE.items():
        text = text.replace(f"](../{folder}/", f"](../{mine}/")
    return text


def _write(path: Path, nb: dict[str, Any]) -> None:
    """Write a notebook as JupyterLab does."""
    write_atomically(path, json.dumps(nb, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time make copies in a folder. Raises Problem where it cannot be written to."""
    import filelock

    try:
        folder.mkdir(exist_ok=True)
        with filelock.FileLock(folder / ".lock", timeout=LOCK_SECONDS):
            yield
    except filelock.Timeout:
        raise Problem(f"Another start of the course is busy in {folder}: try again.") from None
    except OSError as error:
        place = error.filename or folder
        raise Problem(
            f"{place} cannot be written to ({error.strerror}). Copy the course to a folder of yours."
        ) from None


def main_start(argv: list[str], root: Path = ROOT) -> int:
    """`python -m course start`: make the learner's copies and say where they are; 0."""
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} start",
        description=f"Make your own copies of a lesson ({LESSONS}/) and of its exercises ({EXERCISES}/). "
        "What you have changed stays as it is.",
    )
    parser.add_argument("lesson", help="a lesson's number or name, say 05")
    lesson = parser.parse_args(argv).lesson
    ensure("course", ["start", *argv])
    print(*start(lesson, root), sep="\n")
    return 0


def main_reset(argv: list[str], root: Path = ROOT) -> int:
    """`python -m course reset`: 0 when it was done, 1 when the answer was no. Raises Problem."""
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} reset",
        description="Begin a lesson, and its exercises, anew. What you did is kept as a backup; your progress stays.",
    )
    parser.add_argument("lesson", help="a lesson's number or name, say 05")
    one = parser.add_mutually_exclusive_group()
    for folder, what in ((LESSONS, "the lesson alone"), (EXERCISES, "its exercises alone")):
        one.add_argument(ONLY[folder], dest="folder", action="store_const", const=folder, help=what)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    options = parser.parse_args(argv)
    ensure("course", ["reset", *argv])
    sources = [source for source in find(options.lesson, root) if options.folder in (None, MINE[source.parent.name])]
    if not sources:
        raise Problem(f"Lesson {options.lesson} has no exercises.")
    done = [_reset_one(source, options.yes) for source in sources]
    return 0 if any(done) else 1


def _reset_one(source: Path, sure: bool) -> bool:
    mine = copy_of(source)
    name, why = _named(mine), damage(mine)
    if why:
        print(f"{name} cannot be read as a notebook: {why}.")
    if not sure and mine.exists() and begun(mine):
        if not sys.stdin.isatty():
            raise Problem("There is nobody to ask: add --yes.")
        answer = input(f"Put a fresh copy in the place of {name}? Yours is kept as a backup. [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            print("Nothing was changed.")
            return False
    kept = reset(source)
    print(f"{name} is as it came. If it is open in JupyterLab: File, Reload Notebook from Disk.")
    if kept:
        what = "The file as it was" if why else "What you did"
        print(f"{what} is in {mine.parent.name}/{BACKUPS}/{kept.name}")
    return True
