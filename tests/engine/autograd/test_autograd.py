"""What backward, grad, grad modes, hooks and .grad do.

Every test runs on the engine and, where it is installed, on PyTorch, which is the oracle.
"""

import copy
import gc
import importlib
import math
import subprocess
import sys
import threading
import warnings
import weakref
from collections import OrderedDict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.filterwarnings(
    "ignore:Using backward.. with create_graph", "ignore:invalid value:RuntimeWarning"
)


@pytest.fixture(params=["engine", "torch"])
def t(request):
    """The library under test."""
    return pytest.importorskip(request.param)


def leaf(t, *values, **kwargs):
    return t.tensor(list(values), requires_grad=True, **kwargs)


def raises(message, kind=RuntimeError):
    """The error whose text begins with these words."""
    return pytest.raises(kind, match="^" + escaped(message))


def escaped(message):
    return "".join("\\" + c if c in "()[].*+?{}|^$" else c for c in message)


FREED = "Trying to backward through the graph a second time (or directly access saved tensors after they have"

# ---- leaves and .grad


def test_leaves(t):
    x, c = leaf(t, 1.0), t.ones(1)
    y = x * 2
    assert [v.is_leaf for v in (x, c, y, c * 2, y.detach())] == [True, True, False, True, True]
    assert [v.requires_grad for v in (x, c, y, c * 2, y.detach())] == [True, False, True, False, False]
    assert x.grad_fn is None and c.grad_fn is None and y.grad_fn.name() == "MulBackward0"
    assert [v.output_nr for v in (x, y, *y.unbind())] == [0, 0, 0]


def test_backward_fills_the_grad_of_leaves_only(t):
    x, c = leaf(t, 1.0, 2.0), t.tensor([3.0, 4.0])
    y = x * c
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0] and x.grad.grad_fn is None and not x.grad.requires_grad
    assert c.grad is None
    with pytest.warns(
        UserWarning, match="^The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .gr"
    ):
        assert y.grad is None


def test_gradients_add_up(t):
    x = leaf(t, 1.0)
    (x * 2).backward()
    (x * 3).backward()
    assert x.grad.tolist() == [5.0]


def test_they_add_up_in_place(t):
    x = leaf(t, 1.0)
    (x * 2).backward()
    held = x.grad
    (x * 3).backward()
    assert held is x.grad and held.tolist() == [5.0] and held._version == 1


def test_a_scalar_adds_up_in_place_too(t):
    x = t.tensor(1.0, requires_grad=True)
    (x * 2).backward()
    held = x.grad
    (x * 3).backward()
    assert held is x.grad and held.item() == 5.0


def test_recorded_gradients_add_up_out_of_place(t):
    x = leaf(t, 1.0)
    (x * 2).backward()
    held = x.grad
    (x * x).backward(create_graph=True)
    assert held is not x.grad and held.tolist() == [2.0] and str(x.grad) == "tensor([4.], grad_fn=<AddBackward0>)"


def test_the_first_recorded_gradient_is_a_copy(t):
    x = leaf(t, 1.0)
    (x * x).backward(create_graph=True)
    assert str(x.grad) == "tensor([2.], grad_fn=<CopyBackwards>)"


def test_the_gradients_of_two_leaves_share_no_memory(t):
    x, y = leaf(t, 1.0), leaf(t, 1.0)
    (x + y).backward()
    x.grad.mul_(5)
    assert y.grad.tolist() == [1.0]


def test_the_gradient_that_was_given_is_not_the_one_that_is_kept(t):
    x, g = leaf(t, 1.0), t.ones(1)
    x.backward(g)
    y = x * 1
    y.retain_grad()
    y.backward(g)
    x.grad.mul_(5)
    y.grad.mul_(5)
    assert g.tolist() == [1.0]


def test_setting_and_deleting_grad(t):
    x = leaf(t, 1.0, 2.0)
    x.grad = t.ones(2)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    x.grad = None
    assert x.grad is None
    x.grad = x * 3
    assert x.grad.grad_fn is not None
    del x.grad
    assert x.grad is None
    c = t.ones(2, dtype=t.int64)
    c.grad = c * 1
    assert c.grad.tolist() == [1, 1]


@pytest.mark.parametrize(
    "value, kind, message",
    [
        (lambda t, x: 3, TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
        (lambda t, x: [1.0], TypeError, "assigned grad expected to be a Tensor or None but got grad of type list"),
        (lambda t, x: x, RuntimeError, "can't assign Variable as its own grad"),
        (
            lambda t, x: t.ones(3),
            RuntimeError,
            "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please",
        ),
        (
            lambda t, x: t.ones(()),
            RuntimeError,
            "attempting to assign a gradient of size '[]' to a tensor of size '[2]'. Please",
        ),
        (
            lambda t, x: x.double(),
            RuntimeError,
            "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'. The gradient "
            "must match",
        ),
        (
            lambda t, x: x.long(),
            RuntimeError,
            "attempting to assign a gradient with dtype 'long int' to a tensor with grad_dtype 'Float'. The gradient "
            "must",
        ),
        (
            lambda t, x: x.half(),
            RuntimeError,
            "attempting to assign a gradient with dtype 'c10::Half' to a tensor with grad_dtype 'Float'. The gradient "
            "must",
        ),
    ],
)
def test_what_grad_may_not_be(t, value, kind, message):
    x = leaf(t, 1.0, 2.0)
    with raises(message, kind):
        x.grad = value(t, x)
    assert x.grad is None


def test_backward_from_a_view_that_was_made_under_no_grad(t):
    x = leaf(t, 1.0, 2.0)
    with t.no_grad():
        y = x[:1]
    assert y.requires_grad
    with raises("element 0 of tensors does not require grad and does not have a grad_fn"):
        y.backward()


# ---- retain_grad


def test_retain_grad(t):
    x = leaf(t, 1.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad and y.grad is None  # no warning
    (y * y).backward(retain_graph=True)
    assert (y.grad.tolist(), x.grad.tolist()) == ([4.0], [8.0])
    (y * 3).backward()
    assert y.grad.tolist() == [7.0]


def test_retain_grad_keeps_what_the_hooks_made(t):
    y = leaf(t, 1.0) * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.register_hook(lambda g: g * 100)
    y.backward()
    assert y.grad.tolist() == [1000.0]


def test_retain_grad_follows_the_tensor_through_an_in_place_write(t):
    y = leaf(t, 1.0) * 2
    y.retain_grad()
    y.mul_(5)
    (y * 7).backward()
    assert y.grad.tolist() == [7.0]


def test_a_retained_gradient_is_recorded_with_create_graph(t):
    y = leaf(t, 1.0) * 2
    y.retain_grad()
    (y * y).backward(create_graph=True)
    assert str(y.grad) == "tensor([4.], grad_fn=<CloneBackward0>)"


def test_retain_grad_where_nothing_is_needed(t):
    leaf(t, 1.0).retain_grad()
    with raises("can't retain_grad on Tensor that has requires_grad=False"):
        t.ones(1).retain_grad()


# ---- the roots of backward


@pytest.mark.parametrize(
    "backward, message",
    [
        (lambda t: (leaf(t, 1.0, 2.0) * 2).backward(), "grad can be implicitly created only for scalar outputs"),
        (lambda t: t.ones(1).backward(), "element 0 of tensors does not require grad and does not have a grad_fn"),
        (
            lambda t: t.ones(1, dtype=t.int64).backward(),
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (
            lambda t: (leaf(t, 1.0, 2.0) * 2).backward(t.ones(3)),
            "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of "
            "torch.Size([2]).",
        ),
        (
            lambda t: (leaf(t, 1.0, 2.0) * 2).backward(t.tensor(1.0)),
            "Mismatch in shape: grad_output[0] has a shape of torch.Size([]) and output[0] has a shape of "
            "torch.Size([2]).",
        ),
        (lambda t: t.autograd.backward([leaf(t, 1.0), leaf(t, 1.0)], [t.ones(1)]), "got 2 tensors and 1 gradients"),
        (lambda t: (leaf(t, 1.0) * 2).backward(inputs=[]), "`inputs` argument to `backward()` cannot be empty."),
        (
            lambda t: (leaf(t, 1.0) * 2).backward(inputs=[t.ones(1)]),
            "can't retain_grad on Tensor that has requires_grad=False",
        ),
    ],
)
def test_what_backward_refuses(t, backward, message):
    with raises(message):
        backward(t)


def test_gradients_are_tensors(t):
    with raises("gradients can be either Tensors or None, but got float", TypeError):
        (leaf(t, 1.0) * 2).backward([1.0])
    with raises("'float' object is not iterable", TypeError):
        (leaf(t, 1.0) * 2).backward(1.0)


def test_backward_with_a_gradient(t):
    x = leaf(t, 1.0, 2.0)
    (x * x).backward(t.tensor([10.0, 100.0]))
    assert x.grad.tolist() == [20.0, 400.0]


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_gradient_of_another_dtype_is_cast(t, dtype):
    x, seen = leaf(t, 1.0, 2.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.dtype))
    y.backward(t.ones(2, dtype=getattr(t, dtype)))
    assert x.grad.dtype == t.float32 and seen == [t.float32]


def test_one_element_of_any_shape_needs_no_gradient(t):
    x = t.ones(1, 1, requires_grad=True)
    (x * 2).backward()
    assert x.grad.tolist() == [[2.0]]


def test_backward_from_a_leaf(t):
    x = leaf(t, 5.0)
    x.backward()
    assert x.grad.tolist() == [1.0]


def test_several_roots(t):
    x = leaf(t, 1.0)
    y = x * 2
    t.autograd.backward([y, x * 3, y], [t.ones(1), None, t.tensor([10.0])])
    assert x.grad.tolist() == [2 * 11.0 + 3]
    t.autograd.backward(())


def test_a_root_above_another_root(t):
    x = leaf(t, 1.0)
    y = x * 2
    t.autograd.backward([y, y * 3])
    assert x.grad.tolist() == [8.0]


# ---- freed graphs


@pytest.mark.parametrize(
    "operation",
    [
        "x + w", "x - 2", "-x", "x.sum()", "x.mean()", "x.reshape(2, 1)", "torch.stack([x, w])", "torch.cat([x, w])",
        "x[0]", "x[0:1]", "x.clone()", "x.double()", "x.reshape(1, 2).t()", "x.cumsum(0)", "x.expand(3, 2)",
        "x.unsqueeze(0)",
    ],
)  # fmt: skip
def test_operations_that_save_no_tensor_can_be_gone_through_again(t, operation):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    y = eval(operation, {"torch": t, "x": x, "w": w}).sum()
    y.backward()
    first = x.grad.clone()
    y.backward()
    assert x.grad.tolist() == (first * 2).tolist()


@pytest.mark.parametrize(
    "operation",
    [
        "x * w", "x * 2", "x / 2", "x / w", "x**2", "x.exp()", "x.tanh()", "x.relu()", "x @ w", "x.max()",
        "x.max(0).values", "x[torch.tensor([0])]", "x.clamp(0, 1)", "torch.where(x > 1, x, w)", "x.softmax(0)",
        "x.prod()", "x.var()",
    ],
)  # fmt: skip
def test_operations_that_save_a_tensor_cannot(t, operation):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    y = eval(operation, {"torch": t, "x": x, "w": w}).sum()
    y.backward(retain_graph=True)
    y.backward()
    with raises(FREED):
        y.backward()


def test_a_write_into_a_part_cannot(t):
    x = leaf(t, 1.0, 2.0)
    y = x + 0.0
    y[0] = 5.0
    y.sum().backward()
    with raises(FREED):
        y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


def test_a_part_that_was_freed_by_another_result(t):
    x = leaf(t, 1.0)
    y = x * x
    a, b = y + 1, y + 2
    a.backward()
    with raises(FREED):
        b.backward()


def test_grad_frees_too_and_create_graph_does_not(t):
    x = leaf(t, 1.0)
    y = x * x
    t.autograd.grad(y, x, create_graph=True)
    t.autograd.grad(y, x, retain_graph=True)
    t.autograd.grad(y, x)
    with raises(FREED):
        t.autograd.grad(y, x)


def test_only_what_was_visited_is_freed(t):
    x, w = leaf(t, 1.0), leaf(t, 2.0)
    y, z = x * x, w * w
    (gx,) = t.autograd.grad(y + z, x)
    z.backward()
    assert (gx.item(), w.grad.item()) == (2.0, 4.0)
    with raises(FREED):
        y.backward()


def test_what_is_above_a_freed_part_may_still_be_asked(t):
    x = leaf(t, 1.0)
    y = x * x
    y.backward()
    assert t.autograd.grad(y * 3, y)[0].tolist() == [3.0]


# ---- higher derivatives


def test_derivatives_of_higher_order(t):
    x = t.tensor(2.0, requires_grad=True)
    y, values = x**5, []
    for _ in range(5):
        (y,) = t.autograd.grad(y, x, create_graph=True)
        values.append(y.item())
    assert values == [80.0, 160.0, 240.0, 240.0, 120.0]


def test_backward_of_a_gradient(t):
    x = leaf(t, 3.0)
    (g,) = t.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (g * g).backward()  # d (3x^2)^2 / dx = 36 x^3
    assert x.grad.tolist() == [972.0]


def test_a_penalty_on_the_gradient(t):
    w, x = leaf(t, 0.5, -1.0), t.tensor([1.0, 2.0])
    loss = ((w * x).sum() - 1) ** 2
    (g,) = t.autograd.grad(loss, w, create_graph=True)
    (loss + (g * g).sum()).backward()  # d/dw of r^2 + 4 r^2 |x|^2, r = w.x - 1
    r = 0.5 - 2.0 - 1
    assert w.grad.tolist() == [2 * r * 1.0 * (1 + 4 * 5), 2 * r * 2.0 * (1 + 4 * 5)]


def test_gradients_without_create_graph_are_constants(t):
    x = leaf(t, 3.0)
    (g,) = t.autograd.grad(x * x, x)
    assert not g.requires_grad
    (g,) = t.autograd.grad(x * 2, x, create_graph=True)
    assert not g.requires_grad  # nothing in it depends on x


def test_the_gradient_of_a_gradient_with_respect_to_what_was_given(t):
    x, v = leaf(t, 3.0), leaf(t, 1.0)
    (g,) = t.autograd.grad(x * x, x, v, create_graph=True)
    (d,) = t.autograd.grad(g, v)
    assert d.tolist() == [6.0]


# ---- inputs


def test_backward_into_some_leaves(t):
    x, w, u = leaf(t, 1.0), leaf(t, 2.0), leaf(t, 3.0)
    (x * w).backward(inputs=[w, u])
    assert (x.grad, w.grad.tolist(), u.grad) == (None, [1.0], None)
    (x * w).backward(inputs=x)
    assert x.grad.tolist() == [2.0]


def test_backward_into_results(t):
    x = leaf(t, 1.0)
    y = x * 2
    z = y * y
    z.backward(inputs=[y, x])
    assert (y.grad.tolist(), x.grad.tolist(), y.retains_grad) == ([4.0], [8.0], True)
    y = x * 2
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        t.ones(1).backward(inputs=[y])
    assert not y.retains_grad


def test_backward_into_a_leaf_calls_its_hooks(t):
    x, calls = leaf(t, 1.0), []
    x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.item()))
    (x * 2).backward(inputs=[x])
    assert calls == [20.0]


# ---- autograd.grad


def test_grad_returns_a_tuple_and_fills_nothing(t):
    x, w = leaf(t, 1.0), leaf(t, 2.0)
    gx, gw = t.autograd.grad(x * w * w, [x, w])
    assert (gx.tolist(), gw.tolist(), x.grad, w.grad) == ([4.0], [4.0], None, None)
    assert isinstance(t.autograd.grad(x * 2, x), tuple)


def test_inputs_by_name(t):
    x, w = leaf(t, 1.0), leaf(t, 2.0)
    found = t.autograd.grad(x * w * w, {"x": x, "w": w})
    assert {name: g.tolist() for name, g in found.items()} == {"x": [4.0], "w": [4.0]}
    (x * w).backward(inputs={"w": w})
    assert (x.grad, w.grad.tolist()) == (None, [1.0])
    for call, name in ((t.autograd.grad, "grad"), (lambda y, i: t.autograd.backward(y, inputs=i), "backward")):
        with raises(
            f"`inputs` argument to `{name}()` must be a dict, not OrderedDict. Other Mapping types are not supported.",
            TypeError,
        ):
            call(x * w, OrderedDict(x=x))


def test_grad_with_respect_to_results(t):
    x = leaf(t, 1.0)
    y = x * 2
    z = y * y
    gz, gy, gx = t.autograd.grad(z, [z, y, x])
    assert (gz.tolist(), gy.tolist(), gx.tolist()) == ([1.0], [4.0], [8.0])


def test_grad_of_several_outputs(t):
    x = leaf(t, 1.0)
    y = x + x
    assert t.autograd.grad([y, y, x * 5], [x, x], [t.ones(1), t.tensor([10.0]), None])[1].tolist() == [27.0]
    assert [g.item() for g in t.autograd.grad([y, y], [y, x])] == [2.0, 4.0]
    assert t.autograd.grad((x * i for i in range(3)), x)[0].tolist() == [3.0]
    assert t.autograd.grad(x, x)[0].tolist() == [1.0]


def test_an_input_that_was_not_used(t):
    x, w = leaf(t, 1.0), leaf(t, 2.0, 3.0)
    with raises(
        "The differentiated Tensor at index 1 appears to not have been used in the graph. Set allow_unused=True if "
        "this is the desired behavior."
    ):
        t.autograd.grad(x * 2, [x, w])
    assert t.autograd.grad(x * 2, [x, w], allow_unused=True)[1] is None
    zeros = t.autograd.grad(x * 2, [x, w], materialize_grads=True)[1]
    assert zeros.tolist() == [0.0, 0.0] and not zeros.requires_grad
    assert t.autograd.grad(x * 2, [x, w], materialize_grads=True, create_graph=True)[1].requires_grad


@pytest.mark.parametrize(
    "grad, kind, message",
    [
        (
            lambda t: t.autograd.grad(leaf(t, 1.0) * 2, []),
            RuntimeError,
            "`inputs` argument to `grad()` cannot be empty.",
        ),
        (
            lambda t: t.autograd.grad(leaf(t, 1.0) * 2, t.ones(1)),
            RuntimeError,
            "One of the differentiated Tensors does not require grad",
        ),
        (
            lambda t: t.autograd.grad(t.ones(1), leaf(t, 1.0)),
            RuntimeError,
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (
            lambda t: t.autograd.grad(leaf(t, 1.0), "a"),
            RuntimeError,
            "all inputs have to be Tensors or GradientEdges, but got str",
        ),
        (
            lambda t: t.autograd.grad(leaf(t, 1.0), leaf(t, 1.0), materialize_grads=True, allow_unused=False),
            ValueError,
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.",
        ),
    ],
)
def test_what_grad_refuses(t, grad, kind, message):
    with raises(message, kind):
        grad(t)


def test_only_the_nodes_on_the_way_are_run(t):
    x, w, calls = leaf(t, 1.0), leaf(t, 2.0), []
    y = x * 2
    z = w * 3
    for name, v in (("x", x), ("w", w), ("y", y), ("z", z)):
        v.register_hook(lambda g, name=name: calls.append(name))
    t.autograd.grad(y * z, x)
    assert calls == ["y", "x"]


def test_grad_of_a_result_stops_there(t):
    x, calls = leaf(t, 1.0), []
    x.register_hook(lambda g: calls.append("x"))
    y = x * 2
    y.register_hook(lambda g: calls.append("y"))
    t.autograd.grad(y * 3, y)
    assert calls == ["y"]


def test_hooks_change_what_grad_returns(t):
    x = leaf(t, 2.0)
    x.register_hook(lambda g: g * 3)
    assert t.autograd.grad(x * x, x)[0].tolist() == [12.0]


def test_a_result_on_the_way_is_returned_as_it_was_before_its_hooks(t):
    x = leaf(t, 2.0)
    y = x * x
    y.register_hook(lambda g: g * 3)
    gy, gx = t.autograd.grad(y * 5, [y, x])
    assert (gy.tolist(), gx.tolist()) == ([5.0], [60.0])


def test_a_result_beside_those_asked_for_is_not_on_the_way(t):
    """Its hooks are not called, ``retain_grad`` among them, unless the pass begins there."""
    x, calls = leaf(t, 2.0), []
    y, z = x * 2, x * 3
    for name, v in (("x", x), ("y", y), ("z", z)):
        v.register_hook(lambda g, name=name: calls.append(name))
    y.retain_grad()
    with raises("The differentiated Tensor at index 0 appears to not have been used in the graph"):
        t.autograd.grad(y, z)
    assert calls == ["y"] and y.grad.tolist() == [1.0]
    y = x * 2
    assert t.autograd.grad([y, z], [z], allow_unused=True)[0].tolist() == [1.0]
    assert calls == ["y", "z"]


def test_what_leads_to_another_output_of_the_same_node_is_on_the_way(t):
    x, calls = leaf(t, 1.0, 2.0), []
    a, b = (x * 2).unbind(0)
    c = b * 5
    c.register_hook(lambda g: calls.append("c"))
    assert t.autograd.grad(a * c, a, retain_graph=True)[0].item() == 20.0
    assert calls == ["c"]
    a.register_hook(lambda g: g * 3)
    assert t.autograd.grad(a * c, a)[0].item() == 60.0


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_of_a_weight_can_be_viewed(t, create_graph):
    x, w = t.ones(2, 3), t.ones(4, 3, requires_grad=True)
    y = (t.nn.functional.linear(x, w) ** 2).sum()
    assert t.autograd.grad(y, w, create_graph=create_graph)[0].view(-1).tolist() == [12.0] * 12


# ---- grad modes


def test_nothing_is_recorded_under_no_grad(t):
    x = leaf(t, 1.0)
    with t.no_grad():
        y = x * 2
        assert not t.is_grad_enabled()
        with t.enable_grad():
            z = x * 2
    assert (y.requires_grad, y.is_leaf, z.requires_grad, t.is_grad_enabled()) == (False, True, True, True)


@pytest.mark.parametrize(
    ("change", "shape", "refused"),
    [
        (lambda y: y.t_(), (2, 3), "got [3, 2] but expected shape compatible with [2, 3]"),
        (lambda y: y.t_(), (1, 6), "got [6, 1] but expected shape compatible with [1, 6]"),
        (lambda y: y.squeeze_(), (1, 6), "got [6] but expected shape compatible with [1, 6]"),
        (lambda y: y.t_().unsqueeze_(0), (2, 3), "got [1, 3, 2] but expected shape compatible with [2, 3]"),
        (lambda y: y.unsqueeze_(0), (2, 3), ""),
        (lambda y: y.unsqueeze_(0).squeeze_(0), (2, 3), ""),
        (lambda y: y.t_().t_(), (2, 3), ""),
        (lambda y: y.t_(), (3, 3), ""),
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_arrives_fits_the_shape_that_was_recorded(t, change, shape, refused, create_graph):
    x = t.arange(float(math.prod(shape))).reshape(shape).requires_grad_()
    y = x * x
    with t.no_grad():
        change(y)
    loss = (y * t.arange(float(y.numel())).reshape(y.shape)).sum()
    if refused:
        with pytest.raises(
            RuntimeError, match="^Function MulBackward0 returned an invalid gradient at index 0"
        ) as error:
            t.autograd.grad(loss, x, create_graph=create_graph)
        assert refused in str(error.value)
    else:
        (grad,) = t.autograd.grad(loss, x, create_graph=create_graph)
        wanted = 2 * x.detach() * t.arange(float(y.numel())).reshape(shape)
        assert grad.shape == x.shape and t.equal(grad, wanted) and y.grad_fn.name() == "MulBackward0"


def test_leaves_may_be_made_under_no_grad(t):
    with t.no_grad():
        assert leaf(t, 1.0).requires_grad


def test_decorators(t):
    @t.no_grad()
    def with_parentheses():
        """its own"""
        return t.is_grad_enabled()

    @t.no_grad
    def without():
        return t.is_grad_enabled()

    @t.enable_grad()
    def enabled():
        return t.is_grad_enabled()

    assert (with_parentheses(), without(), enabled(), t.is_grad_enabled()) == (False, False, True, True)
    assert with_parentheses.__name__ == "with_parentheses" and with_parentheses.__doc__ == "its own"
    with t.no_grad():
        assert (enabled(), t.is_grad_enabled()) == (True, False)


def test_the_mode_returns_after_an_error(t):
    @t.no_grad()
    def fails():
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    with pytest.raises(KeyError), t.no_grad():
        raise KeyError
    assert t.is_grad_enabled()


def test_a_decorated_method(t):
    class Model:
        @t.no_grad()
        def predict(self, x):
            return x * 2

    assert not Model().predict(leaf(t, 1.0)).requires_grad


def test_set_grad_enabled_as_a_function(t):
    try:
        t.set_grad_enabled(False)
        assert not t.is_grad_enabled()
        t.set_grad_enabled(True)
        assert t.is_grad_enabled()
    finally:
        t.set_grad_enabled(True)


def test_set_grad_enabled_shows_its_mode(t):
    assert repr(t.set_grad_enabled(True)) == "torch.autograd.grad_mode.set_grad_enabled(mode=True)"


def test_set_grad_enabled_as_a_context_and_a_decorator(t):
    with t.set_grad_enabled(False):
        assert not t.is_grad_enabled()
    assert t.is_grad_enabled()

    @t.set_grad_enabled(False)
    def function():
        return t.is_grad_enabled()

    assert (t.is_grad_enabled(), function(), t.is_grad_enabled()) == (True, False, True)


def test_a_generator_runs_in_the_mode_and_its_user_does_not(t):
    seen = []

    @t.no_grad()
    def steps():
        try:
            got = yield t.is_grad_enabled()
            seen.append((got, t.is_grad_enabled()))
            try:
                yield "second"
            except ValueError as e:
                seen.append((str(e), t.is_grad_enabled()))
                yield "third"
        finally:
            seen.append(("closed", t.is_grad_enabled()))
        return "result"

    it = steps()
    assert (next(it), t.is_grad_enabled()) == (False, True)
    assert (it.send("sent"), t.is_grad_enabled()) == ("second", True)
    assert (it.throw(ValueError("thrown")), t.is_grad_enabled()) == ("third", True)
    it.close()
    assert seen == [("sent", False), ("thrown", False), ("closed", False)] and t.is_grad_enabled()

    @t.no_grad()
    def returns():
        yield 1
        return "result"

    it = returns()
    next(it)
    with pytest.raises(StopIteration) as stop:
        next(it)
    assert stop.value.value == "result"


def test_decorating_a_class_warns(t):
    with pytest.warns(FutureWarning, match="^Decorating classes is deprecated"):

        @t.no_grad()
        class Model:
            def __init__(self):
                self.enabled = t.is_grad_enabled()

    assert not Model().enabled


def test_modes_do_not_reach_other_threads(t):
    seen = []
    with t.no_grad():
        thread = threading.Thread(target=lambda: seen.append(t.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# ---- inference mode


def test_inference_tensors(t):
    x = leaf(t, 1.0)
    with t.inference_mode():
        assert t.is_inference_mode_enabled() and not t.is_grad_enabled()
        made, result, view = t.ones(1), x * 2, x.view(1)
        made.mul_(2)
    assert not t.is_inference_mode_enabled() and t.is_grad_enabled()
    assert [v.is_inference() for v in (x, made, result, view, made.view(1), made.detach(), made.clone())] == [
        False, True, True, False, True, True, False,
    ]  # fmt: skip
    assert not result.requires_grad


def test_inference_mode_as_a_decorator(t):
    @t.inference_mode()
    def with_parentheses():
        return t.is_inference_mode_enabled()

    @t.inference_mode
    def without():
        return t.is_inference_mode_enabled()

    @t.inference_mode(mode=False)
    def off():
        return t.is_inference_mode_enabled()

    assert (with_parentheses(), without(), off()) == (True, True, False)
    with pytest.raises(TypeError, match="context manager"), t.inference_mode(0):  # what is no bool is decorated
        pass


def test_modes_inside_of_inference_mode(t):
    x = leaf(t, 1.0)
    with t.inference_mode():
        with t.enable_grad():
            y = x * 2
            assert t.is_grad_enabled() and y.is_inference() and not y.requires_grad
        with t.inference_mode(False):
            z = x * 2
            assert t.is_grad_enabled() and z.requires_grad and not z.is_inference()
        assert not t.is_grad_enabled()


INFERENCE = "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in"


@pytest.mark.parametrize(
    "use", ["x * i", "i * x", "x / i", "x.pow(i)", "x @ i", "x * i[0]", "x * i.view(2)", "x * i.detach()"]
)
def test_inference_tensors_are_not_saved(t, use):
    x = leaf(t, 1.0, 2.0)
    with t.inference_mode():
        i = t.ones(2) * 3
    with raises(INFERENCE):
        eval(use, {"x": x, "i": i})


@pytest.mark.parametrize("use", ["x + i", "x - i", "i + x", "x * i.clone()", "torch.where(i > 0, x, i)"])
def test_they_are_used_where_nothing_is_saved(t, use):
    x = leaf(t, 1.0, 2.0)
    with t.inference_mode():
        i = t.ones(2) * 3
    y = eval(use, {"torch": t, "x": x, "i": i})
    assert y.requires_grad and not y.is_inference()
    with t.no_grad():
        assert (x * i).tolist() == [3.0, 6.0]
    assert (i * i).tolist() == [9.0, 9.0]


def test_a_scalar_inference_tensor_is_not_saved_in_either_form(t):
    x = t.tensor(2.0, requires_grad=True)
    with t.inference_mode():
        i = t.tensor(1.0) * 3
    with raises(INFERENCE):
        x * i
    i.view(1)
    with raises(INFERENCE):
        x * i


def test_normal_tensors_that_were_seen_in_inference_mode_stay_normal(t):
    x, w = leaf(t, 1.0), t.ones(1)
    with t.inference_mode():
        view, detached = w.view(1), w.detach()
    assert (x * w).requires_grad and (x * view).requires_grad and (x * detached).requires_grad


def test_threads_that_make_inference_tensors_at_once_leave_nothing_behind():
    import engine
    from engine.core.graph import Node
    from engine.core.observers import observers

    def work():
        with engine.inference_mode():
            for _ in range(300):
                engine.ones(2) + 1

    gc.collect()
    before = dict(observers.get(Node, {}))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    finally:
        sys.setswitchinterval(interval)
    assert observers.get(Node, {}) == before


def test_after_the_last_inference_tensor_nothing_is_looked_for():
    import engine
    from engine.core.graph import Node
    from engine.core.observers import observers

    gc.collect()
    with engine.inference_mode():
        i = engine.ones(2)
        j = i * 2
    assert len(observers[Node]) == 1
    del i, j
    engine.ones(2, requires_grad=True) * 2  # the next node ends it
    assert not observers[Node]


@pytest.mark.parametrize(
    "use, message",
    [
        (
            "i.add_(1)",
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a",
        ),
        (
            "i.view(2).add_(1)",
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to",
        ),
        ("i.requires_grad_()", "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."),
        ("i._version", "Inference tensors do not track version counter."),
        (
            "v.mul_(2)",
            "A view was created in inference mode and is being modified inplace in normal mode. Given that this use",
        ),
        ("F.apply(x, i)", INFERENCE),
    ],
)
def test_what_inference_tensors_may_not_do(t, use, message):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

    x = leaf(t, 1.0, 2.0)
    base = x * 1
    with t.inference_mode():
        i, v = t.ones(2), base.view(2)
    with raises(message):
        eval(use, {"x": x, "i": i, "v": v, "F": F})


# ---- detach, requires_grad


def test_detach_shares_memory_and_is_no_view(t):
    x = leaf(t, 1.0)
    d = x.detach()
    assert not d.requires_grad and d.is_leaf and not d._is_view()
    d.mul_(7)
    assert x.tolist() == [7.0] and x._version == d._version == 1


def test_writing_to_what_was_detached_is_noticed(t):
    y = leaf(t, 1.0) * 1
    z = y * y
    y.detach().mul_(2)
    with raises(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.Fl"
    ):
        z.backward()


def test_writing_to_data_is_not_noticed(t):
    y = leaf(t, 1.0) * 1
    z = y * y
    y.data.mul_(2)
    z.backward()
    assert y.tolist() == [2.0] and y._version == 0


def test_other_data_do_not_take_the_version_back(t):
    x, y, number, empty = t.zeros(2), t.zeros(3), t.tensor(1.0), t.zeros(0)
    view, alias, before = x[:1], x.detach(), y._version
    for a, b in ((x, y), (number, t.tensor(2.0) * 1), (empty, t.zeros(0)), (x, x.data), (x, x.data + 1)):
        version, theirs = a._version, b._version
        a.add_(1)
        a.data = b
        assert a._version == version + 1
        a.add_(1)
        assert a._version == version + 2 and b._version == theirs
    assert view._version == alias._version == x._version == 6 and y._version == before
    assert view.tolist() == [3.0] and x.dtype is t.float32

    w = t.ones(2, requires_grad=True)
    loss = (w * w).sum()
    with t.no_grad():
        w.add_(1)
    w.data = t.ones(2)
    with raises("one of the variables needed for gradient computation has been modified by an inplace operation"):
        loss.backward()


def test_data_given_again_and_again_leave_nothing_behind():
    engine = importlib.import_module("engine")
    x = engine.zeros(2)
    for _ in range(100):
        x.data = x.data + 1
    assert len(engine.core.versions.writes_to(x.array).owners) <= 2


def test_detach_in_place(t):
    y = leaf(t, 1.0) * 2
    assert y.detach_() is y and not y.requires_grad and y.is_leaf and y.grad_fn is None
    with raises("Can't detach views in-place. Use detach() instead."):
        (leaf(t, 1.0, 2.0) * 1)[0:1].detach_()


def kept(t):
    class Kept(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    return Kept.apply


USES = {  # of a result -> whether its node has saved it as an input
    "sin": (lambda t, a: a.sin(), True),
    "a * a": (lambda t, a: a * a, True),
    "a ** 3": (lambda t, a: a**3, True),
    "a * 2": (lambda t, a: a * 2, False),
    "a + 1": (lambda t, a: a + 1, False),
    "exp": (lambda t, a: a.exp(), False),
    "a constant * a": (lambda t, a: t.ones(()) * a, False),
    "a view": (lambda t, a: a.view(-1), False),
    "of a view": (lambda t, a: a.view(-1).sin(), False),
    "of detach()": (lambda t, a: a.detach() * leaf(t, 1.0), False),
    "a custom function": (lambda t, a: kept(t)(a), False),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("number", [False, True])
def test_what_was_saved_of_a_result_that_left_its_graph_is_not_used(t, use, number):
    f, saved = USES[use]
    a = t.tensor(2.0 if number else [2.0], requires_grad=True) * 1
    y = f(t, a)
    other = f(t, a * 1)
    a.detach_()
    other.sum().backward(retain_graph=True)
    if saved:
        with raises("Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."):
            y.sum().backward()
        a.requires_grad_()
        with raises("Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."):
            y.sum().backward()
    else:
        y.sum().backward()
    f(t, a).sum().backward() if a.requires_grad else f(t, a * leaf(t, 1.0)).sum().backward()


def test_a_leaf_and_a_result_freed_before_may_leave_their_graph(t):
    x = leaf(t, 2.0)
    y = x * x
    x.detach_()
    y.backward()
    h = t.zeros(1)
    w = leaf(t, 0.5)
    for _ in range(3):
        h = (h * w + 1).tanh()
        h.backward()
        h.detach_()
    assert w.grad is not None and x.grad is None


def test_a_constant_becomes_a_leaf(t):
    c = t.ones(1)
    assert c.requires_grad_() is c and c.requires_grad and c.is_leaf
    c.requires_grad = False
    assert not c.requires_grad
    c.requires_grad_(False)


@pytest.mark.parametrize(
    "use, kind, message",
    [
        ("i.requires_grad_()", RuntimeError, "only Tensors of floating point dtype can require gradients"),
        (
            "setattr(i, 'requires_grad', True)",
            RuntimeError,
            "only Tensors of floating point and complex dtype can require grad",
        ),
        (
            "torch.tensor([True], requires_grad=True)",
            RuntimeError,
            "Only Tensors of floating point and complex dtype can requi",
        ),
        (
            "y.requires_grad_(False)",
            RuntimeError,
            "you can only change requires_grad flags of leaf variables. If you want to use",
        ),
        (
            "setattr(y, 'requires_grad', False)",
            RuntimeError,
            "you can only change requires_grad flags of leaf variables. If you",
        ),
        (
            "setattr(y, 'requires_grad', True)",
            RuntimeError,
            "you can only change requires_grad flags of leaf variables.",
        ),
        (
            "x.requires_grad_('a')",
            TypeError,
            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not str",
        ),
        ("setattr(x, 'requires_grad', 3)", RuntimeError, "requires_grad must be a bool"),
        (
            "x.numpy()",
            RuntimeError,
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        ),
        (
            "copy.deepcopy(y)",
            RuntimeError,
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy",
        ),
    ],
)
def test_what_may_not_change(t, use, kind, message):
    x, i = leaf(t, 1.0), t.ones(1, dtype=t.int64)
    with raises(message, kind):
        eval(use, {"torch": t, "x": x, "i": i, "y": x * 2, "copy": copy, "setattr": setattr})


def test_asking_a_result_to_require_grad_changes_nothing(t):
    y = leaf(t, 1.0) * 2
    assert y.requires_grad_() is y and y.grad_fn is not None


def test_a_leaf_that_no_longer_requires_grad_keeps_its_graph(t):
    x = leaf(t, 1.0)
    y = x * 3
    x.requires_grad_(False)
    assert (x * 2).grad_fn is None
    y.backward()
    assert x.grad is None


# ---- hooks


def test_hooks_see_the_whole_gradient_once(t):
    x, seen = leaf(t, 1.0), []
    y = x * 2
    for name, v in (("x", x), ("y", y)):
        v.register_hook(lambda g, name=name: seen.append((name, g.item())))
    (y * 3 + y * 4 + x).backward()
    assert seen == [("y", 7.0), ("x", 15.0)]


def test_hooks_run_in_the_order_of_registration(t):
    y, seen = leaf(t, 1.0) * 2, []
    y.register_hook(lambda g: seen.append(g.item()))
    handle = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.item()))
    y.backward(retain_graph=True)
    handle.remove()
    handle.remove()
    y.backward(retain_graph=True)
    with y.register_hook(lambda g: g * 100):
        pass
    y.backward()
    assert seen == [1.0, 10.0, 1.0, 1.0, 1.0, 1.0]


def test_what_a_hook_returns_takes_the_place_of_the_gradient(t):
    x = leaf(t, 1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    y.backward()
    assert x.grad.tolist() == [21.0]


def test_what_a_hook_returns_does_not_become_the_memory_of_grad(t):
    x, mine, seen = leaf(t, 1.0), t.ones(1), []
    x.register_hook(lambda g: seen.append(g))
    x.register_hook(lambda g: mine)
    for _ in range(3):
        (x * 2).backward()
    assert mine.tolist() == [1.0] and [g.tolist() for g in seen] == [[2.0]] * 3 and x.grad.tolist() == [3.0]


@pytest.mark.parametrize("where", ["tensor", "prehook", "hook"])
def test_a_hook_may_write_a_gradient_of_a_single_number(t, where):
    """Which is no array here, but a number that takes the place of the other."""
    x = t.tensor(2.0, requires_grad=True)
    y = x * 3
    if where == "tensor":
        y.register_hook(lambda g: g.mul_(2) and None)
    elif where == "prehook":
        y.grad_fn.register_prehook(lambda grads: grads[0].mul_(2) and None)
    else:
        y.grad_fn.register_hook(lambda inputs, outputs: inputs[0].mul_(2) and None)
    y.backward()
    assert x.grad.item() == 6.0


def test_leaf_hooks_run_as_soon_as_the_gradient_is_complete(t):
    a, b, c, seen = leaf(t, 1.0), leaf(t, 1.0), leaf(t, 1.0), []
    y = a * b
    z = y + c
    w = z * b
    for name in "abcyzw":
        locals()[name].register_hook(lambda g, name=name: seen.append(name))
    w.backward()
    assert seen == ["w", "z", "c", "y", "a", "b"]


def test_hooks_after_an_in_place_write(t):
    y, seen = leaf(t, 1.0) * 2, []
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    (y * 7).backward()
    assert seen == [("after", 7.0), ("before", 35.0)]


def test_the_order_of_all_hooks(t):
    x, seen = leaf(t, 1.0), []

    def note(name, result=None):
        return lambda *args: seen.append(name)

    y = x * 3
    accumulate = y.grad_fn.next_functions[0][0]
    accumulate.register_prehook(note("prehook of the leaf's node"))
    accumulate.register_hook(note("hook of the leaf's node"))
    y.grad_fn.register_hook(note("hook of the node"))
    y.grad_fn.register_prehook(note("prehook of the node"))
    y.register_hook(note("hook of the tensor"))
    x.register_post_accumulate_grad_hook(note("after accumulation"))
    x.register_hook(note("hook of the leaf"))
    y.backward()
    assert seen == [
        "hook of the "
        "tensor", "prehook of the node", "hook of the node", "hook of the leaf", "prehook of the leaf's node",
        "after accumulation", "hook of the leaf's node",
    ]  # fmt: skip
    seen.clear()
    t.autograd.grad(x * 3, x)
    assert seen == ["hook of the leaf"]


def test_what_node_hooks_see(t):
    x, seen = leaf(t, 1.0), []
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: seen.append(grads))
    y.grad_fn.register_hook(lambda into, out: seen.append((into, out)))
    y.grad_fn.next_functions[0][0].register_hook(lambda into, out: seen.append((into, out)))
    y.backward()
    assert str(seen) == "[(tensor([1.]),), ((tensor([3.]), None), (tensor([1.]),)), ((), (tensor([3.]),))]"


def test_node_hooks_change_gradients(t):
    x = leaf(t, 1.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(lambda into, out: (into[0] * 7, None))
    y.grad_fn.next_functions[0][0].register_prehook(lambda grads: (grads[0] + 1,))
    y.backward()
    assert x.grad.tolist() == [211.0]


def test_hooks_of_a_node_with_several_outputs(t):
    x, seen = leaf(t, 1.0, 2.0), []
    a, b = x.unbind()
    a.register_hook(lambda g: g * 10)
    a.grad_fn.register_prehook(lambda grads: seen.append(grads))
    a.grad_fn.register_hook(lambda into, out: seen.append(into))
    a.backward()
    assert str(seen) == "[(tensor(10.), None), (tensor([10.,  0.]),)]" and x.grad.tolist() == [10.0, 0.0]


def test_hooks_in_a_recorded_backward_pass(t):
    x, seen = leaf(t, 2.0), []
    y = x * x
    y.register_hook(lambda g: (seen.append(t.is_grad_enabled()), g * 3)[1])
    (g,) = t.autograd.grad(y, x, create_graph=True)
    assert t.autograd.grad(g, x)[0].tolist() == [6.0]
    (x * x).register_hook(lambda g: seen.append(t.is_grad_enabled()))
    y.backward()
    assert seen == [True, False]


def test_post_accumulate_hooks(t):
    x, seen = leaf(t, 1.0), []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.item())))
    (x * 2).backward()
    (x * 3).backward()
    handle.remove()
    (x * 4).backward()
    assert seen == [(True, 2.0), (True, 5.0)]


@pytest.mark.parametrize("convert", ["x.long()", "x.bool()", "x.to(t.int32)", "x.type_as(i)"])
def test_what_becomes_integers_leaves_the_graph(t, convert):
    y = eval(convert, {"t": t, "x": leaf(t, 1.5), "i": t.tensor(0)})
    assert not y.requires_grad and y.grad_fn is None and not y.float().requires_grad


def test_a_post_accumulate_hook_that_returns_something_raises(t):
    x = leaf(t, 1.0)
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    with pytest.raises(RuntimeError, match="hooks should return None"):
        (x * 2).backward()


def test_a_step_of_the_optimizer_inside_of_backward(t):
    x = leaf(t, 1.0)

    def step(p):
        with t.no_grad():
            p.sub_(p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 0.25).backward()
    (x * x).backward()
    assert x.tolist() == [-0.75] and x.grad is None


def changed(t):
    """hooks that break the gradient, and what PyTorch says of them"""
    return {
        "size": (lambda g: t.ones(2), "hook '<lambda>' has changed the size of value"),
        "type": (
            lambda g: g.double(),
            "hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)",
        ),
        "int": (lambda g: 3, "expected Variable, but hook returned 'int'"),
        "tuple": (lambda g: (g,), "expected Variable, but hook returned 'tuple'"),
    }


@pytest.mark.parametrize("mistake", ["size", "type", "int", "tuple"])
@pytest.mark.parametrize("where", ["leaf", "result"])
def test_hooks_must_return_a_gradient_of_the_same_kind(t, mistake, where):
    hook, message = changed(t)[mistake]
    x = leaf(t, 1.0)
    y = x * 2
    (x if where == "leaf" else y).register_hook(hook)
    with raises(message, (RuntimeError, TypeError)):
        y.backward()
    assert x.grad is None and t.is_grad_enabled()


@pytest.mark.parametrize(
    "hook, message",
    [
        (lambda grads: grads[0], "expected tuple, but hook returned 'Tensor'"),
        (lambda grads: grads * 2, "hook '<lambda>' has returned an incorrect number of values (got 2, but expected 1)"),
        (lambda grads: (grads[0].view(1, 1),), "hook '<lambda>' has changed the size of value"),
    ],
)
def test_prehooks_must_return_as_many(t, hook, message):
    y = leaf(t, 1.0) * 2
    y.grad_fn.register_prehook(hook)
    with raises(message, (RuntimeError, TypeError)):
        y.backward()


@pytest.mark.parametrize(
    "hook, message",
    [
        (lambda into, out: into[0], "expected tuple, but hook returned 'Tensor'"),
        (
            lambda into, out: into[:1],
            "hook '<lambda>' has returned an incorrect number of values (got 1, but expected 2)",
        ),
        (lambda into, out: (into[0], into[0]), "can't replace a None gradient with a non-None value"),
    ],
)
def test_hooks_of_nodes_must_return_as_many(t, hook, message):
    y = leaf(t, 1.0) * 2
    y.grad_fn.register_hook(hook)
    with raises(message, (RuntimeError, TypeError)):
        y.backward()


@pytest.mark.parametrize(
    "use, message",
    [
        ("c.register_hook(print)", "cannot register a hook on a tensor that doesn't require gradient"),
        (
            "c.register_post_accumulate_grad_hook(print)",
            "cannot register a hook on a tensor that doesn't require gradient",
        ),
        (
            "y.register_post_accumulate_grad_hook(print)",
            "post accumulate grad hooks cannot be registered on non-leaf tensors",
        ),
    ],
)
def test_where_hooks_cannot_be(t, use, message):
    with raises(message):
        eval(use, {"c": t.ones(1), "y": leaf(t, 1.0) * 2})


def test_an_error_in_a_hook_comes_out_as_it_is(t):
    y = leaf(t, 1.0) * 2
    y.register_hook(lambda g: {}["missing"])
    with pytest.raises(KeyError, match="missing"):
        y.backward()
    assert t.is_grad_enabled()


# ---- looking at the graph


def test_walking_the_graph(t):
    x, w = leaf(t, 1.0), leaf(t, 2.0)
    y = (x * w + 1).exp()

    def chain(fn):
        return (type(fn).__name__, *(chain(f) for f, _ in fn.next_functions if f is not None))

    leaves = ("AccumulateGrad",), ("AccumulateGrad",)
    assert chain(y.grad_fn) == ("ExpBackward0", ("AddBackward0", ("MulBackward0", *leaves)))
    add = y.grad_fn.next_functions[0][0]
    assert add.next_functions[1] == (None, 0)
    mul = add.next_functions[0][0]
    assert mul.next_functions[0][0].variable is x and mul.next_functions[1][0].variable is w
    assert mul.next_functions[0][0] is (x * 5).grad_fn.next_functions[0][0]


def test_names_of_nodes(t):
    x = leaf(t, 1.0)
    y = x * 2
    node = y.grad_fn
    assert node.name() == "MulBackward0" and repr(node).startswith("<MulBackward0 object at 0x")
    assert node.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
    assert repr(node.next_functions[0][0]).startswith("<AccumulateGrad object at 0x")
    assert y.grad_fn is y.grad_fn and {node: 1}[y.grad_fn] == 1
    z = x * 1
    z[0:1].mul_(3)
    assert z.grad_fn.name() == "torch::autograd::CopySlices"


def test_every_grad_fn_is_a_node(t):
    Node = importlib.import_module(t.__name__ + ".autograd.graph").Node
    x = leaf(t, 1.0)
    fn = (x * 2).grad_fn
    assert isinstance(fn, Node) and isinstance(fn.next_functions[0][0], Node) and not isinstance(x, Node)


def test_metadata(t):
    y = leaf(t, 1.0) * 2
    y.grad_fn.metadata["where"] = "here"
    assert y.grad_fn.metadata == {"where": "here"}


def test_output_numbers(t):
    a, b = leaf(t, 1.0, 2.0).unbind()
    assert (a.output_nr, b.output_nr) == (0, 1) and a.grad_fn is b.grad_fn
    assert (b * 2).grad_fn.next_functions[0] == (a.grad_fn, 1)


@pytest.mark.parametrize(
    "operation, saved",
    [
        ("x * w", {"self": "x", "other": "w"}),
        ("x / w", {"self": "x", "other": "w"}),
        ("x * c", {"self": None, "other": "c"}),
        ("x * 2", {"self": None}),
        ("x**2", {"self": "x", "exponent": 2}),
        ("x**w", {"self": "x", "exponent": "w"}),
        ("x.log()", {"self": "x"}),
        ("x.exp()", {"result": "y"}),
        ("x.tanh()", {"result": "y"}),
        ("x.sigmoid()", {"result": "y"}),
        ("x.relu()", {"result": "y"}),
        ("x.softmax(0)", {"result": "y", "dim": 0}),
        ("x @ w", {"self": "x", "tensor": "w"}),
        ("torch.ones(3, 2) @ x", {"vec": None}),
        ("torch.addmm(w[:1], x[None], w[:, None])", {"mat1": [[1.0, 2.0]], "mat2": [[3.0], [4.0]]}),
        ("torch.nn.functional.linear(x[None], w[None], c[0])", {"mat1": [[1.0, 2.0]], "mat2": [[3.0], [4.0]]}),
        ("torch.addmv(w[0], x[None], w)", {"mat": [[1.0, 2.0]], "vec": "w"}),
        (
            "torch.addbmm(w[:1], x[None, None], w[None, :, None])",
            {"batch1": [[[1.0, 2.0]]], "batch2": [[[3.0], [4.0]]]},
        ),
        ("x.sum()", {"self_sym_sizes": (2,)}),
        ("x.sum(0, True)", {"self_sym_sizes": (2,), "dim": (0,), "keepdim": True}),
        ("x.reshape(2, 1)", {"self_sym_sizes": (2,)}),
        ("torch.nn.functional.mse_loss(x, w)", {"self": "x", "target": "w"}),
        ("torch.nn.functional.conv1d(x[None, None], w[None, None])", {"weight": [[[3.0, 4.0]]]}),
        ("torch.nn.functional.layer_norm(x, (2,), w)", {"weight": "w"}),
        ("torch.nn.functional.max_pool2d(x[None, None], (1, 2))", {"result1": [[[1]]]}),
        ("x.sort().values", {"indices": [0, 1]}),
        ("torch.addcmul(c, x, w)", {"tensor1": "x", "tensor2": "w"}),
        ("x.lerp(w, c)", {"end": None, "weight": "c"}),
        ("torch.linalg.inv(x[None, :1])", {"inverse": [[1.0]]}),
    ],
)
def test_saved_tensors_are_shown_under_their_names(t, operation, saved):
    x, w, c = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0), t.tensor([5.0, 6.0])
    y = eval(operation, {"torch": t, "x": x, "w": w, "c": c})
    for name, expected in saved.items():
        value = getattr(y.grad_fn, "_saved_" + name)
        if expected == "y":
            assert value.grad_fn is y.grad_fn and value.tolist() == y.tolist()
        elif isinstance(expected, list):
            assert value.tolist() == expected
        elif isinstance(expected, str):
            assert value.tolist() == {"x": x, "w": w, "c": c}[expected].tolist()
            assert value is x or expected != "x"
        else:
            assert value == expected
        assert "_saved_" + name in dir(y.grad_fn)
    with pytest.raises(AttributeError):
        getattr(y.grad_fn, "_saved_" + "nonsense")


def test_saved_tensors_are_gone_after_backward(t):
    x = leaf(t, 1.0)
    y = x * x
    y.backward()
    with raises(FREED):
        getattr(y.grad_fn, "_saved_" + "self")


@pytest.mark.parametrize("operation, name", [("x * w", "self"), ("x @ w", "tensor"), ("x.exp()", "result")])
def test_saved_tensors_that_were_overwritten_are_not_shown(t, operation, name):
    x, w = leaf(t, 1.0, 2.0) * 1, leaf(t, 3.0, 4.0) * 1
    y = eval(operation, {"x": x, "w": w})
    for v in (x, w, y):
        v.detach().zero_()
    with raises("one of the variables needed for gradient computation has been modified by an inplace operation"):
        getattr(y.grad_fn, "_saved_" + name)


def names_from(node):
    """The names of a node and of those before it."""
    return [node.name(), *(n for p, _ in node.next_functions if p is not None for n in names_from(p))]


SEVERAL = {
    "torch.tensor([1.0, 2.0]) @ w": ["SqueezeBackward4", "MmBackward0", "torch::autograd::AccumulateGrad"],
    "torch.nn.functional.linear(torch.ones(1, 2), w, b)": [
        "AddmmBackward0", "torch::autograd::AccumulateGrad", "TBackward0", "torch::autograd::AccumulateGrad",
    ],
}  # fmt: skip


@pytest.mark.parametrize("when", ["before backward", "after it", "never", "create_graph"])
@pytest.mark.parametrize("operation", SEVERAL)
def test_an_operation_of_several_nodes_has_them_whenever_one_looks(t, operation, when):
    w, b = t.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), leaf(t, 5.0, 6.0)
    y = eval(operation, {"torch": t, "w": w, "b": b})
    if when == "before backward":
        assert names_from(y.grad_fn) == SEVERAL[operation]
    y.backward(t.tensor([1.0, 10.0]).reshape(y.shape), create_graph=when == "create_graph")
    assert w.grad.tolist() == ([[1, 10], [2, 20]] if "@" in operation else [[1, 1], [10, 10]])
    assert b.grad is None or b.grad.tolist() == [1, 10]
    if when == "after it":
        assert names_from(y.grad_fn) == SEVERAL[operation]
        with raises(FREED):
            y.sum().backward()


@pytest.mark.parametrize("operation", SEVERAL)
def test_hooks_see_what_goes_through_each_of_several_nodes(t, operation):
    w, b = t.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), leaf(t, 5.0, 6.0)
    y = eval(operation, {"torch": t, "w": w, "b": b})
    seen = []
    y.register_hook(lambda g: seen.append(("result", g.tolist())))
    y.grad_fn.register_prehook(lambda grads: seen.append(("last", grads[0].tolist())))
    inner = next(p for p, _ in y.grad_fn.next_functions if p is not None and "Accumulate" not in p.name())
    inner.register_prehook(lambda grads: seen.append(("first", grads[0].tolist())))
    y.backward(t.tensor([1.0, 10.0]).reshape(y.shape))
    g = [1, 10] if "@" in operation else [[1, 10]]
    assert seen == [("result", g), ("last", g), ("first", [[1, 10]] if "@" in operation else [[1, 10], [1, 10]])]


@pytest.mark.parametrize("operation", ["x @ w", "torch.nn.functional.linear(x[None], w, b)"])
def test_what_stands_for_several_nodes_lets_its_arrays_go(operation):
    t = importlib.import_module("engine")
    x, w, b = t.ones(2), t.ones(2, 2, requires_grad=True), leaf(t, 5.0, 6.0)
    y = eval(operation, {"torch": t, "x": x, "w": w, "b": b})
    memory = weakref.ref(x.array)
    y.sum().backward()
    del x
    assert memory() is None and y.grad_fn is not None


def test_a_node_is_called(t):
    x, w = leaf(t, 2.0), leaf(t, 5.0)
    one = t.ones(1)
    assert [g.tolist() for g in (x * w).grad_fn(one)] == [[5.0], [2.0]]
    assert (x * 3).grad_fn(one)[1] is None
    assert (x**2).grad_fn(one).tolist() == [4.0]  # there is no edge for the number
    y = x.exp()
    assert y.grad_fn(one).requires_grad
    with t.no_grad():
        assert not y.grad_fn(one).requires_grad
    assert x.grad is None


@pytest.mark.parametrize("f, edges", [(lambda x: x**2, 1), (lambda x: 2**x, 1), (lambda x: x * 3, 2)])
def test_a_hook_of_a_node_sees_its_edges(t, f, edges):
    x, seen = leaf(t, 2.0), []
    y = f(x)
    y.grad_fn.register_hook(lambda grads, _: seen.append(len(grads)))
    y.grad_fn.register_hook(lambda grads, _: tuple(g if g is None else g * 0 for g in grads))
    y.backward(t.ones(1))
    assert seen == [edges] == [len(y.grad_fn.next_functions)]
    assert x.grad.tolist() == [0.0]


# ---- anomaly detection


def test_the_operation_that_gives_nan(t):
    with pytest.warns(UserWarning) as caught, raises("Function 'SqrtBackward0' returned nan values in its 0th output."):
        with t.autograd.detect_anomaly():
            x = leaf(t, -1.0)
            root = x.sqrt()
            (root * 0).backward()
    texts = [str(w.message) for w in caught if w.category is UserWarning]
    assert texts[0].startswith("Anomaly Detection has been enabled. This mode will increase the runtime")
    assert texts[1].startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n")
    assert "root = x.sqrt()" in texts[1]


def test_an_operation_that_was_recorded_before(t):
    y = leaf(t, -1.0).sqrt() * 0
    with (
        t.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="No forward pass information available. Enable"),
    ):
        with raises("Function 'SqrtBackward0' returned nan values in its 0th output."):
            y.backward()


def test_no_line_is_named_for_what_was_recorded_before(t):
    x, w = t.ones(2), t.ones(2, 2, requires_grad=True)
    y = x @ w
    w.register_hook(lambda g: None)
    with t.autograd.set_detect_anomaly(True):
        first = y.grad_fn.next_functions[0][0]
        first.register_prehook(lambda grads: 1 / 0)
        with pytest.warns(UserWarning, match="Error detected in MmBackward0. No forward pass information"):
            with pytest.raises(ZeroDivisionError):
                y.sum().backward()


def test_nan_may_be_let_pass(t):
    x = leaf(t, -1.0)
    with t.autograd.set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).backward()
    assert str(x.grad) == "tensor([nan])"


def test_anomaly_detection_ends_with_its_block(t):
    x = leaf(t, -1.0)
    with t.autograd.set_detect_anomaly(True):
        pass
    (x.sqrt() * 0).backward()
    t.autograd.set_detect_anomaly(True)
    try:
        with (
            pytest.warns(UserWarning, match="Error detected in"),
            raises("Function 'SqrtBackward0' returned nan values"),
        ):
            (x.sqrt() * 0).backward()
    finally:
        t.autograd.set_detect_anomaly(False)
    (x.sqrt() * 0).backward()


def test_an_overwritten_tensor_is_found(t):
    with (
        t.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="(?s)Error detected in MulBackward0.*z = y . y"),
    ):
        y = leaf(t, 1.0) + 1
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="Hint: the backtrace further above shows the operation that failed"):
            z.backward()


# ---- gradcheck


def wrong(t):
    """A function whose derivative is wrong by a factor of two."""

    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    return Wrong.apply


def double(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def test_gradcheck_of_right_gradients(t):
    x, y = double(t, 1.0, 2.0), double(t, 3.0, -1.0)
    assert t.autograd.gradcheck(lambda x, y, k: (x * y * k, (x + y).exp().sum()), (x, y, 3)) is True
    assert t.autograd.gradgradcheck(lambda x, y: x * x * y, (x, y)) is True
    assert t.autograd.gradcheck(lambda x: x.sum(), x)
    assert x.grad is None and x.tolist() == [1.0, 2.0]


def test_gradcheck_of_wrong_gradients(t):
    x = double(t, 1.0, 2.0)
    with pytest.raises(RuntimeError) as e:
        t.autograd.gradcheck(wrong(t), x)
    assert type(e.value).__name__ == "GradcheckError"
    assert str(e.value).startswith(
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "numerical:tensor([[2.0000, 0.0000],\n        [0.0000, 4.0000]], dtype=torch.float64)\n"
        "analytical:tensor([[1., 0.],\n        [0., 2.]], dtype=torch.float64)\n"
    )
    assert t.autograd.gradcheck(wrong(t), x, raise_exception=False) is False


def test_gradgradcheck_of_wrong_gradients(t):
    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x.detach()

    x = double(t, 1.0, 2.0)
    assert t.autograd.gradcheck(Wrong.apply, x)
    with raises("Jacobian mismatch for output 0 with respect to input 0,"):
        t.autograd.gradgradcheck(Wrong.apply, x)


def test_gradcheck_of_a_gradient_that_is_missing(t):
    with raises("Numerical gradient for function expected to be zero"):
        t.autograd.gradcheck(lambda x: x.detach() * 2, double(t, 1.0))


def test_what_gradcheck_needs(t):
    with raises("gradcheck expects at least one input tensor to require gradient, but none of them have", ValueError):
        t.autograd.gradcheck(lambda x: x, (t.ones(1),))
    with pytest.warns(
        UserWarning, match="^Input #0 requires gradient and is not a double precision floating point or complex"
    ):
        t.autograd.gradcheck(lambda x: x * x, leaf(t, 1.0), eps=1e-2, atol=1e-2)
    with raises("The 0th input has a dimension with stride 0."):
        t.autograd.gradcheck(lambda x: x * x, double(t, 1.0).expand(3))


# ---- threads


def test_threads_add_into_one_leaf_and_lose_nothing(t):
    x, start = t.ones(4, requires_grad=True), threading.Barrier(10)

    def work():
        start.wait()
        for _ in range(100):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [2000.0] * 4


def test_threads_have_graphs_and_grad_modes_of_their_own(t):
    start, results = threading.Barrier(10), {}

    def work(k):
        x = leaf(t, float(k))
        start.wait()
        for _ in range(50):
            with t.set_grad_enabled(k % 2 == 0):
                y = x * x
                for _ in range(10):
                    y = y * 1.0
                assert y.requires_grad == (k % 2 == 0)
            if k % 2 == 0:
                y.backward()
        results[k] = x.grad and x.grad.item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: 100.0 * k if k % 2 == 0 else None for k in range(10)} | {0: results[0]}


def test_no_warning_in_an_ordinary_program(t):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = leaf(t, 1.0, 2.0)
        y = (x * x).sum()
        y.backward()
        str((x.grad, y, y.grad_fn))


def test_a_leaf_with_hooks_has_its_gradient_when_a_later_node_fails(t):
    def fail(g):
        raise ValueError("no")

    x, w = leaf(t, 2.0), leaf(t, 3.0)
    handle = w.register_hook(lambda g: 2 * g)
    y = x.exp()
    y.register_hook(fail)
    with pytest.raises(ValueError, match="no"):
        (y * w).backward()
    assert w.grad.tolist() == [2 * y.item()] and x.grad is None
    handle.remove()
    (x * x).backward()
    assert x.grad.tolist() == [4.0] and w.grad.tolist() == [2 * y.item()]


WARNED = """
import warnings
import {library} as t

x, said = t.ones(3, requires_grad=True), []
passes = [
    lambda: t.autograd.grad((x * x).sum(), x, create_graph=True),
    lambda: (x * x).backward(t.ones(3)),
    lambda: (x * x).sum().backward(create_graph=True),
    lambda: t.autograd.backward((x * x).sum(), create_graph=True),
]
for go in passes:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        go()
    said.append([(w.category.__name__, str(w.message).split(" (Triggered")[0]) for w in seen])
print(said[:2], said[3], *said[2])
"""


@pytest.mark.parametrize("library", ["engine", pytest.param("torch", marks=pytest.mark.slow)])
def test_a_recorded_backward_warns_of_the_cycle_once(library):
    if library == "torch":
        pytest.importorskip("torch")
    command = [sys.executable, "-c", WARNED.format(library=library)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert out.startswith(
        "[[], []] [] ('UserWarning', 'Using backward() with create_graph=True will create a reference"
    )
    assert out.endswith("to break the cycle and avoid the leak.')\n")


VIEWS = {"view": lambda c: c.view(-1), "row": lambda c: c[0], "t": lambda c: c.t(), "detach": lambda c: c.detach()}


@pytest.mark.parametrize("name", ["engine", "torch"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("inside", [True, False])
def test_views_of_inference_tensors_are_in_no_graph(name, view, inside):
    t = pytest.importorskip(name)
    with t.inference_mode():
        c = t.ones(2, 3, requires_grad=True)
    with t.inference_mode(inside):
        v = VIEWS[view](c)
        assert t.is_inference(v) and v.is_leaf
        assert not v.requires_grad and not v._is_view()
