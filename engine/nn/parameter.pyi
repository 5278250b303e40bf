# Written by `python docs/update.py`.
from builtins import bool as _bool, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, overload
from typing_extensions import TypeVar
import numpy as _np
_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True, default=Any)
from engine import Size, Tensor, _dtype, _device, _Number, _ValuesAndIndices, _MinAndMax, _SignAndLogabsdet

from engine import Tensor as _Tensor
class Buffer:
    def __new__(cls, data: Any = None, *, persistent: Any = True) -> Self: ...
class Parameter(_Tensor):
    def __init__(self, data: Any = None, requires_grad: _bool = True) -> None: ...
