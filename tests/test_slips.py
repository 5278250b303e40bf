"""Slips: one small mistake each, a name for it, and a table from which no answer can be read."""

import os

import pytest

from course import exercises, judge, slips
from course.exercises import find


def named(source):
    return {slip.source: slip.says for slip in slips.slips(source)}


@pytest.mark.parametrize(
    ("source", "changed", "says"),
    [
        ("y = a + b", "y = a - b", "a plus and a minus have changed places"),
        ("y = a * b", "y = a", "a factor is left out"),
        ("y = a * b", "y = b", "a factor is left out"),
        ("y = a / b", "y = a", "a division is left out"),
        ("y = a - b", "y = b - a", "two things are the wrong way round"),
        ("y = a", "y = -a", "the sign is the opposite"),
        ("y = -a", "y = a", "a minus is left out"),
        ("y = a[1]", "y = a[2]", slips.OFF_BY_ONE),
        ("y = a[1]", "y = a", "an index or a slice is left out"),
        ("y = a[1:b]", "y = a[1:]", "a slice goes to the end, or begins at the start"),
        ("y = f(a, b)", "y = f(b, a)", "the two things that `f` is given are the wrong way round"),
        ("y = a.mean(dim=0)", "y = a.mean(dim=1)", "another dimension is taken"),
        ("y = a.mean(dim=0)", "y = a.mean()", "`dim=` is left out"),
        ("y = a.mean(dim=0)", "y = a.sum(dim=0)", "`sum` is taken for `mean`"),
        ("y = a.detach()", "y = a", "`detach` is left out"),
        ("y = a < b", "y = a <= b", "at the border: `<` or `<=`, `>` or `>=`?"),
        ("y = a < b", "y = a >= b", "a question is asked the wrong way round"),
        ("y += a", "y = a", "`=` stands where `+=` or the like belongs"),
        ("y = (a, b)", "y = (b, a)", "the parts are in the opposite order"),
        ("y = (a, b)", "y = a", "only one of several things is given"),
        ("def f(x):\n    x.step()", "def f(x):\n    pass", "`step` is not called"),
        ("def f(x):\n    x.grad = None", "def f(x):\n    pass", "`.grad` is not set"),
        (
            "def f(x):\n    for a in x:\n        b\n    return b",
            "def f(x):\n    for a in x:\n        b\n        return b",
            slips.IN_EACH_ROUND,
        ),
        (
            "def f(x):\n    for a in x:\n        b\n        c",
            "def f(x):\n    for a in x:\n        b\n    c",
            slips.AFTER_THE_LOOP,
        ),
        ("def f(a, b):\n    return a", "def f(a, b):\n    return b", "`b` stands where `a` belongs"),
    ],
)
def test_each_rule_makes_its_mistake_and_names_it(source, changed, says):
    assert named(source)[changed] == says


def test_each_slip_is_python_and_differs_from_what_it_was_made_of():
    source = exercises.cell("05.5", "solutions")
    found = list(slips.slips(source))
    assert len({slip.source for slip in found}) == len(found) > 30
    for slip in found:
        compile(slip.source, "slip", "exec")


def test_results_are_alike_to_four_digits_and_no_further():
    def mark(value):
        return slips.signature(judge.run(lambda f: iter([("f(1)", f, 1)]), lambda _: value))

    assert mark(1.0) == mark(1.00001) != mark(1.01)
    assert mark(1) == mark(1) != mark(1.0)
    assert mark(10**400) == mark(10**400) != mark(10**400 + 1)
    assert mark([1.0, (2, "a")]) == mark([1.0, (2, "a")]) != mark([1.0, (2, "b")])
    assert mark(-0.0) == mark(0.0)


@pytest.mark.parametrize("key", sorted(slips.table()))
def test_a_row_is_of_an_exercise_and_does_not_hold_the_right_answer(key):
    row = slips.table()[key]
    assert slips.signature(judge.expected(find(key)).right) not in row
    assert all(len(mark) == 12 and 1 <= len(says) <= 2 for mark, says in row.items())


@pytest.mark.skipif(os.name == "nt", reason="a slip that never ends is not stopped there")
@pytest.mark.parametrize("key", ["01.5", "04.3", "05.3"])
def test_a_row_is_what_is_made_today(key):
    assert slips.made(key) == slips.table()[key], f"python -m course.slips {key[:2]}"


def test_a_slip_that_no_row_knows_is_named_and_an_error_is_not():
    def attempt(f, x, rate):
        f(x).backward()
        with __import__("engine").no_grad():
            x -= rate
        x.grad = None

    said = judge.judge(find("04.3"), attempt).message
    assert said, "it has a word for it"
    seen = judge.tried(find("04.3").trial, attempt, function=True).seen
    assert slips.about("04.3", seen).startswith("It comes out like this where a factor is left out")
    seen = judge.tried(find("04.3").trial, lambda *_: 1 / 0, function=True).seen
    assert slips.about("04.3", seen) == ""
