"""The text of tensors, parameters and sizes, PyTorch's to the character, and the options that shape it."""

from __future__ import annotations

from math import inf, isfinite
from types import SimpleNamespace

import numpy as np

from ..arrays import dtypes
from ..arrays.dispatch import batches
from ..arrays.running import undoing

default: dict = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
profiles: dict[str, dict] = {
    "default": default,
    "short": default | {"precision": 2, "edgeitems": 2},
    "full": default | {"threshold": inf},
}
options = SimpleNamespace(**default)
more_suffixes: list = []  # functions of a tensor: what else is to be said of it, or None


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Set how tensors print: a profile ("default", "short", "full"), then what else is given."""
    if profile is not None and profile not in profiles:
        raise ValueError(f"unknown profile {profile!r}: choose one of {', '.join(profiles)}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen: dict = dict(profiles[profile]) if profile else {}
    chosen.update((name, value) for name, value in given.items() if value is not None)
    options.__dict__.update(chosen, sci_mode=sci_mode)


def get_printoptions() -> dict:
    """The options in force, as keyword arguments for ``set_printoptions``."""
    return dict(vars(options))


class printoptions(undoing):
    """Print with other options inside a ``with`` block."""

    def __init__(self, **kwargs):
        self.chosen = kwargs

    def __enter__(self):
        self.before = get_printoptions()
        super().__enter__()
        set_printoptions(**self.chosen)

    def undo(self):
        vars(options).update(self.before)


def tensor_repr(t) -> str:
    """The text of a tensor: values, then what cannot be seen from them (device, size, dtype, gradient function)."""
    if type(t.array) in batches:
        lines = tensor_repr(type(t)(t.array.x)).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={batches[type(t.array)].depth(t.array)}, bdim=0, value=\n    {lines}\n)"
    name = type(t).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter") else f"{name}("
    empty = 0 in t.shape
    evident = (dtypes.get_default_dtype(),) if empty else (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_)
    suffixes = []
    if t.device.type != "cpu":
        suffixes.append(f"device='{t.device}'")
    if (empty and len(t.shape) != 1) or (not empty and not options.edgeitems):
        suffixes.append(f"size={tuple(t.shape)}")
    if t.dtype not in evident:
        suffixes.append(f"dtype={t.dtype}")
    try:
        grad_fn = t.grad_fn and type(t.grad_fn).__name__
    except RuntimeError:  # a view whose part of the graph was lost in an in-place write
        grad_fn = "Invalid"
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    if grad_fn != "Invalid":
        suffixes += filter(None, (suffix(t) for suffix in more_suffixes))
    return _join_suffixes(prefix + _values(t.array, len(prefix)), suffixes, len(prefix)) + ")"


def parameter_repr(p) -> str:
    """The text of a Parameter."""
    return "Parameter containing:\n" + tensor_repr(p)


def format_tensor(t, spec: str) -> str:
    """``format(t, spec)``: a tensor without dimensions formats its number, any other takes no specification."""
    if not t.shape and type(t).__name__ == "Tensor":
        return format(t.item(), spec)
    return object.__format__(t, spec)


def _join_suffixes(text, suffixes, indent):
    width = len(text) - text.rfind("\n") + 1  # one more than the last line has, as PyTorch counts
    for suffix in suffixes:
        if width + len(suffix) + 2 > options.linewidth:
            text, width = f"{text},\n{' ' * indent}{suffix}", indent + len(suffix)
        else:
            text, width = f"{text}, {suffix}", width + len(suffix) + 2
    return text


def _values(array, indent):
    on_device = hasattr(array, "get")
    array = array if on_device else np.asarray(array)
    if array.size == 0:
        return "[]"
    cut = [array.size > options.threshold and n > 2 * options.edgeitems for n in array.shape]
    for axis, n in enumerate(array.shape):
        if cut[axis]:  # before the copy from the device: only what is printed crosses
            edge = options.edgeitems
            array = array.take([*range(edge), *range(n - edge, n)], axis=axis)
    array = array.get() if on_device else array
    if dtypes.of[array.dtype].is_floating_point:
        array = array.astype(np.float64)  # exact, and Python's own float formatting applies
    return _nested(array.tolist(), cut, indent, *_element_format(array))


def _element_format(array):
    """The function that writes an element, and the width it pads to."""
    if array.dtype.kind != "f":
        width = max((len(str(value)) for value in array.ravel().tolist()), default=1)
        return lambda value: str(value).rjust(width), width
    numbers = array[np.isfinite(array) & (array != 0)].tolist()
    sizes = [abs(value) for value in numbers] or [1.0]
    low, high = min(sizes), max(sizes)
    integral = all(value.is_integer() for value in numbers)
    scientific = high / low > 1000 or high > 1e8 or low < 1e-4
    if options.sci_mode is not None:
        scientific = options.sci_mode and bool(numbers)
    kind = f".{options.precision}e" if scientific else ".0f" if integral else f".{options.precision}f"
    point = "." if integral and not scientific else ""
    width = max((len(format(value, kind) + point) for value in numbers), default=1)
    return lambda value: (format(value, kind) + (point if isfinite(value) else "")).rjust(width), width


def _nested(values, cut, indent, write, width):
    """Bracketed text of nested lists; ``cut`` says along which dimensions the middle was left out."""
    if not cut:
        return write(values)
    edge = options.edgeitems
    if len(cut) > 1:
        items = [_nested(item, cut[1:], indent + 1, write, width) for item in values]
        if cut[0]:
            items.insert(edge, "...")
        return "[" + ("," + "\n" * (len(cut) - 1) + " " * (indent + 1)).join(items) + "]"
    items = [write(value) for value in values]
    if cut[0]:
        items.insert(edge, " ..." if edge else "...")
    n = max(1, (options.linewidth - indent) // (width + 2))
    lines = [", ".join(items[i : i + n]) for i in range(0, len(items), n)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
