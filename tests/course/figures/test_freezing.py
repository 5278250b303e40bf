"""The figure of frozen layers: what is kept and what gets a gradient, against what autograd must do."""

import re

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import FreezeExplorer
from course.figures.freezing import EXAMPLES, LAYERS, WIDTH

RESULT, WEIGHTS = 4 * EXAMPLES * WIDTH, 4 * WIDTH * WIDTH


@over("front", range(LAYERS))
def test_frozen_at_the_front_keeps_the_results_from_the_input_of_the_first_layer_that_learns(front):
    kept, grads = FreezeExplorer().measure(front, 0)
    assert kept == [RESULT if layer >= front else 0 for layer in range(1, LAYERS + 1)]
    assert grads == [0] * front + [WEIGHTS] * (LAYERS - front)


@over("back", range(LAYERS))
def test_frozen_at_the_back_keeps_every_result(back):
    kept, grads = FreezeExplorer().measure(0, back)
    assert kept == [RESULT] * LAYERS
    assert grads == [WEIGHTS] * (LAYERS - back) + [0] * back


def test_frozen_at_both_ends_keeps_from_the_front_on():
    kept, grads = FreezeExplorer().measure(2, 3)
    assert kept == [0] + [RESULT] * 5
    assert grads == [0, 0, WEIGHTS, 0, 0, 0]


@over("front, back", [(LAYERS, 0), (0, LAYERS), (4, 3), (LAYERS, LAYERS)])
def test_where_all_is_frozen_nothing_is_kept(front, back):
    assert FreezeExplorer().measure(front, back) == ([0] * LAYERS, [0] * LAYERS)
    assert FreezeExplorer().text(front=front, back=back).startswith("Frozen: all layers. ")


def test_the_words_say_what_is_kept_and_what_gets_a_gradient():
    figure = FreezeExplorer()
    assert figure.text(front=5) == (
        "Frozen: layers 1, 2, 3, 4 and 5. Of the results, those of 2 layers are kept, 128 KiB; of the weights, those "
        "of 1 layer get gradients, 16 KiB."
    )
    assert figure.text(front=0).startswith("Frozen: no layer. ")
    assert figure.text(front=0, back=1).startswith("Frozen: layer 6. ")
    every = {
        figure.text(front=front, back=back)
        for front in range(LAYERS + 1)
        for back in range(LAYERS + 1)
        if front + back <= LAYERS
    }
    assert len(every) == sum(range(1, LAYERS + 2)) + 1 - (LAYERS + 1)  # all frozen comes about in LAYERS + 1 ways


@over("front, back", [(3, 0), (0, 3), (1, 2)])
def test_the_bars_are_as_high_as_the_numbers(front, back):
    figure, axes = FreezeExplorer(), Figure().add_subplot()
    figure.draw(axes, front=front, back=back)
    heights = [[bar.get_height() * 1024 for bar in bars] for bars in axes.containers]
    assert heights == list(map(list, figure.measure(front, back)))
    assert max(heights[0]) / 1024 < axes.get_ylim()[1]


def test_a_reader_without_a_kernel_sees_both_ends():
    static = FreezeExplorer().static()
    words = [FreezeExplorer().text(), FreezeExplorer().text(front=0, back=3)]
    assert re.findall(r'<img alt="([^"]+)"', static["text/html"]) == words
    assert static["text/plain"] == "\n".join(words)
