"""Observers: functions that see every Tensor, or every node, as it is made.

In an ordinary program nobody looks, and nothing is paid.  While somebody does, the class has another constructor.
"""

from threading import get_ident

from ..arrays.threads import new_lock

lock = new_lock()  # threads share the classes
observers: dict = {}  # class -> {look: {thread that asked for it; None: for all of them: how often}}


def observe(Class, look, everywhere=False, change=1):
    """Let ``look(new)`` see every new Tensor or node, until ``forget`` is called: by this thread, or by any one."""
    thread = None if everywhere else get_ident()
    with lock:
        known = observers.setdefault(Class, {})
        asked = known.setdefault(look, {})
        asked[thread] = asked.get(thread, 0) + change
        if asked[thread] <= 0:
            del asked[thread]
            if not asked:
                del known[look]
        Class.looks = tuple(known)
        init = Class.observed_init if known else Class.plain_init
        if Class.__init__ is not init:  # a class that changes loses what the interpreter has learned of it
            Class.__init__ = init


def forget(Class, look, everywhere=False):
    """Undo one ``observe``."""
    observe(Class, look, everywhere, -1)


def notify(Class, new):
    """Notify observers of a new or changed object."""
    for look in Class.looks:
        look(new)
