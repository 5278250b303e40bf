"""An attempt judged beside the notebook, where Python has no other process: in a browser's page.

It is packed and unpacked as on its way to a process (`course.process.worker`), so that what it changes is its own. The
engine alone is the notebook's: where a cell has changed that, the check is of what it has become. A loop that never
ends in lines of the notebook is stopped; one inside a single call is not.
"""

import contextlib
import random
import sys
import sysconfig
import time
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np

import engine
from course.base.notebooks import HOME
from course.judging.exercises import NOT_YET
from course.process import attempts
from course.process.attempts import Answer

_LIBRARIES = (str(HOME / "engine"), str(HOME / "course"), *map(sysconfig.get_path, ("stdlib", "purelib")))


_TOOL = 3  # one of the numbers that Python gives to nobody


class _TooLong(BaseException):  # an attempt may catch every Exception
    pass


def ask(key: str, hidden: bool, source: str, packed: bytes, seconds: float) -> Answer:
    """Return what is said of an attempt, which may compute for `seconds`. Raises NotChecked."""
    with _numbers_and_dtype_kept():
        try:
            with _stopped_after(seconds):
                answer = attempts.judged(key, hidden, source, packed)
        except _TooLong:
            answer = Answer(state=NOT_YET, message=attempts.too_long(seconds))
    return attempts.known(answer)


@contextlib.contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Stop what computes longer, at the next jump or call in it that is no library's. Python 3.11 stops nothing."""
    if sys.version_info < (3, 12):  # no browser's, and to trace every call would take five times as long as the calls
        yield
        return
    end, monitoring = time.process_time() + seconds, sys.monitoring

    def look(code: CodeType, *_: int) -> Any:
        if code.co_filename.startswith(_LIBRARIES):
            return monitoring.DISABLE
        if time.process_time() > end:
            raise _TooLong
        return None

    events = (monitoring.events.JUMP, monitoring.events.PY_START)
    monitoring.use_tool_id(_TOOL, "check")
    try:
        for event in events:
            monitoring.register_callback(_TOOL, event, look)
        monitoring.set_events(_TOOL, events[0] | events[1])
        yield
    finally:
        monitoring.set_events(_TOOL, 0)
        for event in events:
            monitoring.register_callback(_TOOL, event, None)
        monitoring.free_tool_id(_TOOL)


@contextlib.contextmanager
def _numbers_and_dtype_kept() -> Iterator[None]:
    """Put back what a check sets for itself: the random numbers that come next, and the default dtype."""
    python, numpy, own = random.getstate(), np.random.get_state(), engine.get_rng_state()
    sim, dtype = engine.sim.get_rng_state(), engine.get_default_dtype()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        engine.set_rng_state(own)
        engine.sim.set_rng_state(sim)
        engine.set_default_dtype(dtype)
