"""Compares the engine's speed with PyTorch's and its neighbours': ``python -m benchmarks --help``."""
