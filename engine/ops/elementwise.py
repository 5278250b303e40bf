"""Elementwise operations: a table of derivatives, one line each.

``unary(name, forward, rule)`` and ``binary(name, forward, rule, rule)``: a rule gives the cotangent of its input from the
cotangent ``g`` of the output.  The names of its parameters (x, y, out) say what is saved; a leading underscore: not needed.
"""

import math
import operator

import numpy as np

from .. import dtypes
from ..backend import Function, modules, scalar_types, special
from ..graph import mode, node_class
from ..record import camel, enter, module, raw, record
from ..tensor import Tensor
from .structure import cast, sum_to

# ---- how a row becomes an operation


def unary(name, forward, rule=None, *, integers="float", backward=None):
    """An elementwise function of one input.

    ``forward``: the name of a function in every array module, or a function of an array.  ``rule``: None if it is not
    differentiable.  ``integers``: what integers become first, "float" (the default dtype) or "keep".
    """
    Backward = rule and node_class(backward or camel(name) + "Backward0", rule)
    saves = rule and rule.__code__.co_varnames[1]
    to_float = integers == "float"
    compute = Function(forward).call if isinstance(forward, str) else forward

    def op(input):
        if not isinstance(input, Tensor):
            return compute(input)
        x = input.array
        out = compute(x)
        if to_float and out.dtype is not x.dtype:
            out = compute(x.astype(floating(x.dtype)))
        p = input.node
        if p is not None and Backward is not None and mode.enabled:
            return Tensor(out, Backward((p,), (out if saves == "out" else x if saves == "x" else None,)))
        return Tensor(out)

    return enter(name, "unary" if rule else "test", op, rule)


def binary(name, forward, rule_x, rule_y, *, divides=False, backward=None):
    """An elementwise operation of two inputs, which broadcasts and promotes.

    ``divides``: integers become floats first.  ``backward``: the names of the node classes where the second input is a
    tensor, where it is a number, and where the first one is; one name for all by default.
    """
    names = backward or (camel(name) + "Backward0",) * 3
    made = {n: node_class(n, rule_x, rule_y) for n in names}
    Backward, Second, First = (made[n] for n in names)
    (xx, yx), (xy, yy) = Backward.needs  # which rules need x, which need y

    forward = Function(forward).call if isinstance(forward, str) else forward

    def op(input, other):
        if isinstance(input, Tensor):
            x, p = input.array, input.node
            if isinstance(other, Tensor):
                y, q = other.array, other.node
                if x.dtype is not y.dtype:
                    return mixed(x, p, y, q, Backward)
                try:
                    out = forward(x, y)
                except (ValueError, TypeError):
                    return mixed(x, p, y, q, Backward)
                if divides and out.dtype is not x.dtype:
                    return mixed(x, p, y, q, Backward)
                if (p is None and q is None) or not mode.enabled:
                    return Tensor(out)
                node = Backward((p, q), (x if p is not None and xx or q is not None and yx else None,
                                         y if p is not None and xy or q is not None and yy else None))  # fmt: skip
                if x.shape != y.shape:
                    node.rules = undo_broadcast(rule_x, x.shape), undo_broadcast(rule_y, y.shape)
                return Tensor(out, node)
            if type(other) in scalar_types:
                try:
                    out = forward(x, other)
                except (OverflowError, TypeError):
                    return mixed(x, p, other, None, Second)
                if out.dtype is not x.dtype:
                    return mixed(x, p, other, None, Second)
                if p is None or not mode.enabled:
                    return Tensor(out)
                return Tensor(out, Second((p, None), (x if xx else None, other)))
            return mixed(x, p, other, None, Second)
        if isinstance(other, Tensor):
            return mixed(input, None, other.array, other.node, First)
        return forward(input, other)

    def mixed(x, p, y, q, Class):
        """The cases in which a program spends no time: other dtypes, arrays beside Tensors, errors."""
        if type(x) not in modules or type(y) not in modules:
            return NotImplemented
        try:
            out, common = promoted(forward, x, y, divides)
        except ValueError:
            raise broadcast_error(x, y) from None
        if (p is None and q is None) or not mode.enabled:
            return Tensor(out)
        node = Class((p, q), (x, y))
        node.rules = tuple(undo_cast(r, a, common) for r, a in ((rule_x, x), (rule_y, y)))
        return Tensor(out, node)

    return enter(name, "binary", op, rule_x, rule_y)


def comparison(name, forward):
    """An elementwise test of two inputs; the result is bool."""

    def op(input, other):
        x, y = raw(input), raw(other)
        if type(x) not in modules or type(y) not in modules:
            return NotImplemented
        if x is input and y is other:
            return forward(x, y)
        try:
            if type(y) not in scalar_types and type(x) not in scalar_types and x.dtype is not y.dtype:
                return Tensor(promoted(forward, x, y)[0])
            return Tensor(forward(x, y))
        except ValueError:
            raise broadcast_error(x, y) from None

    return enter(name, "comparison", op)


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
    """An array of x in a dtype; a number wraps around as in C."""
    return (np.asarray(x) if type(x) in scalar_types else x).astype(dtype)


def floating(dtype):
    """The NumPy dtype in which a function that has no integer results computes."""
    return dtype if dtypes.of[dtype].is_floating_point else dtypes.get_default_dtype().np


def undo_broadcast(rule, shape):
    """The rule of an input which was broadcast from ``shape``."""
    return lambda g, x, y: sum_to(rule(g, x, y), shape)


def undo_cast(rule, a, common):
    """The rule of an input ``a`` which was cast to ``common``, and perhaps broadcast."""
    if type(a) in scalar_types:
        return rule
    shape, dtype = a.shape, a.dtype
    return lambda g, x, y: cast(sum_to(rule(g, cast(x, common), cast(y, common)), shape), dtype)


def broadcast_error(x, y):
    """PyTorch's error for shapes that cannot be broadcast together."""
    a, b = np.shape(x), np.shape(y)
    n = max(len(a), len(b))
    for i in reversed(range(n)):
        p, q = ((1,) * (n - len(s)) + s for s in (a, b))
        if p[i] != q[i] and 1 not in (p[i], q[i]):
            return RuntimeError(
                f"The size of tensor a ({p[i]}) must match the size of tensor b ({q[i]}) at non-singleton dimension {i}"
            )
    return RuntimeError("the operation is not defined for these values")


def choose(condition, a, b):
    """``a`` where the array ``condition`` holds, else ``b``: arrays, Tensors or numbers, of one dtype and shape."""
    condition = raw(condition)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return module(condition).where(condition, a, b)
    x, y = raw(a), raw(b)
    dtype = x.dtype if type(y) in scalar_types else y.dtype
    out = module(condition).where(condition, x, y).astype(dtype)
    shape = lambda v: () if type(v) in scalar_types else v.shape  # noqa: E731
    return record(Where, out, (a, b), (condition, shape(x), shape(y)))


Where = node_class("WhereBackward0",
                   lambda g, mask, shape_x, _: sum_to(choose(mask, g, 0.0), shape_x),
                   lambda g, mask, _, shape_y: sum_to(choose(mask, 0.0, g), shape_y))  # fmt: skip

# ---- arithmetic

FIRST_IS_TENSOR = ("PowBackward1", "PowBackward0", "PowBackward2")

add = binary("add", operator.add, lambda g, _x, _y: g, lambda g, _x, _y: g)
sub = binary("sub", operator.sub, lambda g, _x, _y: g, lambda g, _x, _y: -g)
rsub = binary("rsub", lambda x, y: y - x, lambda g, _x, _y: -g, lambda g, _x, _y: g,
              backward=("RsubBackward0", "RsubBackward1", "RsubBackward1"))
mul = binary("mul", operator.mul, lambda g, _x, y: g * y, lambda g, x, _y: g * x)
div = binary("div", operator.truediv, lambda g, _x, y: g / y, lambda g, x, y: -g * ((x / y) / y), divides=True)
pow = binary("pow", operator.pow, lambda g, x, y: pow_x(g, x, y), lambda g, x, y: pow_y(g, x, y), backward=FIRST_IS_TENSOR)
floor_divide = binary("floor_divide", operator.floordiv, lambda g, _x, _y: None, lambda g, _x, _y: None)
remainder = binary("remainder", operator.mod, lambda g, _x, _y: g, lambda g, x, y: -g * floor(x / y))
fmod = binary("fmod", "fmod", lambda g, _x, _y: g, lambda g, x, y: -g * trunc(x / y))
atan2 = binary("atan2", "arctan2", lambda g, x, y: g * y / (x * x + y * y), lambda g, x, y: -g * x / (x * x + y * y),
               divides=True)
maximum = binary("maximum", "maximum", lambda g, x, y: larger(g, x, y), lambda g, x, y: larger(g, y, x))
minimum = binary("minimum", "minimum", lambda g, x, y: larger(g, y, x), lambda g, x, y: larger(g, x, y))
fmax = binary("fmax", "fmax", lambda g, x, y: choose(raw(ge(x, y)) | raw(isnan(y)), g, 0.0),
              lambda g, x, y: choose(raw(ge(x, y)) | raw(isnan(y)), 0.0, g))
fmin = binary("fmin", "fmin", lambda g, x, y: choose(raw(le(x, y)) | raw(isnan(y)), g, 0.0),
              lambda g, x, y: choose(raw(le(x, y)) | raw(isnan(y)), 0.0, g))
xlogy = binary("xlogy", lambda x, y: choose(raw(eq(x, 0)) & ~raw(isnan(y)), 0.0, x * log(y)),
               lambda g, x, y: g * choose(raw(eq(x, 0)) & raw(le(y, 0)), 0.0, log(y)), lambda g, x, y: g * x / y, divides=True)


def pow_x(g, x, y):
    """g * y * x**(y - 1), and 0 where y is 0 even if x is 0."""
    if type(y) in scalar_types:
        return g * 0.0 if y == 0 else g * (y * x ** (y - 1))
    return choose(eq(y, 0), 0.0, g * (y * x ** (y - 1)))


def pow_y(g, x, y):
    """g * x**y * log(x), and 0 where x is 0 and y is not negative."""
    if type(x) in scalar_types:
        return choose(ge(y, 0), 0.0, g * 0.0 + math.inf) if x == 0 else g * (x**y * (math.log(x) if x > 0 else math.nan))
    return choose(raw(eq(x, 0)) & raw(ge(y, 0)), 0.0, g * (x**y * log(x)))


def larger(g, x, y):
    """g where x > y, and half of it where they are equal."""
    return choose(gt(x, y), g, choose(eq(x, y), g * 0.5, 0.0))


# ---- functions of one input

neg = unary("neg", "negative", lambda g, _: -g, integers="keep")
positive = unary("positive", "positive", lambda g, _: g, integers="keep")
abs = unary("abs", "absolute", lambda g, x: g * sign(x), integers="keep")
sign = unary("sign", "sign", lambda g, _: g * 0.0, integers="keep")
square = unary("square", lambda x: x * x, lambda g, x: g * (x * 2.0), integers="keep", backward="PowBackward0")
sqrt = unary("sqrt", "sqrt", lambda g, out: g / (out * 2.0))
rsqrt = unary("rsqrt", lambda x: 1.0 / sqrt(x), lambda g, out: g * (out * out * out) * -0.5)
reciprocal = unary("reciprocal", lambda x: 1.0 / x, lambda g, out: -g * (out * out))
exp = unary("exp", "exp", lambda g, out: g * out)
exp2 = unary("exp2", "exp2", lambda g, out: g * (out * math.log(2.0)))
expm1 = unary("expm1", "expm1", lambda g, out: g * (out + 1.0))
log = unary("log", "log", lambda g, x: g / x)
log1p = unary("log1p", "log1p", lambda g, x: g / (x + 1.0))
log2 = unary("log2", "log2", lambda g, x: g / (x * math.log(2.0)))
log10 = unary("log10", "log10", lambda g, x: g / (x * math.log(10.0)))
sin = unary("sin", "sin", lambda g, x: g * cos(x))
cos = unary("cos", "cos", lambda g, x: g * -sin(x))
tan = unary("tan", "tan", lambda g, out: g * (out * out + 1.0))
asin = unary("asin", "arcsin", lambda g, x: g * rsqrt(1.0 - x * x))
acos = unary("acos", "arccos", lambda g, x: -g * rsqrt(1.0 - x * x))
atan = unary("atan", "arctan", lambda g, x: g / (x * x + 1.0))
sinh = unary("sinh", "sinh", lambda g, x: g * cosh(x))
cosh = unary("cosh", "cosh", lambda g, x: g * sinh(x))
tanh = unary("tanh", "tanh", lambda g, out: g * (1.0 - out * out))
asinh = unary("asinh", "arcsinh", lambda g, x: g * rsqrt(x * x + 1.0))
acosh = unary("acosh", "arccosh", lambda g, x: g * rsqrt(x * x - 1.0))
atanh = unary("atanh", "arctanh", lambda g, x: g / (1.0 - x * x))
sigmoid = unary("sigmoid", lambda x: reciprocal(exp(-x) + 1.0), lambda g, out: g * ((1.0 - out) * out))
relu = unary("relu", lambda x: module(x).maximum(x, 0), lambda g, out: g * gt(out, 0), integers="keep")
erf = unary("erf", special("erf"), lambda g, x: g * (2.0 / math.sqrt(math.pi) * exp(-x * x)))
erfc = unary("erfc", special("erfc"), lambda g, x: g * (-2.0 / math.sqrt(math.pi) * exp(-x * x)))
lgamma = unary("lgamma", special("gammaln"), lambda g, x: g * digamma(x))
digamma = unary("digamma", special("psi"), None)
ceil = unary("ceil", "ceil", lambda g, _: g * 0.0, integers="keep")
floor = unary("floor", "floor", lambda g, _: g * 0.0, integers="keep")
trunc = unary("trunc", "trunc", lambda g, _: g * 0.0, integers="keep")

# ---- tests

eq = comparison("eq", operator.eq)
ne = comparison("ne", operator.ne)
lt = comparison("lt", operator.lt)
le = comparison("le", operator.le)
gt = comparison("gt", operator.gt)
ge = comparison("ge", operator.ge)
isnan = unary("isnan", "isnan", integers="keep")
isinf = unary("isinf", "isinf", integers="keep")
isfinite = unary("isfinite", "isfinite", integers="keep")
bitwise_and = binary("bitwise_and", operator.and_, lambda g, _x, _y: None, lambda g, _x, _y: None)
bitwise_or = binary("bitwise_or", operator.or_, lambda g, _x, _y: None, lambda g, _x, _y: None)
bitwise_xor = binary("bitwise_xor", operator.xor, lambda g, _x, _y: None, lambda g, _x, _y: None)
bitwise_left_shift = binary("bitwise_left_shift", operator.lshift, lambda g, _x, _y: None, lambda g, _x, _y: None)
bitwise_right_shift = binary("bitwise_right_shift", operator.rshift, lambda g, _x, _y: None, lambda g, _x, _y: None)
bitwise_not = unary("bitwise_not", "invert", integers="keep")

METHODS = """abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor ceil cos cosh digamma div eq erf erfc exp exp2 expm1 floor floor_divide fmax fmin fmod ge gt isfinite isinf isnan le
lgamma log log10 log1p log2 lt maximum minimum mul ne neg positive pow reciprocal relu remainder rsqrt sigmoid sign sin sinh
sqrt square tan tanh trunc xlogy"""
IN_PLACE = """abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil cos cosh digamma div
erf erfc exp exp2 expm1 floor floor_divide fmod lgamma log log10 log1p log2 mul neg pow reciprocal relu remainder rsqrt sigmoid
sign sin sinh sqrt square tan tanh trunc xlogy"""
FUNCTIONS = METHODS + " rsub"
