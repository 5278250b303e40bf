"""Interrupted at each of its lines, a mode leaves nothing behind: not in this thread, and not in others.

As in a notebook: a statement is interrupted when one of its lines begins, the cell ends, and the next cell runs.
"""

import contextlib
import gc
import os
import sys
import threading

import numpy as np
import pytest

import engine
from engine import func
from engine.amp import autocast_mode
from engine.arrays import threads
from engine.arrays.devices import default
from engine.arrays.dispatch import running
from engine.arrays.warn import ENGINE_FOLDER
from engine.autograd import anomaly, forward_ad, interrupted
from engine.core import backward, observers
from engine.core.graph import mode
from engine.utils.checkpoint import checkpoint, set_checkpoint_early_stop

HEALS = interrupted.__file__


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
    locals_ = [{k: v for k, v in vars(s).items() if k not in ("complete", "asked")} for s in (mode, running)]
    amp = {k: v for k, v in vars(autocast_mode.state).items()}
    looks = {Class: dict(known) for Class, known in observers.observers.items() if known}
    attached = [*backward.attachments], [*backward.arrivals]
    plain = {
        k: v for d in locals_ for k, v in d.items() if v != getattr(type(mode), k, getattr(type(running), k, None))
    }
    more = anomaly.state.anomaly, default.device, default.before, gc.isenabled(), engine.get_default_dtype()
    return plain, amp, looks, attached, more, engine.is_grad_enabled(), engine.is_inference_mode_enabled()


def in_another_thread(function, seconds=5):
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
    y = x * x
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    h = x.register_post_accumulate_grad_hook(lambda t: None)
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
    with engine.surface.printing.printoptions(precision=2):
        repr(ones)


@pytest.mark.parametrize("region", REGIONS)
def test_an_interrupt_at_any_line_leaves_nothing(region, record_property):
    statement = REGIONS[region]
    expected = training()
    assert in_another_thread(training) == expected
    wrong, tried = [], places(statement)
    at_first = state()
    stream = engine.get_rng_state()
    for at in tried:
        interrupted.remember()
        engine.set_rng_state(stream)
        drawn = region == "fork_rng" and engine.rand(2)
        engine.set_rng_state(stream)
        events, error = traced(statement, at)
        x.grad = None
        where = events[min(at, len(events) - 1)]
        if error is None:  # a callback of the garbage collector drops what is raised in it
            continue
        if not HEAL or os.environ.get("NOHEAL"):
            pass
        else:
            interrupted.restore()
        if drawn is not False and not np.array_equal(engine.rand(2).numpy(), drawn.numpy()):
            wrong.append((where, "the random numbers go on from another place"))
        error = None  # which holds what the statement made
        gc.collect()
        now = state()
        if now != at_first:
            wrong.append((where, [(a, b) for a, b in zip(at_first, now) if a != b]))
            interrupted.restore()
        elif training() != expected:
            wrong.append((where, "training gives other numbers"))
        elif in_another_thread(training) != expected:
            wrong.append((where, "training in another thread gives other numbers"))
        for layer, own in kept:
            assert all(getattr(layer, name) is p for name, p in own.items())
        kept.clear()
        assert not any(lock._is_owned() for lock in threads.locks)
    record_property("interrupted at", len(tried))
    print(f"\n{region}: {len(tried)} tried, {len(wrong)} wrong")
    for w in wrong[:4]:
        print("   ", w)
    assert not wrong


HEAL = True
