"""compile: windows, pooling, picked elements and added rows as loops; the oracle is the same program, eager."""

import re

import numpy as np
import pytest
from over_tables import over

import engine
from engine.compiler import copy_text, machine
from engine.nn import functional as F

pytestmark = [
    pytest.mark.skipif(machine.why_not() != "", reason=machine.why_not() or "-"),
    pytest.mark.usefixtures("generator"),
    pytest.mark.generator("loops", pytest.param("numba", marks=pytest.mark.slow)),  # which takes half a second a loop
]
IN_MACHINE_CODE = pytest.mark.generator("numba")  # one of a kind


def numbers(*shape, seed=0, dtype="float32", grad=True):
    x = np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)
    return engine.tensor(x).requires_grad_(grad)


def assert_as_eager(f, *inputs, precision=1e-5):
    """Values and gradients are those of eager; gives the compiled function."""
    compiled = engine.compile(f, fullgraph=True)
    wanted = [x for x in inputs if x.requires_grad]
    for _ in range(2):
        pairs = []
        for run in (compiled, f):
            results = run(*inputs)
            results = results if isinstance(results, tuple) else (results,)
            smooth = [r for r in results if r.requires_grad]
            weights = [numbers(*r.shape, seed=5, dtype=r.numpy(force=True).dtype.name, grad=False) for r in smooth]
            pairs.append((*results, *(engine.autograd.grad(smooth, wanted, weights) if smooth else ())))
        for ours, theirs in zip(*pairs, strict=True):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            assert ours.is_contiguous() == theirs.is_contiguous()
            a, b = ours.detach().numpy(), theirs.detach().numpy()
            finite = np.abs(b[np.isfinite(b)])
            np.testing.assert_allclose(a, b, precision, precision * max(1, finite.max(initial=0)))
    assert compiled.entries[0].deviations == 0
    assert compiled.entries[0].broken is None
    return compiled


# ---- convolution

CONVOLUTIONS = {  # shapes of the input and the weight, and how the kernel moves
    "plain": ((3, 2, 7, 6), (4, 2, 3, 2), {}),
    "padded": ((2, 3, 5, 7), (2, 3, 3, 3), {"padding": (1, 2)}),
    "strided": ((2, 2, 8, 9), (3, 2, 3, 2), {"stride": (2, 3)}),
    "strided and padded": ((2, 2, 8, 7), (3, 2, 3, 3), {"stride": 2, "padding": 1}),
    "wide steps": ((2, 2, 9, 9), (3, 2, 2, 2), {"stride": (4, 3), "padding": 1}),
    "dilated": ((2, 2, 9, 8), (3, 2, 3, 2), {"dilation": (2, 3), "padding": 2, "stride": (1, 2)}),
    "groups": ((2, 4, 6, 6), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    "one channel a group": ((2, 3, 6, 6), (6, 1, 3, 3), {"groups": 3}),
    "one sample": ((1, 3, 6, 5), (2, 3, 3, 3), {"padding": 1}),
    "one sample and channel": ((1, 1, 6, 5), (2, 1, 3, 3), {}),
    "1x1": ((2, 3, 4, 4), (5, 3, 1, 1), {"stride": 2}),
    "more padding than kernel": ((2, 2, 3, 3), (2, 2, 1, 2), {"padding": 3}),
    "the kernel as large": ((2, 2, 5, 4), (3, 2, 5, 4), {}),
}


@over("case, x, w, how", [(case, *facts) for case, facts in CONVOLUTIONS.items()])
def test_convolutions(case, x, w, how):
    f = lambda x, w, b: F.conv2d(x, w, b, **how).relu()  # noqa: E731
    code = assert_as_eager(f, numbers(*x), numbers(*w, seed=1), numbers(w[0], seed=2)).code
    assert "strided(" not in code


@over("n, how", [(1, {"stride": 2, "padding": 1}), (3, {"padding": (0, 1, 2), "dilation": 2})])
def test_over_one_and_three_dimensions(n, how):
    x, w = numbers(2, 3, *(7, 6, 5)[:n], dtype="float64"), numbers(4, 3, *(2, 3, 2)[:n], seed=1, dtype="float64")
    code = assert_as_eager(lambda x, w: getattr(F, f"conv{n}d")(x, w, **how), x, w, precision=1e-12).code
    assert "strided(" not in code


@over("how", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2, "groups": 2}])
def test_transposed_convolutions(how):
    x, w = numbers(2, 4, 5, 4), numbers(4, 3, 3, 2, seed=1)
    assert_as_eager(lambda x, w, b: F.conv_transpose2d(x, w, b, **how), x, w, numbers(3 * how.get("groups", 1), seed=2))


def test_the_gradient_of_a_convolution_is_that_of_differences():
    x, w = numbers(2, 2, 5, 4, dtype="float64"), numbers(3, 2, 3, 2, seed=1, dtype="float64")
    f = engine.compile(lambda x, w: F.max_pool2d(F.conv2d(x, w, stride=(2, 1), padding=1).tanh(), 2).square().sum())
    gx, _ = engine.autograd.grad(f(x, w), (x, w))
    for place in ((0, 0, 0, 0), (1, 1, 4, 3), (0, 1, 2, 2)):
        up, down = x.detach().clone(), x.detach().clone()
        up[place] += 1e-6
        down[place] -= 1e-6
        difference = (f(up, w).item() - f(down, w).item()) / 2e-6
        assert gx[place].item() == pytest.approx(difference, abs=1e-6)


def test_a_convolution_of_a_view():
    x, w = numbers(6, 2, 3, 5), numbers(4, 3, 3, 2, seed=1)
    assert_as_eager(lambda x, w: F.conv2d(x.permute(1, 2, 0, 3), w), x, w)


def test_no_samples():
    w = numbers(4, 3, 3, 2, seed=1)
    f = lambda x, w: F.max_pool2d(F.conv2d(x, w), 2)  # noqa: E731
    assert_as_eager(f, numbers(0, 3, 8, 8), w)


def test_half_precision_rounds_as_eager():
    x, w = (numbers(*s, grad=False).to(engine.bfloat16) for s in ((2, 3, 6, 6), (4, 3, 3, 3)))
    compiled, f = engine.compile(lambda x, w: F.conv2d(x, w)), F.conv2d
    assert engine.equal(compiled(x, w), f(x, w))


# ---- pooling

POOLS = {
    "2": ({"kernel_size": 2}, (2, 3, 6, 8)),
    "odd sizes": ({"kernel_size": 2}, (2, 3, 7, 5)),
    "overlapping": ({"kernel_size": 3, "stride": 2, "padding": 1}, (2, 3, 7, 6)),
    "dilated": ({"kernel_size": 2, "stride": 1, "dilation": 2, "padding": 1}, (2, 2, 6, 5)),
    "ceil_mode": ({"kernel_size": 3, "stride": 2, "ceil_mode": True}, (2, 2, 6, 6)),
    "one plane": ({"kernel_size": 2}, (1, 1, 6, 6)),
    "without samples": ({"kernel_size": (3, 2), "stride": (1, 2)}, (3, 6, 6)),
}


@over("case, how, shape", [(case, *facts) for case, facts in POOLS.items()])
def test_pooling(case, how, shape):
    code = assert_as_eager(lambda x: F.max_pool2d(x.relu() * 2, **how), numbers(*shape)).code
    assert "strided(" not in code
    assert "zeros(" not in code


def test_of_equal_ones_the_first_counts_and_of_nan_the_last():
    x = engine.tensor(np.random.default_rng(3).integers(0, 2, (4, 2, 8, 8)).astype("f"))
    x[0, 0, 2:5, 3] = x[1, 1, 0, :3] = float("nan")
    x[2] = -float("inf")
    for how in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}):
        f = lambda x, how=how: F.max_pool2d(x, return_indices=True, **how)  # noqa: E731
        compiled = assert_as_eager(f, x.clone().requires_grad_())
        assert all(engine.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(compiled(x), f(x), strict=True))


def test_what_was_pooled_is_used_elsewhere_too():
    def f(x, w):
        h = F.conv2d(x, w).relu()
        return F.max_pool2d(h, 2), h.sum((0, 2, 3)), h * 2

    assert_as_eager(f, numbers(2, 3, 6, 6), numbers(4, 3, 3, 3, seed=1))


def test_two_convolutions_with_pooling_read_through_all_between():
    def f(x, w, b, v, c):
        h = F.max_pool2d(F.conv2d(x, w, b, padding=1).relu(), 2)
        return F.max_pool2d(F.conv2d(h, v, c).relu(), 3, 2)

    sizes = (3, 2, 13, 12), (4, 2, 3, 3), (4,), (5, 4, 2, 2), (5,)
    code = assert_as_eager(f, *(numbers(*s, seed=i) for i, s in enumerate(sizes))).code
    assert not [name for name in ("strided(", "ascontiguousarray(", "swapaxes(0, 1)", "np.maximum") if name in code]


@over("f", [lambda x: F.max_pool2d(x, 2).sum(), lambda x: (F.max_pool2d(x * 2, 3, 2, 1) * 3).mean()])
def test_the_same_gradient_for_all_maxima(f):
    def step(x):
        return engine.autograd.grad(f(x), x)[0]

    found = engine.compile(step, fullgraph=True)(x := numbers(2, 3, 6, 6))
    np.testing.assert_allclose(found.numpy(), step(x).numpy(), 1e-6)


def test_pooling_without_gradient():
    with engine.no_grad():
        assert_as_eager(lambda x: F.max_pool2d(x, 2, padding=1) + 1, numbers(2, 3, 6, 6))


@IN_MACHINE_CODE
def test_as_torch():
    torch = pytest.importorskip("torch")

    def f(framework, x, w, b):
        nn = framework.nn.functional
        h = nn.max_pool2d(framework.relu(nn.conv2d(x, w, b, stride=(1, 2), padding=2, dilation=(2, 1))), 3, 2, 1)
        return (h * h).sum()

    ours = [numbers(*s, seed=i) for i, s in enumerate(((2, 3, 9, 10), (4, 3, 3, 3), (4,)))]
    theirs = [torch.tensor(x.numpy(force=True), requires_grad=True) for x in ours]
    engine.compile(lambda *a: f(engine, *a))(*ours).backward()
    f(torch, *theirs).backward()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), 1e-4, 1e-4)


# ---- picked elements

Y = engine.tensor([2, 0, 4, 4, 1, 2])


@over(
    "how",
    [
        {}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 4}, {"label_smoothing": 0.1},
        {"weight": engine.tensor([1.0, 0.5, 2.0, 1.0, 0.0])}, {"weight": engine.arange(5) * 1.0, "ignore_index": 2},
    ],
)  # fmt: skip
def test_cross_entropy(how):
    assert_as_eager(lambda x: F.cross_entropy(x * 3, Y, **how), numbers(6, 5))


def test_cross_entropy_over_places():
    y = engine.tensor(np.random.default_rng(0).integers(0, 5, (2, 3, 4)))
    assert_as_eager(lambda x: F.cross_entropy(x, y), numbers(2, 5, 3, 4))


def test_cross_entropy_of_probabilities():
    p = numbers(6, 5, seed=2, grad=False).softmax(-1)
    assert_as_eager(lambda x: F.cross_entropy(x, p, label_smoothing=0.1), numbers(6, 5))


@IN_MACHINE_CODE
def test_the_backward_pass_of_cross_entropy_has_no_scatter():
    code = assert_as_eager(lambda x: F.cross_entropy(x, Y), numbers(6, 5)).code
    assert "zeros(" not in code
    assert ".exp(" not in code


def test_infinite_logits():
    x = numbers(6, 5, grad=False)
    x[0, 1] = x[3, 2] = -float("inf")
    assert_as_eager(lambda x: F.cross_entropy(x, Y), x.requires_grad_())


@over("y", [[0, 5, 1], [0, -1, 1]])
def test_wrong_classes_raise_as_eager(y):
    compiled, x = engine.compile(F.cross_entropy), numbers(3, 5)
    compiled(x, engine.tensor([0, 1, 2]))
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, engine.tensor(y))


@IN_MACHINE_CODE
@over("how", [{}, {"padding_idx": 2}, {"padding_idx": -1}])
def test_embedding(how):
    i = engine.tensor([[1, 2, 2, 0], [4, 2, 1, 1]])
    assert_as_eager(lambda w: F.embedding(i, w, **how) * 2, numbers(5, 3))


def test_wrong_rows_raise_as_eager():
    compiled, w = engine.compile(lambda i, w: F.embedding(i, w)), numbers(5, 3)
    compiled(engine.tensor([1, 2]), w)
    for i in ([1, 5], [-1, 0]):
        with pytest.raises(IndexError, match="index out of range in self"):
            compiled(engine.tensor(i), w)


def test_rows_that_are_picked_by_an_index():
    i = engine.tensor([0, -1, 2, 2])
    assert_as_eager(lambda x: x[i] * 2, numbers(4, 3))


@over(
    "f",
    [
        lambda w, i: F.embedding(engine.arange(3), w) * 2,
        lambda w, i: F.embedding(i, w) + F.embedding(engine.arange(i.shape[1]), w),
        lambda w, i: F.embedding(engine.arange(3), w).sum(),
        lambda w, i: w[engine.tensor([[0, -1], [2, 2]])] ** 2,
    ],
)
def test_rows_that_are_picked_by_an_index_of_the_functions_own(f):
    assert_as_eager(f, numbers(5, 3), engine.tensor([[1, 2, 2], [4, 2, 1]]))


# ---- what the code says


def test_large_nests_are_shared_out_but_where_rows_are_added():
    def pooled(x, w):
        h = F.max_pool2d(F.conv2d(x, w, padding=1).relu(), 2)
        return engine.autograd.grad((h * h).sum(), (x, w))

    def picked(w, i):
        return engine.autograd.grad((F.embedding(i, w) * 2).sum(), w)

    code = engine.compiler.explain(pooled)(numbers(8, 3, 50, 50), numbers(8, 3, 3, 3)).code
    assert len(re.findall(r"in_rows\(loop(?:_\d+)?, 8,", code)) == code.count("planes") == 4
    assert code.count("np.empty(") == 1  # for the gradient that leaves: the rest is in buffers
    code = engine.compiler.explain(picked)(numbers(5, 100), engine.arange(2000) % 5).code
    assert "loop" in code and "in_rows(" not in code


def test_axes_say_where_a_position_lies_inside():
    """Of sizes, strides, paddings and dilations, the bounds are those that a count of all gives."""
    for facts in np.random.default_rng(0).integers(1, 5, (200, 6)):
        size, taps, stride, dilation, padding, more = map(int, facts)
        count = more + 1
        axis = copy_text.Axis((size, count, taps, stride, padding - 1, dilation), "i", "k")
        element = copy_text.plain_element(axis)
        for k in range(taps):
            head = axis.over_places().removeprefix("for i in ").removesuffix(":")
            found = list(eval(head, {"k": k}))
            inside = [i for i in range(count) if 0 <= eval(element, {"i": i, "k": k}) < size]
            assert found == inside


# ---- copies of views


def test_a_convolution_with_bias_and_relu_is_one_pass():
    f = lambda x, w, b: F.conv2d(x, w, b).relu() * 0.5 + 1  # noqa: E731
    code = assert_as_eager(f, numbers(3, 2, 12, 11), numbers(8, 2, 3, 3, seed=1), numbers(8, seed=2)).code
    assert "np.maximum" not in code
    assert "ascontiguousarray(" not in code.partition("def backward")[0]


def test_transposed_views_are_read_in_their_order():
    def f(x, y):
        heads = x.view(4, 16, 4, 16).transpose(1, 2)
        return (heads + y).transpose(1, 2).reshape(4, 16, 64), heads.contiguous(), x.permute(2, 0, 1).clone()

    assert_as_eager(f, numbers(4, 16, 64), numbers(4, 4, 16, 16, seed=1))
    assert_as_eager(lambda x: (x.T.contiguous() * 2 + 1).relu(), numbers(120, 90))
    assert_as_eager(lambda x: x.mT.reshape(-1) * 2, numbers(3, 60, 50))


MOVED = {  # what is computed with a transposed view, and the shapes of what it is given
    "rows and columns": (lambda x, b, c: (x.mT.contiguous() + b * 2) * 3 - c, [(3, 5, 4), (5,), (4, 1)]),
    "brackets": (lambda x, y: (2 - (x.mT.contiguous() + 1) * y) * 0.5, [(3, 5, 4), (3, 4, 5)]),
    "functions": (lambda x, y: engine.maximum(x.mT.contiguous() - 1, y * 2).abs() - 1, [(3, 5, 4), (3, 4, 5)]),
    "all axes": (lambda x: x.permute(2, 0, -2).contiguous() * 2 + x.permute(-2, -1, 0).clone() - 1, [(4, 4, 4)]),
    "no axes": (lambda x: (x.t().contiguous() * 2 + 1) * 3, [(5, 4)]),
}


@over("name", MOVED)
def test_what_is_computed_with_a_transposed_view_is_one_pass(name):
    f, shapes = MOVED[name]
    inputs = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    assert_as_eager(f, *inputs)
    with engine.no_grad():
        code = assert_as_eager(f, *inputs).code
    assert code.count("loop(") == 2 and ".copy(" not in code and ".ascontiguousarray(" not in code


def test_a_mask_is_read_where_a_gradient_is_moved():
    f = lambda x: (x.reshape(3, 4, 5).mT.contiguous() * 2).relu() * 0.5  # noqa: E731
    code = assert_as_eager(f, numbers(3, 20)).code
    assert "swapaxes(" not in code


def test_what_is_used_twice_is_computed_once():
    def f(x):
        h = x.T.contiguous()
        for _ in range(40):
            h = h * h
            h = (h + 1 - h * 0.5) * 0.5
        return h

    with engine.no_grad():
        assert len(assert_as_eager(f, numbers(50, 30) * 0.1).code) < 40_000
