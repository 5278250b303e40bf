"""Checks of the arguments of layers without state."""

from functools import partial

from ...arrays import dtypes
from ...arrays.devices import typename_of, violated
from ...arrays.dtypes import dtype_word
from ...arrays.kernels.indexing import check_rows
from ...arrays.warn import warn
from ...core.record import array_of
from ...core.tensor import Tensor
from ...ops import layers
from .. import messages as m
from ..require import require
from .linalg import BOOL, addmm, matmul

INDICES = dtypes.int64.np, dtypes.int32.np
FLOATS = "Half, BFloat16, Float, Double"


def linear(input, weight, bias):
    x, w = input.array, weight.array
    if x.ndim and w.ndim == 2 and x.shape[-1] == w.shape[1] and x.dtype is w.dtype is not BOOL:
        if bias is None or bias.array.dtype is w.dtype:
            return
    require(x.ndim, m.AT_LEAST_1D, "linear", x.ndim, w.ndim)
    if bias is not None and layers.in_one_product(x, bias.array):
        addmm(bias, input if x.ndim == 2 else Tensor(x.reshape(-1, x.shape[-1])), Tensor(w.T))
    else:
        matmul(input, layers.transposed(weight))


def one_hot(tensor, num_classes):
    x = tensor.array
    require(x.dtype == dtypes.int64.np, m.ONE_HOT_DTYPE)
    require(x.size or num_classes > 0, m.ONE_HOT_EMPTY)
    if x.size:
        require(not violated(x, lambda x: (x < 0).any()), m.ONE_HOT_NEGATIVE)
        fit = num_classes == -1 or not violated(x, lambda x: (x >= num_classes).any())
        require(fit, m.ONE_HOT_LARGE)


def embedding(input, weight, padding_idx, max_norm, scale_grad_by_freq, sparse):
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise NotImplementedError(m.EMBEDDING_OPTIONS)
    i, w = input.array, weight.array
    if w.ndim != 2:
        raise RuntimeError(m.EMBEDDING_WEIGHT)
    if i.dtype not in INDICES:
        one_of(i, "indices", "Long, Int", "embedding")
    if padding_idx is not None:
        assert -w.shape[0] <= padding_idx < w.shape[0], m.EMBEDDING_PADDING
    check_rows(w, i)


def one_of(x, name, kinds, function):
    fit = dtype_word(x) in kinds.split(", ")
    require(fit, m.KINDS, name, kinds, typename_of(x), function)


def embedding_bag(input, weight, offsets, max_norm, scale_grad_by_freq, mode, sparse, per_sample_weights,
                  include_last_offset, padding_idx):  # fmt: skip
    y, value = per_sample_weights, partial(require, error=ValueError)
    w, x = array_of(weight), array_of(input)
    i, fixed = x.reshape(-1), x.ndim == 2
    require(not sparse or mode == "max", m.BAG_SPARSE, error=NotImplementedError)
    value(y is None or y.shape == x.shape, m.BAG_WEIGHTS_SHAPE, y is not None and y.shape, x.shape)
    value(w.ndim == 2, m.BAG_ROWS, w.ndim)
    value(not fixed or offsets is None, m.BAG_FIXED, type(offsets))
    value(fixed or x.ndim == 1, m.BAG_INPUT, x.ndim)
    fit = fixed or offsets is not None and offsets.ndim == 1
    value(fit, m.BAG_OFFSETS, " but got None" * (offsets is None))
    value(mode in ("sum", "mean", "max"), m.BAG_MODE)
    value(mode != "max" or not scale_grad_by_freq, m.BAG_MAX_SCALED)
    value(mode != "max" or not sparse, m.BAG_MAX_SPARSE)
    n = w.shape[0]
    outside = lambda i: (i < 0) | (i >= n)  # noqa: E731
    wrong = violated(i, lambda i: outside(i).any())
    if wrong and max_norm is not None:
        require(False, m.SELECT_RANGE, i[outside(i)][0].item(), w.shape, 0, error=IndexError)
    require(y is None or mode == "sum", m.BAG_WEIGHTS_MODE, mode, error=NotImplementedError)
    require(not fixed or x.shape[1], m.BAG_STEP)
    require(padding_idx is None or -n <= padding_idx < n, m.BAG_PADDING, n, n - 1, padding_idx)
    given = (i, "indices", "Long, Int"), (array_of(offsets), "indices", "Long, Int"), (w, "weight", FLOATS)
    for a, name, kinds in given[::2] if fixed else given:
        one_of(a, name, kinds, "embedding_bag")
    starts = [] if fixed else array_of(offsets)
    require(fixed or len(starts) or not include_last_offset, m.BAG_LAST)
    if len(starts):
        require(not violated(starts, lambda starts: starts[0] != 0), m.BAG_FIRST, starts[0])
        require(not violated(starts, lambda starts: starts[-1] > len(i)), m.BAG_END, len(i), starts[-1])
    if y is not None:
        require(y.array.dtype == w.dtype, m.BAG_WEIGHTS_DTYPE, typename_of(w), typename_of(y.array))
    if wrong:
        k = int(outside(i).argmax())
        require(mode != "max", m.BAG_MAX_INDEX, i[k])
        require(False, m.BAG_INDEX, k, i[k], n)
    require(fixed or not violated(starts, lambda starts: (starts[1:] < starts[:-1]).any()), m.BAG_ORDER)


# ---- dropout


def probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(m.DROPOUT_PROBABILITY.format(p))


def dropout(input, p, training):
    probability(p)
    x = input.array
    if x.dtype.kind != "f" and p and training and x.size:
        require(dtypes.of[x.dtype].is_floating_point, m.CANNOT_CAST, "Float", x.dtype)


def alpha_dropout(input, p, training):
    dropout(input, p, training and p != 1)  # at 1 nothing is drawn


def feature_dropout(input, p, train):
    probability(p)
    require(not p or not train or not input.array.size or input.ndim >= 2, m.FEATURE_DROPOUT_DIMS)
    dropout(input, p, train)


def dropout1d(input, p, training):
    probability(p)
    require(input.ndim in (2, 3), m.DROPOUT1D_DIMS, input.ndim)
    dropout(input, p, training)


def dropout2d(input, p, training):
    spatial("dropout2d", input, p, 2)
    if input.ndim == 3:
        warn(m.DROPOUT2D_OF_3D)
    feature_dropout(input, p, training)


def dropout3d(input, p, training):
    spatial("dropout3d", input, p, 3)
    if not input.ndim:
        feature_dropout(input, p, training)
    dropout(input, p, training)


def spatial(name, input, p, n):
    probability(p)
    if input.ndim not in (n + 1, n + 2):
        warn(m.DROPOUT_DIMS.format(name, input.ndim, n, n + 1, n + 2))
