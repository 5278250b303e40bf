"""The figure of guards and captures: what it shows against the compiler, and what lesson 19 asks of it."""

import re

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import engine
from course.figures import CaptureExplorer
from course.figures.captures import CALLS, FACTOR, SIX, SIZES, TENSOR, arguments, history, scaled
from engine.compiler import explain
from engine.compiler.compiled import LIMIT

each_program = pytest.mark.parametrize("program", [SIX, FACTOR, TENSOR, SIZES])


@each_program
def test_captures_and_guards_are_the_compilers_own(program):
    compiled, made = engine.compile(scaled), 0
    for call, (given, *args) in zip(history(program), arguments(program), strict=True):
        if compiled.entries and len(call.failing) == len(compiled.entries):  # `explain` tells of the last capture
            assert explain(compiled)(*args).recompile_reason == call.failing[-1]
        compiled(*args)
        made += call.new
        assert given == call.given and len(compiled.entries) == made
        assert "" not in call.failing[:-1] and (call.ran == 0 or call.new or call.ran == len(call.failing))


def test_what_the_lesson_asks_for_is_to_be_found():
    assert [call.new for call in history(SIX)] == [True, False, True, True, True] + [False] * 7
    assert [call.ran for call in history(FACTOR)] == [*range(1, LIMIT + 1), *[0] * (CALLS - LIMIT)]
    assert len(history(FACTOR)[LIMIT].failing) == LIMIT and all(history(FACTOR)[LIMIT].failing)
    assert {call.ran for call in history(TENSOR)} == {1}
    assert [call.ran for call in history(SIZES)] == [1, *[2] * 6, *[3] * 5]
    assert "<= 81" in history(SIZES)[7].failing[1] and history(SIZES)[7].given.startswith("89 ")


@each_program
def test_the_picture_marks_each_call_and_names_the_guards_of_the_last(program):
    figure = CaptureExplorer()
    for at in (1, 5, CALLS):
        axes = Figure().add_subplot()
        figure.draw(axes, program=program, call=at)
        asked, *ran = ([*zip(*line.get_data(), strict=True)] for line in axes.lines)
        calls = history(program)[:at]
        assert sorted(x for places in ran for x, _ in places) == [*range(1, at + 1)]
        assert len(asked) == sum(why != "" for call in calls for why in call.failing)
        told = [text.get_text() for text in axes.texts]
        assert told[:-1] == [why for why in calls[-1].failing if why]


def test_the_words_say_what_is_asked_and_what_runs():
    figure = CaptureExplorer()
    assert (
        figure.text(program=SIX, call=1)
        == "Six calls, twice, call 1: 3 ones in float32, factor 2.0. Capture 1 is made."
    )
    assert figure.text(program=SIX, call=2).endswith("factor 2.0. Capture 1 holds, and its code runs.")
    assert figure.text(program=SIZES, call=8).endswith("So there is a new capture, number 3.")
    assert figure.text(program=FACTOR, call=9).endswith("8 captures already: the function runs as it stands.")
    words = [f"{title}. {figure.text(**still)}" for title, still in zip(figure.titles, figure.stills, strict=True)]
    assert figure.static()["text/plain"].split("\n") == words
    assert len(re.findall("<img", figure.static()["text/html"])) == len(words)
