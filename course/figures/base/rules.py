"""The local rule of an operation, in words and as a formula, for the figures that show a backward pass."""

import re
from typing import Any

from engine.arrays.dispatch import scalar_types
from engine.core.graph import Node
from engine.core.tensor import Tensor
from engine.viz import brief, rule_parameters, shape_text

ARRAYS = ("x", "y", "z", "out")  # how rules call inputs and the result

# node name: (words, a formula for each input).  A formula is Python: `grad` is what arrives, the inputs and the result
# are called as in PyTorch's `_saved_self`, `_saved_mat2`, and other names are the node's own.  A formula is shown only
# where it uses what the node's rule uses, no more and no less: one name may stand for several rules (`x.square()` and
# `x ** 3`).
RULES: dict[str, tuple[str, ...]] = {
    "AddBackward0": ("A sum passes its gradient on to both sides, unchanged.", "grad", "grad"),
    "SubBackward0": ("A difference passes its gradient on, with the sign turned on the right.", "grad", "-grad"),
    "RsubBackward1": ("A difference passes its gradient on, with the sign turned on the right.", "-grad", "grad"),
    "NegBackward0": ("The sign turns.", "-grad"),
    "MulBackward0": (
        "Each factor gets the gradient times the other factor, as it was saved.",
        "grad * other",
        "grad * self",
    ),
    "MulBackward1": ("The gradient times the number.", "grad * number"),
    "DivBackward0": (
        "A quotient: 1 / other for the numerator, -self / other**2 for the denominator.",
        "grad / other",
        "-grad * self / other**2",
    ),
    "DivBackward1": ("The gradient divided by the number.", "grad / number"),
    "PowBackward0": (
        "The power rule: exponent times base to one power less.",
        "grad * exponent * self**(exponent - 1)",
    ),
    "PowBackward1": (
        "The power rule for the base; the logarithm of the base for the exponent.",
        "grad * exponent * self**(exponent - 1)",
    ),
    "ReciprocalBackward0": ("The slope of 1/x is -1/x**2.", "-grad * result**2"),
    "SqrtBackward0": ("The slope of a square root is 1 / (2 * the square root).", "grad / (2 * result)"),
    "ExpBackward0": ("The slope of exp is exp itself, which was saved.", "grad * result"),
    "LogBackward0": ("The slope of log x is 1/x.", "grad / self"),
    "SinBackward0": ("The slope of sin is cos.", "grad * self.cos()"),
    "CosBackward0": ("The slope of cos is -sin.", "-grad * self.sin()"),
    "TanhBackward0": ("The slope of tanh, from its result: 1 - result**2.", "grad * (1 - result**2)"),
    "SigmoidBackward0": (
        "The slope of sigmoid, from its result: result * (1 - result).",
        "grad * result * (1 - result)",
    ),
    "ReluBackward0": (
        "The gradient passes where the result is above zero, and nowhere else.",
        "grad * (result > 0)",
    ),
    "AbsBackward0": ("The gradient times the sign of the input.", "grad * self.sign()"),
    "SumBackward0": ("Each element that was added up gets the same gradient.", "grad.expand(shape)"),
    "SumBackward1": ("Each element that was added up gets the gradient of its sum.",),
    "MeanBackward0": ("Each of the n elements gets a share of 1/n of the gradient.", "grad.expand(shape) / n"),
    "MeanBackward1": ("Each element gets its share of the gradient of its mean.",),
    "MmBackward0": (
        "A matrix product: the gradient times the other matrix, transposed.",
        "grad @ mat2.T",
        "self.T @ grad",
    ),
    "MvBackward0": (
        "A matrix times a vector: an outer product for the matrix, the transposed matrix for the vector.",
        "grad.outer(vec)",
        "self.T @ grad",
    ),
    "DotBackward0": ("Each vector gets the gradient times the other vector.", "grad * tensor", "grad * self"),
    "BmmBackward0": ("Matrix products, one of each pair.", "grad @ mat2.mT", "self.mT @ grad"),
    "TBackward0": ("The gradient is transposed back.", "grad.T"),
    "TransposeBackward0": ("The gradient is transposed back.", "grad.transpose(i, j)"),
    "PermuteBackward0": ("The dimensions of the gradient are put back in their order.",),
    "ViewBackward0": ("The gradient gets the shape of the input back.", "grad.reshape(shape)"),
    "UnsafeViewBackward0": ("The gradient gets the shape of the input back.", "grad.reshape(shape)"),
    "UnsqueezeBackward0": ("The gradient gets the shape of the input back.", "grad.reshape(shape)"),
    "SqueezeBackward0": ("The gradient gets the shape of the input back.", "grad.reshape(shape)"),
    "SqueezeBackward1": ("The gradient gets the shape of the input back.", "grad.reshape(shape)"),
    "SqueezeBackward4": ("The gradient gets the shape of the input back.", "grad.reshape(shape)"),
    "ExpandBackward0": ("Each copy passes its gradient back; they are added up.",),
    "CloneBackward0": ("A copy passes its gradient on, unchanged.", "grad"),
    "ToCopyBackward0": ("The gradient is cast back to the dtype of the input.",),
    "SelectBackward0": ("What was picked gets its gradient; the rest gets zero.",),
    "SliceBackward0": ("What was picked gets its gradient; the rest gets zero.",),
    "IndexBackward0": ("What was picked gets its gradient, as often as it was picked; the rest gets zero.",),
    "UnbindBackward0": ("The gradients of the parts are put together again.",),
    "SplitBackward0": ("The gradients of the parts are put together again.",),
    "CatBackward0": ("The gradient is cut where the inputs were joined.",),
    "StackBackward0": ("The gradient is cut where the inputs were joined.",),
    "MaximumBackward0": ("The gradient goes to the larger one; equal ones share it.",),
    "MinimumBackward0": ("The gradient goes to the smaller one; equal ones share it.",),
    "MaxBackward0": ("The gradient goes to the largest element; the others get zero.",),
    "MaxBackward1": ("The gradient goes to the largest element; equal ones share it.",),
    "WhereBackward0": ("The gradient goes where the value came from.",),
    "SoftmaxBackward0": (
        "Raising one probability lowers the others.",
        "(grad - (grad * result).sum(axis, keepdim=True)) * result",
    ),
    "LogSoftmaxBackward0": (
        "The gradient, less each probability's share of the sum.",
        "grad - result.exp() * grad.sum(axis, keepdim=True)",
    ),
    "NllLossBackward0": ("Minus the weight at each target; zero elsewhere.",),
    "MseLossBackward0": (
        "Twice the difference, times the scale (1/n for a mean).",
        "grad * scale * (self - target)",
        "grad * scale * (target - self)",
    ),
    "BinaryCrossEntropyWithLogitsBackward0": (
        "How far the predicted probability is above the target, times the scale (1/n for a mean).",
        "grad * scale * (self.sigmoid() - target)",
        "-grad * scale * self",
    ),
    "CopySlices": ("What was overwritten gets zero; the new part gets its share.",),
    "AccumulateGrad": ("The end of the graph: what arrives is added to the leaf's .grad.",),
}


def in_words(node: Node) -> str:
    """Say the rule of a node in one sentence."""
    if node.grad_fn_view() is not node:
        return f"Its own backward(ctx, grad), which was written in Python in {node.name().removesuffix('Backward')}."
    return RULES.get(node.name(), ("The gradient times the derivative of this operation.",))[0]


def formula(node: Node, i: int) -> str:
    """Return the formula for the gradient of input i; "" where the table has none for this node."""
    formulas = RULES.get(node.name(), ("",))[1:]
    if node.grad_fn_view() is not node or i >= len(formulas):
        return ""
    uses = {called(node, name) for name in rule_parameters(type(node).rules[i]) if not name.startswith("_")}
    names = {called(node, name) for name in (*ARRAYS, *node.names)}
    exact = uses - {"shape"} == names.intersection(re.findall(r"\w+", formulas[i])) - {
        "shape"
    }  # all views get the shape
    return formulas[i] if exact else ""


def called(node: Node, name: str) -> str:
    """Return a parameter of a rule as PyTorch's attributes call it, if it stands for an input or the result."""
    return str(node.called.get(name, name)) if name in ARRAYS else name


def values(node: Node, i: int) -> dict[str, Any]:
    """Return what the names in the formula of input i stand for, from what the node saved; arrays as Tensors."""
    saved = zip(rule_parameters(type(node).rules[i]), node.saved, strict=False)  # the rest is in the rule's *args
    return {
        called(node, name): s if type(s) in scalar_types or type(s) is tuple else Tensor(s)
        for name, s in saved
        if not name.startswith("_") and s is not None
    }


def filled_in(text: str, known: dict[str, Any]) -> str:
    """Return a formula with small values in the place of their names; the names of larger ones stay."""

    def value(match: re.Match[str]) -> str:
        x = known.get(match[0], match[0])
        if isinstance(x, Tensor):
            return brief(x.array) if x.numel() <= 6 else match[0]
        return shape_text(x) if type(x) is tuple else brief(x) if type(x) in scalar_types else match[0]

    return re.sub(r"(?<![\w.])[a-z]\w*\b(?![.(])", value, text)
