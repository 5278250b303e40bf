"""Matrix products and what is composed of them, einsum, and linear systems, as PyTorch computes them."""

import itertools

import numpy as np
import pytest
from against_torch import cases, chain, check_derivatives, compare, compare_errors, run
from over_tables import over

import engine

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


INPUTS = {
    "u": normal(3), "v": normal(3), "m": normal(2, 3), "n": normal(3, 2), "p": normal(2, 2),
    "a": normal(2, 2, 3), "b": normal(2, 3, 2), "b1": normal(1, 3, 2), "a1": normal(1, 2, 3), "c": normal(4, 2, 2, 3),
    "q": normal(3, 3) + 2 * np.eye(3, dtype=np.float32), "qs": normal(2, 3, 3) + 2 * np.eye(3, dtype=np.float32),
    "z": np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]], np.float32),  # of rank 2
    "e": np.zeros((0, 3), np.float32), "s": np.array(2.0, np.float32),
}  # fmt: skip
INTEGERS = {
    "i": np.arange(6).reshape(2, 3), "j": np.arange(6).reshape(3, 2), "k": np.array([1, 2, 3]),
    "u8": np.array([[200, 100], [3, 4]], np.uint8), "d": rng.normal(size=(3, 2)), "x": normal(2, 3), "y": normal(3),
    "h": normal(40, 50), "g": normal(50, 30), "b": np.array([[True, False], [True, True]]), "a": normal(2, 3, 2),
    "s": np.array(2.0, np.float32), "zero": np.zeros((2, 2), np.float32), "eye": np.eye(2, dtype=np.float32),
}  # fmt: skip

PRODUCTS = cases("""
m @ n
m @ u
u @ v
u @ n
a @ n
a @ u
m @ b
u @ b
a @ b
a1 @ b
a @ b1
c @ b
c @ n
c @ u
m @ c.mT
e @ n
n.t() @ m.t()
a.mT @ a
a.detach() @ n
a.detach() @ u
a.detach() @ b
a @ b.detach()
a @ n.detach()
a @ u.detach()
a.transpose(0, 1) @ u.detach()
m @ b.detach()
m.detach() @ b
u.detach() @ b
u @ b.detach()
a1 @ b.detach()
a.transpose(0, 1) @ n.detach()
a.transpose(0, 1) @ n
m.detach() @ n.detach()
torch.matmul(m, n)
torch.mm(m, n)
m.mm(n)
torch.bmm(a, b)
a.bmm(b)
m.mv(u)
u.dot(v)
torch.dot(u, u)
torch.inner(u, v)
torch.inner(m, u)
m.inner(a)
m.inner(s)
torch.outer(u, v)
u.ger(v)
torch.addmm(u[:2], m, n)
torch.addmm(p, m, n, beta=0.5, alpha=2)
torch.addmm(s, m, n)
p.addmm(m, n, beta=0)
torch.addmv(u[:2], m, v)
torch.baddbmm(p, a, b, alpha=-1)
torch.tensordot(m, n, 1)
torch.tensordot(m, n, dims=([0], [1]))
torch.tensordot(a, b, dims=([1, 2], [2, 1]))
torch.tensordot(a, a1, dims=([0], [0]))
torch.tensordot(u, v, 0)
torch.tensordot(u, v, 1)
torch.tensordot(m, m, 2)
torch.tensordot(m, n, torch.tensor(1))
torch.tensordot(m, n, torch.tensor([1]))
torch.tensordot(m, n, torch.tensor([[0], [1]]))
torch.trace(q)
m.trace()
n.trace()
""")

EINSUMS = cases("""
torch.einsum('ij,jk->ik', m, n)
torch.einsum('ij,jk', m, n)
torch.einsum('ij->ji', m)
torch.einsum('ba', m)
torch.einsum('ij->', m)
torch.einsum('ij->i', m)
torch.einsum('ij', m)
torch.einsum('ii->i', q)
torch.einsum('ii', q)
torch.einsum('iij->j', qs.transpose(0, 2))
torch.einsum('bij,bjk->bik', a, b)
torch.einsum('bij,jk->bik', a, n)
torch.einsum('i,j->ij', u, v)
torch.einsum('i,i->', u, v)
torch.einsum('i,i', u, u)
torch.einsum('ij,ij->', m, m)
torch.einsum('ij,ij->ij', m, m)
torch.einsum('ij,j->i', m, u)
torch.einsum('ij,jk,kl->il', m, n, p)
torch.einsum('bn,anm,bm->ba', m, n.reshape(1, 3, 2), p)
torch.einsum('...ij->...ji', a)
torch.einsum('...ij,...jk->...ik', c, b)
torch.einsum('...i,i->...', a, u)
torch.einsum('i...->...', m)
torch.einsum('...,...->...', a, m)
torch.einsum('bij, bij -> b', a, a1)
torch.einsum('ijk,ik->j', a, m)
torch.einsum('i j , j k -> i k', m, n)
torch.einsum('Ab,bC->AC', m, n)
torch.einsum('ij,kj->', m, p @ m)
torch.einsum(m, [0, 1], n, [1, 2], [0, 2])
torch.einsum(m, [0, 1], [1, 0])
torch.einsum('ij,jk->ik', [m, n])
""")

SQUARE = cases("""
torch.inverse(q)
torch.linalg.inv(qs)
q.inverse()
torch.linalg.solve(q, u)
torch.linalg.solve(q, n)
torch.linalg.solve(qs, b)
torch.linalg.solve(qs, n)
torch.linalg.solve(qs, m)
torch.linalg.solve(q, b)
torch.linalg.solve(q, m, left=False)
torch.det(q)
q.det()
torch.linalg.det(qs)
torch.slogdet(q)[1]
torch.linalg.slogdet(qs)[1]
torch.linalg.norm(m)
torch.linalg.norm(m, dim=1)
torch.linalg.norm(m, 3, 1)
torch.linalg.norm(u, 1)
torch.linalg.norm(m, 'fro')
torch.linalg.norm(m, 1)
torch.linalg.norm(m, -1, keepdim=True)
torch.linalg.norm(m, inf)
torch.linalg.norm(a, -inf, (0, 2))
torch.linalg.matrix_norm(a)
torch.linalg.matrix_norm(a, 1)
torch.linalg.matrix_norm(a, inf, keepdim=True)
torch.linalg.matrix_norm(c, 1, (1, 0))
torch.linalg.matrix_norm(torch.zeros(0, 0), 1)
torch.linalg.matrix_norm(torch.zeros(2, 0, 3), 2, keepdim=True)
torch.linalg.matrix_norm(torch.zeros(0, 3), inf)
torch.linalg.svdvals(m, driver=None)
torch.norm(m, 'nuc')
torch.norm(a, 'fro', dim=(0, 1))
""")

OTHER_TYPES = cases("""
i @ j
i @ k
k @ k
torch.bmm(i[None], j[None])
u8 @ u8
torch.addmm(i[:, 0], i, j)
torch.addmm(i[:, 0], i, j, beta=0.5)
torch.outer(k, y)
torch.trace(i)
torch.einsum('ij,jk->ik', i, j)
torch.tensordot(i, j, 1)
h.half() @ g.half()
h.bfloat16() @ g.bfloat16()
torch.addmm(g[0].half(), h.half(), g.half())
h.half().mv(g[:, 0].half())
g[:, 0].bfloat16().dot(g[:, 1].bfloat16())
torch.bmm(h[None].half(), g[None].half())
""")

ERRORS = cases("""
x @ x
x @ y[:2]
y @ y[:2]
y @ x
a @ d.float()
a[:1].expand(3, 3, 2) @ a.mT
a @ y
s @ x
x @ s
x @ 3
3 @ x
torch.matmul(x, 3)
x @ d
y @ d[:, 0]
x @ d[:, 0]
y @ d
x[None] @ d
x[None] @ d[None]
i @ j.float()
b @ b
b[0] @ b[0]
b @ b[0]
torch.mm(y, x)
torch.mm(x, y)
torch.mm(x[None], x)
torch.bmm(x, x)
torch.bmm(a, x)
torch.bmm(a, a)
torch.bmm(x[None], d[None])
torch.addbmm(eye, a.mT, a[:1])
torch.addbmm(torch.ones(7, 9), a.mT, a[:1])
torch.addbmm(torch.ones(2, 3, 4), torch.ones(2, 3, 5), torch.ones(2, 6, 4))
torch.addbmm(torch.ones(1, 1), torch.ones(1, 1), torch.ones(2, 3, 1))
torch.addbmm(torch.ones(1, 1), torch.ones(2, 1, 3), torch.ones(1, 1))
torch.baddbmm(torch.ones(7, 9), torch.ones(2, 3, 5), torch.ones(3, 5, 4))
torch.baddbmm(torch.ones(3, 4), torch.ones(2, 3, 5), torch.ones(3, 5, 4))
torch.baddbmm(torch.ones(7, 9), torch.ones(2, 3, 5), torch.ones(5, 4))
torch.addmv(torch.ones(7), torch.ones(3, 5), torch.ones(5))
torch.addmv(torch.ones(3), torch.ones(3, 5), torch.ones(6))
torch.addmv(torch.ones(1, 3), torch.ones(3, 5), torch.ones(5))
torch.mv(x, x)
torch.mv(y, y)
torch.mv(x, y[:2])
torch.mv(x[:, :0], y)
torch.dot(x, x)
torch.dot(y, y[:2])
torch.inner(x, x[:, :2])
torch.inner(y, d[:, 0])
torch.outer(x, x)
torch.addmm(y, x, d.float())
torch.addmm(y[:2], x, x)
torch.addmm(a, x, d.float())
torch.addmm(y[:2], y, d.float())
torch.addmm(y[:2].double(), x, d.float())
torch.addmm(y[:2], x.double(), d.float())
torch.einsum('ij,jk->iz', x, d.float())
torch.einsum('ij,jk->ik', x, x)
torch.einsum('ij->ij', a)
torch.einsum('ijk->ij', x)
torch.einsum('ij,jk->ik', x)
torch.einsum('ij->ij', x, x)
torch.einsum('ij->ik', x)
torch.einsum('i1->i', x)
torch.einsum('ij->ii', x)
torch.einsum('ii->i', x)
torch.einsum('i...j...', x)
torch.einsum('i.j', x)
torch.einsum('ij,j1->i', x, x)
torch.einsum('ij->1', x)
torch.einsum('ij->->j', x)
torch.einsum('')
torch.einsum(x)
torch.tensordot(x, x, ([1], [0]))
torch.tensordot(x, x, -1)
torch.tensordot(x, x, 3)
torch.tensordot(x, x, ([1, 0], [1]))
torch.tensordot(x, x, torch.tensor([0, 1, 1]))
torch.tensordot(x, x, torch.tensor(-1))
torch.einsum(x, [0, 60])
torch.einsum(x, [0, -1])
torch.linalg.svdvals(x, driver='gesvd')
torch.trace(y)
torch.inverse(x)
torch.inverse(y)
torch.inverse(eye.half())
torch.inverse(eye.long())
torch.linalg.inv(a)
torch.linalg.solve(zero, y[:2])
torch.linalg.solve(eye, y)
torch.linalg.solve(eye, x.T)
torch.linalg.solve(eye, y[:2], left=False)
torch.linalg.solve(eye[:1, :1], y[:1], left=False)
torch.linalg.solve(eye, y[:2].double())
torch.linalg.solve(x, y)
torch.det(x)
torch.det(eye.long())
torch.linalg.norm(y, 'fro')
torch.norm(a, 'nuc')
torch.norm(x, 'nuc', dim=1)
torch.norm(a, 'fro', dim=(0, 1, 2))
torch.norm(x, 'inf')
torch.linalg.norm(x, 3)
torch.linalg.norm(x, 0)
torch.linalg.norm(a, 1)
torch.linalg.norm(i)
torch.linalg.norm(x, dtype=torch.int64)
torch.linalg.norm(x, 3, dim=1, dtype=torch.float16)
torch.linalg.vector_norm(x, dtype=torch.int32)
torch.linalg.vector_norm(x.half(), dtype=torch.bfloat16)
torch.linalg.matrix_norm(x.double(), dtype=torch.float32)
torch.linalg.matrix_norm(x, 1, dtype=torch.int64)
torch.linalg.vector_norm(x, 'fro')
torch.linalg.matrix_norm(y)
torch.linalg.matrix_norm(x, 'foo')
torch.linalg.matrix_norm(x, 3)
torch.linalg.matrix_norm(torch.zeros(0, 3), -inf, keepdim=True)
torch.linalg.matrix_norm(torch.zeros(0, 3), -2)
""")


@over("expression", PRODUCTS + EINSUMS + SQUARE)
def test_like_pytorch(expression):
    torch = pytest.importorskip("torch")
    torch.backends.opt_einsum.enabled = False  # without that package, which searches for a better order, left to right
    compare(expression, INPUTS, tolerance=1e-4)


@over("expression", [c for c in PRODUCTS + EINSUMS + SQUARE if "detach" not in c])
def test_derivatives(expression):
    check_derivatives(expression, INPUTS)


@over("expression", OTHER_TYPES)
def test_integers_and_half_precision_like_pytorch(expression):
    pytest.importorskip("torch")
    half = "half" in expression or "bfloat16" in expression
    compare(expression, INTEGERS, second=False, tolerance=2e-2 if half else None)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "product", ["F.linear(x, w, b)", "torch.addmm(b, x, w.T)", "torch.baddbmm(b, x[None], w.T[None])"]
)
def test_a_sum_with_a_product_of_half_precision_is_rounded_once(product, dtype):
    rng = np.random.default_rng(0)
    data = {"x": rng.standard_normal((16, 24)), "w": rng.standard_normal((8, 24)), "b": rng.standard_normal(8)}
    halves = {k: engine.tensor(v, dtype=getattr(engine, dtype)) for k, v in data.items()}
    names = {"torch": engine, "F": engine.nn.functional}
    exact = eval(product, names, {k: t.double() for k, t in halves.items()}).to(getattr(engine, dtype))
    assert (eval(product, names, halves) != exact).float().mean() < 0.02  # float32 in between; in two steps: 0.15


@over("expression", ERRORS)
def test_errors_like_pytorch(expression):
    pytest.importorskip("torch")
    compare_errors(expression, INTEGERS)


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    check_derivatives("torch.det(z)", {"z": INPUTS["z"]})


@pytest.mark.parametrize("function", ["torch.logdet", "(lambda a: torch.linalg.slogdet(a)[1])"])
def test_the_gradient_of_a_log_determinant_is_not_finite_where_the_matrix_is_singular(function):
    torch = pytest.importorskip("torch")
    singular = [[1.0, 2.0], [2.0, 4.0]]
    for values in (singular, [singular, [[2.0, 1.0], [1.0, 3.0]]]):
        found = []
        for t in (engine, torch):
            x = t.tensor(values, requires_grad=True)
            eval(function, {"torch": t})(x).sum().backward()
            found.append(x.grad.tolist())
        np.testing.assert_allclose(*found, 1e-6)


def test_a_singular_matrix_has_no_inverse():
    with pytest.raises(engine.linalg.LinAlgError, match="linalg.inv: .* the input matrix is singular"):
        engine.inverse(engine.zeros(2, 2))


@over("left, right", itertools.product([True, False], repeat=2))
def test_a_product_saves_an_operand_only_if_the_other_one_needs_a_gradient(left, right):
    x, y = engine.ones(2, 3).requires_grad_(left), engine.ones(3, 2).requires_grad_(right)
    node = (x @ y).grad_fn
    assert (node is None) == (not left and not right)
    if node is not None:
        assert [s is not None for s in node.saved] == [right, left]


def test_float16_products_are_accumulated_in_float32():
    n = 4096  # partial sums above 2048 have no room for a 1 in float16
    x = engine.ones(1, n, dtype=engine.float16)
    assert (x @ x.t()).item() == n


@pytest.mark.parametrize("equation", ["bij,bjk,bkl->il", "ij,jk,kj->i", "aab,bc->ac"])
def test_einsum_agrees_with_numpy(equation):
    operands = [rng.normal(size=(2,) * len(part)) for part in equation.split("->")[0].split(",")]
    result = engine.einsum(equation, *map(engine.tensor, operands))
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *operands), 1e-12)


def test_foreign_operands_get_their_turn():
    class Other:
        def __rmatmul__(self, other):
            return "mine"

    assert engine.ones(2, 2) @ Other() == "mine"


def test_plain_arrays_for_rules():
    assert chain(run("engine", "m @ n", INPUTS)[0].grad_fn)[0] == "MmBackward0"
    assert isinstance(engine.ops.linalg.mm(np.eye(2), np.eye(2)), np.ndarray)


@pytest.mark.parametrize("name", ["beta", "alpha"])
def test_factors_of_a_product_are_numbers(name):
    eye = engine.eye(2)
    with pytest.raises(TypeError, match=rf"^addmm\(\): argument '{name}' must be Number, not str$"):
        engine.addmm(eye, eye, eye, **{name: "2"})
