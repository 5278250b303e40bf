"""``backward`` and ``grad`` as programs call them; ``grad`` maps over cotangents, and carries tangents on."""

import numpy as np

from ..arrays.quiet import be_quiet, hush, quiet, state
from ..arrays.running import switched
from ..arrays.warn import warn
from ..core import backward as core
from ..core.graph import extend, mode
from ..core.tensor import Tensor
from ..surface.edges import place, with_tensors
from ..surface.gradients import differentiated, plain_grad
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
    cotangents = core.roots(tensors, grad_tensors, create_graph)
    for i in inputs:
        if isinstance(i, Tensor):
            i.retain_grad()
    keep = create_graph if retain_graph is None else retain_graph
    try:
        wanted = {place(i)[0] for i in inputs}
        found = core.backward_pass(cotangents, keep, create_graph, wanted, through=True)
        with switched(mode, enabled=create_graph):
            for node, g in found.items():
                if not node.parents:
                    accumulate(node, g, hooks=())
    finally:
        if create_graph:
            warn_of_cycle()


def recorded_or_not(tensors, gradients, retain_graph, create_graph):
    """``core.backward``, with PyTorch's warning where the pass is recorded."""
    if not create_graph:
        return core.backward(tensors, gradients, retain_graph)
    cotangents = core.roots(tensors, gradients, create_graph)
    try:
        core.backward_pass(cotangents, True if retain_graph is None else retain_graph, create_graph)
    finally:
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
    elif gradient is None and not create_graph and isinstance(self.array, np.floating) and self.node:
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
    if mode.dual and not create_graph and carries_tangents(outputs):
        from ..transforms.forward import unrecorded  # noqa: PLC0415  start-up

        with switched(mode, asked=True):  # recorded, for then it carries the tangents on
            found = grad(outputs, inputs, grad_outputs, bool(retain_graph), True, True, allow_unused, is_grads_batched,
                         materialize_grads)  # fmt: skip
        return tuple(map(unrecorded, found))
    options = retain_graph, create_graph, allow_unused, materialize_grads
    if not is_grads_batched or grad_outputs is None:
        return plain_grad(outputs, inputs, grad_outputs, *options)
    from ..transforms.vmap import grad_of_each  # noqa: PLC0415  start-up

    return grad_of_each(outputs, inputs, grad_outputs, *options)


def carries_tangents(outputs):
    outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
    return any(o.node is not None and o.node.tangents for o in outputs)
