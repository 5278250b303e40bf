# Written by `python docs/update.py`.
from builtins import bool as _bool, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, overload
from typing_extensions import TypeVar
import numpy as _np
_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True, default=Any)
from engine import Size, Tensor, _dtype, _device, _Number, _ValuesAndIndices, _MinAndMax, _SignAndLogabsdet

from contextlib import ContextDecorator as _ContextDecorator
from engine.autograd.function import Function as _Function
class CheckpointError(RuntimeError):
    ...
class CheckpointFunction(_Function):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any: ...
    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: Any, *args: Any) -> Any: ...
def checkpoint(function: Any, *args: Any, use_reentrant: Any = None, context_fn: Any = ..., determinism_check: Any = 'default', debug: Any = False, early_stop: Any = True, preserve_rng_state: Any = True, **kwargs: Any) -> Any: ...
def checkpoint_sequential(functions: Any, segments: Any, input: Any, use_reentrant: Any = None, *, preserve_rng_state: Any = True, **kwargs: Any) -> Any: ...
class set_checkpoint_early_stop(_ContextDecorator):
    def __enter__(self, /) -> Self: ...
    def __exit__(self, /, *exc: Any) -> None: ...
    def __init__(self, enable: Any) -> None: ...
    state: Any
    values: Any
