"""Lesson 18, the compiler: the exercises' trials, oracles, usual mistakes and hints."""

import engine
from course.exercises import Exercise
from engine.compiler import explain

# 17.1


def bent(x, factor):
    return (x * factor).tanh()


def counted(run, x, steps):
    compiled = engine.compile(bent)
    results = run(compiled, x, steps)
    return {"the results": results, "captures": len(compiled.entries)}


def run_trial(run):
    yield "3 steps: the results, and the number of captures", counted, run, engine.tensor([1.0, 2.0]), 3
    yield "12 steps", counted, run, engine.tensor([0.5, -1.0, 3.0]), 12


def run_more(run):
    yield "", counted, run, engine.ones(2, 3), 5


def calling(factor, start=1):
    """`run`, with what is given as the factor of a step."""
    return lambda compiled, x, steps: [compiled(x, factor(step)) for step in range(start, steps + start)]


def one_more_copy(compiled, x, steps):
    return [engine.compile(compiled.function)(x, 1 / step) for step in range(1, steps + 1)]


def run(compiled, x, steps):
    return [compiled(x, factor) for factor in 1 / engine.arange(1.0, steps + 1)]


# 17.2


def in_one_graph(shortened, values, most):
    x = engine.tensor(values)
    return {"the result": shortened(x, most), "graph breaks": explain(shortened)(x, most).graph_break_count}


def short_trial(shortened):
    yield "x = [1, -4], most = 2: the result, and the number of graph breaks", in_one_graph, shortened, [1.0, -4.0], 2.0
    yield "x = [1, -4, 3], most = 2", in_one_graph, shortened, [1.0, -4.0, 3.0], 2.0
    yield "x = [1, -0.5], most = 2", in_one_graph, shortened, [1.0, -0.5], 2.0
    yield "x = [0, 0], most = 2", in_one_graph, shortened, [0.0, 0.0], 2.0


def short_more(shortened):
    yield "", in_one_graph, shortened, [[3.0, 4.0], [-1.0, 10.0]], 5.0
    yield "", in_one_graph, shortened, [[3.0, 4.0], [-1.0, 10.0]], 20.0


def shortened(x, most):
    return x * (most / x.abs().max()).clamp(max=1)


def still_asking(x, most):
    largest = x.abs().max()
    if largest > most:
        x = x * (most / largest)
    return x


# 17.3

PROGRAM = [
    ("a", "exp", ("x",)),
    ("b", "mul", ("x", "w")),
    ("c", "tanh", ("b",)),
    ("d", "sum", ("a",)),
    ("e", "neg", ("b",)),
    ("f", "add", ("c", "e")),
]


def needed_trial(needed):
    yield 'the program of the exercise, "c"', needed, PROGRAM[:3], "c"
    yield 'six steps, "f" = c + e; c and e both take b', needed, list(PROGRAM), "f"
    yield 'the same, "d" = sum of a', needed, list(PROGRAM), "d"
    yield 'the same, "b" = x * w', needed, list(PROGRAM), "b"


def needed_more(needed):
    chain = [(f"t{n}", "neg", (f"t{n - 1}" if n else "x",)) for n in range(50)]
    yield "", needed, chain, "t20"
    yield "", needed, [*chain, ("s", "add", ("t3", "t40"))], "s"


def as_steps(program):
    """A program as it is compared: steps and what they take as tuples."""
    return [(name, does, tuple(takes)) for name, does, takes in program]


def reached(program, result):
    takes = {name: inputs for name, _, inputs in program}
    todo, seen = [result], set()
    while todo:
        name = todo.pop()
        if name in takes and name not in seen:
            seen.add(name)
            todo.extend(takes[name])
    return [step for step in program if step[0] in seen]


def once_used(program, result):
    taken = {t for _, _, takes in program for t in takes}
    return [step for step in program if step[0] in taken or step[0] == result]


def one_step_back(program, result):
    takes = next(inputs for name, _, inputs in program if name == result)
    return [step for step in program if step[0] == result or step[0] in takes]


def up_to(program, result):
    names = [name for name, _, _ in program]
    return program[: names.index(result) + 1]


# 17.4

TWICE = [
    ("a", "mul", ("x", "w")),
    ("b", "tanh", ("a",)),
    ("c", "mul", ("x", "w")),
    ("d", "tanh", ("c",)),
    ("e", "add", ("b", "d")),
]
ALIKE = [
    ("a", "mul", ("x", "w")),
    ("b", "add", ("x", "w")),
    ("c", "sub", ("x", "w")),
    ("d", "sub", ("w", "x")),
    ("e", "mul", ("c", "d")),
]


def joined_trial(joined):
    yield "the program of the exercise", joined, list(TWICE)
    yield "five steps that all differ; sub(x, w) is not sub(w, x)", joined, list(ALIKE)
    yield "three times exp(x)", joined, [(n, "exp", ("x",)) for n in "abc"] + [("d", "add", ("b", "c"))]


def joined_more(joined):
    both = [(f"{side}{n}", "neg", (f"{side}{n - 1}" if n else "x",)) for n in range(6) for side in "lr"]
    yield "", joined, [*both, ("s", "sub", ("l5", "r5"))]


def joining(key, renamed=True, follow=True):
    """`joined`, with what makes two steps the same, and whether the later steps hear of it."""

    def attempt(program):
        kept, first, instead = [], {}, {}
        for name, does, takes in program:
            now = tuple(instead.get(t, t) for t in takes) if renamed else takes
            known = key(does, now if follow else takes)
            if known in first:
                instead[name] = first[known]
            else:
                first[known] = name
                kept.append((name, does, now))
        return kept

    return attempt


def joined(program):
    program = as_steps(program)
    while True:
        names = {}
        for name, does, takes in program:
            names.setdefault((does, takes), []).append(name)
        instead = {other: first for first, *others in names.values() for other in others}
        if not instead:
            return program
        kept = [step for step in program if step[0] not in instead]
        program = [(name, does, tuple(instead.get(t, t) for t in takes)) for name, does, takes in kept]


# 17.5


def called(guarded, *inputs):
    """What a guarded function gives for each input, and how many captures there were after each call."""
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
    yield "ones(3), then ones(3) in float64", called, guarded, three, three.double()
    yield "ones(3), ones(5), ones(3), ones(5)", called, guarded, three, five, three + 1, five + 1
    yield "ones(2, 3), then ones(3, 2)", called, guarded, engine.ones(2, 3), engine.ones(3, 2)


def guarded_more(guarded):
    inputs = [engine.ones(shape, dtype=t) for t in (engine.float32, engine.int64) for shape in [(1,), (1, 1), ()]]
    yield "", called, guarded, *inputs, *reversed(inputs)


def keyed(key):
    """`guarded`, with what its captures are found by."""

    def attempt(capture):
        captures = {}

        def call(x):
            if key(x) not in captures:
                captures[key(x)] = capture(x)
            return captures[key(x)](x)

        return call

    return attempt


def guarded(capture):
    captures = []

    def call(x):
        for shape, dtype, quick in captures:
            if x.shape == shape and x.dtype == dtype:
                return quick(x)
        captures.append((x.shape, x.dtype, capture(x)))
        return captures[-1][2](x)

    return call


def every_time(capture):
    return lambda x: capture(x)(x)


def the_last_one(capture):
    last = [None, None]

    def call(x):
        kind = x.shape, x.dtype
        if last[0] != kind:
            last[:] = kind, capture(x)
        return last[1](x)

    return call


EXERCISES = (
    Exercise(
        key="18.1",
        points=1,
        answer=run,
        trial=run_trial,
        hidden=run_more,
        wrong=(
            (
                calling(lambda step: round(1 / step, 2)),
                "A rounded number is still a plain number, and a capture holds for one number only.",
            ),
            (
                calling(lambda step: 1.0),
                "One capture, since the factor never changes. But it should: 1, 1/2, 1/3 and so on.",
            ),
            (
                calling(lambda step: engine.tensor(1 / step), start=2),
                "The factors begin with 1/2. The first one is 1.",
            ),
            (
                calling(lambda step: engine.tensor(step)),
                "The factor is a tensor now, but it is the number of the step, and not 1 divided by it.",
            ),
            (
                one_more_copy,
                "`compiled` was never called, so it has no capture. Call it in each step, and compile nothing anew.",
            ),
        ),
        hints=(
            "What do the guards say about a plain number, and what about a tensor?",
            "A plain number is part of the code. What is in a tensor may change.",
            "results.append(compiled(x, engine.tensor(...)))",
        ),
    ),
    Exercise(
        key="18.2",
        points=2,
        answer=shortened,
        trial=short_trial,
        hidden=short_more,
        wrong=(
            (
                still_asking,
                "`item()` is gone, but `if` still asks what is in a tensor. Compute both ways, and pick with "
                "`engine.where`.",
            ),
            (
                lambda x, most: x * (most / x.abs().max()),
                "It is one graph. But small tensors are made larger: they should stay as they are.",
            ),
            (
                lambda x, most: x.clamp(min=-most, max=most),
                "That cuts each number off by itself. The whole tensor is to be scaled by the same factor.",
            ),
            (
                lambda x, most: engine.where(x.abs() > most, x * (most / x.abs().max()), x),
                "Only the numbers that are too large are scaled. The condition is about the largest one, and for all.",
            ),
            (
                lambda x, most: engine.where(x.max() > most, x * (most / x.max()), x),
                "Without its sign: -4 is a large number, too.",
            ),
        ),
        hints=(
            "Which two lines ask what is in the tensor?",
            "Leave `item()` out, compute both ways, and let `engine.where` pick.",
            "return engine.where(largest > most, ..., x)",
        ),
    ),
    Exercise(
        key="18.3",
        points=2,
        answer=reached,
        trial=needed_trial,
        hidden=needed_more,
        wrong=(
            (once_used, "What somebody takes is kept, even if nobody needs that somebody. Begin at the result."),
            (one_step_back, "That is the result and what it takes. What do *those* take?"),
            (up_to, "Those are all steps before the result, whether it needs them or not."),
            (
                lambda program, result: reached(program, result)[::-1],
                "The right steps, from back to front. Keep them in the order of the program.",
            ),
            (
                lambda program, result: [step[0] for step in reached(program, result)],
                "The names are right. Asked for are the whole steps.",
            ),
            (
                lambda program, result: reached(program, result)[:-1],
                "The result's own step belongs to it.",
            ),
        ),
        hints=(
            "If you go through the program from its end, what do you know at each step?",
            "Keep a set of wanted names. A step whose name is in it is kept, and what it takes is wanted, too.",
            "for step in reversed(program):\n    if step[0] in wanted:\n        kept.append(step)\n        ...",
        ),
    ),
    Exercise(
        key="18.4",
        points=2,
        answer=joined,
        trial=joined_trial,
        hidden=joined_more,
        wrong=(
            (
                joining(lambda does, takes: (does, takes), renamed=False),
                "The second one is gone, but somebody still takes it. Give them the earlier one.",
            ),
            (
                joining(lambda does, takes: (does, takes), follow=False),
                "When `c` is `a`, `tanh(c)` is `tanh(a)`: first put the new names in, then look whether it is known.",
            ),
            (joining(lambda does, takes: does), "The same operation with other inputs is another step."),
            (joining(lambda does, takes: takes), "The same inputs with another operation are another step."),
            (
                joining(lambda does, takes: (does, tuple(sorted(takes)))),
                "sub(x, w) and sub(w, x) differ: the order of what a step takes counts.",
            ),
        ),
        hints=(
            "Going from the beginning: what has to be remembered of each step, to know it again?",
            "Two dictionaries: what was done, with the name that it got; and names with what to take instead.",
            "takes = tuple(instead.get(t, t) for t in takes)\nif (does, takes) in first:\n    ...",
        ),
    ),
    Exercise(
        key="18.5",
        points=2,
        answer=guarded,
        trial=guarded_trial,
        hidden=guarded_more,
        wrong=(
            (every_time, "It captures in every call. Keep what `capture` gives, and use it again."),
            (keyed(lambda x: x.dtype), "Another shape needs another capture."),
            (keyed(lambda x: tuple(x.shape)), "Another dtype needs another capture."),
            (keyed(lambda x: (x.numel(), x.dtype)), "2 by 3 and 3 by 2 hold as many numbers, but have other shapes."),
            (keyed(lambda x: 0), "There is one capture for everything. It holds for the first shape and dtype only."),
            (
                keyed(lambda x: str(x.tolist())),
                "Other contents made another capture. Only shape and dtype count.",
            ),
            (the_last_one, "Only the last capture is kept. When the first kind comes back, it should still be there."),
        ),
        hints=(
            "Under what can a capture be kept, so that it is found again?",
            "A dictionary from shape and dtype to what `capture` gave.",
            "kind = tuple(x.shape), x.dtype\nif kind not in captures:\n    ...\nreturn captures[kind](x)",
        ),
    ),
)
