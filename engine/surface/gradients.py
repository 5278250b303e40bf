"""The roots and results of a backward pass, with PyTorch's errors."""

from collections.abc import Mapping

from ..arrays import dtypes
from ..arrays.dispatch import zeros_like
from ..core import backward as core
from ..core import errors
from ..core.graph import AccumulateGrad
from ..core.tensor import Tensor, require_grad
from .edges import GradientEdge, part, place


def plain_grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None,
         materialize_grads=False):  # fmt: skip
    """``autograd.grad`` outside of vmap and forward mode."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    inputs = differentiated(inputs, "grad")
    cotangents = roots(outputs, grad_outputs, create_graph)
    places = [*map(place, inputs)]
    for (node, _), i in zip(places, inputs):
        if node is None or isinstance(i, Tensor) and not i.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    wanted = {n for n, _ in places if type(n) is not AccumulateGrad or n.leaf() is not None}  # no views under no_grad
    found = core.backward_pass(cotangents, keep, create_graph, wanted)
    results = [as_result(part(found.get(node), number), i) for (node, number), i in zip(places, inputs)]
    for number, (i, result) in enumerate(zip(inputs, results)):
        if result is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {number} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        if result is None and materialize_grads:
            if isinstance(i, GradientEdge):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            results[number] = require_grad(Tensor(zeros_like(i.array)), create_graph is True)
    return tuple(results)


def roots(tensors, gradients, create_graph):
    """``core.roots``, which knows of no nodes that are there for tangents alone."""
    tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    found = core.roots(tensors, gradients, create_graph)
    for i, t in enumerate(tensors):
        if not t.node.requires_grad:
            raise RuntimeError(errors.NO_NODE.format(i))
    return found


def as_result(g, tensor):
    """A gradient in the dtype of its tensor (bfloat16 times a number is float32 to NumPy), and no transposed matrix."""
    if g is None:
        return None
    g = g if isinstance(g, Tensor) else Tensor(g)
    x = g.array
    if isinstance(tensor, GradientEdge):
        node, number = place(tensor)
        _, dtype, _ = node.kinds.get(number, (None, x.dtype, None))
        return g if x.dtype == dtype else g.to(dtypes.of[dtype])
    if not x.flags.c_contiguous and 0 not in x.strides and tensor.array.flags.c_contiguous:
        g = Tensor(x.copy(), g.node)
    return g if x.dtype == tensor.array.dtype else g.to(tensor.dtype)


def differentiated(inputs, function):
    """The ``inputs`` argument of a function as a tuple, checked as PyTorch checks it."""
    if type(inputs) is dict:
        inputs = inputs.values()
    elif isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )
    inputs = (inputs,) if isinstance(inputs, (Tensor, GradientEdge)) else tuple(inputs)
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    for i in inputs:
        if not isinstance(i, (Tensor, GradientEdge)):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(i).__name__}")
    return inputs


def check_root(i, t, g):
    """PyTorch's errors for what a pass cannot begin with."""
    if not isinstance(t, Tensor):
        raise TypeError(f"element {i} of tensors must be a Tensor, but got {type(t).__name__}")
    if g is None:
        return
    if not isinstance(g, Tensor):
        raise TypeError("gradients can be either Tensors or None, but got " + type(g).__name__)
    if g.array.shape != t.array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {t.shape}."
        )


core.root_checks.append(check_root)
