"""Lesson 11, an engine of one's own: trials, oracles, usual mistakes and hints of its steps and of the exercises."""

import sys
from collections.abc import Iterator
from itertools import count
from unittest.mock import patch

import numpy as np

import engine
from course.judging.words import Exercise, changed, mistakes, properties

numbers = count()


class Var:
    """As in the exercises' notebook."""

    def __init__(self, value, parents=(), rules=()):
        self.value = np.asarray(value, dtype=float)
        self.parents, self.rules, self.grad = parents, rules, None
        self.number = next(numbers)


def add(x, y):
    return Var(x.value + y.value, (x, y), (lambda g: g, lambda g: g))


def sub(x, y):
    return Var(x.value - y.value, (x, y), (lambda g: g, lambda g: -g))


def mul(x, y):
    return Var(x.value * y.value, (x, y), (lambda g: g * y.value, lambda g: g * x.value))


def at(step, holds):
    """Ask for a property only after the steps that read so."""
    return lambda did: step not in did.shown or holds(did)


def total(x):
    return Var(x.value.sum(), (x,), (lambda g: g * np.ones_like(x.value),))


# The steps of the lesson: mul


NO_FUNCTION = "this rule is no function"


def passed_on(multiply, g, x, y):
    """Return what the rules of a product pass on, if g arrives."""
    rules = multiply(Var(x), Var(y)).rules
    rules = rules if isinstance(rules, tuple | list) else [rules]
    parts = [rule(g) if callable(rule) else NO_FUNCTION for rule in rules]
    return {f"to {name}": part for name, part in zip("abc", parts, strict=False)}


def mul_trial(multiply):
    shown = "c = mul(a, b) with a = 2, b = 3, and 1 arrives at c: what goes to a, to b"
    yield shown, passed_on, multiply, 1.0, 2.0, 3.0
    yield "the same, and 10 arrives", passed_on, multiply, 10.0, 2.0, 3.0


def product(to_x, to_y):
    """`mul` with other rules."""
    return lambda x, y: Var(x.value * y.value, (x, y), (lambda g: to_x(g, x, y), lambda g: to_y(g, x, y)))


# from_root


def in_which_order(walk, made):
    """Return which Vars a walk lists, and which of them come before something that was made of them."""
    names, root = made()
    found = list(walk(root))
    early = {names[p] for v in found for p in v.parents if p in found and found.index(p) < found.index(v)}
    return {"listed": sorted(names[v] for v in found), "too early": sorted(early)}


def small():
    a, b = Var(2.0), Var(3.0)
    c = mul(a, b)
    d = add(c, a)
    return {a: "a", b: "b", c: "c", d: "d"}, d


def from_root_trial(walk):
    yield "c = a * b, d = c + a: from_root(d)", in_which_order, walk, small
    yield "c = a * b, d = a + c: from_root(d)", in_which_order, walk, changed(small, "add(c, a)", "add(a, c)")


def from_root(visiting):
    """`from_root` with other lines for what a Var's visit does."""

    def walk(root):
        order, seen = [], set()

        def visit(v):
            if v in seen:
                return
            seen.add(v)
            visiting(v, visit, order)

        visit(root)
        return reversed(order)

    return walk


def parents_first(v, visit, order):
    for parent in v.parents:
        visit(parent)
    order.append(v)


# backward, of which `deliver` and the beginning are to be written


def summed_up(arrived, v, part):
    arrived[v] = arrived.get(v, 0.0) + part


def begun(begin=lambda root: {root: 1.0}, deliver=summed_up):
    """Make a pass that begins with another dict, or delivers in another way."""

    def backward(root):
        arrived = begin(root)
        for v in by_number(root):
            g = arrived.pop(v)
            if not v.parents:
                v.grad = g if v.grad is None else v.grad + g
            for parent, rule in zip(v.parents, v.rules, strict=True):
                deliver(arrived, parent, rule(g))

    return backward


def is_one(did):
    """Tell whether the first slope is 1."""
    return not did.error and np.array_equal(did.result[0], 1.0)


def begin_trial(backward):
    a = Var(2.0)
    yield "backward(a), for a leaf alone: a.grad", slopes, backward, a, [a]
    a, b = Var(2.0), Var(3.0)
    yield "d = a * b + a with a = 2, b = 3: a.grad and b.grad", slopes, backward, add(mul(a, b), a), [a, b]
    a = Var(5.0)
    yield "a * a with a = 5: a.grad", slopes, backward, mul(a, a), [a]


# matmul


def matmul_trial(rules):
    x, y, g = np.arange(8.0).reshape(4, 2), np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)
    shapes = "x of shape (4, 2), y of shape (2, 3), g of shape (4, 3)"
    yield f"{shapes}: what goes to x", lambda: rules[0](g, x @ y, x, y)
    yield f"{shapes}: what goes to y", lambda: rules[1](g, x @ y, x, y)


# 11.1


def mean_trial(rule):
    yield "g = 1, x = [1., 5., 6., 8.]", rule, 1.0, np.array([1.0, 5.0, 6.0, 8.0])
    yield "g = 3, x of shape (2, 3)", rule, 3.0, np.arange(6.0).reshape(2, 3)
    yield "", rule, -2.0, np.full((5, 1, 2), 7.0)


# 11.2


def diamond():
    """Paths that part and meet again, made in an order that no walk through the parents gives by itself."""
    a, b = Var(2.0), Var(3.0)
    late = mul(a, b)
    return add(mul(add(late, a), b), late)


def chain(length):
    x, one = Var(1.0), Var(1.0)
    for _ in range(length):
        x = add(x, one)
    return x


NO_VARS = "something else than Vars"
NO_LIST = "something that can be gone through once, and no list"


def order(walk, root):
    """Return the numbers of what a walk gives, counted from the oldest."""
    listed = walk(root)
    if isinstance(listed, Iterator):
        return NO_LIST
    if not all(isinstance(v, Var) for v in listed):
        return NO_VARS
    found = [v.number for v in listed]
    return [number - min(found) for number in found]


def length(walk, root):
    """Return how long the list is, with no deeper nesting of calls than Python allows by itself."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    try:
        with patch.object(sys, "setrecursionlimit"):  # to raise it is no answer
            return len(list(walk(root)))
    finally:
        sys.setrecursionlimit(before)


class Counted(tuple):
    """Parents that are not gone through for ever."""

    left = 0

    def __iter__(self):
        Counted.left -= 1
        if Counted.left < 0:
            raise RuntimeError("You have gone through some Var's parents 1000 times, and there are only 41 Vars.")
        return super().__iter__()


def many_paths(walk, times):
    """Return how long the list is, for few Vars and very many paths."""
    x, Counted.left = Var(1.0), 1000
    for _ in range(times):
        x = Var(x.value, Counted((x, x)))
    return len(list(walk(x)))


def walk_trial(walk):
    a, b = Var(2.0), Var(-3.0)  # so that the values are not in the order of the numbers
    yield "a * b + a: the numbers in your order", order, walk, add(mul(a, b), a)
    yield "a larger one, with paths that part and meet: the numbers in your order", order, walk, diamond()
    yield "a chain of 5,000 additions: how many Vars in your list", length, walk, chain(5_000)
    yield "x = x + x, done 40 times: how many Vars in your list", many_paths, walk, 40
    x = chain(3)
    yield "", order, walk, mul(add(x, diamond()), x)


def behind(root):
    layer, seen = {root}, {root}
    while layer:
        layer = {parent for v in layer for parent in v.parents} - seen
        seen |= layer
    return seen


def by_number(root):
    return sorted(behind(root), key=lambda v: -v.number)


def oldest_first(root):
    return sorted(behind(root), key=lambda v: v.number)


def as_met(root):
    """Depth first, each Var where it is first met."""
    found, seen, waiting = [], set(), [root]
    while waiting:
        v = waiting.pop()
        if v not in seen:
            seen.add(v)
            found.append(v)
            waiting += v.parents
    return found


def again_and_again(root):
    found, waiting = [], [root]
    while waiting and len(found) < 10_000:
        v = waiting.pop(0)
        found.append(v)
        waiting += v.parents
    return sorted(found, key=lambda v: -v.number)


def path_after_path(root):
    found, waiting = {root}, [root]
    while waiting:
        for parent in waiting.pop().parents:
            found.add(parent)
            waiting.append(parent)
    return sorted(found, key=lambda v: -v.number)


def calling_itself(root):
    order, seen = [], set()

    def visit(v):
        if v not in seen:
            seen.add(v)
            for parent in v.parents:
                visit(parent)
            order.append(v)

    visit(root)
    return sorted(order, key=lambda v: -v.number)


# unbroadcast, a step of the lesson


def summed(g, shape):
    front = g.ndim - len(shape)
    axes = tuple(range(front)) + tuple(i + front for i, n in enumerate(shape) if n == 1)
    return g.sum(axis=axes).reshape(shape)


def shapes_trial(unbroadcast):
    g = np.arange(12.0).reshape(3, 4)
    yield "g of shape (3, 4), shape = (4,)", unbroadcast, g, (4,)
    yield "g of shape (3, 4), shape = (3, 1)", unbroadcast, g, (3, 1)
    yield "g of shape (2, 3, 4), shape = (1, 4)", unbroadcast, np.arange(24.0).reshape(2, 3, 4), (1, 4)
    yield "g of shape (2, 3, 4), shape = (2, 1, 1)", unbroadcast, np.arange(24.0).reshape(2, 3, 4), (2, 1, 1)
    yield "g of shape (3, 4), shape = (3, 4)", unbroadcast, g, (3, 4)


def fronts(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    return g


def along_ones(reduce):
    """`unbroadcast`, with another way of dealing with the axes of length 1."""

    def unbroadcast(g, shape):
        g = fronts(g, shape)
        for axis, n in reversed(list(enumerate(shape))):
            if n == 1:
                g = reduce(g, axis)
        return g

    return unbroadcast


def along_the_wrong_one(g, shape):
    g = fronts(g, shape)
    for length in shape:
        if length == 1:
            g = g.sum(axis=length, keepdims=True)
    return g


def along_the_first_one(g, shape):
    g = fronts(g, shape)
    return g.sum(axis=shape.index(1), keepdims=True) if 1 in shape else g


# 11.3


def row_and_table(g, x, y):
    """Apply the rules of a product of two tables, taking a row for a table of one row."""
    tables = np.atleast_2d(x), np.atleast_2d(g)
    return (tables[1] @ y.T).reshape(x.shape), tables[0].T @ tables[1]


def product_trial(rules):
    y = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    g, x = np.array([1.0, 10.0, 100.0]), np.array([6.0, 7.0])
    yield "x of shape (2,), y of shape (2, 3), g of shape (3,)", rules, g, x, y
    g, x = np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)
    yield "x of shape (4, 2), y of shape (2, 3), g of shape (4, 3)", rules, g, x, y
    g, x, y = np.array([1.0, 10.0]), np.array([3.0, 5.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    yield "x of shape (2,), y of shape (2, 2), g of shape (2,)", rules, g, x, y
    g, x = np.array([[1.0, 10.0], [100.0, 1000.0]]), np.array([[3.0, 5.0], [6.0, 7.0]])
    yield "x, y and g of shape (2, 2)", rules, g, x, y
    yield "", rules, np.ones(1), np.arange(3.0), np.ones((3, 1))
    yield "", rules, np.ones((1, 2)), np.arange(3.0).reshape(1, 3), np.ones((3, 2))
    yield "", rules, np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3) ** 2, np.eye(3)


def of_a_row(to_y):
    """Return the rules as they were, with another one for a row."""
    return lambda g, x, y: (g @ y.T, to_y(g, x, y) if x.ndim == 1 else x.T @ g)


# 11.4


def slopes(backward, root, leaves):
    backward(root)
    return [None if leaf.grad is None else np.asarray(leaf.grad, dtype=float) for leaf in leaves]


def keepers(backward, a, b):
    product = mul(a, b)
    root = add(product, a)
    backward(root)
    found = {"a": a, "b": b, "a * b": product, "a * b + a": root}
    return [name for name, var in found.items() if var.grad is not None]


def twice(backward, make, leaves):
    backward(make())
    return slopes(backward, make(), leaves)


def calls(backward, times):
    """Count how often rules are called, on a graph of few nodes and very many paths."""
    called = []

    def rule(g):
        called.append(g)
        return g

    before, x = Var(1.0), Var(1.0)
    for _ in range(times):
        before, x = x, Var(before.value + x.value, (before, x), (rule, rule))
    backward(x)
    return len(called)


def pass_trial(backward):
    a, b = Var(2.0), Var(3.0)
    yield "a * b with a = 2, b = 3: a.grad and b.grad", slopes, backward, mul(a, b), [a, b]
    a, b = Var(2.0), Var(3.0)
    yield "a * b + a with a = 2, b = 3: a.grad and b.grad", slopes, backward, add(mul(a, b), a), [a, b]
    a, b = Var(2.0), Var(3.0)
    late = mul(a, b)
    root = add(mul(add(late, a), b), late)
    yield "(a * b + a) * b + a * b: a.grad and b.grad", slopes, backward, root, [a, b]
    yield "each number the sum of the two before, 12 times: how often you called a rule", calls, backward, 12
    a, b = Var(2.0), Var(3.0)
    yield "a * b + a: which Vars have a .grad afterwards", keepers, backward, a, b
    a = Var(5.0)
    shown = "a * a * a, then the same again, with a = 5: a.grad after both"
    yield shown, twice, backward, lambda: mul(mul(a, a), a), [a]
    a, b = Var(2.0), Var(3.0)
    yield "(b - b) * a with a = 2, b = 3: a.grad and b.grad", slopes, backward, mul(sub(b, b), a), [a, b]
    x, y = Var([1.0, 2.0]), Var([3.0, 4.0])
    root = add(total(mul(x, x)), total(add(x, y)))
    shown = "total(x * x) + total(x + y) with x = [1, 2], y = [3, 4]: x.grad and y.grad"
    yield shown, slopes, backward, root, [x, y]
    x, y = Var([1.0, 2.0]), Var([3.0, 4.0])
    shown = "total(x + y), then again: x.grad and y.grad after both"
    yield shown, twice, backward, lambda: total(add(x, y)), [x, y]
    z = Var([1.0, 2.0])
    yield "total(z * z), then again, with z = [1, 2]: z.grad after both", twice, backward, lambda: total(mul(z, z)), [z]
    x, y = Var([1.0, 2.0, 3.0]), Var([1.0, 10.0, 100.0])
    turned = Var(x.value[::-1], (x,), (lambda g: g[::-1],))
    shown = "total(turned * y), turned = x in the opposite order, x = [1, 2, 3], y = [1, 10, 100]: x.grad and y.grad"
    yield shown, slopes, backward, total(mul(turned, y)), [x, y]
    a = Var(2.0)
    yield "a leaf alone, which is the root: a.grad", slopes, backward, a, [a]
    a, b = Var(0.5), Var(-1.5)
    c = mul(a, b)
    root = mul(add(mul(c, c), a), add(c, b))
    yield "", slopes, backward, root, [a, b]
    x, y = Var([[1.0, 2.0], [3.0, 4.0]]), Var([[0.5, 1.0], [2.0, -1.0]])
    root = sub(total(mul(x, y)), total(sub(add(x, y), x)))
    yield "", slopes, backward, root, [x, y]


def newest_first(root):
    arrived = {root: 1.0}
    for v in by_number(root):
        g = arrived.get(v, 0.0)
        if not v.parents:
            v.grad = g if v.grad is None else v.grad + g
        for parent, rule in zip(v.parents, v.rules, strict=True):
            part = rule(g)
            arrived[parent] = arrived[parent] + part if parent in arrived else part


def meeting(how):
    """Put something else where paths meet than the sum."""
    return changed(newest_first, "arrived[parent] + part", how)


def at_a_leaf(how):
    """Put something else into the `.grad` of a leaf."""
    return changed(newest_first, "g if v.grad is None else v.grad + g", how)


def asking(how):
    """Ask the rules otherwise."""
    return changed(newest_first, "rule(g)", how)


def path_by_path(root):
    waiting = [(root, 1.0)]
    while waiting:
        v, g = waiting.pop()
        if not v.parents:
            v.grad = g if v.grad is None else v.grad + g
        waiting += [(parent, rule(g)) for parent, rule in zip(v.parents, v.rules, strict=True)]


def in_place(old, new):
    old += new
    return old


def with_seen(place):
    """Make a walk in which each Var has its turn once, when first met, and what comes to it later is dropped."""

    def backward(root):
        waiting, seen = [(root, 1.0)], set()
        while waiting:
            v, g = waiting.pop(place)
            if v in seen:
                continue
            seen.add(v)
            if not v.parents:
                v.grad = g if v.grad is None else v.grad + g
            waiting += [(parent, rule(g)) for parent, rule in zip(v.parents, v.rules, strict=True)]

    return backward


# 11.5


softplus = engine.nn.functional.softplus


def refused(*_, **__):
    raise RuntimeError("softplus is what you are asked to write")


def value_at(function, x):
    with patch.object(engine.nn.functional, "softplus", refused):
        return function.apply(x)


def magnified(function, x):
    return value_at(function, x) * 1e9


def slope_at(function, x, weights):
    x = x.detach().requires_grad_()
    (value_at(function, x) * weights).sum().backward()
    return x.grad


def softplus_trial(function):
    x = engine.tensor([-1.0, 0.0, 2.0])
    yield "Softplus.apply(x), x = [-1, 0, 2]", value_at, function, x
    yield "Softplus.apply(x), x = [100, 1000]", value_at, function, engine.tensor([100.0, 1000.0])
    yield "Softplus.apply(x) * 1e9, x = [-20, -30]", magnified, function, engine.tensor([-20.0, -30.0])
    yield "x.grad after Softplus.apply(x).sum().backward()", slope_at, function, x, engine.ones(3)
    weights = engine.tensor([1.0, 10.0, 100.0])
    yield "the same, with what arrives [1, 10, 100]", slope_at, function, x, weights
    x = engine.tensor([-1000.0, 1000.0])
    yield "x.grad at x = [-1000, 1000]", slope_at, function, x, engine.ones(2)
    yield "x is overwritten before backward()", overwritten, function, engine.tensor([-1.0, 0.5])
    yield "x = [0.1, -3.7] in float64", value_at, function, engine.tensor([0.1, -3.7], dtype=engine.float64)
    x = engine.linspace(-90, 90, 9)
    yield "", value_at, function, x
    yield "", slope_at, function, x, engine.arange(9.0)


def overwritten(function, x):
    """Return what becomes of the slopes if the input is overwritten meanwhile."""
    leaf = x.detach().requires_grad_()
    taken = leaf * 1
    out = function.apply(taken)
    taken.mul_(2)
    try:
        out.sum().backward()
    except RuntimeError:
        return "noticed, or of no harm"
    return "noticed, or of no harm" if engine.allclose(leaf.grad, engine.sigmoid(x)) else f"wrong slopes: {leaf.grad}"


class Softplus:
    """The oracle: PyTorch's own softplus stands in for the Function."""

    apply = staticmethod(lambda x: softplus(x, threshold=1e9))


def function(value, rule):
    """Make a Function with another forward, or another rule."""

    class Attempt(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return value(x)

        @staticmethod
        def backward(ctx, g):
            return rule(*ctx.saved_tensors, g)

    return Attempt


class OnContext(engine.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return safe(x)

    @staticmethod
    def backward(ctx, g):
        return chance(ctx.x, g)


def safe(x):
    return engine.clamp(x, min=0) + engine.log1p(engine.exp(-engine.abs(x)))


def chance(x, g):
    return engine.sigmoid(x) * g


def of_another(slopes):
    """Tell whether these are the sigmoids of the output, or of max(x, 0), for the first x."""
    x = engine.tensor([-1.0, 0.0, 2.0])
    return any(np.allclose(slopes, engine.sigmoid(taken).numpy(), rtol=1e-3) for taken in (safe(x), x.relu()))


STEPS = (
    Exercise(
        key="11.mul",
        points=0,
        answer=mul,
        trial=mul_trial,
        wrong=mistakes(
            product(lambda g, x, y: g, lambda g, x, y: g),
            "Those are the rules of an addition.",
            product(lambda g, x, y: g * y, lambda g, x, y: g * x),
            "`y` is a whole Var. The number in it is `y.value`.",
            product(lambda g, x, y: g + y.value, lambda g, x, y: g + x.value),
            "`g` is multiplied by the other side, and not added to it.",
        ),
        properties=properties(
            lambda x, y: Var(x.value * y.value, (x, y), (y.value, x.value)),
            lambda did: NO_FUNCTION not in did.result.values(),
            "A rule is a function, to be asked later: it begins with `lambda g:`.",
            lambda x, y: Var(x.value * y.value, (x, y), lambda g: (g * y.value, g * x.value)),
            lambda did: len(did.result) == 2,
            "There are two parents, so there are two rules: two functions, with a comma between them.",
            product(lambda g, x, y: g * x.value, lambda g, x, y: g * y.value),
            at("10 arrives", lambda did: did.result["to a"] != 20 and did.result["to b"] != 30),
            "If a grows by 1, a * b grows by b. So each side gets g times *the other* side.",
            product(lambda g, x, y: y.value, lambda g, x, y: x.value),
            at("10 arrives", lambda did: did.result["to a"] not in (2, 3) and did.result["to b"] not in (2, 3)),
            "A rule forgets what arrives. The product's own slope is multiplied by `g`.",
            product(lambda g, x, y: g * x.value * y.value, lambda g, x, y: g * x.value * y.value),
            at("10 arrives", lambda did: {*map(abs, did.result.values())} <= {2, 3, 20, 30, 10, 12, 13}),
            "Leave b alone and move a by 1: the product moves by b, and by nothing else. That is the slope for a.",
            product(lambda g, x, y: -g * y.value, lambda g, x, y: -g * x.value),
            lambda did: min(did.result.values()) >= 0,
            "The product grows if a grows (b is 3). Where does the minus come from?",
        ),
        understood="If one side moves by 1, the product moves by the other; a rule is that slope, times what arrives.",
        hints=(
            "Move a by 1 and leave b alone: by how much does a * b move?",
            "By b. So what goes to x is g times the value of y, and the other way round.",
            "rules = (\n    lambda g: g * y.value,\n    lambda g: ...,\n)",
        ),
    ),
    Exercise(
        key="11.from_root",
        points=0,
        answer=from_root(parents_first),
        trial=from_root_trial,
        wrong=mistakes(
            from_root(changed(parents_first, "order.append(v)", "", "for parent", "order.append(v)\n    for parent")),
            "Read from its end, your list begins with a leaf. Write a Var down *after* visiting its parents.",
            from_root(lambda v, visit, order: order.append(v)),
            "Only the root is listed. The visit of a Var has to go on to its parents.",
            from_root(changed(parents_first, "order.append(v)", "")),
            "Nothing is listed. Write each Var down: `order.append(v)`.",
        ),
        properties=properties(
            from_root(changed(parents_first, "for parent in v.parents:", "", "    visit(parent)", "visit(v.parents)")),
            lambda did: did.error not in ("AttributeError", "TypeError"),
            "`visit` takes one Var, and `v.parents` are several: go through them in a loop.",
            from_root(changed(parents_first, "append(v)", "append(parent)")),
            lambda did: did.error not in ("UnboundLocalError", "NameError"),
            "A leaf has no parents, so after the loop there is no `parent`. Write down `v`.",
            from_root(changed(parents_first, "for parent", "order.append(v)\n    for parent")),
            lambda did: len(did.result["listed"]) <= 4,
            "Some Var is listed more than once. Write it down once in its own visit, below the loop.",
            from_root(changed(parents_first, "v.parents", "v.parents[:1]")),
            lambda did: {*did.result["listed"]} == set("abcd") or not {*did.result["listed"]} - {"d"},
            "Some Var is missing. Every parent is visited, and every Var that is visited is written down.",
            from_root(
                changed(parents_first, "order.append(v)", "", "for parent", "order.insert(0, v)\n    for parent")
            ),
            lambda did: not did.result["too early"] or len(did.result["listed"]) != 4,
            "Some Var comes before one that was made of it. Write a Var down *after* visiting its parents.",
        ),
        understood="A Var that is written down after its parents comes before them when the list is read from its end.",
        hints=(
            "The list is read from its end. So who has to be written down first, a Var or its parents?",
            "First a loop that visits the parents; then, below the loop, v is appended to `order`.",
            "for parent in v.parents:\n    visit(parent)\n...  # and then write v down",
        ),
    ),
    Exercise(
        key="11.backward",
        points=0,
        answer=begun(),
        trial=begin_trial,
        wrong=mistakes(
            begun(begin=lambda root: {}),
            "The walk begins at the root, and there is nothing under it in `arrived`. A dict is `{key: value}`.",
            begun(lambda root: {root: 0.0}),
            "A 0 stays 0 all along. How far does the root move if it moves by 1?",
            begun(lambda root: {root: root.value}),
            "You begin with the root's value, not with its slope. How far does the root move if it moves by 1?",
            begun(deliver=lambda arrived, v, part: arrived.update({v: part})),
            "In `deliver`, what came first is lost. A second part is *added* to what is there.",
            begun(deliver=lambda arrived, v, part: arrived.get(v, 0.0) + part),
            "`arrived` lacks a Var. The first time there is nothing to add to; and the sum has to be put back into "
            "the dict: `arrived[v] = ...`",
            begun(deliver=lambda arrived, v, part: arrived.update({v: arrived.get(v, 1.0) * part})),
            "Along one path, slopes are multiplied. Where paths meet, they are added.",
        ),
        properties=properties(
            begun(lambda root: {root: 10.0}),
            at("a leaf alone", lambda did: did.error == "KeyError" or is_one(did)),
            "A leaf alone has the slope 1. So the walk begins with the number 1.0 at the root.",
            begun(deliver=lambda arrived, v, part: arrived.setdefault(v, part)),
            at("a * b + a", lambda did: did.error or did.result[0] == 2 * did.result[1] != 0),
            "`deliver`: 1 comes to a, and then 3. The first part is kept as it is, and the second is added to it.",
        ),
        understood="What comes along several paths is added up before anything of it is passed on.",
        hints=(
            "In `deliver`: something came to v before, or nothing did. And what did lesson 05 put at the root?",
            "`arrived.get(v, 0.0)` gives what is there, and 0 where nothing is. At the root a 1 has arrived.",
            "arrived[v] = arrived.get(v, 0.0) + ...  # in deliver\n\narrived = {root: ...}  # in backward",
        ),
    ),
    Exercise(
        key="11.matmul",
        points=0,
        answer=(lambda g, out, x, y: np.einsum("np,mp->nm", g, y), lambda g, out, x, y: np.einsum("nm,np->mp", x, g)),
        trial=matmul_trial,
        wrong=mistakes(
            (lambda g, out, x, y: y @ g.T, lambda g, out, x, y: g.T @ x),
            "All the right numbers, lying on their side. What goes to x has the shape of x: g first, then y.",
            (lambda g, out, x, y: x.T @ g, lambda g, out, x, y: g @ y.T),
            "Both are right, and the two have changed places: the first rule is for x.",
        ),
        properties=properties(
            (lambda g, out, x, y: g @ y, lambda g, out, x, y: x.T @ g),
            lambda did: did.error != "ValueError",
            "NumPy cannot multiply those shapes: the inner numbers have to agree. g is (4, 3), x (4, 2), y (2, 3); "
            "`.T` turns one over.",
            (lambda g, x, y: g @ y.T, lambda g, x, y: x.T @ g),
            lambda did: did.error != "TypeError",
            "Two functions are asked for, a comma between them, and each begins with `lambda g, out, x, y:`.",
            (lambda g, out, x, y: y @ g.T, lambda g, out, x, y: x.T @ g),
            at("to x", lambda did: did.result.shape == (4, 2)),
            "What goes to x must have the shape of x, (4, 2): (4, 3) times (3, 2) gives that, with g first.",
            (lambda g, out, x, y: g @ y.T, lambda g, out, x, y: g.T @ x),
            at("to y", lambda did: did.result.shape == (2, 3)),
            "What goes to y must have the shape of y, (2, 3): (2, 4) times (4, 3) gives that, with g last.",
        ),
        understood="The shapes leave only one product: what goes to x has the shape of x.",
        hints=(
            "Write the shapes down: g is (n, p), y is (m, p) if you turn it over (p, m). Which product is (n, m)?",
            "g @ y.T is (n, p) times (p, m): (n, m), the shape of x. For y, find a product that is (m, p).",
            "matmul_rules = (\n    lambda g, out, x, y: g @ y.T,\n    lambda g, out, x, y: ...,\n)",
        ),
    ),
    Exercise(
        key="11.unbroadcast",
        points=0,
        answer=summed,
        trial=shapes_trial,
        wrong=mistakes(
            along_ones(lambda g, axis: g.mean(axis=axis, keepdims=True)),
            "The mean, where the sum belongs: each of the repeated uses counts in full.",
            along_ones(lambda g, axis: g.take([0], axis=axis)),
            "You keep the first of the repeated ones and throw the others away. Each of them counts: add them up.",
            along_the_first_one,
            "You add up along one axis of length 1. There may be several.",
            lambda g, shape: np.resize(g, shape),
            "That cuts off what is too much. What was repeated is added up.",
        ),
        properties=properties(
            lambda g, shape: fronts(g, shape).reshape(shape),
            lambda did: did.error == "",
            "To reshape or to cut does not add up, and an axis has to be there: for each 1 in `shape`, add up "
            "along that axis.",
            fronts,
            at("shape = (3, 1)", lambda did: did.result.size != 12),
            "Nothing was added up for the 1 in `shape`. Ask `shape` (not `g.shape`) where a 1 is, and keep the "
            "sum: `g = g.sum(...)`.",
            along_ones(lambda g, axis: g.sum(keepdims=True)),
            at("shape = (3, 1)", lambda did: did.result.size >= 3),
            "Too much was added up. Add up along the axes where `shape` has a 1, and along no other.",
            along_ones(lambda g, axis: g.sum(axis=0, keepdims=True)),
            at("shape = (3, 1)", lambda did: did.result.size != 4),
            "You add up along the first axis, and the 1 of (3, 1) is at the second: `enumerate` tells its number.",
            along_ones(lambda g, axis: g.sum(axis=axis)),
            at("shape = (3, 1)", lambda did: did.result.shape != (3,)),
            "The sum is right, but the axis is gone. An axis of length 1 has to stay: `keepdims=True`.",
            along_the_wrong_one,
            at("shape = (1, 4)", lambda did: did.result.shape in ((1, 4), (4,), (3, 4), (1, 1))),
            "Add up along the axis where the 1 stands in `shape`: `enumerate` tells its number.",
        ),
        understood="What was repeated on the way there is added up on the way back.",
        hints=(
            "Broadcasting puts new axes in front; the `while` undoes that. What else does it do to a shape?",
            "It stretches axes of length 1. Wherever `shape` has a 1, add up along that axis, and keep the axis.",
            "for axis, length in enumerate(shape):\n"
            "    if length == 1:\n"
            "        g = ...  # a sum along axis, with keepdims=True",
        ),
    ),
)

EXERCISES = (
    Exercise(
        key="11.1",
        points=1,
        answer=lambda g, x: np.full_like(x, g / x.size),
        trial=mean_trial,
        wrong=mistakes(
            lambda g, x: g * np.ones_like(x),
            "That is the rule of the sum. The mean divides by the number of elements.",
            lambda g, x: np.ones_like(x) / x.size,
            "Those are the mean's own slopes. Multiply them by what arrives.",
            lambda g, x: g / x.size,
            "One number for all elements. Each of them gets its own: the shape of x.",
            lambda g, x: g * np.ones_like(x) / len(x),
            "`len(x)` counts the rows. How many *elements* are there?",
            lambda g, x: g * x / x.size,
            "If one element moves by 1, the mean moves by 1/n, whatever the element is.",
            lambda g, x: g * x.mean(),
            "That is the mean, times g. What is asked for is how far it moves for each.",
        ),
        properties=properties(
            lambda g, x: g * np.ones(x.size) / x.size,
            lambda did: did.result.shape == did.expected.shape or not did.result.shape,
            "Each element of x gets its share at its own place: the shape of x is asked for.",
            lambda g, x: np.full_like(x, g * x.size),
            lambda did: not did.result.shape or np.isclose(did.result.sum(), did.expected.sum()),
            "All shares together make g. There are n elements, and each of them gets 1/n of it, whatever it holds.",
        ),
        understood="Each element has a share of 1/n in the mean, and gets that share of what arrives.",
        hints=(
            "If one element of x grows by 1, by how much does the mean grow?",
            "By 1 divided by the number of elements, `x.size`. Every element gets that, times what arrives.",
            "return g * np.ones_like(x) / ...",
        ),
    ),
    Exercise(
        key="11.2",
        points=2,
        answer=by_number,
        trial=walk_trial,
        wrong=mistakes(
            lambda root: reversed(oldest_first(root)),
            "`reversed` gives something that can be gone through once. A list is asked for: `list(reversed(...))`.",
            oldest_first,
            "The oldest first: that is the order in which they were made. `reverse=True`?",
            as_met,
            "You list each Var where you first meet it. It may be met before a newer one that leads to it.",
            path_after_path,
            "Each Var is in the list once, but you go on from it each time you meet it. Ask first if it is new.",
            lambda root: by_number(root)[1:],
            "The root itself is missing.",
            lambda root: sorted({float(v.value): v for v in behind(root)}.values(), key=lambda v: -v.number),
            "Vars with one value are taken for one. Two Vars may hold the same number: remember the Vars.",
        ),
        properties=properties(
            calling_itself,
            lambda did: did.error != "RecursionError",
            "A function that calls itself gets too deep in a long chain, and it is not the limit that is to blame: "
            "keep a list of those that wait, and a loop.",
            again_and_again,
            at("your order", lambda did: len({*did.result}) == len(did.result) or did.result == NO_VARS),
            "Some Vars are in the list more than once. Remember which ones you have seen.",
            lambda root: [v.number for v in by_number(root)],
            lambda did: did.result != NO_VARS,
            "The list holds the Vars themselves. `sorted` takes them by their number with `key=`.",
            lambda root: sorted({root, *root.parents}, key=lambda v: -v.number),
            at("your order", lambda did: {*did.result} == {*did.expected} or did.result == NO_VARS),
            "Some Vars are missing: from each parent, go on to its own parents, and list the root as well.",
            behind,
            at("your order", lambda did: did.result == sorted(did.result, reverse=True) or did.result == NO_VARS),
            "The list is not in the order of `number`. Collect first, in whatever order, and sort at the end.",
        ),
        understood="A Var is younger than its parents, so the order of birth, read backwards, is a topological order.",
        hints=(
            "Two things to do: collect all Vars behind the root, each once; then put them in order.",
            "Collect with a list of those that wait and a set of those seen, as in exercise 5.2. Sort by `number`.",
            "seen, waiting = {root}, [root]\n"
            "while waiting:\n"
            "    for parent in waiting.pop().parents:\n"
            "        ...  # if it is new: remember it, and let it wait\n"
            "return sorted(seen, key=lambda v: v.number, reverse=True)",
        ),
    ),
    Exercise(
        key="11.3",
        points=1,
        answer=row_and_table,
        trial=product_trial,
        wrong=mistakes(
            of_a_row(lambda g, x, y: np.outer(g, x)),
            "The right numbers, lying on their side. What goes to y has the shape of y: one row for each of x.",
            of_a_row(lambda g, x, y: x * g),
            "Elementwise, each of x meets one of g. But each of x was used in every column: all pairs count.",
            lambda g, x, y: (g @ y.T, np.outer(x, g)),
            "Right for a row. But `np.outer` takes all pairs of two tables, too; there, the old rule was right.",
            lambda g, x, y: (np.atleast_2d(g) @ y.T, np.atleast_2d(x).T @ np.atleast_2d(g)),
            "What goes to y is right. But what goes to a row is a row again, and yours is a table with one row.",
            lambda g, x, y: (g @ y.T, np.outer(x, g) if len(x) == len(y) else x.T @ g),
            "You ask whether x is as long as y. A square table is, too. Ask how many axes x has: `x.ndim`.",
            lambda g, x, y: row_and_table(g, x, y)[::-1],
            "The two have changed places: first what goes to x, then what goes to y.",
        ),
        properties=properties(
            lambda g, x, y: np.outer(x, g) if x.ndim == 1 else x.T @ g,
            lambda did: did.error or isinstance(did.result, list | tuple),
            "A pair is asked for: what goes to x, a comma, and what goes to y.",
            lambda g, x, y: (y @ g, np.outer(x, g)),
            at("(4, 3)", lambda did: not did.error),
            "Right for a row. For two tables the old rules were right: keep them for that case.",
            of_a_row(lambda g, x, y: x[:, None] @ g),
            at("g of shape (3,)", lambda did: not did.error),
            "One of the products stops. A row has one axis, and `.T` leaves it as it is: all pairs of two rows come "
            "from `np.outer`.",
            lambda g, x, y: (np.outer(g, y), np.outer(x, g) if x.ndim == 1 else x.T @ g),
            lambda did: (
                not isinstance(did.result, list | tuple)
                or (did.result[0].shape == did.before["1"].shape and np.allclose(did.result[0], did.expected[0]))
            ),
            "What went to x was right as it was: `g @ y.T`, for a row too.",
            of_a_row(lambda g, x, y: (x.T @ np.resize(g, x.shape)) * np.ones_like(y)),
            at(
                "g of shape (3,)",
                lambda did: not isinstance(did.result, list | tuple) or np.allclose(did.result[1], did.expected[1]),
            ),
            "What goes to y is wrong for a row: y[i, j] gets x[i] * g[j].",
        ),
        understood="A rule is made for shapes: with a row, each pair of x[i] and g[j] meets in one element of y.",
        hints=(
            "What shape does y have, and what shape does `x.T @ g` have, if both are rows?",
            "y[i, j] was multiplied by x[i] and went into result j. So it gets x[i] * g[j]: all pairs, a table.",
            "to_y = x.T @ g if x.ndim == 2 else np.outer(...)",
        ),
    ),
    Exercise(
        key="11.4",
        points=3,
        answer=newest_first,
        trial=pass_trial,
        wrong=mistakes(
            meeting("(arrived[parent] + part) / 2"),
            "Where paths meet you take the mean. The parts are added.",
            changed(newest_first, "zip(v.parents, v.rules,", "zip(v.parents[:1], v.rules[:1],"),
            "Only the first parent gets something. Each rule has a parent of its own.",
            meeting("part"),
            "Where paths meet, the later part takes the place of the earlier one. Add.",
            meeting("arrived[parent] * part"),
            "You multiply where paths meet. There, slopes are added.",
            at_a_leaf("v.grad + g"),
            "`.grad` is None in the beginning, and nothing can be added to None.",
            meeting("in_place(arrived[parent], part)"),
            "`+=` writes into an array that somebody else may hold: `x + y` hands one to both. Make a new one.",
            at_a_leaf("g if v.grad is None else in_place(v.grad, g)"),
            "`v.grad += g` writes into an array that another leaf may hold as well. Make a new one: `v.grad = ...`",
            at_a_leaf("v.grad + g if v.grad else g"),
            "`if v.grad` asks an array whether it is true. Ask for what you mean: `if v.grad is None`.",
            asking("v.rules[v.parents.index(parent)](g)"),
            "In `b - b` one parent stands twice, and `index` finds the first each time. Let `zip` pair them up.",
            at_a_leaf("g if v.grad is None else v.grad * g"),
            "A second pass multiplies what is in `.grad`. What arrives is added to it.",
            asking("rule(1.0)"),
            "You ask each rule about 1. Ask it about `g`, all that arrived: along a path slopes are multiplied.",
            asking("g * rule(g)"),
            "You multiply by `g` what the rule gives. The rule has done so already: pass it on as it is.",
            changed(newest_first, "if not v.parents:", "if not v.parents and v is not root:"),
            "The root may be a leaf itself: then the 1 that it begins with goes into its `.grad`.",
            with_seen(-1),
            "A Var's turn comes when it is first met, and what comes later is dropped: newest first.",
            with_seen(0),
            "A Var has its turn as soon as something arrives; what arrives later is dropped. Newest first.",
            changed(
                newest_first,
                "for v in by_number(root):",
                "while arrived:",
                "g = arrived.get(v, 0.0)",
                "v = next(iter(arrived)); g = arrived.pop(v)",
            ),
            "You take Vars in the order in which something arrives. More may still be on its way: newest first.",
        ),
        properties=properties(
            lambda root: [leaf for leaf in behind(root) if not leaf.parents],
            at("a * b with", lambda did: did.result != [None, None]),
            "Nothing has come into `.grad`. That is where what arrives at a leaf has to go; nothing is returned.",
            changed(newest_first, "{root: 1.0}", "{root: 0.0}"),
            at("a * b with", lambda did: did.result[0] is None or any(did.result)),
            "Every slope is 0: either you begin with 0 at the root and not with 1, or the leaves have their turn "
            "before anything has arrived.",
            changed(newest_first, "{root: 1.0}", "{root: root.value}"),
            at("a * b with", lambda did: did.result != [18, 12]),
            "You begin with the root's value, not with its slope. How far does the root move if it moves by 1?",
            asking("v.rules[0](g)"),
            at("a * b with", lambda did: did.result not in ([3, 3], [2, 2])),
            "Both parents get the same. Each has a rule of its own: `zip(v.parents, v.rules)` pairs them up.",
            changed(newest_first, "by_number", "as_met"),
            at("a * b + a with", lambda did: did.result[0] != 1 or did.result[1] is None),
            "a has had its turn when only 1 had arrived, and what comes later along a * b is lost: newest first.",
            changed(
                newest_first,
                "{root: 1.0}",
                "{root: np.ones(())}",
                "arrived[parent] + part",
                "in_place(arrived[parent], part)",
            ),
            at("a * b + a with", lambda did: did.result[1] != 8),
            "`+=` has written into an array that another Var holds, too: what goes to b is no longer its own. Make "
            "a new one: `... = ... + ...`",
            changed(newest_first, "zip(v.parents, v.rules, strict=True)", "dict(zip(v.parents, v.rules)).items()"),
            at("a * a * a, then", lambda did: did.result != [100]),
            "In `a * a` the parent a stands twice, with a rule each time, and only one of the two was asked. "
            "(A dict keeps one entry for each key.)",
            at_a_leaf("g"),
            at("a * a * a, then", lambda did: did.result != [75]),
            "A second pass overwrites `.grad`. What arrives at a leaf is added to what is there.",
            changed(newest_first, "if not v.parents:", "if True:"),
            at("have a .grad afterwards", lambda did: not {*did.result} - {"a", "b"}),
            "Only leaves keep a `.grad`: a Var that was computed passes on what arrives, and keeps nothing.",
            path_by_path,
            at("how often you called", lambda did: did.result <= 2 * did.expected),
            "You go along every path, and ask a rule more than once. A Var has one turn, with all that arrives.",
            changed(newest_first, "part = rule(g)", "rule(0); part = rule(g)"),
            at("how often you called", lambda did: not did.expected < did.result <= 2 * did.expected),
            "You call a rule again for what it has told you already. Keep what it gives under a name.",
        ),
        understood="Newest first, all that belongs to a Var has arrived when its turn comes; so it is asked once.",
        hints=(
            "Keep a dict of what has arrived where: `arrived = {root: 1.0}`. Whose turn is it?",
            "The one with the highest number: nothing that is still to come can send it anything. Take it out.",
            "arrived = {root: 1.0}\n"
            "while arrived:\n"
            "    v = max(arrived, key=lambda v: v.number)\n"
            "    g = arrived.pop(v)\n"
            "    ...  # a leaf: add g to v.grad, which may be None\n"
            "    for parent, rule in zip(v.parents, v.rules):\n"
            "        arrived[parent] = arrived.get(parent, 0.0) + ...",
        ),
    ),
    Exercise(
        key="11.5",
        points=2,
        answer=Softplus,
        trial=softplus_trial,
        wrong=mistakes(
            function(lambda x: safe(x.float()), chance),
            "Whatever comes, float32 goes out. Leave x in its dtype: `gradcheck` needs float64.",
            function(lambda x: engine.nn.functional.softplus(x), chance),
            "You call softplus in order to write softplus. Compute it from exp and log.",
            function(safe, lambda x, g: engine.sigmoid(x)),
            "backward forgets what arrives: multiply the slope by g.",
            function(safe, lambda x, g: engine.exp(x) / (1 + engine.exp(x)) * g),
            "On paper that is the sigmoid. For x = 1000 it is infinity by infinity; `engine.sigmoid` is safe.",
            function(lambda x: engine.clamp(x, min=0) + engine.log(1 + engine.exp(-engine.abs(x))), chance),
            "For x = -20, `1 + exp(-20)` is just 1 in float32, and its logarithm is 0. `log1p` does not add the 1.",
            function(lambda x: engine.clamp(x, min=0) + engine.log1p(engine.exp(engine.abs(x))), chance),
            "In exp(-|x|) the minus is missing.",
            OnContext,
            "What is kept on `ctx` itself may be overwritten, and nobody notices. Use `ctx.save_for_backward`.",
        ),
        properties=properties(
            safe,
            at("Softplus.apply(x), x = [-1", lambda did: did.error != "AttributeError"),
            "A class is asked for, with `forward` and `backward`: it is called by `Softplus.apply`.",
            function(lambda x: engine.log(1 + engine.exp(x)), chance),
            at("[100, 1000]", lambda did: not np.isinf(did.result).any()),
            "exp(100) is more than a float32 can hold. Use the second form, in which nothing grows.",
            function(lambda x: engine.abs(x) + engine.log1p(engine.exp(-engine.abs(x))), chance),
            at("apply(x), x = [-1, 0, 2]", lambda did: np.allclose(did.result, did.expected, rtol=1e-3)),
            "`forward` is off: max(x, 0) is `clamp(x, min=0)`, and what is added to it is `log1p(exp(-abs(x)))`.",
            function(safe, lambda x, g: engine.sigmoid(safe(x)) * g),
            at("x.grad after", lambda did: not of_another(did.result)),
            "The sigmoid of the *input* is wanted. You saved the output, or took a part of it.",
            function(safe, lambda x, g: g),
            at(
                "x.grad after",
                lambda did: did.error or of_another(did.result) or np.allclose(did.result, did.expected, rtol=1e-3),
            ),
            "`backward` is off: the slope at each x is `engine.sigmoid(x)`, and it is multiplied by what arrives.",
            function(safe, lambda x, g: (engine.sigmoid(x) * g).sum()),
            at("x.grad", lambda did: not did.error),
            "`backward` stops, or its answer does not fit: it gets x by `(x,) = ctx.saved_tensors`, if `forward` "
            "saved it, and gives one tensor in the shape of x.",
        ),
        understood="A Function may compute in one way and go back in another: the rule only has to be the true slope.",
        hints=(
            "`engine.clamp(x, min=0)` is max(x, 0), and `engine.log1p(y)` is log(1 + y). Tensors are used as always.",
            "Save x in forward by `ctx.save_for_backward(x)`, and get it back by `(x,) = ctx.saved_tensors`.",
            "forward: ctx.save_for_backward(x); return engine.clamp(x, min=0) + engine.log1p(...)\n"
            "backward: (x,) = ctx.saved_tensors; return engine.sigmoid(x) * ...",
        ),
    ),
)
