"""Words of loops: what differs between the text that is read and the text that is compiled.

It stands between brackets of its own: a number ``‹0.5›`` is of the type of the loop, and a cast ``«int32(...)»`` takes
place in machine code alone.
"""

import math
import re

import numpy as np

from .nests import LONG_NAMES, SHORT


def literal(a, dtype):
    """Write a number of the type of the loop."""
    if dtype == SHORT:
        a, dtype = float(dtype.type(a)), np.dtype("float32")
    if isinstance(a, np.generic):
        a = a.item()
    if is_bool(dtype) or type(a) is bool:
        return repr(bool(a)) if is_bool(dtype) else f"‹{dtype}:{int(a)}›"
    if type(a) is float and not math.isfinite(a):
        return f"‹{dtype}:{'nan' if a != a else 'inf' if a > 0 else '-inf'}›"
    return f"‹{dtype}:{a!r}›"


def number_in(name, shape):
    """The one element of an array as a number of the same type; ``item()`` would give a longer one of Python's."""
    return f"{name}[{', '.join('0' * len(shape)) or '()'}]"


def is_bool(dtype):
    return dtype.kind == "b"


def kind(dtype):
    """The name of a type in a loop."""
    return "bool_" if is_bool(dtype) else "float32" if dtype == SHORT else str(dtype)


SIMPLE = re.compile(r"[«»\w.()‹›:+-]*?\w+(\[[\w, ]*\])?|‹[^›]*›|«\w+\(»[^«»]*«\)»")


def bracketed(text):
    """An operand, in brackets if it is more than a name, a call or an element."""
    if text.isidentifier():
        return text
    simple = SIMPLE.fullmatch(text)
    if simple and not text.startswith("-"):
        return text
    depth = 0
    if re.match(r"\w+\(", text) and text.endswith(")"):
        for i, c in enumerate(text):
            depth += (c == "(") - (c == ")")
            if depth == 0 and c == ")":
                return text if i == len(text) - 1 else f"({text})"
    return f"({text})"


def plain(text):
    """The text as it is read."""
    return re.sub(r"«[^»]*»", "", re.sub(r"‹\w+:([^›]*)›", r"\1", text))


WORDS = {*"True False def for in if else return range min max not and or abs first last inf nan counted".split()}


def canonical(text):
    """The text as it is compiled: with its own types, and the same for all nests that do the same."""
    text = re.sub(r"‹(\w+):([^›]*)›", r"\1(\2)", text).replace("«", "").replace("»", "")
    names = Numbered()
    parts = re.split(r"(?<![\w.])([A-Za-z_]\w*)", text)
    parts[1::2] = map(names.__getitem__, parts[1::2])
    return re.sub(r"^def \w+", "def loop", "".join(parts))


class Numbered(dict):
    """Gives each name what it is called: words stay as they are, other names become x0, x1, ... in turn."""

    count = 0

    def __missing__(self, name):
        if name in WORDS or name in SPACE_NAMES:
            self[name] = name
        else:
            self[name] = f"x{self.count}"
            self.count += 1
        return self[name]


SPACE_NAMES = {*"float32 float64 int32 int64 bool_ sqrt empty larger smaller largest smallest".split(), *LONG_NAMES,
               *"bfloat16 shortened widened".split()}  # fmt: skip
