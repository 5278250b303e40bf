"""An attempt on its way: what goes along, what cannot, and what is told of what it did there."""

import pickle
import threading

import pytest
from over_tables import over

pytest.importorskip("cloudpickle")

import engine
from course.process import attempts, judged


def test_answers_with_a_graph_are_sent_as_what_they_hold():
    x = engine.ones(2, requires_grad=True)
    sent = pickle.loads(attempts.packed({"a": (x * 2, [x * 3]), "b": x}))
    assert (sent["a"][0].tolist(), sent["a"][1][0].tolist(), sent["b"].tolist()) == ([2, 2], [3, 3], [1, 1])
    assert sent["b"].requires_grad and not sent["a"][0].requires_grad and not sent["a"][1][0].requires_grad


def in_itself():
    held = []
    held.append(held)
    return held


def with_a_graph():
    x = engine.ones(2, requires_grad=True) * 2
    return lambda: x


@over(
    "make, says",
    [
        (in_itself, "cannot be sent to the check (it contains itself)"),
        (threading.Lock, "cannot be sent to the check (cannot pickle '_thread.lock' object)"),
        (with_a_graph, "It uses a result that was computed elsewhere in the notebook."),
    ],
)
def test_what_cannot_be_sent_is_told_with_the_reason(make, says):
    with pytest.raises(Exception) as error:
        attempts.packed(make())
    assert says in attempts.not_packed(error.value)


def raising(error):
    def division_backward(arriving, x, y):
        raise error

    return division_backward


@over(
    "packed, message",
    [
        (b"no pickle", "It could not be sent to the check (UnpicklingError: "),
        (raising(SystemExit()), "It ended Python with SystemExit."),
        (raising(KeyboardInterrupt()), "It ended Python with KeyboardInterrupt."),
    ],
)
def test_how_an_attempt_has_ended_is_told(packed, message):
    packed = packed if isinstance(packed, bytes) else attempts.packed(packed)
    answer = attempts.known(attempts.judged("05.3", False, "", packed))
    assert answer["state"] == "not yet" and answer["message"].startswith(message)


@over(
    "printed, shown",
    [
        ("", ""),
        ("a\nb\n\n", "a\nb\n"),
        ("\n".join("0123456789"), "\n".join("0123456789")),
        ("\n".join("0123456789a"), "\n".join("0123456789") + "\n..."),
        ("x" * 1000, "x" * 1000),
        ("x" * 1001, "x" * 1000 + "\n..."),
    ],
)
def test_of_what_is_printed_the_beginning_is_shown(printed, shown):
    assert attempts.beginning(printed) == shown


def test_where_work_is_graded_the_course_is_there_and_does_nothing():
    finder = judged._Nothing()
    assert finder.find_spec("numpy") is None and finder.find_spec("courses.a") is None
    module = finder.create_module(finder.find_spec("course.figures.curves"))
    assert isinstance(module.curves(1, x=2).value(3).shown, judged._Silent)
    with pytest.raises(AttributeError):
        module.__wrapped__  # noqa: B018
