"""Mistakes and what is said of them; a mistake as a change of a right answer: it changes what it says, no more."""

import pytest

from course.judging.mistakes import changed, mistakes, properties

BY = 2


def line(x):
    y = x * BY
    return y + 1


def fall(n):
    return fall(n - 1) if n else 0


def test_wrong_answers_stand_with_what_is_said_of_them():
    assert mistakes((1, 2), "Too small.", "one", "That is a word.") == (
        ((1, 2), "Too small."),
        ("one", "That is a word."),
    )


def test_a_wrong_answer_of_which_nothing_is_said_is_refused():
    with pytest.raises(ValueError, match="follows the wrong answer number 2 is 3, and no sentence"):
        mistakes(1, "Too small.", 2, 3, "Too large.")
    with pytest.raises(ValueError, match="nothing is said of the last wrong answer, 2"):
        mistakes(1, "Too small.", 2)


def test_properties_stand_with_an_example_and_a_sentence():
    both = properties(1, bool, "It is nothing.", 2, callable, "It cannot be called.")
    assert [(one.example, one.holds, one.says) for one in both] == [
        (1, bool, "It is nothing."),
        (2, callable, "It cannot be called."),
    ]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((1, "It is nothing.", 2, bool, "It is nothing."), "an example, a predicate and a sentence are wanted"),
        ((1, bool, 2), "an example, a predicate and a sentence are wanted"),
        ((1, bool, "It is nothing.", 2), "the last property is incomplete: \\(2,\\)"),
    ],
)
def test_an_incomplete_property_is_refused(parts, says):
    with pytest.raises(ValueError, match=says):
        properties(*parts)


def test_a_part_is_replaced_and_the_right_answer_stays_as_it_is():
    assert changed(line, "+ 1", "- 1")(3) == 5
    assert changed(line, "x * BY", "x", "y + 1", "y")(3) == 3
    assert line(3) == 7


def test_the_changed_function_sees_the_names_of_its_module(monkeypatch):
    wrong = changed(line, "+ 1", "")
    monkeypatch.setitem(globals(), "BY", 10)
    assert wrong(3) == 30


def test_an_error_leads_to_the_line_in_the_right_answer():
    with pytest.raises(NameError) as caught:
        changed(line, "BY", "nothing")(3)
    assert caught.traceback[-1].path.samefile(__file__)
    assert caught.traceback[-1].lineno == line.__code__.co_firstlineno  # counted from 0: the line below `def`


@pytest.mark.parametrize(("old", "times"), [("z", 0), ("y", 2)])
def test_a_part_that_does_not_stand_there_once_is_refused(old, times):
    with pytest.raises(ValueError, match=f"'{old}' stands {times} times in line"):
        changed(line, old, "x")


def test_an_old_part_without_a_new_one_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        changed(line, "+ 1")


def test_a_function_that_calls_itself_is_refused():
    with pytest.raises(ValueError, match="fall calls itself"):
        changed(fall, "0", "1")
