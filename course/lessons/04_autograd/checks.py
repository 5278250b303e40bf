"""Lesson 04, autograd: the exercises' trials, oracles, usual mistakes and hints."""

import numpy as np

import engine
from course.judging.words import Exercise, changed, knob, mistakes, properties


def square(x):
    return x * x


def valley(x):
    return x**2 + 3 * x + 5


# 4.2


def exact_slope(f, x):
    knob = x.detach().clone().requires_grad_()
    return engine.autograd.grad(f(knob), knob)[0].item()


def watched(slope_at, f, x):
    """Return the slope, whether any run of the machine took notes, and whether there was more than one run."""
    notes = []

    def machine(knob):
        made = f(knob)
        notes.append(isinstance(made, engine.Tensor) and made.requires_grad)
        return made

    return {
        "slope": slope_at(machine, x),
        "the machine's run took notes": any(notes),
        "the machine ran more than once": len(notes) > 1,
    }


def slope_trial(slope_at):
    yield "f(x) = x * x, x = tensor(3.)", watched, slope_at, square, engine.tensor(3.0)
    x = knob(0.3, before=6.0)  # a slope of -11.1111: rounding shows, and so do 16 bits
    shown = "f(x) = 1 / x, x = tensor(0.3000, requires_grad=True), x.grad = tensor(6.) from before"
    yield shown, watched, slope_at, lambda x: 1 / x, x
    yield "", watched, slope_at, lambda x: (x.exp() - 1) / x, knob(0.5, before=-1.0)


def on_a_knob(f, x):
    knob = x.detach().clone().requires_grad_()
    f(knob).backward()
    return knob.grad.item()


def nudged_with_notes(f, x):
    knob = engine.tensor(x.item(), dtype=engine.float64, requires_grad=True)
    return ((f(knob + 1e-6) - f(knob - 1e-6)) / 2e-6).item()


def on_x(begin, end="pass"):
    """Use x itself for the knob; `begin` makes it one, `end` puts things back."""
    end = f"slope = knob.grad.item(); {end}; return slope"
    return changed(on_a_knob, "x.detach().clone().requires_grad_()", begin, "return knob.grad.item()", end)


def nearly_right(did):
    """Tell whether a slope found with notes is the oracle's but for its last digits."""
    came, asked = did.result["slope"], did.expected["slope"]
    return did.result["the machine's run took notes"] and 1e-6 * abs(asked) < abs(came - asked) < 0.02 * abs(asked)


# 4.3


def by_formula(f, x, rate):
    slope = exact_slope(f, x)
    with engine.no_grad():
        x.fill_(x.item() - rate * slope)


def stepped(step, f, start, rate, times=3):
    """Return the knob and its slope after some steps; a slope of None and one of 0 both count as cleared."""
    x = knob(start)
    for _ in range(times):
        step(f, x, rate)
    return {"x": round(x.item(), 5), "x.grad": 0.0 if x.grad is None else round(x.grad.item(), 5)}


def step_trial(step):
    yield "f(x) = x * x, x = 4, rate = 0.1, one step", stepped, step, square, 4.0, 0.1, 1
    yield "f(x) = x * x, x = 4, rate = 0.1, three steps", stepped, step, square, 4.0, 0.1
    yield "f(x) = x**2 + 3 * x + 5, x = -2, rate = 0.25, three steps", stepped, step, valley, -2.0, 0.25
    yield "", stepped, step, lambda x: x.exp(), 0.25, 0.125


def one_step(f, x, rate):
    f(x).backward()
    with engine.no_grad():
        x -= rate * x.grad
    x.grad = None


# 4.4


def walked(f, start, rate, steps):
    positions = [start]
    for _ in range(steps):
        x = engine.tensor(positions[-1])
        positions.append(float(np.float32(x.item() - rate * exact_slope(f, x))))
    return positions


def walk_trial(walk):
    yield "f(x) = x * x, start = 4, rate = 0.25, 1 step", walk, square, 4.0, 0.25, 1
    yield "f(x) = x * x, start = 4, rate = 0.25, 4 steps", walk, square, 4.0, 0.25, 4
    yield "f(x) = x**2 + 3 * x + 5, start = 4, rate = 0.1, 6 steps", walk, valley, 4.0, 0.1, 6
    yield "f(x) = x * x, start = -4, rate = 0.25, 4 steps", walk, square, -4.0, 0.25, 4  # slopes below 0
    yield "f(x) = x * x, start = 4, rate = 0.75, 4 steps", walk, square, 4.0, 0.75, 4  # and of both signs, in turn
    yield "", walk, lambda x: x**4 - 2 * x**2 + x, 0.0, 0.1, 12


def walk(f, start, rate, steps):
    x = knob(start)
    positions = [x.item()]
    for _ in range(steps):
        f(x).backward()
        with engine.no_grad():
            x -= rate * x.grad
        x.grad = None
        positions.append(x.item())
    return positions


def first_step_alone(did):
    """Tell whether a walk of the right length is not right in its first step and wrong later."""
    if len(did.result) != len(did.expected):
        return True
    off = [abs(one - other) > 1e-4 for one, other in zip(did.result, did.expected, strict=True)]
    return any(off[:2]) or not any(off)


never_cleared = changed(walk, "x.grad = None", "")


def until_it_rises(f, start, rate, steps):
    positions = never_cleared(f, start, rate, steps)
    turned = (n for n in range(1, steps) if abs(positions[n + 1]) > abs(positions[n]))
    return positions[: next(turned, steps) + 1]


# 4.5


def fitted(xs, ys, rate, steps, of=np.mean):
    xs, ys = xs.numpy().astype(np.float64), ys.numpy().astype(np.float64)
    bend = height = 0.0
    for _ in range(steps):
        above = bend * xs**2 + height - ys
        bend, height = bend - rate * of(2 * above * xs**2), height - rate * of(2 * above)
    return float(bend), float(height)


def parabola_trial(fit):
    xs, ys = engine.tensor([0.0, 1.0, 2.0]), engine.tensor([1.0, 3.0, 9.0])
    yield "xs = [0, 1, 2], ys = [1, 3, 9], rate = 0.02, 1 step", fit, xs, ys, 0.02, 1
    yield "xs = [0, 1, 2], ys = [1, 3, 9], rate = 0.02, 5 steps", fit, xs, ys, 0.02, 5
    # The best bend and height: below, above 0.
    xs, ys = engine.tensor([-1.0, 0.5, 2.0]), engine.tensor([2.0, -1.5, -6.0])
    yield "xs = [-1, 0.5, 2], ys = [2, -1.5, -6], rate = 0.05, 5 steps", fit, xs, ys, 0.05, 5
    yield "", fit, engine.tensor([-1.0, 0.5, 1.5, 2.0]), engine.tensor([0.5, 0.0, -1.5, -3.0]), 0.05, 60


def fit(xs, ys, rate, steps):
    bend, height = knob(0.0), knob(0.0)
    for _ in range(steps):
        loss = ((bend * xs**2 + height - ys) ** 2).mean()
        loss.backward()
        with engine.no_grad():
            bend -= rate * bend.grad
            height -= rate * height.grad
        bend.grad = height.grad = None
    return bend.item(), height.item()


def with_loss(loss):
    return changed(fit, "((bend * xs**2 + height - ys) ** 2).mean()", loss)


def knob_by_knob(first):
    """Walk, asking for the slopes again between the two knobs."""

    def fit(xs, ys, rate, steps):
        knobs = bend, height = knob(0.0), knob(0.0)
        for _ in range(steps):
            for one in knobs if first == "bend" else knobs[::-1]:
                one_step(lambda _: ((bend * xs**2 + height - ys) ** 2).mean(), one, rate)
                bend.grad = height.grad = None
        return bend.item(), height.item()

    return fit


def with_three_knobs(xs, ys, rate, steps):
    bend, tilt, height = knob(0.0), knob(0.0), knob(0.0)
    for _ in range(steps):
        ((bend * xs**2 + tilt * xs + height - ys) ** 2).mean().backward()
        with engine.no_grad():
            for one in (bend, tilt, height):
                one -= rate * one.grad
                one.grad = None
    return bend.item(), height.item()


def wrong_of_two(did):
    """Count which of the two knobs are not where they should be."""
    return sum(abs(one - other) > 1e-4 for one, other in zip(did.result, did.expected, strict=True))


def as_a_line(xs, ys, rate, steps):
    tilt = height = 0.0
    xs, ys = xs.numpy(), ys.numpy()
    for _ in range(steps):
        above = tilt * xs + height - ys
        tilt, height = tilt - rate * np.mean(2 * above * xs), height - rate * np.mean(2 * above)
    return float(tilt), float(height)


def best_at_once(xs, ys, rate, steps):
    squares = np.stack([xs.numpy().astype(np.float64) ** 2, np.ones(len(xs))], axis=1)
    return tuple(np.linalg.lstsq(squares, ys.numpy(), rcond=None)[0].tolist())


NO_NUMBER = "The engine refuses `x.grad = 0`: a gradient is a tensor, or nothing. `x.grad = None` clears it."

EXERCISES = (
    Exercise(
        key="04.1",
        points=1,
        answer=(12.0, 2.0),
        wrong=mistakes(
            (2.0, 12.0),
            "The two numbers are right, in the opposite order: first the slope, then the place.",
            (24.0, 0.0),
            "You left out -12 * x. It has a slope too: -12, wherever you stand.",
        ),
        entries={
            1: (
                (60.0, "60 belongs to (3 * x)**2. Here x alone is squared."),
                (1.0, "1 is the output at 4. The slope is how many times as far the output moves as x."),
                (13.0, "The slope of a number on its own is 0: the 1 does not count."),
                (24.0, "24 is the slope of 3 * x**2. That of -12 * x is -12, and belongs to the sum."),
                (36.0, "-12 * x falls as x grows: its slope is -12, and not 12."),
                (-24.0, "The slope of 3 * x**2 is 6 * x, and that of -12 * x is -12, wherever you stand."),
                (0.0, "The slope of 3 * x**2 is 6 * x: the 2 comes down, and is multiplied by the 3."),
                (-4.0, "The slope of 3 * x**2 is three times that of x**2: it is 6 * x, and not 2 * x."),
                "The slope of x**2 is 2 * x, that of x is 1, that of a number 0. What is the sum, at x = 4?",
            ),
            2: (
                (-11.0, "-11 is the lowest output. You are asked for the x at which it comes out."),
                (0.0, "At the lowest place the *slope* is 0. At which x is that so?"),
                (4.0, "With 3 * x as the slope of 3 * x**2 it would be 4. But its slope is 6 * x."),
                (6.0, "With 2 * x as the slope of 3 * x**2 it would be 6. But its slope is 6 * x."),
                (-2.0, "6 * x - 12 is 0 where 6 * x is 12."),
                "At the lowest place the slope is 0. At which x is that so?",
            ),
        },
        understood="Where the output is lowest, its slope is 0: that turns a search into an equation.",
        hints=(
            "The slope of a sum is the sum of the slopes. What is the slope of x**2, and that of x?",
            "3 * x**2 has the slope 3 times 2 * x. And at the lowest point, what is the slope?",
            "The slope is 6 * x - 12. Put 4 in; then find the x for which it is 0.",
        ),
    ),
    Exercise(
        key="04.2",
        points=1,
        answer=exact_slope,
        trial=slope_trial,
        tolerance=1e-6,
        wrong=mistakes(
            on_x("x.requires_grad_(); old, x.grad = x.grad, None", "x.grad = old"),
            "The slope is right, and x.grad is as it was. But x takes notes now, and did not before.",
            on_x("x.requires_grad_()"),
            "You used x itself: the slope is added to what was in x.grad, and stays there.",
            on_x("x.requires_grad_(); x.grad = None"),
            "You cleared x.grad. What was in it belongs to somebody else, and is lost.",
            on_x("x.requires_grad_(); x.grad = None", "x.grad = None"),
            "The number is right. But x is not as it was: it takes notes now, and what its .grad held before is gone.",
            on_x("x; old, flag = x.grad, x.requires_grad; x.requires_grad_()", "x.grad = old; x.requires_grad_(flag)"),
            "`old = x.grad` gives the same tensor a second name, and backward() adds to it. So you returned the sum"
            " of both slopes, and put back what is no longer the old one. Make a knob of your own.",
            lambda f, x: engine.tensor(int(x.item()), requires_grad=True),
            "A whole number cannot change a little, so it has no slope. Leave the number as it is, with its point.",
            changed(on_a_knob, "return knob", "return x"),
            "Your knob has the slope, in *its* .grad. You look into that of x.",
            changed(on_a_knob, ".backward()", "", ".item()", ""),
            "That is None: backward() itself gives nothing back, and before it is called .grad is None.",
            changed(on_a_knob, "f(knob)", "result = f(knob); result", "return knob.grad", "return result"),
            "That is the output of your knob. Its slope is in the knob's .grad.",
            lambda f, x: ((f(x + 0.001) - f(x)) / 0.001).item(),
            "That is a slope by nudging: close, but not exact. Let backward() do it, on a knob of your own.",
            lambda f, x: ((f(x + 0.001) - f(x - 0.001)) / 0.002).item(),
            "Nudged to both sides it is closer, and still not exact. Let backward() do it, on a knob of your own.",
            changed(on_a_knob, ".item()", ""),
            "The slope is right, but it is still in its box: `item()` takes the number out.",
            changed(on_a_knob, ".detach()", ""),
            "The clone of a tensor that takes notes is a result, and no leaf: nothing arrives in its .grad. Make a "
            "new knob from the plain number.",
            lambda f, x: f(x).backward(),
            "No notes were taken, so backward() has nothing to read. x itself takes none, and within no_grad() "
            "nothing does. Make a knob of your own that takes notes.",
            changed(on_a_knob, ".detach().clone().requires_grad_()", ".clone(); knob.retain_grad()"),
            "A clone takes notes only where x does, and x need not. Make a knob of your own, from the plain "
            "number, that takes notes in any case.",
            lambda f, x: abs(exact_slope(f, x)),
            "A slope below 0 has lost its sign.",
            lambda f, x: f(x).item(),
            "That is the output at x. The slope there is asked for.",
        ),
        properties=properties(
            lambda f, x: (f(x.item() + 0.0001) - f(x.item() - 0.0001)) / 0.0002,
            lambda did: did.result["the machine's run took notes"],
            "No run of the machine took notes, so this slope is nudged, or worked out by hand. Let backward() do "
            "it, on a knob of your own.",
            nudged_with_notes,
            lambda did: (
                not (did.result["the machine ran more than once"] and did.result["the machine's run took notes"])
            ),
            "You run the machine more than once, as nudging must. backward() needs one run, and is exact.",
            lambda f, x: round(exact_slope(f, x), 2),
            lambda did: not nearly_right(did),
            "Digits are lost. Is the slope rounded or cut off, or has your knob another type than x?",
        ),
        understood="A knob of your own, with the same number in it, has the same slope, and nobody else sees it.",
        hints=(
            "Whatever you do to x can be seen afterwards. What could you use in its place?",
            "Make a knob of your own with the same number in it: x.item() takes the number out of the box.",
            "knob = engine.tensor(x.item(), requires_grad=True)\n...  # as in the lesson, with knob",
        ),
    ),
    Exercise(
        key="04.3",
        points=2,
        answer=by_formula,
        trial=step_trial,
        wrong=mistakes(
            changed(one_step, "x -=", "x +="),
            "That is a step uphill. Where the slope is above 0, going down means a smaller x.",
            changed(one_step, "x.grad = None", ""),
            "The first step is right. But the slope stays in x.grad, and the next step adds to it.",
            changed(one_step, "with engine.no_grad():", "if True:"),
            "Turning the knob must not be written down: do it inside `with engine.no_grad():`.",
            changed(one_step, "x -= ", "y = x - "),
            "The knob that was given has not been turned: x is where it was. Change x itself, by `x -= ...`.",
            changed(one_step, "x -= ", "x = x - "),
            "The knob has not been turned, nor its slope cleared. Did you take the step? (`x = x - ...` only makes "
            "a new tensor of that name: use `x -= ...`.)",
            changed(one_step, "rate * x.grad", "rate"),
            "The step is the rate times the slope: you left out the slope, and each step is equally long.",
            changed(one_step, "rate * x.grad", "rate * x.grad.sign()"),
            "Of the slope you take the sign alone, so each step is equally long. The steeper, the longer: take all"
            " of it.",
            changed(one_step, "rate * x.grad", "0.1 * x.grad"),
            "Your step takes 0.1 times the slope, whatever `rate` is.",
            changed(one_step, "x -= rate * x.grad", "x.copy_(-rate * x.grad)"),
            "You put x where only the step belongs. The step is counted from where x is: `x -= ...`.",
            changed(one_step, "f(x).backward()", "f(x).backward(); x.requires_grad_(False)"),
            "The first step is right. But x takes no notes afterwards, so there is no second one. Leave"
            " requires_grad alone, and step inside `with engine.no_grad():`.",
            changed(one_step, "rate * x.grad", "rate * f(x)"),
            "You step by the output at x. The step is the rate times the *slope*.",
            changed(one_step, "rate * x.grad", "x.grad / rate"),
            "You divide by the rate. The step is the rate times the slope.",
            changed(one_step, "f(x).backward()", "f(x).backward(); x.grad = None"),
            "When the step is taken, x.grad is None. Has backward() been called, and is the slope still there?",
            changed(one_step, "x.grad = None", "x.detach().zero_()"),
            "`x.zero_()` puts the knob itself to 0. Clear its slope: `x.grad = None`.",
            changed(one_step, "f(x).backward()", "with engine.no_grad(): f(x).backward()"),
            "The machine runs inside no_grad(), so there are no notes. Only the step belongs there.",
            changed(one_step, "x.grad = None", "x.grad = 0"),
            NO_NUMBER,
            changed(one_step, "x.grad = None", "", "f(x).backward()", "x.grad = None; f(x).backward()"),
            "x is right. But its slope is still there afterwards: clear it after the step.",
            changed(one_step, "rate * x.grad", "x.grad"),
            "The step is the rate times the slope: you left out the rate.",
            *(
                part
                for place, what in (
                    ("rate * x.grad", "the rate times the slope"),
                    ("x.grad", "its slope"),
                    ("-x.grad", "minus its slope"),
                )
                for part in (
                    changed(one_step, "x -= rate * x.grad", f"x.copy_({place})"),
                    f"You put x at {what}, wherever it was. A step is counted from where x is.",
                )
            ),
        ),
        properties=properties(
            lambda f, x, rate: [one_step(f, x, rate), one_step(f, x, rate)],
            lambda did: (
                "one step" not in did.shown
                or not any(abs(did.result["x"] - 4 * 0.8**steps) < 1e-4 for steps in range(2, 20))
            ),
            "You take more than one step. The loop belongs to those who call the function.",
        ),
        hints=(
            "Three things happen: ask for the slope, turn the knob, clear the slope.",
            "The knob is turned with `x -= ...`, inside `with engine.no_grad():`.",
            "f(x).backward()\nwith engine.no_grad():\n    x -= ...\nx.grad = ...",
        ),
        understood="Every training step is these three: go back, turn the knobs without notes, clear.",
    ),
    Exercise(
        key="04.4",
        points=1,
        answer=walked,
        trial=walk_trial,
        wrong=mistakes(
            never_cleared,
            "From the second step on, the old slopes are still in x.grad. Clear it in every round.",
            changed(walk, "f(x).backward()", "f(x).backward(); x.grad = None"),
            "You clear the slope before it is used. After the step is the place.",
            changed(walk, "x -= ", "x = x - "),
            "After the first step, x takes no notes: `x = ...` has given its name to another tensor. Turn the knob"
            " itself, with `-=`.",
            changed(walk, "x.grad = None", "x.grad = 0"),
            NO_NUMBER,
            changed(walk, "x.grad = None", "x.grad = 0.0"),
            NO_NUMBER.replace("= 0`", "= 0.0`"),
            changed(walk, "x -= ", "x += "),
            "That walks uphill. The sign was right: against the slope is `-=`.",
            changed(walk, "x.grad = None", "x.grad = None if x.grad > 0 else x.grad"),
            "You clear the slope only where it is above 0. On the other side of the valley it is below 0, and is "
            "added to as well: clear it in every round.",
            changed(walk, "x.grad = None", "x.grad = None if x.grad < 0 else x.grad"),
            "You clear the slope only where it is below 0. Clear it in every round.",
            changed(walk, "for _", "for i", "x.grad = None", "x.grad = x.grad if i else None"),
            "You clear once. The slope is added to in every round, so clear it in every round.",
            changed(walk, "for _", "for i", "f(x).backward()", "if i == 0: f(x).backward()", "x.grad = None", ""),
            "backward() is called once, before the loop, so all steps take the slope of the start. Call it in "
            "every round.",
            changed(walk, "[x.item()]", "[]"),
            "The first position is where the walk starts.",
            changed(walk, "positions.append(x.item())", "", "f(x)", "positions.append(x.item()); f(x)"),
            "You note each position before the step: the start is there twice, and the last position is missing.",
            changed(walk, "x.grad = None", "x.grad /= 2"),
            "Half of the old slope is still there, and the next one is added to it. Clear it altogether.",
            changed(walk, "[x.item()]", "[x]", "append(x.item())", "append(x)"),
            "The list holds the knob itself, again and again, so each entry shows where it ended. `.item()` takes"
            " out the number it has now.",
            lambda f, start, rate, steps: [start] + steps * walked(f, start, rate, 1)[1:],
            "Each round begins at `start` again. Go on from where the last step has led.",
            changed(walk, "append(x.item())", "append(x.item()); return positions"),
            "The walk ends after its first step. Is `return` inside the loop?",
        ),
        properties=properties(
            until_it_rises,
            lambda did: len(did.result) >= len(did.expected),
            "The start and the position after each of `steps` steps: do not end the walk early. Ask why it climbs.",
            changed(walk, "rate * x.grad", "rate / 10 * x.grad"),
            lambda did: not isinstance(did.result[1], float) or abs(did.result[1] - did.expected[1]) < 1e-4,
            "Not even the first step is right now. It is `rate` times the slope, as it was: what goes wrong comes"
            " after it.",
            lambda f, start, rate, steps: walked(f, start, rate, steps + 1),
            lambda did: len(did.result) <= len(did.expected),
            "Too many positions: the start, and one after each of `steps` steps.",
            changed(walk, "for _", "for i", "x.grad = None", "x.grad = None if i % 2 else x.grad"),
            first_step_alone,
            "The first step is right, and a later one is not. It should be `rate` times the slope of its own "
            "round, with nothing left in x.grad from before.",
        ),
        hints=(
            "Print x.grad in each round. Is it the slope at x?",
            "backward() does not set .grad, it adds to it. So something must be cleared, in each round.",
            "`x.grad = None`: after the step has used it, before the next backward().",
        ),
        understood="backward() adds to .grad, so a loop clears it once in every round.",
    ),
    Exercise(
        key="04.5",
        points=2,
        answer=fitted,
        trial=parabola_trial,
        wrong=mistakes(
            lambda xs, ys, rate, steps: fitted(xs, ys, rate, steps, of=np.sum),
            "You walk on the sum of the squares. The mean is asked for.",
            changed(fit, "bend.grad = height.grad = None", ""),
            "The first step is right, the later ones are not: the slopes are not cleared.",
            changed(fit, "bend.grad = height.grad = None", "bend.grad = None"),
            "The first step is right. Later on, the slope of one knob is cleared, and that of the other is not.",
            changed(fit, "height -= rate * height.grad", ""),
            "height is still 0: it is a knob too, and is turned in each step.",
            changed(fit, "bend -=", "bend +=", "height -=", "height +="),
            "That walks uphill: against the slope means `-=`.",
            with_loss("(bend * xs**2 + height - ys).mean()"),
            "The distances are not squared, so those above and those below cancel.",
            with_loss("(bend * xs**2 + height - ys).abs().mean()"),
            "You walk on the mean of the distances. That of their squares is asked for.",
            with_loss("(((bend * xs) ** 2 + height - ys) ** 2).mean()"),
            "You square bend, too. The parabola is bend * x**2.",
            with_loss("(bend * xs**2 + height - ys).mean() ** 2"),
            "You square the mean. Square each distance first, and then take the mean: above and below must not cancel.",
            with_loss("((bend * 2 * xs + height - ys) ** 2).mean()"),
            "2 * x is the slope of x**2. The parabola itself is bend * x**2.",
            with_loss("((bend * xs**2 + height + ys) ** 2).mean()"),
            "You add ys. The distance is the difference: minus ys.",
            with_loss("((bend * xs**2 + height) ** 2).mean()"),
            "Where are the points? The distance is that between the parabola and ys.",
            with_loss("((bend * xs**2 - height - ys) ** 2).mean()"),
            "You subtract height. The parabola is bend * x**2 + height.",
            with_loss("((bend * (xs + height) ** 2 - ys) ** 2).mean()"),
            "You add height before the square is taken. The parabola is bend * x**2, and then plus height.",
            changed(fit, "with engine.no_grad():", "if True:"),
            "Turning the knobs must not be written down: do it inside `with engine.no_grad():`.",
            changed(fit, "loss = ", "height = height.detach(); loss = "),
            "height takes no notes, so no slope arrives there. Both knobs need `requires_grad=True`.",
            changed(fit, "rate * height.grad", "rate * bend.grad"),
            "You turn height by the slope of bend. Each knob has its own .grad.",
            with_three_knobs,
            "You turn a third knob, a tilt, and it takes over some of the work of the other two.",
            *(
                part
                for first in ("bend", "height")
                for part in (
                    knob_by_knob(first),
                    f"You turn {first} first, and ask for the slope of the other where {first} is by then. Ask for both"
                    " slopes, and then turn both.",
                )
            ),
            lambda xs, ys, rate, steps: fitted(xs, ys, rate, steps - 1),
            "You take one step too few: `range(steps)` gives `steps` rounds already.",
            lambda xs, ys, rate, steps: fitted(xs, ys, rate, steps + 1),
            "You take one step too many: `range(steps)` gives `steps` rounds, since it begins at 0.",
            lambda xs, ys, rate, steps: fitted(xs, ys, 0.05, steps),
            "You walk at the lesson's rate of 0.05. Here it is given: `rate`.",
            lambda xs, ys, rate, steps: fitted(xs, ys, rate, min(steps, 1)),
            "The walk ends after its first step. Is `return` inside the loop?",
            changed(fit, "bend -= ", "bend = bend - ", "height -= ", "height = height - "),
            "The first step is right. But `bend = bend - ...` makes a new tensor, which takes no notes inside"
            " no_grad(). Turn the knob itself: `bend -= ...`.",
            changed(fit, "bend -= ", "bend = bend - "),
            "The first step is right. But `bend = bend - ...` makes another tensor, and no slope arrives in its "
            ".grad."
            " Turn the knobs themselves: `bend -= ...`, inside no_grad().",
            changed(fit, "knob(0.0), knob(0.0)", "knob(1.0), knob(1.0)"),
            "The walk begins with both knobs at 0.",
            changed(fit, "_ in range(steps)", "i in range(steps)", "loss = ", "loss = loss if i else "),
            "You make the loss once, before the loop. Make it again in each round: the knobs have moved.",
            best_at_once,
            "That is the best parabola of all, which the walk would reach after a great many steps. You are asked "
            "where it is after `steps` steps.",
            as_a_line,
            "You fit a line: multiply bend by x**2.",
            lambda *a: fitted(*a)[::-1],
            "The two are in the opposite order: first bend, then height.",
        ),
        properties=properties(
            changed(fit, "knob(0.0), knob(0.0)", "knob(0.1), knob(0.1)"),
            lambda did: "1 step" not in did.shown or wrong_of_two(did) != 2,
            "Not even the first step is right. Both knobs begin at 0, and are turned by the rate times the slope of"
            " the loss, which is the mean of (bend * x**2 + height - y)**2.",
            changed(fit, "rate * height.grad", "rate * height.grad / 2"),
            lambda did: "1 step" not in did.shown or wrong_of_two(did) != 1,
            "After the first step one knob is where it should be, and the other is not.",
            changed(
                fit, "_ in range(steps)", "i in range(steps)", "bend.grad = height", "if i % 2: bend.grad = height"
            ),
            lambda did: "5 steps" not in did.shown or not wrong_of_two(did),
            "After five steps the knobs are not where they should be. If one step is right, look at what a round "
            "leaves behind for the next.",
        ),
        hints=(
            "It is the loop of the lesson's last part, with another formula for the line.",
            "loss = ((bend * xs**2 + height - ys) ** 2).mean(). Then backward(), a step for each knob, and clear both.",
            "for _ in range(steps):\n"
            "    loss = ((bend * xs**2 + height - ys) ** 2).mean()\n"
            "    loss.backward()\n"
            "    with engine.no_grad():\n"
            "        ...\n"
            "    bend.grad = height.grad = None\n"
            "return bend.item(), height.item()",
        ),
        understood="The loop does not care what the knobs mean: another formula, and the same walk fits another curve.",
    ),
)
