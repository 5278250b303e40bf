"""The float explorer: bits, neighbours and sums against NumPy and ml_dtypes, and its words against these."""

import math
import re
from fractions import Fraction
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import pytest
from over_tables import over

from course.figures import FloatExplorer
from course.figures.floats.model import (
    FORMATS,
    TYPED,
    Stored,
    exactly,
    flipped,
    number,
    stored,
    told,
    worth,
    written_of,
)

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}
WRITTEN = (
    "0.1 0.5 1 1.001 -3.14159 100 257 2048 2049 65504 65519 65520 70000 16777217 1e-5 1e-8 6e-8 1e-42 5e-324 0 -0 1/3 "
    "2**-24 -2**-14 1e39 1e309 inf -inf nan"
).split()
CASES = [(kind, written) for kind in FORMATS for written in WRITTEN]
SVG = "{http://www.w3.org/2000/svg}"


def as_number(x):
    """A Python float, inf where it is too large."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def rounded(written, kind):
    with np.errstate(over="ignore"):
        return np.array(as_number(number(written))).astype(TYPES[kind])


@over("kind, written", CASES)
def test_the_bits_are_those_of_the_stored_number(kind, written):
    s, wanted = stored(number(written), kind), rounded(written, kind)
    if written == "nan":
        assert math.isnan(s.value)
    else:
        assert as_number(s.value) == float(wanted)
        assert s.pattern == int(wanted.view(f"u{wanted.itemsize}"))


@over("kind, written", CASES)
def test_what_the_bits_are_worth_adds_up_to_the_number(kind, written):
    s = stored(number(written), kind)
    if not s.finite:
        return

    def total(place):
        values = [value for bit, value in zip(s.fields[place], worth(s)[place], strict=True) if bit == "1"]
        raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
        return sum(
            (Fraction(2) ** int(v[1:].translate(raised)) if "⁻" in v else Fraction(v) for v in values), Fraction(0)
        )

    exponent, fraction = total(1), total(2)
    power = Fraction(2) ** int(max(exponent, 1) - s.bias)
    assert abs(s.value) == power * (fraction + (exponent > 0))
    assert (s.bits[0] == "1") == (math.copysign(1, rounded(written, kind)) < 0)


@over("kind, written", CASES)
def test_nothing_lies_between_the_neighbours(kind, written):
    s = stored(number(written), kind)
    here = rounded(written, kind)
    for by in (-1, 1):
        beside = s.next(by)
        if math.isnan(here) or (math.isinf(here) and by * here > 0):
            assert beside is None
        else:
            with np.errstate(over="ignore"):
                wanted = np.nextafter(here, TYPES[kind](by * math.inf))
            assert as_number(beside.value) == float(wanted)


def test_the_grid_is_half_as_wide_below_a_power_of_two():
    for kind, (_, fraction) in FORMATS.items():
        one = stored(Fraction(1), kind)
        assert one.next(1).value - 1 == Fraction(2) ** -fraction == one.gap(one.octave)
        assert 1 - one.next(-1).value == Fraction(2) ** -(fraction + 1) == one.gap(one.octave - 1)


@over("kind, written", CASES)
def test_the_words_tell_the_exact_value_and_by_how_much_it_is_off(kind, written):
    asked, words = number(written), FloatExplorer().text(kind=kind, written=written)
    s = stored(asked, kind)
    assert words.startswith(f"{written} in {kind}. Sign ")
    for said in told(s):
        assert said in words
    if not s.finite:
        assert "Together: " in words and ("too far out" in words) == (s.value != asked and written != "nan")
    elif Fraction(asked) == s.value:
        assert "off by" not in words
    else:
        off = re.search(r"off by (about )?(\S+)\.( |$)", words)
        assert Fraction(off[2]) == pytest.approx(abs(Fraction(asked) - s.value), rel=1e-2)
        assert off[1] or Fraction(off[2]) == abs(Fraction(asked) - s.value)


def test_a_number_is_told_in_full_where_that_is_short():
    assert exactly(Fraction(0.1)) == "0.1000000000000000055511151231257827021181583404541015625"
    assert exactly(Fraction(0.1), 20) == "about 0.10000000000000001"
    assert exactly(Fraction(-65504)) == "-65504" and exactly(Fraction(0)) == "0"
    assert exactly(Fraction(2) ** -24, 20) == "5.9604644775390625e-8"


def test_what_is_no_number_is_said_and_nothing_is_drawn():
    for typed in ("", "abc", "1/0", "1e99999999", "2**99999", "1" * 70, "0x10", "nan/2"):
        assert FloatExplorer().text(written=typed) == TYPED
        assert TYPED.split(",")[0] in FloatExplorer().image(written=typed).decode()
    assert number("−3") == -3 and number(" 1_000 ") == 1000 and number("2^-1") == Fraction(1, 2)


@over("kind, written", CASES)
def test_the_picture_shows_every_bit_and_is_well_formed(kind, written):
    texts = [
        t.text for t in ElementTree.fromstring(FloatExplorer().image(kind=kind, written=written)).iter(f"{SVG}text")
    ]
    bits = "".join(t for t in texts if t in ("0", "1"))
    assert stored(number(written), kind).bits in bits or set(stored(number(written), kind).bits) <= set(bits)
    assert texts[0] == f"{written} in {kind}"


def test_all_letters_are_large_enough():
    for kind, written in CASES:
        drawn = FloatExplorer().image(kind=kind, written=written).decode()
        assert min(map(int, re.findall(r"font-size='(\d+)'", drawn))) >= 12


def test_without_a_kernel_three_pictures_with_titles_and_words_are_there():
    shown = FloatExplorer().static()
    assert shown["text/html"].count("<img alt=") == 3
    assert all(
        f"{title}. Sign" in shown["text/plain"] for title in ("0.1 in float16", "0.1 in bfloat16", "70000 in float16")
    )


@over("kind", FORMATS)
def test_each_bit_can_be_flipped_and_what_is_typed_then_gives_the_same_bits(kind):
    begin = stored(Fraction(1, 10), kind)
    for place in range(len(begin.bits)):
        s = flipped(begin, place)
        assert [n for n, (a, b) in enumerate(zip(s.bits, begin.bits, strict=True)) if a != b] == [place]
        if s.finite:
            assert stored(number(written_of(s)), kind) == s


def test_the_widget_follows_what_is_typed_chosen_and_pressed():
    pytest.importorskip("anywidget")
    figure = FloatExplorer()
    widget = figure.widget()
    assert widget.bits == "0010111001100110"
    widget._handle_custom_msg({"flip": 0}, [])
    assert (widget.bits, widget.written) == ("1010111001100110", "-0.0999755859375")
    widget._handle_custom_msg({"by": 1}, [])
    assert widget.written == "-0.09991455078125"
    widget.kind = "float64"
    assert len(widget.bits) == 64 and widget.written == "-0.09991455078125"
    widget.written = "hello"
    assert widget.wrong and widget.words == TYPED and len(widget.bits) == 64
    widget.set_trait("written", "nan")
    assert not widget.wrong and widget.words == "Together: nan."
    pattern = widget.bits
    widget._handle_custom_msg({"flip": 63}, [])  # another nan
    assert widget.bits == pattern[:-1] + "1" and widget.written == "nan"
    widget._handle_custom_msg({"by": 1}, [])
    assert widget.bits == pattern[:-1] + "1"


def test_a_pattern_beyond_the_infinities_is_none():
    top = Stored("float16", 0b0_11111_0000000000)
    assert top.next(1) is None and top.next(-1).value == 65504
