"""``backward`` and ``grad`` as programs call them; ``grad`` maps over cotangents, and carries tangents on."""

import numpy as np

from ..arrays.quiet import be_quiet, hush, quiet, state
from ..arrays.running import switched
from ..arrays.warn import warn
from ..core import backward as core
from ..core import errors
from ..core.graph import extend, mode
from ..core.tensor import Tensor
from ..surface.edges import place, with_tensors
from ..surface.gradients import differentiated, plain_grad, roots
from ..transforms import FOR_TANGENTS
from ..transforms.messages import NOT_IN_TRANSFORMS
from . import messages
from .hooks import accumulate


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of ``tensors``, weighted by ``grad_tensors``, to the leaves (or to ``inputs`` alone)."""
    if mode.transforms:
        raise RuntimeError(NOT_IN_TRANSFORMS["backward"])
    be_quiet()
    if grad_variables is not None:
        warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(messages.GRAD_VARIABLES)
    grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    if not isinstance(tensors, Tensor):
        tensors = with_tensors(tensors, grad_tensors)
    if inputs is None:
        return recorded_or_not(tensors, grad_tensors, retain_graph, create_graph)
    inputs = differentiated(inputs, "backward")
    cotangents = roots(tensors, grad_tensors, create_graph)
    for i in inputs:
        if isinstance(i, Tensor):
            i.retain_grad()
    keep = create_graph if retain_graph is None else retain_graph
    try:
        wanted = {place(i)[0] for i in inputs}
        found = core.backward_pass(cotangents, keep, bool(create_graph), wanted, through=True)
        with switched(mode, enabled=bool(create_graph)):
            for node, g in found.items():
                if not node.parents:
                    accumulate(node, g, hooks=())
    finally:
        if create_graph:
            warn_of_cycle()


def recorded_or_not(tensors, gradients, retain_graph, create_graph):
    """``core.backward``, with PyTorch's warning where the pass is recorded."""
    cotangents = roots(tensors, gradients, create_graph)
    try:
        core.backward_pass(cotangents, create_graph if retain_graph is None else retain_graph, bool(create_graph))
    finally:
        if create_graph:
            warn_of_cycle()


said: set = set()  # warnings that a program gets once


def warn_of_cycle():
    """Say, once, that a ``.grad`` with a graph may hold the leaf that holds it."""
    if messages.CYCLE not in said:
        said.add(messages.CYCLE)
        warn(messages.CYCLE, UserWarning)


def tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Add d(self)/d(leaf), contracted with ``gradient`` (1 for a scalar), to ``.grad`` of every leaf."""
    if state() not in quiet:
        hush()
    if inputs is not None or mode.transforms:
        backward(self, gradient, retain_graph, create_graph, None, inputs)
    elif gradient is None and not create_graph and isinstance(self.array, np.floating) and self.node is not None:
        if not self.node.requires_grad:
            raise RuntimeError(errors.NO_NODE.format(0))
        core.backward_pass({self.node: type(self.array)(1)}, retain_graph)  # without asking for what is known: -20 %
    else:
        recorded_or_not(self, gradient, retain_graph, create_graph)


tensor_backward.__name__ = tensor_backward.__qualname__ = "backward"
extend(Tensor, backward=tensor_backward)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):  # fmt: skip
    """The gradients of ``outputs`` with respect to ``inputs``, as a tuple; nothing is added to any ``.grad``."""
    be_quiet()
    if type(inputs) is dict:
        found = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
                     allow_unused, is_grads_batched, materialize_grads)  # fmt: skip
        return dict(zip(inputs, found, strict=True))
    if not isinstance(outputs, Tensor):
        outputs = with_tensors(outputs, grad_outputs)
    if not only_inputs:
        warn(messages.ONLY_INPUTS, FutureWarning)
    if mode.passes and not create_graph and (carry_tangents(outputs) or carry_tangents(grad_outputs)):
        retain_graph, create_graph = bool(retain_graph), FOR_TANGENTS
    else:
        create_graph = bool(create_graph)
    options = retain_graph, create_graph, allow_unused, materialize_grads
    if not is_grads_batched or grad_outputs is None:
        found = plain_grad(outputs, inputs, grad_outputs, *options)
    else:
        from ..transforms.vmap import grad_of_each  # noqa: PLC0415  start-up

        found = grad_of_each(outputs, inputs, grad_outputs, *options)
    if create_graph is FOR_TANGENTS:
        from ..transforms.forward import unrecorded  # noqa: PLC0415  start-up

        found = tuple(map(unrecorded, found))
    return found


def carry_tangents(tensors):
    """Tell whether one of some tensors has a tangent in a pass that runs."""
    nodes = [t.node for t in ((tensors,) if isinstance(tensors, Tensor) else tensors or ()) if t is not None]
    return any(n is not None and not n.tangents.keys().isdisjoint(mode.passes) for n in nodes)
