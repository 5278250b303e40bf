"""Matrix products, einsum, and what solves linear systems.

``mm``, ``bmm``, ``mv`` and ``dot`` carry the rules; ``matmul``, ``einsum`` and their like are composed of them.
"""

import re
from functools import lru_cache
from math import nan, prod

import numpy as np

from ..arrays import dtypes
from ..arrays.batches import any_batch, samples
from ..arrays.devices import cpu, device_of, moved, violated
from ..arrays.dispatch import xp_of
from ..arrays.kernels.products import product, product_plus
from ..arrays.shapes import common_shape
from ..arrays.warn import warn
from ..core.graph import mode, node_class
from ..core.linear import UnsafeView, reshape, sum_to, transpose, unsum
from ..core.record import array_of, record, record_outputs
from ..core.rules import camel, joint_class
from ..core.tensor import Tensor
from . import reduce, return_types
from .checks import checked_dim, number
from .elementwise import choose, clamp, div, eq, mul, scaled, sqrt, sub
from .index import where
from .one_step import one_step_class, record_one_step
from .reduce import vector_norm
from .rows import register
from .shape import (
    diagonal_at,
    expand_to,
    permute_to,
    place_diagonal,
    squeeze_all,
    squeeze_one,
    turn,
    undone,
    unsqueeze_at,
    view_to,
)

# ---- derivatives

# fmt: off
Times = node_class("MatmulBackward0",
                   lambda g, x, y: sum_to(times(g, transpose(y, -1, -2)), array_of(x).shape),
                   lambda g, x, y: sum_to(times(transpose(x, -1, -2), g), array_of(y).shape))
SumOfProducts = node_class("SumBackward1",
                           lambda g, _x, y: bmm(with_batch(g, y), transpose(y, -1, -2)),
                           lambda g, x, _y: bmm(transpose(x, -1, -2), with_batch(g, x)))
Inv = node_class("LinalgInvExBackward0",
                 lambda g, out: -times(times(transpose(out, -1, -2), g), transpose(out, -1, -2)))
Det = node_class("LinalgDetBackward0", lambda g, x, out: det_rule(g, x, out))
SlogDet = node_class("LinalgSlogdetBackward0",
                     lambda parts, x: as_matrix(parts[1]) * transpose(inverse_at(x), -1, -2) if 1 in parts else None)
Trace = node_class("TraceBackward0", lambda g, shape: place_diagonal(unsum(g, (min(shape),)), shape, 0, 0, 1))
Svd = node_class("LinalgSvdBackward0", lambda parts, x: svd_rule(parts, x))
# fmt: on

# ---- products


def product_class(name, multiply, rule_x, rule_y):
    """The node class of a product, which is linear in each factor."""
    linear = staticmethod(lambda i, t, x, y: multiply(x, t) if i else multiply(t, y))
    return node_class(name, rule_x, rule_y, linear=linear)


def mm(input, mat2):
    """The product of two matrices."""
    if not isinstance(input, Tensor) and not isinstance(mat2, Tensor):
        return product(input, mat2)
    if isinstance(input, Tensor) and isinstance(mat2, Tensor):
        x, y, p, q = input.array, mat2.array, input.node, mat2.node
        if (p is None and q is None) or not mode.enabled:
            return Tensor(product(x, y))
        return Tensor(product(x, y), Mm((p, q), (None if q is None else x, None if p is None else y)))
    x, y = array_of(input), array_of(mat2)
    return record(Mm, product(x, y), (input, mat2), (x, y))


Mm = product_class("MmBackward0", mm, lambda g, _x, y: mm(g, y.T), lambda g, x, _y: mm(x.T, g))
# the same, where y is the transpose of a weight: its cotangent gets the same order of memory as y
MmColumns = product_class("MmBackward0", mm, Mm.rules[0], lambda g, x, _y: turn(mm(turn(g), x)))


def product_row(name, doc, rule_x, rule_y):
    """A product as a row: the derivatives by its factors."""

    def op(a, b):
        x, y = array_of(a), array_of(b)
        return record(Backward, product(x, y), (a, b), (x, y))

    Backward = op.node = product_class(camel(name) + "Backward0", op, rule_x, rule_y)
    op.__doc__ = doc
    return register(name, "linalg", op)


bmm = product_row("bmm", "The products of two batches of matrices, (b, n, m) and (b, m, p).",
                  lambda g, _x, y: bmm(g, transpose(y, -1, -2)),
                  lambda g, x, _y: bmm(transpose(x, -1, -2), g))  # fmt: skip
mv = product_row("mv", "The product of a matrix and a vector.",
                 lambda g, _x, y: outer(g, y), lambda g, x, _y: mv(transpose(x, -1, -2), g))  # fmt: skip
dot = product_row("dot", "The sum of the products of the elements of two vectors.",
                  lambda g, _x, y: g * y, lambda g, x, _y: g * x)  # fmt: skip


def outer(input, vec2):
    """All products of an element of one vector and an element of the other."""
    return mul(reshape(input, (-1, 1)), vec2)


ger = outer


def kron(input, other):
    """The Kronecker product: ``other`` times each element of ``input``, in its place; missing dims count as 1."""
    n = max(array_of(input).ndim, array_of(other).ndim)
    a, b = (((1,) * (n - v.ndim) + v.shape) for v in map(array_of, (input, other)))
    shapes = tuple(k for m in a for k in (m, 1)), tuple(k for m in b for k in (1, m))
    return unsafe_view(mul(*map(unsafe_view, (input, other), shapes)), tuple(m * k for m, k in zip(a, b)))


# ---- matmul


def matmul(input, other):
    """The matrix product: of vectors, matrices, and batches of matrices, whose batch dimensions broadcast."""
    m, n = input.array.ndim, other.array.ndim
    if n == 2 and m < 3:
        return mm(input, other) if m == 2 else vm(input, other)
    if n == 1 and m < 3:
        return mv(input, other) if m == 2 else dot(input, other)
    input, other = as_matrices(input, other)
    if folds(input, other):
        return rows_folded(input, other) if input.ndim > other.ndim else folded_transposed(input, other)
    return matmul_of_batches(input, other)


def as_matrices(input, other):
    """Of two batches the one without its batch that has a single matrix, which requires grad: as PyTorch has it."""
    x, y = input.array, other.array
    if x.ndim == y.ndim == 3 and x.shape[0] != y.shape[0]:
        if x.shape[0] == 1 and input.requires_grad:
            return squeeze_one(input, 0), other
        if y.shape[0] == 1 and other.requires_grad:
            return input, squeeze_one(other, 0)
    return input, other


def folds(input, other):
    """Tell whether to fold the larger operand into a matrix, so that one product is enough, as PyTorch decides it."""
    large, small = (input, other) if input.ndim >= other.ndim else (other, input)
    if large.ndim < 3 or small.ndim > 2:
        return False
    if small.requires_grad:
        return True
    if input.ndim == 2:
        return False
    x = large.array if large is input else large.array.swapaxes(-1, -2)
    return x.size == 0 or all(x.strides[i] == x.strides[i + 1] * x.shape[i + 1] for i in range(x.ndim - 2))


def rows_folded(large, small):
    """(..., n, m) @ (m, p) or (m): one product of matrices."""
    shape = large.array.shape
    rows = reshape(large, (prod(shape[:-1]), shape[-1]))
    out = mv(rows, small) if small.ndim == 1 else mm(rows, small)
    return unsafe_view(out, (*shape[:-1], *small.array.shape[1:]))


def folded_transposed(small, large):
    """(n, m) or (m) @ (..., m, p): ``rows_folded`` of the transposes."""
    flipped = transpose(large, -1, -2)
    if small.ndim == 1:
        return rows_folded(flipped, small)
    return transpose(rows_folded(flipped, turn(small)), -1, -2).contiguous()


def matmul_of_batches(input, other):
    """Batches of matrices: both expanded to the common batch shape."""
    x, y = input.array, other.array
    shape = common_shape(x.shape[:-2], y.shape[:-2])
    b, rows, columns = prod(shape), (1, *x.shape)[-2:], y.shape[-2:]
    left = reshape(expand_to(input, (*shape, *rows)), (b, *rows))
    right = reshape(expand_to(other, (*shape, *columns)), (b, *columns))
    out = bmm(left, right) if y.ndim > 1 else squeeze_one(bmm(left, unsqueeze_at(right, 2)), 2)
    return unsafe_view(out, (*shape, *x.shape[-2:-1], *y.shape[1:][-1:]))


def unsafe_view(a, shape):
    """The memory of a fresh result under another shape, which is no view of anything."""
    x = array_of(a)
    return record(UnsafeView, x.reshape(shape), (a,), (x.shape, shape))


def vm(vec, mat):
    """The product of a vector and a matrix: as in PyTorch that of matrices, of which the first has one row."""
    row, y = vec.array[None], mat.array
    out = product(row, y)[0]
    p, q = vec.node, mat.node
    if p is None:
        return record_one_step(RowTimesMatrix, out, (q,), (row,), out.shape)
    if not mode.enabled:
        return Tensor(out)
    # a Tensor, for forward mode to see; no program can write into this view, so its base need not know it
    p = Tensor(row, Unsqueeze((p,), (vec.array.shape,))).node
    node = Mm((p, q), (None if q is None else row, y))
    return Tensor(out, SqueezeInPlace((node,), ((1, *out.shape),)))


def as_row(a):
    return unsqueeze_at(a, 0) if isinstance(a, Tensor) else a[None]


Unsqueeze = node_class("UnsqueezeBackward0", lambda g, shape: reshape(g, shape))
SqueezeInPlace = node_class("SqueezeBackward4", lambda g, shape: as_row(g))
SqueezeInPlace.linear = staticmethod(lambda _, t, shape: reshape(t, shape[1:]))
RowTimesMatrix = one_step_class(
    SqueezeInPlace,
    lambda ends, kept, shape: ((Mm((None, *ends), kept and (*kept, None)),), ((1, *shape),)),
    lambda g, row: mm(turn(row), as_row(g)),
)
RowTimesMatrix.saved_from, RowTimesMatrix.needed_by = (-2,), ()
RowTimesMatrix.linear = staticmethod(lambda _, t, row: reshape(mm(row, t), (-1,)))

# ---- covariance


def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of the rows of a matrix, its variables; weights: how often a column counts, and how much."""
    x = array_of(input)
    rows = view_to(input, (1, x.size)) if x.ndim < 2 else input
    n = rows.array.shape[1]
    w = mul(fweights, aweights) if fweights is not None is not aweights else aweights if fweights is None else fweights
    weighted = lambda a: a if w is None else mul(a, w)  # noqa: E731
    total = Tensor(xp_of(x).full((), n, np.int64)) if w is None else reduce.sum(w)
    lost = correction
    if aweights is not None and correction:
        lost = div(mul(reduce.sum(mul(w, aweights)), correction), total)
    free = sub(total, lost)
    if violated(free.array, lambda f: f <= 0) if w is not None else n <= correction:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        free = sub(free, free)
    away = sub(rows, unsqueeze_at(div(reduce.sum(weighted(rows), 1), total), 1))
    return squeeze_all(div(away.mm(turn(weighted(away))), free))


def corrcoef(input):
    """The correlations of the rows of a matrix: their covariances over the products of their standard deviations."""
    c = cov(input)
    if not c.ndim:
        return div(c, c)
    deviations = sqrt(diagonal_at(c, 0, 0, 1))
    return clamp(div(div(c, view_to(deviations, (-1, 1))), view_to(deviations, (1, -1))), -1, 1)


# ---- sums with products


def plus_product(name, Product, multiply=product, backward=None):
    """``addmm`` and its like: beta * input + alpha * (a @ b); ``input`` broadcasts; Product is the node of a @ b."""
    rule_a, rule_b = Product.rules  # the first needs b alone, the second a
    Backward = node_class(backward or camel(name) + "Backward0",
                          lambda g, shape, _y, _z, beta, _: sum_to(scaled(g, beta), shape),
                          lambda g, _, _y, z, _b, alpha: scaled(rule_a(g, None, z), alpha),
                          lambda g, _, y, _z, _b, alpha: scaled(rule_b(g, y, None), alpha))  # fmt: skip
    if Product.linear is not None:
        Backward.linear = staticmethod(
            lambda i, t, _, y, z, beta, alpha: scaled(Product.linear(i - 1, t, y, z), alpha) if i else scaled(t, beta)
        )

    def op(input, a, b, *, beta=1, alpha=1):
        if type(beta) is not int or type(alpha) is not int:
            beta, alpha = number(beta, name, "beta"), number(alpha, name, "alpha")
        w, x, y = array_of(input), array_of(a), array_of(b)
        result = product_plus(w, x, y, multiply, beta, alpha)
        return record(Backward, result, (input, a, b), (w.shape, x, y, beta, alpha))

    op.node = Backward
    return register(name, "linalg", op)


addmm = plus_product("addmm", Mm)
addmm_columns = plus_product("addmm_columns", MmColumns, backward="AddmmBackward0")
addmv = plus_product("addmv", mv.node)
baddbmm = plus_product("baddbmm", bmm.node)


def sum_of_products(x, y):
    """The sum of the products of a batch of matrices, as one product."""
    return product(x.swapaxes(0, 1).reshape(x.shape[1], -1), y.reshape(-1, y.shape[2]))


def with_batch(g, a):
    """The cotangent of a sum over the batch of a, repeated for each."""
    return expand_to(g, (array_of(a).shape[0], *array_of(g).shape))


addbmm = plus_product("addbmm", SumOfProducts, sum_of_products)

# ---- contractions


def tensordot(a, b, dims=2):
    """The sum of products over ``dims`` of both: the last n of a and the first n of b, or a pair of lists."""
    x, y = array_of(a), array_of(b)
    first, second = ([checked_dim(d, t.ndim) for d in given] for t, given in zip((x, y), contracted(dims)))
    for i, j in zip(first, second):
        if x.shape[i] == 1 != y.shape[j]:
            b = reduce.sum(b, j, True, dtype=dtypes.of[y.dtype])
        elif y.shape[j] == 1 != x.shape[i]:
            a = reduce.sum(a, i, True, dtype=dtypes.of[x.dtype])
    x, y = array_of(a), array_of(b)
    rows = [d for d in range(x.ndim) if d not in first]
    columns = [d for d in range(y.ndim) if d not in second]
    left, right = permute_to(a, (*rows, *first)), permute_to(b, (*second, *columns))
    if not rows and not columns:
        left, right = (v if array_of(v).ndim == 1 else reshape(v, (-1,)) for v in (left, right))
        return reshape(left.dot(right), ())
    n, k, m = (prod(z.shape[d] for d in dims) for z, dims in ((x, rows), (x, first), (y, columns)))
    out = reshape(left, (n, k)).mm(reshape(right, (k, m)))
    return reshape(out, (*(x.shape[d] for d in rows), *(y.shape[d] for d in columns)))


def contracted(dims):
    """The dims of each operand over which ``tensordot`` sums, as they are given."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.array.size > 1 else int(dims.item())
    pair = (range(-dims, 0), range(dims)) if isinstance(dims, int) else dims
    return [[pair[i]] if isinstance(pair[i], int) else list(pair[i]) for i in (0, 1)]


def inner(input, other):
    """The sums of products over the last dimensions of both; with a scalar, the product."""
    x, y = array_of(input), array_of(other)
    if x.ndim == 0 or y.ndim == 0:
        return mul(input, other)
    return tensordot(input, other, ([-1], [-1]))


def einsum(equation, *operands):
    """Sums of products as an equation says: ``einsum("bij,bjk->bik", x, y)``.

    One letter a dimension, "..." for dimensions that broadcast; letters that are not in the result are summed over.
    Also ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.  They are contracted from left to right,
    each pair by one batched matrix product, as in PyTorch without opt_einsum.
    """
    equation, operands = as_letters(equation, operands)
    labels, order, kept = subscripts(equation, tuple([array_of(o).ndim for o in operands]))
    return contract([align(o, part, order) for o, part in zip(operands, labels)], kept)


def as_letters(equation, operands):
    """(equation, operands) of any form: one in which numbers stand for the letters, one with a list of operands."""
    if not isinstance(equation, str):
        write = lambda part: "".join(map(letter, part))  # noqa: E731
        args, n = (equation, *operands), (len(operands) + 1) // 2
        equation = ",".join(map(write, args[1 : 2 * n : 2])) + ("->" + write(args[-1]) if len(args) % 2 else "")
        operands = args[0 : 2 * n : 2]
    alone = len(operands) == 1 and isinstance(operands[0], (list, tuple))
    return equation, tuple(operands[0]) if alone else operands


def letter(n):
    """The letter that a number stands for.  ValueError if there is none."""
    if n is Ellipsis:
        return "..."
    if not 0 <= n < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return chr(n + 65 if n < 26 else n + 71)


letters = re.compile(r"\.\.\.|[a-zA-Z]").findall  # the labels of a term


@lru_cache(maxsize=256)
def subscripts(equation, ranks):
    """(labels of each operand, all in order, how many dims the result has); "..." is spelled out, as numbers."""
    inputs, arrow, result = equation.partition("->")
    terms = [letters(part) for part in inputs.split(",")]
    counts = [n - len(part) + 1 if "..." in part else 0 for n, part in zip(ranks, terms)]
    dots = [str(k) for k in range(max(counts))]
    spelled = lambda part, n: [d for c in part for d in (dots[len(dots) - n :] if c == "..." else [c])]  # noqa: E731
    every = [c for part in terms for c in part]
    named = sorted({*every} - {"..."})
    out = spelled(letters(result), len(dots)) if arrow else [*dots, *(c for c in named if every.count(c) == 1)]
    order = [*out, *(c for c in (*named, *dots) if c not in out)]
    return [spelled(part, n) for part, n in zip(terms, counts)], order, len(out)


def align(operand, labels, order):
    """An operand with one dimension for each label in ``order``, of size 1 where it has none."""
    have = []
    for c in labels:
        if c in have:
            first, last = have.index(c), array_of(operand).ndim - 2
            operand = diagonal_at(operand, 0, first, len(have))
            operand = permute_to(operand, (*range(first), last, *range(first, last)))
        else:
            have.append(c)
    for c in order:
        if c not in have:
            operand = unsqueeze_at(operand, len(have))
            have.append(c)
    return permute_to(operand, tuple(map(have.index, order)))


def contract(operands, kept):
    """Multiply operands of equal rank from left to right, and sum over the dimensions from ``kept`` on."""
    out, *rest = operands
    ndim = array_of(out).ndim
    summed = tuple(range(kept, ndim))
    if not rest:
        return reduce.sum(out, summed) if summed else out
    left = {d: sum(array_of(o).shape[d] != 1 for o in operands) for d in summed}  # how many still have the dimension
    for other in rest:
        both, mine, others = [], [], []
        for d in summed:
            a, b = array_of(out).shape[d] != 1, array_of(other).shape[d] != 1
            if a and b:
                left[d] -= 1
                if left[d] == 1:
                    both.append(d)
                    left[d] = 0
            elif left[d] == 1 and (a or b):
                (mine if a else others).append(d)
                left[d] = 0
        out = reduce.sum(out, tuple(mine), True) if mine else out
        other = reduce.sum(other, tuple(others), True) if others else other
        out = product_of_pair(out, other, both)
    return view_to(out, array_of(out).shape[:kept]) if summed else out


def product_of_pair(a, b, summed):
    """The product of two operands, summed over some dimensions, which stay with size 1: one batched matrix product."""
    if not summed:
        return mul(a, b)
    x, y = array_of(a).shape, array_of(b).shape
    free = [d for d in range(len(x)) if d not in summed]
    batch = [d for d in free if x[d] != 1 and y[d] != 1]
    rows = [d for d in free if x[d] != 1 and y[d] == 1]
    columns = [d for d in free if x[d] == 1]
    n, k = (prod(x[d] for d in dims) for dims in (batch, summed))
    left = reshape(permute_to(a, (*batch, *rows, *summed, *columns)), (n, prod(x[d] for d in rows), k))
    right = reshape(permute_to(b, (*batch, *summed, *columns, *rows)), (n, k, prod(y[d] for d in columns)))
    order = (*batch, *rows, *summed, *columns)
    sizes = tuple(x[d] if d in batch or d in rows else 1 if d in summed else y[d] for d in order)
    return permute_to(view_to(left.bmm(right), sizes), undone(order))


# ---- square matrices


class LinAlgError(RuntimeError):
    """A matrix is singular."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as tracebacks call PyTorch's


def times(a, b):
    """The product of two batches of matrices, in rules."""
    x, y = array_of(a), array_of(b)
    return mm(a, b) if x.ndim == y.ndim == 2 else record(Times, product(x, y), (a, b), (x, y))


def first_zero_pivot(x):
    """Return where elimination with row exchanges stops: (the matrix in words, if there are several; row from 1)."""
    from scipy.linalg.lapack import dgetrf  # noqa: PLC0415  where a matrix is singular, and nowhere else

    n = x.shape[-1]
    for b, matrix in enumerate(moved(x, cpu).astype(np.float64).reshape(-1, n, n)):
        _, _, pivot = dgetrf(matrix)
        if pivot:
            return f"(Batch element {b}): " if x.ndim > 2 else "", pivot
    return "", n  # by rounding in the matrix's own dtype


def inv(A):
    """The inverse of each matrix.  LinAlgError if one is singular."""
    x = array_of(A)
    try:
        out = xp_of(x).linalg.inv(x)
    except np.linalg.LinAlgError:
        batch, pivot = first_zero_pivot(x)
        raise LinAlgError(
            f"linalg.inv: {batch}The diagonal element {pivot} is zero, the inversion could not be completed because "
            "the input matrix is singular."
        ) from None
    return record(Inv, out, (A,), (out,))


def inverse_at(x):
    """The inverse in the rule of ``slogdet``: of a singular matrix what elimination ends with, infinities and nan.

    Where the rule is recorded it is an error, as in PyTorch.
    """
    if isinstance(x, Tensor) or any_batch(x):
        return inv(x)
    try:
        return xp_of(x).linalg.inv(x)
    except np.linalg.LinAlgError:
        from scipy.linalg.lapack import get_lapack_funcs  # noqa: PLC0415  as above

    host, n = moved(x, cpu), x.shape[-1]
    eliminate, substitute = get_lapack_funcs(("getrf", "getrs"), (host,))
    unit = xp_of(host).eye(n, dtype=x.dtype)
    each = [substitute(*eliminate(matrix)[:2], unit, trans=1)[0].T for matrix in host.reshape(-1, n, n)]
    return moved(xp_of(host).stack(each).reshape(x.shape), device_of(x))


def solve(A, B, *, left=True):
    """X with A @ X = B, or X @ A = B without ``left``.  B: matrices, or vectors.  LinAlgError if A is singular."""
    x, y = array_of(A), array_of(B)
    vectors = are_vectors(x, y)
    flip = lambda a: a if left else a.swapaxes(-1, -2)  # noqa: E731
    try:
        out = flip(xp_of(x).linalg.solve(flip(x), flip(y.reshape((*y.shape, 1)) if vectors else y)))
    except np.linalg.LinAlgError:
        batch, _ = first_zero_pivot(x)
        words = f"torch.linalg.solve: {batch}The solver failed because the input matrix is singular."
        raise LinAlgError(words) from None
    out = out[..., 0] if vectors else out
    return record(Solve, out, (A, B), (x, out, y.shape, vectors, left))


def are_vectors(x, y):
    """Tell whether the right-hand side of systems with the matrices x is a vector for each."""
    return y.ndim == 1 or y.ndim == x.ndim - 1 and y.shape == x.shape[:-1]


def solve_rule(g, x, out, shape, vectors, left):
    """The cotangent of the right-hand side solves the transposed systems; that of the matrix is made of it."""
    columns = lambda a: reshape(a, (*array_of(a).shape, 1)) if vectors else a  # noqa: E731
    right, turned = solve(transpose(x, -1, -2), columns(g), left=left), transpose(columns(out), -1, -2)
    return (
        lambda: sum_to(-(times(right, turned) if left else times(turned, right)), array_of(x).shape),
        lambda: reshape(sum_to(right, (*shape, 1)), shape) if vectors else sum_to(right, shape),
    )


Solve = joint_class("LinalgSolveExBackward0", 2, solve_rule)


def det(A):
    """The determinant of each matrix."""
    x = array_of(A)
    out = xp_of(x).linalg.det(x)
    return record(Det, out, (A,), (x, out))


def as_matrix(a):
    """A number for each matrix, in a shape that broadcasts against them."""
    return reshape(a, (*array_of(a).shape, 1, 1))


def det_rule(g, x, out):
    """g * det * inverse transposed; if one is singular, the cofactors: determinants with a unit vector as a row."""
    if (samples(array_of(out)) != 0).all():
        return as_matrix(g) * (as_matrix(out) * transpose(inv(x), -1, -2))
    shape, xp = array_of(x).shape, xp_of(array_of(x))
    n = shape[-1]
    row = xp.eye(n, dtype=bool).reshape((n, 1, n, 1))
    unit = xp.eye(n, dtype=array_of(x).dtype).reshape((1, n, 1, n))
    return as_matrix(g) * det(choose(row, unit, reshape(x, (*shape[:-2], 1, 1, n, n))))


def slogdet(A):
    """(sign, log of the absolute value) of the determinant of each matrix."""
    x = array_of(A)
    outs = tuple(xp_of(x).linalg.slogdet(x))
    return return_types.slogdet(*record_outputs(SlogDet, outs, (A,), (x,)))


def logdet(A):
    """The logarithm of the determinant of each matrix; nan where that is negative."""
    sign, logarithm = slogdet(A)
    return where(eq(sign, -1.0), nan, logarithm)


def trace(input):
    """The sum of the diagonal of a matrix."""
    x = array_of(input)
    return record(Trace, reduce.sum(x.diagonal()), (input,), (x.shape,))


# ---- norms


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """``vector_norm`` over one dimension or, without ``ord``, over all; ``matrix_norm`` over two."""
    if of_matrices(array_of(A).ndim, ord, dim):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def of_matrices(ndim, ord, dim):
    """Tell whether ``norm`` is meant as that of matrices."""
    pair = isinstance(dim, (tuple, list)) and len(dim) == 2 or dim is None and ndim == 2
    return ord is not None and (pair or isinstance(ord, str))


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of each matrix: "fro"; 1, -1, inf, -inf: the extremes of the sums of columns and of rows.

    2, -2, "nuc": the extremes and the sum of the singular values.
    """
    ord = ord if isinstance(ord, str) else number(ord, "linalg_matrix_norm", "ord", 2)
    if ord == "fro":
        return vector_norm(A, 2, tuple(dim), keepdim, dtype=dtype)
    n, extreme = array_of(A).ndim, largest if ord == "nuc" or ord > 0 else reduce.amin
    row, column = (checked_dim(d, n) for d in dim)
    if ord in (2, -2, "nuc"):
        A = A if dtype is None else A.to(dtype)
        values = svdvals(permute_to(A, (*(d for d in range(n) if d not in (row, column)), row, column)))
        out = reduce.sum(values, -1) if ord == "nuc" else extreme(values, -1)
        for d in sorted((row, column)) if keepdim else ():
            out = unsqueeze_at(out, d)
        return out
    along, across = (row, column) if abs(ord) == 1 else (column, row)
    sums = vector_norm(A, 1, along, keepdim, dtype=dtype)
    return extreme(sums, across - (not keepdim and along < across), keepdim)


def largest(norms, dim, keepdim=False):
    """Of no norms at all it is 0."""
    return (reduce.amax if array_of(norms).shape[dim] else reduce.sum)(norms, dim, keepdim)


def svd(A):
    """(U, S, Vh) with A = U @ diag(S) @ Vh, the singular values S in descending order; Vh and U not filled up."""
    x = array_of(A)
    return record_outputs(Svd, tuple(xp_of(x).linalg.svd(x, full_matrices=False)), (A,), (x,))


def svd_rule(parts, x):
    """The formula of (Townsend 2016, "Differentiating the singular value decomposition"), for real matrices.

    The cotangents of U and Vh are defined up to the signs of their columns, and where no two values are equal.
    """
    u, s, vh = svd(x)
    shape, n = array_of(s).shape, array_of(s).shape[-1]
    eye = xp_of(array_of(s)).eye(n, dtype=array_of(s).dtype)
    inner = reshape(parts[1], (*shape, 1)) * eye if 1 in parts else 0.0
    if 0 not in parts and 2 not in parts:
        return times(times(u, inner), vh)
    v, ut = transpose(vh, -1, -2), transpose(u, -1, -2)
    row, column = reshape(s, (*shape[:-1], 1, n)), reshape(s, (*shape, 1))
    gap = row * row - column * column + eye
    outside = 0.0
    if 0 in parts:
        turned = times(ut, parts[0])
        inner = inner + (turned - transpose(turned, -1, -2)) / gap * row
        outside = outside + times((parts[0] - times(u, turned)) / row, vh)
    if 2 in parts:
        gv = transpose(parts[2], -1, -2)
        turned = times(vh, gv)
        inner = inner + (turned - transpose(turned, -1, -2)) / gap * column
        outside = outside + times(u / row, transpose(gv - times(v, turned), -1, -2))
    return times(times(u, inner), vh) + outside


def svdvals(A, *, driver=None):
    """The singular values of each matrix, in descending order; ``driver`` is for devices, and there is one."""
    return svd(A)[1]


inverse = inv

NAMES = """mm bmm mv dot outer matmul tensordot inner einsum inv solve det slogdet logdet trace matrix_norm svdvals
kron cov corrcoef"""
for name in NAMES.split():
    register(name, "linalg", globals()[name])
