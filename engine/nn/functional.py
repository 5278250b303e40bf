"""Layers without state, activations, losses and normalizations, under ``torch.nn.functional``'s names."""

from ..arrays.warn import warn
from ..ops import softmax as ops
from ..ops.activations import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    silu,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from ..ops.attention import scaled_dot_product_attention
from ..ops.conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, fold, unfold
from ..ops.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from ..ops.elementwise import add, neg, sigmoid, tanh
from ..ops.layers import embedding, linear, one_hot
from ..ops.linalg import einsum
from ..ops.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from ..ops.norms import batch_norm, cosine_similarity, group_norm, instance_norm, layer_norm, normalize, rms_norm
from ..ops.pad import pad
from ..ops.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)
from ..surface.arguments import public


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
    return ops.softmax(input, implied("softmax", input, dim), dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)) along ``dim``, without overflow."""
    return ops.log_softmax(input, implied("log_softmax", input, dim), dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-x) along ``dim``."""
    return ops.softmax(neg(input), implied("softmin", input, dim), dtype)


def implied(name, input, dim):
    """The dimension along which a softmax is taken that names none, with PyTorch's warning."""
    if dim is not None:
        return dim
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
    )
    return 0 if input.ndim in (0, 1, 3) else 1


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "embedding",
    "feature_alpha_dropout",
    "fold",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "instance_norm",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "unfold",
]

# what PyTorch's own are written in Python: a wrong argument fails where it is first used
IN_PYTHON = """adaptive_avg_pool2d adaptive_max_pool2d binary_cross_entropy binary_cross_entropy_with_logits
dropout1d dropout2d dropout3d glu group_norm huber_loss instance_norm l1_loss log_softmax mse_loss normalize
smooth_l1_loss softmax softmin softsign tanhshrink""".split()
for name in __all__:
    if name not in IN_PYTHON:
        globals()[name] = public(name, globals()[name], __name__)
