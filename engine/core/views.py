"""Writing into a tensor's memory, and what that does to the graph of the tensor, of its base and of all its views.

All the cost is here and in the making of views: an operation that writes nothing pays nothing.
"""

import math
from weakref import ref

import numpy as np

from ..arrays import dtypes
from ..arrays.dispatch import scalar_types
from ..arrays.memory import address, element_strides, same_place, storage
from ..arrays.shapes import common_shape
from . import versions
from .graph import OUTPUT, AccumulateGrad, clock, edge, hooked, mode, node_class
from .linear import cast, contiguous, number_for, sum_to, transfer
from .record import array_of, record, xp_of
from .tensor import DTYPE_WORDS, StaleView, Tensor, watchers
from .versions import alive, short_name, write, wrote


def in_place(operation):
    """The in-place form of an operation: ``x.add_(y)`` computes ``add(x, y)`` and writes it into the memory of x."""

    written = getattr(operation, "written", None)  # node classes, if the operation has none: for a number, for a tensor

    def op_(self, *args, **kwargs):
        check_allowed(self, args)
        check_apart(self, args if operation.__name__ not in MAY_READ else ())
        out = operation(self, *args, **kwargs)
        if out is NotImplemented:
            raise TypeError(
                f"{operation.__name__}_(): unsupported operand type(s): {', '.join(type(a).__name__ for a in args)}"
            )
        if written and self.node is not None and mode.enabled:
            out = Tensor(out.array, written[isinstance(args[0] if args else None, Tensor)]((self.node,), ()))
        return overwrite(self, out)

    op_.__name__ = op_.__qualname__ = operation.__name__ + "_"
    op_.__wrapped__ = operation  # whose arguments it has
    return op_


MAY_READ = ("index_fill", "masked_fill", "masked_scatter")  # what these read may be a part of what they write


def overwrite(tensor, out):
    """Write ``out``, an operation's result, into ``tensor``; its node becomes the tensor's."""
    x, value, node = tensor.array, out.array, out.node
    if value.shape != x.shape:
        raise size_error(x, value.shape)
    check_cast(value, x)
    if node is not None and node.saved and node.saved_from:
        keep_overwritten(node, tensor, value)
    write(tensor, value)
    if x.dtype not in dtypes.differentiable:
        node = None
    if node is not None and OUTPUT in node.saved_from:
        node.time = next(clock)  # what it saved, it saved after this write
    refresh(tensor, node)
    return tensor


def check_cast(value, x):
    """RuntimeError in PyTorch's words if the dtype of x cannot hold what that of value is for."""
    if value.dtype is not x.dtype and dtypes.of[value.dtype].category > dtypes.of[x.dtype].category:
        raise RuntimeError(f"result type {type_word(value)} can't be cast to the desired output type {type_word(x)}")


def modify(tensor, change, Backward, inputs, saved=(), apart=None):
    """Let ``change(array)`` write into the memory of a tensor; the write's node gets these inputs and saved values.

    ``apart``: those inputs which must not be a part of what is written, all by default; False: any overlap is harmless.
    """
    check_allowed(tensor, inputs)
    if apart is not False:
        check_apart(tensor, inputs if apart is None else apart)
    x, node = tensor.shared(), None
    if mode.enabled and x.dtype in dtypes.differentiable:
        parents = tuple(a.node if isinstance(a, Tensor) else None for a in inputs)
        if any(p is not None for p in parents):
            node = Backward(parents, saved)
    change(x)
    wrote(tensor)
    refresh(tensor, node)
    return tensor


def size_error(x, shape):
    return RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(shape)}")


def type_word(x):
    return Tensor.typename(x).rpartition(".")[2].removesuffix("Tensor")


def keep_overwritten(node, tensor, value):
    """Of what a node saved: copy the input which is about to be overwritten; the output will be the tensor's memory."""
    x = tensor.array
    node.saved = tuple(
        x if k == OUTPUT and s is value and not isinstance(x, np.generic) else s.copy() if k == 0 and s is x else s
        for s, k in zip(node.saved, node.saved_from)
    )


def refresh(tensor, node):
    """Let ``node`` be what made the contents of ``tensor`` (None: not recorded); its base and their views follow."""
    if watchers and node is not None:
        tell(tensor, node)
    base = tensor if tensor._base is None else tensor._base
    if node is not None:
        rewrite_base(tensor, base, node)
    known = base.__dict__
    if "views" in known or "aliases" in known:
        for b in alive(base, "aliases") or (base,):
            if b.node is not None:
                for v in alive(b, "views"):
                    rewrite_view(v, b)


def tell(tensor, node):
    """Tell who looks at new Tensors of a tensor that gets another node."""
    for look in watchers:
        look(tensor, node)


def rewrite_graph(tensor, node):
    """As ``refresh``; for writes that are no engine operation's."""
    refresh(tensor, node)


def rewrite_base(tensor, base, node):
    if base is not tensor:
        node = CopySlices((base.node, node), (tensor.view_ops,))
        tell(base, node)
    if type(base.node) is AccumulateGrad:
        base.node = None
    move_retain_grad(base, node)
    base.node = node


def rewrite_view(view, base):
    """The node of a view after its memory was written: it leads to the base, by the rules of the view's operations."""
    if view.creation_meta is None:
        node = AsStrided((base.node,), (replayed(base, view.view_ops),))
        tell(view, node)
        move_retain_grad(view, node)
        view.node = node
    elif type(view) is not StaleView:
        view.reason = complaint(view, "its base or another view of its base has been modified inplace")
        view.__class__ = StaleView


def move_retain_grad(tensor, node):
    """``retain_grad`` belongs to the tensor: the new node keeps its gradient, the old one does no more."""
    if tensor.node is not None and tensor.retains_grad:
        hook = tensor.node.hooks[-1]
        tensor.node.hooks = tensor.node.hooks[:-1]
        node.hooks = (*node.hooks, hook)
        hooked.add(ref(node, hooked.discard))


# ---- what must not be written


def check_writable(tensor, others=()):
    """Raise PyTorch's errors for tensors that must not be written in place; ``others``: what the values are made of."""
    check_allowed(tensor, others)
    check_apart(tensor, ())


def check_allowed(tensor, others):
    """Raise PyTorch's errors for tensors whose part of the graph does not bear a write."""
    if tensor.inference and not mode.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    if mode.derivatives and (tensor if tensor._base is None else tensor._base).transform_level < mode.derivatives:
        raise RuntimeError(CAPTURED)
    if mode.enabled:
        base = tensor._base
        requires_grad = tensor.requires_grad or (base is not None and base.node is not None)
        for a in others:
            requires_grad = requires_grad or (isinstance(a, Tensor) and a.requires_grad)
        if requires_grad:
            check_recordable(tensor, base)


CAPTURED = (
    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
    "that would "
    "mutate a captured Tensor. This is not supported; please rewrite the function being transformed to "
    "explicitly accept "
    "the mutated Tensor(s) as inputs."
)


def check_apart(tensor, others):
    """Raise PyTorch's errors if elements share their memory, or if a part of what is written is also read."""
    x = tensor.array
    path = tensor.view_ops  # none of what detach() made of a view
    if (0 in x.strides or (views_may_overlap(path) if path else not x.flags.c_contiguous)) and overlaps_itself(x):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    for a in others:
        if isinstance(a, Tensor) and a is not tensor and overlaps(a.array, x):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation."
            )


def check_recordable(tensor, base):
    """The errors for a write that would have to be recorded."""
    if base is not None:
        if tensor.creation_meta is not None:
            raise RuntimeError(complaint(tensor, "is being modified inplace"))
        if tensor.requires_grad or base.node is not None:
            if base.node is None or type(base.node) is AccumulateGrad:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation."
                )
    if type(tensor.node) is AccumulateGrad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def views_may_overlap(path):
    return bool(path) and any(op.__name__ in ("unfold", "as_strided") for op, _ in path)


def overlaps_itself(x):
    """Whether elements of an array may lie in the same place in memory."""
    end = 0
    for step, n in sorted((s, n) for s, n in zip(x.strides, x.shape) if n != 1):
        if step < end + x.itemsize:
            return x.size > 0
        end += step * (n - 1)
    return False


def overlaps(x, y):
    """Whether two arrays share a part of their memory but are not the same elements; only dense ones are looked at."""
    if x.base is None and y.base is None:
        return False
    if storage(x) is not storage(y) or not x.size or not y.size:
        return False
    (a, b), (c, d) = byte_bounds(x), byte_bounds(y)
    if b - a != x.nbytes or d - c != y.nbytes or a >= d or c >= b or overlaps_itself(x) or overlaps_itself(y):
        return False
    return (a, b, element_strides(x)) != (c, d, element_strides(y))


def byte_bounds(x):
    """The places of the first byte of an array, and of that after the last one."""
    reach = [(n - 1) * s for n, s in zip(x.shape, x.strides)]
    start = address(x)
    return start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0) + x.itemsize


MANY = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
UNCLEAR = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)


def complaint(view, what):
    """PyTorch's error for a view which came about in a way that forbids in-place writes."""
    node = view.__dict__["node"]
    grad_fn, number = (None, 0) if type(node) is AccumulateGrad else edge(node)
    unrecorded = view.creation_meta in ("no_grad", "inference")
    if grad_fn is None:
        begin, created = "A view was created in", True
    else:
        begin = f"Output {number} of {short_name(grad_fn)} is a view"
        created = unrecorded
        begin += " of a view which was created in" if unrecorded else ""
    if created:
        where = (
            ("inference mode", "in normal mode")
            if view.creation_meta == "inference"
            else ("no_grad mode", "with grad mode enabled")
        )
        begin = f"{begin} {where[0]} and {what} {where[1]}. "
    else:
        begin = f"{begin} and {what}. "
    block = {"no_grad": "no_grad", "inference": "inference_mode"}
    return begin + (
        UNCLEAR.format(block[view.creation_meta]) if unrecorded else MANY if view.creation_meta == "several" else CUSTOM
    )


# ---- the graph of a base and its views


def follow(a, path):
    """The view of a to which a path leads, or a copy of it: a may lie in memory in another order than the base."""
    if views_may_overlap(path):
        a = contiguous(a)
    for op, args in path:
        a = op(a, *args)
    return a


def zeroed(g, path):
    """g with the region of a view set to zero; it is its own transpose."""
    x = xp_of(array_of(g)).array(array_of(g))
    region = follow(x, path)
    if storage(region) is storage(x):
        region[...] = 0
    else:
        x.reshape(-1)[follow(xp_of(x).arange(x.size).reshape(x.shape), path)] = 0
    return record(Zeroed, x, (g,), (path,))


Zeroed = node_class("CopySlices", lambda g, path: zeroed(g, path))
CopySlices = node_class("CopySlices", lambda g, path: zeroed(g, path), lambda g, path: follow(g, path))
CopySlices.name = lambda self: "torch::autograd::CopySlices"  # as PyTorch calls the nodes that no table made
CopySlices.saved_from = (None,)  # no array is kept, and yet a second backward pass is refused
CopySlices.next_functions = property(lambda self: (edge(self.parents[0]), *edge(self.parents[1])[0].next_functions[1:]))


def replayed(base, path):
    """The nodes of the view operations of a path, the last one first."""
    probe = Tensor(base.array, base.node)
    nodes: list = []
    before, mode.enabled = mode.enabled, True
    try:
        for op, args in path:
            probe = op(probe, *args)
            nodes.insert(0, probe.node)
    finally:
        mode.enabled = before
    return nodes


def back_through(g, chain):
    for node in chain:
        g = node.rules[0](g, *node.saved)
    return g


AsStrided = node_class("AsStridedBackward0", lambda g, chain: back_through(g, chain))
versions.view_node = AsStrided((), ([],))


# ---- writes that are no operation's in-place form


def fits(value, dtype):
    """A number as an array of a dtype.  RuntimeError if it is out of range."""
    kind = dtypes.of[dtype]
    number = value.item() if isinstance(value, np.generic) else value
    if type(number) not in scalar_types:
        raise TypeError(f"expected a number, but got {type(value).__name__}")
    if type(number) is int and not -(2**63) <= number < 2**64:
        raise OverflowError("int too big to convert" if number > 0 else "can't convert negative int to unsigned")
    low, high = dtypes.limits(kind)
    if type(number) is int and not kind.is_signed:
        low = -high  # wraps around
    if kind is not dtypes.bool_ and not low <= number <= high:
        if not kind.is_floating_point or math.isfinite(number):
            word = INTEGER_WORDS.get(kind.name, DTYPE_WORDS[kind.name])
            raise RuntimeError(f"value cannot be converted to type {word} without overflow")
    return dtype.type(number) if number >= 0 or kind.is_signed else np.asarray(number).astype(dtype)[()]


def number_in(value, dtype):
    """The same for one that mostly fits."""
    try:
        return dtype.type(value)
    except OverflowError:
        return fits(value, dtype)


INTEGER_WORDS = {"int64": "int64_t", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t"}


def zeros_for(g, shape=None):
    """Zeros in the shape of g or another one; no nan or inf gets through."""
    x = array_of(g)
    out = xp_of(x).zeros(x.shape if shape is None else shape, x.dtype)
    return Tensor(out) if isinstance(g, Tensor) else out


def back_to(g, shape, dtype):
    """The cotangent of what was broadcast and cast from a shape and dtype."""
    return cast(sum_to(g, shape), dtype)


CopyBackwards = node_class("CopyBackwards", lambda g, _shape, _dtype: zeros_for(g), back_to)
CopyBackwards.name = lambda self: "torch::autograd::CopyBackwards"
Zero = node_class("ZeroBackward0", lambda g: zeros_for(g))
FillNumber = node_class("FillBackward2", lambda g: zeros_for(g))
FillTensor = node_class("FillBackward3", lambda g, _shape, _dtype: zeros_for(g), back_to)


def copy_(self, other, non_blocking=False):
    """Write ``other``, broadcast and cast, into this tensor."""
    if not isinstance(other, Tensor):
        if type(other) not in scalar_types:
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        other = Tensor(np.asarray(other))
    other = transfer(other, self.device)
    y = other.shared()
    same = same_place(self.shared(), y)  # then there is nothing to do, also where writing is not allowed

    def change(x):
        if not same:
            common = common_shape(x.shape, y.shape)
            if common != x.shape:
                raise size_error(x, common)
            x[...] = y

    return modify(self, change, CopyBackwards, (self, other), (y.shape, y.dtype), apart=not same and None)


def fill_(self, value):
    """Write a number, or that of a 0-d tensor, into every element."""
    if not isinstance(value, Tensor):
        number = fits(value, self.array.dtype)
        return modify(self, lambda x: x.fill(number), FillNumber, (self,), apart=False)
    value = number_for(self.array, value)
    v = value.array
    if v.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {v.ndim} dimensions.")

    def change(x):
        x[...] = v.astype(x.dtype)

    return modify(self, change, FillTensor, (self, value), (v.shape, v.dtype), apart=())


def zero_(self):
    """Write zeros."""
    return modify(self, lambda x: x.fill(0), Zero, (self,), apart=False)
