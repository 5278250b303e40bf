"""Datasets: maps from an index to a sample, streams of samples, and what is built from them."""

import math
from bisect import bisect_right
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np

from ...arrays import random
from ...arrays.warn import warn
from ...core.tensor import Tensor
from .. import messages

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A map from an index to a sample: a subclass defines ``__getitem__`` and, for most samplers, ``__len__``."""

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """A stream of samples: a subclass defines ``__iter__``.  What a worker is to give ``get_worker_info()`` says."""

    def __iter__(self):
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors: sample i is ``(x[i], y[i], ...)``.  AssertionError if they have different numbers of rows."""

    def __init__(self, *tensors):
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class Subset(Dataset[T_co]):
    """The samples of a dataset at the given indices."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices
        mine = type(self)
        if mine.__getitem__ is not Subset.__getitem__ and mine.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(messages.GETITEMS.format(mine.__name__))

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        return samples_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self):
        return len(self.indices)


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other.  AssertionError if there is none, or a stream among them."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        i = bisect_right(self.cumulative_sizes, idx)
        return self.datasets[i][idx - (self.cumulative_sizes[i - 1] if i else 0)]


def random_split(dataset, lengths, generator=None):
    """Subsets of the given lengths, or fractions of the whole, of a dataset in random order."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths = [math.floor(len(dataset) * fraction) for fraction in lengths]
        for i in range(len(dataset) - sum(lengths)):
            lengths[i % len(lengths)] += 1
        for i, length in enumerate(lengths):
            if length == 0:
                warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = random.randperm(generator, sum(lengths)).tolist()
    return [Subset(dataset, indices[end - n : end]) for end, n in zip(accumulate(lengths), lengths, strict=True)]


# ---- batches


def as_list(batch):
    """Indices that were drawn as a range or an array as a list; any other batch as it is."""
    return list(batch) if type(batch) is range else batch.tolist() if type(batch) is np.ndarray else batch


def samples_of(dataset, indices):
    """The samples of a batch: those of ``dataset.__getitems__`` where there is one."""
    getitems = getattr(dataset, "__getitems__", None)
    return getitems(indices) if getitems else [dataset[i] for i in indices]


def batch_of(dataset, indices):
    """Return the batch (a range, an array, a list) as ``default_collate`` would, cut from whole tensors; else None."""
    taken = tuple(getattr(type(dataset), name, None) for name in ("__getitem__", "__getitems__"))
    whole = whole_batches.get(taken)
    return None if whole is None else whole(dataset, indices)


def batch_of_tensors(dataset, indices):
    """A batch of a TensorDataset."""
    for t in dataset.tensors:
        if type(t) is not Tensor or t.node is not None or type(t.array) is not np.ndarray:
            return None
    if type(indices) is range:
        if indices.step == 1 and 0 <= indices.start and indices.stop <= len(dataset):
            return [Tensor(t.array[indices.start : indices.stop].copy()) for t in dataset.tensors]
        return None
    if type(indices) is list:
        if set(map(type, indices)) != {int}:
            return None
        indices = np.array(indices)
    elif type(indices) is not np.ndarray:
        return None
    try:
        return [Tensor(t.array.take(indices, 0)) for t in dataset.tensors]
    except IndexError:  # the tensors have a better message
        return None


def batch_of_subset(subset, indices):
    """A batch of a Subset, where the dataset that it is taken from can give one."""
    return batch_of(subset.dataset, [subset.indices[i] for i in as_list(indices)])


# how samples are taken -> how batches are: a subclass that overrides the one is not found here
whole_batches = {
    (TensorDataset.__getitem__, None): batch_of_tensors,
    (Subset.__getitem__, Subset.__getitems__): batch_of_subset,
}
