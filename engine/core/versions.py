"""In-place versions: when memory was written, and the error for a saved array that was overwritten since.

While nothing is written, the backward pass pays one comparison a node.
"""

from collections import OrderedDict, deque
from functools import partial
from weakref import ref

import numpy as np

from ..arrays.dispatch import scalar_types
from ..arrays.memory import overwritten_array, storage
from . import errors
from .graph import OUTPUT, clock

written: dict = {}  # id(array that owns memory) -> Writes
# id(NumPy scalar) -> (scalar, Writes): scalars have no weak references, so the newest few thousand are kept
overwritten: OrderedDict = OrderedDict()
last_write = 0  # the time of the latest write to any memory


class Writes:
    """The in-place writes to one piece of memory: how many, when the latest, and the tensor that has the memory."""

    __slots__ = ("count", "times", "base", "owners")

    def __init__(self):
        self.count, self.times, self.base, self.owners = 0, deque((1,), maxlen=256), lambda: None, ()

    def of(self, x):
        """Count writes for an owner of memory too, or for a scalar: a 0-d result takes both forms in its life."""
        if isinstance(x, np.generic):
            if len(overwritten) > 4096:
                overwritten.popitem(last=False)  # in one step: threads share the record
            overwritten[id(x)] = x, self
        else:
            key = id(x)
            written[key] = self
            living = [r for r in self.owners if r() is not None]  # all of them: each calls back
            self.owners = (*living, ref(x, partial(written.pop, key)))
        return self


def writes_to(x):
    """The ``Writes`` to the memory of an array or scalar; None if there were none."""
    x = storage(x)
    return overwritten.get(id(x), (x, None))[1] if isinstance(x, np.generic) else written.get(id(x))


def becomes(scalar, x):
    """Carry a scalar's write history over to its array; skip the shared bool singletons."""
    if not isinstance(scalar, np.bool_):
        (writes_to(scalar) or Writes().of(scalar)).of(x)


def replace(tensor, x):
    """Give a tensor other memory; tensors that share its count of writes go on sharing it."""
    old, new = storage(tensor.array), storage(x)
    (writes_to(old) or Writes().of(old)).of(new)
    tensor.array = x


def wrote(tensor):
    """Note that the memory of a tensor was overwritten."""
    global last_write
    writes = writes_to(tensor.array) or Writes().of(storage(tensor.array))
    writes.count += 1
    last_write = next(clock)
    writes.times.append(last_write)
    writes.base = ref(tensor if tensor._base is None else tensor._base)


def leave(tensor):
    """Take a tensor from the node that made it: what has saved it as an input can no longer say where it came from."""
    global last_write
    tensor.node.detached, tensor.node = True, None
    last_write = next(clock)  # nodes look at what they have saved


def version(tensor):
    """Return how often the memory of a tensor was written in place."""
    writes = writes_to(tensor.array)
    return 0 if writes is None else writes.count


def write(tensor, value, add=False):
    """Overwrite the memory of a tensor (or add to it), and note it; the shared True and False are replaced first."""
    x = tensor.shared() if isinstance(tensor.array, np.bool_) else tensor.array
    new = overwritten_array(x, value, add)
    if new is not x:
        writes = writes_to(x) or Writes().of(x)
        tensor.array = new
        writes.of(new)
    wrote(tensor)


def check_unmodified(node, which=slice(None)):
    """RuntimeError if an array that the node saved (one of those in a slice) was written to since then."""
    if not node.checks_versions:
        return
    for s, k in list(zip(node.saved[which], node.saved_from[which]))[::-1]:  # PyTorch looks at other before self
        if k is not None and s is not None:
            try:
                check_value(node, s, k)
            except RuntimeError:
                if not all(is_idle(node, i) for i, other in enumerate(node.saved) if other is s):
                    raise


def check_value(node, s, k):
    """Do the same for one saved value, which is input k, or what else ``saved_from`` says."""
    source = node.parents[k] if k >= 0 else None
    if source is not None and source.detached:
        raise RuntimeError(errors.DETACHED)
    if type(s) not in scalar_types:
        check_saved(s, node.time, node if k == OUTPUT else None, source)


def is_idle(node, i):
    """Tell whether the one rule that needs a saved array is that of an input which never gets a gradient."""
    users = next((users for k, users in getattr(node, "needed_by", ()) if k == i), ())
    return len(users) == 1 and not getattr(node.parents[users[0]], "receives", True)


def check_saved(x, since, maker=None, source=None):
    """RuntimeError if an array was written to after it was saved.

    ``maker``: the node whose output it is; ``source``: that of the input which it is.
    """
    writes = writes_to(x)
    if writes is not None and writes.times[-1] < since:
        raise errors.modified(x, writes, since, maker, source)
