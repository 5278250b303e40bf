"""Observers: who sees every Tensor, or every node, that is made.

In an ordinary program nobody looks, and nothing is paid.  While somebody does, the class has another constructor.
"""

from threading import get_ident

from ..arrays.threads import new_lock

lock = new_lock()  # threads share the classes
observers: dict = {}  # class -> {(look, the thread that asked for it; None: all of them): how often}


def observe(Class, look, everywhere=False):
    """Let ``look(new)`` see every new Tensor or node, until ``forget`` is called: by this thread, or by any one."""
    count(Class, (look, None if everywhere else get_ident()), 1)


def forget(Class, look, everywhere=False):
    """Undo one ``observe``."""
    count(Class, (look, None if everywhere else get_ident()), -1)


def count(Class, who, change):
    with lock:
        known = observers.get(Class, {})
        often = known.get(who, 0) + change
        settle(Class, {**known, who: often} if often > 0 else {w: n for w, n in known.items() if w != who})


def settle(Class, known):
    """Let these look, and no others; whoever calls holds the lock."""
    observers[Class] = known
    Class.looks = tuple(dict.fromkeys([look for look, _ in known]))
    init = Class.observed_init if known else Class.plain_init
    if Class.__init__ is not init:  # a class that changes loses what the interpreter has learned of it
        Class.__init__ = init


def notify(Class, new):
    """Show who looks what is new, or has become so."""
    for look in Class.looks:
        look(new)
