"""Lesson 14, the training loop: the exercises' trials, oracles, usual mistakes and hints."""

import engine
from course.exercises import Exercise
from engine import nn

# 14.1


def line():
    """A model with known numbers, and an optimiser for it."""
    model = nn.Linear(2, 1)
    with engine.no_grad():
        model.weight.copy_(engine.tensor([[1.0, -1.0]]))
        model.bias.fill_(0.5)
    return model


def uneven(guess, true):
    """A loss that is another one if its arguments are exchanged."""
    return ((guess - true) ** 2 * (1 + true**2)).mean()


def steps(step, times):
    """The losses of some steps, the numbers after them, and whether gradients are left."""
    model = line()
    optimizer = engine.optim.SGD(model.parameters(), lr=0.02)
    x, y = engine.tensor([[1.0, 2.0], [0.0, 1.0]]), engine.tensor([[1.0], [2.0]])
    losses = [step(model, uneven, optimizer, x, y) for _ in range(times)]
    return {
        "losses": losses,
        "weight": model.weight.detach(),
        "bias": model.bias.detach(),
        "gradients left": any(p.grad is not None for p in model.parameters()),
    }


def step_trial(step):
    yield "one step on two examples", steps, step, 1
    yield "three steps", steps, step, 3


def step_more(step):
    yield "", steps, step, 6


def training_step(order, loss_of=lambda loss: loss.item()):
    """`step`, with its lines in another order, or some of them missing."""

    def step(model, loss_fn, optimizer, x, y):
        loss = loss_fn(model(x), y)
        for line in order:
            {"back": loss.backward, "step": optimizer.step, "clear": optimizer.zero_grad}[line]()
        return loss_of(loss)

    return step


def loss_afterwards(model, loss_fn, optimizer, x, y):
    training_step(("clear", "back", "step", "clear"))(model, loss_fn, optimizer, x, y)
    return loss_fn(model(x), y).item()


def exchanged(model, loss_fn, optimizer, x, y):
    return training_step(("back", "step", "clear"))(model, lambda guess, y: loss_fn(y, guess), optimizer, x, y)


# 14.2


class Chooser(nn.Module):
    """Scores that are the input itself; in training, nonsense.  Counts the calls that took notes."""

    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(engine.ones(1))
        self.noted = 0

    def forward(self, x):
        scores = x * self.one
        self.noted += scores.requires_grad
        return -scores if self.training else scores


def batches(*sizes, right):
    """Batches of the given sizes, in which the first so many of each are answered rightly."""
    found = []
    for size, good in zip(sizes, right, strict=True):
        answers = engine.arange(size) % 3
        scores = nn.functional.one_hot((answers + (engine.arange(size) >= good)) % 3, 3).float()
        found.append((scores, answers))
    return found


def judged(accuracy, training, data):
    model = Chooser().train(training)
    value = accuracy(model, data)
    return {"accuracy": value, "training afterwards": model.training, "took notes": bool(model.noted)}


def accuracy_trial(accuracy):
    yield (
        "batches of 4 and 4, with 3 and 1 right; the model is not in training",
        judged,
        accuracy,
        False,
        (batches(4, 4, right=(3, 1))),
    )
    yield (
        "batches of 4 and 2, with 3 and 2 right; the model is in training",
        judged,
        accuracy,
        True,
        (batches(4, 2, right=(3, 2))),
    )


def accuracy_more(accuracy):
    yield "", judged, accuracy, True, batches(10, 10, 3, right=(9, 4, 0))


def share(prepare=True, restore=True, notes=False, count=lambda right, seen, parts: right / seen):
    """`accuracy`, with something left out, or counted in another way."""

    def accuracy(model, data):
        before = model.training
        if prepare:
            model.eval()
        right, seen, parts = 0, 0, []
        with engine.set_grad_enabled(notes):
            for x, y in data:
                good = (model(x).argmax(dim=1) == y).sum().item()
                right, seen = right + good, seen + len(y)
                parts.append(good / len(y))
        if restore:
            model.train(before or restore == "train")
        return count(right, seen, parts)

    return accuracy


# 14.3


def fitted(fit, steps):
    model = line()
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    x, y = engine.tensor([[1.0, 2.0], [0.0, 1.0], [2.0, -1.0]]), engine.tensor([[1.0], [2.0], [0.0]])
    return fit(model, optimizer, x, y, steps)


def fit_trial(fit):
    yield "three examples, 1 step: the losses", fitted, fit, 1
    yield "three examples, 4 steps: the losses", fitted, fit, 4


def fit_more(fit):
    yield "", fitted, fit, 12


def loop(order, keep=lambda loss: loss.item(), rate=None):
    def fit(model, optimizer, x, y, steps):
        losses = []
        optimizer.param_groups[0]["lr"] = rate or optimizer.param_groups[0]["lr"]
        for _ in range(steps):
            loss = ((model(x) - y) ** 2).mean()
            lines = {"back": loss.backward, "step": optimizer.step, "clear": optimizer.zero_grad}
            for line in order:
                (lines | {"clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0)})[line]()
            losses.append(keep(loss))
        return losses

    return fit


# 14.4


def moved(step, times):
    """Two parameters after some steps down a bowl, and the velocities."""
    params = [engine.tensor([1.0, -2.0], requires_grad=True), engine.tensor(3.0, requires_grad=True)]
    velocities = [engine.zeros(2), engine.tensor(0.0)]
    held = list(velocities)  # by the caller
    for _ in range(times):
        for p in params:
            p.grad = None
        sum((p**2).sum() * (i + 1) for i, p in enumerate(params)).backward()
        step(params, velocities, 0.1)
    return {"parameters": [p.detach() for p in params], "velocities": held}


def momentum_trial(step):
    yield "one step with rate 0.1: the parameters and the velocities", moved, step, 1
    yield "three steps", moved, step, 3


def momentum_more(step):
    yield "", moved, step, 7


def by_optimizer(params, velocities, rate):
    """PyTorch's own rule, with the velocity put in and taken out."""
    optimizer = engine.optim.SGD(params, lr=rate, momentum=0.9)
    for p, v in zip(params, velocities, strict=True):
        optimizer.state[p]["momentum_buffer"] = v
    optimizer.step()
    for p, v in zip(params, velocities, strict=True):
        v.copy_(optimizer.state[p]["momentum_buffer"])


def with_velocity(rule, move=lambda p, v, rate: p.sub_(rate * v)):
    def step(params, velocities, rate):
        with engine.no_grad():
            for p, v in zip(params, velocities, strict=True):
                rule(v, p.grad)
                move(p, v, rate)

    return step


def moves_first(params, velocities, rate):
    with engine.no_grad():
        for p, v in zip(params, velocities, strict=True):
            p.sub_(rate * v)
            v.mul_(0.9).add_(p.grad)


def recorded(params, velocities, rate):
    for p, v in zip(params, velocities, strict=True):
        v.mul_(0.9).add_(p.grad)
        p.sub_(rate * v)


def new_velocities(params, velocities, rate, kept=True):
    with engine.no_grad():
        for i, (p, v) in enumerate(zip(params, velocities, strict=True)):
            new = 0.9 * v + p.grad
            p.sub_(rate * new)
            if kept:
                velocities[i] = new


def lost_velocities(params, velocities, rate):
    new_velocities(params, velocities, rate, kept=False)


def new_tensors(params, velocities, rate):
    for i, (p, v) in enumerate(zip(params, velocities, strict=True)):
        velocities[i] = 0.9 * v + p.grad
        p = p - rate * velocities[i]


# 14.5


def stop(losses, patience):
    lowest = [min(range(n + 1), key=lambda i: losses[i]) for n in range(len(losses))]
    for epoch, best in enumerate(lowest):
        if epoch - best >= patience:
            return epoch, best
    return len(losses) - 1, lowest[-1]


def stop_trial(stop):
    yield "losses = [3., 2., 2.6, 2.5, 2.7, 1.], patience = 2", stop, [3.0, 2.0, 2.6, 2.5, 2.7, 1.0], 2
    yield "losses = [1., 2., 3., 4., 0.5], patience = 2", stop, [1.0, 2.0, 3.0, 4.0, 0.5], 2
    yield "losses = [3., 2., 2.5, 1., 2., 0.5], patience = 2", stop, [3.0, 2.0, 2.5, 1.0, 2.0, 0.5], 2
    yield "losses = [3., 2., 2., 2.], patience = 2", stop, [3.0, 2.0, 2.0, 2.0], 2
    yield "losses = [5., 4., 3.], patience = 1", stop, [5.0, 4.0, 3.0], 1


def stop_more(stop):
    yield "", stop, [1.0, 2.0, 0.5, 0.6, 0.7, 0.8, 0.1], 3


def never(losses, patience):
    return len(losses) - 1, min(range(len(losses)), key=lambda i: losses[i])


def since_the_last(losses, patience):
    bad, best = 0, 0
    for epoch, loss in enumerate(losses):
        best = epoch if loss < losses[best] else best
        bad = bad + 1 if epoch and loss >= losses[epoch - 1] else 0
        if bad >= patience:
            break
    return epoch, best


def never_patient_again(losses, patience):
    best, bad = 0, 0
    for epoch, loss in enumerate(losses):
        best, bad = (epoch, bad) if loss < losses[best] else (best, bad + (epoch > 0))
        if bad >= patience:
            break
    return epoch, best


def one_too_late(losses, patience):
    return stop(losses, patience + 1)


def equal_is_better(losses, patience):
    best = 0
    for epoch, loss in enumerate(losses):
        if loss <= losses[best]:
            best = epoch
        elif epoch - best >= patience:
            break
    return epoch, best


EXERCISES = (
    Exercise(
        key="14.1",
        points=1,
        answer=training_step(("clear", "back", "step", "clear")),
        trial=step_trial,
        hidden=step_more,
        wrong=(
            (
                training_step(("back", "step")),
                "The gradients are not cleared: the next step will add its own to them.",
            ),
            (
                training_step(("back", "clear", "step")),
                "The step finds no gradients: it comes before `backward()`, or they were cleared in between.",
            ),
            (
                training_step(("back", "step", "clear"), loss_of=lambda loss: loss.detach()),
                "Give back a Python number, not a tensor: `.item()`.",
            ),
            (
                training_step(("clear", "back", "step")),
                "Right steps. But after the call the gradients are still there.",
            ),
            (loss_afterwards, "That is the loss *after* the step. Asked for is the one from which the step was made."),
            (exchanged, "The model's result comes first, and the true answer second: `loss_fn(model(x), y)`."),
            (
                training_step(("back", "step", "clear"), loss_of=lambda loss: None),
                "A right step. But the loss is not given back: is a `return` missing?",
            ),
        ),
        hints=(
            "The four lines of the lesson, in this order: loss, back, step, clear.",
            "`optimizer.zero_grad()` comes last, so that nothing is left; `loss.item()` is the number.",
            "loss = loss_fn(model(x), y)\nloss.backward()\n...\n...\nreturn loss.item()",
        ),
    ),
    Exercise(
        key="14.2",
        points=2,
        answer=share(),
        trial=accuracy_trial,
        hidden=accuracy_more,
        wrong=(
            (share(prepare=False), "The model is asked while in training, where dropout is at work: `model.eval()`."),
            (share(restore=False), "The model was in training when it came to you, and is not any more."),
            (share(notes=True), "Notes are taken, though nobody goes back: `with engine.no_grad()`."),
            (
                share(count=lambda right, seen, parts: sum(parts) / len(parts)),
                "The mean of the batches. A small batch counts as much as a large one; count examples instead.",
            ),
            (
                share(count=lambda right, seen, parts: right),
                "That is how many are right. Divide by how many there are.",
            ),
            (
                share(count=lambda right, seen, parts: right / len(parts)),
                "How many are right for each *batch*. Divide by the number of examples.",
            ),
            (
                share(count=lambda right, seen, parts: engine.tensor(right / seen)),
                "Right, as a tensor. Give back a Python number: `.item()`.",
            ),
            (
                share(restore="train"),
                "Now every model is in training afterwards, even one that was not. `model.training` says how it was.",
            ),
            (
                share(restore=False, notes=True),
                "The number is right. But notes are taken, and a model that was in training is not, afterwards.",
            ),
            (share(count=lambda right, seen, parts: 100 * right / seen), "In percent. Asked for is a part of 1."),
        ),
        hints=(
            "The lesson's `test` does most of it. What must be put back at the end?",
            "`model.training` says how it was, `model.train(before)` puts it back. Count the right ones, and all.",
            "right += (model(x).argmax(dim=...) == y).sum().item()\nseen += len(y)",
        ),
    ),
    Exercise(
        key="14.3",
        points=1,
        answer=loop(("clear", "back", "step")),
        trial=fit_trial,
        hidden=fit_more,
        wrong=(
            (loop(("back", "step")), "Each step follows the sum of all gradients so far. They must be cleared."),
            (loop(("back", "clear", "step")), "Cleared between `backward` and `step`: the step has nothing to follow."),
            (
                loop(("clear", "back", "step"), keep=lambda loss: loss),
                "The loop is right now. But you keep tensors, and with them all the graphs: `.item()`.",
            ),
            (
                loop(("back", "step"), rate=0.01),
                "A smaller rate only puts it off. The gradients of all steps still add up.",
            ),
            (
                loop(("back", "clip", "step")),
                "Clipping limits the step, and not the mistake: it still follows the sum of all gradients so far.",
            ),
        ),
        hints=(
            "Which of the four lines of a step is missing?",
            "The gradients of earlier steps are still there when the next ones are added (lesson 07).",
            "optimizer.zero_grad(), in each round, but not between backward and step.",
        ),
    ),
    Exercise(
        key="14.4",
        points=2,
        answer=by_optimizer,
        trial=momentum_trial,
        hidden=momentum_more,
        wrong=(
            (
                with_velocity(lambda v, g: v.copy_(g)),
                "The velocity forgets what it was. 0.9 of it stays.",
            ),
            (with_velocity(lambda v, g: v.add_(g)), "The velocity keeps all of itself. It shall keep 0.9."),
            (
                with_velocity(lambda v, g: v.mul_(0.9).add_(0.1 * g)),
                "The gradient is added in full, not times 0.1.",
            ),
            (
                with_velocity(lambda v, g: v.mul_(0.9).add_(g), move=lambda p, v, rate: p.add_(rate * v)),
                "That walks uphill: minus the rate times the velocity.",
            ),
            (
                with_velocity(lambda v, g: v.mul_(0.9).add_(0.1 * g), move=lambda p, v, rate: p.sub_(v)),
                "The rate is in the velocity. Here it comes in at the end, when the parameter moves.",
            ),
            (
                moves_first,
                "The parameter moves by the velocity of the last step. First the velocity, then the parameter.",
            ),
            (
                with_velocity(lambda v, g: v.mul_(0.9).add_(g), move=lambda p, v, rate: p.sub_(rate * p.grad)),
                "The velocity is right, and nobody uses it: the parameter moves by its gradient alone.",
            ),
            (recorded, "Changing a leaf is itself an operation that is noted. Take no notes: `engine.no_grad()`."),
            (new_tensors, "You make new tensors. Those that the caller holds must change: `add_`, `mul_`, `sub_`."),
            (
                new_velocities,
                "The velocities are put into the list as new tensors. The caller's must change: `mul_`, `add_`.",
            ),
            (
                lost_velocities,
                "`v = ...` gives the name to a new tensor, and the velocity is as it was. Change it: `mul_`, `add_`.",
            ),
        ),
        hints=(
            "Two lines for each parameter: first its velocity, then the parameter itself.",
            "In place: `v.mul_(0.9).add_(...)`, and `p.sub_(...)`, under `engine.no_grad()`.",
            "with engine.no_grad():\n"
            "    for p, v in zip(params, velocities):\n"
            "        v.mul_(0.9).add_(p.grad)\n"
            "        p.sub_(...)",
        ),
    ),
    Exercise(
        key="14.5",
        points=2,
        answer=stop,
        trial=stop_trial,
        hidden=stop_more,
        wrong=(
            (never, "It never stops: what comes after the stop is not known to a training that has stopped."),
            (one_too_late, "It stops one epoch too late."),
            (since_the_last, "You compare with the epoch before. Compare with the *best* so far."),
            (equal_is_better, "An equal loss is not better: such epochs count against the patience."),
            (
                never_patient_again,
                "A better epoch makes patience begin anew. You count all epochs that were no better, from the start.",
            ),
            (
                lambda losses, patience: tuple(epoch + 1 for epoch in stop(losses, patience)),
                "Both are counted from 0.",
            ),
            (lambda losses, patience: stop(losses, patience)[::-1], "The two are in the opposite order."),
        ),
        hints=(
            "What do you have to remember from epoch to epoch?",
            "The number of the best epoch. The patience is over when the present epoch is so many after it.",
            "best = 0\n"
            "for epoch, loss in enumerate(losses):\n"
            "    if loss < losses[best]:\n"
            "        best = epoch\n"
            "    elif ...:\n"
            "        break\n"
            "return epoch, best",
        ),
    ),
)
