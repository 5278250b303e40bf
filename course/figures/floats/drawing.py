"""FloatExplorer's pictures: the bits with what each is worth, and the two number lines below them."""

import textwrap
from fractions import Fraction

from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND
from course.figures.base.grid import frame, text
from course.figures.floats.model import FORMATS, Number, Stored, label, power, title, together, told, worth

FIELDS = {"sign": ACCENT, "exponent": SECOND, "fraction": INK}
WIDTH, MARGIN = 480, 20


def whole(written: str, asked: Number, s: Stored) -> str:
    """Draw title, bits, what they are worth, and the number lines, as an SVG."""
    heading = text(MARGIN, 26, title(written, s), "fill='#222222' font-size='16' font-weight='bold'")
    fields, bottom = _fields(s, 40)
    lines, bottom = _lines(s, asked, written, bottom + 8)
    return frame([heading, *fields, *lines], WIDTH, bottom)


def number_lines(written: str, asked: Number, s: Stored) -> str:
    """Draw the number lines alone, as an SVG: in a notebook the bits are buttons."""
    lines, bottom = _lines(s, asked, written, 6)
    return frame(lines, WIDTH, bottom)


def complaint(words: str) -> str:
    """Draw a sentence where there is no number to draw, as an SVG."""
    return frame([text(12, 24, words)], WIDTH, 40)


def _fields(s: Stored, top: int) -> tuple[list[str], int]:
    """Draw the bits, above each what it is worth, and below each field what its bits come to."""
    parts, y, size = [], top, 33
    for (name, color), bits, values, said in zip(FIELDS.items(), s.fields, worth(s), told(s), strict=True):
        parts.append(text(MARGIN, y + 14, name, f"fill='{color}' font-weight='bold'"))
        y += 20 if name == "fraction" else 6  # whose worths stand on two lines
        row = 13 if len(bits) > 23 else 12
        for first in range(0, len(bits), row):
            for place in range(first, min(first + row, len(bits))):
                x = MARGIN + (place - first) * size
                middle = x + size / 2 - 1
                parts += _worth(middle, y, values[place])
                on = bits[place] == "1"
                look = f"fill='{color if on else '#ffffff'}' stroke='{color}'"
                parts.append(f"<rect x='{x}' y='{y + 34}' width='{size - 3}' height='24' rx='3' {look}/>")
                ink = "#ffffff" if on else "#222222"
                style = f"text-anchor='middle' font-family='monospace' font-size='15' fill='{ink}'"
                parts.append(text(middle, y + 51, bits[place], style))
            y += 64
        for line in textwrap.wrap(said, 60):
            parts.append(text(MARGIN, y + 10, line))
            y += 18
        y += 6
    for line in textwrap.wrap(together(s), 52):
        parts.append(text(MARGIN, y + 12, line, "fill='#222222' font-weight='bold'"))
        y += 18
    return parts, y


def _worth(x: float, y: float, value: str) -> list[str]:
    """Write what a bit is worth, as a fraction with a bar where it is one."""
    style = "fill='#444444' font-size='12' text-anchor='middle'"
    if "/" not in value:
        return [text(x, y + 28, value, style)]
    line = f"<path d='M{x - 12:g} {y + 15.5:g}H{x + 12:g}' stroke='#444444'/>"
    return [text(x, y + 12, "1", style), line, text(x, y + 28, value[2:], style)]


def _lines(s: Stored, asked: Number, written: str, top: int) -> tuple[list[str], int]:
    """Draw two number lines: how the grid widens at each power of two, and the neighbours close up."""
    if isinstance(s.value, float) and s.part:
        return [text(MARGIN, top + 22, "nan is not a number: it stands nowhere on the line.")], top + 40
    wide, y = _widening(s, top)
    if not s.finite:
        return wide, y
    close, y = _close_up(s, asked, written, y + 6)
    return wide + close, y


def _tick(x: float, y: float, half: float, width: float, color: str = INK) -> str:
    return f"<path d='M{x:.1f} {y - half:g}V{y + half:g}' stroke='{color}' stroke-width='{width:g}'/>"


def _axis(y: float, first: float = MARGIN, last: float = WIDTH - MARGIN) -> str:
    return f"<path d='M{first:.1f} {y:g}H{last:.1f}' stroke='{FAINT}'/>"


def _at(x: float, y: float, words: str, anchor: str = "middle", style: str = "fill='#222222'") -> str:
    return text(round(x, 1), y, words, f"text-anchor='{anchor}' {style}")


def _widening(s: Stored, top: int) -> tuple[list[str], int]:
    """Draw three stretches between powers of two, each with as many numbers as the last and twice as long."""
    first = max(0, min(s.octave - 1, s.top - 1))
    octaves = [octave for octave in range(first, first + 3) if octave <= s.top]
    ends = [s.begin(octave) for octave in range(first, first + 4)]
    minus = -1 if s.bits[0] == "1" else 1
    count = 2 ** FORMATS[s.kind][1]

    def place(size: Fraction) -> float:
        share = float((size - ends[0]) / (ends[-1] - ends[0]))
        return MARGIN + (WIDTH - 2 * MARGIN) * (share if minus > 0 else 1 - share)

    y = top + 80
    heading = "The grid: how far apart the numbers are"
    drawn = f"{_many(count)} numbers in each stretch; every {_many(count // 8)}th is drawn"
    parts = [text(MARGIN, top + 14, heading, "fill='#222222' font-weight='bold'"), _axis(y)]
    parts.append(text(MARGIN, top + 33, drawn, "fill='#444444'"))
    for octave in octaves:
        begin, gap = s.begin(octave), s.gap(octave)
        here = octave == s.octave
        style = "fill='#222222' font-weight='bold'" if here else "fill='#444444'"
        middle = place(begin + gap * count / 2)
        parts.append(_at(middle, y - 20, _two(gap), style=style))
        parts += [_tick(place(begin + gap * count * n / 8), y, 8 if n else 13, 1.5) for n in range(8)]
    for number_, end in enumerate(ends):
        anchor = {0: "start", 3: "end"}.get(number_ if minus > 0 else 3 - number_, "middle")
        parts.append(_tick(place(end), y, 13, 1.5))
        parts.append(_at(place(end), y + 30, ("\u2212" if minus < 0 and end else "") + _two(end), anchor))
    if len(octaves) < 3:
        beyond = "inf" if minus > 0 else "-inf"
        parts.append(_at(place((ends[-1] + ends[-2]) / 2), y - 20, beyond, style="fill='#222222' font-weight='bold'"))
    size = abs(Fraction(s.value)) if s.finite else (ends[-1] + ends[-2]) / 2
    parts.append(f"<circle cx='{place(size):.1f}' cy='{y}' r='6' fill='{ACCENT}'/>")
    return parts, y + 42


def _close_up(s: Stored, asked: Number, written: str, top: int) -> tuple[list[str], int]:
    """Draw the stored number with its neighbours, to scale, and where the number asked for would be."""
    here = Fraction(s.value)
    around = [(by, s.next(by)) for by in range(-8, 9)]
    known = [(by, other, Fraction(other.value)) for by, other in around if other is not None and other.finite]
    unit = max(abs(value - here) for by, _, value in known if abs(by) == 1)

    def place(value: Fraction) -> float:
        return WIDTH / 2 + (WIDTH - 2 * MARGIN) / 7 * float((value - here) / unit)

    y = top + 66
    heading = "Close up: the numbers that there are, and none between"
    parts = [text(MARGIN, top + 14, heading, "fill='#222222' font-weight='bold'"), _axis(y)]
    for by, other, value in known:
        x = place(value)
        if not MARGIN - 1 <= x <= WIDTH - MARGIN + 1:
            continue
        parts.append(_tick(x, y, 12 if by else 16, 1.5 if by else 4))
        if abs(by) == 1:
            parts.append(_at(x + 10 * -by, y + 30, label(other), "start" if by > 0 else "end"))
    parts.append(_at(WIDTH / 2, y + 50, f"stored: {label(s)}", style="fill='#222222' font-weight='bold'"))
    if isinstance(asked, Fraction) and asked != here:
        x = place(asked)
        parts.append(f"<circle cx='{x:.1f}' cy='{y}' r='6' fill='{ACCENT}'/>")
        shown = written if len(written) < 24 else f"{written[:22]}\u2026"
        parts.append(_at(x, y - 22, f"asked for: {shown}", style=f"fill='{ACCENT}' font-weight='bold'"))
    return parts, y + 62


def _two(x: Fraction) -> str:
    """Write a power of two, or 0, briefly."""
    if x.denominator == 1 and x < 10_000:
        return str(x)
    if x.numerator == 1 and x.denominator <= 64:
        return f"1/{x.denominator}"
    return power(x.numerator.bit_length() - x.denominator.bit_length())


def _many(n: int) -> str:
    return str(n) if n < 10_000 else power(n.bit_length() - 1)
