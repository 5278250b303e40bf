"""Exercise 05.1 with numbers of a class's own."""

import operator
import random
from typing import Any

import engine
from course.judging import exercises
from course.judging.questions import put


def arrives(text: str, chance: random.Random) -> tuple[str, Any]:
    rule = chance.choice(["(a + b) * a", "(a + b) * b", "(a - b) * a", "(a - b) * b"])
    small, large = sorted(chance.sample(range(2, 9), 2))
    at = (large, small) if "-" in rule else chance.choice([(small, large), (large, small)])
    new = put(text, ("e = (a + b) * a", f"e = {rule}"), ("`a = 2`", f"`a = {at[0]}`"), ("`b = 3`", f"`b = {at[1]}`"))
    a, b = (engine.tensor(float(number), requires_grad=True) for number in at)
    slopes = tuple(slope.item() for slope in engine.autograd.grad(eval(rule, {"a": a, "b": b}), [a, b]))
    if any(map(operator.eq, slopes, exercises.find("05.1").answer)):  # the course's own would be right in part
        return arrives(text, chance)
    return new, slopes


RULES = {"05.1": arrives}
