"""`class grade`: nbgrader's autograde and feedback for each submission, the late policy, and a report on the class."""

import collections
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from course.base.environment import Problem
from course.base.notebooks import COMMAND
from course.classroom.alike import Group, form, groups
from course.classroom.folder import Class, put, succeeded
from course.classroom.late import penalty
from course.classroom.tables import Person, Result
from course.judging import exercises
from course.judging.exercises import CORRECT, NOT_ATTEMPTED, NOT_YET

if TYPE_CHECKING:
    from nbgrader.api import Gradebook, SubmittedAssignment

# nbgrader's warnings: a sentence for each, or none if it is said elsewhere or means nothing.
WARNINGS = (
    (
        re.compile(r"Attribute '(?:checksum|cell_type)' for cell (\S+) has changed"),
        r"{0} was changed; the original was graded",
    ),
    (re.compile(r"(There are \d+ cells with the name \S+: one of them counts\.)"), r"{0}"),
    (re.compile(r"The cell (\S+) was missing"), r"{0} was missing; the original was graded"),
    (re.compile(r"Removing existing|Updating existing|seconds late|[Ll]ate submission penalty|was handed in as"), ""),
)
HEAD = re.compile(r"Exercise (\d\d\.\d+): (correct|not yet|not attempted yet)\.")


class Verdict(NamedTuple):
    """A verdict that a check left in a graded notebook."""

    key: str
    state: str
    message: str


def grade(course: Class, lesson: str, again: bool = False) -> Iterator[str]:
    """Grade what is new, or everything `again`; say in sentences what is being done. Raises Problem."""
    from nbgrader.utils import rmtree

    name = course.title(lesson)
    there = course.submitters(name)
    if not there:
        raise Problem(f"Nobody has handed in {name}: `{COMMAND} class collect FILE` first.")
    yield f"Class: {course.folder}"
    since = course.path("gradebook.db").stat().st_mtime  # somebody may have given points by hand
    people = {person.id: person for person in course.people()}
    api, fresh, failed = course.api(), list[str](), list[str]()
    for id in [id for id in people if id in there]:
        if not again and _is_graded(course, id, name):
            continue
        try:
            log = succeeded(api.autograde(name, id, create=False), "grade it")
        except Problem as problem:
            failed.append(id)
            if (half := course.path("autograded", id, name)).exists():
                rmtree(half)
            yield f"  {people[id].name} ({id}): NOT graded. {problem}"
            continue
        fresh.append(id)
        said = "".join(f"\n    {line}" for line in warnings(log))
        yield f"  {people[id].name} ({id}): graded.{said}"
    changed = penalise(course, name)
    pages = {id: course.path("feedback", id, name, f"{name}.html") for id in there & set(people)}
    stale = {id for id, page in pages.items() if not page.exists() or page.stat().st_mtime < since}
    for id in sorted({*fresh, *changed, *stale} - set(failed)):
        succeeded(api.generate_feedback(name, id), f"write feedback for {id}")
    unread = sorted(there - set(people))
    if unread:
        yield f"  Left out, since nobody in the class has this id: {', '.join(unread)}."
    summary, report = report_of(course, name)
    path = course.path("reports", f"{name}.md")
    put(path, report.encode())
    already = len(there) - len(fresh) - len(failed) - len(unread)
    before = f", {already} were graded before" if already else ""
    yield f"{name}: {len(fresh)} graded now{before}{f', {len(failed)} could not be' if failed else ''}."
    yield from summary
    yield f"Report: {path}"
    yield f"Feedback, a page for each: {course.path('feedback')}"
    yield f"Next: {COMMAND} class export {name[:2]} --moodle (or --canvas)"


def _is_graded(course: Class, id: str, name: str) -> bool:
    submitted, graded = (course.path(step, id, name, f"{name}.ipynb") for step in ("submitted", "autograded"))
    stamps = [path.with_name("timestamp.txt") for path in (submitted, graded)]
    times = [stamp.read_text(encoding="utf-8") if stamp.exists() else "" for stamp in stamps]
    return graded.exists() and graded.stat().st_mtime >= submitted.stat().st_mtime and times[0] == times[1]


def warnings(log: str) -> list[str]:
    """Return those of nbgrader's warnings that a teacher needs to know, each once."""
    said = []
    for line in log.splitlines():
        if not line.startswith(("[WARNING] ", "[ERROR] ")):
            continue
        text = line.partition("] ")[2]
        for pattern, sentence in WARNINGS:
            if match := pattern.search(text):
                text = sentence.format(*match.groups())
                break
        said += [text] if text and text not in said else []
    return said


def penalise(course: Class, name: str) -> list[str]:
    """Write what delays cost into the gradebook, by today's deadline and policy; return for whom that has changed."""
    rule, changed = course.late(name), []
    with course.gradebook() as book:
        for submission in book.assignment_submissions(name):
            for notebook in submission.notebooks:
                cost = penalty(rule, notebook.max_score, submission.total_seconds_late)
                new = min(cost, notebook.score) or None
                if (notebook.late_submission_penalty or None) != new:
                    notebook.late_submission_penalty = new
                    changed.append(submission.student_id)
        book.db.commit()
    return changed


def results(course: Class, name: str) -> tuple[list[Result], float]:
    """Return everybody's points in an assignment, and the points that can be had."""
    folders = course.notes["assignments"].get(name, {}).get("moodle", {})
    found = []
    with course.gradebook() as book:
        most = float(book.find_assignment(name).max_score)
        graded = {submission.student_id: _points(submission) for submission in book.assignment_submissions(name)}
    for person in course.people():
        number = re.search(r"_(\d+)_assignsubmission", folders.get(person.id, ""))
        found.append(Result(person, graded.get(person.id), number[1] if number else ""))
    return found, most


def _points(submission: "SubmittedAssignment") -> float:
    return max(0.0, float(submission.score) - float(submission.late_submission_penalty or 0))


def verdicts(path: Path) -> list[Verdict]:
    """Return what the checks have said in an autograded notebook."""
    import nbformat

    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/plain", ""))
            head, _, rest = text.partition("\n")
            if match := HEAD.fullmatch(head):
                state = NOT_ATTEMPTED if match[2].startswith(NOT_ATTEMPTED) else match[2]
                found.append(Verdict(match[1], state, rest.partition("\n")[0] if state == NOT_YET else ""))
    return found


def copied(course: Class, name: str) -> tuple[list[Group], dict[str, list[str]]]:
    """Find who shares answers that few others have, and, by exercise, whose answer is the worked solution."""
    known = dict[str, list[str]]()
    answers = collections.defaultdict[str, dict[str, str]](dict)
    for cell_name, source in _answers(course.path("source", name, f"{name}.ipynb")):
        known[cell_name] = [source, exercises.solved(source)]
    for cell_name, source in _answers(course.path("release", name, f"{name}.ipynb")):
        known.setdefault(cell_name, []).append(source)
    for path in course.path("autograded").glob(f"*/{name}/{name}.ipynb"):
        for cell_name, source in _answers(path):
            answers[cell_name][path.parts[-3]] = source
    forms = {cell_name: form(sources[1]) for cell_name, sources in known.items() if len(sources) > 1}
    worked = {
        cell_name: [who for who, source in cells.items() if forms.get(cell_name) and form(source) == forms[cell_name]]
        for cell_name, cells in answers.items()
    }
    return groups(answers, known), {cell_name: sorted(people) for cell_name, people in worked.items() if people}


def _answers(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the cells of code that learners fill in, by nbgrader's names."""
    import nbformat

    for cell in nbformat.read(path, as_version=4).cells:
        notes = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and notes.get("solution") and "grade_id" in notes:
            yield notes["grade_id"], cell.source


def report_of(course: Class, name: str) -> tuple[list[str], str]:
    """Write the report on an assignment: a few sentences, and the whole of it in Markdown."""
    found, most = results(course, name)
    people = {result.person.id: result.person for result in found}
    points = [result.points for result in found if result.points is not None]
    with course.gradebook() as book:
        late = _late(book, name)
        by_hand = sum(submission.needs_manual_grade for submission in book.assignment_submissions(name))
    alike, worked = copied(course, name)

    mean = f"{sum(points) / len(points):.1f} of {most:g} points on average" if points else "no points yet"
    summary = [f"{len(points)} of {len(found)} have been graded, {mean}."]
    if late:
        summary.append(f"Late: {', '.join(f'{_named(people, id)} by {delay}' for id, delay, _ in late)}.")
    if by_hand:
        summary.append(f"{by_hand} wait for points by hand: `jupyter lab` in the class's folder, Nbgrader, Formgrader.")
    if alike:
        summary.append(f"The same answers: {len(alike)} group{'s' if len(alike) > 1 else ''}; see the report.")
    parts = [*_gone_wrong(course, name, people), *_the_same(people, alike, worked), *_everybody(people, found, late)]
    return summary, "\n".join([f"# {name}", "", *summary, "", *parts])


def _gone_wrong(course: Class, name: str, people: dict[str, Person]) -> Iterator[str]:
    """Count how each exercise went, and what its check said most."""
    states = collections.defaultdict[str, collections.Counter[str]](collections.Counter)
    said = collections.defaultdict[str, collections.Counter[str]](collections.Counter)
    for id in people:
        path = course.path("autograded", id, name, f"{name}.ipynb")
        for verdict in verdicts(path) if path.exists() else []:
            states[verdict.key][verdict.state] += 1
            if verdict.message:
                said[verdict.key][verdict.message] += 1
    yield from ("## What the class gets wrong", "")
    yield from ("| exercise | correct | not yet | not attempted |", "|---|---|---|---|")
    for key, count in sorted(states.items()):
        yield f"| {key} | {count[CORRECT]} | {count[NOT_YET]} | {count[NOT_ATTEMPTED]} |"
    for key, messages in sorted(said.items()):
        yield from ("", f"What the check of {key} said most:", "")
        yield from (f"- {count} x {_cell(message)}" for message, count in messages.most_common(3))


def _the_same(people: dict[str, Person], alike: list[Group], worked: dict[str, list[str]]) -> Iterator[str]:
    """List who shares answers that few others have, and whose answer is the worked solution."""
    yield from ("", "## The same answers", "")
    if alike:
        yield "Equal but for names, spaces, comments and docstrings. Left out are short answers, the blank cell, the"
        yield "worked solution, and what more than a quarter of the class writes. Equal is not yet copied: ask."
        yield from ("", "| who | in | of these to the letter |", "|---|---|---|")
        for group in alike:
            who = ", ".join(_named(people, id) for id in group.people)
            yield f"| {who} | {_keys(group.exercises)} | {_keys(group.to_the_letter) or 'none'} |"
    else:
        yield "None that are longer than a line or two, and rare."
    if worked:
        yield from ("", "The worked solution itself, which is public, but for names and comments:", "")
        for cell_name, ids in sorted(worked.items()):
            yield f"- {_keys((cell_name,))}: {', '.join(_named(people, id) for id in ids)}"


def _everybody(people: dict[str, Person], found: list[Result], late: list[tuple[str, str, float]]) -> Iterator[str]:
    """List each person with their points, and how late they were."""
    delays = {id: f"{delay}, costs {cost:g}" for id, delay, cost in late}
    yield from ("", "## Everybody", "", "| | id | points | late |", "|---|---|---|---|")
    for result in found:
        shown = "not graded" if result.points is None else f"{result.points:g}"
        yield f"| {result.person.name} | {result.person.id} | {shown} | {delays.get(result.person.id, '')} |"
    missing = ", ".join(_named(people, result.person.id) for result in found if result.points is None)
    yield from ("", f"Nothing from: {missing or 'nobody is missing'}.", "")


def _late(book: "Gradebook", name: str) -> list[tuple[str, str, float]]:
    found = []
    for submission in book.assignment_submissions(name):
        seconds = submission.total_seconds_late
        if seconds > 0:
            hours = seconds / 3600
            delay = (
                f"{hours / 24:.1f} days" if hours > 48 else f"{hours:.1f} hours" if hours >= 1 else "less than an hour"
            )
            found.append((submission.student_id, delay, float(submission.late_submission_penalty or 0)))
    return found


def _named(people: dict[str, Person], id: str) -> str:
    return f"{people[id].name} ({id})" if id in people else id


def _keys(names: tuple[str, ...]) -> str:
    return ", ".join(name.removeprefix("exercise-").replace("-", ".") for name in names)


def _cell(text: Any) -> str:
    return str(text).replace("|", "\\|")
