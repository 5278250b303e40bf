"""The calls of a learner's notebook: `check`, `hint`, `solution`, `progress`."""

import ast
import datetime
import html
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course.base.notebooks import COMMAND
from course.judging import exercises
from course.judging.exercises import CORRECT, NOT_ATTEMPTED, NOT_YET, Exercise, UnknownExercise, find
from course.kernel.shell import cells
from course.learner import copies, record, rubrics
from course.learner.messages import Code, box, marked, put, show
from course.learner.sealed import ClassNotes, opens
from course.process import attempts, worker


class Told(Exception):
    """An error shown in a line; in a notebook no traceback stands above it."""

    shown = False  # what a message in the notebook has said at length; in the course's lab no line follows it

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class NotAttempted(Told, AssertionError):
    """The exercise is as blank as it came."""

    shown = True


class NotYet(Told, AssertionError):
    """The attempt is not right yet."""

    shown = True


class NotChecked(Told, attempts.NotChecked):
    """The check itself did not work: nothing is known about the attempt."""


class NotRun(NotChecked):
    """The cell that was to make the attempt has failed: what it made before is not judged."""

    shown = True


class Stopped(Told, KeyboardInterrupt):
    """The learner has stopped the check."""


class NoSuchExercise(Told, UnknownExercise):
    """There is no exercise of this key."""


def check(key: str | float, attempt: Any, hidden: bool = False, sealed: str = "") -> None:
    """Say whether an attempt at an exercise is right, and if not, what it gave and what it should have given.

    `key`: of an exercise, as "11.1", or of a step of a lesson, as "11.mul", which gives no points. `sealed`: the answer
    where a class has numbers of its own, as its notebook carries it.

    Raises NotAttempted or NotYet, so that nbgrader counts no points, or NotChecked; they show no traceback.
    """
    exercise = _find(key)
    key = exercise.key
    if name := cells.left_over(attempt):
        text = (
            f"The cell with your answer stopped with an error, so `{name}` is still what it was before. "
            "Fix that cell, run it, and then run this one."
        )
        show(f"{exercise.name}: not checked.", text, tone="warn")
        raise NotRun(f"{exercise.name}: not checked.")
    try:
        blank = _is_blank(exercise, attempt)
    except Exception:  # what cannot even be looked at is somebody's work
        blank = False
    if blank:
        answer = attempts.Answer(state=NOT_ATTEMPTED)
    elif sealed:
        right = opens(sealed, attempt)
        answer = attempts.Answer(state=CORRECT if right else NOT_YET, message="" if right else _OWN_NUMBERS)
    else:
        try:
            answer = worker.ask(exercise, attempt, hidden, source=_source(attempt))
        except attempts.NotChecked as error:
            raise NotChecked(str(error)) from None
        except KeyboardInterrupt:
            raise Stopped(f"{exercise.name}: the check was stopped.") from None
    state, rows = answer["state"], [(label, text) for label, text in answer.get("rows", []) if text]
    if answer.get("at") and (line := attempts.line_of(answer["at"])):
        rows.append(("In the line", line))
    if answer.get("printed") and not hidden:
        rows.append(("Printed", answer["printed"]))
    if not hidden and exercise.points:
        record.update(key, lambda entry: _note(entry, state))
    if state == CORRECT:
        if not hidden:
            points = _points(exercise) if exercise.points else ""
            after = f"{exercise.understood} {_ASKS}".strip() if cells.asks(attempt) else exercise.understood
            after = f"{after} {_opened(exercise, attempt)}".strip()
            show(f"{exercise.name}: correct.", points, after=after, tone="success")
        return
    if state == NOT_ATTEMPTED:
        text = f"{_untouched(key)} {_help(key)}"
        show(f"{exercise.name}: not attempted yet.", text, tone="info")
        raise NotAttempted(f"{exercise.name}: not attempted yet.")
    text = answer.get("message", "")
    if ended := cells.stopped(attempt):
        says = f"The cell with your answer stopped with {ended.rstrip('.')}. This is about what it had made before:"
        text = f"{says}\n{text}"
    show(f"{exercise.name}: not yet.", text, rows, "" if hidden else _help(key), tone="warn")
    raise NotYet(f"{exercise.name}: not yet.")


_ASKS = "Its cell calls `input`, which nobody answers where work is graded: write the value into the cell."
_OWN_NUMBERS = (
    "Your class has numbers of its own in this one, and what is known here is only whether the answer is right as a "
    "whole. Which entries are wrong, you hear when it is graded."
)


def hint(key: str | float, number: int | None = None) -> None:
    """Show the next hint of an exercise, or the one of this number; there are three, of rising help."""
    exercise = _find(key)
    key, count = exercise.key, len(exercise.hints)
    if number is None:
        entry = record.update(key, lambda entry: entry.update(hints=min(entry.get("hints", 0) + 1, count)))
        number = entry["hints"]
    if not 1 <= number <= count:
        raise NoSuchExercise(f"There are {count} hints: hint({key!r}, 1) to hint({key!r}, {count}).")
    if key in ClassNotes(key[:2]).own:
        show(
            "These hints were written for the numbers of the course.", "Your class has others: read them as an example."
        )
    more = f"`hint({key!r})` gives the next one." if number < count else f"`solution({key!r})` shows a worked solution."
    text = exercise.hints[number - 1]
    words, code = ("", [("", Code(text))]) if "\n" in text else (text, [])
    show(f"Hint {number} of {count} for {_within(exercise)}", words, code, more)


def solution(key: str | float) -> None:
    """Show the worked solution of an exercise, or what earns points in a written answer ("05.w1")."""
    if isinstance(key, str) and (question := rubrics.find(key)):
        if not _must_wait(question.key, question.key):
            _show_rubric(question)
        return
    exercise = _find(key)
    key = exercise.key
    if exercise.points and _must_wait(key, _within(exercise)):
        return
    source = exercises.cell(key, "solutions")
    if source is None:
        raise NoSuchExercise(f"The solutions of lesson {key[:2]} are not there: {COMMAND} build {key[:2]}")
    record.update(key, lambda entry: entry.update(solution_shown=True))
    about = "It is of the course's numbers; your class has others." if key in ClassNotes(key[:2]).own else ""
    show(f"A worked solution of {_within(exercise)}", about, [("", Code(exercises.solved(source)))])


def _must_wait(key: str, name: str) -> bool:
    """Tell whether a class shows its solutions later, and say so then."""
    until = ClassNotes(key[:2]).wait()
    if until is not None:
        help_ = "" if rubrics.find(key) else f" `hint({key!r})` helps until then."
        show(f"Not yet: {name}.", f"Your class can see its solution from {until:%Y-%m-%d %H:%M} on.{help_}")
    return until is not None


def _show_rubric(question: rubrics.Question) -> None:
    rows = [(f"{points:g} of {question.points:g} points", textwrap.fill(what, 90)) for points, what in question.steps]
    full = question.samples[0]
    # A row is code, where spaces and lines count: the answer is wrapped as it is read.
    text = "\n\n".join(textwrap.fill(part, 90) for part in full.text.split("\n\n"))
    head = f"What earns points in {question.key}"
    show(head, "Mark your own answer by it.", [*rows, ("An answer that has them all", text)])


def progress() -> None:
    """Show which lessons are done, the points, and what is next."""
    put(f"Progress\n{textwrap.indent(record.report(), '    ')}", box(_progress_table(), "info"))


def _progress_table() -> Iterator[str]:
    rows = record.summary()
    heads = "".join(f"<th>{head}</th>" for head in ("lesson", "exercises", "points"))
    yield f"<p><strong>Progress</strong></p><table><thead><tr>{heads}</tr></thead>"
    for name, done, of, got, most in rows:
        linked = f"{_link(name, copies.LESSONS)}</td><td>{_link(name, copies.EXERCISES, f'{done} of {of}')}"
        yield f"<tr><td>{linked}</td><td>{got} of {most}</td></tr>"
    yield f"</table><p>{record.totals(rows)}</p>"
    key = record.next_up()
    title = exercises.title(key[:2]) if key else ""
    where = _link(title, copies.EXERCISES, f"exercise {key}, in {copies.EXERCISES}/{title}.ipynb")
    yield f"<p>Next: {where}</p>" if key else "<p>All is done.</p>"
    yield from (f"<p>{marked(says)}</p>" for says in copies.damaged())


def _link(name: str, folder: str, text: str | None = None) -> str:
    """Link to a notebook from any of the course's notebooks, which all stand in folders side by side."""
    return f'<a href="../{folder}/{name}.ipynb">{html.escape(text or name)}</a>'


def _find(key: str | float) -> Exercise:
    if isinstance(key, str) and rubrics.find(key):
        raise NoSuchExercise(
            f"{key} is answered in words, and no program checks it. `solution({key!r})` helps to mark it."
        )
    try:
        return find(key)
    except UnknownExercise as error:
        raise NoSuchExercise(str(error)) from None


def _help(key: str) -> str:
    return f"Stuck? `hint({key!r})` helps."


def _untouched(key: str) -> str:
    """Return what to do about an exercise that is as it came."""
    if not find(key).points:
        return "There are three dots left in the cell. Write in their place, run it, and then run this one."
    blank = ast.parse(exercises.cell(key, "exercises") or "")
    written = [part for part in blank.body if isinstance(part, ast.FunctionDef | ast.ClassDef)]
    if any(isinstance(part, ast.ClassDef) or not _does_nothing(part) for part in written) and _ends_in_dots(blank):
        return (
            f"`{written[-1].name}` is as it came. Repair the code above the three dots, or write a whole new one in "
            "their place; then run that cell, and this one. A single line at the dots does not change the function."
        )
    return "The cell for your answer is as it came. Fill it in, run it, and then run this one."


def _ends_in_dots(tree: ast.Module) -> bool:
    last = tree.body[-1] if tree.body else None
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def _within(exercise: Exercise) -> str:
    """Return what an exercise is called within a sentence."""
    return exercise.name[0].lower() + exercise.name[1:]


def _points(exercise: Exercise) -> str:
    return f"{exercise.points} point{'' if exercise.points == 1 else 's'}."


def _note(entry: dict[str, Any], state: str) -> None:
    if state != NOT_ATTEMPTED:
        entry["attempts"] = entry.get("attempts", 0) + 1
    if state == CORRECT and not entry.get("solved"):
        entry["solved"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _opened(exercise: Exercise, attempt: Any) -> str:
    """Return a sealed test's words for a right attempt, which opens it: what it said the first time is what counts."""
    if exercise.once is None:
        return ""
    try:
        said, first = exercise.once(attempt), record.read().get(exercise.key, {}).get("opened")
    except Exception as error:  # an attempt that is right elsewhere may fail here
        return f"The seal is unbroken: there your answer raised {type(error).__name__}: {error}"
    record.update(exercise.key, lambda entry: entry.update(opened=first or said))
    if first is None:
        return f"The seal is broken: {said}. That is the number for your report."
    return f"The seal was broken before: {first}. That is the number for your report; now it is {said}, a second look."


def _is_blank(exercise: Exercise, attempt: Any) -> bool:
    """Tell whether an attempt is still what the blank notebook defines, or nothing at all."""
    parts = attempt.values() if isinstance(attempt, dict) else attempt
    if any(part is ... for part in (parts if isinstance(attempt, dict | list | tuple) else [attempt])):
        return True
    mine = _definitions(attempt)
    if not mine or all(map(_does_nothing, mine)):
        return bool(mine)
    blank = exercises.cell(exercise.key, "exercises")
    return blank is not None and set(map(ast.dump, mine)) <= set(map(ast.dump, ast.walk(ast.parse(blank))))


def _source(attempt: Any) -> str:
    """Return the cell of a function or class, or its definition if it is from a file; empty where that is unknown."""
    functions = vars(attempt).values() if isinstance(attempt, type) else [attempt]
    try:
        codes = [inspect.unwrap(f).__code__ for f in functions if inspect.isfunction(f)]
        if not codes:
            return ""
        name = codes[0].co_filename
        return inspect.getsource(attempt) if Path(name).is_file() else "".join(linecache.getlines(name))
    except Exception:  # whatever its parts do when they are looked at
        return ""


def _definitions(attempt: Any) -> list[ast.stmt]:
    """Return how a function or a class's methods are written, but for comments and layout; empty where unknown."""
    functions = vars(attempt).values() if isinstance(attempt, type) else [attempt]
    functions = [inspect.unwrap(getattr(f, "__func__", f)) for f in functions if callable(f) or hasattr(f, "__func__")]
    try:
        # A class may have been given functions from elsewhere, by its base.
        sources = [inspect.getsource(f) for f in functions if f.__module__ == attempt.__module__]
        return [ast.parse(textwrap.dedent(source)).body[0] for source in sources]
    except (AttributeError, OSError, TypeError, SyntaxError, IndexError):
        return []


def _does_nothing(definition: ast.stmt) -> bool:
    """Tell whether a function's body is only its docstring, three dots, or `pass`."""
    body = getattr(definition, "body", [definition])
    return all(isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in body)


worker.prepare()
