"""Shapes: views of the same memory under other sizes and strides, and the operations that only move elements.

The tables hold the operations as the rules use them, on dims counted from the front; the functions below them read
PyTorch's arguments.  Which result shares memory is what PyTorch does: see ``record.view``.
"""

from functools import cache, partial
from itertools import accumulate
from math import prod

from ..arrays import dtypes
from ..arrays.batches import not_batched
from ..arrays.devices import check_one_device
from ..arrays.dispatch import xp_of
from ..arrays.dtypes import dtype_word
from ..arrays.kernels import views
from ..arrays.kernels.views import at, contiguous_array, offset_in_storage
from ..arrays.memory import address, element_strides, expanded, pointer, storage, strided, writable
from ..arrays.shapes import common_shape, reshape_array
from ..arrays.size import Size, cannot_expand
from ..arrays.warn import warn
from ..core import linear as structure
from ..core.graph import AccumulateGrad, Output, mode, node_class
from ..core.linear import cast, clone, contiguous, sum_axes, sum_to  # noqa: F401  clone: offered here
from ..core.record import array_of, record, record_outputs
from ..core.tensor import Tensor, alive, track_view, unreachable
from ..core.versions import wrote
from ..core.views import check_writable, rebase_view
from .checks import checked_dim, checked_dims, integer, listed, some_tensors, tensors_in, unfit
from .rows import define, place, register

# ---- views: name, what it does to an array, the cotangent of its input

reshape_to = structure.reshape
swap = structure.transpose
back = lambda g, shape, *_: reshape_to(g, shape)  # noqa: E731
view_to = define("view", reshape_array, back)
alias = define("alias", lambda x: x[...], lambda g, _: g)
squeeze_all = define("squeeze", lambda x: views.without(x, range(x.ndim)), back)
squeeze_one = define("squeeze_dim", lambda x, dim: views.without(x, (dim,)), back, "SqueezeBackward1")
squeeze_some = define("squeeze_dims", views.without, back, "SqueezeBackward2")
unsqueeze_at = define("unsqueeze", views.inserted, back)
permute_to = define("permute", lambda x, dims: x.transpose(dims), lambda g, _, dims: permute_to(g, undone(dims)))
turn = define("t", lambda x: x.T, lambda g, _: turn(g))
expand_to = define("expand", expanded, lambda g, shape, _: sum_to(g, shape))
select_at = define("select", lambda x, dim, i: x[at(dim, i)], lambda g, shape, dim, i: place(g, shape, at(dim, i)))
slice_at = define("slice", lambda x, dim, i: x[at(dim, i)], lambda g, shape, dim, i: place(g, shape, at(dim, i)))
diagonal_at = define("diagonal", lambda x, *where: writable(x.diagonal(*where)),
                   lambda g, shape, *where: place_diagonal(g, shape, *where))  # fmt: skip
unfold_at = define("unfold", views.windows_of, lambda g, shape, *args: add_picked(views.windows_of, g, shape, *args))
restride = define("as_strided", strided, lambda g, shape, *args: add_picked(strided, g, shape, *args))

# ---- copies

reversed_in = define("flip", views.reverse, lambda g, _, dims: reversed_in(g, dims))
rolled_by = define("roll",
                   lambda x, shifts, dims: xp_of(x).roll(contiguous_array(x), *((shifts, dims) if dims else shifts)),
                 lambda g, _, shifts, dims: rolled_by(g, tuple(-s for s in shifts), dims))  # fmt: skip
repeat_by = define("repeat", lambda x, repeats: contiguous_array(xp_of(x).tile(x, repeats)),
                 lambda g, shape, repeats: sum_of_copies(g, shape, repeats))  # fmt: skip
tril = define("tril", lambda x, k: contiguous_array(xp_of(x).tril(x, k)), lambda g, _, k: tril(g, k),
              doc="Zeros above a diagonal.")  # fmt: skip
triu = define("triu", lambda x, k: contiguous_array(xp_of(x).triu(x, k)), lambda g, _, k: triu(g, k),
              doc="Zeros below a diagonal.")  # fmt: skip
rotate = define("rot90", views.rotated, lambda g, _, k, dims: rotate(g, -k, dims))
diagonal_copy = define("diagonal_copy", lambda x, *where: x.diagonal(*where).copy(),
                     lambda g, shape, *where: place_diagonal(g, shape, *where), "DiagonalBackward0_copy")  # fmt: skip
place_diagonal = define("diagonal_backward", views.on_diagonal, lambda g, _, shape, *where: diagonal_at(g, *where),
                      "DiagonalBackwardBackward0")  # fmt: skip
embed_diagonal = define("diag_embed", views.on_diagonal, lambda g, _, shape, *where: diagonal_at(g, *where))

# ---- rules


def undone(dims):
    """The permutation that undoes another one."""
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def add_picked(view_of, g, shape, *args):
    """The cotangent of what a view shows in which elements may come more than once."""
    n = prod(shape)
    positions = view_of(xp_of(array_of(g)).arange(n).reshape(shape), *args)
    return reshape_to(place(reshape_to(g, (-1,)), (n,), (positions.reshape(-1),)), shape)


def sum_of_copies(g, shape, repeats):
    pairs = zip(repeats, (1,) * (len(repeats) - len(shape)) + shape)
    copies = reshape_to(g, tuple(n for pair in pairs for n in pair))
    return reshape_to(sum_axes(copies, tuple(range(0, 2 * len(repeats), 2))), shape)


# ---- sizes and strides of the same elements


def reshape(input, shape, *more):
    """The same elements in another shape (one size may be -1): a view where strides allow it, else a copy."""
    return reshape_to(input, listed(shape, more, "reshape", "shape"))


def view(input, size=None, *more, dtype=None):
    """The same memory in another shape, or (given a dtype) read as another type.

    RuntimeError where only a copy would do.
    """
    if size is None or isinstance(size, (dtypes.dtype, type)):
        kind = dtype if size is None else size
        if kind is None:
            raise unfit("view", *more)
        return view_as_dtype(input, dtypes.given(kind, "view"))
    return view_of(input, listed(size, more, "view", "size"))


def view_of(input, shape):
    """A view in another shape.  RuntimeError in PyTorch's words where strides do not allow it."""
    out = view_to(input, shape)
    if storage(array_of(out)) is not storage(array_of(input)):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return out


def view_as_dtype(input, dtype):
    """The same memory read as another type.  RuntimeError where elements of that size do not lie in it in order."""
    x = input.shared()
    a, b = x.itemsize, dtype.itemsize
    if a != b:
        check_elements(x, dtype, max(b // a, 1))
    return Tensor(x.view(dtype.np))


def check_elements(x, dtype, times):
    """RuntimeError in PyTorch's words unless ``times`` elements after another are one of another dtype."""
    words = f"to view {dtype_word(x)} as {dtypes.type_words[dtype.np]} (different element sizes)"
    if not x.ndim:
        raise RuntimeError(f"self.dim() cannot be 0 {words}")
    *strides, last = element_strides(x)
    divided = [("size(-1)", x.shape[-1]), ("storage_offset()", offset_in_storage(x))]
    for fact, n in divided + [("stride(-1)", last)] + [(f"stride({i})", n) for i, n in enumerate(strides)]:
        if n != 1 if fact == "stride(-1)" else n % times:
            need = "1" if fact == "stride(-1)" else f"divisible by {times}"
            raise RuntimeError(f"self.{fact} must be {need} {words}, but got {n}")


def reshape_as(input, other):
    return reshape_to(input, other.array.shape)


def view_as(input, other):
    return view_of(input, other.array.shape)


def flatten(input, start_dim=0, end_dim=-1):
    """Dims ``start_dim`` to ``end_dim`` as one; the tensor itself where that changes nothing."""
    shape = input.array.shape
    first, last = checked_dim(start_dim, len(shape)), checked_dim(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape_to(input, (1,))
    if first == last:
        return input
    return reshape_to(input, (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]))


def ravel(input):
    return view_of(contiguous(input), (-1,))


def unflatten(input, dim, sizes):
    """One dim split into several, of which one may be -1."""
    shape, sizes = input.array.shape, listed(sizes, (), "unflatten", "sizes", 2)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    d = checked_dim(dim, len(shape))
    known = prod(n for n in sizes if n != -1)
    if shape[d] != known and (-1 not in sizes or not known or shape[d] % known):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({shape[d]}) in the "
            "input tensor"
        )
    return view_of(input, (*shape[:d], *sizes, *shape[d + 1 :]))


def squeeze(input, dim=None, *more):
    """Without the dims of size 1: all of them, or of ``dim`` (an int or several) those that have size 1."""
    if dim is None and not more:
        return squeeze_all(input)
    dim = listed(dim, more, "squeeze", "dim") if more else dim
    if isinstance(dim, (tuple, list)):
        return squeeze_some(input, checked_dims(dim, input.ndim))
    return squeeze_one(input, checked_dim(dim, input.ndim))


def unsqueeze(input, dim):
    """With a new dim of size 1 at ``dim``."""
    return unsqueeze_at(input, checked_dim(dim, input.ndim + 1))


def transpose(input, dim0, dim1):
    """Two dims exchanged."""
    n = input.ndim
    return swap(input, checked_dim(dim0, n), checked_dim(dim1, n))


def permute(input, dims, *more):
    """All dims in a new order."""
    dims, n = listed(dims, more, "permute", "dims"), input.ndim
    if len(dims) != n:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {n} is not equal to len(dims) = {len(dims)}"
        )
    found = tuple(checked_dim(d, n) for d in dims)
    if len(set(found)) < n:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permute_to(input, found)


def movedim(input, source, destination):
    """Dims ``source`` (an int or several) moved to the places ``destination``; the others keep their order."""
    source, destination = listed(source, (), "movedim", "source"), listed(destination, (), "movedim", "destination", 2)
    n = input.ndim
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same "
            f"number of dims as destination ({list(destination)} dims)"
        )
    ends = []
    for name, dims in (("source", source), ("destination", destination)):
        ends.append([checked_dim(d, n) for d in dims])
        if len(set(ends[-1])) < len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if not n:
        return alias(input)
    order = [d for d in range(n) if d not in ends[0]]
    for to, d in sorted(zip(ends[1], ends[0])):
        order.insert(to, d)
    return permute_to(input, tuple(order))


def t(input):
    """The transpose of a matrix; a vector or a number as it is."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return turn(input)


@property  # type: ignore[misc]  # surface/methods.py gives it to Tensor
def T(input):
    """The dims in reverse."""
    n = input.array.ndim
    if n != 2:
        warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, "
            "-1, -1))` to reverse the dimensions of a tensor." if n else
            "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
        )  # fmt: skip
    return permute_to(input, tuple(range(n - 1, -1, -1)))


@property  # type: ignore[misc]  # surface/methods.py gives it to Tensor
def H(input):
    if input.array.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.array.ndim}-D tensor.")
    return swap(input, 0, 1) if input.array.ndim else alias(input)


def adjoint(input):
    return swapped(input, "tensor.adjoint()")


def swapped(input, name):
    """The last two dims exchanged; ``name``: what errors call it."""
    n = input.array.ndim
    if n == 1:
        raise RuntimeError(f"{name} is only supported on matrices or batches of matrices. Got {n}-D tensor.")
    return swap(input, n - 2, n - 1) if n else input


mT, mH = (property(partial(swapped, name=name)) for name in ("tensor.mT", "tensor.mH"))


def expand(input, size, *more):
    return spread(input, listed(size, more, "expand", "size"))


def broadcast_to(input, size, *more):
    return spread(input, listed(size, more, "broadcast_to", "size"))


def spread(input, size):
    """Repeated without a copy along new leading dims and dims of size 1; -1 keeps a size."""
    x = array_of(input)
    lead = len(size) - x.ndim
    if any(n not in (-1, have) and have != 1 for n, have in zip(size[max(lead, 0) :], x.shape)) or lead < 0:
        raise cannot_expand(x, size)
    if -1 in size[:lead]:
        raise RuntimeError(
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension "
            f"{max(d for d in range(lead) if size[d] == -1)}"
        )
    if size and min(size) < -1:
        raise RuntimeError("numel: integer multiplication overflow")
    return expand_to(input, (*size[:lead], *(have if n == -1 else n for n, have in zip(size[lead:], x.shape))))


def expand_as(input, other):
    return expand(input, other.array.shape)


def broadcast_shapes(*shapes):
    """The shape that all of ``shapes`` broadcast to."""
    result: list = []
    for i, shape in enumerate(shapes):
        shape = listed(shape, (), "broadcast_shapes", "shapes")
        result = [1] * (len(shape) - len(result)) + result
        for d in range(-1, -len(shape) - 1, -1):
            if shape[d] != 1 and result[d] not in (1, shape[d]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[d]} at {d}! Mismatching argument at index "
                    f"{i} had {tuple(shape)}; but expected shape should be broadcastable to {result}"
                )
            result[d] = shape[d] if shape[d] != 1 else result[d]
    return Size(result)


def broadcast_tensors(*tensors):
    """The tensors, each expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    shape: tuple = ()
    for t in tensors_in("broadcast_tensors", tensors):
        shape = common_shape(shape, array_of(t).shape)
    return tuple(t if array_of(t).shape == shape else expand_to(t, shape) for t in tensors)


# ---- parts


def select(input, dim, index):
    """The part at one place of a dim, without that dim: a view, also where it is one element."""
    shape = array_of(input).shape
    d = dim % len(shape)
    return select_at(input, d, index + shape[d] if index < 0 else index)


def narrow(input, dim, start, length):
    """``length`` places of a dim, from ``start`` on."""
    if type(start) is not int:
        not_batched(
            "Batching rule not implemented for aten::narrow.Tensor; the fallback path doesn't work on out= or view "
            "ops.",
            array_of(start),
        )
    shape = array_of(input).shape
    d, start = dim % len(shape), int(start)
    start += shape[d] if start < 0 else 0
    return slice_at(input, d, slice(start, start + length, 1))


def several_views(input, parts, Backward, *saved):
    """Views of one tensor that one node makes; ``parts``: the (view operation, arguments) of each."""
    x, node = input.shared(), None
    if input.node is not None and mode.enabled:
        node = Backward((input.node,), (x.shape, *saved))
        node.outputs = len(parts)
    results = []
    for i, (op, args) in enumerate(parts):
        view = Tensor(op(x, *args), Output(node, i) if node else input.node and unreachable())
        track_view(view, input, op, args)
        if mode.enabled:
            view.creation_meta = "several"
        results.append(view)
    return tuple(results)


def with_zeros(parts, shapes):
    """The cotangents of all outputs, from those that have one."""
    known = array_of(next(iter(parts.values())))
    return [parts[i] if i in parts else xp_of(known).zeros(s, known.dtype) for i, s in enumerate(shapes)]


def resized(shape, dim, n):
    return (*shape[:dim], n, *shape[dim + 1 :])


def unbind_rule(g, shape, dim):
    return join_new(with_zeros(g, [shape[:dim] + shape[dim + 1 :]] * shape[dim]), dim)


def split_rule(g, shape, dim, sizes):
    return join(with_zeros(g, [resized(shape, dim, n) for n in sizes]), dim)


Unbind = node_class("UnbindBackward0", unbind_rule)
Split = node_class("SplitBackward0", split_rule)
SplitWithSizes = node_class("SplitWithSizesBackward0", split_rule)
UnsafeSplit = node_class("UnsafeSplitBackward0", split_rule)


def unbind(input, dim=0):
    """The parts at each place of a dim, as a tuple of views."""
    shape = input.array.shape
    d = checked_dim(dim, len(shape))
    return several_views(input, [(select_at, (d, i)) for i in range(shape[d])], Unbind, d)


def split(tensor, split_size_or_sections, dim=0):
    """Pieces along a dim, of one size (the last may be smaller) or of the sizes in a list: a tuple of views."""
    sizes = listed(split_size_or_sections, (), "split_with_sizes", "split_sizes", 2)
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, sizes, dim)
    d, (size,) = dim % tensor.array.ndim, sizes
    n = tensor.array.shape[d]
    return pieces(tensor, d, tuple(min(size, n - i) for i in (range(0, n, size) if n else (0,))), Split)


def split_with_sizes(input, split_sizes, dim=0):
    """Pieces of these sizes along a dim: a tuple of views."""
    d = dim % input.array.ndim
    return pieces(input, d, tuple(split_sizes), SplitWithSizes)


register("split_with_sizes", "view", split_with_sizes)


def pieces(input, d, sizes, Backward):
    parts = [(slice_at, (d, slice(end - n, end, 1))) for n, end in zip(sizes, accumulate(sizes))]
    return several_views(input, parts, Backward, d, sizes)


def chunk(input, chunks, dim=0):
    """At most ``chunks`` pieces of one size along a dim; the last may be smaller."""
    shape = input.array.shape
    n = shape[checked_dim(dim, len(shape))]
    return split(input, -(-n // chunks) if n else [0] * chunks, dim)


def unsafe_chunk(input, chunks, dim=0):
    """``chunk`` into pieces that do not count as views: recurrent cells cut their gates with it, and write to none."""
    x, d = input.array, checked_dim(dim, input.array.ndim)
    n, size = x.shape[d], -(-x.shape[d] // chunks)
    sizes = tuple(min(size, n - i) for i in range(0, n, size))
    parts = [x[at(d, slice(i * size, (i + 1) * size))] for i in range(len(sizes))]
    return record_outputs(UnsafeSplit, parts, (input,), (x.shape, d, sizes))


def tensor_split(input, indices_or_sections, dim=0):
    """Pieces along a dim, so many of nearly one size, or cut at the given places."""
    shape = input.array.shape
    d, cuts = checked_dim(dim, len(shape)), indices_or_sections
    n = shape[d]
    if isinstance(cuts, Tensor) and cuts.ndim == 1:
        cuts = cuts.tolist()
    if not isinstance(cuts, (tuple, list)):
        sections = integer(cuts, "tensor_split", "sections", 1)
        size, larger = divmod(n, sections)
        cuts = list(accumulate(size + (i < larger) for i in range(sections)))[:-1]
    ends = [*(slice(None, c).indices(n)[1] for c in listed(cuts, (), "tensor_split", "indices")), n]
    return tuple(slice_at(input, d, slice(a, max(a, b), 1)) for a, b in zip([0, *ends], ends))


def diagonal(input, offset=0, dim1=0, dim2=1):
    """The elements whose places in two dims are equal (or ``offset`` apart), as the last dim of a view."""
    n = input.ndim
    return diagonal_at(input, offset, dim1 % n, dim2 % n)


def diag(input, diagonal=0):
    """The diagonal of a matrix, or the matrix with a vector on its diagonal, as a copy."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    return diagonal_copy(input, diagonal, 0, 1)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Zeros with the last dim of the input on the diagonals of two new dims."""
    shape, n = array_of(input).shape, input.ndim + 1
    d1, d2 = dim1 % n, dim2 % n
    rest, side = iter(shape[:-1]), shape[-1] + abs(offset)
    return embed_diagonal(input, tuple(side if d in (d1, d2) else next(rest) for d in range(n)), offset, d1, d2)


def unfold(input, dimension, size, step):
    """All windows of ``size`` along a dim, ``step`` apart: a view, with the places in a window as the last dim."""
    n = input.array.ndim
    return unfold_at(input, dimension % n, size, step) if n else reshape_to(input, (size,))


def as_strided(input, size, stride, storage_offset=None):
    """The memory of a contiguous tensor under any shape and strides.

    NotImplementedError for another tensor, and where a gradient would leave the elements of the input.
    """
    size, stride = listed(size, (), "as_strided", "size"), listed(stride, (), "as_strided", "stride", 2)
    x = input.shared()
    offset = offset_in_storage(x) if storage_offset is None or 0 in size else storage_offset
    return restride(input, size, stride, offset - offset_in_storage(x))


# ---- joined


Cat = node_class("CatBackward0")
Stack = node_class("StackBackward0")


def join(tensors, dim):
    """The tensors one after the other along a dim, in the dtype that holds them all; empty 1-D ones are passed over."""
    arrays, shapes = same_dtype(tensors)
    some = [x for x in arrays if x.shape != (0,)] or arrays

    def rules():
        sizes = [s[dim] if s != (0,) else 0 for s in shapes]
        places = [slice(end - n, end, 1) for n, end in zip(sizes, accumulate(sizes))]
        return [part_rule(slice_at, dim, p, array_of(t)) for p, t in zip(places, tensors)]

    return record(Cat, contiguous_array(xp_of(arrays[0]).concatenate(some, dim)), tensors, (), rules)


def join_new(tensors, dim):
    """The tensors one after the other along a new dim."""
    arrays, _ = same_dtype(tensors)
    rules = lambda: [part_rule(select_at, dim, i, array_of(t)) for i, t in enumerate(tensors)]  # noqa: E731
    return record(Stack, contiguous_array(xp_of(arrays[0]).stack(arrays, dim)), tensors, (), rules)


def same_dtype(tensors):
    """The arrays of tensors, in the dtype that holds them all, and their shapes."""
    arrays = [array_of(t) for t in tensors]
    check_one_device(arrays)
    first = arrays[0].dtype
    if any(x.dtype is not first for x in arrays):
        kinds = ((dtypes.of[x.dtype], dtypes.DIMS if x.ndim else dtypes.ZERO_DIM) for x in arrays)
        common = dtypes.result_type(*kinds).np
        arrays = [x.astype(common) for x in arrays]
    return arrays, [x.shape for x in arrays]


def part_rule(op, dim, place, x):
    """The rule of an input of shape and dtype of x that became the part of the result at ``place``."""
    shape, dtype = x.shape, x.dtype
    return lambda g: cast(reshape_to(op(g, dim, place), shape), dtype)


def cat(tensors, dim=0):
    """The tensors one after the other along a dim; empty 1-D ones are passed over."""
    tensors = tensors_in("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = [array_of(t).shape for t in tensors]
    first = next((s for s in shapes if s != (0,)), shapes[0])
    d = checked_dim(dim, len(first))
    if not first or shapes.count(first) < len(shapes):
        check_joinable(shapes, first, d)
    return join(tensors, d)


def check_joinable(shapes, first, dim):
    """Raise PyTorch's errors for shapes that cannot be joined along a dim."""
    for i, shape in enumerate(shapes):
        if not shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    for i, shape in enumerate(shapes):
        if shape == (0,):
            continue
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for d, (a, b) in enumerate(zip(first, shape)):
            if a != b and d != dim:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size {b} for "
                    f"tensor number {i} in the list."
                )


def stack(tensors, dim=0):
    """Tensors of one shape one after the other along a new dim."""
    tensors = some_tensors("stack", tensors)
    first = array_of(tensors[0]).shape
    d = checked_dim(dim, len(first) + 1)
    for i, t in enumerate(tensors):
        if array_of(t).shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(array_of(t).shape)} at entry {i}"
            )
    return join_new(tensors, d)


def each(name, one, tensors):
    """``one`` of a tensor, or of each of several, as a tuple."""
    if len(tensors) == 1:
        if isinstance(tensors[0], Tensor):
            return one(tensors[0])
        tensors = tensors[0]
    return tuple(map(one, tensors_in(name, tensors)))


def atleast_1d(*tensors):
    return each("atleast_1d", lambda x: x if x.ndim else reshape_to(x, (1,)), tensors)


def atleast_2d(*tensors):
    def one(x):
        if x.ndim > 1:
            return x
        return unsqueeze_at(x, 0) if x.ndim else reshape_to(x, (1, 1))

    return each("atleast_2d", one, tensors)


def atleast_3d(*tensors):
    def one(x):
        if x.ndim > 2:
            return x
        return unsqueeze_at(atleast_2d(x), 2) if x.ndim else reshape_to(x, (1, 1, 1))

    return each("atleast_3d", one, tensors)


def hstack(tensors):
    tensors = [atleast_1d(x) for x in some_tensors("hstack", tensors)]
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(tensors):
    return cat([atleast_2d(x) for x in some_tensors("vstack", tensors)], 0)


def dstack(tensors):
    return cat([atleast_3d(x) for x in some_tensors("dstack", tensors)], 2)


def column_stack(tensors):
    return hstack([x if x.ndim > 1 else reshape_to(x, (-1, 1)) for x in tensors_in("column_stack", tensors)])


# ---- copies


def detach(input):
    return input.detach()


def repeat(input, repeats, *more):
    """Copied so many times along each dim; more numbers than dims make new leading ones."""
    repeats, shape = listed(repeats, more, "repeat", "repeats"), array_of(input).shape
    if len(repeats) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if repeats and min(repeats) < 0:
        sizes = [n * r for n, r in zip((1,) * (len(repeats) - len(shape)) + shape, repeats)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}")
    return repeat_by(input, repeats)


def tile(input, dims, *more):
    """As ``repeat``; fewer numbers than dims stand for the last dims."""
    dims = listed(dims, more, "tile", "dims")
    return repeat(input, (1,) * (input.ndim - len(dims)) + dims)


def flip(input, dims, *more):
    """The order of places reversed in the given dims."""
    return reversed_in(input, checked_dims(listed(dims, more, "flip", "dims"), input.ndim))


def fliplr(input):
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return reversed_in(input, (1,))


def flipud(input):
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return reversed_in(input, (0,))


def roll(input, shifts, dims=()):
    """Moved along dims, what falls off coming back at the other end; with no dims, along the flattened tensor."""
    shifts, dims = listed(shifts, (), "roll", "shifts"), listed(dims, (), "roll", "dims", 2)
    return rolled_by(input, shifts, tuple(checked_dim(d, input.ndim) for d in dims))


def rot90(input, k=1, dims=(0, 1)):
    """Turned by 90 degrees ``k`` times, from the first of two dims towards the second."""
    d0, d1 = (checked_dim(d, input.ndim) for d in listed(dims, (), "rot90", "dims", 2))
    return rotate(input, k, (d0, d1))


def meshgrid(*tensors, indexing=None):
    """The coordinates of all points of a grid, from those along each axis: a view for each axis.

    ``indexing``: "ij", a dim for each tensor in turn, or "xy", the first two exchanged.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    tensors = tensors_in("meshgrid", tensors)
    if indexing is None:
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    swaps = indexing == "xy" and len(tensors) > 1
    if swaps:
        tensors[:2] = tensors[1::-1]
    shape, n = tuple(t.numel() for t in tensors), len(tensors)
    grids = [expand_to(view_of(t, (1,) * i + (-1,) + (1,) * (n - 1 - i)), shape) for i, t in enumerate(tensors)]
    if swaps:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def cartesian_prod(*tensors):
    """All tuples of an element of each vector, in order, as rows; of one vector, itself."""
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape_to(t, (-1,)) for t in meshgrid(*tensors, indexing="ij")], 1)


# ---- where the elements lie


def stride(input, dim=None):
    """Return the distance of neighbours in elements: in one dim, or a tuple for all."""
    strides = element_strides(input.array)
    if dim is None:
        return strides
    return strides[checked_dim(dim, len(strides))]


def is_contiguous(input, memory_format=None):
    return input.array.flags.c_contiguous


def storage_offset(input):
    return offset_in_storage(input.shared())


def data_ptr(input):
    return pointer(input.shared())


def untyped_storage(input):
    return UntypedStorage(storage(input.shared()))


class UntypedStorage:
    """The memory that a tensor and its views share."""

    def __init__(self, owner):
        self.owner = owner

    def data_ptr(self):
        return address(self.owner)

    def nbytes(self):
        return self.owner.nbytes

    size = __len__ = nbytes


def numel(input):
    return input.numel()


# ---- in place: the tensor itself gets another shape


def reshaping(function):
    """The in-place form of a view operation."""

    def op_(self, *args, **kwargs):
        check_writable(self)
        known = alive(self, "views")
        before = self.array.shape
        out = function(self, *args, **kwargs)
        for v in known:  # they begin where this tensor was
            v.view_ops = (undoing(*out.view_ops[-1], before), *v.view_ops)
        self.array, base = out.array, self._base
        if base is not None:
            self.view_ops = out.view_ops
        if mode.enabled:
            if out.node is not None:
                out.node.__class__ = in_place_nodes[out.node.name()]
            self.node = out.node
        elif base is not None and base.node is not None:
            rebase_view(self, base)
        elif not isinstance(self.node, AccumulateGrad | None) and "shape_then" not in vars(self.node):
            self.node.__class__, self.node.shape_then = fitting(type(self.node)), before
        wrote(self)
        for v in known if self.node is not None else ():
            rebase_view(v, self)
        return self

    op_.__name__ = op_.__qualname__ = function.__name__ + "_"
    op_.__wrapped__ = function  # whose arguments it has
    return op_


INVALID = "Function {} returned an invalid gradient at index {} - got {} but expected shape compatible with {}"


def fitted(node, i, g, shape):
    """Sum the gradient of input i to the shape of that input where it was broadcast.  RuntimeError if it cannot be."""
    have = g.shape
    if len(have) < len(shape) or any(n not in (1, m) for n, m in zip(shape, have[len(have) - len(shape) :])):
        raise RuntimeError(INVALID.format(node.name(), i, list(have), list(shape)))
    return sum_to(g, shape)


@cache
def fitting(Class):
    """Make the class of nodes whose tensor has got another shape since: what arrives is brought into the one it had."""

    def vjp(self, g, saved, parents):
        return Class.vjp(self, fitted(self, 0, g, self.shape_then), saved, parents)

    return type(Class.__name__, (Class,), {"__module__": "builtins", "vjp": vjp})


def undoing(op, args, shape):
    """The view operation, with its arguments, that leads back to this shape from what another one gave."""
    return (op, args) if op in (turn, swap) else (view_to, (shape,))


in_place_nodes = {
    old: node_class(new, back)
    for old, new in (("UnsqueezeBackward0", "UnsqueezeBackward1"), ("SqueezeBackward0", "SqueezeBackward3"),
                     ("SqueezeBackward1", "SqueezeBackward4"), ("SqueezeBackward2", "SqueezeBackward5"))
}  # fmt: skip
in_place_nodes["TBackward0"] = node_class("TBackward1", lambda g, _: turn(g))
in_place_nodes["TransposeBackward0"] = node_class("TransposeBackward1", lambda g, shape, i, j: swap(g, i, j))
squeeze_, unsqueeze_, t_, transpose_ = map(reshaping, (squeeze, unsqueeze, t, transpose))
