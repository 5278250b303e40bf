"""Tables of people: rosters come in, grades go out. The standard library alone."""

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from course.base.environment import Problem

# What nbgrader, Moodle and Canvas call the columns of a roster; the first heading with a text in every row counts.
IDS = ("id", "username", "sis login id", "id number", "sis user id", "student id", "email", "email address")
HEADINGS = {
    "first_name": ("first_name", "first name", "firstname", "given name"),
    "last_name": ("last_name", "last name", "lastname", "surname", "family name"),
    "full_name": ("student", "full name", "name"),
    "email": ("email", "email address", "e-mail"),
    "lms_user_id": ("lms_user_id", "canvas id"),
}
NO_PEOPLE = ("points possible", "student, test", "test student")  # rows of a Canvas gradebook
ID = re.compile(r"[^\W_][\w.@-]*(?<![.])")  # it is also the name of a folder, on every system
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # by Windows


class Person(NamedTuple):
    """Somebody in the class, as in nbgrader's gradebook."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""  # Canvas's number

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip() or self.id


class Table(NamedTuple):
    """A CSV file."""

    headings: list[str]
    rows: list[list[str]]
    delimiter: str

    def column(self, *names: str) -> int | None:
        """Return the place of the first of these headings, in upper or lower case."""
        known = {heading.strip().casefold(): place for place, heading in reversed(list(enumerate(self.headings)))}
        return next((known[name] for name in names if name in known), None)

    def of(self, row: list[str], *names: str) -> str:
        place = self.column(*names)
        return row[place].strip() if place is not None and place < len(row) else ""


def plain(text: str) -> str:
    """Strip a name of what gets lost on the way: accents, case, spaces, signs."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text).casefold() if sign.isalnum())


def read(path: Path) -> Table:
    """Read a table with any separator and in the usual encodings. Raises Problem."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}.") from None
    encodings = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise Problem(f"{path} is no text: save the table as CSV.")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(map(str.strip, row))]
    if "\0" in text or len(rows) < 2:
        raise Problem(f"{path} is no table with a line of headings and lines of people: save it as CSV.")
    return Table(rows[0], rows[1:], delimiter)


def roster(path: Path) -> list[Person]:
    """Return the people in a list, as you, nbgrader, Moodle or Canvas write it. Raises Problem."""
    table = read(path)
    canvas = table.column("student") is not None and table.column("section") is not None
    rows = [row for row in table.rows if table.of(row, "student").casefold() not in NO_PEOPLE]
    ids = [name for name in IDS if not (canvas and name == "id")]
    heading = next((name for name in ids if rows and all(table.of(row, name) for row in rows)), None)
    if heading is None:
        raise Problem(
            f"{path.name}: no column names everybody. Its headings are {', '.join(table.headings)}; "
            "one of id, username, ID number or email is needed, filled in each row."
        )
    people = dict[str, Person]()
    for row in rows:
        person = _person(table, row, heading, canvas)
        if not ID.fullmatch(person.id) or RESERVED.fullmatch(person.id):
            raise Problem(f"{path.name}: {person.id!r} cannot be somebody's id: letters, digits and . _ @ - alone.")
        if person.id.casefold() in (known.casefold() for known in people):
            raise Problem(f"{path.name}: the id {person.id!r} is there twice.")
        people[person.id] = person
    return list(people.values())


def _person(table: Table, row: list[str], heading: str, canvas: bool) -> Person:
    known = {field: table.of(row, *names) for field, names in HEADINGS.items()}
    full = known.pop("full_name")
    if full and not known["last_name"]:
        last, comma, first = full.partition(",")
        if not comma:
            first, _, last = full.rpartition(" ")
        known |= {"first_name": first.strip(), "last_name": last.strip()}
    if canvas:
        known["lms_user_id"] = table.of(row, "id")
    return Person(table.of(row, heading), **known)


class Result(NamedTuple):
    """The points of one person; None where nothing was handed in."""

    person: Person
    points: float | None
    moodle: str = ""  # the number that Moodle gives to this person in this assignment


MOODLE_GRADES = ("First name", "Last name", "ID number", "Email address")
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def moodle_grades(results: list[Result], title: str) -> str:
    """Write the grades for Moodle's *Grades, Import, CSV file*."""
    people = [(r.person.first_name, r.person.last_name, r.person.id, r.person.email, _points(r)) for r in results]
    return written([[*MOODLE_GRADES, f"Assignment: {title} (Real)"], *people])


def canvas_grades(results: list[Result], title: str, most: float) -> str:
    """Write the grades for Canvas's *Grades, Import*."""
    rows: list[list[str]] = [[*CANVAS, title], ["    Points Possible", "", "", "", "", f"{most:g}"]]
    for result in results:
        who = result.person
        name = ", ".join(filter(None, (who.last_name, who.first_name))) or who.id
        rows.append([name, who.lms_user_id, "", who.id, "", _points(result)])
    return written(rows)


def fill_worksheet(path: Path, results: list[Result], most: float) -> tuple[str, list[str]]:
    """Fill in Moodle's grading worksheet; return it, and who is in it but not in the class.

    Raises Problem if it is not one, or if its maximum grade differs from these points.
    """
    table = read(path)
    grade, number = table.column("grade"), table.column("identifier")
    if grade is None or number is None:
        raise Problem(
            f"{path.name} is no grading worksheet of Moodle in English: it has no columns Identifier and Grade."
        )
    stated = table.of(table.rows[0], "maximum grade").replace(",", ".")
    if stated and float(stated) != most:
        raise Problem(
            f"In Moodle the assignment has {stated} points, here {most:g}: set its maximum grade to {most:g}."
        )
    by_number = {result.moodle: result for result in results if result.moodle}
    by_email = {result.person.email.casefold(): result for result in results if result.person.email}
    by_name = _unique(results, lambda person: plain(person.first_name + person.last_name))
    unknown = []
    for row in table.rows:
        found = re.search(r"\d+$", row[number])
        result = (
            by_number.get(found[0] if found else "")
            or by_email.get(table.of(row, "email address").casefold())
            or by_name.get(plain(table.of(row, "full name")))
        )
        if result is None:
            unknown.append(table.of(row, "full name") or row[number])
        else:
            row[grade] = _points(result)
    return written([table.headings, *table.rows], table.delimiter), unknown


def fill_gradebook(path: Path, results: list[Result], title: str, most: float) -> tuple[str, list[str]]:
    """Fill this assignment's column in Canvas's exported gradebook; return it, and who is in it but not in the class.

    Raises Problem where it is none.
    """
    table = read(path)
    if any(table.column(name.casefold()) is None for name in ("Student", "ID", "Section")):
        raise Problem(f"{path.name} is no gradebook of Canvas: it has no columns Student, ID and Section.")
    own = [place for place, name in enumerate(table.headings) if re.fullmatch(rf"{re.escape(title)}( \(\d+\))?", name)]
    if len(own) > 1:
        raise Problem(f"{path.name} has {len(own)} columns called {title}: remove all but one.")
    kept = [place for place, name in enumerate(table.headings) if name in CANVAS]
    by_number = {result.person.lms_user_id: result for result in results if result.person.lms_user_id}
    by_id = {result.person.id.casefold(): result for result in results}
    by_name = _unique(results, lambda person: plain(person.last_name + person.first_name))
    rows, unknown = [[*(table.headings[place] for place in kept), table.headings[own[0]] if own else title]], []
    for row in table.rows:
        name = table.of(row, "student")
        keys = [table.of(row, heading).casefold() for heading in ("sis login id", "sis user id")]
        result = (
            by_number.get(table.of(row, "id"))
            or next((by_id[key] for key in keys if key in by_id), None)
            or by_name.get(plain(name))
        )
        value = _points(result) if result else f"{most:g}" if name.casefold() == NO_PEOPLE[0] else ""
        if result is None and name.casefold() not in NO_PEOPLE:
            unknown.append(name)
        rows.append([*(row[place] if place < len(row) else "" for place in kept), value])
    return written(rows, table.delimiter), unknown


def _unique(results: list[Result], key: Callable[[Person], str]) -> dict[str, Result]:
    """Return the results by those names that only one person has."""
    names = [key(result.person) for result in results]
    return {name: result for name, result in zip(names, results, strict=True) if name and names.count(name) == 1}


def _points(result: Result) -> str:
    return "" if result.points is None else f"{round(result.points, 2):g}"


def written(rows: Iterable[Sequence[str]], delimiter: str = ",") -> str:
    """Write a table as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()
