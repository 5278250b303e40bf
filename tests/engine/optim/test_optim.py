"""Optimizers and schedulers step as PyTorch's do, and as their formulas say."""

import itertools
import math
import operator
import pickle
import warnings

import numpy as np
import pytest
from against_torch import cases
from over_tables import over
from test_modules import printed, without_modules

import engine
from engine import optim

SHAPES = ((3, 4), (5,), (), (2, 1, 3), (100, 90))  # the last one is too large to be packed with the others


def parameters(torch, shapes=SHAPES, dtype="float64"):
    rng = np.random.default_rng(0)
    return [torch.nn.Parameter(torch.tensor(rng.normal(size=s), dtype=getattr(torch, dtype))) for s in shapes]


def loss_of(params):
    return sum((p * p).sum() * 0.5 + (p + i).sin().sum() * 0.5 for i, p in enumerate(params))


def train(torch, make, steps, **options):
    """(parameters, optimizer) after some steps; ``make``: an expression such as ``SGD(p, lr=0.1)``."""
    params = parameters(torch, **options)
    optimizer = eval("optim." + make, {"optim": torch.optim, "p": params, "torch": torch})
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(params).backward()
        optimizer.step()
    return params, optimizer


OPTIMIZERS = cases("""
SGD(p)
SGD(p, lr=0.05, momentum=0.9)
SGD(p, lr=0.05, momentum=0.9, dampening=0.3)
SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1)
SGD(p, lr=0.01, weight_decay=0.1, maximize=True)
SGD(p, lr=0.01, momentum=0.5, maximize=True, foreach=True)
SGD(p, lr=torch.tensor(0.01, dtype=torch.float64))
SGD([{"params": p[:2]}, {"params": p[2:], "lr": 0.1, "momentum": 0.3}], lr=0.01)
Adam(p)
Adam(p, lr=0.05, betas=(0.3, 0.9), eps=1e-3)
Adam(p, lr=0.05, weight_decay=0.1)
Adam(p, lr=0.05, amsgrad=True)
Adam(p, lr=0.05, amsgrad=True, weight_decay=0.1, maximize=True)
Adam(p, lr=0.05, decoupled_weight_decay=True, weight_decay=0.2)
AdamW(p)
AdamW(p, lr=0.05, weight_decay=0.3, amsgrad=True)
AdamW(p, lr=0.05, betas=(0.5, 0.99), eps=1e-2, maximize=True)
RMSprop(p)
RMSprop(p, lr=0.005, alpha=0.9, eps=1e-2)
RMSprop(p, centered=True)
RMSprop(p, momentum=0.9, weight_decay=0.1)
RMSprop(p, centered=True, momentum=0.5, maximize=True)
Adagrad(p)
Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, eps=1e-3)
Adagrad(p, initial_accumulator_value=0.5, maximize=True)
SGD(p, lr=0.05, momentum=0.9, fused=True)
Adam(p, lr=torch.tensor(0.01, dtype=torch.float64), amsgrad=True, foreach=False)
Adam(p, lr=0.01, fused=True)
AdamW(p, lr=0.01, foreach=True)
RMSprop(p, lr=0.01, foreach=True)
Adagrad(p, lr=0.1, fused=True)
""")


@over("make", OPTIMIZERS)
def test_a_dozen_steps_follow_pytorchs(make):
    torch = pytest.importorskip("torch")
    (params, optimizer), (theirs, reference) = train(engine, make, 12), train(torch, make, 12)
    assert repr(optimizer) == repr(reference)
    for p, q in zip(params, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-6)
        assert p._version == q._version or "fused=True" in make  # those write without counting
    state, expected = optimizer.state_dict(), reference.state_dict()
    assert list(state) == list(expected)
    assert str(state["param_groups"]) == str(expected["param_groups"])
    assert list(state["state"]) == list(expected["state"])
    for i, values in expected["state"].items():
        assert list(state["state"][i]) == list(values)
        for name, value in values.items():
            mine = state["state"][i][name]
            assert (str(mine.dtype), tuple(mine.shape)) == (str(value.dtype), tuple(value.shape))
            np.testing.assert_allclose(mine.numpy(), value.numpy(), 1e-6, 1e-9)


NAMED = ["SGD(p, lr=0.01, momentum=0.9)", "Adam(p)", "AdamW(p)", "RMSprop(p)", "Adagrad(p)"]


@over("make, dtype", itertools.product(NAMED, ["float32", "float16", "bfloat16"]))
def test_other_dtypes_keep_theirs(make, dtype):
    torch = pytest.importorskip("torch")
    tolerance = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}[dtype]
    (params, optimizer), (theirs, _) = (train(m, make, 10, shapes=SHAPES[:3], dtype=dtype) for m in (engine, torch))
    for p, q in zip(params, theirs, strict=True):
        assert str(p.dtype) == str(q.dtype)
        np.testing.assert_allclose(p.detach().float().numpy(), q.detach().float().numpy(), tolerance, tolerance)
        assert all(v.dtype is p.dtype for name, v in optimizer.state[p].items() if name != "step")


# ---- the formulas, written once more

FORMULAS = {
    "SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)": lambda s, t, p, g: sgd(s, t, p, g + 0.01 * p),
    "Adam(p, lr=0.1)": lambda s, t, p, g: adam(s, t, p, g, 0.1),
    "AdamW(p, lr=0.1, weight_decay=0.5)": lambda s, t, p, g: adam(s, t, p * (1 - 0.1 * 0.5), g, 0.1),
    "RMSprop(p, lr=0.1)": lambda s, t, p, g: rmsprop(s, p, g),
    "Adagrad(p, lr=0.1, lr_decay=0.5)": lambda s, t, p, g: adagrad(s, t, p, g),
}


def sgd(s, t, p, g):
    s["b"] = g if t == 1 else 0.9 * s["b"] + g
    return p - 0.1 * s["b"]


def adam(s, t, p, g, lr):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g**2
    return p - lr * (s["m"] / (1 - 0.9**t)) / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8)


def rmsprop(s, p, g):
    s["v"] = 0.99 * s.get("v", 0) + 0.01 * g**2
    return p - 0.1 * g / (np.sqrt(s["v"]) + 1e-8)


def adagrad(s, t, p, g):
    s["v"] = s.get("v", 0) + g**2
    return p - 0.1 / (1 + (t - 1) * 0.5) * g / (np.sqrt(s["v"]) + 1e-10)


@over("make", FORMULAS)
def test_steps_are_those_of_the_formula(make):
    params, _ = train(engine, make, 10)
    for i, (start, p) in enumerate(zip(parameters(engine), params, strict=True)):
        x, state = start.detach().numpy(), {}
        for t in range(1, 11):
            x = FORMULAS[make](state, t, x, x + 0.5 * np.cos(x + i))
        np.testing.assert_allclose(p.detach().numpy(), x, 1e-9, err_msg=str(i))


# ---- parameters in packs, and what happens to them meanwhile


def one_by_one(make, change, steps=6):
    """Parameters after steps of one optimizer each, ``change(step, params, optimizers)`` before every step."""
    params = parameters(engine)
    optimizers = [eval("optim." + make, {"optim": optim, "p": [p]}) for p in params]
    return stepped(params, optimizers, change, steps)


def stepped(params, optimizers, change, steps=6):
    for t in range(steps):
        for o in optimizers:
            o.zero_grad()
        loss_of(params).backward()
        change(t, params, optimizers)
        for o in optimizers:
            o.step()
    return [p.detach().numpy() for p in params]


def lose_gradient(t, params, optimizers):
    if t in (1, 2):
        params[t].grad = None


def replace_memory(t, params, optimizers):
    if t == 3:
        params[0].data = params[0].detach() * 2
        params[4].data = params[4].detach() * 2


def write_state(t, params, optimizers):
    for o in optimizers:
        for p, state in o.state.items():
            if t == 4 and p.ndim == 1:
                for name in state:
                    state[name] = state[name] + 1


def saved_and_loaded(t, params, optimizers):
    if t == 2:
        for o in optimizers:
            o.load_state_dict(pickle.loads(pickle.dumps(o.state_dict())))


def turned(t, params, optimizers):
    if t == 2:
        for p in params:
            p.data = p.detach().clone().mT.contiguous().mT if p.ndim > 1 else p.detach()


CHANGES = [lambda *_: None, lose_gradient, replace_memory, write_state, saved_and_loaded, turned]


PACKED = ["SGD(p, lr=0.1, momentum=0.9)", "Adam(p, lr=0.1, amsgrad=True)", "RMSprop(p, centered=True)"]


@over("change, make", itertools.product(CHANGES, PACKED))
def test_parameters_in_packs_step_as_they_do_alone(make, change):
    params = parameters(engine)
    together = stepped(params, [eval("optim." + make, {"optim": optim, "p": params})], change)
    for a, b in zip(together, one_by_one(make, change), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_parameter_that_comes_twice_takes_two_steps():
    p = engine.nn.Parameter(engine.ones(2))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        o = optim.Adam([p, p], lr=0.5)
    p.sum().backward()
    o.step()
    assert o.state[p]["step"].item() == 2
    np.testing.assert_allclose(p.detach().numpy(), 0.0, atol=1e-6)


def test_states_are_the_memory_that_steps_use_and_stay_the_same_tensors():
    params, o = train(engine, "Adam(p)", 2)
    mean = o.state[params[0]]["exp_avg"]
    before = mean.clone()
    loss_of(params).backward()
    o.step()
    assert o.state[params[0]]["exp_avg"] is mean
    assert not engine.equal(mean, before)
    with engine.no_grad():
        mean.zero_()
    for p in params:
        p.grad.zero_()
    o.step()
    assert not mean.any()


def test_each_state_is_saved_by_itself():
    params, o = train(engine, "Adam(p)", 1)
    pointers = {o.state[p]["exp_avg"].untyped_storage().data_ptr() for p in params}
    assert len(pointers) == len(params)
    assert all(o.state[p]["exp_avg"].storage_offset() == 0 for p in params)


def test_a_graph_from_before_the_step_is_stale():
    w = engine.nn.Parameter(engine.ones(2))
    o = optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    o.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation.* is at version 1; expected version 0"):
        loss.backward()


def test_a_step_keeps_the_memory_of_the_parameters():
    params = parameters(engine)
    o = optim.Adam(params)
    views = [p.detach().numpy() for p in params]
    loss_of(params).backward()
    o.step()
    for p, view in zip(params, views, strict=True):
        assert p.detach().numpy() is view or np.shares_memory(p.detach().numpy(), view)


def test_a_closure_is_run_with_gradients_and_its_loss_is_returned():
    p = engine.nn.Parameter(engine.tensor(2.0))
    o = optim.SGD([p], lr=0.25)

    def closure():
        o.zero_grad()
        loss = p * p
        loss.backward()
        return loss

    with engine.no_grad():
        assert o.step(closure).item() == 4.0
    assert p.item() == 1.0


def test_an_optimizer_goes_on_from_a_state_dict_as_if_nothing_had_happened():
    for make in ("SGD(p, lr=0.1, momentum=0.9)", "Adam(p)", "RMSprop(p, momentum=0.5)", "Adagrad(p)"):
        params, o = train(engine, make, 3)
        saved = [p.detach().clone() for p in params], pickle.loads(pickle.dumps(o.state_dict()))
        stepped(params, [o], lambda *_: None)
        twins = [engine.nn.Parameter(x) for x in saved[0]]
        other = eval("optim." + make, {"optim": optim, "p": twins})
        other.load_state_dict(saved[1])
        stepped(twins, [other], lambda *_: None)
        for p, q in zip(params, twins, strict=True):
            np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


# ---- schedulers

SCHEDULERS = cases("""
StepLR(o, 7, gamma=0.5)
MultiStepLR(o, [3, 11, 11, 40], gamma=0.3)
ConstantLR(o, 0.5, 9)
LinearLR(o, 0.1, 0.9, total_iters=13)
LinearLR(o)
ExponentialLR(o, 0.97)
PolynomialLR(o, 40, 2.0)
CosineAnnealingLR(o, 17, eta_min=1e-3)
CosineAnnealingWarmRestarts(o, 5, T_mult=2, eta_min=1e-4)
CosineAnnealingWarmRestarts(o, 6)
LambdaLR(o, lambda epoch: 0.9**epoch)
LambdaLR(o, [lambda epoch: 1 / (epoch + 1), lambda epoch: 1.0])
MultiplicativeLR(o, lambda epoch: 0.98)
OneCycleLR(o, 0.5, total_steps=120)
OneCycleLR(o, [0.5, 0.1], epochs=12, steps_per_epoch=10, anneal_strategy="linear", three_phase=True)
OneCycleLR(o, 0.5, total_steps=110, cycle_momentum=False)
OneCycleLR(o, 0.5, total_steps=120, pct_start=0.1, div_factor=5.0, final_div_factor=10.0, base_momentum=0.7)
CyclicLR(o, 0.01, 0.3, step_size_up=8)
CyclicLR(o, [0.01, 0.02], 0.3, step_size_up=8, step_size_down=5, mode="triangular2", cycle_momentum=False)
CyclicLR(o, 0.01, 0.3, step_size_up=8, mode="exp_range", gamma=0.99, base_momentum=0.6)
CyclicLR(o, 0.01, 0.3, step_size_up=8, scale_fn=lambda x: 1 / x, scale_mode="cycle")
SequentialLR(o, [LinearLR(o, 0.1, total_iters=5), CosineAnnealingLR(o, 30), StepLR(o, 10)], [5, 35])
SequentialLR(o, [ConstantLR(o, 0.1, 3), ExponentialLR(o, 0.9)], milestones=[10])
ChainedScheduler([ConstantLR(o, 0.1, 20), ExponentialLR(o, 0.95)])
""")


def scheduled(torch, make, steps=100, optimizer="SGD", through=None):
    """What a scheduler does: (learning rates and momenta at each step, its state at the end)."""
    p = parameters(torch, SHAPES[:2])
    options = {"momentum": 0.9} if optimizer == "SGD" else {}
    groups = [{"params": p[:1]}, {"params": p[1:], "lr": 0.03}]
    o = getattr(torch.optim, optimizer)(groups, lr=0.1, **options)
    names = {**vars(torch.optim.lr_scheduler), "o": o, "torch": torch}
    s, history = eval(make, names), []
    for t in range(steps):
        if t == through:
            state = pickle.loads(pickle.dumps(s.state_dict()))
            s = eval(make, names)
            s.load_state_dict(state)
            for group, lr in zip(o.param_groups, s.get_last_lr(), strict=True):
                group["lr"] = lr
        history.append([[g["lr"] for g in o.param_groups], s.get_last_lr(),
                        [g.get("momentum", g.get("betas")) for g in o.param_groups]])  # fmt: skip
        o.step()
        s.step()
    return history, s


@over("make, optimizer", itertools.product(SCHEDULERS, ["SGD", "Adam"]))
def test_learning_rates_equal_pytorchs(make, optimizer):
    torch = pytest.importorskip("torch")
    (mine, s), (theirs, reference) = (scheduled(m, make, optimizer=optimizer) for m in (engine, torch))
    assert mine == theirs
    plain = without_modules(str(s.state_dict())).replace("<function", "")
    if "lambda" not in make:
        assert plain == without_modules(str(reference.state_dict()))


@over("make", [m for m in SCHEDULERS if "Cycle" not in m and "Cyclic" not in m and "Warm" not in m])
def test_a_scheduler_goes_on_from_its_state(make):
    assert scheduled(engine, make)[0] == scheduled(engine, make, through=23)[0]


CLOSED = {
    "StepLR(o, 7, gamma=0.5)": lambda t: 0.1 * 0.5 ** (t // 7),
    "MultiStepLR(o, [3, 11], gamma=0.3)": lambda t: 0.1 * 0.3 ** ((t >= 3) + (t >= 11)),
    "ExponentialLR(o, 0.97)": lambda t: 0.1 * 0.97**t,
    "ConstantLR(o, 0.5, 9)": lambda t: 0.1 * (0.5 if t < 9 else 1),
    "LinearLR(o, 0.1, 0.9, total_iters=13)": lambda t: 0.1 * (0.1 + 0.8 * min(t, 13) / 13),
    "PolynomialLR(o, 40, 2.0)": lambda t: 0.1 * max(1 - t / 40, 0) ** 2,
    "CosineAnnealingLR(o, 60, eta_min=1e-3)": lambda t: 1e-3 + (0.1 - 1e-3) * (1 + math.cos(math.pi * t / 60)) / 2,
    "LambdaLR(o, lambda epoch: 1 / (epoch + 1))": lambda t: 0.1 / (t + 1),
    "CosineAnnealingWarmRestarts(o, 10)": lambda t: 0.1 * (1 + math.cos(math.pi * (t % 10) / 10)) / 2,
}


@over("make", CLOSED)
def test_learning_rates_are_those_of_the_closed_form(make):
    history, _ = scheduled(engine, make, 60)
    for t, (rates, last, _) in enumerate(history):
        assert rates == last
        assert math.isclose(rates[0], CLOSED[make](t), rel_tol=1e-9, abs_tol=1e-12), t


def plateau(torch, make, metrics):
    o = torch.optim.SGD(parameters(torch, SHAPES[:1]), lr=1.0)
    s, rates = eval(make, {**vars(torch.optim.lr_scheduler), "o": o}), []
    for m in metrics:
        s.step(m)
        rates.append(s.get_last_lr())
    return rates, list(s.state_dict().items())


PLATEAUS = cases("""
ReduceLROnPlateau(o)
ReduceLROnPlateau(o, "max", factor=0.5, patience=1)
ReduceLROnPlateau(o, patience=2, threshold=0.05, threshold_mode="abs", cooldown=3, min_lr=1e-2)
ReduceLROnPlateau(o, "max", patience=0, threshold_mode="abs", eps=0.5)
ReduceLROnPlateau(o, patience=0, min_lr=[0.2])
""")


@over("make", PLATEAUS)
def test_plateaus_are_seen_as_pytorch_sees_them(make):
    torch = pytest.importorskip("torch")
    metrics = np.random.default_rng(1).normal(size=60).cumsum().tolist() + [1.0] * 40
    assert plateau(engine, make, metrics) == plateau(torch, make, metrics)


def test_a_plateau_reduces_the_rate_once_patience_is_over():
    rates, state = plateau(engine, "ReduceLROnPlateau(o, patience=2)", [3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0])
    assert [r[0] for r in rates] == [1.0] * 4 + [0.1] * 3
    assert dict(state)["best"] == 1.0


def test_a_scheduler_may_be_derived_from_the_old_name_of_the_base_class():
    class Halving(engine.optim.lr_scheduler._LRScheduler):
        def get_lr(self):
            return [base * 0.5**self.last_epoch for base in self.base_lrs]

    o = engine.optim.SGD([engine.zeros(1)], lr=1.0)
    s = Halving(o)
    o.step()
    s.step()
    assert s.get_last_lr() == [0.5]


# ---- programs that print the same under either library

GROUPS = "p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(2))\no = torch.optim.SGD([p], lr=0.1)\n"
PROGRAMS = {
    **{
        f"{code!r} is refused": GROUPS + code
        for code in cases("""
torch.optim.SGD(p)
torch.optim.SGD([])
torch.optim.SGD([3])
torch.optim.SGD([p * 2])
torch.optim.SGD({p})
torch.optim.SGD([{"params": {p}}])
torch.optim.SGD([p], lr=-1)
torch.optim.SGD([p], momentum=-1)
torch.optim.SGD([p], weight_decay=-1)
torch.optim.SGD([p], nesterov=True)
torch.optim.SGD([p], lr=torch.ones(2))
torch.optim.Adam([p], lr=-1)
torch.optim.Adam([p], eps=-1)
torch.optim.Adam([p], betas=(1.0, 0.9))
torch.optim.Adam([p], betas=(0.9, -0.1))
torch.optim.Adam([p], betas=(0, 0.9))
torch.optim.Adam([p], weight_decay=-1)
torch.optim.Adam([p], foreach=True, fused=True)
torch.optim.RMSprop([p], alpha=-1)
torch.optim.RMSprop([p], momentum=-1)
torch.optim.Adagrad([p], lr_decay=-1)
torch.optim.Adagrad([p], initial_accumulator_value=-1)
torch.optim.SGD([("a", p), q])
torch.optim.SGD([{"params": [("a", p)]}, {"params": [q]}])
o.add_param_group({"params": [p]})
o.add_param_group({"params": [("a", q)]})
o.add_param_group({"params": [q], "param_names": ["q"]})
o.add_param_group([q])
torch.optim.Optimizer([p], {}).step()
o.load_state_dict({"state": {}, "param_groups": []})
o.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})
torch.optim.lr_scheduler.StepLR(3, 1)
torch.optim.lr_scheduler.StepLR(o, 1, last_epoch=3)
torch.optim.lr_scheduler.ConstantLR(o, factor=2)
torch.optim.lr_scheduler.LinearLR(o, start_factor=0)
torch.optim.lr_scheduler.LinearLR(o, end_factor=2)
torch.optim.lr_scheduler.LambdaLR(o, [abs, abs])
torch.optim.lr_scheduler.MultiplicativeLR(o, 0.95)
torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 0)
torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 1, 0)
torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 1, eta_min="a")
torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 1).step(-1)
torch.optim.lr_scheduler.OneCycleLR(o, 1)
torch.optim.lr_scheduler.OneCycleLR(o, 1, total_steps=0)
torch.optim.lr_scheduler.OneCycleLR(o, 1, epochs=1.5, steps_per_epoch=2)
torch.optim.lr_scheduler.OneCycleLR(o, 1, total_steps=3, pct_start=2.0)
torch.optim.lr_scheduler.OneCycleLR(o, 1, total_steps=3, anneal_strategy="sin")
torch.optim.lr_scheduler.OneCycleLR(o, [1, 2], total_steps=3)
torch.optim.lr_scheduler.OneCycleLR(torch.optim.Adagrad([q]), 1, total_steps=3)
torch.optim.lr_scheduler.CyclicLR(o, 1, 2, mode="up")
torch.optim.lr_scheduler.ReduceLROnPlateau(o, factor=1.0)
torch.optim.lr_scheduler.ReduceLROnPlateau(o, mode="mean")
torch.optim.lr_scheduler.ReduceLROnPlateau(o, threshold_mode="mean")
torch.optim.lr_scheduler.ReduceLROnPlateau(o, min_lr=[1, 2])
torch.optim.lr_scheduler.SequentialLR(o, [], [])
torch.optim.lr_scheduler.SequentialLR(o, [torch.optim.lr_scheduler.StepLR(o, 1)], [1])
torch.optim.lr_scheduler.SequentialLR(o, [torch.optim.lr_scheduler.ReduceLROnPlateau(o)], [])
torch.optim.lr_scheduler.SequentialLR(o, [3], [])
torch.optim.lr_scheduler.ChainedScheduler([])
""")
    },
    "groups": """
        m = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
        o = torch.optim.AdamW([{"params": m[0].parameters(), "weight_decay": 0.0}, {"params": m[1].weight, "lr": 0.1}])
        o.add_param_group({"params": m[1].bias, "eps": 1e-3})
        print(o, [len(g["params"]) for g in o.param_groups], o.state_dict()["param_groups"])
        named = torch.optim.SGD(m.named_parameters(), lr=0.1)
        print(named.param_groups[0]["param_names"], named.state_dict()["param_groups"])
        named.load_state_dict(named.state_dict())
        print(named)
        twin = torch.optim.SGD([{"params": [m[0].bias], "param_names": ["b"]}], lr=0.1)
        twin.add_param_group({"params": [m[1].bias], "param_names": ["c"]})
        print(twin)
        twice = torch.optim.SGD([m[0].bias, m[0].bias, m[1].bias], lr=0.1, momentum=0.5)
        m(torch.ones(1, 1)).sum().backward()
        twice.step()
        print(twice.state_dict()["param_groups"], [*twice.state_dict()["state"]])
        plain = torch.optim.Optimizer([m[0].bias], {})
        plain.load_state_dict(plain.state_dict())
        print(plain.defaults)
    """,
    "a training loop": """
        torch.manual_seed(0)
        m = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        x, y = torch.randn(16, 3), torch.randn(16, 1)
        for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), torch.optim.Adam, torch.optim.RMSprop):
            o = make(m.parameters())
            schedule = torch.optim.lr_scheduler.StepLR(o, step_size=3)
            for epoch in range(6):
                o.zero_grad()
                loss = nn.functional.mse_loss(m(x), y)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5)
                o.step()
                schedule.step()
                print(f"{epoch} {loss.item():.5f} {schedule.get_last_lr()}")
    """,
    "states are shown as numbers and tensors": """
        p = nn.Parameter(torch.tensor([1.0, 2.0]))
        o = torch.optim.Adam([p], lr=0.1)
        (p * p).sum().backward()
        print(o.state_dict(), o.state)
        o.step()
        print(o.state_dict(), o.defaults, p)
        print({k: v for k, v in o.state[p].items()})
    """,
    "zero_grad": """
        p = nn.Parameter(torch.ones(1))
        o = torch.optim.SGD([p], lr=0.1)
        p.sum().backward()
        g = p.grad
        o.zero_grad(set_to_none=False)
        print(p.grad, p.grad is g)
        o.zero_grad()
        print(p.grad)
        o.step()
        print(p)
    """,
    "hooks": """
        p = nn.Parameter(torch.ones(1))
        o = torch.optim.SGD([p], lr=0.1)
        p.sum().backward()
        before = o.register_step_pre_hook(lambda optimizer, args, kwargs: print("before", len(args), kwargs))
        o.register_step_post_hook(lambda optimizer, args, kwargs: print("after", p))
        o.step()
        before.remove()
        o.step()
        o.register_state_dict_pre_hook(lambda optimizer: print("saving"))
        o.register_state_dict_post_hook(lambda optimizer, state: {**state, "more": 1})
        o.register_load_state_dict_pre_hook(lambda optimizer, state: print("loading", list(state)))
        o.register_load_state_dict_post_hook(lambda optimizer: print("loaded"))
        o.load_state_dict(o.state_dict())
        o.register_step_pre_hook(lambda optimizer, args, kwargs: 3)
        try:
            o.step()
        except RuntimeError as error:
            print(str(error)[-60:])
    """,
    "an optimizer of one's own": """
        class Sign(torch.optim.Optimizer):
            def __init__(self, params, lr=0.1):
                super().__init__(params, dict(lr=lr))

            @torch.no_grad()
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            self.state[p]["n"] = self.state[p].get("n", 0) + 1
                            p.add_(p.grad.sign(), alpha=-group["lr"])

        p = nn.Parameter(torch.tensor([1.0, -1.0]))
        o = Sign([p])
        s = torch.optim.lr_scheduler.ExponentialLR(o, 0.5)
        for _ in range(3):
            (p * p).sum().backward()
            o.step()
            s.step()
        print(p, o, o.state_dict(), s.get_last_lr())
    """,
    "an optimizer with a state of its own to set": """
        class Old(torch.optim.SGD):
            def __setstate__(self, state):
                super().__setstate__(state)
                for group in self.param_groups:
                    group.setdefault("extra", 3)

        p = nn.Parameter(torch.ones(1))
        o = Old([p], lr=0.5, momentum=0.5)
        p.sum().backward()
        o.step()
        plain = torch.optim.Adam([p])
        plain.step()
        for twin in (copy.deepcopy(o), copy.deepcopy(plain), pickle.loads(pickle.dumps(plain))):
            q = twin.param_groups[0]["params"][0]
            q.grad = torch.ones(1)
            twin.step()
            print(twin, q, twin.state_dict())
        s = pickle.loads(pickle.dumps(torch.optim.lr_scheduler.StepLR(plain, 1)))
        s.step()
        print(s.state_dict(), s.optimizer, p)
    """,
    "a scheduler of one's own": """
        class Halved(torch.optim.lr_scheduler.LRScheduler):
            def get_lr(self):
                return [base / 2**self.last_epoch for base in self.base_lrs]

        o = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
        s = Halved(o)
        for _ in range(3):
            o.step()
            s.step()
        print(s.get_last_lr(), s.state_dict(), s.get_lr())
    """,
    "closed forms of one's own": """
        class Own(torch.optim.lr_scheduler.LRScheduler):
            def get_lr(self):
                return [1.0]

            def _get_closed_form_lr(self):
                return [2.0]

        class Half(torch.optim.lr_scheduler.StepLR):
            def _get_closed_form_lr(self):
                return [lr / 2 for lr in super()._get_closed_form_lr()]

        o = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
        o.step()
        for s in (Own(o), Half(o, 2)):
            s.step()
            print(s.get_last_lr())
            s.step(3)
            print(s.get_last_lr())
    """,
    "names of one's own": """
        class Adam(torch.optim.Adam):
            update, states, writes, text, begins = 1, 2, 3, 4, 5

        class Step(torch.optim.lr_scheduler.StepLR):
            def __init__(self, optimizer):
                self.rate, self.closed = 0.5, True
                super().__init__(optimizer, 1)

        p = nn.Parameter(torch.ones(1))
        o = Adam([p], lr=0.1)
        s = Step(o)
        p.sum().backward()
        o.step()
        s.step()
        s.step(3)
        print(p, s.get_last_lr(), s.state_dict())
    """,
    "a scheduler that is stepped too early": GROUPS + "s = torch.optim.lr_scheduler.StepLR(o, 1)\ns.step()\ns.step()",
    "an optimizer that was stepped before its scheduler was made": GROUPS
    + "o.step()\ns = torch.optim.lr_scheduler.StepLR(o, 1)\ns.step()\nprint(s.get_last_lr())",
    "an optimizer whose step was replaced": GROUPS
    + "s = torch.optim.lr_scheduler.StepLR(o, 1)\no.step = lambda: None\no.step()\ns.step()",
    "epochs that are given": GROUPS
    + "s = torch.optim.lr_scheduler.ExponentialLR(o, 0.5)\no.step()\ns.step(3)\nprint(s.get_last_lr(), s.last_epoch)",
    "get_lr outside of step": GROUPS + "print(torch.optim.lr_scheduler.ExponentialLR(o, 0.5).get_lr())",
    "a rate that is a tensor": """
        for lr in (0.5, [0.5]):
            p = nn.Parameter(torch.ones(1))
            o = torch.optim.Adam([p], lr=torch.tensor(lr))
            s = torch.optim.lr_scheduler.ExponentialLR(o, 0.5)
            p.sum().backward()
            o.step()
            s.step()
            print(o, s.get_last_lr(), p, s.base_lrs)
    """,
    "one step too many": """
        o = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0, momentum=0.9)
        s = torch.optim.lr_scheduler.OneCycleLR(o, 1.0, total_steps=2)
        for _ in range(3):
            o.step()
            s.step()
            print(s.get_last_lr())
    """,
    "gradients are clipped": """
        m = nn.Linear(2, 2)
        u = nn.utils
        for p in m.parameters():
            p.grad = torch.arange(p.numel(), dtype=torch.float32).reshape(p.shape)
        print(u.clip_grad_norm_(m.parameters(), 2.0), m.weight.grad, m.bias.grad)
        print(u.clip_grad_norm_(m.weight, 100), u.clip_grad_norm_(m.parameters(), 1.0, norm_type=float("inf")))
        print(u.get_total_norm([p.grad for p in m.parameters()], 1), u.get_total_norm([]))
        u.clip_grad_value_(m.parameters(), 0.2)
        print(m.weight.grad, m.bias.grad, u.clip_grad_norm_([], 1.0))
        u.clip_grads_with_norm_(m.parameters(), 1.0, torch.tensor(2.0))
        print(m.weight.grad, u.clip_grad_norm(m.parameters(), 1.0), u.clip_grad_norm_((p for p in []), 1.0))
        m.bias.grad = torch.tensor([float("nan"), 1.0])
        u.clip_grad_norm_(m.parameters(), 1.0, error_if_nonfinite=True)
    """,
    "parameters as a vector": """
        m = nn.Linear(2, 2)
        v = nn.utils.parameters_to_vector(m.parameters())
        print(v.shape, v.grad_fn is not None)
        nn.utils.vector_to_parameters(torch.arange(6.0), m.parameters())
        print(m.weight, m.bias)
        nn.utils.vector_to_parameters([1.0], m.parameters())
    """,
}


@over("name", PROGRAMS)
def test_a_program_prints_what_it_prints_under_pytorch(name):
    pytest.importorskip("torch")
    mine, theirs = (without_modules(printed(library, PROGRAMS[name])) for library in ("engine", "torch"))
    assert mine == theirs


@pytest.mark.parametrize("loss", ["mse_loss", "cross_entropy"])
def test_gradients_of_small_batches_add_up_to_those_of_the_large_one(loss):
    """Four parts of eight, each with a quarter of its mean loss: the step is that of all thirty-two."""
    engine.manual_seed(0)
    x = engine.randn(32, 5, dtype=engine.float64)
    y = engine.randn(32, 3, dtype=engine.float64) if loss == "mse_loss" else engine.randint(0, 3, (32,))
    stepped = []
    for parts in (1, 4):
        engine.manual_seed(1)
        net = engine.nn.Sequential(engine.nn.Linear(5, 7), engine.nn.Tanh(), engine.nn.Linear(7, 3)).double()
        optimizer = optim.Adam(net.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            for a, b in zip(x.chunk(parts), y.chunk(parts), strict=True):
                (getattr(engine.nn.functional, loss)(net(a), b) / parts).backward()
            optimizer.step()
        stepped.append(engine.nn.utils.parameters_to_vector(net.parameters()).detach().numpy())
    np.testing.assert_allclose(*stepped, rtol=1e-9, atol=1e-12)


def test_clipping_scales_all_gradients_to_the_norm():
    params = parameters(engine)
    loss_of(params).backward()
    before = [p.grad.clone() for p in params]
    norm = math.sqrt(sum(float((g * g).sum()) for g in before))
    assert math.isclose(engine.nn.utils.clip_grad_norm_(params, 1.5).item(), norm, rel_tol=1e-12)
    for p, g in zip(params, before, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g.numpy() * 1.5 / (norm + 1e-6), 1e-12)


def test_what_cannot_be_done_says_so():
    p = engine.nn.Parameter(engine.ones(1))
    with pytest.raises(NotImplementedError, match="leave differentiable False"):
        optim.Adam([p], differentiable=True)
    with pytest.raises(NotImplementedError, match="leave capturable False"):
        optim.RMSprop([p], capturable=True)


def test_schedulers_warn_no_more_than_pytorch():
    o = optim.SGD([engine.nn.Parameter(engine.ones(1))], lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s = optim.lr_scheduler.SequentialLR(o, [optim.lr_scheduler.StepLR(o, 2), optim.lr_scheduler.LinearLR(o)], [3])
        for _ in range(6):
            o.step()
            s.step()


NAMES = ["Optimizer", "LBFGS", *(m.split("(")[0] for m in NAMED)]
NAMES += sorted({"lr_scheduler." + m.split("(")[0] for m in [*SCHEDULERS, *PLATEAUS]})


@over("name", NAMES)
def test_a_subclass_finds_no_public_names_but_pytorchs(name):
    torch = pytest.importorskip("torch")
    mine, theirs = (set(dir(operator.attrgetter(name)(library.optim))) for library in (engine, torch))
    assert not {n for n in mine - theirs if n[0] != "_"}


@over("name, threads", itertools.product(["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"], [1, 2]))
def test_a_large_parameter_moves_block_by_block_as_its_parts_would(name, threads):
    values, gradients = (np.random.default_rng(i).standard_normal((300, 1000)).astype(np.float32) for i in range(2))
    options = {"momentum": 0.9} if name == "SGD" else {}
    whole = engine.tensor(values, requires_grad=True)
    parts = [engine.tensor(v, requires_grad=True) for v in np.split(values, 10)]
    before = engine.get_num_threads()
    engine.set_num_threads(threads)
    try:
        for params, grads in (([whole], [gradients]), (parts, np.split(gradients, 10))):
            opt = getattr(engine.optim, name)(params, lr=0.01, weight_decay=0.1, **options)
            for _ in range(3):
                for p, g in zip(params, grads, strict=True):
                    p.grad = engine.tensor(g)
                opt.step()
    finally:
        engine.set_num_threads(before)
    assert np.array_equal(whole.detach().numpy(), np.concatenate([p.detach().numpy() for p in parts]))
