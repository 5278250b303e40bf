"""compile: passes over blocks of rows, what backward computes anew, and memory that is used again."""

import importlib
import re
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from drawn import numbers
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.arrays import threads as blocks
from engine.nn import functional as F

pytestmark = pytest.mark.usefixtures("generator")

planning, fuse, memory = (
    importlib.import_module(f"engine.compiler.{name}") for name in ("plan", "fuse", "memory_plan")
)


def captured(function, *args):
    compiled = engine.compile(function, fullgraph=True)
    compiled(*args)
    return compiled


def assert_as_eager(f, inputs, precision=1e-9):
    """Values and gradients of a compiled function are those of the function; gives the compiled function."""
    compiled = engine.compile(f, fullgraph=True)
    for _ in range(3):  # the capture, a run in new buffers, a run in buffers of before
        pairs = []
        for run in (compiled, f):
            result = run(*inputs)
            results = result if isinstance(result, tuple) else (result,)
            weights = [numbers(*r.shape, seed=5, dtype=r.numpy(force=True).dtype.name) for r in results]
            wanted = [x for x in inputs if x.requires_grad]
            grads = engine.autograd.grad(results, wanted, weights, allow_unused=True) if wanted else ()
            pairs.append((*results, *grads))
        for ours, theirs in zip(*pairs, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
                a, b = ours.detach().numpy(), theirs.detach().numpy()
                np.testing.assert_allclose(a, b, precision, precision * max(1, np.abs(b).max()))
    assert compiled.entries[0].deviations == 0
    return compiled


# ---- random expressions

UNARY = {
    "tanh": engine.tanh, "exp": lambda a: (a * 0.1).exp(), "neg": lambda a: -a, "square": engine.square,
    "relu": engine.relu, "clone": lambda a: a.clone().mul_(0.5), "scaled": lambda a: 2 - a * 0.5,
    "sum -1": lambda a: a.sum(-1, keepdim=True), "mean -1": lambda a: a.mean(-1, keepdim=True),
    "max -1": lambda a: a.amax(-1, keepdim=True), "sum -2 -1": lambda a: a.sum((-2, -1), keepdim=True),
    "sum 0": lambda a: a.sum(0, keepdim=True), "total": engine.sum, "mean": engine.mean, "largest": engine.max,
    "softmax": lambda a: a.softmax(-1), "log_softmax": lambda a: a.log_softmax(-1), "gelu": F.gelu,
    "layer_norm": lambda a: F.layer_norm(a, a.shape[-1:]),
    "t": lambda a: a.transpose(-1, -2).contiguous().transpose(-1, -2),
    "sum -1 out": lambda a: a.sum(-1)[..., None], "view": lambda a: a.reshape(-1).reshape(a.shape),
}  # fmt: skip
BINARY = {
    "add": engine.add, "sub": engine.sub, "mul": engine.mul, "maximum": engine.maximum,
    "ratio": lambda a, b: a / (b.square() + 1), "where": lambda a, b: engine.where(a > b, a, b * 2),
    "matmul": lambda a, b: a + (a @ a.transpose(-1, -2)).tanh() @ b if a.shape == b.shape and a.ndim > 1 else a + b,
}  # fmt: skip
SHAPES = [(2, 3, 5), (5,), (3, 1), (2, 3, 1), (1, 3, 5), (2, 1, 1), (1, 1, 5), (), (3, 5), (2, 3, 5)]


@st.composite
def programs(draw):
    """(the shapes of the inputs, the steps: what is done, on which values)."""
    shapes = [(2, 3, 5), *draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))]
    steps = []
    for n in range(draw(st.integers(2, 14))):
        op = draw(st.sampled_from([*UNARY, *BINARY]))
        known = st.integers(0, len(shapes) + n - 1)
        steps.append((op, draw(known), draw(known)))
    return shapes, steps


def function_of(shapes, steps):
    def f(*inputs):
        values = [*inputs]
        for op, i, j in steps:
            a = values[i] if values[i].ndim == 3 else values[i] + inputs[0]
            values.append(UNARY[op](a) if op in UNARY else BINARY[op](a, values[j]))
        return tuple(v * 1.5 for v in values[-3:])

    return f


@pytest.fixture
def tiny(monkeypatch):
    """Arrays of a few elements are large."""
    sizes = {
        fuse: {"BLOCK": 15}, blocks: {"BLOCK": 15, "THREADED": 20}, planning: {"LARGE_CHAIN": 8},
        memory: {"LARGE_BUFFER": 8, "SMALL_ARRAY": 2},
    }  # fmt: skip
    for module, found in sizes.items():
        for name, size in found.items():
            monkeypatch.setattr(module, name, size)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("examples", [15, pytest.param(100, marks=pytest.mark.slow)])
def test_random_expressions_with_broadcasting_and_reductions(tiny, threads, examples):
    @settings(max_examples=examples)
    @given(programs(), st.integers(0, 1000))
    def check(program, seed):
        shapes, _ = program
        inputs = [numbers(*s, seed=[seed, i], dtype="float64", grad=True) for i, s in enumerate(shapes)]
        assert_as_eager(function_of(*program), inputs)

    before = engine.get_num_threads()
    engine.set_num_threads(threads)
    try:
        check()
    finally:
        engine.set_num_threads(before)


# ---- memory


def peak(call):
    """The bytes that a call had allocated at most, beyond those of the arrays that it gives."""
    tracemalloc.start()
    try:
        results = call()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return most - sum(r.nbytes for r in {id(r): r for r in results if r is not None}.values() if r.base is None)


def test_a_steady_step_allocates_only_what_leaves_it(monkeypatch):
    monkeypatch.setattr(blocks, "threads", 1)  # each thread has buffers of its own, from the first call that it joins
    x, w = numbers(512, 512), numbers(512, 512, grad=True)

    def loss(x, w):
        h = (x @ w).tanh() * 2 + x
        return ((h @ w).relu() * h).sum()

    (entry,) = captured(loss, x, w).entries
    saved = entry.forward(x.array, w.array)[1:]
    array = 512 * 512 * 4
    entry.backward(*saved, np.float32(1))  # the buffers are there from now on
    kept = {id(a) for a in (x.array, w.array)}
    forward = peak(lambda: [r for r in entry.forward(x.array, w.array) if id(r) not in kept])
    backward = peak(lambda: entry.backward(*saved, np.float32(1)))
    assert forward < 0.1 * array and backward < 0.1 * array


def test_results_of_two_calls_share_no_memory():
    x = numbers(400, 400)
    compiled = captured(lambda x: ((x * 2 + 1).exp(), (x @ x).tanh()), x)
    first = compiled(x)
    kept = [r.numpy().copy() for r in first]
    second = compiled(x + 1)
    for a, b, c in zip(first, second, kept, strict=True):
        assert not np.shares_memory(a.numpy(), b.numpy()) and np.array_equal(a.numpy(), c)


def test_buffers_of_two_dtypes_are_not_mixed_up(tiny):
    f = lambda x, y: (x @ x).sum() + (y @ y).sum() - (x @ x.T).tanh().sum()  # noqa: E731
    assert_as_eager(f, (numbers(5, 5), numbers(5, 5, seed=1, dtype="float64")), 1e-6)


def test_two_passes_before_their_backwards_keep_their_own_values():
    f = lambda x: (x.tanh() * (x + 1)).exp().mean()  # noqa: E731
    x, y = (numbers(400, 400, seed=i, grad=True) for i in range(2))
    compiled = captured(f, x)
    first, second = compiled(x), compiled(y)
    first.backward(retain_graph=True)
    second.backward()
    first.backward()
    for t, factor in ((x, 2), (y, 1)):
        (expected,) = engine.autograd.grad(f(t), t)
        np.testing.assert_allclose(t.grad.numpy(), factor * expected.numpy(), 1e-4, 1e-9)


def test_calls_in_several_threads_have_buffers_of_their_own():
    f = lambda x: ((x @ x) * 2 + 1).tanh() @ x  # noqa: E731
    inputs = [numbers(200, 200, seed=i) for i in range(4)]
    compiled, expected = captured(f, inputs[0]), [f(x).numpy() for x in inputs]

    def work(i):
        for _ in range(30):
            np.testing.assert_allclose(compiled(inputs[i]).numpy(), expected[i], 1e-5, 1e-4)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


# ---- what is one pass


def passes(compiled):
    return compiled.code.count("in_blocks(block")


PASSES = {
    "a row": lambda x: ((x + x[0].detach()) * 2).tanh(),
    "a column": lambda x: ((x - x.detach()[:, :1]) * 2).exp(),
    "rows less their means": lambda x: (x - x.mean(-1, keepdim=True)) * 2,
    "a sum at the end": lambda x: (x * 2).exp().sum(),
    "sums of rows at the end": lambda x: (x * 2).exp().sum(-1),
    "the largest at the end": lambda x: (x * 2).exp().max(),
    "written in place": lambda x: (x * 2).exp_().add_(1).neg_(),
    "gelu": lambda x: F.gelu(x * 2),
}


@pytest.mark.generator("numpy")
@pytest.mark.parametrize("name", PASSES)
def test_one_pass(name):
    x = numbers(400, 400)
    compiled = captured(PASSES[name], x)
    assert passes(compiled) == 1
    assert_as_eager(PASSES[name], [numbers(400, 400, seed=1, grad=name != "written in place")], 1e-4)


@pytest.mark.generator("numpy")
def test_a_mask_is_the_same_for_all_rows_and_a_softmax_is_one_step():
    x, mask = numbers(16, 4, 64, 64, grad=True), numbers(1, 1, 64, 64, seed=1)
    compiled = assert_as_eager(lambda x, mask: (x * 0.125 + mask).softmax(-1), [x, mask], 1e-4)
    assert "mask_row = mask.reshape((64, 64))" in compiled.code and "softmax, " in compiled.code


@pytest.mark.generator("numpy")
def test_what_is_cheap_is_computed_anew_by_backward():
    x = numbers(400, 400, grad=True)
    compiled = assert_as_eager(lambda x: ((x + 1) * x.tanh()).sum(), [x], 1e-4)
    assert compiled.code.count("np.add(x, 1") == 2 and len(compiled.entries[0].plan.saved) == 2


def test_what_was_transposed_twice_is_taken_as_it_was():
    x, w = numbers(8, 8), numbers(8, 8, grad=True)
    compiled = assert_as_eager(lambda x, w: F.linear(x, w, x[0]), [x, w], 1e-4)
    assert compiled.code.partition("def backward")[2].count("transpose") == 1


@pytest.mark.generator("numpy")
def test_forward_and_backward_of_a_whole_step_are_one_pass_that_writes_the_gradient_alone():
    x = numbers(300000, grad=True)

    def step():
        x.grad = None
        loss = (x.tanh() * x).mean()
        loss.backward()
        return loss

    loss, expected = step(), x.grad
    compiled = captured(step)
    again = compiled()
    assert engine.allclose(again, loss) and engine.allclose(x.grad, expected)
    assert compiled.code.count("in_blocks(") == 1 and compiled.code.count("(300000,)") == 1
    before = x.grad
    compiled()
    assert x.grad is not before and engine.equal(x.grad, before)


def test_what_backward_begins_with_is_a_number_that_nobody_shares():
    x = engine.tensor(3.0, requires_grad=True)

    def step():
        x.grad = None
        (x + 2).backward()

    compiled = captured(step)
    compiled()
    x.grad.add_(1)
    compiled()
    assert x.grad == 1 and "ones_like" not in compiled.code


@pytest.mark.parametrize("f", [lambda x, y: x + -y, lambda x, y: -x * y * 3 + y, lambda x, y: x - y / -x])
def test_a_sign_is_part_of_the_sum_that_it_goes_on_to(f):
    assert "= -" not in assert_as_eager(f, (numbers(40), numbers(40, seed=1)), 0).code


def test_a_sign_stays_where_something_else_needs_it():
    x, y = numbers(40), numbers(40, seed=1)
    assert "= -" in assert_as_eager(lambda x, y: ((m := -x) + y, m * y), (x, y), 0).code
    assert "= -" in assert_as_eager(lambda x, y: ((m := -x) + y, m), (x, y), 0).code

    def written(x, y):
        z = x * 1
        minus = -z
        z.narrow(0, 0, 20).add_(1)
        return minus + y + z

    assert "= -" in assert_as_eager(written, (x, y), 0).code


@pytest.mark.generator("numpy")
@pytest.mark.parametrize(
    "f, passes",
    [(lambda x, y: (x * 2, y + 1), 0), (lambda x, y: x * 2 - (y + 1), 1)],
)
def test_steps_that_have_nothing_to_do_with_each_other_are_no_pass(f, passes):
    x, y = numbers(500, 400), numbers(500, 400, seed=1)
    assert assert_as_eager(f, (x, y)).code.count("in_blocks(") == passes


NESTS = {  # what random expressions do not have
    "quotients": (lambda x, y: (x.square() + 1).reciprocal() * y - (y.square() + 2) ** -1, "float64"),
    "extremes of columns and of all": (lambda x, y: (x * 2).amax(0) * y + (x * 3).amin() - (y * 2).amax(0), "float64"),
    "a long sum of products": (lambda x, y: ((x - 1) * (x - 1)).sum(-1) * 2 + ((x + y) ** 3).mean(0).sum(), "float64"),
    "sums of columns as a row": (lambda x, y: ((x * 2 + 1) * x).sum(0).reshape(1, -1) * y - x, "float64"),
    "sums of rows beside columns": (lambda x, y: (x * 2).sum(-1) * y - x, "float64"),
    "sums of functions": (lambda x, y: (x.exp() + x.tanh()) * (x.sin() - x.cos()) - y, "float64"),
    "bits": (lambda x, y: ((x ^ 5) & (y | 3)) * 2 + (~x).clamp(-3, 3), "int64"),
}


@pytest.mark.parametrize("name", NESTS)
def test_chains_of_other_operations(name):
    f, dtype = NESTS[name]
    x, y = (engine.arange(64).reshape(8, 8) % n - 4 for n in (11, 7))
    if dtype == "float64":
        x, y = ((a * 0.7 + 0.1).double().requires_grad_() for a in (x, y))
        assert_as_eager(f, (x, y))
    assert_as_eager(f, (x.detach(), y.detach()))


@pytest.mark.generator("loops")
def test_many_rows_are_added_up_in_double_precision_in_the_pass_that_makes_them():
    x, b, g = numbers(4096, 4), numbers(4, grad=True), numbers(4096, 4, seed=1) + 1
    compiled = engine.compile(lambda x, b: ((x + b).relu() * 3, ((x - b).exp() * x).sum(0)), fullgraph=True)
    result, sums = compiled(x, b)
    (found,) = engine.autograd.grad(result, b, g)
    exact = np.where(x.numpy() + b.numpy(force=True) > 0, 3 * g.numpy().astype(float), 0).sum(0)
    np.testing.assert_allclose(found.numpy(), exact, 2e-7)
    lines = re.sub("#.*", "", compiled.code)
    assert "sum(" not in lines and "@" not in lines
    assert sums.dtype is engine.float32 and engine.allclose(sums, ((x - b).exp() * x).sum(0), 1e-4)


@pytest.mark.generator("loops")
def test_sums_of_which_each_thread_has_its_own_come_last():
    def f(x):
        h = (x * 2 + 1) * x
        return h.sum(0), h * 3

    code = engine.compiler.explain(f)(numbers(4000, 64)).code
    sums = re.search(r"(\w+) = np\.zeros", code)[1]
    assert re.search(rf"in_rows\(loop, .*, {sums}, sums=1\)", code)


@pytest.mark.generator("loops")
def test_short_numbers_are_read_again_where_they_are_kept_and_sums_become_some():
    def f(x):
        h = x * 3 - 1
        return h, h.float().softmax(-1), h.float().sum(-1).bfloat16()

    x = numbers(3, 7).bfloat16()
    for ours, theirs in zip(captured(f, x)(x), f(x), strict=True):
        assert ours.dtype is theirs.dtype
        np.testing.assert_allclose(ours.float().numpy(), theirs.float().numpy(), 1e-6)


def test_steps_of_backward_tell_the_line_that_recorded_them():
    def f(x):
        y = x.tanh()
        return (y * x).sum()

    x = numbers(4, 3, grad=True)
    code = assert_as_eager(f, [x], 1e-4).code
    assert "y = x.tanh()" in code.partition("def backward")[2] and "<string>" not in code
