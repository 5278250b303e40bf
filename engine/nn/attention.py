"""Attention with several heads, and the transformer that is made of it (Vaswani et al., 2017)."""

import copy
import math

from ..arrays import dtypes
from ..arrays.warn import warn
from ..core.graph import mode
from ..ops.creation import full, zeros, zeros_like
from ..ops.shape import cat
from . import functional as F
from . import init, messages
from .containers import ModuleList
from .layers import LayerNorm, Linear, add_parameters
from .module import Module
from .table import GELU, Dropout, ReLU


def additive(mask, name, other, other_name, dtype):
    """A mask to be added to scores: a boolean one gives -inf where it is True.  AssertionError for other dtypes."""
    if mask is None:
        return None
    if mask.dtype is not dtypes.bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype is not other.dtype:
        warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.")
    return mask if mask.is_floating_point() else zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


class NonDynamicallyQuantizableLinear(Linear):
    """Linear, under the name by which PyTorch shows the last layer of an attention."""


class MultiheadAttention(Module):
    """Attention of ``num_heads`` heads: each takes its share of the ``embed_dim`` features of queries, keys and values.

    ``query`` (target length, batch, embed_dim), ``key`` and ``value`` (source length, batch, kdim or vdim); the batch
    comes first if ``batch_first``, and may be missing.  Returns the outputs and, if ``need_weights``, the weights.
    """

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device=None, dtype=None):  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(messages.HEADS_NOT_POSITIVE.format(embed_dim, num_heads))
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        apart = not self._qkv_same_embed_dim
        shapes = {"in_proj_weight": None if apart else (3 * embed_dim, embed_dim)}
        for name, size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            shapes[f"{name}_proj_weight"] = (embed_dim, size) if apart else None
        shapes["in_proj_bias"] = 3 * embed_dim if bias else None
        factory = {"device": device, "dtype": dtype}
        add_parameters(self, factory, **shapes)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        if add_bias_kv:
            add_parameters(self, factory, bias_k=(1, 1, embed_dim), bias_v=(1, 1, embed_dim))
        else:
            self.bias_k = self.bias_v = None
        self._reset_parameters()

    def _reset_parameters(self):
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for p in (self.bias_k, self.bias_v):
            if p is not None:
                init.xavier_normal_(p)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):  # fmt: skip
        batched = check_shapes(query, key, value, key_padding_mask, attn_mask, self.num_heads)
        padding = additive(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
        if is_causal and attn_mask is None:
            raise RuntimeError(messages.IS_CAUSAL_WITHOUT_MASK)
        is_causal = is_causal and padding is None and not need_weights
        mask = None if is_causal else additive(attn_mask, "attn_mask", None, "", query.dtype)
        if not batched:
            query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        elif self.batch_first:  # a tensor that is given twice stays one
            turned = {id(x): x.transpose(1, 0) for x in {id(x): x for x in (query, key, value)}.values()}
            query, key, value = (turned[id(x)] for x in (query, key, value))
        q, k, v = self._projected(query, key, value)
        length, batch, _ = q.shape
        if mask is not None:
            mask = checked_mask(mask, (length, len(k)), batch * self.num_heads)
        if padding is not None and not batched:
            padding = padding.unsqueeze(0)
        if self.bias_k is not None:
            k, v = (cat([x, b.repeat(1, batch, 1)]) for x, b in ((k, self.bias_k), (v, self.bias_v)))
            mask, padding = one_more(mask), one_more(padding)
        q, k, v = (x.view(len(x), batch * self.num_heads, self.head_dim).transpose(0, 1) for x in (q, k, v))
        if self.add_zero_attn:
            k, v = (cat([x, zeros(len(x), 1, self.head_dim, dtype=x.dtype, device=x.device)], 1) for x in (k, v))
            mask, padding = one_more(mask), one_more(padding)
        if padding is not None:
            for i, n in enumerate((batch, k.shape[1])):
                if padding.shape[i] != n:
                    raise AssertionError(f"Expected key_padded_mask.shape[{i}] to be {n}, but got {padding.shape[i]}")
            size = (batch, 1, 1, k.shape[1])
            padding = padding.view(size).expand(-1, self.num_heads, -1, -1).reshape(batch * self.num_heads, 1, -1)
            mask = padding if mask is None else mask + padding
        attend = self._with_weights if need_weights else self._without_weights
        out, weights = attend(q, k, v, mask, batch, is_causal)
        out = self.out_proj(out.reshape(length * batch, self.embed_dim)).view(length, batch, self.embed_dim)
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return out.squeeze(1), weights if weights is None else weights.squeeze(0)
        return out.transpose(1, 0) if self.batch_first else out, weights

    def _projected(self, q, k, v):
        """Queries, keys and values as the heads see them: linear maps of what was given, in one for one tensor."""
        weight, bias, n = self.in_proj_weight, self.in_proj_bias, self.embed_dim
        if q.shape[-1] != n:
            raise AssertionError(f"was expecting embedding dimension of {n}, but got {q.shape[-1]}")
        if weight is None:
            if k.shape[:2] != v.shape[:2]:
                raise AssertionError(f"key's sequence and batch dims {k.shape[:2]} do not match value's {v.shape[:2]}")
            weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        elif k.shape != v.shape:
            raise AssertionError(f"key shape {k.shape} does not match value shape {v.shape}")
        elif k is v:
            if q is k:
                return parts(F.linear(q, weight, bias), 3)
            w_q, w_kv = weight.split([n, 2 * n])
            b_q, b_kv = (None, None) if bias is None else bias.split([n, 2 * n])
            return F.linear(q, w_q, b_q), *parts(F.linear(k, w_kv, b_kv), 2)
        else:
            weights = weight.chunk(3)
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        return tuple(F.linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases))

    def _with_weights(self, q, k, v, mask, batch, is_causal):
        """(output (length, batch * heads, head_dim), weights (batch, heads, length, source length))"""
        q, k = q * math.sqrt(1.0 / self.head_dim), k.transpose(-2, -1)
        weights = F.softmax(q.bmm(k) if mask is None else mask.baddbmm(q, k), dim=-1)
        if self.training and self.dropout > 0.0:
            weights = F.dropout(weights, self.dropout)
        out = weights.bmm(v).transpose(0, 1)
        return out, weights.view(batch, self.num_heads, *weights.shape[1:])

    def _without_weights(self, q, k, v, mask, batch, is_causal):
        if mask is not None:
            mask = mask.unsqueeze(0) if len(mask) == 1 else mask.view(batch, self.num_heads, -1, k.shape[1])
        q, k, v = (x.view(batch, self.num_heads, -1, self.head_dim) for x in (q, k, v))
        p = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, mask, p, is_causal)
        return out.permute(2, 0, 1, 3), None


def parts(x, n):
    """The n equal parts of the last dimension, each contiguous."""
    x = x.unflatten(-1, (n, -1)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return tuple(x[i] for i in range(n))


def one_more(mask):
    """A mask with one more key, which is not masked."""
    return None if mask is None else F.pad(mask, (0, 1))


def checked_mask(mask, size, heads):
    """A mask with a dimension for batch and heads.  RuntimeError if its shape does not fit."""
    full_size = size if mask.ndim == 2 else (heads, *size)
    if tuple(mask.shape) != full_size:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {full_size}.")
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def check_shapes(query, key, value, padding, mask, heads):
    """Tell whether there is a batch.  AssertionError in PyTorch's words for tensors that do not fit."""
    n = query.ndim
    if n not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    kind = f"For {'batched' if n == 3 else 'unbatched'} ({n}-D) `query`"
    if key.ndim != n or value.ndim != n:
        raise AssertionError(messages.KEY_AND_VALUE_DIMS.format(kind, n, key.ndim, value.ndim))
    if padding is not None and padding.ndim != n - 1:
        raise AssertionError(messages.PADDING_MASK_DIMS.format(kind, n - 1, padding.ndim))
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(messages.MASK_DIMS.format(kind, mask.ndim))
    if mask is not None and n == 2 and mask.ndim == 3 and tuple(mask.shape) != (heads, len(query), len(key)):
        raise AssertionError(f"Expected `attn_mask` shape to be {(heads, len(query), len(key))} but got {mask.shape}")
    return n == 3


def named_activation(activation):
    """A function, or the one of that name.  RuntimeError unless it is "relu" or "gelu"."""
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise RuntimeError(f"activation should be relu/gelu, not {activation}")
        activation = getattr(F, activation)
    return activation


def subsequent_mask(sz, device=None, dtype=None):
    """(sz, sz): -inf above the diagonal, 0 elsewhere, so that no position sees a later one."""
    return full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)


def says_causal(mask, is_causal):
    """Return ``is_causal`` if it is given, else whether the mask hides exactly the later positions."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    n = mask.shape[-1]
    return tuple(mask.shape) == (n, n) and bool((mask == subsequent_mask(n, mask.device, mask.dtype)).all())


class TransformerLayer(Module):
    """Blocks of attention and two linear layers, each with dropout, a residual and a layer norm."""

    def __init__(self, attentions, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                 norm_first, **factory):  # fmt: skip
        super().__init__()
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **factory))
        self.linear1 = Linear(d_model, dim_feedforward, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **factory)
        self.norm_first = norm_first
        blocks = range(1, len(attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, **factory))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = named_activation(activation)

    def _sa_block(self, x, mask, padding, is_causal):
        """Self-attention."""
        options = {"attn_mask": mask, "key_padding_mask": padding, "is_causal": is_causal, "need_weights": False}
        return self.dropout1(self.self_attn(x, x, x, **options)[0])


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and two linear layers, each with dropout, a residual and a layer norm (Vaswani et al., 2017).

    ``norm_first``: the norms stand before the blocks, not behind the sums.
    """

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):  # fmt: skip
        super().__init__(("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                         batch_first, norm_first, bias=bias, device=device, dtype=dtype)  # fmt: skip
        self.activation_relu_or_gelu = (
            1 if self.activation is F.relu or isinstance(self.activation, ReLU)
            else 2 if self.activation is F.gelu or isinstance(self.activation, GELU) else 0
        )  # fmt: skip

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        padding = additive(src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype)
        mask = additive(src_mask, "src_mask", None, "", src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x):
        """The feed-forward layers."""
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """``num_layers`` copies of a layer, one after another, and a norm behind the last."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        reason = why_not_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not reason
        if enable_nested_tensor and reason:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}")

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        padding = additive(src_key_padding_mask, "src_key_padding_mask", mask, "mask", src.dtype)
        mask = additive(mask, "mask", None, "", src.dtype)
        is_causal, x = says_causal(mask, is_causal), src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        if self._leaves_out_padding(src, mask, padding):
            x = x.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        return x if self.norm is None else self.norm(x)

    def _leaves_out_padding(self, src, mask, padding):
        """Tell whether PyTorch would compute with nested tensors: then outputs at padded places are zeros."""
        layer = self.layers[0]
        if not self.use_nested_tensor or layer.training or src.ndim != 3 or padding is None or mask is not None:
            return False
        watched = mode.enabled and (src.requires_grad or any(p.requires_grad for p in layer.parameters()))
        at_end = (padding[:, 1:] != 0) >= (padding[:, :-1] != 0)
        return not watched and (not self.mask_check or bool(at_end.all()))


BETTER = "(use batch_first for better inference performance)"


def why_not_nested(layer):
    """PyTorch's reason for not computing with nested tensors; "" if it does."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    return next((f"encoder_layer.{reason}" for reason, holds in obstacles(layer) if holds), "")


def obstacles(layer):
    """(reason, whether it holds) of the reasons, in PyTorch's order: behind one that holds it looks at nothing."""
    yield "norm_first was True", layer.norm_first
    attention = layer.self_attn
    yield f"self_attn.batch_first was not True{BETTER}", not attention.batch_first
    yield "self_attn._qkv_same_embed_dim was not True", not attention._qkv_same_embed_dim
    yield "self_attn was passed bias=False", attention.in_proj_bias is None
    yield "activation_relu_or_gelu was not True", not layer.activation_relu_or_gelu
    yield "norm1.eps was not equal to encoder_layer.norm2.eps", layer.norm1.eps != layer.norm2.eps
    yield "self_attn.num_heads is odd", attention.num_heads % 2 == 1


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to ``memory``, and two linear layers, each with dropout, a residual and a layer norm.

    ``norm_first``: the norms stand before the blocks, not behind the sums.
    """

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):  # fmt: skip
        super().__init__(("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation,
                         layer_norm_eps, batch_first, norm_first, bias=bias, device=device, dtype=dtype)  # fmt: skip

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):  # fmt: skip
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory_mask, memory_key_padding_mask, memory_is_causal
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(self, x, memory, mask, padding, is_causal):
        """Attention to what the encoder made of its input."""
        options = {"attn_mask": mask, "key_padding_mask": padding, "is_causal": is_causal, "need_weights": False}
        return self.dropout2(self.multihead_attn(x, memory, memory, **options)[0])

    def _ff_block(self, x):
        """The feed-forward layers."""
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoder(Module):
    """``num_layers`` copies of a layer, one after another, and a norm behind the last."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):  # fmt: skip
        tgt_is_causal, x = says_causal(tgt_mask, tgt_is_causal), tgt
        for layer in self.layers:
            x = layer(x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                      memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                      memory_is_causal=memory_is_causal)  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of ``src`` and a decoder of ``tgt``: (length, batch, d_model), the batch first if ``batch_first``."""

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):  # fmt: skip
        super().__init__()
        factory = {"bias": bias, "device": device, "dtype": dtype}
        options = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first
        if custom_encoder is None:
            layer, norm = TransformerEncoderLayer(*options, **factory), LayerNorm(d_model, layer_norm_eps, **factory)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer, norm = TransformerDecoderLayer(*options, **factory), LayerNorm(d_model, layer_norm_eps, **factory)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self):
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    generate_square_subsequent_mask = staticmethod(subsequent_mask)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
                memory_is_causal=False):  # fmt: skip
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                            tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)  # fmt: skip
