"""DistributedDataParallel: each rank has the whole module and a part of the batch; gradients are averaged."""

from contextlib import contextmanager
from inspect import signature

from ...arrays.dispatch import modules
from ...arrays.running import not_captured
from ...arrays.tree import flatten
from ...arrays.warn import warn
from ...collectives import calls
from ...collectives.groups import default_group, given_group
from ...core.graph import mode
from ...core.tensor import Tensor
from .. import messages
from ..module import Module
from .reducer import Reducer

MEBIBYTE = 1 << 20


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over the ranks of a group during each backward pass."""

    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=None, init_sync=True,
        process_group=None, bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False,
        gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None, skip_all_reduce_unused_params=False,
        bucket_cap_mb_list=None, batched_grad_copy=False, forward_sync_buffers=None,
    ):  # fmt: skip
        super().__init__()
        lacking = {
            "delay_all_reduce_named_params": delay_all_reduce_named_params, "mixed_precision": mixed_precision,
            "param_to_hook_all_reduce": param_to_hook_all_reduce, "device_mesh": device_mesh,
            "bucket_cap_mb_list": bucket_cap_mb_list, "skip_all_reduce_unused_params": skip_all_reduce_unused_params,
        }  # fmt: skip
        for name, value in lacking.items():
            if value:
                raise NotImplementedError(messages.DDP_LACKS.format(name))
        self.process_group = default_group() if process_group is None else given_group(process_group)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        trained = [(n, p) for n, p in named if p.requires_grad]
        if not trained:
            raise RuntimeError(messages.DDP_NOT_NEEDED)
        kinds = {p.device.type for _, p in named}
        if len(kinds) != 1:
            raise ValueError(messages.DDP_DEVICES.format(kinds))
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if (device_ids or output_device) and kinds == {"cpu"}:
            where = {p.device for _, p in named}
            raise ValueError(messages.DDP_DEVICE_IDS.format(device_ids, output_device, where))
        if broadcast_buffers is not None:
            both = forward_sync_buffers is not None
            warn(messages.BROADCAST_BUFFERS_TOO if both else messages.BROADCAST_BUFFERS, FutureWarning)
        if check_reduction:
            warn(messages.CHECK_REDUCTION, FutureWarning)
        self.module, self.dim, self.device_type = module, dim, next(iter(kinds))
        self.device = named[0][1].device
        self.device_ids, self.output_device = device_ids, output_device
        self.static_graph, self.find_unused_parameters = static_graph, find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        old = True if broadcast_buffers is None else broadcast_buffers
        self.forward_sync_buffers = old if forward_sync_buffers is None else forward_sync_buffers
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = ignored
        if init_sync:
            check_same_everywhere(self.process_group, trained)
            tensors = [p for _, p in named]
            if forward_sync_buffers is not None or old:
                tensors += self._buffers_to_sync()
            broadcast_together(self.process_group, tensors)
        cap = (25 if bucket_cap_mb is None else bucket_cap_mb) * MEBIBYTE
        first = MEBIBYTE if bucket_cap_mb is None else cap
        names, params = zip(*trained)
        self.bucket_bytes_cap = int(cap)
        self.reducer = Reducer(
            list(params), list(names), self.process_group, first, cap, find_unused_parameters, gradient_as_bucket_view
        )

    @property
    def broadcast_buffers(self):
        """``forward_sync_buffers`` under its older name."""
        return self.forward_sync_buffers

    def _buffers_to_sync(self):
        return [b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore]

    @contextmanager
    def no_sync(self):
        """Inside of it gradients are added up on each rank, and averaged in the first pass after it."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def forward(self, *inputs, **kwargs):
        """Compute the module on this rank's part of the batch."""
        not_captured("DistributedDataParallel talks to other processes: compile the module inside of it")
        syncs = mode.enabled and self.require_backward_grad_sync
        if syncs:
            self.reducer.check_finished()
        if self.require_forward_param_sync and self.forward_sync_buffers and self.process_group.size() > 1:
            buffers = self._buffers_to_sync()
            if buffers:
                broadcast_together(self.process_group, buffers)
        if self.device_ids:
            inputs, kwargs = moved((inputs, kwargs), self.device)
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = syncs
        if syncs:
            self.reducer.prepare(tensors_in(output) if self.find_unused_parameters else ())
        else:
            self.reducer.expecting = False
        return output

    def register_comm_hook(self, state, hook):
        """Let ``hook(state, bucket)`` carry gradients to the other ranks: it returns a Future of their average."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if "bucket" not in signature(hook).parameters:
            raise ValueError("Communication hook: its arguments are `state` and `bucket`.")
        self.reducer.hook = hook, state

    def _get_ddp_logging_data(self):
        """Sizes, and of the newest pass how long gradients were computed and carried, and both at once (ns)."""
        computed, carried, both = [round(1e9 * t) for t in self.reducer.times or (0, 0, 0)]
        return {
            "world_size": self.process_group.size(), "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__, "backend_name": self.process_group.name(),
            "bucket_sizes": ", ".join(str(b.flat.nbytes) for b in self.reducer.buckets),
            "num_parameter_tensors": len(self.reducer.params), "backward_compute_time": computed,
            "backward_comm_time": carried, "backward_compute_comm_overlap_time": both,
        }  # fmt: skip

    def __getstate__(self):
        state = super().__getstate__()
        return {k: v for k, v in state.items() if k not in ("reducer", "process_group")}


def tensors_in(output):
    """The tensors in what a module returns."""
    return [t for t in flatten(output)[0] if isinstance(t, Tensor)]


def moved(tree, device):
    leaves, structure = flatten(tree)
    return structure.build(iter([t.to(device) if isinstance(t, Tensor) else t for t in leaves]))


def check_same_everywhere(group, named):
    """RuntimeError, with the name, where the parameters of this rank are not those of the first."""
    mine = [[name, list(p.shape), str(p.dtype)] for name, p in named]
    every = calls.all_gather_values(mine, group)
    for rank, theirs in enumerate(every):
        if len(theirs) != len(every[0]):
            one, other = {n for n, *_ in theirs}, {n for n, *_ in every[0]}
            names = ", ".join(sorted(one ^ other)[:5])
            raise RuntimeError(messages.DDP_NUMBER.format(rank, len(theirs), 0, len(every[0]), names))
        for i, ((name, shape, kind), (first, *like)) in enumerate(zip(theirs, every[0])):
            if [shape, kind] != like:
                raise RuntimeError(messages.DDP_SHAPE.format(rank, i, shape, name, kind, *like, first))


def broadcast_together(group, tensors):
    """Give all ranks the tensors of the first one: those of a dtype in one message."""
    if group.size() == 1:
        return
    together: dict = {}
    for t in tensors:
        together.setdefault((t.dtype, str(t.device)), []).append(t.shared())
    for arrays in together.values():
        flat = modules[type(arrays[0])].concatenate([x.reshape(-1) for x in arrays])
        calls.broadcast(Tensor(flat), group=group, group_src=0)
        start = 0
        for x in arrays if group.rank() else ():
            x[...] = flat[start : start + x.size].reshape(x.shape)
            start += x.size
