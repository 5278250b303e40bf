"""Process groups and collectives of one process, and what is wrong with a call."""

import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from ranks import ROOT

import engine
import engine.distributed as dist
from engine.collectives.alone import Alone
from engine.collectives.nccl import Machine


@pytest.fixture
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_mpi_is_not_imported_and_a_process_alone_needs_none():
    program = (
        "import sys, engine, engine.distributed as d; assert 'mpi4py' not in sys.modules\n"
        "sys.modules['mpi4py'] = None\n"
        "d.init_process_group('gloo', rank=0, world_size=1); x = engine.ones(2); d.all_reduce(x); d.barrier()\n"
        "m = engine.nn.parallel.DistributedDataParallel(engine.nn.Linear(2, 1)); m(x).sum().backward()\n"
        "assert m.module.weight.grad.tolist() == [[1, 1]]; d.destroy_process_group()\n"
        "try: d.init_process_group('gloo', rank=0, world_size=2)\n"
        "except RuntimeError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", cwd=ROOT)
    assert "pip install 'undertorch[machines]'" in done.stdout, done.stderr


def test_before_it_begins_and_after_it_ended(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert not dist.is_initialized() and dist.group.WORLD is None
    for call in (dist.get_rank, dist.barrier, lambda: dist.all_reduce(engine.ones(1))):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="environment variable WORLD_SIZE expected"):
        dist.init_process_group("gloo", rank=0)
    with pytest.raises(RuntimeError, match="No rendezvous handler for ://"):
        dist.init_process_group("gloo", init_method="nowhere")
    with pytest.raises(TypeError, match="Expected timeout argument to be of type datetime.timedelta, got 3"):
        dist.init_process_group("gloo", timeout=3)
    with pytest.raises(AssertionError, match="Unknown backend type foo"):
        dist.init_process_group("foo", rank=0, world_size=1)
    with pytest.raises(NotImplementedError, match="a store is not needed"):
        dist.init_process_group("gloo", rank=0, world_size=1, store=object())


def test_the_environment_says_who_one_is(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group(timeout=timedelta(seconds=5))
    try:
        assert dist.get_backend() == "undefined" and dist.get_backend_config() == "cpu:gloo,cuda:gloo"
        assert sys.excepthook is not sys.__excepthook__
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


def test_nccl_without_a_gpu_is_an_error():
    if engine.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match="no GPUs found"):
        dist.init_process_group("nccl", rank=0, world_size=1)
    assert not dist.is_initialized()


class Nccl:
    """CuPy's interface of NCCL, which notes its calls."""

    NCCL_FLOAT32, NCCL_INT8, NCCL_SUM, NCCL_MAX = "float32", "int8", "sum", "max"

    def __init__(self):
        self.calls = []

    def get_unique_id(self):
        return tuple(range(128))

    def NcclCommunicator(self, *arguments):
        self.calls.append(("begins", *arguments))
        return self

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments))


def test_nccl_is_called_as_cupy_has_it():
    """Against a stand-in: places, counts, types and streams of each call, and what is not there."""
    nccl, stream = Nccl(), SimpleNamespace(ptr=7)
    event = lambda: SimpleNamespace(record=lambda stream: None, done=True)  # noqa: E731
    machine = Machine(Alone(), (nccl, lambda: stream, event))
    x = SimpleNamespace(size=3, dtype=np.dtype("float32"), data=SimpleNamespace(ptr=100))
    out = SimpleNamespace(size=3, dtype=np.dtype("float32"), data=SimpleNamespace(ptr=200))
    requests = machine.all_reduce(x, dist.ReduceOp.AVG)
    machine.broadcast(x, 0), machine.reduce(x, dist.ReduceOp.MAX, 0), machine.all_gather(out, x)
    machine.reduce_scatter(out, x, dist.ReduceOp.SUM), machine.send(x, 0, 0), machine.receive(x, 0, 0)
    assert all(r.Test() for r in requests)
    assert nccl.calls == [
        ("begins", 1, tuple(range(128)), 0), ("allReduce", 100, 100, 3, "float32", "sum", 7),
        ("broadcast", 100, 100, 3, "float32", 0, 7), ("reduce", 100, 100, 3, "float32", "max", 0, 7),
        ("allGather", 100, 200, 3, "float32", 7), ("reduceScatter", 100, 200, 3, "float32", "sum", 7),
        ("send", 100, 3, "float32", 0, 7), ("recv", 100, 3, "float32", 0, 7),
    ]  # fmt: skip
    for call in (lambda: machine.gather(out, x, 0), lambda: machine.all_reduce(x, dist.ReduceOp.BAND)):
        with pytest.raises(NotImplementedError, match='use a group of the backend "gloo"'):
            call()


def test_older_names_warn(alone):
    for call in (dist.all_gather_into_tensor, dist.reduce_scatter_tensor):
        with pytest.warns(FutureWarning, match=rf"`torch.distributed.{call.__name__}` is deprecated. Please use"):
            call(engine.empty(2), engine.ones(2))
    with pytest.warns(FutureWarning, match="reduce_op"):
        assert dist.reduce_op.SUM is dist.ReduceOp.SUM


def test_operations_of_reductions():
    op = dist.ReduceOp(dist.ReduceOp.MAX)
    assert op == dist.ReduceOp.MAX and isinstance(dist.ReduceOp.SUM, dist.ReduceOp) and isinstance(op, dist.ReduceOp)
    assert repr(dist.ReduceOp.SUM) == "<RedOpType.SUM: 0>"


def test_a_collective_ends_a_capture(alone):
    @engine.compile
    def f(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    assert f(engine.ones(2)).tolist() == [3, 3] and f(engine.ones(2)).tolist() == [3, 3]


def test_a_collective_inside_of_vmap_is_an_error(alone):
    def f(x):
        dist.all_reduce(x)
        return x

    with pytest.raises(RuntimeError, match="a collective cannot be called inside of vmap"):
        engine.vmap(f)(engine.ones(3, 2))
