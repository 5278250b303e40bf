# Written by `python docs/update.py`.
from builtins import bool as _bool, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, overload
from typing_extensions import TypeVar
import numpy as _np
_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True, default=Any)
from engine import Size, Tensor, _dtype, _device, _Number, _ValuesAndIndices, _MinAndMax, _SignAndLogabsdet

class CheckpointException(RuntimeError):
    ...
class FileSystemReader:
    def __init__(self, path: Any) -> None: ...
    def read_metadata(self) -> Any: ...
    path: Any
class FileSystemWriter:
    def __init__(self, path: Any, single_file_per_rank: Any = True, sync_files: Any = True, thread_count: Any = 1, overwrite: Any = True) -> None: ...
    overwrite: Any
    path: Any
    sync_files: Any
class Metadata:
    def __init__(self, values: Any) -> None: ...
    state_dict_metadata: Any
def load(state_dict: Any, *, checkpoint_id: Any = None, storage_reader: Any = None, planner: Any = None, process_group: Any = None, no_dist: Any = False) -> Any: ...
def save(state_dict: Any, *, checkpoint_id: Any = None, storage_writer: Any = None, planner: Any = None, process_group: Any = None, no_dist: Any = False, use_collectives: Any = True) -> None: ...
