"""Exercise 20.1 with numbers of a class's own."""

import random
from typing import Any

from course.judging import exercises
from course.judging.questions import put


def sums(text: str, chance: random.Random) -> tuple[str, Any]:
    n, size = chance.choice([4, 8, 16, 32]), 1000 * chance.choice([16, 32, 64, 96])
    before, after = (f"Each of {ranks} ranks has a tensor of {each} bytes" for ranks, each in ((8, 8000), (n, size)))
    return put(text, (before, after)), exercises.checks("20").by_pencil(n, size)


RULES = {"20.1": sums}
