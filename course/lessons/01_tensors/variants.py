"""Exercise 01.1 with numbers of a class's own."""

import random
from typing import Any

import numpy as np

from course.judging.questions import put


def shapes(text: str, chance: random.Random) -> tuple[str, Any]:
    days, times, kinds = chance.sample(range(3, 8), 3)
    readings = np.zeros((days, times, kinds))
    parts = (readings[0], readings[:, 1:3], readings[:, :, 0], readings[1, 2])
    return put(text, ("(2, 4, 3)", f"({days}, {times}, {kinds})")), tuple(part.shape for part in parts)


RULES = {"01.1": shapes}
