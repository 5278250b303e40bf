"""A warning names the line of the program that it is for, by whatever route the engine was called."""

import linecache
import warnings

import pytest

import engine
from engine import nn
from engine.nn import functional as F
from engine.utils.checkpoint import checkpoint


class Loss(nn.Module):
    def forward(self, x):
        return nn.MSELoss()(x, engine.ones(1))


class Old(nn.Module):
    def forward(self, x):
        return x.T


class Doubled(engine.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * engine.tensor(engine.ones(3))


def anomalous(x):
    with engine.autograd.detect_anomaly():
        pass


def failing(x):
    y = (x * 0).sqrt() * 0
    with engine.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError):
        y.sum().backward()


def hooked(x):
    layer = nn.Linear(3, 3)
    layer.register_full_backward_hook(lambda *_: None)
    layer(x.detach()).sum().backward()


# route -> (a program, the text of the line that warns)
ROUTES = {
    "function": (lambda x: engine.tensor(x), "engine.tensor(x)"),
    "function of a list": (lambda x: engine.tensor([x[0], 1.0]), "engine.tensor([x[0], 1.0])"),
    "function of networks": (lambda x: F.mse_loss(x, engine.ones(1)), "F.mse_loss"),
    "method": (lambda x: x[:1].std(), "x[:1].std()"),
    "attribute": (lambda x: (x * 2).grad, "(x * 2).grad"),
    "operator": (lambda x: x[engine.ones(3).to(engine.uint8)], "x[engine.ones(3)"),
    "conversion": (lambda x: float(x[0]), "float(x[0])"),
    "in place": (lambda x: (x * 1).random_(0, 2**30), "random_"),
    "out": (lambda x: engine.exp(engine.ones(3), out=engine.zeros(2)), "out=engine.zeros(2)"),
    "module": (lambda x: nn.MSELoss()(x, engine.ones(1)), "nn.MSELoss()(x"),
    "module in modules": (lambda x: nn.Sequential(nn.Identity(), nn.Softmax())(x), "nn.Softmax()"),
    "module of the program": (lambda x: Loss()(x), "return nn.MSELoss()"),
    "constructor": (lambda x: nn.LSTM(2, 2, dropout=0.5), "nn.LSTM"),
    "backward": (failing, "backward()"),
    "backward of the program": (lambda x: Doubled.apply(x).sum().backward(), "return g * engine.tensor"),
    "hook of a module": (hooked, "backward()"),
    "context": (anomalous, "with engine.autograd.detect_anomaly"),
    "checkpoint": (lambda x: checkpoint(Old(), x[None, None]), "checkpoint(Old()"),
    "checkpointed": (lambda x: checkpoint(Old(), x[None, None], use_reentrant=False), "return x.T"),
    "gradient of a function": (lambda x: engine.func.grad(lambda v: Loss()(v))(x), "return nn.MSELoss()"),
    "compiled": (lambda x: engine.compile(Loss())(x), "return nn.MSELoss()"),
}


@pytest.mark.parametrize("cast", [False, True], ids=["plain", "autocast"])
@pytest.mark.parametrize("route", ROUTES)
def test_a_warning_names_the_line_of_the_program(route, cast):
    program, text = ROUTES[route]
    x = engine.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as seen, engine.autocast("cpu", enabled=cast):
        warnings.simplefilter("always")
        program(x)
    lines = [linecache.getline(__file__, w.lineno) for w in seen]
    assert seen and {w.filename for w in seen} == {__file__}
    assert any(text in line for line in lines), lines
