"""Linear algebra under ``torch.linalg``'s names."""

from .help import public
from .surface.doors import offered

__all__ = [*(functions := offered("linalg", __name__))]
globals().update(functions)

__dir__ = public("linalg", globals())
