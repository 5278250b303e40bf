"""Checks of what layers without state take."""

from ...ops import layers
from .. import messages as m
from ..require import require
from .linalg import BOOL, matmul, plus_matrices


def linear(input, weight, bias):
    x, w = input.array, weight.array
    if x.ndim and w.ndim == 2 and x.shape[-1] == w.shape[1] and x.dtype is w.dtype is not BOOL:
        if bias is None or bias.array.dtype is w.dtype:
            return
    require(x.ndim, m.AT_LEAST_1D, "linear", x.ndim, w.ndim)
    if bias is not None and layers.in_one_product(x, bias.array):
        plus_matrices(bias.array, x if x.ndim == 2 else x.reshape(-1, x.shape[-1]), w.T)
    else:
        matmul(input, layers.transposed(weight))
