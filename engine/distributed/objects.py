"""Objects between ranks: tensors, numbers, strings, and lists, tuples, dicts and sets of those.

They travel as what ``engine.save`` writes, JSON and tensors: what comes from another rank runs no code.
"""

from io import BytesIO

import numpy as np

from .. import serialization
from ..arrays.dtypes import int64
from ..collectives import calls, messages
from ..collectives.groups import get_global_rank, member, rank_in
from ..core.tensor import Tensor
from ..ops.creation import tensor
from ..surface.require import require


def packed(obj):
    """An object as a tensor of bytes."""
    file = BytesIO()
    serialization.save(obj, file)
    return Tensor(np.frombuffer(file.getvalue(), np.uint8).copy())


def unpacked(t, size=None):
    """The object in a tensor of bytes, or in the first of them."""
    return serialization.load(BytesIO(t.array[:size].tobytes()), "cpu")


def number(n):
    return tensor([n], dtype=int64)


def padded(t, size):
    """A tensor of bytes with zeros behind it."""
    out = np.zeros(size, np.uint8)
    out[: t.numel()] = t.array
    return Tensor(out)


def all_gather_object(object_list, obj, group=None):
    """Put the objects of all ranks into ``object_list``, on all of them."""
    group = member(group, "all_gather_object")
    if group is None:
        return
    for i, data in enumerate(calls.all_gather_bytes(packed(obj).array.tobytes(), group)):
        object_list[i] = serialization.load(BytesIO(data), "cpu")


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Put the objects of all ranks into the ``object_gather_list`` of one."""
    group = member(group, "gather_object")
    if group is None:
        return
    root = rank_in(group, 0 if dst is None and group_dst is None else dst, group_dst)
    here = group.rank() == root
    require(object_gather_list or not here, messages.TO_GATHER, error=ValueError)
    require(here or not object_gather_list, messages.TO_GATHER_ELSEWHERE, error=ValueError)
    mine = packed(obj)
    sizes = [number(0) for _ in range(group.size())]
    calls.all_gather(sizes, number(mine.numel()), group)
    sizes = [size.item() for size in sizes]
    every = [Tensor(np.zeros(max(sizes), np.uint8)) for _ in sizes] if here else None
    calls.gather(padded(mine, max(sizes)), every, group=group, group_dst=root)
    for i, t in enumerate(every or ()):
        object_gather_list[i] = unpacked(t, sizes[i])


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Put the objects of one rank into the ``object_list`` of all, which is as long everywhere."""
    group = member(group, "broadcast_object_list")
    if group is None:
        return
    root = rank_in(group, 0 if src is None and group_src is None else src, group_src)
    here = group.rank() == root
    given = packed(list(object_list)) if here else None
    size = number(given.numel() if here else 0)
    calls.broadcast(size, group=group, group_src=root)
    given = given if here else Tensor(np.zeros(size.item(), np.uint8))
    calls.broadcast(given, group=group, group_src=root)
    if not here:
        object_list[:] = unpacked(given)


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """Give each rank one of the objects that a rank has, as the first of its ``scatter_object_output_list``."""
    group = member(group, "scatter_object_list")
    if group is None:
        return
    root = rank_in(group, 0 if src is None and group_src is None else src, group_src)
    out = scatter_object_output_list
    require(isinstance(out, list) and len(out) > 0, OUTPUT_LIST, error=ValueError)
    here = group.rank() == root
    given, size = None, number(0)
    if here:
        require(scatter_object_input_list is not None, INPUT_LIST, error=ValueError)
        given = [packed(obj) for obj in scatter_object_input_list]
        size = number(max(t.numel() for t in given))
    calls.broadcast(size, group=group, group_src=root)
    parts = [padded(t, size.item()) for t in given] if here else None
    mine, length = Tensor(np.zeros(size.item(), np.uint8)), number(0)
    calls.scatter(mine, parts, group=group, group_src=root)
    calls.scatter(length, [number(t.numel()) for t in given] if here else None, group=group, group_src=root)
    out[0] = unpacked(mine, length.item())


OUTPUT_LIST = "Expected argument scatter_object_output_list to be a list of size at least 1."
INPUT_LIST = "source rank must provide non-None scatter_object_input_list"


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Send the objects of a list to a rank."""
    group = member(group, "send_object_list")
    if group is None:
        return
    peer = rank_in(group, dst, group_dst)
    given = packed(list(object_list))
    calls.send(number(given.numel()), group=group, group_dst=peer)
    calls.send(given, group=group, group_dst=peer)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receive the objects that a rank sends, into a list of the same length; returns that rank."""
    group = member(group, "recv_object_list")
    if group is None:
        return -1
    peer = None if src is None and group_src is None else rank_in(group, src, group_src)
    size = number(0)
    source = calls.recv(size, group=group, group_src=peer)
    source = source if peer is None else get_global_rank(group, peer)
    given = Tensor(np.zeros(size.item(), np.uint8))
    calls.recv(given, source, group)
    object_list[:] = unpacked(given)
    return source
