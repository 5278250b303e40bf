"""gradcheck: derivatives as the rules give them against derivatives as central differences estimate them.

A Jacobian is here a matrix with a row for each element of the input and a column for each of the output.
"""

from functools import partial

import numpy as np

from ..arrays.devices import cpu, moved
from ..arrays.dtypes import float64
from ..arrays.warn import warn
from ..core.tensor import Tensor
from ..ops.shape import stack
from . import messages
from .gradients import grad


class GradcheckError(RuntimeError):
    """What ``gradcheck`` raises: the two Jacobians that differ."""


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False,
              masked=None):  # fmt: skip
    """Compare the derivatives of ``func(*inputs)``, for the inputs that require grad, with central differences.

    Use float64 inputs: with fewer digits, the differences say little.  GradcheckError if an entry of a Jacobian differs
    by more than ``atol + rtol * |numerical|``, False instead if not ``raise_exception``; ValueError if no input
    requires grad.  ``nondet_tol``: how much two backward passes may differ.  ``fast_mode``: one number of each
    Jacobian, v^T J u for random u and v, is compared, not the matrix.  The checks: of gradients where an output has
    none, of their dtypes, of backward and of forward mode, and of both under vmap.  ``masked`` is about sparse tensors.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    check = Check(func, inputs, eps, rtol, atol, fast_mode)
    try:
        check.constants()
        if check_forward_ad:
            check.compare(check.forward, "Jacobian computed with forward mode mismatch", check.forward_product)
        if check_backward_ad:
            check.repeatable(nondet_tol)
            check.compare(check.backward, "Jacobian mismatch", check.backward_product)
            if check_grad_dtypes:
                check.dtypes()
        if check_batched_forward_grad:
            check.batched(check.forward_each, check.forward_together, FORWARD_OPTION)
        if check_batched_grad:
            check.batched(check.backward_each, check.backward_together, OPTION)
        if check_backward_ad and check_undefined_grad:
            check.undefined()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, gen_non_contig_grad_outputs=False, check_fwd_over_rev=False,
                  check_rev_over_rev=True, **options):  # fmt: skip
    """``gradcheck`` of the gradients of ``func``: second derivatives, and those with respect to ``grad_outputs``.

    ``grad_outputs``: random numbers by default.  ``check_fwd_over_rev``, ``check_rev_over_rev``: by which mode the
    gradients are differentiated.  ``options``: those of ``gradcheck``.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, default in (("check_undefined_grad", True), ("check_batched_grad", False)):
        if options.get(name, default) and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        draw = np.random.default_rng(0).standard_normal
        outputs = differentiable_outputs(func(*inputs))
        grad_outputs = [Tensor(there(draw(o.shape), o)).requires_grad_() for o in outputs]
    grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def gradients(*args):
        inputs, grad_outputs = args[:n], args[n:]
        variables = [x for x, at in zip(inputs, moving) if at]
        outputs = differentiable_outputs(func(*inputs))
        return grad(outputs, variables, grad_outputs, create_graph=True, allow_unused=True)

    n, moving = len(inputs), [isinstance(x, Tensor) and x.requires_grad for x in inputs]
    options |= {"check_forward_ad": check_fwd_over_rev, "check_backward_ad": check_rev_over_rev}
    return gradcheck(gradients, (*inputs, *grad_outputs), **options)


class Check:
    """The derivatives of one call, computed in each way."""

    def __init__(self, func, inputs, eps, rtol, atol, fast):
        self.func, self.inputs, self.eps, self.rtol, self.atol, self.fast = func, inputs, eps, rtol, atol, fast
        self.variables = checked_inputs(inputs)
        self.outputs = differentiable_outputs(func(*inputs))
        rng = np.random.default_rng(0)
        self.u = [unit(rng, x) for x in self.variables]
        self.v = [unit(rng, o) for o in self.outputs]

    def output(self, o, *inputs):
        return differentiable_outputs(self.func(*(inputs or self.inputs)))[o]

    def pairs(self):
        return [(o, i) for o in range(len(self.outputs)) for i in range(len(self.variables))]

    def compare(self, analytical, title, product):
        """GradcheckError unless the derivatives of every output with respect to every input are close."""
        for o, i in self.pairs():
            if self.fast:
                got, expected = product(o, i), self.difference_along(o, i, product)
            else:
                got, expected = analytical(o, i), self.differences(o, i)
            if not np.allclose(got, expected, self.rtol, self.atol):
                shown = [float(a) if np.ndim(a) == 0 else Tensor(a) for a in (expected, got)]
                raise GradcheckError(
                    f"{title} for output {o} with respect to input {i},\nnumerical:{shown[0]}\nanalytical:{shown[1]}\n"
                    + (self.in_full(analytical, o, i) if self.fast else "")
                    + f"at input {i}:{self.variables[i].detach()}\n"
                )

    def in_full(self, analytical, o, i):
        got, expected = analytical(o, i), self.differences(o, i)
        return (
            "\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. See: "
            "https://github.com/pytorch/pytorch/issues/53876 for more background \nabout fast mode. Below, we "
            "recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {Tensor(expected)}\nAnalytical:\n{Tensor(got)}\n\n"
            f"The max per-element difference (slow mode) is: {abs(got - expected).max()}.\n"
        )

    # ---- by central differences

    def differences(self, o, i):
        return differences(lambda: self.output(o).array, self.variables[i], self.outputs[o], self.eps)

    def difference_along(self, o, i, product):
        """J u by one central difference; v^T J u to compare with backward mode."""
        x, step = self.variables[i].shared(), self.u[i].array * self.eps
        before, ends = x.copy(), []
        for sign in (1, -1):
            x[...] = before + sign * step
            ends.append(moved(self.output(o).array, cpu) * 1)
        x[...] = before
        slope = (ends[0] - ends[1]) / (2 * self.eps)
        return slope if product == self.forward_product else (slope * moved(self.v[o].array, cpu)).sum()

    # ---- by the rules

    def backward(self, o, i):
        return jacobians(self.outputs[o], [self.variables[i]])[0]

    def backward_product(self, o, i):
        (g,) = grads(self.outputs[o], [self.variables[i]], self.v[o])
        return np.float64(0) if g is None else moved((g * self.u[i]).sum().array, cpu)

    def forward(self, o, i):
        x = self.variables[i]
        columns = [self.pushed(o, i, one) for one in units(x)]
        return np.stack(columns) if columns else np.zeros((0, self.outputs[o].numel()), x.array.dtype)

    def forward_product(self, o, i):
        return self.pushed(o, i, self.u[i]).reshape(self.outputs[o].shape)

    def pushed(self, o, i, tangent):
        """The derivative of an output along a tangent of an input, flat."""
        t = self.along(o, i, tangent)
        return np.zeros(self.outputs[o].numel()) if t is None else moved(t.array, cpu).reshape(-1)

    def along(self, o, i, tangent):
        from .forward_ad import dual_level, make_dual, unpack_dual  # noqa: PLC0415  start-up

        with dual_level():
            x = self.variables[i]
            given = [make_dual(a, tangent) if a is x else a for a in self.inputs]
            wanted = [k for k, a in enumerate(as_tuple(self.func(*self.inputs))) if isinstance(a, Tensor)
                      and a.requires_grad]  # fmt: skip
            return unpack_dual(as_tuple(self.func(*given))[wanted[o]]).tangent

    # ---- further checks

    def constants(self):
        """GradcheckError if nothing that ``func`` returns requires grad, though it depends on the inputs."""
        outputs = as_tuple(self.func(*self.inputs))
        if not all(isinstance(o, Tensor) for o in outputs if o is not None):
            raise TypeError("gradcheck expects func to return a Tensor or a tuple of Tensors")
        if self.outputs:
            return
        for o, output in enumerate(outputs):
            for x in self.variables if output.dtype.is_floating_point else ():
                if differences(lambda o=o: as_tuple(self.func(*self.inputs))[o].array, x, output, self.eps).any():
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def repeatable(self, nondet_tol):
        """GradcheckError if a second backward pass gives something else, though the first one is right."""
        for o, i in self.pairs():
            first, again = self.backward(o, i), jacobians(self.output(o), [self.variables[i]])[0]
            if not np.allclose(first, again, 0, nondet_tol) and np.allclose(
                first, self.differences(o, i), self.rtol, self.atol
            ):
                raise GradcheckError(messages.NOT_REENTRANT.format(nondet_tol))

    def dtypes(self):
        for o in self.outputs:
            for x, g in zip(self.variables, grads(o, self.variables, o)):
                if g is not None and g.dtype is not x.dtype:
                    raise GradcheckError("Gradient has dtype mismatch")

    def undefined(self):
        """GradcheckError if outputs without a gradient are not treated as those with a gradient of zeros."""
        zeros = [Tensor(there(np.zeros(o.shape), o)) for o in self.outputs]
        for k, o in enumerate(self.outputs if len(zeros) > 1 else ()):
            alone = grads(o, self.variables, self.v[k])
            given = [self.v[k] if o is other else zero for other, zero in zip(self.outputs, zeros)]
            for a, b in zip(alone, grads(self.outputs, self.variables, given)):
                if not np.allclose(gradient_array(a, b), gradient_array(b, a)):
                    raise GradcheckError(messages.UNDEFINED_GRADIENTS)

    def backward_each(self, o, i, tangents):
        return [grads(self.outputs[o], [self.variables[i]], t)[0] for t in tangents]

    def backward_together(self, o, i, tangents):
        return grads(self.outputs[o], [self.variables[i]], stack(tangents), is_grads_batched=True)[0]

    def forward_each(self, o, i, tangents):
        return [self.along(o, i, t) for t in tangents]

    def forward_together(self, o, i, tangents):
        from ..transforms.vmap import vmap  # noqa: PLC0415  start-up

        return vmap(lambda t: self.along(o, i, t))(stack(tangents))

    def batched(self, each, together, option):
        """GradcheckError unless the derivatives along two directions are the same by vmap and one after the other."""
        hint = messages.BATCHED_HINT.format(option)
        for o, i in self.pairs():
            rng = np.random.default_rng(1)
            like = self.outputs[o] if each == self.backward_each else self.variables[i]
            tangents = [unit(rng, like) for _ in range(2)]
            try:
                ours, expected = together(o, i, tangents), each(o, i, tangents)
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{hint}") from None
            if ours is None or expected[0] is None:
                continue
            expected = np.stack([moved(e.array, cpu) for e in expected])
            if not np.allclose(moved(ours.array, cpu), expected):
                raise GradcheckError(messages.BATCHED_DIFFERS.format(o, i, hint, ours, Tensor(expected)))


grads = partial(grad, retain_graph=True, allow_unused=True)
OPTION, FORWARD_OPTION = "check_batched_grad", "check_batched_forward_grad"


def unit(rng, t):
    """A random tensor of length 1 in the shape, dtype and place of another."""
    x = rng.uniform(0.1, 1.0, tuple(t.shape))
    return Tensor(there(x / (np.sqrt((x * x).sum()) or 1.0), t))


def units(t):
    """The unit vectors in the shape of a tensor."""
    for k in range(t.numel()):
        one = np.zeros(t.shape)
        one.flat[k] = 1
        yield Tensor(there(one, t))


def gradient_array(g, other):
    """The array of a gradient; zeros for None."""
    if g is None:
        return np.zeros(() if other is None else other.shape)
    return moved(g.array, cpu)


def checked_inputs(inputs):
    """The inputs that require grad.  ValueError if there are none; a warning for those of few digits."""
    variables = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not variables:
        raise ValueError(messages.NO_INPUT_REQUIRES_GRAD)
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        if x.dtype is not float64:
            warn(messages.FEW_DIGITS.format(i))
        if any(s == 0 and n > 1 for s, n in zip(x.shared().strides, x.shape)):
            raise RuntimeError(messages.STRIDE_0.format(i))
    return variables


def differentiable_outputs(outputs):
    """The outputs that depend on an input that requires grad."""
    return [o for o in as_tuple(outputs) if isinstance(o, Tensor) and o.requires_grad]


def as_tuple(outputs):
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def there(x, t):
    """An array in the dtype and on the device of a tensor."""
    return moved(np.asarray(x, t.array.dtype), t.device)


def jacobians(output, variables):
    """For each variable, the matrix of d output[j] / d variable[i], a row for each i: one backward pass for each j."""
    columns = [grads(output, variables, one) for one in units(output)]
    return [
        np.stack([np.zeros(v.numel(), v.array.dtype) if g[i] is None else moved(g[i].array, cpu).ravel()
                  for g in columns], 1)
        if columns else np.zeros((v.numel(), 0), v.array.dtype)
        for i, v in enumerate(variables)
    ]  # fmt: skip


def differences(compute, variable, output, eps):
    """The same matrix by central differences: the variable's elements are moved by eps, one after the other."""
    x = variable.shared()
    rows = np.zeros((x.size, output.numel()), output.array.dtype)
    for i, place in enumerate(np.ndindex(x.shape)):
        before, ends = x[place].copy(), []
        for step in (eps, -eps):
            x[place] = before + step
            ends.append(moved(compute(), cpu) * 1)
        x[place] = before
        rows[i] = ((ends[0] - ends[1]) / (2 * eps)).ravel()
    return rows
