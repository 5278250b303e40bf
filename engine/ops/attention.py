"""Attention: the mean of the values, weighted by how well each query fits each key.

Where PyTorch computes it in one operation, so does the engine; elsewhere it is composed of products and a softmax, as
there.
"""

import math

from ..arrays.dispatch import xp_of
from ..arrays.kernels.attention import attended, attended_slopes
from ..core.linear import cast, sum_axes, transpose
from ..core.record import array_of, record
from ..core.rules import joint_class
from ..core.tensor import Tensor
from . import elementwise as e
from .activations import safe_softmax
from .elementwise import choose
from .layers import dropout
from .linalg import matmul
from .rows import register, widened
from .with_numbers import times


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(query @ key.T * scale) @ value, for (..., L, E), (..., S, E) and (..., S, F)."""
    q, k, v, mask = array_of(query), array_of(key), array_of(value), array_of(attn_mask)
    scale = 1.0 / math.sqrt(q.shape[-1] or 1) if scale is None else scale
    if dropout_p == 0 and in_one(q, k, v, attn_mask):
        return attention(query, key, value, lower(q, k, mask) if is_causal else mask, scale)
    if is_causal:
        attn_mask = Tensor(lower(q, k, None))
    return composed(query, key, value, attn_mask, dropout_p, scale)


def lower(q, k, mask):
    """A mask by which a query looks at the keys up to its own place, of those at which it may look by another mask."""
    keep = xp_of(q).tri(q.shape[-2], k.shape[-2], dtype=bool)
    return keep if mask is None else keep & mask if mask.dtype == bool else choose(keep, mask, -math.inf)


def in_one(q, k, v, mask):
    """Tell whether PyTorch has a single operation for these."""
    if not (q.ndim == k.ndim == v.ndim == 4 and q.shape[-1] == k.shape[-1] == v.shape[-1]):
        return False
    if q.shape[:2] != k.shape[:2] or k.shape[:3] != v.shape[:3] or any(x.strides[-1] != x.itemsize for x in (q, k, v)):
        return False
    return mask is None or (not mask.requires_grad and mask.ndim in (2, 4))


# ---- in one operation


def attention(query, key, value, mask, scale):
    arrays = tuple(map(array_of, (query, key, value)))
    out, weights = attended(*map(widened, arrays), mask, scale)
    out = cast(out, arrays[0].dtype)
    return record(Attention, out, (query, key, value), (*arrays, out, mask, scale, weights))


def attention_rule(g, x, y, z, out, mask, scale, weights):
    """A pass that is recorded computes the softmax anew, as PyTorch's composition does."""
    dtype = array_of(g).dtype
    g, x, y, z, out = map(widened, (g, x, y, z, out))
    if not isinstance(x, Tensor):
        slopes = attended_slopes(x, y, z, g, out, weights, scale)
        return [lambda a=a: cast(a, dtype) for a in slopes]
    weights = safe_softmax(masked((x * scale) @ transpose(y, -1, -2), mask))
    slope = weights * (g @ transpose(z, -1, -2) - sum_axes(g * out, -1, True))
    return (
        lambda: cast(slope @ (y * scale), dtype),
        lambda: cast(transpose(slope, -1, -2) @ (x * scale), dtype),
        lambda: cast(transpose(weights, -1, -2) @ g, dtype),
    )


Attention = joint_class("ScaledDotProductFlashAttentionForCpuBackward0", 3, attention_rule)

# ---- as a composition


def composed(query, key, value, mask, dropout_p, scale):
    """The queries and the keys are scaled by the root of the scale each, as in PyTorch."""
    root, dtype = math.sqrt(abs(scale)), array_of(query).dtype
    q, k, v = (widened(a) for a in (query, key, value))
    scores = matmul(times(q, math.copysign(root, scale)), times(transpose(k, -1, -2), root))
    return cast(matmul(dropout(safe_softmax(masked(scores, mask)), dropout_p), v), dtype)


def masked(scores, mask):
    if mask is None:
        return scores
    if array_of(mask).dtype == bool:
        mask = Tensor(xp_of(array_of(mask)).where(array_of(mask), 0, -math.inf).astype(array_of(scores).dtype))
    return e.add(scores, mask)


register("scaled_dot_product_attention", "attention", scaled_dot_product_attention)
