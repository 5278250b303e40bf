"""The oracles of the tests of operations: PyTorch itself, and finite differences where it is not installed.

A case is one line of Python, such as ``F.mse_loss(x, y)``, which both libraries run on the same inputs.
"""

import importlib
import math
import re

import numpy as np

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 4e-2}


def cases(text):
    """The lines of a table."""
    return [line for line in text.strip().splitlines() if line and not line.startswith("#")]


def library(name):
    """The module itself and its functional namespace, under the names that the cases use."""
    return importlib.import_module(name), importlib.import_module(name + ".nn.functional")


def run(name, expression, inputs, requires_grad=True):
    """(result, the inputs as tensors) of an expression in one of the libraries."""
    module, functional = library(name)
    tensors = {k: module.tensor(v) for k, v in inputs.items() if isinstance(v, np.ndarray)}
    for t in tensors.values():
        t.requires_grad_(requires_grad and t.is_floating_point())
    names = {**inputs, **tensors, "torch": module, "F": functional, "inf": math.inf, "nan": math.nan}
    return eval(expression, {}, names), tensors  # noqa: S307  (the tables of the tests)


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


def gradients(module, results, inputs, weights, create_graph):
    """The gradients of the weighted sum of the results."""
    pairs = [(r, w) for r, w in zip(results, weights, strict=False) if r.requires_grad]
    grads = [module.tensor(w).to(r.dtype) for r, w in pairs]
    return module.autograd.grad([r for r, _ in pairs], inputs, grads, create_graph=create_graph, allow_unused=True)


def weights_for(shapes, seed=7):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.5, shape) for shape in shapes]


def compare(expression, inputs, second=True, tolerance=None):
    """Assert that the engine does what PyTorch does: values, dtypes, shapes, nodes, gradients and gradients of those."""
    found = {}
    for name in ("engine", "torch"):
        module, _ = library(name)
        result, tensors = run(name, expression, inputs)
        results = outputs(result)
        leaves = [t for t in tensors.values() if t.requires_grad]
        entry = found[name] = {"result": results, "first": [], "second": []}
        if not any(r.requires_grad for r in results):
            continue
        weights = weights_for([tuple(r.shape) for r in results])
        entry["first"] = gradients(module, results, leaves, weights, second)
        reached = [g for g in entry["first"] if g is not None and g.requires_grad]
        if second and reached:
            entry["second"] = gradients(module, reached, leaves, weights_for([tuple(g.shape) for g in reached]), False)
    mine, theirs = found["engine"], found["torch"]
    assert len(mine["result"]) == len(theirs["result"]), expression
    for a, b in zip(mine["result"], theirs["result"], strict=True):
        assert_close(a, b, expression, "the value", tolerance)
        assert chain(a.grad_fn) == chain(b.grad_fn), f"the graph of {expression}"
    for order in ("first", "second"):
        for a, b in zip(mine[order], theirs[order], strict=False):
            if b is None or a is None:  # nothing and zeros are the same gradient
                known = a if b is None else b
                assert known is None or not values(known).any(), f"the {order} gradient of {expression}"
            else:
                assert_close(a, b, expression, f"the {order} gradient", tolerance)
    return mine, theirs


def error(name, expression, inputs):
    """The exception that an expression raises."""
    try:
        result, _ = run(name, expression, inputs)
    except Exception as e:  # noqa: BLE001  (whatever it is, it is compared)
        return e
    raise AssertionError(f"{name} raises nothing for {expression}, but gives {result}")


def compare_errors(expression, inputs):
    """Assert that the engine raises PyTorch's type of exception, with PyTorch's first sentence."""
    mine, theirs = (error(name, expression, inputs) for name in ("engine", "torch"))
    kind = next(k for k in type(theirs).__mro__ if k.__module__ == "builtins")
    assert isinstance(mine, kind), f"{expression}: {mine!r}, not {theirs!r}"
    first = [re.split(r"\.\s|\n", str(e))[0].rstrip(".") for e in (mine, theirs)]
    assert first[0] == first[1], expression


def projections(expression, inputs, order):
    """(by the engine, by finite differences): a directional derivative of the weighted result, or of its gradient."""
    module, _ = library("engine")
    inputs = {k: v.astype(np.float64) if is_floating(v) else v for k, v in inputs.items()}
    moving = [k for k in inputs if is_floating(inputs[k])]
    rng = np.random.default_rng(3)
    direction = {k: rng.uniform(-1, 1, inputs[k].shape) for k in moving}

    def weighted(step, differentiate):
        moved = {k: np.asarray(v + step * direction[k]) if k in direction else v for k, v in inputs.items()}
        result, tensors = run("engine", expression, moved)
        leaves = [tensors[k] for k in moving]
        results = [r for r in outputs(result) if r.requires_grad]
        for o in range(1, order):
            weights = weights_for([r.shape for r in results], o)
            results = [g for g in gradients(module, results, leaves, weights, True) if g is not None and g.requires_grad]
        if not results:
            return 0.0
        weights = weights_for([r.shape for r in results], order)
        if not differentiate:
            return sum((values(r) * w).sum() for r, w in zip(results, weights, strict=True))
        grads = gradients(module, results, leaves, weights, False)
        return sum((values(g) * direction[k]).sum() for g, k in zip(grads, moving, strict=True) if g is not None)

    step = 1e-6
    return weighted(0.0, True), (weighted(step, False) - weighted(-step, False)) / (2 * step)


def is_floating(v):
    return isinstance(v, np.ndarray) and v.dtype.kind == "f"


def check_derivatives(expression, inputs, orders=(1, 2)):
    """Assert that the gradients of the engine are those that finite differences give, to the second order."""
    for order in orders:
        exact, numeric = projections(expression, inputs, order)
        assert math.isclose(exact, numeric, rel_tol=1e-5, abs_tol=1e-6), f"order {order} of {expression}: {exact}, {numeric}"
