"""Vector math: what loops that Numba compiles take for exp, tanh and their like, compared with NumPy's and SciPy's."""

import functools
import itertools
import math
import os
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from over_tables import over
from scipy import special

numba = pytest.importorskip("numba", reason="needs Numba, which compiles the loops")

from engine.compiler import store  # noqa: E402  it imports Numba
from engine.compiler.vector_math import EXTREMES, VECTORISED  # noqa: E402

LOOP = {"fastmath": {"contract"}, "error_model": "numpy", "nogil": True}  # as the compiler's loops
OF_TWO = {"power", *EXTREMES}
OF_ONE = sorted(VECTORISED.keys() - OF_TWO)
SYMMETRIC = {"tanh": -1, "erf": -1, "sin": -1, "cos": 1}  # f(-x) / f(x)
OF_LIBM = {"sin", "cos", "power"}  # in float64
EDGES = [0, 5e-324, 1e-310, 2.3e-308, 1e-45, 1.17549421e-38, 1.17549435e-38, 1e-20, 2.0**-54, 2.0**-25, 0.5, 0.75, 1, 2,
         4, 6, 9, 10.06, 17, 24, 27.3, 38, 87.3, 88.72, 88.73, 103.9, 104, 126, 127, 128, 149, 150, 709.7, 709.8, 744,
         746, 1022, 1023, 1024, 1074, 1075, 1e5, 3e38, 1.7e308, np.inf, np.nan]  # fmt: skip


@numba.njit(nogil=True)
def farthest(got, nearest):
    """How many numbers lie between two, at most, by their bits; 2^31 where one alone is nan, or signs differ."""
    most = 0
    for a, b in zip(got, nearest):  # noqa: B905  Numba knows no strict
        m, n = a & 0x7FFFFFFF, b & 0x7FFFFFFF
        if m > 0x7F800000 and n > 0x7F800000:
            continue
        one_is_nan = m > 0x7F800000 or n > 0x7F800000
        most = max(most, 1 << 31 if one_is_nan or (a < 0) != (b < 0) else abs(m - n))
    return most


def distance(got, exact):
    """The error of float32 results: how far they are from the nearest to what is exact."""
    with np.errstate(all="ignore"):
        return farthest(got.view(np.int32), exact.astype(np.float32).view(np.int32))


def in_ulps(got, exact):
    """The error of float64 results, in units of the last place of what is exact in longer numbers."""
    with np.errstate(over="ignore"):
        nearest = exact.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(nearest))
    there = ~np.isnan(nearest)
    np.testing.assert_array_equal(np.signbit(got)[there], np.signbit(nearest)[there])
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(got[there & ~finite], nearest[there & ~finite])
    last = np.spacing(np.abs(nearest[finite]))
    return (np.abs(got[finite] - exact[finite]) / last).max()


def exact(name, *x):
    """What NumPy and SciPy give in the precision of x."""
    if name == "expit" and x[0].dtype == np.longdouble:
        e = np.exp(-np.abs(x[0]))
        return np.where(x[0] >= 0, 1, e) / (1 + e)
    return getattr(special if name in ("erf", "erfc", "expit") else np, name)(*x)


@functools.cache
def loop_over(name, **options):
    """A loop that fills an array with a function of others."""
    f = VECTORISED[name]

    def of_one(x, out):
        for i in range(x.size):
            out[i] = f(x[i])

    def of_two(x, y, out):
        for i in range(x.size):
            out[i] = f(x[i], y[i])

    return numba.njit(**LOOP | options)(of_two if name in OF_TWO else of_one)


def filled(loop, *x):
    out = np.empty_like(x[0])
    loop(*x, out)
    return out


def inputs(dtype, count=20_000):
    """Numbers of all sizes, most of them where functions change, and the edges."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, count, np.uint64).view(dtype)  # of any exponent
    near_one = 1 + rng.standard_normal(count) * 10.0 ** rng.uniform(-16, 0, count)
    near_zero = rng.standard_normal(count) * 10.0 ** rng.uniform(-20, 0, count)
    spread = [rng.uniform(-limit, limit, count) for limit in (1.5, 7, 30, 110, 1100)]
    with np.errstate(over="ignore"):
        edges = np.asarray(EDGES, dtype)
    return np.concatenate([x.astype(dtype) for x in (bits, near_one, near_zero, *spread, edges, -edges)])


@pytest.mark.parametrize(
    "fast",
    [pytest.param(False, id="the compiler's"), pytest.param(True, id="fast", marks=pytest.mark.slow)],
)
@over("name", OF_ONE)
def test_float32_is_within_2_ulp_whatever_the_flags_of_the_loop(name, fast):
    x = inputs(np.float32)
    with np.errstate(all="ignore"):
        assert (
            distance(
                filled(loop_over(name, **{"fastmath": True} if fast else {}), x), exact(name, x.astype(np.float64))
            )
            <= 2
        )


# All numbers take a quarter of an hour; without UNDERTORCH_EVERY_NUMBER=1, every 32nd block of them is looked at.
STRIDE = 2**18 * (1 if os.environ.get("UNDERTORCH_EVERY_NUMBER") == "1" else 32)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_ONE)
def test_float32_is_within_2_ulp_over_blocks_of_all_numbers(name):
    loop, sign = loop_over(name), SYMMETRIC.get(name)

    def worst_from(first):
        x = np.arange(first, first + 2**18, dtype=np.uint32).view(np.float32)
        got = filled(loop, x)
        if sign is not None:
            np.testing.assert_array_equal(filled(loop, -x), sign * got)
        with np.errstate(all="ignore"):
            return distance(got, exact(name, x.astype(np.float64)))

    with ThreadPoolExecutor(numba.config.NUMBA_DEFAULT_NUM_THREADS) as pool:
        assert max(pool.map(worst_from, range(0, 2**31 if sign else 2**32, STRIDE))) <= 2


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="needs numbers that are longer than float64")
@over("name", sorted(set(OF_ONE) - OF_LIBM - {"erf", "erfc"}))
def test_float64_is_within_4_ulp(name):
    x = inputs(np.float64)
    with np.errstate(all="ignore"):
        assert in_ulps(filled(loop_over(name), x), exact(name, x.astype(np.longdouble))) <= 3


@over("name", ["erf", "erfc"])
def test_float64_error_functions_are_those_of_libm_within_4_ulp(name):
    x = inputs(np.float64)
    assert in_ulps(filled(loop_over(name), x), np.array([getattr(math, name)(v) for v in x])) <= 4


def powers(dtype):
    """Bases and exponents: each edge with each, numbers of any bits, and what comes in practice."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        edges = np.array([*EDGES, 3, 1.5, 0.99999994, 2**24 - 1, 2**24, 2**24 + 2, 2**31, 2**53 - 1], dtype)
    x, y = (m.ravel() for m in np.meshgrid(np.append(edges, -edges), np.append(edges, -edges)))
    bits = rng.integers(0, 2**64, (2, 40_000), np.uint64).view(dtype)
    normal = rng.standard_normal((2, 40_000))
    bases = x, bits[0], np.exp(normal[0] * 5), 1 + normal[0] * 1e-4, -np.exp(normal[0])
    exponents = y, bits[1], normal[1] * 8, normal[1] * 1e5, np.round(normal[1] * 20)
    return [np.concatenate([part.astype(dtype) for part in parts]) for parts in (bases, exponents)]


def test_powers_of_float32_are_within_2_ulp():
    x, y = powers(np.float32)
    got = filled(loop_over("power"), x, y)
    with np.errstate(all="ignore"):
        assert distance(got, exact("power", x.astype(np.float64), y.astype(np.float64))) <= 2


@over("dtype, name", itertools.product([np.float32, np.float64], EXTREMES))
def test_the_larger_of_two_is_nan_where_one_of_them_is(dtype, name):
    x, y = powers(dtype)
    ours = np.maximum if name.startswith("larg") else np.minimum  # codespell:ignore larg
    np.testing.assert_array_equal(filled(loop_over(name), x, y), ours(x, y))


@over("name", sorted(OF_LIBM))
def test_what_is_left_to_libm_is_right_in_float64(name):
    x = powers(np.float64) if name == "power" else [inputs(np.float64)]
    with np.errstate(all="ignore"):
        assert in_ulps(filled(loop_over(name), *x), exact(name, *x)) <= 2


def test_the_store_knows_what_there_is():
    assert sorted(VECTORISED) == store.LONG.split()


CALLED = "fabs copysign is.fpclass umax smax smin umin minnum maxnum minimum maximum"  # what a processor does by itself


@over(
    "name, dtype",
    [(n, t) for n in sorted(VECTORISED) for t in ("float32", "float64") if t[5:] == "32" or n not in OF_LIBM],
)
def test_a_loop_has_vector_instructions_and_calls_nothing(name, dtype):
    loop = loop_over(name)
    array = numba.from_dtype(np.dtype(dtype))[::1]
    signature = (array,) * (3 if name in OF_TWO else 2)
    loop.compile(signature)
    text = loop.inspect_llvm(signature)
    body = text[text.index("define ") :].split("\n}\n")[0]
    ours = (r"(?:fcmp|(?:tail )?call .*@llvm\.(?:max|min)imum)",) if name in EXTREMES else ("fmul", "f(?:add|sub)")
    for steps in ours:
        assert re.search(rf" = {steps}.*?<\d+ x (?:float|double)> ", body)
    called = set(re.findall(r"call .*?@([\w.]+)\(", body))
    assert {f.rsplit(".", 1)[0] for f in called if "gather" not in f} <= {f"llvm.{f}" for f in CALLED.split()}
