"""micrograd, which has Python's numbers and no arrays."""

import sys

from micrograd.engine import Value

from ..workloads import LENGTH_SCALARS, WORKLOADS

sys.setrecursionlimit(10 * LENGTH_SCALARS)  # its backward pass recurses along the graph


def prepare(name):
    values = {k: Value(float(v)) for k, v in WORKLOADS[name].inputs().items()}
    y, w, b = values["y"], values["w"], values["b"]

    def step():
        w.grad = b.grad = 0
        z = y
        for _ in range(LENGTH_SCALARS):
            z = z * w + b
        z.backward()
        return z

    def result():
        return {"loss": step().data, "w": w.grad, "b": b.grad}

    return step, result
