"""Rows of a table become operations: a name, a function of arrays, and a rule for the derivative by each input.

``unary(name, forward, rule)`` and ``binary(name, forward, rule, rule)``: a rule gives the cotangent of its input from
the cotangent ``g`` of the output.  The names of its parameters (x, y, out) say what is saved; a leading underscore:
not needed.  What PyTorch does with dtypes, numbers and devices is here, once.
"""

from collections import namedtuple

import numpy as np

from ..arrays import devices, dtypes
from ..arrays.batches import picked
from ..arrays.devices import one_device
from ..arrays.dispatch import Function, device_names, modules, number_types, scalar_types
from ..arrays.dtypes import dtype_word
from ..arrays.kernels.indexing import placed
from ..arrays.quiet import be_quiet, hush, quiet, state
from ..arrays.shapes import common_shape
from ..core import linear
from ..core.graph import mode, node_class
from ..core.linear import cast, sum_to
from ..core.record import array_of
from ..core.rules import camel, view
from ..core.tensor import Tensor
from .transfers import transfer
from .writes import zeros_for

registry: dict = {}  # name -> Row: every operation that a table defines, for the tests


Row = namedtuple("Row", "function kind rules")  # what a table says of one operation


def register(name, kind, function, *rules):
    """Give an operation its name and a row in the registry."""
    function.__name__ = function.__qualname__ = name
    registry[name] = Row(function, kind, rules)
    return function


def define(name, *row, doc=None, **options):
    """A linear operation that moves elements, as a row: see ``core/rules.py``."""
    op = view(name, *row, **options)
    op.__doc__ = doc
    return register(name, "view", op, *op.rules)


for op in (linear.reshape, linear.transpose):
    register(op.__name__, "view", op, *op.rules)

# ---- part of an array, and an array of zeros but for that part


pick = define("pick", picked, lambda g, shape, key: place(g, shape, key), "IndexBackward0")
place = define("place", placed, lambda g, _, shape, key: pick(g, key), "IndexPutBackward0")


def unary(name, forward, rule=None, *, integers="float", backward=None, refuses=None):
    """An elementwise function of one input.

    ``forward``: the name of a function in every array module, or a function of an array.  ``rule``: None if it is not
    differentiable.  ``integers``: what integers become first, "float" (the default dtype) or "keep".  ``refuses``:
    PyTorch's kernel that has no bools.
    """
    Backward = rule and node_class(backward or camel(name) + "Backward0", rule)
    if rule:
        Backward.diagonal = True
    saves_x, saves_out = ((n == rule.__code__.co_varnames[1]) for n in ("x", "out")) if rule else (False, False)
    to_float = integers == "float"
    functions = Function(forward, formula=True)

    def asking(unusual):
        def op(input, *, out=None):
            if not isinstance(input, Tensor):
                return unusual[type(input)](input)
            if out is not None:
                return unusual[type(out)](input, out=out)
            x = input.array
            if state() not in quiet:
                hush()
            if refuses is not None and x.dtype.kind == "b":
                refuse(refuses, "b", x)
            compute = functions[type(x)]
            out = compute(x)
            if to_float and out.dtype is not x.dtype:
                out = floats(compute, x, out)
            p = input.node
            if p is not None and Backward is not None and mode.enabled:
                return Tensor(out, Backward((p,), (out if saves_out else x if saves_x else None,)))
            return Tensor(out)

        return op

    return register(name, "unary" if rule else "test", with_asking(asking, functions), rule)


def with_asking(asking, unusual):
    """``asking(unusual)``: the operation, which calls ``unusual`` for all but Tensors, and for ``out=``.

    ``op.asking`` is kept for its door, which makes one that calls the door instead.
    """
    op = asking(unusual)
    op.asking = asking
    return op


def floats(compute, x, out):
    """Recompute for integers in floats, and restore the dtype where NumPy made another of a bfloat16 and a number."""
    return out.astype(x.dtype) if x.dtype in dtypes.differentiable else compute(x.astype(floating(x.dtype)))


def binary(name, forward, rule_x, rule_y, *, divides=False, bools=True, backward=None):
    """An elementwise operation of two inputs, which broadcasts and promotes.

    ``divides``: integers become floats first.  ``bools``: whether it takes any.  ``backward``: the names of the node
    classes where the second input is a tensor, where it is a number, and where the first one is; by default one name.
    """
    classes = Backward, Second, _ = classes_of_binary(backward or (camel(name) + "Backward0",) * 3, rule_x, rule_y)
    (xx, yx), (xy, yy) = Backward.needs  # which rules need x, which need y

    forward = Function(forward).call if isinstance(forward, str) else forward
    slow = Slow(forward, (rule_x, rule_y), classes, divides, bools)

    def asking(unusual, numbers=scalar_types):
        def op(input, other, *, out=None):
            if out is not None:
                return unusual(input, other, out=out)
            if isinstance(input, Tensor):
                x, p = input.array, input.node
                if state() not in quiet:
                    hush()
                if isinstance(other, Tensor):
                    y, q = other.array, other.node
                    kind = type(x)
                    scalars = kind is type(y) and kind in number_types  # so the dtypes are equal, and the shapes
                    if not scalars and x.dtype is not y.dtype:
                        return slow.mixed(x, p, y, q, Backward)
                    try:
                        out = forward(x, y)
                    except (ValueError, TypeError):
                        return slow.mixed(x, p, y, q, Backward)
                    if divides and out.dtype is not x.dtype:
                        return slow.mixed(x, p, y, q, Backward)
                    if (p is None and q is None) or not mode.enabled:
                        return Tensor(out)
                    if p is not None:
                        if q is not None:
                            node = Backward((p, q), (x if xx or yx else None, y if xy or yy else None))
                        else:
                            node = Backward((p, q), (x if xx else None, y if xy else None))
                    else:
                        node = Backward((p, q), (x if yx else None, y if yy else None))
                    if not scalars and (x.shape != y.shape or kind is not type(y)):
                        node.rules = undo_broadcast(rule_x, x, y), undo_broadcast(rule_y, y, x)
                    return Tensor(out, node)
                if type(other) in numbers:
                    try:
                        out = forward(x, other)
                    except (OverflowError, TypeError):
                        return slow.mixed(x, p, other, None, Second)
                    if out.dtype is not x.dtype:
                        return slow.mixed(x, p, other, None, Second)
                    if p is None or not mode.enabled:
                        return Tensor(out)
                    return Tensor(out, Second((p, None), (x if xx else None, other)))
            return unusual(input, other)

        return op

    return register(name, "binary", with_asking(asking, slow.numbers), rule_x, rule_y)


def classes_of_binary(names, rule_x, rule_y):
    """Return the node classes of these names; equal names share a class."""
    classes = {n: node_class(n, rule_x, rule_y) for n in names}
    for n, Class in classes.items():
        Class.diagonal = True
        Class.scalar_operand = n != names[0]
    return tuple(classes[n] for n in names)


class Slow:
    """The calls of a binary operation that are not of two Tensors of one dtype, or of one and a number."""

    def __init__(self, forward, rules, classes, divides, bools):
        self.forward, self.rules, self.classes, self.divides, self.bools = forward, rules, classes, divides, bools

    def numbers(self, input, other):
        """Numbers and arrays on either side; NumPy's numbers are as Python's."""
        _, Second, First = self.classes
        if isinstance(input, Tensor):
            other = other.item() if type(other) in number_types else other
            return self.mixed(input.array, input.node, other, None, Second)
        if isinstance(other, Tensor):
            input = input.item() if type(input) in number_types else input
            return self.mixed(input, None, other.array, other.node, First)
        return self.forward(input, other)

    def mixed(self, x, p, y, q, Class):
        """Mixed dtypes, arrays beside Tensors, errors."""
        be_quiet()
        if type(x) not in modules or type(y) not in modules:
            return NotImplemented
        if not self.bools and (is_bool(x) or is_bool(y)):
            raise no_bools(x, y)
        x, y = one_device(x, y)
        try:
            out, common = promoted(self.forward, x, y, self.divides)
        except ValueError:
            raise broadcast_error(x, y) from None
        if (p is None and q is None) or not mode.enabled:
            return Tensor(out)
        (xx, yx), (xy, yy) = Class.needs  # of those that are wanted alone
        needs_x = xx and p is not None or yx and q is not None
        needs_y = xy and p is not None or yy and q is not None
        node, (rule_x, rule_y) = Class((p, q), (x if needs_x else None, y if needs_y else None)), self.rules
        node.rules = undo_cast(rule_x, x, y, common), undo_cast(rule_y, y, x, common)
        return Tensor(out, node)


def bits(name, forward, kernel=None):
    """A bitwise operation of integers or bools; ``kernel``: PyTorch's, where it takes integers alone."""

    def checked(x, y):
        if kernel:
            refuse(kernel, "b", x, y)
        if is_integral(x) and is_integral(y):
            return forward(x, y)
        x = x if type(x) not in scalar_types and dtypes.of[x.dtype].is_floating_point else y
        kind = "Float" if type(x) in scalar_types else dtype_word(x)
        raise NotImplementedError(f"\"{kernel or name + '_cpu'}\" not implemented for '{kind}'")

    return binary(name, checked, lambda g, _x, _y: None, lambda g, _x, _y: None)


def comparison(name, forward):
    """An elementwise test of two inputs; the result is bool."""

    def asking(unusual, numbers=scalar_types):
        def op(input, other, *, out=None):
            if out is not None:
                return unusual(input, other, out=out)
            if isinstance(input, Tensor):
                if isinstance(other, Tensor):
                    return compared(input.array, other.array)
                if type(other) in numbers:
                    return compared(input.array, other)
            return unusual(input, other)

        return op

    def compared(x, y):
        if state() not in quiet:  # nan in bfloat16 is "invalid"
            hush()
        try:
            if type(y) in scalar_types:
                if x.dtype is BFLOAT16:
                    y = beside(x, y)
            elif x.dtype is not y.dtype:
                return Tensor(promoted(forward, x, y)[0])
            return Tensor(forward(x, y))
        except ValueError:
            raise broadcast_error(x, y) from None
        except TypeError:
            return Tensor(promoted(forward, *one_device(x, y))[0])

    def from_numbers(input, other):
        x, y = array_of(input), array_of(other)
        if type(x) not in modules or type(y) not in modules:
            return NotImplemented
        if x is not input:
            return compared(x, y)
        return forward(x, y) if y is other else Tensor(forward(x, y))

    op = with_asking(asking, from_numbers)
    if not name.startswith("logical"):  # what they are written into loses its past; after logical_and_ PyTorch keeps it
        op.written = [node_class(f"{camel(name)}Backward{i}", lambda g: zeros_for(g)) for i in (0, 1)]
    return register(name, "comparison", op)


def promoted(forward, x, y, divides=False):
    """``forward(x, y)`` in the dtype that PyTorch computes in, and that dtype."""
    common = dtypes.result_type(operand(x), operand(y))
    if divides and not common.is_floating_point:
        common = dtypes.get_default_dtype()
    return forward(to_array(x, common.np), to_array(y, common.np)), common.np


def operand(x):
    """(dtype, rank) for type promotion."""
    if type(x) in scalar_types:
        return dtypes.scalar_dtype(x), dtypes.SCALAR
    return dtypes.of[x.dtype], dtypes.DIMS if x.ndim else dtypes.ZERO_DIM


def to_array(x, dtype):
    """x in a dtype; a number becomes NumPy's, which any array takes, and wraps around as in C."""
    return np.asarray(x).astype(dtype)[()] if type(x) in scalar_types else x.astype(dtype)


def beside(x, number):
    """A number as it is compared with x: in bfloat16, beside which NumPy would compare in float32, it is rounded."""
    return float(to_array(float(number), x.dtype)) if x.dtype is BFLOAT16 else number


BFLOAT16 = dtypes.bfloat16.np


def floating(dtype):
    """The NumPy dtype in which a function that has no integer results computes."""
    return dtype if dtypes.of[dtype].is_floating_point else dtypes.get_default_dtype().np


def undo_broadcast(rule, a, beside):
    """The rule of an input ``a`` which was broadcast, and perhaps came from the host to a device."""
    shape = a.shape
    if device_names and devices.device_of(a) == devices.cpu != devices.device_of(beside):
        return lambda g, x, y: transfer(sum_to(rule(g, x, y), shape), devices.cpu)
    return lambda g, x, y: sum_to(rule(g, x, y), shape)


def undo_cast(rule, a, beside, common):
    """The rule of an input ``a`` which was cast to ``common``, and perhaps broadcast."""
    if type(a) in scalar_types:
        return rule
    dtype, rule = a.dtype, undo_broadcast(rule, a, beside)
    return lambda g, x, y: cast(rule(g, cast(x, common), cast(y, common)), dtype)


def broadcast_error(*operands):
    """PyTorch's error for shapes that cannot be broadcast together."""
    shape: tuple = ()
    try:
        for v in operands:
            shape = common_shape(shape, () if type(v) in scalar_types else v.shape)
    except RuntimeError as error:
        return error
    return RuntimeError("the operation is not defined for these values")


def widened(a):
    """a in the dtype that its products and sums are accumulated in."""
    dtype = array_of(a).dtype
    return cast(a, dtypes.accumulate_wider.get(dtype, dtype))


def refuse(kernel, kinds, *operands):
    """NotImplementedError if operands are all of these kinds of dtype, for which PyTorch has no such kernel."""
    for x in operands:
        if type(x) in scalar_types:
            if type(x) is not bool:
                return
        elif x.dtype.kind not in kinds:
            return
        else:
            words = dtype_word(x)
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{words}'")


def is_bool(x):
    return type(x) is bool if type(x) in scalar_types else x.dtype == bool


def no_bools(x, y):
    """PyTorch's error for a subtraction with bools."""
    return RuntimeError(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead."
        if is_bool(x) and is_bool(y)
        else "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
        "use the `~` or `logical_not()` operator instead."
    )


def is_integral(x):
    return type(x) is not float if type(x) in scalar_types else x.dtype.kind in "iub"
