"""Silence for NumPy's warnings about infinities and nan in what the engine computes, as in PyTorch.

What NumPy does about them is kept for each thread, or task, in a context variable.  Where the engine finds a state that
is not its own, it puts one of its own there, and leaves it: to change it to and fro for each operation would take a
tenth of the operation's time.  In that state NumPy hands over to a ``Teller`` what it has to say, and that does what
the program's own state would have done, unless it was the engine that computed.  So nothing changes for what a program
computes by NumPy itself, and neither its state nor its filters of warnings reach what the engine computes.
"""

import os
import sys
import warnings
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from numpy._core import umath

from .warn import COMPILED_FILE_PREFIX, ENGINE_FOLDER

try:
    variable = vars(umath)["_extobj_contextvar"]  # what np.errstate sets
except KeyError:  # in another NumPy: then warnings are left out by a filter, which a program may replace
    variable = ContextVar("stand_in", default=None)
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"engine\.")
state = variable.get
quiet: set = set()  # the engine's own states; operations begin with ``if state() not in quiet: hush()``
states: dict = {}  # what a program wants to hear -> the engine's state for that
LIBRARIES = tuple(str(Path(np.__file__).parents[1] / name) + os.sep for name in ("numpy", "scipy", "ml_dtypes"))
KINDS = {
    "divide by zero": ("divide", 1),
    "overflow": ("over", 2),
    "underflow": ("under", 4),
    "invalid value": ("invalid", 8),
}


class Teller:
    """Does with what NumPy says what a program has asked for: ``modes`` and ``call`` are those of ``np.errstate``."""

    def __init__(self, modes, call):
        self.modes, self.call = modes, call

    def write(self, message):
        """``message``: as in "Warning: overflow encountered in exp"."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(LIBRARIES):
            frame = frame.f_back
        if frame is None or frame.f_code.co_filename.startswith((ENGINE_FOLDER, COMPILED_FILE_PREFIX)):
            return
        words = message.removeprefix("Warning: ").rstrip()
        kind = words.partition(" encountered")[0]
        what, flag = KINDS[kind]
        match self.modes[what]:
            case "warn":
                warnings.warn(words, RuntimeWarning, stacklevel=2)
            case "raise":
                raise FloatingPointError(words)
            case "call":
                self.call(kind, flag)
            case "log":
                self.call.write(message)
            case "print":
                print(message, end="", file=sys.stderr)


def hush():
    """Put the engine's own state into the place of another one."""
    modes, call = np.geterr(), np.geterrcall()
    if isinstance(call, Teller):  # the program has changed a part of the engine's state
        modes = {what: call.modes[what] if how == "log" else how for what, how in modes.items()}
        call = call.call
    key = *modes.values(), id(call), np.getbufsize()
    if key not in states:
        own = {what: "ignore" if how == "ignore" else "log" for what, how in modes.items()}
        with np.errstate(**own, call=Teller(modes, call)):  # which keeps the call, and so its id
            states[key] = state()
        quiet.add(states[key])
    variable.set(states[key])


def be_quiet():
    """The same question, where a call more does not matter."""
    if state() not in quiet:
        hush()
