"""The array types that the engine runs on, and the module that serves each of them.

An array's own type says who computes with it, so operations never ask where it lives.
"""

import importlib
import math
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

# array type -> the module with its functions.  NumPy returns scalars for 0-d results; Python's floats are constants
# in rules.
modules: dict = {np.ndarray: np, ml_dtypes.bfloat16: np, float: math, int: math, bool: math}
modules |= {np.dtype(c).type: np for c in "?bBhHiIlLqQefd"}
scalar_types = frozenset([bool, int, float])
tensor_cores: set = set()  # array types whose products of half-precision matrices are accumulated in float32
number_types = frozenset(t for t in modules if issubclass(t, np.generic))  # NumPy's scalars: one dtype each
kernels: dict = {}  # array type -> devices/kernels.py's Kernels, where a formula is computed by one kernel
rule_classes: Any = list  # the classes whose rules are kernels on a GPU: core/graph.py says which
device_names: dict = {}  # array type -> the type of its device, where that is not "cpu"; empty until one is used


class Function(dict):
    """One function under its name in every module, or one for all: ``exp = Function("exp"); exp[type(x)](x)``."""

    def __init__(self, name, formula=False):  # formula: the one for all is ``elementwise``
        self.name, self.formula = name, formula and callable(name)

    def call(self, x, *args):
        return self[type(x)](x, *args)

    def __missing__(self, array_type):
        module = module_of(array_type)
        found = self.name if callable(self.name) else getattr(module, self.name)
        if self.formula and array_type in kernels:
            found = partial(kernels[array_type].elementwise, self.name)
        self[array_type] = found
        return found


def elementwise(formula, *args):
    """``formula(*args)``, element by element: on a GPU in one kernel, kept for the formula, a function that stays."""
    found = kernels.get(type(args[0]))
    return formula(*args) if found is None else found.elementwise(formula, *args)


def special(name, *first):
    """A function of scipy.special (for device arrays, of that device's own), imported when it is first called."""

    def call(x):
        xp = modules[type(x)]
        functions = importlib.import_module("scipy.special") if xp is np else xp.special
        out = getattr(functions, name)(*first, x)
        return out if x.dtype.kind in "iub" else out.astype(x.dtype)

    return call


zeros_like = Function("zeros_like").call
strangers: list = []  # called with a type that no module serves yet: the one that knows it enters it


def is_array_type(kind):
    """Tell whether a module serves the type; CuPy's becomes known when its first array is met."""
    if kind not in modules:
        for meet in strangers:
            meet(kind)
    return kind in modules


def module_of(array_type):
    """The module that serves an array type; TypeError for what is no array."""
    if not is_array_type(array_type):
        raise TypeError(f"expected a Tensor or an array, but got {array_type.__name__}")
    return modules[array_type]


batches: dict = {}  # array type -> its module, for types that stand for many samples at once; empty until there is one


def xp_of(x):
    """The module that serves an array, and makes others where it is."""
    found = modules[type(x)]
    return found if found is np or type(x) not in batches else found.beside(x)
