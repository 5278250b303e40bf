"""BroadcastingExplorer: its shapes, its numbers and its errors against NumPy's, the engine's and PyTorch's."""

import re
import sys
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from over_tables import over

import engine
from course.figures import BroadcastingExplorer
from course.figures.broadcasting.figure import meet, shape_of

WIDGET = "application/vnd.jupyter.widget-view+json"
SVG = "{http://www.w3.org/2000/svg}"
SHAPES = [shape for n in range(4) for shape in product((0, 1, 2, 3), repeat=n)][:40] + [(2, 1, 3), (3, 1, 1), (1, 2, 3)]
PAIRS = list(product(SHAPES, repeat=2))


@pytest.fixture
def figure():
    return BroadcastingExplorer()


def typed(shape):
    return ", ".join(map(str, shape))


def numpys(a, b):
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def parts(figure, **values):
    return list(ElementTree.fromstring(figure.image(**values)))


def boxes(figure, **values):
    """Of each box: what is written in it, whether it is outlined, whether its line is broken, and its number."""
    found = parts(figure, **values)
    for box, words in zip(found, found[1:], strict=False):
        if words.get("pointer-events") == "none":
            yield words.text, "stroke-width" in box.attrib, "stroke-dasharray" in box.attrib, box.get("data-number")


# The shapes


def test_the_result_has_the_shape_that_numpy_gives_it():
    assert [meet(a, b).result for a, b in PAIRS] == [numpys(a, b) for a, b in PAIRS]


def test_what_cannot_meet_is_told_in_pytorchs_words():
    torch = pytest.importorskip("torch")
    clashes = [(a, b) for a, b in PAIRS if numpys(a, b) is None]
    assert len(clashes) > 100
    for a, b in clashes:
        with pytest.raises(RuntimeError) as error:
            torch.zeros(a) + torch.zeros(b)
        assert meet(a, b).error == str(error.value)


def test_large_shapes_take_no_memory():
    assert meet((1024,) * 5, (1024, 1)).result == (1024,) * 5
    assert "The size of tensor a (1024) must match" in meet((1024,) * 5, (2,) * 5).error


@over(
    "written, shape",
    [
        ("3, 1", (3, 1)),
        ("(3,1)", (3, 1)),
        (" 4 ", (4,)),
        ("4,", (4,)),
        ("(4,)", (4,)),
        ("", ()),
        ("()", ()),
        ("0", (0,)),
    ],
)
def test_a_shape_is_read_as_people_write_it(written, shape):
    assert shape_of(written) == shape


@pytest.mark.parametrize("written", ["x", "3 1", "-1", "1.5", "3,,1", ",", "\u00b2"])
def test_what_is_no_shape_is_refused_with_an_example(figure, written):
    with pytest.raises(ValueError, match="whole numbers with commas between them, such as 3, 1"):
        shape_of(written)
    assert figure.text(a=written) == "A shape is whole numbers with commas between them, such as 3, 1."
    assert figure.elements(written, "3") == 0


@pytest.mark.parametrize("written", ["1, 1, 1, 1, 1, 1", "1025"])
def test_what_is_too_large_to_be_read_is_refused(figure, written):
    assert figure.text(b=written) == "Here a shape has at most 5 numbers, none above 1024."


# The elements


def test_every_element_of_the_result_is_the_sum_of_the_two_that_it_names(figure):
    for a, b in [((3, 1), (4,)), ((2, 1, 3), (2, 1)), ((), (2,)), ((2, 3), (2, 3)), ((), ()), ((2, 3, 2), (3, 1))]:
        ten = 10 if np.prod(a) < 10 else 100
        first = engine.arange(1, 1 + int(np.prod(a))).reshape(a)
        second = ten * engine.arange(1, 1 + int(np.prod(b))).reshape(b)
        total = first + second
        for element, index in enumerate(np.ndindex(*total.shape)):
            words = figure.text(a=typed(a), b=typed(b), element=element)
            *sides, x, y, sum_ = re.search(r"= a(.*?) \+ b(.*?) = (\d+) \+ (\d+) = (\d+)\.", words).groups()
            assert f"result{list(index) or ''} = a" in words
            left, right = (tuple(map(int, re.findall(r"\d+", side))) for side in sides)
            assert (first[left].item(), second[right].item(), total[index].item()) == (int(x), int(y), int(sum_))


def test_the_drawn_numbers_are_those_of_the_operands_stretched_and_of_their_sum(figure):
    a, b = engine.tensor([[1], [2], [3]]), engine.tensor([10, 20, 30, 40])
    drawn = [words for words, *_ in boxes(figure)][6:]
    wanted = [t.expand(3, 4) for t in (a, b)] + [a + b]
    together = [str(n) for tensor in wanted for n in tensor.flatten().tolist()]
    assert sorted(drawn) == sorted(together)


def test_copies_have_broken_lines_and_originals_have_not(figure):
    originals = [words for words, _, broken, _ in boxes(figure) if not broken]
    assert [sum(words == n for words in originals) for n in ("10", "20", "30", "40")] == [1, 1, 1, 1]
    copies = [words for words, _, broken, number in boxes(figure) if broken and not words.count("\u2192")]
    assert sorted(copies) == sorted(["1", "2", "3"] * 3 + ["10", "20", "30", "40"] * 2)


def test_the_element_the_two_that_meet_in_it_and_where_they_come_from_are_outlined(figure):
    outlined = [(words, broken) for words, strong, broken, _ in boxes(figure, element=6) if strong]
    assert sorted(outlined) == [("2", False), ("2", True), ("30", False), ("30", True), ("32", False)]


def test_the_results_boxes_are_numbered_for_the_click(figure):
    numbered = sorted((int(number), words) for words, _, _, number in boxes(figure) if number is not None)
    assert numbered == list(enumerate(str(a + b) for a in (1, 2, 3) for b in (10, 20, 30, 40)))


# The table of shapes


def test_the_table_shows_what_is_stretched_to_what(figure):
    table = [(words, broken) for words, _, broken, _ in boxes(figure)][:6]
    assert table == [
        *[("3", False), ("1 \u2192 4", True)],
        *[("\u2192 3", True), ("4", False)],
        *[("3", False), ("4", False)],
    ]


def test_a_clash_is_outlined_where_it_is(figure):
    table = [(words, strong) for words, strong, *_ in boxes(figure, a="5, 4", b="5")]
    assert table == [("5", False), ("4", True), ("\u2192 5", False), ("5", True), ("5", False), ("?", True)]


# The words


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (
            "3, 1",
            "4",
            "a has shape (3, 1), b has shape (4,). Dimension 0: b has no such dimension, and is used 3 times. "
            "Dimension 1: a has 1, and is stretched to 4. The result has shape (3, 4). "
            "result[1, 2] = a[1, 0] + b[2] = 2 + 30 = 32. Strides of what is stretched: a (1, 0) and b (0, 1).",
        ),
        (
            "3",
            "4",
            "a has shape (3,), b has shape (4,). Dimension 0: 3 meets 4. They are not equal, and neither is 1. "
            "RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
        ),
        (
            "64, 3, 28, 28",
            "1, 3, 28, 28",
            "a has shape (64, 3, 28, 28), b has shape (1, 3, 28, 28). Dimension 0: b has 1, and is stretched to 64. "
            "The result has shape (64, 3, 28, 28). That is too much to draw.",
        ),
        ("0", "1", "a has shape (0,), b has shape (1,). Dimension 0: b has 1, and is stretched to 0. "
         "The result has shape (0,). It has no elements."),
    ],
)  # fmt: skip
def test_the_words_tell_what_the_picture_shows(figure, a, b, words):
    assert figure.text(a=a, b=b) == words
    assert figure.picture(a=a, b=b)["text/plain"] == words


def test_every_pair_has_a_picture_and_words(figure):
    for a, b in PAIRS[:: len(PAIRS) // 300]:
        result, words = numpys(a, b), figure.text(a=typed(a), b=typed(b))
        assert parts(figure, a=typed(a), b=typed(b))
        assert ("RuntimeError: " if result is None else f"The result has shape {result}.") in words


# In a notebook


def test_a_reader_without_a_kernel_sees_three_settings_with_their_words(figure, monkeypatch):
    static = figure.static()
    words = [figure.text(**values) for values in figure.stills]
    assert re.findall(r'<img alt="([^"]+)"', static["text/html"]) == words and "RuntimeError" in words[2]
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "course.figures.broadcasting.widget", raising=False)
    assert figure._repr_mimebundle_() == (static, {})


def test_the_widget_follows_what_is_typed_and_chosen(figure):
    pytest.importorskip("anywidget")
    assert figure._repr_mimebundle_()[0][WIDGET]["model_id"]
    widget = figure.widget()
    assert (len(widget.indices), widget.indices[6], widget.wrong) == (12, "[1, 2]", False)
    widget.element = 11
    assert widget.words == figure.text(element=11)
    widget.b = "2"  # the result has 6 elements now
    assert (widget.element, len(widget.indices)) == (5, 6)
    assert (widget.picture.encode(), widget.words) == (figure.image(b="2", element=5), figure.text(b="2", element=5))
    widget.a = "3,"
    assert (widget.indices, widget.element, widget.wrong) == ([], 5, True)
    assert widget.words == figure.text(a="3,", b="2")


def test_a_figure_begins_with_the_shapes_that_it_is_given():
    assert BroadcastingExplorer((2, 1), ()).text().startswith("a has shape (2, 1), b has shape ().")
