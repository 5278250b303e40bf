"""The engine, where the function that is differentiated is compiled."""

import engine

from . import torch_style


def prepare(name):
    return torch_style.prepare(engine, name, engine.compile)
