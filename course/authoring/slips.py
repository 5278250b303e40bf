"""Slips: the worked solution with one small mistake built in, anywhere, and what it is called.

What an attempt gives is compared with what each of these gives, where nothing else has a sentence for it. They are
made by rules, not by an author, so that they know mistakes that nobody has foreseen. `python -m course slips 05` makes
the lesson's rows, in which `course/judging/slips.py` looks an attempt up.
"""

import ast
import contextlib
import copy
import json
import re
import signal
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from course.base.files import write_atomically
from course.base.notebooks import ROOT, lesson_file
from course.judging import judge, running
from course.judging.exercises import cell, find, lessons, of_lesson, title
from course.judging.slips import signature

NOTHING = ast.parse("__import__('contextlib').nullcontext()", mode="eval").body
OFF_BY_ONE = "you are off by one (in an index, a count or a limit)"
IN_EACH_ROUND = "you do inside the loop what belongs after it"
AFTER_THE_LOOP = "you do after the loop what belongs inside it"
SECONDS = 2.0  # of computing, for a slip; whatever takes longer is taken never to end

SWAPPED_OPERATORS = {
    ast.Add: (ast.Sub, "you mix up `+` and `-`"),
    ast.Sub: (ast.Add, "you mix up `+` and `-`"),
    ast.Mult: (ast.Div, "you mix up `*` and `/`"),
    ast.Div: (ast.Mult, "you mix up `*` and `/`"),
    ast.MatMult: (ast.Mult, "you write `*` for `@`"),
}
LEFT_OUT = {
    ast.Add: "a term", ast.Sub: "a term", ast.Mult: "a factor", ast.Div: "a division", ast.Pow: "a power",
}  # fmt: skip
BORDERS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITES = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SWAPPED_NAMES = [
    ("sum", "mean"), ("min", "max"), ("argmin", "argmax"), ("amin", "amax"), ("zeros", "ones"), ("exp", "log"),
    ("zeros_like", "ones_like"), ("vjp", "jvp"), ("all", "any"), ("relu", "abs"), ("view", "permute"),
    ("reshape", "permute"), ("stack", "cat"), ("append", "extend"), ("detach", "clone"), ("floor", "ceil"),
    ("floor", "round"),
]  # fmt: skip


class Slip(NamedTuple):
    """A mistake: what it is, and the code that has it."""

    says: str
    source: str


def slips(source: str) -> Iterator[Slip]:
    """Yield each slip in a piece of code once, even those that change nothing."""
    tree = ast.parse(source)
    seen = {ast.unparse(tree)}
    for place, node in enumerate(ast.walk(tree)):
        for says, change, *given in changes(node):
            changed = copy.deepcopy(tree)
            there = next(part for number, part in enumerate(ast.walk(changed)) if number == place)
            try:
                change(there, *given)
                text = ast.unparse(ast.fix_missing_locations(changed))
                compile(text, "slip", "exec")
            except (SyntaxError, ValueError, TypeError, AttributeError):
                continue
            if text not in seen:
                seen.add(text)
                yield Slip(says, text)


def changes(node: Any) -> Iterator[tuple]:
    """Yield the slips that can be made at a node: its name, a function that makes it, and its other arguments."""
    kind = type(node)
    if kind in (ast.BinOp, ast.AugAssign) and type(node.op) in SWAPPED_OPERATORS:
        other, says = SWAPPED_OPERATORS[type(node.op)]
        yield says, setattr, "op", other()
    if kind is ast.BinOp:
        if part := LEFT_OUT.get(type(node.op)):
            yield f"you leave out {part}", become, "left"
            if type(node.op) in (ast.Add, ast.Sub, ast.Mult):
                yield f"you leave out {part}", become, "right"
        if type(node.op) in (ast.Sub, ast.Div, ast.Pow, ast.MatMult):
            yield "you swap the two sides of an operation", sides_swapped
    if kind is ast.UnaryOp and type(node.op) in (ast.USub, ast.Not):
        what = "minus sign" if type(node.op) is ast.USub else "`not`"
        yield f"you forget a {what}", become, "operand"
    if kind in (ast.Return, ast.Assign) and node.value is not None and type(node.value) is not ast.Tuple:
        yield "you get the sign wrong", setattr, "value", ast.UnaryOp(ast.USub(), copy.deepcopy(node.value))
    if kind is ast.Constant and type(node.value) is int:
        for step in (1, -1):
            yield OFF_BY_ONE, setattr, "value", node.value + step
    if kind is ast.Constant and type(node.value) is bool:
        yield "you mix up True and False", setattr, "value", not node.value
    if kind is ast.Call:
        yield from in_calls(node)
    if kind is ast.Compare and len(node.ops) == 1:
        if border := BORDERS.get(type(node.ops[0])):
            yield "you mix up `<` and `<=`, or `>` and `>=`", setattr, "ops", [border()]
        if opposite := OPPOSITES.get(type(node.ops[0])):
            yield "you reverse a condition", setattr, "ops", [opposite()]
    if kind in (ast.If, ast.IfExp):
        yield "you leave out a condition", setattr, "test", ast.Constant(True)
        yield "you leave out a special case", setattr, "test", ast.Constant(False)
    if kind is ast.AugAssign:
        yield "you write `=` for `+=` (or the like)", assigned
    if kind in (ast.Tuple, ast.List) and type(node.ctx) is ast.Load and len(node.elts) > 1:
        yield "you put the parts in reverse order", setattr, "elts", node.elts[::-1]
        for place in range(len(node.elts) if kind is ast.Tuple else 0):
            yield "you give only one of several values", become, "elts", place
    if kind is ast.Subscript and type(node.ctx) is ast.Load:
        yield "you forget an index or a slice", become, "value"
    for bound in ("lower", "upper") if kind is ast.Slice else ():
        yield "you leave out one end of a slice", setattr, bound, None
    if kind is ast.With:
        yield f"you forget `with {ast.unparse(node.items[0].context_expr)}`", setattr, "items", [ast.withitem(NOTHING)]
    for field in ("body", "orelse"):
        if isinstance(getattr(node, field, None), list) and kind is not ast.Module:
            yield from in_blocks(field, getattr(node, field))
    if kind is ast.FunctionDef:
        yield from other_names(node)


def in_calls(node: ast.Call) -> Iterator[tuple]:
    method = isinstance(node.func, ast.Attribute)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if method:
        yield f"you forget `{name}()`", become, "func", "value"
    if len(node.args) == 1 and not node.keywords:
        yield f"you forget `{name}()`", become, "args", 0
    if len(node.args) == 2:
        yield f"you swap the two arguments of `{name}`", setattr, "args", node.args[::-1]
    for place, keyword in enumerate(node.keywords):
        without = [other for other in node.keywords if other is not keyword]
        yield f"you forget `{keyword.arg}=`", setattr, "keywords", without
        for dim in (0, 1, -1) if keyword.arg == "dim" else ():
            other = [*without[:place], ast.keyword("dim", ast.Constant(dim)), *without[place:]]
            yield "you choose another `dim`", setattr, "keywords", other
    for pair in SWAPPED_NAMES:
        if name in pair:
            other_name = pair[1 - pair.index(name)]
            yield f"you call `{other_name}` instead of `{name}`", renamed, "attr" if method else "id", other_name


def in_blocks(field: str, block: list[ast.stmt]) -> Iterator[tuple]:
    for place, line in enumerate(block):
        if isinstance(line, ast.Expr | ast.AugAssign | ast.Assign | ast.For | ast.While) and not is_text(line):
            yield line_left_out(line), replaced, field, place, ast.Pass()
            if place and not isinstance(line, ast.For | ast.While):
                yield "you swap two steps", exchanged, field, place
        if isinstance(line, ast.For | ast.While):
            if place + 1 < len(block):
                yield IN_EACH_ROUND, into_the_loop, field, place
            yield AFTER_THE_LOOP, out_of_the_loop, field, place
        if isinstance(line, ast.For):
            yield "you leave the loop after one round", once, field, place


def other_names(function: ast.FunctionDef) -> Iterator[tuple]:
    """Yield each use of an argument with another argument in its place."""
    names = [argument.arg for argument in function.args.args]
    for number, part in enumerate(uses(function)):
        for other in names:
            if part.id in names and other != part.id:
                yield f"you use `{other}` in place of `{part.id}`", used_instead, number, other


# What is done to a node, where it stands


def become(node: Any, field: str, then: int | str = "") -> None:
    """Turn a node into a part of its own: a field, or a field or an item of that."""
    part = getattr(node, field)
    part = part[then] if isinstance(then, int) else getattr(part, then) if then else part
    node.__class__ = part.__class__
    node.__dict__.clear()
    node.__dict__.update(part.__dict__)


def assigned(node: Any) -> None:
    target, value = node.target, node.value
    node.__class__ = ast.Assign
    node.targets, node.value = [target], value


def sides_swapped(node: Any) -> None:
    node.left, node.right = node.right, node.left


def renamed(node: Any, field: str, name: str) -> None:
    setattr(node.func, field, name)


def replaced(node: Any, field: str, place: int, line: ast.stmt) -> None:
    getattr(node, field)[place] = line


def exchanged(node: Any, field: str, place: int) -> None:
    block = getattr(node, field)
    block[place - 1], block[place] = block[place], block[place - 1]


def into_the_loop(node: Any, field: str, place: int) -> None:
    block = getattr(node, field)
    block[place].body.extend(block[place + 1 :])
    del block[place + 1 :]


def out_of_the_loop(node: Any, field: str, place: int) -> None:
    block = getattr(node, field)
    block.insert(place + 1, block[place].body.pop())
    block[place].body = block[place].body or [ast.Pass()]


def once(node: Any, field: str, place: int) -> None:
    getattr(node, field)[place].body.append(ast.Break())


def used_instead(function: ast.FunctionDef, number: int, name: str) -> None:
    uses(function)[number].id = name


def uses(function: ast.FunctionDef) -> list[ast.Name]:
    return [part for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]


def is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def line_left_out(line: ast.stmt) -> str:
    call = getattr(line, "value", None)
    if isinstance(line, ast.Expr) and isinstance(call, ast.Call):
        return f"you forget to call `{ast.unparse(call.func).rpartition('.')[2]}`"
    if isinstance(line, ast.Assign) and isinstance(target := line.targets[0], ast.Attribute):
        return f"you forget to set `.{target.attr}`"
    return "you leave out a step"


# The table


def made(key: str) -> dict[str, list[str]]:
    """Make the row of an exercise: try each slip, leaving out those that never end or change nothing."""
    exercise = find(key)
    source = re.sub(r" *### (?:BEGIN|END) SOLUTION\n?", "", cell(key, "solutions") or "")
    asked = asked_of(key)
    if not callable(exercise.answer) or not source or not asked:
        return {}

    def came(code: str) -> str:
        names = _before(key)
        exec(code, names)
        tried = judge.tried(judge.trial_of(exercise, False), eval(asked, names), function=True)
        return signature(tried.seen or [])

    with running.in_silence():
        right = signature(judge.expected(exercise).right)
        row: dict[str, list[str]] = {}
        for slip in slips(source):
            with contextlib.suppress(Exception, _TooLong), _at_most(SECONDS):
                mark = came(slip.source)
                if mark != right and slip.says not in row.setdefault(mark, []):
                    row[mark].append(slip.says)
    # A result that more than two slips give points to none of them: an error, or nothing at all.
    return {mark: says for mark, says in sorted(row.items()) if len(says) <= 2}


def asked_of(key: str) -> str:
    """Return the expression that the exercise's check is about."""
    for found in _cells(key):
        if match := re.search(rf'^check\("{re.escape(key)}", (.+)\)$', "".join(found["source"]), re.MULTILINE):
            return match[1]
    return ""


def _before(key: str) -> dict[str, Any]:
    """Return the names that the exercise's notebook defines above the answer."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for found in _cells(key):
        if found["metadata"].get("exercise") == key:
            break
        source = "".join(found["source"])
        if found["cell_type"] == "code" and "nbgrader" not in found["metadata"] and "check(" not in source:
            with contextlib.suppress(Exception):
                exec(source, names)
    return names


def _cells(key: str) -> list[dict[str, Any]]:
    path = ROOT / "exercises" / f"{title(key[:2])}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


class _TooLong(BaseException):
    """Not an Exception, so that no code in an answer catches it."""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End whatever takes longer, where the system can (Windows cannot)."""

    if sys.platform == "win32":
        yield
        return

    def stop(*_: Any) -> None:
        raise _TooLong

    # Beside other programs, seconds of computing can be many by the clock, whose limit is for code that waits.
    timers = (signal.ITIMER_PROF, seconds), (signal.ITIMER_REAL, 30 * seconds)
    before = [(number, signal.signal(number, stop)) for number in (signal.SIGPROF, signal.SIGALRM)]
    try:
        for timer, limit in timers:
            signal.setitimer(timer, limit)
        yield
    finally:
        for timer, _ in timers:
            signal.setitimer(timer, 0)
        for number, handler in before:
            signal.signal(number, handler)


def write(wanted: list[str]) -> None:
    """Make the rows of these lessons again, or of all."""
    for lesson in wanted or lessons():
        rows = {}
        for key in of_lesson(lesson):
            rows[key] = made(key)
            print(f"{key}: {len(rows[key])}")
        kept = {key: row for key, row in sorted(rows.items()) if row}
        write_atomically(lesson_file(lesson, "slips.json"), json.dumps(kept, ensure_ascii=False, indent=0) + "\n")
