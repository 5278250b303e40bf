"""What ``torch.autograd.graph`` offers to look at the graph with, and to change what it keeps."""

from contextlib import contextmanager

from ..core import graph
from ..core.graph import mode
from .function import FunctionCtx
from .hooks import RemovableHandle
from .saved_tensors import saved_tensors_hooks

__all__ = ["Node", "RemovableHandle", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class NodeType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, (graph.Node, FunctionCtx))


class Node(metaclass=NodeType):
    """The type of every ``grad_fn``, for ``isinstance``."""


class save_on_cpu(saved_tensors_hooks):
    """In the block, what nodes save is kept in host memory, and copied back to its device when backward needs it.

    ``pin_memory``: in pinned memory, for what comes from a GPU.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            host = tensor.cpu()
            return tensor.device, host.pin_memory() if pin_memory and tensor.device.type == device_type else host

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


@contextmanager
def disable_saved_tensors_hooks(error_message):
    """In the block, hooks on saved tensors raise RuntimeError with this message."""
    if mode.packing:
        raise RuntimeError(error_message)
    before, mode.no_packing = mode.no_packing, error_message
    try:
        yield
    finally:
        mode.no_packing = before
