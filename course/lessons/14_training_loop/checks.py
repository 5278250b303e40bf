"""Lesson 14, the training loop: the exercises' trials, oracles, usual mistakes and hints."""

import engine
from course.judging.words import Alive, Exercise, changed, line, mistakes, properties
from engine import nn

# 14.1


def uneven(guess, true):
    """Compute a loss that changes if its arguments are exchanged."""
    return ((guess - true) ** 2 * (1 + true**2)).mean()


class Steps:
    """Counts an optimiser's steps, and what each followed: its own gradients, nothing, or something else."""

    def __init__(self, model, optimizer, slopes):
        self.model, self.slopes, self.take = model, slopes, optimizer.step
        self.followed, self.rates, self.optimizer = [], set(), optimizer
        optimizer.step = self.step

    def step(self, *arguments):
        grads = [p.grad for p in self.model.parameters()]
        if any(g is None for g in grads):
            kind = "nothing"
        else:
            own = self.slopes()
            same = all(engine.allclose(g, o, rtol=1e-4, atol=1e-6) for g, o in zip(grads, own, strict=True))
            kind = "its own gradients" if same else "something else"
        self.followed.append(kind)
        self.rates |= {group["lr"] for group in self.optimizer.param_groups}
        return self.take(*arguments)


def steps(step, times):
    """Return the losses of some steps, the numbers after them, whether gradients are left, and how often it stepped."""
    model = line()
    optimizer = engine.optim.SGD(model.parameters(), lr=0.02)
    watch = Steps(model, optimizer, lambda: [p.grad for p in model.parameters()])
    x, y = engine.tensor([[1.5, 2.0], [-0.3, 1.0]]), engine.tensor([[1.25], [-2.0]])
    losses = [step(model, uneven, optimizer, x, y) for _ in range(times)]
    return {
        "losses": losses,
        "weight": model.weight.detach(),
        "bias": model.bias.detach(),
        "gradients left": any(p.grad is not None for p in model.parameters()),
        "steps taken": len(watch.followed),
        "in training": model.training,
    }


def step_trial(step):
    yield "one step on two examples", steps, step, 1
    yield "three steps", steps, step, 3
    yield "", steps, step, 6


def training_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


# 14.2


class Chooser(nn.Module):
    """Scores that are the input itself; in training, nonsense.  Counts the calls that took notes."""

    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(engine.ones(1))
        self.noted = 0
        self.asked_in_training = False

    def forward(self, x):
        scores = x * self.one
        self.noted += scores.requires_grad
        self.asked_in_training |= self.training
        return -scores if self.training else scores


def batches(*sizes, right):
    """Batches of the given sizes, in which the first so many of each are answered rightly."""
    found = []
    for size, good in zip(sizes, right, strict=True):
        # In this order an `argmax` down the columns is right for none of the first three.
        answers = (engine.arange(size) + 1) % 3
        scores = nn.functional.one_hot((answers + 2 * (engine.arange(size) >= good)) % 3, 3) * 0.75 - 0.5
        found.append((scores, answers))
    return found


def judged(accuracy, training, data):
    model = Chooser().train(training)
    value = accuracy(model, data)
    return {
        "accuracy": value,
        "asked while in training": model.asked_in_training,
        "training afterwards": model.training,
        "took notes": bool(model.noted),
        "can still learn": model.one.requires_grad,
    }


MEANS_OF_BATCHES = {"batches of 4 and 2": (3 / 4 + 2 / 2) / 2}


def counts_examples(did):
    """Tell whether the number differs from the mean of the batches' means, where that is a different one."""
    sizes = did.shown.partition(",")[0]
    return abs(did.result["accuracy"] - MEANS_OF_BATCHES.get(sizes, -1)) > 1e-6


def accuracy_trial(accuracy):
    shown = "batches of 4 and 4, with 3 and 1 right; the model is not in training"
    yield shown, judged, accuracy, False, batches(4, 4, right=(3, 1))
    shown = "batches of 4 and 2, with 3 and 2 right; the model is in training"
    yield shown, judged, accuracy, True, batches(4, 2, right=(3, 2))
    yield "", judged, accuracy, True, batches(10, 10, 3, right=(9, 4, 0))


def down_the_columns(scores, y):
    """Count how many `argmax(dim=0)` finds rightly, as far as its results and the answers go together."""
    return sum(given == answer for given, answer in zip(scores.argmax(dim=0).tolist(), y.tolist(), strict=False))


def accuracy(model, data):
    before, right, seen = model.training, 0, 0
    model.eval()
    with engine.no_grad():
        for x, y in data:
            right += (model(x).argmax(dim=1) == y).sum().item()
            seen += len(y)
    model.train(before)
    return right / seen


def giving(result):
    return changed(accuracy, "right / seen", result)


# 14.3


def fitted(fit, steps):
    """Return the losses, and how they came about: what each step followed, with which rate, from how many passes."""
    model, asked = line(), 0
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    x, y = engine.tensor([[1.5, 2.0], [0.0, 1.0], [2.0, -1.0]]), engine.tensor([[1.25], [2.0], [-0.5]])

    def slopes():
        weight, bias = (p.detach().requires_grad_() for p in model.parameters())
        with engine.enable_grad():
            return engine.autograd.grad(((nn.functional.linear(x, weight, bias) - y) ** 2).mean(), (weight, bias))

    def ask(module, inputs):
        nonlocal asked
        asked += 1

    watch, alive = Steps(model, optimizer, slopes), Alive(model)
    model.register_forward_pre_hook(ask)
    losses = fit(model, optimizer, x, y, steps)
    return {
        "losses": losses,
        "steps taken": len(watch.followed),
        "steps followed": sorted(set(watch.followed)),
        "rates": sorted(watch.rates),
        "the model was asked": "once in each round" if asked >= steps else "less often than there are rounds",
        "graphs alive at once": "at most two" if alive.most <= 2 else "more than two",
        "weight": model.weight.detach(),
        "in training": model.training,
        "can still learn": model.weight.requires_grad,
    }


def fit_trial(fit):
    yield "three examples, 1 step: the losses", fitted, fit, 1
    yield "three examples, 4 steps: the losses", fitted, fit, 4
    yield "", fitted, fit, 12


def loss_before_the_loop(model, optimizer, x, y, steps):
    losses, loss = [], ((model(x) - y) ** 2).mean()
    for _ in range(steps):
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit(model, optimizer, x, y, steps):
    losses = []
    for _ in range(steps):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


SMALLER_RATE = "losses, optimizer.param_groups[0]['lr'] = [], 0.01"


# 14.4


def moved(step, times):
    """Two parameters after some steps down a bowl, and the velocities."""
    params = [engine.tensor([1.0, -2.0], requires_grad=True), engine.tensor(3.0, requires_grad=True)]
    velocities = [engine.zeros(2), engine.tensor(0.0)]
    held = list(velocities)  # by the caller
    returned = "nothing"
    for _ in range(times):
        for p in params:
            p.grad = None
        sum((p**2).sum() * (i + 1) for i, p in enumerate(params)).backward()
        returned = "nothing" if step(params, velocities, 0.05) is None else "something"
    return {"parameters": [p.detach() for p in params], "velocities": held, "returned": returned}


def momentum_trial(step):
    yield "one step with rate 0.05: the parameters and the velocities", moved, step, 1
    yield "three steps", moved, step, 3
    yield "", moved, step, 7


def by_optimizer(params, velocities, rate):
    """PyTorch's own rule, with the velocity put in and taken out."""
    optimizer = engine.optim.SGD(params, lr=rate, momentum=0.9)
    for p, v in zip(params, velocities, strict=True):
        optimizer.state[p]["momentum_buffer"] = v
    optimizer.step()
    for p, v in zip(params, velocities, strict=True):
        v.copy_(optimizer.state[p]["momentum_buffer"])


def with_velocity(params, velocities, rate):
    with engine.no_grad():
        for p, v in zip(params, velocities, strict=True):
            v.mul_(0.9).add_(p.grad)
            p.sub_(rate * v)


def moving_by(step):
    return changed(with_velocity, "p.sub_(rate * v)", step)


def new_in_both_lists(params, velocities, rate):
    with engine.no_grad():
        for i in range(len(params)):
            velocities[i] = 0.9 * velocities[i] + params[i].grad
            params[i] = params[i] - rate * velocities[i]


def close(got, wanted):
    return abs(got - wanted).max() < 1e-5


def new_velocities(params, velocities, rate):
    with engine.no_grad():
        for i, (p, v) in enumerate(zip(params, velocities, strict=True)):
            new = 0.9 * v + p.grad
            p.sub_(rate * new)
            velocities[i] = new


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
    yield "losses = [2., 5., 1., 6., 0.5], patience = 2", stop, [2.0, 5.0, 1.0, 6.0, 0.5], 2
    yield "losses = [0.9, 0.5, 0.6, 0.2, 0.3], patience = 2", stop, [0.9, 0.5, 0.6, 0.2, 0.3], 2
    yield "losses = [-1.5, -2.5, -2., -2.25], patience = 2", stop, [-1.5, -2.5, -2.0, -2.25], 2
    yield "losses = [5., 4., 3.], patience = 1", stop, [5.0, 4.0, 3.0], 1
    yield "", stop, [1.0, 2.0, 0.5, 0.6, 0.7, 0.8, 0.1], 3
    yield "", stop, [4000.0, 5000.0, 3000.0, 3500.0], 3


def watching(losses, patience):
    best = 0
    for epoch, loss in enumerate(losses):
        best = epoch if loss < losses[best] else best
        if epoch - best >= patience:
            break
    return epoch, best


EXERCISES = (
    Exercise(
        key="14.1",
        points=1,
        answer=training_step,
        trial=step_trial,
        wrong=mistakes(
            changed(training_step, "optimizer.zero_grad()", ""),
            "The gradients are not cleared: the next step will add its own to them.",
            changed(training_step, "optimizer.zero_grad()", "", "backward()", "backward(); optimizer.zero_grad()"),
            "The step finds no gradients: it comes before `backward()`, or they were cleared in between.",
            changed(training_step, "loss.item()", "loss_fn(model(x), y).item()"),
            "That is the loss *after* the step. Return the one from which the step was made.",
            changed(training_step, "loss_fn(model(x), y)", "loss_fn(model(x), y) * len(x)"),
            "`loss_fn` already gives the mean over the batch. Multiplied by the number of examples, the loss is "
            "too large, and the step is too long.",
            changed(training_step, "model(x), y)", "y, model(x))"),
            "The model's result comes first, and the true answer second: `loss_fn(model(x), y)`.",
            changed(training_step, "return loss.item()", ""),
            "The step is right, but the loss is not returned: is a `return` missing?",
        ),
        properties=properties(
            changed(training_step, "loss.item()", "loss"),
            lambda did: isinstance(did.result["losses"][0], float),
            "You return the loss as a tensor. Return a Python number, which keeps no graph: `.item()`.",
            changed(
                training_step,
                "optimizer.zero_grad()",
                "",
                "loss.backward()",
                "optimizer.zero_grad(); loss.backward()",
            ),
            lambda did: not did.result["gradients left"],
            "After the call there are still gradients in `.grad`: clear them at the end.",
            changed(training_step, "optimizer.step()", ""),
            lambda did: did.result["steps taken"] > 0,
            "`optimizer.step()` is never called, so nothing is learned.",
            changed(training_step, "optimizer.step()", "optimizer.step(); optimizer.step()"),
            lambda did: did.result["steps taken"] <= did.expected["steps taken"],
            "`optimizer.step()` is called more than once in a step.",
        ),
        understood="Loss, back, step, clear: these four lines are training, and everything else is built around them.",
        hints=(
            "The four lines of the lesson, in this order: loss, back, step, clear.",
            "`optimizer.zero_grad()` comes last, so that nothing is left; `loss.item()` is the number.",
            "loss = loss_fn(model(x), y)\nloss.backward()\n...\n...\nreturn loss.item()",
        ),
    ),
    Exercise(
        key="14.2",
        points=2,
        answer=accuracy,
        trial=accuracy_trial,
        wrong=mistakes(
            giving("right"),
            "That is how many are right. Divide by how many there are.",
            changed(accuracy, "(model(x).argmax(dim=1) == y).sum().item()", "down_the_columns(model(x), y)"),
            "`argmax(dim=0)` goes down the columns: it tells which example has the largest score of each class. "
            "Each example "
            "is a row, and its answer is `argmax(dim=1)`.",
            changed(accuracy, "argmax", "argmin"),
            "That is the *smallest* score of each example. The largest one is the model's answer.",
            giving("1 - right / seen"),
            "That is the fraction that is *wrong*.",
            giving("right / len(data)"),
            "You divide by the number of *batches*. Divide by the number of examples.",
        ),
        properties=properties(
            changed(accuracy, ".item()", ".item() / len(y)", "right / seen", "right / len(data)"),
            counts_examples,
            "That is the mean of the batches' fractions: a small batch counts as much as a large one. Count "
            "examples instead.",
            changed(accuracy, "model.eval()", ""),
            lambda did: not did.result["asked while in training"],
            "You ask the model while it is in training mode, where dropout is at work. Call `model.eval()` first.",
            changed(accuracy, "model.train(before)", ""),
            lambda did: did.result["training afterwards"] or not did.expected["training afterwards"],
            "The mode is not put back: the model came in training mode, and now it is in `eval()`. Remember "
            "`model.training` first, and put it back at the end.",
            changed(accuracy, "model.train(before)", "model.train()"),
            lambda did: not did.result["training afterwards"] or did.expected["training afterwards"],
            "The model did not come in training mode, and now it is in it. Put back the mode that it had, "
            "whichever that was.",
            changed(accuracy, "no_grad()", "enable_grad()"),
            lambda did: not did.result["took notes"],
            "Notes are taken, although nobody goes back: put `with engine.no_grad():` around the loop.",
            changed(accuracy, "model.eval()", "model.eval().requires_grad_(False)"),
            lambda did: did.result["can still learn"] or not did.expected["can still learn"],
            "No notes are taken, but the parameters are frozen from now on: training that goes on after this "
            "learns nothing. `with engine.no_grad():` leaves them as they are.",
            giving("engine.tensor(right / seen)"),
            lambda did: isinstance(did.result["accuracy"], float | int),
            "You return a tensor. Return a Python number: `.item()`.",
            giving("100 * right / seen"),
            lambda did: did.result["accuracy"] <= 1,
            "That is more than 1. Return a fraction, from 0 to 1: divide by the number of examples.",
        ),
        understood="Count examples, not batches, and leave a model as you found it.",
        hints=(
            "The lesson's `test` does most of it. What must be put back at the end?",
            "`model.training` says how it was, and `model.train(before)` puts it back. Count the right answers, and "
            "count all examples.",
            "right += (model(x).argmax(dim=...) == y).sum().item()\nseen += len(y)",
        ),
    ),
    Exercise(
        key="14.3",
        points=1,
        answer=fit,
        trial=fit_trial,
        wrong=mistakes(
            changed(fit, "losses = []", SMALLER_RATE, "optimizer.zero_grad()", ""),
            "A smaller rate only makes the loss swing more slowly. The gradients of all steps still add up.",
            changed(
                fit,
                "optimizer.zero_grad()",
                "",
                "backward()",
                "backward(); nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
            ),
            "Clipping shortens the step, but does not put it right: it still follows the sum of all gradients so far.",
        ),
        properties=properties(
            changed(fit, "optimizer.zero_grad()", ""),
            lambda did: "something else" not in did.result["steps followed"],
            "A step follows not only the gradients of its own loss, but the sum with all older ones. In each round "
            "they must be cleared, before `backward` or after `step`.",
            changed(fit, "optimizer.zero_grad()", "", "backward()", "backward(); optimizer.zero_grad()"),
            lambda did: "nothing" not in did.result["steps followed"],
            "A step finds no gradients to follow: it comes before `backward()`, or they were cleared in between.",
            changed(fit, "range(steps)", "range(1)"),
            lambda did: did.result["steps taken"] == did.expected["steps taken"],
            "`optimizer.step()` should be called once in each of the rounds.",
            changed(fit, "losses = []", SMALLER_RATE),
            lambda did: did.result["rates"] == did.expected["rates"],
            "You changed the learning rate that the optimiser came with. The fault is not in the rate.",
            changed(fit, "loss.item()", "loss"),
            lambda did: did.result["graphs alive at once"] == "at most two",
            "The graphs of all rounds are alive at the end: keep numbers in the list, `.item()`.",
            changed(fit, "loss.item()", "loss.detach()"),
            lambda did: (
                "4 steps" not in did.shown
                or did.result["graphs alive at once"] != "at most two"
                or all(isinstance(loss, float) for loss in did.result["losses"])
            ),
            "The list holds tensors, though without their graphs. It should hold numbers: `.item()`.",
            loss_before_the_loop,
            lambda did: did.result["the model was asked"] == "once in each round",
            "You do not compute the loss anew in each round, so it never sees what the steps have changed.",
        ),
        understood="Gradients add up until somebody clears them, and each step follows the sum.",
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
        wrong=mistakes(
            changed(with_velocity, "v.mul_(0.9).add_(p.grad)", "v.copy_(p.grad)"),
            "The velocity forgets what it was. It should keep 0.9 of it.",
            changed(with_velocity, ".mul_(0.9)", ""),
            "The velocity keeps all of itself. It should keep 0.9 of it.",
            changed(with_velocity, "p.grad", "0.1 * p.grad"),
            "You add only 0.1 of the gradient. Add all of it.",
            moving_by("p.add_(rate * v)"),
            "That walks uphill. Move by *minus* the rate times the velocity.",
            changed(with_velocity, "p.grad", "rate * p.grad", "rate * v", "v"),
            "Your velocity contains the rate, as in some textbooks. As long as the rate stays the same, the "
            "parameters move alike. But here, as in PyTorch, the rate comes in at the end, when the parameter "
            "moves.",
            changed(with_velocity, "add_(", "sub_(", "p.sub_(rate", "p.add_(rate"),
            "Your velocity points downhill, and the parameter follows it with a plus. That leads to the same "
            "place. But here the velocity adds up gradients, and the minus comes when the parameter moves.",
            changed(with_velocity, "add_(", "sub_(rate * ", "p.sub_(rate * v)", "p.add_(v)"),
            "Your velocity holds minus the rate times the gradients. That leads to the same place. But here it "
            "adds up the gradients as they are; minus and rate come when the parameter moves.",
            new_in_both_lists,
            "You put new tensors into both lists. Change the ones that the caller holds: `add_`, `mul_`, `sub_`.",
            changed(with_velocity, "p.grad", "rate * p.grad"),
            "The rate comes in twice: in the velocity, and when the parameter moves. It belongs only in the "
            "second place.",
            moving_by("p.sub_(v)"),
            "The parameter moves by the whole velocity. It should move by the rate times the velocity.",
            moving_by("p.sub_(rate * (p.grad + 0.9 * v))"),
            "That is Nesterov's variant, which looks one step ahead (`nesterov=True`). Write the plain one.",
            changed(with_velocity, "p.sub_(rate * v)", "", "v.mul_", "p.sub_(rate * v); v.mul_"),
            "The parameter moves by the velocity of the step before. Change the velocity first, and then the "
            "parameter.",
            moving_by("p.sub_(rate * p.grad)"),
            "The velocity is right, but nothing uses it: the parameter moves by its gradient alone.",
            new_tensors,
            "You make new tensors. Change the ones that the caller holds: `add_`, `mul_`, `sub_`.",
            new_velocities,
            "You put new tensors into the list of velocities. Change the ones that the caller holds: `mul_`, `add_`.",
            changed(with_velocity, "v.mul_(0.9).add_(p.grad)", "v = 0.9 * v + p.grad"),
            "`v = ...` gives the name to a new tensor, and the velocity stays as it was. Change it in place: "
            "`mul_`, `add_`.",
        ),
        properties=properties(
            changed(with_velocity, "with engine.no_grad():", "if True:"),
            lambda did: did.error != "RuntimeError" or not did.shown.startswith("one step"),
            "Changing a leaf is itself an operation, and it is noted. Take no notes: `with engine.no_grad():`.",
            changed(with_velocity, "0.9", "0.5"),
            lambda did: all(map(close, did.result["velocities"], did.expected["velocities"])),
            "The velocities that the caller holds are not what they should be afterwards: 0.9 times themselves, "
            "plus the gradient.",
            moving_by("p.sub_(0.5 * rate * v)"),
            lambda did: all(map(close, did.result["parameters"], did.expected["parameters"])),
            "The parameters are not where they should be afterwards: moved by minus the rate times the velocity.",
            lambda params, velocities, rate: by_optimizer(params, velocities, rate) or (params, velocities),
            lambda did: did.result["returned"] == "nothing",
            "Your function returns something. A function that changes its arguments in place should return "
            "nothing: whoever gets tensors back may take them for new ones.",
        ),
        understood="A velocity is a sum of old gradients, each 0.9 times as heavy as the one after it.",
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
        wrong=mistakes(
            lambda losses, patience: (len(losses) - 1, min(range(len(losses)), key=lambda i: losses[i])),
            "It never stops. Training that has stopped cannot know what losses would have come later.",
            lambda losses, patience: (stop(losses, patience)[0], min(range(len(losses)), key=lambda i: losses[i])),
            "It stops at the right epoch. But it looks for the best among all losses, even those after the stop,"
            " which no training has seen.",
            lambda losses, patience: (stop(losses, patience)[0], losses[stop(losses, patience)[1]]),
            "The second of the pair is the best *loss*. Return its epoch.",
            changed(watching, "epoch - best >= patience", "epoch >= patience and loss >= losses[epoch - patience]"),
            "You compare with the loss of `patience` epochs ago. Compare with the *best* so far.",
            changed(
                watching,
                "epoch - best >= patience",
                "epoch >= patience and all(losses[epoch - n] >= losses[epoch - n - 1] for n in range(patience))",
            ),
            "You compare with the epoch before. Compare with the *best* so far.",
            changed(watching, "<", "<="),
            "An equal loss is not better: such epochs count against the patience.",
            changed(watching, "epoch - best", "sum(losses[n] >= min(losses[:n]) for n in range(1, epoch + 1))"),
            "You count all epochs that were no better, from the very start. After each better epoch the count "
            "begins again.",
            lambda losses, patience: tuple(epoch + 1 for epoch in stop(losses, patience)),
            "You count from 1. Count both from 0.",
            lambda losses, patience: stop(losses, patience)[::-1],
            "The two are in the opposite order.",
        ),
        properties=properties(
            lambda losses, patience: stop(losses, patience + 1),
            lambda did: did.result[0] <= did.expected[0],
            "It stops too late. Stop as soon as the present epoch is `patience` epochs after the best one.",
            lambda losses, patience: stop(losses, patience - 1) if patience > 1 else stop(losses, patience),
            lambda did: did.result[0] >= did.expected[0],
            "It stops too early. The best epoch does not count against the patience, nor do those before it.",
            lambda losses, patience: stop(losses, patience)[:1] * 2,
            lambda did: did.result[0] != did.expected[0] or did.result[1] == did.expected[1],
            "The best epoch is the one with the lowest loss until then; of several such epochs it is the first.",
        ),
        understood="Compare with the best so far, and let the patience begin again whenever there is a better one.",
        hints=(
            "What do you have to remember from epoch to epoch?",
            "The number of the best epoch. The patience is used up when the present epoch is that many epochs "
            "after it.",
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
