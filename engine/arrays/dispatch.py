"""The array types that the engine runs on, and the module that serves each of them.

An array's own type says who computes with it, so operations never ask where it lives.
"""

import importlib
import math
import threading
from contextlib import ContextDecorator
from copy import copy
from functools import partial, wraps
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


def repeated(x, shape):
    """A NumPy array, repeated to a shape: a small one as a copy, which takes a fifth of the time of making a view."""
    if math.prod(shape) > 4096:
        return np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


zeros_like = Function("zeros_like").call
repeat_to = Function("broadcast_to")  # the result is only read: it may be a view
repeat_to.update({t: repeated for t, m in modules.items() if m is np})

# the sum over axes; the method of NumPy's arrays takes longer, and warns of an overflow from a module of NumPy's own
np_sum = Function(lambda x, axis, dtype, _, keepdims: x.sum(axis, dtype, keepdims=keepdims))
np_sum[np.ndarray] = np.add.reduce


def selected(condition, a, b):
    """``np.where``; of large arrays by their bits: a tenth of the time where no processor foresees the condition."""
    x = a if type(a) is np.ndarray else b
    large = condition.size >= 8192 and condition.dtype == bool and type(x) is np.ndarray
    word = words.get(x.dtype.itemsize) if large else None
    if word is None or any(
        type(v) not in scalar_types and (type(v) is not np.ndarray or v.dtype is not x.dtype) for v in (a, b)
    ):
        return np.where(condition, a, b)
    mask = condition.view(np.int8).astype(word)
    np.negative(mask, out=mask)  # all bits, where the condition holds
    a, b = (np.asarray(v, x.dtype).view(word) for v in (a, b))
    bits = a ^ b
    out = np.empty(np.broadcast_shapes(bits.shape, mask.shape), x.dtype)
    chosen = np.bitwise_and(bits, mask, out=out.view(word))
    chosen ^= b
    return out


words = {t.itemsize: t for t in map(np.dtype, (np.int8, np.int16, np.int32, np.int64))}


class Either(Function):
    """``where``, by the type of the condition; by that of the values, where they alone are batches."""

    def call(self, condition, a, b):
        for v in (condition, a, b) if batches else ():
            if type(v) in batches:
                return self[type(v)](condition, a, b)
        return self[type(condition)](condition, a, b)


either = Either("where")
either[np.ndarray] = selected


strangers: list = []  # called with a type that no module serves yet: who knows it enters it


def is_array_type(kind):
    """Whether there is a module that serves the type; CuPy's becomes known when its first array is met."""
    if kind not in modules:
        for meet in strangers:
            meet(kind)
    return kind in modules


def module_of(array_type):
    """The module that serves an array type; TypeError for what is no array."""
    if not is_array_type(array_type):
        raise TypeError(f"expected a Tensor or an array, but got {array_type.__name__}")
    return modules[array_type]


# ---- batches: arrays of a type that vmap runs a function on

batches: dict = {}  # array type -> its module, for types that stand for many samples at once; empty until there is one
writers: dict = {}  # array type -> what writes a step down, for the arrays of a capture


def xp_of(x):
    """The module that serves an array, and makes others where it is."""
    found = modules[type(x)]
    return found if found is np or type(x) not in batches else found.beside(x)


def one_step(function):
    """A function of an array that a capture writes down as one step: it chooses its way by the array's values."""

    @wraps(function)
    def call(x, *args, **options):
        write = writers.get(type(x))
        return function(x, *args, **options) if write is None else write(call.__name__, call, x, *args, **options)

    return call


def known_to_loops(function):
    """A function of arrays that a capture writes down by a formula of its own, if loops are made of what it writes."""

    @wraps(function)
    def call(*args):
        formula = None if running.recorder is None else running.recorder.formulas.get(call.__name__)
        found = None if formula is None else formula(*args)
        return function(*args) if found is None else found

    return call


class Running(threading.local):
    """What runs in this thread: the vmaps, the newest last, and who writes down what is done, to do it again later."""

    levels: tuple = ()
    recorder = None
    blocks: tuple = ()  # the ``undoing`` ones that are open, the innermost last


running = Running()


class switched(ContextDecorator):
    """A block in which attributes of a thread's state (of ``running``, for example) have other values.

    The statement that changes them is the last one of ``__enter__``, so an interrupt finds all of them or none.
    """

    def __init__(self, state, **values):
        self.state, self.values = state, values

    def _recreate_cm(self):  # for each call of what it decorates
        return copy(self)

    def __enter__(self):
        self.before = {name: getattr(self.state, name) for name in self.values}
        vars(self.state).update(self.values)

    def __exit__(self, *exc):
        vars(self.state).update(self.before)


class undoing(ContextDecorator):
    """A block that changes more than a thread's state: at its end it calls ``undo()``."""

    def __enter__(self):
        running.blocks = (*running.blocks, self)

    def __exit__(self, *exc):
        self.undo()
        running.blocks = tuple([block for block in running.blocks if block is not self])


def any_size():
    """Whether what is done is written down for all sizes: then sizes must not choose how to compute."""
    return running.recorder is not None and running.recorder.sizes is not None


offers: dict = {}  # name -> a function of the package above, for what stands below it


def outside_of_captures(method):
    """A method that changes more than arrays: who writes down what is done calls it later, each time, as a whole."""
    name = method.__name__

    @wraps(method)
    def call(self, *args, **kwargs):
        if running.recorder is None:
            return method(self, *args, **kwargs)
        return running.recorder.later(getattr(type(self), name), self, args, kwargs)

    return call


def fresh(x):
    """A new array as a Tensor holds it: for no dimensions NumPy's scalar, which is faster; noted in a capture."""
    if not x.ndim and type(x) is np.ndarray:
        x = x[()]
    return x if running.recorder is None else running.recorder.fresh(x)


def not_captured(what):
    """A capture ends where a program does what cannot be written down."""
    if running.recorder is not None:
        running.recorder.refuse(what)


def not_batched(message, *arrays, error=RuntimeError):
    """An error where one of the arrays holds many samples, which the caller cannot tell apart."""
    if any_batch(*arrays):
        raise error(message)


def known(x):
    """The number in an array without dimensions; None where each sample has its own."""
    return None if type(x) in batches else x.item()


def one_a_sample(x, like):
    """A new array, or one for each sample where another array has them."""
    return copied(x, like) if type(like) in batches else x


def samples(x):
    """All elements of an array, those of every sample of a batch: for checks, and to choose how to compute."""
    return modules[type(x)].samples(x) if type(x) in batches else x


def any_batch(*arrays):
    """Whether one of the arrays stands for many samples."""
    return bool(batches) and any(type(a) in batches for a in arrays)


def blank(shape, x, *more):
    """Zeros in the dtype of x to write into: as large a batch as x and whatever ``more`` has a part in it."""
    for a in (x, *more) if batches else ():
        if type(a) in batches:
            return modules[type(a)].blank(shape, (x, *more))
    return modules[type(x)].zeros(shape, x.dtype)


def copied(x, *more):
    """A copy of an array to write into."""
    if any_batch(*more):
        out = blank(x.shape, x, *more)
        out[...] = x
        return out
    return x.copy()


def picked(x, key):
    """``x[key]``, also where x is no batch and an index array is."""
    for k in key if batches else ():
        if type(k) in batches:
            return modules[type(k)].getitem(x, key)
    return x[key]
