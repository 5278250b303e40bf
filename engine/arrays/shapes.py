"""Shapes: to which one two broadcast, which one has a -1, and PyTorch's errors for those that do not fit."""

from math import prod


def common_shape(a, b):
    """The shape that two shapes broadcast to.  RuntimeError in PyTorch's words where there is none."""
    if a == b:
        return a
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for d in reversed(range(n)):
        if a[d] != b[d] and 1 not in (a[d], b[d]):
            raise RuntimeError(
                f"The size of tensor a ({a[d]}) must match the size of tensor b ({b[d]}) at non-singleton dimension {d}"
            )
    return tuple(q if p == 1 else p for p, q in zip(a, b))


def reshape_array(x, shape):
    if -1 in shape or prod(shape) != x.size or (shape and min(shape) < 0):
        shape = inferred(shape, x.size)
    return x.reshape(shape)


def inferred(shape, size):
    """A shape with its -1 replaced.  RuntimeError in PyTorch's words if there are two, or if the size does not fit."""
    shape = tuple(shape)
    for i, n in enumerate(shape):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(shape)}")
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = prod(n for n in shape if n != -1)
    if -1 in shape and known == size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if -1 not in shape or known == 0 or size % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return tuple(size // known if n == -1 else n for n in shape)
