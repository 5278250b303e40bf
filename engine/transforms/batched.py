"""Batched arrays: what ``vmap`` runs a function on.

A ``Batched`` is an array of many samples that looks like one of them: the first axis of the array inside runs over the
samples and is hidden from ``shape``, indices and axes.  Every operation and rule of the engine uses an array by its
operators and by the functions of the module that serves its type, so all of them work on whole batches and none knows
of it.  What cannot be done for all samples at once raises an error in PyTorch's words.

Batches nest: the array inside may be a Batched of an older ``Level``; the newest is outside.  An array without the
batch takes part as it is, the same for every sample.
"""

import importlib
import math
import operator
from functools import cache, partial
from itertools import count
from types import SimpleNamespace

import numpy as np

from ..arrays import batches, devices, dispatch, memory
from ..arrays.devices import draw_wrappers
from ..arrays.dispatch import modules, scalar_types
from ..arrays.memory import address, storage, strided
from ..arrays.running import running
from ..core.graph import extend, mode
from . import messages

all_of = slice(None)


class Level:
    """One ``vmap`` that runs, or has run: how many samples, and what random numbers are to do."""

    __slots__ = ("number", "randomness", "size", "start")
    numbers = count()

    def __init__(self, size, randomness="error", start=0):
        self.number, self.size, self.randomness, self.start = next(self.numbers), size, randomness, start


def refuse(message, error=RuntimeError):
    """A method, or a function, of batches that there cannot be."""

    def method(*args, **options):
        raise error(message)

    return method


class Batched:
    """An array of samples that looks like one; ``x`` has the samples along axis 0."""

    __slots__ = ("__weakref__", "base", "level", "x")
    __array_priority__ = 500

    def __init__(self, x, level, base=None):
        self.x, self.level, self.base = x, level, base

    def rewrapped(self, x):
        """A part or another form of this array: a view of it if it has the same memory."""
        return Batched(x, self.level, storage(self) if storage(x) is storage(self.x) else None)

    shape = property(lambda self: self.x.shape[1:])
    ndim = property(lambda self: self.x.ndim - 1)
    dtype = property(lambda self: self.x.dtype)
    itemsize = property(lambda self: self.x.itemsize)
    size = property(lambda self: math.prod(self.x.shape[1:]))
    nbytes = property(lambda self: self.size * self.x.itemsize)
    strides = property(lambda self: self.x.strides[1:])
    flags = property(lambda self: (self.x[0] if self.level.size else self.x).flags)
    data = property(lambda self: SimpleNamespace(ptr=address(self.x)))
    T = property(lambda self: self.transpose())

    # ---- other forms of the same elements

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return self.rewrapped(self.x.reshape(self.x.shape[0], *shape))

    def transpose(self, *dims):
        n = self.ndim
        dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims or range(n - 1, -1, -1)
        return self.rewrapped(self.x.transpose(0, *(d % n + 1 for d in dims)))

    def swapaxes(self, i, j):
        return self.rewrapped(self.x.swapaxes(inner_axis(i), inner_axis(j)))

    def squeeze(self, axis=None):
        axis = tuple(d for d, n in enumerate(self.shape) if n == 1) if axis is None else axis
        return self.rewrapped(self.x.squeeze(inner_axis(axis)))

    def diagonal(self, offset=0, axis1=0, axis2=1):
        return self.rewrapped(memory.writable(self.x.diagonal(offset, inner_axis(axis1), inner_axis(axis2))))

    def view(self, dtype):
        return self.rewrapped(self.x.view(dtype))

    def astype(self, dtype, copy=True):
        return self if not copy and self.x.dtype == dtype else Batched(self.x.astype(dtype), self.level)

    def copy(self, order="C"):
        return Batched(self.x.copy(order), self.level)

    # ---- elements

    def fill(self, value):
        self[...] = value

    def take(self, indices, axis):
        return getitem(self, (all_of,) * axis + (indices,))

    def __len__(self):
        return self.shape[0]

    __bool__ = refuse(messages.CONTROL_FLOW)
    item = __float__ = __int__ = __index__ = refuse(messages.ITEM)
    tolist = refuse("Cannot access data pointer of Tensor that doesn't have storage")
    nonzero = refuse(messages.DYNAMIC_SHAPE.format("nonzero"))
    __array__ = refuse(messages.UNBATCHED_IN_PLACE)  # asked for to write a Batched into an array which is no batch

    # ---- what NumPy hands over: a function of a plain array beside a batched one

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if method == "at":
            return add_at(*inputs)
        if method != "__call__" or any(type(a) not in modules for a in inputs):
            return NotImplemented
        return matmul(*inputs) if ufunc is np.matmul else elementwise_on_samples(ufunc, *inputs, **options)

    def __array_function__(self, function, types, args, options):
        place = batched_numpy.linalg if function.__module__ == "numpy.linalg" else batched_numpy
        return getattr(place, function.__name__)(*args, **options)

    __hash__ = object.__hash__


def inner_axis(axis):
    """An axis, or several, of the array inside."""
    return tuple(map(inner_axis, axis)) if isinstance(axis, (tuple, list)) else axis + 1 if axis >= 0 else axis


def newest_level(arrays):
    found = None
    for a in arrays:
        if type(a) is Batched and (found is None or a.level.number > found.number):
            found = a.level
    return found


def has(a, level):
    return type(a) is Batched and a.level is level


def inside(a, level, ndim=None):
    """The array inside, with dims of size 1 behind the samples so that it broadcasts as a sample of ``ndim`` dims."""
    if not has(a, level):
        return a
    return a.x if ndim is None else padded(a.x, ndim + 1 - a.x.ndim)


def padded(x, missing):
    """Samples with so many dims of size 1 in front of their own."""
    return x.reshape(x.shape[:1] + (1,) * missing + x.shape[1:]) if missing > 0 else x


def unwrapped_to_broadcast(arrays):
    """(the newest level of some arrays, what is inside of each, as it broadcasts with the others)."""
    level, ndim = newest_level(arrays), max(map(dims, arrays))
    return level, [inside(a, level, ndim) for a in arrays]


def dims(a):
    return 0 if type(a) in scalar_types else a.ndim


def elementwise_on_samples(function, *arrays, **options):
    """A function of arrays that broadcast, done for all samples at once."""
    level, arrays = unwrapped_to_broadcast(arrays)
    return Batched(function(*arrays, **options), level)


# ---- operators


def batched_operator_pair(op):
    def forward(self, other):
        kind, x = type(other), self.x
        if kind in scalar_types:
            return Batched(op(x, other), self.level)
        if kind is Batched and other.level is self.level and x.ndim == other.x.ndim:
            return Batched(op(x, other.x), self.level)
        return elementwise_on_samples(op, self, other) if kind in modules else NotImplemented

    def reflected(self, other):
        kind = type(other)
        return elementwise_on_samples(op, other, self) if kind in modules or kind in scalar_types else NotImplemented

    return forward, reflected


for name in "add sub mul truediv floordiv mod pow lshift rshift and or xor".split():
    op = getattr(operator, f"__{name}__")
    for method, prefix in zip(batched_operator_pair(op), ("", "r")):
        setattr(Batched, f"__{prefix}{name}__", method)
for name in "eq ne lt le gt ge".split():
    setattr(Batched, f"__{name}__", batched_operator_pair(getattr(operator, name))[0])


def in_place_method(name):
    change, compute = getattr(operator, f"__i{name}__"), getattr(operator, f"__{name}__")

    def method(self, other):
        level, x = newest_level((self, other)), self.x
        y = inside(other, self.level, self.ndim)
        if level is self.level and dims(y) <= x.ndim and x.flags.writeable and (0 not in x.strides or 0 in x.shape):
            self.x = change(x, y)
            return self
        if self.base is not None:  # arrays on the rest of the memory would not notice
            self.__array__()
        return compute(self, other)

    return method


for name in "add sub mul truediv and or".split():
    setattr(Batched, f"__i{name}__", in_place_method(name))
for name in "neg pos abs invert".split():
    op = getattr(operator, name)
    setattr(Batched, f"__{name}__", lambda self, op=op: Batched(op(self.x), self.level))


def matmul(a, b, out=None):
    """a @ b; where only one has the batch, its samples become more rows of one product."""
    level = newest_level((a, b))
    row, column = a.ndim == 1, b.ndim == 1
    x, y = inside(a, level), inside(b, level)
    x, y = x[..., None, :] if row else x, y[..., None] if column else y
    m, n = a.ndim + row, b.ndim + column
    if not has(b, level) and n == 2 and (x.shape[-2] == 1 or x.flags.c_contiguous):
        z = (x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) @ y).reshape(*x.shape[:-1], y.shape[-1])
    elif not has(a, level) and m == 2 and y.shape[-1] == 1:
        rows = y.reshape(math.prod(y.shape[:-2]), y.shape[-2])
        z = (rows @ x.swapaxes(0, 1)).reshape(*y.shape[:-2], x.shape[-2], 1)
    else:
        z = padded(x, has(a, level) and n - m) @ padded(y, has(b, level) and m - n)
    if column:
        z = z[..., 0]
    return Batched(z[..., 0] if row and column else z[..., 0, :] if row else z, level)


extend(
    Batched,
    __matmul__=lambda self, other: matmul(self, other) if type(other) in modules else NotImplemented,
    __rmatmul__=lambda self, other: matmul(other, self) if type(other) in modules else NotImplemented,
)

# ---- along axes


def along_axes(name, default):
    """A method along an axis or several, or along all of the sample's for None."""

    def method(self, axis=default, *args, **options):
        axis = tuple(range(1, self.x.ndim)) if axis is None else inner_axis(axis)
        return Batched(getattr(self.x, name)(axis, *args, **options), self.level)

    return method


def arg_reduction(name):
    def method(self, axis=None, keepdims=False):
        if axis is not None:
            return Batched(getattr(self.x, name)(inner_axis(axis), keepdims=keepdims), self.level)
        flat = getattr(self.x.reshape(self.x.shape[0], self.size), name)(1)
        return Batched(flat.reshape(flat.shape + (1,) * self.ndim) if keepdims else flat, self.level)

    return method


for name in "sum prod max min any all mean".split():
    setattr(Batched, name, along_axes(name, None))
for name in ("cumsum", "cumprod", "argsort"):
    setattr(Batched, name, along_axes(name, -1))
for name in ("argmax", "argmin"):
    setattr(Batched, name, arg_reduction(name))

# ---- indexing


def parsed(key, ndim):
    """A key as a list with an entry for each dim (and None for new ones), and whether it looks anything up."""
    arrays, entries, place = False, [], None
    for k in key:
        arrays = arrays or hasattr(k, "dtype") and (getattr(k, "ndim", 0) > 0 or type(k) is Batched)
        if k is Ellipsis:
            place = len(entries)
        elif not hasattr(k, "dtype") or k.dtype.kind != "b":
            entries.append(k)
        elif type(k) is Batched:
            raise RuntimeError(messages.BOOLEAN_MASK)
        else:
            entries += k.nonzero()
    place = len(entries) if place is None else place
    return entries[:place] + [all_of] * (ndim - sum(k is not None for k in entries)) + entries[place:], arrays


def advanced_index(x, entries, level):
    """(array, key, m, p): ``array[key]`` has the samples, m dims that are looked up and then all others, of which p
    come first in the result."""
    looked = [k is not None and type(k) is not slice for k in entries]
    first = looked.index(True)
    together = all(looked[first : first + sum(looked)])
    y = inside(x, level)
    y = y[(all_of,) * has(x, level) + tuple(all_of if there else k for k, there in zip(entries, looked))]
    order = sorted(range(len(looked)), key=lambda d: not looked[d])
    y = y.transpose(*range(has(x, level)), *(d + has(x, level) for d in order))
    indices = [k for k, there in zip(entries, looked) if there]
    m = max(map(dims, indices))
    keys = tuple(inside(k, level, m) for k in indices)
    if has(x, level):
        many = any(has(k, level) for k in indices)
        keys = (function_for("arange", y)(level.size).reshape(-1, *(1,) * m) if many else all_of, *keys)
    return y, keys, m, first if together else 0


def move_dims(x, start, n, to):
    """n dims, from ``start`` on, moved to stand from ``to`` on."""
    if start == to or not n:
        return x
    rest = [d for d in range(x.ndim) if not start <= d < start + n]
    return x.transpose(*rest[:to], *range(start, start + n), *rest[to:])


def getitem(x, key):
    """x[key], where x or an index array of the key is a batch."""
    key = key if type(key) is tuple else (key,)
    level = newest_level((x, *key))
    entries, arrays = parsed(key, x.ndim)
    if not arrays:
        return x.rewrapped(x.x[(all_of, *key)])
    y, keys, m, p = advanced_index(x, entries, level)
    return Batched(move_dims(batches.picked(y, keys), 1, m, p + 1), level)


def setitem(x, key, value):
    """``x[key] = value`` for a Batched x."""
    level, key = x.level, key if type(key) is tuple else (key,)
    if newest_level((x, value, *key)) is not level:
        x.__array__()
    if len(key) == 1 and type(key[0]) is Batched and key[0].dtype.kind == "b" and not dims(value):
        if (shape := key[0].shape) == x.shape[: len(shape)]:
            mask = key[0].reshape((*shape, *(1,) * (x.ndim - len(shape))))
            x.x[...] = by_name("where", mask, value, x).x
            return
    entries, arrays = parsed(key, x.ndim)
    if not arrays:
        target = x.x[(all_of, *key)]
        target[...] = inside(value, level, target.ndim - 1)
        return
    y, keys, m, p = advanced_index(x, entries, level)
    y[keys] = as_looked_up(value, level, x.ndim, entries, m, p)


def as_looked_up(value, level, ndim, entries, m, p):
    """A value for ``array[key]`` of ``lookup``, where the array has ndim dims and the value those of the result."""
    ndim += m - sum(k is not None and type(k) is not slice for k in entries)
    v = inside(value, level, ndim)
    if not dims(value):
        return v
    b = has(value, level)
    v = v if b or v.ndim == ndim else v.reshape((1,) * (ndim - v.ndim) + v.shape)
    return move_dims(v, p + b, m, b)


def add_at(x, key, value):
    """``np.add.at`` for a Batched x."""
    entries, _ = parsed(key if type(key) is tuple else (key,), x.ndim)
    y, keys, m, p = advanced_index(x, entries, x.level)
    function_for("add", y).at(y, keys, as_looked_up(value, x.level, x.ndim, entries, m, p))


extend(Batched, __getitem__=getitem, __setitem__=setitem)

# ---- random numbers


class Named:
    """Functions by their names: they are one function, which is told the name."""

    def __init__(self, function):
        self.function = function

    def __getattr__(self, name):
        return partial(self.function, name)


def draw(functions, name, generator, *arguments):
    """Random numbers, inside of a vmap: other ones for each sample, the same, or an error."""
    return draw_samples(partial(getattr(functions, name), generator), name, arguments, running.levels)


draw_wrappers.append(lambda functions: Named(partial(draw, functions)) if running.levels else functions)


def draw_samples(make, name, arguments, levels):
    """``make(*arguments)`` for each sample of some levels; but for a few, the arguments begin with a shape."""
    if not levels:
        return make(*arguments)
    *older, level = levels
    if level.randomness == "error":
        raise RuntimeError(messages.NO_RANDOMNESS if mode.checking else messages.RANDOMNESS_ERROR)
    if level.randomness == "same":
        if any(has(a, level) for a in arguments):
            raise RuntimeError(messages.SAME_RANDOMNESS)
        return draw_samples(make, name, arguments, older)
    if name == "randperm":
        each = [draw_samples(make, name, arguments, older) for _ in range(level.size)]
        return Batched(function_for("stack", each[0])(each), level)
    if name in ("multinomial", "normal_around"):
        arguments = [spread_out(a, level) if hasattr(a, "dtype") else a for a in arguments]
        if name == "multinomial" and arguments[0].ndim == 3:
            weights, *rest = arguments
            x = draw_samples(make, name, (weights.reshape(-1, weights.shape[-1]), *rest), older)
            return Batched(x.reshape(*weights.shape[:-1], -1), level)
    else:
        shape, *rest = arguments
        arguments = (level.size, *shape), *(inside(a, level, len(shape)) for a in rest)
    return Batched(draw_samples(make, name, arguments, older), level)


# ---- the module that serves batched arrays: NumPy's functions, done by the module of the array inside


def function_for(name, x):
    """The function of that name which serves the array x."""
    return getattr(modules[type(x)], name)


def plain_first(arrays):
    """The module for arrays of which some may be batches: that of the array inside."""
    return next((modules[type(a)] for a in arrays if type(a) not in scalar_types), np)


def spread_out(a, level):
    """The array inside; where there is none, the same for each sample."""
    return a.x if has(a, level) else function_for("broadcast_to", a)(a, (level.size, *a.shape))


def by_name(name, *arrays, out=None, **options):
    """An elementwise function."""
    level, arrays = unwrapped_to_broadcast(arrays)
    out = getattr(plain_first(arrays), name)(*arrays, **options)
    return out if level is None else Batched(out, level)  # None: numbers and arrays that are no batches


def as_it_is(name, x, *args, **options):
    """A function that does not care for a first axis."""
    if type(x) is not Batched:
        return function_for(name, x)(x, *args, **options)
    return Batched(function_for(name, x.x)(x.x, *args, **options), x.level)


def as_method(name, x, *args, **options):
    return getattr(x, name)(*args, **options)


def side_by_side(name, arrays, axis=0):
    level = newest_level(arrays)
    if level is None:
        return function_for(name, arrays[0])(arrays, axis)
    arrays = [spread_out(a, level) for a in arrays]
    return Batched(function_for(name, arrays[0])(arrays, inner_axis(axis)), level)


def along_last(name, x, *args):
    """A function whose last argument is an axis, or several."""
    *args, axis = args
    return x.rewrapped(function_for(name, x.x)(x.x, *args, inner_axis(axis)))


def broadcast_to(x, shape):
    if type(x) is not Batched:
        return function_for("broadcast_to", x)(x, shape)
    y = inside(x, x.level, len(shape))
    return x.rewrapped(function_for("broadcast_to", y)(y, (y.shape[0], *shape)))


def tile(x, repeats):
    ndim = max(x.ndim, len(repeats))
    y = inside(x, x.level, ndim)
    return Batched(function_for("tile", y)(y, (1,) * (1 + ndim - len(repeats)) + tuple(repeats)), x.level)


def roll(x, shift, axis=None):
    if axis is None:
        return roll(x.reshape(-1), shift, 0).reshape(x.shape)
    return along_last("roll", x, shift, axis)


def take_along_axis(x, indices, axis):
    level = newest_level((x, indices))
    x, indices = spread_out(x, level), spread_out(indices, level)
    return Batched(function_for("take_along_axis", x)(x, indices, inner_axis(axis)), level)


def put_along_axis(x, indices, values, axis):
    indices, values = spread_out(indices, x.level), inside(values, x.level, x.ndim)
    function_for("put_along_axis", x.x)(x.x, indices, values, inner_axis(axis))


def ascontiguousarray(x):
    return x if x.flags.c_contiguous else x.copy()


def strided_samples(x, shape, strides, start=0):
    """``memory.strided``: each sample in another shape, with strides."""
    step = memory.element_strides(x.x)[0]
    return x.rewrapped(strided(x.x, (x.x.shape[0], *shape), (step, *strides), start))


def blank(shape, arrays):
    """Zeros to write arrays into, of the dtype of the first."""
    level = newest_level(arrays)
    return Batched(batches.blank((level.size, *shape), *(inside(a, level) for a in arrays)), level)


def samples(x):
    return batches.samples(x.x)


def depth(x):
    """Return which of the running levels an array belongs to, counted from 1; 0 for none."""
    return running.levels.index(x.level) + 1 if x.level in running.levels else 0


def linear_algebra(name, *arrays, **options):
    """numpy.linalg, whose functions take stacks of matrices as they are."""
    level, arrays = unwrapped_to_broadcast(arrays)
    out = getattr(plain_first(arrays).linalg, name)(*arrays, **options)
    return tuple(Batched(o, level) for o in out) if isinstance(out, tuple) else Batched(out, level)


def special_function(name, *first_and_x):
    """scipy.special, whose functions have the array as the last argument."""
    *first, x = first_and_x
    xp = modules[type(x.x)]
    functions = importlib.import_module("scipy.special") if xp is np else xp.special
    return Batched(getattr(functions, name)(*first, x.x), x.level)


ELEMENTWISE_FUNCTIONS = ("where", "clip", "round", "nan_to_num")  # as all of NumPy's ufuncs are
ANY_FIRST_AXIS = ("tril", "triu", "zeros_like", "ones_like", "empty_like", "full_like")
ALONG_LAST = ("expand_dims", "flip", "rot90")
DYNAMIC_SHAPE_NAMES = {"argwhere": "nonzero", "nonzero": "nonzero", "unique": "_unique2", "bincount": "bincount",
                       "repeat": "repeat_interleave"}  # fmt: skip


class BatchedNumPy:
    """NumPy for batched arrays.  What makes an array from numbers makes one that is no batch, by the module ``xp``."""

    def __init__(self, xp):
        self.xp = xp

    def asarray(self, x, dtype=None):
        return x if type(x) is Batched else self.xp.asarray(x, dtype)

    def __getattr__(self, name):
        vars(self)[name] = found = taught.get(name) or lifted(name) or getattr(self.xp, name)
        return found


def lifted(name):
    """The function of NumPy with that name, for batched arrays; None if it takes none."""
    found = getattr(np, name)
    if isinstance(found, np.ufunc) or name in ELEMENTWISE_FUNCTIONS:
        return partial(by_name, name)
    if name in ANY_FIRST_AXIS:
        return partial(as_it_is, name)
    if name in DYNAMIC_SHAPE_NAMES:
        return refuse(messages.DYNAMIC_SHAPE.format(DYNAMIC_SHAPE_NAMES[name]))
    if name in ALONG_LAST:
        return partial(along_last, name)
    if hasattr(Batched, name):
        return partial(as_method, name)
    if hasattr(found, "_implementation"):  # a function of arrays that knows nothing of batches
        return refuse(messages.NOT_FOR_BATCHES.format(name), NotImplementedError)
    return None  # zeros, arange, eye, ...


serving = cache(BatchedNumPy)  # the module that serves batches of the arrays of another module


def beside(x):
    """The module that serves a Batched and makes arrays where its samples are."""
    while type(x) is Batched:
        x = x.x
    return serving(modules[type(x)])


taught: dict = {f.__name__: f for f in (
    matmul, broadcast_to, tile, roll, take_along_axis, put_along_axis, ascontiguousarray, getitem, blank, samples,
    depth, beside)}  # fmt: skip
taught.update(
    linalg=Named(linear_algebra),
    special=Named(special_function),
    stack=partial(side_by_side, "stack"),
    concatenate=partial(side_by_side, "concatenate"),
    array=partial(as_method, "copy"),
    add=partial(by_name, "add"),
    is_number=lambda x: False,
    moved=lambda x, *how: Batched(devices.moved(x.x, *how), x.level),
    strided=strided_samples,
)
taught["add"].at = add_at
batched_numpy = modules[Batched] = dispatch.batches[Batched] = serving(np)
