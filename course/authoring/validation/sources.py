"""What can be wrong with a notebook before it is run: a table of checks by name.

A check yields the place of a cell, or None for the whole notebook, and what is wrong there. It reads the file's own
JSON, since nbformat would repair some of it first.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import jupytext
import nbformat
from jupytext.config import load_jupytext_config
from markdown_it import MarkdownIt
from markdown_it.token import Token

from course.authoring.validation.named import roles
from course.base.folds import unfolded
from course.base.notebooks import joined

Found = Iterator[tuple[int | None, str]]


class TextLine(int):
    """A line of the text that is paired with the notebook, in place of the place of a cell; 0 if it is unknown."""


MEGABYTE = 1_000_000
MARK = re.compile(r"(?:\n|[ \t])*<!-- numbers:(?P<numbers>[ \d.,e+-]+)(?::[^>]*)?-->", re.IGNORECASE)
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


class Source:
    """A notebook's file, and what several checks need of it."""

    def __init__(self, path: Path, data: dict[str, Any], text: tuple[Path, dict[str, str]] | None) -> None:
        self.path, self.data, self.text = path, data, text
        self.cells: list[dict[str, Any]] = data["cells"]

    def of(self, *kinds: str) -> Iterator[tuple[int, str]]:
        """Return the cells of some kinds: their places and sources."""
        return ((at, joined(cell["source"])) for at, cell in enumerate(self.cells) if cell["cell_type"] in kinds)

    @cached_property
    def tokens(self) -> list[tuple[int, Token]]:
        """Yield everything in the Markdown cells, with the place of its cell."""
        return [(at, token) for at, source in self.of("markdown") for token in _flat(MARKDOWN.parse(source))]

    @cached_property
    def ran(self) -> bool:
        """Tell whether any cell was run before the notebook was stored."""
        return any(cell.get("outputs") or cell.get("execution_count") is not None for cell in self.cells)

    @cached_property
    def shown(self) -> list[tuple[int, str]]:
        """Return each text in an output, and no pictures."""
        return [
            (at, text)
            for at, cell in enumerate(self.cells)
            for output in cell.get("outputs", [])
            for text in texts_of(output)
        ]


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def texts_of(output: dict[str, Any]) -> Iterator[str]:
    if "text" in output:
        yield joined(output["text"])
    yield joined(output.get("evalue", ""))
    yield from map(joined, output.get("traceback", []))
    for kind, data in output.get("data", {}).items():
        if kind.startswith("text/") and isinstance(data, str | list):
            yield re.sub(r"data:[a-z]+/[a-z+.-]+;base64,[A-Za-z0-9+/=\s]+", "", joined(data))


def unmarked(source: str) -> str:
    """Return a Markdown cell without the marks of its numbers (texts.py)."""
    return MARK.sub("", source)


# The checks

# A build may differ from a text: cells with these tags, comments left out, answers folded, lines in links.
NAVIGATION = "navigation"  # the links at a lesson's top
WRITTEN = "written"  # the questions below the exercises
ADDED = {NAVIGATION, WRITTEN}
_LINE = re.compile(r"(?<=\.py)#L\d+")


def _as_written(cells: list[Any]) -> list[tuple[str, str]]:
    """Return the kinds and sources of cells without what a build adds."""
    kept = [(cell["cell_type"], cell["source"]) for cell in cells if not ADDED & {*cell["metadata"].get("tags", [])}]
    return [
        (kind, _LINE.sub("", roles(unfolded(unmarked(source)))).strip() if kind == "markdown" else source.strip())
        for kind, source in kept
    ]


def in_step(one: Source) -> Found:
    """Check that the notebook's cells are those of its Jupytext text."""
    if one.text is None:
        return
    text, how = one.text
    config = load_jupytext_config(str(one.path.resolve()))
    nb = nbformat.from_dict(one.data | {"cells": [c | {"source": joined(c["source"])} for c in one.cells]})
    try:
        theirs = jupytext.read(text, fmt=how, config=config).cells
        # As the text would be read again: some formats keep less of a notebook than others.
        ours = jupytext.reads(jupytext.writes(nb, fmt=how, config=config), fmt=how, config=config).cells
    except Exception as error:  # anything may lie in somebody's folder, and Jupytext has many errors of its own
        yield None, f"Jupytext cannot read {text.name}: {error}"
        return
    both = [_as_written(cells) for cells in (ours, theirs)]
    own = [at for at, cell in enumerate(one.cells) if not ADDED & {*cell["metadata"].get("tags", [])}]
    for number in range(max(map(len, both))):
        if both[0][number : number + 1] != both[1][number : number + 1]:
            first = next(cells[number][1] for cells in both if number < len(cells)).partition("\n")[0]
            place = own[number] if len(own) == len(both[0]) > number else None
            at = number if place is None else place
            yield place, f"from cell {at + 1} on the notebook is not what {text.name} gives: {first[:60]!r}"
            return


def well_formed(one: Source) -> Found:
    """Check that the file follows the schema of its format; names that the schema does not know may pass."""
    # nbformat repairs some of it as it reads, and shows the rest to nobody.
    for error in nbformat.validator.iter_validate(with_ids(one.data), relax_add_props=True):
        where = list(error.absolute_path)
        at = where[1] if where[:1] == ["cells"] and len(where) > 1 and isinstance(where[1], int) else None
        inside = "/".join(map(str, where if at is None else where[2:]))
        yield at, f"{inside or 'it'} is not what the format allows: {error.message[:200]}"


def with_ids(data: dict[str, Any]) -> dict[str, Any]:
    """Copy a notebook, giving each cell an id of its own; nbformat would warn, and repair them at random."""
    given: dict[str, Any] = json.loads(json.dumps(data))
    if (given.get("nbformat", 4), given.get("nbformat_minor", 0)) >= (4, 5):
        known: set[str] = set()
        for at, cell in enumerate(given["cells"]):
            cell["id"] = cell["id"] if cell.get("id") and cell["id"] not in known else f"cell-{at}"
            known.add(cell["id"])
    return given


def run_in_order(one: Source) -> Found:
    """Check that execution counts rise from cell to cell, and that no cell among those that were run is left out."""
    code = [(at, cell.get("execution_count")) for at, cell in enumerate(one.cells)
            if cell["cell_type"] == "code" and joined(cell["source"]).strip()]  # fmt: skip
    ran = [(at, count) for at, count in code if count is not None]
    kept = _longest_rise([count for _, count in ran])
    for place, (at, count) in enumerate(ran):
        above = max((ran[other][1] for other in kept if other < place), default=0)
        below = min((ran[other][1] for other in kept if other > place), default=count)
        if place not in kept and count == above:
            yield at, f"it has the number of a cell above it: [{count}]"
        elif place not in kept and count < above:
            yield at, f"it was run before cells above it: [{count}] stands after [{above}]"
        elif place not in kept:
            yield at, f"it was run after cells below it: [{count}] stands before [{below}]"
    first, last = (ran[0][0], ran[-1][0]) if ran else (0, 0)
    left_out = [at for at, count in code if count is None and first < at < last]
    yield from ((at, "it was not run, and cells below it were") for at in left_out[:1])


def _longest_rise(counts: list[int]) -> set[int]:
    """Return the places of the longest rising sequence; all the other numbers are out of order."""
    best: list[list[int]] = []  # the longest that ends at each place
    for at, count in enumerate(counts):
        before: list[list[int]] = [[], *(best[other] for other in range(at) if counts[other] < count)]
        best.append([*max(before, key=len), at])
    longest: list[int] = max(best, key=len, default=[])
    return set(longest)


def identified(one: Source) -> Found:
    """Check that each cell has an id of its own, from format 4.5 on."""
    if (one.data.get("nbformat", 4), one.data.get("nbformat_minor", 0)) < (4, 5):
        return
    seen: dict[str, int] = {}
    for at, cell in enumerate(one.cells):
        id = cell.get("id")
        if not id:
            yield at, "it has no id"
        elif id in seen:
            yield at, f"it has the id of cell {seen[id] + 1}, {id}"
        else:
            seen[id] = at


# A person's folders, not those that stand for anybody's in documentation and containers.
_ANYBODY = "user|username|you|me|name|yourname|jovyan|runner|vscode|ubuntu|shared|public"
_OWN_FOLDER = re.compile(
    rf"(?<![\w.~/:-])/(?:home|Users)/(?!(?:{_ANYBODY})\b|\W)[\w.-]+(?=/)"
    rf"|\b[A-Z]:\\+Users\\+(?!(?:{_ANYBODY})\b)[\w. -]+(?=\\)",
    re.IGNORECASE,
)


def portable(one: Source) -> Found:
    """Check that no cell and no output names a folder of somebody's computer."""
    return _matches(one, _OWN_FOLDER, lambda found: f"a path of one computer: {found}")


# The tokens that services give out, each with its own first letters.
_SECRET = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60,}|glpat-[\w-]{20}|xox[abpr]-\d[\w-]{20,}|AIza[\w-]{35}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|hf_[A-Za-z]{34}|sk-(?:proj-|ant-)?[A-Za-z0-9_-]{32,}|[sr]k_live_[A-Za-z0-9]{20,}"
    r"|pypi-AgE[\w-]{50,}|npm_[A-Za-z0-9]{36}|SG\.[\w-]{22}\.[\w-]{43})(?![\w-])"
    r"|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"
)


def no_secrets(one: Source) -> Found:
    """Check that no cell and no output holds a token or a private key."""
    return _matches(one, _SECRET, lambda found: f"what looks like a token or a key: {found[:8]}...")


def _matches(one: Source, pattern: re.Pattern[str], says: Callable[[str], str]) -> Found:
    told = set()
    for at, text in [*one.of("code", "markdown", "raw"), *one.shown]:
        for match in pattern.finditer(text):
            if (at, match[0]) not in told:
                told.add((at, match[0]))
                yield at, says(match[0])


def small_outputs(one: Source) -> Found:
    """Check that what a cell shows takes less than a megabyte."""
    for at, cell in enumerate(one.cells):
        size = len(json.dumps(cell.get("outputs", []), ensure_ascii=False))
        if size > MEGABYTE:
            yield at, f"its outputs take {size / MEGABYTE:.1f} MB"


class _Tags(HTMLParser):
    """The elements of a piece of HTML."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def _html(one: Source) -> Iterator[tuple[int, str, dict[str, str | None]]]:
    for at, token in one.tokens:
        if token.type.startswith("html"):
            for tag, attributes in _Tags(token.content).found:
                yield at, tag, attributes


def living_links(one: Source) -> Found:
    """Check that links lead to a file, heading or attachment. What git ignores may be made later; no network."""
    links = [(at, token.attrGet("href") or token.attrGet("src")) for at, token in one.tokens
             if token.type in ("link_open", "image")]  # fmt: skip
    links += [(at, attrs.get("href") or attrs.get("src")) for at, tag, attrs in _html(one) if tag in ("a", "img")]
    for at, link in dict.fromkeys(links):
        if link and (why := _dead(one, at, str(link))):
            yield at, why


def _dead(one: Source, at: int, link: str) -> str:
    try:
        scheme, host, path, _, anchor = urlsplit(link)
    except ValueError:
        return f"{link} is no address"
    if scheme == "attachment":
        known = one.cells[at].get("attachments", {})
        return "" if unquote(path) in known else f"there is no attachment {unquote(path)} in the cell"
    if scheme or host or path.startswith("/"):
        return ""
    target = one.path.parent / unquote(path) if path else one.path
    there = _spelled(one.path.parent, unquote(path))
    if there is None:
        return "" if _ignored_by_git(target) else f"there is no {unquote(path)}"
    if there != str(PurePosixPath(unquote(path))):
        return f"{unquote(path)} is spelled {there} there: where case counts, as on Linux, it is not found"
    known_anchors = _anchors(target, one) if anchor and target.is_file() else None
    if known_anchors is not None and _plainly(unquote(anchor)) not in known_anchors:
        return f"there is no #{unquote(anchor)} in {unquote(path) or 'the notebook'}"
    return ""


def _spelled(folder: Path, path: str) -> str | None:
    """Return a path as it is spelled on disk, since Windows and macOS find data.csv as Data.csv; None for none."""
    parts = []
    for part in PurePosixPath(path).parts:
        try:
            if not (folder / part).exists():
                return None
            names = [entry.name for entry in folder.iterdir()]
        except PermissionError:
            names = [part]
        except (OSError, ValueError):  # longer than a name can be, say
            return None
        folder /= part
        if part != ".." and part not in names:
            alike = [name for name in names if name.casefold() == part.casefold()]
            if not alike:  # Windows takes sub\\data.csv for a path
                return None
            part = alike[0]
        parts.append(part)
    return str(PurePosixPath(*parts))


def _ignored_by_git(target: Path) -> bool:
    folder = next(parent for parent in target.resolve().parents if parent.is_dir())
    try:
        command = ["git", "check-ignore", "--quiet", str(target.resolve())]
        return subprocess.run(command, cwd=folder, capture_output=True).returncode == 0
    except OSError:
        return False


def _anchors(target: Path, one: Source) -> set[str] | None:
    """Return the targets of links in a file, spelled plainly, since Jupyter and GitHub differ; None if unknown."""
    try:
        if target.resolve() == one.path.resolve():
            tokens = [token for _, token in one.tokens]
        elif target.suffix == ".ipynb":
            cells = json.loads(target.read_text(encoding="utf-8"))["cells"]
            tokens = [token for _, token in Source(target, {"cells": cells}, None).tokens]
        elif target.suffix == ".md":
            tokens = list(_flat(MARKDOWN.parse(target.read_text(encoding="utf-8"))))
        else:
            return None
    except (OSError, ValueError, LookupError, TypeError):
        return None
    names = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before and before.type == "heading_open":
            words = [part.content for part in token.children or () if part.type in ("text", "code_inline")]
            names += ["".join(words), token.content]
        elif token.type.startswith("html"):
            names += [str(attrs.get("id") or attrs.get("name") or "") for _, attrs in _Tags(token.content).found]
        names += re.findall(r"(?m)^\(([^()\s]+)\)=$", token.content)  # MyST
    return {_plainly(name) for name in names if name}


def _plainly(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def pictures_with_words(one: Source) -> Found:
    """Check that pictures in Markdown or HTML have a text (alt="" says that one is only decoration)."""
    for at, token in one.tokens:
        if token.type == "image" and not token.content.strip():
            yield at, f"a picture without words: {str(token.attrGet('src'))[:60]}"
    pictures = [(at, attrs) for at, tag, attrs in _html(one) if tag == "img"]
    pictures += [(at, attrs) for at, text in one.shown if "<img" in text
                 for tag, attrs in _Tags(text).found if tag == "img"]  # fmt: skip
    for at, attrs in pictures:
        if "alt" not in attrs:
            yield at, f"a picture without words: {str(attrs.get('src', ''))[:60] or '<img>'}"


def steady_headings(one: Source) -> Found:
    """Check that no level of headings is left out on the way down."""
    last = 0
    for at, token in one.tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            if last and level > last + 1:
                yield at, f"a heading of level {level} follows one of level {last}"
            last = level


class Check(NamedTuple):
    """A row: a word for the command line, what is asked, and what answers it."""

    name: str
    what: str
    find: Callable[[Source], Found]


SOURCES = (
    Check("format", "what the schema of notebooks does not allow", well_formed),
    Check("text", "out of step with its Jupytext text", in_step),
    Check("order", "cells run out of order", run_in_order),
    Check("ids", "missing or doubled ids of cells", identified),
    Check("paths", "paths of one computer", portable),
    Check("secrets", "tokens and keys", no_secrets),
    Check("size", "outputs of more than a megabyte", small_outputs),
    Check("links", "links to files and headings that are not there", living_links),
    Check("pictures", "pictures without words", pictures_with_words),
    Check("headings", "headings that leave out a level", steady_headings),
)
