"""``backward`` and ``grad`` as programs call them; ``grad`` maps over cotangents, and carries tangents on."""

import numpy as np

from ..arrays.dispatch import Function
from ..arrays.warn import warn
from ..core import backward as core
from ..core.graph import mode
from ..core.tensor import Tensor
from .hooks import accumulate, as_tensor


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of ``tensors``, weighted by ``grad_tensors``, to the leaves (or to ``inputs`` alone)."""
    if grad_variables is not None:
        warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
    grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    if inputs is None:
        return core.backward(tensors, grad_tensors, retain_graph, create_graph)
    inputs = differentiated(inputs, "backward")
    for i in inputs:
        i.retain_grad()
    cotangents = core.roots(tensors, grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    found = core.backward_pass(cotangents, keep, create_graph, {i.node for i in inputs})
    before, mode.enabled = mode.enabled, create_graph
    try:
        for node, g in found.items():
            if not node.parents:
                accumulate(node, g, hooks=())
    finally:
        mode.enabled = before


def tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Add d(self)/d(leaf), contracted with ``gradient`` (1 for a scalar), to ``.grad`` of every leaf."""
    if inputs is None and not create_graph and isinstance(self.array, np.floating) and gradient is None and self.node:
        core.backward_pass({self.node: type(self.array)(1)}, retain_graph)  # without asking for what is known: -20 %
    else:
        backward(self, gradient, retain_graph, create_graph, None, inputs)


tensor_backward.__name__ = tensor_backward.__qualname__ = "backward"
Tensor.backward = tensor_backward


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):  # fmt: skip
    """The gradients of ``outputs`` with respect to ``inputs``, as a tuple; nothing is added to any ``.grad``.

    RuntimeError if an input was not used, unless ``allow_unused`` (None then) or ``materialize_grads`` (zeros).
    """
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    if mode.dual and not create_graph and carries_tangents(outputs):
        from ..transforms.forward import unrecorded  # which `import engine` need not wait for

        asked, mode.asked = mode.asked, True
        try:  # recorded, for then it carries the tangents on
            found = grad(outputs, inputs, grad_outputs, bool(retain_graph), True, True, allow_unused, is_grads_batched,
                         materialize_grads)  # fmt: skip
        finally:
            mode.asked = asked
        return tuple(map(unrecorded, found))
    options = retain_graph, create_graph, allow_unused, materialize_grads
    if not is_grads_batched:
        return plain_grad(outputs, inputs, grad_outputs, *options)
    from ..transforms.vmap import grad_of_each  # likewise

    return grad_of_each(outputs, inputs, grad_outputs, *options)


zeros_like = Function("zeros_like").call


def carries_tangents(outputs):
    outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
    return any(o.node is not None and o.node.tangents for o in outputs)


def plain_grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None,
         materialize_grads=False):  # fmt: skip
    """``autograd.grad`` where nobody maps over samples or carries tangents."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    inputs = differentiated(inputs, "grad")
    cotangents = core.roots(outputs, grad_outputs, create_graph)
    for i in inputs:
        if i.node is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    found = core.backward_pass(cotangents, keep, create_graph, {i.node for i in inputs})
    results = [as_result(as_tensor(found.get(i.node)), i) for i in inputs]
    for number, (i, result) in enumerate(zip(inputs, results)):
        if result is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {number} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        if result is None and materialize_grads:
            results[number] = Tensor(zeros_like(i.array)).requires_grad_(create_graph)
    return tuple(results)


def as_result(g, tensor):
    """A gradient in the dtype of its tensor (bfloat16 times a number is float32 to NumPy), and no transposed matrix."""
    if g is None:
        return None
    x = g.array
    if not x.flags.c_contiguous and 0 not in x.strides and tensor.array.flags.c_contiguous:
        g = Tensor(x.copy(), g.node)
    return g if x.dtype == tensor.array.dtype else g.to(tensor.dtype)


def differentiated(inputs, function):
    """The ``inputs`` argument of a function as a tuple, checked as PyTorch checks it."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    for i in inputs:
        if not isinstance(i, Tensor):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(i).__name__}")
    return inputs


def check_roots(tensors, gradients):
    """PyTorch's errors for what a pass cannot begin with."""
    for g in gradients[: len(tensors)]:
        if g is not None and not isinstance(g, Tensor):
            raise TypeError("gradients can be either Tensors or None, but got " + type(g).__name__)
    if len(gradients) < len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    for i, (t, g) in enumerate(zip(tensors, gradients)):
        if not isinstance(t, Tensor):
            raise TypeError(f"element {i} of tensors must be a Tensor, but got {type(t).__name__}")
        if g is not None and g.array.shape != t.array.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{t.shape}."
            )


core.root_checks.append(check_roots)
