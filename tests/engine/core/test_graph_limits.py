"""What the graph must stand: depth, length, many steps, several threads."""

import gc
import itertools
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import engine
from engine.core import versions

LENGTH = 100_000


def chain(x, length):
    """A result of so many dependent operations."""
    y = x
    for _ in range(length // 2):
        y = y * 1.0 + x
    return y


# ---- depth


def test_a_chain_of_100_000_operations_needs_no_recursion_and_fits_a_small_stack():
    errors = []

    def work():
        try:
            x = engine.tensor(0.5, requires_grad=True)
            y = chain(x, LENGTH)
            last = weakref.ref(y.grad_fn)
            y.backward()
            assert x.grad.item() == LENGTH // 2 + 1
            del y
            assert last() is None
        except BaseException as e:
            errors.append(e)

    limit, before = sys.getrecursionlimit(), threading.stack_size(256 * 1024)
    sys.setrecursionlimit(200)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
        sys.setrecursionlimit(limit)
    assert not errors


def test_a_deep_graph_is_released_without_backward():
    y = chain(engine.tensor(0.5, requires_grad=True), LENGTH)
    last = weakref.ref(y.grad_fn)
    del y
    assert last() is None


def test_grad_of_a_deep_graph_needs_no_recursion():
    x = engine.tensor(0.5, requires_grad=True)
    y = chain(x, 20_000)
    assert engine.autograd.grad(y, x)[0].item() == 10_001


def test_a_deep_recorded_backward_pass():
    x = engine.tensor(0.5, dtype=engine.float64, requires_grad=True)
    y = x
    for _ in range(5_000):
        y = y * 1.0 + x * x
    (g,) = engine.autograd.grad(y, x, create_graph=True)
    (h,) = engine.autograd.grad(g, x)
    assert (g.item(), h.item()) == (1 + 5_000, 2 * 5_000)


def test_a_deep_chain_of_in_place_writes_and_views():
    x = engine.ones(3, requires_grad=True)
    y = x * 1
    for i in range(10_000):
        y[i % 3].add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    last = weakref.ref(y.grad_fn)
    del y
    assert last() is None


# ---- length


def calls(length):
    """How many functions, of Python and of C, the forward and backward pass and the release of a chain call."""
    x, count = engine.tensor(0.5, requires_grad=True), itertools.count()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, arg: event in ("call", "c_call") and next(count))
    try:
        y = chain(x, length)
        y.backward()
        del y
    finally:
        sys.setprofile(before)
    return next(count)


def test_work_grows_with_the_length_of_the_chain():
    assert calls(20_000) / calls(2_000) == pytest.approx(10, rel=0.02)


# ---- many steps


class Cube(engine.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * 3 * y / x


def operations(x, w):
    ((x @ w).tanh() + x.sum(0)).mean().backward()


def functions(x, w):
    Cube.apply(x).sum().backward()


def recorded_functions(x, w):
    (g,) = engine.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    g.sum().backward()


def hooks(x, w):
    y = x * w
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda into, out: into)
    handle = w.register_hook(lambda g: g + 1)
    (y * y).sum().backward()
    handle.remove()


def views(x, w):
    y = x * 1
    (y[0] + y.t()[1] + y.view(9)[::3] + y.reshape(9, 1)[3:6, 0]).sum().backward()


def in_place(x, w):
    y = x * 1
    y[0].mul_(2)
    y += w
    y.t()[1] = w[0]
    y.sum().backward()


def create_graph(x, w):
    (g,) = engine.autograd.grad((x * x * w).sum(), x, create_graph=True)
    (g * g).sum().backward()


def accumulating(x, w):
    (x * w).sum().backward()
    (x * w).sum().backward()


def inference(x, w):
    with engine.inference_mode():
        y = x * w
        y[0].add_(1)


def without_backward(x, w):
    y = (x * w).exp().sum()
    y.retain_grad()
    Cube.apply(x)[0]


STEPS = [
    operations, functions, recorded_functions, hooks, views, in_place, create_graph, accumulating, inference,
    without_backward,
]  # fmt: skip


def left():
    """How many objects there are, and how much memory is in use, without the lists of free tuples that Python keeps."""
    objects = len(gc.get_objects()) + gc.get_freeze_count()
    gc.freeze()
    gc.collect()  # empties those lists; what is frozen stays, a reference cycle too
    return objects, tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("steps", [120, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("step", STEPS, ids=[s.__name__ for s in STEPS])
def test_nothing_is_left_of_a_step(step, steps):
    """With the garbage collector off, further steps leave no more objects and memory behind than 60 did."""
    x, w = engine.rand(3, 3, requires_grad=True), engine.rand(3, 3, requires_grad=True)

    def run(n):
        for _ in range(n):
            x.grad = w.grad = None
            step(x, w)
        x.grad = w.grad = None

    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        run(60)
        states = [left()]
        for _ in range(3):
            run(steps)
            states.append(left())
        more = [(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(states)]
        # What steps leave is left each time; what another thread of this process keeps meanwhile is not.
        assert min(objects for objects, _ in more) < 20 and min(memory for _, memory in more) < 2_000, more
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("step", STEPS, ids=[s.__name__ for s in STEPS])
def test_no_step_makes_a_reference_cycle(step):
    x, w = engine.rand(3, 3, requires_grad=True), engine.rand(3, 3, requires_grad=True)
    step(x, w)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        step(x, w)
        gc.collect()
        assert not gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_a_leaf_is_not_kept_by_its_graph_nor_its_gradient():
    gc.disable()
    try:
        x = engine.ones(3, requires_grad=True)
        y = (x * x).sum()
        y.backward(create_graph=True)
        gone = weakref.ref(x)
        grad = x.grad
        del x
        assert gone() is None and grad.tolist() == [2.0] * 3
        y.backward()
    finally:
        gc.enable()


def test_the_graph_is_released_as_backward_goes():
    """What the nodes saved is released while backward runs: at its end, the peak was not twice what forward left."""
    x = engine.ones(1000, 100, requires_grad=True)
    tracemalloc.start()
    try:
        y = x
        for _ in range(20):
            y = y.tanh()
        loss = y.sum()
        del y
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        loss.backward()
        assert tracemalloc.get_traced_memory()[1] < before * 1.3
    finally:
        tracemalloc.stop()


# ---- threads


def in_threads(n, work):
    """Run ``work(k)`` in n threads at once; errors come out."""
    start, errors = threading.Barrier(n), []

    def run(k):
        try:
            start.wait()
            work(k)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(n)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change as often as they can
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def test_ten_threads_add_into_one_leaf_and_lose_nothing():
    x = engine.zeros(2, dtype=engine.float64, requires_grad=True)

    def work(k):
        for _ in range(200):
            (x * (k + 1.0)).sum().backward()

    in_threads(10, work)
    assert x.grad.tolist() == [200.0 * 55] * 2


def test_ten_threads_go_through_one_graph():
    x = engine.ones(2, dtype=engine.float64, requires_grad=True)
    y = ((x * x).exp() * x).sum()
    y.backward(retain_graph=True)
    once = x.grad.clone()
    x.grad = None

    def work(k):
        for _ in range(20):
            y.backward(retain_graph=True)

    in_threads(10, work)
    assert engine.allclose(x.grad, once * 200)


def names_from(node):
    return [node.name(), *(n for p, _ in node.next_functions if p is not None for n in names_from(p))]


def test_threads_go_through_what_others_look_at():
    """Vectors times matrices and linear layers become the nodes that PyTorch shows while others go through them."""
    x, w = engine.ones(1, 3, dtype=engine.float64), engine.ones(3, 3, dtype=engine.float64, requires_grad=True)
    seen = []

    def work(k):
        start.wait()
        if k % 2:
            seen.append(names_from(y.grad_fn))
        for _ in range(3):
            y.backward(retain_graph=True)

    for _ in range(50):
        y = x[0] @ w
        b = y.detach()
        y = y[None]
        for _ in range(5):
            y = engine.nn.functional.linear(y, w, b)
        y, start = y.sum(), threading.Barrier(4)
        w.grad = None
        in_threads(4, work)
        twelve, w.grad = w.grad, None
        y.backward()
        assert engine.allclose(twelve, 12 * w.grad)
    assert len(seen) == 100 and all(names == seen[0] for names in seen)


def test_ten_threads_with_graphs_of_their_own():
    results = {}

    def work(k):
        x = engine.full((3,), float(k + 1), requires_grad=True)
        for i in range(50):
            x.grad = None
            y = x * 1
            y[i % 3] = y[(i + 1) % 3] * 2
            Cube.apply(y).sum().backward()
        results[k] = x.grad.tolist()

    in_threads(10, work)
    for k in range(10):
        a = 3.0 * (k + 1) ** 2
        assert results[k] == [a, 0.0, 9 * a]  # of the last y: its element 1 is twice its element 2


def test_ten_threads_note_writes_to_scalars_when_the_record_is_full():
    for k in range(5_000):
        versions.Writes().of(np.float32(k))

    def work(k):
        x = engine.zeros(3)
        for i in range(200):
            x[i % 3] = x[(i + 1) % 3] + 1

    in_threads(10, work)
    assert 4_000 < len(versions.overwritten) < 4_200


def test_ten_threads_with_grad_modes_of_their_own():
    def work(k):
        x = engine.ones(1, requires_grad=True)
        for i in range(200):
            mode = (k + i) % 3
            with engine.no_grad() if mode == 0 else engine.enable_grad() if mode == 1 else engine.inference_mode():
                y = x * 2
                assert y.requires_grad == (mode == 1) and y.is_inference() == (mode == 2)
            assert engine.is_grad_enabled() and (x * 2).requires_grad

    in_threads(10, work)
