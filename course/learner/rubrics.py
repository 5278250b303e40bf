"""Written answers: what is asked, what earns points, and three marked samples, in a lesson's `written.md`.

    ## w1 The title
    The question.

    ### What earns points
    - 0.5: Says that ...          (four steps)

    ### Full: 2
    A sample answer.

    Why: the reason for these marks.

    ### Half: 1
    ...
    ### Wrong: 0
    ...

The build puts the questions below a lesson's exercises, as cells that nbgrader has marked by hand. The rest is for
those who mark: `python -m course written 05`, and `solution("05.w1")` for who learns alone.
"""

import argparse
import functools
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from course.base.environment import Problem, ensure
from course.base.notebooks import COMMAND, HOME, lesson_file, lesson_folders

KEY = re.compile(r"(\d\d)\.(w\d+)")
POINTS, STEPS = 2.0, 4
SAMPLES = ("Full", "Half", "Wrong")
ABOUT = (
    "## In your own words\n\n"
    "Two questions that no program can check. Double-click the cell that says *Write here*, and write a few "
    "sentences in its place; numbers and code of your own are\n"
    "welcome. In a class somebody marks them. Alone, mark yourself once you have written: "
    '`solution("{first}")` shows what earns points, and an answer that has them all.'
)
STUB = "*Write here.*"
_STEP = re.compile(r"- (\d+(?:\.\d+)?): (.+?)(?=\n- |\Z)", re.DOTALL)


class Sample(NamedTuple):
    """An answer that somebody might write, its marks, and why."""

    name: str
    points: float
    text: str
    why: str


class Question(NamedTuple):
    """A question to be answered in words."""

    key: str  # "05.w1"
    title: str
    text: str
    steps: tuple[tuple[float, str], ...]  # points, and for what
    samples: tuple[Sample, ...]  # full, half, wrong

    @property
    def points(self) -> float:
        return sum(points for points, _ in self.steps)

    @property
    def heading(self) -> str:
        return f"{int(self.key[:2])}{self.key[2:]} {self.title}"


def lessons() -> list[str]:
    """Return the numbers of the lessons that have such questions."""
    return [folder.name[:2] for folder in lesson_folders() if (folder / "written.md").is_file()]


@functools.cache
def questions(lesson: str, root: Path = HOME) -> dict[str, Question]:
    """Return a lesson's questions by key, in order; empty where it has none. ValueError where the file is wrong."""
    path = lesson_file(lesson, "written.md", root)
    if not path.is_file():
        return {}
    found = {}
    for block in re.split(r"(?m)^## ", path.read_text(encoding="utf-8"))[1:]:
        name = block.partition("\n")[0]
        try:
            question = _question(lesson, block)
        except ValueError as error:
            raise ValueError(f"{lesson}/{path.name}, {name}: {error}") from None
        found[question.key] = question
    if [key[3:] for key in found] != [f"w{number}" for number in range(1, len(found) + 1)]:
        raise ValueError(f"{lesson}/{path.name}: the questions are called w1, w2 and so on, not {', '.join(found)}")
    return found


def _question(lesson: str, block: str) -> Question:
    head, *sections = re.split(r"(?m)^### ", block)
    heading, _, text = head.partition("\n")
    name, _, title = heading.partition(" ")
    parts = {(parts := section.partition("\n"))[0].strip(): parts[2].strip() for section in sections}
    if not re.fullmatch(r"w\d+", name) or not title or not text.strip():
        raise ValueError("a name such as w1, a title and a question are asked for")
    listed = parts.pop("What earns points", "")
    steps = tuple((float(points), " ".join(what.split())) for points, what in _STEP.findall(listed))
    if len(steps) != STEPS or sum(points for points, _ in steps) != POINTS or listed.count("\n- ") != STEPS - 1:
        raise ValueError(f"{STEPS} steps of {POINTS:g} points together are asked for")
    samples = tuple(_sample(*section) for section in parts.items())
    if tuple(sample.name for sample in samples) != SAMPLES:
        raise ValueError(f"three samples are asked for: {', '.join(SAMPLES)}")
    if not samples[0].points == POINTS > samples[1].points > samples[2].points >= 0:
        raise ValueError(f"a full answer has {POINTS:g} points, a half one fewer, a wrong one fewer still")
    return Question(f"{lesson}.{name}", title, text.strip(), steps, samples)


def _sample(heading: str, content: str) -> Sample:
    match = re.fullmatch(r"(\w+): (\d+(?:\.\d+)?)", heading)
    text, _, why = content.rpartition("\n\nWhy: ")
    if not match or not text or not why or "\n\n" in why:
        raise ValueError(f"{heading!r}: a sample has a name and its points, a text, and at its end `Why: `")
    return Sample(match[1], float(match[2]), text.strip(), " ".join(why.split()))


def find(key: str) -> Question | None:
    """Find the question of a key such as "05.w1", or "5.w1"; None where there is none."""
    match = KEY.fullmatch(key.zfill(5))
    return questions(match[1]).get(match[0]) if match else None


def cells(lesson: str, root: Path = HOME) -> list[tuple[str, str, Question | None]]:
    """Return what the build puts below the exercises: a cell's name, its text, and the question to be filled in."""
    found = questions(lesson, root)
    made: list[tuple[str, str, Question | None]] = []
    for key, question in found.items():
        about = f"{ABOUT.format(first=key)}\n\n" if not made else ""
        made.append((f"{key} asked", f"{about}### {question.heading}\n\n{question.text}", None))
        made.append((key, question.samples[0].text, question))
    return made


def as_text(question: Question) -> str:
    """Write a question with all that is needed to mark it."""
    lines = [f"{question.heading} ({question.points:g} points)", "", question.text, "", "What earns points", ""]
    lines += [_wrapped(f"{points:g}  {what}", "     ") for points, what in question.steps]
    for sample in question.samples:
        lines += ["", f"{sample.name}: {sample.points:g}", "", textwrap.indent(sample.text, "    "), ""]
        lines.append(_wrapped(f"Why: {sample.why}", "     "))
    return "\n".join(lines)


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False)


def main(argv: list[str]) -> int:
    """`python -m course written 05`: 0. Raises Problem."""
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} written",
        description="For those who teach: a lesson's written questions, what earns points, and marked samples.",
    )
    parser.add_argument("lesson", nargs="+", metavar="NN", help="a lesson's number")
    wanted = [lesson.zfill(2) for lesson in parser.parse_args(argv).lesson]
    ensure("course", ["written", *argv])
    for lesson in wanted:
        if lesson not in lessons():
            raise Problem(f"Lesson {lesson} has no written questions. There are those of {', '.join(lessons())}.")
        print(f"\n\n{'-' * 30}\n\n".join(map(as_text, questions(lesson).values())))
    return 0
