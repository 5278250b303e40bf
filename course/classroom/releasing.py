"""`class release`: an assignment for nbgrader from the course's notebook, its deadline, and what is handed out."""

import datetime
import io
import json
import zipfile
from typing import Any

from course.base.environment import Problem
from course.base.notebooks import COMMAND, ROOT
from course.classroom import bank, folder
from course.classroom.folder import Class, put, succeeded
from course.classroom.late import Late, shown

HANDOUT = """\
{name}

1. Put {name}.ipynb into the folder my_exercises of the course, in the place of the one that is there
   (keep a copy if you have begun in that one).
2. Open it: {command} lab
3. Answer where three dots stand (...), run the cell, and the one below it, which says whether it is right.
   Leave the cells with `check` as they are. You may add cells of your own.
4. Save, and hand in that one file, {name}.ipynb. Its name may change on the way; its extension may not.
{due}
"""
OWN = """\
Exercise {keys}: your class has numbers of its own, others than in the course. The check says whether your answer is
right, and not which part of it is wrong.
"""


def release(
    course: Class,
    lesson: str,
    due: datetime.datetime | None,
    late: str | None,
    solutions: datetime.datetime | None = None,
    numbers: str | None = None,
) -> list[str]:
    """Make or renew an assignment; say in sentences what was done. Raises Problem.

    Once somebody has handed in, its notebook stays as it was given out; deadline, policy and the day of the solutions
    can change. `numbers`: the class's "own" (where nothing was said before) or the "course"'s.
    """
    name = folder.title(lesson)
    text = (ROOT / "solutions" / f"{name}.ipynb").read_bytes()
    noted = course.notes["assignments"].setdefault(name, {})
    source, blank = course.path("source", name, f"{name}.ipynb"), course.path("release", name, f"{name}.ipynb")
    says = [f"Class: {course.folder}"]
    if numbers is not None and not course.submitters(name):
        noted["numbers"] = numbers
    # What was handed out before classes had their own numbers stays as it was.
    if noted.setdefault("numbers", "course" if blank.exists() else "own") == "own":
        text = bank.applied(course, name, text)
    if not source.exists() or not blank.exists() or source.read_bytes() != text:
        if course.submitters(name):
            says.append(f"The course has a newer {name}; this class keeps the one that was handed out.")
        else:
            put(source, text)
            api = course.api()
            succeeded(api.generate_assignment(name), f"make {name}")
    if not blank.exists():
        raise Problem(f"nbgrader has made no {blank}.")
    if late is not None:
        noted["late"] = late
    if solutions is not None:
        noted["solutions"] = solutions.isoformat()
    course.save()
    with course.gradebook() as book:
        if due is not None:
            book.update_or_create_assignment(name, duedate=due.astimezone(datetime.UTC).replace(tzinfo=None))
        assignment = book.find_assignment(name)
        until, most = assignment.duedate, assignment.max_score
    when = until.replace(tzinfo=datetime.UTC) if until else None
    shown_from = _solutions(noted, when)
    archive = course.path("handout", f"{name}.zip")
    put(archive, _archive(name, blank.read_bytes(), _about(when, course.late(name), shown_from), shown_from))
    says.append(f"Released {name}: {most:g} points. {_about(when, course.late(name), shown_from)}")
    if own := _own(json.loads(blank.read_bytes())):
        says.append(f"Numbers of this class's own: {', '.join(own)}; answers in {bank.path(course, name)}")
    if when and when < datetime.datetime.now(datetime.UTC):
        says.append("That time is over already.")
    says.append(f"Hand out {archive}")
    says.append(f"Next, when work has come back: {COMMAND} class collect FILE")
    return says


def _solutions(noted: dict[str, Any], due: datetime.datetime | None) -> datetime.datetime | None:
    """Return when worked solutions become visible: as was said, or else when the work is due."""
    said = noted.get("solutions")
    return datetime.datetime.fromisoformat(said) if said else due


def _about(due: datetime.datetime | None, late: Late, solutions: datetime.datetime | None) -> str:
    says = f"Due on {shown(due)}; who is late loses {late}." if due else "There is no deadline."
    return f"{says} `solution` shows worked solutions from {shown(solutions)} on." if solutions else says


def _own(nb: dict[str, Any]) -> list[str]:
    """Return the exercises of a notebook whose answers are sealed."""
    found = (bank.SEALED.search("".join(cell["source"])) for cell in nb["cells"])
    return [match["key"] for match in found if match]


def _archive(name: str, notebook: bytes, about: str, solutions: datetime.datetime | None) -> bytes:
    nb = json.loads(notebook)
    own = _own(nb)
    # No digest of the blank cells: an update of the course does not renew this one.
    nb["metadata"]["undertorch"] = {"class": {"own": own, "solutions": solutions.isoformat() if solutions else ""}}
    due = "\n".join(["", *([OWN.format(keys=", ".join(own))] if own else []), about])
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/{name}.ipynb", json.dumps(nb, indent=1, ensure_ascii=False) + "\n")
        archive.writestr(f"{name}/README.txt", HANDOUT.format(name=name, command="python -m course", due=due))
    return data.getvalue()
