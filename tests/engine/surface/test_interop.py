"""Tensors beside other libraries: NumPy, DLPack, copies and pickles, matplotlib, scikit-learn."""

import copy
import math
import pickle

import numpy as np
import pytest
from over_tables import over

import engine

# What both libraries must do alike: a program, whose last line is compared by its repr, or its error by type and words.
PROGRAMS = """
x = t.zeros(3); a = x.numpy(); x.add_(1); a[0] = 5; a.tolist(), x.tolist()
a = np.zeros(3); x = t.from_numpy(a); a[1] = 2; x[0] = 7; a.tolist(), x.tolist()
a = np.zeros((2, 3), np.float32).T; x = t.from_numpy(a); x.stride(), x.dtype, x.is_contiguous()
t.from_numpy(np.arange(3)[::-1])
t.from_numpy([1, 2])
x = t.tensor(3.0); x.numpy().shape, np.asarray(x).shape, float(x), np.sin(x)
x = t.zeros(3, requires_grad=True); x.numpy()
x = t.zeros(3, requires_grad=True); x.numpy(force=True)
t.no_grad()(lambda x: (x.numpy(), (x * 2).numpy(), np.asarray(x)))(t.zeros(3, requires_grad=True))
t.inference_mode()(lambda x: (x.numpy(), np.asarray(x)))(t.zeros(3, requires_grad=True))
t.zeros(3, dtype=t.bfloat16).numpy()
x = t.zeros(3); a = np.asarray(x); a[0] = 5; x
x = t.zeros(3); a = np.array(x); a[0] = 5; x
x = t.zeros(3); np.asarray(x, dtype=np.float64).dtype, np.array(x, dtype=np.int8).dtype
x = t.zeros(3, requires_grad=True); np.asarray(x)
x = t.ones(2); np.sin(x), np.add(x, 1)
x = t.ones(2); x + np.ones(2, np.float32), np.float64(2) * x
x = t.zeros(3); a = np.from_dlpack(x); x[0] = 3; a.tolist()
a = np.zeros(3); x = t.from_dlpack(a); a[0] = 3; x[1] = 4; a.tolist(), x.tolist()
x = t.zeros(3); y = t.from_dlpack(x); y[0] = 3; x
x = t.zeros(2, 3).T; y = t.from_dlpack(x); y.stride(), y.dtype
x = t.zeros(2, requires_grad=True); x.__dlpack__()
x = t.zeros(2); int(x.__dlpack_device__()[0]), x.__dlpack_device__()[1]
x = t.ones(2, requires_grad=True); y = copy.deepcopy(x); y is x, y, y.is_leaf
x = t.ones(2, requires_grad=True); y = copy.copy(x); y is x, y, y.data_ptr() == x.data_ptr()
x = t.zeros(2); d = copy.deepcopy({"a": x, "b": x}); d["a"] is d["b"], d["a"] is x
x = t.zeros(4); d = copy.deepcopy([x, x[1:3], x.view(2, 2).t()]); d[0][1] = 1; d, x
x = t.ones(2, 3).t(); copy.deepcopy(x).stride(), pickle.loads(pickle.dumps(x)).stride()
x = t.ones(2, requires_grad=True); x.grad = t.ones(2); copy.deepcopy(x).grad
x = t.ones(2, requires_grad=True) * 2; copy.deepcopy(x)
x = t.ones(2, requires_grad=True) * 2; pickle.loads(pickle.dumps(x)).is_leaf
x = t.zeros(4); d = pickle.loads(pickle.dumps([x, x])); d[0] is d[1], d
x = t.tensor([1, 2], dtype=t.bfloat16); pickle.loads(pickle.dumps(x))
p = t.nn.Parameter(t.ones(2)); q = pickle.loads(pickle.dumps(p)); type(q).__name__, q
p = t.nn.Parameter(t.ones(2)); q = copy.deepcopy(p); type(q).__name__, q, q is p
p = t.nn.Parameter(t.ones(2)); q = copy.copy(p); type(q).__name__, q.requires_grad
p = t.nn.Parameter(t.ones(2)); d = copy.deepcopy([p, p]); d[0] is d[1]
m = t.nn.Linear(2, 2); n = copy.deepcopy(m); m.weight.equal(n.weight), n.weight is m.weight, type(n.weight).__name__
t.tensor([t.tensor(1), t.tensor(2)]), t.tensor(np.float32(3)).dtype, t.as_tensor(np.arange(2)).dtype
list(np.array([t.tensor(1.0), t.tensor(2.0)]))
"""
CASES = [line for line in PROGRAMS.splitlines() if line]


def played(t, program):
    names = {"t": t, "np": np, "copy": copy, "pickle": pickle}
    *lines, last = program.split("; ")
    try:
        exec("\n".join(lines), names)
        return repr(eval(last, names))
    except Exception as e:  # whatever it is, it is compared
        return type(e).__name__, str(e).partition(". ")[0]


@over("program", CASES)
def test_program_as_pytorch(program):
    torch = pytest.importorskip("torch")
    assert played(engine, program) == played(torch, program)


def test_memory_is_shared_with_pytorch_both_ways():
    torch = pytest.importorskip("torch")
    mine = engine.zeros(2, 3)
    theirs = torch.from_dlpack(mine)
    theirs[0, 0], mine[1, 1] = 1.0, 2.0
    assert mine.tolist() == theirs.tolist() == [[1, 0, 0], [0, 2, 0]]
    back = engine.from_dlpack(theirs.t())
    back[2, 1] = 3.0
    assert mine[1, 2] == 3.0 and back.stride() == (1, 3)


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_arrays_of_derived_types_share_their_memory(name, tmp_path):
    t = pytest.importorskip(name)
    mapped = np.memmap(tmp_path / "data", np.float64, "w+", shape=(3,))
    for array in (mapped, np.ma.zeros(3), np.rec.array(np.zeros(3))):
        x = t.from_numpy(array)
        x[1:].add_(2)
        assert x.dtype is t.float64 and array.tolist() == x.tolist() == [0.0, 2.0, 2.0]


def test_a_copy_of_an_array_is_made_only_where_one_is_asked_for():
    x = engine.zeros(3)
    assert np.asarray(x, copy=False) is x.numpy()
    assert not np.shares_memory(np.asarray(x, copy=True), x.numpy())
    assert not np.shares_memory(np.asarray(x, dtype=np.float64), x.numpy())
    with pytest.raises(ValueError, match="[Cc]opy"):
        np.asarray(x, dtype=np.float64, copy=False)


def test_an_array_times_a_tensor_is_a_tensor():
    x = engine.ones(2, requires_grad=True)
    y = np.array([2.0, 3.0], np.float32) * x
    y.sum().backward()
    assert isinstance(y, engine.Tensor) and x.grad.tolist() == [2.0, 3.0]


def test_a_deep_copy_of_a_graph_is_refused_and_leaves_the_tensor_alone():
    x = engine.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)
    assert copy.deepcopy(x).requires_grad


def test_matplotlib_draws_tensors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2)
    x = engine.linspace(0, 1, 5)
    (line,) = left.plot(x, x**2)
    left.scatter(x, engine.sin(x))
    left.hist(x)
    left.fill_between(x, x - 1, x + 1)
    image = right.imshow(engine.arange(6.0).reshape(2, 3))
    assert line.get_ydata().tolist() == (x**2).tolist()
    assert image.get_array().tolist() == [[0, 1, 2], [3, 4, 5]]
    pyplot.close(figure)


def test_scikit_learn_fits_tensors():
    linear_model = pytest.importorskip("sklearn.linear_model")
    x = engine.arange(8.0).reshape(-1, 1)
    model = linear_model.LinearRegression().fit(x, 3 * x[:, 0] + 1)
    assert model.score(x, 3 * x[:, 0] + 1) > 0.999
    assert engine.from_numpy(model.predict(x)).allclose(3 * x[:, 0] + 1, atol=1e-4)


@pytest.mark.parametrize("lose", [float, math.sqrt, lambda x: engine.tensor([x * 2, 1.0])])
def test_a_number_that_leaves_its_past_behind_is_warned_of(lose):
    """In PyTorch's words; there once in a program, here once in each place."""
    x = engine.tensor(2.0, requires_grad=True)
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar may lead to"):
        lose(x)


def test_a_number_without_a_past_is_not_warned_of():
    x = engine.tensor(2.0, requires_grad=True)
    with engine.no_grad():
        float(x)
    float(x.detach()), x.item(), x.tolist(), engine.tensor([x.detach()])
