"""Exercises, and where each is found: its checks in a lesson's folder, its texts in the notebooks.

The text that a learner reads, and the worked solution, are in a lesson's `exercises.md` alone. What an attempt is
compared with, the usual mistakes and the hints are rows in `checks.py`.
"""

import functools
import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from course.base.notebooks import ROOT, lesson_file, lesson_folders

KEY = re.compile(r"(\d\d)\.(\d+)")
STEP = re.compile(r"(\d\d)\.[a-z]\w*")
SOLUTION = re.compile(r"(?ms)^([ \t]*)### BEGIN SOLUTION\n.*?^[ \t]*### END SOLUTION$")
# What a check answers.
NOT_ATTEMPTED, NOT_YET, CORRECT = "not attempted", "not yet", "correct"
Trial = Callable[[Any], Iterator[tuple]]
ANSWER = "your answer"


class UnknownExercise(ValueError):
    """There is no exercise of this name; the message says which there are."""


def given(attempt: Any) -> Iterator[tuple]:
    """Try an exercise whose attempt is a value, and not a function to be called."""
    yield ANSWER, lambda: attempt


class Did(NamedTuple):
    """One step with an attempt, as a property's predicate gets it: tensors and arrays as NumPy arrays."""

    result: Any  # None where it raised
    expected: Any  # the oracle's
    error: str  # the name of the exception; "" where there was none
    before: dict[str, Any]  # the arguments: "0" is the first, "0.grad" its gradient, "1.weight" a parameter's values
    after: dict[str, Any]
    shown: str  # how the step reads
    source: str  # the learner's cell; "" where it is not known
    dtype: str  # of the result, where that is a tensor


class Property(NamedTuple):
    """Something that every right answer has; an attempt without it hears this sentence, beside those of others."""

    example: Any  # an attempt that has everything but this
    holds: Callable[[Did], Any]  # asked after every step; where it raises, it does not apply
    says: str


# What is said of a wrong entry of a value: pairs of what stands there and what that means, and a sentence for all else.
Entries = str | tuple[tuple[Any, str] | str, ...]


class Exercise(NamedTuple):
    """One exercise: its oracle, the mistakes people make, the steps it is tried with, and its hints.

    `trial(attempt)` is a generator of steps, `(shown, function, *arguments)`: how the step reads, and what is called.
    It runs with the oracle, with the attempt and with each wrong answer, and makes its inputs anew each time; the
    attempt is right when every step returns (or raises), and leaves its arguments, as with the oracle. What reads ""
    is hidden: it runs in grading alone.
    """

    key: str  # "05.1"
    points: int
    answer: Any  # the oracle: written independently of the worked solution where that is possible
    wrong: tuple[tuple[Any, str], ...]  # what people really write, and what to tell them
    hints: tuple[str, str, str]
    trial: Trial = given
    properties: tuple[Property, ...] = ()  # what an answer must have besides, each with a sentence of its own
    entries: Mapping[Any, Entries] = MappingProxyType({})  # of a value: what is wrong there, by number (from 1) or key
    understood: str = ""  # one sentence after *correct*: what has been understood
    once: Callable[[Any], str] | None = None  # what a sealed test says of a right attempt; the first one's is kept
    tolerance: float = 1e-4  # relative, for floating-point results
    seconds: float = 10.0  # of computing, for the whole trial

    @property
    def hidden(self) -> bool:
        """Tell whether it has hidden steps."""
        return any(not shown for shown, *_ in self.trial(self.answer))

    @property
    def lesson(self) -> str:
        return self.key[:2]

    @property
    def name(self) -> str:
        """Return what the exercise is called where it is spoken of."""
        return f"Exercise {self.key}" if self.points else self.key


def lessons() -> list[str]:
    """Return the numbers of the lessons that have exercises."""
    return [folder.name[:2] for folder in lesson_folders() if (folder / "checks.py").is_file()]


@functools.cache
def checks(lesson: str) -> ModuleType:
    """Return the module of a lesson's checks."""
    return importlib.import_module(f"course.lessons.{lesson_file(lesson, 'checks.py').parent.name}.checks")


@functools.cache
def of_lesson(lesson: str) -> dict[str, Exercise]:
    """Return a lesson's exercises by their keys, in order; empty where it has none."""
    if lesson not in lessons():
        return {}
    return {exercise.key: exercise for exercise in checks(lesson).EXERCISES}


@functools.cache
def steps(lesson: str) -> dict[str, Exercise]:
    """Return what a learner writes in the lesson itself, by keys such as "11.mul": checked at once, for no points."""
    return {step.key: step for step in getattr(checks(lesson), "STEPS", ())} if lesson in lessons() else {}


def blank(source: str) -> str:
    """Return a cell as a learner gets it, with three dots in place of each solution, as nbgrader does."""
    return SOLUTION.sub(r"\1...", source)


def solved(source: str) -> str:
    """Return a solution's cell without nbgrader's marks; of a repair, which follows the broken code, that alone."""
    begin, end = "### BEGIN SOLUTION\n", "### END SOLUTION"
    if f"\n{begin}" in f"\n{source}":
        source = "\n".join(part.partition(end)[0] for part in source.split(begin)[1:])
    return "\n".join(
        line for line in source.splitlines() if line.strip() + "\n" != begin and line.strip() != end
    ).strip()


def find(key: str | float) -> Exercise:
    """Find the exercise of a key such as "05.1", or "5.1" as its heading says, or 5.1. Raises UnknownExercise."""
    if isinstance(key, str) and STEP.fullmatch(key) and key in steps(key[:2]):
        return steps(key[:2])[key]
    padded = str(key).zfill(4) if isinstance(key, str | float) else ""
    match = KEY.fullmatch(padded)
    found = of_lesson(match[1]) if match else {}
    if padded not in found:
        known = ", ".join(found or [f"{lesson}.1" for lesson in lessons()])
        raise UnknownExercise(f"There is no exercise {key!r}. There are {known}{'' if found else ' and more'}.")
    return found[padded]


def cell(key: str, folder: str, root: Path = ROOT) -> str | None:
    """Return the source of an exercise's cell in `exercises/` (blank) or `solutions/`; None where there is none.

    A step of a lesson has its one cell in `notebooks/`.
    """
    if STEP.fullmatch(key):
        source = _cell(key, root / "notebooks")
        return blank(source) if source and folder == "exercises" else source
    return _cell(key, root / folder)


def _cell(key: str, folder: Path) -> str | None:
    for path in folder.glob(f"{key[:2]}_*.ipynb"):
        for found in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if found["metadata"].get("exercise") == key:
                return "".join(found["source"])
    return None


def title(lesson: str, root: Path = ROOT) -> str:
    """Return the name of a lesson's notebooks, such as `05_graph`; the number where there is none yet."""
    return next((path.stem for path in sorted((root / "exercises").glob(f"{lesson}_*.ipynb"))), lesson)
