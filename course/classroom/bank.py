"""The private bank of a class: its exercises with the class's own numbers, their answers, and what seals them."""

import ast
import json
import re
import secrets
from pathlib import Path
from typing import Any

from course.base.environment import Problem
from course.base.notebooks import COMMAND
from course.classroom import variants
from course.classroom.folder import Class, put
from course.judging import exercises
from course.learner import sealed

SEALED = re.compile(r'check\("(?P<key>\d\d\.\d+)", (?P<name>\w+)(?P<seal>, sealed="[\w-]+")\)')
_CHECK = re.compile(r'check\("(\d\d\.\d+)", (\w+)\)')


def path(course: Class, name: str) -> Path:
    return course.path("bank", f"{name}.json")


def read(file: Path) -> dict[str, dict[str, str]]:
    """Read the text, the answer as Python and the seal of each exercise; empty without a bank. Raises Problem."""
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        for row in found.values():
            row["text"], row["seal"], ast.literal_eval(row["answer"])
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, AttributeError) as error:
        raise Problem(f"{file} cannot be read ({error!r}): put a copy of yours back.") from None
    return dict(found)


def applied(course: Class, name: str, notebook: bytes) -> bytes:
    """Put the class's own numbers into a notebook of solutions; what the bank lacks is made from the class's seed.

    A teacher may change a text and an answer in the bank before anybody has handed in: they are then sealed again.
    """
    nb, kept = json.loads(notebook), read(path(course, name))
    for place, cell in enumerate(nb["cells"]):
        key = cell["metadata"].get("exercise")
        if key not in variants.keys():
            continue
        question, check = nb["cells"][place - 1], nb["cells"][place + 1]
        text = "".join(question["source"])
        if key not in kept:
            made = variants.variant(key, text, course.notes["seed"])
            kept[key] = {"text": made.text, "answer": _python(made.answer), "seal": ""}
        row = kept[key]
        answer = ast.literal_eval(row["answer"])
        if not row["seal"] or not sealed.opens(row["seal"], answer):
            row["seal"] = sealed.seal(answer, secrets.token_hex(8))
        question["source"] = row["text"]
        cell["source"] = _answered("".join(cell["source"]), answer)
        cell["outputs"] = check["outputs"] = []  # they talk about the course's numbers
        check["source"] = _CHECK.sub(rf'check("\1", \2, sealed="{row["seal"]}")', "".join(check["source"]))
    put(path(course, name), (json.dumps(kept, indent=1, ensure_ascii=False) + "\n").encode())
    return (json.dumps(nb, indent=1, ensure_ascii=False) + "\n").encode()


def published(check: str) -> tuple[str, str] | None:
    """Return the exercise of a sealed cell of checks, and the course's own version of the cell; None if unsealed."""
    match = SEALED.search(check)
    return (match["key"], check.replace(match["seal"], "")) if match else None


def _answered(source: str, answer: Any) -> str:
    """Put another answer between the marks of a worked solution."""
    inside = _python(answer)
    if isinstance(answer, tuple):  # the parentheses are outside the marks
        inside = "\n".join(f"{_python(part)}," for part in answer)

    def put_in(match: re.Match[str]) -> str:
        margin = match[1]
        lines = [f"{margin}{line}\n" for line in inside.splitlines()]
        return f"{margin}### BEGIN SOLUTION\n{''.join(lines)}{margin}### END SOLUTION"

    return exercises.SOLUTION.sub(put_in, source)


def _python(value: Any) -> str:
    """Write a value as Python, the same way each time, although a set has no order."""
    return f"{{{', '.join(map(repr, sorted(value)))}}}" if isinstance(value, set) else repr(value)


def answer_of(file: Path, key: str) -> str:
    """Return the class's own answer to an exercise, as Python. Raises Problem."""
    found = read(file)
    if key not in found:
        raise Problem(
            f"{file} has no answer to {key}, which was handed out with numbers of the class's own: put a copy of yours "
            f"back. (`{COMMAND} class release` makes a new one, whose numbers are the same as long as the seed in "
            "class.json is.)"
        )
    return found[key]["answer"]
