"""Checks of the arguments of public names beyond their types: shapes, dtypes, ranges, and what fits what.

A file is for a family of operations, as in ``ops/``; a function has the name of an operation, and of its arguments
those that it looks at.  Its door (``doors.py``, which finds it by name) calls it before the operation; who calls the
operation itself does without.
"""

import importlib

FAMILIES = "activations attention conv creation index layers linalg losses norms pad pool reduce shape".split()


def find(family, name):
    """The check of an operation, or None; the file of its family is loaded when it is first asked for."""
    if family in FAMILIES:
        found = vars(importlib.import_module(f"{__name__}.{family}")).get(name)
        return found if getattr(found, "__module__", "").startswith(__name__) else None  # no import of that file
    return None
