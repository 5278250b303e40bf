"""What makes a backward pass quicker gives, to the bit, what the core's plain walk and plain chain rule give."""

import operator
import random

import pytest

import engine
from engine import quick
from engine.core import backward
from engine.core.graph import Node

F = engine.nn.functional


def classes(Class=Node):
    for below in Class.__subclasses__():
        yield below
        yield from classes(below)


@pytest.fixture
def plainly(monkeypatch):
    """A function that runs another one with nothing attached to the core."""

    def run(program):
        with monkeypatch.context() as patch:
            patch.setattr(backward, "walks", [])
            ours = {*quick.WRITTEN_OUT.values(), *quick.ANY_SAVED.values()}
            for Class in [c for c in classes() if vars(c).get("vjp") in ours]:
                patch.delattr(Class, "vjp")
            assert engine.exp(engine.ones(1, requires_grad=True)).grad_fn.vjp.__func__ is Node.vjp
            return program()

    return run


STEPS = (operator.mul, operator.add, lambda a, _: a.tanh(), lambda a, b: a - 0.5 * b)


def tangled(seed):
    """Two hundred operations on what was made before, by chance."""
    choose = random.Random(seed)
    leaves = [engine.tensor(choose.uniform(-1, 1), requires_grad=True) for _ in range(4)]
    known = [*leaves]
    for _ in range(200):
        a, b = choose.choice(known[-9:]), choose.choice(known)
        known.append(choose.choice(STEPS)(a, b))
    return known[-1] + known[-2], leaves


def numbers(tensors):
    return [t.tolist() for t in tensors]


@pytest.mark.parametrize("seed", range(20))
def test_a_tangled_graph(seed, plainly):
    def program():
        root, leaves = tangled(seed)
        first = engine.autograd.grad(root, leaves[:2], create_graph=True, materialize_grads=True)
        root.backward(retain_graph=True)
        (first[0] * root).backward()
        return numbers(first) + numbers(t.grad for t in leaves if t.grad is not None)

    assert program() == plainly(program)


def test_a_network(plainly):
    def program():
        engine.manual_seed(0)
        net = engine.nn.Sequential(
            engine.nn.Conv2d(1, 2, 3), engine.nn.BatchNorm2d(2), engine.nn.GELU(), engine.nn.Flatten(),
            engine.nn.Linear(72, 8), engine.nn.LayerNorm(8), engine.nn.Softmax(-1),
        )  # fmt: skip
        F.cross_entropy(net(engine.randn(3, 1, 8, 8)), engine.tensor([1, 0, 7])).backward()
        return numbers(p.grad for p in net.parameters())

    assert program() == plainly(program)


def test_every_class_made_of_derivatives_has_its_loop_written_out_or_a_rule_of_its_own():
    made = [c for c in classes() if c.__module__ == "builtins" and 0 < len(c.rules) <= max(quick.ANY_SAVED)]
    assert made and not [c for c in made if c.vjp is Node.vjp]
