"""compile on devices: captured on ``sim``, and on ``cuda`` where there is one, as eager there, and nothing crosses.

``python -m pytest -p stand_in_cupy -m gpu`` runs on host memory what is for a GPU.
"""

import gc
from weakref import ref

import numpy as np
import pytest
import test_compile_semantics as semantics
from over_tables import over
from test_compile import random_function
from test_device_kernels import Counting
from test_devices import OnDevice, transfers, waits
from test_rules import CASES, gradient, inputs, run

import engine
from engine.arrays import devices, dispatch
from engine.compiler import GraphBreak, explain
from engine.nn import functional as F
from engine.ops.rows import registry

DEVICES = [pytest.param("sim"), pytest.param("cuda", marks=pytest.mark.gpu)]
pytestmark = pytest.mark.parametrize("device", DEVICES)

# ---- the table of operations


@over("name, sample", CASES)
def test_a_row_is_captured_and_gives_what_eager_gives(name, sample, device):
    f, arrays, on = registry[name].function, inputs(name, sample), OnDevice(device)
    compiled = engine.compile(f)
    expected = [*run(on, f, sample, arrays)[0], *gradient(on, f, sample, arrays)[0]]
    for _ in range(2):  # the call that captures, and one that runs what was written
        before = transfers(device)
        found = [*run(on, compiled, sample, arrays)[0], *gradient(on, compiled, sample, arrays)[0]]
        assert waits(name, sample) or transfers(device) == before
        for a, b in zip(expected, found, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.dtype == b.dtype and a.shape == b.shape and b.device.type == device
                np.testing.assert_allclose(b.detach().cpu().numpy(), a.detach().cpu().numpy(), 1e-12, 1e-12)
    entry = compiled.entries[0]
    assert entry.deviations == 0 and (entry.broken is not None) == waits(name, sample)


# ---- programs, with everything on the device


@pytest.fixture
def there(device, monkeypatch):
    """All tensors are made on the device; what crosses to the host is counted."""
    monkeypatch.setattr(semantics, "OWN", engine.Generator(device=device))
    engine.set_default_device(device)
    yield lambda: transfers(device)
    engine.set_default_device(None)


def captured(function):
    return engine.compile(function, fullgraph=True)


def close(a, b, tolerance=1e-6):
    assert a.device == b.device and a.dtype == b.dtype and a.requires_grad == b.requires_grad
    np.testing.assert_allclose(*(t.detach().cpu().double().numpy() for t in (a, b)), tolerance, tolerance)


@over("name", semantics.DRAWS)
def test_draws_are_those_of_eager(name, device, there):
    f = semantics.DRAWS[name]
    compiled = captured(f)

    def stream(function):
        engine.manual_seed(7), semantics.OWN.manual_seed(8)
        results = []
        for seed in range(3):
            x = semantics.numbers(4, 3, seed=seed, grad=True)
            y = function(x)
            y.sum().backward()
            results += [y.detach(), x.grad]
        return [*results, engine.rand(2), engine.rand(2, generator=semantics.OWN)]

    for a, b in zip(stream(compiled), stream(f), strict=True):
        close(a, b)
    assert len(compiled.entries) == 1 and compiled.entries[0].deviations == 0


@over("name, scheduled", [("SGD", False), ("AdamW", "outside"), *((name, "inside") for name in semantics.OPTIMIZERS)])
def test_a_whole_training_step(name, scheduled, device, there):
    expected, twin, theirs, _ = semantics.trained(name, lambda f: f, scheduled)
    before = there()
    losses, model, opt, step = semantics.trained(name, captured, scheduled)
    assert there() == before
    assert len(step.entries) == 1 and step.entries[0].deviations == 0 and "_step()" in step.code
    for a, b in zip(losses, expected, strict=True):
        close(a, b)
    for a, b in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
        close(a, b, 1e-4)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        close(p.grad, q.grad, 1e-4)
        assert p._version == q._version and p.is_leaf
    ours, theirs = (o.state_dict() for o in (opt, theirs))
    assert ours["param_groups"] == theirs["param_groups"]
    for a, b in zip(ours["state"].values(), theirs["state"].values(), strict=True):
        for key in b:
            close(a[key], b[key], 1e-3)


@over("name", semantics.MODELS)
def test_models_are_trained_as_in_eager(name, device, there):
    """Batches of four, and then of other sizes, for all of which there is one more capture."""
    make, data = semantics.MODELS[name]

    def run(wrap):
        engine.manual_seed(0)
        model = make()
        step = wrap(semantics.training_step(model, engine.optim.AdamW(model.parameters(), lr=1e-2)))
        return [step(*data(n, n)).detach() for n in (4, 4, 5, 7, 4, 30)], model, step

    losses, model, step = run(captured)
    expected, twin, _ = run(lambda f: f)
    assert [e.deviations for e in step.entries] == [0, 0] and step.entries[1].sizes is not None
    assert all("elementwise(formula" in e.code for e in step.entries)
    for a, b in zip([*losses, *model.parameters()], [*expected, *twin.parameters()], strict=True):
        close(a, b, 1e-3)


@over("seed", range(12))
def test_programs_made_at_random(seed, device, there):
    f = semantics.program(seed)
    compiled = engine.compile(f)

    def run(function, n):
        engine.manual_seed(n)
        x, y, w = (semantics.numbers(5, 4, seed=[seed, n, i], dtype="float64", grad=i == 2) for i in range(3))
        try:
            results = function(x, y, w)
            loss = sum((r * (i + 1)).sum() for i, r in enumerate(results))
            if loss.requires_grad:
                loss.backward()
        except RuntimeError as error:
            return str(error)[:60]
        shared = [[a.data_ptr() == b.data_ptr() for a in (*results, x, y)] for b in results]
        return [*results, x, y, engine.rand(2)], ([t._version for t in (x, y, w)], shared), w.grad

    for n in range(3):
        found, expected = run(compiled, n), run(f, n)
        if isinstance(expected, str):
            assert found == expected
            continue
        assert found[1] == expected[1] and (found[2] is None) == (expected[2] is None)
        for a, b in zip([*found[0], found[2]], [*expected[0], expected[2]], strict=True):
            assert a is b is None or close(a, b, 1e-9) is None


@over("seed", range(6))
def test_functions_made_at_random(seed, device, there):
    f = random_function(seed)
    compiled = captured(f)
    for draw in range(2):
        x, y = (semantics.numbers(7, 7, seed=[seed, draw, i], dtype="float64", grad=True) for i in range(2))
        results, expected = compiled(x, y), f(x, y)
        ours, theirs = (engine.autograd.grad([r.sum() for r in found], [x, y], allow_unused=True)
                        for found in (results, expected))  # fmt: skip
        for a, b in zip((*results, *ours), (*expected, *theirs), strict=True):
            assert a is b is None or close(a, b, 1e-8) is None
    assert len(compiled.entries) == 1 and compiled.entries[0].deviations == 0


# ---- what is guarded, and what is a break


def test_a_capture_holds_on_its_device_alone(device):
    compiled = captured(lambda x: (x * 2).tanh())
    for where in (device, "cpu", device, "cpu"):
        assert compiled(engine.ones(3, device=where)).device.type == where
    assert len(compiled.entries) == 2
    guards = explain(lambda x: x * 2)(engine.ones(3, device=device)).out_guards
    assert f"devices.device_of(x0) == {device}:0" in guards


@over("program", ["x.cpu() * 2", "x * 2 if x.sum() > 0 else x", "x * x.max().item()", "x[x > 0]"])
def test_what_would_wait_for_the_device_is_a_break(program, device):
    function = eval(f"lambda x: {program}")
    x = engine.ones(3, device=device)
    assert explain(function)(x).graph_break_count == 1
    assert engine.equal(engine.compile(function)(x).cpu(), function(x).cpu())


def test_a_transfer_is_a_break_that_says_so(device):
    with pytest.raises(GraphBreak, match="elements cross from a device to host memory"):
        captured(lambda x: x.cpu() * 2)(engine.ones(3, device=device))


def test_what_a_device_is_asked_is_asked_each_time(device):
    space = getattr(engine, device)
    compiled = engine.compile(lambda x: (x * 2, space.memory_allocated()))
    x = engine.ones(3, device=device)
    first, kept = compiled(x)[1], engine.ones(1000, device=device)
    assert compiled(x)[1] >= first + 4096 - 512 and len(kept) == 1000
    with pytest.raises(GraphBreak, match=f"the {device} device is asked or told something"):
        captured(lambda x: space.synchronize() or x * 2)(x)


def test_formulas_go_with_their_captures(device):
    compiled, x = captured(lambda x: (x * 2).tanh() + 1), engine.ones(3, device=device)
    compiled(x)
    formula = ref(compiled.entries[0].forward.__globals__["formula"])
    del compiled
    gc.collect()
    assert formula() is None


def test_tensors_of_two_devices_do_not_mix(device):
    x, y = engine.ones(3, device=device), engine.ones(3)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        engine.compile(lambda x, y: x * y)(x, y)


def test_a_check_that_finds_another_answer_runs_eagerly(device, monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")  # else nobody looks on a GPU
    x, target = engine.ones(2, 3, device=device), engine.tensor([0, 1], device=device)
    compiled = captured(lambda x, target: F.cross_entropy(x, target))
    compiled(x, target)
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        compiled(x, engine.tensor([0, 3], device=device))
    assert compiled.entries[0].deviations == 1


def test_a_gradient_that_is_missing_is_zeros_on_the_device(device):
    x = engine.ones(3, device=device, requires_grad=True)
    a, b = captured(lambda x: (x * 2, x * 3))(x)
    b.sum().backward()
    assert x.grad.device.type == device and x.grad.cpu().tolist() == [3.0] * 3 and a.requires_grad


def test_second_derivatives_run_eagerly(device):
    x = engine.ones(3, dtype=engine.float64, device=device, requires_grad=True)
    with pytest.warns(UserWarning, match="create_graph"):
        (g,) = engine.autograd.grad(captured(lambda x: (x**3).sum())(x), x, create_graph=True)
    g.sum().backward()
    assert x.grad.cpu().tolist() == [6.0] * 3


# ---- formulas, each of which is one kernel on a GPU


FORMULAS = {
    "activation": lambda x, y: F.gelu(x * 2 + y[0]),
    "several results": lambda x, y: (engine.exp(x - y), (x - y).sigmoid() * y[:, :1]),
    "choices": lambda x, y: engine.where(x > y, x * 2, y.abs().sqrt()) * (x < 0.5),
    "special": lambda x, y: engine.erf(x) * y + engine.erfc(y) - 0.0,
    "types": lambda x, y: (x > 0).float() * (y * 3).int() + x * y,
    "a loss": lambda x, y: F.smooth_l1_loss(x, y, reduction="none"),
    "a sum": lambda x, y: (x * y + y).mean(),
    "sums of rows and columns": lambda x, y: ((x * y).sum(0), (x * y + x.relu()).sum(1, keepdim=True)),
    "a number made on the way": lambda x, y: (x - x.mean()) / (x.std() + 1e-5) * y,
}


def parts(x):
    return x if type(x) is tuple else (x,)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_one_kernel(name, device, there):
    """On host memory by a C++ compiler; on a GPU, what ran was a kernel too."""
    f, kernels, called = FORMULAS[name], Counting(), []
    x, y = (semantics.numbers(5, 4, seed=i, grad=True) for i in range(2))
    compiled = captured(f)
    compiled(x, y)

    def elementwise(formula, *args):
        out = dispatch.elementwise(formula, *args)
        called.append((formula, tuple(a.dtype for a in args)))
        for a, b in zip(parts(kernels.elementwise(formula, *(a.get() for a in args))), parts(out), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b.get(), 1e-5, 1e-6)
        return out

    def sum_of(formula, axis, keepdims, *args):
        out = dispatch.elementwise(formula, *args).sum(axis, None, keepdims=keepdims)
        called.append((formula, ("sum", *(a.dtype for a in args))))
        found = kernels.sum_of(formula, axis, keepdims, *(a.get() for a in args))
        assert found.dtype == out.dtype and found.shape == out.shape
        np.testing.assert_allclose(found, out.get(), 1e-5, 1e-6)
        return own(formula, axis, keepdims, *args)

    space = compiled.entries[0].forward.__globals__
    space["elementwise"], own, space["sum_of"] = elementwise, space["sum_of"], sum_of
    results, expected = parts(compiled(x, y)), parts(f(x, y))
    ours, theirs = (engine.autograd.grad([r.sum() for r in found], [x, y]) for found in (results, expected))
    for a, b in zip((*results, *ours), (*expected, *theirs), strict=True):
        close(a, b, 1e-5)
    assert compiled.entries[0].deviations == 0 and called and kernels.launched == len(called)
    assert "sum_of" in compiled.code or name != "a sum"
    for formula, dtypes in called if device == "cuda" else ():
        assert dispatch.kernels[devices.backend_of(device).array].fused[formula][dtypes] is not None


@over("dtype", ["float16", "bfloat16"])
def test_formulas_of_two_byte_types_are_as_right_as_step_by_step(dtype, device, there):
    f = lambda x, y: (x * y + 1).sigmoid() * x - y.tanh()  # noqa: E731
    x, y = (semantics.numbers(5, 4, seed=i).to(getattr(engine, dtype)) for i in range(2))
    found, exact = captured(f)(x, y), f(x.double(), y.double())
    assert found.dtype == x.dtype
    close(found.double(), exact, {"float16": 3e-3, "bfloat16": 3e-2}[dtype])


@over("dtype", ["float16", "bfloat16"])
def test_a_cast_to_two_bytes_and_back_rounds(dtype, device, there):
    x = semantics.numbers(50)
    close(captured(lambda x: (x * 3).to(getattr(engine, dtype)).float() + 1)(x),
          (x * 3).to(getattr(engine, dtype)).float() + 1, 1e-7)  # fmt: skip


def test_a_sum_is_not_moved_behind_a_write(device, there):
    w, x = semantics.numbers(5, 4, grad=True), semantics.numbers(5, 4, seed=1)

    def step(x):
        before = w.detach() * x
        w.grad = x * 3
        opt.step()
        return before.sum()

    def run(function):
        with engine.no_grad():
            w.fill_(0.5)
        return [function(x) for _ in range(3)]

    opt = engine.optim.SGD([w], lr=0.1)
    compiled = engine.compile(step)
    for a, b in zip(run(compiled), run(step), strict=True):
        close(a, b)


def test_the_code_can_be_read(device, there):
    x = engine.ones(5, 3)

    def f(x, w):
        return (x @ w).tanh() * 2 + x.sum()

    told = explain(f)(x, engine.ones(3, 4))
    code = told.code
    assert "formulas, each one kernel on a GPU: 1" in repr(told)
    lines = [line.partition("  # ")[0] for line in code.splitlines() if line]
    assert lines == [
        "def forward(x, w):",
        "    t = x @ w",
        "    t_2 = x.sum(None, None, keepdims=False)",
        "    t_5 = elementwise(formula, t, t_2)",
        "    return (t_5,)",
        "def formula(t, t_2):",
        "    xp = module(t)",
        "    t_3 = xp.tanh(t)",
        "    t_4 = t_3 * 2",
        "    t_5 = t_4 + t_2",
        "    return t_5",
    ]


def test_without_fusion_every_operation_has_a_line(device, there):
    compiled = engine.compile(lambda x: (x * 2).tanh() + 1, options={"fuse": False})
    close(compiled(engine.ones(3)), (engine.ones(3) * 2).tanh() + 1)
    assert "formula" not in compiled.code and {"sim": "sim", "cuda": "cp"}[device] + ".tanh" in compiled.code


def test_a_kernel_has_not_too_many_arguments(device, there):
    def f(x):
        parts = [x * i for i in range(1, 40)]
        return [p + 1 for p in parts] if x.ndim == 1 else sum(p.tanh() for p in parts)

    for x in (engine.ones(3), engine.ones(2, 3)):
        compiled = captured(f)
        for a, b in zip(*((r if type(r) is list else [r]) for r in (compiled(x), f(x))), strict=True):
            close(a, b)
        calls = [line.split(" = elementwise(") for line in compiled.code.splitlines() if "elementwise" in line]
        assert calls and all(results.count(",") < 20 >= given.count(",") for results, given in calls)
