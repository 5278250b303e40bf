"""What programs get wrong with modules, gradients and the like: PyTorch's exception, and its first sentence."""

import numpy as np
import pytest
from against_torch import cases, compare_errors
from over_tables import over

import engine
from engine import nn

ERRORS = cases("""
torch.nn.LSTMCell(3, 4)(torch.randn(2, 5))
torch.nn.LSTMCell(3, 4)(torch.randn(2, 3), torch.zeros(2, 4))
torch.nn.LSTMCell(3, 4)(torch.randn(2, 3), (torch.zeros(2, 4), torch.zeros(3, 4)))
torch.nn.GRUCell(3, 4)(torch.randn(2, 3), torch.zeros(3, 4))
torch.nn.RNNCell(3, 4)(torch.randn(2, 3), torch.zeros(2, 5))
torch.nn.RNN(1, 2, foo=3)
torch.nn.GroupNorm(1, 4)(torch.randn(4, 3))
torch.nn.MultiheadAttention(4, 2)(q, q, q, key_padding_mask=torch.ones(2, 3).bool())
torch.nn.MultiheadAttention(4, 2)(q, q, q, key_padding_mask=torch.ones(3, 3).bool())
torch.nn.Sequential(len)
torch.nn.Sequential(helper)
torch.nn.Sequential(lambda x: x)
torch.nn.ModuleList([helper])
torch.nn.ReLU(1, 2)
torch.nn.Sigmoid(1)
torch.nn.Softmax(1, 2)
torch.nn.CrossEntropyLoss(1, 2, 3, 4, 5, 6, 7)
torch.nn.AvgPool2d()
torch.nn.Threshold(1)
torch.nn.functional.one_hot(torch.tensor([1]), 2.0)
torch.softmax(torch.ones(2), 0, dtype="a")
torch.tensordot(torch.ones(2, 3), torch.ones(4, 5), 1)
torch.tensordot(torch.ones(2, 3), torch.ones(4, 5), ([-1], [-1]))
torch.linalg.inv(torch.tensor([[1.0, 2], [2, 4]]))
torch.linalg.inv(torch.stack([torch.eye(2), torch.zeros(2, 2)]))
torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))
torch.linalg.solve(torch.stack([torch.eye(2), torch.zeros(2, 2)]), torch.ones(2, 2))
torch.allclose(torch.ones(2), torch.ones(3))
torch.equal(torch.ones(2), None)
torch.unique(torch.ones(2), dim=3)
torch.ones(2).to("float16")
torch.device("cuda0")
torch.device("my gpu")
torch.compile(3)
torch.set_grad_enabled(0)
torch.set_grad_enabled("a")
(w * 2).backward([1.0, 1.0, 1.0])
(w * 2).backward(np.ones(3))
torch.autograd.backward([w.sum()], [1.0])
torch.autograd.grad(w * 2, w, [1.0])
torch.autograd.backward([w.sum(), w.prod()], [torch.tensor(1.0)])
w.__delitem__(0)
""")


def helper(x):
    return x


@over("expression", ERRORS)
def test_error_as_pytorch(expression):
    pytest.importorskip("torch")
    compare_errors(expression, {"q": np.ones((2, 3, 4), np.float32), "w": np.ones(3, np.float32), "np": np,
                                "helper": helper})  # fmt: skip


def test_surplus_gradients_are_not_looked_at():
    w = engine.ones(3, requires_grad=True)
    (w * 2).backward((engine.ones(3), "no tensor"))
    assert w.grad.tolist() == [2.0, 2.0, 2.0]


def test_functional_call_passes_over_names_that_the_module_has_not():
    m, x = nn.Linear(1, 1), engine.ones(1)
    assert engine.func.functional_call(m, {"foo": engine.ones(1)}, (x,)).equal(m(x))


METHODS = cases("""
w.dot(2)
w.dot([1.0, 2.0, 3.0])
w.mv(0)
w.inner(2)
w.outer("a")
q.allclose(0)
q.isclose(1.0)
q.equal(3)
q.expand_as(2)
q.view_as((3, 2))
q.reshape_as(3)
q.masked_scatter(1, 2)
q.addcmul(1, 2)
q.addcdiv(q, 2)
q.maximum(2)
q.atan2(1)
q.logical_and("a")
(q * 1).logical_and_(1)
q.take_along_dim(1)
w.prelu(2)
""")


@over("expression", METHODS)
def test_a_method_counts_its_arguments_without_the_tensor(expression):
    pytest.importorskip("torch")
    compare_errors(expression, {"q": np.ones((2, 3, 4), np.float32), "w": np.ones(3, np.float32)})


@pytest.mark.parametrize("call", ["q.masked_fill(1, 0)", "q.lerp(1, 0)", "q.clip('a')", "q.reshape(q)", "q.permute(q)"])
def test_what_is_no_tensor_or_no_size_is_a_type_error(call):
    with pytest.raises(TypeError):
        eval(call, {"q": engine.ones(2, 3)})


WRITES = cases("""
h.eq_(0.6)
h.ne_(0.6)
h.lt_(1)
h.le_(torch.ones(2))
h.gt_(torch.ones(2))
h.ge_(0.5)
h[:1].gt_(0)
h.random_()
h.random_(5)
h.random_(1, 5)
h.uniform_()
h.normal_()
h.log1p_()
h.hypot_(torch.ones(2))
""")


@over("write", WRITES)
def test_what_is_overwritten_passes_on_pytorchs_gradient(write):
    torch = pytest.importorskip("torch")

    def outcome(library):
        library.manual_seed(0)
        w = library.tensor([0.3, 0.6], requires_grad=True)
        h = w * 2
        eval(write, {"torch": library, "h": h})
        h.sum().backward()
        return repr(h), repr(w.grad)

    assert outcome(engine) == outcome(torch)


@pytest.mark.parametrize("write", [lambda h: h.eq_(0.6), lambda h: h.random_()])
def test_a_comparison_or_a_draw_has_no_slope(write):
    w = engine.tensor([0.3, 0.6], requires_grad=True)
    h = w * 2
    write(h).sum().backward()
    assert w.grad.tolist() == [0.0, 0.0]


KEYWORDS = cases("""
torch.pow(w, exponent=2)
w.pow(exponent=torch.ones(3) * 2)
torch.pow(input=w, exponent=0.5)
torch.addmm(m, mat1=m, mat2=m)
m.addmm(mat1=m, mat2=m, beta=2)
torch.addmv(w, mat=m, vec=w)
torch.baddbmm(m[None], batch1=m[None], batch2=m[None])
torch.addbmm(m, batch1=m[None], batch2=m[None])
""")


@over("call", KEYWORDS)
def test_arguments_have_pytorchs_names(call):
    torch = pytest.importorskip("torch")
    data = {"w": [1.0, 2.0, 3.0], "m": [[1.0, 2.0, 3.0]] * 3}
    results = [eval(call, {"torch": t, **{k: t.tensor(v) for k, v in data.items()}}) for t in (engine, torch)]
    assert repr(results[0]) == repr(results[1])


def test_backward_and_grad_take_pytorchs_arguments_in_its_order():
    w = engine.ones(3, requires_grad=True)
    engine.autograd.backward([w * 2], grad_tensors=[engine.full((3,), 5.0)])
    assert w.grad.tolist() == [10.0] * 3
    engine.autograd.backward(w.sum(), None, True, False, None, [w])
    assert w.grad.tolist() == [11.0] * 3
    found, unused = engine.autograd.grad(
        w.sum(), [w, engine.ones(1, requires_grad=True)], None, None, False, True, True
    )
    assert found.tolist() == [1.0] * 3 and unused is None
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        engine.autograd.grad(w.sum(), engine.ones(1, requires_grad=True), None, None, False, True)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        engine.autograd.grad(w.sum(), w, only_inputs=False)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        engine.autograd.backward(w * 2, grad_variables=engine.ones(3))


def test_an_argument_that_a_table_named_anew_has_no_other_name():
    with pytest.raises(TypeError, match="other"):
        engine.pow(engine.ones(2), other=2)


def test_float_power_writes_into_float64_alone():
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float but"):
        engine.ones(2).float_power_(2)
    assert engine.full((2,), 3.0, dtype=float).float_power_(2).tolist() == [9.0, 9.0]


def test_xlogy_of_the_number_zero():
    assert engine.xlogy(engine.tensor([0.0, 1.0]), 0).tolist() == [0.0, -float("inf")]
