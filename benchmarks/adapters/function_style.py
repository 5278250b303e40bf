"""Functions that are transformed: HIPS autograd and JAX run this same code, each with its own ``numpy``."""

from itertools import pairwise

import numpy

from ..workloads import LENGTH_MATRICES, LENGTH_SCALARS, WORKLOADS

CHECKED = 2  # steps after which the loss is looked at where there is an optimizer


def prepare(np, value_and_grad, name):
    """(step, result) of a workload; ``value_and_grad(f, positions)`` gives f's value and gradients."""
    return prepared(globals()[name], np, value_and_grad, name)


def weights(shape):
    """The gradient of a layer's result."""
    return numpy.random.default_rng(0).standard_normal(shape).astype(numpy.float32)


def parameters(sizes):
    """What linear layers of these sizes begin with after ``manual_seed(0)``: the engine draws PyTorch's numbers."""
    import engine

    engine.manual_seed(0)
    layers = [engine.nn.Linear(m, n) for m, n in pairwise(sizes)]
    return [p.detach().numpy() for layer in layers for p in layer.parameters()]


def prepared(loss, np, value_and_grad, name):
    """The same of any function."""
    leaves, inputs = WORKLOADS[name].leaves, WORKLOADS[name].inputs()
    names = loss.__code__.co_varnames[1 : loss.__code__.co_argcount]
    transformed = value_and_grad(lambda *args: loss(np, *args), tuple(names.index(k) for k in leaves))
    args = [np.array(inputs[k]) for k in names]

    def step():
        return transformed(*args)

    def result():
        value, grads = step()
        return {"loss": value, **dict(zip(leaves, grads, strict=True))}

    return step, result


def bce_with_logits(np, z, y):
    return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))


def seed(np, x, y, w, b):
    return bce_with_logits(np, np.matmul(x, w) + b, y)


def scalars(np, y, w, b):
    for _ in range(LENGTH_SCALARS):
        y = y * w + b
    return y


def matrices(np, x, w):
    for _ in range(LENGTH_MATRICES):
        x = np.tanh(np.matmul(x, w)) * w + w
    return np.sum(x)


def large(np, x):
    return np.mean(np.exp(np.tanh(x * 0.5) * (x + 1) - 1 / (1 + np.exp(-x))))


def mlp(np, x, y, w1, b1, w2, b2, w3, b3):
    x = np.maximum(np.matmul(x, w1.T) + b1, 0)
    x = np.maximum(np.matmul(x, w2.T) + b2, 0)
    return bce_with_logits(np, np.matmul(x, w3.T) + b3, y)
