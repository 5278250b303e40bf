"""Look for what an exercise's steps let pass: the right answer with a general mistake built in, tried like any other.

`python -m course survivors 03.3` names the mistakes that are accepted. Some of these are not mistakes (a function of
whole numbers may well cut off fractions); each of the others calls for one more input.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import engine
from course.judging import judge
from course.judging.exercises import CORRECT, NOT_YET, Exercise, find


class _Applied:
    """A change to values, and whether it has met any that it applies to."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self.change = change
        self.met = False

    def to(self, value: Any) -> Any:
        """Change tensors, arrays and floats, in lists as well, and leave everything else as it is."""
        if isinstance(value, list | tuple):
            return type(value)(map(self.to, value)) if type(value) in (list, tuple) else value
        if isinstance(value, engine.Tensor) and value.dtype.is_floating_point and value.is_leaf:
            self.met = True
            return self.change(value.detach()).requires_grad_(value.requires_grad)
        if isinstance(value, float):
            self.met = True
            return self.change(engine.tensor(value, dtype=engine.float64)).item()
        return value


def _first_alone(x: Any) -> Any:
    return engine.full_like(x, x.reshape(-1)[0].item()) if x.numel() else x


NUMBERS = {
    "cuts off the fractions of what it gets": lambda x: x.trunc(),
    "takes no notice of the signs": lambda x: x.abs(),
    "works in float16": lambda x: x.half().to(x.dtype),
    "works in bfloat16": lambda x: x.bfloat16().to(x.dtype),
    "looks at the first number alone": _first_alone,
}


def _in_the_type_of_the_first(arguments: tuple, found: _Applied) -> list[Any]:
    tensors = [argument for argument in arguments if isinstance(argument, engine.Tensor)]
    found.met = found.met or len(tensors) > 1
    return [a.to(tensors[0].dtype) if isinstance(a, engine.Tensor) and a is not tensors[0] else a for a in arguments]


def _swapped(arguments: tuple, found: _Applied) -> list[Any]:
    first, second = arguments[:2] if len(arguments) > 1 else (1, "one")
    same = type(first) is type(second)
    found.met = found.met or same
    return [second, first, *arguments[2:]] if same else list(arguments)


def _float32(result: Any, found: _Applied) -> Any:
    found.met = found.met or isinstance(result, engine.Tensor)
    return result.float() if isinstance(result, engine.Tensor) and result.dtype != engine.float32 else result


def _positive(result: Any, found: _Applied) -> Any:
    number = isinstance(result, int | float | np.ndarray | engine.Tensor) and not isinstance(result, bool)
    found.met = found.met or number
    return abs(result) if number else result


def _backwards(result: Any, found: _Applied) -> Any:
    several = isinstance(result, list | tuple) and len(result) > 1
    found.met = found.met or several
    return result[::-1] if several else result


ARGUMENTS = {
    "takes everything in the type of the first argument": _in_the_type_of_the_first,
    "has the first two arguments the wrong way round": _swapped,
}
RESULTS = {
    "gives float32 always": _float32,
    "gives no negative numbers": _positive,
    "gives its list in the opposite order": _backwards,
}
MODELS = {
    "leaves the model in eval mode": lambda model: model.eval(),
    "freezes the model": lambda model: model.requires_grad_(False),
}


def mutants(answer: Callable) -> Iterator[tuple[str, Callable, _Applied]]:
    """Yield the right answer with one mistake: its name, the function, and whether it met a value to change."""
    for says, change in NUMBERS.items():
        one = _Applied(change)
        yield says, functools.partial(lambda one, *given: answer(*map(one.to, given)), one), one
    for says, rearranged in ARGUMENTS.items():
        one = _Applied(_same)
        yield says, functools.partial(lambda one, of, *given: answer(*of(given, one)), one, rearranged), one
    for says, given in RESULTS.items():
        one = _Applied(_same)
        yield says, functools.partial(lambda one, of, *given: of(answer(*given), one), one, given), one
    for says, change in MODELS.items():
        one = _Applied(change)
        yield says, functools.partial(_leaving, one, answer), one
    first, one = list[Any](), _Applied(_same)
    one.met = True
    yield "gives what it gave the first time", functools.partial(_the_first, first, answer), one


def _same(value: Any) -> Any:
    return value


def _leaving(one: _Applied, answer: Callable, *given: Any) -> Any:
    result = answer(*given)
    for model in given:
        if isinstance(model, engine.nn.Module):
            one.met = True
            one.change(model)
    return result


def _the_first(first: list[Any], answer: Callable, *given: Any) -> Any:
    first.append(answer(*given))
    return first[0]


def survivors(exercise: Exercise, hidden: bool = False) -> list[str]:
    """Find the mistakes that the steps of an exercise accept."""
    if not callable(exercise.answer) or isinstance(exercise.answer, type):
        return []
    found = []
    for says, mutant, one in mutants(exercise.answer):
        verdict = judge.judge(exercise, mutant)
        if verdict.state == CORRECT and hidden and exercise.hidden:
            verdict = judge.judge(exercise, mutant, hidden=True)
        if verdict.state != NOT_YET and one.met:
            found.append(says)
    return found


def tell(keys: list[str]) -> None:
    """Print the mistakes that these exercises accept."""
    for exercise in map(find, keys):
        shown, graded = survivors(exercise), survivors(exercise, hidden=True)
        for says in shown:
            print(f"{exercise.key}  {says}{'' if says in graded else '  (refused in grading)'}")
