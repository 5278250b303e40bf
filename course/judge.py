"""Compares an attempt with the oracle, and finds words for the difference.

Everything here runs in a fresh process (`course.worker`): whatever a learner has defined or changed in a notebook, the
engine that judges is as it was written.
"""

import builtins
import contextlib
import inspect
import io
import math
import random
import re
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

import engine
from course.exercises import ANSWER, CORRECT, NOT_ATTEMPTED, NOT_YET, Exercise, Trial, text_of

LONGEST = 800  # characters of a value, or of what was printed
_COURSE = Path(__file__).resolve().parent
_ENGINE = Path(engine.__file__).resolve().parent


class CheckFailed(Exception):
    """A check's own mistake: a step fails with the right answer, and does not name the error as what is asked for."""


class Verdict(NamedTuple):
    """The answer to an attempt: what to say, and the rows of a table (input, got, expected)."""

    state: str
    message: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    at: tuple[str, int] | None = None  # the file and the line of the learner's code that an error came from


class Plain(NamedTuple):
    """A value as it was at one moment, in a form that can be compared and shown."""

    kind: str
    value: Any
    text: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""


class Raised(NamedTuple):
    """An exception, and the line of the learner's code that it came from: file, number."""

    name: str
    message: str
    at: tuple[str, int] | None


class Seen(NamedTuple):
    """What came of one step: the result, and what the arguments hold afterwards."""

    shown: str
    result: Plain | Raised
    before: dict[str, Plain]  # "{0}.grad": the gradient of the first argument, whose name is ...
    after: dict[str, Plain]
    names: list[str]


class Tried(NamedTuple):
    """What came of an attempt; what is compared, and no more."""

    kind: str
    seen: list[Seen] | None  # None where a function is asked for, and this is none
    hidden_names: list[str]  # Python's own that the attempt's surroundings use for something else


class Expected(NamedTuple):
    """What the oracle gives, and each wrong answer with what is said of it."""

    right: list[Seen]
    wrong: list[tuple[list[Seen], str]]


def judge(exercise: Exercise, attempt: Any, hidden: bool = False) -> Verdict:
    """Run the trial with the oracle, the wrong answers and the attempt, in this order, and compare.

    Raises CheckFailed.
    """
    should = expected(exercise, hidden)
    return compared(exercise, tried(trial_of(exercise, hidden), attempt, callable(exercise.answer)), should, hidden)


def trial_of(exercise: Exercise, hidden: bool) -> Trial:
    """The steps that are asked for."""
    trial = exercise.hidden if hidden else exercise.trial
    assert trial is not None, f"{exercise.key} has no hidden steps"
    return trial


def expected(exercise: Exercise, hidden: bool = False) -> Expected:
    """Run the trial with the oracle and with the wrong answers. Raises CheckFailed."""
    trial = trial_of(exercise, hidden)
    with _in_silence():
        right = run(trial, exercise.answer)
        if right and isinstance(error := right[-1].result, Raised) and error.name not in right[-1].shown:
            # Where the oracle fails as every attempt does, every attempt would be right.
            raise CheckFailed(f"{error.name} with the right answer: {error.message}")
        return Expected(right, [(run(trial, answer), says) for answer, says in exercise.wrong])


def tried(trial: Trial, attempt: Any, function: bool) -> Tried:
    """Run the trial with the attempt. `function`: one is asked for."""
    if function and not callable(attempt):
        return Tried(plain(attempt).kind, None, [])
    # cloudpickle brings the names along that the attempt uses, and no others.
    names = [name for name in getattr(attempt, "__globals__", ()) if name.isalpha() and hasattr(builtins, name)]
    return Tried("", run(trial, attempt), names)


def compared(exercise: Exercise, attempt: Tried, should_be: Expected, hidden: bool = False) -> Verdict:
    """The verdict, from what came of the attempt and of the others."""
    got = attempt.seen
    if got is None:
        kind = _article(attempt.kind)
        return Verdict(NOT_YET, f"A function is asked for, and this is {kind}. Are there parentheses after its name?")
    if _holds_ellipsis(got):
        return Verdict(NOT_ATTEMPTED)
    compare, right = Comparison(exercise.tolerance), should_be.right
    first = next((pair for pair in zip(got, right, strict=False) if not compare.seen(*pair)), None)
    if first is None and len(got) == len(right):
        return Verdict(CORRECT)
    if hidden:
        return Verdict(NOT_YET, "Right for what was shown, and wrong for another input. Does it work for every one?")
    is_, should = first or (got[-1], right[len(got) - 1])
    named = next((says for seen, says in should_be.wrong if compare.all(got, seen)), "")
    named = named or _about_names(is_, attempt.hidden_names)
    at = is_.result.at if isinstance(is_.result, Raised) else None
    return Verdict(NOT_YET, named or compare.notice(is_, should), tuple(_rows(is_, should, compare)), at)


def _about_names(is_: Seen, names: list[str]) -> str:
    """A word about names of Python's own that the notebook uses for something else, where that may be the trouble."""
    if not names or not isinstance(is_.result, Raised):
        return ""
    name = names[0]
    return f"`{name}` is a name of your own in this notebook, and hides Python's. Take another, and run: del {name}"


def run(trial: Trial, attempt: Any) -> list[Seen]:
    """Every step of a trial with one attempt; it ends at the first that raises."""
    found: list[Seen] = []
    with _fresh_modes():
        steps = trial(attempt)
        while True:
            try:
                step = next(steps, None)
            except Exception as error:  # the trial itself used what the attempt gave it, and could not
                found.append(Seen("what it gave, used further", raised(error), {}, {}, []))
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
                    result = raised(error)
                after = _held(arguments)
            found.append(Seen(shown, result, before, after, _names(function, arguments)))
            if isinstance(result, Raised):
                return found


@contextlib.contextmanager
def _in_silence() -> Iterator[None]:
    """What is printed and warned of is not shown to the learner, whose code it does not come from."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _fresh_modes() -> Iterator[None]:
    """The modes and the random numbers of a fresh start, put back at the end whatever was done in between."""
    was = engine.is_grad_enabled()
    random.seed(0)
    np.random.seed(0)
    engine.manual_seed(0)
    try:
        yield
    finally:
        engine.set_grad_enabled(was)
        engine.set_default_dtype(engine.float32)


def plain(value: Any) -> Plain:
    """A value as it is now. Tensors and arrays are copied."""
    if isinstance(value, engine.Tensor):
        array = np.array(value.detach().cpu().to(_comparable_dtype(value)).numpy())
        dtype = str(value.dtype).removeprefix("engine.").removeprefix("torch.")
        place = "" if value.device.type == "cpu" else f", on {value.device}"
        text = f"{_short(repr(value))}\nshape {tuple(value.shape)}, {dtype}{place}"
        return Plain("tensor", array, text, array.shape, dtype, str(value.device))
    if isinstance(value, np.ndarray):
        text = f"{_short(repr(value))}\nshape {value.shape}, {value.dtype}"
        return Plain("array", value.copy(), text, value.shape, str(value.dtype))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float | complex | str | None | EllipsisType):
        return Plain(type(value).__name__, value, _short(repr(value)))
    if isinstance(value, list | tuple):
        parts = [plain(part) for part in value]
        return Plain("list", parts, _short(repr(value)))
    if isinstance(value, dict):
        parts_by_key = dict(zip(_keys(value), map(plain, value.values()), strict=True))
        return Plain("dict", parts_by_key, _short(repr(value)))
    if isinstance(value, set | frozenset):
        return Plain("set", sorted(_keys(value)), _short(repr(value)))
    if callable(value) and hasattr(value, "__name__"):
        return Plain("function", None, f"the function {value.__name__}, and not what it returns")
    return Plain(type(value).__name__, _nameless(value), _short(repr(value)))


def _comparable_dtype(value: Any) -> Any:
    return engine.float64 if value.dtype.is_floating_point else value.dtype


def _keys(held: Iterable[Any]) -> list[str]:
    """What a dict's or a set's entries are known by; two that look the same are told apart by their order."""
    seen: Counter[str] = Counter()
    names = []
    for name in map(_nameless, held):
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return names


def _nameless(value: Any, show: Callable[[Any], str] = repr) -> str:
    """How a value shows itself, but for its place in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", show(value))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


def raised(error: BaseException) -> Raised:
    """An exception as plain data."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not Path(frame.filename).resolve().is_relative_to(_COURSE)]
    theirs = [frame for frame in own if not Path(frame.filename).resolve().is_relative_to(_ENGINE)]
    theirs = [frame for frame in theirs if "site-packages" not in frame.filename]
    at = (theirs[-1].filename, theirs[-1].lineno or 0) if theirs else None
    return Raised(type(error).__name__, _short(_nameless(error, text_of)), at)


def _held(arguments: list[Any]) -> dict[str, Plain]:
    """What the arguments hold now, the tensors' `.grad` and `.requires_grad` too, and whether notes are taken."""
    held = {"engine.is_grad_enabled()": plain(engine.is_grad_enabled())}
    for number, argument in enumerate(arguments):
        name = f"{{{number}}}"
        if isinstance(argument, engine.Tensor | np.ndarray | list | dict | set):
            held[name] = plain(argument)
        places = enumerate(argument) if isinstance(argument, list | tuple) else ()
        for where, tensor in [(name, argument), *((f"{name}[{place}]", part) for place, part in places)]:
            if isinstance(tensor, engine.Tensor):
                held[f"{where}.grad"] = plain(tensor.grad) if tensor.is_leaf else _NO_LEAF
                held[f"{where}.requires_grad"] = plain(tensor.requires_grad)
    return held


_RETURNS_NONE = "It gives None. Is a `return` missing?"
_NO_LEAF = Plain("no leaf", None, "nothing: it is no leaf")


def _names(function: Any, arguments: list[Any]) -> list[str]:
    """What a function calls its arguments."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return names[: len(arguments)] + [f"argument {n + 1}" for n in range(len(names), len(arguments))]


def _holds_ellipsis(got: list[Seen]) -> bool:
    return any(isinstance(seen.result, Plain) and _is_ellipsis(seen.result) for seen in got)


def _as_float(value: Plain) -> Plain:
    """A whole number as one with a point."""
    return value._replace(kind="float", value=float(value.value) if abs(value.value) < 2**1000 else math.inf)


def _is_ellipsis(value: Plain) -> bool:
    parts = value.value.values() if value.kind == "dict" else value.value if value.kind == "list" else ()
    return value.kind == "ellipsis" or any(map(_is_ellipsis, parts))


class Comparison:
    """When two values count as the same, and what can be said for certain where they are not."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance

    def all(self, one: list[Seen], other: list[Seen]) -> bool:
        return len(one) == len(other) and all(map(self.seen, one, other))

    def seen(self, is_: Seen, should: Seen) -> bool:
        return self.result(is_.result, should.result) and not self.left_behind(is_, should)

    def result(self, is_: Plain | Raised, should: Plain | Raised) -> bool:
        if isinstance(is_, Raised) and isinstance(should, Raised):
            return (is_.name, is_.message) == (should.name, should.message)
        return isinstance(is_, Plain) and isinstance(should, Plain) and self.same(is_, should)

    def same(self, is_: Plain, should: Plain) -> bool:
        if (is_.kind, should.kind) == ("int", "float"):  # 7 for 7.0 will do; 7.0 for 7 is a float where an int belongs
            is_ = _as_float(is_)
        if (is_.kind, is_.shape, is_.dtype, is_.device) != (should.kind, should.shape, should.dtype, should.device):
            return False
        if is_.kind in ("tensor", "array", "float", "complex"):
            return self.close(is_.value, should.value)
        if is_.kind == "list":
            return len(is_.value) == len(should.value) and all(map(self.same, is_.value, should.value))
        if is_.kind == "dict":
            return is_.value.keys() == should.value.keys() and all(
                self.same(part, should.value[key]) for key, part in is_.value.items()
            )
        return bool(is_.value == should.value)

    def close(self, is_: Any, should: Any) -> bool:
        is_, should = np.asarray(is_), np.asarray(should)
        if is_.dtype.kind not in "fc" and should.dtype.kind not in "fc":
            return bool(np.array_equal(is_, should))
        return bool(np.allclose(is_, should, rtol=self.tolerance, atol=self.tolerance / 100, equal_nan=True))

    def notice(self, is_: Seen, should: Seen) -> str:
        """What is certain about a difference, in a sentence; empty where the table says it all."""
        got, expected = is_.result, should.result
        if isinstance(got, Raised) and isinstance(expected, Raised):
            return ""
        if isinstance(got, Raised):  # outside of the learner's lines: where what they gave was used
            return _RETURNS_NONE if not got.at and "NoneType" in got.message else "It stopped with an error."
        if isinstance(expected, Raised):
            return "It should have refused this, with an error."
        left = self.left_behind(is_, should)
        names = " and ".join(name for name, _, _, _ in left)
        touched = all(kept for _, _, _, kept in left)
        if self.same(got, expected) and touched:
            return f"The result is right. But it changes {names}, which it should not."
        if self.same(got, expected):
            return f"The result is right. What it leaves behind in {names} is not."
        about = self._about(got, expected, is_value=is_.shown == ANSWER)
        return about or (f"It changes {names}, which it should not." if left and touched else "")

    def left_behind(self, is_: Seen, should: Seen) -> list[tuple[str, Plain, Plain, bool]]:
        """What the arguments hold afterwards and should not: the name, both values, whether it should be as it was."""
        missing = Plain("nothing", None, "nothing")
        found = []
        for key, theirs in should.after.items():
            mine, before = is_.after.get(key, missing), should.before.get(key, missing)
            if not self.same(mine, theirs):
                found.append((key.format(*is_.names), mine, theirs, self.same(before, theirs)))
        return found

    def _about(self, got: Plain, expected: Plain, is_value: bool) -> str:
        """`is_value`: the answer is a value, and nothing may be said by which it could be worked out."""
        numbers = ("int", "float", "bool")
        if got.kind == "NoneType":
            return "It is None. (`print` shows a value, and gives None.)" if is_value else _RETURNS_NONE
        if got.kind == "function":
            return "It gives a function, and not its result. Are the parentheses missing?"
        if got.kind == "tensor" and expected.kind in numbers and got.value.size != 1:
            return f"It gives a tensor of {got.value.size} numbers, where one plain number is asked for."
        if got.kind == "tensor" and expected.kind in numbers:
            return "It gives a tensor, where a plain number is asked for: `.item()` takes it out of its box."
        if got.kind in numbers and expected.kind == "tensor":
            return "It gives a plain number, where a tensor is asked for."
        if (got.kind, expected.kind) == ("float", "int"):
            return "It gives a float, where an integer is asked for."
        if (got.kind, expected.kind) == ("int", "float"):
            got = _as_float(got)
        if got.kind != expected.kind:
            return f"It gives {_article(got.kind)}, where {_article(expected.kind)} is asked for."
        if got.kind in ("tensor", "array"):
            return self._about_arrays(got, expected)
        if got.kind == "list":
            if len(got.value) != len(expected.value):
                has = "1 entry" if len(got.value) == 1 else f"{len(got.value)} entries"
                are = "1 is" if len(expected.value) == 1 else f"{len(expected.value)} are"
                return f"It has {has}, and {are} asked for."
            if all(map(self.same, reversed(got.value), expected.value)):
                return "The entries are right, in the opposite order."
            pairs = enumerate(zip(got.value, expected.value, strict=True), start=1)
            number, pair = next((number, pair) for number, pair in pairs if not self.same(*pair))
            about = self._about(*pair, is_value)
            if number > 1 and pair[0].kind in ("NoneType", "str"):  # what a check found out, beside what it was given
                about = ""
            if not about:  # the table tells it, but of a value
                return f"Entry {number} is not right." if is_value else ""
            return f"Entry {number}: {about[0].lower()}{about[1:]}"
        if got.kind == "set":
            mine, asked = set(got.value), set(expected.value)
            return f"It has {len(mine - asked)} too many, and {len(asked - mine)} missing."
        if got.kind == "float":
            return self._about_numbers(np.asarray(got.value), np.asarray(expected.value), "It", is_value)
        return ""

    def _about_arrays(self, got: Plain, expected: Plain) -> str:
        if got.shape != expected.shape:
            if got.shape == expected.shape[::-1] and self.close(got.value.T, expected.value):
                return "It is transposed: rows and columns have changed places."
            if got.value.size == expected.value.size and self.close(got.value.ravel(), expected.value.ravel()):
                return f"The numbers are right, in the shape {got.shape} and not {expected.shape}."
            return f"The shape is {got.shape}, and {expected.shape} is asked for."
        other = not self.close(got.value, expected.value)
        if other and got.value.ndim == 2 and got.shape == got.shape[::-1] and self.close(got.value.T, expected.value):
            return "It is transposed: rows and columns have changed places."
        if got.device != expected.device:
            return f"It is on the device {got.device}, and should be on {expected.device}."
        if got.dtype != expected.dtype:
            right = "The" if other else "The values are right, but the"
            return f"{right} dtype is {got.dtype}, and {expected.dtype} is asked for."
        if got.value.dtype == bool:
            return "True and False have changed places." if (got.value != expected.value).all() else ""
        return self._about_numbers(got.value, expected.value, "Each number")

    def _about_numbers(self, got: np.ndarray, expected: np.ndarray, each: str, is_value: bool = False) -> str:
        if self.close(-got, expected):
            return "The sign is the wrong way round; the rest is right."
        filled = expected != 0
        if is_value or expected.size == 0 or not filled.any() or not np.isfinite(got).all():
            return ""
        factor = float((got[filled] / expected[filled]).flat[0])
        # Any one number is some times another: that says something if it is twice, or a third.
        whole = {round(factor, 4), round(1 / factor, 4)} & set(range(2, 11)) if factor else set()
        telling = whole or filled.sum() > 1
        if factor and telling and self.close(got, factor * expected):
            return f"{each} is {factor:.4g} times what it should be."
        return ""


def _article(kind: str) -> str:
    name = {"str": "text", "list": "a list or tuple", "dict": "a dict", "set": "a set", "NoneType": "None"}.get(kind)
    return name or f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _rows(is_: Seen, should: Seen, compare: Comparison) -> Iterator[tuple[str, str]]:
    yield "Input", "" if is_.shown == ANSWER else is_.shown
    if not compare.result(is_.result, should.result):
        yield "Got", _told(is_.result)
        if is_.shown != ANSWER:  # of an exercise that asks for a value, it would be the solution
            yield "Expected", _told(should.result)
    if isinstance(is_.result, Raised):
        return
    for name, mine, theirs, _ in compare.left_behind(is_, should):
        yield f"Got, in {name} afterwards", mine.text
        yield f"Expected, in {name} afterwards", theirs.text


def _told(result: Plain | Raised) -> str:
    return f"{result.name}: {result.message}" if isinstance(result, Raised) else result.text
