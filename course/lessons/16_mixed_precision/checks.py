"""Lesson 16, mixed precision: the exercises' trials, oracles, usual mistakes and hints."""

import math

import engine
from course.judging.exercises import Exercise
from engine import nn
from engine.nn import functional as F

# 16.2

ONE = engine.tensor([100.0, 0.0])


def gradients(scaled_gradients, xs, scale, alone=(0.0, 0.0), already=False):
    """The gradients of a loss whose way back leads through float16, and what is in .grad afterwards."""
    weights = [engine.tensor([1.0, 2.0], requires_grad=True), engine.tensor(0.5, requires_grad=True)]
    if already:  # from another loss
        for w in weights:
            w.grad = engine.ones_like(w)
    half = (weights[0] * weights[1]).half()
    loss = (half.float() * engine.tensor(xs)).sum()
    loss = loss + sum((w.half().float() * more).sum() for w, more in zip(weights, alone, strict=True))
    found = scaled_gradients(loss, weights, scale)
    return {"gradients": found, ".grad": [w.grad for w in weights]}


def gradients_trial(scaled):
    what = "the gradients, and what is in .grad"
    yield f"true gradients [1, 2] and 5, scale = 8: {what}", gradients, scaled, [2.0, 4.0], 8.0
    yield f"gradients of about 1e-9, scale = 65536: {what}", gradients, scaled, [1e-9, 3e-9], 65536.0
    yield f"one gradient overflows on its way: {what}", gradients, scaled, [100.0, 0.001], 65536.0

    yield f"one gradient is nan: {what}", gradients, scaled, [float("nan"), 1.0], 8.0
    yield f"one number of the first gradient overflows: {what}", gradients, scaled, [0.001, 0.25], 1024.0, (ONE, 0.0)
    yield f"there is something in .grad already: {what}", gradients, scaled, [2.0, 4.0], 8.0, (0.0, 0.0), True
    for which, alone in (("first", (100.0, 0.0)), ("second", (0.0, 100.0))):
        yield f"only the {which} gradient overflows: {what}", gradients, scaled, [0.5, 0.25], 65536.0, alone


def gradients_more(scaled):
    yield "", gradients, scaled, [-0.25, 0.125], 1024.0
    yield "", gradients, scaled, [0.001, -100.0], 2.0**20


inf = float("inf")


def by_hand(scaled, back, check=True):
    """`scaled_gradients`, with what is differentiated, and what is done with each gradient."""

    def attempt(loss, weights, scale):
        found = [back(g, scale) for g in engine.autograd.grad(scaled(loss, scale), weights)]
        looked_at = [g.nan_to_num(nan=0.0, posinf=inf, neginf=inf) if check == "inf" else g for g in found]
        looked_at = found[:1] if check == "first" else looked_at
        return None if check and not all(g.isfinite().all() for g in looked_at) else found

    return attempt


def by_backward(loss, weights, scale):
    (loss * scale).backward()
    for w in weights:
        w.grad /= scale
    found = [w.grad for w in weights]
    return None if not all(g.isfinite().all() for g in found) else found


def each_alone(loss, weights, scale):
    """The oracle: one gradient at a time."""
    found = []
    for w in weights:
        (g,) = engine.autograd.grad(loss * scale, w, retain_graph=True)
        if not math.isfinite(g.abs().sum().item()):
            return None
        found.append(g / scale)
    return found


# 16.3


def scale_trial(next_scale):
    yield "scale = 1024, count = 0, overflow = False, interval = 3", next_scale, 1024.0, 0, False, 3
    yield "scale = 1024, count = 1, overflow = True, interval = 3", next_scale, 1024.0, 1, True, 3
    yield "scale = 1024, count = 2, overflow = False, interval = 3", next_scale, 1024.0, 2, False, 3
    yield "scale = 1024, count = 2, overflow = True, interval = 3", next_scale, 1024.0, 2, True, 3


def scale_more(next_scale):
    yield "", next_scale, 8.0, 0, False, 1
    yield "", next_scale, 0.5, 7, False, 2000
    yield "", next_scale, 1.0, 0, True, 3


def scaler_itself(scale, count, overflow, interval):
    """The oracle: a real GradScaler, brought into this state."""
    scaler = engine.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)
    scaler.load_state_dict(scaler.state_dict() | {"_growth_tracker": count})
    w = engine.ones((), requires_grad=True)
    optimizer = engine.optim.SGD([w], lr=0.0)
    scaler.scale(w * (float("inf") if overflow else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    return state["scale"], state["_growth_tracker"]


def ruled(overflow=lambda scale, count: (scale / 2, 0), grown=lambda scale: (scale * 2, 0), late=0):
    def attempt(scale, count, overflowed, interval):
        if overflowed:
            return overflow(scale, count)
        return grown(scale) if count + 1 - late == interval else (scale, count + 1)

    return attempt


def grows_first(scale, count, overflowed, interval):
    if count + 1 == interval:
        return scale * 2, 0
    return (scale / 2, 0) if overflowed else (scale, count + 1)


# 16.4 and 15.5


def line():
    model = nn.Linear(2, 1)
    with engine.no_grad():
        model.weight.copy_(engine.tensor([[1.0, -1.0]]))
        model.bias.fill_(0.5)
    return model


def batch(factor=1.0):
    x = engine.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.25]])
    return x, factor * engine.tensor([[1.0], [0.0], [-1.0]])


def learned(train_step, scale, factors):
    """What some steps make of a model and of the scale."""
    model = line()
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    scaler = engine.amp.GradScaler("cpu", init_scale=scale, growth_interval=2)
    for factor in factors:
        train_step(model, batch(factor), optimizer, scaler)
    weights = [round(w, 3) for p in model.parameters() for w in p.flatten().tolist()]
    return {"weights": weights, "scale": scaler.get_scale()}


def step_trial(train_step):
    what = "the weights and the scale afterwards"
    yield f"one step, first scale 1024: {what}", learned, train_step, 1024.0, [1.0]
    yield f"three steps, first scale 2, growth interval 2: {what}", learned, train_step, 2.0, [1.0] * 3
    yield f"one step, first scale 2^40, which overflows: {what}", learned, train_step, 2.0**40, [1.0]


def step_more(train_step):
    yield "", learned, train_step, 2.0**17, [1.0, 0.5, 2.0, 1.0]


def stepping(
    backward,
    step=lambda scaler, optimizer: scaler.step(optimizer),
    update=True,
    clear=True,
    cast=engine.float16,
):
    """`train_step`, with its lines in other ways."""

    def train_step(model, batch, optimizer, scaler):
        x, y = batch
        if clear:
            optimizer.zero_grad()
        with engine.autocast("cpu", dtype=cast, enabled=cast is not engine.float32):
            loss = F.mse_loss(model(x), y)
        backward(scaler, loss)
        step(scaler, optimizer)
        if update:
            scaler.update()

    return train_step


def scaled_backward(scaler, loss):
    scaler.scale(loss).backward()


def by_itself(model, batch, optimizer, scaler):
    """The oracle: the scale is multiplied in as a tensor, without the scaler's help."""
    x, y = batch
    model.zero_grad(set_to_none=True)
    with engine.autocast("cpu", dtype=engine.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(engine.zeros(()))  # makes the scale
    loss.backward(engine.tensor(scaler.get_scale()))
    scaler.step(optimizer)
    scaler.update()


def clipped(train, scale, factors):
    """What it gives, and what it makes of a model and of the scale."""
    model = line()
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    scaler = engine.amp.GradScaler("cpu", init_scale=scale, growth_interval=2)
    lengths = [
        round(n, 2) if math.isfinite(n) else "not finite" for n in train(model, map(batch, factors), optimizer, scaler)
    ]
    weights = [round(w, 3) for p in model.parameters() for w in p.flatten().tolist()]
    return {"lengths": lengths, "weights": weights, "scale": scaler.get_scale()}


def clipped_trial(train):
    what = "what it gives, the weights and the scale afterwards"
    yield f"one batch, true gradient longer than 1, first scale 1024: {what}", clipped, train, 1024.0, [1.0]
    # With a small scale: beside gradients times a large one, what a round before has left would be rounded away.
    yield f"three batches, first scale 2, growth interval 2: {what}", clipped, train, 2.0, [1.0, 0.5, 2.0]
    yield f"two batches, first scale 2^17, which overflows: {what}", clipped, train, 2.0**17, [1.0, 1.0]


def clipped_more(train):
    yield "", clipped, train, 256.0, [1.0, -1.0, 0.5, 4.0]


def clipping(unscale="before", update="each", clip=1.0, clear=True):
    """`train_clipped`, with the scaler's lines in other places."""

    def train_clipped(model, batches, optimizer, scaler):
        lengths = []
        for x, y in batches:
            if clear:
                optimizer.zero_grad()
            with engine.autocast("cpu", dtype=engine.float16):
                loss = F.mse_loss(model(x), y)
            scaler.scale(loss).backward()
            if unscale == "before":
                scaler.unscale_(optimizer)
            limit = clip * scaler.get_scale() if unscale == "limit" else clip
            length = nn.utils.clip_grad_norm_(model.parameters(), limit).item()
            lengths.append(length / scaler.get_scale() if unscale == "lengths" else length)
            if unscale == "after":
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            if update == "each":
                scaler.update()
        if update == "end":
            scaler.update()
        return lengths

    return train_clipped


def no_scaler_step(model, batches, optimizer, scaler):
    lengths = []
    for x, y in batches:
        optimizer.zero_grad()
        with engine.autocast("cpu", dtype=engine.float16):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        lengths.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        scaler.update()
    return lengths


EXERCISES = (
    Exercise(
        key="16.1",
        points=1,
        answer=set("ab"),
        wrong=(
            (set("a"), "`a + a` takes what it gets. And what has `a`?"),
            (set("abd"), "In `a + x`, 16 bits meet 32. The wider type wins."),
            (set("abc"), "`x + x` is no product, and `x` has 32 bits."),
            (set("abcd"), "Only products are sent down. Sums take what they get."),
            (set("abe"), "Losses are sent up to 32 bits."),
            (set("abde"), "Where 16 bits meet 32, the wider type wins; and losses are sent up to 32 bits."),
            (set("abcde"), "Only some operations are sent down: the products."),
            (set("abce"), "`x + x` is no product, and losses are sent up to 32 bits."),
            (set("cde"), "Those are the ones with 32 bits."),
        ),
        understood="Products go down to 16 bits, losses go up to 32, and an addition takes the larger type of its two.",
        hints=(
            "There are three kinds: products, losses, and all others.",
            "Products go down, losses go up, all others take what they get; the wider type wins where two meet.",
            "`x @ w` is a product: a has 16 bits. What does `a + a` get, what `x + x`, what `a + x`?",
        ),
    ),
    Exercise(
        key="16.2",
        points=2,
        answer=each_alone,
        trial=gradients_trial,
        hidden=gradients_more,
        wrong=(
            (
                by_hand(lambda loss, scale: loss, lambda g, scale: g),
                "The *loss* must be scaled: what has become 0 on its way stays 0.",
            ),
            (
                by_hand(lambda loss, scale: loss * scale, lambda g, scale: g),
                "The gradients still have the scale in them.",
            ),
            (
                by_hand(lambda loss, scale: loss * scale, lambda g, scale: g / scale, check=False),
                "If one of them is not finite, the answer is None.",
            ),
            (
                by_hand(lambda loss, scale: loss * scale, lambda g, scale: g / scale, check="inf"),
                "`inf` is found. `nan` is not finite either.",
            ),
            (
                by_hand(lambda loss, scale: loss * scale, lambda g, scale: g / scale, check="first"),
                "Only the first gradient is looked at. Any of them may have overflowed.",
            ),
            (
                by_hand(lambda loss, scale: loss * scale, lambda g, scale: g * scale),
                "The scale is in them twice now: divide by it.",
            ),
            (
                by_hand(lambda loss, scale: loss, lambda g, scale: g / scale),
                "The gradients are divided by a scale that the loss was never multiplied by.",
            ),
            (by_backward, "Right, but `backward()` has changed `.grad`. Take `engine.autograd.grad`."),
        ),
        understood="Scaling lifts small gradients over the edge, and dividing at the end gives the true ones back.",
        hints=(
            "What must be multiplied, so that every gradient on the way back is larger?",
            "The loss. Divide what arrives by the same number, and look whether all of it is finite.",
            "found = [g / scale for g in engine.autograd.grad(..., weights)]\n"
            "return found if all(g.isfinite().all() for g in found) else ...",
        ),
    ),
    Exercise(
        key="16.3",
        points=1,
        answer=scaler_itself,
        trial=scale_trial,
        hidden=scale_more,
        wrong=(
            (ruled(late=1), "This step counts, too: with it, `count + 1` steps in a row have gone well."),
            (ruled(overflow=lambda scale, count: (scale / 2, count)), "After an overflow the count begins anew."),
            (ruled(overflow=lambda scale, count: (scale / 2, count + 1)), "A step that overflows did not go well."),
            (ruled(grown=lambda scale: (scale * 2, 1)), "After the scale was doubled, the count begins at 0."),
            (
                grows_first,
                "Ask for the overflow first: a step that has overflowed is none of the good ones, whatever the count.",
            ),
            (ruled(overflow=lambda scale, count: (scale, 0)), "After an overflow the scale is halved."),
            (ruled(overflow=lambda scale, count: (scale * 2, 0)), "Overflow means too large: smaller, not larger."),
        ),
        understood="The scaler presses upwards until it overflows, goes back by half, and tries again later.",
        hints=(
            "There are three cases. Which?",
            "Overflow; the last of `interval` good steps; any other good step.",
            "if overflow:\n    return scale / 2, 0\nif count + 1 == interval:\n    return ...\nreturn ...",
        ),
    ),
    Exercise(
        key="16.4",
        points=1,
        answer=by_itself,
        trial=step_trial,
        hidden=step_more,
        wrong=(
            (
                stepping(
                    lambda scaler, loss: loss.backward(), lambda scaler, optimizer: optimizer.step(), update=False
                ),
                "That is a loop without a scaler: it moves, but small gradients vanish, and the scale never changes.",
            ),
            (
                stepping(scaled_backward, lambda scaler, optimizer: optimizer.step(), update=False),
                "`optimizer.step()` takes the gradients as they are, with the scale in them.",
            ),
            (stepping(scaled_backward, update=False), "`update()` belongs in every round."),
            (
                stepping(lambda scaler, loss: scaler.scale(scaler.scale(loss)).backward()),
                "The loss is scaled twice.",
            ),
            (
                stepping(lambda scaler, loss: loss.backward()),
                "The loss is not scaled at all, so the scaler has no scale by which it could divide.",
            ),
            (
                stepping(scaled_backward, cast=engine.bfloat16),
                "That is `bfloat16`. It would do without a scaler; here it is to stay `float16`.",
            ),
            (
                stepping(scaled_backward, cast=engine.float32),
                "Without `autocast` everything is in 32 bits. The block was right as it was.",
            ),
            (stepping(scaled_backward, clear=False), "The gradients of the round before must be cleared."),
        ),
        understood="A small step is lost beside a 16-bit weight: weights stay in 32 bits, products go down.",
        hints=(
            "What does `scaler.scale(loss)` give, and who takes it?",
            "It gives a new tensor. Go back from that one.",
            "scaler.scale(loss).....",
        ),
    ),
    Exercise(
        key="16.5",
        points=2,
        answer=clipping(),
        trial=clipped_trial,
        hidden=clipped_more,
        wrong=(
            (
                clipping(unscale="never"),
                "`update()` is right. But what is clipped still has the scale in it: unscale it before.",
            ),
            (clipping(update="end"), "`unscale_` is right. But `update()` belongs in every round."),
            (
                clipping(unscale="limit"),
                "The steps are right. But the lengths that you give back still have the scale in them.",
            ),
            (
                clipping(unscale="lengths"),
                "The lengths are right now. But what is clipped still has the scale in it.",
            ),
            (clipping(clip=1e9), "Nothing is clipped any more."),
            (clipping(clear=False), "The gradients of the round before must be cleared."),
            (no_scaler_step, "`optimizer.step()` does not look for overflows: leave the step to the scaler."),
        ),
        understood="The gradients have the scale in them until unscale_ takes it out: look at them only after that.",
        hints=(
            "What do the gradients look like when they are clipped? And what is to happen once a round?",
            "They are multiplied by the scale: `unscale_` first. And `update()` belongs inside the loop.",
            "scaler.scale(loss).backward()\n...\nlengths.append(...)\nscaler.step(optimizer)\nscaler.update()",
        ),
    ),
)
