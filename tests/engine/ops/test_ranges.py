"""arange and linspace, to the last bit as PyTorch's kernels give them."""

from itertools import product

import pytest

import engine

ENDS = list(product([-2, 0.1, 3, -7.5, 1e3], [2, -3, 10, 0.7, 1e4], [1, 2, 3, 8, 17, 41, 100, 1000]))
STEPS = list(product([-2, 0.1, 3, -7.5], [0.1, 0.01, 1 / 3, 0.7, 2.5], [1, 7, 8, 17, 100, 1000]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_linspace_rounds_as_pytorch(dtype):
    torch = pytest.importorskip("torch")
    for start, end, steps in ENDS:
        ours = engine.linspace(start, end, steps, dtype=getattr(engine, dtype)).double().tolist()
        assert ours == torch.linspace(start, end, steps, dtype=getattr(torch, dtype)).double().tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arange_rounds_as_pytorch(dtype):
    torch = pytest.importorskip("torch")
    for start, step, n in STEPS:
        ours = engine.arange(start, start + step * n, step, dtype=getattr(engine, dtype)).tolist()
        assert ours == torch.arange(start, start + step * n, step, dtype=getattr(torch, dtype)).tolist()


def test_the_ends_and_the_middle_are_exact():
    x = engine.linspace(-2, 2, 41)
    assert (x[0].item(), x[-1].item(), len(x)) == (-2.0, 2.0, 41)
    assert abs(x[20].item()) < 1e-7
    assert engine.arange(0.0, 1.0, 0.25).tolist() == [0.0, 0.25, 0.5, 0.75]
