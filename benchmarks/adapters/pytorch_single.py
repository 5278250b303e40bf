"""PyTorch, eager, with one thread."""

import torch

from .pytorch import prepare  # noqa: F401

torch.set_num_threads(1)
