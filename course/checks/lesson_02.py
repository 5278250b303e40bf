"""Lesson 02, shapes: the exercises' trials, oracles, usual mistakes and hints."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import engine
from course.exercises import Exercise

# 2.2


def counted(*shape: int) -> Any:
    """A tensor whose numbers tell their own places."""
    return engine.arange(math.prod(shape)).reshape(shape)


def by_colour(batch: Any) -> engine.Tensor:
    return engine.stack([batch[..., colour] for colour in range(batch.shape[-1])], dim=1)


def colour_trial(colour_first: Callable) -> Iterator[tuple]:
    yield "batch = arange(12).reshape(1, 2, 2, 3)", colour_first, counted(1, 2, 2, 3)
    yield "batch = arange(48).reshape(2, 4, 2, 3)", colour_first, counted(2, 4, 2, 3)


def colour_more(colour_first: Callable) -> Iterator[tuple]:
    yield "", colour_first, counted(3, 2, 5, 4)


# 2.3


def joined(batch: Any) -> engine.Tensor:
    return engine.stack([engine.cat([line for colour in one for line in colour]) for one in batch])


def rows_trial(as_rows: Callable) -> Iterator[tuple]:
    yield "batch = arange(12).reshape(2, 3, 1, 2)", as_rows, counted(2, 3, 1, 2)
    shown = "batch = arange(36).reshape(3, 2, 2, 3).permute(0, 3, 1, 2)"
    yield shown, as_rows, counted(3, 2, 2, 3).permute(0, 3, 1, 2)


def rows_more(as_rows: Callable) -> Iterator[tuple]:
    yield "", as_rows, counted(3, 4, 2, 5).transpose(1, 2)
    yield "", as_rows, counted(1, 2, 3, 1).permute(0, 3, 1, 2)


# 2.4


def shared(table: engine.Tensor) -> engine.Tensor:
    return engine.tensor([[value / sum(row) for value in row] for row in table.tolist()])


def shares_trial(shares: Callable) -> Iterator[tuple]:
    for rows in ([[1.0, 3.0], [1.0, 1.0]], [[1.0, 2.0, 7.0], [2.0, 2.0, 1.0], [1.0, 0.0, 3.0]]):
        yield f"table = {rows}", shares, engine.tensor(rows)


def shares_more(shares: Callable) -> Iterator[tuple]:
    yield "", shares, engine.rand(4, 3) + 0.1
    yield "", shares, engine.rand(3, 3) + 0.1


# 2.5


def distance_by_distance(p: engine.Tensor, q: engine.Tensor) -> engine.Tensor:
    return engine.tensor([[math.dist(one, other) for other in q.tolist()] for one in p.tolist()])


def distances_trial(distances: Callable) -> Iterator[tuple]:
    for p, q in (
        ([[0.0, 0.0], [3.0, 4.0]], [[0.0, 0.0], [6.0, 8.0], [0.0, 4.0]]),
        ([[1.0, 1.0], [2.0, 5.0]], [[4.0, 5.0], [2.0, 2.0]]),
    ):
        yield f"p = {p}\nq = {q}", distances, engine.tensor(p), engine.tensor(q)


def distances_more(distances: Callable) -> Iterator[tuple]:
    yield "", distances, engine.randn(5, 2), engine.randn(3, 2)
    yield "", distances, engine.randn(1, 2), engine.randn(4, 2)


def spread(p: Any, q: Any) -> Any:
    return (p[:, None] - q) ** 2


# 2.6


def cut(picture: Any, size: int) -> Any:
    return picture.unfold(0, size, size).unfold(1, size, size)


def written_into(tiles: Callable, picture: Any, size: int) -> Any:
    tiles(picture, size)[0, 1] = -1
    return picture


def tiles_trial(tiles: Callable) -> Iterator[tuple]:
    yield "picture = arange(16).reshape(4, 4), size = 2", tiles, counted(4, 4), 2
    yield "picture = arange(18).reshape(3, 6), size = 3", tiles, counted(3, 6), 3
    shown = "picture = arange(16).reshape(4, 4), size = 2, and -1 is written into tile [0, 1]: the picture"
    yield shown, written_into, tiles, counted(4, 4), 2


def tiles_more(tiles: Callable) -> Iterator[tuple]:
    yield "", tiles, counted(6, 4), 2
    yield "", written_into, tiles, counted(2, 6), 2


def split(picture: Any, size: int) -> Any:
    """Lines of tiles, lines, tiles, points."""
    lines, points = picture.shape
    return picture.view(lines // size, size, points // size, size)


EXERCISES = (
    Exercise(
        key="02.1",
        points=1,
        answer=((3, 4), (2, 3), "error", (5, 3, 4), (4, 4)),
        wrong=(
            (((3, 4), (2, 3), "Error", (5, 3, 4), (4, 4)), 'All is right. Write "error" in small letters.'),
            (
                ("error", "error", (2, 3), "error", "error"),
                "You align the shapes at the left. They are aligned at the right: the last dimensions meet.",
            ),
            (
                ((3, 4), "error", (2, 3), (5, 3, 4), (4, 4)),
                "In 2 and 3, look which dimensions meet: the last one of the one with the last one of the other.",
            ),
            (
                ((3, 4), (2, 3), "error", (5, 3, 4), (4, 1)),
                "In 5, the 4 meets the 1, and what is missing meets the 4: both are stretched.",
            ),
            (
                ((3, 4), (2, 3), "error", (5, 3, 4), (4,)),
                "In 5, nothing disappears: a sum has at least as many dimensions as each of the two.",
            ),
            (
                ("error", (2, 3), "error", "error", "error"),
                "A 1 meets every size, and so does a dimension that is missing: they are stretched.",
            ),
            (((3, 4), (2, 3), (2, 3), (5, 3, 4), (4, 4)), "In 3, aligned at the right, a 3 meets a 2."),
        ),
        hints=(
            "Write the two shapes one below the other, so that their *last* sizes stand in one column.",
            "Think of a 1 wherever one has nothing. In each column: equal, or one of them is 1, or else an error.",
            "1: 1 meets 4, 3 meets nothing. 3: 3 meets 2. 4: 4 meets 1, 1 meets 3, 5 meets nothing.",
        ),
    ),
    Exercise(
        key="02.2",
        points=1,
        answer=by_colour,
        trial=colour_trial,
        hidden=colour_more,
        wrong=(
            (
                lambda t: t.reshape(t.shape[0], t.shape[3], t.shape[1], t.shape[2]),
                "The shape is right, the numbers are not: reshape keeps the order of reading, and mixes the colours.",
            ),
            (
                lambda t: t.transpose(1, 3),
                "That gives (photographs, colours, points, lines): every picture lies on its side.",
            ),
            (
                lambda t: t.permute(0, 2, 3, 1),
                "In permute, each number names the *old* dimension that comes here. You have it the other way round.",
            ),
            (
                lambda t: t.permute(3, 0, 1, 2),
                "Now the colour comes before the photographs. They are to stay in front.",
            ),
        ),
        hints=(
            "The order of the dimensions changes. Is that reshape, or permute?",
            "In permute, each number is the old place of what comes here. Lines, points and colours were at 1, 2, 3.",
            "return batch.permute(0, 3, ...)",
        ),
    ),
    Exercise(
        key="02.3",
        points=1,
        answer=joined,
        trial=rows_trial,
        hidden=rows_more,
        wrong=(
            (
                lambda t: t.view(len(t), -1),
                "view promises not to copy. After permute, the numbers of a row do not follow each other in memory.",
            ),
            (lambda t: t.flatten(), "All photographs in one row. Each is to have its own."),
            (
                lambda t: t.reshape(-1, len(t)),
                "Here the photographs are the columns, and cut up: the -1 belongs at the end.",
            ),
            (
                lambda t: t.reshape(t.shape[1], -1),
                "A row for each colour, across the photographs. The rows are to be the photographs.",
            ),
            (
                lambda t: t.permute(0, 2, 3, 1).reshape(len(t), -1),
                "No error any more, but the order has changed: first is to come all of one colour, then of the next.",
            ),
            (lambda t: t.reshape(len(t), t.shape[1], -1), "There is one dimension too many: a table is asked for."),
        ),
        hints=(
            "What does the error say, in its last sentence?",
            "Something that does as view does where it can, and copies where it must.",
            "return batch....(len(batch), -1)",
        ),
    ),
    Exercise(
        key="02.4",
        points=1,
        answer=shared,
        trial=shares_trial,
        hidden=shares_more,
        wrong=(
            (
                lambda t: t / t.sum(dim=1),
                "The sums stand in a row, and meet the columns: for a square table, that goes unnoticed.",
            ),
            (lambda t: t / t.sum(dim=0), "dim=0 takes the rows away: these are shares of the sum of each column."),
            (lambda t: t / t.sum(dim=0, keepdim=True).T, "Those are the sums of the columns, set up as a column."),
            (lambda t: t / t.sum(), "That is the sum of the whole table. Each row has its own."),
            (lambda t: t / t.mean(dim=1, keepdim=True), "You divide by the mean of the row, and not by its sum."),
            (
                lambda t: t / t.max(dim=1, keepdim=True).values,
                "You divide by the largest of the row, and not by its sum.",
            ),
        ),
        hints=(
            "Which dimension goes away when each row is summed? And which shape have the sums?",
            "For a table of shape (2, 3) the sums have shape (2,). They must stand as a column: (2, 1).",
            "return table / table.sum(dim=1, ...)",
        ),
    ),
    Exercise(
        key="02.5",
        points=2,
        answer=distance_by_distance,
        trial=distances_trial,
        hidden=distances_more,
        wrong=(
            (
                lambda p, q: ((p - q[:, None]) ** 2).sum(dim=2).sqrt(),
                "Transposed: [i, j] is to belong to point i of p and point j of q.",
            ),
            (lambda p, q: spread(p, q).sum(dim=2), "Those are the squares of the distances: the root is missing."),
            (
                lambda p, q: spread(p, q).mean(dim=2).sqrt(),
                "You took the mean of the two squares. Their sum is asked for.",
            ),
            (
                lambda p, q: spread(p, q).sum(dim=1).sqrt(),
                "You summed over the points of q. Which dimension holds the two differences?",
            ),
            (lambda p, q: spread(p, q).sqrt().sum(dim=2), "First the sum of the squares, and then the root of it."),
            (
                lambda p, q: ((p - q) ** 2).sum(dim=1).sqrt(),
                "In p - q the points meet one by one. Each is to meet *each*: a dimension of size 1 is missing.",
            ),
        ),
        hints=(
            "The differences need three questions: which of p, which of q, across or up. Which shape is that?",
            "(n, 1, 2) and (m, 2) meet as (n, m, 2). Where does p get its 1 from?",
            "differences = p[:, None] - q\nreturn (...).sum(dim=...).sqrt()",
        ),
    ),
    Exercise(
        key="02.6",
        points=3,
        answer=cut,
        trial=tiles_trial,
        hidden=tiles_more,
        wrong=(
            (
                lambda t, n: t.reshape(t.shape[0] // n, t.shape[1] // n, n, n),
                "The shape is right. But reshape keeps the order of reading: these are pieces of lines, end to end.",
            ),
            (
                lambda t, n: split(t, n).permute(0, 2, 1, 3).clone(),
                "The tiles are right, and a copy: what is written into them does not show in the picture.",
            ),
            (
                lambda t, n: split(t, n).permute(0, 2, 3, 1),
                "Every tile is transposed: its lines and points have changed places.",
            ),
            (
                lambda t, n: split(t, n).permute(2, 0, 1, 3),
                "The tiles are right, but [i, j] gives the one in row j and column i.",
            ),
            (split, "You have the four questions, in the order of reading. Now bring them into the order asked for."),
        ),
        hints=(
            "Make four questions of two: which row of tiles, which line in it; which tile there, which point in it.",
            "In the order of reading: (lines // size, size, points // size, size). Then the order has to change.",
            "return picture.view(lines // size, size, points // size, size).permute(0, ...)",
        ),
    ),
)
