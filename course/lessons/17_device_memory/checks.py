"""Lesson 17, device memory: the exercises' trials, oracles, usual mistakes and hints."""

import gc
from contextlib import contextmanager
from itertools import product

import engine
from course.judging.words import Exercise, changed, mistakes, properties
from engine import nn, sim

MIB = 2**20


@contextmanager
def room(nbytes):
    """Make the simulated device, with room for so much more than what is in use."""
    gc.collect()
    sim.empty_cache()
    before = sim.mem_get_info()[1]
    sim.set_capacity(sim.memory_reserved() + nbytes)
    try:
        yield
    finally:
        sim.set_capacity(before)


# In the lesson


NUMBERS = 16 * (256 * 256 + 256) + 256 * 10 + 10


def needs_trial(needs):
    for batch in (1024, 64, 8192):
        yield f"batch = {batch}", needs, batch


def four(gradients=1.0, state=2.0, activations=16.0, unit=4 / MIB):
    """`needs`, with so many gradients, numbers of Adam for a parameter, and results of 256 for an example."""

    def needs(batch):
        return tuple(unit * n for n in (NUMBERS, gradients * NUMBERS, state * NUMBERS, activations * 256 * batch))

    return needs


def off(did, entry, factor):
    """Tell whether an entry is what it should be, times a factor.  ValueError where there are not four."""
    _, _, _, _ = did.result
    return abs(did.result[entry] / did.expected[entry] - factor) < 2e-3


# 17.1


LEFT = (4, 0, 4, 8, 4, 8)


# 17.2


def half_frozen():
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    model[0].requires_grad_(False)
    return model


WITH_BUFFERS = "Linear(4, 3) and BatchNorm1d(3), copies = 2"
BUFFERS = 2 * 3 * 4 + 8  # of the batch norm: two rows of three numbers, and a count


def bytes_trial(training_bytes):
    yield "Linear(4, 3), copies = 2", training_bytes, nn.Linear(4, 3), 2
    yield "Linear(4, 3), copies = 0", training_bytes, nn.Linear(4, 3), 0
    yield "Linear(4, 3), Linear(3, 2), the first one frozen, copies = 2", training_bytes, half_frozen(), 2
    yield "Linear(4, 3) in float16, copies = 2", training_bytes, nn.Linear(4, 3).half(), 2
    both = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2).half())
    yield "Linear(4, 3) in float32, Linear(3, 2) in float16, copies = 2", training_bytes, both, 2
    yield WITH_BUFFERS, training_bytes, nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), 2
    yield "", training_bytes, nn.Conv2d(2, 3, 5).double(), 1


def counted(times=lambda copies: 2 + copies, frozen=lambda copies: 1, size=lambda p: p.element_size()):
    """`training_bytes`: so many tensors of its size for a parameter that learns, and a frozen one (None: the same)."""

    def attempt(model, copies):
        each = {True: times(copies), False: (frozen or times)(copies)}
        return sum(p.numel() * size(p) * each[p.requires_grad] for p in model.parameters())

    return attempt


def of_the_last(model, copies):
    total = 0
    for p in model.parameters():
        size = p.numel() * p.element_size()
        total += size
        if p.requires_grad:
            total = size * (1 + copies)
    return total


TIMES = (
    ({}, ""),
    (
        {"times": lambda copies: 1 + copies},
        "That is one too few for a parameter that learns: count itself, its gradient, and `copies`.",
    ),
    (
        {"times": lambda copies: copies},
        "You count only the optimiser state of a parameter that learns. What about "
        "the parameter itself, and its gradient?",
    ),
    ({"times": lambda copies: 4}, "Not every optimiser keeps two numbers for each parameter: it is `copies`."),
    ({"times": lambda copies: 2}, "The optimiser's numbers are missing: `copies` for each parameter."),
    ({"times": lambda copies: 1}, "Those are the parameters alone. What else does a parameter that learns need?"),
    ({"times": lambda copies: 2 * copies}, "The gradient is one more, and not a factor: 1 + 1 + copies."),
    ({"times": lambda copies: 3 + copies}, "That is one too many. Count the parameter, its gradient, and `copies`."),
)
FROZEN = (
    ({}, ""),
    ({"frozen": None}, "A frozen parameter has no gradient, and the optimiser keeps nothing for it."),
    ({"frozen": lambda copies: 0}, "A frozen parameter needs no gradient. But it is still there itself."),
)
SIZES = (
    ({}, ""),
    ({"size": lambda p: 4}, "Not every number takes 4 bytes: ask for `element_size()`."),
    ({"size": lambda p: 1}, "That is how many *numbers* there are. How many bytes does each of them take?"),
)


def miscounted():
    """Yield each of these mistakes alone, two at once, and three."""
    for several in product(TIMES, FROZEN, SIZES):
        made = {name: value for mistake, _ in several for name, value in mistake.items()}
        # One tensor for each parameter, four bytes each: that is also four tensors, one byte each.
        plain = several[0][1].startswith("Those are") and several[1:] != (FROZEN[0], SIZES[0])
        if made and not plain:
            yield from (counted(**made), " ".join(said for _, said in several if said))


def added_up(model, copies):
    total = 0
    for p in model.parameters():
        size = p.numel() * p.element_size()
        total += size * (2 + copies if p.requires_grad else 1)
    return total


# 17.3


def network(width=64, depth=4):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(depth)]).to("sim")


def batch(n, width=64, answers=10):
    return engine.randn(n, width).to("sim"), engine.randint(0, answers, (n,)).to("sim")


def most_in_use(mean_loss, model, batches):
    gc.collect()
    sim.reset_peak_memory_stats()
    found = mean_loss(model, batches)
    return found, sim.max_memory_allocated()


def tested(mean_loss, model, sizes):
    batches = [batch(n, width=model[0][0].in_features) for n in sizes]
    few = most_in_use(mean_loss, model, batches[:3])[1]
    found, many = most_in_use(mean_loss, model, batches)
    return {"the mean loss": found, "more batches need more memory": many > few + 0.1 * MIB}


def with_backward(model, batches):
    return sum(loss.backward() or loss.item() for loss in each_loss(model, batches)) / len(batches)


def in_use():
    """A network that has gradients, and is not in training."""
    model = network(width=16, depth=1).eval()
    for p in model.parameters():
        p.grad = engine.ones_like(p)
    return model


def loss_trial(mean_loss):
    what = "what it gives, and whether it needs more memory for 8 batches than for 3"
    yield f"7 batches of 256 examples and one of 4: {what}", tested, mean_loss, network(), [256] * 7 + [4]
    yield "a small network in eval mode, with gradients in .grad", tested, mean_loss, in_use(), [4, 4, 4, 2]
    yield "", tested, mean_loss, network(), [256, 256, 256, 128, 200, 17, 256, 250, 256]


def each_loss(model, batches):
    for x, answers in batches:
        yield nn.functional.cross_entropy(model(x), answers)


def mean_loss(model, batches):
    with engine.inference_mode():
        losses = [loss.item() for loss in each_loss(model, batches)]
    return sum(losses) / len(losses)


def in_a_list(model, batches):
    losses = list(each_loss(model, batches))
    return engine.stack(losses).mean().item()


def of_examples(model, batches):
    with engine.no_grad():
        losses = [loss.item() for loss in each_loss(model, batches)]
    sizes = [len(x) for x, _ in batches]
    return sum(loss * size for loss, size in zip(losses, sizes, strict=True)) / sum(sizes)


def all_at_once(model, batches):
    with engine.no_grad():
        x, answers = (engine.cat(parts) for parts in zip(*batches, strict=True))
        return nn.functional.cross_entropy(model(x), answers).item()


def a_tensor(model, batches):
    with engine.no_grad():
        return sum(each_loss(model, batches)) / len(batches)


def the_last(model, batches):
    return [loss.item() for loss in each_loss(model, batches)][-1]


# 17.4


def tried(with_less, n, nbytes):
    """The answer for a step that needs n MiB, and with what it was called."""
    calls = []

    def step(n):
        calls.append(n)
        made = []  # a variable of the function: the error's traceback leads to it
        for _ in range(n):
            made.append(engine.ones(MIB // 4, device="sim"))

    with room(nbytes):
        return {"returned": with_less(step, n), "step was called with": calls}


def calls(did):
    """Return what `step` was called with, and what it should have been called with."""
    return did.result["step was called with"], did.expected["step was called with"]


def went_on(found, asked):
    """Tell whether all was right up to the number that fits, and a smaller one was tried after it."""
    last = len(asked)
    return found[:last] == asked and any(n < asked[-1] for n in found[last:])


def not_its_business(with_less):
    def step(n):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x3 and 4x3)")

    return with_less(step, 8)


OTHER = "step has another mistake: a RuntimeError"


def less_trial(with_less):
    yield "step(n) needs n MiB, there are 32 MiB, n = 24", tried, with_less, 24, 32 * MIB
    yield "step(n) needs n MiB, there are 32 MiB, n = 48", tried, with_less, 48, 32 * MIB
    yield "step(n) needs n MiB, there are 32 MiB, n = 100", tried, with_less, 100, 32 * MIB
    yield OTHER, not_its_business, with_less
    yield "", tried, with_less, 37, 16 * MIB


def with_less(step, n):
    fits = False
    while not fits:
        try:
            step(n)
            fits = True
        except engine.OutOfMemoryError:
            fits = False
        n = n if fits else n // 2
    return n


def nothing_after_half(step, n):
    try:
        step(n)
        return n
    except engine.OutOfMemoryError:
        pass
    nothing_after_half(step, n // 2)


def halving(step, n):
    while n:
        try:
            step(n)
            break
        except engine.OutOfMemoryError:
            pass
        n = n // 2
    return n


def next_but_one(step, n):
    fitted = with_less(step, n)
    return n if fitted == n else fitted // 2


# 17.5


def gradients(backward, examples, size, nbytes=1024 * MIB, depth=2, before=None):
    with room(nbytes):
        model = network(depth=depth)
        for p in model.parameters():
            p.grad = before and engine.full_like(p, before)
        most = [0]
        model.register_forward_pre_hook(lambda module, args: most.append(len(args[0])))
        backward(model, *batch(examples, answers=64), size)
        found = [p.grad for p in model.parameters()]
        ready = model.training and all(p.requires_grad for p in model.parameters())
        return [
            *(g if g is None else g.cpu() for g in (found[0], found[-1])),
            "ready to train" if ready else "not ready",
            f"at most {size} at once" if max(most) <= size else f"{max(most)} at once",
        ]


def parts_trial(backward):
    what = "the gradients of the first weight and of the last bias, the model, and how many it gets"
    yield f"8 examples, size = 4: {what}", gradients, backward, 8, 4
    yield f"10 examples, size = 4: {what}", gradients, backward, 10, 4
    yield f"11 examples, size = 2: {what}", gradients, backward, 11, 2
    shown = f"8 examples, size = 4, with 1 in every place of .grad before: {what}"
    yield shown, gradients, backward, 8, 4, 1024 * MIB, 2, 1.0
    yield f"2048 examples in 4 MiB, size = 512: {what}", gradients, backward, 2048, 512, 4 * MIB, 12
    yield "", gradients, backward, 7, 7
    yield "", gradients, backward, 7, 3


def weighted(share, before=lambda model: None):
    """`backward_in_parts`, with what is done with each part's loss."""

    def attempt(model, x, answers, size):
        for some, right in zip(x.split(size), answers.split(size), strict=True):
            before(model)
            (nn.functional.cross_entropy(model(some), right) * share(len(some), len(x), size)).backward()

    return attempt


def backward_in_parts(model, x, answers, size):
    for at in range(0, len(x), size):
        loss = nn.functional.cross_entropy(model(x[at : at + size]), answers[at : at + size], reduction="sum")
        (loss / len(x)).backward()


def together(model, x, answers, size):
    losses = [
        nn.functional.cross_entropy(model(some), right) * (len(some) / len(x))
        for some, right in zip(x.split(size), answers.split(size), strict=True)
    ]
    sum(losses).backward()


def divided_at_the_end(model, x, answers, size):
    parts = x.split(size)
    for some, right in zip(parts, answers.split(size), strict=True):
        nn.functional.cross_entropy(model(some), right).backward()
    for p in model.parameters():
        p.grad /= len(parts)


def all_at_once_in_parts(model, x, answers, size):
    scores = model(x)
    losses = [
        nn.functional.cross_entropy(some, right, reduction="sum")
        for some, right in zip(scores.split(size), answers.split(size), strict=True)
    ]
    (sum(losses) / len(x)).backward()


STEPS = (
    Exercise(
        key="17.needs",
        points=0,
        answer=four(),
        trial=needs_trial,
        tolerance=2e-3,  # who takes 4.03 for the parameters has counted right
        wrong=mistakes(
            four(unit=4),
            "Those are bytes. A MiB is 2**20 of them.",
            four(unit=1),
            "That is how many numbers there are. How many bytes does each of them take, and how many bytes is a MiB?",
            four(unit=1 / MIB),
            "Each number takes four bytes.",
            four(unit=4 / 10**6),
            "You divided by a million. A MiB is 2**20 bytes.",
            four(unit=4 / 1024),
            "Those are KiB. A MiB is 1024 times as much.",
            lambda batch: sum(four()(batch)),
            "That is all of it together. Return four numbers, with commas between them.",
        ),
        properties=properties(
            lambda batch: four()(batch)[::3],
            lambda did: len(did.result) == 4,
            "Return four numbers: parameters, gradients, Adam's state, activations.",
            four(gradients=2),
            lambda did: off(did, 1, 1),
            "Gradients: there is one number for each parameter, of the parameter's type, whatever the batch.",
            four(state=1),
            lambda did: not off(did, 2, 0.5),
            "Adam keeps *two* numbers for each parameter.",
            four(state=3),
            lambda did: off(did, 2, 1) or off(did, 2, 0.5),
            "Adam's state is two numbers for each parameter, and nothing else.",
            four(activations=32),
            lambda did: not off(did, 3, 2),
            "The result of `Tanh` and the input of the next `Linear` are one tensor: it is kept once.",
            four(activations=1),
            lambda did: not off(did, 3, 1 / 16),
            "That is what one layer keeps. There are sixteen.",
            four(activations=17),
            lambda did: not off(did, 3, 17 / 16),
            "Count the activations of sixteen layers, without the batch itself.",
            four(activations=16 / 256),
            lambda did: not off(did, 3, 1 / 256),
            "For each example a layer keeps 256 numbers, not one.",
            lambda batch: four()(1024),
            lambda did: did.expected[3] == 16 or not off(did, 3, 16 / did.expected[3]),
            "The activations grow with the batch, and yours do not.",
        ),
        understood="Three of the four depend on the parameters alone, and the fourth on the batch.",
        hints=(
            "`numbers` from above, four bytes each, and 2**20 bytes in a MiB: that is the first entry.",
            "The gradients take the same again, and Adam's state takes twice that. And a layer keeps 256 numbers for"
            " each example.",
            "activations = 16 * ... * 256 * 4 / 2**20",
        ),
    ),
)


EXERCISES = (
    Exercise(
        key="17.1",
        points=1,
        answer=LEFT,
        wrong=mistakes(
            (8, 4, 4, 8, 8, 12),
            "That is all that was ever made. At the end, what still leads to it?",
            (4, 4, 4, 4, 4, 4),
            "That is x alone, each time. In some programs it is gone, and in some it is not alone.",
        ),
        entries={
            1: (
                (8, "After `x = y` both names belong to the second tensor. What leads to the first one?"),
                (12, "There are two tensors, and after `x = y` both names belong to one of them."),
                (4 * MIB, "Those are bytes. Give MiB: divide by 2**20."),
            ),
            2: (
                (4, "`clone()` copies: the rows have memory of their own, 4 KiB each, and nothing looks into x's."),
                (16, "Each row has 1024 numbers, not 1024 by 1024."),
            ),
            3: (
                (2, "`bottom` is a view. It shows a half, but it keeps the whole memory alive."),
                (0, "`del` deletes two names. `bottom` is a view, and still leads to the memory."),
                (8, "`split` makes views: there is one memory, that of x."),
            ),
            4: (
                (4, "Nothing of yours leads to `y`. But `exp` has kept its result, and `z` leads to the note."),
                (12, "There are two large tensors: x, and what `exp` gave. `z` is one number."),
                (0, "x is still there."),
            ),
            5: (
                (8, "Under `no_grad` there is no note that could keep `y`."),
                (0, "x is still there."),
            ),
            6: (
                (4, "`backward()` frees what `exp` has kept. But it has also made something for x."),
                (12, "The gradient is new. But `backward()` has let go of what `exp` had kept."),
                (0, "x is still there, and something that `backward()` has made for it."),
            ),
        },
        understood="A tensor stays for as long as a name, a view, a note or a `.grad` leads to it.",
        hints=(
            "Ask of each program: which pieces of 4 MiB were made, and what leads to each of them at the end?",
            "A view keeps alive all of the memory that it looks into. A note keeps what it has saved, until "
            "`backward()` has read it.",
            "In the last program two things of 4 MiB are left: x, and ...",
        ),
    ),
    Exercise(
        key="17.2",
        points=1,
        answer=counted(),
        trial=bytes_trial,
        wrong=mistakes(
            *miscounted(),
            changed(added_up, "total += ", "return "),
            "Only the first parameter is counted: the function returns before the loop is done.",
            changed(added_up, "+= size", "+= (p.ndim > 1) * size"),
            "The biases are parameters, too.",
            lambda model, copies: sum(2 + copies if p.requires_grad else 1 for p in model.parameters()),
            "That is how many *tensors* there are. How many numbers does each have, and how many bytes a number?",
            counted(frozen=lambda copies: 1 + copies),
            "The optimiser keeps nothing for a frozen parameter either: count the parameter itself, and nothing else.",
            counted(frozen=lambda copies: 2),
            "A frozen parameter has no gradient: count the parameter itself, and nothing else.",
            lambda model, copies: counted()(model, copies) / MIB,
            "That is in MiB. Return bytes.",
            counted(times=lambda copies: 3 + 2 * copies),
            "You count twice what a parameter that learns needs. It is the parameter itself, one gradient, and "
            "`copies` more.",
            counted(times=lambda copies: 1, frozen=lambda copies: 2 + copies),
            "It is the wrong way round: the parameters that are *not* frozen have a gradient and optimiser state.",
            of_the_last,
            "`=` in the loop throws away what was counted before. Add to the total with `+=`.",
            counted(size=lambda p: p.element_size() * len(p) / p.numel()),
            "`len(p)` counts the rows of a table. `p.numel()` counts all its numbers.",
            lambda model, copies: counted()(model, copies) * 8,
            "Those are bits. `element_size()` gives bytes already.",
            changed(added_up, "p.requires_grad", "next(model.parameters()).requires_grad"),
            "You ask only the first parameter whether it is frozen. Ask each of them.",
            changed(added_up, "p.element_size", "next(model.parameters()).element_size"),
            "You ask only the first parameter how many bytes a number takes. Ask each of them.",
            changed(
                added_up,
                "p.requires_grad",
                "next(model.parameters()).requires_grad",
                "p.element_size",
                "next(model.parameters()).element_size",
            ),
            "You ask only the first parameter, for its type and whether it is frozen. Ask each.",
            changed(added_up, "size * (2 + copies", "(2 * size + 4 * copies * p.numel()", "else 1)", "else size)"),
            "The optimiser's numbers have the parameter's type, too: two bytes each for float16.",
            changed(added_up, "size * (2 + copies", "(size + 4 * (1 + copies) * p.numel()", "else 1)", "else size)"),
            "Gradients and the optimiser's numbers have the parameter's type: two bytes for float16.",
        ),
        properties=properties(
            changed(added_up, "model.parameters()", "model.state_dict(keep_vars=True).values()"),
            lambda did: did.shown != WITH_BUFFERS or did.result - did.expected not in (BUFFERS, 4 * BUFFERS),
            "You count buffers, too, such as the means of a batch norm. They are in `state_dict()`, but only what "
            "`model.parameters()` gives is a parameter.",
        ),
        understood="Before a night of training, one sum tells whether parameters, gradients and state fit at all.",
        hints=(
            "Which other tensors of its own size does a parameter that learns need?",
            "It needs itself, its gradient, and `copies` more: 2 + copies. A frozen one needs 1. `p.requires_grad` "
            "tells which it is.",
            "total += p.numel() * p.element_size() * (... if p.requires_grad else 1)",
        ),
    ),
    Exercise(
        key="17.3",
        points=1,
        answer=mean_loss,
        trial=loss_trial,
        wrong=mistakes(
            lambda model, batches: sum(loss.item() for loss in each_loss(model, batches)),
            "The memory is all right. But that is the sum of the losses, and not their mean.",
            of_examples,
            "That is the mean over the *examples*. Return the mean of the batches' losses.",
            all_at_once,
            "There is no graph any more. But all batches go through the network at once, as a single large one.",
            a_tensor,
            "The memory is all right. But you return a tensor. Return a number: `.item()`.",
            the_last,
            "The memory is all right. But that is the loss of the last batch alone.",
            lambda model, batches: mean_loss(model, batches[:1]),
            "The memory is all right. But that is the loss of the first batch alone.",
            lambda model, batches: the_last(model, batches) / len(batches),
            "You divide only the last batch's loss by the number of batches. Add up all of them, with `+=`.",
            with_backward,
            "`backward()` does free the graph. But it leaves gradients in `.grad`, and the next step of the "
            "training would add to them. Take no notes in the first place.",
            lambda model, batches: (with_backward(model, batches), model.zero_grad())[0],
            "`backward()` does free the graph, and `zero_grad()` clears what it has left. But the gradients that"
            " were there before are gone, too. Take no notes in the first place.",
            lambda model, batches: (mean_loss(model.eval(), batches), model.train())[0],
            "The memory is all right. But the model is in training mode afterwards, even if it came in eval mode. "
            "Leave it in the mode in which it came.",
            lambda model, batches: mean_loss(model.requires_grad_(False), batches),
            "The memory is all right. But the model is frozen from now on: it cannot be trained any more.",
            lambda model, batches: in_a_list(model.eval(), batches),
            "`eval()` changes what some layers compute. It does not stop the notes, and you leave it on.",
            lambda model, batches: mean_loss(model.eval(), batches),
            "The memory is all right. But the model is left in eval mode. Leave it in the mode in which it came.",
        ),
        properties=properties(
            in_a_list,
            lambda did: not did.result["more batches need more memory"],
            "All graphs are alive until the end, because a loss, a result or a sum leads to each of them. Keep "
            "only numbers.",
        ),
        understood="A test needs no notes, and numbers lead to no graph, in a list or in a sum.",
        hints=(
            "What does `total` lead to, after the first `+=`?",
            "It leads to a graph. Add up numbers, with `item()`, and take no notes at all in a test.",
            "with engine.no_grad():\n    for x, answers in batches:\n        total += ....item()",
        ),
    ),
    Exercise(
        key="17.4",
        points=2,
        answer=with_less,
        trial=less_trial,
        wrong=mistakes(
            changed(halving, "pass", "gc.collect(); sim.empty_cache(); return with_less(step, n // 2)"),
            "Neither `del error` nor `gc.collect` nor `empty_cache` helps: in the `except` block the error is "
            "alive, and with it the variables of `step`. Try again outside.",
            changed(halving, "pass", "return 0"),
            "It gives up after the first attempt. Try half, and so on, outside of `except`.",
            changed(halving, "OutOfMemoryError:", "OutOfMemoryError as error:", "pass", "last = error"),
            "You try again outside `except`. But the error has a second name there, and what it leads to stays alive.",
            changed(halving, "n // 2", "n - 1"),
            "It works, but with one less each time. Try half.",
            changed(halving, "pass", "return n // 2"),
            "You return half of `n` without having tried it.",
            changed(halving, "n // 2", "n / 2"),
            "`/` gives a fraction. Half of `n` as a whole number is `n // 2`.",
            changed(halving, "return n", ""),
            "It finds the number, but does not return it: a `return` is missing.",
            next_but_one,
            "The number that has worked is halved once more before you return it.",
            changed(halving, "n = n // 2", "step(n // 2); return n // 2"),
            "You try half only once. If that does not fit either, go on: a quarter, and so on.",
        ),
        properties=properties(
            changed(
                halving,
                "while",
                "errors = []\n    while",
                "Error:",
                "Error as error:",
                "pass",
                "errors.append(error)",
            ),
            lambda did: not went_on(*calls(did)),
            "An attempt that would fit fails, because the memory of the failed one before it is still taken: its "
            "error is alive, in an `except` block or under a name, and leads to the variables of `step`.",
            changed(halving, "engine.OutOfMemoryError", "Exception"),
            lambda did: did.shown != OTHER or did.error == "RuntimeError",
            "Other errors must come through, even other RuntimeErrors. Catch `engine.OutOfMemoryError` alone, and "
            "let nothing, such as a `return` in `finally`, take their place.",
            nothing_after_half,
            lambda did: did.result["returned"] is not None,
            "It finds the number, but does not always return it: return what the second call gives, too.",
            lambda step, n: with_less(step, n // 2),
            lambda did: calls(did)[0][:1] == calls(did)[1][:1],
            "The first attempt should be with `n` itself. Halve it only after that has failed.",
            changed(halving, "return n", "step(n); return n"),
            lambda did: len(set(calls(did)[0])) == len(calls(did)[0]),
            "You call `step` twice with the same number. A call that has worked has done its work.",
        ),
        understood="What an error leads to stays alive until its `except` block is over. So try again outside.",
        hints=(
            "What is alive in the `except` block, and what does it lead to?",
            "The error is alive. It leads to its traceback, and that leads to the variables of `step`. So do not "
            "make the next attempt there.",
            "while True:\n    try:\n        step(n)\n        return n\n"
            "    except engine.OutOfMemoryError:\n        pass\n    ...",
        ),
    ),
    Exercise(
        key="17.5",
        points=3,
        answer=backward_in_parts,
        trial=parts_trial,
        wrong=mistakes(
            weighted(lambda n, all, size: 1),
            "The parts' losses are means, and you added them up. That is too large.",
            weighted(lambda n, all, size: 1 / -(-all // size)),
            "A mean of means is right only if all parts have the same size. The last one may be smaller.",
            weighted(lambda n, all, size: 1 / (all // size)),
            "You count only the full parts, and the last one may be smaller. Weigh each by its own length.",
            weighted(lambda n, all, size: size / all),
            "The last part may hold fewer than `size` examples. Weigh each by its own length.",
            weighted(lambda n, all, size: n / all, before=lambda model: model.zero_grad()),
            "Only the last part's gradient is left: do not clear between the parts.",
            changed(backward_in_parts, "for at", "model.zero_grad()\n    for at"),
            "What was in `.grad` before is gone. *Add* to it.",
            changed(backward_in_parts, "0, len(x), size", "1", "/ len(x)", "/ size"),
            "Only the first part was used.",
            divided_at_the_end,
            "Dividing `.grad` at the end divides what was there before, too, and a shorter last part counts for as "
            "much as the others. Weigh each loss before its `backward()`.",
            changed(backward_in_parts, "len(x),", "len(x) - size + 1,"),
            "The last part is smaller than `size`, and was left out.",
            all_at_once_in_parts,
            "The network sees all examples at once. Cut the examples, not the scores, and go back for each part.",
            changed(backward_in_parts, "loss = ", "with engine.no_grad(): loss = ", "(loss / len(x)).backward()", ""),
            "Without notes there are no gradients. Here you need the graph, of one part at a time.",
            weighted(lambda n, all, size: n),
            "That is the gradient of the *sum* over the examples. Divide by their number.",
            weighted(lambda n, all, size: 1 / all),
            "A part's loss is already a mean over its own examples. Multiply it first by the number of those.",
            weighted(lambda n, all, size: 1 / n),
            "A part's loss is already divided by its length. What counts is its share of *all* examples.",
        ),
        properties=properties(
            together,
            lambda did: did.error != "OutOfMemoryError",
            "More than one part's graph is alive at a time. Call `backward()` for each part, before the next one "
            "goes through the network.",
            changed(backward_in_parts, "for at", "size = -(-len(x) // size)\n    for at"),
            lambda did: did.result[3] == did.expected[3] or not did.result[3].endswith("at once"),
            "More than `size` examples are in the network at once. `size` is how many a part has, not how many "
            "parts there are: `split(size)`, not `chunk(size)`.",
            lambda model, *rest: backward_in_parts(model.eval(), *rest),
            lambda did: did.result[2] == did.expected[2],
            "The model is left frozen or in eval mode. Training goes on afterwards, so leave it as it came.",
        ),
        understood="Each part counts for its share of the examples, and its graph is gone before the next one is made.",
        hints=(
            "`in_parts` in the lesson does it. What does it do with the last part?",
            "Multiply each part's loss by the share of the examples that are in it, and call `backward()` at once.",
            "for some, right in zip(x.split(size), answers.split(size)):\n"
            "    loss = nn.functional.cross_entropy(model(some), right)\n    (loss * ...).backward()",
        ),
    ),
)
