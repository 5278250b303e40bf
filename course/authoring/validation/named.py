"""Numbers in prose that name their output, so that nobody has to copy them.

A cell of code has a tag, `out-loss` say. In a text, a sentence says {out}`loss`; in the notebook that is the number,
and a comment that no reader sees: `0.25<!-- out: loss -->`. {out}`loss.2` is the second number that the cell shows,
{out}`loss.-1` the last, and {out}`loss.2:.1f` the second in one of Python's formats. Either spelling becomes the other
and comes back.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from course.base.notebooks import joined

TAG = "out-"
_NAME = r"(?P<{0}>[\w-]+)(?:\.(?P<{0}_place>-?\d+))?(?::(?P<{0}_spec>[^`>]+?))?"
_NUMBER = r"-?(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?%?"
# Source that is shown word for word comes first, and is left alone.
_ANY = re.compile(
    r"(?ms)^(?P<fence>```+|~~~+).*?(?:^(?P=fence)|\Z)|``.*?``"
    rf"|\{{out\}}`{_NAME.format('role')}`"
    rf"|(?:(?<![\w.])(?P<said>{_NUMBER}))?<!-- out: {_NAME.format('mark')} -->"
)
_SHOWN = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:[,_]\d{3})+(?![\d.,_]*\w)|\d+(?:\.\d*)?(?:e[+-]?\d+)?)(?!\w)")


def roles(source: str) -> str:
    """Return a Markdown cell as it is in the text: {out} in place of each number with a name."""
    return _ANY.sub(lambda match: f"{{out}}`{_key(match, 'mark')}`" if match["mark"] else match[0], source)


def filled(source: str, known: Mapping[str, list[str]]) -> str:
    """Fill a Markdown cell with the numbers that it names. Raises ValueError where one is missing."""

    def number(match: re.Match[str]) -> str:
        kind = "role" if match["role"] else "mark"
        return f"{_number(match, kind, known)}<!-- out: {_key(match, kind)} -->" if match[kind] else match[0]

    return _ANY.sub(number, source)


def numbers_of(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the numbers that each cell with a name shows, as written. Raises ValueError for a name used twice."""
    known: dict[str, list[str]] = {}
    for cell in cells:
        tags = cell.get("metadata", {}).get("tags", []) if cell["cell_type"] == "code" else []
        for name in [tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)]:
            if name in known:
                raise ValueError(f"two cells have the tag {TAG}{name}")
            text = "\n".join(_texts(cell.get("outputs", [])))
            known[name] = [match[0].rstrip(".") for match in _SHOWN.finditer(text)]
    return known


def _texts(outputs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for output in outputs:
        yield joined(output.get("text", ""))
        yield joined(output.get("data", {}).get("text/plain", ""))


def _key(match: re.Match[str], kind: str) -> str:
    place, spec = match[f"{kind}_place"], match[f"{kind}_spec"]
    return match[kind] + f".{place}" * bool(place) + f":{spec}" * bool(spec)


def _number(match: re.Match[str], kind: str, known: Mapping[str, list[str]]) -> str:
    name, place, spec = match[kind], match[f"{kind}_place"], match[f"{kind}_spec"]
    if name not in known:
        raise ValueError(f"no cell of code has the tag {TAG}{name}")
    numbers = known[name]
    if place is None and len(numbers) > 1:
        raise ValueError(f"the cell {TAG}{name} shows {len(numbers)} numbers: say which, as in {{out}}`{name}.1`")
    at = int(place or 1)
    if not 1 <= abs(at) <= len(numbers):
        raise ValueError(f"the cell {TAG}{name} shows {len(numbers) or 'no'} number{'s' * (len(numbers) != 1)}")
    shown = numbers[at - (at > 0)]
    if not spec:
        return shown
    plain = shown.replace(",", "").replace("_", "")
    try:
        made = format(int(plain) if re.fullmatch(r"-?\d+", plain) else float(plain), spec)
    except ValueError:
        raise ValueError(f"{spec!r} is no format of Python's for {plain}") from None
    if not re.fullmatch(_NUMBER, made):
        raise ValueError(f"{spec!r} makes {made!r} of {plain}, which is no number")
    return made


def wrong(source: str, known: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield a sentence about each named number that differs from what its cell shows."""
    for match in _ANY.finditer(source):
        kind = "role" if match["role"] else "mark"
        if not match[kind]:
            continue
        try:
            number = _number(match, kind, known)
        except ValueError as error:
            yield f"{{out}}`{_key(match, kind)}`: {error}"
            continue
        if match["said"] != number:
            here = f"{match['said']} here is {number}" if match["said"] else f"the number {number} is not written"
            yield f"{{out}}`{_key(match, kind)}`: {here} (--update writes it)"
