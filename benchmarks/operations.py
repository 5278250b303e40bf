"""The 40 most used operations, one by one: what a user writes, on matrices of n x n.

The names of the arguments say what they are: see ``made``.  Gradients are wanted of all of ``LEAVES``.
"""

import numpy as np

LEAVES = ("x", "y", "p", "v", "u", "image", "kernel")

# fmt: off
OPERATIONS = {
    "add": lambda torch, x, y: x + y,
    "add_row": lambda torch, x, v: x + v,
    "sub": lambda torch, x, y: x - y,
    "mul": lambda torch, x, y: x * y,
    "mul_number": lambda torch, x: x * 0.5,
    "div": lambda torch, x, p: x / p,
    "pow": lambda torch, x: x**2,
    "exp": lambda torch, x: torch.exp(x),
    "log": lambda torch, p: torch.log(p),
    "sqrt": lambda torch, p: torch.sqrt(p),
    "abs": lambda torch, x: torch.abs(x),
    "tanh": lambda torch, x: torch.tanh(x),
    "sigmoid": lambda torch, x: torch.sigmoid(x),
    "relu": lambda torch, x: torch.relu(x),
    "clamp": lambda torch, x: x.clamp(-0.5, 0.5),
    "where": lambda torch, m, x, y: torch.where(m, x, y),
    "sum": lambda torch, x: x.sum(),
    "sum_dim": lambda torch, x: x.sum(1),
    "mean": lambda torch, x: x.mean(),
    "mean_dim": lambda torch, x: x.mean(1, keepdim=True),
    "max_dim": lambda torch, x: x.max(1).values,
    "var": lambda torch, x: x.var(1),
    "transpose": lambda torch, x: x.transpose(0, 1),
    "reshape": lambda torch, x: x.reshape(-1),
    "cat": lambda torch, x, y: torch.cat([x, y]),
    "select": lambda torch, x: x[0],
    "slice": lambda torch, x: x[:, 1:],
    "index": lambda torch, x, t: x[t],
    "embedding": lambda torch, t, x: torch.nn.functional.embedding(t, x),
    "matmul": lambda torch, x, y: x @ y,
    "linear": lambda torch, x, y, v: torch.nn.functional.linear(x, y, v),
    "softmax": lambda torch, x: torch.softmax(x, 1),
    "log_softmax": lambda torch, x: torch.log_softmax(x, 1),
    "gelu": lambda torch, x: torch.nn.functional.gelu(x),
    "layer_norm": lambda torch, x, v, u: torch.nn.functional.layer_norm(x, v.shape, v, u),
    "cross_entropy": lambda torch, x, t: torch.nn.functional.cross_entropy(x, t),
    "mse_loss": lambda torch, x, q: torch.nn.functional.mse_loss(x, q),
    "bce_logits": lambda torch, x, q: torch.nn.functional.binary_cross_entropy_with_logits(x, q),
    "conv2d": lambda torch, image, kernel: torch.nn.functional.conv2d(image, kernel, padding=1),
    "max_pool2d": lambda torch, image: torch.nn.functional.max_pool2d(image, 2),
}
# fmt: on
SIZES = (3, 64)


def arguments(name):
    """The names of an operation's arguments."""
    code = OPERATIONS[name].__code__
    return code.co_varnames[1 : code.co_argcount]


def made(name, n):
    """The inputs of an operation, {argument: array}: the same ones in each process."""
    rng = np.random.default_rng(n)
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    every = {
        "x": normal(n, n),
        "y": normal(n, n),
        "p": rng.uniform(0.5, 1.5, (n, n)).astype(np.float32),  # positive
        "q": rng.uniform(0.0, 1.0, (n, n)).astype(np.float32),  # a target
        "v": normal(n),
        "u": normal(n),
        "t": rng.integers(0, n, n),  # classes, rows
        "m": rng.random((n, n)) < 0.5,
        "image": normal(1, 1, n, n),
        "kernel": normal(1, 1, 3, 3),
    }
    return {argument: every[argument] for argument in arguments(name)}
