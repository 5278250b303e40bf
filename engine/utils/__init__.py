"""Around a model: loading data."""

from . import data

__all__ = ["data"]
