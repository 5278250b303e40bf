"""Hooks of tensors and of nodes: which run, in what order, with what, and what they change, as in PyTorch."""

import gc
from itertools import product

import pytest
from against_torch import outcome

import engine
from engine.autograd import inference


def leaf(t, *values):
    return t.tensor(values if len(values) > 1 else values[0], requires_grad=True)


def note(log, name, change=None):
    """A hook that writes down its name and what it sees, and returns ``change`` of it."""

    def hook(*seen):
        log.append((name, *seen))
        return change and change(*seen)

    return hook


def places(t):
    """(b, its root, the methods which register hooks, by name) of a graph leaf -> b -> root."""
    a = leaf(t, 1.0)
    b = a * 2
    end = b.grad_fn.next_functions[0][0]
    return a, b, {
        "tensor": b.register_hook, "node before": b.grad_fn.register_prehook, "node after": b.grad_fn.register_hook,
        "leaf": a.register_hook, "leaf's node before": end.register_prehook, "leaf's node after": end.register_hook,
        "leaf when done": a.register_post_accumulate_grad_hook,
    }  # fmt: skip


PLACES = ["tensor", "node before", "node after", "leaf", "leaf's node before", "leaf's node after", "leaf when done"]


# ---- programs: t -> what is to be equal


def removed_inside(t, place, which):
    _, b, register = places(t)
    log: list = []
    handles = [register[place](note(log, 0)), register[place](lambda *g: handles[which].remove())]
    handles.append(register[place](note(log, 2)))
    for _ in range(2):
        b.backward(retain_graph=True)
        log.append("|")
    return [entry[0] for entry in log]


def added_inside(t, place):
    _, b, register = places(t)
    log: list = []
    register[place](lambda *g: register[place](note(log, "late")) and None)
    for _ in range(2):
        b.backward(retain_graph=True)
        log.append("|")
    return [entry[0] for entry in log]


def the_same_hook_twice(t, place):
    _, b, register = places(t)
    log: list = []
    hook, between = note(log, "twice"), note(log, "between")
    handles = [register[place](h) for h in (hook, between, hook)]
    for handle in (None, handles[2], handles[2], handles[0]):
        handle and handle.remove()
        b.backward(retain_graph=True)
        log.append("|")
    return [entry[0] for entry in log]


def nobody_else_has_the_leaf(t, place):
    log: list = []

    def double():
        _, b, register = places(t)
        register[place](note(log, place))
        return b

    double().backward()
    return log


def of_all_nodes(t, layers, full):
    """The order of all hooks of a chain of linear layers, whose nodes do in one step what PyTorch shows as several."""
    log: list = []
    net = t.nn.Sequential(*[t.nn.Linear(2, 2) for _ in range(layers)])
    x = t.ones(2, 2, requires_grad=True)
    if full:
        net[0].register_full_backward_hook(lambda *seen: log.append("module"))
    loss = net(x).sum()
    todo = [loss.grad_fn]
    for i, node in enumerate(todo):
        todo += [n for n, _ in node.next_functions if n is not None]
        name = f"{node.name()} {i}"
        node.register_prehook(lambda g, name=name: log.append(name + " before"))
        node.register_hook(lambda g, h, name=name: log.append(name + " after"))
    for name, leaf in [("x", x), *net.named_parameters()]:
        leaf.register_hook(lambda g, name=name: log.append(name))
        leaf.register_post_accumulate_grad_hook(lambda leaf, name=name: log.append(name + " done"))
    loss.backward()
    return log


def to_inputs(t, asked, backward):
    """Which hooks run, and on what, in passes to results and leaves."""
    log: list = []
    a = leaf(t, 1.0)
    b = a * 2
    c = b * 3
    for name, x in zip("abc", (a, b, c), strict=True):
        x.register_hook(note(log, name, lambda g: g * 10))
        if name != "a":
            x.grad_fn.register_prehook(note(log, name + " before", lambda g: (g[0] * 100,)))
            x.grad_fn.register_hook(note(log, name + " after"))
    inputs = [{"a": a, "b": b, "c": c}[name] for name in asked]
    found = c.backward(inputs=inputs) if backward else t.autograd.grad(c, inputs)
    return log, found, a.grad, b.grad, c.grad, b.retains_grad


def retained_among_hooks(t):
    found = []
    for order in ("h", "rh", "hr", "hrh", "rhh", "rr"):
        a = leaf(t, 1.0)
        b = a.clone()
        for kind in order:
            b.retain_grad() if kind == "r" else b.register_hook(lambda g: g * 2)
        b.clone().backward()
        found += [b.grad, a.grad]
    return found


def an_inner_result_is_run_too(t):
    x = leaf(t, 1.0, 2.0)
    y = x.exp()
    y.sum().backward(inputs=[y])
    y.sum().backward()


def a_frozen_leaf_keeps_its_hooks(t):
    log: list = []
    a = leaf(t, 1.0, 2.0)
    a.register_hook(note(log, "hook"))
    a.register_post_accumulate_grad_hook(lambda p: log.append("done"))
    a.requires_grad_(False)
    (a * leaf(t, 3.0, 4.0)).sum().backward()
    log.append("|")
    a.requires_grad_(True)
    (a * 2).sum().backward()
    return log, a.grad


def nodes_are_called_with_their_number_of_gradients(t, gradients):
    x = leaf(t, 1.0, 2.0)
    (x * x).grad_fn(*(t.ones(2),) * gradients)


def a_prehook_gives_none(t):
    log: list = []
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda g: (None,))
    y.grad_fn.register_hook(note(log, "after"))
    y.sum().backward()
    return log, x.grad


# ---- nodes of several outputs: (t, one of these) -> what is to be equal


def outputs(t, operation):
    """(x, the first two outputs of an operation)."""

    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    x = t.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    calls = {"Function": Twice.apply, "var_mean": lambda x: t.var_mean(x, 0), "unbind": t.unbind, "aminmax": t.aminmax}
    return x, *calls[operation](x)


def some_have_no_gradient(t, operation):
    """Hooks of an output that was not used see None; all those of one node run together."""
    log: list = []
    x, y, z = outputs(t, operation)
    y.grad_fn.register_hook(lambda into, g: log.append("after"))
    y.grad_fn.register_prehook(note(log, "before"))
    z.register_hook(note(log, "z"))
    z.retain_grad()
    y.register_hook(note(log, "y", lambda g: g and None if g is None else g * 2))
    y.retain_grad()
    z.register_hook(note(log, "z again"))
    y.sum().backward()
    return log, y.grad, z.grad, x.grad


def none_is_not_replaced(t, operation):
    _, y, z = outputs(t, operation)
    z.register_hook(lambda g: t.ones_like(z))
    y.sum().backward()


def outputs_are_asked_for(t, operation):
    log: list = []
    x, y, z = outputs(t, operation)
    for name, output in (("y", y), ("z", z)):
        output.register_hook(note(log, name, lambda g: None if g is None else g * 10))
    total = (y + 2 * z).sum()
    found = [t.autograd.grad(total, asked, retain_graph=True) for asked in ((y, z), (z,), (x, y))]
    found += t.autograd.grad(y.sum(), (y, z), retain_graph=True, allow_unused=True)
    for asked in ((y, z), (z,), (x, z)):
        total.backward(inputs=asked, retain_graph=True)
        found += [output.grad for output in (x, y, z)]
    return log, found


def one_is_written(t, operation):
    log: list = []
    _, y, z = outputs(t, operation)
    y.register_hook(note(log, "y"))
    z.retain_grad()
    z.register_hook(note(log, "z"))
    if operation != "unbind":  # whose outputs may not be written
        y.mul_(2)
    y.register_hook(note(log, "y, written"))
    (y + z * 3).sum().backward()
    return log, z.grad


def all_are_none(t, operation):
    log: list = []
    x, y, _ = outputs(t, operation)
    y.grad_fn.register_prehook(lambda g: (None,) * len(g))
    y.grad_fn.register_hook(note(log, "after"))
    y.sum().backward()
    return log, x.grad


PROGRAMS = [
    *((removed_inside, *options) for options in product(PLACES, range(3))),
    *((program, place) for program in (added_inside, the_same_hook_twice) for place in PLACES),
    *((nobody_else_has_the_leaf, place) for place in PLACES),
    *((of_all_nodes, *options) for options in product((1, 2, 3), (False, True))),
    *((to_inputs, *options) for options in product(("a", "b", "c", "ab", "bc", "ac"), (False, True))),
    *((nodes_are_called_with_their_number_of_gradients, n) for n in range(3)),
    (retained_among_hooks,), (an_inner_result_is_run_too,), (a_frozen_leaf_keeps_its_hooks,), (a_prehook_gives_none,),
    *product(
        (some_have_no_gradient, none_is_not_replaced, outputs_are_asked_for, all_are_none),
        ("Function", "var_mean", "unbind", "aminmax"),
    ),
    *product((one_is_written,), ("Function", "var_mean", "unbind")),
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: " ".join([p[0].__name__, *map(str, p[1:])]))
def test_hooks_do_what_they_do_in_pytorch(program):
    pytest.importorskip("torch")
    mine, theirs = (outcome(name, lambda t: program[0](t, *program[1:])) for name in ("engine", "torch"))
    assert mine == theirs


def hooked_leaf():
    leaf = engine.ones(1, requires_grad=True)
    leaf.register_hook(lambda g: g)
    return leaf


def backward():
    (engine.ones(2, requires_grad=True) * 2).sum().backward()


def inferred():
    with engine.inference_mode():
        return engine.ones(1)


@pytest.mark.parametrize("made, run", [(hooked_leaf, backward), (inferred, inference.forget_gone)])
def test_what_is_looked_through_may_go_at_any_moment(made, run):
    """Python's collector runs when something asks for memory: here at each such moment once."""
    thresholds = gc.get_threshold()
    kept = [(made(), n) for n in range(30)], [(n, n) for n in range(3000)]  # tuples: Python has no unused ones left
    try:
        for n in range(100):
            gc.disable()
            cycle = [made(), made()]
            cycle.append(cycle)
            del cycle
            gc.set_threshold(gc.get_count()[0] + n)
            gc.enable()
            run()
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()
    assert len(kept[0]) == 30
