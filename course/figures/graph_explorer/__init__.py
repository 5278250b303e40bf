"""A graph that can be taken apart."""
