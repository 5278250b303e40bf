"""The options of `python -m course slips` and `survivors`. The rest is imported once its packages are there."""

import argparse

from course.base.environment import ensure
from course.base.notebooks import COMMAND


def main_slips(argv: list[str]) -> int:
    """Make the slips of lessons again, and return 0. Raises Problem."""
    parser = argparse.ArgumentParser(prog=f"{COMMAND} slips", description="Name the small mistakes of exercises anew.")
    parser.add_argument("lesson", nargs="*", metavar="NN", help="a lesson's number (default: every lesson)")
    wanted = parser.parse_args(argv).lesson
    ensure("course", ["slips", *argv])
    from course.authoring import slips

    slips.write(wanted)
    return 0


def main_survivors(argv: list[str]) -> int:
    """Name the mistakes that exercises accept, and return 0. Raises Problem."""
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} survivors", description="Name the mistakes that exercises accept."
    )
    parser.add_argument("key", nargs="+", metavar="NN.N", help="an exercise, such as 03.3")
    keys = parser.parse_args(argv).key
    ensure("course", ["survivors", *argv])
    from course.authoring import survivors

    survivors.tell(keys)
    return 0
