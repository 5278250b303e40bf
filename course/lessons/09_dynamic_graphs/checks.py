"""Lesson 09, dynamic graphs: the exercises' trials, oracles, usual mistakes and hints."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import engine
from course.judging.words import Did, Exercise, changed, knob, mistakes, properties


def gradients_of(made: Any, knobs: list[engine.Tensor]) -> list[Any]:
    """Return the gradients of a result's sum, 0 where a knob had no part in it; None where the past is lost."""
    if not isinstance(made, engine.Tensor) or not made.requires_grad:
        return [None for _ in knobs]
    found = engine.autograd.grad(made.sum(), knobs, allow_unused=True)
    return [engine.zeros_like(knob) if g is None else g for g, knob in zip(found, knobs, strict=True)]


# 9.2


def states_and_gradients(states: Callable, numbers: list[float]) -> list[Any]:
    keep, take = knob(0.5), knob(2.0)
    made = states(engine.tensor(numbers), keep, take)
    return [made, *gradients_of(made, [keep, take])]


def states_trial(states: Callable) -> Iterator[tuple]:
    what = "the states, and the gradients of their sum for keep and take"
    for numbers in ([3.0], [3.0, 4.0], [1.0, -1.0, 2.0, 0.0]):
        yield f"numbers = {numbers}, keep = 0.5, take = 2: {what}", states_and_gradients, states, numbers
    yield "", states_and_gradients, states, [0.5, 0.25, -3.0, 1.0, 1.0, 2.0, -0.125]


def by_powers(numbers: engine.Tensor, keep: engine.Tensor, take: engine.Tensor) -> engine.Tensor:
    """Compute the state after number n, the sum of take * numbers[k] * keep ** (n - k)."""
    n = len(numbers)
    steps = engine.arange(n).reshape(n, 1) - engine.arange(n)
    weights = engine.where(steps >= 0, keep ** engine.clamp(steps, min=0), engine.zeros(n, n))
    return take * (weights @ numbers)


def reading(numbers: engine.Tensor, keep: engine.Tensor, take: engine.Tensor) -> engine.Tensor:
    state, found = engine.tensor(0.0), []
    for number in numbers:
        state = keep * state + take * number
        found.append(state)
    return engine.stack(found)


def stepping(step: str) -> Callable:
    return changed(reading, "keep * state + take * number", step)


def joined(states: str) -> Callable:
    return changed(reading, "engine.stack(found)", states)


def running_sums(states: engine.Tensor) -> engine.Tensor:
    found: list[engine.Tensor] = []
    for state in states:
        found.append(sum(found) + state)
    return engine.stack(found)


# 9.3


def values_and_gradient(f: Callable, x: list[float], dtype: Any = engine.float32) -> list[Any]:
    at = engine.tensor(x, dtype=dtype, requires_grad=True)
    made = f(at)
    return [made, *gradients_of(made, [at])]


def hole_trial(f: Callable) -> Iterator[tuple]:
    for x in ([1.0, 2.0], [0.5, 0.0, 3.0], [0.0, 0.0]):
        yield f"x = {x}: the values, and the gradient of their sum", values_and_gradient, f, x
    yield "x = [0.25, 0.0] in float64: the same", values_and_gradient, f, [0.25, 0.0], engine.float64
    # Small, and above 0: the logarithm counts, and the slope is far from 0.
    yield "x = [0.05, 0.004, 1e-6, 1e-12]: the same", values_and_gradient, f, [0.05, 0.004, 1e-6, 1e-12]
    yield "x = [0.0, 2.0]: is the value at 0 exactly 0?", exactly_0, f
    yield "", values_and_gradient, f, [0.0, 1e-3, 10.0, 0.0, 0.75]
    yield "", values_and_gradient, f, [2e-8, 3e-3, 0.09, 1e-30]
    yield "", exactly_0, f


def exactly_0(f: Callable) -> bool:
    return f(engine.tensor([0.0, 2.0]))[0].item() == 0


def place_by_place(x: engine.Tensor) -> engine.Tensor:
    return engine.stack([number * number.log() if number > 0 else number * 0 for number in x])


def a_small_stand_in(x: engine.Tensor) -> engine.Tensor:
    filled = engine.where(x > 0, x, engine.full_like(x, 1e-8))
    return filled * filled.log()


def nowhere_nan(did: Did) -> bool:
    """Neither in the values nor in the gradients."""
    return all(bool(engine.isfinite(engine.tensor(part)).all()) for part in did.result if part is not None)


def harmless(x: engine.Tensor) -> engine.Tensor:
    return engine.where(x > 0, x, engine.ones_like(x))


def slopes_at_0(did: Did) -> list[float]:
    (_, slopes), at = did.result, did.before["1"]
    return [float(slope) for slope, x in zip(slopes, at, strict=True) if x == 0]


def flat_at_0(did: Did) -> bool:
    """Compute with another slope where x is 0 than that of the logarithm of something small."""
    return all(not slope < -1e-4 for slope in slopes_at_0(did))


def has_values(did: Did) -> bool:
    """Tell whether the values are right, whatever the gradients are."""
    return did.result[0].shape == did.expected[0].shape and np.allclose(did.result[0], did.expected[0], atol=1e-4)


def like(slopes: Any, others: Any) -> bool:
    return np.allclose(slopes, others, atol=1e-4)


# 9.4


def mean_and_gradient(f: Callable, x: list[float]) -> list[Any]:
    """As `values_and_gradient`; a gradient of 0 everywhere and none at all are the same."""
    made, gradient = values_and_gradient(f, x)
    return [made, gradient if gradient is not None and gradient.count_nonzero() else None]


def mean_trial(f: Callable) -> Iterator[tuple]:
    for x in ([2.0, 4.0], [6.0, -1.0, 1.0, 0.0, 2.0], [-1.0, -2.0]):
        yield f"x = {x}: the mean, and the gradient", mean_and_gradient, f, x
    yield "", mean_and_gradient, f, [-0.5, 0.25, 7.0, -3.0, 0.125, 2.0]


def by_mask(x: engine.Tensor) -> engine.Tensor:
    positive = x > 0
    return x[positive].mean() if positive.any() else engine.tensor(0.0)


def a_new_leaf(x: engine.Tensor) -> engine.Tensor:
    positive = [number.item() for number in x if number > 0]
    return engine.tensor(positive or [0.0], requires_grad=bool(positive)).mean()


# 9.5


def value_and_gradients(compute: Callable, formula: str, values: list[float]) -> list[Any]:
    knobs = list(map(knob, values))
    made = compute(eval(formula, dict(zip("abc", knobs, strict=False))))
    return [made, *gradients_of(made, knobs)]


def formula_trial(compute: Callable) -> Iterator[tuple]:
    for formula, a, b in (
        ('("+", ("*", a, 3.0), b)', 2.0, 5.0),
        ('("max", a, b)', 2.0, 5.0),
        ('("max", ("*", a, 0.5), b)', -3.0, -1.25),
        ('("max", 4.0, ("max", a, b))', 2.0, 5.0),
        ('("*", ("*", a, b), ("max", 4.0, 3.0))', 2.0, 5.0),
        ('("*", ("max", ("*", a, a), b), ("+", a, 1.0))', 3.0, 5.0),
    ):
        shown = f"{formula}, a = {a:g}, b = {b:g}: the value, and the gradients of a and b"
        yield shown, value_and_gradients, compute, formula, [a, b]
    deep = '("+", ("max", ("max", a, ("*", b, c)), 1.0), ("*", ("+", c, ("max", b, -2.0)), ("max", a, c)))'
    yield "", value_and_gradients, compute, deep, [0.5, -1.5, 3.0]


def by_operations(formula: Any) -> Any:
    """Compute the same with the engine's own maximum, whose gradient goes to the larger side."""
    if not isinstance(formula, tuple):
        return formula
    left, right = map(by_operations, formula[1:])
    if formula[0] == "max":
        left, right = (side if isinstance(side, engine.Tensor) else engine.tensor(side) for side in (left, right))
        return engine.maximum(left, right)
    return left + right if formula[0] == "+" else left * right


def computing(
    choice: Callable,
    descend: bool = True,
    plus: Callable = lambda left, right: left + right,
    times: Callable = lambda left, right: left * right,
    leaf: Callable = lambda side: side,
) -> Callable:
    """`compute`, with another way to choose the larger side, or to do another part of it."""

    def compute(formula: Any) -> Any:
        if not isinstance(formula, tuple):
            return leaf(formula)
        operation, left, right = formula
        if descend:
            left, right = compute(left), compute(right)
        if operation == "max":
            return choice(left, right)
        return plus(left, right) if operation == "+" else times(left, right)

    return compute


def number_of(side: Any) -> float:
    return side.item() if isinstance(side, engine.Tensor) else side


def by_python(left: Any, right: Any) -> Any:
    return left if number_of(left) > number_of(right) else right


EXERCISES = (
    Exercise(
        key="09.1",
        points=1,
        answer=27.0,
        wrong=mistakes(
            3.0,
            "That is the slope of one round. How many rounds are there?",
            9.0,
            "After two rounds x is 18, and 18 is below 20: there is a round more.",
            81.0,
            "After three rounds x is 54, and that is not below 20: there is no fourth round.",
            54.0,
            "That is the value. The slope is how many times as far the output moves as x.",
            1.0,
            "The loop runs: 2 is below 20. What does each round do to the slope?",
            0.0,
            "A loop is no decision: each of its rounds multiplies x, and leaves a node with a slope.",
            18.0,
            "That is a value: x before the last round. How much did all rounds together multiply x by?",
            "27",
            "That is a text. Give the number, without quotes.",
        ),
        properties=properties(
            12.0,
            lambda did: did.result in (3.0**n for n in range(9)) or not isinstance(did.result, int | float),
            "Each round multiplies x by 3. So the slope is a product of 3s, one for each round.",
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
        wrong=mistakes(
            changed(reading, "tensor(0.0)", "tensor(1.0)"),
            "The state begins at 1. It begins at 0.",
            changed(reading, "engine.tensor(0.0)", "numbers[0]"),
            "The state begins at the first number, which then comes in twice. It begins at 0.",
            lambda numbers, keep, take: running_sums(reading(numbers, keep, take)),
            "You add the states up. Each state is on its own.",
            joined("engine.tensor([state.item() for state in found])"),
            "The states are right, but they have no past. Numbers that were taken out of their boxes (`item()`, "
            "`engine.tensor([...])`) have none, and neither has what is computed under `no_grad`.",
            joined("engine.tensor([state.item() for state in found], requires_grad=True)"),
            "Your new tensor takes notes from now on. It has no past, though: keep and take get no gradient.",
            stepping("keep.item() * state + take * number"),
            "The states are right, but `keep.item()` is a plain number: no gradient gets back to keep.",
            stepping("keep * state + take.item() * number"),
            "The states are right, but `take.item()` is a plain number: no gradient gets back to take.",
            lambda numbers, keep, take: by_powers(numbers, keep, take)[-1:].expand(len(numbers)),
            "Every entry is the last state. Do you change one tensor in place, round after round?",
            changed(reading, "append(state)", "append(state); state = state.detach()"),
            "The states are right, but each forgets how the one before it was made: the path back ends there.",
            stepping("take * number"),
            "The old state has no part in the new one: `keep * state` is missing.",
            stepping("keep * (state + take * number)"),
            "What is taken is multiplied by keep as well. Only the old state should be.",
            changed(reading, "engine.tensor(0.0), []", "engine.tensor(0.0), [engine.tensor(0.0)]"),
            "The 0 at the beginning does not come after any number: leave it out.",
            stepping("keep * state + number"),
            "The new number goes in whole. Multiply it by `take`.",
            stepping("state + take * number"),
            "The old state is carried on whole. Multiply it by `keep`.",
            stepping("take * state + keep * number"),
            "keep and take have changed places: keep is for the old state.",
            joined("engine.stack([engine.tensor(0.0), *found[:-1]])"),
            "Those are the states *before* each number. Append each new state after it has been computed.",
            joined("engine.stack(found[::-1])"),
            "The right states, the last one first. `append` puts each of them at the end.",
            joined("found[0].reshape(1)"),
            "That is the first state alone. Does your `return` stand inside the loop?",
            changed(reading, "engine.tensor(0.0), []", "numbers[0], [numbers[0]]", "in numbers:", "in numbers[1:]:"),
            "The state begins at 0, not at the first number, which is multiplied by `take` like any other.",
            changed(reading, "append(state)", "append(state); state = number"),
            "`keep` is multiplied by the number before. It belongs to the *state*, which holds all of them.",
            joined("found[-1]"),
            "That is the last state alone. All of them are asked for.",
            joined("found"),
            "The states are right, but in a list: join them into one tensor.",
        ),
        properties=properties(
            lambda numbers, keep, take: by_powers(numbers, keep, take).sum(),
            lambda did: did.result[0].ndim > 0,
            "That is one number. A state for each of the numbers is asked for, in one tensor.",
            lambda numbers, keep, take: engine.stack([take * numbers[0], take * (keep * numbers[0] + numbers[1])]),
            lambda did: did.error != "IndexError",
            "You count on more numbers than there are. Let a loop go over those that came.",
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
        wrong=mistakes(
            lambda x: x * x.log(),
            "At 0 the logarithm is minus infinity, and 0 times that is nan: the value itself has a hole.",
            lambda x: x * (x + 1e-3).log(),
            "Adding a little to x changes every value. Only the places with 0 need help.",
            lambda x: engine.stack([number * number.log() if number > 0 else engine.tensor(0.0) for number in x]),
            "Where every number is 0, nothing in your result comes from x, and `backward()` has no path to follow.",
            lambda x: place_by_place(x.detach()),
            "The values are right, but no gradient gets back to x.",
            lambda x: engine.zeros_like(x) if (x == 0).any() else x * x.log(),
            "A single 0 makes all of your result 0. `where` decides place by place.",
            lambda x: harmless(x).log(),
            "That is log(x). What is asked for is x * log(x).",
        ),
        properties=properties(
            lambda x: engine.where(x > 0, x * x.log(), engine.zeros_like(x)),
            nowhere_nan,
            "There is a `nan` or an infinity. The logarithm of 0 was computed somewhere. What is picked "
            "afterwards does not undo that: 0 times infinity arrives on the path back.",
            lambda x: x * engine.where(x > 0, x, engine.full_like(x, 1e-8)).log(),
            flat_at_0,
            "Where x is 0, the slope should be 0. Yours is about the logarithm of the small number that stands "
            "in for 0: a `clamp` or a `+ 1e-8` keeps `nan` away, but the slope is wrong.",
            lambda x: (x + (x == 0)) * (x + (x == 0)).log(),
            lambda did: not any(abs(slope - 1) < 1e-4 for slope in slopes_at_0(did)),
            "Where x is 0, your slope is 1. Is `x` itself the other side of your last `where`? Its slope is 1: "
            "take zeros. Or was the 1 written into x, or added to it? A 1 that `where` picks has no path to x.",
            a_small_stand_in,
            lambda did: did.result is not False,
            "Where x is 0, your value is nearly 0, and should be 0: it is that of the small number that stands in. "
            "Choose the 0 by `where`, after the product.",
            lambda x: engine.where(x > 0, x * x.clamp(min=1e-2).log(), 0 * x),
            lambda did: did.shown[:10] != "x = [0.05," or has_values(did) and like(did.result[1], did.expected[1]),
            "Small numbers above 0 come out wrong. Only a 0 needs a stand-in: 0.004 has a logarithm of its own.",
            lambda x: harmless(x)[x > 0] * harmless(x)[x > 0].log(),
            lambda did: did.result[0].shape == did.expected[0].shape,
            "There is not a value for each place: `x[x > 0]` lacks those with a 0, and they need one too.",
            lambda x: x * (x + 1).log(),
            lambda did: did.shown[:9] != "x = [1.0," or has_values(did),
            "The values are wrong where nothing is 0: at 1 it should be 0, and at 2 it should be 2 * log(2).",
            lambda x: engine.tensor([number * math.log(number) if number > 0 else 0.0 for number in x.tolist()]),
            lambda did: did.shown[:9] != "x = [1.0," or did.result[1] is not None or not has_values(did),
            "The values are right, but they were taken out of their boxes, and have no past: no gradient gets back "
            "to x.",
            lambda x: engine.where(x > 0.5, harmless(x) * harmless(x).log(), 0 * x),
            lambda did: not any(v == 0 != e for v, e in zip(*did.result[:1], *did.expected[:1], strict=True)),
            "You give 0 for some numbers that are not 0. Only where x is 0 should the value be 0 (ask: x > 0).",
            lambda x: engine.where(x > 0, harmless(x) * harmless(x).log(), engine.full_like(x, 0.01)),
            lambda did: (
                len(did.result[0]) != len(did.before["1"])
                or all(abs(v) < 1e-4 for v, x in zip(did.result[0], did.before["1"], strict=True) if x == 0)
            ),
            "Where x is 0, the value should be 0. Choose it by `where`, once more, after the product.",
            lambda x: engine.where(x > 0, x * harmless(x).log().detach(), 0 * x),
            lambda did: (
                did.shown[:9] != "x = [1.0,"
                or not has_values(did)
                or not any(like(did.result[1], one) for one in ([1.0, 1.0], np.log([1.0, 2.0])))
            ),
            "x stands twice in x * log(x), and there is a path back from each. One of the two is cut off.",
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
        wrong=mistakes(
            a_new_leaf,
            "The numbers are right, but no gradient gets from there to x: `engine.tensor(...)` makes a new leaf, "
            "whether it takes notes or not, and `item` and `detach` cut the past off.",
            lambda x: engine.tensor([number.item() for number in x if number > 0]).mean(),
            "No gradient gets from a new tensor to x. And where no number is above 0, the mean should be 0.",
            lambda x: engine.stack([number for number in x if number > 0]).mean(),
            "Where no number is above 0, there is nothing to stack: the mean should be 0 then.",
            lambda x: x.abs().mean(),
            "You take the numbers below 0 without their sign. Leave them out.",
            lambda x: x[x > 0].sum() if (x > 0).any() else engine.tensor(0.0),
            "That is the sum of the numbers above 0, and not their mean.",
            lambda x: x[x > 0].mean(),
            "If no number is above 0, the mean of nothing is nan. It should be 0 then.",
            lambda x: x[x >= 0].mean() if (x >= 0).any() else engine.tensor(0.0),
            "A 0 is not above 0, and does not count.",
        ),
        properties=properties(
            lambda x: x.relu().mean(),
            lambda did: (
                min(did.before["1"]) > 0
                or max(did.before["1"]) < 0
                or abs(did.result[0] - sum(x for x in did.before["1"] if x > 0) / len(did.before["1"])) > 1e-4
            ),
            "You divide by how many numbers there are. Only those above 0 count.",
            lambda x: x[x > 0].max() if (x > 0).any() else engine.tensor(0.0),
            lambda did: "2.0, 4.0" not in did.shown or abs(did.result[0] - 3) < 1e-4,
            "That is not the mean. Both numbers of [2, 4] are above 0, and their mean is (2 + 4) / 2.",
            lambda x: x[x > 0].sum() / (x != 0).sum() if (x > 0).any() else engine.tensor(0.0),
            lambda did: "6.0" not in did.shown or any(abs(did.result[0] - one) < 1e-4 for one in (3, 9 / 5, 9)),
            "Of [6, -1, 1, 0, 2] only 6, 1 and 2 count: their mean is (6 + 1 + 2) / 3.",
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
        wrong=mistakes(
            computing(by_python, leaf=lambda side: engine.tensor(number_of(side), requires_grad=True)),
            "The value is right, but you make new leaves of the numbers: no gradient gets back to the tensors that "
            "were given. Let them into the result as they are.",
            computing(lambda left, right: (left + right) / 2),
            'For "max" you give the mean of both sides. Give the larger one.',
            computing(lambda left, right: engine.tensor(max(number_of(left), number_of(right)))),
            "The values are right, but your max takes numbers out of their boxes: no path leads back from there.",
            computing(lambda left, right: (left + right) / 2 + abs(number_of(left) - number_of(right)) / 2),
            "The value is right, but half of the gradient goes to the side that was not chosen.",
            computing(lambda left, right: left if number_of(left) < number_of(right) else right),
            "That is the smaller side.",
            computing(by_python, descend=False),
            "The sides may be formulas themselves: they must be computed before they are combined.",
            computing(lambda left, right: left + right),
            'Your function treats "max" as if it were "+".',
            computing(lambda left, right: left * right),
            'Your function treats "max" as if it were "*".',
            computing(lambda left, right: left),
            'Of a "max" you always take the left side. Which of the two is larger?',
            computing(lambda left, right: right),
            'Of a "max" you always take the right side. Which of the two is larger?',
            computing(lambda left, right: left if abs(number_of(left)) > abs(number_of(right)) else right),
            "You compare without the signs. -1.25 is larger than -3.",
            computing(lambda left, right: left > right),
            "That says whether the left side is larger. Give the larger side.",
            computing(lambda left, right: None),
            'For "max" your function gives None: it needs a `return` there too.',
            computing(by_python, plus=lambda left, right: left * right, times=lambda left, right: left + right),
            '"+" and "*" have changed places.',
        ),
        properties=properties(
            computing(by_python, leaf=lambda side: engine.tensor(number_of(side))),
            lambda did: not did.shown.startswith('("+"') or did.result[1] is not None or abs(did.result[0] - 11) > 1e-4,
            "The value is right, but it has no past. Let the tensors into the result as they are: `float`, `item` "
            "and `engine.tensor` take the numbers out of their boxes.",
            computing(engine.maximum),
            lambda did: did.error not in ("TypeError", "AttributeError", "ValueError"),
            "A side may be a formula, a tensor, or a plain number. Compute the formulas first, both sides of each; "
            "and what works only on tensors does not work on a plain number.",
            computing(lambda left, right: (left + right) / 2 + abs(left - right)),
            lambda did: not did.shown.startswith('("max"') or abs(did.result[0] - did.expected[0]) < 1e-4,
            'The value of a "max" is one of its two sides, the larger one. What you give is another number.',
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
