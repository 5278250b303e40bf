"""MemoryExplorer's picture: boxes, the recipe, the row in memory, the arrow from a box to its place, the path."""

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise, product
from typing import Any

from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND
from course.figures.base.grid import frame, text
from course.figures.memory_explorer.steps import Index, Looked, brackets, number_at, place_sum

NARROW, WIDE = 404, 760  # pixels
BOX, HIGH, LABEL, GAP = 32, 28, 20, 28  # a box; its indices; between two tensors
LETTER = 7.83  # of the typewriter's letters in the recipe, at 13 pixels
TYPEWRITER = "font-family='DejaVu Sans Mono, Consolas, monospace'"
ROWS = (("#e3edf7", INK), ("#e2f1e4", SECOND))  # the memory that was there first, and a copy's


def drawn(name: str, looked: Looked, pick: int, path: bool, room: int) -> str:
    """Draw what was looked at, with a box picked, and with the path up to it, as an SVG."""
    drawing = _Drawing(name, looked, pick, path, room)
    return frame(drawing.parts, drawing.right, drawing.bottom)


class _Panel:
    """A tensor as boxes: where each of them is."""

    def __init__(self, title: str, shape: Index, box: int):
        self.title, self.shape, self.box = title, shape, box
        self.pages, self.rows, self.columns = (1,) * (3 - len(shape)) + shape
        self.left = LABEL if len(shape) > 1 else 4
        self.head = 22 + (LABEL if shape else 4) + (LABEL if self.pages > 1 else 0)
        self.page = self.left + box * self.columns + 8

    @property
    def most(self) -> int:
        """Matrices beside each other, in a narrow page."""
        return max(1, (NARROW - 8) // self.page)

    @property
    def width(self) -> int:
        return max(min(self.pages, self.most) * self.page, 8 + 8 * len(self.title))

    @property
    def lines(self) -> int:
        return -(-self.pages // self.most)

    @property
    def height(self) -> int:
        return 22 + self.lines * (self.head - 22 + self.rows * HIGH + 4)

    def at(self, x: int, y: int, index: Index) -> tuple[int, int]:
        """Return the corner of a box, where the panel's is (x, y)."""
        page, row, column = (0,) * (3 - len(index)) + index
        line, across = divmod(page, self.most)
        top = y + self.head + line * (self.head - 22 + self.rows * HIGH + 4)
        return x + across * self.page + self.left + column * self.box, top + row * HIGH

    def labels(self, x: int, y: int) -> Iterator[str]:
        small = "fill='#555555' text-anchor='middle'"
        yield text(x + 4, y + 15, self.title, f"fill='#222222' font-weight='bold' {TYPEWRITER}")
        for page in range(self.pages):
            rest = (page,) if len(self.shape) > 2 else ()
            for column in range(self.columns if self.shape else 0):
                left, top = self.at(x, y, (*rest, *((0,) if len(self.shape) > 1 else ()), column))
                yield text(left + self.box / 2, top - 6, str(column), small)
            for row in range(self.rows if len(self.shape) > 1 else 0):
                left, top = self.at(x, y, (*rest, row, 0))
                yield text(left - 9, top + HIGH / 2 + 4, str(row), small)
                if row == 0 and self.pages > 1:
                    yield text(left, top - 6 - LABEL, f"[{page}]", "fill='#555555'")


class _Drawing:
    """The parts of the picture, from the top down, and how far they reach."""

    def __init__(self, name: str, looked: Looked, pick: int, path: bool, room: int):
        self.name, self.looked, self.path = name, looked, path
        self.pick = min(pick, looked.last)
        self.place = looked.places[self.pick]
        self.most = max(NARROW, min(room, WIDE))
        self.parts: list[str] = []
        self.over: list[str] = []  # what lies over all else
        self.right = 0
        tensors, below = self.tensors(8)
        recipe = self.recipe(below + 26, tensors)
        self.bottom = self.memory(recipe)
        self.parts += self.over
        self.right = max(self.right, 200) + 8

    @cached_property
    def box(self) -> int:
        """Return the width of a box: as its numbers ask."""
        longest = max(len(number_at(row, k)) for row in self.rows for k in range(row.numel()))
        return max(BOX, 12 + 8 * longest)

    @property
    def rows(self) -> list[Any]:
        """The memory of the tensor now, and that of the first one, where they are two."""
        return [self.looked.memory, *([self.looked.first.flatten()] if self.looked.copied else [])]

    def cell(self, x: float, y: float, words: str, look: str, number: int | None = None, copied: bool = False) -> None:
        fill, stroke = ROWS[copied]
        drawn = {
            "plain": f"fill='{fill}' stroke='{stroke}'",
            "unused": f"fill='#ffffff' stroke='{FAINT}' stroke-dasharray='3 3'",
            "same": f"fill='{fill}' stroke='{ACCENT}' stroke-width='2.5' stroke-dasharray='5 3'",
            "picked": f"fill='#fde5dc' stroke='{ACCENT}' stroke-width='2.5'",
        }[look]
        found = "" if number is None else f" data-number='{number}'"
        style = f"text-anchor='middle' pointer-events='none' fill='{'#666666' if look == 'unused' else '#222222'}'"
        bold = " font-weight='bold'" if look in ("same", "picked") else ""
        (self.over if bold else self.parts).extend(
            (
                f"<rect x='{x:g}' y='{y:g}' width='{self.box}' height='{HIGH}' {drawn}{found}/>",
                text(x + self.box / 2, y + HIGH / 2 + 5, words, style + bold),
            )
        )

    def tensors(self, top: int) -> tuple[tuple[int, int, int], int]:
        """Return the tensor begun with, if it is another, and the one now; the line from its picked box, the end."""
        looked = self.looked
        panels = [(_Panel(_short(looked.code), looked.shape, self.box), looked.now, True)]
        if looked.code != self.name:
            first = _Panel(self.name, tuple(looked.first.shape), self.box)
            panels.insert(0, (first, looked.first, False))
        x, y, bottom, picked = 8, top, top, (0, 0, 0)
        places = dict(zip(looked.indices, looked.places, strict=True))
        for panel, tensor, now in panels:
            if x > 8 and x + panel.width > self.most:
                x, y = 8, bottom + 6
            self.parts += panel.labels(x, y)
            for k, index in enumerate(product(*map(range, panel.shape))):
                left, over = panel.at(x, y, index)
                same = (places[index] if now else k if not looked.copied else -1) == self.place
                look = "picked" if now and k == self.pick else "same" if same else "plain"
                self.cell(left, over, number_at(tensor, *index), look, k if now else None, now and looked.copied)
                if look == "picked":
                    picked = left + self.box, over + HIGH, y + panel.height - 4
            self.right, bottom = max(self.right, x + panel.width), max(bottom, y + panel.height)
            x += panel.width + GAP
        return picked, bottom

    def recipe(self, top: int, picked: tuple[int, int, int]) -> tuple[float, int]:
        """Return the recipe, and what it makes of the picked box: where its place is written, how far it reaches."""
        looked = self.looked
        lines = [
            f"offset {looked.offset}   shape {looked.shape}   strides {looked.strides}",
            f"{brackets(looked.indices[self.pick]) or 'the number'}: {place_sum(looked, self.pick)}",
        ]
        width = 24 + LETTER * max(map(len, lines))
        self.right = int(max(self.right, 8 + width))
        self.parts.append(
            f"<rect x='8' y='{top}' width='{width:g}' height='48' rx='5' fill='#f6f3e6' stroke='{FAINT}'/>"
        )
        style = f"fill='#222222' xml:space='preserve' {TYPEWRITER}"
        self.parts.extend(text(20, top + 19 + 20 * number, line, style) for number, line in enumerate(lines))
        x, y, end = picked
        # Down between the boxes, over none of them.
        self.over.append(f"<path d='M{x} {y} V{end}' stroke='{ACCENT}' stroke-width='2.5'/>")
        self.over.append(_arrow(x, end, min(max(x, 20), width), top - 2))
        return 20 + LETTER * (len(lines[1]) - len(str(self.place)) / 2), top + 48

    def memory(self, recipe: tuple[float, int]) -> int:
        """Return the rows in memory, the arrow to the place of the picked box, and the path read so far."""
        looked = self.looked
        x, bottom = recipe
        top = bottom + 50
        used = set(looked.places)
        for number, row in enumerate(self.rows):
            mine, copied = number == 0, number == 0 and looked.copied
            for place in range(row.numel()):
                left = 10 + self.box * place
                look = "plain" if not mine or place in used else "unused"
                look = "picked" if mine and place == self.place else look
                small = "fill='#555555' text-anchor='middle'"
                self.parts.append(text(left + self.box / 2, top - 5, str(place), small))
                self.cell(left, top, number_at(row, place), look, copied=copied)
            self.right = max(self.right, 10 + self.box * row.numel())
            if mine:
                aim = 10 + self.box * (self.place + 0.5)
                self.over.append(_arrow(x, bottom + 2, aim, top - 19))
            under = top + HIGH + (self.arcs(top + HIGH) if mine and self.path else 0)
            whose = (
                f"memory of the copy, {row.numel()} places"
                if copied
                else f"memory of {self.name}, {row.numel()} places"
            )
            self.parts.append(text(10, under + 18, whose, "fill='#444444'"))
            top = under + 52
        return top - 24

    def arcs(self, top: int) -> int:
        """Return the path over memory, from place to place, and its break; how deep it hangs."""
        looked = self.looked
        steps = list(pairwise(looked.places[: self.pick + 1]))
        depth = max([_depth(b - a) for a, b in pairwise(looked.places[: looked.last + 2])], default=0)
        for number, (a, b) in enumerate(steps, start=1):
            told = len(steps) <= 4 or number == len(steps)
            self.over.append(self.arc(a, b, top, ACCENT if b < a else "#555555", told=told))
        if looked.asked and self.pick == looked.last:
            a, b = looked.places[self.pick : self.pick + 2]
            self.over.append(self.arc(a, b, top, ACCENT, "stroke-dasharray='5 4' ", " ✕"))
        return depth + 18

    def arc(self, a: int, b: int, top: int, colour: str, style: str = "", mark: str = "", told: bool = True) -> str:
        lean = 4 if b >= a else -4
        x, to = (10 + self.box * (place + 0.5) + side for place, side in ((a, lean), (b, -lean)))
        deep = _depth(b - a)
        low = top + 1.35 * deep
        halo = "text-anchor='middle' stroke='#ffffff' stroke-width='3' paint-order='stroke'"
        words = text((x + to) / 2, top + deep + 14, f"{b - a:+d}{mark}", f"fill='{colour}' {halo}")
        curve = f"M{x:g} {top + 2} C{x:g} {low:g} {to:g} {low:g} {to:g} {top + 2}"
        head = f"M{to - 4:g} {top + 9} L{to:g} {top + 2} L{to + 4:g} {top + 9}"
        line = f"<path d='{curve}' fill='none' stroke='{colour}' stroke-width='1.5' {style}/>"
        drawn = f"{line}<path d='{head}' fill='none' stroke='{colour}' stroke-width='1.5'/>" if a != b else ""
        return drawn + (words if told else "")


def _depth(step: int) -> int:
    return min(10 + 5 * abs(step), 60)


def _short(code: str) -> str:
    return code if len(code) <= 38 else f"…{code[-36:]}"


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """From a point down to another one."""
    middle = (y + to_y) / 2
    curve = f"M{x:g} {y:g} C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y - 6:g}"
    head = f"M{to_x - 4:g} {to_y - 8:g} L{to_x:g} {to_y:g} L{to_x + 4:g} {to_y - 8:g} Z"
    return f"<path d='{curve}' fill='none' stroke='{ACCENT}' stroke-width='2'/><path d='{head}' fill='{ACCENT}'/>"
