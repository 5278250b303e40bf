"""In-place writes: when memory was written, and the error for a saved array that was overwritten.

While nothing is written, the backward pass pays one comparison a node.
"""

import re
from collections import OrderedDict, deque
from weakref import ref

import numpy as np

from ..arrays.dispatch import batches, modules, scalar_types
from ..arrays.memory import storage
from . import graph
from .graph import OUTPUT, AccumulateGrad, clock, edge

written: dict = {}  # id(array that owns memory) -> Writes
# id(NumPy scalar) -> (scalar, Writes): scalars have no weak references, so the newest few thousand are kept
overwritten: OrderedDict = OrderedDict()
last_write = 0
view_node = None  # what makes a view after its base was written; set by inplace.py


class Writes:
    """The in-place writes to one piece of memory: how many, when the latest, and the tensor that has the memory."""

    __slots__ = ("count", "times", "base", "owner")

    def __init__(self):
        self.count, self.times, self.base, self.owner = 0, deque((1,), maxlen=256), lambda: None, None

    def of(self, x):
        """Stand for the memory of an owner, or of a scalar: a 0-d result takes both forms in the course of its life."""
        if isinstance(x, np.generic):
            if len(overwritten) > 4096:
                overwritten.popitem(last=False)  # in one step: threads share the record
            overwritten[id(x)] = x, self
        else:
            key = id(x)
            written[key] = self
            self.owner = ref(x, lambda _: written.pop(key, None)), self.owner  # all of them: each calls back
        return self


def writes_to(x):
    """The ``Writes`` to the memory of an array or scalar; None if there were none."""
    x = storage(x)
    return overwritten.get(id(x), (x, None))[1] if isinstance(x, np.generic) else written.get(id(x))


def wrote(tensor):
    """Note that the memory of a tensor was overwritten."""
    global last_write
    writes = writes_to(tensor.array) or Writes().of(storage(tensor.array))
    writes.count += 1
    last_write = next(clock)
    writes.times.append(last_write)
    writes.base = ref(tensor if tensor._base is None else tensor._base)


def version(tensor):
    """How often the memory of a tensor was written in place."""
    writes = writes_to(tensor.array)
    return 0 if writes is None else writes.count


def write(tensor, value, add=False):
    """Overwrite the memory of a tensor, and note it."""
    x = tensor.shared() if isinstance(tensor.array, np.bool_) else tensor.array  # True and False are everybody's
    if isinstance(x, np.generic):
        writes = writes_to(x) or Writes().of(x)
        if not isinstance(value, x.dtype.type):
            value = value.astype(x.dtype) if type(value) in batches else x.dtype.type(value)
        tensor.array = value
        writes.of(tensor.array)
    elif type(x) in batches and modules[type(x)].is_number(x):
        writes = writes_to(x) or Writes().of(x)
        tensor.array = (x + value if add else value).astype(x.dtype)
        writes.of(tensor.array)
    elif add:
        x += value
    else:
        x[...] = value
    wrote(tensor)


def check_unmodified(node, which=slice(None)):
    """Raise PyTorch's error if an array that the node saved (one of those in a slice) was written to since then."""
    if not node.checks_versions:
        return
    for s, k in list(zip(node.saved[which], node.saved_from[which]))[::-1]:  # PyTorch looks at other before self
        if k is not None and s is not None and type(s) not in scalar_types:
            check_saved(s, node.time, node if k == OUTPUT else None, node.parents[k] if k >= 0 else None)


def check_saved(x, since, maker=None, source=None):
    """Raise PyTorch's error if an array was written to after it was saved.

    ``maker``: the node whose output it is; ``source``: that of the input which it is.
    """
    writes = writes_to(x)
    if writes is not None and writes.times[-1] < since:
        raise modified(x, writes, since, maker, source)


def short_name(node):
    """The name of a node as it stands in error messages: Mul for MulBackward0, Squeeze1 for SqueezeBackward1."""
    return re.sub(r"Backward(?:0|(\d*))$", r"\1", node.name())


def alive(tensor, kind):
    """The tensors that one knows: its "views", or those "aliases" its memory by ``detach()``."""
    return [t for t in (r() for r in tensor.__dict__.get(kind, ())) if t is not None]


def written_maker(x, writes, source):
    """(node, output number) of the tensor with a saved array: the one which the write gave it, if it is still there."""
    base = writes.base()
    bases = [] if base is None else alive(base, "aliases") or [base]
    held = [t for b in bases for t in (b, *alive(b, "views")) if t.array is x or (t is b and isinstance(x, np.generic))]
    if held:
        t = min(held, key=lambda t: (t.node is None) != (source is None))  # not the one that detach() made of it
        return t.grad_fn, t.output_nr
    if source is not None and any(b.array is not x and b.node is not None for b in bases):
        return view_node, 0  # a view that is gone
    return edge(source)


def modified(x, writes, since, maker, source):
    """The error for a saved array that was overwritten after ``since``."""
    number = 0
    if maker is None:
        maker, number = written_maker(x, writes, source)
        if type(maker) is AccumulateGrad:
            maker = None
    late = sum(t < since for t in writes.times)
    kind = graph.Tensor.typename(x) if x.dtype != np.bool_ else "CPUBoolType"
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: [{kind} "
        f"{list(x.shape)}]" + (f", which is output {number} of {short_name(maker)}," if maker is not None else "")
        + f" is at version {writes.count}; expected version {writes.count - late} instead. Hint: "
        + ("the backtrace further above shows the operation that failed to compute its gradient. The variable in "
           "question was changed in there or anywhere later. Good luck!" if graph.anomaly else
           "enable anomaly detection to find the operation that failed to compute its gradient, with "
           "torch.autograd.set_detect_anomaly(True, check_nan=False).")
    )  # fmt: skip
