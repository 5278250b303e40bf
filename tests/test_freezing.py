"""The figure of frozen layers: what is kept and what gets a gradient, against what autograd must do."""

import re

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import FreezeExplorer
from course.figures.freezing import BACK, EXAMPLES, FRONT, LAYERS, WIDTH

RESULT, WEIGHTS = 4 * EXAMPLES * WIDTH, 4 * WIDTH * WIDTH


@pytest.mark.parametrize("frozen", range(LAYERS))
def test_frozen_at_the_front_keeps_the_results_from_the_input_of_the_first_layer_that_learns(frozen):
    kept, grads = FreezeExplorer().measure(frozen, FRONT)
    assert kept == [RESULT if layer >= frozen else 0 for layer in range(1, LAYERS + 1)]
    assert grads == [0] * frozen + [WEIGHTS] * (LAYERS - frozen)


@pytest.mark.parametrize("frozen", range(LAYERS))
def test_frozen_at_the_back_keeps_every_result(frozen):
    kept, grads = FreezeExplorer().measure(frozen, BACK)
    assert kept == [RESULT] * LAYERS
    assert grads == [WEIGHTS] * (LAYERS - frozen) + [0] * frozen


@pytest.mark.parametrize("end", [FRONT, BACK])
def test_where_all_is_frozen_nothing_is_kept(end):
    assert FreezeExplorer().measure(LAYERS, end) == ([0] * LAYERS, [0] * LAYERS)


def test_the_words_say_what_is_kept_and_what_gets_a_gradient():
    figure = FreezeExplorer()
    assert figure.text(frozen=5) == (
        "Frozen at the front: 5 layers of 6. Of the results, those of 2 layers are kept, 128 KiB; of the weights, "
        "those of 1 layer get gradients, 16 KiB."
    )
    assert figure.text(frozen=0, end=BACK).startswith("Frozen at the back: none of 6 layers. ")
    every = [figure.text(frozen=k, end=e) for k in range(LAYERS + 1) for e in (FRONT, BACK)]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("end", [FRONT, BACK])
def test_the_bars_are_as_high_as_the_numbers(end):
    figure, axes = FreezeExplorer(), Figure().add_subplot()
    figure.draw(axes, frozen=3, end=end)
    heights = [[bar.get_height() * 1024 for bar in bars] for bars in axes.containers]
    assert heights == list(map(list, figure.measure(3, end)))
    assert max(heights[0]) / 1024 < axes.get_ylim()[1]


def test_a_reader_without_a_kernel_sees_both_ends():
    static = FreezeExplorer().static()
    words = [FreezeExplorer().text(), FreezeExplorer().text(end=BACK)]
    assert re.findall(r'<img alt="([^"]+)"', static["text/html"]) == words
    assert static["text/plain"] == "\n".join(words)
