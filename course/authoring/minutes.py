"""How long a lesson takes, counted from its cells and words: `python -m course minutes` prints it, part by part."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from course.base.environment import ensure
from course.base.folds import unfolded
from course.base.notebooks import COMMAND, lesson_notebooks
from course.judging import exercises

# Minutes for one of each. Words at 150 a minute: read aloud, or silently with some thinking.
WORD = 1 / 150
CELL = 20 / 60  # run it, look at what it shows
LINE = 5 / 60  # of code: read it
PREDICTION = 1.0  # commit to an answer
FIGURE = 2.0  # move it
YOUR_TURN = 2.0  # a line or two of one's own
WRITTEN = 2.0  # lines of a program that the lesson leaves to the learner, and their check
POINT = 4.0  # of an exercise
INCLUDED = re.compile(r"(?m)^(?:predict|check)\(")  # in the time of the answer, and of the lines that are written
MOVED = re.compile(r"\b(?:\w+(?:Explorer|Timeline|Stepper)|LeafBoard|LiveCurves)\(")  # a figure with something to move


def parts(path: Path) -> Iterator[tuple[str, float]]:
    """Yield the heading and the minutes of each part of a notebook, beginning with what precedes the first `##`."""
    import nbformat

    name, minutes = "Opening", 0.0
    for cell in nbformat.read(path, as_version=4).cells:
        if "navigation" in cell.metadata.get("tags", []):
            continue
        if cell.cell_type == "code" and INCLUDED.search(cell.source):
            continue
        if cell.cell_type == "code":
            minutes += CELL + LINE * len(exercises.blank(cell.source).splitlines())
            minutes += FIGURE * bool(MOVED.search(cell.source))
            minutes += WRITTEN * bool(exercises.SOLUTION.search(cell.source))
            continue
        for piece in re.split(r"(?m)^(?=## )", unfolded(cell.source)):
            if piece.startswith("## "):
                yield name, minutes
                name, minutes = piece.partition("\n")[0].removeprefix("## "), 0.0
            minutes += WORD * len(piece.split())
            minutes += PREDICTION * piece.count("**Predict.")
            minutes += YOUR_TURN * len(re.findall(r"(?m)^(?:\*\*|### )Your turn", piece))
    yield name, minutes


def lesson_minutes(path: Path) -> float:
    """Return the minutes for a lesson without its exercises."""
    return sum(minutes for _, minutes in parts(path))


def exercise_minutes(lesson: str) -> float:
    """Return the minutes for a lesson's exercises."""
    return POINT * sum(exercise.points for exercise in exercises.of_lesson(lesson).values())


def main(argv: list[str]) -> int:
    """Print the minutes of each lesson and of its parts; return 0, or 2 if there is no such lesson."""
    found = lesson_notebooks()
    parser = argparse.ArgumentParser(prog=f"{COMMAND} minutes", description="How long a lesson takes.")
    parser.add_argument("lesson", nargs="*", metavar="NN", help="a lesson's number (default: every lesson)")
    wanted = parser.parse_args(argv).lesson or list(found)
    ensure("course", ["minutes", *argv])
    if unknown := sorted(set(wanted) - set(found)):
        parser.error(f"there is no lesson {unknown[0]}: {', '.join(found)}")
    for number in wanted:
        path = found[number]
        print(f"{path.stem}: {lesson_minutes(path):.0f}, its exercises {exercise_minutes(number):.0f}")
        for name, minutes in parts(path):
            print(f"  {minutes:3.0f}  {name}")
    return 0
