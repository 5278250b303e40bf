"""Taking batches from a dataset, in this process or in a worker, and what a worker can know of itself."""

import pickle
import traceback
from dataclasses import dataclass
from typing import Any

from .collate import default_collate
from .dataset import IterableDataset, as_list, batch_of, samples_of


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The result of ``get_worker_info()`` in a worker process; ``dataset`` is this worker's copy."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


worker_info: WorkerInfo | None = None  # set in a worker process


def get_worker_info():
    """The id, the number of workers, the seed and the dataset of this worker process; None in the main process."""
    return worker_info


class End:
    """A worker's answer when its stream has ended."""


class Failure:
    """A worker's answer when a batch could not be loaded: the exception, as far as another process can know it."""

    def __init__(self, error, where):
        self.kind = type(error)
        self.message = f"Caught {self.kind.__name__} {where}.\nOriginal {''.join(traceback.format_exception(error))}"
        try:
            pickle.dumps(self.kind)
        except Exception:  # a class of a function's own, or with a strange metaclass
            self.kind = RuntimeError

    def reraise(self):
        """Raise an exception of the same type; RuntimeError where that takes other arguments than a message."""
        try:
            error = self.kind(PlainMessage(self.message) if self.kind is KeyError else self.message)
        except Exception:  # whatever its constructor raises
            error = RuntimeError(self.message)
        raise error


class PlainMessage(str):
    """A message that a KeyError shows as it is."""

    __repr__ = str.__str__


def fetcher(dataset, batched, collate_fn, drop_last):
    """A function from the indices of a batch to it, or from an index to a sample; StopIteration at a stream's end."""
    if isinstance(dataset, IterableDataset):
        take = taker(dataset, drop_last)
        return (lambda indices: collate_fn(take(len(indices)))) if batched else (lambda _: collate_fn(take(1)[0]))

    def batch(indices):
        whole = batch_of(dataset, indices) if collate_fn is default_collate else None
        if whole is not None:
            return whole
        return collate_fn(samples_of(dataset, as_list(indices)))

    return batch if batched else lambda index: collate_fn(dataset[index])


def taker(dataset, drop_last):
    """A function that takes the next n samples from a stream."""
    source = iter(dataset)

    def take(n):
        nonlocal source
        found = []
        try:
            for _ in range(n):
                found.append(next(source))
        except StopIteration:
            source = iter(())  # an iterator may go on after its end; a stream does not
        if not found or (drop_last and len(found) < n):
            raise StopIteration
        return found

    return take
