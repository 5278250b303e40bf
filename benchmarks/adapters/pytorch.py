"""PyTorch, eager, with as many threads as it takes by itself: one for each core."""

import torch

from . import torch_style


def prepare(name):
    return torch_style.prepare(torch, name)
