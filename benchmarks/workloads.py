"""The programs that are timed: what they compute, from which numbers, and what the engine is to reach.

Each adapter writes the same program down as a user of its framework would.  A step is the forward pass, the backward
pass, and whatever the framework asks for between two of them, such as clearing the gradients.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Workload(NamedTuple):
    """One program."""

    says: str  # what it is, for the table
    target: float  # the engine's time as a multiple of PyTorch's, at most
    leaves: tuple[str, ...] = ()  # the inputs whose gradients are wanted
    inputs: Callable[[], dict[str, np.ndarray]] = dict


def normal(*shape, dtype=np.float32, scale=1.0):
    """Normal numbers: the same ones in each process."""
    return (np.random.default_rng(shape).standard_normal(shape) * scale).astype(dtype)


def seed():
    ones, zeros = np.ones(5, np.float32), np.zeros(3, np.float32)
    return {"x": ones, "y": zeros, "w": normal(5, 3), "b": normal(3)}


def scalars():
    return {name: np.array(value, np.float32) for name, value in (("y", 1.0), ("w", 0.99), ("b", 0.01))}


def mlp():
    layers = {"w1": normal(128, 64, scale=0.1), "w2": normal(64, 128, scale=0.1), "w3": normal(10, 64, scale=0.1)}
    biases = {"b1": normal(128), "b2": normal(64), "b3": normal(10)}
    labels = np.random.default_rng(0).integers(0, 10, 64)
    return {"x": normal(64, 64), "y": np.eye(10, dtype=np.float32)[labels], **layers, **biases}


LENGTH_SCALARS, LENGTH_MATRICES = 500, 60  # repetitions in the two chains

WORKLOADS = {
    "seed": Workload("matmul + b, BCE with logits, 5x3", 0.5, ("w", "b"), seed),
    "scalars": Workload("y = y*w + b, 500 times, scalars", 0.35, ("w", "b"), scalars),
    "matrices": Workload(
        "x = tanh(x @ w)*w + w, 60 times, 3x3 float64",
        0.75,
        ("w",),
        lambda: {"x": normal(3, 3, dtype=np.float64), "w": normal(3, 3, dtype=np.float64, scale=0.5)},
    ),
    "large": Workload(
        "mean(exp(tanh(x*0.5)*(x+1) - sigmoid(x))), 1M floats", 1.2, ("x",), lambda: {"x": normal(1_000_000)}
    ),
    "mlp": Workload("MLP 64-128-64-10, batch 64, BCE", 0.5, ("w1", "b1", "w2", "b2", "w3", "b3"), mlp),
    "import": Workload("import, in a fresh process", 0.1),
}
