"""Lesson 09, dynamic graphs: the exercises' trials, oracles, usual mistakes and hints."""

from collections.abc import Callable, Iterator
from typing import Any

import engine
from course.exercises import Did, Exercise, Property


def gradients_of(made: Any, knobs: list[engine.Tensor]) -> list[Any]:
    """The gradients of the sum of what was made, 0 where a knob had no part in it; None where the past is lost."""
    if not isinstance(made, engine.Tensor) or not made.requires_grad:
        return [None for _ in knobs]
    found = engine.autograd.grad(made.sum(), knobs, allow_unused=True)
    return [engine.zeros_like(knob) if g is None else g for g, knob in zip(found, knobs, strict=True)]


# 9.2


def states_and_gradients(states: Callable, numbers: list[float]) -> list[Any]:
    keep, take = (engine.tensor(value, requires_grad=True) for value in (0.5, 2.0))
    made = states(engine.tensor(numbers), keep, take)
    return [made, *gradients_of(made, [keep, take])]


def states_trial(states: Callable) -> Iterator[tuple]:
    what = "the states, and the gradients of their sum for keep and take"
    for numbers in ([3.0], [3.0, 4.0], [1.0, -1.0, 2.0, 0.0]):
        yield f"numbers = {numbers}, keep = 0.5, take = 2: {what}", states_and_gradients, states, numbers


def states_more(states: Callable) -> Iterator[tuple]:
    yield "", states_and_gradients, states, [0.5, 0.25, -3.0, 1.0, 1.0, 2.0, -0.125]


def by_powers(numbers: engine.Tensor, keep: engine.Tensor, take: engine.Tensor) -> engine.Tensor:
    """The state after number n is the sum of take * numbers[k] * keep ** (n - k)."""
    n = len(numbers)
    steps = engine.arange(n).reshape(n, 1) - engine.arange(n)
    weights = engine.where(steps >= 0, keep ** engine.clamp(steps, min=0), engine.zeros(n, n))
    return take * (weights @ numbers)


def reading(
    step: Callable = lambda state, number, keep, take: keep * state + take * number,
    carried: Callable = lambda state: state,
    joined: Callable = engine.stack,
    first: bool = False,
) -> Callable:
    """`states`, with another step, another way to carry the state on, or another way to join them."""

    def states(numbers: engine.Tensor, keep: engine.Tensor, take: engine.Tensor) -> Any:
        state = engine.tensor(0.0)
        found = [state] if first else []
        for number in numbers:
            state = step(state, number, keep, take)
            found.append(state)
            state = carried(state)
        return joined(found)

    return states


# 9.3


def values_and_gradient(f: Callable, x: list[float], dtype: Any = engine.float32) -> list[Any]:
    at = engine.tensor(x, dtype=dtype, requires_grad=True)
    made = f(at)
    return [made, *gradients_of(made, [at])]


def hole_trial(f: Callable) -> Iterator[tuple]:
    for x in ([1.0, 2.0], [0.5, 0.0, 3.0], [0.0, 0.0]):
        yield f"x = {x}: the values, and the gradient of their sum", values_and_gradient, f, x
    yield "x = [0.25, 0.0] in float64: the same", values_and_gradient, f, [0.25, 0.0], engine.float64


def hole_more(f: Callable) -> Iterator[tuple]:
    yield "", values_and_gradient, f, [0.0, 1e-3, 10.0, 0.0, 0.75]


def place_by_place(x: engine.Tensor) -> engine.Tensor:
    return engine.stack([number * number.log() if number > 0 else number * 0 for number in x])


def chosen_afterwards(x: engine.Tensor) -> engine.Tensor:
    return engine.where(x > 0, x * x.log(), engine.zeros_like(x))


def a_little_more(x: engine.Tensor) -> engine.Tensor:
    return x * (x + 1e-3).log()


def held_up(x: engine.Tensor) -> engine.Tensor:
    return x * engine.clamp(x, min=1e-6).log()


def plain_zeros(x: engine.Tensor) -> engine.Tensor:
    return engine.stack([number * number.log() if number > 0 else engine.tensor(0.0) for number in x])


def cut_off(x: engine.Tensor) -> engine.Tensor:
    return place_by_place(x.detach())


def a_wide_berth(x: engine.Tensor) -> engine.Tensor:
    return x * engine.where(x > 0, x, engine.full_like(x, 1e-8)).log()


def nowhere_nan(did: Did) -> bool:
    """Neither in the values nor in the gradients."""
    return all(bool(engine.isfinite(engine.tensor(part)).all()) for part in did.result if part is not None)


def flat_at_0(did: Did) -> bool:
    """Where x is 0, a gradient that is a number is 0."""
    (_, slopes), at = did.result, did.before["1"]
    return all(not abs(float(slope)) > 1e-4 for slope, x in zip(slopes, at, strict=True) if x == 0)


# 9.4


def mean_and_gradient(f: Callable, x: list[float]) -> list[Any]:
    """As `values_and_gradient`; a gradient of 0 everywhere and none at all are the same."""
    made, gradient = values_and_gradient(f, x)
    return [made, gradient if gradient is not None and gradient.count_nonzero() else None]


def mean_trial(f: Callable) -> Iterator[tuple]:
    for x in ([2.0, 4.0], [5.0, -1.0, 1.0, 0.0], [-1.0, -2.0]):
        yield f"x = {x}: the mean, and the gradient", mean_and_gradient, f, x


def mean_more(f: Callable) -> Iterator[tuple]:
    yield "", mean_and_gradient, f, [-0.5, 0.25, 7.0, -3.0, 0.125, 2.0]


def by_mask(x: engine.Tensor) -> engine.Tensor:
    positive = x > 0
    return x[positive].mean() if positive.any() else engine.tensor(0.0)


def a_new_leaf(x: engine.Tensor) -> engine.Tensor:
    positive = [number.item() for number in x if number > 0]
    return engine.tensor(positive or [0.0], requires_grad=bool(positive)).mean()


def over_all(x: engine.Tensor) -> engine.Tensor:
    return x.relu().mean()


def without_the_empty_case(x: engine.Tensor) -> engine.Tensor:
    return x[x > 0].mean()


def summed(x: engine.Tensor) -> engine.Tensor:
    return x[x > 0].sum() if (x > 0).any() else engine.tensor(0.0)


def counted_with_zero(x: engine.Tensor) -> engine.Tensor:
    return x[x >= 0].mean() if (x >= 0).any() else engine.tensor(0.0)


# 9.5


def value_and_gradients(compute: Callable, formula_of: Callable, values: list[float]) -> list[Any]:
    knobs = [engine.tensor(value, requires_grad=True) for value in values]
    made = compute(formula_of(*knobs))
    return [made, *gradients_of(made, knobs)]


FORMULAS: tuple[tuple[str, Callable, list[float]], ...] = (
    ('("+", ("*", a, 3.0), b), a = 2, b = 5', lambda a, b: ("+", ("*", a, 3.0), b), [2.0, 5.0]),
    ('("max", a, b), a = 2, b = 5', lambda a, b: ("max", a, b), [2.0, 5.0]),
    ('("max", ("*", a, 0.5), b), a = -3, b = -1.25', lambda a, b: ("max", ("*", a, 0.5), b), [-3.0, -1.25]),
    ('("max", 4.0, ("max", a, b)), a = 2, b = 5', lambda a, b: ("max", 4.0, ("max", a, b)), [2.0, 5.0]),
    (
        '("*", ("max", ("*", a, a), b), ("+", a, 1.0)), a = 3, b = 5',
        lambda a, b: ("*", ("max", ("*", a, a), b), ("+", a, 1.0)),
        [3.0, 5.0],
    ),
)


def formula_trial(compute: Callable) -> Iterator[tuple]:
    for shown, formula, values in FORMULAS:
        yield f"{shown}: the value, and the gradients of a and b", value_and_gradients, compute, formula, values


def formula_more(compute: Callable) -> Iterator[tuple]:
    def deep(a: Any, b: Any, c: Any) -> tuple:
        return "+", ("max", ("max", a, ("*", b, c)), 1.0), ("*", ("+", c, ("max", b, -2.0)), ("max", a, c))

    yield "", value_and_gradients, compute, deep, [0.5, -1.5, 3.0]


def by_operations(formula: Any) -> Any:
    """The same with the engine's own maximum, whose gradient goes to the larger side."""
    if not isinstance(formula, tuple):
        return formula
    left, right = map(by_operations, formula[1:])
    if formula[0] == "max":
        left, right = (side if isinstance(side, engine.Tensor) else engine.tensor(side) for side in (left, right))
        return engine.maximum(left, right)
    return left + right if formula[0] == "+" else left * right


def computing(choice: Callable, descend: bool = True) -> Callable:
    """`compute`, with another way to choose the larger side."""

    def compute(formula: Any) -> Any:
        if not isinstance(formula, tuple):
            return formula
        operation, left, right = formula
        if descend:
            left, right = compute(left), compute(right)
        if operation == "max":
            return choice(left, right)
        return left + right if operation == "+" else left * right

    return compute


def number_of(side: Any) -> float:
    return side.item() if isinstance(side, engine.Tensor) else side


def by_python(left: Any, right: Any) -> Any:
    return left if number_of(left) > number_of(right) else right


def as_numbers(left: Any, right: Any) -> Any:
    return engine.tensor(max(number_of(left), number_of(right)))


def smaller(left: Any, right: Any) -> Any:
    return left if number_of(left) < number_of(right) else right


def both_sides(left: Any, right: Any) -> Any:
    return (left + right) / 2 + abs(number_of(left) - number_of(right)) / 2


EXERCISES = (
    Exercise(
        key="09.1",
        points=1,
        answer=27.0,
        wrong=(
            (3.0, "That is the slope of one round. How many rounds are there?"),
            (9.0, "After two rounds x is 18, and 18 is below 20: there is a round more."),
            (81.0, "After three rounds x is 54, and that is not below 20: there is no fourth round."),
            (54.0, "That is the value. The slope is how many times as far the output moves as x."),
            (1.0, "The loop runs: 2 is below 20. What does each round do to the slope?"),
        ),
        hints=(
            "What is x after each round, and when does the loop end?",
            "The graph is a chain of multiplications by 3. Along a path, slopes are multiplied.",
            "2, 6, 18, ...: one factor of 3 for each arrow.",
        ),
        understood="The path back through a loop is the path back through a chain, with a factor for each round.",
    ),
    Exercise(
        key="09.2",
        points=2,
        answer=by_powers,
        trial=states_trial,
        hidden=states_more,
        wrong=(
            (
                reading(joined=lambda found: engine.tensor([state.item() for state in found])),
                "The states are right, but their past is lost: numbers that were taken out of their boxes, by `item()` "
                "or by `engine.tensor([...])`, have none.",
            ),
            (
                reading(joined=lambda found: engine.tensor([state.item() for state in found], requires_grad=True)),
                "Your new tensor takes notes from now on. It has no past, though: keep and take get no gradient.",
            ),
            (
                reading(step=lambda state, number, keep, take: keep.item() * state + take * number),
                "The states are right, but `keep.item()` is a plain number: no gradient gets back to keep.",
            ),
            (
                lambda numbers, keep, take: by_powers(numbers, keep, take)[-1:].expand(len(numbers)),
                "Every entry is the last state. Do you change one tensor in place, round after round?",
            ),
            (
                reading(carried=lambda state: state.detach()),
                "The states are right, but each forgets how the one before it was made: the path back ends there.",
            ),
            (
                reading(step=lambda state, number, keep, take: take * number),
                "The old state has no part in the new one: `keep * state` is missing.",
            ),
            (
                reading(step=lambda state, number, keep, take: keep * (state + take * number)),
                "What is taken is multiplied by keep as well. Only the old state should be.",
            ),
            (reading(first=True), "The 0 at the beginning does not come after any number: leave it out."),
            (
                reading(step=lambda state, number, keep, take: keep * state + number),
                "The new number goes in whole. Multiply it by `take`.",
            ),
            (
                reading(step=lambda state, number, keep, take: state + take * number),
                "The old state is carried on whole. Multiply it by `keep`.",
            ),
            (
                reading(step=lambda state, number, keep, take: take * state + keep * number),
                "keep and take have changed places: keep is for the old state.",
            ),
            (reading(joined=lambda found: found[-1]), "That is the last state alone. All of them are asked for."),
            (reading(joined=lambda found: found), "The states are right, but in a list: join them into one tensor."),
        ),
        hints=(
            "A loop over the numbers, as in the lesson's read. What must be remembered in each round?",
            "Append each state to a list. What joins a list of tensors, and keeps their past?",
            "for number in numbers:\n    state = ...\n    found.append(state)\nreturn engine.stack(found)",
        ),
        understood="A graph grows with what is read, and `stack` joins its results with their past.",
    ),
    Exercise(
        key="09.3",
        points=2,
        answer=place_by_place,
        trial=hole_trial,
        hidden=hole_more,
        wrong=(
            (
                lambda x: x * x.log(),
                "At 0 the logarithm is minus infinity, and 0 times that is nan: the value itself has a hole.",
            ),
            (a_little_more, "Adding a little to x changes every value. Only the places with 0 need help."),
            (
                plain_zeros,
                "Where every number is 0, nothing in your result comes from x, and `backward()` has no path to follow.",
            ),
            (cut_off, "The values are right, but no gradient gets back to x."),
        ),
        properties=(
            Property(
                chosen_afterwards,
                nowhere_nan,
                "There is a `nan` or an infinity. The logarithm of 0 was computed somewhere. What is picked "
                "afterwards does not undo that: 0 times infinity arrives on the path back.",
            ),
            Property(
                a_wide_berth,
                flat_at_0,
                "Where x is 0, the slope should be 0. Yours is about the logarithm of the small number that stands "
                "in for 0: a `clamp` or a `+ 1e-8` keeps `nan` away, but the slope is wrong.",
            ),
        ),
        hints=(
            "where computes both sides. What does the logarithm get to see in the places with 0?",
            "Make the input harmless first: a 1, say, where x is 0. Then choose once more, afterwards.",
            "harmless = engine.where(x > 0, x, ...)\nreturn engine.where(x > 0, harmless * harmless.log(), ...)",
        ),
        understood="`where` computes both sides, so it is the input that has to be made harmless.",
    ),
    Exercise(
        key="09.4",
        points=1,
        answer=by_mask,
        trial=mean_trial,
        hidden=mean_more,
        wrong=(
            (
                a_new_leaf,
                "The numbers are right. But `engine.tensor(...)` makes a new leaf, whether it takes notes or not: no "
                "gradient gets from there to x.",
            ),
            (
                lambda x: engine.tensor([number.item() for number in x if number > 0]).mean(),
                "No gradient gets from a new tensor to x. And where no number is above 0, the mean should be 0.",
            ),
            (
                lambda x: engine.stack([number for number in x if number > 0]).mean(),
                "Where no number is above 0, there is nothing to stack: the mean should be 0 then.",
            ),
            (over_all, "You divide by how many numbers there are. Only those above 0 count."),
            (summed, "That is the sum of the numbers above 0, and not their mean."),
            (without_the_empty_case, "If no number is above 0, the mean of nothing is nan. It should be 0 then."),
            (counted_with_zero, "A 0 is not above 0, and does not count."),
        ),
        hints=(
            "Where does the string break? What has a past, and what is a plain number?",
            "Leave the numbers in their boxes, and join them by an operation.",
            "positive = [number for number in x if number > 0]\n...\nreturn engine....(positive).mean()",
        ),
        understood="Numbers out of their boxes have no past; an operation such as `stack` keeps it.",
    ),
    Exercise(
        key="09.5",
        points=3,
        answer=by_operations,
        trial=formula_trial,
        hidden=formula_more,
        wrong=(
            (
                computing(as_numbers),
                "The values are right, but your max takes numbers out of their boxes: no path leads back from there.",
            ),
            (
                computing(both_sides),
                "The value is right, but half of the gradient goes to the side that was not chosen.",
            ),
            (computing(smaller), "That is the smaller side."),
            (
                computing(by_python, descend=False),
                "The sides may be formulas themselves: they must be computed before they are combined.",
            ),
            (
                computing(lambda left, right: left + right),
                'Your function treats "max" as if it were "+".',
            ),
            (
                computing(lambda left, right: left * right),
                'Your function treats "max" as if it were "*".',
            ),
            (
                computing(lambda left, right: left),
                'Of a "max" you always take the left side. Which of the two is larger?',
            ),
            (
                computing(lambda left, right: right),
                'Of a "max" you always take the right side. Which of the two is larger?',
            ),
        ),
        hints=(
            "A function that calls itself: what is a formula without further formulas in it?",
            "Compute both sides first, by compute. A choice by `if` leaves no trace; only what was chosen counts.",
            "if not isinstance(formula, tuple):\n"
            "    return formula\n"
            "...  # compute both sides\n"
            'if operation == "max":\n'
            "    return left if ... else right",
        ),
        understood="A choice leaves no trace in the graph: only the side that was chosen has a gradient.",
    ),
)
