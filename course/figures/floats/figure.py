"""FloatExplorer: a number as four types hold it, its bits with what each is worth, and the grid that it stands on."""

import re
import textwrap
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND
from course.figures.base.grid import frame, text
from course.pictures import picture

FORMATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}  # exponent, fraction
DIGITS = {"float16": 10, "bfloat16": 10, "float32": 10, "float64": 17}  # enough to tell neighbours apart
FIELDS = {"sign": ACCENT, "exponent": SECOND, "fraction": INK}
WIDTH, MARGIN = 480, 20
TYPED = "Type a number, such as 0.1, -3, 1e-8, 1/3, 2**-24, inf or nan."

Number = Fraction | float  # a float for inf, nan and -0 alone


class Stored(NamedTuple):
    """A pattern of bits, and what it stands for in a type, by the definition of IEEE 754."""

    kind: str
    pattern: int

    @property
    def bits(self) -> str:
        return f"{self.pattern:0{1 + sum(FORMATS[self.kind])}b}"

    @property
    def fields(self) -> tuple[str, str, str]:
        """The bits of the sign, of the exponent and of the fraction."""
        e = 1 + FORMATS[self.kind][0]
        return self.bits[0], self.bits[1:e], self.bits[e:]

    @property
    def bias(self) -> int:
        """The number that is taken from the stored exponent."""
        return 2 ** (FORMATS[self.kind][0] - 1) - 1

    @property
    def octave(self) -> int:
        """The exponent as it is stored: which stretch between two powers of two."""
        return int(self.fields[1], 2)

    @property
    def part(self) -> Fraction:
        """The worth of the fraction's bits together, below 1."""
        return Fraction(int(self.fields[2], 2), 2 ** FORMATS[self.kind][1])

    @property
    def top(self) -> int:
        """The largest exponent of a finite number."""
        return 2 ** FORMATS[self.kind][0] - 2

    def gap(self, octave: int) -> Fraction:
        """From one number to the next, there."""
        return Fraction(2) ** (max(octave, 1) - self.bias - FORMATS[self.kind][1])

    def begin(self, octave: int) -> Fraction:
        """The beginning of a stretch; the first begins at 0."""
        return Fraction(2) ** (octave - self.bias) if octave else Fraction(0)

    @property
    def value(self) -> Number:
        minus = self.bits[0] == "1"
        if self.octave > self.top:
            return float("nan") if self.part else float("-inf" if minus else "inf")
        size = self.begin(self.octave) + self.part * self.gap(self.octave) * 2 ** FORMATS[self.kind][1]
        return -size if minus else size

    @property
    def finite(self) -> bool:
        return self.octave <= self.top

    def next(self, by: int) -> "Stored | None":
        """So many numbers further up; None beyond the infinities, and beside nan."""
        half = 2 ** sum(FORMATS[self.kind])
        end = (self.top + 1) << FORMATS[self.kind][1]
        size = self.pattern % half
        place = (-size if self.pattern >= half else size) + by
        if size > end or abs(place) > end:
            return None
        return Stored(self.kind, half - place if place < 0 else place)


def number(written: str) -> Number:
    """The number that a reader typed, exactly. Raises ValueError."""
    plain = written.strip().lower().replace("\u2212", "-").replace("_", "").replace("^", "**")
    if re.fullmatch(r"[+-]?(inf|nan)", plain):
        return float(plain)
    try:
        if len(plain) > 60:
            raise ValueError
        if two := re.fullmatch(r"([+-]?)2 ?\*\* ?(-?\d{1,4})", plain):
            return Fraction(2) ** int(two[2]) * (-1 if two[1] == "-" else 1)
        above, stroke, below = plain.partition("/")
        found = _decimal(above) / (_decimal(below) if stroke else 1)
        return found or float(f"{plain[:1].strip('0.+')}0")  # -0 has a sign too
    except (ValueError, ArithmeticError):
        raise ValueError(TYPED) from None


def _decimal(written: str) -> Fraction:
    found = Decimal(written)
    if not found.is_finite() or abs(found.adjusted()) > 2000:
        raise ValueError
    return Fraction(found)


def stored(asked: Number, kind: str) -> Stored:
    """Return what becomes of a number in a type: the engine rounds it."""
    try:
        rounded = float(asked)
    except OverflowError:
        rounded = float("inf") if asked > 0 else float("-inf")
    x: Any = engine.tensor([rounded], dtype=getattr(engine, kind))
    return Stored(kind, int(x.array.view(f"u{x.array.itemsize}")[0]))


def exactly(x: Number, most: int = 60) -> str:
    """A number in full where that takes no more than so many digits, else "about" and 17 of them."""
    if isinstance(x, float):
        return f"{x}"
    size = abs(x)
    found = Context(prec=2000).divide(Decimal(size.numerator), Decimal(size.denominator))
    about = ""
    if len(found.normalize(Context(prec=2000)).as_tuple().digits) > most:
        found, about = Context(prec=17).plus(found), "about "
    found = found.normalize(Context(prec=2000))
    plain = f"{found:f}" if not size or -6 <= found.adjusted() < 20 else f"{found:e}"
    return f"{about}{'-' if x < 0 else ''}{plain}"


def power(n: int) -> str:
    """A power of two as it is written: 2 with a raised number."""
    return f"2{str(n).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def worth(s: Stored) -> list[list[str]]:
    """Return the worth of each bit, field by field: "-", "8", "1/4" or a power of two where that is shorter."""
    exponent, fraction = FORMATS[s.kind]
    parts = [f"1/{2**n}" if n <= 10 else power(-n) for n in range(1, fraction + 1)]
    return [["\u2212"], [str(2**n) for n in reversed(range(exponent))], parts]


def told(s: Stored) -> list[str]:
    """Return what the bits of each field come to, so that the reader can check it."""
    sign, exponent, fraction = s.fields
    of_exponent = _sum(exponent, worth(s)[1], str(s.octave))
    of_fraction = _sum(fraction, worth(s)[2], exactly(s.part, 24))
    if not s.finite:
        of_exponent += ": all bits are set, which is kept for inf and nan"
        of_fraction = "any bit is set, so it is nan" if s.part else "no bit is set, so it is inf"
    elif s.octave:
        n = s.octave - s.bias
        of_exponent += f", minus {s.bias} is {n}: times {power(n)} = {exactly(Fraction(2) ** n, 20)}"
        of_fraction += ", and the 1 in front of it"
    else:
        of_exponent += f": no bit is set, so no 1 stands in front: times {power(1 - s.bias)}"
    return ["1: minus" if sign == "1" else "0: plus", of_exponent, of_fraction]


def _sum(bits: str, parts: list[str], total: str) -> str:
    set_ = [part for bit, part in zip(bits, parts, strict=True) if bit == "1"]
    if not set_:
        return "0"
    shown = " + ".join([*set_[:3], "\u2026", set_[-1]] if len(set_) > 6 else set_)
    return shown if shown == total else f"{shown} = {total}"


def together(s: Stored) -> str:
    """The value, put together from the three fields."""
    if not s.finite:
        return f"Together: {exactly(s.value)}."
    lead, n = exactly(s.part + bool(s.octave), 24), max(s.octave, 1) - s.bias
    minus = "-" if s.fields[0] == "1" else ""
    product = f"{minus}{lead.removeprefix('about ')} \u00d7 {power(n)}"
    value = exactly(s.value) if s.value else f"{minus}0"
    return f"Together: about {product}; {value}." if lead.startswith("about") else f"Together: {product} = {value}."


class FloatExplorer:
    """A number to type, four types, and bits to flip: what each bit is worth, the neighbours, and how wide the grid is.

    ``picture()``, ``text()`` and ``static()`` work without a notebook; in one, the figure displays itself.
    """

    def __init__(self, number: str | float = "0.1", kind: str = "float16") -> None:
        self.begin = {"kind": kind, "written": str(number)}
        self.stills: tuple[dict[str, str], ...] = ({}, {"kind": "bfloat16"}, {"written": "70000"})

    def start(self) -> dict[str, str]:
        """The setting that is shown first."""
        return dict(self.begin)

    def text(self, **values: str) -> str:
        """The picture in words."""
        setting = self.start() | values
        try:
            asked = number(setting["written"])
        except ValueError as error:
            return str(error)
        s = stored(asked, setting["kind"])
        fields = " ".join(f"{name.capitalize()} {said}." for name, said in zip(FIELDS, told(s), strict=True))
        return f"{title(setting['written'], s)}. {fields} {self.words(setting['written'], asked, s)}"

    def words(self, written: str, asked: Number, s: Stored) -> str:
        """Say what is stored, by how much that is off, and name the neighbours."""
        said = [together(s)]
        if not s.finite:
            end = exactly(Stored(s.kind, ((s.top + 1) << FORMATS[s.kind][1]) - 1).value, 20)
            if not s.part and asked != s.value:
                said.append(f"{written} is too far out: the largest number of {s.kind} is {end}.")
            return " ".join(said)
        error = abs(_fraction(asked) - _fraction(s.value))
        if not error:
            said.append(f"That is exactly {written}." if exactly(s.value) != written else "Nothing was rounded.")
        else:
            said.append(f"It should be {written}: this is off by {_off(error)}.")
        before, after = (s.next(by) for by in (-1, 1))
        said.append(f"The number before is {_label(before)}, the one after {_label(after)}.")
        return " ".join(said)

    def image(self, **values: str) -> bytes:
        """Title, bits, what they are worth, and the number lines, as an SVG."""
        setting = self.start() | values
        try:
            asked = number(setting["written"])
        except ValueError as error:
            return frame([text(12, 24, str(error))], WIDTH, 40).encode()
        s = stored(asked, setting["kind"])
        parts = [text(MARGIN, 26, title(setting["written"], s), "fill='#222222' font-size='16' font-weight='bold'")]
        drawn, bottom = _fields(s, 40)
        lines, bottom = _lines(s, asked, setting["written"], bottom + 8)
        return frame([*parts, *drawn, *lines], WIDTH, bottom).encode()

    def picture(self, **values: str) -> dict[str, str]:
        """The picture and its words as a notebook's output."""
        return picture(self.image(**values), self.text(**values))

    def static(self) -> dict[str, str]:
        """The stills, as a notebook's output."""
        shown = [self.picture(**values) for values in self.stills]
        return {kind: "\n".join(still[kind] for still in shown) for kind in shown[0]}

    def widget(self) -> Any:
        """A field, the types, the bits, the picture and its words, as a widget.  ImportError without anywidget."""
        from course.figures.floats.widget import FloatWidget

        widget = FloatWidget(**self.shown(self.begin["kind"], self.begin["written"]))

        def update(values: dict[str, Any]) -> None:
            with widget.hold_sync():  # the picture and its words arrive together
                for name, value in values.items():
                    widget.set_trait(name, value)

        def typed(_: Any) -> None:
            if not any(deaf):
                update(self.shown(widget.kind, widget.written))

        deaf: list[bool] = []

        def pressed(_: Any, content: dict[str, int], __: Any) -> None:
            s = Stored(widget.kind, int(widget.bits, 2))
            new = s.next(content["by"]) if "by" in content else flipped(s, content["flip"])
            if new is not None:
                deaf.append(True)
                update(self.shown(widget.kind, written_of(new), new))
                deaf.pop()

        widget.observe(typed, ["kind", "written"])
        widget.on_msg(pressed)
        return widget

    def shown(self, kind: str, written: str, s: Stored | None = None) -> dict[str, Any]:
        """Return what the widget shows of a number in a type, or of a pattern; a complaint where it is no number."""
        values: dict[str, Any] = {"kind": kind, "written": written}
        try:
            asked = number(written)
        except ValueError as error:
            return values | {"words": str(error), "wrong": True}
        s = s or stored(asked, kind)
        lines, bottom = _lines(s, asked, written, 6)
        return values | {
            "bits": s.bits,
            "worth": worth(s),
            "told": told(s),
            "picture": frame(lines, WIDTH, bottom),
            "words": self.words(written, asked, s),
            "wrong": False,
        }

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_()
        except ImportError:
            data, metadata = {}, {}
        return data | self.static(), metadata


def flipped(s: Stored, place: int) -> Stored:
    """The pattern with one bit turned over, counted from the left."""
    return Stored(s.kind, s.pattern ^ 1 << (len(s.bits) - 1 - place))


def written_of(s: Stored) -> str:
    """A text that, typed, gives this number again."""
    full = exactly(s.value, 17)
    if s.finite and not s.value and s.bits[0] == "1":
        return "-0.0"
    return full if not full.startswith("about") else repr(float(s.value))


def title(written: str, s: Stored) -> str:
    return f"{written.strip()} in {s.kind}"


def _fraction(x: Number) -> Fraction:
    return Fraction(x)


def _short(x: Number, digits: int) -> str:
    """A number in so many digits, however small it is."""
    if isinstance(x, float):
        return f"{x}"
    found = Context(prec=digits).divide(Decimal(x.numerator), Decimal(x.denominator)).normalize()
    return f"{found:f}" if -5 <= found.adjusted() < max(digits, 7) else f"{found:e}".replace("e+", "e")


def _off(error: Fraction) -> str:
    full = exactly(error, 14)
    return f"about {_short(error, 3)}" if full.startswith("about") else full


def _label(s: Stored | None) -> str:
    return "" if s is None else _short(s.value, DIGITS[s.kind])


# The pictures


def _fields(s: Stored, top: int) -> tuple[list[str], int]:
    """The bits of the static form, what each is worth above it, and below them what they come to."""
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
    """One above the other where it is a fraction."""
    style = "fill='#444444' font-size='12' text-anchor='middle'"
    if "/" not in value:
        return [text(x, y + 28, value, style)]
    line = f"<path d='M{x - 12:g} {y + 15.5:g}H{x + 12:g}' stroke='#444444'/>"
    return [text(x, y + 12, "1", style), line, text(x, y + 28, value[2:], style)]


def _lines(s: Stored, asked: Number, written: str, top: int) -> tuple[list[str], int]:
    """Two number lines: how the grid widens at each power of two, and the neighbours close up."""
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
    """Three stretches between powers of two: each holds as many numbers as the one before, and is twice as long."""
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
    size = abs(_fraction(s.value)) if s.finite else (ends[-1] + ends[-2]) / 2
    parts.append(f"<circle cx='{place(size):.1f}' cy='{y}' r='6' fill='{ACCENT}'/>")
    return parts, y + 42


def _close_up(s: Stored, asked: Number, written: str, top: int) -> tuple[list[str], int]:
    """The stored number with its neighbours, drawn to scale, and where the number asked for would be."""
    here = _fraction(s.value)
    around = [(by, s.next(by)) for by in range(-8, 9)]
    known = [(by, other, _fraction(other.value)) for by, other in around if other is not None and other.finite]
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
            parts.append(_at(x + 10 * -by, y + 30, _label(other), "start" if by > 0 else "end"))
    parts.append(_at(WIDTH / 2, y + 50, f"stored: {_label(s)}", style="fill='#222222' font-weight='bold'"))
    if isinstance(asked, Fraction) and asked != here:
        x = place(asked)
        parts.append(f"<circle cx='{x:.1f}' cy='{y}' r='6' fill='{ACCENT}'/>")
        shown = written if len(written) < 24 else f"{written[:22]}\u2026"
        parts.append(_at(x, y - 22, f"asked for: {shown}", style=f"fill='{ACCENT}' font-weight='bold'"))
    return parts, y + 62


def _two(x: Fraction) -> str:
    """A power of two, or 0, in few signs."""
    if x.denominator == 1 and x < 10_000:
        return str(x)
    if x.numerator == 1 and x.denominator <= 64:
        return f"1/{x.denominator}"
    return power(x.numerator.bit_length() - x.denominator.bit_length())


def _many(n: int) -> str:
    return str(n) if n < 10_000 else power(n.bit_length() - 1)
