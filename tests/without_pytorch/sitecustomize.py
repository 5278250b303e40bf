"""Hides PyTorch from every Python started with this folder on its path: `python -m course test --without-pytorch`."""

import sys
from importlib.machinery import PathFinder

HIDDEN = {"torch", "torchgen", "functorch"}


class WithoutPyTorch(PathFinder):
    """Finds what Python finds, and no PyTorch: importing it fails as where it is not installed."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return None if fullname in HIDDEN else super().find_spec(fullname, path, target)

    @staticmethod
    def find_distributions(*context):
        return iter(()) if context and context[0].name in HIDDEN else PathFinder.find_distributions(*context)


sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutPyTorch
