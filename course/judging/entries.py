"""An answer that is a value with several entries: each wrong one is named, and each with its own mistake.

What a wrong entry means is said by the exercise's `entries`, and by those rows of `wrong` all of whose mistakes the
attempt makes too.
"""

import ast
import re
from collections.abc import Hashable

from course.judging.comparison import OPPOSITE_ORDER, Comparison
from course.judging.exercises import Exercise
from course.judging.plain import Plain, Raised, plain

WITH_A_COMMA = "({0}) is the number {0}: a shape with one dimension is written with a comma, ({0},)."
_NAMES_IT = re.compile(r"(?:In|At|Entry|Entries|Number) \d")
_PREFIX = re.compile(r"^(?:engine|torch|np|numpy)\.")
# By place (from 1 on, or a key, or an element): what is there; None where an entry is missing.
Slips = dict[Hashable, Plain | None]


def about_entries(
    exercise: Exercise, got: Plain, expected: Plain, wrong: list[tuple[Plain, str]], compare: Comparison
) -> str:
    """Explain the wrong entries, a line for each mistake; empty where the value has no entries, or not as many."""
    if got.kind != expected.kind or got.kind not in ("list", "set", "dict"):
        return ""
    if got.kind == "list" and len(got.value) != len(expected.value):
        return ""
    read, remarks = _read_kindly(got, expected) if got.kind == "list" else (got, [])
    slips = _slips(read, expected, compare)
    if not slips:
        return "\n".join(["Everything is right except how it is written.", *remarks])
    said, left = _said(exercise, slips, expected, wrong, compare)
    if not said and got.kind == "list":
        whole = compare.about([(read, expected)], is_value=True)
        if whole == OPPOSITE_ORDER:
            return "\n".join([whole, *remarks])
    for place in list(left):
        if about := _certain(left[place], place, expected, compare):
            said.setdefault(about, []).append(place)
            del left[place]
    order = list(slips)
    lines = [
        says if got.kind == "set" or _NAMES_IT.match(says) else f"{_name(places)}: {says}"
        for says, places in sorted(said.items(), key=lambda item: min(map(order.index, item[1])))
    ]
    if left and got.kind == "set":
        lines.append(_counted(left, bool(lines)))
    elif left:
        either = " either" if lines else ""
        few = f"{_name(list(left))} {'is' if len(left) == 1 else 'are'} not right{either}."
        lines.append(few if len(left) < max(len(expected.value), 2) else "None of the entries is right yet.")
    return "\n".join([*lines, *remarks])


def share_of_entries(got: Plain | Raised, expected: Plain | Raised, compare: Comparison) -> float:
    """Return the share of a value's entries that are right; of a set, of those that stand in it or should.

    What says the same everywhere is right by chance here and there, and has no share.
    """
    if not isinstance(got, Plain) or not isinstance(expected, Plain) or got.kind != expected.kind:
        return 0.0
    if got.kind == "list" and len(got.value) == len(expected.value):
        if len({part.text for part in got.value}) == 1 < len(got.value):
            return 0.0
        return 1 - len(_slips(_read_kindly(got, expected)[0], expected, compare)) / len(expected.value)
    if got.kind in ("set", "dict"):
        return 1 - len(_slips(got, expected, compare)) / max(len({*got.value, *expected.value}), 1)
    return 0.0


def _slips(got: Plain, expected: Plain, compare: Comparison) -> Slips:
    """Return the entries that are not right."""
    if got.kind == "list" and len(got.value) == len(expected.value):
        pairs = enumerate(zip(got.value, expected.value, strict=True), start=1)
        return {place: mine for place, (mine, theirs) in pairs if not compare.same(mine, theirs)}
    if got.kind == "dict":
        keys = [*expected.value, *(key for key in got.value if key not in expected.value)]
        both = {key: (got.value.get(key), expected.value.get(key)) for key in keys}
        return {key: mine for key, (mine, theirs) in both.items() if not _equal(mine, theirs, compare)}
    if got.kind == "set":
        return {key: plain(key in got.value) for key in sorted(set(got.value) ^ set(expected.value))}
    return {}


def _said(
    exercise: Exercise, slips: Slips, expected: Plain, wrong: list[tuple[Plain, str]], compare: Comparison
) -> tuple[dict[str, list[Hashable]], Slips]:
    """Return the author's sentences, each with its entries; and the entries of which the author says nothing."""
    said: dict[str, list[Hashable]] = {}
    left = dict(slips)
    for place, there in slips.items():
        if says := _meaning(exercise, place, there, expected, compare):
            said.setdefault(says, []).append(place)
            del left[place]
    rows = [(_slips(answer, expected, compare), says) for answer, says in wrong if answer.kind == expected.kind]
    for row, says in sorted(rows, key=lambda pair: -len(pair[0])):  # what explains the most comes first
        if row and all(place in left and _equal(there, left[place], compare) for place, there in row.items()):
            said.setdefault(says, []).extend(row)
            left = {place: there for place, there in left.items() if place not in row}
    return said, left


def _meaning(exercise: Exercise, place: Hashable, there: Plain | None, expected: Plain, compare: Comparison) -> str:
    """Return the author's sentence for what stands at a place; a sentence alone is for whatever has no other.

    Not of what is no answer at all, as a tensor where numbers are asked for: that has a sentence of its own.
    """
    found = [rows for key, rows in exercise.entries.items() if key == place or repr(key) == place]
    rows = found[0] if found else ()
    rows = (rows,) if isinstance(rows, str) else rows
    for row in rows:
        if not isinstance(row, str) and there is not None and compare.same(there, plain(row[0])):
            return row[1]
    if expected.kind != "set" and there is not None and not _alike(there, _parts(expected).get(place)):
        if _certain(there, place, expected, compare):
            return ""
    return next((row for row in rows if isinstance(row, str)), "")


def _certain(there: Plain | None, place: Hashable, expected: Plain, compare: Comparison) -> str:
    """Say of a wrong entry what can be said without knowing the exercise and without giving it away."""
    if expected.kind == "set":
        return ""
    parts = _parts(expected)
    if there is None:
        return "it is missing."
    if place not in parts:
        return "it is one too many."
    theirs = parts[place]
    if there.kind != theirs.kind and there.kind in {part.kind for part in parts.values()}:
        return ""  # of which kind it is, is a part of the question
    if there.kind == "list" and len(there.value) != len(theirs.value):
        return ""
    about = compare.about([(there, theirs)], is_value=True)
    about = about.removeprefix("It gives ").removeprefix("It is ")  # of several entries, too
    return "" if about.startswith("Entry ") else about if about.startswith("None") else about[:1].lower() + about[1:]


def _parts(expected: Plain) -> dict[Hashable, Plain]:
    return dict(enumerate(expected.value, start=1)) if expected.kind == "list" else expected.value


def _alike(one: Plain, other: Plain | None) -> bool:
    return other is not None and (one.kind == other.kind or {one.kind, other.kind} <= {"int", "float", "bool"})


def _equal(one: Plain | None, other: Plain | None, compare: Comparison) -> bool:
    return one is other if one is None or other is None else compare.same(one, other)


def _name(places: list[Hashable]) -> str:
    names = [str(place) for place in places]
    return f"Entries {', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else f"Entry {names[0]}"


def _counted(left: Slips, more: bool) -> str:
    """Count a set's elements that are too many and that are missing: which ones is the question."""
    extra = sum(there is not None and there.value is True for there in left.values())
    missing = len(left) - extra
    if not more:
        return f"It has {extra} too many, and {missing} missing."
    counts = [(extra, "too many"), (missing, "missing")]
    said = [f"{count} {'is' if count == 1 else 'are'} {word}" for count, word in counts if count]
    return f"Besides, {' and '.join(said)}."


def as_meant(got: Plain | Raised, expected: Plain | Raised) -> Plain | Raised:
    """Read a list of entries as it was meant, where it differs only in how it is written: that is no mistake.

    A shape in quotes, "Error" for "error", a dtype or "torch.float32" for its name, a tensor with one number for the
    number, a tensor with as many numbers for their list (or lists), 8.0 for a count of 8 (a division gives that).
    """
    if not isinstance(got, Plain) or not isinstance(expected, Plain) or expected.kind != "list":
        return got
    kinds = {part.kind for part in expected.value}
    texts = [part.value for part in expected.value if part.kind == "str"]
    numbers = kinds <= {"int", "float"}
    if got.kind in ("tensor", "array") and numbers and got.value.shape == (len(expected.value),):
        got = Plain("list", [plain(number) for number in got.value.tolist()], got.text)
    rows = expected.value if kinds == {"list"} else []
    if (
        got.kind in ("tensor", "array")
        and rows
        and all(part.kind in ("int", "float") for row in rows for part in row.value)
    ):
        got = plain(got.value.tolist())._replace(text=got.text)
    if got.kind != "list":
        return got
    entries = []
    for mine in got.value:
        read = mine
        if "list" in kinds and mine.kind == "str" and (values := _in_quotes(mine.value)) is not None:
            read = plain(values)
        elif texts and mine.kind in ("str", "dtype"):
            read = plain(_plainly(mine.value, texts))
        elif numbers and mine.kind in ("tensor", "array") and mine.value.size == 1:
            read = plain(mine.value.item())
        if kinds == {"int"} and read.kind == "float" and float(read.value).is_integer():
            read = plain(int(read.value))
        entries.append(read)
    return got._replace(value=entries)


def _read_kindly(got: Plain, expected: Plain) -> tuple[Plain, list[str]]:
    """Read a list with shapes where numbers stand that lack a comma; and return what to say about that."""
    kinds = {part.kind for part in expected.value}
    shapes = "list" in kinds and not kinds & {"int", "float"}
    entries, remarks = [], dict[str, None]()
    for mine in got.value:
        read = mine
        if shapes and mine.kind == "int":
            read = Plain("list", [mine], f"({mine.text},)")
            remarks[WITH_A_COMMA.format(mine.text)] = None
        entries.append(read)
    return got._replace(value=entries), list(remarks)


def _in_quotes(text: str) -> tuple | list | None:
    """Return the shape that a text holds."""
    try:
        found = ast.literal_eval(text.strip())
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, tuple | list) else None


def _plainly(text: str, texts: list[str]) -> str:
    """Strip a text of what does not matter: blanks, quotes, a library's name, and case where all are lower-case."""
    text = _PREFIX.sub("", text.strip().strip("'\""))
    return text.lower() if all(other == other.lower() for other in texts) else text
