"""Linear algebra under ``torch.linalg``'s names."""

from .help import public
from .surface.doors import Offered

functions = Offered("linalg", __name__)
__getattr__ = functions.into_module(globals())
__all__ = sorted(functions.names)

__dir__ = public("linalg", globals())
