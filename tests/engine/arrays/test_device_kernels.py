"""The kernels that are written for a GPU give what their formulas give by NumPy.

The text of a kernel is compiled by the C++ compiler of the machine and runs over NumPy's arrays (kernels_in_cpp); with
``-m gpu``, CuPy compiles it and runs it on the GPU.
"""

import copy
import itertools
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels_in_cpp import ElementwiseKernel, ReductionKernel
from over_tables import over

import engine
from engine.arrays import devices, dispatch
from engine.arrays.devices import draws
from engine.arrays.devices.kernels import TYPES, Kernels
from engine.arrays.kernels import gelu, losses
from engine.ops import activations, elementwise
from engine.ops.rows import registry

gpu = pytest.mark.gpu
HALVES = [np.float16, ml_dtypes.bfloat16]
FLOATS = [np.float32, np.float64, *HALVES]


class Counting(Kernels):
    """Kernels over NumPy's arrays, and how many were made and launched."""

    def __init__(self):
        super().__init__(self.maker, np, np.ndarray, partial(self.maker, kind=ReductionKernel))
        self.made, self.launched = [], 0

    def maker(self, *args, kind=ElementwiseKernel, **options):
        kernel = kind(*args, **options)
        self.made.append((args, options))

        def launch(*args, **options):
            self.launched += 1
            return kernel(*args, **options)

        return launch


@pytest.fixture
def kernels():
    return Counting()


def close(found, expected, dtype):
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(expected, np.float64), 16 * eps, 16 * eps)


def in_float32(formula, *args):
    """What a formula gives in float32 for halves, rounded once; for other types what it gives."""
    x = args[0]
    half = x.dtype in HALVES
    wide = [a.astype(np.float32) if half and isinstance(a, np.ndarray) and a.dtype == x.dtype else a for a in args]
    found = formula(*wide)
    found = found if type(found) is tuple else (found,)
    return [f.astype(x.dtype) if half and f.dtype == np.float32 else f for f in found]


# ---- formulas of one element


RANDOM = np.random.default_rng(0)
FORMULAS = {  # formula, how many arrays it takes, its other arguments
    "gelu": (gelu.gelu_arrays, 1, ("none", True)), "gelu by tanh": (gelu.gelu_arrays, 1, ("tanh", False)),
    "sigmoid": (elementwise.logistic, 1, ()), "logits_loss": (losses.logits_formula, 2, ()),
    "weighted_logits_loss": (losses.weighted_logits_formula, 2, (0.5, 2.0)), "log_sigmoid": (losses.log_sigmoid, 1, ()),
    "silu's rule": (activations.silu_rule, 2, ()),
}  # fmt: skip


@over("name, dtype", itertools.product(FORMULAS, FLOATS))
def test_a_formula_is_one_kernel(name, dtype):
    (formula, n, more), kernels = FORMULAS[name], Counting()
    arrays = [RANDOM.standard_normal((5, 7)).astype(dtype) for _ in range(n)]
    found = kernels.elementwise(formula, *arrays, *more)
    assert kernels.launched == 1
    for a, b in zip(found if type(found) is tuple else (found,), in_float32(formula, *arrays, *more), strict=True):
        assert a.dtype == dtype
        close(a, b, dtype)


@over("name", FORMULAS)
def test_a_formula_meets_infinities_and_nan_as_numpy_does(name):
    (formula, n, more), kernels = FORMULAS[name], Counting()
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 710.0, -750.0])
    arrays = [a.reshape(-1) for a in np.meshgrid(*[edges] * n)]
    with np.errstate(all="ignore"):
        found, expected = kernels.elementwise(formula, *arrays, *more), formula(*arrays, *more)
    for a, b in zip(*(v if type(v) is tuple else (v,) for v in (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, 1e-12)
        zeros = b == 0
        assert (np.signbit(a) == np.signbit(b))[zeros].all()


RULES = [(name, i) for name, row in registry.items() if row.kind in ("unary", "binary") for i in range(len(row.rules))]
UNWRITTEN = {  # CUDA has no such function, or NumPy's meaning of it is another; the rest are a single function
    "digamma", "lgamma", "floor_divide", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_left_shift", "bitwise_right_shift",
}  # fmt: skip
SINGLE = {"add", "sub", "rsub", "mul", "neg", "exp", "log", "sgn", "sign", "ceil", "floor", "trunc", "fmod",
          "remainder", "div_floor", "div_trunc", "div", "copysign", "frac"}  # fmt: skip


@over("name, i", RULES)
def test_the_rule_of_a_row_is_one_kernel(name, i):
    rule, kernels = registry[name].rules[i], Counting()
    arrays = [RANDOM.uniform(0.1, 0.9, (3, 4)) for _ in range(rule.__code__.co_argcount)]
    try:
        expected = rule(*arrays)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=str(error)):
            kernels.elementwise(rule, *arrays)
        return
    found = kernels.elementwise(rule, *arrays)
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_allclose(found, expected, 1e-12)
    assert kernels.launched == 1 or name in UNWRITTEN | SINGLE


@settings(max_examples=50)
@given(st.data())
def test_arrays_broadcast(data):
    shape = data.draw(st.lists(st.integers(0, 4), max_size=3))
    shapes = [tuple(data.draw(st.sampled_from([1, n])) for n in shape)[data.draw(st.integers(0, len(shape))) :]
              for _ in range(3)]  # fmt: skip
    g, x, y = (np.random.default_rng(i).standard_normal(s) for i, s in enumerate(shapes))
    np.testing.assert_allclose(Counting().elementwise(rule_of_loss, g, x, y, 0.5), rule_of_loss(g, x, y, 0.5), 1e-12)


def rule_of_loss(g, x, y, scale):
    return (elementwise.sigmoid(x) - y) * (g * scale)


def test_results_lie_in_memory_as_the_arrays_do(kernels):
    x = np.asfortranarray(RANDOM.standard_normal((3, 4)))
    assert kernels.elementwise(elementwise.logistic, x).flags.f_contiguous and kernels.launched == 1


def test_numbers_are_parameters_so_that_another_number_is_no_other_program(kernels):
    x = RANDOM.standard_normal(3)
    for slope in (0.1, 0.2, float("inf"), 0.1):
        found = kernels.elementwise(leaky, x, slope)
        np.testing.assert_array_equal(found, leaky(x, slope))
    assert len(kernels.made) == 3 and len({args for args, _ in kernels.made}) == 1


def leaky(x, slope):
    return np.where(x > 0, x, x * slope) if isinstance(x, np.ndarray) else dispatch.xp_of(x).where(x > 0, x, x * slope)


def test_a_negative_zero_is_another_number(kernels):
    for slope in (0.0, -0.0, 0):
        found, expected = kernels.elementwise(leaky, np.array([-1.0, 1.0]), slope), leaky(np.array([-1.0, 1.0]), slope)
        assert np.signbit(found).tolist() == np.signbit(expected).tolist()


def test_what_no_kernel_says_is_computed_step_by_step(kernels):
    x = RANDOM.standard_normal(3)
    for formula in (lambda x: x * x.sum() + 1, lambda x: x[0] * x * 2, lambda x: x * 2 + 1 if x.all() else x):
        np.testing.assert_array_equal(kernels.elementwise(formula, x), formula(x))
    np.testing.assert_array_equal(kernels.elementwise(lambda x, y: x * y + 1, x, [1, 2, 3]), x * [1, 2, 3] + 1)
    assert kernels.launched == 0
    other = np.ones(2).view(type("OfAnotherDevice", (np.ndarray,), {}))
    np.testing.assert_array_equal(kernels.elementwise(lambda x, y: x * 2 + y, x[:2], other), x[:2] * 2 + 1)
    assert kernels.launched == 0


def test_what_only_hands_an_array_on_copies_nothing(kernels):
    x = np.ones(3)
    assert (
        kernels.elementwise(lambda x: x, x) is x
        and kernels.elementwise(lambda x: x.astype(x.dtype, copy=False), x) is x
    )


def test_words_become_dropout_masks_and_fractions(kernels):
    words = draws.philox(7, 0, 50)
    for dtype in FLOATS:
        scale = np.dtype(dtype).type(1 / 0.7)
        found = kernels.elementwise(draws.bernoulli_values, words, 0.7, scale)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, draws.bernoulli_values(words, 0.7, scale))
    np.testing.assert_array_equal(kernels.elementwise(draws.fraction, words), draws.fraction(words))
    assert kernels.launched == 5


# ---- sums of formulas


@over("dtype, keepdims, axis", itertools.product([np.float32, np.float64], [False, True], [None, 0, -1, (0, 2)]))
def test_the_sum_of_a_formula_is_one_kernel(dtype, keepdims, axis):
    kernels = Counting()
    g, x, y = (RANDOM.standard_normal(s).astype(dtype) for s in ((2, 3, 4), (3, 1), (4,)))
    found = kernels.sum_of(rule_of_loss, axis, keepdims, g, x, y, 0.5)
    expected = np.asarray(rule_of_loss(g, x, y, 0.5).sum(axis, keepdims=keepdims))
    assert kernels.launched == 1 and found.dtype == dtype and found.shape == expected.shape
    close(found, expected, dtype)


def test_sums_of_two_byte_types_and_of_what_no_kernel_says_take_two_steps(kernels):
    x = RANDOM.standard_normal((3, 4)).astype(np.float16)
    close(kernels.sum_of(elementwise.logistic, 0, False, x), elementwise.logistic(x).sum(0), np.float16)
    np.testing.assert_array_equal(kernels.sum_of(lambda x: x * x.sum(), 0, False, x), (x * x.sum()).sum(0))


# ---- optimizers


OPTIONS = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "dampening": 0.1, "maximize": True}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("Adam", {}), ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}), ("AdamW", {}), ("AdamW", {"amsgrad": True}), ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.1}), ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
]  # fmt: skip


def algorithm(name, options):
    optimizer = getattr(engine.optim, name)([engine.zeros(1, requires_grad=True)], lr=0.05, **options)
    group = optimizer.param_groups[0]
    return optimizer, group, len(optimizer._state_names(group))


KINDS = list(zip(FLOATS, (1, 2, 3, 3), strict=True))  # the dtype of an optimizer's arrays, and how many rows of them


@over(
    "name, options, dtype, rows",
    [(*OPTIONS[1], *kind) for kind in KINDS] + [(*o, *kind) for o, kind in zip(OPTIONS, itertools.cycle(KINDS))],
)
def test_the_step_of_an_optimizer_is_one_kernel(name, options, dtype, rows):
    kernels, (optimizer, group, states) = Counting(), algorithm(name, options)
    ours = [[RANDOM.standard_normal(n).astype(dtype) for _ in range(2)] for n in (4, 0, 5)[:rows]]
    begin = optimizer.defaults.get("initial_accumulator_value", 0.0)
    ours = [row + [np.full_like(row[0], begin) for _ in range(states)] for row in ours]
    theirs = [[a.copy() for a in row] for row in ours]
    for step in (1.0, 2.0, 3.0):
        update = partial(optimizer._signed_formula, group, step)
        kernels.update(update, ours)
        for row in theirs:
            wide = [a.astype(np.float32) if dtype in HALVES else a for a in row]  # computed in float32, rounded once
            update(*wide)
            for a, b in zip(row, wide, strict=True):
                a[...] = b
        for row, expected in zip(ours, theirs, strict=True):
            for a, b in zip(row, expected, strict=True):
                close(a, b, dtype)
    assert kernels.launched == 3 and len(kernels.made) == 1 + (states > 0 and name == "SGD")


def test_a_scheduler_changes_no_program(kernels):
    optimizer, group, states = algorithm("Adam", {})
    row = [RANDOM.standard_normal(3) for _ in range(2)] + [np.zeros(3) for _ in range(states)]
    for step in range(1, 6):
        group["lr"] = 0.1 / step
        kernels.update(partial(optimizer._signed_formula, group, float(step)), [row])
    assert len(kernels.made) == 1 and kernels.launched == 5


def test_packs_of_one_step_share_what_is_written_but_not_with_another_step(kernels):
    optimizer, group, _ = algorithm("SGD", {})
    rows, written, formulas = [np.zeros(2), np.ones(2)], {}, []

    def update(*args):
        formulas.append(group["lr"])
        optimizer._signed_formula(group, 1.0, *args)

    for share in (written, written, {}):
        kernels.update(update, [rows], share)
        group["lr"] = 1.0
    assert formulas == [0.05, 1.0] and rows[0].tolist() == [-1.1, -1.1]


def test_the_text_of_a_kernel_can_be_read():
    made = []
    kernels = Kernels(lambda *args, **options: made.append((args, options)) or (lambda *a, **o: None), np, np.ndarray)
    optimizer, group, _ = algorithm("SGD", {"momentum": 0.9})
    arrays = [np.zeros(3, np.float32) for _ in range(3)]
    kernels.update(partial(optimizer._signed_formula, group, 2.0), [arrays] * 2)
    (((inputs, outputs, text, name), options),) = made
    assert inputs == "raw float32 x1_0, raw float32 x1_1, int64 size_0, float32 n0, float32 n1"
    assert outputs == "raw float32 x0_0, raw float32 x0_1, raw float32 x2_0, raw float32 x2_1"
    assert (name, text.splitlines()) == ("engine_update", [
        "long long j = i;",
        "if (j < size_0) update(x0_0[j], x1_0[j], x2_0[j], n0, n1); else { j -= size_0;",
        "update(x0_1[j], x1_1[j], x2_1[j], n0, n1);",
        "}",
    ])  # fmt: skip
    assert options["preamble"].splitlines() == [
        "template <typename X0, typename X1, typename X2>",
        "__device__ void update(X0 &x0, const X1 &x1, X2 &x2, float n0, float n1) {",
        "float v1 = x0;", "float v2 = x1;", "float v3 = x2;",
        "v3 = v3 * n0;",
        "float v4 = v2 * (float)(1);",
        "v3 = v3 + v4;",
        "float v5 = v3 * n1;",
        "v1 = v1 - v5;",
        "x0 = v1;", "x2 = v3;",
        "}",
    ]  # fmt: skip


def test_every_type_of_a_tensor_has_a_name_in_kernels():
    assert {t.np for t in engine.arrays.dtypes.of.values()} <= set(TYPES)


# ---- the same on a device


def shapes():
    """Parameters of all kinds: empty, a number, turned around, large; and more small ones than a list holds."""
    return [(3, 4), (), (0, 2), (1 << 9, 1 << 9, 2), *[(2,)] * 20]


def parameters(device, dtype):
    rng = np.random.default_rng(0)
    found = [engine.tensor(rng.standard_normal(s), dtype=dtype, device=device) for s in shapes()]
    found[0] = found[0].t().contiguous().t()
    for p in found:
        p.requires_grad_()
        p.grad = engine.tensor(rng.standard_normal(p.shape), dtype=dtype, device=device)
    found[-1].grad = engine.tensor(np.ones((2, 2)), dtype=dtype, device=device)[:, 0]  # with gaps in between
    return found


@gpu
@pytest.mark.parametrize("dtype", [engine.float32, engine.float64, engine.float16, engine.bfloat16])
@pytest.mark.parametrize("name, options", OPTIONS)
def test_parameters_of_all_kinds_are_moved_by_few_kernels(name, options, dtype, monkeypatch):
    found, launched = [], []
    kernels = dispatch.kernels[devices.backend_of("cuda").array]
    update = kernels.update
    monkeypatch.setattr(
        kernels, "update", lambda f, rows, written: launched.append(len(rows)) or update(f, rows, written)
    )
    half = dtype in (engine.float16, engine.bfloat16)
    for device in ("cuda", "cpu"):
        params = parameters(device, dtype)
        if half and device == "cpu":  # the oracle computes in float32 and rounds after each step
            for p in params:
                p.data, p.grad = p.data.float(), p.grad.float()
        optimizer = getattr(engine.optim, name)(params, lr=0.05, **options)
        names = optimizer._state_names(optimizer.param_groups[0])
        for _ in range(3):
            optimizer.step()
            results = [*(p.detach() for p in params), *(optimizer.state[p][n] for p in params for n in names)]
            for x in results:
                x.copy_(x.to(dtype))
        found.append(results)
    assert sorted(launched) == sorted([1, 1, 16, 6] * 3)  # the turned one and the large one alone, then two lists
    tolerance = {engine.float16: 1e-2, engine.bfloat16: 5e-2, engine.float32: 1e-5, engine.float64: 1e-12}[dtype]
    for a, b in zip(*found, strict=True):
        assert a.dtype is dtype and a.shape == b.shape
        near = np.isclose(a.cpu().double(), b.double(), tolerance, tolerance, equal_nan=True)
        assert near.all() or half and near.mean() > 0.999  # a rounding may fall on the other side, and be enlarged


@gpu
def test_states_are_saved_and_loaded_between_devices():
    def model(device):
        engine.manual_seed(0)
        return engine.nn.Linear(3, 2, dtype=engine.float64).to(device)

    def steps(model, optimizer, n):
        for _ in range(n):
            optimizer.zero_grad()
            (
                model(engine.ones(4, 3, dtype=engine.float64, device=next(model.parameters()).device)) ** 2
            ).sum().backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    here, there = model("cpu"), model("cuda")
    first, second = (engine.optim.Adam(m.parameters(), 0.1) for m in (here, there))
    steps(here, first, 2)
    there.load_state_dict(here.state_dict())
    second.load_state_dict(copy.deepcopy(first.state_dict()))  # else they share the counts of steps
    for a, b in zip(steps(here, first, 2), steps(there, second, 2), strict=True):
        np.testing.assert_allclose(a, b, 1e-12)


ACTIVATIONS = """celu elu gelu hardshrink hardsigmoid hardswish leaky_relu logsigmoid mish selu sigmoid silu softplus
softshrink tanh threshold""".split()


@gpu
@pytest.mark.parametrize("dtype", [engine.float32, engine.float16, engine.bfloat16])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_derivatives_are_right_in_every_type(name, dtype):
    found = []
    for device in ("cuda", "cpu"):
        x = engine.linspace(-8, 8, 99).to(device, dtype).requires_grad_()
        y = getattr(engine.nn.functional, name)(x, *((0.5, 1.0) if name == "threshold" else ()))
        y.backward(engine.linspace(0.5, 1.5, 99).to(device, dtype))
        found.append([y.detach().cpu().double(), x.grad.cpu().double()])
    tolerance = {engine.float16: 4e-3, engine.bfloat16: 4e-2, engine.float32: 2e-6}[dtype]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, tolerance, tolerance)
