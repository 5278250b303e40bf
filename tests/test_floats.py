"""The float explorer: its bits and neighbours against NumPy and ml_dtypes, its words and its picture against these."""

import math

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import FloatExplorer
from course.figures.floats import FORMATS, NUMBERS, stored

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
CASES = [(kind, number) for kind in FORMATS for number in NUMBERS]


def from_bits(s, kind):
    """The number that sign, exponent and fraction stand for, by the definition of IEEE 754."""
    e, f = FORMATS[kind]
    exponent, fraction, bias = int(s.exponent, 2), int(s.fraction, 2), 2 ** (e - 1) - 1
    if exponent == 2**e - 1:
        return math.inf
    if exponent == 0:
        return fraction * 2.0 ** (1 - bias - f)
    return (2**f + fraction) * 2.0 ** (exponent - bias - f)


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_the_bits_are_those_of_the_stored_number(kind, number):
    s = stored(number, kind)
    with np.errstate(over="ignore"):
        assert s.value == float(np.array(number).astype(TYPES[kind]))
    assert from_bits(s, kind) == s.value


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_nothing_lies_between_the_neighbours(kind, number):
    s = stored(number, kind)
    if math.isinf(s.value):
        assert math.isnan(s.above) and math.isnan(s.below)
        return
    for neighbour in (s.below, s.above):
        if math.isfinite(neighbour):
            middle = (neighbour + s.value) / 2
            assert float(np.array(middle).astype(TYPES[kind])) in (neighbour, s.value)
    assert s.above > s.value and (math.isnan(s.below) or s.below < s.value)


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_the_words_name_what_is_stored(kind, number):
    s, words = stored(number, kind), FloatExplorer().text(kind=kind, number=number)
    assert f"exponent {s.exponent}, fraction {s.fraction}." in words
    if math.isinf(s.value):
        assert "too large: stored is inf" in words
    elif s.value == 0:
        assert "too small: stored is 0" in words
    else:
        assert ("exactly" in words) == (s.value == number) == ("off by" not in words)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_picture_shows_every_bit_and_the_number(kind):
    figure, axes = FloatExplorer(), Figure().add_subplot()
    figure.draw(axes, kind=kind, number=0.1)
    texts = [text.get_text() for text in axes.texts]
    s = stored(0.1, kind)
    assert "".join(t for t in texts if t in "01") == s.sign + s.exponent + s.fraction
    assert "0.1" in texts and len(axes.patches) == 1 + sum(FORMATS[kind])


def test_without_a_kernel_three_pictures_with_their_words_are_there():
    shown = FloatExplorer().static()
    assert shown["text/html"].count("<img alt=") == 3
    assert "0.1 in float16" in shown["text/plain"] and "70000 in float16" in shown["text/plain"]
