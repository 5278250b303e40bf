"""vmap: a function of one sample, run on all samples at once.

On the way in, a tensor becomes one whose array hides the samples (``Batched``); on the way out they are seen again.
In between, the function's operations run on whole batches and record what they always record.  Two operations stand at
the border, ``bind`` and ``unbind``, each the transpose of the other.  What the function uses from outside, a weight for
example, is the same for every sample: its cotangents are summed over the samples where they leave (``SumOfSamples``).
"""

import functools
from collections import namedtuple
from weakref import ref

from ..arrays import tree
from ..arrays.dispatch import modules
from ..arrays.memory import expanded
from ..arrays.random import generator_states
from ..arrays.running import switched
from ..core.graph import Node, clock, extend, mode, node_class
from ..core.record import array_of, record
from ..core.tensor import Tensor, require_grad
from ..core.versions import writes_to, wrote
from ..ops.shape import cat
from ..surface.gradients import plain_grad
from . import messages
from .batched import Batched, Level, move_dims, newest_level, running

# ---- the border


def bind(a, dim, level):
    """Hide the samples, which are along ``dim``."""
    return record(Bind, bound(array_of(a), dim, level), (a,), (dim, level))


def bound(x, dim, level):
    if type(x) is Batched and x.level.number > level.number:
        return Batched(bound(x.x, dim + 1, level), x.level)
    return Batched(move_dims(x, dim, 1, 0), level)


def remove_batch_dim(a, dim, level):
    """Show the samples again, along ``dim``; an array that has none is the same for every sample."""
    if isinstance(a, Tensor) and a.node is None:
        return Tensor(unbound(a.array, dim, level))
    return record(RemoveBatchDim, unbound(array_of(a), dim, level), (a,), (dim, level, is_batch(array_of(a), level)))


def unbound(x, dim, level):
    if type(x) is Batched:
        if x.level is level:
            return move_dims(x.x, 0, 1, dim)
        if x.level.number > level.number:
            return Batched(unbound(x.x, dim + 1, level), x.level)
    x = modules[type(x)].expand_dims(x, dim)
    return expanded(x, (*x.shape[:dim], level.size, *x.shape[dim + 1 :]))


def is_batch(x, level):
    """Tell whether an array holds the samples of a level."""
    return type(x) is Batched and (x.level is level or is_batch(x.x, level))


def sum_of_samples(g, level):
    """The sum over the samples of a level; an array without them is that already."""
    return record(Summed, summed(array_of(g), level), (g,), (level, is_batch(array_of(g), level)))


def summed(x, level):
    if not is_batch(x, level):
        return x
    return x.x.sum(0) if x.level is level else Batched(summed(x.x, level), x.level)


def unbind_rule(g, dim, level, batch):
    g = bind(g, dim, level)
    return g if batch else sum_of_samples(g, level)


def linear_sum(_, t, level, batch):
    return t * level.size if batch and not is_batch(array_of(t), level) else sum_of_samples(t, level)


Bind = node_class("VmapBackward0", lambda g, dim, level: remove_batch_dim(g, dim, level))
RemoveBatchDim = node_class("UnvmapBackward0", unbind_rule)
Summed = node_class("SumOfSamplesBackward0",
                    lambda g, level, batch: bind(remove_batch_dim(g, 0, level), 0, level) if batch else g)  # fmt: skip
Bind.linear = staticmethod(lambda _, t, dim, level: bind(t, dim, level))
RemoveBatchDim.linear = staticmethod(lambda _, t, dim, level, batch: remove_batch_dim(t, dim, level))
Summed.linear = staticmethod(linear_sum)


class SumOfSamples(Node):
    """Stands before a node outside of a vmap for a node inside: sums the cotangents over the samples."""

    rules = (sum_of_samples,)

    def __init__(self, outside, level):
        self.parents, self.saved = (outside,), (level,)
        self.oldest_leaf_time = outside.oldest_leaf_time
        if outside.tangents:
            self.tangents = tangents_inside(outside, level, self)
        self.time = (outside.time + -(-outside.time // 1) - 1) / 2  # before that node, after all that came later

    def __lt__(self, other):  # two of them may be of one age
        return False


def tangents_inside(node, level, keeper):
    """The tangents of a node, for the one that will keep them; those from outside of a vmap are reached from inside
    through ``SumOfSamples``."""
    found = dict(node.tangents)
    for which, t in node.tangents.items():
        which.recorded.append(ref(keeper))
        if t.node is not None and t.node.time >= level.start:
            found[which] = Tensor(t.array, SumOfSamples(t.node, level))
    return found


def leave(tensors, level):
    """Let the nodes which were made inside reach those outside through ``SumOfSamples``."""
    stands: dict = {}
    todo = [t.node for t in tensors if t.node is not None and t.node.time < level.start]
    seen = set(todo)
    while todo:
        node = todo.pop()
        if node.tangents:
            node.tangents = tangents_inside(node, level, node)
            new = {t.node for t in node.tangents.values() if t.node is not None} - seen
            seen |= new
            todo += [n for n in new if type(n) is not SumOfSamples]
        if type(node) is Bind and node.saved is not None and node.saved[1] is level:
            continue
        for p in node.parents:
            if p is not None and p.time >= level.start:
                stands[p] = stands.get(p) or SumOfSamples(p, level)
            elif p is not None and p not in seen:
                seen.add(p)
                todo.append(p)
        if stands and not stands.keys().isdisjoint(node.parents):
            node.parents = tuple(stands.get(p, p) for p in node.parents)


@functools.wraps(require_grad)
def requires_grad_(self, requires_grad=True):
    if mode.transforms and requires_grad:
        raise RuntimeError(messages.NOT_IN_TRANSFORMS["requires_grad_"])
    return require_grad(self, requires_grad)


extend(Tensor, requires_grad_=requires_grad_)


class batch:
    """A level that runs in the block, which is inside a transform: there, ``backward()`` is refused too."""

    def __init__(self, size, randomness="error"):
        self.level = Level(size, randomness, next(clock))

    def __enter__(self):
        self.before = running.levels, mode.transforms
        mode.transforms += 1
        running.levels = (*running.levels, self.level)
        return self.level

    def __exit__(self, *exc):
        running.levels, mode.transforms = self.before


def grad_of_each(outputs, inputs, grad_outputs, *options):
    """``autograd.grad(is_grads_batched=True)``: the gradients for each of the cotangents along the first dimension."""
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    given = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    for i, (o, g) in enumerate(zip(outputs, given)):
        if g is not None and g.array.shape[1:] != o.array.shape:
            raise RuntimeError(messages.GRADS_BATCHED_SHAPE.format(i, g.shape, o.shape))
    with batch(number_of_samples([g.array.shape[0] for g in given if g is not None])) as level:
        given = [None if g is None else bind(g, 0, level) for g in given]
        found = plain_grad(outputs, inputs, given, *options)
        found = tuple(None if g is None else remove_batch_dim(g, 0, level) for g in found)
    leave([g for g in found if g is not None], level)
    return found


def by_own_rule(function, args):
    """A custom Function on batches, by its ``vmap``, which returns (results, where their samples are)."""
    level = newest_level([a.array for a in args if isinstance(a, Tensor)])
    own = [isinstance(a, Tensor) and is_batch(a.array, level) for a in args]
    shown = [remove_batch_dim(a, 0, level) if b else a for a, b in zip(args, own)]
    with switched(running, levels=running.levels[: running.levels.index(level)]):
        info = VmapInfo(level.size, level.randomness)
        out, dims = function.vmap(info, tuple(0 if b else None for b in own), *shown)
    if not isinstance(out, tuple):
        return out if dims is None else bind(out, dims, level)
    dims = dims if isinstance(dims, tuple) else (dims,) * len(out)
    return tuple(o if d is None else bind(o, d, level) for o, d in zip(out, dims))


VmapInfo = namedtuple("VmapInfo", "batch_size randomness")
VmapInfo.__doc__ = "What the ``vmap`` of a custom Function is told."

# ---- vmap


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """The function that maps ``func`` over a dim of its arguments."""
    check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        check_out_dims(func, out_dims)
        leaves, structure, dims, size = checked_arguments(func, in_dims, args)
        if chunk_size is None or chunk_size >= size:
            return run_on_batches(func, leaves, structure, dims, size, out_dims, randomness, kwargs)
        parts, states = [], generator_states() if randomness == "same" else ()
        for start in range(0, size, chunk_size):
            for generator, state in states if start else ():  # the same numbers for the samples of all chunks
                generator.set_state(state)
            n = min(chunk_size, size - start)
            some = [a if d is None else a.narrow(d, start, n) for a, d in zip(leaves, dims)]
            parts.append(run_on_batches(func, some, structure, dims, n, out_dims, randomness, kwargs))
        outs, structures = zip(*map(tree.flatten, parts))
        places = places_of(func, outs[0], structures[0], out_dims)
        joined = [same[0] if d is None else cat(same, d) for d, same in zip(places, zip(*outs))]
        return tree.unflatten(structures[0], joined)

    return wrapped


def check_randomness(randomness):
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def run_on_batches(func, leaves, structure, dims, size, out_dims, randomness, kwargs):
    with batch(size, randomness) as level:
        args = [a if d is None else bind(a, d, level) for a, d in zip(leaves, dims)]
        out = func(*tree.unflatten(structure, args), **kwargs)
        outs, out_structure = tree.flatten(out)
        places = places_of(func, outs, out_structure, out_dims)
        results = [with_samples(func, o, d, level) for o, d in zip(outs, places)]
    for a, d, inner in zip(leaves, dims, args):
        if d is not None and writes_to(inner.array) is not None:  # it wrote into the samples, so into the argument
            if a.node is not None:
                raise NotImplementedError(messages.WRITTEN)
            wrote(a)
    leave([r for r in results if isinstance(r, Tensor)], level)
    return tree.unflatten(out_structure, results)


def with_samples(func, out, dim, level):
    """One result with its samples along a dim."""
    if dim is None:
        if isinstance(out, Tensor) and is_batch(out.array, level):
            raise ValueError(messages.OUT_DIM_NONE.format(func_name(func)))
        return out
    if not isinstance(out, Tensor):
        raise ValueError(messages.NOT_TENSORS.format(func_name(func), type(out)))
    n = out.array.ndim + 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return remove_batch_dim(out, dim % n, level)


def checked_arguments(func, in_dims, args):
    """(the leaves of the arguments, their structure, the dim of each, how many samples there are), checked."""
    what = f"vmap({func_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(messages.IN_DIMS_TYPE.format(what, type(in_dims)))
    if not args:
        raise ValueError(messages.NO_INPUTS.format(func_name(func)))
    leaves, structure = tree.flatten(args)
    dims = structure.spread(in_dims)
    if dims is None:
        raise ValueError(messages.IN_DIMS_STRUCTURE.format(what, tree.flatten(in_dims)[1], structure))
    for i, (a, d) in enumerate(zip(leaves, dims)):
        if d is None:
            continue
        if not isinstance(d, int):
            raise ValueError(messages.IN_DIM_TYPE.format(what, d))
        if not isinstance(a, Tensor):
            raise ValueError(messages.IN_DIM_OF_NO_TENSOR.format(what, d, type(a)))
        if not -a.ndim <= d < a.ndim:
            raise ValueError(messages.IN_DIM_RANGE.format(what, d, a.ndim))
        dims[i] = d % a.ndim
    return leaves, structure, dims, number_of_samples([a.array.shape[d] for a, d in zip(leaves, dims) if d is not None])


def number_of_samples(sizes):
    """Return the number of samples.  ValueError if tensors differ in it, or there is none."""
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(messages.SIZES_DIFFER.format(sizes))
    return sizes[0]


def check_out_dims(func, out_dims):
    for d in tree.flatten(out_dims)[0]:
        if not isinstance(d, int) and d is not None:
            raise ValueError(messages.OUT_DIMS_TYPE.format(func_name(func), out_dims))


def places_of(func, outs, structure, out_dims):
    """Return the dim of each result that the samples go to."""
    if structure is tree.LEAF and isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(outs[0], Tensor):
        return list(out_dims)
    places = structure.spread(out_dims)
    if places is None:
        have = tree.flatten(out_dims)[1]
        raise ValueError(messages.OUT_DIMS_STRUCTURE.format(func_name(func), out_dims, have, structure))
    return places


def func_name(func):
    """Return the name that errors give a function."""
    if hasattr(func, "__name__"):
        return func.__name__
    return f"functools.partial({func_name(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)
