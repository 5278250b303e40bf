"""Lesson 16, mixed precision: the exercises' trials, oracles, usual mistakes and hints."""

import math

import engine
from course.judging.exercises import Exercise, Property
from engine import nn
from engine.nn import functional as F

# 16.2

ONE = engine.tensor([100.0, 0.0])


def gradients(scaled_gradients, xs, scale, alone=(0.0, 0.0), already=False):
    """Return the gradients of a loss whose way back leads through float16, and what .grad holds afterwards."""
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
    below = (0.0, -100.0)
    yield f"one gradient overflows to minus infinity: {what}", gradients, scaled, [0.5, 0.25], 65536.0, below


def gradients_more(scaled):
    yield "", gradients, scaled, [-0.25, 0.125], 1024.0
    yield "", gradients, scaled, [0.001, -100.0], 2.0**20


inf = float("inf")


def finite(found):
    return all(g.isfinite().all() for g in found)


CHECKS = {
    True: finite,
    False: lambda found: True,
    "inf": lambda found: not any(g.isinf().any() for g in found),
    "nan": lambda found: not any(g.isnan().any() for g in found),
    "above": lambda found: not any((g == inf).any() or g.isnan().any() for g in found),
    "first": lambda found: finite(found[:1]),
    "last": lambda found: finite(found[-1:]),
    "any tensor": lambda found: any(g.isfinite().all() for g in found),
    "any number": lambda found: all(g.isfinite().any() for g in found),
    "reversed": lambda found: not finite(found),
}


def by_hand(
    scaled=lambda loss, scale: loss * scale, back=lambda g, scale: g / scale, check=True, otherwise=lambda found: None
):
    """`scaled_gradients`: what is differentiated, what is done with each gradient, and with those that overflowed."""

    def attempt(loss, weights, scale):
        found = [back(g, scale) for g in engine.autograd.grad(scaled(loss, scale), weights)]
        return found if CHECKS[check](found) else otherwise(found)

    return attempt


def by_backward(loss, weights, scale):
    (loss * scale).backward()
    for w in weights:
        w.grad /= scale
    found = [w.grad for w in weights]
    return None if not all(g.isfinite().all() for g in found) else found


def unchanged(grad, before):
    return grad is before if before is None or grad is None else (grad == before).all()


def together(found):
    return found and engine.cat([g.flatten() for g in found])


def each_alone(loss, weights, scale):
    """Be the oracle: compute one gradient at a time."""
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
    yield "scale = 1024, count = 1, overflow = False, interval = 3", next_scale, 1024.0, 1, False, 3
    yield "scale = 1024, count = 1, overflow = True, interval = 3", next_scale, 1024.0, 1, True, 3
    yield "scale = 1024, count = 2, overflow = False, interval = 3", next_scale, 1024.0, 2, False, 3
    yield "scale = 1024, count = 2, overflow = True, interval = 3", next_scale, 1024.0, 2, True, 3
    yield "scale = 1, count = 0, overflow = True, interval = 3", next_scale, 1.0, 0, True, 3


def scale_more(next_scale):
    yield "", next_scale, 8.0, 0, False, 1
    yield "", next_scale, 0.5, 7, False, 2000
    yield "", next_scale, 0.25, 4, True, 7
    yield "", next_scale, 2.0, 3, False, 6


def scaler_itself(scale, count, overflow, interval):
    """Be the oracle: a real GradScaler, brought into this state."""
    scaler = engine.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)
    scaler.load_state_dict(scaler.state_dict() | {"_growth_tracker": count})
    w = engine.ones((), requires_grad=True)
    optimizer = engine.optim.SGD([w], lr=0.0)
    scaler.scale(w * (float("inf") if overflow else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    return state["scale"], state["_growth_tracker"]


def ruled(
    overflow=lambda scale, count: (scale / 2, 0),
    grown=lambda scale: (scale * 2, 0),
    late=0,
    good=lambda count: count + 1,
):
    def attempt(scale, count, overflowed, interval):
        if overflowed:
            return overflow(scale, count)
        return grown(scale) if count + 1 - late == interval else (scale, good(count))

    return attempt


def after(which, part):
    """Tell whether the scale (0) or the count (1) is right: after an overflow, a doubling, or any other step."""

    def holds(did):
        scale = did.expected[0]
        here = "overflow" if "overflow = True" in did.shown else "doubled" if scale > 1024 else "good"
        return here != which or did.result[part] == did.expected[part]

    return holds


def grows_always(scale, count, overflowed, interval):
    after_it, count = ruled()(scale, count, overflowed, interval)
    return after_it if overflowed else scale * 2, count


def turned_round(scale, count, overflowed, interval):
    return ruled()(scale, count, not overflowed, interval)


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
    """Return what some steps make of a model and of the scale."""
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
    backward, step=lambda scaler, optimizer: scaler.step(optimizer), update=True, clear=True, cast=engine.float16
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


def unscaled_backward(scaler, loss):
    """As it came: the scaled loss is made, and nobody takes it."""
    scaler.scale(loss)
    loss.backward()


def both_backward(scaler, loss):
    loss.backward(retain_graph=True)
    scaler.scale(loss).backward()


def both_steps(scaler, optimizer):
    scaler.step(optimizer)
    optimizer.step()


def unscaled_and_stepped(scaler, optimizer):
    scaler.unscale_(optimizer)
    optimizer.step()


def with_a_scaler_of_its_own(model, batch, optimizer, scaler):
    stepping(scaled_backward)(model, batch, optimizer, engine.amp.GradScaler("cpu"))


def cleared_late(model, batch, optimizer, scaler):
    stepping(lambda scaler, loss: (scaled_backward(scaler, loss), optimizer.zero_grad()))(
        model, batch, optimizer, scaler
    )


def by_itself(model, batch, optimizer, scaler):
    """Be the oracle: multiply the scale in as a tensor, without the scaler's help."""
    x, y = batch
    model.zero_grad(set_to_none=True)
    with engine.autocast("cpu", dtype=engine.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(engine.zeros(()))  # makes the scale
    loss.backward(engine.tensor(scaler.get_scale()))
    scaler.step(optimizer)
    scaler.update()


def as_list(lengths):
    return [lengths] if isinstance(lengths, float) else lengths


def clipped(train, scale, factors):
    """Return what it gives, and what it makes of a model and of the scale."""
    model = line()
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    scaler = engine.amp.GradScaler("cpu", init_scale=scale, growth_interval=2)
    lengths = [
        round(float(n), 2) if math.isfinite(n) else "not finite"
        for n in as_list(train(model, map(batch, factors), optimizer, scaler))
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


def clipping(
    unscale="before",
    update="each",
    clip=1.0,
    clear=True,
    cast=engine.float16,
    step=True,
    length_of=lambda model, loss, clipped: clipped(),
):
    """`train_clipped`, with the scaler's lines in other places."""

    def train_clipped(model, batches, optimizer, scaler):
        lengths = []
        for x, y in batches:
            if clear:
                optimizer.zero_grad()
            with engine.autocast("cpu", dtype=cast, enabled=cast is not engine.float32):
                loss = F.mse_loss(model(x), y)
            scaler.scale(loss).backward()
            if unscale in ("before", "twice"):
                scaler.unscale_(optimizer)
            limit = clip * scaler.get_scale() if unscale == "limit" else clip
            length = length_of(
                model, loss, lambda limit=limit: nn.utils.clip_grad_norm_(model.parameters(), limit).item()
            )
            lengths.append(length / scaler.get_scale() if unscale in ("lengths", "twice") else length)
            if update == "early":
                scaler.update()
            if unscale == "after":
                scaler.unscale_(optimizer)
            if step:
                scaler.step(optimizer)
            if update in ("each", "set"):
                scaler.update(8.0 if update == "set" else None)
        if update == "end":
            scaler.update()
        return lengths

    return train_clipped


def norm(model):
    return sum(p.grad.square().sum() for p in model.parameters()).sqrt().item()


def after_clipping(model, loss, clipped):
    clipped()
    return norm(model)


def sum_of_lengths(model, loss, clipped):
    found = sum(p.grad.norm() for p in model.parameters()).item()
    clipped()
    return found


def the_loss(model, loss, clipped):
    clipped()
    return loss.item()


def each_parameter_alone(model, loss, clipped):
    found = norm(model)
    for p in model.parameters():
        nn.utils.clip_grad_norm_(p, 1.0)
    return found


def the_last_parameter(model, loss, clipped):
    return [nn.utils.clip_grad_norm_(p, 1.0).item() for p in model.parameters()][-1]


def a_scaler_each(model, batches, optimizer, scaler):
    return [
        clipping()(model, [pair], optimizer, engine.amp.GradScaler("cpu", init_scale=scaler.get_scale()))[0]
        for pair in batches
    ]


def another_scaler(model, batches, optimizer, scaler):
    return [clipping()(model, [pair], optimizer, engine.amp.GradScaler("cpu"))[0] for pair in batches]


def without_a_scaler(model, batches, optimizer, scaler):
    return clipping()(model, batches, optimizer, engine.amp.GradScaler("cpu", enabled=False))


def one_step_for_all(model, batches, optimizer, scaler):
    optimizer.zero_grad()
    for x, y in batches:
        with engine.autocast("cpu", dtype=engine.float16):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    lengths = [nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()]
    scaler.step(optimizer)
    scaler.update()
    return lengths


def the_last_length(model, batches, optimizer, scaler):
    return clipping()(model, batches, optimizer, scaler)[-1]


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
                by_hand(scaled=lambda loss, scale: loss, back=lambda g, scale: g),
                "The *loss* must be scaled: what has become 0 on its way stays 0.",
            ),
            (by_hand(back=lambda g, scale: g), "The gradients still have the scale in them."),
            (by_hand(check=False), "If one of them is not finite, the answer is None."),
            (by_hand(check="inf"), "`inf` is found. `nan` is not finite either."),
            (
                by_hand(check="above"),
                "`-inf` has overflowed, too, at the other end. `g.isfinite().all()` asks for both, and for `nan`.",
            ),
            (by_hand(check="first"), "Only the first gradient is looked at. Any of them may have overflowed."),
            (by_hand(back=lambda g, scale: g * scale), "The scale is in them twice now: divide by it."),
            (
                by_hand(scaled=lambda loss, scale: loss),
                "The gradients are divided by a scale that the loss was never multiplied by.",
            ),
            (
                by_hand(scaled=lambda loss, scale: loss / scale, back=lambda g, scale: g * scale),
                "The other way round: the loss is multiplied by the scale, and what arrives is divided by it.",
            ),
            (by_hand(back=lambda g, scale: g / scale / scale), "What arrives is divided twice by the scale: once."),
            (
                by_hand(check="nan"),
                "A gradient with `inf` in it passes. Look at the gradients themselves, for `inf` as for `nan`.",
            ),
            (by_hand(check="last"), "Only the last gradient is looked at. Any of them may have overflowed."),
            (
                by_hand(check="any tensor"),
                "That is None only if *all* of the gradients have overflowed. One is enough: `all`, not `any`.",
            ),
            (
                by_hand(check="any number"),
                "A gradient in which *some* numbers are finite passes. One number that is not is enough: `.all()`.",
            ),
            (by_hand(check="reversed"), "The condition is turned round: None is for those that are not finite."),
            (
                by_hand(otherwise=lambda found: [g if finite([g]) else None for g in found]),
                "None stands in the list, in place of the gradient that overflowed. Such a step is left out as a "
                "whole: the answer itself is None.",
            ),
            (
                by_hand(otherwise=lambda found: [None] * len(found)),
                "That is a list of Nones. The answer itself is None.",
            ),
            (
                by_hand(otherwise=lambda found: [g for g in found if finite([g])]),
                "The gradient that overflowed is missing, and the others are given back. The answer is None then.",
            ),
            (by_hand(otherwise=lambda found: []), "An empty list, where one has overflowed. The answer is None then."),
            (by_hand(otherwise=lambda found: False), "It gives False, where one has overflowed. Asked for is None."),
            (
                by_hand(otherwise=lambda found: [g.nan_to_num() for g in found]),
                "What has overflowed is replaced by other numbers, which are no gradients. The answer is None then.",
            ),
            (
                by_hand(otherwise=lambda found: [engine.zeros_like(g) for g in found]),
                "Where one has overflowed, zeros are given back, as if nothing were to be learned. The answer is None.",
            ),
            (
                lambda loss, weights, scale: each_alone(loss, weights[:1], scale),
                "Only the first of the weights has its gradient in the list.",
            ),
            (
                lambda loss, weights, scale: together(each_alone(loss, weights, scale)),
                "The gradients come back in one tensor. A list is asked for, a gradient for each weight.",
            ),
            (
                by_hand(back=lambda g, scale: (g / scale).half()),
                "The gradients are put into 16 bits, where small ones vanish. Leave their type as it is.",
            ),
        ),
        properties=(
            Property(
                by_backward,
                lambda did: all(map(unchanged, did.result[".grad"], did.expected[".grad"])),
                "`backward()` has changed `.grad`, which was to be left alone. Take `engine.autograd.grad`.",
            ),
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
            (
                ruled(overflow=lambda scale, count: (scale, 0)),
                "The scale stays after an overflow. It should be halved.",
            ),
            (
                ruled(overflow=lambda scale, count: (scale // 2, 0)),
                "`//` leaves only whole numbers, and half of 1 becomes 0. A scale may be less than 1: `scale / 2`.",
            ),
            (
                ruled(overflow=lambda scale, count: (max(scale / 2, 1.0), 0)),
                "It stops at 1. A scale may be less than 1, as long as there are overflows.",
            ),
            (ruled(late=-1), "One step too soon: with this one, `count + 1` steps in a row have gone well."),
            (
                lambda *state: ruled()(*state)[::-1],
                "The two come in the opposite order: the scale first, and then the count.",
            ),
            (turned_round, "The condition is turned round: it halves the scale where the step went well."),
            (ruled(overflow=lambda scale, count: (scale * 2, 0)), "Overflow means too large: smaller, not larger."),
        ),
        properties=(
            Property(
                ruled(overflow=lambda scale, count: (scale / 4, 0)),
                after("overflow", 0),
                "After an overflow the scale is halved.",
            ),
            Property(
                ruled(overflow=lambda scale, count: (scale / 2, 1)),
                after("overflow", 1),
                "After an overflow the count begins at 0, as no step has gone well since.",
            ),
            Property(
                grows_always,
                after("good", 0),
                "The scale stays until `interval` steps in a row have gone well, this one among them.",
            ),
            Property(
                ruled(good=lambda count: count),
                after("good", 1),
                "A step that went well is counted: the next count is `count + 1`.",
            ),
            Property(
                ruled(grown=lambda scale: (scale + 2, 0)),
                after("doubled", 0),
                "With this step `interval` steps in a row have gone well: the scale is doubled.",
            ),
            Property(
                ruled(grown=lambda scale: (scale * 2, 3)),
                after("doubled", 1),
                "When the scale has been doubled, the count begins anew, at 0.",
            ),
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
            (
                stepping(unscaled_backward),
                "`scaler.scale(loss)` makes a new loss, and you go back from the old one: call `backward()` on what it "
                "gives.",
            ),
            (
                stepping(both_backward),
                "You go back twice, from the loss and from the scaled loss, and both gradients are added up. Go back "
                "from the scaled one alone.",
            ),
            (
                stepping(scaled_backward, lambda scaler, optimizer: optimizer.step()),
                "`scaler.update()` looks at what `scaler.step(optimizer)` has found, and there is nothing: call "
                "`scaler.step(optimizer)` before it, and not `optimizer.step()`.",
            ),
            (
                stepping(scaled_backward, both_steps),
                "`scaler.step(optimizer)` calls `optimizer.step()` itself. With both there are two steps.",
            ),
            (
                cleared_late,
                "The gradients are cleared between `backward()` and the step, so there are none to step with. Clear "
                "them before `backward()`.",
            ),
            (stepping(scaled_backward, update=False), "`update()` belongs in every round."),
            (stepping(lambda scaler, loss: scaler.scale(scaler.scale(loss)).backward()), "The loss is scaled twice."),
            (
                stepping(lambda scaler, loss: loss.backward()),
                "The loss is not scaled at all, so the scaler has no scale by which it could divide.",
            ),
            (
                stepping(
                    lambda scaler, loss: loss.backward(),
                    lambda scaler, optimizer: optimizer.step(),
                    update=False,
                    cast=engine.bfloat16,
                ),
                "With `bfloat16` this would learn without a scaler. But here it stays `float16`, and it is the use "
                "of the scaler that is to be repaired.",
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
        properties=(
            Property(
                stepping(scaled_backward, unscaled_and_stepped),
                lambda did: (
                    did.result["scale"] != did.expected["scale"] or did.result["weights"] == did.expected["weights"]
                ),
                "The scale is right. But the step is not that of the true gradients: go back from the scaled loss, and "
                "let `scaler.step(optimizer)` take the scale out, once, and skip the step where they overflow.",
            ),
            Property(
                with_a_scaler_of_its_own,
                lambda did: did.result["scale"] == did.expected["scale"],
                "The scale is not what it should be afterwards: take the scaler that came, and call "
                "`scaler.update()` once, after the step, without a number.",
            ),
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
            (clipping(unscale="lengths"), "The lengths are right now. But what is clipped still has the scale in it."),
            (clipping(clip=1e9), "Nothing is clipped any more."),
            (clipping(clear=False), "The gradients of the round before must be cleared."),
            (no_scaler_step, "`optimizer.step()` does not look for overflows: leave the step to the scaler."),
            (
                clipping(unscale="never", update="end"),
                "Neither is repaired: what is clipped has the scale in it, and `update()` comes after all rounds.",
            ),
            (
                clipping(update="early"),
                "`update()` comes before `scaler.step`. It looks at how the step went, and so comes after it.",
            ),
            (
                clipping(unscale="twice"),
                "`unscale_` has taken the scale out, and the lengths are divided by it once more.",
            ),
            (
                clipping(length_of=after_clipping),
                "The steps are right. But those are the lengths *after* clipping: those before are what it gives.",
            ),
            (
                clipping(length_of=sum_of_lengths),
                "The steps are right. But the lengths of the parameters' gradients are added up. The length of all of "
                "them together is what `clip_grad_norm_` gives.",
            ),
            (clipping(length_of=the_loss), "The steps are right. But those are the losses, and no lengths."),
            (
                clipping(length_of=each_parameter_alone),
                "Each parameter's gradient is clipped by itself. The length of 1 is meant for all of them together.",
            ),
            (
                clipping(length_of=the_last_parameter),
                "Each parameter's gradient is clipped and measured by itself. One length is meant, of all together.",
            ),
            (
                clipping(cast=engine.float32),
                "Without `autocast` everything is in 32 bits. The block was right as it was.",
            ),
            (
                clipping(cast=engine.bfloat16),
                "That is `bfloat16`. It would do without a scaler; here it is to stay `float16`.",
            ),
            (clipping(step=False), "No step is taken: `scaler.step(optimizer)` is missing."),
            (a_scaler_each, "A scaler of your own is made for each batch. Its scale must live on: take `scaler`."),
            (another_scaler, "You make scalers of your own. Take the one that came, and its scale."),
            (
                without_a_scaler,
                "That is a loop without a scaler: small gradients vanish, and an overflow is not noticed. Both "
                "`scaler.scale` and `scaler.step` stay.",
            ),
        ),
        properties=(
            Property(
                the_last_length,
                lambda did: (
                    len(did.result["lengths"]) == len(did.expected["lengths"])
                    or did.result["weights"] != did.expected["weights"]
                ),
                "The steps are right. But there should be a length for each batch, in a list: append each one.",
            ),
            Property(
                one_step_for_all,
                lambda did: (
                    len(did.result["lengths"]) == len(did.expected["lengths"])
                    or did.result["weights"] == did.expected["weights"]
                ),
                "The list should have a length for each batch: all lines of a step belong in every round.",
            ),
            Property(
                clipping(clip=0.5),
                lambda did: (
                    did.result["lengths"] != did.expected["lengths"] or did.result["weights"] == did.expected["weights"]
                ),
                "The lengths are right. But the steps are not those of the true gradients, clipped to length 1.",
            ),
            Property(
                clipping(length_of=lambda model, loss, clipped: 2 * clipped()),
                lambda did: (
                    did.result["lengths"] == did.expected["lengths"]
                    or len(did.result["lengths"]) != len(did.expected["lengths"])
                    or did.result["weights"] != did.expected["weights"]
                ),
                "The steps are right. But the lengths are not those of the true gradients, before clipping.",
            ),
            Property(
                clipping(update="set"),
                lambda did: (
                    did.result["scale"] == did.expected["scale"]
                    or len(did.result["lengths"]) != len(did.expected["lengths"])
                ),
                "The scale is not what it should be at the end: `scaler.update()` once in each round, after the step.",
            ),
        ),
        understood="The gradients have the scale in them until unscale_ takes it out: look at them only after that.",
        hints=(
            "What do the gradients look like when they are clipped? And what is to happen once a round?",
            "They are multiplied by the scale: `unscale_` first. And `update()` belongs inside the loop.",
            "scaler.scale(loss).backward()\n...\nlengths.append(...)\nscaler.step(optimizer)\nscaler.update()",
        ),
    ),
)
