"""Anomaly detection in backward passes of backward passes: which nodes it names, and what it takes for an anomaly."""

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
    one, another_induced_it, two_induced_it, what_induced_it_was_recorded_before, it_was_induced_before,
    nan_in_what_was_induced, nan_that_may_pass, blocks_in_one_another, not_a_bool,
]  # fmt: skip


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
