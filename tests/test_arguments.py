"""Wrong arguments of public functions: PyTorch's exception, and its first sentence."""

import pickle

import numpy as np
import pytest
from against_torch import cases, compare_errors

import engine

INPUTS = {"x": np.ones((2, 3), np.float32), "n": np.ones(3)}
# what is no tensor; what is missing, or too much; numbers in the place of tensors
CALLS = """
torch.exp(3.0)
torch.exp([1.0])
torch.exp(None)
torch.exp(np.ones(2))
torch.relu("a")
torch.add(x, "a")
torch.add("a", x)
torch.mul(None, x)
torch.maximum(x, 2)
torch.atan2(2, x)
torch.eq(2, x)
torch.fmod(2, x)
torch.logical_and(x, 2)
torch.rsub(2, x)
torch.isclose(x, 2)
torch.allclose(2, x)
torch.softmax([1.0, 2.0], 0)
torch.flatten(3)
torch.matmul(x, 3)
torch.matmul(3, x)
torch.argsort([3, 1])
torch.clamp_max(2, x)
torch.max(2, x)
torch.float_power(2, 3)
torch.softmax(x)
torch.unsqueeze(x)
torch.gather(x)
torch.softmax(x, 0, foo=1)
torch.exp(x, foo=1)
torch.topk(x, 1, 2, True, True, 5)
torch.cat(x)
torch.cat([x, 3])
torch.sum(3.0)
torch.stack([])
torch.linspace(0, 3, 1.0)
F.relu(3.0)
"""


@pytest.mark.parametrize("call", cases(CALLS))
def test_error_as_pytorch(call):
    pytest.importorskip("torch")
    compare_errors(call, {**INPUTS, "np": np})


def test_numbers_are_added_to_a_tensor():
    assert engine.add(2, 3).item() == 5 and engine.div(1, 2).item() == 0.5


@pytest.mark.parametrize("call", ["softmax(x, 0, out=x)", "sum(x, out=x)", "zeros(2, out=x)", "matmul(x, x, out=x)"])
def test_out_says_what_to_do(call):
    with pytest.raises(NotImplementedError, match="assign the result, or write it into a tensor with copy_"):
        eval("engine." + call, {"engine": engine, "x": engine.ones(2, 2)})


@pytest.mark.parametrize("name", ["exp", "add", "softmax", "stack", "eq", "sum", "clip"])
def test_a_public_function_is_pickled_as_itself(name):
    function = getattr(engine, name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_an_error_of_another_kind_passes_unchanged():
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        engine.matmul(engine.ones(2, 3), engine.ones(2, 3))
