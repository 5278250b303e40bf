"""gradcheck and gradgradcheck: what they find, with all of their options, in the engine and in PyTorch."""

import re
import warnings
from functools import partial

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


def given(t, backward, outputs=1):
    """x * 2, once or twice; the ``backward`` gets None for the gradient of a result that has none."""

    class Given(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2 if outputs == 1 else (x * 2, x * 2)

        @staticmethod
        def backward(ctx, *gs):
            return backward(t, *gs)

    return Given.apply


def total(*gs):
    """Twice the sum of those that are there."""
    there = [g * 2 for g in gs if g is not None]
    return sum(there) if there else None


def hooked(hook):
    def f(x):
        y = x.clone()
        y.register_hook(hook)
        return y

    return f


def refuse_none(g):
    if g is None:
        raise RuntimeError("undefined")


FUNCTIONS = {
    "a hook that sees undefined": lambda t: hooked(lambda g: None),
    "a hook that refuses undefined": lambda t: hooked(refuse_none),
    "a hook that fails for undefined": lambda t: hooked(lambda g: g * 1),
    "a hook that gives another": lambda t: hooked(lambda g: g * 2),
    "undefined handled": lambda t: given(t, lambda t, g: total(g)),
    "undefined not handled": lambda t: given(t, lambda t, g: g * 2),
    "undefined is no tensor": lambda t: given(t, lambda t, g: 0 if g is None else g * 2),
    "undefined is not zero": lambda t: given(t, lambda t, g: t.ones(2, dtype=t.float64) if g is None else g * 2),
    "two, handled": lambda t: given(t, lambda t, g, h: total(g, h), 2),
    "two, not handled": lambda t: given(t, lambda t, g, h: g * 2 + h * 2, 2),
    "two, not zero": lambda t: given(
        t, lambda t, g, h: t.ones(2, dtype=t.float64) if g is h is None else total(g, h), 2
    ),
    "no factor": lambda t: given(t, lambda t, g: g * 2 + 1),
    "a square": lambda t: given(t, lambda t, g: g * g * 2),
    "another dtype": lambda t: given(t, lambda t, g: (g * 2).float()),
    "nothing": lambda t: given(t, lambda t, g: None),
    "raises": lambda t: given(t, lambda t, g: 1 / 0),
    "another shape above": lambda t: lambda x: x if x[0].item() > 1 else t.cat([x, x]),
    "another shape beside": lambda t: lambda x: t.cat([x, x]) if x[0].item() != 1 else x,
    "another dtype above": lambda t: lambda x: x.float() if x[0].item() > 1 else x,
    "constant": lambda t: lambda x: x.detach(),
    "constant, truly": lambda t: lambda x: t.ones(2, dtype=t.float64),
    "constant and not": lambda t: lambda x: (x * 2, x.detach()),
    "an integer and not": lambda t: lambda x: (x * 2, x.long()),
    "no tensor": lambda t: lambda x: 3,
    "None": lambda t: lambda x: None,
    "no results": lambda t: lambda x: (),
    "nan": lambda t: lambda x: x / 0,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_found_and_said(name):
    torch = pytest.importorskip("torch")

    def found(t, check, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = getattr(t.autograd, check)(FUNCTIONS[name](t), point(t), **options)
            except Exception as e:
                result = type(e).__name__, re.split(r"\. |\n", str(e))[0]
        return result, sorted({str(w.message).split(". ")[0] for w in caught if "jit.script" not in str(w.message)})

    for options in CHECKS[:2] + [{"check_undefined_grad": False}, {"raise_exception": False}]:
        assert found(engine, "gradcheck", **options) == found(torch, "gradcheck", **options), options
    if "constant" not in name and name != "no results":  # there PyTorch slices its arguments away
        assert found(engine, "gradgradcheck") == found(torch, "gradgradcheck")


def test_an_input_without_a_tangent_counts_as_one_with_zeros(t):
    class Given(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g

        @staticmethod
        def jvp(ctx, dx, dy):
            if dx is None or dy is None:
                return t.ones(2, dtype=t.float64) * 7
            return dx + dy

    with pytest.raises(RuntimeError, match="Mismatch in tangent values for output with index: "):
        t.autograd.gradcheck(Given.apply, (point(t), point(t)), check_forward_ad=True)


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


def test_checks_draw_as_many_random_numbers_as_pytorchs():
    torch = pytest.importorskip("torch")

    def next_number(t, check, **options):
        t.manual_seed(0)
        assert getattr(t.autograd, check)(lambda x, y: (x**3 * y, x.sin() + y), (point(t), point(t)), **options)
        return t.rand(1).item()

    for check, options in (
        ("gradgradcheck", {}),
        ("gradgradcheck", {"check_batched_grad": True}),
        ("gradcheck", {"check_batched_grad": True}),
        ("gradcheck", {"check_forward_ad": True, "check_batched_forward_grad": True}),
        ("gradcheck", {"fast_mode": True}),
    ):
        assert next_number(engine, check, **options) == next_number(torch, check, **options)


def test_forward_mode_sees_inputs_that_require_no_grad(t):
    seen = []

    class Sum(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            seen.append((x.requires_grad, y.requires_grad))
            return x + y, y.clone()

        @staticmethod
        def jvp(ctx, x_tangent, y_tangent):
            return x_tangent + y_tangent, y_tangent.clone()

    for undefined in (False, True):
        seen.clear()
        options = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": undefined}
        assert t.autograd.gradcheck(Sum.apply, (point(t), point(t)), check_batched_forward_grad=True, **options)
        assert (False, False) in seen


def test_a_function_that_changes_tangents_is_found(t):
    fw = t.autograd.forward_ad

    def changed(x, y):
        tangent = fw.unpack_dual(y).tangent
        return x + y, y if tangent is None else fw.make_dual(fw.unpack_dual(y).primal, tangent * 1.1)

    for fast in (False, True):
        with pytest.raises(RuntimeError, match="forward mode mismatch for output 1 with respect to input 1"):
            t.autograd.gradcheck(changed, (point(t), point(t)), check_forward_ad=True, fast_mode=fast)


@pytest.mark.parametrize("draws", [False, True])
def test_batched_checks_ask_nothing_of_custom_functions(t, draws):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return Double.apply(g)

        @staticmethod
        def jvp(ctx, tangent):
            if draws:
                t.randn_like(tangent)
            return tangent * 2

    check = partial(t.autograd.gradcheck, Double.apply, point(t), check_forward_ad=True)
    assert check(check_batched_grad=True)
    if draws:
        with pytest.raises(RuntimeError, match="We do not yet support calling random operations inside of vmap"):
            check(check_batched_forward_grad=True)
    else:
        assert check(check_batched_forward_grad=True)
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        t.func.vmap(Double.apply)(t.ones(2, 2))


@pytest.mark.parametrize(
    ("options", "both", "one"),
    [
        ({"check_undefined_grad": False}, 2, 1),
        ({"check_undefined_grad": False, "fast_mode": True}, 2, 1),
        ({}, 6, 2),
        ({"check_batched_forward_grad": True}, 12, 5),
    ],
)
def test_forward_mode_runs_once_for_each_input(t, options, both, one):
    class Copies(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, *tangents):
            calls.append(tangents)
            return tangents

    for requires_grad, expected in ((True, both), (False, one)):
        calls: list = []
        x = t.ones(1, dtype=t.float64, requires_grad=True)
        y = t.ones(1, dtype=t.float64, requires_grad=requires_grad)
        t.autograd.gradcheck(Copies.apply, (x, y), check_forward_ad=True, check_backward_ad=False, **options)
        assert len(calls) == expected
