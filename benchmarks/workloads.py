"""The programs that are timed: what they compute, from which numbers, and what the engine is to reach.

Each adapter writes the same program down as a user of its framework would.  A step is the forward pass, the backward
pass, and whatever the framework asks for between two of them, such as clearing the gradients.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from . import operations


class Workload(NamedTuple):
    """One program."""

    says: str  # what it is, for the table
    target: float  # the engine's time as a multiple of PyTorch's, at most
    leaves: tuple[str, ...] = ()  # the inputs whose gradients are wanted
    inputs: Callable[[], dict[str, np.ndarray]] = dict
    compiled: float | None = None  # the same of the compiled engine's time
    of_jax: float | None = None  # the compiled engine's time as a multiple of JAX's, at most
    of_products: float | None = None  # of that of the products alone, where these take more than 0.9 of ``compiled``


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


def convnet():
    """32 images of 28 x 28, and two convolutions and a linear layer."""
    weights = {"w1": normal(16, 1, 3, 3, scale=0.3), "w2": normal(32, 16, 3, 3, scale=0.1)}
    biases = {f"b{i}": normal(n, scale=0.1) for i, n in enumerate((16, 32, 10), 1)}
    labels = np.random.default_rng(0).integers(0, 10, 32)
    return {"x": normal(32, 1, 28, 28), "y": labels, **weights, "w3": normal(10, 800, scale=0.03), **biases}


def block():
    """8 sequences of 64 vectors, and a transformer block of 64 features with 4 heads."""
    d, h = 64, 256
    weights = {"qkv": (3 * d, d), "out": (d, d), "up": (h, d), "down": (d, h)}
    weights = {k: normal(*shape, scale=0.1) for k, shape in weights.items()}
    biases = {f"b_{k}": normal(len(w), scale=0.1) for k, w in weights.items()}
    norms = {"w1": np.ones(d, np.float32), "b1": normal(d), "w2": np.ones(d, np.float32), "b2": normal(d)}
    return {"x": normal(8, 64, d), **weights, **biases, **norms}


def heads():
    """Queries, keys and values."""
    return dict(zip("qkv", normal(3, 8, 4, 64, 16), strict=True))


def examples(batch, features):
    """A batch of examples and their classes."""
    return {"x": normal(batch, features), "y": np.random.default_rng(0).integers(0, 10, batch)}


SIZES = {  # of the layers of the models that are trained, or asked
    "training": (64, 128, 64, 10), "training_large": (784, 512, 512, 10), "inference": (64, 128, 64, 10),
}  # fmt: skip
LENGTH_SCALARS, LENGTH_MATRICES = 500, 60  # repetitions in the two chains

WORKLOADS = {
    "seed": Workload("matmul + b, BCE with logits, 5x3", 0.5, ("w", "b"), seed),
    "scalars": Workload("y = y*w + b, 500 times, scalars", 0.35, ("w", "b"), scalars, compiled=0.02),
    "matrices": Workload(
        "x = tanh(x @ w)*w + w, 60 times, 3x3 float64",
        0.75,
        ("w",),
        lambda: {"x": normal(3, 3, dtype=np.float64), "w": normal(3, 3, dtype=np.float64, scale=0.5)},
    ),
    "large": Workload(
        "mean(exp(tanh(x*0.5)*(x+1) - sigmoid(x))), 1M floats",
        1.2,
        ("x",),
        lambda: {"x": normal(1_000_000)},
        compiled=0.2,
        of_jax=1.0,
    ),
    "mlp": Workload("MLP 64-128-64-10, batch 64, BCE", 0.5, ("w1", "b1", "w2", "b2", "w3", "b3"), mlp),
    "convnet": Workload(
        "conv 1-16-32, ReLU, max pooling, linear, cross entropy, 32x1x28x28", 2.0, tuple(convnet())[2:], convnet, 1.0
    ),
    "block": Workload("transformer block 8x64x64, 4 heads, with AdamW", 1.2, tuple(block())[1:], block, 0.75),
    "softmax": Workload("softmax of 8x4x64x64", 1.2, ("x",), lambda: {"x": normal(8, 4, 64, 64)}, 1.0),
    "layer_norm": Workload(
        "layer norm of 8x64x64",
        1.2,
        tuple("xwb"),
        lambda: {"x": normal(8, 64, 64), "w": normal(64), "b": normal(64)},
        compiled=1.0,
    ),
    "gelu": Workload("GELU of 8x64x256", 1.2, ("x",), lambda: {"x": normal(8, 64, 256)}, 1.0),
    "attention": Workload("attention, 8x4 heads of 64x16", 1.2, tuple("qkv"), heads),
    "training": Workload(
        "a step of training of an MLP 64-128-64-10, batch 64, cross entropy, Adam",
        0.65,
        inputs=lambda: examples(64, 64),
        compiled=0.35,
    ),
    "training_large": Workload("the same of 784-512-512-10, batch 128", 0.95, (), lambda: examples(128, 784), 0.65),
    "inference": Workload(
        "an MLP 64-128-64-10, batch 64, without recording",
        0.6,
        inputs=lambda: examples(64, 64),
        compiled=0.6,
        of_products=1.1,
    ),
    "loader": Workload("2,000 shuffled rows of 64 in batches of 64", 0.05, (), lambda: examples(2000, 64)),
    "import": Workload("import, in a fresh process", 0.1),
} | {
    f"{name}_{n}": Workload(
        f"{name}, {n}x{n}",
        1.0,
        tuple(a for a in operations.arguments(name) if a in operations.LEAVES),
        partial(operations.made, name, n),
    )
    for name in operations.OPERATIONS
    for n in operations.SIZES
}
EVERY_OPERATION = tuple(name for name in WORKLOADS if name.rpartition("_")[0] in operations.OPERATIONS)
