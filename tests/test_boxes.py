"""The figures of boxes: what is drawn and said against the tensors' own numbers."""

import re
import sys
from xml.etree import ElementTree

import pytest

import engine
from course.figures import Boxes, IndexExplorer
from course.figures.grid import Cell, Panel, svg

WIDGET = "application/vnd.jupyter.widget-view+json"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def matrix():
    return engine.tensor([[14.0, 21.5, 17.0], [13.0, 19.0, 15.5], [15.0, 24.0, 18.0], [16.5, 25.0, 20.0]])


@pytest.fixture
def explorer(matrix):
    return IndexExplorer(matrix, "week")


def boxes(drawing):
    """Of each box in an SVG, where it is and what is written in it."""
    parts = list(ElementTree.fromstring(drawing))
    found = []
    for box, words in zip(parts, parts[1:], strict=False):
        if box.tag == f"{SVG}rect" and words.get("pointer-events") == "none":
            found.append((float(box.get("x")), float(box.get("y")), words.text, box.get("stroke-width") is not None))
    return found


def written(drawing):
    return {words.text for words in ElementTree.fromstring(drawing).iter(f"{SVG}text")}


def drawing_of(figure):
    import base64

    (data,) = re.findall(r"base64,([^\"]+)", figure.picture()["text/html"])
    return base64.b64decode(data).decode()


# Boxes


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 4, 3)])
def test_every_element_has_its_box_in_reading_order(shape):
    tensor = engine.arange(24.0)[: engine.zeros(shape).numel()].reshape(shape)
    pages, rows, _ = (1,) * (3 - len(shape)) + shape
    found = boxes(drawing_of(Boxes(t=tensor)))
    assert [float(words) for *_, words, _ in found] == tensor.flatten().tolist()
    assert len({y for _, y, *_ in found}) == rows
    assert len({(x, y) for x, y, *_ in found}) == pages * rows * (shape[-1] if shape else 1)


def test_the_words_name_each_tensor_its_shape_and_what_it_holds(matrix):
    figure = Boxes(now=matrix[0, 1], day=matrix[0], week=matrix, both=engine.stack([matrix, matrix]))
    assert figure.text() == (
        "now, shape (): one number, 21.5. day, shape (3,): a row of numbers, 14, 21.5, 17. "
        "week, shape (4, 3): 4 rows, 3 columns. both, shape (2, 4, 3): 2 matrices, each of 4 rows and 3 columns."
    )
    assert figure.picture()["text/plain"] == figure.text()


def test_names_and_shapes_are_written_at_the_boxes(matrix):
    assert {"week", "shape (4, 3)", "both", "[1]"} <= written(drawing_of(Boxes(week=matrix, both=matrix.view(2, 2, 3))))


def test_a_tensor_without_elements_is_drawn_without_boxes():
    figure = Boxes(t=engine.zeros(0, 3))
    assert boxes(drawing_of(figure)) == [] and figure.text() == "t, shape (0, 3): 0 rows, 3 columns."


def test_four_dimensions_are_refused():
    with pytest.raises(ValueError, match="t has 4 dimensions; at most 3 can be drawn"):
        Boxes(t=engine.zeros(1, 1, 1, 1))


def test_a_tensor_that_takes_notes_is_drawn_too():
    assert [words for *_, words, _ in boxes(drawing_of(Boxes(w=engine.ones(2, requires_grad=True))))] == ["1", "1"]


# The drawing


def test_panels_that_do_not_fit_beside_each_other_go_below():
    panel = Panel("t", "", (2, 3), lambda index: Cell("0"))
    beside, below = (svg([panel] * 3, most=most) for most in (1000, 300))
    width, height = (re.search(r"width='(\d+)' height='(\d+)'", drawing).groups() for drawing in (beside, below))
    assert int(width[0]) > 300 >= int(height[0]) - 8 and int(height[1]) > int(width[1])


def test_what_is_written_cannot_be_taken_for_markup():
    assert "<b>" in written(svg([Panel("<b>", "a & b", (), lambda index: Cell("1 < 2"))]))


# IndexExplorer


def test_the_outlined_boxes_and_the_result_are_what_the_index_picks(explorer, matrix):
    (rows, _, _), (columns, _, _) = explorer.settings.values()
    index = {"0": 0, "1": 1, "2": 2, "-1": -1, ":": slice(None), "1:": slice(1, None), ":2": slice(2)}
    index |= {"1:3": slice(1, 3), "::2": slice(None, None, 2)}
    for r in rows:
        for c in columns:
            part = matrix[index[r], index[c]].flatten().tolist()
            found = boxes(explorer.image(rows=r, columns=c))
            assert sorted(float(words) for *_, words, strong in found if strong) == sorted(part)
            assert [float(words) for *_, words, strong in found if not strong][-len(part) :] == part
            assert explorer.picked(r, c).tolist() == matrix[index[r], index[c]].tolist()


def test_the_words_say_what_comes_out(explorer):
    assert explorer.text() == "week[1, :] is a vector, shape (3,): [13.0, 19.0, 15.5]."
    assert explorer.text(columns="-1") == "week[1, -1] is a scalar, shape (): 15.5."
    assert explorer.text(rows="1:3", columns=":2") == (
        "week[1:3, :2] is a matrix, shape (2, 2): [[13.0, 19.0], [15.0, 24.0]]."
    )


def test_only_indices_that_fit_are_offered():
    (rows, *_), (columns, *_) = IndexExplorer(engine.zeros(1, 2)).settings.values()
    assert ("1" in rows, "1" in columns, "2" in columns) == (False, True, False)


def test_every_setting_has_words_of_its_own_and_the_same_size(explorer):
    (rows, *_), (columns, *_) = explorer.settings.values()
    every = [{"rows": r, "columns": c} for r in rows for c in columns]
    assert len({explorer.text(**values) for values in every}) == len(every)
    assert len({re.search(r"viewBox='([^']+)'", explorer.image(**v).decode())[1] for v in every}) == 1


def test_only_a_matrix_is_taken():
    with pytest.raises(ValueError, match="a matrix is asked for; this tensor has 1 dimensions"):
        IndexExplorer(engine.zeros(3))


def test_a_reader_without_a_kernel_sees_the_stills_with_their_words(explorer, monkeypatch):
    static = explorer.static()
    words = [explorer.text(**values) for values in explorer.stills]
    assert re.findall(r'<img alt="([^"]+)"', static["text/html"]) == words and len(set(words)) == 3
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "course.figures.explorer_widget", raising=False)
    assert explorer._repr_mimebundle_() == (static, {})


def test_the_picture_and_the_words_follow_the_sliders(explorer):
    pytest.importorskip("anywidget")
    assert explorer._repr_mimebundle_()[0][WIDGET]["model_id"]
    widget = explorer.widget()
    assert [slider["label"] for slider in widget.sliders] == ["rows", "columns"]
    widget.at = [widget.sliders[0]["texts"].index(":"), widget.sliders[1]["texts"].index("0")]
    assert (widget.image, widget.words) == (explorer.image(rows=":", columns="0"), explorer.text(rows=":", columns="0"))
