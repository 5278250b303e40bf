"""Padding: more elements at the ends of the last dimensions, or fewer."""

from operator import index as integer

from ..arrays.batches import blank
from ..arrays.dispatch import xp_of
from ..arrays.kernels.views import contiguous_array
from ..core.graph import node_class
from ..core.record import array_of, record
from .elementwise import level
from .rows import define, place, register
from .writes import fits


def constant_padded(x, pads, value):
    """x with ``pads`` (before, after) added to its last dimensions, the last one first; negative ones cut off."""
    before, after = ((0,) * (x.ndim - len(p)) + p[::-1] for p in (pads[::2], pads[1::2]))
    out = blank(tuple(n + a + b for n, a, b in zip(x.shape, before, after)), x)
    if value:
        out.fill(fits(float(value), out.dtype))
    inside = tuple(slice(max(p, 0), m - max(q, 0)) for p, q, m in zip(before, after, out.shape))
    out[inside] = x[tuple(slice(max(-p, 0), n - max(-q, 0)) for p, q, n in zip(before, after, x.shape))]
    return out


constant_pad = define("constant_pad_nd", constant_padded,
                      lambda g, _, pads, __: constant_pad(g, tuple(-p for p in pads), 0),
                      linear=lambda x, pads, _: constant_pad(x, pads, 0))  # fmt: skip


def constant_pad_nd(input, pad, value=0):
    """The input with ``pad`` (before the last dimension, after it, before the last but one, ...) of ``value``."""
    return constant_pad(input, tuple(map(integer, pad)), value)


# what stands at position i, which may be outside, of a line of n elements; low <= i < high is what is not cut off
MODES = {
    "reflect": lambda xp, i, n, low, high: n - 1 - abs(n - 1 - abs(i)),
    "replicate": lambda xp, i, n, low, high: xp.clip(i, 0, n - 1),
    "circular": lambda xp, i, n, low, high: low + (i - low) % (high - low),
}
NAMES = {"reflect": "ReflectionPad{}DBackward0", "replicate": "ReplicationPad{}DBackward0"}
PADS = {
    (mode, n): node_class(name.format(n), lambda g, x, key: level(x, place(g, array_of(x).shape, key)))
    for mode, name in NAMES.items()
    for n in (1, 2, 3)
}
Circular = node_class("CopySlices", lambda g, shape, key: place(g, shape, key))


def pad(input, pad, mode="constant", value=None):
    """The input with ``pad`` (before the last dimension, after it, before the last but one, ...); negative: cut off."""
    pads, x = tuple(map(integer, pad)), array_of(input)
    if mode == "constant":
        return constant_pad(input, pads, 0 if value is None else value)
    n, xp = len(pads) // 2, xp_of(x)
    key = tuple(
        MODES[mode](xp, xp.arange(-before, size + after), size, max(-before, 0), size + min(after, 0))
        for before, after, size in zip(pads[-2::-2], pads[::-2], x.shape[-n:])
    )
    key = (..., *(k.reshape(-1, *(1,) * (n - 1 - i)) for i, k in enumerate(key)))
    out = contiguous_array(x[key])
    if mode == "circular":
        return record(Circular, out, (input,), (x.shape, key))
    return record(PADS[mode, n], out, (input,), (x, key))


register("pad", "shape", pad)
