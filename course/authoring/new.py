"""`python -m course new lesson NAME`: begin a lesson whose files build and run as they are.

The texts are in `template/`, with `$number` and the like for what differs. What is to be written says TODO.
"""

import argparse
import re
from pathlib import Path
from string import Template

from course.base.environment import Problem
from course.base.files import write_atomically
from course.base.notebooks import COMMAND, HOME, lesson_folders

TEMPLATE = Path(__file__).parent / "template"
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
NEXT = """\
course/lessons/$folder/ builds and runs as it is. Put your own lesson in its place, wherever it says TODO. Then
$names  $command build $build
                               makes its notebooks, and the links to it
  $command build --check
                               tells where TODO still stands, and what is out of step
"""
NAMED = "  python docs/update.py        names it in the README, in lesson 00 and in docs/\n"
TESTED = """\
  $command test --changed
                               tells what it still lacks: three exercises, its minutes, a week in docs/syllabus.md
"""


def main(argv: list[str], root: Path = HOME) -> int:
    """Write a lesson's files, say what comes next, and return 0. Raises Problem."""
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} new", description="For those who write: begin a lesson, under the number after the last one."
    )
    parser.add_argument("what", choices=["lesson"])
    parser.add_argument("name", metavar="NAME", help="of its folder, such as optics or ray_optics")
    names = begin(parser.parse_args(argv).name, root)
    clone = (root / "tests/conftest.py").is_file()  # what pip installs has neither the README nor the tests
    says = Template(NEXT + TESTED * clone)
    print(says.substitute(names, command=COMMAND, names=NAMED * clone), end="")
    return 0


def begin(name: str, root: Path = HOME) -> dict[str, str]:
    """Write the files of a new lesson; return what replaces `$number` and the like. Raises Problem."""
    if not NAME.fullmatch(name):
        raise Problem(f"{name!r} is no name for a lesson: small letters a to z, digits and _, such as ray_optics.")
    taken = [path.name for path in (root / "course/lessons").glob("[0-9][0-9]_*") if _in_use(path)]
    if alike := [folder for folder in taken if folder[3:] == name]:
        raise Problem(f"There is a lesson of this name: course/lessons/{alike[0]}.")
    place = max((int(folder[:2]) for folder in taken), default=-1) + 1
    if place > 99:
        raise Problem("Lessons have two digits, and 99 is taken.")
    number, title = f"{place:02}", name.replace("_", " ").capitalize()
    last = [folder.name for folder in lesson_folders(root)][-1:]
    names = {
        "number": number,
        "n": str(place),  # as headings have it
        "folder": f"{number}_{name}",
        "title": title,
        "needed": "".join(f"[lesson {folder[:2]}]({folder}.ipynb): " for folder in last),
        "build": " ".join(dict.fromkeys(["00", *(folder[:2] for folder in last), number])),
    }
    for template in sorted(TEMPLATE.iterdir()):
        if template.is_file():
            text = Template(template.read_text(encoding="utf-8")).substitute(names)
            write_atomically(root / "course/lessons" / names["folder"] / template.name, text)
    return names


def _in_use(folder: Path) -> bool:
    """Tell whether the folder holds more than what Python leaves behind of a lesson that was taken out."""
    return any(path.name != "__pycache__" for path in folder.iterdir())
