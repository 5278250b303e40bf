"""Buckets: gradients go together in a few messages, the first of them while the backward pass still runs.

The gradient of a parameter is copied into its bucket when it is complete.  A bucket that is full goes off, if those
before it have; whoever fills the last one waits for all of them.  Buckets are in the reverse order of the parameters,
which is about the order in which their gradients come.
"""

from time import perf_counter

from ...arrays.dispatch import modules
from ...collectives import calls
from ...collectives.reduce_op import ReduceOp
from ...collectives.work import Future, Work
from ...core.backward import reachable
from ...core.tensor import Tensor
from ...core.versions import write
from ...ops.creation import full
from .. import messages


class GradBucket:
    """The gradients of some parameters, one behind the other: what a communication hook gets."""

    def __init__(self, index, params, numbers):
        self.number, self.params, self.numbers = index, params, numbers
        x = params[0].shared()
        self.flat = modules[type(x)].zeros(sum(p.numel() for p in params), x.dtype)
        self.views, start = [], 0
        for p in params:
            self.views.append(self.flat[start : start + p.numel()].reshape(p.shape))
            start += p.numel()
        self.last = False
        self.missing = len(params)  # gradients that have not come yet
        self.work = None

    def index(self):
        """Return the bucket's number: the first one goes off first."""
        return self.number

    def buffer(self):
        """All gradients as one vector."""
        return Tensor(self.flat)

    def gradients(self):
        """The gradients, which share the memory of the vector."""
        return [Tensor(view) for view in self.views]

    def parameters(self):
        """The parameters."""
        return list(self.params)

    def is_last(self):
        """Tell whether this bucket is the last one to be sent."""
        return self.last

    def set_buffer(self, buffer):
        """Put other values in the place of the gradients."""
        self.flat[...] = buffer.array.reshape(self.flat.shape)


def in_buckets(params, first, cap):
    """The parameters in reverse order, in lists of at most so many bytes, each of one dtype on one device."""
    open_: dict = {}
    done = []
    for i in reversed(range(len(params))):
        p = params[i]
        key = p.dtype, str(p.device)
        numbers, size = open_.get(key, ([], 0))
        numbers.append(i)
        size += p.numel() * p.element_size()
        limit = cap if done else first
        if size >= limit:
            done.append(numbers)
            open_.pop(key, None)
        else:
            open_[key] = numbers, size
    return done + [numbers for numbers, _ in open_.values()]


class Reducer:
    """Averages the gradients of parameters over the ranks of a group, while they come."""

    def __init__(self, params, names, group, first, cap, find_unused, as_views):
        self.params, self.names, self.group = params, names, group
        self.find_unused, self.as_views = find_unused, as_views
        self.alone = group.size() == 1
        self.scale = 1.0 / group.size()
        self.buckets = [
            GradBucket(i, [params[n] for n in numbers], numbers)
            for i, numbers in enumerate(in_buckets(params, first, cap))
        ]
        self.buckets[-1].last = True
        self.place = {n: (b, i) for b in self.buckets for i, n in enumerate(b.numbers)}
        self.hook = None
        self.expecting = False  # whether the next backward pass is one whose gradients are averaged
        self.ready: set = set()
        self.unused: set = set()
        self.next = 0  # the bucket that goes off next
        self.times: list = []
        self.handles = [p.register_post_accumulate_grad_hook(self.hook_of(n)) for n, p in enumerate(params)]

    def hook_of(self, number):
        def arrived(_):
            if self.expecting:
                self.arrived(number)

        return arrived

    # ---- a pass

    def check_finished(self):
        """RuntimeError where the pass before has left buckets that are not full: others wait for them."""
        if 0 < len(self.ready) < len(self.params):
            missing = [n for n in range(len(self.params)) if n not in self.ready]
            numbers = " ".join(map(str, missing))
            names = ", ".join(self.names[n] for n in missing)
            rank = self.group.rank()
            raise RuntimeError(messages.UNFINISHED_REDUCTION.format(rank, names, rank, numbers))

    def prepare(self, outputs):
        """Expect a backward pass from the tensors in ``outputs``."""
        self.expecting = True
        self.ready.clear()
        self.unused.clear()
        self.next = 0
        for bucket in self.buckets:
            bucket.missing, bucket.work = len(bucket.params), None
        if self.find_unused:
            reached = reachable([t.node for t in outputs if t.node is not None])
            self.unused = {n for n, p in enumerate(self.params) if p.node not in reached}
        self.begun = perf_counter()
        self.launched = []

    def arrived(self, number):
        """The gradient of a parameter is complete."""
        if number in self.ready:
            raise RuntimeError(messages.READY_TWICE.format(number, self.names[number]))
        if not self.ready and self.unused:
            for n in sorted(self.unused - {number}):
                self.fill(n, None)
        self.fill(number, self.params[number].grad)
        if self.next == len(self.buckets):
            self.finish()
        elif self.next:  # MPI goes on with what is under way when it is asked
            for bucket in self.buckets[: self.next]:
                if type(bucket.work) is Work:
                    bucket.work.advance()

    def fill(self, number, grad):
        bucket, i = self.place[number]
        self.ready.add(number)
        bucket.missing -= 1
        if not self.alone or self.hook is not None:
            view = bucket.views[i]
            if grad is None:
                view[...] = 0
            elif self.hook is not None:
                if grad.array is not view:
                    view[...] = grad.array
            else:
                modules[type(view)].multiply(grad.array, view.dtype.type(self.scale), view)
        while self.next < len(self.buckets) and not self.buckets[self.next].missing:
            self.launch(self.buckets[self.next])
            self.next += 1

    def launch(self, bucket):
        self.launched.append(perf_counter())
        if self.hook is not None:
            hook, state = self.hook
            bucket.work = hook(state, bucket)
        elif not self.alone:
            bucket.work = calls.all_reduce(Tensor(bucket.flat), group=self.group, async_op=True)

    def finish(self):
        """Wait for all buckets, and put what came into the gradients."""
        full_at = perf_counter()
        self.expecting = False
        used = self.used_anywhere() if self.find_unused and not self.alone else None
        for bucket in self.buckets:
            if isinstance(bucket.work, Future):
                found = bucket.work.wait()
                found = found[0] if isinstance(found, list) else found
                if found.array is not bucket.flat:
                    bucket.flat[...] = found.array.reshape(bucket.flat.shape)
            elif bucket.work is not None:
                bucket.work.wait()
            if bucket.work is not None:
                for view, p, n in zip(bucket.views, bucket.params, bucket.numbers):
                    self.give(p, view, n not in self.unused or used is not None and n in used)
            bucket.work = None
        now = perf_counter()
        first = self.launched[0] if self.launched else now
        self.times = [full_at - self.begun, now - first, full_at - first]
        self.ready.clear()

    def used_anywhere(self):
        """The numbers of the parameters that some rank has used."""
        flags = [n not in self.unused for n in range(len(self.params))]
        there = full((len(flags),), False)
        there.array[...] = flags
        calls.all_reduce(there, ReduceOp.MAX, self.group)
        return {n for n, flag in enumerate(there.tolist()) if flag}

    def give(self, p, view, used):
        """Let a parameter have its part of a bucket as gradient."""
        if not used:
            return
        if self.as_views:
            if p._grad is None or p._grad.array is not view:
                p._grad = Tensor(view)
        elif p._grad is None:
            p._grad = Tensor(view.copy())
        else:
            write(p._grad, view)
