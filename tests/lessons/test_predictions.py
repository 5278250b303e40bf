"""Questions before a cell is run: one right option each, a lesson asks for those that are there, a click commits."""

import re

import pytest

from course import predict
from course.base.notebooks import lesson_file, lesson_folders
from course.figures.predict import figure as predictions

LESSONS = [folder.name[:2] for folder in lesson_folders() if (folder / "predictions.md").is_file()]
KEYS = [f"{lesson}.{name}" for lesson in LESSONS for name in predictions.questions(lesson)]
ASKED = re.compile(r"""(?m)^predict\(["'](\d\d)\.(\w+)["']\)""")


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_asks_each_of_its_questions_once_in_their_order(lesson):
    source = lesson_file(lesson, "lesson.md")
    asked = ASKED.findall(source.read_text(encoding="utf-8"))
    assert asked == [(lesson, name) for name in predictions.questions(lesson)]


@pytest.mark.parametrize("key", KEYS)
def test_without_a_kernel_the_options_stand_there_with_their_words_folded_away(key):
    static = predict(key).static()
    assert static["text/plain"].startswith("Predict: ")
    for option in predict(key).options:
        assert f"- {option.text}" in static["text/plain"] and option.words not in static["text/plain"]
        assert f"<summary>{predictions.marked_up(option.text)}</summary>" in static["text/html"]


def test_a_question_that_is_not_there_is_told_and_a_file_that_is_wrong_too(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="there is no question '07.zz'"):
        predict("07.zz")
    monkeypatch.setattr(predictions, "lesson_file", lambda lesson, name: tmp_path / f"{lesson}.md")
    (tmp_path / "98.md").write_text("# 98\n\n## a\nWhat?\n\n- [ ] 1: No.\n- [ ] 2: No.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"98/98.md, a: two options or more are asked for, and one of them is right"):
        predictions.questions("98")
    (tmp_path / "97.md").write_text("# 97\n\n## a\nWhat?\n\n- [x] `{1: 2}`: Yes.\n- [ ] 2: No.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"97/97.md, a: '`{1' ends at its first colon"):
        predictions.questions("97")


def test_the_words_come_after_the_choice_and_after_the_next_cell():
    pytest.importorskip("anywidget")
    key = KEYS[0]
    for order in ("chosen", "looked"), ("looked", "chosen"):
        for place, option in enumerate(predict(key).options):
            widget = predict(key).widget()
            widget.set_trait(order[0], True if order[0] == "looked" else place)
            assert not widget.said
            widget.set_trait(order[1], True if order[1] == "looked" else place)
            assert (widget.said, widget.right) == (predictions.marked_up(option.words), option.right)


def test_code_and_stress_are_marked_and_nothing_else_is_html():
    assert predictions.marked_up("a < `b * c * d` & *so*") == "a &lt; <code>b * c * d</code> &amp; <em>so</em>"
