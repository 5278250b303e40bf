"""Slips: one small mistake each, a name for it, and a table from which no answer can be read."""

import os

import pytest
from over_tables import over

from course.authoring import slips
from course.judging import exercises, judge, running
from course.judging import slips as looked_up
from course.judging.exercises import find


def named(source):
    return {slip.source: slip.says for slip in slips.slips(source)}


@over(
    "source, changed, says",
    [
        ("y = a + b", "y = a - b", "you mix up `+` and `-`"),
        ("y = a * b", "y = a", "you leave out a factor"),
        ("y = a * b", "y = b", "you leave out a factor"),
        ("y = a / b", "y = a", "you leave out a division"),
        ("y = a - b", "y = b - a", "you swap the two sides of an operation"),
        ("y = a", "y = -a", "you get the sign wrong"),
        ("y = -a", "y = a", "you forget a minus sign"),
        ("y = a[1]", "y = a[2]", slips.OFF_BY_ONE),
        ("y = a[1]", "y = a", "you forget an index or a slice"),
        ("y = a[1:b]", "y = a[1:]", "you leave out one end of a slice"),
        ("y = f(a, b)", "y = f(b, a)", "you swap the two arguments of `f`"),
        ("y = a.mean(dim=0)", "y = a.mean(dim=1)", "you choose another `dim`"),
        ("y = a.mean(dim=0)", "y = a.mean()", "you forget `dim=`"),
        ("y = a.mean(dim=0)", "y = a.sum(dim=0)", "you call `sum` instead of `mean`"),
        ("y = a.detach()", "y = a", "you forget `detach()`"),
        ("y = a < b", "y = a <= b", "you mix up `<` and `<=`, or `>` and `>=`"),
        ("y = a < b", "y = a >= b", "you reverse a condition"),
        ("y += a", "y = a", "you write `=` for `+=` (or the like)"),
        ("y = (a, b)", "y = (b, a)", "you put the parts in reverse order"),
        ("y = (a, b)", "y = a", "you give only one of several values"),
        ("def f(x):\n    x.step()", "def f(x):\n    pass", "you forget to call `step`"),
        ("def f(x):\n    x.grad = None", "def f(x):\n    pass", "you forget to set `.grad`"),
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
        ("def f(a, b):\n    return a", "def f(a, b):\n    return b", "you use `b` in place of `a`"),
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
        return looked_up.signature(running.run(lambda f: iter([("f(1)", f, 1)]), lambda _: value))

    assert mark(1.0) == mark(1.00001) != mark(1.01)
    assert mark(1) == mark(1) != mark(1.0)
    assert mark(10**400) == mark(10**400) != mark(10**400 + 1)
    assert mark([1.0, (2, "a")]) == mark([1.0, (2, "a")]) != mark([1.0, (2, "b")])
    assert mark(-0.0) == mark(0.0)


@pytest.mark.skipif(os.name == "nt", reason="a slip that never ends is not stopped there")
@over("key", ["01.5", "04.3", "05.3"])
def test_a_row_is_what_is_made_today(key):
    assert slips.made(key) == looked_up.table(key[:2])[key], f"python -m course slips {key[:2]}"


def test_a_slip_that_no_row_knows_is_named_and_an_error_is_not():
    def attempt(f, x, rate):
        f(x).backward()
        with __import__("engine").no_grad():
            x -= rate
        x.grad = None

    said = judge.judge(find("04.3"), attempt).message
    assert said, "it has a word for it"
    seen = judge.tried(judge.trial_of(find("04.3"), False), attempt, function=True).seen
    assert looked_up.about("04.3", seen).startswith("You get this if you leave out a factor")
    seen = judge.tried(judge.trial_of(find("04.3"), False), lambda *_: 1 / 0, function=True).seen
    assert looked_up.about("04.3", seen) == ""
