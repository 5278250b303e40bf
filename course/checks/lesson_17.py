"""Lesson 17, device memory: the exercises' trials, oracles, usual mistakes and hints."""

import gc
from contextlib import contextmanager

import engine
from course.exercises import Exercise
from engine import nn, sim

MIB = 2**20


@contextmanager
def room(nbytes):
    """The simulated device, with room for so much more than what is in use."""
    gc.collect()
    sim.empty_cache()
    before = sim.mem_get_info()[1]
    sim.set_capacity(sim.memory_reserved() + nbytes)
    try:
        yield
    finally:
        sim.set_capacity(before)


# 17.1


def layers(*widths):
    return nn.Sequential(*[nn.Linear(a, b) for a, b in zip(widths, widths[1:], strict=False)])


def half_frozen():
    model = layers(4, 3, 2)
    model[0].requires_grad_(False)
    return model


def bytes_trial(training_bytes):
    yield "Linear(4, 3), copies = 2", training_bytes, nn.Linear(4, 3), 2
    yield "Linear(4, 3), copies = 0", training_bytes, nn.Linear(4, 3), 0
    yield "Linear(4, 3), Linear(3, 2), the first one frozen, copies = 2", training_bytes, half_frozen(), 2
    yield "Linear(4, 3) in float16, copies = 2", training_bytes, nn.Linear(4, 3).half(), 2


def bytes_more(training_bytes):
    yield "", training_bytes, nn.Conv2d(2, 3, 5).double(), 1


def counted(times, frozen=1, size=lambda p: p.element_size()):
    """`training_bytes`, with so many tensors for each parameter that learns."""

    def attempt(model, copies):
        each = (p.numel() * size(p) * (times(copies) if p.requires_grad else frozen) for p in model.parameters())
        return sum(each)

    return attempt


# 17.2


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
    batches = [batch(n) for n in sizes]
    few = most_in_use(mean_loss, model, batches[:3])[1]
    found, many = most_in_use(mean_loss, model, batches)
    return {"the mean loss": found, "more batches need more memory": many > few + 0.1 * MIB}


def loss_trial(mean_loss):
    what = "what it gives, and whether it needs more memory for 8 batches than for 3"
    yield f"7 batches of 256 examples and one of 4: {what}", tested, mean_loss, network(), [256] * 7 + [4]


def loss_more(mean_loss):
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


def a_sum(model, batches):
    return sum(loss.item() for loss in each_loss(model, batches))


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


# 17.3


def fits(largest, limit, most):
    """The answer for a step that runs out of memory above a limit."""

    def step(n):
        if n > limit:
            raise engine.OutOfMemoryError("sim out of memory")

    return largest(step, most)


def mistaken(largest):
    def step(n):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x3 and 4x3)")

    return largest(step, 64)


def largest_trial(largest):
    yield "up to 20 fit, most = 64", fits, largest, 20, 64
    yield "all sizes fit, most = 64", fits, largest, 1000, 64
    yield "all sizes fit, most = 100", fits, largest, 1000, 100
    yield "up to 16 fit, most = 16", fits, largest, 16, 16
    yield "nothing fits, most = 64", fits, largest, 0, 64
    yield "step has another mistake: a RuntimeError", mistaken, largest


def largest_more(largest):
    yield "", fits, largest, 1, 1
    yield "", fits, largest, 700, 4096


def by_doubling(first=1, caught=engine.OutOfMemoryError, below=lambda size, most: size <= most, back=0):
    def attempt(step, most):
        found, size = 0, first
        while below(size, most):
            try:
                step(size)
            except caught:
                return size if back else found
            found, size = size, 2 * size
        return found

    return attempt


def largest_batch(step, most):
    for size in [2**k for k in range(most.bit_length() - 1, -1, -1)]:
        try:
            step(size)
        except engine.OutOfMemoryError:
            continue
        return size
    return 0


def halving(step, most):
    while most:
        try:
            step(most)
        except engine.OutOfMemoryError:
            most //= 2
        else:
            return most
    return 0


# 17.4


def tried(with_less, n, nbytes):
    """The answer for a step that needs n MiB."""

    def step(n):
        made = []  # a variable of the function: the error's traceback leads to it
        for _ in range(n):
            made.append(engine.ones(MIB // 4, device="sim"))

    with room(nbytes):
        return with_less(step, n)


def not_its_business(with_less):
    def step(n):
        raise ValueError("the labels do not fit the examples")

    return with_less(step, 8)


def less_trial(with_less):
    yield "step(n) needs n MiB, there are 32 MiB, n = 24", tried, with_less, 24, 32 * MIB
    yield "step(n) needs n MiB, there are 32 MiB, n = 48", tried, with_less, 48, 32 * MIB
    yield "step(n) needs n MiB, there are 32 MiB, n = 100", tried, with_less, 100, 32 * MIB
    yield "step has another mistake: a ValueError", not_its_business, with_less


def less_more(with_less):
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


def cleaned_up(step, n):
    try:
        step(n)
        return n
    except engine.OutOfMemoryError:
        gc.collect()
        sim.empty_cache()
        return cleaned_up(step, n // 2)


def error_kept(step, n):
    last = None
    while n:
        try:
            step(n)
        except engine.OutOfMemoryError as error:
            last = error
        else:
            break
        n //= 2
    del last
    return n


def every_error(step, n):
    while n:
        try:
            step(n)
        except Exception:
            n //= 2
        else:
            break
    return n


def one_less(step, n):
    while True:
        try:
            step(n)
        except engine.OutOfMemoryError:
            n -= 1
        else:
            return n


def the_next(step, n):
    try:
        step(n)
        return n
    except engine.OutOfMemoryError:
        return n // 2


# 17.5


def gradients(backward, examples, size, nbytes=1024 * MIB, depth=2, before=None):
    with room(nbytes):
        model = network(depth=depth)
        for p in model.parameters():
            p.grad = before and engine.full_like(p, before)
        backward(model, *batch(examples, answers=64), size)
        found = [p.grad for p in model.parameters()]
        return [g if g is None else g.cpu() for g in (found[0], found[-1])]


def parts_trial(backward):
    what = "the gradients of the first weight and of the last bias"
    yield f"8 examples, size = 4: {what}", gradients, backward, 8, 4
    yield f"10 examples, size = 4: {what}", gradients, backward, 10, 4
    shown = f"8 examples, size = 4, with 1 in every place of .grad before: {what}"
    yield shown, gradients, backward, 8, 4, 1024 * MIB, 2, 1.0
    yield f"4096 examples in 8 MiB, size = 256: {what}", gradients, backward, 4096, 256, 8 * MIB, 12


def parts_more(backward):
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


def cleared_at_first(model, x, answers, size):
    model.zero_grad()
    backward_in_parts(model, x, answers, size)


def together(model, x, answers, size):
    losses = [
        nn.functional.cross_entropy(model(some), right) * (len(some) / len(x))
        for some, right in zip(x.split(size), answers.split(size), strict=True)
    ]
    sum(losses).backward()


def first_part(model, x, answers, size):
    nn.functional.cross_entropy(model(x[:size]), answers[:size]).backward()


EXERCISES = (
    Exercise(
        key="17.1",
        points=1,
        answer=counted(lambda copies: 2 + copies),
        trial=bytes_trial,
        hidden=bytes_more,
        wrong=(
            (counted(lambda copies: 1 + copies), "Parameters and optimizer state are there. What about the gradients?"),
            (counted(lambda copies: copies), "That is the optimizer state alone."),
            (
                lambda model, copies: sum(p.numel() * p.element_size() * (2 + copies) for p in model.parameters()),
                "A frozen parameter takes memory once: there is no gradient, and the optimizer keeps nothing for it.",
            ),
            (
                counted(lambda copies: 2 + copies, frozen=0),
                "A frozen parameter needs no gradient. But it is still there itself.",
            ),
            (
                counted(lambda copies: 2 + copies, size=lambda p: 4),
                "Not every number takes 4 bytes: ask for `element_size()`.",
            ),
            (
                counted(lambda copies: 2 + copies, size=lambda p: 1),
                "That is how many numbers there are. How many bytes does each of them take?",
            ),
        ),
        hints=(
            "How many tensors of its size does a parameter that learns bring along?",
            "Itself, its gradient, and `copies` more: 2 + copies. A frozen one: 1.",
            "total += p.numel() * p.element_size() * (... if p.requires_grad else 1)",
        ),
    ),
    Exercise(
        key="17.2",
        points=1,
        answer=mean_loss,
        trial=loss_trial,
        hidden=loss_more,
        wrong=(
            (in_a_list, "All graphs are alive until the end: something leads to every loss. Keep numbers only."),
            (a_sum, "The memory is all right. But that is the sum of the losses, and not their mean."),
            (of_examples, "That is the mean over the *examples*. Asked for is the mean of the batches' losses."),
            (
                all_at_once,
                "There is no graph any more. But all batches go through the network at once, as a single large one.",
            ),
            (a_tensor, "The memory is all right. But what is given back is a tensor: `.item()`."),
            (the_last, "The memory is all right. But that is the loss of the last batch alone."),
        ),
        hints=(
            "What does `total` lead to, after the first `+=`?",
            "To a graph. Add numbers, `item()`, and do not take notes at all in a test.",
            "with engine.no_grad():\n    for x, answers in batches:\n        total += ....item()",
        ),
    ),
    Exercise(
        key="17.3",
        points=2,
        answer=largest_batch,
        trial=largest_trial,
        hidden=largest_more,
        wrong=(
            (
                by_doubling(caught=RuntimeError),
                "Out of memory is a RuntimeError, but not the only one. Catch `engine.OutOfMemoryError` alone.",
            ),
            (by_doubling(caught=Exception, below=lambda s, m: s < m), "`most` itself is allowed; and catch less."),
            (by_doubling(below=lambda s, m: s < m), "`most` itself is allowed, if it is one of 1, 2, 4, 8 ..."),
            (by_doubling(back=1), "That is the first one that did *not* fit."),
            (by_doubling(below=lambda s, m: s <= 2**20), "Sizes above `most` are not asked for."),
            (halving, "Halving `most` gives other sizes than 1, 2, 4, 8 and so on, if `most` is not one of them."),
        ),
        hints=(
            "Which exception is it, and what do you know when it comes?",
            "Double the size as long as step(size) works; remember the last one that did.",
            "while size <= most:\n    try:\n        step(size)\n    except ...:\n        break\n"
            "    fits, size = size, 2 * size",
        ),
    ),
    Exercise(
        key="17.4",
        points=2,
        answer=with_less,
        trial=less_trial,
        hidden=less_more,
        wrong=(
            (
                cleaned_up,
                "Neither `gc.collect` nor `empty_cache` frees what the error leads to, and inside of `except` it is "
                "alive. Try again outside.",
            ),
            (
                error_kept,
                "You try again outside of `except`. But the error has a second name there, and what it leads to stays "
                "alive.",
            ),
            (every_error, "Other errors than out of memory must come through."),
            (one_less, "It works, but with one less each time. Asked for is half."),
            (the_next, "Half of `n` is given back without having been tried."),
        ),
        hints=(
            "What is alive inside of `except`, and what does it lead to?",
            "The error, its traceback, the variables of `step`. So the next attempt must not be made inside of it.",
            "while True:\n    try:\n        step(n)\n        return n\n"
            "    except engine.OutOfMemoryError:\n        pass\n    ...",
        ),
    ),
    Exercise(
        key="17.5",
        points=3,
        answer=backward_in_parts,
        trial=parts_trial,
        hidden=parts_more,
        wrong=(
            (weighted(lambda n, all, size: 1), "The parts' losses are means, and you added them up: too large."),
            (
                weighted(lambda n, all, size: 1 / -(-all // size)),
                "A mean of means is right only if all parts are equally large. The last one may be smaller.",
            ),
            (
                weighted(lambda n, all, size: 1 / (all // size)),
                "You count only the full parts, and the last one may be smaller. Weigh each by its own length.",
            ),
            (
                weighted(lambda n, all, size: size / all),
                "The last part may hold fewer than `size` examples. Weigh each by its own length.",
            ),
            (
                weighted(lambda n, all, size: n / all, before=lambda model: model.zero_grad()),
                "Only the last part's gradient is left: do not clear between the parts.",
            ),
            (together, "All graphs are alive until the one `backward()` at the end. Call it for each part."),
            (cleared_at_first, "What was in .grad before is gone. Asked for is to *add* to it."),
            (first_part, "Only the first part was used."),
        ),
        hints=(
            "`in_parts` in the lesson does it. What does it do with the last part?",
            "Each part's loss, times the share of the examples that are in it, and backward() at once.",
            "for some, right in zip(x.split(size), answers.split(size)):\n"
            "    loss = nn.functional.cross_entropy(model(some), right)\n    (loss * ...).backward()",
        ),
    ),
)
