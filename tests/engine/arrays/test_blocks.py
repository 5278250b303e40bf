"""Large arrays: computed in blocks on several threads, and chosen from by their bits."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import engine
from engine.arrays import threads as blocks
from engine.arrays.kernels import blocks as in_kernels
from engine.arrays.kernels import gelu, softmax
from engine.arrays.selection import either
from engine.arrays.threads import BLOCK, in_blocks, rows_of

F = engine.nn.functional


@pytest.fixture
def threads():
    """``set_num_threads``, undone afterwards."""
    before = engine.get_num_threads()
    yield engine.set_num_threads
    engine.set_num_threads(before)


def large(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


CHAINS = {
    "softmax": lambda x, w: engine.softmax(x, -1),
    "softmax, middle dim": lambda x, w: engine.softmax(x, 1),
    "log_softmax": lambda x, w: engine.log_softmax(x, -1),
    "gelu": lambda x, w: F.gelu(x),
    "silu": lambda x, w: F.silu(x),
    "elu": lambda x, w: F.elu(x, 0.5),
    "layer_norm": lambda x, w: F.layer_norm(x, (96,), w, w),
    "layer_norm without weight": lambda x, w: F.layer_norm(x, (96,)),
    "group_norm": lambda x, w: F.group_norm(x, 2),
}


@pytest.mark.parametrize("name", CHAINS)
def test_results_are_the_same_bits_whatever_the_number_of_threads(name, threads):
    results = []
    for n in (1, 2, 3):
        threads(n)
        x, w = (engine.tensor(a, requires_grad=True) for a in (large(64, 50, 96), large(96)))
        out = CHAINS[name](x, w)
        out.backward(engine.tensor(large(64, 50, 96)[::-1].copy()))
        results.append((out.detach().numpy(), x.grad.numpy()))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_blocks_compute_what_one_call_computes(name, dtype, monkeypatch):
    def run():
        x = engine.tensor(large(64, 50, 96), dtype=getattr(engine, dtype), requires_grad=True)
        w = engine.tensor(large(96), dtype=getattr(engine, dtype))
        out = CHAINS[name](x, w)
        out.backward(engine.tensor(large(64, 50, 96)[::-1].copy()).to(out.dtype))
        return out.detach().float().numpy(), x.grad.float().numpy()

    inside = run()
    for module in (blocks, in_kernels, gelu, softmax):
        monkeypatch.setattr(module, "is_large", lambda *_: False)
    tolerance = {"float32": 2e-6, "float16": 2e-3}[dtype]
    for a, b in zip(inside, run(), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_a_function_of_blocks_sees_rows_and_may_return_several_arrays(threads):
    threads(2)
    x, seen = large(4 * BLOCK // 64, 64), []

    def compute(x, into=None):
        seen.append((x.shape, threading.get_ident()))
        return np.multiply(x, 2, out=into), x.sum(1, keepdims=True)

    doubled, sums = in_blocks(compute, x, row=1)
    np.testing.assert_array_equal(doubled, x * 2)
    np.testing.assert_array_equal(sums, x.sum(1, keepdims=True))
    assert [shape for shape, _ in seen] == [(BLOCK // 64, 64)] * 4


@pytest.mark.parametrize("count, size, rows", [(BLOCK, BLOCK, BLOCK // 2), (3 * BLOCK, 3 * BLOCK, 3 * BLOCK // 4),
                                               (100, 100 * BLOCK, 1), (7, 2 * BLOCK, 4)])  # fmt: skip
def test_blocks_are_alike_and_for_two_threads_as_many(count, size, rows):
    assert rows_of(count, size) == rows


def test_several_threads_take_part(threads):
    threads(2)
    both = threading.Barrier(2, timeout=120)  # passed only if two blocks are computed at the same time

    def compute(x, into=None):
        both.wait()
        return x

    in_blocks(compute, large(BLOCK))


def test_an_error_in_a_block_is_raised(threads):
    threads(2)

    def compute(x, into=None):
        if x[0] == 1:
            raise ValueError("in the last block")
        return x

    x = np.zeros(4 * BLOCK)
    x[3 * BLOCK :] = 1
    with pytest.raises(ValueError, match="in the last block"):
        in_blocks(compute, x)


def test_a_row_that_is_larger_than_a_block_is_computed_at_once():
    x = large(2, 2 * BLOCK)
    np.testing.assert_allclose(engine.softmax(engine.tensor(x), -1).numpy().sum(-1), 1, rtol=1e-5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(threads):
    threads(2)
    x = engine.tensor(large(4 * BLOCK))
    expected = F.gelu(x).numpy()
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(F.gelu(x).numpy(), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "gelu", "silu"])
@pytest.mark.parametrize("shape", [(3, 4), (640, 480)])
def test_results_lie_in_memory_as_pytorchs(name, shape):
    torch = pytest.importorskip("torch")
    x = large(*shape)
    theirs = torch.tensor(x).t()
    theirs = getattr(torch, name)(theirs, -1) if "softmax" in name else getattr(torch.nn.functional, name)(theirs)
    assert CHAINS[name](engine.tensor(x).t(), None).stride() == theirs.stride()


def test_the_number_of_threads_is_what_was_set(threads):
    threads(3)
    assert engine.get_num_threads() == 3


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2"])
def test_a_number_of_threads_that_is_none_is_refused_as_in_pytorch(wrong):
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as theirs:
        torch.set_num_threads(wrong)
    with pytest.raises(RuntimeError) as ours:
        engine.set_num_threads(wrong)
    assert str(ours.value) == str(theirs.value)


def test_the_environment_says_how_many_threads_there_are(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert blocks.available() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert blocks.available() >= 1


def test_threads_of_matrix_products_are_set_too(threads):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    threads(1)
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    assert pools and all(pool["num_threads"] == 1 for pool in pools)


def test_the_pool_is_made_when_it_is_first_needed():
    code = "import sys, engine; engine.softmax(engine.ones(64, 64), 1); sys.exit('concurrent.futures' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


VALUES = {dtype: large(9000).astype(dtype) for dtype in ("float32", "float64", "float16", "int64", "int8")}
VALUES["float32"][:4] = np.inf, -np.inf, np.nan, -0.0


@pytest.mark.parametrize("dtype", VALUES)
def test_either_is_where(dtype):
    a = VALUES[dtype]
    condition, b = np.random.default_rng(1).random(9000) < 0.5, a[::-1].copy()
    zero = a.dtype.type(0)
    for x, y in ((a, b), (a, zero), (zero, b), (a, b[:1]), (a[::-1], b)):
        expected = np.where(condition, x, y)
        found = either.call(condition, x, y)
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def test_either_broadcasts_as_where():
    a, condition = large(3, 100, 200), np.random.default_rng(1).random((100, 200)) < 0.5
    np.testing.assert_array_equal(either.call(condition, a, 0.0), np.where(condition, a, 0.0))
    np.testing.assert_array_equal(either.call(condition, 1.5, a), np.where(condition, 1.5, a))
