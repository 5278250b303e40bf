"""Known modules: of which objects guards can tell whether they give the same again."""

import sys
import types
from functools import lru_cache

import numpy as np

from .steps import GraphBreak

ENGINE = __name__.partition(".")[0]
# of the standard library, what gives the same for the same arguments; of the rest nobody knows
PURE = {*"""abc bisect builtins cmath collections contextlib copy dataclasses decimal enum fractions functools heapq
inspect itertools math numbers operator re statistics string types typing""".split()}  # fmt: skip
CACHED = type(lru_cache(int))


def ours(module_name):
    """Return whether a module is one that users do not write: the engine's, or of a library it stands on."""
    libraries = ENGINE, "numpy", "builtins", "math"
    return (module_name or "").partition(".")[0] in libraries


def known_module(module_name):
    """Return whether what the classes of a module do is known: they are ours or the standard library's."""
    return ours(module_name) or (module_name or "").partition(".")[0] in PURE


class Unknown(GraphBreak):
    """Something is used of which no guard can tell whether it gives the same again."""


def check_known(value, name, names=()):
    """``Unknown`` for clocks, random numbers, files, iterators, and whatever else of other modules may change."""
    kind = type(value)
    if hasattr(kind, "__next__"):
        raise Unknown(f"it uses an iterator, {name}, which each call moves on", " ")
    if kind is CACHED:
        raise Unknown(f"it uses {name}, which remembers what it gave before", " ")
    if kind is types.ModuleType:
        module = value.__name__
        if value is np and "random" in names and any(n in names for n in vars(np.random) if n != "random"):
            raise Unknown("it uses np.random, whose streams guards cannot watch: take engine's random numbers", " ")
        if not any(n in vars(value) for n in names):
            return
    else:
        owner = getattr(value, "__self__", None) if kind is types.BuiltinMethodType else None
        named = isinstance(value, type) or callable(value) and hasattr(value, "__name__")
        owner = None if isinstance(owner, types.ModuleType) else owner
        module = type(owner).__module__ if owner is not None else value.__module__ if named else kind.__module__
    top = (module or "").partition(".")[0].lstrip("_")
    held = kind.__module__ == "builtins" and hasattr(kind, "__len__")  # a bytearray, the items of a dict
    if held or (module or "").startswith("numpy.random") or (top in sys.stdlib_module_names and top not in PURE):
        what = f"{name}, of the type {kind.__name__}" if held else f"{name}, of the module {module}"
        raise Unknown(f"it uses {what}, of which guards cannot tell whether it gives the same", " ")
