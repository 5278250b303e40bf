"""ZeroRedundancyOptimizer: each rank keeps the state of a part of the parameters, and moves those.

S. Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020
(arxiv.org/abs/1910.02054), stage 1: the states are sharded, parameters and gradients are whole everywhere.
"""

from itertools import chain

import numpy as np

from ..arrays import devices, dispatch
from ..collectives import calls
from ..collectives.groups import default_group, given_group
from ..core.tensor import Tensor
from ..core.versions import write
from ..help import public
from ..nn.module import full_name
from ..optim.optimizer import Optimizer
from .objects import broadcast_object_list

ITERABLE = "`params` argument should be an iterable of Tensors or dicts, but got {}"
NOT_CONSOLIDATED = (
    "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={})` on all ranks "
    "beforehand if you meant to save the global state."
)


class ZeroRedundancyOptimizer(Optimizer):
    """Wraps an optimizer's class, of which each rank has one for its part of the parameters."""

    def __init__(self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False,
                 overlap_with_ddp=False, **defaults):  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError("overlap_with_ddp=True is not supported: call step() after backward()")
        if isinstance(params, Tensor):
            raise TypeError(f"`params` argument should be an iterable of Tensors, but got {full_name(params)}")
        try:
            params = list(params)
        except TypeError:
            raise TypeError(ITERABLE.format(full_name(params))) from None
        if not params:
            raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
        self.optim = None
        super().__init__(params, defaults)
        self.process_group = default_group() if process_group is None else given_group(process_group)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        self.parts = self._partition_parameters()
        self.optim = optimizer_class(self.parts[self.rank], **defaults)
        self._all_state_dicts = []
        copy_options(self.optim.param_groups, self.param_groups)

    def _partition_parameters(self):
        """Share out each group's parameters, the largest first, each to the rank that has least so far."""
        sizes, parts = [0] * self.world_size, [[] for _ in range(self.world_size)]
        for group in self.param_groups:
            owned = [[] for _ in parts]
            for p in sorted(group["params"], key=lambda p: -p.numel()):
                rank = sizes.index(min(sizes))
                owned[rank].append(p)
                sizes[rank] += p.numel()
            for part, params in zip(parts, owned):
                part.append({**group, "params": params})
        return parts

    def add_param_group(self, param_group):
        """Add a group of parameters with options of its own, shared out like the others."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self.parts = self._partition_parameters()
            self.optim.add_param_group(self.parts[self.rank][-1])

    def step(self, closure=None, **kwargs):
        """Move this rank's part of the parameters, and give and take the others."""
        copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        copy_options(self.optim.param_groups, self.param_groups)
        self._sync_params()
        return loss

    def _sync_params(self):
        """Give all ranks the parameters of each: all of a dtype in one message."""
        if self.world_size == 1:
            return
        works = []
        for rank, groups in enumerate(self.parts):
            together: dict = {}
            for p in chain.from_iterable(group["params"] for group in groups):
                together.setdefault((p.dtype, str(p.device)), []).append(p)
            for params in together.values():
                arrays = [p.shared().reshape(-1) for p in params]
                flat = Tensor(dispatch.modules[type(arrays[0])].concatenate(arrays))
                work = calls.broadcast(flat, group=self.process_group, group_src=rank, async_op=True)
                works.append((work, rank, params, flat))
        for work, rank, params, flat in works:
            work.wait()
            start = 0
            for p in params if rank != self.rank else ():
                write(p, flat.array[start : start + p.numel()].reshape(p.shape))
                start += p.numel()

    # ---- state

    def consolidate_state_dict(self, to=0):
        """Bring the states of all ranks to one, which can then save them; all ranks call it."""
        copy_options(self.param_groups, self.optim.param_groups)
        self._all_state_dicts = []
        for rank in range(self.world_size):
            shared = [on_host(self.optim.state_dict()) if rank == self.rank else None]
            broadcast_object_list(shared, group=self.process_group, group_src=rank)
            if self.rank == to:
                self._all_state_dicts.append(shared[0])

    def state_dict(self):
        """The state of all parameters, as the optimizer would have it alone.  RuntimeError before it is here."""
        if not self._all_state_dicts:
            raise RuntimeError(NOT_CONSOLIDATED.format(self.rank))
        found = super().state_dict()
        number = {p: i for i, p in enumerate(chain.from_iterable(g["params"] for g in self.param_groups))}
        for groups, theirs in zip(self.parts, self._all_state_dicts):
            for group, their in zip(groups, theirs["param_groups"]):
                for p, i in zip(group["params"], their["params"]):
                    if i in theirs["state"]:
                        found["state"][number[p]] = theirs["state"][i]
        found["state"] = dict(sorted(found["state"].items()))
        return found

    def load_state_dict(self, state_dict):
        """Take over options and, of the states of all parameters, those of this rank's part."""
        params = list(chain.from_iterable(g["params"] for g in self.param_groups))
        number = {p: i for i, p in enumerate(params)}
        mine = {p for group in self.parts[self.rank] for p in group["params"]}
        super().load_state_dict({**state_dict, "state": {}})
        local, places = self.optim.state_dict(), {}
        for group, theirs in zip(self.parts[self.rank], local["param_groups"]):
            places |= dict(zip(group["params"], theirs["params"]))
        local["state"] = {places[p]: state_dict["state"][number[p]] for p in mine if number[p] in state_dict["state"]}
        self.optim.load_state_dict(local)
        copy_options(self.param_groups, self.optim.param_groups)


def copy_options(groups, others):
    """Let groups of parameters have the options of others."""
    for group, other in zip(groups, others):
        other |= {key: value for key, value in group.items() if key != "params"}


def on_host(state):
    """A state with its tensors in host memory."""
    if isinstance(state, Tensor):
        return Tensor(np.asarray(devices.moved(state.shared(), "cpu")))
    if isinstance(state, dict):
        return {key: on_host(value) for key, value in state.items()}
    return [on_host(v) for v in state] if isinstance(state, list) else state


__dir__ = public("distributed.optim", globals())
