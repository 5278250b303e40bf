"""Every rule of every table: first and second derivatives against central differences, and against PyTorch.

The rows come from ``engine.core.record.registry``: a new row is tested because it is there.  One whose arguments
cannot be guessed needs a line in ``SAMPLES``; without one, a test fails.
"""

import math
import zlib

import numpy as np
import pytest
from over_tables import over

import engine
from engine.ops.rows import registry

# What each row is called with: f is the operation; x, y, z, A, B, v, w are float64 tensors of shapes (2, 3), (3, 3),
# (3, 2) and (3,) that require grad; p is one of probabilities, i and target are integers below 3.
BY_KIND = {"unary": ["f(x)"], "binary": ["f(x, y)", "f(x, v)", "f(v, x)", "f(x, 1.5)", "f(1.5, x)", "f(x, x)"]}
REDUCED = ["f(x)", "f(x, 0)", "f(x, 1, True)"]
SAMPLES = {
    # elementwise with further arguments
    "add": ["f(x, y)", "f(x, v, alpha=3)", "f(v, x)", "f(x, 1.5)"],
    "sub": ["f(x, y)", "f(x, v, alpha=3)", "f(v, x)", "f(x, 1.5)"],
    "divide": ["f(x, y)", "f(x, 1.5)", "f(x, y, rounding_mode='floor')"],
    "clamp": ["f(x, -0.5, 0.5)", "f(x, max=0.5)", "f(x, v, y)", "f(x, min=y)"],
    "clamp_min": ["f(x, 0.5)", "f(x, y)"],
    "clamp_max": ["f(x, 0.5)", "f(x, y)"],
    "lerp": ["f(x, y, 0.3)", "f(x, y, z)", "f(x, v, z)"],
    "round": ["f(x)", "f(x, decimals=1)"],
    "frac": ["f(x)"],
    "nan_to_num": ["f(x)"],
    "addcmul": ["f(x, y, z, value=2)", "f(x, v, y)"],
    "addcdiv": ["f(x, y, z, value=2)", "f(x, v, y)"],
    "float_power": ["f(x.exp(), y)", "f(x.exp(), 1.5)", "f(1.5, x)"],
    **dict.fromkeys(["atan2", "maximum", "minimum", "fmax", "fmin", "hypot", "logaddexp"], BY_KIND["binary"][:3]),
    **dict.fromkeys(["remainder", "fmod"], BY_KIND["binary"][:4]),
    "elu": ["f(x, 1.0, 1.0, 1.0)", "f(x, 0.7, 1.5, 2.0)"],
    "leaky_relu": ["f(x, 0.01)", "f(x, 0.3)"],
    "silu": ["f(x)"],
    **dict.fromkeys(["mish", "hardswish", "hardsigmoid"], ["f(x)"]),
    **dict.fromkeys(["hardshrink", "softshrink", "celu"], ["f(x, 0.5)", "f(x, 0.1)"]),
    "threshold": ["f(x, 0.1, 2.0)"],
    "glu": ["f(x, 0)"],
    "prelu": ["f(x, v)", "f(x, v[:1])"],
    "rms_norm": ["f(x, (3,))", "f(x, (3,), v, 0.1)"],
    "softplus": ["f(x, 1.0, 20.0)", "f(x, 2.0, 1.0)"],
    "log_sigmoid": ["f(x)"],
    # views, and what moves elements: arguments as the rows have them, complete and by position
    "reshape": ["f(x, (3, 2))", "f(x.t(), (6,))"],
    "view": ["f(x, (3, 2))"],
    "transpose": ["f(x, 0, 1)", "f(A, -1, -2)"],
    "alias": ["f(x)"],
    "pick": ["f(x, (0,))", "f(x, (slice(None), slice(0, 3, 2)))", "f(x, (np.array([1, 1, 0]),))", "f(x, (x0 > 0,))"],
    "place": ["f(v, (2, 3), (0,))", "f(x, (3, 3), (np.array([1, 1]),))"],
    "squeeze": ["f(x.reshape(1, 2, 3, 1))"],
    "squeeze_dim": ["f(x.reshape(1, 2, 3, 1), 0)"],
    "squeeze_dims": ["f(x.reshape(1, 2, 3, 1), (0, 3))"],
    "unsqueeze": ["f(x, 1)", "f(x.t(), 2)"],
    "permute": ["f(x, (1, 0))", "f(x.reshape(1, 2, 3), (2, 0, 1))"],
    "t": ["f(x)", "f(v)"],
    "expand": ["f(x, (4, 2, 3))", "f(x.reshape(2, 1, 3), (2, 5, 3))"],
    "select": ["f(x, 1, 2)"],
    "slice": ["f(x, 1, slice(0, 3, 2))"],
    "diagonal": ["f(A, 0, 0, 1)", "f(A, 1, 1, 0)"],
    "diagonal_copy": ["f(A, 0, 0, 1)", "f(A, -1, 0, 1)"],
    "diagonal_backward": ["f(v, (3, 3), 0, 0, 1)", "f(v[:2], (3, 3), 1, 0, 1)"],
    "diag_embed": ["f(v, (3, 3), 0, 0, 1)"],
    "unfold": ["f(v, 0, 2, 1)", "f(A, 1, 2, 1)"],
    "as_strided": ["f(A, (2, 2), (3, 1))", "f(A, (2, 3), (1, 1), 1)"],
    "flip": ["f(x, (0, 1))"],
    "roll": ["f(x, (1,), (1,))", "f(x, (2,), ())"],
    "repeat": ["f(x, (2, 1))", "f(x, (2, 1, 3))"],
    "rot90": ["f(x, 1, (0, 1))", "f(x, 2, (1, 0))"],
    "tril": ["f(x, 0)", "f(A, -1)"],
    "triu": ["f(x, 0)", "f(A, 1)"],
    # reductions
    **dict.fromkeys(["sum", "mean", "prod"], REDUCED),
    **dict.fromkeys(["vector_norm", "norm"], ["f(x)", "f(x, 1)", "f(x, 2, 0)", "f(x, 3, 1, True)"]),
    "dist": ["f(x, y)", "f(x, v, 1)", "f(v, x, 3)"],
    "cdist": ["f(x, A)", "f(A, x, 1)", "f(x, y, 3)", "f(A, x[:, None], 1.5)", "f(x, A, float('inf'))"],
    "amax": [*REDUCED, "f(x, (0, 1))"],
    "amin": [*REDUCED, "f(x, (0, 1))"],
    "max": ["f(x)", "f(x, 0)[0]", "f(x, 1, True).values", "f(x, y)"],
    "min": ["f(x)", "f(x, 0)[0]", "f(x, 1, True).values", "f(x, y)"],
    "median": ["f(x)", "f(x, 1)[0]"],
    "var": [*REDUCED, "f(x, 0, correction=0)", "f(x, (0, 1))"],
    "std": [*REDUCED, "f(x, 0, correction=0)", "f(x, (0, 1))"],
    "logsumexp": ["f(x, 0)", "f(x, (0, 1))"],
    "cumsum": ["f(x, 0)", "f(x, 1)"],
    "cumprod": ["f(x, 0)", "f(x, 1)"],
    "nansum": REDUCED,
    "copysign": BY_KIND["binary"][:3] + ["f(x, -1.5)"],
    "logcumsumexp": ["f(x, 0)", "f(x, 1)", "f(x * 300, 1)"],
    "cummax": ["f(x, 1)", "f(A, 0)"],
    "cummin": ["f(x, 1)", "f(A, 0)"],
    "gather": ["f(x, 1, torch.tensor([[0, 0, 2], [1, 1, 1]]))", "f(A, 0, i[None])"],
    "scatter_add": ["f(x, 1, torch.tensor([[0, 0, 2], [1, 1, 1]]), y)"],
    "kron": ["f(x, B)", "f(x, v)"],
    "cov": ["f(x)", "f(A, correction=0, aweights=v ** 2)", "f(v, fweights=torch.tensor([1, 2, 3]))"],
    "corrcoef": ["f(A)", "f(x)", "f(v)"],
    "split_with_sizes": ["f(x, (1, 2), 1)"],
    "embedding_bag": ["f(i[None], A)", "f(i, A, torch.tensor([0, 0]), mode='max')",
                      "f(i.repeat(2)[:3], A, torch.tensor([0, 1]), mode='sum', per_sample_weights=v)"],
    # matrices
    "mm": ["f(x, A)", "f(A, A)"],
    "addmm": ["f(x, x, A)", "f(v, x, A, beta=2, alpha=3)"],
    "addmm_columns": ["f(v, x, A)", "f(v, x, A, beta=2, alpha=3)"],
    "addmv": ["f(v, A, w)", "f(v, A, w, beta=2, alpha=3)"],
    "bmm": ["f(x.reshape(1, 2, 3), A.reshape(1, 3, 3))"],
    "addbmm": ["f(x, x.reshape(1, 2, 3), A.reshape(1, 3, 3))", "f(v, A.expand(2, 3, 3), A.expand(2, 3, 3), beta=2)"],
    "baddbmm": ["f(x, x.reshape(1, 2, 3), A.reshape(1, 3, 3))"],
    "mv": ["f(x, v)"],
    "dot": ["f(v, w)", "f(v, v)"],
    "outer": ["f(v, w)"],
    "matmul": ["f(x, A)", "f(x, v)", "f(v, A)", "f(v, w)", "f(x.reshape(1, 2, 3), A)", "f(A, A.expand(2, 3, 3))"],
    "inner": ["f(v, w)", "f(x, y)"],
    "tensordot": ["f(x, A, 1)", "f(x, y, ([0, 1], [0, 1]))"],
    "einsum": ["f('ij,jk->ik', x, A)", "f('ij,ij,j->i', x, y, v)", "f('ii->i', A)", "f('ij->', x)"],
    "inv": ["f(A)"],
    "solve": ["f(A, B)", "f(A, v)"],
    "det": ["f(A)"],
    "slogdet": ["f(A)[1]"],
    "logdet": ["f(A @ A.mT)"],
    "trace": ["f(A)"],
    "matrix_norm": ["f(x)", "f(x, 1)", "f(x, 2)", "f(A, -2)", "f(x, 'nuc')"],
    "svdvals": ["f(x)", "f(A)"],
    # networks
    "linear": ["f(x, A)", "f(x, A, v)", "f(v, A)"],
    **dict.fromkeys(["dropout", "alpha_dropout"], ["f(x, 0.5, False)"]),
    "embedding": ["f(i, A)"],
    "normalize": ["f(x)", "f(x, dim=0)"],
    "cosine_similarity": ["f(x, y)", "f(x, y, 0)"],
    "relu6": ["f(x)"],
    "hardtanh": ["f(x)", "f(x, -0.5, 0.5)"],
    "softsign": ["f(x)"],
    "tanhshrink": ["f(x)"],
    "softmax": ["f(x, 0)", "f(x, -1)"],
    "log_softmax": ["f(x, 0)", "f(x, -1)"],
    "mse_loss": ["f(x, y)", "f(x, y, reduction='sum')", "f(x, y, reduction='none')"],
    "l1_loss": ["f(x, y)", "f(x, y, reduction='none')"],
    "smooth_l1_loss": ["f(x, y)", "f(x, y, beta=0.3)"],
    "huber_loss": ["f(x, y)", "f(x, y, delta=0.3)"],
    "kl_div": ["f(x, y.exp(), reduction='sum')", "f(x, y, log_target=True, reduction='batchmean')"],
    "binary_cross_entropy_with_logits": ["f(x, p)", "f(x, p, reduction='sum')", "f(x, p, pos_weight=p[0] + 1)"],
    "binary_cross_entropy": ["f(x.sigmoid(), p)", "f(x.sigmoid(), p, reduction='none')"],
    "nll_loss": ["f(x, target)", "f(x, target, p[0], reduction='sum')"],
    "cross_entropy": ["f(x, target)", "f(x, target, label_smoothing=0.1)", "f(x, p)"],
    "layer_norm": ["f(x, (3,))", "f(x, (3,), v, w)"],
    "group_norm": ["f(A.reshape(1, 3, 3).repeat(2, 2, 1), 2)"],
    "instance_norm": ["f(A[None])", "f(A.reshape(1, 3, 3), None, None, v, w)"],
    "batch_norm": ["f(x, None, None, v, w, training=True)", "f(x, p[0], p[1] + 1, v, w)"],
    "scaled_dot_product_attention": ["f(A, A * 2, A)", "f(x, A, B, is_causal=True)", "f(x, A, A, x, scale=2.0)"],
    # windows
    "conv1d": ["f(x, A[:, None, :2].repeat(1, 2, 1), v)", "f(A, x.reshape(3, 1, 2), w, 2, 1, 2, 3)"],
    "conv2d": ["f(A[None], x[:, None, None], v[:2], padding=(0, 1))", "f(A[None], B.reshape(1, 1, 3, 2), None, 2, 1)"],
    "conv3d": ["f(A[None, None], x.reshape(1, 1, 1, 2, 3), padding=1)"],
    "conv_transpose1d": ["f(x, x[:, None], v[:1], 2, 1, 1)"],
    "conv_transpose2d": ["f(A[None], x.reshape(1, 1, 2, 3), v[:1], 2)"],
    "conv_transpose3d": ["f(A[None, None], x.reshape(1, 1, 1, 2, 3))"],
    "max_pool1d": ["f(x, 2, 1)", "f(x, 2, 2, 1)"],
    "max_pool2d": ["f(A[None], 2, 1)", "f(A[None], 3, 2, 1)"],
    "avg_pool1d": ["f(x, 2, 1)", "f(x, 2, 2, 1, False, False)"],
    "avg_pool2d": ["f(A[None], 2, 1)", "f(A[None], 3, 2, 1, False, False)"],
    "adaptive_avg_pool1d": ["f(x, 2)", "f(x, 1)"],
    "adaptive_avg_pool2d": ["f(A[None], 2)", "f(A[None], (1, 2))"],
    "adaptive_max_pool1d": ["f(x, 2)"],
    "adaptive_max_pool2d": ["f(A[None], 2)"],
    "constant_pad_nd": ["f(x, (1, 2, -1, 1), 2.0)"],
    "pad": ["f(x, (1, 2), 'reflect')", "f(x, (1, 2), 'replicate')", "f(x, (1, 2), 'circular')", "f(v, (1, -1))"],
}  # fmt: skip

# where a function is defined, or its derivative is: the inputs are drawn from there
BETWEEN = {
    **dict.fromkeys(
        ["sqrt", "rsqrt", "log", "log2", "log10", "lgamma", "digamma", "div", "divide", "atan2", "xlogy"], (0.5, 2.0)
    ),
    **dict.fromkeys(
        ["pow", "remainder", "fmod", "reciprocal", "addcdiv", "prod", "cumprod", "hypot", "norm"], (0.5, 2.0)
    ),
    **dict.fromkeys(["asin", "acos", "atanh", "erfinv", "log1p"], (-0.8, 0.8)),
    "acosh": (1.2, 3.0),
    "tan": (-1.0, 1.0),
}

# rows whose results never require grad: a test checks that
CONSTANT = {
    "argmax", "argmin", "all", "any", "count_nonzero", "equal", "isclose", "allclose", "one_hot", "bitwise_and",
    "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
}  # fmt: skip
NOT_DIFFERENTIABLE = {"creation", "random", "cast", "test", "comparison"}  # the kinds of rows which have no derivative
NO_RULE = {"floor_divide"}  # the result requires grad, and backward says that there is no derivative

# rows with no PyTorch function of the same name and arguments
OURS = {
    "pick", "place", "squeeze_dim", "squeeze_dims", "diagonal_backward", "diag_embed", "alias", "rsub", "div_floor",
    "div_trunc", "addmm_columns", "log_sigmoid", "unfold", "repeat", "expand", "view", "slice", "elu",
    "embedding_bag", "cdist",  # PyTorch has no second derivative
    "hardsigmoid",  # PyTorch's slope is 1 / 6 in float32, and has no derivative
}  # fmt: skip


def rows():
    return [
        name for name, row in registry.items() if row.kind not in NOT_DIFFERENTIABLE and name not in CONSTANT | NO_RULE
    ]


def samples(name):
    return SAMPLES.get(name) or BY_KIND.get(registry[name].kind, [])


CASES = [(name, sample) for name in rows() for sample in samples(name)]


def inputs(name, sample):
    """Arrays for a case, always the same."""
    rng = np.random.default_rng(zlib.crc32((name + sample).encode()))
    draw = lambda *shape: rng.uniform(*BETWEEN.get(name, (-2.0, 2.0)), shape)  # noqa: E731
    arrays = {
        "x": draw(2, 3),
        "y": draw(2, 3),
        "z": draw(2, 3),
        "A": draw(3, 3),
        "B": draw(3, 2),
        "v": draw(3),
        "w": draw(3),
    }
    return arrays | {"p": rng.uniform(0.1, 0.9, (2, 3)), "i": rng.integers(0, 3, 2), "target": rng.integers(0, 3, 2)}


def run(t, f, sample, arrays):
    """(the floating point results, the inputs that require grad) of a sample, in one of the libraries."""
    tensors = {k: t.tensor(a) for k, a in arrays.items()}
    variables = [v.requires_grad_() for k, v in tensors.items() if k in "xyzABvw"]
    xp = getattr(t, "xp", np)  # the module of the arrays that stand in a sample
    results = eval(sample, {"f": f, "np": xp, "torch": t, "x0": xp.array(arrays["x"]), **tensors})
    results = results if isinstance(results, (tuple, list)) else [results]
    return [r for r in results if r.dtype == t.float64], variables


def weights(results, seed):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.5, tuple(r.shape)) for r in results]


def value(t, f, sample, arrays):
    """The sum of the results, with random weights."""
    results, _ = run(t, f, sample, arrays)
    return sum((w * r.detach().numpy()).sum() for w, r in zip(weights(results, 1), results, strict=True))


def gradient(t, f, sample, arrays, create_graph=False):
    """The gradient of that sum with respect to all inputs (None: unused), and these."""
    results, variables = run(t, f, sample, arrays)
    given = [t.tensor(w) for w in weights(results, 1)]
    return t.autograd.grad(results, variables, given, create_graph=create_graph, allow_unused=True), variables


def second(t, f, sample, arrays):
    """The gradient of the randomly weighted sum of the entries of the gradient; None if that is constant."""
    grads, variables = gradient(t, f, sample, arrays, create_graph=True)
    given = [t.tensor(w) for w in weights(variables, 2)]
    pairs = [(g, u) for g, u in zip(grads, given, strict=True) if g is not None and g.requires_grad]
    if not pairs:
        return None
    return t.autograd.grad([g for g, _ in pairs], variables, [u for _, u in pairs], allow_unused=True)


def weighted_gradient(t, f, sample, arrays):
    """What ``second`` is the gradient of."""
    grads, variables = gradient(t, f, sample, arrays)
    pairs = zip(grads, weights(variables, 2), strict=True)
    return sum((g.detach().numpy() * u).sum() for g, u in pairs if g is not None)


def slope(function, arrays, eps=1e-6):
    """The slope of a function of the inputs in a random direction, by a central difference, and that direction."""
    direction = dict(zip("xyzABvw", weights([arrays[k] for k in "xyzABvw"], 3), strict=True))
    ends = [function(arrays | {k: arrays[k] + s * eps * d for k, d in direction.items()}) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * eps), direction


def along(grads, direction):
    return sum((g.detach().numpy() * d).sum() for g, d in zip(grads, direction.values(), strict=True) if g is not None)


def test_every_differentiable_row_has_samples():
    assert [name for name in rows() if not samples(name)] == []


def test_every_sample_belongs_to_a_row():
    assert set(SAMPLES) <= set(registry) and set(BETWEEN) <= set(registry) and CONSTANT | NO_RULE <= set(registry)


@over("name, sample", CASES)
def test_first_derivative(name, sample):
    f, arrays = registry[name].function, inputs(name, sample)
    grads, _ = gradient(engine, f, sample, arrays)
    assert any(g is not None for g in grads)
    expected, direction = slope(lambda a: value(engine, f, sample, a), arrays)
    assert along(grads, direction) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@over("name, sample", CASES)
def test_the_recorded_backward_pass_gives_the_same(name, sample):
    f, arrays = registry[name].function, inputs(name, sample)
    for a, b in zip(gradient(engine, f, sample, arrays)[0], gradient(engine, f, sample, arrays, True)[0], strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(b.detach().numpy(), a.numpy(), 1e-12, 1e-12)
            assert a.shape == b.shape and a.dtype == b.dtype


@over("name, sample", CASES)
def test_second_derivative(name, sample):
    f, arrays = registry[name].function, inputs(name, sample)
    expected, direction = slope(lambda a: weighted_gradient(engine, f, sample, a), arrays)
    grads = second(engine, f, sample, arrays)
    assert (0.0 if grads is None else along(grads, direction)) == pytest.approx(expected, rel=2e-6, abs=2e-6)


LEVEL = """
F.relu(x)
F.relu(x.clone(), inplace=True)
x.clone().relu_()
F.leaky_relu(x, 0.1)
F.leaky_relu(x.clone(), 0.1, inplace=True)
F.hardtanh(x)
F.relu6(x.clone(), inplace=True)
F.threshold(x, 0.1, 2.0)
F.hardshrink(x)
F.softshrink(x)
F.hardsigmoid(x)
F.prelu(x, torch.tensor([0.3], dtype=torch.float64))
F.max_pool1d(x, 2)
F.max_pool2d(x[None], 2, return_indices=True)[0]
F.avg_pool1d(x, 2)
F.avg_pool2d(x[None], 2, 1)
F.adaptive_avg_pool1d(x, 2)
F.adaptive_max_pool1d(x, 2)
F.adaptive_avg_pool2d(x[None], 2)
F.adaptive_max_pool2d(x[None], 2)
F.pad(x, (1, 1), mode="reflect")
F.pad(x[None], (1, 1, 1, 1), mode="replicate")
F.nll_loss(x, torch.tensor([0, 2]))
F.nll_loss(x[None, :, :, None], torch.zeros(1, 3, 1, dtype=torch.int64))
"""


@over("line", LEVEL.split("\n")[1:-1])
def test_where_the_slope_is_level_the_second_derivative_is_zeros(line):
    x = engine.tensor(inputs("x", line)["x"], requires_grad=True)
    out = eval(line, {"F": engine.nn.functional, "torch": engine, "x": x})
    (slope,) = engine.autograd.grad(out.sum(), x, create_graph=True)
    (second,) = engine.autograd.grad((slope * slope).sum(), x)
    assert second.tolist() == [[0.0] * 3] * 2


FLAT = """
torch.floor(x)
torch.ceil(x)
torch.trunc(x)
torch.round(x)
torch.round(x, decimals=1)
torch.sign(x)
x ** 0
x ** 0.0
torch.float_power(x, 0)
torch.div(x, 2.0, rounding_mode="floor")
torch.div(x, x, rounding_mode="trunc")
torch.div(1.5, x, rounding_mode="floor")
torch.copysign(torch.ones(6, dtype=torch.float64), x)
torch.bernoulli(x)
torch.normal(x, 1.0)
x.clone().floor_()
x.clone().fill_(2.0)
"""
COTANGENTS = np.array([-1.0, math.inf, -math.inf, math.nan, 0.0, 2.0])


@over("line", FLAT.split("\n")[1:-1])
def test_where_the_slope_is_zero_the_gradient_is_zero_whatever_the_cotangent(line):
    x = engine.tensor([0.5, 0.3, 0.7, 0.1, 1.0, 0.6], dtype=engine.float64, requires_grad=True)
    for create_graph in (False, True):
        out = eval(line, {"torch": engine, "x": x})
        (slope,) = engine.autograd.grad(out, x, engine.tensor(COTANGENTS), create_graph=create_graph)
        assert slope.tolist() == [0.0] * 6 and not slope.signbit().any()


MASKED = """
torch.trace(x)
torch.amax(x, 1)
torch.amin(x, 0)
torch.norm(x, math.inf, 1)
torch.norm(x, 0, 1)
torch.prod(x * (x > 0.5))
torch.nan_to_num(x / (x > 0))
torch.xlogy(x, (x > 0).double())
torch.where(x > 0, x, 0.0)
torch.clamp(x, 0, 1)
F.hardswish(x * 5)
F.relu(x)
F.embedding(torch.tensor([0, 1]), x, padding_idx=0)
F.embedding_bag(torch.tensor([[0, 1], [1, 1]]), x, mode="sum", padding_idx=0)
F.embedding_bag(torch.tensor([[0, 1], [1, 1]]), x, mode="mean", padding_idx=0)
F.embedding_bag(torch.tensor([[0, 1], [0, 0]]), x, mode="max", padding_idx=0)
F.nll_loss(x, torch.tensor([0, -100]), reduction="none")
F.cross_entropy(x, torch.tensor([-100, -100]))
F.pad(x, (-1, 1), mode="reflect")
F.max_pool1d(x, 2)
"""


@over("line", MASKED.split("\n")[1:-1])
def test_infinite_cotangents_reach_what_they_reach_in_pytorch(line):
    torch = pytest.importorskip("torch")
    for start in range(6):
        found = []
        for t in (engine, torch):
            x = t.tensor([[1.0, -2.0, 0.5], [0.25, 1.0, -3.0]], dtype=t.float64, requires_grad=True)
            out = eval(line, {"F": t.nn.functional, "torch": t, "math": math, "x": x})
            g = np.resize(np.roll(COTANGENTS, -start), out.shape)
            found.append(t.autograd.grad(out, x, t.tensor(g), allow_unused=True)[0])
        ours, theirs = found
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
            np.testing.assert_array_equal(ours.signbit().numpy(), theirs.signbit().numpy())


BASES = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, math.inf, -math.inf, math.nan]
EXPONENTS = [-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("base", [0, 0.0, [0.0] * 7], ids=repr)
def test_zero_to_a_power_falls_where_the_power_is_negative(base):
    base = engine.tensor(base) if isinstance(base, list) else base
    b = engine.tensor([-1.0, -0.5, 0.0, 0.5, 1.0, math.inf, math.nan], requires_grad=True)
    (slope,) = engine.autograd.grad((base**b).sum(), b)
    np.testing.assert_array_equal(slope.numpy(), [-math.inf, -math.inf, 0.0, 0.0, 0.0, 0.0, math.nan])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "form", ["x ** y", "x ** k", "0 ** y", "0.0 ** y", "2 ** y", "(-1.0) ** y", "x ** 0", "x ** -1"]
)
def test_gradients_of_powers_at_special_values_as_pytorch(form, dtype):
    torch = pytest.importorskip("torch")
    xs, ys = (a.ravel() for a in np.meshgrid(BASES, EXPONENTS))
    found = []
    for t in (engine, torch):
        x, y = (t.tensor(v, dtype=getattr(t, dtype), requires_grad=True) for v in (xs, ys))
        out = eval(form, {"x": x, "y": y, "k": t.tensor(np.nan_to_num(ys, posinf=9, neginf=-9).astype(np.int64))})
        grads = t.autograd.grad(out, (x, y), t.tensor(np.resize([-1.0, 1.0, 2.0], 99)).to(out.dtype), allow_unused=True)
        found.append([out.detach(), *(g for g in grads if g is not None)])
    for ours, theirs in zip(*found, strict=True):
        a, b = (g.double().numpy() for g in (ours, theirs))
        np.testing.assert_allclose(a, b, *[{"float64": 1e-12, "float32": 1e-6}.get(dtype, 1e-2)] * 2)
        assert (np.signbit(a) == np.signbit(b))[(a == 0) & (b == 0)].all()


def counterpart(torch, name):
    """PyTorch's function of that name."""
    places = (torch.nn.functional, torch.linalg if name == "solve" else torch, torch.linalg)
    return next(getattr(place, name) for place in places if hasattr(place, name))


@over("name, sample", [c for c in CASES if c[0] not in OURS])
def test_derivatives_as_pytorch(name, sample):
    torch = pytest.importorskip("torch")
    arrays, f = inputs(name, sample), counterpart(torch, name)
    for derivative in (lambda *a: gradient(*a)[0], second):
        ours, theirs = derivative(engine, registry[name].function, sample, arrays), derivative(torch, f, sample, arrays)
        for a, b in zip(ours or [None] * 7, theirs or [None] * 7, strict=True):
            assert (a is None) == (b is None)
            np.testing.assert_allclose(plain(a), plain(b), 1e-9, 1e-9)


def plain(g):
    """A gradient as an array; 0 if there is none, or if PyTorch has no memory for its zeros."""
    return 0.0 if g is None or getattr(g, "_is_zerotensor", bool)() else g.detach().numpy()


@over("name", sorted(CONSTANT))
def test_rows_without_derivatives(name):
    integers = engine.tensor([1, 2]), engine.tensor([2, 1])
    x = engine.tensor([1.5, 2.5], requires_grad=True)
    f = registry[name].function
    args = {"one_hot": integers[:1]}.get(name) or (integers if name.startswith("bitwise") else (x, x * 2))
    result = f(*args[:1]) if registry[name].kind == "reduction" else f(*args)
    assert isinstance(result, bool) or not result.requires_grad


@over("name", sorted(NO_RULE))
def test_rows_whose_derivative_is_not_there(name):
    x = engine.tensor([1.5, 2.5], requires_grad=True)
    with pytest.raises(RuntimeError, match=f"derivative for aten::{name} is not implemented"):
        registry[name].function(x, x * 2).sum().backward()
