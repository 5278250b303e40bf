"""The figure of a GradScaler's scale: what it shows is PyTorch's scaler, what survives is what float16 holds."""

import math
import re

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import engine
from course.figures import ScalerTimeline
from course.figures.scaling import OUTLIER, SHRINKING, SPREAD, STEPS, WITH_OUTLIER, largest, timeline

SETTINGS = [(2.0**4, 5, SHRINKING), (2.0**24, 2, WITH_OUTLIER), (2.0**16, 20, WITH_OUTLIER)]
each_setting = pytest.mark.parametrize("setting", SETTINGS, ids=str)


@each_setting
def test_the_scales_are_those_of_pytorchs_scaler(setting):
    torch = pytest.importorskip("torch")
    first, interval, gradients = setting
    weight = torch.ones((), requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=first, growth_interval=interval)
    theirs = []
    for number in range(STEPS):
        theirs.append(scaler.get_scale())
        optimizer.zero_grad()
        scaler.scale(weight.half().float() * largest(number, gradients)).backward()
        scaler.step(optimizer)
        scaler.update()
    assert [step.scale for step in timeline(*setting)] == theirs


@each_setting
def test_a_step_is_skipped_above_the_band_and_loses_gradients_below_it(setting):
    for number, step in enumerate(timeline(*setting)):
        top = step.scale * largest(number, setting[2])
        assert step.skipped == (engine.tensor(top).half().item() == math.inf)
        assert (step.lost > 0) == (engine.tensor(top * SPREAD).half().item() == 0)
        if step.floor <= step.scale <= step.ceiling:
            assert not step.skipped and not step.lost


def test_an_outlier_lowers_the_band_for_one_step():
    plain, other = (timeline(2.0**16, 5, gradients) for gradients in (SHRINKING, WITH_OUTLIER))
    differing = [number for number in range(STEPS) if plain[number].ceiling != other[number].ceiling]
    assert differing == [OUTLIER] and other[OUTLIER].ceiling < plain[OUTLIER].ceiling


def test_the_words_tell_what_was_skipped_and_lost():
    assert ScalerTimeline().text() == (
        "First scale 2^16, growth interval 5, gradients shrinking: 5 of 60 steps are skipped (0, 16, 27, 38, 49); no "
        "gradient is lost. The last scale is 2^21."
    )
    assert "0 of 60 steps are skipped; 15 steps lose small gradients" in ScalerTimeline().text(first=4)


@each_setting
def test_the_picture_shows_the_scale_and_marks_the_steps(setting):
    figure, axes = ScalerTimeline(), Figure().add_subplot()
    first, *others = setting
    figure.draw(axes, **dict(zip(figure.settings, (int(math.log2(first)), *others), strict=True)))
    steps = timeline(*setting)
    scale, skipped, lost = axes.lines
    assert list(scale.get_ydata()) == [math.log2(step.scale) for step in steps]
    assert list(skipped.get_xdata()) == [number for number, step in enumerate(steps) if step.skipped]
    assert list(lost.get_xdata()) == [number for number, step in enumerate(steps) if step.lost]
    assert max(scale.get_ydata()) < axes.get_ylim()[1]


def test_a_reader_without_a_kernel_sees_three_settings():
    figure = ScalerTimeline()
    words = [figure.text(**values) for values in figure.stills]
    assert re.findall(r'<img alt="([^"]+)"', figure.static()["text/html"]) == words
