"""Checks of the arguments of layers without state."""

from ...arrays import dtypes
from ...arrays.devices import typename_of, violated
from ...arrays.kernels.picking import check_rows
from ...core.tensor import Tensor
from ...ops import layers
from .. import messages as m
from ..require import require
from .linalg import BOOL, addmm, matmul

INDICES = dtypes.int64.np, dtypes.int32.np


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
        require(False, m.EMBEDDING_INDICES, typename_of(i))
    if padding_idx is not None:
        assert -w.shape[0] <= padding_idx < w.shape[0], m.EMBEDDING_PADDING
    check_rows(w, i)
