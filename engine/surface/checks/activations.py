"""Checks of the activations' arguments."""

from ...arrays import dtypes
from ...core.record import array_of
from ...ops.checks import check_floating, checked_dim
from .. import messages as m
from ..require import require


def floating(kernel):
    """The check of what is there for floating tensors alone; ``kernel``: PyTorch's name for it in the error."""

    def check(input):
        x = input.array
        if x.dtype.kind != "f":
            check_floating(x, kernel)

    return check


leaky_relu, silu, softplus, mish, hardswish, hardsigmoid, hardshrink, threshold, elu, logsigmoid, gelu_kernel = map(
    floating,
    "leaky_relu_cpu silu_cpu softplus_cpu mish_cpu hardswish_cpu hardsigmoid_cpu hardshrink_cpu threshold_cpu elu_cpu "
    "log_sigmoid_cpu GeluKernelImpl".split(),
)
selu, softshrink_kernel = elu, floating("softshrink_check")


def softmax_of(name):
    def check(input, dim, dtype):
        if dtype is not None or input.array.dtype.kind != "f":
            n, dtype = input.ndim, input.array.dtype if dtype is None else dtypes.given(dtype, name).np
            kernel = f"{name}_lastdim_kernel_impl" if n < 2 or dim in (-1, n - 1) else f"{name}_kernel_impl"
            require(dtype in dtypes.differentiable, m.NO_KERNEL, kernel, dtype, error=NotImplementedError)

    return check


softmax, log_softmax = softmax_of("softmax"), softmax_of("log_softmax")


def hardtanh(input, min_val, max_val):
    if min_val > max_val:
        raise ValueError(m.HARDTANH_LIMITS)
    kind = input.array.dtype.kind
    if kind != "f":
        require(kind != "b", m.HARDTANH_BOOL)
        require(kind != "u" or min_val >= 0, m.HARDTANH_UNSIGNED)


def relu6(input):
    hardtanh(input, 0, 6)


def gelu(input, approximate):
    require(approximate in ("none", "tanh"), m.GELU_APPROXIMATE)
    gelu_kernel(input)


def celu(input, alpha):
    require(alpha, m.CELU_ZERO)
    elu(input)


def softshrink(input, lambd):
    x = input.array
    if lambd < 0:
        require(False, m.SOFTSHRINK_LAMBDA, dtypes.finfo(dtypes.of[x.dtype]).max, x.dtype, lambd)
    softshrink_kernel(input)


def glu(input, dim):
    x = array_of(input)
    if not x.ndim:
        raise RuntimeError(m.GLU_SCALAR)
    dim = checked_dim(dim, x.ndim)
    if x.shape[dim] % 2:
        raise RuntimeError(m.GLU_HALVES.format(dim, x.shape[dim]))
    if x.dtype.kind != "f":
        check_floating(x, "glu_cpu")


def prelu(input, weight):
    x, w = input.array, weight.array
    require(x.dtype == w.dtype, m.PRELU_DTYPES, x.dtype, w.dtype)
    require(w.ndim <= 1, m.PRELU_WEIGHT, w.ndim)
    if w.size != 1:
        require(x.ndim, m.PRELU_SCALAR)
        channels = x.shape[1] if x.ndim > 1 else 1
        require(channels == w.size, m.PRELU_CHANNELS, w.size, channels)
    check_floating(x, "prelu_cpu")
