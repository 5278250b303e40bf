"""Checks of dims, sizes and places."""

from ...arrays.batches import known
from ...arrays.kernels.views import offset_in_storage
from ...arrays.memory import storage
from ...core.graph import mode
from ...core.tensor import Tensor
from ...ops.checks import checked_dim, integer, listed, misfit, some_tensors, tensors_in
from .. import messages as m
from ..require import require


def select(input, dim, index):
    shape = input.array.shape
    require(shape, m.SELECT_SCALAR, error=IndexError)
    n = shape[d := checked_dim(dim, len(shape))]
    if not -n <= index < n:
        require(False, m.SELECT_RANGE, index, shape, d, error=IndexError)


def narrow(input, dim, start, length):
    if not (shape := input.array.shape):
        require(False, m.NARROW_SCALAR)
    if length < 0:
        require(False, m.NARROW_NEGATIVE)
    n = shape[checked_dim(dim, len(shape))]
    if isinstance(start, Tensor):
        require(not start.ndim and start.array.dtype.kind in "iu", m.NARROW_TENSOR)
        start = known(start.array) or 0
    if not -n <= start <= n:
        require(False, m.NARROW_START, -n, n, start, error=IndexError)
    if (start + n if start < 0 else start) + length > n:
        require(False, m.NARROW_END, start + n if start < 0 else start, length, n)


def unbind(input, dim):
    if not input.array.ndim:
        require(False, m.DIM_OF_SCALAR, checked_dim(dim, 0), error=IndexError)


def split(tensor, split_size_or_sections, dim):
    shape, size = tensor.array.shape, split_size_or_sections
    if isinstance(size, (tuple, list)):
        return split_with_sizes(tensor, listed(size, (), "split_with_sizes", "split_sizes", 2), dim)
    require(shape, m.SPLIT_SCALAR)
    n = shape[checked_dim(dim, len(shape))]
    (size,) = (size,) if type(size) is int else listed(size, (), "split_with_sizes", "split_sizes", 2)
    if size <= 0:
        require(size == 0, m.SPLIT_NEGATIVE, size)
        require(n == 0, m.SPLIT_BY_ZERO, n)


def split_with_sizes(input, split_sizes, dim):
    if not isinstance(split_sizes, (tuple, list)):
        raise misfit(split_sizes, "split_with_sizes", "split_sizes", 1, "tuple of ints")
    shape, sizes = input.array.shape, listed(split_sizes, (), "split_with_sizes", "split_sizes")
    require(shape, m.SPLIT_SCALAR)
    n = shape[checked_dim(dim, len(shape))]
    require(not sizes or min(sizes) >= 0, m.SPLIT_SIZES_NEGATIVE, sizes)
    require(sum(sizes) == n, m.SPLIT_SIZES_SUM, n, dim, sizes)


def chunk(input, chunks):
    if not input.array.ndim or chunks <= 0:
        require(input.array.ndim, m.CHUNK_SCALAR)
        require(False, m.CHUNK_COUNT, chunks)


def tensor_split(input, indices_or_sections):
    require(input.ndim, m.TENSOR_SPLIT_SCALAR)
    cuts = indices_or_sections
    if not isinstance(cuts, (tuple, list)) and not (isinstance(cuts, Tensor) and cuts.ndim == 1):
        sections = integer(cuts, "tensor_split", "sections", 1)
        require(sections > 0, m.TENSOR_SPLIT_COUNT, sections)


def diagonal(input, dim1, dim2):
    check_two(dim1, dim2, input.array.ndim)


def diag(input):
    require(input.array.ndim in (1, 2), m.DIAG_DIMENSIONS, input.ndim)


def diag_embed(input, dim1, dim2):
    check_two(dim1, dim2, input.array.ndim + 1)


def check_two(dim1, dim2, n):
    """Refuse one dim given twice."""
    if not (-n <= dim1 < n and -n <= dim2 < n and (dim1 - dim2) % n):
        require(checked_dim(dim1, n) != checked_dim(dim2, n), m.DIAGONAL_DIMS, dim1, dim2)


def unfold(input, dimension, size, step):
    shape = input.array.shape or (1,)
    n = shape[d := checked_dim(dimension, len(shape))]
    if size > n or step <= 0:
        require(size <= n, m.UNFOLD_SIZE, d, n, size)
        require(False, m.UNFOLD_STEP, step)


def as_strided(input, size, stride, storage_offset):
    size, stride = listed(size, (), "as_strided", "size"), listed(stride, (), "as_strided", "stride", 2)
    x = input.shared()
    require(x.flags.c_contiguous, m.STRIDED_INPUT, error=NotImplementedError)
    require(not stride or min(stride) >= 0, m.STRIDED_NEGATIVE, stride)
    before, whole = offset_in_storage(x), storage(x).nbytes // x.itemsize
    offset = before if storage_offset is None else storage_offset
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if 0 not in size:
        facts = size, stride, offset, x.itemsize, (last + 1) * x.itemsize, whole * x.itemsize
        require(last < max(whole, 1), m.STRIDED_STORAGE, *facts)
        within = before <= offset and last < before + x.size
        require(within or input.node is None or not mode.enabled, m.STRIDED_GRADIENT, error=NotImplementedError)


def roll(input, shifts, dims):
    if type(shifts) is int and (dims == () or type(dims) is int and input.array.ndim):
        return
    shifts, dims = listed(shifts, (), "roll", "shifts"), listed(dims, (), "roll", "dims", 2)
    require(shifts, m.ROLL_SHIFTS)
    require(input.ndim or not dims, m.DIM_OF_SCALAR, *dims[:1], error=IndexError)
    require(len(shifts) == (len(dims) or 1), m.ROLL_LENGTHS, len(shifts), len(dims))


def rot90(input, dims):
    require(len(dims) == 2, m.ROTATION_DIMS, len(dims))
    require(input.ndim > 1, m.ROTATION_INPUT, input.ndim)
    d0, d1 = (checked_dim(d, input.ndim) for d in listed(dims, (), "rot90", "dims", 2))
    require(d0 != d1, m.ROTATION_SAME, *dims)


def tril(input):
    require(input.array.ndim > 1, m.TRIANGLE_INPUT, "tril")


def triu(input):
    require(input.array.ndim > 1, m.TRIANGLE_INPUT, "triu")


def meshgrid(tensors, indexing):
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        (tensors,) = tensors
    for t in some_tensors("meshgrid", tuple(tensors)):
        require(t.ndim < 2, m.GRID_DIMENSIONS, t)
        require(t.dtype is tensors[0].dtype, m.GRID_DTYPES)
    require(indexing in (None, "ij", "xy"), m.GRID_INDEXING, indexing)


def cartesian_prod(tensors):
    for t in tensors_in("cartesian_prod", tensors):
        require(t.ndim == 1, m.NO_VECTOR, t.array.shape)
        require(t.dtype is tensors[0].dtype, m.GRID_DTYPES)


def stride(input, dim):
    require(dim is None or input.ndim, m.DIM_OF_SCALAR, dim, error=IndexError)
