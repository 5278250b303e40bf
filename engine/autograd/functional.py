"""Products with Jacobians and Hessians, and the matrices themselves, as ``torch.autograd.functional``.

Each function takes ``func`` and its inputs, a Tensor or a tuple of them.  ``create_graph``: the results can be
differentiated.  ``strict``: RuntimeError where a result does not depend on an input, zeros otherwise.
"""

from ..arrays.dispatch import zeros_like
from ..core.graph import mode
from ..core.tensor import Tensor
from ..help import public
from ..ops.shape import reshape_to, select_at, squeeze_all, stack
from ..transforms.func import grad as gradient_of
from ..transforms.func import jacobian_columns, unit_vectors
from . import messages
from .forward_ad import dual_level
from .gradients import grad
from .modes import enable_grad, is_grad_enabled, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


# ---- inputs and outputs


def checked_tuple(values, what, function):
    """(whether it was a tuple, the tuple).  TypeError in PyTorch's words for what holds no Tensors."""
    several = isinstance(values, tuple)
    values = values if several else (values,)
    for i, v in enumerate(values):
        if not isinstance(v, Tensor):
            which = f"value at index {i}" if several else f"given {what}"
            raise TypeError(messages.NOT_TENSORS.format(what, function, which, type(v)))
    return several, values


def prepared(inputs, create_graph, track=True):
    """New tensors on the memory of the inputs, joined to their graph if the results are to be differentiated."""
    return tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(track) for x in inputs)


def outside(results, create_graph, several):
    """The results as they are handed out: outside of the graph unless they are to be differentiated."""
    if not create_graph:
        results = tuple(r.detach() for r in results)
    return results if several else results[0]


def zeros_of(x):
    return Tensor(zeros_like(x.array))


def vector(v, like, several, create_graph, function):
    """The argument v, checked against the tensors that it multiplies; None if it was left out and may be."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(messages.NO_V["vjp" if function == "vjp" else "jvp"])
        return None
    v = prepared(checked_tuple(v, "v", function)[1], create_graph, track=False)
    if len(v) != len(like) and not several:
        raise RuntimeError("The given v should contain a single Tensor.")
    if len(v) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for i, (a, b) in enumerate(zip(v, like)):
        if a.shape != b.shape:
            which = f"Entry {i} in " if several else ""
            raise RuntimeError(f"{which}v has invalid size: should be {b.shape} but got {a.shape}.")
    return v


def checked_call(func, inputs, name, strict):
    """(the outputs, whether they are several) of a call of the program's function."""
    several, outputs = checked_tuple(func(*inputs), "outputs of the user-provided function", name)
    check_depend(outputs, "outputs", strict)
    return outputs, several


def check_single(outputs, several, name):
    if several:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")


# ---- strict mode


def check_depend(tensors, kind, strict):
    """In strict mode, RuntimeError unless all require grad."""
    for i, t in enumerate(tensors if strict else ()):
        if t is None:
            raise RuntimeError(messages.MISSING["back"].format(i))
        if not t.requires_grad:
            raise RuntimeError(messages.INDEPENDENT[kind].format(i))


def zeros_for_none(grads, like, stage, create_graph, strict):
    """The gradients, with zeros for those that are None; in strict mode RuntimeError."""
    for i, g in enumerate(grads if strict else ()):
        if g is None:
            raise RuntimeError(messages.MISSING[stage].format(i))
        if create_graph and not g.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(messages.INDEPENDENT_OF_INPUT.format(what, i))
    return tuple(zeros_of(x) if g is None else g for g, x in zip(grads, like))


def grads_of(outputs, inputs, given=None, create_graph=False, retain_graph=None, batched=False):
    """``autograd.grad``, for outputs of which some may not be differentiable; None for an input that has no part."""
    given = given or (None,) * len(outputs)
    pairs = [(o, g) for o, g in zip(outputs, given) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outputs, given = zip(*pairs)
    return grad(outputs, inputs, given, retain_graph, create_graph, allow_unused=True, is_grads_batched=batched)


# ---- products


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v^T J): v is as the outputs, and may be left out for a single number."""
    return jacobian_product("vjp", func, inputs, v, create_graph, strict)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), J v): v is as the inputs.  Computed as PyTorch does here, by pulling back the vjp."""
    return jacobian_product("jvp", func, inputs, v, create_graph, strict)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v^T H) of a function that returns one number: the gradient's vjp."""
    return jacobian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), H v) of a function that returns one number.

    The Hessian is symmetric, so this is ``vhp``.  In strict mode it is the gradient's jvp, by pulling back its vjp, as
    PyTorch computes it: that shows what depends on what.
    """
    return jacobian_product("hvp", func, inputs, v, create_graph, strict)


def jacobian_product(name, func, inputs, v, create_graph, strict):
    """(func(*inputs), a product with its Jacobian, or with that of its gradient)."""
    second, pulls_back = name in ("vhp", "hvp"), name == "jvp" or name == "hvp" and strict
    stage = "double_back" if second else "back"
    with enable_grad():
        several, inputs = checked_tuple(inputs, "inputs", name)
        inputs = prepared(inputs, create_graph)
        if name != "vjp":
            v = vector(v, inputs, several, create_graph, name)
        outputs, several_out = checked_call(func, inputs, name, strict)
        if name == "vjp":
            v = vector(v, outputs, several_out, create_graph, name)
        values = outputs  # whose Jacobian it is
        if second:
            check_single(outputs, several_out, name)
            values = grads_of(outputs, inputs, create_graph=True)
            check_depend(values, "jacobian", strict)
        sources = inputs
        if pulls_back:  # the vjp is linear in its vector, and its own vjp is the transpose: J v
            sources = tuple(zeros_of(x).requires_grad_() for x in values)
            values = grads_of(values, inputs, sources, create_graph=True)
            if second:
                values = zeros_for_none(values, inputs, stage, create_graph, strict)
            else:
                check_depend(values, "grad_inputs", strict)
            stage += "_trick"
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = zeros_for_none(grads_of(values, sources, v, create_graph), sources, stage, create_graph, strict)
    found = outside(found, create_graph, several_out if name == "jvp" else several)
    return outside(outputs, create_graph, several_out), found


# ---- matrices


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian: for each output and each input (*output, *input); nested as outputs and inputs are."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(messages.STRATEGY)
    if strategy == "forward-mode":
        return jacobian_forward(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        several, inputs = checked_tuple(inputs, "inputs", "jacobian")
        inputs = prepared(inputs, create_graph)
        outputs, several_out = checked_call(func, inputs, "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError(messages.STRICT_AND_VECTORIZED)
        found = []
        for i, out in enumerate(outputs):
            if vectorize:
                basis = unit_vectors(out.array, out.numel()).reshape(out.numel(), *out.array.shape)
                rows = grads_of((out,), inputs, (Tensor(basis),), create_graph, True, batched=True)
            else:
                rows = rows_one_by_one(i, out, inputs, create_graph, strict)
            rows = [zeros_of(x).expand((out.numel(), *x.shape)) if r is None else r for r, x in zip(rows, inputs)]
            parts = tuple(reshape_to(r, (*out.array.shape, *x.array.shape)) for r, x in zip(rows, inputs))
            found.append(outside(parts, create_graph, several))
    return tuple(found) if several_out else found[0]


def rows_one_by_one(i, out, inputs, create_graph, strict):
    """The derivatives of an output with respect to the inputs, a backward pass for each row; None if there are no."""
    flat, rows = reshape_to(out, (-1,)), []
    for j in range(out.numel()):
        grads = grads_of((select_at(flat, 0, j),), inputs, None, create_graph, True)
        for k, g in enumerate(grads if strict else ()):
            if g is None:
                raise RuntimeError(messages.OUTPUT_INDEPENDENT.format(i, k))
            if create_graph and not g.requires_grad:
                raise RuntimeError(messages.INDEPENDENT_OF_INPUT.format("jacobian", i))
        rows.append([zeros_of(x) if g is None else g for g, x in zip(grads, inputs)])
    return [stack(column, 0) for column in zip(*rows)] or [None] * len(inputs)


def jacobian_forward(func, inputs, create_graph, strict, vectorize):
    """The Jacobian in forward mode: all columns in one pass, that of a dual level, as PyTorch's."""
    if create_graph:
        raise NotImplementedError(messages.FORWARD_CREATE_GRAPH)
    if strict:
        raise RuntimeError(messages.FORWARD_STRICT)
    several, inputs = checked_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(messages.FORWARD_NOT_VECTORIZED)
    several_out = True

    def outputs_of(*inputs):
        nonlocal several_out
        several_out, outputs = checked_tuple(func(*inputs), "outputs", None)
        return outputs

    with dual_level():
        found, *_ = jacobian_columns(outputs_of, inputs, list, level=mode.dual)
    found = found if several else tuple(row[0] for row in found)  # lists: so PyTorch has it
    return found if several_out else found[0]


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a function that returns one number: for each pair of inputs (*input, *input)."""
    several, inputs = checked_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    forward = outer_jacobian_strategy == "forward-mode"

    def single(*inputs):
        outputs, several_out = checked_call(func, inputs, "hessian", strict)
        check_single(outputs, several_out, "hessian")
        return squeeze_all(outputs[0])

    def gradient(*inputs):
        if forward:
            return gradient_of(single, tuple(range(len(inputs))))(*inputs)
        found = jacobian(single, inputs, create_graph=True)
        check_depend(found, "jacobian", strict)
        return found

    if forward:  # the result is in a graph, as PyTorch's
        inputs = tuple(x if x.requires_grad else x.detach().requires_grad_() for x in inputs)
    found = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]


__dir__ = public("autograd.functional", globals())
