"""Hooks on saved tensors: what is packed and unpacked and when, what may go wrong, and that nobody else notices."""

import gc
import threading
import weakref

import numpy as np
import pytest
from test_autograd import FREED, leaf, raises

import engine
from engine.core import graph
from engine.core.observers import observers

OPERATIONS = """x * y | x * 2 | x / y | x + y | x ** 2 | x @ w | x.sin().cos() | (x * y) * (x + y) | x.sum() * x.sum()
F.linear(x, w.t(), b) | F.mse_loss(x, y) | t.where(x > 0, x, y) | x.maximum(y) | F.conv1d(x[None], c) | x[[0, 0]]
F.linear(x, w.t(), b).relu() | x.exp() | x.softmax(1).log() | x.tanh() * x | x.std() | x.prod(1) | x.max(1).values
Square.apply(x) | x.clone().mul_(y) | (x * 1).exp_()"""


@pytest.fixture(params=["engine", "torch"])
def t(request):
    """The library under test."""
    return pytest.importorskip(request.param)


def run(t, operation, hooks):
    """(result, first gradients, second ones) of an operation whose saved tensors go through hooks."""

    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y / x * 2

    shapes = {"x": (2, 3), "y": (2, 3), "w": (3, 2), "b": (2,), "c": (1, 2, 1)}
    leaves = {name: (t.arange(1.0, t.ones(shape).numel() + 1) / 7).reshape(shape) for name, shape in shapes.items()}
    leaves = {name: x.double().requires_grad_() for name, x in leaves.items()}
    with t.autograd.graph.saved_tensors_hooks(*hooks):
        result = eval(operation, {"t": t, "F": t.nn.functional, "Square": Square, **leaves})
    find = lambda of, again: t.autograd.grad(of, list(leaves.values()), create_graph=again, allow_unused=True)  # noqa: E731
    first = find((result * result).sum(), True)
    second = find(sum((g * g).sum() for g in first if g is not None), False)
    return [None if g is None else g.tolist() for g in (result, *first, *second)]


@pytest.mark.parametrize("operation", [o.strip() for o in OPERATIONS.replace("\n", "|").split("|")])
def test_what_is_packed_as_pytorch_packs_it(operation):
    pytest.importorskip("torch")
    found = []
    for name in ("engine", "torch"):
        t, seen = pytest.importorskip(name), []

        def pack(x, seen=seen):
            seen.append(("packed", tuple(x.shape)))
            return "kept", x.detach().clone()

        def unpack(kept, seen=seen):
            seen.append(("unpacked", tuple(kept[1].shape)))
            return kept[1]

        found.append((run(t, operation, (pack, unpack)), "_(" in operation or sorted(seen)))
    (mine, seen), (theirs, expected) = found
    assert seen == expected
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(0 if a is None else a, 0 if b is None else b, 1e-7, 1e-9)  # no gradient is one of 0


def test_what_unpack_returns_is_used(t):
    x = leaf(t, 3.0)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v * 2, lambda v: v + 1):
        y = x * x
    assert y.grad_fn._saved_self.tolist() == [7.0] and y.grad_fn.name() == type(y.grad_fn).__name__ == "MulBackward0"
    y.backward()
    assert x.grad.tolist() == [14.0]


def test_the_leaf_itself_is_packed(t):
    w, seen = t.nn.Parameter(t.ones(2)), []
    with t.autograd.graph.saved_tensors_hooks(lambda v: seen.append(v) or v, lambda v: v):
        w * leaf(t, 1.0, 2.0)
    assert any(v is w for v in seen) and all(v.requires_grad for v in seen)


def test_the_innermost_block_counts(t):
    x, seen = leaf(t, 1.0), []
    hooks = [(lambda v, name=name: seen.append(name) or v, lambda v: v) for name in "ab"]
    with t.autograd.graph.saved_tensors_hooks(*hooks[0]):
        with t.autograd.graph.saved_tensors_hooks(*hooks[1]):
            x.exp()
        x.sin()
    x.cos()
    assert seen == ["b", "a"]


def test_nothing_is_recorded_while_a_hook_runs(t):
    x, seen = leaf(t, 1.0), []
    with t.autograd.graph.saved_tensors_hooks(lambda v: seen.append(t.is_grad_enabled()) or v, lambda v: v):
        with t.no_grad():
            x.exp()
        x.exp()
    assert seen == [False]


def test_what_is_packed_may_be_overwritten(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 1
    with t.autograd.graph.saved_tensors_hooks(lambda v: v.detach().clone(), lambda v: v):
        z = y * y
    y.mul_(5)
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_it_is_freed_by_backward(t):
    x = leaf(t, 3.0)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
        y = x * x
    y.backward()
    with raises(FREED):
        y.backward()


def fail(v):
    raise KeyError("mine")


@pytest.mark.parametrize(
    "pack, unpack, kind, message",
    [
        (
            lambda v: v,
            lambda v: 3,
            TypeError,
            "Output of saved tensor unpack_hook expected to be a Tensor but got resu",
        ),
        (lambda v: v.mul_(2), lambda v: v, RuntimeError, "A saved tensor pack hook is modifying its input in place. "),
        (fail, lambda v: v, KeyError, "mine"),
        (lambda v: v, fail, KeyError, "mine"),
    ],
)
def test_hooks_that_fail(t, pack, unpack, kind, message):
    x = leaf(t, 3.0)
    with pytest.raises(kind, match=message), t.autograd.graph.saved_tensors_hooks(pack, unpack):
        (x * x).backward()
    (x * x).backward()


def test_they_can_be_forbidden(t):
    hooks = t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v)
    with t.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), hooks:
        pass
    with hooks, pytest.raises(RuntimeError, match="not here"):
        t.autograd.graph.disable_saved_tensors_hooks("not here").__enter__()


def test_save_on_cpu_keeps_it_in_host_memory():
    x = engine.ones(1000, device="sim", requires_grad=True)
    used = {}
    for name, block in (("kept", engine.no_grad), ("host", engine.autograd.graph.save_on_cpu)):
        before = engine.sim.memory_allocated()
        with engine.enable_grad() if name == "kept" else block():
            y = x.sin().cos().sum()
        used[name] = engine.sim.memory_allocated() - before
        y.backward()
        assert x.grad.device.type == "sim"
        del y
    assert used["host"] <= used["kept"] - 4000
    assert engine.allclose(x.grad.cpu() / 2, -engine.ones(1000).sin().sin() * engine.ones(1000).cos())


def test_checkpoints_and_compiled_functions_work_inside(t):
    from importlib import import_module

    checkpoint = import_module(t.__name__ + ".utils.checkpoint").checkpoint
    function = engine.compile(lambda v: v.exp() * v) if t is engine else lambda v: v.exp() * v
    x, kept = leaf(t, 0.5), []
    with t.autograd.graph.saved_tensors_hooks(lambda v: kept.append(v.detach().clone()) or v, lambda v: v):
        y = function(checkpoint(lambda v: v.sin() * v, x * 1, use_reentrant=False))
    y.backward()
    v = t.tensor([0.5], requires_grad=True)
    z = v.sin() * v
    (z.exp() * z).backward()
    assert x.grad.tolist() == v.grad.tolist() and 3 <= len(kept) <= 5


def test_other_threads_and_later_nodes_are_left_alone():
    seen, x = [], leaf(engine, 1.0)
    with engine.autograd.graph.saved_tensors_hooks(lambda v: seen.append(v) or v, lambda v: v):
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    assert not seen and not observers.get(graph.Node) and type(x.exp().grad_fn) is type((x * 1).exp().grad_fn)


@pytest.mark.parametrize("what", ["__enter__", "__exit__"])
def test_blocks_that_a_hook_opens_or_closes_end_with_it(what):
    def unpack(v):
        getattr(block(), what)(*(None,) * 3 * (what == "__exit__"))
        return v

    x, hooks = leaf(engine, 1.0, 2.0), engine.autograd.graph.saved_tensors_hooks(lambda v: v, unpack)
    block = weakref.ref(hooks)
    with hooks:
        y = x.exp()
    for _ in range(3):
        y.sum().backward(retain_graph=True)
    assert type((x * 1).exp().grad_fn) is type(x.exp().grad_fn) and not hasattr(x.exp().grad_fn, "packed")
    assert not observers.get(graph.Node)


def test_hooks_that_hand_tensors_through_make_no_cycle():
    gc.collect()
    gc.disable()
    try:
        x = leaf(engine, 1.0, 2.0)
        with engine.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
            y = (x * 2).exp() * 3
        node = weakref.ref(y.grad_fn.next_functions[0][0])
        del y
        assert node() is None
    finally:
        gc.enable()
