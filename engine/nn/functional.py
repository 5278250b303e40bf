"""Layers without state, activations, losses and normalizations, under ``torch.nn.functional``'s names."""

from ..arrays.warn import warn
from ..help import public
from ..ops.elementwise import add, neg
from ..ops.linalg import einsum
from ..surface.doors import Offered

functions = Offered("functional", __name__)
__getattr__ = functions.into_module(globals())


def bilinear(input1, input2, weight, bias=None):
    """input1 @ weight[k] @ input2 + bias[k], for each output k; the inputs may have more dimensions in front."""
    message, (a, b) = "bilinear(): input", (input1.shape, input2.shape)
    if len(a) != len(b):
        raise RuntimeError(f"{message} dimensions do not match: got {len(a)} and {len(b)}")
    for d, (m, n) in enumerate(zip(a[:-1], b[:-1])):
        if m != n:
            raise RuntimeError(f"{message} batch dimensions do not match at dim {d}: got {m} and {n}")
    for i, (m, n) in enumerate(zip((a[-1], b[-1]), weight.shape[1:]), 1):
        if m != n:
            raise RuntimeError(f"{message}{i} size does not match weight size: got {m} but expected {n}")
    out = einsum("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else add(out, bias)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) / sum(exp(x)) along ``dim``."""
    return input.softmax(implied("softmax", input) if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)) along ``dim``, without overflow."""
    return input.log_softmax(implied("log_softmax", input) if dim is None else dim, dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-x) along ``dim``."""
    return neg(input).softmax(implied("softmin", input) if dim is None else dim, dtype)


def implied(name, input):
    """The dimension along which a softmax is taken that names none, with PyTorch's warning."""
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if input.ndim in (0, 1, 3) else 1


__all__ = [*sorted(functions.names), "bilinear", "log_softmax", "softmax", "softmin"]

__dir__ = public("nn.functional", globals())
