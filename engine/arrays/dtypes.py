"""PyTorch's dtypes on NumPy's: the dtype objects, finfo and iinfo, the default dtype, and type promotion."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

BOOL, INTEGER, FLOATING = range(3)  # categories of types: promotion never goes down this list
DIMS, ZERO_DIM, SCALAR = range(3)  # ranks of operands: tensor with dimensions, tensor without, Python scalar


class dtype:
    """The type of a tensor's elements, one object each; ``np`` is the NumPy dtype of the arrays that hold them."""

    __slots__ = ("category", "is_floating_point", "is_signed", "itemsize", "name", "np")
    is_complex = False

    def __init__(self, name: str, scalar: type, category: int):
        self.name, self.category = name, category
        self.np: np.dtype[Any] = np.dtype(scalar)
        self.is_floating_point = category == FLOATING
        self.is_signed = self.np.kind not in "bu"
        self.itemsize = self.np.itemsize

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return named, (self.name,)


# The names that builtins have end in an underscore here; the package exports them without it.
float64 = double = dtype("float64", np.float64, FLOATING)
float32 = float_ = dtype("float32", np.float32, FLOATING)
float16 = half = dtype("float16", np.float16, FLOATING)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOATING)
int64 = long = dtype("int64", np.int64, INTEGER)
int32 = int_ = dtype("int32", np.int32, INTEGER)
int16 = short = dtype("int16", np.int16, INTEGER)
int8 = dtype("int8", np.int8, INTEGER)
uint8 = dtype("uint8", np.uint8, INTEGER)
bool_ = dtype("bool", np.bool_, BOOL)

dtypes = (float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool_)
of: dict[np.dtype, dtype] = {d.np: d for d in dtypes}
type_words = dict(zip(of, "Double Float Half BFloat16 Long Int Short Char Byte Bool".split()))
# what products and sums of two bytes are accumulated in; fast paths test the itemsize first
accumulate_wider = {float16.np: float32.np, bfloat16.np: float32.np}
differentiable = {d.np for d in dtypes if d.is_floating_point}


def dtype_word(x) -> str:
    """The dtype of an array as PyTorch's messages call it: Float, Double, Long."""
    return type_words[x.dtype]


def named(name: str) -> dtype:
    """The dtype called ``name``, as in ``named("float32")``."""
    return next(d for d in dtypes if d.name == name)


def from_numpy(source: np.dtype) -> dtype:
    """The dtype for foreign data: ``of[source]``, or PyTorch's error where there is none (ValueError, TypeError)."""
    if not source.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order.")
    if source not in of:
        supported = ", ".join(d.name for d in dtypes)
        kind = source.type.__name__
        raise TypeError(f"can't convert np.ndarray of type numpy.{kind}. The only supported types are: {supported}.")
    return of[source]


def with_own_dtype(array):
    """An array with this module's own dtype object: an unpickled one has an equal one, and kernels ask which it is."""
    own = of[array.dtype].np
    return array if array.dtype is own else array.view(own)


of_python = {float: float64, int: int64, bool: bool_}


def given(value: Any, function: str = "to", default: dtype | None = None) -> dtype:
    """The dtype that ``dtype=`` names, as float, int and bool do; None: the default.  TypeError for anything else."""
    if type(value) is dtype:
        return value
    if value is None:
        return default or _default
    if value is float or value is int or value is bool:
        return of_python[value]
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")


def _check(function, argument, value):
    if type(value) is not dtype:
        raise TypeError(f"{function}(): argument {argument} must be torch.dtype, not {type(value).__name__}")


class _Info:
    fields: tuple[str, ...] = ()

    def __init__(self, type, min, max):
        self.dtype, self.bits = type.name, type.itemsize * 8
        self.min, self.max = min, max

    def __eq__(self, other):
        return type(self) is type(other) and self.dtype == other.dtype

    def __repr__(self):
        numbers = "".join(f"{name}={getattr(self, name):g}, " for name in self.fields)
        return f"{type(self).__name__}({numbers}dtype={self.dtype})"


class finfo(_Info):
    """The limits of a floating point dtype (None: the default one): bits, min, max, eps, tiny, resolution."""

    fields = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None):
        type = _default if type is None else type
        _check("finfo", "'type' (position 1)", type)
        if not type.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        info = ml_dtypes.finfo(type.np)
        super().__init__(type, float(info.min), float(info.max))
        self.eps = float(info.eps)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(f"1e-{info.precision}")


class iinfo(_Info):
    """The limits of an integer dtype: bits, min, max."""

    fields = ("min", "max")

    def __init__(self, type: dtype):
        _check("iinfo", "'type' (position 1)", type)
        if type.is_floating_point:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        info = np.iinfo(type.np)
        super().__init__(type, info.min, info.max)


_default = float32


@lru_cache
def limits(d: dtype) -> tuple[float, float]:
    """The smallest and the largest finite value of a dtype."""
    if d is bool_:
        return 0, 1
    info = finfo(d) if d.is_floating_point else iinfo(d)
    return info.min, info.max


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Make tensors of Python floats of dtype ``d``; TypeError unless it is a floating point one."""
    global _default
    if type(d) is not dtype or not d.is_floating_point:
        prefix = "" if type(d) is dtype else "invalid dtype object: "
        raise TypeError(prefix + "only floating-point types are supported as the default type")
    _default = d


def scalar_dtype(value: float) -> dtype:
    """The dtype of a Python scalar: torch.bool, torch.int64 or the default dtype."""
    return bool_ if isinstance(value, bool) else int64 if isinstance(value, int) else _default


def _promote(a: dtype, b: dtype) -> dtype:
    if a.category != b.category:
        return a if a.category > b.category else b
    if {a, b} == {float16, bfloat16}:
        return float32  # neither holds the other's values; NumPy has no rule for the pair
    return of[np.promote_types(a.np, b.np)]


promoted = {(a, b): _promote(a, b) for a in dtypes for b in dtypes}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype of the higher category that holds both; an integer beside a float does not widen the float."""
    _check("promote_types", "'type1' (position 1)", type1)
    _check("promote_types", "'type2' (position 2)", type2)
    return promoted[type1, type2]


def can_cast(from_: dtype, to: dtype) -> bool:
    """Tell whether promotion allows the cast: within a category or up (bool, integer, floating), never down."""
    _check("can_cast", "'from_' (position 1)", from_)
    _check("can_cast", "'to' (position 2)", to)
    return from_.category <= to.category


@lru_cache(maxsize=1024)
def result_type(*operands: tuple[dtype, int]) -> dtype:
    """The dtype of an operation on operands given as (dtype, rank), rank one of DIMS, ZERO_DIM, SCALAR."""
    ranks: dict[int, dtype] = {}  # those of one rank promote each other; a later one counts if its category is higher
    for d, rank in operands:
        ranks[rank] = promoted[ranks.get(rank, d), d]
    first, *rest = (ranks[rank] for rank in sorted(ranks))
    for d in rest:
        first = d if d.category > first.category else first
    return first


def operand(x) -> tuple[dtype, int]:
    """The (dtype, rank) of a Tensor or a Python scalar, for ``result_type``."""
    if isinstance(x, (bool, int, float)):
        return scalar_dtype(x), SCALAR
    return x.dtype, DIMS if x.ndim else ZERO_DIM


DTYPE_WORDS = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long",
    "int32": "int", "int16": "short", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
}  # fmt: skip


def c_name(dtype):
    """A dtype as C++ calls it."""
    word = DTYPE_WORDS[dtype.name]
    return word + " int" if word in ("long", "short") else word
