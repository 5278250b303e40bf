"""Digits: on which place values of an element's number, counted through a nest, a value depends.

See ``nests.py``: all of 512x64 is ((1, 32768),), a bias ((1, 64),), the mean of each row ((64, 32768),), a number ().
"""

from itertools import pairwise


def joined(ranges):
    """Ranges of digits in order, those that meet as one."""
    found: list = []
    for low, high in sorted(ranges):
        if found and found[-1][1] == low:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return tuple(found)


def digits_of(shape, whole, within):
    """The digits of an array that is broadcast to ``whole``, whose own are ``within``; None if they are cut through."""
    if not shape:
        return ()
    found, low = [], 1
    aligned = (1,) * (len(whole) - len(shape)) + tuple(shape)
    for n, m in zip(aligned[::-1], whole[::-1]):
        if n == m != 1:
            own = mapped(low, low * m, within)
            if own is None:
                return None
            found += own
        elif n != 1:
            return None
        low *= m
    return joined(found)


def mapped(low, high, within):
    """The range from ``low`` to ``high`` of what has the digits ``within``, as digits of all; None if cut through."""
    found, start = [], 1
    for a, b in within:
        end = start * (b // a)
        x, y = max(low, start), min(high, end)
        if x < y:
            if x % start or end % y or y % x:
                return None
            found.append((a * (x // start), a * (y // start)))
        start = end
    return found


def is_chain(ends):
    """Return whether each of the ends divides the next: they cut all elements into the extents of a nest."""
    return all(b % a == 0 for a, b in pairwise(sorted(ends)))
