"""The words in which `checks.py` says what goes wrong: usual mistakes, properties, and a right answer changed.

Nearly every wrong answer is a right one with one line otherwise.
"""

import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from course.judging.exercises import Property


def mistakes(*parts: Any) -> tuple[tuple[Any, str], ...]:
    """Return the usual mistakes of an exercise, for its `wrong=`: a wrong answer and what to say about it, in turn.

    Raises ValueError where one of the two is missing.
    """
    for number, says in enumerate(parts[1::2], start=1):
        if not isinstance(says, str):
            raise ValueError(f"what follows the wrong answer number {number} is {says!r}, and no sentence")
    if len(parts) % 2:
        raise ValueError(f"nothing is said of the last wrong answer, {parts[-1]!r}")
    return tuple(zip(parts[::2], parts[1::2], strict=True))


def properties(*parts: Any) -> tuple[Property, ...]:
    """Return what an exercise's answers must have besides, for its `properties=`: the three parts of each in turn.

    Raises ValueError where one of the three is missing.
    """
    found = tuple(map(Property, parts[::3], parts[1::3], parts[2::3]))
    for one in found:
        if not callable(one.holds) or not isinstance(one.says, str):
            raise ValueError(f"an example, a predicate and a sentence are wanted, and here are {tuple(one)}")
    if len(parts) % 3:
        raise ValueError(f"the last property is incomplete: {parts[len(found) * 3 :]}")
    return found


def changed(right: Callable, *parts: str) -> Callable:
    """Return a function with parts of its text replaced: `changed(right, "x -= ", "x += ")`, old and new in turn.

    Raises ValueError where an old part does not stand there once, and for a function that calls itself: it would call
    the right one.
    """
    source, code = _source(right), right.__code__
    if right.__name__ in code.co_names:
        raise ValueError(f"{right.__name__} calls itself: what it calls would be unchanged")
    for old, new in zip(parts[::2], parts[1::2], strict=True):
        if source.count(old) != 1:
            raise ValueError(f"{old!r} stands {source.count(old)} times in {right.__name__}")
        source = source.replace(old, new)
    names: dict[str, Any] = {}
    above = "\n" * (code.co_firstlineno - 1)  # so that a traceback leads to the line of the right one
    exec(compile(above + source, code.co_filename, "exec"), right.__globals__, names)
    return names[right.__name__]


@functools.cache
def _source(function: Callable) -> str:
    return textwrap.dedent(inspect.getsource(function))
