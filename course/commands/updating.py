"""`python -m course update`: which version this is, and how a newer one comes.

Where pip has installed the course, the command `undertorch` (undertorch/__main__.py) has renewed the folder before.
"""

import argparse
import re

from course.base.notebooks import COMMAND, ROOT


def main(argv: list[str]) -> int:
    """Say it; 0."""
    argparse.ArgumentParser(
        prog=f"{COMMAND} update", description="Say which version of the course this is, and how a newer one comes."
    ).parse_args(argv)
    text = (ROOT / "engine" / "__init__.py").read_text(encoding="utf-8")
    version = re.findall(r'(?m)^__version__ = "(.+)"', text)[0]
    print(f"This is version {version} of the course, in {ROOT}.")
    if (ROOT / ".undertorch.json").is_file():
        print("A newer one: python -m pip install --upgrade undertorch, then undertorch update.")
    else:
        print("A newer one: git pull, or unpack a newer ZIP over this folder.")
    print(f"The next `{COMMAND} lab` renews your copies; those that you have changed stay as they are.")
    return 0
