"""Sequences of different lengths: padded to one tensor, or packed so that a recurrent layer spends no step on padding.

What is packed lies step after step: of each step the rows of those sequences that are not over yet, the longest first.
"""

from collections import namedtuple
from collections.abc import Iterable

import numpy as np

from ...arrays.dtypes import int64
from ...core.graph import node_class
from ...core.record import record
from ...core.tensor import Tensor
from ...help import public
from ...ops.creation import arange, as_tensor, full
from ...ops.rows import place
from .. import messages


class PackedSequence(namedtuple("PackedSequence", "data batch_sizes sorted_indices unsorted_indices")):
    """``data``, ``batch_sizes``: how many sequences have each step, and the order in which these were sorted, if so."""

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(messages.BATCH_SIZES_ON_CPU)
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """With its data converted or moved."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device="cuda"):
        return self.to(device)

    def double(self):
        return self.to(self.data.double().dtype)

    def float(self):
        return self.to(self.data.float().dtype)

    def half(self):
        return self.to(self.data.half().dtype)

    @property
    def is_cuda(self):
        return self.data.is_cuda


def invert_permutation(permutation):
    """The permutation that undoes one; None of None."""
    return None if permutation is None else permutation.argsort()


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs (longest, batch, ...), the batch first if ``batch_first``, of sequences with these lengths."""
    lengths = lengths.to(int64) if isinstance(lengths, Tensor) else as_tensor(lengths, dtype=int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.ndim != 1 or lengths.device.type != "cpu":
        raise RuntimeError(messages.LENGTHS_ON_CPU.format(lengths.ndim, lengths.device))
    sizes, n, batch = lengths.numpy(), lengths.numel(), input.shape[0 if batch_first else 1]
    if n != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {n} (batch_size={batch})")
    if sizes[-1] <= 0:
        raise RuntimeError(messages.EMPTY_SEQUENCE)
    if (np.diff(sizes) > 0).any():
        raise RuntimeError(messages.LENGTHS_NOT_SORTED)
    step, sequence = np.nonzero(np.arange(sizes[0])[:, None] < sizes)
    counts = as_tensor(np.bincount(step), dtype=int64)
    where = tuple(as_tensor(i).to(input.device).array for i in ((sequence, step) if batch_first else (step, sequence)))
    data = record(PackNode, input.array[where], (input,), (input.array.shape, where))
    return PackedSequence(data, counts, order)


PackNode = node_class("PackPaddedSequenceBackward0", lambda g, shape, where: place(g, shape, where))


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(padded (longest, batch, ...), lengths) of what is packed; ``total_length``: pad to it."""
    data, sizes = sequence.data, sequence.batch_sizes.tolist()
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(messages.TOTAL_LENGTH.format(total_length, length))
        length = total_length
    out = full((length, sizes[0], *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    begin = offset = 0
    for end in range(1, len(sizes) + 1):  # one copy for all steps with the same sequences
        if end == len(sizes) or sizes[end] != sizes[begin]:
            n = sizes[begin]
            after = offset + (end - begin) * n
            out[begin:end, :n].copy_(data[offset:after].view(end - begin, n, *data.shape[1:]))
            begin, offset = end, after
    lengths = as_tensor([sum(n > i for n in sizes) for i in range(sizes[0])], dtype=int64)
    out = out.transpose(0, 1) if batch_first else out
    back = sequence.unsorted_indices
    if back is None:
        return out, lengths
    return out.index_select(0 if batch_first else 1, back), lengths[back.to("cpu")]


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences (length, ...) in one tensor (longest, batch, ...), the batch first if ``batch_first``."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(messages.NO_SEQUENCES.format(type(sequences)))
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    first, longest = sequences[0], max(len(t) for t in sequences)
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    out = full((*shape, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    for i, t in enumerate(sequences):
        start = longest - len(t) if padding_side == "left" else 0
        out.select(0 if batch_first else 1, i).narrow(0, start, len(t)).copy_(t)
    return out


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences without what they were padded with: a list."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    steps = arange(rows.shape[1], device=lengths.device)
    return [row[steps < n] for row, n in zip(rows, lengths, strict=True)]  # copies, as PyTorch's


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of sequences (length, ...)."""
    lengths = [len(t) for t in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences that are packed: a list."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

__dir__ = public("nn.utils.rnn", globals())
