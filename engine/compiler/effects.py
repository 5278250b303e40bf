"""What a compiled call does besides returning: gradients that it sets, and how that is undone where it must be."""

import numpy as np

from ..graph import hooked_leaves
from ..tensor import Tensor


def set_grads(tensors, places, arrays):
    """Set the ``.grad`` of some tensors; no two share memory."""
    seen = set()
    for place, g in zip(places, arrays):
        if g is None:
            tensors[place]._grad = None
            continue
        if type(g) is np.ndarray and id(g) in seen:
            g = g.copy()
        seen.add(id(g))
        tensors[place]._grad = Tensor(g)


def memory_of(x):
    """What owns the memory of an array, in the end."""
    while True:
        below = x.base if isinstance(x, np.ndarray) else x.obj if isinstance(x, memoryview) else None
        if below is None:
            return id(x)
        x = below


def separate(written, others):
    """Whether no array that is written shares memory with another input."""
    found = [memory_of(x) for x in written]
    known = set(found)
    if len(known) == len(found) and known.isdisjoint(map(memory_of, others)):
        return True
    every = [*written, *others]
    return not any(np.may_share_memory(x, y) for i, x in enumerate(written) for y in every[i + 1 :])


def without_hooks(tensors):
    """Whether none of these leaves has a hook."""
    return not hooked_leaves or not any(t.node in hooked_leaves for t in tensors)


class Undo:
    """What a call may have to take back: it is kept before the call."""

    def __init__(self, arrays, generators):
        self.arrays = [(x, x.copy("K")) for x in arrays]
        self.marks = [(g, g.mark()) for g in generators]

    def __call__(self):
        for x, before in self.arrays:
            x[...] = before
        for generator, mark in self.marks:
            generator.go_back(mark)
