"""PyTorch, where the step is compiled by ``torch.compile`` for the processor (Inductor), as far as it goes.

It breaks the step at ``backward``: what stands before it, the backward pass and the optimizer's step are each compiled.
"""

import torch

from . import torch_style


def prepare(name):
    return torch_style.prepare(torch, name, torch.compile)
