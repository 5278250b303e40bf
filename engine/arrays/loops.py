"""Loops over many arrays at once: a formula written down as one, where the arrays lie, and when it is compiled.

NumPy passes over memory once for each operation, and takes arrays one by one.  A loop in machine code does all that a
formula does with an element while it has it, and goes through all arrays in one call.  The formula is the function that
computes with NumPy's arrays too: it runs once on symbols, as for a kernel of a GPU (``devices/kernels.py``), and each
operation becomes a line of Python.  It rounds as NumPy's does, so the results are NumPy's to the bit.
"""

import os
import threading
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from . import dispatch
from .devices.kernels import Kernel, Symbol
from .memory import address

WORTH = 1 << 15  # elements, from which on an eager step gains enough to have its loop made in a thread
SMALL = 1 << 13  # elements of an array that is copied in the time in which Python could ask where it lies
EXACT = "# Each operation rounds by itself, as in NumPy.\n"  # the first line of a text: machine code keeps to it
DTYPES = np.dtype(np.float32), np.dtype(np.float64)

machine: Any = None  # engine/compiler/machine.py, as soon as something is compiled
loops: dict = {}  # text -> its loop, as soon as that has machine code; None where none could be made
arrived = 0  # how many of them there are
ordered: set = set()  # texts whose machine code is being made
makers: list = []  # the threads that make it


class State(threading.local):
    waits = False  # whether what runs is a compiled program
    off = False


state = State()


def available():
    """Return whether loops can be compiled here."""
    return machine is not None and not state.off and not machine.why_not()


def loop_of(text, size):
    """The loop of a text if it has machine code by now, else None; ``size``: how many elements it is wanted for.

    A compiled program waits for machine code, at its first call.  Eager code never waits: it takes what is there, and
    where something was compiled before, a thread makes what large arrays gain from.  As loops give NumPy's results to
    the bit, nothing but time depends on when they come.
    """
    if text not in loops:
        if state.waits:
            make(text)
        elif size >= WORTH and machine.loops and text not in ordered:
            ordered.add(text)
            join_before_forks()
            makers[:] = [t for t in makers if t.is_alive()]
            makers.append(threading.Thread(target=make, args=(text,), name="engine-loops"))
            makers[-1].start()
    return loops.get(text)


def make(text):
    """Have a text compiled: a call for no element does it."""
    global arrived
    loop = machine.compiled(text)
    loop.operations = text.count("\n" + INNER)  # of an element: what surrounds them is done once a row
    try:
        loop(0, 0, np.zeros(0, np.int64), np.zeros((0, 1), np.int64), np.zeros(64))
    except Exception:  # NumPy does as well
        loop = None
    loops[text] = loop
    arrived += 1


def at_once(function, *args, **kwargs):
    """A call of a function that waits for machine code."""
    before, state.waits = state.waits, True
    try:
        return function(*args, **kwargs)
    finally:
        state.waits = before


@lru_cache(1)
def join_before_forks():
    """Let forks wait for the threads that make machine code, which a child would not have."""

    def join():
        for thread in list(makers):
            if thread is not threading.current_thread():
                thread.join()

    if hasattr(os, "register_at_fork"):  # after the compiler's own lock, so that a fork waits here first
        os.register_at_fork(before=join)


@contextmanager
def off(switched=True):
    """A block in which this thread uses no loops."""
    before, state.off = state.off, switched
    try:
        yield
    finally:
        state.off = before


# ---- the text of a loop


class Lines(Kernel):
    """The lines of a loop's body, in Python; every number is an argument."""

    def variable(self, dtype, text):
        self.count += 1
        name = f"t{self.count}"
        self.lines.append(f"{name} = {as_python(text)}")
        return Symbol(self, name, dtype)

    def assign(self, symbol, text):
        if text != symbol.name:
            self.lines.append(f"{symbol.name} = {as_python(text)}")
        return symbol

    def term(self, a, dtype):
        if type(a) is Symbol:
            if a.dtype != dtype:
                raise TypeError("a loop computes in one dtype")
            return a.name
        if type(a) not in (int, float):
            raise TypeError("a number that is not Python's has a dtype of its own")
        self.numbers.append(a)
        return f"n{len(self.numbers) - 1}"


def as_python(text):
    """C++'s choice in Python's words."""
    test, chosen, rest = text.partition(" ? ")
    if not chosen:
        return text
    a, _, b = rest.partition(" : ")
    return f"{a} if {test.replace('||', 'or')} else {b}"


INNER = " " * 16  # before the lines that are done with each element
LOOP = """{exact}def loop(first, last, ends, places, numbers):
    {numbers}found = 0
    for row in range(len(ends)):  # first and last count the elements of all rows
        start = ends[row - 1] if row else 0
        skipped = max(first - start, 0)
        count = min(last, ends[row]) - start - skipped
        if count > 0:
            {arrays}
            for i in range(count):
                {reads}
                {lines}
                {writes}
    return (found,)
"""


def text_of(formula, names, dtype, written, line=""):
    """The text of a loop that does ``formula(*elements)`` with each element; None if a loop cannot.

    ``names``: what elements of the arrays of a row are called; ``written``: names of arrays that it changes; ``line``:
    what comes before it.
    """
    kernel = Lines()
    try:
        formula(*[Symbol(kernel, name, dtype) for name in names])
    except (TypeError, AttributeError, KeyError):  # it does what no line says
        return None
    numbers = [f"n{i} = {dtype.name}(numbers[{i}])" for i in range(len(kernel.numbers))]
    place = f"places[row, {{}}] + {dtype.itemsize} * skipped, count, {dtype.name}"
    return LOOP.format(
        exact=EXACT,
        numbers="".join(n + "\n    " for n in numbers),
        arrays="\n            ".join(f"{n}s = array_at({place.format(i)})" for i, n in enumerate(names)),
        reads="\n                ".join(f"{n} = {n}s[i]" for n in names),
        lines="\n                ".join(filter(None, [line, *kernel.lines])),
        writes="\n                ".join(f"{n}s[i] = {n}" for n in names if n in written),
    )


class Numbers(list):
    """An element that knows nothing but the numbers that a formula computes with: those of a loop, for this call."""

    __array_ufunc__ = None
    ndim = 1

    def beside(self, other):
        if other is not self:
            self.append(other)
        return self

    def itself(self, *_):
        return self

    def __setitem__(self, key, value):
        self.beside(value)

    for name in "add sub mul truediv".split():
        for prefix in ("", "r", "i"):
            locals()[f"__{prefix}{name}__"] = beside
    __neg__ = itself
    sqrt = maximum = staticmethod(itself)


dispatch.modules[Numbers] = Numbers


def numbers_of(formula, count):
    """The numbers that a formula of ``count`` elements computes with, in the order in which a loop takes them."""
    found = Numbers()
    formula(*[found] * count)
    return found if PLAIN.issuperset(map(type, found)) else None


PLAIN = frozenset((int, float))


# ---- where arrays lie


def fits(x):
    """Return whether a loop can go through an array: elements in order, of a type that it computes in."""
    return type(x) is np.ndarray and x.dtype in DTYPES and x.flags.carray


class Table:
    """Rows of arrays that lie in order, all of one dtype and those of a row of one size: how a loop finds them."""

    def __init__(self, rows):
        self.rows = rows  # held, for as long as there are their addresses
        self.ends = np.array([*accumulate(row[0].size for row in rows)], np.int64)
        self.places = np.array([[address(x) for x in row] for row in rows], np.int64)
        self.size, self.width, self.dtype = int(self.ends[-1]), len(rows[0]), rows[0][0].dtype

    def apart(self):
        """Return whether no two arrays share memory, whatever their rows: else threads must not write at once."""
        ends = self.places + (np.diff(self.ends, prepend=0) * self.rows[0][0].itemsize)[:, None]
        begins, ends = np.sort(self.places, None), np.sort(ends, None)
        return bool((begins[1:] >= ends[:-1]).all())

    def point(self, row, column, x, shape):
        """Let a place of the table be another array, or a copy that fits: it is to be held until the loop has run."""
        if not (type(x) is np.ndarray and x.dtype is self.dtype and x.shape == shape and x.flags.carray):
            copy = np.empty(shape, self.dtype)
            copy[...] = x
            x = copy
        self.places[row, column] = address(x)
        return x

    def run(self, loop, numbers):
        """Return what a loop over all elements does."""
        return machine.in_rows(loop, self.size, self.ends, self.places, np.array(numbers, np.float64))
