"""The cross entropy explorer: its numbers by the formulas, its words and picture by its numbers."""

import math
from itertools import product

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import CrossEntropyExplorer

NAMES = ("cat", "dog", "bird")
SCORES = [dict(zip(NAMES, scores, strict=True)) for scores in product([-10.0, 0.0, 1.0, 10.0], repeat=3)]


@over("scores", SCORES)
def test_chances_and_loss_are_softmax_and_minus_the_logarithm(scores):
    powers = [math.exp(score) for score in scores.values()]
    chances, loss = CrossEntropyExplorer().numbers(**scores)
    assert chances == pytest.approx([power / sum(powers) for power in powers], rel=1e-5)
    assert loss == pytest.approx(-math.log(powers[0] / sum(powers)), rel=1e-4, abs=1e-6)


def test_the_same_added_to_all_scores_changes_nothing():
    explorer = CrossEntropyExplorer()
    low, high = ({"cat": 2.0 + c, "dog": 1.0 + c, "bird": c} for c in (-1.0, 0.0))
    (chances, loss), (others, other) = explorer.numbers(**low), explorer.numbers(**high)
    assert [*chances, loss] == pytest.approx([*others, other], rel=1e-5)


def test_the_words_and_the_picture_give_the_numbers():
    explorer, axes = CrossEntropyExplorer(), Figure().add_subplot()
    assert explorer.text() == (
        "From score to chance: cat 2 gives 0.71, dog 1 gives 0.26, bird -1 gives 0.035. If it is a cat, the loss is "
        "0.349."
    )
    explorer.draw(axes, **explorer.start())
    assert [bar.get_width() for bar in axes.patches[::-1]] == pytest.approx(explorer.numbers(**explorer.start())[0])
    assert "0.349" in axes.get_xlabel()


@over("cat", [-10.0, -1.0, 4.0])
def test_the_loss_lies_on_its_curve_or_is_said_to_be_off_the_scale(cat):
    explorer, axes = CrossEntropyExplorer(), Figure().add_subplot()
    values = explorer.start() | {"cat": cat}
    explorer.draw(axes, **values)
    (curve,) = axes.child_axes
    chances, loss = explorer.numbers(**values)
    ((x,), (y,)) = curve.lines[1].get_data()
    assert (x, y) == pytest.approx((chances[0], min(loss, 6)))
    assert ("off the scale" in curve.get_title()) == (loss > 6)
