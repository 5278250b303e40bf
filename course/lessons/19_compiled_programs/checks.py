"""Lesson 19, living with a compiler: the exercises' trials, oracles, usual mistakes and hints."""

import numpy as np

import engine
from course.judging.words import Exercise, changed, mistakes, properties
from engine.compiler import explain

# 19.2


def bent(x, factor):
    return (x * factor).tanh()


def spread(x, factor):
    return factor * (x * factor).softmax(0)


def counted(run, function, x, steps):
    compiled = engine.compile(function)
    results = run(compiled, x, steps)
    return {"the results": results, "captures": len(compiled.entries)}


def run_trial(run):
    what = "the results, and the number of captures"
    yield f"tanh(x * factor), 3 steps: {what}", counted, run, bent, engine.tensor([1.0, 2.0]), 3
    yield "x is a table, 12 steps", counted, run, bent, engine.tensor([[0.5, -1.0, 3.0], [2.0, 0.25, -0.5]]), 12
    yield "factor * softmax(x * factor), 4 steps", counted, run, spread, engine.tensor([0.5, -1.0, 3.0]), 4
    yield "", counted, run, spread, engine.ones(2, 3), 5
    yield "", counted, run, bent, engine.tensor([0.3, -2.1]), 9


def calling(factor, start=1):
    """`run`, with what is given as the factor of a step."""
    return lambda compiled, x, steps: [compiled(x, factor(step)) for step in range(start, steps + start)]


def run(compiled, x, steps):
    return [compiled(x, factor) for factor in 1 / engine.arange(1.0, steps + 1)]


# 19.3


def in_one_graph(shortened, values, most):
    """Return what comes out, how often the graph breaks, and what a backward pass brings to the input."""
    x = engine.tensor(values, requires_grad=True)
    result = shortened(x, most)
    found = {"the result": result, "graph breaks": explain(shortened)(x, most).graph_break_count}
    learns = isinstance(result, engine.Tensor) and result.requires_grad
    weights = 1 + engine.arange(x.numel()).reshape(x.shape)
    found["the gradient at x"] = engine.autograd.grad((result * weights).sum(), x)[0] if learns else "none arrives"
    return found


def short_trial(shortened):
    what = "the result, the number of graph breaks, and the gradient"
    yield f"x = [1, -4], most = 2: {what}", in_one_graph, shortened, [1.0, -4.0], 2.0
    yield "x = [[1, 3], [-4, 2]], most = 2", in_one_graph, shortened, [[1.0, 3.0], [-4.0, 2.0]], 2.0
    yield "x = [1, -0.5], most = 2", in_one_graph, shortened, [1.0, -0.5], 2.0
    yield "x = [0, 0], most = 2", in_one_graph, shortened, [0.0, 0.0], 2.0
    yield "", in_one_graph, shortened, [[3.0, 4.0], [-1.0, 10.0]], 5.0
    yield "", in_one_graph, shortened, [[3.0, 4.0], [-1.0, 10.0]], 20.0
    yield "", in_one_graph, shortened, [0.3, -1.7, 0.2], 0.25


def shortened(x, most):
    return x * most / x.abs().max().clamp(min=most)


def still_asking(x, most):
    largest = x.abs().max()
    if largest > most:
        x = x * (most / largest)
    return x


def limited(size, most_of=lambda most: most):
    """`shortened`, with another size than the largest number, or another limit; twice, as people divide."""
    return (
        lambda x, most: x * (most / size(x).clamp(min=most_of(most))),
        lambda x, most: x * (most / size(x)).clamp(max=1),
    )


def twice(size, says):
    """Both ways to limit another size: one that divides safely, and one that does not."""
    safe, unsafe = limited(size)
    return safe, says, unsafe, says + " And do not divide by what may be 0: clamp before you divide."


def chosen_afterwards(x, most):
    """Right but for zeros: `where` goes back through the side that it has not chosen, too."""
    largest = x.abs().max()
    return engine.where(largest > most, x * (most / largest), x)


def has_nan(gradient):
    return np.isnan(np.asarray(gradient, dtype=float)).any()


# 19.4


def called(guarded, *inputs):
    """Return what a guarded function gives for each input, and how many captures there were after each call."""
    captured = []

    def capture(x):
        captured.append(x)
        shape, dtype = tuple(x.shape), x.dtype

        def quick(y):
            fits = tuple(y.shape) == shape and y.dtype == dtype
            return y * 2 if fits else f"the capture for {shape} {dtype} was used for {tuple(y.shape)} {y.dtype}"

        return quick

    call, found = guarded(capture), []
    for x in inputs:
        found.append((call(x), len(captured)))
    return found


def guarded_trial(guarded):
    three, five = engine.ones(3), engine.ones(5)
    yield "ones(3), then other contents: each result, and the captures so far", called, guarded, three, three * 7
    yield "ones(3), then ones(5)", called, guarded, three, five
    yield "ones(3), then ones(3) in float64 and in int64", called, guarded, three, three.double(), three.long()
    yield "ones(3), ones(5), ones(3), ones(5)", called, guarded, three, five, three + 1, five + 1
    yield "ones(2, 3), then ones(3, 2)", called, guarded, engine.ones(2, 3), engine.ones(3, 2)
    yield "ones(2, 3), then ones(2, 4), ones(4, 3)", called, guarded, *map(engine.ones, [(2, 3), (2, 4), (4, 3)])
    yield "ones(2, 3), then ones(3, 2) transposed", called, guarded, engine.ones(2, 3), engine.ones(3, 2).T
    inputs = [engine.ones(shape, dtype=t) for t in (engine.float32, engine.int64) for shape in [(1,), (1, 1), ()]]
    yield "", called, guarded, *inputs, *reversed(inputs)


def keyed(capture):
    captures = {}

    def call(x):
        key = tuple(x.shape), x.dtype
        if key not in captures:
            captures[key] = capture(x)
        return captures[key](x)

    return call


def guarded(capture):
    captures = []

    def call(x):
        for shape, dtype, quick in captures:
            if x.shape == shape and x.dtype == dtype:
                return quick(x)
        captures.append((x.shape, x.dtype, capture(x)))
        return captures[-1][2](x)

    return call


EXERCISES = (
    Exercise(
        key="19.1",
        points=1,
        answer=(1, 1, 2, 3, 4, 4),
        wrong=mistakes(
            (1, 2, 3, 4, 5, 6),
            "Not every call needs a capture. Which of them differ only in what is *in* a tensor?",
            (1, 0, 1, 1, 1, 0),
            "Those are the captures that each call *makes*. Count how many there are after each call.",
            (1, 1, 1, 2, 2, 2),
            "A plain number is part of the code: 3.0 needs other code than 2.0.",
            (0, 0, 1, 2, 3, 3),
            "You do not count the capture of the first call. It makes one, too.",
        ),
        entries={
            1: "The first call always makes the first capture.",
            2: ((2, "Only the contents differ, zeros in place of ones, and no guard looks at those."),),
            3: ((1, "The scale is a plain number, and the code has 2.0 in it."),),
            4: ((2, "`double()` makes another type, and the type is guarded."),),
            5: (
                (3, "A tensor is another kind of argument than a number: the first guard of `a1` asks for a float."),
                (5, "This is one capture more, not two."),
            ),
            6: ((5, "5 and 6 are in a tensor now, and what is in it may change."),),
        },
        hints=(
            "What is guarded: contents, shape, type, plain numbers?",
            "Contents are not guarded. Ask of each call: does it differ from an earlier one in contents alone?",
            "The second call and the last one need no new capture.",
        ),
        understood="A capture holds for all calls that differ from its own in the contents of tensors alone.",
    ),
    Exercise(
        key="19.2",
        points=1,
        answer=run,
        trial=run_trial,
        wrong=mistakes(
            calling(lambda step: round(1 / step, 2)),
            "A rounded number is still a plain number, and a capture holds for one number only.",
            calling(lambda step: 1.0),
            "One capture, because the factor never changes. But it should: 1, 1/2, 1/3 and so on.",
            calling(lambda step: engine.tensor(1 / step), start=2),
            "The factors begin with 1/2. The first one is 1.",
            lambda compiled, x, steps: [compiled(x, engine.tensor(1 / steps)) for _ in range(steps)],
            "Your factor is 1 divided by the number of *all* steps, each time. It should be `1 / step`.",
            calling(lambda step: engine.tensor(step)),
            "The factor is a tensor now, but it holds the number of the step. It should hold 1 divided by that.",
            calling(lambda step: engine.tensor(1 / step).item()),
            "The function still gets a plain number (`item()` makes one, too), and a capture holds for one "
            "number only.",
            calling(lambda step: engine.tensor(1 // step)),
            "`1 // step` is a whole number: 1, and then 0 in every step. A factor is `1 / step`.",
            lambda compiled, x, steps: [compiled(x, 1.0) / step for step in range(1, steps + 1)],
            "You divide the *result* by the step, and the factor is always 1. `tanh(x / 2)` is not `tanh(x) / 2`: "
            "give the function its factor.",
            lambda compiled, x, steps: run(compiled, x, steps - 1),
            "One result is missing: there are `steps` of them, and `range(1, steps)` ends before `steps`.",
            lambda compiled, *given: calling(lambda step: 1 / step)(engine.compile(compiled, dynamic=True), *given),
            "`dynamic=True` is about sizes: a plain number is guarded all the same. And `compiled` is compiled "
            "already.",
            lambda compiled, x, steps: [compiled(x * (1 / step), 1.0) for step in range(1, steps + 1)],
            "You multiplied `x` instead of passing the factor. What the function does with the two is its own "
            "affair: pass it both.",
            lambda compiled, x, steps: list(compiled(x, 1 / engine.arange(1.0, steps + 1).reshape(-1, 1))),
            "You passed all factors in one call. Call it once for each step.",
            lambda compiled, x, steps: compiled(x, 1 / engine.arange(1.0, steps + 1)),
            "You passed the whole row of factors in one call. Call it once for each step, with one of them.",
            lambda compiled, x, steps: [engine.compile(compiled.function)(x, 1 / step) for step in range(1, steps + 1)],
            "You never called `compiled`, so it has no capture. Call it in each step, and compile nothing anew.",
        ),
        properties=properties(
            changed(run, "x, factor", "x, factor if factor < 1 else 1.0"),
            lambda did: did.result["captures"] <= did.expected["captures"],
            "There are too many captures: in some step the factor is a plain number. Put it into a tensor in every "
            "step, the first one too.",
            lambda compiled, x, steps: run(compiled, x, steps)[-1],
            lambda did: (
                isinstance(did.result["the results"], list | tuple)
                and len(did.result["the results"]) == len(did.expected["the results"])
            ),
            "There should be a result for each step, in a list. Append each one, and return the list.",
        ),
        hints=(
            "What do the guards say about a plain number, and what about a tensor?",
            "A plain number is part of the code. What is in a tensor may change.",
            "results.append(compiled(x, engine.tensor(...)))",
        ),
        understood="A plain number is part of the code; what is in a tensor is an input, and may change.",
    ),
    Exercise(
        key="19.3",
        points=2,
        answer=shortened,
        trial=short_trial,
        wrong=mistakes(
            lambda x, most: x * min(1.0, most / x.abs().max().item()),
            "A number leaves the capture, through `item()`, `float()` or Python's `min`. Stay with tensors: "
            "`clamp`, `engine.maximum`.",
            lambda x, most: engine.where(x.abs().max() > most, x / x.abs().max(), x),
            "The largest number becomes 1. It should become `most`.",
            lambda x, most: x / x.abs().max().clamp(min=most),
            "The largest number becomes 1, and small tensors shrink. Multiply by `most` as well.",
            limited(lambda x: x.abs().max(), lambda most: 1)[0],
            "You keep the divisor above 1. Keep it above `most`, so that small tensors stay as they are.",
            lambda x, most: shortened(x.detach(), most),
            "The numbers are right, in one graph. But no gradient reaches `x` any more: you cut off the notes.",
            lambda x, most: x * most / x.abs().max().detach().clamp(min=most),
            "The numbers are right, in one graph. But the gradient is another one: the largest number acts on "
            "the factor, too, and you cut off its part.",
            still_asking,
            "`item()` is gone, but `if` still asks what is in a tensor. Let `clamp` choose: divide by the largest "
            "number, or by `most` where that is larger.",
            lambda x, most: x * (most / x.abs().max()),
            "It is one graph. But small tensors are made larger: they should stay as they are.",
            lambda x, most: x * (most / x.abs().max()).clamp(min=1),
            "It is the wrong way round: small tensors are made larger, and large ones stay. The factor should be"
            " *at most* 1, so the divisor should be at least `most`: `clamp(min=most)`.",
            *twice(
                lambda x: x.norm(),
                "That limits the length of the whole tensor. Limit its largest number, without its sign.",
            ),
            *twice(lambda x: x.abs().sum(), "That limits the sum of all. Limit the largest number, without its sign."),
            lambda x, most: shortened(x.abs(), most),
            "The signs are lost: `abs()` is for finding the largest number. Scale `x` itself.",
            lambda x, most: x - (x.abs().max() - most).clamp(min=0),
            "You subtract the excess, so all numbers move by the same amount. Scale instead: multiply by one factor.",
            *twice(lambda x: x.abs().mean(), "That limits the mean. Limit the largest number, without its sign."),
            *twice(lambda x: x.max(), "You compare with the sign. But -4 is a large number, too: take `abs()` first."),
            lambda x, most: x.clamp(min=-most, max=most),
            "That cuts each number off by itself. Scale the whole tensor by one factor instead.",
            lambda x, most: x * (most / x.abs().max(0).values.clamp(min=most)),
            "You scale each *column* by itself. Take the largest number of all: `max()` without a dimension.",
            lambda x, most: x * (most / x.abs().max(-1, keepdim=True).values.clamp(min=most)),
            "You scale each *row* by itself. Take the largest number of all: `max()` without a dimension.",
            lambda x, most: engine.where(x.abs() > most, x * (most / x.abs().max()), x),
            "You scale only the numbers that are too large. If the largest one is too large, scale all of them.",
        ),
        properties=properties(
            lambda x, most: x * (most / max(x.abs().max().item(), most)),
            lambda did: did.result["graph breaks"] == 0,
            "The graph still breaks: something asks for a number that is in the tensor (`if`, `item()`, `float()`, "
            "Python's `min` or `max`). Stay with tensors: `clamp`, `engine.maximum`.",
            chosen_afterwards,
            lambda did: not has_nan(did.result["the gradient at x"]),
            "Where every number is 0, the gradient is `nan`: `most / largest` divides by 0, and the way back goes "
            "through that even where it was not chosen (0 times infinity). Divide by something that is never 0, "
            "such as `largest.clamp(min=most)`.",
        ),
        hints=(
            "Which line asks what is in the tensor?",
            "Leave the question out. If the divisor is at least `most`, the factor is at most 1, and small tensors "
            "stay as they are.",
            "return x * (most / largest.clamp(...))",
        ),
        understood="Compute what depends on the contents of a tensor, instead of asking for it: then one path is "
        "enough.",
    ),
    Exercise(
        key="19.4",
        points=2,
        answer=guarded,
        trial=guarded_trial,
        wrong=mistakes(
            lambda capture: lambda x: capture(x)(x),
            "It captures in every call. Keep what `capture` returns, and use it again.",
            changed(keyed, "tuple(x.shape), x.dtype", "x.dtype"),
            "Another shape needs another capture.",
            changed(keyed, "tuple(x.shape), x.dtype", "tuple(x.shape)"),
            "Another dtype needs another capture.",
            changed(keyed, "tuple(x.shape), x.dtype", "x.numel(), x.dtype"),
            "2 by 3 and 3 by 2 hold as many numbers, but have other shapes.",
            changed(keyed, "tuple(x.shape), x.dtype", "len(x), x.dtype"),
            "2 by 3 and 2 by 4 have as many rows, but other shapes.",
            changed(keyed, "tuple(x.shape), x.dtype", "x.shape[-1:], x.dtype"),
            "2 by 3 and 4 by 3 have as many columns, but other shapes.",
            changed(keyed, "tuple(x.shape), x.dtype", "tuple(x.shape), x.is_floating_point()"),
            "float32 and float64 are both floating-point, but they are different dtypes: ask for `x.dtype`.",
            changed(keyed, "tuple(x.shape), x.dtype", "tuple(x.shape), x.element_size()"),
            "A number takes 8 bytes in float64 and in int64, but these are different dtypes: ask for `x.dtype`.",
            changed(keyed, "tuple(x.shape), x.dtype", "0"),
            "There is one capture for everything. It holds for the first shape and dtype only.",
            changed(keyed, "tuple(x.shape), x.dtype", "str(x.tolist())"),
            "Different contents lead to another capture. Only shape and dtype count.",
            changed(keyed, "tuple(x.shape), x.dtype", "tuple(x.shape), x.dtype, x.stride()"),
            "How the numbers lie in memory is no part of the key: what `capture` returns is right for this shape and "
            "dtype.",
            changed(keyed, "[key](x)", "[key]"),
            "You return the function that `capture` has made. Call it with `x`, and return the result.",
            lambda capture: lambda x: capture(x),
            "You return what `capture` has made, and make it anew in every call. Keep it, call it with `x`, and "
            "return the result.",
            changed(keyed, "capture(x)", "capture(x)(x)", "[key](x)", "[key]"),
            "You keep the *result* of the first call. Keep the function that `capture` returns, and call it.",
            changed(keyed, "captures[key] =", "captures.clear(); captures[key] ="),
            "Only the last capture is kept. When the first kind comes back, it should still be there.",
        ),
        hints=(
            "Under which key can you keep a capture, so that you find it again?",
            "Use a dictionary from shape and dtype to what `capture` returned.",
            "kind = tuple(x.shape), x.dtype\nif kind not in captures:\n    ...\nreturn captures[kind](x)",
        ),
        understood="Guards are a key: what a capture depends on, and nothing else.",
    ),
)
