"""Reductions: sums, products, moments, extremes, norms, running sums and counts, as PyTorch computes them."""

import numpy as np
import pytest
from against_torch import cases, check_derivatives, compare, compare_errors, run
from over_tables import over

import engine

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")

rng = np.random.default_rng(0)
INPUTS = {
    "x": rng.normal(size=(2, 3, 4)).astype(np.float32),  # all different
    "s": np.array(1.5, np.float32),
    "e": np.zeros((0, 3), np.float32),
}
TIES = {
    "t": np.array([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [-1.0, 0.0, 0.0, -1.0]], np.float32),
    "n": np.array([[1.0, np.nan, 3.0, np.nan], [1.0, 2.0, 0.0, -np.inf]], np.float32),
    "z": np.array([[0.0, 0.0, 0.0], [0.0, 2.0, -3.0]], np.float32),
    "m": np.full((2, 2), -np.inf, np.float32),
    "p": np.array([[np.inf, 1.0], [np.inf, np.inf]], np.float32),
}
OTHERS = {
    "i": np.array([[3, 0, -2, 3], [1, 1, 0, 5]], np.int64),
    "b": np.array([[True, False, True], [True, True, True]]),
    "u": np.array([[200, 100, 0], [1, 2, 3]], np.uint8),
    "i8": np.array([[100, 100, -3], [0, 0, 1]], np.int8),
    "i32": np.array([[3, 0, 2], [7, 1, 1]], np.int32),
    "c": np.array([1, 0, 3, 1, 1], np.int64),
    "w": np.array([0.5, 1.0, 2.0, 3.0, 4.0], np.float32),
    "e": np.zeros((0, 3), np.float32),
    "l": np.zeros(0, np.int64),
    "x": rng.normal(size=(2, 3)).astype(np.float32),
    "s": np.array(4),
}

SMOOTH = cases("""
x.sum()
x.sum(1)
x.sum(-1, True)
torch.sum(x, dim=(0, 2))
x.sum((0, 1, 2), keepdim=True)
x.sum(axis=0, keepdims=True)
x.sum(None, True)
x.sum([])
s.sum()
s.sum(0)
s.sum(-1, keepdim=True)
e.sum()
e.sum(0)
x.mean()
x.mean(1)
x.mean((0, 2), True)
torch.mean(x, 0)
s.mean()
s.mean(0)
e.mean()
e.mean(0)
x.var()
x.var(1)
x.var(1, False)
x.var(False)
x.var((0, 2), correction=0, keepdim=True)
x.var(correction=5)
x.var(dim=None, correction=2)
s.var(correction=0)
x.std()
x.std(1, True, True)
x.std((1, 2), correction=3)
torch.var_mean(x, 1)
torch.std_mean(x, dim=(0, 1), correction=0, keepdim=True)
torch.std_mean(x)
x.prod()
x.prod(1)
torch.prod(x, -1, keepdim=True)
s.prod()
s.prod(0)
e.prod()
e.prod(0)
x.logsumexp(1)
torch.logsumexp(x, (0, 2))
x.logsumexp(-1, keepdim=True)
s.logsumexp(0)
e.logsumexp(0)
x.norm()
x.norm(1)
x.norm(3)
x.norm(1.5, 1)
x.norm(p=inf, dim=2)
x.norm(-inf)
x.norm(-2, 0)
x.norm(dim=(0, 1), keepdim=True)
x.norm('fro', dim=1)
torch.norm(x, 2, -1, True)
s.norm()
e.norm()
torch.linalg.vector_norm(x)
torch.linalg.vector_norm(x, 0.5, 1)
torch.linalg.vector_norm(x, 4, (0, 2), keepdim=True)
torch.linalg.vector_norm(x, -inf, 1)
x.max()
x.max(1)
x.max(-1, True)
x.max(dim=0).values
torch.max(x, 2, keepdim=True)
x.max(axis=1)
x.max(x * x)
torch.max(x, other=x * 2)
s.max()
s.max(0)
x.min()
x.min(1)
torch.min(x, -x)
x.amax()
x.amax(1)
x.amax((0, 2), True)
x.amin(dim=-1)
x.amin(())
x.aminmax()
x.aminmax(dim=1, keepdim=True)
x.median()
x.median(1)
x.median(-1, keepdim=True)
s.median()
s.median(0)
x.cumsum(0)
x.cumsum(-1)
s.cumsum(0)
e.cumsum(0)
x.cumprod(1)
s.cumprod(0)
""")

SPECIAL = cases("""
t.max()
t.min()
t.max(1)
t.min(0)
t.amax()
t.amax(1)
t.amin((0, 1), True)
t.median()
t.median(1)
t.median(0)
t.norm(inf)
t.norm(inf, 1)
t.norm(0)
t.norm(0, 1)
t.norm(1)
t.std(1)
t.aminmax()
t.aminmax(dim=1)
n.max()
n.min()
n.max(1)
n.amax(1)
n.amin()
n.median()
n.median(1)
n.norm()
n.sum(1)
n.logsumexp(1)
z.prod()
z.prod(0)
z.prod(1)
z.cumprod(0)
z.cumprod(1)
z.norm(2, 1)
z.norm(3, 1)
z.norm(1.5)
z.norm(2, 0)
m.logsumexp(0)
m.max(1)
p.logsumexp(1)
p.norm()
""")

EXACT = cases("""
i.sum()
i.sum(1)
i.sum(dtype=torch.int32)
i.sum(0, dtype=torch.float32)
b.sum()
b.sum(0)
u.sum()
i8.sum(0)
i32.sum()
i32.sum(1)
s.sum()
x.detach().sum(dtype=torch.int64)
i.prod()
b.prod()
u.prod(1)
i8.prod(1)
i.mean(dtype=torch.float64)
i.max()
i.max(1)
i.min(0)
b.max()
b.max(1)
b.amin(0)
u.amax()
i.median()
i.median(1)
i32.aminmax()
x.argmax()
x.argmax(1)
x.argmin(-1, True)
x.argmax(keepdim=True)
torch.argmax(x, dim=0)
i.argmax(1)
i.argmin()
s.argmax()
s.argmin(0)
e.argmax(1)
e.max(1)
e.amax(1)
e.median(1)
i.logsumexp(0)
b.all()
b.all(1)
b.any((0, 1))
b.any(dim=())
b.all(-1, True)
x.all()
x.any(0)
u.all()
u.all(1)
u.any(0)
i.all((0, 1))
e.all()
e.any()
e.all(0)
e.any(1)
torch.all(i, 1)
x.count_nonzero()
i.count_nonzero(0)
i.count_nonzero((0, 1))
i.cumsum(1)
b.cumsum(0)
u.cumsum(1)
i8.cumsum(0)
i.cumsum(0, dtype=torch.float64)
i.cumprod(1)
b.cumprod(0)
s.cumsum(0)
c.bincount()
c.bincount(minlength=7)
c.bincount(w.detach())
torch.bincount(c, weights=w.detach().double(), minlength=2)
c.bincount(weights=c)
l.bincount()
l.bincount(minlength=2)
""")

LOW = cases("""
x.half().sum()
x.bfloat16().sum(1)
x.half().mean()
x.bfloat16().mean(0)
x.half().var(1)
x.bfloat16().std()
x.half().norm()
x.bfloat16().norm(1, 1)
x.half().max(1)
x.bfloat16().max()
x.bfloat16().max(0)
x.bfloat16().median(1)
x.half().logsumexp(1)
x.bfloat16().logsumexp(1)
x.half().cumsum(1)
x.bfloat16().cumprod(1)
x.half().prod()
x.bfloat16().amin(1)
x.half().argmax(1)
x.bfloat16().argmin()
x.double().sum()
x.sum(dtype=torch.float64)
x.sum(1, dtype=torch.float64)
x.mean(dtype=torch.float64)
x.prod(1, dtype=torch.float64)
x.cumsum(0, dtype=torch.float64)
x.norm(dtype=torch.float64)
""")

ERRORS = cases("""
x.sum(2)
x.sum(-3)
x.sum((0, 0))
x.sum((0, 5))
s.sum(1)
torch.sum([1, 2])
x.sum(0, 1)
x.max(1, foo=1)
i.mean()
i.mean(1)
x.mean(dtype=torch.int64)
i.var()
i.std(1)
i.norm()
x.norm('foo')
x.norm(dtype=torch.int64)
x.norm(dtype=torch.float16)
x[0, 0].norm('nuc')
torch.linalg.vector_norm(e, inf)
torch.linalg.vector_norm(e, -1)
torch.linalg.vector_norm(e, inf, dim=0)
e.max()
e.min()
e.max(0)
e.amax()
e.amin(0)
e.argmax()
e.argmin(0)
e.median(0)
b.argmax()
b.median()
x.argmax(2)
x.median(2)
x.max(2)
x.cumsum(2)
c.view(1, 5).bincount()
(-c).bincount()
w.bincount()
x.sum(dtype=torch.int64)
x.prod(1, dtype=torch.int8)
x.cumsum(0, dtype=torch.int64)
c.bincount(x.detach())
c.bincount(minlength=-1)
""")


@over("expression", SMOOTH)
def test_like_pytorch(expression):
    pytest.importorskip("torch")
    compare(expression, INPUTS)


@over("expression", SPECIAL)
def test_ties_nans_and_zeros_like_pytorch(expression):
    pytest.importorskip("torch")
    compare(expression, TIES, second="norm" not in expression and "std" not in expression)


@over("expression", EXACT)
def test_integers_and_counts_like_pytorch(expression):
    pytest.importorskip("torch")
    compare(expression, OTHERS)


@over("expression", LOW)
def test_other_floating_types_like_pytorch(expression):
    pytest.importorskip("torch")
    compare(
        expression,
        OTHERS,
        second=False,
        tolerance=2e-2 if "bf" in expression else 4e-3 if "half" in expression else None,
    )


@over("expression", ERRORS)
def test_errors_like_pytorch(expression):
    pytest.importorskip("torch")
    compare_errors(expression, OTHERS)


@over("expression", [c for c in SMOOTH if "e." not in c])
def test_derivatives(expression):
    check_derivatives(expression, {k: INPUTS[k] for k in "xs"})


@pytest.mark.parametrize("expression", ["z.prod()", "z.prod(0)", "z.prod(1)", "z.cumprod(0)", "z.cumprod(1)"])
def test_derivatives_of_products_with_zeros(expression):
    check_derivatives(expression, {"z": TIES["z"]})


def test_named_results_unpack_and_print():
    result, _ = run("engine", "x.max(1)", OTHERS)
    largest, where = result
    assert largest is result.values and where is result.indices
    assert repr(result) == f"torch.return_types.max(\nvalues={largest!r},\nindices={where!r})"


@pytest.mark.parametrize(
    "expression", ["x.var(correction=6)", "t.var(correction=13)", "x.std(1, correction=3)", "s.var(unbiased=True)"]
)
def test_no_degrees_of_freedom_warn_and_give_what_pytorch_gives(expression):
    pytest.importorskip("torch")
    inputs = {"x": OTHERS["x"], "s": INPUTS["s"], "t": TIES["t"]}
    compare(expression, inputs, second=False)
    with pytest.warns(UserWarning, match=r"degrees of freedom is <= 0"):
        run("engine", expression, inputs)


@pytest.mark.parametrize("expression", ["x.mean()", "x.mean(0)", "engine.var_mean(x, 0)[1]"])
def test_the_gradient_of_the_mean_of_more_elements_than_float16_counts(expression):
    t = engine.ones(1, dtype=engine.float16, requires_grad=True)
    eval(expression, {"engine": engine, "x": t.expand(80000)}).backward()
    assert abs(t.grad.item() - 1) < 0.01


def test_sum_to_plain_arrays_for_rules():
    assert engine.sum(np.ones((2, 3)), 0).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_sums_that_overflow_are_inf_without_a_word(dim):
    x = engine.full((3, 2), 3e38)
    for result in (x.sum(dim), x.mean(dim)):
        assert (result == float("inf")).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [engine.float32, engine.float16, engine.bfloat16], ids=str)
@pytest.mark.parametrize("dim", [None, 0])
def test_the_sum_of_inf_and_minus_inf_is_nan_without_a_word(dim, dtype):
    x = engine.tensor([[float("inf")], [-float("inf")]], dtype=dtype)
    for result in (x.sum(dim), x.mean(dim)):
        assert result.isnan().all()
