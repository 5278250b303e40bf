"""autograd.Function.  Every test runs on the engine and, where it is installed, on PyTorch, which is the oracle."""

import gc
import weakref

import pytest

pytestmark = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")


@pytest.fixture(params=["engine", "torch"])
def t(request):
    """The library under test."""
    return pytest.importorskip(request.param)


def function(t, forward, backward, **others):
    """A Function named F."""
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("F", (t.autograd.Function,), body | {k: staticmethod(f) for k, f in others.items()})


def double(t, backward):
    """A Function that doubles its first argument."""
    return function(t, lambda ctx, x, *rest: x * 2, backward)


def cube(t):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x

    return function(t, forward, backward)


def exponential(t):
    """Saves its result."""

    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

    return function(t, forward, backward)


def leaf(t, *values):
    return t.tensor(list(values), requires_grad=True)


# ---- forward and backward


def test_backward_by_hand(t):
    x = leaf(t, 1.0, 2.0)
    y = cube(t).apply(x)
    assert str(y) == "tensor([1., 8.], grad_fn=<FBackward>)"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_the_context_is_the_grad_fn(t):
    def forward(ctx, x, k):
        ctx.order, ctx.saved, ctx.parents, ctx.name_of_mine = k, "a", "b", "c"  # any attribute is free
        return x * k

    def backward(ctx, g):
        return g * ctx.order, None

    x = leaf(t, 1.0)
    y = function(t, forward, backward).apply(x, 5)
    fn = y.grad_fn
    assert fn is y.grad_fn and fn.order == 5 and fn.saved == "a" and fn.parents == "b"
    assert fn.name() == type(fn).__name__ == "FBackward"
    assert repr(fn).startswith("<torch.autograd.function.FBackward object at 0x")
    y.backward()
    assert x.grad.tolist() == [5.0]


def test_next_functions_are_those_of_the_tensors_among_the_arguments(t):
    x, c = leaf(t, 1.0), t.tensor([1.0])
    F = function(t, lambda ctx, a, b, k, d: a + b + d, lambda ctx, g: (g, g, None, g))
    y = F.apply(x, c, 3, x * 2)
    names = [(type(f).__name__, i) for f, i in y.grad_fn.next_functions]
    assert names == [("AccumulateGrad", 0), ("NoneType", 0), ("MulBackward0", 0)]
    fn = y.grad_fn
    del y
    assert len(fn.next_functions) == 3
    assert (F.apply(x, c, 3, x) * 2).grad_fn.next_functions[0][0].name() == "FBackward"


def test_needs_input_grad_has_an_entry_for_each_argument(t):
    seen = []

    def forward(ctx, x, k, c):
        seen.append(ctx.needs_input_grad)
        return x * k + c

    F = function(t, forward, lambda ctx, g: (seen.append(ctx.needs_input_grad), g)[1:] + (None, None))
    F.apply(leaf(t, 1.0), 3, t.tensor([1.0])).backward()
    with t.no_grad():
        F.apply(leaf(t, 1.0), 3, t.tensor([1.0]))
    assert seen == [(True, False, False)] * 3


def test_forward_is_not_recorded_and_gets_the_arguments_themselves(t):
    x, seen = leaf(t, 1.0), []

    def forward(ctx, a):
        seen.append((a is x, t.is_grad_enabled(), (a * 2).requires_grad))
        return a * 2

    function(t, forward, lambda ctx, g: g).apply(x)
    assert seen == [(True, False, False)]
    assert t.is_grad_enabled()


def test_grad_mode_returns_when_forward_fails(t):
    with pytest.raises(ZeroDivisionError):
        function(t, lambda ctx, x: 1 / 0, lambda ctx, g: g).apply(leaf(t, 1.0))
    assert t.is_grad_enabled()


def test_nothing_is_recorded_without_need(t):
    assert cube(t).apply(t.tensor([2.0])).grad_fn is None
    with t.no_grad():
        assert not cube(t).apply(leaf(t, 2.0)).requires_grad
    assert double(t, lambda ctx, g: g).apply(3) == 6


def test_several_inputs_and_outputs(t):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h

    x, y = leaf(t, 2.0), leaf(t, 5.0)
    p, s = function(t, forward, backward).apply(x, y)
    assert (p.output_nr, s.output_nr) == (0, 1) and p.grad_fn is s.grad_fn
    assert (p * 3).grad_fn.next_functions[0] == (p.grad_fn, 0) and (s * 3).grad_fn.next_functions[0] == (p.grad_fn, 1)
    (p * 10 + s).backward()
    assert (x.grad.item(), y.grad.item()) == (51.0, 21.0)


def test_backward_runs_once_for_all_inputs_and_outputs(t):
    calls = []

    def backward(ctx, g, h):
        calls.append((g.tolist(), h.tolist()))
        return g + h, g - h

    x, y = leaf(t, 1.0), leaf(t, 1.0)
    a, b = function(t, lambda ctx, x, y: (x + y, x - y), backward).apply(x, y)
    (a * 2 + a * 3 + b * 7).backward()
    assert calls == [([5.0], [7.0])]


def test_the_same_tensor_twice(t):
    x = leaf(t, 3.0)
    function(t, lambda ctx, a, b: a * b, lambda ctx, g: (g * 10, g * 100)).apply(x, x).backward()
    assert x.grad.tolist() == [110.0]


def test_a_scalar_result(t):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum()

    x = leaf(t, 1.0, 2.0)
    function(t, forward, lambda ctx, g: g * 2 * ctx.saved_tensors[0]).apply(x).backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_results_that_are_no_tensors_pass(t):
    seen = []
    F = function(t, lambda ctx, x: (x * 2, 5, None), lambda ctx, *g: (seen.extend(g), g[0] * 2)[1])
    x = leaf(t, 1.0)
    y, five, none = F.apply(x)
    assert (five, none) == (5, None)
    y.backward()
    assert seen[0].tolist() == [1.0] and seen[1:] == [None, None]
    assert F.apply(x)[0].output_nr == 0


def test_vjp_is_another_name_of_backward(t):
    x = leaf(t, 1.0)
    F = type(
        "F",
        (t.autograd.Function,),
        {"forward": staticmethod(lambda ctx, x: x * 2), "vjp": staticmethod(lambda c, g: g * 7)},
    )
    F.apply(x).backward()
    assert x.grad.tolist() == [7.0]


def test_setup_context(t):
    class Power(t.autograd.Function):
        @staticmethod
        def forward(x, k=4):
            return x**k

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.k = inputs
            assert output.grad_fn is None and not t.is_grad_enabled()
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.k * x ** (ctx.k - 1), None

    x = leaf(t, 2.0)
    Power.apply(x).backward()
    assert x.grad.tolist() == [32.0]
    assert Power.apply(x, k=3).tolist() == [8.0]


def test_keyword_arguments_reach_forward(t):
    assert function(t, lambda ctx, x, k=1: x * k, lambda ctx, g: g).apply(leaf(t, 1.0), k=7).tolist() == [7.0]


def test_gradients_in_one_list(t):
    F = function(t, lambda ctx, x: (x * 2, x * 3), lambda ctx, grads: grads.pop() * 3 + grads.pop() * 2)
    F.boxed_grads_call = True
    x = leaf(t, 1.0)
    y, z = F.apply(x)
    (y + 10 * z).backward()
    assert x.grad.tolist() == [32.0]


def test_a_context_has_no_public_names_but_pytorchs():
    import engine

    torch = pytest.importorskip("torch")
    mine, theirs = (set(dir(cube(t).apply(leaf(t, 1.0)).grad_fn)) for t in (engine, torch))
    assert not {n for n in mine - theirs if n[0] != "_"}


def test_a_context_takes_any_name(t):
    names = "_saved _inputs _results _call _plain _order _made _outputs _node _backward call inputs".split()

    def forward(ctx, x):
        for name in names:
            setattr(ctx, name, name)
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        assert [getattr(ctx, name) for name in names] == names
        return 2 * g * ctx.saved_tensors[0]

    x = leaf(t, 3.0)
    function(t, forward, backward).apply(x).backward()
    assert x.grad.tolist() == [6.0]


def test_used_in_a_larger_graph(t):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    (cube(t).apply(x * w) + w).sum().backward()
    assert x.grad.tolist() == [27.0 * 3, 3 * 4.0 * 64]
    assert w.grad.tolist() == [3.0 * 9 * 1 + 1, 3 * 2 * 64.0 + 1]


# ---- what backward may return


@pytest.mark.parametrize(
    "arguments, returned, message",
    [
        (2, 1, "function FBackward returned an incorrect number of gradients (expected 2, got 1)"),
        (1, 2, "function FBackward returned an incorrect number of gradients (expected 1, got 2)"),
        (3, 2, "function FBackward returned an incorrect number of gradients (expected 3, got 2)"),
    ],
)
def test_wrong_number_of_gradients(t, arguments, returned, message):
    F = double(t, lambda ctx, g: (g,) * returned)
    with pytest.raises(RuntimeError) as e:
        F.apply(*[leaf(t, 1.0) for _ in range(arguments)]).backward()
    assert str(e.value) == message


def test_more_gradients_than_arguments_if_they_are_none(t):
    x = leaf(t, 1.0)
    double(t, lambda ctx, g: (g, None, None)).apply(x).backward()
    assert x.grad.tolist() == [1.0]


def test_a_gradient_for_what_is_no_tensor(t):
    with pytest.raises(
        RuntimeError, match="^function FBackward returned a gradient different than None at position 2, but"
    ):
        double(t, lambda ctx, g: (g, g)).apply(leaf(t, 1.0), 3).backward()


def test_a_gradient_for_what_requires_none_is_dropped(t):
    c = t.tensor([1.0])
    double(t, lambda ctx, g: (g, g)).apply(leaf(t, 1.0), c).backward()
    assert c.grad is None


@pytest.mark.parametrize("returned", [3, [3], "a"])
def test_what_is_neither_tensor_nor_none(t, returned):
    with pytest.raises(RuntimeError) as e:
        double(t, lambda ctx, g: returned).apply(leaf(t, 1.0)).backward()
    assert str(e.value) == f"expected Variable or None (got {type(returned).__name__})"


def test_none_is_no_gradient(t):
    x, y = leaf(t, 1.0), leaf(t, 1.0)
    double(t, lambda ctx, g, h=None: (None, g)).apply(x, y).backward()
    assert x.grad is None and y.grad.tolist() == [1.0]
    (x * 3 + double(t, lambda ctx, g: None).apply(x)).backward()
    assert x.grad.tolist() == [3.0]


@pytest.mark.parametrize("shape", [(3,), (), (1,), (2, 3)])
def test_a_gradient_of_the_wrong_shape(t, shape):
    with pytest.raises(RuntimeError) as e:
        double(t, lambda ctx, g: t.ones(shape)).apply(leaf(t, 1.0, 2.0)).sum().backward()
    assert str(e.value) == (
        f"Function FBackward returned an invalid gradient at index 0 - got {list(shape)} but expected shape compatible "
        "with [2]"
    )


def test_the_index_in_that_error_counts_tensors(t):
    F = function(t, lambda ctx, k, x, y: x + y, lambda ctx, g: (None, g, t.ones(3)))
    with pytest.raises(RuntimeError, match="^Function FBackward returned an invalid gradient at index 1 - got"):
        F.apply(7, leaf(t, 1.0, 2.0), leaf(t, 1.0, 2.0)).sum().backward()


def test_a_gradient_of_the_broadcast_shape_is_summed(t):
    x = leaf(t, 1.0, 2.0)
    double(t, lambda ctx, g: t.ones(4, 2)).apply(x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("dtype", ["float64", "int64", "float16"])
def test_a_gradient_of_another_dtype_is_cast(t, dtype):
    x = leaf(t, 1.0, 2.0)
    double(t, lambda ctx, g: t.ones(2, dtype=getattr(t, dtype))).apply(x).sum().backward()
    assert x.grad.dtype == t.float32 and x.grad.tolist() == [1.0, 1.0]


def test_the_gradient_of_a_leaf_is_not_the_memory_of_what_backward_returned(t):
    mine, x = t.ones(2), leaf(t, 1.0, 2.0)
    F = double(t, lambda ctx, g: mine)
    F.apply(x).sum().backward()
    F.apply(x).sum().backward()
    assert mine.tolist() == [1.0, 1.0] and x.grad.tolist() == [2.0, 2.0]


def test_errors_of_backward_come_out_as_they_are(t):
    def backward(ctx, g):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="^mine$"):
        double(t, backward).apply(leaf(t, 1.0)).backward()
    assert t.is_grad_enabled()


# ---- saved tensors


def test_a_saved_input_is_that_tensor(t):
    x = leaf(t, 1.0)
    assert cube(t).apply(x).grad_fn.saved_tensors[0] is x


def test_a_saved_result_belongs_to_the_graph(t):
    y = exponential(t).apply(leaf(t, 0.0))
    (saved,) = y.grad_fn.saved_tensors
    assert saved.grad_fn is y.grad_fn and saved.tolist() == [1.0]


def test_none_may_be_saved(t):
    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * 2

    assert function(t, forward, lambda ctx, g: g).apply(leaf(t, 1.0)).grad_fn.saved_tensors[1] is None


def test_numbers_may_not_be_saved(t):
    def forward(ctx, x):
        ctx.save_for_backward(x, 3)

    with pytest.raises(TypeError, match="^save_for_backward can only save variables, but argument 1 is of type int$"):
        function(t, forward, lambda ctx, g: g).apply(leaf(t, 1.0))


def test_what_is_saved_is_not_looked_at_where_there_is_no_backward(t):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    assert function(t, forward, lambda ctx, g: g).apply(1.5) == 3.0


def test_saved_tensors_are_freed_by_backward(t):
    x = leaf(t, 1.0)
    y = cube(t).apply(x)
    fn = y.grad_fn
    y.backward()
    for again in (lambda: fn.saved_tensors, y.backward):
        with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
            again()


def test_saved_tensors_stay_with_retain_graph(t):
    x = leaf(t, 1.0)
    y = cube(t).apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_a_second_backward_needs_no_saved_tensors(t):
    x = leaf(t, 1.0)
    y = double(t, lambda ctx, g: g * 2).apply(x)
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0]


@pytest.mark.parametrize("reads", [True, False])
def test_a_saved_input_that_was_overwritten(t, reads):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(t, 1.0) * 1
    y = function(t, forward, lambda ctx, g: (ctx.saved_tensors if reads else None, g)[1]).apply(x)
    x.mul_(3)
    if not reads:
        return y.backward()
    with pytest.raises(RuntimeError) as e:
        y.backward()
    assert str(e.value).startswith(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [1]], which is output 0 of Mul, is at version 1; expected version 0 instead. Hint: enable "
        "anomaly detection"
    )


def test_a_saved_result_that_was_overwritten(t):
    y = exponential(t).apply(leaf(t, 1.0))
    z = y * 1
    y.mul_(2)
    with pytest.raises(
        RuntimeError, match=r"\[torch.FloatTensor \[1\]\], which is output 0 of F, is at version 1; expected"
    ):
        z.backward()


# ---- what a result is


def test_results_marked_as_not_differentiable(t):
    def forward(ctx, x):
        a, b, positive = x * 2, x * 3, x > 0
        ctx.mark_non_differentiable(b)
        return a, b, positive

    seen = []
    x = leaf(t, 1.0)
    a, b, positive = function(t, forward, lambda ctx, *g: (seen.extend(g), g[0])[1]).apply(x)
    assert [v.requires_grad for v in (a, b, positive)] == [True, False, False]
    assert b.is_leaf and positive.tolist() == [True]
    a.backward()
    assert [g.tolist() for g in seen] == [[1.0], [0.0], [False]]


def test_an_unused_result_has_a_gradient_of_zeros(t):
    seen = []
    F = function(t, lambda ctx, x: (x * 2, t.stack([x, x])), lambda ctx, *g: (seen.extend(g), g[0])[1])
    F.apply(leaf(t, 1.0))[0].backward()
    assert [g.tolist() for g in seen] == [[1.0], [[0.0], [0.0]]]


def test_an_unused_result_has_none_if_zeros_are_not_wanted(t):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    seen = []
    function(t, forward, lambda ctx, *g: (seen.extend(g), g[0])[1]).apply(leaf(t, 1.0))[0].backward()
    assert seen[0].tolist() == [1.0] and seen[1] is None


def test_an_argument_returned_as_it_came_is_a_view_of_it(t):
    x = leaf(t, 1.0)
    y = function(t, lambda ctx, x: x, lambda ctx, g: g * 5).apply(x)
    assert y is not x and x.is_leaf and y.data_ptr() == x.data_ptr() and str(y) == "tensor([1.], grad_fn=<FBackward>)"
    y.backward()
    assert x.grad.tolist() == [5.0]
    c = t.ones(1)
    assert function(t, lambda ctx, x: x, lambda ctx, g: g).apply(c) is not c


@pytest.mark.parametrize(
    "make", [lambda x: x, lambda x: x[0:1], lambda x: x.reshape(1)], ids=["x", "x[0:1]", "reshape"]
)
@pytest.mark.parametrize("further", [lambda y: y, lambda y: y[0:1]], ids=["itself", "a view of it"])
def test_a_view_that_forward_returned_may_not_be_written(t, make, further):
    q = leaf(t, 1.0) * 1
    y = function(t, lambda ctx, x: make(x), lambda ctx, g: g * 5).apply(q)
    with pytest.raises(
        RuntimeError,
        match="^Output 0 of (F|Slice) is a view and is being modified inplace. This view was created inside",
    ):
        further(y).mul_(2)
    q.mul_(2)
    with pytest.raises(
        RuntimeError,
        match="^Output 0 of (F|Slice) is a view and its base or another view of its base has been modified",
    ):
        further(y).sum().backward()


def test_an_argument_written_in_place(t):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = leaf(t, 3.0)
    q = x * 1
    y = function(t, forward, lambda ctx, g: g * 2).apply(q)
    assert y is q and type(q.grad_fn).__name__ == "FBackward" and q.tolist() == [6.0]
    (q * 5).backward()
    assert x.grad.tolist() == [10.0]


def test_a_view_written_in_place_changes_the_graph_of_its_base(t):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(7)

    x = leaf(t, 3.0, 4.0)
    base = x * 1
    view = base[0:1]
    function(t, forward, lambda ctx, g: g * 7).apply(view)
    assert type(view.grad_fn).__name__ == "AsStridedBackward0" and type(base.grad_fn).__name__ == "CopySlices"
    base.sum().backward()
    assert base.tolist() == [21.0, 4.0] and x.grad.tolist() == [7.0, 1.0]


def test_a_leaf_written_in_place(t):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    F = function(t, forward, lambda ctx, g: g * 2)
    with pytest.raises(
        RuntimeError, match="^a leaf Variable that requires grad has been used in an in-place operation"
    ):
        F.apply(leaf(t, 1.0))
    c = t.ones(1)
    assert F.apply(c) is c


def test_what_is_written_in_place_must_be_returned(t):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2) * 1

    with pytest.raises(
        RuntimeError, match="^Some elements marked as dirty during the forward method were not returned as out"
    ):
        function(t, forward, lambda ctx, g: g).apply(leaf(t, 1.0) * 1)


def test_only_arguments_are_written_in_place(t):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="mark_dirty"):
        function(t, forward, lambda ctx, g: g).apply(leaf(t, 1.0))


def test_a_view_written_in_place_must_be_the_only_result(t):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2), x * 3

    with pytest.raises(
        RuntimeError, match="^If your Function modifies inplace an input that is a view of another Tensor"
    ):
        function(t, forward, lambda ctx, g, h: g).apply((leaf(t, 1.0, 2.0) * 1)[0:1])


# ---- higher derivatives


def test_backward_is_differentiated_in_turn(t):
    x = leaf(t, 2.0)
    derivatives, y = [], cube(t).apply(x)
    for _ in range(3):
        derivatives.append(y.item())
        (y,) = t.autograd.grad(y, x, create_graph=True, materialize_grads=True)
    assert [*derivatives, y.item()] == [8.0, 12.0, 12.0, 6.0]


def test_a_saved_result_is_differentiated_in_turn(t):
    x = leaf(t, 0.5, 1.0)
    y = exponential(t).apply(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = t.autograd.grad(g.sum(), x)
    assert gg.tolist() == x.exp().tolist()


def test_with_respect_to_the_result_that_was_saved(t):
    x = leaf(t, 1.0)
    y = exponential(t).apply(x)
    (g,) = t.autograd.grad(y, x, create_graph=True)
    (d,) = t.autograd.grad(g, y)  # g = 1 * y
    assert d.tolist() == [1.0]


def test_functions_of_functions(t):
    class Outer(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return cube(t).apply(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * cube(t).apply(x) / x

    x = leaf(t, 2.0)
    (g,) = t.autograd.grad(Outer.apply(x), x, create_graph=True)
    (h,) = t.autograd.grad(g, x)
    assert (g.tolist(), h.tolist()) == ([12.0], [12.0])


def test_a_graph_of_its_own_inside_of_backward(t):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with t.enable_grad():
            y = x * x
        return t.autograd.grad(y, x, g)

    x = leaf(t, 3.0)
    function(t, forward, backward).apply(x).backward()
    assert x.grad.tolist() == [6.0]


def test_once_differentiable(t):
    from importlib import import_module

    once = import_module(t.__name__ + ".autograd.function").once_differentiable

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    F = function(t, forward, once(lambda ctx, g: g * 2 * ctx.saved_tensors[0]))
    x = leaf(t, 3.0)
    F.apply(x).backward()
    assert x.grad.tolist() == [6.0]
    (g,) = t.autograd.grad(F.apply(x) ** 2, x, create_graph=True)
    assert g.tolist() == [108.0] and g.requires_grad
    with pytest.raises(
        RuntimeError, match="^trying to differentiate twice a function that was marked with @once_different"
    ):
        g.backward()


def test_once_differentiable_joins_nothing_to_the_graph_that_led_there(t):
    from importlib import import_module

    once = import_module(t.__name__ + ".autograd.function").once_differentiable
    F = function(t, lambda ctx, x: (x * 2, x * 3), once(lambda ctx, g, h: g * 2 + h * 3))
    x, weight = leaf(t, 2.0), leaf(t, 5.0)
    a, b = F.apply(x)
    (g,) = t.autograd.grad(a * b, x, weight, create_graph=True)
    assert type(g.grad_fn).__name__ == "Error" and type(g.grad_fn.next_functions[0][0]).__name__ == "AccumulateGrad"
    for other in (x, weight):
        with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
            t.autograd.grad(g, other, retain_graph=True)
    with pytest.raises(RuntimeError, match="twice"):
        g.backward()
    (g,) = t.autograd.grad(F.apply(x)[0], x, create_graph=True)
    assert not g.requires_grad


# ---- hooks


def test_hooks_of_the_node(t):
    x, y, seen = leaf(t, 1.0), leaf(t, 1.0), []

    def values(*grads):
        seen.append([None if g is None else g.item() for g in grads])

    a, b = function(t, lambda ctx, x, y: (x + y, x * 2), lambda ctx, g, h: (g + h, g)).apply(x, y)
    a.grad_fn.register_prehook(lambda grads: values(*grads))
    a.grad_fn.register_prehook(lambda grads: (grads[0] * 10, None))
    a.grad_fn.register_hook(lambda into, out: (values(*into, *out), (into[0], into[1] * 2))[1])
    a.backward()
    assert seen == [[1.0, None], [10.0, 10.0, 10.0, None]]
    assert (x.grad.item(), y.grad.item()) == (10.0, 20.0)


def test_hooks_of_a_result(t):
    x = leaf(t, 1.0)
    a, b = function(t, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x)
    b.register_hook(lambda g: g * 100)
    b.retain_grad()
    (a + b).backward()
    assert b.grad.tolist() == [100.0] and x.grad.tolist() == [302.0]


# ---- mistakes


def test_a_function_with_no_forward(t):
    with pytest.raises(
        NotImplementedError, match="^You must implement the forward function for custom autograd.Function.$"
    ):
        type("F", (t.autograd.Function,), {}).apply(leaf(t, 1.0))


def test_a_function_with_no_backward(t):
    y = type("F", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)}).apply(leaf(t, 1.0))
    with pytest.raises(
        NotImplementedError, match="^You must implement either the backward or vjp method for your custom"
    ):
        y.backward()


def test_a_function_with_backward_and_vjp(t):
    y = function(t, lambda ctx, x: x * 2, lambda ctx, g: g, vjp=lambda ctx, g: g).apply(leaf(t, 1.0))
    with pytest.raises(
        RuntimeError, match="^Implementing both 'backward' and 'vjp' for a custom Function is not allowed"
    ):
        y.backward()


def test_a_function_is_not_instantiated(t):
    with pytest.warns(
        DeprecationWarning, match="should not be instantiated. Methods on autograd functions are all static"
    ):
        f = cube(t)()
    with pytest.raises(RuntimeError, match="^Legacy autograd function with non-static forward method is deprecated"):
        f(leaf(t, 1.0))


# ---- lifetime


@pytest.mark.parametrize("make", [cube, exponential], ids=["saves its input", "saves its result"])
@pytest.mark.parametrize("runs", [True, False], ids=["after backward", "without backward"])
def test_no_reference_cycle(t, make, runs):
    gc.collect()
    gc.disable()
    try:
        x = leaf(t, 1.0)
        y = make(t).apply(x * 1)
        alive = weakref.ref(y.grad_fn)
        if runs:
            y.backward()
        del y
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("materialize", [True, False])
def test_an_input_without_a_tangent_has_one_of_zeros_in_jvp(t, materialize):
    seen = []

    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, n):
            ctx.set_materialize_grads(materialize)
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def jvp(ctx, x_tangent, y_tangent, n):
            seen.append((y_tangent if y_tangent is None else y_tangent.tolist(), n))
            return x_tangent * ctx.saved_tensors[1]

    with t.autograd.forward_ad.dual_level():
        x = t.autograd.forward_ad.make_dual(t.ones(2), t.full((2,), 3.0))
        out = Product.apply(x, t.ones(2), 7)
        assert t.autograd.forward_ad.unpack_dual(out).tangent.tolist() == [3.0, 3.0]
    assert seen == [([0.0, 0.0] if materialize else None, None)]


def test_what_is_once_differentiable_ends_in_one_node(t):
    once = t.autograd.function.once_differentiable
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    F = function(t, lambda ctx, x, n, y: x * y, once(lambda ctx, g: (g * 2, None, g * 3)))
    go = t.ones(1, requires_grad=True)
    (gx, gy) = t.autograd.grad(F.apply(x, 2, y), (x, y), go, create_graph=True)
    assert gx.grad_fn is gy.grad_fn and (gx.output_nr, gy.output_nr) == (0, 2)
    assert gx.grad_fn.name() == "torch::autograd::Error"
    assert [node and type(node).__name__ for node, _ in gx.grad_fn.next_functions] == [
        "AccumulateGrad", None, "AccumulateGrad",
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        gx.sum().backward()


@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("non_diff", [True, False])
def test_zeros_for_results_that_are_not_differentiable_may_be_left_out(t, materialize, non_diff):
    seen = []

    def forward(ctx, x):
        a, b, c = x * 1, x * 2, x > 0
        ctx.mark_non_differentiable(b)
        ctx.set_materialize_grads(materialize)
        ctx._materialize_non_diff_grads = non_diff
        return a, b, c, x * 3

    def backward(ctx, *gs):
        seen.extend([g is None for g in gs])
        return gs[0]

    function(t, forward, backward).apply(leaf(t, 1.0))[0].backward()
    assert seen == [False, not (materialize and non_diff), not (materialize and non_diff), not materialize]


def test_saved_tensors_that_are_let_go_as_they_are_read(t):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        alive = weakref.ref(x)
        del x
        assert alive() is None
        if twice:
            _ = ctx.saved_tensors
        return g * 2

    F = function(t, forward, backward)
    assert F.clear_saved_tensors_on_access is False
    F.clear_saved_tensors_on_access = True
    x = leaf(t, 1.0)
    for twice in (False, True):
        y = F.apply(x * 1)
        if twice:
            with pytest.raises(RuntimeError, match="can only be accessed once when clear_saved_tensors_on_access=True"):
                y.backward()
        else:
            y.backward()
    assert x.grad.tolist() == [2.0]


def test_a_view_that_forward_has_written_may_be_saved_without_a_cycle(t):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x.mul_(3)

    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0]

    F = function(t, forward, backward)
    x = leaf(t, 2.0)
    y = (x * 1).view_as(x)
    F.apply(y).backward()
    assert x.grad.tolist() == [18.0]
    gc.disable()
    try:
        y = (x * 1).view_as(x)
        alive = weakref.ref(F.apply(y))
        del y
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("view", [True, False])
def test_what_is_no_argument_is_marked_dirty(t, view):
    def forward(ctx, x):
        y = (x * 1).view_as(x) if view else x * 1
        ctx.mark_dirty(y)
        return y

    F = function(t, forward, lambda ctx, g: g)
    with pytest.raises(RuntimeError) if view else pytest.warns(UserWarning) as seen:
        F.apply(leaf(t, 1.0) * 1)
    words = str(seen.value) if view else str(seen[0].message)
    assert words.startswith("ctx.mark_dirty() received a tensor that was not an input.")
