# Written by `python docs/update.py`.
from builtins import bool as _bool, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, overload
from typing_extensions import TypeVar
import numpy as _np
_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True, default=Any)
from engine import Size, Tensor, _dtype, _device, _Number, _ValuesAndIndices, _MinAndMax, _SignAndLogabsdet

from engine.nn import Module as _Module
class Compiled:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __init__(self, function: Any, fullgraph: Any = False, fused: Any = True, dynamic: Any = None, looped: Any = None) -> None: ...
    def captured(self, leaves: Any, structure: Any, args: Any, kwargs: Any) -> Any: ...
    @property
    def code(self) -> Any: ...
    def forget(self) -> Any: ...
    loops: _bool
    dynamic: Any
    entries: Any
    failures: Any
    fullgraph: Any
    function: Any
    fused: Any
    in_memory: Any
    looped: Any
    specialized: Any
class Explanation:
    def __init__(self, entry: Any, changed: Any) -> None: ...
    break_reasons: Any
    captures: Any
    code: Any
    counts: Any
    dynamic_sizes: Any
    entry: Any
    graph_break_count: Any
    graph_count: Any
    loops: Any
    loops_missing: Any
    op_count: Any
    out_guards: Any
    recompile_reason: Any
    specialized: Any
class GraphBreak(RuntimeError):
    def __init__(self, reason: Any, line: Any = None) -> None: ...
    line: Any
    reason: Any
LIMIT: _int
class OptimizedModule(_Module):
    def __bool__(self, /) -> _bool: ...
    def __getattr__(self, name: Any, /) -> Any: ...
    def __init__(self, module: Any, *how: Any) -> None: ...
    def __len__(self, /) -> _int: ...
    @property
    def code(self) -> Any: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...
def compile(model: Any = None, *, fullgraph: Any = False, dynamic: Any = None, backend: Any = 'inductor', mode: Any = None, options: Any = None, disable: Any = False) -> Any: ...
def explain(function: Any) -> Any: ...
def reset() -> Any: ...
