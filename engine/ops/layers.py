"""Layers without state: linear, embedding, one_hot, dropout."""

import math

from ..arrays import dtypes
from ..arrays.devices import random_source
from ..arrays.dispatch import xp_of
from ..arrays.kernels.indexing import counts_at, largest_rows, placed, rows_at
from ..arrays.kernels.products import product, product_plus, weighted_sum
from ..arrays.kernels.views import contiguous_array
from ..core.graph import mode as recording
from ..core.graph import node_class
from ..core.linear import cast, reshape, sum_axes
from ..core.record import array_of, record
from ..core.tensor import Tensor
from .activations import into
from .elementwise import add, choose, mul
from .index import setitem
from .linalg import addmm_columns, matmul, mm
from .one_step import one_step_class, record_one_step
from .reduce import as_input, vector_norm
from .rows import pick, place, register, widened
from .shape import turn, undone, view_to
from .writes import size_error


def linear(input, weight, bias=None):
    """input @ weight.T + bias; ``input`` (..., in), ``weight`` (out, in), ``bias`` (out)."""
    x, w = array_of(input), array_of(weight)
    if bias is None:
        return matmul(input, transposed(weight))
    if x.ndim == 2:
        b, y = array_of(bias), w.T
        out = weighted_sum(b, product(x, y)) if x.itemsize > 2 else product_plus(b, x, y)
        if not recording.enabled:
            return Tensor(out)
        return record_one_step(Linear, out, (bias.node, input.node, weight.node), (b.shape, x, y, 1, 1), w.shape)
    if not in_one_product(x, array_of(bias)):
        rows = matmul(input, transposed(weight))
        out = add(rows, bias)
        if array_of(out).shape != array_of(rows).shape:
            raise size_error(array_of(rows), array_of(out).shape)
        return out
    out = addmm_columns(bias, reshape(input, (-1, x.shape[-1])), transposed(weight))
    return view_to(out, (*x.shape[:-1], array_of(out).shape[-1]))


def in_one_product(x, b):
    """Tell whether the rows of x and a bias go into one product."""
    return x.ndim == 2 or (b.ndim == 1 or b.ndim - b.shape.count(1) == 1) and x.flags.c_contiguous


def transposed(weight):
    """Return the transpose of a weight; no program can write into this view, so its base need not know it."""
    return Tensor(weight.array.T, node_of_transposed(weight.node, weight.array.shape) if recording.enabled else None)


def node_of_transposed(node, shape):
    return node and T((node,), (shape,))


T = node_class("TBackward0", lambda g, _: turn(g), linear=staticmethod(lambda _, t, shape: turn(t)))
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


def one_hot(tensor, num_classes=-1):
    """Rows of zeros with a 1 where the index points; int64, with a new last dimension."""
    x = array_of(tensor)
    if num_classes == -1:
        num_classes = int(x.max()) + 1
    out = xp_of(x).expand_dims(x, -1) == xp_of(x).arange(num_classes)
    return as_input(contiguous_array(out.astype(dtypes.int64.np)), tensor)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of ``weight`` that ``input`` points to; the row ``padding_idx`` gets no gradient."""
    n = array_of(weight).shape[0]
    padding_idx = None if padding_idx is None else padding_idx % n
    return embedded(weight, input, n, padding_idx)


def embedded(weight, i, n, padding_idx):
    i = array_of(i)
    return record(Embedding, rows_at(array_of(weight), i), (weight,), (i, n, padding_idx))


def embedding_rule(g, indices, n, padding_idx):
    indices = array_of(indices).reshape(-1)
    g = reshape(g, (len(indices), array_of(g).shape[-1]))
    if padding_idx is not None:
        g = cast(choose((indices != padding_idx).reshape(-1, 1), g, 0.0), array_of(g).dtype)
    return place(g, (n, array_of(g).shape[-1]), (indices,))


Embedding = node_class("EmbeddingBackward0", embedding_rule)
Embedding.linear = staticmethod(lambda _, t, *where: embedded(t, *where))


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):  # fmt: skip
    """The sum, mean or maximum of the rows of ``weight`` that each bag of indices points to; of an empty one 0."""
    w, i, y = array_of(weight), array_of(input).reshape(-1), per_sample_weights
    if max_norm is not None:
        shorten(weight, i, max_norm, norm_type)
    n = w.shape[0]
    starts = xp_of(i).arange(input.shape[0]) * input.shape[1] if offsets is None else array_of(offsets)
    starts = starts[:-1] if include_last_offset and offsets is not None else starts
    there = None if padding_idx is None else i != padding_idx % n
    kept = (xp_of(i).ones(i.shape, bool) if there is None else there).astype(w.dtype)
    if mode == "max" or not len(starts):
        out, rows, some = largest_rows(w, i, kept != 0, starts)
        return record(BagMaximum, out, (weight, None), (w.shape, rows, some))
    xp, size = xp_of(starts), len(starts)
    bags = xp.searchsorted(starts, xp.arange(len(i)), "right") - 1  # the bag that each index is in
    share = kept / counts_at(bags, kept, size) if mode == "mean" else kept
    back = share / counts_at(i, xp_of(i).ones(i.shape, w.dtype), n) if scale_grad_by_freq else share
    y = reshape(y, (-1,)) if y is not None and y.ndim > 1 else y
    terms = counted(rows_at(w, i) * column(share if y is None else share * array_of(y)), there)
    out = placed(widened(terms), (size, w.shape[1]), (bags,)).astype(w.dtype)
    return record(Bags, out, (weight, y), (w, array_of(y), i, bags, share, back, there))


def column(x):
    return reshape(x, (-1, 1))


def counted(terms, there):
    """Terms, with zeros for the padding; ``there`` is None where there is none."""
    return terms if there is None else cast(choose(column(there), terms, 0.0), array_of(terms).dtype)


def bag_weight_rule(g, shape, factors, indices, bags, there):
    return place(counted(pick(g, (bags,)) * column(factors), there), shape, (array_of(indices),))


# of the weight, and of the weights of samples
Bags = node_class("EmbeddingBagBackward0",
                  lambda g, x, y, index, bags, _share, back, there: bag_weight_rule(
                      g, array_of(x).shape, back if y is None else y * back, index, bags, there),
                  lambda g, x, _y, index, bags, share, _back, there: sum_axes(
                      counted(pick(g, (bags,)) * pick(x, (array_of(index),)), there), 1) * share)  # fmt: skip
BagMaximum = node_class("EmbeddingBagBackward0",
                        lambda g, shape, rows, some: place(cast(choose(some, g, 0.0), array_of(g).dtype), shape, (
                            rows, xp_of(rows).arange(shape[1]))),
                        lambda g, _shape, _rows, _some: None)  # fmt: skip


def shorten(weight, i, longest, p):
    """Let no row that indices point to be longer than ``longest``, in the p-norm: written into the weight."""
    rows = rows_at(weight.array, i)
    norms = vector_norm(rows, p, 1, True)
    recorded, recording.enabled = recording.enabled, False
    try:
        setitem(weight, Tensor(i), Tensor(choose(norms > longest, rows * (longest / (norms + 1e-7)), rows)))
    finally:
        recording.enabled = recorded


# ---- dropout: of elements, of whole channels, and that which keeps the distribution as it is


def noise(x, p):
    """Draw the factors of dropout: 0 with probability ``p``, else 1 / (1 - p)."""
    order = sorted(range(x.ndim), key=lambda d: -x.strides[d])  # numbers are drawn as x lies in memory
    return random_source(x).dropout_mask(None, tuple(x.shape[d] for d in order), x.dtype, p).transpose(undone(order))


def feature_noise(x, p):
    """One such number for each channel, dimension 1."""
    return random_source(x).dropout_mask(None, (*x.shape[:2], *(1,) * (x.ndim - 2)), x.dtype, p)


def masked(input, p, training, inplace, draw):
    """The input times what ``draw`` gives, in training."""
    x = array_of(input)
    if p == 0 or not training or not x.size:
        return input
    return into(input, mul(input, Tensor(draw(x, p))), inplace)


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability ``p`` and scale the others by 1 / (1 - p), in training."""
    return masked(input, p, training, inplace, noise)


def feature_dropout(input, p, train, inplace=False):
    """Dropout of whole channels: (N, C, ...)."""
    return masked(input, p, train, inplace, feature_noise)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    return batched(input, p, training, inplace, 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, H, W)."""
    return feature_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return batched(input, p, training, inplace, 5)


def batched(input, p, training, inplace, ndim):
    """Dropout of channels of an input that may lack the dimension of the batch."""
    if input.ndim == ndim:
        return feature_dropout(input, p, training, inplace)
    if inplace:
        return feature_dropout(input.unsqueeze_(0), p, training, True).squeeze_(0)
    return feature_dropout(input.unsqueeze(0), p, training).squeeze(0)


SATURATED = 1.7580993408473766  # SELU's limit below, negated


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of what SELU gives (Klambauer et al., 2017)."""
    x = array_of(input)
    if not p or not training or not x.size:
        return input
    if p == 1:
        return into(input, mul(input, Tensor(xp_of(x).zeros((), x.dtype))), inplace)
    kept = (noise(x, p) != 0).astype(x.dtype)
    scale = 1 / math.sqrt((SATURATED**2 * p + 1) * (1 - p))
    shift = (kept - 1) * x.dtype.type(SATURATED * scale) + x.dtype.type(SATURATED * scale * p)
    return into(input, add(mul(input, Tensor(kept * x.dtype.type(scale))), Tensor(shift)), inplace)


for name in ("linear", "one_hot", "embedding", "embedding_bag", "dropout", "alpha_dropout"):
    register(name, "nn", globals()[name])
