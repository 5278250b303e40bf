"""Shapes: which results share memory and under which strides, joins and copies, their gradients and their errors."""

import numpy as np
import pytest
from against_torch import cases, check_derivatives, compare, compare_errors, outputs, run
from over_tables import over

import engine

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

rng = np.random.default_rng(0)
INPUTS = {
    "x": rng.normal(size=(2, 3, 4)).astype(np.float32),
    "m": rng.normal(size=(3, 4)).astype(np.float32),
    "v": rng.normal(size=4).astype(np.float32),
    "s": np.array(1.5, np.float32),
    "one": rng.normal(size=(1, 3, 1)).astype(np.float32),
    "e": np.zeros((0, 3), np.float32),
    "n": np.zeros(0, np.float32),
    "d": rng.normal(size=(3, 4)),
    "i": np.array([2, 0, 1]),
}

VIEWS = cases("""
x.reshape(6, 4)
x.reshape((6, -1))
x.reshape(shape=(4, 6))
torch.reshape(x, [24])
x.reshape(2, 3, 4)
x.transpose(1, 2).reshape(2, 12)
x.transpose(0, 1).reshape(3, 2, 2, 2)
x[:, :, ::2].reshape(2, 6)
x[:, :, ::2].reshape(6, 2)
x[:, 0].reshape(2, 1, 4)
s.reshape(1, 1)
s.reshape(-1)
s.reshape(())
one.reshape(3)
one.reshape(())  if one.numel() == 1 else one.reshape(3, 1)
e.reshape(3, 0)
e.reshape(-1, 3)
n.reshape(0, 5)
x.reshape_as(x[0:1].expand(2, 3, 4))
x.view(-1)
x.view(2, -1, 2)
x.view(size=(4, 6))
m.t().view(4, 3, 1)
x[:, 1:2].view(2, 4)
x.view_as(x.reshape(6, 4))
x.flatten()
x.flatten(1)
x.flatten(start_dim=0, end_dim=-2)
torch.flatten(m.t())
v.flatten()
s.flatten()
x.ravel()
m.t().ravel()
v.ravel()
s.ravel()
x.unflatten(2, (2, 2))
x.unflatten(-1, (2, -1))
one.squeeze()
one.squeeze(0)
one.squeeze(1)
one.squeeze(-1)
one.squeeze((0, 2))
torch.squeeze(one, dim=(0, 1))
s.squeeze()
s.squeeze(0)
x.unsqueeze(0)
x.unsqueeze(-1)
x.unsqueeze(dim=2)
m.t().unsqueeze(0)
m.t().unsqueeze(1)
m.t().unsqueeze(2)
m[:, ::2].unsqueeze(1)
v.unsqueeze(1).t()
s.unsqueeze(0)
x.transpose(0, 2)
x.transpose(-1, -2)
torch.transpose(m, dim0=0, dim1=1)
x.transpose(1, 1)
s.transpose(0, -1)
m.swapaxes(0, 1)
m.swapdims(0, 1)
x.permute(2, 0, 1)
x.permute((1, 0, 2))
x.permute(dims=(-1, 0, 1))
torch.permute(m, (1, 0))
s.permute(())
m.t()
v.t()
s.t()
m.T
x.T
v.T
x.mT
x.mH
m.H
x.adjoint()
x.movedim(0, 2)
x.movedim((0, 1), (2, 0))
x.movedim(source=-1, destination=0)
torch.moveaxis(x, (0, 1), (1, 2))
s.movedim(0, 0)
m.expand(2, 3, 4)
m.expand(3, 4)
one.expand(2, 3, 4)
one.expand(-1, -1, 4)
one.expand(size=(5, 1, 3, 1))
s.expand(2, 2)
s.expand(())
one.expand(1, 3, 1)
one.expand(0, 3, 1)
m.expand_as(x)
torch.broadcast_to(v, (3, 4))
v.broadcast_to(3, 4)
torch.broadcast_tensors(m, v)
torch.broadcast_tensors(one, x, s)
x.select(1, 2)
x.select(-1, -1)
torch.select(m, dim=0, index=1)
v.select(0, 3)
x.narrow(1, 1, 2)
x.narrow(-1, -2, 1)
x.narrow(dim=0, start=0, length=0)
x.narrow(0, torch.tensor(1), 1)
x.unbind()
x.unbind(1)
torch.unbind(v)
x[:, 0].unbind(dim=-1)
x.split(2)
x.split(2, 1)
x.split([1, 2], dim=1)
torch.split(x, 3, -1)
x.split((1, 0, 2), 1)
e.split(0)
x.chunk(2, 1)
x.chunk(3, -1)
x.chunk(5)
e.chunk(3)
torch.chunk(v, chunks=2)
torch.tensor_split(m, 2)
torch.tensor_split(v, 3)
m.tensor_split((1, 2), dim=1)
m.tensor_split((2, 7), dim=1)
m.diagonal()
m.diagonal(1)
m.diagonal(-2)
m.diagonal(5)
x.diagonal(0, 1, 2)
x.diagonal(offset=1, dim1=0, dim2=-1)
m.t().diagonal(1)
v.unfold(0, 2, 1)
m.unfold(1, 3, 1)
x.unfold(1, 2, 1)
m.unfold(0, 2, 2)
m.t().unfold(0, 2, 1)
m.as_strided((2, 2), (1, 2))
m.as_strided((3, 3), (1, 1), 2)
m[1:].as_strided((2,), (1,))
v.contiguous()
m.t().contiguous()
m[:, ::2].contiguous()
m.expand(2, 3, 4).contiguous()
torch.atleast_1d(s)
torch.atleast_1d(s, v)
torch.atleast_2d(s)
torch.atleast_2d(v)
torch.atleast_2d([s, v])
torch.atleast_3d(v)
torch.atleast_3d(m)
torch.atleast_3d(s)
""")

COPIES = cases("""
m.clone()
m.t().clone()
m[:, ::2].clone()
m.t()[:, ::2].clone()
x.permute(2, 0, 1).clone()
v.expand(3, 4).clone()
s.clone()
torch.cat([m, m])
torch.cat((m, m), 1)
torch.cat([m, m, m[:1]], dim=0)
torch.cat([m, m], axis=-1)
torch.cat([v])
torch.cat([m, d])
torch.cat([m, i.unsqueeze(1)], 1)
torch.cat([m, n])
torch.cat([n, m], 0)
torch.cat([n, n])
torch.cat([e, e])
torch.cat([m.t(), m.t()])
torch.concat([m, m])
torch.concatenate([m, m], 1)
torch.stack([m, m])
torch.stack((m, 2 * m), 1)
torch.stack([m, m], dim=-1)
torch.stack([s, s])
torch.stack([s, 2 * s.double()])
torch.stack([m, d])
torch.stack([v[0], v[1], v[0]])
torch.hstack([m, m])
torch.hstack([v, v])
torch.hstack([s, v])
torch.vstack([m, v])
torch.vstack([v, v])
torch.row_stack([v, v])
torch.dstack([m, m])
torch.dstack([v, v])
torch.column_stack([v[:3], m])
m.repeat(2, 1)
m.repeat(2, 2, 2)
m.repeat((1, 1))
m.repeat(repeats=(1, 2))
m.repeat(0, 2)
s.repeat(3)
s.repeat(())
m.tile(2)
m.tile((2, 1, 2))
torch.tile(v, dims=(2, 2))
(s * s).repeat(2, 2)
(s * s).expand(2, 3)
(s * s).repeat_interleave(3)
(s * s).flip(())
(s * s).roll(1)
(s * s).unsqueeze(0).unfold(0, 1, 1)
torch.stack([s * s, s])
torch.atleast_2d(s * s)
(s * s).t()
m.repeat_interleave(2)
m.repeat_interleave(2, 0)
m.repeat_interleave(2, dim=1)
m.t().repeat_interleave(2, 1)
m.repeat_interleave(i, 0)
m.repeat_interleave(i[:1], dim=1)
m.repeat_interleave(i, dim=0, output_size=3)
torch.repeat_interleave(i)
torch.repeat_interleave(v, 3)
m.flip(0)
m.flip(0, 1)
m.flip((-1,))
m.flip(dims=(1,))
m.flip(())
torch.flip(x, [0, 2])
m.t().flip(0)
m.t()[::2].flip(1)
m[:, ::2].flip(1)
v.expand(3, 4).flip(0)
m.fliplr()
m.flipud()
m.roll(1)
m.roll(-1, 0)
m.roll((1, 2), (0, 1))
torch.roll(x, shifts=1, dims=2)
m.t().roll(1, 0)
m.t().roll(1)
m[:, ::2].roll(1, 1)
m.roll(1, ())
m.rot90()
m.rot90(2)
x.rot90(-1, (1, 2))
torch.rot90(m, k=1, dims=[1, 0])
torch.diag(v)
torch.diag(v, 1)
torch.diag(m)
m.diag(-1)
m.diag(7)
torch.diag_embed(m)
m.diag_embed(1, 0, 2)
v.diag_embed(offset=-1)
""")

ERRORS = cases("""
x.reshape(5)
x.reshape(-1, -1)
x.reshape(-1, 5)
x.reshape(-2, 12)
n.reshape(-1, 0)
x.view(5)
m.t().view(12)
x.permute(0)
m.permute(0, 0)
m.permute(0, 2)
v.mT
x.t()
m.transpose(0, 2)
m.movedim(0, 5)
m.movedim((0, 1), (0, 0))
m.movedim((0, 1), (0,))
m.movedim((0, 0), (0, 1))
m.expand(3, 5)
m.expand(4)
m.expand(-1, 2, 3, 4)
m.expand_as(v)
m.repeat(2)
m.squeeze(2)
m.squeeze((0, 0))
m.unsqueeze(3)
m.unsqueeze(-4)
x.flatten(1, 0)
m.flatten(0, 2)
m.unflatten(1, (3, 2))
m.unflatten(1, (3, -1))
m.unflatten(5, (3, -1))
m.select(0, 3)
m.select(2, 0)
s.select(0, 0)
m.select(0, -4)
m.narrow(0, 1, 3)
m.narrow(0, 4, 1)
m.narrow(0, 0, -1)
s.narrow(0, 0, 1)
m.split(0)
m.split(-1)
m.split([1, 1])
m.split([1, -1, 3])
s.split(1)
m.split(2, 5)
m.chunk(0)
s.chunk(2)
s.unbind()
m.unbind(3)
m.flip(2)
m.flip((0, 0))
m.roll((1, 2))
m.roll((1, 2), (0,))
m.roll(1, 2)
torch.diag(s)
torch.diag(x)
m.diagonal(0, 0, 0)
v.diagonal()
torch.cat([])
torch.cat(m)
torch.cat([m, v])
torch.cat([m, m[:, :3]])
torch.cat([s, s])
torch.cat([m, 1])
torch.cat([m, m], 2)
torch.stack([])
torch.stack([m, v])
torch.stack([m, m], 3)
torch.stack(m)
torch.hstack([m, v])
torch.hstack(m)
torch.broadcast_tensors(m, v[:3])
torch.broadcast_to(m, (2, 3))
torch.broadcast_shapes((3, 2), (4,))
m.repeat_interleave(i[:2], 0)
m.repeat_interleave(i - 1, 0)
m.repeat_interleave(-1, 0)
m.repeat_interleave(v[:3], 0)
m.stride(3)
s.stride(0)
m[:, :3].view(torch.float64)
m.unfold(0, 4, 1)
m.unfold(1, 2, 0)
m.as_strided((2,), (20,))
m.as_strided((2,), (-1,))
m.rot90(1, (0, 0))
len(s)
list(s)
v.fliplr()
""")


@over("expression", VIEWS + COPIES)
def test_as_pytorch(expression):
    torch = pytest.importorskip("torch")
    mine, theirs = compare(expression, INPUTS)
    for a, b in zip(mine, theirs, strict=True):
        assert a.is_contiguous() == b.is_contiguous()
        if a.numel():  # where there is nothing, it may lie anywhere
            assert tuple(a.stride()) == tuple(b.stride())
            assert a.storage_offset() == b.storage_offset()
    assert isinstance(theirs[0], torch.Tensor)


@over("expression", VIEWS + COPIES)
def test_shares_memory_where_pytorch_does(expression):
    pytest.importorskip("torch")
    shared = {}
    for name in ("engine", "torch"):
        result, inputs = run(name, expression, INPUTS)
        owners = {t.untyped_storage().data_ptr() for t in inputs.values() if t.numel()}
        shared[name] = [(r.untyped_storage().data_ptr() in owners, r._base is not None) for r in outputs(result)]
    assert shared["engine"] == shared["torch"]


@over("expression", VIEWS + COPIES)
def test_derivatives_are_those_of_finite_differences(expression):
    if "float64" not in expression:
        check_derivatives(expression, INPUTS)


@over("expression", ERRORS)
def test_errors_are_pytorchs(expression):
    pytest.importorskip("torch")
    compare_errors(expression, INPUTS)


@pytest.mark.parametrize(
    "expression", ["x.reshape(2., 12)", "x.permute(0., 1, 2)", "x.expand(2., 3, 4)", "x.view('a')"]
)
def test_sizes_and_dims_must_be_ints(expression):
    with pytest.raises(TypeError):
        run("engine", expression, INPUTS)


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_no_result_is_a_new_tensor_where_nothing_changes(name):
    t = pytest.importorskip(name)
    x = t.zeros(3, 4)
    assert x.contiguous() is x
    row = x[0]
    assert row.flatten() is row and row.contiguous() is row and row.ravel() is not row
    a, b = t.broadcast_tensors(x, t.zeros(4))
    assert a is x and b.shape == x.shape


@pytest.mark.parametrize("name", ["engine", "torch"])
@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8", "float64"])
def test_view_as_another_dtype_reads_the_same_memory(name, dtype):
    t = pytest.importorskip(name)
    x = t.arange(8.0).reshape(2, 4)
    y = x.view(getattr(t, dtype))
    assert y.dtype is getattr(t, dtype) and y.data_ptr() == x.data_ptr()
    y.zero_()
    assert not x.any() and x._version == 1
    assert y.shape == (2, 16 // y.element_size())


@pytest.mark.parametrize("change", ["t_()", "unsqueeze_(0)", "squeeze_()", "transpose_(0, 1)", "swapaxes_(0, 1)",
                                    "swapdims_(0, 1)",
                                    "squeeze_(0)", "squeeze_((0, 1))"])  # fmt: skip
def test_shape_in_place(change):
    torch = pytest.importorskip("torch")
    found = []
    for t in (engine, torch):
        x = t.arange(4.0).reshape(1, 4).clone().requires_grad_()
        y = x * 2
        z = eval(f"y.{change}", {}, {"y": y})
        assert z is y
        (y * y).sum().backward()
        found.append((tuple(y.shape), y.stride(), y._version, y.grad_fn.name(), x.grad.tolist()))
    assert found[0] == found[1]


def test_shape_in_place_of_a_base_with_views_says_what_to_do():
    x = engine.zeros(2, 3)
    row = x[0]
    with pytest.raises(NotImplementedError, match="x = x.t()"):
        x.t_()
    assert row.shape == (3,)


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_numel_and_size_take_tensors_and_numpy_ints(name):
    t = pytest.importorskip(name)
    x = t.zeros(6)
    assert t.numel(x) == x.nelement() == 6
    assert x.reshape(t.tensor(2), 3).shape == (2, 3)
    assert x.view(np.int64(2), -1).shape == (2, 3)
    assert t.broadcast_shapes((3, 1), (4,)) == (3, 4)


def test_as_strided_of_what_is_not_contiguous_says_what_to_do():
    with pytest.raises(NotImplementedError, match="contiguous"):
        engine.zeros(3, 4).t().as_strided((2,), (1,))
