"""Exercise 04.1 with numbers of a class's own."""

import random
from typing import Any

import engine
from course.judging.questions import put


def by_hand(text: str, chance: random.Random) -> tuple[str, Any]:
    a, lowest, more, c = (
        chance.randrange(2, 6),
        chance.randrange(1, 6),
        chance.randrange(1, 4),
        chance.randrange(1, 9),
    )
    machine, at = f"{a} * x**2 - {2 * a * lowest} * x + {c}", lowest + more
    new = put(text, ("3 * x**2 - 12 * x + 1", machine), ("`x = 4`", f"`x = {at}`"))
    x = engine.tensor(float(at), requires_grad=True)
    (slope,) = engine.autograd.grad(eval(machine, {"x": x}), x)
    return new, (slope.item(), float(lowest))


RULES = {"04.1": by_hand}
