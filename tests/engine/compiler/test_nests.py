"""Loop nests: what joins, how it reads, and that machine code gives what eager does."""

import re
from functools import reduce

import numpy as np
import pytest

import engine
from engine.compiler import digits, machine, nests
from engine.nn import functional as F

pytestmark = [pytest.mark.usefixtures("generator"), pytest.mark.generator("numba")]
needs_numba = pytest.mark.skipif(bool(machine.missing()), reason="Numba is not installed")


def numbers(*shape, seed=0, dtype="float32", grad=True):
    rng = np.random.default_rng([seed, *shape])
    return engine.tensor(rng.standard_normal(shape).astype(dtype)).requires_grad_(grad)


def results(function, inputs):
    out = function(*inputs)
    outs = out if isinstance(out, tuple) else (out,)
    weights = [numbers(*o.shape, seed=9, dtype=str(o.dtype).partition(".")[2], grad=False) for o in outs]
    wanted = [x for x in inputs if x.requires_grad]
    return [*outs, *engine.autograd.grad(outs, wanted, weights, allow_unused=True)]


PROGRAMS = {
    "chain": (lambda x: (engine.tanh(x * 0.5) * (x + 1) - engine.sigmoid(x)).exp().mean(), [(37, 11)]),
    "softmax": (lambda x: x.softmax(-1), [(4, 3, 17)]),
    "log_softmax": (lambda x: x.log_softmax(-1), [(5, 33)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (16,), w, b), [(4, 5, 16), (16,), (16,)]),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(32, 6), (6,), (6,)]),
    "gelu": (lambda x, b: F.gelu(x + b), [(9, 8, 12), (12,)]),
    "cross_entropy": (lambda x: F.cross_entropy(x * 2 + 1, engine.arange(12) % 7), [(12, 7)]),
    "linear_relu": (lambda x, w, b: F.linear(x, w, b).relu(), [(40, 30), (70, 30), (70,)]),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [(2, 3, 10, 8)] * 3),
    "extremes": (lambda x: (x * 2).amax(-1, keepdim=True) - (x * 3).amin(-1, keepdim=True) * x, [(8, 21)]),
    "channels": (lambda x, b: ((x + b.reshape(-1, 1, 1)) * 2).tanh().sum((0, 2, 3)), [(3, 4, 5, 6), (4,)]),
    "numbers": (lambda a, b: reduce(lambda y, _: y - b * 0.1, range(58), a).exp() * b, [(), ()]),
    "where": (lambda x, y: engine.where(x > y, x, y * 2).abs().log1p().sum(0), [(30, 14), (30, 14)]),
}  # fmt: skip


@needs_numba
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_gives_what_eager_does(name, dtype):
    function, shapes = PROGRAMS[name]
    inputs = [numbers(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes)]
    compiled = engine.compile(function, fullgraph=True)
    expected = results(function, inputs)
    for _ in range(2):
        for a, b in zip(results(compiled, inputs), expected, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            rounding = 2e-6 if dtype == "float32" else 1e-13
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 8 * rounding, 8 * rounding)
    (entry,) = compiled.entries
    assert entry.deviations == 0 and "def loop" in compiled.code


def test_few_numbers_are_left_to_numpy():
    f = engine.compile(lambda a, b: (a * b + 1).exp() * b - a)
    f(numbers(), numbers(seed=1))
    assert "def loop" not in f.code


@needs_numba
def test_thousands_of_numbers_are_one_loop():
    def step(z, w, b):
        for _ in range(500):
            z = z * w + b
        z.backward()

    code = engine.compiler.explain(step)(numbers(grad=False), numbers(seed=1), numbers(seed=2)).code
    assert code.count("def loop") == 1 and code.count(" = ") > 2900


@needs_numba
def test_numbers_that_are_all_returned_are_looked_at_a_few_times_each(monkeypatch):
    asked, takes = [], nests.Nest.takes
    monkeypatch.setattr(nests.Nest, "takes", lambda nest, step: asked.append(step) or takes(nest, step))
    monkeypatch.setattr(nests, "MAX_NUMBERS", 64)

    def powers(x):
        found = [x]
        for _ in range(640):
            found.append(found[-1] * x)
        return found[1:]

    code = engine.compiler.explain(powers)(numbers(grad=False)).code
    assert "return (t, " in code and "def loop" not in code
    assert 640 < len(asked) < 10 * 640


@needs_numba
@pytest.mark.parametrize("threads", [1, 2])
def test_large_arrays_are_shared_out_and_sums_do_not_depend_on_threads(threads):
    x = numbers(700_001)
    before = engine.get_num_threads()
    compiled = engine.compile(lambda x: (x * 2).exp().sum(), fullgraph=True)
    try:
        engine.set_num_threads(threads)
        found = compiled(x)
        engine.set_num_threads(1)
        assert found == compiled(x)
    finally:
        engine.set_num_threads(before)
    assert "in_rows(loop" in compiled.code
    np.testing.assert_allclose(found.item(), np.exp(2 * x.detach().numpy().astype(float)).sum(), 1e-6)


@needs_numba
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -0.0])
def test_special_numbers_are_as_in_eager(value):
    x = numbers(4, 9, grad=False)
    x[1, 3] = value
    for function in (lambda x: (x + 0).softmax(-1), lambda x: (x * 1).amax(-1) + 1, lambda x: (x * 1).relu() * 2):
        a, b = engine.compile(function, fullgraph=True)(x), function(x)
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6)


BYTES = engine.arange(47, -1, -1, dtype=engine.uint8).reshape(3, 16)
WHOLE = {  # (dtype, what is computed with integers and masks)
    "sums of masks": ("float32", lambda x: (((x > 3) + (x < 9)) & (x > 5)) * 1.0 + ((x > 3) + (x > 5)).sum()),
    "products of masks": ("float32", lambda x: ((x > 3) * (x < 9) + (x == 5)) * x),
    "extremes of masks": ("int64", lambda x: engine.maximum(x > 3, x > 7) & engine.minimum(x > 3, x < 7)),
    "a number that is no int32": ("int32", lambda x: (x > 3) & (x < 2**40) | (x > -(2**40)) & (x == 7)),
    "a number that is no int64": ("int64", lambda x: (x > 3) & (x < 2.5**60) | (x == 7)),
    "a number that is no uint8": ("uint8", lambda x: (x > 3) & (x < 300) | (x == -1)),
    "short integers and fractions": ("int8", lambda x: (x > 1.5) & (x < 20.5) | (x == 7)),
    "short integers of two kinds": ("int16", lambda x: (x > BYTES) & (x != 7) | (x == BYTES)),
    "whether numbers are 0": ("int32", lambda x: (x % 8).logical_and(x // 8) | (x * 0.5 - 4).logical_or(x - 20)),
    "integers that wrap around": ("int32", lambda x: (x * 2**30 + 2**31 - 1) * 3 * (x * 2**30 > 5)),
}


@needs_numba
@pytest.mark.parametrize("name", WHOLE)
def test_integers_and_masks_are_as_in_eager(name):
    dtype, function = WHOLE[name]
    x = engine.arange(48).reshape(3, 16).to(getattr(engine, dtype))
    compiled = engine.compile(function, fullgraph=True)
    found, expected = compiled(x), function(x)
    assert found.dtype == expected.dtype and (found == expected).all()
    (entry,) = compiled.entries
    assert entry.deviations == 0 and "def loop" in compiled.code


@needs_numba
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_number_for_all_elements_has_its_own_precision(shape):
    x, number = engine.full((3, 50), 1e8), engine.full(shape, 1.3)
    compiled = engine.compile(lambda x, number: ((x + number) - x).abs().sqrt() * 2, fullgraph=True)
    assert (compiled(x, number) == 0).all() and "def loop" in compiled.code


@needs_numba
def test_what_is_added_and_subtracted_again_rounds():
    def rounded(x):
        return (x + 12582912.0 - 12582912.0) * 2  # 1.5 * 2^23: what is left of x is an integer

    x = numbers(3000, grad=False)
    found = engine.compile(rounded, fullgraph=True)(x)
    assert (found == rounded(x)).all() and (found % 2 == 0).all()


@needs_numba
def test_nests_that_do_the_same_are_compiled_once():
    w = [numbers(50, 50, seed=i) for i in range(4)]

    def layers(x, *w):
        for weight in w:
            x = (x @ weight * 0.1 + 1).tanh()
        return x

    known = len(machine.loops)
    compiled = engine.compile(layers, fullgraph=True)
    compiled(numbers(50, 50, grad=False), *w).sum().backward()
    assert len(re.findall(r"^def loop", compiled.code, re.M)) > len(machine.loops) - known


@needs_numba
def test_a_loop_is_made_when_it_is_first_run():
    def f(x):
        return ((x * 3).exp() * (x + 1)).sum(-1) + 1

    compiled, x, known = engine.compile(f, fullgraph=True), numbers(31, 23), {*machine.loops}
    assert engine.compiler.explain(f)(x).loops == 2 and machine.loops.keys() == known
    found = compiled(x)
    assert len(machine.loops.keys() - known) == 1
    found.sum().backward()
    assert len(machine.loops.keys() - known) == 2


def test_a_softmax_reads_as_one_nest():
    def softmax(x):
        return x.softmax(-1)

    compiled = engine.compile(softmax, fullgraph=True)
    compiled(numbers(20, 30, grad=False))
    loop = compiled.code.partition("def loop")[2]
    assert re.sub(r"  # test_nests.*", "", loop).rstrip().splitlines()[1:] == [
        "    for i in range(first, last):",
        "        top = -inf",
        "        for j in range(30):",
        "            top = largest(top, x[i, j])",
        "        s = 0.0",
        "        for j in range(30):",
        "            t_2 = exp(x[i, j] - top)",
        "            t[i, j] = t_2",
        "            s += t_2",
        "        for j in range(30):",
        "            t[i, j] = t[i, j] / s",
    ]


@pytest.mark.parametrize(
    "shape, whole, within, expected",
    [
        ((64,), (512, 64), ((1, 32768),), ((1, 64),)),
        ((512, 1), (512, 64), ((1, 32768),), ((64, 32768),)),
        ((16, 1, 1), (32, 16, 26, 26), ((1, 346112),), ((676, 10816),)),
        ((1, 1), (512, 64), ((1, 32768),), ()),
        ((8, 64, 1), (8, 64, 1), ((64, 32768),), ((64, 32768),)),
        ((3, 1), (3, 1), ((4, 12),), ((4, 12),)),
    ],
)
def test_digits_say_on_which_place_values_an_array_depends(shape, whole, within, expected):
    assert digits.digits_of(shape, whole, within) == expected


BFLOAT16 = {
    "chain": lambda x, b: ((x + b) * 0.1 - x / 3).tanh() * x,
    "gelu": lambda x, b: F.gelu(x + b) * 2,
    "relu and float": lambda x, b: (x * b).relu().float().softmax(-1),
    "mask and one number": lambda x, b: engine.where(x > b, x, b * 2) - x.abs() * b[:1],
    "from float": lambda x, b: (x.float() * 0.3 + 1).bfloat16() * b - 1,
    "linear": lambda x, b: F.linear(x, x[:5], b[:5]).relu() * 3,
}


@needs_numba
@pytest.mark.parametrize("name", BFLOAT16)
def test_bfloat16_rounds_after_each_operation_as_in_eager(name):
    x, b = numbers(20, 33).bfloat16().detach(), numbers(33, seed=1).bfloat16().detach()
    x[0, :3], b[:3] = engine.tensor([float("nan"), float("inf"), -0.0]), 1.0
    x[1, :2] = engine.tensor([3.38e38, 1e-40])
    function = BFLOAT16[name]
    compiled = engine.compile(function, fullgraph=True)
    found, expected = compiled(x, b), function(x, b)
    assert found.dtype is expected.dtype and "def loop" in compiled.code
    near = 2e-2 if name in ("gelu", "chain") else 1e-6  # of tanh, a float32 that is another rounds to the next
    np.testing.assert_allclose(found.float().numpy(), expected.float().numpy(), near, 1e-6)
    same = (found == expected) | (found != found)
    assert found.dtype is engine.float32 or same.float().mean() > 0.97


@needs_numba
def test_gradients_of_bfloat16_are_as_in_eager():
    x, b = numbers(20, 33).bfloat16().detach().requires_grad_(), numbers(33).bfloat16().detach().requires_grad_()
    step = engine.compile(lambda x, b: ((x + b).relu() * x * 0.1).float().sum(), fullgraph=True)
    found = engine.autograd.grad(step(x, b), [x, b])
    expected = engine.autograd.grad(step.function(x, b), [x, b])
    for g, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(g.float().numpy(), e.float().numpy(), 1e-2, 1e-2)
    assert (found[0] == expected[0]).all() and step.entries[0].deviations == 0


@needs_numba
def test_the_first_three_sizes_have_loops_and_most_of_them_in_common():
    w, b = numbers(40, 40), numbers(40)

    def f(x):
        return F.gelu(x @ w + b).softmax(-1)

    compiled, known = engine.compile(f, fullgraph=True), {*machine.loops}
    for rows, captures in (50, 1), (30, 2), (50, 2), (20, 3), (40, 4), (35, 4):
        x = numbers(rows, 40, grad=False)
        found = compiled(x)
        np.testing.assert_allclose(found.detach().numpy(), f(x).detach().numpy(), 1e-5, 1e-6)
        found.sum().backward()
        assert len(compiled.entries) == captures
    assert [e.sizes is not None for e in compiled.entries] == [False, False, False, True]
    assert "A capture for many sizes has none" in repr(engine.compiler.explain(compiled)(numbers(45, 40)))
    assert len(machine.loops.keys() - known) == compiled.entries[0].code.count("\ndef loop")


def test_without_loops_programs_are_numpy():
    function = engine.compile(lambda x: (x * 2).exp() + 1, options={"loops": False})
    function(numbers(100))
    assert "def loop" not in function.code and "np.exp" in function.code


def test_explain_counts_the_nests_and_says_what_is_missing(monkeypatch):
    def f(x):
        return (x * 2).exp().sum(-1) + 1

    found = engine.compiler.explain(f)(numbers(30, 20))
    assert found.loops >= 1 and f"Loops: {found.loops}" in repr(found) and not found.loops_missing
    monkeypatch.setattr(machine, "why_not", lambda: "Numba is not there.")
    found = engine.compiler.explain(f)(numbers(30, 20))
    assert not found.loops and "Without loops: Numba is not there." in repr(found)
