"""Optimizers' steps, clipping and unscaling as loops over all parameters: equal to the bit, and where they are used."""

import pickle
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from against_torch import cases
from over_tables import over

import engine
from engine import compiler, nn, optim
from engine.arrays import loops, threads
from engine.optim import algorithms

NO_LOOPS = compiler.machine.why_not()
pytestmark = pytest.mark.skipif(bool(NO_LOOPS), reason=NO_LOOPS or "there are loops")

SHAPES = ((3, 4), (5,), (), (2, 1, 3), (0, 3), (17,), (100, 90))  # small ones, none, and one that is not copied
STEPS = cases("""
SGD(p)
SGD(p, lr=0.01, weight_decay=0.1, maximize=True)
SGD(p, lr=0.05, momentum=0.9)
SGD(p, lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.1)
SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1, maximize=True)
SGD(p, lr=torch.tensor(0.01))
Adam(p)
Adam(p, lr=0.05, betas=(0.3, 0.9), eps=1e-3, weight_decay=0.1)
Adam(p, lr=0.05, amsgrad=True, maximize=True)
Adam(p, lr=1, decoupled_weight_decay=True, weight_decay=0.2)
Adam(p, lr=torch.tensor(0.01), betas=(torch.tensor(0.5), torch.tensor(0.9)), foreach=False)
AdamW(p)
AdamW(p, lr=0.05, weight_decay=0.3, amsgrad=True, maximize=True)
RMSprop(p)
RMSprop(p, centered=True, momentum=0.5, weight_decay=0.1, maximize=True)
Adagrad(p)
Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, eps=1e-3, initial_accumulator_value=0.5)
""")


def parameters(torch=engine, shapes=SHAPES, dtype="float32"):
    rng = np.random.default_rng(0)
    return [torch.nn.Parameter(torch.tensor(rng.normal(size=s), dtype=getattr(torch, dtype))) for s in shapes]


def give_gradients(torch, params, seed):
    rng = np.random.default_rng(seed)
    for p in params:
        p.grad = torch.tensor(rng.normal(size=tuple(p.shape)), dtype=p.dtype)


def made(make, params, torch=engine):
    return eval("optim." + make, {"optim": torch.optim, "p": params, "torch": torch})


def step_as_loop(optimizer):
    """A step as a compiled program takes it."""
    loops.at_once(optimizer.step)


def step_without(optimizer):
    with loops.off():
        optimizer.step()


def kinds(optimizer):
    return {type(pack) for packs in optimizer._packs.values() for pack in packs.packs}


def assert_same(a, b):
    """Parameters, versions and states of two optimizers are equal to the bit."""
    for g, h in zip(a.param_groups, b.param_groups, strict=True):
        for p, q in zip(g["params"], h["params"], strict=True):
            np.testing.assert_array_equal(p.array, q.array)
            assert p._version == q._version
            assert a.state[p].keys() == b.state[q].keys()
            for name in a.state[p]:
                np.testing.assert_array_equal(a.state[p][name].array, b.state[q][name].array)


@over("make, dtype", [*((make, "float32") for make in STEPS), *((make, "float64") for make in STEPS[4::4])])
def test_a_loop_gives_what_numpy_gives_to_the_bit(make, dtype):
    with_loop, without = (made(make, parameters(dtype=dtype)) for _ in range(2))
    for seed in range(5):
        for optimizer, step in ((with_loop, step_as_loop), (without, step_without)):
            give_gradients(engine, optimizer.param_groups[0]["params"], seed)
            step(optimizer)
        assert_same(with_loop, without)
    assert kinds(with_loop) == {algorithms.Looped}
    assert algorithms.Looped not in kinds(without)


def test_groups_have_options_of_their_own_which_may_change():
    make = "AdamW([{'params': p[:3]}, {'params': p[3:], 'lr': 0.1, 'weight_decay': 0, 'amsgrad': True}], lr=0.01)"
    a, b = (made(make, parameters()) for _ in range(2))
    for seed in range(6):
        for optimizer, step in ((a, step_as_loop), (b, step_without)):
            for group in optimizer.param_groups:
                give_gradients(engine, group["params"], seed)
                group["lr"] *= 0.5
            if seed == 3:
                optimizer.param_groups[1].update(weight_decay=0.1, maximize=True)
            step(optimizer)
    assert_same(a, b)
    assert kinds(a) == {algorithms.Looped}


def test_missing_gradients_and_new_arrays_are_noticed():
    a, b = (made("Adam(p)", parameters()) for _ in range(2))
    for seed in range(6):
        for optimizer, step in ((a, step_as_loop), (b, step_without)):
            params = optimizer.param_groups[0]["params"]
            give_gradients(engine, params, seed)
            params[seed].grad = None
            if seed == 3:
                params[0].data = engine.ones(3, 4)
                optimizer.state[params[1]]["exp_avg"] = engine.zeros(5)
            step(optimizer)
    assert_same(a, b)


@pytest.mark.parametrize("make", ["SGD(p, momentum=0.9)", "AdamW(p, amsgrad=True)"])
def test_a_state_saved_half_way_goes_on(make):
    params = parameters(), parameters()
    a, b = (made(make, p) for p in params)
    for seed in range(3):
        give_gradients(engine, params[0], seed)
        step_as_loop(a)
    for p, q in zip(*params, strict=True):
        q.data = p.data.clone()
    b.load_state_dict(pickle.loads(pickle.dumps(a.state_dict())))
    for seed in range(3, 6):
        for p, optimizer, step in ((params[0], a, step_as_loop), (params[1], b, step_without)):
            give_gradients(engine, p, seed)
            step(optimizer)
    for p, q in zip(*params, strict=True):
        np.testing.assert_array_equal(p.array, q.array)


def test_eager_steps_and_those_of_a_compiled_program_take_turns():
    a, b = (made("Adam(p)", parameters()) for _ in range(2))
    for seed in range(6):
        for optimizer, step in ((a, (step_without, step_as_loop)[seed % 2]), (b, step_without)):
            give_gradients(engine, optimizer.param_groups[0]["params"], seed)
            step(optimizer)
    assert_same(a, b)


def strided(x):
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def test_what_lies_in_another_order_or_dtype_takes_the_other_way():
    shapes = (3, 4), (5, 6), (100, 90), (2, 3)
    pairs = []
    for _ in range(2):
        params = parameters(shapes=shapes)
        params[1] = nn.Parameter(params[1].detach().T)
        params[2] = nn.Parameter(engine.from_numpy(strided(params[2].detach().numpy())))
        params[3] = nn.Parameter(params[3].detach().half())
        pairs.append(made("AdamW(p)", params))
    a, b = pairs
    for seed in range(3):
        for optimizer, step in ((a, step_as_loop), (b, step_without)):
            give_gradients(engine, optimizer.param_groups[0]["params"], seed)
            step(optimizer)
    assert_same(a, b)
    (packs,) = a._packs.values()
    assert [p.shape for pack in packs.packs if type(pack) is algorithms.Looped for p in pack.params] == [(3, 4)]


@pytest.mark.parametrize("shape", [(4, 6), (100, 90)])
def test_gradients_may_lie_anywhere(shape):
    a, b = (made("SGD(p)", parameters(shapes=[shape])) for _ in range(2))
    for change in (strided, np.asfortranarray, lambda x: np.broadcast_to(x[:1], x.shape), lambda x: x):
        for optimizer, step in ((a, step_as_loop), (b, step_without)):
            (p,) = optimizer.param_groups[0]["params"]
            p.grad = engine.Tensor(change(np.random.default_rng(0).normal(size=shape).astype("f4")))
            step(optimizer)
    assert_same(a, b)


def test_parameters_that_share_memory_take_the_other_way():
    optimizers = []
    for _ in range(2):
        x = nn.Parameter(engine.ones(20))
        y = nn.Parameter(x.detach()[5:15])
        optimizers.append(optim.SGD([x, y], lr=0.1))
    a, b = optimizers
    for optimizer, step in ((a, step_as_loop), (b, step_without)):
        give_gradients(engine, optimizer.param_groups[0]["params"], 0)
        step(optimizer)
    assert_same(a, b)
    assert algorithms.Looped not in kinds(a)


def test_a_parameter_that_comes_twice_takes_two_steps():
    with pytest.warns(UserWarning, match="duplicate"):
        p = engine.ones(3, requires_grad=True)
        optimizer = optim.SGD([p, p], lr=1.0)
    p.grad = engine.ones(3)
    step_as_loop(optimizer)
    assert p.tolist() == [-1, -1, -1]


def test_three_hundred_parameters_are_one_call(monkeypatch):
    calls = []
    run = loops.Table.run
    monkeypatch.setattr(loops.Table, "run", lambda *args: calls.append(1) or run(*args))
    shapes = [(i % 7 + 1, i % 5 + 1) for i in range(300)]
    a, b = (made("AdamW(p)", parameters(shapes=shapes)) for _ in range(2))
    for seed in range(2):
        for optimizer, step in ((a, step_as_loop), (b, step_without)):
            give_gradients(engine, optimizer.param_groups[0]["params"], seed)
            step(optimizer)
    assert_same(a, b)
    assert len(calls) == 2


@pytest.mark.parametrize("make", ["SGD(p, momentum=0.9)", "AdamW(p, amsgrad=True)", "RMSprop(p, centered=True)"])
def test_nan_inf_and_denormals_come_through_as_they_do_in_numpy(make):
    a, b = (made(make, parameters(shapes=[(40,)])) for _ in range(2))
    for _ in range(3):
        for optimizer, step in ((a, step_as_loop), (b, step_without)):
            (p,) = optimizer.param_groups[0]["params"]
            p.grad = engine.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42, 1e30, 1.0] * 5)
            step(optimizer)
    assert_same(a, b)


def test_threads_make_no_difference():
    results = []
    before = threads.threads
    for n in (1, 2):
        threads.set_num_threads(n)
        optimizer = made("Adam(p)", parameters(shapes=[(512, 700), (33,), (512, 500), (1001,)]))
        for seed in range(2):
            give_gradients(engine, optimizer.param_groups[0]["params"], seed)
            step_as_loop(optimizer)
        results.append(optimizer)
    threads.set_num_threads(before)
    assert_same(*results)


def test_numbers_of_numpys_own_dtypes_take_the_other_way():
    a, b = (made("Adam(p)", parameters()) for _ in range(2))
    for seed in range(4):
        for optimizer, step in ((a, step_as_loop), (b, step_without)):
            give_gradients(engine, optimizer.param_groups[0]["params"], seed)
            optimizer.param_groups[0]["lr"] = np.float64(0.1) if seed in (0, 2) else 0.1
            step(optimizer)
    assert_same(a, b)


def test_a_formula_of_somebody_elses_is_not_written_down():
    class Signs(optim.Adam):
        def _formula(self, group, step, p, g, *states):
            p -= group["lr"] * (1.0 if step > 1 else 2.0)

    p = engine.zeros(3, requires_grad=True)
    optimizer = Signs([p], lr=0.5)
    for _ in range(2):
        p.grad = engine.ones(3)
        step_as_loop(optimizer)
    assert p.tolist() == [-1.5, -1.5, -1.5]


def test_hooks_run_around_a_loop():
    optimizer = made("Adam(p)", parameters())
    give_gradients(engine, optimizer.param_groups[0]["params"], 0)
    seen = []
    optimizer.register_step_pre_hook(lambda *args: seen.append("before"))
    optimizer.register_step_post_hook(lambda *args: seen.append("after"))
    step_as_loop(optimizer)
    assert seen == ["before", "after"]


# ---- where loops are used


def test_a_compiled_training_step_is_eagers_and_its_optimizer_is_a_loop():
    def run(compile):
        engine.manual_seed(0)
        model = nn.Sequential(nn.Linear(12, 100), nn.Tanh(), nn.Linear(100, 3))
        optimizer = optim.AdamW(model.parameters(), lr=0.01)

        @compile
        def train(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        rng = np.random.default_rng(0)
        losses = []
        for _ in range(20):
            x, y = rng.normal(size=(8, 12)).astype("f4"), rng.integers(0, 3, 8)
            losses.append(train(engine.tensor(x), engine.tensor(y)).item())
        return losses, optimizer, [p.detach().numpy() for p in model.parameters()]

    (losses, compiled, params), (expected, eager, others) = run(engine.compile), run(lambda f: f)
    np.testing.assert_allclose(losses, expected, 1e-4)
    for x, y in zip(params, others, strict=True):
        np.testing.assert_allclose(x, y, 1e-3, 1e-5)
    assert kinds(compiled) == {algorithms.Looped}
    assert eager.state_dict()["state"][0]["step"].item() == compiled.state_dict()["state"][0]["step"].item() == 20


def test_an_eager_step_never_waits(monkeypatch):
    compiled = []
    monkeypatch.setattr(loops, "make", lambda text: compiled.append(threading.current_thread()))
    monkeypatch.setattr(loops, "loops", {})
    monkeypatch.setattr(loops, "ordered", set())
    monkeypatch.setattr(loops.machine, "loops", {"something": None})
    small, large = made("Adam(p)", parameters()), made("Adam(p)", parameters(shapes=[(200, 300)]))
    for optimizer in (small, large, large):
        give_gradients(engine, optimizer.param_groups[0]["params"], 0)
        optimizer.step()
        assert algorithms.Looped not in kinds(optimizer)
    for thread in list(loops.makers):
        thread.join()
    assert len(compiled) == 1  # once, for what is large
    assert compiled[0] is not threading.current_thread()


def test_an_eager_step_takes_what_is_there(monkeypatch):
    optimizers = [made("Adam(p)", parameters()) for _ in range(2)]
    for optimizer, step in zip(optimizers, (step_as_loop, optim.Adam.step), strict=True):
        give_gradients(engine, optimizer.param_groups[0]["params"], 0)
        step(optimizer)
        assert kinds(optimizer) == {algorithms.Looped}
    assert_same(*optimizers)


def test_what_cannot_be_compiled_takes_the_other_way(monkeypatch):
    def refuse(text):
        def loop(*args):
            raise RuntimeError("no machine code")

        return loop

    monkeypatch.setattr(loops, "loops", {})
    monkeypatch.setattr(loops.machine, "compiled", refuse)
    optimizer = made("Adam(p)", parameters())
    for seed in range(2):
        give_gradients(engine, optimizer.param_groups[0]["params"], seed)
        step_as_loop(optimizer)
    assert algorithms.Looped not in kinds(optimizer)


def test_numba_is_not_imported_before_something_is_compiled():
    code = """
import sys, engine
p = engine.ones(200, 300, requires_grad=True)
p.grad = engine.ones(200, 300)
engine.optim.Adam([p]).step()
assert "numba" not in sys.modules and "engine.compiler" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- clipping and unscaling


def large_gradients(values=()):
    params = parameters(shapes=[(300, 200), (7,), (), (90, 100)])
    give_gradients(engine, params, 0)
    for p, value in zip(params, values, strict=False):
        p.grad.reshape(-1)[-1] = value
    return params


def test_gradients_are_clipped_as_without_loops():
    results = []
    for call in (partial(loops.at_once, nn.utils.clip_grad_norm_), nn.utils.clip_grad_norm_):
        params = large_gradients()
        with loops.off() if call is nn.utils.clip_grad_norm_ else loops.off(False):
            norm = call(params, 1.5)
        results.append((norm.item(), [p.grad.numpy() for p in params], [p.grad._version for p in params]))
    (norm, ours, versions), (expected, others, same) = results
    assert norm == expected
    assert versions == same
    for x, y in zip(ours, others, strict=True):
        np.testing.assert_array_equal(x, y)
    assert loops.loops[nn.utils.product(np.dtype("f4"))]


@pytest.mark.parametrize("values", [(), (float("inf"),), (1.0, 2.0, float("nan"))])
def test_gradients_are_unscaled_as_without_loops(values):
    results = []
    for looped in (True, False):
        params = large_gradients(values)
        optimizer = optim.SGD(params)
        scaler = engine.amp.GradScaler("cpu", init_scale=3.0)
        scaler.scale(engine.ones(1))
        with loops.off(not looped):
            loops.at_once(scaler.unscale_, optimizer)
        found = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        results.append(([v.item() for v in found.values()], [p.grad.numpy() for p in params]))
    (found, ours), (expected, others) = results
    assert found == expected == [float(bool(values))]
    for x, y in zip(ours, others, strict=True):
        np.testing.assert_array_equal(x, y)
