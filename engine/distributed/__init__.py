"""Many processes and machines, as ``torch.distributed``: groups of processes, collectives, what is built on them."""

import importlib

from ..collectives.reduce_op import OldNames, ReduceOp
from ..collectives.work import DistBackendError, DistError, Work
from ..help import public

# fmt: off
from ..collectives.calls import (  # isort: skip
    P2POp, all_gather, all_gather_into_tensor, all_gather_single, all_reduce, all_to_all, all_to_all_single, barrier,
    batch_isend_irecv, broadcast, gather, irecv, isend, monitored_barrier, recv, reduce, reduce_scatter,
    reduce_scatter_single, reduce_scatter_tensor, scatter, send,
)
from ..collectives.groups import (  # isort: skip
    Backend, GroupMember, ProcessGroup, destroy_process_group, get_backend, get_backend_config,
    get_default_backend_for_device, get_global_rank, get_group_rank, get_node_local_rank, get_process_group_ranks,
    get_rank, get_world_size, group, init_process_group, is_available, is_backend_available, is_gloo_available,
    is_initialized, is_mpi_available, is_nccl_available, is_torchelastic_launched, new_group, new_subgroups,
    new_subgroups_by_enumeration,
)
from .objects import (  # isort: skip
    all_gather_object, broadcast_object_list, gather_object, recv_object_list, scatter_object_list, send_object_list,
)
# fmt: on

reduce_op = OldNames()
later = ("checkpoint", "optim")


def __getattr__(name):
    if name not in later:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, importlib.import_module(f".{name}", __name__))


__dir__ = public("distributed", globals())
