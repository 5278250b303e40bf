"""Lesson 07, the rules of the graph: the exercises' trials, oracles, usual mistakes and hints."""

from collections.abc import Callable, Iterator
from typing import Any

import engine
from course.exercises import Exercise

# 6.2


def knob(at: Any, before: Any = None) -> engine.Tensor:
    w = engine.tensor(at, requires_grad=True)
    w.grad = None if before is None else engine.tensor(before)
    return w


def two_losses(w: engine.Tensor) -> list[engine.Tensor]:
    return [3 * w, w * w]


def with_a_common_beginning(w: engine.Tensor) -> list[engine.Tensor]:
    common = (w * w).exp()
    return [2 * common, common * common, common + w]


def mean_trial(mean_gradient: Callable) -> Iterator[tuple]:
    w = knob(2.0)
    yield "losses = [3 * w, w * w] at w = 2, w.grad is None", mean_gradient, two_losses(w), w
    w = knob(2.0, before=1.0)
    yield "the same, with 1. in w.grad before", mean_gradient, two_losses(w), w
    w = knob([2.0, 1.0])
    yield "losses = [w.sum(), w[0] * w[1]] at w = [2., 1.], w.grad is None", mean_gradient, [w.sum(), w[0] * w[1]], w
    w = knob(0.5)
    shown = "common = (w * w).exp(), losses = [2 * common, common * common, common + w], w = 0.5, w.grad is None"
    yield shown, mean_gradient, with_a_common_beginning(w), w


def mean_more(mean_gradient: Callable) -> Iterator[tuple]:
    w = knob([0.5, -1.0], before=[7.0, 8.0])
    yield "", mean_gradient, [w.sum(), (w * w).sum(), w.exp().sum(), w[0] * w[1]], w


def one_each(losses: list[engine.Tensor], w: engine.Tensor) -> list[engine.Tensor]:
    return [engine.autograd.grad(loss, w, retain_graph=True)[0] for loss in losses]


def one_by_one(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    return engine.stack(one_each(losses, w)).mean(0)


def without_retaining(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    return sum(engine.autograd.grad(loss, w)[0] for loss in losses) / len(losses)


def summed(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    return engine.autograd.grad(sum(losses), w)[0]


def left_behind(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    (sum(losses) / len(losses)).backward()
    return w.grad


def cleared_at_the_end(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    (sum(losses) / len(losses)).backward()
    found, w.grad = w.grad, None
    return found


def put_back_by_name(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    before = w.grad
    for loss in losses:
        loss.backward(retain_graph=True)
    found, w.grad = w.grad / len(losses), before
    return found


def divided_with_the_rest(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    found = put_back_by_name(losses, w)
    w.grad = None
    return found


def cleared_at_both_ends(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    w.grad = None
    return cleared_at_the_end(losses, w)


# 6.3


def walked(train: Callable, start: float, xs: list[float], ys: list[float], steps: int) -> Any:
    return train(engine.tensor(start, requires_grad=True), engine.tensor(xs), engine.tensor(ys), steps)


def walk_trial(train: Callable) -> Iterator[tuple]:
    for steps in (1, 2, 30):
        shown = f"w = 0, xs = [1, 2], ys = [2, 4], steps = {steps}: where w is in the end"
        yield shown, walked, train, 0.0, [1.0, 2.0], [2.0, 4.0], steps


def walk_more(train: Callable) -> Iterator[tuple]:
    yield "", walked, train, 1.0, [0.5, 1.0, 3.0], [1.0, -2.0, 0.5], 7


def by_formula(w: engine.Tensor, xs: engine.Tensor, ys: engine.Tensor, steps: int) -> float:
    w = w.detach()
    for _ in range(steps):
        w = w - 0.05 * (2 * xs * (w * xs - ys)).mean()
    return w.item()


def trained(before: Callable, between: Callable) -> Callable:
    """`train`, with what is done to w before the loop, and between backward and the step."""

    def train(w: engine.Tensor, xs: engine.Tensor, ys: engine.Tensor, steps: int) -> float:
        before(w)
        for _ in range(steps):
            ((w * xs - ys) ** 2).mean().backward()
            between(w)
            with engine.no_grad():
                w -= 0.05 * w.grad
        return w.item()

    return train


def clear(w: engine.Tensor) -> None:
    w.grad = None


def to_zero(w: engine.Tensor) -> None:
    w.grad.zero_()


def leave(w: engine.Tensor) -> None:
    pass


def zeroed_too_early(w: Any, xs: engine.Tensor, ys: engine.Tensor, steps: int) -> float:
    w.grad.zero_()
    return by_formula(w, xs, ys, steps)


def another_w(w: engine.Tensor, xs: engine.Tensor, ys: engine.Tensor, steps: int) -> float:
    for _ in range(steps):
        ((w * xs - ys) ** 2).mean().backward()
        with engine.no_grad():
            w = w - 0.05 * w.grad
    return w.item()


def only_the_last(w: engine.Tensor, xs: engine.Tensor, ys: engine.Tensor, steps: int) -> float:
    for _ in range(steps):
        ((w * xs - ys) ** 2).mean().backward()
    with engine.no_grad():
        w -= 0.05 * w.grad
    return w.item()


# 6.4


def read_through(read: Callable, numbers: list[float]) -> list[Any]:
    w = engine.tensor(1.5, requires_grad=True)
    losses = read(w, numbers)
    each = losses if isinstance(losses, list | tuple) else []
    return [losses, w.item(), sum(isinstance(loss, engine.Tensor) and loss.requires_grad for loss in each)]


def read_trial(read: Callable) -> Iterator[tuple]:
    for numbers in ([0.0], [0.0, 0.5, -0.5]):
        shown = (
            f"w = 1.5, numbers = {numbers}: the losses, where w is in the end, and how many losses hold on to a graph"
        )
        yield shown, read_through, read, numbers


def read_more(read: Callable) -> Iterator[tuple]:
    yield "", read_through, read, [0.3, -1.0, 0.2, 0.9, 0.0]


def reading(
    state: Callable = lambda state: state,
    carried: Callable = lambda state: state.detach(),
    loss: Callable = lambda loss: loss.item(),
    retain: bool = False,
) -> Callable:
    """`read`, with what is done to the state before the loss and after the round, and to the loss."""

    def read(w: engine.Tensor, numbers: list[float]) -> list[Any]:
        kept, losses = engine.tensor(1.0), []
        for number in numbers:
            kept = state((w * kept + number).tanh())
            squared = (kept - 0.5) ** 2
            squared.backward(retain_graph=retain)
            with engine.no_grad():
                w -= 0.5 * w.grad
            w.grad = None
            losses.append(loss(squared))
            kept = carried(kept)
        return losses

    return read


def read_by_formula(w: engine.Tensor, numbers: list[float]) -> list[float]:
    state, at, losses = engine.tensor(1.0), w.detach().clone(), []
    for number in numbers:
        after = (at * state + number).tanh()
        losses.append(((after - 0.5) ** 2).item())
        at -= 0.5 * 2 * (after - 0.5) * (1 - after**2) * state
        state = after
    with engine.no_grad():
        w.copy_(at)
    return losses


# 6.5


def values_and_gradient(shares: Callable, scores: list[float], weights: list[float]) -> list[Any]:
    x = engine.tensor(scores, requires_grad=True)
    made = shares(x)
    (made * engine.tensor(weights)).sum().backward()
    return [made.detach(), x.grad]


def shares_trial(shares: Callable) -> Iterator[tuple]:
    for scores, weights in (([0.0, 1.0], [1.0, 0.0]), ([1.0, 2.0, 3.0], [0.5, -1.0, 2.0])):
        shown = f"scores = {scores}: the shares, and the gradient of (shares * {weights}).sum()"
        yield shown, values_and_gradient, shares, scores, weights


def shares_more(shares: Callable) -> Iterator[tuple]:
    yield "", values_and_gradient, shares, [-1.0, 0.5, 0.0, 2.0], [1.0, 2.0, 3.0, 4.0]


def without_notes(scores: engine.Tensor) -> engine.Tensor:
    e = scores.exp()
    with engine.no_grad():
        e /= e.sum()
    return e


def all_without_notes(scores: engine.Tensor) -> engine.Tensor:
    return without_notes(scores.detach())


def constant_whole(scores: engine.Tensor) -> engine.Tensor:
    e = scores.exp()
    return e / e.sum().detach()


def new_leaf(scores: engine.Tensor) -> engine.Tensor:
    e = scores.detach().exp()
    return (e / e.sum()).requires_grad_()


EXERCISES = (
    Exercise(
        key="07.1",
        points=1,
        answer={"a", "d", "f"},
        wrong=(
            ({"a", "b", "d", "e", "f"}, "Those are all that take notes. But only leaves keep what arrives."),
            ({"a", "d", "e", "f"}, "One of them was made from random numbers and then multiplied. Which is the leaf?"),
            ({"a", "b", "d", "f"}, "One of them came out of a multiplication: it is a result, not a leaf."),
            ({"a", "c", "d", "f"}, "All of these are leaves. But for one of them, nobody asked for the slope."),
            ({"a", "d"}, "There is one more: a leaf is what no operation made *since it was asked to take notes*."),
        ),
        hints=(
            "Two questions to each: is it a leaf, and was it asked to take notes?",
            "What comes out of an operation on something that takes notes is a result. Which have a grad_fn?",
            "b and e have a grad_fn, c was never asked. That leaves three.",
        ),
    ),
    Exercise(
        key="07.2",
        points=2,
        answer=one_by_one,
        trial=mean_trial,
        hidden=mean_more,
        wrong=(
            (summed, "That is the sum of the gradients, and not their mean."),
            (
                lambda losses, w: engine.stack(one_each(losses, w)).mean(),
                "The mean goes over the elements of w, too. Each of them has a mean of its own: dim=0.",
            ),
            (
                lambda losses, w: engine.autograd.grad(sum(losses) / len(losses), w),
                "autograd.grad gives a tuple, here with one entry. Take it out.",
            ),
            (left_behind, "w.grad does not hold what it held before your function was called."),
            (
                cleared_at_the_end,
                "It works only while w.grad is None. What was in there before has been added, and then thrown away.",
            ),
            (
                divided_with_the_rest,
                "What was in w.grad before has been added to, divided with the rest, and then thrown away.",
            ),
            (
                put_back_by_name,
                "A second name for w.grad keeps nothing: backward() adds to that very tensor.",
            ),
            (
                cleared_at_both_ends,
                "The mean is right. But what w.grad held before your function was called is lost.",
            ),
            (
                without_retaining,
                "Two of the losses share notes, and the first way back threw them away. Go back once for all of them.",
            ),
        ),
        hints=(
            "What does w.grad hold when your function is called, and what after a backward() in it?",
            "autograd.grad hands gradients over and leaves .grad alone. The slope of a mean is the mean of the slopes.",
            "(gradient,) = engine.autograd.grad(..., w)  # of one number, made from all the losses",
        ),
    ),
    Exercise(
        key="07.3",
        points=1,
        answer=by_formula,
        trial=walk_trial,
        hidden=walk_more,
        wrong=(
            (trained(clear, leave), "The old slopes are still in w.grad in the second round, and are added to."),
            (
                trained(leave, clear),
                "You clear after backward() and before the step: then there is nothing to step along.",
            ),
            (
                trained(leave, to_zero),
                "w does not move: between backward() and the step the slope is set to zero.",
            ),
            (
                zeroed_too_early,
                "In the first round w.grad is None: there is nothing to be zeroed. Clear after the step.",
            ),
            (
                another_w,
                "`w = w - ...` makes another tensor, which takes no notes. The step must change w itself: `w -= ...`.",
            ),
            (only_the_last, "One step at the end, along the sum of all slopes. There should be a step in each round."),
        ),
        hints=(
            "What does w.grad hold in the second round, when backward() is done?",
            "One line is missing in the loop. It may stand before backward(), or after the step.",
            "w.grad = ...",
        ),
    ),
    Exercise(
        key="07.4",
        points=2,
        answer=read_by_formula,
        trial=read_trial,
        hidden=read_more,
        wrong=(
            (
                reading(carried=lambda state: state, retain=True),
                "The notes of the rounds before are kept, but w has been changed since: they are no longer true.",
            ),
            (
                reading(carried=lambda state: state.clone()),
                "The state of the second round still hangs on the first one, whose notes are gone. (A clone does, too; "
                "and `state.detach()` must be given the name `state`.)",
            ),
            (
                reading(state=lambda state: state.detach()),
                "The state is cut off before its loss is made: nothing is left that requires a gradient.",
            ),
            (
                reading(carried=lambda state: engine.tensor(1.0)),
                "The state begins at 1 again in each round. It should be carried on.",
            ),
            (
                reading(loss=lambda loss: loss),
                "The state is right. But each loss in the list holds on to its notes; `item()` takes out the number.",
            ),
            (
                reading(loss=lambda loss: loss.detach()),
                "No notes hang on the losses, but they are still tensors. Plain numbers are asked for: `item()`.",
            ),
        ),
        hints=(
            "Which tensor of the second round is older than the second round?",
            "Cut the state off before it goes into the next round, once backward() is done. And item() gives a number.",
            "losses.append(loss.item())\nstate = ...",
        ),
    ),
    Exercise(
        key="07.5",
        points=2,
        answer=lambda scores: engine.softmax(scores, 0),
        trial=shares_trial,
        hidden=shares_more,
        wrong=(
            (
                without_notes,
                "What exp remembers is still written over: `/=` and `div_` do that, inside of `no_grad` too.",
            ),
            (all_without_notes, "The shares are right, but they have no past: no gradient gets back to the scores."),
            (
                constant_whole,
                "The shares are right, the gradient is not: each score acts on the sum, too, and to the notes your sum "
                "is a constant. (With `detach` and with `.data` nothing warns of that.)",
            ),
            (new_leaf, "The shares are right, but they have lost their past: no gradient gets back to the scores."),
        ),
        hints=(
            "exp remembers its result. Which line writes over it?",
            "Make a new tensor, and leave the one that exp remembers as it is.",
            "return e / ...",
        ),
    ),
)
