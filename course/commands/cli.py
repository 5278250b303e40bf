"""`python -m course`: which commands there are, and which module answers each."""

import difflib
import importlib
import sys
from typing import NamedTuple

from course.base.environment import Problem, ensure
from course.base.notebooks import COMMAND

# Ctrl-C, as shells report it: 128 + SIGINT.
INTERRUPTED = 130


class Command(NamedTuple):
    """The module whose `main(argv)` answers, and what it does.

    It starts with the standard library alone and sees to its environment itself, or says here which one it needs.
    """

    module: str
    what: str
    function: str = "main"
    needs: str = ""


COMMANDS = {
    "lab": Command("course.commands.lab", "open the course in JupyterLab"),
    "progress": Command("course.learner.record", "show which exercises you have solved, and what is next"),
    "start": Command(
        "course.learner.copies", "make your own copies of a lesson and its exercises", function="main_start"
    ),
    "reset": Command(
        "course.learner.copies", "begin a lesson and its exercises anew, keeping a backup", function="main_reset"
    ),
    "test": Command("course.commands.testing", "run the tests and every notebook"),
    "validate": Command("course.authoring.validation", "run any notebooks again and compare them with what they store"),
    "check": Command("course.classroom.checking", "judge a filled exercise notebook, for those who collect them"),
    "doctor": Command("course.commands.doctor", "say what is installed, what is wrong and what to do about it"),
    "minutes": Command("course.authoring.minutes", "count how long each lesson takes, for those who teach"),
    "written": Command("course.learner.rubrics", "show how to mark a lesson's written answers, for those who teach"),
    "class": Command("course.classroom.command", "hand out, collect and grade the exercises of a class"),
    "build": Command("course.authoring.building", "make the notebooks from the lessons' texts"),
    "slips": Command(
        "course.authoring.slips", "name the small mistakes of exercises, for those who write", needs="course"
    ),
    "survivors": Command("course.authoring.survivors", "find the mistakes that exercises accept", needs="course"),
    "lock": Command("course.commands.lock", "write requirements/*.txt anew from pyproject.toml"),
}

HELP = """\
Undertorch: what is under PyTorch, as a course of notebooks.

  {command} lab       opens the course in your browser: start here

The first start makes an environment of its own beside the course (in .venv) and installs what
the lessons need: a few minutes, once. Beside that folder, JupyterLab keeps your settings and the
layout of your tabs where it always does (~/.jupyter); nothing else on your computer is changed.

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
    try:
        if command.needs:
            ensure(command.needs, argv)
        return getattr(importlib.import_module(command.module), command.function)(rest)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return INTERRUPTED


def help_text() -> str:
    """What a newcomer reads first."""
    return HELP.format(
        command=COMMAND, commands="\n".join(f"  {name:<10}{command.what}" for name, command in COMMANDS.items())
    )
