"""DataLoader: goes through a dataset batch by batch, in this process or with worker processes."""

import math
import os
from itertools import cycle, repeat
from typing import Generic
from weakref import finalize

from ...arrays import threads
from ...arrays.devices import has_cuda
from ...arrays.warn import warn
from .. import messages
from .collate import default_collate, default_convert, pinned
from .dataset import IterableDataset, T_co
from .fetch import End, Failure, fetcher
from .sampler import BatchSampler, RandomSampler, SequentialSampler, random_seed


class DataLoader(Generic[T_co]):
    """The batches of a dataset, in an order: iterate over it, once an epoch."""

    _fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    _initialized = False

    def __init__(
        self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
        pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None,
        generator=None, *, prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True,
    ):  # fmt: skip
        for wrong, message in (
            (num_workers < 0, messages.NUM_WORKERS),
            (timeout < 0, "timeout option should be non-negative"),
            (not num_workers and prefetch_factor is not None, messages.PREFETCH_WITHOUT_WORKERS),
            ((prefetch_factor or 0) < 0, "prefetch_factor option should be non-negative"),
            (persistent_workers and not num_workers, "persistent_workers option needs num_workers > 0"),
        ):
            if wrong:
                raise ValueError(message)
        if num_workers and threads.IN_BROWSER:
            raise NotImplementedError(messages.NO_WORKERS.format(num_workers))
        self.dataset, self.num_workers, self.generator = dataset, num_workers, generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn, self.in_order = timeout, worker_init_fn, in_order
        self.persistent_workers, self.multiprocessing_context = persistent_workers, multiprocessing_context
        self._streams = isinstance(dataset, IterableDataset)
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if self._streams and value is not None:
                raise ValueError(messages.OPTION_OF_ITERABLE.format(name, value))
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(messages.BATCH_SAMPLER)
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None and self._streams:
            sampler = repeat(None)  # a stream has an order of its own
        elif sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._length_told = None  # what len() said of a stream
        self._iterator = None  # that of persistent workers
        self._initialized = True
        check_number_of_workers(num_workers)

    def __setattr__(self, name, value):
        if self._initialized and name in self._fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        if name == "multiprocessing_context" and value is not None:
            value = context(value, self.num_workers)
        super().__setattr__(name, value)

    def __iter__(self):
        if self.num_workers == 0:
            return LoaderIterator(self)
        check_number_of_workers(self.num_workers)
        if not self.persistent_workers:
            return WorkersIterator(self)
        if self._iterator is None or self._iterator.team.stopped:
            self._iterator = WorkersIterator(self)
        else:
            self._iterator.restart()
        return self._iterator

    def __len__(self):
        if not self._streams:
            return len(self._index_sampler)
        length = self._length_told = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    @property
    def _index_sampler(self):
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _indices(self):
        """The batches of indices of an epoch, in the form in which they are drawn where that is known."""
        sampler = self._index_sampler
        return sampler._draw_batches() if type(sampler).__iter__ is BatchSampler.__iter__ else iter(sampler)


def context(method, num_workers):
    """The multiprocessing context for a start method, or itself.  ValueError, TypeError for what is none."""
    import multiprocessing  # noqa: PLC0415  0.02 s, and most programs have no workers

    if num_workers == 0:
        raise ValueError(messages.CONTEXT_WITHOUT_WORKERS.format(num_workers))
    if isinstance(method, str):
        known = multiprocessing.get_all_start_methods()
        if method not in known:
            raise ValueError(messages.START_METHOD.format(known, method))
        return multiprocessing.get_context(method)
    if not isinstance(method, multiprocessing.context.BaseContext):
        raise TypeError(messages.CONTEXT_TYPE.format(method))
    return method


def check_number_of_workers(n):
    """Warn if there are more workers than processors for them."""
    if n:
        known = hasattr(os, "sched_getaffinity")
        processors = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
        if n > processors:
            warn(messages.MANY_WORKERS.format(n, processors, "" if known else " (`cpuset` is not taken into account)"))


class LoaderIterator:
    """One epoch in this process."""

    def __init__(self, loader):
        self.loader = loader
        self.pins = loader.pin_memory and has_cuda()
        if loader.pin_memory and loader.pin_memory_device:
            warn(messages.PIN_MEMORY_DEVICE.format(loader.pin_memory_device))
        if loader.pin_memory and not self.pins:
            warn(messages.PIN_MEMORY)
        self.indices = loader._indices()
        self.seed = random_seed(loader.generator)  # drawn without workers too: the numbers after it are the same
        self.given = 0
        self.start()

    def start(self):
        loader = self.loader
        if loader.timeout:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self.fetch = fetcher(loader.dataset, loader.batch_sampler is not None, loader.collate_fn, loader.drop_last)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader._index_sampler)

    def load(self):
        return self.fetch(next(self.indices))

    def __next__(self):
        batch, told = self.load(), self.loader._length_told
        if told is not None:
            self.given += 1
            if self.given > told:
                message = messages.LENGTH.format(self.loader.dataset, told, self.given)
                warn(message + messages.LENGTH_WITH_WORKERS * bool(self.loader.num_workers))
        return pinned(batch) if self.pins else batch

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled: iterate over the DataLoader itself there")


class WorkersIterator(LoaderIterator):
    """One epoch with worker processes; if they are persistent, one epoch after the other.

    Batches are numbered.  As one is given, another is asked for: each worker has ``prefetch_factor`` to do.
    """

    def start(self):
        from .worker import Team  # noqa: PLC0415  it imports multiprocessing

        if not self.loader.prefetch_factor > 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self.team = Team(self.loader, self.seed)
        finalize(self, self.team.stop)
        self.begin()

    def restart(self):
        """Another epoch with the same workers."""
        self.team.restart()
        self.given = 0
        self.begin()

    def begin(self):
        workers = range(self.loader.num_workers)
        self.indices = self.loader._indices()
        self.asked = self.next = 0
        self.worker_of = {}  # number of a batch that was asked for and not given yet -> its worker
        self.arrived = {}  # number -> batch
        self.active = set(workers)  # the workers whose stream has not ended
        self.turns = cycle(workers)
        for _ in range(self.loader.prefetch_factor * len(workers)):
            self.ask()

    def ask(self):
        """Ask the worker whose turn it is for another batch; out of order, the one that has least to do."""
        try:
            indices = next(self.indices)
        except StopIteration:
            return
        if self.active:
            if self.loader.in_order:
                worker = next(w for w in self.turns if w in self.active)
            else:
                worker = min(self.active, key=list(self.worker_of.values()).count)
            self.team.ask(worker, self.asked, indices)
            self.worker_of[self.asked] = worker
            self.asked += 1

    def load(self):
        while (number := self.due()) not in self.arrived:
            worker, arrived, batch = self.team.receive(self.loader.timeout)
            if not isinstance(batch, End):
                self.arrived[arrived] = batch
            elif worker in self.active:
                self.active.remove(worker)
                self.ask()
        del self.worker_of[number]
        self.ask()
        batch = self.arrived.pop(number)
        if isinstance(batch, Failure):
            batch.reraise()
        return batch

    def due(self):
        """The number of the batch to be given next.  StopIteration if there is none."""
        if self.arrived and not self.loader.in_order:
            return next(iter(self.arrived))
        while self.next < self.asked:
            if self.next in self.arrived or self.worker_of.get(self.next) in self.active:
                return self.next
            self.worker_of.pop(self.next, None)  # it was given, or its worker's stream has ended
            self.next += 1
        if not self.loader.persistent_workers:
            self.team.stop()
        raise StopIteration
