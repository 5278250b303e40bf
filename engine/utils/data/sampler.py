"""Samplers: the order in which a dataset is gone through, with PyTorch's random numbers."""

from itertools import islice
from typing import Generic

import numpy as np

from ...arrays import random
from ...arrays.dtypes import float64
from ...ops.creation import as_tensor
from .. import messages
from .dataset import T_co, as_list


def random_seed(generator=None):
    """A seed drawn from a generator: one of 2 ** 63."""
    return int(random.random(generator, (), np.int64))


def check_positive(name, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class Sampler(Generic[T_co]):
    """An order of indices, keys or batches of them: a subclass defines ``__iter__`` and, where known, ``__len__``."""

    def __iter__(self):
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class RunSampler(Sampler[int]):
    """A sampler that draws many indices at a time: ``_draw_runs`` of a subclass gives ranges and int64 arrays."""

    def _draw_runs(self):
        raise NotImplementedError("Subclasses of RunSampler should implement _draw_runs.")

    def __iter__(self):
        for run in self._draw_runs():
            yield from run if type(run) is range else run.tolist()


class SequentialSampler(RunSampler):
    """The indices of a dataset from the first to the last."""

    def __init__(self, data_source):
        self.data_source = data_source

    def _draw_runs(self):
        yield range(len(self.data_source))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(RunSampler):
    """The indices of a dataset in random order or, with ``replacement``, drawn one by one; ``num_samples`` of them."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _draw_runs(self):
        n, generator = len(self.data_source), self.generator
        if generator is None:
            generator = random.Generator().manual_seed(random_seed())
        at_once = 32 if self.replacement else n
        whole, rest = divmod(self.num_samples, at_once)
        for size in [at_once] * whole + [rest]:
            if self.replacement:
                yield random.random(generator, (size,), np.int64, 0, n)
            elif size or self.generator is not None:  # PyTorch draws the last one even if it takes nothing of it
                yield random.randperm(generator, n)[:size]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        for i in random.randperm(self.generator, len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(RunSampler):
    """``num_samples`` indices, drawn with probabilities proportional to ``weights``."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(messages.WEIGHTS_SHAPE.format(tuple(self.weights.shape)))
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def _draw_runs(self):
        yield random.multinomial(self.generator, self.weights.array, self.num_samples, self.replacement)

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of a sampler (or of any iterable), ``batch_size`` at a time, as lists."""

    def __init__(self, sampler, batch_size, drop_last):
        check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        for batch in self._draw_batches():
            yield as_list(batch)

    def _draw_batches(self):
        """The batches: of a sampler that draws runs, as slices of them."""
        size = self.batch_size
        if getattr(type(self.sampler), "__iter__", None) is not RunSampler.__iter__:
            indices = iter(self.sampler)
            while batch := list(islice(indices, size)):
                if len(batch) == size or not self.drop_last:
                    yield batch
            return
        left = range(0)
        for run in self.sampler._draw_runs():
            run = np.concatenate([left, run]) if len(left) else run
            whole = len(run) - len(run) % size
            for i in range(0, whole, size):
                yield run[i : i + size]
            left = run[whole:]
        if len(left) and not self.drop_last:
            yield left

    def __len__(self):
        return (len(self.sampler) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size
