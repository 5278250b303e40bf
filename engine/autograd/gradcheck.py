"""gradcheck: derivatives as the rules give them against derivatives as central differences estimate them."""

import warnings

import numpy as np

from ..dtypes import float64
from ..graph import grad
from ..tensor import Tensor


class GradcheckError(RuntimeError):
    """What ``gradcheck`` raises: the two Jacobians that differ."""


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, fast_mode=False):
    """Compare the gradients of ``func(*inputs)``, for the inputs that require grad, with central differences.

    Use float64 inputs: with fewer digits, the differences say little.  GradcheckError if an entry of a Jacobian differs
    by more than ``atol + rtol * |numerical|``, False instead if not ``raise_exception``; ValueError if no input
    requires grad.  ``nondet_tol``: how much two backward passes may differ.  ``fast_mode`` is accepted, and checks as
    much.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    variables = checked_inputs(inputs)
    try:
        check_constants(func, inputs, variables, eps)
        for o, output in enumerate(differentiable(func(*inputs))):
            analytical = jacobians(output, variables)
            again = jacobians(differentiable(func(*inputs))[o], variables)
            for i, v in enumerate(variables):
                numerical = differences(lambda o=o: differentiable(func(*inputs))[o].array, v, output, eps)
                if not np.allclose(analytical[i], numerical, rtol, atol):
                    raise GradcheckError(
                        f"Jacobian mismatch for output {o} with respect to input {i},\n"
                        f"numerical:{Tensor(numerical)}\nanalytical:{Tensor(analytical[i])}\n"
                    )
                if not np.allclose(analytical[i], again[i], 0, nondet_tol):
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                        "times gives different values, although analytical gradient matches numerical gradient. The "
                        f"tolerance for nondeterminism was {nondet_tol}."
                    )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, **options):
    """``gradcheck`` of the gradients of ``func``: second derivatives, and those with respect to ``grad_outputs``.

    ``grad_outputs``: random numbers by default.  ``options``: those of ``gradcheck``.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        draw = np.random.default_rng(0).standard_normal
        outputs = differentiable(func(*inputs))
        grad_outputs = [Tensor(np.asarray(draw(o.shape), o.array.dtype)).requires_grad_() for o in outputs]
    grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def gradients(*args):
        inputs, grad_outputs = args[:n], args[n:]
        variables = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
        return grad(differentiable(func(*inputs)), variables, grad_outputs, create_graph=True, allow_unused=True)

    n = len(inputs)
    return gradcheck(gradients, (*inputs, *grad_outputs), **options)


def check_constants(func, inputs, variables, eps):
    """GradcheckError if nothing that ``func`` returns requires grad, though it depends on the inputs."""
    outputs = as_tuple(func(*inputs))
    if not all(isinstance(o, Tensor) for o in outputs):
        raise TypeError("gradcheck expects func to return a Tensor or a tuple of Tensors")
    if any(o.requires_grad for o in outputs):
        return
    for o, output in enumerate(outputs):
        for v in variables if output.dtype.is_floating_point else ():
            if differences(lambda o=o: as_tuple(func(*inputs))[o].array, v, output, eps).any():
                raise GradcheckError("Numerical gradient for function expected to be zero")


def checked_inputs(inputs):
    """The inputs that require grad.  ValueError if there are none; a warning for those of few digits."""
    variables = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not variables:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        if x.dtype is not float64:
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(s == 0 and n > 1 for s, n in zip(x.shared().strides, x.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    return variables


def differentiable(outputs):
    """The outputs that depend on an input that requires grad."""
    return [o for o in as_tuple(outputs) if isinstance(o, Tensor) and o.requires_grad]


def as_tuple(outputs):
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def jacobians(output, variables):
    """For each variable, the matrix of d output[j] / d variable[i], a row for each i: one backward pass for each j."""
    columns = []
    for j in range(output.numel()):
        one = np.zeros(output.shape, output.array.dtype)
        one.flat[j] = 1
        columns.append(grad(output, variables, Tensor(one), retain_graph=True, allow_unused=True))
    return [
        np.stack([np.zeros(v.numel(), v.array.dtype) if g[i] is None else g[i].array.ravel() for g in columns], 1)
        if columns else np.zeros((v.numel(), 0), v.array.dtype)
        for i, v in enumerate(variables)
    ]  # fmt: skip


def differences(compute, variable, output, eps):
    """The same matrix by central differences: the variable's elements are moved by eps, one after the other."""
    x = variable.shared()
    rows = np.zeros((x.size, output.numel()), output.array.dtype)
    for i, place in enumerate(np.ndindex(x.shape)):
        before, ends = x[place], []
        for step in (eps, -eps):
            x[place] = before + step
            ends.append(compute() * 1)
        x[place] = before
        rows[i] = ((ends[0] - ends[1]) / (2 * eps)).ravel()
    return rows
