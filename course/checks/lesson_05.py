"""Lesson 05, the graph: the exercises' trials, oracles, usual mistakes and hints."""

import engine
from course.exercises import Exercise


def knobs(*values):
    return [engine.tensor(value, requires_grad=True) for value in values]


# 5.2


def count(node):
    seen, layer = set(), {node}
    while layer:
        seen |= layer
        layer = {parent for here in layer for parent, _ in here.next_functions if parent is not None} - seen
    return len(seen)


def doubled(times):
    """A graph with few nodes and very many ways."""
    (x,) = knobs(1.0)
    for _ in range(times):
        x = x + x
    return x


def count_trial(count):
    a, b = knobs(2.0, 3.0)
    yield "count_nodes(c.grad_fn), where c = a * b", count, (a * b).grad_fn
    yield "count_nodes(d.grad_fn), where d = a * b + a", count, (a * b + a).grad_fn
    yield "count_nodes(h.grad_fn), where h = (3 * b).exp(), and 3 is a plain number", count, (3 * b).exp().grad_fn
    yield "count_nodes(x.grad_fn), where x = x + x was done 8 times", count, doubled(8).grad_fn


def count_more(count):
    (p,) = knobs(0.5)
    q = p.tanh()
    yield "", count, (q * q / (q + p) + 1).grad_fn
    yield "", count, doubled(11).grad_fn


def each_way(node):
    return 1 + sum(each_way(parent) for parent, _ in node.next_functions if parent is not None)


def without_the_ends(node):
    seen = set()

    def walk(here):
        if here.next_functions:
            seen.add(here)
        for parent, _ in here.next_functions:
            if parent is not None and parent not in seen:
                walk(parent)

    walk(node)
    return len(seen)


def with_none(node):
    seen, waiting = set(), [node]
    while waiting:
        here = waiting.pop()
        seen.add(here)
        waiting += [parent for parent, _ in getattr(here, "next_functions", ()) if parent not in seen]
    return len(seen)


def one_step(node):
    return 1 + len(node.next_functions)


# 5.3


def division(arriving, x, y):
    x, y = (value.detach().requires_grad_() for value in (x, y))
    first, second = engine.autograd.grad(x / y, (x, y), arriving)
    return first, second


def division_trial(backward):
    arriving, x, y = map(engine.tensor, (1.0, 6.0, 2.0))
    yield "arriving = 1, x = 6, y = 2", backward, arriving, x, y
    arriving, x, y = map(engine.tensor, (10.0, 1.0, 4.0))
    yield "arriving = 10, x = 1, y = 4", backward, arriving, x, y


def division_more(backward):
    yield "", backward, *map(engine.tensor, ([-1.0, 0.5], [3.0, -2.0], [0.5, 5.0]))


# 5.4


def gradients_at(go_back, node, leaves):
    found = {}
    with engine.no_grad():
        go_back(node, engine.tensor(1.0), found)
    return [found.get(leaf, "nothing") for leaf in leaves]


def way_by_way(node, arriving, found):
    waiting, parts = [(node, arriving)], []
    while waiting:
        here, arriving = waiting.pop()
        if hasattr(here, "variable"):
            parts.append((here.variable, arriving))
            continue
        passed_on = here(arriving)
        passed_on = passed_on if isinstance(passed_on, tuple) else (passed_on,)
        waiting += [(parent, part) for (parent, _), part in zip(here.next_functions, passed_on, strict=True) if parent]
    for leaf in {leaf for leaf, _ in parts}:
        found[leaf] = sum(part for of, part in parts if of is leaf)


def at_the_leaves(accumulate):
    """`go_back`, with another way of taking in what arrives at a leaf."""

    def go_back(node, arriving, found):
        if type(node).__name__ == "AccumulateGrad":
            accumulate(found, node.variable, arriving)
            return
        passed_on = node(arriving)
        passed_on = passed_on if isinstance(passed_on, tuple) else (passed_on,)
        for (parent, _), part in zip(node.next_functions, passed_on, strict=True):
            if parent is not None:
                go_back(parent, part, found)

    return go_back


def plus_equals(found, leaf, arriving):
    found[leaf] += arriving


def plus_none(found, leaf, arriving):
    found[leaf] = found.get(leaf) + arriving


def nowhere(found, leaf, arriving):
    found = dict(found)  # another dict than the one that was given
    found[leaf] = arriving


def back_trial(go_back):
    a, b = knobs(2.0, 3.0)
    yield "a * b with a = 2, b = 3: found at a and at b", gradients_at, go_back, (a * b).grad_fn, [a, b]
    yield "a * b + a with a = 2, b = 3: found at a and at b", gradients_at, go_back, (a * b + a).grad_fn, [a, b]
    yield "a * a * b with a = 2, b = 3: found at a and at b", gradients_at, go_back, (a * a * b).grad_fn, [a, b]


def back_more(go_back):
    p, q = knobs(0.5, 1.5)
    yield "", gradients_at, go_back, ((p * q).tanh() / q + p.exp() * p).grad_fn, [p, q]


# 5.5


def scores_gradient(z, y):
    z = z.detach().requires_grad_()
    engine.nn.functional.binary_cross_entropy_with_logits(z, y).backward()
    return z.grad


def scores_trial(gradient):
    z, y = engine.tensor([1.5, -0.5, 0.0]), engine.zeros(3)
    yield "z = [1.5, -0.5, 0.0], y = [0, 0, 0]", gradient, z, y
    z, y = engine.tensor([2.0, -1.0]), engine.tensor([1.0, 0.0])
    yield "z = [2.0, -1.0], y = [1, 0]", gradient, z, y


def scores_more(gradient):
    yield "", gradient, engine.linspace(-3, 3, 7), engine.tensor([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])


EXERCISES = (
    Exercise(
        key="05.1",
        points=1,
        answer=(7.0, 2.0),
        wrong=(
            ((5.0, 2.0), "Two ways lead from the root to a. You followed the one straight from the multiplication."),
            ((2.0, 2.0), "Two ways lead from the root to a. You followed the one through the addition."),
            ((2.0, 7.0), "Those are the right two numbers, in the opposite order: first a, then b."),
            ((7.0, 3.0), "At b arrives what the multiplication passes on to the sum, which is the other input, a."),
        ),
        hints=(
            "The multiplication has two inputs: the sum, which is 5, and a, which is 2. What does it pass on to each?",
            "It passes 2 on to the sum and 5 on to a. The addition passes what arrives there on to both of its inputs.",
            "At a: 5 straight from the multiplication, and 2 through the addition. They are added. At b: only one way.",
        ),
    ),
    Exercise(
        key="05.2",
        points=2,
        answer=count,
        trial=count_trial,
        hidden=count_more,
        wrong=(
            (each_way, "You count a node once for each way that leads to it. Remember the nodes that you have seen."),
            (without_the_ends, "The ends of the ways, AccumulateGrad, are nodes too."),
            (with_none, "Where an input takes no notes there stands None. You counted it as a node."),
            (one_step, "You counted the node and those it points to. They point further back: go on to the ends."),
        ),
        hints=(
            "Walk the graph as `show` does. What must you remember, so that no node is counted twice?",
            "Keep a set of the nodes that you have seen, and a list of those that still wait. Begin with `node`.",
            "while waiting:\n"
            "    here = waiting.pop()\n"
            "    if here is not None and here not in seen:\n"
            "        ...  # it is seen now; and its next_functions, pairs, are waiting\n"
            "return len(seen)",
        ),
    ),
    Exercise(
        key="05.3",
        points=1,
        answer=division,
        trial=division_trial,
        hidden=division_more,
        wrong=(
            (lambda g, x, y: (g / y, g * x / y**2), "A larger y makes x / y smaller: there is a minus missing."),
            (lambda g, x, y: (1 / y, -x / y**2), "Those are the node's own slopes. Multiply each by what arrives."),
            (lambda g, x, y: (-g * x / y**2, g / y), "The two are in the opposite order: first for x, then for y."),
            (lambda g, x, y: (g / y, -g * x / y), "For y, divide by y twice: the slope is -x / y**2."),
            (lambda g, x, y: (g * y, g * x), "That is the rule of the multiplication."),
        ),
        hints=(
            "Along a way, slopes are multiplied. What arrives is one slope, the node's own is the other.",
            "For x: what arrives, times 1 / y. For y: what arrives, times the slope that the text gives.",
            "return arriving / y, arriving * (...)",
        ),
    ),
    Exercise(
        key="05.4",
        points=2,
        answer=way_by_way,
        trial=back_trial,
        hidden=back_more,
        wrong=(
            (
                at_the_leaves(lambda found, leaf, part: found.update({leaf: part})),
                "What arrives at a leaf takes the place of what arrived before. Where ways meet, slopes are added.",
            ),
            (
                at_the_leaves(lambda found, leaf, part: found.setdefault(leaf, part)),
                "Only what arrives first at a leaf is kept. Where ways meet, slopes are added.",
            ),
            (
                at_the_leaves(plus_equals),
                "Adding is right. But the first time, there is nothing yet to add to: `found.get(leaf, 0.0)`.",
            ),
            (
                at_the_leaves(plus_none),
                "The first time, `found.get(leaf)` is None, and nothing can be added to it: `found.get(leaf, 0.0)`.",
            ),
            (
                at_the_leaves(nowhere),
                "In the dict that was given, nothing stands for a and b. The key is the leaf itself, `node.variable`; "
                "and `found = ...` makes another dict.",
            ),
            (
                at_the_leaves(lambda found, leaf, part: found.update({leaf: found.get(leaf, 1.0) * part})),
                "You multiply where ways meet. Slopes are multiplied along a way; where ways meet, they are added.",
            ),
        ),
        hints=(
            "In a * b + a, two ways lead to a. What happens to `found` when the second one arrives?",
            "The repair is in one line, the one that writes to `found`.",
            "`found.get(leaf, 0.0)` is what is there already, or 0. Add what arrives to it.",
        ),
    ),
    Exercise(
        key="05.5",
        points=1,
        answer=scores_gradient,
        trial=scores_trial,
        hidden=scores_more,
        wrong=(
            (lambda z, y: engine.sigmoid(z) - y, "The loss is a mean: divide by the number of questions."),
            (
                lambda z, y: engine.sigmoid(z) - y / len(z),
                "Only y is divided: a division goes before a difference. Put the difference into parentheses.",
            ),
            (lambda z, y: (engine.sigmoid(z) - y) / 3, "There are not always three questions: `len(z)` tells."),
            (
                lambda z, y: (y - engine.sigmoid(z)) / len(z),
                "The chance minus the answer, not the other way round.",
            ),
            (lambda z, y: (z - y) / len(z), "A score is no chance yet: sigmoid makes it one."),
            (lambda z, y: (engine.sigmoid(z) - y).mean(), "Each score has a gradient of its own: no mean over them."),
        ),
        hints=(
            "The chance of a yes is engine.sigmoid(z).",
            "Subtract the right answers, and divide by how many questions there are: len(z).",
            "return (... - y) / len(z)",
        ),
    ),
)
