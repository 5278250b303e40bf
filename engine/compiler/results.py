"""What a call takes and gives back: results that are made anew, views of inputs, the lists and dicts around them."""

from collections import deque
from contextlib import nullcontext

import numpy as np

from ..autograd.modes import no_grad
from ..core.tensor import Tensor
from .steps import GraphBreak


def containers(part):
    """The lists, deques and dicts in an argument or result."""
    if isinstance(part, dict) and any(isinstance(key, Tensor) for key in part):
        raise GraphBreak("it takes or returns a dict whose keys are tensors", " ")
    if isinstance(part, (list, deque, dict)):
        yield part
    if isinstance(part, (tuple, list, deque, dict)):
        for below in part.values() if isinstance(part, dict) else part:
            yield from containers(below)


def numbers_to_memory(leaves):
    """Give all tensors that are NumPy numbers memory, which can be viewed and written: what they are now."""
    numbers = [t for t in leaves if isinstance(t, Tensor) and isinstance(t.array, np.generic)]
    return [t.shared() for t in numbers]


def all_leaves(outs, tensors, new):
    """The leaves of the result."""
    found: list = []
    for out in outs:
        found.append(found[out[1]] if out[0] == "same" else result(out, tensors, new))
    return found


def result(out, tensors, new):
    """A leaf of the result: see ``Entry.results``."""
    kind, what, *how = out
    if kind == "value":
        return what
    if kind in ("new", "input"):
        return (new if kind == "new" else tensors)[what]
    if kind == "grad":
        return tensors[what]._grad
    base = result(what, tensors, new)
    if kind == "detached":
        return base.detach()
    views, meta = how
    with no_grad() if meta == "no_grad" else nullcontext():
        for view, arguments in views:
            base = view(base, *arguments)
    if meta is not None:
        base.creation_meta = meta
    return base


def viewed(view, tape):
    """(an input that a view was made from, or else its base; how to get from there to the view)."""
    source, done = view._base, 0
    for tensor, _ in tape.inputs.values():
        n = len(tensor.view_ops)
        if tensor._base is view._base and n > done and all(a is b for a, b in zip(tensor.view_ops, view.view_ops)):
            source, done = tensor, n
    return source, view.view_ops[done:]
