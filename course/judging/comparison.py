"""When two values count as the same, and what can be said for certain where they are not."""

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np

from course.judging.exercises import ANSWER
from course.judging.plain import Plain, Raised, Seen, article, as_float

RETURNS_NONE = "It gives None. Is a `return` missing?"
OPPOSITE_ORDER = "The entries are right, in the opposite order."
MOST_LINES = 6  # of numbers, in one message
_NUMBERS = ("int", "float", "bool")
_PLACES = ("whole numbers", "one decimal place", "2 decimal places", "3 decimal places")
Pair = tuple[Plain, Plain]  # what came, and what should have come


class Comparison:
    """Compares to a tolerance, relative to what should have come."""

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
            is_ = as_float(is_)
        if (is_.kind, is_.shape, is_.dtype, is_.device) != (should.kind, should.shape, should.dtype, should.device):
            return False
        if is_.kind in ("tensor", "array", "float", "complex"):
            return self.close(is_.value, should.value)
        if is_.kind == "list":
            return len(is_.value) == len(should.value) and all(map(self.same, is_.value, should.value))
        if is_.kind in ("dict", "module"):
            return is_.value.keys() == should.value.keys() and all(
                self.same(part, should.value[key]) for key, part in is_.value.items()
            )
        return bool(is_.value == should.value)

    def close(self, is_: object, should: object) -> bool:
        is_, should = np.asarray(is_), np.asarray(should)
        if is_.dtype.kind not in "fc" and should.dtype.kind not in "fc":
            return bool(np.array_equal(is_, should))
        with np.errstate(all="ignore"):  # what is close to inf in float16 is no warning to the learner
            return bool(np.allclose(is_, should, rtol=self.tolerance, atol=self.tolerance / 100, equal_nan=True))

    def left_behind(self, is_: Seen, should: Seen) -> list[tuple[str, Plain, Plain, bool]]:
        """Return what the arguments hold afterwards and should not: name, both values, whether it was to stay."""
        missing = Plain("nothing", None, "nothing")
        found = []
        for key, theirs in should.after.items():
            mine, before = is_.after.get(key, missing), should.before.get(key, missing)
            if not self.same(mine, theirs):
                found.append((key.format(*is_.names), mine, theirs, self.same(before, theirs)))
        return found

    def notice(self, got: list[Seen], right: list[Seen]) -> str:
        """Return in a sentence what is certain about the first difference; empty where the rows say it all."""
        steps = list(zip(got, right, strict=False))
        place = next(number for number, pair in enumerate(steps) if not self.seen(*pair))
        (is_, should), others = steps[place], steps[:place] + steps[place + 1 :]
        mine, theirs = is_.result, should.result
        if isinstance(mine, Raised) and isinstance(theirs, Raised):
            return ""
        if isinstance(mine, Raised):
            return _about_an_error(mine)
        if isinstance(theirs, Raised):
            return "It should have refused this with an error."
        left = self.left_behind(is_, should)
        names = _together([name for name, _, _, _ in left])
        touched = all(kept for _, _, _, kept in left)
        if self.same(mine, theirs) and touched:
            return f"The result is right. But it changes {names}, which it should not."
        if self.same(mine, theirs):
            return f"The result is right. What it leaves behind in {names} is not."
        more = [
            (one.result, other.result)
            for one, other in others
            if isinstance(one.result, Plain) and isinstance(other.result, Plain)
        ]
        if is_.gave == "None" and theirs.kind == "list":
            return RETURNS_NONE
        about = self.about([(mine, theirs), *more], is_value=is_.shown == ANSWER)
        if (
            not is_.direct and is_.shown != ANSWER and " text, where " in about
        ):  # the helper found no other word for what it saw
            about = ""
        return about or (f"It changes {names}, which it should not." if left and touched else "")

    def about(self, pairs: list[Pair], is_value: bool = False) -> str:
        """Return what is certain about the first pair, where nothing in the other steps speaks against it.

        `is_value`: the answer is a value, and nothing may be said by which it could be worked out.
        """
        got, expected = pairs[0]
        if got.kind == "NoneType":
            return "It is None. (`print` shows a value, and gives None.)" if is_value else RETURNS_NONE
        if got.kind == "function":
            return "It gives a function, and not its result. Are the parentheses missing?"
        if got.kind == "tensor" and expected.kind in _NUMBERS and got.value.size != 1:
            return f"It gives a tensor of {got.value.size} numbers, where one plain number is asked for."
        if got.kind == "tensor" and expected.kind in _NUMBERS:
            other = not is_value and not self.close(got.value.item(), expected.value)
            more = " And the number in it is not the right one." if other else ""
            return f"It gives a tensor, where a plain number is asked for: `.item()` takes the number out.{more}"
        if got.kind in _NUMBERS and expected.kind == "tensor":
            return "It gives a plain number, where a tensor is asked for."
        if (got.kind, expected.kind) == ("float", "int"):
            return "It gives a float, where an integer is asked for."
        if (got.kind, expected.kind) == ("int", "float"):
            got = as_float(got)
        if got.kind != expected.kind:
            return f"It gives {article(got.kind)}, where {article(expected.kind)} is asked for."
        if got.kind in ("tensor", "array"):
            return self._about_arrays(pairs)
        if got.kind == "list":
            return self._about_lists(pairs, is_value)
        if got.kind == "set":
            mine, asked = set(got.value), set(expected.value)
            return f"It has {len(mine - asked)} too many, and {len(asked - mine)} missing."
        if got.kind == "module":
            wrong = [name for name, part in expected.value.items() if not self.same(got.value.get(name, got), part)]
            return f"It differs in {_together(wrong)}." if wrong else ""
        if got.kind == "float":
            return self._about_numbers(pairs, "It", is_value)
        return ""

    def _about_lists(self, pairs: list[Pair], is_value: bool) -> str:
        got, expected = pairs[0]
        if len(got.value) != len(expected.value):
            has = "1 entry" if len(got.value) == 1 else f"{len(got.value)} entries"
            are = "1 is" if len(expected.value) == 1 else f"{len(expected.value)} are"
            return f"It has {has}, and {are} asked for."
        if self._hold(pairs, self._reversed) and self._all_different(expected):
            return OPPOSITE_ORDER
        if self._hold(pairs, self._negative) and len(expected.value) > 1:
            return "Every sign is the wrong way round; the rest is right."
        number, entry = next(
            (n, p) for n, p in enumerate(zip(got.value, expected.value, strict=True)) if not self.same(*p)
        )
        if number and not is_value and entry[0].kind in ("NoneType", "str"):  # what a check found out
            return ""
        if entry[0].kind == "NoneType" and entry[1].kind != "NoneType":
            return f"Entry {number + 1} is None, where {article(entry[1].kind)} is asked for."
        lists = [(one, other) for one, other in pairs[1:] if one.kind == other.kind == "list"]
        there = [
            (one.value[number], other.value[number])
            for one, other in lists
            if number < min(len(one.value), len(other.value))
        ]
        about = self.about([entry, *there], is_value)
        return f"Entry {number + 1}: {about[0].lower()}{about[1:]}" if about else ""

    def _hold(self, pairs: list[Pair], relation: Callable[[Plain, Plain], bool]) -> bool:
        """Tell whether a relation holds in every step."""
        return all(relation(*pair) for pair in pairs)

    def _reversed(self, got: Plain, expected: Plain) -> bool:
        if got.kind != "list" or expected.kind != "list" or len(got.value) != len(expected.value):
            return False
        return all(map(self.same, reversed(got.value), expected.value))

    def _negative(self, got: Plain, expected: Plain) -> bool:
        """Tell whether two lists hold the same numbers, none of them 0, with opposite signs."""
        if got.kind != "list" or expected.kind != "list" or len(got.value) != len(expected.value):
            return False
        entries = [_values(*pair) for pair in zip(got.value, expected.value, strict=True)]
        return all(pair is not None and pair[1].all() and self.close(-pair[0], pair[1]) for pair in entries)

    def _all_different(self, asked: Plain) -> bool:
        """Tell whether no two entries are the same: else their order may be right by chance."""
        entries = asked.value
        return not any(self.same(one, other) for n, one in enumerate(entries) for other in entries[:n])

    def _transposed(self, got: Plain, expected: Plain) -> bool:
        if got.kind != expected.kind or got.kind not in ("tensor", "array") or got.value.ndim != 2:
            return False
        return got.shape == expected.shape[::-1] and self.close(got.value.T, expected.value)

    def _about_arrays(self, pairs: list[Pair]) -> str:
        got, expected = pairs[0]
        other = got.shape != expected.shape or not self.close(got.value, expected.value)
        if other and self._hold(pairs, self._transposed):
            return "It is transposed: rows and columns have changed places."
        if got.shape != expected.shape:
            if got.value.size == expected.value.size and self.close(got.value.ravel(), expected.value.ravel()):
                return f"The numbers are right, in the shape {got.shape} and not {expected.shape}."
            return f"The shape is {got.shape}, and {expected.shape} is asked for."
        if got.device != expected.device:
            return f"It is on the device {got.device}, and should be on {expected.device}."
        if got.dtype != expected.dtype:
            right = "The" if other else "The values are right, but the"
            return f"{right} dtype is {got.dtype}, and {expected.dtype} is asked for."
        if got.value.dtype == bool:
            both = any(expected.value.any() and not expected.value.all() for _, expected in pairs)
            return "True and False have changed places." if both and self._hold(pairs, _opposite) else ""
        return self._about_numbers(pairs, "Each number")

    def _about_numbers(self, pairs: list[Pair], each: str, is_value: bool = False) -> str:
        values = [_values(*pair) for pair in pairs]
        if any(value is None for value in values):
            return ""
        got = np.concatenate([value[0] for value in values if value])
        expected = np.concatenate([value[1] for value in values if value])
        if self.close(-got, expected):
            return "The sign is the wrong way round; the rest is right."
        filled = expected != 0
        if is_value or not np.isfinite(got).all() or len(np.unique(expected[filled])) < 2:
            return ""  # any one number is some times another
        if cut := self._less_exact(got, expected):
            return cut
        factor = float((got[filled] / expected[filled]).flat[0])
        if factor and self.close(got, factor * expected):
            return f"{each} is {factor:.4g} times what it should be."
        return ""

    def _less_exact(self, got: np.ndarray, expected: np.ndarray) -> str:
        """Return what to say where the numbers are the right ones with digits lost."""
        if not np.isfinite(expected).all() or len(np.unique(got)) < 2:
            return ""
        for places in range(4):
            if self.close(got, np.round(expected, places)):
                return f"Right, but rounded to {_PLACES[places]}. Keep all the digits."
        cut = self.close(got, np.trunc(expected)) or self.close(got, np.floor(expected))
        return "Right, but what stands after the point is cut off. Keep it." if cut else ""

    def rows(self, is_: Seen, should: Seen) -> Iterator[tuple[str, str]]:
        """Return what to show of a step that is not right: at most `MOST_LINES` lines of numbers."""
        yield "Input", "" if is_.shown == ANSWER else is_.shown
        left = MOST_LINES
        if not self.result(is_.result, should.result):
            if is_.shown == ANSWER:  # what was expected would be the solution
                yield "Got", _cut(_told(is_.result), MOST_LINES)
            else:
                rows = list(self._beside(is_.result, should.result))
                left -= sum(_lines(text) for _, text in rows)
                yield from rows
        if isinstance(is_.result, Raised):
            return
        for name, mine, theirs, _ in self.left_behind(is_, should):
            rows = [(f"{label}, in {name} afterwards", text) for label, text in self._beside(mine, theirs)]
            left -= sum(_lines(text) for _, text in rows)
            if left < 0:
                return
            yield from rows

    def _beside(self, got: Plain | Raised, expected: Plain | Raised) -> Iterator[tuple[str, str]]:
        """Put what came beside what should have come; large values from where they begin to differ."""
        mine, theirs = _told(got), _told(expected)
        if isinstance(got, Plain) and isinstance(expected, Plain) and got.tracked != expected.tracked:
            mine, theirs = (f"{text}, requires_grad={v.tracked}" for text, v in ((mine, got), (theirs, expected)))
        if _lines(mine) + _lines(theirs) <= MOST_LINES:
            yield from (("Got", mine), ("Expected", theirs))
            return
        if isinstance(got, Plain) and isinstance(expected, Plain):
            if got.kind == expected.kind == "list" and len(got.value) == len(expected.value):
                pairs = enumerate(zip(got.value, expected.value, strict=True), start=1)
                number, pair = next((n, pair) for n, pair in pairs if not self.same(*pair))
                yield from ((f"{label}, in entry {number}", text) for label, text in self._beside(*pair))
                return
            if got.kind == expected.kind in ("dict", "module") and got.value.keys() == expected.value.keys():
                name = next(name for name, part in got.value.items() if not self.same(part, expected.value[name]))
                rows = self._beside(got.value[name], expected.value[name])
                yield from ((f"{label}, in {name}", text) for label, text in rows)
                return
        left, right = mine.splitlines(), theirs.splitlines()
        width = max(map(len, left), default=0)
        if max(_lines(mine), _lines(theirs)) <= MOST_LINES and width + max(map(len, right), default=0) < 100:
            beside = "\n".join(f"{a:<{width}}   {b}".rstrip() for a, b in zip_longest(left, right, fillvalue=""))
            yield "Got (left) and expected (right)", beside
        elif isinstance(got, Plain) and isinstance(expected, Plain) and got.kind in ("tensor", "array"):
            yield from self._differing(got, expected)
        else:
            yield from (("Got", _cut(mine, 3)), ("Expected", _cut(theirs, 3)))

    def _differing(self, got: Plain, expected: Plain) -> Iterator[tuple[str, str]]:
        if got.shape != expected.shape or expected.kind != got.kind or not got.shape:
            yield from (("Got", _cut(got.text, 3)), ("Expected", _cut(expected.text, 3)))
            return
        with np.errstate(all="ignore"):
            close = np.isclose(got.value, expected.value, self.tolerance, self.tolerance / 100, True)
        places = np.argwhere(~close)
        first = [tuple(map(int, place)) for place in places[:3]]
        count = f"{len(places):,} of {got.value.size:,} numbers differ" if len(places) else "the numbers are the same"
        for label, one in (("Got", got), ("Expected", expected)):
            lines = [f"at {list(place)}: {one.value[place]:.6g}" for place in first]
            yield label, "\n".join([*lines, f"{one.text.splitlines()[-1]}; {count}"])


def _about_an_error(error: Raised) -> str:
    if error.at:
        return "It stopped with an error."
    if error.name == "TypeError" and "positional argument" in error.message:
        return "The check calls it with other arguments than it takes. Keep the function's first line as it was given."
    if error.gave == "None" or "NoneType" in error.message:
        return RETURNS_NONE
    if error.gave:  # outside of the learner's lines
        why = (
            f" ({error.name}: {error.message.partition('. ')[0].rstrip('.')}.)" if error.name == "RuntimeError" else ""
        )
        return f"It ran to its end and returned {error.gave}, which the check cannot use.{why}"
    return "It stopped with an error."


def _values(got: Plain, expected: Plain) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the numbers of a pair, where they can be compared."""
    if got.shape != expected.shape or {got.kind, expected.kind} - {"tensor", "array", *_NUMBERS}:
        return None
    try:
        return np.asarray(got.value, float).ravel(), np.asarray(expected.value, float).ravel()
    except (TypeError, ValueError, OverflowError):
        return None


def _opposite(got: Plain, expected: Plain) -> bool:
    return got.dtype == expected.dtype == "bool" and got.shape == expected.shape and (got.value != expected.value).all()


def _together(names: list[str]) -> str:
    """List names in a sentence; many are counted."""
    names = names if len(names) < 4 else [*names[:2], f"{len(names) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lines(text: str) -> int:
    return sum(not line.startswith("shape ") for line in text.splitlines())


def _cut(text: str, most: int) -> str:
    """Return the first lines of a text, and the one that tells the shape."""
    lines = text.splitlines()
    if _lines(text) <= most:
        return text
    shape = [line for line in lines[most:] if line.startswith("shape ")]
    return "\n".join([*lines[: most - 1], "...", *shape])


def _told(result: Plain | Raised) -> str:
    if isinstance(result, Raised):
        return result.gave or f"{result.name}: {result.message}"
    return result.text
