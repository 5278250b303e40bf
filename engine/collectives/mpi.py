"""A group of processes that MPI has started, by mpi4py: arrays in host memory.

Beside the messages themselves travel two kinds of small ones.  With each collective, a number that says what it is:
where ranks disagree, all of them raise the same error instead of computing nonsense.  And, from who waits for long, a
note where it waits: so who gives up can name the rank that did not come.
"""

import json
import os
import time
from functools import cache
from zlib import crc32

import numpy as np

from ..arrays import dtypes
from . import messages
from .reduce_op import FUNCTIONS
from .work import LONGEST_NAP, DistBackendError, Work

SURE = 0.5  # seconds after which a rank that has ended will not have left a message on its way
EXCHANGE = 30.0  # seconds for telling each other what does not fit
LONGEST_NOTE = 400  # bytes


@cache
def library():
    """mpi4py's MPI, which starts MPI when it is imported.  RuntimeError where there is none."""
    try:
        from mpi4py import MPI  # noqa: PLC0415  one process alone needs none
    except (ImportError, RuntimeError) as e:
        raise RuntimeError(messages.NO_MPI.format(e)) from None
    return MPI


@cache
def reduction(op, dtype):
    """(MPI's type, MPI's operation, the NumPy dtype in which memory is handed over) for elements of a dtype."""
    MPI = library()
    if dtype == np.bool_:
        either, both = MPI.LOR, MPI.LAND
        found = {"SUM": either, "PRODUCT": both, "MIN": both, "MAX": either, "BAND": both, "BOR": either,
                 "BXOR": MPI.LXOR}[op.name]  # fmt: skip
        return MPI.C_BOOL, found, np.uint8
    if dtype in dtypes.accumulate_wider:
        return MPI.UINT16_T, MPI.Op.Create(rounding(FUNCTIONS[op], dtype), commute=True), np.uint16
    found = {"SUM": MPI.SUM, "AVG": MPI.SUM, "PRODUCT": MPI.PROD, "MIN": MPI.MIN, "MAX": MPI.MAX, "BAND": MPI.BAND,
             "BOR": MPI.BOR, "BXOR": MPI.BXOR}[op.name]  # fmt: skip
    return getattr(MPI, TYPES[dtype.name]), found, dtype


TYPES = {
    "float64": "DOUBLE", "float32": "FLOAT", "int64": "INT64_T", "int32": "INT32_T", "int16": "INT16_T",
    "int8": "INT8_T", "uint8": "UINT8_T",
}  # fmt: skip


def rounding(function, dtype):
    """An operation on half precision, of which MPI knows nothing: computed in float32, rounded at each step."""

    def combine(a, b, _):
        x, y = np.frombuffer(a, dtype), np.frombuffer(b, dtype)
        y[...] = function(x.astype(np.float32), y.astype(np.float32))

    return combine


def raw(x):
    """The memory of an array that lies in order, as bytes."""
    return x.reshape(-1).view(np.uint8)


class Agreement:
    """A request that is complete when all ranks have begun the same collective; an error where they differ."""

    __slots__ = ("beside", "machine", "number", "request", "seen", "text")

    def __init__(self, machine, text, beside=None):
        self.machine, self.text, self.number, self.beside = machine, text, machine.count, beside
        sign = crc32(text.encode())
        self.seen = np.array([sign, -sign])
        self.request = machine.checks.Iallreduce(machine.MPI.IN_PLACE, self.seen, machine.MPI.MIN)

    def Test(self):
        if not self.request.Test():
            return False
        if self.seen[0] != -self.seen[1]:
            differences = self.machine.differences(self.text, self.number)
            self.machine.renew(self.beside)
            raise DistBackendError(messages.MISMATCH.format(differences))
        return True


class Machine:
    """The ranks of one group, and what they do together: each method begins it and gives requests, the last first."""

    devices = ("cpu",)  # whose arrays it takes as they are

    timeout = None  # seconds; set by its group

    def __init__(self, comm, ranks, name):
        self.MPI = library()
        self.rank, self.size, self.ranks, self.name = comm.rank, comm.size, ranks, name
        self.comm, self.checks, self.notes = comm, comm.Dup(), comm.Dup()
        self.count = 0  # collectives so far
        self.what = ""  # the newest
        self.absent: list = []
        self.broken: list = []
        self.heard: dict = {}  # rank -> what its last note says, and when it came
        self.sent: list = []  # notes, whose memory must stay
        self.compared = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() != "OFF"

    def begin(self, what, text, request):
        """Number a collective, and let the ranks agree that it is the same."""
        self.what, self.count = what, self.count + 1
        return [request, Agreement(self, text, request)] if self.compared else [request]

    # ---- collectives

    def all_reduce(self, x, op):
        kind, function, view = reduction(op, x.dtype)
        text = f"all_reduce({op.name}) of {x.size} elements of {dtypes.of[x.dtype]}"
        request = self.comm.Iallreduce(self.MPI.IN_PLACE, [x.view(view), kind], function)
        return self.begin("all_reduce", text, request)

    def broadcast(self, x, root):
        text = f"broadcast of {x.size} elements of {dtypes.of[x.dtype]} from rank {self.ranks[root]}"
        return self.begin("broadcast", text, self.comm.Ibcast([raw(x), self.MPI.BYTE], root))

    def reduce(self, x, op, root):
        kind, function, view = reduction(op, x.dtype)
        text = f"reduce({op.name}) of {x.size} elements of {dtypes.of[x.dtype]} to rank {self.ranks[root]}"
        here = root == self.rank
        mine = self.MPI.IN_PLACE if here else [x.view(view), kind]
        request = self.comm.Ireduce(mine, [x.view(view), kind] if here else None, function, root)
        return self.begin("reduce", text, request)

    def all_gather(self, out, x):
        text = f"all_gather of {x.size} elements of {dtypes.of[x.dtype]} a rank"
        byte = self.MPI.BYTE
        return self.begin("all_gather", text, self.comm.Iallgather([raw(x), byte], [raw(out), byte]))

    def gather(self, out, x, root):
        text = f"gather of {x.size} elements of {dtypes.of[x.dtype]} a rank to rank {self.ranks[root]}"
        byte = self.MPI.BYTE
        into = [raw(out), byte] if root == self.rank else None
        return self.begin("gather", text, self.comm.Igather([raw(x), byte], into, root))

    def scatter(self, out, x, root):
        text = f"scatter of {out.size} elements of {dtypes.of[out.dtype]} a rank from rank {self.ranks[root]}"
        byte = self.MPI.BYTE
        given = [raw(x), byte] if root == self.rank else None
        return self.begin("scatter", text, self.comm.Iscatter(given, [raw(out), byte], root))

    def reduce_scatter(self, out, x, op):
        kind, function, view = reduction(op, x.dtype)
        text = f"reduce_scatter({op.name}) of {out.size} elements of {dtypes.of[x.dtype]} a rank"
        request = self.comm.Ireduce_scatter_block([x.view(view), kind], [out.view(view), kind], function)
        return self.begin("reduce_scatter", text, request)

    def all_to_all(self, out, out_counts, x, in_counts):
        """``counts``: how many elements go to each rank, and how many come from there, which must fit each other."""
        there, here = np.array(in_counts), np.empty(self.size, np.int64)
        itemsize, byte = x.itemsize, self.MPI.BYTE
        text = f"all_to_all of elements of {dtypes.of[x.dtype]}"
        Work(self.begin("all_to_all", text, self.checks.Ialltoall(there, here)), machine=self).wait()
        wrong = [source for source, n in enumerate(here) if n != out_counts[source]]
        fits = np.array([not wrong], np.uint8)
        Work([self.checks.Iallreduce(self.MPI.IN_PLACE, fits, self.MPI.MIN)], machine=self).wait()
        for source in wrong:
            facts = self.ranks[source], here[source], self.ranks[self.rank], out_counts[source]
            raise DistBackendError(messages.SPLIT_MISMATCH.format(*facts))
        if not fits[0]:
            raise DistBackendError(messages.SPLIT_ELSEWHERE)
        sent = [raw(x), ([n * itemsize for n in in_counts], None), byte]
        came = [raw(out), ([n * itemsize for n in out_counts], None), byte]
        return [self.comm.Ialltoallv(sent, came)]

    def barrier(self, what="barrier"):
        self.what, self.count = what, self.count + 1
        return [Agreement(self, what)]

    # ---- from one rank to another

    def send(self, x, peer, tag):
        self.what = f"send to rank {self.ranks[peer]}"
        return [self.comm.Isend([raw(x), self.MPI.BYTE], peer, tag)]

    def receive(self, x, peer, tag):
        """``peer``: None for any."""
        source = self.MPI.ANY_SOURCE if peer is None else peer
        self.what = "recv from any rank" if peer is None else f"recv from rank {self.ranks[peer]}"
        return [Arrival(self, self.comm.Irecv([raw(x), self.MPI.BYTE], source, tag), x.nbytes)]

    # ---- where ranks wait

    def watch(self, work, waited, limit):
        """Look after a collective that takes long: tell the others that this rank waits, and hear what they tell."""
        self.listen()
        now = time.monotonic()
        gone = [rank for rank, (note, at) in self.heard.items() if note["what"] is None and now - at > SURE]
        if gone and not work.advance():
            several = len(gone) > 1
            facts = self.names(gone), "have" if several else "has", "they" if several else "it"
            raise DistBackendError(messages.ENDED.format(work.what, *facts))
        if not work.told and waited > min(1.0, (limit or 4.0) / 4):
            work.told = True
            self.tell(work.what, work.number)
        if limit is not None and waited > limit:
            time.sleep(min(0.2 * self.rank, 1.0))  # of several that give up, the first ends all: one message is enough
            self.listen()
            where = self.whereabouts(work.what, work.number)
            raise DistBackendError(messages.TIMED_OUT.format(f"{limit:g}", work.what, work.number, self.name, where))

    def tell(self, what, count):
        """Send a note to all other ranks; None: this rank ends."""
        text = json.dumps({"what": what, "count": count})[:LONGEST_NOTE].ljust(LONGEST_NOTE).encode()
        note = np.frombuffer(text, np.uint8)
        self.sent = [(r, n) for r, n in self.sent if not r.Test()]
        for rank in range(self.size):
            if rank != self.rank:
                self.sent.append((self.notes.Isend([note, self.MPI.BYTE], rank, 0), note))

    def listen(self):
        """Take the notes that have come."""
        status, text = self.MPI.Status(), np.empty(LONGEST_NOTE, np.uint8)
        while self.notes.Iprobe(self.MPI.ANY_SOURCE, 0, status):
            self.notes.Recv([text, self.MPI.BYTE], status.Get_source(), 0)
            self.heard[status.Get_source()] = json.loads(text.tobytes()), time.monotonic()

    def whereabouts(self, what, number):
        """Say which ranks have not come to a collective, and where the others are, as far as they have told."""
        elsewhere, waiting, missing = [], [], []
        for rank in range(self.size):
            note = self.heard.get(rank, ({"what": "", "count": -1}, 0))[0]
            if rank == self.rank or (note["what"], note["count"]) == (what, number):
                waiting.append(rank)
            elif note["what"] and note["count"] >= number - note["what"].startswith(("send", "recv")):
                elsewhere.append(f"{self.names([rank])} waits in {note['what']}, call {note['count']}")
            else:
                missing.append(rank)
        self.absent = [self.ranks[rank] for rank in missing]
        said = [f"{self.names(missing)} {'has' if len(missing) == 1 else 'have'} not come to it"] if missing else []
        return "; ".join([*said, *elsewhere, f"{self.names(waiting)} {'waits' if len(waiting) == 1 else 'wait'}"])

    def missing(self, every):
        """The ranks that had not come when this one gave up; those after the first only if ``every``."""
        return self.absent if every else self.absent[:1]

    def names(self, ranks):
        """rank 1; ranks 0, 2."""
        return f"rank{'s' * (len(ranks) > 1)} {', '.join(str(self.ranks[r]) for r in ranks)}"

    def differences(self, text, number):
        """Ask all ranks what they have begun, and describe the differences."""
        mine = np.frombuffer(f"{text} (call {number})".encode()[:LONGEST_NOTE].ljust(LONGEST_NOTE), np.uint8)
        every = np.empty(self.size * LONGEST_NOTE, np.uint8)
        request, end = self.checks.Iallgather(mine, every), time.monotonic() + EXCHANGE
        while not request.Test():
            if time.monotonic() > end:
                return f"Rank {self.ranks[self.rank]} is running collective: {text}, and others another one."
            time.sleep(LONGEST_NAP)
        texts = [bytes(t).decode().strip() for t in every.reshape(self.size, -1)]
        first = next(i for i, t in enumerate(texts) if t.partition(" (call")[0] != texts[0].partition(" (call")[0])
        say = "Rank {} is running collective: {}"
        return f"{say.format(self.ranks[0], texts[0])}, but {say.format(self.ranks[first], texts[first])}."

    def renew(self, request):
        """Switch to a new channel, free of the messages that found no receiver in the old one.  All ranks call it."""
        self.broken.append(request)  # whose memory MPI may still write
        self.comm = self.checks.Dup()

    # ---- groups

    def part(self, ranks, name):
        """Make a group of some ranks; None in a process outside of it.  All ranks of this group call it."""
        color = 0 if self.rank in ranks else self.MPI.UNDEFINED
        comm = self.comm.Split(color, ranks.index(self.rank) if self.rank in ranks else 0)
        return None if comm == self.MPI.COMM_NULL else Machine(comm, [self.ranks[r] for r in ranks], name)

    def end(self):
        """Tell the others that this rank takes no part any more.  What MPI holds is freed when the process ends."""
        self.tell(None, self.count)


class Arrival:
    """The request of a ``recv``; it checks that the whole tensor came, and keeps the rank that sent it."""

    def __init__(self, machine, request, size):
        self.machine, self.request, self.size, self.source = machine, request, size, None

    def Test(self):
        status = self.machine.MPI.Status()
        if not self.request.Test(status):
            return False
        self.source = status.Get_source()
        if status.Get_count(self.machine.MPI.BYTE) != self.size:
            source, n = self.machine.ranks[self.source], status.Get_count(self.machine.MPI.BYTE)
            raise DistBackendError(messages.PARTIAL_MESSAGE.format(source, n, self.size))
        return True


def world(rank=-1, size=-1):
    """All processes that MPI has started, in the order of their ranks.  RuntimeError if they are another number."""
    MPI = library()
    comm = MPI.COMM_WORLD
    if size not in (-1, comm.size):
        error = messages.NOT_STARTED if comm.size == 1 else messages.OTHER_WORLD
        facts = (size, comm.size, size) if comm.size == 1 else (rank, size, comm.rank, comm.size)
        raise RuntimeError(error.format(*facts))
    comm = comm.Split(0, comm.rank if rank == -1 else rank)
    return Machine(comm, list(range(comm.size)), "0")


def abort(code):
    """End all processes that MPI has started."""
    library().COMM_WORLD.Abort(code)
