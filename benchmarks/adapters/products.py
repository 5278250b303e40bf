"""The products of a workload by themselves, at its own shapes, by NumPy's BLAS into arrays that are there."""

import numpy as np

from ..floor import PRODUCTS
from ..workloads import normal


def prepare(name):
    calls = [arrays(product) for product in PRODUCTS[name]]

    def step():
        for a, b, out in calls:
            np.matmul(a, b, out=out)

    def result():
        step()
        return {str(i): out for i, (_, _, out) in enumerate(calls)}

    return step, result


def arrays(product):
    """(a, b, what the product is written to)."""
    count, m, k, n, transposed = product
    a = normal(count, k, m).transpose(0, 2, 1) if transposed == "a" else normal(count, m, k)
    b = normal(count, n, k).transpose(0, 2, 1) if transposed == "b" else normal(count, k, n)
    if count == 1:
        a, b = a[0], b[0]
    return a, b, np.matmul(a, b)
