"""PyTorch's error messages for invalid graph operations, attached to those of ``core/errors.py``."""

import re

import numpy as np

from ..arrays.devices import typename_of
from ..core import errors
from ..core.graph import AccumulateGrad, mode
from ..core.tensor import Tensor, alive, unreachable
from ..core.views import ViewOfBase
from .node_names import edge

HINTS = [
    "enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
]  # the last one counts
view_that_is_gone = ViewOfBase((), ([],))


def short_name(node):
    """The name of a node as it stands in error messages: Mul for MulBackward0, Squeeze1 for SqueezeBackward1."""
    return re.sub(r"Backward(?:0|(\d*))$", r"\1", node.name())


def written_maker(x, writes, source):
    """(node, output number) of the tensor with a saved array: the one which the write gave it, if it is still there."""
    base = writes.base()
    bases = [] if base is None else alive(base, "aliases") or [base]
    held = [t for b in bases for t in (b, *alive(b, "views")) if t.array is x or (t is b and isinstance(x, np.generic))]
    if held:
        t = min(held, key=lambda t: (t.node is None) != (source is None))  # not the one that detach() made of it
        return t.grad_fn, t.output_nr
    if source is not None and any(b.array is not x and b.node is not None for b in bases):
        return view_that_is_gone, 0
    return edge(source)


def modified(x, writes, since, maker, source):
    """Name the array that was overwritten after ``since``, the node that made it, and both versions."""
    number = 0
    if maker is None:
        maker, number = written_maker(x, writes, source)
        if type(maker) is AccumulateGrad:
            maker = None
    late = sum(t < since for t in writes.times)
    kind = typename_of(x) if x.dtype != np.bool_ else "CPUBoolType"
    made_by = f", which is output {number} of {short_name(maker)}," if maker is not None else ""
    versions = f"is at version {writes.count}; expected version {writes.count - late} instead"
    return f": [{kind} {list(x.shape)}]{made_by} {versions}. Hint: {HINTS[-1]}"


MANY = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
UNCLEAR = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
REASONS = {"several": MANY, "dual": "It is a dual tensor: make it of a clone()."}
MODES = {  # how a view was created: the block, the mode, and how it is written to now
    "no_grad": ("no_grad", "no_grad mode", "with grad mode enabled"),
    "inference": ("inference_mode", "inference mode", "in normal mode"),
}


def forbidden_view(view, what):
    """Return PyTorch's message for a view that was created in a way that forbids in-place writes."""
    node, meta = view.__dict__["node"], view.creation_meta
    grad_fn, number = (None, 0) if type(node) is AccumulateGrad else edge(node)
    block, created, written = MODES.get(meta, MODES["no_grad"])
    why = UNCLEAR.format(block) if meta in MODES else REASONS.get(meta, CUSTOM)
    if grad_fn is None:
        return f"A view was created in {created} and {what} {written}. {why}"
    begin = f"Output {number} of {short_name(grad_fn)} is a view"
    if meta in MODES:
        return f"{begin} of a view which was created in {created} and {what} {written}. {why}"
    return f"{begin} and {what}. {why}"


class StaleView(Tensor):
    """A view that lost its part of the graph to an in-place write: its node is an error that says why."""

    requires_grad = True

    @property
    def grad_fn(self):
        raise RuntimeError(self.reason)

    is_leaf = grad_fn

    @property
    def node(self):
        return self.grad_fn if mode.enabled else unreachable()

    @node.setter
    def node(self, value):
        pass


StaleView.__name__ = "Tensor"


def lose_graph(view):
    if type(view) is not StaleView:
        view.reason = forbidden_view(view, "its base or another view of its base has been modified inplace")
        view.__class__ = StaleView


errors.modified_details.append(modified)
errors.forbidden_messages.append(forbidden_view)
errors.graph_lost.append(lose_graph)
