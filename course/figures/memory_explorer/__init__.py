"""The memory behind an index."""
