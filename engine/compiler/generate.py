"""Generate: a plan as Python over NumPy, or over a device's functions, one line a step, to be read and run."""

import keyword
import linecache
import math
import re
from functools import lru_cache
from itertools import count

import numpy as np

from ..arrays import devices, memory
from ..arrays import threads as blocks
from ..arrays.selection import selected
from . import chains, fuse, loop_text, machine, nests
from .capture import diagonal, scipy_special
from .memory_plan import Buffers, MemoryPlan, is_fixed
from .plan import is_ours, refs, ufunc_of, uses
from .steps import NESTED, Ref, parts_of

INFIX = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
         "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<",
         "le": "<=", "gt": ">", "ge": ">="}  # fmt: skip
PREFIX = {"neg": "-{}", "pos": "+{}", "invert": "~{}", "abs": "abs({})"}
OURS = {"where": selected, "strided": memory.strided, "diagonal": diagonal,
        "in_blocks": blocks.block_by_block,
        "draw": devices.backends["cpu"].random}  # functions of the engine's that take NumPy's arrays  # fmt: skip
FILLED = 1 << 20  # elements of an array that is kept to be compared with
MODULES = {"cuda": "cp", "sim": "sim"}  # device -> what its functions are called in the code
KNOWN = {"np", "special", "xp", *MODULES.values(), *chains.SPACE,
         *"bool float sum lent Deviation Buffers".split()}  # names that the code has  # fmt: skip
IN_LOOPS = {
    *"in_rows first last start i2 k2".split(),
    *nests.INDICES,
    *loop_text.WORDS,
    *loop_text.SPACE_NAMES,
}  # and that loops have
IN_PLACE = {"add", "sub", "mul", "truediv", "and", "or", "xor"}
numbers = count(1)


class Deviation(Exception):
    """A check found another answer than at the capture: this call runs eagerly."""


class Writer:
    """Writes the two functions of a plan down; what is no literal becomes a constant c0, c1, ..."""

    def __init__(self, steps):
        self.steps = steps  # number -> Step, of all
        self.names, self.taken, self.used, self.constants, self.given = {}, set(), {}, {}, {}
        self.pools, self.formulas, self.fills = [], [], {}
        self.loops, self.shown = {}, []  # name of a loop -> its text for the compiler; the texts that are read
        self.harmless = {}  # name of a function -> how many of its lines can be done again
        self.module = ""  # how a device's functions are called, if not by its own name
        self.taken.update(keyword.kwlist, KNOWN, OURS)

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
        return self.fresh("n" if step.name == "size" else assigned_name(step.line))

    def constant(self, value):
        if id(value) in self.given:
            return self.given[id(value)]
        called = getattr(value, "__name__", "") if callable(value) else ""
        self.given[id(value)] = name = self.fresh(called or f"c{len(self.constants)}")
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
        if kind in NESTED:
            inner = ", ".join(map(self.text, parts_of(a)))
            return f"[{inner}]" if kind is list else f"slice({inner})" if kind is slice else f"({inner}{one(a)})"
        if isinstance(a, np.dtype) or (isinstance(a, type) and issubclass(a, np.generic)):
            short = np.dtype(a).name
            known = hasattr(np, short) and np.dtype(a).num < 24
            return "bool" if short == "bool" else f"np.{short}" if known else self.constant(a)
        return self.constant(a)

    def operand(self, a):
        text = self.text(a)
        return f"({text})" if text.startswith("-") else text

    def key(self, key):
        """Write what stands in the brackets of an index."""
        if type(key) is tuple and key:
            return ", ".join(map(self.entry, key)) + one(key)
        return self.entry(key)

    def entry(self, k):
        if type(k) is not slice:
            return self.text(k)
        parts = ["" if v is None else self.text(v) for v in (k.start, k.stop)]
        return ":".join(parts) + ("" if k.step is None else ":" + self.text(k.step))

    def operands(self, step, shape, cut=""):
        """Write a ufunc's operands; for maximum, an array (with ``cut`` behind) in place of a number: 3x as fast."""
        if step.kind == "operator" and step.name == "pow":  # a square
            return self.text(step.args[0])
        texts = [*map(self.text, step.args)]
        if compares(step) and is_fixed(shape) and math.prod(shape) <= FILLED:
            alike = [self.steps[n] for n in uses(step)]
            for i, a in enumerate(step.args):
                if type(a) in (int, float) and (alike[0].shape, alike[0].dtype) == (step.shape, step.dtype):
                    texts[i] = self.filled(a, shape, step.dtype) + cut
        return ", ".join(texts)

    def filled(self, value, shape, dtype):
        """The name of an array that is filled with a number."""
        key = repr(value), shape, dtype
        if key not in self.fills:
            name = self.fills[key] = self.fresh("zeros" if value == 0 else "filled")
            self.pools.append(f"{name} = np.full({shape}, {self.text(value)}, {self.text(dtype)})")
        return self.fills[key]

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
        return self.call(self.function_of(step), args, step.options)

    def function_of(self, step):
        """Return how the code calls the function of a step: a device has its own."""
        name, where = step.name, step.where
        if (name in OURS and not (where and name == "where")) or "draw" in name.split(".")[0]:
            return name
        if is_ours(step):
            return self.constant(step.function)
        if where:
            return f"{self.module or MODULES[where]}.{name}"
        return name if name.startswith("special.") else "np." + name

    def line(self, step, place=None):
        """The line of a step, without its comment; ``place``: the name of an array that takes its result."""
        if step.kind == "check":
            look = "bool" if step.function is None else self.constant(step.function)
            return f"if {look}({self.text(step.args[0])}) is not {step.args[1]}: raise Deviation"
        if step.kind == "call":
            name = self.fresh(step.name)
            self.constants[name] = step.function
            return self.call(name, step.args, step.options)
        if step.kind == "setitem":
            return f"{self.text(step.args[0])}[{self.key(step.args[1])}] = {self.text(step.args[2])}"
        if step.kind == "operator" and step.writes is not None:
            target = self.text(step.args[0])
            return f"{target} {INFIX[step.name[1:]]}= {self.text(step.args[1])}"
        if place is not None:
            return self.into(step, place)
        text = self.expression(step)
        if is_dot(step, self.steps):
            text = f"{self.operand(step.args[0])}.dot({self.text(step.args[1])})"
        elif compares(step):
            text = f"np.{step.name}({self.operands(step, step.shape)})"
        if step.writes is not None:
            return text
        self.names[step.number] = self.name_of(step)
        return f"{self.names[step.number]} = {text}"

    def into(self, step, place):
        """The line of a step whose result goes into an array that is there."""
        texts = [*map(self.text, step.args)]
        if step.kind == "operator" and step.name in IN_PLACE and texts[0] == place:
            text = f"{place} {INFIX[step.name]}= {texts[1]}"
        else:
            product = "np.dot" if is_dot(step, self.steps) else "np.matmul"
            function = product if step.name == "matmul" else fuse.name_of_ufunc(step)
            text = f"{function}({self.operands(step, step.shape)}, out={place})"
        self.names[step.number] = place if place in texts else self.name_of(step)
        return text if place in texts else f"{self.names[step.number]} = {text}"

    def function(self, name, inputs, steps, results, shared=()):
        """The text of a function that forgets large arrays in time; ``shared``: the results to return as copies."""
        memory = MemoryPlan(self, steps, results)
        shown_line = None  # a line of the user's stands beside its first step
        lines, harmless = [], None  # the lines before the first that changes more than arrays of its own
        for i, step in enumerate(steps):
            if harmless is None and self.has_effect(step):
                harmless = sum(text.count("\n") + 1 for text in lines)
            if step.kind == "fused" and step.where:
                text, call = chains.lines(step, self)
                self.formulas.append(text)
                lines.append("    " + call)
            elif step.kind == "fused":
                lines += ["    " + line for line in step.lines(self, memory)]
            else:
                text = self.line(step, memory.place(step, i))
                size = "x".join(map(str, step.shape or ())) or "number"
                what = "" if step.shape is None else f"{size} {dtype_name(step.dtype)}"
                note = "  ".join(filter(None, (what, "" if step.line == shown_line else step.line)))
                shown_line = step.line
                lines.append(f"    {text}" + (f"  # {note}" if note else ""))
            gone = memory.forget(i)
            lines += [f"    del {', '.join(gone)}"] if gone else []
        head = [f"def {name}({', '.join(inputs)}):"]
        if memory.buffers:
            pool = self.pool(memory.kinds)
            names = ", ".join(memory.buffers.values())
            head.append(f"    {names}{one(memory.buffers)} = lent = {pool}.take()")
            lines.append(f"    {pool}.give(lent)")
        self.harmless[name] = math.inf if harmless is None else len(head) + harmless
        returned = [self.text(r) + ".copy()" * (i in shared) for i, r in enumerate(results)]
        lines.append(f"    return ({', '.join(returned)}{one(returned)})")
        return "\n".join([*head, *lines])

    def has_effect(self, step):
        """Return whether somebody sees from outside that a step was done."""
        return step.kind == "call" or (step.writes is not None and self.steps[step.owner].kind == "input")

    def pool(self, kinds):
        """The name of ``Buffers`` of some kinds, which are kept from call to call."""
        name = self.fresh("buffers")
        self.pools.append(f"{name} = Buffers({', '.join(map(self.text, kinds))})")
        return name


def one(parts):
    """The comma behind a tuple of one."""
    return "," * (len(parts) == 1)


@lru_cache(maxsize=4096)
def as_name(wanted):
    """A text as a Python name."""
    base = re.sub(r"\W", "_", wanted) or "t"
    return "_" + base if base[0].isdigit() else base


@lru_cache(maxsize=4096)
def assigned_name(line):
    """Return the name that the user's line gives its result, or t."""
    found = re.search(r":\d+: (\w+) = ", line)
    return found[1] if found else "t"


def compares(step):
    """Return whether a step is the larger or smaller elements of arrays on the host."""
    return not step.where and step.name in ("maximum", "minimum") and ufunc_of(step) is not None


def is_dot(step, source):
    """Return whether a step is a product of vectors or matrices: NumPy's dot begins in half the time of its matmul."""
    if step.name != "matmul" or step.where or step.writes is not None or step.dtype.itemsize < 3:
        return False
    operands = [source[a.number].shape if type(a) is Ref else np.shape(a) for a in step.args]
    return all(0 < len(shape or ()) < 3 for shape in operands)


def shared_grads(plan, writer):
    """Find gradients in memory that something else has: a constant, another gradient, an input of backward."""
    inside = {n for s in plan.backward for n in (s.number, *getattr(s, "results", ()))}
    memory = [writer.steps[g.number].owner if type(g) is Ref else None for g in plan.grads]
    return {i for i, (g, n) in enumerate(zip(plan.grads, memory))
            if g is not None and (n not in inside or memory.count(n) > 1)}  # fmt: skip


dtype_name = lru_cache(str)


def generate(plan, steps, input_names):
    """(forward, backward or None, the text of both) for a plan; ``input_names``: {number of its step: name}."""
    writer = Writer({s.number: s for s in steps})
    if any(s.kind == "fused" and s.is_loop for s in (*plan.forward, *plan.backward)):
        writer.taken.update(IN_LOOPS)
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
    pools = ["\n".join(writer.pools)] if writer.pools else []
    code, run = (
        "\n\n\n".join([*texts, *writer.formulas, *loops, *pools]) + "\n"
        for loops in (writer.shown, ["\n" * text.count("\n") for text in writer.shown])
    )
    filename = f"<compiled {next(numbers)}>"
    linecache.cache[filename] = len(code), None, code.splitlines(True), filename
    space = {"__name__": "engine.compiler.generated", "np": np, "Deviation": Deviation, "Buffers": Buffers}
    space.update(OURS, **writer.constants)
    if "special." in code:
        space["special"] = scipy_special()
    for where in {s.where for s in steps} - {""}:
        backend = devices.backends[where]
        space |= {MODULES[where]: backend.xp, f"{where}_draw": backend.random, **chains.SPACE}
    exec(compile(run, filename, "exec"), space)
    if writer.loops:
        machine.with_numba()
        space |= {name: machine.Later(text, space, name) for name, text in writer.loops.items()}
        space["in_rows"] = machine.in_rows
    space["forward"].harmless = writer.harmless["forward"]
    return space["forward"], space.get("backward"), code
