"""Exercise 18.1 with numbers of a class's own."""

import random
from typing import Any


def steps(text: str, chance: random.Random) -> tuple[str, Any]:
    how = chance.sample(["exp", "tanh", "sin", "cos"], 3)
    unused, again = chance.randrange(1, 3), chance.randrange(1, 3)
    names = "bcd"[: unused + 1]
    lines = ["    def f(x, w):", "        a = x * w"]
    lines += [f"        {name} = x.{one}()" for name, one in zip(names[:-1], how, strict=False)]
    lines += [f"        {names[-1]} = (x * w).{how[2]}()"]
    lines += [f"        return ({' + '.join(['a', names[-1], 'x * w'][: 1 + again])}).sum()"]
    begin, end = text.index("    def f"), text.index("Give four numbers")
    written = 1 + unused + 2 + (2 * again - 1) + 1  # a; the unused; a product and its function; what is added; the sum
    joined = written - again
    return text[:begin] + "\n".join(lines) + "\n\n" + text[end:], (written, joined, joined - unused, 1)


RULES = {"18.1": steps}
