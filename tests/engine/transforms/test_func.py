"""Function transforms, forward mode and Jacobians beside PyTorch: values, structures, what requires grad, errors."""

import collections
import functools
import gc
import itertools
import re
import threading
import warnings
from weakref import ref

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from over_tables import over

import engine
from engine import func
from engine.arrays import tree
from engine.core.graph import Node

rng = np.random.default_rng(0)
M, V, W = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
v, u = rng.normal(size=3), rng.normal(size=3)


def outcome(t, program):
    """What a program gives in one of the libraries: the structure, and of each tensor shape, dtype and numbers."""
    f = func if t is engine else pytest.importorskip("torch").func
    a = {"M": M, "V": V, "W": W, "v": v, "u": u}
    names = {k: t.tensor(x) for k, x in a.items()} | {k + "g": t.tensor(x, requires_grad=True) for k, x in a.items()}
    names |= {"t": t, "f": f, "F": t.nn.functional, "collections": collections}
    leaves, structure = tree.flatten(eval(program, {**HELPERS(t, f), **names}))
    return structure, [(tuple(x.shape), str(x.dtype), x.requires_grad, x.detach().numpy()) if hasattr(x, "shape") else x
                       for x in leaves]  # fmt: skip


def HELPERS(t, f):
    """Functions that programs use."""
    w = t.tensor(W)

    def stopped(x):
        with t.no_grad():
            c = x**2
        return (x * c).sum()

    def scaled(x):
        y = x.clone()
        y[0] = y[1] * 2
        with t.no_grad():
            y[2].mul_(3)
        return (y * y.softmax(0) * x).sum()

    def unrecorded(call):
        with t.no_grad():
            return call()

    def built(x):
        layer = t.nn.Linear(3, 1, dtype=t.float64)
        t.nn.init.constant_(layer.weight, 2.0)
        t.nn.init.zeros_(layer.bias)
        return layer(x).sum() * x[0]

    def written(x):
        z = x.clone()
        z[0] = 1.0
        z[1:] *= x[:2]
        z.view(1, 3).add_(x)
        return z

    return {
        "written": written,
        "scaled": scaled,
        "unrecorded": unrecorded,
        "built": built,
        "fw": t.autograd.forward_ad,
        "number": lambda x: ((x @ w).tanh() * x).sum(),
        "vector": lambda x: (x @ w).tanh()[0] * x[1],
        "row": lambda r: (r * r[0]).softmax(0),
        "layer": lambda a, x: (a @ x).tanh().sum(),
        "stopped": stopped,
        "poly": lambda x: (x**3 * x.flip(0)).sum(),
    }


PROGRAMS = """
f.grad(number)(M)
f.grad(number)(Mg)
f.grad(lambda x: f.grad(number)(x).pow(2).sum())(M)
f.grad(f.grad(f.grad(lambda x: x.sin() * x)))(v[0])
f.grad(stopped)(v)
f.jvp(stopped, (v,), (u,))
f.jacfwd(stopped)(v)
f.hessian(stopped)(v)
f.vmap(lambda a: f.jvp(stopped, (a,), (a,))[1])(M)
f.jvp(lambda x: f.jvp(stopped, (x,), (u,))[1], (v,), (v,))
f.jvp(f.grad(stopped), (v,), (u,))
f.grad(lambda x: f.jvp(stopped, (x,), (u,))[1])(v)
f.jvp(lambda x: unrecorded(lambda: f.grad(lambda y: (y ** 3).sum())(x)), (v,), (u,))
f.jvp(lambda x: unrecorded(lambda: f.jvp(lambda y: y ** 3, (x,), (u,))[1]), (v,), (u,))
f.jvp(lambda x: fw.unpack_dual(x * x).tangent, (v,), (u,))[0]
f.jvp(lambda x: fw.unpack_dual(x * x).primal, (v,), (u,))
f.grad(scaled)(v)
f.jvp(scaled, (v,), (u,))
f.hessian(scaled)(v)
f.jvp(f.grad(scaled), (v,), (u,))
f.jvp(lambda x: f.jvp(scaled, (x,), (u,))[1], (v,), (u,))
t.autograd.grad(f.jvp(scaled, (vg,), (ug,))[1], (vg, ug))
t.autograd.grad(f.jvp(lambda x: f.jvp(scaled, (x,), (vg * x,))[1], (ug,), (vg,))[1], (vg, ug))
unrecorded(lambda: f.grad_and_value(number)(Mg))
unrecorded(lambda: f.grad(lambda a: ((a * ug).sum(), a * ug), has_aux=True)(v))
unrecorded(lambda: f.vjp(vector, Mg)[0])
unrecorded(lambda: f.jvp(vector, (Mg,), (V,)))
unrecorded(lambda: f.jacfwd(vector)(Mg))
unrecorded(lambda: f.hessian(number)(Mg))
(f.grad(lambda x, s: (s.add_(1), (x * s).sum())[1])(v, u), u)
(f.grad(lambda x, s: (s[0].add_(x.detach()[0]), (x * s).sum())[1])(v, u), u)
(f.grad(lambda x, k: (k['s'].mul_(2), (x * k['s']).sum())[1])(v, k={'s': u}), u)
(f.jacrev(lambda x, s: (s.add_(1), x * s)[1])(v, u), u)
(f.jacfwd(lambda x, s: (s.add_(1), x * s)[1])(v, u), u)
(f.grad(lambda x, s: f.grad(lambda y, r: (r.add_(1), (y * r).sum() ** 2)[1])(x, s).sum())(v, u), u)
(f.vmap(f.grad(lambda x, s: (s.add_(1), (x * s).sum())[1]))(M, V), V)
[(n, f.grad(lambda x, n: (n.add_(1), (x * n).sum())[1])(v, n), n) for n in [t.tensor(3.0).double()]]
f.grad(built)(v)
f.jvp(built, (v,), (u,))
f.grad(lambda x: (x * t.nn.Parameter(t.ones(3).double())).sum())(v)
f.grad(lambda x: (x * t.ones(3, dtype=t.float64, requires_grad=True)).sum())(v)
f.jacfwd(lambda a, b: a * b, argnums=None)(v, u)
f.jacrev(vector, chunk_size=1)(M)
f.jacrev(vector, chunk_size=1)(Mg)
f.jacrev(lambda a: a.sum(), chunk_size=1)(v)
f.vmap(f.jacrev(row, chunk_size=1))(M)
f.vmap(lambda d: d['a'] * d['b'], in_dims=({'a': 0, 'b': None},))(collections.OrderedDict(a=M, b=v))
f.vmap(lambda d: d['a'] * 2)(collections.defaultdict(list, a=M))
f.vmap(lambda d: d[0] * d[1], in_dims=(collections.deque([0, None]),))(collections.deque([M, v]))
f.grad(lambda d: (d['a'] * d['c'][0]).sum())(collections.defaultdict(list, a=v, c=[u]))
f.grad(lambda d: (d['a'] * d['b'][0]).sum())({'a': v, 'b': [u]})
f.grad(lambda a, b: (a * b).sum(), argnums=(1, 0))(v, u)
f.grad(lambda a, b: (a * b).sum(), argnums=-1)(v, u)
f.grad(lambda a, k: (a * k).sum())(v, k=u)
f.grad(lambda a: (a.detach() * a).sum())(v)
f.grad(lambda a: u.sum())(v)
f.grad(lambda a: ((a * a).sum(), {'y': a * 2}), has_aux=True)(v)
f.grad_and_value(number)(M)
f.grad_and_value(number)(Mg)
f.grad_and_value(lambda a: ((a * a).sum(), {'y': a * 2}), has_aux=True)(v)
f.jacrev(vector)(M)
f.jacrev(vector)(Mg)
f.jacrev(vector, chunk_size=2)(M)
f.jacrev(lambda a, b: (a * b, {'c': b.sum()}), argnums=(0, 1))(v, u)
f.jacrev(lambda a: (a * a, {'y': a * 2}), has_aux=True)(v)
f.jacrev(lambda a: u * 2)(v)
f.jacfwd(vector)(M)
f.jacfwd(vector)(Mg)
f.jacfwd(lambda a, b: (a * b, {'c': b.sum()}), argnums=(0, 1))(v, u)
f.jacfwd(lambda a: (a * a, {'y': a * 2}), has_aux=True)(v)
f.jacfwd(lambda a: u * 2)(v)
f.hessian(number)(M)
f.hessian(lambda a, b: (a * b * b).sum(), argnums=(0, 1))(v, u)
f.jacrev(f.jacrev(number))(M)
f.jacfwd(f.jacfwd(number))(M)
f.jacrev(f.jacfwd(number))(M)
f.jacfwd(f.hessian(poly))(v)
f.jvp(vector, (M,), (V,))
f.jvp(vector, (Mg,), (V,))
f.jvp(lambda a, b: (a * b, {'c': b.sum()}), (v, u), (u, v))
f.jvp(lambda a: (a * a, a + 1), (v,), (u,), has_aux=True)
f.jvp(lambda a: u, (v,), (u,))
f.jvp(lambda a: a.detach() * a, (v,), (u,))
f.jvp(lambda x: f.jvp(vector, (x,), (V,))[1], (M,), (W,))
f.jvp(lambda x: f.vjp(vector, x)[1](v)[0], (M,), (V,))
f.jvp(f.grad(number), (M,), (V,))
f.grad(lambda x: f.jvp(number, (x,), (V,))[1])(M)
f.vjp(vector, M)[1](v)
f.vjp(vector, M)[0]
f.vjp(lambda a, b: {'x': a * b, 'y': b.sum()}, v, u)[1]({'x': u, 'y': v[0]})
f.vjp(lambda a: (a * a, a + 1), v, has_aux=True)[2]
f.vjp(lambda x: f.vjp(vector, x)[1](v)[0], M)[1]((V,)[0])
f.linearize(vector, M)[1](V)
f.vmap(lambda a: a.sum())(M)
f.vmap(lambda a: a.sum(), in_dims=1)(M)
f.vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1)(M, v)
f.vmap(lambda a, d: {'s': a.sum(), 'p': (a * d['k'], a)}, (1, {'k': None}), {'s': 0, 'p': (1, 0)})(M, {'k': v})
f.vmap(lambda a: (a, u), out_dims=(0, None))(M)
f.vmap(lambda a: u * 2)(M)
f.vmap(lambda a: a * 2, chunk_size=2)(M)
f.vmap(lambda a, b: a[b], (0, 0))(M, t.tensor([2, 0, 1]))
f.vmap(lambda a: a.argmax())(M)
f.vmap(lambda a: a.argmax(keepdim=True))(M)
f.vmap(lambda a: a.sort().values.cumsum(0))(M)
f.vmap(lambda a: t.stack([a, u]).flip(0))(M)
f.vmap(lambda a: t.zeros_like(a).add_(a).mul_(2))(M)
f.vmap(lambda a: t.where(a > 0, a, u))(M)
f.vmap(lambda a: t.einsum('i,ij,j', a, W, a))(M)
f.vmap(lambda a: a.new_zeros(3).add_(a))(M)
f.vmap(lambda a: t.full_like(a, 2.0).mul_(a))(M)
f.vmap(lambda a: t.zeros(3).double().scatter(0, a.argsort(), a))(M)
f.vmap(lambda a: t.zeros_like(a).index_put_((t.tensor([0, 1]),), a[:2]))(M)
f.vmap(lambda a: a[t.tensor([True, False, True])])(M)
f.vmap(f.grad(lambda a: t.linalg.inv(t.outer(a, a) + W).sum()))(M)
f.vmap(f.grad(lambda a: F.cross_entropy(a[None], t.tensor([1]))))(M)
f.vmap(F.dropout, randomness='same')(M * 0)
f.vmap(written)(M)
f.vmap(f.grad(lambda a: (written(a) ** 2).sum()))(M)
f.jvp(written, (v,), (u,))
f.hessian(lambda a: (written(a) ** 3).sum())(v)
f.vmap(lambda a: sum(p.sum() * i for i, p in enumerate(a.split(2))))(M)
f.vmap(lambda a: a.topk(2).values)(M)
f.vmap(f.jacfwd(lambda a: a.sort().values * a.max()))(M)
f.vmap(lambda a: a * 2)(M[:0])
f.vmap(lambda a, b: a @ b, (0, None))(t.zeros(2, 5, 0), t.zeros(0, 4))
f.vmap(lambda a, b: a @ b, (None, 0))(t.zeros(5, 0), t.zeros(2, 0, 1))
f.vmap(f.grad(lambda a: F.unfold(a, 2).sum()))(t.zeros(2, 0, 1, 4, 4))
f.vmap(lambda a: t.where(t.ones(100, 100).triu(1) > 0, a, 0.0))(M[:, :1, None].expand(3, 100, 100))
f.vmap(lambda a: a.masked_fill(t.ones(10000) > 0, 2.0))(M[:, :1].expand(3, 10000))
f.vmap(lambda a, m: a.masked_select(m), (0, None))(M, v > 0)
f.vmap(f.grad(lambda a: a.masked_select(t.tensor([True, False, True])).sum()))(M)
(t.manual_seed(3), f.vmap(lambda a: a + t.randn(3).double(), chunk_size=2, randomness='same')(M))[1]
f.vmap(lambda a, s: a.masked_scatter(v > 0, s), (0, None))(M, u)
f.vmap(lambda a, s: a.masked_scatter(v > 0, s), (None, 0))(v, M)
f.vmap(lambda a, b: a.index_fill(0, t.tensor([0]), b))(v, u)
f.jacrev(f.jacfwd(lambda a: F.embedding(t.tensor([0, 2, 2]), a, padding_idx=2).pow(2)))(M)
f.vmap(f.grad(lambda a: (a * a).sum()))(M[:1])
f.vmap(lambda a: a // 2 + a % 2)(t.arange(5))
f.vmap(lambda a: (a * a).sum())(M.half())
f.vmap(lambda a: t.outer(a, a) @ t.ones(3, 3).half())(M.half())
f.vmap(f.grad(lambda a: (a * t.arange(3).double()).sum()))(M.float())
f.vmap(t.nn.functional.embedding, (0, None))(t.tensor([[0, 1], [2, 2]]), M)
f.vmap(lambda a, b, c: a * b - c)(*M)
f.vmap(lambda a: sum(x * i for i, x in enumerate(a)))(M)
f.vmap(lambda a, s=1.0: a * s)(M, s=v)
f.vmap(f.vmap(f.vmap(lambda a, b: a + b, (0, None)), (0, 0)), (None, 0))(M[:2], V[:, :2])
f.vmap(lambda a: t.linalg.svdvals(t.outer(a, a) + W))(M)
f.jacrev(lambda a: a.double() * 2)(v.float())
f.jacfwd(lambda a: a * 2)(v[:0])
f.jacrev(lambda a: a * 2)(v[:0])
f.hessian(lambda a: a ** 3)(v[0])
f.vmap(f.vmap(lambda a, b: a * b, (0, None)), (None, 0))(v, u)
f.vmap(f.grad(layer), (None, 0))(W, M)
f.vmap(f.grad(layer), (None, 0))(Wg, M)
f.vmap(f.jacrev(row))(M)
f.vmap(f.jacfwd(row))(M)
f.vmap(f.hessian(lambda x: (W @ x).tanh().sum() * x[0]))(M)
f.vmap(f.vmap(f.grad(lambda a, b: (a * b).sin()), (0, None)), (None, 0))(v, u)
f.vmap(lambda x, d: f.jvp(row, (x,), (d,)))(M, V)
f.grad(lambda w: (f.vmap(lambda x: layer(w, x))(M) ** 2).sum())(W)
f.grad(lambda w: f.vmap(f.grad(layer), (None, 0))(w, M).pow(2).sum())(W)
f.grad(lambda w: (f.grad(lambda w: (f.vmap(lambda x: layer(w, x))(M) ** 2).sum())(w) ** 2).sum())(W)
f.jvp(lambda x: f.vmap(row)(x), (M,), (V,))
f.jacrev(lambda x: f.vmap(row)(x))(M)
f.jacfwd(lambda x: f.vmap(row)(x))(M)
f.jacfwd(lambda x: f.vmap(f.grad(lambda r: (r ** 3).sum()))(x))(M)
f.jvp(f.grad(f.grad(lambda a: a ** 3)), (v[0],), (u[0],))
f.jacfwd(f.jacrev(f.grad(poly)))(v)
f.jacrev(f.jacfwd(f.jacrev(poly)))(v)
f.jacrev(f.hessian(lambda w: (f.jacrev(lambda r: (w * r).tanh())(u) ** 2).sum()))(v)
f.grad(lambda w: f.jvp(lambda z: f.vmap(f.grad(lambda r: (w * r).tanh().sum()))(z), (M,), (V,))[1].sum())(v)
t.autograd.grad(f.jvp(f.jacrev(f.jacrev(lambda r: (vg * r).tanh())), (u,), (v,))[1].sum(), vg)
t.autograd.grad(f.jvp(lambda z: f.grad(lambda y: f.jacfwd(row)(y).sum())(z * vg), (u,), (vg,))[1].sum(), vg)
t.autograd.grad(f.vmap(lambda x: layer(Wg, x))(M).sum(), Wg)
t.autograd.grad(f.grad(number)(Mg).sum(), Mg)
t.autograd.grad(f.jacfwd(vector)(Mg).sum(), Mg)
t.autograd.grad(vg * ug, (vg, ug), t.stack([v, u]), is_grads_batched=True)
t.autograd.grad(vg ** 3, vg, t.stack([v, u]), is_grads_batched=True, create_graph=True)
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # from PyTorch's linearize
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # from PyTorch's vmap
@over("program", PROGRAMS)
def test_program_as_pytorch(program):
    torch = pytest.importorskip("torch")
    (ours, a), (theirs, b) = outcome(engine, program), outcome(torch, program)
    assert repr(ours) == repr(theirs) and len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x[:3] == y[:3]
        np.testing.assert_allclose(x[3], y[3], 1e-9, 1e-12)


# ---- errors

FAILING = """
f.vmap(lambda a: a.sum().item())(M)
f.vmap(lambda a: a if a.sum() > 0 else -a)(M)
f.vmap(lambda a: float(a.sum()))(M)
f.vmap(lambda a: v.clone().mul_(a))(M)
f.vmap(lambda a: v.clone().copy_(a))(M)
f.vmap(lambda a: a.nonzero())(M)
f.vmap(lambda a: a[a > 0])(M)
f.vmap(lambda a: a.masked_select(a > 0))(M)
f.vmap(lambda a: a.unique())(M)
f.vmap(lambda a: a.tolist())(M)
f.vmap(lambda a: a.numpy())(M)
f.vmap(lambda a: a.data_ptr())(M)
f.vmap(lambda a: a + t.rand(3))(M)
f.vmap(lambda a: a + t.randn_like(a))(M)
f.vmap(lambda a: F.dropout(a))(M)
f.vmap(lambda a: t.empty(3).normal_(), randomness='different')(M)
f.vmap(lambda a: t.bernoulli(a.sigmoid()), randomness='same')(M)
f.vmap(lambda a: a, randomness='other')(M)
f.vmap(lambda a: a.requires_grad_())(M)
f.vmap(t.nn.BatchNorm1d(3).double())(M[None].expand(2, 3, 3))
f.vmap(lambda a: (a * vg).sum().backward())(M)
f.vmap(lambda: 1)()
f.vmap(lambda a: a, in_dims=None)(M)
f.vmap(lambda a: a, in_dims=[0])(M)
f.vmap(lambda a: a, in_dims=(0, 0))(M)
f.vmap(lambda a: a, in_dims=(None,))(M)
f.vmap(lambda a: a, in_dims=2)(M)
f.vmap(lambda a: a, in_dims=('x',))(M)
f.vmap(lambda a: a['x'], in_dims=({'y': 0},))({'x': M})
f.vmap(lambda a, b: a * b)(M, 2.0)
f.vmap(lambda a, b: a * b)(M, v[:2])
f.vmap(lambda a: a, out_dims=None)(M)
f.vmap(lambda a: a, out_dims=3)(M)
f.vmap(lambda a: a, out_dims='x')(M)
f.vmap(lambda a: (a, a), out_dims=(0, 0, 0))(M)
f.vmap(lambda a: 2.0)(M)
f.vmap(lambda a: a, chunk_size=0)(M)
f.grad(lambda a: a)(M)
f.grad(lambda a: 2.0)(M)
f.grad(lambda a: a.sum())(t.arange(3))
f.grad(lambda a: a)(2.0)
f.grad(lambda a: a.sum(), argnums=3)(M)
f.grad(lambda a: a.sum(), argnums='a')(M)
f.grad(lambda a: a.sum(), argnums=())(M)
f.grad(lambda a: a.sum(), argnums=(0, 0))(M)
f.grad(lambda a, b: a.sum(), argnums=(-1, 1))(M, V)
f.grad(lambda a: (a.sum(), 'word'), has_aux=True)(M)
f.jvp(lambda a: (a, {'k': None}), (M,), (M,), has_aux=True)
f.grad(lambda a: a.sum(), has_aux=True)(M)
f.grad(lambda a: a.add_(1).sum())(M.clone())
f.grad(lambda a: a.add_(1).sum())(Mg)
f.grad(lambda a: a[0].add_(1).sum())(Mg)
f.grad(lambda a: f.grad(lambda b: b.mul_(2).sum())(a).sum())(v)
f.jacrev(lambda a: a.mul_(2))(vg)
f.jvp(lambda a: a[0].mul_(2), (vg,), (u,))
f.vjp(lambda a: None, v)
f.jvp(lambda a: None, (v,), (v,))
f.jacrev(lambda a: None)(v)
f.jacfwd(lambda a: None)(v)
f.jvp(lambda a: t.add(a, a, out=t.empty(3, dtype=t.float64)), (v,), (u,))
f.jvp(lambda a: t.autograd.grad((a ** 3).sum(), a)[0], (v,), (u,))
f.vmap(lambda d: d['a'], in_dims=({'b': 0},))(collections.OrderedDict(a=M))
f.vmap(lambda d: d[0], in_dims=([0],))(collections.deque([M]))
f.functional_call(t.nn.Linear(3, 1), {'bias': 3.0}, v)
f.functional_call(t.nn.Linear(3, 1), {'in_features': v}, v)
f.grad(lambda a: (a * 2).requires_grad_().sum())(M)
f.grad(lambda a: (a * 2).sum().backward())(M)
f.grad(lambda a: (a * 2).sum().backward(inputs=[vg]))(M)
f.grad(lambda a: t.autograd.backward((a * 2).sum()))(M)
f.vmap(lambda a: a.sum().backward())(M)
f.jvp(lambda a: a.sum().backward(), (M,), (M,))
f.jacrev(lambda a: (a * 2).requires_grad_())(M)
f.vjp(lambda a: (a, a), M)[1](M)
f.vjp(lambda a: a, M)[1](v)
f.vjp(lambda a: 2.0, M)
f.vjp(lambda a: a > 0, M)
f.jvp(lambda a: a, M, M)
f.jvp(lambda a: a, (M,), (M, M))
f.jvp(lambda a: a, (M,), (v,))
f.jvp(lambda a: 2.0, (M,), (M,))
f.jvp(lambda a: v, (M,), (M,), strict=True)
f.jacrev(lambda a: 2.0)(M)
f.jacrev(lambda a: a)(t.arange(3))
f.jacrev(lambda a: a, chunk_size=0)
f.jacrev(lambda a: (a, a > 0))(M)
f.jacfwd(lambda a: a, randomness='other')(M)
f.jacfwd(lambda a: 2.0)(M)
f.jacfwd(lambda a: a)(t.arange(3))
f.functional_call(t.nn.Linear(3, 1), ({'weight': v}, {'weight': v}), v)
f.functional_call(t.nn.Linear(3, 1), 3, v)
f.functional_call(t.nn.Linear(3, 1), {'weight': v}, v, strict=True)
f.stack_module_state([])
f.stack_module_state([t.nn.Linear(3, 1), t.nn.ReLU()])
f.stack_module_state([t.nn.Linear(3, 1), t.nn.Linear(3, 1).eval()])
t.autograd.grad(vg * 2, vg, None, is_grads_batched=True)
""".strip().splitlines()


def failure(t, program):
    with pytest.raises(Exception) as caught:
        outcome(t, program)
    text = str(caught.value).replace("engine.tensor.Tensor", "torch.Tensor")
    return type(caught.value).__name__, re.sub(r" at 0x\w+|<function .*?>", "", text)


@over("program", FAILING)
def test_error_as_pytorch(program):
    torch = pytest.importorskip("torch")
    assert failure(engine, program) == failure(torch, program)


def test_shapes_of_batched_gradients_are_checked():
    x = engine.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="we interpret the first dimension of each grad_output as the batch"):
        engine.autograd.grad(x * 2, x, engine.ones(3, 3), is_grads_batched=True)


@pytest.mark.parametrize("call, words", [
    ("torch.repeat_interleave(a, n)", "over aten::repeat_interleave"),
    ("a.masked_scatter(n > 1, a)", "masked_scatter takes"),
])  # fmt: skip
def test_what_cannot_be_done_for_all_samples_is_named(call, words):
    a, n = engine.tensor(M), engine.tensor([[1, 2, 0], [0, 1, 1], [2, 2, 2]])
    with pytest.raises(Exception, match=f"vmap: .*{words}"):
        func.vmap(lambda a, n: eval(call, {"torch": engine, "a": a, "n": n}))(a, n)


def test_writing_of_samples_into_an_array_without_them_is_refused():
    zeros = engine.zeros(3, dtype=engine.float64)
    for write in ("zeros[0] = a[0]", "zeros[torch.tensor([0, 1])] = a[:2]", "zeros.fill_(a[0])", "zeros.add_(a)"):
        with pytest.raises(RuntimeError, match="vmap: inplace arithmetic.* is not possible because there exists"):
            func.vmap(lambda a, write=write: exec(write, {"zeros": zeros, "a": a, "torch": engine}))(engine.tensor(M))
    assert zeros.tolist() == [0, 0, 0]


CAPTURING = """
f.grad(lambda a: (captured.add_(1), a.sum())[1])(v)
f.grad(lambda a: (captured.add_(a), a.sum())[1])(v)
f.grad(lambda a: (captured[0].add_(a[0]), a.sum())[1])(v)
f.grad(lambda a: (captured.detach().add_(a), a.sum())[1])(v)
f.grad(lambda a: (captured[:2].detach()[0].add_(a[0]), a.sum())[1])(v)
f.grad(lambda a: (captured.__setitem__(0, a[0]), a.sum())[1])(v)
f.jvp(lambda a: (captured.zero_(), a.sum())[1], (v,), (v,))
f.jacrev(lambda a: (captured.copy_(a), a)[1])(v)
f.grad(lambda a: (lambda z: f.grad(lambda b: (z.add_(b), b.sum())[1])(a).sum())(a * 2))(v)
""".strip().splitlines()


@over("program", CAPTURING)
def test_derivatives_do_not_write_into_what_they_capture(program):
    torch = pytest.importorskip("torch")
    for t, f in ((engine, func), (torch, torch.func)):
        captured = t.zeros(3, dtype=t.float64)
        with pytest.raises(RuntimeError, match="During a grad .* transform, the function provided attempted to call"):
            eval(program, {"t": t, "f": f, "v": t.tensor(v), "captured": captured})
        assert captured.tolist() == [0, 0, 0] and not captured.requires_grad


INSIDE_INFERENCE = """
f.grad(lambda a: (a * a).sum())(x)
f.jacrev(lambda a: a * a)(x)
f.jacfwd(lambda a: a * a)(x)
f.hessian(lambda a: (a ** 3).sum())(x)
f.vjp(lambda a: a * a, x)[1](x)[0]
f.jvp(lambda a: a * a, (x,), (x,))[1]
f.vmap(lambda a: a * a)(x)
""".strip().splitlines()


@pytest.mark.parametrize("made", ["outside", "inside"])
@pytest.mark.parametrize("program", INSIDE_INFERENCE)
def test_transforms_in_inference_mode_as_pytorch(program, made):
    torch = pytest.importorskip("torch")
    found = []
    for t, f in ((engine, func), (torch, torch.func)):
        x = t.tensor([1.0, 2.0])
        with t.inference_mode():
            x = x if made == "outside" else t.tensor([1.0, 2.0])
            y = eval(program, {"f": f, "x": x})
            found.append((y.tolist(), y.is_inference(), y.requires_grad, t.is_inference_mode_enabled()))
    assert found[0] == found[1]


def test_writing_into_samples_is_writing_into_the_argument():
    x = engine.zeros(3, 2)
    saved = (engine.ones(3, 2, requires_grad=True) * x).sum()
    func.vmap(lambda a: a.add_(1))(x)
    assert x.sum() == 6 and x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()
    with pytest.raises(NotImplementedError, match="clone\\(\\) it first"):
        func.vmap(lambda a: a.add_(1))(engine.zeros(3, 2, requires_grad=True) * 2)


def test_transforms_on_the_simulated_device():
    x, w = engine.tensor(M, device="sim"), engine.tensor(W, device="sim")
    f = lambda w, a: (w @ a).tanh().sum()  # noqa: E731
    ours = func.vmap(func.grad(f), (None, 0))(w, x)
    assert ours.device.type == "sim"
    np.testing.assert_allclose(ours.cpu(), func.vmap(func.grad(f), (None, 0))(w.cpu(), x.cpu()))
    assert func.hessian(lambda a: f(w, a))(x[0]).device.type == "sim"


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_inside_of_forward_mode_have_tangents(create_graph):
    """PyTorch takes no gradients there of what requires grad outside."""
    x, a, b = engine.tensor(v, requires_grad=True), engine.tensor(u), engine.tensor(u * v)

    def slope(y):
        return engine.autograd.grad((y**4).sum(), y, create_graph=create_graph)[0]

    value, tangent = func.jvp(slope, (x,), (a,))
    assert value.requires_grad == tangent.requires_grad == create_graph
    np.testing.assert_allclose(value.detach(), 4 * v**3)
    np.testing.assert_allclose(tangent.detach(), 12 * v**2 * u)
    second = func.jvp(lambda y: func.jvp(slope, (y,), (a,))[1], (x,), (b,))[1]
    np.testing.assert_allclose(second.detach(), 24 * v * u * u * v)
    np.testing.assert_allclose(func.jacfwd(slope)(x).detach(), np.diag(12 * v**2))
    of_cotangents = lambda g: engine.autograd.grad(x**2, x, g, create_graph=create_graph)[0]  # noqa: E731
    np.testing.assert_allclose(func.jvp(of_cotangents, (a,), (b,))[1].detach(), 2 * v * u * v)


def test_a_backward_that_is_differentiable_once_hands_on_tangents():
    """PyTorch has this in a dual level alone."""

    class Square(engine.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        @engine.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return 2 * t * ctx.saved_tensors[0]

    x, t = engine.tensor(v, requires_grad=True), engine.tensor(u)
    slope = lambda x: engine.autograd.grad((Square.apply(x) * x).sum(), x)[0]  # noqa: E731
    np.testing.assert_allclose(func.jvp(slope, (x,), (t,))[1], 6 * v * u)


def test_linearized_functions_have_tangents():
    x, t = engine.tensor(v), engine.tensor(u)
    value, tangent = func.jvp(lambda x: func.linearize(lambda a: a**3, x)[1](t), (x,), (t,))
    np.testing.assert_allclose(value, 3 * v**2 * u)
    np.testing.assert_allclose(tangent, 6 * v * u * u)


def test_transforms_leave_no_cycles():
    """Without the cyclic collector, nodes are freed as their results go."""
    x, w = engine.ones(3), engine.ones(3, 3, requires_grad=True)
    f = lambda a: (w @ a).tanh().exp().sum()  # noqa: E731
    programs = (
        lambda: func.jvp(func.grad(f), (x,), (x,)),
        lambda: func.grad(lambda a: func.jvp(f, (a,), (x,))[1])(x),
        lambda: func.hessian(f)(x),
        lambda: func.vmap(func.jacrev(lambda a: a * f(a)))(w.detach()),
    )
    gc.collect()
    gc.disable()
    try:
        for program in programs:
            program()
            before = sum(issubclass(type(o), Node) for o in gc.get_objects())
            program()
            assert sum(issubclass(type(o), Node) for o in gc.get_objects()) == before
    finally:
        gc.enable()


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp", "jacrev"])
def test_a_transform_in_one_thread_changes_nothing_in_another(transform):
    inside, done, refused = threading.Event(), threading.Event(), []

    def waits(a):
        inside.set()
        assert done.wait(60)
        for method in (lambda: (a * 2).sum().backward(), lambda: engine.ones(2).requires_grad_()):
            with pytest.raises(RuntimeError, match="functorch transform") as error:
                method()
            refused.append(error)
        return (a * a).sum()

    run = {
        "grad": lambda: func.grad(waits)(engine.ones(3)),
        "vmap": lambda: func.vmap(waits)(engine.ones(2, 3)),
        "jvp": lambda: func.jvp(waits, (engine.ones(3),), (engine.ones(3),)),
        "jacrev": lambda: func.jacrev(waits)(engine.ones(3)),
    }[transform]
    methods = engine.Tensor.backward, engine.Tensor.requires_grad_
    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert inside.wait(60)
        assert (engine.Tensor.backward, engine.Tensor.requires_grad_) == methods
        x = engine.ones(3).requires_grad_()
        y = x * 2
        y += 1
        y[0] = 5.0
        assert repr(y.sum()) == "tensor(11., grad_fn=<SumBackward0>)"
        assert repr(x) == "tensor([1., 1., 1.], requires_grad=True)"
        y.sum().backward()
        (x * x).sum().backward(inputs=[x])
        engine.autograd.backward(x.sum())
        assert x.grad.tolist() == [3, 5, 5] and not x.detach().requires_grad_(False).requires_grad
        with engine.no_grad():
            x.mul_(2)
        assert func.grad(lambda a: (a * a).sum())(x.detach()).tolist() == [4, 4, 4]
        x.sum().backward()
    finally:
        done.set()
        thread.join(60)
    assert len(refused) == 2
    x.sum().backward()


def test_a_failed_transform_leaves_nothing_behind():
    x = engine.ones(3, requires_grad=True)
    for transform in (func.grad, func.jacfwd, func.vmap, func.jacrev):
        with pytest.raises(ZeroDivisionError):
            transform(lambda a: 1 / 0)(engine.ones(3))
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and engine.is_grad_enabled()
    assert engine.rand(2).shape == (2,) and not (engine.ones(2) * 2).requires_grad


# ---- indexing

KEYS = """
a[i]
a[:, i]
a[..., i]
a[0, i]
a[0, :, i]
a[1, ..., i]
a[i, 1:, None]
a[i, i]
a[k, :, i]
a[:, k]
a[i[0]]
a[b]
a[:, None, 1]
""".strip().splitlines()


@pytest.mark.parametrize("batched", ["a", "i", "ai"])
@pytest.mark.parametrize("key", KEYS)
def test_indexing_under_vmap(key, batched):
    """Reading, writing and the gradient of reading, against a loop."""
    a, i = engine.arange(3 * 4 * 3 * 4).reshape(3, 4, 3, 4).double(), engine.tensor([[0, 2], [1, 1], [2, 0]])
    a, i = (a if "a" in batched else a[0]), (i if "i" in batched else i[0])
    fixed = {"k": engine.tensor([1, 0]), "b": engine.tensor([True, False, True, True])}

    def read(a, i):
        return eval(key, {"a": a, "i": i, **fixed}) ** 2

    def written(a, i):
        a = a * 1 + i[0] * 0
        exec(f"{key} = {key} * 2 + 1", {"a": a, "i": i, **fixed})
        return a

    slope = func.grad(lambda a, i: read(a, i).sum())
    dims = tuple(0 if n in batched else None for n in "ai")
    for f in (read, written, slope):
        each = [f(a[n] if "a" in batched else a, i[n] if "i" in batched else i) for n in range(3)]
        assert engine.equal(func.vmap(f, dims)(a, i), engine.stack(each))


@pytest.mark.parametrize("written", [(3, 3), (3, 4), (3,), (3, 3, 3)])
def test_a_mask_of_each_sample_says_which_rows_are_filled(written):
    """PyTorch refuses it for masks with fewer dimensions than what is written; here it is that of a loop."""
    x, m = engine.randn(2, *written), engine.tensor([[True, False, False], [False, True, True]])

    def fill(x, m):
        x = x * 1
        x[m] = 0
        return x

    for f in (fill, func.grad(lambda x, m: (fill(x, m) ** 2).sum())):
        each = [f(a, b) for a, b in zip(x, m, strict=True)]
        assert engine.equal(func.vmap(f)(x, m), engine.stack(each))
    with pytest.raises(RuntimeError, match="boolean mask"):
        func.vmap(fill)(x, m[:, :1])


# ---- random numbers

RANDOM = """
x + t.rand(4)
x + t.randn_like(x)
F.dropout(x + 1)
x.clone().uniform_()
t.randperm(4)
t.randint(0, 9, (2,))
t.multinomial(x + 1, 2)
t.bernoulli(x + 0.5)
t.normal(x, 1.0)
""".strip().splitlines()


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("draw", RANDOM)
def test_random_numbers_as_pytorch(draw, randomness):
    torch = pytest.importorskip("torch")

    def drawn(t):
        t.manual_seed(3)
        f = func if t is engine else t.func
        names = {"t": t, "F": t.nn.functional}
        try:
            out = f.vmap(lambda x: eval(draw, {**names, "x": x}), randomness=randomness)(t.zeros(3, 4))
        except RuntimeError as error:
            return str(error)
        return out.tolist()

    assert drawn(engine) == drawn(torch)


# ---- autograd.functional

FUNCTIONS = {
    "squares": lambda x: (x * x).sum(1),
    "cubes": lambda x: (x**3).sum(),
    "linear": lambda x: x.sum(),
    "two": lambda x: ((x * x).sum(), x.exp()),
    "constant": lambda x: x.detach() * 2,
    "number": lambda x: 3.0,
}
OF_TWO = {
    "mixed": lambda x, y: (x * y).sum(1),
    "mixed square": lambda x, y: ((x * y) ** 2).sum(),
    "first": lambda x, y: (x**2).sum(),
}
X, Y = rng.normal(size=(2, 3)), rng.normal(size=3)


def functional(t, name, f, *args, **options):
    """The results of a function of ``autograd.functional``, or its error."""

    def described(r):
        if isinstance(r, (tuple, list)):
            return [type(r).__name__, *map(described, r)]
        return r.shape, r.requires_grad, r.detach().numpy()

    tensors = [a(t) if callable(a) else a for a in args]
    try:
        return described(getattr(t.autograd.functional, name)(f, *tensors, **options))
    except Exception as error:
        return type(error).__name__, str(error).replace("engine.tensor.Tensor", "torch.Tensor")


def assert_alike(a, b):
    assert type(a) is type(b) and len(a) == len(b), (a, b)
    if isinstance(a, list):
        assert a[0] == b[0]  # tuple or list
        for x, y in zip(a[1:], b[1:], strict=True):
            assert_alike(x, y)
    elif len(a) == 2:
        assert a == b
    else:
        assert tuple(a[0]) == tuple(b[0]) and a[1] == b[1]
        np.testing.assert_allclose(a[2], b[2], 1e-9, 1e-12)


def at(x, grad=False):
    return lambda t: t.tensor(x, requires_grad=grad)


def both(name, f, *args, **options):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_alike(functional(engine, name, f, *args, **options), functional(torch, name, f, *args, **options))


@pytest.mark.parametrize("create_graph, strict, grad", itertools.product((False, True), repeat=3))
@pytest.mark.parametrize("f", FUNCTIONS)
def test_functional_of_one_input_as_pytorch(f, create_graph, strict, grad):
    f, x, options = FUNCTIONS[f], at(X, grad), {"create_graph": create_graph, "strict": strict}
    for name, vectorize in itertools.product(("jacobian", "hessian"), (False, True)):
        both(name, f, x, vectorize=vectorize, **options)
    ones = {"vjp": at(np.ones(2))}
    for name in ("vjp", "jvp", "hvp", "vhp"):
        both(name, f, x, ones.get(name, at(np.ones((2, 3)))), **options)
        both(name, f, x, **options)
        both(name, f, x, at(np.ones(1)), **options)


@over("f", FUNCTIONS)
def test_functional_in_forward_mode_as_pytorch(f):
    f, forward = FUNCTIONS[f], {"strategy": "forward-mode"}
    for x, options in itertools.product(
        (at(X), at(X, True)), ({"vectorize": True}, {}, {"strict": True}, {"create_graph": True})
    ):
        both("jacobian", f, x, **forward, **options)
    both("jacobian", f, at(X), strategy="sideways")
    both("hessian", f, at(X), vectorize=True, outer_jacobian_strategy="forward-mode")


IN_A_DUAL_LEVEL = """
with fw.dual_level(): jacobian(lambda a: a * a, x)
with fw.dual_level(): jacobian(lambda a: a * a, fw.make_dual(x, x))
jacobian(lambda a: jacobian(lambda b: b * b, a), x)
jacobian(lambda a: fw.make_dual(a * a, x), x)
jacobian(lambda a: fw.enter_dual_level(), x)
with fw.dual_level(): t.autograd.functional.hessian(lambda a: a.sum(), x, vectorize=True, outer_jacobian_strategy=mode)
""".strip().splitlines()


@over("program", IN_A_DUAL_LEVEL)
def test_a_jacobian_in_forward_mode_is_a_dual_level_as_pytorch(program):
    torch = pytest.importorskip("torch")
    found = []
    for t in (engine, torch):
        jacobian = functools.partial(t.autograd.functional.jacobian, strategy="forward-mode", vectorize=True)
        fw, x = t.autograd.forward_ad, t.tensor([1.0, 2.0])
        with pytest.raises(RuntimeError) as caught:
            exec(program, {"t": t, "fw": fw, "x": x, "jacobian": jacobian, "mode": "forward-mode"})
        found.append(str(caught.value))
        assert jacobian(lambda a: a * a, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert found[0] == found[1]


@over("f, strict", itertools.product(OF_TWO, (False, True)))
def test_functional_of_two_inputs_as_pytorch(f, strict):
    f, xs = OF_TWO[f], lambda t: (t.tensor(X), t.tensor(Y))
    for vectorize, strategy in itertools.product((False, True), ("reverse-mode", "forward-mode")):
        both("jacobian", f, xs, strict=strict, vectorize=vectorize, strategy=strategy)
        both("hessian", f, xs, strict=strict, vectorize=vectorize, outer_jacobian_strategy=strategy)
    for name in ("jvp", "hvp", "vhp"):
        both(name, f, xs, xs, strict=strict)
        both(name, f, xs, lambda t: (t.tensor(X),), strict=strict)
        both(name, f, xs, lambda t: (t.tensor(X), t.tensor(X)), strict=strict)


def test_functional_takes_tensors_alone():
    both("vjp", FUNCTIONS["squares"], 3.0)
    both("vjp", FUNCTIONS["squares"], lambda t: (t.tensor(X), 3.0))


# ---- dual levels

DUAL = """
print((d * 2).sum(), d.requires_grad, d.is_leaf, fw.unpack_dual(x))
print(d)
print(fw.unpack_dual(d.detach()).tangent)
print(fw.unpack_dual((d ** 2).sum()))
y = d.exp(); y[0].mul_(3); print(fw.unpack_dual(y))
y = d * 1; y[1] = 4; y.add_(d); print(fw.unpack_dual(y))
y = d * 1; z = y.reshape(1, 2); z.mul_(d); print(fw.unpack_dual(y), fw.unpack_dual(z))
g = x.clone().requires_grad_(); d = fw.make_dual(g, x); y = fw.unpack_dual((d ** 3).sum()); print(y.primal.requires_grad, t.autograd.grad(y.tangent, g))
exec("with t.no_grad(): y = d * w; z = w * 2"); print(fw.unpack_dual(y), y.requires_grad, z.requires_grad, t.is_grad_enabled(), (d * w).requires_grad)
fw.exit_dual_level(); t.set_grad_enabled(False); fw.enter_dual_level(); d = fw.make_dual(x, x); y = (d * w).sum(); print(fw.unpack_dual(y), y.requires_grad, t.is_grad_enabled()); fw.exit_dual_level(); print(t.is_grad_enabled(), (w * 2).requires_grad)
y = fw.make_dual(w, x) ** 2; print(y.requires_grad, t.autograd.grad(y.sum(), w)); print((d * 2).requires_grad, d.is_leaf)
y = fw.make_dual(w, x).exp(); (g,) = t.autograd.grad(y.sum(), w); print(fw.unpack_dual(g), g.requires_grad)
fw.make_dual(w, x).mul_(2)
fw.make_dual(w, x)[0].mul_(2)
fw.unpack_dual(fw.make_dual(w, x)).primal.mul_(2)
d.mul_(2); print(x, fw.unpack_dual(x), fw.unpack_dual(d))
u = fw.unpack_dual(d).tangent; d.mul_(2); print(u, fw.unpack_dual(d).tangent is u)
u = fw.unpack_dual(d).tangent; y, z = d + 1, d + t.zeros(2, 2); d.exp_(); print(u, fw.unpack_dual(y), fw.unpack_dual(z))
u = fw.unpack_dual(d).tangent; y = d[1:]; d[0] = 7; y.mul_(3); print(u, fw.unpack_dual(d).tangent is u, fw.unpack_dual(y))
u = fw.unpack_dual(d).tangent; y = fw.make_dual(x * 2, u); d.zero_(); print(u, fw.unpack_dual(y))
u = fw.unpack_dual(d.clone()).tangent; d.copy_(d.clone() * 5).sub_(d); print(u, fw.unpack_dual(d))
y = t.zeros(2); y += d; u = fw.unpack_dual(y).tangent; y *= d; print(u, fw.unpack_dual(y), fw.unpack_dual(d))
y = t.zeros(2, 2); z = y.t(); z.copy_(d); u = fw.unpack_dual(y).tangent; z *= 2; print(u, fw.unpack_dual(y), fw.unpack_dual(z))
v = t.arange(8.0).view(4, 2); y = fw.make_dual(x, v[1]); y.mul_(2); print(v, fw.unpack_dual(y))
v = t.arange(8.0).view(4, 2); y = fw.make_dual(v[1], v[1]); u = fw.unpack_dual(y).tangent; print(u is v[1]); y = fw.make_dual(v[1] * 1, x); print(fw.unpack_dual(y).tangent is x)
v = t.arange(8.0).view(4, 2); u = v[2]; print(fw.unpack_dual(fw.make_dual(v[2], u)).tangent is u, fw.unpack_dual(fw.make_dual(v[1], u)).tangent is u)
v = t.arange(4.0).view(2, 2); u = v.t(); print([fw.unpack_dual(fw.make_dual(a, b)).tangent is b for a in (v, u) for b in (v, u)])
v = t.arange(4.0).requires_grad_(); y = fw.make_dual(x, v[1:3]); print(t.autograd.grad(fw.unpack_dual(y * y).tangent.sum(), v))
u = x[0]; y = fw.make_dual(t.tensor(1.0), u); y.mul_(3); print(u, fw.unpack_dual(y).tangent is u); u = t.tensor(2.0); print(fw.unpack_dual(fw.make_dual(t.tensor(1.0), u)).tangent is u)
u = x[:0]; print(fw.unpack_dual(fw.make_dual(t.ones(0), u)).tangent is u)
y = d.sum(); u = fw.unpack_dual(y).tangent; y.mul_(2); print(u, fw.unpack_dual(y).tangent is u)
u = t.ones(1).expand(2); y = fw.make_dual(x, u); y.mul_(2); print(u, fw.unpack_dual(y))
exec("with t.no_grad(): d.mul_(2)"); print(fw.unpack_dual(d))
s = x.sum(); fw.make_dual(s, s).mul_(2); print(s)
h = w * 1; y = fw.make_dual(h, x); print(y._base is h, y._is_view()); (y * 2).sum().backward(); print(w.grad)
fw.make_dual(d, x)
fw.make_dual(x, d)
fw.make_dual(x, x[:1])
t.add(x, x, out=d)
t.add(d, x, out=x)
t.sum(d, 0, out=x[0])
print(t.mul(x, x, out=t.zeros(2)))
d.sum().backward()
t.autograd.grad(d.sum(), d)
y = ((d ** 2).sin() * (d.softmax(0) * w)).sum(); y.backward(); print(w.grad)
exec("with t.no_grad(): w.mul_(2); w[0].fill_(7)"); print(w, w.requires_grad)
exec("with t.no_grad(): h = w * 1; y = (w * d).detach()"); h = w * 1; exec("with t.no_grad(): h.zero_()"); print(h.requires_grad)
exec("with t.no_grad(): y = d * w; y.fill_(2)"); print(fw.unpack_dual(y), t.is_grad_enabled())
exec("with t.no_grad(): y = fw.make_dual(x, w) * 3"); print(fw.unpack_dual(y), fw.unpack_dual(y).tangent.requires_grad)
fw.make_dual(t.arange(2), t.arange(2))
fw.make_dual(x, t.arange(2))
fw.enter_dual_level()
fw.exit_dual_level(); fw.make_dual(x, x)
fw.exit_dual_level(); print(d, fw.unpack_dual(d)); fw.enter_dual_level()
fw.exit_dual_level(); fw.exit_dual_level()
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("program", DUAL)
def test_dual_level_as_pytorch(program, capsys):
    torch = pytest.importorskip("torch")
    import torch.autograd.forward_ad as theirs

    import engine.autograd.forward_ad as ours

    def run(t, fw):
        x = t.tensor([2.0, 3.0])
        fw.enter_dual_level()
        try:
            w = t.tensor([4.0, 5.0], requires_grad=True)
            exec(program, {"t": t, "fw": fw, "x": x, "w": w, "d": fw.make_dual(x, t.tensor([1.0, 0.5]))})
        except Exception as error:
            return type(error).__name__, str(error)
        finally:
            t.set_grad_enabled(True)
            while True:
                try:
                    fw.exit_dual_level()
                except RuntimeError:
                    break
        return capsys.readouterr().out

    assert run(engine, ours) == run(torch, theirs)


@pytest.mark.parametrize("several", [False, True])
def test_what_a_function_writes_into_a_view_of_a_dual_tensor_is_in_its_base_and_in_their_tangents(several):
    def run(t, fw):
        class Twice(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x.mul_(2))
                return (x, x + 1) if several else x

            @staticmethod
            def jvp(ctx, u):
                u.mul_(2)
                return (u, u * 1) if several else u

        with fw.dual_level():
            d = fw.make_dual(t.arange(4.0), t.tensor([1.0, 10.0, 100.0, 1000.0]))
            v, held = d[1:3], fw.unpack_dual(d).tangent
            result = Twice.apply(v)
            result = result[0] if several else result
            return result is v, *(u.tolist() for x in (v, d) for u in fw.unpack_dual(x)), held.tolist()

    torch = pytest.importorskip("torch")
    import torch.autograd.forward_ad as theirs

    assert run(engine, engine.autograd.forward_ad) == run(torch, theirs)


def test_a_dual_level_holds_no_tangent_that_nobody_else_has():
    fw = engine.autograd.forward_ad
    for requires_grad in (False, True):
        with fw.dual_level():
            tangent = engine.ones(2, requires_grad=requires_grad)
            known = ref(tangent)
            d = fw.make_dual(engine.zeros(2), tangent)
            del tangent
            assert known() is fw.unpack_dual(d).tangent
            del d
            assert known() is None


def test_a_dual_tensor_and_what_it_was_made_of_do_not_write_past_each_other():
    """PyTorch differentiates through both; here the second one is told."""
    fw = engine.autograd.forward_ad
    w = engine.tensor([4.0, 5.0], requires_grad=True)
    with fw.dual_level():
        h = w * 1
        d = fw.make_dual(h, engine.ones(2))
        for written in (d, d[0], fw.unpack_dual(d).primal):
            with pytest.raises(NotImplementedError, match="write into its clone"):
                written.mul_(2)
        d.clone().mul_(2)
        h.mul_(3)
        with pytest.raises(RuntimeError, match="It is a dual tensor: make it of a clone"):
            d.sum()


# ---- custom functions


def functions(t):
    class Both(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y, x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y + h * x.cos(), g * x

        @staticmethod
        def jvp(ctx, dx, dy):
            x, y = ctx.saved_tensors
            return dx * y + (0 if dy is None else dy * x), dx * x.cos()

    class OwnRule(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

        @staticmethod
        def vmap(info, in_dims, x):
            assert info.batch_size == 3 and in_dims == (0,)
            return OwnRule.apply(x), 0

    class InNumPy(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return t.from_numpy(2 * g.detach().numpy())

    class NoRule(OwnRule):
        vmap = t.autograd.Function.vmap

    class WithContext(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return {c.__name__: c for c in (Both, OwnRule, InNumPy, NoRule, WithContext)}


CUSTOM = """
f.grad(lambda x, y: sum(o.sum() for o in Both.apply(x, y)), (0, 1))(v, u)
f.jacrev(lambda x: Both.apply(x, u))(v)
f.jvp(lambda x, y: Both.apply(x, y), (v, u), (u, v))
f.jvp(lambda x: Both.apply(x, u), (v,), (u,))
f.vmap(Both.apply)(v, u)
f.vmap(f.grad(lambda x, y: sum(o.sum() for o in Both.apply(x, y))))(v, u)
f.vmap(OwnRule.apply)(v)
f.grad(lambda x: f.vmap(OwnRule.apply)(x).sum())(v)
f.vmap(lambda x: f.vmap(lambda y: OwnRule.apply(x) * y)(u))(v)
f.vmap(NoRule.apply)(v)
f.jacrev(InNumPy.apply, chunk_size=1)(v)
f.jvp(OwnRule.apply, (v,), (u,))
f.grad(lambda x: WithContext.apply(x).sum())(v)
f.vmap(WithContext.apply)(v)
""".strip().splitlines()


@over("program", CUSTOM)
def test_custom_function_as_pytorch(program):
    torch = pytest.importorskip("torch")

    def run(t, f):
        try:
            out = eval(program, {"f": f, "v": t.tensor(v), "u": t.tensor(u), **functions(t)})
        except Exception as error:
            return type(error).__name__, str(error)
        return [x.tolist() for x in tree.flatten(out)[0]]

    ours, theirs = run(engine, func), run(torch, torch.func)
    assert ours == theirs or np.allclose(np.array(ours), np.array(theirs))


# ---- modules


def model(n=4):
    nn = engine.nn
    return nn.Sequential(nn.Linear(3, n), nn.Tanh(), nn.Linear(n, 2))


def test_per_sample_gradients_of_a_module():
    net, x, y = model(), engine.randn(5, 3), engine.tensor([0, 1, 1, 0, 1])
    params = {k: p.detach() for k, p in net.named_parameters()}

    def loss(params, x, y):
        return engine.nn.functional.cross_entropy(func.functional_call(net, params, (x[None],)), y[None])

    ours = func.vmap(func.grad(loss), (None, 0, 0))(params, x, y)
    for i in range(5):
        net.zero_grad()
        engine.nn.functional.cross_entropy(net(x[i][None]), y[i][None]).backward()
        for k, p in net.named_parameters():
            np.testing.assert_allclose(ours[k][i].numpy(), p.grad.numpy(), 1e-4, 1e-6)


def test_functional_call_puts_the_parameters_back():
    net, x = model(), engine.randn(2, 3)
    before = dict(net.named_parameters())
    zeros = {k: engine.zeros_like(p) for k, p in before.items()}
    assert func.functional_call(net, zeros, x).abs().sum() == 0
    with pytest.raises(RuntimeError):
        func.functional_call(net, {**zeros, "0.weight": engine.zeros(1)}, x)
    assert all(p is before[k] for k, p in net.named_parameters())


STATES = """
{'scale': t.full((2,), 5.0)}
{'late': t.full((2,), 5.0)}
{'w': t.full((2,), 5.0), 'count': t.ones(())}
({'w': t.full((2,), 5.0)}, {'count': t.ones(())})
{'w': None, 'count': t.ones(())}
{'w': t.nn.Parameter(t.full((2,), 5.0)), 'scale': None}
""".strip().splitlines()


@pytest.mark.parametrize("state", STATES)
def test_functional_call_takes_attributes_and_gives_back_what_forward_leaves_in_them(state):
    torch = pytest.importorskip("torch")

    def run(t):
        class Model(t.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = t.nn.Parameter(t.ones(2))
                self.scale = t.ones(2)
                self.register_buffer("count", t.zeros(()))

            def forward(self, x):
                self.count = self.count + 1
                for name in ("w", "scale", "late"):
                    x = x if getattr(self, name, None) is None else x * getattr(self, name)
                return x

        model, given = Model(), eval(state, {"t": t})
        out = (func if t is engine else t.func).functional_call(model, given, t.ones(2))
        dicts = given if isinstance(given, tuple) else [given]
        after = {k: v is None or v.tolist() for d in dicts for k, v in d.items()}
        own = [model.w.tolist(), model.scale.tolist(), model.count.tolist(), hasattr(model, "late")]
        return out.tolist(), after, own, type(model.w) is t.nn.Parameter

    assert run(engine) == run(torch)


def test_gradients_with_batch_norm_update_the_buffers_that_are_given():
    torch = pytest.importorskip("torch")

    def run(t):
        norm, x = t.nn.BatchNorm1d(3).double(), t.tensor(M)
        params, buffers = dict(norm.named_parameters()), dict(norm.named_buffers())
        f = func if t is engine else t.func
        loss = lambda p, b, x: (f.functional_call(norm, (p, b), (x,)) ** 3).sum()  # noqa: E731
        found = f.grad(loss)({k: p.detach() for k, p in params.items()}, buffers, x)
        return [a.detach().numpy() for a in (*found.values(), *buffers.values())]

    for ours, theirs in zip(run(engine), run(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-9, 1e-12)


def test_functional_call_replaces_tied_parameters():
    net = engine.nn.Module()
    net.a = engine.nn.Linear(2, 2, bias=False)
    net.b = engine.nn.Linear(2, 2, bias=False)
    net.b.weight = net.a.weight
    net.forward = lambda x: net.a(x) + net.b(x)
    x, zeros = engine.ones(1, 2), engine.zeros(2, 2)
    assert func.functional_call(net, {"a.weight": zeros}, x).abs().sum() == 0
    assert func.functional_call(net, {"a.weight": zeros}, x, tie_weights=False).abs().sum() > 0
    with pytest.raises(ValueError, match="functional_call got multiple values for keys"):
        func.functional_call(net, {"a.weight": zeros, "b.weight": zeros + 1}, x)


def test_ensemble_by_stacked_states():
    nets, x = [model() for _ in range(3)], engine.randn(5, 3)
    params, buffers = func.stack_module_state(nets)
    ours = func.vmap(lambda p, b: func.functional_call(nets[0], (p, b), x))(params, buffers)
    assert ours.requires_grad and buffers == {}
    np.testing.assert_allclose(ours.detach(), engine.stack([n(x) for n in nets]).detach(), 1e-5, 1e-6)


def test_per_sample_gradients_of_a_convolution():
    x, w = engine.randn(4, 1, 5, 5), engine.randn(2, 1, 3, 3)
    f = lambda w, x: engine.nn.functional.conv2d(x, w, padding=1).tanh().sum()  # noqa: E731
    ours = func.vmap(func.grad(f), (None, 0))(w, x)
    np.testing.assert_allclose(ours, engine.stack([func.grad(f)(w, a) for a in x]), 1e-4, 1e-5)


def test_threads_have_levels_of_their_own():
    barrier, results = threading.Barrier(4), {}

    def work(k):
        x = engine.tensor(M * k)

        def f(r):
            barrier.wait(120)
            return (r**3).sum()

        results[k] = func.vmap(func.grad(f))(x), func.jacfwd(lambda a: a * a[0])(x[0])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(1, 5):
        np.testing.assert_allclose(results[k][0], 3 * (M * k) ** 2)


def test_the_timed_derivatives_are_right():
    derivatives = pytest.importorskip("benchmarks.derivatives")
    by_rows, by_columns = (derivatives.jacobian(engine, mode, 5, 7)() for mode in ("jacrev", "jacfwd"))
    np.testing.assert_allclose(by_rows, by_columns, 1e-4, 1e-6)
    for a, b in zip(derivatives.per_sample(engine, True)(), derivatives.per_sample(engine, False)(), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-6)
    assert derivatives.hessian_product(engine)().shape == derivatives.gradient(engine)().shape
    assert len(list(derivatives.curve(1))) == len(derivatives.OUTPUTS) + 3


# ---- identities

OPERATIONS = [
    lambda x: x.tanh(),
    lambda x: x * x,
    lambda x: x.exp() / 4,
    lambda x: (x * x + 1).log(),
    lambda x: x @ engine.tensor(W),
    lambda x: x.softmax(0),
    lambda x: x.flip(0) * x,
    lambda x: x.cumsum(0),
    lambda x: x - x.mean(),
    lambda x: engine.stack([x[0] * x[1], x[2].sin(), x.sum()]),
    lambda x: engine.where(x > 0, x * 2, x * x),
]
numbers = st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=3, max_size=3).map(
    lambda xs: engine.tensor(xs, dtype=engine.float64)
)
chains = st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4)


def chained(operations):
    def f(x):
        for op in operations:
            x = op(x)
        return x

    return f


def close(a, b):
    assume(bool(b.isfinite().all()))  # identities hold as far as the numbers reach
    scale = 1 + max(float(a.abs().max()), float(b.abs().max()))
    return float((a - b).abs().max()) <= 1e-9 * scale


@settings(max_examples=60)
@given(chains, numbers, numbers, numbers)
def test_products_from_both_sides_agree(chain, x, a, b):
    f = chained(chain)
    assert close((a * func.jvp(f, (x,), (b,))[1]).sum(), (func.vjp(f, x)[1](a)[0] * b).sum())


@settings(max_examples=60)
@given(chains, numbers)
def test_jacobians_of_both_modes_agree(chain, x):
    f = chained(chain)
    assert close(func.jacrev(f)(x), func.jacfwd(f)(x))


@settings(max_examples=40)
@given(chains, numbers, numbers)
def test_hessian_is_symmetric_and_gives_the_product(chain, x, b):
    f = lambda x: chained(chain)(x).sum()  # noqa: E731
    h = func.hessian(f)(x)
    assert close(h, h.t())
    assert close(h @ b, func.jvp(func.grad(f), (x,), (b,))[1])
    assert close(h @ b, engine.autograd.functional.hvp(f, x, b)[1])


@settings(max_examples=40)
@given(chains, numbers, numbers, numbers, st.floats(-3, 3))
def test_products_are_linear(chain, x, a, b, c):
    f = chained(chain)
    push = lambda t: func.jvp(f, (x,), (t,))[1]  # noqa: E731
    pull = lambda g: func.vjp(f, x)[1](g)[0]  # noqa: E731
    for product in (push, pull):
        assert close(product(a * c + b), product(a) * c + product(b))


@settings(max_examples=40)
@given(chains, chains, numbers, numbers)
def test_chain_rule(first, second, x, t):
    f, g = chained(first), chained(second)
    y, dy = func.jvp(f, (x,), (t,))
    assert close(func.jvp(lambda x: g(f(x)), (x,), (t,))[1], func.jvp(g, (y,), (dy,))[1])


@settings(max_examples=40)
@given(chains, st.lists(numbers, min_size=1, max_size=4))
def test_vmap_is_the_loop(chain, xs):
    f = chained(chain)
    assert close(func.vmap(f)(engine.stack(xs)), engine.stack([f(x) for x in xs]))
    assert close(func.vmap(func.jacrev(f))(engine.stack(xs)), engine.stack([func.jacrev(f)(x) for x in xs]))


@pytest.mark.parametrize("call, x", [
    ("t.equal(x, x)", [[1.0, 2.0]]), ("t.allclose(x, x)", [[1.0, 2.0]]), ("t.narrow(t.ones(2), 0, x, 1)", [0, 1]),
])  # fmt: skip
def test_what_vmap_has_no_rule_for_names_itself(call, x):
    torch = pytest.importorskip("torch")
    said = []
    for t in (engine, torch):
        with pytest.raises(RuntimeError) as error:
            t.func.vmap(lambda x, t=t: eval(call, {"t": t, "x": x}))(t.tensor(x))
        said.append(str(error.value).splitlines()[0])
    assert said[0] == said[1]


def test_bincount_of_samples_is_not_there():
    with pytest.raises(NotImplementedError, match="^vmap: bincount"):
        engine.func.vmap(engine.bincount)(engine.ones(2, 3).long())
