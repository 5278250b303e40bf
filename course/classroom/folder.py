"""The folder of a class: nbgrader's own, with its settings, a seed, and the course's notes."""

import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.base.environment import Problem
from course.base.files import put_in_place, write_atomically
from course.base.notebooks import COMMAND, ROOT, kernel_environment
from course.classroom.late import Late, policy
from course.classroom.tables import Person
from course.judging import exercises

if TYPE_CHECKING:
    from nbgrader.api import Gradebook
    from nbgrader.apps import NbGraderAPI

NOTES = "class.json"
SETTINGS = "nbgrader_config.py"
RECENT = ROOT / ".lab" / "class.txt"  # the class that was last named
SETTINGS_TEXT = '''\
"""nbgrader's settings for this class; written anew by `{command} class`. Your own belong into own_config.py."""

import sys
from pathlib import Path

if {root!r} not in sys.path:
    sys.path.insert(0, {root!r})
c = get_config()  # noqa: F821 - given by nbgrader
load_subconfig("nbgrader_config.py", path={settings!r})  # noqa: F821
c.CourseDirectory.root = str(Path(__file__).resolve().parent)
if Path(__file__).with_name("own_config.py").exists():
    load_subconfig("own_config.py", path=str(Path(__file__).resolve().parent))  # noqa: F821
'''
README_TEXT = """\
# {name}

A class of Undertorch. In the course's folder, with the number of a lesson:

| | |
|---|---|
| `{command} class release 05 --due 2027-01-31` | makes the assignment, and the zip file to hand out |
| `{command} class collect FILE` | takes what came back: a zip file of Moodle or Canvas, a folder, a notebook |
| `{command} class grade 05` | judges, counts the points, writes feedback and `reports/05_....md` |
| `{command} class export 05 --moodle` | the points for Moodle, or with `--canvas` for Canvas, into `exports/` |
| `{command} class new "{folder}" --roster FILE.csv` | once more, when somebody has come or has another name |

With several classes, say which one: `--class "{folder}"`; without, it is the one that was named last.

What is here: `gradebook.db` (nbgrader's: people, points), `class.json` (seed, late policy, names on platforms),
`bank/` (exercises with numbers of this class's own, and their answers: for you alone), `received/` (everything that
was collected, as it came), `submitted/` (what is graded), `older/` (what was replaced), `autograded/`, `feedback/ID/`.
Keep a copy of the folder; it holds people's data.

Points by hand: with the course's environment active, `jupyter lab` in this folder, menu *Nbgrader*, *Formgrader*.
nbgrader's own commands (`nbgrader autograde 05_graph`) work in this folder, too.
"""


class Class:
    """A class in its folder. Raises Problem where there is none."""

    def __init__(self, folder: Path):
        self.folder = folder.expanduser().absolute()
        try:
            self.notes: dict[str, Any] = json.loads((self.folder / NOTES).read_text(encoding="utf-8"))
            self.notes["assignments"], self.notes["people"]
        except FileNotFoundError:
            raise Problem(f"{self.folder} is no class. Make one: `{COMMAND} class new FOLDER`.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Problem(f"{self.folder / NOTES} cannot be read ({error!r}): put a copy of yours back.") from None
        write_atomically(self.folder / SETTINGS, _settings())  # the course may have moved

    @classmethod
    def make(cls, folder: Path) -> "Class":
        """Make a new class in a folder that does not exist yet, or is empty. Raises Problem."""
        folder = folder.expanduser().absolute()
        if folder.resolve().is_relative_to(ROOT.resolve()):
            raise Problem(f"{folder} lies in the course's own folder, which updates change: choose one outside of it.")
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise Problem(f"{folder} is not empty: choose another folder.")
            folder.mkdir(parents=True, exist_ok=True)
            named = {"name": folder.name, "command": COMMAND, "folder": folder}
            write_atomically(folder / "README.md", README_TEXT.format(**named))
            notes = {"seed": secrets.randbelow(2**31), "assignments": {}, "people": {}}
            write_atomically(folder / NOTES, json.dumps(notes, indent=1) + "\n")
        except OSError as error:
            raise Problem(f"{folder} cannot be written to: {error.strerror}.") from None
        return cls(folder)

    def save(self) -> None:
        write_atomically(self.folder / NOTES, json.dumps(self.notes, indent=1, ensure_ascii=False) + "\n")

    def path(self, *parts: str) -> Path:
        return self.folder.joinpath(*parts)

    def late(self, name: str) -> Late:
        """Return what a delay costs in an assignment."""
        return policy(self.notes["assignments"].get(name, {}).get("late", "none"))

    def api(self) -> "NbGraderAPI":
        """Return nbgrader with the settings of the class."""
        from nbgrader.apps import NbGraderAPI
        from traitlets.config.loader import PyFileConfigLoader
        from traitlets.log import get_logger

        # It starts `alembic` for its database, and kernels' settings come from the environment.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        os.environ.update(kernel_environment() | {"PATH": path})
        logger = logging.getLogger(get_logger().name)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())  # what it says is caught, and said in the course's words
        return NbGraderAPI(config=PyFileConfigLoader(SETTINGS, path=str(self.folder)).load_config())

    @contextlib.contextmanager
    def gradebook(self) -> "Iterator[Gradebook]":
        from nbgrader.api import Gradebook

        directory = self.api().coursedir
        with Gradebook(directory.db_url, directory.course_id) as book:
            yield book

    def people(self) -> list[Person]:
        """Return the roster, by last name."""
        with self.gradebook() as book:
            fields = [(s.id, s.first_name, s.last_name, s.email, s.lms_user_id) for s in book.students]
        people = [Person(*(str(field or "") for field in row)) for row in fields]
        return sorted(people, key=lambda p: (p.last_name.casefold(), p.first_name.casefold(), p.id))

    def enrol(self, people: list[Person]) -> tuple[list[Person], list[Person]]:
        """Write a roster into the gradebook; return who is new, and who is in the gradebook alone (they stay)."""
        before = {person.id: person for person in self.people()}
        with self.gradebook() as book:
            for person in people:
                known = {field: text for field, text in person._asdict().items() if text and field != "id"}
                book.update_or_create_student(person.id, **known)
        ids = {person.id for person in people}
        return [p for p in people if p.id not in before], [p for p in before.values() if p.id not in ids]

    def title(self, lesson: str) -> str:
        """Return the name of a released assignment, by the lesson's number. Raises Problem."""
        name = title(lesson)
        if not self.path("release", name).is_dir():
            raise Problem(f"{name} has not been released: `{COMMAND} class release {name[:2]} --due DATE` first.")
        return name

    def cells(self) -> dict[str, set[str]]:
        """Return the names of nbgrader's cells in each assignment."""
        with self.gradebook() as book:
            return {a.name: {c.name for nb in a.notebooks for c in nb.source_cells} for a in book.assignments}

    def submitters(self, name: str) -> set[str]:
        """Return the ids of those whose notebook of an assignment is there."""
        return {path.parts[-3] for path in self.path("submitted").glob(f"*/{name}/{name}.ipynb")}


def _settings() -> str:
    return SETTINGS_TEXT.format(command=COMMAND, root=str(ROOT), settings=str(ROOT / "course" / "jupyter"))


def title(lesson: str) -> str:
    """Return the name of a lesson's exercises, by its number (`5`, `05`) or its name. Raises Problem."""
    made = {path.stem for path in (ROOT / "solutions").glob("*.ipynb")}
    numbers = [number for number in exercises.lessons() if exercises.title(number) in made]
    for number in numbers:
        name = exercises.title(number)
        if lesson in (number, number.lstrip("0"), name, name[3:]):
            return name
    raise Problem(f"Lesson {lesson!r} has no exercises. There are: {', '.join(numbers)}.")


def opened(folder: str | None) -> Class:
    """Open the class that is named, or else the one whose folder we are in, or the one named last. Raises Problem."""
    if folder is None and Path(NOTES).is_file():
        folder = "."
    if folder is None:
        try:
            folder = RECENT.read_text(encoding="utf-8").strip()
        except OSError:
            raise Problem(f"Which class? `{COMMAND} class new FOLDER` makes one; `--class FOLDER` names one.") from None
    found = Class(Path(folder))
    remember(found)
    return found


def remember(found: Class) -> None:
    with contextlib.suppress(OSError):  # the course is read-only: the class has to be named each time
        write_atomically(RECENT, f"{found.folder}\n")


def succeeded(result: dict[str, Any], what: str) -> str:
    """nbgrader's log. Raises Problem where it failed."""
    log = str(result.get("log", ""))
    if not result["success"]:
        if "KeyboardInterrupt" in str(result.get("error", "")):
            raise KeyboardInterrupt
        errors = [line for line in log.splitlines() if line.startswith("[ERROR]")]
        last = (errors or str(result.get("error", "")).strip().splitlines() or ["no reason"])[-1]
        raise Problem(f"nbgrader could not {what}: {last.removeprefix('[ERROR] ')}")
    return log


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def free(path: Path) -> Path:
    """Return this path, or one with a number if something is there already."""
    again, number = path, 2
    while again.exists():
        again, number = path.with_name(f"{path.stem} ({number}){path.suffix}"), number + 1
    return again


def put(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        put_in_place(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, to)
