"""Helpers for trials: inputs that tell wrong answers from right ones, and steps that watch what an attempt does."""

import contextlib
import functools
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import engine


def using(names: Sequence[str], function: Callable, *arguments: Any) -> dict[str, Any]:
    """Call, and note which of the engine's functions were called: "func.jacrev", "Tensor.backward".

    For what the exercise asks to do without: `using([...], attempt, f, x)`. A property tells the learner.
    """
    called: Counter[str] = Counter()
    with standing_in(function, {name: functools.partial(_counting, name, called) for name in names}):
        result = function(*arguments)
    return {"result": result, "used": [name for name in names if called[name]]}


@contextlib.contextmanager
def standing_in(attempt: Any, makers: Mapping[str, Callable[[Any], Any]]) -> Iterator[None]:
    """Put others in the place of the engine's functions: `makers["func.jacrev"]` makes one from the engine's own.

    An attempt that has imported a function by its name meets the other one, too.
    """
    scope = getattr(attempt, "__globals__", {})
    with contextlib.ExitStack() as stack:
        for name, make in makers.items():
            place, _, last = name.rpartition(".")
            owner = functools.reduce(getattr, place.split(".") if place else [], engine)
            own = getattr(owner, last)
            other = make(own)
            stack.enter_context(mock.patch.object(owner, last, other))
            for imported in [alias for alias, value in scope.items() if value is own]:
                scope[imported] = other
                stack.callback(scope.__setitem__, imported, own)
        yield


def _counting(name: str, called: Counter[str], function: Any) -> Callable:
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
