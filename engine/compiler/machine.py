"""Machine code: which functions of loops can be compiled by Numba, each once, and run on several threads.

Numba is an extra, and takes half a second to import: nothing of it is imported before the first loop is wanted.
"""

import importlib.util
import os
import re
import sys
from functools import lru_cache
from importlib import metadata

import numpy as np
from numpy import ndarray

from ..arrays import threads
from .progress import progress

DTYPES = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
FUNCTIONS = "sqrt floor ceil trunc rint isnan isfinite copysign empty zeros inf nan"
SPACE = {name: getattr(np, name) for name in (DTYPES + " " + FUNCTIONS).split()} | {"range": range}  # and vector_math's
WORK = 1 << 20  # of Loop.operations, all elements: what a part is worth, 50 us or more
PARTS = 16  # at most: each makes sums of its own
ALIGNED = 16  # rows of one element: a part begins where a vector does
broken = ""  # what was wrong when Numba was imported
loops: dict = {}  # text -> Loop
loops_lock = threads.new_lock()


def why_not():
    """Say why loops cannot be compiled, and what to do about it; "" where they can."""
    if os.environ.get("UNDERTORCH_LOOPS") == "0":
        return "Loops are switched off by the environment variable UNDERTORCH_LOOPS=0: unset it to have them compiled."
    return missing() or broken


@lru_cache(1)
def missing():
    """Say what stands against Numba, as far as its metadata tell; to import it takes half a second."""
    try:
        found = metadata.distribution("numba")
        version, needs = found.version, " ".join(found.requires or ())
        metadata.version("llvmlite")
    except metadata.PackageNotFoundError:
        return (
            "Loops are compiled by Numba, which is not installed: pip install numba, or the extra undertorch[compile]."
        )
    except Exception as error:  # metadata that cannot be read
        return f"Numba, which compiles loops, is damaged ({error}): pip install --force-reinstall numba."
    limit = re.search(r"\bnumpy\b[^;]*?<\s*(\d+)\.(\d+)", needs)
    if limit and release(np.__version__) >= tuple(map(int, limit.groups())):
        newer = f"NumPy {np.__version__} is newer than Numba {version} supports"
        return f'{newer}: pip install --upgrade numba, or "numpy<{limit[1]}.{limit[2]}".'
    if importlib.util.find_spec("numba") is None or importlib.util.find_spec("llvmlite") is None:
        python = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
        return f"Numba {version} is not there for {python}: pip install --upgrade numba, or an older Python."
    return ""


def release(version):
    """The first two numbers of a version."""
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", version).groups()))


def compiled(text):
    """The Loop of a function's text, ``def loop(first, last, ...)``: it compiles at its first call with some types.

    It is called as ``loop(first, last, *arrays)``: NumPy's arrays in C order, and NumPy's numbers.  What it writes to
    must not share memory with anything else that it is given.
    """
    loop = loops.get(text)
    if loop is None:
        store = with_numba()
        with loops_lock:
            loop = loops.get(text)
            if loop is None:
                loop = loops[text] = store.Loop(text, SPACE)
    return loop


class Later:
    """A loop that is made, in its own place, when it is first called: many a program never goes backward."""

    def __init__(self, text, space, name):
        self.text, self.space, self.name = text, space, name
        if text not in loops:
            progress.wanted(self)

    def made(self):
        progress.waiting.discard(self)
        self.space[self.name] = loop = compiled(self.text)
        return loop

    def __call__(self, first, last, *args):
        return self.made()(first, last, *args)

    operations = property(lambda self: self.made().operations)


def with_numba():
    """The module that has to do with Numba; where it cannot be imported, ``why_not`` says so from then on."""
    global broken
    try:
        from . import store  # noqa: PLC0415  takes half a second
    except Exception as error:  # a library that does not fit, and whatever else Numba may find wrong
        said = " ".join(str(error).split())
        broken = f"Numba cannot be imported ({said}): pip install --upgrade numba, or set UNDERTORCH_LOOPS=0."
        raise
    return store


def in_rows(loop, rows, *args, sums=0, held=0):
    """``loop(first, last, *args)`` for all rows, in parts on several threads; what the parts return is added up.

    Of the last arrays, ``held`` are room for one row, and ``sums`` before them what the loop adds to.  Parts do not
    depend on the number of threads, so neither do sums.
    """
    step = rows_of_part(loop, rows, args)
    if step >= rows:
        return loop(0, rows, *args)
    starts = range(0, rows, step)
    results = [None] * len(starts)
    apart = len(args) - sums - held
    given, totals = args[:apart], args[apart : apart + sums]
    own = [args[apart:], *([np.zeros_like(a) for a in args[apart:]] for _ in starts[1:])]
    todo = iter(range(len(starts)))

    def work():
        for i in todo:  # each thread takes the next part that none has taken
            results[i] = loop(starts[i], min(starts[i] + step, rows), *given, *own[i])

    # Not Numba's prange: its workqueue ends the process when two threads of Python enter it at once, its OpenMP does
    # when a forked child enters it, and such loops take several times as long to compile.
    threads.on_threads(work, min(threads.threads, len(starts)))
    for parts in own[1:]:
        for all_of_it, part in zip(totals, parts, strict=False):
            all_of_it += part
    total, *others = results
    return total and tuple(sum(numbers, start) for start, *numbers in zip(total, *others))


def rows_of_part(loop, rows, args):
    """Count the rows of a part; written for small arrays, which should not wait for it."""
    size = rows
    for a in args:
        if type(a) is ndarray and a.size > size:
            size = a.size
    parts = size * loop.operations // WORK
    if parts < 2 or rows < 2:
        return max(rows, 1)
    step = -(-rows // min(parts, PARTS))
    return step if step < ALIGNED else -(-step // ALIGNED) * ALIGNED
