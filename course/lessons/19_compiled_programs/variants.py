"""Exercise 19.1 with numbers of a class's own."""

import random
import re
from typing import Any

import engine


def captures(text: str, chance: random.Random) -> tuple[str, Any]:
    calls = re.findall(r"(?m)^    (area\(.+\))$", text)
    rest = [*calls[1:], "area(engine.zeros(4).double(), 2.0)", "area(engine.zeros(4), 3.0)"]
    calls_now = [calls[0], *chance.sample(rest, 5)]
    lines = iter(calls_now)
    new = re.sub(r"(?m)^    area\(.+\)$", lambda _: f"    {next(lines)}", text)
    area, counts = engine.compile(lambda x, scale: (x * scale).sum()), []
    for call in calls_now:
        eval(call, {"area": area, "engine": engine})
        counts.append(len(area.entries))
    return new, tuple(counts)


RULES = {"19.1": captures}
