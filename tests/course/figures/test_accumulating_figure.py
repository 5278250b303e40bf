"""The figure of gradient accumulation: its sums against a formula, its words and picture against its sums."""

import itertools

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import AccumulationTimeline
from course.figures.accumulating import EXAMPLES, SIZES, WAYS, batch

ALL = EXAMPLES // min(SIZES)


def by_hand(x, y):
    """The gradient of the mean of (slope * x + offset - y)**2 where both are 0, as a formula."""
    return (-2 * x * y).mean().item(), (-2 * y).mean().item()


def test_the_whole_batch_has_the_gradient_of_the_formula():
    assert AccumulationTimeline().whole() == pytest.approx(by_hand(*batch()), rel=1e-5)


@over("size", SIZES)
def test_what_is_added_is_each_parts_own_gradient(size):
    x, y = batch()
    places = AccumulationTimeline().path(size, "as it is", ALL)
    for number, (part_x, part_y) in enumerate(zip(x.split(size), y.split(size), strict=True)):
        step = [end - begin for begin, end in zip(places[number], places[number + 1], strict=True)]
        assert step == pytest.approx(by_hand(part_x, part_y), rel=1e-4, abs=1e-5)


@over("size", SIZES)
def test_only_weighting_always_gives_the_gradient_of_the_whole_batch(size):
    figure, parts = AccumulationTimeline(), -(-EXAMPLES // size)
    assert figure.away(size, "weighted by its size", ALL) < 1e-5
    assert (figure.away(size, "divided by the parts", ALL) < 1e-5) == (EXAMPLES % size == 0)
    if EXAMPLES % size == 0:
        assert figure.away(size, "as it is", ALL) == pytest.approx(parts - 1, abs=1e-5)


@over("size, way", itertools.product(SIZES, WAYS))
def test_words_and_picture_follow_the_calls(size, way):
    figure, parts = AccumulationTimeline(), -(-EXAMPLES // size)
    for calls in range(ALL + 1):
        axes = Figure().add_subplot()
        figure.draw(axes, size=size, way=way, calls=calls)
        assert [text.get_text() for text in axes.texts if text.get_text()] == list(
            map(str, range(1, min(calls, parts) + 1))
        )
        a, b = figure.path(size, way, calls)[-1]
        assert f"After {min(calls, parts)} of {parts} calls .grad is ({a:.2f}, {b:.2f})" in figure.text(
            size=size, way=way, calls=calls
        )


def test_words_say_when_the_gradient_is_that_of_the_whole_batch():
    figure = AccumulationTimeline()
    told = [figure.text(**still).endswith("it is that gradient.") for still in figure.stills]
    assert told == [False, True, False, True]
