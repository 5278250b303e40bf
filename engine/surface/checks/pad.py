"""Checks of padding."""

from operator import index

from ...ops.checks import check_not_bool
from ...ops.pad import MODES
from .. import messages as m
from ..require import require


def constant_pad_nd(input, pad):
    cuts(input.array, tuple(map(index, pad)), m.PAD_ODD)


def cuts(x, pads, odd):
    n = len(pads)
    require(n % 2 == 0, odd, n)
    require(n <= 2 * x.ndim, m.PAD_LENGTH, n, x.ndim)
    if n and min(pads) < 0:
        for size, before, after in zip(x.shape[::-1], pads[::2], pads[1::2]):
            require(min(before, 0) + min(after, 0) + size >= 0, m.NARROW_NEGATIVE)


def pad(input, pad, mode, value):
    require(isinstance(pad, (tuple, list)), m.PAD_KIND, type(pad).__name__, error=TypeError)
    for i, p in enumerate(pad):
        if type(p) is not int:
            require(hasattr(p, "__index__"), m.PAD_ELEMENT, type(p).__name__, i, error=TypeError)
    x, pads = input.array, tuple(map(index, pad))
    if mode == "constant":
        return cuts(x, pads, m.PAD_ODD_MODE)
    n = len(pads) // 2
    require(len(pads) % 2 == 0, m.PAD_ODD_MODE)
    require(n <= x.ndim, m.PAD_LENGTH, len(pads), x.ndim)
    require(value is None or value == 0, m.PAD_VALUE, mode)
    require(mode in MODES, m.PAD_MODE, mode, error=NotImplementedError)
    fit = n in (1, 2, 3) and x.ndim in (n + 1, n + 2)
    require(fit, m.PAD_SUPPORTED, len(pads), x.ndim, error=NotImplementedError)
    if mode != "circular":
        check_not_bool(x, f"{'reflection' if mode == 'reflect' else 'replication'}_pad{n}d")
    for i in range(n):
        before, after, d, size = pads[2 * i], pads[2 * i + 1], x.ndim - 1 - i, x.shape[-1 - i]
        if mode == "reflect":
            require(max(before, after) < size, m.PAD_REFLECT, 4 + 2 * i, before, after, d, x.shape)
        if mode == "circular":
            require(max(before, after) <= size, m.PAD_CIRCULAR)
            require(before + after + size >= 0, m.PAD_EMPTY)
        require(before + after + size > 0, m.PAD_SMALL, "WHD"[i], size, before + after + size)
