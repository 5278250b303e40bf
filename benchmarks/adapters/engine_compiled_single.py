"""The engine with one thread, where the function that is differentiated is compiled."""

import engine

from .engine_compiled import prepare  # noqa: F401

engine.set_num_threads(1)
