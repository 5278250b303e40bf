"""Checkpointing: the gradients, the random numbers and the errors of PyTorch, and less memory."""

import gc
import re
import threading
import tracemalloc
import warnings
from contextlib import contextmanager, nullcontext, suppress
from weakref import ref

import numpy as np
import pytest
from over_tables import over

import engine
from engine import nn
from engine.autograd import Function
from engine.core import graph
from engine.core.observers import observers
from engine.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("use_reentrant", [True, False])


def library(name):
    """The library, its checkpoint and its checkpoint_sequential."""
    if name == "torch":
        torch = pytest.importorskip("torch")
        from torch.utils import checkpoint as module

        return torch, module.checkpoint, module.checkpoint_sequential
    return engine, checkpoint, checkpoint_sequential


def leaves(t):
    options = {"dtype": t.float64, "requires_grad": True}
    return t.arange(3.0, **options), t.full((3,), 0.5, **options)


class Calls:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def curve(x, w):
    h = (x * w).sin()
    return (h * h).exp() + x


# ---- the same program under both libraries: (t, checkpoint, use_reentrant) -> what is to be equal


def backward(t, check, r):
    x, w = leaves(t)
    f = Calls(curve)
    y = check(f, x, w, use_reentrant=r)
    y.sum().backward()
    return y, x.grad, w.grad, f.calls, y.grad_fn.name()


def gradient_alone(t, check, r):
    x, w = leaves(t)
    return t.autograd.grad(check(curve, x, w, use_reentrant=r).sum(), x)


def backward_to_inputs(t, check, r):
    x, w = leaves(t)
    check(curve, x, w, use_reentrant=r).sum().backward(inputs=[w])
    return x.grad, w.grad


def second_gradient(t, check, r):
    x, w = leaves(t)
    (g,) = t.autograd.grad(check(curve, x, w, use_reentrant=r).sum(), x, create_graph=True)
    (g * g).sum().backward()
    return g, x.grad, w.grad


def twice_with_the_graph_retained(t, check, r):
    x, w = leaves(t)
    y = check(curve, x, w, use_reentrant=r).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, w.grad


def twice(t, check, r):
    x, w = leaves(t)
    y = check(curve, x, w, use_reentrant=r).sum()
    y.backward()
    y.backward()


def no_input_requires_grad(t, check, r):
    return check(curve, t.ones(3), t.ones(3), use_reentrant=r).requires_grad


def parameters_of_the_function(t, check, r):
    x, w = leaves(t)
    check(lambda x: curve(x, w), x, use_reentrant=r).sum().backward()
    return x.grad, w.grad


def an_input_that_is_overwritten(t, check, r):
    x, w = leaves(t)
    x = x.detach().clone()
    y = check(curve, x, w, use_reentrant=r)
    x.add_(1)
    y.sum().backward()


def an_input_that_the_function_overwrites(t, check, r):
    x, w = leaves(t)
    y = check(lambda h, w: h.mul_(2).sin() * w, x.exp(), w, use_reentrant=r)
    y.sum().backward()


def a_result_that_is_overwritten(t, check, r):
    x, w = leaves(t)
    y = check(lambda x: x.exp(), x, use_reentrant=r)
    z = y * 2
    if not r:
        y.mul_(3)  # exp would have saved it
    z.sum().backward()
    return x.grad


def writes_in_the_region(t, check, r):
    x, w = leaves(t)

    def f(x, w):
        h = x * w
        h.add_(1)
        h[0] = w[1] * 3
        h.sigmoid_()
        return h * h

    check(f, x, w, use_reentrant=r).sum().backward()
    return x.grad, w.grad


def keywords(t, check, r):
    x, w = leaves(t)
    check(curve, x, w=w, use_reentrant=r).sum().backward()
    return x.grad, w.grad


def several_results(t, check, r):
    x, w = leaves(t)
    a, b, c = check(lambda x, w: (x * w, w.exp(), 3), x, w, use_reentrant=r)
    (a * b).sum().backward()
    return a, b, c, x.grad, w.grad


def split_results(t, check, r):
    x, w = leaves(t)
    a, b = check(lambda x, w: t.split((x * w).sin(), 2), x, w, use_reentrant=r)
    (a.sum() * b).sum().backward()
    return x.grad, w.grad


def tensors_in_a_list(t, check, r):
    x, w = leaves(t)
    check(lambda pair: pair[0] * pair[1], [x, w], use_reentrant=r).sum().backward()
    return x.grad, w.grad


def dropout(t, check, r):
    t.manual_seed(0)
    x, w = leaves(t)
    y = check(lambda x: t.nn.functional.dropout(x * x, 0.5), x, use_reentrant=r)
    between = t.rand(1)
    y.sum().backward()
    return y, x.grad, between, t.rand(1)


def dropout_with_other_numbers(t, check, r):
    t.manual_seed(0)
    x, w = leaves(t)
    y = check(lambda x: t.nn.functional.dropout(x * x, 0.5), x, use_reentrant=r, preserve_rng_state=False)
    y.sum().backward()
    return y, x.grad, t.rand(1)


def one_in_another(t, check, r):
    x, w = leaves(t)
    f = Calls(curve)
    inner = Calls(lambda x: f(x, w).sin())
    outer = Calls(lambda x: check(inner, x.exp(), use_reentrant=r).cos())
    check(outer, x, use_reentrant=r).sum().backward()
    return x.grad, w.grad, f.calls, inner.calls, outer.calls


def three_in_one_another(t, check, r):
    x, w = leaves(t)
    f = Calls(curve)
    g = f
    for _ in range(2):
        g = lambda x, w, g=g: check(g, x.sin(), w, use_reentrant=r)  # noqa: E731
    check(g, x, w, use_reentrant=r).sum().backward()
    return x.grad, w.grad


def one_after_the_other(t, check, r):
    x, w = leaves(t)
    h = x
    for _ in range(3):
        h = check(curve, h, w, use_reentrant=r)
    h.sum().backward()
    return x.grad, w.grad


def a_function_of_ones_own(t, check, r):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x**2
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * (x * x + 2 * y)

    x, w = leaves(t)
    check(lambda x: Cube.apply(Cube.apply(x * w).sin()), x, use_reentrant=r).sum().backward()
    return x.grad, w.grad


def without_grad(t, check, r):
    x, w = leaves(t)
    with t.no_grad():
        return check(curve, x, w, use_reentrant=r)


def a_detached_result(t, check, r):
    x, _ = leaves(t)
    check(lambda x: x.detach(), x, use_reentrant=r).sum().backward()


def another_number_of_operations(t, check, r):
    x, _ = leaves(t)
    f = Calls(lambda x: x.sin() if f.calls > 1 else x.sin().exp().sin())
    check(f, x, use_reentrant=r).sum().backward()


def other_shapes(t, check, r):
    x, _ = leaves(t)
    f = Calls(lambda x: (x[:2] if f.calls > 1 else x).sin().exp().sum())
    check(f, x, use_reentrant=r).backward()


def other_shapes_unchecked(t, check, r):
    x, _ = leaves(t)
    f = Calls(lambda x: (x.double() if f.calls > 1 else x).sin().sum())
    options = {} if r else {"determinism_check": "none"}
    check(f, x, use_reentrant=r, **options).backward()


def more_operations_at_the_end(t, check, r):
    x, _ = leaves(t)
    f = Calls(lambda x: x.sin() if f.calls == 1 else x.sin().exp())
    check(f, x, use_reentrant=r).sum().backward()
    return x.grad


def more_operations_run_to_the_end(t, check, r):
    x, _ = leaves(t)
    f = Calls(lambda x: x.sin() if f.calls == 1 else x.sin().exp())
    options = {} if r else {"early_stop": False}
    check(f, x, use_reentrant=r, **options).sum().backward()
    return x.grad


def contexts(t, check, r):
    x, w = leaves(t)
    seen = []

    @contextmanager
    def around(name):
        seen.append(name)
        try:
            yield
        finally:
            seen.append("after " + name)

    y = check(curve, x, w, use_reentrant=r, context_fn=lambda: (around("forward"), around("again")))
    y.sum().backward()
    return seen, x.grad


def keywords_that_are_none(t, check, r):
    x, w = leaves(t)
    check(curve, x, w, use_reentrant=r, determinism_check="bogus").sum().backward()
    return x.grad


def saves_less(t, check, r):
    def f(x):
        y = x.sin()
        return y.exp() if f.calls == 1 else y

    f = Calls(f)
    check(f, leaves(t)[0], use_reentrant=r).sum().backward()


def saves_more_unchecked(t, check, r):
    def f(x):
        y = x.sin()
        return y if f.calls == 1 else y.exp()

    f, (x, _) = Calls(f), leaves(t)
    options = {} if r else {"determinism_check": "none", "early_stop": False}
    check(f, x, use_reentrant=r, **options).sum().backward()
    return x.grad


def saved_tensors_read_twice(t, check, r):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] + g * ctx.saved_tensors[0]

    x, _ = leaves(t)
    check(Square.apply, x, use_reentrant=r).sum().backward()
    return x.grad


def gradients_inside(t, check, r):
    found, x = [], leaves(t)[0].detach().requires_grad_()

    def f(x):
        with t.enable_grad():
            y = x if x.requires_grad else x.detach().requires_grad_()
            (g,) = t.autograd.grad(y.sin().exp().sin().sum(), y)
        return x.sin() * g

    for options in ({},) if r else ({}, {"early_stop": False}):
        check(f, x, use_reentrant=r, **options).sum().backward()
        found.append([round(g, 9) for g in x.grad.tolist()])
    return found


def derivatives_of_checkpoints_of_derivatives(t, check, r):
    if r:
        return None

    def grad(f):
        return lambda x: t.autograd.grad(f(x), x, create_graph=True)[0]

    def c(f):
        return lambda x: check(f, x, use_reentrant=False)

    def f(x):
        return x.sin().exp().sin()

    def g(x):
        for _ in range(2):
            t.autograd.grad(x.sin().exp().sin(), x)
        return x.sin()

    found = []
    for h in (f, g):
        for k in (c(c(h)), grad(c(c(h))), c(grad(grad(c(h)))), grad(c(grad(c(grad(c(h))))))):
            found.append(k(t.tensor(0.7, dtype=t.float64, requires_grad=True)).item())
    return [round(x, 9) for x in found]


def where_the_second_run_ends(t, check, r):
    """How often each part of a checkpoint in a checkpoint is run, and what comes after the last saved tensor."""
    counts = []
    for outer_stops, inner_stops in ((a, b) for a in (True, False) for b in (True, False)):
        count = [0, 0, 0]

        def inner(x, count=count):
            count[0] += 1
            y = x.sin().cos()
            count[1] += 1
            return y.clone()

        def outer(x, count=count, stops=inner_stops):
            y = check(inner, x, use_reentrant=False, early_stop=stops).exp()
            count[2] += 1
            return y.clone()

        if not r:
            check(outer, leaves(t)[0], use_reentrant=False, early_stop=outer_stops).sum().backward()
        counts.append(count)
    return counts


def an_error(t, check, r):
    def f(x):
        raise KeyError("in the function")

    check(f, leaves(t)[0], use_reentrant=r)


PROGRAMS = [
    backward, gradient_alone, backward_to_inputs, second_gradient, twice_with_the_graph_retained, twice,
    no_input_requires_grad, parameters_of_the_function, an_input_that_is_overwritten,
    an_input_that_the_function_overwrites, a_result_that_is_overwritten, writes_in_the_region, keywords,
    several_results,
    split_results, tensors_in_a_list, dropout, dropout_with_other_numbers, one_in_another, three_in_one_another,
    one_after_the_other, a_function_of_ones_own, without_grad, a_detached_result, another_number_of_operations,
    saves_less, saves_more_unchecked, saved_tensors_read_twice, gradients_inside,
    derivatives_of_checkpoints_of_derivatives, where_the_second_run_ends,
    other_shapes, other_shapes_unchecked, more_operations_at_the_end, more_operations_run_to_the_end, contexts,
    keywords_that_are_none, an_error,
]  # fmt: skip


def outcome(name, program, use_reentrant):
    """What a program gives, or the type and the first words of its error; and its warnings."""
    t, check, _ = library(name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = program(t, check, use_reentrant)
        except Exception as e:
            kind = next(k for k in type(e).__mro__ if k.__module__ == "builtins")
            result = kind.__name__, re.split(r"\. |\n", str(e))[0]
    result = result if isinstance(result, tuple) else (result,)
    result = [r.detach().numpy() if hasattr(r, "requires_grad") else r for r in result]
    return result, [str(w.message) for w in caught if "create_graph" not in str(w.message)]


@BOTH
@over("program", PROGRAMS)
def test_a_program_does_what_it_does_in_pytorch(program, use_reentrant):
    (mine, my_warnings), (theirs, their_warnings) = (outcome(n, program, use_reentrant) for n in ("engine", "torch"))
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        if isinstance(b, np.ndarray):
            assert isinstance(a, np.ndarray), a
            np.testing.assert_allclose(a, b, 1e-12, 1e-12)
        else:
            assert a == b
    assert my_warnings == their_warnings


@over("segments", [1, 2, 3, 4])
@BOTH
def test_sequences_in_segments_are_pytorchs(segments, use_reentrant):
    def run(t, check, r):
        sequence = library(t.__name__)[2]
        functions = [Calls(f) for f in (t.sin, t.exp, t.cos, t.tanh)]
        x, _ = leaves(t)
        sequence(functions, segments, x, use_reentrant=r).sum().backward()
        return x.grad, [f.calls for f in functions]

    mine, theirs = (outcome(n, run, use_reentrant)[0] for n in ("engine", "torch"))
    assert len(mine) == len(theirs)
    np.testing.assert_allclose(mine[0], theirs[0], 1e-12)
    assert mine[1:] == theirs[1:]


# ---- without PyTorch


@BOTH
def test_gradients_are_those_without_checkpoints(use_reentrant):
    engine.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5)) for _ in range(4)))
    x = engine.rand(3, 4, requires_grad=True)

    def gradients(forward):
        model.zero_grad()
        x.grad = None
        engine.manual_seed(1)
        forward().sum().backward()
        return [t.grad.tolist() for t in (x, *model.parameters())], engine.rand(1).item()

    expected = gradients(lambda: model(x))
    assert gradients(lambda: checkpoint(model, x, use_reentrant=use_reentrant)) == expected
    assert gradients(lambda: checkpoint_sequential(model, 2, x, use_reentrant=use_reentrant)) == expected


def test_the_graph_looks_as_without_a_checkpoint():
    x, w = leaves(engine)

    def chain(node):
        return node and (node.name(), [chain(n) for n, _ in node.next_functions])

    assert chain(checkpoint(curve, x, w, use_reentrant=False).grad_fn) == chain(curve(x, w).grad_fn)


@BOTH
def test_less_memory_is_held(use_reentrant):
    functions = [engine.sin] * 40

    def held(forward):
        x = engine.zeros(40_000, requires_grad=True)
        forward(x)  # what is imported when it is first used is not meant
        gc.collect()
        tracemalloc.start()
        try:
            y = forward(x)
            return tracemalloc.get_traced_memory()[0] / x.nbytes, y
        finally:
            tracemalloc.stop()

    def plain(x):
        for f in functions:
            x = f(x)
        return x

    assert held(plain)[0] > 39
    assert held(lambda x: checkpoint(plain, x, use_reentrant=use_reentrant))[0] < 2
    of_segments = held(lambda x: checkpoint_sequential(functions, 5, x, use_reentrant=use_reentrant))[0]
    assert of_segments < 4 + 8 + 2  # the inputs of the segments, and all of the last one


def test_what_was_recomputed_goes_as_it_is_used():
    x, w = leaves(engine)
    y = checkpoint(curve, x, w, use_reentrant=False)
    node = y.grad_fn.next_functions[0][0]  # exp, which saves its result
    held = ref(node._saved_result.array)
    node = None
    y.sum().backward()
    assert held() is None


def test_nothing_stays_in_a_cycle():
    def held_by(backward):
        x, w = leaves(engine)
        big = engine.ones(3)
        y = checkpoint(lambda x, big: curve(x, w) * big, x, big, use_reentrant=False).sum()
        if backward:
            y.backward()
        return ref(big), y

    gc.collect()
    gc.disable()
    try:
        for backward in (True, False):
            big, y = held_by(backward)
            assert (big() is None) is backward  # what is needed for the recomputation is kept until then
            del y
            assert big() is None
    finally:
        gc.enable()


def test_a_saved_value_is_recomputed_when_it_is_looked_at():
    x, w = leaves(engine)
    f = Calls(curve)
    y = checkpoint(f, x, w, use_reentrant=False)
    assert f.calls == 1
    for look in (2, 3):
        assert y.grad_fn.next_functions[0][0]._saved_result.tolist() == (y - x).tolist()
        assert f.calls == look
    y.sum().backward()
    assert f.calls == 4


def test_what_a_custom_function_has_saved_goes_when_it_is_read():
    class Once(engine.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            gone.append(ref(ctx.saved_tensors[0]))
            return g

    gone: list = []
    x = engine.ones(2, requires_grad=True)
    checkpoint(lambda x: Once.apply(x * 1), x, use_reentrant=False).sum().backward()
    Once.apply(x * 1).sum().backward()
    assert [r() for r in gone] == [None, None]


def test_an_array_that_is_overwritten_in_the_region_after_it_was_saved_is_an_error():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    def saved_by_an_operation(x):
        h = x * 2
        y = h.sin()
        h.add_(1)
        return y + h

    def saved_by_a_function(x):
        h = x * 2
        y = Keep.apply(h)
        h.add_(1)
        return y + h

    for f in (saved_by_an_operation, saved_by_a_function):
        x, _ = leaves(engine)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            checkpoint(f, x, use_reentrant=False).sum().backward()


def test_a_branch_that_leaves_the_function_another_way():
    x, w = leaves(engine)
    more = []

    def f(x):
        h = (x * w).exp()
        more.append(h.sin())
        return h.cos()

    y = checkpoint(f, x, use_reentrant=False)
    (y.sum() + more[0].sum()).backward()
    found = x.grad.tolist()
    x.grad = None
    h = (x * w).exp()
    (h.cos().sum() + h.sin().sum()).backward()
    assert found == x.grad.tolist()


def test_ends_early_and_not_if_told_so():
    def calls(**options):
        x, w = leaves(engine)
        tail = Calls(lambda h: h + 1)
        checkpoint(lambda x: tail(tail(x.sin())), x, use_reentrant=False, **options).sum().backward()
        return tail.calls

    assert calls() == 2  # in the forward pass
    assert calls(early_stop=False) == 4
    with set_checkpoint_early_stop(False):
        assert calls() == 4
        assert calls(early_stop=True) == 4
    assert calls() == 2
    with set_checkpoint_early_stop(True):
        assert calls(early_stop=False) == 2


@pytest.mark.parametrize("enable", [False, True])
def test_the_block_around_the_call_counts_not_that_around_the_backward_pass(enable):
    x, tail = leaves(engine)[0], Calls(lambda h: h + 1)
    with set_checkpoint_early_stop(enable):
        y = checkpoint(lambda x: tail(tail(x.sin())), x, use_reentrant=False)
    with set_checkpoint_early_stop(not enable):
        y.sum().backward()
    assert tail.calls == (2 if enable else 4)


@BOTH
@pytest.mark.parametrize("failing", [1, 2])
def test_an_error_leaves_nothing_switched(use_reentrant, failing):
    def fail(x):
        (x * 2).sin()
        if f.calls == failing:
            raise KeyError("in the function")
        return x.sin()

    x, _ = leaves(engine)
    f = Calls(fail)
    with pytest.raises(KeyError):
        checkpoint(f, x, use_reentrant=use_reentrant).sum().backward()
    assert not observers.get(graph.Node)
    assert engine.is_grad_enabled()


def test_other_threads_are_not_seen():
    go, done = threading.Event(), threading.Event()

    def other():
        go.wait(60)
        x, w = leaves(engine)
        results.append(curve(x, w))
        done.set()

    def f(x, w):
        if not done.is_set():
            go.set()
            assert done.wait(60)
        return curve(x, w)

    results = []
    thread = threading.Thread(target=other)
    thread.start()
    x, w = leaves(engine)
    checkpoint(f, x, w, use_reentrant=False).sum().backward()
    thread.join(60)
    assert "Recomputed" not in type(results[0].grad_fn.next_functions[0][0].saved).__name__
    results[0].sum().backward()


def test_in_another_thread_the_backward_pass_recomputes_too():
    x, w = leaves(engine)
    y = checkpoint(curve, x, w, use_reentrant=False).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join(60)
    found = x.grad.tolist()
    x.grad = None
    curve(x, w).sum().backward()
    assert x.grad.tolist() == found


def test_what_differs_is_told():
    x, _ = leaves(engine)
    f = Calls(lambda x: (x[:2] if f.calls > 1 else x).sin().sum())
    with pytest.raises(CheckpointError) as caught:
        checkpoint(f, x, use_reentrant=False).backward()
    assert "tensor at position 0:\nsaved metadata: {'shape': torch.Size([3]), 'dtype': torch.float64" in str(
        caught.value
    )
    assert "\nrecomputed metadata: {'shape': torch.Size([2])" in str(caught.value)


def test_a_missing_use_reentrant_is_warned_of():
    x, w = leaves(engine)
    with pytest.warns(
        UserWarning, match="torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly"
    ):
        y = checkpoint(curve, x, w)
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    words = "checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version 2.9 we will"
    with pytest.warns(UserWarning, match=words):
        checkpoint_sequential([engine.sin], 1, x)


def test_arguments_that_are_not_there_say_so():
    x, w = leaves(engine)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        checkpoint_sequential([engine.sin], 1, x, use_reentrant=True, foo=1)
    with pytest.raises(TypeError, match="positional arguments"):
        checkpoint_sequential([engine.sin], 1, x, True, False)
    with pytest.raises(NotImplementedError, match="debug is not there"):
        checkpoint(curve, x, w, use_reentrant=False, debug=True)


def test_a_context_must_let_exceptions_pass():
    x, _ = leaves(engine)
    contexts = lambda: (suppress(ValueError), nullcontext())  # noqa: E731
    with pytest.raises(RuntimeError, match="the forward context provided by context_fn suppressed an exception"):
        checkpoint(lambda _: int("a"), x, use_reentrant=False, context_fn=contexts)


def test_anomaly_detection_names_the_line_of_a_function_of_ones_own():
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError

    x, _ = leaves(engine)
    with warnings.catch_warnings(record=True) as caught, engine.autograd.set_detect_anomaly(True):
        warnings.simplefilter("always")
        y = Broken.apply(x)  # here
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()
    assert "Error detected in BrokenBackward" in str(caught[0].message)
    assert "y = Broken.apply(x)" in str(caught[0].message)
