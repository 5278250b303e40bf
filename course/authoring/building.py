"""The options of `python -m course build`. The rest needs packages, and is imported once these are there."""

import argparse
import sys
from pathlib import Path

from course.base.environment import ensure
from course.base.notebooks import COMMAND, ROOT


def main(argv: list[str]) -> int:
    """Make the notebooks, and return the exit code. Raises Problem."""
    options = parse(argv)
    ensure("teach", ["build", *argv])
    return answer(options)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} build", description="Make the notebooks from their texts, and execute them."
    )
    parser.add_argument("lesson", nargs="*", help="a lesson's number or name (default: every lesson)")
    parser.add_argument("--check", action="store_true", help="write nothing; list what is out of step with the texts")
    parser.add_argument("--format", action="store_true", help="rewrite the texts as JupyterLab would save them")
    parser.add_argument(
        "--materials",
        metavar="FOLDER",
        help="for those who teach: slides, handouts and a bank of questions, out of the notebooks, into a folder",
    )
    options = parser.parse_args(argv)
    if options.materials and (options.check or options.format):
        parser.error("--materials goes alone, or with lessons")
    return options


def answer(options: argparse.Namespace, root: Path = ROOT) -> int:
    """Do what the options say; return 0 if everything is made or in step, and else 1."""
    from course.authoring.build import BuildError, jobs, lay_out, make
    from course.authoring.in_step import check
    from course.classroom import materials

    try:
        todo = jobs(root, options.lesson)
        if options.materials:
            lessons = sorted({job.name[:2] for job in todo}) if options.lesson else []
            made = materials.make(Path(options.materials), lessons)
            print(f"{len(made)} files: {Path(options.materials).resolve()}")
            return 0
        if options.format:
            return lay_out(todo)
        return check(todo, root, not options.lesson) if options.check else make(todo, root)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
