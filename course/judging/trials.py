"""Helpers for trials: inputs that tell wrong answers from right ones, and steps that watch what an attempt does."""

import contextlib
import functools
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import engine


def using(names: Sequence[str], function: Callable, *arguments: Any) -> dict[str, Any]:
    """Call, and note which of the engine's functions were called: "func.jacrev", "Tensor.backward".

    For what the exercise asks to do without: `using([...], attempt, f, x)`. A property tells the learner.
    """
    called: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        for name in names:
            place, _, last = name.rpartition(".")
            owner = functools.reduce(getattr, place.split(".") if place else [], engine)
            stack.enter_context(mock.patch.object(owner, last, _counting(getattr(owner, last), name, called)))
        result = function(*arguments)
    return {"result": result, "used": [name for name in names if called[name]]}


def _counting(function: Any, name: str, called: Counter[str]) -> Callable:
    @functools.wraps(function)
    def counting(*arguments: Any, **named: Any) -> Any:
        called[name] += 1
        return function(*arguments, **named)

    return counting


def knob(at: Any, before: Any = None) -> engine.Tensor:
    """Make a leaf that requires grad, with what a pass before has left in its `.grad`."""
    made = engine.tensor(at, requires_grad=True)
    made.grad = None if before is None else engine.tensor(before)
    return made


def line() -> engine.nn.Linear:
    """Make a small model with known numbers: x0 - x1 + 0.5."""
    model = engine.nn.Linear(2, 1)
    with engine.no_grad():
        model.weight.copy_(engine.tensor([[1.0, -1.0]]))
        model.bias.fill_(0.5)
    return model


class Counted:
    """A function that knows how often it was called, and with what kinds of arguments: for one given to the attempt."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.calls = 0
        self.kinds: list[list[str]] = []  # of each call's arguments: "Tensor", "float"

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        self.kinds.append([type(argument).__name__ for argument in arguments])
        return self.function(*arguments)


class Alive:
    """Counts the graphs of a Module's results that are alive at once, whatever becomes of the results: `most`."""

    def __init__(self, model: Any) -> None:
        self.most = 0
        self._graphs: list[weakref.ref] = []
        model.register_forward_hook(self._came)

    def _came(self, module: Any, inputs: Any, output: Any) -> None:
        if output.grad_fn is not None:
            self._graphs.append(weakref.ref(output.grad_fn))
        self.most = max(self.most, sum(graph() is not None for graph in self._graphs))
