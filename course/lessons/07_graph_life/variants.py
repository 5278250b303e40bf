"""Exercise 07.1 with numbers of a class's own."""

import random
from typing import Any

from course.judging.questions import code_of, put, run


def what_arrived(text: str, chance: random.Random) -> tuple[str, Any]:
    at, times, more = chance.randrange(2, 6), chance.randrange(2, 8), chance.randrange(1, 6)
    new = put(
        text,
        ("engine.tensor(2.0,", f"engine.tensor({at:.1f},"),
        ("(3 * w)", f"({times} * w)"),
        ("w + 1", f"w + {more}"),
    )
    seen: list[float] = []
    lines = [f"{line}\nsee(w.grad.item())" if "backward" in line else line for line in code_of(new).splitlines()]
    run("\n".join(lines), see=seen.append)
    return new, tuple(seen)


RULES = {"07.1": what_arrived}
