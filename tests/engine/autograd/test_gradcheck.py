"""gradcheck and gradgradcheck: what they find, with all of their options, in the engine and in PyTorch."""

import re
import warnings

import pytest

import engine


@pytest.fixture(params=["engine", "torch"])
def t(request):
    return engine if request.param == "engine" else pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that a check of undefined gradients is new
        yield


def point(t):
    return t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)


def square(t, slope=2.0, push=None):
    """x**2 with any derivative."""

    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**2

        @staticmethod
        def backward(ctx, g):
            return g * slope * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, dx):
            return dx * (slope if push is None else push) * ctx.saved_tensors[0]

    return Square.apply


CHECKS = [
    {},
    {"fast_mode": True},
    {"check_forward_ad": True},
    {"check_forward_ad": True, "check_backward_ad": False},
    {"check_forward_ad": True, "fast_mode": True},
    {"check_batched_grad": True},
    {"check_forward_ad": True, "check_batched_forward_grad": True, "check_batched_grad": True},
    {"check_grad_dtypes": True, "check_undefined_grad": True},
]


@pytest.mark.parametrize("options", CHECKS)
def test_right_derivatives_pass(t, options):
    x = point(t)
    assert t.autograd.gradcheck(lambda x, y: (x.sin() * y, (x @ y).exp()), (x, point(t)), **options) is True
    assert t.autograd.gradcheck(lambda x: x.clone().mul_(3)[1:], x, **options) is True


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}])
def test_wrong_gradients_are_found(t, options):
    with pytest.raises(t.autograd.gradcheck.__globals__["GradcheckError"]) as caught:
        t.autograd.gradcheck(square(t, 3.0), point(t), **options)
    text = str(caught.value)
    assert text.startswith("Jacobian mismatch for output 0 with respect to input 0,\nnumerical:")
    assert "[2.0000, 0.0000]" in text and "[3., 0.]" in text
    if t is engine:
        assert text.endswith("at input 0:tensor([1., 2.], dtype=torch.float64)\n")
    assert t.autograd.gradcheck(square(t, 3.0), point(t), raise_exception=False, **options) is False


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}])
def test_wrong_tangents_are_found(t, options):
    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for output 0 with respect to"):
        t.autograd.gradcheck(square(t, 2.0, 5.0), point(t), check_forward_ad=True, **options)


def test_fast_mode_shows_the_matrices_too(t):
    with pytest.raises(RuntimeError) as caught:
        t.autograd.gradcheck(square(t, 3.0), point(t), fast_mode=True)
    text = re.sub(r"\s+", " ", str(caught.value))
    assert "are computed in fast mode." in text and "The max per-element difference (slow mode) is: " in text


def test_backward_that_vmap_cannot_run_is_found(t):
    class Branching(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 if g.sum().item() < 1e9 else g

    assert t.autograd.gradcheck(Branching.apply, point(t))
    with pytest.raises(RuntimeError, match="While computing batched gradients, got: "):
        t.autograd.gradcheck(Branching.apply, point(t), check_batched_grad=True)


def test_options_that_exclude_each_other(t):
    for options, message in (
        ({"check_backward_ad": False}, "Expected at least one of check_forward_ad or check_backward_ad to be True"),
        (
            {"check_forward_ad": True, "check_backward_ad": False, "check_batched_grad": True},
            "Setting check_batched_grad=True requires check_backward_ad to be True",
        ),
        ({"check_batched_forward_grad": True}, "check_batched_forward_grad=True requires check_forward_ad to be True"),
    ):
        with pytest.raises(AssertionError, match=message):
            t.autograd.gradcheck(lambda x: x * 2, point(t), **options)


def test_backward_that_gives_something_else_each_time_is_found(t):
    class Drifting(t.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            Drifting.calls += 1
            return g * (2 + 1e-7 * Drifting.calls)

    with pytest.raises(RuntimeError, match="Backward is not reentrant, i.e., running backward with same input and"):
        t.autograd.gradcheck(Drifting.apply, point(t))
    assert t.autograd.gradcheck(Drifting.apply, point(t), nondet_tol=1e-3)


SECOND = [
    {},
    {"fast_mode": True},
    {"check_fwd_over_rev": True},
    {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False},
    {"check_batched_grad": True},
]


@pytest.mark.parametrize("options", SECOND)
def test_second_derivatives(t, options):
    x, y = point(t), point(t)
    assert t.autograd.gradgradcheck(lambda x, y: (x**3 * y, x.sin().sum()), (x, y), **options)
    assert t.autograd.gradgradcheck(lambda x: x.tanh(), x, t.ones(2, dtype=t.float64, requires_grad=True), **options)

    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            x = ctx.saved_tensors[0]
            return g * 3 * x * x.detach()

        @staticmethod
        def jvp(ctx, dx):
            return dx

    if not options.get("check_fwd_over_rev"):
        with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
            t.autograd.gradgradcheck(Wrong.apply, x, **options)
