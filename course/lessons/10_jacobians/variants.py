"""Exercise 10.1 with numbers of a class's own."""

import random
from typing import Any

import engine
from course.judging.questions import put


def jacobian(text: str, chance: random.Random) -> tuple[str, Any]:
    (at0, at1), times = chance.sample(range(2, 10), 2), chance.randrange(2, 6)
    sign = chance.choice("+-")
    new = put(
        text,
        ("y_1 = x_0 + x_1", rf"y_1 = x_0 {sign} {times} \cdot x_1"),
        ("$x_0 = 2$", f"$x_0 = {at0}$"),
        ("$x_1 = 3$", f"$x_1 = {at1}$"),
    )
    factor = times if sign == "+" else -times
    x = engine.tensor([float(at0), float(at1)])
    found = engine.autograd.functional.jacobian(lambda x: engine.stack([x[0] * x[1], x[0] + factor * x[1]]), x)
    return new, found.tolist()


RULES = {"10.1": jacobian}
