"""Exercise 21.1 with numbers of a class's own."""

import random
from typing import Any

from course.judging import exercises
from course.judging.questions import put


def kernels(text: str, chance: random.Random) -> tuple[str, Any]:
    channels, out, size = chance.choice([2, 4, 5]), chance.choice([6, 10, 12]), chance.choice([3, 5, 7])
    stride, padding, side = chance.choice([2, 3]), chance.choice([1, 2]), chance.choice([20, 24, 40])
    layer = f"nn.Conv2d({channels}, {out}, {size}, stride={stride}, padding={padding})"
    before, shape = "nn.Conv2d(3, 8, 5, stride=2, padding=2)", f"`(1, {channels}, {side}, {side})`"
    new = put(text, (before, layer), ("`(1, 3, 32, 32)`", shape))
    return new, exercises.checks("21").by_pencil(channels, out, size, stride, padding, side)


RULES = {"21.1": kernels}
