"""Lesson 01, tensors: the exercises' trials, oracles, usual mistakes and hints."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import engine
from course.judging.words import Exercise, changed, mistakes, properties

# 1.2


def board(n: int) -> engine.Tensor:
    return engine.tensor([[float((row + column) % 2 == 0) for column in range(n)] for row in range(n)])


def with_a_point(chessboard: Callable, n: int) -> Any:
    """Return the board, in float32 where it is in another floating-point type: which of them is not asked."""
    made = chessboard(n)
    floating = isinstance(made, engine.Tensor) and made.is_floating_point()
    return made.float() if floating else made


def board_trial(chessboard: Callable) -> Iterator[tuple]:
    yield "chessboard(4)", with_a_point, chessboard, 4
    yield "chessboard(5)", with_a_point, chessboard, 5
    yield "", with_a_point, chessboard, 1
    yield "", with_a_point, chessboard, 8


def ones_at(*parts: Any) -> Callable:
    """Make a board with ones in these parts."""

    def chessboard(n: int) -> engine.Tensor:
        zeros: Any = engine.zeros(n, n)
        for part in parts:
            zeros[part] = 1.0
        return zeros

    return chessboard


EVEN, ODD = slice(0, None, 2), slice(1, None, 2)


# 1.3


def warmest(readings: engine.Tensor) -> int:
    means = [sum(row) / len(row) for row in readings.tolist()]
    return means.index(max(means))


def not_numpys(warmest_day: Callable, readings: engine.Tensor) -> Any:
    """Return the place; for one of NumPy's numbers, which counts as Python's elsewhere, its type's name."""
    place = warmest_day(readings)
    return f"one of NumPy's numbers ({type(place).__name__})" if isinstance(place, np.generic) else place


def warmest_trial(warmest_day: Callable) -> Iterator[tuple]:
    # The highest reading, the highest minimum, the highest median and the highest number of each column are elsewhere.
    rows = [[14.5, 18.5, 10.0], [18.5, 23.5, 20.0], [13.5, 17.5, 17.0], [17.0, 25.0, 10.5], [21.5, 20.0, 11.5]]
    rows += [[18.0, 21.5, 24.0], [23.0, 15.5, 24.5]]
    yield f"warmest_day({rows})", warmest_day, engine.tensor(rows)
    # Only the fractions tell.
    rows = [[1.9, -1.0], [0.3, -1.4], [-0.4, 1.8], [0.0, 0.2], [0.1, -1.9], [0.7, 1.7], [-1.8, -1.0], [-1.9, 1.5]]
    yield f"warmest_day({rows})", warmest_day, engine.tensor(rows)
    rows = [[20.1, 20.2], [20.3, 20.4], [20.2, 20.3]]  # and here those of the means
    yield f"warmest_day({rows})", warmest_day, engine.tensor(rows)
    rows = [[-3.0, -5.0, -4.0], [-1.0, -2.5, -2.0], [-4.0, -0.5, -6.0]]  # no mean is above 0
    yield f"warmest_day({rows})", warmest_day, engine.tensor(rows)
    rows = [[14.0, 21.5, 17.0], [15.0, 24.0, 18.0]]
    yield f"warmest_day({rows}), a plain integer", not_numpys, warmest_day, engine.tensor(rows)
    yield "", not_numpys, warmest_day, engine.randn(7, 4)
    yield "", warmest_day, -engine.ones(3, 2) - engine.eye(3, 2)


# 1.4


def after_writing(without_negatives: Callable, t: engine.Tensor) -> engine.Tensor:
    without_negatives(t)[0] = 5.0
    return t


def signed_trial(without_negatives: Callable) -> Iterator[tuple]:
    yield "t = [3.0, -1.0, 2.0]", without_negatives, engine.tensor([3.0, -1.0, 2.0])
    rows = [[-2.0, 5.0], [0.0, -0.5], [0.25, 0.5]]
    yield "t = [[-2.0, 5.0], [0.0, -0.5], [0.25, 0.5]]", without_negatives, engine.tensor(rows)
    yield "t = [300.0, -0.001, 1e6, -1e6]", without_negatives, engine.tensor([300.0, -0.001, 1e6, -1e6])
    wide = engine.tensor([0.1, -0.1], dtype=engine.float64)
    yield "t = [0.1, -0.1], float64", without_negatives, wide
    shown = "t = [1.0, 2.0], and then 5.0 is written into the result at place 0: what is in t?"
    yield shown, after_writing, without_negatives, engine.tensor([1.0, 2.0])
    yield "", without_negatives, engine.randn(2, 3, 4)
    yield "", without_negatives, engine.tensor([-0.001, 1e6])


def clipped(t: Any) -> Any:
    result = t.clone()
    result[result < 0] = 0.0
    return result


# 1.5


def weighted(points: engine.Tensor, weights: engine.Tensor) -> engine.Tensor:
    rows, proposals = points.tolist(), weights.tolist()
    return engine.tensor([[sum(p * w for p, w in zip(row, of, strict=True)) for of in proposals] for row in rows])


def totals_trial(totals: Callable) -> Iterator[tuple]:
    points, weights = [[10.0, 20.0], [30.0, 0.0], [5.0, 5.0]], [[0.5, 0.5], [1.0, 0.0], [0.2, 0.8], [2.0, 1.0]]
    shown = f"3 students with 2 exams, 4 proposals:\npoints = {points}\nweights = {weights}"
    yield shown, totals, engine.tensor(points), engine.tensor(weights)
    for points, weights in (
        ([[1.5, 2.25], [3.0, 4.0]], [[1.0, 0.0], [1.0, 1.0]]),
        ([[10.0, 20.0, 40.0]], [[0.25, 0.25, 0.5], [1.0, 0.0, 0.0]]),
    ):
        yield f"points = {points}\nweights = {weights}", totals, engine.tensor(points), engine.tensor(weights)
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
    yield "", to_celsius, np.array([[50.0, 59.0], [68.0, 0.0]])
    yield "", written_into, to_celsius, np.array([5.0, 14.0, 23.0], dtype=np.float32)


KEPT = "A number in an index answers its question, and the dimension is gone. You kept it, with size 1."
NOT_GONE = "A number in an index answers its question: that dimension is gone. You still have all three."
END = "The end of a slice is not included: 1:3 is 1 and 2."
NARROWS = "A slice narrows its question and does not answer it: three questions stay three."
OPEN = "A question that the index does not mention is left open: its size stays as it was."
COLON = "A colon leaves its question open: its size stays as it was."
FIRST = "One number stands in this index, and it answers the *first* question."
LAST = "The 0 stands at the *last* question, after two colons."
TWO = "Two numbers answer two questions, and there are three: one is left."

EXERCISES = (
    Exercise(
        key="01.1",
        points=1,
        answer=((4, 3), (2, 2, 3), (2, 4), (3,)),
        wrong=mistakes(
            ((1, 4, 3), (2, 2, 3), (2, 4, 1), (1, 1, 3)),
            KEPT,
            ((4, 3), (2, 3, 3), (2, 4), (3,)),
            END,
            ((4, 3), (2, 3), (2, 4), (3,)),
            NARROWS,
            ((4, 3), (2, 2, 3), (4, 3), (3,)),
            LAST,
            (12, 12, 8, 3),
            "Those count the numbers. A shape is a tuple, with a size for each question that is left.",
        ),
        entries={
            1: (
                ((1, 4, 3), KEPT),
                ((2, 4, 3), NOT_GONE),
                ((4,), OPEN),
                ((3,), OPEN),
                ((), OPEN),
                ((2, 4), FIRST),
                ((2, 3), FIRST),
                ((3, 4), "The sizes that are left keep their order."),
                "One question is answered, and two are left open.",
            ),
            2: (
                ((2, 3, 3), END),
                ((2, 3), NARROWS),
                ((2, 1, 3), "1:3 begins with 1 and goes on to 2: that is two places, not one."),
                ((2, 2), OPEN),
                ((2, 2, 2), "1:3 stands at the second question alone. The third one is left open."),
                ((2, 4, 2), "1:3 stands after the first comma, so at the second question."),
                ((2, 4, 3), "1:3 keeps two of the places that it chooses from."),
                ((1, 2, 3), COLON),
                ((1, 4, 3), "1:3 stands after the first comma, so at the second question."),
                ((2, 3, 2), "1:3 stands at the second question alone, and holds two places: 1 and 2."),
                "No question is answered: the second one is narrowed, and the other two are left open.",
            ),
            3: (
                ((2, 4, 1), KEPT),
                ((2, 4, 3), NOT_GONE),
                ((4, 3), LAST),
                ((2, 3), LAST),
                ((3,), "The colons leave their questions open: two sizes stay."),
                ((2,), COLON),
                ((4,), COLON),
                ((4, 2), "The sizes that are left keep their order."),
                ((2, 1), "The colons leave two questions open, with all of their places."),
                ((), "Only the 0 answers a question. The colons leave theirs open."),
                (
                    (1, 1, 3),
                    "A colon does not stand for one place, but for all of them. The 0 answers the last question.",
                ),
                "The last question is answered, and the first two are left open.",
            ),
            4: (
                ((1, 1, 3), KEPT),
                ((1, 3), KEPT),
                ((2, 4, 3), NOT_GONE),
                ((), TWO),
                ((1,), "Two questions are answered. The third one is left open, with all of its places."),
                ((2,), "1 and 2 answer the first two questions. The last one stays."),
                ((4,), "1 and 2 answer the first two questions. The last one stays."),
                ((4, 3), TWO),
                ((2, 3), "1 and 2 are two numbers, not the slice 1:2: both questions are answered."),
                ((1, 2), "1 and 2 are places. A shape is the sizes of the questions that are left."),
                "The first two questions are answered, and the last one is left open.",
            ),
        },
        hints=(
            "For each of the three questions: is it answered by a number, narrowed by a slice, or left open?",
            "Answered: its size is gone. Narrowed by 1:3: its size is 2. Left open: its size stays.",
            "readings[0] leaves the last two sizes, readings[:, 1:3] three, readings[:, :, 0] two, readings[1, 2] one.",
        ),
        understood="A number answers its question, a slice narrows it, and what is not mentioned stays open.",
    ),
    Exercise(
        key="01.2",
        points=1,
        answer=board,
        trial=board_trial,
        wrong=mistakes(
            ones_at((EVEN, EVEN)),
            "The even rows are right. The odd ones hold no 1 yet.",
            ones_at((ODD, ODD)),
            "The odd rows are right. The even ones, which begin with a 1, are still empty.",
            ones_at((EVEN, ODD), (ODD, EVEN)),
            "The ones and the zeros have changed places: [0, 0] should hold a 1.",
            ones_at((EVEN, ODD)),
            "The even rows should begin with a 1, and the odd ones hold no 1 yet.",
            lambda n: (engine.arange(n * n).reshape(n, n) % 2 == 0).float(),
            "For an odd n this is right. For an even n every row begins with a 1, and these are stripes.",
            ones_at((slice(2), slice(2)), (slice(1, 2), slice(1, 2))),
            "`:2` is an end: it picks 0 and 1. A step of 2 stands after two colons, `::2`.",
            ones_at((EVEN, EVEN), (slice(1, None), slice(1, None))),
            "`1:` goes from 1 to the end, in steps of 1. A step of 2 stands after a second colon, `1::2`.",
            *(
                part
                for rows, columns in ((EVEN, ODD), (ODD, EVEN), (ODD, ODD))
                for part in (
                    ones_at(rows, (slice(None), columns)),
                    f"You filled whole rows, from {rows.start or 0} on, and whole columns, from "
                    f"{columns.start or 0} on. Name both in one pair of brackets: [rows, columns].",
                )
            ),
            lambda n: engine.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(n // 2, n // 2),
            "For an even n this is right. With an odd one, pieces of 2 by 2 squares do not fill the board.",
            ones_at(EVEN),
            "These are stripes: a whole row holds the same number. Give the columns a step too.",
            ones_at((EVEN, EVEN), (ODD, EVEN)),
            "These are stripes from top to bottom. In the odd rows the ones begin one place further on.",
            ones_at(EVEN, (slice(None), EVEN)),
            "You filled whole rows and then whole columns. Name both in one pair of brackets: [rows, columns].",
            ones_at(slice(0, None, 4), slice(3, None, 4)),
            "board[::2][::2] takes every second row, and then every second of those. Name rows and columns in one "
            "pair of brackets.",
            ones_at((slice(0, -1, 2), slice(0, -1, 2)), (slice(1, -1, 2), slice(1, -1, 2))),
            "The end of a slice is not included: with -1 as its end, it leaves out the last row or column.",
            lambda n: engine.eye(n),
            "That is the diagonal alone. Every second square should hold a 1.",
            lambda n: engine.zeros(n, n),
            "The board is still empty.",
            lambda n: engine.ones(n, n),
            "Every square holds a 1. Every second one should hold a 0.",
            lambda n: board(n).long(),
            "The right squares, filled with whole numbers: write 1.0, not 1.",
            lambda n: board(n).bool(),
            "The right squares, but they hold True and False: 1.0 and 0.0 are asked for.",
            lambda n: board(n).reshape(-1),
            "The right numbers, in one long row: n rows and n columns are asked for.",
        ),
        hints=(
            "board[::2, ::2] is every second column of every second row. Which squares does it leave out?",
            "Two parts: the even columns of the even rows, and the odd columns of the odd rows.",
            "board = engine.zeros(n, n)\nboard[::2, ::2] = 1.0\nboard[...] = 1.0  # from 1 on, in steps of 2, twice\n"
            "return board",
        ),
        understood="A slice for the rows and one for the columns pick a whole part at once: no loop is needed.",
    ),
    Exercise(
        key="01.3",
        points=1,
        answer=warmest,
        trial=warmest_trial,
        wrong=mistakes(
            lambda t: t.mean(dim=0).argmax().item(),
            "dim=0 takes the days away: this is the warmest time of day. Which dimension has to go?",
            lambda t: t.argmax().item(),
            "Without a dimension, argmax counts through the whole table, to the largest single reading.",
            lambda t: t.max(dim=1).values.argmax().item(),
            "That is the day with the highest single reading. You are asked for the highest mean.",
            lambda t: t.max(dim=0).values.argmax().item(),
            "max(dim=0) takes the days away: that is the time of day with the highest reading.",
            lambda t: t.min(dim=1).values.argmax().item(),
            "That is the day whose coldest reading is the warmest. You are asked for the highest mean.",
            lambda t: t.median(dim=1).values.argmax().item(),
            "That is the day with the highest median, the reading in the middle. You are asked for the mean.",
            lambda t: t[:, 0].argmax().item(),
            "That looks at column 0 alone. The mean is over all times of the day.",
            lambda t: t[:, 1].argmax().item(),
            "That looks at column 1 alone. The mean is over all times of the day.",
            lambda t: t[:, -1].argmax().item(),
            "That looks at the last column alone. The mean is over all times.",
            lambda t: t.argmax(dim=1),
            "That says for each day *when* it was warmest. A mean for each day comes first, and then the place.",
            lambda t: t.argmax(dim=1)[0].item(),
            "That says *when* it was warmest on day 0. A mean for each day comes first, and then the place.",
            lambda t: len(t) - 1,
            "That is the last day, whatever it was like. Did you return the place at which a loop ended?",
            lambda t: t.mean(dim=1).clamp(min=0).argmax().item(),
            "If every mean is below 0, none is larger than the 0 that you begin with.",
            lambda t: t.mean(dim=1).max(dim=0),
            "With a dimension, max gives two things, the largest mean and its place. Return the place alone, as a "
            "plain integer.",
            lambda t: t.argmax(dim=0),
            "That says for each time which day was the warmest. First a mean for each day.",
            lambda t: t.mean(dim=1),
            "Those are the means of the days. You are asked for the place of the largest.",
            lambda t: t.mean().argmax().item(),
            "t.mean() is one number for the whole table, and its place is always 0. Name the dimension that goes.",
            lambda t: t.mean(dim=1).max().item(),
            "That is the highest mean itself. You are asked for its place.",
            lambda t: t.mean(dim=1).max(),
            "That is the highest mean itself, in a tensor. You are asked for its place.",
            lambda t: t.mean(dim=1).argmax(),
            "The right place, in a tensor. You are asked for a plain number.",
            lambda t: float(t.mean(dim=1).argmax()),
            "The right place, as a number with a point. You are asked for an integer.",
            lambda t: t.numpy().mean(axis=1).argmax(),
            "The right place, as one of NumPy's numbers. You are asked for a plain integer: `int(...)` makes one.",
            lambda t: t.mean(dim=1).argmax().item() + 1,
            "One too many: places are counted from 0.",
            lambda t: t.mean(dim=1).argmin().item(),
            "That is the coldest day.",
            lambda t: t.long().float().mean(dim=1).argmax().item(),
            "As whole numbers the readings have lost their fractions. Keep them as they are.",
            *(
                part
                for change, how in ((engine.trunc, "cut off"), (engine.round, "rounded"))
                for part in (
                    lambda t, change=change: change(t.mean(dim=1)).argmax().item(),
                    f"The means are {how}, and so the first of several is found. Keep their fractions.",
                )
            ),
            lambda t: t.abs().mean(dim=1).argmax().item(),
            "Without their signs, a day of -10 degrees counts as warmer than one of 5. Keep the signs.",
            lambda t: t[:-1].mean(dim=1).argmax().item(),
            "The last day is never looked at. `range(len(readings) - 1)` and `[:-1]` end before it.",
            lambda t: t.sum(dim=1).max().item(),
            "That is the largest sum itself. You are asked for its place.",
        ),
        hints=(
            "First a mean for each day. Which dimension has to go for that?",
            "A mean over the times, which are dimension 1; then the place of the largest; then out of the box.",
            "return readings.mean(dim=...).argmax().item()",
        ),
        understood="dim names the question that goes: without the times, a number for each day is left.",
    ),
    Exercise(
        key="01.4",
        points=1,
        answer=lambda t: engine.relu(t),
        trial=signed_trial,
        wrong=mistakes(
            changed(clipped, "t.clone()", "t"),
            "The tensor that was given has changed: you wrote into it, under its own name, under a second one, or "
            "through a slice. None of these is a copy.",
            changed(clipped, "result[result < 0]", "t[t < 0]"),
            "You wrote into the tensor that was given, and returned the copy as it was.",
            lambda t: t if (t >= 0).all() else clipped(t),
            "Where nothing is negative, you return the tensor that was given, under a second name. A new one is "
            "asked for.",
            lambda t: t.clone(),
            "What you return still has its negative numbers. Did you change it, or something else?",
            lambda t: t[t >= 0],
            "That picks the numbers that are not negative and leaves the others out: the shape is lost.",
            lambda t: t.abs(),
            "abs turns -1 into 1. It should become 0.",
            changed(clipped, "t.clone()", "engine.zeros_like(t)", "result < 0", "t < 0", "0.0", "t[t < 0]"),
            "This keeps the negative numbers and drops the others.",
            lambda t: engine.stack([row * 0.0 if (row < 0).any() else row for row in t]),
            "Where one number of a row is negative, the whole row has become 0.",
            lambda t: max(t, 0),
            "Python's max wants to know which of two is larger. A comparison of t has an answer for each number.",
            lambda t: engine.tensor([max(x, 0.0) for x in t.tolist()]),
            "For a single row of numbers this is right. The list of a table holds lists, not numbers.",
            lambda t: t[t < 0],
            "That picks the negative numbers. You are asked for all of them, with 0 for the negative.",
            lambda t: t.clamp(0, 100),
            "Large numbers are cut off as well. Only the negative ones should change: there is no upper limit.",
            lambda t: t.clamp(0, 1),
            "Numbers above 1 are cut off as well. Only the negative ones should change: there is no upper limit.",
            changed(clipped, "= 0.0", "= 1.0"),
            "The negative numbers have become 1. They should become 0.",
            lambda t: engine.zeros_like(t),
            "Every number has become 0. Only the negative ones should.",
            changed(clipped, "< 0", "< 1"),
            "Numbers between 0 and 1 have become 0 too. They are not negative.",
            lambda t: t > 0,
            "That says where the numbers are positive. You are asked for the numbers themselves.",
            lambda t: (t > 0) * 1.0,
            "That puts a 1 where the number should stay as it is.",
        ),
        properties=properties(
            lambda t: t.clamp(0, 500),
            lambda did: np.allclose(did.result[did.before["0"] > 0], did.before["0"][did.before["0"] > 0]),
            "Some numbers above 0 have changed. They should stay as they are, however large or small.",
            lambda t: t.clamp(min=-0.0005),
            lambda did: not did.result[did.before["0"] < 0].any(),
            "Not every negative number has become 0.",
        ),
        hints=(
            "t[t < 0] = 0.0 writes into t. Whose numbers are those?",
            "Make a copy, write into the copy, return the copy.",
            "result = t....()\nresult[result < 0] = 0.0\nreturn result",
        ),
        understood="A second name and a slice share the numbers; only a copy has numbers of its own.",
    ),
    Exercise(
        key="01.5",
        points=2,
        answer=weighted,
        trial=totals_trial,
        wrong=mistakes(
            lambda p, w: p @ w,
            "A row on the left meets a *column* on the right. A proposal's weights stand in a row of weights.",
            lambda p, w: w @ p.T,
            "A row for each proposal, a column for each student: it should be the other way round.",
            lambda p, w: p @ w.T / p.shape[1],
            "That is the mean over the exams. The total is the sum.",
            lambda p, w: p @ w.T / w.sum(dim=1),
            "That is the mean, weighted: it is divided by the sum of the weights. The total is not divided.",
            lambda p, w: p @ w.T / w.sum(),
            "It is divided by the sum of all weights. A total is a sum, and is not divided.",
            lambda p, w: p @ w.reshape(w.shape[1], w.shape[0]),
            "The shape fits, but reshape does not turn rows into columns: it only breaks the lines elsewhere.",
            lambda p, w: p.T @ w,
            "points.T has a row for each exam. What is summed over then is no longer the exams.",
            lambda p, w: p * w,
            "`*` is elementwise. You need a sum over the exams, for each student and each proposal.",
            lambda p, w: (p * w[0]).sum(dim=1),
            "That is the first proposal alone. A column for each is asked for.",
            lambda p, w: p[:, :2] @ w[:, :2].T,
            "Only the first two exams count here. There may be more: take all columns.",
            lambda p, w: p @ w[-1],
            "That is the last proposal alone. You are asked for a column for each of them.",
            lambda p, w: (p[:, None] * w).sum(dim=1),
            "The proposals are added up, and the exams are left. It should be the other way round.",
            lambda p, w: (p[:, None] * w).sum(dim=0),
            "The students are added up, and the exams are left. Sum over the exams.",
            lambda p, w: p.T @ w.T,
            "Only one of the two has to be turned. A row on the left should hold one student's exams.",
            lambda p, w: (p @ w.T).mean(dim=1),
            "That is the mean over the proposals. Each of them keeps its column.",
            lambda p, w: p * w.T,
            "`*` wants equal places. The sum of products, row by column, is the matrix product.",
            lambda p, w: w.T @ p,
            "The order counts: the rows of what stands on the left are the rows of the result, the students.",
            lambda p, w: engine.dot(p, w),
            "dot is for two vectors. For two tables there is the matrix product.",
            lambda p, w: p @ p.T,
            "That multiplies the points by points. The weights are left out.",
            lambda p, w: w @ w.T,
            "That multiplies the weights by weights. The points are left out.",
            lambda p, w: (p @ w.T).sum(dim=1),
            "The proposals are added up as well. Each of them should keep its column.",
        ),
        hints=(
            "In a @ b, each row of a meets each column of b. What should a row of a hold, and what a column of b?",
            "A row of points holds one student's exams. The columns on the right must be the proposals.",
            "return points @ weights....",
        ),
        understood="In a @ b the question in the middle is summed away: here the exams.",
    ),
    Exercise(
        key="01.6",
        points=2,
        answer=celsius,
        trial=celsius_trial,
        wrong=mistakes(
            lambda array: (engine.from_numpy(array) - 32) * 5 / 9,
            "The result is right, but the array still holds Fahrenheit. `t - 32` makes a new tensor with memory of "
            "its own, and so do engine.tensor and clone.",
            lambda array: engine.from_numpy(array).float().sub_(32).mul_(5).div_(9),
            "`float()` makes a tensor of 32 bits, with memory of its own: the array still holds Fahrenheit.",
            changed(celsius, "* 5 / 9", "* 9 / 5"),
            "Multiplied by 9 and divided by 5: that leads from Celsius to Fahrenheit.",
            changed(celsius, "(array - 32) * 5 / 9", "array * 5 / 9 - 32"),
            "32 is subtracted first, and then comes the factor 5 / 9.",
            changed(celsius, "(array - 32) * 5 / 9", "array - 32", "(array)", "(array) * 5 / 9"),
            "The result is right, but the array has changed only in part. An operation that makes a new tensor "
            "leaves the array's memory: each step should be in-place.",
            changed(celsius, " / 9", "", "(array)", "(array) / 9"),
            "The result is right. But the last step makes a new tensor: the array is not yet divided by 9.",
            changed(celsius, "5 / 9", "(5 // 9)"),
            "5 // 9 is 0, since `//` gives whole numbers: write 5 / 9.",
            changed(celsius, "(array - 32) * 5 / 9", "array - 32 * 5 / 9"),
            "`t -= 32 * 5 / 9` works out 32 * 5 / 9 first. Subtract 32, and multiply in a step of its own.",
            changed(celsius, "/ 9", "// 9"),
            "`//` cuts off the fractions: divide with `/`.",
            changed(celsius, "array[:] = ", "for _ in range(2): array[:] = "),
            "The numbers were converted twice. The array and the tensor are one memory: a change of either is a "
            "change of both.",
            changed(celsius, "(array - 32) * 5 / 9", "array * 9 / 5 + 32"),
            "That takes the numbers to be Celsius, and turns them into Fahrenheit.",
            changed(celsius, "(array - 32)", "array"),
            "The factor 5 / 9 is there. Subtracting 32 comes before it.",
            changed(celsius, "- 32", "+ 32"),
            "32 is added here. It should be subtracted.",
            changed(celsius, "(array - 32) * 5 / 9", "array - 32"),
            "32 is subtracted. The factor 5 / 9 is missing.",
            changed(celsius, "engine.from_numpy", "engine.tensor"),
            "The array is right. But you return a copy (engine.tensor makes one, and so does clone): what is "
            "written into it does not reach the array.",
            lambda array: engine.from_numpy(array),
            "Nothing has happened to the numbers yet. Did you mean `t -= 32`, or a name with an underscore?",
        ),
        hints=(
            "Which of the two ways from NumPy shares memory, `engine.tensor` or `engine.from_numpy`?",
            "from_numpy, and then only in-place operations: -=, *=, or functions that end in an underscore.",
            "t = engine.from_numpy(array)\nt -= 32\nt *= ...\nreturn t",
        ),
        understood="from_numpy shares the array's memory, and in-place operations are the ones that stay in it.",
    ),
)
