"""Checks of indices, masks, and places along a dim."""

import numpy as np

from ...arrays import dtypes
from ...arrays.batches import samples
from ...arrays.devices import violated
from ...arrays.dispatch import device_names
from ...core.tensor import Tensor
from ...ops.checks import checked_dim, is_scalar, no_kernel, shown_kind, unfit
from .. import messages as m
from ..require import require


def along(name, input, dim, index, sentence=m.INDEX_KIND, least=4, error=RuntimeError):
    """(array, dim counted from the front, its size, index array) of what works along one dim.

    ``least``: of how many bytes the indices must be; ``sentence``, ``error``: what is said of others.
    """
    x, i = input.array, index.array
    if (i.dtype.kind != "i" or i.itemsize < least) and i.size:
        require(False, sentence, name, i.dtype, error=error)
    d = checked_dim(dim, x.ndim)
    return x, d, size_at(x, d), i


def is_vector(i, sentence, *facts, error=IndexError):
    if i.ndim > 1:
        require(False, sentence, *facts, error=error)


def size_at(x, d):
    return x.shape[d] if x.ndim > d else 1


def in_range(i, n, sentence, *facts, error=IndexError):
    """Refuse indices outside of 0 to n - 1; the sentence's first fact is the first of those."""
    if i.size and violated(i, lambda i: ((i < 0) | (i >= n)).any()):
        each = samples(i)
        require(False, sentence, each[(each < 0) | (each >= n)].reshape(-1)[0].item(), *facts, error=error)


def index_put(input, indices, values, *, name="index_put"):
    require(isinstance(indices, (tuple, list)), m.INDICES_TYPE, name, shown_kind(type(indices)), error=TypeError)
    require(isinstance(values, Tensor), m.VALUES_TYPE, name, shown_kind(type(values)), error=TypeError)
    dims = 0
    for i in indices:
        require(i is None or isinstance(i, Tensor), m.INDEX_TYPE, name, shown_kind(type(i)), error=TypeError)
        i = np.zeros(0, np.int64) if i is None else i.array
        fits = not i.size or i.dtype.kind in "ub" or i.dtype in (np.int64, np.int32)
        require(fits, m.INDEX_KIND_PUT, error=IndexError)
        dims += i.ndim if i.dtype in (np.bool_, np.uint8) else 1
    require(dims <= input.ndim, m.TOO_MANY_INDICES, input.ndim, dims, error=IndexError)
    x, v = input.array, values.array
    require(v.dtype == x.dtype, m.INDEX_PUT_DTYPES, x.dtype, v.dtype)


def index_put_(self, indices, values):
    index_put(self, indices, values, name="index_put_")


def index_select(input, dim, index):
    x, _, n, i = along("index_select", input, dim, index, m.INDEX_KIND_VECTOR)
    is_vector(i, m.INDEX_NO_VECTOR, "index_select")
    in_range(i, n, m.INDEX_OUTSIDE)
    if not x.ndim:
        require(i.size == 1, m.INDEX_TO_SCALAR, i.size)


def index_add(input, dim, index, source):
    x, d, n, i = along("index_add", input, dim, index, m.INDEX_KIND_ADDED)
    is_vector(i, m.INDEX_ADD_VECTOR, i.ndim, i.dtype, i.shape)
    s = source.array
    require(s.dtype == x.dtype, m.INDEX_ADD_DTYPES, x.dtype, s.dtype)
    require(i.size == size_at(s, d), m.INDEX_ADD_COUNT, i.size, size_at(s, d), d)
    require(beside(s, d) == beside(x, d), m.INDEX_ADD_SHAPES, x.shape, s.shape)
    if x.ndim > 1:
        in_range(i, n, m.OUT_OF_BOUNDS, d, n, error=RuntimeError)
    else:
        in_range(i, n, m.INDEX_OUTSIDE)


def index_copy(input, dim, index, source):
    x, d, n, i = along("index_copy", input, dim, index, m.INDEX_KIND_COPIED, 8)
    is_vector(i, m.INDEX_COPY_VECTOR, i.ndim)
    in_range(i, n, m.INDEX_COPY_OUT_OF_BOUNDS, 0, n)
    s = source.array
    require(s.dtype == x.dtype, m.INDEX_COPY_DTYPES, x.dtype, s.dtype)
    rest, given = (" ".join(map(str, beside(a, d))) for a in (x, s))
    require(beside(s, d) == beside(x, d), m.INDEX_COPY_SHAPES, rest, d, given, d)
    require(i.size == size_at(s, d), m.INDEX_COPY_COUNT, i.size, size_at(s, d), error=IndexError)


def beside(x, dim):
    """The sizes of the other dims."""
    return (*x.shape[:dim], *x.shape[dim + 1 :])


def index_fill(input, dim, index, value):
    check_value("index_fill", value)
    _, d, n, i = along("index_fill", input, dim, index, m.INDEX_KIND_FILLED, 8, IndexError)
    is_vector(i, m.INDEX_FILL_VECTOR, error=RuntimeError)
    in_range(i + n * (i < 0), n, m.OUT_OF_BOUNDS, d, n)


def check_value(name, value):
    """Refuse a tensor with dimensions."""
    if isinstance(value, Tensor) and value.array.ndim:
        require(False, m.VALUE_DIMENSIONS, name, value.ndim)


def repeat_interleave(input, repeats, dim, output_size):
    if output_size is not None:
        check_output_size(input, repeats, dim, output_size)
    if repeats is None:
        repeats = input
        require(input.ndim == 1, m.REPEATS_NO_VECTOR)
    elif isinstance(repeats, Tensor):
        d = 0 if dim is None else checked_dim(dim, input.ndim)
        n = input.array.size if dim is None else size_at(input, d)
        require(repeats.numel() in (1, n) and repeats.ndim < 2, m.REPEATS_SIZE, repeats.numel(), d, n)
    else:
        return
    x = repeats.array
    if x.dtype.kind != "i":
        raise no_kernel("repeat_interleave_cpu", x)
    require(not x.size or samples(x).min() >= 0, m.NEGATIVE_REPEATS)


def check_output_size(input, repeats, dim, output_size):
    if repeats is not None and not isinstance(repeats, Tensor):
        n = repeats * (input.array.size if dim is None else size_at(input.array, checked_dim(dim, input.ndim)))
        require(output_size == n, m.REPEATS_OUTPUT_SIZE, n, output_size)
        return
    times, each = samples((input if repeats is None else repeats).array), 1
    if repeats is not None and times.size == 1:
        each = input.array.size if dim is None else size_at(input.array, checked_dim(dim, input.ndim))
    require(output_size == times.sum() * each, m.REPEATS_ALLOCATED)


def beyond(i, x, d):
    """The first dim but d in which an index is larger."""
    return next((e for e, (a, b) in enumerate(zip(i.shape, x.shape)) if e != d and a > b), None)


def gather(input, dim, index, sparse_grad):
    require(not sparse_grad or not input.requires_grad, m.GATHER_SPARSE, error=NotImplementedError)
    x, d, n, i = along("gather", input, dim, index)
    if i.size:
        require(max(i.ndim, 1) == max(x.ndim, 1), m.INDEX_DIMENSIONS, "input")
        e = beyond(i, x, d)
        require(e is None, m.GATHER_SHAPE, e, i.shape, x.shape, d)
    in_range(i, n, m.OUT_OF_BOUNDS, d, n, error=RuntimeError)


def scatter_add(input, dim, index, src, *, name="scatter_add"):
    x, d, n, i = along(name, input, dim, index)
    s = src.array if isinstance(src, Tensor) else None
    if i.size:
        require(max(i.ndim, 1) == max(x.ndim, 1), m.INDEX_DIMENSIONS, "self")
        if s is None:
            require(beyond(i, x, d) is None, m.SCATTER_SHAPE, i.shape, x.shape, d)
        else:
            require(max(s.ndim, 1) == max(x.ndim, 1), m.INDEX_DIMENSIONS, "src")
            fits = beyond(i, x, d) is beyond(i, s, None) is None
            require(fits, m.SCATTER_SHAPES, i.shape, x.shape, d, s.shape)
            require(s.dtype == x.dtype, m.SCATTER_DTYPE)
    in_range(i, n, m.OUT_OF_BOUNDS, d, n, error=RuntimeError)


def scatter(input, dim, index, src, value, reduce):
    require(reduce in (None, "add", "multiply"), m.SCATTER_REDUCE)
    scatter_add(input, dim, index, value if src is None else src, name="scatter")


def take_along_dim(input, indices, dim):
    if dim is None:
        n = input.array.size
        in_range(indices.array, n, m.OUT_OF_BOUNDS, 0, n, error=RuntimeError)
    else:
        i, d = indices.array, checked_dim(dim, input.ndim)
        require(i.dtype == np.int64, m.TAKE_ALONG_DTYPE, i.dtype)
        require(i.ndim == input.ndim, m.TAKE_ALONG_DIMENSIONS, input.ndim, i.ndim)
        require(i.ndim, m.DIM_OF_SCALAR, dim, error=IndexError)
        n = input.shape[d]
        in_range(i + n * (i < 0), n, m.OUT_OF_BOUNDS, d, n, error=RuntimeError)


def take(input, index):
    n, i = input.array.size, index.array
    require(i.dtype == np.int64, m.TAKE_DTYPE, i.dtype)
    require(n or not i.size, m.TAKE_FROM_NOTHING, error=IndexError)
    in_range(i + n * (i < 0), n, m.TAKE_OUT_OF_RANGE, n)


def masked_fill(input, mask, value):
    check_mask(input, mask, m.MASKED_FILL_DTYPE, dtypes.c_name)
    check_value("masked_fill", value)


def masked_select(input, mask):
    check_mask(input, mask, m.MASKED_SELECT_DTYPE)


def masked_scatter(input, mask, source):
    check_mask(input, mask, m.MASKED_SCATTER_DTYPE)
    x, s = input.array, source.array
    require(s.dtype == x.dtype, m.MASKED_SCATTER_DTYPES, x.dtype, s.dtype)


def check_mask(input, mask, sentence, word=None):
    kind = mask.array.dtype
    if kind.kind != "b":
        require(False, sentence, word(mask.dtype) if word else kind)
    if device_names and mask.device != input.device:
        require(False, m.MASK_DEVICE, mask.device, input.device)


def topk(input, k, dim):
    x, d = input.array, checked_dim(dim, input.ndim)
    if not 0 <= k <= size_at(x, d) or x.dtype.kind == "b":
        require(x.dtype.kind == "b" and 0 <= k <= size_at(x, d), m.TOPK_RANGE)
        require(False, m.TOPK_BOOL)


def kthvalue(input, k, dim):
    x, d = input.array, checked_dim(dim, input.ndim)
    require(size_at(x, d), m.REDUCED_SIZE, "kthvalue()", d, error=IndexError)
    if x.dtype.kind == "b":
        raise no_kernel("kthvalue_cpu", x)
    require(1 <= k <= size_at(x, d), m.KTHVALUE_RANGE, d)


def diff(input, n, prepend, append):
    require(input.ndim, m.DIFF_SCALAR)
    if prepend is not None or append is not None:
        require(all(v is None or v.ndim == input.ndim for v in (prepend, append)), m.DIFF_DIMENSIONS)
    require(n >= 0, m.DIFF_ORDER, n)


def combinations(input, r):
    require(input.ndim == 1, m.NO_VECTOR, input.array.shape)
    require(r >= 0, m.COMBINATIONS_COUNT, r)


def isin(elements, test_elements):
    tensors = [isinstance(v, Tensor) for v in (elements, test_elements)]
    if not any(tensors) or not all(t or is_scalar(v) for t, v in zip(tensors, (elements, test_elements))):
        raise unfit("isin", elements, test_elements)
    for v in (elements, test_elements):
        require(type(v) is not bool and getattr(v, "dtype", None) is not dtypes.bool_, m.ISIN_BOOL)
