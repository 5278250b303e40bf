"""The modules under the path that PyTorch has for them: ``nn.modules.Linear``."""

import sys

from . import module


def __getattr__(name):
    return getattr(sys.modules[__name__.rpartition(".")[0]], name)
