"""Worker processes: what runs in them, and the team of them that the main process keeps.

A worker is asked through one pipe and answers through another.  The arrays of a large batch go another way: the main
process lends the worker a slot of shared memory with the question, and copies the answer out of it.  So the main
process alone makes and frees shared memory, a worker that is killed leaves nothing behind, and where there is no (or
too little) shared memory the batch goes through the pipe.
"""

import io
import multiprocessing
import os
import pickle
import random as python_random
import signal
import sys
from contextlib import contextmanager, suppress
from itertools import accumulate
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from weakref import WeakSet

import numpy as np

from ...arrays.threads import set_num_threads
from ...core.tensor import Tensor
from ...ops.creation import manual_seed
from .. import messages
from . import fetch
from .dataset import IterableDataset
from .fetch import End, Failure, WorkerInfo, fetcher

GRACE = 5.0  # seconds that workers have to end by themselves
SHARED_MEMORY_FROM = 1 << 16  # bytes: a smaller batch fits into a pipe
ALIGNMENT = 64  # bytes
DONE = b"done"  # no pickle begins like this
RESTART = -1  # the number of the question for another epoch


# ---- in a worker


class Job:
    """The job of a worker.  Its parts are pickled apart, so that a worker which cannot read them can say so."""

    started = False

    def __init__(self, loader, seed, number):
        self.seed, self.number, self.num_workers = seed, number, loader.num_workers
        self.streams, self.batched = isinstance(loader.dataset, IterableDataset), loader.batch_sampler is not None
        self.drop_last = loader.drop_last
        self.parts = loader.dataset, loader.collate_fn, loader.worker_init_fn

    def __getstate__(self):
        return {**self.__dict__, "parts": bytes(ForkingPickler.dumps(self.parts))}

    def start(self):
        """Seed the random streams, differently in each worker, and read what it is to work with."""
        if isinstance(self.parts, bytes):
            try:
                self.parts = pickle.loads(self.parts)  # the main process wrote it
            except (AttributeError, ImportError) as e:
                e.add_note(messages.WORKER_CANNOT_READ)
                raise
        self.dataset, self.collate_fn, initialize = self.parts
        set_num_threads(1)  # the workers share the cores
        python_random.seed(self.seed + self.number)
        manual_seed(self.seed + self.number)
        words = [self.number, self.seed & 0xFFFFFFFF, self.seed >> 32, 0]
        np.random.seed(np.random.SeedSequence(words).generate_state(4))
        fetch.worker_info = WorkerInfo(self.number, self.num_workers, self.seed + self.number, self.dataset)
        if initialize is not None:
            initialize(self.number)
        self.started = True

    def begin(self):
        """Prepare to load an epoch."""
        if not self.started:
            self.start()
        return fetcher(self.dataset, self.batched, self.collate_fn, self.drop_last)


def run(job, questions, answers):
    """The life of a worker: to answer (number, indices, slot) by (number, batch) until it is told that it is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    inbox: SimpleQueue = SimpleQueue()
    Thread(target=listen, args=(questions, inbox), daemon=True).start()
    where = f"in DataLoader worker process {job.number}"
    slots: dict = {}
    load = attempt(job.begin, where)
    while (question := inbox.get()) != DONE:
        number, indices, slot = pickle.loads(question)  # the main process wrote it
        if number == RESTART:
            load, answer = attempt(job.begin, where), None
        else:
            try:
                answer = load(indices)
            except Exception as e:  # the main process raises it
                answer = End() if job.streams and isinstance(e, StopIteration) else Failure(e, where)
        try:
            data, buffers = pickled(answer)
        except Exception as e:  # the main process raises it
            data, buffers = pickled(Failure(e, where))
        try:
            send(answers, number, data, buffers, slot, slots)
        except OSError:  # the main process has closed its end
            return


def attempt(begin, where):
    """``begin()``; if that fails, a function that answers every question with the failure."""
    try:
        return begin()
    except Exception as e:  # the main process raises it
        failure = Failure(e, where)
        return lambda indices: failure


def listen(questions, inbox):
    """Hand on the questions, so that the main process never waits to ask; end this process if that one is gone."""
    question = None
    try:
        while question != DONE:
            question = questions.recv_bytes()
            inbox.put(question)
    except (EOFError, OSError):
        os._exit(1)


def pickled(answer):
    """A pickle, and the memory of the arrays in it."""
    buffers: list = []
    data = io.BytesIO()
    Pickler(data, protocol=5, buffer_callback=buffers.append).dump(answer)
    return data.getvalue(), [b.raw() for b in buffers]


class Pickler(pickle.Pickler):
    """Pickles what goes to the main process, but no result of a graph that would stay behind."""

    def reducer_override(self, value):
        if isinstance(value, Tensor) and not value.is_leaf:
            raise RuntimeError(messages.NON_LEAF_SENT)
        return NotImplemented


def send(answers, number, data, buffers, slot, slots):
    """Answer.  ``slot``: (name, size) of the shared memory that was lent, or None; ``slots``: those open here."""
    sizes = [b.nbytes for b in buffers]
    *places, end = slot_offsets(sizes)
    shared = slot is not None and SHARED_MEMORY_FROM <= end <= slot[1]
    if shared:
        name = slot[0]
        if name not in slots:
            slots[name] = SharedMemory(name)
        for place, b in zip(places, buffers, strict=True):
            slots[name].buf[place : place + b.nbytes] = b
    answers.send((number, data, sizes, shared))
    if not shared:
        for b in buffers:
            if b.nbytes:
                answers.send_bytes(b)


# ---- in the main process

pipe_ends: WeakSet = WeakSet()  # the main process's ends of all pipes


def close_ends():
    """In a forked process: a copy of an end would keep the other one from hearing that it is closed."""
    for end in pipe_ends:
        end.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=close_ends)


class Member:
    """A worker, seen from the main process."""

    def __init__(self, context, job):
        theirs, self.questions = context.Pipe(duplex=False)
        self.answers, answers = context.Pipe(duplex=False)
        pipe_ends.update((self.questions, self.answers))
        self.process = context.Process(target=run, args=(job, theirs, answers), daemon=True)
        try:
            with interrupts_held():
                self.process.start()
        except (TypeError, AttributeError, pickle.PicklingError) as e:
            e.add_note(messages.WORKER_CANNOT_READ)
            raise
        theirs.close()
        answers.close()


class Team:
    """The workers of an iterator, and the shared memory that is lent to them."""

    def __init__(self, loader, seed):
        context = loader.multiprocessing_context or multiprocessing.get_context()
        if os.name == "posix":  # before any worker is there: they are to share it
            from multiprocessing import resource_tracker  # noqa: PLC0415  POSIX alone has it

            resource_tracker.ensure_running()
        self.owner, self.stopped = os.getpid(), False
        self.members, self.free, self.lent, self.need = [], [], {}, 0
        try:
            for i in range(loader.num_workers):
                self.members.append(Member(context, Job(loader, seed, i)))
        except BaseException:
            self.stop()
            raise

    def ask(self, worker, number, indices):
        """Ask a worker for a batch."""
        slot = self.slot()
        if slot is not None:
            self.lent[number] = slot
        self.post(worker, (number, indices, slot and (slot.name, slot.size)))

    def post(self, worker, question):
        try:
            self.members[worker].questions.send_bytes(ForkingPickler.dumps(question))
        except OSError:
            self.died()

    def receive(self, timeout=0):
        """(worker, number, batch) of the next answer.  RuntimeError: none in ``timeout`` seconds, or a worker ended."""
        if self.stopped:
            raise RuntimeError("The workers of this DataLoader iterator have ended: iterate over the DataLoader again")
        try:
            return self.next_answer(timeout)
        except KeyboardInterrupt:  # an answer may be half read
            self.stop()
            raise

    def next_answer(self, timeout):
        ready = wait([m.answers for m in self.members] + [m.process.sentinel for m in self.members], timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        worker = next((i for i, m in enumerate(self.members) if m.answers in ready), None)
        if worker is None:
            self.died()
        answers = self.members[worker].answers
        try:
            number, data, sizes, shared = answers.recv()
            slot, (*places, end) = self.lent.get(number), slot_offsets(sizes)
            if shared:  # a view under a name would stay in the traceback of a Ctrl-C, and the slot could not be closed
                view = lambda: np.frombuffer(slot.buf, np.uint8)  # noqa: E731
                buffers = [view()[p : p + n].copy() for p, n in zip(places, sizes, strict=True)]
            else:
                buffers = [np.empty(n, np.uint8) for n in sizes]
                for b in buffers:
                    if b.size:
                        answers.recv_bytes_into(b)
        except (EOFError, OSError):
            self.died()
        self.lent.pop(number, None)
        self.take_back(slot, end)
        return worker, number, pickle.loads(data, buffers=buffers)  # a worker wrote it

    def restart(self):
        """Let the workers begin another epoch; what they still answer of the last one is dropped."""
        for worker in range(len(self.members)):
            self.post(worker, (RESTART, None, None))
        waiting = len(self.members)
        while waiting:
            waiting -= self.receive()[1] == RESTART

    def died(self):
        """Raise the error for workers that have ended unasked."""
        wait([m.process.sentinel for m in self.members], 12 * GRACE)  # on a busy computer its pipe ends long before it
        for m in self.members:
            m.process.join(0.1)
        dead = [m.process for m in self.members if not m.process.is_alive()]
        pids, reasons = ", ".join(str(p.pid) for p in dead), ", ".join(exit_reason(p.exitcode) for p in dead)
        self.stop()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {reasons}") from None

    def stop(self):
        """End the workers: they are told, then terminated, then killed."""
        if self.stopped or self.owner != os.getpid():
            return
        self.stopped = True
        try:
            for m in self.members:
                m.answers.close()
                with suppress(OSError):
                    m.questions.send_bytes(DONE)
                m.questions.close()
            self.join(GRACE)
            for end in ("terminate", "kill"):
                for m in self.members:
                    getattr(m.process, end)()
                self.join(GRACE)
        finally:
            for slot in [*self.free, *self.lent.values()]:
                drop(slot)
            self.free, self.lent = [], {}

    def join(self, seconds):
        deadline = monotonic() + seconds
        for m in self.members:
            m.process.join(max(0.0, deadline - monotonic()))

    # shared memory

    def slot(self):
        """Shared memory for the largest batch so far; None if there was no large one, or there is no room."""
        if self.free:
            return self.free.pop()
        if self.need >= SHARED_MEMORY_FROM:
            with suppress(OSError):
                return new_slot(self.need + self.need // 4)
        return None

    def take_back(self, slot, needed):
        if needed > self.need:
            self.need = needed
            for small in self.free:
                drop(small)
            self.free = []
        if slot is not None and slot.size >= self.need:
            self.free.append(slot)
        elif slot is not None:
            drop(slot)


def slot_offsets(sizes):
    """Return the offsets of the parts of a batch in a slot, and the end of the last one."""
    return [*accumulate((-(-n // ALIGNMENT) * ALIGNMENT for n in sizes), initial=0)]


def new_slot(size):
    """Allocate shared memory.  OSError if there is too little: Linux gives more than it has and kills the writer."""
    slot = SharedMemory(create=True, size=size)
    file = Path("/dev/shm", slot.name)
    if sys.platform == "linux" and file.exists():
        try:
            with file.open("r+b") as f:
                os.posix_fallocate(f.fileno(), 0, size)
        except OSError:
            drop(slot)
            raise
    return slot


def drop(slot):
    slot.close()
    slot.unlink()


def exit_reason(code):
    with suppress(TypeError, ValueError):  # None, or no signal's number
        return f"killed by signal {signal.Signals(-code).name}"
    return f"exit code {code}"


@contextmanager
def interrupts_held():
    """A Ctrl-C in the block comes after it, to this process: one that is started in it begins with Ctrl-C blocked."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
