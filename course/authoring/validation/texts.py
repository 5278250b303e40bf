"""Numbers in a notebook's prose that are in no output nearby, nor in the code there.

Prose is what paragraphs, lists and tables say, without headings, links, code and formulas. Decimals count, and whole
numbers above ten. Nearby means five cells of code above and five below: somewhere in a lesson, most small numbers
occur. A number that is right and is not shown there is marked, in a comment of its Markdown cell that says why:

    <!-- numbers: 2023 0.058: by PyTorch's documentation -->

Where Jupytext pairs the notebook with a text, the text is read, so that a build may leave the comments out.
"""

import re
from collections.abc import Iterator
from typing import Any

import jupytext
from jupytext.config import load_jupytext_config
from markdown_it.token import Token

from course.authoring.validation import named
from course.authoring.validation.sources import MARK, MARKDOWN, Found, Source, TextLine, texts_of, unmarked
from course.base.notebooks import joined

LEAST = 10  # numbers up to this one are counted on fingers
REACH = 5  # cells of code, above and below
_DIGITS = r"(?<![\w.#])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|\.\d)"
_NUMBER = re.compile(rf"{_DIGITS}(?P<percent>\s?(?:%|percent))?")
_KNOWN = re.compile(r"(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d*)?(?:e[+-]?\d+)?", re.IGNORECASE)
# What is not a result: addresses, parts of this and other texts, versions, years, reading times.
_ELSEWHERE = re.compile(
    r"\b(?:[a-z]+://\S+"
    r"|(?:lessons?|exercises?|chapters?|sections?|figures?|tables?|pages?|lines?|cells?|versions?|python|pytorch)"
    r"\s+\d[\d.]*(?:(?:,|,? and|,? or|,? to|–|-)\s*\d[\d.]*)*"
    r"|(?:since|before|in|until|after|of|from)\s+(?:1[5-9]|20)\d\d\b|time:?\s+\d+ minutes)",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"\b(?:about|some|nearly|roughly|around|almost|approximately|over|under) $|~\s?$", re.IGNORECASE)


def as_shown(one: Source) -> Found:
    """Check that each number that names its output is what the cell shows."""
    try:
        known = named.numbers_of(one.cells)
    except ValueError as error:
        yield None, str(error)
        return
    yield from ((at, says) for at, source in one.of("markdown") for says in named.wrong(source, known))


def numbers_shown(one: Source) -> Found:
    """Check that each number in the prose is in an output or code nearby, or is marked, and that each mark is needed.

    If no cell was run, there is no output for a number to be in.
    """
    if not one.ran:
        return
    shown = [{_value(number) for text in texts for number in _KNOWN.findall(text)} for texts in _shown(one)]
    for place, above, source in _prose(one):
        known = set[float]().union(*shown[max(0, above - REACH) : above + REACH])
        marked = [number for mark in MARK.finditer(source) for number in re.findall(_DIGITS, mark["numbers"])]
        marks = {_value(number): number for number in marked}
        said = set()
        for line, before, number, percent in _numbers(unmarked(named.roles(source))):
            value = _value(number)
            said.add(value)
            if value not in marks and not _stands(number, value, known, percent, bool(_ABOUT.search(before))):
                at = TextLine(place + line) if isinstance(place, TextLine) and place else place
                yield at, f"{number} stands in no output near by: ...{before[-40:]}{number}"
        for value in marks.keys() - said:
            yield place, f"{marks[value]} is marked, and does not stand there"


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("_", ""))


def _stands(number: str, value: float, known: set[float], percent: bool, about: bool) -> bool:
    """Tell whether a number in the outputs is this one, rounded as in the prose."""
    decimals = re.fullmatch(r"[\d,]+\.(\d+)", number)
    if value in known or (percent and any(round(100 * one, 9) == value for one in known)):
        return True
    if "e" in number or not (decimals or about or percent):
        return False
    half = 0.5000001 * 10 ** -len(decimals[1] if decimals else "")
    return any(abs(one - value) <= half or (percent and abs(100 * one - value) <= half) for one in known)


def _shown(one: Source) -> list[list[str]]:
    """List the source and the outputs of each cell of code, and the code in the Markdown below it."""
    found: list[list[str]] = []
    for cell in one.cells:
        if cell["cell_type"] == "code":
            outputs = cell.get("outputs", [])
            found.append([joined(cell["source"]), *(text for output in outputs for text in texts_of(output))])
        elif cell["cell_type"] == "markdown":
            tokens = MARKDOWN.parse(joined(cell["source"]))
            if fences := [token.content for token in tokens if token.type in ("fence", "code_block")]:
                found = found or [[]]
                found[-1] += fences
    return found


def _prose(one: Source) -> Iterator[tuple[Any, int, str]]:
    """Yield the Markdown cells, with the line of the text where there is one, else their place in the notebook.

    And with the number of cells of code above.
    """
    if one.text is None:
        kinds = [cell["cell_type"] for cell in one.cells]
        yield from ((at, kinds[:at].count("code"), source) for at, source in one.of("markdown"))
        return
    path, how = one.text
    try:
        cells = jupytext.read(path, fmt=how, config=load_jupytext_config(str(one.path.resolve()))).cells
        lines = path.read_text(encoding="utf-8").splitlines()
    except Exception:  # the check `text` reports it
        return
    at = above = 0
    for cell in cells:
        own = cell.source.splitlines()
        places = (n for n in range(at, len(lines) - len(own) + 1) if own and lines[n : n + len(own)] == own)
        found = next(places, None)
        at = at if found is None else found + len(own)
        if cell.cell_type == "markdown":
            yield TextLine(0 if found is None else found + 1), above, cell.source
        above += cell.cell_type == "code"


def _numbers(source: str) -> Iterator[tuple[int, str, str, bool]]:
    """Yield each number in a cell's prose: its line, what stands before it, itself, and whether it is a percentage."""
    tokens = MARKDOWN.parse(source)
    lines = source.splitlines()
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type != "inline" or (before and before.type == "heading_open"):
            continue
        text = _ELSEWHERE.sub(lambda m: re.sub(r"\d", "_", m[0]), re.sub(r"\$[^$]*\$", " ", _words(token)))
        first, end = token.map or [0, len(lines)]
        for match in _NUMBER.finditer(text):
            number = match[0].removesuffix(match["percent"] or "")
            if "." in number or "e" in number or _value(number) > LEAST:
                there = (n for n in range(first, end) if re.search(rf"(?<!\d){re.escape(number)}", lines[n]))
                yield next(there, first), text[: match.start()], number, bool(match["percent"])


def _words(token: Token) -> str:
    """Return the words of an inline token, without links, pictures and code."""
    parts, inside = [], 0
    for child in token.children or ():
        inside += (child.type == "link_open") - (child.type == "link_close")
        if child.type == "text" and not inside:
            parts.append(child.content)
        elif child.type in ("code_inline", "image", "softbreak", "hardbreak") or (child.type == "text" and inside):
            parts.append(" ")
    return "".join(parts)
