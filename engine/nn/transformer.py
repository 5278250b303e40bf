"""The decoder of a transformer, and a transformer of an encoder and a decoder (Vaswani et al., 2017)."""

import copy

from . import functional as F
from . import init
from .attention import TransformerEncoder, TransformerEncoderLayer, TransformerLayer, says_causal, subsequent_mask
from .containers import ModuleList
from .layers import LayerNorm
from .module import Module


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
            x = layer(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                      memory_is_causal)  # fmt: skip
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
        memory = self.encoder(src, src_mask, src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                            tgt_is_causal, memory_is_causal)  # fmt: skip
