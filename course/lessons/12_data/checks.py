"""Lesson 12, data: the exercises' trials, oracles, usual mistakes and hints."""

import math

import engine
from course.judging.exercises import Exercise
from engine.utils.data import DataLoader, Dataset, TensorDataset

# 12.1


def how_many(examples, batch_size, drop_last):
    data = TensorDataset(engine.zeros(examples))
    return sum(1 for _ in DataLoader(data, batch_size=batch_size, drop_last=drop_last))


def many_trial(how_many):
    yield "12 examples in batches of 4", how_many, 12, 4, False
    yield "10 examples in batches of 4", how_many, 10, 4, False
    yield "10 examples in batches of 4, drop_last=True", how_many, 10, 4, True
    yield "3 examples in batches of 4", how_many, 3, 4, False


def many_more(how_many):
    yield "", how_many, 100, 7, False
    yield "", how_many, 3, 4, True


# 12.2


def windows(length, get):
    """A Dataset of windows, with another length or other examples."""

    class Attempt(Dataset):
        def __init__(self, series, n):
            self.series, self.n = series, n

        def __len__(self):
            return length(self.series, self.n)

        def __getitem__(self, i):
            return get(self.series, self.n, i)

    return Attempt


def right_length(series, n):
    return len(series) - n


def right_example(series, n, i):
    return series[i : i + n], series[i + n]


def size(Windows, series, n):
    return len(Windows(series, n))


def alike(example):
    """An example whose answer is a tensor; a plain number says the same."""
    if isinstance(example, list | tuple) and len(example) == 2 and isinstance(example[1], int | float):
        return example[0], engine.tensor(example[1], dtype=example[0].dtype)
    return example


def example(Windows, series, n, i):
    return alike(Windows(series, n)[i])


def all_batches(Windows, series, n):
    data = Windows(series, n)
    return [list(batch) for batch in DataLoader([alike(data[i]) for i in range(len(data))], batch_size=2)]


def windows_trial(Windows):
    series = engine.tensor([10.0, 11.0, 12.0, 13.0, 14.0])
    yield "series = 10, 11, 12, 13, 14 and n = 2: the example 0", example, Windows, series, 2, 0
    yield "the same: the example 2", example, Windows, series, 2, 2
    yield "the same: len", size, Windows, series, 2
    yield "the same, in a DataLoader with batches of 2", all_batches, Windows, series, 2


def windows_more(Windows):
    yield "", all_batches, Windows, engine.arange(9), 4


# 12.3


def scaled(train, test):
    train, test = train.double(), test.double()
    mean = train.sum(0) / len(train)
    std = (((train - mean) ** 2).sum(0) / (len(train) - 1)) ** 0.5
    return [((rows - mean) / std).float() for rows in (train, test)]


def scaled_trial(scaled):
    train = engine.tensor([[1.0, 100.0], [2.0, 300.0], [6.0, 200.0]])
    test = engine.tensor([[3.0, 200.0], [5.0, 800.0]])
    yield "three training rows, two test rows: both tables", scaled, train, test


def scaled_more(scaled):
    yield "", scaled, engine.randn(20, 3) * 5 + 2, engine.randn(7, 3)


def scaled_with(mean, std=lambda train, test: train.std(dim=0)):
    """`scaled`, with other numbers for the mean and the standard deviation."""

    def attempt(train, test):
        return [(rows - mean(train, test)) / std(train, test) for rows in (train, test)]

    return attempt


def of_all(function):
    return lambda train, test: getattr(engine.cat([train, test]), function)(dim=0)


def each_by_itself(train, test):
    return [(rows - rows.mean(dim=0)) / rows.std(dim=0) for rows in (train, test)]


# 12.4


def padded_by(put, empty=False):
    """`padded`, with another place for the numbers, or another mask."""

    def attempt(examples):
        longest = max(map(len, examples))
        batch = engine.zeros(len(examples), longest)
        mask = engine.full((len(examples), longest), empty)
        for i, row in enumerate(examples):
            put(batch[i], mask[i], row)
        return batch, mask

    return attempt


def behind(batch, mask, row):
    batch[: len(row)] = row
    mask[: len(row)] = True


def before(batch, mask, row):
    batch[len(batch) - len(row) :] = row
    mask[len(mask) - len(row) :] = True


def inverted(batch, mask, row):
    batch[: len(row)] = row
    mask[: len(row)] = False


def not_zero(batch, mask, row):
    batch[: len(row)] = row
    mask[:] = batch != 0


def to_the_shortest(examples):
    shortest = min(map(len, examples))
    batch = engine.stack([row[:shortest] for row in examples])
    return batch, engine.ones(batch.shape, dtype=engine.bool)


def lengths(examples):
    return padded_by(behind)(examples)[0], engine.tensor([len(row) for row in examples])


def rows(*values):
    return [engine.tensor(row) for row in values]


def pad_trial(padded):
    yield "examples = [5, 2], [7, 1, 9], [3]", padded, rows([5.0, 2.0], [7.0, 1.0, 9.0], [3.0])
    yield "examples = [0, 4], [6]", padded, rows([0.0, 4.0], [6.0])


def pad_more(padded):
    yield "", padded, rows([1.0], [2.0, 0.0, -3.0, 4.0], [5.0, 6.0])


# 12.5


def still_together(shuffled, n):
    """Whether each example still has its answer, none is lost, and the order is another one."""
    x, y = engine.arange(n) * 10, engine.arange(n)
    new_x, new_y = shuffled(x.reshape(n, 1), y)
    _, again = shuffled(x.reshape(n, 1), y)
    together = bool((new_x.reshape(-1) == new_y * 10).all())
    return {
        "each example has its own answer": together,
        "all examples are there": sorted(new_x.reshape(-1).tolist()) == x.tolist(),
        "all answers are there": sorted(new_y.tolist()) == y.tolist(),
        "the order is new": new_y.tolist() != y.tolist(),
        "and a new one in each call": new_y.tolist() != again.tolist(),
    }


def shuffled_trial(shuffled):
    yield "100 examples, whose answers can be told from them", still_together, shuffled, 100


def shuffled_more(shuffled):
    yield "", still_together, shuffled, 57


def one_order(x, y):
    order = engine.randperm(len(x))
    return x[order], y[order]


def drawn(x, y):
    order = engine.randint(0, len(x), (len(x),))
    return x[order], y[order]


EXERCISES = (
    Exercise(
        key="12.1",
        points=1,
        answer=how_many,
        trial=many_trial,
        hidden=many_more,
        wrong=(
            (lambda n, size, drop: n // size, "The examples that are left over make a batch too, unless drop_last."),
            (lambda n, size, drop: n // size + 1, "If nothing is left over, there is no batch for it."),
            (lambda n, size, drop: math.ceil(n / size), "With drop_last, an incomplete batch does not count."),
            (lambda n, size, drop: n / size, "A number of batches is a whole number."),
            (
                lambda n, size, drop: math.ceil(n / size) if drop else n // size,
                "The other way round: with drop_last, the examples that are left over make no batch.",
            ),
        ),
        understood="Whatever is left over makes a batch of its own, and drop_last leaves it out.",
        hints=(
            "How many batches are full? Is anything left over?",
            "`divmod(a, b)` gives both: how often b goes into a, and what is left.",
            "full, left = divmod(examples, batch_size)\nreturn full if ... else full + 1",
        ),
    ),
    Exercise(
        key="12.2",
        points=2,
        answer=windows(right_length, right_example),
        trial=windows_trial,
        hidden=windows_more,
        wrong=(
            (
                windows(lambda s, n: len(s), right_example),
                "That many windows begin in the series, but the last ones have no answer in it.",
            ),
            (
                windows(lambda s, n: len(s) - n + 1, right_example),
                "One too many: the last window would need an answer behind the end of the series.",
            ),
            (
                windows(right_length, lambda s, n, i: (s[i : i + n], s[i + n - 1])),
                "The answer is the last number of the window itself. Asked for is the one that follows.",
            ),
            (
                windows(right_length, lambda s, n, i: s[i : i + n]),
                "The example is the window alone. It should be a pair: the window, and the next number.",
            ),
            (
                windows(right_length, lambda s, n, i: (s[i : i + n + 1], s[i + n])),
                "The window is one too long, and holds the answer. A network would find that out quickly.",
            ),
        ),
        understood="A Dataset is a length, and an example for each number; nothing is made before it is asked for.",
        hints=(
            "Write out the examples of 10, 11, 12, 13, 14 for n = 2. How many are there?",
            "Example i: the slice from i up to i + n (not included), and the number at place i + n.",
            "len: len(self.series) - ...\nexample: self.series[i : ...], self.series[...]",
        ),
    ),
    Exercise(
        key="12.3",
        points=1,
        answer=scaled,
        trial=scaled_trial,
        hidden=scaled_more,
        wrong=(
            (each_by_itself, "Each table by its own mean. Then a test row does not mean what a training row means."),
            (
                scaled_with(of_all("mean"), of_all("std")),
                "Mean and standard deviation of all rows together: the test rows have leaked into training.",
            ),
            (scaled_with(of_all("mean")), "The mean is that of all rows: the test rows have leaked into training."),
            (
                scaled_with(lambda train, test: train.mean(dim=0), lambda train, test: 1.0),
                "The mean is right. The columns are still of different size: divide, too.",
            ),
            (
                scaled_with(lambda train, test: train.mean(), lambda train, test: train.std()),
                "One mean for the whole table. Each column has its own: dim=0.",
            ),
            (
                scaled_with(lambda train, test: train.mean(dim=0), lambda train, test: train.var(dim=0)),
                "You divided by the variance. The standard deviation is its root: `.std`.",
            ),
            (
                scaled_with(lambda train, test: train.mean(dim=0), lambda train, test: train.std(dim=0, correction=0)),
                "Nearly: that standard deviation divides by n. `.std` as it is divides by n - 1.",
            ),
            (
                lambda train, test: [(train - train.mean(dim=0)) / train.std(dim=0), test],
                "The training rows are right. The test rows must be scaled as well, by the same numbers.",
            ),
        ),
        understood="What you compute from data belongs to training: from the training rows, and used on all.",
        hints=(
            "Whose mean and standard deviation may you use for the test rows?",
            "Those of the training rows, for both tables; one for each column.",
            "mean, std = train.mean(dim=0), train.std(dim=0)\nreturn ..., ...",
        ),
    ),
    Exercise(
        key="12.4",
        points=2,
        answer=padded_by(behind),
        trial=pad_trial,
        hidden=pad_more,
        wrong=(
            (padded_by(before), "The zeros stand before the numbers. They should stand behind them."),
            (padded_by(inverted, empty=True), "The mask is the wrong way round: True where there is a number."),
            (padded_by(not_zero), "A 0 may be a true number. The mask has to come from the lengths."),
            (to_the_shortest, "You cut all rows to the shortest one. Nothing should be lost."),
            (lengths, "Those are the lengths. Asked for is a mask, of the same shape as the batch."),
        ),
        understood="Whether a number is there is a matter of lengths; the number itself cannot tell.",
        hints=(
            "The lesson's `padded` fills a batch row by row. What does a mask need in addition?",
            "Begin with a batch of zeros and a mask of False. For each example, write into the first part of its row.",
            "batch[i, : len(example)] = example\nmask[i, : len(example)] = ...",
        ),
    ),
    Exercise(
        key="12.5",
        points=1,
        answer=one_order,
        trial=shuffled_trial,
        hidden=shuffled_more,
        wrong=(
            (
                lambda x, y: (x[engine.randperm(len(x))], y[engine.randperm(len(y))]),
                "Examples and answers get two different orders, so each picture has the answer of another one.",
            ),
            (lambda x, y: (x[engine.randperm(len(x))], y), "Only the examples move. Each answer must go with its own."),
            (lambda x, y: (x, y), "Nothing is shuffled any more."),
            (lambda x, y: (x.flip(0), y.flip(0)), "Together, yes. But it is the same order in each call."),
            (drawn, "randint may draw an example twice, and leave another one out. randperm takes each once."),
        ),
        understood="What belongs together moves together: one order, drawn once, for both.",
        hints=(
            "Which example stands beside which answer afterwards?",
            "randperm gives a new order each time it is called. Call it once.",
            "order = engine.randperm(len(x))\nreturn ...",
        ),
    ),
)
