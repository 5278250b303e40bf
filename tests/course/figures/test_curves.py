"""The figures of curves: their numbers against the formulas, their pictures and words against their numbers."""

import functools
import re
import struct
import sys

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import DescentExplorer, SecantExplorer

WIDGET = "application/vnd.jupyter.widget-view+json"


def f(x):
    return x**2 + 3 * x + 5


def remembering(figure):
    """The figure, which draws each picture once for all tests: that takes a fifth of a second."""
    figure.image = functools.cache(figure.image)
    return figure


@pytest.fixture(scope="module")
def secant():
    return remembering(SecantExplorer(f, at=2.0, between=(-6, 4)))


@pytest.fixture(scope="module")
def descent():
    return remembering(DescentExplorer(f, start=4.0, between=(-9, 6)))


FIGURES = ("secant", "descent")


@pytest.fixture(params=FIGURES)
def figure(request):
    return request.getfixturevalue(request.param)


def drawn(figure, **values):
    """The axes, and the lines on them by their label."""
    axes = Figure().add_subplot()
    figure.draw(axes, **figure.start() | values)
    return axes, {line.get_label(): line for line in axes.lines}


# The numbers


def test_the_slope_of_the_secant_is_that_of_the_curve_plus_the_nudge(secant):
    """(f(x + n) - f(x)) / n = 2x + 3 + n."""
    for nudge in secant.settings["nudge"][0]:
        assert secant.slope(nudge) == pytest.approx(7 + nudge, abs=1e-9)


@over("rate", [0.01, 0.1, 0.5, 1.0, 1.1])
def test_the_walk_is_gradient_descent(descent, rate):
    """x + 3/2 is multiplied by 1 - 2 rate at each step."""
    expected = [-1.5 + 5.5 * (1 - 2 * rate) ** n for n in range(9)]
    assert descent.walk(rate, 8) == pytest.approx(expected, rel=1e-5)


def test_a_walk_without_steps_stays_where_it_starts(descent):
    assert descent.walk(0.1, 0) == [4.0]


# The words


def test_the_words_of_a_secant_name_both_points_and_the_slope(secant):
    assert secant.text() == (
        "From (2, 15.000) to (3.5, 27.750): 1.5 along, 12.75 up. The line through both has slope 8.500. The glass "
        "shows 2.4 of the width."
    )
    assert secant.text(nudge=0.001).startswith(
        "From (2, 15.000) to (2.001, 15.007): 0.001 along, 0.007001 up. The line through both has slope 7.001."
    )


def test_the_words_of_a_walk_say_where_it_ends_and_whether_that_can_be_seen(descent):
    assert descent.text(steps=1) == (
        "With learning rate 0.1, 1 step leads from x = 4 to x = 2.900; the output goes from 33.000 to 22.110, the "
        "slope from 11.000 to 8.800."
    )
    assert "8 steps lead from x = 4 to x = 10.290, outside of the picture; " in descent.text(rate=1.05)


# The pictures


def test_the_line_is_drawn_through_both_points(secant):
    for nudge in (1.5, 0.1):
        axes, lines = drawn(secant, nudge=nudge)
        line = lines[f"slope {7 + nudge:.3f}"]
        (x0, x1), (y0, y1) = ([data[0], data[-1]] for data in (line.get_xdata(), line.get_ydata()))
        (points,) = (line for line in axes.lines if line.get_marker() == "o")
        assert list(points.get_xdata()) == [2.0, 2.0 + nudge]
        for x, y in zip(points.get_xdata(), points.get_ydata(), strict=True):
            assert y == pytest.approx(f(x)) == pytest.approx(y0 + (y1 - y0) * (x - x0) / (x1 - x0))


@over("nudge", [2.0, 0.1, 0.001])
def test_the_triangle_goes_along_and_then_up_and_fills_the_glass(secant, nudge):
    axes, _ = drawn(secant, nudge=nudge)
    glass = axes.figure.axes[1]
    for part in (axes, glass):
        (triangle,) = (line for line in part.lines if line.get_label() == "along, and up")
        assert list(triangle.get_xdata()) == [2.0, 2.0 + nudge, 2.0 + nudge]
        assert list(triangle.get_ydata()) == pytest.approx([15.0, 15.0, f(2.0 + nudge)])
    low, high = glass.get_xlim()
    assert nudge / (high - low) == pytest.approx(1 / 1.6)
    assert glass.get_ylim()[0] < 15.0 < f(2.0 + nudge) < glass.get_ylim()[1]
    assert [text.get_text() for text in glass.texts] == [f"{nudge:g} along", f"{f(2.0 + nudge) - 15:.4g} up"]


def test_the_slope_is_drawn_at_each_dot_equally_long_on_the_page(descent):
    axes, _ = drawn(descent, rate=0.8, steps=4)
    positions, slopes = descent.walk_and_slopes(0.8, 4)
    pieces = [line for line in axes.lines if line.get_label().startswith("_slope")]
    assert slopes == pytest.approx([2 * x + 3 for x in positions], rel=1e-5)
    assert len(pieces) == len(positions) == 5
    for piece, x, slope in zip(pieces, positions, slopes, strict=True):
        (x0, x1), (y0, y1) = piece.get_xdata(), piece.get_ydata()
        assert ((x0 + x1) / 2, (y0 + y1) / 2) == pytest.approx((x, f(x)))
        assert (y1 - y0) / (x1 - x0) == pytest.approx(slope, rel=1e-5)
    heights = [abs(piece.get_ydata()[1] - piece.get_ydata()[0]) for piece in pieces]
    assert heights.index(max(heights)) == [abs(s) for s in slopes].index(max(map(abs, slopes)))


def test_an_arrow_goes_from_each_dot_to_above_the_next(descent):
    axes, _ = drawn(descent, rate=0.1, steps=3)
    positions = descent.walk(0.1, 3)
    arrows = [(note.xyann, note.xy) for note in axes.texts]
    assert arrows == [((x, f(x)), (to, f(x))) for x, to in zip(positions, positions[1:], strict=False)]


def test_the_walk_is_drawn_on_the_curve_from_its_start(descent):
    _, lines = drawn(descent, rate=1.0, steps=3)
    assert list(lines["the walk"].get_xdata()) == [4.0, -7.0, 4.0, -7.0]
    assert list(lines["the walk"].get_ydata()) == [f(x) for x in (4.0, -7.0, 4.0, -7.0)]
    assert (list(lines["start"].get_xdata()), list(lines["start"].get_ydata())) == ([4.0], [33.0])


def test_a_walk_that_leaves_the_picture_does_not_change_its_frame(descent):
    near, far = (drawn(descent, rate=rate)[0] for rate in (0.1, 1.1))
    assert (near.get_xlim(), near.get_ylim()) == (far.get_xlim(), far.get_ylim())


def test_a_flat_curve_has_a_picture():
    axes, _ = drawn(SecantExplorer(lambda x: 2.0, at=0.0, between=(-1, 1)))
    assert axes.get_ylim() == (1.0, 3.0)


def test_every_setting_has_its_picture_and_its_words(figure):
    for name, (values, first, _) in figure.settings.items():
        assert first in values
        assert len({figure.text(**{name: value}) for value in values}) == len(values)
    name, (values, _, _) = next(iter(figure.settings.items()))
    assert len({figure.image(**{name: value}) for value in values[:3]}) == 3


def test_the_picture_has_twice_the_pixels_of_its_size_and_its_words_beside_it(figure):
    width, height = struct.unpack(">II", figure.image()[16:24])
    assert (width, height) == tuple(int(144 * inches) for inches in figure.size)
    bundle = figure.picture()
    assert re.match(rf'<img alt="{re.escape(figure.text())}" width="{width // 2}" ', bundle["text/html"])
    assert bundle["text/plain"] == figure.text()


# In a notebook


def test_a_reader_without_a_kernel_sees_the_stills_with_their_titles_and_words(figure):
    static = figure.static()
    words = [figure.text(**values) for values in figure.stills]
    assert len(set(words)) == len(words) >= 2 and words[0] == figure.text()
    assert re.findall(r'<img alt="([^"]+)"', static["text/html"]) == words
    assert re.findall(r"<p><strong>([^<]+)</strong></p>", static["text/html"]) == list(figure.titles)
    assert static["text/plain"].splitlines() == [f"{of}. {s}" for of, s in zip(figure.titles, words, strict=True)]


def test_a_notebook_gets_the_widget_and_the_stills(figure):
    pytest.importorskip("anywidget")
    data, _ = figure._repr_mimebundle_()
    assert data.pop(WIDGET)["model_id"] and data == figure.static()


def test_without_anywidget_a_notebook_gets_the_stills(figure, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "course.figures.base.explorer_widget", raising=False)
    assert figure._repr_mimebundle_() == (figure.static(), {})


def test_the_picture_and_the_words_follow_the_sliders(descent):
    pytest.importorskip("anywidget")
    widget = descent.widget()
    assert [(slider["label"], len(slider["texts"])) for slider in widget.sliders] == [
        ("learning rate", 14),
        ("steps", 21),
    ]
    assert [slider["texts"][i] for slider, i in zip(widget.sliders, widget.at, strict=True)] == ["0.1", "8"]
    assert (widget.image, widget.words) == (descent.image(), descent.text())
    widget.at = [widget.sliders[0]["texts"].index("1"), 3]
    assert (widget.image, widget.words) == (descent.image(rate=1.0, steps=3), descent.text(rate=1.0, steps=3))
