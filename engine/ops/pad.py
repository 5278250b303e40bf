"""Padding: more elements at the ends of the last dimensions, or fewer."""

from operator import index as integer

from ..arrays.dispatch import blank, xp_of
from ..core.graph import node_class
from ..core.linear import in_order, place
from ..core.record import array_of, record, register
from ..core.record import view as define
from .checks import number
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


constant_pad = define(
    "constant_pad_nd",
    constant_padded,
    lambda g, _, pads, __: constant_pad(g, tuple(-p for p in pads), 0),
    linear=lambda x, pads, _: constant_pad(x, pads, 0),
)


def constant_pad_nd(input, pad, value=0):
    """The input with ``pad`` (before the last dimension, after it, before the last but one, ...) of ``value``."""
    pads, x = tuple(map(integer, pad)), array_of(input)
    if len(pads) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pads)}")
    check_pad_length(pads, x)
    for i in range(0, len(pads), 2):
        if min(pads[i], 0) + min(pads[i + 1], 0) + x.shape[-1 - i // 2] < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    return constant_pad(input, pads, value)


def check_pad_length(pads, x):
    if len(pads) > 2 * x.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pads)} and input of dimension {x.ndim}"
        )


# what stands at position i, which may be outside, of a line of n elements; low <= i < high is what is not cut off
MODES = {
    "reflect": lambda xp, i, n, low, high: n - 1 - abs(n - 1 - abs(i)),
    "replicate": lambda xp, i, n, low, high: xp.clip(i, 0, n - 1),
    "circular": lambda xp, i, n, low, high: low + (i - low) % (high - low),
}
NAMES = {"reflect": "ReflectionPad{}DBackward0", "replicate": "ReplicationPad{}DBackward0", "circular": "CopySlices"}
PADS = {
    (mode, n): node_class(name.format(n), lambda g, shape, key: place(g, shape, key))
    for mode, name in NAMES.items()
    for n in (1, 2, 3)
}


def pad(input, pad, mode="constant", value=None):
    """The input with ``pad`` (before the last dimension, after it, before the last but one, ...); negative: cut off.

    ``mode``: "constant" is filled with ``value`` (0), "reflect" mirrors without the edge, "replicate" repeats the edge,
    "circular" goes on from the other end; those three pad the last one to three dimensions of (N, C, ...).
    """
    if not isinstance(pad, (tuple, list)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    for i, p in enumerate(pad):
        if not hasattr(p, "__index__"):
            raise TypeError(
                "pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                f"{type(p).__name__} at pos {i}"
            )
    pads, x = tuple(map(integer, pad)), array_of(input)
    if len(pads) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    check_pad_length(pads, x)
    if mode == "constant":
        return constant_pad_nd(input, pads, 0 if value is None else number(value, "pad", "value", 4, "float"))
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(pads) // 2
    if mode not in MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if n not in (1, 2, 3) or x.ndim not in (n + 1, n + 2):
        raise NotImplementedError(
            f"Padding size {len(pads)} is not supported for {x.ndim}D input tensor.\n" + SUPPORTED
        )
    check_pads(x, pads, mode)
    xp = xp_of(x)
    key = tuple(
        MODES[mode](xp, xp.arange(-before, size + after), size, max(-before, 0), size + min(after, 0))
        for before, after, size in zip(pads[-2::-2], pads[::-2], x.shape[-n:])
    )
    key = (..., *(k.reshape(-1, *(1,) * (n - 1 - i)) for i, k in enumerate(key)))
    return record(PADS[mode, n], in_order(x[key]), (input,), (x.shape, key))


SUPPORTED = """Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""


def check_pads(x, pads, mode):
    """PyTorch's errors for padding that a line is too short for."""
    if mode != "circular" and x.dtype == bool:
        kernel = "reflection" if mode == "reflect" else "replication"
        raise NotImplementedError(f"\"{kernel}_pad{len(pads) // 2}d\" not implemented for 'Bool'")
    for i in range(0, len(pads), 2):
        dim = x.ndim - 1 - i // 2
        before, after, size = pads[i], pads[i + 1], x.shape[dim]
        if mode == "reflect" and max(before, after) >= size:
            raise RuntimeError(
                f"Argument #{4 + i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {dim} of input {list(x.shape)}"
            )
        if mode == "circular" and max(before, after) > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if before + after + size < 0 and mode == "circular":
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if before + after + size < 1:
            raise RuntimeError(
                f"input ({'WHD'[i // 2]}: {size}) is too small. Calculated output {'WHD'[i // 2]}: "
                f"{before + after + size}"
            )


register("pad", "shape", pad)
