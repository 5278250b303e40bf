"""A group of GPUs: NCCL by CuPy carries their arrays; MPI brings the processes together, and compares their calls.

Written without several GPUs at hand: its calls are checked against a stand-in for CuPy's interface.
"""

from functools import cache

import numpy as np

from ..arrays import dtypes
from . import messages
from .work import Work

TYPES = {
    "float64": "NCCL_FLOAT64", "float32": "NCCL_FLOAT32", "float16": "NCCL_FLOAT16", "bfloat16": "NCCL_BFLOAT16",
    "int64": "NCCL_INT64", "int32": "NCCL_INT32", "int8": "NCCL_INT8", "uint8": "NCCL_UINT8", "bool": "NCCL_UINT8",
}  # fmt: skip
OPS = {"SUM": "NCCL_SUM", "AVG": "NCCL_SUM", "PRODUCT": "NCCL_PROD", "MIN": "NCCL_MIN", "MAX": "NCCL_MAX"}


@cache
def library():
    """CuPy's NCCL, the stream of this thread, and a new event."""
    import cupy  # noqa: PLC0415  only where there is a GPU

    return cupy.cuda.nccl, cupy.cuda.get_current_stream, lambda: cupy.cuda.Event(disable_timing=True)


class Recorded:
    """Complete when the GPU has come to it."""

    def __init__(self, event, stream):
        self.event = event
        event.record(stream)

    def Test(self):
        return self.event.done


class Machine:
    """The interface of ``mpi.Machine`` for arrays in the memory of GPUs; ``host``: the machine of the same ranks."""

    devices = ("cuda",)

    def __init__(self, host, parts=None):
        self.host, self.rank, self.size = host, host.rank, host.size
        self.nccl, self.stream, self.event = library() if parts is None else parts
        numbers = np.zeros(128, np.int8)
        if self.rank == 0:
            numbers[:] = self.nccl.get_unique_id()
        Work(host.broadcast(numbers, 0), host).wait()
        self.comm = self.nccl.NcclCommunicator(self.size, tuple(numbers.tolist()), self.rank)

    @property
    def what(self):
        return self.host.what

    @property
    def count(self):
        return self.host.count

    @property
    def timeout(self):
        return self.host.timeout

    @timeout.setter
    def timeout(self, seconds):
        self.host.timeout = seconds

    def begin(self, text, function, *arguments):
        """Let the ranks agree, and put a call into the stream."""
        agreed, stream = self.host.barrier(text), self.stream()
        function(*arguments, stream.ptr)
        return [Recorded(self.event(), stream), *agreed]

    def kind(self, x):
        name = dtypes.of[x.dtype].name
        if name not in TYPES:
            raise NotImplementedError(messages.NCCL_UNSUPPORTED.format(f"a collective of {name}"))
        return getattr(self.nccl, TYPES[name])

    def op(self, op):
        if op.name not in OPS:
            raise NotImplementedError(messages.NCCL_UNSUPPORTED.format(f"ReduceOp.{op.name}"))
        return getattr(self.nccl, OPS[op.name])

    def all_reduce(self, x, op):
        text, place = f"all_reduce({op.name}) of {x.size} elements of {x.dtype}", x.data.ptr
        return self.begin(text, self.comm.allReduce, place, place, x.size, self.kind(x), self.op(op))

    def broadcast(self, x, root):
        text, place = f"broadcast of {x.size} elements of {x.dtype} from {root}", x.data.ptr
        return self.begin(text, self.comm.broadcast, place, place, x.size, self.kind(x), root)

    def reduce(self, x, op, root):
        text, place = f"reduce({op.name}) of {x.size} elements of {x.dtype} to {root}", x.data.ptr
        return self.begin(text, self.comm.reduce, place, place, x.size, self.kind(x), self.op(op), root)

    def all_gather(self, out, x):
        text = f"all_gather of {x.size} elements of {x.dtype}"
        return self.begin(text, self.comm.allGather, x.data.ptr, out.data.ptr, x.size, self.kind(x))

    def reduce_scatter(self, out, x, op):
        text, places = f"reduce_scatter({op.name}) of {out.size} elements of {x.dtype}", (x.data.ptr, out.data.ptr)
        return self.begin(text, self.comm.reduceScatter, *places, out.size, self.kind(x), self.op(op))

    def send(self, x, peer, tag):
        stream = self.stream()
        self.comm.send(x.data.ptr, x.size, self.kind(x), peer, stream.ptr)
        return [Recorded(self.event(), stream)]

    def receive(self, x, peer, tag):
        if peer is None:
            raise NotImplementedError(messages.NCCL_UNSUPPORTED.format("recv from any rank"))
        stream = self.stream()
        self.comm.recv(x.data.ptr, x.size, self.kind(x), peer, stream.ptr)
        return [Recorded(self.event(), stream)]

    def barrier(self, what="barrier"):
        return self.host.barrier(what)

    def gather(self, out, x, root):
        raise NotImplementedError(messages.NCCL_UNSUPPORTED.format("gather"))

    def scatter(self, out, x, root):
        raise NotImplementedError(messages.NCCL_UNSUPPORTED.format("scatter"))

    def all_to_all(self, out, out_counts, x, in_counts):
        raise NotImplementedError(messages.NCCL_UNSUPPORTED.format("all_to_all"))

    def missing(self, every):
        return self.host.missing(every)

    def watch(self, work, waited, limit):
        self.host.watch(work, waited, limit)

    def part(self, ranks, name):
        host = self.host.part(ranks, name)
        return None if host is None else Machine(host, (self.nccl, self.stream, self.event))

    def end(self):
        self.host.end()
