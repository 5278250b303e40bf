"""Lesson 12, data: the exercises' trials, oracles, usual mistakes and hints."""

import math
import random

import engine
from course.judging.words import Exercise, calls, changed, mistakes, properties
from engine import nn
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
    yield "12 examples in batches of 4, drop_last=True", how_many, 12, 4, True
    yield "3 examples in batches of 4, drop_last=True", how_many, 3, 4, True
    yield "", how_many, 100, 7, False
    yield "", how_many, 30, 5, True
    yield "", how_many, 5, 8, True


# 12.2


def windows(length, get):
    """Make a Dataset of windows, with another length or other examples."""

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
    """Return an example whose answer is a tensor; a plain number says the same."""
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
    yield "the same series and n = 3: the example 1", example, Windows, series, 3, 1
    yield "the same series and n = 1: len", size, Windows, series, 1
    yield "", all_batches, Windows, engine.arange(9), 4


def windows_do(place):
    """Tell whether an example's window (0) or answer (1) is right, where the other one is; else it does not apply."""

    def holds(did):
        is_, should = did.result, did.expected
        assert len(is_) == len(should) == 2 and is_[0].shape == should[0].shape and is_[1].shape == should[1].shape
        other = 1 - place
        return (is_[place] == should[place]).all() or not (is_[other] == should[other]).all()

    return holds


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
    yield "", scaled, engine.randn(20, 3) * 5 + 2, engine.randn(7, 3)


def as_trained(did, part):
    """Tell whether the columns of the training rows are as they should be, by a function of theirs."""
    is_, should = did.result[0], did.expected[0]
    assert is_.shape == should.shape
    return abs(part(is_) - part(should)).max() < 1e-3


def test_rows_too(did):
    """Tell whether the test rows are right, where the training rows are."""
    (train, test), (theirs, others) = did.result, did.expected
    return abs(train - theirs).max() > 1e-3 or abs(test - others).max() < 1e-3


def scaled_with(mean, std=lambda train, test: train.std(dim=0)):
    """`scaled`, with other numbers for the mean and the standard deviation."""

    def attempt(train, test):
        return [(rows - mean(train, test)) / std(train, test) for rows in (train, test)]

    return attempt


def of_all(function):
    return lambda train, test: getattr(engine.cat([train, test]), function)(dim=0)


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


def to_the_shortest(examples):
    shortest = min(map(len, examples))
    batch = engine.stack([row[:shortest] for row in examples])
    return batch, engine.ones(batch.shape, dtype=engine.bool)


def rows(*values):
    return [engine.tensor(row) for row in values]


def pad_trial(padded):
    yield "examples = [5, 2], [7, 1, 9], [3]", padded, rows([5.0, 2.0], [7.0, 1.0, 9.0], [3.0])
    yield "examples = [0, 4], [6]", padded, rows([0.0, 4.0], [6.0])
    yield "", padded, rows([1.0], [2.0, 0.0, -3.0, 4.0], [5.0, 6.0])


def filled(did, inside):
    """Tell whether the batch is right where numbers belong (or where zeros do)."""
    batch, (right, mask) = did.result[0], did.expected
    return (batch == right)[mask == inside].all()


# 12.5


def still_together(shuffled, n):
    """Tell whether each example still has its answer, none is lost, and the order has changed."""
    x, y = engine.arange(n).reshape(n, 1) * 10, engine.arange(n)
    found = []
    for seed in (0, 1, 0):
        engine.manual_seed(seed)
        found.append(shuffled(x.clone(), y.clone()))
    (new_x, new_y), (_, other), (_, again) = found
    given = x.clone(), y.clone()
    shuffled(*given)
    alike = len(new_x) == len(new_y)
    return {
        "each example has its own answer": alike and bool((new_x.reshape(-1) == new_y * 10).all()),
        "how many come back": (len(new_x), len(new_y)),
        "all examples are there": sorted(new_x.reshape(-1).tolist()) == x.reshape(-1).tolist(),
        "all answers are there": sorted(new_y.tolist()) == y.tolist(),
        "the order is new": new_y.tolist() != y.tolist(),
        "and a new one in each call": new_y.tolist() != other.tolist(),
        "a seed brings an order back": new_y.tolist() == again.tolist(),
        "what was given is as it was": engine.equal(given[0], x) and engine.equal(given[1], y),
    }


def shuffled_trial(shuffled):
    yield "100 examples, whose answers can be told from them", still_together, shuffled, 100
    yield "", still_together, shuffled, 57


def one_order(x, y):
    order = engine.randperm(len(x))
    return x[order], y[order]


def by_python(x, y):
    order = random.sample(range(len(x)), len(x))
    return x[order], y[order]


EXERCISES = (
    Exercise(
        key="12.1",
        points=1,
        answer=how_many,
        trial=many_trial,
        wrong=mistakes(
            lambda n, size, drop: n // size,
            "The examples that are left over make a batch too, unless drop_last.",
            lambda n, size, drop: n // size + 1,
            "If nothing is left over, there is no batch for it.",
            lambda n, size, drop: n // size + (not drop),
            "Right with drop_last. Without it, there is one batch more only if something is left over.",
            lambda n, size, drop: n // size if drop else round(n / size),
            "`round` goes to the nearest whole number. But however little is left over, it makes a batch.",
            lambda n, size, drop: n % size,
            "That is how many examples are left over. How many batches are there?",
            lambda n, size, drop: n // size + (0 if drop else n % size),
            "What is left over makes *one* batch, however many examples it holds.",
            lambda n, size, drop: math.ceil(n / size) - drop,
            "drop_last leaves out an incomplete batch. If all are full, it leaves out nothing.",
            lambda n, size, drop: max(1, n // size) if drop else math.ceil(n / size),
            "3 examples are less than a batch of 4, and with drop_last they make none.",
            lambda n, size, drop: math.ceil(n / size),
            "With drop_last, an incomplete batch does not count.",
            lambda n, size, drop: n / size,
            "A number of batches is a whole number.",
            lambda n, size, drop: math.ceil(n / size) if drop else n // size,
            "The other way round: with drop_last, the examples that are left over make no batch.",
        ),
        properties=properties(
            lambda n, size, drop: len(DataLoader(range(n), size, drop_last=drop)),
            lambda did: not calls(did.source, "DataLoader"),
            "The right numbers, but a DataLoader has counted them. Work them out from the two numbers.",
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
        wrong=mistakes(
            windows(lambda s, n: len(s), right_example),
            "That many windows begin in the series, but the last ones have no answer in it.",
            windows(lambda s, n: len(s) - n + 1, right_example),
            "One too many: the last window would need an answer beyond the end of the series.",
            windows(right_length, lambda s, n, i: (s[i : i + n], s[i + n - 1])),
            "The answer is the last number of the window itself. Asked for is the one that follows.",
            windows(right_length, lambda s, n, i: s[i : i + n]),
            "The example is the window alone. It should be a pair: the window, and the next number.",
            windows(right_length, lambda s, n, i: (s[i : i + n + 1], s[i + n])),
            "The window is one too long, and holds the answer. A network would find that out quickly.",
            windows(lambda s, n: len(s) - n - 1, right_example),
            "One too few: the last number of the series is an answer, too.",
            windows(lambda s, n: n, right_example),
            "n is how long a window is. How many of them are there?",
            windows(right_length, lambda s, n, i: right_example(s, n, i)[::-1]),
            "The other way round: first the window, then the number that follows.",
            windows(right_length, lambda s, n, i: (s[i : i + n - 1], s[i + n])),
            "The window is one too short. The end of a slice is not included: i : i + n holds n numbers.",
            windows(right_length, lambda s, n, i: (s[i : i + 2], s[i + 2])),
            "Right for n = 2 alone. How long a window is stands in self.n.",
        ),
        properties=properties(
            windows(lambda s, n: len(s) // n, lambda s, n, i: (s[i * n : i * n + n], s[i * n + n])),
            lambda did: did.error != "IndexError",
            "A number is asked for that is beyond the end of the series. Example i begins at place i: windows "
            "overlap, and each is one place further on.",
            windows(right_length, lambda s, n, i: (s[:n], s[i + n])),
            windows_do(0),
            "The answer is right. The window is another one: it begins at place i.",
            windows(right_length, lambda s, n, i: (s[i : i + n], s[-1])),
            windows_do(1),
            "The window is right. The answer is another number: it is the one right after the window.",
            windows(lambda s, n: len(s) // (n + 1), right_example),
            lambda did: not did.shown.endswith("len") or did.result == did.expected,
            "The length is off. Write out the examples: there is one for each place where a whole window and the "
            "number after it fit in.",
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
        wrong=mistakes(
            lambda train, test: [(rows - rows.mean(dim=0)) / rows.std(dim=0) for rows in (train, test)],
            "Each table is scaled by its own numbers. Then the same result stands for one age in the training "
            "rows, say, and for another one in the test rows.",
            scaled_with(of_all("mean"), of_all("std")),
            "Mean and standard deviation of all rows together: the test rows have leaked into training.",
            scaled_with(of_all("mean")),
            "The mean is that of all rows: the test rows have leaked into training.",
            scaled_with(lambda train, test: train.mean(dim=0), lambda train, test: 1.0),
            "The mean is right. The columns are still of different size: divide, too.",
            scaled_with(lambda train, test: train.mean(), lambda train, test: train.std()),
            "One mean for the whole table. Each column has its own: dim=0.",
            scaled_with(lambda train, test: train.mean(dim=0), lambda train, test: train.var(dim=0)),
            "You divided by the variance. The standard deviation is its root: `.std`.",
            scaled_with(lambda train, test: train.mean(dim=0), lambda train, test: train.std(dim=0, correction=0)),
            "Nearly: that standard deviation divides by n. `.std` as it is divides by n - 1.",
            lambda train, test: [(train - train.mean(dim=0)) / train.std(dim=0), test],
            "The training rows are right. The test rows must be scaled as well, by the same numbers.",
            lambda train, test: [
                (rows - rows.mean(dim=1, keepdim=True)) / rows.std(dim=1, keepdim=True) for rows in (train, test)
            ],
            "You scale each row, across its columns. What is to be brought to one size are the columns: dim=0.",
            lambda train, test: [rows - train.mean(dim=0) / train.std(dim=0) for rows in (train, test)],
            "Brackets: / comes before -. Subtract first, then divide.",
            scaled_with(lambda train, test: test.mean(dim=0), lambda train, test: test.std(dim=0)),
            "Both tables are scaled by the test rows' numbers. It is the other way round: none of those may be used.",
            scaled_with(lambda train, test: train.mean(dim=0), lambda train, test: train.std()),
            "The mean is that of each column, and so should the standard deviation be: dim=0.",
            lambda train, test: scaled(train, test)[::-1],
            "The other way round: first the training table, then the test table.",
        ),
        properties=properties(
            scaled_with(lambda train, test: train.min(dim=0).values),
            lambda did: as_trained(did, lambda rows: rows.mean(axis=0)),
            "The columns of the training table do not have the mean 0: subtract the mean of each.",
            scaled_with(
                lambda train, test: train.mean(dim=0),
                lambda train, test: train.max(dim=0).values - train.min(dim=0).values,
            ),
            lambda did: as_trained(did, lambda rows: rows.std(axis=0)),
            "The columns of the training table do not have the standard deviation 1: divide each by its own.",
            lambda train, test: [scaled(train, test)[0], (test - train.mean(dim=0)) / test.std(dim=0)],
            test_rows_too,
            "The training rows are right. The test rows are not: the training rows' mean and standard deviation "
            "are for them, too.",
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
        wrong=mistakes(
            padded_by(before),
            "The zeros stand before the numbers. They should come after them.",
            padded_by(changed(behind, "True", "False"), empty=True),
            "The mask is the wrong way round: True where there is a number.",
            padded_by(lambda batch, mask, row: behind(batch, mask, row) or mask.copy_(batch != 0)),
            "A 0 may be a true number. The mask has to come from the lengths.",
            to_the_shortest,
            "You cut all rows to the shortest one. Nothing should be lost.",
            lambda examples: (padded_by(behind)(examples)[0], engine.tensor([len(row) for row in examples])),
            "Those are the lengths. Asked for is a mask, of the same shape as the batch.",
            lambda examples: padded_by(behind)(examples)[::-1],
            "The other way round: first the batch, then the mask.",
        ),
        properties=properties(
            lambda examples: [*(nn.functional.pad(part, (0, 1)) for part in padded_by(behind)(examples))],
            lambda did: did.result[0].shape == did.expected[0].shape,
            "The batch has a row for each example, and is as wide as the longest of them.",
            padded_by(lambda batch, mask, row: behind(batch, mask, row.flip(0))),
            lambda did: filled(did, True),
            "Not all numbers stand where they should: each row begins with its example.",
            lambda examples: (
                [engine.where(mask, batch, -1.0) for batch, mask in [padded_by(behind)(examples)]]
                + [padded_by(behind)(examples)[1]]
            ),
            lambda did: filled(did, False),
            "What comes after the numbers is not 0.",
            lambda examples: [part.float() for part in padded_by(behind)(examples)],
            lambda did: did.result[1].dtype == bool or did.result[1].shape != did.expected[1].shape,
            "A mask holds truth values: `dtype=engine.bool`.",
            padded_by(lambda batch, mask, row: (behind(batch, mask, row), mask[: len(row) + 1].fill_(True))),
            lambda did: (did.result[1].astype(bool).sum(axis=1) == did.expected[1].sum(axis=1)).all(),
            "A row of the mask does not have as many Trues as its example has numbers.",
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
        wrong=mistakes(
            lambda x, y: (x[engine.randperm(len(x))], y[engine.randperm(len(y))]),
            "Examples and answers get two different orders, so each picture has the answer of another one.",
            lambda x, y: (x[engine.randperm(len(x))], y),
            "Only the examples move. Each answer must go with its own.",
            lambda x, y: (x, y),
            "Nothing is shuffled any more.",
            lambda x, y: (x.flip(0), y.flip(0)),
            "Together, yes. But it is the same order in each call.",
            changed(one_order, "randperm(len(x))", "randint(0, len(x), (len(x),))"),
            "randint may draw an example twice, and leave another one out. randperm takes each once.",
            lambda x, y: [part[order] for order in [engine.randperm(len(x) - 1)] for part in (x, y)],
            "One example is lost: `randperm(n)` gives the n numbers from 0 to n - 1, all of them.",
            lambda x, y: one_order(x, y)[::-1],
            "The other way round: first the examples, then their answers.",
        ),
        properties=properties(
            by_python,
            lambda did: did.result["a seed brings an order back"],
            "The order does not come from `engine.randperm`, so `engine.manual_seed` does not bring it back.",
            changed(one_order, "return x[order], y[order]", "x[:], y[:] = x[order], y[order]; return x, y"),
            lambda did: did.result["what was given is as it was"],
            "You write into the tables that were given. Whoever holds them finds another order. `x[order]` makes "
            "new ones: return those.",
        ),
        understood="What belongs together moves together: one order, drawn once, for both.",
        hints=(
            "Which example stands beside which answer afterwards?",
            "randperm gives a new order each time it is called. Call it once.",
            "order = engine.randperm(len(x))\nreturn ...",
        ),
    ),
)
