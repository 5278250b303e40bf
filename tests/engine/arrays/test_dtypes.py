"""The dtype objects, their limits, the default dtype and promotion, as PyTorch has them."""

import copy
import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

from engine.arrays import dtypes as D

NAMES = [d.name for d in D.dtypes]
ALIASES = {
    "double": "float64",
    "float_": "float32",
    "half": "float16",
    "short": "int16",
    "int_": "int32",
    "long": "int64",
}
PAIRS = list(itertools.product(NAMES, NAMES))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def restored_default():
    before = D.get_default_dtype()
    yield
    D.set_default_dtype(before)


def test_prints_under_pytorchs_name():
    assert [repr(d) for d in D.dtypes] == [f"torch.{name}" for name in NAMES]
    assert f"{D.float32}" == str(D.bool_).replace("bool", "float32") == "torch.float32"


@pytest.mark.parametrize("alias", ALIASES)
def test_alias_is_the_same_object(alias):
    assert getattr(D, alias) is D.named(ALIASES[alias])


@pytest.mark.parametrize("name", NAMES)
def test_attributes_equal_pytorchs(torch, name):
    ours, theirs = D.named(name), getattr(torch, name)
    for attribute in ("is_floating_point", "is_signed", "is_complex", "itemsize"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("d", D.dtypes, ids=NAMES)
def test_copy_and_pickle_keep_identity(d):
    assert copy.copy(d) is copy.deepcopy([d])[0] is pickle.loads(pickle.dumps(d)) is d


@pytest.mark.parametrize("d", D.dtypes, ids=NAMES)
def test_array_dtype_leads_back_to_the_dtype(d):
    array = np.zeros(2, d.np)
    assert D.of[array.dtype] is D.of[array[0].dtype] is D.from_numpy(array.dtype) is d
    assert array.itemsize == d.itemsize


def test_bfloat16_is_ml_dtypes():
    assert D.bfloat16.np == ml_dtypes.bfloat16


def test_every_c_integer_of_64_bits_is_int64():
    assert D.of[np.dtype(np.longlong)] is D.int64


def test_foreign_dtype_raises():
    with pytest.raises(
        TypeError, match=r"^can't convert np.ndarray of type numpy.datetime64\. The only supported types"
    ):
        D.from_numpy(np.dtype("M8[s]"))


def test_foreign_byte_order_raises():
    with pytest.raises(ValueError, match="^given numpy array has byte order different from the native byte order"):
        D.from_numpy(np.dtype(np.float32).newbyteorder())


# limits


def test_finfo_of_float32():
    info = D.finfo(D.float32)
    assert repr(info) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    )
    assert info.max == 2.0**128 - 2.0**104 and info.eps == 2.0**-23 and info.tiny == 2.0**-126


def test_iinfo_of_uint8():
    assert repr(D.iinfo(D.uint8)) == "iinfo(min=0, max=255, dtype=uint8)"
    assert D.iinfo(D.uint8).bits == 8


@pytest.mark.parametrize("name", [d.name for d in D.dtypes if d is not D.bool_])
def test_limits_equal_pytorchs(torch, name):
    kind = "finfo" if D.named(name).is_floating_point else "iinfo"
    ours, theirs = getattr(D, kind)(D.named(name)), getattr(torch, kind)(getattr(torch, name))
    fields = [a for a in dir(theirs) if not a.startswith("_")]
    assert len(fields) >= 4
    for field in fields:
        assert getattr(ours, field) == getattr(theirs, field)
        assert type(getattr(ours, field)) is type(getattr(theirs, field))
    assert repr(ours) == repr(theirs)


def test_finfo_without_argument_is_of_the_default_dtype(restored_default):
    D.set_default_dtype(D.float64)
    assert D.finfo() == D.finfo(D.float64) != D.finfo(D.float32)


INFO_ERRORS = [
    ("finfo", D.int32, r"^torch.finfo\(\) requires a floating point input type\. Use torch.iinfo"),
    ("finfo", D.bool_, r"^torch.finfo\(\) requires a floating point input type"),
    ("finfo", 3, r"^finfo\(\): argument 'type' \(position 1\) must be torch.dtype, not int$"),
    ("iinfo", D.float32, r"^torch.iinfo\(\) requires an integer input type\. Use torch.finfo"),
    ("iinfo", D.bool_, "^torch.bool is not supported by torch.iinfo$"),
    ("iinfo", "int8", r"^iinfo\(\): argument 'type' \(position 1\) must be torch.dtype, not str$"),
]


@pytest.mark.parametrize("kind, argument, message", INFO_ERRORS)
def test_limits_of_the_wrong_type_raise(kind, argument, message):
    with pytest.raises(TypeError, match=message):
        getattr(D, kind)(argument)


# the default dtype


def test_default_dtype_is_float32():
    assert D.get_default_dtype() is D.float32


def test_default_dtype_can_be_set(restored_default):
    D.set_default_dtype(D.bfloat16)
    assert D.get_default_dtype() is D.scalar_dtype(1.5) is D.bfloat16


@pytest.mark.parametrize("argument", [D.int32, D.bool_])
def test_default_dtype_must_be_floating(argument):
    with pytest.raises(TypeError, match="^only floating-point types are supported as the default type"):
        D.set_default_dtype(argument)
    assert D.get_default_dtype() is D.float32


def test_default_dtype_must_be_a_dtype():
    with pytest.raises(TypeError, match="^invalid dtype object: only floating-point types are supported"):
        D.set_default_dtype("float64")


@pytest.mark.parametrize(
    "value, expected", [(True, D.bool_), (3, D.int64), (2.5, D.float32), (np.float64(1), D.float32)]
)
def test_dtype_of_a_python_scalar(value, expected):
    assert D.scalar_dtype(value) is expected


# promotion

PROMOTIONS = [
    (D.int8, D.uint8, D.int16),
    (D.bool_, D.uint8, D.uint8),
    (D.int64, D.float16, D.float16),
    (D.float16, D.bfloat16, D.float32),
    (D.float32, D.float64, D.float64),
]


@pytest.mark.parametrize("a, b, expected", PROMOTIONS)
def test_promotion(a, b, expected):
    assert D.promote_types(a, b) is D.promote_types(b, a) is expected


@pytest.mark.parametrize("a, b", PAIRS)
def test_promote_types_equals_pytorchs(torch, a, b):
    assert repr(D.promote_types(D.named(a), D.named(b))) == repr(
        torch.promote_types(getattr(torch, a), getattr(torch, b))
    )


@pytest.mark.parametrize("a, b", PAIRS)
def test_can_cast_equals_pytorchs(torch, a, b):
    assert D.can_cast(D.named(a), D.named(b)) == torch.can_cast(getattr(torch, a), getattr(torch, b))


@pytest.mark.parametrize("function", [D.promote_types, D.can_cast])
def test_promotion_of_what_is_no_dtype_raises(function):
    with pytest.raises(TypeError, match=r"position 2\) must be torch.dtype, not int$"):
        function(D.int8, 3)


RESULTS = [
    ([(D.int8, D.DIMS), (D.int64, D.SCALAR)], D.int8),
    ([(D.int8, D.DIMS), (D.float32, D.SCALAR)], D.float32),
    ([(D.float16, D.DIMS), (D.float64, D.ZERO_DIM)], D.float16),
    ([(D.int32, D.DIMS), (D.float64, D.ZERO_DIM), (D.float32, D.SCALAR)], D.float64),
    ([(D.bool_, D.DIMS), (D.uint8, D.ZERO_DIM), (D.int64, D.SCALAR)], D.uint8),
    ([(D.float16, D.ZERO_DIM), (D.float32, D.ZERO_DIM), (D.int64, D.DIMS)], D.float32),
]


@pytest.mark.parametrize("operands, expected", RESULTS)
def test_result_type_counts_a_rank_only_where_its_category_is_higher(operands, expected):
    assert {D.result_type(*order) for order in itertools.permutations(operands)} == {expected}


def test_result_type_of_every_pair_equals_pytorchs(torch):
    scalars = [True, 3, 2.5]
    ours = [((d, rank)) for d in D.dtypes for rank in (D.DIMS, D.ZERO_DIM)] + [
        (D.scalar_dtype(s), D.SCALAR) for s in scalars
    ]
    theirs = [torch.ones(shape, dtype=getattr(torch, name)) for name in NAMES for shape in ((2,), ())] + scalars
    for (x, a), (y, b) in itertools.product(zip(ours, theirs, strict=True), repeat=2):
        assert repr(D.result_type(x, y)) == repr(torch.result_type(a, b)), (x, y)


def test_operand_reads_dtype_and_rank():
    class Holder:
        dtype, ndim = D.int8, 2

    assert D.operand(Holder()) == (D.int8, D.DIMS)
    Holder.ndim = 0
    assert D.operand(Holder()) == (D.int8, D.ZERO_DIM)
    assert D.operand(True) == (D.bool_, D.SCALAR)
