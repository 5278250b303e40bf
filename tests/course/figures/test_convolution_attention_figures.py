"""The figures of lesson 21: what they mark and say is what the engine's convolution, softmax and gradients give."""

import re
from itertools import product

import pytest
from over_tables import over

import engine
from course.figures import AttentionExplorer, SlidingKernelExplorer
from course.figures.sliding_kernel import DILATIONS, KERNELS, PADDINGS, PICTURE, STRIDES

SETTINGS = list(product(range(3), range(3), range(3), range(2)))  # kernel, stride, padding, dilation
NAMES = ("kernel", "stride", "padding", "dilation")


def marked(drawn):
    """How many boxes are outlined as strong."""
    return drawn.count("stroke-width='2.5'")


@over("setting", SETTINGS)
def test_meetings_are_those_of_the_convolution_and_of_its_gradients(setting):
    how = dict(zip(NAMES, setting, strict=True))
    figure = SlidingKernelExplorer()
    result, of_inputs, of_weights = figure.run(**how)
    y, w, x = engine.zeros_like(result), engine.zeros_like(of_weights), engine.zeros_like(of_inputs)
    for output, weight, place in figure.meetings(result, **how):
        if all(0 <= at < 6 for at in place):
            y[output] += KERNELS[how["kernel"]][weight] * PICTURE[place]
            w[weight] += PICTURE[place]
            x[place] += KERNELS[how["kernel"]][weight]
    assert engine.equal(y, result) and engine.equal(w, of_weights) and engine.equal(x, of_inputs)


def test_an_output_a_weight_and_an_input_are_told_in_numbers():
    figure = SlidingKernelExplorer()
    assert figure.text() == (
        "y[0, 1] sees 9 inputs, each through a weight of its own. "
        "The products that are not 0: 2 × 1 + (-2 × 1) + (-1 × 1) = -1."
    )
    assert figure.text(padding=1, place=0).startswith("y[0, 0] sees 4 inputs, each through a weight of its own. 5 of")
    assert figure.text(look=1, place=2).endswith("its gradient is the sum of those inputs, 7.")
    assert "25 outputs" in figure.text(look=1, place=0, kernel=1)
    assert "6 times it meets padding" in figure.text(look=1, place=1, padding=1)
    assert figure.text(look=2, kernel=0, stride=1, place=7) == (
        "x[1, 1] is seen by no output: the kernel steps over it, and its gradient is 0."
    )
    assert figure.text(look=2, place=0).startswith("x[0, 0] is seen by 1 of 16 outputs")


def test_what_counts_is_outlined_in_all_three_panels():
    figure = SlidingKernelExplorer()
    (drawn,) = figure.pictures()
    assert marked(drawn) == 9 + 9 + 1
    (drawn,) = figure.pictures(look=1, place=4)
    assert marked(drawn) == 16 + 1 + 16
    (drawn,) = figure.pictures(padding=2, look=2, place=14)
    assert ">-2<" in drawn and marked(drawn) == 1 + 9 + 9


def test_each_place_and_each_click_is_within_what_there_is():
    figure = SlidingKernelExplorer()
    for setting in SETTINGS:
        for look in range(3):
            values = dict(zip(NAMES, setting, strict=True)) | {"look": look, "place": 99}
            shown = figure.at(**values)
            assert shown.values["place"] == len(shown.places["place"]) - 1
            numbers = sorted(map(int, re.findall(r"data-number='(\d+)'", shown.pictures[0])))
            assert numbers == list(range(len(shown.clicks)))
    assert (STRIDES, PADDINGS, DILATIONS) == ((1, 2, 3), (0, 1, 2), (1, 2))


# Attention

WORDS = "the cat ate then it slept".split()
KINDS = engine.tensor([2, 0, 1, 2, 3, 1])
KEY = engine.nn.functional.one_hot(KINDS, 4).float()
QUERY = KEY @ engine.tensor([[0.0, 4, 0, 0], [2, 0, 0, 4], [0, 4, 0, 0], [4, 0, 0, 0]])
VALUE = engine.tensor([[0.0, 0], [10, 0], [0, 10], [0, 0], [0, 0], [0, 10]])


@over("mask", [0, 1])
def test_the_mix_is_that_of_the_engines_attention_and_the_sum_of_a_column_is_the_gradient_of_what_is_given(mask):
    figure = AttentionExplorer(WORDS, QUERY, KEY, VALUE)
    value = VALUE.clone().requires_grad_()
    mix = engine.nn.functional.scaled_dot_product_attention(QUERY, KEY, value, is_causal=bool(mask))
    _, weights, found = figure.run(mask=mask)
    assert engine.allclose(found, mix.detach(), atol=1e-5)
    mix.sum().backward()
    assert engine.allclose(weights.sum(dim=0)[:, None].expand(6, 2), value.grad, atol=1e-5)


def test_a_word_that_asks_and_one_that_is_asked_are_told_in_numbers():
    figure = AttentionExplorer(WORDS, QUERY, KEY, VALUE)
    assert figure.text() == (
        '"it" asks. Scores: the 0, cat 2, ate 0, then 0, it 0, slept 0. Weights: the 0.08, cat 0.60, ate 0.08, then '
        "0.08, it 0.08, slept 0.08. Its mix: 0.60 × [10, 0] + 0.08 × [0, 10] + 0.08 × [0, 10] = [5.96, 1.61]."
    )
    assert "Masked: then, it, slept. Weights: the 0.21, cat 0.58, ate 0.21." in figure.text(mask=1, word=2)
    assert figure.text(look=1, word=1).endswith("the gradient of what it gives is the sum, 1.14.")
    assert "cat 1.00" in figure.text(times=4)


def test_heads_are_chosen_and_the_stills_have_their_words():
    two = AttentionExplorer(WORDS, *(engine.stack([t, t.flip(0)]) for t in (QUERY, KEY, VALUE)))
    assert [control.name for control in two.controls][0] == "head" and two.text(head=1) != two.text(head=0)
    figure = AttentionExplorer(WORDS, QUERY, KEY, VALUE)
    static = figure.static()
    assert static["text/html"].count("<img alt=") == len(figure.stills) == len(static["text/plain"].split("\n"))
    for look in range(2):
        shown = figure.at(look=look)
        assert set(map(int, re.findall(r"data-number='(\d+)'", shown.pictures[0]))) == set(range(len(shown.clicks)))


def test_tables_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="a row for each word"):
        AttentionExplorer(WORDS[:5], QUERY, KEY, VALUE)
