"""Gradient edges: places in the graph that stand for tensors, which may be gone, as inputs and outputs of a pass."""

from typing import Any, NamedTuple

from ..arrays.dispatch import modules
from ..core.graph import Node, Output, OutputCotangents, extend
from ..core.tensor import Tensor

extend(Node, kinds={})  # number of an output -> (shape, dtype, type of array) of the tensor, if its edge was asked for


class GradientEdge(NamedTuple):
    """A node, and the number of one of its outputs: where the gradient of a tensor arrives."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor):
    """The edge of a tensor.  RuntimeError if that requires no grad."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    shown = tensor.node if tensor.is_leaf else tensor.grad_fn
    node, number = place(tensor)
    node.kinds = node.kinds | {number: (tensor.array.shape, tensor.array.dtype, type(tensor.array))}
    return GradientEdge(shown, number, None if isinstance(shown, Node) else node)  # which holds the graph


def place(x):
    """(node, number): where the gradient of a tensor or an edge arrives; the number counts where that is of several."""
    if isinstance(x, Tensor):
        node = x.node
        return (node.parents[0], node.saved[0]) if type(node) is Output else (node, 0)
    call = getattr(x.node, "_call_record", None)  # that of a custom function's context
    node = call.node(x.node) if call else x.node
    if not isinstance(node, Node):
        kind = type(node).__name__
        raise RuntimeError(f"GradientEdge's first object must be an autograd.graph.Node but got {kind}")
    return vars(node).get("stands_for", lambda: None)() or node, x.output_nr


def part(g, number):
    """The cotangent of one output among what has arrived at a node."""
    return g.get(number) if type(g) is OutputCotangents else g


def with_tensors(outputs, gradients):
    """The outputs that a pass begins with; for an edge, a tensor at its place."""
    outputs = (outputs,) if isinstance(outputs, GradientEdge) else tuple(outputs)
    gradients = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients or ())
    gradients += (None,) * (len(outputs) - len(gradients))
    return [tensor_at(o, g) if isinstance(o, GradientEdge) else o for o, g in zip(outputs, gradients)]


def tensor_at(edge, gradient):
    """A tensor of the same kind as that of the edge, at its place in the graph; its values are 0."""
    node, number = place(edge)
    kind = node.kinds.get(number)
    if kind is None and not isinstance(gradient, Tensor):
        raise NotImplementedError(
            "GradientEdge(node, output_nr) does not know the shape of its output: give grad_outputs (grad_tensors in "
            "backward()), or take the edge from get_gradient_edge(tensor)"
        )
    shape, dtype, array_type = kind or (gradient.array.shape, gradient.array.dtype, type(gradient.array))
    several = "outputs" in vars(node)
    return Tensor(modules[array_type].zeros(shape, dtype), Output(node, number) if several else node)
