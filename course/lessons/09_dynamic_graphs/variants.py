"""Exercise 09.1 with numbers of a class's own."""

import random
from typing import Any

import engine
from course.judging.questions import code_of, put, run


def rounds(text: str, chance: random.Random) -> tuple[str, Any]:
    at, times, rounds = chance.randrange(2, 5), chance.randrange(2, 5), chance.randrange(2, 5)
    limit = at * times**rounds - chance.randrange(1, at * times ** (rounds - 1))
    new = put(text, ("`x = 2`", f"`x = {at}`"), ("x < 20", f"x < {limit}"), ("x * 3", f"x * {times}"))
    x = engine.tensor(float(at), requires_grad=True)
    (slope,) = engine.autograd.grad(run(code_of(new))["grow"](x), x)
    return new, slope.item()


RULES = {"09.1": rounds}
