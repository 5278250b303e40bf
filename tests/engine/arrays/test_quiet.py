"""What NumPy says of inf and nan: nothing of what the engine computes, and of what a program computes what it did."""

import contextlib
import io
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.arrays.quiet import states
from engine.utils.checkpoint import checkpoint

ROOT = Path(__file__).parents[3]
LINES = """
torch.tensor([0.0]).log()
torch.tensor([1e3]).exp()
torch.tensor([7e4]).half()
torch.tensor([7e4, 1.0]).to(torch.float16)
torch.tensor([1e300], dtype=torch.float64).float()
torch.tensor([float("nan")]).long()
torch.tensor([1e30]).bfloat16() * 1e30
torch.tensor([1e300])
torch.tensor(np.array([1e300]), dtype=torch.float32)
torch.tensor([7e4], dtype=torch.float16)
torch.as_tensor(np.array([7e4]), dtype=torch.float16)
torch.full((2,), 1e30) * 1e30
torch.full((2,), 3e38) + 3e38
torch.ones(2) / 0
torch.zeros(2) / torch.zeros(2)
0 / torch.zeros(2)
1 / torch.zeros(())
torch.zeros(()) / torch.zeros(())
torch.tensor([-1.0]).sqrt()
torch.tensor([-1.0]).log1p()
torch.zeros(2).rsqrt()
torch.zeros(2).reciprocal()
torch.zeros(2) ** -1
0 ** torch.tensor([-1.0])
torch.tensor([2.0]).asin()
torch.tensor([1.0]).atanh()
torch.tensor([inf]).sin()
torch.tensor([inf]) - inf
torch.tensor([inf]) % 2
torch.tensor([5.0]) % 0
torch.tensor([5.0]) // 0
torch.fmod(torch.tensor([5.0]), 0)
torch.div(torch.ones(1), 0, rounding_mode="trunc")
torch.tensor([nan, 1.0]) < 1
again(torch.tensor([nan, 1.0])) < 1
again(torch.full((99,), nan, dtype=torch.float64)) <= again(torch.ones(99, dtype=torch.float64))
again(torch.tensor([nan] * 9, dtype=torch.float16)) > 1
again(torch.tensor([nan, inf], dtype=torch.bfloat16)) >= 1
again(torch.tensor([nan, inf])) == again(torch.tensor([1e300, nan], dtype=torch.float64))
again(torch.tensor(nan)) < 1
again(torch.tensor([nan])).logical_and(again(torch.tensor([inf])))
torch.maximum(torch.tensor([nan]), torch.ones(1))
torch.tensor([nan]).clamp(0, 1)
torch.tensor([nan]).isclose(torch.tensor([nan]))
torch.allclose(torch.tensor([inf]), torch.tensor([inf]))
torch.tensor([nan, inf]).nan_to_num()
torch.tensor([nan]).sign()
torch.tensor([1e5, 1.0]).sinh()
torch.full((2,), 3e38).sum()
torch.full((2,), 6e4, dtype=torch.float16).sum()
torch.full((2, 2), 3e38).sum(0)
torch.full((2,), 3e38).prod()
torch.full((2,), 3e38).cumsum(0)
torch.full((3,), 3e38).cumprod(0)
torch.full((2,), inf).mean()
torch.tensor([inf, 1.0]).var()
torch.full((2,), 3e38).norm()
torch.tensor([inf, 1.0]).softmax(0)
torch.tensor([-inf, -inf]).log_softmax(0)
torch.tensor([-inf, -inf]).logsumexp(0)
torch.full((2, 2), 3e38) @ torch.full((2, 2), 3e38)
torch.full((2, 2), inf) @ torch.zeros(2, 2)
torch.full((2,), 3e38).dot(torch.full((2,), 3e38))
torch.einsum("ij,jk->ik", torch.full((2, 2), 3e38), torch.full((2, 2), 3e38))
torch.zeros(2, 2).det().log()
torch.ones(2).div_(0)
torch.zeros(2, dtype=torch.float16).copy_(torch.full((2,), 7e4))
torch.full((2,), 6e4, dtype=torch.float16).mul_(2)
torch.ones(2).fill_(0).reciprocal_()
torch.linspace(0, 1, 3).log()
torch.xlogy(torch.ones(1), 0)
torch.lgamma(torch.tensor([-1.0]))
torch.digamma(torch.tensor([0.0]))
torch.erfinv(torch.tensor([1.0]))
torch.logaddexp(torch.tensor([inf]), torch.tensor([inf]))
torch.where(torch.tensor([True]), torch.tensor([0.0]), 1.0).log()
F.relu(torch.tensor([nan]))
F.gelu(torch.tensor([-inf, 1e30]))
F.silu(torch.tensor([-1e30]))
F.softplus(torch.tensor([1e30]))
F.elu(torch.tensor([1e30, -1e30]))
F.sigmoid(torch.tensor([-1e30]))
F.tanhshrink(torch.tensor([inf]))
F.softsign(torch.tensor([inf]))
F.normalize(torch.tensor([[inf, 1.0]]))
F.layer_norm(torch.tensor([[inf, 1.0]]), (2,))
F.cross_entropy(torch.tensor([[inf, 1.0]]), torch.tensor([0]))
F.nll_loss(torch.zeros(1, 2), torch.tensor([-100]))
F.binary_cross_entropy(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0]))
F.binary_cross_entropy_with_logits(torch.tensor([1e30]), torch.tensor([0.0]))
F.mse_loss(torch.tensor([1e30]), torch.zeros(1))
F.kl_div(torch.tensor([-inf]), torch.zeros(1), reduction="sum")
F.scaled_dot_product_attention(*[torch.full((1, 2, 2), 1e30)] * 3)
F.conv1d(torch.full((1, 1, 3), 3e38), torch.full((1, 1, 2), 3e38))
F.avg_pool1d(torch.full((1, 1, 2), 3e38), 2)
F.batch_norm(torch.tensor([[inf], [1.0]]), None, None, training=True)
F.linear(torch.full((1, 2), 3e38), torch.full((1, 2), 3e38), torch.ones(1))
grad(torch.zeros(2).requires_grad_(), lambda x: x.sqrt())
grad(torch.zeros(2).requires_grad_(), lambda x: x.log())
grad(torch.full((2,), 1e3).requires_grad_(), lambda x: x.exp())
grad(torch.zeros(2).requires_grad_(), lambda x: 0 ** (x - 1))
grad(torch.zeros(2).requires_grad_(), lambda x: x.norm() / x.norm())
torch.autograd.grad(again((x := torch.zeros(2).requires_grad_()).sqrt().sum()), x)
torch.autograd.backward(again((x := torch.zeros(2).requires_grad_()).sqrt().sum()))
torch.autograd.grad(again((x := torch.zeros(2).requires_grad_()).sqrt().sum()), x, create_graph=True)
step("SGD", lr=1e38)
step("SGD", lr=1e38, momentum=0.9)
step("Adam", lr=1e38)
step("AdamW", lr=1e38, amsgrad=True)
step("RMSprop", lr=1e38)
step("Adagrad", lr=1e38)
torch.compile(lambda x: (x.exp() * 1e30).log() / 0)(torch.full((4,), 1e3))
torch.vmap(torch.log)(torch.zeros(2))
torch.func.grad(torch.log)(torch.zeros(()))
torch.func.jvp(torch.log, (torch.zeros(2),), (torch.ones(2),))
torch.nn.utils.clip_grad_norm_(again([with_grad(torch.full((2,), 3e38))]), 1.0)
torch.func.vjp(torch.log, torch.zeros(2))[1](again(torch.ones(2)))
torch.func.linearize(torch.log, torch.zeros(2))[1](again(torch.ones(2)))
torch.no_grad()(torch.zeros(2, requires_grad=True).log().grad_fn)(again(torch.ones(2)))
repr(torch.tensor([nan, inf, 1e38]))
torch.tensor([nan, inf]).tolist()
float(torch.tensor(inf))
torch.nn.init.xavier_normal_(torch.zeros(2, 2), gain=1e38).mul_(1e38)
torch.bernoulli(torch.tensor([0.0])).log()
torch.tensor([inf, 1.0]).median()
torch.tensor([nan, 1.0]).sort()
torch.tensor([nan, 1.0]).amax()
torch.tensor([nan, 1.0]).argmax()
torch.logspace(0, 50, 3)
torch.arange(0, 1e5, 5e4, dtype=torch.float16)
torch.zeros(2).normal_(0, 1e38).normal_(0, 1e39)
torch.zeros(9, dtype=torch.float16).uniform_(0, 6e4).mul(2)
torch.normal(0.0, 1e39, (9,))
torch.rand(9, dtype=torch.float16).div(0)
again(torch.nn.LSTM(2, 2))(torch.full((1, 1, 2), inf))
again(torch.nn.GRU(2, 2))(torch.full((1, 1, 2), inf))
again(torch.nn.RNN(2, 2))(torch.full((1, 1, 2), inf))
again(torch.nn.MultiheadAttention(2, 1))(*[torch.full((1, 1, 2), inf)] * 3)
again(torch.nn.TransformerEncoderLayer(2, 1, 2, batch_first=True))(torch.full((1, 1, 2), inf))
again(torch.nn.Linear(2, 2))(torch.full((1, 2), inf))
again(torch.nn.BatchNorm1d(2))(torch.full((2, 2), inf))
again(torch.nn.LayerNorm(2))(torch.full((2, 2), inf))
again(torch.nn.Conv2d(1, 1, 2))(torch.full((1, 1, 2, 2), inf))
again(torch.nn.CrossEntropyLoss())(torch.full((1, 2), inf), torch.tensor([0]))
again(torch.nn.CosineSimilarity())(torch.full((1, 2), inf), torch.zeros(1, 2))
again(torch.nn.Dropout(0.5))(torch.full((9,), 3e38))
again(torch.nn.Softmax(0))(torch.full((9,), inf))
again(torch.nn.GELU())(torch.full((9,), inf))
again(torch.tensor([1.0, 2.0], dtype=torch.float16)).__setitem__(0, torch.tensor(7e4))
again(torch.full((2,), 7e4)).half()
again(torch.nn.Linear(2, 2).double()).float()
again(torch.tensor([1e300], dtype=torch.float64)).type(torch.float32)
again(torch.full((2,), 3e38)).__iadd__(3e38)
again(torch.full((2,), 3e38)).sum()
again(torch.full((2,), inf)).mean()
again(torch.full((2, 2), inf)).__matmul__(torch.zeros(2, 2))
again(torch.zeros(2)).__rtruediv__(1.0)
again(torch.zeros(2)).__rpow__(0)
again(torch.full((2,), inf)).var(0)
again(torch.full((2,), inf)).diff()
again(torch.full((2, 2), inf)).trace()
again(torch.full((2, 2), inf)).det()
again(torch.full((2,), 3e38)).cumsum(0)
again(torch.full((1 << 19,), 0.0)).log()
F.softmax(again(torch.full((1 << 10, 1 << 10), inf)), 1)
F.gelu(again(torch.full((1 << 20,), inf)))
torch.func.grad(lambda x: again(x.sqrt().sum()))(torch.zeros(2))
torch.func.jacrev(lambda x: again(x.sqrt()))(torch.zeros(2))
torch.func.hessian(lambda x: again(x.sqrt().sum()))(torch.zeros(2))
torch.vmap(torch.func.grad(lambda x: again(x.sqrt())))(torch.zeros(2))
back(lambda y, z: z.register_hook(lambda g: again()))
back(lambda y, z: z.grad_fn.register_prehook(lambda g: again()))
back(lambda y, z: z.grad_fn.register_hook(lambda g, h: again()))
back(lambda y, z: torch.autograd.graph.register_multi_grad_hook([z], lambda g: again()))
unpacking(lambda: grad(torch.zeros(2).requires_grad_(), lambda x: x.sqrt().log()))
own(torch.zeros(2).requires_grad_().sqrt()).sum().backward()
torch.func.jvp(lambda x: own(x).log(), (torch.zeros(2),), (torch.ones(2),))
checkpoint(lambda x: again(x.sqrt() * 1), leaf, use_reentrant=True).sum().backward()
checkpoint(lambda x: again(x.sqrt() * 1), leaf, use_reentrant=False, early_stop=False).sum().backward()
step("Adam", lambda: again(), lr=1e38)
step("SGD", lambda: again(), lr=1e38)
torch.tensor(own, dtype=torch.float32)
torch.as_tensor(own, dtype=torch.float16)
"""


def with_grad(x):
    x.requires_grad_().grad = x.detach().clone()
    return x


def names(again):
    """What the lines call; ``again(x)`` is x: from here on the state is one that the engine has not met."""

    def grad(x, f):
        y = f(x).sum()
        again()
        y.backward()

    def step(name, closure=None, **options):
        p = engine.nn.Parameter(engine.full((3,), 3e38))
        p.grad = engine.tensor([3e38, float("inf"), float("nan")])
        optimizer = getattr(engine.optim, name)([p], **options)
        again()
        optimizer.step(closure)

    def back(attach):
        y = engine.zeros(2, requires_grad=True).sqrt()
        z = y * 1
        attach(y, z)
        z.sum().backward()

    def unpacking(run):
        with engine.autograd.graph.saved_tensors_hooks(lambda x: x, again):
            run()

    class Own(engine.autograd.Function):
        @staticmethod
        def forward(x):
            return again(x * 1)

        @staticmethod
        def setup_context(ctx, inputs, output):
            again()

        @staticmethod
        def backward(ctx, g):
            return again(g)

        @staticmethod
        def jvp(ctx, t):
            return again(t * 1)

    class Given:
        __call__ = staticmethod(Own.apply)

        def __array__(self, *args, **kwargs):
            return again(np.array([1e300]))

    modules = {"torch": engine, "F": engine.nn.functional, "np": np, "inf": np.inf, "nan": np.nan}
    own = {"again": again, "grad": grad, "step": step, "with_grad": with_grad, "back": back, "own": Given()}
    own |= {"unpacking": unpacking, "checkpoint": checkpoint, "leaf": engine.zeros(2, requires_grad=True)}
    return {**modules, **own}


def heard(run, filters):
    """What is raised, warned of or printed while something runs in a thread that has not met the engine."""
    found, printed = [], io.StringIO()

    def caught():
        try:
            run()
        except Exception as error:
            found.append(error)

    with warnings.catch_warnings(record=True) as seen, contextlib.redirect_stderr(printed):
        warnings.resetwarnings()
        if filters:
            warnings.simplefilter(filters)
        thread = threading.Thread(target=caught)
        thread.start()
        thread.join()
    return [str(e) for e in found + [w.message for w in seen]] + printed.getvalue().splitlines()


@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_nothing_is_heard_of_what_the_engine_computes(line):
    for state, filters in (("warn", "error"), ("warn", "always"), ("warn", None), ("raise", None), ("print", None)):

        def run():
            again = lambda x=None: [np.seterr(all=state), x][1]  # noqa: B023, E731
            again()
            eval(line, names(again))

        assert heard(run, filters) == []


def test_the_main_thread_hears_nothing_either():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for line in LINES.strip().splitlines()[::5]:
            eval(line, names(lambda x=None: [np.seterr(all="raise"), x][1]))


HEARD = ["divide by zero encountered in log"]
ONE_OF_NUMPY = {
    "warn": HEARD, "raise": HEARD, "ignore": [], "print": ["Warning: " + HEARD[0]], "call": [("divide by zero", 1)],
    "log": ["Warning: " + HEARD[0] + "\n"],
}  # fmt: skip


class Log:
    def __init__(self):
        self.lines = []

    def write(self, line):
        self.lines.append(line)

    def __call__(self, kind, flag):
        self.lines.append((kind, flag))


@pytest.mark.parametrize("state", ONE_OF_NUMPY)
def test_numpy_says_of_what_a_program_computes_what_it_did(state):
    log = Log()

    def run():
        np.seterrcall(log)
        np.seterr(all=state)
        engine.zeros(2).log()
        np.log(np.zeros(2))

    assert heard(run, "always") + log.lines == ONE_OF_NUMPY[state]


def test_a_block_of_a_program_holds_for_its_own_computing_and_ends_where_it_ends():
    def run():
        engine.zeros(2).log()
        sizes = set()
        for _ in range(100):
            with np.errstate(divide="ignore"):
                engine.zeros(2).log()
                np.log(np.zeros(2))
            sizes.add(len(states))  # each block is a new state for NumPy
        np.exp(np.array([1e4]))
        np.seterr(**np.geterr())
        engine.zeros(2).log()
        assert sizes == {len(states)}
        with np.errstate(all="raise"):
            engine.zeros(2).log()
            np.log(np.zeros(2))

    assert heard(run, "always") == [*HEARD, "overflow encountered in exp"]


def test_a_warning_names_the_line_of_the_program():
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn"):
        warnings.simplefilter("always")
        engine.zeros(2).log()
        x = engine.zeros(2, requires_grad=True)
        x.register_hook(lambda g: g * engine.tensor(np.log(np.zeros(2, "f"))))  # one that the engine calls
        x.sum().backward()
    assert [(w.category, w.filename) for w in seen] == [(RuntimeWarning, __file__)]


def test_a_numpy_that_keeps_its_state_elsewhere_is_quiet_by_a_filter():
    program = """
import warnings
from numpy._core import umath
del umath._extobj_contextvar
import engine
print(engine.tensor([0.0]).log(), engine.ones(2).requires_grad_().log().sum().backward())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("tensor([-inf]) None\n", "")
