"""gradcheck: derivatives as the rules give them against derivatives as central differences estimate them.

A Jacobian is here a matrix with a row for each element of the input and a column for each of the output.
"""

from functools import cache, partial
from itertools import product

import numpy as np

from ..arrays.devices import cpu, moved
from ..arrays.dtypes import float64
from ..arrays.running import switched
from ..arrays.shapes import common_shape
from ..arrays.warn import warn
from ..core.graph import Node, Output, OutputCotangents, mode, node_class
from ..core.tensor import Tensor
from ..ops.creation import empty_like, randn_like
from ..ops.shape import stack
from . import messages
from .gradients import grad


class GradcheckError(RuntimeError):
    """The error of ``gradcheck``: it shows the two Jacobians that differ."""


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False,
              masked=None):  # fmt: skip
    """Compare the derivatives of ``func(*inputs)``, for the inputs that require grad, with central differences."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    check = Check(func, inputs, eps, rtol, atol, fast_mode)
    try:
        if check_backward_ad:
            check.compare(False, "Jacobian mismatch", partial(check.repeatable, nondet_tol, check_grad_dtypes))
        if check_forward_ad:
            check.compare(True, "Jacobian computed with forward mode mismatch")
            if check_undefined_grad:
                check.undefined_tangents()
        if check_batched_forward_grad:
            check.batched(True, "check_batched_forward_grad")
        if check_batched_grad:
            check.batched(False, "check_batched_grad")
        if check_backward_ad:
            check.multiplied()
            if check_undefined_grad:
                check.undefined()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, gen_non_contig_grad_outputs=False, check_fwd_over_rev=False,
                  check_rev_over_rev=True, **options):  # fmt: skip
    """``gradcheck`` of the gradients of ``func``: second derivatives, and those with respect to ``grad_outputs``."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, default in (("check_undefined_grad", True), ("check_batched_grad", False)):
        if options.get(name, default) and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        outputs = differentiable_outputs(func(*inputs))
        grad_outputs = [empty_like(o).uniform_(-1, 1).requires_grad_() for o in outputs]
    grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def gradients(*args):
        inputs, grad_outputs = args[:n], args[n:]
        variables = [x for x, at in zip(inputs, moving) if at]
        outputs = differentiable_outputs(func(*inputs))
        found = grad(outputs, variables, grad_outputs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    gradients.recorded = True
    n, moving = len(inputs), [isinstance(x, Tensor) and x.requires_grad for x in inputs]
    options |= {"check_forward_ad": check_fwd_over_rev, "check_backward_ad": check_rev_over_rev}
    return gradcheck(gradients, (*inputs, *grad_outputs), **options)


class Check:
    """The derivatives of one call, in both modes and by central differences."""

    def __init__(self, func, inputs, eps, rtol, atol, fast):
        self.func, self.inputs, self.eps, self.fast = func, inputs, eps, fast
        self.close = partial(np.allclose, rtol=rtol, atol=atol)
        self.variables = checked_inputs(inputs)
        self.primal = (lambda x: x) if hasattr(func, "recorded") else Tensor.detach  # which requires no grad
        results = as_tuple(func(*inputs))
        self.wanted = [k for k, o in enumerate(results) if o.requires_grad]
        self.outputs = [results[k] for k in self.wanted]
        self.pairs = [*product(range(len(self.outputs)), range(len(self.variables)))]
        rng = np.random.default_rng(0)
        self.u = [unit(rng, x) for x in self.variables]
        self.v = [unit(rng, o) for o in self.outputs]
        self.two = cache(lambda o: two_like(self.outputs[o]))
        self.pushed_u = cache(lambda i: self.pushed(i, self.u[i]))
        self.pushed_units = cache(lambda i: [self.pushed(i, t) for t in units(self.variables[i])])

    def output(self, o):
        return differentiable_outputs(self.func(*self.inputs))[o]

    def pulled(self, o, i, g, **options):
        """The cotangent of an input from that of an output."""
        return grads(self.outputs[o], [self.variables[i]], g, **options)[0]

    def pushed(self, i, t):
        """The tangents of all outputs from that of an input."""
        from .forward_ad import dual_level, make_dual, unpack_dual  # noqa: PLC0415  start-up

        with dual_level():
            of = {id(x): zeros(x) for x in self.variables} | {id(self.variables[i]): t}
            given = [make_dual(self.primal(a), of[id(a)]) if id(a) in of else a for a in self.inputs]
            results = as_tuple(self.func(*given))
            tangents = [unpack_dual(results[k]).tangent for k in self.wanted]
        return tuple([zeros(y) if u is None else u for u, y in zip(tangents, self.outputs)])

    def jacobian(self, forward, o, i):
        x, y = self.variables[i], self.outputs[o]
        if forward:
            rows = [host_array(tangents[o]) for tangents in self.pushed_units(i)]
            return np.array(rows, y.array.dtype).reshape(x.numel(), y.numel())
        rows = [host_array(self.pulled(o, i, g), x) for g in units(y)]
        return np.array(rows, x.array.dtype).reshape(y.numel(), x.numel()).T

    def differences(self, o, i):
        return differences(lambda: self.output(o), self.variables[i], self.outputs[o], self.eps)

    def products(self, forward, o, i):
        """(v^T J u by the rules, by one central difference); in forward mode J u."""
        x, y, u, v = self.variables[i], self.outputs[o], self.u[i], self.v[o]
        got = host_array(self.pushed_u(i)[o] if forward else self.pulled(o, i, v), y if forward else x)
        slope = difference(lambda: self.output(o), x.shared(), ..., u.array * self.eps, self.eps)
        common_shape(y.array.shape, slope.shape)
        return (got, slope) if forward else ((got * host_array(u)).sum(), (slope * host_array(v)).sum())

    def compare(self, forward, title, look=lambda o: None):
        """GradcheckError unless the derivatives of every output with respect to every input are close.

        ``look(o)`` comes before an output's.
        """
        if not self.outputs:
            self.constants()
        numerical = {} if self.fast else {pair: self.differences(*pair) for pair in self.pairs}
        for o, i in self.pairs:
            if i == 0:
                look(o)
            if self.fast:
                got, expected = self.products(forward, o, i)
            else:
                got, expected = self.jacobian(forward, o, i), numerical[o, i]
            if not self.close(got, expected):
                shown = [float(a) if np.ndim(a) == 0 else Tensor(a) for a in (expected, got)]
                raise GradcheckError(
                    f"{title} for output {o} with respect to input {i},\nnumerical:{shown[0]}\nanalytical:{shown[1]}\n"
                    + (in_full(self.jacobian(forward, o, i), self.differences(o, i)) if self.fast else "")
                    + f"at input {i}:{self.variables[i].detach()}\n"
                )

    # ---- further checks

    def constants(self):
        """GradcheckError if what ``func`` returns depends on the inputs, though nothing of it requires grad."""
        for o, output in enumerate(as_tuple(self.func(*self.inputs))):
            for x in self.variables if output.dtype.is_floating_point else ():
                if differences(lambda o=o: as_tuple(self.func(*self.inputs))[o], x, output, self.eps).any():
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def repeatable(self, nondet_tol, dtypes, o):
        """GradcheckError if a second backward pass gives something else; with ``dtypes``, for another dtype, too."""
        for x, g in zip(self.variables, grads(self.outputs[o], self.variables, self.outputs[o]) if dtypes else ()):
            if g is not None and g.dtype is not x.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
        for i in range(len(self.variables)):
            if not np.allclose(self.jacobian(False, o, i), self.jacobian(False, o, i), 0, nondet_tol, equal_nan=True):
                raise GradcheckError(messages.NOT_REENTRANT.format(nondet_tol))

    def multiplied(self):
        """GradcheckError unless gradients of zeros give gradients of zeros, in the dtype and shape of the inputs."""
        found = grads(self.outputs, self.variables, [zeros(o) for o in self.outputs]) if self.outputs else ()
        for x, g in zip(self.variables, found):
            if g is not None and g.array.any():
                raise GradcheckError("backward not multiplied by grad_output")
            if g is not None and g.dtype is not x.dtype:
                raise GradcheckError("grad is incorrect type")

    def undefined(self):
        """GradcheckError if a backward pass cannot do without the gradients of all outputs, or of one."""
        chosen: list = [{*range(len(self.outputs))}, *({k} for k in range(len(self.outputs)) if len(self.outputs) > 1)]
        for without in chosen if self.outputs else ():
            outputs = differentiable_outputs(self.func(*self.inputs))
            ends = [undefined_gradient(o) if k in without else o for k, o in enumerate(outputs)]
            try:
                found = grads(ends, self.variables, [zeros(o) for o in outputs])
            except RuntimeError as error:
                warn(messages.UNDEFINED_IS_NEW)
                raise GradcheckError(messages.UNDEFINED_NOT_HANDLED) from error
            if any(g is not None and g.array.any() for g in found):
                warn(messages.UNDEFINED_IS_NEW)
                raise GradcheckError(messages.UNDEFINED_GRADIENTS)

    def undefined_tangents(self):
        """GradcheckError if an input without a tangent does not count as one whose tangent is zero."""
        from .forward_ad import dual_level, make_dual, unpack_dual  # noqa: PLC0415  start-up

        for x in self.variables:
            with dual_level():
                tangents = []
                for t in (zeros(x), None):
                    of = {id(v): u for v, u in zip(self.variables, self.u)} | {id(x): t}
                    given = [self.primal(a) if id(a) in of else a for a in self.inputs]
                    given = [
                        a if of.get(id(b)) is None else make_dual(a, of[id(b)]) for a, b in zip(given, self.inputs)
                    ]
                    outputs = [o for o in as_tuple(self.func(*given)) if o.dtype.is_floating_point]
                    tangents.append([unpack_dual(o).tangent for o in outputs])
            for o, (a, b) in enumerate(zip(*tangents)):
                if a is not None and b is not None and not np.allclose(host_array(a), host_array(b)):
                    raise GradcheckError(
                        "Mismatch in tangent values for output with index: ", o, " when input: ", x,
                        " has an undefined tangent value. ", " Got: ", a, " but expected: ", b,
                    )  # fmt: skip

    def batched(self, forward, option):
        """GradcheckError unless the derivatives along two directions are the same by vmap and one after the other."""
        hint = messages.BATCHED_HINT.format(option)
        pushed = cache(self.pushed_batch)
        for o, i in self.pairs:
            try:
                if forward:
                    ours, *expected = (tangents[o] for tangents in pushed(i))
                else:
                    ours, *expected = self.pulled_batch(o, i)
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{hint}") from None
            if ours is None or expected[0] is None:
                continue
            expected = np.stack([*map(host_array, expected)])
            if not np.allclose(host_array(ours), expected):
                raise GradcheckError(messages.BATCHED_DIFFERS.format(o, i, hint, ours, Tensor(expected)))

    def pushed_batch(self, i):
        """The tangents of all outputs along two directions, by vmap and one after the other."""
        from ..transforms.vmap import vmap  # noqa: PLC0415  start-up

        two, push = two_like(self.variables[i]), partial(self.pushed, i)
        with switched(mode, checking=True):
            together = vmap(push)(stack(two))
        return together, *map(push, two)

    def pulled_batch(self, o, i):
        """The cotangents of an input from two of an output, by vmap and one after the other."""
        two, pull = self.two(o), partial(self.pulled, o, i)
        with switched(mode, checking=True):
            together = pull(stack(two), is_grads_batched=True)
        return together, *map(pull, two)


grads = partial(grad, retain_graph=True, allow_unused=True)


def in_full(got, expected):
    """Describe two Jacobians of which products differ."""
    return messages.FAST_MODE.format(Tensor(expected), Tensor(got), abs(got - expected).max())


def unit(rng, t):
    """A random tensor of length 1 in the shape, dtype and place of another."""
    x = rng.uniform(0.1, 1.0, tuple(t.shape))
    return there(x / (np.sqrt((x * x).sum()) or 1.0), t)


def two_like(t):
    return [randn_like(t) for _ in range(2)]


def units(t):
    """A tensor for each element of another: 1 there, and 0 elsewhere."""
    return [there(x, t) for x in np.eye(t.numel()).reshape(-1, *t.shape)] if t.numel() else []


def zeros(t):
    return there(np.zeros(t.shape), t)


def undefined_gradient(output):
    """The output as one whose gradient is undefined, whatever gradient it is given."""
    node = output.node
    if type(node) is Output:  # a custom Function's backward is asked nevertheless
        return Tensor(output.array, NoCotangent((node.parents[0],), ()))
    return Tensor(output.array, UndefinedGrad((node,), ()))


NoCotangent = node_class("UndefinedGradBackward", lambda g: OutputCotangents())


class UndefinedGrad(Node):
    """Passes on no gradient: the hooks of the node behind see None, and it gives none."""

    __module__ = "builtins"
    name = lambda self: "UndefinedGradBackward"  # noqa: E731

    def vjp(self, g, saved, parents):
        for hook in self.parents[0].hooks:
            hook(None)
        return (None,)


def there(x, t):
    """An array as a tensor in the dtype and on the device of another."""
    return Tensor(moved(np.asarray(x, t.array.dtype), t.device))


def host_array(t, like=None):
    """The array of a tensor, in host memory; for None zeros, as many as another has."""
    return np.zeros(() if like is None else like.shape) if t is None else moved(t.array, cpu)


def checked_inputs(inputs):
    """The inputs that require grad.  ValueError if there are none; a warning for those of few digits."""
    variables = {i: x for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad}
    if not variables:
        raise ValueError(messages.NO_INPUT_REQUIRES_GRAD)
    for i, x in variables.items():
        if x.dtype is not float64:
            warn(messages.FEW_DIGITS.format(i))
        if any(s == 0 and n > 1 for s, n in zip(x.shared().strides, x.shape)):
            raise RuntimeError(messages.STRIDE_0.format(i))
    return [*variables.values()]


def differentiable_outputs(outputs):
    """The outputs that depend on an input that requires grad."""
    return [o for o in as_tuple(outputs) if o.requires_grad]


def as_tuple(outputs):
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def differences(compute, variable, output, eps):
    """The Jacobian by central differences: the variable's elements are moved by eps, one after the other."""
    x = variable.shared()
    rows = [difference(compute, x, place, eps, eps) for place in np.ndindex(x.shape)]
    rows = [Tensor(np.asarray(row).reshape(-1)).expand(output.numel()).array for row in rows]
    return np.array(rows, output.array.dtype).reshape(x.size, output.numel())


def difference(compute, x, place, step, eps):
    """The slope of a result as part of x is moved by a step in one direction and in the other.

    AssertionError if it has another shape or dtype there.
    """
    before, ends = x[place].copy(), []
    for sign in (-1, 1):
        x[place] = before + sign * step
        ends.append(compute().detach().clone())
    x[place] = before
    for what, (a, b) in (("shape", [e.shape for e in ends]), ("dtype", [e.dtype for e in ends])):
        if a != b:
            where = "" if place is ... else f"on index {place} "
            raise AssertionError(messages.CHANGED.format(what, where, eps, a, b))
    low, high = (moved(e.array, cpu) for e in ends)
    return (high - low) / (2 * eps)
