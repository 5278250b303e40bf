"""What ``torch.autograd.graph`` offers to look at the graph with, and to change what it keeps.

Saved tensors take the form that a program's hooks give them, and come back from it when backward needs them.  Outside
of the hooks' blocks nobody looks: nodes keep plain tuples of arrays.
"""

from abc import ABC
from functools import cache

from ..arrays.dispatch import scalar_types, switched
from ..core import graph
from ..core.graph import Mode, extend, mode
from ..core.observers import forget, observe
from ..core.tensor import Tensor
from ..core.versions import version
from ..help import public
from ..ops.checks import shown_kind
from ..surface.node_names import saved_tensor
from . import messages
from .hooks import RemovableHandle
from .modes import no_grad

__all__ = ["Node", "RemovableHandle", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class Node(ABC):  # noqa: B024  what is one is registered below
    """The type of every ``grad_fn``, for ``isinstance``."""


for _name in ("name", "next_functions", "metadata", "register_hook", "register_prehook"):
    setattr(Node, _name, vars(graph.Node)[_name])  # for help(): those of every node
Node.register(graph.Node)
extend(
    Mode,
    packing=(),  # the hooks on saved tensors, the innermost last
    no_packing=None,  # where there may be none, the message of the error
)


class saved_tensors_hooks:
    """In the block, nodes keep ``pack_hook(tensor)`` of what they save; ``unpack_hook`` makes that a Tensor again."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        if mode.no_packing is not None:
            raise RuntimeError(mode.no_packing)
        observe(graph.Node, pack_saved)
        mode.packing = (*mode.packing, self)

    def __exit__(self, *exc):
        mode.packing = mode.packing[:-1]
        forget(graph.Node, pack_saved)


class Packed:
    """One tensor that was saved: ``array`` unpacks it, each time; ``node``: what made it, if it is an input."""

    def __init__(self, array, node=None):
        hooks, tensor = mode.packing[-1], saved_tensor(array, node)  # of an output, whose node holds this, without it
        before = version(tensor)
        with no_grad():
            self.value, self.unpack, self.node = hooks.pack_hook(tensor), hooks.unpack_hook, node
        if version(tensor) != before:
            raise RuntimeError(messages.PACK_HOOK_WRITES)

    @property
    def array(self):
        tensor = self.unpack(self.value)
        if not isinstance(tensor, Tensor):
            raise TypeError(messages.UNPACKED_NO_TENSOR.format(shown_kind(type(tensor))))
        return tensor.array


def pack_saved(node):
    """Let a new node that saves arrays keep them packed, if this thread is in a block."""
    if mode.packing and node.saved and node.saved_from:
        saved = vars(node).pop("saved")
        node.__class__ = packing_class(type(node))
        node.saved = saved


@cache
def packing_class(Class):
    """``Class``, for nodes that keep what they saved packed."""

    def keep(node, saved):
        if type(saved) is tuple:  # not None, nor what a checkpoint recomputes
            sources = [node.parents[k] if k is not None and k >= 0 else None for k in node.saved_from]
            plain = [k is None or s is None or type(s) in scalar_types for s, k in zip(saved, node.saved_from)]
            saved = tuple([s if p else Packed(s, source) for s, p, source in zip(saved, plain, sources)])
        node.packed = saved

    def unpacked(node):
        saved = node.packed
        return tuple([s.array if type(s) is Packed else s for s in saved]) if type(saved) is tuple else saved

    facts = {"__module__": "builtins", "saved": property(unpacked, keep), "checks_versions": False}
    return type(Class.__name__, (Class,), facts)


class save_on_cpu(saved_tensors_hooks):
    """In the block, what nodes save is kept in host memory, and copied back to its device when backward needs it."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            host = tensor.cpu()
            return tensor.device, host.pin_memory() if pin_memory and tensor.device.type == device_type else host

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


class disable_saved_tensors_hooks(switched):
    """In the block, hooks on saved tensors raise RuntimeError with this message."""

    def __init__(self, error_message):
        super().__init__(mode, no_packing=error_message)

    def __enter__(self):
        if mode.packing:
            raise RuntimeError(self.values["no_packing"])
        super().__enter__()


__dir__ = public("autograd.graph", globals())
