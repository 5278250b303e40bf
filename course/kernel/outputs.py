"""Settle a cell's outputs: nothing of the machine, the moment or the run they came from is kept."""

import base64
import re
import struct
from collections.abc import Iterable

from nbformat import NotebookNode

from course.kernel.saving import WIDGET, put_to_sleep
from course.kernel.shell import is_library_frame
from engine.viz import NO_PICTURE

# Warnings name the file that ipykernel pretends a cell is; the same rule is in tests/nbval_sanitize.cfg.
_CELL_FILE = re.compile(r"(?m)^.*ipykernel_\d+[\\/]\d+\.py(?=:\d+: )")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
PICTURE = re.compile(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+")
_PNG = "data:image/png;base64,"
_TEXT = ("text/plain", "text/html", "text/markdown", "image/svg+xml")


class Addresses:
    """Stands in for memory addresses: the n-th one seen is always the same, and two that differ stay different."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        return _ADDRESS.sub(lambda m: self.seen.setdefault(m[0], f"0x7f{16 * (len(self.seen) + 1):010x}"), text)


def settle(cell: NotebookNode, addresses: Addresses) -> None:
    """Rewrite a code cell's outputs in place so that the same code always leaves the same bytes.

    Raises ValueError where a widget comes with nothing to show to a reader without a kernel.
    """
    cell.outputs = [_settle_one(output, addresses) for output in _merge_streams(cell.outputs)]


def _merge_streams(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring stream outputs, stdout first: how the kernel cuts and mixes them is a matter of timing."""
    merged: list[NotebookNode] = []
    run: dict[str, NotebookNode] = {}

    def flush() -> None:
        merged.extend(run[name] for name in sorted(run, reverse=True))
        run.clear()

    for output in outputs:
        if output.output_type != "stream":
            flush()
            merged.append(output)
        elif output.name in run:
            run[output.name].text += output.text
        else:
            run[output.name] = output
    flush()
    return merged


def _settle_one(output: NotebookNode, addresses: Addresses) -> NotebookNode:
    if output.output_type == "stream":
        output.text = addresses(_CELL_FILE.sub("<cell>", output.text))
    elif output.output_type == "error":
        output.evalue = addresses(output.evalue)
        output.traceback = [addresses(part) for part in output.traceback if not is_library_frame(part)]
    else:
        # The view of a widget is a random number that only the kernel of this run could resolve. Without it a viewer
        # shows the next best thing in the bundle: the static picture.
        bare = set(output.data) <= {WIDGET, "text/plain"}
        if put_to_sleep(output.data) and bare:
            raise ValueError("it shows a widget with no static picture beside it for a reader without a kernel")
        if NO_PICTURE in output.data.get("text/html", ""):
            raise ValueError("it draws a graph, and there is no Graphviz here to draw it")
        for mime in _TEXT:
            if mime in output.data:
                output.data[mime] = _settle_text(output.data[mime], addresses)
        if "image/png" in output.data:
            output.data["image/png"] = _bare_png(output.data["image/png"])
    return output


def _settle_text(text: str, addresses: Addresses) -> str:
    """Addresses fixed and pictures bared; what looks like an address within a picture is none."""
    parts, at = [], 0
    for found in PICTURE.finditer(text):
        is_png = found[0].startswith(_PNG)
        picture = _PNG + _bare_png(found[0].removeprefix(_PNG)) if is_png else found[0]
        parts += [addresses(text[at : found.start()]), picture]
        at = found.end()
    return "".join([*parts, addresses(text[at:])])


def _bare_png(data: str) -> str:
    """Strip the PNG of its comments and dates (the names of programs, versions and times)."""
    raw = base64.b64decode(data)
    kept, at = [raw[:8]], 8
    while at < len(raw):
        (length,) = struct.unpack(">I", raw[at : at + 4])
        end = at + 12 + length
        if raw[at + 4 : at + 8] not in (b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf"):
            kept.append(raw[at:end])
        at = end
    return base64.b64encode(b"".join(kept)).decode("ascii")
