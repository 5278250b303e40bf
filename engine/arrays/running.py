"""The state of this thread: the open vmaps and blocks, and the capture that writes down what is done."""

import threading
from contextlib import ContextDecorator
from copy import copy
from functools import wraps

import numpy as np


class Running(threading.local):
    """The state of this thread: its vmaps, the newest last, and the recorder that captures operations for replay."""

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


# ---- captures

offers: dict = {}  # name -> a function of the package above, for what stands below it
writers: dict = {}  # array type -> what writes a step down, for the arrays of a capture


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


def any_size():
    """Tell whether a capture for all sizes is running: then sizes must not decide how to compute."""
    return running.recorder is not None and running.recorder.sizes is not None


def outside_of_captures(method):
    """Mark a method that changes more than arrays: a capture calls it as a whole, each time it is replayed."""
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
