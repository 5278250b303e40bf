"""A caching allocator as PyTorch's for CUDA, over memory that is only counted.

Sizes are rounded up to 512 bytes.  Memory is reserved from the device in segments: of 2 MiB for requests up to 1 MiB,
of 20 MiB for those below 10 MiB, above that of the request rounded up to 2 MiB.  A block takes the smallest free one
that fits and gives back the rest; free neighbours join.  A segment stays reserved when all of it is free (that is the
cache), until ``empty_cache`` or a request that would not fit otherwise.
"""

from collections import deque

from ..threads import new_lock
from . import OutOfMemoryError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
ROUND, SMALL, LARGE = 512, MIB, 10 * MIB


class Block:
    """A stretch of a segment, in use or free; ``before`` and ``after`` are its neighbours."""

    __slots__ = ("after", "before", "free", "requested", "size", "small")

    def __init__(self, size, small, before=None, after=None):
        self.size, self.small, self.before, self.after = size, small, before, after
        self.free, self.requested = True, 0

    def absorb(self, after):
        """Join with a free neighbour."""
        self.size += after.size
        self.after = after.after
        if self.after is not None:
            self.after.before = self


class Allocator:
    """Counts what is allocated and reserved, in bytes; ``transfers``: how often elements crossed to the host."""

    def __init__(self, capacity=4 * GIB, name="sim"):
        self.capacity, self.name = capacity, name
        self.lock = new_lock()
        self.gone = deque()  # blocks without an owner: the garbage collector may find one while the lock is held
        self.free = self.gone.append  # the next call puts them back into the cache
        self.cache = []  # the free blocks
        self.segments = []  # the first block of each
        self.allocated = self.reserved = self.requested = self.transfers = 0
        self.counts = {"allocations": 0, "frees": 0, "segments": 0, "retries": 0, "ooms": 0}
        self.reset_peaks()

    def reset_peaks(self):
        """Let the peaks be what is in use now."""
        self.max_allocated, self.max_reserved = self.allocated, self.reserved

    def allocate(self, nbytes):
        """A block of at least ``nbytes``; None for no bytes.  OutOfMemoryError if the device has no room for it."""
        if not nbytes:
            return None
        size = -(-nbytes // ROUND) * ROUND
        small = size <= SMALL
        with self.lock:
            self.settle()
            block = self.cached(size, small) or self.segment(size, small)
            rest = block.size - size
            if rest >= ROUND if small else rest > SMALL:
                tail = Block(rest, small, block, block.after)
                if block.after is not None:
                    block.after.before = tail
                block.after, block.size = tail, size
                self.cache.append(tail)
            block.free, block.requested = False, nbytes
            self.allocated += block.size
            self.requested += nbytes
            self.counts["allocations"] += 1
            self.max_allocated = max(self.max_allocated, self.allocated)
        return block

    def cached(self, size, small):
        """The smallest free block that is large enough, taken out of the cache."""
        fitting = (b for b in self.cache if b.small == small and b.size >= size)
        block = min(fitting, key=lambda b: b.size, default=None)
        if block is not None:
            self.cache.remove(block)
        return block

    def segment(self, size, small):
        """A new segment; if there is no room, the cache is given up first."""
        room = 2 * MIB if small else 20 * MIB if size < LARGE else -(-size // (2 * MIB)) * 2 * MIB
        if self.reserved + room > self.capacity:
            self.counts["retries"] += 1
            self.give_back()
        if self.reserved + room > self.capacity:
            self.counts["ooms"] += 1
            free = self.capacity - self.reserved
            raise out_of_memory(self.name, 0, room, self.capacity, free, self.allocated, self.reserved)
        self.reserved += room
        self.counts["segments"] += 1
        self.max_reserved = max(self.max_reserved, self.reserved)
        self.segments.append(Block(room, small))
        return self.segments[-1]

    def settle(self):
        """Put what is gone back into the cache, joined with its free neighbours."""
        while self.gone:
            block = self.gone.popleft()
            self.allocated -= block.size
            self.requested -= block.requested
            self.counts["frees"] += 1
            block.free, block.requested = True, 0
            if block.after is not None and block.after.free:
                self.cache.remove(block.after)
                block.absorb(block.after)
            if block.before is not None and block.before.free:
                self.cache.remove(block.before)
                block.before.absorb(block)
                block = block.before
            self.cache.append(block)

    def settled(self):
        """The allocator, with nothing gone that is still counted."""
        with self.lock:
            self.settle()
        return self

    def snapshot(self):
        """The segments and their blocks, in order: what PyTorch tells of them, but for addresses."""
        with self.lock:
            self.settle()
            return [described(first) for first in self.segments]

    def give_back(self):
        """Give back the segments of which nothing is in use; the lock is held."""
        whole = [b for b in self.cache if b.before is None and b.after is None]
        self.cache = [b for b in self.cache if b not in whole]
        self.segments = [b for b in self.segments if b not in whole]
        self.reserved -= sum(b.size for b in whole)

    def empty_cache(self):
        """Give back the segments of which nothing is in use."""
        with self.lock:
            self.settle()
            self.give_back()


def described(block):
    """A segment, given by its first block, under PyTorch's names."""
    kind, blocks = "small" if block.small else "large", []
    while block is not None:
        state = "inactive" if block.free else "active_allocated"
        blocks.append({"size": block.size, "requested_size": block.requested, "state": state})
        block = block.after
    total = sum(b["size"] for b in blocks)
    used = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    return {
        "device": 0, "stream": 0, "segment_type": kind, "total_size": total, "allocated_size": used, "blocks": blocks
    }  # fmt: skip


def out_of_memory(name, index, wanted, capacity, free, allocated, reserved):
    """PyTorch's error when the memory of a device is used up; the numbers are bytes."""
    wanted, capacity, free, allocated, unused = map(readable, (wanted, capacity, free, allocated, reserved - allocated))
    return OutOfMemoryError(
        f"{name} out of memory. Tried to allocate {wanted}. GPU {index} has a total capacity of {capacity} of which "
        f"{free} is free. Of the allocated memory {allocated} is allocated by PyTorch, and {unused} is reserved by "
        "PyTorch but unallocated."
    )


def readable(n):
    """A number of bytes in CUDA's words."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n >= unit:
            return f"{n / unit:.2f} {name}"
    return f"{n} bytes"
