"""Tensors print as PyTorch prints them: literal expectations, then PyTorch itself as the oracle."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from over_tables import over

from engine.arrays import dtypes
from engine.arrays.size import Size
from engine.surface import printing


class Device:
    def __init__(self, type, index=None):
        self.type, self.index = type, index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


CPU = Device("cpu")


class AddBackward0:
    pass


class Tensor:
    """What printing asks of a tensor, and nothing else."""

    def __init__(self, values, dtype=dtypes.float32, requires_grad=False, grad_fn=None, device=CPU):
        self.array = np.asarray(values).astype(dtype.np)
        self.dtype, self.shape = dtype, self.array.shape
        self.requires_grad, self.grad_fn, self.device = requires_grad or grad_fn is not None, grad_fn, device

    def item(self):
        return self.array.item()

    __repr__ = printing.tensor_repr
    __format__ = printing.format_tensor


class Parameter(Tensor):
    __repr__ = printing.parameter_repr


@pytest.fixture(autouse=True)
def default_options():
    yield
    printing.set_printoptions(profile="default")
    dtypes.set_default_dtype(dtypes.float32)


# Values

LITERAL = [
    ([1.0, 2.0], "float32", "tensor([1., 2.])"),
    ([0.3039, 0.3217], "float32", "tensor([0.3039, 0.3217])"),
    ([1e-5, 1.0], "float32", "tensor([1.0000e-05, 1.0000e+00])"),
    ([1.0, -2.5, np.nan, np.inf, -np.inf], "float32", "tensor([ 1.0000, -2.5000,     nan,     inf,    -inf])"),
    ([1.0, np.nan, -np.inf], "float32", "tensor([1., nan, -inf])"),
    ([0.0, -0.0, np.nan], "float32", "tensor([0., -0., nan])"),
    ([1.0, 2000.0], "float32", "tensor([1.0000e+00, 2.0000e+03])"),
    ([1e9], "float32", "tensor([1.0000e+09])"),
    ([1, -20, 300], "int64", "tensor([  1, -20, 300])"),
    ([1, 2], "int32", "tensor([1, 2], dtype=torch.int32)"),
    ([True, False], "bool", "tensor([ True, False])"),
    (0.1, "float32", "tensor(0.1000)"),
    (3.0, "float32", "tensor(3.)"),
    (3, "int64", "tensor(3)"),
    (True, "bool", "tensor(True)"),
    (0.1, "float64", "tensor(0.1000, dtype=torch.float64)"),
    (0.1, "bfloat16", "tensor(0.1001, dtype=torch.bfloat16)"),
    ([65504.0], "float16", "tensor([65504.], dtype=torch.float16)"),
    ([], "float32", "tensor([])"),
    ([], "int64", "tensor([], dtype=torch.int64)"),
    (np.ones((0, 3)), "float32", "tensor([], size=(0, 3))"),
    (np.ones((2, 0)), "bool", "tensor([], size=(2, 0), dtype=torch.bool)"),
    (np.arange(4.0).reshape(2, 2), "float32", "tensor([[0., 1.],\n        [2., 3.]])"),
    (np.ones((2, 1, 1)), "float32", "tensor([[[1.]],\n\n        [[1.]]])"),
    (np.arange(1001), "int64", "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
]


@over("values, dtype, expected", LITERAL)
def test_text_of_values(values, dtype, expected):
    assert repr(Tensor(values, dtypes.named(dtype))) == expected


def test_summarised_in_two_dimensions():
    assert repr(Tensor(np.arange(10000).reshape(100, 100), dtypes.int64)) == (
        "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
        "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
        "        ...,\n"
        "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
        "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
        "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])"
    )


def test_a_long_row_wraps_at_80_columns():
    assert repr(Tensor(np.arange(30), dtypes.int64)) == (
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])"
    )


@over("d", dtypes.dtypes)
def test_a_numpy_scalar_prints_as_a_tensor_without_dimensions(d):
    t = Tensor(1, d)
    expected = repr(t)
    t.array = t.array[()]
    assert type(t.array) is not np.ndarray and repr(t) == expected


def test_the_values_of_a_device_array_are_fetched_once_and_only_those_printed():
    fetched = []

    class DeviceArray:
        def __init__(self, array):
            self.array, self.shape, self.size, self.dtype = array, array.shape, array.size, array.dtype

        def take(self, indices, axis):
            return DeviceArray(self.array.take(indices, axis))

        def get(self):
            fetched.append(self.size)
            return self.array

    t = Tensor(np.arange(4000.0).reshape(2, 2000), device=Device("cuda", 0))
    t.array = DeviceArray(t.array)
    assert repr(t) == (
        "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n"
        "         1.9990e+03],\n"
        "        [2.0000e+03, 2.0010e+03, 2.0020e+03,  ..., 3.9970e+03, 3.9980e+03,\n"
        "         3.9990e+03]], device='cuda:0')"
    )
    assert fetched == [12]


def test_the_engines_own_tensor_prints():
    from engine.core.tensor import Tensor

    t = Tensor(np.arange(4, dtype=np.float32).reshape(2, 2)).requires_grad_()
    assert repr(t) == "tensor([[0., 1.],\n        [2., 3.]], requires_grad=True)"
    assert repr(t.shape) == "torch.Size([2, 2])"


# Suffixes

SUFFIXES = [
    ({"requires_grad": True}, "tensor([1.], requires_grad=True)"),
    ({"grad_fn": AddBackward0()}, "tensor([1.], grad_fn=<AddBackward0>)"),
    ({"device": Device("cuda", 0)}, "tensor([1.], device='cuda:0')"),
    ({"device": Device("sim")}, "tensor([1.], device='sim')"),
    (
        {"device": Device("cuda", 1), "dtype": dtypes.float64, "grad_fn": AddBackward0()},
        "tensor([1.], device='cuda:1', dtype=torch.float64, grad_fn=<AddBackward0>)",
    ),
]


@over("keywords, expected", SUFFIXES)
def test_suffix(keywords, expected):
    assert repr(Tensor([1.0], **keywords)) == expected


def test_a_suffix_that_does_not_fit_goes_to_a_new_line():
    assert repr(Tensor(np.full(7, 0.5), dtypes.float64, grad_fn=AddBackward0())) == (
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],\n"
        "       dtype=torch.float64, grad_fn=<AddBackward0>)"
    )


def test_the_default_dtype_is_not_written():
    dtypes.set_default_dtype(dtypes.float64)
    assert repr(Tensor([1.0], dtypes.float64)) == "tensor([1.])"
    assert repr(Tensor([1.0], dtypes.float32)) == "tensor([1.], dtype=torch.float32)"


def test_parameter():
    p = Parameter([[1.0, 2.0]], requires_grad=True)
    assert repr(p) == "Parameter containing:\ntensor([[1., 2.]], requires_grad=True)"


def test_a_subclass_prints_under_its_own_name():
    class Image(Tensor):
        pass

    assert repr(Image([[1.0], [2.0]])) == "Image([[1.],\n       [2.]])"


# Format


@over("value, spec, expected", [(1.5, ".3f", "1.500"), (1.5, "", "1.5"), (1.5, ">6", "   1.5")])
def test_format_of_a_tensor_without_dimensions_is_its_items(value, spec, expected):
    assert format(Tensor(value), spec) == expected


def test_format_of_a_tensor_with_dimensions_is_its_text():
    assert f"{Tensor([1.5])}" == "tensor([1.5000])"


def test_format_of_a_tensor_with_dimensions_takes_no_specification():
    with pytest.raises(TypeError, match="^unsupported format string passed to Tensor.__format__$"):
        format(Tensor([1.5]), ".3f")


def test_a_parameter_formats_as_its_text():
    assert f"{Parameter(1.5)}" == "Parameter containing:\ntensor(1.5000)"
    with pytest.raises(TypeError, match="^unsupported format string passed to Parameter.__format__$"):
        format(Parameter(1.5), ".3f")


# Options


def test_precision():
    printing.set_printoptions(precision=2)
    assert repr(Tensor([1.0, 0.12345])) == "tensor([1.00, 0.12])"


def test_scientific_notation_can_be_forced_and_forbidden():
    printing.set_printoptions(sci_mode=True)
    assert repr(Tensor([1.0])) == "tensor([1.0000e+00])"
    printing.set_printoptions(sci_mode=False)
    assert repr(Tensor([1e-6, 0.5])) == "tensor([0.0000, 0.5000])"


def test_threshold_and_edgeitems():
    printing.set_printoptions(threshold=5, edgeitems=1)
    assert repr(Tensor(np.arange(10), dtypes.int64)) == "tensor([0,  ..., 9])"


def test_profile():
    printing.set_printoptions(profile="full")
    assert "..." not in repr(Tensor(np.arange(2000), dtypes.int64))


def test_unknown_profile_raises():
    with pytest.raises(ValueError, match="^unknown profile 'long'"):
        printing.set_printoptions(profile="long")


def test_printoptions_hold_inside_the_block_only():
    before = printing.get_printoptions()
    with pytest.raises(ZeroDivisionError), printing.printoptions(precision=1, sci_mode=True):
        assert repr(Tensor([1.0])) == "tensor([1.0e+00])"
        raise ZeroDivisionError
    assert printing.get_printoptions() == before


# Size


def test_size_prints_as_pytorchs():
    assert repr(Size([2, 3])) == str(Size((2, 3))) == "torch.Size([2, 3])"
    assert repr(Size()) == "torch.Size([])"


SIZE_EXPRESSIONS = [
    "Size((2, 3))[0]",
    "Size((2, 3))[:1]",
    "Size((2, 3))[-1:]",
    "Size((2, 3)) + (1,)",
    "(1,) + Size((2, 3))",
    "Size((2, 3)) + Size((1,))",
    "Size((2, 3)) * 2",
    "2 * Size((2, 3))",
    "Size((2, 3)).numel()",
    "Size(()).numel()",
    "Size((2, 3)) == (2, 3)",
    "{Size((2, 3)): 1}[2, 3]",
    "Size([True, np.int64(3)])",
    "Size(['a'])",
    "Size([2, 1.5])",
    "Size(3)",
    "Size((2, 3)) + [1]",
    "Size((2, 3)) + 5",
    "Size((2, 3)) + ('a',)",
    "('a',) + Size((2, 3))",
    "Size((2, 3)) * 'a'",
    "Size((2, 3))['a']",
    "Size((2, 3))[2]",
]


def outcome(expression, Size):
    try:
        value = eval(expression, {"Size": Size, "np": np})
    except Exception as error:
        return type(error), str(error)
    return type(value).__name__, repr(value)


@over("expression", SIZE_EXPRESSIONS)
def test_size_behaves_as_pytorchs(expression):
    torch = pytest.importorskip("torch")
    assert outcome(expression, Size) == outcome(expression, torch.Size)


def test_a_part_of_a_size_is_a_size():
    assert repr(Size((2, 3, 4))[1:] + (5,)) == "torch.Size([3, 4, 5])"
    assert Size((2, 3, 4)).numel() == 24


def test_size_refuses_what_is_no_integer():
    with pytest.raises(TypeError, match=r"^torch.Size\(\) takes an iterable of 'int' \(item 1 is 'float'\)$"):
        Size([2, 1.5])


def test_copy_and_pickle_of_a_size_are_sizes():
    size = Size((2, 3))
    assert {type(s) for s in (copy.copy(size), copy.deepcopy(size), pickle.loads(pickle.dumps(size)))} == {Size}


# PyTorch as the oracle

FLOATS = [d for d in dtypes.dtypes if d.is_floating_point]


def pair(torch, values, dtype, requires_grad=False):
    """The same values as our tensor and as PyTorch's."""
    ours = Tensor(values, dtype, requires_grad=requires_grad)
    exact = ours.array.astype(np.float64) if dtype.is_floating_point else ours.array
    theirs = torch.tensor(exact, dtype=getattr(torch, dtype.name), requires_grad=requires_grad)
    return ours, theirs


def agree(torch, values, dtype, requires_grad=False):
    ours, theirs = pair(torch, values, dtype, requires_grad)
    assert repr(ours) == repr(theirs)


@pytest.fixture
def torch(default_options):
    torch = pytest.importorskip("torch")
    yield torch
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan]
SHAPES = [
    *[(), (1,), (5,), (24,), (25,), (26,), (200,), (1000,), (1001,), (1, 1), (3, 4), (4, 40), (1, 2000), (2000, 1)],
    *[(7, 7, 30), (6, 200), (40, 40), (2, 3, 4), (2, 1, 3, 2), (2, 2, 1, 2, 3), (8, 8, 8, 8), (5, 1, 7, 7, 8)],
    *[(0,), (0, 3), (3, 0), (2, 0, 4)],
]
MAKERS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "whole": lambda rng, shape: rng.integers(-9, 90, size=shape),
    "tiny": lambda rng, shape: rng.normal(size=shape) * 1e-6,
    "huge": lambda rng, shape: rng.normal(size=shape) * 1e10,
    "wide": lambda rng, shape: 10.0 ** rng.uniform(-6, 6, size=shape),
    "special": lambda rng, shape: rng.choice([*SPECIAL, 1.0, 2.0], size=shape),
    "special and fractions": lambda rng, shape: rng.choice([*SPECIAL, 0.25, -3.5], size=shape),
    "nothing finite": lambda rng, shape: rng.choice([*SPECIAL], size=shape),
}


ALSO = ("wide", "special and fractions")  # of other types than float32


@over("d, maker", [(d, m) for d in FLOATS for m in (MAKERS if d is dtypes.float32 else ALSO)])
def test_floats_print_as_pytorchs(torch, d, maker):
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        for shape in SHAPES:
            agree(torch, MAKERS[maker](rng, shape), d, requires_grad=len(shape) % 2 == 0)


@over("d", [d for d in dtypes.dtypes if not d.is_floating_point])
def test_integers_and_booleans_print_as_pytorchs(torch, d):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for bits in (1, 7):
            agree(torch, rng.integers(0 if not d.is_signed else -(2**bits) + 1, 2**bits, size=shape), d)


def test_integer_limits_print_as_pytorchs(torch):
    for d in (dtypes.int8, dtypes.int32, dtypes.int64):
        info = np.iinfo(d.np)
        agree(torch, np.array([info.min, 0, info.max], d.np), d)


BOUNDARIES = [
    [1.0, 1000.0],
    [1.0, 1001.0],
    [1e8],
    [1e8 + 8],
    [1e-4],
    [0.99e-4],
    [99999.5, 100.0],
    [9.99996],
    [5e-324, 1e308],
    [1e-45],
    [0.5, np.nan, np.inf],
]


@over("values", BOUNDARIES)
def test_switch_to_scientific_notation_is_pytorchs(torch, values):
    for d in (dtypes.float64, dtypes.float32):
        with np.errstate(over="ignore"):
            agree(torch, values, d)


OPTIONS = {
    "precision": (0, 1, 8),
    "threshold": (0, 10),
    "edgeitems": (0, 1, 5),
    "linewidth": (1, 40, 200),
    "sci_mode": (True, False),
    "profile": ("short", "full"),
}


@over("name, value", [(name, value) for name, values in OPTIONS.items() for value in values])
def test_options_act_as_pytorchs(torch, name, value):
    rng = np.random.default_rng(0)
    options = {"threshold": 10, name: value}
    printing.set_printoptions(**options)
    torch.set_printoptions(**options)
    shapes = [(), (5,), (12,), (4, 4), (12, 3), (3, 12, 2), (0, 2)]
    for shape, maker in itertools.product(shapes, ["normal", "whole", "special and fractions"]):
        values = MAKERS[maker](rng, shape)
        agree(torch, values, dtypes.float32, requires_grad=True)
        agree(torch, np.nan_to_num(values) > 0, dtypes.bool_)
        agree(torch, np.nan_to_num(values).clip(-99, 99), dtypes.int16)


def test_default_dtype_is_pytorchs(torch):
    for d, values in itertools.product(FLOATS, ([1.5], [], [[]])):
        dtypes.set_default_dtype(d)
        torch.set_default_dtype(getattr(torch, d.name))
        for other in dtypes.dtypes:
            agree(torch, values, other)


@over("columns", range(1, 40))
def test_line_breaks_before_suffixes_are_pytorchs(torch, columns):
    for d in (dtypes.float32, dtypes.float64):
        ours, theirs = pair(torch, np.full(columns, 10.0), d, requires_grad=True)
        assert repr(ours) == repr(theirs)
        ours.grad_fn = AddBackward0()
        assert repr(ours) == repr(theirs + 0)


def test_parameter_prints_as_pytorchs(torch):
    for requires_grad, shape in itertools.product([True, False], [(), (2, 3), (0,), (40,)]):
        theirs = torch.nn.Parameter(torch.ones(shape), requires_grad=requires_grad)
        assert repr(Parameter(np.ones(shape), requires_grad=requires_grad)) == repr(theirs)


def test_format_is_pytorchs(torch):
    for value, spec in [(1.5, ""), (1.5, ".3f"), (-2.25, "10.2e"), (3.0, "")]:
        assert format(Tensor(value), spec) == format(torch.tensor(value), spec)
    assert format(Tensor(7, dtypes.int64), "04d") == format(torch.tensor(7), "04d")
    assert f"{Tensor(True, dtypes.bool_)}" == f"{torch.tensor(True)}"


@pytest.mark.parametrize("examples", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_any_tensor_prints_as_pytorchs(torch, examples):
    hypothesis = pytest.importorskip("hypothesis")
    st, hnp = hypothesis.strategies, pytest.importorskip("hypothesis.extra.numpy")

    shapes = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=9)
    special = st.sampled_from([*SPECIAL, 1.0, -1.0, 1e8, 1e-4, 1000.0, 0.5])

    @st.composite
    def arrays(draw):
        d = draw(st.sampled_from(dtypes.dtypes))
        if d.is_floating_point:
            scale = 10.0 ** draw(st.integers(-45, 38))
            numbers = st.floats(-scale, scale) | st.integers(-2000, 2000).map(float) | special
            return draw(hnp.arrays(np.float64, draw(shapes), elements=numbers)), d
        return draw(hnp.arrays(d.np, draw(shapes))), d

    options = st.fixed_dictionaries(
        {"sci_mode": st.sampled_from([None, None, True, False])},
        optional={
            "precision": st.integers(0, 9),
            "threshold": st.integers(0, 100),
            "edgeitems": st.integers(0, 4),
            "linewidth": st.integers(20, 120),
        },
    )

    @hypothesis.settings(max_examples=examples)
    @hypothesis.given(arrays(), options, st.booleans())
    def check(drawn, chosen, requires_grad):
        values, d = drawn
        printing.set_printoptions(profile="default", **chosen)
        torch.set_printoptions(profile="default", **chosen)
        with np.errstate(over="ignore"):
            agree(torch, values, d, requires_grad=requires_grad and d.is_floating_point)

    check()
