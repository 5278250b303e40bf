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
class DistributedDataParallel(_Module):
    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: Any = 0, broadcast_buffers: Any = None, init_sync: Any = True, process_group: Any = None, bucket_cap_mb: Any = None, find_unused_parameters: Any = False, check_reduction: Any = False, gradient_as_bucket_view: Any = False, static_graph: Any = False, delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None, mixed_precision: Any = None, device_mesh: Any = None, skip_all_reduce_unused_params: Any = False, bucket_cap_mb_list: Any = None, batched_grad_copy: Any = False, forward_sync_buffers: Any = None) -> None: ...
    @property
    def broadcast_buffers(self) -> Any: ...
    def forward(self, *inputs: Any, **kwargs: Any) -> Any: ...
    def no_sync(self) -> Any: ...
    def register_comm_hook(self, state: Any, hook: Any) -> Any: ...
    bucket_bytes_cap: Any
    device: Any
    device_ids: Any
    device_type: Any
    dim: Any
    find_unused_parameters: Any
    forward_sync_buffers: Any
    gradient_as_bucket_view: Any
    module: Any
    output_device: Any
    parameters_to_ignore: Any
    process_group: Any
    reducer: Any
    require_backward_grad_sync: Any
    require_forward_param_sync: Any
    static_graph: Any
