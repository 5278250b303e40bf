"""`undertorch`: what `python -m course` is in a clone, where pip has installed the course.

The wheel holds the modules `engine` and `course`, and in `undertorch/files` what a clone has beside them. Of all that
`undertorch lab` makes a folder for the learner, which is from then on as good as a clone: the lessons lie in it, and
the engine that they run on, to be read and changed. `undertorch update` renews it. The standard library alone.
"""

import base64
import hashlib
import importlib.metadata
import json
import os
import runpy
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
FILES = HERE / "files"  # not in a clone
NAME = "undertorch"  # of the folder that is made, where the command is given
MAKE = ("lab", "start", "update")  # the commands that make it, and renew it
MODULES = ("engine", "course")
MARKS = ("engine/__init__.py", "course/__main__.py", "requirements/course.txt")  # of a folder of the course
RECORD = ".undertorch.json"  # in the folder: what was put there, by its hash
BACKUPS = "backups"


class Problem(Exception):
    """What is wrong and what to do about it; shown without a traceback."""


class Shipped(NamedTuple):
    """A file that pip has installed: where it is, and the hash of what it was then."""

    place: Path
    hash: str


def main() -> None:
    """Answer one command line, by the course of the folder at hand or, where there is none, by the one in the wheel."""
    os.environ.setdefault("UNDERTORCH_COMMAND", "undertorch")
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if not FILES.is_dir():
        place = HERE.parent  # a clone
    else:
        try:
            place = folder_for(command) or installed()
        except Problem as problem:
            sys.exit(f"{problem}")
        except OSError as error:
            sys.exit(f"{error.filename} cannot be written to ({error.strerror}). Start in a folder of yours.")
    sys.path.insert(0, str(place))
    runpy.run_module("course", run_name="__main__", alter_sys=True)


def folder_for(command: str) -> Path | None:
    """The folder that a command is for, made or renewed where the command does that. Raises Problem, OSError."""
    here = Path.cwd()
    found = find(here)
    if command not in MAKE or not {"-h", "--help"}.isdisjoint(sys.argv):
        return found
    folder = found or here / NAME
    if (folder / RECORD).is_file() or not found:
        renew(folder)
    return folder


def find(start: Path) -> Path | None:
    """The folder of the course in which somebody is, or that lies here under its name."""
    above = [path for path in start.parents if sys.platform == "win32" or path.stat().st_uid in (os.getuid(), 0)]
    for path in (start, start / NAME, *above):
        if all((path / name).is_file() for name in MARKS):
            return path
    return None


def renew(folder: Path) -> None:
    """Put everything into a folder that is new since the last time; what somebody has changed is kept beside it."""
    record = folder / RECORD
    if not record.is_file():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Problem(f"{folder} is there already, and is no folder of the course. Start in another folder.")
        folder.mkdir(exist_ok=True)
        write(record, b"{}")
        say(f"Your folder of the course is {folder}: the lessons, and the engine to be read and changed.")
    before = json.loads(record.read_text(encoding="utf-8"))
    files, kept, new = shipped(), [], 0
    for name, file in files.items():
        place = folder / name
        if before.get(name) == file.hash and place.is_file():
            continue  # nothing new; what was done with it stays
        content = content_of(file)
        if place.is_file() and digest(place.read_bytes()) not in (before.get(name), file.hash):
            write(folder / BACKUPS / name, place.read_bytes())
            kept.append(name)
        write(place, content)
        new += 1
    for name in before.keys() - files.keys():
        place = folder / name
        if place.is_file() and digest(place.read_bytes()) == before[name]:
            place.unlink()
    write(record, json.dumps({name: file.hash for name, file in files.items()}, indent=0).encode())
    if before and new:
        say(f"The course in {folder} is version {importlib.metadata.version('undertorch')} now.")
    if kept:
        say(f"You had changed {', '.join(kept)}: as you had it, it is in {BACKUPS}{os.sep}.")


def shipped() -> dict[str, Shipped]:
    """What the wheel brought, by its place in a folder of the course."""
    found = {}
    for file in importlib.metadata.files("undertorch") or []:
        beside = file.parts[:2] == (HERE.name, FILES.name) or file.parts[1:2] == ("licenses",)
        if file.hash and (beside or file.parts[0] in MODULES):
            name = "/".join(file.parts[2:] if beside else file.parts)
            found[name] = Shipped(Path(str(file.locate())), file.hash.value)
    if not found:
        raise Problem(f"pip's list of what it installed is not there. {again()}")
    return found


def content_of(file: Shipped) -> bytes:
    """A file as it was shipped. Raises Problem where another has its place: two packages may have one module's name."""
    content = file.place.read_bytes() if file.place.is_file() else b""
    if digest(content) != file.hash:
        module = file.place.relative_to(HERE.parent).parts[0]
        others = sorted(set(importlib.metadata.packages_distributions().get(module, [])) - {"undertorch"})
        who = f"by {' and '.join(others)}, which has a module of that name too" if others else "or is damaged"
        raise Problem(f"{file.place} is not Undertorch's own: it was changed {who}. {again()}")
    return content


def again() -> str:
    return (
        "Install Undertorch into an environment of its own:\n"
        'python -m venv learn, then with the Python in it: -m pip install "undertorch[course]"'
    )


def installed() -> Path:
    """Where pip put the modules. Raises Problem where they are not Undertorch's."""
    files = shipped()
    for module in MODULES:
        content_of(files[f"{module}/__init__.py"])
    return HERE.parent


def digest(content: bytes) -> str:
    """As pip's list has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def write(path: Path, content: bytes) -> None:
    """A file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
