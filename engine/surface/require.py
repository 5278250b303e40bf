"""``require``: a condition and the error to raise if it does not hold, in one line of a check."""

import numpy as np

from ..arrays.dtypes import type_words


def require(holds, sentence, *facts, error=RuntimeError):
    """The error with one of the sentences of ``messages.py``, unless something holds.

    ``facts``: what stands in its gaps; of shapes and dtypes as PyTorch's sentences write them.
    """
    if not holds:
        raise error(sentence.format(*map(shown, facts)))


def shown(fact):
    """[2, 3] for the shape (2, 3), Float for a dtype."""
    return list(fact) if isinstance(fact, tuple) else type_words[fact] if isinstance(fact, np.dtype) else fact
