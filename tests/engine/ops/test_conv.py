"""Convolution, pooling and padding, as PyTorch computes them."""

import itertools

import numpy as np
import pytest
from against_torch import (
    assert_close,
    cases,
    check_derivatives,
    compare,
    compare_errors,
    gradients,
    library,
    outputs,
    run,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from over_tables import over

import engine
import engine.nn.functional as F
from engine.arrays.kernels import conv as kernels
from engine.ops import conv, pool

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


INPUTS = {
    "x": normal(2, 4, 7, 6), "x1": normal(2, 4, 9), "x3": normal(1, 2, 4, 5, 4), "u": normal(4, 5, 6),
    "u1": normal(4, 9), "w": normal(6, 4, 3, 2), "w1": normal(6, 4, 3), "w3": normal(3, 2, 2, 3, 1),
    "k": normal(6, 4, 3, 3), "b": normal(6), "point": normal(6, 4, 1, 1), "pairs": normal(6, 2, 3, 2),
    "each": normal(8, 1, 2, 3), "b8": normal(8), "b3": normal(3), "t": normal(4, 3, 3, 2), "t1": normal(4, 3, 3),
    "t3": normal(2, 3, 2, 1, 2), "y": normal(2, 8, 12), "long": normal(2, 4, 30), "wide": normal(2, 4, 3, 26),
}  # fmt: skip
EXACT = {
    "i": rng.integers(-9, 9, (2, 4, 7, 6)), "iw": rng.integers(-9, 9, (6, 4, 3, 2)),
    "m": rng.random((2, 2, 4, 4)) > 0.5, "u8": rng.integers(0, 255, (1, 2, 5, 5)).astype(np.uint8),
}  # fmt: skip

CONVOLUTIONS = cases("""
F.conv2d(x, w)
F.conv2d(x, w, b)
F.conv2d(u, w, b)
F.conv2d(x, w, b, 2)
F.conv2d(x, w, b, stride=(1, 3), padding=(2, 1))
F.conv2d(x, w, b, dilation=2)
F.conv2d(x, w, b, 2, 3, (1, 3))
F.conv2d(x, w, b, padding='valid', stride=2)
F.conv2d(x, k, b, padding='same')
F.conv2d(x, w, b, padding='same', dilation=(1, 2))
F.conv2d(x, w, b, padding='same', dilation=(2, 3))
F.conv2d(x[..., :1, :1], w, b, padding='same', dilation=(2, 3))
F.conv2d(u, w, padding='same')
F.conv2d(x, point, b)
F.conv2d(x, point, b, stride=2, padding=1)
F.conv2d(x, pairs, b, groups=2, padding=1)
F.conv2d(x, each, b8, groups=4, stride=2)
F.conv2d(x, each, None, (2,), [1, 0], (1, 2), 4)
F.conv2d(x.mT, k, b)
F.conv2d(x.permute(0, 1, 3, 2), k, b, padding=2)
F.conv2d(x[:, :, ::2], w)
F.conv2d(x, w.detach(), b)
F.conv2d(x.detach(), w, b.detach())
F.conv2d(x[:1], w, b)
F.conv1d(x1, w1, b)
F.conv1d(u1, w1, b, 2, 1)
F.conv1d(x1, w1, b, padding='same')
F.conv1d(x1, w1, b, padding='same', dilation=3)
F.conv1d(x1, w1[:, :2], b, groups=2, padding=1)
torch.conv1d(x1, w1, stride=(2,), padding=(2,))
torch.conv2d(x, w, b, 2, 1, 1, 1)
F.conv1d(long, w1, b)
F.conv1d(long, w1[:, :2], b, padding=1, groups=2)
F.conv1d(long, w1, stride=2)
F.conv2d(wide, w, b, stride=(2, 1), dilation=(1, 2))
F.conv2d(wide[:1], pairs, b, groups=2)
F.conv3d(x3, w3, b3, padding=1, stride=(1, 2, 1))
F.conv_transpose2d(x, t)
F.conv_transpose2d(x, t, b3, 2)
F.conv_transpose2d(u, t, b3, 2, 1, 1)
F.conv_transpose2d(x, t, b3, (3, 2), (1, 0), (2, 1))
F.conv_transpose2d(x, t, None, 1, 0, 1, 1, 2)
F.conv_transpose2d(x, t, None, 2, 1, 0, 2, (1, 2))
F.conv_transpose2d(x, t.detach(), b3)
F.conv_transpose1d(x1, t1, b3, stride=2)
F.conv_transpose1d(u1, t1, padding=1)
F.conv_transpose1d(long, t1, b3)
F.conv_transpose2d(wide, t, padding=1, groups=2)
F.conv_transpose3d(x3, t3, b3, stride=2)
""")

POOLS = cases("""
F.max_pool2d(x, 2)
F.max_pool2d(u, 2)
F.max_pool2d(x, (3, 2))
F.max_pool2d(x, 3, 1)
F.max_pool2d(x, 3, 2, 1)
F.max_pool2d(x, (2, 3), (3, 1), (1, 0), (2, 1))
F.max_pool2d(x, 2, ceil_mode=True)
F.max_pool2d(x, 3, 2, ceil_mode=True)
F.max_pool2d(x, 3, 4, 1, 1, True)
F.max_pool2d(x, 2, 5, 1, ceil_mode=True)
F.max_pool2d(x, 1)
F.max_pool2d(x.mT, 2)
F.max_pool2d(torch.relu(x), 2)
F.max_pool2d(torch.round(x), 3, 1, 1)
F.max_pool2d(x * 0, 2)
F.max_pool2d(x, 2, return_indices=True)[0]
F.max_pool1d(x1, 2)
F.max_pool1d(u1, 3, 2, 1)
F.max_pool1d(x1, (3,), 1, 1, 2)
F.max_pool1d(x1, 2, ceil_mode=True)
torch.max_pool1d(x1, 4)
torch.max_pool2d(x, 2, 2)
F.avg_pool2d(x, 2)
F.avg_pool2d(u, 2)
F.avg_pool2d(x, 3, 1)
F.avg_pool2d(x, (3, 2), 2, (1, 0))
F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
F.avg_pool2d(x, 3, 2, 1, True)
F.avg_pool2d(x, 3, 2, 1, True, False)
F.avg_pool2d(x, 2, 3, 1, True, divisor_override=3)
F.avg_pool2d(x, 3, divisor_override=-2)
F.avg_pool2d(x, 1)
F.avg_pool2d(x.mT, 2, ceil_mode=True)
F.avg_pool1d(x1, 2)
F.avg_pool1d(u1, 3, 2, 1)
F.avg_pool1d(x1, 3, 2, 1, True, False)
torch.avg_pool1d(x1, 4)
F.adaptive_avg_pool2d(x, 3)
F.adaptive_avg_pool2d(u, (2, 4))
F.adaptive_avg_pool2d(x, (None, 2))
F.adaptive_avg_pool2d(x, 1)
F.adaptive_avg_pool2d(x, (1, 6))
F.adaptive_avg_pool2d(x, (9, 11))
F.adaptive_avg_pool1d(x1, 4)
F.adaptive_avg_pool1d(u1, 1)
torch.adaptive_avg_pool1d(x1, 9)
F.adaptive_max_pool2d(x, 3)
F.adaptive_max_pool2d(u, (2, 4))
F.adaptive_max_pool2d(x, (None, 2))
F.adaptive_max_pool2d(x, (9, 1))
F.adaptive_max_pool1d(x1, 4)
F.adaptive_max_pool1d(u1, 3)
""")

PADS = cases("""
F.pad(x, (1, 2))
F.pad(x, (1, 2, 0, 1))
F.pad(x, [0, 1, 2, 0, 1, 1, 0, 2])
F.pad(x, (-1, 2, 3, -2), value=1.5)
F.pad(x, (-1, -2))
F.pad(x, (-6, 0))
F.pad(x, (0, 0))
F.pad(x, ())
F.pad(b, (2, 3), 'constant', -1)
torch.constant_pad_nd(x, (1, 1), 2.0)
F.pad(x, (1, 2, 3, 4), 'reflect')
F.pad(u, (5, 5, 4, 4), 'reflect')
F.pad(x1, (8, 0), mode='reflect')
F.pad(u1, (0, 3), mode='reflect')
F.pad(x, (1, -2, -1, 3), 'reflect')
F.pad(x3, (1, 2, 3, 0, 1, 1), 'reflect')
F.pad(x, (1, 2, 3, 4), 'replicate')
F.pad(x1, (12, 1), 'replicate')
F.pad(x, (1, -2, -1, 3), 'replicate')
F.pad(x3, (1, 2, 3, 0, 1, 1), 'replicate')
""")

BLOCKS = cases("""
F.unfold(x, 3)
F.unfold(u, (2, 3))
F.unfold(x, (3, 2), dilation=(1, 2), padding=(2, 1), stride=2)
F.unfold(x, 1)
F.fold(y, (4, 5), (1, 2), stride=1, padding=0, dilation=2)
F.fold(y, (4, 5), (2, 2))
F.fold(y[0], (4, 5), 2)
F.fold(y, (7, 5), (2, 2), 1, 1, (2, 2))
F.fold(F.unfold(x, 3, padding=1), (7, 6), 3, padding=1)
""")

TYPES = cases("""
F.conv2d(x.double(), w.double(), b.double(), padding=1)
F.conv2d(x.half(), w.half(), b.half(), padding=1)
F.conv2d(x.bfloat16(), w.bfloat16())
F.conv1d(x1.half(), w1.half(), b.half(), 2)
F.conv_transpose2d(x.bfloat16(), t.bfloat16(), b3.bfloat16())
F.max_pool2d(x.half(), 2)
F.max_pool2d(x.bfloat16(), 3, 2, 1)
F.avg_pool2d(x.half(), 2)
F.avg_pool2d(x.bfloat16(), 3, 2, 1)
F.adaptive_avg_pool2d(x.bfloat16(), 3)
F.adaptive_max_pool2d(x.half(), 3)
F.pad(x.half(), (1, 1), value=2)
F.pad(x.bfloat16(), (1, 1, 2, 2), 'reflect')
F.conv2d(i, iw)
F.conv2d(i.int(), iw.int(), stride=2)
F.conv2d(u8, u8[:, :, :2, :2])
F.max_pool2d(i, 3, 2, 1)
F.max_pool2d(i.int(), 2)
F.max_pool2d(u8, 3, 2, 1)
F.max_pool1d(i[0, 0], 3, return_indices=True)[0]
F.pad(i, (1, 1))
F.pad(i, (1, 1), value=2.5)
F.pad(m, (1, 0), value=True)
F.pad(i, (1, 1, 1, 1), 'reflect')
F.pad(i, (1, 1, 1, 1), 'circular')
""")

EMPTY = cases("""
F.conv2d(x[:0], w, b)
F.conv2d(x[:0], w, b, padding='same')
F.conv_transpose2d(x[:0], t, b3)
F.max_pool2d(x[:0], 2)
F.avg_pool2d(x[:0], 2)
F.adaptive_avg_pool2d(x[:0], 3)
F.adaptive_avg_pool2d(x.detach(), 0)
F.adaptive_max_pool2d(x.detach(), 0)
F.adaptive_max_pool2d(x[:0], 3)
F.pad(x[:0], (1, 1))
F.pad(x[:0], (1, 1, 1, 1), 'reflect')
""")

ERRORS = cases("""
F.conv2d(b, w)
F.conv2d(x3, w)
F.conv2d(x1, w, b)
F.conv1d(x, w1, b)
F.conv2d(x, w1, b)
F.conv1d(x1, w, b)
F.conv2d(x, w[:, :3], b)
F.conv2d(u, w[:, :3], b)
F.conv2d(x[:, :, :2, :2], k)
F.conv1d(x1[:, :, :2], w1)
F.conv2d(x[:, :, :1, :1], k, padding=(0, 1), dilation=2)
F.conv2d(x, w, b3)
F.conv2d(x, w, w)
F.conv2d(x, w, stride=0)
F.conv2d(x, w, stride=(1, -1))
F.conv2d(x, w, stride=(1, 1, 1))
F.conv2d(x, w, padding=-1)
F.conv2d(x, w, padding=(1, 1, 1))
F.conv2d(x, w, dilation=0)
F.conv2d(x, w, dilation=(1, 2, 3))
F.conv2d(x, w, groups=0)
F.conv2d(x, w, groups=2)
F.conv2d(x, pairs, groups=4)
F.conv2d(x, w[:0], b[:0])
F.conv2d(x[:, :, :0], w)
F.conv2d(x[:, :, :0], w, padding=2)
F.conv2d(x, w, padding='same', stride=2)
F.conv2d(x, w, padding='foo')
F.conv2d(x, w.double())
F.conv2d(x, w, b.double())
F.conv2d(x.double(), w, b)
F.conv2d(m, m)
F.conv_transpose2d(x, w)
F.conv_transpose2d(x, t, b)
F.conv_transpose2d(x, t, b3, output_padding=1)
F.conv_transpose1d(x1, t1, stride=2, output_padding=2)
F.conv_transpose2d(x, t, stride=2, output_padding=-1)
F.conv_transpose2d(x, t, b3, groups=3)
F.conv_transpose2d(x, t, b3, groups=2)
F.conv_transpose1d(x, t1)
F.conv_transpose2d(x, t, padding='same')
F.max_pool2d(x, 0)
F.max_pool2d(x, -1)
F.max_pool2d(x, 2, 0)
F.max_pool2d(x, 2, -1)
F.max_pool2d(x, 2, padding=2)
F.max_pool2d(x, 2, padding=-1)
F.max_pool2d(x, 2, dilation=0)
F.max_pool2d(x, 20)
F.max_pool2d(x, (2, 2, 2))
F.max_pool2d(x, 2, (1, 1, 1))
F.max_pool2d(x, 2, 2, (1, 1, 1))
F.max_pool2d(x, 2, 2, 0, (1, 1, 1))
F.max_pool2d(x, 2.0)
F.max_pool2d(x, 2, 2.0)
F.avg_pool1d(x1, 2.0)
F.max_pool2d(u1, 2)
F.max_pool2d(x3, 2)
F.max_pool2d(x[:, :0], 2)
F.max_pool2d(x[:, :, :0], 2)
F.max_pool2d(m, 2)
F.max_pool1d(x, 2)
F.max_pool1d(b, 2)
F.max_pool1d(x1, 0)
F.max_pool1d(x1, 2, 0)
F.max_pool1d(x1, 2, padding=2)
F.max_pool1d(x1, 2, padding=-1)
F.max_pool1d(x1, 20)
F.max_pool1d(x1, 2, dilation=0)
F.max_pool1d(x1, (2, 2))
F.max_pool1d(i[0], 2)
F.avg_pool2d(x, 0)
F.avg_pool2d(x, 2, padding=2)
F.avg_pool2d(x, 2, padding=-1)
F.avg_pool2d(x, 20)
F.avg_pool2d(x, 2, divisor_override=0)
F.avg_pool2d(x, (2, 2, 2))
F.avg_pool2d(x3, 2)
F.avg_pool2d(i.int(), 2)
F.avg_pool2d(m, 2)
F.avg_pool1d(x, 2)
F.avg_pool1d(b, 2)
F.avg_pool1d(x1, 0)
F.avg_pool1d(x1, (2, 2))
F.avg_pool1d(x1, 2, padding=2)
F.avg_pool1d(x1, 20)
F.avg_pool1d(x1, 2, 0)
F.adaptive_avg_pool2d(x, -1)
F.adaptive_avg_pool2d(x, (2, 2, 2))
F.adaptive_avg_pool2d(x, (2,))
F.adaptive_avg_pool2d(u1, 2)
F.adaptive_avg_pool2d(x3, 2)
F.adaptive_avg_pool2d(i, 2)
F.adaptive_avg_pool2d(i, 1)
F.adaptive_avg_pool2d(x[:, :, :0], 2)
F.adaptive_avg_pool1d(x, 2)
F.adaptive_avg_pool1d(x1, (2, 2))
F.adaptive_max_pool2d(x, -1)
F.adaptive_max_pool2d(u1, 2)
F.adaptive_max_pool2d(x3, 2)
F.adaptive_max_pool2d(i, 2)
F.adaptive_max_pool1d(x, 2)
F.pad(x, (1,))
F.pad(x, (1,) * 10)
F.pad(x, (-5, -5))
F.pad(x, 1)
F.pad(x, (1.0, 1))
F.pad(x, (1, 1), 'foo')
F.pad(x, (1, 1), 'reflect')
F.pad(b, (1, 1), 'replicate')
F.pad(x, (1, 1), 'circular')
F.pad(x, (1, 1, 1, 1), 'reflect', 1.0)
F.pad(x, (6, 6, 1, 1), 'reflect')
F.pad(x, (1, 1, 7, 1), 'reflect')
F.pad(x1, (1, 9), 'reflect')
F.pad(x1, (10, 1), 'circular')
F.pad(x1, (-5, -5), 'circular')
F.pad(x1, (-5, -5), 'replicate')
F.pad(x1, (-5, -5), 'reflect')
F.pad(m, (1, 1, 1, 1), 'reflect')
F.pad(m, (1, 1, 1, 1), 'replicate')
torch.constant_pad_nd(x, (1,))
F.unfold(x[:, :0], 3)
F.unfold(x, 0)
F.unfold(x, 20)
F.unfold(x, 3, 0)
F.unfold(x, 3, padding=-1)
F.unfold(x, (3, 3, 3))
F.unfold(i, 2)
F.fold(x, (7, 6), 3)
F.fold(y, (4, 4), 2)
F.fold(y[:, :7], (4, 5), 2)
""")


@pytest.fixture
def inputs():
    return {**INPUTS, **EXACT}


@over("expression", CONVOLUTIONS + POOLS + PADS + BLOCKS)
def test_like_pytorch(expression, inputs):
    pytest.importorskip("torch")
    compare(expression, inputs, tolerance=1e-4 if "conv" in expression else None)


@over("expression", CONVOLUTIONS + POOLS + PADS + BLOCKS)
def test_derivatives(expression, inputs):
    if " * 0" not in expression and "round" not in expression:
        check_derivatives(expression.replace(".detach()", ""), inputs)


@over("expression", TYPES)
def test_other_types_like_pytorch(expression, inputs):
    pytest.importorskip("torch")
    compare(
        expression,
        inputs,
        second=False,
        tolerance=5e-2 if "bf" in expression else 5e-3 if "half" in expression else None,
    )


@over("expression", EMPTY)
def test_empty_like_pytorch(expression, inputs):
    pytest.importorskip("torch")
    compare(expression, inputs, second=False)


@over("expression", ERRORS)
def test_errors_like_pytorch(expression, inputs):
    pytest.importorskip("torch")
    compare_errors(expression, inputs)


INF, NAN = np.inf, np.nan
HARD = {
    "nan in some": [[NAN, 1, 2, 3], [0, NAN, 5, 4], [NAN, NAN, 1, NAN], [NAN, NAN, 1, 1]],
    "nan first": [[NAN, 1, 2, NAN], [0, 3, 5, 4], [1, 2, INF, NAN], [1, 2, NAN, INF]],
    "all -inf": [[-INF] * 4] * 4,
    "ties": [[1, 1, 2, 1], [1, 1, 1, 2], [0, 1, 3, 3], [1, 0, 3, 3]],
}


@over("rows, options", itertools.product(HARD, ["2", "3, 1, 1", "3, 2, 1", "2, 2, 0, 2", "2, 2, 1, 2, True"]))
def test_maximum_takes_the_element_that_pytorch_takes(rows, options):
    pytest.importorskip("torch")
    inputs = {"x": np.array([HARD[rows]], np.float32), "i": np.arange(16).reshape(1, 4, 4)}
    mine, theirs = compare(f"F.max_pool2d(x, {options}, return_indices=True)", inputs, second=False)
    assert mine[1].tolist() == theirs[1].tolist()


@over("rows", HARD)
def test_adaptive_maximum_takes_the_element_that_pytorch_takes(rows):
    pytest.importorskip("torch")
    mine, theirs = compare(
        "F.adaptive_max_pool2d(x, (3, 2), return_indices=True)", {"x": np.array([HARD[rows]], np.float32)}, second=False
    )
    assert mine[1].tolist() == theirs[1].tolist()


@over("expression", ["F.max_pool1d(x1, 3, 2, 1, return_indices=True)", "F.adaptive_max_pool1d(x1, 4, True)"])
def test_indices_in_one_dimension(expression, inputs):
    pytest.importorskip("torch")
    mine, theirs = compare(expression, inputs)
    assert mine[1].tolist() == theirs[1].tolist()


def test_the_maximum_alone_needs_no_indices(inputs):
    x = engine.tensor(inputs["x"], requires_grad=True)
    with engine.no_grad():
        y = F.max_pool2d(x, 3, 2, 1)
    assert y.grad_fn is None and (y == F.max_pool2d(x, 3, 2, 1)).all()


def test_an_average_sees_only_its_window():
    x = engine.ones(1, 4, 5)
    x[0, 0, 0] = np.nan
    y = F.adaptive_avg_pool2d(x, (2, 2))
    assert y.isnan().tolist() == [[[True, False], [False, False]]]


@over("pad", ["(1, 2)", "(9, 0)", "(0, 9)", "(-2, 4)"])
def test_circular_padding_like_pytorch(pad, inputs):
    # the chain is not PyTorch's: that is one CopySlices for each of the pieces
    pytest.importorskip("torch")
    found = {}
    for name in ("engine", "torch"):
        module, _ = library(name)
        result, tensors = run(name, f"F.pad(x1, {pad}, 'circular')", {"x1": inputs["x1"]})
        assert result.grad_fn.name() == "torch::autograd::CopySlices"
        found[name] = result, *gradients(module, outputs(result), [tensors["x1"]], 1, False)
    for a, b in zip(found["engine"], found["torch"], strict=True):
        assert_close(a, b, pad, "a value")


@over("expression", ["F.pad(x, (1, 2, 3, 0), 'circular')", "F.pad(x3, (1, -1, 1, 0, 2, 2), 'circular')"])
def test_derivatives_of_circular_padding(expression, inputs):
    check_derivatives(expression, inputs)


def test_results_lie_in_memory_in_their_order(inputs):
    x, w = engine.tensor(inputs["x"]), engine.tensor(inputs["k"])
    for y in (
        F.conv2d(x, w),
        F.conv2d(x.mT, w),
        F.conv_transpose2d(F.conv2d(x, w), w),
        F.max_pool2d(x.mT, 2),
        F.unfold(x, 1),
    ):
        assert y.is_contiguous()


def test_what_was_cut_or_unfolded_is_a_copy(inputs):
    x = engine.tensor(inputs["x"])
    for y in (F.pad(x, (-1, 0)), F.pad(x, (0, 0)), F.unfold(x, 1), F.max_pool2d(x, 1), F.avg_pool2d(x, 1)):
        y.zero_()
    assert x.tolist() == inputs["x"].tolist()


def test_a_pool_may_be_overwritten(inputs):
    x = engine.tensor(inputs["x"], requires_grad=True)
    y = F.max_pool2d(x, 2)
    y.relu_().sum().backward()
    assert x.grad.count_nonzero() == (y > 0).sum()


def test_an_input_that_was_overwritten_raises(inputs):
    x, w = engine.tensor(inputs["x"]), engine.tensor(inputs["k"], requires_grad=True)
    y = F.conv2d(x, w)
    x.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_convolution_without_grad_of_its_weight_does_not_keep_the_input(inputs):
    x, w = engine.tensor(inputs["x"], requires_grad=True), engine.tensor(inputs["k"])
    x_saved, w_saved, _, columns = F.conv2d(x, w).grad_fn.saved
    assert x_saved is columns is None and w_saved is w.array


# ---- small arrays show all windows at once, tiny ones pick their elements, large ones are copied in long stretches


WAYS = {"tiny": (1 << 30, 1 << 30), "small": (1 << 30, 0), "large": (0, 0)}


def each_way(program, *arrays):
    """The result of a program and its gradients to the second order, in each of the three ways."""
    found = {}
    for way, (small, tiny) in WAYS.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "SMALL", small)
            patch.setattr(kernels, "TINY", tiny)
            windows = (conv.conv_window, conv.transposed_window, pool.pool_window)
            for cached in windows:
                cached.cache_clear()
            tensors = [engine.tensor(a, requires_grad=True) for a in arrays]
            y = program(*tensors)
            first = engine.autograd.grad((y * y).sum(), tensors, create_graph=True)
            second = engine.autograd.grad(sum((g * g).sum() for g in first), tensors)
            found[way] = [t.detach().numpy() for t in (y, *first, *second)]
            for cached in windows:
                cached.cache_clear()
    return found


@settings(max_examples=40)
@given(
    n=st.integers(1, 3), groups=st.integers(1, 2), channels=st.integers(1, 2), outputs=st.integers(1, 2),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)), stride=st.integers(1, 3), padding=st.integers(0, 3),
    dilation=st.integers(1, 2), transposed=st.booleans(),
)  # fmt: skip
def test_convolution_is_the_same_in_each_way(
    n, groups, channels, outputs, kernel, stride, padding, dilation, transposed
):
    draw = np.random.default_rng(0).standard_normal
    x = draw((n, groups * channels, 7, 8))
    if transposed:
        f, w = F.conv_transpose2d, draw((groups * channels, outputs, *kernel))
    else:
        f, w = F.conv2d, draw((groups * outputs, channels, *kernel))
    found = each_way(lambda x, w: f(x, w, None, stride, padding, dilation=dilation, groups=groups), x, w)
    for way in ("tiny", "small"):
        for mine, other in zip(found[way], found["large"], strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)


HOW = [(2, 2, 0, 1), (3, 1, 1, 1), (2, 3, 1, 2), (3, 2, 1, 1)]  # kernel, stride, padding, dilation


@over("shape, how", itertools.product([(3, 7, 6), (2, 2, 9, 9), (1, 1, 5, 5)], HOW))
def test_pooling_is_the_same_in_each_way(shape, how):
    x = np.random.default_rng(0).integers(-3, 3, shape).astype(np.float64)  # with equal elements
    found = each_way(lambda x: F.max_pool2d(x, *how), x)
    for way in ("tiny", "small"):
        for mine, other in zip(found[way], found["large"], strict=True):
            np.testing.assert_array_equal(mine, other)


@over("program", ["F.conv2d(x, w, b, padding=1)", "F.conv2d(x, w, b, 2)", "F.max_pool2d(x, 2)"])
def test_large_arrays_as_pytorch(program):
    pytest.importorskip("torch")
    draw = np.random.default_rng(0).standard_normal
    arrays = {"x": draw((4, 8, 40, 41)), "w": draw((8, 8, 3, 3)), "b": draw(8)}
    compare(program, arrays, second=False)
