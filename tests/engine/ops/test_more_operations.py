"""What is special to nansum, logcumsumexp, copysign, kron, cummax, cov, splits, gather, embedding_bag and cdist."""

import numpy as np
import pytest
from against_torch import cases, check_derivatives, compare, compare_errors
from over_tables import over

import engine
from engine.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")

rng = np.random.default_rng(0)
INPUTS = {
    "x": rng.normal(size=(2, 3)),
    "y": rng.normal(size=(2, 3)),
    "v": rng.uniform(0.5, 1.5, 3),
    "s": np.array(1.5),
    "e": np.zeros((0, 3)),
    "w": rng.normal(size=(5, 3)).astype(np.float32),
    "p": rng.uniform(0.5, 1.5, 5).astype(np.float32),
    "i": np.array([1, 2, 3]),
    "k": np.array([0, 1, 2, 4, 1]),
    "o": np.array([0, 2, 2]),
    "b": np.array([True, False]),
}
NAN = {"n": np.array([[1.0, np.nan, 3.0, np.nan, 1.0], [2.0, 2.0, 0.0, -np.inf, 2.0]], np.float32)}

SMOOTH = cases("""
torch.nansum(x)
x.nansum((0, 1), True)
torch.nansum(x, -1, dtype=torch.float32)
s.nansum(0)
e.nansum(0)
torch.logcumsumexp(x, 1)
(x * 20).logcumsumexp(0)
s.logcumsumexp(0)
e.logcumsumexp(0)
torch.copysign(x, y)
x.copysign(v)
torch.copysign(x, -2)
torch.copysign(i, v)
x.copysign(s)
(x * 1).copysign_(y)
(x * 1).copysign_(-1.0)
torch.kron(x, y)
x.kron(v)
torch.kron(s, v)
torch.kron(s, s)
torch.kron(i, v)
torch.kron(e, x)
torch.cummax(x, 1)
x.cummin(0)
s.cummax(-1)
e.cummin(1)
torch.cov(x)
x.cov(correction=0, fweights=i)
v.cov()
torch.corrcoef(x)
v.corrcoef()
torch.split_with_sizes(x, [1, 2], 1)
x.split_with_sizes((1, 1))
torch.gather(x, 1, i[None] - 1)
torch.gather(s, 0, i[0] - 1)
torch.scatter_add(x, 1, i[None] - i[None], y[:1])
""")
BAGS = cases("""
F.embedding_bag(k, w, o)
F.embedding_bag(torch.tensor([1, 1, 2]), w, torch.tensor([0, 2]), padding_idx=1)
F.embedding_bag(k, w, o, mode="sum", padding_idx=1)
F.embedding_bag(k, w, o, mode="max")
F.embedding_bag(k, w, o, mode="max", padding_idx=-4)
F.embedding_bag(k, w, o, mode="mean", padding_idx=4)
F.embedding_bag(k, w, o, mode="sum", per_sample_weights=p)
F.embedding_bag(k[:4].reshape(2, 2), w, mode="sum", per_sample_weights=p[:4].reshape(2, 2))
F.embedding_bag(i[:, None], w)
F.embedding_bag(k.int(), w, o.int(), mode="max")
F.embedding_bag(i, w, i - 1, scale_grad_by_freq=True)
F.embedding_bag(k, w, torch.tensor([0, 2, 5]), include_last_offset=True)
F.embedding_bag(k, w.detach(), o[:1], include_last_offset=True)
F.embedding_bag(k, w.detach(), o[:0])
F.embedding_bag(k[:0], w.detach(), o[:0])
F.embedding_bag(k[:0], w, o * 0, mode="max")
F.embedding_bag(k, w.half(), o)
F.embedding_bag(k, w * 1, o, 0.5)
F.embedding_bag(k, w * 1, o, max_norm=0.5, norm_type=1, mode="sum")
""")
DISTANCES = cases("""
torch.cdist(x, y)
torch.cdist(x, torch.cat([x, y]))
torch.cdist(x, x[:1], p=1)
torch.cdist(x, y, 0)
torch.cdist(x, y, 0.5)
torch.cdist(x, x, 3)
torch.cdist(x, torch.cat([y, x.round()]), float('inf'))
torch.cdist(torch.ones_like(x), torch.zeros_like(x) + s, float('inf'))
torch.cdist(x[:, None, None], torch.stack([x, y, y, x, x]), compute_mode="donot_use_mm_for_euclid_dist")
torch.cdist(x[:, :0], y[:, :0], float('inf'))
torch.cdist(e, y)
""")
EXACT = cases("""
n.nansum()
n.nansum(1)
n.cummax(1)
n.cummin(1)
n.half().cummax(0)
n.logcumsumexp(1)
n.copysign(-0.0)
i.nansum()
i.byte().nansum(0)
b.nansum()
i.nansum(dtype=torch.int32)
i.cummax(0)
b.cummin(0)
i.copysign(-1)
i.to(torch.int8).copysign(i.byte())
b.copysign(-1)
i.kron(i)
b.kron(b)
i.half().kron(i)
i.cov()
i.cov(aweights=torch.tensor([1.0, 2.0, 3.0]))
i.byte().cov(fweights=i)
i.corrcoef()
torch.zeros(2, 0).cov()
torch.zeros(0, 0).cov()
torch.nansum(n, 1, out=torch.zeros(2))
torch.cummax(n, 1, out=(torch.zeros(2, 5), torch.zeros(2, 5, dtype=torch.int64)))
torch.kron(i, i, out=torch.zeros(9))
torch.autograd.grad(n.requires_grad_().nansum(), n)
torch.autograd.grad(n.requires_grad_().cummax(1)[0].nansum(), n)
torch.autograd.grad(n.requires_grad_().copysign(-1).nansum(), n)
""")
ERRORS = cases("""
torch.nansum([1])
x.nansum(5)
x.nansum("a")
x.nansum((0, 0))
x.nansum(0, 3)
x.nansum(dtype=torch.int64)
x.nansum(dtype="a")
x.logcumsumexp(2)
x.logcumsumexp("a")
i.logcumsumexp(0)
b.logcumsumexp(0)
torch.logcumsumexp(x, 0, out=torch.zeros(2, 3))
torch.copysign(2, x)
torch.copysign(x, "a")
x.copysign(torch.zeros(4))
(i * 1).copysign_(2)
torch.kron(1, v)
x.cummax("a")
x.cummax(4)
s.cummin(1)
x.expand(2, 2, 3).cov()
b.cov()
x.cov(correction=1.5)
x.cov(fweights=v)
x.cov(fweights=i[:2])
x.cov(fweights=i[None])
x.cov(fweights=-i)
x.cov(fweights=i * 0)
x.cov(aweights=i)
x.cov(aweights=-v)
torch.cov([1])
x.expand(2, 2, 3).corrcoef()
x.split_with_sizes([1, 3], 1)
x.split_with_sizes([-1, 4], 1)
x.split_with_sizes([1, 1], 5)
x.split_with_sizes([1.0, 1], 1)
x.split_with_sizes(1)
s.split_with_sizes([1])
torch.gather(x, 1, i[None] - 1, sparse_grad=1)
torch.cdist(v, x)
torch.cdist(x, y[:, :2])
torch.cdist(x, y.float())
torch.cdist(i[None], y)
torch.cdist(x, i[None])
torch.cdist(x.half(), y.half())
torch.cdist(x, y, -1)
torch.cdist(x, y, 2, "fast")
torch.cdist(x.expand(2, 2, 3), x.expand(3, 2, 3))
F.embedding_bag(k, w)
F.embedding_bag(k, w, o[None])
F.embedding_bag(k[None], w, o)
F.embedding_bag(k[None, None], w)
F.embedding_bag(k, w[0], o)
F.embedding_bag(k, w.long(), o)
F.embedding_bag(k.float(), w, o)
F.embedding_bag(k, w, o.float())
F.embedding_bag(k, w, o + 1)
F.embedding_bag(k, w, o + torch.tensor([0, 0, 5]))
F.embedding_bag(k - 1, w, o)
F.embedding_bag(k + 1, w, o, mode="max")
F.embedding_bag(k + 1, w * 1, o, max_norm=1.0)
F.embedding_bag(k, w, o[:0], include_last_offset=True)
F.embedding_bag(k[:0].reshape(2, 0), w)
F.embedding_bag(k, w, o, padding_idx=5)
F.embedding_bag(k, w, o, mode="foo")
F.embedding_bag(k, w, o, mode="max", sparse=True)
F.embedding_bag(k, w, o, mode="max", scale_grad_by_freq=True)
F.embedding_bag(k, w, o, mode="sum", per_sample_weights=p[:4])
F.embedding_bag(k, w, o, mode="sum", per_sample_weights=p.double())
F.embedding_bag(k, w, o, per_sample_weights=p)
""")


@over("expression", SMOOTH)
def test_like_pytorch(expression):
    pytest.importorskip("torch")
    compare(expression, INPUTS)


@over("expression", BAGS + DISTANCES)  # PyTorch has no second derivative
def test_once_differentiated_like_pytorch(expression):
    pytest.importorskip("torch")
    compare(expression, INPUTS, second=False)


@over("expression", EXACT)
def test_edges_and_other_types_like_pytorch(expression):
    pytest.importorskip("torch")
    compare(expression, {**INPUTS, **NAN}, fixed=NAN, second=False)


@over("expression", ERRORS)
def test_errors_like_pytorch(expression):
    pytest.importorskip("torch")
    compare_errors(expression, INPUTS)


@over("expression", [e for e in SMOOTH if "copysign(i" not in e and "dtype" not in e] + BAGS[:7] + DISTANCES[:1])
def test_derivatives(expression):
    check_derivatives(expression, {k: v for k, v in INPUTS.items() if v.dtype.kind != "b"})


def test_a_weight_whose_rows_are_too_long_is_cut_in_place():
    weight = engine.nn.EmbeddingBag(4, 3, max_norm=0.5).weight
    version = weight._version
    F.embedding_bag(engine.tensor([[0, 2]]), weight, max_norm=0.5)
    lengths = weight.norm(dim=1)
    assert lengths[0] <= 0.5 and lengths[2] <= 0.5 and weight._version > version


def test_a_sparse_gradient_is_refused_where_one_is_asked_for():
    x, i = engine.ones(2, 2), engine.zeros(2, 2, dtype=engine.int64)
    assert engine.gather(x, 0, i, sparse_grad=True).equal(x)
    with pytest.raises(NotImplementedError, match="leave sparse_grad out"):
        engine.gather(x.requires_grad_(), 0, i, sparse_grad=True)


def test_a_running_logarithm_of_a_sum_has_a_gradient_behind_minus_infinity():
    x = engine.tensor([-np.inf, 1.0, 2.0], requires_grad=True)
    x.logcumsumexp(0).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.0, 1.2689414, 0.7310586])


def test_an_index_beyond_the_rows_and_offsets_that_fall_are_refused():
    """PyTorch says one of several things, by what lies behind the offsets in memory; falling ones may end it."""
    w, k = engine.ones(5, 3), engine.tensor([0, 5, 1])
    with pytest.raises(RuntimeError, match="Index 1 of input takes value 5 which is not in the valid range"):
        F.embedding_bag(k, w, engine.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="Expected i < index_size"):
        F.embedding_bag(k % 5, w, engine.tensor([0, 2, 1]))
