"""MemoryExplorer: its recipes and its memory against the engine's and NumPy's, and the words for each state."""

import re
import sys
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import engine
from course.figures import MemoryExplorer
from course.figures.memory_explorer.steps import GRAMMAR

WIDGET = "application/vnd.jupyter.widget-view+json"
REFUSED = (
    "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans "
    "across two contiguous subspaces). Use .reshape(...) instead."
)
VIEWS = (".T", "[:, 1]", "[1:, 2:]", "[:, ::2]", ".reshape(4, 3)", ".permute(1, 0)", ".expand(2, 3, 4)", ".flatten()",
         ".view(12)", ".contiguous()", "[2]", "[2, 1]", "[None]", ".unsqueeze(1)", ".transpose(0, 1)")  # fmt: skip
COPIES = (".clone()", "[[0, 2]]", "[t > 5]", "* 2", "+ 0.5", "- 1")


@pytest.fixture
def table():
    return engine.arange(12).reshape(3, 4)


@pytest.fixture
def figure(table):
    return MemoryExplorer(table=table)


def boxes(figure, **values):
    """Of each box: what is written in it, its number (of the tensor now), how it is outlined, its ground."""
    parts = list(ElementTree.fromstring(figure.image(**values)))
    for box, words in zip(parts, parts[1:], strict=False):
        if words.get("pointer-events") == "none":
            bold, broken = box.get("stroke-width") == "2.5", "stroke-dasharray" in box.attrib
            look = {(0, 0): "plain", (0, 1): "unused", (1, 1): "same", (1, 0): "picked"}[bold, broken]
            yield words.text, box.get("data-number"), look, box.get("fill")


def written(figure, **values):
    return [words.text for words in ElementTree.fromstring(figure.image(**values)).iter() if words.text]


# The steps


@pytest.mark.parametrize("step", VIEWS)
def test_a_view_has_the_engines_recipe_on_the_memory_that_was_there(figure, table, step):
    looked, wanted = figure.looked([step]), eval(f"table{step}")
    assert (looked.shape, looked.strides, looked.offset) == (wanted.shape, wanted.stride(), wanted.storage_offset())
    assert (looked.copied, looked.error) == (False, "")
    assert [looked.memory[p].item() for p in looked.places] == wanted.flatten().tolist()


@pytest.mark.parametrize("step", COPIES)
def test_a_copy_has_memory_of_its_own_as_long_as_it_is(figure, table, step):
    looked, wanted = figure.looked([step]), eval(f"table{step}", {"table": table, "t": table})
    assert looked.copied and looked.memory.numel() == wanted.numel()
    assert [looked.memory[p].item() for p in looked.places] == wanted.flatten().tolist()


def test_a_copy_keeps_the_order_in_memory_as_the_engines_does(figure, table):
    for step in (".T", "[:, ::2]", ".expand(2, 3, 4)"):
        assert figure.looked([step, ".clone()"]).strides == eval(f"table{step}.clone()").stride()
    looked = figure.looked([".T", ".clone()"])
    assert looked.memory.tolist() == list(range(12)) and looked.strides == (1, 4)


@pytest.mark.parametrize(
    "step", [".as_strided((3, 4), (1, 1))", ".as_strided((2, 2), (3, 2), 4)", ".as_strided([5], [0])"]
)
def test_a_recipe_of_ones_own_reads_the_row_whatever_the_tensor_on_it(figure, step):
    for before in ([], [".T"], ["[:, ::2]"]):
        looked = figure.looked([*before, step])
        wanted = eval(f"row{step}", {"row": engine.arange(12)})
        assert looked.now.tolist() == wanted.tolist() and looked.strides == wanted.stride() and not looked.copied


def test_steps_follow_one_another(figure, table):
    looked = figure.looked([".T", "[1:]", ".reshape(9)", "* 2"])
    assert looked.code == "(table.T[1:].reshape(9) * 2)"
    assert looked.now.tolist() == (table.T[1:].reshape(9) * 2).tolist()


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (".view(12)", REFUSED),
        (".reshape(5, 2)", "RuntimeError: shape '[5, 2]' is invalid for input of size 12"),
        ("[4]", "IndexError: index 4 is out of bounds for dimension 0 with size 4"),
        ("[::-1]", "ValueError: step must be greater than zero"),
        ("[4:]", "This gives no numbers: there is nothing to draw."),
        (".expand(9, 4, 3)", "This gives shape (9, 4, 3): that is too much to draw."),
        ("[None, None]", "This gives shape (1, 1, 4, 3): that is too much to draw."),
    ],
)
def test_a_step_that_fails_changes_nothing_and_says_why(figure, step, error):
    looked = figure.looked([".T", step])
    assert (looked.code, looked.error) == ("table.T", error)
    assert figure.looked([".T", step, "[0]"]).error == ""  # of those that failed only the last is spoken of


def test_an_error_of_the_row_is_pytorchs(figure):
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as error:
        torch.arange(12).as_strided((3, 4), (5, 1))
    assert figure.looked([".as_strided((3, 4), (5, 1))"]).error == f"RuntimeError: {error.value}"


@pytest.mark.parametrize(
    "typed",
    ["T", ".T.T", ".sum()", ".__class__", "[x]", "; 1", ".view(n)", "=", "", ".numpy()", "** 9", "[0][1]", ".T = 3",
     ".expand(10 ** 9, 3, 4)", "* 10000", "[0] = [1, 2]", '["a"]', "(", ".clone(memory_format=1)", "[0] = t"],
)  # fmt: skip
def test_what_is_none_of_the_steps_is_answered_with_what_there_is(figure, typed):
    assert figure.looked([typed]).error == GRAMMAR


def test_every_button_is_a_step_after_every_other(figure):
    for first in filter(None, figure.offered(())):
        for second in filter(None, figure.offered((first,))):
            looked = figure.looked([first, second])
            assert looked.error != GRAMMAR
            if second.startswith((".T", ".reshape", ".permute", ".flatten", ".contiguous", ".clone", "[:, ::2]")):
                assert not looked.error, (first, second)


# Writing


def test_a_number_written_into_a_view_shows_in_the_tensor_begun_with(figure):
    looked = figure.looked([".T", "[2, 1] = 99"])
    assert looked.first[1, 2].item() == 99 and looked.wrote == (7,)
    words = figure.text(steps=(".T", "[2, 1] = 99"), pick=7)
    assert words.endswith("Place 6 holds 99. What was written there also shows in table[1, 2].")
    assert figure.numbers.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]  # the lesson's own are left alone


def test_a_number_written_into_a_copy_shows_nowhere_else(figure):
    looked = figure.looked([".T", ".flatten()", "[1] = 99"])
    assert looked.now[1].item() == 99 and 99 not in looked.first.flatten().tolist()
    words = figure.text(steps=(".T", ".flatten()", "[1] = 99"), pick=1)
    assert words.endswith("What was written there shows nowhere else: table keeps its own numbers.")


def test_what_repeats_a_place_shows_a_number_there_as_often(figure):
    steps = (".as_strided((3, 4), (1, 1))", "[1, 1] = 77")
    assert figure.text(steps=steps, pick=5).endswith("also shows in table[0, 2], box [0, 2] and box [2, 0].")
    assert [words for words, *_ in boxes(figure, steps=steps, pick=5)].count(
        "77"
    ) == 5  # there, and in both of memory's


def test_a_condition_says_into_which_boxes_was_written(figure):
    assert figure.looked([".T", "[t > 8] = 0"]).wrote == (5, 8, 11)


# What is drawn


def test_the_drawn_boxes_are_the_tensors_and_the_row(figure, table):
    drawn = list(boxes(figure, steps=(".T",), pick=7))
    numbered = {int(number): words for words, number, *_ in drawn if number is not None}
    assert [numbered[k] for k in range(12)] == [f"{n}" for n in table.T.flatten().tolist()]
    assert len(drawn) == 36
    assert [words for words, _, look, _ in drawn if look == "picked"] == ["6", "6"]  # the box, and its place
    assert [words for words, _, look, _ in drawn if look == "same"] == ["6"]  # the same place in table


def test_places_that_the_tensor_does_not_use_have_broken_lines(figure):
    drawn = [words for words, _, look, _ in boxes(figure, steps=("[:, 1]",), pick=0) if look == "unused"]
    assert sorted(map(int, drawn)) == [0, 2, 3, 4, 6, 7, 8, 10, 11]


def test_a_copy_has_a_row_of_its_own_in_another_colour(figure):
    copied = list(boxes(figure, steps=(".T", ".flatten()"), pick=1))
    grounds = {fill for *_, look, fill in copied if look == "plain"}
    assert len(copied) == 48 and len(grounds) == 2
    labels = written(figure, steps=(".T", ".flatten()"), pick=1)
    assert "memory of the copy, 12 places" in labels and "memory of table, 12 places" in labels
    assert "memory of the copy, 12 places" not in written(figure, steps=(".T",))


def test_the_recipe_and_the_sum_stand_between_tensor_and_memory(figure):
    labels = written(figure, steps=(".T",), pick=7)
    assert "offset 0   shape (4, 3)   strides (1, 4)" in labels
    assert "[2, 1]: offset 0 + 2 × 1 + 1 × 4 = 6" in labels


def test_every_letter_is_12_pixels_or_more_and_no_picture_is_wider_than_its_room(figure):
    for steps in ((), (".T", ".flatten()"), (".expand(2, 3, 4)",), ("[:, :2]", ".expand(4, 3, 2)")):
        for room in (300, 404, 700, 1600):
            drawn = ElementTree.fromstring(figure.image(steps=steps, pick=1, room=room))
            assert float(drawn.get("width")) <= max(420, min(room, 770))
            assert all(int(part.get("font-size", 13)) >= 12 for part in drawn.iter())


# Reading aloud


def test_reading_aloud_goes_through_the_places_in_the_order_of_reading(figure):
    words = figure.text(steps=(".T",), pick=4, path=True)
    assert words.endswith("Read aloud so far, place by place: 0, 4, 8, 1, 5.")
    assert "+4" in written(figure, steps=(".T",), pick=4, path=True)


def test_it_breaks_where_view_refuses_and_the_message_appears_there(figure):
    steps = (".T", ".view(12)")
    assert REFUSED not in figure.text(steps=steps, pick=1, path=True)
    words = figure.text(steps=steps, pick=2, path=True)
    assert words.endswith(
        "place by place: 0, 4, 8. Here the walk breaks: the steps so far lead on to place 12, and the next box is at "
        f"place 1. {REFUSED}"
    )
    assert "-7 ✕" in written(figure, steps=steps, pick=2, path=True)
    assert figure.text(steps=steps, pick=9, path=True) == words  # no further than the break


@pytest.mark.parametrize(
    ("steps", "asked", "last", "led"),
    [
        ((".T",), ".view(12)", 2, 12),
        ((".T",), ".view(2, 6)", 2, 12),
        (("[1:, 2:]",), ".view(4)", 1, 8),
        (("[:, :3]",), ".view(9)", 2, 3),
        ((".expand(2, 3, 4)",), ".view(24)", 11, 12),
        ((".reshape(2, 3, 2)", ".permute(1, 0, 2)"), ".view(3, 4)", 1, 2),
    ],
)
def test_the_break_is_where_strides_for_the_asked_shape_lead_astray(figure, steps, asked, last, led):
    looked = figure.looked([*steps, asked])
    assert (looked.last, looked.broken) == (last, (last, led))
    assert looked.places[last + 1] != led
    refused = REFUSED.removeprefix("RuntimeError: ")
    with pytest.raises(RuntimeError) as error:
        eval(f"now{asked}", {"now": looked.now})
    assert str(error.value) == refused


def test_wherever_view_refuses_there_is_a_break_and_nowhere_else(figure):
    """NumPy's own word on it: a shape can be had by strides alone if, and only if, reshape makes no copy."""
    starts = [(), (".T",), ("[1:, 2:]",), ("[:, ::2]",), ("[::2]",), (".reshape(2, 3, 2)", ".permute(1, 0, 2)"),
              (".reshape(2, 3, 2)", ".permute(2, 1, 0)"), (".reshape(2, 3, 2)", ".transpose(1, 2)")]  # fmt: skip
    shapes = {6: [(6,), (2, 3), (3, 2)], 4: [(4,), (2, 2)], 8: [(8,), (2, 4), (4, 2)],
              12: [(12,), (2, 6), (3, 4), (4, 3), (6, 2), (2, 3, 2), (3, 2, 2), (2, 2, 3)]}  # fmt: skip
    refused = 0
    for steps in starts:
        now = figure.looked(steps).now
        for shape in shapes[now.numel()]:
            looked = figure.looked([*steps, f".view{shape}"])
            assert bool(looked.asked) == (not np.shares_memory(now.numpy().reshape(shape), now.numpy()))
            if looked.asked:
                refused += 1
                assert 0 <= looked.last < now.numel() - 1
    assert refused > 10


# In a notebook


def test_the_words_tell_what_the_picture_shows(figure):
    assert figure.text() == (
        "table, the tensor to begin with: offset 0, shape (3, 4), strides (4, 1). "
        "Box [2, 1]: offset 0 + 2 × 4 + 1 × 1 = 9. Place 9 holds 9."
    )
    assert figure.text(steps=(".T",), pick=7) == (
        "table.T, a look into the memory of table: offset 0, shape (4, 3), strides (1, 4). "
        "Box [2, 1]: offset 0 + 2 × 1 + 1 × 4 = 6. Place 6 holds 6. The same place shows in table[1, 2]."
    )
    assert figure.text(steps=("[2, 1]",), pick=0) == (
        "table[2, 1], a look into the memory of table: offset 9, shape (), strides (). "
        "Box: offset 9 = 9. Place 9 holds 9. The same place shows in table[2, 1]."
    )


def test_a_reader_without_a_kernel_sees_stills_with_titles_and_words(figure, table, monkeypatch):
    static = figure.static()
    titles = re.findall(r"<p><strong>(.*?)</strong></p>", static["text/html"])
    assert titles == [
        "table: offset 0, strides (4, 1), the row of table",
        "table.T: offset 0, strides (1, 4), the row of table",
        "table[1:, 2:]: offset 6, strides (4, 1), the row of table",
    ]
    assert re.findall(r'<img alt="([^"]+)"', static["text/html"]) == [figure.text(**s) for s in figure.stills]
    begun = MemoryExplorer(".T", ".view(12)", table=table)
    assert re.findall(r"<strong>(.*?)</strong>", begun.static()["text/html"]) == ["table.T.view(12): refused"]
    assert begun.text().endswith(REFUSED)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "course.figures.memory_explorer.widget", raising=False)
    assert figure._repr_mimebundle_() == (static, {})


def test_the_widget_follows_steps_and_keeps_the_place(figure):
    pytest.importorskip("anywidget")
    assert figure._repr_mimebundle_()[0][WIDGET]["model_id"]
    widget = figure.widget()
    widget.pick = 6
    widget.steps = [".T"]
    assert (widget.pick, widget.boxes[7], widget.path) == (7, "[2, 1]", False)  # the same number is picked
    assert (widget.words, widget.picture.encode()) == (
        figure.text(steps=(".T",), pick=7),
        figure.image(steps=(".T",), pick=7),
    )
    widget.steps = [".T", ".view(12)"]
    assert (widget.path, widget.pick, widget.last, widget.plays, widget.wrong) == (True, 0, 2, 1, True)
    widget.pick = 2
    assert widget.words.endswith(REFUSED)
    widget.steps = [".T", ".view(12)", ".flatten()"]
    assert (widget.path, widget.wrong, len(widget.boxes)) == (False, False, 12)
    widget.steps = [".T", ".flatten()", "[3] = 5"]
    assert widget.pick == 3 and "keeps its own numbers" in widget.words


def test_what_cannot_be_drawn_is_refused(table):
    for tensor in (engine.zeros(25), engine.zeros(0), engine.zeros(1, 1, 1, 1)):
        with pytest.raises(ValueError, match="1 to 3 dimensions and at most 24 numbers"):
            MemoryExplorer(tensor=tensor)
    with pytest.raises(ValueError, match=r"MemoryExplorer\(table=table\)"):
        MemoryExplorer(table=table, other=table)


def test_the_steps_of_a_path_are_those_between_the_places(figure):
    looked = figure.looked([".T"])
    assert [b - a for a, b in pairwise(looked.places)] == [4, 4, -7] * 3 + [4, 4]
