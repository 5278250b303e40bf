"""Observers: who sees every Tensor, or every node, that is made.

In an ordinary program nobody looks, and nothing is paid.  While somebody does, the class has another constructor.
"""

from threading import get_ident

from ..arrays.threads import new_lock

lock = new_lock()  # threads share the classes
observers: dict = {}  # class -> {(look, the thread that asked for it; None: all of them): how often}


def observe(Class, look, everywhere=False, change=1):
    """Let ``look(new)`` see every new Tensor or node, until ``forget`` is called: by this thread, or by any one."""
    who = look, None if everywhere else get_ident()
    with lock:
        known = dict(observers.get(Class, ()))
        known[who] = known.get(who, 0) + change
        if known[who] <= 0:
            del known[who]
        settle(Class, known)


def forget(Class, look, everywhere=False):
    """Undo one ``observe``."""
    observe(Class, look, everywhere, -1)


def settle(Class, known):
    """Let these look, and no others; whoever calls holds the lock."""
    observers[Class] = known
    Class.looks = tuple({look: 0 for look, _ in known})
    init = Class.observed_init if known else Class.plain_init
    if Class.__init__ is not init:  # a class that changes loses what the interpreter has learned of it
        Class.__init__ = init


def notify(Class, new):
    """Show who looks what is new, or has become so."""
    for look in Class.looks:
        look(new)
