"""Lesson 01, tensors: the exercises' trials, oracles, usual mistakes and hints."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import engine
from course.exercises import Exercise

# 1.2


def board(n: int) -> engine.Tensor:
    return engine.tensor([[float((row + column) % 2 == 0) for column in range(n)] for row in range(n)])


def board_trial(chessboard: Callable) -> Iterator[tuple]:
    yield "chessboard(4)", chessboard, 4
    yield "chessboard(5)", chessboard, 5


def board_more(chessboard: Callable) -> Iterator[tuple]:
    yield "", chessboard, 1
    yield "", chessboard, 8


def ones_at(*parts: Any) -> Callable:
    """A board with ones in these parts."""

    def chessboard(n: int) -> engine.Tensor:
        zeros: Any = engine.zeros(n, n)
        for part in parts:
            zeros[part] = 1.0
        return zeros

    return chessboard


EVEN, ODD = slice(0, None, 2), slice(1, None, 2)


def twice_the_rows(n: int) -> engine.Tensor:
    zeros: Any = engine.zeros(n, n)
    zeros[::2][::2] = 1.0
    zeros[1::2][1::2] = 1.0
    return zeros


# 1.3


def warmest(readings: engine.Tensor) -> int:
    means = [sum(row) / len(row) for row in readings.tolist()]
    return means.index(max(means))


def warmest_trial(warmest_day: Callable) -> Iterator[tuple]:
    rows = [[14.0, 21.5, 17.0], [10.0, 30.0, 12.0], [18.0, 20.0, 19.0], [13.0, 19.0, 15.5]]
    yield f"warmest_day({rows})", warmest_day, engine.tensor(rows)
    rows = [[1.0, 2.0, 9.0], [8.0, 1.0, 3.0], [2.0, 2.0, 2.0], [7.0, 7.0, 7.0], [0.0, 3.0, 4.0]]
    yield f"warmest_day({rows})", warmest_day, engine.tensor(rows)


def warmest_more(warmest_day: Callable) -> Iterator[tuple]:
    yield "", warmest_day, engine.randn(7, 4)
    yield "", warmest_day, -engine.ones(3, 2) - engine.eye(3, 2)


# 1.4


def signed_trial(without_negatives: Callable) -> Iterator[tuple]:
    yield "t = [3.0, -1.0, 2.0]", without_negatives, engine.tensor([3.0, -1.0, 2.0])
    yield "t = [[-2.0, 5.0], [0.0, -0.5]]", without_negatives, engine.tensor([[-2.0, 5.0], [0.0, -0.5]])


def signed_more(without_negatives: Callable) -> Iterator[tuple]:
    yield "", without_negatives, engine.randn(2, 3, 4)


def in_itself(t: Any) -> Any:
    t[t < 0] = 0.0
    return t


def through_zeros(t: Any) -> Any:
    result: Any = engine.zeros_like(t)
    result[t < 0] = t[t < 0]
    return result


# 1.5


def weighted(points: engine.Tensor, weights: engine.Tensor) -> engine.Tensor:
    rows, proposals = points.tolist(), weights.tolist()
    return engine.tensor([[sum(p * w for p, w in zip(row, of, strict=True)) for of in proposals] for row in rows])


def totals_trial(totals: Callable) -> Iterator[tuple]:
    points, weights = [[10.0, 20.0], [30.0, 0.0], [5.0, 5.0]], [[0.5, 0.5], [1.0, 0.0], [0.2, 0.8], [2.0, 1.0]]
    shown = f"3 students with 2 exams, 4 proposals:\npoints = {points}\nweights = {weights}"
    yield shown, totals, engine.tensor(points), engine.tensor(weights)
    points, weights = [[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [1.0, 1.0]]
    yield f"points = {points}\nweights = {weights}", totals, engine.tensor(points), engine.tensor(weights)


def totals_more(totals: Callable) -> Iterator[tuple]:
    yield "", totals, engine.rand(5, 3), engine.rand(2, 3)


# 1.6


def celsius(array: np.ndarray) -> engine.Tensor:
    array[:] = (array - 32) * 5 / 9
    return engine.from_numpy(array)


def written_into(to_celsius: Callable, array: np.ndarray) -> np.ndarray:
    to_celsius(array)[0] = -100.0
    return array


def celsius_trial(to_celsius: Callable) -> Iterator[tuple]:
    yield "array = [32.0, 212.0, 33.0]", to_celsius, np.array([32.0, 212.0, 33.0])
    shown = "array = [32.0, 212.0], and -100.0 is written into the tensor at place 0: what is in the array?"
    yield shown, written_into, to_celsius, np.array([32.0, 212.0])


def celsius_more(to_celsius: Callable) -> Iterator[tuple]:
    yield "", to_celsius, np.array([[50.0, 59.0], [68.0, 0.0]])
    yield "", written_into, to_celsius, np.array([5.0, 14.0, 23.0], dtype=np.float32)


def upside_down(array: np.ndarray) -> Any:
    array -= 32
    array *= 9 / 5
    return engine.from_numpy(array)


def changed_then_copied(array: np.ndarray) -> Any:
    array -= 32
    array *= 5 / 9
    return engine.tensor(array)


EXERCISES = (
    Exercise(
        key="01.1",
        points=1,
        answer=((4, 3), (2, 2, 3), (2, 4), (3,)),
        wrong=(
            (
                ((1, 4, 3), (2, 2, 3), (2, 4, 1), (1, 1, 3)),
                "A number in an index answers its question, and the dimension is gone. You kept it, with size 1.",
            ),
            (((4, 3), (2, 3, 3), (2, 4), (3,)), "The end of a slice is not included: 1:3 is 1 and 2."),
            (
                ((4, 3), (2, 2, 3), (2, 4), 3),
                "The right sizes. But (3) is the number 3: a shape with one dimension is written (3,), with a comma.",
            ),
            (((4, 3), (2, 3), (2, 4), (3,)), "A slice narrows its question and does not answer it: three stay three."),
            (((4, 3), (2, 2, 3), (4, 3), (3,)), "In readings[:, :, 0] the 0 stands at the *last* question."),
        ),
        hints=(
            "For each of the three questions: is it answered by a number, narrowed by a slice, or left open?",
            "Answered: its size is gone. Narrowed by 1:3: its size is 2. Left open: its size stays.",
            "readings[0] leaves the last two sizes, readings[:, 1:3] three, readings[:, :, 0] two, readings[1, 2] one.",
        ),
    ),
    Exercise(
        key="01.2",
        points=1,
        answer=board,
        trial=board_trial,
        hidden=board_more,
        wrong=(
            (ones_at((EVEN, EVEN)), "The even rows are right. The odd ones hold no 1 yet."),
            (ones_at((EVEN, ODD), (ODD, EVEN)), "The ones and the zeros have changed places: [0, 0] is to hold a 1."),
            (ones_at(EVEN), "These are stripes: a whole row holds one number. Give the columns a step, too."),
            (
                ones_at((EVEN, EVEN), (ODD, EVEN)),
                "These are stripes, from top to bottom: the odd rows begin one further.",
            ),
            (
                twice_the_rows,
                "board[::2][::2] takes every second row, and every second of these. Name rows and columns in one pair "
                "of brackets.",
            ),
            (lambda n: engine.eye(n), "That is the diagonal alone. Every second square is to hold a 1."),
            (lambda n: board(n).long(), "The right squares, filled with whole numbers: write 1.0, not 1."),
        ),
        hints=(
            "board[::2, ::2] is every second column of every second row. Which squares does it leave out?",
            "Two parts: the even columns of the even rows, and the odd columns of the odd rows.",
            "board = engine.zeros(n, n)\nboard[::2, ::2] = 1.0\nboard[...] = 1.0  # from 1 on, in steps of 2, twice\n"
            "return board",
        ),
    ),
    Exercise(
        key="01.3",
        points=1,
        answer=warmest,
        trial=warmest_trial,
        hidden=warmest_more,
        wrong=(
            (
                lambda t: t.mean(dim=0).argmax().item(),
                "dim=0 takes the days away: this is the warmest time of day. Which dimension has to go?",
            ),
            (
                lambda t: t.argmax().item(),
                "Without a dimension, argmax counts through the whole table, to the largest single reading.",
            ),
            (
                lambda t: t.max(dim=1).values.argmax().item(),
                "That is the day with the highest single reading. The mean of the day is asked for.",
            ),
            (lambda t: t.mean(dim=1).max().item(), "That is the highest mean itself. Asked for is its place."),
            (lambda t: t.mean(dim=1).argmax(), "The right place, in a tensor. A plain number is asked for."),
            (lambda t: t.mean(dim=1).argmin().item(), "That is the coldest day."),
        ),
        hints=(
            "First a mean for each day. Which dimension is to go away for that?",
            "A mean over the times, which are dimension 1; then the place of the largest; then out of the box.",
            "return readings.mean(dim=...).argmax().item()",
        ),
    ),
    Exercise(
        key="01.4",
        points=1,
        answer=lambda t: engine.relu(t),
        trial=signed_trial,
        hidden=signed_more,
        wrong=(
            (
                in_itself,
                "The tensor that was given has changed: a second name, or a slice, shares its numbers. Copy first.",
            ),
            (
                lambda t: t[t >= 0],
                "That picks the numbers that are not negative, and leaves the others out: the shape is lost.",
            ),
            (lambda t: t.abs(), "abs turns -1 into 1. It is to become 0."),
            (through_zeros, "This keeps the negative numbers and drops the others."),
        ),
        hints=(
            "t[t < 0] = 0.0 writes into t. Whose numbers are those?",
            "Make a copy, write into the copy, return the copy.",
            "result = t....()\nresult[result < 0] = 0.0\nreturn result",
        ),
    ),
    Exercise(
        key="01.5",
        points=2,
        answer=weighted,
        trial=totals_trial,
        hidden=totals_more,
        wrong=(
            (
                lambda p, w: p @ w,
                "A row on the left meets a *column* on the right. A proposal's weights stand in a row of weights.",
            ),
            (lambda p, w: w @ p.T, "A row for each proposal, a column for each student: it is the other way round."),
            (lambda p, w: p @ w.T / p.shape[1], "That is the mean over the exams. The total is the sum."),
            (
                lambda p, w: p.T @ w,
                "points.T has a row for each exam. What is summed over then is no longer the exams.",
            ),
            (
                lambda p, w: p * w,
                "`*` is elementwise. You need a sum over the exams, for each student and each proposal.",
            ),
        ),
        hints=(
            "In a @ b, each row of a meets each column of b. What should a row of a hold, and what a column of b?",
            "A row of points holds one student's exams. The columns of the right one must be the proposals.",
            "return points @ weights....",
        ),
    ),
    Exercise(
        key="01.6",
        points=2,
        answer=celsius,
        trial=celsius_trial,
        hidden=celsius_more,
        wrong=(
            (
                lambda array: (engine.from_numpy(array) - 32) * 5 / 9,
                "The array stays as it was. `t - 32` makes a new tensor, and engine.tensor a copy.",
            ),
            (upside_down, "Multiplied by 9 and divided by 5: that is the way from Celsius to Fahrenheit."),
            (
                changed_then_copied,
                "The array is right. But engine.tensor copies: what is written into the copy does not reach the array.",
            ),
        ),
        hints=(
            "Which of the two ways from NumPy shares memory, `engine.tensor` or `engine.from_numpy`?",
            "from_numpy, and then only in-place operations: -=, *=, or functions that end in an underscore.",
            "t = engine.from_numpy(array)\nt -= 32\nt *= ...\nreturn t",
        ),
    ),
)
