"""The engine."""

import engine

from . import torch_style


def prepare(name):
    return torch_style.prepare(engine, name)
