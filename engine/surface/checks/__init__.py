"""What the arguments of a public name must be besides their types: shapes, dtypes, ranges, and what fits what.

A file is for a family of operations, as in ``ops/``; a function has the name of an operation, and of its arguments
those that it looks at.  Its door (``doors.py``, which finds it by name) calls it before the operation; who calls the
operation itself does without.
"""

from . import activations, attention, conv, creation, index, layers  # isort: skip
from . import linalg, losses, norms, pad, pool, reduce, shape  # isort: skip
