"""The shape of a tensor, as PyTorch shows it, and its error for one that does not fit."""

import operator
from math import prod

from .devices import typename_of


class Size(tuple):
    """The shape of a tensor: a tuple of ints. TypeError for items that are no integers."""

    __slots__ = ()

    def __new__(cls, iterable=()):
        items = []  # tuple.__new__(Size, shape) does without the checks where the shape is an array's own
        for i, item in enumerate(iterable):
            try:
                items.append(operator.index(item))
            except TypeError:
                found = type(item).__name__
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{found}')") from None
        return super().__new__(cls, items)

    def __repr__(self):
        return f"torch.Size({list(self)})"

    def __getitem__(self, index):
        item = super().__getitem__(index)
        return Size(item) if type(item) is tuple else item

    def __add__(self, other):
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(super().__add__(other))

    def __radd__(self, other):
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times):
        return Size(tuple(self) * times)

    __rmul__ = __mul__

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return prod(self)


def cannot_expand(x, shape):
    """PyTorch's error for an array that does not expand to a shape."""
    lead = len(shape) - x.ndim
    if lead < 0:
        return RuntimeError(
            f"expand({typename_of(x)}{{{list(x.shape)}}}, size={list(shape)}): the number of sizes provided "
            f"({len(shape)}) must be greater or equal to the number of dimensions in the tensor ({x.ndim})"
        )
    d = next(d for d in reversed(range(lead, len(shape))) if x.shape[d - lead] not in (1, shape[d]) and shape[d] != -1)
    return RuntimeError(
        f"The expanded size of the tensor ({shape[d]}) must match the existing size ({x.shape[d - lead]}) at "
        f"non-singleton dimension {d}.  Target sizes: {list(shape)}.  Tensor sizes: {list(x.shape)}"
    )
