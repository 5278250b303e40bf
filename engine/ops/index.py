"""Indexing: ``x[...]`` and ``x[...] = v`` in every form, gathering and scattering, masks, sorting.

``x[...]`` is a sequence of views (select, slice, unsqueeze), each with its node, and then one lookup for what remains:
index tensors, lists and masks.
"""

from math import prod

import numpy as np

from ..arrays import dtypes
from ..arrays.batches import blank, copied, known, not_batched, picked
from ..arrays.devices import check_one_device, moved
from ..arrays.dispatch import scalar_types, xp_of
from ..arrays.dtypes import dtype_word
from ..arrays.kernels import indexing
from ..arrays.kernels.indexing import dim_key, gathered, key_along, order_along, placed
from ..arrays.kernels.sums import running_extreme
from ..arrays.kernels.views import contiguous_array
from ..arrays.quiet import be_quiet
from ..arrays.selection import either
from ..arrays.shapes import common_shape
from ..arrays.warn import warn
from ..core.graph import node_class
from ..core.linear import cast, clone, contiguous, reshape, sum_to
from ..core.record import array_of, record
from ..core.tensor import Tensor
from . import return_types
from .checks import checked_dim, integer, shown_kind, unfit
from .creation import zeros_like
from .elementwise import choose, ne, scaled, sub
from .elementwise import no_derivative as underived
from .reduce import as_input
from .rows import operand, pick, place, register, to_array
from .shape import alias, cat, expand, expand_to, meshgrid, resized, select_at, slice_at, stack, unsqueeze_at, view_of
from .transfers import number_for
from .writes import copy_, fill_, fits, modify, number_in, zeros_for

# ---- derivatives: what was picked out goes back into zeros, and what was overwritten gets none


def clear(g, key):
    """g with zeros at ``key``: its own transpose."""
    return record(Clear, indexing.cleared(array_of(g), key), (g,), (key,))


def add_places(g, dim, shape, index):
    """Zeros of a shape, with g added at the places of a dim: the transpose of ``index_select``."""
    return place(g, shape, dim_key(dim, array_of(index))) if shape else g


def unfilled(g, dim, index):
    """g with zeros at the places of a dim."""
    return clear(g, dim_key(dim, array_of(index))) if array_of(g).ndim else zeros_for(g)


def scatter_zeros(g, dim, shape, index):
    """Zeros of a shape, with g added at ``index`` along a dim: the transpose of ``gather``."""
    i = array_of(index)
    x = array_of(g).reshape(i.shape or (1,))
    out = placed(x, shape or (1,), key_along(i.reshape(x.shape), dim)) if i.size else blank(shape, x, i)
    return record(ScatterAdd, out.reshape(shape), (None, g), (dim, i.shape, i))


def not_scattered(g, dim, index):
    """g with zeros at ``index`` along a dim."""
    i = array_of(index)
    if not i.size:
        return g
    shape = array_of(g).shape
    return reshape(clear(reshape(g, shape or (1,)), key_along(i.reshape(i.shape or (1,)), dim)), shape)


def in_corner(g, shape):
    """Zeros of a shape with g in its first corner."""
    return g if array_of(g).shape == shape else place(g, shape, tuple(slice(n) for n in array_of(g).shape))


def corner_at(g, dim, shape, index):
    """Gather along a dim by ``index`` into the first corner of zeros of a shape."""
    return in_corner(gather(g, dim, index), shape)


def unmasked(g, mask):
    """g with zeros where a mask holds."""
    m = array_of(mask)
    return clear(g, (m,)) if m.shape == array_of(g).shape else clear(g, (xp_of(m).broadcast_to(m, array_of(g).shape),))


def masked_total(g, mask, dtype):
    """The sum of g where a mask holds, in a dtype."""
    m = array_of(mask)
    return cast(sum_to(choose(xp_of(m).broadcast_to(m, array_of(g).shape), g, 0.0), ()), dtype)


def where_part(g, kind):
    """The cotangent of what was broadcast and cast from a shape and dtype; None for that of a number."""
    return None if kind is None else cast(sum_to(g, kind[0]), kind[1])


Index = node_class("IndexBackward0", lambda g, shape, dims, *indices: place(g, shape, key_at(dims, indices)))
Clear = node_class("IndexPutBackward0", clear)
IndexPut = node_class("IndexPutBackward0",
                      lambda g, dims, accumulate, _shape, _dtype, *indices: g if accumulate
                      else clear(g, key_at(dims, indices)),
                      lambda g, dims, _accumulate, shape, dtype, *indices:
                      cast(sum_to(pick(g, key_at(dims, indices)), shape), dtype))  # fmt: skip
IndexSelect = node_class("IndexSelectBackward0", add_places)
IndexAdd = node_class("IndexAddBackward0", lambda g, _dim, _alpha, _index: g,
                      lambda g, dim, alpha, index: scaled(index_select(g, dim, index), alpha))  # fmt: skip
IndexCopy = node_class("IndexCopyBackward0", unfilled, lambda g, dim, index: index_select(g, dim, index))
IndexFill = node_class("IndexFillBackward0", unfilled)
IndexFillTensor = node_class("IndexFillBackward1", lambda g, dim, _dtype, index: unfilled(g, dim, index),
                             lambda g, dim, dtype, index: cast(sum_to(index_select(g, dim, xp_of(
                                 array_of(index)).unique(array_of(index))), ()), dtype))  # fmt: skip
Gather, Sort, SortStable, TopK, CumMax, CumMin = (
    node_class(name, scatter_zeros) for name in ("GatherBackward0", "SortBackward0", "SortBackward1", "TopkBackward0",
                                                 "CummaxBackward0", "CumminBackward0"))  # fmt: skip
Kth = node_class("KthvalueBackward0", lambda g, dim, shape, index: scatter_zeros(
    reshape(g, array_of(index).shape), dim, shape, index))  # fmt: skip
Scatter = node_class("ScatterBackward0", lambda g, dim, _shape, index: not_scattered(g, dim, index), corner_at)
ScatterValue = node_class("ScatterBackward1", not_scattered)
ScatterReduce = node_class("NotImplemented", lambda g: underived("scatter"), lambda g: underived("scatter"))
ScatterReduceNumber = node_class("NotImplemented", lambda g: underived("scatter"))
ScatterAdd = node_class("ScatterAddBackward0", lambda g, _dim, _shape, _index: g, corner_at)
Take = node_class("TakeBackward0", lambda g, shape, index: reshape(
    place(reshape(g, (-1,)), (prod(shape),), (array_of(index).reshape(-1),)), shape))  # fmt: skip
MaskedFill = node_class("MaskedFillBackward0", lambda g, shape, mask: sum_to(unmasked(g, mask), shape))
MaskedFillTensor = node_class("MaskedFillBackward1", lambda g, shape, _dtype, mask: sum_to(unmasked(g, mask), shape),
                              lambda g, _shape, dtype, mask: masked_total(g, mask, dtype))  # fmt: skip
MaskedSelect = node_class("MaskedSelectBackward0", lambda g, shape, common, mask: sum_to(
    place(g, common, (xp_of(array_of(mask)).broadcast_to(array_of(mask), common),)), shape))  # fmt: skip
MaskedScatter = node_class("MaskedScatterBackward0", lambda g, shape, _source, mask: sum_to(unmasked(g, mask), shape),
                           lambda g, _shape, source, mask: reshape(
                               in_corner(pick(g, (array_of(mask),)), (prod(source),)), source))  # fmt: skip
Where = node_class("WhereBackward0", lambda g, kind, _other, mask: where_part(unmasked(g, ~array_of(mask)), kind),
                   lambda g, _kind, other, mask: where_part(unmasked(g, mask), other))  # fmt: skip

# ---- x[...]


def getitem(input, key):
    """``x[key]``: a view for ints, slices, None and ...; a copy where there are index tensors, lists or masks."""
    if type(key) is int:
        return select_at(input, 0, place_of(key, input.array.shape, 0, 0))
    if type(key) is slice and input.array.ndim:
        return sliced(input, 0, key, False)
    result, looked_up = views(input, key)
    if looked_up:
        return read_at_indices(result, looked_up)
    return alias(input) if result is input else result


def place_of(i, shape, dim, position):
    """Index ``i`` counted from the front; ``position``: which of the indices it is."""
    if not shape and i == 0:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    n = shape[dim] if shape else 0
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension {position} with size {n}")
    return i + n if i < 0 else i


def views(input, key):
    """The views that ``key`` asks for, taken one after the other, and {dim: array} for its index tensors and masks."""
    items, used = [], 0
    for k in key if type(key) is tuple or (type(key) is list and stands_for_tuple(key)) else (key,):
        kind = type(k)
        if kind is int or kind is slice:
            used += 1
        elif k is not None and k is not Ellipsis and kind is not bool:
            k = one_index(k)
            used += 1 if type(k) is int else 0 if type(k) is bool else k.ndim if k.dtype.kind == "b" else 1
        items.append(k)
    ndim = input.array.ndim
    if used > ndim:
        if ndim == 0 and len(items) == 1 and isinstance(items[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    result, dim, looked_up = input, 0, {}
    for position, item in enumerate(items):
        if type(item) is int:
            result = select_at(result, dim, place_of(item, result.array.shape, dim, position))
        elif isinstance(item, slice):
            result = sliced(result, dim, item, len(items) > 1 or type(key) is tuple)
            dim += 1
        elif item is Ellipsis:
            dim += ndim - used
        elif item is None:
            result = unsqueeze_at(result, dim)
            dim += 1
        elif item is True or item is False:
            result = unsqueeze_at(result, dim)
            looked_up[dim] = xp_of(input.array).zeros(int(item), np.int64)
            dim += 1
        else:
            looked_up[dim] = indexing.index_beside(input.array, item)
            dim += item.ndim if item.dtype.kind == "b" else 1
    return result, looked_up


def stands_for_tuple(key):
    """Tell whether PyTorch reads a list as a tuple: a short one with a sequence, slice, tensor, None or ... in it."""
    deep = len(key) < 32 and any(isinstance(k, (slice, list, tuple, Tensor, range, type(None), type(...))) for k in key)
    if deep:
        warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
            "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
            "x[torch.tensor(seq)], which will result either in an error or a different result",
        )
    return deep


def one_index(k):
    """One index that is no slice, None or ..., as an int, a bool, or an array of integers or bools."""
    if isinstance(k, Tensor):
        k = k.array
    elif isinstance(k, np.integer):
        return int(k)
    elif isinstance(k, (list, tuple, range)):
        k = from_sequence(k)
    if not hasattr(k, "dtype"):
        if isinstance(k, str):
            raise TypeError("new(): invalid data type 'str'")
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(k).__name__})"
        )
    k = as_mask(k)
    if k.ndim == 0 and k.dtype.kind in "iub" and (n := known(k)) is not None:
        return n
    if k.dtype.kind != "b" and k.dtype not in (np.int64, np.int32):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return k


def as_mask(k):
    """An index array; one of uint8 is a mask."""
    if k.dtype != np.uint8:
        return k
    warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
    return k != 0


def from_sequence(k):
    """The index array of a list."""
    if not len(k):
        return np.zeros(0, np.int64)
    nested = [array_of(one_index(i)) if isinstance(i, (list, tuple, Tensor)) else i for i in k]
    if any(isinstance(i, str) for i in nested):
        raise TypeError("new(): invalid data type 'str'")
    return np.asarray(nested)


def sliced(input, dim, s, skip):
    """A slice of one dim; ``skip``: the whole of it is the input itself."""
    n = input.array.shape[dim]
    start, stop, step = s.indices(n)
    if step < 0:
        raise ValueError("step must be greater than zero")
    if skip and start == 0 and stop == n and step == 1 and s.start in (None, 0):
        return input
    return slice_at(input, dim, slice(start, max(start, stop), step))


def key_at(dims, indices):
    """The NumPy key with arrays at certain dims."""
    key, have = (), 0
    for d, i in zip(dims, map(array_of, indices)):
        key += (slice(None),) * (d - have) + (i,)
        have = d + (i.ndim if i.dtype.kind == "b" else 1)
    return key


def read_at_indices(input, looked_up):
    """The elements at index arrays, in C order.  IndexError in PyTorch's words where they do not fit."""
    dims, indices, x = tuple(looked_up), tuple(looked_up.values()), input.array
    try:
        out = picked(x, key_at(dims, indices))
    except IndexError:
        explain(x, dims, indices)
        raise
    out = out if dims[0] == 0 or out.flags.c_contiguous else out.copy()
    return record(Index, out, (input,), (x.shape, dims, *indices))


def explain(x, dims, indices):
    """Raise PyTorch's error for index arrays that do not fit."""
    found = []
    for d, i in zip(dims, indices):
        if i.dtype.kind == "b":
            for e, n in enumerate(i.shape):
                if n != x.shape[d + e]:
                    raise IndexError(
                        f"The shape of the mask {list(i.shape)} at index {e} does not match the shape of the indexed "
                        f"tensor {list(x.shape)} at index {d + e}"
                    )
            found += [(d + e, places) for e, places in enumerate(i.nonzero())]
        else:
            found.append((d, i))
    try:
        np.broadcast_shapes(*(i.shape for _, i in found))
    except ValueError:
        shapes = ", ".join(str(list(i.shape)) for _, i in found)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    for position, (d, i) in enumerate(found):
        n = x.shape[d]
        wrong = i[(i < -n) | (i >= n)]
        if wrong.size:
            if n == 0:
                raise IndexError("index is out of bounds for dimension with size 0")
            raise IndexError(f"index {wrong[0].item()} is out of bounds for dimension {position} with size {n}")


# ---- x[...] = v


def setitem(self, key, value):
    """``x[key] = value``: written into the memory of x, in the graph."""
    if not isinstance(value, Tensor) and not isinstance(value, (int, float, bool, np.generic)):
        raise TypeError(f"can't assign a {shown_kind(type(value))} to a {Tensor.typename(self.array)}")
    if key is False:
        return
    if type(key) is int:
        assign(getitem(self, key), value)
    elif key is True:
        assign(unsqueeze_at(self, 0), value)
    else:
        target, looked_up = views(self, (key,) if isinstance(key, slice) else key)
        if looked_up:
            put(target, looked_up, without_leading_ones(value))
        else:
            assign(target, value)


def assign(target, value):
    """``target[...] = value`` as PyTorch does it: expanded, then copied; a number fills."""
    if not isinstance(value, Tensor):
        (fill_ if target.array.ndim else copy_)(target, Tensor(entry(value, target.array.dtype)))
    elif value.array.shape == target.array.shape:
        copy_(target, value)
    elif not value.array.ndim:
        fill_(target, value)
    else:
        value = without_leading_ones(value, always=True)
        copy_(target, value if value.array.shape == target.array.shape else expand(value, target.array.shape))


def entry(value, dtype):
    """A number that is assigned, in a dtype; what no dtype of integers holds is another error here.

    What is too large for half precision is infinite, as it is in a list that becomes a tensor.
    """
    try:
        if dtype in dtypes.accumulate_wider:
            be_quiet()
            return fits(value, dtypes.float64.np).astype(dtype)
        return fits(value, dtype)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None


def without_leading_ones(value, always=False):
    """A value without its leading dims of size 1, which have no counterpart in what it is written to."""
    shape = value.array.shape if isinstance(value, Tensor) else ()
    lead = next((d for d, n in enumerate(shape) if n != 1), len(shape))
    return view_of(value, shape[lead:]) if lead or always else value


def put(self, looked_up, value, accumulate=False):
    """Write values at index arrays."""
    dims, indices = tuple(looked_up), tuple(looked_up.values())
    x = self.shared()
    if not isinstance(value, Tensor):
        value = Tensor(entry(value, x.dtype))
    value = number_for(x, value)
    v = value.array
    fills = len(indices) == 1 and indices[0].dtype.kind == "b" and v.size == 1  # PyTorch takes that for masked_fill_
    if v.dtype != x.dtype and not fills:
        kinds = f"got {dtype_word(x)} for the destination and {dtype_word(v)} for the source."
        raise RuntimeError(f"Index put requires the source and destination dtypes match, {kinds}")
    change = lambda x: put_array(x, dims, indices, v, accumulate)  # noqa: E731
    apart = () if fills else (value, *indices)
    modify(self, change, IndexPut, (self, value), (dims, accumulate, v.shape, v.dtype, *indices), apart, True)


def put_array(x, dims, indices, v, accumulate):
    key = key_at(dims, indices)
    try:
        if accumulate:
            xp_of(x).add.at(x, key, v)
        else:
            x[key] = v
    except (IndexError, ValueError):
        explain(x, dims, indices)
        want = x[key].shape
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(v.shape)} cannot be broadcast to indexing result of shape "
            f"{list(want)}"
        ) from None


def index_put(input, indices, values, accumulate=False):
    """A copy with ``values`` written (or, with ``accumulate``, added) at a tuple of index tensors."""
    looked_up = looked_up_at(indices)
    dims, at, v = tuple(looked_up), tuple(looked_up.values()), values.array
    out = copied(array_of(input), v, *at)
    put_array(out, dims, at, v, accumulate)
    return record(IndexPut, out, (input, values), (dims, accumulate, v.shape, v.dtype, *at))


def index_put_(self, indices, values, accumulate=False):
    put(self, looked_up_at(indices), values, accumulate)
    return self


def looked_up_at(indices):
    """{dim: array} of index tensors, of which None stands for a whole dim."""
    looked_up, dim = {}, 0
    for i in indices:
        if i is not None:
            looked_up[dim] = i = as_mask(array_of(i))
        dim += i.ndim if i is not None and i.dtype.kind == "b" else 1
    return looked_up


# ---- along one dim


def index_select(input, dim, index):
    """The places of a dim that an index vector names."""
    x = array_of(input)
    d, i = dim % (x.ndim or 1), array_of(index).reshape(-1)
    return record(IndexSelect, indexing.taken(x, i, d) if x.ndim else x.copy(), (input,), (d, x.shape, i))


def index_add(input, dim, index, source, *, alpha=1):
    """A copy to which ``alpha * source`` was added at the places of a dim that an index vector names."""
    x, s, i = array_of(input), array_of(source), array_of(index).reshape(-1)
    d = dim % (x.ndim or 1)
    s = s if alpha == 1 else s * fits(alpha, x.dtype)
    added = placed(s, x.shape, dim_key(d, i)) if x.ndim else s
    return record(IndexAdd, x + added, (input, source), (d, alpha, i))


def index_copy(input, dim, index, source):
    """A copy with ``source`` written at the places of a dim that an index vector names."""
    x, s, i = array_of(input), array_of(source), array_of(index).reshape(-1)
    d = dim % (x.ndim or 1)
    out = copied(x, i, s) if x.ndim else s.copy()
    if x.ndim:
        out[dim_key(d, i)] = s
    return record(IndexCopy, out, (input, source), (d, i))


def number_or_scalar(value, dtype):
    """Return the value to fill with, and whether it is a 0-d tensor; a number becomes an array of the dtype."""
    if not isinstance(value, Tensor):
        return fits(value, dtype), False
    if dtype.kind in "iu" and (n := known(value.array)) is not None:
        fits(n, dtype)
    return value, True


def index_fill(input, dim, index, value):
    """A copy with a number at the places of a dim that an index vector names; here they may count from the back."""
    x = array_of(input)
    v, is_tensor = number_or_scalar(value, x.dtype)
    i, d = array_of(index).reshape(-1), dim % (x.ndim or 1)
    out = copied(x.reshape(x.shape or (1,)), i, array_of(v))
    out[dim_key(d, i)] = array_of(v)
    out = out.reshape(x.shape)
    if is_tensor:
        return record(IndexFillTensor, out, (input, v), (d, v.array.dtype, i))
    return record(IndexFill, out, (input,), (d, i))


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (or each place of a dim) so many times in a row; ``repeats`` is a number, or one for each place."""
    if repeats is None:
        return Tensor(counted(input))
    if dim is None:
        input, dim = reshape(contiguous(input), (-1,)) if input.ndim != 1 else input, 0
    shape = input.array.shape
    d = checked_dim(dim, len(shape))
    if not isinstance(repeats, Tensor):
        times = integer(repeats, "repeat_interleave", "repeats", 1)
        if times < 0:
            raise RuntimeError("Repeats must be non-negative")
        wide = expand_to(unsqueeze_at(input, d + 1), (*shape[: d + 1], times, *shape[d + 1 :]))
        return view_of(contiguous(clone(wide)), resized(shape, d, shape[d] * times))
    return index_select(input, d, Tensor(counted(expand(reshape(repeats, (-1,)), (shape[d],)))))


def counted(repeats):
    """Each place so many times as ``repeats`` has there."""
    x = repeats.array
    return xp_of(x).repeat(xp_of(x).arange(x.size), x)


# ---- element by element along one dim


def gather(input, dim, index, *, sparse_grad=False):
    """The element at ``index`` along a dim, for each place of the index tensor."""
    x, i = array_of(input), array_of(index)
    d = dim % (x.ndim or 1)
    return record(Gather, gathered(x, d, i), (input,), (d, x.shape, i))


def scatter(input, dim, index, src=None, value=None, *, reduce=None):
    """A copy with ``src``, or a number, written at ``index`` along a dim; for a repeated index the last one stays."""
    x, i = array_of(input), array_of(index)
    d = dim % (x.ndim or 1)
    source = value if src is None else src
    if not isinstance(source, Tensor) and not hasattr(source, "dtype"):
        out = indexing.scattered(x, d, i, fits(source, x.dtype), reduce)
        if reduce is not None:
            return record(ScatterReduceNumber, out, (input,))
        return record(ScatterValue, out, (input,), (d, i))
    s = array_of(source)
    out = indexing.scattered(x, d, i, indexing.corner(s, i.shape), reduce)
    if reduce is not None:
        return record(ScatterReduce, out, (input, source))
    return record(Scatter, out, (input, source), (d, s.shape, i))


def scatter_add(input, dim, index, src):
    """A copy to which ``src`` was added at ``index`` along a dim."""
    x, s, i = array_of(input), array_of(src), array_of(index)
    d = dim % (x.ndim or 1)
    out = x + scatter_zeros(indexing.corner(s, i.shape), d, x.shape, i)
    return record(ScatterAdd, out, (input, src), (d, s.shape, i))


def take_along_dim(input, indices, dim=None):
    """``gather`` with indices that broadcast against the input; with no dim, from the flattened input."""
    if dim is None:
        return gather(view_of(input, (-1,)), 0, reshape(indices, (-1,)))
    d, shape, at = dim % (input.array.ndim or 1), input.array.shape, indices.array.shape
    n, indices = shape[d], array_of(indices)
    indices = Tensor(indices + n * (indices < 0))
    common = common_shape(resized(shape, d, 1), resized(at, d, 1))
    return gather(expand_to(input, resized(common, d, shape[d])), d, expand_to(indices, resized(common, d, at[d])))


def take(input, index):
    """The elements at these places of the flattened input."""
    x, i = array_of(input), array_of(index)
    return record(Take, picked(x.reshape(-1), (i,)), (input,), (x.shape, i))


# ---- masks


def masked_fill(input, mask, value):
    """A copy with a number where a mask holds; input and mask broadcast."""
    x, m = array_of(input), array_of(mask)
    v, is_tensor = number_or_scalar(number_for(x, value), x.dtype)
    common_shape(m.shape, x.shape)
    if is_tensor:
        out = either.call(m, array_of(v).astype(x.dtype), x)
        return record(MaskedFillTensor, out, (input, v), (x.shape, v.array.dtype, m))
    return record(MaskedFill, either.call(m, v, x), (input,), (x.shape, m))


def masked_select(input, mask):
    """The elements where a mask holds, as a vector; input and mask broadcast."""
    x, m = array_of(input), array_of(mask)
    not_batched(
        "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for "
        "each batch this would return a differently shaped Tensor. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature.",
        m,
    )
    common = common_shape(m.shape, x.shape)
    wide = xp_of(x).broadcast_to(m, common)
    out = xp_of(x).broadcast_to(x, common)[wide]
    return record(MaskedSelect, out, (input,), (x.shape, common, m))


def masked_scatter(input, mask, source):
    """A copy with the elements of ``source``, one after the other, where a mask holds."""
    x, s, m = array_of(input), array_of(source), array_of(mask)
    common = common_shape(m.shape, x.shape)
    wide = xp_of(x).broadcast_to(m, common)
    words = "vmap: masked_scatter takes one mask for all samples: use where() for one of each"
    not_batched(words, m, error=NotImplementedError)
    out = copied(xp_of(x).broadcast_to(x, common), s)
    n = int(wide.sum())
    if s.size < n:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    out[wide] = s.reshape(-1)[:n]
    return record(MaskedScatter, out, (input, source), (x.shape, s.shape, wide))


def where(condition, input=None, other=None):
    """``input`` where a condition holds, else ``other``, broadcast and promoted; alone: the places where it holds."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise unfit("where", *(a for a in (condition, input, other) if a is not None))
    input, other = (a.item() if isinstance(a, np.generic) else a for a in (input, other))
    input, other = number_for(condition.array, input), number_for(condition.array, other)
    m, x, y = condition.array, array_of(input), array_of(other)
    if m.dtype != np.bool_:
        if m.dtype != np.uint8:
            raise RuntimeError(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype {dtype_word(m)}"
            )
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead."
        )
        m = m != 0
    check_one_device((m, x, y))
    dtype = dtypes.result_type(operand(x), operand(y)).np
    a, b = (number_in(v, dtype) if type(v) in scalar_types else v.astype(dtype, copy=False) for v in (x, y))
    common_shape(common_shape(m.shape, a.shape), b.shape)
    kinds = [None if type(v) in scalar_types else (v.shape, v.dtype) for v in (x, y)]
    out = record(Where, either.call(m, a, b), (input, other), (*kinds, m))
    return out if isinstance(out, Tensor) else Tensor(out)


def where_method(self, condition, other):
    """``self`` where a condition holds, else ``other``."""
    return where(condition, self, other)


def nonzero(input, *, as_tuple=False):
    """The places of the elements that are not zero: a row each, or with ``as_tuple`` one index tensor for each dim."""
    x = input.array
    if as_tuple:
        return tuple(Tensor(contiguous_array(i)) for i in x.reshape(x.shape or (1,)).nonzero())
    return Tensor(xp_of(x).argwhere(x))


# ---- order


def sort(input, dim=-1, descending=False, stable=False):
    """(values, indices) in order along a dim; equal elements stay as they were, nan counts as the largest."""
    x = array_of(input)
    d = checked_dim(dim, x.ndim)
    i = order_along(x, d, descending)
    values = record(SortStable if stable else Sort, gathered(x, d, i), (input,), (d, x.shape, i))
    return return_types.sort(values, Tensor(i))


def argsort(input, dim=-1, descending=False, *, stable=False):
    """The indices that sort a tensor along a dim."""
    return Tensor(order_along(input.array, checked_dim(dim, input.ndim), descending))


def msort(input):
    return sort(input, 0).values


def topk(input, k, dim=-1, largest=True, sorted=True):
    """(values, indices) of the k largest, or smallest, elements along a dim, in order."""
    x = array_of(input)
    d = dim % (x.ndim or 1)
    i = order_along(x, d, largest)
    i = i[dim_key(d, slice(k))].copy() if x.ndim else i
    return return_types.topk(record(TopK, gathered(x, d, i), (input,), (d, x.shape, i)), Tensor(i))


def kthvalue(input, k, dim=-1, keepdim=False):
    """(values, indices) of the k-th smallest element along a dim."""
    x, d = array_of(input), dim % (input.array.ndim or 1)
    i = order_along(x, d, False)
    i = i[dim_key(d, slice(k - 1, k))].copy() if x.ndim else i
    shape = x.shape[:d] + (1,) * keepdim + x.shape[d + 1 :] if x.ndim else ()
    values = record(Kth, gathered(x, d, i).reshape(shape), (input,), (d, x.shape, i))
    return return_types.kthvalue(values, Tensor(i.reshape(shape)))


def running(name, extreme, Backward):
    """``cummax`` or ``cummin``."""

    def op(input, dim):
        x = array_of(input)
        if not x.ndim and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        d = checked_dim(dim, x.ndim)
        if x.ndim:
            out, i = map(contiguous_array, running_extreme(x, extreme, d))
        else:
            out, i = x.copy(), xp_of(x).zeros((), np.int64)
        return getattr(return_types, name)(record(Backward, out, (input,), (d, x.shape, i)), as_input(i, input))

    op.__doc__ = f"(the {extreme} of the first 1, 2, ... elements along ``dim``, the last places where these are)"
    return register(name, "reduction", op)


cummax, cummin = running("cummax", "maximum", CumMax), running("cummin", "minimum", CumMin)


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The differences of neighbours along ``dim``, ``n`` times; what is prepended and appended is joined before."""
    d = checked_dim(dim, input.ndim)
    if n and not (prepend is append is None):
        input = cat([v for v in (prepend, input, append) if v is not None], d)
    for _ in range(min(n, input.array.shape[d])):
        ends = [slice_at(input, d, slice(i, input.array.shape[d] - 1 + i, 1)) for i in (1, 0)]
        input = (ne if input.dtype is dtypes.bool_ else sub)(*ends)
    return input if n else copy_(zeros_like(input), input)


def combinations(input, r=2, with_replacement=False):
    """All combinations of ``r`` elements of a vector, in order, as rows."""
    if r == 0:
        return Tensor(blank((0,), input.array))
    places = np.indices((input.array.size,) * r)
    rising = places[:-1] <= places[1:] if with_replacement else places[:-1] < places[1:]
    mask = Tensor(moved(rising.all(0), input.device))
    return stack([masked_select(grid, mask) for grid in meshgrid(*(input,) * r, indexing="ij")], 1)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Element by element, whether it is one of ``test_elements``; one of the two may be a number."""
    have = array_of(elements if isinstance(elements, Tensor) else test_elements)
    floats = dtypes.of[have.dtype].is_floating_point  # beside which a number is compared in their dtype
    x, y = (
        to_array(v, have.dtype) if floats and not isinstance(v, Tensor) else array_of(v)
        for v in (elements, test_elements)
    )
    return Tensor(xp_of(have).asarray(xp_of(have).isin(x, y, invert=invert)))


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements (or the different places of a dim) in order; their places in the result; how often each
    comes."""
    x = input.array
    if dim is not None:
        dim = checked_dim(dim, x.ndim)
    out, inverse, counts = xp_of(x).unique(x, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    found = [record(Unique2 if dim is None else UniqueDim, out, (input,))]
    if return_inverse:
        found.append(Tensor(inverse.reshape(x.shape if dim is None else -1)))
    if return_counts:
        found.append(Tensor(counts))
    return found[0] if len(found) == 1 else tuple(found)


def not_derived(name):
    def rule(g):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return rule


Unique2 = node_class("Unique2Backward0", not_derived("_unique2"))
UniqueDim = node_class("UniqueDimBackward0", not_derived("unique_dim"))

for function in (gather, scatter_add):
    register(function.__name__, "call", function)
