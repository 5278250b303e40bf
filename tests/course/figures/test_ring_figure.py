"""The figure of lesson 20: its messages do what they are said to do, and its times are those of the formulas."""

import math
import re

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import engine
from course.figures import RingExplorer, beyond
from course.figures.ring import ONE, RING, TREE, WAYS, messages, seconds, steps, told
from course.judging import exercises, pretend

CHECKS = exercises.checks("20")
each_way = pytest.mark.parametrize("way", WAYS)
WRITTEN = {ONE: CHECKS.one_to_all, TREE: CHECKS.tree, RING: CHECKS.ring}


@each_way
@pytest.mark.parametrize("n", [2, 4, 8])
def test_who_carries_out_the_messages_has_the_sum_on_all_ranks(way, n):
    held = [[10**rank for _ in range(n)] for rank in range(n)]
    for step in range(steps(way, n)):
        now = [m for m in messages(way, n) if m.step == step]
        assert len({m.sender for m in now}) == len({m.receiver for m in now}) == len(now)
        before = [list(parts) for parts in held]
        for m in now:
            for part in range(n) if m.part is None else [m.part]:
                held[m.receiver][part] = before[m.sender][part] + (held[m.receiver][part] if m.adds else 0)
    assert held == [[sum(10**rank for rank in range(n))] * n] * n


@each_way
@pytest.mark.parametrize("n", [2, 4, 8])
def test_they_are_as_many_as_those_of_the_function_in_the_lesson(way, n):
    def work(link):
        x = engine.ones(8)
        WRITTEN[way](x, link)
        return x.tolist()

    found, links = pretend.run(n, work)
    assert found == [[n] * 8] * n
    assert max(link.steps for link in links) == steps(way, n)
    each = 32 // n if way == RING else 32
    assert [link.bytes for link in links] == [each * sum(m.sender == r for m in messages(way, n)) for r in range(n)]


def test_times_are_those_of_the_table_in_the_lesson():
    for n in (2, 4, 8):
        for size, latency, bandwidth in ((1e3, 1e-5, 1e9), (1e8, 1e-6, 1e10)):
            given = n, size, latency, bandwidth
            assert seconds(ONE, *given) == pytest.approx(2 * (n - 1) * (latency + size / bandwidth))
            assert seconds(TREE, *given) == pytest.approx(2 * math.log2(n) * (latency + size / bandwidth))
            assert seconds(RING, *given) == pytest.approx(2 * (n - 1) * (latency + size / n / bandwidth))


def test_what_the_lesson_asks_for_is_to_be_found():
    figure = RingExplorer()
    quickest = {}
    for size in figure.settings["size"][0]:
        times = figure.times(**figure.start() | {"ranks": 8, "size": size})
        quickest[size] = min(times, key=times.get)
    assert quickest == {"1 kB": TREE, "10 kB": TREE, "100 kB": RING, "1 MB": RING, "10 MB": RING, "100 MB": RING}
    times = {n: figure.times(**figure.start() | {"ranks": n, "size": "100 MB"}) for n in (4, 8)}
    assert [round(times[n][RING], 3) for n in (4, 8)] == [0.150, 0.175]
    assert [round(times[n][ONE], 1) for n in (4, 8)] == [0.6, 1.4]


def test_the_words_name_steps_times_and_the_quickest():
    figure = RingExplorer()
    assert figure.text() == (
        "4 ranks, 1 MB, 10 µs and 1 GB/s. One to all: 6 steps of 1.01 ms, 6.06 ms. Tree: 4 steps of 1.01 ms, 4.04 ms. "
        "Ring: 6 steps of 260 µs, 1.56 ms. The ring is the quickest."
    )
    assert figure.text(ranks=2, size="1 kB", latency="1 ms").endswith("alike.")
    assert [told(time) for time in (1.5, 0.0125, 2.5e-6)] == ["1.5 s", "12.5 ms", "2.5 µs"]
    words = [f"{title}. {figure.text(**still)}" for title, still in zip(figure.titles, figure.stills, strict=True)]
    assert figure.static()["text/plain"].split("\n") == words
    assert len(re.findall("<img", figure.static()["text/html"])) == len(words)


@over("n", [2, 4, 8])
def test_the_picture_has_an_arrow_for_each_message_on_one_clock(n):
    axes = Figure().add_subplot()
    RingExplorer().draw(axes, **RingExplorer().start() | {"ranks": n})
    lines = [line for c in axes.collections if hasattr(c, "get_segments") for line in c.get_segments()]
    assert len(lines) == sum(len([*messages(way, n)]) for way in WAYS)
    assert axes.get_xlabel() == "time in ms" and len(axes.get_yticks()) == 3 * n


@over("kind", beyond.DRAWN)
def test_each_picture_of_what_lies_beyond_has_words_and_is_drawn(kind):
    axes = Figure().add_subplot()
    beyond.DRAWN[kind](axes)
    assert len(axes.patches) >= 16 and len(beyond.WORDS[kind].split()) > 10
