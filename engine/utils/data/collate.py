"""From a list of samples to a batch: tensors are stacked, numbers become tensors, containers keep their form."""

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

from ...arrays.dtypes import float64
from ...core.tensor import Tensor
from ...ops.creation import as_tensor, tensor
from ...ops.shape import stack

UNFIT = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_collate(batch):
    """One batch of a list of samples: a tensor with one more dim in front for tensors, arrays and numbers."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch, *, collate_fn_map=None):
    """``default_collate`` with rules of one's own: ``collate_fn_map``, {type: ``rule(batch, collate_fn_map=...)``}.

    RuntimeError for lists of different lengths, TypeError for a type without a rule.
    """
    first = batch[0]
    kind = type(first)
    rules = collate_fn_map or {}
    rule = rules.get(kind) or next((rules[k] for k in rules if isinstance(first, k)), None)
    if rule is not None:
        return rule(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return refilled(first, {k: collate([d[k] for d in batch], collate_fn_map=collate_fn_map) for k in first})
    if not isinstance(first, Sequence):
        raise TypeError(UNFIT.format(kind))
    named = isinstance(first, tuple) and hasattr(first, "_fields")
    if not named and any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)]
    return kind(*columns) if named else refilled(first, columns)


def refilled(like, items):
    """A container like another with other items; a plain dict or list where its type cannot be made so."""
    if isinstance(like, tuple):
        return items
    try:
        if isinstance(like, MutableMapping):  # a copy keeps what else it holds
            new = copy.copy(like)
            new.update(items)
        elif isinstance(like, MutableSequence):
            new = copy.copy(like)
            for i, item in enumerate(items):
                new[i] = item
        else:
            new = type(like)(items)
    except TypeError:
        return items
    return new


def pinned(data):
    """A batch with its tensors in pinned memory; an object of another class says by ``pin_memory()`` how."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, tuple) and not hasattr(data, "_fields"):  # the other two make lists of these
        return type(data)(map(pinned, data))
    return map_items(pinned, data)


def map_items(function, data):
    """A container with ``function`` of each item; anything else as it is."""
    if isinstance(data, Mapping):
        return refilled(data, {k: function(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(function, data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return refilled(data, list(map(function, data)))
    return data


def collate_array(batch, *, collate_fn_map=None):
    if batch[0].dtype.kind in "SUO":
        raise TypeError(UNFIT.format(batch[0].dtype))
    return collate([as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


default_collate_fn_map = {
    Tensor: lambda batch, *, collate_fn_map=None: stack(batch, 0),
    np.ndarray: collate_array,
    (np.bool_, np.number, np.object_): lambda batch, *, collate_fn_map=None: as_tensor(batch),
    float: lambda batch, *, collate_fn_map=None: tensor(batch, dtype=float64),
    int: lambda batch, *, collate_fn_map=None: tensor(batch),
    str: lambda batch, *, collate_fn_map=None: batch,
    bytes: lambda batch, *, collate_fn_map=None: batch,
}


def default_convert(data):
    """A sample with its NumPy arrays and numbers as tensors, for a loader without batches."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, (np.str_, np.bytes_)):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    return map_items(default_convert, data)
