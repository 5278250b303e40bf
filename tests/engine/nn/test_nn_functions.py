"""Layers without state, activations, losses and normalizations, as PyTorch computes them."""

import numpy as np
import pytest
import scipy.special
from against_torch import assert_close, cases, check_derivatives, compare, compare_errors, library, run, values
from over_tables import over

import engine
import engine.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def uniform(*shape):
    return rng.uniform(0.05, 0.95, size=shape).astype(np.float32)


INPUTS = {
    "x": normal(4, 3), "y": normal(4, 3), "v": normal(3), "s": np.array(0.7, np.float32),
    "e": np.zeros((0, 3), np.float32), "a": normal(2, 3, 4), "d": normal(2, 3, 2, 2), "w": normal(5, 3), "b": normal(5),
    "w3": normal(3), "b3": normal(3), "w4": normal(4), "p": uniform(4, 3), "q": uniform(4, 3),
    "big": np.array([-200.0, -30.0, -1e-3, 0.0, 1e-3, 30.0, 200.0], np.float32),
    "o": np.array([[0.0, 1.0], [1.0, 0.0]], np.float32),
    "m": np.array([[-np.inf, 0.0, 1.0], [2.0, 2.0, -np.inf]], np.float32),
}  # fmt: skip
CLASSES = {
    "t": np.array([2, 0, 1, 1]), "t2": np.array([[0, 1, 2, 2], [1, 1, 0, 0]]),
    "t3": np.array([[[0, 1], [2, 2]], [[1, 1], [0, 2]]]), "i3": np.array([[[0, -1], [2, 2]], [[1, -1], [0, 2]]]),
    "one": np.array(2), "i": np.array([2, 0, -100, 1]), "ignored": np.full(4, -100),
    "u8": np.array([2, 0, 1, 1], np.uint8), "none": np.zeros(0, np.int64),
}  # fmt: skip
FIXED = {
    "c": uniform(3), "cw": uniform(4, 1), "pw": 2 * uniform(3), "ew": uniform(4, 3),
    "mean": normal(3), "var": uniform(3),
}  # fmt: skip

LAYERS = cases("""
F.linear(x, w)
F.linear(x, w, b)
F.linear(v, w, b)
F.linear(v, w)
F.linear(v, w, b[0])
F.linear(v, v, b[0])
F.linear(a.mT, v, b[0])
F.linear(a.mT.contiguous(), w, b[None])
F.linear(a.mT, w, b)
F.linear(a.mT.contiguous(), w, b)
F.linear(a.mT.contiguous(), w)
F.linear(x, w3)
F.linear(x, w.detach(), b)
F.linear(x.detach(), w, b.detach())
F.linear(e, w, b)
F.embedding(t, w)
F.embedding(t2, w)
F.embedding(t2, w, padding_idx=1)
F.embedding(one, w)
F.embedding(none, w)
F.normalize(x)
F.normalize(x, p=1, dim=0)
F.normalize(x * 0)
F.cosine_similarity(x, y)
F.cosine_similarity(x, v, dim=-1)
F.cosine_similarity(x * 0, y)
torch.cosine_similarity(a, a * a, 2)
F.dropout(x, training=False)
F.dropout(x, 0.0)
""")

ACTIVATIONS = cases("""
F.relu(x)
F.relu6(x * 4)
F.hardtanh(x, -0.5, 0.25)
F.leaky_relu(x)
F.leaky_relu(x, 0.3)
F.elu(x)
F.elu(x, 0.5)
F.selu(x)
F.silu(x)
F.gelu(x)
F.gelu(x, approximate='tanh')
F.softplus(x)
F.softplus(x, beta=2, threshold=1)
F.logsigmoid(x)
F.sigmoid(x)
F.tanh(x)
F.softsign(x)
F.tanhshrink(x)
F.silu(s)
F.elu(s)
F.softmax(x, 1)
F.softmax(a, dim=0)
F.softmax(s, 0)
F.softmax(e, 0)
F.softmax(e, 1)
F.softmax(x, 1, dtype=torch.float64)
F.softmin(x, -1)
x.softmax(0)
torch.softmax(x, -1)
F.log_softmax(x, 1)
F.log_softmax(a, -2)
x.log_softmax(0, dtype=torch.float64)
torch.log_softmax(s, 0)
F.leaky_relu(x * 1, 0.1, inplace=True)
F.elu(x * 1, inplace=True)
F.relu(x * 1, inplace=True)
""")

LOSSES = cases("""
F.mse_loss(x, y)
F.mse_loss(x, y, reduction='sum')
F.mse_loss(x, y, reduction='none')
F.mse_loss(x, y.detach())
F.mse_loss(x, v)
F.mse_loss(x, y, weight=ew)
F.mse_loss(x, y, size_average=False)
F.mse_loss(x, y, 0)
F.mse_loss(x, y, reduce=0)
F.mse_loss(x, y, reduce=False)
F.mse_loss(s, s * 2)
F.mse_loss(e, e)
F.l1_loss(x, y)
F.l1_loss(x, y, reduction='none')
F.l1_loss(x, v, reduction='sum')
F.l1_loss(x, y, weight=ew)
F.smooth_l1_loss(x, y)
F.smooth_l1_loss(x, y, beta=0.3, reduction='sum')
F.smooth_l1_loss(x, x.detach() + 1)
F.huber_loss(x, x.detach() - 1)
F.smooth_l1_loss(x, y, beta=0, reduction='none')
F.huber_loss(x, y)
F.huber_loss(x, y, reduction='none', delta=0.4)
F.huber_loss(x, y, weight=ew)
F.kl_div(x, q)
F.kl_div(x, q, reduction='batchmean')
F.kl_div(x, q.detach(), reduction='sum')
F.kl_div(x, y, reduction='none', log_target=True)
F.binary_cross_entropy(p, q)
F.binary_cross_entropy(p, q, reduction='none')
F.binary_cross_entropy(p, q, weight=c, reduction='sum')
F.binary_cross_entropy(p, q.detach(), weight=ew)
F.binary_cross_entropy_with_logits(x, q)
F.binary_cross_entropy_with_logits(x, q, reduction='sum')
F.binary_cross_entropy_with_logits(x, q, reduction='none')
F.binary_cross_entropy_with_logits(x, q.detach())
F.binary_cross_entropy_with_logits(x, q, weight=c)
F.binary_cross_entropy_with_logits(x, q, pos_weight=pw)
F.binary_cross_entropy_with_logits(x, q, weight=cw, pos_weight=pw, reduction='none')
F.binary_cross_entropy_with_logits(s, s * s)
F.nll_loss(x, t)
F.nll_loss(x, t, reduction='sum')
F.nll_loss(x, t, reduction='none')
F.nll_loss(x, t, weight=c)
F.nll_loss(x, t * 0 - 100)
F.nll_loss(x, t, weight=c * 0)
F.nll_loss(x, i)
F.nll_loss(x, i, weight=c)
F.nll_loss(x, t, ignore_index=1)
F.nll_loss(v, one)
F.nll_loss(a, t2)
F.nll_loss(a, t2, reduction='none')
F.nll_loss(d, t3, weight=c)
F.nll_loss(d, i3, ignore_index=-1)
F.nll_loss(d.reshape(2, 3, 2, 2, 1), t3.reshape(2, 2, 2, 1), reduction='none')
F.cross_entropy(x, t)
F.cross_entropy(x, t, reduction='sum')
F.cross_entropy(x, t, reduction='none')
F.cross_entropy(x, t, weight=c)
F.cross_entropy(x, i)
F.cross_entropy(x, u8)
F.cross_entropy(v, one)
F.cross_entropy(a, t2)
F.cross_entropy(d, t3)
F.cross_entropy(x, t, label_smoothing=0.1)
F.cross_entropy(x, i, weight=c, label_smoothing=0.1)
F.cross_entropy(x, t, reduction='none', label_smoothing=0.2)
F.cross_entropy(x, i, reduction='sum', label_smoothing=0.2)
F.cross_entropy(d, t3, weight=c, label_smoothing=0.1)
F.cross_entropy(x, q)
F.cross_entropy(x, q.detach(), reduction='sum')
F.cross_entropy(x, q, reduction='none', label_smoothing=0.1)
F.cross_entropy(x, q, weight=c)
F.cross_entropy(a, a * a)
""")

NORMS = cases("""
F.layer_norm(x, (3,))
F.layer_norm(x, (3,), w3, b3)
F.layer_norm(x, (3,), w3)
F.layer_norm(x, [4, 3], ew, p)
F.layer_norm(a, (4,), w4, eps=0.1)
F.layer_norm(x, (3,), None, b3)
F.group_norm(d, 3, w3, b3)
F.group_norm(d, 1)
F.group_norm(x, 1, w3, b3)
F.batch_norm(x, None, None, training=True)
F.batch_norm(x, None, None, w3, b3, training=True)
F.batch_norm(d, None, None, w3, b3, True, eps=0.1)
F.batch_norm(a, None, None, w3, training=True)
F.batch_norm(x, mean, var)
F.batch_norm(x, mean, var, w3, b3)
F.batch_norm(d, mean, var, w3, b3, eps=0.1)
F.batch_norm(a, mean, var, None, b3)
""")

EXTREME = cases("""
F.softplus(big)
F.logsigmoid(big)
F.silu(big)
F.gelu(big)
F.gelu(big, approximate='tanh')
F.elu(big)
F.sigmoid(big)
F.softmax(big, 0)
F.log_softmax(big, 0)
F.softmax(m, 1)
F.log_softmax(m, 1)
F.binary_cross_entropy_with_logits(big, big.detach() * 0, reduction='none')
F.binary_cross_entropy_with_logits(big, big.detach() * 0 + 1, reduction='none')
F.binary_cross_entropy_with_logits(big, big.detach() * 0 + 1, pos_weight=pw[:1], reduction='none')
F.binary_cross_entropy(o, o.detach())
F.binary_cross_entropy(o, 1 - o.detach())
F.nll_loss(x, ignored)
F.cross_entropy(e, none)
F.relu6(big)
F.hardtanh(o)
F.smooth_l1_loss(o, o)
F.l1_loss(o, o)
""")

TYPES = cases("""
F.mse_loss(x, y.double())
F.mse_loss(x, t.reshape(4, 1))
F.l1_loss(x, y.double())
F.binary_cross_entropy_with_logits(x, q.double())
F.cross_entropy(x, q.double())
F.cosine_similarity(x, y.double())
F.relu6(t)
F.one_hot(t)
F.one_hot(t2, 5)
F.one_hot(one, num_classes=4)
F.linear(x.half(), w.half(), b.half())
F.linear(x.bfloat16(), w.bfloat16())
F.mse_loss(x.half(), y.half())
F.binary_cross_entropy_with_logits(x.half(), q.half())
F.binary_cross_entropy_with_logits(x.bfloat16(), q.bfloat16())
F.softmax(x.bfloat16(), 1)
F.log_softmax(x.half(), 1)
F.cross_entropy(x.half(), t)
F.cross_entropy(x.bfloat16(), t, label_smoothing=0.1)
F.cross_entropy(x.bfloat16(), q.bfloat16(), label_smoothing=0.1)
F.gelu(x.half())
F.silu(x.bfloat16())
F.normalize(x.bfloat16())
x.bfloat16().clamp(-0.5, 0.5)
F.layer_norm(x.half(), (3,), w3.half(), b3.half())
F.batch_norm(x.bfloat16(), None, None, training=True)
F.batch_norm(x.half(), torch.zeros(3), torch.ones(3), w3, b3)
F.layer_norm(x.bfloat16(), (3,), w3, b3)
""")

ERRORS = cases("""
F.layer_norm(x, (3,), w3.half())
F.layer_norm(x, (3,), w3.double(), b3.double())
F.layer_norm(x.double(), (3,), w3)
F.batch_norm(x.double(), torch.zeros(3), torch.ones(3), training=True)
F.batch_norm(x, torch.zeros(3).double(), torch.ones(3).double())
F.cross_entropy(x[0], t[:2])
F.linear(x, b)
F.linear(x, w.T)
F.linear(x, w, v)
F.linear(v, w, w)
F.linear(a, w, b)
F.linear(a, w)
F.linear(v, w.T, v)
F.linear(s, w, b)
F.linear(x, w.double())
F.linear(x.double(), w, b)
F.linear(x, w, b.double())
F.linear(t2.reshape(2, 4)[:, :3], w, b)
F.softmax(t2, 1)
F.log_softmax(t2, 1)
F.softmax(x, 2)
F.silu(t)
F.gelu(t)
F.gelu(x, approximate='foo')
F.leaky_relu(t)
F.elu(t)
F.softplus(t)
F.logsigmoid(t)
F.hardtanh(x, 2, 1)
F.instance_norm(x[None, :, :1])
F.instance_norm(x[None], use_input_stats=False)
F.dropout(x, -1)
F.dropout(x, 2)
F.dropout(t)
F.dropout1d(t2)
F.alpha_dropout(t, training=True)
F.embedding(t + 4, w)
F.embedding(t - 1, w)
F.embedding(t.float(), w)
F.embedding(t, d)
F.embedding(t, w, padding_idx=5)
F.embedding(t, w, padding_idx=-6)
F.one_hot(t, 2)
F.one_hot(i)
F.one_hot(t.float())
F.one_hot(none)
F.mse_loss(x, b)
F.mse_loss(x, 1.0)
F.mse_loss(None, 1.0)
F.binary_cross_entropy(x, 1)
F.binary_cross_entropy_with_logits([0.5], x)
F.mse_loss(x, y, reduction='foo')
F.mse_loss(t, t)
F.mse_loss(x, y, weight=v)
F.l1_loss(t, t)
F.l1_loss(x, y, reduction='foo')
F.smooth_l1_loss(x, y, beta=-1)
F.huber_loss(x, y, delta=0)
F.huber_loss(x, y, weight=v)
F.huber_loss(x, y[None], weight=y[None])
F.l1_loss(x, y[None], weight=y[None])
F.batch_norm(x[0], None, None, training=True)
F.kl_div(t, t, reduction='sum')
F.kl_div(x, q, reduction='foo')
F.cross_entropy(x, t + 1)
F.cross_entropy(x, t - 1)
F.cross_entropy(x, t[:2])
F.cross_entropy(x, t.float())
F.cross_entropy(x, t.int())
F.cross_entropy(x, t.reshape(4, 1))
F.cross_entropy(x, one)
F.cross_entropy(a, t[:2])
F.cross_entropy(a, t2[:, :3])
F.cross_entropy(d, t3[:, :1])
F.cross_entropy(d, t3[:1])
F.cross_entropy(x, w)
F.cross_entropy(x, t, weight=cw)
F.cross_entropy(x, t, weight=cw.detach())
F.cross_entropy(x, t, weight=c.detach().double())
F.cross_entropy(x, q, weight=cw.detach())
F.cross_entropy(x, t, label_smoothing=2.0)
F.cross_entropy(x, q, ignore_index=1)
F.cross_entropy(t2, t[:2])
F.cross_entropy(x, t, reduction='foo')
F.cross_entropy(s, one)
F.nll_loss(s, one)
F.nll_loss(x, t.float())
F.binary_cross_entropy(p + 1, q)
F.binary_cross_entropy(p, q + 1)
F.binary_cross_entropy(p, v)
F.binary_cross_entropy(p, q.double())
F.binary_cross_entropy(p, t)
F.binary_cross_entropy(p, q, weight=q)
F.binary_cross_entropy_with_logits(x, v)
F.binary_cross_entropy_with_logits(x, t2)
F.binary_cross_entropy_with_logits(x[:, 0], t)
F.binary_cross_entropy_with_logits(t, t)
F.binary_cross_entropy_with_logits(x, q, weight=q)
F.binary_cross_entropy_with_logits(x, q, pos_weight=q)
F.binary_cross_entropy_with_logits(x, q, weight=cw[:2])
F.layer_norm(x, 3)
F.layer_norm(x, [2])
F.layer_norm(x, (3,), w4)
F.layer_norm(x, (3,), w3, w4)
F.layer_norm(x, ())
F.layer_norm(t2, (4,))
F.layer_norm(x.double(), (3,), w3)
F.batch_norm(x[:1], None, None, training=True)
F.batch_norm(x, None, None)
F.batch_norm(x, mean[:2], var)
F.batch_norm(x, mean, var, w4)
F.group_norm(a, 2)
F.group_norm(t2, 2)
F.group_norm(x[:1], 3)
F.rms_norm(x, 3)
F.rms_norm(t2, (4,))
F.normalize(t2)
F.normalize(v)
F.cosine_similarity(x, w4)
F.cosine_similarity(t2, t2)
""")


@pytest.fixture
def inputs():
    return {**INPUTS, **CLASSES, **FIXED}


ALL = LAYERS + ACTIVATIONS + LOSSES + NORMS


@over("expression", ALL)
def test_like_pytorch(expression, inputs):
    pytest.importorskip("torch")
    differentiable = ", None, b3" not in expression  # with a bias alone, PyTorch cannot differentiate a norm twice
    compare(expression, inputs, FIXED, second=differentiable)


@over("expression", [c for c in ALL if "* 0" not in c and "(e" not in c])
def test_derivatives(expression, inputs):
    for stopped in (".detach()", ", dtype=torch.float64", "padding_idx=1"):
        expression = expression.replace(stopped, "")
    check_derivatives(expression, inputs, FIXED)


@over("expression", EXTREME)
def test_large_values_and_edges_like_pytorch(expression, inputs):
    pytest.importorskip("torch")
    compare(expression, inputs, FIXED, second=False)


@over("expression", TYPES)
def test_other_types_like_pytorch(expression, inputs):
    pytest.importorskip("torch")
    tolerance = (
        3e-2 if "bf" in expression else 5e-3 if "half" in expression else 1e-6 if "double" in expression else None
    )
    compare(expression, inputs, FIXED, second=False, tolerance=tolerance)


@over("expression", ERRORS)
def test_errors_like_pytorch(expression, inputs):
    pytest.importorskip("torch")
    compare_errors(expression, inputs)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("shape", [(), (7,), (5, 9), (40, 50)])
def test_dropout_draws_what_pytorch_draws(p, shape):
    pytest.importorskip("torch")
    found = []
    for name in ("engine", "torch"):
        module, functional = library(name)
        module.manual_seed(3)
        x = module.ones(shape).requires_grad_()
        y = functional.dropout(x, p)
        y.sum().backward()
        found.append((y, x.grad, module.rand(2)))
        assert y.grad_fn.name() == "MulBackward0"
    for a, b in zip(*found, strict=True):
        assert_close(a, b, f"dropout of {shape}", "a value")


def test_gelu_and_its_gradient_are_right_to_the_precision_of_float32():
    x = np.linspace(-12, 12, 200001).astype(np.float32)
    wide = x.astype(np.float64)
    cdf, pdf = scipy.special.ndtr(wide), np.exp(-wide * wide / 2) / np.sqrt(2 * np.pi)
    t = engine.tensor(x, requires_grad=True)
    y = F.gelu(t)
    y.sum().backward()
    np.testing.assert_allclose(values(y), wide * cdf, 1.5e-7, 6e-7)
    np.testing.assert_allclose(values(t.grad), cdf + wide * pdf, 1.5e-7, 2e-7)


INF, NAN = np.inf, np.nan
ROWS = [[0, 1, 2, 3], [NAN, 1, 2, 3], [INF, 1, 2, 3], [-INF, 1, 2, 3], [-INF] * 4, [INF] * 4, [INF, -INF, 0, 1],
        [200, 199, 0, -5], [-200, -201, -300, -400], [88] * 4, [8.2, 8, 8, 8], [-8, -9, -8, -7]]  # fmt: skip


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("rows", [*([row] for row in ROWS), ROWS], ids=str)
def test_softmax_of_rows_that_overflow_vanish_or_are_not_finite(name, rows):
    pytest.importorskip("torch")
    found = []
    for module, functional in map(library, ("engine", "torch")):
        x = module.tensor(rows, dtype=module.float32, requires_grad=True)
        y = getattr(functional, name)(x, 1)
        y.backward(module.arange(y.numel(), dtype=module.float32).reshape(y.shape) / 10)
        found.append((y, x.grad))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(values(a), values(b), 2e-6, 1e-6)


@pytest.mark.parametrize("shift", [-30, -11.1, -10.9, 0, 4.1, 4.3, 30])  # the logarithms of sums: 4.2 more or so
def test_log_softmax_of_shifted_rows_is_right_to_the_precision_of_float32(shift):
    x = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float32) + np.float32(shift)
    exact = scipy.special.log_softmax(x.astype(np.float64), 1)
    np.testing.assert_allclose(values(F.log_softmax(engine.tensor(x), 1)), exact, 0, 1e-6)


def test_dropout_in_place_writes_into_its_input():
    x = engine.ones(50)
    assert F.dropout(x, 0.5, inplace=True) is x and (x == 0).any()


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), (2, 3, 2, 2)])
def test_batch_norm_updates_the_running_statistics_as_pytorch_does(shape):
    pytest.importorskip("torch")
    data, found = normal(*shape), []
    for name in ("engine", "torch"):
        module, functional = library(name)
        mean, var = module.zeros(3), module.ones(3)
        for momentum in (0.1, 0.3):
            out = functional.batch_norm(module.tensor(data), mean, var, training=True, momentum=momentum)
        found.append((mean, var, out))
    for a, b in zip(*found, strict=True):
        assert_close(a, b, f"batch_norm of {shape}", "a statistic")


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_without_a_dimension_warns_and_takes_the_one_pytorch_takes(name):
    x = engine.tensor(normal(2, 3))
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated"):
        y = getattr(F, name)(x)
    assert values(y).tolist() == values(getattr(F, name)(x, 1)).tolist()


def test_mse_loss_warns_when_it_broadcasts():
    sizes = (
        r"Using a target size \(torch.Size\(\[3\]\)\) that is different to the input size \(torch.Size\(\[3, 1\]\)\). "
    )
    with pytest.warns(UserWarning, match=sizes + ".* Please ensure they have the same size.$"):
        F.mse_loss(engine.zeros(3, 1), engine.zeros(3))


def test_kl_div_warns_of_mean():
    with pytest.warns(
        UserWarning, match="reduction: 'mean' divides the total loss by both the batch size and the support size"
    ):
        F.kl_div(engine.zeros(3), engine.ones(3))


@pytest.mark.parametrize("row", [1, -4])
def test_embedding_gives_the_padding_row_no_gradient(row, inputs):
    result, tensors = run("engine", f"F.embedding(t, w, padding_idx={row})", inputs)
    result.sum().backward()
    assert values(tensors["w"].grad)[:, 0].tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]


def test_the_tangent_of_an_embedding_has_the_padding_row_too(inputs):
    w, t = engine.tensor(inputs["w"]), engine.tensor(inputs["w"] * 2)
    _, tangent = engine.func.jvp(lambda w: F.embedding(engine.tensor([1, 0]), w, padding_idx=0), (w,), (t,))
    assert tangent.tolist() == t[[1, 0]].tolist()


def test_an_embedding_in_no_dimensions_has_a_gradient():
    w = engine.ones(3, 0, requires_grad=True)
    F.embedding(engine.tensor([0, 2]), w).sum().backward()
    assert w.grad.shape == (3, 0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_of_softmax_over_more_elements_than_float16_counts(name):
    x, g = normal(70000, 1), np.ones((70000, 1))
    found = []
    for dtype in (engine.float16, engine.float32):
        t = engine.tensor(x, dtype=dtype, requires_grad=True)
        (getattr(F, name)(t, 0) * engine.tensor(g, dtype=dtype)).backward(t.detach() * 0 + 1)
        found.append(values(t.grad))
    np.testing.assert_allclose(*found, 1e-2, 1e-2)


NORMED = {"layer": ("F.layer_norm(x, (30000,), w, b)", (3, 30000), 30000),
          "batch": ("F.batch_norm(x, None, None, w, b, training=True)", (70000, 3), 3),
          "group": ("F.group_norm(x, 2, w, b)", (2, 4, 40000), 4)}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", NORMED)
def test_gradients_of_norms_in_half_precision_are_computed_in_float32(kind, dtype):
    expression, shape, n = NORMED[kind]
    arrays = normal(*shape), 1 + normal(n), normal(n), 0.5 + normal(*shape)
    rounded, found = [engine.tensor(a).to(getattr(engine, dtype)) for a in arrays], []
    for precise in (False, True):
        x, w, b, g = (t.double() if precise else t.clone() for t in rounded)
        leaves = x.requires_grad_(), w.requires_grad_(), b.requires_grad_()
        eval(expression, {"F": F, "x": x, "w": w, "b": b}).backward(g)
        found.append([values(t.grad) for t in leaves])
    for a, exact in zip(*found, strict=True):
        assert np.abs(a - exact).max() < np.abs(exact).max() * (2e-3 if dtype == "float16" else 1e-2)


@pytest.mark.parametrize("shape", [(3, 2, 0), (0, 2, 4)])
def test_batch_norm_of_nothing_leaves_the_running_statistics(shape):
    mean, var = engine.zeros(2), engine.ones(2)
    F.batch_norm(engine.ones(shape), mean, var, training=True)
    assert mean.tolist() == [0.0, 0.0] and var.tolist() == [1.0, 1.0]


def test_a_linear_layer_saves_only_what_its_gradients_need():
    x, w, b = engine.ones(2, 3), engine.ones(4, 3, requires_grad=True), engine.ones(4, requires_grad=True)
    node = F.linear(x, w, b).grad_fn
    _, mat1, mat2, *_ = node.saved
    assert mat1 is x.array and mat2 is None


def test_a_class_target_that_was_overwritten_raises():
    x, t = engine.zeros(2, 3, requires_grad=True), engine.tensor([0, 2])
    loss = F.cross_entropy(x, t)
    t += -1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_training_between_a_pass_in_evaluation_mode_and_its_gradient_changes_nothing(inputs):
    mean, var, weight = engine.zeros(3), engine.ones(3), engine.ones(3, requires_grad=True)
    x = engine.tensor(inputs["x"])
    out = F.batch_norm(x, mean, var, weight)
    F.batch_norm(x, mean, var, training=True)
    out.sum().backward()
    np.testing.assert_allclose(values(weight.grad), inputs["x"].sum(0) / np.sqrt(1 + 1e-5), 1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_of_nothing_is_0_and_not_minus_0(reduction):
    sure = engine.tensor([[100.0, 0.0, 0.0]])
    assert str(F.cross_entropy(sure, engine.tensor([0]), reduction=reduction)) == "tensor(0.)"
