"""Initializers of parameters: each fills a tensor in place, unrecorded, with PyTorch's numbers, and returns it."""

import math

from ..arrays.dispatch import xp_of
from ..arrays.warn import warn
from ..autograd.modes import no_grad
from ..help import public
from ..ops.creation import empty_like, new_empty
from ..ops.creation import eye as identity
from ..ops.index import where
from . import messages

SAME = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")


def calculate_gain(nonlinearity, param=None):
    """By how much a nonlinearity asks for larger weights; ``param``: the slope of a leaky ReLU (0.01)."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {**dict.fromkeys(SAME, 1), "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def fans(tensor):
    """(inputs, outputs) of a layer with these weights, (out, in, *kernel).  ValueError below 2 dimensions."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = fans


@no_grad()
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor, val):
    """One value."""
    return tensor.fill_(val)


def ones_(tensor):
    """Ones."""
    return constant_(tensor, 1.0)


@no_grad()
def zeros_(tensor):
    """Zeros."""
    return tensor.zero_()


@no_grad()
def eye_(tensor):
    """The identity matrix, as far as it goes."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(identity(*tensor.shape, dtype=tensor.dtype))


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform with variance 2 gain**2 / (inputs + outputs) (Glorot and Bengio, 2010)."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(sum(fans(tensor)))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with variance 2 gain**2 / (inputs + outputs) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(fans(tensor)))), generator)


def kaiming_std(tensor, a, mode, nonlinearity):
    """gain / sqrt(inputs), or of the outputs (He et al., 2015)."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def is_empty(tensor):
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return True
    return False


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform with standard deviation gain / sqrt(inputs) (He et al., 2015); ``a``: the slope of a leaky ReLU."""
    if is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with standard deviation gain / sqrt(inputs) (He et al., 2015); ``a``: the slope of a leaky ReLU."""
    if is_empty(tensor):
        return tensor
    return normal_(tensor, 0, kaiming_std(tensor, a, mode, nonlinearity), generator)


@no_grad()
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal, drawn again until all are in [a, b]; where few would be, by rejection from uniform numbers."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(messages.TRUNCATED_FAR_FROM_MEAN)
    cdf = lambda x: (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0  # noqa: E731
    if cdf(b) - cdf(a) > 0.3:
        low, high = (tensor.new_tensor(v).item() for v in (a, b))
        result = tensor.normal_(mean, std, generator=generator)
        while (outside := (result < low) | (result > high)).any():
            result = where(outside, empty_like(result).normal_(mean, std, generator=generator), result)
    else:
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
        result, pending = tensor, None
        while pending is None or pending.any():
            draw = empty_like(tensor).uniform_(a, b, generator=generator)
            result = draw if pending is None else where(pending, draw, result)
            density = draw.sub(mean).div(std).pow(2).mul(-0.5).sub(peak)
            rejected = empty_like(tensor).uniform_(generator=generator).log() > density
            pending = rejected if pending is None else pending & rejected
    return tensor if result is tensor else tensor.copy_(result)


@no_grad()
def orthogonal_(tensor, gain=1, generator=None):
    """Orthonormal rows, or columns if there are fewer (Saxe et al., 2013); the last dimensions are taken together."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    x = new_empty(tensor, rows, columns).normal_(0, 1, generator=generator).array
    q, r = xp_of(x).linalg.qr(x.T if rows < columns else x)
    q = q * xp_of(x).sign(r.diagonal())
    flat = new_empty(tensor, rows, columns)
    flat.array[...] = q.T if rows < columns else q
    return tensor.copy_(flat.view(tensor.shape)).mul_(gain)


__dir__ = public("nn.init", globals())
