"""The text of a loop run as the plain Python that it is: slow, and there at once."""

import numpy as np
from ml_dtypes import bfloat16
from scipy import special

from engine.compiler import machine

FUNCTIONS = {
    "larger": np.maximum, "smaller": np.minimum, "largest": np.maximum, "smallest": np.minimum, "expit": special.expit,
    "erf": special.erf, "erfc": special.erfc, "abs": abs, "min": min, "max": max,
    "counted": int, "bfloat16": lambda x: np.float32(bfloat16(x)), "shortened": lambda x: bfloat16(x).view(np.uint16),
    "widened": lambda bits: np.float32(np.uint16(bits).view(bfloat16)),
}  # fmt: skip


LARGE = 4096  # rows, which Python would take long for
machine_code = machine.compiled


def compiled(text):
    """As ``machine.compiled``, without Numba; but an optimizer's step is about addresses, which Python has none of."""
    if "array_at(" in text:
        return machine_code(text)
    names = "exp exp2 expm1 log log1p log2 tanh sin cos sqrt power".split()
    space = {**machine.SPACE, **{name: getattr(np, name) for name in names}, **FUNCTIONS}
    exec(compile(text, "<loop>", "exec"), space)
    slow = np.errstate(all="ignore")(space["loop"])

    def loop(first, last, *args):
        return (machine_code(text) if last - first > LARGE else slow)(first, last, *args)

    loop.operations = 1
    return loop
