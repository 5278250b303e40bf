"""The memory plan of a function: where results go, and the buffers that are kept from call to call."""

import math

import numpy as np

from .plan import GIVEN, refs, ufunc_of, uses

LARGE_BUFFER = 32768  # elements of an array whose memory is given back, or used again, as soon as it is not needed
SMALL_ARRAY = 256  # elements of an array that is not worth a second look
APART = (*GIVEN, "item")  # steps whose results are not known to be memory of their own


class Buffers:
    """Arrays that are lent to a call, and kept for the next one; a call in another thread has others meanwhile."""

    def __init__(self, *kinds):
        self.kinds, self.idle = kinds, []  # a kind: (shape, dtype), or (shape, i): array i in another shape

    def take(self):
        try:
            return self.idle.pop()
        except IndexError:
            arrays: list = []
            for shape, of in self.kinds:
                arrays.append(arrays[of].reshape(shape) if type(of) is int else np.empty(shape, of))
            return arrays

    def give(self, arrays):
        self.idle.append(arrays)


class MemoryPlan:
    """The memory plan of a function: where the result of each step goes, and when what is forgotten.

    A result of the size of an operand that is needed no more takes its place.  A large one that no later call sees
    goes into a buffer that is kept from call to call, and of which several results make use in turn.
    """

    def __init__(self, writer, steps, results):
        self.writer, self.source, self.steps = writer, writer.steps, steps
        self.last, self.on, self.own = {}, {}, set()
        worth = {n for n, s in self.source.items() if s.shape is not None and math.prod(s.shape) >= SMALL_ARRAY}
        for i, step in enumerate(steps):
            given = [n for n in (step.number, *getattr(step, "results", ())) if n in self.source]
            self.own.update(n for n in given if self.source[n].owner == n and self.source[n].kind not in APART)
            for n in (*given, *uses(step)):
                owner = self.source[n].owner
                if owner in worth:  # what is small stays where it is
                    self.last[owner] = i
                    self.on.setdefault(owner, set()).add(n)
        self.own &= worth
        self.leaving = {self.source[n].owner for n in refs(results)}
        self.leaving.update(self.source[n].owner for step in steps if step.kind == "call" for n in uses(step))
        self.gone = {}
        for owner, i in self.last.items():
            if owner not in self.leaving:
                self.gone.setdefault(i, []).append(owner)
        self.buffers, self.held, self.free = {}, {}, []  # (memory, shape) -> name; owner -> memory; memories
        self.kinds = []  # of the buffers; a memory is the number of the first of them that it has
        self.taken = set()  # owners whose place another result has by now

    def place(self, step, i):
        """The name of the array that takes the result of a step, or None for a new one."""
        own = step.owner == step.number and step.writes is None
        if step.where or not (step.shape and step.flat and own and is_fixed(step.shape)):
            return None
        ufunc = ufunc_of(step)
        kind = step.shape, step.dtype
        if ufunc is not None and math.prod(step.shape) >= SMALL_ARRAY:
            for n in uses(step):
                x = self.source[n]
                fits = n in self.own and (x.shape, x.dtype, x.flat) == (*kind, True)
                alone = sum(self.source[m].owner == n for m in uses(step)) == 1
                stays = n in self.held and step.number in self.leaving
                if fits and alone and self.last[n] == i and n not in self.leaving and not stays:
                    self.taken.add(n)
                    if n in self.held:
                        self.held[step.number] = self.held.pop(n)
                    return self.writer.names[n]
        product = step.kind == "operator" and step.name == "matmul"
        return self.buffer(step) if ufunc or product else None

    def buffer(self, step):
        """The name of a buffer for a large result that nobody sees from outside, or None."""
        size = math.prod(step.shape)
        if size < LARGE_BUFFER or self.leaves(step) or not is_fixed(step.shape):
            return None
        fitting = [m for m in self.free if (math.prod(self.kinds[m][0]), self.kinds[m][1]) == (size, step.dtype)]
        memory = fitting[-1] if fitting else len(self.kinds)  # what was used last is near the processor
        if fitting:
            self.free.remove(memory)
        self.held[step.number] = memory
        if (memory, step.shape) not in self.buffers:
            self.buffers[memory, step.shape] = self.writer.fresh("buffer")
            self.kinds.append((step.shape, memory if fitting else step.dtype))
        return self.buffers[memory, step.shape]

    def leaves(self, step):
        """Return whether the memory of a result is to leave the function: with it, or with one that takes its place."""
        while step.number not in self.leaving:
            i = self.last[step.number]
            after = self.steps[i]
            alike = (after.shape, after.dtype, after.owner) == (step.shape, step.dtype, after.number)
            if after is step or not alike or after.kind == "fused" or ufunc_of(after) is None:
                return False
            if next((n for n in uses(after) if n in self.own and self.last[n] == i), None) != step.number:
                return False  # another one's place is taken
            step = after
        return True

    def forget(self, i):
        """The names that are deleted after step i: of large arrays that no later step needs."""
        if i not in self.gone:
            return []
        names, gone = self.writer.names, set()
        for owner in self.gone[i]:
            if owner in self.held:
                self.free.append(self.held.pop(owner))
            elif owner not in self.taken and self.source[owner].kind not in APART:
                large = math.prod(self.source[owner].shape) >= LARGE_BUFFER
                gone.update(names[n] for n in self.on[owner] if large and n in names)
        return sorted(gone)


def is_fixed(shape):
    """Return whether a shape is the same in all calls: sizes that vary are numbers of another type."""
    return all(type(n) is int for n in shape)
