"""`class collect`: of what a platform provides, the newest notebook of each person; nothing is lost."""

import collections
import datetime
import io
import json
import re
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from course.base.environment import Problem
from course.base.notebooks import COMMAND
from course.classroom.arriving import Piece, Sender, are_of_the_download, pieces, sender
from course.classroom.folder import Class, digest, free, move, put
from course.classroom.late import shown
from course.classroom.tables import ID, Person, plain, read

NOTEBOOK = re.compile(r"(?i).*\.ipynb(\.txt|\.json)?$")
ENDING = re.compile(r"(?i)\.ipynb(\.\w+)?$")
GRADE_ID = re.compile(rb'"grade_id"\s*:\s*"([\w-]+)"')
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
WORKSHEET_TIMES = ("%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M")
STAMP = "%Y-%m-%d %H:%M:%S UTC"  # as nbgrader reads it


class Notebook(NamedTuple):
    """A notebook that somebody has sent, of a known assignment."""

    person: Person
    assignment: str
    piece: Piece
    sender: Sender
    at: datetime.datetime | None  # when it was handed in, where that is known


class Names:
    """The people in the class, by the names that platforms give them."""

    def __init__(self, course: Class, who: dict[str, str]):
        self.people = {person.id: person for person in course.people()}
        if not self.people:
            raise Problem(f'The class has no people yet: `{COMMAND} class new "{course.folder}" --roster FILE.csv`.')
        if unknown := [id for id in who.values() if id not in self.people]:
            raise Problem(f"--who: nobody in the class has the id {unknown[0]!r}.")
        self.told = course.notes["people"] | who
        self.by_name = collections.defaultdict[str, set[str]](set)
        for person in self.people.values():
            for name in (person.first_name + person.last_name, person.last_name + person.first_name):
                self.by_name[plain(name)].add(person.id)
        self.by_name.pop("", None)
        self.by_number = {person.lms_user_id: person.id for person in self.people.values() if person.lms_user_id}

    def of(self, who: Sender) -> set[str]:
        """Return the ids that a sender may have."""
        for label in (who.label, who.name):
            if self.told.get(label) in self.people:
                return {self.told[label]}
        if who.platform == "moodle":  # a group's name may come first
            parts = who.name.split("-")
            return next((ids for n in range(len(parts)) if (ids := self._named("-".join(parts[n:])))), set())
        if who.platform == "canvas" and who.number in self.by_number:
            return {self.by_number[who.number]}
        path = PurePosixPath(who.name)
        if self.told.get(path.name) in self.people:
            return {self.told[path.name]}
        # For any other file: a part of its path is a name or an id, or a word of its own name is an id.
        parts = [re.sub(ENDING, "", part) for part in reversed(path.parts)]
        words = {word for word in re.split(r"[\s_()]+", parts[0]) if word in self.people}
        return next((ids for part in parts if (ids := self._named(part))), words)

    def _named(self, name: str) -> set[str]:
        return {name} if name in self.people else set(self.by_name.get(plain(name), set()))


def collect(course: Class, paths: list[Path], who: dict[str, str], at: datetime.datetime | None = None) -> list[str]:
    """Take files, archives and folders into the class; say in sentences what became of each. Raises Problem.

    A CSV file among the paths is Moodle's grading worksheet: the times of submission are read from it.
    `who` says whose a name is, `at` when what carries no time of its own was handed in.
    """
    known, cells = Names(course, who), course.cells()
    if not cells:
        raise Problem(f"Nothing has been released yet: `{COMMAND} class release 05 --due DATE` first.")
    times = dict[str, datetime.datetime]()
    for path in paths:
        if path.suffix.casefold() == ".csv":
            times |= _times(path)
    for path in paths:
        if course.folder.resolve().is_relative_to(path.resolve()):
            raise Problem(f"{path} holds the class itself: name the folder of what has come.")
    archives = [(path, *pieces(path)) for path in paths if path.suffix.casefold() != ".csv"]  # all, or nothing
    says, notes, arrived = [f"Class: {course.folder}"], list[str](), list[Notebook]()
    for path, found, refused in archives:
        _keep(course, path, found)
        notes += [f"{name}: not taken, since {why}." for name, why in refused]
        unknown_times = (path.suffix.casefold() == ".zip" or path.is_dir()) and are_of_the_download(found)
        if unknown_times and not times and at is None and any(sender(p.name).platform != "canvas" for p in found):
            notes.append(
                f"{path.name}: all its files carry one time, that of the download: nobody counts as late. "
                "Name Moodle's grading worksheet too, and its times count."
            )
        for piece in found:
            sent, problem = _recognised(piece, known, cells, times, at, unknown_times)
            arrived += [sent] if sent else []
            notes += [f"{piece.name}: {problem}"] if problem else []
    earliest = datetime.datetime.min.replace(tzinfo=datetime.UTC)
    arrived.sort(key=lambda sent: (sent.at or earliest, sent.sender.order))
    done = collections.defaultdict[str, list[str]](list)
    for sent in arrived:
        done[sent.assignment].append(_put(course, sent, notes))
        _remember(course, sent, who)
    notes += _of_two(arrived)
    course.save()
    names = {person.id: person for person in course.people()}
    for name in sorted(done):
        counts = collections.Counter(done[name])
        says.append(f"{name}: {', '.join(f'{n} {what}' for what, n in counts.items())}.")
    if not arrived:
        says.append("No notebook was taken.")
    says += [f"  {CONTROLS.sub('?', note)}" for note in notes]  # a name may hold what a terminal obeys
    for name in sorted(done):
        there = course.submitters(name)
        missing = [f"{person.name} ({person.id})" for person in names.values() if person.id not in there]
        says.append(f"{name}: {len(there)} of {len(names)} are there. Missing: {', '.join(missing) or 'nobody'}.")
    says.append(f"All that came is kept as it came, in {course.path('received')}")
    if done:
        says.append(f"Next: {COMMAND} class grade {sorted(done)[0][:2]}")
    return says


def _recognised(
    piece: Piece,
    known: Names,
    cells: dict[str, set[str]],
    times: dict[str, datetime.datetime],
    at: datetime.datetime | None,
    unknown_times: bool,
) -> tuple[Notebook | None, str]:
    """Recognise a file as a notebook of an assignment, and return it with what to say of it."""
    who = sender(piece.name)
    if not NOTEBOOK.fullmatch(piece.name):
        return None, "no notebook, so that nothing in it is graded."
    whole, names = _read(piece.data)
    counts = {name: len(there & names) for name, there in cells.items()}
    name = max(counts, key=lambda name: counts[name])
    if not counts[name]:
        what = "no notebook of a released assignment" if whole else "empty or broken, and nothing of it can be read"
        return None, f"{what}."
    ids = known.of(who)
    label = who.label if who.platform else PurePosixPath(piece.name).name
    if len(ids) != 1:
        several = f"could be {' or '.join(sorted(ids))}" if ids else "is nobody in the class"
        return None, f'{label!r} {several}. Say who, with an id: --who "{label}=ID"'
    person = known.people[ids.pop()]
    time = times.get(who.number) if who.platform == "moodle" else None
    if time is None and who.platform == "canvas":
        time = at if who.late else None  # the archive has only the time of the download
        if who.late and at is None:
            return Notebook(person, name, piece, who, None), (
                "late, as Canvas says, but not by how much: the least is counted. "
                'Collect it alone with --at "DATE TIME" where you know.'
            )
    elif time is None:
        time = at or (None if unknown_times else piece.at)
    problem = "" if whole else "broken; what can be read of it is graded. Ask for the file once more."
    return Notebook(person, name, piece, who, time), problem


def _read(data: bytes) -> tuple[bool, set[str]]:
    """Return whether a notebook is whole, and the names of nbgrader's cells in it."""
    from course.classroom import handed_in

    names = set[str]()
    try:
        for cell in handed_in.read_notebook(data).cells:
            notes = cell.metadata.get("nbgrader")
            name = notes.get("grade_id") if isinstance(notes, dict) else None
            key = cell.metadata.get("exercise")
            names |= {name} if isinstance(name, str) else set()
            names |= {f"exercise-{key.replace('.', '-')}"} if isinstance(key, str) else set()
        json.loads(data)
    except Exception:  # what is not a notebook may lack anything
        return False, names | {name.decode() for name in GRADE_ID.findall(data)}
    return True, names


def _put(course: Class, sent: Notebook, notes: list[str]) -> str:
    """Put a notebook where nbgrader looks for it, or with the older ones; say what was done."""
    place = course.path("submitted", sent.person.id, sent.assignment, f"{sent.assignment}.ipynb")
    older = course.path("older", sent.person.id, sent.assignment)
    time, before = sent.at, _time_of(place)
    if sent.sender.late and time is None:
        time = _just_late(course, sent.assignment)
    mark = digest(sent.piece.data)
    if place.exists() and digest(place.read_bytes()) == mark:
        if time and (before is None or sent.sender.late):
            _stamp(place, time)
        return "there already"
    if any(digest(path.read_bytes()) == mark for path in older.glob("*.ipynb")):
        return "there already"
    replaced = place.exists()
    work, there = _work(sent.piece.data), _work(place.read_bytes()) if replaced else 0
    is_older = replaced and time is not None and before is not None and time < before
    if work < there or (is_older and work == there):
        when = time or datetime.datetime.now(datetime.UTC)
        put(free(older / f"{sent.assignment} {when.astimezone():%Y-%m-%d %H.%M.%S}.ipynb"), sent.piece.data)
        why = "older than what is there" if is_older else "without answers, which an older one has"
        notes.append(f"{sent.piece.name}: {why}; kept in {older.relative_to(course.folder)}.")
        return "older" if is_older else "without answers"
    if is_older:
        notes.append(f"{sent.piece.name}: older than what was there, which is without answers: this one counts.")
    if replaced:
        when = before or datetime.datetime.fromtimestamp(place.stat().st_mtime, datetime.UTC)
        move(place, free(older / f"{sent.assignment} {when.astimezone():%Y-%m-%d %H.%M.%S}.ipynb"))
    put(place, sent.piece.data)
    _stamp(place, time)
    if time and (due := _due(course, sent.assignment)) and time > due:
        notes.append(f"{sent.person.name} ({sent.person.id}): handed in on {shown(time)}, late.")
    return ("older, with answers" if is_older else "newer than what was there") if replaced else "new"


def _of_two(arrived: list[Notebook]) -> list[str]:
    """Name those who sent more than one notebook with answers at once."""
    from course.classroom import handed_in

    answers = collections.defaultdict[tuple[str, str], dict[str, list[str]]](dict)
    for sent in arrived:
        if found := handed_in.done(handed_in.read_notebook(sent.piece.data)).answers:
            answers[sent.person.id, sent.assignment][sent.piece.name] = found
    names = {sent.person.id: sent.person.name for sent in arrived}
    return [
        f"{names[id]} ({id}): more than one notebook of {name} with answers; the newest counts ({', '.join(found)})."
        for (id, name), found in answers.items()
        if any(one != other for one in found.values() for other in found.values())
    ]


def _work(notebook: bytes) -> int:
    """Rank a notebook against another one by the same person, regardless of which is newer."""
    from course.classroom import handed_in

    return handed_in.done(handed_in.read_notebook(notebook)).rank


def _stamp(place: Path, time: datetime.datetime | None) -> None:
    stamp = place.with_name("timestamp.txt")
    if time:
        put(stamp, time.astimezone(datetime.UTC).strftime(STAMP).encode())
    else:
        stamp.unlink(missing_ok=True)


def _time_of(place: Path) -> datetime.datetime | None:
    try:
        text = place.with_name("timestamp.txt").read_text(encoding="utf-8").strip()
        return datetime.datetime.strptime(text, STAMP).replace(tzinfo=datetime.UTC)
    except (OSError, ValueError):
        return None


def _due(course: Class, name: str) -> datetime.datetime | None:
    with course.gradebook() as book:
        due = book.find_assignment(name).duedate
    return due.replace(tzinfo=datetime.UTC) if due else None


def _just_late(course: Class, name: str) -> datetime.datetime | None:
    due = _due(course, name)
    return due + datetime.timedelta(seconds=1) if due else None


def _remember(course: Class, sent: Notebook, who: dict[str, str]) -> None:
    """Remember names that were given, and what a platform calls a person, for the next time and for export."""
    if sent.sender.platform:
        course.notes["people"] |= {
            label: id for label, id in who.items() if label in (sent.sender.name, sent.sender.label)
        }
    if sent.sender.platform == "moodle":
        known = course.notes["assignments"].setdefault(sent.assignment, {}).setdefault("moodle", {})
        known[sent.person.id] = sent.sender.folder
    if sent.sender.platform == "canvas" and sent.sender.name != "anon" and not sent.person.lms_user_id:
        with course.gradebook() as book:
            book.update_or_create_student(sent.person.id, lms_user_id=sent.sender.number)


def _keep(course: Class, path: Path, found: list[Piece]) -> None:
    """Keep what was given just as it came, once."""
    if path.is_dir():
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for piece in found:
                moment = piece.at.timetuple()[:6] if piece.at else (1980, 1, 1, 0, 0, 0)
                archive.writestr(zipfile.ZipInfo(piece.name, moment), piece.data)
        data, name = content.getvalue(), f"{path.resolve().name}.zip"
    else:
        data, name = path.read_bytes(), path.name
    kept = course.path("received")
    same = (one for one in kept.glob("*") if one.stat().st_size == len(data))
    if not any(digest(one.read_bytes()) == digest(data) for one in same):
        put(free(kept / f"{datetime.datetime.now():%Y-%m-%d %H.%M.%S} {name}"), data)


def _times(path: Path) -> dict[str, datetime.datetime]:
    """Read from Moodle's grading worksheet when each participant handed in. Raises Problem."""
    table = read(path)
    if table.column("identifier") is None or table.column("last modified (submission)") is None:
        raise Problem(f"{path.name} is no grading worksheet of Moodle in English: it has no column Identifier.")
    times = {}
    for row in table.rows:
        number, text = re.search(r"\d+$", table.of(row, "identifier")), table.of(row, "last modified (submission)")
        if not number or text in ("", "-"):
            continue
        for form in WORKSHEET_TIMES:
            try:
                times[number[0]] = datetime.datetime.strptime(text, form).astimezone()
                break
            except ValueError:
                continue
        else:
            raise Problem(f"{path.name}: the time {text!r} cannot be read. Set your language in Moodle to English.")
    return times


def told(pairs: list[str]) -> dict[str, str]:
    """`--who NAME=ID`, as often as it stands there. Raises Problem."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, sign, id = pair.rpartition("=")
        if not sign or not name or not ID.fullmatch(id):
            raise Problem(f'--who {pair!r}: write "NAME=ID", with the name as `collect` has shown it.')
        found[name] = id
    return found
