"""The figure of fine-tuning: its numbers against training by hand, its picture and words against its numbers."""

import re

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import engine
from course.figures import FineTuningExplorer

FEW = slice(1, None, 3)


def train(network, x, y, steps):
    for _ in range(steps):
        ((guess(x, network) - y) ** 2).mean().backward()
        with engine.no_grad():
            for p in network:
                if p.requires_grad:
                    p -= 0.1 * p.grad
                    p.grad = None


def guess(x, network):
    return x * network[0] + network[1]


@pytest.fixture
def networks():
    one, other = (engine.tensor([v]) for v in (0.5, -0.5))
    return {
        "free": [one.clone().requires_grad_(), other.clone().requires_grad_()],
        "half frozen": [one.clone(), other.clone().requires_grad_()],
    }


@pytest.fixture
def figure(networks):
    xs = engine.linspace(-1, 1, 7).reshape(-1, 1)
    return FineTuningExplorer(networks, train, guess, xs, 2 * xs + 1, FEW)


def drawn(figure, **values):
    axes = Figure().add_subplot()
    figure.draw(axes, **figure.start() | values)
    return axes, {line.get_label(): line for line in axes.lines}


def test_each_setting_is_as_many_steps_of_the_given_training(figure, networks):
    for steps in figure.settings["steps"][0]:
        for name, network in networks.items():
            trained = [p.detach().clone().requires_grad_(p.requires_grad) for p in network]
            train(trained, figure.xs[FEW], figure.ys[FEW], steps)
            answers = guess(figure.xs, trained)
            assert engine.allclose(figure.answers[name][steps], answers)
            squares = (answers - figure.ys) ** 2
            assert figure.losses(name, steps) == pytest.approx((squares[FEW].mean().item(), squares.mean().item()))


def test_the_networks_that_were_given_are_left_as_they_were(figure, networks):
    assert [p.item() for network in networks.values() for p in network] == [0.5, -0.5] * 2
    assert all(p.grad is None for network in networks.values() for p in network)


def test_the_words_are_the_losses(figure):
    (a, b), (c, d) = (figure.losses(name, 5) for name in ("free", "half frozen"))
    assert figure.text(steps=5) == (
        f"After 5 steps, loss on the 2 examples and on all 7: free {a:.3f} and {b:.3f}; half frozen {c:.3f} and "
        f"{d:.3f}."
    )


def test_the_true_curve_the_examples_and_each_network_are_drawn(figure):
    axes, lines = drawn(figure, steps=20)
    assert list(lines) == ["the true curve", "free", "half frozen", "the examples"]
    assert list(lines["the true curve"].get_ydata()) == figure.ys.flatten().tolist()
    assert list(lines["the examples"].get_xdata()) == figure.xs.flatten().tolist()[FEW]
    for name in ("free", "half frozen"):
        assert list(lines[name].get_ydata()) == figure.answers[name][20].flatten().tolist()
    assert axes.get_ylim() == drawn(figure, steps=0)[0].get_ylim()


def test_a_reader_without_a_kernel_sees_the_end_and_the_beginning(figure):
    static = figure.static()
    words = [figure.text(), figure.text(steps=0)]
    assert re.findall(r'<img alt="([^"]+)"', static["text/html"]) == words
    assert static["text/plain"] == "\n".join(words)
