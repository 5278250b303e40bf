"""What each workload cannot do without: the products of its matrices, and the bytes that it reads and writes.

Whatever runs a workload takes at least as long as its products by themselves, and as long as it takes to copy as many
bytes.  What stands between them (exponentials, reductions, calls) is not counted: it is what is left to be gained.
"""

from itertools import pairwise
from typing import NamedTuple

from .workloads import SIZES, WORKLOADS

LAYERS = ("softmax", "layer_norm", "gelu", "attention")  # by themselves: their result is as large as their first input


class Product(NamedTuple):
    """``count`` products of m x k and k x n, of which one factor may be the transposed view of an array."""

    count: int
    m: int
    k: int
    n: int
    transposed: str = ""  # "a" or "b"

    @property
    def flops(self):
        return 2 * self.count * self.m * self.k * self.n


def linear(rows, inputs, outputs, backward=True, first=False):
    """Of x @ w.T: with ``backward`` the gradient by w, and that by x unless it is the first layer's."""
    found = [Product(1, rows, inputs, outputs, "b")]
    if backward:
        found += [Product(1, outputs, rows, inputs, "a")] + ([] if first else [Product(1, rows, outputs, inputs)])
    return found


def layers(rows, sizes, backward=True):
    return [p for i, pair in enumerate(pairwise(sizes)) for p in linear(rows, *pair, backward, i == 0)]


def heads(count=32, length=64, width=16):
    """Of attention: scores and what is looked up, and the gradients by both factors of each; masked or not."""
    scores, looked_up = Product(count, length, width, length, "b"), Product(count, length, length, width)
    by_keys = Product(count, length, length, width, "a")
    return [scores, looked_up, scores, looked_up, by_keys, by_keys]


# Products of a few numbers (seed, matrices) are not here: a call of NumPy takes many times as long as they do.
PRODUCTS = {
    "mlp": layers(64, (64, 128, 64, 10)),
    "convnet": [  # a convolution is the product of the windows, copied side by side, and the kernels
        *linear(32 * 26 * 26, 9, 16, first=True),
        *linear(32 * 11 * 11, 144, 32),
        *linear(32, 800, 10),
    ],
    "block": [*linear(512, 64, 192), *heads(), *linear(512, 64, 64), *linear(512, 64, 256), *linear(512, 256, 64)],
    "attention": heads(),
    "training": layers(64, SIZES["training"]),
    "training_large": layers(128, SIZES["training_large"]),
    "inference": layers(64, SIZES["inference"], backward=False),
}


def bytes_of(name):
    """The bytes that a step has to read and to write: inputs, gradients, results, the optimizer's state, each once."""
    workload = WORKLOADS[name]
    arrays = workload.inputs()
    inputs, gradients = sum(a.nbytes for a in arrays.values()), sum(arrays[k].nbytes for k in workload.leaves)
    if name in LAYERS:  # the gradient of the result is given
        return inputs + gradients + 2 * arrays[workload.leaves[0]].nbytes
    if name == "loader":
        return 2 * inputs
    parameters = 4 * sum((m + 1) * n for m, n in pairwise(SIZES[name])) if name in SIZES else gradients
    if name == "inference":
        return inputs + parameters + 4 * len(arrays["x"]) * SIZES[name][-1]
    if name in SIZES:
        inputs, gradients = inputs + parameters, parameters
    if name in SIZES or name == "block":  # Adam: the parameters are written, two averages read and written
        inputs += 5 * parameters
    return inputs + gradients


PROGRAMS = ("scalars", "seed", "matrices", "large", "mlp", "convnet", "block", *LAYERS, *SIZES, "loader")
BYTES = {name: bytes_of(name) for name in WORKLOADS if name in PROGRAMS}
