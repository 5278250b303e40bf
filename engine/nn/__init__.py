"""Neural networks: ``functional`` holds the functions."""

from . import functional as functional
