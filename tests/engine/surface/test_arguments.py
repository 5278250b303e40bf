"""Wrong arguments of public functions: PyTorch's exception, and its first sentence."""

import pickle
import warnings

import numpy as np
import pytest
from against_torch import cases, compare_errors
from over_tables import over

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
torch.sum(x, 0, 3)
torch.sum(x, (0, "a"))
torch.sum(x, 0, axis=1)
x.mean(0, None)
torch.linalg.vector_norm(x, 2, dim=0.5)
torch.stack([])
torch.linspace(0, 3, 1.0)
F.relu(3.0)
"""


@over("call", cases(CALLS))
def test_error_as_pytorch(call):
    pytest.importorskip("torch")
    compare_errors(call, {**INPUTS, "np": np})


def test_numbers_are_added_to_a_tensor():
    assert engine.add(2, 3).item() == 5 and engine.div(1, 2).item() == 0.5


# functions of nn.functional that are not written in Python in PyTorch
FUNCTIONAL = """
F.linear([1.0], x)
F.linear(x, None)
F.linear(x, x, [1.0])
F.embedding([1], x)
F.embedding(n, None)
F.one_hot([1])
F.cross_entropy([1.0], n)
F.cross_entropy(x, [1])
F.nll_loss(None, n)
F.kl_div(x, [1.0])
F.layer_norm([1.0], (1,))
F.layer_norm(x, (3,), [1.0])
F.batch_norm([1.0], n, n)
F.batch_norm(x, [1.0], n)
F.batch_norm(x, n, n, 3.0)
F.conv2d([1.0], x)
F.conv2d(x[None], None)
F.conv_transpose1d(x, [1.0])
F.max_pool2d(None, 2)
F.avg_pool1d([1.0], 2)
F.unfold([1.0], 2)
F.pad([1.0], (1, 1))
F.gelu(None)
F.relu([1.0])
F.logsigmoid(3.0)
F.prelu(x, 3.0)
F.dropout([1.0])
F.cosine_similarity(x, [1.0])
F.scaled_dot_product_attention(x, x, [1.0])
"""


@over("call", cases(FUNCTIONAL))
def test_functional_names_what_is_no_tensor_as_pytorch(call):
    pytest.importorskip("torch")
    compare_errors(call, INPUTS)


# ---- out=


def tensors(t):
    """What the calls below write into, or read."""
    x = t.tensor([[1.0, 2.0], [3.0, 5.0]])
    empty = t.empty(0), t.empty(0, dtype=t.int64)
    return {"t": t, "x": x, "g": t.ones(2, 2, requires_grad=True), "z": t.zeros(2, 2), "v": t.zeros(3), "e": empty[0],
            "e_int": empty[1], "i": t.zeros(2, 2, dtype=t.int64), "b": t.ones(2, 2, dtype=t.bool)}  # fmt: skip


def outcome(call, t):
    """What a call gives or raises, what it warns of, and what it leaves in the tensors, as text."""
    names = tensors(t)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(eval(call, names))
        except Exception as error:
            result = type(error).__name__, str(error).partition("\n")[0]
    warned = [str(w.message).partition(" (Triggered")[0] for w in caught]
    return result, warned, [repr(names[n]) for n in ("x", "z", "v", "e", "e_int", "i", "b")]


INTO = """
t.exp(x, out=z)
t.exp(x, out=x)
t.exp(x, out=e)
t.exp(x, out=v)
t.exp(x, out=i)
t.exp(i, out=z)
t.exp(x, out=None)
t.exp(x, out=3)
t.exp(g, out=z)
t.exp(x, out=g)
t.add(x, x, out=z)
t.add(x, 2, alpha=3, out=z)
t.div(x, 2, rounding_mode="floor", out=z)
t.eq(x, x, out=b)
t.eq(x, x, out=z)
t.clamp(x, 0, 1, out=z)
t.where(b, x, z, out=z)
t.cat([x, x], out=e)
t.cat([x, g], out=e)
t.stack([x, x], out=e)
t.matmul(x, x, out=z)
t.mm(x, x, out=v)
t.sum(x, 0, out=v)
t.mean(x, 1, out=e)
t.cumsum(x, 0, out=z)
t.argmax(x, 0, out=e_int)
t.max(x, 0, out=(e, e_int))
t.sort(x, out=(z, i))
t.softmax(x, 0, out=z)
t.gather(x, 0, i, out=z)
t.zeros(2, 3, out=e)
t.arange(4, out=e_int)
t.relu(x, out=z)
t.isnan(x, out=b)
t.max(x, z, out=e)
t.min(x, z, out=e)
t.exp(x, out=v[:1].expand(2, 2))
t.gt(g, 0, out=b)
t.argmax(g, 0, out=e_int)
t.max(g, z, out=e)
"""


@over("call", cases(INTO))
def test_out_as_pytorch(call):
    torch = pytest.importorskip("torch")
    assert outcome(call, engine) == outcome(call, torch)


def test_out_is_what_is_returned():
    x, z = engine.tensor([1.0, 4.0]), engine.zeros(2)
    memory = z.array
    assert engine.sqrt(x, out=z) is z and z.array is memory and z.tolist() == [1.0, 2.0]


def test_out_may_require_grad_where_nothing_is_recorded():
    w = engine.ones(2, requires_grad=True)
    with engine.no_grad():
        engine.mul(w, 3.0, out=w)
    assert w.requires_grad and w.is_leaf and w.tolist() == [3.0, 3.0]


def test_out_counts_as_a_write():
    w, x = engine.ones(2, requires_grad=True), engine.ones(2)
    y = (w * x).sum()
    engine.exp(engine.zeros(2), out=x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_out_of_a_view_is_written_and_not_resized():
    x = engine.zeros(2, 2)
    engine.exp(engine.zeros(2), out=x[0])
    assert x.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    with pytest.raises(NotImplementedError, match=r"of shape \[3\]"):
        engine.exp(engine.zeros(3), out=x[0])


@pytest.mark.parametrize("name", ["exp", "add", "softmax", "stack", "eq", "sum", "clip"])
def test_a_public_function_is_pickled_as_itself(name):
    function = getattr(engine, name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_an_error_of_another_kind_passes_unchanged():
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        engine.matmul(engine.ones(2, 3), engine.ones(2, 3))


# ---- the constructor

CONSTRUCTED = """
t.Tensor()
t.Tensor(2, 3).shape
t.Tensor(0)
t.Tensor(t.Size([2, 3])).shape
t.Tensor([1, 2])
t.Tensor((2, 3))
t.Tensor([])
t.Tensor([[1, 2], [3, 4]]) @ t.Tensor([1, 1])
t.Tensor([True])
t.Tensor(range(3))
t.Tensor([t.tensor(1.0), 2])
t.Tensor([1.0], device="cpu")
t.Tensor([1.0]).requires_grad_().is_leaf
t.Tensor(2.5)
t.Tensor(None)
t.Tensor(True)
t.Tensor("ab")
t.Tensor({1: 2})
t.Tensor(-1)
t.Tensor(2, 2.5)
t.Tensor([1], [2])
t.Tensor([[1], [2, 3]])
"""


@over("call", cases(CONSTRUCTED))
def test_constructor_as_pytorch(call):
    torch = pytest.importorskip("torch")
    assert outcome(call, engine) == outcome(call, torch)


def test_constructor_takes_the_default_dtype():
    engine.set_default_dtype(engine.float64)
    try:
        assert engine.Tensor([1]).dtype == engine.Tensor(2).dtype == engine.float64
    finally:
        engine.set_default_dtype(engine.float32)


def test_constructor_makes_no_alias_of_a_tensor():
    with pytest.raises(NotImplementedError, match="detach"):
        engine.Tensor(engine.ones(2))


def test_a_dtype_that_is_not_implemented_is_what_is_told():
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        engine.nn.functional.threshold(engine.tensor([1, 5]), 2, 9)
