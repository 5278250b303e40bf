"""Recognise attempts: the lessons' slips, looked up by the outcome.

A slip is the worked solution with one small mistake built in; `course/authoring/slips.py` makes the rows. What each
gives is a few letters there: nothing can be read off them.
"""

import functools
import hashlib
import json

import numpy as np

from course.base.notebooks import lesson_file
from course.judging.plain import Plain, Raised, Seen


def signature(seen: list[Seen]) -> str:
    """Return a short key of an outcome: the same for results that agree to four digits."""
    return hashlib.sha256(repr([_seen(one) for one in seen]).encode()).hexdigest()[:12]


def _seen(one: Seen) -> tuple:
    after = sorted((key, _plain(part)) for key, part in one.after.items())
    return (_plain(one.result), after)


def _plain(part: Plain | Raised) -> tuple:
    if isinstance(part, Raised):
        return part.name, part.message
    if part.kind in ("dict", "module"):
        return part.kind, sorted((key, _plain(inner)) for key, inner in part.value.items())
    if part.kind == "list":
        return part.kind, [_plain(inner) for inner in part.value]
    if part.kind in ("tensor", "array", "float", "int", "bool", "complex"):
        number = np.asarray(part.value)
        return "number" if part.kind == "int" else part.kind, part.shape, part.dtype, _rounded(number.reshape(-1))
    return part.kind, part.value if part.kind in ("str", "set", "dtype") else part.text


def _rounded(numbers: np.ndarray) -> list[str]:
    shown = [f"{each:.3e}" if isinstance(each, float | complex) else str(each) for each in numbers.tolist()]
    return [each.replace("-0.000e+00", "0.000e+00") for each in shown]


@functools.cache
def table(lesson: str) -> dict[str, dict[str, list[str]]]:
    """{exercise: {signature: what these slips are}} of a lesson, as it was made."""
    path = lesson_file(lesson, "slips.json")
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def about(key: str, seen: list[Seen]) -> str:
    """Name the slip that an attempt with this outcome looks like; empty where it is like none."""
    if not seen or isinstance(seen[-1].result, Raised):
        return ""  # an error speaks for itself
    found = table(key[:2]).get(key, {}).get(signature(seen), [])
    return f"You get this if {', or if '.join(found)}." if found else ""
