"""Checks of attention."""

from ...arrays import dtypes
from ...arrays.dtypes import c_name
from ...arrays.shapes import common_shape
from ...ops import attention
from .. import messages as m
from ..require import require


def name(x):
    return c_name(dtypes.of[x.dtype])


def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
    q, k, v = query.array, key.array, value.array
    if not (q.dtype is k.dtype is v.dtype in dtypes.differentiable and q.ndim > 1 < k.ndim and 1 < v.ndim):
        require(q.dtype == k.dtype == v.dtype, m.ATTENTION_DTYPES, name(q), name(k), name(v))
        require(min(q.ndim, k.ndim, v.ndim) >= 2, m.ATTENTION_DIMS, q.ndim, k.ndim, v.ndim)
        require(q.dtype in dtypes.differentiable, m.ATTENTION_FLOAT, q.dtype)
    mask = None if attn_mask is None else attn_mask.array
    if mask is not None and mask.dtype != bool:
        require(mask.dtype == q.dtype, m.ATTENTION_MASK, name(mask), name(q))
    if enable_gqa:
        require(q.shape[:-2] == k.shape[:-2] == v.shape[:-2], m.ATTENTION_GQA, error=NotImplementedError)
    if dropout_p:
        require(0.0 <= dropout_p <= 1.0, m.ATTENTION_DROPOUT, dropout_p)
    if mask is not None and dropout_p == 0 and attention.in_one(q, k, v, attn_mask):
        scores = (*q.shape[:3], k.shape[2])
        whole = common_shape(scores, mask.shape)
        require(whole == scores, m.DOES_NOT_BROADCAST, scores, whole)
    elif mask is not None:
        require(not is_causal, m.ATTENTION_CAUSAL)
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        attention.masked(query @ key.transpose(-1, -2), attn_mask) @ value  # these say what does not fit
