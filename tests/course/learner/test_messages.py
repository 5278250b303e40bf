"""How what a check says is laid out in a notebook, and that stopping one needs no traceback."""

import re

import pytest
from over_tables import over

pytest.importorskip("cloudpickle")

from course.learner import calls as learner
from course.learner import messages
from course.process import worker


@over(
    "text, laid_out",
    [
        ("the 0 stands at the *last* question.", "the 0 stands at the <em>last</em> question."),
        (
            "transposed: a *row* for each output, a *column*",
            "transposed: a <em>row</em> for each output, a <em>column</em>",
        ),
        ("since *it was asked*.", "since <em>it was asked</em>."),
        ("2 * 3 * 3, x**2 + y**2, x*y*z, -=, *=", "2 * 3 * 3, x**2 + y**2, x*y*z, -=, *="),
        ("`a *b* c` < 1", "<code>a *b* c</code> &lt; 1"),
    ],
)
def test_stars_are_emphasis_and_products_are_not(text, laid_out):
    assert messages.marked(text) == laid_out


def test_a_message_says_the_same_in_text_and_in_html():
    rows = [("Got", "1 < 2"), ("Input", "a\nb"), ("", messages.Code("x = 1"))]
    plain, page = messages.message("Head.", "Text `x`.\nMore.", rows, "After.", "warn")
    assert plain == "Head.\nText `x`.\nMore.\nGot: 1 < 2\nInput:\n    a\n    b\n    x = 1\nAfter."
    assert re.sub(r"<[^>]+>", "|", re.sub("</?(code|span)[^>]*>", "", page)).replace("\n|", "|") == (
        "|||Head.| Text x.||More.||Got||1 &lt; 2||Input||a\nb||x = 1||After.||"
    )
    assert page.startswith('<div role="status" style="border-left: 4px solid var(--jp-warn-color1')
    assert messages.message("Head.", "", [], "", "info")[0] == "Head."


def test_a_check_that_is_stopped_says_so_in_a_line(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        learner.check("01.1", ((4,),))
    assert stopped.value._render_traceback_() == ["Exercise 01.1: the check was stopped."]
