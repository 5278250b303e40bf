"""JAX, compiled by ``jit``; a step waits for its result."""

import jax
import jax.numpy as np

from . import function_style

jax.config.update("jax_enable_x64", True)  # one workload is float64


def prepare(name):
    def value_and_grad(f, positions):
        compiled = jax.jit(jax.value_and_grad(f, positions))
        return lambda *args: jax.block_until_ready(compiled(*args))

    return function_style.prepare(np, value_and_grad, name)
