"""Two lists of outputs, the stored one and the new one, and what differs between them."""

import base64
import binascii
import copy
import difflib
import io
import json
import os
import re
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

from nbformat import NotebookNode
from nbval.plugin import coalesce_streams
from PIL import Image, ImageChops, UnidentifiedImageError

from course.authoring.validation.masks import Mask, apply

WIDGET = "application/vnd.jupyter.widget-view+json"
GRID, TOLERANCE = 32, 13
HOW = f"""\
pictures (PNG, JPEG): made grey and {GRID} x {GRID} cells small; no cell may differ by more than {TOLERANCE} of 255
SVG: the same elements in the same order, with the same texts; DOT: the same lines in any order
widgets: by the text beside them; tracebacks: by type and message
"""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


STORED = ("stored", "new")
LINES, WIDTH, AROUND = 100, 1000, 200  # how much of a diff is shown: not the megabytes of an output


def differences(
    stored: list[NotebookNode], new: list[NotebookNode], masks: tuple[Mask, ...], names: tuple[str, str] = STORED
) -> list[str]:
    """Return each difference as a text with a diff, nothing if the outputs agree. `names`: what the two are called."""
    gone, come = (
        ("is no longer there", "is not stored")
        if names == STORED
        else (f"is not there with {n}" for n in reversed(names))
    )
    ours, theirs = _parts(stored, masks), _parts(new, masks)
    found = []
    for number in range(max(len(ours), len(theirs))):
        if number >= len(theirs):
            found.append(_difference(f"{ours[number][0]} {gone}", ours[number][1], "", names))
        elif number >= len(ours):
            found.append(_difference(f"{theirs[number][0]} {come}", "", theirs[number][1], names))
        elif ours[number][0] != theirs[number][0]:
            found.append(f"{ours[number][0]} became {theirs[number][0]}")
        elif not same(ours[number][0], ours[number][1], theirs[number][1]):
            found.append(_difference(f"{ours[number][0]} differs", ours[number][1], theirs[number][1], names))
    return found


def _parts(outputs: list[NotebookNode], masks: tuple[Mask, ...]) -> list[tuple[str, str]]:
    """Return each thing that the outputs show: its kind and its masked text."""
    parts: list[tuple[str, str]] = []
    for output in coalesce_streams(copy.deepcopy(outputs)) or []:
        if output.output_type == "stream":
            parts.append((output.name, apply(output.text.replace("\r\n", "\n"), masks)))  # as some terminals end lines
        elif output.output_type == "error":
            parts.append(("error", apply(_ANSI.sub("", f"{output.ename}: {output.evalue}"), masks)))
        else:
            data = output.get("data", {})
            kinds = sorted(kind for kind in data if kind != WIDGET)
            parts += [(kind, _text(kind, data[kind], masks)) for kind in kinds]
    # The order in which stdout and stderr reach the notebook depends on timing.
    streams = sorted((part for part in parts if part[0] in ("stderr", "stdout")), reverse=True)
    return streams + [part for part in parts if part[0] not in ("stderr", "stdout")]


def _text(kind: str, value: Any, masks: tuple[Mask, ...]) -> str:
    if not isinstance(value, str):
        return json.dumps(value, indent=1, sort_keys=True)
    return value if _is_picture(kind) else apply(value, masks)


def _is_picture(kind: str) -> bool:
    return kind in ("image/png", "image/jpeg")


def same(kind: str, stored: str, new: str) -> bool:
    """Tell whether two texts of one kind show the same."""
    if stored == new:
        return True
    if _is_picture(kind):
        return _same_picture(stored, new)
    if kind == "image/svg+xml":
        try:
            return _elements(stored) == _elements(new)
        except ElementTree.ParseError:
            return False
    if kind in ("text/vnd.graphviz", "text/x-graphviz"):
        return sorted(map(str.strip, stored.splitlines())) == sorted(map(str.strip, new.splitlines()))
    return False


def _same_picture(stored: str, new: str) -> bool:
    try:
        one, other = (Image.open(io.BytesIO(base64.b64decode(text))) for text in (stored, new))
        flat = [_on_white(picture).resize((GRID, GRID), Image.Resampling.BOX) for picture in (one, other)]
    except (binascii.Error, UnidentifiedImageError, OSError):
        return False
    if any(abs(a - b) > 0.02 * max(a, b) for a, b in zip(one.size, other.size, strict=True)):
        return False
    darkest = ImageChops.difference(*flat).getextrema()[1]
    return isinstance(darkest, int | float) and darkest <= TOLERANCE


def _on_white(picture: Image.Image) -> Image.Image:
    full = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", full.size, "white"), full).convert("L")


def _elements(svg: str) -> list[tuple[str, str]]:
    """Return the names and texts of an SVG's elements, without its metadata (date, program)."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in [child for child in parent if str(child.tag).endswith("}metadata")]:
            parent.remove(child)
    return [(str(element.tag), (element.text or "").strip()) for element in root.iter()]


def _difference(what: str, stored: str, new: str, names: tuple[str, str]) -> str:
    if what.startswith("image/") and not what.startswith("image/svg"):
        return what
    lines = diff(stored.splitlines(), new.splitlines(), names) or ["only the ends of its lines do"]
    before = os.path.commonprefix([stored, new])
    shown = [_cut(line, max(0, len(before) - 1 - before.rfind("\n") - AROUND)) for line in lines[:LINES]]
    return "\n".join([what, *shown, *[f"... ({len(lines) - LINES:,} more lines)"] * (len(lines) > LINES)])


def _cut(line: str, start: int) -> str:
    """Return a line of a diff; if it is long, only from some character on."""
    if len(line) <= WIDTH:
        return line
    piece = line[1 + start : start + WIDTH]
    return f"{line[0]}{'...' * (start > 0)}{piece}... ({len(line) - 1:,} characters)"


def diff(stored: Iterable[str], new: Iterable[str], names: tuple[str, str]) -> list[str]:
    """Return a unified diff without its file names."""
    return list(difflib.unified_diff(list(stored), list(new), *names, lineterm="", n=2))
