"""Writes in place as programs make them: the in-place form of an operation, ``copy_``, ``fill_``, ``zero_``.

What a write does to the graph is the core's (``core/views.py``); here is what must not be written, in PyTorch's words.
"""

import math

import numpy as np

from ..arrays import dtypes
from ..arrays.dispatch import scalar_types, xp_of
from ..arrays.memory import overlaps, overlaps_itself, same_place
from ..arrays.quiet import be_quiet
from ..arrays.shapes import common_shape
from ..core import views
from ..core.graph import mode, node_class
from ..core.linear import cast, sum_to
from ..core.record import array_of
from ..core.tensor import Tensor
from ..core.views import views_may_overlap
from .checks import misfit
from .transfers import number_for, transfer


def in_place(operation):
    """The in-place form of an operation: ``x.add_(y)`` computes ``add(x, y)`` and writes it into the memory of x."""

    written = getattr(operation, "written", None)  # node classes, if the operation has none: for a number, for a tensor

    def op_(self, *args, **kwargs):
        views.check_writable(self, args)
        name = operation.__name__
        read = args[APART[name]] if name in APART else args
        check_apart(self, read)
        out = operation(self, *args, **kwargs)
        if out is NotImplemented:
            raise TypeError(
                f"{operation.__name__}_(): unsupported operand type(s): {', '.join(type(a).__name__ for a in args)}"
            )
        if written and self.node is not None and mode.enabled:
            out = Tensor(out.array, written[isinstance(args[0] if args else None, Tensor)]((self.node,), ()))
        if name in WHOLLY:
            check_apart(self, read, True)
        return overwrite(self, out)

    op_.__name__ = op_.__qualname__ = operation.__name__ + "_"
    op_.__wrapped__ = operation  # whose arguments it has
    return op_


# of which arguments no part may be written, if not of all; and which operations may not read all of it either
APART = {"index_fill": slice(1, 2), "masked_fill": slice(1), "masked_scatter": slice(0)}
WHOLLY = ("index_add", "index_copy", "index_fill", "scatter", "scatter_add")


def overwrite(tensor, out):
    """Write ``out``, an operation's result, into ``tensor``; its node becomes the tensor's."""
    x, value = tensor.array, out.array
    if value.shape != x.shape:
        raise size_error(x, value.shape)
    check_cast(value, x)
    return views.overwrite(tensor, out)


def check_cast(value, x):
    """RuntimeError in PyTorch's words if the dtype of x cannot hold what that of value is for."""
    if value.dtype is not x.dtype and dtypes.of[value.dtype].category > dtypes.of[x.dtype].category:
        raise RuntimeError(
            f"result type {dtypes.dtype_word(value)} can't be cast to the desired output type {dtypes.dtype_word(x)}"
        )


def modify(tensor, change, Backward, inputs, saved=(), apart=None, wholly=False):
    """Let ``change(array)`` write into the memory of a tensor; the write's node gets these inputs and saved values.

    ``apart``: what must not be a part of what is written, or with ``wholly`` all of it; the inputs by default.  False:
    any overlap is harmless.
    """
    be_quiet()
    views.check_writable(tensor, inputs)
    if apart is not False:
        check_apart(tensor, inputs if apart is None else apart, wholly)
    return views.modify(tensor, change, Backward, inputs, saved)


def size_error(x, shape):
    return RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(shape)}")


def check_writable(tensor, others=()):
    """Raise PyTorch's errors for tensors that must not be written in place; ``others``: what the values are made of."""
    views.check_writable(tensor, others)
    check_apart(tensor, ())


def check_apart(tensor, others, wholly=False):
    """Raise PyTorch's errors if elements share their memory, or if a part of what is written is also read.

    ``wholly``: or all of it.
    """
    x = tensor.array
    view_ops = tensor.view_ops  # none of what detach() made of a view
    if (0 in x.strides or (views_may_overlap(view_ops) if view_ops else not x.flags.c_contiguous)) and overlaps_itself(
        x
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    for a in others:
        y = a.array if isinstance(a, Tensor) else a if type(a) is type(x) else None
        if y is not None and (a is not tensor or wholly) and overlaps(y, x, wholly):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation."
            )


# ---- writes that are no operation's in-place form


def fits(value, dtype):
    """A number as an array of a dtype.  RuntimeError if it is out of range."""
    kind = dtypes.of[dtype]
    number = value.item() if isinstance(value, np.generic) else value
    if type(number) not in scalar_types:
        raise TypeError(f"expected a number, but got {type(value).__name__}")
    if type(number) is int and not -(2**63) <= number < 2**64:
        raise OverflowError("int too big to convert" if number > 0 else "can't convert negative int to unsigned")
    low, high = dtypes.limits(kind)
    if type(number) is int and not kind.is_signed:
        low = -high  # wraps around
    if kind is not dtypes.bool_ and not low <= number <= high:
        if not kind.is_floating_point or math.isfinite(number):
            word = INTEGER_WORDS.get(kind.name, dtypes.DTYPE_WORDS[kind.name])
            raise RuntimeError(f"value cannot be converted to type {word} without overflow")
    return dtype.type(number) if number >= 0 or kind.is_signed else np.asarray(number).astype(dtype)[()]


def number_in(value, dtype):
    """The same for one that mostly fits."""
    try:
        return dtype.type(value)
    except OverflowError:
        return fits(value, dtype)


INTEGER_WORDS = {"int64": "int64_t", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t"}


def zeros_for(g, shape=None):
    """Zeros in the shape of g or another one; no nan or inf gets through."""
    x = array_of(g)
    out = xp_of(x).zeros(x.shape if shape is None else shape, x.dtype)
    return Tensor(out) if isinstance(g, Tensor) else out


def back_to(g, shape, dtype):
    """The cotangent of what was broadcast and cast from a shape and dtype."""
    return cast(sum_to(g, shape), dtype)


CopyBackwards = node_class("CopyBackwards", lambda g, _shape, _dtype: zeros_for(g), back_to)
Zero = node_class("ZeroBackward0", lambda g: zeros_for(g))
FillNumber = node_class("FillBackward2", lambda g: zeros_for(g))
FillTensor = node_class("FillBackward3", lambda g, _shape, _dtype: zeros_for(g), back_to)


def copy_(self, other, non_blocking=False):
    """Write ``other``, broadcast and cast, into this tensor."""
    if not isinstance(other, Tensor):
        if type(other) not in scalar_types:
            raise misfit(other, "copy_", "other", 1, "Tensor")
        other = Tensor(np.asarray(other))
    other = transfer(other, self.device)
    y = other.shared()
    same = same_place(self.shared(), y)  # then there is nothing to do, also where writing is not allowed

    def change(x):
        if not same:
            common = common_shape(x.shape, y.shape)
            if common != x.shape:
                raise size_error(x, common)
            x[...] = y

    return modify(self, change, CopyBackwards, (self, other), (y.shape, y.dtype), apart=not same and None)


def fill_(self, value):
    """Write a number, or that of a 0-d tensor, into every element."""
    if not isinstance(value, Tensor):
        number = fits(value, self.array.dtype)
        return modify(self, lambda x: x.fill(number), FillNumber, (self,), apart=False)
    value = number_for(self.array, value)
    v = value.array
    if v.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {v.ndim} dimensions.")

    def change(x):
        x[...] = v.astype(x.dtype)

    return modify(self, change, FillTensor, (self, value), (v.shape, v.dtype), apart=())


def zero_(self):
    """Write zeros."""
    return modify(self, lambda x: x.fill(0), Zero, (self,), apart=False)
