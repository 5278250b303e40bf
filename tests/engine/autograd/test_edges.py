"""What ``autograd.graph`` has besides hooks: gradient edges, hooks of several tensors, allowed writes; Variable.

Each line of a table is run by both libraries, in the same surroundings.
"""

import threading

import pytest
from against_torch import cases, outcome

import engine
from engine.autograd import graph

EDGES = """
E(y).output_nr, E(b)[1:], E(v)[1], E(y) == E(y), E(x) == E(x), len(E(y)), type(E(y)).__name__, isinstance(E(y), tuple)
E(y).node is y.grad_fn, E(x).node is y.grad_fn.next_functions[0][0], E(v).node is v.grad_fn, E(x).ownership_token
E(t.ones(2))
grad(E(y), x)
grad(E(y), x, t.ones(3))
grad(E(y), x, t.ones(2))
grad(E(y), x, t.ones(2).double())
grad([E(s)], [E(x)])
grad(s, [GE(y.grad_fn, 0), E(x)])
grad(s, [GE(None, 0)])
grad(s, [GE(3, 0)])
grad(s, 3), grad(s, [3])
grad(s, [E(z)])
grad(s, E(z), allow_unused=True)
grad(s, [E(y), z], materialize_grads=True)
grad(s, E(z), materialize_grads=True)
backward(s, inputs=E(x)), x.grad
backward(s, inputs=[E(y)]), x.grad, y.retains_grad
backward(s, inputs=[E(y), y]), x.grad, y.grad
s.backward(inputs=[E(x)]), x.grad
backward(E(s)), x.grad
backward(E(s), t.tensor(2.0)), x.grad
backward([E(s), s], [None, t.tensor(2.0)]), x.grad
backward([E(x)], [t.ones(2)]), x.grad
backward(E(y), inputs=x, grad_tensors=t.ones(3))
grad(E(s), x, create_graph=True)
grad(a + 2 * b, E(b))
grad(E(b), x)
grad(a + 2 * b, (E(a), E(b), x))
grad(a, [E(b)], allow_unused=True)
grad(a, [E(b)])
grad(u.sum() + 4 * v.sum(), [E(u), E(v), E(x)])
grad([E(u), E(v)], x, [t.ones(2), t.ones(2)])
grad(u.sum() + v.sum(), [GE(u.grad_fn, 0), GE(u.grad_fn, 1)])
grad(GE(y.grad_fn, 0), x, t.ones(2))
grad(GE(x.unbind()[0].grad_fn, 1), x, t.tensor(1.0))
grad((m * m).sum(), E(m)), grad(m.exp().sum(), [GE(m.grad_fn, 0), x])
grad(E(m), E(x), t.ones(1, 3))
grad(E(y), x, t.eye(2), is_grads_batched=True)
grad(s, E(y), t.ones(3), is_grads_batched=True)
grad((y * y).sum(), E(y), create_graph=True)
grad(x.sum(), [x, E(x)])
grad(E(y), E(y), t.ones(2))
"""

VARIABLE_AND_VERSIONS = """
V(y), V(x) is x, V(x).requires_grad, V(x).is_leaf
V(t.ones(2), requires_grad=True), V(t.ones(2), True), V(), V(data=t.ones(1)), V(t.nn.Parameter(t.ones(1)))
V(t.ones(2), volatile=True)
V([1.0])
V(t.tensor([1, 2]), requires_grad=True)
isinstance(x, V), isinstance(3, V), issubclass(t.Tensor, V), repr(V), t.autograd.variable.Variable is V
(lambda w: (V(w).add_(1), w, w._version))(t.ones(2))
version(x), version([x, z]), version(()), x._version, z._version
version(3)
version([3])
(lambda q: (version(x.detach()), q.backward()))((x * x).sum())
(lambda q: (version(y[:1]), q.backward()))((y * y).sum())
"""

SEVERAL = """
H(x, y), s.backward()
H(x, y, z), s.backward()
H(x, w, y), q.sum().backward()
H(x, w, y), q.sum().backward(inputs=[x])
H(x, w, y), q.sum().backward(inputs=[w])
H(x, w, y), q.sum().backward(inputs=[y])
H(y, q), grad(q.sum(), y)
H(y, q), grad(q.sum(), x)
H(a, b, x), (a * 2).backward()
H(x, x), s.backward()
H(), s.backward()
H(x, t.ones(2)), s.backward()
H(x, y).remove(), s.backward()
H(x, y), s.backward(retain_graph=True), s.backward()
H(x, w), q.sum().backward(create_graph=True)
H(x, y), H(y), s.backward()
H(x, y), y.register_hook(lambda g: g * 5), s.backward(), x.grad
y.register_hook(lambda g: (2 * w).sum().backward()), H(x, w, y), q.sum().backward()
H(x, w, y), y.register_hook(lambda g: (2 * w).sum().backward()), q.sum().backward()
H(y, z), y.mul_(3), (y * z).sum().backward()
"""

WRITES = """
o = (y ** 2).sum(); y.sin_()
v = y.view_as(y); o = (y ** 2).sum(); v.sin_()
v = y[:1]; o = y ** 2; v *= 10
v = y[:]; o = v ** 2; y *= 2
e = x.exp(); o = e * 3; e.mul_(2); o = o + e
o = (y.exp() + y) * y.exp_(); y.mul_(5); o = o + y
o = x * w; w.zero_(); w[0] = 9.0; w.fill_(3)
o = x * w; w.data.mul_(10)
o = x * w; t.sin(z.detach(), out=w)
n = y.sum(); o = n * n; n.mul_(5)
k = t.tensor(2.0); o = x * k; k.add_(1); o = o + x * k; k.zero_()
o = y.sigmoid(); p = o * y; o.add_(1); y.sub_(1); o = p
o = x.clone(); i = t.tensor([0, 0]); o = o[i]; i.fill_(1)
u, v = F.apply(y); o = u * v; y.zero_(); u.mul_(7); o = o + u
"""


def surroundings(t, log=None):
    """What the lines of the tables are about."""

    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return (g * 2 + h * 3) * (ctx.saved_tensors[0] - ctx.saved_tensors[0] + 1)

    def H(*tensors, mode=None):
        shown = lambda g: g if g is None else g.tolist()  # noqa: E731
        see = lambda g: log.append([*map(shown, g)] if isinstance(g, list) else shown(g))  # noqa: E731
        handle = t.autograd.graph.register_multi_grad_hook(tensors, see, mode=log[0])
        return handle

    x = t.tensor([1.0, 2.0], requires_grad=True)
    y, z, w = x * 2, t.ones(2, requires_grad=True) * 3, t.tensor([1.0, 2.0])
    a, b = x.unbind()
    u, v = F.apply(x)
    weights = t.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    m = t.nn.functional.linear(x[None], weights, t.ones(3, requires_grad=True))
    if log is not None:
        w.requires_grad_()
    of = t.autograd.graph
    names = {
        "E": of.get_gradient_edge,
        "GE": of.GradientEdge,
        "version": of.increment_version,
        "V": t.autograd.Variable,
    }
    names |= {"grad": t.autograd.grad, "backward": t.autograd.backward, "s": y.sum(), "q": y * w}
    return names | {k: v for k, v in locals().items() if k not in ("names", "log", "of")}


def same(program):
    pytest.importorskip("torch")
    mine, theirs = (outcome(name, program) for name in ("engine", "torch"))
    assert mine == theirs


@pytest.mark.parametrize("line", cases(EDGES + VARIABLE_AND_VERSIONS))
def test_edges_variables_and_versions_are_pytorchs(line):
    same(lambda t: eval(line, surroundings(t)))


@pytest.mark.parametrize("line", cases(SEVERAL))
@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_of_several_tensors_are_pytorchs(line, mode):
    def program(t):
        log = [mode]
        last = eval(line, surroundings(t, log))[-1]
        return log, last

    same(program)


@pytest.mark.parametrize("line", cases(WRITES))
def test_what_was_saved_may_be_overwritten(line):
    def program(t):
        with t.autograd.graph.allow_mutation_on_saved_tensors() as context:
            names = surroundings(t)
            exec(line, names)
            names["o"].sum().backward()
            return names["x"].grad, len(list(context.cloned.items()))

    same(program)


def test_what_is_copied_and_for_how_long(t):
    n = []
    with t.autograd.graph.allow_mutation_on_saved_tensors() as context:
        y = t.ones(2, requires_grad=True).clone()
        o, p = y**2, y**2
        y.sin_()
        n.append(len(list(context.cloned.items())))  # the same tensor is copied once
        q = y**2
        y.sin_()
        n.append(len(list(context.cloned.items())))
        del o, p
        n.append(len(list(context.cloned.items())))
        context.clear()
        with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors'"):
            q.sum().backward()
        q = (y**2).sum()
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors'"):
        q.backward()
    assert n == [1, 2, 1]
    assert engine.core.graph.mode.copies is None


@pytest.fixture(params=["engine", "torch"])
def t(request):
    return pytest.importorskip(request.param)


def test_blocks_are_not_nested(t):
    allow = t.autograd.graph.allow_mutation_on_saved_tensors
    with pytest.raises(RuntimeError, match="contexts cannot be nested"), allow(), allow():
        pass


def test_a_write_that_is_not_seen_is_an_error():
    w = engine.nn.Parameter(engine.ones(2))
    step = engine.optim.SGD([w], 0.1).step
    with graph.allow_mutation_on_saved_tensors():
        o = (w * w).sum()
        w.grad = engine.ones(2)
        step()
        with pytest.raises(NotImplementedError, match="backward"):
            o.backward()


def test_an_edge_without_a_shape_needs_a_gradient():
    x = engine.tensor(2.0, requires_grad=True)
    y = x * 3
    with pytest.raises(NotImplementedError, match="get_gradient_edge"):
        engine.autograd.backward(graph.GradientEdge(y.grad_fn, 0))


def test_passes_in_several_threads_and_after_an_error_do_not_mix(t):
    seen, made = [], []

    class Fail(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            made.append(1)
            if len(made) == 1:
                raise KeyError("once")
            return g

    x, y = (t.ones(2, requires_grad=True) for _ in range(2))
    t.autograd.graph.register_multi_grad_hook((x, y), seen.append)
    for _ in range(3):
        o = (Fail.apply(x) * y).sum()
        try:
            o.backward()
        except KeyError:
            pass
    threads = [threading.Thread(target=(x * y).sum().backward) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 5 and all(g is not None for grads in seen for g in grads)
