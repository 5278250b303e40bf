"""Lesson 15, efficient loops: five loops to repair, with their trials, oracles, usual mistakes and hints."""

import weakref

import numpy as np

import engine
from course.judging.words import Alive, Exercise, changed, line, mistakes, properties
from engine import nn

# what is trained


def same(did, name):
    """Tell whether the parameters, or a list of numbers, are as they should be."""
    found, asked = did.result[name], did.expected[name]
    if isinstance(asked, dict):
        return all(np.allclose(found[key], asked[key], atol=1e-4) for key in asked)
    return np.shape(found) == np.shape(asked) and np.allclose(found, asked, atol=1e-4)


def lengths(did):
    return did.result["lengths"], did.expected["lengths"]


def first_lengths(did):
    return did.result["lengths"][0], did.expected["lengths"][0]


def examples(n):
    x = engine.stack([engine.linspace(-1, 1, n), engine.linspace(0, 2, n) ** 2], dim=1)
    return x, x.sum(dim=1, keepdim=True) - 0.5


def batches(*sizes):
    return [examples(n) for n in sizes]


def numbers(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


class Watch:
    """A loss that remembers which of its graphs are still alive, and how many were when it was called again."""

    def __init__(self):
        self.graphs, self.most = [], 0

    def __call__(self, scores, y):
        self.most = max(self.most, self.most_alive())
        loss = ((scores - y) ** 2).mean()
        if loss.grad_fn is not None:
            self.graphs.append(weakref.ref(loss.grad_fn))
        return loss

    def most_alive(self):
        return sum(graph() is not None for graph in self.graphs)


# 15.1


def trained(epoch, sizes):
    model, watch = line(), Watch()
    mean = epoch(model, watch, engine.optim.SGD(model.parameters(), lr=0.05), batches(*sizes))
    kept = "more than one" if watch.most > 1 else "at most one"
    return {"mean loss": mean, "graphs kept at once": kept, "numbers": numbers(model)}


def epoch_trial(epoch):
    yield "one batch of 4", trained, epoch, [4]
    yield "five batches", trained, epoch, [4, 6, 3, 8, 5]


def epoch(model, loss_fn, optimizer, batches):
    total = 0.0
    for x, y in batches:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches)


def without_training(model, loss_fn, optimizer, batches):
    with engine.no_grad():
        return sum(loss_fn(model(x), y).item() for x, y in batches) / len(batches)


# 15.2


class Dropping(nn.Module):
    """A line whose dropout drops everything, so that it cannot be missed; it remembers whether it took notes."""

    def __init__(self):
        super().__init__()
        self.line, self.drop, self.noted = line(), nn.Dropout(1.0), False

    def forward(self, x):
        scores = self.drop(self.line(x))
        self.noted |= scores.requires_grad
        return scores


def tested(mean_loss, training):
    model = Dropping().train(training)
    value = mean_loss(model, nn.MSELoss(), batches(4, 6))
    return {
        "mean loss": value,
        "training afterwards": model.training,
        "training of its parts": [part.training for part in model.children()],
        "took notes": model.noted,
        "can still learn": all(p.requires_grad for p in model.parameters()),
    }


def mean_loss(model, loss_fn, batches):
    before, total = model.training, 0.0
    model.eval()
    with engine.no_grad():
        for x, y in batches:
            total += loss_fn(model(x), y).item()
    model.train(before)
    return total / len(batches)


def test_trial(mean_loss):
    yield "a model that is not in training", tested, mean_loss, False
    yield "a model that is in training", tested, mean_loss, True


# 15.3


def stepped(step, n):
    model, watch, most = line(), Watch(), {"examples": 0, "graphs": 0}
    alive = Alive(model)

    def look(module, args):
        most["examples"] = max(most["examples"], len(args[0]))
        most["graphs"] = max(most["graphs"], watch.most_alive())

    model.register_forward_pre_hook(look)
    (model.weight.sum() + model.bias.sum()).backward()  # what a step before has left in `.grad`
    step(model, watch, engine.optim.SGD(model.parameters(), lr=0.1), *examples(n))
    kept = "of one part" if max(most["graphs"], alive.most - 1) <= 1 else "of several parts"
    return {"numbers": numbers(model), "most examples at once": most["examples"], "graphs kept at once": kept}


def accumulate_trial(step):
    yield "16 examples: the parameters after the step", stepped, step, 16
    yield "64 examples", stepped, step, 64
    yield "40 examples, so that the last part has 8", stepped, step, 40
    yield "", stepped, step, 33


def in_parts(model, loss_fn, optimizer, x, y):
    optimizer.zero_grad()
    parts = list(zip(x.split(16), y.split(16), strict=True))
    for part_x, part_y in parts:
        (loss_fn(model(part_x), part_y) * (len(part_x) / len(x))).backward()
    optimizer.step()


def weighted(weight):
    return changed(in_parts, "len(part_x) / len(x)", weight)


def of_parts(size):
    return changed(in_parts, "x.split(16), y.split(16)", f"x.split({size}), y.split({size})")


def at_once(model, loss_fn, optimizer, x, y):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()


def one_sum(model, loss_fn, optimizer, x, y):
    optimizer.zero_grad()
    parts = zip(x.split(16), y.split(16), strict=True)
    sum(loss_fn(model(part_x), part_y) * len(part_x) / len(x) for part_x, part_y in parts).backward()
    optimizer.step()


# 15.4


def whole_parts_alone(model, loss_fn, optimizer, x, y):
    """Leave out the last part where it is smaller than 16."""
    optimizer.zero_grad()
    parts = len(x) // 16
    for i in range(parts):
        (loss_fn(model(x[16 * i : 16 * i + 16]), y[16 * i : 16 * i + 16]) / parts).backward()
    optimizer.step()


def clipped(step, scale, near=False):
    """Two steps, on six examples; if near, the answers are nearly those that the model gives."""
    model = line()
    x, y = examples(6)
    y = model(x * scale).detach() + 0.1 if near else y
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    lengths = [step(model, nn.MSELoss(), optimizer, x * scale, y) for _ in range(2)]
    return {"lengths": lengths, "numbers": numbers(model)}


def clip_trial(step):
    yield "six ordinary examples, two steps", clipped, step, 0.5
    yield "two steps with a gradient that is shorter than 1", clipped, step, 0.5, True
    yield "six examples, 1000 times too large, two steps", clipped, step, 1000.0
    yield "", clipped, step, -30.0


def clipped_step(model, loss_fn, optimizer, x, y):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    length = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return length.item()


CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def clipped_by(clip):
    return changed(clipped_step, CLIP, clip)


def norm(model):
    return nn.utils.get_total_norm([p.grad for p in model.parameters()])


def by_hand(model, loss_fn, optimizer, x, y):
    """Clipping as a formula: all gradients times min(1, 1 / length)."""
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    length = sum((p.grad**2).sum() for p in model.parameters()).item() ** 0.5
    for p in model.parameters():
        p.grad *= min(1.0, 1.0 / length)
    optimizer.step()
    return length


# 15.5


def rates(run, epochs):
    model = line()
    return {"rates": run(model, nn.MSELoss(), batches(4, 4, 4), epochs), "numbers": numbers(model)}


def rates_trial(run):
    yield "three batches, 1 epoch: the rates, and the parameters afterwards", rates, run, 1
    yield "three batches, 4 epochs", rates, run, 4


def halving(model, loss_fn, batches, epochs):
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    scheduler = engine.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    seen = []
    for _ in range(epochs):
        seen.append(scheduler.get_last_lr()[0])
        for x, y in batches:
            at_once(model, loss_fn, optimizer, x, y)
        scheduler.step()
    return seen


after_each_batch = changed(halving, "scheduler.step()", "", "optimizer, x, y)", "optimizer, x, y); scheduler.step()")


def one_step_an_epoch(model, loss_fn, batches, epochs):
    seen = []
    for epoch in range(epochs):
        seen.append(0.1 * 0.5**epoch)
        for x, y in batches:
            model.zero_grad()
            loss_fn(model(x), y).backward()
        engine.optim.SGD(model.parameters(), lr=seen[-1]).step()
    return seen


def by_hand_rates(model, loss_fn, batches, epochs):
    seen = []
    for epoch in range(epochs):
        seen.append(0.1 * 0.5**epoch)
        optimizer = engine.optim.SGD(model.parameters(), lr=seen[-1])
        for x, y in batches:
            at_once(model, loss_fn, optimizer, x, y)
    return seen


EXERCISES = (
    Exercise(
        key="15.1",
        points=1,
        answer=epoch,
        trial=epoch_trial,
        wrong=mistakes(
            changed(epoch, "loss.item()", "loss", "total / len(batches)", "(total / len(batches)).item()"),
            "The sum is a result, too, and keeps the graph of each loss in it. Add up numbers.",
            changed(epoch, "+= loss", "= loss", "total / len(batches)", "total"),
            "That is the last loss. Return the mean of all.",
            changed(epoch, "+= loss", "= loss"),
            "That is the last loss alone, divided by the number of batches. Add each one up: `+=`, in the loop.",
            changed(epoch, "total / len(batches)", "total"),
            "That is the sum. Divide it by the number of batches.",
            changed(epoch, "loss.item()", "loss.detach()"),
            "No graph is kept. But you return a tensor. Return a Python number: `.item()`.",
            changed(epoch, "loss_fn(model(x), y)", "loss_fn(model(x), y).item()", "loss.item()", "loss"),
            "You take the number before `backward()`, and a number has no way back. Take it after that, where "
            "you add up.",
            without_training,
            "Nothing is learned any more: the steps find no gradients, because `no_grad` leaves no way back, or "
            "because they are cleared after `backward()`. The step was right; it is the *sum* that keeps the "
            "graphs.",
            changed(epoch, "loss.item()", "loss.item() * len(x)"),
            "You multiply each loss by its number of examples, and divide the sum by the number of batches. "
            "Return the plain mean of the batches' losses.",
            changed(
                epoch,
                "total = 0.0",
                "total = seen = 0",
                "loss.item()",
                "loss.item() * len(x); seen += len(x)",
                "len(batches)",
                "seen",
            ),
            "That is the mean over the *examples*, which is often the better one. But return the mean of the "
            "batches' losses.",
        ),
        properties=properties(
            changed(epoch, "return total / len(batches)", "print(total / len(batches))"),
            lambda did: did.result["mean loss"] is not None,
            "Nothing comes back: `return` the mean (`print` only shows it).",
            changed(epoch, "total / len(batches)", "round(total / len(batches), 2)"),
            lambda did: (
                did.result["mean loss"] is None
                or not same(did, "numbers")
                or did.result["graphs kept at once"] != did.expected["graphs kept at once"]
                or same(did, "mean loss")
            ),
            "The training is right. But the number is not the mean of the batches' losses: add up `loss.item()` of "
            "each batch, and divide once, by `len(batches)`.",
        ),
        understood="A number has no graph: keep numbers, and each batch's graph goes with its batch.",
        hints=(
            "What does `total` hold after three batches: a number, or a tensor?",
            "It holds a tensor with a graph, and the graphs of all losses hang on that. `.item()` is the number alone.",
            "total += loss.item(), and at the end: return total / ...",
        ),
    ),
    Exercise(
        key="15.2",
        points=2,
        answer=mean_loss,
        trial=test_trial,
        wrong=mistakes(
            changed(mean_loss, "model.train(before)", "", "engine.no_grad()", "engine.enable_grad()"),
            "Neither is repaired: the test takes notes, and it leaves training off.",
            changed(mean_loss, "model.train(before)", ""),
            "The test takes no notes any more. But a model that came in training mode is not in it afterwards.",
            changed(mean_loss, "engine.no_grad()", "engine.enable_grad()"),
            "The model is as it was. But the test takes notes: put `with engine.no_grad():` around model and loss.",
            changed(mean_loss, "model.train(before)", "model.training = before"),
            "You set the flag of the model alone. Its parts stay in eval mode, the dropout among them: "
            "`model.train(before)` sets those too.",
            changed(mean_loss, "model.train(before)", "model.train()"),
            "Now every model is in training mode afterwards, even one that did not come in it.",
            changed(mean_loss, "model.train(before)", "model.train()", "engine.no_grad()", "engine.enable_grad()"),
            "The test takes notes, and every model is in training mode afterwards, even one that did not come in it.",
            changed(mean_loss, "model.eval()", "model.eval().requires_grad_(False)"),
            "The model is frozen, and stays so: it will never learn again. `with engine.no_grad():` does no such harm.",
            changed(mean_loss, "model.eval()", ""),
            "Without `eval()`, dropout drops numbers during the test.",
            changed(mean_loss, ".item()", ".item(); model.train(before)"),
            "You put the mode back inside the loop, so the second batch is tested in training mode. Put it back "
            "after the loop.",
            changed(mean_loss, ".item()", ".item(); return total / len(batches)"),
            "The function returns after the first batch: `return` is inside the loop, and nothing that comes "
            "after it happens.",
        ),
        properties=properties(
            changed(mean_loss, "model.train(before)", "model.train(not before)"),
            lambda did: did.result["training afterwards"] == did.expected["training afterwards"],
            "The model is not left in the mode in which it came: `before = model.training` at the beginning, "
            "`model.train(before)` at the end.",
            changed(mean_loss, "engine.no_grad()", "engine.set_grad_enabled(before)"),
            lambda did: not did.result["took notes"],
            "The test takes notes, at least for some models. Put `with engine.no_grad():` around the loop, "
            "whatever mode the model came in.",
            changed(mean_loss, "total / len(batches)", "round(total / len(batches), 1)"),
            lambda did: same(did, "mean loss"),
            "The number is not the mean of the batches' losses with dropout off: `model.eval()` first, add up all, "
            "and divide by `len(batches)`.",
        ),
        understood="What you switch, you put back. And where nobody goes back, no notes are needed.",
        hints=(
            "Two things are missing: one around the loop, one after it.",
            "`with engine.no_grad():` around it. `before = model.training` at the beginning, put back at the end.",
            "before = model.training\nmodel.eval()\nwith engine.no_grad():\n    ...\nmodel.train(...)",
        ),
    ),
    Exercise(
        key="15.3",
        points=2,
        answer=in_parts,
        trial=accumulate_trial,
        wrong=mistakes(
            weighted("1"),
            "You add up the gradients of the means, which makes the step too long.",
            weighted("1 / len(parts)"),
            "That is right as long as all parts are equal. But an example in a part of 8 now counts twice as "
            "much as one in a part of 16.",
            weighted("1 / len(x)"),
            "Each loss is already a mean over its part. Multiply it by the part's length first.",
            changed(in_parts, "optimizer.step()", "", "backward()", "backward(); optimizer.step()"),
            "You take a step after each part. There should be one step, when everything has been added up.",
            changed(
                in_parts,
                "    optimizer.step()",
                "",
                "backward()",
                "backward(); optimizer.step(); optimizer.zero_grad()",
            ),
            "Every part clears the gradients, and has a step of its own. There should be one step, at the end.",
            changed(
                in_parts,
                "optimizer.step()",
                "",
                "(len(part_x) / len(x))).backward()",
                "1).backward(); optimizer.step(); optimizer.zero_grad()",
            ),
            "That is ordinary training on small batches, with a step for each part. Take one step, that of the "
            "whole batch.",
            weighted("len(part_x)"),
            "Each mean, times its length, is a sum. Divide by how many examples there are in all.",
            changed(in_parts, "        (loss_fn", "        optimizer.zero_grad(); (loss_fn"),
            "The gradients are cleared before each part, so only the last one counts.",
            weighted("1 / 4"),
            "64 examples make four parts. But here there may be more of them, or fewer.",
            weighted("16 / len(x)"),
            "That is right as long as all parts have 16 examples. The last one may be smaller, and should then "
            "count for less.",
            whole_parts_alone,
            "The last part, which may be smaller than 16, is left out. Take it in, with its share of the examples.",
            changed(in_parts, "optimizer.zero_grad()", ""),
            "You add to what the step before has left in `.grad`. Call `optimizer.zero_grad()` before the loop.",
            changed(in_parts, "optimizer.step()", ""),
            "No step is taken: call `optimizer.step()` at the end.",
            of_parts(8),
            "The step is right. But your parts have 8 examples. Take parts of 16, as many as fit.",
            weighted("len(x) / len(part_x)"),
            "It is the wrong way round: a part of 16 out of 64 should count for 16 / 64, and yours counts for 64 / 16.",
            at_once,
            "The step is right. But the whole batch goes through the model at once, and that does not fit.",
            one_sum,
            "The step is right. But the graphs of all parts are kept until the end, and they do not fit either. "
            "Call `backward()` for each part.",
        ),
        properties=properties(
            of_parts(32),
            lambda did: did.result["most examples at once"] <= 16,
            "More than 16 examples go through the model at once, and they do not fit.",
            weighted("len(part_x) / 40"),
            lambda did: did.result["most examples at once"] > 16 or same(did, "numbers"),
            "The step is not that of the whole batch. Each part's loss should count for its share of the examples, "
            "`len(part_x) / len(x)`, however large the batch and the part are.",
        ),
        understood="Gradients add up, so a large batch can go through in parts, each weighted by its share.",
        hints=(
            "Four means are added up. What must you do to each, so that the mean of all examples comes out?",
            "Weight each by its share of the examples: `len(part_x) / len(x)`.",
            "loss = loss_fn(model(part_x), part_y) * ...\nloss.backward()",
        ),
    ),
    Exercise(
        key="15.4",
        points=1,
        answer=by_hand,
        trial=clip_trial,
        wrong=mistakes(
            changed(clipped_step, "optimizer.step()", "", "length =", "optimizer.step(); length ="),
            "The step is taken before the gradient is clipped.",
            changed(
                clipped_step,
                "optimizer.zero_grad()",
                "optimizer.zero_grad(); nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                "length = nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n",
                "\n",
                "length.item()",
                "0.0",
            ),
            "There is no gradient yet to clip. Clip after `backward()`.",
            clipped_by(f"({CLIP}, norm(model))[1]"),
            "The step is right. But return the length *before* clipping, which `clip_grad_norm_` returns.",
            clipped_by("(norm(model), nn.utils.clip_grad_value_(model.parameters(), 1.0))[0]"),
            "You limited each number by itself, which changes the direction. Limit the length of the whole gradient.",
            clipped_by("(all := norm(model), [p.grad.div_(all) for p in model.parameters()])[0]"),
            "Long gradients are shortened. But short ones are made longer, and should be left as they are.",
            clipped_by("(norm(model), [nn.utils.clip_grad_norm_([p], 1.0) for p in model.parameters()])[0]"),
            "You limited each parameter by itself, which changes the direction. Limit one length, that of all "
            "together.",
            clipped_by("[nn.utils.clip_grad_norm_([p], 1.0) for p in model.parameters()][-1]"),
            "You clip and measure each parameter by itself, and return the last length. Give all parameters to "
            "one call: it is one length, of all together.",
            changed(clipped_step, "optimizer.step()", "optimizer.step(); optimizer.step()"),
            "Two steps are taken with one gradient: one `optimizer.step()` is enough.",
            changed(clipped_step, "optimizer.step()", ""),
            "No step is taken any more: `optimizer.step()` is missing.",
            changed(clipped_step, "length =", "optimizer.step(); length ="),
            "Two steps are taken, and the first one with the gradient as it was. One is enough, after clipping.",
            changed(clipped_step, CLIP, "norm(model)", "optimizer.step()", "length > 1.0 or optimizer.step()"),
            "No step is taken where the gradient is long. Shorten it to length 1, and take the step all the same.",
            changed(clipped_step, "optimizer.zero_grad()", ""),
            "You clip in time. But the gradients of the step before are still there: `zero_grad()` is gone.",
            changed(clipped_step, "length.item()", "length"),
            "You return a tensor. Return a Python number: `.item()`.",
        ),
        properties=properties(
            lambda *arguments: print(by_hand(*arguments)),
            lambda did: None not in did.result["lengths"],
            "Nothing comes back: `return` the length, as a number.",
            changed(clipped_step, "1.0", "9.0"),
            lambda did: same(did, "numbers") or not np.isclose(*first_lengths(did)),
            "The first length is right. But the step is not that of the gradient, shortened to length 1 where it "
            "is longer: `clip_grad_norm_(model.parameters(), 1.0)` between `backward()` and `step()`.",
            changed(clipped_step, "loss_fn(model(x), y)", "loss_fn(model(x), y).clamp(max=1.0)"),
            lambda did: all(found or not asked for found, asked in zip(*lengths(did), strict=True)),
            "A gradient has length 0 where it should be long. Have you cut off the *loss*? Beyond the cut it is "
            "flat. Clip the gradient instead, after `backward()`.",
            changed(clipped_step, "length.item()", "length.item() ** 2"),
            lambda did: None in did.result["lengths"] or not same(did, "numbers") or same(did, "lengths"),
            "The step is right. But what you return is not the length of the gradient before clipping. That is "
            "what `clip_grad_norm_` returns.",
        ),
        understood="Between backward and step is the only place where a gradient can still be changed.",
        hints=(
            "In which order do the three lines have to be?",
            "The order is backward, clip, step. Whatever is clipped after the step is never used.",
            "Move `optimizer.step()` one line down.",
        ),
    ),
    Exercise(
        key="15.5",
        points=1,
        answer=by_hand_rates,
        trial=rates_trial,
        wrong=mistakes(
            after_each_batch,
            "The rate is halved after each *batch*. The scheduler belongs to the outer loop.",
            changed(halving, "scheduler.step()", ""),
            "Every epoch is run with 0.1. Either `scheduler.step()` is not called before the epochs are over, or"
            " optimizer and scheduler are made anew in each epoch.",
            changed(
                halving,
                "scheduler.step()",
                "",
                "seen.append",
                "optimizer.zero_grad(); optimizer.step(); scheduler.step(); seen.append",
            ),
            "The first epoch is run with half the rate. It begins at 0.1, and is halved *after* each epoch.",
            changed(
                halving,
                "scheduler.step()",
                "",
                "seen.append(scheduler.get_last_lr()[0])",
                "seen.append(scheduler.get_last_lr()[0]); scheduler.step()",
            ),
            "You write down the rate, and halve it before the batches of that epoch come. They are run with half"
            " of what you report. `scheduler.step()` belongs after them.",
            one_step_an_epoch,
            "The rates are right. But there is only one step in each epoch: `optimizer.step()` has left the "
            "inner loop, or a `break` ends it. That step belongs to each batch, and only `scheduler.step()` to "
            "the epoch.",
            changed(halving, "scheduler.step()", "scheduler.step(); seen[-1] = scheduler.get_last_lr()[0]"),
            "You write down each rate after it was halved. Write down the one with which the epoch was run.",
            changed(halving, "get_last_lr()[0]", "get_last_lr()"),
            "`get_last_lr()` gives a list, with a rate for each group of parameters. There is one: take its first.",
            changed(
                halving,
                "gamma=0.5",
                "gamma=0.5 ** (1 / 3)",
                "scheduler.step()",
                "",
                "optimizer, x, y)",
                "optimizer, x, y); scheduler.step()",
            ),
            "The rate is right after each epoch. But yours falls after each batch, and an epoch should have one rate.",
        ),
        properties=properties(
            lambda *arguments: by_hand_rates(*arguments)[:-1],
            lambda did: np.shape(did.result["rates"]) == np.shape(did.expected["rates"]),
            "There should be a rate for each epoch, in a list.",
            changed(halving, "gamma=0.5", "gamma=0.25"),
            lambda did: np.shape(did.result["rates"]) != np.shape(did.expected["rates"]) or same(did, "rates"),
            "Those are not the rates. They should be 0.1, 0.05, 0.025 and so on: `scheduler.step()` once after "
            "each epoch, with `gamma=0.5`.",
            lambda model, loss_fn, batches, epochs: [0.1 * 0.5**epoch for epoch in range(epochs)],
            lambda did: not same(did, "rates") or same(did, "numbers"),
            "The rates are right. But the training is not what it was: for each batch `zero_grad()`, `backward()` "
            "and `optimizer.step()`, with the rate of the epoch.",
        ),
        understood="A scheduler counts its own calls: whether they are epochs or batches is up to the loop.",
        hints=(
            "How often is `scheduler.step()` called in one epoch?",
            "Once for each batch. It belongs after the inner loop, not in it.",
            "Move `scheduler.step()` four columns to the left.",
        ),
    ),
)
