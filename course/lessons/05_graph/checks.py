"""Lesson 05, the graph: the exercises' trials, oracles, usual mistakes and hints."""

from unittest import mock

import numpy as np

import engine
from course.judging.words import Exercise, calls, calls_itself, changed, knob, mistakes, properties
from engine.core.graph import Node


def knobs(*values):
    return list(map(knob, values))


ENOUGH = 5000  # visits; where paths part and meet 20 times, a walk along every path makes a million of them


class TooOften(RuntimeError):
    pass


# 5.2


def count(node):
    seen, layer = set(), {node}
    while layer:
        seen |= layer
        layer = {parent for here in layer for parent, _ in here.next_functions if parent is not None} - seen
    return len(seen)


def doubled(times):
    """Make a graph with few nodes and very many paths."""
    (x,) = knobs(1.0)
    for _ in range(times):
        x = x + x
    return x


def counted_soon(count, node):
    """Count, and stop whoever goes along every path."""
    looks, edges = 0, Node.next_functions

    def looking(self):
        nonlocal looks
        looks += 1
        if looks > ENOUGH:
            raise TooOften(f"{ENOUGH} looks at next_functions, where there are 41 nodes. It was stopped.")
        return edges.fget(self)

    with mock.patch.object(Node, "next_functions", property(looking)):
        return count(node)


def count_trial(count):
    a, b = knobs(2.0, 3.0)
    yield "count_nodes(c.grad_fn), where c = a * b", count, (a * b).grad_fn
    yield "count_nodes(d.grad_fn), where d = a * b + a", count, (a * b + a).grad_fn
    yield "count_nodes(d.grad_fn), where d = a + a * b", count, (a + a * b).grad_fn
    yield "count_nodes(h.grad_fn), where h = (3 * b).exp(), and 3 is a plain number", count, (3 * b).exp().grad_fn
    yield "count_nodes(x.grad_fn), where x = x + x was done 8 times", count, doubled(8).grad_fn
    yield "count_nodes(x.grad_fn), where x = x + x was done 40 times", counted_soon, count, doubled(40).grad_fn
    (p,) = knobs(0.5)
    q = p.tanh()
    yield "", count, (q * q / (q + p) + 1).grad_fn
    yield "", count, doubled(11).grad_fn


def each_path(node):
    return 1 + sum(each_path(parent) for parent, _ in node.next_functions if parent is not None)


def counting(node):
    seen, waiting = set(), [node]
    while waiting:
        here = waiting.pop()
        if here is not None and here not in seen:
            seen.add(here)
            waiting += [parent for parent, _ in here.next_functions]
    return len(seen)


nodes_of = changed(counting, "len(seen)", "seen")  # for answers that count something else


def told(result):
    """Count the nodes, and return something else."""
    return changed(counting, "len(seen)", result)


def along_all_paths(add):
    return changed(counting, " and here not in seen", "", "seen.add(here)", add)


def each_end(node):
    return sum(each_end(parent) for parent, _ in node.next_functions if parent is not None) or 1


def longest_path(node):
    longest = {}
    for here in sorted(nodes_of(node), key=lambda one: -one.time):  # the oldest first
        longest[here] = 1 + max((longest[parent] for parent, _ in here.next_functions if parent), default=0)
    return longest[node]


def longest_path_of_all(node):
    return 1 + max((longest_path_of_all(parent) for parent, _ in node.next_functions if parent), default=0)


def the_first_edge_alone(node):
    length = 1
    while node.next_functions and (node := node.next_functions[0][0]) is not None:
        length += 1
    return length


def with_a_set_for_each_call(node):
    seen = set()
    if node not in seen:
        seen.add(node)
        for parent, _ in node.next_functions:
            if parent is not None:
                with_a_set_for_each_call(parent)
    return len(seen)


# 5.3


def division(arriving, x, y):
    x, y = (value.detach().requires_grad_() for value in (x, y))
    first, second = engine.autograd.grad(x / y, (x, y), arriving)
    return first, second


DIFFERENTIATE = (
    "grad",
    "grad_fn",
    "backward",
    "vjp",
    "jvp",
    "jacrev",
    "jacfwd",
    "jacobian",
    "grad_and_value",
    "linearize",
)


def division_trial(backward):
    arriving, x, y = map(engine.tensor, (1.0, 6.0, 2.0))
    yield "arriving = 1, x = 6, y = 2", backward, arriving, x, y
    arriving, x, y = map(engine.tensor, ([10.0, 2.0, 3.0], [1.0, 5.0, -4.0], [4.0, 2.0, 0.5]))
    yield "three at once: arriving = [10, 2, 3], x = [1, 5, -4], y = [4, 2, 0.5]", backward, arriving, x, y
    arriving, x, y = map(engine.tensor, ([10.0, -2.0, 3.0], [1.0, 5.0, -3.0], [-4.0, -0.5, -2.0]))
    yield "three at once: arriving = [10, -2, 3], x = [1, 5, -3], y = [-4, -0.5, -2]", backward, arriving, x, y
    yield "", backward, *map(engine.tensor, ([-1.0, 0.5], [3.0, -2.0], [0.5, 5.0]))


# 5.4


def gradients_at(go_back, node, leaves):
    found = {}
    with engine.no_grad():
        go_back(node, engine.tensor(1.0), found)
    here = [found.get(leaf, "nothing") for leaf in leaves]
    more = {type(key).__name__ for key in set(found) - set(leaves)}
    return here + [f"and besides, keys of type {name}" for name in sorted(more)]


def path_by_path(node, arriving, found):
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


def go_back(node, arriving, found):
    waiting = [(node, arriving)]
    while waiting:
        node, arriving = waiting.pop()
        if type(node).__name__ == "AccumulateGrad":
            found[node.variable] = found.get(node.variable, 0.0) + arriving
            continue
        for parent, part in reversed(edges_of(node, arriving)):
            waiting.append((parent, part))


SUM, EDGES = "found.get(node.variable, 0.0) + arriving", "edges_of(node, arriving)"


def ones_plus(node, arriving, found):
    if type(node).__name__ == "AccumulateGrad":
        found[node.variable] = found.get(node.variable, 0.0) + arriving
        return
    passed_on = [part + arriving for part in node(engine.tensor(1.0)) if part is not None]
    for (parent, _), part in zip(node.next_functions, passed_on, strict=True):
        if parent is not None:
            ones_plus(parent, part, found)


def back_trial(go_back):
    a, b = knobs(2.0, 3.0)
    yield "a * b with a = 2, b = 3: found at a and at b", gradients_at, go_back, (a * b).grad_fn, [a, b]
    yield "a * b + a with a = 2, b = 3: found at a and at b", gradients_at, go_back, (a * b + a).grad_fn, [a, b]
    yield "a * a * b with a = 2, b = 3: found at a and at b", gradients_at, go_back, (a * a * b).grad_fn, [a, b]
    a, b = knobs([2.0, 4.0], [3.0, 5.0])
    total = (2 * (a + b + a)).sum()
    yield "(2 * (a + b + a)).sum() with a = [2, 4], b = [3, 5]", gradients_at, go_back, total.grad_fn, [a, b]
    p, q = knobs(0.5, 1.5)
    yield "", gradients_at, go_back, ((p * q).tanh() / q + p.exp() * p).grad_fn, [p, q]


# 5.5


def visited_once(each_node_once, root, leaves):
    """Return what it found at the leaves, and whether no node was asked twice."""
    asked = 0
    call = Node.__call__

    def counting(node, *arriving):
        nonlocal asked
        asked += 1
        if asked > ENOUGH:
            raise TooOften(f"{asked - 1} visits, where there are {count(root)} nodes. It was stopped.")
        return call(node, *arriving)

    with mock.patch.object(Node, "__call__", counting), engine.no_grad():
        found = each_node_once(root)
    here = found
    if isinstance(found, dict):
        here = [found.get(leaf, instead(found)) for leaf in leaves]
        if any(leaf in found for leaf in leaves):
            here += [
                f"besides, a key of type {name}" for name in sorted({type(k).__name__ for k in {*found} - {*leaves}})
            ]
    return {"found": here, "each node asked once": asked <= count(root) - len(leaves)}


def instead(found):
    """Say what is found where a leaf is not in a dict."""
    kinds = sorted({type(key).__name__ for key in found})
    return f"nothing: the keys are of type {' and '.join(kinds)}" if kinds else "nothing: the dict is empty"


def sums(times, other_way=False):
    """Numbers, each the sum of the two before: one that is met early has to wait."""
    x, y = leaves = knobs(1.0, 1.0)
    for _ in range(times):
        x, y = y, (y + x if other_way else x + y)
    return y.grad_fn, leaves


def once_trial(each_node_once):
    a, b = knobs(2.0, 3.0)
    yield "a * b + a, with a = 2, b = 3: found at a and at b", visited_once, each_node_once, (a * b + a).grad_fn, [a, b]
    a, b = knobs(2.0, 3.0)
    h = 3 * a * b
    shown = "h * h + h, where h = 3 * a * b: found at a and at b"
    yield shown, visited_once, each_node_once, (h * h + h).grad_fn, [a, b]
    for other_way, line in ((False, "x, y = y, x + y"), (True, "x, y = y, y + x")):
        root, leaves = sums(10, other_way)
        yield f"{line}, done 10 times: found at x and y", visited_once, each_node_once, root, leaves
    (a,) = knobs(2.0)
    h = (3 * a).exp()
    yield "h * a, where h = (3 * a).exp(): found at a", visited_once, each_node_once, (h * a).grad_fn, [a]
    a, b = knobs([2.0, 4.0], [3.0, 5.0])
    total = (2 * (a + b + a)).sum()
    shown = "(2 * (a + b + a)).sum(), with a = [2, 4], b = [3, 5]: found at a and at b"
    yield shown, visited_once, each_node_once, total.grad_fn, [a, b]
    for times in (10, 20):
        x = y = knobs(1.0)[0]
        for _ in range(times):
            y = y + y
        yield f"y = y + y, done {times} times: found at the leaf", visited_once, each_node_once, y.grad_fn, [x]
    p, q = knobs(0.5, 1.5)
    h = (p * q).tanh()
    yield "", visited_once, each_node_once, (h / q + h * h + p.exp() * p).grad_fn, [p, q]
    root, leaves = sums(24)
    yield "", visited_once, each_node_once, root, leaves


def ends_of(root):
    return [node for node in nodes_of(root) if hasattr(node, "variable")]


def edges_of(node, arriving):
    """Return each parent of a node with what the node passes on to it."""
    passed_on = node(arriving)
    passed_on = passed_on if isinstance(passed_on, tuple) else (passed_on,)
    return [(to, part) for (to, _), part in zip(node.next_functions, passed_on, strict=True) if to is not None]


def when_all_is_there(root):
    """By counting first how many edges lead to each node, as PyTorch does."""
    missing, todo = {root: 0}, [root]
    while todo:
        for parent, _ in todo.pop().next_functions:
            if parent is not None:
                if parent not in missing:
                    todo.append(parent)
                missing[parent] = missing.get(parent, 0) + 1
    arrived, ready, found = {root: engine.tensor(1.0)}, [root], {}
    while ready:
        node = ready.pop()
        if hasattr(node, "variable"):
            found[node.variable] = arrived[node]
            continue
        for parent, part in edges_of(node, arrived[node]):
            arrived[parent] = arrived.get(parent, 0.0) + part
            missing[parent] -= 1
            if not missing[parent]:
                ready.append(parent)
    return found


def each_node_once(root):
    waiting, found = {root: engine.tensor(1.0)}, {}
    while waiting:
        node = min(waiting, key=lambda node: node.time)
        arriving = waiting.pop(node)
        if hasattr(node, "variable"):
            found[node.variable] = found.get(node.variable, 0.0) + arriving
            continue
        for parent, part in edges_of(node, arriving):
            waiting[parent] = waiting.get(parent, 0.0) + part
    return found


NEWEST, AT_A_LEAF = "min(waiting, key=lambda node: node.time)", "found.get(node.variable, 0.0) + arriving"


def waits(put):
    """Let what arrives at a node wait in another manner."""
    return changed(each_node_once, "waiting.get(parent, 0.0) + part", put)


def asked_with_none(node, arriving):
    passed_on = node(arriving)
    passed_on = passed_on if isinstance(passed_on, tuple) else (passed_on,)
    return [(to, part) for (to, _), part in zip(node.next_functions, passed_on, strict=False)]


def along_every_path(root):
    found = {}
    path_by_path(root, engine.tensor(1.0), found)
    return found


def only_the_first_visit(root):
    seen, found = set(), {}

    def go(node, arriving):
        if hasattr(node, "variable"):
            found[node.variable] = found.get(node.variable, 0.0) + arriving
        elif node not in seen:
            seen.add(node)
            for parent, part in edges_of(node, arriving):
                go(parent, part)

    go(root, engine.tensor(1.0))
    return found


def never_taken_out(root):
    while True:
        root(engine.tensor(1.0))


def by_the_ends(root):
    ends, nodes = {}, [root]
    for node in nodes:  # which grow meanwhile
        if hasattr(node, "variable"):
            ends[node.variable] = node
        else:
            nodes += [parent for parent, _ in node.next_functions if parent is not None and parent not in nodes]
    return {ends[leaf]: part for leaf, part in when_all_is_there(root).items()}


THE_NAME = "Two nodes may have the same name. Remember the nodes themselves."
ENDS_ALONE = "You counted the ends alone. The nodes on the path to them count too."
IN_PLACE = (
    "`+=` changes the tensor that came first. An addition passes the same numbers on to both of its inputs, so they "
    "change"
    " at the other leaf, too. Make a new tensor: `... = ... + ...`."
)
A_TENSOR_ALONE = (
    "A node with one input gives a tensor alone, and no tuple. Make a tuple of it first, as `my_backward` does."
)
TOO_EARLY = "A node passes on what it has before the rest has come. Of those that wait, take the newest."
MEET = "You multiplied where paths meet. Multiply along a path, and add where paths meet."

EXERCISES = (
    Exercise(
        key="05.1",
        points=1,
        answer=(7.0, 2.0),
        wrong=mistakes(
            (2.0, 7.0),
            "Those are the right two numbers, in the opposite order: first a, then b.",
            (10.0, 10.0),
            "10 is the value of e. The question is how far e moves when a moves, and when b moves.",
            (10.0, 5.0),
            "Those are the values of e and of the sum, from the way forward. The question is what arrives at a and "
            "at b on the way back.",
            (2.0, 3.0),
            "Those are the values of a and b. The question is what arrives there on the way back.",
            (1.0, 1.0),
            "1 is what backward() begins with, at the root. Go on from there.",
        ),
        entries={
            1: (
                (5.0, "Two paths lead from the root to a. You followed the one straight from the multiplication."),
                (2.0, "Two paths lead from the root to a. You followed the one through the addition."),
                (10.0, MEET),
                (4.0, "Straight from the multiplication comes its other input. That is the sum, and not a."),
                (3.0, "Along the path through the addition comes 2 times 1. And another path leads to a."),
                (6.0, "5 comes straight from the multiplication. But along the other path comes more than 1."),
                "Two paths lead from the root to a. Multiply along each of them, and add the two.",
            ),
            2: (
                (3.0, "At b arrives what the multiplication passes on to the sum, which is the other input, a."),
                (5.0, "5 is what the multiplication passes on to a. To the sum it passes on its other input."),
                (6.0, "The addition passes on what arrives there, times 1. It does not multiply by b."),
                (1.0, "The addition passes on what arrives there. That is no longer the 1 from the root."),
                "One path leads to b, through the addition. What does the multiplication pass on to it?",
            ),
        },
        hints=(
            "The multiplication has two inputs: the sum, which is 5, and a, which is 2. What does it pass on to each?",
            "It passes 2 on to the sum and 5 on to a. The addition passes what arrives there on to both of its inputs.",
            "At a: 5 straight from the multiplication, and 2 through the addition. Add them. At b: only one path.",
        ),
        understood="Along each path slopes are multiplied, and where two paths meet, as at a, they are added.",
    ),
    Exercise(
        key="05.2",
        points=2,
        answer=count,
        trial=count_trial,
        wrong=mistakes(
            each_path,
            "You count a node once for each path that leads to it. Remember the nodes that you have seen.",
            changed(counting, "seen.add(here)", "here.next_functions and seen.add(here)"),
            "The ends of the paths, AccumulateGrad, are nodes too.",
            told("len(seen) - 1"),
            "The node that you begin with counts too.",
            changed(
                counting, "here is not None and ", "", "here.next_functions", "getattr(here, 'next_functions', ())"
            ),
            "For an input that takes no notes, next_functions has None. You counted it as a node.",
            changed(counting, "here is not None and ", ""),
            "For an input that takes no notes, next_functions has None, which points to nothing. Leave it out, as"
            " `tree` does.",
            along_all_paths("seen.add(here)"),
            "The numbers are right. But you still walk along every path, and there are too many of them: do not go"
            " on from a node that you have seen.",
            told("len({type(here).__name__ for here in seen})"),
            THE_NAME,
            changed(counting, "here not in", "type(here).__name__ not in", "add(here)", "add(type(here).__name__)"),
            f"You stop at a node whose *name* you have seen. {THE_NAME}",
            along_all_paths("seen.add(type(here).__name__)"),
            f"You collect names, along every path. {THE_NAME}",
            told("sum(parent is not None for here in seen for parent, _ in here.next_functions)"),
            "You counted the edges. A node to which two edges lead is still one node.",
            told("sum(not here.next_functions for here in seen)"),
            ENDS_ALONE,
            each_end,
            f"You count an end once for each path to it. {ENDS_ALONE}",
            told("1 + sum(len(here.next_functions) for here in seen)"),
            "You count before you look whether you have seen the node (or None). Count only what is new.",
            along_all_paths("here.next_functions or seen.add(here)"),
            "You walk along every path, and count where they end. The other nodes count too.",
            longest_path,
            "That is how many nodes the longest path has. Those on the other paths count too.",
            longest_path_of_all,
            "You take the longest path of all, and count its nodes. Those on the other paths count too.",
            the_first_edge_alone,
            "You followed one edge of each node. Each entry of next_functions leads further.",
            lambda node: 1 + len({parent for parent, _ in node.next_functions if parent is not None}),
            "You counted the node and its neighbours. Those point further back: go on to the ends.",
            told("len(seen) + 1"),
            "One too many: the node that you begin with is in your set already.",
            lambda node: 1 + len(node.next_functions),
            "You counted the node and those it points to. They point further back: go on to the ends.",
        ),
        properties=properties(
            with_a_set_for_each_call,
            lambda did: not (did.result == 1 and "c = a * b" in did.shown and calls_itself(did.source)),
            "Each call begins with a set of its own, so none knows what the others have seen. Let all of them use "
            "one set: hand it on as an argument, or walk in a loop with a list of nodes that wait.",
        ),
        hints=(
            "Walk the graph as `tree` does. What must you remember, so that no node is counted twice?",
            "Keep a set of the nodes that you have seen, and a list of those that still wait. Begin with `node`.",
            "while waiting:\n"
            "    here = waiting.pop()\n"
            "    if here is not None and here not in seen:\n"
            "        ...  # it is seen now; and its next_functions, pairs, are waiting\n"
            "return len(seen)",
        ),
        understood="A graph may have few nodes and very many paths, so remember which nodes you have seen.",
    ),
    Exercise(
        key="05.3",
        points=1,
        answer=division,
        trial=division_trial,
        wrong=mistakes(
            lambda g, x, y: (g / y, g * x / y**2),
            "A larger y makes x / y smaller: there is a minus missing.",
            lambda g, x, y: (1 / y, -x / y**2),
            "Those are the node's own slopes. Multiply each by what arrives.",
            lambda g, x, y: (g / y, -x / y**2),
            "For y, too, multiply by what arrives.",
            lambda g, x, y: (1 / y, -g * x / y**2),
            "For x, too, multiply by what arrives.",
            lambda g, x, y: (-g * x / y**2, g / y),
            "The two are in the opposite order: first for x, then for y.",
            lambda g, x, y: (g / y, -g * x / y),
            "For y: ask the node with y = 1, 2 and 3. What it passes on falls faster than 1 / y does.",
            lambda g, x, y: (g / y, -g / y**2),
            "For y: does it matter how large x is? Ask the node with x = 6, and with x = 12.",
            lambda g, x, y: (g / y, -g * x / (2 * y)),
            "For y: at y = 2, 2 * y and y**2 are the same. Ask the node with y = 4.",
            lambda g, x, y: (g * 0.5, g * -1.5),
            "Right at x = 6 and y = 2, and nowhere else. Change x alone, and then y alone, and ask again.",
            lambda g, x, y: (g / y.abs(), -g * x / y**2),
            "For x: the sign of y counts. Ask the node with y = 2, and with y = -2.",
            lambda g, x, y: (g / y, -g * x / (y * y.abs())),
            "For y: does the sign of y count? Ask the node with y = 2, and with y = -2.",
            lambda g, x, y: (g * y, g * x),
            "That is the rule of the multiplication.",
            lambda g, x, y: (g / y, -g / x),
            "For y: ask the node with y = 1, 2 and 3, and x = 6. What do you see?",
        ),
        properties=properties(
            lambda arriving, x, y: (x.detach().requires_grad_() / y.detach().requires_grad_()).grad_fn(arriving),
            lambda did: not calls(did.source, *DIFFERENTIATE),
            "The numbers are right, but they come from a node. Write the rule itself, by arithmetic.",
            lambda g, x, y: (g / y**2, -g * x / y**2),
            lambda did: np.allclose(did.result[0], did.expected[0]),
            "For x: ask the node with y = 1, 2 and 4, with another x, and with -2 arriving. What does each change?",
            lambda g, x, y: (g / y, -g * y / x**2),
            lambda did: np.allclose(did.result[1], did.expected[1]),
            "For y: ask the node with x = 6, 12 and 18, then with y = 1, 2 and 4, and with -2 arriving. What does"
            " each change?",
        ),
        hints=(
            "First vary `arriving`: what is passed on is proportional to it. Then vary x alone, and then y alone.",
            "To x the node passes on what arrives, divided by y. For y: it grows with x, it falls with y, and it falls "
            "to a quarter where y is doubled. And it has a sign.",
            "return arriving / y, -arriving * ... / ...",
        ),
        understood="A rule is the operation's own slope, times what arrives; it needs only the operation's own inputs.",
    ),
    Exercise(
        key="05.4",
        points=2,
        answer=path_by_path,
        trial=back_trial,
        wrong=mistakes(
            changed(go_back, SUM, "arriving"),
            "Along a path it is right now. But what arrives at a leaf takes the place of what arrived before. Add "
            "where paths meet.",
            changed(go_back, EDGES, "edges_of(node, engine.tensor(1.0))"),
            "Where paths meet it is right now. But every node is asked what it passes on if 1 arrives, and "
            "something else may have arrived.",
            changed(go_back, "0.0) + arriving", "arriving)"),
            "Only what arrives first at a leaf is kept. Add where paths meet.",
            changed(go_back, "= found.get(node.variable, 0.0) +", "+="),
            "Adding is right. But the first time, there is nothing yet to add to: `found.get(leaf, 0.0)`.",
            changed(go_back, "node.variable, 0.0", "node.variable"),
            "The first time, `found.get(leaf)` is None, and nothing can be added to it: `found.get(leaf, 0.0)`.",
            changed(go_back, "found[node.variable] =", "found = dict(found); found[node.variable] ="),
            "In the dict that was given, there is nothing for a and b. It is filled in place: `found = ...` makes"
            " another one.",
            changed(go_back, "found[node.variable]", "found[node]", "found.get(node.variable,", "found.get(node,"),
            "The keys are the AccumulateGrad nodes. The key is the leaf itself, `node.variable`.",
            changed(go_back, "waiting.pop()", "waiting.pop(); found[node] = found.get(node, 0.0) + arriving"),
            "`found` is for the leaves alone, and here it has an entry for each node.",
            changed(go_back, "0.0) +", "1.0) *"),
            MEET,
            changed(go_back, SUM, "found[node.variable].add_(arriving) if node.variable in found else arriving"),
            IN_PLACE,
            changed(go_back, SUM, "sum(found.values()) + arriving"),
            "You add up what all the leaves have got. Each leaf has a sum of its own: `found.get(leaf, 0.0)`.",
            changed(go_back, EDGES, "edges_of(node, arriving)[:1]"),
            "You `return` inside the loop, so the second input of a node is never visited.",
            changed(go_back, "continue", "node(arriving); continue"),
            "At a leaf you go on, and ask its AccumulateGrad, which adds to .grad. The journey ends there: `return`.",
            changed(go_back, "0.0", "1.0"),
            "Each sum begins with 1. Before anything has arrived, there is 0.",
            changed(go_back, "0.0", "arriving"),
            "What arrives first is counted twice. Before that, there is 0.",
            changed(
                go_back,
                f"found[node.variable] = {SUM}",
                "leaf = node.variable; leaf.grad = arriving if leaf.grad is None else leaf.grad + arriving",
            ),
            "What arrives is asked for in `found`. Leave the .grad of the leaves alone.",
            changed(go_back, "(parent, part)", "(parent, part * arriving)"),
            "A node that is asked with what arrives has multiplied already. You multiply by it once more.",
            changed(go_back, "(parent, part)", "(parent, part + arriving)"),
            "Along a path you multiply. You add what arrives to what the node makes of it.",
            ones_plus,
            "Along a path you multiply. You add what arrives to the node's own slope.",
            changed(go_back, EDGES, "[(to, part + arriving) for to, part in edges_of(node, engine.tensor(1.0))]"),
            "Along a path you multiply. You add what arrives to each of the node's own slopes.",
            changed(go_back, "(parent, part)", "(parent, arriving)"),
            "You hand on what has arrived. The parents get what the node makes of it: `part`.",
        ),
        hints=(
            "In a * b + a, two paths lead to a. What happens to `found` when the second one arrives?",
            "In a * a * b, 3 arrives at the node of a * a. What is this node asked?",
            "`found.get(leaf, 0.0)` is what is there already, or 0: add to it. And a node is asked with `arriving`.",
        ),
        understood="A node multiplies what arrives by its own slopes, and a leaf adds up what comes along its paths.",
    ),
    Exercise(
        key="05.5",
        points=3,
        answer=when_all_is_there,
        trial=once_trial,
        wrong=mistakes(
            along_every_path,
            "You visit a node once for each path that leads to it. Let what arrives wait at the node, and pass on "
            "the sum once.",
            only_the_first_visit,
            "A node that you have seen is passed over, and with it what arrives there the second time. Let it wait "
            "until everything is there.",
            waits("part"),
            "What arrives at a node takes the place of what waits there. Add where paths meet.",
            waits("waiting.get(parent, 1.0) * part"),
            MEET,
            changed(each_node_once, "min(", "max("),
            TOO_EARLY,
            changed(each_node_once, "min(", "max(", AT_A_LEAF, "arriving"),
            f"{TOO_EARLY} And a leaf must not keep only what comes last.",
            changed(each_node_once, NEWEST, "list(waiting)[-1]", AT_A_LEAF, "arriving"),
            f"{TOO_EARLY} The one that was put in last need not be that.",
            changed(each_node_once, NEWEST, "next(iter(waiting))", AT_A_LEAF, "arriving"),
            "You take the node that has waited longest, and a leaf keeps what comes last. Which node gets nothing"
            " more?",
            waits("waiting.get(parent, part)"),
            "Only what arrives first at a node is kept. Add where paths meet.",
            waits("waiting[parent].add_(part) if parent in waiting else part"),
            IN_PLACE,
            changed(each_node_once, "continue", "node.variable.grad = arriving; continue"),
            "At a leaf you go on, and ask its AccumulateGrad, which adds to .grad. The journey ends there.",
            count,
            "That is how many visits it takes. Let each node wait with what has arrived there, and ask it.",
            lambda root: {node.variable: engine.tensor(1.0) for node in ends_of(root)},
            "1 arrives at the root alone. `waiting` has to know what arrives at each of the others.",
            changed(each_node_once, "waiting.pop(node)", "found[node] = waiting.pop(node)"),
            "The result is for the leaves alone, and here it has an entry for each node.",
            changed(each_node_once, "continue", "return found"),
            "You return at the first leaf. Go on while anything waits.",
            never_taken_out,
            "The node stays in `waiting`, and is asked again and again. `waiting.pop(node)` takes it out.",
            changed(each_node_once, EDGES, "edges_of(node, engine.tensor(1.0))"),
            "Every node is asked what it passes on if 1 arrives. Ask it with what has arrived there.",
            changed(each_node_once, "engine.tensor(1.0)", "engine.tensor(0.0)"),
            "You begin with 0, and 0 times anything is 0. At the root, 1 arrives.",
            changed(
                each_node_once,
                EDGES,
                "[(to, part) for (to, _), part in zip(node.next_functions, node(arriving)) if to is not None]",
            ),
            A_TENSOR_ALONE,
            changed(each_node_once, "edges_of", asked_with_none.__name__),
            "For an input that takes no notes, next_functions has None, and nothing is passed on. Leave it out, "
            "as `my_backward`"
            " does.",
            changed(each_node_once, "return found", "return waiting"),
            "You return the dict of those that wait, and at the end nobody does. What the leaves got belongs in a"
            " dict of its own.",
            changed(each_node_once, "return found", "return {leaf.item(): part for leaf, part in found.items()}"),
            "The keys are the leaves' numbers. Two leaves may hold the same number: the key is the tensor itself.",
            changed(each_node_once, NEWEST, "next(iter(waiting))"),
            "You take the node that has waited longest. More may still come to it. Which node gets nothing more?",
            lambda root: {node.variable: node.variable.grad for node in ends_of(root)},
            "Nothing has arrived in the `.grad` of a leaf, since nobody has called backward(). Find what arrives "
            "there yourself, by asking the nodes.",
            lambda root: {node.variable: 1.0 for node in ends_of(root)},
            "You found the leaves. But each of them has a plain 1, whatever the nodes pass on: ask each node with "
            "what has arrived there.",
            by_the_ends,
            "The keys are the AccumulateGrad nodes. The leaf that belongs to one is `node.variable`.",
        ),
        hints=(
            "Write `walk` down first. Which line puts nodes into `waiting`, and what has to be put in with them?",
            "`waiting = {root: engine.tensor(1.0)}` to begin with, `arriving = waiting.pop(node)` to take one out. If "
            "the node is an AccumulateGrad, the result gets an entry; else ask it, as `my_backward` does.",
            "for (parent, _), part in zip(node.next_functions, passed_on):\n"
            "    if parent is not None:\n"
            "        waiting[parent] = ...  # what waits there already, or 0.0, and the part that comes now",
        ),
        understood="This is the engine's own backward pass: everything waits, is added up, and is passed on once.",
    ),
)
