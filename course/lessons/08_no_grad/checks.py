"""Lesson 08, taking no notes: the exercises' trials, oracles, usual mistakes and hints."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import engine
from course.judging.words import Did, Exercise, changed, knob, mistakes, properties

# 8.2


FAILS = "predict has stopped with an error"


def examined(examine: Callable, ys: list[float], on: bool = True, fails: bool = False) -> dict[str, Any]:
    """Return what comes of it, beginning with the switch on or off. `fails`: predict raises an error."""
    w = knob(2.0)
    notes = []

    def predict(xs: engine.Tensor) -> engine.Tensor:
        made = w * xs + 1
        notes.append(made.requires_grad)
        if fails:
            raise ZeroDivisionError(FAILS)
        return made

    with engine.set_grad_enabled(on):
        try:
            found = examine(predict, engine.arange(len(ys), dtype=engine.float32), engine.tensor(ys))
        except ZeroDivisionError as error:
            found = str(error)
        return {"returned": found, "predict took notes": any(notes), "notes afterwards": engine.is_grad_enabled()}


def examine_trial(examine: Callable) -> Iterator[tuple]:
    yield "predict(x) = 2 * x + 1, xs = [0, 1, 2], ys = [1, 3, 6]", examined, examine, [1.0, 3.0, 6.0]
    yield "the same, with ys = [0, 0, 0]", examined, examine, [0.0, 0.0, 0.0]
    yield "the same, where no notes were taken before either", examined, examine, [0.0, 0.0, 0.0], False
    yield "the same, where predict stops with an error", examined, examine, [0.0, 0.0, 0.0], True, True
    yield "", examined, examine, [4.0, -1.0, 0.5, 2.0, 2.0]
    yield "", examined, examine, [4.0, -1.0], False


def by_hand(predict: Callable, xs: engine.Tensor, ys: engine.Tensor) -> float:
    with engine.inference_mode():
        distances = [(p - y) ** 2 for p, y in zip(predict(xs).tolist(), ys.tolist(), strict=True)]
    return sum(distances) / len(distances)


def examine(predict: Callable, xs: engine.Tensor, ys: engine.Tensor) -> float:
    with engine.no_grad():
        return ((predict(xs) - ys) ** 2).mean().item()


def never_on_again(predict: Callable, xs: engine.Tensor, ys: engine.Tensor) -> float:
    engine.set_grad_enabled(False)
    return ((predict(xs) - ys) ** 2).mean().item()


def put_back_by_hand(predict: Callable, xs: engine.Tensor, ys: engine.Tensor) -> float:
    before = engine.is_grad_enabled()
    found = never_on_again(predict, xs, ys)
    engine.set_grad_enabled(before)
    return found


def left_the_other_way(predict: Callable, xs: engine.Tensor, ys: engine.Tensor) -> float:
    before = engine.is_grad_enabled()
    try:
        return never_on_again(predict, xs, ys)
    finally:
        engine.set_grad_enabled(not before)


def swallowed(predict: Callable, xs: engine.Tensor, ys: engine.Tensor) -> float:
    try:
        return by_hand(predict, xs, ys)
    except ZeroDivisionError:
        return math.inf


# 8.3


def walked(best_of_walk: Callable, start: list[float], widths: list[float]) -> list[Any]:
    w = knob(start)
    best = best_of_walk(w, widths)
    return [best.detach(), best.requires_grad] if isinstance(best, engine.Tensor) else [best, None]


def best_trial(best_of_walk: Callable) -> Iterator[tuple]:
    what = "what it returns, and whether that takes notes"
    for widths in ([0.25, 0.25, 1.5, 0.1], [0.5, 0.1], [2.0, 0.25, 0.25, 1.5], [0.25, 0.25, 0.25]):
        yield f"w = [4., 2.], widths = {widths}: {what}", walked, best_of_walk, [4.0, 2.0], widths
    yield "", walked, best_of_walk, [1.0, -3.0, 0.5], [0.1, 0.3, 0.9, 1.2, 0.1, 2.0]


def by_formula(w: engine.Tensor, widths: list[float]) -> engine.Tensor:
    """Walk by the slope of a square, 2 w: each step multiplies w by 1 - 2 * width."""
    factor, found = 1.0, []
    for width in widths:
        found.append(factor)
        factor *= 1 - 2 * width
    return w.detach() * min(found, key=abs)


def best_of_walk(w: engine.Tensor, widths: list[float]) -> engine.Tensor:
    lowest, best = math.inf, w
    for width in widths:
        loss = (w * w).sum()
        if loss.item() < lowest:
            lowest, best = loss.item(), w.detach().clone()
        loss.backward()
        with engine.no_grad():
            w -= width * w.grad
        w.grad = None
    return best


def after_the_step(w: engine.Tensor, widths: list[float]) -> engine.Tensor:
    lowest, best = float("inf"), w
    for width in widths:
        loss = (w.detach() ** 2).sum().item()
        with engine.no_grad():
            w *= 1 - 2 * width
        if loss < lowest:
            lowest, best = loss, w.detach().clone()
    return best


def first_valley(w: engine.Tensor, widths: list[float]) -> engine.Tensor:
    factors = [math.prod(1 - 2 * width for width in widths[:k]) for k in range(len(widths))]
    worse = (k for k in range(1, len(factors)) if abs(factors[k]) >= abs(factors[k - 1]))
    return w.detach() * factors[next(worse, len(factors)) - 1]


# 8.4


def frozen(freeze: Callable, learn: list[bool], n: int) -> dict[str, Any]:
    parameters = [engine.ones(2, requires_grad=yes) for yes in learn]
    for p, yes in zip(parameters, learn, strict=True):
        p.grad = engine.ones(2) if yes else None
    places = {id(p): f"place {k}" for k, p in enumerate(parameters)}
    given = list(parameters)  # the attempt may do what it likes with it
    came: dict[str, Any] = {
        "returned": [places.get(id(p), "another tensor") for p in freeze(given, n)],
        "requires_grad": [p.requires_grad for p in parameters],
        "old .grad in the frozen": [p.grad is not None for p in parameters[:n]],
    }
    # What is as it should be is not spoken of.
    if any("requires_grad_" in vars(p) for p in parameters):
        came["written over"] = "requires_grad_"
    if [id(p) for p in given] != [id(p) for p in parameters]:
        came["changed"] = "the list that was given"
    if other := [f"place {k}" for k, p in enumerate(parameters) if p.tolist() != [1.0, 1.0]]:
        came["numbers changed"] = other
    if lost := [f"place {k}" for k in range(n, len(learn)) if learn[k] and parameters[k].grad is None]:
        came["lost their .grad"] = lost
    return came


def freeze_trial(freeze: Callable) -> Iterator[tuple]:
    for learn, n in (([True, True, True], 1), ([False, False, True], 1), ([True, True], 2), ([True, True], 0)):
        yield f"requires_grad is {learn}, each that learns has a .grad, n = {n}", frozen, freeze, learn, n
    yield "", frozen, freeze, [False, True, False, True, False], 3


def by_place(parameters: list[engine.Tensor], n: int) -> list[engine.Tensor]:
    for place, p in enumerate(parameters):
        p.requires_grad = place >= n
        p.grad = p.grad if p.requires_grad else None
    return [p for p in parameters if p.requires_grad]


def freeze(parameters: list[engine.Tensor], n: int) -> list[engine.Tensor]:
    for place, p in enumerate(parameters):
        p.requires_grad_(place >= n)
        p.grad = None if place < n else p.grad
    return parameters[n:]


def frozen_wrongly(did: Did) -> tuple[bool, bool]:
    """Tell whether one of the first n learns, and whether one of the others does not."""
    pairs = set(zip(did.result["requires_grad"], did.expected["requires_grad"], strict=True))
    return (True, False) in pairs, (False, True) in pairs


def from_the_back(did: Did) -> bool:
    is_, should = list(did.result["requires_grad"]), list(did.expected["requires_grad"])
    return is_ == should[::-1] != should


# 8.5


def line(w: engine.Tensor, position: float) -> engine.Tensor:
    return w[0] * position + w[1]


def bent(w: engine.Tensor, position: float) -> engine.Tensor:
    return (w[0] * position).tanh() + w[1] * w[1]


def loss_and_gradient(step_loss: Callable, judge: Callable, *given: float) -> list[Any]:
    w = knob([0.5, 0.1])
    loss = step_loss(judge, w, *given)
    if not isinstance(loss, engine.Tensor):
        return [loss, None]
    loss.backward()
    return [loss.detach(), w.grad]


def loss_trial(step_loss: Callable) -> Iterator[tuple]:
    what = "the loss, and the gradient of w = [0.5, 0.1]"
    for now, following, reward in ((1.0, 2.0, 1.0), (3.0, 1.0, -0.5)):
        shown = f"judge(w, x) = w[0] * x + w[1], position {now}, following {following}, reward {reward}: {what}"
        yield shown, loss_and_gradient, step_loss, line, now, following, reward
    yield "", loss_and_gradient, step_loss, bent, 0.7, -0.4, 0.3


def step_loss(judge, w, position, following, reward):
    target = (reward + 0.9 * judge(w, following)).detach()
    return (judge(w, position) - target) ** 2


MOVES = " And the target does not hold still."
TARGET, LOSS = "reward + 0.9 * judge(w, following)", "(judge(w, position) - target) ** 2"
FORMULAS = (
    (TARGET, "0.9 * judge(w, following)", "The reward is missing from the target."),
    (
        TARGET,
        "0.9 * (reward + judge(w, following))",
        "The 0.9 belongs to the judgement that follows alone, not to the sum.",
    ),
    (TARGET, "reward + judge(w, following)", "The target is the reward plus 0.9 times the judgement that follows."),
    (
        TARGET,
        "0.9 * reward + judge(w, following)",
        "The 0.9 stands at the reward. It belongs to the judgement that follows.",
    ),
    (LOSS, "target - judge(w, position)", "That is the difference, and from the wrong side. Its square is asked for."),
    (
        TARGET,
        "reward - 0.9 * judge(w, following)",
        "A sign is wrong: the target is reward *plus* 0.9 times the other judgement. (Parentheses?)",
    ),
    (TARGET, "-" + TARGET, "The reward is subtracted. It is added to the target."),
    (LOSS, "judge(w, position) - target", "That is the difference. Its square is asked for."),
    (LOSS, "(judge(w, position) - target).abs()", "That is the distance. Its square is asked for."),
    (LOSS, "judge(w, position)**2 - target**2", "Subtract first, then square."),
    (LOSS, "2 * (judge(w, position) - target)", "`* 2` doubles the difference. `** 2` squares it."),
    (TARGET, "judge(w, following)", "That is the other judgement alone. The target is reward + 0.9 times it."),
    (
        "position, following",
        "following, position",
        "The two positions are swapped: it is the judgement of the first that moves.",
    ),
)
MISTAKES = [
    part
    for old, new, says in FORMULAS
    for part in (changed(step_loss, old, new), says, changed(step_loss, old, new, ".detach()", ""), says + MOVES)
]


def of_cut_weights(
    judge: Callable, w: engine.Tensor, position: float, following: float, reward: float
) -> engine.Tensor:
    return (judge(w, position) - reward - 0.9 * judge(w.detach(), following)) ** 2


EXERCISES = (
    Exercise(
        key="08.1",
        points=1,
        answer=15.0,
        wrong=mistakes(
            33.0,
            "That is the slope of w**3 + w**2. But no path leads back through what was detached.",
            6.0,
            "What was detached has no slope of its own, but it is still a factor: the slope of 9 * w is not 0.",
            9.0,
            "You have one half of it. The loss has a second part, y, through which w acts, too.",
            24.0,
            "That is as if the other factor were cut off: 2 * 3 * 3, by way of y. But y is what was detached.",
            36.0,
            "That is the value of the loss. What is its slope?",
            27.0,
            "27 is the slope of w**3. But y.detach() counts as a plain 9, and there is a second part, y.",
            18.0,
            "9 for the first part is right. The second part is w * w: what is its slope at 3?",
            12.0,
            "6 for the second part is right. In the first, y.detach() counts as a plain 9.",
            10.0,
            "9 for the first part is right. The second part is w * w, and not w: what is its slope at 3?",
            7.0,
            "6 for the second part is right. In the first, the slope is the other factor: y.detach(), a plain 9.",
            0.0,
            "w acts twice: as the second factor of the first part, and in y.",
            3.0,
            "That is w itself. How many times as far does the loss move as w?",
        ),
        hints=(
            "As a number, y.detach() is 9. What has no past counts as a plain number.",
            "So the loss is, to the notes, 9 * w + w * w. What is its slope at 3?",
            "9 from the first part, and from the second one 2 * ...",
        ),
        understood="What is detached keeps its value as a factor, and has no slope of its own.",
    ),
    Exercise(
        key="08.2",
        points=1,
        answer=by_hand,
        trial=examine_trial,
        wrong=mistakes(
            changed(examine, ".mean()", ".max()"),
            "That is the largest of the squared distances. The mean is asked for.",
            changed(examine, ".mean()", ".median()"),
            "That is the one in the middle, the median. The mean is asked for.",
            changed(examine, ".item()", ".item() / 2"),
            "That is half of the mean. All of it is asked for.",
            swallowed,
            "predict stopped with an error, and your function said nothing of it. Let errors through: a `with` "
            "block does.",
            changed(examine, "no_grad()", "no_grad"),
            "The parentheses are missing: `with engine.no_grad():`.",
            never_on_again,
            "No notes are taken, and none afterwards either: your function leaves the switch off.",
            changed(put_back_by_hand, "set_grad_enabled(before)", "set_grad_enabled(True)"),
            "You switch the notes on at the end, whatever was before. Where they were off, they must stay off: "
            "`with engine.no_grad():` puts the switch back as it was.",
            put_back_by_hand,
            "If predict stops with an error, the line that puts the switch back is never reached. A `with` block "
            "puts it back then, too.",
            lambda predict, xs, ys: by_hand(predict, xs, ys) ** 0.5,
            "That is the square root of the mean. The mean itself is asked for.",
            lambda predict, xs, ys: by_hand(predict, ys, xs),
            "xs and ys are swapped: predict gets xs, and ys are the right answers.",
            changed(examine, " ** 2", ""),
            "You left out the square: distances above and below cancel.",
            changed(examine, " ** 2", "", ".item()", ".item() ** 2"),
            "Square each distance first, and then take the mean.",
            changed(examine, ") ** 2", ").abs()"),
            "That is the mean of the distances. That of their squares is asked for.",
            changed(examine, "predict(xs)", "predict(ys)"),
            "You ask predict about ys. It gets xs, and ys are the right answers.",
            changed(examine, ".mean()", ".sum()"),
            "That is the sum of the squared distances, and not their mean.",
            changed(examine, ".item()", ""),
            "The number is right, but it is still in its box: `item()` takes it out.",
            lambda predict, xs, ys: round(by_hand(predict, xs, ys), 2),
            "The number is rounded. Leave it as it is.",
        ),
        properties=properties(
            changed(examine, "with engine.no_grad():", "if True:"),
            lambda did: not did.result["predict took notes"],
            "The number is right, but predict took notes: call it inside the block. `item()` or `detach()` later "
            "do not undo it.",
            left_the_other_way,
            lambda did: did.result["notes afterwards"] == did.expected["notes afterwards"],
            "Afterwards the switch does not stand as it did before. A `with` block puts it back by itself.",
            changed(examine, ".mean().item()", ".tolist()"),
            lambda did: isinstance(did.result["returned"], float | int) or did.expected["returned"] == FAILS,
            "A plain number is asked for, the mean.",
        ),
        hints=(
            "Where is predict called: inside your block, or before it?",
            "A `with engine.no_grad():` block puts the switch back by itself, and holds for all that is called in it.",
            "with engine.no_grad():\n    return ((predict(xs) - ys) ** 2)...",
        ),
        understood="The block holds for everything that is called inside it, and puts the switch back as it was.",
    ),
    Exercise(
        key="08.3",
        points=1,
        answer=by_formula,
        trial=best_trial,
        wrong=mistakes(
            lambda w, widths: by_formula(w, [*widths, 0.0]),
            "That is w after the last step. There is no round any more to which it belongs.",
            changed(best_of_walk, "w.detach().clone()", "w.detach()"),
            "What you keep shares its memory with w, and w goes on changing: it shows the last one.",
            changed(best_of_walk, "w.detach().clone()", "w"),
            "`best = w` is a second name for the same tensor. It takes notes, and goes on changing.",
            changed(best_of_walk, "w.detach().clone()", "w.clone()"),
            "The numbers are right, but what you return takes notes. (A clone of what takes notes does, too.)",
            after_the_step,
            "You write down w after the step. The loss belongs to w as it was before.",
            changed(best_of_walk, "loss.item() < lowest", "True"),
            "The last w is returned, not the best one. Is `best` set only where the loss is lower, and is `lowest` "
            "written down there, too?",
            changed(best_of_walk, "math.inf", "-math.inf", "<", ">"),
            "That is where the loss was *highest*. Which way round do you compare?",
            first_valley,
            "The walk is left at the first round that is worse. A later one may be better.",
            changed(best_of_walk, "w.grad = None", ""),
            "w.grad is not cleared: each step goes along the sum of all slopes so far.",
            lambda w, widths: by_formula(w, widths).tolist(),
            "The numbers are right, but they are a list. A tensor is asked for.",
            lambda w, widths: (by_formula(w, widths) ** 2).sum().item(),
            "That is the lowest loss. The w that belongs to it is asked for.",
            lambda w, widths: w.detach().clone(),
            "That is where the walk begins. Which round has the lowest loss?",
        ),
        properties=properties(
            changed(best_of_walk, "w.detach().clone()", "w.clone().requires_grad_(False)"),
            lambda did: did.error != "RuntimeError",
            "A result cannot be told to take notes, or to take none: a clone of w is a result, and so is the w of "
            "`w = w - ...`. `clone().detach()` gives you a copy without notes; `w -= ...` under `no_grad` keeps "
            "the knob.",
        ),
        hints=(
            "`w.detach()` is no copy. Whose memory is it?",
            "`detach` cuts off the past, `clone` gives numbers of its own. Which of the two is needed here?",
            "best = w.detach()...",
        ),
        understood="`detach` cuts off the past and shares the memory; `clone` gives numbers of one's own.",
    ),
    Exercise(
        key="08.4",
        points=2,
        answer=by_place,
        trial=freeze_trial,
        wrong=mistakes(
            changed(freeze, "p.requires_grad_(place >= n)", "p = p.detach() if place < n else p"),
            "Nothing is frozen. `p = p.detach()` gives the name p to another tensor.",
            changed(freeze, "place >= n", "False"),
            "All of them are frozen. Only the first n should be; the others should learn, whatever was before.",
            changed(freeze, "place >= n", "False", "None if place < n else p.grad", "None"),
            "All of them are frozen, and have lost their gradients. Only the first n should; the others learn.",
            changed(freeze, "p.requires_grad_(place >= n)", "if place < n: p.requires_grad_ = False"),
            "The old gradients are gone, but nothing is frozen. `p.requires_grad_ = False` calls nothing: it "
            "writes over the name of a method. Write `p.requires_grad_(False)`.",
            changed(freeze, "None if", "engine.zeros_like(p) if"),
            "Zeros in .grad are a gradient, too. To hold none: `p.grad = None`.",
            changed(freeze, "parameters[n:]", "parameters[:n]"),
            "You return the frozen ones. Those that learn are asked for.",
            lambda parameters, n: freeze(parameters[::-1], n)[::-1],
            "You freeze from the back. The first n are asked for, those at the front.",
            changed(freeze, "parameters[n:]", "parameters"),
            "You return all of them. Only those that learn are asked for.",
            changed(freeze, "parameters[n:]", "[p for p in parameters[n:] if p.grad is not None]"),
            "You return those that learned before. Those that learn now are asked for.",
        ),
        properties=properties(
            changed(freeze, "return", "for p in parameters: p.requires_grad_ = p.requires_grad\n    return"),
            lambda did: "written over" not in did.result,
            "`p.requires_grad_ = ...` calls nothing: it writes over the name of a method. Write "
            "`p.requires_grad_(False)`, or `p.requires_grad = False` without the underscore.",
            changed(freeze, "place >= n", "place < len(parameters) - n"),
            lambda did: not from_the_back(did),
            "You freeze the last n. The first n are asked for, those at the front.",
            changed(freeze, "place >= n", "True"),
            lambda did: from_the_back(did) or not frozen_wrongly(did)[0],
            "One of the first n still requires a gradient.",
            changed(freeze, "p.requires_grad_(place >= n)", "if place < n: p.requires_grad_(False)"),
            lambda did: from_the_back(did) or not frozen_wrongly(did)[1],
            "A parameter after the first n is frozen: it should learn, whatever was before.",
            changed(freeze, "p.grad = None if place < n else p.grad", ""),
            lambda did: not any(did.result["old .grad in the frozen"]),
            "A frozen parameter still has an old gradient in .grad, along which a step may go.",
            changed(freeze, "None if place < n else p.grad", "None"),
            lambda did: "lost their .grad" not in did.result,
            "The parameters that learn have lost their gradients, too. Only those of the frozen ones should go.",
            changed(freeze, "return", "[p.zero_() for p in parameters[:n]]; return"),
            lambda did: "numbers changed" not in did.result,
            "The numbers in a parameter were changed. A frozen parameter keeps them; it only stops learning.",
            changed(freeze, "return parameters[n:]", "del parameters[:n]; return parameters"),
            lambda did: "changed" not in did.result,
            "The list that was given has been changed. Leave it as it is, and the network that it belongs to.",
            changed(freeze, "parameters[n:]", "parameters[n:][::-1]"),
            lambda did: list(did.result["returned"]) == list(did.expected["returned"]),
            "What you return is not the list of those that learn, in their order.",
        ),
        understood="A frozen parameter still takes part; nothing arrives at it, and no step moves it.",
        hints=(
            "A leaf is frozen by requires_grad_(False). What else is there to do, for the first n and for the others?",
            "The first n: no notes, and no old gradient. The others: notes, whatever was before.",
            "for p in parameters[:n]:\n    p.requires_grad_(False)\n    ...\nfor p in parameters[n:]:\n    ...",
        ),
    ),
    Exercise(
        key="08.5",
        points=2,
        answer=of_cut_weights,
        trial=loss_trial,
        wrong=mistakes(
            changed(step_loss, ".detach()", ""),
            "The loss is right, but the target does not hold still.",
            changed(step_loss, ".detach()", "", "judge(w, position)", "judge(w, position).detach()"),
            "The wrong one holds still: it is the judgement that should move, towards the target.",
            engine.no_grad()(step_loss),
            "No notes are taken at all. The judgement of the first position needs them; only the target does not.",
            changed(step_loss, "return", "loss =", " ** 2", " ** 2; loss.backward(); return loss"),
            "Your function has gone back already. It should make the loss, and nothing else.",
            *MISTAKES,
            changed(step_loss, "judge(w, following)", "judge(w, position)"),
            "The target is made of the first position again. It comes from the `following` one.",
            lambda *given: of_cut_weights(*given).detach().requires_grad_(),
            "The loss is right, but it was cut off from w: nothing arrives there.",
            changed(step_loss, ".detach()", "", "judge(w, following)", "judge(w, following.detach())"),
            "A position is a plain number, and has no past. It is the *target* that comes from the knobs.",
        ),
        properties=properties(
            changed(step_loss, ".detach()", ".requires_grad_(False)"),
            lambda did: did.error != "RuntimeError",
            "The target is a result, and cannot be told to take no notes: `detach()` gives a tensor without them.",
        ),
        hints=(
            "Which of the two should move, and which should count as a plain number?",
            "Make the target first, and end the backward pass there: detach it, or compute it without notes.",
            "target = (reward + 0.9 * judge(w, following))...\nreturn (judge(w, position) - target) ** 2",
        ),
        understood="The value of the loss is the same with and without `detach`. What is learned is not.",
    ),
)
