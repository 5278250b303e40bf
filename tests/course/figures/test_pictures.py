"""Pictures of measurements: what they say in words, for those who cannot see them, is what was measured."""

import numpy as np
import pytest

import engine
from course import pictures


@pytest.fixture
def said(monkeypatch):
    found = []
    monkeypatch.setattr(pictures, "show", lambda figure, words: found.append((figure, words)))
    return found


def test_rows_of_dots_say_from_where_to_where_each_row_goes(said):
    pictures.rows_of_dots(
        {"% right": {"one": [80.0, 91.25], "other": [70.0]}, "loss": {"one": [2.0], "other": [1.0, 0.5]}}
    )
    figure, words = said[0]
    assert words == (
        "A row of dots for each of 2. % right: one from 80 to 91.2; other from 70 to 70. "
        "loss: one from 2 to 2; other from 0.5 to 1."
    )
    assert [len(line.get_xdata()) for axes in figure.axes for line in axes.lines] == [2, 1, 1, 2]


def test_curves_say_where_they_begin_end_and_are_lowest(said):
    pictures.curves({"validation": [2.0, 1.0, 3.0]}, "loss")
    assert said[0][1] == "Curves of the loss by epoch: validation from 2 to 3, lowest (1) at 2."


def test_rates_are_those_of_the_schedulers(said):
    halved = {"StepLR": lambda o: engine.optim.lr_scheduler.StepLR(o, step_size=2, gamma=0.5)}
    pictures.rates(halved, lr=0.4, epochs=5)
    (line,) = said[0][0].axes[0].lines
    assert list(line.get_ydata()) == pytest.approx([0.4, 0.4, 0.2, 0.2, 0.1])


def test_lines_say_where_they_have_a_corner(said):
    across = [i / 10 for i in range(-20, 21)]
    pictures.lines(across, {"bent": [max(x, 0.0) for x in across], "not": [3 * x - 1 for x in across]})
    figure, words = said[0]
    assert words == "Functions of one number. bent: a line with a corner at 0. not: a straight line."
    pictures.lines(across, {"between two places": [max(x - 0.52, 0.0) - max(-x - 1, 0.0) for x in across]})
    assert said[1][1] == "Functions of one number. between two places: a line with corners at -1, 0.5."
    assert list(figure.axes[0].lines[-1].get_ydata()) == pytest.approx([max(x, 0.0) for x in across])


def test_shares_follow_each_other_and_are_said_in_percent(said):
    pictures.shares({"forward": 1.0, "backward": 2.5, "step": 0.5}, "seconds")
    figure, words = said[0]
    assert words == "Bars one after the other, of 4 seconds: forward 25 %, backward 62 %, step 12 %."
    bars = [(bar.get_x(), bar.get_width()) for bar in figure.axes[0].patches]
    assert bars == [(0, 1), (1, 2.5), (3.5, 0.5)]


def test_looks_say_how_much_each_head_looks_at_itself_and_at_the_letter_before(said):
    back = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    own = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    pictures.looks("a b", {"head 1": np.array(back), "head 2": np.array(own)}, "after 3 steps")
    figure, words = said[0]
    assert words == (
        'Who looks at whom in "a b", after 3 steps; on the mean, head 1: 50 % at itself, 75 % at the letter before; '
        "head 2: 100 % at itself, 0 % at the letter before."
    )
    drawn = [axes.images[0].get_array().tolist() for axes in figure.axes if axes.images]
    assert drawn == [back, own] and [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "␣", "b"]
