"""The figures of boxes: what is drawn and said against the tensors' own numbers."""

import base64
import html
import re
import sys
from xml.etree import ElementTree

import pytest
from over_tables import over

import engine
from course.figures import Boxes, CollapseExplorer, IndexExplorer, Pixels, ProductExplorer
from course.figures.base.grid import Cell, Panel, svg

WIDGET = "application/vnd.jupyter.widget-view+json"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def matrix():
    return engine.tensor([[14.0, 21.5, 17.0], [13.0, 19.0, 15.5], [15.0, 24.0, 18.0], [16.5, 25.0, 20.0]])


@pytest.fixture
def explorer(matrix):
    both = engine.stack([matrix, matrix + 5])
    tries = "week[1]", "week[:, 1]", "week[1:3, :2]", "both[0, :, 1]", "week[week > 20]"
    return IndexExplorer("city", "day", "time", week=matrix, both=both, tries=tries)


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
    (drawing,) = figure.pictures()
    return drawing


def images(output):
    """The images of an output, as SVGs."""
    return [base64.b64decode(data).decode() for data in re.findall(r"base64,([^\"]+)", output)]


def small_letters(drawing):
    return [size for size in re.findall(r"font-size='([\d.]+)'", drawing) if float(size) < 12]


# Boxes


@over("shape", [(), (3,), (2, 3), (2, 4, 3)])
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
    week, both = Boxes(week=matrix, both=matrix.view(2, 2, 3)).pictures()
    assert {"week", "shape (4, 3)"} <= written(week) and {"both", "[1]"} <= written(both)


def test_the_questions_stand_at_the_dimensions_that_ask_them(matrix):
    figure = Boxes("city", "day", "time", now=matrix[0, 1], day=matrix[0], week=matrix, both=matrix.view(2, 2, 3))
    now, day, week, both = map(written, figure.pictures())
    assert not any("time" in words for words in now)
    assert {"time \u2192"} <= day and {"time \u2192", "day \u2193"} <= week
    assert {"time \u2192", "day \u2193", "city 0", "city 1", "shape (2, 2, 3): city, day, time"} <= both


def test_each_tensor_is_an_image_of_its_own_so_that_they_fit_a_narrow_page(matrix):
    figure = Boxes("city", "day", "time", week=matrix, both=engine.stack([matrix, matrix]))
    shown = figure.picture()["text/html"]
    assert images(shown) == figure.pictures()
    assert re.findall(r'alt="([^"]*)"', shown) == figure.texts()
    for drawing in figure.pictures():
        assert int(re.search(r"width='(\d+)'", drawing)[1]) <= 440 and not small_letters(drawing)


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


INDICES = {
    "week[2, 1]": lambda t: t[2, 1],
    "week[-1]": lambda t: t[-1],
    "week[:, 1:]": lambda t: t[:, 1:],
    "week[::2, :2]": lambda t: t[::2, :2],
    "week[[3, 0]]": lambda t: t[[3, 0]],
    "week[week > 20]": lambda t: t[t > 20],
    "week[1:][0]": lambda t: t[1:][0],
    "both[1, ..., 0]": lambda t: (t + 5)[:, 0],
    "both[0][(week > 14) & (week < 20)]": lambda t: t[(t > 14) & (t < 20)],
}


@pytest.mark.parametrize("index", INDICES)
def test_the_outlined_boxes_and_the_result_are_what_the_index_picks(explorer, matrix, index):
    part = INDICES[index](matrix)
    whole, result = explorer.pictures(index=index)
    assert sorted(float(words) for *_, words, strong in boxes(whole) if strong) == sorted(part.flatten().tolist())
    assert [float(words) for *_, words, _ in boxes(result)] == part.flatten().tolist()
    assert explorer.picked(index).tolist() == part.tolist()
    assert f"shape {tuple(part.shape)}" in explorer.text(index=index)


def test_the_words_say_what_comes_out(explorer):
    assert explorer.text() == "week[1] is a vector, shape (3,): [13.0, 19.0, 15.5]."
    assert explorer.text(index="week[1,  -1]") == "week[1, -1] is a scalar, shape (): 15.5."
    assert explorer.text(index="both[:, 1:2]").startswith("both[:, 1:2] is a 3-D tensor, shape (2, 1, 3): ")


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("", "Write a name and an index in brackets, such as week[1]."),
        ("week", "Write a name and an index in brackets, such as week[1]."),
        ("week[1", "Write a name and an index in brackets, such as week[1]."),
        ("[1, 2][0]", "Write a name and an index in brackets, such as week[1]."),
        ("weak[1]", "There is no weak here: the names are week and both."),
        ("week[week.mean()]", "Here an index is made of numbers, colons, lists and comparisons."),
        ("week[9 ** 9]", "Here an index is made of numbers, colons, lists and comparisons."),
        ("week[4]", "IndexError: index 4 is out of bounds for dimension 0 with size 4"),
    ],
)
def test_what_is_no_index_or_does_not_fit_is_said_and_nothing_is_outlined(explorer, index, said):
    shown = explorer.at(index=index)
    assert (shown.words, shown.wrong) == (said, True)
    assert shown.pictures and not any(strong for drawing in shown.pictures for *_, strong in boxes(drawing))


def test_what_is_too_much_to_draw_is_told_without_its_numbers(explorer):
    assert (
        explorer.text(index="both[..., None]")
        == "both[..., None] is a 4-D tensor, shape (2, 4, 3, 1): too much to draw."
    )


def test_only_tensors_that_can_be_drawn_are_taken():
    with pytest.raises(ValueError, match="t has 0 dimensions; 1 to 3 can be drawn"):
        IndexExplorer(t=engine.zeros(()))


# CollapseExplorer


@pytest.fixture
def collapse(matrix):
    return CollapseExplorer("day", "time", week=matrix)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_what_is_left_is_what_the_engine_gives_and_the_outlined_numbers_make_it(collapse, matrix, how, dim):
    method = getattr(matrix, how)
    out = method() if dim == 2 else method(dim=dim)
    out = out.values if dim < 2 and how == "max" else out
    for place in range(out.numel()):
        (drawing,) = collapse.pictures(how=["sum", "mean", "max"].index(how), dim=dim, place=place)
        found = boxes(drawing)
        assert sorted(words for *_, words, _ in found) == sorted(
            f"{v:.4g}" for v in [*matrix.flatten().tolist(), *out.flatten().tolist()]
        )
        strong = sorted(words for *_, words, outlined in found if outlined)
        parts = matrix.flatten() if dim == 2 else matrix[:, place] if dim == 0 else matrix[place]
        value = out.flatten()[place].item()
        assert strong == sorted(f"{v:.4g}" for v in [*parts.tolist(), value])
        assert collapse.text(how=["sum", "mean", "max"].index(how), dim=dim, place=place).endswith(f"= {value:g}.")


def test_the_question_that_goes_is_crossed_out_and_named(collapse):
    for dim, gone in enumerate([["day"], ["time"], ["day", "time"]]):
        (drawing,) = collapse.pictures(dim=dim)
        crossed = [w.text for w in ElementTree.fromstring(drawing).iter(f"{SVG}text") if w.get("text-decoration")]
        assert sorted(words[:-2] for words in crossed) == gone
    assert collapse.text() == (
        "week.mean(dim=0): nobody asks for the day any more, only for the time. Shape (4, 3) becomes (3,). "
        "At time 1: (21.5 + 19 + 24 + 25) / 4 = 22.375."
    )


def test_the_picture_of_a_collapse_keeps_its_size(collapse):
    sizes = [re.search(r"viewBox='([^']+)'", d)[1] for dim in range(3) for d in collapse.pictures(dim=dim)]
    assert len(set(sizes)) == 1


def test_a_table_and_two_questions_are_asked_for():
    with pytest.raises(ValueError, match="a table with two dimensions is asked for"):
        CollapseExplorer("day", t=engine.zeros(2, 2))


# ProductExplorer


@pytest.fixture
def product(matrix):
    proposals = engine.tensor([[0.25, 1.0], [0.5, 0.0], [0.25, 0.0]])
    return ProductExplorer("day", "time", "proposal", week=matrix, proposals=proposals)


def test_each_number_of_the_product_is_that_of_its_row_and_its_column(product, matrix):
    for row in range(4):
        for column in range(2):
            (drawing,) = product.pictures(row=row, column=column)
            value = (matrix @ product.right)[row, column].item()
            pairs = [*zip(matrix[row].tolist(), product.right[:, column].tolist(), strict=True)]
            strong = [words for *_, words, outlined in boxes(drawing) if outlined]
            assert sorted(strong) == sorted(f"{v:.4g}" for v in [*(v for pair in pairs for v in pair), value])
            total = " + ".join(f"{one:g} \u00d7 {other:g}" for one, other in pairs)
            assert product.text(row=row, column=column).endswith(f"{total} = {value:g}.")


def test_a_row_and_its_result_are_in_one_line_and_so_are_a_column_and_its_result(product):
    (drawing,) = product.pictures(row=2, column=1)
    strong = [(x, y) for x, y, _, outlined in boxes(drawing) if outlined]
    result = max(strong)  # at the lower right
    assert sum(y == result[1] for _, y in strong) == 4 and sum(x == result[0] for x, _ in strong) == 4


def test_matrices_that_cannot_be_multiplied_are_refused():
    with pytest.raises(ValueError, match="two matrices that can be multiplied"):
        ProductExplorer("a", "b", "c", s=engine.zeros(2, 3), t=engine.zeros(2, 3))


# What they share


@pytest.fixture(params=["explorer", "collapse", "product"])
def chooser(request):
    return request.getfixturevalue(request.param)


def test_a_reader_without_a_kernel_sees_the_stills_under_titles_with_their_words(chooser, monkeypatch):
    static = chooser.static()
    titles = [title for title, _ in chooser.stills]
    words = [chooser.text(**values) for _, values in chooser.stills]
    assert len(set(titles)) == len(set(words)) == len(titles) >= 2
    shown = [
        html.unescape(found) for found in re.findall(r"<p>(?:<strong>)?(.+?)(?:</strong>)?</p>", static["text/html"])
    ]
    assert shown == [part for pair in zip(titles, words, strict=True) for part in pair]
    assert images(static["text/html"]) == [d for _, values in chooser.stills for d in chooser.pictures(**values)]
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "course.figures.base.chooser_widget", raising=False)
    assert chooser._repr_mimebundle_() == (static, {})


def test_the_drawings_fit_a_narrow_page_and_have_no_small_letters(chooser):
    for _, values in chooser.stills:
        for drawing in chooser.pictures(**values):
            assert int(re.search(r"width='(\d+)'", drawing)[1]) <= 440 and not small_letters(drawing)


def test_the_pictures_and_the_words_follow_the_controls_and_the_boxes(chooser):
    pytest.importorskip("anywidget")
    assert chooser._repr_mimebundle_()[0][WIDGET]["model_id"]
    widget = chooser.widget()
    assert [control["name"] for control in widget.controls] == list(chooser.begin) == list(widget.values)
    _, values = chooser.stills[-1]
    widget.values = {**widget.values, **values}
    assert (widget.pictures, widget.words) == (chooser.pictures(**values), chooser.text(**values))
    for place in range(len(widget.clicks)):  # the number of a box is that of what it chooses
        assert any(f"data-number='{place}'" in drawing for drawing in widget.pictures)


def test_a_place_that_is_not_there_any_more_becomes_the_last_one(collapse):
    pytest.importorskip("anywidget")
    widget = collapse.widget()
    widget.values = {"how": 1, "dim": 1, "place": 3}
    widget.values = {"how": 1, "dim": 0, "place": 3}
    assert widget.values["place"] == 2 and widget.places["place"] == ["time 0", "time 1", "time 2"]


# Pixels


def points_of(drawing):
    """The colour of each point that is drawn, by its column and row."""
    rects = re.findall(r"<rect x='(\d+)' y='(\d+)' width='(\d+)' height='12' fill='(#\w+)'", drawing)
    top = min(int(y) for _, y, *_ in rects)
    return {
        ((int(x) - 8) // 12 + i, (int(y) - top) // 12): colour
        for x, y, width, colour in rects
        for i in range(int(width) // 12)
    }


def test_a_table_is_a_picture_in_grey_and_three_are_one_in_colour():
    figure = Pixels(grey=engine.tensor([[0.0, 0.5, 1.0]]), colours=engine.eye(3).reshape(3, 1, 3))
    grey, colours = map(points_of, figure.pictures())
    assert grey == {(0, 0): "#000000", (1, 0): "#808080", (2, 0): "#ffffff"}
    assert colours == {(0, 0): "#ff0000", (1, 0): "#00ff00", (2, 0): "#0000ff"}


def test_every_point_is_drawn_where_it_stands():
    tensor = engine.arange(12.0).reshape(3, 4) / 20 // 0.2
    (drawing,) = Pixels(t=tensor * 0.25).pictures()
    shades = [f"#{round(v * 0.25 * 255):02x}" for v in tensor.flatten().tolist()]
    assert [points_of(drawing)[x, y][:3] for y in range(3) for x in range(4)] == shades


def test_a_pictures_words_give_its_shape_and_what_it_is_made_of():
    figure = Pixels(t=engine.tensor([[0.0, 2.0], [1.0, -1.0]]), blue=engine.zeros(3, 1, 2))
    assert figure.text() == (
        "t, shape (2, 2): a picture in grey, 2 lines of 2 points, of 2 shades. "
        "blue, shape (3, 1, 2): a picture in colour, 1 line of 2 points, of 1 colour."
    )
    assert figure._repr_mimebundle_()["text/plain"] == figure.text()
    assert images(figure._repr_mimebundle_()["text/html"]) == figure.pictures()
    assert not any(map(small_letters, figure.pictures()))


def test_black_stays_black_on_a_dark_page():
    assert "max-width" not in Pixels(t=engine.zeros(2, 2))._repr_mimebundle_()["text/html"]  # what custom.css inverts


@over("shape", [(), (3,), (2, 3, 3), (1, 3, 2, 2)])
def test_what_is_no_picture_is_refused(shape):
    with pytest.raises(ValueError, match=re.escape(f"t has shape {shape}")):
        Pixels(t=engine.zeros(shape))
