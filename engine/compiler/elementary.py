"""Elementary functions of one element, exp, log, erf and their like, for a dtype and the coefficients of its fits.

They are sums, products, selects and integer arithmetic, which LLVM inlines and vectorises on every machine.
"""

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

INLINED: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "forceinline": True}
INLINED |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # they take half of the compile time
inlined = njit(inline="always", **INLINED)  # a part of a function; one that is compiled by itself takes twice the time


@intrinsic
def as_bits(typing, x):
    """A number's bits as an integer (``x.view(...)``, which is a function that would have to be compiled)."""
    whole = {types.float32: types.int32, types.float64: types.int64}[x]
    return whole(x), lambda context, builder, signature, args: builder.bitcast(args[0], context.get_value_type(whole))


@intrinsic
def as_number(typing, bits):
    """The number that has these bits."""
    real = {types.int32: types.float32, types.int64: types.float64}[bits]
    return real(bits), lambda context, builder, signature, args: builder.bitcast(args[0], context.get_value_type(real))


def polynomial(real, coefficients):
    """A function of x: the polynomial with these coefficients, lowest first.

    It is written out, (c2 * x + c1) * x + c0: a loop over the coefficients would not be vectorised.
    """
    names = {f"c{i}": real(c) for i, c in enumerate(coefficients)}
    text, *others = reversed(names)
    for name in others:
        text = f"({text}) * x + {name}"
    return inlined(eval(f"lambda x: {text}", names))


def functions_of(real, whole, exp_fit, log_fit, erf_fit, erfc_fit):
    """Return the functions for a dtype, by name; the fits: coefficients.

    ``whole``: integers of its size, which are converted to anew: sums of theirs are int64 to Numba, twice as long.
    """
    exp_rest, log_rest, erf_rest = (polynomial(real, fit) for fit in (exp_fit, log_fit, erf_fit))
    parts = exponential_parts(real, whole)
    functions = [
        *exponentials(real, exp_rest, *parts),
        *logarithms(real, whole, log_rest, parts[0]),
        *error_functions(real, whole, erf_rest, erfc_fit, exp_rest, *parts),
    ]
    return {function.__name__: function.py_func for function in functions}


def halves_of_ln2(real):
    """Return ln 2 as high + low; the high part times an exponent is exact."""
    ln2, digits = math.log(2), np.finfo(real).nmant - 11
    high = real(round(ln2 * 2.0**digits) / 2.0**digits)
    return high, real(ln2 - float(high) + 2.3190468138462996e-17)


def rounder_of(real):
    """Return a number c so that x + c is rounded to an integer, which is in the lowest bits."""
    return real(1.5 * 2.0 ** np.finfo(real).nmant)


def exponential_parts(real, whole):
    """Return power_of_two, scaled, nearest and reduced, of which exponentials are made."""
    info, log2e, rounder = np.finfo(real), real(math.log2(math.e)), rounder_of(real)
    mantissa, bias, rounder_bits = whole(info.nmant), whole(info.maxexp - 1), rounder.view(whole)
    ln2_high, ln2_low = halves_of_ln2(real)

    @inlined
    def power_of_two(k):
        """2^k, for the exponents of normal numbers."""
        return as_number(whole((k + bias) << mantissa))

    @inlined
    def scaled(x, k):
        """x * 2^k in two steps, of which either is by a normal number: a denormal result is rounded once."""
        first = whole(k >> 1)
        return x * power_of_two(first) * power_of_two(k - first)

    @inlined
    def nearest(x):
        """The nearest integer, as one and as a number."""
        shifted = x + rounder
        return whole(as_bits(shifted) - rounder_bits), shifted - rounder

    @inlined
    def reduced(x):
        """k and r with x = k ln 2 + r, |r| <= ln(2)/2 (Cody and Waite)."""
        k, n = nearest(x * log2e)
        return k, (x - n * ln2_high) - n * ln2_low

    return power_of_two, scaled, nearest, reduced


def exponentials(real, exp_rest, power_of_two, scaled, nearest, reduced):
    """Return exp, exp2, expm1, tanh and expit."""
    info, ln2 = np.finfo(real), math.log(2)
    zero, half, one, two = map(real, (0, 0.5, 1, 2))
    ln2_whole, tiny = real(ln2), real(2.0 ** -(info.nmant + 2))  # below tiny, expm1(x) is x
    overflow, underflow = real(info.maxexp + 0.25), real(info.minexp - info.nmant - 2)  # of 2^x
    exp_overflow, exp_underflow, expm1_least = (real(x * ln2) for x in (overflow, underflow, -info.nmant - 3))

    @inlined
    def exp_reduced(r):
        return one + (r + r * r * exp_rest(r))

    @inlined
    def exp(x):
        vanishes = x < exp_underflow
        x = exp_overflow if x > exp_overflow else x  # written so that nan stays nan, here and below
        x = zero if vanishes else x  # a denormal on the way to 0 takes a processor sixteen times as long
        k, r = reduced(x)
        e = scaled(exp_reduced(r), k)
        return zero if vanishes else e

    @inlined
    def exp2(x):
        vanishes = x < underflow
        x = overflow if x > overflow else x
        x = zero if vanishes else x
        k, n = nearest(x)
        e = scaled(exp_reduced((x - n) * ln2_whole), k)
        return zero if vanishes else e

    @inlined
    def expm1(x):
        """2^k (exp(r) - 1) + (2^k - 1), of which a half is computed: 2^k may be too large by one."""
        y = exp_overflow if x > exp_overflow else x
        y = expm1_least if y < expm1_least else y
        k, r = reduced(y)
        scale = power_of_two(k - 1)
        y = scale * (r + r * r * exp_rest(r)) + (scale - half)
        return x if abs(x) < tiny else y + y

    @inlined
    def tanh(x):
        e = expm1(-two * abs(x))
        return np.copysign(e / (e + two), x)

    @inlined
    def expit(x):
        """1 / (1 + exp(-x)), of which no part overflows."""
        e = exp(-abs(x))
        above = one if x >= zero else e
        return above / (one + e)

    return exp, exp2, expm1, tanh, expit


def logarithm_parts(real, whole):
    """Return split and as_real: a number as an exponent and a fraction, an exponent as a number."""
    info, one, rounder = np.finfo(real), real(1), rounder_of(real)
    mantissa, least, up = whole(info.nmant), real(info.tiny), real(2.0**info.nmant)
    rounder_bits, log_from = rounder.view(whole), real(0.5**0.5).view(whole)

    @inlined
    def split(x):
        """k and f with x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); x is positive."""
        y = x * up if x < least else x
        k = whole(whole(as_bits(y) - log_from) >> mantissa)
        f = as_number(whole(as_bits(y) - (k << mantissa))) - one
        k = whole(k - mantissa) if x < least else k
        return k, f

    @inlined
    def as_real(k):
        """An exponent as a number, also where processors cannot convert vectors of integers of 64 bits."""
        return as_number(whole(k + rounder_bits)) - rounder

    return split, as_real


def logarithms(real, whole, log_rest, power_of_two):
    """Return log, log2 and log1p."""
    nmant, log2e = np.finfo(real).nmant, real(math.log2(math.e))
    zero, half, one, two, inf, nan = map(real, (0, 0.5, 1, 2, np.inf, np.nan))
    most = whole(2 * nmant)  # beyond this exponent, the bits that 1 + x loses do not matter
    tiny = real(2.0 ** -(nmant + 2))  # below it, log1p(x) is x
    log2e_low = real(math.log2(math.e) - float(log2e) + 2.0355273740931033e-17)
    ln2_high, ln2_low = halves_of_ln2(real)
    split, as_real = logarithm_parts(real, whole)

    @inlined
    def rest_of_log(f):
        """log(1 + f) - f; as fdlibm has it, log(1 + f) = f - f^2/2 + s (f^2/2 + s^2 P(s^2)) with s = f / (2 + f)."""
        s, square = f / (two + f), half * f * f
        z = s * s
        return s * (square + z * log_rest(z)) - square

    @inlined
    def log_of(k, f):
        n = as_real(k)
        return n * ln2_high + (f + (rest_of_log(f) + n * ln2_low))

    @inlined
    def with_edges(value, x):
        """A logarithm of x, also where x is 0, inf, nan or negative."""
        edge = -inf if x == zero else nan
        value = value if x > zero else edge
        return inf if x == inf else value

    @inlined
    def log(x):
        k, f = split(x)
        return with_edges(log_of(k, f), x)

    @inlined
    def log2(x):
        k, f = split(x)
        return with_edges(as_real(k) + (f * log2e + (f * log2e_low + rest_of_log(f) * log2e)), x)

    @inlined
    def log1p(x):
        """log(u), where u is 1 + x as it is rounded; what it lost (Knuth's two-sum) is added to f."""
        u = one + x
        lost = (one - (u - (u - one))) + (x - (u - one))
        k, f = split(u)
        down = k if k < most else most
        value = with_edges(log_of(k, f + lost * power_of_two(-down)), u)
        return x if abs(x) < tiny else value

    return log, log2, log1p


def error_functions(real, whole, erf_rest, erfc_fit, exp_rest, power_of_two, scaled, nearest, reduced):
    """Return erf and erfc."""
    zero, one, two, tail_from, erf_one, erfc_zero = map(real, (0, 1, 2, 0.75, 6, 27.3))
    high_bits = whole(-1 << (np.finfo(real).nmant // 2 + 1))  # of which a product of two is exact
    erfc_middle, erfc_scaled = real(erfc_fit[0]), polynomial(real, erfc_fit[1:])

    @inlined
    def erfc_tail(x):
        """erfc(x) = exp(-x^2) / (x + c) P((x - c) / (x + c)) for x >= 0.75 (Shepherd and Laframboise, 1981).

        x^2 = high^2 + (x - high) (x + high), of which the first is exact.
        """
        x = erfc_zero if x > erfc_zero else x
        high = as_number(whole(as_bits(x) & high_bits))
        k, r = reduced(-(high * high))
        r = r + (high - x) * (high + x)
        t = one / (x + erfc_middle)
        y = t * erfc_scaled((x - erfc_middle) * t)
        return scaled(y + y * (r + r * r * exp_rest(r)), k)  # y exp(r), rounded once less

    @inlined
    def erf(x):
        a = abs(x)
        a = erf_one if a > erf_one else a
        small = a + a * erf_rest(a * a)
        tail = one - erfc_tail(a)
        return np.copysign(small if a < one else tail, x)

    @inlined
    def erfc(x):
        a = abs(x)
        small = one - (x + x * erf_rest(x * x))
        tail = erfc_tail(a)
        tail = tail if x > zero else two - tail
        return small if a < tail_from else tail

    return erf, erfc
