# Written by `python docs/update.py`.
from builtins import bool as _bool, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, overload
from typing_extensions import TypeVar
import numpy as _np
_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True, default=Any)
from engine import Size, Tensor, _dtype, _device, _Number, _ValuesAndIndices, _MinAndMax, _SignAndLogabsdet

from engine.optim import Optimizer as _Optimizer
class ZeroRedundancyOptimizer(_Optimizer):
    def __init__(self, params: Any, optimizer_class: Any, process_group: Any = None, parameters_as_bucket_view: Any = False, overlap_with_ddp: Any = False, **defaults: Any) -> None: ...
    def add_param_group(self, param_group: Any) -> None: ...
    def consolidate_state_dict(self, to: Any = 0) -> Any: ...
    def load_state_dict(self, state_dict: Any) -> Any: ...
    def state_dict(self) -> dict[_str, Any]: ...
    def step(self, closure: Any = None, **kwargs: Any) -> Any: ...
    optim: Any
    parts: Any
    process_group: Any
    rank: Any
    world_size: Any
