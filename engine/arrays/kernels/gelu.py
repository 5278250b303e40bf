"""GELU of an array, with its derivative while what both need is in the cache."""

import math

import numpy as np

from ..dispatch import elementwise, special, xp_of
from ..dtypes import accumulate_wider
from ..threads import in_blocks, is_large

ROOT_HALF, ROOT_2_PI = math.sqrt(0.5), math.sqrt(2 / math.pi)

# The cdf is (1 + tanh(x * p(-x * x / 2))) / 2 with a polynomial p: that of (Hendrycks and Gimpel 2016), or for float32
# one by which it is right to 3e-8, from a weighted least squares fit to artanh(erf(x / sqrt(2))) / x below 6.  That
# takes a tenth of the time of erf, and the density needs the same exponent.
SERIES = {
    "tanh": (ROOT_2_PI, ROOT_2_PI * -0.08943),
    "none": (0.79788494146, -0.072666169148, -1.303799016e-4, 4.4244955008e-4, 6.34359108e-5, 4.23242688e-6,
             1.1239492864e-7),
}  # fmt: skip


def gelu(x, approximate, slope):
    """(GELU, its derivative or None if no ``slope`` is wanted)"""
    if is_large(x):
        out, *slopes = in_blocks(lambda x, into: gelu_arrays(x, approximate, slope, into), x)
    else:
        out, *slopes = elementwise(gelu_arrays, x, approximate, slope)
    return out, *(slopes or (None,))


def gelu_arrays(x, approximate, slope, into=None):
    dtype, wide = x.dtype, accumulate_wider.get(x.dtype)
    x = x if wide is None else x.astype(wide)
    exponent = x * -0.5
    exponent *= x
    cdf = normal_cdf(x, exponent, approximate)
    out = xp_of(x).multiply(x, cdf, out=into if wide is None else None)
    found = (out, gelu_slope(x, exponent, approximate, cdf)) if slope else (out,)
    return found if wide is None else tuple(a.astype(dtype) for a in found)


erf = special("erf")


def normal_cdf(x, exponent, approximate):
    """The probability of less than x in the normal distribution; ``exponent``: -x * x / 2."""
    if approximate == "none" and x.dtype == np.float64:
        return (erf(x * ROOT_HALF) + 1.0) * 0.5
    first, *middle, last = SERIES[approximate]
    out = exponent * last
    for c in reversed(middle):
        out += c
        out *= exponent
    out += first
    out *= x
    out = xp_of(out).tanh(out, out=out if out.ndim else None)
    out += 1.0
    out *= 0.5
    return out


def gelu_slope(x, exponent, approximate, cdf):
    """cdf + x * pdf, with the density that belongs to the cdf."""
    if approximate == "tanh":
        pdf, scale = (exponent * -0.26829 + 1.0) * cdf * (1.0 - cdf), 2.0 * ROOT_2_PI
    else:
        pdf, scale = xp_of(exponent).exp(exponent), 0.5 * ROOT_2_PI
    pdf *= scale
    pdf *= x
    pdf += cdf
    return pdf
