"""What a compiled call does besides returning: gradients that it sets, and how that is undone where it must be."""

from weakref import ref

import numpy as np

from ..arrays import dispatch, memory
from ..autograd.hooks import hooked_leaves
from ..core.tensor import Tensor


def set_grads(tensors, places, arrays):
    """Set the ``.grad`` of some tensors; no two share memory."""
    seen = set()
    for place, g in zip(places, arrays):
        if g is None:
            tensors[place]._grad = None
            continue
        if not isinstance(g, np.generic) and id(g) in seen:
            g = g.copy()
        seen.add(id(g))
        tensors[place]._grad = Tensor(g)


def memory_of(x):
    """What owns the memory of an array, in the end."""
    if type(x) in dispatch.device_names:
        return id(memory.storage(x))
    while True:
        below = x.base if isinstance(x, np.ndarray) else x.obj if isinstance(x, memoryview) else None
        if below is None:
            return id(x)
        x = below


def overlap(x, y):
    """Whether two arrays may share memory: what they span on one kind of device has a part in common."""
    if not {type(x), type(y)} & dispatch.device_names.keys():
        return np.may_share_memory(x, y)
    if type(x) is not type(y) or not x.size or not y.size:
        return False
    (a, b), (c, d) = span(x), span(y)
    return a < d and c < b


def span(x):
    """(where the first byte of an array lies, where its last one ends)."""
    steps = [(n - 1) * s for n, s in zip(x.shape, x.strides)]
    start = memory.address(x)
    return start + sum(s for s in steps if s < 0), start + sum(s for s in steps if s > 0) + x.itemsize


def separate(written, others):
    """Whether no array that is written shares memory with another input."""
    found = [memory_of(x) for x in written]
    known = set(found)
    if len(known) == len(found) and known.isdisjoint(map(memory_of, others)):
        return True
    every = [*written, *others]
    return not any(overlap(x, y) for i, x in enumerate(written) for y in every[i + 1 :])


def without_hooks(tensors):
    """Whether none of these leaves has a hook."""
    return not hooked_leaves or not any(t.node is not None and ref(t.node) in hooked_leaves for t in tensors)


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
