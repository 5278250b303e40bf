"""Writing into a tensor's memory, and what that does to the graph of the tensor, of its base and of all its views.

All the cost is here and in the making of views: an operation that writes nothing pays nothing.
"""

from . import dtypes
from .backend import storage
from .graph import OUT, AccumulateGrad, Output, clock, mode, node_class, short_name, write
from .record import module, raw, record
from .tensor import Tensor


def in_place(operation):
    """The in-place form of an operation: ``x.add_(y)`` computes ``add(x, y)`` and writes it into the memory of x."""

    def op_(self, *args, **kwargs):
        check_writable(self)
        out = operation(self, *args, **kwargs)
        if out is NotImplemented:
            raise TypeError(f"{operation.__name__}_(): unsupported operand type(s): {', '.join(type(a).__name__ for a in args)}")
        return overwrite(self, out)

    op_.__name__ = op_.__qualname__ = operation.__name__ + "_"
    return op_


def overwrite(tensor, out):
    """Write ``out``, an operation's result, into ``tensor``; its node becomes the tensor's."""
    x, value, node = tensor.array, out.array, out.node
    if value.shape != x.shape:
        raise RuntimeError(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(value.shape)}"
        )
    if dtypes.of[value.dtype].category > dtypes.of[x.dtype].category:
        raise RuntimeError(
            f"result type {type_word(value)} can't be cast to the desired output type {type_word(x)}"
        )
    if node is not None and node.saved:
        keep_overwritten(node, tensor, value)
    write(tensor, value)
    if node is not None and OUT in node.links:
        node.order = next(clock)  # what it saved, it saved after this write
    if node is not None:
        rewrite_graph(tensor, node)
    return tensor


def type_word(x):
    return Tensor.typename(x).removeprefix("torch.").removesuffix("Tensor")


def keep_overwritten(node, tensor, value):
    """Of what a node saved: copy the operand which is about to be overwritten; the output will be the tensor's memory."""
    x = tensor.array
    node.saved = tuple(x if s is value and k == OUT and x.ndim else s.copy() if s is x else s
                       for s, k in zip(node.saved, node.links or node.saved))  # fmt: skip


def rewrite_graph(tensor, node):
    """Let ``node`` be what made the contents of ``tensor``; its base and all views of that follow."""
    base = tensor if tensor._base is None else tensor._base
    if base is tensor:
        if type(tensor.node) is AccumulateGrad:
            tensor.node = None
        move_retain_grad(tensor, node)
        tensor.node = node
    else:
        base.node = CopySlices((base.node, node), (tensor.path,))
    for r in base.__dict__.get("views", ()):
        v = r()
        if v is None:
            continue
        if closed(v):
            message = f"{whose(v)} is a view and its base or another view of its base has been modified inplace. {closed(v)}"
            v.node = Overtaken((base.node,), (message,))
        else:
            chain = replayed(base, v.path)
            v.node = AsStrided((base.node,), (chain,))


def move_retain_grad(tensor, node):
    """``retain_grad`` belongs to the tensor: the new node keeps its gradient, the old one does no more."""
    if tensor.node is not None and tensor.retains_grad:
        hook = tensor.node.hooks[-1]
        tensor.node.hooks = tensor.node.hooks[:-1]
        node.hooks = (*node.hooks, hook)


def check_writable(tensor):
    """Raise PyTorch's errors for tensors that must not be written in place."""
    if tensor.inference and not mode.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    x = tensor.array
    if x.ndim and x.size and any(s == 0 and n > 1 for s, n in zip(x.strides, x.shape)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    if not mode.enabled:
        return
    base = tensor._base
    if base is not None and closed(tensor):
        raise RuntimeError(f"{whose(tensor)} is a view and is being modified inplace. {closed(tensor)}")
    if type(tensor.node) is AccumulateGrad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if base is None or base.node is None:
        return
    if type(base.node) is AccumulateGrad and tensor.node is not None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if tensor.node is None:
        raise RuntimeError(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this "
            "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view "
            "and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or "
            "both outside (if you want the inplace to be tracked)."
        )


CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)


MULTIPLE = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)


def closed(view):
    """Why a view may not be written in place, nor its base, in PyTorch's words; None if they may."""
    if any(op is custom_result for op, args in view.path):
        return CUSTOM
    return MULTIPLE if type(view.node) is Output else None


def whose(view):
    return f"Output {view.output_nr} of {short_name(view.grad_fn)}"


def custom_result(a):
    """Stands in the path of a view that a custom Function returned: its node is the Function's, not that of the view."""
    return a


def overtaken(g, message):
    raise RuntimeError(message)


Overtaken = node_class("ErrorBackward", overtaken)
Overtaken.shown = lambda node: overtaken(None, *node.saved)  # type: ignore[attr-defined]

# ---- the graph of a base and its views


def follow(a, path):
    """The view of a to which a path leads."""
    for op, args in path:
        a = op(a, *args)
    return a


def zeroed(g, path):
    """g with the region of a view set to zero; it is its own transpose."""
    x = raw(g).copy()
    follow(x, path)[...] = 0
    return record(Zeroed, x, (g,), (path,))


Zeroed = node_class("CopySlices", lambda g, path: zeroed(g, path))
CopySlices = node_class("CopySlices", lambda g, path: zeroed(g, path), lambda g, path: follow(g, path))


def replayed(base, path):
    """The nodes of the view operations of a path, the last one first."""
    probe = Tensor(base.array, base.node)
    nodes: list = []
    for op, args in path:
        probe = op(probe, *args)
        nodes.insert(0, probe.node)
    return nodes


def back_through(g, chain):
    for node in chain:
        g = node.rules[0](g, *node.saved)
    return g


AsStrided = node_class("AsStridedBackward0", lambda g, chain: back_through(g, chain))


# ---- writes that are no operation's in-place form


def copied(target, source):
    """``source`` in the shape and dtype of ``target``: what ``copy_`` writes."""
    x, y = target.array, raw(source)
    try:
        value = module(x).broadcast_to(y, x.shape).astype(x.dtype)
    except ValueError:
        raise RuntimeError(
            f"The size of tensor a ({x.shape[-1] if x.ndim else 1}) must match the size of tensor b "
            f"({y.shape[-1] if y.ndim else 1}) at non-singleton dimension {max(x.ndim - 1, 0)}"
        ) from None
    return record(CopyBackwards, value, (target, source), (y.shape, y.dtype))


def copy_rule(g, shape, dtype):
    from .ops.structure import cast, sum_to  # noqa: PLC0415

    return cast(sum_to(g, shape), dtype)


CopyBackwards = node_class("CopyBackwards", lambda g, _s, _d: g * 0.0, copy_rule)


def copy_(self, src, non_blocking=False):
    """Write ``src``, broadcast and cast, into this tensor."""
    check_writable(self)
    return overwrite(self, copied(self, src))
