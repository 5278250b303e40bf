"""The figure of the two loops: its walks against the recurrences, its words and picture against its walks."""

import re

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import LoopsExplorer

RATES = [0.02, 0.05, 0.1, 0.2, 0.3]


@pytest.fixture
def loops():
    return LoopsExplorer(lambda x: x**2 + 3 * x + 5, start=4.0, lowest=-1.5)


@pytest.mark.parametrize("rate", RATES)
def test_the_loop_that_clears_is_gradient_descent(loops, rate):
    """x + 3/2 is multiplied by 1 - 2 rate at each step."""
    expected = [-1.5 + 5.5 * (1 - 2 * rate) ** n for n in range(61)]
    assert loops.walk(rate, 60, clear=True)[0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rate", RATES)
def test_the_loop_that_forgets_steps_along_the_sum_of_all_slopes(loops, rate):
    x, piled, expected = 4.0, 0.0, [4.0]
    for _ in range(60):
        piled += 2 * x + 3
        x -= rate * piled
        expected.append(x)
    positions, grads = loops.walk(rate, 60, clear=False)
    assert positions == pytest.approx(expected, abs=1e-3)
    assert grads[-1] == pytest.approx(piled, abs=1e-3)


@pytest.mark.parametrize("rate", RATES)
def test_the_loop_that_forgets_never_comes_to_rest(loops, rate):
    late = loops.walk(rate, 60, clear=False)[0][30:]
    assert max(late) - min(late) > 10


def test_a_walk_is_cut_where_the_slider_stands(loops):
    positions, grads = loops.walk(0.1, 0, clear=True)
    assert (positions, grads) == ([4.0], [])
    assert [len(part) for part in loops.walk(0.1, 7, clear=False)] == [8, 7]


def test_the_words_tell_where_both_loops_are_and_what_their_grad_held(loops):
    assert loops.text(step=1) == (
        "Learning rate 0.1, step 1: the loop that clears is at x = 2.90, after a step with 11.00 in .grad; the loop "
        "that forgets to clear is at x = 2.90, after a step with 11.00 in .grad, which is still there and will push it "
        "by -1.10. The lowest point is at -1.5."
    )
    assert ".grad" not in loops.text(step=0)


def test_every_setting_has_its_own_words(loops):
    for name, (values, first, _) in loops.settings.items():
        assert first in values
        assert len({loops.text(**{name: value}) for value in values}) == len(values)


def test_both_walks_are_drawn_as_far_as_the_slider_stands_in_one_frame(loops):
    frames = set()
    for step in (0, 9, 60):
        axes = Figure().add_subplot()
        loops.draw(axes, step=step, rate=0.1)
        lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
        assert lines["clears"] == loops.walk(0.1, step, clear=True)[0]
        assert lines["forgets"] == loops.walk(0.1, step, clear=False)[0]
        frames.add((axes.get_xlim(), axes.get_ylim()))
    assert len(frames) == 1
    low, high = frames.pop()[1]
    assert low < min(lines["forgets"]) and max(lines["forgets"]) < high


def test_a_reader_without_a_kernel_sees_the_turn_and_the_end(loops):
    static = loops.static()
    words = [loops.text(), loops.text(step=60)]
    assert re.findall(r'<img alt="([^"]+)"', static["text/html"]) == words
    assert static["text/plain"] == "\n".join(words)


@pytest.mark.parametrize("step", [1, 9, 60])
def test_an_arrow_shows_how_far_the_pile_alone_pushes(loops, step):
    """The next step is that push, and the one of the new slope."""
    axes = Figure().add_subplot()
    loops.draw(axes, step=step, rate=0.1)
    arrow, words = axes.texts
    at = loops.walk(0.1, step, clear=False)[0][-1]
    if step < 60:
        after = loops.walk(0.1, step + 1, clear=False)[0][-1]
        assert arrow.xy[1] - 0.1 * (2 * at + 3) == pytest.approx(after, abs=1e-3)
    assert words.get_text() == f"pushed by .grad: {arrow.xy[1] - at:+.2f}"
