"""compile: random numbers, writes, whole training steps, symbolic sizes, autocast and side effects as in eager."""

import copy
import enum
import functools
import itertools
import math
import types

import numpy as np
import pytest
from drawn import numbers, some_of
from over_tables import over

import engine
from engine import nn
from engine.compiler import GraphBreak, explain
from engine.compiler import compiled as compiled_functions
from engine.compiler.bytecode import decided
from engine.nn import functional as F

pytestmark = pytest.mark.usefixtures("generator")


def captured(function, **options):
    return engine.compile(function, fullgraph=True, **options)


def same(a, b):
    """Equal to the last bit, or to rounding where fusion adds in another order."""
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-6, 1e-6)
    assert a.dtype == b.dtype and a.requires_grad == b.requires_grad


@pytest.fixture
def no_own_sizes(monkeypatch):
    """Let a second size make a capture for many sizes, where the first has loops too."""
    monkeypatch.setattr(compiled_functions, "OWN_SIZES", 1)


# ---- random numbers

OWN = engine.Generator()

DRAWS = {
    "dropout": lambda x: F.dropout(x, 0.3) * 2,
    "dropout of a transpose": lambda x: F.dropout(x.t(), 0.3),
    "feature dropout": lambda x: F.dropout1d(x, 0.5),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.5, training=True),
    "rand": lambda x: x + engine.rand(4, 3),
    "rand_like": lambda x: x + engine.rand_like(x),
    "rand_like of a transpose": lambda x: x.t() + engine.rand_like(x.t()),
    "randn": lambda x: x * engine.randn(3) + engine.randn_like(x),
    "randint": lambda x: x + engine.randint(0, 5, (4, 3)),
    "randperm": lambda x: x[engine.randperm(4)],
    "bernoulli": lambda x: engine.bernoulli(x.sigmoid()) * x,
    "normal": lambda x: engine.normal(x, 1.0) + engine.normal(0.0, 1.0, (3,)),
    "multinomial": lambda x: x[:, engine.multinomial(x.exp().sum(0), 2)],
    "in place": lambda x: x * engine.empty(4, 3).uniform_(-1, 1) + (x * 2).normal_(),
    "a generator": lambda x: x + engine.rand(4, 3, generator=OWN),
    "two of them": lambda x: x + engine.rand(4, 3, generator=OWN) + engine.rand(4, 3),
    "one whose numbers are not used": lambda x: (engine.rand(2), x + engine.rand(3))[1],
    "one that depends on another": lambda x: engine.bernoulli(engine.rand_like(x)) + engine.rand_like(x) * x,
}


@over("name", DRAWS)
def test_draws_are_those_of_eager(name):
    f = DRAWS[name]
    compiled = captured(f)

    def stream(function):
        engine.manual_seed(7)
        OWN.manual_seed(8)
        results = []
        for seed in range(4):
            x = numbers(4, 3, seed=seed, grad=True)
            y = function(x)
            y.sum().backward()
            results += [y.detach(), x.grad]
        return [*results, engine.rand(2), engine.rand(2, generator=OWN)]

    expected, found = stream(f), stream(compiled)
    for a, b in zip(found, expected, strict=True):
        same(a, b)
    assert not np.array_equal(found[0].numpy(), found[2].numpy())
    assert len(compiled.entries) == 1 and compiled.entries[0].deviations == 0


def test_a_capture_draws_nothing():
    engine.manual_seed(3)
    explain(lambda x: F.dropout(x))(numbers(4, 3))
    after = engine.rand(3)
    engine.manual_seed(3)
    assert engine.equal(engine.rand(3), after)


def test_draws_in_large_chains_keep_their_order():
    def f(x):
        y = (x * 2 + 1).exp()
        z = engine.bernoulli(y / (y + 1))
        return y * z + engine.rand_like(x) - x.tanh()

    x, compiled = numbers(400, 400), captured(f)
    for seed in range(2):
        engine.manual_seed(seed)
        expected = f(x)
        engine.manual_seed(seed)
        same(compiled(x), expected)


def test_a_capture_does_not_move_the_stream_of_other_threads(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    drawn, results = [], engine.compiler.Entry.results

    def meanwhile(*args):
        with ThreadPoolExecutor(1) as pool:
            drawn.append(pool.submit(engine.rand, 4).result())
        return results(*args)

    monkeypatch.setattr(engine.compiler.Entry, "results", meanwhile)
    engine.manual_seed(3)
    y = captured(lambda x: x + engine.rand(4))(engine.zeros(4))
    engine.manual_seed(3)
    assert engine.equal(drawn[0], engine.rand(4)) and engine.equal(y, engine.rand(4))


def test_a_seed_inside_is_a_break():
    def f(x):
        engine.manual_seed(1)
        return x + engine.rand(3)

    compiled = engine.compile(f)
    assert engine.equal(compiled(numbers(3)), f(numbers(3)))
    with pytest.raises(GraphBreak, match="random generator"):
        captured(f)(numbers(3))


def test_a_call_that_deviates_draws_once():
    def f(x, target):
        return F.cross_entropy(F.dropout(x, 0.5), target, reduction="none")

    x, compiled = numbers(6, 3), captured(f)
    compiled(x, engine.tensor([0, 1, 2, 0, 1, 2]))
    engine.manual_seed(5)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, engine.tensor([0, 1, 2, 0, 1, 7]))
    found = engine.rand(3)
    engine.manual_seed(5)
    F.dropout(x, 0.5)
    assert engine.equal(found, engine.rand(3)) and compiled.entries[0].deviations == 1


@pytest.mark.filterwarnings("ignore:compile")
def test_create_graph_sees_the_numbers_of_the_call():
    def f(x):
        return (F.dropout(x, 0.5) ** 3).sum()

    def second(function):
        engine.manual_seed(2)
        x = numbers(20, grad=True)
        y = function(x)
        after = engine.rand(2)
        (g,) = engine.autograd.grad(y, x, create_graph=True)
        return engine.autograd.grad(g.sum(), x)[0], after, engine.rand(2)

    for a, b in zip(second(captured(f)), second(f), strict=True):
        same(a, b)


def test_dropout_in_a_module_trains_as_eager():
    def train(wrap):
        engine.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 2))
        run, opt = wrap(model), engine.optim.SGD(model.parameters(), 0.1)
        losses = []
        for seed in range(6):
            opt.zero_grad()
            loss = run(numbers(8, 5, seed=seed)).square().mean()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        return losses

    np.testing.assert_allclose(train(captured), train(lambda m: m), 1e-5)


# ---- writes to what was there before the call


def add_to_an_argument(x, b):
    x += 1
    x.mul_(b)
    return x * 2


def write_a_part(x, b):
    x[1:, 0] = b[0, 0]
    x[0].zero_()
    return (x.sum(),)


def copy_to_a_buffer(x, b):
    b.copy_(x * 2)
    return b + x


def write_through_a_view(x, b):
    x.t()[0].add_(b[0, 0])
    return x.sum(0)


def write_and_read_again(x, b):
    y = x * 2
    x.add_(y)
    return y + x, x.clone()


WRITES = [add_to_an_argument, write_a_part, copy_to_a_buffer, write_through_a_view, write_and_read_again]


@over("f", WRITES)
def test_inputs_are_written_as_in_eager(f):
    compiled = captured(f)
    for seed in range(3):
        ours, theirs = ([numbers(4, 3, seed=[seed, i]) for i in range(2)] for _ in range(2))
        found, expected = compiled(*ours), f(*theirs)
        for a, b in zip((*found, *ours), (*expected, *theirs), strict=True):
            same(a, b)
        assert [t._version for t in ours] == [t._version for t in theirs]
    assert len(compiled.entries) == 1


def test_a_parameter_is_written_under_no_grad():
    p = numbers(3, grad=True)

    def f(x):
        with engine.no_grad():
            p.sub_(x, alpha=0.5)
        return (p * x).sum()

    compiled, x, before = captured(f), numbers(3, seed=1), p.detach().clone()
    compiled(x), compiled(x)
    same(p.detach(), before - x)
    assert p._version == 2 and p.is_leaf and p.requires_grad
    compiled(x).backward()
    same(p.grad, x)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_counter_outside_is_written(shape):
    count = engine.zeros(shape, dtype=engine.int64)

    def f(x):
        count.add_(1)
        return x * count

    compiled = captured(f)
    for n in range(1, 5):
        assert engine.equal(compiled(engine.ones(shape)), engine.full(shape, float(n)))
    assert count.sum() == 4 * count.numel() and count._version == 4


def test_batch_norm_is_captured_with_its_statistics():
    model, twin = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
    compiled = engine.compile(model, fullgraph=True)
    for seed in range(4):
        x = numbers(4, 3, 5, 5, seed=seed)
        same(compiled(x), twin(x))
    same(model.running_mean, twin.running_mean)
    same(model.running_var, twin.running_var)
    assert model.num_batches_tracked == 4
    assert model.running_mean._version == twin.running_mean._version
    model.eval(), twin.eval()
    same(compiled(x), twin(x))


def test_an_argument_that_gets_a_graph_by_a_write():
    w = numbers(3, grad=True)

    def f(x):
        x.mul_(w)
        return x.sum()

    def run(function):
        w.grad = None
        x = numbers(3, seed=2)
        total = function(x)
        (total + (x * 3).sum()).backward()
        return x, w.grad, total

    compiled = captured(f)
    run(compiled)
    for a, b in zip(run(compiled), run(f), strict=True):
        same(a, b)


def test_what_backward_needs_and_a_call_overwrites_is_told():
    def f(x, w):
        y = x * w
        x.add_(1)
        return y.sum()

    compiled = engine.compile(f)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        compiled(numbers(3), numbers(3, grad=True)).backward()


def test_a_view_of_an_input_is_a_view():
    def f(x):
        return x.view(3, 2), x[0], x.t() * 2

    compiled = captured(f)
    for x in (numbers(2, 3, seed=1), numbers(2, 3, seed=2)):
        v, row, _ = compiled(x)
        assert v._base is x and v._is_view()
        v.zero_()
        assert engine.equal(row, engine.zeros(3)) and x.sum() == 0 and x._version == 1


NUMBERS_VIEWED = {  # what is done with a number, which is given memory then
    "a view of it": lambda x: x.reshape(1),
    "views and what is computed": lambda x: (x[None] * 2, x.view(1, 1)),
    "views of a result": lambda x: (y := x * 2, y.detach(), y.unsqueeze(0)),
    "a view is written": lambda x: (y := x * 2, y.reshape(1).add_(1)),
    "a result is filled": lambda x: (x * float("nan") + x).zero_(),
    "it is filled": lambda x: (x.fill_(3), x * 2),
}


@over("name", NUMBERS_VIEWED)
def test_a_view_of_a_number_is_a_view(name):
    f, found = NUMBERS_VIEWED[name], []
    compiled = captured(f)
    for function in (f, f, compiled, compiled):
        x = numbers(3).sum()
        out = function(x)
        outs = [x, *(out if isinstance(out, tuple) else (out,))]
        first = [o.item() for o in outs]
        outs[-1].add_(5)
        found.append((first, [o.item() for o in outs], [(o.shape, o._is_view()) for o in outs]))
    assert found[0] == found[1] == found[2] == found[3] and len(compiled.entries) == 1


def test_what_is_returned_twice_is_one_tensor():
    compiled = captured(lambda x: [base := x * 2, view := base[0], {"again": view}, view.contiguous(), base])
    for seed in range(2):
        base, view, again, same, also = compiled(numbers(2, 3, seed=seed))
        assert again["again"] is view is same and base is also and view._base is base


def test_gradients_go_through_a_view_of_an_input():
    x = numbers(2, 3, grad=True)
    v, s = captured(lambda x: (x.t(), x.sum()))(x)
    (v * 2).sum().backward()
    same(x.grad, engine.full((2, 3), 2.0))
    assert v.grad_fn.name() == "TBackward0"
    s.backward()
    same(x.grad, engine.full((2, 3), 3.0))


def test_results_on_one_memory_share_it():
    def f(x):
        y = x * 2
        return y, y[0], y.detach()

    x = numbers(2, 3, grad=True)
    compiled = captured(f)
    compiled(x)
    y, row, d = compiled(x)
    assert row._base is y and not d.requires_grad
    d[0, 0] = 100.0
    assert y[0, 0] == 100 and row[0] == 100
    (row.sum() + y.sum()).backward()
    same(x.grad, engine.tensor([[4.0, 4, 4], [2, 2, 2]]))


def test_parts_of_what_was_made_inside():
    def f(x, w):
        q, k, v = (x @ w).chunk(3, -1)
        return q, k, v

    x, w = numbers(2, 4), numbers(4, 6, grad=True)
    compiled = captured(f)
    for _ in range(2):
        w.grad = None
        (compiled(x, w)[1] * 3).sum().backward()
    expected = engine.autograd.grad((f(x, w)[1] * 3).sum(), w)[0]
    same(w.grad, expected)


def test_equal_results_have_memory_of_their_own():
    a, b = captured(lambda x: (x * 2, x * 2))(numbers(3))
    a.zero_()
    same(b, numbers(3) * 2)


def test_two_inputs_on_one_memory_are_not_mixed_up():
    def f(x, y):
        z = y.exp()
        x.add_(1)
        return z + y.exp()  # which is computed once where x is other memory

    compiled = engine.compile(f)
    compiled(numbers(3), numbers(3, seed=1))
    base, twin = engine.arange(6.0), engine.arange(6.0)
    found = compiled(base[:3], base[1:4])
    assert engine.equal(found, f(twin[:3], twin[1:4])) and engine.equal(base, twin)


def test_a_call_that_deviates_writes_once():
    norm = nn.BatchNorm1d(3)

    def f(x, target):
        return F.cross_entropy(norm(x), target)

    compiled, x = captured(f), numbers(4, 3)
    compiled(x, engine.tensor([0, 1, 2, 0]))
    before = norm.running_mean.clone()
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, engine.tensor([0, 1, 2, 9]))
    twin = nn.BatchNorm1d(3)
    twin(x), twin(x)
    same(norm.running_mean, twin.running_mean)
    assert norm.num_batches_tracked == 2 and not engine.equal(before, norm.running_mean)


def test_an_error_before_anything_was_changed_is_raised_as_in_eager():
    w = engine.randn(10, 4, requires_grad=True)

    def step(places):
        w.grad = None
        (w[places] * 3).exp().sum().backward()

    compiled = engine.compile(step, fullgraph=True)
    compiled(engine.tensor([1, 2, 3]))
    with pytest.raises(IndexError, match="index 10 is out of bounds for dimension 0 with size 10"):
        compiled(engine.tensor([1, 10, 3]))


def test_an_error_after_something_was_changed_leaves_that_done_once():
    counted, w = engine.zeros(3), engine.randn(10, 4)

    def step(places):
        counted.add_(1)
        return (w[places] * 3).exp()

    compiled = engine.compile(step, fullgraph=True)
    compiled(engine.tensor([1, 2, 3]))
    with pytest.raises(IndexError, match="index 10 is out of bounds"):
        compiled(engine.tensor([1, 10, 3]))
    assert counted.tolist() == [2, 2, 2]


def test_create_graph_through_writes_is_refused():
    norm, x = nn.BatchNorm1d(3), numbers(4, 3, grad=True)
    y = captured(norm)(x).square().sum()
    with pytest.warns(UserWarning, match="create_graph"), pytest.raises(NotImplementedError, match="uncompiled"):
        engine.autograd.grad(y, x, create_graph=True)


# ---- the whole training step


def problem(seed=0):
    engine.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.BatchNorm1d(12), nn.Dropout(0.2), nn.Linear(12, 3))
    return model, [(numbers(8, 6, seed=i), engine.tensor(np.arange(8) % 3)) for i in range(7)]


OPTIMIZERS = {
    "SGD": lambda p: engine.optim.SGD(p, lr=0.1),
    "momentum": lambda p: engine.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: engine.optim.Adam(p, lr=0.02),
    "AdamW": lambda p: engine.optim.AdamW(p, lr=0.02, amsgrad=True),
    "RMSprop": lambda p: engine.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "Adagrad": lambda p: engine.optim.Adagrad(p, lr=0.05),
}


def training_step(model, opt, schedule=None):
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        if schedule is not None:
            schedule.step()
        return loss

    return step


def trained(name, wrap, scheduled=False):
    """(losses, model, optimizer) after some steps."""
    model, data = problem()
    opt = OPTIMIZERS[name](model.parameters())
    schedule = engine.optim.lr_scheduler.ExponentialLR(opt, 0.8) if scheduled else None
    step = wrap(training_step(model, opt, schedule if scheduled == "inside" else None))
    losses = []
    for x, y in data:
        losses.append(step(x, y))
        if scheduled == "outside":
            schedule.step()
    return losses, model, opt, step


@over("name, scheduled", [("SGD", False), *itertools.product(OPTIMIZERS, ["outside", "inside"])])
def test_a_whole_training_step(name, scheduled):
    losses, model, opt, step = trained(name, captured, scheduled)
    expected, twin, theirs, _ = trained(name, lambda f: f, scheduled)
    assert len(step.entries) == 1 and step.entries[0].deviations == 0 and "_step()" in step.code
    for a, b in zip(losses, expected, strict=True):
        same(a, b)
    for a, b in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-5)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), 1e-4, 1e-5)
        assert p._version == q._version and p.is_leaf and p.grad._base is None
    a, b = opt.state_dict(), theirs.state_dict()
    assert a["param_groups"] == b["param_groups"] and a["state"].keys() == b["state"].keys()
    for i, state in b["state"].items():
        for key, value in state.items():
            np.testing.assert_allclose(np.asarray(a["state"][i][key]), np.asarray(value), 1e-3, 1e-5)


def test_the_loss_of_a_compiled_step_cannot_go_backward_again():
    losses, *_ = trained("SGD", captured)
    assert losses[-1].requires_grad
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        losses[-1].backward()


def test_a_loaded_optimizer_goes_on():
    def run(wrap):
        _, model, opt, step = trained("Adam", wrap)
        opt.load_state_dict(opt.state_dict())
        opt.param_groups[0]["lr"] = 0.5
        _, data = problem()
        return [step(x, y).item() for x, y in data]

    np.testing.assert_allclose(run(captured), run(lambda f: f), 1e-4)


def test_gradients_are_added_up_and_read():
    w = numbers(3, grad=True)

    def f(x):
        (w * x).sum().backward()
        (w * w).sum().backward()
        return w.grad.norm(), w.grad

    def run(function):
        w.grad = None
        held = []
        for seed in range(3):
            norm, g = function(numbers(3, seed=seed))
            assert g is w.grad and not norm.requires_grad
            held.append(norm.clone())
        return held, w.grad.clone(), w.grad._version

    compiled = captured(f)
    for a, b in zip(run(compiled), run(f), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), 1e-6)


def test_clipping_inside_of_a_step():
    def run(wrap):
        model, data = problem()
        opt = engine.optim.SGD(model.parameters(), lr=1.0)

        def step(x, y):
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            opt.step()
            return norm

        step = wrap(step)
        return [step(x, y).item() for x, y in data], [p.grad for p in model.parameters()]

    found, expected = run(captured), run(lambda f: f)
    np.testing.assert_allclose(found[0], expected[0], 1e-4)
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-3, 1e-6)


def test_a_step_without_an_optimizer():
    def run(wrap):
        w = numbers(3, grad=True)

        def step(x):
            loss = ((w * x).sum() - 1).square()
            loss.backward()
            with engine.no_grad():
                w.sub_(w.grad, alpha=0.1)
                w.grad = None
            return loss

        step = wrap(step)
        return [step(numbers(3, seed=s)).item() for s in range(4)], w

    (found, w), (expected, twin) = run(captured), run(lambda f: f)
    np.testing.assert_allclose(found, expected, 1e-5)
    same(w.detach(), twin.detach())
    assert w.grad is None and w._version == twin._version


def test_hooks_of_leaves_run_in_a_compiled_step():
    w, seen = numbers(3, grad=True), []

    def f(x):
        (w * x).sum().backward()

    compiled = engine.compile(f)
    compiled(numbers(3))
    w.register_post_accumulate_grad_hook(lambda p: seen.append(1))
    compiled(numbers(3)), compiled(numbers(3))
    assert seen == [1, 1]


def test_backward_that_goes_on_beyond_the_inputs():
    w = numbers(3, grad=True)

    def f(x):
        x.sum().backward()

    compiled = engine.compile(f)
    compiled(numbers(3, grad=True))  # captured for leaves
    compiled(w * 2), compiled(w * 3)
    same(w.grad, engine.full((3,), 5.0))
    with pytest.raises(GraphBreak, match="beyond the inputs"):
        captured(f)(w * 2)


def test_a_step_with_a_closure_is_a_break():
    w = numbers(3, grad=True)
    opt = engine.optim.SGD([w], lr=0.1)

    def f(x):
        opt.step(lambda: x.sum())

    with pytest.raises(GraphBreak, match="closure"):
        captured(f)(numbers(3))


def test_parameters_read_after_the_step_are_those_after_it():
    w = numbers(3, grad=True)
    opt = engine.optim.SGD([w], lr=0.1)

    def f(x):
        opt.zero_grad()
        (w * x).sum().backward()
        opt.step()
        return w * 2

    before, x = w.detach().clone(), numbers(3, seed=1)
    compiled = engine.compile(f)
    compiled(x)
    same(compiled(x).detach(), (before - 0.2 * x) * 2)


def test_gradients_set_to_zeros():
    def run(wrap):
        w = numbers(3, grad=True)
        opt = engine.optim.SGD([w], lr=0.1, momentum=0.5)

        def step(x):
            (w * x).square().sum().backward()
            opt.step()
            opt.zero_grad(set_to_none=False)

        step = wrap(step)
        for s in range(4):
            step(numbers(3, seed=s))
        return w.detach(), w.grad

    for a, b in zip(run(captured), run(lambda f: f), strict=True):
        same(a, b)


# ---- sizes that vary


def attention(x):
    q, k, v = x.chunk(3, -1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=False)


def heads(x):
    b, t, c = x.shape
    return x.view(b, t, 3, c // 3).transpose(1, 2).reshape(b * 3, t, -1).softmax(-1)


def normalized(x):
    return (x - x.mean(0)) / (x.var(0) + 1e-5).sqrt() + x.mean()


CONV = nn.Conv2d(3, 4, 3, padding=1)
NORM = nn.BatchNorm2d(3)
LSTM = nn.LSTM(5, 4, batch_first=True)
LINEAR = nn.Linear(6, 3)

SIZED = {
    "mlp": (lambda x: LINEAR(x).tanh().mean(), (6,)),
    "normalized": (normalized, (4,)),
    "attention": (attention, (4, 6)),
    "flattened": (lambda x: x.view(x.size(0), -1).sum(1) * x.shape[0] / x.numel(), (3, 2)),
    "convolution": (lambda x: F.max_pool2d(CONV(x).relu(), 2).flatten(1), (3, 6, 6)),
    "batch norm": (lambda x: NORM(x).square(), (3, 4, 4)),
    "lstm": (lambda x: LSTM(x)[0][:, -1], (4, 5)),
    "loss": (lambda x: F.cross_entropy(x, x.argmax(1)), (5,)),
    "pairs": (lambda x: (x[:, None] - x[None]).square().sum(-1), (3,)),
    "new tensors": (lambda x: engine.cat([x, engine.zeros(x.shape[0], 2), engine.ones(len(x), 1)], 1).cumsum(0), (3,)),
    "one hot": (lambda x: F.one_hot(x.argmax(1), 4) * engine.arange(x.shape[0])[:, None] + x.sum(), (4,)),
    "draws": (lambda x: F.dropout(x, 0.5) + engine.rand(x.shape[0], 1), (3,)),
    "slices": (lambda x: x[1:] - x[:-1] + x[-1], (3,)),
    "two on one memory": (lambda x: (x.t(), x.sum(0))[1], (3,)),
}


def with_gradient(function, n, shape, seed=0):
    engine.manual_seed(n)
    x = numbers(n, *shape, seed=[n, seed], grad=True)
    y = function(x)
    y.backward(engine.ones_like(y) * 0.5)
    return y.detach(), x.grad


@pytest.mark.usefixtures("no_own_sizes")
@over("name", SIZED)
def test_one_capture_serves_all_batch_sizes(name):
    f, shape = SIZED[name]
    compiled = captured(f)
    for n in (6, 9, 4, 31, 6, 117):
        for a, b in zip(with_gradient(compiled, n, shape), with_gradient(f, n, shape), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-5)
    assert compiled.specialized == "" and len(compiled.entries) == 2
    assert all(e.deviations == 0 for e in compiled.entries)


@pytest.mark.usefixtures("no_own_sizes")
def test_large_batches_are_served_by_one_capture_too():
    compiled = captured(SIZED["mlp"][0])
    for n in (2048, 2050, 4000, 64):
        for a, b in zip(with_gradient(compiled, n, (6,)), with_gradient(SIZED["mlp"][0], n, (6,)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-6)
    assert len(compiled.entries) == 2


def test_dynamic_true_has_one_capture_from_the_beginning():
    compiled = captured(SIZED["mlp"][0], dynamic=True)
    for n in (5, 8, 13):
        compiled(numbers(n, 6))
    assert len(compiled.entries) == 1 and "n = np.size(x, 0)" in compiled.code


def test_dynamic_false_has_a_capture_for_each_size():
    compiled = captured(SIZED["mlp"][0], dynamic=False)
    for n in (5, 8, 13):
        compiled(numbers(n, 6))
    assert len(compiled.entries) == 3


def test_sizes_one_and_zero_have_captures_of_their_own():
    compiled = captured(lambda x: x * x.sum(0), dynamic=True)
    for n in (5, 1, 0, 7):
        assert engine.equal(compiled(numbers(n, 3)), numbers(n, 3) * numbers(n, 3).sum(0))
    assert len(compiled.entries) == 3


@pytest.mark.usefixtures("no_own_sizes")
def test_two_sizes_that_vary():
    def f(x, y):
        return (x[:, None] * y[None]).softmax(1).reshape(-1).mean() * x.shape[0] + y.shape[0]

    compiled = captured(f)
    for n, m in ((4, 6), (5, 9), (7, 3), (12, 4), (3, 40)):
        same(compiled(numbers(n), numbers(m)), f(numbers(n), numbers(m)))
    assert len(compiled.entries) == 2
    same(compiled(numbers(6), numbers(6)), f(numbers(6), numbers(6)))  # they are told apart


def test_sizes_that_are_one_size_stay_one():
    compiled = captured(lambda x, y: x @ y.t())
    for n in (4, 6):
        compiled(numbers(n, 3), numbers(n, 3))
    same(compiled(numbers(4, 3), numbers(7, 3)), numbers(4, 3) @ numbers(7, 3).t())
    same(compiled(numbers(8, 3), numbers(7, 3)), numbers(8, 3) @ numbers(7, 3).t())


def test_a_program_that_compares_sizes_is_captured_size_by_size():
    def f(x):
        return x * 2 if x.shape[0] > 5 else x * 3

    compiled = captured(f)
    for n in (3, 4, 6, 8):
        same(compiled(numbers(n)), f(numbers(n)))
    assert len(compiled.entries) == 4 and "may choose by a size" in compiled.specialized
    assert "may choose by a size" in repr(explain(compiled)(numbers(9)))


@over(
    "f, word",
    [
        (lambda x: x * 2 if x.shape[0] > 5 else x * 3, ">"),
        (lambda x: x * 2 if 5 in x.shape else x * 3, "in"),
        (lambda x: x * min(5, len(x)), "min"),
        (lambda x: x * (x.shape[0] // 2), "//"),
        (lambda x: x * math.floor(x.shape[0] / 2), "floor"),
        (lambda x: x * math.gcd(x.shape[0], 4), "gcd"),
        (lambda x: x * abs(x.shape[0] - 5), "abs"),
        (lambda x: x * {3: 7.0}.get(x.shape[0], 1.0), "get"),
        (lambda x: x * len(f"{x.shape[0]}"), "f-string"),
        (lambda x: x * (x.shape[0] ^ 1), "^"),
        (lambda x: x * (x.shape[0] - 3 or 7), "if"),
    ],
)
def test_the_word_by_which_a_program_may_choose_is_the_same_in_every_python(f, word):
    compiled = captured(f)
    for n in (3, 4):
        compiled(numbers(n))
    assert compiled.specialized.splitlines()[0] == f"<lambda> may choose by a size: {word}"


def test_to_pick_out_an_item_is_to_compute_no_size():
    def f(x, flags):
        flag = flags[0]
        return x * 2 if flag or flags[1] else x.shape[0]

    assert decided([f.__code__]) is None


def test_annotations_of_an_inner_function_choose_nothing():
    def f(x):
        def twice(a: float) -> float:
            return a * 2

        return twice(x) * x.shape[0]

    compiled = captured(f)
    for n in (3, 4, 5):
        same(compiled(numbers(n)), f(numbers(n)))
    assert len(compiled.entries) == 2 and not compiled.specialized


def test_what_looks_like_a_choice_and_is_none():
    def f(x, kind="flat"):
        y = x.view(x.shape[0], -1) if kind == "flat" else x
        return y - y.max(1, keepdim=True).values

    compiled = captured(f)
    for n in (3, 4, 9):
        same(compiled(numbers(n, 2, 2)), f(numbers(n, 2, 2)))
    assert len(compiled.entries) == 2 and compiled.specialized == ""


def tried(x):
    try:
        return x * {6: 7.0}[x.shape[0]]
    except KeyError:
        return x


def counted(x):
    left = x.shape[0] - 6
    return x * 2 if left else x * 3


def cut(x):
    y = x * 1
    y[:5] = 0
    return y.mean(0)


CHOICES = {
    "a mean of the first": lambda x: x[:5].mean(0),
    "a mean of the last": lambda x: x[-5:].mean(0),
    "a sum of the middle": lambda x: x[2:20].sum(),
    "a slice that is written": cut,
    "a range": lambda x: x * len(range(6, x.shape[0])),
    "a part of a list": lambda x: x * sum([1, 2, 3, 4, 5, 6, 7][: x.shape[0]]),
    "an exception": tried,
    "a number that is tested": counted,
}


@over("name, dynamic", itertools.product(CHOICES, [None, True]))
def test_what_holds_from_some_size_on_holds_for_no_other(name, dynamic):
    f = CHOICES[name]
    compiled = captured(f, dynamic=dynamic)
    for n in (9, 12, 6, 3, 30, 2, 300):
        for a, b in zip(with_gradient(compiled, n, (2,)), with_gradient(f, n, (2,)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6, 1e-6)


def test_a_loop_over_a_size_is_captured_size_by_size():
    def f(x):
        total = x[0]
        for row in x:
            total = total + row
        return total

    compiled = captured(f)
    for n in (3, 4, 6):
        same(compiled(numbers(n, 2)), f(numbers(n, 2)))
    assert len(compiled.entries) == 3 and "which steps there are" in compiled.specialized


def test_a_size_as_a_result_is_that_of_the_call():
    compiled = captured(lambda x: (x + 1, x.shape[0]))
    assert [compiled(numbers(n))[1] for n in (3, 4, 5)] == [3, 4, 5]


@pytest.mark.usefixtures("no_own_sizes")
def test_a_training_step_on_batches_of_all_sizes():
    def run(wrap):
        model, _ = problem()
        opt = engine.optim.Adam(model.parameters(), lr=0.01)
        step = wrap(training_step(model, opt))
        data = [(numbers(n, 6, seed=n), engine.tensor(np.arange(n) % 3)) for n in (8, 8, 5, 12, 7)]
        return step, [step(x, y).item() for x, y in data]

    (step, found), (_, expected) = run(captured), run(lambda f: f)
    np.testing.assert_allclose(found, expected, 1e-4)
    assert len(step.entries) == 2


def test_results_of_which_some_are_not_used_backward():
    compiled = captured(lambda x: (x * 2, x.sum(0)))
    for n in (4, 5, 7):
        x = numbers(n, 3, grad=True)
        compiled(x)[1].sum().backward()
        assert engine.equal(x.grad, engine.ones(n, 3))


# ---- what Python does besides


def effects():
    """{name: (a function of x, what it counts or gives)} of programs that a captured call would not repeat."""
    import itertools
    import logging
    import os
    import random
    import time
    import warnings
    from collections import Counter, deque

    queue, counter, numbered, listed = deque([1]), Counter(), itertools.count(), []
    rng, stream, table, state = np.random.default_rng(0), random.Random(0), np.zeros(3), {"n": 0}

    class Total:
        def __init__(self):
            self.n = 0

        def add(self):
            self.n += 1

    total = Total()

    @functools.lru_cache
    def cached(n):
        return n * random.random()

    def generator():
        yield from range(100)

    steps = generator()
    return {
        "random.random": lambda x: x * random.random(),
        "a stream of random's": lambda x: x * stream.random(),
        "np.random": lambda x: x * float(np.random.rand()),
        "a generator of NumPy's": lambda x: x * rng.random(),
        "time": lambda x: x * time.perf_counter(),
        "environment": lambda x: x * len(os.environ),
        "process": lambda x: x * os.getpid(),
        "a deque": lambda x: (queue.append(1), x * len(queue))[1],
        "a Counter": lambda x: (counter.update("a"), x * counter["a"])[1],
        "a list": lambda x: (listed.append(1), x * len(listed))[1],
        "a dict": lambda x: (state.update(n=state["n"] + 1), x * state["n"])[1],
        "an iterator": lambda x: x * next(numbered),
        "a generator": lambda x: x * next(steps),
        "an object": lambda x: (total.add(), x * total.n)[1],
        "setattr": lambda x: (setattr(total, "n", total.n + 1), x * total.n)[1],
        "an array": lambda x: (table.__iadd__(1), x * float(table[0]))[1],
        "globals": lambda x: (globals().update(ANY=1), x)[1],
        "logging": lambda x: (logging.getLogger("quiet").debug("x"), x * 1)[1],
        "a warning": lambda x: (warnings.warn("seen", stacklevel=1), x * 1)[1],
        "a cached function": lambda x: x * cached(3),
        "a seed": lambda x: (engine.manual_seed(0), x + engine.rand(3))[1],
        "id": lambda x: x * (id(x) % 3),
        "print": lambda x: (print("seen"), x)[1],
    }


@over("name", effects())
@pytest.mark.filterwarnings("ignore:seen")
def test_what_a_captured_call_would_not_repeat_is_a_break(name):
    f = effects()[name]
    with pytest.raises(GraphBreak) as error:
        captured(f)(numbers(3))
    assert "test_compile_semantics.py:" in str(error.value) or "it changes what it reads" in str(error.value)
    counted, twin = effects()[name], effects()[name]
    compiled = engine.compile(counted)
    if name.startswith("a") and "cached" not in name:  # those that count
        for _ in range(4):
            assert engine.equal(compiled(numbers(3)), twin(numbers(3)))


def changes():
    """{name: (a function, what happens between two calls of it)}, made anew each time."""

    class Values:
        number, listed, act, nothing = 2.0, [2.0], staticmethod(engine.relu), None

        def method(self, x):
            return x * self.number

        def maker(self):
            self.made = Made(1.0)
            return self

    class Other(Values):
        def method(self, x):
            return x * 7

    class Slots:
        __slots__ = ("a", "b", "c")

        def __init__(self):
            self.a, self.b = 2.0, [3.0]

    class Private(nn.Module):
        def __init__(self):
            super().__init__()
            self._act, self._scales, self._none, self._tensor = engine.relu, [2.0], None, engine.tensor(3.0)

        def forward(self, x):
            y = self._act(x) * self._scales[0] * self._tensor
            return y if self._none is None else y * self._none

    class Made:
        def __init__(self, x):
            self.x = x * factor[0]

    class Descriptor:
        value = 2.0

        def __get__(self, instance, owner):
            return self.value

    class Described:
        attribute = Descriptor()

    class Listed(list):
        pass

    class Above:
        def scaled(self, x):
            return x * 2

    class Below(Above):
        def scaled(self, x):
            return super().scaled(x) + 1

    class Called:
        def __init__(self, function):
            functools.update_wrapper(self, function)
            self.scale, self.entries = 2.0, 3

        def __call__(self, x):
            return self.__wrapped__(x) * self.scale

    class Color(enum.Enum):
        RED = [2.0]

    def helper(x, k=2.0, *, m=3.0):
        return x * k + m

    def other(x, k=2.0, *, m=3.0):
        return x - k - m

    @functools.wraps(engine.relu)
    def wrapped(x):
        return engine.relu(x) * factor[0]

    def missing(x):
        try:
            return x * later
        except NameError:
            return x * 9

    def looked_up_there(x):
        return x * looked_up("a")

    def set_span():
        nonlocal span
        span = slice(1, 3)

    def set_later():
        nonlocal later
        later = 3.0

    def in_order(x):
        for v in table.values():
            x = x * 2 + v
        return x

    def module(name, text):
        made = types.ModuleType(name)
        exec(text, vars(made))
        return made

    values, slots, private, described, listed = Values(), Slots(), Private(), Described(), Listed([2.0])
    called, factor, table, bag = Called(lambda x: x + 1), [2.0], {"a": 1.0, "b": 2.0}, {2.0}
    below, looked_up, span = Below(), {"a": 2.0}.get, slice(0, 2)
    given, by_name = functools.partial(lambda k, x: x * k[0], [2.0]), functools.partial(lambda x, k: x * k[0], k=[2.0])
    hooked, read, grids = nn.ReLU(), [2.0], [np.ones((1, 3), np.float32)]
    hooked.register_forward_hook(lambda module, args, out: out * read[0])
    space, parts = {"engine": engine}, nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    parts.forward = lambda x: functools.reduce(lambda x, part: part(x - 1), parts.values(), x)
    exec("def added(x):\n  try: return x * K\n  except NameError: return x * 9", space)
    config = module("config", "K = 2.0\nL = [2.0]\nclass C:\n  k = 2.0\ndef helper(x):\n  return x * K * L[0]")
    config.sub = module("config.sub", "S = 2.0")
    later = 0.0
    del later
    return {
        "the sign of a zero": (lambda x: x / factor[0], lambda: factor.__setitem__(0, 0.0),
                               lambda: factor.__setitem__(0, -0.0)),
        "a nan": (lambda x: x * factor[0], lambda: factor.__setitem__(0, math.nan)),
        "the order of a dict": (in_order, lambda: table.update(a=table.pop("a"))),
        "a private list": (private, lambda: private._scales.__setitem__(0, 5.0)),
        "a private function": (private, lambda: setattr(private, "_act", engine.tanh)),
        "a private None": (private, lambda: setattr(private, "_none", 5.0)),
        "a private tensor": (private, lambda: setattr(private, "_tensor", engine.tensor(5.0))),
        "a list of a class": (lambda x: x * Values.listed[0], lambda: Values.listed.__setitem__(0, 5.0)),
        "a list of an object's class": (lambda x: x * values.listed[0], lambda: setattr(Values, "listed", [5.0])),
        "a function of a class": (lambda x: Values.act(x), lambda: setattr(Values, "act", staticmethod(engine.tanh))),
        "a method": (lambda x: values.method(x), lambda: setattr(Values, "method", lambda self, x: x * 5)),
        "None in a class": (lambda x: x * (values.nothing or 1), lambda: setattr(Values, "nothing", 5.0)),
        "a new attribute of a class": (lambda x: x * getattr(values, "new", 1), lambda: setattr(Values, "new", 5.0)),
        "an overriding class": (lambda x: values.method(x), lambda: setattr(values, "__class__", Other)),
        "a class of a module": (lambda x: private(x), lambda: setattr(
            private, "__class__", type("Changed", (Private,), {"forward": lambda self, x: x * 7}))),
        "a method of a module": (private, lambda: setattr(Private, "forward", lambda self, x: x * 7)),
        "a method of the class above": (lambda x: below.scaled(x), lambda: setattr(Above, "scaled", lambda self, x: x)),
        "what a method of a dict's looks up": (looked_up_there, lambda: looked_up.__self__.update(a=5.0)),
        "what a partial function is given": (lambda x: given(x), lambda: given.args[0].__setitem__(0, 5.0)),
        "what it is given by name": (lambda x: by_name(x), lambda: by_name.keywords["k"].__setitem__(0, 5.0)),
        "what a hook reads": (hooked, lambda: read.__setitem__(0, 5.0)),
        "a hook beside it": (hooked, lambda: hooked.register_forward_hook(lambda module, args, out: out + 1)),
        "the shape of an array": (lambda x: x * engine.tensor(grids[0]), lambda: grids.__setitem__(0, grids[0].T)),
        "a slice": (lambda x: x[span] * 2, set_span),
        "what a new object reads": (lambda x: Made(x).x, lambda: factor.__setitem__(0, 5.0)),
        "a descriptor": (lambda x: x * described.attribute, lambda: setattr(Descriptor, "value", 5.0)),
        "slots": (lambda x: x * slots.a, lambda: setattr(slots, "a", 5.0)),
        "a list in slots": (lambda x: x * slots.b[0], lambda: slots.b.__setitem__(0, 5.0)),
        "an empty slot": (lambda x: x * getattr(slots, "c", 1.0), lambda: setattr(slots, "c", 5.0)),
        "a class made of list": (lambda x: x * listed[0], lambda: listed.__setitem__(0, 5.0)),
        "an attribute of a class made of list": (
            lambda x: x * getattr(listed, "k", 1.0), lambda: setattr(listed, "k", 5.0)),
        "an object around a function": (lambda x: called(x), lambda: setattr(called, "scale", 5.0)),
        "an object with names of the compiler's": (called, lambda: setattr(called, "scale", 5.0)),
        "code": (lambda x: helper(x), lambda: setattr(helper, "__code__", other.__code__)),
        "own code": (helper, lambda: setattr(helper, "__code__", other.__code__)),
        "defaults": (lambda x: helper(x), lambda: setattr(helper, "__defaults__", (5.0,))),
        "own defaults": (helper, lambda: setattr(helper, "__defaults__", (5.0,))),
        "defaults of keywords": (lambda x: helper(x), lambda: helper.__kwdefaults__.update(m=5.0)),
        "an attribute of a function": (lambda x: x * getattr(helper, "k", 1.0), lambda: setattr(helper, "k", 5.0)),
        "a function with an engine's name": (lambda x: wrapped(x), lambda: factor.__setitem__(0, 5.0)),
        "a variable that is not there yet": (missing, set_later),
        "a global that is not there yet": (space["added"], lambda: space.update(K=5.0)),
        "a value of a module": (lambda x: config.helper(x), lambda: setattr(config, "K", 5.0)),
        "a list of a module": (lambda x: config.helper(x), lambda: config.L.__setitem__(0, 5.0)),
        "a function of a module": (lambda x: config.helper(x), lambda: setattr(config, "helper", lambda x: x * 5)),
        "a class in a module": (lambda x: x * config.C.k, lambda: setattr(config.C, "k", 5.0)),
        "the order of modules": (parts, lambda: parts.update({"a": parts.pop("a")})),
        "a module in a module": (lambda x: x * config.sub.S, lambda: setattr(config.sub, "S", 5.0)),
        "a set": (lambda x: x * sum(bag), lambda: bag.add(5.0)),
        "a member of an enumeration": (lambda x: x * Color.RED.value[0], lambda: Color.RED.value.__setitem__(0, 5.0)),
    }  # fmt: skip


@over("name", changes())
def test_what_a_capture_has_read_is_a_guard(name):
    x = numbers(3)
    f, *between = changes()[name]
    twin, *others = changes()[name]
    compiled = captured(twin)
    np.testing.assert_array_equal(compiled(x).numpy(), f(x).numpy())
    for change, again in zip(between, others, strict=True):
        change()
        again()
        np.testing.assert_array_equal(compiled(x).numpy(), f(x).numpy())


@over(
    "held, words",
    [
        (bytearray(b"\2"), "it uses held, of the type"),
        ({2: 1}.keys(), "it uses held, of the type"),
        (types.MappingProxyType({0: 2}), "it uses held, of the type"),
        (np.array([None, 2]), "a NumPy array of Python's objects is read"),
        (np.zeros(1001), "a large NumPy array is read"),
        ([*range(5000)], "it reads more Python values than guards can watch"),
    ],
)
def test_what_no_guard_can_watch_is_a_break(held, words):
    with pytest.raises(GraphBreak, match=words):
        captured(lambda x: x * len(held))(numbers(3))


def marked(n):
    x = numbers(3)
    x.mark = n
    return x


W = engine.tensor([1.0, 2.0, 3.0])
TELLS = {
    "its number": (lambda x: x * x.mark, lambda n: marked(n + 1)),
    "whether it has one": (lambda x: x * getattr(x, "mark", 5), lambda n: [numbers, marked][n](3)),
    "which it is": (lambda x: x * 2 if x is W else x * 3, lambda n: [numbers(3), W][n]),
    "whether it is a leaf": (lambda x: x * 2 if x.is_leaf else x * 3, lambda n: numbers(3, grad=True) + [0, 1][n]),
    "whether one of the two is": (
        lambda x: x * 2 if x.is_leaf else x * 3,
        lambda n: numbers(3, grad=True) * 1 if n else numbers(3, grad=True),
    ),
    "whether it has a grad_fn": (lambda x: x * 2 if x.grad_fn else x * 3, lambda n: numbers(3, grad=True) + n),
    "how often it was written": (lambda x: x * x._version, lambda n: numbers(3).add_(n) if n else numbers(3)),
    "whether it is a view": (lambda x: x * 2 if x._is_view() else x * 3, lambda n: [numbers(3), numbers(3, 3)[0]][n]),
    "where it begins": (lambda x: x + x.storage_offset(), lambda n: numbers(6)[n : n + 3]),
    "what stands for it in a dict": (lambda x, table={W: 2}: x * table.get(x, 3), lambda n: [numbers(3), W][n]),
}


@over("name, backwards", itertools.product(TELLS, [False, True]))
def test_what_a_program_asks_of_a_tensor_is_that_of_the_call(name, backwards):
    f, made = TELLS[name]
    compiled = engine.compile(f)
    for n in (1, 0) if backwards else (0, 1):
        x = made(n)
        assert engine.equal(compiled(x), f(x))


def test_a_dict_whose_keys_are_tensors_is_a_break():
    f = lambda x, table: {x: x * table[x]}  # noqa: E731
    x, y = numbers(3), numbers(3)
    compiled, table = engine.compile(f), {x: 2, y: 3}
    for tensor, number in table.items():
        assert engine.equal(compiled(tensor, table)[tensor], tensor * number)
    with pytest.raises(GraphBreak, match="keys are tensors"):
        captured(lambda x: {x: x * 2})(x)


class Held:
    def __init__(self, x):
        self.x = x


NEW = {
    "object": lambda x: Held(x),
    "function": lambda x: lambda: x * 2,
    "partial": lambda x: functools.partial(engine.add, x),
    "generator": lambda x: (t * 2 for t in [x]),
    "map": lambda x: map(engine.exp, [x]),
    "set": lambda x: (x * 2, {1}),
    "ndarray": lambda x: (x * 2, np.zeros(3)),
    "module": lambda x: (x * 2, nn.ReLU()),
}


@over("name", NEW)
def test_an_object_that_each_call_makes_is_a_break(name):
    with pytest.raises(GraphBreak, match="it returns an object that it makes"):
        captured(NEW[name])(numbers(3))


def test_a_list_that_was_there_before_is_returned_itself():
    kept, given = [numbers(3)], [numbers(3)]
    compiled = engine.compile(lambda xs: (xs, kept))
    for _ in range(2):
        a, b = compiled(given)
        assert a is given and b is kept


def test_an_object_that_was_there_before_is_returned_itself():
    held = Held(1)
    assert captured(lambda x: (x * 2, held, Held, engine.relu))(numbers(3))[1:] == (held, Held, engine.relu)


def with_falling_lr(step_of, steps=4):
    """What a step gives and leaves in the parameters, while the learning rate falls outside."""
    model, found = small(), []
    opt = engine.optim.SGD(model.parameters(), 0.1, momentum=0.5)
    schedule = engine.optim.lr_scheduler.StepLR(opt, 2, 0.5)
    step = step_of(model, opt, schedule)
    for n in range(steps):
        out = step(numbers(5, 4, seed=n))
        schedule.step()
        found += [out, *(p.detach().clone() for p in model.parameters())]
    return found


def by_hand(model, opt, schedule):
    def step(x):
        opt.zero_grad()
        model(x).square().mean().backward()
        with engine.no_grad():
            for group in opt.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad, alpha=group["lr"])
        return x * schedule.last_epoch

    return step


def with_lr(ask, inside=False):
    def made(model, opt, schedule):
        def step(x):
            opt.zero_grad()
            model(x).square().mean().backward()
            opt.step()
            if inside:
                schedule.step()
            return x * ask(opt, schedule)

        return step

    return made


OPTIONS = {
    "by hand": by_hand,
    "get_last_lr": with_lr(lambda opt, schedule: schedule.get_last_lr()[0]),
    "after a step": with_lr(lambda opt, schedule: opt.param_groups[0]["lr"], inside=True),
    "state": with_lr(lambda opt, schedule: len(opt.state)),
}


@over("name", OPTIONS)
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_options_that_a_program_reads_are_those_of_the_call(name):
    made = OPTIONS[name]
    expected, found = with_falling_lr(made), with_falling_lr(lambda *parts: engine.compile(made(*parts)))
    for a, b in zip(found, expected, strict=True):
        same(a, b)


THREADS = engine.get_num_threads
SET = {
    "threads": lambda x: x * engine.get_num_threads(),
    "threads, by a name of its own": lambda x: x * THREADS(),
    "threads, set": lambda x: (engine.set_num_threads(1), x)[1],
    "seed": lambda x: x * engine.initial_seed(),
    "seed of a generator": lambda x: x * OWN.initial_seed(),
    "streams": lambda x: x + engine.random.fork_rng().__enter__(),
    "printing": lambda x: (engine.set_printoptions(), x)[1],
    "precision": lambda x: x if engine.get_float32_matmul_precision() == "high" else x * 2,
    "determinism": lambda x: (engine.use_deterministic_algorithms(True), x)[1],
    "files": lambda x: x * engine.load("none"),
}


@over("name", SET)
def test_settings_that_no_guard_watches_are_a_break(name):
    with pytest.raises(GraphBreak, match="a setting|initial_seed of an object"):
        captured(SET[name])(numbers(3))


@pytest.mark.parametrize("said", [lambda: None, lambda: print("backward")])
def test_backward_of_a_function_of_the_users_own_is_read(said, capsys):
    factor = [2.0]

    class Scaled(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            said()
            return g * factor[0]

    compiled = engine.compile(lambda x: Scaled.apply(x) * 3)
    for value in (2.0, 5.0):
        factor[0], x = value, numbers(3, grad=True)
        compiled(x).sum().backward()
        assert x.grad.tolist() == [3 * value] * 3
    assert capsys.readouterr().out in ("", "backward\nbackward\n")


def test_a_result_keeps_its_gradient():
    def f(x):
        y = x * 2
        y.retain_grad()
        return y, y.sum()

    compiled = engine.compile(f)
    for _ in range(2):
        y, total = compiled(numbers(3, grad=True))
        total.backward()
        assert y.grad.tolist() == [1, 1, 1]
    with pytest.raises(GraphBreak, match="calls retain_grad"):
        captured(f)(numbers(3, grad=True))


def test_the_hook_of_a_result_is_captured():
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y

    x = numbers(3, grad=True)
    captured(f)(x).sum().backward()
    assert x.grad.tolist() == [20, 20, 20]


def test_a_write_into_an_inference_tensor_is_refused():
    compiled = captured(lambda x: x.add_(1))
    compiled(numbers(3))
    with engine.inference_mode():
        x = numbers(3)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        engine.compile(lambda x: x.add_(1))(x)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        compiled(x)


def test_a_decorated_function_is_captured_with_what_it_reads():
    factor = [2.0]

    @engine.no_grad()
    def f(x):
        return x * factor[0]

    compiled = captured(f)
    for factor[0] in (2.0, 5.0):
        same(compiled(numbers(3, grad=True)), f(numbers(3, grad=True)))


def test_what_is_made_in_inference_mode_is_an_inference_tensor():
    def f(x):
        with engine.inference_mode():
            return x * 2

    compiled = engine.compile(f)
    assert [compiled(numbers(3)).is_inference() for _ in range(2)] == [True, True]


def appended(xs):
    xs.append(xs[0] * 2)
    return xs[-1]


def put(xs):
    xs[0]["y"] = 3
    return xs[0]["x"] * 2


@over("f, dynamic", itertools.product([appended, put, lambda xs: xs.pop() * 2], [None, True]))
def test_a_list_that_is_given_is_changed_by_each_call(f, dynamic):
    compiled = engine.compile(f, dynamic=dynamic)
    for n in (3, 3, 4):
        first = {"x": numbers(n)} if f is put else numbers(n)
        given, twin = [first, numbers(n)], [first.copy() if f is put else first, numbers(n)]
        same(compiled(given), f(twin))
        assert len(given) == len(twin) and all(type(a) is type(b) for a, b in zip(given, twin, strict=True))
        assert type(given[0]) is not dict or given[0].keys() == twin[0].keys()
    with pytest.raises(GraphBreak, match="changes a list or dict that it is given"):
        captured(f)([{"x": numbers(3)} if f is put else numbers(3)])


def test_printing_of_a_tensor_says_what_it_is():
    with pytest.raises(GraphBreak, match="printing"):
        captured(lambda x: x * len(str(x)))(numbers(3))


def test_a_tensor_on_the_memory_of_an_array_stays_there():
    array = np.ones(2, np.float32)
    compiled = engine.compile(lambda x: (x * 2, engine.from_numpy(array)))
    for _ in range(2):
        y = compiled(numbers(2))[1]
        array += 1
        assert y.tolist() == array.tolist()


def test_the_condition_that_does_not_hold_is_named():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = []

        def forward(self, x):
            self.seen.append(1)
            return x * 2

    assert "len(dict['seen']) == 0" in explain(Net())(numbers(3)).break_reasons[0]


def test_the_dtype_and_the_device_of_what_is_created_are_guards():
    compiled = captured(lambda: engine.ones(3) * 2)
    assert compiled().dtype is engine.float32
    try:
        engine.set_default_dtype(engine.float64)
        assert compiled().dtype is engine.float64
        engine.set_default_device("sim")
        assert compiled().device.type == "sim"
    finally:
        engine.set_default_dtype(engine.float32)
        engine.set_default_device(None)


def test_an_object_holds_what_the_function_does_not_use():
    import random

    class Trainer:
        def __init__(self):
            self.stream, self.scale = random.Random(0), 2.0

        def run(self, x):
            return x * self.scale

        def drawn(self, x):
            return x * self.stream.random()

    trainer = Trainer()
    assert engine.equal(captured(trainer.run)(numbers(3)), numbers(3) * 2)
    with pytest.raises(GraphBreak, match="it uses .*_stream, of the module random"):
        captured(trainer.drawn)(numbers(3))


def test_mathematics_of_the_standard_library_is_known():
    import functools
    import math
    import operator

    add = functools.partial(operator.add, 1.0)
    compiled = captured(lambda x: functools.reduce(operator.mul, [x, x]) * math.sqrt(2.0) + add(2.0))
    same(compiled(numbers(3)), numbers(3) * numbers(3) * 2.0**0.5 + 3.0)


# ---- modes, threads, nesting, structures


def small():
    engine.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2))


def casted(function, x, model, dtype):
    with engine.autocast("cpu", dtype=dtype):
        y = function(x)
    model.zero_grad()
    y.float().square().sum().backward()
    return y, model[0].weight.grad


def test_autocast_around_is_captured_and_guarded():
    model, x = small(), numbers(5, 4)
    compiled = engine.compile(model, fullgraph=True)
    for dtype in (engine.bfloat16, engine.float16, engine.bfloat16):
        found, expected = casted(compiled, x, model, dtype), casted(model, x, model, dtype)
        assert found[0].dtype == dtype
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.detach().float().numpy(), b.detach().float().numpy(), 1e-2, 1e-2)
    assert compiled(x).dtype == engine.float32
    assert len(compiled.compiled.entries) == 3


def test_autocast_inside_is_captured():
    model, x = small(), numbers(5, 4)

    def f(x):
        with engine.autocast("cpu", dtype=engine.bfloat16):
            y = model(x)
        return y.float() + model(x)

    compiled = captured(f)
    for _ in range(2):
        np.testing.assert_allclose(compiled(x).detach().numpy(), f(x).detach().numpy(), 1e-2, 1e-2)
    assert len(compiled.entries) == 1


def test_autocast_in_one_thread_is_not_in_another():
    from concurrent.futures import ThreadPoolExecutor

    model, x = small(), numbers(5, 4)
    compiled = engine.compile(model)

    def work(i):
        for _ in range(5):
            if i % 2:
                with engine.autocast("cpu", dtype=engine.bfloat16):
                    assert compiled(x).dtype == engine.bfloat16
            else:
                assert compiled(x).dtype == engine.float32
        return True

    with ThreadPoolExecutor(10) as pool:
        assert all(pool.map(work, range(20)))


def test_no_grad_around_and_inside():
    w = numbers(3, grad=True)

    def f(x):
        with engine.no_grad():
            scale = (w * x).sum()
        return w * scale

    compiled, x = captured(f), numbers(3, seed=1)
    y = compiled(x)
    y.sum().backward()
    same(w.grad, engine.full((3,), (w * x).sum().item()))
    with engine.no_grad():
        assert not compiled(x).requires_grad
    assert compiled(x).requires_grad and len(compiled.entries) == 2


def test_ten_threads_train_with_one_compiled_function():
    from concurrent.futures import ThreadPoolExecutor

    @engine.compile(fullgraph=True)
    def loss(x, w):
        return ((x @ w).tanh() - 1).square().mean()

    def work(seed):
        x, w = numbers(6, 3, seed=seed), numbers(3, 2, seed=seed + 50, grad=True)
        twin = w.detach().clone().requires_grad_()
        for _ in range(10):
            for p, function in ((w, loss), (twin, loss.__wrapped__)):
                p.grad = None
                function(x, p).backward()
                with engine.no_grad():
                    p -= p.grad
        np.testing.assert_allclose(w.detach().numpy(), twin.detach().numpy(), 1e-4)
        return True

    with ThreadPoolExecutor(10) as pool:
        assert all(pool.map(work, range(10)))


def test_a_capture_is_not_seen_by_other_threads(monkeypatch):
    """They compute with the very tensors that are captured, and find their arrays, nodes, gradients and classes."""
    from concurrent.futures import ThreadPoolExecutor

    model, x, other = nn.Linear(3, 2), numbers(4, 3), numbers(4, 3, seed=1, grad=True)
    f = engine.compile(lambda x: x.exp())
    f(x)
    parts = [(p, p.array, p.node) for p in (x, other, *model.parameters())]
    expected = model(x).sum()
    expected_grads = engine.autograd.grad(expected, [*model.parameters()])
    results, found = engine.compiler.Entry.results, []

    def elsewhere():
        assert all(p.array is array and p.node is node for p, array, node in parts)
        assert isinstance(model.weight, nn.Parameter) and model.weight.__class__ is nn.Parameter
        assert repr(model.weight) == shown and type(copy.deepcopy(model.weight)) is nn.Parameter
        loss = model(x).sum()
        grads = engine.autograd.grad(loss, [*model.parameters()])
        (model(x) * other.sum()).mean().backward()
        assert all(type(p.grad) is engine.Tensor for p in (other, *model.parameters()))
        model.zero_grad()
        f(x)
        return loss, *grads

    def meanwhile(*args):
        assert "array" not in vars(engine.Tensor) and type(other) is engine.Tensor
        with ThreadPoolExecutor(1) as pool:
            found.extend(pool.submit(elsewhere).result())
        return results(*args)

    shown = repr(model.weight)
    monkeypatch.setattr(engine.compiler.Entry, "results", meanwhile)
    y = captured(model)(x)
    assert len(f.entries) == 1
    for a, b in zip(found, (expected, *expected_grads), strict=True):
        assert engine.equal(a, b)
    assert engine.equal(y, model(x)) and all(type(p) is nn.Parameter and p.grad is None for p in model.parameters())


def test_dropout_in_ten_threads_draws_every_number_once():
    from concurrent.futures import ThreadPoolExecutor

    compiled, own = captured(lambda x, g: x + engine.rand(1000, generator=g), dynamic=False), engine.Generator()
    own.manual_seed(4)
    with ThreadPoolExecutor(10) as pool:
        drawn = np.concatenate([y.numpy() for y in pool.map(lambda _: compiled(engine.zeros(1000), own), range(30))])
    own.manual_seed(4)
    np.testing.assert_array_equal(np.sort(drawn), np.sort(engine.rand(30_000, generator=own).numpy()))


def test_a_method_with_keywords_and_containers():
    class Net:
        def __init__(self):
            self.w = numbers(3, grad=True)

        @engine.compile(fullgraph=True)
        def run(self, batch, *, scale=1.0, names=("a",)):
            y = {k: v * self.w * scale for k, v in batch.items()}
            return {"out": y, "n": len(names), "none": None, "name": names[0], "list": [y["a"].sum(), (1, "two")]}

    net = Net()
    for scale in (1.0, 2.0):
        for _ in range(2):
            r = net.run({"a": numbers(3), "b": numbers(2, 3)}, scale=scale, names=("x", "y"))
            assert r["n"] == 2 and r["none"] is None and r["name"] == "x" and r["list"][1] == (1, "two")
            same(r["out"]["b"], numbers(2, 3) * net.w * scale)
    r["list"][0].backward()
    same(net.w.grad, numbers(3) * 2)


def test_two_objects_of_one_method_have_their_own_captures():
    class Scale:
        def __init__(self, k):
            self.k = k

        @engine.compile
        def run(self, x):
            return x * self.k

    a, b, x = Scale(2.0), Scale(3.0), numbers(3)
    for _ in range(2):
        assert engine.equal(a.run(x), x * 2) and engine.equal(b.run(x), x * 3)


def test_a_closure_of_a_compiled_function_in_a_compiled_function():
    inner = engine.compile(lambda x: x.tanh() * 2)

    def f(x):
        return inner(inner(x)) + 1

    compiled = captured(f)
    same(compiled(numbers(3)), f(numbers(3)))


def test_the_users_line_is_in_the_traceback():
    import traceback

    def f(x, y):
        z = x * 2
        return z @ y  # the line

    compiled = engine.compile(f)
    compiled(numbers(2, 3), numbers(3, 2))
    with pytest.raises(RuntimeError) as error:
        compiled(numbers(2, 3), numbers(2, 3))
    assert any("# the line" in (frame.line or "") for frame in traceback.extract_tb(error.value.__traceback__))


def test_hooks_of_modules_run_once_a_call():
    model, seen = small(), []
    compiled = engine.compile(model)
    model[0].register_forward_hook(lambda m, i, o: seen.append(o.shape))
    model[2].register_full_backward_hook(lambda m, i, o: seen.append("back"))
    for n in range(1, 4):
        compiled(numbers(5, 4)).sum().backward()
        assert len(seen) == 2 * n
    assert "has backward hooks" in explain(compiled)(numbers(5, 4)).break_reasons[0]


def test_forward_hooks_are_captured_with_their_module():
    model, x = small(), numbers(5, 4)
    compiled = engine.compile(model, fullgraph=True)
    plain = compiled(x)
    first = model[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    second = model[2].register_forward_hook(lambda m, args, out: out + 1)
    same(compiled(x), model(x))
    assert not engine.equal(compiled(x), plain)
    second.remove()
    same(compiled(x), model(x))
    first.remove()
    same(compiled(x), plain)


def test_reset_forgets_captures():
    compiled = captured(lambda x: x * 2)
    compiled(numbers(3))
    engine.compiler.reset()
    assert compiled.entries == [] and engine.equal(compiled(numbers(3)), numbers(3) * 2)


def test_past_the_limit_it_runs_eagerly_and_explain_says_why():
    compiled = engine.compile(lambda x, k: x * k)
    for k in range(engine.compiler.LIMIT):
        compiled(numbers(3), k)
    told = repr(explain(compiled)(numbers(3), 100))
    assert "Captures Before: 8 of at most 8" in told and "a1 == 7" in told
    assert engine.equal(compiled(numbers(3), 101), numbers(3) * 101) and len(compiled.entries) == engine.compiler.LIMIT


# ---- programs made at random: writes, views, draws, gradients and sizes together

STEPS = [
    lambda v, i, j: v.append(v[i] * 2 + v[j]),
    lambda v, i, j: v.append(v[i].tanh()),
    lambda v, i, j: v.append(v[i] @ v[j].t() @ v[i] * 0.1),
    lambda v, i, j: v.append(v[i] - v[j].mean(0)),
    lambda v, i, j: v.append(F.dropout(v[i], 0.3)),
    lambda v, i, j: v.append(v[i] + engine.rand_like(v[j])),
    lambda v, i, j: v.append(v[i].softmax(1)),
    lambda v, i, j: v.append(v[i].reshape(-1).cumsum(0).view(v[i].shape[0], -1)),
    lambda v, i, j: v.append(engine.cat([v[i][1:], v[j][:1]])),
    lambda v, i, j: v.append(v[i].detach()),
    lambda v, i, j: v.append(v[i].view(v[i].shape)),
    lambda v, i, j: v[i].add_(v[j].detach() * 0.5),
    lambda v, i, j: v[i].mul_(0.5),
    lambda v, i, j: v[i][1:].sub_(1.0),
    lambda v, i, j: v[i].__setitem__((slice(None), 0), v[j][:, 1].detach()),
    lambda v, i, j: v.append(v[i].clone().t().t()),
]


def program(seed):
    """A function of three matrices, the last of which requires grad; it may raise, as its eager form does."""
    rng = np.random.default_rng(seed)
    steps, n = [], 3
    for step in map(int, rng.integers(len(STEPS), size=10)):
        steps.append((step, *map(int, rng.integers(n, size=2))))
        n += not 11 <= step <= 14  # these write, the others make something
    chosen = [int(k) for k in rng.integers(n, size=3)]

    def f(x, y, w):
        v = [x, y, w * 1.0]
        for step, i, j in steps:
            STEPS[step](v, i, j)
        return tuple(v[k] for k in chosen)

    return f


def ran(function, n, seed):
    """(results, inputs, their versions, gradient of w), or the error."""
    engine.manual_seed(n)
    x, y, w = (numbers(n, 4, seed=[seed, n, i], dtype="float64", grad=i == 2) for i in range(3))
    try:
        results = function(x, y, w)
        loss = sum((r * (i + 1)).sum() for i, r in enumerate(results))
        if loss.requires_grad:
            loss.backward()
    except RuntimeError as error:
        return str(error)[:60]
    shared = [[a.data_ptr() == b.data_ptr() for a in (*results, x, y)] for b in results]
    arrays = [t.detach().numpy().copy() for t in (*results, x, y, engine.rand(2))]
    facts = [t.requires_grad for t in results], [t._version for t in (x, y, w)], shared
    return arrays, facts, None if w.grad is None else w.grad.numpy()


@pytest.mark.parametrize("seed", some_of(60))
def test_programs_made_at_random(seed):
    f = program(seed)
    compiled = engine.compile(f)
    for n in (5, 5, 7, 6, 30):
        found, expected = ran(compiled, n, seed), ran(f, n, seed)
        if isinstance(expected, str):
            assert found == expected
            continue
        for a, b in zip(found[0], expected[0], strict=True):
            np.testing.assert_allclose(a, b, 1e-9, 1e-11)
        assert found[1] == expected[1]
        assert (found[2] is None) == (expected[2] is None)
        if found[2] is not None:
            np.testing.assert_allclose(found[2], expected[2], 1e-8, 1e-10)


# ---- gradients that a function computes for itself


def test_autograd_grad_inside():
    w = numbers(3, grad=True)

    def f(x):
        y = ((w * x).tanh()).sum()
        (g,) = engine.autograd.grad(y, w)
        return g * 2

    compiled = captured(f)
    for seed in range(2):
        same(compiled(numbers(3, seed=seed)), f(numbers(3, seed=seed)))
    assert w.grad is None


def test_a_gradient_penalty_inside():
    w = numbers(4, 3, grad=True)

    def f(x):
        x = x.detach().requires_grad_()
        y = (x @ w).tanh().sum()
        (g,) = engine.autograd.grad(y, x, create_graph=True)
        return (g.square().sum(1) - 1).square().mean()

    compiled = captured(f)
    for seed in range(3):
        x = numbers(5, 4, seed=seed)
        ours, theirs = (engine.autograd.grad(function(x), w)[0] for function in (compiled, f))
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-4, 1e-6)
    assert len(compiled.entries) == 1


def test_the_gradient_of_a_leaf_that_is_made_inside():
    def f(x):
        leaf = x.detach().clone().requires_grad_()
        (leaf**3).sum().backward()
        return leaf.grad

    compiled = captured(f)
    for seed in range(2):
        same(compiled(numbers(3, seed=seed)), f(numbers(3, seed=seed)))


def test_requires_grad_of_an_argument_is_changed_as_in_eager():
    def f(x):
        x.requires_grad_()
        return (x * 2).sum()

    compiled = engine.compile(f)
    for _ in range(2):
        x = numbers(3)
        compiled(x).backward()
        assert x.requires_grad and engine.equal(x.grad, engine.full((3,), 2.0))
    with pytest.raises(GraphBreak, match="requires grad is changed"):
        captured(f)(numbers(3))


def test_a_transform_inside():
    def f(w, xs):
        return engine.vmap(engine.func.grad(lambda w, x: (w * x).sin().sum()), in_dims=(None, 0))(w, xs)

    compiled = engine.compile(f)
    for seed in range(2):
        same(compiled(numbers(3), numbers(5, 3, seed=seed)), f(numbers(3), numbers(5, 3, seed=seed)))


def test_a_compiled_function_is_checkpointed():
    model = nn.Sequential(small(), nn.Dropout(0.5))
    results = []
    for f in (model, engine.compile(model)):
        engine.manual_seed(0)
        for n in range(2):
            x = numbers(3, 4, seed=n, grad=True)
            y = engine.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
            y.sum().backward()
            results.append((y, x.grad))
    for found, expected in zip(results[2:], results[:2], strict=True):
        for a, b in zip(found, expected, strict=True):
            same(a, b)


def test_checkpointed_parts_draw_the_same_again():
    from engine.utils.checkpoint import checkpoint

    w = numbers(4, 4, grad=True)

    def f(x):
        return checkpoint(lambda x: F.dropout((x @ w).tanh(), 0.5), x, use_reentrant=False).sum()

    def run(function):
        engine.manual_seed(0)
        w.grad = None
        y = function(numbers(6, 4))
        y.backward()
        return y, w.grad

    compiled = engine.compile(f)
    run(compiled)
    for a, b in zip(run(compiled), run(f), strict=True):
        same(a, b)


# ---- models that people train


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(11, 8), nn.LSTM(8, 8, batch_first=True)
        self.out = nn.Linear(8, 11, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0]).transpose(1, 2)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout2d(0.2)
        self.out = nn.Linear(4 * 4 * 4, 3)

    def forward(self, x):
        return self.out(F.max_pool2d(self.drop(self.norm(self.conv(x)).relu()), 2).flatten(1))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.layer(x).mean(1))


def words(n, seed):
    rng = np.random.default_rng(seed)
    return engine.tensor(rng.integers(0, 11, (n, 5))), engine.tensor(rng.integers(0, 11, (n, 5)))


MODELS = {
    "tied": (Tied, words),
    "convolutions": (Convolutions, lambda n, s: (numbers(n, 1, 8, 8, seed=s), engine.tensor(np.arange(n) % 3))),
    "transformer": (Transformer, lambda n, s: (numbers(n, 6, 8, seed=s), engine.tensor(np.arange(n) % 3))),
}


@pytest.mark.usefixtures("no_own_sizes")
@over("name, accumulate", [("transformer", True), *((name, False) for name in MODELS)])
def test_models_are_trained_as_in_eager(name, accumulate):
    make, data = MODELS[name]

    def run(wrap):
        engine.manual_seed(0)
        model = make()
        first, *others = model.parameters()
        # the bias of the keys changes no attention: its gradient is rounding alone, which a smaller eps would magnify
        opt = engine.optim.AdamW([{"params": [first], "lr": 1e-3}, {"params": others}], lr=1e-2, eps=1e-4)

        @wrap
        def gradients(x, y):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        @wrap
        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            return loss

        losses = []
        for i, n in enumerate((4, 4, 6, 5, 9, 4)):
            losses.append((gradients if accumulate else step)(*data(n, i)).item())
            if accumulate and i % 2:
                opt.step()
                opt.zero_grad()
        return losses, model, gradients if accumulate else step

    losses, model, compiled = run(captured)
    expected, twin, _ = run(lambda f: f)
    np.testing.assert_allclose(losses, expected, 1e-4)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-3, 1e-4)
    assert len(compiled.entries) == (4 if accumulate else 2) and compiled.specialized == ""


def test_a_module_compiles_itself_in_place():
    m, x = engine.nn.Linear(3, 2), engine.ones(4, 3)
    expected = m(x)
    assert m.compile() is None
    m(x).sum().backward()
    assert m(x).equal(expected) and "forward" not in m.state_dict() and m.forward.code
    with engine.no_grad():
        m.bias += 1
    assert m(x).allclose(expected + 1)
    m.register_forward_hook(lambda module, args, out: out * 2)
    assert m(x).allclose((expected + 1) * 2)


def test_a_copy_of_a_compiled_module_has_its_own_parameters():
    m, x = engine.nn.Sequential(engine.nn.Linear(3, 2), engine.nn.Dropout(0.5)), engine.ones(4, 3)
    m[0].compile(fullgraph=True)
    m.compile()
    m.compile(fullgraph=True)
    m.eval()
    expected, other = m(x), copy.deepcopy(m)
    with engine.no_grad():
        other[0].bias += 1
    assert m(x).equal(expected) and other(x).allclose(expected + 1)
