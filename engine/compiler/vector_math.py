"""Vector math: exp, tanh, log, erf and their like of one element, for loops that Numba compiles.

Calls of a C library are not vectorised, and make such a loop ten times slower than NumPy.  What stands here is sums,
products, selects and integer arithmetic, which LLVM inlines and vectorises on every machine.  The module imports Numba,
and is itself imported when the first loop is wanted.  What a loop may call is in ``VECTORISED``, at the end.

The functions keep the fast-math flags that they are compiled with (``INLINED``), whatever those of the loop around:
"contract" alone.  "reassoc" would cancel what is added and subtracted again to round, "nsz" lose the sign of zero.

A polynomial is fitted for the least relative error of what is computed with it (by Remez' algorithm or by least squares
at Chebyshev's nodes, with 60 digits), its coefficients rounded one by one, lowest first, and the others fitted anew.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from .elementary import INLINED, as_bits, as_number, functions_of, inlined, polynomial

EXP = 0.49999997, 0.16666542, 0.041667525, 0.008366683, 0.0013862448
LOG = 0.6666666562238461, 0.4000033914507416, 0.28537102210557624, 0.2358552190115487
ERF = 0.12837917, -0.37612626, 0.11283579, -0.026853347, 0.005187162, -0.0007997853, 7.806903e-05
ERFC = (2.0, 1.0215827, -0.6871607, 0.27947113, -0.03644292, -0.021495739, 0.006485031, 0.0029985416, -0.0008424055,
        -0.00043703982)  # c, and the coefficients  # fmt: skip
float32 = functions_of(np.float32, np.int32, EXP, LOG, ERF, ERFC)
wide = functions_of(np.float64, np.int64, EXP, LOG, ERF, ERFC)  # for float32, where its own arithmetic loses too much
float64 = functions_of(
    np.float64,
    np.int64,
    (0.5, 0.16666666666666546, 0.04166666666661827, 0.008333333333425957, 0.001388888892118848, 0.00019841269625219964,
     2.4801515505947024e-05, 2.755750180232255e-06, 2.762255794582858e-07, 2.502128945413693e-08),
    (0.6666666666666734, 0.3999999999941655, 0.28571428742061616, 0.22222198600526688, 0.18183563134480005,
     0.15314076520848258, 0.1479572631489915),
    (0.12837916709551256, -0.3761263890318331, 0.1128379167093527, -0.026866170641663516, 0.005223977594152177,
     -0.0008548325355008726, 0.00012055276447846733, -1.4924385007259819e-05, 1.6443122235756386e-06,
     -1.617586839828602e-07, 1.3580522120157825e-08, -7.538379866824992e-10),
    (2.0, 1.021582705242023, -0.6871606844138108, 0.2794720925560531, -0.03644223150682739, -0.021510661889544636,
     0.006479185064765719, 0.0030906120672566082, -0.0008372959899299692, -0.0006630737682346795,
     3.437060748262082e-05, 0.0001444748371207667, 3.415239924943132e-05, -2.17303322921076e-05,
     -1.610740228102181e-05, -9.765998285508786e-07, 3.4457552490913045e-06, 1.7420910984446899e-06,
     7.284992351372894e-07, -7.78227277054099e-07, -1.1548609944988142e-06, 9.652315695639983e-07,
     -1.9581025710929945e-07),
)  # fmt: skip
f32, f64 = np.float32, np.float64
exp_32, wide_erfc, wide_log2, wide_exp2 = map(inlined, (float32["exp"], *map(wide.get, ("erfc", "log2", "exp2"))))
erf_rest = polynomial(f32, ERF)
log_of_erfc = polynomial(f32, (-0.0003297907, -1.1271381, -0.6380612, -0.103181526, 0.021874959, -0.0029571748,
                               0.00018738101))  # from 1 on  # fmt: skip
sin_rest = polynomial(f32, (-0.16666655, 0.008332189, -0.00019518287))
cos_rest = polynomial(f32, (0.041666646, -0.001388731, 2.4432327e-05))
rounder, even_from = 1.5 * 2.0**52, 2.0**25


def erf(x):
    a = abs(x)
    a = f32(4) if a > f32(4) else a
    small = a + a * erf_rest(a * a)
    tail = f32(1) - exp_32(log_of_erfc(a))
    return np.copysign(small if a < f32(1) else tail, x)


def erfc(x):
    return f32(wide_erfc(f64(x)))


def power(x, y):
    """x^y = 2^(y log2(x)), with C's rules for numbers that are negative, infinite or nan."""
    base, exponent = f64(abs(x)), f64(y)
    value = wide_exp2(exponent * wide_log2(base))
    near = min(max(exponent, -even_from), even_from) + rounder  # from there on all numbers are even
    whole = (near - rounder == exponent) | (abs(exponent) >= even_from)
    signed = -value if as_bits(near) & 1 else value
    outside = np.nan if (base > 0.0) & (base < np.inf) else value
    negative = signed if whole else outside
    value = negative if as_bits(x) < 0 else value
    one = (exponent == 0.0) | (x == f32(1)) | ((base == 1.0) & (abs(exponent) == np.inf))
    return f32(1.0 if one else value)


def two_over_pi():
    """2/pi as high + low, for x below 2^(k + 26): without the bits whose products with x are multiples of 4."""
    high, low = np.full((2, 104), np.nan)  # the last are for inf and nan
    for k in range(103):
        bits = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE51 & ((1 << 208 - k) - 1)
        cut = 208 - k - 29
        high[k], low[k] = math.ldexp(bits >> cut, cut - 208), math.ldexp(bits & ((1 << cut) - 1), -208)
    return high, low


high_of, low_of = two_over_pi()


@inlined
def sin_from(x, quarters):
    """sin(x + quarters * pi/2), reduced by the bits of 2/pi that x asks for (Payne and Hanek)."""
    k = ((as_bits(x) >> 23) & 255) - 152
    k = k if k > 0 else 0
    first, second = f64(x) * high_of[k], f64(x) * low_of[k]  # the first is exact: 24 bits times 29
    near = first + second + rounder
    r = f32((first - (near - rounder) + second) * (math.pi / 2))
    n = as_bits(near) + quarters
    z = r * r
    sin = np.copysign(r + r * z * sin_rest(z), r)  # -0 for -0
    cos = f32(1) - (f32(0.5) * z - z * z * cos_rest(z))
    value = cos if n & 1 else sin
    return -value if n & 2 else value


def sin(x):
    return sin_from(x, 0)


def cos(x):
    return sin_from(x, 1)


FUNCTIONS = {
    types.float32: float32 | {f.__name__: f for f in (erf, erfc, power, sin, cos)},
    types.float64: float64 | {"power": lambda x, y: x**y, "sin": lambda x: math.sin(x), "cos": lambda x: math.cos(x)},
}


def by_dtype(name, parameters="x"):
    """A function for loops: what it does with an element depends on the dtype."""
    function = eval(f"lambda {parameters}: None")
    function.__name__ = name
    choose = eval(f"lambda {parameters}: functions.get(x, {{}}).get({name!r})", {"functions": FUNCTIONS})
    overload(function, jit_options=INLINED)(choose)
    return function


# By the names of NumPy's and scipy.special's functions.  Behind each, the largest errors in units of the last place:
# of all float32 (of powers, of a million), from the nearest number; of four million float64, from what is exact.
VECTORISED = {
    "exp": by_dtype("exp"),  # 1, 1.1
    "exp2": by_dtype("exp2"),  # 1, 1.2
    "expm1": by_dtype("expm1"),  # 2, 2.1
    "log": by_dtype("log"),  # 1, 0.9
    "log2": by_dtype("log2"),  # 1, 1.0 (without fused multiply-add 2, 1.9)
    "log1p": by_dtype("log1p"),  # 1, 1.4
    "tanh": by_dtype("tanh"),  # 2, 2.6
    "expit": by_dtype("expit"),  # 2, 2.4
    "erf": by_dtype("erf"),  # 1, 1.1
    "erfc": by_dtype("erfc"),  # 2, 2.9
    "power": by_dtype("power", "x, y"),  # 1; in float64 it is libm's, and so are sin and cos: right, and not vectorised
    "sin": by_dtype("sin"),  # 2
    "cos": by_dtype("cos"),  # 2
}

# The larger and the smaller of two numbers, nan if one of them is, as in NumPy.  Of many, they are found by LLVM's own
# functions, by which alone it knows what may be done in vectors.
larger = inlined(lambda a, b: a if (a > b) | (a != a) else b)
smaller = inlined(lambda a, b: a if (a < b) | (a != a) else b)


@inlined
def widened(bits):
    """The float32 that a bfloat16's bits are the upper half of."""
    return as_number(np.int32(np.int32(bits) << 16))


@inlined
def shortened(x):
    """The bits of the nearest bfloat16, of two the even one."""
    bits = as_bits(f32(x))
    nearest = np.int32(bits + np.int32(32767) + ((bits >> 16) & 1)) >> 16
    return np.uint16(nearest) if x == x else np.uint16(32704)


@inlined
def bfloat16(x):
    return widened(shortened(x))


def of_llvm(name):
    """A function of two numbers of one type that LLVM has."""

    @intrinsic
    def function(typing, a, b):
        def build(context, builder, signature, args):
            kind = args[0].type
            declared = ir.FunctionType(kind, [kind, kind])
            function = builder.module.declare_intrinsic(f"llvm.{name}", [kind], declared)
            return builder.call(function, args, fastmath=("reassoc", "nsz"))

        return a(a, b), build

    return function


EXTREMES = {"larger": larger, "smaller": smaller, "largest": of_llvm("maximum"), "smallest": of_llvm("minimum")}
VECTORISED |= EXTREMES
CASTS = {"widened": widened, "shortened": shortened, "bfloat16": bfloat16}
