"""Exercise 22.1 with numbers of a class's own."""

import random
from typing import Any

from course.judging import exercises
from course.judging.questions import put


def transformer(text: str, chance: random.Random) -> tuple[str, Any]:
    letters, width, blocks = chance.choice([40, 70, 90]), chance.choice([16, 24, 64]), chance.choice([2, 4, 5])
    longest, texts = chance.choice([32, 64, 256]), chance.choice([4, 16, 32])
    model = f"Transformer(letters={letters}, width={width}, heads=4, blocks={blocks}, longest={longest})"
    before = "Transformer(letters=100, width=32, heads=4, blocks=3, longest=128)"
    batches = f"batches of {texts} texts of {longest} letters"
    new = put(text, (before, model), ("batches of 8 texts of 128 letters", batches))
    return new, exercises.checks("22").counted(letters, width, blocks, longest, texts)


RULES = {"22.1": transformer}
