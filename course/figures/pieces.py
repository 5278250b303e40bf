"""Memory cut into pieces: the segments that are reserved, and what of each is in use and free."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from course.figures.base.chooser import Chooser, Control, Shown, images
from course.figures.base.explorer import FAINT, INK
from course.figures.base.grid import SMALL, frame, text
from engine import OutOfMemoryError, sim
from engine.arrays.devices.allocator import MIB, Allocator

WIDTH, HIGH, GAP, LINE = 430, 30, 8, 20  # pixels: of a line of segments, of a segment, between two, of text
LETTER = 7.6
LOOKS = {True: f"fill='#cfdef0' stroke='{INK}'", False: f"fill='#ffffff' stroke='{FAINT}' stroke-dasharray='3 3'"}
GRAMMAR = "Write requests with commas between them: a = 8 (in MiB), del a, or empty_cache()."
REQUEST = re.compile(r"(?:(?P<name>[a-z]\w*) *= *(?P<size>\d+(?:\.\d*)?)|del +(?P<gone>[a-z]\w*)|empty_cache\(\))")


class Piece(NamedTuple):
    """A stretch of a segment."""

    size: int
    used: bool
    name: str = ""


Segments = Sequence[Sequence[Piece]]


class MemoryMap:
    """A snapshot of a device's memory, drawn: by default that of the simulated device, now."""

    def __init__(self, snapshot: Sequence[Mapping[str, Any]] | None = None, capacity: int | None = None):
        if snapshot is None:
            snapshot, capacity = sim.memory_snapshot(), sim.mem_get_info()[1]
        self.segments = [[Piece(b["size"], b["state"] != "inactive") for b in s["blocks"]] for s in snapshot]
        self.capacity = capacity

    def text(self) -> str:
        """Return the picture in words."""
        return summary(self.segments, self.capacity)

    def pictures(self) -> list[str]:
        """Return the picture, as an SVG."""
        return [drawn(self.segments, self.capacity)]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        words = self.text()
        return {"text/html": f"{images(self.pictures(), [words])}<p>{words}</p>", "text/plain": words}


class PiecesExplorer(Chooser):
    """A device of 40 MiB and the requests of a program, to be typed: what each one does to the memory."""

    def __init__(self, *programs: str, capacity: int = 40):
        self.capacity = capacity * MIB
        self.controls = (Control("text", "program", "program", programs), Control("range", "step", "step"))
        self.begin = {"program": programs[0], "step": 0}
        self.stills = tuple((program, {"program": program, "step": len(requests(program))}) for program in programs)

    def shown(self, *, program: str, step: int) -> Shown:
        values = {"program": program, "step": step}
        try:
            asked = requests(program)
            steps = list(self.steps(asked))
        except ValueError as error:
            return Shown([drawn([], self.capacity)], str(error), values, {"step": ["0"]}, wrong=True)
        step = min(step, len(asked))
        segments, words = steps[step]
        names = ["0: nothing yet", *(f"{n}: {request}" for n, request in enumerate(asked, 1))]
        said = f"{words} {summary(segments, self.capacity)}"
        return Shown([drawn(segments, self.capacity)], said, values | {"step": step}, {"step": names})

    def steps(self, asked: Sequence[str]) -> Iterator[tuple[Segments, str]]:
        """Yield the segments, and what has happened: at first, and after each request."""
        memory, held = Allocator(self.capacity), dict[str, Any]()
        yield [], "Nothing has been asked for yet."
        for request in asked:
            words = f"{request}: {done(request, memory, held)}"
            yield self.cut(memory, held), words

    def cut(self, memory: Any, held: Mapping[str, Any]) -> Segments:
        names = {id(block): name for name, block in held.items()}
        segments = []
        for first in memory.settled().segments:
            pieces, block = [], first
            while block is not None:
                pieces.append(Piece(block.size, not block.free, names.get(id(block), "")))
                block = block.after
            segments.append(pieces)
        return segments


def requests(program: str) -> list[str]:
    """Read a program's requests, one by one.  ValueError where they cannot be read."""
    parts = [part.strip() for part in program.split(",") if part.strip()]
    held: set[str] = set()
    for part in parts:
        found = REQUEST.fullmatch(part)
        if not found:
            raise ValueError(GRAMMAR)
        if found["gone"] and found["gone"] not in held:
            raise ValueError(f"{part}: nothing has that name.")
        if found["size"] and not 0 < float(found["size"]) <= 1000:
            raise ValueError(f"{part}: between 0 and 1000 MiB can be asked for.")
        held = held - {found["gone"]} | ({found["name"]} if found["name"] else set())
    return parts


def done(request: str, memory: Any, held: dict[str, Any]) -> str:
    """Does what is asked for, and says what came of it."""
    asked: Any = REQUEST.fullmatch(request)
    before = memory.settled().reserved
    if asked["gone"]:
        block = held.pop(asked["gone"])
        joins = any(side is not None and side.free for side in (block.before, block.after))
        memory.free(block)
        return f"its piece is free now, {'joins the free one beside it, ' if joins else ''}and stays reserved."
    if not asked["name"]:
        memory.empty_cache()
        back = before - memory.reserved
        return f"{mib(back)} MiB go back to the device." if back else "in every segment something is in use: none goes."
    size = round(float(asked["size"]) * MIB)
    free = {block: block.size for block in memory.cache}
    try:
        block = memory.allocate(size)
    except OutOfMemoryError:
        pieces = sorted(free.values())
        largest = f"; the largest free piece has {mib(pieces[-1])}" if pieces else ""
        room = mib(memory.capacity - memory.reserved)
        return f"out of memory. {room} MiB could still be reserved{largest}."
    old = held.pop(asked["name"], None)  # like a name in Python: the new tensor is there before the old one goes
    if old is not None:
        memory.free(old)
    held[asked["name"]] = block
    if block in free:
        cut = "cut" if free[block] > block.size else "given as it is"
        return f"there is a free piece of {mib(free[block])} MiB, which is {cut}."
    rest = sum(piece.size for piece in (block, block.after) if piece is not None)
    given = before + rest - memory.reserved
    first = f"{mib(given)} MiB that nobody uses are given back, then " if given else "no free piece is large enough: "
    return f"{first}a segment of {mib(rest)} MiB is reserved."


def summary(segments: Segments, capacity: int | None) -> str:
    """Say how much is allocated and reserved, and which pieces are free."""
    pieces = [piece for segment in segments for piece in segment]
    used, reserved = sum(p.size for p in pieces if p.used), sum(p.size for p in pieces)
    of = f" of {mib(capacity)}" if capacity else ""
    free = sorted((p.size for p in pieces if not p.used), reverse=True)
    large, small = [size for size in free if size >= MIB], [size for size in free if size < MIB]
    told = [f"{mib(size)}" for size in large]
    if small:
        told.append(f"{len(small)} of less than 1")
    listed = f"; free pieces: {', '.join(told)} MiB" if told else ""
    return f"Allocated {mib(used)} MiB, reserved {mib(reserved)}{of} MiB{listed}."


def drawn(segments: Segments, capacity: int | None) -> str:
    """Return the segments side by side, each as long as it is large, as an SVG."""
    sizes = [sum(piece.size for piece in segment) for segment in segments]
    scale = WIDTH / max([20 * MIB, *sizes])
    x, y, parts = 8.0, 8.0, []
    for segment, size in zip(segments, sizes, strict=True):
        if x > 8 and x + size * scale > WIDTH + 9:
            x, y = 8.0, y + HIGH + GAP
        for piece in joined(segment, 14 / scale):
            wide = piece.size * scale
            parts.append(f"<rect x='{x:.1f}' y='{y:g}' width='{wide:.1f}' height='{HIGH}' {LOOKS[piece.used]}/>")
            words = [f"{piece.name} {mib(piece.size)}".strip(), mib(piece.size)]
            if not piece.used:
                words.insert(0, f"{mib(piece.size)} free")
            fitting = [word for word in words if LETTER * len(word) < wide]
            if fitting:
                style = f"fill='{'#222222' if piece.used else '#555555'}' text-anchor='middle'"
                parts.append(text(x + wide / 2, y + HIGH / 2 + 5, fitting[0], style))
            x += wide
        x += GAP
    y += (HIGH if segments else 0) + LINE
    rest = "" if capacity is None else f"not reserved: {mib(capacity - sum(sizes))} of {mib(capacity)} MiB"
    for at, used, said in ((8, True, "in use"), (84, False, "free")):
        parts.append(f"<rect x='{at}' y='{y - 11:g}' width='18' height='12' {LOOKS[used]}/>")
        parts.append(text(at + 24, y, said, SMALL))
    parts.append(text(WIDTH + 8, y, rest, f"{SMALL} text-anchor='end'"))
    return frame(parts, WIDTH + 16, int(y + 10))


def joined(segment: Sequence[Piece], least: float) -> list[Piece]:
    """Return the pieces, those too short to be drawn together with their neighbours of the same kind."""
    found: list[Piece] = []
    for piece in segment:
        last = found[-1] if found else None
        if last is not None and last.used == piece.used and min(last.size, piece.size) < least:
            found[-1] = Piece(last.size + piece.size, piece.used)
        else:
            found.append(piece)
    return found


def mib(nbytes: int) -> str:
    return f"{round(nbytes / MIB, 2):g}"
