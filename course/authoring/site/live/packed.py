"""The files beside a page that its figures need: their front ends as scripts, and what they show, packed."""

import base64
import io
import json
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from course.authoring.site.live import cells
from course.authoring.site.live.states import KINDS, ROOMS, States, TooMany, states

_MODULE = "export default { render };"
_PIECE = re.compile(r"(?<=>)(?=.)", re.DOTALL)
COLOURS = 256  # of a picture of Matplotlib's: as many as it has, or hardly less


class Figure(NamedTuple):
    """A figure of a notebook: its cell, what it is, and its script, or why the page has none."""

    place: int
    name: str
    file: str
    kind: str = ""
    front: str = ""  # the front end
    script: str = ""
    settings: int = 0
    known: str = ""
    why: str = ""


def figures(path: Path) -> list[Figure]:
    """Find the figures of a lesson's notebook."""
    import nbformat

    found = nbformat.read(path, as_version=4).cells
    return [_figure(found, place, f"{path.stem}-{place}.js") for place in cells.places(found)]


def _figure(found: list[Any], place: int, name: str) -> Figure:
    try:
        made = cells.figure(found, place)
    except Exception:  # its lines ask for more of the lesson than the names they read
        called = re.findall(r"^(\w+)\(", found[place].source, re.MULTILINE)[-1]
        return Figure(place, called, name, why="it shows what the whole lesson has made")
    called, widget = type(made).__name__, made.widget()
    kind = type(widget).__name__
    if kind not in KINDS:
        return Figure(place, called, name, why="each number that is typed, each bit, is a setting of its own")
    try:
        shown = states(widget)
    except TooMany as error:
        return Figure(place, called, name, why=f"{error}")
    return Figure(
        place, called, name, kind, front(kind, widget), script(name, kind, shown), len(shown.shown), KINDS[kind].known
    )


def front(kind: str, widget: Any) -> str:
    """Turn a front end into a script that needs no module: modules cannot be loaded from a folder."""
    source = str(widget._esm)
    before, module, after = source.partition(_MODULE)
    if not module or after.strip():
        raise ValueError(f"{kind}'s front end does not end with {_MODULE}")
    return f"undertorch.kind({json.dumps(kind)}, (() => {{\n{before}\nreturn {{ render }};\n}})());\n"


def script(name: str, kind: str, found: States) -> str:
    """Pack all that a figure shows into a script."""
    row = KINDS[kind]
    pieces: dict[str, int] = {}
    same = {key for key in found.begin if all(state[key] == found.begin[key] for state in found.shown)}
    data = {
        "begin": {key: _plain(found.begin[key], pieces) for key in sorted(same)},
        "shown": [{k: _plain(v, pieces) for k, v in state.items() if k not in same} for state in found.shown],
        "table": found.table,
        "inputs": row.inputs,
        "history": row.history,
        "rooms": {"name": row.rooms, "known": ROOMS},
        "known": row.known,
    }
    data["pieces"] = list(pieces)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
    return f"undertorch.figure({json.dumps(name)}, {json.dumps(kind)}, {json.dumps(packed)});\n"


def _plain(value: Any, pieces: dict[str, int]) -> Any:
    """Turn a trait into JSON; long texts become lists of pieces, which they share."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(smaller(value)).decode("ascii")}
    if isinstance(value, str) and len(value) > 200:
        return {"pieces": [pieces.setdefault(piece, len(pieces)) for piece in _PIECE.split(value)]}
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return [_plain(each, pieces) for each in value]
    return value


def smaller(image: bytes) -> bytes:
    """Give a picture a palette, which makes it a third as large."""
    if not image.startswith(b"\x89PNG"):
        return image
    from PIL import Image

    drawn = io.BytesIO()
    picture = Image.open(io.BytesIO(image)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(drawn, "png", optimize=True)
    return drawn.getvalue()
