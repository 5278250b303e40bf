"""The groups of this process: how they begin and end, and their members."""

import atexit
import os
import sys
from datetime import timedelta
from importlib.util import find_spec
from io import StringIO

from ..arrays import devices
from ..arrays.warn import warn
from ..surface.require import require
from . import messages, mpi
from .alone import Alone

NOT_A_MEMBER = -100
DEFAULT_TIMEOUT, NCCL_TIMEOUT = timedelta(minutes=30), timedelta(minutes=10)


class Backend(str):
    """The name of a backend, in lower case: "gloo" and "mpi" are MPI, "nccl" is NCCL by CuPy."""

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, MPI]

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()


class ProcessGroup:
    """Some processes that call collectives together; ``machine``: what carries them out."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self, machine, ranks, backend, timeout, name):
        self.machine, self.ranks, self.backend, self.group_name = machine, ranks, backend, name
        self.timeout = timeout
        self.count = 0  # of the groups made of it
        machine.timeout = timeout.total_seconds()

    def rank(self):
        """The rank of this process in the group."""
        return self.machine.rank

    def size(self):
        """Return the number of processes in the group."""
        return self.machine.size

    def name(self):
        """The name of the backend."""
        return self.backend


class State:
    """The groups that this process knows."""

    def __init__(self):
        self.world = None
        self.groups: list = []
        self.hook = None  # sys.excepthook as it was before


state = State()


class WorldMeta(type):
    @property
    def WORLD(cls):
        return state.world

    @WORLD.setter
    def WORLD(cls, group):
        state.world = group


class group(metaclass=WorldMeta):
    """``group.WORLD``: the group of all processes, None before it begins."""


class GroupMember(metaclass=WorldMeta):
    """``GroupMember.WORLD``, and what ``new_group`` gives to a process that is not in the group."""

    NON_GROUP_MEMBER = NOT_A_MEMBER


# ---- what there is


def is_available():
    """Return True: this package is always there."""
    return True


def is_mpi_available():
    """Tell whether several processes can form a group here: whether mpi4py is installed."""
    return find_spec("mpi4py") is not None


def is_gloo_available():
    """The same: what PyTorch does by Gloo is done by MPI."""
    return is_mpi_available()


def is_nccl_available():
    """Tell whether CuPy, its NCCL and a GPU are there."""
    if not devices.has_cuda():
        return False
    import cupy.cuda  # noqa: PLC0415  where there is no GPU, there may be no CuPy

    return hasattr(cupy.cuda, "nccl") and cupy.cuda.nccl.available


def is_backend_available(backend):
    """Tell whether a backend, or each of those in "cpu:gloo,cuda:nccl", can be used here."""
    there = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    names = [part.rpartition(":")[2] for part in backend.lower().split(",")]
    return all(name in there and there[name]() for name in names)


def is_torchelastic_launched():
    """Tell whether the launcher started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank=None):
    """Return this process's number among those on its computer."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    require(fallback_rank is not None, messages.LOCAL_RANK)
    return int(fallback_rank)


# ---- beginning and ending


def is_initialized():
    """Tell whether the group of all processes has begun."""
    return state.world is not None


def valid_timeout(timeout, backend):
    if timeout is None:
        return NCCL_TIMEOUT if backend == Backend.NCCL else DEFAULT_TIMEOUT
    require(isinstance(timeout, timedelta), messages.TIMEOUT_TYPE, timeout, error=TypeError)
    return timeout


def backend_for(name):
    """Return the first backend of "cpu:gloo,cuda:nccl", for all: a GPU's tensors go through host memory."""
    names = [part.rpartition(":")[2] for part in name.split(",")]
    for n in names:
        require(n in Backend.backend_list, messages.UNKNOWN_BACKEND, n, error=AssertionError)
    return names[0]


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None,
    device_id=None,
):  # fmt: skip
    """Begin the group of all processes, which all of them call."""
    require(state.world is None, messages.DEFAULT_GROUP_TWICE, error=ValueError)
    require(store is None, messages.NO_STORE, error=NotImplementedError)
    name = Backend("undefined" if backend is None else backend)
    kind = backend_for(name)
    timeout = valid_timeout(timeout, kind)
    if kind == Backend.MPI:
        if world_size != -1 or rank != -1:
            warn(messages.MPI_IGNORES.format(world_size, rank))
        machine = mpi.world()
    else:
        rank, world_size = who(init_method, rank, world_size)
        machine = Alone() if world_size == 1 else mpi.world(rank, world_size)
    if kind == Backend.NCCL:
        machine = by_nccl(machine)
    state.world = ProcessGroup(machine, list(range(machine.size)), name, timeout, "0")
    state.groups.append(state.world)
    state.hook, sys.excepthook = sys.excepthook, end_all
    atexit.register(leave)


def who(init_method, rank, world_size):
    """Rank and number of processes: as given, as in the environment, or as MPI has them.  ValueError if none knows."""
    scheme = "env" if init_method is None else str(init_method).partition("://")[0] * ("://" in str(init_method))
    require(scheme in ("env", "tcp", "file"), messages.NO_RENDEZVOUS, scheme, error=RuntimeError)
    if scheme == "env":
        rank = int(os.environ.get("RANK", rank)) if rank == -1 else rank
        world_size = int(os.environ.get("WORLD_SIZE", world_size)) if world_size == -1 else world_size
    if (rank == -1 or world_size == -1) and started_by_mpi():
        comm = mpi.library().COMM_WORLD
        rank, world_size = comm.rank, comm.size
    for name, value in (("RANK", rank), ("WORLD_SIZE", world_size)):
        require(value != -1, messages.ENVIRONMENT, name, error=ValueError)
    return rank, world_size


STARTERS = "PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK MPI_LOCALRANKID SLURM_PROCID PALS_RANKID"


def started_by_mpi():
    """Tell whether one of MPI's launchers started this process."""
    return any(name in os.environ for name in STARTERS.split())


def by_nccl(machine):
    """The same ranks, whose arrays go from GPU to GPU."""
    require(devices.has_cuda(), messages.CUDA_MISSING)
    require(is_nccl_available(), messages.NCCL_MISSING)
    from . import nccl  # noqa: PLC0415  it needs CuPy

    return nccl.Machine(machine)


def end_all(kind, error, traceback):
    """Report an uncaught error with the rank, and end all processes, which would wait for ever."""
    before, world, out = state.hook or sys.__excepthook__, state.world, sys.stderr
    sys.stderr = told = StringIO()
    try:
        before(kind, error, traceback)
    finally:
        sys.stderr = out
        prefix = f"[rank{world.rank() if world else '?'}]: "
        out.write("".join(prefix + line if line.strip() else line for line in told.getvalue().splitlines(True)))
        out.flush()
    if world is not None and world.size() > 1:
        mpi.abort(130 if issubclass(kind, KeyboardInterrupt) else 1)


def leave():
    """Tell the others that this process ends."""
    for each in state.groups:
        each.machine.end()


def destroy_process_group(group=None):
    """End a group; without one, all of them."""
    if group == NOT_A_MEMBER:
        return
    if group is None:
        group = state.world
    require(group is not None, "Process group cannot be None", error=AssertionError)
    require(group in state.groups, messages.INVALID_GROUP, error=ValueError)
    if group is not state.world:
        state.groups.remove(group)
        group.machine.end()
        return
    leave()
    atexit.unregister(leave)
    state.groups.clear()
    state.world = None
    if sys.excepthook is end_all:
        sys.excepthook = state.hook
    state.hook = None


# ---- members


def default_group():
    """The group of all processes.  ValueError before it begins."""
    require(state.world is not None, messages.DEFAULT_GROUP_MISSING, error=ValueError)
    return state.world


def given_group(group):
    """A group of this process, by default that of all; ValueError if it is none."""
    if group is None:
        return default_group()
    require(isinstance(group, ProcessGroup) and group in state.groups, messages.INVALID_GROUP, error=ValueError)
    return group


def member(group, call):
    """The same; None, and a warning, in a process that is not in it."""
    if isinstance(group, int) and group == NOT_A_MEMBER:
        warn(messages.NOT_IN_GROUP.format(call, get_rank()))
        return None
    return given_group(group)


def get_rank(group=None):
    """The rank of this process in a group; -1 if it is not in it."""
    return -1 if isinstance(group, int) and group == NOT_A_MEMBER else given_group(group).rank()


def get_world_size(group=None):
    """Return the number of processes in a group; -1 for a group that this process is not in."""
    return -1 if isinstance(group, int) and group == NOT_A_MEMBER else given_group(group).size()


def get_backend(group=None):
    """The name of a group's backend."""
    return given_group(group).backend


def get_backend_config(group=None):
    """The backend for each type of device, as "cpu:gloo,cuda:gloo"."""
    name = given_group(group).backend
    kind = "gloo" if name == "undefined" else name
    return name if ":" in name else "cuda:nccl" if kind == "nccl" else f"cpu:{kind},cuda:{kind}"


def get_default_backend_for_device(device):
    """The backend that PyTorch chooses for tensors of a device."""
    found = {"cpu": "gloo", "cuda": "nccl"}.get(devices.device(device).type)
    require(found is not None, "Default backend not registered for device : {}", device, error=ValueError)
    return found


def get_process_group_ranks(group):
    """The ranks, among all processes, of those in a group."""
    return list(given_group(group).ranks)


def get_group_rank(group, global_rank):
    """The rank in a group of a process that is known by its rank among all.  ValueError if it is not in it."""
    require(group in state.groups, messages.GROUP_UNKNOWN, group, error=ValueError)
    if group is state.world:
        return global_rank
    require(global_rank in group.ranks, messages.RANK_NOT_IN_GROUP, global_rank, group, error=ValueError)
    return group.ranks.index(global_rank)


def get_global_rank(group, group_rank):
    """The rank among all processes of one that is known by its rank in a group."""
    require(group in state.groups, messages.GROUP_UNKNOWN, group, error=ValueError)
    if group is state.world:
        return group_rank
    there = 0 <= group_rank < len(group.ranks)
    require(there, "Group rank {} is not part of group {}", group_rank, group, error=ValueError)
    return group.ranks[group_rank]


def rank_in(group, rank, group_rank):
    """The rank in a group from one of both ways to give it."""
    if group_rank is None:
        require(rank is not None, messages.NO_RANK, error=ValueError)
        return get_group_rank(group, rank)
    require(rank is None, messages.BOTH_RANKS, error=ValueError)
    return group_rank


def new_group(
    ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None,
    device_id=None, sort_ranks=True,
):  # fmt: skip
    """Make a group of some of the processes: all call it, with the same ranks in the same order of calls."""
    world = default_group()
    backend = Backend(backend) if backend else world.backend
    timeout = valid_timeout(timeout, backend_for(backend))
    require(not use_local_synchronization, messages.ALL_CALL_IT, error=NotImplementedError)
    ranks = list(range(world.size())) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    require(len(set(ranks)) == len(ranks), messages.DUPLICATE_RANKS, ranks, error=ValueError)
    require(len(ranks) <= world.size(), messages.GROUP_TOO_LARGE, error=ValueError)
    for rank in ranks:
        facts = rank, world.size() - 1, world.size()
        require(0 <= rank < world.size(), messages.RANK_OUT_OF_RANGE, *facts, error=ValueError)
    world.count += 1
    machine = world.machine.part(ranks, str(world.count))
    if machine is None:
        return NOT_A_MEMBER
    new = ProcessGroup(machine, ranks, backend, timeout, str(world.count))
    state.groups.append(new)
    return new


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of ``group_size`` processes each: (that of this process, all)."""
    if group_size is None:
        require(devices.has_cuda(), "Default group size only takes effect when CUDA is available.", error=ValueError)
        group_size = devices.backend_of("cuda").count()
    size = get_world_size(group)
    require(group_size > 0, messages.SUBGROUP_POSITIVE, group_size, error=ValueError)
    require(size >= group_size, messages.SUBGROUP_TOO_LARGE, group_size, size, error=ValueError)
    require(size % group_size == 0, messages.SUBGROUP_UNEVEN, size, group_size, error=ValueError)
    ranks = get_process_group_ranks(group)
    parts = [ranks[i : i + group_size] for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of the processes in each list of ranks: (that of this process, all)."""
    require(ranks_per_subgroup_list, messages.SUBGROUP_EMPTY, error=ValueError)
    seen, mine, every = {}, None, []
    for ranks in ranks_per_subgroup_list:
        new = new_group(ranks, timeout, backend)
        every.append(new)
        for rank in ranks:
            require(rank not in seen, messages.SUBGROUP_TWICE, rank, seen.get(rank), ranks, error=ValueError)
            seen[rank] = ranks
        mine = new if get_rank() in ranks else mine
    return mine, every
