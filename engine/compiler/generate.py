"""Generate: a plan as Python over NumPy that can be read, one line a step, and then run."""

import importlib
import keyword
import linecache
import math
import re
from functools import lru_cache
from itertools import count

import numpy as np

from .. import backend
from . import fuse
from .capture import Ref, diagonal
from .plan import refs, uses

INFIX = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
         "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<",
         "le": "<=", "gt": ">", "ge": ">="}  # fmt: skip
PREFIX = {"neg": "-{}", "pos": "+{}", "invert": "~{}", "abs": "abs({})"}
OURS = {
    "where": backend.selected,
    "strided": backend.strided,
    "diagonal": diagonal,
    "in_blocks": fuse.in_blocks,
    "draw": backend.homes["cpu"].random,
}  # functions of the engine's that take NumPy's arrays
LARGE = 4096  # elements of an array whose memory is given back as soon as it is not needed
numbers = count(1)


class Deviation(Exception):
    """A check found another answer than at the capture: this call runs eagerly."""


class Writer:
    """Writes the two functions of a plan down; what is no literal becomes a constant c0, c1, ..."""

    def __init__(self, steps):
        self.steps = steps  # number -> Step, of all
        self.names, self.taken, self.used, self.constants = {}, set(), {}, {}
        self.taken.update(keyword.kwlist, ("a", "b", "np", "special", "Deviation", *OURS))

    def fresh(self, wanted):
        """A name that is not taken, like the wanted one."""
        base = name = as_name(wanted)
        while name in self.taken:
            self.used[base] = n = self.used.get(base, 1) + 1
            name = f"{base}_{n}"
        self.taken.add(name)
        return name

    def name_of(self, step):
        """The name of a result: what the user's line calls it, or t1, t2, ..."""
        return self.fresh("n" if step.name == "size" else called(step.line))

    def constant(self, value):
        name = self.fresh(f"c{len(self.constants)}")
        self.constants[name] = value
        return name

    def text(self, a):
        """An argument as it is written."""
        kind = type(a)
        if kind is Ref:
            return self.names[a.number]
        if a is None or a is Ellipsis or kind in (bool, int, str):
            return repr(a)
        if kind is float:
            return repr(a) if math.isfinite(a) else {math.inf: "np.inf", -math.inf: "-np.inf"}.get(a, "np.nan")
        if kind is tuple:
            return f"({', '.join(map(self.text, a))}{',' * (len(a) == 1)})"
        if kind is list:
            return f"[{', '.join(map(self.text, a))}]"
        if kind is slice:
            return f"slice({self.text(a.start)}, {self.text(a.stop)}, {self.text(a.step)})"
        if isinstance(a, np.dtype) or (isinstance(a, type) and issubclass(a, np.generic)):
            short = np.dtype(a).name
            return (
                f"np.{short}" if hasattr(np, short) and np.dtype(a).num < 24 and short != "bool" else self.constant(a)
            )
        return self.constant(a)

    def operand(self, a):
        text = self.text(a)
        return f"({text})" if text.startswith("-") else text

    def key(self, key):
        """What stands in the brackets of an index."""
        if type(key) is tuple and key:
            return ", ".join(map(self.entry, key)) + "," * (len(key) == 1)
        return self.entry(key)

    def entry(self, k):
        if type(k) is not slice:
            return self.text(k)
        parts = ["" if v is None else self.text(v) for v in (k.start, k.stop)]
        return ":".join(parts) + ("" if k.step is None else ":" + self.text(k.step))

    def call(self, name, args, options):
        given = [*map(self.text, args), *(f"{k}={self.text(v)}" for k, v in options.items())]
        return f"{name}({', '.join(given)})"

    def expression(self, step):
        """The right side of the line of a step."""
        kind, name, args = step.kind, step.name, step.args
        if kind == "operator":
            if name in PREFIX:
                return PREFIX[name].format(self.operand(args[0]))
            return f"{self.operand(args[0])} {INFIX[name]} {self.operand(args[1])}"
        if kind in ("getitem", "item"):
            return f"{self.text(args[0])}[{self.key(args[1])}]"
        if kind == "method":
            return f"{self.operand(args[0])}.{self.call(name, args[1:], step.options)}"
        where = "" if name in OURS or name.startswith(("special.", "draw.")) else "np."
        return self.call(where + name, args, step.options)

    def line(self, step):
        """The line of a step, without its comment."""
        if step.kind == "check":
            return f"if bool({self.text(step.args[0])}) is not {step.args[1]}: raise Deviation"
        if step.kind == "call":
            name = self.fresh(step.name)
            self.constants[name] = step.function
            return self.call(name, step.args, step.options)
        if step.kind == "setitem":
            return f"{self.text(step.args[0])}[{self.key(step.args[1])}] = {self.text(step.args[2])}"
        if step.kind == "operator" and step.writes is not None:
            target = self.text(step.args[0])
            return f"{target} {INFIX[step.name[1:]]}= {self.text(step.args[1])}"
        text = self.expression(step)
        if step.writes is not None:
            return text
        self.names[step.number] = self.name_of(step)
        return f"{self.names[step.number]} = {text}"

    def function(self, name, inputs, steps, results, shared=()):
        """The text of a function; large arrays that no later step needs are forgotten.

        ``shared``: which of the results are returned as copies.
        """
        last = {n: i for i, step in enumerate(steps) for n in (step.number, *uses(step))}
        needed = {*refs(results)}
        shown_line = None  # a line of the user's stands beside its first step
        lines, memory = [f"def {name}({', '.join(inputs)}):"], {}
        for n, i in last.items():
            step = self.steps[n]
            if is_large(step) and n not in needed and step.kind not in ("input", "check") and step.writes is None:
                memory.setdefault(i, []).append(n)
        for i, step in enumerate(steps):
            if step.kind == "fused":
                lines += ["    " + line for line in fuse.lines(step, self)]
                lines += self.forget(memory.get(i, ()))
                continue
            text = self.line(step)
            what = "" if step.shape is None else f"{shown_shape(step.shape)} {dtype_name(step.dtype)}"
            note = "  ".join(filter(None, (what, "" if step.line == shown_line else step.line)))
            shown_line = step.line
            lines.append(f"    {text}" + (f"  # {note}" if note else ""))
            lines += self.forget(memory.get(i, ()))
        returned = [self.text(r) + ".copy()" * (i in shared) for i, r in enumerate(results)]
        lines.append(f"    return ({', '.join(returned)}{',' * (len(returned) == 1)})")
        return "\n".join(lines)

    def forget(self, numbers):
        gone = sorted({self.names[n] for n in numbers if n in self.names})
        return [f"    del {', '.join(gone)}"] if gone else []


@lru_cache(maxsize=4096)
def as_name(wanted):
    """A text as a Python name."""
    base = re.sub(r"\W", "_", wanted) or "t"
    return "_" + base if base[0].isdigit() else base


@lru_cache(maxsize=4096)
def called(line):
    """How the user's line calls its result, or t."""
    found = re.search(r":\d+: (\w+) = ", line)
    return found[1] if found else "t"


def shared_grads(plan, writer):
    """Which gradients lie in memory that something else has: a constant, another gradient, an input of backward."""
    made = {n for s in plan.backward for n in (s.number, *getattr(s, "results", ()))}
    memory = [writer.steps[g.number].owner if type(g) is Ref else None for g in plan.grads]
    return {
        i
        for i, (g, owner) in enumerate(zip(plan.grads, memory))
        if g is not None and (owner not in made or memory.count(owner) > 1)
    }


def is_large(step):
    return step.shape is not None and math.prod(step.shape) >= LARGE


@lru_cache
def dtype_name(dtype):
    return str(dtype)


def shown_shape(shape):
    return "x".join(map(str, shape)) or "number"


def generate(plan, steps, input_names):
    """(forward, backward or None, the text of both) for a plan.

    ``input_names``: {number of the step of an input: the name to give it}.
    """
    writer = Writer({s.number: s for s in steps})
    for number, name in input_names.items():
        writer.names[number] = writer.fresh(name)
    inputs = [writer.names[n] for n in input_names]
    memory = [writer.steps[r.number].owner if type(r) is Ref else None for r in plan.outputs]
    again = {i for i, owner in enumerate(memory) if owner is not None and owner in memory[:i]}  # equal results
    texts = [writer.function("forward", inputs, plan.forward, (*plan.outputs, *plan.saved), again)]
    if plan.grads:
        for number in plan.given:
            writer.names[number] = writer.fresh("g")
        inputs = [writer.names[n] for n in (*refs(plan.saved), *plan.given)]
        texts.append(writer.function("backward", inputs, plan.backward, plan.grads, shared_grads(plan, writer)))
    code = "\n\n\n".join(texts) + "\n"
    filename = f"<compiled {next(numbers)}>"
    linecache.cache[filename] = len(code), None, code.splitlines(True), filename
    space = {"__name__": "engine.compiler.generated", "np": np, "Deviation": Deviation, **OURS, **writer.constants}
    if "special." in code:
        space["special"] = importlib.import_module("scipy.special")
    exec(compile(code, filename, "exec"), space)
    return space["forward"], space.get("backward"), code
