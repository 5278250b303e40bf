"""Tensors drawn as boxes of numbers, in SVG; what has three dimensions is drawn as matrices, side by side."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import product
from typing import NamedTuple

from course.figures.base.explorer import ACCENT, FAINT, INK

HEIGHT, GAP, LABEL = 28, 30, 18  # of a box; between panels; of an index or a line of text
FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
# A box that counts is told by its outline and its weight too, never by its colour alone.
LOOKS = {
    "plain": f"fill='#ffffff' stroke='{INK}'",
    "pale": f"fill='#f4f4f4' stroke='{FAINT}' stroke-dasharray='3 3'",
    "strong": f"fill='#fde5dc' stroke='{ACCENT}' stroke-width='2.5'",
    "strong pale": f"fill='#fde5dc' stroke='{ACCENT}' stroke-width='2.5' stroke-dasharray='3 3'",
}
SMALL = "fill='#555555' font-size='12'"
CENTRED = f"{SMALL} text-anchor='middle'"
_BOLD = "fill='#222222' font-weight='bold'"
INKS = {"plain": "fill='#222222'", "pale": "fill='#666666'", "strong": _BOLD, "strong pale": _BOLD}


class Cell(NamedTuple):
    """One box: what is written in it, how it looks, and its number, by which a click finds it."""

    text: str
    look: str = "plain"
    number: int | None = None


class Panel(NamedTuple):
    """One tensor: a line above it, one below it, and a box for each element."""

    title: str
    caption: str
    shape: tuple[int, ...]
    cell: Callable[[tuple[int, ...]], Cell]
    names: tuple[str, ...] = ()  # of the dimensions
    first: int = 0  # the index of the first row and column: below 0 in a border of padding

    @property
    def left(self) -> int:
        """Room for what stands beside the rows."""
        return beside(self.names[-2]) if len(self.names) > 1 else LABEL

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Matrices, rows, columns."""
        pages, rows, columns = (1,) * (3 - len(self.shape)) + self.shape
        return pages, rows, columns

    def cells(self) -> Iterator[tuple[tuple[int, ...], Cell]]:
        """Each box, with its matrix, row and column."""
        for place in product(*map(range, self.sizes)):
            yield place, self.cell(place[3 - len(self.shape) :])


class Layout(NamedTuple):
    """The width of a box, and so of each panel."""

    box: int

    def page(self, panel: Panel) -> int:
        return panel.left + self.box * panel.sizes[2]

    def width(self, panel: Panel) -> int:
        drawn = panel.sizes[0] * (self.page(panel) + 8)
        return max(drawn, panel.left + 8 * max(len(panel.title), len(panel.caption)))

    def height(self, panel: Panel) -> int:
        return (3 + (panel.sizes[0] > 1) + bool(panel.names)) * LABEL + HEIGHT * panel.sizes[1] + 8


def svg(panels: Sequence[Panel], width: int | None = None, height: int | None = None, most: int = 740) -> str:
    """Draw the panels beside each other; one that would reach beyond `most` pixels begins a new line."""
    parts, right, bottom = flow(panels, 4, most)
    return frame(parts, width or right, height or bottom)


def flow(panels: Sequence[Panel], top: int, most: int = 740) -> tuple[list[str], int, int]:
    """Return the panels' parts, and how far they reach to the right and down."""
    written = [cell.text for panel in panels for _, cell in panel.cells()]
    long = max((panel.sizes[2] for panel in panels), default=0) > 8  # a row that has to fit a narrow page
    layout = Layout(max(28 if long else 36, 10 + 8 * max(map(len, written), default=0)))
    x, y, right, bottom = 8, top, 0, top
    parts: list[str] = []
    for panel in panels:
        if x > 8 and x + layout.width(panel) > most:
            x, y = 8, bottom + 6
        parts += _panel(panel, layout, x, y)
        x += layout.width(panel) + GAP
        right, bottom = max(right, x - GAP + 8), max(bottom, y + layout.height(panel))
    return parts, right, bottom


def frame(parts: Sequence[str], width: int, height: int) -> str:
    """Return a drawing of its own light ground, whatever the theme of the page."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' "
        f"{FONT} font-size='13'><rect width='100%' height='100%' rx='4' fill='#ffffff'/>{''.join(parts)}</svg>"
    )


def text(x: float, y: float, words: str, style: str = "fill='#222222'") -> str:
    return f"<text x='{x:g}' y='{y:g}' {style}>{escape(words)}</text>"


def beside(name: str) -> int:
    """Return the width of a dimension's name, with its arrow, beside the rows."""
    return 22 + 8 * len(name)


def _panel(panel: Panel, layout: Layout, x: int, y: int) -> Iterator[str]:
    yield text(x + LABEL, y + 14, panel.title, "fill='#222222' font-weight='bold'")
    yield text(x + LABEL, y + layout.height(panel) - 10, panel.caption, "fill='#555555'")
    pages, rows, columns = panel.sizes
    top = y + (2 + (pages > 1) + bool(panel.names)) * LABEL
    first = panel.names[0] if len(panel.names) > 2 else ""
    for page in range(pages if rows and columns else 0):
        left = x + panel.left + page * (layout.page(panel) + 8)
        if pages > 1:
            number = f"{first} {page}" if first else f"[{page}]"
            yield text(left, top - (1 + bool(panel.names)) * LABEL - 5, number, SMALL)
        if panel.shape:  # the only number of a scalar has no index
            yield from indices(left, top, layout.box, columns, panel.first)
        if len(panel.shape) > 1:
            yield from (
                text(left - 9, top + HEIGHT * (r + 0.5) + 4, str(r + panel.first), CENTRED) for r in range(rows)
            )
        yield from named(panel.names[-2:], left, top)
    # What counts is drawn last: its outline lies over its neighbours'.
    for (page, row, column), cell in sorted(panel.cells(), key=lambda placed: placed[1].look.startswith("strong")):
        left, over = x + panel.left + page * (layout.page(panel) + 8) + layout.box * column, top + HEIGHT * row
        yield from box(left, over, layout.box, cell)


def indices(left: float, top: float, wide: int, count: int, first: int = 0) -> Iterator[str]:
    """Return the numbers of the columns, above them."""
    return (text(left + wide * (c + 0.5), top - 5, str(c + first), CENTRED) for c in range(count))


def named(names: Sequence[str], left: float, top: float, gone: Sequence[str] = ()) -> Iterator[str]:
    """Return the names of up to two dimensions at a corner: the last one above the columns, the other at the rows.

    Those that are `gone` are crossed out.
    """
    for name, x, y, arrow, anchor in zip(
        names[::-1], (left + 4, left - 6), (top - LABEL - 4, top - 5), "\u2192\u2193", ("start", "end"), strict=False
    ):
        crossed = " text-decoration='line-through'" if name in gone else ""
        yield text(x, y, f"{name} {arrow}", f"fill='#222222' font-size='12' text-anchor='{anchor}'{crossed}")


def box(x: int, y: int, width: int, cell: Cell) -> Iterator[str]:
    found = "" if cell.number is None else f" data-number='{cell.number}'"
    yield f"<rect x='{x}' y='{y}' width='{width}' height='{HEIGHT}' {LOOKS[cell.look]}{found}/>"
    style = f"text-anchor='middle' pointer-events='none' {INKS[cell.look]}"
    yield text(x + width / 2, y + HEIGHT / 2 + 5, cell.text, style)
