"""Checks of the normalizations' arguments."""

import math

import numpy as np

from ...arrays import dtypes
from ...arrays.dtypes import accumulate_wider, dtype_word
from ...core.record import array_of
from ...ops.checks import check_floating, checked_dim, no_kernel, number
from .. import messages as m
from ..require import require
from .linalg import matrix_norm
from .reduce import widens


def same_dtype(x, *parameters):
    """Parameters are in the dtype of x; beside half precision they may be float32."""
    for p in parameters:
        dtype = x.dtype if p is None else p.dtype
        if dtype is not x.dtype and dtype != x.dtype:
            require(dtype == np.float32, m.NORM_PARAMETER_DTYPE)
            require(x.dtype in accumulate_wider, m.NORM_PARAMETER_DTYPES)


def slices(x, shape, comma, **parameters):
    """x ends in a shape, and parameters have it."""
    require(shape, m.NORM_SLICES_EMPTY)
    for name, p in parameters.items():
        require(p is None or p.shape == shape, m.NORM_SLICES_PARAMETER, name, p is not None and p.shape, shape)
    if x.shape[-len(shape) :] != shape:
        require(False, m.NORM_SLICES, shape, comma + ", ".join(map(str, shape)), x.shape)


def layer_norm(input, normalized_shape, weight, bias):
    if isinstance(normalized_shape, int):
        raise TypeError(m.NORM_SLICES_INT.format("layer_norm"))
    shape, x, w, b = tuple(normalized_shape), input.array, array_of(weight), array_of(bias)
    fitting = (w is None or w.shape == shape) and (b is None or b.shape == shape)
    if not (shape and fitting and x.shape[-len(shape) :] == shape):
        slices(x, shape, ", ", weight=w, bias=b)
    same_dtype(x, w, b)
    if x.dtype not in dtypes.differentiable:
        check_floating(x, "LayerNormKernelImpl")


def rms_norm(input, normalized_shape, weight):
    if isinstance(normalized_shape, int):
        raise TypeError(m.NORM_SLICES_INT.format("rms_norm"))
    shape, x, w = tuple(normalized_shape), input.array, array_of(weight)
    if not (shape and x.shape[-len(shape) :] == shape and (w is None or w.shape == shape)):
        slices(x, shape, "", weight=w)
    check_floating(x, "rms_norm")


def group_norm(input, num_groups, weight, bias, eps):
    x, w, b = array_of(input), array_of(weight), array_of(bias)
    require(x.ndim >= 2, m.GROUP_NORM_DIMS, x.ndim)
    number(eps, "group_norm", "eps", 5, "float")
    size, channels = (x.shape[0] * x.shape[1] // num_groups, num_groups, *x.shape[2:]), x.shape[1]
    require(size[0] * math.prod(size[2:]) != 1, m.GROUP_NORM_ONE_VALUE, size, error=ValueError)
    require(channels % num_groups == 0, m.GROUP_NORM_CHANNELS, x.shape, num_groups)
    for name, p in (("weight", w), ("bias", b)):
        if p is not None and p.shape != (channels,):
            require(False, m.GROUP_NORM_PARAMETER, name, p.shape, x.shape)
    same_dtype(x, w, b)
    check_floating(x, "GroupNormKernelImpl")


def instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps):
    x, given = array_of(input), (running_mean, running_var, weight, bias)
    one = use_input_stats and math.prod(x.shape[2:]) == 1
    require(not one, m.NORM_ONE_PLACE, x.shape, error=ValueError)
    require(use_input_stats or not (running_mean is None or running_var is None), m.RUNNING_BOTH)
    check_floating(x, "batch_norm")
    number(momentum, "instance_norm", "momentum", 7, "float")
    number(eps, "instance_norm", "eps", 8, "float")
    channelwise(x, math.prod(x.shape[:2]), x.shape[0], given, use_input_stats)


def batch_norm(input, running_mean, running_var, weight, bias, training, eps):
    x = input.array
    check_floating(x, "batch_norm")
    if training:
        if x.size:
            checked_dim(1, x.ndim)
        require(eps > 0, m.NORM_EPS, eps, error=ValueError)
        require(math.prod(x.shape[:1] + x.shape[2:]) != 1, m.NORM_ONE_VALUE, x.shape, error=ValueError)
    channelwise(x, x.shape[1] if x.ndim > 1 else 0, 1, (running_mean, running_var, weight, bias), training)


def channelwise(x, channels, times, given, training):
    """Running statistics and parameters have an element for each channel, so many times."""
    arrays = tuple(map(array_of, given))
    for name, v in zip(("running_mean", "running_var", "weight", "bias"), arrays):
        if v is None:
            require(training or not name.startswith("running"), m.RUNNING_MISSING, name)
        elif v.size * times != channels:
            require(False, m.NORM_PARAMETER_SIZE, name, channels, v.size * times)
    same_dtype(x, *arrays)


def cosine_similarity(x1, x2):
    dtype = dtypes.promote_types(x1.dtype, x2.dtype)
    require(dtype.is_floating_point, m.COMMON_DTYPE, dtype.np)


def cdist(x1, x2, p, compute_mode):
    modes = (None, *m.CDIST_MODES)
    require(compute_mode in modes, m.CDIST_MODE, compute_mode, error=ValueError)
    for name, x in (("X1", x1), ("X2", x2)):
        require(x.ndim >= 2, m.CDIST_DIMS, name, x.ndim)
    for name, x in (("X1", x1), ("X2", x2)):
        require(x.is_floating_point(), m.CDIST_DTYPE, name, dtype_word(x.array))
    columns = x1.shape[-1], x2.shape[-1]
    require(columns[0] == columns[1], m.CDIST_COLUMNS, *columns)
    require(p >= 0, m.CDIST_ORDER)
    require(x1.dtype is x2.dtype, m.SCALAR_TYPE, dtype_word(x1.array), dtype_word(x2.array))
    if x1.array.dtype in accumulate_wider:
        raise no_kernel("cdist", x1.array)


def norm(input, p, dim, keepdim, dtype):
    dims = range(input.array.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    if isinstance(p, str) and (p != "fro" or dim is not None and len(dims) > 2):
        return matrix_norm(input, p, dims, keepdim, dtype)
    widens("linalg.vector_norm", input, dtype)
