"""Arrays that stand for many samples at once, one for each call of a function under vmap.

Operations ask here where they check values, choose by them, or write into an array, which may be such a batch.
"""

from .dispatch import batches, modules


def not_batched(message, *arrays, error=RuntimeError):
    """An error where one of the arrays holds many samples, which the caller cannot tell apart."""
    if any_batch(*arrays):
        raise error(message)


def known(x):
    """The number in an array without dimensions; None where each sample has its own."""
    return None if type(x) in batches else x.item()


def one_a_sample(x, like):
    """A new array, or one for each sample where another array has them."""
    return copied(x, like) if type(like) in batches else x


def samples(x):
    """All elements of an array, those of every sample of a batch: for checks, and to choose how to compute."""
    return modules[type(x)].samples(x) if type(x) in batches else x


def any_batch(*arrays):
    """Tell whether one of the arrays stands for many samples."""
    return bool(batches) and any(type(a) in batches for a in arrays)


def blank(shape, x, *more):
    """Zeros in the dtype of x to write into: as large a batch as x and whatever ``more`` has a part in it."""
    for a in (x, *more) if batches else ():
        if type(a) in batches:
            return modules[type(a)].blank(shape, (x, *more))
    return modules[type(x)].zeros(shape, x.dtype)


def copied(x, *more):
    """A copy of an array to write into."""
    if any_batch(*more):
        out = blank(x.shape, x, *more)
        out[...] = x
        return out
    return x.copy()


def picked(x, key):
    """``x[key]``, also where x is no batch and an index array is."""
    for k in key if batches else ():
        if type(k) in batches:
            return modules[type(k)].getitem(x, key)
    return x[key]
