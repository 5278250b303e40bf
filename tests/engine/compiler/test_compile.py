"""compile: the same values and gradients as eager, captures that hold only where their guards do, breaks that tell."""

import copy
import gc
import itertools
import pickle
import re
import tracemalloc

import numpy as np
import pytest
from drawn import numbers, some_of
from over_tables import over
from test_rules import CASES, inputs, run, weights

import engine
from engine import nn
from engine.compiler import GraphBreak, explain
from engine.ops.rows import registry

pytestmark = pytest.mark.usefixtures("generator")

SCALE = 2.0  # a global that a test changes
EAGER = ("prod", "cumprod", "det", "embedding_bag")  # rows that look at values to choose how to compute


def gradients(f, sample, arrays):
    """(values, gradients) of a sample, with random weights."""
    results, variables = run(engine, f, sample, arrays)
    given = [engine.tensor(w) for w in weights(results, 1)]
    grads = engine.autograd.grad(results, variables, given, allow_unused=True)
    return [r.detach().numpy().copy() for r in results], [None if g is None else g.numpy().copy() for g in grads]


@over("name, sample", CASES)
def test_compiled_as_eager(name, sample):
    f, arrays = registry[name].function, inputs(name, sample)
    compiled = engine.compile(f)
    expected, grads = gradients(f, sample, arrays)
    for _ in range(2):  # the call that captures, and one that runs what was written
        values, found = gradients(compiled, sample, arrays)
        for a, b in zip(expected, values, strict=True):
            np.testing.assert_allclose(b, a, 1e-12, 1e-12)
        for a, b in zip(grads, found, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(b, a, 1e-12, 1e-12)
                assert a.shape == b.shape and a.dtype == b.dtype
    (entry,) = compiled.entries
    assert entry.deviations == 0
    if entry.broken is not None:
        assert name in EAGER or "view of an input" in entry.broken.reason


def counted(compiled):
    """How many captures there are."""
    return len(compiled.entries)


def captured(function, *args):
    """The compiled function after a call, which it could capture."""
    compiled = engine.compile(function, fullgraph=True)
    compiled(*args)
    return compiled


def affine(x, w):
    return (x @ w).tanh() * SCALE


# ---- guards


@pytest.mark.parametrize(
    "change",
    [
        lambda x, w: (numbers(7, 3), w),
        lambda x, w: (x.double(), w.double()),
        lambda x, w: (numbers(3, 5).t(), w),
        lambda x, w: (x.clone().requires_grad_(), w),
    ],
    ids=["shape", "dtype", "strides", "requires_grad"],
)
def test_another_kind_of_tensor_is_captured_anew(change):
    x, w = numbers(5, 3), numbers(3, 4)
    compiled = captured(affine, x, w)
    compiled(x, w)
    assert counted(compiled) == 1
    other = change(x, w)
    result = compiled(*other)
    assert counted(compiled) == 2
    np.testing.assert_allclose(result.detach().numpy(), affine(*other).detach().numpy(), 1e-6)
    assert result.requires_grad == affine(*other).requires_grad
    compiled(x, w)
    assert counted(compiled) == 2


def test_grad_mode_is_a_guard():
    x, w = numbers(5, 3), numbers(3, 4, grad=True)
    compiled = captured(affine, x, w)
    with engine.no_grad():
        assert not compiled(x, w).requires_grad
    assert compiled(x, w).requires_grad and counted(compiled) == 2


def test_training_mode_is_a_guard():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
    compiled, x = engine.compile(model), numbers(5, 3)
    model.eval()
    assert engine.equal(compiled(x), model(x))
    model.train()
    engine.manual_seed(3)
    first = compiled(x)
    engine.manual_seed(3)
    assert engine.equal(first, model(x))
    assert counted(compiled.compiled) == 2


def test_a_global_is_a_guard(monkeypatch):
    x, w = numbers(5, 3), numbers(3, 4)
    compiled = captured(affine, x, w)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert engine.equal(compiled(x, w), affine(x, w))


def test_a_closure_is_a_guard():
    scale, x = 2.0, numbers(4)
    compiled = captured(lambda x: x * scale, x)
    scale = 3.0
    assert engine.equal(compiled(x), x * 3.0) and counted(compiled) == 2


def test_an_attribute_of_an_object_is_a_guard():
    class Settings:
        scale = 1.5

    settings, x = Settings(), numbers(4)
    compiled = captured(lambda x: x * settings.scale, x)
    settings.scale = 2.5
    assert engine.equal(compiled(x), x * 2.5)
    Settings.scale = 4.0
    del settings.scale
    assert engine.equal(compiled(x), x * 4.0)


def test_a_number_as_an_argument_is_a_guard():
    x = numbers(4)
    compiled = captured(lambda x, k: x * k, x, 2)
    assert engine.equal(compiled(x, 3), x * 3) and engine.equal(compiled(x, 3.5), x * 3.5)
    assert counted(compiled) == 3


def test_an_array_is_a_guard_by_its_elements():
    x, scale = numbers(3), np.ones(3, np.float32)
    compiled = captured(lambda x: x * engine.tensor(scale), x)
    scale *= 2
    assert engine.equal(compiled(x), x * 2)


def test_a_tensor_in_a_closure_is_an_input():
    shift, x = numbers(4, grad=True), numbers(4, seed=1)
    compiled = captured(lambda x: (x * shift).sum(), x)
    with engine.no_grad():
        shift += 1.0
    result = compiled(x)
    assert counted(compiled) == 1 and engine.equal(result, (x * shift).sum())
    result.backward()
    assert engine.equal(shift.grad, x)


def test_one_tensor_for_two_arguments_is_a_guard():
    x, y = numbers(4, grad=True), numbers(4, seed=1, grad=True)
    compiled = captured(lambda x, y: (x * y).sum(), x, y)
    compiled(x, x).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), 1e-6)
    assert counted(compiled) == 2


def test_two_tensors_on_one_array_are_two_inputs():
    x = numbers(4)
    y = x.detach()
    compiled = captured(lambda x, y: x - 2 * y, x, y)
    z = numbers(4, seed=1)
    assert engine.equal(compiled(x, z), x - 2 * z)


# ---- what cannot be captured


def branch(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


def item(x):
    return x * x.max().item()


def mask(x):
    return x[x > 0] * 2


def distinct(x):
    return x.round().unique() * 2


def to_numpy(x):
    return x * float(x.detach().numpy()[0])


@pytest.mark.parametrize(
    "function, reason",
    [
        (branch, "a branch depends on a value"),
        (item, "a value is read into Python"),
        (mask, "indexing with a mask"),
        (distinct, "the shape of the result depends on a value: unique"),
        (to_numpy, "a value is read into Python"),
    ],
)
def test_a_graph_break_tells_and_runs_eagerly(function, reason):
    with pytest.raises(GraphBreak, match=reason) as error:
        engine.compile(function, fullgraph=True)(numbers(3))
    assert "test_compile.py:" in str(error.value)
    explanation = explain(function)(numbers(3))
    assert explanation.graph_break_count == 1 and reason in explanation.break_reasons[0]
    compiled = engine.compile(function)
    for seed in range(4):
        engine.manual_seed(seed)
        expected = function(numbers(3, seed=seed))
        engine.manual_seed(seed)
        assert engine.equal(compiled(numbers(3, seed=seed)), expected)


def test_the_line_of_a_break_is_named():
    with pytest.raises(GraphBreak, match="if x.sum"):
        engine.compile(branch, fullgraph=True)(numbers(3))


def test_printing_prints_each_time(capsys):
    def shown(x):
        print("seen")
        return x + 1

    compiled = engine.compile(shown)
    compiled(numbers(3)), compiled(numbers(3))
    assert capsys.readouterr().out == "seen\nseen\n"
    with pytest.raises(GraphBreak, match=r"print\(\)"):
        engine.compile(shown, fullgraph=True)(numbers(3))


def test_a_module_of_the_users_own():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.scale, self.seen = nn.Linear(3, 2), 2.0, 0

        def forget(self):
            self.seen = 0

        def shaped(self, x):
            return x * self.scale

        def forward(self, x):
            return self.shaped(self.inner(x)).tanh()

    model, x = Net(), numbers(4, 3)
    compiled = engine.compile(model, fullgraph=True)
    assert engine.equal(compiled(x), model(x))
    model.scale = 3.0
    assert engine.equal(compiled(x), model(x))


def test_a_module_that_counts_its_calls():
    class Net(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2

    model = Net()
    compiled = engine.compile(model)
    compiled(numbers(3)), compiled(numbers(3))
    assert model.calls == 2


def test_what_is_kept_outside_runs_eagerly():
    kept = []

    def keep(x):
        kept.append(x * 2)
        return x + 1

    engine.compile(keep)(numbers(3))
    assert len(kept) == 1 and engine.equal(kept[0], numbers(3) * 2)


def test_a_users_error_is_the_users():
    def wrong(x):
        return x @ x

    with pytest.raises(RuntimeError) as eager:
        wrong(numbers(2, 3))
    with pytest.raises(RuntimeError) as compiled:
        engine.compile(wrong)(numbers(2, 3))
    assert str(compiled.value) == str(eager.value)


# ---- what eager does, too


def test_create_graph_runs_eagerly_and_says_so():
    x = numbers(3, grad=True)
    compiled = captured(lambda x: (x.tanh() ** 3).sum(), x)
    with pytest.warns(UserWarning, match="create_graph"):
        (g,) = engine.autograd.grad(compiled(x), x, create_graph=True)
    (second,) = engine.autograd.grad(g.sum(), x)
    (h,) = engine.autograd.grad((x.tanh() ** 3).sum(), x, create_graph=True)
    np.testing.assert_allclose(second.numpy(), engine.autograd.grad(h.sum(), x)[0].numpy(), 1e-5)


@pytest.mark.filterwarnings("ignore:compile")
def test_create_graph_through_inputs_that_depend_on_each_other():
    def product(x, y):
        return (x * y * y).sum()

    def second(f):
        x = numbers(3, dtype="float64", grad=True)
        (g,) = engine.autograd.grad(f(x, x.sin()), x, create_graph=True)
        return engine.autograd.grad(g.sum(), x)[0].numpy()

    np.testing.assert_allclose(second(engine.compile(product, fullgraph=True)), second(product), 1e-12)


def test_several_results_and_structures():
    def several(x, scale=2):
        return {"double": x * scale, "same": x, "parts": [x.sum(), 3, (x + 1).detach()]}

    x = numbers(3, grad=True)
    compiled = captured(several, x)
    result, expected = compiled(x), several(x)
    assert result["same"] is x and result["parts"][1] == 3 and list(result) == list(expected)
    assert engine.equal(result["double"], expected["double"]) and not result["parts"][2].requires_grad
    result["parts"][0].backward(retain_graph=True)
    assert engine.equal(x.grad, engine.ones(3))
    (result["double"].sum() + result["parts"][0]).backward()
    assert engine.equal(x.grad, engine.full((3,), 4.0))


def test_a_second_backward_says_so():
    x = numbers(3, grad=True)
    result = captured(lambda x: (x * x).sum(), x)(x)
    result.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        result.backward()


def test_a_saved_input_that_was_overwritten_says_so():
    x, y = numbers(3, grad=True), numbers(3, seed=1)
    result = captured(lambda x, y: (x * y).sum(), x, y)(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_hooks_of_inputs_run():
    x, seen = numbers(3, grad=True), []
    x.register_hook(lambda g: seen.append(g.clone()))
    captured(lambda x: (x * x).sum(), x)(x).backward()
    assert len(seen) == 1 and engine.equal(seen[0], 2 * x)


def test_in_place_writes_to_what_was_made_inside():
    def filled(x):
        y = x * 2
        y[1] = 7.0
        y.add_(x)
        return (y * x).sum()

    x = numbers(3, grad=True)
    result = captured(filled, x)(x)
    assert engine.equal(result, filled(x))
    result.backward()
    expected = engine.autograd.grad(filled(x), x)[0]
    assert engine.equal(x.grad, expected)


def test_gradients_do_not_share_memory():
    x, y = numbers(3, grad=True), numbers(3, seed=1, grad=True)
    captured(lambda x, y: (x + y).sum(), x, y)(x, y).backward()
    x.grad += 5
    assert engine.equal(y.grad, engine.ones(3))


def test_inside_of_a_transform_it_is_the_function():
    compiled = captured(lambda x: (x * x).sum(), numbers(3))
    assert engine.equal(engine.func.grad(compiled)(numbers(3)), 2 * numbers(3))
    assert engine.equal(engine.vmap(compiled)(numbers(4, 3)), (numbers(4, 3) ** 2).sum(1))


def test_inference_mode_is_as_eager():
    x, w = numbers(5, 3), numbers(3, 4, grad=True)
    compiled = captured(affine, x, w)
    with engine.inference_mode():
        assert compiled(x, w).is_inference()


def test_forward_mode_is_as_eager():
    x, t = numbers(3), numbers(3, seed=1)
    compiled = captured(lambda x: x.tanh() * x, x)
    ours = engine.func.jvp(compiled, (x,), (t,))
    theirs = engine.func.jvp(lambda x: x.tanh() * x, (x,), (t,))
    assert engine.equal(ours[0], theirs[0]) and engine.equal(ours[1], theirs[1])


def test_a_replaced_parameter_is_used():
    model, x = nn.Linear(3, 2), numbers(4, 3)
    compiled = engine.compile(model)
    compiled(x)
    model.weight = nn.Parameter(numbers(2, 3, seed=5))
    assert engine.equal(compiled(x), model(x))
    model.weight.data = numbers(2, 3, seed=6)
    assert engine.equal(compiled(x), model(x))


def model_and_data():
    engine.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 3))
    return model, engine.randn(20, 8), engine.randint(0, 3, (20,))


def test_a_compiled_module_is_a_module():
    model, x, _ = model_and_data()
    compiled = engine.compile(model)
    assert isinstance(compiled, nn.Module) and list(compiled.state_dict())[0] == "_orig_mod.0.weight"
    assert compiled._orig_mod is model and compiled.append == model.append
    compiled.eval()
    assert not model.training
    compiled(x)
    assert "def backward" in compiled.code and "# 20x16 float32" in compiled.code


def test_what_is_set_on_a_compiled_module_is_set_on_the_module():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(1.0))
    model.scale = 2.0
    compiled = engine.compile(model)
    compiled.scale, compiled.more = 3.0, 1
    assert model.scale == 3.0 and "more" in dir(compiled)
    del compiled.more
    assert not hasattr(model, "more") and len(compiled) == 2
    setattr(compiled, "0", nn.Identity())
    assert type(model[0]) is nn.Identity and list(compiled.children()) == [model]
    model.eval()
    assert not compiled.training
    compiled.train()
    assert model.training and compiled(engine.ones(2)).tolist() == [0, 0]
    compiled.training = False
    assert not model.training


def test_options():
    f = lambda x: x + 1  # noqa: E731
    assert engine.compile(f, disable=True) is f
    assert engine.equal(
        engine.compile(fullgraph=True, dynamic=True, mode="default")(f)(engine.ones(2)), engine.ones(2) + 1
    )
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        engine.compile(f, mode="default", options={"fuse": False})
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        engine.compile(f, mode="fast")
    with pytest.raises(NotImplementedError, match="backends"):
        engine.compile(f, backend="onnxrt")


# ---- the plan and the code


def test_what_is_not_needed_is_not_done():
    def wasteful(x):
        x.exp()
        return (x * 2).tanh() + (x * 2).tanh() + engine.ones(3).exp()

    code = "\n".join(line.partition("  # ")[0] for line in explain(wasteful)(numbers(3)).code.splitlines())
    assert code.count("tanh") == 1 and "exp" not in code


def test_the_code_can_be_read():
    code = captured(affine, numbers(5, 3), numbers(3, 4, grad=True)).code
    assert code.startswith("def forward(x, w):\n") and "def backward(" in code
    assert "x.dot(w)  # 5x4 float32  test_compile.py:" in code


def test_what_no_line_of_the_function_does_has_the_line_of_the_call():
    compiled = engine.compile(engine.func.vmap(engine.func.grad(lambda x: (x * x).sum() ** 2)))
    compiled(numbers(4, 3))  # which begins with the gradient of the result itself
    assert set(re.findall(r"(\w+\.py):\d+", compiled.code)) == {"test_compile.py"}


CHAINS = {
    "chain": lambda x, y: ((x * 0.5).tanh() * (y + 1) - x.sigmoid()).exp(),
    "mean": lambda x, y: ((x * 0.5).tanh() * (y + 1) - x.sigmoid()).exp().mean(),
    "several uses": lambda x, y: (x.sin() * 2, x.sin() + y, (x.sin() - y).sum()),
    "a product between": lambda x, y: ((x * 2 + 1) @ y.t()).relu() * 3 + 1,
    "a number made on the way": lambda x, y: x.exp() / x.exp().sum() + y,
    "comparisons": lambda x, y: (engine.where(x > y, x * 2, y * 3) * (x < 0.5)).square(),
    "a row": lambda x, y: ((x + y[0]) * 2 - y[:, :1]).tanh(),
    "another order": lambda x, y: (x.t() * 2 + y.t()).exp(),
    "writes": lambda x, y: (x * 2).add_(y).mul_(x).sigmoid_() + 1,
    "a view of what is written": lambda x, y: written_through(x, y),
}


def written_through(x, y):
    z = x * 2
    z[1:] += y[1:]
    return z.exp()


@pytest.mark.generator("numpy")
@over("chain, threads, dtype", [(c, *how) for c in CHAINS for how in ((1, "float32"), (2, "float64"))])
def test_large_chains_in_blocks(chain, threads, dtype):
    f, before = CHAINS[chain], engine.get_num_threads()
    x, y = (numbers(401, 401, seed=i, dtype=dtype, grad=True) for i in (1, 2))
    engine.set_num_threads(threads)
    try:
        compiled = captured(f, x, y)
        results, expected = compiled(x, y), f(x, y)
    finally:
        engine.set_num_threads(before)
    assert compiled.entries[0].deviations == 0
    assert ("block" in compiled.code) == (chain not in ("another order", "a view of what is written"))
    pairs = [(results, expected)] if isinstance(results, engine.Tensor) else list(zip(results, expected, strict=True))
    weights = [numbers(*r.shape, seed=3, dtype=dtype) for r, _ in pairs]
    for r, e in pairs:
        np.testing.assert_allclose(r.detach().numpy(), e.detach().numpy(), 1e-5)
        assert r.dtype == e.dtype and r.stride() == e.stride()
    ours = engine.autograd.grad([r for r, _ in pairs], [x, y], weights, allow_unused=True)
    theirs = engine.autograd.grad([e for _, e in pairs], [x, y], weights, allow_unused=True)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-5)


UNARY = [engine.tanh, engine.sigmoid, engine.sin, engine.relu, engine.abs, engine.square, lambda a: -a,
         lambda a: a * 0.5, lambda a: 1 - a, lambda a: a.t(), lambda a: a.clone().add_(0.3), lambda a: a[:, :1] * a,
         lambda a: a.exp().log1p(), lambda a: a - a.mean(),
         lambda a: a.sum(0, keepdim=True) / len(a) + a, lambda a: a.softmax(1)]  # fmt: skip
BINARY = [engine.add, engine.sub, engine.mul, engine.maximum, engine.atan2, lambda a, b: engine.where(a > b, a, b * 2),
          lambda a, b: a + b.sum(), lambda a, b: a / (b.square() + 1), lambda a, b: a @ b * 0.01]  # fmt: skip


def random_function(seed):
    """A function of two square matrices, of some 15 operations."""
    rng = np.random.default_rng(seed)
    steps = []
    for n in range(2, 17):
        if rng.random() < 0.5:
            steps.append((UNARY[rng.integers(len(UNARY))], (int(rng.integers(n)),)))
        else:
            steps.append((BINARY[rng.integers(len(BINARY))], tuple(map(int, rng.integers(0, n, 2)))))

    def f(x, y):
        values = [x, y]
        for op, operands in steps:
            values.append(op(*(values[i] for i in operands)))
        return sum(v * 1.5 for v in values[-4:]), values[-5].sum()

    return f


@pytest.mark.parametrize("size, seed", some_of(40, 12, 7) + some_of(40, 1, 190))
def test_random_functions(size, seed):
    f = random_function(seed)
    compiled = engine.compile(f, fullgraph=True)
    for draw in range(2):  # other numbers than those of the capture
        x, y = (numbers(size, size, seed=[seed, draw, i], dtype="float64", grad=True) for i in range(2))
        results, expected = compiled(x, y), f(x, y)
        weights = [numbers(*r.shape, seed=3, dtype="float64") for r in results]
        ours = engine.autograd.grad(results, [x, y], weights, allow_unused=True)
        theirs = engine.autograd.grad(expected, [x, y], weights, allow_unused=True)
        for a, b in zip((*results, *ours), (*expected, *theirs), strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-9, 1e-9 * size)
    assert len(compiled.entries) == 1 and compiled.entries[0].deviations == 0


def test_without_fusion_every_operation_has_a_line():
    x = numbers(401, 401)
    compiled = engine.compile(CHAINS["chain"], options={"fuse": False})
    assert engine.equal(compiled(x, x), CHAINS["chain"](x, x)) and "block" not in compiled.code


@pytest.mark.generator("numpy")
def test_a_step_of_a_chain_that_is_not_needed_outside_is_not_written_to_memory():
    code = captured(lambda x: (x * 2 + 1).exp() - x, numbers(401, 401)).code
    assert code.count("np.empty") == 1 and "Buffers(((80401,), np.float32))" in code  # half of 401 * 401


@pytest.mark.generator("numpy", "numba")
def test_nothing_stays_after_a_call():
    x, w = numbers(64, 64), numbers(64, 64, grad=True)
    compiled = captured(affine, x, w)

    def call():
        w.grad = None
        compiled(x, w).sum().backward()

    for _ in range(10):
        call()
    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            call()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    assert grown < 20_000  # one array of 64x64 has 16,384 bytes


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_a_copy_of_a_compiled_module_has_parameters_and_captures_of_its_own(copied):
    model = engine.compile(engine.nn.Linear(3, 2), fullgraph=True)
    x = engine.ones(4, 3)
    before = model(x)
    other = copied(model)
    with engine.no_grad():
        other.weight.fill_(0)
    assert engine.equal(other(x), other.bias.expand(4, 2)) and engine.equal(model(x), before)
    assert type(other) is type(model) and other.compiled.fullgraph and len(other.compiled.entries) == 1


def test_a_deep_copy_of_what_has_a_compiled_function_shares_it():
    f = engine.compile(lambda x: x * 2)
    assert copy.deepcopy({"f": f})["f"] is f


@pytest.mark.generator("numpy")
@over("shape, returned", itertools.product([(3,), (30, 20), (401, 401), (2, 1 << 20)], [True, False]))
def test_an_array_is_compared_with_an_array_that_is_filled_with_the_number(shape, returned):
    f = (lambda x: x.relu()) if returned else (lambda x: (x * 2).relu().clamp(max=0.5) - 1)
    compiled, x = captured(f, numbers(*shape)), numbers(*shape)
    x[0] = float("nan")
    x[1] = -0.0
    assert engine.allclose(compiled(x), f(x), 0, 0, equal_nan=True)
    large = returned and shape == (2, 1 << 20)  # too large to be kept for it
    assert ("zeros" in compiled.code) == (not large) and ("filled" in compiled.code) == (not returned)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_capture_lets_its_arrays_go_without_the_garbage_collector(dynamic):
    x, w = engine.randn(300, 300), engine.randn(300, 300, requires_grad=True)
    first, compiled = (engine.compile(lambda x: (x @ w * 2.0).relu(), dynamic=dynamic) for _ in range(2))
    first(x)  # what writes machine code leaves garbage of its own
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        compiled(x)
        held = tracemalloc.get_traced_memory()[0]
        gc.collect()
        assert held - tracemalloc.get_traced_memory()[0] < x.nbytes / 2
    finally:
        tracemalloc.stop()
        gc.enable()
