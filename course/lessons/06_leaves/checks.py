"""Lesson 06, leaves: the exercises' trials, oracles, usual mistakes and hints."""

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import engine
from course.judging.words import Exercise, calls, changed, knob, mistakes, properties

# 6.2


def made(small_knobs: Callable, n: int, dtype: Any, seed: int = 0) -> Any:
    engine.manual_seed(seed)
    knobs = small_knobs(n, dtype)
    if not isinstance(knobs, engine.Tensor):
        return knobs
    about = {"type": str(knobs.dtype), "is_leaf": knobs.is_leaf, "requires_grad": knobs.requires_grad}
    return {"numbers": knobs.detach()} | about


def knobs_trial(small_knobs: Callable) -> Iterator[tuple]:
    what = "the numbers, their type, whether it is a leaf, whether it takes notes"
    for n, dtype in ((3, "float32"), (2, "float64")):
        yield f"small_knobs({n}, engine.{dtype}): {what}", made, small_knobs, n, getattr(engine, dtype)
    yield "engine.manual_seed(7), small_knobs(2, engine.float32)", made, small_knobs, 2, engine.float32, 7
    # From 16 numbers on, `randn` draws in another order, and other ones in float64.
    yield "small_knobs(20, engine.float64)", made, small_knobs, 20, engine.float64
    yield "", made, small_knobs, 5, engine.float64, 3
    yield "", made, small_knobs, 33, engine.float64, 4
    yield "", made, small_knobs, 1, engine.float32


def in_place(n: int, dtype: Any) -> engine.Tensor:
    knobs = engine.randn(n).to(dtype).requires_grad_()
    with engine.no_grad():
        knobs *= 0.1
    return knobs


# 6.3


def squared(x: engine.Tensor) -> engine.Tensor:
    return x * x


def doubled_plus_one(x: engine.Tensor) -> engine.Tensor:
    return 2 * x + 1


def total(x: engine.Tensor) -> engine.Tensor:
    return x.sum()


def through(slopes: Callable, start: Any, functions: list[Callable]) -> Any:
    found = slopes(engine.tensor(start, requires_grad=True), functions)
    if not isinstance(found, list | tuple):
        return found
    return [engine.as_tensor(slope).detach() if isinstance(slope, engine.Tensor | float | int) else slope
            for slope in found]  # fmt: skip


def slopes_trial(slopes: Callable) -> Iterator[tuple]:
    yield "x = 3, functions = [x * x, 2 * x + 1]", through, slopes, 3.0, [squared, doubled_plus_one]
    yield "x = 1, functions = [2 * x + 1, x * x, x * x]", through, slopes, 1.0, [doubled_plus_one, squared, squared]
    shown = "x = [1., 2.], functions = [2 * x + 1, x * x, x.sum()]"
    yield shown, through, slopes, [1.0, 2.0], [doubled_plus_one, squared, total]
    yield "", through, slopes, [0.5, -1.0, 2.0], [squared, squared, total, doubled_plus_one]
    yield "", through, slopes, 1.5, [engine.exp]


def kept(x: engine.Tensor, functions: list[Callable]) -> list[Any]:
    results = []
    for function in functions:
        x = function(x)
        x.retain_grad()
        results.append(x)
    x.backward()
    return [result.grad for result in results]


def each_alone(x: engine.Tensor, functions: list[Callable]) -> list[Any]:
    """Return the slope of each function by its own input."""
    slopes = []
    for function in functions:
        x = x.detach().requires_grad_()
        y = function(x)
        slopes.append(engine.autograd.grad(y.sum(), x)[0])
        x = y
    return slopes


def one_by_one(x: engine.Tensor, functions: list[Callable], retain_graph: bool = True) -> list[Any]:
    results = [x := function(x) for function in functions]
    return [engine.autograd.grad(x, result, retain_graph=retain_graph) for result in results]


def each_by_x(x: engine.Tensor, functions: list[Callable]) -> list[Any]:
    start, slopes = x, []
    for function in functions:
        x = function(x)
        slopes.append(engine.autograd.grad(x.sum(), start, retain_graph=True)[0])
    return slopes


def results_of_the_last(x: engine.Tensor, functions: list[Callable]) -> list[Any]:
    results = [x := function(x) for function in functions]
    return list(engine.autograd.grad(results, x))


# 6.4


def at_a_result(limit: Callable, weights: list[float], most: float) -> engine.Tensor:
    x = engine.zeros(len(weights)).requires_grad_()
    h = 2 * x
    limit(h, most)
    (h * engine.tensor(weights)).sum().backward()
    return x.grad


def at_a_knob(limit: Callable, weights: list[float], most: float, times: int = 1) -> engine.Tensor:
    x = engine.zeros(len(weights)).requires_grad_()
    limit(x, most)
    for _ in range(times):
        (x * engine.tensor(weights)).sum().backward()
    return x.grad


def once_alone(h: engine.Tensor, most: float) -> None:
    def limited(arriving: engine.Tensor) -> engine.Tensor:
        handle.remove()
        return arriving.clamp(-most, most)

    handle = h.register_hook(limited)


def beside_another(limit: Callable, most: float) -> list[Any]:
    x, y = engine.zeros(2).requires_grad_(), engine.zeros(2).requires_grad_()
    other = 2 * y
    h = 2 * x  # the newer one: its hook is called first
    limit(h, most)
    (10 * (h + other)).sum().backward()
    return [x.grad, y.grad]


def limit_trial(limit: Callable) -> Iterator[tuple]:
    shown = "h = 2 * x, limit(h, 1.0), loss = (h * [0.5, 3, -4]).sum(): x.grad"
    yield shown, at_a_result, limit, [0.5, 3.0, -4.0], 1.0
    yield "limit(x, 2.5), loss = (x * [1, -1, -7]).sum(): x.grad", at_a_knob, limit, [1.0, -1.0, -7.0], 2.5
    shown = "other = 2 * y, h = 2 * x, limit(h, 1.0), loss = (10 * (h + other)).sum(): x.grad and y.grad"
    yield shown, beside_another, limit, 1.0
    shown = "limit(x, 1.0), and (x * [0.5, -4]).sum().backward() three times: x.grad"
    yield shown, at_a_knob, limit, [0.5, -4.0], 1.0, 3
    yield "", at_a_result, limit, [-0.1, 0.3, 5.0, -0.7], 0.25
    yield "", at_a_knob, limit, [12.0, -3.0], 4.0
    yield "", beside_another, limit, 3.0


def hook(change: Callable[[engine.Tensor, float], Any]) -> Callable:
    """`limit`, with this as its hook."""

    def limit(h: engine.Tensor, most: float) -> None:
        h.register_hook(lambda arriving: change(arriving, most))

    return limit


def too_early(h: engine.Tensor, most: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        h.grad = h.grad.clamp(-most, most)


def written_over(arriving: engine.Tensor, most: float) -> None:
    arriving.clamp_(-most, most)


def without_a_hook(source: str) -> bool:
    return bool(source) and not calls(source, "register_hook", "register_post_accumulate_grad_hook")


def with_the_numbers(h: engine.Tensor, most: float) -> None:
    with engine.no_grad():
        h.clamp_(-most, most)


# 6.5


NAMELESS = "another tensor"


def names_found(knobs_of: Callable, y: engine.Tensor, names: str, tensors: list[engine.Tensor]) -> Any:
    """Return the names of what was found, sorted; leave what is not a tensor as it is."""
    found = knobs_of(y)
    if found is None or isinstance(found, engine.Tensor):
        return found
    of = {id(t): name for name, t in zip(names, tensors, strict=True)}
    return sorted(of.get(id(t), NAMELESS) if isinstance(t, engine.Tensor) else type(t).__name__ for t in found)


def doubled(x: engine.Tensor, times: int) -> engine.Tensor:
    for _ in range(times):
        x = x + x
    return x


def knobs(n: int) -> list[engine.Tensor]:
    return [knob(float(k + 1)) for k in range(n)]


def find_trial(knobs_of: Callable) -> Iterator[tuple]:
    w, b = knobs(2)
    x = engine.tensor(3.0)
    yield "y = w * x + b, x is data", names_found, knobs_of, w * x + b, "wbx", [w, b, x]
    w, b = knobs(2)
    h = w * b
    yield "h = w * b, y = h * h + w", names_found, knobs_of, h * h + w, "wbh", [w, b, h]
    u, v = knob(2.0), knob(2.0)
    yield "y = u * v, and both are 2", names_found, knobs_of, u * v, "uv", [u, v]
    w, asked = knobs(2)  # `asked` has no name for the learner: what they call b is the result
    b = asked * 0.1
    shown = "y = w * b, where b = engine.tensor(2.0, requires_grad=True) * 0.1"
    yield shown, names_found, knobs_of, w * b, "wb", [w, b]
    (w,) = knobs(1)
    yield "y = w, doubled 12 times by y = y + y", names_found, knobs_of, doubled(w, 12), "w", [w]
    u, v, w = knobs(3)
    h = (u * v).exp()
    y = h / v + h.detach() * w
    yield "", names_found, knobs_of, y, "uvwh", [u, v, w, h]
    u, v, w = knobs(3)
    yield "", names_found, knobs_of, (u.detach() * v).tanh(), "uvw", [u, v, w]


def nodes(y: engine.Tensor) -> list[Any]:
    """Return the nodes at the ends of the graph."""
    seen: set = set()
    layer = {y.grad_fn}
    while layer:
        seen |= layer
        layer = {p for node in layer for p, _ in node.next_functions if p is not None} - seen
    return [node for node in seen if hasattr(node, "variable")]


def by_layers(y: engine.Tensor) -> list[Any]:
    return [node.variable for node in nodes(y)]


def path_by_path(y: engine.Tensor) -> list[Any]:
    found, waiting = [], [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting += [p for p, _ in node.next_functions if p is not None]
    return found


def by_number(y: engine.Tensor) -> list[Any]:
    found: list[Any] = []
    for leaf in by_layers(y):
        if not any(engine.equal(leaf, other) for other in found):
            found.append(leaf)
    return found


def without_looking(y: engine.Tensor, first: str) -> list[Any]:
    """Find all nodes, as if every input had one."""
    waiting = [y.grad_fn]
    for node in waiting:
        getattr(node, first)
        waiting += [p for p, _ in node.next_functions]
    return []


def as_if_a_node_were_a_tensor(y: engine.Tensor) -> list[Any]:
    waiting: list[Any] = [y]
    for t in waiting:
        waiting += [p for p, _ in t.grad_fn.next_functions]
    return waiting


def two_steps_back(y: engine.Tensor) -> list[Any]:
    layer = {y.grad_fn}
    ends: set[Any] = set()
    for _ in range(2):
        layer = {p for node in layer for p, _ in node.next_functions if p is not None}
        ends |= {node for node in layer if hasattr(node, "variable")}
    return [node.variable for node in ends]


def first_path(y: engine.Tensor) -> list[Any]:
    node = y.grad_fn
    while not hasattr(node, "variable"):
        node = next(p for p, _ in node.next_functions if p is not None)
    return [node.variable]


EXERCISES = (
    Exercise(
        key="06.1",
        points=1,
        answer={"a", "d", "f"},
        wrong=mistakes(
            {"a", "b", "d", "e", "f"},
            "Those are all that take notes. But only leaves keep what arrives.",
            {"a", "c", "d", "f", "g"},
            "Those are all the leaves. But two of them were never asked to take notes.",
        ),
        entries={
            "a": "a was asked when it was made, and no operation made it since.",
            "b": "b came out of a multiplication of something that takes notes: it is a result.",
            "c": "c is a leaf. But it was never told to take notes.",
            "d": "d was asked, even if only after it was made; and no operation made it since.",
            "e": "For e, random numbers were asked and then multiplied. The leaf is another tensor, without a name.",
            "f": "f was multiplied first, and asked then: no operation made it *since it was asked to take notes*.",
            "loss": "loss came out of a sum of something that takes notes: it is a result.",
            "g": "g has the numbers of b, but it was cut off: it takes no notes, so nothing arrives.",
        },
        understood="A leaf has no note behind it; and only leaves that were asked to take notes get a .grad.",
        hints=(
            "Two questions to each: is it a leaf, and was it asked to take notes?",
            "What comes out of an operation on something that takes notes is a result. Which have a grad_fn?",
            "b and e have a grad_fn; c and g were never asked. That leaves three.",
        ),
    ),
    Exercise(
        key="06.2",
        points=1,
        answer=in_place,
        trial=knobs_trial,
        wrong=mistakes(
            lambda n, dtype: (engine.randn(n) * 0.1).requires_grad_().to(dtype),
            "With 32 bits that is right, with 64 it is not: there, `to` makes another tensor, which is a result.",
            lambda n, dtype: engine.randn(n, dtype=dtype, requires_grad=True).mul_(0.1),
            "A knob must not be written to while notes are taken. Compute first, and ask then.",
            changed(in_place, "knobs = ", "engine.manual_seed(0); knobs = "),
            "The seed is set inside the function, so every call gives the same numbers. Leave it to whoever calls.",
            lambda n, dtype: (engine.rand(n).to(dtype) * 0.1).requires_grad_(),
            "Those numbers come from `rand`: all of them lie between 0 and 0.1. `randn` gives both signs.",
            lambda n, dtype: (engine.randn(n, dtype=dtype) * 0.1).requires_grad_(),
            "They are knobs, but with 20 of them in 64 bits not the same numbers: `randn(n, dtype=dtype)` draws "
            "others there. Draw as the given line does, `randn(n)`, and convert then.",
        ),
        properties=properties(
            lambda n, dtype: engine.randn(n).to(dtype) * 0.1,
            lambda did: did.result["requires_grad"],
            "It is a leaf, but nobody has asked it to take notes.",
            lambda n, dtype: (engine.randn(n, requires_grad=True).to(dtype) * 0.1).requires_grad_(),
            lambda did: did.result["is_leaf"],
            "It is still a result: something was computed after the asking. To ask the result, too, makes no leaf "
            "of it.",
            lambda n, dtype: (engine.randn(n, requires_grad=True) * 0.1).to(dtype).requires_grad_(False),
            lambda did: did.error != "RuntimeError",
            "The order is wrong, hence the error: first compute, with what takes no notes, and then ask.",
            lambda n, dtype: [(engine.randn(1).to(dtype) * 0.1).requires_grad_() for _ in range(n)],
            lambda did: not isinstance(did.result, list),
            "It gives a list. One tensor is asked for, with n numbers in it.",
            lambda n, dtype: engine.randn(n).to(dtype).requires_grad_(),
            lambda did: abs(did.result["numbers"]).max() < 5 * abs(did.expected["numbers"]).max(),
            "The numbers are not small: the `* 0.1` is missing.",
            lambda n, dtype: (engine.randn(n) * 0.1).requires_grad_(),
            lambda did: did.result["type"] == did.expected["type"],
            "The numbers are of the wrong type for 64 bits: the `to(dtype)` is missing.",
        ),
        understood="First compute, then ask: every operation after the asking makes a result, and the knob is lost.",
        hints=(
            "Which operations are done after the tensor was asked to take notes?",
            "First compute, then ask: `requires_grad_()` comes last, and is called on what has been computed.",
            "return (engine.randn(n)...).requires_grad_()",
        ),
    ),
    Exercise(
        key="06.3",
        points=2,
        answer=kept,
        trial=slopes_trial,
        wrong=mistakes(
            lambda x, functions: [None for _ in functions],
            "There are no slopes: a result keeps none, unless it was asked to, by `retain_grad()` before `backward()`.",
            changed(kept, "results = []", "results = [x]", "in results]", "in results[:-1]]"),
            "Those are the slopes with respect to what *went into* each function, and not what came out of it.",
            each_alone,
            "Those are the slopes of each function by itself. How the *last* number moves is asked for: all that "
            "comes after counts, too.",
            one_by_one,
            "`autograd.grad` gives a tuple, here with one entry. Take it out.",
            lambda x, functions: [slope for (slope,) in one_by_one(x, functions, retain_graph=False)],
            "The first `grad` threw away notes that the next one needs. Ask for all slopes in one call: the second "
            "argument may be a list.",
            changed(results_of_the_last, "results = ", "start, results = x, ", "(results, x)", "(results, start)"),
            "The two are swapped: first what moves, which is the last result, and then what it moves with.",
            changed(
                kept,
                "results = []",
                "start, results = x, []",
                "[result.grad for result in results]",
                "[start.grad]",
            ),
            "That is the slope with respect to x. There should be one slope for each function.",
            lambda x, functions: kept(x, functions)[:-1],
            "One slope is missing: the last result moves as far as itself, so the last slope is 1.",
            lambda x, functions: kept(x, functions)[::-1],
            "The slopes are right, in the opposite order: the first is the one of the first function.",
            lambda x, functions: kept(x, functions)[-1:],
            "Only the last result has been looked at. Keep all results, in a list: there should be one slope for "
            "each function.",
            changed(kept, "results = []", "start, results = x, []", "result.grad", "start.grad"),
            "That is the slope with respect to x, once for each function. Each *result* has a slope of its own.",
            changed(kept, "results = []", "results = [x]"),
            "There is one slope too many: that with respect to x itself. Begin with what the first gives.",
            each_by_x,
            "Those say how each result moves when *x* moves. The other half of the path is asked for: how the last "
            "result moves when this one moves.",
            lambda x, functions: [slope for function in functions for slope in kept(x, [function, total])[:1]],
            "Each function has been given x. Only the first one gets it; the next gets what came out of the first.",
            changed(kept, "in functions:", "in functions[::-1]:", "x.backward()", "x.sum().backward()"),
            "The functions run in the opposite order. x goes into the first of the list.",
            results_of_the_last,
            "What moves and what it moves with are swapped: first the last result, then the list of all results.",
            changed(kept, "result.grad", "result"),
            "Those are the results themselves, and not slopes.",
            changed(results_of_the_last, "x := function", "function", "(results, x)", "(results[-1], results)"),
            "The last result does not come from the others: they have no part in it. Only the first function gets "
            "`x`; each of the others gets what came out of the one before.",
            lambda x, functions: [None for _ in functions[1:]] + [engine.tensor(1.0)],
            "No path leads back from the last result to the others. Did each function get what came out of the one "
            "before it (and not `x`), and without a `detach()` in between?",
            changed(kept, "    x.backward()", "", "append(x)", "append(x); x.sum().backward(retain_graph=True)"),
            "`backward()` was called from each result, and the slopes were added up. Only the last one moves here: "
            "go back once, from there.",
            lambda x, functions: [slope.item() for slope in kept(x, functions)],
            "`item()` takes out one number. A result with several numbers has as many slopes: leave the tensors.",
            lambda x, functions: [slope.sum() for slope in kept(x, functions)],
            "A result with several numbers has as many slopes. Do not add them up.",
        ),
        properties=properties(
            changed(kept, "    x.backward()", "", "append(x)", "append(x); x.sum().backward()"),
            lambda did: did.error != "RuntimeError",
            "The backward pass failed. Do you go back more than once? Once will do, from the last result.",
            lambda x, functions: [float(slope) for slope in kept(x, functions)],
            lambda did: did.error != "ValueError",
            "`float()` takes out one number. A result with several numbers has as many slopes: leave the tensors.",
            lambda x, functions: kept(x, functions)[:0],
            lambda did: did.result != [],
            "The list is empty. If your hooks should fill it: are they there before `backward()`, and do they put "
            "what arrives into the list?",
        ),
        understood="What passes through a result is not kept, unless you ask for it beforehand.",
        hints=(
            "Keep every result on the way, in a list. How do you ask for the slope at a result?",
            "`retain_grad()` for each, right when it was made; or `autograd.grad` once, with the list of all results.",
            "for function in functions:\n    x = function(x)\n    ...\nreturn engine.autograd.grad(..., results)",
        ),
    ),
    Exercise(
        key="06.4",
        points=2,
        answer=hook(lambda arriving, most: engine.where(arriving.abs() > most, most * arriving.sign(), arriving)),
        trial=limit_trial,
        wrong=mistakes(
            hook(lambda arriving, most: arriving.clamp(max=most)),
            "Above it is limited, and below it is not: -4 is as large as 4, in the other direction.",
            hook(lambda arriving, most: arriving.clamp(0, most)),
            "Negative slopes have become 0. Those from -most on should stay.",
            hook(lambda arriving, most: arriving.clamp(-most)),
            "Below it is limited, and above it is not: with one number, `clamp` takes it as the least.",
            hook(lambda arriving, most: arriving.clamp(most)),
            "With one number, `clamp` takes it as the *least*: small numbers are made larger.",
            lambda h, most: h.register_hook(h.clamp(-most, most)),
            "`register_hook` takes a function, to be called later. This is a tensor, computed at once.",
            too_early,
            "When `limit` is called, nothing has arrived yet, and `.grad` is None. Let a function wait there.",
            hook(lambda arriving, most: arriving * (most / max(most, arriving.abs().max().item()))),
            "All numbers are made smaller together. Only those beyond the limit should change.",
            hook(written_over),
            "The hook writes over what it was given. Another tensor gets the same gradient: give back a new one.",
            lambda h, most: h.register_hook(lambda arriving: h.detach().clamp(-most, most)),
            "What you limit is h. What *arrives* there is the argument of the hook.",
            hook(lambda arriving, most: engine.ones_like(arriving) * most),
            "Whatever arrives, `most` goes on. What is within the limit should stay as it is.",
            hook(lambda arriving, most: most * arriving.sign()),
            "Whatever arrives, `most` or `-most` goes on. What is within the limit should stay as it is.",
            hook(lambda arriving, most: arriving.abs().clamp(max=most)),
            "The signs are gone: with `abs()`, -4 has become 1. It should be passed on as -1.",
            hook(lambda arriving, most: arriving.clamp(-1, 1)),
            "It limits to the numbers from -1 to 1, whatever `most` is.",
            hook(lambda arriving, most: engine.where(arriving.abs() > most, 0.0, arriving)),
            "What is beyond the limit has become 0. It should be passed on as `most` or `-most`.",
            hook(lambda arriving, most: arriving * (most / (arriving * arriving).sum().sqrt())),
            "That limits the *length* of the whole gradient: all numbers shrink together. Limit each for itself.",
            hook(lambda arriving, most: max(-most, min(most, arriving))),
            "Python's `min` and `max` compare two single numbers. What arrives may be many: `clamp` looks at each.",
            hook(lambda arriving, most: arriving.clamp(most, -most)),
            "The two numbers of `clamp` are swapped: the least comes first.",
            hook(lambda arriving, most: arriving * most),
            "What arrives is multiplied by `most`. It should be limited.",
            hook(lambda arriving, most: arriving / most),
            "What arrives is divided by `most`. It should be limited.",
            hook(lambda arriving, most: arriving.clamp(-int(most), int(most))),
            "`most` has lost its fraction: a limit of 2.5 is not one of 2.",
            once_alone,
            "The first time it is limited, and after that it is not. A hook that is to stay must not be removed.",
            hook(lambda arriving, most: arriving.clamp(-most, most) if arriving.max() > most else None),
            "It limits only if one number is above `most`. Here one is below `-most`, and none is above.",
            lambda h, most: h.register_post_accumulate_grad_hook(lambda t: None),
            "This kind of hook is for knobs alone, and comes after the adding. `h` may be a result.",
        ),
        properties=properties(
            with_the_numbers,
            lambda did: not without_a_hook(did.source),
            "No hook waits at `h`. The numbers *of* h are not to be limited, but those that arrive there later: "
            "give `h.register_hook` a function that limits them.",
            hook(lambda arriving, most: None),
            lambda did: (
                without_a_hook(did.source)
                or not did.shown.startswith("h = 2 * x, limit")
                or list(did.result) != [1.0, 6.0, -8.0]
            ),
            "All goes on as it came. Does your hook return something? And is it still there, at `h` itself, when "
            "the gradient comes by?",
            hook(lambda arriving, most: most * (arriving / most).tanh()),
            lambda did: not did.shown.startswith("h = 2 * x") or did.result[0] == 1.0,
            "What is within the limit has changed as well: 0.5 arrives at h, and should be passed on as 0.5.",
            lambda h, most: (h.retain_grad(), h.backward()),
            lambda did: not (did.error == "RuntimeError" and calls(did.source, "backward")),
            "`limit` must not call `backward()`: it only gets everything ready, so that a later one is limited.",
            hook(lambda arriving, most: arriving.clamp(-most, most).sum()),
            lambda did: did.error != "RuntimeError" or calls(did.source, "backward"),
            "The hook must be at `h` itself, which takes notes; and what it returns must have the shape of what "
            "arrived.",
            lambda h, most: h.register_hook(lambda: h.clamp(-most, most)),
            lambda did: did.error != "TypeError",
            "A hook is called with one argument, which is what arrives, and should return a tensor or nothing.",
        ),
        understood="What a hook returns is passed on, and everything after it is computed from that.",
        hints=(
            "What does a hook get, and what becomes of what it returns?",
            "`register_hook` takes a function of one argument. `clamp(least, most)` makes a new tensor.",
            "h.register_hook(lambda arriving: arriving.clamp(...))",
        ),
    ),
    Exercise(
        key="06.5",
        points=2,
        answer=by_layers,
        trial=find_trial,
        wrong=mistakes(
            lambda y: [p.variable for p in {p for p, _ in y.grad_fn.next_functions} if hasattr(p, "variable")],
            "You have looked one step back. The ends of the graph may be further away.",
            first_path,
            "You have followed one path. Where a node has several inputs, all of them must be followed.",
            *(
                part
                for first in ("next_functions", "name")
                for part in (
                    functools.partial(without_looking, first=first),
                    f"Where an input takes no notes, None stands in place of a node, and None has no `{first}`. Pass "
                    "over it.",
                )
            ),
            lambda y: [y.grad_fn.variable],
            "`y.grad_fn` is the node that made y. Only an AccumulateGrad has a `variable`: follow "
            "`next_functions` until you get there.",
            lambda y: [knob.grad for knob in by_layers(y)],
            "Those are the `.grad` of the knobs, and nothing has arrived. The knobs themselves are asked for.",
            lambda y: len(by_layers(y)),
            "That is how many there are. A list of the tensors themselves is asked for.",
        ),
        properties=properties(
            nodes,
            lambda did: not any("AccumulateGrad" in name or "Backward" in name for name in did.result),
            "There are nodes in it. `variable` is the tensor that belongs to an AccumulateGrad.",
            path_by_path,
            lambda did: all(did.result.count(name) < 2 for name in did.result if len(name) == 1),
            "Some are found several times, once on each path that leads there. Each should be there once.",
            lambda y: [knob.detach() for knob in by_layers(y)],
            lambda did: did.result.count(NAMELESS) <= did.expected.count(NAMELESS),
            "There is a tensor in it that is none of the knobs: `clone()` and `detach()` make another tensor, and "
            "a result is no knob.",
            lambda y: [node.name() for node in nodes(y)],
            lambda did: not {"str", "int", "float", "list"} & set(did.result),
            "There are names or numbers in it. The tensors themselves are asked for.",
            as_if_a_node_were_a_tensor,
            lambda did: did.error != "AttributeError",
            "Something was asked for what it does not have. `next_functions` is made of pairs, a node (or None) "
            "and a number; a node has `next_functions`, too, and an AccumulateGrad has `variable`.",
            lambda y: [],
            lambda did: did.result != [],
            "The list is empty. Does your walk go on from `y.grad_fn` to what `next_functions` points to? (If your "
            "function calls another one, or itself: is what that finds kept?)",
            two_steps_back,
            lambda did: not (did.shown.startswith("h =") and 0 < len(did.result) < len(did.expected)),
            "Some are missing. A path may be longer: follow every node until none is left.",
            by_number,
            lambda did: "both are 2" not in did.shown or len(did.result) != 1,
            "Two knobs with the same number in them are still two. `in` and `==` compare numbers: look instead at "
            "which nodes you have seen.",
            lambda y: y.backward(retain_graph=True) or by_layers(y),
            lambda did: not any(did.after[name] is not None for name in did.after if name.endswith(".grad")),
            "`backward()` was called: there is something in the `.grad` of a knob now. The notes are enough.",
        ),
        understood="The knobs of a result are the ends of its graph; if what you call your knob is not among "
        "them, it is lost.",
        hints=(
            "Begin at y.grad_fn. Where do the paths end, and how do you get from such an end to its tensor?",
            "Keep a list of nodes still to be looked at, and a set of those seen. An AccumulateGrad has `variable`.",
            "while waiting:\n    node = waiting.pop()\n    if node is None or node in seen:\n        continue\n    ...",
        ),
    ),
)
