# Written by `python docs/update.py`.
from builtins import bool as _bool, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, overload
from typing_extensions import TypeVar
import numpy as _np
_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True, default=Any)
from engine import Size, Tensor, _dtype, _device, _Number, _ValuesAndIndices, _MinAndMax, _SignAndLogabsdet

from engine.amp import GradScaler as _GradScaler
from engine.amp import autocast as _autocast
class GradScaler(_GradScaler):
    def __init__(self, init_scale: Any = 65536.0, growth_factor: Any = 2.0, backoff_factor: Any = 0.5, growth_interval: Any = 2000, enabled: Any = True) -> None: ...
class autocast(_autocast):
    def __init__(self, enabled: Any = True, dtype: _dtype | _type | None = ..., cache_enabled: Any = True) -> None: ...
def custom_bwd(bwd: Any) -> Any: ...
def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any: ...
