"""Exercise 02.1 with numbers of a class's own."""

import random
import re
from typing import Any

import numpy as np


def meetings(text: str, chance: random.Random) -> tuple[str, Any]:
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


RULES = {"02.1": meetings}
