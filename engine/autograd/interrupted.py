"""Modes that an interrupted cell of a notebook left switched go back to what they were when it began.

The end of a ``with`` block is Python code, and an interrupt (the Stop button) may come just before its first line.  A
script ends then, but a notebook's kernel lives on, and so would the mode.  What this thread has switched is noted when
a cell begins, and put back when one ends with KeyboardInterrupt.  Other threads are not interrupted.
"""

import gc
import sys
from threading import get_ident

from ..arrays.devices import default
from ..arrays.running import running
from ..arrays.threads import release_locks
from ..core import observers
from ..core.graph import mode
from . import anomaly, inference

at_start: dict = {}  # what has a thread's state -> what it was when the cell began
switches: dict = {}  # what else is switched


def watch(state):
    """Put back what a thread has in ``state``, a ``threading.local``, too."""
    at_start[state] = {name: dict(v) if type(v) is dict else v for name, v in vars(state).items()}


def remember(*info):
    """Note what is switched in this thread: a cell begins."""
    if switches.get("going back"):  # another interrupt came meanwhile
        restore()
    for state in (mode, running, *at_start):
        watch(state)
    release_locks()
    inference.forget_gone()
    me = get_ident()
    with observers.lock:
        looks = {(Class, look): asked.get(me, 0) for Class, look, asked in who_looks()}
    switches.update(looks=looks, anomaly=anomaly.state.anomaly, devices=len(default.before), collects=gc.isenabled())


def who_looks():
    return [(Class, look, asked) for Class, known in observers.observers.items() for look, asked in known.items()]


def restore():
    """Put back what a cell has switched."""
    switches["going back"] = True
    release_locks()
    for block in reversed(running.blocks[len(at_start[running].get("blocks", ())) :]):
        block.undo()
    for state, before in at_start.items():
        now = vars(state)
        now.update(before)
        for name in now.keys() - before:
            del now[name]
    with observers.lock:
        for Class, look, asked in who_looks():
            asked[get_ident()] = switches["looks"].get((Class, look), 0) + 1
            observers.forget(Class, look)
        for Class in observers.observers:  # an interrupt may have come between the record and what follows from it
            observers.observe(Class, None, change=0)
    anomaly.switch(switches["anomaly"])
    if len(default.before) > (n := switches["devices"]):
        default.device, default.before = default.before[n], default.before[:n]
    (gc.enable if switches["collects"] else gc.disable)()
    switches["going back"] = False


def cell_ended(result):
    """Put modes back after an interrupted cell; IPython calls this after every cell."""
    error = getattr(result, "error_in_exec", None)
    if error is not None and not isinstance(error, Exception):  # KeyboardInterrupt, or what it was on the way to be
        restore()


shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
if shell is not None:
    remember()
    shell.events.register("pre_run_cell", remember)
    shell.events.register("post_run_cell", cell_ended)
