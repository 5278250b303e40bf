"""Lesson 02, shapes: the exercises' trials, oracles, usual mistakes and hints."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import engine
from course.judging.words import Exercise, calls, loops, mistakes, properties


def counted(*shape: int) -> Any:
    """Make a tensor whose numbers tell their own places."""
    return engine.arange(math.prod(shape)).reshape(shape)


# 2.2

MEMORY = list(range(100, 124))  # no number is its own place


class Recipe:
    """A tensor's recipe as the engine makes it: each step is one of the engine's tensors."""

    def __init__(self, memory: Any, shape: Any = (), stride: Any = (), offset: int = 0, tensor: Any = None) -> None:
        self.memory = memory
        self.tensor = engine.tensor(memory).as_strided(shape, stride, offset) if tensor is None else tensor
        self.shape, self.stride, self.offset = (
            tuple(self.tensor.shape),
            self.tensor.stride(),
            self.tensor.storage_offset(),
        )

    def place(self, *index: int) -> int:
        return self.tensor[index].storage_offset()

    def made(self, tensor: Any) -> "Recipe":
        same = tensor.untyped_storage().data_ptr() == self.tensor.untyped_storage().data_ptr()
        return Recipe(self.memory if same else tensor.flatten().tolist(), tensor=tensor)

    @property
    def T(self) -> "Recipe":
        return self.made(self.tensor.T)

    def permute(self, *dims: int) -> "Recipe":
        return self.made(self.tensor.permute(dims))

    def expand(self, *shape: int) -> "Recipe":
        return self.made(self.tensor.expand(shape))


class Written:
    """As the worked solution has it: what the wrong ones below differ from in one method."""

    def __init__(self, memory: Any, shape: Any, stride: Any, offset: int = 0) -> None:
        self.memory, self.shape, self.stride, self.offset = memory, shape, stride, offset

    def place(self, *index: int) -> Any:
        return self.offset + sum(i * step for i, step in zip(index, self.stride, strict=True))

    @property
    def T(self) -> Any:
        return type(self)(self.memory, self.shape[::-1], self.stride[::-1], self.offset)

    def permute(self, *dims: int) -> Any:
        shape, stride = tuple(self.shape[d] for d in dims), tuple(self.stride[d] for d in dims)
        return type(self)(self.memory, shape, stride, self.offset)

    def expand(self, *shape: int) -> Any:
        pairs = zip(self.shape, shape, self.stride, strict=True)
        stride = tuple(step if old == new else 0 for old, new, step in pairs)
        return type(self)(self.memory, shape, stride, self.offset)


def with_methods(**methods: Any) -> type:
    return type("Tiny", (Written,), methods)


def turned_in_place(t: Any) -> Any:
    t.shape, t.stride = t.shape[::-1], t.stride[::-1]
    return t


def copied_columns(t: Any) -> Any:
    rows, columns = t.shape
    memory = [t.memory[t.place(row, column)] for column in range(columns) for row in range(rows)]
    return type(t)(memory, (columns, rows), (rows, 1), 0)


def without_offset(method: Callable) -> Callable:
    def make(t: Any, *rest: int) -> Any:
        made = method(t, *rest)
        made.offset = 0
        return made

    return make


def never_made(t: Any, *dims: int) -> Any:
    return type(t)(t.memory, (t.shape[d] for d in dims), (t.stride[d] for d in dims), t.offset)


def two_for_granted(t: Any) -> Any:
    (rows, columns), (down, right) = t.shape, t.stride
    return type(t)(t.memory, (columns, rows), (right, down), t.offset)


def expanded(chosen: Callable) -> Callable:
    """`expand` with another stride for each dimension, chosen by its size, the one asked for, and its own."""

    def expand(t: Any, *shape: int) -> Any:
        sizes = zip(t.shape, shape, t.stride, strict=True)
        return type(t)(t.memory, shape, tuple(chosen(*one) for one in sizes), t.offset)

    return expand


def placed(tiny: Any, shape: tuple, stride: tuple, offset: int, *index: int) -> Any:
    return tiny(MEMORY, shape, stride, offset).place(*index)


def recipe(tiny: Any, shape: tuple, stride: tuple, offset: int, method: str, *rest: int) -> Any:
    whole = tiny(MEMORY, shape, stride, offset)
    made = whole.T if method == "T" else getattr(whole, method)(*rest)
    if made is None or made is ...:
        return {"nothing came of": method}
    if not all(hasattr(made, name) for name in ("memory", "shape", "stride", "offset")):
        return {"a method came of": method} if callable(made) else made
    if any(isinstance(part, Iterator) for part in (made.shape, made.stride)):
        return {"no tuple came of": method}
    return {
        "shape": tuple(made.shape),
        "stride": tuple(made.stride),
        "offset": made.offset,
        "the memory is the same": made.memory is MEMORY,
        "t afterwards": [tuple(whole.shape), tuple(whole.stride), whole.offset],
    }


def tiny_trial(tiny: Any) -> Iterator[tuple]:
    yield "t = Tiny(list(range(100, 124)), (4, 3), (1, 4)), t.place(2, 1)", placed, tiny, (4, 3), (1, 4), 0, 2, 1
    yield "t = Tiny(list(range(100, 124)), (2, 2), (4, 1), 6), t.place(1, 1)", placed, tiny, (2, 2), (4, 1), 6, 1, 1
    yield "t = Tiny(list(range(100, 124)), (5,), (3,), 1), t.place(4)", placed, tiny, (5,), (3,), 1, 4
    shown = "t = Tiny(list(range(100, 124)), (2, 3, 4), (12, 4, 1)), t.place(1, 2, 3)"
    yield shown, placed, tiny, (2, 3, 4), (12, 4, 1), 0, 1, 2, 3
    yield "t = Tiny(list(range(100, 124)), (3, 4), (4, 1), 2), t.T", recipe, tiny, (3, 4), (4, 1), 2, "T"
    yield "t = Tiny(list(range(100, 124)), (2, 3, 4), (12, 4, 1)), t.T", recipe, tiny, (2, 3, 4), (12, 4, 1), 0, "T"
    shown = "t = Tiny(list(range(100, 124)), (2, 3, 4), (12, 4, 1)), t.permute(2, 0, 1)"
    yield shown, recipe, tiny, (2, 3, 4), (12, 4, 1), 0, "permute", 2, 0, 1
    shown = "t = Tiny(list(range(100, 124)), (3, 2), (4, 1), 5), t.permute(1, 0)"
    yield shown, recipe, tiny, (3, 2), (4, 1), 5, "permute", 1, 0
    shown = "t = Tiny(list(range(100, 124)), (1, 4), (4, 1), 8), t.expand(3, 4)"
    yield shown, recipe, tiny, (1, 4), (4, 1), 8, "expand", 3, 4
    shown = "t = Tiny(list(range(100, 124)), (3, 1), (2, 1)), t.expand(3, 3)"
    yield shown, recipe, tiny, (3, 1), (2, 1), 0, "expand", 3, 3
    yield "", placed, tiny, (2, 3, 2), (6, 2, 1), 3, 1, 2, 1
    yield "", recipe, tiny, (2, 5), (5, 2), 1, "T"
    yield "", recipe, tiny, (2, 3, 4), (12, 4, 1), 0, "permute", 1, 2, 0
    yield "", recipe, tiny, (2, 1, 3), (3, 3, 1), 4, "expand", 2, 5, 3


# 2.3


def joined(batch: Any) -> engine.Tensor:
    return engine.stack([engine.cat([line for colour in one for line in colour]) for one in batch])


def rows_trial(as_rows: Callable) -> Iterator[tuple]:
    yield "batch = arange(12).reshape(2, 3, 1, 2)", as_rows, counted(2, 3, 1, 2)
    shown = "batch = arange(36).reshape(3, 2, 2, 3).permute(0, 3, 1, 2)"
    yield shown, as_rows, counted(3, 2, 2, 3).permute(0, 3, 1, 2)
    yield "batch = arange(6).reshape(1, 3, 1, 2)", as_rows, counted(1, 3, 1, 2)
    yield "", as_rows, counted(3, 4, 2, 5).transpose(1, 2)
    yield "", as_rows, counted(1, 2, 3, 1).permute(0, 3, 1, 2)


def not_only_turned(rows: Any, expected: Any) -> bool:
    return np.array_equal(rows, expected) or not np.array_equal(np.sort(rows), np.sort(expected))


def fixed(source: str) -> bool:
    """Tell whether it holds a number that is the size of something, and not the place of a dimension."""
    return any(int(number) > 4 for number in re.findall(r"\b\d+\b", source))


# 2.4


def shared(table: engine.Tensor) -> engine.Tensor:
    return engine.tensor([[value / sum(row) for value in row] for row in table.tolist()], dtype=table.dtype)


def shares_trial(shares: Callable) -> Iterator[tuple]:
    for rows in (
        [[1.0, 3.0], [1.0, 1.0]],
        [[1.0, 2.0, 7.0], [2.0, 2.0, 1.0], [1.0, 0.0, 3.0]],
        [[0.3, 1.7, 0.6], [0.25, -0.75, 2.6]],
    ):
        yield f"table = {rows}", shares, engine.tensor(rows)
    yield "", shares, engine.rand(4, 3) + 0.1
    yield "", shares, engine.rand(3, 3) + 0.1


# 2.5


def distance_by_distance(p: engine.Tensor, q: engine.Tensor) -> engine.Tensor:
    found = [[math.dist(one, other) for other in q.tolist()] for one in p.tolist()]
    return engine.tensor(found, dtype=p.dtype)


def distances_trial(distances: Callable) -> Iterator[tuple]:
    for p, q in (
        ([[0.0, 0.0], [3.0, 4.0]], [[0.0, 0.0], [6.0, 8.0], [0.0, 4.0]]),
        ([[1.0, 1.0], [2.0, 5.0]], [[4.0, 5.0], [5.0, 1.0]]),
        ([[0.3, -1.7]], [[1.4, 0.1], [-3.25, 2.6]]),
    ):
        yield f"p = {p}\nq = {q}", distances, engine.tensor(p), engine.tensor(q)
    yield "", distances, engine.randn(5, 2), engine.randn(3, 2)
    yield "", distances, engine.randn(1, 2, dtype=engine.float64), engine.randn(4, 2, dtype=engine.float64)


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
    yield "", tiles, counted(6, 4), 2
    yield "", written_into, tiles, counted(2, 6), 2


def split(picture: Any, size: int) -> Any:
    """Lines of tiles, lines, tiles, points."""
    lines, points = picture.shape
    return picture.view(lines // size, size, points // size, size)


def divided(picture: Any, size: int) -> Any:
    lines, points = picture.shape
    return picture.view(lines / size, size, points / size, size).permute(0, 2, 1, 3)


def by_strides(strides: Callable) -> Callable:
    """`tiles` with a recipe of its own: the strides, for a picture with so many points a line."""

    def tiles(picture: Any, size: int) -> Any:
        lines, points = picture.shape
        return picture.as_strided((lines // size, points // size, size, size), strides(points, size))

    return tiles


def divides(source: str) -> bool:
    """Tell whether something is divided with a single stroke."""
    return "/" in source.replace("//", "")


NO_ANSWER = (None, 'None is no answer here. Write the shape of the sum, or "error" where the two do not fit.')

EXERCISES = (
    Exercise(
        key="02.1",
        points=1,
        answer=((3, 4), (2, 3), "error", (5, 3, 4), (4, 4)),
        wrong=mistakes(
            ("error", "error", (2, 3), "error", (4, 1)),
            "You align the shapes at the left. They are aligned at the right: the last dimensions meet.",
            (12, 6, "error", 60, 16),
            "Those count the elements. A shape is a tuple, with a size for each dimension.",
            ("error", (2, 3), "error", "error", "error"),
            "A 1 meets every size, and so does a dimension that is missing: they are stretched.",
        ),
        entries={
            1: (
                NO_ANSWER,
                ("error", "Aligned at the right, the 1 meets the 4, and the 3 meets nothing. Both can be stretched."),
                ((3, 1), "The row has four numbers, and each of them meets the column: the 1 is stretched."),
                (
                    (4, 3),
                    "Rows come first. It is the second tensor that has the 4, and its last dimension meets the 1.",
                ),
                ((3,), "Nothing disappears: a sum has at least as many dimensions as each of the two."),
                ((4,), "Nothing disappears: a sum has at least as many dimensions as each of the two."),
                "Two columns: the 1 above the 4, and the 3 above nothing.",
            ),
            2: (
                NO_ANSWER,
                ("error", "Aligned at the right, the 3 meets the 3."),
                ((3,), "The row is used for both rows, so both are still there."),
                ((2, 3, 3), "Sizes that meet are not listed twice: a column of the scheme gives one size."),
                "Two columns: the 3 above the 3, and the 2 above nothing.",
            ),
            3: (
                NO_ANSWER,
                ((2, 3), "Aligned at the right, it is a 3 that meets the 2. Neither is 1."),
                ((2, 3, 2), "Aligned at the right, a 3 meets the 2, in one column. Neither is 1."),
                "Two columns: the 3 above the 2, and the 2 above nothing.",
            ),
            4: (
                NO_ANSWER,
                ("error", "Three columns: 4 meets 1, 1 meets 3, and 5 meets nothing. Each of them goes."),
                ((5, 1, 4), "The middle column is a 1 that meets a 3. Which of the two is stretched?"),
                ((5, 3, 1), "The last column is a 4 that meets a 1. Which of the two is stretched?"),
                ((3, 1, 4), "What is missing is imagined as a 1, and the 5 stays."),
                ((3, 4), "Nothing disappears: a sum has at least as many dimensions as each of the two."),
                "Three columns: the 4 above the 1, the 1 above the 3, the 5 above nothing.",
            ),
            5: (
                NO_ANSWER,
                ((4, 1), "The 4 of the vector meets the 1, and what is missing meets the 4: both are stretched."),
                ((1, 4), "The first column is a missing dimension and a 4: it is stretched to 4."),
                ((4,), "Nothing disappears: a sum has at least as many dimensions as each of the two."),
                ("error", "Aligned at the right, the 4 meets the 1, which can be stretched."),
                "Two columns: the 4 above the 1, and nothing above the 4.",
            ),
        },
        understood="Shapes meet from the right, and what is 1 or missing adapts: a pencil is all you need.",
        hints=(
            "Write the two shapes one below the other, so that their *last* sizes stand in one column.",
            "Imagine a 1 wherever one has run out. In each column: equal, or one of them is 1, or else an error.",
            "1: 1 meets 4, 3 meets nothing. 3: 3 meets 2. 4: 4 meets 1, 1 meets 3, 5 meets nothing.",
        ),
    ),
    Exercise(
        key="02.2",
        points=3,
        answer=Recipe,
        trial=tiny_trial,
        wrong=mistakes(
            with_methods(place=lambda t, *index: Written.place(t, *index) - t.offset),
            "place counts from 0. A tensor begins at its offset: add that to the sum.",
            with_methods(place=lambda t, *index: t.offset + sum(i * n for i, n in zip(index, t.shape, strict=True))),
            "place multiplies by the sizes. It is the strides that say how far the next number is.",
            with_methods(place=lambda t, *index: t.memory[Written.place(t, *index)]),
            "place looks the number up. What is asked for is the place where it stands.",
            with_methods(place=lambda t, *index: t.offset + sum(index)),
            "place adds up the index alone. Each of its numbers has to be multiplied by a stride first.",
            with_methods(place=lambda t, *index: t.offset + sum(i + n for i, n in zip(index, t.stride, strict=True))),
            "place adds index and stride. An index says how many strides to go: multiply.",
            with_methods(place=lambda t, *index: t.offset * sum(i * n for i, n in zip(index, t.stride, strict=True))),
            "place multiplies by the offset. That is where the tensor begins: add it, once.",
            with_methods(place=lambda t, *index: t.offset + index[0] * t.stride[0]),
            "place looks at the first number of the index alone. Does it return inside a loop?",
            with_methods(place=lambda t, *index: t.offset + index[-1] * t.stride[-1]),
            "place looks at the last number of the index alone. Does each round of a loop begin anew?",
            with_methods(place=lambda t, *index: Written.place(t, *index) + index[-1] * (1 - t.stride[-1])),
            "place takes the stride of the last dimension for 1. That is so in the order of reading alone: look "
            "it up, as for the others.",
            with_methods(
                place=lambda t, *index: t.offset + sum(i * n for i, n in zip(index, t.stride[::-1], strict=True))
            ),
            "place has the strides from the back: the first number of the index goes with the first stride.",
            with_methods(T=property(lambda t: Written.permute(t, 1, 0, *range(2, len(t.shape))))),
            "T exchanges the first two dimensions. With three of them, the last comes first, and the first last.",
            with_methods(T=property(lambda t: type(t)(t.memory, t.shape[::-1], t.stride, t.offset))),
            "T reverses the shape, and leaves the strides as they were: each dimension must take its stride along.",
            with_methods(T=property(lambda t: type(t)(t.memory, t.shape, t.stride[::-1], t.offset))),
            "T reverses the strides, and leaves the shape as it was: each dimension must take its stride along.",
            with_methods(permute=lambda t, *dims: Written.permute(t, *sorted(range(len(dims)), key=dims.__getitem__))),
            "permute goes the other way round. The first number in permute(2, 0, 1) names the old dimension that "
            "comes first.",
            with_methods(
                permute=lambda t, *dims: type(t)(t.memory, tuple(t.shape[d] for d in dims), t.stride, t.offset)
            ),
            "permute reorders the shape alone: each dimension must take its stride along.",
            with_methods(expand=lambda t, *shape: type(t)(t.memory, shape, t.stride, t.offset)),
            "expand keeps the strides: the next index leads on to other numbers, and not to the same one again.",
            with_methods(expand=lambda t, *shape: type(t)(t.memory, shape, (0,) * len(shape), t.offset)),
            "expand has a stride of 0 everywhere. What is not stretched keeps its stride.",
            with_methods(expand=expanded(lambda old, new, step: 0 if old == new else step)),
            "expand has it the wrong way round: the 0 belongs to what is stretched, and the rest keeps its stride.",
            with_methods(expand=expanded(lambda old, new, step: step if old == new else 1)),
            "expand has a stride of 1 where it stretches: that leads on to the next number, not to the same again.",
        ),
        properties=properties(
            with_methods(place=lambda t, *index: t.offset + index[0] * t.stride[0] + index[1] * t.stride[1]),
            lambda did: not (did.error in ("IndexError", "ValueError") and "t.place(" in did.shown),
            "place takes two dimensions for granted. There may be one, or three: take the numbers of `index` and "
            "`self.stride` in pairs, with `zip`, however many there are.",
            with_methods(T=property(two_for_granted)),
            lambda did: not (did.error in ("IndexError", "ValueError") and did.shown.endswith("t.T")),
            "T takes two dimensions for granted. Here there are three: read the whole shape and the whole stride "
            "from the back.",
            with_methods(permute=lambda *_: None),
            lambda did: "nothing came of" not in did.result,
            "All before it is right. Here nothing comes back: three dots are left, or a `return` is missing.",
            with_methods(T=lambda t: Written.permute(t, *reversed(range(len(t.shape))))),
            lambda did: "a method came of" not in did.result,
            "Without parentheses, `t.T` is the method itself. The line `@property` above it is missing.",
            with_methods(permute=never_made),
            lambda did: "no tuple came of" not in did.result,
            "A shape and a stride are tuples. `(... for ...)` and `reversed(...)` make none: use `tuple(...)`.",
            with_methods(T=property(lambda t: t.shape[::-1])),
            lambda did: did.error or isinstance(did.result, dict) or not isinstance(did.expected, dict),
            "This is only a part of the recipe. Return a new Tiny.",
            with_methods(permute=lambda t, *dims: type(t)(t.memory, dims, t.stride, t.offset)),
            lambda did: did.result["shape"] == did.expected["shape"],
            "The new shape is not right. Which of the old sizes goes where? (That of expand is given.)",
            with_methods(expand=lambda t, *shape: type(t)(t.memory, shape, (0, *t.stride), t.offset)),
            lambda did: did.result["stride"] == did.expected["stride"],
            "The new strides are not right. Each dimension takes its own along; where expand stretches, it is 0.",
            with_methods(T=property(copied_columns)),
            lambda did: did.result["the memory is the same"],
            "The memory is another one now. A view shares it: hand on `self.memory` itself, and change the recipe.",
            with_methods(expand=without_offset(Written.expand)),
            lambda did: did.result["offset"] == did.expected["offset"],
            "The new tensor begins at another place. Hand on the offset, too.",
            with_methods(T=property(turned_in_place)),
            lambda did: did.result["t afterwards"] == did.expected["t afterwards"],
            "`t` itself has been changed. Leave `self` as it is, and return a new Tiny.",
        ),
        understood="A view is another recipe for the same memory: that is why T, permute and expand cost nothing.",
        hints=(
            "For place, look at the sum in the figure. The other three make a new shape and a new stride out of "
            "`self.shape` and `self.stride`: which entry goes where?",
            "`T` reads both from the back. `permute` picks both in the order of `dims`. `expand` keeps each stride, "
            "but where a size has changed it is 0.",
            "offset + sum(i * step for i, step in zip(index, self.stride))\n"
            "Tiny(self.memory, self.shape[::-1], ..., self.offset)\n"
            "stride = tuple(self.stride[d] for d in dims)\n"
            "stride = tuple(step if old == new else ... for old, new, step in zip(self.shape, shape, self.stride))",
        ),
    ),
    Exercise(
        key="02.3",
        points=1,
        answer=joined,
        trial=rows_trial,
        wrong=mistakes(
            lambda t: t.view(len(t), -1),
            "view promises not to copy, and after permute the numbers of a row do not follow each other in memory. "
            "(A clone is no help: it keeps the order in memory.)",
            lambda t: t.as_strided((len(t), t[0].numel()), (t[0].numel(), 1)),
            "as_strided goes by the order in memory, and after permute that is not the order of reading. No "
            "strides describe such rows: the numbers must be copied.",
            lambda t: t.flatten(),
            "All photographs in one row. Each should have its own.",
            lambda t: t.mean(dim=1).reshape(len(t), -1),
            "That takes the mean over the colours. All numbers of a photograph belong in its row.",
            lambda t: t[:, 0].reshape(len(t), -1),
            "Those are the numbers of the first colour alone. All numbers of a photograph belong in its row.",
            lambda t: t.reshape(-1, len(t)),
            "Here the photographs are the columns, and cut up: the -1 belongs at the end.",
            lambda t: t.reshape(t.shape[1], -1),
            "A row for each colour, across the photographs. The rows should be the photographs.",
            lambda t: t.permute(0, 2, 3, 1).reshape(len(t), -1),
            "No error any more, but the order has changed: now the colours of a point stand side by side. In a "
            "batch with the colours first, all of one colour comes before all of the next.",
            lambda t: t.permute(3, 2, 1, 0).reshape(len(t), -1),
            "T reverses all four dimensions, so that the photographs come last: their numbers are mixed.",
            lambda t: t.permute(0, 2, 3, 1).view(len(t), -1),
            "That undoes the permute of the one batch, and spoils those that were in order. Leave the order as it "
            "is, and let the numbers be copied where they must.",
            lambda t: t.reshape(-1, len(t)).T,
            "The shape is right. But reshape has cut the photographs up, and the columns do not put them together.",
            lambda t: t.reshape(len(t), -1).squeeze(),
            "squeeze takes out every dimension of size 1: a batch of a single photograph is no table any more.",
            lambda t: t.reshape(1, -1),
            "All photographs in a single row. Each should have a row of its own.",
            lambda t: t.reshape(len(t), t.shape[1], -1),
            "There is one dimension too many: a table is asked for.",
        ),
        properties=properties(
            lambda batch: batch.reshape(64, -1),
            lambda did: not (did.error == "RuntimeError" and fixed(did.source)),
            "A size is written as a number. `len(batch)` and -1 hold for a batch of any size.",
            lambda t: t.transpose(1, 3).reshape(len(t), -1),
            lambda did: not_only_turned(did.result, did.expected),
            "Each row has the right numbers, in another order. Leave the dimensions in theirs.",
        ),
        understood="reshape is a view where strides allow it and a copy where they do not; view is never a copy.",
        hints=(
            "What does the error say, in its last sentence?",
            "You need what does the same as view where it can, and copies where it must.",
            "return batch....(len(batch), -1)",
        ),
    ),
    Exercise(
        key="02.4",
        points=1,
        answer=shared,
        trial=shares_trial,
        wrong=mistakes(
            lambda t: t / t.sum(dim=1),
            "The sums stand in a row, and meet the columns: for a square table, that goes unnoticed.",
            lambda t: t / t.sum(dim=0),
            "dim=0 takes the rows away: these are shares of the sum of each column.",
            lambda t: t / t.sum(dim=0, keepdim=True).T,
            "Those are the sums of the columns, set up as a column.",
            lambda t: 100 * t / t.sum(dim=1, keepdim=True),
            "Those are shares in per cent: here the whole is 1, and not 100.",
            lambda t: engine.softmax(t, dim=1),
            "softmax takes the exponential of each number first. Just divide.",
            lambda t: t // t.sum(dim=1, keepdim=True),
            "`//` cuts off the fraction, and a share is a fraction: divide with `/`.",
            lambda t: t * t.sum(dim=1, keepdim=True),
            "You multiply by the sum. A share is divided by it.",
            lambda t: t.sum(dim=1, keepdim=True) / t,
            "Upside down: divide the number by the sum.",
            lambda t: t.sum(dim=1, keepdim=True),
            "Those are the sums. What remains is to divide by them.",
            lambda t: t - t.sum(dim=1, keepdim=True),
            "You subtract the sum. A share is divided by it, with `/`.",
            lambda t: t,
            "The table comes back as it was. (In a loop over the rows, `row = ...` names something new, and writes "
            "nothing into the table.)",
            lambda t: t / t.shape[1],
            "You divide by how many numbers a row has, and not by their sum.",
            lambda t: t / t.abs().sum(dim=1, keepdim=True),
            "The sum is taken without the signs. Then a row with a negative number does not sum to 1.",
            lambda t: t.T / t.sum(dim=0),
            "The table is transposed, and divided by the sums of the columns that it had before: they do "
            "not belong together.",
            lambda t: t / t[0].sum(),
            "Every row is divided by the sum of row 0. Each row has its own.",
            lambda t: t / t.sum(),
            "That is the sum of the whole table. Each row has its own.",
            lambda t: t / t.mean(dim=1, keepdim=True),
            "You divide by the mean of the row, and not by its sum.",
            lambda t: t / t.max(dim=1, keepdim=True).values,
            "You divide by the largest of the row, and not by its sum.",
        ),
        understood="A sum that keeps its dimension, with size 1, meets the numbers that it was made of.",
        hints=(
            "Which dimension goes away when each row is summed? And what is the shape of the sums?",
            "For a table of shape (2, 3) the sums have shape (2,). They must stand as a column: (2, 1).",
            "return table / table.sum(dim=1, ...)",
        ),
    ),
    Exercise(
        key="02.5",
        points=2,
        answer=distance_by_distance,
        trial=distances_trial,
        wrong=mistakes(
            lambda p, q: ((p - q[:, None]) ** 2).sum(dim=2).sqrt(),
            "Transposed: [i, j] belongs to point i of p and point j of q.",
            lambda p, q: spread(p, q).sum(dim=2),
            "Those are the squares of the distances: the square root is missing.",
            lambda p, q: spread(p, q).mean(dim=2).sqrt(),
            "You took the mean of the two squares. Their sum is asked for.",
            lambda p, q: spread(p, q).sum(dim=1).sqrt(),
            "You summed over the points of q. Which dimension holds the two differences?",
            lambda p, q: spread(p, q).sqrt().sum(dim=2),
            "You add up how far it is across and up, as if you walked along the streets. First the sum of the "
            "squares, and then the square root of it.",
            lambda p, q: ((p - q) ** 2).sum(dim=1).sqrt(),
            "Here the points of p meet those of q one by one. Each has to meet *each*: where one of the two has "
            "its points, the other needs a dimension of size 1.",
            lambda p, q: spread(p, q).sum(dim=0).sqrt(),
            "You summed over the points of p. Which dimension holds the two differences?",
            lambda p, q: spread(p, q).sum().sqrt(),
            "You summed over everything. Sum over the two differences alone.",
            lambda p, q: spread(p, q),
            "Those are the squares, across and up. Add the two, and take the square root.",
            lambda p, q: (p[:, None] - q).sum(dim=2).abs(),
            "Differences across and up cancel if they are added as they are. Square them first.",
            lambda p, q: ((p[:, None] - q) * 2).sum(dim=2).sqrt(),
            "`* 2` doubles a difference. A square is `** 2`.",
            lambda p, q: spread(p, q).sum(dim=2) ** 1 / 2,
            "That is half of the sum of the squares, and not its square root. In `** 1 / 2` the `**` comes first, "
            "and then the halving. Write `** 0.5`, or `sqrt`.",
            lambda p, q: ((p[:, None] + q) ** 2).sum(dim=2).sqrt(),
            "You add the points. A distance begins with a difference.",
            lambda p, q: (p[:, None, 0] - q[:, 0]).abs(),
            "Those are the differences of the first numbers, across. The second ones, up, count as well.",
            lambda p, q: spread(p, q).sqrt().max(dim=2).values,
            "Those are the larger ones of the two differences, across and up. Both count.",
            lambda p, q: ((p**2).sum(dim=1).sqrt()[:, None] - (q**2).sum(dim=1).sqrt()).abs(),
            "You compare how far the points are from (0, 0). Two points as far from there can lie apart.",
            lambda p, q: (p[:, None] - q).sum(dim=2).sqrt(),
            "The differences are added as they are. Square them first: a sum below 0 has no square root.",
            *(
                part
                for times, says in ((1, "The 2 is missing."), (0, "What stands in the middle is missing."))
                for part in (
                    lambda p, q, times=times: (
                        (p**2).sum(dim=1)[:, None] + (q**2).sum(dim=1) - times * (p @ q.T)
                    ).sqrt(),
                    f"(a - b)**2 is a**2 - 2 * a * b + b**2. {says}",
                )
            ),
            lambda p, q: spread(p, q).sqrt(),
            "Those are the differences, without a sign. Square, add up, root.",
            lambda p, q: (p @ q.T).sqrt(),
            "That multiplies the points, and takes the root. Begin with a difference.",
            lambda p, q: p @ q.T,
            "That multiplies the points. A distance begins with a difference.",
        ),
        properties=properties(
            lambda p, q: engine.cdist(p, q),
            lambda did: not calls(did.source, "cdist"),
            "`cdist` has all of it inside. Here you are to let the shapes meet yourself.",
            lambda p, q: engine.stack([((one - q) ** 2).sum(dim=1).sqrt() for one in p]),
            lambda did: not loops(did.source),
            "No loop, please, nor a list made by one: let a dimension of size 1 do it.",
            lambda p, q: ((p[:, :, None] - q[None]) ** 2).sum(dim=2).sqrt(),
            lambda did: did.error != "RuntimeError" or "-=" in did.source,
            "The shapes do not meet. Write them one below the other: across or up comes last in both, and the "
            "dimensions of size 1 go before it, at different places.",
        ),
        understood="A dimension of size 1, put in at the right place, makes each meet each without a loop.",
        hints=(
            "The differences answer three questions: which of p, which of q, across or up. What shape is that?",
            "(n, 1, 2) and (m, 2) meet as (n, m, 2). Where does p get its 1 from?",
            "differences = p[:, None] - q\nreturn (...).sum(dim=...).sqrt()",
        ),
    ),
    Exercise(
        key="02.6",
        points=3,
        answer=cut,
        trial=tiles_trial,
        wrong=mistakes(
            lambda t, n: t.reshape(t.shape[0] // n, t.shape[1] // n, n, n),
            "The shape is right. But reshape keeps the order of reading: these are pieces of lines, end to end.",
            lambda t, n: split(t, n).permute(0, 2, 1, 3).clone(),
            "The tiles are right, and a copy: what is written into them does not show in the picture.",
            lambda t, n: split(t, n).permute(0, 2, 3, 1),
            "Every tile is transposed: its lines and points have changed places.",
            lambda t, n: split(t, n).permute(2, 1, 0, 3),
            "The order asked for is: which row of tiles, which tile in it, which line in that, which point on it. "
            "You have exchanged the first and the third of the four there were.",
            lambda t, n: split(t, n).permute(0, 3, 2, 1),
            "You have exchanged the line in a tile and the point on it. The line and the tile change places.",
            lambda t, n: split(t, n).permute(2, 0, 1, 3),
            "The tiles are right, but [i, j] gives the one in row j and column i.",
            lambda t, n: t.view(n, t.shape[0] // n, n, t.shape[1] // n).permute(1, 3, 0, 2),
            "Your tiles are made of lines that lie apart. Reading down, which changes more slowly: the row of "
            "tiles, or the line in a tile? It comes first.",
            lambda t, n: t.view(len(t) // n, n, len(t) // n, n).permute(0, 2, 1, 3),
            "The number of lines is used for the points too. A picture need not be a square.",
            lambda t, n: t.view(t.shape[1] // n, n, t.shape[0] // n, n).permute(0, 2, 1, 3),
            "Lines and points are exchanged: the lines come first, and there are picture.shape[0] of them.",
            lambda t, n: split(t, 2).permute(0, 2, 1, 3),
            "A tile of 2 times 2 is not the only one: use `size`.",
            lambda t, n: t.view(t.shape[0] // n, t.shape[1] // n, n, n).transpose(1, 2),
            "view keeps the order of reading: cut in that order, a line holds pieces of all the tiles beside each "
            "other.",
            lambda t, n: split(t, n).permute(0, 2, 1, 3).reshape(-1, n, n),
            "The tiles are right, all in one row. Row and column of the tiles are two dimensions.",
            lambda t, n: split(t, n).permute(1, 3, 0, 2),
            "The line and the point in a tile come first here. [i, j] should say which tile it is.",
            lambda t, n: split(t, n).transpose(2, 3),
            "You have exchanged the tile and the point on its line. It is the line that changes places, with the tile.",
            lambda t, n: split(t, n).transpose(0, 1),
            "You have exchanged the first two: row of tiles, and line in it. The tile should come second.",
            lambda t, n: t.reshape(-1, n, n),
            "reshape keeps the order of reading, so these are pieces of lines. And row and column of the tiles "
            "are two dimensions.",
            lambda t, n: t.T.reshape(t.shape[0] // n, t.shape[1] // n, n, n),
            "`.T` turns the whole picture, and reshape then goes by the order of reading. Make four questions of "
            "the two first, and only then change their order.",
            lambda t, n: t.unfold(0, n, 1).unfold(1, n, 1),
            "Those windows overlap: each begins one place after the last. A tile begins where the last one ends.",
            split,
            "You have the four questions, in the order of reading. Now put them in the order asked for.",
        ),
        properties=properties(
            divided,
            lambda did: not (did.error == "TypeError" and divides(did.source)),
            "`/` always gives a float, such as 2.0, and a size is a whole number: divide with `//`.",
            by_strides(lambda points, size: (size * size, size, points, 1)),
            lambda did: "as_strided" not in did.source or did.error or np.array_equal(did.result, did.expected),
            "Check your strides one by one: how far is it in memory to the next row of tiles, to the next tile, "
            "to the next line in a tile, and to the next point?",
        ),
        understood="Cut a question in two with view, reorder with permute: both change the recipe alone.",
        hints=(
            "Make four questions of two: which row of tiles, which line in it; which tile there, which point in it.",
            "In the order of reading: (lines // size, size, points // size, size). Then the order has to change.",
            "return picture.view(lines // size, size, points // size, size).permute(0, ...)",
        ),
    ),
)
