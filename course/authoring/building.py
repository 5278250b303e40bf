"""`python -m course build`: its options. What answers stands on packages, and is imported once they are there."""

import argparse

from course.base.environment import ensure
from course.base.notebooks import COMMAND


def main(argv: list[str]) -> int:
    """Make the notebooks; the exit code. Raises Problem."""
    options = parse(argv)
    ensure("teach", ["build", *argv])
    from course.authoring.build import answer

    return answer(options)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} build", description="Make the notebooks from their texts, and execute them."
    )
    parser.add_argument("lesson", nargs="*", help="a lesson's number or name (default: every lesson)")
    parser.add_argument("--check", action="store_true", help="write nothing; list what is out of step with the texts")
    parser.add_argument("--execute", action="store_true", help="with --check: execute, and compare the outputs as well")
    parser.add_argument("--format", action="store_true", help="rewrite the texts as JupyterLab would save them")
    parser.add_argument(
        "--materials",
        metavar="FOLDER",
        help="for those who teach: slides, handouts and a bank of questions, out of the notebooks, into a folder",
    )
    options = parser.parse_args(argv)
    if options.execute and not options.check:
        parser.error("--execute goes with --check; a build always executes")
    if options.materials and (options.check or options.format):
        parser.error("--materials goes alone, or with lessons")
    return options
