"""JAX, compiled by ``jit``; a step waits for its result.

A step with an optimizer is one compiled function too: the loss, the gradients, the parameters and the optimizer's state
that come of those before, which it may overwrite.
"""

import jax
import jax.numpy as np

from ..workloads import SIZES, WORKLOADS
from . import function_style

jax.config.update("jax_enable_x64", True)  # one workload is float64
RATE, BETAS, EPS = 1e-3, (0.9, 0.999), 1e-8  # PyTorch's of Adam and AdamW
DECAY = 0.01  # AdamW's


def prepare(name):
    if name in SIZES:
        return model(name)
    if name == "block":
        return transformer_block()
    if name in LAYERS:
        return layer(name)
    if name == "convnet":
        return function_style.prepared(convnet, np, value_and_grad, name)
    return function_style.prepare(np, value_and_grad, name)


def value_and_grad(f, positions):
    compiled = jax.jit(jax.value_and_grad(f, positions))
    return lambda *args: jax.block_until_ready(compiled(*args))


# ---- layers: the gradient of their result is given


def layer(name):
    inputs = {k: np.array(v) for k, v in WORKLOADS[name].inputs().items()}
    leaves = WORKLOADS[name].leaves
    weights = np.array(function_style.weights(inputs[leaves[0]].shape))

    @jax.jit
    def compiled(weights, *args):
        out, backward = jax.vjp(LAYERS[name], *args)
        return out, backward(weights)

    def step():
        return jax.block_until_ready(compiled(weights, *inputs.values()))

    def result():
        out, grads = step()
        return {"loss": out, **dict(zip(inputs, grads, strict=True))}

    return step, result


def layer_norm(x, w, b):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * w + b


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def attention(q, k, v, causal=False):
    scores = np.matmul(q, k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    return np.matmul(jax.nn.softmax(scores), v)


LAYERS = {"softmax": jax.nn.softmax, "layer_norm": layer_norm, "gelu": gelu, "attention": attention}


# ---- models


def linear(x, w, b):
    return np.matmul(x, w.T) + b


def cross_entropy(z, y):
    return -np.mean(np.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))


def convolved(x, w, b):
    """3 x 3, then ReLU and max pooling of 2 x 2."""
    h = jax.lax.conv_general_dilated(x, w, (1, 1), "VALID") + b[:, None, None]
    return jax.lax.reduce_window(jax.nn.relu(h), -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def convnet(np, x, y, w1, w2, w3, b1, b2, b3):
    h = convolved(convolved(x, w1, b1), w2, b2)
    return cross_entropy(linear(h.reshape(len(h), -1), w3, b3), y)


def block_loss(parameters, x):
    p = parameters
    q, k, v = np.split(linear(layer_norm(x, p["w1"], p["b1"]), p["qkv"], p["b_qkv"]), 3, 2)
    q, k, v = (a.reshape(8, 64, 4, 16).swapaxes(1, 2) for a in (q, k, v))
    h = attention(q, k, v, causal=True).swapaxes(1, 2).reshape(8, 64, 64)
    h = x + linear(h, p["out"], p["b_out"])
    up = gelu(linear(layer_norm(h, p["w2"], p["b2"]), p["up"], p["b_up"]))
    h = h + linear(up, p["down"], p["b_down"])
    return (h * h).mean()


def transformer_block():
    inputs = {k: np.array(v) for k, v in WORKLOADS["block"].inputs().items()}
    x = inputs.pop("x")
    return trained(lambda parameters: block_loss(parameters, x), inputs, DECAY, function_style.CHECKED)


def model(name):
    x, y = (np.array(a) for a in WORKLOADS[name].inputs().values())
    parameters = [np.array(p) for p in function_style.parameters(SIZES[name])]

    def answer(parameters, x):
        *hidden, last = zip(parameters[::2], parameters[1::2], strict=True)
        for w, b in hidden:
            x = jax.nn.relu(linear(x, w, b))
        return linear(x, *last)

    if name == "inference":
        compiled = jax.jit(answer)
        step = lambda: jax.block_until_ready(compiled(parameters, x))  # noqa: E731
        return step, lambda: {"loss": step()}
    step, result = trained(lambda p: cross_entropy(answer(p, x), y), parameters, 0.0, function_style.CHECKED)
    return step, lambda: {"loss": result()["loss"]}


# ---- Adam


def trained(loss_of, parameters, decay, checked):
    """(step, result): the gradients and what Adam makes of the parameters."""
    zeros = lambda: jax.tree.map(np.zeros_like, parameters)  # noqa: E731
    state = parameters, zeros(), zeros(), np.zeros((), np.float32)

    def compute(parameters, means, squares, count):
        loss, grads = jax.value_and_grad(loss_of)(parameters)
        return loss, grads, adam(parameters, grads, means, squares, count, decay)

    compiled = jax.jit(compute, donate_argnums=(0, 1, 2, 3))

    def step():
        nonlocal state
        loss, grads, state = jax.block_until_ready(compiled(*state))
        return loss, grads

    def result():
        for _ in range(checked):
            loss, grads = step()
        return {"loss": loss, **(grads if isinstance(grads, dict) else {})}

    return step, result


def adam(parameters, grads, means, squares, count, decay):
    """The parameters, the averages and the count of steps after one of Adam, or of AdamW where there is a decay."""
    count = count + 1
    corrections = [1 - np.float32(beta) ** count for beta in BETAS]

    def moved(p, mean, square):
        return p * (1 - RATE * decay) - RATE / corrections[0] * mean / (np.sqrt(square / corrections[1]) + EPS)

    means = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, means, grads)
    squares = jax.tree.map(lambda s, g: BETAS[1] * s + (1 - BETAS[1]) * g * g, squares, grads)
    return jax.tree.map(moved, parameters, means, squares), means, squares, count
