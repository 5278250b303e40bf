"""Indexing: every form of ``x[...]`` and ``x[...] = v``, gather and scatter, masks, order; gradients and errors."""

import numpy as np
import pytest
from against_torch import cases, check_derivatives, compare, compare_errors
from over_tables import over

import engine

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

rng = np.random.default_rng(0)
INPUTS = {
    "x": rng.permutation(24).reshape(2, 3, 4).astype(np.float32),
    "m": rng.permutation(12).reshape(3, 4).astype(np.float32) - 5.25,
    "v": rng.normal(size=4).astype(np.float32),
    "s": np.array(1.5, np.float32),
    "e": np.zeros((0, 3), np.float32),
    "d": rng.normal(size=(3, 4)),
    "i": np.array([2, 0, 1]),
    "j": np.array([0, 0, 2, -1]),
    "k": np.array([[0, 1, 2, 0], [1, 1, 0, 2]]),
    "one": np.array(1),
    "l": rng.integers(-3, 9, (3, 4)),
    "i8": np.array([[1, -2, 3]], np.int8),
    "b": np.array([True, False, True]),
    "w": np.array([[True, False, True, False], [False] * 4, [True] * 4]),
    "u": np.array([1, 0, 1], np.uint8),
    "t": np.array([3.0, 1.0, 3.0, 1.0, 2.0], np.float32),
    "q": np.array([1.0, np.nan, -np.inf, 2.0, np.nan], np.float32),
    "np": np,
}
SMOOTH = {**INPUTS, "t": np.arange(5.0), "q": np.arange(5.0)}  # without ties and nan

READS = cases("""
x[0]
x[-1]
x[0, 1]
x[0, 1, 2]
x[0][1][-1]
v[3]
x[...]
s[...]
s[()]
s[None]
s[True]
x[:]
x[:, :]
x[0:2, :]
x[0:9, :]
x[-2:, 1]
x[1:]
x[:, 1]
x[:, 1:3]
x[..., 0]
x[0, ..., 0]
x[..., ::2]
x[:, ::2, 1:4:2]
x[5:2]
x[5:7]
x[:, -10:2]
x[None]
x[..., None]
x[:, None, 1]
x[None, ..., None, 0]
x[one]
x[one, one]
x[one:, one]
x[np.int64(1)]
x[np.array(1)]
x[True]
x[False]
x[torch.tensor(True)]
x[True, True]
x[0, True]
m[i]
m[[0, 2]]
m[i, i]
m[:, j]
m[0, j]
m[i, 0]
m[i, None]
m[None, i, None]
m[i, :, None]
m[k[:, :3]]
m[k, j]
x[:, i, i]
x[[0, 1], :, [0, 1]]
x[0, :, [0, 1]]
x[[0, 1], None, [0, 1]]
x[[[0], [1]], [[0, 1]]]
x[:, [[0, 1], [2, 2]]]
x[..., j]
x[1, ..., j]
x[torch.tensor([[0], [1]]), i]
x.transpose(0, 2)[j]
m[(0, 1), (1, 0)]
m[[0, 1],]
m[[[0, 1], [1, 0]]]
m[[torch.tensor(0), torch.tensor(1)]]
m[[slice(0, 2), 1]]
m[[None, 0]]
m[range(2)]
m[np.array([0, 1])]
m[np.array([[0, 1], [1, 0]])]
m[np.array([True, False, True])]
m[[True, False, True]]
m[[True, 0, 2]]
m[[]]
m[:, []]
m[torch.zeros(0, dtype=torch.int64)]
m[torch.tensor([0, 1], dtype=torch.int32)]
m[m > 0]
m[m > 100]
m[w]
m[b]
m[b, 1]
m[b, :2]
m[b, None]
m[b, i[:2]]
m[:, w[0]]
m[w[:, 0], w[0]]
x[:, w]
x[0, w]
x[0][b]
x[..., w[2]]
x[torch.tensor([True, False]), ..., 0]
x[x[:, :, 0] > 5, 0]
x[None, x[:, :, 0] > 5]
m[u]
v[v > 0]
s[s > 0]
e[:, 1]
e[:1]
e[[], 0]
m.t()[i]
m.t()[:, i]
m[i][:, i]
l[0]
l[l > 2]
m.unbind()[1][0]
""")

CALLS = cases("""
m.index_select(0, i)
m.index_select(1, j[:3])
torch.index_select(x, dim=-1, index=i)
m.index_select(0, one)
s.index_select(0, i[1:2])
m.index_select(0, torch.tensor([0, 2], dtype=torch.int32))
m.gather(0, k)
m.gather(1, k[:, :2])
m.gather(1, k[:1])
torch.gather(input=v, dim=0, index=i)
v.gather(0, one)
s.gather(0, i - i)
m.gather(0, k[:0])
m.gather(0, k.int())
m.scatter(0, k, 5.)
m.scatter(0, k[:1], torch.ones(1, 4) * v)
torch.scatter(m, 0, k, value=3)
v.scatter(0, i, v[:3])
s.scatter(0, one - 1, 2.)
m.scatter(0, k[:0], 2.)
m.scatter_add(0, k, m[:2])
m.index_add(0, i, d.float())
m.index_add(0, j[:3], m, alpha=2)
torch.index_add(m, 1, index=i, source=m[:, :3], alpha=-1)
l.index_add(0, i, l)
m.index_copy(0, i, m * 2)
m.index_copy(1, i[:2], m[:, :2])
m.index_fill(0, i[:2], 7)
m.index_fill(1, j, 7.5)
m.index_fill(0, i[1:], v[0])
m.index_put((i[:2],), v)
m.index_put([i, i], v[:3])
m.index_put((w,), s)
m.index_put((u,), v)
m.index_put((w,), torch.arange(6., dtype=m.dtype) * s)
m.index_put((j[:2],), m[:2], accumulate=True)
m.index_put((i[:1], j[:2]), s, accumulate=True)
m.masked_fill(m > 0, -1)
m.masked_fill(w, 2.5)
m.masked_fill(w[0], s)
v.masked_fill(w, 1.)
v.masked_fill(w, s * 2)
m.masked_fill(w, one)
l.masked_fill(w, 1.5)
l.masked_fill(w, True)
s.masked_fill(s > 0, 2.)
s.masked_fill(s > 0, v[0])
(s * s).masked_fill(s > 0, 2.)
(s * s).masked_fill(s * 2 < 0, s)
torch.where(s > 0, s * s, s)
torch.where(s > 0, v.sum(), 0.)
(s * s).masked_select(s > 0)
(s * s).take(one - 1)
(s * s).index_add(0, one - 1, s)
(s * s).index_copy(0, one - 1, s)
(s * s).index_fill(0, one - 1, 2.)
(s * s).index_fill(0, one - 1, s)
(s * s).index_select(0, one - 1)
(s * s).gather(0, one - 1)
(s * s).scatter(0, one - 1, s)
(s * s).scatter(0, one - 1, 2.)
(s * s).scatter_add(0, one - 1, s)
(s * s).sort()
(s * s).topk(1)
(s * s)[s > 0]
m.masked_select(w)
m.masked_select(w[2])
v.masked_select(w)
torch.masked_select(m, mask=m > 0)
m.masked_scatter(w, d.float())
m.masked_scatter(w[0], m.t())
m.take(j)
m.take(k)
torch.take(m, torch.tensor([-1, 11]))
m.take_along_dim(k[:1] % 3, 0)
m.take_along_dim(k)
torch.take_along_dim(m, i.unsqueeze(1), dim=1)
torch.where(w, m, 0)
torch.where(w, m, m * 2)
torch.where(w, 1., m)
torch.where(w, m, v)
torch.where(w[0], m, s)
torch.where(w, m, d)
torch.where(w, l, 0.5)
torch.where(w, l, m)
torch.where(w, d, s)
torch.where(w, m, torch.tensor(0., dtype=torch.float64))
torch.where(w, 1, 0)
torch.where(w, 1., 0)
torch.where(w, True, False)
m.where(w, 0)
m.where(m > 0, m * 0.1)
torch.where(m > 0, torch.sqrt(m.abs()), 0.)
torch.where(w)
torch.where(m)
torch.nonzero(w)
torch.nonzero(m, as_tuple=True)
w.nonzero()
torch.nonzero(s)
torch.nonzero(s * 0)
torch.nonzero(s, as_tuple=True)
torch.argwhere(m > 0)
m.sort()
m.sort(0, True)
torch.sort(m, dim=-1, descending=True, stable=True)
m.sort(dim=0, stable=True)
t.sort()
t.sort(descending=True)
q.sort()
q.sort(descending=True)
s.sort()
e.sort(0)
w.sort()
l.sort(1)
u.sort(descending=True)
i8.sort(descending=True)
m.argsort()
m.argsort(0, descending=True)
torch.argsort(t, stable=True)
t.argsort(descending=True)
torch.msort(m)
m.topk(2)
m.topk(2, 0)
m.topk(2, largest=False)
m.topk(3, dim=-1, largest=True, sorted=True)
s.topk(1)
q.topk(4)
q.topk(3, largest=False)
l.topk(1)
m.kthvalue(2)
m.kthvalue(1, 0, True)
torch.unique(t.detach())
torch.unique(t.detach(), return_inverse=True)
t.detach().unique(return_inverse=True, return_counts=True)
torch.unique(k, return_counts=True)
torch.unique(k, return_inverse=True)
torch.unique(k, dim=1)
torch.unique(k % 2, dim=0, return_inverse=True, return_counts=True)
torch.unique(k, True, True)
torch.unique(torch.tensor([nan, nan, 1.]))
torch.unique(w)
""")

BEYOND_PYTORCH = cases("""
m.scatter(1, k[:, 1:3], m * 2)
torch.scatter(m, dim=1, index=k[:, 1:3], src=m * 2)
m.scatter_add(1, k[:, :3], m)
torch.scatter_add(v, 0, i[:2], v)
""")  # PyTorch has no gradient where the source is larger than the index

# what is run on a copy y of m, or Y of x, and leaves the result there
WRITES = cases("""
y[0] = 1
y[0] = v
y[0] = v[:1]
y[0] = v.reshape(1, 1, 4)
y[:, 0] = v[:3]
y[...] = v
y[...] = 5
y[:] = v
y[()] = v
y[None] = v
y[True] = v
y[False] = v
y[torch.tensor(True)] = 2
y[torch.tensor(False)] = 2
y[0, 0] = s
y[0, 0] = v[2:3]
y[1:, 2:] = v[:2]
y[::2] = m[1:]
y[1:] = m[:2] * 2
y[0] = True
y[0] = np.float64(3)
y[0] = d[1]
y[0] = l[1]
y[i[:2]] = v
y[[0, 1]] = 5
y[[0, 1]] = v.reshape(1, 1, 1, 4)
y[i] = m * 2
y[:, [0, 2]] = v[:2]
y[0, [0, 1]] = v[:2]
y[[0, 1], 0] = v[:2]
y[i, i] = s
y[y > 0] = 0.
y[y > 0] = s
y[w] = torch.arange(6., dtype=m.dtype) * s
y[w] = d[0, 0]
y[w[:, 0]] = 0
y[w[:, 0], 1] = v[:2]
y[:, w[0]] = v[:2]
y[w] = -y[w]
y[y > 0] *= 2
y[0] += 1
y[0] += v
y[:, 1] *= 2
y[[0, 1]] += v
y.t()[0] = 3
y.T[1] += v[:3]
y.view(-1)[3:5] = s
y[0][1] = s
y[0][1:][0] = s * 2
y.zero_()
y.fill_(3)
y.fill_(s)
y.copy_(v)
y.copy_(d)
y[0].zero_()
y[0].fill_(s)
y[0].copy_(v)
y.masked_fill_(w, 0.)
y.masked_fill_(w, s)
y.masked_scatter_(w, d.float())
y.index_put_((i,), v)
y.index_put_((i[:1],), v, accumulate=True)
y.index_put_([i, i], s, True)
y.index_fill_(0, i[:1], 1.)
y.index_add_(0, i, m)
y.index_copy_(0, i, m)
y.scatter_(0, k[:1], v.reshape(1, 4))
y.scatter_(1, k[:, :1], 2.)
y.scatter_add_(1, k, m[:2] * 2)
y = y.sum(); y[...] = s
y = y.sum(); y[y > 0] = 2.
y = y.sum(); y[y < 1e9] = s
y = y.sum(); y.masked_fill_(y < 1e9, s)
y = y.sum(); y.view(1, 1)[0] = s
y = y.sum(); y[None] *= 2
y = y[1, 2]; y.mul_(s)
Y[:, w] = s
Y[0, :, [0, 1]] = v[:2].reshape(1, 2)
Y[[0, 1], :, [0, 1]] = v[:3] * 2
Y[..., 0] = v[:3]
Y[1, ..., i] = 0
Y[:, [[0, 1], [2, 2]], 0] = 1
""")

ERRORS = cases("""
m[5]
m[-4]
m[0, 5]
m[0, 0, 0]
s[0]
s[:]
s[0, 0]
v[s]
m[[5]]
m[[0, 1], [5, 0]]
m[:, [7]]
m[0, [7]]
m[[-1, -4]]
m[[0, 1], [0, 1, 2]]
m[w[0]]
m[:, b]
m[w[:2]]
m[w.unsqueeze(2)]
m[1.5]
m[torch.tensor([1.])]
m[torch.tensor(1.5)]
m['a']
m[0, 'a']
m[{}]
m[object()]
m[::-1]
m[::0]
m[:, ::-1]
m[0:1.5]
m[0, ..., 0, 0]
m[torch.tensor([0], dtype=torch.int16)]
m[False, [0, 1]]
m.detach().__setitem__(0, v[:3])
m.detach().__setitem__(0, m[:2])
m.detach().__setitem__(0, [1, 2, 3, 4])
m.detach().__setitem__(0, None)
m.detach().__setitem__(0, 'a')
m.detach().__setitem__(5, 1)
m.detach().__setitem__((0, 0), v[:2])
m.detach().__setitem__(slice(None), v[:3])
m.detach().__setitem__([0, 1], d[0])
m.detach().__setitem__([0, 1], one)
m.detach().__setitem__([0, 1], v[:3])
m.detach().__setitem__([0, 1], torch.ones(2, 1, 2, 4))
m.detach().__setitem__(w, torch.arange(5.))
m.detach().__setitem__(b[:2], 0)
m.detach().__setitem__((slice(None), [0, 5]), 1)
m.detach().__setitem__(slice(None, None, -1), 1)
l.__setitem__(0, float('nan'))
i8.__setitem__(0, 300)
m.index_put((i,), d[0])
m.index_put((i,), 1.)
m.index_put(i, s)
m.index_put((torch.tensor([9]),), s)
m.index_put((i[:1],), v[:3])
m.index_select(0, torch.tensor([5]))
m.index_select(0, torch.tensor([-1]))
m.index_select(0, k)
m.index_select(0, v)
m.index_select(3, i)
m.index_select(0, torch.tensor([0], dtype=torch.int16))
s.index_select(0, i - i)
m.index_select(0, [0])
m.gather(0, i)
m.gather(0, torch.tensor([[5]]))
m.gather(0, torch.tensor([[-1]]))
m.gather(0, torch.tensor([[0, 1, 2, 0, 0]]))
m.gather(0, torch.tensor([[0]], dtype=torch.int16))
m.gather(0, m)
m.gather(2, k)
m.scatter(0, k, m[:1])
m.scatter(0, torch.tensor([[5]]), 5.)
m.scatter(0, k, d)
m.scatter(0, i, 5.)
m.scatter(0, torch.tensor([[0, 0, 0, 0, 0]]), 5.)
m.scatter_add(0, k, 9.)
m.scatter_add(0, k, m[:1])
m.scatter_add(0, torch.tensor([[-1]]), m)
m.scatter_add(0, k, d)
m.index_add(0, i[:2], m)
m.index_add(0, i[:2], m[:2, :3])
m.index_add(0, torch.tensor([0, 5]), m[:2])
m.index_add(0, torch.tensor([0, -1]), m[:2])
m.index_add(0, i, d)
m.index_copy(0, torch.tensor([0, 5]), m[:2])
m.index_copy(0, i[:1], m[:2])
m.index_copy(0, i, d)
m.index_copy(0, i[:2], m[:2, :3])
m.index_fill(0, torch.tensor([0, 5]), 7)
m.index_fill(0, i, v)
m.masked_fill(b[:2], -1)
m.masked_fill(m, -1)
m.masked_fill(w, v)
v.detach().masked_fill_(w, 1.)
l.masked_fill(w, float('-inf'))
m.half().masked_fill(w, -1e9)
m.masked_select(m)
m.masked_select(b[:2])
m.masked_scatter(w, v)
m.take(torch.tensor([12]))
m.take(v)
m.take([0])
torch.where(m, m, m)
torch.where(w, v[:3], m)
torch.where(w[:2], m, m)
torch.where(w, m)
torch.where(w, 'a', m)
torch.where(True, m, m)
m.sort(3)
m.topk(5)
m.topk(-1)
s.topk(2)
w.topk(1)
m.kthvalue(5)
m.take_along_dim(i, 1)
m.detach().fill_(v)
m.detach().copy_(v[:3])
m.detach().copy_(x)
m.detach().copy_([1.])
torch.unique(m).sum().backward()
""")


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("key", [0, ..., slice(2), [0, 1], None])
def test_a_number_that_is_too_large_for_half_precision_is_infinite_when_it_is_assigned(kind, key):
    torch = pytest.importorskip("torch")

    def outcome(library):
        x = library.zeros(3, dtype=getattr(library, kind))
        x[key] = -1e39
        return repr(x)

    assert outcome(engine) == outcome(torch)


@over("expression", READS + CALLS)
def test_as_pytorch(expression):
    pytest.importorskip("torch")
    mine, theirs = compare(expression, INPUTS)
    for a, b in zip(mine, theirs, strict=True):
        if "nonzero" not in expression and "where" not in expression:
            assert (a._base is not None) == (b._base is not None)
            if not a.numel():  # where there is nothing, it may lie anywhere
                continue
            assert [n for n, size in zip(a.stride(), a.shape, strict=True) if size > 1] == [
                n for n, size in zip(b.stride(), b.shape, strict=True) if size > 1
            ]


def after(statement, names):
    """What a statement made of a copy y of m, or Y of x."""
    exec(statement, {"torch": names["torch"]}, names)
    return names["Y" if "Y" in statement else "y"]


def call(statement):
    return (
        f"after({statement!r}, dict(torch=torch, np=np, x=x, m=m, v=v, s=s, d=d, i=i, k=k, l=l, w=w, y=m * 1, Y=x * 1))"
    )


@over("statement", WRITES)
def test_writes_as_pytorch(statement):
    pytest.importorskip("torch")
    mine, theirs = compare(call(statement), {**INPUTS, "after": after})
    assert mine[0]._version == theirs[0]._version


@over("expression", READS + CALLS + BEYOND_PYTORCH)
def test_derivatives_are_those_of_finite_differences(expression):
    if "unique" not in expression:
        check_derivatives(expression.replace("d.float()", "d"), SMOOTH)


@over("statement", WRITES)
def test_derivatives_of_writes_are_those_of_finite_differences(statement):
    check_derivatives(call(statement.replace("d.float()", "d")), {**SMOOTH, "after": after})


@over("expression", ERRORS)
def test_errors_are_pytorchs(expression):
    pytest.importorskip("torch")
    compare_errors(expression, INPUTS)


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_writing_a_number_of_another_type(name):
    t = pytest.importorskip(name)
    x = t.zeros(3, dtype=t.int64)
    x[0] = 1.7
    x[1] = t.tensor(2.9)
    x[2] = True
    assert x.tolist() == [1, 2, 1]
    b = t.zeros(2, dtype=t.bool)
    b[0] = 3
    assert b.tolist() == [True, False]


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_an_element_is_a_view(name):
    t = pytest.importorskip(name)
    x = t.arange(4.0)
    y = x[2]
    y += 10
    assert x.tolist() == [0.0, 1.0, 12.0, 3.0] and y.shape == () and x._version == y._version == 1


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_lookup_with_tensors_is_a_copy(name):
    t = pytest.importorskip(name)
    x = t.arange(4.0)
    y = x[[2]]
    y += 10
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0] and x._version == 0


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_unique_has_a_node_but_no_derivative(name):
    t = pytest.importorskip(name)
    y = t.unique(t.tensor([2.0, 1.0, 2.0], requires_grad=True))
    assert y.grad_fn.name() == "Unique2Backward0"


def test_scatter_with_reduce_adds_or_multiplies():
    x, at = engine.tensor([1.0, 2.0]), engine.tensor([1, 1])
    assert x.scatter(0, at, 3.0, reduce="add").tolist() == [1.0, 8.0]
    assert x.scatter(0, at, engine.tensor([3.0, 4.0]), reduce="multiply").tolist() == [1.0, 24.0]
    with pytest.raises(RuntimeError, match=r"^reduce argument must be either add or multiply\.$"):
        x.scatter(0, at, 3.0, reduce="mean")
    with pytest.raises(RuntimeError, match="derivative for aten::scatter is not implemented"):
        x.requires_grad_().scatter(0, at, 3.0, reduce="add").sum().backward()


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_bfloat16_is_indexed_and_sorted(name):
    t = pytest.importorskip(name)
    x = t.tensor([3.0, 1.0, 2.0], dtype=t.bfloat16, requires_grad=True)
    y = x[[0, 0]].sum() + x.sort().values[0] + x[t.tensor([True, False, True])].sum() + t.where(x > 2, x, 0.0).sum()
    y.backward()
    assert x.grad.dtype is t.bfloat16 and x.grad.tolist() == [4.0, 1.0, 1.0]
