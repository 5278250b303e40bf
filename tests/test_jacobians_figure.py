"""The Jacobian explorer: its slopes against nudges, its words and its picture against its slopes."""

import re

import pytest

import engine
from course.figures import JacobianExplorer

FUNCTIONS = {
    "x * x": lambda x: x * x,
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(0),
}
X = [1.0, 2.0, 0.5, -0.5]


@pytest.fixture
def explorer():
    return JacobianExplorer(FUNCTIONS, engine.tensor(X))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_slopes_are_those_of_nudges(explorer, name):
    _, table = explorer.table(name)
    x = engine.tensor(X, dtype=engine.float64)
    for j in range(4):
        e = engine.zeros(4, dtype=engine.float64)
        e[j] = 1e-6
        column = (FUNCTIONS[name](x + e) - FUNCTIONS[name](x - e)) / 2e-6
        assert table[:, j].tolist() == pytest.approx(column.tolist(), abs=1e-5)


def test_the_words_give_the_row_the_column_and_how_many_are_not_zero(explorer):
    assert explorer.text(function="cumsum", output=2, input=1) == (
        "cumsum: if input 1 moves a little, output 2 moves 1 times as far. Row 2, the slopes of output 2: 1, 1, 1, 0. "
        "Column 1, the slopes with respect to input 1: 0, 1, 1, 1. 10 of the 16 slopes are not 0."
    )
    assert "output 0 does not move" in explorer.text(function="x * x", output=0, input=3)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 1)])
def test_one_row_and_one_column_are_outlined(explorer, row, column):
    drawn = explorer.image(function="softmax", output=row, input=column).decode()
    assert len(re.findall(r"<rect [^>]*stroke-width='2.5'", drawn)) == 7 + 2  # of the table; of x and y


def test_every_setting_has_words_of_its_own_and_the_same_size(explorer):
    seen = set()
    for name in FUNCTIONS:
        for row in range(4):
            for column in range(4):
                values = {"function": name, "output": row, "input": column}
                seen.add(explorer.text(**values))
                assert re.match(r"<svg [^>]*width='740'", explorer.image(**values).decode())
    assert len(seen) == 3 * 16


def test_a_reader_without_a_kernel_sees_each_function_with_its_words(explorer):
    shown = explorer.static()
    assert shown["text/html"].count("<img alt=") == 3
    assert all(name in shown["text/plain"] for name in FUNCTIONS)
