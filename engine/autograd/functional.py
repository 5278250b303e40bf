"""Products with Jacobians and Hessians, and the matrices themselves, as ``torch.autograd.functional``.

Each function takes ``func`` and its inputs, a Tensor or a tuple of them.  ``create_graph``: the results can be
differentiated.  ``strict``: RuntimeError where a result does not depend on an input, zeros otherwise.
"""

from ..arrays.dispatch import Function
from ..core.graph import mode
from ..core.tensor import Tensor
from ..ops.shape import reshape_to, select_at, squeeze_all, stack
from ..transforms.func import columns, unit_vectors
from . import forward_ad
from .gradients import grad
from .modes import enable_grad, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

zeros_of = Function("zeros_like").call


# ---- inputs and outputs


def as_tuple(values, what, function):
    """(whether it was a tuple, the tuple).  TypeError in PyTorch's words for what holds no Tensors."""
    several = isinstance(values, tuple)
    values = values if several else (values,)
    for i, v in enumerate(values):
        if not isinstance(v, Tensor):
            which = f"value at index {i}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {which} "
                f"has type "
                f"{type(v)}."
            )
    return several, values


def prepared(inputs, create_graph, need_graph=True):
    """New tensors on the memory of the inputs, joined to their graph if the results are to be differentiated."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph) for x in inputs
    )


def detached(results, create_graph):
    """The results, outside of the graph unless they are to be differentiated."""
    if create_graph:
        return results
    return tuple(r.detach() if isinstance(r, Tensor) else detached(r, False) for r in results)


def unpacked(results, several):
    return results if several else results[0]


def vector(v, like, several, create_graph, function, missing):
    """The argument v, checked against the tensors that it multiplies; None if it was left out and may be."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(missing)
        return None
    _, v = as_tuple(v, "v", function)
    v = prepared(v, create_graph, need_graph=False)
    if len(v) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
            if several
            else "The given v should contain a single Tensor."
        )
    for i, (a, b) in enumerate(zip(v, like)):
        if a.shape != b.shape:
            which = f"Entry {i} in " if several else ""
            raise RuntimeError(f"{which}v has invalid size: should be {b.shape} but got {a.shape}.")
    return v


NO_V = {
    "vjp": "The vector v can only be None if the user-provided function returns a single Tensor with a single element.",
    "jvp": "The vector v can only be None if the input to the user-provided function is a single Tensor with a single "
    "element.",
}

# ---- strict mode

REFUSED = " This is not allowed in strict mode."
INDEPENDENT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function."
    + REFUSED,
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {} is independent of the input. This is not allowed in strict mode. You should ensure that your function is "
    "twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example).",
}
MISSING = {
    "back": "The output of the user-provided function is independent of input {}." + REFUSED,
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when "
    "using the "
    "double backward trick to compute forward mode gradients." + REFUSED,
    "double_back": "The jacobian of the user-provided function is independent of input {}." + REFUSED,
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. "
    "This is not allowed in strict mode as it prevents from using the double backward trick to replace forward "
    "mode AD.",
}


def check_depend(tensors, kind, strict):
    """In strict mode, RuntimeError unless all require grad."""
    for i, t in enumerate(tensors if strict else ()):
        if t is None:
            raise RuntimeError(MISSING["back"].format(i))
        if not t.requires_grad:
            raise RuntimeError(INDEPENDENT[kind].format(i))


def filled(grads, like, strict, create_graph, stage):
    """The gradients, with zeros for those that are None; in strict mode RuntimeError."""
    found = []
    for i, (g, x) in enumerate(zip(grads, like)):
        if g is None and strict:
            raise RuntimeError(MISSING[stage].format(i))
        if g is not None and strict and create_graph and not g.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict "
                "mode when create_graph=True."
            )
        found.append(Tensor(zeros_of(x.array)) if g is None else g)
    return tuple(found)


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
    with enable_grad():
        several, inputs = as_tuple(inputs, "inputs", "vjp")
        inputs = prepared(inputs, create_graph)
        outputs, several_out = called(func, inputs, "vjp", strict)
        v = vector(v, outputs, several_out, create_graph, "vjp", NO_V["vjp"])
    with set_grad_enabled(create_graph or mode.enabled):
        found = filled(grads_of(outputs, inputs, v, create_graph), inputs, strict, create_graph, "back")
    return unpacked(detached(outputs, create_graph), several_out), unpacked(detached(found, create_graph), several)


def called(func, inputs, name, strict):
    several, outputs = as_tuple(func(*inputs), "outputs of the user-provided function", name)
    check_depend(outputs, "outputs", strict)
    return outputs, several


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), J v): v is as the inputs.  Computed as PyTorch does here, by pulling back the vjp."""
    with enable_grad():
        several, inputs = as_tuple(inputs, "inputs", "jvp")
        inputs = prepared(inputs, create_graph)
        v = vector(v, inputs, several, create_graph, "jvp", NO_V["jvp"])
        outputs, several_out = called(func, inputs, "jvp", strict)
        dummies = tuple(Tensor(zeros_of(o.array)).requires_grad_() for o in outputs)
        pulled = grads_of(outputs, inputs, dummies, create_graph=True)
        check_depend(pulled, "grad_inputs", strict)
    with set_grad_enabled(create_graph or mode.enabled):
        found = grads_of(pulled, dummies, v, create_graph)
        found = filled(found, outputs, strict, create_graph, "back_trick")
    return unpacked(detached(outputs, create_graph), several_out), unpacked(detached(found, create_graph), several_out)


def recorded_gradient(func, inputs, v, create_graph, strict, name):
    """(inputs, whether they are several, outputs, v, gradient) of a function that returns one number, recorded."""
    several, inputs = as_tuple(inputs, "inputs", name)
    inputs = prepared(inputs, create_graph)
    v = vector(v, inputs, several, create_graph, name, NO_V["jvp"])
    outputs, several_out = called(func, inputs, name, strict)
    check_single(outputs, several_out, name)
    gradient = grads_of(outputs, inputs, create_graph=True)
    check_depend(gradient, "jacobian", strict)
    return inputs, several, outputs, v, gradient


def check_single(outputs, several, name):
    if several:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v^T H) of a function that returns one number: the gradient's vjp."""
    return gradient_product(func, inputs, v, create_graph, strict, "vhp")


def gradient_product(func, inputs, v, create_graph, strict, name):
    with enable_grad():
        inputs, several, outputs, v, gradient = recorded_gradient(func, inputs, v, create_graph, strict, name)
    with set_grad_enabled(create_graph or mode.enabled):
        found = filled(grads_of(gradient, inputs, v, create_graph), inputs, strict, create_graph, "double_back")
    return detached(outputs, create_graph)[0], unpacked(detached(found, create_graph), several)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), H v) of a function that returns one number.

    The Hessian is symmetric, so this is ``vhp``.  In strict mode it is the gradient's jvp, by pulling back its vjp, as
    PyTorch computes it: that shows what depends on what.
    """
    if not strict:
        return gradient_product(func, inputs, v, create_graph, strict, "hvp")
    with enable_grad():
        inputs, several, outputs, v, gradient = recorded_gradient(func, inputs, v, create_graph, strict, "hvp")
        dummies = tuple(Tensor(zeros_of(x.array)).requires_grad_() for x in inputs)
        pulled = filled(grads_of(gradient, inputs, dummies, True), inputs, strict, create_graph, "double_back")
    with set_grad_enabled(create_graph or mode.enabled):
        found = grads_of(pulled, dummies, v, create_graph)
        found = filled(found, inputs, strict, create_graph, "double_back_trick")
    return detached(outputs, create_graph)[0], unpacked(detached(found, create_graph), several)


# ---- matrices


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian: for each output and each input (*output, *input); nested as outputs and inputs are.

    ``vectorize``: all rows at once; ``strategy="forward-mode"``: columns in place of rows, only at once.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return jacobian_forward(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        several, inputs = as_tuple(inputs, "inputs", "jacobian")
        inputs = prepared(inputs, create_graph)
        outputs, several_out = called(func, inputs, "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        rows = all_rows if vectorize else one_by_one
        found = tuple(
            tuple(
                reshape_to(j, (*out.array.shape, *x.array.shape))
                for j, x in zip(rows(i, out, inputs, create_graph, strict), inputs)
            )
            for i, out in enumerate(outputs)
        )
    return nested(detached(found, create_graph), several_out, several)


def nested(matrices, several_out, several):
    matrices = matrices if several else tuple(row[0] for row in matrices)
    return matrices if several_out else matrices[0]


def all_rows(_, out, inputs, create_graph, strict):
    """The derivatives of an output with respect to the inputs, all rows in one backward pass."""
    n = out.numel()
    basis = Tensor(unit_vectors(out.array, n).reshape(n, *out.array.shape))
    found = grads_of((out,), inputs, (basis,), create_graph, True, batched=True)
    return [zero_rows(x, n) if g is None else g for g, x in zip(found, inputs)]


def zero_rows(x, n):
    return Tensor(zeros_of(x.array)).expand((n, *x.shape))


def one_by_one(i, out, inputs, create_graph, strict):
    """The same, a backward pass for each row."""
    flat, rows = reshape_to(out, (-1,)), []
    for j in range(out.numel()):
        grads = grads_of((select_at(flat, 0, j),), inputs, None, create_graph, True)
        for k, g in enumerate(grads if strict else ()):
            if g is None:
                raise RuntimeError(f"Output {i} of the user-provided function is independent of input {k}." + REFUSED)
            if create_graph and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in "
                    "strict mode when create_graph=True."
                )
        rows.append([Tensor(zeros_of(x.array)) if g is None else g for g, x in zip(grads, inputs)])
    return [stack(column, 0) for column in zip(*rows)] if rows else [zero_rows(x, 0) for x in inputs]


def jacobian_forward(func, inputs, create_graph, strict, vectorize):
    """The Jacobian in forward mode: all columns in one pass."""
    together = "are not supported together (yet). Please either set"
    if create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` '
            f'{together} `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` '
            f'{together} `strict=False` or `strategy="reverse-mode"`.'
        )
    several, inputs = as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )
    from ..transforms.batched import Batched
    from ..transforms.vmap import batch, leave, unbind

    sizes = [x.numel() for x in inputs]
    bases = [unit_vectors(x.array, sum(sizes)) for x in inputs]
    with batch(sum(sizes)) as level, forward_ad.dual_level():
        duals, start = [], 0
        for x, n, basis in zip(inputs, sizes, bases):
            part = basis[:, start : start + n].reshape(sum(sizes), *x.array.shape)
            duals.append(forward_ad.make_dual(x, Tensor(Batched(part, level))))
            start += n
        several_out, outputs = as_tuple(func(*duals), "outputs", None)
        tangents = [forward_ad.unpack_dual(o).tangent for o in outputs]
        tangents = [Tensor(zeros_of(o.array)) if t is None else t for t, o in zip(tangents, outputs)]
        found = [unbind(t, t.array.ndim, level) for t in tangents]
    leave(found, level)
    return nested([columns(j, inputs, sizes) for j in found], several_out, several)  # lists: so PyTorch has it


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a function that returns one number: for each pair of inputs (*input, *input)."""
    several, inputs = as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def single(*inputs):
        outputs, several_out = called(func, inputs, "hessian", strict)
        check_single(outputs, several_out, "hessian")
        return squeeze_all(outputs[0])

    def gradient(*inputs):
        if outer_jacobian_strategy == "forward-mode":
            return gradient_of(single, inputs)
        found = jacobian(single, inputs, create_graph=True)
        check_depend(found, "jacobian", strict)
        return found

    if outer_jacobian_strategy == "forward-mode":  # the result is in a graph, as PyTorch's
        inputs = tuple(x if x.requires_grad else x.detach().requires_grad_() for x in inputs)
    found = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]


def gradient_of(func, inputs):
    """The gradients, recorded, of a function that runs in a forward pass."""
    from ..transforms.func import grad as gradient

    return gradient(func, tuple(range(len(inputs))))(*inputs)
