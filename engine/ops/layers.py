"""Layers without state that are products or lookups: linear, embedding, one_hot."""

from ..arrays import dtypes
from ..arrays.dispatch import xp_of
from ..arrays.kernels.picking import rows_at
from ..arrays.kernels.products import product, product_plus, weighted_sum
from ..core.graph import mode, node_class
from ..core.linear import in_order, place, reshape
from ..core.record import array_of, record, register
from ..core.tensor import Tensor
from .elementwise import add
from .linalg import addmm_columns, matmul, mm
from .one_step import one_step_class, record_one_step
from .reduce import as_input
from .shape import turn, view_to
from .writes import size_error


def linear(input, weight, bias=None):
    """input @ weight.T + bias; ``input`` (..., in), ``weight`` (out, in), ``bias`` (out)."""
    x, w = array_of(input), array_of(weight)
    if bias is None:
        return matmul(input, transposed(weight))
    if x.ndim == 2:
        b, y = array_of(bias), w.T
        out = weighted_sum(b, product(x, y)) if x.itemsize > 2 else product_plus(b, x, y)
        if not mode.enabled:
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
    """Whether the rows of x and a bias go into one product."""
    return x.ndim == 2 or (b.ndim == 1 or b.ndim - b.shape.count(1) == 1) and x.flags.c_contiguous


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


def one_hot(tensor, num_classes=-1):
    """Rows of zeros with a 1 where the index points; int64, with a new last dimension."""
    x = array_of(tensor)
    if num_classes == -1:
        num_classes = int(x.max()) + 1
    out = xp_of(x).expand_dims(x, -1) == xp_of(x).arange(num_classes)
    return as_input(in_order(out.astype(dtypes.int64.np)), tensor)


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
        g = g * (indices != padding_idx).astype(array_of(g).dtype).reshape(-1, 1)
    return place(g, (n, array_of(g).shape[-1]), (indices,))


Embedding = node_class("EmbeddingBackward0", embedding_rule)
Embedding.linear = staticmethod(lambda _, t, *where: embedded(t, *where))


for function in (linear, one_hot, embedding):
    register(function.__name__, "nn", function)
