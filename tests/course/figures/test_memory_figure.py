"""The figure of a training step's memory: its bytes against what each kind must take, its words and picture by them."""

import gc
import re

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import MemoryTimeline
from course.figures.memory import ALL, GROUP, INPUTS, KINDS, LAYERS, MIB, WIDTH, timeline
from engine import sim

WEIGHTS = LAYERS * 4 * (WIDTH * WIDTH + WIDTH)
OPTIMIZERS = {"SGD": 0, "Adam": 2}


def of(kind, *settings, part=""):
    """The bytes of one kind at the moments whose names begin in a way."""
    return [m.taken[KINDS.index(kind)] for m in timeline(*settings) if m.name.startswith(part)]


@pytest.mark.parametrize("keep", [ALL, INPUTS])
@pytest.mark.parametrize(("optimizer", "copies"), OPTIMIZERS.items())
def test_parameters_stay_gradients_come_and_go_and_the_optimizers_state_comes_with_its_first_step(
    optimizer, copies, keep
):
    settings = (64, optimizer, keep)
    assert set(of("parameters", *settings)) == {WEIGHTS}
    assert set(of("gradients", *settings, part="forward")) == {0}
    growing = of("gradients", *settings, part="backward")[:LAYERS]
    assert growing == sorted(growing) and len(set(growing)) == LAYERS
    assert of("gradients", *settings, part="step") == [WEIGHTS] * 2
    assert of("gradients", *settings, part="zero_grad") == [0, 0]
    state = of("optimiser state", *settings)
    first = [m.name for m in timeline(*settings)].index("step")
    assert state == [0] * first + [copies * WEIGHTS] * (len(state) - first)


@over("batch", [64, 1024])
def test_the_forward_pass_adds_a_result_for_each_layer_or_for_each_group_of_layers(batch):
    result = 4 * batch * WIDTH
    for keep, each in ((ALL, 1), (INPUTS, GROUP)):
        kept = of("activations", batch, "SGD", keep, part="forward")[: LAYERS // each]
        assert kept == [result * (n + 2) for n in range(LAYERS // each)]  # the batch itself is there, too


def test_no_moment_holds_more_than_the_peak_since_the_one_before():
    for keep in (ALL, INPUTS):
        assert all(m.peak >= sum(m.taken) for m in timeline(256, "Adam", keep))


def test_measuring_leaves_nothing_on_the_device():
    timeline.cache_clear()
    gc.collect()
    before = sim.memory_allocated()
    gc.disable()
    try:
        timeline(128, "Adam", INPUTS)
        left = sim.memory_allocated() - before
    finally:
        gc.enable()
    assert left < 4 * WIDTH * WIDTH  # less than one weight


def test_the_words_give_the_peaks_and_the_fullest_moment():
    figure = MemoryTimeline()
    moments = timeline(1024, "SGD", ALL)
    first, second = (max(m.peak for m in part) / 2**20 for part in (moments[:27], moments[27:]))
    assert figure.text(batch=1024, optimizer="SGD") == (
        f"A batch of 1024, SGD, kept: everything. Peak of the first step {first:.2f} MiB, of the second "
        f"{second:.2f}. Fullest after 'backward, layer 12', in MiB: "
        "parameters 0.76, optimiser state 0.00, gradients 0.06, activations 7.01."
    )
    every = {
        figure.text(batch=b, optimizer=o, keep=k)
        for b in figure.settings["batch"][0]
        for o in OPTIMIZERS
        for k in (ALL, INPUTS)
    }
    assert len(every) == 20


@over("keep", [ALL, INPUTS])
def test_the_colours_are_as_high_as_the_bytes(keep):
    figure, axes = MemoryTimeline(), Figure().add_subplot()
    figure.draw(axes, **figure.start() | {"keep": keep})
    moments = timeline(256, "Adam", keep)
    tops = [round(1024**2 * area.get_paths()[0].vertices[:, 1].max()) for area in axes.collections]
    heights = [[sum(m.taken[: n + 1]) for m in moments] for n in range(len(KINDS))]
    assert tops == [max(each) for each in heights]
    assert list(axes.lines[0].get_ydata()) == [m.peak / MIB for m in moments for _ in range(2)]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["forward", "backward", "step"] * 2


def test_a_reader_without_a_kernel_sees_three_settings():
    figure = MemoryTimeline()
    words = [figure.text(**values) for values in figure.stills]
    assert [
        alt.replace("&#x27;", "'") for alt in re.findall(r'<img alt="([^"]+)"', figure.static()["text/html"])
    ] == words
