"""Observers: who sees every Tensor, or every node, that is made.

In an ordinary program nobody looks, and nothing is paid.  While somebody does, the class has another constructor.
"""

from threading import RLock

lock = RLock()  # threads share the classes
observers: dict = {}  # class -> {look: how often it was asked for}


def observe(Class, look):
    """Let ``look(new)`` see every new Tensor or node, until ``forget`` is called."""
    count(Class, look, 1)


def forget(Class, look):
    """Undo one ``observe``."""
    count(Class, look, -1)


def count(Class, look, change):
    with lock:
        looks = dict(observers.get(Class, {}))
        looks[look] = looks.get(look, 0) + change
        if looks[look] <= 0:
            del looks[look]
        observers[Class] = looks
        Class.looks = tuple(looks)
        init = Class.observed_init if looks else Class.plain_init
        if Class.__init__ is not init:  # a class that changes loses what the interpreter has learned of it
            Class.__init__ = init


def notify(Class, new):
    """Show who looks what is new, or has become so."""
    for look in Class.looks:
        look(new)
