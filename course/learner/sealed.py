"""A class's own notes on a learner's side: answers that can be tried and not read, and solutions with a date.

The notebook that a class hands out (`course/classroom/releasing.py`) carries both; nothing here knows an answer.
"""

import contextlib
import datetime
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import numpy as np

from course.base.notebooks import ROOT
from course.judging import exercises
from course.learner import copies, record

ROUNDS = 200_000  # a tenth of a second for a try: a learner does not feel it, who tries all numbers does


class ClassNotes:
    """The words of a class's notebook of a lesson, where one lies in the learner's folder.

    Among the learner's exercises, or, on a class's server, where nbgrader has put what was fetched.
    """

    def __init__(self, lesson: str, root: Path = ROOT):
        name, kept = exercises.title(lesson, root), record.file()
        fetched = (root if kept is None else kept.parent) / name
        self.own: list[str] = []
        self.solutions: datetime.datetime | None = None
        for folder in (root / copies.EXERCISES, fetched):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
                nb = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))
                found = nb["metadata"]["undertorch"]["class"]
                own, text = [str(key) for key in found.get("own", [])], found.get("solutions") or ""
                self.solutions = datetime.datetime.fromisoformat(text) if text else None
                self.own = own
                break

    def wait(self) -> datetime.datetime | None:
        """Return when worked solutions can be seen, if that is still to come."""
        if self.solutions is None or self.solutions <= datetime.datetime.now(datetime.UTC):
            return None
        return self.solutions.astimezone()


def seal(answer: Any, salt: str) -> str:
    """Seal an answer in a text by which it can be recognised, and from which it cannot be read."""
    how = "float" if "float" in _kinds(answer) else "exact"
    return f"{how}-{salt}-{_digest(answer, how, salt)}"


def opens(sealed: str, attempt: Any) -> bool:
    """Tell whether an attempt is the answer that was sealed; as in a check, 7 will do for 7.0, and 7.0 not for 7."""
    how, salt, digest = sealed.split("-")
    return hmac.compare_digest(_digest(attempt, how, salt), digest)


def _digest(answer: Any, how: str, salt: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", _plainly(answer, how).encode(), salt.encode(), ROUNDS).hex()[:32]


def _kinds(value: Any) -> set[str]:
    if isinstance(value, list | tuple | set | frozenset):
        return {kind for part in value for kind in _kinds(part)}
    return {type(value).__name__}


def _plainly(value: Any, how: str) -> str:
    """Write a value as text in which lists and tuples are the same, and the elements of a set have one order."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) or (how == "float" and type(value) is int):
        return f"{value + 0.0:.5g}f"
    if isinstance(value, list | tuple):
        return f"[{','.join(_plainly(part, how) for part in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{','.join(sorted(_plainly(part, how) for part in value))}}}"
    return repr(value) if isinstance(value, int | str | None) else f"<{type(value).__name__}>"
