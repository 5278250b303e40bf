"""Exercise 16.1 with numbers of a class's own."""

import random
from typing import Any

import engine
from course.judging.questions import code_of, other_names, put, run


def in_16_bits(text: str, chance: random.Random) -> tuple[str, Any]:
    new, names = other_names(text, chance, "abcde", '{"b", "e"}')
    second = chance.choice(["{a} + {a}", "{a} * {a}", "{a} + {x}"]).format(x="x", **names)
    new = put(new, (f"{names['a']} + {names['a']}", second))
    x = engine.ones(2, 2)
    with engine.autocast("cpu", dtype=engine.bfloat16):
        found = run(code_of(new), x=x, w=x)
    answer = {name for name in "abcde" if found[name].dtype == engine.bfloat16}
    return (text if answer == {"b", "e"} else new), answer  # the example that the text gives is not asked for


RULES = {"16.1": in_16_bits}
