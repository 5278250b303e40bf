"""Checks of softmax's arguments."""

from ...arrays import dtypes
from .. import messages as m
from ..require import require


def floating(name):
    def check(input, dim, dtype):
        if dtype is not None or input.array.dtype.kind != "f":
            n, dtype = input.ndim, input.array.dtype if dtype is None else dtypes.given(dtype, name).np
            kernel = f"{name}_lastdim_kernel_impl" if n < 2 or dim in (-1, n - 1) else f"{name}_kernel_impl"
            require(dtype in dtypes.differentiable, m.NO_KERNEL, kernel, dtype, error=NotImplementedError)

    return check


softmax, log_softmax = floating("softmax"), floating("log_softmax")
