"""Checks of what is multiplied, contracted and solved."""

import re
from functools import lru_cache
from math import inf, prod

import numpy as np

from ...arrays import dtypes
from ...arrays.devices import violated
from ...arrays.dtypes import accumulate_wider, c_name
from ...arrays.shapes import common_shape
from ...core.tensor import Tensor
from ...ops import linalg
from ...ops.checks import check_not_bool, checked_dim, no_kernel, number, shown_kind
from ...ops.shape import spread
from .. import messages as m
from ..require import require
from .reduce import widens

BOOL = dtypes.bool_.np
FULL_PRECISION = dtypes.differentiable - accumulate_wider.keys()


def by(shape):
    return "x".join(map(str, shape))


# ---- products: the common case in one line; what is wrong is looked for only where it is not that


def mm(input, mat2):
    x, y = input.array, mat2.array
    if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0] and x.dtype is y.dtype is not BOOL:
        return
    for a, name in ((x, "self"), (y, "mat2")):
        require(a.ndim == 2, m.NO_MATRIX, name)
    require(x.shape[1] == y.shape[0], m.MATRICES, by(x.shape), by(y.shape))
    check_not_bool(x, "addmm_impl_cpu_")
    require(x.dtype == y.dtype, m.MATRIX_DTYPES, *(c_name(dtypes.of[a.dtype]) for a in (x, y)))


def bmm(input, mat2):
    x, y = input.array, mat2.array
    if x.ndim == y.ndim == 3 and x.shape[::2] == y.shape[:2] and x.dtype is y.dtype is not BOOL:
        return
    three_dims(x, y)
    require(x.shape[::2] == y.shape[:2], m.BATCHES, x.shape[::2], y.shape[:2])
    require(x.dtype == y.dtype, m.SCALAR_TYPE, x.dtype, y.dtype)
    check_not_bool(x, "bmm")


def three_dims(x, y):
    for a, name in ((x, "batch1"), (y, "batch2")):
        require(a.ndim == 3, m.NO_BATCH, name)


def mv(input, vec):
    x, y = input.array, vec.array
    if x.ndim == 2 and y.ndim == 1 and x.shape[1] == y.shape[0] and x.dtype is y.dtype is not BOOL:
        return
    fitting_vectors(1, len(x) if x.ndim else 1, x, y)
    require(x.dtype == y.dtype, m.ADDMV_DTYPES, y.dtype, x.dtype, y.dtype)
    check_not_bool(x, "addmv_impl_cpu")


def fitting_vectors(ndim, size, x, y):
    """Look whether a matrix, a vector, and what is added to their product, of so many dims and elements, fit."""
    require(ndim < 2 and x.ndim == 2 and y.ndim == 1, m.MATRIX_AND_VECTOR, ndim, x.ndim, y.ndim)
    fit = x.shape[1] == y.shape[0] and size in (1, x.shape[0])
    require(fit, m.VECTOR_SIZE, size, by(x.shape), y.shape[0])


def dot(input, tensor):
    x, y = input.array, tensor.array
    if x.ndim == 1 and x.shape == y.shape and x.dtype is y.dtype is not BOOL:
        return
    require(x.ndim == y.ndim == 1, m.VECTORS, x.ndim, y.ndim)
    require(x.dtype == y.dtype, m.DOT_DTYPES, x.dtype, y.dtype)
    require(x.size == y.size, m.DOT_SIZES, x.size, y.size)
    check_not_bool(x, "dot")


def matmul(input, other):
    x, y = input.array, other.array
    if x.dtype is y.dtype is not BOOL and x.ndim and y.ndim and x.shape[-1] == y.shape[-2:][0]:
        return
    require(x.ndim and y.ndim, m.AT_LEAST_1D, "matmul", x.ndim, y.ndim)
    input, other = linalg.as_matrices(input, other)  # what is said depends on the product that it comes to
    x, y = input.array, other.array
    if linalg.folds(input, other):
        x, y = (x, y) if x.ndim > y.ndim else (y.swapaxes(-1, -2), x.T)
        x = x.reshape(prod(x.shape[:-1]), x.shape[-1])
    elif x.ndim > 2 or y.ndim > 2:
        b = prod(common_shape(x.shape[:-2], y.shape[:-2]))
        x, y = np.empty((b, 0, x.shape[-1]), x.dtype), np.empty((b, y.shape[-2:][0], 0), y.dtype)
    elif x.ndim < y.ndim:
        x = x[None]
    check = bmm if x.ndim == 3 else mm if y.ndim == 2 else mv if x.ndim == 2 else dot
    check(Tensor(x), Tensor(y))


def outer(input, vec2):
    for a, name in ((input, "self"), (vec2, "vec2")):
        require(a.array.ndim == 1, m.OUTER, name, a.array.ndim)


ger = outer


def inner(input, other):
    x, y = input.array, other.array
    if x.ndim and y.ndim:
        require(x.shape[-1] == y.shape[-1], m.INNER_SHAPES, x.shape, y.shape)
        require(x.dtype == y.dtype, m.INNER_DTYPES)


# ---- sums with products


def addmm(input, mat1, mat2):
    w, x, y = input.array, mat1.array, mat2.array
    if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0] and w.dtype is x.dtype is y.dtype:
        return
    for a, name in ((x, "mat1"), (y, "mat2")):
        require(a.ndim == 2, m.NO_MATRIX_GOT, name, a.ndim)
    require(x.shape[1] == y.shape[0], m.MATRICES, by(x.shape), by(y.shape))
    same_dtype(input, mat1, mat2)


def same_dtype(input, a, b):
    for v, name in ((input, "self"), (a, "mat1")):
        require(v.dtype == b.dtype, m.MAT2_DTYPE, name, v.array.dtype, b.array.dtype)


def addmv(input, mat, vec):
    fitting_vectors(input.array.ndim, input.array.size, mat.array, vec.array)
    same_dtype(input, mat, vec)
    mv(mat, vec)


def expands(input, *sizes):
    """Look first of all whether the input has the shape of the result: sizes are (tensor, dim) each."""
    x, shape = input.array, tuple([v.shape[checked_dim(d, v.ndim)] for v, d in sizes])
    if x.shape != shape:
        spread(x, shape)


def baddbmm(input, batch1, batch2):
    w, x, y = input.array, batch1.array, batch2.array
    fit = x.ndim == y.ndim == 3 and x.shape[::2] == y.shape[:2] and w.shape == (*x.shape[:2], y.shape[2])
    if fit and w.dtype is x.dtype is y.dtype is not BOOL:
        return
    expands(input, (x, 0), (x, 1), (y, 2))
    same_dtype(input, batch1, batch2)
    bmm(batch1, batch2)


def addbmm(input, batch1, batch2):
    w, x, y = input.array, batch1.array, batch2.array
    fit = x.ndim == y.ndim == 3 and x.shape[::2] == y.shape[:2] and w.shape == (x.shape[1], y.shape[2])
    if fit and w.dtype is x.dtype is y.dtype:
        return
    expands(input, (x, 1), (y, 2))
    three_dims(x, y)
    require(x.shape[0] == y.shape[0], m.BATCH_COUNTS, x.shape[0], y.shape[0])
    require(x.shape[2] == y.shape[1], m.BMM_SIZES, by(x.shape[1:]), by(y.shape[1:]))
    same_dtype(input, batch1, batch2)


# ---- covariance


def corrcoef(input):
    require(input.ndim <= 2, m.VARIABLES, "corrcoef", input.ndim)


def cov(input, fweights, aweights):
    require(input.ndim <= 2, m.VARIABLES, "cov", input.ndim)
    require(input.array.dtype != bool, m.COV_BOOL)
    n, every = 1 if not input.ndim else input.shape[-1], True
    for name, kind, weights in (("fweights", "integral", fweights), ("aweights", "floating point", aweights)):
        if weights is not None:
            w = weights.array
            require(w.ndim <= 1, m.COV_WEIGHTS, name, w.ndim)
            fit = w.dtype.kind in "iu" if kind == "integral" else w.dtype in dtypes.differentiable
            require(fit, m.COV_WEIGHTS_DTYPE, name, kind, w.dtype)
            require(w.size == n, m.COV_WEIGHTS_SIZE, name, w.size, n)
            require(not n or not violated(w, lambda w: (w < 0).any()), m.COV_WEIGHTS_NEGATIVE, name)
            every = every & (w != 0)
    require(every is True or not violated(every, lambda some: ~some.any()), m.COV_WEIGHTS_ZERO)


# ---- contractions


def tensordot(a, b, dims):
    x, y = a.array, b.array
    require(x.dtype == y.dtype, m.INNER_DTYPES)
    if isinstance(dims, Tensor) and dims.numel() > 1:
        require(len(dims) == 2, m.TENSORDOT_TENSOR, len(dims), error=AssertionError)
    elif isinstance(dims, Tensor):
        require(int(dims.item()) >= 0, m.TENSORDOT_NEGATIVE, dims)
    if isinstance(dims, int):
        require(dims >= 0, m.TENSORDOT_NEGATIVE, dims)
        require(dims <= min(x.ndim, y.ndim), m.TENSORDOT_DIMS, dims)
        if x.shape[x.ndim - dims :] == y.shape[:dims]:
            return
    given = linalg.contracted(dims)
    require(len(given[0]) == len(given[1]), m.TENSORDOT_LENGTHS)
    dims = [[checked_dim(d, z.ndim) for d in of] for z, of in zip((x, y), given)]
    for i, j, *said in zip(*dims, *given):
        n, k = x.shape[i], y.shape[j]
        require(n == k or 1 in (n, k), m.TENSORDOT_SIZES, n, said[0], k, said[1])


def einsum(equation, operands):
    require(operands, m.EINSUM_ARGUMENTS, error=ValueError)
    equation, operands = linalg.as_letters(equation, operands)
    require(operands, m.EINSUM_NOTHING)
    for i, o in enumerate(operands):
        require(isinstance(o, Tensor), m.EINSUM_TENSORS, i, shown_kind(type(o)), error=TypeError)
    fits(equation, tuple([o.shape for o in operands]))


@lru_cache(maxsize=256)
def fits(equation, shapes):
    inputs, arrow, result = equation.partition("->")
    parts = inputs.split(",")
    require(len(parts) == len(shapes), m.EINSUM_OPERANDS, "fewer" if len(shapes) < len(parts) else "more")
    start = 0
    for i, (part, shape) in enumerate(zip(parts, shapes)):
        found = terms(part, f"operand {i}", start)
        start += len(part) + 1
        n, spreads = len(found), "..." in found
        require(not spreads or n - 1 <= len(shape), m.EINSUM_MANY, n - 1, len(shape), i)
        require(spreads or n == len(shape), m.EINSUM_RANK, n, len(shape), i)
    out = terms(result, "the output", len(inputs) + 2)
    for c in out:
        require(c == "..." or out.count(c) == 1, m.EINSUM_TWICE, c)
        require(c == "..." or c in inputs, m.EINSUM_UNKNOWN, c)
    labels, order, _ = linalg.subscripts(equation, tuple(map(len, shapes)))
    sizes = [{} for _ in shapes]  # of each operand: label -> size
    for i, (part, shape, own) in enumerate(zip(labels, shapes, sizes)):
        for c, n in zip(part, shape):
            require(own.setdefault(c, n) == n, m.EINSUM_REPEATED, c, i, n, own[c])
    for c in order:
        what, size = m.EINSUM_ELLIPSIS if c.isdigit() else f"subscript {c}", 1
        for i, own in enumerate(sizes):
            n = own.get(c, 1)
            require(n == 1 or size in (1, n), m.EINSUM_SIZES, what, n, i, size)
            size = size if n == 1 else n


def terms(text, where, start):
    """The labels of one term, which starts at a place in the equation: letters and at most one "..."."""
    found = []
    for at in re.finditer(r"\.\.\.|\S", text):
        c = at[0]
        require(c != "..." or c not in found, m.EINSUM_DOTS, where)
        require(c != ".", m.EINSUM_DOT, where)
        require(c == "..." or c.isascii() and c.isalpha(), m.EINSUM_LETTER, start + at.start())
        found.append(c)
    return found


# ---- square matrices


def of_square(name, kernel=None):
    """The check of an operation on square matrices; ``kernel``: the one that half precision is an error of."""

    def check(A):
        x = A.array
        if x.ndim > 1 and x.shape[-1] == x.shape[-2] and x.dtype in FULL_PRECISION:
            return
        require(x.ndim >= 2, m.MATRICES_NEEDED, name)
        require(x.shape[-1] == x.shape[-2], m.SQUARE_NEEDED, name, x.shape[-2], x.shape[-1])
        require(dtypes.of[x.dtype].is_floating_point, m.FLOATING_NEEDED, name, x.dtype)
        if kernel:
            raise no_kernel(kernel, x)
        require(False, m.LOW_PRECISION, name, x.dtype)

    return check


inv, slogdet, logdet = map(of_square, ("linalg.inv", "linalg.slogdet", "logdet"))
det, of_system = (of_square(name, "lu_cpu") for name in ("linalg.det", "linalg.solve"))
inverse = inv


def solve(A, B, left):
    of_system(A)
    x, y = A.array, B.array
    require(x.dtype == y.dtype, m.SOLVE_DTYPES, x.dtype, y.dtype)
    vectors = linalg.are_vectors(x, y)
    rows, columns = (*y.shape, 1)[-2:] if vectors else y.shape[-2:]
    fit = (rows if left else columns) == x.shape[-1]
    require(fit, m.SOLVE_SHAPES, "AX" if left else "XA", x.shape[-2], x.shape[-1], rows, columns)
    require(left or not vectors, m.SOLVE_VECTORS)


def trace(input):
    require(input.array.ndim == 2, m.TRACE, input.array.ndim)
    check_not_bool(input.array, "trace")


def norm(A, ord, dim, keepdim, dtype):
    if isinstance(dim, (tuple, list)):
        require(len(dim) in (1, 2), m.NORM_LENGTH, list(dim))
    if ord is None:
        return widens("linalg.vector_norm", A, dtype)
    ndim = A.array.ndim
    require(dim is not None or ndim in (1, 2), m.NORM_DIMS, ndim)
    if linalg.of_matrices(ndim, ord, dim):
        dims = (-2, -1) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
        matrix_norm(A, ord, dims, keepdim, dtype)
    else:
        widens("linalg.vector_norm", A, dtype)


def matrix_norm(A, ord, dim, keepdim, dtype):
    x = A.array
    name, by_values = "linalg.matrix_norm", ord in (2, -2, "nuc")
    if ord != "fro":
        ord = ord if isinstance(ord, str) else number(ord, "linalg_matrix_norm", "ord", 2)
        require(by_values or (not isinstance(ord, str) and abs(ord) in (1, inf)), m.NORM_ORDER, ord)
    require(x.ndim >= 2, m.MATRICES_NEEDED, name)
    require(dtypes.of[x.dtype].is_floating_point, m.FLOATING_NEEDED, name, x.dtype)
    require(not by_values or x.dtype not in accumulate_wider, m.LOW_PRECISION, name, x.dtype)
    require(len(dim) == 2, m.NORM_TWO_DIMS, " ".join(map(str, dim)))
    row, column = (checked_dim(d, x.ndim) for d in dim)
    require(row != column, m.NORM_SAME_DIMS, row, column)
    widens(name, A, dtype)
    if not isinstance(ord, str) and ord < 0:  # of no numbers, there is no smallest one
        along, across = (row, column) if ord == -1 else (column, row)
        size, axis = x.shape[across], across - (not keepdim and along < across)
        size, axis = (min(x.shape[row], x.shape[column]), -1) if ord == -2 else (size, axis)
        require(size, m.REDUCED_SIZE, "amin()", axis, error=IndexError)


def svdvals(A, driver):
    x = A.array
    require(driver is None, m.SVD_DRIVER)
    require(x.ndim >= 2, m.MATRICES_NEEDED, "linalg.svd")
    require(dtypes.of[x.dtype].is_floating_point, m.FLOATING_NEEDED, "linalg.svd", x.dtype)
    if x.dtype in accumulate_wider:
        raise no_kernel("linalg_svd_cpu", x)
