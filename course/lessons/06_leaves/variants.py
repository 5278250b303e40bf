"""Exercise 06.1 with numbers of a class's own."""

import random
import re
from typing import Any

from course.judging.questions import code_of, other_names, run


def filled(text: str, chance: random.Random) -> tuple[str, Any]:
    text, _ = other_names(text, chance, "abcdefg", '{"a", "b"}')
    if chance.random() < 0.5:  # another one is asked for notes from the start
        text = re.sub(r"(?m)^(    \w = engine.ones\(3)\)$", r"\1, requires_grad=True)", text)
    found = run(code_of(text))
    return text, {name for name in "abcdefg" if found[name].is_leaf and found[name].grad is not None}


RULES = {"06.1": filled}
