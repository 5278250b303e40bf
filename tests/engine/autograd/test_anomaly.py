"""Anomaly detection in backward passes of backward passes: which nodes it names, and what it takes for an anomaly."""

import warnings

import pytest
from against_torch import outcome


def function(t, derivative):
    """A Function that doubles, whose backward is ``derivative(g * x)``."""

    class Made(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return derivative(g * ctx.saved_tensors[0])

    return Made.apply


def fail(g):
    raise KeyError("failed")


def leaf(t):
    return t.tensor([1.0, 2.0], requires_grad=True)


def derivatives(t, f, times, inside_from=0, **options):
    """Differentiate f several times, those from one on with anomalies looked for."""
    x = leaf(t)
    found = f(x)
    for i in range(times):
        with t.autograd.set_detect_anomaly(i >= inside_from, **options):
            (found,) = t.autograd.grad(found.sum(), x, create_graph=True)
    return found


def one(t):
    with t.autograd.set_detect_anomaly(True):
        return derivatives(t, function(t, fail), 1)


def another_induced_it(t):
    with t.autograd.set_detect_anomaly(True):
        return derivatives(t, function(t, function(t, fail)), 2)


def two_induced_it(t):
    with t.autograd.set_detect_anomaly(True):
        return derivatives(t, function(t, function(t, function(t, fail))), 3)


def what_induced_it_was_recorded_before(t):
    return derivatives(t, function(t, function(t, fail)), 2)


def it_was_induced_before(t):
    return derivatives(t, function(t, function(t, fail)), 2, inside_from=1)


def leaf_with(t, register, hook):
    """A leaf used once, and that use; ``register`` gives the leaf or its node the hook."""
    x = leaf(t)
    y = x * 2
    register(x, y.grad_fn.next_functions[0][0])(hook)
    return x, y


def fail_in(register, hook=lambda *args: fail(*args[:1])):
    def program(t):
        with t.autograd.set_detect_anomaly(True):
            leaf_with(t, register, hook)[1].sum().backward()

    return program


def in_a_hook_that_grad_calls(t):
    with t.autograd.set_detect_anomaly(True):
        x, y = leaf_with(t, lambda x, node: x.register_hook, fail)
        t.autograd.grad(y.sum(), x)


def in_a_hook_of_a_non_leaf_that_grad_asks_for(t):
    with t.autograd.set_detect_anomaly(True):
        y = leaf(t) * 2
        y.register_hook(fail)
        t.autograd.grad((y * 2).sum(), y)


def in_a_hook_of_inputs(t):
    with t.autograd.set_detect_anomaly(True):
        x, y = leaf_with(t, lambda x, node: x.register_hook, fail)
        y.sum().backward(inputs=[x])


def in_a_hook_of_a_root(t):
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t)
        x.register_hook(fail)
        x.backward(t.ones(2))


def in_a_hook_of_a_leaf_used_before(t):
    x, y = leaf_with(t, lambda x, node: x.register_hook, fail)
    with t.autograd.set_detect_anomaly(True):
        y.sum().backward()


def in_a_hook_of_a_leaf_made_before(t):
    x = leaf(t)
    with t.autograd.set_detect_anomaly(True):
        y = x * 2
        x.register_hook(fail)
        y.sum().backward()


def nan_from_the_hook_of_a_leaf(t):
    with t.autograd.set_detect_anomaly(True):
        x, y = leaf_with(t, lambda x, node: x.register_hook, lambda g: g * float("nan"))
        y.sum().backward()
        return x.grad.isnan().tolist()


def nan_in_what_was_induced(t):
    with t.autograd.set_detect_anomaly(True):
        return derivatives(t, function(t, function(t, lambda g: g * float("nan"))), 2)


def nan_that_may_pass(t):
    found = derivatives(t, function(t, function(t, lambda g: g * float("nan"))), 2, check_nan=False)
    return found.isnan().tolist()


def blocks_in_one_another(t):
    seen = []
    look = lambda: seen.append((t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()))  # noqa: E731
    with t.autograd.detect_anomaly():
        look()
        with t.autograd.detect_anomaly(check_nan=False):
            look()
        look()
        with t.autograd.set_detect_anomaly(False):
            look()
        look()
    look()
    return seen


def not_a_bool(t):
    t.autograd.set_detect_anomaly(1)


PROGRAMS = [
    in_a_hook_that_grad_calls, in_a_hook_of_a_non_leaf_that_grad_asks_for, in_a_hook_of_inputs, in_a_hook_of_a_root,
    in_a_hook_of_a_leaf_used_before, in_a_hook_of_a_leaf_made_before, nan_from_the_hook_of_a_leaf,
    one, another_induced_it, two_induced_it, what_induced_it_was_recorded_before, it_was_induced_before,
    nan_in_what_was_induced, nan_that_may_pass, blocks_in_one_another, not_a_bool,
]  # fmt: skip


LEAF_HOOKS = {
    "hook": fail_in(lambda x, node: x.register_hook),
    "prehook": fail_in(lambda x, node: node.register_prehook),
    "post_hook": fail_in(lambda x, node: node.register_hook),
    "post_accumulate_grad_hook": fail_in(lambda x, node: x.register_post_accumulate_grad_hook),
    "another_shape": fail_in(lambda x, node: x.register_hook, lambda g: g[:1]),
    "no_tensor": fail_in(lambda x, node: x.register_hook, lambda g: 1.0),
    "post_accumulate_grad_hook_that_returns": fail_in(
        lambda x, node: x.register_post_accumulate_grad_hook, lambda leaf: leaf.grad
    ),
    "post_accumulate_grad_hook_that_returns_no_tensor": fail_in(
        lambda x, node: x.register_post_accumulate_grad_hook, lambda leaf: 1.0
    ),
}


@pytest.mark.parametrize("kind", LEAF_HOOKS)
def test_what_fails_in_hooks_of_a_leaf_is_told_of_its_node(kind):
    pytest.importorskip("torch")
    (mine, my_words), (theirs, their_words) = (outcome(name, LEAF_HOOKS[kind]) for name in ("engine", "torch"))
    assert mine == theirs
    firsts = [words.strip().partition("\n")[0] for words in my_words]
    assert firsts == [words.strip().partition("\n")[0] for words in their_words]
    assert firsts[0].startswith("Error detected in torch::autograd::AccumulateGrad.")


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.__name__ for p in PROGRAMS])
def test_anomalies_are_told_as_in_pytorch(program):
    pytest.importorskip("torch")
    (mine, my_words), (theirs, their_words) = (outcome(name, program) for name in ("engine", "torch"))
    assert mine == theirs
    # the line of the program stands in the traceback, with others of PyTorch's own
    assert [words.strip().partition("\n")[0] for words in my_words] == [
        words.strip().partition("\n")[0] for words in their_words
    ]
    traced = [words for words in my_words if "Traceback" in words]
    assert all(words.count(__file__) for words in traced)


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_where_warnings_are_errors_the_error_itself_is_raised(name, capsys):
    t = pytest.importorskip(name)
    with t.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            x = leaf(t) + 1
            y = x**2
            x += 1
            y.sum().backward()
    assert "Error detected in PowBackward0." in capsys.readouterr().err
