"""A learner's record, in one local file: written whole, by one process at a time.

`python -m course progress` shows it.
"""

import argparse
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from course.base.environment import ensure
from course.base.files import write_atomically
from course.base.notebooks import COMMAND, ROOT
from course.judging import exercises
from course.learner import copies

# Where it is kept; empty: nowhere (while notebooks are built, compared or graded).
VARIABLE = "UNDERTORCH_PROGRESS"
LOCK_SECONDS = 10
_kept_here: dict[str, Any] = {}  # for as long as this process lives, where no file is kept


def file() -> Path | None:
    """Return the file, or None where none is kept."""
    chosen = os.environ.get(VARIABLE)
    if chosen == "" or os.environ.get("NBGRADER_EXECUTION"):
        return None
    return Path(chosen) if chosen else ROOT / ".progress.json"


def read() -> dict[str, Any]:
    """Return what is recorded of each exercise, by its key."""
    place = file()
    return _kept_here if place is None else _load(place)


def _load(place: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(place.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError):
        # Not ours to throw away: it may have been edited by hand.
        with contextlib.suppress(OSError):
            place.replace(place.with_name(f"{place.name}.unreadable"))
        return {}


def update(key: str, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Change what is recorded of one exercise, and return it. A file that cannot be written is no reason to stop."""
    place = file()
    if place is None:
        entry = _kept_here.setdefault(key, {})
        change(entry)
        return entry
    with _one_at_a_time(place):
        record = _load(place)
        entry = record.setdefault(key, {})
        change(entry)
        with contextlib.suppress(OSError):
            write_atomically(place, json.dumps(dict(sorted(record.items())), indent=1) + "\n")
    return entry


@contextlib.contextmanager
def _one_at_a_time(place: Path) -> Iterator[None]:
    import filelock

    lock = filelock.FileLock(place.with_name(f"{place.name}.lock"), timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except (filelock.Timeout, OSError):  # a folder that cannot be written to, or a lock that hangs on a network disk
        yield
        return
    try:
        yield
    finally:
        lock.release()


def summary() -> list[tuple[str, int, int, int, int]]:
    """Of each lesson: its name, how many exercises are solved, how many it has, the points, and those to be had."""
    record = read()
    rows = []
    for lesson in exercises.lessons():
        all_ = exercises.of_lesson(lesson).values()
        solved = [exercise for exercise in all_ if record.get(exercise.key, {}).get("solved")]
        got, most = (sum(exercise.points for exercise in some) for some in (solved, all_))
        rows.append((exercises.title(lesson), len(solved), len(all_), got, most))
    return rows


def next_up() -> str | None:
    """Return the first exercise not solved, from the lesson of the latest one solved on; None when all are."""
    solved = {key: entry["solved"] for key, entry in read().items() if entry.get("solved")}
    keys = [key for lesson in exercises.lessons() for key in exercises.of_lesson(lesson)]
    last = max(solved, key=lambda key: (solved[key], key), default="")
    return next((key for key in sorted(keys, key=lambda key: key[:2] < last[:2]) if key not in solved), None)


def totals(rows: list[tuple[str, int, int, int, int]]) -> str:
    """Write the last line of a summary."""
    done = sum(solved == of for _, solved, of, _, _ in rows)
    got, most = sum(row[3] for row in rows), sum(row[4] for row in rows)
    return f"{done} of {len(rows)} lessons done, {got} of {most} points."


def report() -> str:
    """Lessons done, points, and what is next, as text."""
    rows = summary()
    width = max([len("lesson"), *(len(row[0]) for row in rows)])
    lines = [f"{'lesson':<{width}}  exercises  points"]
    lines += [f"{name:<{width}}  {done:>3} of {of:<2}  {got:>3} of {most}" for name, done, of, got, most in rows]
    lines += ["", totals(rows)]
    key = next_up()
    lines.append(f"Next: exercise {key}, in my_exercises/{exercises.title(key[:2])}.ipynb" if key else "All is done.")
    for says in copies.damaged():
        lines += ["", says]
    return "\n".join(lines)


def as_data() -> dict[str, Any]:
    """Return the same for programs."""
    rows = [dict(zip(("lesson", "solved", "exercises", "points", "of"), row, strict=True)) for row in summary()]
    return {
        "points": sum(row["points"] for row in rows),
        "of": sum(row["of"] for row in rows),
        "next": next_up(),
        "lessons": rows,
        "damaged": copies.damaged(),
    }


def main(argv: list[str]) -> int:
    """`python -m course progress`; 0."""
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} progress", description="Show which exercises are solved, the points, and what is next."
    )
    parser.add_argument("--json", action="store_true", help="the same for programs, as JSON")
    options = parser.parse_args(argv)
    ensure("course", ["progress", *argv])
    print(json.dumps(as_data(), indent=1, ensure_ascii=False) if options.json else report())
    return 0
