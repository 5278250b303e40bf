"""What lessons measure: what notes keep, counted once; the highest mark; the shortest time."""

import pytest

import engine
from course import measuring


def test_what_two_nodes_keep_together_is_counted_once_and_what_is_there_anyway_not_at_all():
    x = engine.ones(256, 1024)
    w = engine.ones(1024, 256, requires_grad=True)
    once = engine.tanh(x @ w)
    twice = engine.tanh(once @ engine.ones(256, 256))
    assert measuring.kept(once, besides=[x, w]) == 0.25  # the result of tanh; its product is not kept
    assert measuring.kept(once) == 0.25 + 1  # and x, for the slope of w
    assert measuring.kept(twice, besides=[x, w]) == 0.25 + 0.25 + 0.25  # two results, and the table in the middle


def test_without_notes_nothing_is_kept():
    with engine.no_grad():
        assert measuring.kept(engine.ones(3, requires_grad=True).exp()) == 0


def test_the_highest_mark_is_that_of_arrays_alive_at_one_time():
    def work():
        for _ in range(5):
            engine.ones(1024, 1024)

    assert 4 <= measuring.highest_mark(work) < 9
    with pytest.raises(ZeroDivisionError):
        measuring.highest_mark(lambda: 1 / 0)
    assert measuring.highest_mark(lambda: None) < 1


def test_the_shortest_of_several_times_is_taken(monkeypatch):
    marks = iter([0.0, 0.003, 1.0, 1.001, 2.0, 2.002])
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: next(marks))
    assert measuring.shortest(lambda: None, times=3) == pytest.approx(1.0)
