"""Interrupted at each of its lines, a mode leaves nothing behind: not in this thread, and not in others.

As in a notebook: a statement is interrupted when one of its lines begins, the cell ends, and the next cell runs.
"""

import contextlib
import copy
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import engine
from engine import func
from engine.amp import autocast_mode
from engine.arrays.devices import default
from engine.arrays.running import running
from engine.arrays.warn import ENGINE_FOLDER
from engine.autograd import anomaly, forward_ad, interrupted
from engine.core import backward, observers, views
from engine.core.graph import mode
from engine.surface import printing
from engine.utils.checkpoint import checkpoint, set_checkpoint_early_stop

HEALS = interrupted.__file__


@pytest.fixture(scope="module", autouse=True)
def others_are_left_alone():
    """What other tests hold is looked through by none of the hundreds of collections here."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def traced(statement, at=None):
    """Run a statement, and interrupt it when line event ``at`` begins: (where each event was, what it raised)."""
    events = []

    def lines(frame, event, arg):
        if event == "line":
            events.append((frame.f_code.co_filename, frame.f_lineno))
            if len(events) - 1 == at:
                raise KeyboardInterrupt
        return lines

    def calls(frame, event, arg):
        name = frame.f_code.co_filename
        watched = name.startswith(ENGINE_FOLDER) or name == contextlib.__file__
        return lines if watched and name != HEALS else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        statement()
        error = None
    except KeyboardInterrupt as e:
        error = e
    finally:
        sys.settrace(before)
    return events, error


def places(statement):
    """The first and the last time that each line of a statement begins."""
    traced(statement)
    events, _ = traced(statement)
    first = {where: i for i, where in reversed([*enumerate(events)])}
    return sorted({*first.values(), *{where: i for i, where in enumerate(events)}.values()})


def training():
    """What a program computes: a few numbers that any mode which is left on would change."""
    engine.manual_seed(0)
    layer = engine.nn.Linear(3, 2)
    optimizer = engine.optim.SGD(layer.parameters(), lr=0.1)
    hooked = []
    for _ in range(2):
        optimizer.zero_grad()
        out = layer(engine.ones(1, 3)).relu()
        out.register_hook(hooked.append)
        loss = (out @ engine.ones(2, 1)).sum()
        loss.backward()
        optimizer.step()
    x = engine.ones(2, requires_grad=True)
    x.data.mul_(2)
    per_sample = func.vmap(func.grad(lambda a: (a * a).sum()))(engine.ones(2, 3))
    numbers = [loss, layer.weight.grad, per_sample, func.jvp(lambda a: a * a, (x,), (x,))[1], *hooked]
    return [n.detach().numpy().tobytes() for n in numbers], str(loss.dtype), x.requires_grad


def state():
    """All that is switched."""
    x * 2  # the first node ends a look for inference tensors that are gone
    locals_ = [{k: v for k, v in vars(s).items() if k not in ("complete", "asked")} for s in (mode, running)]
    amp = dict(vars(autocast_mode.state))
    looks = {Class: copy.deepcopy(known) for Class, known in observers.observers.items() if known}
    attached = [*backward.attachments], [*backward.arrivals]
    plain = {
        k: v for d in locals_ for k, v in d.items() if v != getattr(type(mode), k, getattr(type(running), k, None))
    }
    more = anomaly.state.anomaly, default.device, default.before, gc.isenabled(), engine.get_default_dtype()
    more += (printing.get_printoptions(),)
    return plain, amp, looks, attached, more, engine.is_grad_enabled(), engine.is_inference_mode_enabled()


def in_another_thread(function, seconds=120):
    """What a function gives in another thread; an error if that hangs."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs, or fails"
    return found[0]


x = engine.tensor([1.0, 2.0], requires_grad=True)
ones = engine.ones(2)


def block(make):
    def statement():
        with make():
            x * 2

    return statement


class Square(engine.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


def backwards():
    (x * x).sum().backward()


def hooks():
    leaf = engine.ones(2, requires_grad=True)  # a hook stays until the program removes it
    y = leaf * leaf
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    h = leaf.register_post_accumulate_grad_hook(lambda t: None)
    y.sum().backward()
    h.remove()


def dual():
    with forward_ad.dual_level():
        forward_ad.unpack_dual(forward_ad.make_dual(ones, ones) * x)


def func_in_a_loop():
    for _ in range(2):
        func.vmap(func.grad(lambda a: (a * x).sum()))(engine.ones(2, 2))


def compiled():
    engine.compile(lambda a: (a * a).sum())(x).backward()


def saved_on_cpu():
    with engine.autograd.graph.save_on_cpu():
        (x * x).sum().backward()


def autocast_training():
    with engine.autocast("cpu", dtype=engine.bfloat16):
        (engine.nn.functional.linear(x, engine.ones(2, 2, requires_grad=True))).sum().backward()


def with_hooks_disabled():
    with engine.autograd.graph.disable_saved_tensors_hooks("none here"):
        x * 2


def calls_functionally():
    layer = engine.nn.Linear(2, 2)
    own = dict(layer.named_parameters())
    kept.append((layer, own))
    func.functional_call(layer, {"weight": engine.zeros(2, 2)}, (ones,))


kept: list = []
REGIONS = {
    "no_grad": block(engine.no_grad),
    "set_grad_enabled": block(lambda: engine.set_grad_enabled(False)),
    "decorated": lambda: engine.no_grad()(lambda: x * 2)(),
    "inference_mode": block(engine.inference_mode),
    "autocast": autocast_training,
    "dual level": dual,
    "anomaly detection": lambda: [block(lambda: engine.autograd.set_detect_anomaly(True))(), backwards()],
    "anomaly in backward": lambda: in_anomaly(),
    "backward": backwards,
    "grad": lambda: engine.autograd.grad((x * x).sum(), x, create_graph=True),
    "backward to inputs": lambda: (x * x).sum().backward(inputs=[x]),
    "hooks": hooks,
    "checkpoint": lambda: checkpoint(lambda a: (a * a).exp(), x, use_reentrant=False).sum().backward(),
    "reentrant checkpoint": lambda: checkpoint(lambda a: (a * a).exp(), x, use_reentrant=True).sum().backward(),
    "early stop": block(lambda: set_checkpoint_early_stop(False)),
    "vmap": lambda: func.vmap(lambda a: a * x)(engine.ones(2, 2)),
    "func.grad": lambda: func.grad(lambda a: (a * a).sum())(x),
    "jvp": lambda: func.jvp(lambda a: a * a, (x,), (ones,)),
    "jacfwd": lambda: func.jacfwd(lambda a: a * a)(x),
    "hessian": lambda: func.hessian(lambda a: (a * a).sum())(x),
    "func in a loop": func_in_a_loop,
    "functional_call": calls_functionally,
    "saved_tensors_hooks": saved_on_cpu,
    "no saved_tensors_hooks": with_hooks_disabled,
    "fork_rng": lambda: fork_rng(),
    "device": block(lambda: engine.device("sim")),
    "custom Function": lambda: Square.apply(x).sum().backward(),
    "compile": compiled,
    "printoptions": lambda: print_few(),
    "in place": lambda: (x * 1)[0].mul_(2).backward(),
}


def in_anomaly():
    with engine.autograd.set_detect_anomaly(True):
        backwards()


def fork_rng():
    with engine.random.fork_rng():
        engine.rand(2)


def print_few():
    with printing.printoptions(precision=2):
        repr(ones)


def interrupted_everywhere(region, most):
    """Interrupt a region at its lines (at ``most`` of them), and look each time whether the next cell is as ever."""
    statement, expected = REGIONS[region], training()
    tried, wrong, start, stream = places(statement), [], state(), engine.get_rng_state()
    for at in tried[:: -(-len(tried) // most)]:
        interrupted.remember()
        engine.set_rng_state(stream)
        events, error = traced(statement, at)
        x.grad = None
        if error is not None:  # Python drops what is raised in callbacks of the garbage collector
            error = None  # it holds what the statement made
            interrupted.restore()
        gc.collect()
        interrupted.remember()  # the next cell begins
        where = events[min(at, len(events) - 1)]
        if state() != start:
            wrong.append((where, [pair for pair in zip(start, state(), strict=True) if pair[0] != pair[1]]))
            interrupted.restore()
        elif region == "fork_rng" and not np.array_equal(engine.get_rng_state().numpy(), stream.numpy()):
            wrong.append((where, "the random numbers go on from another place"))
        elif training() != expected:
            wrong.append((where, "training gives other numbers"))
        elif in_another_thread(training) != expected:
            wrong.append((where, "training in another thread gives other numbers"))
        for layer, own in kept:
            assert all(getattr(layer, name) is p for name, p in own.items())
        kept.clear()
    assert not wrong, (len(tried), len(wrong), wrong[:10])
    return len(tried)


@pytest.mark.filterwarnings("ignore")  # what an interrupted backward pass tells, and what callbacks drop
@pytest.mark.parametrize("region", REGIONS)
def test_an_interrupt_leaves_nothing_behind(region):
    interrupted_everywhere(region, most=10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("region", REGIONS)
def test_an_interrupt_at_any_line_leaves_nothing_behind(region):
    print(region, interrupted_everywhere(region, most=10_000))


def test_the_default_dtype_is_set_or_not():
    for at in places(lambda: engine.set_default_dtype(engine.float64)):
        engine.set_default_dtype(engine.float32)
        traced(lambda: engine.set_default_dtype(engine.float64), at)
        now = engine.get_default_dtype()
        assert engine.tensor(1.0).dtype is engine.ones(1).dtype is engine.result_type(engine.tensor(1), 1.0) is now
    engine.set_default_dtype(engine.float32)


def test_the_first_hook_is_attached_whenever_its_registering_was_interrupted():
    """What attaches once for the whole program is complete after the next attempt."""

    def forget_all():
        for places_ in (backward.attachments, backward.arrivals, views.rebased):
            places_[:] = [f for f in places_ if f.__module__ != "engine.autograd.hooks"]

    before = [[*each] for each in (backward.attachments, backward.arrivals, views.rebased)]
    leaf = engine.ones(2, requires_grad=True)

    def register():
        forget_all()
        leaf.register_post_accumulate_grad_hook(lambda t: None).remove()

    for at in places(register):
        traced(register, at)
        seen = []
        handle = leaf.register_post_accumulate_grad_hook(seen.append)
        (leaf * 2).sum().backward()
        handle.remove()
        assert len(seen) == 1
        assert [len({*each}) for each in (backward.attachments, backward.arrivals, views.rebased)] == [
            len(each) for each in (backward.attachments, backward.arrivals, views.rebased)
        ]
    for each, was in zip((backward.attachments, backward.arrivals, views.rebased), before, strict=True):
        each[:] = was


INSTALL = """
import os, sys
sys.path[:0] = sys.argv[1:]
import engine
import engine.amp
from test_interrupts import traced
from engine.amp import autocast_mode
for at in 5, 60, 333, 999:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, at
        continue
    events, error = traced(autocast_mode.install, at)
    assert error is not None
    with engine.autocast("cpu"):
        a, layer = engine.ones(2, 2), engine.nn.Linear(2, 2)
        assert (a @ a).dtype is engine.mm(a, a).dtype is layer(a).dtype is engine.bfloat16
        assert engine.nn.functional.mse_loss(a.bfloat16(), a).dtype is engine.float32
    assert (engine.ones(2, 2) @ engine.ones(2, 2)).dtype is engine.float32
    break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_autocast_is_complete_after_an_interrupted_first_region():
    subprocess.run([sys.executable, "-c", INSTALL, "tests/engine/core"], check=True, cwd=Path(__file__).parents[3])


# ---- in a notebook

CELLS = r"""
from IPython.core.interactiveshell import InteractiveShell
import sys
shell = InteractiveShell.instance()
shell.run_cell("import engine as torch, sys; x = torch.ones(2, requires_grad=True)")
def lines(frame, event, arg):
    if event == "line" and frame.f_code.co_name == "__exit__" and "/engine/" in frame.f_code.co_filename:
        raise KeyboardInterrupt
    return lines

shell.user_ns["lines"] = lines
interrupt = "sys.settrace(lines)\nwith torch.no_grad():\n    y = x * 2"
result = shell.run_cell(interrupt)
assert type(result.error_in_exec) is KeyboardInterrupt
assert shell.run_cell("(x * 2).requires_grad").result is True
assert shell.run_cell("torch.is_grad_enabled()").result is True
shell.run_cell("torch.set_grad_enabled(False)")
shell.run_cell("raise KeyboardInterrupt")
assert shell.run_cell("torch.is_grad_enabled()").result is False
"""


def test_the_next_cell_of_a_notebook_is_as_ever():
    pytest.importorskip("IPython")
    subprocess.run([sys.executable, "-c", CELLS], check=True, cwd=Path(__file__).parents[3], stdout=subprocess.DEVNULL)


# ---- forks

FORKS = """
import faulthandler, os, sys, threading, time, warnings
warnings.simplefilter("ignore")
import engine
w = engine.ones(2, 2, requires_grad=True)
gen = engine.Generator()
stop = False

def work(once=False):
    while not stop:
        f = engine.compile(lambda a: (a * w).exp().sum())
        f(engine.ones(2)).backward()
        with engine.inference_mode(): engine.ones(2) * 2
        engine.rand(3, generator=gen)
        (w * 2).sum().backward()
        engine.ones(1000, 1000).add(1).sum()
        engine.ones(2, device="sim") * 2
        if once: return

work(once=True)  # what is imported meanwhile is behind a lock of Python's own
threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
for t in threads: t.start()
time.sleep(0.1)
children = []
for _ in range(4):
    time.sleep(0.02)
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(200, exit=True)
        try:
            f = engine.compile(lambda a: (a * w).exp().sum())
            f(engine.ones(2)).backward()
            engine.rand(3, generator=gen)
            engine.ones(2, device="sim") * 2
            with engine.inference_mode(): engine.ones(2) * 2
            engine.nn.Linear(3, 3)(engine.ones(3)).sum().backward()
            os._exit(0)
        finally:
            os._exit(1)
    children.append(child)
stop = True
until = time.monotonic() + 240
left = set(children)
while left and time.monotonic() < until:
    for child in list(left):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            left.remove(child)
            assert status == 0, status
    time.sleep(0.01)
for child in left: os.kill(child, 9)
assert not left, f"{len(left)} children hang"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_forked_while_threads_compute_does_not_hang():
    subprocess.run([sys.executable, "-c", FORKS], check=True, cwd=Path(__file__).parents[3])
