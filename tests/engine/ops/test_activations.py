"""More activations and kinds of dropout: as PyTorch's, with gradients, at the edges and in half precision."""

import numpy as np
import pytest
from against_torch import cases, check_derivatives, compare, compare_errors
from over_tables import over

import engine
import engine.nn.functional as F

rng = np.random.default_rng(0)
INPUTS = {
    "x": rng.normal(size=(3, 4, 6)) * 3, "s": rng.normal(size=4), "w": np.array([0.1, -0.2, 0.3, 1.5]),
    "one": np.array([0.25]), "edge": np.array([-6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 40.0, -40.0]),
    "im": rng.normal(size=(2, 3, 4, 4)), "g": rng.normal(size=6),
}  # fmt: skip

SMOOTH = cases("""
F.prelu(x, w)
F.prelu(x, one)
F.prelu(s, one)
F.mish(x)
F.hardswish(x)
F.hardsigmoid(x)
F.celu(x)
F.celu(x, 0.3)
F.glu(x)
F.glu(x, 1)
F.hardshrink(x)
F.hardshrink(x, 1.5)
F.softshrink(x)
F.softshrink(x, 0.2)
F.threshold(x, 0.1, 20.0)
F.rms_norm(x, (6,), g)
F.rms_norm(x, (4, 6), eps=0.1)
x.prelu(one) + torch.celu(x) + torch.prelu(x, w) + x.hardshrink()
torch.threshold(x, 0.1, 2) + torch.hardshrink(x, 0.2) + torch.rms_norm(x, (6,))
""")
CASES = SMOOTH + cases("""
F.prelu(x[0, 0], one)
F.prelu(x[0, 0, 0], one)
F.prelu(x[0], w[:1])
F.mish(x * 1, inplace=True)
F.silu(x * 1, 64)
F.hardtanh(x * 1, -1.0, 1.0, 64)
F.hardswish(x * 1, inplace=True)
F.hardsigmoid(x * 1, inplace=True)
F.celu(x * 1, 0.5, inplace=True)
F.threshold(x * 1, 0.1, 20.0, inplace=True)
F.mish(edge)
F.hardswish(edge)
F.hardsigmoid(edge)
F.celu(edge)
F.celu(edge, -0.5)
F.hardshrink(edge)
F.softshrink(edge)
F.threshold(edge, 0.5, -1.0)
F.prelu(edge, one)
F.mish(x.float())
F.hardswish(x.half())
F.hardsigmoid(x.bfloat16())
F.celu(x.half(), 0.7)
F.glu(x.bfloat16())
F.softshrink(x.half())
F.rms_norm(x.float(), (6,))
F.rms_norm(x.half(), (6,), g.half())
F.dropout1d(x, 0.3, False)
F.alpha_dropout(x, 0.3)
""")


@over("case", CASES)
def test_an_activation_is_pytorchs(case):
    pytest.importorskip("torch")
    single = any(word in case for word in (".float()", "celu", "hardsigmoid"))  # PyTorch divides in float32 there
    once = case in ONCE or ".half()" in case or ".bfloat16()" in case
    half = ".half()" in case or ".bfloat16()" in case
    compare(case, INPUTS, second=not once, tolerance=0.02 if half else 1e-5 if single else None)


# PyTorch has no second derivative of the one, and another one at 0 of the other
ONCE = cases("""
F.hardsigmoid(x)
F.hardsigmoid(edge)
F.hardsigmoid(x * 1, inplace=True)
F.prelu(edge, one)
""")


@over("case", SMOOTH)
def test_derivatives(case):
    check_derivatives(case, INPUTS)


DROPOUTS = cases("""
F.dropout1d(x, 0.4)
F.dropout1d(x[0], 0.4)
F.dropout2d(im, 0.4)
F.dropout3d(im.unsqueeze(0), 0.4)
F.dropout2d(im * 1, 0.4, inplace=True)
F.dropout1d(x[0] * 1, 0.4, inplace=True)
F.alpha_dropout(x, 0.4, training=True)
F.alpha_dropout(x.transpose(0, 2), 0.4, training=True)
F.alpha_dropout(x * 1, 0.4, True, True)
F.alpha_dropout(x, 1.0, True)
torch.alpha_dropout(x.float(), 0.2, True)
F.dropout2d(im, 1.0)
""")


@over("case", DROPOUTS)
def test_dropout_draws_what_pytorch_draws(case):
    torch = pytest.importorskip("torch")
    engine.manual_seed(3)
    torch.manual_seed(3)
    compare(case, INPUTS, second=False)


ERRORS = cases("""
F.relu(x > 0)
F.relu6(x > 0)
F.glu(x[0, 0, 0])
F.glu(x[:, :, :5])
F.glu(x > 0)
F.prelu(x, w[:3])
F.prelu(x, torch.ones(2, 2).double())
F.prelu(x, one.float())
F.softshrink(x, -1.0)
F.mish(torch.ones(2).long())
F.celu(x, 0)
F.dropout1d(im)
F.dropout2d(x, 1.5)
F.alpha_dropout(x, -1.0)
F.rms_norm(x, (5,))
F.rms_norm(x, (6,), one)
""")


@over("case", ERRORS)
def test_an_error_is_pytorchs(case):
    pytest.importorskip("torch")
    compare_errors(case, INPUTS)


@pytest.mark.parametrize("dims", [2, 3])
def test_an_input_of_other_dimensions_is_warned_of(dims):
    with pytest.warns(UserWarning, match="Received a 2-D input to dropout"):
        getattr(F, f"dropout{dims}d")(engine.ones(2, 3), 0.5)


def test_whole_channels_are_dropped():
    engine.manual_seed(0)
    out = F.dropout2d(engine.ones(8, 16, 3, 3), 0.5)
    means = out.mean((2, 3))
    assert set(means.flatten().tolist()) == {0.0, 2.0}


def test_alpha_dropout_keeps_mean_and_variance():
    engine.manual_seed(0)
    out = F.alpha_dropout(engine.selu(engine.randn(200_000)), 0.3, training=True)
    assert abs(out.mean().item()) < 0.02 > abs(out.var().item() - 1)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [(), (4,), (3, 30_000)])
def test_relu_lets_nothing_through_where_it_is_0_not_even_infinity_or_nan(dtype, size):
    dtype = getattr(engine, dtype)
    for below in (-1.0, 0.0):
        for arriving in (engine.inf, -engine.inf, engine.nan, -3.0):
            x = engine.full(size, below, dtype=dtype, requires_grad=True)
            engine.relu(x).backward(engine.full(size, arriving, dtype=dtype))
            assert x.grad.dtype == dtype
            assert not x.grad.any() and not engine.signbit(x.grad).any()
    x = engine.full(size, 2.0, dtype=dtype, requires_grad=True)
    engine.relu(x).backward(engine.full(size, engine.inf, dtype=dtype))
    assert (x.grad == engine.inf).all()


# where PyTorch itself has one sign at all sizes: its maximum() has not
ZEROS = """
F.relu(x)
F.relu6(x)
F.hardtanh(x, 0.0, 1.0)
F.hardtanh(x, -0.0, 1.0)
F.leaky_relu(x)
F.elu(x)
F.selu(x)
F.celu(x)
x.clamp(min=0)
x.clamp(max=0)
x.clamp(0, 1)
x.clamp(-0.0, 1.0)
(-x).clamp(-1.0, -0.0)
(-x).clamp(min=-0.0)
(-x).clamp(max=-0.0)
torch.clip(x, -1, 0)
(x * 1).relu_()
(x * 1).clamp_(0, 1)
F.relu(x * 2) * 3
-F.relu(x)
F.relu(x) + x
F.threshold(x, -1, 0)
F.threshold(x, 0, -0.0)
F.hardshrink(x)
F.hardswish(x)
F.silu(x)
torch.where(x > 0, x, F.relu(x))
"""


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize(
    "dtype, size", [("float64", (40, 40)), ("float32", (33,)), ("bfloat16", (1,)), ("float16", (8,))]
)
def test_zeros_have_the_sign_that_they_have_in_pytorch(dtype, size, way):
    torch = pytest.importorskip("torch")
    lines = ZEROS.split("\n")[1:-1]
    found = []
    for t in (engine, torch):
        code = eval(f"lambda x: [{', '.join(lines)}]", {"F": t.nn.functional, "torch": t})
        run = engine.compile(code) if t is engine and way == "compiled" else code
        x = t.full(size, -0.0, dtype=getattr(t, dtype), requires_grad=True)
        outs = [run(x) for _ in range(2)][1]  # the second call is the first that runs what was written
        grads = [t.autograd.grad(out, x, -t.ones_like(out), retain_graph=True)[0] for out in outs]
        found.append([[t.signbit(v).unique().tolist() for v in pair] for pair in zip(outs, grads, strict=True)])
    assert dict(zip(lines, found[0], strict=True)) == dict(zip(lines, found[1], strict=True))
