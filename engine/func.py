"""PyTorch's ``torch.func``: what ``transforms`` offers."""

from .help import public
from .transforms.func import *  # noqa: F403
from .transforms.func import __all__  # noqa: F401

__dir__ = public("func", globals())
