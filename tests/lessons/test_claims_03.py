"""What lesson 03 claims of types and devices, on more numbers than it shows; with PyTorch too where that is there."""

import math

import pytest

import engine

try:
    import torch
except ImportError:
    torch = None

LIBRARIES = [engine] + ([torch] if torch else [])
FLOATS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}  # fraction, bias
WHOLE = ("uint8", "int8", "int16", "int32", "int64")
each_library = pytest.mark.parametrize("lib", LIBRARIES, ids=lambda lib: lib.__name__)
each_float = pytest.mark.parametrize("name", FLOATS)


def filled(lib, value, name, shape=(3,)):
    return lib.full(shape, value, dtype=getattr(lib, name))


# Promotion


@each_library
def test_between_kinds_the_higher_one_wins_whatever_it_can_hold(lib):
    for whole in ("bool", *WHOLE):
        for name in FLOATS:
            assert (filled(lib, 1, whole) + filled(lib, 1.0, name)).dtype == getattr(lib, name)
    assert (lib.tensor([16777217]) + lib.tensor([0.0])).item() == 16777216
    assert (lib.tensor([70000]) + lib.tensor([0.0], dtype=lib.float16)).item() == math.inf


@each_library
def test_within_a_kind_it_is_the_smallest_type_that_holds_both(lib):
    def holds(name, other):
        mine, others = (lib.iinfo(getattr(lib, n)) for n in (name, other))
        return mine.min <= others.min and others.max <= mine.max

    for a in WHOLE:
        for b in WHOLE:
            result = (filled(lib, 1, a) + filled(lib, 1, b)).dtype
            fitting = [name for name in WHOLE if holds(name, a) and holds(name, b)]
            assert result == getattr(lib, min(fitting, key=lambda name: lib.iinfo(getattr(lib, name)).bits))
    assert (filled(lib, 1.0, "float16") + filled(lib, 1.0, "bfloat16")).dtype == lib.float32
    assert (filled(lib, 1, "uint8") + filled(lib, 1, "int8")).dtype == lib.int16


@each_library
def test_a_tensor_without_dimensions_adapts_unless_it_is_of_a_higher_kind(lib):
    for name in FLOATS:
        for other in FLOATS:
            assert (filled(lib, 1.0, name) * filled(lib, 2.5, other, ())).dtype == getattr(lib, name)
            assert (filled(lib, 1, "int64") * filled(lib, 2.5, other, ())).dtype == getattr(lib, other)
        assert (filled(lib, 1.0, name) * 2.5).dtype == getattr(lib, name)
    assert (filled(lib, 1, "int64") * 2.5).dtype == lib.float32
    assert (filled(lib, 1, "int64") * 2).dtype == lib.int64


# Rounding


@each_float
@each_library
def test_eps_is_the_gap_above_1_and_below_1_it_is_half_as_wide(lib, name):
    eps = lib.finfo(getattr(lib, name)).eps
    assert eps == 2.0 ** -FLOATS[name][0]
    one = filled(lib, 1.0, name, ())
    cases = ((0.6, False, False), (0.51, False, False), (0.49, True, False), (0.26, True, False), (0.24, True, True))
    for share, lost_up, lost_down in cases:
        step = filled(lib, share * eps, name, ())
        assert ((one + step == one).item(), (one - step == one).item()) == (lost_up, lost_down)


@each_library
def test_the_steps_of_the_lesson_beside_a_weight_of_1(lib):
    weight = lib.tensor(1.0, dtype=lib.float16)
    lost = [((weight + s == weight).item(), (weight - s == weight).item()) for s in (0.0006, 0.0003, 0.0001)]
    assert lost == [(False, False), (True, False), (True, True)]


@pytest.mark.parametrize(("name", "end"), [("float16", 2048), ("bfloat16", 256)])
@each_library
def test_counting_stands_still_where_every_second_whole_number_begins(lib, name, end):
    total = filled(lib, 0.0, name, ())
    for _ in range(end + 50):
        total = total + 1
    assert total.item() == end == 2 ** (FLOATS[name][0] + 1)


@each_float
def test_at_each_power_of_two_the_gap_doubles(name):
    fraction = FLOATS[name][0]
    for power in range(-12, 15):
        edge, gap = filled(engine, 2.0**power, name, ()), 2.0 ** (power - fraction)
        assert (edge + gap).item() - edge.item() == gap and edge.item() - (edge - gap / 2).item() == gap / 2
        assert (edge + gap / 2).item() == edge.item()  # the middle: the last bit of the power of two is 0


@each_library
def test_the_ends_of_float16(lib):
    def stored(number):
        return lib.tensor(number, dtype=lib.float16).item()

    info = lib.finfo(lib.float16)
    assert (info.max, info.tiny) == (65504, 2.0**-14)
    assert [stored(x) for x in (65504.0, 65519.9, 65520.0, 70000.0)] == [65504, 65504, math.inf, math.inf]
    assert stored(2.0**-24) == 2.0**-24 and stored(2.0**-25) == 0 and stored(1.01 * 2.0**-25) == 2.0**-24
    assert stored(1e-8) == 0 and stored(2.0**-14 * 0.75) == 2.0**-14 * 0.75
    assert abs(stored(1e-7) - 1e-7) / 1e-7 > 0.1  # few digits are left down there


def patterns(lib, exponent, fraction):
    """The number of float16 with these fields, and no sign."""
    return lib.tensor(exponent << 10 | fraction, dtype=lib.int16).view(lib.float16).item()


@each_library
def test_where_0_the_subnormal_numbers_infinity_and_nan_are_kept(lib):
    for fraction in (0, 1, 2, 512, 1023):
        assert patterns(lib, 0, fraction) == fraction / 1024 * 2.0**-14
        for exponent in (1, 15, 30):
            assert patterns(lib, exponent, fraction) == (1 + fraction / 1024) * 2.0 ** (exponent - 15)
        end = patterns(lib, 31, fraction)
        assert end == math.inf if fraction == 0 else math.isnan(end)
    assert patterns(lib, 30, 1023) == 65504 and patterns(lib, 1, 0) == lib.finfo(lib.float16).tiny
    assert len({patterns(lib, 0, fraction) for fraction in range(1, 1024)}) == 1023
    for name, bits in (("float32", 32), ("float64", 64)):  # the same at both ends
        whole, low = getattr(lib, f"int{bits}"), FLOATS[name][0]
        ends = lib.tensor(
            [0, 1, (2 ** (bits - 1 - low) - 1) << low, ((2 ** (bits - 1 - low) - 1) << low) + 1], dtype=whole
        )
        zero, small, inf, nan = ends.view(getattr(lib, name)).tolist()
        assert (zero, inf) == (0, math.inf) and 0 < small < lib.finfo(getattr(lib, name)).tiny and math.isnan(nan)


@each_library
def test_nearly_everything_from_nan_is_nan_and_its_power_of_0_is_1(lib):
    nan = lib.tensor(math.nan)
    assert (nan**0).item() == 1
    assert all(
        math.isnan(y.item()) for y in (nan + 1, nan * 0, nan - nan, nan**2, nan.sqrt(), nan.clamp(0, 1), nan.exp())
    )


@each_library
def test_a_mean_in_16_bits_is_rounded_to_few_digits(lib):
    for name, off in (("bfloat16", 2e-3), ("float16", 2e-4)):
        mean = lib.tensor([1.0, 1.0, 2.0], dtype=getattr(lib, name)).mean().item()
        assert off < abs(mean - 4 / 3) < 2 * off


@each_library
def test_the_bits_that_the_lesson_reads(lib):
    x = lib.tensor(10.75, dtype=lib.float16)
    assert f"{x.view(lib.int16).item():016b}" == "0100100101100000"
    assert lib.tensor(int("0100011000000000", 2), dtype=lib.int16).view(lib.float16).item() == 6


@each_float
def test_a_tenth_is_stored_exactly_nowhere_and_a_half_everywhere(name):
    from fractions import Fraction

    assert Fraction(filled(engine, 0.1, name, ()).item()) != Fraction(1, 10)
    assert filled(engine, 0.5, name, ()).item() == 0.5 and filled(engine, 100.0, name, ()).item() == 100


@each_library
def test_cutting_off_goes_towards_0_and_whole_division_goes_down(lib):
    for x in (-2.5, -1.5, -0.5, 0.5, 1.5):
        assert lib.tensor([x]).long().item() == math.trunc(x)
        assert (lib.tensor([int(2 * x)]) // 2).item() == math.floor(x)


# Devices


def test_without_dimensions_a_tensor_on_the_cpu_goes_with_any_device_and_no_other_does():
    there, here = engine.ones(3, device="sim"), engine.ones(3)
    for result in (there * engine.tensor(2.0), engine.tensor(2.0) * there, there * 2):
        assert str(result.device) == "sim:0"
    for x, y in ((there, engine.tensor([2.0])), (here, engine.tensor(2.0, device="sim")), (there, here)):
        with pytest.raises(RuntimeError, match="same device"):
            x * y


@each_library
@each_float
def test_a_step_of_half_the_gap_or_less_is_lost_when_added_to_1(lib, name):
    one, half = filled(lib, 1.0, name), lib.finfo(getattr(lib, name)).eps / 2
    assert (one + half == one).all() and (one + 0.9 * half == one).all()
    assert (one + 1.5 * half != one).all() and (one - half != one).all()
