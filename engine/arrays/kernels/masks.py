"""What a mask leaves of an array."""

import numpy as np

from ..dispatch import either, number_types, words, writers


def kept(x, mask):
    """``x`` where ``mask`` holds, else 0, where there was an infinity or nan too: its bits, multiplied by 1 or 0."""
    if type(x) is type(mask) is np.ndarray:
        bits = mask.astype(words[x.itemsize])
        bits *= x.view(bits.dtype)
        return bits.view(x.dtype)
    if type(mask) is np.bool_ and type(x) in number_types:
        return x if mask else x.dtype.type(0)
    write = writers.get(type(x))
    return either.call(mask, x, 0.0) if write is None else write("kept", kept, x, mask)
