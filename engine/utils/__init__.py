"""Around a model: loading data, and trading computation for memory."""

from . import checkpoint, data

__all__ = ["checkpoint", "data"]
