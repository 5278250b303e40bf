"""A collective that has begun: waiting for it, for so long and no longer.

Nothing here blocks inside of MPI: a program that waits asks again and again, so that Ctrl-C and the timeout reach it.
"""

import time
from datetime import timedelta

SPINS = 200  # how often is asked before this process lets others have its core: 100 us
NAP = 5e-5  # seconds between two questions from then on
LONG = 0.002  # seconds of short naps; from then on they grow
LONGEST_NAP = 0.002
LOOK = 0.05  # seconds between two looks at what other ranks tell of themselves


class DistError(RuntimeError):
    """An error between processes."""

    __module__ = "torch.distributed"


class DistBackendError(DistError):
    """An error that a backend reports: a missing rank, calls that do not fit each other."""

    __module__ = "torch.distributed"


class Work:
    """A collective that has begun.

    ``requests``: what must be complete, the first at the end; ``machine``: who gave them, and looks after long waits;
    ``finish``: called once at the end, to put results into their places.
    """

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self, requests, machine, finish=None, results=(), keep=()):
        self.requests, self.machine, self.finish, self.results = requests, machine, finish, results
        self.what, self.number, self.told = machine.what, machine.count, False
        self.failed, self.keep = None, keep  # arrays that must stay until then

    source = None

    def advance(self):
        """Tell whether the collective is complete; if so, its results are in place."""
        requests = self.requests
        try:
            while requests:
                if not requests[-1].Test():
                    return False
                self.source = getattr(requests.pop(), "source", None)
            if self.finish is not None:
                finish, self.finish = self.finish, None
                finish()
        except Exception as e:
            self.failed = e
            raise
        return True

    def wait(self, timeout=None):
        """Wait until it is complete.  DistBackendError where that takes longer than the timeout (a timedelta)."""
        for _ in range(SPINS):
            if self.advance():
                return True
        limit = timeout.total_seconds() if isinstance(timeout, timedelta) and timeout else self.machine.timeout
        start = now = time.monotonic()
        look, nap = start + LOOK, NAP
        while not self.advance():
            time.sleep(nap)
            now = time.monotonic()
            if now - start > LONG:
                nap = min(nap * 1.2, LONGEST_NAP)
            if now > look:
                look = now + LOOK
                self.machine.watch(self, now - start, limit)
        return True

    def is_completed(self):
        """Tell whether the collective is complete, without waiting."""
        return self.failed is not None or self.advance()

    def is_success(self):
        """Tell whether the collective is complete and nothing went wrong."""
        return self.failed is None and self.advance()

    def exception(self):
        """Return the error that ended the collective, or None."""
        return self.failed

    def synchronize(self):
        """The same as ``wait()``."""
        self.wait()

    def result(self):
        """The tensors that it gave."""
        return list(self.results)

    def source_rank(self):
        """Of a ``recv`` from any rank: whose message it was."""
        return self.source

    def get_future(self):
        """A Future of the tensors that it gave."""
        return Future(self)


class Future:
    """The result that a collective is going to give: ``wait()`` for it, or say what to do ``then``."""

    __module__ = "torch.futures"

    def __init__(self, work=None, then=None):
        self.work, self.steps, self.kept = work, then, None

    def wait(self):
        """Wait for the value."""
        if self.work is not None:
            work, self.work = self.work, None
            if isinstance(work, Future):
                work.wait()
                self.kept = self.steps(work)
            else:
                work.wait()
                self.kept = work.result()
        return self.kept

    value = wait

    def done(self):
        """Tell whether the value is known."""
        if isinstance(self.work, Future):
            return self.work.done()
        return self.work is None or self.work.is_completed()

    def then(self, callback):
        """A Future of ``callback(this one)``, called when that is waited for."""
        return Future(self, callback)

    def set_result(self, result):
        """Give a value to a Future that was made without a collective."""
        self.kept = result
