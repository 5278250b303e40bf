"""Lesson 10, Jacobians: the exercises' trials, oracles, usual mistakes and hints."""

import engine
from course.judging.words import Counted, Exercise, calls, changed, loops, mistakes, properties, standing_in, using

# functions to try


def pair(x):
    return engine.stack([x[0] * x[1], x[0] + x[1]])


def three(x):
    return engine.stack([x[0] ** 2, x[0] * x[1], 3 * x[2] + x[0]])


def wide(x):
    return engine.stack([x.sum(), (x * x).sum()])


def tall(x):
    return engine.stack([x[0], x[0] * x[1], x[1] ** 3, x.sum()])


def nudged(f, x):
    """Compute the Jacobian by nudges in float64, for functions of moderate size."""
    x = x.double()
    columns = []
    for i in range(len(x)):
        e = engine.zeros_like(x)
        e[i] = 1e-5
        columns.append((f(x + e) - f(x - e)) / 2e-5)
    return engine.stack(columns, dim=1)


# 10.2


READY_MADE = ("autograd.functional.jacobian", "func.grad", "func.grad_and_value", "func.vjp", "func.jvp")


def passes(jacobian, f, x):
    """Return the table, and how often something went back through ``f``: each time it arrives at the outputs."""
    count = [0]

    def watched(x):
        y = f(x)
        if y.requires_grad:
            y.register_hook(lambda g: count.__setitem__(0, count[0] + 1))
        return y

    did = using(READY_MADE, jacobian, watched, x)
    found = {"result": did["result"], "backward passes": min(count[0], len(f(x)))}
    return found | {"ready-made": did["used"]} if did["used"] else found


def table_trial(jacobian):
    yield "f(x) = [x0 * x1, x0 + x1], x = [2., 3.]", passes, jacobian, pair, engine.tensor([2.0, 3.0])
    x = engine.tensor([1.0, 2.0, 3.0])
    yield "f(x) = [sum of x, sum of x * x], x = [1., 2., 3.]", passes, jacobian, wide, x
    x = engine.tensor([2.0, -1.0])
    yield "f(x) = [x0, x0 * x1, x1 ** 3, x0 + x1], x = [2., -1.]", passes, jacobian, tall, x
    x = engine.tensor([0.3, -1.7], dtype=engine.float64)
    yield "the same, x = [0.3, -1.7] in float64", passes, jacobian, tall, x
    yield "", passes, jacobian, three, engine.tensor([0.5, -2.0, 1.0])
    yield "", passes, jacobian, tall, engine.tensor([1.5, 0.5])


def row_by_row(did):
    return did.result["backward passes"] != 1 and not calls(did.source, "jacrev", "jacfwd", "vjp", "vmap")


def by_backward(combine, clear=True, apart=True):
    """`jacobian` by ``backward()`` and ``.grad``, with another way to put the rows together."""

    def jacobian(f, x):
        x = x.detach().clone().requires_grad_()
        y, rows = f(x), []
        for i in range(len(y)):
            if clear:
                x.grad = None
            y[i].backward(retain_graph=True)
            rows.append(x.grad.clone() if apart else x.grad)
        return combine(rows)

    return jacobian


def rowed(f, x, of):
    x = x.detach().requires_grad_()
    y = f(x)
    return engine.stack([engine.autograd.grad(of(y, i), x, retain_graph=True)[0] for i in range(len(y))])


def on_x_itself(f, x):
    x.requires_grad_()
    y = f(x)
    rows = []
    for i in range(len(y)):
        x.grad = None
        y[i].backward(retain_graph=True)
        rows.append(x.grad)
    return engine.stack(rows)


# 10.3


def faint(x):
    return engine.stack([x[0] - 2, 1e-9 * x[0] * x[1], x[1]])


def flat(x):
    return engine.stack([x[0] ** 3, x[0] - x[1]])


def far_out(x):
    return engine.stack([2 * x[0], x[1] + 3])


def follow_trial(follow):
    x = engine.tensor([1.0, 2.0, 3.0])
    yield "f(x) = [x0 * x0, x0 * x1, 3 * x2 + x0], x = [1., 2., 3.], i = 1", follow, three, x, 1
    yield "the same, i = 0", follow, three, x, 0
    yield "f(x) = [x0, x0 * x1, x1 ** 3, x0 + x1], x = [2., -1.], i = 0", follow, tall, engine.tensor([2.0, -1.0]), 0
    yield "f(x) = [x0 * x1, x0 + x1], x = [0., 2.], i = 0", follow, pair, engine.tensor([0.0, 2.0]), 0
    yield "the same, x = [0.5, -0.5], i = 0", follow, pair, engine.tensor([0.5, -0.5]), 0
    yield "f(x) = [sum of x, sum of x * x], x = [1., 0., 1.], i = 1", follow, wide, engine.tensor([1.0, 0.0, 1.0]), 1
    yield "f(x) = [x0 - 2, 1e-9 * x0 * x1, x1], x = [2., 3.], i = 0", follow, faint, engine.tensor([2.0, 3.0]), 0
    # Nudges: on both sides of 0, x ** 3 moves, and its slope is 0; far from 0, a small one is lost in rounding.
    yield "f(x) = [x0 ** 3, x0 - x1], x = [0., 1.], i = 0", follow, flat, engine.tensor([0.0, 1.0]), 0
    yield "f(x) = [2 * x0, x1 + 3], x = [100., 1.], i = 0", follow, far_out, engine.tensor([100.0, 1.0]), 0
    yield "", follow, tall, engine.tensor([0.0, 2.0]), 1
    yield "", follow, wide, engine.tensor([1.0, 0.0, 1.0]), 1
    yield "", follow, flat, engine.tensor([0.0, -2.0]), 0
    yield "", follow, far_out, engine.tensor([-3000.0, 1.0]), 0


def speeds(f, x, i):
    return by_backward(engine.stack)(f, x)[:, i]


def moving(f, x, u):
    """Return which outputs move, if the inputs do as `u` says."""
    return engine.func.jvp(f, (x,), (u,))[1] != 0


def overwritten(f, x, i):
    u = x
    u[:] = 0.0
    u[i] = 1.0
    return moving(f, x, u)


def moved(did):
    """Return whether the point itself has changed afterwards."""
    return bool((did.before["1"] != did.after["1"]).any())


# 10.4


def bowl(x):
    return x[0] ** 2 + 10 * x[1] ** 2 + 3 * x[0] * x[1]


def bent(x):
    return (x**3).sum() + x[0] * x[1]


def curve(f, x, u):
    """Compute the Hessian by nudges of the gradient."""
    step = 1e-4
    x, u = x.double(), u.double()
    ahead, behind = (engine.func.grad(f)(x + s * step * u) for s in (1, -1))
    return ((ahead - behind) / (2 * step)).float()


def once(curve, f, x, u):
    """H u, and whether ``f`` was computed once: whoever nudges needs it twice."""
    counted = Counted(f)
    found = curve(counted, x, u)
    return {"result": found, "f was computed": "once" if counted.calls == 1 else "several times"}


def curve_trial(curve):
    x, u = engine.tensor([1.0, 1.0]), engine.tensor([1.0, -1.0])
    yield "f(x) = x0**2 + 10 * x1**2 + 3 * x0 * x1, x = [1., 1.], u = [1., -1.]", once, curve, bowl, x, u
    x, u = engine.tensor([2.0, 0.5, -1.0]), engine.tensor([0.0, 1.0, 2.0])
    yield "f(x) = sum of x**3, + x0 * x1, x = [2., 0.5, -1.], u = [0., 1., 2.]", once, curve, bent, x, u
    yield "the same, where the table of all second derivatives is refused", without_table, curve, bent, x, u
    yield "", once, curve, bent, engine.tensor([1.0, -2.0]), engine.tensor([3.0, 1.0])


def without_table(curve, f, x, u):
    makers = {f"func.{name}": without_tables for name in ("hessian", "jacrev", "jacfwd", "vmap")}
    makers |= {f"autograd.functional.{name}": refusing_tables for name in ("hessian", "jacobian")}
    with standing_in(curve, makers):
        return curve(f, x, u)


def without_tables(transform):
    """`jacrev` or its like: it gives a gradient or a column, but no table."""
    return lambda *args, **options: refusing_tables(transform(*args, **options))


def refusing_tables(function):
    def call(*args, **options):
        found = function(*args, **options)
        if any(part.ndim > 1 for part in (found if isinstance(found, tuple) else (found,))):
            raise NotImplementedError("the Hessian is not to be built here")
        return found

    return call


def right_curve(f, x, u):
    """By going back twice."""
    x = x.detach().requires_grad_()
    (slopes,) = engine.autograd.grad(f(x), x, create_graph=True)
    return engine.autograd.grad(slopes, x, u)[0]


def added_up(f, x, u):
    x = x.detach().clone().requires_grad_()
    f(x).backward(create_graph=True)
    (x.grad @ u).backward()
    return x.grad.detach()


def row_after_row(f, x, u):
    x = x.detach().requires_grad_()
    (slopes,) = engine.autograd.grad(f(x), x, create_graph=True)
    return engine.stack([engine.autograd.grad(slope, x, retain_graph=True)[0] for slope in slopes]) @ u


# 10.5


def squared(w, x, y):
    return (x @ w - y) ** 2


def curved(w, x, y):
    return engine.tanh(x @ w) * y + (w * w).sum()


def gradients(loss, w, xs, ys):
    """Return each example's gradient, one after the other."""
    rows = []
    for x, y in zip(xs, ys, strict=True):
        leaf = w.detach().clone().requires_grad_()
        loss(leaf, x, y).backward()
        rows.append(leaf.grad)
    return engine.stack(rows)


def pulls_trial(pulls):
    w, xs = engine.tensor([1.0, -1.0]), engine.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    yield "loss = (x @ w - y)**2, w = [1., -1.], three examples", pulls, squared, w, xs, engine.tensor([0.0, 0.0, 1.0])
    xs = engine.tensor([[0.5, -1.0, 2.0], [1.0, 1.0, 0.0]])
    yield "another loss, three weights, two examples", pulls, curved, engine.tensor([0.1, 0.2, 0.3]), xs, engine.ones(2)

    shown = "20 examples: how often loss is called, or something goes back"
    yield shown, how_often, pulls, engine.ones(2), engine.ones(20, 2), engine.ones(20)
    yield "", pulls, squared, engine.randn(4), engine.randn(6, 4), engine.randn(6)


def how_often(pulls, w, xs, ys):
    """Tell whether the loss is called, or something goes back, for each example, or for all of them at once."""
    count, passes = [0], [0]

    def counted(go_back):
        def going_back(*args, **options):
            passes[0] += 1
            return go_back(*args, **options)

        return going_back

    def loss(w, x, y):
        count[0] += 1
        return squared(w, x, y)

    def counted_vjp(vjp):
        def call(*args, **options):
            value, back, *more = vjp(*args, **options)
            return value, counted(back), *more

        return call

    with standing_in(pulls, {"autograd.grad": counted, "Tensor.backward": counted, "func.vjp": counted_vjp}):
        pulls(loss, w, xs, ys)
    if count[0] >= len(xs):
        return "for each example"
    return "for all examples at once" if passes[0] < len(xs) else "losses at once, and back from each"


def back_in_a_loop(loss, w, xs, ys):
    w = w.detach().requires_grad_()
    losses = engine.func.vmap(loss, in_dims=(None, 0, 0))(w, xs, ys)
    return engine.stack([engine.autograd.grad(one, w, retain_graph=True)[0].norm() for one in losses])


def each(loss, w, xs, ys):
    return engine.func.vmap(engine.func.grad(loss), in_dims=(None, 0, 0))(w, xs, ys)


EXERCISES = (
    Exercise(
        key="10.1",
        points=1,
        answer=[[3.0, 2.0], [1.0, 1.0]],
        wrong=mistakes(
            [[3.0, 1.0], [2.0, 1.0]],
            "The right slopes, transposed: a *row* for each output, a *column* for each input.",
            [[2.0, 3.0], [1.0, 1.0]],
            "If x0 moves, x0 * x1 moves x1 times as far, and that is 3.",
            [3.0, 2.0, 1.0, 1.0],
            "The right slopes. Put them into rows: a list of two lists.",
            [[4.0, 3.0]],
            "That is the sum of the rows. The table has a row for each of the two outputs.",
            [6.0, 5.0],
            "Those are the values of y0 and y1. A slope says how far y moves for each unit of x.",
            [4.0, 3.0],
            "Two numbers: the sums of the columns. The table has four.",
            [[6.0, 6.0], [2.0, 3.0]],
            "There are values in it: 6 is x0 * x1. How far does that move for each unit of x0, and of x1?",
        ),
        entries={
            1: (
                ([2.0, 3.0], "If x0 moves, x0 * x1 moves x1 times as far, and that is 3."),
                "This row belongs to x0 * x1: how far that moves for each unit of x0, and of x1.",
            ),
            2: "A sum moves just as far as each of its two parts.",
        },
        hints=(
            "The first row belongs to y0 = x0 * x1. How far does it move for each unit of x0, and of x1?",
            "A product moves as far as *the other* factor says; a sum moves as far as what is added.",
            "jacobian = [[3.0, ...], [1.0, ...]]",
        ),
        understood="A row for each output, a column for each input.",
    ),
    Exercise(
        key="10.2",
        points=2,
        answer=by_backward(engine.stack),
        trial=table_trial,
        wrong=mistakes(
            lambda f, x: rowed(f, x, lambda y, i: y[0]),
            "Each row is that of the first output. Row i belongs to `y[i]`.",
            lambda f, x: rowed(f, x, lambda y, i: y[i]).abs(),
            "The signs are lost. A slope may be below 0.",
            lambda f, x: rowed(f, x, lambda y, i: y[i]).numpy(),
            "That is a NumPy array. Leave it a tensor.",
            lambda f, x: rowed(f, x.requires_grad_(), lambda y, i: y[i]),
            "The table is right. But x takes notes from now on: `requires_grad_` changes x itself. Work on "
            "`x.detach()`.",
            by_backward(engine.stack, clear=False),
            "Each row holds the rows before it too: `.grad` adds up. Clear it, or use `autograd.grad`.",
            by_backward(engine.stack, clear=False, apart=False),
            "`x.grad` is one tensor, and it is in your list again and again: all rows are the same sum. Clear it "
            "before each pass, or use `autograd.grad`.",
            changed(rowed, ", of", "", "of(y, i)", "y[i]", ", retain_graph=True", ""),
            "The first pass throws the notes away, and the second one needs them: `retain_graph=True`.",
            by_backward(lambda rows: engine.stack(rows, dim=1)),
            "The right slopes, transposed: the gradient of an output is a row.",
            by_backward(lambda rows: sum(rows)),
            "You added the rows up. Keep them apart, one below the other.",
            by_backward(lambda rows: rows),
            "The right rows, in a list. Make one tensor of them: `engine.stack`.",
            changed(
                on_x_itself,
                "x.requires_grad_()",
                "x = x.detach().clone().requires_grad_()",
                "x.grad = None",
                "if x.grad is not None: x.grad.zero_()",
            ),
            "All rows are the last one: `.grad` is one tensor, which your list holds again and again, and "
            "`zero_()` clears it. Keep a clone, or use `autograd.grad`.",
            lambda f, x: engine.autograd.grad(f(x)[0], x),
            "x takes no notes yet, so f leaves no path back to it: begin with `x.detach().requires_grad_()`.",
            lambda f, x: by_backward(engine.stack)(f, x).float(),
            "The table is in float32, where x is in float64: `engine.zeros(...)` gives float32. Say "
            "`dtype=x.dtype`, or stack the rows.",
            on_x_itself,
            "The table is right. But x takes notes now, and has a `.grad`: work on `x.detach()`.",
        ),
        properties=properties(
            by_backward(engine.cat),
            lambda did: did.result["result"].ndim != 1,
            "That is a row of numbers, and not a table. Put each output's gradient into a row of its own: `stack`.",
            changed(rowed, ", of", "", "of(y, i)", "y[i]", ")[0] for", ") for"),
            lambda did: did.error != "TypeError",
            "`autograd.grad` gives a tuple, with an entry for each input. Take the one out of it: `[0]`.",
            lambda f, x: by_backward(lambda rows: engine.stack(rows[:2]))(f, x),
            lambda did: (
                did.error != "IndexError"
                and (
                    did.error
                    or did.result["result"].ndim == 1
                    or len(did.result["result"]) == len(did.expected["result"])
                )
            ),
            "f may have any number of outputs, and each has a row: count those of `y`, not those of x.",
            lambda f, x: engine.func.jacrev(f)(x),
            lambda did: did.result["backward passes"] != 1 and not calls(did.source, "jacrev", "jacfwd", "vjp", "vmap"),
            "The table is made by `engine.func`, or in one pass for all rows at once. Make it yourself: one "
            "backward pass for each output.",
            lambda f, x: engine.autograd.functional.jacobian(f, x),
            lambda did: "ready-made" not in did.result,
            "`autograd.functional` and `engine.func` are ready-made, too. Write those passes yourself, with "
            "`autograd.grad` or `backward()`: one for each output.",
            lambda f, x: nudged(f, x).to(x.dtype),
            lambda did: did.result["backward passes"] != 0,
            "No backward pass went through f. One is asked for, for each output. (A nudge gives nearly the right "
            "numbers, and `jvp` gives columns.)",
        ),
        hints=(
            "The lesson does it for three outputs. What has to be different for any function?",
            "Begin with `x = x.detach().requires_grad_()`. Then the gradient of `y[i]` for each i, all stacked.",
            "rows = [engine.autograd.grad(y[i], x, retain_graph=...)[0] for i in ...]\nreturn engine.stack(rows)",
        ),
        understood="One backward pass gives one row: the slopes of one output.",
    ),
    Exercise(
        key="10.3",
        points=2,
        answer=lambda f, x, i: speeds(f, x, i) != 0,
        trial=follow_trial,
        wrong=mistakes(
            lambda f, x, i: engine.func.jacrev(f)(x)[:, i - 1] != 0,
            "Another input moves. The first one has the number 0.",
            lambda f, x, i: engine.func.jvp(f, (x,), (engine.ones_like(x),))[1] != 0,
            "You let all inputs move at once. Let only input i move: 1 there, 0 anywhere else.",
            lambda f, x, i: engine.func.jacrev(f)(x)[i] != 0,
            "That is row i: which inputs output i follows. A column is asked for.",
            speeds,
            "Those are the speeds. Which of them are not 0?",
            lambda f, x, i: speeds(f, x, i) > 0,
            "An output that moves backwards follows, too: not 0.",
            lambda f, x, i: f(x + engine.eye(len(x))[i]) != f(x),
            "You moved the input, by much or by little, and looked. Even x * x moves then, at 0, where its slope "
            "is 0. Ask for the slope at this very point: jvp.",
            lambda f, x, i: f(x + 1e-3 * engine.eye(len(x))[i]) != f(x - 1e-3 * engine.eye(len(x))[i]),
            "You nudged the input to both sides, and compared. x ** 3 moves then, at 0, where its slope is 0. Ask "
            "for the slope itself: jvp.",
            lambda f, x, i: f(x + 1e-6 * engine.eye(len(x))[i]) != f(x),
            "Your nudge is so small that it is lost where x is large, and it moves x * x at 0, where the slope is "
            "0. Ask for the slope itself: jvp.",
            overwritten,
            "`u = x` is a second name for x, so your u was written into the point itself. Begin with "
            "`engine.zeros_like(x)`.",
            lambda f, x, i: engine.func.jvp(f, (x,), (engine.eye(len(x))[i],))[0] != 0,
            "jvp gives a pair: first the value of f, then the speeds. You compare the value with 0.",
            lambda f, x, i: engine.func.vjp(f, x)[1](engine.eye(len(x))[i])[0] != 0,
            "A backward pass gives a row: which inputs output i follows. A column is asked for.",
            lambda f, x, i: speeds(f, x, i) == 0,
            "The other way round: True where an output does move.",
            lambda f, x, i: engine.func.grad(lambda at: f(at).sum())(x) != 0,
            "You added up all outputs, and asked which inputs the sum follows. Input i has no part in that.",
            lambda f, x, i: moving(f, x, x),
            "You let each input move as far as its own value. Let only input i move: 1 there, 0 anywhere else.",
            lambda f, x, i: moving(f, x, x * engine.eye(len(x))[i]),
            "Input i moves as far as its own value: not at all where that is 0. Let it move by 1.",
            lambda f, x, i: engine.func.jvp(f, (x,), (engine.eye(len(x))[i],)),
            "`jvp` gives a pair: the value, and the speeds. Which of the speeds are not 0?",
            lambda f, x, i: speeds(f, x, 0) != 0,
            "You let input 0 move, whatever i is.",
        ),
        properties=properties(
            lambda f, x, i: (speeds(f, x, i) != 0).any(),
            lambda did: did.result.shape == did.expected.shape,
            "A tensor with one truth value for each *output* is asked for: not for each input, not one for all, "
            "and no list of places.",
            lambda f, x, i: speeds(f, x, i).abs() > 0.01,
            lambda did: "1e-9" not in did.shown or did.result[1] or not did.result[0] or moved(did),
            "A slope of 3e-9 is small, but not 0: that output follows as well. Compare with 0 itself.",
            lambda f, x, i: [x.zero_(), speeds(f, x, i) != 0][1],
            lambda did: not moved(did),
            "The point x itself was overwritten. (`u = x` makes no copy: begin with `engine.zeros_like(x)`.)",
        ),
        hints=(
            "What goes with a column of the Jacobian: a backward pass or a forward pass?",
            "jvp, with a u that is 1 at place i and 0 anywhere else. Then compare the speeds with 0.",
            "u = engine.zeros_like(x)\nu[i] = 1.0\nreturn engine.func.jvp(f, (x,), (...,))[1] != 0",
        ),
        understood="One forward pass gives one column: where all outputs go if one input moves.",
    ),
    Exercise(
        key="10.4",
        points=2,
        answer=right_curve,
        trial=curve_trial,
        tolerance=1e-3,
        wrong=mistakes(
            lambda f, x, u: right_curve(f, x, u) * u,
            "That is H u, multiplied by u once more, place by place. H u itself is asked for.",
            lambda f, x, u: right_curve(f, x + u, u),
            "You have gone to x + u. The place is x; u is only the direction.",
            changed(right_curve, "slopes, x, u", "(slopes * slopes).sum(), x"),
            "You go along the gradient itself. The direction is u: `g @ u`, and not `g @ g`.",
            lambda f, x, u: right_curve(f, x, -u),
            "The sign is the wrong way round; the rest is right.",
            lambda f, x, u: engine.func.grad(f)(x) * u,
            "That multiplies the slopes by u. How do the slopes *change*?",
            lambda f, x, u: engine.func.jvp(f, (x,), (u,))[1],
            "That is how f changes along u, one number. How does its gradient change?",
            lambda f, x, u: engine.func.hessian(f)(x).diagonal() * u,
            "The diagonal alone is not enough: slopes also change with the *other* inputs.",
            lambda f, x, u: engine.func.jvp(engine.func.grad(f), (x,), (u,)),
            "`jvp` gives a pair: the gradient, and how it changes. Only the second is asked for.",
            lambda f, x, u: engine.func.jvp(engine.func.grad(f), (u,), (x,))[1],
            "x and u have changed places: x is where, and u is in which direction.",
            lambda f, x, u: (right_curve(f, x, u),),
            "The right numbers, in a tuple, as `autograd.grad` gives them. Take them out of it: `[0]`.",
            lambda f, x, u: right_curve(f, x, engine.ones_like(u)),
            "You go along [1, 1, ...]. The direction that is asked for is u.",
            changed(right_curve, "slopes, x, u", "slopes * u, x"),
            "`g * u` is a whole row, and a backward pass begins at one number: `g @ u`, or `grad_outputs=u`.",
            lambda f, x, u: right_curve(f, x, u / u.norm()),
            "You gave u the length 1. Take it as it is: for a u twice as long, the gradient changes twice as much.",
            lambda f, x, u: right_curve(f, x, engine.ones_like(u)) * u,
            "You multiplied by u at the end. It has to go into the second pass: `g @ u`, or `grad_outputs=u`.",
            added_up,
            "The gradient itself is in your result. `backward()` adds to `.grad`, where the first pass has left "
            "it: use `autograd.grad`.",
            lambda f, x, u: engine.func.grad(f)(x),
            "That is the gradient itself. How does it change along u?",
            lambda f, x, u: engine.func.hessian(f)(x) @ u,
            "The right numbers, but of the whole Hessian. Along one direction a single forward pass is enough.",
            changed(right_curve, ", create_graph=True", ""),
            "The slopes have no notes of how they were made: `create_graph=True` in the first pass.",
        ),
        properties=properties(
            curve,
            lambda did: did.result["f was computed"] == "once",
            "f was computed more than once, as for a nudge, which is nearly right and never quite. Compute it "
            "once, and go on from its gradient.",
            lambda f, x, u: right_curve(f, x, u) @ u,
            lambda did: (
                did.result["result"].ndim or abs(did.result["result"] - did.before["3"] @ did.expected["result"]) > 1e-3
            ),
            "That is u H u, one number: how f itself bends along u. H u is asked for.",
            row_after_row,
            lambda did: not loops(did.source),
            "The numbers come from the whole Hessian, row after row. One more pass, with u, is enough: no loop.",
            lambda f, x, u: engine.func.jacrev(engine.func.grad(f))(x) @ u,
            lambda did: did.error != "NotImplementedError",
            "The right numbers, but of the whole Hessian. Along one direction a single forward pass is enough.",
        ),
        hints=(
            "The Hessian is the Jacobian of what?",
            "Of the gradient, `engine.func.grad(f)`. And a Jacobian times a vector is one jvp.",
            "return engine.func.jvp(engine.func.grad(f), (...,), (...,))[1]",
        ),
        understood="The Hessian is the Jacobian of the gradient, so one jvp gives H u, whatever the size.",
    ),
    Exercise(
        key="10.5",
        points=2,
        answer=lambda *args: (each(*args) ** 2).sum(1) ** 0.5,
        trial=pulls_trial,
        wrong=mistakes(
            lambda loss, w, xs, ys: each(loss, w, xs, ys).norm(dim=1) / len(xs),
            "Divided by how many examples there are. Each pulls by itself here.",
            lambda *args: gradients(*args).norm(dim=1),
            "The right lengths, by a loop over the examples. `vmap` makes it one computation.",
            back_in_a_loop,
            "The losses come all at once, but then you go back from each of them in a loop. `grad` belongs inside "
            "of `vmap`.",
            lambda loss, w, xs, ys: engine.func.vmap(engine.func.grad(loss, argnums=1), (None, 0, 0))(w, xs, ys).norm(
                dim=1
            ),
            "Those are the gradients with respect to x. What is asked for is w, the first argument.",
            lambda *args: each(*args),
            "Those are the gradients. How long is each of them?",
            lambda *args: each(*args).mean(0).norm(),
            "That is the length of the mean gradient, one for all examples.",
            lambda *args: each(*args).norm(),
            "One number: the length of everything together. Say along which dim.",
            lambda *args: each(*args).norm(dim=0),
            "One number for each weight. Each example has a row: the other dim.",
            lambda *args: (each(*args) ** 2).sum(1),
            "Those are the sums of the squares. The length is the square root of that.",
            lambda *args: each(*args).abs().sum(1),
            "You added up absolute values. The length: squares, sum, square root.",
            lambda *args: (each(*args) ** 2).mean(1) ** 0.5,
            "You took the mean of the squares. The length is the square root of their *sum*.",
            lambda *args: each(*args).sum(1).abs(),
            "You added up the slopes with their signs, which cancel. The length: squares, sum, square root.",
            lambda loss, w, xs, ys: engine.func.vmap(engine.func.grad(loss, argnums=2), (None, 0, 0))(w, xs, ys).abs(),
            "Those are slopes with respect to y. What is asked for is w, the first argument.",
            lambda *args: each(*args).abs().amax(1),
            "That is the largest slope of each example, not the length.",
            lambda loss, w, xs, ys: engine.func.vmap(loss, in_dims=(None, 0, 0))(w, xs, ys),
            "Those are the losses. How long is the gradient of each?",
        ),
        properties=properties(
            lambda loss, w, xs, ys: engine.func.grad(loss)(w, xs, ys).norm(),
            lambda did: did.error != "RuntimeError",
            "`loss` is the loss of one example, and got more than one: `vmap` hands over one row of xs and one "
            "number of ys at a time.",
            lambda loss, w, xs, ys: engine.func.vmap(engine.func.grad(loss))(w, xs, ys).norm(dim=1),
            lambda did: did.error != "ValueError",
            "`in_dims` does not fit: all examples share w, so there it says None; in xs and in ys the examples lie "
            "along dimension 0.",
        ),
        hints=(
            "`grad(loss)` is the gradient of one example. What makes a function of a batch out of it?",
            "vmap, with in_dims=(None, 0, 0): all share w. Then the length of each row.",
            "each = engine.func.vmap(engine.func.grad(loss), in_dims=...)(w, xs, ys)\nreturn each.norm(dim=...)",
        ),
        understood="`vmap` makes a function of a batch out of a function of one example, and no loop is left.",
    ),
)
