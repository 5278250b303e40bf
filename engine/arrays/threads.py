"""Chains of calls on large arrays, in blocks of rows, on several threads.

NumPy computes on one core, but lets other threads run meanwhile.  A block must be large: between two calls the threads
take turns at the interpreter, which costs several microseconds.  Blocks do not depend on the number of threads, so
neither do results.
"""

import os
import sys
import threading
from contextvars import copy_context
from functools import partial
from math import prod
from queue import SimpleQueue
from weakref import WeakSet

import numpy as np

BLOCK = 1 << 18  # elements at most, by measurement: in smaller ones threads wait for each other more often
THREADED = BLOCK  # elements, from which on several threads gain
# Python in a browser's page has neither threads nor processes: the one place that says so.
IN_BROWSER = sys.platform in ("emscripten", "wasi")
locks: WeakSet = WeakSet()
RLOCK = type(threading.RLock())


def new_lock():
    """A lock that a forked child finds open: the thread that held it at that moment is not in the child."""
    lock = threading.RLock()
    locks.add(lock)
    return lock


def release_locks():
    """Release the locks that this thread holds: of an interrupted ``with``, the end may not have come."""
    for lock in list(locks):
        if isinstance(lock, RLOCK) and lock._is_owned():
            lock._release_save()


def available():
    """Return the default number of threads, as in PyTorch: what the environment says, else the number of cores."""
    if IN_BROWSER:
        return 1
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdecimal() and int(said):
        return int(said)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


threads = available()
pool_lock = new_lock()
helpers: list = []  # the threads beside those that ask, started when they are first needed
waiting: SimpleQueue = SimpleQueue()  # jobs for them; a thread that waits for one costs nothing, and is there in 5 us


def get_num_threads():
    """Return the number of threads that compute on large arrays."""
    return threads


def set_num_threads(num_threads):
    """Compute on large arrays with so many threads; products of matrices too, where threadpoolctl is installed."""
    global threads
    if type(num_threads) is not int:
        raise RuntimeError(f"set_num_threads expects an int, but got {type(num_threads).__name__}")
    if num_threads <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    threads = num_threads
    try:
        import threadpoolctl  # noqa: PLC0415  only where it is installed
    except ImportError:
        return
    threadpoolctl.threadpool_limits(num_threads, "blas")


class Job:
    """A call for another thread, run by the first to take it: that thread, or the one that waits for the result."""

    __slots__ = ("ended", "error", "taken", "work")

    def __init__(self, work):
        self.work, self.error = work, None
        self.taken, self.ended = threading.Lock(), threading.Lock()
        self.ended.acquire()

    def run(self):
        if self.taken.acquire(blocking=False):
            try:
                self.work()
            except BaseException as error:  # is raised where it is waited for
                self.error = error
            finally:
                self.work = None  # it may hold large arrays, and this thread the job until it has another
                self.ended.release()

    def wait(self):
        """Return when the call has ended, or will never begin."""
        if self.taken.acquire(blocking=False):
            self.work = None
            return
        try:
            self.ended.acquire()
        except BaseException:  # interrupted: arrays are written to for as long as the other thread is at it
            if self.work is not None:  # else it is ended, and the lock may be held: interrupted when that was done
                self.ended.acquire()
            raise
        error, self.error = self.error, None
        if error is not None:
            raise error


def serve(jobs):
    """Run jobs until None is handed over: the loop of a helper thread."""
    while (job := jobs.get()) is not None:
        job.run()
        del job


def start_helpers(n):
    """Start threads until there are n."""
    with pool_lock:
        while len(helpers) < n:
            helper = threading.Thread(target=serve, args=(waiting,), name="engine", daemon=True)
            try:
                helper.start()
            except RuntimeError:  # no more threads: the process ends, or has as many as it may
                return
            helpers.append(helper)


def on_threads(work, n):
    """Call ``work()`` on up to n threads, of which this is one."""
    if n < 2 or IN_BROWSER:
        return work()
    if len(helpers) < n - 1:
        start_helpers(n - 1)
    jobs = [Job(partial(copy_context().run, work)) for _ in range(n - 1)]
    try:
        for job in jobs:
            waiting.put(job)
        work()
    finally:
        wait_for(jobs)


def wait_for(jobs):
    """Wait for all jobs, whatever one of them raises."""
    if jobs:
        try:
            jobs[0].wait()
        finally:
            wait_for(jobs[1:])


def end_helpers():
    """End the threads: a process that is forked has none of them, and Python warns of forking with threads."""
    with pool_lock:
        ending = [helper for helper in helpers if helper is not threading.current_thread()]
        helpers.clear()
    for _ in ending:
        waiting.put(None)
    for helper in ending:
        helper.join()


def renew():
    """Give a forked child open locks, and a queue without waiting threads."""
    global waiting
    waiting = SimpleQueue()
    for lock in locks:
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=end_helpers, after_in_child=renew)


def is_large(x, row=0, block=BLOCK):
    """Tell whether an array is worth several blocks; one whose elements do not lie in order keeps its order."""
    return type(x) is np.ndarray and x.size >= max(block, 1) and (x.flags.c_contiguous or x.ndim == row + 1)


def rows_of(count, size, block=BLOCK):
    """Return how many of ``count`` rows make a block: equal parts, an even number for two threads; ``size``: of all."""
    pairs = -(-size // (2 * block))
    return max(-(-count // (2 * pairs)), 1)


def in_blocks(compute, *arrays, row=0, block=BLOCK):
    """``compute(*arrays)``, an array or a tuple of them, each row by itself; the last ``row`` dims are a row.

    The dims before those are the same in all arrays, and in the results.  Large NumPy arrays are taken block by block:
    ``compute(*blocks, into=array)`` may leave its first result, of the type and shape of the first array, there.
    ``block``: how many elements of the first array a block has; fewer than usual where each takes long.
    """
    x = arrays[0]
    if not is_large(x, row, block) or row == x.ndim:
        return compute(*arrays)
    lead = x.shape[: x.ndim - row]
    count = prod(lead)
    arrays = [a.reshape(count, *a.shape[len(lead) :]) for a in arrays]
    rows = rows_of(count, x.size, block)
    starts, outs, several = iter(range(0, count, rows)), [np.empty_like(arrays[0])], False

    def work():
        nonlocal several
        for start in starts:  # each thread takes the next block that none has taken
            some = slice(start, start + rows)
            into = outs[0][some]
            parts = compute(*[a[some] for a in arrays], into=into)
            several = type(parts) is tuple
            parts = parts if several else (parts,)
            with pool_lock:
                while len(outs) < len(parts):
                    part = parts[len(outs)]
                    outs.append(np.empty((count, *part.shape[1:]), part.dtype))
            for out, part in zip(outs, parts):
                if part is not into:
                    out[some] = part

    on_threads(work, min(threads, -(-count // rows)))
    results = [out.reshape(*lead, *out.shape[1:]) for out in outs]
    arrays, outs = [], []  # which a thread that came too late would hold for a while
    return tuple(results) if several else results[0]


def block_by_block(function, arrays, lead, rows, buffers=None):
    """``function(*parts, *buffers)`` for blocks of rows, of the first ``lead`` dims: lists of what it returns."""
    count = prod(arrays[0].shape[:lead])
    arrays = [a.reshape(count, *a.shape[lead:]) for a in arrays]
    starts = range(0, count, rows)
    results = [None] * len(starts)
    todo = iter(range(len(starts)))

    def work():
        own = kept = buffers.take() if buffers else []
        for i in todo:  # each thread takes the next block that none has taken
            block = slice(starts[i], starts[i] + rows)
            if starts[i] + rows > count:
                own = [buffer[: count - starts[i]] for buffer in own]
            results[i] = function(*[a[block] for a in arrays], *own)
        if buffers:
            buffers.give(kept)

    on_threads(work, min(threads, len(starts)) if max(a.size for a in arrays) >= THREADED else 1)
    return None if results[0] is None else [list(column) for column in zip(*results)]
