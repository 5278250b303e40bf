"""Exercise 17.1 with numbers of a class's own."""

import random
from typing import Any

from course.judging import exercises
from course.judging.questions import put


def left(text: str, chance: random.Random) -> tuple[str, Any]:
    size = chance.choice([2, 3, 5, 6, 8])  # MiB, for the 4 of the text
    new = put(text, ("1024 by 1024", f"1024 by {size * 256}"), ("4 MiB", f"{size} MiB"))
    return new, tuple(size * mib // 4 for mib in exercises.find("17.1").answer)


RULES = {"17.1": left}
