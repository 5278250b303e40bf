"""The named tuples that operations with several results return: ``x.max(0).values``, ``x.sort().indices``."""

from collections import namedtuple
from functools import lru_cache


def named(name, *fields):
    """A class of tuples with named fields, which prints as PyTorch's does."""

    def __repr__(self):
        rows = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{rows})"

    return type(name, (namedtuple(name, fields),), {"__slots__": (), "__repr__": __repr__, "__module__": __name__})


@lru_cache
def filled(kind):
    """The class for results that were written into tensors given as ``out=``."""
    return named(kind.__name__ + "_out", *kind._fields)


max, min, median, sort, topk, kthvalue, cummax, cummin = (
    named(name, "values", "indices")
    for name in ("max", "min", "median", "sort", "topk", "kthvalue", "cummax", "cummin")
)
aminmax = named("aminmax", "min", "max")
slogdet = named("slogdet", "sign", "logabsdet")
