"""Elementwise operations: a table of derivatives, one line each.

``unary(name, forward, rule)`` and ``binary(name, forward, rule, rule)`` (``rows.py``): a rule gives the cotangent of
its input from the cotangent ``g`` of the output.  The names of its parameters (x, y, out) say what is saved; a leading
underscore: not needed.
"""

import math
import operator

import numpy as np

from ..arrays import devices, dtypes
from ..arrays.batches import not_batched
from ..arrays.devices import one_device
from ..arrays.dispatch import Function, scalar_types, special, xp_of
from ..arrays.dtypes import c_name, dtype_word
from ..arrays.kernels import indexing
from ..arrays.selection import either
from ..arrays.shapes import common_shape
from ..core.graph import node_class
from ..core.linear import cast, sum_to
from ..core.record import array_of, record
from ..core.rules import camel
from ..core.tensor import Tensor
from .checks import no_kernel, number

from .rows import beside, binary, bits, broadcast_error, comparison, is_bool, is_integral, no_bools  # isort: skip
from .rows import operand, refuse, register, to_array, unary, widened  # isort: skip
from .writes import fits, in_place, zeros_for

builtin_abs = abs  # this module's abs is the operation


# ---- arithmetic

# A row stays a row.
# fmt: off
add = binary("add", operator.add, lambda g, _x, _y: g, lambda g, _x, _y: g)
sub = binary("sub", lambda x, y: difference(x, y), lambda g, _x, _y: g, lambda g, _x, _y: -g, bools=False)
rsub = binary("rsub", lambda x, y: difference(y, x), lambda g, _x, _y: -g, lambda g, _x, _y: g, bools=False,
              backward=("RsubBackward0", "RsubBackward1", "RsubBackward1"))
mul = binary("mul", operator.mul, lambda g, _x, y: g * y, lambda g, x, _y: g * x)
div = binary("div", operator.truediv, lambda g, _x, y: g / y, lambda g, x, y: -g * ((x / y) / y), divides=True)
pow = binary("pow", lambda x, y: power(x, y), lambda g, x, y: pow_x(g, x, y), lambda g, x, y: pow_y(g, x, y),
             backward=("PowBackward1", "PowBackward0", "PowBackward2"))
floor_divide = binary("floor_divide", lambda x, y: divisible(x, y, "div_floor_cpu") // y,
                      lambda g, _x, _y: no_derivative("floor_divide"), lambda g, _x, _y: no_derivative("floor_divide"),
                      backward=("NotImplemented",) * 3)
div_floor = binary("div_floor", lambda x, y: divisible(x, y, "div_floor_cpu") // y,
                   lambda g, _x, _y: zeros_for(g), lambda g, _x, _y: zeros_for(g), backward=("DivBackward2",) * 3)
div_trunc = binary("div_trunc", lambda x, y: truncated(x, y),
                   lambda g, _x, _y: zeros_for(g), lambda g, _x, _y: zeros_for(g), backward=("DivBackward2",) * 3)
remainder = binary("remainder", lambda x, y: modulo(x, y), lambda g, _x, _y: g,
                   lambda g, x, y: -g * div_floor(x, y),
                   backward=("RemainderBackward1", "RemainderBackward0", "RemainderBackward1"))
fmod = binary("fmod", lambda x, y: xp_of(x).fmod(divisible(x, y, "fmod_cpu"), y), lambda g, _x, _y: g,
              lambda g, x, y: -g * div_trunc(x, y), backward=("FmodBackward1", "FmodBackward0", "FmodBackward1"))
atan2 = binary("atan2", "arctan2", lambda g, x, y: g * (y * inverse_square(x, y)),
               lambda g, x, y: -g * (x * inverse_square(x, y)),
               divides=True)
maximum = binary("maximum", "maximum", lambda g, x, y: larger(g, x, y), lambda g, x, y: larger(g, y, x))
minimum = binary("minimum", "minimum", lambda g, x, y: larger(g, y, x), lambda g, x, y: larger(g, x, y))
fmax = binary("fmax", "fmax", lambda g, x, y: choose(array_of(ge(x, y)) | array_of(isnan(y)), g, 0.0),
              lambda g, x, y: choose(array_of(ge(x, y)) | array_of(isnan(y)), 0.0, g))
fmin = binary("fmin", "fmin", lambda g, x, y: choose(array_of(le(x, y)) | array_of(isnan(y)), g, 0.0),
              lambda g, x, y: choose(array_of(le(x, y)) | array_of(isnan(y)), 0.0, g))
copysign = binary("copysign", "copysign", lambda g, x, y: g * choose(eq(x, 0), 0.0, copysign(x, y) / x),
                  lambda g, _x, _y: zeros_for(g), divides=True,
                  backward=("CopysignBackward0", "CopysignBackward1", "CopysignBackward0"))
hypot = binary("hypot", lambda x, y: of_floats("hypot", x, y),
               lambda g, x, y: g * x / hypot(x, y), lambda g, x, y: g * y / hypot(x, y))
logaddexp = binary("logaddexp", lambda x, y: of_floats("logaddexp", x, y), lambda g, x, y: g / (exp(y - x) + 1.0),
                   lambda g, x, y: g / (exp(x - y) + 1.0))
xlogy = binary("xlogy", lambda x, y: x_log_y(x, y),
               lambda g, x, y: choose(array_of(eq(x, 0)) & array_of(le(y, 0)), 0.0, xlogy(g, y)),
               lambda g, x, y: g * x / y, divides=True, backward=("XlogyBackward0", "XlogyBackward2", "XlogyBackward1"))
# fmt: on


def choose(condition, a, b):
    """``a`` where the array ``condition`` holds, else ``b``: arrays, Tensors or numbers, of one dtype and shape."""
    condition = array_of(condition)
    x, y = array_of(a), array_of(b)
    if x is a and y is b:
        return either.call(condition, a, b)
    dtype = x.dtype if type(y) in scalar_types else y.dtype
    out = cast(either.call(condition, x, y), dtype)
    return record(Where, out, (a, b), (condition, getattr(x, "shape", ()), getattr(y, "shape", ())))


def scaled(a, factor):
    """a times a number, which often is 1."""
    return a if factor == 1 else a * factor


def level(x, into):
    """The cotangent of x from a rule whose slope does not change with x, in steps at most.

    In a pass that is recorded it depends on x even so, as in PyTorch: the second derivative is 0, and not missing.
    """
    joins = isinstance(into, Tensor) and isinstance(x, Tensor) and x.node is not None
    return record(Level, into.array, (into, x)) if joins else into


Level = node_class("LevelBackward0", lambda g: g, lambda g: zeros_for(g), diagonal=True)


def kept(g, mask, x):
    """``g`` where ``mask``, which was made of x, holds, else 0."""
    return level(x, choose(mask, g, 0.0)) if isinstance(g, Tensor) else indexing.kept(g, mask)


def of_floats(name, x, y):
    refuse(name + "_cpu", "iub", x, y)
    return getattr(xp_of(x), name)(x, y)


def x_log_y(x, y):
    """x * log(y), and 0 where x is 0 and y is no nan."""
    out = x * log_of(y)
    return choose((x == 0) & (y == y), 0.0, out).astype(out.dtype)


def log_of(y):
    """log(y), of a number below 0 or 0 too."""
    return log(y) if type(y) not in scalar_types or y > 0 else -math.inf if y == 0 else math.nan


def difference(x, y):
    if type(x) is bool or type(y) is bool:
        raise no_bools(x, y)
    try:
        return x - y
    except TypeError:  # NumPy subtracts no bools either
        if is_bool(x) or is_bool(y):
            raise no_bools(x, y) from None
        raise


def divisible(x, y, kernel):
    """x, unless it would be an integer divided by 0, or a bool by a bool."""
    refuse(kernel, "b", x, y)
    if type(x) not in scalar_types and x.dtype.kind in "iu" and type(y) is not float:
        if not y if type(y) in scalar_types else devices.violated(y, lambda y: (y == 0).any()):
            raise RuntimeError("ZeroDivisionError")
    return x


def modulo(x, y):
    """x % y; a zero has the sign of x, not that of y as in NumPy."""
    out = divisible(x, y, "remainder_cpu") % y
    if type(out) is int or out.dtype.kind in "iu":  # a number: of a dunder method that is called by name
        return out
    return either.call(out == 0, x * 0.0, out).astype(out.dtype, copy=False)


def negated(x):
    try:
        return -x
    except TypeError:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        ) from None


def power(x, y):
    """x ** y; a negative power of an integer is 0, but for those of 1 and -1, and not allowed as a number."""
    if type(y) is bool and x.dtype == bool:
        return x | (not y)
    if type(y) not in scalar_types:
        refuse("pow", "b", x, y)
    try:
        return x**y
    except OverflowError:  # what the integers of x do not hold
        if type(y) not in scalar_types:
            raise
        if y >= 0:
            return x ** fits(y, x.dtype)
    except ValueError as error:
        if "power" not in str(error):
            raise
    if type(y) in scalar_types:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    where = xp_of(y).where
    return where(y >= 0, x ** where(y < 0, 0, y), where(x == 1, 1, where(x == -1, 1 - 2 * (y & 1), 0))).astype(y.dtype)


def no_derivative(name):
    raise RuntimeError(f"derivative for aten::{name} is not implemented")


def positive_part(x):
    """``bounded`` by 0 from below.  NumPy's vector instructions compare an array with an array, not with a number."""
    xp, code = xp_of(x), x.dtype.char
    if code == "?":
        raise RuntimeError("Boolean inputs not supported for relu")
    if xp is not np or code == "e":
        return bounded(xp.maximum, x, 0)
    zeros = xp.zeros(x.shape, x.dtype)
    return xp.maximum(zeros, x, out=zeros)


def logistic(x):
    """1 / (1 + exp(-x)); where exp overflows, that is 0: in float16 from -11 on, so half precision is widened."""
    if wide := x.itemsize == 2 and dtypes.accumulate_wider.get(x.dtype):
        return logistic(x.astype(wide)).astype(x.dtype)
    try:
        e = xp_of(x).exp(-x)
    except TypeError:  # NumPy does not negate bools
        e = xp_of(x).exp(x * -1.0)
    e += 1.0  # a fresh array: no need for another
    return 1.0 / e  # NumPy takes twice as long for reciprocal(e)


def sine_over(x):
    """sin(pi * x) / (pi * x), and 1 at 0; half precision in float32."""
    xp, angle = xp_of(x), widened(x) * math.pi
    return xp.where(x == 0, 1.0, xp.sin(angle) / angle)


def pow_x(g, x, y):
    """g * y * x**(y - 1), and 0 where y is 0 even if x is 0."""
    if type(y) in scalar_types:
        return zeros_for(g) if y == 0 else g * (y * x ** (y - 1))
    return choose(eq(y, 0), 0.0, g * (y * x ** (y - 1)))


def pow_y(g, x, y):
    """g * x**y * log(x), and g * 0 where x is 0 and y is not negative."""
    if type(x) not in scalar_types:
        return g * choose(array_of(eq(x, 0)) & array_of(ge(y, 0)), 0.0, x**y * log(x))
    slope = x**y * log_of(x)
    return g * (slope if x != 0 else choose(ge(y, 0), 0.0, slope))


def larger(g, x, y):
    """0 where x < y, half of g where they are equal, else g: also where one is nan."""
    return choose(lt(x, y), 0.0, choose(eq(x, y), g * 0.5, g))


def inverse_square(x, y):
    """1 / (x * x + y * y), and 0 where both are 0."""
    square = x * x + y * y
    return choose(eq(square, 0), 0.0, 1.0 / square)


def polygamma(n, input):
    """The n-th derivative of digamma, n > 0."""
    x = array_of(input)
    return record(Polygamma, special("polygamma", n)(x), (input,), (x, n))


# ---- functions of one input

log_gamma = special("gammaln")
# fmt: off
neg = unary("neg", lambda x: negated(x), lambda g, _: -g, integers="keep")
sgn = unary("sgn", "sign", lambda g, _: zeros_for(g), integers="keep")  # nan of nan, and ten times as fast as sign
abs = unary("abs", "absolute", lambda g, x: g * sgn(x), integers="keep", refuses="abs_cpu")
sign = unary("sign", lambda x: xp_of(x).subtract(x > 0, x < 0, dtype=x.dtype) if x.dtype != bool else x.copy(),
             lambda g, _: zeros_for(g), integers="keep")
square = unary("square", lambda x: x * x if x.dtype != bool else x.astype(np.int64), lambda g, x: g * (x * 2.0),
               integers="keep", backward="PowBackward0")
sqrt = unary("sqrt", "sqrt", lambda g, out: g / (out * 2.0))
rsqrt = unary("rsqrt", lambda x: 1.0 / sqrt(x), lambda g, out: g * (out * out * out) * -0.5)
reciprocal = unary("reciprocal", lambda x: 1.0 / x, lambda g, out: -g * (out * out))
exp = unary("exp", "exp", lambda g, out: g * out)
exp2 = unary("exp2", "exp2", lambda g, out: g * (out * math.log(2.0)))
expm1 = unary("expm1", "expm1", lambda g, out: g * (out + 1.0))
log = unary("log", "log", lambda g, x: g / x)
log1p = unary("log1p", "log1p", lambda g, x: g / (x + 1.0), backward="Log1PBackward0")
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
sinc = unary("sinc", lambda x: sine_over(x), lambda g, x: kept(g * ((cos(x * math.pi) - sinc(x)) / x), x != 0, x))
asinh = unary("asinh", "arcsinh", lambda g, x: g * rsqrt(x * x + 1.0))
acosh = unary("acosh", "arccosh", lambda g, x: g * rsqrt(x * x - 1.0))
atanh = unary("atanh", "arctanh", lambda g, x: g / (1.0 - x * x))
sigmoid = unary("sigmoid", lambda x: logistic(x), lambda g, out: g * ((1.0 - out) * out))
relu = unary("relu", lambda x: positive_part(x), lambda g, out: kept(g, out != 0, out), integers="keep")
erf = unary("erf", special("erf"), lambda g, x: g * (2.0 / math.sqrt(math.pi) * exp(-x * x)))
erfc = unary("erfc", special("erfc"), lambda g, x: g * (-2.0 / math.sqrt(math.pi) * exp(-x * x)))
lgamma = unary("lgamma", lambda x: log_gamma(xp_of(x).where(x == -math.inf, math.inf, x)), lambda g, x: g * digamma(x))
digamma = unary("digamma", special("psi"), lambda g, x: g * polygamma(1, x))
erfinv = unary("erfinv", special("erfinv"), lambda g, out: g * (exp(out * out) * (math.sqrt(math.pi) / 2.0)))
ceil = unary("ceil", "ceil", lambda g, _: zeros_for(g), integers="keep", refuses="ceil_vml_cpu")
floor = unary("floor", "floor", lambda g, _: zeros_for(g), integers="keep", refuses="floor_vml_cpu")
trunc = unary("trunc", "trunc", lambda g, _: zeros_for(g), integers="keep", refuses="trunc_vml_cpu")
frac = unary("frac", lambda x: fraction(x), lambda g, _: g, integers="keep")
# fmt: on

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
isposinf = unary("isposinf", lambda x: x == math.inf, integers="keep")
isneginf = unary("isneginf", lambda x: x == -math.inf, integers="keep")
signbit = unary("signbit", "signbit", integers="keep")
logical_not = unary("logical_not", "logical_not", integers="keep")
logical_and = comparison("logical_and", Function("logical_and").call)
logical_or = comparison("logical_or", Function("logical_or").call)
logical_xor = comparison("logical_xor", Function("logical_xor").call)
bitwise_and = bits("bitwise_and", operator.and_)
bitwise_or = bits("bitwise_or", operator.or_)
bitwise_xor = bits("bitwise_xor", operator.xor)
bitwise_left_shift = bits("bitwise_left_shift", operator.lshift, "lshift_cpu")
bitwise_right_shift = bits("bitwise_right_shift", operator.rshift, "rshift_cpu")
bitwise_not = unary("bitwise_not", lambda x: invert(x), integers="keep")


def fraction(x):
    """The part after the decimal point, with the sign of the number."""
    refuse("frac_cpu", "iub", x)
    return x - trunc(x)


def invert(x):
    if dtypes.of[x.dtype].is_floating_point:
        raise no_kernel("bitwise_not_cpu", x)
    return ~x


def inverted(self):
    """``~self``."""
    if self.is_floating_point():
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


def positive(input):
    """The tensor itself.  RuntimeError for bools."""
    if array_of(input).dtype == bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def equal(input, other):
    """Tell whether two tensors have the same shape and the same elements."""
    x, y = input.array, other.array
    not_batched("Batching rule not implemented for aten::equal. We could not generate a fallback.", x, y)
    return x.shape == y.shape and bool((x == y).all())


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Element by element, whether |input - other| <= atol + rtol * |other|."""
    x, y = input.array, other.array
    if x.dtype != y.dtype:
        raise RuntimeError(f"{dtype_word(x)} did not match {dtype_word(y)}")
    if rtol < 0 or atol < 0:
        name, value = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    common_shape(x.shape, y.shape)
    close = x == y
    if equal_nan and input.is_floating_point():
        close = close | ((x != x) & (y != y))
    if rtol or atol:
        wide = x.astype(np.float64), y.astype(np.float64)
        finite = xp_of(x).isfinite(wide[0] - wide[1])
        close = close | (finite & (xp_of(x).absolute(wide[0] - wide[1]) <= atol + xp_of(x).absolute(rtol * wide[1])))
    return Tensor(close)


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Tell whether all elements are close in the sense of ``isclose``."""
    close = isclose(input, other, rtol, atol, equal_nan).array
    not_batched(
        "vmap over torch.allclose isn't supported yet. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature.",
        close,
    )
    return bool(close.all())


# ---- operations with more arguments

# fmt: off
Where = node_class("WhereBackward0",
                   lambda g, mask, shape_x, _: sum_to(choose(mask, g, 0.0), shape_x),
                   lambda g, mask, _, shape_y: sum_to(choose(mask, 0.0, g), shape_y))
Polygamma = node_class("PolygammaBackward0", lambda g, x, n: g * polygamma(n + 1, x))
Clamp, ClampMin, ClampMax = (
    node_class(name, lambda g, mask, dtype: cast(choose(mask, g, 0.0), dtype))
    for name in ("ClampBackward1", "ClampMinBackward0", "ClampMaxBackward0"))
ClampTensor, ClampMinTensor, ClampMaxTensor = (
    node_class(name, lambda g, mask, _below, _above, shapes: sum_to(choose(mask, g, 0.0), shapes[0]),
               lambda g, _inside, mask, _above, shapes: sum_to(choose(mask, g, 0.0), shapes[1]),
               lambda g, _inside, _below, mask, shapes: sum_to(choose(mask, g, 0.0), shapes[2]))
    for name in ("ClampBackward0", "ClampMinBackward1", "ClampMaxBackward1"))
LerpNumber = node_class("LerpBackward0", lambda g, shape, _, weight: sum_to(g * (1 - weight), shape),
                        lambda g, _, shape, weight: sum_to(g * weight, shape))
LerpTensor = node_class("LerpBackward1",
                        lambda g, _x, _y, z, shapes: sum_to(g * (1.0 - z), shapes[0]),
                        lambda g, _x, _y, z, shapes: sum_to(g * z, shapes[1]),
                        lambda g, x, y, _z, shapes: sum_to(g * (y - x), shapes[2]))
Addcmul = node_class("AddcmulBackward0",
                     lambda g, _y, _z, _value, shapes: sum_to(g, shapes[0]),
                     lambda g, _y, z, value, shapes: sum_to(g * (z * value), shapes[1]),
                     lambda g, y, _z, value, shapes: sum_to(g * (y * value), shapes[2]))
Addcdiv = node_class("AddcdivBackward0",
                     lambda g, _y, _z, _value, shapes: sum_to(g, shapes[0]),
                     lambda g, _y, z, value, shapes: sum_to(g * value / z, shapes[1]),
                     lambda g, y, z, value, shapes: sum_to(-g * ((y * value) / (z * z)), shapes[2]))
Round, RoundDecimals = (node_class(name, lambda g: zeros_for(g)) for name in ("RoundBackward0", "RoundBackward1"))
NanToNum = node_class("NanToNumBackward0", lambda g, mask: g * array_of(mask).astype(array_of(g).dtype))
# fmt: on


def with_factor(name, base, sign):
    """``input + alpha * other``, ``input - alpha * other``."""
    Backward = node_class(camel(name) + "Backward0", lambda g, shape, _, __: sum_to(g, shape),
                          lambda g, _, shape, alpha: sum_to(g * (sign * alpha), shape))  # fmt: skip

    def op(input, other, *, alpha=1):
        if type(alpha) is int and alpha == 1:
            return base(input, other)
        x, y = array_of(input), array_of(other)
        common, alpha = dtypes.result_type(operand(x), operand(y)), number(alpha, name, "alpha")
        if type(alpha) is bool and common is not dtypes.bool_:
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
        if type(alpha) is float and common.category < dtypes.FLOATING:
            raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
        alpha = alpha if common.is_floating_point else fits(alpha, common.np).item()
        if base is sub and (is_bool(x) or is_bool(y)):
            raise no_bools(x, y)
        a, b = (Tensor(to_array(v, common.np)) for v in (x, y))
        out = array_of(base(a, b * alpha))
        return record(Backward, out, (input, other), (getattr(x, "shape", ()), getattr(y, "shape", ()), alpha))

    return register(name, "call", op, *Backward.rules)


add_scaled = with_factor("add", add, 1)
sub_scaled = with_factor("sub", sub, -1)


def rsub_scaled(input, other, *, alpha=1):
    """other - alpha * input."""
    return rsub(input, other) if type(alpha) is int and alpha == 1 else sub_scaled(other, input, alpha=alpha)


def float_power(input, exponent):
    """input ** exponent, both in float64."""
    return pow(*(v.to(dtypes.float64) if isinstance(v, Tensor) else float(v) for v in (input, exponent)))


def float_power_(self, exponent):
    """``float_power`` written into a float64 tensor; RuntimeError for others."""
    if self.dtype is not dtypes.float64:
        kind = dtype_word(self.array)
        raise RuntimeError(
            f"the base given to float_power_ has dtype {kind} but the operation's result requires dtype Double"
        )
    return in_place(float_power)(self, exponent)


def divide(input, other, *, rounding_mode=None):
    """input / other; ``rounding_mode`` "floor" or "trunc" rounds the quotient, which then has no gradient."""
    if rounding_mode is None:
        return div(input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return (div_floor if rounding_mode == "floor" else div_trunc)(input, other)


def truncated(x, y):
    if is_integral(divisible(x, y, "div_trunc_cpu")):
        return (x - xp_of(x).fmod(x, y)) // y
    return trunc(x / y)


def clamp(input, min=None, max=None, *, kind=None):
    """The elements limited to [min, max]; either may be None, a number or a tensor.  On them too the gradient is 1."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    min, max = (v.item() if isinstance(v, np.generic) else v for v in (min, max))
    one_is_a_tensor = isinstance(min, Tensor) is not isinstance(max, Tensor)
    if one_is_a_tensor and min is not None and max is not None:  # PyTorch takes two of a kind
        min, max = (number(v, "clamp", name) for v, name in ((min, "min"), (max, "max")))
    x, low, high = map(array_of, (input, min, max))
    given = [v for v in (low, high) if v is not None]
    tensors = isinstance(min, Tensor) or isinstance(max, Tensor)
    if not tensors or len(given) == 2:
        side = "" if tensors else "_scalar" if len(given) == 2 else "_max_scalar" if low is None else "_min_scalar"
        refuse(f"clamp{side}_cpu", "b", x, *given)
    common = dtypes.result_type(*map(operand, (x, *given))).np
    low, high = (beside(x, v) if type(v) in scalar_types else v for v in (low, high))
    low, high, wide = (v if v is None or type(v) in scalar_types else to_array(v, common) for v in (low, high, x))
    try:
        out = limited(wide, low, high)
    except OverflowError:  # what integers do not hold
        out = limited(wide, *(fits(v, common) if type(v) in scalar_types else v for v in (low, high)))
    except ValueError:
        raise broadcast_error(x, *given) from None
    out = out.astype(common, copy=False)  # bfloat16 and a number make float32 in NumPy
    Backward = kind or (ClampTensor if tensors else Clamp)
    inside = True if low is None else wide >= low
    inside = inside if high is None else inside & (wide <= high)
    if not tensors:
        return record(Backward, out, (input,), (inside, x.dtype))
    below = False if low is None else (wide < low) if high is None else (wide < low) & (low < high)
    above = False if high is None else (wide > high) if low is None else (wide > high) | (low > high)
    shapes = tuple(getattr(v, "shape", ()) for v in (x, low, high))
    return record(Backward, out, (input, min, max), (inside, below, above, shapes))


def limited(x, low, high):
    if low is not None:
        x = bounded(xp_of(x).maximum, x, low)
    return x if high is None else bounded(xp_of(x).minimum, x, high)


def bounded(extreme, x, bound):
    """The ``maximum`` or ``minimum``, and of two zeros x: NumPy takes the second, of float16 the first."""
    return extreme(x, bound) if x.dtype.char == "e" else extreme(bound, x)


def clamp_min(input, min):
    """The elements, but none below ``min``."""
    return clamp(input, min=min, kind=ClampMinTensor if isinstance(min, Tensor) else ClampMin)


def clamp_max(input, max):
    """The elements, but none above ``max``."""
    return clamp(input, max=max, kind=ClampMaxTensor if isinstance(max, Tensor) else ClampMax)


def lerp(input, end, weight):
    """input + weight * (end - input)."""
    x, y, w = array_of(input), array_of(end), array_of(weight)
    if x.dtype != y.dtype:
        names = [c_name(dtypes.of[v.dtype]) for v in (x, y)]
        raise RuntimeError(f"expected dtype {names[0]} for `end` but got dtype {names[1]}")
    refuse("lerp_kernel_scalar", "iub", x)
    if type(w) not in scalar_types and w.ndim and w.dtype != x.dtype:
        names = [c_name(dtypes.of[v.dtype]) for v in (x, w)]
        raise RuntimeError(f"expected dtype {names[0]} for `weight` but got dtype {names[1]}")
    wide = [v if type(v) in scalar_types else widened(v) for v in (x, y, w)]
    try:
        out = choose_lerp(*wide).astype(x.dtype, copy=False)
    except ValueError:
        raise broadcast_error(x, y, w) from None
    except TypeError:
        one_device(x, y)
        raise
    if type(w) in scalar_types:
        return record(LerpNumber, out, (input, end), (x.shape, y.shape, w))
    return record(LerpTensor, out, (input, end, weight), (input.array, end.array, w, (x.shape, y.shape, w.shape)))


def choose_lerp(x, y, w):
    """From the nearer end, as PyTorch computes it, so that the ends are met exactly."""
    if type(w) in scalar_types:
        return x + w * (y - x) if builtin_abs(w) < 0.5 else y - (y - x) * (1 - w)
    return xp_of(x).where(xp_of(x).absolute(w) < 0.5, x + w * (y - x), y - (y - x) * (1 - w))


def round(input, *, decimals=0):
    """To the nearest integer, halves to the even one; ``decimals`` digits after the point are kept."""
    x = array_of(input)
    refuse("round_cpu" if decimals else "round_vml_cpu", "b", x)
    rint = xp_of(x).rint
    if not dtypes.of[x.dtype].is_floating_point:
        if decimals:
            raise no_kernel("round_cpu", x)
        out = x.copy()
    elif decimals == 0:
        out = rint(x)
    else:
        ten = x.dtype.type(10.0 ** builtin_abs(decimals))
        out = rint(x * ten) / ten if decimals > 0 else rint(x / ten) * ten
    return record(Round if decimals == 0 else RoundDecimals, out, (input,))


def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """Replace nan (by 0), inf and -inf (by the largest and the lowest number of the dtype)."""
    x = array_of(input)
    if not dtypes.of[x.dtype].is_floating_point:
        return input.clone()
    info = dtypes.finfo(dtypes.of[x.dtype])
    nan = 0.0 if nan is None else nan
    posinf, neginf = (info.max if posinf is None else posinf), (info.min if neginf is None else neginf)
    where = xp_of(x).where
    out = where(x != x, nan, where(x == math.inf, posinf, where(x == -math.inf, neginf, x))).astype(x.dtype)
    return record(NanToNum, out, (input,), (xp_of(x).isfinite(x),))


def in_common(*tensors):
    """The arrays of tensors in the dtype that they are promoted to."""
    arrays = [array_of(t) for t in tensors]
    common = dtypes.result_type(*map(operand, arrays)).np
    return [x.astype(common, copy=False) for x in arrays]


def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 * tensor2."""
    x, y, z = in_common(input, tensor1, tensor2)
    refuse("addcmul_cpu_out", "b", x)
    if x.dtype not in dtypes.differentiable:
        value = fits(value, x.dtype).item()
    a, b, c = (Tensor(widened(v)) for v in (x, y, z))  # in float16 a product that ``value`` makes small may overflow
    out = array_of(a + b * value * c).astype(x.dtype, copy=False)
    return record(Addcmul, out, (input, tensor1, tensor2), (y, z, value, (x.shape, y.shape, z.shape)))


def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 / tensor2.  RuntimeError for integers, of which the quotient would be none."""
    x, y, z = in_common(input, tensor1, tensor2)
    if array_of(tensor1).dtype.kind in "iub" and array_of(tensor2).dtype.kind in "iub":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. Write (input + value * tensor1 / tensor2)."
        )
    a, b, c = (Tensor(widened(v)) for v in (x, y, z))
    out = array_of(a + b * value / c).astype(x.dtype, copy=False)
    return record(Addcdiv, out, (input, tensor1, tensor2), (y, z, value, (x.shape, y.shape, z.shape)))


NAMES = """equal isclose allclose clamp clamp_min clamp_max lerp round nan_to_num addcmul addcdiv divide float_power"""
for name in NAMES.split():
    register(name, "call", globals()[name])
