"""``torch.autograd.graph``: functions to look at the graph, and to change what it keeps.

Saved tensors take the form that a program's hooks give them, and come back from it when backward needs them.  Outside
of the hooks' blocks nobody looks: nodes keep plain tuples of arrays.
"""

import weakref
from abc import ABC
from collections.abc import Iterable
from contextlib import contextmanager
from functools import cache, wraps

import numpy as np

from ..arrays.dispatch import scalar_types
from ..arrays.memory import storage
from ..arrays.quiet import be_quiet
from ..arrays.running import switched
from ..core import graph, views
from ..core.graph import Mode, extend, mode
from ..core.observers import forget, observe
from ..core.tensor import Tensor
from ..core.versions import version, wrote
from ..help import public
from ..ops.checks import shown_kind
from ..surface.edges import GradientEdge, get_gradient_edge, place
from ..surface.node_names import saved_tensor
from . import messages
from .hooks import RemovableHandle, thread
from .modes import no_grad

__all__ = [
    "GradientEdge", "Node", "RemovableHandle", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class Node(ABC):  # noqa: B024  what is one is registered below
    """The type of every ``grad_fn``, for ``isinstance``."""


for _name in ("name", "next_functions", "metadata", "register_hook", "register_prehook"):
    setattr(Node, _name, vars(graph.Node)[_name])  # for help(): those of every node
Node.register(graph.Node)
extend(
    Mode,
    packing=(),  # the hooks on saved tensors, the innermost last
    no_packing=None,  # where there may be none, the message of the error
    copies=None,  # what is copied before it is overwritten
)


def increment_version(tensor):
    """Count a write to a tensor, or to each of several, that the engine could not see."""
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(t, Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        if not t.inference:
            wrote(t)


# ---- hooks of several tensors


class _MultiHandle(RemovableHandle):
    """Removes a hook from all its tensors."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call ``fn`` once in a pass: with the gradients of all tensors that the pass reaches, or with the first one."""
    tensors = list(tensors)
    if mode == "any":
        return _MultiHandle([t.register_hook(first_of_pass(fn)) for t in tensors if t.requires_grad])
    if mode != "all":
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [place(t)[0] for t in tensors]
    if None in nodes:
        raise AssertionError("Expected gradient function to be set")
    nodes, key = [weakref.ref(node) for node in nodes], object()

    def arrive(i, grad):
        this = this_pass()
        if key not in this.notes:
            this.notes[key] = [sum(node() in this.nodes for node in nodes), [None] * len(nodes)]
        waiting = this.notes[key]
        waiting[1][i] = grad
        waiting[0] -= 1
        if waiting[0] == 0:
            fn(waiting[1])

    return _MultiHandle([t.register_hook(lambda grad, i=i: arrive(i, grad)) for i, t in enumerate(tensors)])


def first_of_pass(fn):
    @wraps(fn)
    def hook(grad):
        notes = this_pass().notes
        if fn not in notes:
            notes[fn] = True
            fn(grad)

    return hook


def this_pass():
    found = thread.this_pass()
    if found is None:
        raise AssertionError("expected this hook to be called inside a backward call")
    return found


# ---- hooks on saved tensors


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
        be_quiet()
        if version(tensor) != before:
            raise RuntimeError(messages.PACK_HOOK_WRITES)

    @property
    def array(self):
        depth = len(mode.packing)
        tensor = self.unpack(self.value)
        be_quiet()
        for left_open in reversed(mode.packing[depth:]):  # by the hook
            left_open.__exit__()
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


class Handle:
    """Stands for an array that was saved."""

    def __init__(self, writes, announced):
        self.writes, self.announced = writes, announced


class AllowMutationContext:
    """Saved arrays of nodes: ``original``, the arrays themselves, and ``cloned``, those that were overwritten since."""

    def __init__(self):
        self.original, self.cloned = weakref.WeakKeyDictionary(), weakref.WeakKeyDictionary()
        self.handles = weakref.WeakValueDictionary()  # id(array) -> Handle, for what is saved several times
        self.announced = None, 0  # the memory that is about to be written, and how often it was before

    def clear(self):
        """Forget all; what was saved is not there for a backward pass any more."""
        for known in (self.original, self.cloned, self.handles):
            known.clear()

    def about_to_write(self, tensor):
        self.announced = storage(tensor.array), version(tensor)
        for handle, saved in [*self.original.items()]:
            if share_memory(saved.array, tensor.array):
                self.cloned[handle] = Tensor(self.unwritten(handle).array.copy())
                del self.original[handle]

    def pack(self, tensor):
        x, writes = tensor.array, version(tensor)
        handle = self.handles.get(id(x))
        saved = self.original.get(handle) if handle else None
        if saved is None or saved.array is not x or handle.writes != writes:
            handle = Handle(writes, self.announced[0] is storage(x) and self.announced[1] == writes)
            self.handles[id(x)], self.original[handle] = handle, Tensor(x)
        return handle

    def unpack(self, handle):
        if handle in self.cloned:
            return self.cloned[handle]
        if handle not in self.original:
            raise AssertionError(messages.OUTSIDE_OF_ALLOW_MUTATION)
        return self.unwritten(handle)

    def unwritten(self, handle):
        """Return the saved array.  NotImplementedError if something wrote there unseen."""
        saved = self.original[handle]
        if version(saved) - handle.writes > handle.announced:  # an operation in place may save what it then writes
            raise NotImplementedError(messages.UNSEEN_WRITE)
        return saved


@contextmanager
def allow_mutation_on_saved_tensors():
    """In the block, what nodes have saved is copied before it is overwritten, so that backward has the old values."""
    if mode.copies is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    if copy_saved not in views.write_checks:
        views.write_checks.append(copy_saved)
    context = AllowMutationContext()
    try:
        with saved_tensors_hooks(context.pack, context.unpack), switched(mode, copies=context):
            yield context
    finally:
        context.clear()


def share_memory(x, y):
    if type(x) is type(y) is np.ndarray:
        return np.may_share_memory(x, y)  # that of ``.data`` has another owner
    return storage(x) is storage(y)


def copy_saved(tensor, others):
    if mode.copies is not None:
        mode.copies.about_to_write(tensor)


__dir__ = public("autograd.graph", globals())
