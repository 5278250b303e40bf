"""Conditions: what guards have found, as one Python expression that is compiled, and what it calls."""

import re
import sys
from contextlib import nullcontext
from copy import copy
from weakref import ref

import numpy as np

from ..arrays import devices, dtypes
from ..arrays.running import switched
from ..autograd.hooks import hooked_leaves
from .steps import GraphBreak
from .tape import overlap

VALUES = (int, float, str, bytes, complex)
AMP = f"{__package__.rpartition('.')[0]}.amp.autocast_mode"  # a program without autocast does not load it
MAX_CONDITIONS = 5000  # conditions; a function that reads more is not captured
GONE = KeyError, AttributeError, IndexError, ValueError  # what was read is no longer there


class Conditions:
    """Conditions on the leaves of a call and on what else can be read, and what a capture has to undo of it."""

    def finish(self, written=()):
        """Make ``matches(leaves)`` of the conditions; ``written``: the numbers of inputs that are written in place."""
        if written:
            arrays = [f"{self.space_path(n)}.array, " for n in range(len(self.tensors))]
            others = "".join(a for n, a in enumerate(arrays) if n not in written)
            self.add(f"separate(({''.join(arrays[n] for n in written)}), ({others}))")
            for n in written:
                self.add(f"not {self.space_path(n)}.inference")
        fixed = frozenset(id(where) for kind, where in self.places if kind == "fixed")
        for kind, where in self.places if fixed else ():
            if kind == "argument" and where not in self.fixed:  # an argument is none of the other tensors
                self.add(f"id(a{where}) not in {self.constant(fixed)}")
        if leaves := sorted(self.leaves):
            self.add(f"without_hooks(({''.join(f'{self.space_path(n)}, ' for n in leaves)}))")
        text = " and\n    ".join(self.conditions)
        names = ", ".join(f"a{i}" for i in range(self.count))
        code = f"def matches(leaves):\n    try:\n        [{names}] = leaves\n        return ({text})\n"
        code += "    except GONE:\n        return False\n"
        exec(compile(code, "<guards>", "exec"), self.space)
        self.matches = self.space["matches"]

    def readable(self):
        """The conditions as they can be read: names of classes and functions and values in place of k0, k1, ..."""

        def text(found):
            value = self.space[found[0]]
            if isinstance(value, (*VALUES, type(None))):
                return repr(value)
            named = isinstance(value, (np.dtype, devices.device, dtypes.dtype))
            return getattr(value, "__name__", None) or (str(value) if named else type(value).__name__)

        conditions = (re.sub(r"(\w+)\.__class__ is", r"type(\1) is", condition) for condition in self.conditions)
        return [re.sub(r"\bk\d+\b", text, condition) for condition in conditions]

    def failing(self, leaves):
        """The first condition that does not hold, as it can be read; "" if all do."""
        space = {**self.space, **{f"a{i}": leaf for i, leaf in enumerate(leaves)}}
        for condition, words in zip(self.conditions, self.readable()):
            try:
                holds = eval(condition, space)
            except GONE:
                holds = False
            if not holds:
                return words
        return ""

    def hold(self, containers):
        """Let lists and dicts that are given be as they were after the capture: [(each, what it held)]."""
        held = [(value, copy(value)) for value in containers]
        self.snapshots += held
        self.seen.update(map(id, containers))
        return held

    def forget(self):
        """Keep no arguments and no containers alive."""
        self.tensors, self.snapshots = [], []

    def restore(self):
        """Undo what the capture put into lists, dicts and sets: the call that follows does it again."""
        for value, held in self.snapshots:
            if isinstance(value, np.ndarray):
                if value.flags.writeable:
                    value[...] = held
            elif identities_of(value) != identities_of(held):
                value.clear()
                (value.update if isinstance(value, (dict, set)) else value.extend)(held)

    def add(self, condition):
        self.conditions.append(condition)
        if len(self.conditions) > MAX_CONDITIONS:
            raise GraphBreak("it reads more Python values than guards can watch", " ")

    def constant(self, value):
        name = f"k{len(self.space)}"
        self.space[name] = value
        return name

    def same(self, path, value):
        if path is not None:
            self.add(f"{path} is {self.constant(value)}")

    def enter(self, tensor, place, name):
        """Let a Tensor be an input."""
        self.index[id(tensor)] = len(self.tensors)
        self.tensors.append(tensor)
        self.places.append(place)
        self.names.append(name)

    def space_path(self, number):
        kind, where = self.places[number]
        if kind == "grad":
            return f"{self.space_path(where)}._grad"
        return f"a{where}" if kind == "argument" else self.constant(where)

    def leaf(self, number):
        """The condition on a Tensor to which backward adds a gradient."""
        if number not in self.leaves:
            self.leaves.add(number)
            self.add(f"type({self.space_path(number)}.node) is AccumulateGrad")


def identities_of(container):
    """List the identities of the objects that a list, deque, set or dict holds."""
    return [*map(id, container)], [*map(id, container.values())] if isinstance(container, dict) else ()


def order(container):
    """The keys of a dict or set one after the other; what is compared by identity as its identity."""
    return [k if type(k) in (str, int) else id(k) for k in container]


def memory_of(x):
    """Return the identity of what owns the memory of an array, in the end."""
    while (below := x.obj if isinstance(x, memoryview) else getattr(x, "base", None)) is not None:
        x = below
    return id(x)


def separate(written, others):
    """Return whether no array that is written shares memory with another input."""
    found = [*map(memory_of, written)]
    if len({*found}) == len(found) and {*found}.isdisjoint(map(memory_of, others)):
        return True
    every = [*written, *others]
    return not any(overlap(x, y) for i, x in enumerate(written) for y in every[i + 1 :])


def without_hooks(tensors):
    """Return whether none of these leaves has a hook."""
    return not hooked_leaves or not any(t.node is not None and ref(t.node) in hooked_leaves for t in tensors)


def casts():
    """Return what autocast does in this thread: (devices, their dtypes), () where it is off."""
    amp = sys.modules.get(AMP)
    if amp is None or not amp.state.active:
        return ()
    return amp.state.active, tuple(amp.state.dtype[kind].name for kind in amp.state.active)


def forget_casts():
    """Let the casts of weights go that autocast has kept."""
    if AMP in sys.modules:
        sys.modules[AMP].clear_autocast_cache()


def own_casts(on=True):
    """A block in which no cast of a weight is known from before or will be known afterwards; or nothing is cast."""
    amp = sys.modules.get(AMP)
    return nullcontext() if amp is None else switched(amp.state, cache={}, active=amp.state.active if on else ())
