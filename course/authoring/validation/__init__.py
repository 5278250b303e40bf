"""`python -m course validate`: look through anybody's notebooks, run them, and compare with what they store.

Nothing here imports the engine. nbclient runs the cells; what exempts a cell, and how streams are joined, is nbval's.
"""

import argparse
import importlib.util
import sys

from course.base.environment import Problem, ensure

NEEDS = ("nbclient", "nbval", "jupytext", "PIL")
SAME, DIFFERENT, COULD_NOT_RUN = 0, 1, 2


def main(argv: list[str]) -> int:
    """Validate notebooks; return 0 if all are as stored, 1 if something differs, 2 if something could not run."""
    options = parse(argv)
    if not all(map(importlib.util.find_spec, NEEDS)):
        try:
            ensure("validate", ["validate", *argv])
        except Problem as problem:
            print(problem, file=sys.stderr)
            return COULD_NOT_RUN
    from course.authoring.validation import command

    return command.run(options)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m course validate",
        description="Look notebooks through for what is wrong with them, run them in fresh kernels and compare every "
        "output with the stored one.",
        epilog="A cell is exempt by the tag nbval-ignore-output and a reason in its metadata `exempt`; a cell that "
        "should fail has the tag raises-exception. Exit codes: 0 as stored, 1 differences or faults, 2 could not run. "
        "--rules names the checks.",
    )
    parser.add_argument("path", nargs="*", help="notebooks, or folders of them")
    for name, what in (("--only", "these checks alone (--rules lists them)"), ("--skip", "not these checks")):
        parser.add_argument(name, action="append", default=[], metavar="CHECK,...", help=what)
    texts = "tell of numbers in prose, too, that stand in no output (the check `numbers`)"
    parser.add_argument("--texts", action="store_true", help=texts)
    points = "try exercises with nbgrader's metadata, too: blank, solution, wrong answers (the check `exercises`)"
    parser.add_argument("--exercises", action="store_true", help=points)
    parser.add_argument("--timeout", type=_positive, default=300, metavar="S", help="seconds a cell may take (300)")
    brief = "let exempt cells do less, where their metadata `brief` says so, as {'range(900)': 'range(9)'}"
    parser.add_argument("--brief", action="store_true", help=brief)
    kernel = "a registered kernel (default: the Python that runs this); a second one is compared with the first"
    parser.add_argument("--kernel", action="append", default=[], metavar="NAME", help=kernel)
    also = "run all again with this in the place of an import, as `import torch as engine`, and compare the two"
    parser.add_argument("--also", metavar="LINE", help=also)
    only = "the tag of cells that the second run leaves out (one-world)"
    parser.add_argument("--first-only", metavar="TAG", default="one-world", help=only)
    parser.add_argument("--jobs", type=_positive, default=2, metavar="N", help="notebooks side by side (2)")
    masks = "more masks, in nbval's format (default: what pyproject.toml names, [tool.undertorch.validate])"
    parser.add_argument("--sanitize-with", metavar="FILE", help=masks)
    what = "print the checks, what is masked, and how pictures are compared"
    parser.add_argument("--rules", action="store_true", help=what)
    parser.add_argument("--update", action="store_true", help="show the differences, then store the new outputs")
    parser.add_argument("--keep", metavar="DIR", help="keep the executed notebooks in a folder")
    parser.add_argument("--junit", metavar="FILE", help="write the result as JUnit XML")
    parser.add_argument("--github", action="store_true", help="print annotations for GitHub's workflows")
    parser.add_argument("--summary", metavar="FILE", help="append the result to a Markdown file")
    options = parser.parse_args(argv)
    if not options.path and not options.rules:
        parser.error("say which notebooks, or folders of them")
    return options


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("a whole number from 1 on")
    return value
