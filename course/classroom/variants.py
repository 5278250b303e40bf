"""Exercises with a class's own numbers: for each whose answer is a value, the same question, made from a seed.

`python -m course class release` puts text and answer into the class's folder, which only the teacher has. The
rules are the lessons' own (`variants.py`).
"""

import importlib
import random
from typing import Any, NamedTuple

from course.base.notebooks import lesson_folders
from course.judging import exercises
from course.judging.questions import Rule


class Variant(NamedTuple):
    """An exercise with other numbers."""

    text: str  # of the cell with the question
    answer: Any


def keys() -> list[str]:
    """Return the exercises whose answer is a value."""
    found = (exercises.of_lesson(lesson) for lesson in exercises.lessons())
    return [key for rows in found for key, exercise in rows.items() if not callable(exercise.answer)]


def rules(lesson: str) -> dict[str, Rule]:
    """Return a lesson's rules, by exercise."""
    folder = next(folder for folder in lesson_folders() if folder.name[:2] == lesson)
    if not (folder / "variants.py").is_file():
        return {}
    return importlib.import_module(f"course.lessons.{folder.name}.variants").RULES


def variant(key: str, text: str, seed: int) -> Variant:
    """Make an exercise from a seed; its answer is never that of the course's own exercise."""
    given = exercises.find(key).answer
    for attempt in range(100):
        new, answer = rules(key[:2])[key](text, random.Random(f"{seed} {key} {attempt}"))
        if answer != given and new != text:
            return Variant(new, answer)
    raise AssertionError(f"the rule of {key} gives nothing new")
