"""Process groups and collectives: of two and four ranks, of one, and beside PyTorch's gloo."""

import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from ranks import ROOT, checks_of, given

import engine
import engine.distributed as dist
from engine.collectives.alone import Alone
from engine.collectives.nccl import Machine

PROGRAM = "collectives.py"


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_a_check_holds_on_every_rank(check, ranks):
    given(PROGRAM, ranks, check)


@pytest.mark.parametrize("check", checks_of(PROGRAM, "torch"))
def test_pytorch_says_and_gives_the_same(check):
    mine, theirs = given(PROGRAM, 2, check), given(PROGRAM, 2, check, library="torch")
    if check == "errors_before_anything_is_sent":
        for number, (ours, its) in enumerate(zip(mine[0], theirs[0], strict=True)):
            assert ours == its, f"call {number}"
    assert mine == theirs


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_calls_that_do_not_fit_are_told_alike_on_all_ranks(ranks):
    found = given(PROGRAM, ranks, "other_shapes_on_other_ranks_are_told_to_all")
    told = found[0]
    assert all(f[:7] == told[:7] for f in found)
    assert all(
        kind == "DistBackendError" and "Detected mismatch between collectives" in words for kind, words in told[:7]
    )
    assert "Rank 0 is running collective: all_reduce(SUM) of 3 elements" in told[0][1]
    assert "but Rank 1 is running collective: all_reduce(SUM) of 4 elements" in told[0][1]
    assert "barrier" in told[6][1]
    assert ["DistBackendError", "all_to_all: rank 0 sends 2 elements to rank 0, which has a place for 1"] == told[7]


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_what_is_found_about_groups_and_devices(ranks):
    n = ranks
    for rank in range(n):
        got = {check: given(PROGRAM, n, check)[rank] for check in checks_of(PROGRAM)}
        assert got["tensors_that_require_grad_are_overwritten"] == [n, n]
        assert got["messages_with_tags_in_another_order"] == [[1, 1], [2, 2]]
        assert got["several_collectives_under_way"] == [sum(r + k for r in range(n)) for k in range(6)] + [True] * 6
        assert got["what_a_work_gives"] == [[n, n], [2 * n]]
        assert got["groups_of_neighbours"] == [n // 2, 2, rank % (n // 2)]
        assert got["a_group_in_another_order_of_ranks"] == [n - 1 - rank, list(range(n))[::-1]]
        assert got["objects_that_would_need_a_pickle_are_refused"] == "TypeError"
        assert got["a_write_into_a_saved_tensor_is_noticed"] == "RuntimeError"
        assert got["tensors_on_a_device_go_through_host_memory"] == [[sum(range(n))] * 3] * 2
        assert got["a_large_tensor"] == [n * (n + 1) / 2] * 2
        assert got["objects"][1:3] == [[1, "two", [3.5, None]], [f"for {rank}" * rank]]
        assert len(got["who_is_not_in_a_group_is_told"]) == (rank > 0)


# ---- one process alone


@pytest.fixture
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_import_engine_does_not_start_mpi():
    program = "import sys, engine, engine.nn, engine.distributed; assert 'mpi4py' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_a_group_of_one_needs_no_mpi():
    program = (
        "import sys; sys.modules['mpi4py'] = None; import engine, engine.distributed as d\n"
        "d.init_process_group('gloo', rank=0, world_size=1); x = engine.ones(2); d.all_reduce(x); d.barrier()\n"
        "m = engine.nn.parallel.DistributedDataParallel(engine.nn.Linear(2, 1)); m(x).sum().backward()\n"
        "assert m.module.weight.grad.tolist() == [[1, 1]]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_without_mpi_several_processes_are_an_error_that_says_what_to_do():
    program = (
        "import sys; sys.modules['mpi4py'] = None; import engine.distributed as d\n"
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
