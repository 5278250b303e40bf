"""NumPy with the derivatives worked out by hand: the least that a Python framework on NumPy can take."""

import numpy as np

from ..workloads import LENGTH_MATRICES, LENGTH_SCALARS, WORKLOADS


def prepare(name):
    inputs = {
        k: v if v.ndim else v[()] for k, v in WORKLOADS[name].inputs().items()
    }  # NumPy's scalars are its fast 0-d arrays

    def step():
        return globals()[name](**inputs)

    def result():
        return dict(zip(("loss", *WORKLOADS[name].leaves), step(), strict=True))

    return step, result


def bce_with_logits(z, y):
    """The loss and its derivative by z."""
    e = np.exp(-np.abs(z))
    loss = (np.maximum(z, 0) - z * y + np.log1p(e)).mean()
    return loss, (np.where(z < 0, e, np.float32(1)) / (1 + e) - y) / z.size


def seed(x, y, w, b):
    loss, g = bce_with_logits(x @ w + b, y)
    return loss, x[:, None] * g, g


def scalars(y, w, b):
    before = []
    for _ in range(LENGTH_SCALARS):
        before.append(y)
        y = y * w + b
    g, gw, gb = y.dtype.type(1), 0, 0
    for z in reversed(before):
        gb = gb + g
        gw = gw + g * z
        g = g * w
    return y, gw, gb


def matrices(x, w):
    steps = []
    for _ in range(LENGTH_MATRICES):
        t = np.tanh(x @ w)
        steps.append((x, t))
        x = t * w + w
    g, gw, wt = np.ones_like(x), np.zeros_like(w), w.T
    for before, t in reversed(steps):
        gw += g
        gw += g * t
        h = g * w * (1 - t * t)
        gw += before.T @ h
        g = h @ wt
    return x.sum(), gw


def large(x):
    t, u, s = np.tanh(x * 0.5), x + 1, 1 / (1 + np.exp(-x))
    e = np.exp(t * u - s)
    return e.mean(), (e / x.size) * (t + u * (1 - t * t) * 0.5 - s * (1 - s))


def mlp(x, y, w1, b1, w2, b2, w3, b3):
    h1 = np.maximum(x @ w1.T + b1, 0)
    h2 = np.maximum(h1 @ w2.T + b2, 0)
    loss, g3 = bce_with_logits(h2 @ w3.T + b3, y)
    g2 = g3 @ w3 * (h2 > 0)
    g1 = g2 @ w2 * (h1 > 0)
    return loss, g1.T @ x, g1.sum(0), g2.T @ h1, g2.sum(0), g3.T @ h2, g3.sum(0)
