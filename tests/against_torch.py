"""The oracles of the tests of operations: PyTorch itself, and finite differences where it is not installed.

A case is one line of Python, such as ``F.mse_loss(x, y)``, which both libraries run on the same inputs.
"""

import importlib
import math
import re
import warnings

import numpy as np

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 4e-2}


def cases(text):
    """The lines of a table."""
    return [line for line in text.strip().splitlines() if line and not line.startswith("#")]


def library(name):
    """The module itself and its functional namespace, under the names that the cases use."""
    return importlib.import_module(name), importlib.import_module(name + ".nn.functional")


def run(name, expression, inputs, fixed=()):
    """(result, the inputs as tensors) of an expression in one of the libraries; those not ``fixed`` require grad."""
    module, functional = library(name)
    tensors = {k: module.tensor(v) for k, v in inputs.items() if isinstance(v, np.ndarray)}
    for k, t in tensors.items():
        t.requires_grad_(k not in fixed and t.is_floating_point())
    names = {**inputs, **tensors, "torch": module, "F": functional, "inf": math.inf, "nan": math.nan}
    return eval(expression, {}, names), tensors


def outputs(result):
    """The tensors of a result: itself, or those of a tuple."""
    return [result] if hasattr(result, "requires_grad") else list(result)


def values(tensor):
    """A tensor as a float64 or an exact array."""
    t = tensor.detach()
    return np.array(t.double().numpy() if t.is_floating_point() else t.numpy())


def assert_close(a, b, expression, what, tolerance=None):
    """Equal shapes and dtypes; equal values, as nearly as the dtype holds them or within a tolerance."""
    assert str(a.dtype) == str(b.dtype), f"{what} of {expression}"
    assert tuple(a.shape) == tuple(b.shape), f"{what} of {expression}"
    tolerance = tolerance or TOLERANCE.get(str(b.dtype).removeprefix("torch."), 0)
    np.testing.assert_allclose(values(a), values(b), tolerance, tolerance, err_msg=f"{what} of {expression}")


def chain(node):
    """The names of the nodes from which a result was computed, as nested tuples."""
    if node is None:
        return None
    name = node.name().removeprefix("torch::autograd::")
    return (name, *(chain(n) for n, _ in node.next_functions))


def gradients(module, results, inputs, seed, create_graph):
    """The gradients of the weighted sum of the results, some of which may be None or constant."""
    rng = np.random.default_rng(seed)
    weights = [None if r is None else rng.uniform(0.5, 1.5, tuple(r.shape)) for r in results]
    pairs = [(r, module.tensor(w).to(r.dtype)) for r, w in zip(results, weights, strict=True) if depends(r)]
    if not pairs:
        return [None] * len(inputs)
    results, weights = map(list, zip(*pairs, strict=True))
    return module.autograd.grad(results, inputs, weights, create_graph=create_graph, allow_unused=True)


def depends(result):
    """Whether a result was computed from an input."""
    return result is not None and result.requires_grad


def compare(expression, inputs, fixed=(), second=True, tolerance=None):
    """Assert that the engine does what PyTorch does: values, dtypes, shapes, nodes, gradients and gradients of those.

    Returns the tensors of both results.
    """
    found = {}
    for name in ("engine", "torch"):
        module, _ = library(name)
        result, tensors = run(name, expression, inputs, fixed)
        leaves = [t for t in tensors.values() if t.requires_grad]
        entry = found[name] = {"result": outputs(result)}
        entry["first"] = gradients(module, entry["result"], leaves, 1, second)
        entry["second"] = gradients(module, entry["first"], leaves, 2, False) if second else []
    mine, theirs = found["engine"], found["torch"]
    assert len(mine["result"]) == len(theirs["result"]), expression
    for a, b in zip(mine["result"], theirs["result"], strict=True):
        assert_close(a, b, expression, "the value", tolerance)
        assert chain(a.grad_fn) == chain(b.grad_fn), f"the graph of {expression}"
    for order in ("first", "second"):
        for a, b in zip(mine[order], theirs[order], strict=True):
            if b is None or a is None:  # nothing and zeros are the same gradient
                known = a if b is None else b
                assert known is None or not values(known).any(), f"the {order} gradient of {expression}"
            else:
                assert_close(a, b, expression, f"the {order} gradient", tolerance)
    return mine["result"], theirs["result"]


def error(name, expression, inputs):
    """The exception that an expression raises."""
    try:
        result, _ = run(name, expression, inputs)
    except Exception as e:  # whatever it is, it is compared
        return e
    raise AssertionError(f"{name} raises nothing for {expression}, but gives {result}")


def compare_errors(expression, inputs):
    """Assert that the engine raises PyTorch's type of exception, with PyTorch's first sentence."""
    mine, theirs = (error(name, expression, inputs) for name in ("engine", "torch"))
    kind = next(k for k in type(theirs).__mro__ if k.__module__ == "builtins")
    assert isinstance(mine, kind), f"{expression}: {mine!r}, not {theirs!r}"
    first = [re.split(r"\.\s|\n", str(e))[0].rstrip(".") for e in (mine, theirs)]
    assert first[0] == first[1], expression


def projections(expression, inputs, fixed, order):
    """(by the engine, by finite differences): a directional derivative of the weighted result, or of its gradient."""
    module, _ = library("engine")
    inputs = {k: v.astype(np.float64) if is_floating(v) else v for k, v in inputs.items()}
    moving = [k for k in inputs if is_floating(inputs[k]) and k not in fixed]
    rng = np.random.default_rng(3)
    direction = {k: rng.uniform(-1, 1, inputs[k].shape) for k in moving}

    def weighted(step, differentiate):
        moved = {k: np.asarray(v + step * direction[k]) if k in direction else v for k, v in inputs.items()}
        result, tensors = run("engine", expression, moved, fixed)
        leaves, results = [tensors[k] for k in moving], outputs(result)
        for o in range(1, order):
            results = gradients(module, results, leaves, o, True)
        if differentiate:
            grads = gradients(module, results, leaves, order, False)
            return sum((values(g) * direction[k]).sum() for g, k in zip(grads, moving, strict=True) if g is not None)
        rng = np.random.default_rng(order)
        weights = [None if r is None else rng.uniform(0.5, 1.5, tuple(r.shape)) for r in results]
        return sum((values(r) * w).sum() for r, w in zip(results, weights, strict=True) if depends(r))

    step = 1e-6
    return weighted(0.0, True), (weighted(step, False) - weighted(-step, False)) / (2 * step)


def is_floating(v):
    return isinstance(v, np.ndarray) and v.dtype.kind == "f"


def check_derivatives(expression, inputs, fixed=(), orders=(1, 2)):
    """Assert that the gradients of the engine are those that finite differences give, to the second order."""
    for order in orders:
        exact, numeric = projections(expression, inputs, fixed, order)
        assert math.isclose(exact, numeric, rel_tol=1e-5, abs_tol=1e-6), (
            f"order {order} of {expression}: {exact}, {numeric}"
        )


def outcome(name, program):
    """What ``program(t)`` gives in one of the libraries, in plain values: its result or its error, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(program(importlib.import_module(name)))
        except Exception as e:
            kind = next(k for k in type(e).__mro__ if k.__module__ == "builtins")
            result = kind.__name__, str(e)
    said = [str(w.message).partition(" (Triggered internally")[0] for w in caught]
    return result, [words for words in said if "reference cycle" not in words]  # of which a process hears once


def plain(value):
    """Tensors as (numbers, whether they require grad), in whatever lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "detach"):
        return plain(value.tolist()), value.requires_grad
    return float(f"{value:.5g}") if isinstance(value, float) else value
