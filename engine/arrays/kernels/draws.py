"""Random numbers in the order in which an array lies in memory."""

import numpy as np

from .. import random
from ..devices import random_source
from ..dispatch import batches, device_names
from ..running import running


def drawn_like(x, dtype, draw, generator, *arguments):
    """Random numbers in the shape of an array, on its device; in host memory they are drawn in the order of x there."""
    function = getattr(random_source(x), draw)
    if type(x) not in device_names and not running.levels:
        return random.fill(np.empty_like(x, dtype), function, generator, *arguments)
    return function(generator, x.shape, dtype, *arguments)


def check_differs(x):
    """RuntimeError if a vmap wants other numbers for each sample, of an array that is the same for all."""
    if running.levels and running.levels[-1].randomness == "different" and type(x) not in batches:
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            "randomness. If this is necessary for your usage, please file an issue with functorch."
        )
