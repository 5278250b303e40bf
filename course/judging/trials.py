"""Helpers for trials: inputs that tell wrong answers from right ones, and steps that watch what an attempt does.

Nearly every wrong answer that a check has once accepted was right for the inputs that it was tried with: whole numbers
where fractions are cut off, one dtype, numbers where arrays come, arguments that may change places.
"""

import contextlib
import functools
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any
from unittest import mock

import engine

FRACTIONS = (1.3, -3.25, 0.0, 0.1)  # both signs, and digits that bfloat16 does not hold
# More than float16 can hold, and a whole number that neither of the short types has. In a step of their own: beside
# them, in a mean, a fraction is less than the tolerance.
LARGE = (70_000.0, 2049.0, -70_001.0)


def in_types(shown: str, function: Callable, values: Any, *dtypes: Any) -> Iterator[tuple]:
    """Yield a step with the same values in each of these types."""
    for dtype in dtypes:
        yield f"{shown}, {str(dtype).partition('.')[2]}", function, engine.tensor(values, dtype=dtype)


def in_both_types(shown: str, function: Callable, one: Any, other: Any, *dtypes: Any) -> Iterator[tuple]:
    """Yield a step for every pair of these types that differ: this exposes who converts one into the other."""
    for first, second in product(dtypes, dtypes):
        if first != second:
            names = f"{str(first).partition('.')[2]} and {str(second).partition('.')[2]}"
            yield f"{shown}, {names}", function, engine.tensor(one, dtype=first), engine.tensor(other, dtype=second)


def grown(shown: str, function: Callable, *numbers: float) -> Iterator[tuple]:
    """Yield a step with numbers, one with vectors and one with tables made of them: no two entries alike."""
    for kind, size in (("numbers", ()), ("vectors of 3", (3,)), ("tables of 2 by 3", (2, 3))):
        steps = engine.arange(engine.zeros(size).numel()).reshape(size)
        yield f"{shown}, {kind}", function, *(number + 0.25 * number * steps for number in map(float, numbers))


def in_both_orders(shown: str, function: Callable, one: Any, other: Any) -> Iterator[tuple]:
    """Yield a step with two arguments, and one with them swapped."""
    yield shown, function, one, other
    yield f"{shown}, the other way round", function, copied(other), copied(one)


def one_for_both(shown: str, function: Callable, argument: Any) -> tuple:
    """Return a step in which two arguments are the same object: this exposes who writes into one of them."""
    return shown, function, argument, argument


def copied(value: Any) -> Any:
    """Copy a tensor with its numbers; return anything else as it is."""
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, engine.Tensor) else value


def twice(function: Callable, *arguments: Any) -> list[Any]:
    """Call twice in a row: this exposes a function that keeps something from the first call, or uses up its input."""
    return [function(*map(copied, arguments)), function(*arguments)]


def in_both_modes(function: Callable, *arguments: Any) -> dict[str, Any]:
    """Call with grad mode on and off, and see how the function leaves that switch."""
    found: dict[str, Any] = {}
    for mode in (True, False):
        with engine.set_grad_enabled(mode):
            found[f"result, grad mode {mode}"] = function(*map(copied, arguments))
            found[f"grad mode afterwards, {mode} before"] = engine.is_grad_enabled()
    return found


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
