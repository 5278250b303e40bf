"""Tools for a class's own numbers: a question's text taken apart and put together anew.

A rule takes the text as it stands in `exercises.md` and gives another one with its answer, which is computed, by the
engine wherever the question is about what it does. A lesson's rules are in its `variants.py`.
"""

import random
import re
from collections.abc import Callable
from typing import Any

import engine

Rule = Callable[[str, random.Random], tuple[str, Any]]


def put(text: str, *pairs: tuple[str, str]) -> str:
    """Replace each first part in a text by the second, once; a part that is missing is a mistake in the rule."""
    for old, new in pairs:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} stands {text.count(old)} times in the exercise")
        text = text.replace(old, new)
    return text


def code_of(text: str) -> str:
    """Return the lines of code in a question."""
    return "\n".join(line[4:] for line in text.splitlines() if line.startswith("    ") or not line.strip()).strip()


def run(code: str, **names: Any) -> dict[str, Any]:
    names = {"engine": engine, "F": engine.nn.functional, **names}
    with engine.enable_grad():
        exec(code, names)
    return names


def other_names(text: str, chance: random.Random, names: str, in_words: str) -> tuple[str, dict[str, str]]:
    """Rename what a question's code uses; `in_words`: names that the sentences give as an example."""
    new = dict(zip(names, chance.sample(names, len(names)), strict=True))

    def renamed(line: str) -> str:
        return re.sub(rf"(?<![\w.])[{names}](?![\w(])", lambda m: new[m[0]], line)

    lines = [renamed(line) if line.startswith("    ") else line for line in text.splitlines()]
    assert in_words in text
    return "\n".join(lines), new
