"""Matrix products, einsum, and what solves linear systems.

``mm``, ``bmm``, ``mv`` and ``dot`` carry the rules; ``matmul``, ``einsum`` and their like are composed of them.
"""

from math import inf, nan, prod

import numpy as np

from ..arrays import dtypes
from ..arrays.devices import cpu, moved, violated
from ..arrays.dispatch import samples, xp_of
from ..arrays.dtypes import accumulate_wider, c_name, dtype_word
from ..arrays.kernels.products import product, product_plus
from ..arrays.shapes import common_shape
from ..arrays.warn import warn
from ..core.graph import mode, node_class
from ..core.linear import UnsafeView, reshape, sum_to, transpose
from ..core.record import array_of, camel, record, record_outputs, register
from ..core.tensor import Tensor
from . import reduce, return_types
from .checks import check_not_bool, checked_dim, number
from .elementwise import choose, clamp, div, eq, mul, scaled, sqrt, sub
from .index import where
from .one_step import one_step_class, record_one_step
from .reduce import vector_norm
from .shape import (
    diagonal_at,
    expand_to,
    permute_to,
    squeeze_all,
    squeeze_one,
    turn,
    undone,
    unsqueeze_at,
    view_of,
    view_to,
)

# ---- derivatives

Mm = node_class("MmBackward0", lambda g, _x, y: mm(g, y.T), lambda g, x, _y: mm(x.T, g))
# the same, where y is the transpose of a weight: its cotangent gets the same order of memory as y
MmColumns = node_class("MmBackward0", Mm.rules[0], lambda g, x, _y: turn(mm(turn(g), x)))
Bmm = node_class(
    "BmmBackward0", lambda g, _x, y: bmm(g, transpose(y, -1, -2)), lambda g, x, _y: bmm(transpose(x, -1, -2), g)
)
Mv = node_class("MvBackward0", lambda g, _x, y: outer(g, y), lambda g, x, _y: mv(transpose(x, -1, -2), g))
Dot = node_class("DotBackward0", lambda g, _x, y: g * y, lambda g, x, _y: g * x)
Times = node_class("MatmulBackward0",
                   lambda g, x, y: sum_to(times(g, transpose(y, -1, -2)), array_of(x).shape),
                   lambda g, x, y: sum_to(times(transpose(x, -1, -2), g), array_of(y).shape))  # fmt: skip
Inv = node_class(
    "LinalgInvExBackward0", lambda g, out: -times(times(transpose(out, -1, -2), g), transpose(out, -1, -2))
)
Solve = node_class("LinalgSolveExBackward0",
                   lambda g, x, out, _shape, vectors, left: solve_rule_matrix(g, x, out, vectors, left),
                   lambda g, x, _out, shape, vectors, left: solve_rule_right(g, x, shape, vectors, left))  # fmt: skip
Det = node_class("LinalgDetBackward0", lambda g, x, out: det_rule(g, x, out))
SlogDet = node_class("LinalgSlogdetBackward0", lambda parts, x: slogdet_rule(parts, x))
Trace = node_class("TraceBackward0", lambda g, shape: g * xp_of(array_of(g)).eye(*shape, dtype=array_of(g).dtype))
Svd = node_class("LinalgSvdBackward0", lambda parts, x: svd_rule(parts, x))

# ---- products

bools = dtypes.bool_.np


def size(x):
    return "x".join(map(str, x.shape))


def mm(input, mat2):
    """The product of two matrices.  RuntimeError if they are no matrices, do not fit, or differ in dtype."""
    if not isinstance(input, Tensor) and not isinstance(mat2, Tensor):
        return product(input, mat2)
    x, y = array_of(input), array_of(mat2)
    check_mm(x, y)
    result = product(x, y)
    if isinstance(input, Tensor) and isinstance(mat2, Tensor):
        p, q = input.node, mat2.node
        if (p is None and q is None) or not mode.enabled:
            return Tensor(result)
        return Tensor(result, Mm((p, q), (None if q is None else x, None if p is None else y)))
    return record(Mm, result, (input, mat2), (x, y))


def check_mm(x, y):
    if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0] and x.dtype is y.dtype is not bools:
        return
    for a, name in ((x, "self"), (y, "mat2")):
        if a.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if x.shape[1] != y.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({size(x)} and {size(y)})")
    check_not_bool(x, "addmm_impl_cpu_")
    if x.dtype != y.dtype:
        a, b = (c_name(dtypes.of[v.dtype]) for v in (x, y))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a} != {b}")


def bmm(input, mat2):
    """The products of two batches of matrices, (b, n, m) and (b, m, p)."""
    x, y = array_of(input), array_of(mat2)
    for a, name in ((x, "batch1"), (y, "batch2")):
        if a.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    need = [x.shape[0], x.shape[2]]
    if list(y.shape[:2]) != need:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {need} but got: {list(y.shape[:2])}."
        )
    if x.dtype != y.dtype:
        raise RuntimeError(f"expected scalar type {dtype_word(x)} but found {dtype_word(y)}")
    check_not_bool(x, "bmm")
    return record(Bmm, product(x, y), (input, mat2), (x, y))


def product_with(op):
    """``Node.linear`` of a product: the product itself, with a tangent in place of one factor."""
    return staticmethod(lambda i, t, x, y: op(x, t) if i else op(t, y))


Mm.linear = MmColumns.linear = product_with(mm)
Bmm.linear = product_with(bmm)


def mv(input, vec):
    """The product of a matrix and a vector."""
    x, y = array_of(input), array_of(vec)
    if x.ndim != 2 or y.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {x.ndim}, {y.ndim}")
    if x.shape[1] != y.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({x.shape[0]}), mat ({size(x)}), vec ({y.shape[0]})")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {dtype_word(y)}, {dtype_word(x)}, "
            f"and {dtype_word(y)}"
        )
    check_not_bool(x, "addmv_impl_cpu")
    return record(Mv, product(x, y), (input, vec), (x, y))


Mv.linear = product_with(mv)


def dot(input, tensor):
    """The sum of the products of the elements of two vectors."""
    x, y = array_of(input), array_of(tensor)
    if x.ndim != 1 or y.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {dtype_word(x)} and {dtype_word(y)}"
        )
    if x.size != y.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{x.size}] and src [{y.size}] to have the same number of "
            f"elements, but got {x.size} and {y.size} elements respectively"
        )
    check_not_bool(x, "dot")
    return record(Dot, product(x, y), (input, tensor), (x, y))


Dot.linear = product_with(dot)


def outer(input, vec2):
    """All products of an element of one vector and an element of the other."""
    for a, name in ((input, "self"), (vec2, "vec2")):
        if array_of(a).ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {array_of(a).ndim}-D")
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
    return matmul_operator(input, other)


def matmul_operator(input, other):
    """``input @ other``."""
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        return NotImplemented
    m, n = input.array.ndim, other.array.ndim
    if m == 2 and n == 2:
        return mm(input, other)
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D")
    if m == 1 and n == 1:
        return dot(input, other)
    if m == 2 and n == 1:
        return mv(input, other)
    if m == 1 and n == 2:
        return vm(input, other)
    if folds(input, other):
        return rows_folded(input, other) if m > n else folded_transposed(input, other)
    return matmul_of_batches(input, other)


def folds(input, other):
    """Whether the larger operand is folded into a matrix, so that one product is enough: as PyTorch decides it."""
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
    if small.ndim == 1:
        return unsafe_view(mv(rows, small), shape[:-1])
    return unsafe_view(mm(rows, small), (*shape[:-1], small.array.shape[-1]))


def folded_transposed(small, large):
    """(n, m) or (m) @ (..., m, p): ``rows_folded`` of the transposes."""
    flipped = transpose(large, -1, -2)
    if small.ndim == 1:
        return rows_folded(flipped, small)
    return transpose(rows_folded(flipped, turn(small)), -1, -2).contiguous()


def matmul_of_batches(input, other):
    """Batches of matrices: both expanded to the common batch shape."""
    x, y = input.array, other.array
    if x.ndim == y.ndim == 3 and x.shape[0] != y.shape[0]:
        if x.shape[0] == 1 and input.requires_grad:
            return matmul_operator(squeeze_one(input, 0), other)
        if y.shape[0] == 1 and other.requires_grad:
            return matmul_operator(input, squeeze_one(other, 0))
    n, m = x.shape[-2:] if x.ndim > 1 else (1, x.shape[0])
    k, p = y.shape[-2:] if y.ndim > 1 else (y.shape[0], 1)
    shape = common_shape(x.shape[:-2], y.shape[:-2])
    b = prod(shape)
    left = reshape(expand_to(input, (*shape, n, m)), (b, n, m))
    right = expand_to(other, (*shape, k, p) if y.ndim > 1 else (*shape, k))
    right = reshape(right, (b, k, p)) if y.ndim > 1 else unsqueeze_at(reshape(right, (b, k)), 2)
    out = bmm(left, right) if y.ndim > 1 else squeeze_one(bmm(left, right), 2)
    return unsafe_view(out, (*shape, *((n,) if x.ndim > 1 else ()), *((p,) if y.ndim > 1 else ())))


def unsafe_view(a, shape):
    """The memory of a fresh result under another shape, which is no view of anything."""
    x = array_of(a)
    return record(UnsafeView, x.reshape(shape), (a,), (x.shape, shape))


def vm(vec, mat):
    """The product of a vector and a matrix: as in PyTorch that of matrices, of which the first has one row."""
    row, y = vec.array[None], mat.array
    if row.shape[1] != y.shape[0] or row.dtype is not y.dtype or y.dtype is bools:
        check_mm(row, y)
    out = product(row, y)[0]
    p, q = vec.node, mat.node
    if p is None:
        return record_one_step(RowTimesMatrix, out, (q,), (row,), out.shape)
    if not mode.enabled:
        return Tensor(out)
    # a Tensor, which forward mode sees; nobody can write into this view, so its base need not know of it
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
    x = check_variables("cov", input)
    if x.dtype == bools:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = view_of(input, (1, x.size)) if x.ndim < 2 else input
    n = rows.array.shape[1]
    w = None if fweights is None else check_weights("fweights", fweights, "integral", n)
    if aweights is not None:
        aweights = check_weights("aweights", aweights, "floating point", n)
        w = aweights if w is None else mul(w, aweights)
    weighted = lambda a: a if w is None else mul(a, w)  # noqa: E731
    total = Tensor(xp_of(x).full((), n, np.int64)) if w is None else reduce.sum(w)
    if w is not None and violated(total.array, lambda t: t == 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    lost = correction
    if aweights is not None and correction:
        lost = div(mul(reduce.sum(mul(w, aweights)), correction), total)
    free = sub(total, lost)
    if violated(free.array, lambda f: f <= 0) if w is not None else n <= correction:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        free = sub(free, free)
    away = sub(rows, unsqueeze_at(div(reduce.sum(weighted(rows), 1), total), 1))
    return squeeze_all(div(mm(away, turn(weighted(away))), free))


def check_variables(name, input):
    x = array_of(input)
    if x.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        )
    return x


def check_weights(name, weights, kind, n):
    """The weights of n observations."""
    w = weights.array
    if w.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions"
        )
    if w.dtype.kind not in "iu" if kind == "integral" else w.dtype not in dtypes.differentiable:
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {dtype_word(w)} dtype")
    if w.size != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got {w.size} "
            f"!= {n}"
        )
    if n and violated(w, lambda w: (w < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights


def corrcoef(input):
    """The correlations of the rows of a matrix: their covariances over the products of their standard deviations."""
    check_variables("corrcoef", input)
    c = cov(input)
    if not c.ndim:
        return div(c, c)
    deviations = sqrt(diagonal_at(c, 0, 0, 1))
    return clamp(div(div(c, view_of(deviations, (-1, 1))), view_of(deviations, (1, -1))), -1, 1)


# ---- sums with products


def plus_product(name, check, multiply, Product, backward=None):
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
        check(w, x, y)
        result = product_plus(w, x, y, multiply, beta, alpha)
        return record(Backward, result, (input, a, b), (w.shape, x, y, beta, alpha))

    op.node = Backward
    return register(name, "linalg", op)


def check_addmm(w, x, y):
    if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0] and w.dtype is x.dtype is y.dtype:
        return
    for a, name in ((x, "mat1"), (y, "mat2")):
        if a.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {a.ndim}-D tensor")
    if x.shape[1] != y.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({size(x)} and {size(y)})")
    check_same_dtype(w, x, y)


def check_same_dtype(w, x, y):
    for a, name in ((w, "self"), (x, "mat1")):
        if a.dtype != y.dtype:
            raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {dtype_word(a)} and {dtype_word(y)}")


addmm = plus_product("addmm", check_addmm, product, Mm)
addmm_columns = plus_product("addmm_columns", check_addmm, product, MmColumns, "AddmmBackward0")
addmv = plus_product("addmv", check_same_dtype, mv, Mv)
baddbmm = plus_product("baddbmm", check_same_dtype, bmm, Bmm)


def check_addbmm(w, x, y):
    for a, name in ((x, "batch1"), (y, "batch2")):
        if a.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if x.shape[0] != y.shape[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {x.shape[0]} and {y.shape[0]}")
    if x.shape[2] != y.shape[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({size(x[0])} and {size(y[0])})")
    check_same_dtype(w, x, y)


def sum_of_products(x, y):
    """The sum of the products of a batch of matrices, as one product."""
    return product(x.swapaxes(0, 1).reshape(x.shape[1], -1), y.reshape(-1, y.shape[2]))


SumOfProducts = node_class(
    "SumBackward1",
    lambda g, _x, y: Bmm.rules[0](expand_to(g, (array_of(y).shape[0], *array_of(g).shape)), None, y),
    lambda g, x, _y: Bmm.rules[1](expand_to(g, (array_of(x).shape[0], *array_of(g).shape)), x, None),
)
addbmm = plus_product("addbmm", check_addbmm, sum_of_products, SumOfProducts)

# ---- contractions


def tensordot(a, b, dims=2):
    """The sum of products over ``dims`` of both: the last n of a and the first n of b, or a pair of lists."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(array_of(a).ndim, array_of(b).ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = list(range(-dims, 0)), list(range(dims))
    first, second = ([dims[i]] if isinstance(dims[i], int) else list(dims[i]) for i in (0, 1))
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    as_given = first, second
    first = [checked_dim(d, array_of(a).ndim) for d in first]
    second = [checked_dim(d, array_of(b).ndim) for d in second]
    for i, j, *said in zip(first, second, *as_given, strict=True):
        n, m = array_of(a).shape[i], array_of(b).shape[j]
        if m == 1 != n:
            a = reduce.sum(a, i, True, dtype=dtypes.of[array_of(a).dtype])
        elif n == 1 != m:
            b = reduce.sum(b, j, True, dtype=dtypes.of[array_of(b).dtype])
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {said[0]} and second has size {m} "
                f"in dim {said[1]}"
            )
    x, y = array_of(a), array_of(b)
    rows = [d for d in range(x.ndim) if d not in first]
    columns = [d for d in range(y.ndim) if d not in second]
    left, right = permute_to(a, (*rows, *first)), permute_to(b, (*second, *columns))
    if not rows and not columns:
        left, right = (v if array_of(v).ndim == 1 else reshape(v, (-1,)) for v in (left, right))
        return reshape(dot(left, right), ())
    n, k, m = (prod(z.shape[d] for d in dims) for z, dims in ((x, rows), (x, first), (y, columns)))
    out = mm(reshape(left, (n, k)), reshape(right, (k, m)))
    return reshape(out, (*(x.shape[d] for d in rows), *(y.shape[d] for d in columns)))


def inner(input, other):
    """The sums of products over the last dimensions of both; with a scalar, the product."""
    x, y = array_of(input), array_of(other)
    if x.ndim == 0 or y.ndim == 0:
        return mul(input, other)
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(x.shape)} and {list(y.shape)}"
        )
    if x.dtype != y.dtype:
        raise RuntimeError("both inputs should have same dtype")
    return tensordot(input, other, ([-1], [-1]))


def einsum(equation, *operands):
    """Sums of products as an equation says: ``einsum("bij,bjk->bik", x, y)``.

    One letter a dimension, "..." for dimensions that broadcast; letters that are not in the result are summed over.
    Also ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.  RuntimeError if the equation and the operands do not fit.  They are
    contracted from left to right, each pair by one batched matrix product, as in PyTorch without opt_einsum.
    """
    if not isinstance(equation, str):
        equation, operands = letters_for((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    inputs, arrow, result = equation.partition("->")
    labels = [labels_of(part, i, operands) for i, part in enumerate(split_inputs(inputs, operands))]
    ranks = [array_of(o).ndim - len(part) + 1 for o, part in zip(operands, labels, strict=True) if "..." in part]
    spread_over = max(ranks, default=0)
    if arrow:
        out = labels_of_output(result, labels)
    else:
        once = sorted(
            c for c in {c for part in labels for c in part} - {"..."} if sum(part.count(c) for part in labels) == 1
        )
        out = (["..."] if any("..." in part for part in labels) else []) + once
    seen = {c for part in labels for c in part}
    order = [*out, *sorted(seen - set(out) - {"..."}), *(["..."] if "..." in seen and "..." not in out else [])]
    kept = sum(spread_over if c == "..." else 1 for c in out)
    aligned = [align(o, labels[i], order, spread_over, i) for i, o in enumerate(operands)]
    check_sizes(aligned, operands, labels, order, spread_over)
    return contract(aligned, kept)


def letters_for(args):
    """(equation, operands) of the form in which numbers stand for the letters."""
    letter = lambda n: "..." if n is Ellipsis else chr(n + 65 if n < 26 else n + 71)  # noqa: E731
    write = lambda part: "".join(map(letter, part))  # noqa: E731
    n = len(args) // 2
    equation = ",".join(write(part) for part in args[1 : 2 * n : 2])
    return equation + ("->" + write(args[-1]) if len(args) % 2 else ""), args[0 : 2 * n : 2]


def split_inputs(text, operands):
    parts = text.split(",")
    if len(parts) != len(operands):
        few = "fewer" if len(operands) < len(parts) else "more"
        raise RuntimeError(f"einsum(): {few} operands were provided than specified in the equation")
    return parts


def letters(text, where):
    """The labels of one term: letters and at most one "..."."""
    found = []
    i = 0
    while i < len(text):
        if text.startswith("...", i):
            if "..." in found:
                raise RuntimeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
            found.append("...")
            i += 3
            continue
        c = text[i]
        if c.isascii() and c.isalpha():
            found.append(c)
        elif c == ".":
            raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
        elif not c.isspace():
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be in [a-zA-Z]"
            )
        i += 1
    return found


def labels_of(text, i, operands):
    found, ndim = letters(text, f"operand {i}"), array_of(operands[i]).ndim
    if "..." in found:
        if len(found) - 1 > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(found) - 1}) is more than the number of "
                f"dimensions ({ndim}) for operand {i}"
            )
    elif len(found) != ndim:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(found)}) does not match the number of "
            f"dimensions ({ndim}) for operand {i} and no ellipsis was given"
        )
    return found


def labels_of_output(text, labels):
    out = letters(text, "the output")
    for c in out:
        if c != "..." and out.count(c) > 1:
            raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
        if c != "..." and not any(c in part for part in labels):
            raise RuntimeError(f"einsum(): output subscript {c} does not appear in the equation for any input operand")
    return out


def align(operand, labels, order, spread_over, i):
    """An operand with one dimension for each label in ``order``, of size 1 where it has none."""
    where, dim = {}, 0
    for c in labels:
        if c == "...":
            for _ in range(spread_over - (array_of(operand).ndim - dim - (len(labels) - labels.index(c) - 1))):
                operand = unsqueeze_at(operand, dim)
            where[c] = list(range(dim, dim + spread_over))
            dim += spread_over
        elif c in where:
            shape, first = array_of(operand).shape, where[c][0]
            if shape[dim] != shape[first]:
                raise RuntimeError(
                    f"einsum(): subscript {c} is repeated for operand {i} but the sizes don't match, {shape[dim]} != "
                    f"{shape[first]}"
                )
            operand = diagonal_at(operand, 0, first, dim)
            last = array_of(operand).ndim - 1
            operand = permute_to(operand, (*range(first), last, *range(first, last)))
        else:
            where[c] = [dim]
            dim += 1
    dims = []
    for c in order:
        for _ in range(0 if c in where else spread_over if c == "..." else 1):
            where.setdefault(c, []).append(array_of(operand).ndim)
            operand = unsqueeze_at(operand, array_of(operand).ndim)
        dims += where.get(c, [])
    return permute_to(operand, tuple(dims))


def check_sizes(aligned, operands, labels, order, spread_over):
    """RuntimeError unless the sizes of each label are equal or 1."""
    names = [c for c in order for _ in range(spread_over if c == "..." else 1)]
    for d, c in enumerate(names):
        size = 1
        for i, a in enumerate(aligned):
            n = array_of(a).shape[d]
            if n != 1 and size not in (1, n):
                what = "dimension covered by ellipsis" if c == "..." else f"subscript {c}"
                raise RuntimeError(
                    f"einsum(): {what} has size {n} for operand {i} which does not broadcast with previously seen size "
                    f"{size}"
                )
            size = n if n != 1 else size


def contract(operands, kept):
    """Multiply operands of equal rank from left to right, and sum over the dimensions from ``kept`` on."""
    out, *rest = operands
    ndim = array_of(out).ndim
    summed = tuple(range(kept, ndim))
    if not rest:
        return reduce.sum(out, summed) if summed else out
    left = {
        d: sum(array_of(o).shape[d] != 1 for o in operands) for d in summed
    }  # how many operands still have the dimension
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
    return permute_to(view_to(bmm(left, right), sizes), undone(order))


# ---- square matrices


class LinAlgError(RuntimeError):
    """A matrix is singular."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as tracebacks call PyTorch's


def square(name, input):
    """The array of a batch of square matrices; RuntimeError in PyTorch's words for anything else."""
    x = array_of(input)
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )
    if not dtypes.of[x.dtype].is_floating_point:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {dtype_word(x)}")
    check_precision(name, x)
    return x


def check_precision(name, x):
    if x.dtype in accumulate_wider:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {dtype_word(x)}")


def times(a, b):
    """The product of two batches of matrices, in rules."""
    x, y = array_of(a), array_of(b)
    return mm(a, b) if x.ndim == y.ndim == 2 else record(Times, product(x, y), (a, b), (x, y))


def first_zero_pivot(x):
    """Where elimination with row exchanges stops: (which matrix, in words, if there are several; the row, from 1)."""
    n = x.shape[-1]
    for b, m in enumerate(moved(x, cpu).astype(np.float64).reshape(-1, n, n)):
        which = f"(Batch element {b}): " if x.ndim > 2 else ""
        for k in range(n):
            p = k + int(abs(m[k:, k]).argmax())
            if m[p, k] == 0:
                return which, k + 1
            m[[k, p]] = m[[p, k]]
            m[k + 1 :] -= m[k + 1 :, k, None] / m[k, k] * m[k]
    return "", n  # by rounding in the matrix's own dtype


def inv(A):
    """The inverse of each matrix.  LinAlgError if one is singular."""
    x = square("linalg.inv", A)
    try:
        out = xp_of(x).linalg.inv(x)
    except np.linalg.LinAlgError:
        batch, pivot = first_zero_pivot(x)
        raise LinAlgError(
            f"linalg.inv: {batch}The diagonal element {pivot} is zero, the inversion could not be completed because "
            "the input matrix is singular."
        ) from None
    return record(Inv, out, (A,), (out,))


def solve(A, B, *, left=True):
    """X with A @ X = B, or X @ A = B without ``left``.  B: matrices, or vectors.  LinAlgError if A is singular."""
    x, y = square("linalg.solve", A), array_of(B)
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {dtype_word(x)} and B of type "
            f"{dtype_word(y)} instead"
        )
    vectors = y.ndim == 1 or y.ndim == x.ndim - 1 and y.shape == x.shape[:-1]
    columns = (*y.shape, 1) if vectors else y.shape
    if columns[-2 if left else -1] != x.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({x.shape[-2]}x{x.shape[-1]} and {columns[-2]}x{columns[-1]})"
        )
    solved = xp_of(x).linalg.solve
    try:
        if left:
            out = solved(x, y.reshape(columns))
        else:
            out = solved(x.swapaxes(-1, -2), y.swapaxes(-1, -2)).swapaxes(-1, -2)
    except np.linalg.LinAlgError:
        batch, _ = first_zero_pivot(x)
        words = f"torch.linalg.solve: {batch}The solver failed because the input matrix is singular."
        raise LinAlgError(words) from None
    out = out[..., 0] if vectors else out
    return record(Solve, out, (A, B), (x, out, y.shape, vectors, left))


def solve_rule_matrix(g, x, out, vectors, left):
    right = solve_transposed(g, x, vectors, left)
    out = transpose(as_columns(out, vectors), -1, -2)
    return sum_to(-(times(right, out) if left else times(out, right)), array_of(x).shape)


def solve_rule_right(g, x, shape, vectors, left):
    right = solve_transposed(g, x, vectors, left)
    return reshape(sum_to(right, (*shape, 1)), shape) if vectors else sum_to(right, shape)


def solve_transposed(g, x, vectors, left):
    """The cotangent of the right-hand side, as matrices."""
    return solve(transpose(x, -1, -2), as_columns(g, vectors), left=left)


def as_columns(a, vectors):
    return reshape(a, (*array_of(a).shape, 1)) if vectors else a


def det(A):
    """The determinant of each matrix."""
    x = square("linalg.det", A)
    out = xp_of(x).linalg.det(x)
    return record(Det, out, (A,), (x, out))


def det_rule(g, x, out):
    """g * det * inverse transposed; if one is singular, the cofactors: determinants with a unit vector as a row."""
    g = reshape(g, (*array_of(g).shape, 1, 1))
    if (samples(array_of(out)) != 0).all():
        return g * (reshape(out, (*array_of(out).shape, 1, 1)) * transpose(inv(x), -1, -2))
    n = array_of(x).shape[-1]
    xp = xp_of(array_of(x))
    row = xp.eye(n, dtype=bool).reshape((n, 1, n, 1))
    unit = xp.eye(n, dtype=array_of(x).dtype).reshape((1, n, 1, n))
    replaced = choose(row, unit, reshape(x, (*array_of(x).shape[:-2], 1, 1, n, n)))
    return g * det(replaced)


def slogdet(A):
    """(sign, log of the absolute value) of the determinant of each matrix."""
    x = square("linalg.slogdet", A)
    outs = tuple(xp_of(x).linalg.slogdet(x))
    return return_types.slogdet(*record_outputs(SlogDet, outs, (A,), (x,)))


def slogdet_rule(parts, x):
    g = parts.get(1)
    return None if g is None else reshape(g, (*array_of(g).shape, 1, 1)) * transpose(inv(x), -1, -2)


def logdet(A):
    """The logarithm of the determinant of each matrix; nan where that is negative."""
    square("logdet", A)
    sign, logarithm = slogdet(A)
    return where(eq(sign, -1.0), nan, logarithm)


def trace(input):
    """The sum of the diagonal of a matrix."""
    x = array_of(input)
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    return record(Trace, reduce.sum(x.diagonal()), (input,), (x.shape,))


# ---- norms


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """``vector_norm`` over one dimension or, without ``ord``, over all; ``matrix_norm`` over two."""
    ndim = array_of(A).ndim
    if ord is not None and dim is None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    pair = isinstance(dim, (tuple, list)) and len(dim) == 2 or dim is None and ndim == 2
    if ord is not None and (pair or isinstance(ord, str)):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of each matrix: "fro", and 1, -1, inf, -inf, the extremes of the sums of columns and of rows."""
    ndim = array_of(A).ndim
    if ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    ord = ord if isinstance(ord, str) else number(ord, "linalg_matrix_norm", "ord", 2)
    if ord == "fro":
        return vector_norm(A, 2, tuple(dim), keepdim, dtype=dtype)
    if ord in (2, -2, "nuc"):
        return singular_norm(A, ord, dim, keepdim, dtype)
    if isinstance(ord, str) or abs(ord) not in (1, inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    row, column = (checked_dim(d, ndim) for d in dim)
    along, across = (row, column) if abs(ord) == 1 else (column, row)
    sums = vector_norm(A, 1, along, keepdim, dtype=dtype)
    extreme = reduce.amax if ord > 0 else reduce.amin
    return extreme(sums, across - (not keepdim and along < across), keepdim)


def singular_norm(A, ord, dim, keepdim, dtype):
    """The largest or the smallest singular value of each matrix, or the sum of all."""
    row, column = (checked_dim(d, array_of(A).ndim) for d in dim)
    if row == column:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    A = A if dtype is None else A.to(dtype)
    rest = [d for d in range(array_of(A).ndim) if d not in (row, column)]
    values = svdvals(permute_to(A, (*rest, row, column)))
    out = reduce.sum(values, -1) if ord == "nuc" else (reduce.amax if ord == 2 else reduce.amin)(values, -1)
    for d in sorted((row, column)) if keepdim else ():
        out = unsqueeze_at(out, d)
    return out


def svd(A):
    """(U, S, Vh) with A = U @ diag(S) @ Vh, the singular values S in descending order; Vh and U not filled up."""
    x = array_of(A)
    if x.ndim < 2:
        raise RuntimeError("linalg.svd: The input tensor A must have at least 2 dimensions.")
    check_precision("linalg.svd", x)
    return record_outputs(Svd, tuple(xp_of(x).linalg.svd(x, full_matrices=False)), (A,), (x,))


def svd_rule(parts, x):
    """The formula of (Townsend 2016, "Differentiating the singular value decomposition"), for real matrices.

    The cotangents of U and Vh are defined up to the signs of their columns, and where no two values are equal.
    """
    u, s, vh = svd(x)
    inner = 0.0
    if 1 in parts:
        g = parts[1]
        inner = reshape(g, (*array_of(g).shape, 1)) * xp_of(array_of(g)).eye(
            array_of(g).shape[-1], dtype=array_of(g).dtype
        )
    if 0 not in parts and 2 not in parts:
        return times(times(u, inner), vh)
    v, ut, n = transpose(vh, -1, -2), transpose(u, -1, -2), array_of(s).shape[-1]
    row, column = reshape(s, (*array_of(s).shape[:-1], 1, n)), reshape(s, (*array_of(s).shape, 1))
    gap = row * row - column * column + xp_of(array_of(s)).eye(n, dtype=array_of(s).dtype)
    outer_parts = 0.0
    if 0 in parts:
        turned = times(ut, parts[0])
        inner = inner + (turned - transpose(turned, -1, -2)) / gap * row
        outer_parts = outer_parts + times((parts[0] - times(u, turned)) / row, vh)
    if 2 in parts:
        gv = transpose(parts[2], -1, -2)
        turned = times(vh, gv)
        inner = inner + (turned - transpose(turned, -1, -2)) / gap * column
        outer_parts = outer_parts + times(u / row, transpose(gv - times(v, turned), -1, -2))
    return times(times(u, inner), vh) + outer_parts


def svdvals(A):
    """The singular values of each matrix, in descending order."""
    return svd(A)[1]


inverse = inv

NAMES = """mm bmm mv dot outer matmul tensordot inner einsum inv solve det slogdet logdet trace matrix_norm svdvals
kron cov corrcoef"""
for name in NAMES.split():
    register(name, "linalg", globals()[name])
