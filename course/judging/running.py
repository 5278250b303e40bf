"""Runs the steps of a trial with an attempt, and takes down what came of each as plain data."""

import contextlib
import functools
import inspect
import io
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

import engine
from course.judging.exercises import Trial
from course.judging.plain import Plain, Raised, Seen, described, places_of, plain, raised, state

_COURSE = Path(__file__).resolve().parents[1]
_NO_LEAF = Plain("no leaf", None, "nothing: it is no leaf")


def run(trial: Trial, attempt: Any) -> list[Seen]:
    """Run every step of a trial with one attempt; it ends at the first that raises."""
    found: list[Seen] = []
    with _fresh_modes():
        steps = trial(attempt)
        while True:
            try:
                step = next(steps, None)
            except Exception as error:  # the trial itself used what the attempt gave it, and could not
                found.append(Seen("what it gave, used further", _raised(error, trial, attempt), {}, {}, []))
                return found
            if step is None:
                return found
            shown, function, *arguments = step
            result: Plain | Raised
            with _fresh_modes():
                before = _held(arguments)
                try:
                    result = plain(function(*arguments))
                except Exception as error:
                    result = _raised(error, trial, attempt)
                after = _held(arguments)
            direct = function is attempt
            gave = "" if direct or not _holds_none(result) else _gave(trial, attempt)
            found.append(Seen(shown, result, before, after, _names(function, arguments), direct, gave))
            if isinstance(result, Raised):
                return found


def _raised(error: Exception, trial: Trial, attempt: Any) -> Raised:
    """Turn an exception into plain data; where it is the check's own step that failed, with what the attempt gave."""
    found = raised(error)
    own = [place for place in map(Path, places_of(error)) if place.is_relative_to(_COURSE)]
    if found.at or not own or own[-1] == Path(__file__).resolve():
        return found
    return found._replace(gave=_gave(trial, attempt))


def _holds_none(result: Plain | Raised) -> bool:
    parts = result.value if isinstance(result, Plain) and result.kind == "list" else []
    return any(part.kind == "NoneType" for part in parts)


def _gave(trial: Trial, attempt: Any) -> str:
    """Return the kind of what the attempt itself gave last: steps may have made something else of it."""
    given: list[str] = []
    if not isinstance(attempt, FunctionType):
        return ""

    @functools.wraps(attempt)
    def noting(*arguments: Any, **named: Any) -> Any:
        result = attempt(*arguments, **named)
        given.append(described(result))
        return result

    with _fresh_modes(), in_silence(), contextlib.suppress(Exception):
        for _, function, *arguments in trial(noting):
            function(*arguments)
    return given[-1] if given else ""


@contextlib.contextmanager
def in_silence() -> Iterator[None]:
    """Hide from the learner what is printed and warned of by code that is not theirs."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _fresh_modes() -> Iterator[None]:
    """Begin with fresh modes and random numbers, and put the old ones back at the end whatever was done.

    The random numbers begin afresh at the end, too: what a trial draws next does not depend on what was drawn here.
    """
    was = engine.is_grad_enabled()
    _seed()
    try:
        yield
    finally:
        _seed()
        engine.set_grad_enabled(was)
        engine.set_default_dtype(engine.float32)


def _seed() -> None:
    random.seed(0)
    np.random.seed(0)
    engine.manual_seed(0)


def _held(arguments: list[Any]) -> dict[str, Plain]:
    """Return what the arguments hold now: numbers, `.grad`, `.requires_grad`, a Module's mode, and the grad mode."""
    held = {"engine.is_grad_enabled()": plain(engine.is_grad_enabled())}
    for number, argument in enumerate(arguments):
        name = f"{{{number}}}"
        if isinstance(argument, engine.Tensor | np.ndarray | list | dict | set):
            held[name] = plain(argument)
        places = enumerate(argument) if isinstance(argument, list | tuple) else ()
        for where, tensor in [(name, argument), *((f"{name}[{place}]", part) for place, part in places)]:
            if isinstance(tensor, engine.nn.Module):
                held |= {f"{where}.{key}": part for key, part in state(tensor).items()}
            if isinstance(tensor, engine.Tensor):
                held[f"{where}.grad"] = plain(tensor.grad) if tensor.is_leaf else _NO_LEAF
                held[f"{where}.requires_grad"] = plain(tensor.requires_grad)
    return held


def _names(function: Any, arguments: list[Any]) -> list[str]:
    """Return the names that a function gives its arguments."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return names[: len(arguments)] + [f"argument {n + 1}" for n in range(len(names), len(arguments))]
