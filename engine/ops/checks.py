"""Checks of arguments: numbers, sizes, dims, lists of tensors, and PyTorch's errors for anything else."""

import numbers
import operator

import numpy as np

from ..arrays import dtypes
from ..arrays.dtypes import dtype_word
from ..core.tensor import Tensor


def shown_kind(kind):
    """A type as PyTorch's errors call it: with its module where it is written in C."""
    home = "torch" if kind.__module__.startswith("engine.arrays") else kind.__module__ if kind.__flags__ & IN_C else ""
    return kind.__name__ if home in ("", "builtins") else f"{home}.{kind.__name__}"


IN_C = 1 << 8  # the flag of types whose attributes nobody sets


def checked_dim(dim, ndim):
    """A dimension counted from the front.  IndexError in PyTorch's words when there is no such dimension."""
    if type(dim) is not int:
        tensor = isinstance(dim, Tensor) and (dim.array.ndim or dim.array.dtype.kind not in "iu")
        if tensor or type(dim) is bool or not hasattr(dim, "__index__"):
            raise TypeError(f"argument 'dim' must be int, not {shown_kind(type(dim))}")
        dim = operator.index(dim)
    n = ndim or 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def sizes(args, name, size=None):
    """A shape given to the function ``name`` as numbers, as one sequence, or as ``size=``.

    TypeError for what is no integer, RuntimeError for a negative size.
    """
    if size is not None:
        if args:
            raise TypeError(f"{name}() got multiple values for argument 'size'")
        return shape_of(size, name, None)
    if not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    shape = listed(args[0], args[1:], name, "size")
    if shape and min(shape) < 0:
        if name == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        n = next(n for n in shape if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def listed(first, rest, name, argument, position=1):
    """Sizes or dims, given one by one or as a sequence, as a tuple of ints.

    TypeError in PyTorch's words for what is no integer; ``argument``, ``position``: what the method ``name`` calls it.
    """
    shape = first if not rest and isinstance(first, (tuple, list)) else (first, *rest)
    for n in shape:
        if type(n) is not int:
            break
    else:
        return tuple(shape)
    for i, n in enumerate(shape):
        if not is_integer(n, bools=i > 0):
            raise no_size(n, name, argument, position, i, shape is not first, len(shape))
    return tuple(map(operator.index, shape))


def no_size(n, name, argument, position, i, one_by_one, count):
    """The error for the i-th of so many sizes, which is no integer."""
    kind, where = shown_kind(type(n)), f"{name}(): argument '{argument}'"
    if i:
        reason = f'"type must be tuple of ints,but got {kind}"'
        return TypeError(f"{where} failed to unpack the object at pos {i + 1} with error {reason}")
    if not one_by_one:
        found = f"must be tuple of ints, but found element of type {kind} at pos 0"
        return TypeError(f"{where} (position {position}) {found}")
    if count > 1:
        return TypeError(f"{name}() takes 1 positional argument but {count} were given")
    return misfit(n, name, argument, position, "tuple of ints")


def is_integer(n, bools=False):
    """Tell whether PyTorch takes it for an int: one of Python's or NumPy's, or a tensor of one integer."""
    if isinstance(n, Tensor):
        return n.array.size == 1 and n.array.dtype.kind in "iu"
    return isinstance(n, (int, np.integer)) and (bools or type(n) is not bool)


def integer(n, name, argument, position=None):
    """An int that is the argument of a function.  TypeError in PyTorch's words if it is none."""
    if type(n) is int:
        return n
    if not is_integer(n):
        raise misfit(n, name, argument, position, "int")
    return operator.index(n)


def shape_of(size, name, position=1):
    """A shape given as one sequence."""
    if not isinstance(size, (tuple, list)):
        raise misfit(size, name, "size", position, "tuple of ints")
    return sizes((size,), name)


def number(value, name, argument, position=None, kind="Number"):
    """A Python number that is the argument of a function; a tensor without dimensions and without gradient gives its.

    TypeError in PyTorch's words for anything else.
    """
    if type(value) in (float, int):  # to ask numbers.Real takes longer
        return value
    if not is_scalar(value):
        raise misfit(value, name, argument, position, kind)
    return value.item() if isinstance(value, (Tensor, np.generic)) else value


def misfit(value, name, argument, position, kind):
    """The error for an argument of a function that is of another kind; ``position``: None if it is given by name."""
    place = "" if position is None else f" (position {position})"
    return TypeError(f"{name}(): argument '{argument}'{place} must be {kind}, not {shown_kind(type(value))}")


def unfit(name, *args, **named):
    """The error for arguments that fit none of a function's signatures."""
    got = ", ".join([shown_kind(type(a)) for a in args] + [f"{n}={shown_kind(type(a))}" for n, a in named.items()])
    return TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n")


def is_scalar(value):
    """Tell whether it is a real number, or a tensor without dimensions that requires no grad."""
    if isinstance(value, Tensor):
        return not value.array.ndim and not value.requires_grad
    return isinstance(value, (numbers.Real, np.generic))


def check_generator(generator):
    """TypeError if it is none."""
    if generator is not None and not hasattr(generator, "manual_seed"):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {shown_kind(type(generator))}")


def checked_dims(dims, ndim):
    """Dims counted from the front.  RuntimeError if one comes twice."""
    found = tuple(checked_dim(d, ndim) for d in dims)
    for d in found if len(set(found)) < len(found) else ():
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return found


def tensors_in(name, tensors):
    """A sequence of Tensors (or, in rules, of arrays) as a list.  TypeError for anything else."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise misfit(tensors, name, "tensors", 1, "tuple of Tensors")
    for i, t in enumerate(tensors):
        if not hasattr(t, "dtype"):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
    return list(tensors)


def some_tensors(name, tensors):
    """The same, of one tensor at least."""
    found = tensors_in(name, tensors)
    if not found:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return found


def no_kernel(kernel, x):
    """PyTorch's error where a kernel is not there for the dtype of an array."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dtype_word(x)}'")


def check_floating(x, kernel):
    if x.dtype not in dtypes.differentiable:
        raise no_kernel(kernel, x)


def check_not_bool(x, kernel):
    if x.dtype == bool:
        raise no_kernel(kernel, x)
