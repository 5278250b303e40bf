"""What holds for all shapes, dtypes and indices: Hypothesis chooses, NumPy is the oracle, PyTorch where it is there."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import engine

sixty = settings(max_examples=60)

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
OPERATIONS = [operator.add, operator.mul, operator.truediv, operator.sub, operator.lt, operator.eq]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def tensor(array, **options):
    return engine.from_numpy(np.ascontiguousarray(array).reshape(array.shape)).clone().requires_grad_(**options)


def whole_numbers(shape, seed):
    """Distinct float64 numbers: no result depends on rounding."""
    return np.random.default_rng(seed).permutation(np.arange(1.0, np.prod(shape, dtype=int) + 1)).reshape(shape)


@st.composite
def broadcastable(draw):
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
    return [*shapes.input_shapes, shapes.result_shape]


@sixty
@given(broadcastable(), st.sampled_from([operator.add, operator.sub, operator.mul]), st.integers(0, 99))
def test_broadcasting_sums_the_gradient_back_to_each_shape(shapes, operation, seed):
    a, b = whole_numbers(shapes[0], seed), whole_numbers(shapes[1], seed + 1)
    x, y = tensor(a, requires_grad=True), tensor(b, requires_grad=True)
    out = operation(x, y)
    assert out.shape == shapes[2]
    np.testing.assert_array_equal(out.detach().numpy(), operation(a, b))
    w = whole_numbers(shapes[2], seed + 2)
    out.backward(tensor(w, requires_grad=False))
    for t, local in ((x, b if operation is operator.mul else 1.0), (y, a if operation is operator.mul else 1.0)):
        sign = -1.0 if operation is operator.sub and t is y else 1.0
        np.testing.assert_array_equal(t.grad.numpy(), summed(sign * w * local, t.shape))


def summed(array, shape):
    """The sum of an array over the axes along which ``shape`` was repeated."""
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and array.shape[i] != 1)
    return array.sum(axis=axes, keepdims=True)


@sixty
@given(broadcastable(), st.tuples(*[st.sampled_from(DTYPES)] * 2), st.sampled_from(OPERATIONS), st.integers(0, 99))
def test_arithmetic_has_the_dtype_and_values_of_pytorch(shapes, dtypes, operation, seed):
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(seed)
    a, b = (random.integers(1, 5, s).astype(d) for s, d in zip(shapes[:2], dtypes, strict=True))
    try:
        want = operation(torch.from_numpy(a), torch.from_numpy(b))
    except RuntimeError as error:
        with pytest.raises(type(error)) as caught:
            operation(tensor(a, requires_grad=False), tensor(b, requires_grad=False))
        assert str(caught.value).split(". ")[0] == str(error).split(". ")[0]
        return
    got = operation(tensor(a, requires_grad=False), tensor(b, requires_grad=False))
    assert (repr(got.dtype), tuple(got.shape)) == (repr(want.dtype), tuple(want.shape))
    np.testing.assert_array_equal(got.numpy(), want.numpy())


@sixty
@given(st.data())
def test_shapes_that_do_not_fit_are_refused(data):
    a, b = data.draw(SHAPES), data.draw(SHAPES)
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(RuntimeError, match=r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)"):
            engine.ones(a) + engine.ones(b)
    else:
        assert (engine.ones(a) + engine.ones(b)).shape == shape


# ---- moving elements about


@st.composite
def moves(draw, shape):
    """A program of shape operations on a tensor of a shape: [(name, arguments)], in PyTorch's terms."""
    program = []
    x = np.empty(shape, np.int8)
    for _ in range(draw(st.integers(1, 4))):
        choices = ["reshape", "permute", "unsqueeze", "flip", "squeeze"] + ["expand"] * (1 in x.shape)
        name = draw(st.sampled_from(choices))
        if name == "reshape":
            sizes = draw(st.sampled_from([x.shape[::-1], (x.size,), (1, x.size), (x.size, 1), x.shape]))
            arguments = (tuple(sizes),)
        elif name == "permute":
            arguments = (tuple(draw(st.permutations(range(x.ndim)))),)
        elif name == "unsqueeze":
            arguments = (draw(st.integers(-x.ndim - 1, x.ndim)),)
        elif name == "flip":
            arguments = (draw(st.lists(st.integers(0, x.ndim - 1), unique=True, max_size=x.ndim)) if x.ndim else [],)
        elif name == "expand":
            arguments = (tuple(3 if n == 1 else n for n in x.shape),)
        else:
            arguments = ()
        program.append((name, arguments))
        x = NUMPY[name](x, *arguments)
    return program


NUMPY = {
    "reshape": lambda x, s: x.reshape(s),
    "permute": lambda x, dims: x.transpose(dims),
    "unsqueeze": lambda x, dim: np.expand_dims(x, dim),
    "flip": lambda x, dims: np.flip(x, dims),
    "expand": lambda x, s: np.broadcast_to(x, s),
    "squeeze": lambda x: x.squeeze(),
}


@sixty
@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
def test_a_program_of_moves_puts_each_element_where_numpy_does_and_brings_its_gradient_back(data, shape):
    program = data.draw(moves(shape))
    a = whole_numbers(shape, 0)
    x = tensor(a, requires_grad=True)
    out, want, places = x, a, np.arange(a.size).reshape(shape)
    for name, arguments in program:
        out = getattr(out, name)(*arguments)
        want, places = NUMPY[name](want, *arguments), NUMPY[name](places, *arguments)
    assert out.shape == want.shape
    np.testing.assert_array_equal(out.detach().numpy(), want)
    w = whole_numbers(want.shape, 1)
    (out * tensor(w, requires_grad=False)).sum().backward()
    expected = np.zeros(a.size)
    np.add.at(expected, places.reshape(-1), w.reshape(-1))
    np.testing.assert_array_equal(x.grad.numpy(), expected.reshape(shape))


# ---- indexing


@st.composite
def indices(draw, shape):
    """An index that PyTorch and NumPy read alike: forward slices, None, ..., and integers or else arrays and masks.

    (To NumPy an integer beside an array is one more array, to PyTorch it is a dim less.)
    """
    index, dim = [], 0
    kinds = draw(st.sampled_from([["int"], ["array", "mask"]]))
    n = draw(st.integers(0, len(shape)))
    together = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=3))
    while dim < n:
        size = shape[dim]
        kind = draw(st.sampled_from(["slice", "none", *kinds * (size > 0)]))
        if kind == "none":
            index.append(None)
            continue
        if kind == "int":
            index.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            ends = st.none() | st.integers(-size - 1, size + 1)
            index.append(slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 3))))
        elif kind == "array":
            index.append(draw(hnp.arrays(np.int64, together, elements=st.integers(-size, size - 1))))
        else:
            mask = np.zeros(size, bool)
            mask[draw(st.integers(0, size - 1))] = True  # one element: it broadcasts with every array
            index.append(mask)
        dim += 1
    if n == len(shape) and draw(st.booleans()):
        index.insert(draw(st.integers(0, len(index))), ...)
    return tuple(index)


def as_tensors(index):
    return tuple(engine.from_numpy(i.copy()) if isinstance(i, np.ndarray) else i for i in index)


@sixty
@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
def test_reading_by_any_index_is_numpys_and_its_gradient_adds_up_where_it_was_read(data, shape):
    index = data.draw(indices(shape))
    a = whole_numbers(shape, 0)
    x = tensor(a, requires_grad=True)
    out, want = x[as_tensors(index)], a[index]
    assert out.shape == want.shape
    np.testing.assert_array_equal(out.detach().numpy(), want)
    w = whole_numbers(want.shape, 1)
    (out * tensor(np.asarray(w), requires_grad=False)).sum().backward()
    expected = np.zeros(shape)
    np.add.at(expected, index, w)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@sixty
@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
def test_writing_by_any_index_is_numpys_and_cuts_the_gradient_where_it_was_written(data, shape):
    index = data.draw(indices(shape))
    a = whole_numbers(shape, 0)
    places = np.arange(a.size).reshape(shape)[index]
    if np.unique(places).size != places.size:
        return  # which of two values written to one place stays is nobody's promise
    x, value = tensor(a, requires_grad=True), engine.tensor(2.0, requires_grad=True, dtype=engine.float64)
    out, want = x * 1, a.copy()
    out[as_tensors(index)] = value
    want[index] = 2.0
    np.testing.assert_array_equal(out.detach().numpy(), want)
    w = whole_numbers(shape, 1)
    (out * tensor(w, requires_grad=False)).sum().backward()
    written = np.zeros(shape, bool)
    written[index] = True
    np.testing.assert_array_equal(x.grad.numpy(), np.where(written, 0.0, w))
    assert value.grad is None or value.grad.item() == w[written].sum()
