"""Around a model: loading data, and trading computation for memory."""

from ..help import public
from . import checkpoint, data

__all__ = ["checkpoint", "data"]

__dir__ = public("utils", globals())
