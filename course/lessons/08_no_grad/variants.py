"""Exercise 08.1 with numbers of a class's own."""

import random
from typing import Any

from course.judging.questions import code_of, put, run


def detached(text: str, chance: random.Random) -> tuple[str, Any]:
    at, times = chance.randrange(2, 8), chance.randrange(2, 6)
    new = put(
        text,
        ("engine.tensor(3.0,", f"engine.tensor({at:.1f},"),
        ("y.detach() * w + y", chance.choice([f"y.detach() * w + {times} * y", f"{times} * y.detach() * w + y"])),
    )
    return new, run(code_of(new).replace("print", "str"))["w"].grad.item()


RULES = {"08.1": detached}
