"""Lesson 16, mixed precision: the exercises' trials, oracles, usual mistakes and hints."""

import math

import engine
from course.judging.words import Exercise, changed, knob, line, mistakes, properties
from engine import nn
from engine.nn import functional as F

# 16.2

ONE = engine.tensor([100.0, 0.0])


def gradients(scaled_gradients, xs, scale, alone=(0.0, 0.0), already=False):
    """Return the gradients of a loss whose way back leads through float16, and what .grad holds afterwards."""
    weights = [knob([1.0, 2.0]), knob(0.5)]
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
    yield f"true gradients [1, 2] and 10, scale = 8: {what}", gradients, scaled, [2.0, 4.0], 8.0
    yield f"gradients of about 1e-9, scale = 65536: {what}", gradients, scaled, [1e-9, 3e-9], 65536.0
    yield f"one gradient overflows on its way: {what}", gradients, scaled, [100.0, 0.001], 65536.0

    yield f"one gradient is nan: {what}", gradients, scaled, [float("nan"), 1.0], 8.0
    yield f"one number of the first gradient overflows: {what}", gradients, scaled, [0.001, 0.25], 1024.0, (ONE, 0.0)
    yield f"there is something in .grad already: {what}", gradients, scaled, [2.0, 4.0], 8.0, (0.0, 0.0), True
    for which, alone in (("first", (100.0, 0.0)), ("second", (0.0, 100.0))):
        yield f"only the {which} gradient overflows: {what}", gradients, scaled, [0.5, 0.25], 65536.0, alone
    below = (0.0, -100.0)
    yield f"one gradient overflows to minus infinity: {what}", gradients, scaled, [0.5, 0.25], 65536.0, below
    yield "", gradients, scaled, [-0.25, 0.125], 1024.0
    yield "", gradients, scaled, [0.001, -100.0], 2.0**20


def by_hand(loss, weights, scale):
    found = [g / scale for g in engine.autograd.grad(loss * scale, weights)]
    return found if all(g.isfinite().all() for g in found) else None


def looking(at):
    """Look at something else before handing the gradients over."""
    return changed(by_hand, "all(g.isfinite().all() for g in found)", at)


def otherwise(given):
    """Give something else back where a gradient has overflowed."""
    return changed(by_hand, "else None", f"else {given}")


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


def ruled(scale, count, overflow, interval):
    if overflow:
        return scale / 2, 0
    if count + 1 == interval:
        return scale * 2, 0
    return scale, count + 1


def after_overflow(state):
    return changed(ruled, "scale / 2, 0", state)


def after(which, part):
    """Tell whether the scale (0) or the count (1) is right: after an overflow, a doubling, or any other step."""

    def holds(did):
        scale = did.expected[0]
        here = "overflow" if "overflow = True" in did.shown else "doubled" if scale > 1024 else "good"
        return here != which or did.result[part] == did.expected[part]

    return holds


# 16.4 and 15.5


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
    yield "", learned, train_step, 2.0**17, [1.0, 0.5, 2.0, 1.0]


def train_step(model, batch, optimizer, scaler):
    x, y = batch
    optimizer.zero_grad()
    with engine.autocast("cpu", dtype=engine.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


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
    yield "", clipped, train, 256.0, [1.0, -1.0, 0.5, 4.0]


def train_clipped(model, batches, optimizer, scaler):
    lengths = []
    for x, y in batches:
        optimizer.zero_grad()
        with engine.autocast("cpu", dtype=engine.float16):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        length = nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
        scaler.step(optimizer)
        scaler.update()
        lengths.append(length)
    return lengths


def lengths_of(given):
    return changed(train_clipped, "lengths.append(length)", f"lengths.append({given})")


def clipped_by(clip):
    return changed(train_clipped, "nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()", clip)


def norm(model):
    return nn.utils.get_total_norm([p.grad for p in model.parameters()]).item()


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


EXERCISES = (
    Exercise(
        key="16.1",
        points=1,
        answer=set("ab"),
        wrong=mistakes(
            set("a"),
            "`a + a` takes what it gets. Which type does `a` have?",
            set("abd"),
            "In `a + x`, 16 bits meet 32. The wider type wins.",
            set("abc"),
            "`x + x` is not a product, and `x` has 32 bits.",
            set("abcd"),
            "Only products are sent down. Sums take what they get.",
            set("abe"),
            "Losses are sent up to 32 bits.",
            set("abde"),
            "Where 16 bits meet 32, the wider type wins; and losses are sent up to 32 bits.",
            set("abcde"),
            "Only some operations are sent down: the products.",
            set("abce"),
            "`x + x` is not a product, and losses are sent up to 32 bits.",
            set("cde"),
            "Those are the ones that have 32 bits.",
        ),
        understood="Products go down to 16 bits, losses go up to 32, and an addition takes the wider type of its two.",
        hints=(
            "There are three kinds: products, losses, and all others.",
            "Products go down, losses go up, all others take what they get; the wider type wins where two meet.",
            "`x @ w` is a product, so `a` has 16 bits. What are `a + a`, `x + x` and `a + x` given?",
        ),
    ),
    Exercise(
        key="16.2",
        points=2,
        answer=each_alone,
        trial=gradients_trial,
        wrong=mistakes(
            changed(by_hand, "loss * scale", "loss", "g / scale", "g"),
            "Scale the *loss*: a gradient that has become 0 on its way stays 0.",
            changed(by_hand, "g / scale", "g"),
            "The gradients still have the scale in them.",
            looking("True"),
            "If one of them is not finite, the answer is None.",
            looking("not any(g.isinf().any() for g in found)"),
            "`inf` is found. `nan` is not finite either.",
            looking("not any((g == math.inf).any() or g.isnan().any() for g in found)"),
            "`-inf` is an overflow, too, at the other end. `g.isfinite().all()` rules out both, and `nan` as well.",
            looking("found[0].isfinite().all()"),
            "Only the first gradient is looked at. Any of them may have overflowed.",
            changed(by_hand, "g / scale", "g * scale"),
            "The scale is in them twice now: divide by it.",
            changed(by_hand, "loss * scale", "loss"),
            "The gradients are divided by a scale that the loss was never multiplied by.",
            changed(by_hand, "loss * scale", "loss / scale", "g / scale", "g * scale"),
            "The other way round: the loss is multiplied by the scale, and what arrives is divided by it.",
            changed(by_hand, "g / scale", "g / scale / scale"),
            "What arrives is divided by the scale twice. Once is enough.",
            looking("not any(g.isnan().any() for g in found)"),
            "A gradient with `inf` in it passes. Look for `inf` as well as for `nan`.",
            looking("found[-1].isfinite().all()"),
            "Only the last gradient is looked at. Any of them may have overflowed.",
            looking("any(g.isfinite().all() for g in found)"),
            "That is None only if *all* of the gradients have overflowed. One is enough: `all`, not `any`.",
            looking("all(g.isfinite().any() for g in found)"),
            "A gradient in which *some* numbers are finite passes. One number that is not is enough: `.all()`.",
            changed(by_hand, "if all(", "if not all("),
            "The condition is the wrong way round: None is for gradients that are not finite.",
            otherwise("[g if g.isfinite().all() else None for g in found]"),
            "None stands in the list, in place of the gradient that overflowed. But such a step is skipped as a "
            "whole: return None itself.",
            otherwise("[None] * len(found)"),
            "That is a list of Nones. Return None itself.",
            otherwise("[g for g in found if g.isfinite().all()]"),
            "The gradient that overflowed is left out, and the others are returned. Return None instead.",
            otherwise("[]"),
            "Where one has overflowed, you return an empty list. Return None.",
            otherwise("False"),
            "Where one has overflowed, you return False. Return None.",
            otherwise("[g.nan_to_num() for g in found]"),
            "What has overflowed is replaced by other numbers, and those are not gradients. Return None.",
            otherwise("[engine.zeros_like(g) for g in found]"),
            "Where one has overflowed, you return zeros, as if there were nothing to learn. Return None.",
            lambda loss, weights, scale: each_alone(loss, weights[:1], scale),
            "Only the first of the weights has its gradient in the list.",
            lambda loss, weights, scale: together(each_alone(loss, weights, scale)),
            "You return all gradients in one tensor. Return a list, with a gradient for each weight.",
            changed(by_hand, "g / scale", "(g / scale).half()"),
            "You cast the gradients to 16 bits, where small ones vanish. Leave their type as it is.",
        ),
        properties=properties(
            changed(
                by_hand,
                "g / scale for g in engine.autograd.grad(loss * scale, weights)",
                "w.grad.div_(scale) for w in (loss * scale).backward() or weights",
            ),
            lambda did: all(map(unchanged, did.result[".grad"], did.expected[".grad"])),
            "`backward()` has changed `.grad`, which should be left alone. Use `engine.autograd.grad`.",
        ),
        understood=(
            "The scale keeps small gradients from vanishing on the way, and dividing at the end gives the true ones."
        ),
        hints=(
            "What do you have to multiply to make every gradient on the way back larger?",
            "The loss. Divide what arrives by the same number, and check whether all of it is finite.",
            "found = [g / scale for g in engine.autograd.grad(..., weights)]\n"
            "return found if all(g.isfinite().all() for g in found) else ...",
        ),
    ),
    Exercise(
        key="16.3",
        points=1,
        answer=scaler_itself,
        trial=scale_trial,
        wrong=mistakes(
            changed(ruled, "count + 1 == interval", "count == interval"),
            "This step counts, too: with it, `count + 1` steps in a row have gone well.",
            after_overflow("scale / 2, count"),
            "After an overflow the count starts again at 0.",
            after_overflow("scale / 2, count + 1"),
            "A step that overflows did not go well.",
            changed(ruled, "scale * 2, 0", "scale * 2, 1"),
            "After doubling the scale, the count starts again at 0.",
            changed(ruled, "if overflow:", "if overflow and count + 1 != interval:"),
            "Ask about the overflow first: whatever the count, a step that overflows is not a good one.",
            after_overflow("scale, 0"),
            "After an overflow you leave the scale as it was. It should be halved.",
            after_overflow("scale // 2, 0"),
            "`//` leaves only whole numbers, and half of 1 becomes 0. A scale may be less than 1: `scale / 2`.",
            after_overflow("max(scale / 2, 1.0), 0"),
            "Your scale stops at 1. It may go below 1: as long as there are overflows, halve it.",
            changed(ruled, "count + 1 == interval", "count + 2 == interval"),
            "One step too soon: with this one, `count + 1` steps in a row have gone well.",
            lambda *state: ruled(*state)[::-1],
            "The two are in the wrong order: the scale first, and then the count.",
            changed(ruled, "if overflow", "if not overflow"),
            "The condition is the wrong way round: you halve the scale when the step went well.",
            after_overflow("scale * 2, 0"),
            "An overflow means that the scale was too large: make it smaller, not larger.",
        ),
        properties=properties(
            after_overflow("scale / 4, 0"),
            after("overflow", 0),
            "After an overflow the scale is halved.",
            after_overflow("scale / 2, 1"),
            after("overflow", 1),
            "After an overflow the count starts again at 0, as no step has gone well since.",
            changed(ruled, "return scale, count", "return scale * 2, count"),
            after("good", 0),
            "The scale stays until `interval` steps in a row have gone well, this one among them.",
            changed(ruled, "scale, count + 1", "scale, count"),
            after("good", 1),
            "A step that went well is counted: the next count is `count + 1`.",
            changed(ruled, "scale * 2, 0", "scale + 2, 0"),
            after("doubled", 0),
            "With this step `interval` steps in a row have gone well: the scale is doubled.",
            changed(ruled, "scale * 2, 0", "scale * 2, 3"),
            after("doubled", 1),
            "When the scale has been doubled, the count starts again at 0.",
        ),
        understood="The scaler pushes upwards until something overflows, halves the scale, and tries again later.",
        hints=(
            "There are three cases. Which are they?",
            "Overflow; the last of `interval` good steps; any other good step.",
            "if overflow:\n    return scale / 2, 0\nif count + 1 == interval:\n    return ...\nreturn ...",
        ),
    ),
    Exercise(
        key="16.4",
        points=1,
        answer=by_itself,
        trial=step_trial,
        wrong=mistakes(
            changed(
                train_step,
                "scaler.scale(loss)",
                "loss",
                "scaler.step(optimizer)",
                "optimizer.step()",
                "scaler.update()",
                "",
            ),
            "That is a loop without a scaler: it moves, but small gradients vanish, and the scale never changes.",
            changed(train_step, "scaler.step(optimizer)", "optimizer.step()", "scaler.update()", ""),
            "`optimizer.step()` takes the gradients as they are, with the scale still in them.",
            changed(train_step, "scaler.scale(loss).backward()", "scaler.scale(loss); loss.backward()"),
            "`scaler.scale(loss)` makes a new loss, and you go back from the old one: call `backward()` on what it "
            "gives.",
            changed(train_step, "scaler.scale", "loss.backward(retain_graph=True); scaler.scale"),
            "You go back twice, from the loss and from the scaled loss, and both gradients are added up. Go back "
            "from the scaled one alone.",
            changed(train_step, "scaler.step(optimizer)", "optimizer.step()"),
            "`scaler.update()` needs to know what `scaler.step(optimizer)` has found. Call `scaler.step(optimizer)` "
            "in place of `optimizer.step()`.",
            changed(train_step, "scaler.step(optimizer)", "scaler.step(optimizer); optimizer.step()"),
            "`scaler.step(optimizer)` calls `optimizer.step()` itself. With both you take two steps.",
            changed(train_step, "backward()", "backward(); optimizer.zero_grad()"),
            "The gradients are cleared between `backward()` and the step, so there are none to step with. Clear "
            "them before `backward()`.",
            changed(train_step, "scaler.update()", ""),
            "`update()` belongs in every round.",
            changed(train_step, "scaler.scale(loss)", "scaler.scale(scaler.scale(loss))"),
            "The loss is scaled twice.",
            changed(train_step, "scaler.scale(loss)", "loss"),
            "The loss is not scaled at all, so the scaler has nothing to divide by.",
            changed(
                train_step,
                "float16",
                "bfloat16",
                "scaler.scale(loss)",
                "loss",
                "scaler.step(optimizer)",
                "optimizer.step()",
                "scaler.update()",
                "",
            ),
            "With `bfloat16` this would learn without a scaler. But here it stays `float16`: repair how the scaler "
            "is used.",
            changed(train_step, "float16", "bfloat16"),
            "That is `bfloat16`, which would need no scaler. Here it should stay `float16`.",
            changed(train_step, "engine.float16", "engine.float16, enabled=False"),
            "Without `autocast` everything is in 32 bits. Leave the block as it was.",
            changed(train_step, "optimizer.zero_grad()", ""),
            "Clear the gradients of the round before.",
        ),
        properties=properties(
            changed(train_step, "scaler.step(optimizer)", "scaler.unscale_(optimizer); optimizer.step()"),
            lambda did: (
                did.result["scale"] != did.expected["scale"] or did.result["weights"] == did.expected["weights"]
            ),
            "The scale is right, but the step is not that of the true gradients. Go back from the scaled loss, and "
            "leave it to `scaler.step(optimizer)` to take the scale out, once, and to skip the step after an "
            "overflow.",
            changed(train_step, "x, y = batch", "x, y = batch; scaler = engine.amp.GradScaler('cpu')"),
            lambda did: did.result["scale"] == did.expected["scale"],
            "Afterwards the scale is not what it should be. Use the scaler that you are given, and call "
            "`scaler.update()` once, after the step, without a number.",
        ),
        understood="The way back begins at the scaled loss, and the scaler takes the scale out again before the step.",
        hints=(
            "What does `scaler.scale(loss)` return, and who uses it?",
            "It returns a new tensor. Go back from that one.",
            "scaler.scale(loss).....",
        ),
    ),
    Exercise(
        key="16.5",
        points=2,
        answer=train_clipped,
        trial=clipped_trial,
        wrong=mistakes(
            changed(train_clipped, "scaler.unscale_(optimizer)", ""),
            "`update()` is right. But what you clip still has the scale in it: unscale before you clip.",
            changed(train_clipped, "scaler.update()", "", "return", "scaler.update(); return"),
            "`unscale_` is right. But `update()` belongs in every round.",
            changed(train_clipped, "scaler.unscale_(optimizer)", "", "1.0", "scaler.get_scale()"),
            "The steps are right. But the lengths that you return still have the scale in them.",
            changed(train_clipped, "scaler.unscale_(optimizer)", "", ".item()", ".item() / scaler.get_scale()"),
            "The lengths are right now. But what you clip still has the scale in it.",
            changed(train_clipped, "1.0", "1e9"),
            "Nothing is clipped any more.",
            changed(train_clipped, "optimizer.zero_grad()", ""),
            "Clear the gradients of the round before.",
            changed(train_clipped, "scaler.step(optimizer)", "optimizer.step()"),
            "`optimizer.step()` does not look for overflows: leave the step to the scaler.",
            changed(
                train_clipped,
                "scaler.unscale_(optimizer)",
                "",
                "scaler.update()",
                "",
                "return",
                "scaler.update(); return",
            ),
            "Neither mistake is repaired: what you clip has the scale in it, and `update()` comes only after the "
            "last round.",
            changed(train_clipped, "scaler.update()", "", "scaler.step", "scaler.update(); scaler.step"),
            "`update()` looks at how the step went, so it belongs after `scaler.step`, not before it.",
            changed(train_clipped, ".item()", ".item() / scaler.get_scale()"),
            "`unscale_` has taken the scale out already, and you divide the lengths by it once more.",
            lengths_of("norm(model)"),
            "The steps are right. But those are the lengths *after* clipping. Return those before it.",
            changed(
                train_clipped,
                "length = ",
                "total = sum(p.grad.norm() for p in model.parameters()).item(); length = ",
                "append(length)",
                "append(total)",
            ),
            "The steps are right. But you add up the lengths of the parameters' gradients. What is wanted is the "
            "length of all of them together, which `clip_grad_norm_` returns.",
            lengths_of("loss.item()"),
            "The steps are right. But those are losses, not lengths.",
            clipped_by("norm(model); [nn.utils.clip_grad_norm_(p, 1.0) for p in model.parameters()]"),
            "You clip each parameter's gradient by itself. The limit of 1 is for all of them together.",
            clipped_by("[nn.utils.clip_grad_norm_(p, 1.0).item() for p in model.parameters()][-1]"),
            "You clip and measure each parameter's gradient by itself. What is wanted is one length, of all of them "
            "together.",
            changed(train_clipped, "engine.float16", "engine.float16, enabled=False"),
            "Without `autocast` everything is in 32 bits. Leave the block as it was.",
            changed(train_clipped, "float16", "bfloat16"),
            "That is `bfloat16`, which would need no scaler. Here it should stay `float16`.",
            changed(train_clipped, "scaler.step(optimizer)", ""),
            "No step is taken: `scaler.step(optimizer)` is missing.",
            changed(
                train_clipped,
                "optimizer.zero_grad()",
                "optimizer.zero_grad(); scaler = engine.amp.GradScaler('cpu', init_scale=scaler.get_scale())",
            ),
            "You make a new scaler for each batch. But the scale has to live on: use `scaler`.",
            changed(
                train_clipped,
                "optimizer.zero_grad()",
                "optimizer.zero_grad(); scaler = engine.amp.GradScaler('cpu')",
            ),
            "You make scalers of your own. Use the one that you are given, with its scale.",
            changed(train_clipped, "lengths = []", "lengths, scaler = [], engine.amp.GradScaler('cpu', enabled=False)"),
            "That is a loop without a scaler: small gradients vanish, and nobody notices an overflow. Keep both "
            "`scaler.scale` and `scaler.step`.",
        ),
        properties=properties(
            changed(train_clipped, "return lengths", "return lengths[-1]"),
            lambda did: (
                len(did.result["lengths"]) == len(did.expected["lengths"])
                or did.result["weights"] != did.expected["weights"]
            ),
            "The steps are right. But return a list with a length for each batch: append each one.",
            one_step_for_all,
            lambda did: (
                len(did.result["lengths"]) == len(did.expected["lengths"])
                or did.result["weights"] == did.expected["weights"]
            ),
            "The list should have a length for each batch: all the lines of a step belong in every round.",
            changed(train_clipped, "1.0", "0.5"),
            lambda did: (
                did.result["lengths"] != did.expected["lengths"] or did.result["weights"] == did.expected["weights"]
            ),
            "The lengths are right. But the steps are not those of the true gradients, clipped to length 1.",
            lengths_of("2 * length"),
            lambda did: (
                did.result["lengths"] == did.expected["lengths"]
                or len(did.result["lengths"]) != len(did.expected["lengths"])
                or did.result["weights"] != did.expected["weights"]
            ),
            "The steps are right. But the lengths are not those of the true gradients before clipping.",
            changed(train_clipped, "scaler.update()", "scaler.update(8.0)"),
            lambda did: (
                did.result["scale"] == did.expected["scale"]
                or len(did.result["lengths"]) != len(did.expected["lengths"])
            ),
            "At the end the scale is not what it should be: call `scaler.update()` once in each round, after the step.",
        ),
        understood="The gradients have the scale in them until unscale_ takes it out: look at them only after that.",
        hints=(
            "What is in the gradients when they are clipped? And what has to happen once in each round?",
            "They are multiplied by the scale: `unscale_` first. And `update()` belongs inside the loop.",
            "scaler.scale(loss).backward()\n...\nlengths.append(...)\nscaler.step(optimizer)\nscaler.update()",
        ),
    ),
)
