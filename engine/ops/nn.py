"""Functions of neural networks: layers without state, activations, losses, normalizations.

``engine.nn.functional`` offers them; convolutions and attention have files of their own.
"""

import math
from functools import lru_cache

import numpy as np

from ..arrays import dtypes
from ..arrays.devices import one_device, random_source, violated
from ..arrays.dispatch import (
    any_size,
    batches,
    blank,
    device_names,
    elementwise,
    kernels,
    one_step,
    picked,
    samples,
    writers,
)
from ..arrays.size import Size
from ..arrays.threads import THREADED, in_blocks, is_large
from ..arrays.warn import warn
from ..core.graph import mode, node_class, one_step_class
from ..core.linear import (
    accumulate_wider,
    cast,
    clone,
    column,
    contiguous,
    extreme_along,
    in_order,
    is_quick_to_sum,
    place,
    products_along,
    reshape,
    row_starts,
    rows_added,
    sum_to,
    sums_along,
    total,
)
from ..core.record import array_of, camel, record, record_one_step, register, xp_of
from ..core.tensor import Tensor, checked_dim
from ..core.versions import write
from ..core.views import check_writable, overwrite, size_error
from . import creation, reduce
from . import elementwise as e
from .creation import number
from .elementwise import choose, exp, gt, log, mul, sigmoid, tanh
from .linalg import addmm_columns, broadcast_shape, check_addmm, matmul, mm, product, summed, weighted_sum
from .reduce import record_converted, word
from .shape import expand_to, repeat, turn, undone, view_to

# ---- layers


def linear(input, weight, bias=None):
    """input @ weight.T + bias; ``input`` (..., in), ``weight`` (out, in), ``bias`` (out)."""
    x, w = array_of(input), array_of(weight)
    if x.ndim == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are 0D and {w.ndim}D")
    if bias is None:
        return matmul(input, transposed(weight))
    if x.ndim == 2:
        b, y = array_of(bias), w.T
        check_addmm(b, x, y)
        out = weighted_sum(b, product(x, y)) if x.itemsize > 2 else summed(b, x, y)
        if not mode.enabled:
            return Tensor(out)
        return record_one_step(Linear, out, (bias.node, input.node, weight.node), (b.shape, x, y, 1, 1), w.shape)
    shape = array_of(bias).shape
    if len(shape) != 1 and len(shape) - shape.count(1) != 1 or not x.flags.c_contiguous:
        rows = matmul(input, transposed(weight))
        out = e.add(rows, bias)
        if array_of(out).shape != array_of(rows).shape:
            raise size_error(array_of(rows), array_of(out).shape)
        return out
    out = addmm_columns(bias, reshape(input, (-1, x.shape[-1])), transposed(weight))
    return view_to(out, (*x.shape[:-1], array_of(out).shape[-1]))


def transposed(weight):
    """The transpose of a weight; nobody can write into this view, so its base need not know of it."""
    return Tensor(weight.array.T, node_of_transposed(weight.node, weight.array.shape) if mode.enabled else None)


def node_of_transposed(node, shape):
    return node and T((node,), (shape,))


T = node_class("TBackward0", lambda g, _: turn(g))
T.linear = staticmethod(lambda _, t, shape: turn(t))
Linear = one_step_class(
    addmm_columns.node,
    lambda ends, kept, shape: ((*ends[:2], node_of_transposed(ends[2], shape)), kept),
    *addmm_columns.node.rules[:2],
    lambda g, _, y, _z, _b, _a: mm(turn(g), y),
)
Linear.linear = staticmethod(
    lambda i, t, shape, y, z, beta, alpha: (
        mm(y, turn(t)) if i == 2 else addmm_columns.node.linear(i, t, shape, y, z, beta, alpha)
    )
)


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability ``p`` and scale the others by 1 / (1 - p), in training."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    x = array_of(input)
    if p == 0 or not training or not x.size:
        return input
    if not dtypes.of[x.dtype].is_floating_point:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {word(x)}")
    return into(input, mul(input, Tensor(noise(x, p))), inplace)


def noise(x, p):
    """What dropout multiplies by: 0 with probability ``p``, else 1 / (1 - p)."""
    order = sorted(range(x.ndim), key=lambda d: -x.strides[d])  # numbers are drawn as x lies in memory
    return random_source(x).dropout_mask(None, tuple(x.shape[d] for d in order), x.dtype, p).transpose(undone(order))


def feature_noise(x, p):
    """One such number for each channel, dimension 1."""
    if x.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return random_source(x).dropout_mask(None, (*x.shape[:2], *(1,) * (x.ndim - 2)), x.dtype, p)


def into(input, out, inplace):
    """A result, written into the input if ``inplace``."""
    if not inplace:
        return out
    check_writable(input)
    return overwrite(input, out)


def one_hot(tensor, num_classes=-1):
    """Rows of zeros with a 1 where the index points; int64, with a new last dimension."""
    x, num_classes = array_of(tensor), creation.integer(num_classes, "one_hot", "num_classes", 2)
    if x.dtype != dtypes.int64.np:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not x.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    elif violated(x, lambda x: (x < 0).any()):
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(x.max()) + 1
    elif x.size and violated(x, lambda x: (x >= num_classes).any()):
        raise RuntimeError("Class values must be smaller than num_classes.")
    out = xp_of(x).expand_dims(x, -1) == xp_of(x).arange(num_classes)
    return reduce.as_input(in_order(out.astype(dtypes.int64.np)), tensor)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of ``weight`` that ``input`` points to; the row ``padding_idx`` gets no gradient."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise NotImplementedError("embedding has no max_norm, scale_grad_by_freq nor sparse gradients: leave them out")
    i, w = array_of(input), array_of(weight)
    if w.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if i.dtype not in (dtypes.int64.np, dtypes.int32.np):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{Tensor.typename(i)} instead (while checking arguments for embedding)"
        )
    n = w.shape[0]
    if padding_idx is not None:
        padding_idx = creation.integer(padding_idx, "embedding", "padding_idx", 3)
        assert -n <= padding_idx < n, "Padding_idx must be within num_embeddings"
        padding_idx %= n
    if device_names:
        one_device(w, i)  # CuPy would take indices from the host
    if i.size and not within_rows(i, n):
        raise IndexError("index out of range in self")
    return rows_at(weight, i, n, padding_idx)


ROWS = np.ndarray, np.integer  # a single number among them: by an index it would get a view of the weights


def rows_at(weight, i, n, padding_idx):
    w, at = array_of(weight), array_of(i)
    rows = w.take(at, 0) if type(w) is np.ndarray and isinstance(at, ROWS) else picked(w, (at,))
    return record(Embedding, rows, (weight,), (i, n, padding_idx))


def within_rows(i, n):
    """Whether all indices of an array, not empty, are indices of n rows."""
    if type(i) is np.ndarray:
        return within(i, -1, n)
    return not violated(i, lambda i: ((i < 0) | (i >= n)).any())


def embedding_rule(g, indices, n, padding_idx):
    indices = array_of(indices).reshape(-1)
    g = reshape(g, (len(indices), array_of(g).shape[-1]))
    if padding_idx is not None:
        g = g * (indices != padding_idx).astype(array_of(g).dtype).reshape(-1, 1)
    return place(g, (n, array_of(g).shape[-1]), (indices,))


Embedding = node_class("EmbeddingBackward0", embedding_rule)
Embedding.linear = staticmethod(lambda _, t, *where: rows_at(t, *where))


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """input / max(norm, eps), with the p-norm over ``dim``."""
    size = reduce.norm(input, p, dim, keepdim=True)
    return e.div(input, expand_to(e.clamp_min(size, eps), array_of(input).shape))


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along ``dim``; norms are at least ``eps``."""
    dtype, eps = dtypes.promote_types(x1.dtype, x2.dtype), number(eps, "cosine_similarity", "eps", None, "float")
    if not dtype.is_floating_point:
        common = word(array_of(cast(x1, dtype.np)))
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common}")
    x1, x2 = (x if x.is_floating_point() else cast(x, dtype.np) for x in (x1, x2))
    if x1.shape != x2.shape:
        shape = broadcast_shape(x1.shape, x2.shape)
        x1, x2 = expand_to(x1, shape), expand_to(x2, shape)
    units = []
    for x in (x1, x2):
        size = clone(reduce.vector_norm(x, 2, dim, True))
        write(size, e.clamp_min(size.array, eps))  # the gradient does not see the lower bound, as in PyTorch
        units.append(e.div(x, size))
    return reduce.sum(mul(*units), dim)


def same_shape(a, b):
    """Both operands expanded to their common shape."""
    x, y = array_of(a).shape, array_of(b).shape
    if x == y:
        return a, b
    shape = broadcast_shape(x, y)
    return tuple(v if array_of(v).shape == shape else expand_to(v, shape) for v in (a, b))


# ---- activations


def activation(name, kernel, forward, rule, in_place="Backward0"):
    """An elementwise function of a floating tensor and of numbers: ``forward(x, *numbers)``, ``rule(g, x, *numbers)``.

    Half precision is computed in float32.  ``kernel``: PyTorch's name for it in the error for integers; ``in_place``:
    how the name of the node ends where the input is overwritten.
    """
    nodes = [node_class(camel(name) + end, rule) for end in ("Backward0", in_place)]
    for Class in nodes:
        Class.diagonal = True
        Class.rules = (lambda g, x, *numbers: blockwise(rule, (g, x), numbers),)

    def compute(x, *numbers):
        wide = accumulate_wider.get(x.dtype)
        return forward(x, *numbers) if wide is None else forward(x.astype(wide), *numbers).astype(x.dtype)

    def op(input, *numbers, inplace=False):
        x = array_of(input)
        check_floating(x, kernel)
        out = blockwise(compute, (x,), numbers)
        return into(input, record(nodes[inplace], out, (input,), (x, *numbers)), inplace)

    return register(name, "activation", op, rule)


def blockwise(compute, arrays, numbers=()):
    """``compute(*arrays, *numbers)``, element by element; large arrays in blocks."""
    if not is_large(arrays[0]):
        return compute(*arrays, *numbers) if not kernels else elementwise(compute, *arrays, *numbers)
    return in_blocks(lambda *blocks, into: compute(*blocks, *numbers), *arrays)


def check_floating(x, kernel):
    if x.dtype not in dtypes.differentiable:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{word(x)}'")


def log_sigmoid(x):
    """log(sigmoid(x)) of an array, without overflow."""
    xp = xp_of(x)
    return below(x) - xp.log1p(xp.exp(-abs(x)))


def above(x):
    return xp_of(x).maximum(x, 0)


def below(x):
    return xp_of(x).minimum(x, 0)


# the numbers of elu: scale * alpha * (exp(x * rate) - 1) below 0, scale * x above
elu_of = activation(
    "elu", "elu_cpu", lambda x, alpha, scale, rate: above(x) * scale + e.expm1(below(x) * rate) * (alpha * scale),
    lambda g, x, alpha, scale, rate: choose(
        gt(x, 0), g * scale, g * (exp(choose(e.ge(x, 0), 0.0, x) * rate) * (alpha * scale * rate))),
    "Backward1")  # fmt: skip
leaky_relu_of = activation("leaky_relu", "leaky_relu_cpu", lambda x, slope: above(x) + below(x) * slope,
                           lambda g, x, slope: choose(gt(x, 0), g, g * slope), "Backward1")  # fmt: skip
silu_of = activation("silu", "silu_cpu", lambda x: x * sigmoid(x), lambda g, x: silu_rule(g, x))
softplus_of = activation(
    "softplus", "softplus_cpu",
    lambda x, beta, threshold: choose(x * beta > threshold, x, log_sigmoid(x * -beta) / -beta),
    lambda g, x, beta, threshold: choose(gt(x * beta, threshold), g, g * sigmoid(x * beta)))  # fmt: skip
logsigmoid_of = activation("log_sigmoid", "log_sigmoid_cpu", log_sigmoid, lambda g, x: g * sigmoid(-x))


def silu_rule(g, x):
    s = sigmoid(x)
    return g * (s * (x * (1.0 - s) + 1.0))


def relu(input, inplace=False):
    """max(x, 0)"""
    out = e.relu(input)
    return into(input, out, inplace) if inplace else out


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x between ``min_val`` and ``max_val``, these beyond."""
    min_val, max_val = number(min_val, "hardtanh", "min_val", 2), number(max_val, "hardtanh", "max_val", 3)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    x = array_of(input)
    if x.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if x.dtype.kind == "u" and min_val < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    low, high = (x.dtype.type(v) for v in (min_val, max_val))
    out = xp_of(x).minimum(xp_of(x).maximum(x, low), high)
    return into(input, record(hardtanh_nodes[inplace], out, (input,), (x, min_val, max_val)), inplace)


hardtanh_nodes = [
    node_class(
        f"HardtanhBackward{i}", lambda g, x, low, high: choose(array_of(gt(x, low)) & array_of(e.lt(x, high)), g, 0.0)
    )
    for i in (0, 1)
]


def relu6(input, inplace=False):
    """min(max(x, 0), 6)"""
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x above 0, ``negative_slope`` * x below."""
    return leaky_relu_of(input, number(negative_slope, "leaky_relu", "negative_slope", 2), inplace=inplace)


def elu(input, alpha=1.0, inplace=False):
    """x above 0, ``alpha`` * (exp(x) - 1) below."""
    return elu_of(input, number(alpha, "elu", "alpha", 2), 1.0, 1.0, inplace=inplace)


def selu(input, inplace=False):
    """1.0507 * elu(x, 1.6733), the self-normalizing one."""
    return elu_of(input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0, inplace=inplace)


def silu(input, inplace=False):
    """x * sigmoid(x)"""
    return silu_of(input, inplace=inplace)


def gelu(input, *, approximate="none"):
    """x * cdf(x) of the normal distribution; ``approximate="tanh"``: by a hyperbolic tangent."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    x = array_of(input)
    check_floating(x, "GeluKernelImpl")
    recorded = mode.enabled and isinstance(input, Tensor) and input.node is not None
    if is_large(x):
        out, *slope = in_blocks(lambda x, into: gelu_arrays(x, approximate, recorded, into), x)
    else:
        out, *slope = elementwise(gelu_arrays, x, approximate, recorded)
    return record(Gelu, out, (input,), (x, approximate, *(slope or (None,))))


def gelu_arrays(x, approximate, slope, into=None):
    """GELU of an array and, if wanted, its derivative: while what both need is in the cache."""
    dtype, x = x.dtype, cast(x, accumulate_wider.get(x.dtype, x.dtype))
    exponent = x * -0.5
    exponent *= x
    cdf = normal_cdf(x, exponent, approximate)
    out = cast(xp_of(x).multiply(x, cdf, out=into if x.dtype == dtype else None), dtype)
    return (out, cast(gelu_slope(x, exponent, approximate, cdf), dtype)) if slope else (out,)


ROOT_HALF, ROOT_2_PI = math.sqrt(0.5), math.sqrt(2 / math.pi)

# The cdf is (1 + tanh(x * p(-x * x / 2))) / 2 with a polynomial p: that of (Hendrycks and Gimpel 2016), or for float32
# one by which it is right to 3e-8, from a weighted least squares fit to artanh(erf(x / sqrt(2))) / x below 6.  That
# takes a tenth of the time of erf, and the density needs the same exponent.
SERIES = {
    "tanh": (ROOT_2_PI, ROOT_2_PI * -0.08943),
    "none": (
        0.79788494146,
        -0.072666169148,
        -1.303799016e-4,
        4.4244955008e-4,
        6.34359108e-5,
        4.23242688e-6,
        1.1239492864e-7,
    ),
}


def normal_cdf(x, exponent, approximate):
    """The probability of less than x in the normal distribution; ``exponent``: -x * x / 2."""
    if approximate == "none" and (isinstance(x, Tensor) or x.dtype == np.float64):
        return (e.erf(x * ROOT_HALF) + 1.0) * 0.5
    first, *middle, last = SERIES[approximate]
    if isinstance(x, Tensor):
        return (tanh((exponent * last + first) * x) + 1.0) * 0.5
    out = exponent * last
    for c in reversed(middle):
        out += c
        out *= exponent
    out += first
    out *= x
    out = xp_of(out).tanh(out, out=out if out.ndim else None)
    out += 1.0
    out *= 0.5
    return out


def gelu_slope(x, exponent, approximate, cdf):
    """cdf + x * pdf, with the density that belongs to the cdf."""
    if approximate == "tanh":
        pdf, scale = (exponent * -0.26829 + 1.0) * cdf * (1.0 - cdf), 2.0 * ROOT_2_PI
    else:
        pdf, scale = exp(exponent), 0.5 * ROOT_2_PI
    if isinstance(x, Tensor):
        return cdf + pdf * scale * x
    pdf *= scale
    pdf *= x
    pdf += cdf
    return pdf


def gelu_rule(g, x, approximate, slope):
    """A pass that is recorded computes the slope anew."""
    if not isinstance(x, Tensor):
        return g * slope
    exponent = x * -0.5 * x
    return g * gelu_slope(x, exponent, approximate, normal_cdf(x, exponent, approximate))


Gelu = node_class("GeluBackward0", gelu_rule)


def softplus(input, beta=1, threshold=20):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above ``threshold``."""
    return softplus_of(input, number(beta, "softplus", "beta"), number(threshold, "softplus", "threshold"))


def logsigmoid(input):
    """log(sigmoid(x))"""
    return logsigmoid_of(input)


def softsign(input):
    """x / (1 + |x|)"""
    return e.div(input, e.add(e.abs(input), 1))


def tanhshrink(input):
    """x - tanh(x)"""
    return e.sub(input, tanh(input))


# ---- softmax


def softmax(input, dim, dtype=None):
    """exp(x) / sum(exp(x)) along ``dim``."""
    return normalized_exp("softmax", softmax_array, Softmax, input, dim, dtype)


def log_softmax(input, dim, dtype=None):
    """log(softmax(x)) along ``dim``, without overflow."""
    return normalized_exp("log_softmax", log_softmax_array, LogSoftmax, input, dim, dtype, log_softmax_parts)


def normalized_exp(name, compute, Backward, input, dim, dtype, parts=None):
    """``compute(x, axis, into)`` as an operation.

    ``parts(x, axis)``: the same, and arrays that spare its rule a pass; large ones would cost more to keep.  A capture
    keeps them too, so that it rounds as what it stands for.
    """
    if dtype is not None:
        input = cast(input, dtypes.given(dtype, name).np)
    x = in_order(array_of(input))
    axis = checked_dim(dim, x.ndim) if x.ndim else checked_dim(dim, 0) or None
    if x.dtype.kind != "f":  # or another floating type than NumPy's
        check_floating(x, f"{name}_lastdim_kernel_impl" if axis in (x.ndim - 1, None) else f"{name}_kernel_impl")
    wide, known = x.itemsize == 2 and accumulate_wider[x.dtype], ()
    if wide:
        out = in_rows(axis, lambda x, axis, into: compute(x.astype(wide), axis, None).astype(x.dtype), x)
    elif parts is None or (x.size >= THREADED and not any_size()):
        out = in_rows(axis, compute, x)
    else:
        out, *known = parts(x, axis)
    return record(Backward, out, (input,), (out, axis, *known))


def in_rows(axis, compute, *arrays):
    """``compute(*arrays, axis, into)``, in blocks: along the axis it computes in each row by itself."""
    if type(arrays[0]) in writers:
        return writers[type(arrays[0])]("in_rows", in_rows, axis, compute, *arrays)
    if not is_large(arrays[0]):
        return compute(*arrays, axis, None)
    back = axis - arrays[0].ndim
    return in_blocks(lambda *blocks, into=None: compute(*blocks, back, into), *arrays, row=-back)


def softmax_array(x, axis, into):
    out, sums = exponentials(x, axis, into=into)
    out /= sums
    return out


@one_step
def exponentials(x, axis, keep=None, into=None):
    """(exp(x), its sums along the axis), where that could overflow or vanish both divided by the largest exp(x).

    0 where not to ``keep``.  The sums tell: to look at them takes less time than to find the largest of many rows.
    """
    xp = xp_of(x)
    if type(x) is np.ndarray and x.size:
        out = xp.exp(x, out=into)
        if keep is not None:
            out *= keep.astype(out.dtype)
        sums = sums_along(out, axis)
        if within(sums, 1e-5, 1e20):
            return out, sums
    x = x if keep is None else xp.where(keep, x, -math.inf)
    top = extreme_along("max", x, axis)[0] if x.size and x.ndim else x
    out = xp.exp(x - xp.where(top == -math.inf, 0, top), out=into)
    return out, sums_along(out, axis)


def within(x, low, high):
    """Whether all elements are between two numbers; in a third of the time that min() and max() take."""
    return low < x.item(x.argmin()) and x.item(x.argmax()) < high


def log_softmax_array(x, axis, into):
    return log_softmax_arrays(x, axis, into)[0]


@one_step
def log_softmax_parts(x, axis):
    """(the result, the exponentials, their sums)"""
    return in_rows(axis, log_softmax_arrays, x) if is_large(x) else log_softmax_arrays(x, axis, None)


def log_softmax_arrays(x, axis, into):
    if not x.size:
        return x.copy(), x, x
    xp = xp_of(x)
    if type(x) is np.ndarray and x.dtype == np.float32:
        exps = xp.exp(x)
        sums = sums_along(exps, axis)
        if within(sums, 1e-3, 4e3):  # to subtract their logarithms rounds no worse than to subtract the largest of rows
            return difference(x, xp.log(sums), into), exps, sums
    out = difference(x, extreme_along("max", x, axis)[0] if x.ndim else x, into)
    exps = xp.exp(out)
    sums = sums_along(exps, axis)
    out -= xp.log(sums)
    return out, exps, sums


def in_wider(slope):
    """The same slope, computed in float32 for half precision: its sums would overflow."""

    def compute(g, out, axis, into):
        if array_of(out).itemsize > 2:
            return slope(g, out, axis, into)
        dtype = array_of(out).dtype
        wide = accumulate_wider[dtype]
        return cast(slope(cast(g, wide), cast(out, wide), axis, None), dtype)

    return compute


def softmax_rule(g, out, axis):
    return in_rows(axis, softmax_slope, g, out)


@in_wider
def softmax_slope(g, out, axis, into):
    away = difference(g, products_along(g, out, axis), into)
    if isinstance(away, Tensor):
        return away * out
    away *= out
    return away


def difference(x, y, into):
    """x - y, for arrays perhaps in the memory of a third one."""
    return x - y if into is None else xp_of(x).subtract(x, y, out=into)


def log_softmax_rule(g, out, axis, *known):
    """``known``: the exponentials and their sums; a pass that is recorded computes them anew."""
    if not known:
        return in_rows(axis, log_softmax_slope, g, out)
    exps, sums = known
    return g - exps * (sums_along(g, axis) / sums)


@in_wider
def log_softmax_slope(g, out, axis, into):
    return difference(g, exp(out) * sums_along(g, axis), into)


Softmax, SafeSoftmax = (node_class(name, softmax_rule) for name in ("SoftmaxBackward0", "SafeSoftmaxBackward0"))
LogSoftmax = node_class("LogSoftmaxBackward0", log_softmax_rule)


def safe_softmax(input):
    """softmax along the last dimension, with zeros for a row that is -inf everywhere: that of a query without keys."""
    return normalized_exp("softmax", safe_softmax_array, SafeSoftmax, input, -1, None)


def safe_softmax_array(x, axis, into):
    out, sums = exponentials(x, axis, into=into)
    out /= sums + (sums == 0)
    return out


# ---- losses


def reduced(loss, reduction):
    """(the reduced loss, what to multiply the cotangent of each element by); ValueError for an unknown reduction."""
    if reduction == "mean":
        return reduce.average(loss), 1.0 / (loss.size or 1)
    if reduction == "sum":
        return reduce.add_up(loss), 1.0
    if reduction == "none":
        return loss, 1.0
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy(size_average, reduce, reduction):
    """``reduction``, or what the two arguments mean that it replaced."""
    if size_average is None and reduce is None:
        return reduction
    new = "none" if reduce is False else "sum" if size_average is False else "mean"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{new}' instead.")
    return new


def check_reduction(reduction):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def by_reduction(loss, reduction):
    """The reduced loss of a loss that is made of operations."""
    check_reduction(reduction)
    return loss if reduction == "none" else reduce.sum(loss) if reduction == "sum" else reduce.mean(loss)


def alike(input, target):
    """(input, target, their arrays in one dtype): in one shape, with a warning where they had to be broadcast."""
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        warn(
            f"Using a target size ({Size(y.shape)}) that is different to the input size ({Size(x.shape)}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        )
        input, target = same_shape(input, target)
    dtype = dtypes.promoted[dtypes.of[x.dtype], dtypes.of[y.dtype]].np  # of what has dimensions by now
    return input, target, array_of(input).astype(dtype, copy=False), array_of(target).astype(dtype, copy=False)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean of (input - target)**2, or the sum, or each."""
    reduction = legacy(size_average, reduce, reduction)
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape or x.dtype is not y.dtype:
        input, target, x, y = alike(input, target)
    if weight is not None:
        return weighted(e.square(e.sub(input, target)), weight, reduction)
    check_floating(x, "mse_cpu")
    try:
        away = x - y
    except TypeError:
        one_device(x, y)
        raise
    out, scale = reduced(away * away, reduction)
    return record_converted(Mse, out, (input, target), (x, y, scale * 2.0))


Mse = node_class(
    "MseLossBackward0", lambda g, x, y, scale: (x - y) * (g * scale), lambda g, x, y, scale: (y - x) * (g * scale)
)


def weighted(loss, weight, reduction):
    """A loss times the weights of the elements; the mean divides by the sum of the weights."""
    if array_of(weight).shape != array_of(loss).shape:
        raise ValueError("Weights and input must have the same size.")
    loss = mul(loss, weight)
    if reduction == "mean":
        return e.div(reduce.sum(loss), reduce.sum(weight))
    return by_reduction(loss, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean of |input - target|, or the sum, or each."""
    reduction = legacy(size_average, reduce, reduction)
    input, target, _, _ = alike(input, target)
    away = e.abs(e.sub(input, target))
    return by_reduction(away, reduction) if weight is None else weighted(away, weight, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """d**2 / (2 * beta) where d = |input - target| is below ``beta``, else d - beta / 2."""
    reduction = legacy(size_average, reduce, reduction)
    beta = number(beta, "smooth_l1_loss", "beta", 4, "float")
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    input, target, x, y = alike(input, target)
    check_floating(x, "smooth_l1_cpu")
    away = abs(x - y)
    near = xp_of(away).minimum(away, beta)
    out, scale = reduced((near * (away - near * 0.5) / beta).astype(x.dtype, copy=False), reduction)
    return record_converted(SmoothL1, out, (input, target), (x, y, scale, beta))


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """d**2 / 2 where d = |input - target| is below ``delta``, else delta * (d - delta / 2)."""
    delta = number(delta, "huber_loss", "delta", 4, "float")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        loss = mul(huber_loss(input, target, "none", delta), weight)
        return by_reduction(loss, reduction)
    input, target, x, y = alike(input, target)
    check_floating(x, "huber_cpu")
    away = abs(x - y)
    near = xp_of(away).minimum(away, delta)
    out, scale = reduced((near * (away - near * 0.5)).astype(array_of(input).dtype, copy=False), reduction)
    return record_converted(Huber, out, (input, target), (x, y, scale, delta))


SmoothL1 = node_class("SmoothL1LossBackward0",
                      lambda g, x, y, scale, beta: hardtanh(x - y, -beta, beta) * (g * (scale / beta)),
                      lambda g, x, y, scale, beta: hardtanh(y - x, -beta, beta) * (g * (scale / beta)))  # fmt: skip
Huber = node_class("HuberLossBackward0",
                   lambda g, x, y, scale, delta: hardtanh(x - y, -delta, delta) * (g * scale),
                   lambda g, x, y, scale, delta: hardtanh(y - x, -delta, delta) * (g * scale))  # fmt: skip


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log(target) - input): ``input`` and, if ``log_target``, ``target`` are log probabilities."""
    if size_average is None and reduce is None and reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
        )
    if not isinstance(target, Tensor):
        raise creation.misfit(target, "kl_div", "target", 2, "Tensor")
    reduction = legacy(size_average, reduce, reduction)
    if (
        not dtypes.of[array_of(input).dtype].is_floating_point
        or not dtypes.of[array_of(target).dtype].is_floating_point
    ):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = mul(exp(target), e.sub(target, input))
    else:
        loss = e.sub(e.xlogy(target, target), mul(target, input))
    if reduction == "batchmean":
        loss = reduce_sum(loss)
        return e.div(loss, array_of(input).shape[0]) if array_of(input).ndim else loss
    return by_reduction(loss, reduction)


reduce_sum = reduce.sum  # the losses have an argument named reduce


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """The mean of -(t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))), or the sum, or each.

    ``weight`` multiplies each loss, ``pos_weight`` its first term; both broadcast.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce, reduction)
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        raise ValueError(f"Target size ({Size(y.shape)}) must be the same as input size ({Size(x.shape)})")
    if x.dtype is not y.dtype or x.dtype not in dtypes.differentiable:
        check_floating(x, "log_sigmoid_cpu")
        if y.dtype not in dtypes.differentiable:
            raise RuntimeError(f"result type {word(x)} can't be cast to the desired output type {word(y)}")
        input, target, x, y = alike(input, target)
    if weight is None and pos_weight is None:
        loss = logits_loss(x, y) if not kernels else elementwise(logits_loss, x, y)
        out, scale = reduced(loss, reduction)
        return record_converted(BCEWithLogits, out, (input, target), (x, y, scale))
    check_fixed("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    more = 0.0 if pos_weight is None else aligned(pos_weight, x) - 1.0
    weights = 1.0 if weight is None else aligned(weight, x)
    loss = elementwise(weighted_logits_loss, x, y, more, weights)
    out, scale = reduced(loss.astype(x.dtype, copy=False), reduction)
    return record_converted(WeightedBCEWithLogits, out, (input, target), (x, y, weights * scale, more))


def logits_loss(x, y):
    xp = xp_of(x)
    return xp.maximum(x, 0) - x * y + xp.log1p(xp.exp(-abs(x)))  # not of x: no overflow


def weighted_logits_loss(x, y, more, weights):
    return ((1.0 - y) * x - (more * y + 1.0) * log_sigmoid(x)) * weights


def check_fixed(name, **weights):
    for argument, weight in weights.items():
        if isinstance(weight, Tensor) and weight.requires_grad:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input cannot "
                "have requires_grad True."
            )


def aligned(weight, x):
    """The array of a weight that broadcasts to the shape of x."""
    w = array_of(weight)
    shape = broadcast_shape(w.shape, x.shape)
    if shape != x.shape:
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(shape)}")
    return w.astype(x.dtype)


BCEWithLogits = node_class("BinaryCrossEntropyWithLogitsBackward0",
                           lambda g, x, y, scale: (sigmoid(x) - y) * (g * scale),
                           lambda g, x, _y, scale: x * (g * -scale))  # fmt: skip
WeightedBCEWithLogits = node_class(
    "BinaryCrossEntropyWithLogitsBackward0",
    lambda g, x, y, scale, more: ((y * more + 1.0) * sigmoid(x) - (y * more + y)) * (g * scale),
    lambda g, x, _y, scale, more: (x + logsigmoid_of(x) * more) * (g * -scale))  # fmt: skip


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean of -(t * log(p) + (1 - t) * log(1 - p)), or the sum, or each; the logarithms are at least -100."""
    reduction = legacy(size_average, reduce, reduction)
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        raise ValueError(
            f"Using a target size ({Size(y.shape)}) that is different to the input size ({Size(x.shape)}) is "
            "deprecated. Please ensure they have the same size."
        )
    if x.dtype != y.dtype:
        raise RuntimeError(f"Found dtype {word(y)} but expected {word(x)}")
    check_floating(x, "binary_cross_entropy")
    check_fixed("binary_cross_entropy", weight=weight)
    for name, v in (("input", x), ("target", y)):
        if v.size and violated(v, lambda v: (~((v >= 0) & (v <= 1))).any()):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    weights = 1.0 if weight is None else aligned(weight, x)
    loss = (y - 1.0) * log_above(1.0 - x) - y * log_above(x)
    out, scale = reduced(loss * weights, reduction)
    return record(BCE, out.astype(x.dtype, copy=False), (input, target), (x, y, weights * scale))


def log_above(x):
    """log(x), and -100 where it is below."""
    return e.clamp_min(log(x), -100.0)


BCE = node_class("BinaryCrossEntropyBackward0",
                 lambda g, x, y, scale: (x - y) / e.clamp_min((1.0 - x) * x, 1e-12) * (g * scale),
                 lambda g, x, _y, scale: (log_above(1.0 - x) - log_above(x)) * (g * scale))  # fmt: skip


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """The mean of -input at the target's class, or the sum, or each.

    ``input``: (C), (N, C) or (N, C, ...) log probabilities; ``target``: as ``input`` without C.  ``weight``: one for
    each class, the mean divides by the sum over the targets.  Targets that are ``ignore_index`` count for nothing.
    """
    reduction = legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    x, t = array_of(input), array_of(target)
    return class_loss(input, x, t, weight, ignore_index, reduction)


def class_loss(input, x, t, weight, ignore_index, reduction):
    """``nll_loss`` of an input with the array x, of which the reduction is known to be one."""
    if x.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if weight is not None:
        check_fixed("nll_loss_forward" if x.ndim <= 2 else "nll_loss2d_forward", weight=weight)
    check_classes(x, t, array_of(weight))
    if x.ndim == 3 or x.ndim > 4:
        flat = reshape(input, (*x.shape[:2], 1, -1))
        out = picked_loss(flat, t.reshape(x.shape[0], 1, -1), weight, ignore_index, reduction)
        return reshape(out, t.shape) if reduction == "none" else out
    return picked_loss(input, t.reshape(()) if x.ndim == 1 else t, weight, ignore_index, reduction)


def check_classes(x, t, w):
    """PyTorch's errors for class targets that do not fit."""
    if x.ndim > 1 and (t.ndim == 0 or x.shape[0] != t.shape[0]):
        n = t.shape[0] if t.ndim else 0
        raise ValueError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({n}).")
    if x.ndim == t.ndim == 1 and t.size != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {t.size}")
    if x.ndim <= 2 and t.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if x.ndim == 4 and t.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {t.ndim}"
        )
    if x.ndim == 4 and t.shape[1:] != x.shape[2:]:
        raise RuntimeError(f"size mismatch (got input: {list(x.shape)} , target: {list(t.shape)}")
    if x.ndim > 2 and t.shape[1:] != x.shape[2:]:
        raise RuntimeError(f"Expected target size {[x.shape[0], *x.shape[2:]]}, got {list(t.shape)}")
    if t.dtype is not dtypes.int64.np and t.dtype != dtypes.uint8.np:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {word(t)}")
    classes = x.shape[x.ndim > 1]
    if w is not None and w.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(w.shape)}"
        )
    if w is not None and w.dtype != x.dtype:
        raise RuntimeError(f"expected scalar type {word(x)} but found {word(w)}")


def picked_loss(input, t, weight, ignore_index, reduction):
    """``nll_loss`` of (C), (N, C) or (N, C, H, W): minus the picked elements, weighted."""
    x, w = array_of(input), array_of(weight)
    xp, classes = xp_of(x), x.shape[x.ndim > 1]
    if device_names:
        one_device(x, t)  # CuPy would take indices from the host
    if w is None and not 0 <= ignore_index < classes and t.size and are_classes(t, classes):
        where = class_places(t, classes)
        out, share = reduced(-at(x, where), reduction)  # a sum of -0 is 0
        share = -share
    else:
        good = (t >= 0) & (t < classes)
        if 0 <= ignore_index < classes:
            good &= t != ignore_index
        bad = ~good & (t != ignore_index)
        if violated(bad, lambda bad: bad.any()):
            raise IndexError(f"Target {samples(t)[samples(bad)].reshape(-1)[0].item()} is out of bounds.")
        t = xp.where(good, t, 0)
        where = class_places(t, classes)
        weights = (good if w is None else xp.where(good, picked(w, (t,)), 0)).astype(x.dtype)
        loss = xp.where(good, at(x, where) * -weights, 0).astype(x.dtype)
        out, share = reduced(loss, "sum" if reduction == "mean" else reduction)[0], -weights
        if reduction == "mean":
            count = reduce.add_up(weights)
            out, share = out / count, share / (count + (count == 0))
    return record(NLLLoss if x.ndim <= 2 else NLLLoss2D, out, (input,), (t, x.shape, share, where))


def are_classes(t, n):
    """Whether all elements of an array, not empty, are one of n classes; not known of an array on a device."""
    if type(t) is np.ndarray:
        return within(t, -1, n)
    return type(t) not in device_names and samples((t >= 0) & (t < n)).all()


def class_places(t, n):
    """Where in the flattened array (N, n, ...) the elements of the classes t (N, ...) are."""
    if t.ndim == 0:
        return t
    if type(t) is np.ndarray and t.ndim == 1:
        return row_starts(np, t.shape, n, False) + t
    xp, size = xp_of(t), math.prod(t.shape[1:])
    rows = xp.arange(t.shape[0]).reshape(-1, *(1,) * (t.ndim - 1))
    return rows * (n * size) + t.astype(rows.dtype) * size + xp.arange(size).reshape(t.shape[1:])


def at(x, where):
    """The elements of the flattened array where it says."""
    return x.take(where) if type(x) is type(where) is np.ndarray else picked(x.reshape(-1), (where,))


def scatter(a, shape, where):
    """Zeros, with a where it says in the flattened array; no place comes twice."""
    v = array_of(a)
    out = blank(shape, v, where)
    out.reshape(-1)[where] = v
    return out if v is a else record(Scatter, out, (a,), (v.shape, where))


def gather(a, where):
    x = array_of(a)
    return record(Gather, at(x, where), (a,), (x.shape, where))


Scatter = node_class("ScatterBackward0", lambda g, shape, where: sum_to(gather(g, where), shape))
Gather = node_class("GatherBackward0", lambda g, shape, where: scatter(g, shape, where))
NLLLoss, NLLLoss2D = (
    node_class(name, lambda g, index, shape, share, where: scatter(g * share, shape, where))
    for name in ("NllLossBackward0", "NllLoss2DBackward0")
)


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """``nll_loss`` of ``log_softmax``; ``target``: class indices, or class probabilities in the shape of ``input``.

    ``label_smoothing`` mixes the target with the uniform distribution.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    x, t = array_of(input), array_of(target)
    label_smoothing = number(label_smoothing, "cross_entropy_loss", "label_smoothing", 6, "float")
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    axis = 0 if x.ndim <= 1 else 1
    if x.shape == t.shape:
        return probabilities_loss(input, target, weight, ignore_index, reduction, label_smoothing, axis)
    logs = log_softmax(input, axis)
    loss = class_loss(logs, x, t, weight, ignore_index, reduction)
    if label_smoothing == 0:
        return loss
    ignored = t == ignore_index
    smooth = logs if weight is None else mul(logs, along(weight, x, axis))
    smooth = zero_where(e.neg(reduce_sum(smooth, axis)), ignored)
    if reduction == "mean":
        counted = ~ignored if weight is None else array_of(weight)[t[~ignored]]
        smooth = e.div(reduce_sum(smooth), Tensor(counted.sum().astype(x.dtype)))
    elif reduction == "sum":
        smooth = reduce_sum(smooth)
    return e.add(times(loss, 1 - label_smoothing), times(smooth, label_smoothing / x.shape[axis]))


def probabilities_loss(input, target, weight, ignore_index, reduction, label_smoothing, axis):
    """``cross_entropy`` with class probabilities."""
    x, t, w = array_of(input), array_of(target), array_of(weight)
    if not dtypes.of[t.dtype].is_floating_point:
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {word(t)}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if w is not None and w.shape != (x.shape[axis],):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {x.shape[axis]} classes or no classes but "
            f"got weight tensor of shape: {list(w.shape)}"
        )
    if label_smoothing > 0:
        target = plus(times(target, 1 - label_smoothing), label_smoothing / x.shape[axis])
    loss = mul(log_softmax(input, axis), target)
    loss = loss if weight is None else mul(loss, along(weight, x, axis))
    if reduction == "none":
        return e.neg(reduce_sum(loss, axis))
    loss = e.neg(reduce_sum(loss))
    return divided(loss, x.size // x.shape[axis]) if reduction == "mean" else loss


def along(weight, x, axis):
    """A weight for each class, in a shape that broadcasts against x."""
    return reshape(weight, tuple(-1 if i == axis else 1 for i in range(x.ndim)))


def zero_where(a, mask):
    """a with zeros where the mask holds."""
    x = array_of(a)
    return record(MaskedFill, xp_of(x).where(mask, 0, x).astype(x.dtype), (a,), (mask,))


def times(a, number):
    x = array_of(a)
    return record(MulNumber, (x * number).astype(x.dtype, copy=False), (a,), (number,))


def plus(a, number):
    x = array_of(a)
    return record(AddNumber, (x + number).astype(x.dtype, copy=False), (a,), ())


def divided(a, number):
    x = array_of(a)
    return record(DivNumber, (x / number).astype(x.dtype, copy=False), (a,), (number,))


# PyTorch's own composites compute with C++ numbers, whose nodes have names of their own
AddNumber = node_class("AddBackward1", lambda g: g)
MulNumber = node_class("MulBackward1", lambda g, number: g * number)
DivNumber = node_class("DivBackward1", lambda g, number: g / number)
MaskedFill = node_class("MaskedFillBackward0", lambda g, mask: choose(mask, 0.0, g))

# ---- normalizations: over some axes, each group of elements to mean 0 and variance 1, then weight and bias


def normalized(Backward, input, weight, bias, shapes, axis, eps):
    """(the input normalized over ``axis``, the mean, the variance).

    ``shapes``: of the weight; of the weight and of the input where they are multiplied; of the input where it is
    normalized.
    """
    x, w, b = array_of(input), array_of(weight), array_of(bias)
    check_parameters(x, w, b)
    _, thin, whole, split = shapes
    wide = x if x.itemsize > 2 else cast(x, accumulate_wider[x.dtype])
    known = away, rate, _, groups, middle, variance = standardized(shaped(wide, split), axis, eps)
    if whole is split:
        out = away * groups.scaled(rate, w if w is None else shaped(w, thin))
    else:
        out = shaped(away * rate, whole)
        out = out if w is None else out * shaped(w, thin)
    if b is not None:
        out += shaped(b, thin)
    out = shaped(out, x.shape)
    if wide is not x:  # rounded it would not have mean 0 and variance 1
        known, out = None, cast(out, x.dtype)
    return record(Backward, out, (input, weight, bias), (x, w, shapes, axis, eps, known)), middle, variance


def check_parameters(x, *parameters):
    """PyTorch's errors for parameters in another dtype than x: beside half precision they may be float32."""
    for p in parameters:
        dtype = x.dtype if p is None else p.dtype
        if dtype is not x.dtype and dtype != x.dtype:
            if dtype != np.float32:
                raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
            if x.dtype not in accumulate_wider:
                raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def standardized(x, axis, eps):
    """(x - mean, 1 / standard deviation, 1 / variance, the groups, mean, variance) over axes, of an array or a Tensor.

    ``eps`` is added to the variance.
    """
    groups = groups_of(x, axis)
    middle = groups.mean(x)
    away = x - middle
    variance = groups.mean(away, away)
    precision = 1.0 / (variance + eps)
    return away, e.sqrt(precision), precision, groups, middle, variance


class Groups:
    """The elements of an array of some shape that share all indices but those of some axes; the last may be one.

    ``rate``: a number for each group, in axes of size 1.
    """

    def __init__(self, shape, axis):
        *others, self.last = axis
        self.others, self.size = tuple(others), reduce.count(shape, axis)

    def mean(self, a, b=None):
        """That of a, or of a * b, in each group."""
        n = 1 if self.others else self.size
        sums = sums_along(a, self.last, n) if b is None else products_along(a, b, self.last, n)
        return total(sums, self.others, True) / self.size if self.others else sums

    def scaled(self, rate, weight):
        return rate if weight is None else rate * weight

    def weighed(self, a, rate, whole, thin):
        """a * rate in the shape ``whole``, added up along the axes in which the shape ``thin`` is broadcast to it."""
        if len(thin) == 1:
            return sum_to(a, thin) * shaped(rate, thin) if rate.shape == (1, *thin) else sum_to(a * rate, thin)
        n, channels, _ = whole
        a = sums_along(shaped(a, whole), -1)
        a = shaped(a, (n, rate.shape[1], channels // rate.shape[1])) * rate
        return sum_to(shaped(a, (n, channels, 1)), thin)


class Rows(Groups):
    """The rows of an array that is a matrix: what BLAS does in half the time."""

    def scaled(self, rate, weight):
        return rate if weight is None else product(rate, weight[None])

    def weighed(self, a, rate, whole, thin):
        return rows_added(rate[:, 0], a)


class SmallRows(Rows):
    """Those of a small matrix of NumPy."""

    def __init__(self, shape, dtype):
        super().__init__(shape, (-1,))
        self.shares = column(np, shape[1], dtype, 1.0 / shape[1])

    def mean(self, a, b=None):
        return (a if b is None else a * b).dot(self.shares)

    def scaled(self, rate, weight):
        return rate.dot(weight[None]) if type(weight) is np.ndarray else super().scaled(rate, weight)


small_rows = lru_cache(maxsize=64)(SmallRows)


def groups_of(x, axis):
    """The groups over axes of an array or a Tensor."""
    if axis != (-1,) or isinstance(x, Tensor) or type(x) in batches:
        return Groups(x.shape, axis)
    return small_rows(x.shape, x.dtype) if is_quick_to_sum(x) else Rows(x.shape, axis)


def known_of(x, shapes, axis, eps):
    """What ``standardized`` finds, computed anew from x: for a pass that is recorded, or in half precision."""
    dtype = array_of(x).dtype
    return standardized(shaped(cast(x, accumulate_wider.get(dtype, dtype)), shapes[-1]), axis, eps)


def into_input(g, x, y, shapes, axis, eps, known):
    """The part of g (times the weight) that changes neither mean nor variance, over the standard deviation."""
    _, thin, whole, split = shapes
    fits = known is not None and not isinstance(x, Tensor)
    away, rate, precision, groups, _, _ = known if fits else known_of(x, shapes, axis, eps)
    g, y = shaped(g, whole), y if y is None else shaped(y, thin)
    u = g * groups.scaled(rate, y) if whole is split else shaped(g if y is None else g * y, split) * rate
    if type(u) is not type(away):
        groups = groups_of(u, axis)
    along = away * (groups.mean(u, away) * precision)
    if isinstance(u, Tensor):
        u = u - groups.mean(u) - along
    else:
        along += groups.mean(u)
        u -= along
    u = shaped(u, x.shape)
    return u if fits else cast(u, array_of(x).dtype)


def into_weight(g, x, y, shapes, axis, eps, known):
    own, thin, whole, split = shapes
    fits = known is not None and not isinstance(x, Tensor)
    away, rate, _, groups, _, _ = known if fits else known_of(x, shapes, axis, eps)
    a = shaped(g, split) * away
    if type(a) is not type(away):
        groups = groups_of(a, axis)
    into = shaped(groups.weighed(a, rate, whole, thin), own)
    return into if fits else cast(into, array_of(y).dtype)


def into_bias(g, _x, y, shapes, _axis, _eps, _known):
    own, thin, whole, _ = shapes
    into = shaped(sum_to(shaped(g, whole), thin), own)
    return into if y is None else cast(into, array_of(y).dtype)


def shaped(a, shape):
    """a in a shape."""
    return a if a.shape == shape else reshape(a, shape)


LayerNorm, BatchNorm, GroupNorm = (
    node_class(f"Native{kind}NormBackward0", into_input, into_weight, into_bias) for kind in ("Layer", "Batch", "Group")
)
FixedNorm = node_class("NativeBatchNormBackward0",
                       lambda g, _x, y, shape, _at, rate:
                           cast((g if y is None else g * reshape(y, shape)) * rate, array_of(g).dtype),
                       lambda g, x, _y, shape, at, rate: reshape(sum_to(g * ((x - at) * rate), shape), (-1,)),
                       lambda g, _x, _y, shape, _at, _rate: reshape(sum_to(g, shape), (-1,)))  # fmt: skip


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Each slice of the last dimensions, of shape ``normalized_shape``, normalized; weight and bias have that shape."""
    if isinstance(normalized_shape, int):
        raise TypeError("layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    shape, x, w, b = tuple(normalized_shape), array_of(input), array_of(weight), array_of(bias)
    if x.dtype not in dtypes.differentiable:  # calls that check nothing take a fortieth of the time of a small one
        check_floating(x, "LayerNormKernelImpl")
    if type(eps) is not float:
        eps = number(eps, "layer_norm", "eps", 5, "float")
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    if w is not None and w.shape != shape or b is not None and b.shape != shape:
        name, v = ("bias", b) if w is None or w.shape == shape else ("weight", w)
        raise RuntimeError(
            f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
            f"{list(v.shape)} and normalized_shape = {list(shape)}"
        )
    if x.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but "
            f"got input of size{list(x.shape)}"
        )
    n = math.prod(shape)
    rows = x.size // n if n else 0, n
    return normalized(LayerNorm, input, weight, bias, (shape, (n,), rows, rows), (-1,), eps)[0]


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """The channels (dimension 1) of each sample normalized in ``num_groups`` groups; weight and bias: one a channel."""
    x = array_of(input)
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    (n, channels), eps = x.shape[:2], number(eps, "group_norm", "eps", 5, "float")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.shape)} and num_groups={num_groups}"
        )
    for name, p in (("weight", array_of(weight)), ("bias", array_of(bias))):
        if p is not None and p.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(p.shape)} and input of shape {list(x.shape)}"
            )
    split = (n, num_groups, math.prod(x.shape[1:]) // num_groups)
    shapes = (channels,), (channels, 1), (n, channels, math.prod(x.shape[2:])), split
    return normalized(GroupNorm, input, weight, bias, shapes, (2,), eps)[0]


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):  # fmt: skip
    """Each channel (dimension 1) of each sample normalized by itself, or by the running statistics."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    (n, channels, *size), given = input.shape, (running_mean, running_var, weight, bias)
    copies = [v if v is None else repeat(v, (n,)) for v in given]
    together = view_to(contiguous(input), (1, n * channels, *size))
    out = batch_norm(together, *copies, use_input_stats, momentum, eps)
    for v, copy in zip(given[:2], copies) if use_input_stats else ():
        if v is not None:
            v.copy_(reduce.mean(view_to(copy, (n, channels)), 0))
    return view_to(out, (n, channels, *size))


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Each channel (dimension 1) normalized: over the batch in ``training``, else by the running statistics.

    Training moves the running statistics by ``momentum`` towards those of the batch, in place.
    """
    x = array_of(input)
    check_floating(x, "batch_norm")
    momentum = number(momentum, "batch_norm", "momentum", 7, "float")
    eps = number(eps, "batch_norm", "eps", 8, "float")
    channels = x.shape[1] if x.ndim > 1 else 0
    if training and x.size:
        checked_dim(1, x.ndim)
    if training and eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if training and math.prod(x.shape[:1] + x.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {Size(x.shape)}")
    arguments = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, v in arguments.items():
        if v is None and not training and name.startswith("running"):
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        if v is not None and array_of(v).size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {array_of(v).size}")
    check_parameters(x, *map(array_of, arguments.values()))
    shape = (channels, *(1,) * (x.ndim - 2))
    if not training:
        wide = accumulate_wider.get(x.dtype, x.dtype)
        middle = array_of(running_mean).reshape(shape).astype(wide)  # a copy: training may go on before
        rate = e.rsqrt(array_of(running_var).reshape(shape).astype(wide) + eps)
        out = (x - middle) * rate
        w, b = (v if v is None else array_of(v).reshape(shape) for v in (weight, bias))
        out = out if w is None else out * w
        out = cast(out if b is None else out + b, x.dtype)
        return record(FixedNorm, out, (input, weight, bias), (x, array_of(weight), shape, middle, rate))
    split, thin, axis = x.shape, (channels,), (0,)
    if x.ndim > 2:
        split, thin, axis = (*x.shape[:2], math.prod(x.shape[2:])), (channels, 1), (0, 2)
    out, middle, variance = normalized(BatchNorm, input, weight, bias, ((channels,), thin, split, split), axis, eps)
    n = x.size // channels if channels else 0
    if not n:
        return out
    if running_mean is not None:
        update(running_mean, middle.reshape(-1), momentum)
    if running_var is not None:
        update(running_var, variance.reshape(-1) * (n / max(n - 1, 1)), momentum)
    return out


def update(running, new, momentum):
    """Move a running statistic towards a new value."""
    if type(new) in batches and type(running.array) not in batches:
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
            "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, "
            "please see "
            "the functorch website for resources on how to patch your module to work with vmap"
        )
    write(running, running.array * (1 - momentum) + new.astype(running.array.dtype) * momentum)


for Class in (Mse, SmoothL1, Huber, BCEWithLogits, WeightedBCEWithLogits, BCE):
    Class.elementwise = True

NAMES = """linear dropout one_hot embedding normalize cosine_similarity relu6 hardtanh softsign tanhshrink softmax
log_softmax mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy_with_logits binary_cross_entropy
nll_loss cross_entropy layer_norm group_norm batch_norm instance_norm"""
for name in NAMES.split():
    register(name, "nn", globals()[name])
