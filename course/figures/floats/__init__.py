"""The bits of a number."""
