"""engine.random against PyTorch's CPU generator: the same numbers, and the same state after them."""

import copy
import hashlib
import itertools
import pickle
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from over_tables import over

from engine.arrays import random

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
SHAPES = ((), (0,), (1,), (3, 3), (15,), (16,), (17,), (4, 8), (47,), (5, 7, 9), (700,))
SEEDS = {0: (*SHAPES, (20001,)), 2**40 + 7: ((), (16,), (700,))}  # and shapes that are drawn with each


# In-place draws: (function, dtypes, arguments of a call, of another ...); PyTorch's method is the name with "_".
DRAWS = (
    ("uniform", FLOATS, (), (-1.0, 1.0), (0.1, 0.2), (-(3**-0.5), 3**-0.5), (5.0, 5.0)),
    ("normal", FLOATS, (), (3.0, 2.0), (0.0, 0.02), (1.0, 0.0)),
    ("random", (*FLOATS, *INTEGERS, "bool"), (), (0, 2), (1, 2)),
    ("random", (*FLOATS, *INTEGERS), (0, 100), (5, None)),
    ("random", (*FLOATS, "int64", "int32", "int16", "int8"), (-7, 9), (-128, 127)),
    ("random", ("int64", "int32"), (0, 2**28 - 1), (0, 2**28), (-(2**31), 2**31 - 1)),
    ("random", ("int64",), (0, 2**32), (-(2**63), 2**63 - 1), (-(2**63), None), (2**62, 2**63 - 1)),
    ("random", ("float64",), (0, 2**53), (-(2**63), None), (-(2**40), 2**45)),
    ("random", ("float32",), (0, 2**24), (-(2**63), None), (-(2**24), 2**24)),
    ("random", ("bfloat16",), (-(2**63), None)),
    ("bernoulli", (*FLOATS, *INTEGERS, "bool"), (0.5,), (0.1,), (0.0,), (1.0,)),
    ("exponential", FLOATS, (), (2.5,)),
)
CALLS = [(name, dtype, arguments) for name, dtypes, *rest in DRAWS for arguments in rest for dtype in dtypes]


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def np_dtype(name):
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def array(tensor):
    import torch

    return tensor.view(torch.int16).numpy().view(BFLOAT16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def tensor(values):
    import torch

    bits = values.view(np.int16) if values.dtype == BFLOAT16 else values
    return torch.from_numpy(bits).view(torch.bfloat16) if values.dtype == BFLOAT16 else torch.from_numpy(bits)


def both(torch, seed):
    return random.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)


def theirs(torch, generator, shape, name, dtype, arguments):
    out = torch.empty(shape, dtype=getattr(torch, dtype))
    return array(getattr(out, name + "_")(*arguments, generator=generator))


def assert_same_numbers(ours, expected):
    """Bit for bit, but for float64 and for machines where PyTorch does not run the kernels that are followed."""
    import torch

    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    followed = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    if ours.dtype == np.float64 or (not followed and ours.dtype.kind in "fV"):
        tolerance = {8: 1e-14, 4: 4e-6, 2: 2e-2}[ours.dtype.itemsize]
        np.testing.assert_allclose(ours.astype("f8"), expected.astype("f8"), rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(ours, expected)


def assert_same_state(ours, expected):
    assert np.asarray(ours.get_state()).tobytes() == expected.get_state().numpy().tobytes()


# The draws, one by one.


@over("name, dtype, arguments", CALLS)
@pytest.mark.filterwarnings("ignore:.*out of bounds")
def test_draw_gives_pytorchs_numbers_and_state(torch, name, dtype, arguments):
    for seed, shapes in SEEDS.items():
        for shape in shapes:
            ours, expected = both(torch, seed)
            for _ in range(2):  # the second draw starts where the first one left the stream
                numbers = getattr(random, name)(ours, shape, np_dtype(dtype), *arguments)
                assert_same_numbers(numbers, theirs(torch, expected, shape, name, dtype, arguments))
            assert_same_state(ours, expected)


@over("low_high", [(2**24 + 3, 2**24 + 7), (-(2**25) - 1, -(2**24)), (0, 2**28)])
def test_random_in_float32_past_its_integers_warns_and_gives_pytorchs_numbers(torch, low_high):
    ours, expected = both(torch, 3)
    with pytest.warns(UserWarning, match="out of bounds") as warned:
        numbers = random.random(ours, (500,), np.float32, *low_high)
    with pytest.warns(UserWarning, match=r"is out of bounds \[-\(2\^24\), 2\^24\]"):
        np.testing.assert_array_equal(numbers, theirs(torch, expected, (500,), "random", "float32", low_high))
    assert "can support discrete uniform distribution only within this range." in str(warned[0].message)
    assert_same_state(ours, expected)


@over("dtype, n", itertools.product([*FLOATS, *INTEGERS], [0, 1, 2, 10, 127, 5000]))
def test_randperm(torch, dtype, n):
    ours, expected = both(torch, 5)
    for _ in range(2):
        try:
            order = array(torch.randperm(n, dtype=getattr(torch, dtype), generator=expected))
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=str(error).splitlines()[0].replace("^", r"\^").replace("+", r"\+")):
                random.randperm(ours, n, np_dtype(dtype))
        else:
            assert_same_numbers(random.randperm(ours, n, np_dtype(dtype)), order)
    assert_same_state(ours, expected)


@over("dtype", FLOATS)
def test_bernoulli_with_an_array_of_probabilities(torch, dtype):
    ours, expected = both(torch, 6)
    p = random.uniform(random.Generator(), (40, 25), np_dtype(dtype))
    drawn = random.bernoulli(ours, p.shape, p.dtype, p)
    np.testing.assert_array_equal(drawn, array(torch.bernoulli(tensor(p), generator=expected)))
    assert_same_state(ours, expected)


@over("dtype, p", itertools.product(FLOATS, [0.0, 0.1, 0.5, 0.7, 1.0]))
def test_dropout_mask_is_what_dropout_multiplies_ones_by(torch, dtype, p):
    generator = random.Generator().manual_seed(7)
    torch.manual_seed(7)
    dropped = torch.nn.functional.dropout(torch.ones(30, 70, dtype=getattr(torch, dtype)), p)
    np.testing.assert_array_equal(random.dropout_mask(generator, (30, 70), np_dtype(dtype), p), array(dropped))
    assert_same_state(generator, torch.default_generator)


AROUND = [((20,), (20,)), ((20,), ()), ((), (20,)), ((4, 1), (1, 5)), ((3,), None), (None, (3,))]


@over("dtype, shapes", itertools.product(FLOATS, AROUND))
def test_normal_around_arrays(torch, dtype, shapes):
    ours, expected = both(torch, 8)
    mean, std = (
        scalar if shape is None else random.uniform(random.Generator(), shape, np_dtype(dtype), scalar, 3.0)
        for shape, scalar in zip(shapes, (-1.5, 0.5), strict=True)
    )
    as_theirs = [tensor(x) if isinstance(x, np.ndarray) else x for x in (mean, std)]
    assert_same_numbers(random.normal_around(ours, mean, std), array(torch.normal(*as_theirs, generator=expected)))
    assert_same_state(ours, expected)


SAMPLES = [(1, False), (1, True), (5, False), (5, True), (300, True)]


@over("dtype, shape, how", itertools.product(["float32", "float64"], [(6,), (1, 9), (50, 40)], SAMPLES))
def test_multinomial(torch, dtype, shape, how):
    samples, replacement = how
    ours, expected = both(torch, 9)
    weights = random.uniform(random.Generator(), shape, np_dtype(dtype), 0.0, 3.0)
    weights[..., 2] = 0
    for _ in range(2):
        drawn = array(torch.multinomial(tensor(weights), samples, replacement, generator=expected))
        assert_same_numbers(random.multinomial(ours, weights, samples, replacement), drawn)
    assert_same_state(ours, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_multinomial_with_replacement_in_two_byte_types(torch, dtype):
    ours, expected = both(torch, 9)
    weights = random.uniform(random.Generator(), (3, 12), np_dtype(dtype))
    drawn = array(torch.multinomial(tensor(weights), 200, True, generator=expected))
    assert_same_numbers(random.multinomial(ours, weights, 200, True), drawn)


def test_multinomial_over_weights_in_another_order_in_memory(torch):
    ours, expected = both(torch, 9)
    weights = random.uniform(random.Generator(), (7, 4), np.float32).T
    drawn = array(torch.multinomial(tensor(weights), 2, generator=expected))
    np.testing.assert_array_equal(random.multinomial(ours, weights, 2), drawn)


FILLS = [("uniform", (-1.0, 1.0)), ("normal", (0.0, 1.0)), ("random", (0, 9))]


@over("draw, layout", itertools.product(FILLS, ["whole", "transposed", "every second column", "permuted"]))
def test_fill_follows_the_order_in_memory(torch, draw, layout):
    name, arguments = draw
    ours, expected = both(torch, 10)
    view = {
        "whole": lambda x: x,
        "transposed": lambda x: x.T if isinstance(x, np.ndarray) else x.permute(2, 1, 0),
        "every second column": lambda x: x[:, :, ::2],
        "permuted": lambda x: x.transpose(1, 2, 0) if isinstance(x, np.ndarray) else x.permute(1, 2, 0),
    }[layout]
    memory = np.zeros((3, 4, 6), np.float32)
    out, filled = view(memory), view(torch.zeros(3, 4, 6))
    serial = (not out.flags.c_contiguous,) if name == "normal" else ()
    random.fill(out, getattr(random, name), ours, *arguments, *serial)
    getattr(filled, name + "_")(*arguments, generator=expected)
    assert_same_numbers(out, filled.numpy())
    assert_same_state(ours, expected)


def test_fill_broadcasts_probabilities_over_the_order_in_memory(torch):
    ours, expected = both(torch, 11)
    p, out = np.float32([[0.1], [0.5], [0.9]]), np.zeros((50, 3), np.float32).T
    random.fill(out, random.bernoulli, ours, p)
    np.testing.assert_array_equal(out, torch.zeros(50, 3).T.bernoulli_(torch.from_numpy(p), generator=expected).numpy())


def test_float32_normals_of_a_million_are_pytorchs_to_the_bit(torch):
    ours, expected = both(torch, 12)
    numbers = random.normal(ours, (1_000_003,), np.float32)
    assert_same_numbers(numbers, torch.randn(1_000_003, generator=expected).numpy())


def test_a_dataloaders_shuffle_and_base_seed(torch):
    torch.manual_seed(13)
    generator = random.Generator().manual_seed(13)
    seed = random.random(generator, (), np.int64).item()  # RandomSampler's own generator is seeded by such a draw
    assert seed == torch.empty((), dtype=torch.int64).random_().item()
    shuffled = random.randperm(random.Generator().manual_seed(seed), 60)
    np.testing.assert_array_equal(shuffled, torch.randperm(60, generator=torch.Generator().manual_seed(seed)).numpy())


def test_linear_layers_parameters(torch):
    torch.manual_seed(14)
    layer = torch.nn.Linear(20, 7)
    generator, bound = random.Generator().manual_seed(14), 20**-0.5
    for parameter in (layer.weight, layer.bias):
        drawn = random.uniform(generator, tuple(parameter.shape), np.float32, -bound, bound)
        assert_same_numbers(drawn, parameter.detach().numpy())


# Sequences of draws, on the default generators.

SIZES = ((), (0,), (1,), (5,), (15,), (16,), (19,), (3, 33), (625,), (1300,))
MIXED = {
    "randperm": (lambda: random.randperm(None, 37), lambda torch: torch.randperm(37)),
    "dropout": (
        lambda: random.dropout_mask(None, (11,), np.float32, 0.3),
        lambda torch: torch.nn.functional.dropout(torch.ones(11), 0.3),
    ),
    "probabilities": (
        lambda: random.bernoulli(None, (9,), np.float32, np.float32([0.25] * 9)),
        lambda torch: torch.bernoulli(torch.full((9,), 0.25)),
    ),
    "multinomial": (
        lambda: random.multinomial(None, np.float32([1, 2, 3]), 2),
        lambda torch: torch.multinomial(torch.tensor([1.0, 2, 3]), 2),
    ),
}


@settings(max_examples=50)
@given(
    st.integers(-(2**63), 2**64 - 1),
    st.lists(st.sampled_from(sorted(MIXED)) | st.tuples(st.sampled_from(CALLS), st.sampled_from(SIZES)), max_size=12),
)
@pytest.mark.filterwarnings("ignore:.*out of bounds")
def test_any_sequence_of_draws_gives_pytorchs_numbers_and_final_state(torch, seed, sequence):
    random.manual_seed(seed)
    torch.manual_seed(seed)
    for step in sequence:
        if step in MIXED:
            ours, expected = MIXED[step][0](), array(MIXED[step][1](torch))
        else:
            (name, dtype, arguments), shape = step
            ours = getattr(random, name)(None, shape, np_dtype(dtype), *arguments)
            expected = theirs(torch, None, shape, name, dtype, arguments)
        assert_same_numbers(ours, expected)
    assert_same_state(random.default_generator, torch.default_generator)


def test_numbers_recorded_from_pytorch():
    # Printed by PyTorch 2.13.0 (x86, AVX-512) after torch.manual_seed(0), in this order.
    random.manual_seed(0)
    f4, f8, f2, root = np.float32, np.float64, np.float16, 3**-0.5
    recorded = [
        (random.uniform(None, (3,), f4), [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]),
        (random.uniform(None, (2,), f8), [0.0562441839043476, 0.07262971157225484]),
        (random.normal(None, (3,), f4), [0.16421625018119812, 0.3057610094547272, 0.20998091995716095]),
        (random.normal(None, (2,), f8), [0.9056261299825517, 0.6035430218293704]),
        (
            random.normal(None, (18,), f4)[[0, 1, 15, 17]],
            [0.7935083508491516, 0.5988394618034363, -1.2001394033432007, -0.5180748105049133],
        ),
        (random.normal(None, (17,), f2)[-3:], [-1.5986328125, 0.01849365234375, -0.75048828125]),
        (random.uniform(None, (2,), f4, -root, root), [-0.09726043045520782, -0.09500942379236221]),
        (random.random(None, (5,), np.int64, 0, 10), [3, 9, 8, 5, 3]),
        (random.random(None, (2,), np.int64), [3880873274144447570, 2378270433224750976]),
        (random.random(None, (2,), np.int64, -5, 2**40), [612469508817, 228998823625]),
        (random.randperm(None, 8), [1, 6, 0, 3, 4, 5, 2, 7]),
        (random.bernoulli(None, (6,), f4, 0.3), [0, 0, 0, 0, 0, 1]),
        (random.bernoulli(None, (6,), f4, np.full(6, 0.3, f4)), [0, 0, 0, 1, 0, 1]),
        (random.dropout_mask(None, (6,), f4, 0.2), [1.25, 1.25, 1.25, 0, 1.25, 1.25]),
        (random.exponential(None, (2,), f4), [1.063991904258728, 0.7838562726974487]),
        (random.multinomial(None, np.float32([1, 2, 3]), 2), [2, 1]),
        (random.multinomial(None, np.float32([1, 2, 3]), 5, True), [2, 2, 2, 1, 0]),
    ]
    for numbers, expected in recorded:
        np.testing.assert_allclose(numbers, expected, rtol=1e-15)
    state = random.get_rng_state().array
    np.testing.assert_allclose(state[5024:5032].view("<f8"), 0.8109818772308859, rtol=1e-15)
    state[5024:5032] = 0
    assert (
        hashlib.sha256(state.tobytes()).hexdigest()
        == "9e5554550ff106e9a85ca61727af1e81deed6c04d751def843caba1f3ed9c227"
    )


# Seeds and states.


@over("seed", [0, 1, -1, -2, 2**32, 2**63, 2**64 - 1, -(2**63)])
def test_seeds_wrap_as_pytorchs(torch, seed):
    ours, expected = both(torch, seed)
    assert ours.initial_seed() == expected.initial_seed()
    assert_same_state(ours, expected)


@over("seed", [2**64, -(2**63) - 1, 1.5, "a", True, None])
def test_seeds_that_are_none_raise_pytorchs_errors(torch, seed):
    with pytest.raises((RuntimeError, ValueError)) as expected:
        torch.Generator().manual_seed(seed)
    with pytest.raises(expected.type) as raised:
        random.Generator().manual_seed(seed)
    assert str(raised.value) == str(expected.value)


def test_module_functions_act_on_the_default_generator(torch):
    assert random.manual_seed(1.9) is random.default_generator
    assert random.initial_seed() == random.default_generator.initial_seed() == 1
    state = random.get_rng_state()
    first = random.uniform(None, (3,), np.float32)
    random.set_rng_state(state)
    np.testing.assert_array_equal(random.uniform(None, (3,), np.float32), first)
    torch.manual_seed(1.9)
    np.testing.assert_array_equal(first, torch.rand(3).numpy())


def test_seed_chooses_another_stream_each_time():
    generator = random.Generator()
    seeds = {generator.seed() for _ in range(5)}
    assert len(seeds) == 5
    assert generator.initial_seed() in seeds
    assert max(seeds) < 2**53


def test_a_new_generator_starts_at_pytorchs_seed(torch):
    assert random.Generator().initial_seed() == torch.Generator().initial_seed()
    assert_same_state(random.Generator(), torch.Generator())


@over("drawn, normals", itertools.product([0, 1, 623, 624, 625, 1248], [0, 1]))
def test_a_state_goes_over_to_pytorch_and_back(torch, drawn, normals):
    ours = random.Generator().manual_seed(-5)
    random.random(ours, (drawn,), np.int32)
    random.normal(ours, (normals,), np.float64)
    there = torch.Generator()
    there.set_state(torch.from_numpy(ours.get_state()))
    assert_same_state(ours, there)
    torch.randn(3, generator=there)
    back = random.Generator().set_state(there.get_state().numpy())
    assert back.initial_seed() == 2**64 - 5
    assert_same_state(back, there)
    np.testing.assert_array_equal(
        random.normal(back, (5,), np.float64), torch.randn(5, dtype=torch.float64, generator=there).numpy()
    )


def test_states_that_are_none_raise_pytorchs_errors(torch):
    generator = random.Generator()
    state = generator.get_state()
    for bad in (state[:100], np.zeros_like(state)):
        with pytest.raises(RuntimeError) as expected:
            torch.Generator().set_state(torch.from_numpy(bad))
        with pytest.raises(RuntimeError) as raised:
            generator.set_state(bad)
        assert str(raised.value) == str(expected.value).splitlines()[0]
    with pytest.raises(TypeError, match="^RNG state must be a torch.ByteTensor$"):
        generator.set_state(state.astype(np.float32))
    np.testing.assert_array_equal(generator.get_state(), state)


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)), random.Generator.clone_state])
def test_a_copy_goes_on_alone(twin):
    generator = random.Generator().manual_seed(3)
    random.normal(generator, (3,), np.float32)
    copied = twin(generator)
    first = random.normal(copied, (40,), np.float32)
    np.testing.assert_array_equal(random.normal(generator, (40,), np.float32), first)
    assert copied.device == generator.device


def test_fork_rng_restores_the_default_generator():
    state = random.get_rng_state().array
    for enabled in (True, False):
        with pytest.raises(KeyError), random.fork_rng(enabled=enabled):
            random.normal(None, (5,), np.float32)
            raise KeyError
        assert np.array_equal(random.get_rng_state().array, state) is enabled


def test_threads_share_a_generator_without_sharing_numbers():
    shared, alone = random.Generator().manual_seed(4), random.Generator().manual_seed(4)
    drawn = [[] for _ in range(8)]

    def work(mine):
        for _ in range(200):
            mine.append(tuple(random.random(shared, (3,), np.int64).tolist()))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = random.random(alone, (1600, 3), np.int64).tolist()
    assert sorted(sum(drawn, [])) == sorted(map(tuple, expected))


# Errors.

WRONG = (
    ("uniform", "float32", (2.0, 1.0)),
    ("uniform", "float32", (-1e39, 1.0)),
    ("uniform", "float16", (0.0, 70000.0)),
    ("uniform", "float32", (-3e38, 3e38)),
    ("uniform", "float32", (float("nan"), 1.0)),
    ("uniform", "int64", ()),
    ("normal", "float32", (0.0, -1.0)),
    ("normal", "int32", ()),
    ("random", "int64", (3, 3)),
    ("random", "uint8", (0, 300)),
    ("random", "uint8", (-1, 3)),
    ("random", "int8", (-129, 3)),
    ("random", "bool", (0, 3)),
    ("random", "float16", (0, 70000)),
    ("random", "float32", (2**24 + 3, 2**24 + 4)),
    ("random", "int32", (-(2**63), None)),
    ("bernoulli", "float32", (1.5,)),
    ("bernoulli", "int64", (float("nan"),)),
    ("exponential", "float32", (0.0,)),
    ("exponential", "int64", ()),
)


@over("name, dtype, arguments", WRONG)
@pytest.mark.filterwarnings("ignore:.*out of bounds")
def test_wrong_arguments_raise_pytorchs_errors_and_draw_nothing(torch, name, dtype, arguments):
    generator = random.Generator()
    with pytest.raises((RuntimeError, NotImplementedError)) as expected:
        theirs(torch, None, (4,), name, dtype, arguments)
    with pytest.raises(expected.type) as raised:
        getattr(random, name)(generator, (4,), np_dtype(dtype), *arguments)
    assert str(raised.value) == str(expected.value).splitlines()[0]
    assert_same_state(generator, torch.Generator())


@over(
    "weights, samples, replacement",
    [
        (np.array([1, 2]), 1, False),
        (np.float32([1, -2]), 1, False),
        (np.float32([1, np.inf]), 1, True),
        (np.float32([0, 0]), 1, False),
        (np.float32([[1, 1], [0, 0]]), 2, True),
        (np.float32([1, -1]), 2, True),
        (np.float32([1, np.nan]), 2, True),
        (np.float32([1, np.inf]), 2, True),
        (np.float32([1, 0]), 3, False),
        (np.float32([1, 0]), 0, True),
        (np.float32(1), 1, True),
    ],
)
def test_multinomials_errors(torch, weights, samples, replacement):
    with pytest.raises(RuntimeError) as expected:
        torch.multinomial(torch.from_numpy(np.asarray(weights)), samples, replacement)
    with pytest.raises(RuntimeError) as raised:
        random.multinomial(None, np.asarray(weights), samples, replacement)
    assert str(raised.value) == str(expected.value).splitlines()[0]


def test_what_pytorch_shuffles_otherwise_is_not_supported():
    with pytest.raises(NotImplementedError, match="shuffle parts instead"):
        random.randperm(None, 2**28)


@pytest.mark.parametrize("p", [[0.5, 1.5], [np.nan, 0.5]])
def test_bernoulli_checks_each_probability(torch, p):
    with pytest.raises(RuntimeError, match=r"^Expected p_in >= 0 && p_in <= 1 to be true, but got false\."):
        torch.bernoulli(torch.tensor(p))
    with pytest.raises(RuntimeError, match=r"^Expected p_in >= 0 && p_in <= 1 to be true, but got false\.$"):
        random.bernoulli(None, (2,), np.float32, np.float32(p))


@over(
    "draw",
    [
        "t.rand(5, 7)",
        "t.rand_like(t.zeros(5, 7, dtype=t.float64))",
        "t.zeros(20).uniform_(-1, 3)",
        "t.randint(3, 1000, (20,))",
        "t.randint_like(t.zeros(20), 5)",
        "t.zeros(20, dtype=t.int16).random_(100)",
        "t.randperm(50)",
        "t.bernoulli(t.full((20,), 0.3))",
        "t.multinomial(t.arange(1.0, 9.0), 5)",
        "t.multinomial(t.arange(1.0, 9.0), 20, replacement=True)",
        "t.nn.functional.dropout(t.ones(30), 0.4)",
        "t.randn(50)",
        "t.randn_like(t.zeros(50, dtype=t.bfloat16))",
        "t.normal(1.0, 2.0, (50,))",
        "t.normal(t.arange(20.0), 2.0)",
        "t.rand(3, generator=t.Generator().manual_seed(4))",
        "(lambda s: (t.rand(9), t.set_rng_state(s), t.rand(9))[2])(t.get_rng_state())",
    ],
)
def test_the_documented_functions_give_pytorchs_numbers(torch, draw):
    import engine
    import engine.nn.functional

    found = []
    for t in (engine, torch):
        t.manual_seed(7)
        found.append(eval(draw, {"t": t}).double().tolist())
    assert found[0] == found[1]
