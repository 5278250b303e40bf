"""Exercise 03.1 with numbers of a class's own."""

import random
from typing import Any

import engine
from course.judging.questions import put

SUMS = ("i + f", "i + h", "h + f", "h + b", "h * 3.5", "i / i", "i + b", "b + f", "b * 2", "i * 2", "i * 0.5", "h / i")


def types(text: str, chance: random.Random) -> tuple[str, Any]:
    chosen = chance.sample(SUMS, 6)
    kinds = {"i": engine.int64, "h": engine.float16, "b": engine.bfloat16, "f": engine.float32}
    tensors = {name: engine.ones(3, dtype=dtype) for name, dtype in kinds.items()}
    found = [str(eval(one, dict(tensors)).dtype).rpartition(".")[2] for one in chosen]
    before = "`i + f`, `i + h`, `h + f`, `h + b`, `h * 3.5`, `i / i`"
    return put(text, (before, ", ".join(f"`{one}`" for one in chosen))), tuple(found)


RULES = {"03.1": types}
