"""Compares an attempt with the oracle, and finds words for the difference.

Everything here runs in a fresh process (`course.process.worker`): whatever a learner has defined or changed in a
notebook, the engine that judges is as it was written.
"""

import builtins
import functools
from ast import literal_eval
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from course.judging import slips
from course.judging.comparison import Comparison
from course.judging.entries import about_entries, as_meant, share_of_entries
from course.judging.exercises import ANSWER, CORRECT, NOT_ATTEMPTED, NOT_YET, Did, Exercise, Trial
from course.judging.plain import Plain, Raised, Seen, article, nameless, plain
from course.judging.running import in_silence, run
from course.judging.sources import discarded

MOST_OF_IT = 2 / 3  # of the steps, for a part of the points


class CheckFailed(Exception):
    """A check's own mistake: a step fails with the right answer, and does not name the error as what is asked for."""


class Verdict(NamedTuple):
    """The answer to an attempt: what to say, and the rows of a table (input, got, expected)."""

    state: str
    message: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    at: tuple[str, int] | None = None  # the file and the line of the learner's code that an error came from


class Tried(NamedTuple):
    """An attempt's outcome: what is compared, and no more."""

    kind: str
    seen: list[Seen] | None  # None where a function is asked for, and this is none
    hidden_names: list[str]  # Python's own that the attempt's surroundings use for something else
    remembers: str = ""  # what is known about a function that goes on with what its last call left


class Expected(NamedTuple):
    """The oracle's outcome, and that of each wrong answer with its sentence."""

    right: list[Seen]
    wrong: list[tuple[list[Seen], str]]


def judge(exercise: Exercise, attempt: Any, hidden: bool = False, source: str = "") -> Verdict:
    """Run the trial with the oracle, the wrong answers and the attempt, in this order, and compare.

    `source`: the cell that the attempt comes from, where it is known. Raises CheckFailed.
    """
    should = expected(exercise, hidden)
    came = tried(trial_of(exercise, hidden), attempt, callable(exercise.answer))
    return compared(exercise, came, should, hidden, source)


def trial_of(exercise: Exercise, hidden: bool) -> Trial:
    """Return the steps that are asked for."""
    assert not hidden or exercise.hidden, f"{exercise.key} has no hidden steps"
    return functools.partial(_steps, exercise.trial, hidden)


def _steps(trial: Trial, hidden: bool, attempt: Any) -> Iterator[tuple]:
    return (step for step in trial(attempt) if hidden != bool(step[0]))


def expected(exercise: Exercise, hidden: bool = False) -> Expected:
    """Run the trial with the oracle and with the wrong answers. Raises CheckFailed."""
    trial = trial_of(exercise, hidden)
    with in_silence():
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
    own = getattr(attempt, "__globals__", {})
    names = [name for name, value in own.items() if name.isalpha() and getattr(builtins, name, value) is not value]
    before = _memory(attempt)
    seen = run(trial, attempt)
    changed = [says for name, (held, says) in _memory(attempt).items() if before.get(name, (held, ""))[0] != held]
    return Tried("", seen, names, changed[0] if changed else "")


def _memory(attempt: Any) -> dict[str, tuple[Any, str]]:
    """Find what a function holds from call to call, by name: how it looks now, and what to say if it changes."""
    held: dict[str, tuple[Any, str]] = {}
    own = getattr(attempt, "__globals__", {})
    used = {name: own[name] for name in _names_used(getattr(attempt, "__code__", None)) if name in own}
    for function in [attempt, *(value for value in used.values() if isinstance(value, FunctionType))]:
        if not isinstance(function, FunctionType):
            continue
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        # The last argument first: there may be fewer names than defaults, where a function's code was replaced.
        both = zip(reversed(names), reversed(function.__defaults__ or ()), strict=False)
        for name, value in [*both, *(function.__kwdefaults__ or {}).items()]:
            held[f"{function.__name__}.{name}"] = (
                _look(value),
                (
                    f"Your function remembers. The default value of `{name}` is made once, when the function is "
                    "defined, and each call goes on with what the last one left in it. Make a new one inside."
                ),
            )
    for name, value in used.items():
        if isinstance(value, list | dict | set):
            held[name] = (
                _look(value),
                (
                    f"Your function remembers. `{name}` stands outside of it, and each call goes on with what the last "
                    "one left there. Make a new one inside the function."
                ),
            )
    return held


def _names_used(code: Any) -> list[str]:
    inner = [part for part in getattr(code, "co_consts", ()) if isinstance(part, CodeType)]
    return [*getattr(code, "co_names", ()), *(name for part in inner for name in _names_used(part))]


def _look(value: Any) -> Any:
    try:
        return (len(value), nameless(value)) if isinstance(value, list | dict | set) else None
    except Exception:  # its parts cannot be shown
        return None


def compared(
    exercise: Exercise, attempt: Tried, should_be: Expected, hidden: bool = False, source: str = ""
) -> Verdict:
    """Give the verdict, from what came of the attempt and of the others."""
    got = attempt.seen
    if got is None:
        kind = article(attempt.kind)
        return Verdict(NOT_YET, f"A function is asked for, and this is {kind}. Are there parentheses after its name?")
    if _holds_ellipsis(got):
        return Verdict(NOT_ATTEMPTED)
    compare, right = Comparison(exercise.tolerance), should_be.right
    got = _as_meant(exercise, got, right)
    first = next((pair for pair in zip(got, right, strict=False) if not compare.seen(*pair)), None)
    lacking = _lacking(exercise, got, right, source)
    if first is None and len(got) == len(right) and not lacking:
        return Verdict(CORRECT)
    if hidden:
        return Verdict(
            NOT_YET, "Right for the inputs that were shown, and wrong for another one. Does it work for every input?"
        )
    if first is None and len(got) == len(right):
        step = next(step for step in lacking.values())
        return Verdict(NOT_YET, "\n".join(lacking), tuple(compare.rows(step, step)))
    is_, should = first or (got[-1], right[len(got) - 1])
    says = (
        discarded(source, _kinds(got))
        or next((says for seen, says in should_be.wrong if compare.all(got, seen)), "")
        or _about_names(is_, attempt.hidden_names)
        or _about_entries(exercise, is_, should, should_be, compare)
        or attempt.remembers
        or "\n".join(lacking)
        or slips.about(exercise.key, got)
        or compare.notice(got, right)
    )
    at = is_.result.at if isinstance(is_.result, Raised) else None
    return Verdict(NOT_YET, says, tuple(compare.rows(is_, should)), at)


def share(exercise: Exercise, attempt: Tried, should_be: Expected) -> float:
    """Return how much of an attempt is right, from 0 to 1: of a value the entries, of a function the steps.

    What gives the same whatever it gets is right by chance, and has no share.
    """
    got, right = attempt.seen, should_be.right
    if not got or not right or _holds_ellipsis(got):
        return 0.0
    compare = Comparison(exercise.tolerance)
    got = _as_meant(exercise, got, right)
    if not callable(exercise.answer):
        return share_of_entries(got[0].result, right[0].result, compare)
    good = [should.result for is_, should in zip(got, right, strict=False) if compare.seen(is_, should)]
    kinds = {result.text if isinstance(result, Plain) else result.name for result in good}
    return len(good) / len(right) if len(kinds) > 1 or len(good) == len(right) else 0.0


def _as_meant(exercise: Exercise, got: list[Seen], right: list[Seen]) -> list[Seen]:
    """Of an answer that is a value: what was meant, however it is written."""
    if callable(exercise.answer):
        return got
    return [is_._replace(result=as_meant(is_.result, should.result)) for is_, should in zip(got, right, strict=False)]


def _lacking(exercise: Exercise, got: list[Seen], right: list[Seen], source: str) -> dict[str, Seen]:
    """Return the sentences of the properties that the attempt lacks, and for each the first step that shows it."""
    lacking: dict[str, Seen] = {}
    for seen, should in zip(got, right, strict=False):
        did = _did(seen, should, source)
        for one in exercise.properties:
            try:
                holds = one.holds(did)
            except Exception:  # it speaks of a result of another kind
                continue
            if not holds:
                lacking.setdefault(one.says, seen)
    order = [one.says for one in exercise.properties]
    return dict(sorted(lacking.items(), key=lambda item: order.index(item[0])))


def _did(seen: Seen, should: Seen, source: str) -> Did:
    result, asked = seen.result, should.result
    held = [{name.replace("{", "").replace("}", ""): _value(part) for name, part in of.items()} for of in seen[2:4]]
    return Did(
        result=_value(result) if isinstance(result, Plain) else None,
        expected=_value(asked) if isinstance(asked, Plain) else None,
        error=result.name if isinstance(result, Raised) else "",
        before=held[0],
        after=held[1],
        shown=should.shown,
        source=source,
        dtype=result.dtype if isinstance(result, Plain) else "",
    )


def _value(part: Plain) -> Any:
    """Return a value for a property's predicate."""
    if part.kind == "list":
        return [_value(one) for one in part.value]
    if part.kind in ("dict", "module"):
        return {_key(name): _value(one) for name, one in part.value.items()}
    return {_key(name) for name in part.value} if part.kind == "set" else part.value


def _key(name: str) -> Any:
    try:
        return literal_eval(name)
    except (ValueError, SyntaxError):
        return name


def _kinds(got: list[Seen]) -> dict[str, str]:
    """Return the kinds of the arguments of the learner's function, by the names it gives them."""
    kinds = {}
    for seen in got:
        for place, name in enumerate(seen.names):
            here = seen.before.get(f"{{{place}}}")
            if here or any(key.startswith(f"{{{place}}}.") for key in seen.before):
                kinds[name] = here.kind if here else "module"
    return kinds


def _about_entries(exercise: Exercise, is_: Seen, should: Seen, should_be: Expected, compare: Comparison) -> str:
    """Of an answer that is a value: what its wrong entries mean."""
    if is_.shown != ANSWER or not isinstance(is_.result, Plain) or not isinstance(should.result, Plain):
        return ""
    wrong = [(seen[0].result, says) for seen, says in should_be.wrong if seen]
    rows = [(result, says) for result, says in wrong if isinstance(result, Plain)]
    return about_entries(exercise, is_.result, should.result, rows, compare)


def _about_names(is_: Seen, names: list[str]) -> str:
    """Write a word about Python's own names that the notebook uses for something else, where that may be why."""
    if not names or not isinstance(is_.result, Raised):
        return ""
    name = names[0]
    return (
        f"`{name}` is a name of your own in this notebook, and hides Python's. Choose another one, and run: del {name}"
    )


def _holds_ellipsis(got: list[Seen]) -> bool:
    return any(isinstance(seen.result, Plain) and _is_ellipsis(seen.result) for seen in got)


def _is_ellipsis(value: Plain) -> bool:
    parts = value.value.values() if value.kind in ("dict", "module") else value.value if value.kind == "list" else ()
    return value.kind == "ellipsis" or any(map(_is_ellipsis, parts))
