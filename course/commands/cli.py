"""`python -m course`: which commands there are, and which module answers each."""

import difflib
import importlib
import sys
from typing import NamedTuple

from course.base.environment import Problem
from course.base.notebooks import COMMAND, INSTALLED

# Ctrl-C, as shells report it: 128 + SIGINT.
INTERRUPTED = 130


class Command(NamedTuple):
    """The module of `course` whose `main(argv)` answers, and what it does.

    It starts with the standard library alone, and sees to its environment itself.
    """

    module: str
    what: str
    function: str = "main"
    folder: bool = False  # whether it needs a folder of the course, where its work goes


COMMANDS = {
    "lab": Command("commands.lab", "open the course in JupyterLab", folder=True),
    "progress": Command("learner.record", "show which exercises you have solved, and what is next", folder=True),
    "start": Command("learner.copies", "make your own copies of a lesson and its exercises", "main_start", folder=True),
    "reset": Command(
        "learner.copies", "begin a lesson and its exercises anew, keeping a backup", "main_reset", folder=True
    ),
    "update": Command("commands.updating", "say which version this is, and how a newer one comes", folder=True),
    "test": Command("commands.testing", "run the tests and every notebook"),
    "validate": Command("authoring.validation", "run any notebooks again and compare them with what they store"),
    "check": Command("classroom.checking", "judge a filled exercise notebook, for those who collect them"),
    "doctor": Command("commands.doctor", "say what is installed, what is wrong and what to do about it"),
    "minutes": Command("authoring.minutes", "count how long each lesson takes, for those who teach", folder=True),
    "written": Command("learner.rubrics", "show how to mark a lesson's written answers, for those who teach"),
    "class": Command("classroom.command", "hand out, collect and grade the exercises of a class", folder=True),
    "build": Command("authoring.building", "make the notebooks from the lessons' texts", folder=True),
    "site": Command("commands.site", "make the course's site, and show it in your browser", folder=True),
    "new": Command("authoring.new", "begin a lesson (new lesson NAME) with files that build as they are", folder=True),
    "slips": Command("authoring.trying", "name the small mistakes of exercises", "main_slips", folder=True),
    "survivors": Command("authoring.trying", "find mistakes that exercises accept", "main_survivors", folder=True),
    "lock": Command("commands.lock", "write requirements/*.txt anew from pyproject.toml", folder=True),
}

HELP = """\
Undertorch: what is under PyTorch, as a course of notebooks.

  {command} lab       opens the course in your browser: start here

The first start makes an environment of its own beside the course (in .venv) and installs what
the lessons need: a few minutes, once. Outside of the course's folder lie only the settings of Jupyter
and IPython (~/.jupyter, ~/.ipython) and caches, such as that of compiled loops (~/.cache/undertorch).

Commands:
{commands}

`{command} COMMAND --help` says more about one. A different place for the environment:
set UNDERTORCH_VENV to a folder. Inside an environment that already has what a command needs
(conda, a virtual environment) that one is used.
"""


def main(argv: list[str]) -> int:
    """Answer one command line; the exit code."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(help_text(), end="")
        return 0
    name, *rest = argv
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"Did you mean `{COMMAND} {close[0]}`?" if close else f"The commands: {', '.join(COMMANDS)}."
        print(f"There is no command {name!r}. {hint}", file=sys.stderr)
        return 2
    command = COMMANDS[name]
    # nbformat imports jsonschema, which takes it where it is there: a grammar of addresses, for which no notebook's
    # schema asks, and a second and more to make.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    try:
        if INSTALLED and command.folder and not {"-h", "--help"} & set(rest):
            raise Problem(
                "There is no folder of the course here. `undertorch lab` makes one, ./undertorch: go on in it."
            )
        return getattr(importlib.import_module(f"course.{command.module}"), command.function)(rest)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return INTERRUPTED


def help_text() -> str:
    """Return what a newcomer reads first."""
    return HELP.format(
        command=COMMAND, commands="\n".join(f"  {name:<10}{command.what}" for name, command in COMMANDS.items())
    )
