"""Lesson 07, the life of the graph: the exercises' trials, oracles, usual mistakes and hints."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import engine
from course.judging.words import Exercise, changed, knob, mistakes, properties

# 7.2


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
    w = knob([0.5, -1.0], before=[7.0, 8.0])
    yield "", mean_gradient, [w.sum(), (w * w).sum(), w.exp().sum(), w[0] * w[1]], w


def one_each(losses: list[engine.Tensor], w: engine.Tensor) -> list[engine.Tensor]:
    return [engine.autograd.grad(loss, w, retain_graph=True)[0] for loss in losses]


def one_by_one(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    return engine.stack(one_each(losses, w)).mean(0)


def mean_without_notes(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    with engine.no_grad():
        mean = sum(losses) / len(losses)
    return engine.autograd.grad(mean, w)[0]


def summed(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    return engine.autograd.grad(sum(losses), w)[0]


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


def with_what_was_before(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    found = one_by_one(losses, w)
    return found if w.grad is None else found + w.grad


def running_total(losses: list[engine.Tensor], w: engine.Tensor) -> engine.Tensor:
    """Adds up .grad after each loss, without clearing in between."""
    each = one_each(losses, w)
    return sum(sum(each[: k + 1]) for k in range(len(each))) / len(each)


# 7.3


def in_parts(gradient_in_parts: Callable, n: int, size: int, before: float | None = None) -> dict[str, Any]:
    w = knob(0.5, before)
    xs, ys = engine.arange(1.0, n + 1), engine.arange(1.0, n + 1) ** 2
    arrived: list[int] = []  # each time, how often the notes have saved something since the time before
    kept, saves = [0], [0]

    def arriving(g: engine.Tensor) -> None:
        arrived.append(saves[0])
        saves[0] = 0

    w.register_hook(arriving)

    def keeping(saved: engine.Tensor) -> engine.Tensor:
        saves[0] += 1
        kept.append(saved.numel())
        return saved

    with engine.autograd.graph.saved_tensors_hooks(keeping, lambda saved: saved):
        found = gradient_in_parts(w, xs, ys, size)
    gradient = found.clone() if isinstance(found, engine.Tensor) else found
    parts = -(-n // size)
    enough = len(arrived) >= parts  # more often is slower, and needs no more memory
    together = enough and sum(map(bool, arrived)) < parts  # one part's notes were taken before another went back
    return {"gradient": gradient, "once for each part": enough, "too many at once": max(kept) > size or together}


def parts_trial(gradient_in_parts: Callable) -> Iterator[tuple]:
    for n, size, before in ((4, 2, None), (5, 2, 10.0), (3, 3, None)):
        left = "" if before is None else f", with {before} in w.grad from before"
        shown = (
            f"{n} examples, size = {size}{left}: the gradient, whether something has arrived at w for each part, and "
            "whether the notes kept more than `size` examples at once"
        )
        yield shown, in_parts, gradient_in_parts, n, size, before
    yield "", in_parts, gradient_in_parts, 7, 3, -2.0
    yield "", in_parts, gradient_in_parts, 6, 1


def by_parts(w: engine.Tensor, xs: engine.Tensor, ys: engine.Tensor, size: int) -> Any:
    w.grad = None
    for first in range(0, len(xs), size):
        x, y = xs[first : first + size], ys[first : first + size]
        loss = ((w * x - y) ** 2).mean() * (len(x) / len(xs))
        loss.backward()
    return w.grad


def with_share(share: str) -> Callable:
    """Multiply a part's loss by something other than its share."""
    return changed(by_parts, "len(x) / len(xs)", share)


def back_once(w: engine.Tensor, xs: engine.Tensor, ys: engine.Tensor, size: int) -> Any:
    w.grad = None
    sum(((w * x - y) ** 2).sum() for x, y in zip(xs.split(size), ys.split(size), strict=True)).div(len(xs)).backward()
    return w.grad


def not_squared(w: engine.Tensor, xs: engine.Tensor, ys: engine.Tensor, size: int) -> Any:
    for _ in range(0, len(xs), size):
        (w * 0).backward()
    w.grad = xs.mean()
    return w.grad


def all_computed_first(w: engine.Tensor, xs: engine.Tensor, ys: engine.Tensor, size: int) -> Any:
    w.grad = None
    squares = (w * xs - ys) ** 2
    for first in range(0, len(xs), size):
        (squares[first : first + size].sum() / len(xs)).backward(retain_graph=True)
    return w.grad


# 7.4


def read_through(read: Callable, numbers: list[float]) -> dict[str, Any]:
    w = engine.tensor(1.5, requires_grad=True)
    losses = read(w, numbers)
    each = losses if isinstance(losses, list | tuple) else []
    graphs = sum(isinstance(loss, engine.Tensor) and loss.requires_grad for loss in each)
    return {"losses": losses, "w": w.item(), "losses with a graph": graphs}


def read_trial(read: Callable) -> Iterator[tuple]:
    what = "the losses, where w is in the end, and how many losses hold on to a graph"
    for numbers in ([0.0], [0.0, 0.5, -0.5]):
        yield f"w = 1.5, numbers = {numbers}: {what}", read_through, read, numbers
    yield "", read_through, read, [0.3, -1.0, 0.2, 0.9, 0.0]


def read(w: engine.Tensor, numbers: list[float]) -> list[Any]:
    state, losses = engine.tensor(1.0), []
    for number in numbers:
        state = (w * state + number).tanh()
        loss = (state - 0.5) ** 2
        loss.backward()
        with engine.no_grad():
            w -= 0.5 * w.grad
        w.grad = None
        losses.append(loss.item())
        state = state.detach()
    return losses


retaining = changed(read, "state = state.detach()", "", "backward()", "backward(retain_graph=True)")


def judged_late(w: engine.Tensor, numbers: list[float], again: bool = False) -> list[float]:
    """Computes the loss (again: the state to be carried on) anew, after the step."""
    state, losses = engine.tensor(1.0), []
    for number in numbers:
        loss = ((w * state + number).tanh() - 0.5) ** 2
        before = ((w * state + number).tanh()).detach()
        loss.backward()
        with engine.no_grad():
            w -= 0.5 * w.grad
            after = (w * state + number).tanh()
        w.grad = None
        losses.append(loss.item() if again else ((after - 0.5) ** 2).item())
        state = after if again else before
    return losses


def one_step_at_the_end(w: engine.Tensor, numbers: list[float]) -> list[float]:
    state, losses = engine.tensor(1.0), []
    for number in numbers:
        state = (w * state + number).tanh()
        loss = (state - 0.5) ** 2
        loss.backward(retain_graph=True)
        losses.append(loss.item())
    with engine.no_grad():
        w -= 0.5 * w.grad
    w.grad = None
    return losses


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


# 7.5


def values_and_gradient(shares: Callable, scores: list[float], weights: list[float]) -> list[Any]:
    x = engine.tensor(scores, requires_grad=True)
    made = shares(x)
    (made * engine.tensor(weights)).sum().backward()
    return [made.detach(), x.grad]


def shares_trial(shares: Callable) -> Iterator[tuple]:
    for scores, weights in (([0.0, 1.0], [1.0, 0.0]), ([1.0, 2.0, 3.0], [0.5, -1.0, 2.0])):
        shown = f"scores = {scores}: the shares, and the gradient of (shares * {weights}).sum()"
        yield shown, values_and_gradient, shares, scores, weights
    yield "", values_and_gradient, shares, [-1.0, 0.5, 0.0, 2.0], [1.0, 2.0, 3.0, 4.0]


def share(scores: engine.Tensor) -> engine.Tensor:
    e = scores.exp()
    return e / e.sum()


without_notes = changed(share, "return e / e.sum()", "with engine.no_grad(): e /= e.sum()\n    return e")


def one_by_one_in_place(scores: engine.Tensor) -> engine.Tensor:
    e = scores.exp()
    total = e.sum().item()
    for k in range(len(e)):
        e[k] = e[k] / total
    return e


def far(one: Any, other: Any) -> bool:
    return bool(abs(one - other).max() > 1e-3)


def divided_by(whole: Callable) -> Callable:
    return lambda scores: scores.exp() / whole(scores)


EXERCISES = (
    Exercise(
        key="07.1",
        points=1,
        answer=(3.0, 8.0, 12.0, 6.0),
        wrong=mistakes(
            (3.0, 5.0, 12.0, 6.0),
            "The second line does not *set* w.grad: what arrives is added to what is there.",
            (3.0, 8.0, 20.0, 26.0),
            "w.grad was cleared before the third line, and set to zero before the fourth.",
        ),
        entries={
            1: (
                (6, "That is 3 * w itself. How does it move when w moves?"),
                "Nothing was there before. What arrives is the slope of 3 * w, which is the same everywhere.",
            ),
            2: (
                (6, "In `w * w` the knob is both factors: two paths, 2 along each."),
                (7, "There is a third path, the one through `+ w`."),
                (3, "Something arrives along three paths: two lead through `w * w`, and one through `+ w`."),
                "What was there stays. What arrives along three paths is added: two lead through `w * w`, one through "
                "`+ w`.",
            ),
            3: (
                (20, "w.grad was cleared before."),
                (4, "Three factors, three paths: along each comes the product of the two others."),
                (8, "There are three factors, and so three paths."),
                (6, "Along each of the three paths comes the product of the two *other* factors, which is 4."),
                "Nothing was there, since w.grad was cleared. Three paths lead back, one through each factor.",
            ),
            4: (
                (0, "zero_() sets w.grad to zero once. What arrives after that is added to the zero."),
                (18, "zero_() sets w.grad to zero: nothing is left of what was there."),
                (3, "Two paths lead through `u * u`; along each comes u, which is 3."),
                (4, "Along the paths comes u, and not w. u is 3."),
                (9, "That is u * u itself. How does it move when w moves?"),
                "A zero was there. Two paths lead through `u * u`, and then one from u to w.",
            ),
        },
        understood="Slopes are multiplied along a path, added where paths meet, and added to what is in .grad already.",
        hints=(
            "Each line: along which paths does a slope come back to w, and is there something in w.grad already?",
            "Multiply along a path, add where paths meet; then add to what is there.",
            "3; then 3 and 4 and 1; then three times 4; then twice ...",
        ),
    ),
    Exercise(
        key="07.2",
        points=2,
        answer=one_by_one,
        trial=mean_trial,
        wrong=mistakes(
            lambda losses, w: one_each(losses, w)[-1] / len(losses),
            "That is the last gradient alone, divided by how many there are: is w.grad cleared before each?",
            lambda losses, w: sum(one_each(losses, w)) / 2,
            "Right for two losses. Divide by how many there are.",
            summed,
            "That is the sum of the gradients, and not their mean.",
            lambda losses, w: engine.stack(one_each(losses, w)).mean(),
            "The mean goes over the elements of w, too. Each of them has a mean of its own: dim=0.",
            lambda losses, w: engine.autograd.grad(sum(losses) / len(losses), w),
            "autograd.grad gives a tuple, here with one entry. Take it out.",
            lambda losses, w: one_each(losses, w)[-1],
            "That is the gradient of the last loss alone. Each one has taken the place of the one before.",
            lambda losses, w: one_each(losses, w)[0],
            "That is the gradient of the first loss alone.",
            lambda losses, w: sum(losses) / len(losses),
            "That is the mean of the losses themselves. How does it move when w moves?",
            lambda losses, w: engine.autograd.grad(w, sum(losses))[0],
            "No path leads from the first argument of `grad` back to the second. First comes what moves, a loss; "
            "then w itself.",
            mean_without_notes,
            "The mean was computed without notes, so no path leads back from it.",
            one_each,
            "Those are the gradients one by one, in a list. Their mean is asked for.",
            lambda losses, w: one_by_one(losses, w) / len(losses),
            "You have divided by the number of losses twice.",
            running_total,
            "The first gradient is in there several times: w.grad was not cleared between two losses, and so "
            "already held the sum.",
            lambda losses, w: engine.zeros_like(w),
            "You return the very tensor in which you then write zeros. `zero_()` writes into it, `None` does not.",
            changed(cleared_at_the_end, "found, w.grad = w.grad, None", "found = w.grad"),
            "w.grad does not hold what it held before your function was called.",
            cleared_at_the_end,
            "It works only while w.grad is None. What was in there before has been added, and then thrown away.",
            lambda losses, w: (summed(losses, w) + (0 if w.grad is None else w.grad)) / len(losses),
            "What was in w.grad before has been added to, and divided with the rest.",
            with_what_was_before,
            "What was in w.grad before is in the result, too: `backward()` adds to it. Set it aside first, and "
            "clear w.grad.",
            changed(put_back_by_name, ", before", ", None"),
            "What was in w.grad before has been added to, divided with the rest, and then thrown away.",
            put_back_by_name,
            "A second name for w.grad keeps nothing: backward() adds to that very tensor.",
            changed(cleared_at_the_end, "(sum(losses)", "w.grad = None; (sum(losses)"),
            "The mean is right. But what w.grad held before your function was called is lost.",
            lambda losses, w: sum(engine.autograd.grad(loss, w)[0] for loss in losses) / len(losses),
            "Two of the losses share notes, and the first `grad` threw them away. Go back once for all of them.",
        ),
        properties=properties(
            changed(put_back_by_name, "before = w.grad", "before, w.grad = w.grad, None", "retain_graph=True", ""),
            lambda did: did.error != "RuntimeError" or not did.shown.startswith("common"),
            "Two of the losses share notes, and the first `backward()` threw them away. Go back once, for all of them.",
            changed(put_back_by_name, "w.grad\n", "w.grad.clone(); w.grad = None\n"),
            lambda did: did.error not in ("AttributeError", "TypeError") or not did.shown.endswith("w.grad is None"),
            "`w.grad` may be None when your function is called, and None cannot do what a tensor can.",
        ),
        understood="The slope of a mean is the mean of the slopes; autograd.grad hands it over and leaves .grad alone.",
        hints=(
            "What does w.grad hold when your function is called, and what after a backward() in it?",
            "autograd.grad hands gradients over and leaves .grad alone. The slope of a mean is the mean of the slopes.",
            "(gradient,) = engine.autograd.grad(..., w)  # of one number, made from all the losses",
        ),
    ),
    Exercise(
        key="07.3",
        points=2,
        answer=by_parts,
        trial=parts_trial,
        wrong=mistakes(
            with_share("2 * len(x) / len(xs)"),
            "Twice what it should be: `backward()` twice for each part, or a part that comes by twice.",
            changed(by_parts, "xs[first : first + size], ys[first : first + size]", "xs[[first]], ys[[first]]"),
            "`xs[first]` is one example, the first of its part. A whole part is `xs[first : first + size]`.",
            changed(
                by_parts,
                "xs[first : first + size]",
                "xs[first : first + size + 1]",
                "ys[first : first + size]",
                "ys[first : first + size + 1]",
            ),
            "The parts overlap: the end of a slice is not included, so `first : first + size` is `size` examples.",
            with_share("1 / -(-len(xs) // size)"),
            "That is right if all parts are equally long. The last one is shorter here, and counts too much.",
            with_share("size / len(xs)"),
            "The last part may be shorter than `size`, and then it counts too much.",
            with_share("1 / 2"),
            "There are not always two parts. And the last one may be shorter.",
            with_share("1 / (len(xs) // size)"),
            "`//` rounds down: 5 examples in parts of 2 make three parts. And the last one is shorter.",
            with_share("1 / size"),
            "Each part's mean is divided by its length once more. What counts is which share of *all* it is.",
            with_share("1 / len(x)"),
            "A mean is divided by the length of the part already. What counts is which share of *all* it is.",
            with_share("len(x)"),
            "That is the slope of the *sum* over all examples. Their mean is asked for.",
            with_share("size"),
            "Multiplied by `size`, a mean becomes a sum. And then nothing divides by the number of all examples.",
            with_share("1 / len(xs)"),
            "Each part's mean is divided by the number of all examples. But a part has several of them.",
            with_share("1"),
            "Those are the means of the parts, added up. An example counts for one of its *part*; it should count "
            "for one of *all*.",
            with_share("len(x) / size"),
            "Each part is divided by `size`, so an example counts for one of its *part*; it should count for one "
            "of *all*.",
            changed(by_parts, "w.grad = None", ""),
            "What was in w.grad before the first part is in the result, too. It must be cleared once, at the "
            "beginning.",
            changed(by_parts, "loss.backward()", "loss.backward(); return w.grad"),
            "Only the first part comes by: your function returns before the loop is done.",
            changed(by_parts, "len(x) / len(xs)", "len(x)", "loss.backward()", "loss.backward(); w.grad /= len(xs)"),
            "What has arrived so far is divided again in every round. Divide the loss of each part.",
            changed(by_parts, "loss.backward()", "loss.backward(); w.grad.zero_()"),
            "w.grad is cleared after every part, so nothing is left in the end. Here adding is what you want.",
            not_squared,
            "The differences are not squared: the mean of their *squares* is asked for.",
            lambda w, xs, ys, size: (w * xs - ys).mean().detach().backward(),
            "The loss has been cut off from w before `backward()` is called.",
            changed(by_parts, "len(xs), size)", "len(xs) // size * size, size)"),
            "Some examples never come by: the last part is shorter than `size`, and was left out.",
            changed(by_parts, "return w.grad", "return w.grad.item()"),
            "The slope is right, but it is a plain number. Leave it a tensor: w may be a large one.",
            changed(by_parts, "loss = ", "w.grad = None; loss = "),
            "w.grad is cleared in every round: only the last part is left. Here adding is what you want.",
            changed(by_parts, "len(x) / len(xs)", "1", "loss = ", "w.grad = None; loss = "),
            "w.grad is cleared in every round: only the mean of the last part is left. Adding is what you want, "
            "but each part should count as much as its share of all examples.",
        ),
        properties=properties(
            back_once,
            lambda did: (
                did.result["once for each part"] or abs(did.result["gradient"] - did.expected["gradient"]) > 0.01
            ),
            "The notes of all parts are kept until the end, and the memory was too small for that: go back once "
            "for each part.",
            changed(by_parts, "return w.grad", ""),
            lambda did: did.result["gradient"] is not None,
            "It gives None. Is a `return` missing?",
            all_computed_first,
            lambda did: not did.result["once for each part"] or not did.result["too many at once"],
            "The notes hold more than `size` examples at once. Take a part of the examples, compute with that alone, "
            "and go back from it before you take the next part.",
        ),
        understood="Adding is what you want here, and each part counts as much as its share of the examples.",
        hints=(
            "Four examples in parts of two: how much does an example count in its part, and how much should it count?",
            "Each part counts as much as its share of the examples. The last part may be shorter than the others.",
            "(loss * len(x) / ...).backward()",
        ),
    ),
    Exercise(
        key="07.4",
        points=2,
        answer=read_by_formula,
        trial=read_trial,
        wrong=mistakes(
            retaining,
            "The notes of the rounds before are kept, but w has been changed since: they are no longer true.",
            changed(read, "state.detach()", "state.clone()"),
            "There is still a path from the second round to the first, whose notes are gone. (From a clone, too; "
            "and `state.detach()` must be given the name `state`.)",
            changed(read, ".tanh()", ".tanh().detach()"),
            "Here w has been cut off from its own loss: no path is left between them. Cut the state off later, "
            "once `backward()` is done.",
            changed(read, "state.detach()", "engine.tensor(1.0)"),
            "The state begins at 1 again in each round. It should be carried on.",
            changed(read, "w.grad = None", ""),
            "w.grad is not cleared: each step goes along the sum of all slopes so far.",
            judged_late,
            "Those are the losses *after* each step. The loss of a round is the one that it went back from.",
            functools.partial(judged_late, again=True),
            "The state was computed anew, with the changed w. Carry on the number that there was.",
            one_step_at_the_end,
            "The step is taken once, at the end. w should be trained after each number; and then the notes of the "
            "rounds before cannot be kept.",
            changed(
                read,
                "state = state.detach()",
                "",
                "backward()",
                "backward(retain_graph=True)",
                "w -= ",
                "w.data -= ",
            ),
            "The notes of all rounds are kept, and `.data` hides that w was changed: the slopes are wrong, and "
            "nothing says so.",
            changed(read, "state.detach()", "state.requires_grad_(False)"),
            "The state is a result, and cannot be told to take no notes. `detach()` makes a new tensor of it.",
            changed(read, "state.detach()", "number"),
            "The next state is the number that was read. What comes out of `tanh` should be carried on.",
            changed(read_by_formula, "((after - 0.5) ** 2)", "after"),
            "Those are the states. The losses are asked for: how far each state is from 0.5, squared.",
            changed(read, "state.detach()", "loss.detach()"),
            "The next state is the loss. What comes out of `tanh` should be carried on.",
            changed(read, "w -= ", "w += "),
            "The step goes uphill: it is subtracted, `w -= ...`.",
            changed(read, "loss.item()", "loss.detach().numpy()"),
            "The losses are NumPy arrays. A plain number comes from `item()`.",
            changed(read, "loss.item()", "round(loss.item(), 2)"),
            "The losses are rounded. Leave them as they are.",
            changed(read, "loss.item()", "loss.detach()"),
            "The losses have no notes behind them, but they are still tensors. A plain number comes from `item()`.",
        ),
        properties=properties(
            changed(read, "0.5 * w.grad", "0.0 * w.grad"),
            lambda did: did.result["w"] != 1.5,
            "w is where it was in the end: no step has reached the w that was given.",
            changed(read, "return losses", "return losses[-1]"),
            lambda did: isinstance(did.result["losses"], list),
            "The losses are asked for as a list, one for each number.",
            changed(read, "return losses", "return losses[:1]"),
            lambda did: len(did.result["losses"]) == len(did.expected["losses"]),
            "There is not one loss for each number. Where does your function return?",
            changed(read, "loss.item()", "str(loss.item())"),
            lambda did: not any(isinstance(loss, str) for loss in did.result["losses"]),
            "The losses are texts. Leave them numbers.",
            changed(read, "0.5 * w.grad", "0.1 * w.grad"),
            lambda did: len(did.expected["losses"]) > 1 or not 1.43 < did.result["w"] < 1.5,
            "The first step is not as long as it was: it is 0.5 times the slope.",
            changed(read, "loss.item()", "loss"),
            lambda did: did.result["losses with a graph"] == 0,
            "Each loss in the list holds on to its notes; `item()` takes out the number.",
        ),
        understood="What goes into the next round should be a number: cut off the state, and take out the losses.",
        hints=(
            "Which tensor of the second round is older than the second round?",
            "Cut the state off before the next round, once backward() is done. And item() gives you a plain number.",
            "losses.append(loss.item())\nstate = ...",
        ),
    ),
    Exercise(
        key="07.5",
        points=2,
        answer=lambda scores: engine.softmax(scores, 0),
        trial=shares_trial,
        wrong=mistakes(
            divided_by(lambda scores: scores.exp().norm()),
            "Divided by the length of e: the squares of the shares add up to 1, and not the shares.",
            lambda scores: scores**2 / (scores**2).sum(),
            "Those are shares of the squares. Of each score take `exp`.",
            without_notes,
            "What exp remembers is still written over: `/=` and `div_` do that, inside of `no_grad` too.",
            lambda scores: without_notes(scores.detach()),
            "The shares are right, but they have no past: no gradient gets back to the scores.",
            changed(share, "e.sum()", "e.sum().detach()"),
            "The shares are right, the gradient is not: each score acts on the sum, too, and to the notes your sum "
            "is a constant. (With `detach` and with `.data` nothing warns of that.)",
            changed(share, "return e / e.sum()", "e[:] = e / e.sum(); return e"),
            "`e[:] = ...` writes into e, too, and e is what exp remembers. Make a new tensor.",
            changed(share, "return e", "return e.detach()"),
            "The shares are right, the gradient is not: above the line, e has been cut off from the scores.",
            lambda scores: (scores / scores.sum()).exp(),
            "You divide first, and take `exp` after that. First `exp` of each score, and then divide by their sum.",
            lambda scores: scores / scores.sum(),
            "Those are shares of the scores themselves: the `exp` is missing.",
            divided_by(lambda scores: scores.sum()),
            "Divided by the sum of the *scores*. Take the sum of their exp.",
            lambda scores: scores.exp() - scores.exp().sum(),
            "The sum is subtracted. Each exp is *divided* by it.",
            lambda scores: engine.log_softmax(scores, 0),
            "Those are the logarithms of the shares.",
            divided_by(lambda scores: scores.exp().mean()),
            "Divided by the mean: the shares do not add up to 1.",
            divided_by(lambda scores: scores.exp().max()),
            "Divided by the largest: the shares do not add up to 1.",
            lambda scores: scores.exp_() / scores.sum(),
            "`exp_` writes into the scores that were given, and they are a knob. `exp` makes a new tensor.",
            lambda scores: [e.item() / scores.exp().sum().item() for e in scores.exp()],
            "Plain numbers have no past: no gradient gets back to the scores. Stay with tensors.",
            changed(share, ".exp()", ".detach().exp()", "e / e.sum()", "(e / e.sum()).requires_grad_()"),
            "The shares are right, but they have lost their past: no gradient gets back to the scores.",
        ),
        properties=properties(
            one_by_one_in_place,
            lambda did: did.error != "RuntimeError",
            "`backward()` refuses: a number that exp remembers was written over, even if one at a time.",
            changed(share, ".exp()", ".exp().clone()", "return e / e.sum()", "e.data /= e.data.sum(); return e"),
            lambda did: far(did.result[0], did.expected[0]) or not far(did.result[1], did.expected[1]),
            "The shares are right, the gradient is not: a part of the computation is not in the notes.",
        ),
        understood="Writing in place is refused where a node needs what was there; a new tensor leaves it as it is.",
        hints=(
            "exp remembers its result. Which line writes over it?",
            "Make a new tensor, and leave the one that exp remembers as it is.",
            "return e / ...",
        ),
    ),
)
