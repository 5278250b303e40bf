"""The engine with one thread; that the products of matrices have one too, the environment says."""

import engine

from .engine import prepare  # noqa: F401

engine.set_num_threads(1)
