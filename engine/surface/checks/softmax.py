"""Checks of softmax's arguments."""

from ...arrays import dtypes
from .. import messages as m
from ..require import require


def softmax(input, dim, dtype):
    if dtype is not None or input.array.dtype.kind != "f":
        floating("softmax", input, dim, dtype)


def log_softmax(input, dim, dtype):
    if dtype is not None or input.array.dtype.kind != "f":
        floating("log_softmax", input, dim, dtype)


def floating(name, input, dim, dtype):
    n, dtype = input.ndim, input.array.dtype if dtype is None else dtypes.given(dtype, name).np
    if dtype not in dtypes.differentiable:
        kernel = f"{name}_lastdim_kernel_impl" if n < 2 or dim in (-1, n - 1) else f"{name}_kernel_impl"
        require(False, m.NO_KERNEL, kernel, dtype, error=NotImplementedError)
