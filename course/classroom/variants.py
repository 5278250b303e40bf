"""Exercises with numbers of a class's own: for each whose answer is a value, the same question, made by a seed.

A rule takes the text as it stands in `source/solutions/` and gives another one with its answer, which is computed, by
the engine wherever the question is about what it does. `python -m course class release` lays both into the class's
folder, which nobody but the teacher has.
"""

import operator
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import engine
from course.judging import exercises

Rule = Callable[[str, random.Random], tuple[str, Any]]


class Variant(NamedTuple):
    """An exercise with other numbers."""

    text: str  # of the cell with the question
    answer: Any


def keys() -> list[str]:
    """The exercises whose answer is a value."""
    found = (exercises.of_lesson(lesson) for lesson in exercises.lessons())
    return [key for rows in found for key, exercise in rows.items() if not callable(exercise.answer)]


def variant(key: str, text: str, seed: int) -> Variant:
    """The exercise of a seed; its answer is never the one that the course itself asks for."""
    given = exercises.find(key).answer
    for attempt in range(100):
        new, answer = RULES[key](text, random.Random(f"{seed} {key} {attempt}"))
        if answer != given and new != text:
            return Variant(new, answer)
    raise AssertionError(f"the rule of {key} gives nothing new")


def _put(text: str, *pairs: tuple[str, str]) -> str:
    """A text with each first part replaced by the second, once; what is not there is a mistake of the rule's."""
    for old, new in pairs:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} stands {text.count(old)} times in the exercise")
        text = text.replace(old, new)
    return text


def _code(text: str) -> str:
    """The lines of code in a question."""
    return "\n".join(line[4:] for line in text.splitlines() if line.startswith("    ") or not line.strip()).strip()


def _run(code: str, **names: Any) -> dict[str, Any]:
    names = {"engine": engine, "F": engine.nn.functional, **names}
    with engine.enable_grad():
        exec(code, names)
    return names


def _shapes(text: str, chance: random.Random) -> tuple[str, Any]:
    days, times, kinds = chance.sample(range(3, 8), 3)
    readings = np.zeros((days, times, kinds))
    parts = (readings[0], readings[:, 1:3], readings[:, :, 0], readings[1, 2])
    return _put(text, ("(2, 4, 3)", f"({days}, {times}, {kinds})")), tuple(part.shape for part in parts)


def _meetings(text: str, chance: random.Random) -> tuple[str, Any]:
    p, q, r = chance.sample(range(2, 8), 3)
    pairs = [((p, 1), (q,)), ((p, q), (q,)), ((p, q), (p,)), ((r, 1, q), (p, 1)), ((q,), (q, 1))]
    chance.shuffle(pairs)
    answers = list[Any]()
    for one, other in pairs:
        try:
            answers.append(np.broadcast_shapes(one, other))
        except ValueError:
            answers.append("error")
    lines = iter(pairs)
    return re.sub(r"(?m)^(\d)\. .*$", lambda m: "{}. {} and {}".format(m[1], *next(lines)), text), tuple(answers)


SUMS = ("i + f", "i + h", "h + f", "h + b", "h * 3.5", "i / i", "i + b", "b + f", "b * 2", "i * 2", "i * 0.5", "h / i")


def _types(text: str, chance: random.Random) -> tuple[str, Any]:
    chosen = chance.sample(SUMS, 6)
    kinds = {"i": engine.int64, "h": engine.float16, "b": engine.bfloat16, "f": engine.float32}
    tensors = {name: engine.ones(3, dtype=dtype) for name, dtype in kinds.items()}
    found = [str(eval(one, dict(tensors)).dtype).rpartition(".")[2] for one in chosen]
    before = "`i + f`, `i + h`, `h + f`, `h + b`, `h * 3.5`, `i / i`"
    return _put(text, (before, ", ".join(f"`{one}`" for one in chosen))), tuple(found)


def _by_hand(text: str, chance: random.Random) -> tuple[str, Any]:
    a, lowest, more, c = (
        chance.randrange(2, 6),
        chance.randrange(1, 6),
        chance.randrange(1, 4),
        chance.randrange(1, 9),
    )
    machine, at = f"{a} * x**2 - {2 * a * lowest} * x + {c}", lowest + more
    new = _put(text, ("3 * x**2 - 12 * x + 1", machine), ("`x = 4`", f"`x = {at}`"))
    x = engine.tensor(float(at), requires_grad=True)
    (slope,) = engine.autograd.grad(eval(machine, {"x": x}), x)
    return new, (slope.item(), float(lowest))


def _arrives(text: str, chance: random.Random) -> tuple[str, Any]:
    rule = chance.choice(["(a + b) * a", "(a + b) * b", "(a - b) * a", "(a - b) * b"])
    small, large = sorted(chance.sample(range(2, 9), 2))
    at = (large, small) if "-" in rule else chance.choice([(small, large), (large, small)])
    new = _put(text, ("e = (a + b) * a", f"e = {rule}"), ("`a = 2`", f"`a = {at[0]}`"), ("`b = 3`", f"`b = {at[1]}`"))
    a, b = (engine.tensor(float(number), requires_grad=True) for number in at)
    slopes = tuple(slope.item() for slope in engine.autograd.grad(eval(rule, {"a": a, "b": b}), [a, b]))
    if any(map(operator.eq, slopes, exercises.find("05.1").answer)):  # the course's own would be right in part
        return _arrives(text, chance)
    return new, slopes


def _other_names(text: str, chance: random.Random, names: str, in_words: str) -> tuple[str, dict[str, str]]:
    """A question whose code calls things otherwise; `in_words`: names that the sentences give as an example."""
    new = dict(zip(names, chance.sample(names, len(names)), strict=True))

    def renamed(line: str) -> str:
        return re.sub(rf"(?<![\w.])[{names}](?![\w(])", lambda m: new[m[0]], line)

    lines = [renamed(line) if line.startswith("    ") else line for line in text.splitlines()]
    assert in_words in text
    return "\n".join(lines), new


def _filled(text: str, chance: random.Random) -> tuple[str, Any]:
    text, _ = _other_names(text, chance, "abcdefg", '{"a", "b"}')
    if chance.random() < 0.5:  # another one is asked for notes from the start
        text = re.sub(r"(?m)^(    \w = engine.ones\(3)\)$", r"\1, requires_grad=True)", text)
    found = _run(_code(text))
    return text, {name for name in "abcdefg" if found[name].is_leaf and found[name].grad is not None}


def _what_arrived(text: str, chance: random.Random) -> tuple[str, Any]:
    at, times, more = chance.randrange(2, 6), chance.randrange(2, 8), chance.randrange(1, 6)
    new = _put(
        text,
        ("engine.tensor(2.0,", f"engine.tensor({at:.1f},"),
        ("(3 * w)", f"({times} * w)"),
        ("w + 1", f"w + {more}"),
    )
    seen: list[float] = []
    lines = [f"{line}\nsee(w.grad.item())" if "backward" in line else line for line in _code(new).splitlines()]
    _run("\n".join(lines), see=seen.append)
    return new, tuple(seen)


def _detached(text: str, chance: random.Random) -> tuple[str, Any]:
    at, times = chance.randrange(2, 8), chance.randrange(2, 6)
    new = _put(
        text,
        ("engine.tensor(3.0,", f"engine.tensor({at:.1f},"),
        ("y.detach() * w + y", chance.choice([f"y.detach() * w + {times} * y", f"{times} * y.detach() * w + y"])),
    )
    return new, _run(_code(new).replace("print", "str"))["w"].grad.item()


def _rounds(text: str, chance: random.Random) -> tuple[str, Any]:
    at, times, rounds = chance.randrange(2, 5), chance.randrange(2, 5), chance.randrange(2, 5)
    limit = at * times**rounds - chance.randrange(1, at * times ** (rounds - 1))
    new = _put(text, ("`x = 2`", f"`x = {at}`"), ("x < 20", f"x < {limit}"), ("x * 3", f"x * {times}"))
    x = engine.tensor(float(at), requires_grad=True)
    (slope,) = engine.autograd.grad(_run(_code(new))["grow"](x), x)
    return new, slope.item()


def _jacobian(text: str, chance: random.Random) -> tuple[str, Any]:
    (at0, at1), times = chance.sample(range(2, 10), 2), chance.randrange(2, 6)
    sign = chance.choice("+-")
    new = _put(
        text,
        ("y_1 = x_0 + x_1", rf"y_1 = x_0 {sign} {times} \cdot x_1"),
        ("$x_0 = 2$", f"$x_0 = {at0}$"),
        ("$x_1 = 3$", f"$x_1 = {at1}$"),
    )
    factor = times if sign == "+" else -times
    x = engine.tensor([float(at0), float(at1)])
    found = engine.autograd.functional.jacobian(lambda x: engine.stack([x[0] * x[1], x[0] + factor * x[1]]), x)
    return new, found.tolist()


def _in_16_bits(text: str, chance: random.Random) -> tuple[str, Any]:
    new, names = _other_names(text, chance, "abcde", '{"b", "e"}')
    second = chance.choice(["{a} + {a}", "{a} * {a}", "{a} + {x}"]).format(x="x", **names)
    new = _put(new, (f"{names['a']} + {names['a']}", second))
    x = engine.ones(2, 2)
    with engine.autocast("cpu", dtype=engine.bfloat16):
        found = _run(_code(new), x=x, w=x)
    answer = {name for name in "abcde" if found[name].dtype == engine.bfloat16}
    return (text if answer == {"b", "e"} else new), answer  # the example that the text gives is not asked for


def _left(text: str, chance: random.Random) -> tuple[str, Any]:
    size = chance.choice([2, 3, 5, 6, 8])  # MiB, for the 4 of the text
    new = _put(text, ("1024 by 1024", f"1024 by {size * 256}"), ("4 MiB", f"{size} MiB"))
    return new, tuple(size * mib // 4 for mib in exercises.find("17.1").answer)


def _steps(text: str, chance: random.Random) -> tuple[str, Any]:
    how = chance.sample(["exp", "tanh", "sin", "cos"], 3)
    unused, again = chance.randrange(1, 3), chance.randrange(1, 3)
    names = "bcd"[: unused + 1]
    lines = ["    def f(x, w):", "        a = x * w"]
    lines += [f"        {name} = x.{one}()" for name, one in zip(names[:-1], how, strict=False)]
    lines += [f"        {names[-1]} = (x * w).{how[2]}()"]
    lines += [f"        return ({' + '.join(['a', names[-1], 'x * w'][: 1 + again])}).sum()"]
    begin, end = text.index("    def f"), text.index("Fill in")
    written = 1 + unused + 2 + (2 * again - 1) + 1  # a; the unused; a product and its function; what is added; the sum
    joined = written - again
    return text[:begin] + "\n".join(lines) + "\n\n" + text[end:], (written, joined, joined - unused, 1)


def _captures(text: str, chance: random.Random) -> tuple[str, Any]:
    calls = re.findall(r"(?m)^    (area\(.+\))$", text)
    rest = [*calls[1:], "area(engine.zeros(4).double(), 2.0)", "area(engine.zeros(4), 3.0)"]
    calls_now = [calls[0], *chance.sample(rest, 5)]
    lines = iter(calls_now)
    new = re.sub(r"(?m)^    area\(.+\)$", lambda _: f"    {next(lines)}", text)
    area, counts = engine.compile(lambda x, scale: (x * scale).sum()), []
    for call in calls_now:
        eval(call, {"area": area, "engine": engine})
        counts.append(len(area.entries))
    return new, tuple(counts)


def _sums(text: str, chance: random.Random) -> tuple[str, Any]:
    from course.checks.lesson_20 import by_pencil

    n, size = chance.choice([4, 8, 16, 32]), 1000 * chance.choice([16, 32, 64, 96])
    before, after = (f"{ranks} ranks, and each has a tensor of {each} bytes" for ranks, each in ((8, 8000), (n, size)))
    return _put(text, (before, after)), by_pencil(n, size)


def _kernels(text: str, chance: random.Random) -> tuple[str, Any]:
    from course.checks.lesson_21 import by_pencil

    channels, out, size = chance.choice([2, 4, 5]), chance.choice([6, 10, 12]), chance.choice([3, 5, 7])
    stride, padding, side = chance.choice([2, 3]), chance.choice([1, 2]), chance.choice([20, 24, 40])
    layer = f"nn.Conv2d({channels}, {out}, {size}, stride={stride}, padding={padding})"
    before, shape = "nn.Conv2d(3, 8, 5, stride=2, padding=2)", f"`(1, {channels}, {side}, {side})`"
    new = _put(text, (before, layer), ("`(1, 3, 32, 32)`", shape))
    return new, by_pencil(channels, out, size, stride, padding, side)


RULES: dict[str, Rule] = {
    "01.1": _shapes,
    "02.1": _meetings,
    "03.1": _types,
    "04.1": _by_hand,
    "05.1": _arrives,
    "06.1": _filled,
    "07.1": _what_arrived,
    "08.1": _detached,
    "09.1": _rounds,
    "10.1": _jacobian,
    "16.1": _in_16_bits,
    "17.1": _left,
    "18.1": _steps,
    "19.1": _captures,
    "20.1": _sums,
    "21.1": _kernels,
}
