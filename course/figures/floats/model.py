"""A number as a floating-point type holds it: its bits, what they are worth, its neighbours, all of it in words."""

import re
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import engine

FORMATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}  # exponent, fraction
DIGITS = {"float16": 10, "bfloat16": 10, "float32": 10, "float64": 17}  # enough to tell neighbours apart
TYPED = "Type a number, such as 0.1, -3, 1e-8, 1/3, 2**-24, inf or nan."

Number = Fraction | float  # a float for inf, nan and -0 alone


class Stored(NamedTuple):
    """A pattern of bits, and what it stands for in a type by the definition of IEEE 754."""

    kind: str
    pattern: int

    @property
    def bits(self) -> str:
        return f"{self.pattern:0{1 + sum(FORMATS[self.kind])}b}"

    @property
    def fields(self) -> tuple[str, str, str]:
        """Return the bits of the sign, of the exponent and of the fraction."""
        e = 1 + FORMATS[self.kind][0]
        return self.bits[0], self.bits[1:e], self.bits[e:]

    @property
    def bias(self) -> int:
        """Return the number that is subtracted from the stored exponent."""
        return 2 ** (FORMATS[self.kind][0] - 1) - 1

    @property
    def octave(self) -> int:
        """Return the exponent as stored: which stretch between two powers of two this is."""
        return int(self.fields[1], 2)

    @property
    def part(self) -> Fraction:
        """Return what the fraction's bits are worth together, below 1."""
        return Fraction(int(self.fields[2], 2), 2 ** FORMATS[self.kind][1])

    @property
    def top(self) -> int:
        """Return the largest exponent of a finite number."""
        return 2 ** FORMATS[self.kind][0] - 2

    def gap(self, octave: int) -> Fraction:
        """Return the distance between neighbours in a stretch."""
        return Fraction(2) ** (max(octave, 1) - self.bias - FORMATS[self.kind][1])

    def begin(self, octave: int) -> Fraction:
        """Return where a stretch begins; the first begins at 0."""
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
        """Return the number so many places further up; None beyond the infinities, and for nan."""
        half = 2 ** sum(FORMATS[self.kind])
        end = (self.top + 1) << FORMATS[self.kind][1]
        size = self.pattern % half
        place = (-size if self.pattern >= half else size) + by
        if size > end or abs(place) > end:
            return None
        return Stored(self.kind, half - place if place < 0 else place)


def number(written: str) -> Number:
    """Read a number as typed, exactly. Raises ValueError."""
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
    """Round a number to a type, as the engine does."""
    try:
        rounded = float(asked)
    except OverflowError:
        rounded = float("inf") if asked > 0 else float("-inf")
    x: Any = engine.tensor([rounded], dtype=getattr(engine, kind))
    return Stored(kind, int(x.array.view(f"u{x.array.itemsize}")[0]))


def exactly(x: Number, most: int = 60) -> str:
    """Write a number in full where that takes no more than so many digits, else "about" and 17 of them."""
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
    """Write a power of two: 2 with a superscript."""
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
    """Put the value together from its three fields, in a sentence."""
    if not s.finite:
        return f"Together: {exactly(s.value)}."
    lead, n = exactly(s.part + bool(s.octave), 24), max(s.octave, 1) - s.bias
    minus = "-" if s.fields[0] == "1" else ""
    product = f"{minus}{lead.removeprefix('about ')} \u00d7 {power(n)}"
    value = exactly(s.value) if s.value else f"{minus}0"
    return f"Together: about {product}; {value}." if lead.startswith("about") else f"Together: {product} = {value}."


def flipped(s: Stored, place: int) -> Stored:
    """Flip one bit, counted from the left."""
    return Stored(s.kind, s.pattern ^ 1 << (len(s.bits) - 1 - place))


def written_of(s: Stored) -> str:
    """Return a text that gives this number again when it is typed."""
    full = exactly(s.value, 17)
    if s.finite and not s.value and s.bits[0] == "1":
        return "-0.0"
    return full if not full.startswith("about") else repr(float(s.value))


def title(written: str, s: Stored) -> str:
    return f"{written.strip()} in {s.kind}"


def in_words(written: str, asked: Number, s: Stored) -> str:
    """Say what is stored, by how much that is off, and name the neighbours."""
    said = [together(s)]
    if not s.finite:
        end = exactly(Stored(s.kind, ((s.top + 1) << FORMATS[s.kind][1]) - 1).value, 20)
        if not s.part and asked != s.value:
            said.append(f"{written} is too far out: the largest number of {s.kind} is {end}.")
        return " ".join(said)
    error = abs(Fraction(asked) - Fraction(s.value))
    if not error:
        said.append(f"That is exactly {written}." if exactly(s.value) != written else "Nothing was rounded.")
    else:
        said.append(f"It should be {written}: this is off by {_off(error)}.")
    before, after = (s.next(by) for by in (-1, 1))
    said.append(f"The number before is {label(before)}, the one after {label(after)}.")
    return " ".join(said)


def _short(x: Number, digits: int) -> str:
    """Write a number in so many digits, however small it is."""
    if isinstance(x, float):
        return f"{x}"
    found = Context(prec=digits).divide(Decimal(x.numerator), Decimal(x.denominator)).normalize()
    return f"{found:f}" if -5 <= found.adjusted() < max(digits, 7) else f"{found:e}".replace("e+", "e")


def _off(error: Fraction) -> str:
    full = exactly(error, 14)
    return f"about {_short(error, 3)}" if full.startswith("about") else full


def label(s: Stored | None) -> str:
    return "" if s is None else _short(s.value, DIGITS[s.kind])
