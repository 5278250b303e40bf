"""What a teacher hands out or shows beside the notebooks, made from them: slides, handouts, and a bank of questions."""

import re
from collections.abc import Sequence
from pathlib import Path

from course.base.environment import Problem
from course.base.files import write_atomically
from course.base.notebooks import lesson_notebooks
from course.classroom.folder import put


def make(folder: Path, lessons: Sequence[str] = ()) -> list[Path]:
    """Write the materials of lessons (by number; default: of all) into a folder, and say which files. Raises Problem.

    Open `slides/` in a browser: they need nothing else, and no network. Print `handouts/`;
    `quiz/` has the lessons' predictions as multiple choice, for Moodle (XML) and for Canvas and others (QTI 1.2).
    """
    from course.classroom.materials import handouts, quiz, slides

    found = lesson_notebooks()
    if unknown := sorted(set(lessons) - set(found)):
        raise Problem(f"There is no lesson {unknown[0]}. There are {', '.join(found)}.")
    wanted = {number: path for number, path in found.items() if not lessons or number in lessons}
    made = [
        folder / "quiz" / "moodle.xml",
        folder / "quiz" / "qti.zip",
    ]
    write_atomically(made[0], quiz.moodle(wanted))
    put(made[1], quiz.qti(wanted))
    slides.library(folder / "slides")
    for number, path in wanted.items():
        handout, shown = (folder / kind / f"{path.stem}.html" for kind in ("handouts", "slides"))
        write_atomically(handout, handouts.page(number, path))
        write_atomically(shown, slides.page(number, path))
        made += [handout, shown]
    return made


def name_of(path: Path) -> str:
    """Return a lesson's name: the title of its notebook, without the number and what follows a colon."""
    import nbformat

    heads = (re.match(r"# (?:\d\d )?([^:\n]+)", c.source) for c in nbformat.read(path, as_version=4).cells)
    return next((head[1].strip() for head in heads if head), path.stem)
