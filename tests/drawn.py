"""What is drawn at random for tests: the same each time."""

import numpy as np
import pytest

import engine


def numbers(*shape, seed=0, dtype="float32", grad=False):
    """A tensor of numbers between -1 and 1."""
    rng = np.random.default_rng(seed)
    return engine.tensor(rng.uniform(-1, 1, shape).astype(dtype)).requires_grad_(grad)


def some_of(count, quick=12, *also):
    """The first of so many seeds, each after what else a test is given; the others are for `course test --deep`."""
    return [pytest.param(*also, seed, marks=[pytest.mark.slow] * (seed >= quick)) for seed in range(count)]
