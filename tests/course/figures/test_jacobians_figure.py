"""The Jacobian explorer: its slopes against nudges, its words and its bars against products with the table."""

import re

import pytest

import engine
from course.figures import JacobianExplorer

FUNCTIONS = {
    "x * x": lambda x: x * x,
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(0),
}
X = [1.0, 2.0, 0.5]


@pytest.fixture
def explorer():
    return JacobianExplorer(FUNCTIONS, engine.tensor(X))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_slopes_are_those_of_nudges(explorer, name):
    table = explorer.table(name)
    x = engine.tensor(X, dtype=engine.float64)
    for j in range(3):
        e = engine.zeros(3, dtype=engine.float64)
        e[j] = 1e-6
        column = (FUNCTIONS[name](x + e) - FUNCTIONS[name](x - e)) / 2e-6
        assert table[:, j].tolist() == pytest.approx(column.tolist(), abs=1e-5)


def test_it_opens_on_one_row_and_one_column(explorer):
    assert explorer.text(function="cumsum") == (
        "cumsum at x = [1, 2, 0.50]. Backward: v = [1, 0, 0] makes 1 × row 0. v^T J = [1, 0, 0]: a slope for each "
        "input. Forward: u = [0, 1, 0] makes 1 × column 1. J u = [0, 1, 1]: a speed for each output."
    )


def test_the_words_give_weighted_sums_of_rows_and_of_columns(explorer):
    said = explorer.text(function="cumsum", v0=1, v1=-2, v2=2, u0=2, u1=0, u2=-1)
    assert "1 × row 0 + -2 × row 1 + 2 × row 2. v^T J = [1, 0, 2]" in said
    assert "2 × column 0 + -1 × column 2. J u = [2, 2, 1]" in said
    assert "makes 0 of each row. v^T J = [0, 0, 0]" in explorer.text(v0=0)


def test_the_bars_are_as_long_as_the_products(explorer):
    drawn = explorer.image(function="cumsum", v0=1, v1=-2, v2=2, u0=2, u1=0, u2=-1).decode()
    below = [float(height) for height in re.findall(r"<rect [^>]*width='30' height='([\d.]+)'", drawn)]
    beside = [float(width) for width in re.findall(r"<rect [^>]*width='([\d.]+)' height='26'", drawn)]
    assert [height / below[0] for height in below] == pytest.approx([1, 0, 2], abs=1e-3)
    assert [width / beside[2] for width in beside] == pytest.approx([2, 2, 1], abs=1e-3)


def test_nothing_is_drawn_outside_and_no_text_is_too_small(explorer):
    width, height = explorer.drawn
    for weight in (-2, 2):
        extreme = {name: weight for name in explorer.settings if name != "function"}
        for name in FUNCTIONS:
            drawn = explorer.image(function=name, **extreme).decode()
            assert min(map(float, re.findall(r"font-size='(\d+)'", drawn))) >= 12
            for x, y, w, h in re.findall(r"<rect x='([^']+)' y='([^']+)' width='([^']+)' height='([^']+)'", drawn):
                assert float(x) >= 0 and float(x) + float(w) <= width
                assert float(y) >= 0 and float(y) + float(h) <= height


def test_tables_that_are_not_square_have_a_weight_for_each_output_and_a_speed_for_each_input():
    m = engine.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    figure = JacobianExplorer({"m @ x": lambda x: m @ x}, engine.ones(3))
    assert "v = [1, 0] makes 1 × row 0. v^T J = [1, 0, 2]" in figure.text()
    assert list(figure.settings) == ["function", "v0", "v1", "u0", "u1", "u2"]


def test_a_reader_without_a_kernel_sees_each_function_with_its_words_and_its_name(explorer):
    shown = explorer.static()
    assert shown["text/html"].count("<img alt=") == 3
    for still in explorer.stills:
        name = still.get("function", "x * x")
        assert f"{name} at x = [1, 2, 0.50]" in shown["text/plain"]
        assert f">{name} at x = [1, 2, 0.50]</text>" in explorer.image(**still).decode()
