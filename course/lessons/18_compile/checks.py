"""Lesson 18, what a compiler does with a function: the exercises' trials, oracles, usual mistakes and hints."""

import gc
import tracemalloc

import engine
from course.judging.words import Exercise, changed, mistakes, properties

# 18.2


def program_of(text):
    """Make a program of its steps: the name, what it does, what it takes."""
    return [(name, does, tuple(takes)) for name, does, *takes in map(str.split, text.split(", "))]


SIX = "a exp x, b mul x w, c tanh b, d sum a, e neg b, f add c e"


def needed_trial(needed):
    yield 'the program of the exercise, "c"', needed, program_of(SIX)[:3], "c"
    yield 'six steps, "f" = c + e; c and e both take b', needed, program_of(SIX), "f"
    yield 'the same, "d" = sum of a', needed, program_of(SIX), "d"
    yield 'the same, "b" = x * w', needed, program_of(SIX), "b"
    # A step is met before one above it; the order is not that of the names; a name is a part of another one.
    yield 'p = exp(x), q = -x, r = q + p; "r"', needed, program_of("p exp x, q neg x, r add q p"), "r"
    yield 'last = exp(x), first = -last; "first"', needed, program_of("last exp x, first neg last"), "first"
    yield 't = exp(x), t1 = x * w, t12 = -t1; "t12"', needed, program_of("t exp x, t1 mul x w, t12 neg t1"), "t12"
    chain = [(f"t{n}", "neg", (f"t{n - 1}" if n else "x",)) for n in range(50)]
    yield "", needed, chain, "t20"
    yield "", needed, [*chain, ("s", "add", ("t3", "t40"))], "s"


def as_steps(program):
    """Return a program in the form in which it is compared: steps and what they take as tuples."""
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


def as_met(program, result):
    """List the steps in the order in which a search from the result leaves them."""
    steps, found = {step[0]: step for step in program}, []

    def visit(name):
        if name in steps and steps[name] not in found:
            for taken in steps[name][2]:
                visit(taken)
            found.append(steps[name])

    visit(result)
    return found


def with_repeats(program, result):
    """List the same, and a step once for each that takes it."""
    steps = {step[0]: step for step in program}
    if result not in steps:
        return []
    return [step for taken in steps[result][2] for step in with_repeats(program, taken)] + [steps[result]]


def once_used(program, result):
    taken = {t for _, _, takes in program for t in takes}
    return [step for step in program if step[0] in taken or step[0] == result]


def from_the_end(program, result):
    wanted, kept = {result}, []
    for step in reversed(program):
        if step[0] in wanted:
            kept.insert(0, step)
            wanted.update(step[2])
    return kept


def by_first_inputs(program, result):
    """Follow the first input of each step alone to what leads to the result."""
    return reached([(name, does, takes[:1]) for name, does, takes in program], result)


def inputs_as_steps(program, result):
    """Whatever is taken is looked up among the steps, the inputs too."""
    steps, seen, todo = {step[0]: step for step in program}, set(), [result]
    while todo:
        seen.add(name := todo.pop())
        todo.extend(steps[name][2])
    return [step for step in program if step[0] in seen]


def those_that_take_it(program, result):
    reached_now = {result}
    for name, _, takes in program:
        if reached_now.intersection(takes):
            reached_now.add(name)
    return [step for step in program if step[0] in reached_now]


# 18.3


def joined_trial(joined):
    twice = program_of("a mul x w, b tanh a, c mul x w, d tanh c, e add b d")
    yield "the program of the exercise", joined, twice
    alike = program_of("a mul x w, b add x w, c sub x w, d sub w x, e mul c d")
    yield "five steps that all differ; sub(x, w) is not sub(w, x)", joined, alike
    yield "three times exp(x)", joined, [(n, "exp", ("x",)) for n in "abc"] + [("d", "add", ("b", "c"))]
    both = [(f"{side}{n}", "neg", (f"{side}{n - 1}" if n else "x",)) for n in range(6) for side in "lr"]
    yield "", joined, [*both, ("s", "sub", ("l5", "r5"))]


def the_later_one(program):
    """Of two that are the same the last one stays."""
    last = {step[1:]: step[0] for step in program}
    return [step for step in program if last[step[1:]] == step[0]]


def the_later_one_everywhere(program):
    """Of two that are the same the last one stays, and all take its name."""
    last = {(does, takes): name for name, does, takes in program}
    names = {name: last[does, takes] for name, does, takes in program}
    return [(name, does, tuple(names.get(t, t) for t in takes)) for name, does, takes in program if names[name] == name]


def names_in(program):
    return [name for name, _, _ in program]


def takes_what_is_gone(did):
    """Tell whether a step takes a name that no step of the program makes any more."""
    gone = set(names_in(did.before["0"])) - set(names_in(did.result))
    return any(gone.intersection(takes) for _, _, takes in did.result)


def and_needed(program):
    kept = joined(program)
    taken = {name for _, _, takes in kept for name in takes}
    return [step for step in kept if step[0] in taken or step is kept[-1]]


def in_one_round(program):
    kept, first, instead = [], {}, {}
    for name, does, takes in program:
        now = tuple(instead.get(t, t) for t in takes)
        known = does, now
        instead[name] = first.setdefault(known, name)
        if instead[name] == name:
            kept.append((name, does, now))
    return kept


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


# 18.4

# Numbers of 4 bytes: beside them, what else a program needs is little, views of 350 pieces too.
LONG = 120_000
DOUBLED = (lambda t: t * 2,)
BENT = (engine.exp, lambda t: t * 0.25 - 1.3, engine.tanh)


def by_pieces(attempt, steps, x, size):
    """Return the mean, the sizes of a step's pieces, their sum, and of a long row whether another one is made."""
    sizes = []

    def noting(step):
        def noted(piece):
            sizes.append(piece.numel())
            return step(piece)

        return noted

    mean = attempt([noting(step) for step in steps], x, size)
    found = {
        "the mean": mean.item() if isinstance(mean, engine.Tensor) and mean.numel() == 1 else mean,
        "a step got more than size numbers": max(sizes, default=0) > size,
        "numbers that went through the steps": sum(sizes),
    }
    if len(x) >= LONG:
        # The least of three: what else happens to be allocated meanwhile does not count.
        found["a whole row was made"] = min(memory_of(attempt, steps, x, size) for _ in range(3)) > 3 * len(x)
    return found


def memory_of(function, *arguments):
    """Measure the most bytes that were allocated at a time during a call."""
    gc.collect()
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def pieces_trial(mean_in_pieces):
    row = engine.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 9.0])
    yield "x has 6 numbers, size = 2, the steps: t * 2", by_pieces, mean_in_pieces, DOUBLED, row, 2
    yield "the same, size = 4", by_pieces, mean_in_pieces, DOUBLED, row.clone(), 4
    x = engine.linspace(-2.5, 3.0, 10)
    yield "x has 10 numbers, size = 3, three steps: exp, t * 0.25 - 1.3, tanh", by_pieces, mean_in_pieces, BENT, x, 3
    yield "the same, size = 100", by_pieces, mean_in_pieces, BENT, x.clone(), 100
    long_row = engine.linspace(-2.5, 3.0, LONG)
    yield "120,000 numbers, size = 350: the same, and the memory", by_pieces, mean_in_pieces, BENT, long_row, 350
    yield "", by_pieces, mean_in_pieces, BENT, engine.linspace(-1.7, 0.3, 17), 5
    yield "", by_pieces, mean_in_pieces, (engine.sigmoid, DOUBLED[0]), engine.linspace(0.0, 3.1, 9), 1


def through(steps, piece):
    for step in steps:
        piece = step(piece)
    return piece


def mean_in_pieces(steps, x, size):
    return sum(through(steps, piece).sum().item() for piece in x.split(size)) / x.numel()


def whole_pieces_alone(steps, x, size):
    whole = len(x) // size * size
    return sum(through(steps, x[i : i + size]).sum() for i in range(0, whole, size)) / len(x)


def overlapping(steps, x, size):
    return sum(through(steps, x[i : i + size]).sum() for i in range(0, len(x), max(1, size // 2))) / len(x)


def into_x(steps, x, size):
    """The loop's pieces take the name of the row."""
    total = 0.0
    for i in range(0, len(x), size):
        x = through(steps, x[i : i + size])
        total += x.sum()
    return total / max(len(x), 1)


def is_the_mean(did):
    return abs(did.result["the mean"] - did.expected["the mean"]) < 1e-3


def from_the_start(steps, x, size):
    total = 0.0
    for piece in x.split(size):
        for step in steps:
            result = step(piece)
        total += result.sum()
    return total / len(x)


EXERCISES = (
    Exercise(
        key="18.1",
        points=1,
        answer=(6, 5, 4, 1),
        wrong=mistakes(
            (5, 4, 3, 1),
            "The sum is missing in all four: it is a step, too.",
            (8, 7, 6, 1),
            "You have counted `x` and `w`. They are inputs, and no step computes them.",
            (7, 6, 5, 1),
            "Neither `return` nor giving a result a name is a step. Count the operations alone.",
            (4, 3, 2, 1),
            "You have counted the lines. Count every operation: `c` has two, and the last line two more.",
            (6, 6, 5, 1),
            "*joined* takes a step away: `x * w` is there twice, with the same inputs.",
            (6, 1, 1, 1),
            "You count how many steps *go* in a pass. Count those that are left after it.",
            (4, 4, 4, 1),
            "The capture writes down everything, even what nobody needs. It is the passes that take steps away.",
        ),
        entries={
            1: (
                (5, "`x * w` is in two lines, so it is written down twice; and the sum is a step, too."),
                (7, "Giving a result a name is not a step. Count the operations."),
                "Count every operation: `*`, `exp`, `*`, `tanh`, `+`, `sum`.",
            ),
            2: (
                (4, "`exp` is still there: *joined* takes away only what an earlier step has done."),
                (6, "`x * w` is there twice, with the same inputs. Once is enough."),
            ),
            3: (
                (5, "Nobody takes `b`. This pass takes it away."),
                (3, "`x * w`, `tanh`, `+`: and what about the sum?"),
            ),
            4: (
                (
                    2,
                    "The sum can join in: the loop adds up as it goes. There is no division, which would have to wait.",
                ),
                (4, "That is how many steps there are. They are done together, in one loop."),
                (3, "The steps are done together, in one loop, and the sum can join in."),
            ),
        },
        hints=(
            "Go through the function line by line, and write a step for each operation.",
            "One of the products goes, then the exponential. What is left takes each number by itself, and the sum "
            "joins in.",
            "6 are written down. The second product goes, then the exponential. The rest is one loop.",
        ),
        understood="The capture writes everything down; each pass does away with one kind of waste.",
    ),
    Exercise(
        key="18.2",
        points=2,
        answer=reached,
        trial=needed_trial,
        wrong=mistakes(
            once_used,
            "You keep what some step takes, even if nobody needs *that* step. Begin at the result.",
            changed(from_the_end, "wanted.update", "step[0] == result and wanted.update"),
            "That is the result and what it takes. What do *those* take?",
            changed(from_the_end, "reversed(program)", "program"),
            "Only the result's own step is there. You go through the program from its beginning, and at that point "
            "nobody has asked for what the result takes. Start from the end.",
            lambda program, result: [
                step for step in program if step[0] in {s[0] for s in by_first_inputs(program, result)}
            ],
            "You follow only the first thing that a step takes. It may take several, and all of them are needed.",
            changed(from_the_end, "step[0] in wanted", "kept or step[0] == result"),
            "Those are all the steps before the result, whether it needs them or not.",
            changed(from_the_end, "{result}", "result", "wanted.update(step[2])", 'wanted += " ".join(["", *step[2]])'),
            'You find a name as a *part* of another one: for two strings, `"t" in "t1"` is true. Keep the wanted '
            "names in a set.",
            those_that_take_it,
            "Those are the steps that take the result. Go the other way: what does the result take?",
            lambda program, result: reached(program, result)[::-1],
            "These are the right steps, from back to front. Keep them in the order of the program.",
            with_repeats,
            "A step that two others take is in your list twice. Once is enough.",
            lambda program, result: [step[0] for step in reached(program, result)],
            "The names are right. Return the whole steps.",
            lambda program, result: sorted(reached(program, result)),
            "These are the right steps, sorted by their names. Keep them in the order of the program.",
            lambda program, result: reached(program, result)[:-1],
            "The result's own step is missing. It belongs to what is needed.",
        ),
        properties=properties(
            inputs_as_steps,
            lambda did: did.error not in ("KeyError", "StopIteration", "IndexError"),
            "You look for a step for every name. But `x` and `w` are inputs, and no step makes them: skip them.",
            as_met,
            lambda did: did.result == did.expected or sorted(did.result) != sorted(did.expected),
            "These are the right steps, but not in the order of the program.",
        ),
        hints=(
            "If you go through the program from its end, what do you know at each step?",
            "Keep a set of wanted names. A step whose name is in it is kept, and what it takes is wanted from then on.",
            "for step in reversed(program):\n    if step[0] in wanted:\n        kept.append(step)\n        ...",
        ),
        understood=(
            "If you read a program from its end, you know at each step whether anybody needs it: one round is enough."
        ),
    ),
    Exercise(
        key="18.3",
        points=2,
        answer=joined,
        trial=joined_trial,
        wrong=mistakes(
            changed(in_one_round, "tuple(instead.get(t, t) for t in takes)", "takes"),
            "The second one is gone, but a later step still takes it. Put the earlier one's name there.",
            changed(in_one_round, "known = does, now", "known = does, takes"),
            "If `c` is `a`, then `tanh(c)` is `tanh(a)`: put the new names in first, and then see whether you know "
            "the step.",
            the_later_one,
            "Of two steps that are the same the *earlier* one stays, and the later ones take its name.",
            changed(
                in_one_round,
                "setdefault(known, name)",
                "get(known, name); first[known] = name",
                "instead[name] == name",
                "True",
            ),
            "The new names are there, but no step has gone. Leave out a step that is the same as an earlier one.",
            list,
            "The program comes back as it was. Compare what a step does and what it takes, without its name.",
            changed(
                in_one_round,
                "first.setdefault(known, name)",
                "kept[-1][0] if kept and kept[-1][1:] == known else name",
            ),
            "You compare each step only with the one just before it. Any earlier step may be the same.",
            and_needed,
            "You leave out steps that nobody takes as well. That is the pass *needed*; here only what is done "
            "twice goes.",
            changed(in_one_round, "known = does, now", "known = does"),
            "The same operation with different inputs is a different step.",
            changed(in_one_round, "known = does, now", "known = now"),
            "A different operation on the same inputs is a different step.",
            changed(in_one_round, "known = does, now", "known = does, tuple(sorted(now))"),
            "sub(x, w) and sub(w, x) differ: the order of what a step takes counts.",
        ),
        properties=properties(
            changed(
                in_one_round,
                "tuple(instead.get(t, t) for t in takes)",
                "(instead.get(takes[0], takes[0]), *takes[1:])",
            ),
            lambda did: not takes_what_is_gone(did),
            "A step takes a name whose step is gone. Put the earlier one's name in *every* place where a later "
            "step takes it.",
            the_later_one_everywhere,
            lambda did: did.expected[0][0] in names_in(did.result),
            "The first of two steps that are the same is gone. The *earlier* one stays, and the later ones take "
            "its name.",
        ),
        hints=(
            "You go through the program from its beginning. What must you remember of each step to recognize it when "
            "it comes again?",
            "Keep two dictionaries: one from what a step does to its name, and one from names to what to take instead.",
            "takes = tuple(instead.get(t, t) for t in takes)\nif (does, takes) in first:\n    ...",
        ),
        understood="Two steps are the same if they do the same with the same inputs, once these have their new names.",
    ),
    Exercise(
        key="18.4",
        points=2,
        answer=mean_in_pieces,
        trial=pieces_trial,
        wrong=mistakes(
            lambda steps, x, size: sum(through(steps, piece).mean() for piece in x.split(size)) / len(x.split(size)),
            "That is the mean of the pieces' means. The last piece is shorter, and its numbers count too much: add "
            "up sums, and divide once.",
            whole_pieces_alone,
            "You leave out the last piece, which is shorter.",
            lambda steps, x, size: through(steps, x).mean(),
            "Every step got the whole row at once.",
            lambda steps, x, size: sum(through(steps, piece).sum() for piece in x.split(size)),
            "That is the sum. Divide it by how many numbers there are.",
            from_the_start,
            "Every step gets the piece itself. Give each step the result of the one before it.",
            lambda steps, x, size: through(steps, x[:size]).mean(),
            "That is the first piece alone.",
            lambda steps, x, size: through(steps, x[:size]).sum() / len(x),
            "That is the first piece alone. Is the `return` inside the loop?",
            lambda steps, x, size: [through(steps, piece).sum() for piece in x.split(size)][-1] / len(x),
            "That is the last piece alone. *Add* each piece's sum to what is there.",
            lambda steps, x, size: sum(through(steps, piece).mean() for piece in x.split(size)) / len(x),
            "You add up the pieces' means, and divide by how many numbers there are. Add up their sums.",
            lambda steps, x, size: (
                sum(through(steps, piece).sum() / size for piece in x.split(size)) / (len(x) // size)
            ),
            "You divide by `size` for each piece, as if all were full. Add up sums, and divide once, by `len(x)`.",
            lambda steps, x, size: sum(through(steps, piece).sum() for piece in x.split(size)) / len(x.split(size)),
            "You divide the sum by the number of *pieces*. Divide by how many numbers there are: `len(x)`.",
            lambda steps, x, size: sum(through(steps, piece).sum() for piece in x.split(size)) / size,
            "You divide by the size of a piece. How many numbers are there in all?",
        ),
        properties=properties(
            lambda steps, x, size: sum(through(steps, x[i::size]).sum() for i in range(size)) / len(x),
            lambda did: not (did.result["a step got more than size numbers"] and is_the_mean(did)),
            "The mean is right. But a step gets more than `size` numbers at a time.",
            overlapping,
            lambda did: (
                did.result["numbers that went through the steps"] <= did.expected["numbers that went through the steps"]
            ),
            "More numbers go through the steps than there are: your pieces overlap. Move on by a whole piece, "
            "`range(0, len(x), size)`.",
            into_x,
            lambda did: (
                did.result["numbers that went through the steps"] >= did.expected["numbers that went through the steps"]
            ),
            "Fewer numbers go through the steps than there are. Do you call a piece `x`, so that the row is lost "
            "when the next one comes? Give the piece a name of its own.",
            lambda steps, x, size: engine.cat([through(steps, piece) for piece in x.split(size)]).mean(),
            lambda did: not (did.result["a whole row was made"] and is_the_mean(did)),
            "The mean is right. But at some moment as much is in memory as a whole row takes, and the point is to save "
            "memory: take a piece of `size` numbers through *all* the steps, and keep only its sum.",
        ),
        hints=(
            "Which loop should be outside, the one over the pieces or the one over the steps?",
            "The loop over the pieces. Take each piece through all the steps, and add its sum to a total.",
            "for i in range(0, len(x), size):\n    piece = x[i : i + size]\n    for step in steps:\n        ...\n    "
            "total += piece.sum()",
        ),
        understood="With the loop over the pieces on the outside, no step makes a whole row: that is fusion.",
    ),
)
