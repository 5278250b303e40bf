"""``out=``: a result that is written into a tensor of the program's.

A function computes what it computes without the argument; one place, here, puts it where the program wants it.
"""

from ..arrays.batches import blank
from ..arrays.devices import mixed_devices
from ..arrays.warn import warn
from ..core.graph import mode
from ..core.tensor import Tensor, alive
from ..ops.checks import shown_kind
from ..ops.return_types import filled
from ..ops.writes import check_apart, check_cast, check_writable, overwrite, size_error

OF_TWO = {"max": "maximum", "min": "minimum"}  # what PyTorch's errors call it where it is of two tensors
NOT_ITSELF = ("gather", "index_select", "masked_select", "take")  # what they read must not be what is written


def into(out, function, *args, **kwargs):
    """``out``, a tensor or a tuple of them, with the result of ``function(*args, **kwargs)`` written into it.

    A tensor of another shape gets the memory of the result, with PyTorch's warning if it had elements.  RuntimeError
    if something requires grad, and for a dtype that cannot hold the result.
    """
    name = function.__name__
    if sum(isinstance(a, Tensor) for a in (*args, *kwargs.values())) == 2:
        name = OF_TWO.get(name, name)
    outs = out if isinstance(out, tuple) else (out,)
    for t in outs:
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {shown_kind(type(t))}")
    made = function(*args, **kwargs)
    results = made if isinstance(made, tuple) else (made,)
    if mode.enabled and any(t.requires_grad for t in (*results, *outs)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if mode.passes and any(p in t.node.tangents for t in (*results, *outs) if t.node is not None for p in mode.passes):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    if len(results) != len(outs):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(results)} tensors, not {len(outs)}")
    for t, result in zip(outs, results):
        for a in args:
            for b in a if isinstance(a, (list, tuple)) else (a,):
                if isinstance(b, Tensor):
                    check_read(b, t, result.array, name)
        put(t, result)
    if made is results[0]:
        return out
    return filled(type(made))(*outs) if hasattr(made, "_fields") else outs


def check_read(a, t, result, name):
    """RuntimeError if an input that is no larger than the result, and so not reduced, is a part of what is written."""
    if a is t and t.array.shape != result.shape:
        raise size_error(t.array, result.shape)
    if a.array.size <= result.size and (a is t or a.array.base is not None or t.array.base is not None):
        check_apart(t, (a,), name in NOT_ITSELF)


def put(tensor, result):
    """Write a result into a tensor, which is resized where it has another shape."""
    x, value = tensor.array, result.array
    if result.device != tensor.device:
        raise mixed_devices(result.device, tensor.device)
    check_cast(value, x)
    check_writable(tensor)
    if value.shape != x.shape:
        others = (t for kind in ("views", "aliases") for t in alive(tensor, kind))
        if tensor._is_view() or any(t is not tensor for t in others):
            raise NotImplementedError(
                f"a tensor that shares its memory is not resized: give out= a tensor of shape {list(value.shape)}"
            )
        if x.size:
            warn(
                f"An output with one or more elements was resized since it had shape {list(x.shape)}, which does not "
                f"match the required output shape {list(value.shape)}. This behavior is deprecated, and in a future "
                "PyTorch release outputs will not be resized unless they have zero elements. You can explicitly reuse "
                "an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            )
        tensor.array = blank(value.shape, x)
    overwrite(tensor, Tensor(value))
